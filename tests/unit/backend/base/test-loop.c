/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread: order of posted calls, timers, signals, the pool, and shutdown. For watched
 * descriptors, see test-credential.c.
 */
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "backend/base/lock.h"
#include "loop_rig.h"
#include "tests/unit/clock.h"

#define POSTERS 4
#define POSTS	5000

static struct {
	unsigned next[POSTERS]; /* written by the I/O thread */
	bool wrong;
} order;

static void on_number(void *data)
{
	uintptr_t number = (uintptr_t)data;

	if (order.next[number / POSTS]++ != number % POSTS || !loop_is_here(loop))
		order.wrong = true;
}

static void *poster(void *data)
{
	for (uintptr_t i = 0; i < POSTS; i++)
		loop_post(loop, on_number, (void *)((uintptr_t)data * POSTS + i));
	return NULL;
}

static void test_order(void **state)
{
	pthread_t thread[POSTERS];

	memset(&order, 0, sizeof(order));
	poster((void *)0); /* calls that are posted before the start are kept */
	assert_int_equal(order.next[0], 0);
	assert_int_equal(loop_start(loop), 0);
	assert_false(loop_is_here(loop));
	for (uintptr_t i = 1; i < POSTERS; i++)
		pthread_create(&thread[i], NULL, poster, (void *)i);
	for (size_t i = 1; i < POSTERS; i++)
		pthread_join(thread[i], NULL);
	call(nothing, NULL);
	for (size_t i = 0; i < POSTERS; i++)
		assert_int_equal(order.next[i], POSTS);
	assert_false(order.wrong);
}

static void post_more(void *data)
{
	unsigned *left = data;

	if (*left && --*left)
		loop_post(loop, post_more, left);
}

static void test_stop_drains(void **state)
{
	unsigned left = 100;

	memset(&order, 0, sizeof(order));
	loop_start(loop);
	poster((void *)1);
	loop_post(loop, post_more, &left);
	loop_stop(loop);
	assert_int_equal(order.next[1], POSTS);
	assert_int_equal(left, 0);
	/* Calls that are posted now are never run. loop_free releases them. */
	left = 5;
	loop_post(loop, post_more, &left);
	loop_stop(loop);
	assert_int_equal(left, 5);
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void test_fork_before_start(void **state)
{
	int before = count_fds();
	int status;
	pid_t pid;

	/* The loop of setup() exists. It must not have a thread or descriptors yet. */
	pid = fork();
	if (pid == 0) {
		sem_t done;

		sem_init(&done, 0, 0);
		if (count_fds() != before || loop_start(loop) < 0)
			_exit(1);
		loop_stop(loop);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define TIMERS 1000

static struct {
	struct loop_timer t[TIMERS], again, never, left;
	uint64_t due[TIMERS], last;
	unsigned ran, ticks;
	bool wrong;
	sem_t done;
} timing;

static void on_never(void *data)
{
	timing.wrong = true;
}

/* Timers expire in order, and not too early. */
static void on_time(void *data)
{
	struct loop_timer *t = data;
	uint64_t due = timing.due[t - timing.t];

	timing.wrong |= loop_now_ms() < due || due < timing.last || loop_timer_is_set(t);
	timing.last = due;
	if (++timing.ran == TIMERS / 2)
		sem_post(&timing.done);
}

static void on_again(void *data)
{
	if (++timing.ticks < 3)
		loop_timer_set(&timing.again, 5);
	else
		sem_post(&timing.done);
}

static void start_timers(void *data)
{
	loop_timer_init(&timing.never, loop, on_never, NULL);
	loop_timer_set(&timing.never, 10);
	loop_timer_stop(&timing.never);
	loop_timer_stop(&timing.never);
	assert_false(loop_timer_is_set(&timing.never));
	loop_timer_init(&timing.left, loop, on_never, NULL);
	loop_timer_set(&timing.left, 1);
	loop_timer_set(&timing.left, 3600 * 1000);
	assert_true(loop_timer_is_set(&timing.left));
	loop_timer_init(&timing.again, loop, on_again, NULL);
	loop_timer_set(&timing.again, 20);
	for (unsigned i = 0; i < TIMERS; i++) {
		loop_timer_init(&timing.t[i], loop, on_time, &timing.t[i]);
		loop_timer_set(&timing.t[i], 3600 * 1000);
		loop_timer_set(&timing.t[i], i * 7919 % 50);
		timing.due[i] = timing.t[i].at;
	}
	for (unsigned i = 0; i < TIMERS; i += 2)
		loop_timer_stop(&timing.t[i]);
}

static void test_timers(void **state)
{
	sem_init(&timing.done, 0, 0);
	loop_start(loop);
	call(start_timers, NULL);
	sem_wait_or_fail(&timing.done);
	sem_wait_or_fail(&timing.done);
	call(nothing, NULL);
	assert_int_equal(timing.ticks, 3);
	assert_int_equal(timing.ran, TIMERS / 2);
	/* A timer whose owner outlives the loop. */
	assert_true(loop_stop(loop));
	assert_false(loop_timer_is_set(&timing.left));
	loop_timer_set(&timing.left, 1);
	assert_false(loop_timer_is_set(&timing.left));
	loop_free(take_ptr(loop));
	loop_timer_stop(&timing.left);
	assert_false(timing.wrong);
}

static unsigned spins;

static void on_spin(void *data)
{
	spins++;
	loop_timer_set(data, 0);
}

/* A timer that is set again and again with a timeout of 0 does not block other callbacks. */
static void test_spinning_timer(void **state)
{
	static struct loop_timer t;

	loop_start(loop);
	loop_timer_init(&t, loop, on_spin, &t);
	call(on_spin, &t);
	call(nothing, NULL);
	call(nothing, NULL);
	assert_true(loop_stop(loop));
	assert_true(spins > 1);
}

static void watch_signal(void *data)
{
	assert_int_equal(loop_signal(loop, SIGUSR1, post_sem, data), 0);
	assert_true(loop_signal(loop, SIGKILL, post_sem, data) < 0);
	assert_null(loop_watch_new(loop, 9999, false, nothing, NULL));
	loop_watch_free(NULL);
}

static void get_mask(void *data)
{
	pthread_sigmask(SIG_SETMASK, NULL, data);
}

static void test_signal(void **state)
{
	sigset_t block, old, mask;
	sem_t done;

	sem_init(&done, 0, 0);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &block, &old);
	loop_start(loop);
	call(watch_signal, &done);
	kill(getpid(), SIGUSR1);
	sem_wait_or_fail(&done);
	call(get_mask, &mask);
	assert_true(sigismember(&mask, SIGTERM));
	assert_true(sigismember(&mask, SIGHUP));
	assert_false(sigismember(&mask, SIGUSR1));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void work_slow(void *data)
{
	usleep(50000);
}

static void start_slow(void *data)
{
	loop_work(loop, work_slow, post_sem, data);
}

static void test_stop_waits_for_the_pool(void **state)
{
	sem_t done;

	sem_init(&done, 0, 0);
	loop_start(loop);
	call(start_slow, &done);
	assert_true(loop_stop(loop));
	assert_int_equal(sem_trywait(&done), 0);
}

#define HANGING 8 /* more than the pool has normal threads */

static void start_hanging(void *data)
{
	for (int i = 0; i < HANGING; i++)
		loop_work(loop, hang, NULL, data);
}

static void start_quick(void *data)
{
	loop_work(loop, nothing, post_sem, data);
}

/* Calls that hang do not delay others, even if they occupy all threads of the normal pool. */
static void test_hanging(void **state)
{
	struct hang h;
	sem_t done;

	hang_init(&h);
	sem_init(&done, 0, 0);
	loop_start(loop);
	call(start_hanging, &h);
	call(start_quick, &done);
	sem_wait_or_fail(&done);
	hang_wait(&h, HANGING);
	call(start_quick, &done);
	sem_wait_or_fail(&done);
	hang_release(&h, HANGING);
	assert_true(loop_stop(loop));
}

static struct turns {
	struct hang hang;
	sem_t done;
	bool of_many;  /* the thousand are of the kind "of_many" */
	atomic_uint n; /* number of calls so far */
	unsigned at;   /* value of N when the single call ran */
} turns[2];

static void note_turn(void *data)
{
	struct turns *t = data;

	t->at = ++t->n;
}

static void turn_noted(void *data)
{
	assert_true(loop_is_here(loop));
	sem_post(&((struct turns *)data)->done);
}

static void count(void *data)
{
	assert_false(loop_is_here(loop));
	((struct turns *)data)->n++;
}

static void hang_all(void *data)
{
	struct turns *t = data;

	for (int i = 0; i < 4; i++)
		loop_work(loop, hang, NULL, &t->hang);
}

/*
 * Queue a thousand calls of one kind and, after them, one call of the other kind, while all threads
 * hang. Then release one thread. It takes calls of both kinds in turn.
 */
static void start_turns(void *data)
{
	struct turns *t = data;

	for (int i = 0; i < 1000; i++)
		(t->of_many ? loop_work_of_many : loop_work)(loop, count, NULL, t);
	(t->of_many ? loop_work : loop_work_of_many)(loop, note_turn, turn_noted, t);
	hang_release(&t->hang, 1);
}

/*
 * A thousand calls for logs do not delay another call, and a thousand other calls do not delay one
 * for a log.
 */
static void test_turns(void **state)
{
	loop_start(loop);
	for (int i = 0; i < 2; i++) {
		struct turns *t = &turns[i];

		t->of_many = i;
		hang_init(&t->hang);
		sem_init(&t->done, 0, 0);
		call(hang_all, t);
		hang_wait(&t->hang, 4);
		call(start_turns, t);
		sem_wait_or_fail(&t->done);
		assert_in_range(t->at, 1, 100);
		hang_release(&t->hang, 3);
	}
	assert_true(loop_stop(loop));
	for (int i = 0; i < 2; i++)
		assert_int_equal(turns[i].n, 1001);
}

static void *pass_time(void *data)
{
	clock_pass_slowly(loop, 8);
	return NULL;
}

/*
 * Shutdown does not wait indefinitely for a call that hangs. The call may return after the loop was
 * freed.
 */
static void test_end_while_hanging(void **state)
{
	uint64_t began = loop_now_ms();
	static struct hang h; /* the call outlives this test */
	pthread_t passer;

	hang_init(&h);
	loop_start(loop);
	call(start_hanging, &h);
	hang_wait(&h, HANGING);
	assert_int_equal(pthread_create(&passer, NULL, pass_time, NULL), 0);
	assert_false(loop_stop(loop));
	pthread_join(passer, NULL);
	assert_true(loop_now_ms() - began >= 1000);
	loop_free(take_ptr(loop));
	hang_release(&h, HANGING);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(test_##t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(order),
		TEST(stop_drains),
		TEST(fork_before_start),
		TEST(timers),
		TEST(spinning_timer),
		TEST(signal),
		TEST(stop_waits_for_the_pool),
		TEST(hanging),
		TEST(turns),
		TEST(end_while_hanging),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
