/* SPDX-License-Identifier: MIT */
/* A queue of waiting logs, and counts of the slots that others have. */
#include "backend/kube/slots.h"

#include <utlist.h>

void slots_set(struct slots *all, struct slot *s, enum slot_state state)
{
	if (s->state == SLOT_QUEUED)
		DL_DELETE(all->queue, s);
	if (s->state == SLOT_TAKEN) {
		all->n_first -= s->first;
		all->n_retried -= s->retried;
	}
	all->n[s->state]--;
	all->n[state]++;
	s->state = state;
	if (state == SLOT_QUEUED && s->urgent)
		DL_PREPEND(all->queue, s);
	else if (state == SLOT_QUEUED)
		DL_APPEND(all->queue, s);
	if (state == SLOT_TAKEN) {
		all->n_first += s->first;
		all->n_retried += s->retried;
	}
}

void slots_hasten(struct slots *all, struct slot *s)
{
	if (s->urgent)
		return;
	s->urgent = true;
	if (s->state == SLOT_QUEUED)
		slots_set(all, s, SLOT_QUEUED);
}

void slots_arrived(struct slots *all, struct slot *s)
{
	if (s->state == SLOT_TAKEN)
		all->n_first -= s->first;
	s->first = false;
}

struct slot *slots_next(struct slots *all)
{
	struct slot *s;

	DL_FOREACH(all->queue, s) {
		if (all->n[SLOT_TAKEN] >= all->max + (s->urgent ? SLOTS_URGENT : 0))
			return NULL; /* those behind it may not use more slots */
		if ((s->first && all->n_first >= SLOTS_FIRST) ||
		    (s->retried && !s->leaving && all->n_retried >= SLOTS_RETRIED))
			continue;
		slots_set(all, s, SLOT_TAKEN);
		return s;
	}
	return NULL;
}
