/* SPDX-License-Identifier: MIT */
/*
 * Lookups of files that belong to users have a time limit. A lookup that hangs does not delay
 * others.
 */
#include <stdatomic.h>

#include "backend/base/lookup.h"
#include "spec/base/mem.h"
#include "loop_rig.h"

struct question {
	struct hang *hang; /* NULL: answer immediately */
	int answer;
};

static atomic_uint n_freed;

struct asker {
	struct hang hang;
	bool hangs;
	unsigned ms;
	const char *key;
	bool answered;
	unsigned n_done;
	sem_t done;
	struct group group;
};

static void look(void *question)
{
	struct question *q = question;

	if (q->hang)
		hang(q->hang);
	q->answer = 42;
}

static void question_free(void *question)
{
	free(question);
	n_freed++;
}

static void looked(void *data, void *question)
{
	struct asker *a = data;
	const struct question *q = question;

	a->n_done++;
	a->answered = q;
	assert_true(!q || q->answer == 42);
	assert_int_equal(a->group.n, 1);
	sem_post(&a->done);
}

static void ask(void *data)
{
	struct asker *a = data;
	struct question *q = new0(struct question);

	q->hang = a->hangs ? &a->hang : NULL;
	group_init(&a->group, loop);
	lookup_start(loop, &(struct lookup){.key = a->key,
					    .ms = a->ms,
					    .look = look,
					    .question = q,
					    .free = question_free,
					    .done = looked,
					    .data = a,
					    .group = &a->group});
	assert_int_equal(a->n_done, 0);
}

static void asker_init(struct asker *a, const char *key, bool hangs)
{
	*a = (struct asker){.key = key, .hangs = hangs, .ms = hangs ? 10 : WAIT_S * 1000};
	hang_init(&a->hang);
	sem_init(&a->done, 0, 0);
}

static void asker_wait(struct asker *a)
{
	sem_wait_or_fail(&a->done);
	call(nothing, NULL);
	assert_int_equal(a->group.n, 0);
	assert_int_equal(a->n_done, 1);
}

static int begin(void **state)
{
	n_freed = 0;
	return setup_started(state);
}

static void wait_freed(unsigned n)
{
	while (n_freed < n)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(n_freed, n);
}

static void test_hanging(void **state)
{
	struct asker a, same, other;

	asker_init(&a, "/dead", true);
	call(ask, &a);
	asker_wait(&a);
	assert_false(a.answered);

	/*
	 * While a lookup of /dead hangs, other lookups of /dead get no thread. Lookups of other
	 * paths do.
	 */
	asker_init(&same, "/dead", false);
	call(ask, &same);
	asker_wait(&same);
	assert_false(same.answered);
	asker_init(&other, "/home", false);
	call(ask, &other);
	asker_wait(&other);
	assert_true(other.answered);
	wait_freed(2);

	/* When the hanging lookup has returned, /dead is looked up again. */
	sem_post(&a.hang.go);
	wait_freed(3);
	asker_init(&same, "/dead", false);
	call(ask, &same);
	asker_wait(&same);
	assert_true(same.answered);
	assert_int_equal(a.n_done, 1);
	wait_freed(4);
}

/* A lookup that returns after the loop has stopped is freed, and not reported. */
static void test_too_late(void **state)
{
	struct asker a;

	asker_init(&a, "/slow", true);
	a.ms = WAIT_S * 1000;
	call(ask, &a);
	sem_wait_or_fail(&a.hang.began);
	assert_true(loop_stop(loop));
	loop_free(take_ptr(loop));
	sem_post(&a.hang.go);
	wait_freed(1);
	assert_int_equal(a.n_done, 0);
}

#define MANY	300
#define THREADS 256 /* limit of lookup.c */

/* Any number of lookups may hang, and the mount can still end. */
static void test_many(void **state)
{
	static struct asker a[MANY];
	static char keys[MANY][16];
	unsigned n = 0;

	for (unsigned i = 0; i < MANY; i++) {
		snprintf(keys[i], sizeof(keys[i]), "/dead/%u", i);
		asker_init(&a[i], keys[i], true);
		call(ask, &a[i]);
	}
	for (unsigned i = 0; i < MANY; i++) {
		asker_wait(&a[i]);
		assert_false(a[i].answered);
	}
	assert_true(loop_stop(loop));
	loop_free(take_ptr(loop));
	/* Lookups that got no thread have ended. The others start as soon as their threads run. */
	wait_freed(MANY - THREADS);
	while (n < THREADS) {
		for (unsigned i = 0; i < MANY; i++)
			n += sem_trywait(&a[i].hang.began) == 0;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	for (unsigned i = 0; i < MANY; i++)
		sem_post(&a[i].hang.go);
	wait_freed(MANY);
	for (unsigned i = 0; i < MANY; i++)
		n += sem_trywait(&a[i].hang.began) == 0;
	assert_int_equal(n, THREADS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hanging, begin, teardown),
		cmocka_unit_test_setup_teardown(test_too_late, begin, teardown),
		cmocka_unit_test_setup_teardown(test_many, begin, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
