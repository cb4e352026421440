/* SPDX-License-Identifier: MIT */
/*
 * Work of one queue is done in order, and work that hangs delays only its own queue. When the last
 * operation has left a group, the group posts one call.
 */
#include "backend/base/work.h"
#include "spec/base/mem.h"
#include "loop_rig.h"

#define N 100

static struct {
	struct work_queue q, other;
	struct group group;
	struct work w[N], marks[2];
	struct hang hang;
	/* N_RUN is written on the pool, by one thread at a time. */
	unsigned n_run, n_done;
	bool side_by_side, wrong_order;
	sem_t over, marked;
} t;

static unsigned calls; /* number of calls of on_empty */

static void run(void *data)
{
	static unsigned inside;
	struct work *w = data;

	t.side_by_side |= __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) > 1;
	t.wrong_order |= w - t.w != t.n_run++;
	w->err = -(int)t.n_run;
	__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

static void done(void *data)
{
	struct work *w = data;

	/* A work item runs only after the previous one has ended. */
	assert_int_equal(w->err, -(int)t.n_run);
	t.wrong_order |= w - t.w != t.n_done++;
}

static void give_all(void *data)
{
	for (unsigned i = 0; i < N; i++) {
		t.w[i] =
			(struct work){.run = run, .done = done, .data = &t.w[i], .group = &t.group};
		work_enqueue(&t.w[i], loop, &t.q);
	}
	group_when_empty(&t.group, post_sem, &t.over);
}

static int begin(void **state)
{
	memset(&t, 0, sizeof(t));
	calls = 0;
	sem_init(&t.over, 0, 0);
	sem_init(&t.marked, 0, 0);
	hang_init(&t.hang);
	setup_started(state);
	group_init(&t.group, loop);
	return 0;
}

static void test_order(void **state)
{
	call(give_all, NULL);
	sem_wait_or_fail(&t.over);
	assert_int_equal(t.n_done, N);
	assert_false(t.wrong_order);
	assert_false(t.side_by_side);
	assert_null(t.q.first);
}

static void give_hanging(void *data)
{
	t.w[0] = (struct work){.run = hang, .data = &t.hang};
	t.marks[0] = (struct work){.done = post_sem, .data = &t.marked};
	work_enqueue(&t.w[0], loop, &t.q);
	work_enqueue(&t.marks[0], loop, &t.q);
	t.marks[1] = (struct work){.done = post_sem, .data = &t.over};
	work_enqueue(&t.marks[1], loop, &t.other);
}

static void test_hanging(void **state)
{
	call(give_hanging, NULL);
	sem_wait_or_fail(&t.hang.began);
	sem_wait_or_fail(&t.over);
	call(nothing, NULL);
	assert_int_equal(sem_trywait(&t.marked), -1);
	sem_post(&t.hang.go);
	sem_wait_or_fail(&t.marked);
}

/* A queue that is freed, or gets more work, in the callback of its last work item. */
struct own {
	struct work_queue q;
	struct work w;
	unsigned left;
};

static void on_own(void *data)
{
	struct own *o = data;

	if (o->left--) {
		work_enqueue(&o->w, loop, &o->q);
		return;
	}
	free(o);
	sem_post(&t.over);
}

static void give_own(void *data)
{
	struct own *o = new0(struct own);

	o->left = 3;
	o->w = (struct work){.done = on_own, .data = o};
	work_enqueue(&o->w, loop, &o->q);
}

static void test_last(void **state)
{
	call(give_own, NULL);
	sem_wait_or_fail(&t.over);
}

/* --- groups --- */

static void on_empty(void *data)
{
	calls++;
}

/* 'e': an operation enters the group. 'l': it leaves. 'w': request the call. */
static void take_steps(void *data)
{
	unsigned before = calls;

	for (const char *step = data; *step; step++) {
		if (*step == 'e')
			group_enter(&t.group);
		else if (*step == 'l')
			group_leave(&t.group);
		else
			group_when_empty(&t.group, on_empty, NULL);
	}
	assert_int_equal(calls, before); /* none of these functions makes the call itself */
}

/*
 * The call is made once, when the last operation has left the group. An operation that begins
 * between the last leave and the call must delay the call, because FN may free everything.
 */
static void test_group(void **state)
{
	static const struct {
		const char *steps; /* without a return to the loop */
		unsigned calls;	   /* made afterwards, by all steps so far */
	} rows[] = {
		{"w", 1},      {"ew", 1}, {"e", 1},
		{"l", 1},      {"l", 2},  {"el", 2}, /* this time no call was requested */
		{"ewlele", 2}, {"l", 3},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		call(take_steps, (void *)(uintptr_t)rows[i].steps);
		call(nothing, NULL);
		assert_int_equal(calls, rows[i].calls);
	}
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(test_##t, begin, teardown)
	const struct CMUnitTest tests[] = {
		TEST(order),
		TEST(hanging),
		TEST(last),
		TEST(group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
