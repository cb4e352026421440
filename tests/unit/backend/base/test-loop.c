/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread: order of posted calls, timers, watches, signals, children, the pool, and
 * shutdown.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "backend/base/lock.h"
#include "loop_rig.h"
#include "tests/unit/clock.h"
#include "tests/unit/unit.h"

#define POSTERS 4
#define POSTS	5000

static struct {
	unsigned next[POSTERS]; /* written by the I/O thread */
	unsigned wrong;
} order;

struct number {
	unsigned poster, n;
};

static void on_number(void *data)
{
	struct number *num = data;

	if (order.next[num->poster]++ != num->n || !loop_is_here(loop))
		order.wrong++;
	free(num);
}

static void *poster(void *data)
{
	for (unsigned i = 0; i < POSTS; i++) {
		struct number *num = malloc(sizeof(*num));

		num->poster = (unsigned)(uintptr_t)data;
		num->n = i;
		loop_post(loop, on_number, num);
	}
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
	assert_int_equal(order.wrong, 0);
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

static void test_close_on_exec(void **state)
{
	DIR *dir;
	struct dirent *e;

	loop_start(loop);
	call(nothing, NULL);
	dir = opendir("/proc/self/fd");
	while ((e = readdir(dir))) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] == '.' || fd <= 2)
			continue;
		/* The test runner may close a descriptor that it passed to this process. */
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		char link[64], target[256];
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (strstr(target, "event")) /* [eventpoll] or [eventfd] */
			assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	closedir(dir);
}

#define TIMERS 1000

static struct {
	struct loop_timer t[TIMERS], again, never, left;
	uint64_t due[TIMERS], last;
	unsigned ran, early, unordered, ticks;
	sem_t done;
} timing;

static void on_never(void *data)
{
	timing.early += 1000;
}

static void on_time(void *data)
{
	size_t i = (size_t)((struct loop_timer *)data - timing.t);

	timing.early += loop_now_ms() < timing.due[i];
	timing.unordered += timing.due[i] < timing.last;
	timing.last = timing.due[i];
	timing.early += loop_timer_is_set(&timing.t[i]);
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
		unsigned ms = i * 7919 % 50;

		loop_timer_init(&timing.t[i], loop, on_time, &timing.t[i]);
		loop_timer_set(&timing.t[i], 3600 * 1000);
		loop_timer_set(&timing.t[i], ms);
		timing.due[i] = timing.t[i].at;
	}
	for (unsigned i = 0; i < TIMERS; i += 2)
		loop_timer_stop(&timing.t[i]);
}

static void test_timers(void **state)
{
	memset(&timing, 0, sizeof(timing));
	sem_init(&timing.done, 0, 0);
	loop_start(loop);
	call(start_timers, NULL);
	sem_wait_or_fail(&timing.done);
	sem_wait_or_fail(&timing.done);
	call(nothing, NULL);
	assert_int_equal(timing.ticks, 3);
	assert_int_equal(timing.ran, TIMERS / 2);
	assert_int_equal(timing.early, 0);
	assert_int_equal(timing.unordered, 0);
	/* A timer whose owner outlives the loop. */
	assert_true(loop_stop(loop));
	assert_false(loop_timer_is_set(&timing.left));
	loop_timer_set(&timing.left, 1);
	assert_false(loop_timer_is_set(&timing.left));
	loop_free(loop);
	loop = NULL;
	loop_timer_stop(&timing.left);
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

static struct {
	int fd[2];
	struct loop_watch *watch;
	sem_t done;
	char got;
} pipes;

static void on_pipe(void *data)
{
	assert_int_equal(read(pipes.fd[0], &pipes.got, 1), 1);
	sem_post(&pipes.done);
}

static void start_watch(void *data)
{
	pipes.watch = loop_watch_new(loop, pipes.fd[0], false, on_pipe, NULL);
	assert_non_null(pipes.watch);
}

static void end_watch(void *data)
{
	loop_watch_free(pipes.watch);
	loop_watch_free(NULL);
	assert_null(loop_watch_new(loop, 9999, false, on_pipe, NULL));
}

static void test_watch(void **state)
{
	sem_init(&pipes.done, 0, 0);
	assert_int_equal(pipe2(pipes.fd, O_CLOEXEC), 0);
	loop_start(loop);
	call(start_watch, NULL);
	assert_int_equal(write(pipes.fd[1], "x", 1), 1);
	sem_wait_or_fail(&pipes.done);
	assert_int_equal(pipes.got, 'x');
	call(end_watch, NULL);
	close(pipes.fd[0]);
	close(pipes.fd[1]);
}

static void on_sigusr1(void *data)
{
	sem_post(data);
}

static void start_signal(void *data)
{
	assert_int_equal(loop_signal(loop, SIGUSR1, on_sigusr1, data), 0);
	assert_true(loop_signal(loop, SIGKILL, on_sigusr1, data) < 0);
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
	call(start_signal, &done);
	kill(getpid(), SIGUSR1);
	sem_wait_or_fail(&done);
	call(get_mask, &mask);
	assert_true(sigismember(&mask, SIGTERM));
	assert_true(sigismember(&mask, SIGHUP));
	assert_false(sigismember(&mask, SIGUSR1));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static struct {
	bool worked_here, done_here;
	unsigned n;
	sem_t done;
} work;

static void work_slow(void *data)
{
	struct timespec pause = {.tv_nsec = 50000000};

	work.worked_here = loop_is_here(loop);
	nanosleep(&pause, NULL);
	work.n++;
}

static void work_done(void *data)
{
	work.done_here = loop_is_here(loop);
	work.n++;
}

static void start_work(void *data)
{
	loop_work(loop, work_slow, work_done, NULL);
}

static void test_work(void **state)
{
	memset(&work, 0, sizeof(work));
	loop_start(loop);
	call(start_work, NULL);
	assert_true(loop_stop(loop)); /* loop_stop waits for the pool */
	assert_int_equal(work.n, 2);
	assert_false(work.worked_here);
	assert_true(work.done_here);
}

static void start_hanging(void *data)
{
	struct hang *h = data;

	for (int i = 0; i < 8; i++)
		loop_work(loop, hang, NULL, h);
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
	for (int i = 0; i < 8; i++)
		sem_wait_or_fail(&h.began);
	call(start_quick, &done);
	sem_wait_or_fail(&done);
	for (int i = 0; i < 8; i++)
		sem_post(&h.go);
	assert_true(loop_stop(loop));
}

static struct turns {
	struct hang hang;
	sem_t done;
	bool of_many; /* the thousand are of the kind "of_many" */
	/* N: number of calls so far. AT: value of N when the single call ran. */
	unsigned n, at;
} turns[2];

static void count(void *data)
{
	struct turns *t = data;

	__atomic_add_fetch(&t->n, 1, __ATOMIC_SEQ_CST);
}

static void note_turn(void *data)
{
	struct turns *t = data;

	t->at = __atomic_add_fetch(&t->n, 1, __ATOMIC_SEQ_CST);
}

static void turn_noted(void *data)
{
	struct turns *t = data;

	sem_post(&t->done);
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
	sem_post(&t->hang.go);
}

/*
 * A thousand calls for logs do not delay another call, and a thousand other calls do not delay one
 * for a log.
 */
static void test_turns(void **state)
{
	memset(turns, 0, sizeof(turns));
	loop_start(loop);
	for (int i = 0; i < 2; i++) {
		struct turns *t = &turns[i];

		t->of_many = i;
		hang_init(&t->hang);
		sem_init(&t->done, 0, 0);
		call(hang_all, t);
		for (int k = 0; k < 4; k++)
			sem_wait_or_fail(&t->hang.began);
		call(start_turns, t);
		sem_wait_or_fail(&t->done);
		assert_in_range(t->at, 1, 100);
		for (int k = 0; k < 3; k++)
			sem_post(&t->hang.go);
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
	for (int i = 0; i < 8; i++)
		sem_wait_or_fail(&h.began);
	assert_int_equal(pthread_create(&passer, NULL, pass_time, NULL), 0);
	assert_false(loop_stop(loop));
	pthread_join(passer, NULL);
	assert_true(loop_now_ms() - began >= 1000);
	loop_free(loop);
	loop = NULL;
	for (int i = 0; i < 8; i++)
		sem_post(&h.go);
}

int main(void)
{
#define loop_test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		loop_test(test_order),
		loop_test(test_stop_drains),
		loop_test(test_fork_before_start),
		loop_test(test_timers),
		loop_test(test_spinning_timer),
		loop_test(test_watch),
		loop_test(test_signal),
		loop_test(test_work),
		loop_test(test_hanging),
		loop_test(test_turns),
		loop_test(test_end_while_hanging),
		loop_test(test_close_on_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
