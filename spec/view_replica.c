/* SPDX-License-Identifier: MIT */
/*
 * A replica as its pods show it. The newest pod says how it is now; all of them, and what was known
 * before, say what it has printed.
 */
#include <errno.h>

#include "spec/view_impl.h"

/* --- its state ------------------------------------------------------------------------------- */

/* What the pod itself says. */
static enum spec_state pod_state(const struct spec_pod_view *pod)
{
	static const struct {
		const char *phase;
		enum spec_state state;
	} states[] = {
		{"", SPEC_PENDING},	   {"Pending", SPEC_PENDING},
		{"Running", SPEC_RUNNING}, {"Succeeded", SPEC_SUCCEEDED},
		{"Failed", SPEC_FAILED},
	};
	const struct spec_container_view *c = spec_pod_main(pod);

	for (size_t i = 0; i < array_size(states); i++) {
		if (!streq(pod->phase, states[i].phase))
			continue;
		/* Between two runs of its container, or before the first. */
		if (states[i].state == SPEC_RUNNING && c && c->state == SPEC_WAITING)
			return SPEC_PENDING;
		return states[i].state;
	}
	return SPEC_UNKNOWN;
}

/* Has it ended because somebody deleted it, and not by itself before? */
static bool was_stopped(const struct spec_pod_view *pod, enum spec_state state)
{
	const struct spec_container_view *c = spec_pod_main(pod);

	if (!spec_state_is_final(state))
		return pod->gone;
	return pod->meta.deleted && (!c || !c->finished || c->finished >= pod->meta.deleted);
}

/* After how many retries of the job POD was made; 0 also if that is not known. */
static unsigned retry_of(const struct spec_pod_view *pod, const struct spec_job_view *job)
{
	if (!job->began)
		return pod->retry == SPEC_RETRY_UNKNOWN ? 0 : pod->retry;
	return pod->meta.created < job->began ? 0 : job->retries;
}

int spec_pod_end(const struct spec_pod_view *pod)
{
	enum spec_state state = pod_state(pod);

	return spec_state_is_final(state) && !was_stopped(pod, state) ? (int)state : -1;
}

/* Is this the pod of an attempt that is over, while the next one is on its way? */
static bool is_followed(const struct spec_pod_view *pod, enum spec_state state,
			const struct spec_job_view *job)
{
	if (pod->retry == SPEC_RETRY_UNKNOWN && !job->began)
		return state == SPEC_FAILED && pod->gone && job->restarts;
	return state == SPEC_FAILED && retry_of(pod, job) < job->retries;
}

static enum spec_state state_of(const struct spec_pod_view *pod, const struct spec_job_view *job,
				const struct spec_standing *standing)
{
	enum spec_state state = pod_state(pod);

	if (was_stopped(pod, state))
		return standing->over || standing->ending ? SPEC_CANCELLED : SPEC_PENDING;
	if (!standing->over && !standing->ending && is_followed(pod, state, job))
		return SPEC_PENDING;
	return state;
}

/* --- why ------------------------------------------------------------------------------------- */

/* Does a container wait for something that may not come by itself? */
static bool waits(const struct spec_container_view *c)
{
	return c->state == SPEC_WAITING && *c->reason && !streq(c->reason, "ContainerCreating") &&
	       !streq(c->reason, "PodInitializing");
}

static bool failed(const struct spec_container_view *c)
{
	return c->state == SPEC_TERMINATED && !streq(c->reason, "Completed") && c->exit_code != 0;
}

/* The container that keeps POD from going on, or that has ended it: first its main one. */
static const struct spec_container_view *culprit(const struct spec_pod_view *pod)
{
	const struct spec_container_view *c = spec_pod_main(pod);

	if (c && (waits(c) || failed(c)))
		return c;
	for (size_t i = 0; i < pod->n_containers; i++) {
		c = &pod->containers[i];
		if (waits(c) || (failed(c) && !streq(pod->phase, "Running")))
			return c;
	}
	return NULL;
}

static int say_container(struct spec_replica *r, const struct spec_pod_view *pod,
			 const struct spec_container_view *c)
{
	char *text cleanup_free = NULL;
	char code[64] = "";

	if (c->state == SPEC_TERMINATED && !*c->message && c->exit_code >= 0)
		snprintf(code, sizeof(code), "exit code %d", c->exit_code);
	if (spec_set(&r->reason, c->reason) < 0)
		return -ENOMEM;
	if (streq(c->name, pod->main))
		return spec_set(&r->message, *code ? code : c->message);
	if (asprintf(&text, "%scontainer %s: %s", c->init ? "init " : "", c->name,
		     *code	   ? code
		     : *c->message ? c->message
				   : c->reason) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return spec_set(&r->message, text);
}

static int say(struct spec_replica *r, const char *reason, const char *message)
{
	return spec_set(&r->reason, reason) < 0 || spec_set(&r->message, message) < 0 ? -ENOMEM : 0;
}

static int explain(struct spec_replica *r, const struct spec_pod_view *pod)
{
	const struct spec_container_view *c = culprit(pod);

	if (was_stopped(pod, pod_state(pod)))
		return r->state == SPEC_CANCELLED ? say(r, "Deleted", "its pod was deleted")
						  : say(r, "Restarting", "");
	if (*pod->reason && r->state != SPEC_RUNNING && r->state != SPEC_SUCCEEDED)
		return say(r, pod->reason, pod->message);
	if (r->state == SPEC_UNKNOWN)
		return say(r, pod->phase, "the node does not tell how its pod is");
	if (r->state == SPEC_SUCCEEDED)
		return say(r, "Completed", "");
	return c ? say_container(r, pod, c) : 0;
}

/* --- its runs -------------------------------------------------------------------------------- */

static bool has_log(const struct spec_replica *r, const char *key)
{
	for (size_t i = 0; i < r->n_logs; i++)
		if (streq(r->logs[i].key, key))
			return true;
	return false;
}

static int add_log(struct spec_replica *r, const struct spec_pod_view *pod,
		   const struct spec_container_view *c, unsigned restart)
{
	char *key cleanup_free = spec_view_log_key(pod, c->name, restart);
	bool is_main = !c->init && streq(c->name, pod->main);

	if (!key)
		return -ENOMEM;
	return has_log(r, key) ? 0 : spec_replica_add_log(r, key, is_main ? "" : c->name);
}

/*
 * The logs of C: of its present run, if that has begun, and of the one before. Nothing earlier can be
 * had from the server; what was captured of it is known from before.
 */
static int add_logs(struct spec_replica *r, const struct spec_pod_view *pod,
		    const struct spec_container_view *c)
{
	unsigned last = c->restarts;
	int err = 0;

	/* While it waits, the count is that of the run that has ended. */
	if (c->state == SPEC_WAITING && c->last_exit_code < 0)
		return 0;
	/* One that could not be started has printed nothing. */
	if (c->state == SPEC_TERMINATED && !c->started && last == 0)
		return 0;
	if (last > 0)
		err = add_log(r, pod, c, last - 1);
	return err ? err : add_log(r, pod, c, last);
}

static int fill_logs(struct spec_replica *r, struct spec_runs runs,
		     const struct spec_replica *before)
{
	int err = 0;

	for (size_t i = 0; before && !err && i < before->n_logs; i++)
		err = spec_replica_copy_log(r, &before->logs[i]);
	for (size_t i = 0; i < runs.n; i++)
		for (size_t k = 0; !err && k < runs.v[i]->n_containers; k++)
			err = add_logs(r, runs.v[i], &runs.v[i]->containers[k]);
	return err;
}

static unsigned restarts_of(const struct spec_pod_view *pod)
{
	const struct spec_container_view *c = spec_pod_main(pod);

	return c ? c->restarts : 0;
}

/* How many attempts there were before the present one, of which some may not be known any more. */
static unsigned attempt_of(struct spec_runs runs, const struct spec_job_view *job,
			   const struct spec_replica *before)
{
	const struct spec_pod_view *newest = runs.v[runs.n - 1];
	uint64_t n = 0;

	for (size_t i = 0; i < runs.n; i++)
		n += restarts_of(runs.v[i]) + UINT64_C(1);
	n = max_of(n - 1, (uint64_t)retry_of(newest, job) + restarts_of(newest));
	n = before ? max_of(n, (uint64_t)before->attempt) : n;
	return (unsigned)min_of(n, (uint64_t)INT32_MAX);
}

/* --- the whole ------------------------------------------------------------------------------- */

/*
 * Does nothing follow after this state? The job's end may be told before that of its pods: then what they
 * have printed is still to come.
 */
static bool is_end(enum spec_state state, const struct spec_job_view *job,
		   const struct spec_standing *standing)
{
	return (standing->over && (spec_state_is_final(state) || standing->left)) ||
	       state == SPEC_SUCCEEDED || (state == SPEC_FAILED && !job->restarts);
}

static int64_t first_of(int64_t a, int64_t b, int64_t c)
{
	return a ? a : b ? b : c;
}

/* R has no pod: as it was, if that was its end. */
static int fill_without(struct spec_replica *r, const struct spec_standing *standing,
			const struct spec_replica *before)
{
	bool ended = before && (before->state == SPEC_SUCCEEDED ||
				(standing->over && spec_state_is_final(before->state)));

	if (before)
		r->attempt = before->attempt;
	if (!ended) {
		r->state = SPEC_PENDING;
		if (standing->over)
			r->state = before || standing->cancelled ? SPEC_CANCELLED : SPEC_UNKNOWN;
		r->finished = standing->over ? standing->ended : 0;
		return 0;
	}
	r->state = before->state;
	r->exit_code = before->exit_code;
	r->signal = before->signal;
	r->started = before->started;
	r->finished = first_of(before->finished, standing->over ? standing->ended : 0, 0);
	if (spec_set(&r->pod, before->pod) < 0 || spec_set(&r->node, before->node) < 0)
		return -ENOMEM;
	return say(r, before->reason, before->message);
}

static int fill_from(struct spec_replica *r, struct spec_runs runs, const struct spec_job_view *job,
		     const struct spec_standing *standing, const struct spec_replica *before)
{
	const struct spec_pod_view *pod = runs.v[runs.n - 1];
	const struct spec_container_view *c = spec_pod_main(pod);

	r->state = state_of(pod, job, standing);
	r->attempt = attempt_of(runs, job, before);
	if (c) {
		r->exit_code = c->state == SPEC_WAITING ? c->last_exit_code : c->exit_code;
		r->signal = c->signal;
		r->started = c->started;
	}
	if (is_end(r->state, job, standing))
		r->finished =
			first_of(c ? c->finished : 0, pod->meta.deleted,
				 before && before->finished ? before->finished : standing->ended);
	if (spec_set(&r->pod, pod->meta.name) < 0 || spec_set(&r->node, pod->node) < 0)
		return -ENOMEM;
	return explain(r, pod);
}

int spec_replica_fill(struct spec_replica *r, struct spec_runs runs,
		      const struct spec_job_view *job, const struct spec_standing *standing,
		      const struct spec_replica *before)
{
	int err = fill_logs(r, runs, before);

	if (err)
		return err;
	return runs.n > 0 ? fill_from(r, runs, job, standing, before)
			  : fill_without(r, standing, before);
}
