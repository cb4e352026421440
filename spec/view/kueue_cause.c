/* SPDX-License-Identifier: MIT */
/*
 * Finds why Kueue does not let a job run, from the conditions of its Workload and from its queue.
 * kxfs quotes Kueue's messages. The cause is the first case that applies:
 *
 *	Finished (FailedToStart)  Kueue could not start the job
 *	Workload is deactivated   a user must activate it, or submit the job again
 *	Evicted, QuotaReserved    both are true: Kueue is ending the job's pods
 *	QuotaReserved is missing  the job waits in its queue, or the queue is stopped
 *	QuotaReserved is false    no quota now or ever, or the queue is missing or stopped
 *	Admitted is not true      the job waits for admission checks
 *
 * The condition Evicted remains true while the job waits again. The text then also reports the
 * eviction.
 */
#include "spec/view/steps.h"

#include "spec/base/time.h"
#include "spec/base/value.h"
#include "spec/view/kueue.h"
#include "spec/view/reader.h"

#define WAITS_FOR_ROOM "Kueue admits it when quota becomes available."
#define WHEN_OPENED    "Kueue admits it when the queue is opened again."
#define WHEN_ACTIVE    "It resumes when spec.active of its Workload is set to true again."
/* Advice if Kueue will never requeue the job. */
#define SUBMIT_AGAIN                                                                               \
	"Kueue will not admit it again: to run it again, copy its manifest.yaml into submit/."

/* How kxfs explains a reason of Kueue. */
struct kueue_meaning {
	/* The reason in a condition; NULL in the last row, which is for all others. */
	const char *kueue;
	const char *reason; /* as in `status` */
	const char *advice; /* as in `why` */
	const char *words;
	enum {
		NOTHING,
		QUOTE, /* append Kueue's message */
		PODS,  /* append why the pods did not become ready */
	} adds;
};

#define NO_QUOTA "it has no quota in ", QUOTE

/* Reasons of the condition QuotaReserved (Kueue's apis/kueue/v1beta2/workload_types.go). */
static const struct kueue_meaning unreserved_meanings[] = {
	{"WaitingForQuota", "QueueFull", WAITS_FOR_ROOM, NO_QUOTA},
	{"WaitingForPreemptedWorkloads", "QueueFull", WAITS_FOR_ROOM, NO_QUOTA},
	{"ExceedsMaxQuota", "QueueTooSmall", "Submit the job to another queue, or request less.",
	 NO_QUOTA},
	{"NoMatchingFlavor", "NoMatchingFlavor",
	 "Change the job's node selector or affinity, or submit the job to another queue.",
	 NO_QUOTA},
	{"TopologyPlacementFailed", "TopologyPlacementFailed",
	 "Wait until other jobs free capacity, or request fewer or "
	 "smaller pods.",
	 NO_QUOTA},
	{"WaitingForPodsReady", "WaitingForPodsReady", "", NO_QUOTA},
	{"AdmissionGated", "AdmissionGated",
	 "The job continues when its admission gate is removed.", NO_QUOTA},
	{"Misconfigured", "Inadmissible", "Ask Kueue's administrator to correct the configuration.",
	 NO_QUOTA},
	{"Inadmissible", "Inadmissible", "", NO_QUOTA},
	{"Suspended", "QueueStopped", WHEN_OPENED, NO_QUOTA},
	{NULL, "Queued", "", NO_QUOTA},
};

/* Reasons of the condition Evicted. */
static const struct kueue_meaning evicted_meanings[] = {
	{"Preempted", "Preempted", WAITS_FOR_ROOM, "it was preempted", QUOTE},
	{"ClusterQueueStopped", "QueueStopped", WHEN_OPENED, "its cluster queue was drained",
	 NOTHING},
	{"LocalQueueStopped", "QueueStopped", WHEN_OPENED, "its queue was drained", NOTHING},
	{"PodsReadyTimeout", "PodsNotReady", "",
	 "its pods did not become ready before Kueue's timeout", PODS},
	{"Deactivated", "Evicted", "Kueue admits it again automatically.", "it was deactivated",
	 NOTHING},
	{NULL, "Evicted", "", "it was evicted", QUOTE},
};

/* Results of spec_workload_put_out. */
static const struct kueue_meaning off_meanings[] = {
	{"AdmissionCheck", "AdmissionCheckRejected", SUBMIT_AGAIN,
	 "it was rejected by an admission check", QUOTE},
	{"RequeuingLimitExceeded", "PodsNotReady", SUBMIT_AGAIN,
	 "its pods repeatedly did not become ready before Kueue's timeout, so Kueue gave up", PODS},
	{"MaximumExecutionTimeExceeded", "ExecutionTimeExceeded", SUBMIT_AGAIN,
	 "it reached its maximum execution time", NOTHING},
	{NULL, "Deactivated", SUBMIT_AGAIN, "it was deactivated", QUOTE},
};

struct kueue_text {
	const struct spec_job_view *view;
	const struct spec_view_context *ctx;
	const struct spec_workload_view *w;
	/* The job's queue and its ClusterQueue, or NULL. */
	const struct spec_kueue_queue *queue, *cluster;
	const char *reason, *advice; /* as in kueue_meaning */
	FILE *out;		     /* gets the sentence */
	bool stops;
	bool pods; /* end the text with why the pods did not become ready */
};

static const struct kueue_meaning *meaning_of(const struct kueue_meaning *table, const char *reason)
{
	while (table->kueue && !streq(table->kueue, reason))
		table++;
	return table;
}

static void set(struct kueue_text *m, const char *reason, const char *advice)
{
	m->reason = reason;
	m->advice = advice;
}

static const struct spec_condition_view *condition(const struct kueue_text *m,
						   enum spec_workload_condition which)
{
	return &m->w->conditions[which];
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
	return ctx->queue && ctx->queue->kueue ? ctx->queue->kueue->cluster_queue : "";
}

/* --- parts of sentences --- */

static void put_queue(const struct kueue_text *m)
{
	const char *cluster = spec_kueue_cluster_queue(m->ctx);
	const char *queue = spec_kueue_queue(m->view, m->ctx);

	fprintf(m->out, "%s%s", *queue ? "queue " : "any queue", queue);
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

static void put_quote(const struct kueue_text *m, const struct spec_condition_view *c)
{
	fprintf(m->out, ". Kueue: \"%s\"", *c->message ? c->message : c->reason);
}

/* Print why, when and how often Kueue evicted the job. Return what the reason means. */
static const struct kueue_meaning *put_eviction(struct kueue_text *m)
{
	const struct spec_condition_view *e = condition(m, SPEC_WORKLOAD_EVICTED);
	const struct kueue_meaning *means = meaning_of(evicted_meanings, e->reason);
	/* Kueue's requeueState.count counts only evictions with the reason PodsReadyTimeout. */
	unsigned requeued = streq(e->reason, "PodsReadyTimeout") ? m->w->requeued : 0;

	m->pods |= means->adds == PODS;
	fputs(means->words, m->out);
	put_time(m, e->since);
	if (requeued > 0)
		fprintf(m->out, "; Kueue has requeued it %u time%s for this reason", requeued,
			requeued == 1 ? "" : "s");
	if (m->w->requeue_at > m->ctx->now) {
		fputs(", and Kueue retries", m->out);
		put_time(m, m->w->requeue_at);
	} else if (requeued > 0) {
		fputs(", and Kueue retries automatically", m->out);
	}
	if (m->w->evictions > max_of(requeued, 1u))
		fprintf(m->out, "; Kueue has evicted it %u times so far", m->w->evictions);
	return means;
}

static void evicted(struct kueue_text *m)
{
	const struct kueue_meaning *means = put_eviction(m);

	set(m, means->reason, means->advice);
	if (means->adds == QUOTE)
		put_quote(m, condition(m, SPEC_WORKLOAD_EVICTED));
}

/* --- queues --- */

static void line(struct kueue_text *m)
{
	const struct spec_kueue_queue *c = m->cluster;

	set(m, "InLine", "");
	if (!*spec_kueue_queue(m->view, m->ctx)) {
		fputs("it is in no queue", m->out);
		return;
	}
	fputs("it is in ", m->out);
	put_queue(m);
	if (c && streq(c->strategy, "StrictFIFO"))
		fputs(", which admits jobs strictly in order (StrictFIFO), and the jobs ahead of "
		      "it wait too",
		      m->out);
	else if (m->ctx->kueue.position > 1 && m->ctx->now - m->ctx->since >= SPEC_SETTLE_NS)
		/*
		 * kxfs does not know which version of Kueue runs, so the text names the versions
		 * that skip a job for this reason. See SchedulingEquivalenceHashing in Kueue's
		 * pkg/features/kube_features.go.
		 */
		fputs(", and Kueue has not tried to admit it yet. Other jobs are ahead of it, and "
		      "Kueue 0.18 and later also skips a job if another job with the same request "
		      "did not fit",
		      m->out);
	else
		fputs(", and Kueue has not tried to admit it yet", m->out);
}

static bool is_false(const struct spec_condition_view *c)
{
	return c->is_set && !c->is_true;
}

static bool is_inactive(const struct kueue_text *m)
{
	return m->queue && is_false(&m->queue->active);
}

static void stopped(struct kueue_text *m, const char *policy)
{
	set(m, "QueueStopped", WHEN_OPENED);
	fprintf(m->out, " is stopped (%s)", policy);
}

/* Print why the job's queue or its ClusterQueue admits no jobs. */
static void inactive(struct kueue_text *m)
{
	const char *queue = spec_kueue_queue(m->view, m->ctx);
	const char *cluster = spec_kueue_cluster_queue(m->ctx);
	const struct spec_kueue_queue *c = m->cluster;
	const struct spec_condition_view *e = condition(m, SPEC_WORKLOAD_EVICTED);
	const struct kueue_meaning *means = meaning_of(evicted_meanings, e->reason);

	if (spec_queue_is_stopped(m->queue->stop_policy)) {
		fprintf(m->out, "queue %s", queue);
		stopped(m, m->queue->stop_policy);
	} else if (c && spec_queue_is_stopped(c->stop_policy)) {
		fprintf(m->out, "cluster queue %s (of queue %s)", cluster, queue);
		stopped(m, c->stop_policy);
	} else if (streq(m->queue->active.reason, "ClusterQueueDoesNotExist")) {
		set(m, "NoQueue", "Create the cluster queue, or submit the job to another queue.");
		fprintf(m->out, "queue %s belongs to cluster queue %s, which does not exist", queue,
			cluster);
	} else {
		set(m, "Inadmissible", "");
		if (e->is_true && streq(means->reason, "QueueStopped"))
			set(m, means->reason, means->advice);
		put_queue(m);
		fprintf(m->out, " is inactive. Kueue: \"%s\"",
			c && is_false(&c->active) ? c->active.message : m->queue->active.message);
	}
}

/* --- the conditions --- */

/* True if W is finished. False for the reason OwnerNotFound: then the job was deleted. */
static bool is_finished(const struct spec_workload_view *w)
{
	const struct spec_condition_view *finished = &w->conditions[SPEC_WORKLOAD_FINISHED];

	return finished->is_true && !streq(finished->reason, "OwnerNotFound");
}

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
	const char *reason = spec_workload_put_out(m->w);
	const struct kueue_meaning *means = meaning_of(off_meanings, reason);

	m->stops = true;
	/* If there is no reason, a user has deactivated the Workload. */
	if (!*reason) {
		set(m, "Deactivated", WHEN_ACTIVE);
		fprintf(m->out, "its Workload %s was deactivated", m->w->meta.name);
		return;
	}
	set(m, means->reason, means->advice);
	m->pods = means->adds == PODS;
	fputs(means->words, m->out);
	if (means->adds == QUOTE)
		put_quote(m, target->is_true ? target : e);
}

/* Print why a waiting job has no quota. */
static void unreserved(struct kueue_text *m)
{
	const struct spec_condition_view *r = condition(m, SPEC_WORKLOAD_RESERVED);
	const struct kueue_meaning *means;
	const struct spec_condition_view *e = condition(m, SPEC_WORKLOAD_EVICTED);

	/* Kueue has reported nothing since it evicted the job. */
	if (e->is_true && streq(r->message, e->message)) {
		evicted(m);
		return;
	}
	if (streq(r->reason, "PendingEvaluation")) {
		line(m);
	} else if (is_inactive(m)) {
		inactive(m);
	} else {
		means = meaning_of(unreserved_meanings, r->reason);
		set(m, means->reason, means->advice);
		fputs(means->words, m->out);
		put_queue(m);
		put_quote(m, r);
	}
	if (e->is_true) {
		fputs("; ", m->out);
		(void)put_eviction(m);
	}
}

/* Print why a job that has quota is not admitted yet. */
static void unadmitted(struct kueue_text *m)
{
	const char *sep = " and waits for admission check ";

	for (size_t i = 0; i < m->w->n_checks; i++) {
		const struct spec_check_view *rejected = &m->w->checks[i];

		if (!streq(rejected->state, "Rejected"))
			continue;
		set(m, "AdmissionCheckRejected", "");
		fprintf(m->out, "it was rejected by admission check \"%s\" (%s)", rejected->name,
			rejected->message);
		return;
	}
	set(m, "AdmissionCheckPending", "");
	fputs("it has quota in ", m->out);
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

/* --- all steps together --- */

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
	const struct spec_condition_view *e = condition(m, SPEC_WORKLOAD_EVICTED);

	if (has_not_started(m->w)) {
		set(m, "FailedToStart", SUBMIT_AGAIN);
		fprintf(m->out, "Kueue admitted it, but could not start it: %s",
			condition(m, SPEC_WORKLOAD_FINISHED)->message);
		return;
	}
	if (is_finished(m->w))
		return;
	if (is_off(m->w))
		deactivated(m);
	else if (e->is_true && reserved->is_true) {
		m->stops = true;
		evicted(m);
	} else if (!reserved->is_set && is_inactive(m))
		inactive(m);
	else if (!reserved->is_set)
		line(m);
	else if (!reserved->is_true)
		unreserved(m);
	else if (!condition(m, SPEC_WORKLOAD_ADMITTED)->is_true)
		unadmitted(m);
	else if (streq(m->view->reason, SPEC_REASON_QUEUED)) {
		set(m, "Admitted", "");
		fputs("Kueue has admitted it, and it is about to start", m->out);
	}
}

/* Print why the job has no Workload, if Kueue has had time to create one. */
static void missing(struct kueue_text *m)
{
	const struct spec_view_context *ctx = m->ctx;

	if (ctx->now - ctx->since < SPEC_SETTLE_NS || !streq(m->view->reason, SPEC_REASON_QUEUED))
		return;
	if (ctx->kueue.absent) {
		set(m, "NoKueue", "Submit the job without a queue.");
		fprintf(m->out,
			"it is in Kueue queue %s, but Kueue is not installed in this cluster",
			m->view->queue);
		return;
	}
	if (!ctx->kueue.known) {
		set(m, SPEC_REASON_QUEUED,
		    "This mount can't watch Workloads, which show the reason; see .kxfs/info.");
		fprintf(m->out, "Kueue has not admitted it from queue %s", m->view->queue);
		return;
	}
	set(m, "NoWorkload", "If this lasts, Kueue may be down, or may not manage this namespace.");
	fputs("Kueue has not processed it yet", m->out);
	if (*m->view->priority)
		fprintf(m->out, ", perhaps because there is no priority class %s",
			m->view->priority);
}

struct spec_cause spec_kueue_cause(const struct spec_job *job, const struct spec_job_view *view,
				   const struct spec_view_context *ctx)
{
	struct spec_cause ret = {0};
	cleanup_free char *text = NULL;
	size_t len;
	struct kueue_text m = {
		.view = view,
		.ctx = ctx,
		.w = ctx->kueue.workload,
		.queue = ctx->queue ? ctx->queue->kueue : NULL,
		.cluster = ctx->kueue.cluster_queue ? ctx->kueue.cluster_queue->kueue : NULL,
		.reason = "",
		.advice = "",
		.out = text_stream(&text, &len),
	};

	if (m.w)
		explain(&m);
	else
		missing(&m);
	if (!*spec_kueue_queue(view, ctx) && !*m.advice)
		m.advice = "Kueue manages all jobs here, so the job needs a queue.";
	if (ctx->kueue.away && *m.reason && !is_off(m.w) && !streq(m.reason, "Admitted"))
		fputs("; the server can't reach Kueue. While Kueue is down, it admits no jobs",
		      m.out);
	if (m.pods && *job->obstacle)
		fprintf(m.out, ". The pods did not become ready: %s", job->obstacle);
	text_stream_close(m.out);
	ret.reason = m.reason;
	ret.advice = m.advice;
	/* Kueue may release the quota before the pods have ended. */
	ret.stops = !job->suspended && (m.stops || (m.w && job->state == SPEC_RUNNING &&
						    condition(&m, SPEC_WORKLOAD_EVICTED)->is_true));
	ret.text = spec_empty();
	spec_read_copy(&ret.text, text, READ_MAX_MESSAGE);
	return ret;
}
