/* SPDX-License-Identifier: MIT */
/*
 * What a task receives from its helper, which is a socket in this test. Also: what proves that a
 * helper is dead.
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#include "backend/base/loop.h"
#include "backend/local/task.h"

static struct loop *loop;
static struct group group;
static struct tasks *tasks;
static sem_t over;
static struct task_end ended;

static void on_ended(void *data, const struct task_end *end)
{
	ended = *end;
	sem_post(&over);
}

static void on_prepared(void *data)
{
}

static const struct task_events events = {.prepared = on_prepared, .ended = on_ended};

static void wait_for_end(enum task_how how)
{
	assert_int_equal(sem_wait(&over), 0);
	assert_int_equal(ended.how, how);
}

/* --- the helper --- */

/* Adopt a task, and return the helper's end of its connection. On the I/O thread. */
static int adopt_pair(struct task **ret)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	*ret = task_adopt(tasks, "/nonexistent", "0.0", fds[0], &events, NULL);
	return fds[1];
}

static void say(int fd, const struct helper_news *news)
{
	assert_int_equal(send(fd, news, sizeof(*news), 0), sizeof(*news));
}

/* Report that the program has ended, and end the helper. */
static void end_helper(int fd, int exit_code)
{
	const struct helper_news last = {
		.kind = HELPER_ENDED,
		.end = {.how = TASK_ENDED, .exit_code = exit_code, .started = 1, .finished = 2},
	};

	say(fd, &last);
	close(fd);
}

static void expect_signal(int fd, int sig)
{
	struct helper_ask ask;

	assert_int_equal(recv(fd, &ask, sizeof(ask), 0), sizeof(ask));
	assert_int_equal(ask.sig, sig);
}

/*
 * End the helper before the task has read its last message. A signal to the helper is still unread
 * in the socket.
 */
static void end_at_once(void *data)
{
	struct task *task;
	int fd = adopt_pair(&task);

	task_signal(task, SIGTERM);
	end_helper(fd, 7);
}

static void test_last_word(void **state)
{
	loop_post(loop, end_at_once, NULL);
	wait_for_end(TASK_ENDED);
	assert_int_equal(ended.exit_code, 7);
}

/* --- programs without a helper --- */

/* True to set the clock of process starts to the boot, when none of the test's processes ran. */
static atomic_bool is_boot;

int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	if (id == CLOCK_BOOTTIME && is_boot)
		*ret = (struct timespec){0};
	return r;
}

/* Report that the program PID runs, and end the helper without reporting how the program ended. */
static void drop_helper(void *data)
{
	const pid_t *pid = data;
	const struct helper_news runs = {.kind = HELPER_STARTED, .value = *pid, .time = 1};
	struct task *task;
	int fd = adopt_pair(&task);

	say(fd, &runs);
	close(fd);
}

/*
 * Start a process in a group of its own, and a child of it. Return the pid of the child. If
 * LEADERLESS, the process then exits.
 */
static pid_t start_group(bool leaderless, pid_t *ret_leader)
{
	int fds[2];
	pid_t child = 0, leader;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	leader = fork();
	if (leader == 0) {
		setsid();
		child = fork();
		while (child == 0)
			pause();
		(void)!write(fds[1], &child, sizeof(child));
		while (!leaderless)
			pause();
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &child, sizeof(child)), sizeof(child));
	close(fds[0]);
	if (leaderless)
		assert_int_equal(waitpid(leader, NULL, 0), leader);
	*ret_leader = leader;
	return child;
}

/*
 * If the helper and its guard were killed, the program's process group is killed, with or without
 * its leader. But the kernel may have given the pid of an ended program to another process.
 */
static void test_group(void **state)
{
	static const struct {
		bool leaderless, is_other;
	} cases[] = {{false, false}, {true, false}, {false, true}};

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (size_t i = 0; i < array_size(cases); i++) {
		pid_t leader, child = start_group(cases[i].leaderless, &leader);
		pid_t watched = cases[i].leaderless ? child : leader;
		int status = 0;

		is_boot = cases[i].is_other;
		loop_post(loop, drop_helper, &leader);
		wait_for_end(TASK_KILLED);
		is_boot = false;
		/* Of two signals, the first one ends the process. */
		kill(watched, SIGTERM);
		waitpid(watched, &status, 0);
		kill(-leader, SIGKILL);
		while (wait(NULL) > 0)
			continue;
		assert_int_equal(WTERMSIG(status), cases[i].is_other ? SIGTERM : SIGKILL);
	}
}

/* --- attempts that an earlier daemon started --- */

static char root[] = "/tmp/kxfs-task.XXXXXX";

static int listen_at(int backlog)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/tasks/0.0.sock", root);
	unlink(a.sun_path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static int make(const char *name, const char *text)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/tasks/%s", root, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

/* ERR is expected of TASK_UNKNOWN. */
static void expect_found(enum task_state state, int err)
{
	struct task_found found;

	task_find(tasks, root, "0.0", &found);
	if (found.fd >= 0)
		close(found.fd);
	assert_int_equal(found.state, state);
	if (state == TASK_UNKNOWN)
		assert_int_equal(found.err, err);
}

/*
 * A helper is dead if no process listens on its socket and no process has its lock. Any other error
 * of connecting to it proves nothing.
 */
static void test_find(void **state)
{
	struct task_found waiting[3];
	int listening, lock;
	char path[96];

	expect_found(TASK_NONE, 0);
	lock = make("0.0.new", "\n\n");
	expect_found(TASK_DROPPED, 0);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	expect_found(TASK_UNKNOWN, -EWOULDBLOCK);
	close(lock);
	listening = listen_at(2);
	for (int i = 0; i < 3; i++) {
		task_find(tasks, root, "0.0", &waiting[i]);
		assert_int_equal(waiting[i].state, TASK_RUNS);
	}
	expect_found(TASK_UNKNOWN, -EAGAIN);
	for (int i = 0; i < 3; i++)
		close(waiting[i].fd);
	close(listening);
	expect_found(TASK_DROPPED, 0);
	close(make("0.0", "1 1 0 0 7 0 0 0 0 1 2\n"));
	expect_found(TASK_OVER, 0);
	/* A damaged result still shows that the program was started. */
	snprintf(path, sizeof(path), "%s/tasks/0.0.new", root);
	assert_int_equal(unlink(path), 0);
	close(make("0.0", "1 1 0 0 7 x"));
	expect_found(TASK_DROPPED, 0);
}

/* A task, and the connection of task_find, or -1. */
struct adopted {
	struct task *task;
	int fd;
};

static void adopt_stopped(void *data)
{
	struct adopted *a = data;

	a->task = task_adopt(tasks, root, "0.0", a->fd, &events, NULL);
	task_signal(a->task, SIGSTOP);
}

static void resume(void *data)
{
	const struct adopted *a = data;

	task_signal(a->task, SIGCONT);
}

/*
 * If the connection to a helper ends, or could not be made at the start, the task connects again.
 * It repeats the newest signal, not one that waited for an earlier connection.
 */
static void test_connect_again(void **state)
{
	for (int known = 0; known < 2; known++) {
		struct adopted a = {.fd = -1};
		int listening = listen_at(8), fd;

		if (known) {
			struct task_found found;

			task_find(tasks, root, "0.0", &found);
			a.fd = found.fd;
			close(accept(listening, NULL, NULL));
		}
		loop_post(loop, adopt_stopped, &a);
		fd = accept(listening, NULL, NULL);
		expect_signal(fd, SIGSTOP);
		loop_post(loop, resume, &a);
		expect_signal(fd, SIGCONT);
		close(fd);
		fd = accept(listening, NULL, NULL);
		expect_signal(fd, SIGCONT);
		end_helper(fd, 9);
		wait_for_end(TASK_ENDED);
		assert_int_equal(ended.exit_code, 9);
		close(listening);
	}
}

/* The helper has ended before the task connects. Its file has the result. */
static void test_ended_meanwhile(void **state)
{
	struct adopted a = {.fd = -1};

	close(make("0.0.new", ""));
	close(make("0.0", "1 1 0 0 7 0 0 0 0 1 2\n"));
	loop_post(loop, adopt_stopped, &a);
	wait_for_end(TASK_ENDED);
	assert_int_equal(ended.exit_code, 7);
}

/* --- a start that waits for the disk --- */

#define HELD 64 /* more than the pool has threads */

static sem_t held;

static void hold(void *data)
{
	sem_wait(&held);
}

static void start_held(void *data)
{
	static char program[] = "true";
	const struct task_config config = {
		.dir = root,
		.name = "1.0",
		.key = "key",
		.cwd = "/",
		.args = (char *const[]){program, NULL},
		.env = (char *const[]){NULL},
	};
	struct task *task;

	for (int i = 0; i < HELD; i++)
		loop_work(loop, hold, NULL, NULL);
	task = task_start(tasks, &config, &events, NULL);
	task_signal(task, SIGTERM);
	for (int i = 0; i < HELD; i++)
		sem_post(&held);
}

/*
 * An attempt that must end before its helper was started is not started at all. (The helper would
 * be this test program.)
 */
static void test_ended_before_it_began(void **state)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/helper", root);
	assert_int_equal(setenv("KXFS_TEST_HELPER", path, 1), 0);
	sem_init(&held, 0, 0);
	loop_post(loop, start_held, NULL);
	wait_for_end(TASK_ENDED);
	assert_int_equal(ended.sig, SIGTERM);
	assert_int_equal(ended.started, 0);
	assert_int_equal(access(path, F_OK), -1);
	sem_destroy(&held);
}

static int setup(void **state)
{
	char path[64];

	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/tasks", root);
	if (mkdir(path, 0700) < 0)
		return -1;
	sem_init(&over, 0, 0);
	loop_new(&loop);
	group_init(&group, loop);
	tasks = tasks_new(loop, &group);
	return loop_start(loop);
}

static int teardown(void **state)
{
	loop_stop(loop);
	tasks_free(tasks);
	loop_free(loop);
	sem_destroy(&over);
	scratch_remove(root);
	return 0;
}

int main(int argc, char **argv)
{
	const char *helper = getenv("KXFS_TEST_HELPER");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_word),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_connect_again),
		cmocka_unit_test(test_ended_meanwhile),
		cmocka_unit_test(test_ended_before_it_began),
	};

	if (helper)
		return creat(helper, 0600) < 0;

	return cmocka_run_group_tests(tests, setup, teardown);
}
