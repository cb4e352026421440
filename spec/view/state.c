/* SPDX-License-Identifier: MIT */
/*
 * Determines the state of a job and its reason. The phase that the controller has written takes
 * precedence. If the phase is missing or late, the pods decide.
 */
#include "spec/view/steps.h"

#include "spec/base/mem.h"

/* --- before the replicas are known --- */

static const struct spec_phase *phase_of(const struct spec_job_view *view,
					 const struct spec_view_context *ctx)
{
	/*
	 * Kueue itself suspends the jobs that wait in its queues. So if a job has a Workload, a
	 * user has suspended the job only if the Workload is deactivated.
	 */
	bool asked = ctx->kueue.workload ? spec_kueue_is_off(ctx) : view->asked;

	for (const struct spec_phase *p = view->rows; spec_phase_is(view, p); p++)
		if (!p->asked || asked)
			return p;
	return NULL;
}

/* How many replicas ended, and how. Only the newest pod of each replica counts. */
struct ends {
	size_t succeeded, failed;
	bool gone;    /* a failed pod was deleted */
	int64_t time; /* time of the last end, or 0 */
};

/* Count the ends in the current attempt. Return true if all replicas ended by themselves. */
static bool count_ends(struct spec_placed_pods pods, const struct spec_job_view *v,
		       struct ends *ret)
{
	*ret = (struct ends){0};
	for (size_t i = 0; i < pods.n; i++) {
		const struct spec_pod_view *pod = pods.v[i].pod;
		const struct spec_container_view *c = spec_pod_main(pod);
		int end = spec_pod_end(pod);

		if (spec_pods_is_followed(pods, i))
			continue;
		if ((end != SPEC_SUCCEEDED && end != SPEC_FAILED) || !spec_pod_is_settled(pod) ||
		    spec_pod_is_past(pod, v))
			return false;
		ret->succeeded += end == SPEC_SUCCEEDED;
		ret->failed += end == SPEC_FAILED;
		ret->gone |= end == SPEC_FAILED && pod->gone;
		ret->time = max_of(ret->time, c ? c->finished : 0);
	}
	return pods.n > 0 && ret->succeeded + ret->failed == v->n_replicas;
}

/*
 * True if the controller may restart the job after ENDS. If the object does not show when the
 * attempt began, a deleted failed pod means that a restart has begun. While the cache is stale,
 * don't trust the object's count of retries: after a restore of etcd, the object may be older than
 * the pods.
 */
static bool goes_on(const struct spec_job_view *v, const struct ends *ends,
		    const struct spec_view_context *ctx)
{
	bool unsure = ctx->stale_since && !(ctx->before && ctx->before->finished);

	return ends->failed > 0 && v->restarts && ends->succeeded < v->minimum &&
	       ((ends->gone && !v->began) || v->max_retries == 0 || v->retries < v->max_retries ||
		unsure);
}

struct spec_standing spec_standing_of(const struct spec_job_view *view,
				      struct spec_placed_pods pods,
				      const struct spec_view_context *ctx)
{
	const struct spec_job *before = ctx->before;
	struct spec_standing s = {
		.phase = phase_of(view, ctx),
		.left = ctx->history,
		.pods_late = ctx->pods_late,
		.unseen = ctx->unseen & SPEC_UNSEEN_PARTS,
	};
	bool final = s.phase && spec_state_is_final(s.phase->state);
	bool suspended = s.phase && s.phase->suspended;
	struct ends ends;

	s.over = s.left || (final && !suspended);
	s.ending = s.phase && s.phase->ending;
	s.cancelled = s.left ? !final || suspended : final && s.phase->state == SPEC_CANCELLED;
	if (before && before->finished)
		s.ended = before->finished;
	else
		s.ended = final && view->changed ? view->changed : ctx->now;
	/*
	 * For a controller that reports the end late, the job is over when all pods have ended and
	 * the controller will not restart the job.
	 */
	if (ctx->reader->pods_decide != SPEC_PODS_DECIDE_END || !s.phase ||
	    s.phase->state != SPEC_RUNNING || view->hidden || !count_ends(pods, view, &ends) ||
	    goes_on(view, &ends, ctx))
		return s;
	s.failed = ends.failed > 0;
	s.over = true;
	s.cancelled = false;
	if (ends.time && !(before && before->finished))
		s.ended = ends.time;
	return s;
}

/* --- when the replicas are known --- */

static bool all(const struct spec_job *job, enum spec_state state)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (job->replicas[i].state != state)
			return false;
	return job->n_replicas > 0;
}

/* True if a replica has run, or has failed to start. */
static bool has_begun(const struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];

		if (r->n_logs > 0 || (r->state != SPEC_PENDING && r->state != SPEC_CANCELLED))
			return true;
	}
	return job->started != 0;
}

/* True if a container fails repeatedly and is restarted in its pod. */
static bool any_loops(const struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (job->replicas[i].starts > 0)
			return true;
	return false;
}

/*
 * True if the job has succeeded because all replicas have. The controller reports this slightly
 * later. False if the controller may do something else first, or has begun to create the pods
 * again.
 */
static bool have_succeeded(const struct spec_job *job, const struct spec_job_view *view,
			   struct spec_placed_pods pods, const struct spec_standing *s,
			   const struct spec_view_context *ctx)
{
	if (!all(job, SPEC_SUCCEEDED) || view->hidden || view->acts_on_success || s->ending ||
	    (s->phase && s->phase->between) ||
	    (ctx->reader->pods_decide == SPEC_PODS_DECIDE_NOTHING && !s->left))
		return false;
	for (size_t i = 0; i < pods.n; i++) {
		const struct spec_pod_view *pod = pods.v[i].pod;

		if (!spec_pods_is_followed(pods, i) &&
		    (spec_pod_is_past(pod, view) || (!s->left && !spec_pod_is_settled(pod))))
			return false;
	}
	return true;
}

static enum spec_state state_of(const struct spec_job *job, const struct spec_job_view *view,
				struct spec_placed_pods pods, const struct spec_standing *s,
				const struct spec_view_context *ctx)
{
	if (s->phase && spec_state_is_final(s->phase->state))
		return s->phase->state;
	if (s->failed)
		return SPEC_FAILED;
	if (have_succeeded(job, view, pods, s, ctx))
		return SPEC_SUCCEEDED;
	if (s->left)
		return SPEC_CANCELLED;
	if (s->phase && spec_job_any(job, SPEC_RUNNING) && !view->firm)
		return SPEC_RUNNING;
	if (s->phase && s->phase->state == SPEC_RUNNING && s->ending && !view->hidden &&
	    !has_begun(job))
		return SPEC_PENDING;
	if (s->phase && (all(job, SPEC_PENDING) || (view->from_pods && !job->n_replicas)) &&
	    ((s->phase->by_pods && !view->firm && !s->unseen) || any_loops(job)))
		return SPEC_PENDING;
	if (s->phase && s->phase->between && !spec_job_any(job, SPEC_FAILED))
		return SPEC_PENDING;
	if (s->phase)
		return s->phase->state;
	if (*view->phase)
		return SPEC_UNKNOWN;
	if (spec_job_any(job, SPEC_RUNNING) || all(job, SPEC_SUCCEEDED))
		return SPEC_RUNNING;
	return pods.n > 0 ? SPEC_PENDING : SPEC_SUBMITTED;
}

static void explain(struct spec_judgement *v, const char *reason, const char *message)
{
	v->reason = reason;
	v->message = text_copy(message);
}

/*
 * Return the replica that gives the job its reason, or NULL: the first that failed, else the first
 * that waits for a known reason, else the first that waits and has a message.
 */
static const struct spec_replica *spokesman(const struct spec_job *job, enum spec_state state)
{
	const struct spec_replica *r = spec_job_first_failed(job, NULL);

	if (!r && state != SPEC_FAILED)
		r = spec_job_first_waiting(job, NULL);
	for (size_t i = 0; !r && state != SPEC_FAILED && i < job->n_replicas; i++)
		if (job->replicas[i].state == SPEC_PENDING && *job->replicas[i].message)
			r = &job->replicas[i];
	return r;
}

/*
 * If the controller gave up the job because it could not create the pods, set the reason from
 * events or the last snapshot. Return false if there is no such reason.
 */
static bool explain_given_up(struct spec_judgement *v, const struct spec_job *job,
			     const struct spec_job_view *view, struct spec_placed_pods pods,
			     const struct spec_view_context *ctx)
{
	const struct spec_job *before = ctx->before;
	struct spec_cause cause = spec_cause_given_up(job, view, pods, ctx);

	if (before && before->given_up)
		explain(v, before->reason, before->message);
	else if (*cause.reason && !(before && before->started))
		explain(v, cause.reason, cause.text);
	spec_unset(&cause.text);
	v->given_up = v->message != NULL;
	return v->given_up;
}

struct spec_judgement spec_judge(const struct spec_job *job, const struct spec_job_view *view,
				 struct spec_placed_pods pods, const struct spec_standing *standing,
				 const struct spec_view_context *ctx)
{
	const struct spec_phase *phase = standing->phase;
	const struct spec_job *before = ctx->before;
	/*
	 * Keep a published final state while the phase, such as Terminating, is not final. If kxfs
	 * has published a removed job as CANCELLED, keep this state even if a final phase arrives
	 * later. A suspended job has not ended, unless it is being removed.
	 */
	bool settled = (ctx->history || standing->ending) && before &&
		       spec_state_is_final(before->state) &&
		       (!before->suspended || ctx->history || view->meta.deleted) &&
		       ((before->history && before->state == SPEC_CANCELLED) ||
			!(phase && spec_state_is_final(phase->state)));
	struct spec_judgement v = {.state = settled ? before->state
						    : state_of(job, view, pods, standing, ctx)};
	const struct spec_replica *r = spokesman(job, v.state);
	bool removed = standing->left && v.state == SPEC_CANCELLED &&
		       !(phase && phase->state == SPEC_CANCELLED && !phase->suspended);

	v.suspended = phase && phase->suspended && !ctx->history;
	if (v.state == SPEC_FAILED && phase && phase->gives_up &&
	    explain_given_up(&v, job, view, pods, ctx))
		return v;
	/* The object of a removed job explains why it waited, not why it ended. */
	if (v.suspended && spec_kueue_is_off(ctx))
		explain(&v, "Deactivated", "");
	else if (v.suspended)
		explain(&v, "Suspended", view->message);
	else if ((*view->reason || *view->message) && !removed && !(view->vague && r))
		explain(&v, view->reason, view->message);
	else if (v.state == SPEC_SUCCEEDED)
		explain(&v, "Completed", "");
	else if (v.state == SPEC_CANCELLED)
		explain(&v, "Deleted", "it was removed from the cluster");
	else if (v.state == SPEC_UNKNOWN)
		explain(&v, "UnknownPhase", "this version of kxfs does not know the phase");
	else if (v.state == SPEC_FAILED && (!r || streq(view->phase, "Terminated")))
		explain(&v, view->phase, "");
	else if (!r)
		explain(&v, "", "");
	else
		v = (struct spec_judgement){
			.state = v.state,
			.suspended = v.suspended,
			.reason = r->reason,
			.message =
				text_print("%s%s%s", r->name, *r->message ? ": " : "", r->message),
		};
	return v;
}
