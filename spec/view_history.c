/* SPDX-License-Identifier: MIT */
/*
 * When the phases of a job of a cluster began: as was seen, and for what was not seen, as the controller
 * tells. Volcano has a condition for each phase, whose time moves with each change within the phase: it
 * says when the phase was seen last, and began no later.
 */
#include "spec/view_impl.h"

static enum spec_state state_of(const struct spec_making *s, const char *phase)
{
	for (const struct spec_phase *p = s->ctx->kind->reader->phases; p->name; p++)
		if (streq(p->name, phase))
			return p->state;
	return SPEC_UNKNOWN;
}

/* The condition of the phase that is the newest known; N: there is none. */
static size_t place_of(const struct spec_transitions *c, const char *phase)
{
	size_t i = 0;

	while (i < c->n && !streq(c->v[i].phase, phase))
		i++;
	return i;
}

/* A phase that was not seen: when it began, as far as the rest tells. */
static int64_t began(const struct spec_making *s, size_t i, enum spec_state state)
{
	const struct spec_transitions *c = &s->view->conditions;
	int64_t first = i > 0 ? c->v[i - 1].time : s->job->created;
	int64_t started = s->job->started;

	/* The first container has started in it. */
	if (state == SPEC_RUNNING && started > first && started < c->v[i].time)
		return started;
	return c->v[i].time;
}

/* What the controller tells of phases after the newest that is known. */
static int add_unseen(struct spec_making *s)
{
	const struct spec_transitions *c = &s->view->conditions;
	struct spec_transitions *t = &s->job->transitions;
	const struct spec_transition last = t->v[t->n - 1];
	size_t place = place_of(c, last.phase);
	/* All are, while no controller had acted; times of whole seconds may not tell. */
	bool newer = !*last.phase;

	for (size_t i = 0; i < c->n; i++) {
		enum spec_state state = state_of(s, c->v[i].phase);

		newer |= i != place && (c->v[i].time > last.time || (place < c->n && i > place));
		if (newer && !(i + 1 == c->n && streq(c->v[i].phase, s->view->phase)) &&
		    spec_transitions_add(t, state, c->v[i].phase, began(s, i, state)) < 0)
			return -1;
	}
	return 0;
}

int spec_making_history(struct spec_making *s)
{
	const struct spec_job *before = s->ctx->before;
	struct spec_job *job = s->job;
	struct spec_transitions *t = &job->transitions;
	const struct spec_transitions *c = &s->view->conditions;
	bool seen = before && before->transitions.n > 0;
	int64_t time = s->view->changed ? s->view->changed : s->ctx->now;

	if (seen && spec_transitions_copy(t, &before->transitions) < 0)
		return -1;
	if (!seen && spec_transitions_add(t, SPEC_SUBMITTED, "", job->created) < 0)
		return -1;
	if (add_unseen(s) < 0)
		return -1;
	/* What the pods alone say has no time of the controller's. */
	if (streq(t->v[t->n - 1].phase, job->phase))
		time = job->finished ? job->finished : s->ctx->now;
	else if (!seen && c->n && streq(c->v[c->n - 1].phase, job->phase))
		time = began(s, c->n - 1, job->state);
	return spec_transitions_add(t, job->state, job->phase, time);
}
