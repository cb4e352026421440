/* SPDX-License-Identifier: MIT */
/*
 * Why Kueue does not let a job run, according to the latest condition of the job's Workload and to
 * its queue. Conditions, their reasons and the fields of queues determine the text; Kueue's
 * messages are quoted. In this order:
 *
 *  deactivated             a user, a check or a limit has disabled the job until spec.active is set again
 *  evicted, has quota      its pods are being ended
 *  no QuotaReserved        it waits in its queue
 *  QuotaReserved is false  no quota now, or never; a missing or stopped queue
 *  Admitted is not true    admission checks
 *
 * Evicted stays true while the job waits again: then the reason of the eviction is included.
 */
#include "spec/view/kueue_cause.h"

#include "spec/base/read.h"
#include "spec/base/time.h"
#include "spec/view/kueue.h"
#include "spec/view/reader.h"

#define WAITS_FOR_ROOM "Kueue admits it when quota becomes available."
#define WHEN_OPENED    "Kueue admits it when the queue is opened again."
#define WHEN_ACTIVE    "It resumes when spec.active of its Workload is set to true again."
/* Kueue does not requeue the job, even if spec.active is set again. */
#define SUBMIT_AGAIN                                                                               \
	"Kueue will not admit it again: copy its manifest.yaml into submit/ to run it again."

/* The causes: the reason in status, and the text after the sentence in `why`. */
struct kueue_class {
	const char *reason;
	const char *advice;
};

static const struct kueue_class no_workload = {
	"NoWorkload", "If this lasts, Kueue may be down, or does not manage this namespace."};
static const struct kueue_class unwatched = {
	SPEC_REASON_QUEUED,
	"This mount can't watch Workloads, which have the reason; see .kxfs/info."};
static const struct kueue_class no_kueue = {"NoKueue", "Submit it without a queue."};
static const struct kueue_class in_line = {"InLine", ""};
static const struct kueue_class queue_full = {"QueueFull", WAITS_FOR_ROOM};
static const struct kueue_class queue_too_small = {"QueueTooSmall",
						   "Submit it to another queue, or request less."};
static const struct kueue_class no_queue = {"NoQueue",
					    "Create it, or submit the job to another queue."};
static const struct kueue_class queue_stopped = {"QueueStopped", WHEN_OPENED};
static const struct kueue_class inadmissible = {"Inadmissible", ""};
static const struct kueue_class misconfigured = {"Inadmissible", "Ask Kueue's administrator."};
static const struct kueue_class no_flavor = {
	"NoMatchingFlavor", "Change its node selector or affinity, or submit it to another queue."};
static const struct kueue_class no_topology = {
	"TopologyPlacementFailed", "Wait until other jobs free capacity, or request fewer or "
				   "smaller pods."};
static const struct kueue_class pods_ready = {"WaitingForPodsReady", ""};
static const struct kueue_class gated = {"AdmissionGated",
					 "It continues when that gate is removed."};
static const struct kueue_class queued = {"Queued", ""};
static const struct kueue_class check_pending = {"AdmissionCheckPending", ""};
static const struct kueue_class check_rejected = {"AdmissionCheckRejected", ""};
static const struct kueue_class preempted = {"Preempted", WAITS_FOR_ROOM};
static const struct kueue_class not_ready = {"PodsNotReady", ""};
static const struct kueue_class admitted = {"Admitted", ""};
static const struct kueue_class evicted_class = {"Evicted", "Kueue admits it again automatically."};
static const struct kueue_class off = {"Deactivated", WHEN_ACTIVE};
static const struct kueue_class off_fixed = {
	"Deactivated", "It continues when spec.active of its Workload is true again. "
		       "This user has no right to set that (patch "
		       "workloads.kueue.x-k8s.io): copy its manifest.yaml into submit/ "
		       "to run it again, and remove its directory."};
static const struct kueue_class off_for_good = {"Deactivated", SUBMIT_AGAIN};
static const struct kueue_class off_rejected = {"AdmissionCheckRejected", SUBMIT_AGAIN};
static const struct kueue_class off_not_ready = {"PodsNotReady", SUBMIT_AGAIN};
static const struct kueue_class off_time = {"ExecutionTimeExceeded", SUBMIT_AGAIN};
static const struct kueue_class not_started = {"FailedToStart", SUBMIT_AGAIN};

/* A cause while it is composed. */
struct kueue_text {
	const struct spec_job_view *view;
	const struct spec_view_context *ctx;
	const struct spec_workload_view *w;
	const struct spec_local_queue *queue; /* NULL if unknown */
	const struct kueue_class *class;
	FILE *out; /* the sentence */
	bool stops;
	bool kept; /* it was evicted because its pods did not start in time: include what blocked
		    * them */
};

static const struct spec_condition_view *condition(const struct kueue_text *m,
						   enum spec_workload_condition which)
{
	return &m->w->conditions[which];
}

static bool ends(const char *text, const char *with)
{
	size_t n = strlen(text), m = strlen(with);

	return n >= m && streq(text + n - m, with);
}

const char *spec_kueue_queue(const struct spec_job_view *view, const struct spec_view_context *ctx)
{
	return *view->queue || !ctx->kueue.workload ? view->queue : ctx->kueue.workload->queue;
}

const char *spec_kueue_cluster_queue(const struct spec_view_context *ctx)
{
	const struct spec_workload_view *w = ctx->kueue.workload;

	if (w && *w->cluster_queue)
		return w->cluster_queue;
	return ctx->queue && ctx->queue->local ? ctx->queue->local->cluster_queue : "";
}

/* --- parts of sentences --- */

static void put_queue(const struct kueue_text *m)
{
	const char *cluster = spec_kueue_cluster_queue(m->ctx);

	fprintf(m->out, "queue %s", spec_kueue_queue(m->view, m->ctx));
	if (*cluster)
		fprintf(m->out, " (cluster queue %s)", cluster);
}

static void put_time(const struct kueue_text *m, int64_t ns)
{
	char text[32];

	spec_time_text(ns, text);
	if (*text)
		fprintf(m->out, " at %s", text);
}

/* Print why its pods were ended, when, and what follows. */
static void put_eviction(struct kueue_text *m)
{
	static const char why[] = "due to ";
	const struct spec_condition_view *e = condition(m, SPEC_WORKLOAD_EVICTED);
	const char *by = m->ctx->kueue.preemptor, *due = strstr(e->message, why);

	if (streq(e->reason, "Preempted")) {
		fprintf(m->out, "it was preempted by %s%s", by ? "job " : "another job",
			by ? by : "");
		put_time(m, e->since);
		if (due)
			fprintf(m->out, " (%.*s)", (int)strcspn(due + strlen(why), ";"),
				due + strlen(why));
	} else if (streq(e->reason, "ClusterQueueStopped")) {
		fputs("its cluster queue was drained", m->out);
		put_time(m, e->since);
	} else if (streq(e->reason, "LocalQueueStopped")) {
		fputs("its queue was drained", m->out);
		put_time(m, e->since);
	} else if (streq(e->reason, "PodsReadyTimeout")) {
		m->kept = true;
		fputs("its pods were not ready in time", m->out);
		put_time(m, e->since);
	} else if (streq(e->reason, "Deactivated")) {
		fputs("it was deactivated", m->out);
		put_time(m, e->since);
	} else {
		fputs("it was evicted", m->out);
		put_time(m, e->since);
		fprintf(m->out, ": %s", e->message);
	}
	/* Print the number of requeues, and when it is retried. */
	if (m->w->requeued > 0)
		fprintf(m->out, "; Kueue has requeued it %u time%s for this", m->w->requeued,
			m->w->requeued == 1 ? "" : "s");
	if (m->w->requeue_at > m->ctx->now) {
		fputs(", and Kueue retries", m->out);
		put_time(m, m->w->requeue_at);
	} else if (m->w->requeued > 0) {
		fputs(", and Kueue retries automatically", m->out);
	}
	if (m->w->evictions > max_of(m->w->requeued, 1u))
		fprintf(m->out, "; Kueue has evicted it %u times so far", m->w->evictions);
}

static const struct kueue_class *class_of_eviction(const char *reason)
{
	return streq(reason, "Preempted")	   ? &preempted
	       : streq(reason, "PodsReadyTimeout") ? &not_ready
	       : ends(reason, "QueueStopped")	   ? &queue_stopped
						   : &evicted_class;
}

/* --- quota --- */

/* By the reason of QuotaReserved: apis/kueue/v1beta2/workload_types.go. */
static const struct kueue_class *class_of_reason(const char *reason)
{
	static const struct {
		const char *reason;
		const struct kueue_class *class;
	} table[] = {
		{"WaitingForQuota", &queue_full},
		{"WaitingForPreemptedWorkloads", &queue_full},
		{"ExceedsMaxQuota", &queue_too_small},
		{"NoMatchingFlavor", &no_flavor},
		{"TopologyPlacementFailed", &no_topology},
		{"WaitingForPodsReady", &pods_ready},
		{"AdmissionGated", &gated},
		{"Misconfigured", &misconfigured},
		{"Inadmissible", &inadmissible},
		{"Suspended", &queue_stopped},
	};

	for (size_t i = 0; i < array_size(table); i++)
		if (streq(table[i].reason, reason))
			return table[i].class;
	return &queued;
}

/* Quote Kueue's MESSAGE, or, if it is empty, its REASON. */
static void put_quote(const struct kueue_text *m, const char *message, const char *reason)
{
	fprintf(m->out, "Kueue: \"%s\"", *message ? message : reason);
}

/* The job has no quota, according to RESERVED. */
static void not_let_in(struct kueue_text *m, const struct spec_condition_view *reserved)
{
	m->class = class_of_reason(reserved->reason);
	fputs("it has no quota in ", m->out);
	put_queue(m);
	fputs(". ", m->out);
	put_quote(m, reserved->message, reserved->reason);
}

/* --- queues that are missing or stopped --- */

static void line(struct kueue_text *m)
{
	const struct spec_cluster_queue_view *c = m->ctx->kueue.cluster_queue;

	m->class = &in_line;
	fputs("it is in ", m->out);
	put_queue(m);
	if (c && streq(c->strategy, "StrictFIFO"))
		fputs(", which admits jobs strictly in order (StrictFIFO): the jobs "
		      "ahead of it wait too",
		      m->out);
	else if (m->ctx->kueue.position > 1 && m->ctx->now - m->ctx->since >= SPEC_PATIENCE)
		/* pkg/features/kube_features.go, SchedulingEquivalenceHashing; its objects do not have the version */
		fputs(", and Kueue has not tried to admit it yet: others are ahead of "
		      "it, and Kueue 0.18 and later skips jobs with the same request "
		      "as one that did not fit",
		      m->out);
	else
		fputs(", and Kueue has not tried to admit it yet", m->out);
}

static bool is_stopped(const char *policy)
{
	return *policy && !streq(policy, "None");
}

/* True if the job's pods were ended because a queue was stopped and drained. */
static bool was_drained(const struct kueue_text *m)
{
	const struct spec_condition_view *e = condition(m, SPEC_WORKLOAD_EVICTED);

	return e->is_true && ends(e->reason, "QueueStopped");
}

static void stopped(struct kueue_text *m, const char *what, const char *name, const char *policy)
{
	m->class = &queue_stopped;
	fprintf(m->out, "%s %s is stopped", what, name);
	if (was_drained(m)) {
		fputs(", and its jobs were evicted", m->out);
		put_time(m, condition(m, SPEC_WORKLOAD_EVICTED)->since);
	}
	if (is_stopped(policy))
		fprintf(m->out, " (%s)", policy);
	else if (was_drained(m))
		fputs(" (HoldAndDrain)", m->out);
}

static void cluster_queue_inactive(struct kueue_text *m, const char *name, size_t n)
{
	const struct spec_cluster_queue_view *c = m->ctx->kueue.cluster_queue;
	cleanup_free char *of = text_print("%.*s, which queue %s belongs to,", (int)n, name,
					   spec_kueue_queue(m->view, m->ctx));

	if (c && streq(c->active, "True") && !is_stopped(c->stop_policy)) {
		line(m); /* it was reopened */
		return;
	}
	if (c && !is_stopped(c->stop_policy)) {
		m->class = &inadmissible;
		fprintf(m->out, "cluster queue %s is inactive: %s", of, c->message);
		return;
	}
	if (!c && !was_drained(m)) {
		m->class = &misconfigured;
		fprintf(m->out,
			"cluster queue %s is inactive: it was stopped, or is not "
			"configured correctly",
			of);
		return;
	}
	stopped(m, "cluster queue", of, c ? c->stop_policy : "");
}

static void no_cluster_queue(struct kueue_text *m, const char *name, size_t n)
{
	m->class = &no_queue;
	fprintf(m->out, "queue %s belongs to cluster queue %.*s, which does not exist",
		spec_kueue_queue(m->view, m->ctx), (int)n, name);
}

/* Print why the LocalQueue admits no jobs. */
static void local_queue_inactive(struct kueue_text *m)
{
	const char *cluster = spec_kueue_cluster_queue(m->ctx);

	if (!m->queue || is_stopped(m->queue->stop_policy))
		stopped(m, "queue", spec_kueue_queue(m->view, m->ctx),
			m->queue ? m->queue->stop_policy : "");
	else if (streq(m->queue->reason, "ClusterQueueIsInactive"))
		cluster_queue_inactive(m, cluster, strlen(cluster));
	else if (streq(m->queue->reason, "ClusterQueueDoesNotExist"))
		no_cluster_queue(m, cluster, strlen(cluster));
	else
		line(m); /* it was reopened */
}

/* --- the conditions --- */

/* A job that is deleted finishes too, but that is not its end. */
static bool is_finished(const struct spec_workload_view *w)
{
	const struct spec_condition_view *finished = &w->conditions[SPEC_WORKLOAD_FINISHED];

	return finished->is_true && !streq(finished->reason, "OwnerNotFound");
}

/* True if Kueue has finished the Workload of a job that never ran. */
static bool has_not_started(const struct spec_workload_view *w)
{
	return is_finished(w) &&
	       streq(w->conditions[SPEC_WORKLOAD_FINISHED].reason, "FailedToStart");
}

static bool is_off(const struct spec_workload_view *w)
{
	if (w && is_finished(w))
		return has_not_started(w);
	return w && (!w->active || *spec_workload_put_out(w));
}

static void deactivated(struct kueue_text *m)
{
	const struct spec_condition_view *e = condition(m, SPEC_WORKLOAD_EVICTED);
	const struct spec_condition_view *target = condition(m, SPEC_WORKLOAD_TARGET);
	const struct spec_condition_view *latest = target->is_true ? target : e;
	const char *reason = spec_workload_put_out(m->w);

	m->stops = true;
	m->class = m->ctx->kueue.fixed ? &off_fixed : &off;
	if (streq(reason, "AdmissionCheck")) {
		m->class = &off_rejected;
		fputs("it was rejected by an admission check. ", m->out);
		put_quote(m, latest->message, latest->reason);
	} else if (streq(reason, "RequeuingLimitExceeded")) {
		m->class = &off_not_ready;
		m->kept = true;
		fputs("its pods were not ready in time so often that Kueue has given up", m->out);
	} else if (streq(reason, "MaximumExecutionTimeExceeded")) {
		m->class = &off_time;
		fputs("its maximum execution time is over", m->out);
	} else if (*reason) {
		m->class = &off_for_good;
		fputs("it was deactivated. ", m->out);
		put_quote(m, latest->message, latest->reason);
	} else {
		/*
		 * Perhaps a suspend written to its ctl, here or in another kxfs, has deactivated
		 * it.
		 */
		fprintf(m->out, "its Workload %s was deactivated", m->w->meta.name);
	}
}

/* The job has no quota: print why. */
static void unreserved(struct kueue_text *m)
{
	const struct spec_condition_view *r = condition(m, SPEC_WORKLOAD_RESERVED);
	const struct spec_condition_view *e = condition(m, SPEC_WORKLOAD_EVICTED);

	if (e->is_true && streq(r->message, e->message)) { /* nothing was reported since */
		m->class = class_of_eviction(e->reason);
		put_eviction(m);
		return;
	}
	if (streq(r->reason, "PendingEvaluation"))
		line(m);
	else if (m->queue && streq(m->queue->active, "False"))
		local_queue_inactive(m);
	else
		not_let_in(m, r);
	if (e->is_true && !(m->class == &queue_stopped && was_drained(m))) {
		fputs("; ", m->out);
		put_eviction(m);
	}
}

/* The job has quota, but is not admitted: print why. */
static void unadmitted(struct kueue_text *m)
{
	const char *sep = " and waits for admission check ";

	for (size_t i = 0; i < m->w->n_checks; i++) {
		const struct spec_check_view *rejected = &m->w->checks[i];

		if (!streq(rejected->state, "Rejected"))
			continue;
		m->class = &check_rejected;
		fprintf(m->out, "it was rejected by admission check \"%s\" (%s)", rejected->name,
			rejected->message);
		return;
	}
	m->class = &check_pending;
	fputs("it has its quota in ", m->out);
	put_queue(m);
	for (size_t i = 0; i < m->w->n_checks; i++) {
		const struct spec_check_view *check = &m->w->checks[i];

		fprintf(m->out, "%s%s", sep, check->name);
		if (*check->message)
			fprintf(m->out, " (%s)", check->message);
		sep = ", ";
	}
	if (m->w->n_checks == 0)
		fputs(" and is about to be admitted", m->out);
}

/* --- the whole --- */

bool spec_kueue_is_off(const struct spec_view_context *ctx)
{
	return is_off(ctx->kueue.workload);
}

bool spec_kueue_lets_run(const struct spec_view_context *ctx)
{
	const struct spec_workload_view *w = ctx->kueue.workload;

	return w && w->conditions[SPEC_WORKLOAD_ADMITTED].is_true &&
	       !w->conditions[SPEC_WORKLOAD_EVICTED].is_true;
}

static void explain(struct kueue_text *m)
{
	const struct spec_condition_view *reserved = condition(m, SPEC_WORKLOAD_RESERVED);
	const struct spec_condition_view *evicted = condition(m, SPEC_WORKLOAD_EVICTED);

	if (has_not_started(m->w)) {
		m->class = &not_started;
		fprintf(m->out, "Kueue has admitted it and could not start it: %s",
			condition(m, SPEC_WORKLOAD_FINISHED)->message);
		return;
	}
	if (is_finished(m->w))
		return;
	if (is_off(m->w))
		deactivated(m);
	else if (evicted->is_true && reserved->is_true) {
		m->stops = true;
		m->class = class_of_eviction(evicted->reason);
		put_eviction(m);
	} else if (!reserved->is_set && m->queue && streq(m->queue->active, "False"))
		local_queue_inactive(m);
	else if (!reserved->is_set)
		line(m); /* Kueue has not reported anything yet */
	else if (!reserved->is_true)
		unreserved(m);
	else if (!condition(m, SPEC_WORKLOAD_ADMITTED)->is_true)
		unadmitted(m);
	else if (streq(m->view->reason, SPEC_REASON_QUEUED)) {
		m->class = &admitted;
		fputs("Kueue has admitted it, and it is about to start", m->out);
	}
}

/* Kueue should have created a Workload by now, or admitted the job. */
static void missing(struct kueue_text *m)
{
	const struct spec_view_context *ctx = m->ctx;

	if (ctx->now - ctx->since < SPEC_PATIENCE || !streq(m->view->reason, SPEC_REASON_QUEUED))
		return;
	if (ctx->kueue.absent) {
		m->class = &no_kueue;
		fprintf(m->out,
			"it is in queue %s of Kueue, which is not installed in this cluster",
			m->view->queue);
		return;
	}
	if (!ctx->kueue.known) {
		m->class = &unwatched;
		fprintf(m->out, "Kueue has not admitted it from queue %s", m->view->queue);
		return;
	}
	m->class = &no_workload;
	fputs("Kueue has not processed it yet", m->out);
	if (*m->view->priority)
		fprintf(m->out, ", as it does when there is no priority class %s",
			m->view->priority);
}

struct spec_cause spec_kueue_cause(const struct spec_job *job, const struct spec_job_view *view,
				   const struct spec_view_context *ctx)
{
	static const struct kueue_class none = {"", ""};
	struct spec_cause ret = {0};
	cleanup_free char *text = NULL;
	size_t len;
	struct kueue_text m = {
		.view = view,
		.ctx = ctx,
		.w = ctx->kueue.workload,
		.queue = ctx->queue ? ctx->queue->local : NULL,
		.class = &none,
		.out = text_stream(&text, &len),
	};

	if (m.w)
		explain(&m);
	else
		missing(&m);
	if (ctx->kueue.away && *m.class->reason && !is_off(m.w) && m.class != &admitted)
		fputs("; the server can't reach Kueue, which admits no job while it is down",
		      m.out);
	if (m.kept && *job->obstacle)
		fprintf(m.out, ". What kept them: %s", job->obstacle);
	text_stream_close(m.out);
	ret.reason = m.class->reason;
	ret.advice = m.class->advice;
	ret.stops = m.stops && !job->suspended;
	ret.text = spec_empty();
	spec_read_copy(&ret.text, text, READ_MAX_MESSAGE);
	return ret;
}
