/* SPDX-License-Identifier: MIT */
/*
 * What a job's object and its replicas say together: its state, why, and since when. The controller's
 * word on the job comes first; where it is missing or behind, the pods decide.
 */
#include <errno.h>

#include "spec/control.h"
#include "spec/view_impl.h"

/* --- the state of the job ---------------------------------------------------------------------- */

static const struct spec_phase *phase_of(const struct spec_making *s)
{
	for (const struct spec_phase *p = s->ctx->kind->reader->phases; p->name; p++)
		if (streq(p->name, s->view->phase) && (!p->asked || s->view->asked))
			return p;
	return NULL;
}

static bool any(const struct spec_job *job, enum spec_state state)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (job->replicas[i].state == state)
			return true;
	return false;
}

static bool all(const struct spec_job *job, enum spec_state state)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (job->replicas[i].state != state)
			return false;
	return job->n_replicas > 0;
}

/* What the newest pods of all replicas have come to. */
struct ends {
	size_t succeeded, failed;
	bool gone;    /* a pod that failed is no longer in the cluster */
	int64_t time; /* of the last; 0: not known */
};

/* False: not all have ended by themselves. */
static bool count_ends(const struct spec_making *s, struct ends *ret)
{
	*ret = (struct ends){0};
	for (size_t i = 0; i < s->n; i++) {
		const struct spec_pod_view *pod = s->pods[i];
		const struct spec_container_view *c = spec_pod_main(pod);
		int end = spec_pod_end(pod);

		if (i + 1 < s->n && s->slots[i + 1] == s->slots[i])
			continue; /* an earlier attempt */
		if (end != SPEC_SUCCEEDED && end != SPEC_FAILED)
			return false;
		ret->succeeded += end == SPEC_SUCCEEDED;
		ret->failed += end == SPEC_FAILED;
		ret->gone |= end == SPEC_FAILED && pod->gone;
		ret->time = max_of(ret->time, c ? c->finished : 0);
	}
	return s->n > 0 && !s->view->hidden && ret->succeeded + ret->failed == s->job->n_replicas;
}

/* Will its controller start the job again, after such ENDS? */
static bool goes_on(const struct spec_job_view *v, const struct ends *ends)
{
	return ends->failed > 0 && v->restarts && ends->succeeded < v->minimum &&
	       (ends->gone || v->max_retries == 0 || v->retries < v->max_retries);
}

/* For kinds whose controller is late: is the job over, since all its pods are? */
static void let_pods_decide(struct spec_making *s)
{
	struct ends ends;

	if (!s->ctx->kind->reader->pods_decide || !s->phase || s->phase->state != SPEC_RUNNING ||
	    !count_ends(s, &ends) || goes_on(s->view, &ends))
		return;
	s->failed = ends.failed > 0;
	s->standing.over = true;
	s->standing.cancelled = false;
	if (ends.time && (!s->ctx->before || !s->ctx->before->finished))
		s->standing.ended = ends.time;
}

void spec_making_stand(struct spec_making *s)
{
	const struct spec_job *before = s->ctx->before;
	bool final;
	bool suspended;

	s->phase = phase_of(s);
	final = s->phase && spec_state_is_final(s->phase->state);
	suspended = s->phase && s->phase->suspended;
	s->standing.left = s->ctx->history;
	s->standing.over = s->ctx->history || (final && !suspended);
	s->standing.ending = s->phase && s->phase->ending;
	s->standing.cancelled =
		s->ctx->history ? !final || suspended : final && s->phase->state == SPEC_CANCELLED;
	if (before && before->finished)
		s->standing.ended = before->finished;
	else
		s->standing.ended = final && s->view->changed ? s->view->changed : s->ctx->now;
	let_pods_decide(s);
}

static enum spec_state job_state(const struct spec_making *s)
{
	bool succeeded = all(s->job, SPEC_SUCCEEDED) && !s->view->hidden;

	if (s->phase && spec_state_is_final(s->phase->state))
		return s->phase->state;
	if (s->failed)
		return SPEC_FAILED;
	if (succeeded && !s->standing.ending)
		return SPEC_SUCCEEDED;
	if (s->ctx->history)
		return SPEC_CANCELLED;
	if (s->phase && s->phase->by_pods && all(s->job, SPEC_PENDING))
		return SPEC_PENDING;
	if (s->phase)
		return s->phase->state;
	if (*s->view->phase)
		return SPEC_UNKNOWN;
	if (any(s->job, SPEC_RUNNING))
		return SPEC_RUNNING;
	return s->n > 0 ? SPEC_PENDING : SPEC_SUBMITTED;
}

/* --- why --------------------------------------------------------------------------------------- */

/* The replica that tells why the job is as it is; NULL: none does. */
static const struct spec_replica *spokesman(const struct spec_job *job)
{
	const struct spec_replica *ret = NULL;

	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];

		if (job->state == SPEC_FAILED) {
			/* The first that failed. */
			if (r->state == SPEC_FAILED &&
			    (!ret || (r->finished && r->finished < ret->finished)))
				ret = r;
		} else if (r->state == SPEC_PENDING && *r->message && !ret) {
			ret = r;
		}
	}
	return ret;
}

static int say(struct spec_job *job, const char *reason, const char *message)
{
	return spec_set(&job->reason, reason) < 0 || spec_set(&job->message, message) < 0 ? -ENOMEM
											  : 0;
}

static int say_replica(struct spec_job *job, const struct spec_replica *r)
{
	char *text cleanup_free = NULL;

	if (asprintf(&text, "%s%s%s", r->name, *r->message ? ": " : "", r->message) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return say(job, r->reason, text);
}

/* Has it left before it had ended? */
static bool was_removed(const struct spec_making *s)
{
	return s->ctx->history && s->job->state == SPEC_CANCELLED &&
	       !(s->phase && spec_state_is_final(s->phase->state));
}

static int explain(struct spec_making *s)
{
	struct spec_job *job = s->job;
	const struct spec_replica *r = spokesman(job);

	/* Of one that was removed it says what it was waiting for. */
	if ((*s->view->reason || *s->view->message) && !was_removed(s))
		return say(job, s->view->reason, s->view->message);
	switch (job->state) {
	case SPEC_SUCCEEDED:
		return say(job, "Completed", "");
	case SPEC_CANCELLED:
		return job->suspended ? say(job, "Suspended", "")
				      : say(job, "Deleted", "it was removed from the cluster");
	case SPEC_UNKNOWN:
		return say(job, "UnknownPhase", "this version of kxfs does not know the phase");
	case SPEC_FAILED:
		if (r && !streq(job->phase, "Terminated"))
			return say_replica(job, r);
		return say(job, job->phase, "");
	default:
		return r ? say_replica(job, r) : 0;
	}
}

/* --- times --------------------------------------------------------------------------------------- */

static int64_t earliest(int64_t a, int64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static int64_t started(const struct spec_making *s)
{
	int64_t ret = s->ctx->before ? s->ctx->before->started : 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct spec_container_view *c = spec_pod_main(s->pods[i]);

		ret = earliest(ret, c ? c->started : 0);
	}
	return ret;
}

static int64_t finished(const struct spec_making *s)
{
	const struct spec_job *before = s->ctx->before;
	int64_t ret = 0;

	if (!spec_state_is_final(s->job->state) || s->job->suspended)
		return 0;
	if (before && before->state == s->job->state && before->finished)
		return before->finished;
	if (s->standing.over)
		return s->standing.ended;
	for (size_t i = 0; i < s->job->n_replicas; i++)
		ret = max_of(ret, s->job->replicas[i].finished);
	return ret ? ret : s->ctx->now;
}

static bool same_replica(const struct spec_replica *a, const struct spec_replica *b)
{
	return a->state == b->state && a->exit_code == b->exit_code && a->attempt == b->attempt &&
	       streq(a->reason, b->reason) && streq(a->message, b->message) &&
	       streq(a->pod, b->pod);
}

static bool same(const struct spec_job *a, const struct spec_job *b)
{
	if (a->state != b->state || a->n_replicas != b->n_replicas || a->history != b->history ||
	    !streq(a->reason, b->reason) || !streq(a->message, b->message))
		return false;
	for (size_t i = 0; i < a->n_replicas; i++)
		if (!same_replica(&a->replicas[i], &b->replicas[i]))
			return false;
	return true;
}

/* Of a job that is seen for the first time: as the objects say. */
static int64_t changed(const struct spec_making *s)
{
	int64_t ret = max_of(s->job->created, s->view->changed);

	if (s->ctx->before)
		return same(s->job, s->ctx->before) ? s->ctx->before->changed : s->ctx->now;
	for (size_t i = 0; i < s->n; i++) {
		const struct spec_container_view *c = spec_pod_main(s->pods[i]);

		ret = max_of(ret, s->pods[i]->meta.created);
		ret = max_of(ret, c ? c->started : 0);
		ret = max_of(ret, c ? c->finished : 0);
	}
	return ret ? ret : s->ctx->now;
}

int spec_making_conclude(struct spec_making *s)
{
	struct spec_job *job = s->job;
	int err;

	job->state = job_state(s);
	job->suspended = s->phase && s->phase->suspended && !job->history;
	if (s->ctx->kind->control && !job->history)
		job->actions = s->ctx->kind->control->actions(s->view);
	err = explain(s);
	if (!err)
		err = spec_view_cause(s);
	job->started = started(s);
	job->finished = finished(s);
	job->changed = changed(s);
	return !err && spec_making_history(s) < 0 ? -ENOMEM : err;
}
