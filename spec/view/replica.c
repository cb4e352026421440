/* SPDX-License-Identifier: MIT */
/*
 * Fills in a replica from its pods. The newest pod determines the replica's state. The replica has
 * the logs of all its pods, and also those in the last snapshot.
 */
#include "spec/view/steps.h"

#include <math.h>

#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/base/words.h"

/*
 * A sample covers the time since the previous sample, or since the start of the run. If this time
 * is longer than SAMPLE_SPAN (ns), kxfs does not know the CPU time.
 */
#define SAMPLE_SPAN INT64_C(45000000000)
/* Exit codes after SIGKILL and SIGTERM. */
#define KILLED	   137
#define TERMINATED 143
#define CPU_MAX	   (INT64_C(1) << 50) /* microseconds; more is implausible */

/* --- the replica's state --- */

/*
 * Return the number of retries before POD, or 0 if unknown. If the controller retries each replica
 * separately, count only those of POD's replica.
 */
static unsigned retry_of(const struct spec_pod_view *pod, const struct spec_job_view *job)
{
	if (!job->began)
		return pod->retry == SPEC_RETRY_UNKNOWN ? pod->failures : pod->retry;
	return pod->meta.created < job->began ? 0 : job->retries;
}

/* True if POD, whose state is STATE, has failed and another attempt follows. */
static bool is_followed(const struct spec_pod_view *pod, enum spec_state state,
			const struct spec_job_view *job)
{
	if (state == SPEC_FAILED && job->remakes &&
	    (!job->alone || pod->failures < job->max_retries))
		return true;
	if (pod->retry == SPEC_RETRY_UNKNOWN && !job->began)
		return state == SPEC_FAILED && pod->gone && job->restarts;
	return state == SPEC_FAILED && spec_pod_is_past(pod, job);
}

/*
 * True if the controller deleted POD because restarts of containers used up the retries. The main
 * container failed in an earlier run, so the replica has failed.
 */
static bool has_failed_before(const struct spec_pod_view *pod, const struct spec_job_view *job)
{
	const struct spec_container_view *c = spec_pod_main(pod);

	return job->used_up && c && c->last_exit_code > 0 && spec_pod_was_stopped(pod);
}

/*
 * C was restarted after a failure, and its pod was deleted later. True if C failed again before the
 * deletion stopped it.
 */
static bool has_failed_again(const struct spec_container_view *c)
{
	return streq(c->reason, "OOMKilled") ||
	       (c->exit_code > 0 && c->exit_code != KILLED && c->exit_code != TERMINATED);
}

static enum spec_state state_of(const struct spec_pod_view *pod, const struct spec_job_view *job,
				const struct spec_standing *standing)
{
	enum spec_state state = spec_pod_state(pod);

	if (has_failed_before(pod, job) && (standing->over || standing->ending))
		return SPEC_FAILED;
	if (spec_pod_was_stopped(pod))
		return standing->over || standing->ending ? SPEC_CANCELLED : SPEC_PENDING;
	if (!standing->over && !standing->ending && is_followed(pod, state, job))
		return SPEC_PENDING;
	return state;
}

/* --- why the replica waits or has ended --- */

/* True if C waits for something that may never happen. */
static bool waits(const struct spec_container_view *c)
{
	return c->state == SPEC_WAITING && *c->reason && !streq(c->reason, "ContainerCreating") &&
	       !streq(c->reason, "PodInitializing");
}

static bool failed(const struct spec_container_view *c)
{
	return c->state == SPEC_TERMINATED && !streq(c->reason, "Completed") && c->exit_code != 0;
}

/* Return the container that blocks POD or made it fail, or NULL. Prefer the main container. */
static const struct spec_container_view *culprit(const struct spec_pod_view *pod)
{
	const struct spec_container_view *c = spec_pod_main(pod);
	bool goes_on = streq(pod->phase, "Running") && pod->outcome == SPEC_UNKNOWN;

	if (c && (waits(c) || failed(c)))
		return c;
	for (size_t i = 0; i < pod->n_containers; i++) {
		c = &pod->containers[i];
		if (waits(c) || (failed(c) && !goes_on))
			return c;
	}
	return NULL;
}

static void explain_by(struct spec_replica *r, const struct spec_pod_view *pod,
		       const struct spec_container_view *c)
{
	cleanup_free char *text = NULL;
	char code[64] = "";

	if (spec_pod_loops(pod, c) && r->state == SPEC_PENDING) {
		int64_t wait = spec_words_backoff(c->message);
		bool waits = c->state == SPEC_WAITING;

		/* C has failed and will be restarted. */
		r->starts = c->restarts + 1;
		r->last_code = waits ? c->last_exit_code : c->exit_code;
		if (waits && wait && c->last_finished)
			r->next = c->last_finished + wait;
	}
	if (!streq(c->name, pod->main))
		spec_set(&r->blamed, c->name);
	if (c->state == SPEC_TERMINATED && !*c->message && c->exit_code >= 0)
		snprintf(code, sizeof(code), "exit code %d", c->exit_code);
	spec_set(&r->reason, c->reason);
	if (streq(c->name, pod->main)) {
		spec_set(&r->message, *code ? code : c->message);
		return;
	}
	text = text_print("%scontainer %s: %s", c->init ? "init " : "", c->name,
			  *code		? code
			  : *c->message ? c->message
					: c->reason);
	spec_set(&r->message, text);
}

static void explain_with(struct spec_replica *r, const char *reason, const char *message)
{
	spec_set(&r->reason, reason);
	spec_set(&r->message, message);
}

/* Set R's reason. Its container C was restarted after a failure, and then stopped. */
static void explain_stopped(struct spec_replica *r, const struct spec_pod_view *pod,
			    const struct spec_container_view *c)
{
	char code[64];

	if (has_failed_again(c)) {
		explain_by(r, pod, c);
		return;
	}
	snprintf(code, sizeof(code), "exit code %d", c->last_exit_code);
	explain_with(r, "Error", code);
	r->starts = c->restarts + 1;
	r->exit_code = r->last_code = c->last_exit_code;
	r->signal = 0;
}

static void explain_lost(struct spec_replica *r, const struct spec_pod_view *pod)
{
	char time[32];
	cleanup_free char *text = NULL;

	spec_time_text(pod->lost, time);
	text = text_print("its node %s has not reported since %s", pod->node, time);
	explain_with(r, SPEC_REASON_NODE_LOST, text);
}

static void explain(struct spec_replica *r, const struct spec_pod_view *pod)
{
	const struct spec_container_view *c = culprit(pod);

	if (spec_pod_was_stopped(pod) && r->state == SPEC_FAILED)
		explain_stopped(r, pod, spec_pod_main(pod));
	else if (spec_pod_was_stopped(pod) && r->state == SPEC_CANCELLED)
		explain_with(r, "Deleted", "its pod was deleted");
	else if (spec_pod_was_stopped(pod))
		explain_with(r, SPEC_REASON_RESTARTING, "");
	else if (*pod->reason && r->state != SPEC_RUNNING && r->state != SPEC_SUCCEEDED)
		explain_with(r, pod->reason, pod->message);
	else if (r->state == SPEC_UNKNOWN)
		explain_with(r, pod->phase, "the node does not report the state of the pod");
	else if (r->state == SPEC_SUCCEEDED)
		explain_with(r, "Completed", "");
	else if (c)
		explain_by(r, pod, c);
	else if (spec_pod_is_lost(pod))
		explain_lost(r, pod);
}

/* --- the replica's attempts --- */

static bool has_log(const struct spec_replica *r, const char *key)
{
	for (size_t i = 0; i < r->n_logs; i++)
		if (streq(r->logs[i].key, key))
			return true;
	return false;
}

static void add_log(struct spec_replica *r, const struct spec_pod_view *pod,
		    const struct spec_container_view *c, unsigned restart)
{
	cleanup_free char *key = spec_view_log_key(pod, c->name, restart);
	bool is_main = !c->init && streq(c->name, pod->main);

	if (!has_log(r, key))
		spec_replica_add_log(r, key, is_main ? "" : c->name);
}

/*
 * Add the logs of C's current run and of the run before. The server keeps no older logs. If kxfs
 * has captured older ones, they are in the last snapshot.
 */
static void add_logs(struct spec_replica *r, const struct spec_pod_view *pod,
		     const struct spec_container_view *c)
{
	/*
	 * A container that has never run has no log. Between two runs, the restart count is that of
	 * the last run.
	 */
	if (c->state == SPEC_WAITING && c->last_exit_code < 0)
		return;
	/* C could not be started, so it has printed nothing. */
	if (c->state == SPEC_TERMINATED && !c->started && c->restarts == 0)
		return;
	if (c->restarts > 0)
		add_log(r, pod, c, c->restarts - 1);
	add_log(r, pod, c, c->restarts);
}

static unsigned restarts_of(const struct spec_pod_view *pod)
{
	const struct spec_container_view *c = spec_pod_main(pod);

	return c ? c->restarts : 0;
}

/* Return the number of earlier attempts, including those whose pods kxfs no longer has. */
static unsigned attempt_of(struct spec_placed_pods pods, const struct spec_job_view *job,
			   const struct spec_replica *before)
{
	const struct spec_pod_view *newest = pods.v[pods.n - 1].pod;
	uint64_t n = 0;

	for (size_t i = 0; i < pods.n; i++)
		n += restarts_of(pods.v[i].pod) + UINT64_C(1);
	n = max_of(n - 1, (uint64_t)retry_of(newest, job) + restarts_of(newest));
	n = before ? max_of(n, (uint64_t)before->attempt) : n;
	return (unsigned)min_of(n, (uint64_t)INT32_MAX);
}

/* --- the replica's usage --- */

/* Add SAMPLE to the usage U of the run that began at STARTED. */
static void add_sample(struct spec_usage *u, int64_t started, const struct spec_sample *sample)
{
	int64_t span = sample->at - (u->last ? u->last : started);

	if (u->cpu_us >= 0 && sample->cpu >= 0 && span <= SAMPLE_SPAN)
		u->cpu_us += llround((double)sample->cpu * ((double)span / 1e9));
	else
		u->cpu_us = -1;
	if (u->cpu_us > CPU_MAX)
		u->cpu_us = -1;
	u->cpu_now = sample->cpu < 0 ? -1 : (sample->cpu + 500) / 1000;
	u->memory_now = sample->memory;
	u->memory_peak = max_of(u->memory_peak, sample->memory);
	u->samples++;
	u->first = u->first ? u->first : sample->at;
	u->last = sample->at;
}

/*
 * Set R's usage. C is the main container of POD, R's newest pod. BEFORE is R in the last snapshot.
 * Between two runs, R keeps the usage of the last run.
 */
static void fill_usage(struct spec_replica *r, const struct spec_pod_view *pod,
		       const struct spec_container_view *c, const struct spec_replica *before)
{
	struct spec_usage u = {.source = SPEC_USAGE_METRICS,
			       .cpu_now = -1,
			       .memory_now = -1,
			       .memory_peak = -1};

	if (before && before->usage && streq(before->pod, r->pod) &&
	    (!r->started || r->started == before->started))
		u = *before->usage;
	if (r->started && pod->sample.at > max_of(r->started, u.last))
		add_sample(&u, r->started, &pod->sample);
	if (!u.samples)
		return;
	if (!c || c->state != SPEC_STARTED)
		u.cpu_now = u.memory_now = 0;
	spec_replica_set_usage(r, &u);
}

/* --- all steps together --- */

/*
 * True if the replica's state will not change after STATE. The server may report the end of the job
 * before the ends of its pods. So while the job is in the cluster, only a final state can be the
 * last.
 */
static bool is_end(enum spec_state state, const struct spec_job_view *job,
		   const struct spec_standing *standing)
{
	return (standing->over && (spec_state_is_final(state) || standing->left)) ||
	       (state == SPEC_SUCCEEDED && !job->acts_on_success) ||
	       (state == SPEC_FAILED && !job->restarts);
}

static int64_t first_of(int64_t a, int64_t b, int64_t c)
{
	return a ? a : b ? b : c;
}

/* True if BEFORE shows that the replica had a pod, or that it ended without one. */
static bool was_reported(const struct spec_replica *before)
{
	return before && (before->n_logs > 0 || *before->pod || before->finished);
}

/*
 * Fill R, which has no pod. If R had ended in the last snapshot, copy its end. Otherwise, set no
 * end while the server may still report a pod of R, because R's output is incomplete until then.
 */
static void fill_without(struct spec_replica *r, const struct spec_standing *standing,
			 const struct spec_replica *before)
{
	bool known = !standing->pods_late || was_reported(before);
	int64_t ended = standing->over && known ? standing->ended : 0;

	if (before)
		r->attempt = before->attempt;
	if (before && (before->state == SPEC_SUCCEEDED ||
		       (standing->over && spec_state_is_final(before->state)))) {
		r->state = before->state;
		r->starts = before->starts;
		r->last_code = before->last_code;
		r->exit_code = before->exit_code;
		r->signal = before->signal;
		r->started = before->started;
		r->finished = first_of(before->finished, ended, 0);
		spec_set(&r->pod, before->pod);
		spec_set(&r->node, before->node);
		spec_replica_set_usage(r, before->usage);
		explain_with(r, before->reason, before->message);
		return;
	}
	r->state = SPEC_PENDING;
	if (standing->over)
		r->state = before || standing->cancelled ? SPEC_CANCELLED : SPEC_UNKNOWN;
	r->finished = ended;
}

static void fill_from(struct spec_replica *r, struct spec_placed_pods pods,
		      const struct spec_job_view *job, const struct spec_standing *standing,
		      const struct spec_replica *before)
{
	const struct spec_pod_view *pod = pods.v[pods.n - 1].pod;
	const struct spec_container_view *c = spec_pod_main(pod);

	r->state = state_of(pod, job, standing);
	r->attempt = attempt_of(pods, job, before);
	if (c) {
		r->exit_code = c->state == SPEC_WAITING ? c->last_exit_code : c->exit_code;
		r->signal = c->signal;
		r->started = c->started;
	}
	if (!spec_state_is_final(r->state))
		r->deadline = pod->deadline;
	if (is_end(r->state, job, standing))
		r->finished =
			first_of(c ? c->finished : 0, pod->meta.deleted,
				 before && before->finished ? before->finished : standing->ended);
	spec_set(&r->pod, pod->meta.name);
	spec_set(&r->node, pod->node);
	fill_usage(r, pod, c, before);
	explain(r, pod);
}

/* True if POD's program has not run. False if it has run or failed to start. */
static bool is_unused(const struct spec_pod_view *pod)
{
	const struct spec_container_view *c = spec_pod_main(pod);

	return spec_pod_end(pod) < 0 && (!c || (!c->started && c->last_exit_code < 0));
}

/*
 * True if the newest pod never ran because the replica had already ended in the previous attempt.
 * Volcano creates the pods of a further attempt before it notices that no attempt is left
 * (pkg/controllers/job/state/restarting.go), and then kills them.
 */
static bool has_ended_before(struct spec_placed_pods pods, const struct spec_standing *standing,
			     const struct spec_replica *before)
{
	if (!standing->over || standing->cancelled || pods.n == 0 ||
	    !is_unused(pods.v[pods.n - 1].pod))
		return false;
	return pods.n > 1 ? spec_pod_end(pods.v[pods.n - 2].pod) >= 0
			  : before && before->state == SPEC_FAILED;
}

void spec_replica_fill(struct spec_replica *r, struct spec_placed_pods pods,
		       const struct spec_job_view *job, const struct spec_standing *standing,
		       const struct spec_replica *before)
{
	bool unused = has_ended_before(pods, standing, before);

	for (size_t i = 0; before && i < before->n_logs; i++)
		spec_replica_copy_log(r, &before->logs[i]);
	for (size_t i = 0; i < pods.n; i++)
		for (size_t k = 0; k < pods.v[i].pod->n_containers; k++)
			add_logs(r, pods.v[i].pod, &pods.v[i].pod->containers[k]);
	pods.n -= unused;
	if (pods.n > 0)
		fill_from(r, pods, job, standing, before);
	else
		fill_without(r, standing, before);
	if (unused && pods.n > 0)
		r->attempt = attempt_of(pods, job, NULL);
}
