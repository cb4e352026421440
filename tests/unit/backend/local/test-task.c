/* SPDX-License-Identifier: MIT */
/* What a task hears of its helper, which is a socket here. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/base/loop.h"
#include "backend/local/task.h"

static struct loop *loop;
static struct group group;
static struct tasks *tasks;
static sem_t over;
static struct task_end ended;

static void on_ended(void *data, const struct task_end *end)
{
	(void)data;
	ended = *end;
	sem_post(&over);
}

static const struct task_events events = {.ended = on_ended};

/* The helper ends with a signal unread in its socket, before anybody has heard what it said last. */
static void end_helper(void *data)
{
	const struct helper_news last = {
		.kind = HELPER_ENDED,
		.end = {.how = TASK_ENDED, .exit_code = 7, .started = 1, .finished = 2},
	};
	struct task *task;
	int fds[2];

	(void)data;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	task = task_adopt(tasks, "/nonexistent", "0.0", fds[0], &events, NULL);
	task_signal(task, SIGTERM);
	assert_int_equal(send(fds[1], &last, sizeof(last), 0), sizeof(last));
	close(fds[1]);
}

static void test_last_word(void **state)
{
	(void)state;
	loop_post(loop, end_helper, NULL);
	assert_int_equal(sem_wait(&over), 0);
	assert_int_equal(ended.how, TASK_ENDED);
	assert_int_equal(ended.exit_code, 7);
}

static int setup(void **state)
{
	(void)state;
	sem_init(&over, 0, 0);
	loop_new(&loop);
	group_init(&group, loop);
	tasks = tasks_new(loop, &group);
	return loop_start(loop);
}

static int teardown(void **state)
{
	(void)state;
	loop_stop(loop);
	tasks_free(tasks);
	loop_free(loop);
	sem_destroy(&over);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_word),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
