/* SPDX-License-Identifier: MIT */
/* Sorts chunks by time; see order.h. The sources with waiting chunks form a heap. */
#include "backend/output/order.h"

#include "spec/base/mem.h"

#define WAITING_MAX   16384 /* waiting chunks of a source, at most */
#define WAITING_FIRST 16

struct order_waiting {
	struct chunk chunk;
	uint32_t due; /* the tick at which its wait ends */
};

struct order_source {
	struct order *order;
	void *data;
	struct order_waiting *queue; /* waiting chunks, from FIRST on */
	size_t first, n, room;
	uint64_t bytes;	   /* bytes in the queue */
	size_t position;   /* in the heap, from 1; 0 if no chunk waits */
	uint64_t seq;	   /* breaks ties between equal times: the lower SEQ is first */
	uint64_t flush_to; /* chunks before this byte wait only briefly (order_flush_early) */
	unsigned expected; /* ticks for which all other sources wait (order_expect) */
	bool open, reading;
	bool is_due; /* its first chunk has waited long enough */
};

struct order {
	struct order_source **sources;
	size_t n_sources;
	struct order_source **heap;
	size_t n_heap;
	size_t n_open;
	size_t n_open_waiting; /* open sources in the heap */
	size_t n_due;	       /* sources whose first chunk is due */
	size_t n_awaited;      /* sources that are expected or being read */
	uint64_t last_seq;
	uint32_t now; /* the current tick */
	bool draining;
};

static const struct order_waiting *head(const struct order_source *s)
{
	return &s->queue[s->first];
}

static bool order_before(const struct order_source *a, const struct order_source *b)
{
	int64_t x = head(a)->chunk.ns, y = head(b)->chunk.ns;

	return x != y ? x < y : a->seq < b->seq;
}

static void order_put(struct order *o, size_t position, struct order_source *s)
{
	o->heap[position - 1] = s;
	s->position = position;
}

/* Put S at POSITION, and move it up or down until the heap is in order. */
static void order_sift(struct order *o, size_t position, struct order_source *s)
{
	while (position > 1 && order_before(s, o->heap[position / 2 - 1])) {
		order_put(o, position, o->heap[position / 2 - 1]);
		position /= 2;
	}
	for (;;) {
		size_t below = 2 * position;

		if (below < o->n_heap && order_before(o->heap[below], o->heap[below - 1]))
			below++;
		if (below > o->n_heap || !order_before(o->heap[below - 1], s))
			break;
		order_put(o, position, o->heap[below - 1]);
		position = below;
	}
	order_put(o, position, s);
}

static void order_note_due(struct order_source *s)
{
	struct order *o = s->order;
	bool due = s->position > 0 && head(s)->due <= o->now;

	if (due != s->is_due)
		o->n_due += due ? 1 : (size_t)-1;
	s->is_due = due;
}

struct order *order_new(void)
{
	return new0(struct order);
}

void order_free(struct order *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->n_sources; i++) {
		free(o->sources[i]->queue);
		free(o->sources[i]);
	}
	free(o->sources);
	free(o->heap);
	free(o);
}

struct order_source *order_add(struct order *o, void *data)
{
	struct order_source *s = new0(struct order_source);

	s->order = o;
	s->data = data;
	o->sources = mem_grow(o->sources, o->n_sources + 1, sizeof(void *));
	o->heap = mem_grow(o->heap, o->n_sources + 1, sizeof(void *));
	o->sources[o->n_sources++] = s;
	return s;
}

void *order_data(const struct order_source *s)
{
	return s->data;
}

void order_open(struct order_source *s)
{
	if (s->open)
		return;
	s->open = true;
	s->order->n_open++;
	s->order->n_open_waiting += s->position > 0;
}

void order_close(struct order_source *s)
{
	order_expect(s, false);
	if (!s->open)
		return;
	s->open = false;
	s->order->n_open--;
	s->order->n_open_waiting -= s->position > 0;
}

static bool is_awaited(const struct order_source *s)
{
	return s->expected > 0 || s->reading;
}

static void order_await(struct order_source *s, unsigned expected, bool reading)
{
	s->order->n_awaited -= is_awaited(s);
	s->expected = expected;
	s->reading = reading;
	s->order->n_awaited += is_awaited(s);
}

void order_expect(struct order_source *s, bool expected)
{
	order_await(s, expected ? ORDER_EXPECT_TICKS : 0, s->reading);
}

void order_read(struct order_source *s, bool reading)
{
	order_await(s, s->expected, reading);
}

void order_feed(struct order_source *s, const struct chunk *p)
{
	struct order *o = s->order;
	struct order_waiting *last = s->n > 0 ? &s->queue[s->first + s->n - 1] : NULL;

	s->bytes += p->length;
	if (last && chunk_is_near(&last->chunk, p, s->bytes) && chunk_join(&last->chunk, p))
		return;
	if (s->queue && s->first + s->n == s->room && s->first > s->room / 2) {
		memmove(s->queue, s->queue + s->first, s->n * sizeof(*s->queue));
		s->first = 0;
	} else if (s->first + s->n == s->room) {
		s->room = s->room ? 2 * s->room : WAITING_FIRST;
		s->queue = mem_grow(s->queue, s->room, sizeof(*s->queue));
	}
	s->queue[s->first + s->n++] = (struct order_waiting){
		.chunk = *p, .due = o->now + (p->from < s->flush_to ? 1 : ORDER_WAIT_TICKS)};
	if (s->position > 0)
		return;
	s->seq = ++o->last_seq;
	order_sift(o, ++o->n_heap, s);
	o->n_open_waiting += s->open;
	order_note_due(s);
}

bool order_is_full(const struct order_source *s)
{
	return s->n >= WAITING_MAX;
}

bool order_has_space(const struct order_source *s)
{
	return s->n <= WAITING_MAX / 2;
}

bool order_is_empty(const struct order_source *s)
{
	return s->n == 0;
}

void order_flush_early(struct order_source *s, uint64_t to)
{
	s->flush_to = max_of(s->flush_to, to);
	for (size_t i = s->first; i < s->first + s->n && s->queue[i].chunk.from < to; i++)
		s->queue[i].due = min_of(s->queue[i].due, s->order->now + 1);
}

bool order_may_go(const struct order *o)
{
	if (o->n_heap == 0)
		return false;
	if (o->draining || head(o->heap[0])->chunk.ns == CHUNK_UNTIMED)
		return true;
	return o->n_awaited == 0 && (o->n_open_waiting == o->n_open || o->n_due > 0);
}

static void order_remove(struct order_source *s)
{
	struct order *o = s->order;
	struct order_source *last = o->heap[--o->n_heap];

	if (last != s)
		order_sift(o, s->position, last);
	s->position = 0;
	o->n_open_waiting -= s->open;
	free(take_ptr(s->queue));
	s->first = s->room = 0;
}

bool order_next(struct order *o, struct order_source **ret_source, struct chunk *ret)
{
	struct order_source *s;

	if (!order_may_go(o))
		return false;
	s = *ret_source = o->heap[0];
	*ret = head(s)->chunk;
	s->bytes -= ret->length;
	s->n--;
	s->first++;
	if (s->n > 0) {
		s->seq = ++o->last_seq;
		order_sift(o, 1, s);
	} else {
		order_remove(s);
	}
	order_note_due(s);
	return true;
}

bool order_waits(const struct order *o)
{
	return o->n_heap > 0;
}

void order_tick(struct order *o)
{
	o->now++;
	for (size_t i = 0; o->n_awaited > 0 && i < o->n_sources; i++)
		if (o->sources[i]->expected > 0)
			order_await(o->sources[i], o->sources[i]->expected - 1,
				    o->sources[i]->reading);
	for (size_t i = 0; i < o->n_heap; i++)
		order_note_due(o->heap[i]);
}

void order_drain(struct order *o)
{
	o->draining = true;
}
