/* SPDX-License-Identifier: MIT */
/* A queue of those that wait, and counts of the places that others have. */
#include "backend/kube/places.h"

#include <utlist.h>

void places_set(struct places *p, struct place *l, enum place_state state)
{
	if (l->state == PLACE_QUEUED)
		DL_DELETE(p->queue, l);
	if (l->state == PLACE_TAKEN) {
		p->n_first -= l->first;
		p->n_retried -= l->retried;
	}
	p->n[l->state]--;
	p->n[state]++;
	l->state = state;
	if (state == PLACE_QUEUED && l->urgent)
		DL_PREPEND(p->queue, l);
	else if (state == PLACE_QUEUED)
		DL_APPEND(p->queue, l);
	if (state == PLACE_TAKEN) {
		p->n_first += l->first;
		p->n_retried += l->retried;
	}
}

void places_hasten(struct places *p, struct place *l)
{
	if (l->urgent)
		return;
	l->urgent = true;
	if (l->state == PLACE_QUEUED)
		places_set(p, l, PLACE_QUEUED);
}

void places_arrived(struct places *p, struct place *l)
{
	if (l->state == PLACE_TAKEN)
		p->n_first -= l->first;
	l->first = false;
}

struct place *places_next(struct places *p)
{
	struct place *l;

	DL_FOREACH(p->queue, l) {
		if (p->n[PLACE_TAKEN] >= p->max + (l->urgent ? PLACES_URGENT : 0))
			return NULL; /* those behind it may use no more places */
		if ((l->first && p->n_first >= PLACES_FIRST) ||
		    (l->retried && !l->leaving && p->n_retried >= PLACES_RETRIED))
			continue;
		places_set(p, l, PLACE_TAKEN);
		return l;
	}
	return NULL;
}
