/* SPDX-License-Identifier: MIT */
/* Timers that have memory of their own, and those that come again. */
#include "backend/base/loop.h"
#include "spec/base/mem.h"

struct own_timer {
	struct loop_timer timer;
	unsigned period_ms;
	loop_fn fn;
	void *data;
};

static void on_timer(void *data)
{
	struct own_timer *t = data;

	if (t->period_ms)
		loop_timer_set(&t->timer, t->period_ms);
	return t->fn(t->data);
}

struct loop_timer *loop_timer_new(struct loop *loop, unsigned delay_ms, unsigned period_ms,
				  loop_fn fn, void *data)
{
	struct own_timer *t = new0(struct own_timer);

	t->period_ms = period_ms;
	t->fn = fn;
	t->data = data;
	loop_timer_init(&t->timer, loop, on_timer, t);
	loop_timer_set(&t->timer, delay_ms);
	return &t->timer;
}

void loop_timer_free(struct loop_timer *timer)
{
	if (!timer)
		return;
	loop_timer_stop(timer);
	free(container_of(timer, struct own_timer, timer));
}
