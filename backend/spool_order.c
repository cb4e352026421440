/* SPDX-License-Identifier: MIT */
/*
 * In which order the lines of a job's logs go into its merged log: by their times. Of each log with lines
 * that wait, the first one's time is known (a heap of logs by that). The earliest goes as soon as every log
 * that may still grow has one that waits; else when it has waited for about a second, so that what comes
 * within that finds its place. Logs whose earlier output is still on its way hold all others up, but not
 * for ever. Lines without a time, as those of local jobs, go as they come.
 */
#include <utlist.h>

#include "backend/spool_impl.h"

/* A line waits for SPOOL_MARKS of these, and up to one more. */
#define LOOK_MS	   250
#define HOLD_LOOKS 40
/* Of a log that is far behind, lines of so near a time go in one piece. */
#define BEHIND	  (256u << 10)
#define BEHIND_NS 1000000

/* --- the heap --- */

static bool order_before(const struct spool_source *a, const struct spool_source *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->turn < b->turn;
}

static void order_put(struct spool_job *j, size_t place, struct spool_source *s)
{
	j->heap[place - 1] = s;
	s->place = place;
}

/* S belongs to PLACE, or above or below it. */
static void order_sift(struct spool_job *j, size_t place, struct spool_source *s)
{
	while (place > 1 && order_before(s, j->heap[place / 2 - 1])) {
		order_put(j, place, j->heap[place / 2 - 1]);
		place /= 2;
	}
	for (;;) {
		size_t below = 2 * place;

		if (below < j->n_heap && order_before(j->heap[below], j->heap[below - 1]))
			below++;
		if (below > j->n_heap || !order_before(j->heap[below - 1], s))
			break;
		order_put(j, place, j->heap[below - 1]);
		place = below;
	}
	order_put(j, place, s);
}

/* --- what is counted --- */

static void order_note_ripe(struct spool_source *s)
{
	struct spool_job *j = s->job;
	bool ripe = s->place > 0 && j->keys.v[s->number].indexed < s->ripe;

	if (ripe && !s->is_ripe)
		j->n_ripe++;
	else if (!ripe && s->is_ripe)
		j->n_ripe--;
	s->is_ripe = ripe;
}

void spool_order_open(struct spool_source *s)
{
	if (s->open)
		return;
	s->open = true;
	s->job->n_open++;
	s->job->n_open_waiting += s->place > 0;
	spool_order_list(s->job);
}

void spool_order_close(struct spool_source *s)
{
	spool_order_hold(s, false);
	if (!s->open)
		return;
	s->open = false;
	s->job->n_open--;
	s->job->n_open_waiting -= s->place > 0;
	spool_order_list(s->job);
}

void spool_order_hold(struct spool_source *s, bool hold)
{
	struct spool_job *j = s->job;

	if (hold && s->hold == 0)
		j->n_hold++;
	else if (!hold && s->hold > 0)
		j->n_hold--;
	s->hold = hold ? HOLD_LOOKS : 0;
	spool_order_list(j);
}

/* --- what waits --- */

void spool_order_add(struct spool_source *s)
{
	struct spool_job *j = s->job;

	if (s->place > 0)
		return;
	s->ns = spool_window_time(s);
	s->turn = ++j->spool->turns;
	order_sift(j, ++j->n_heap, s);
	j->n_open_waiting += s->open;
	order_note_ripe(s);
	spool_order_list(j);
}

void spool_order_remove(struct spool_source *s)
{
	struct spool_job *j = s->job;
	struct spool_source *last;

	spool_window_drop(s);
	if (s->place == 0)
		return;
	last = j->heap[--j->n_heap];
	if (last != s)
		order_sift(j, s->place, last);
	s->place = 0;
	j->n_open_waiting -= s->open;
	order_note_ripe(s);
	spool_order_list(j);
}

void spool_order_moved(struct spool_source *s)
{
	s->ns = spool_window_time(s);
	s->turn = ++s->job->spool->turns;
	order_sift(s->job, s->place, s);
	order_note_ripe(s);
	spool_order_list(s->job);
}

static bool order_may_go(const struct spool_job *j)
{
	if (j->n_heap == 0 || j->stuck || j->n_out == SPOOL_OUT_MAX)
		return false;
	if (j->spool->draining || j->heap[0]->ns == SPOOL_UNTIMED)
		return true;
	return j->n_hold == 0 && (j->n_open_waiting == j->n_open || j->n_ripe > 0);
}

/* The time up to which S may go on: that of the next one's line. */
static int64_t order_until(const struct spool_source *s)
{
	const struct spool_job *j = s->job;
	int64_t until = INT64_MAX;

	for (size_t place = 2; place <= min_of(j->n_heap, (size_t)3); place++)
		until = min_of(until, j->heap[place - 1]->ns);
	if (s->seen - j->keys.v[s->number].indexed > BEHIND && until < INT64_MAX - BEHIND_NS)
		until += BEHIND_NS;
	return until;
}

struct spool_source *spool_order_next(struct spool_job *j, uint64_t *ret_end)
{
	struct spool_source *s;

	if (!order_may_go(j))
		return NULL;
	s = j->heap[0];
	*ret_end = spool_window_until(s, order_until(s));
	/* It goes since it has waited: what has not is not to go with it. */
	if (s->is_ripe && j->n_open_waiting < j->n_open && !j->spool->draining)
		*ret_end = min_of(*ret_end, s->ripe);
	return s;
}

/* --- looks --- */

static void order_look(void *data);

void spool_order_list(struct spool_job *j)
{
	struct spool *spool = j->spool;
	bool go = order_may_go(j), wait = !go && j->n_heap > 0 && !j->stuck;

	if (j->list == SPOOL_ACTIVE && !go)
		DL_DELETE(spool->active, j);
	if (j->list == SPOOL_WAITING && !wait)
		DL_DELETE(spool->waiting, j);
	if (j->list != SPOOL_ACTIVE && go) {
		DL_APPEND(spool->active, j);
		spool_pump_wake(spool);
	}
	if (j->list != SPOOL_WAITING && wait) {
		DL_APPEND(spool->waiting, j);
		if (!spool->look && !spool->stopped)
			spool->look =
				loop_timer_new(spool->loop, LOOK_MS, LOOK_MS, order_look, spool);
	}
	j->list = go ? SPOOL_ACTIVE : wait ? SPOOL_WAITING : SPOOL_IDLE;
}

void spool_order_rotate(struct spool_job *j)
{
	if (j->list != SPOOL_ACTIVE)
		return;
	DL_DELETE(j->spool->active, j);
	DL_APPEND(j->spool->active, j);
}

void spool_order_rush(struct spool_source *s)
{
	for (size_t i = 0; i < SPOOL_MARKS; i++)
		s->marks[i] = s->seen;
}

/* What waited at a look so many looks ago has waited long enough. */
static void order_age(struct spool_source *s)
{
	s->ripe = s->marks[0];
	memmove(s->marks, s->marks + 1, (SPOOL_MARKS - 1) * sizeof(s->marks[0]));
	s->marks[SPOOL_MARKS - 1] = s->seen;
	order_note_ripe(s);
}

static void order_look(void *data)
{
	struct spool *spool = data;
	struct spool_job *j, *next;

	DL_FOREACH_SAFE(spool->waiting, j, next) {
		for (size_t i = 0; j->n_hold > 0 && i < j->keys.n; i++) {
			struct spool_source *s = j->by_number[i];

			if (s->hold > 0 && --s->hold == 0)
				j->n_hold--;
		}
		for (size_t i = 0; i < j->n_heap; i++)
			order_age(j->heap[i]);
		spool_order_list(j);
	}
	if (!spool->waiting)
		loop_timer_free(take_ptr(spool->look));
}

/* --- the end --- */

void spool_order_forget(struct spool_job *j)
{
	if (j->list == SPOOL_ACTIVE)
		DL_DELETE(j->spool->active, j);
	else if (j->list == SPOOL_WAITING)
		DL_DELETE(j->spool->waiting, j);
	j->list = SPOOL_IDLE;
	for (size_t i = 0; i < j->keys.n; i++)
		spool_window_drop(j->by_number[i]);
	free(j->heap);
}

void spool_order_drain(struct spool *spool)
{
	struct spool_job *j, *next;

	spool->draining = true;
	loop_timer_free(take_ptr(spool->look));
	DL_FOREACH_SAFE(spool->waiting, j, next) {
		spool_order_list(j);
	}
}
