/* SPDX-License-Identifier: MIT */
/* Runs in the guard, in its child that becomes the program, and in the helper; see guard.h. */
#include "backend/local/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "backend/base/lock.h"
#include "backend/base/loop.h"
#include "backend/base/process.h"
#include "backend/base/thread.h"
#include "backend/local/descent.h"
#include "spec/base/mem.h"

/* --- the sampler --- */

/*
 * A thread of the guard samples the usage of the attempt's processes. The main thread must never
 * hang, but reading /proc may hang if the disk of a process hangs.
 */
/* pause between two samples; after a slow sample it is longer (SHARE) */
#define PAUSE_MS 1000
#define FIRST_MS 100 /* the pause before the first sample */
/*
 * Pauses are so long that the sampler uses at most 1/SHARE of the CPU time of one core. This limit
 * counts only the sampler's thread. The cost for the whole machine is about a fifth higher.
 */
#define SHARE 600
/* After a sample that took more CPU time than this, count Rss instead of Pss (descent_sample). */
#define DEAR_US 20000

struct sampler {
	struct lock lock;	 /* protects USAGE */
	struct task_usage usage; /* the newest sample */
	int64_t returned;	 /* USAGE.samples when the guard read USAGE last */
	/* Only the thread uses the members below. */
	bool shared; /* see descent_sample */
	/*
	 * Peak memory of the guard in KiB. A forked child starts with this value as its own peak.
	 * So the peak of a child is known only if it is higher than this value.
	 */
	long own_maxrss;
};

static int64_t clock_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void note_time(struct task_usage *u)
{
	/* The clock may have been set back. Even then, LAST must not be before FIRST. */
	u->last = max_of(clock_us(CLOCK_REALTIME) * 1000, u->first);
	if (!u->first)
		u->first = u->last;
}

/* Return the CPU time of all ended processes. Raise U's peak memory if one of them used more. */
static int64_t count_ended(const struct sampler *sampler, struct task_usage *u)
{
	struct rusage ended;

	getrusage(RUSAGE_CHILDREN, &ended);
	if (ended.ru_maxrss > sampler->own_maxrss)
		u->memory_peak = max_of(u->memory_peak, (int64_t)ended.ru_maxrss * 1024);
	return (ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) * INT64_C(1000000) +
	       ended.ru_utime.tv_usec + ended.ru_stime.tv_usec;
}

/* Take one sample. Return the ms until the next one. */
static int64_t sampler_once(struct sampler *sampler, int64_t *seen_us)
{
	int64_t cost = clock_us(CLOCK_THREAD_CPUTIME_ID), now, ended_us, was_us;
	struct task_usage u = sampler->usage; /* no other thread writes USAGE */
	struct descent all;
	bool known = descent_sample(sampler->shared, &all);

	ended_us = count_ended(sampler, &u);
	now = clock_us(CLOCK_MONOTONIC);
	cost = clock_us(CLOCK_THREAD_CPUTIME_ID) - cost;
	sampler->shared = sampler->shared && cost < DEAR_US;
	if (known) {
		note_time(&u);
		was_us = u.cpu_us;
		/* Never decrease: a process that has just ended may be missing in both counts. */
		u.cpu_us = max_of(u.cpu_us, ended_us + all.cpu_us);
		if (u.samples++ && now > *seen_us)
			u.cpu_now = (u.cpu_us - was_us) * 1000 / (now - *seen_us);
		u.memory_now = all.memory;
		u.memory_peak = max_of(u.memory_peak, all.memory);
		*seen_us = now;
		lock_scope(&sampler->lock);
		sampler->usage = u;
	}
	return max_of((int64_t)PAUSE_MS, cost * SHARE / 1000);
}

static void *sampler_main(void *data)
{
	int64_t ms = FIRST_MS, seen_us = 0;

	for (;;) {
		const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

		nanosleep(&pause, NULL);
		ms = sampler_once(data, &seen_us);
	}
	return NULL;
}

/* Call this before the program is started. The sampler is never freed. */
static struct sampler *sampler_new(void)
{
	struct sampler *sampler = new0(struct sampler);
	struct rusage own;

	getrusage(RUSAGE_SELF, &own);
	*sampler = (struct sampler){
		.lock = LOCK_INIT,
		.usage = {.cpu_now = -1, .memory_now = -1, .memory_peak = -1},
		.shared = true,
		.own_maxrss = own.ru_maxrss,
	};
	return sampler;
}

/* If the thread can't be started, usage is known only at the end of the attempt. */
static void sampler_begin(struct sampler *sampler)
{
	(void)thread_start(sampler_main, sampler, NULL);
}

/* Set *RET to the newest usage. Return false if there is no new sample since the last call. */
static bool sampler_news(struct sampler *sampler, struct task_usage *ret)
{
	lock_scope(&sampler->lock);
	*ret = sampler->usage;
	if (ret->samples == sampler->returned)
		return false;
	sampler->returned = ret->samples;
	return true;
}

/* Set *RET to the final usage. The guard must have reaped all processes of the attempt. */
static void sampler_end(struct sampler *sampler, struct task_usage *ret)
{
	sampler_news(sampler, ret);
	ret->cpu_us = count_ended(sampler, ret);
	note_time(ret);
}

#define GUARD_NAME "job-guard"
/* how long processes may take to end after SIGKILL */
#define KILL_MS	     5000
#define KILL_LOOK_MS 10

/* --- in the helper and in the guard --- */

/* Kill all descendants, and wait for their end. Return false if some remain after KILL_MS. */
static bool kill_all(void)
{
	int64_t deadline = (int64_t)loop_now_ms() + KILL_MS;
	const struct timespec pause = {.tv_nsec = KILL_LOOK_MS * 1000000L};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		pid_t pid;

		do
			pid = waitpid(-1, NULL, WNOHANG);
		while (pid > 0);
		if (pid < 0 && errno == ECHILD)
			return true;
		if ((int64_t)loop_now_ms() > deadline)
			return false;
		descent_signal(getpid(), SIGKILL);
		sigtimedwait(&child, NULL, &pause);
	}
}

/* --- in the guard --- */

/* True if a directory of PATH has an executable file named FILE. */
static bool is_on_path(const char *file)
{
	const char *path = getenv("PATH");

	path = path ? path : "/bin:/usr/bin";
	for (;;) {
		size_t len = strcspn(path, ":");
		cleanup_free char *full =
			text_print("%.*s/%s", len ? (int)len : 1, len ? path : ".", file);

		if (access(full, X_OK) == 0)
			return true;
		if (!path[len])
			return false;
		path += len + 1;
	}
}

/* In the child: execute the program. If this fails, write the reason to FD. */
static _Noreturn void become_program(const struct guard_program *program, int out_fd, int fd)
{
	struct guard_news news = {.kind = GUARD_FAILED, .why = TASK_EXEC};
	pid_t guard = getppid();
	sigset_t none;
	int null_fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != guard)
		_exit(1);
	setsid();
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	process_limit_descriptors(program->nofile);
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null_fd >= 0 && dup2(null_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0 &&
	    dup2(out_fd, STDERR_FILENO) >= 0) {
		if (chdir(program->cwd) == 0) {
			environ = program->env;
			execvp(program->args[0], program->args);
		} else {
			news.why = TASK_CWD;
		}
	}
	news.value = errno;
	if (news.why == TASK_EXEC && errno == ENOENT && !strchr(program->args[0], '/') &&
	    !is_on_path(program->args[0]))
		news.why = TASK_SEARCH;
	(void)!write(fd, &news, sizeof(news));
	_exit(1);
}

/* Start the program, and set *RET to the message STARTED or FAILED. */
static void start_program(const struct guard_program *program, int out_fd, struct guard_news *ret)
{
	int fds[2];
	pid_t pid;

	*ret = (struct guard_news){.kind = GUARD_FAILED, .why = TASK_HELPER};
	pid = pipe2(fds, O_CLOEXEC) < 0 ? -1 : fork();
	if (pid < 0) {
		ret->value = errno;
		return;
	}
	if (pid == 0)
		become_program(program, out_fd, fds[1]);
	close(fds[1]);
	/* A successful exec closes the pipe, so the end of file means success. */
	if (read(fds[0], ret, sizeof(*ret)) != sizeof(*ret))
		*ret = (struct guard_news){.kind = GUARD_STARTED, .value = pid};
	close(fds[0]);
}

/*
 * Reap processes until the program PID has ended, and write usage to FD. Set *RET to how it ended.
 * At its time limit (by the monotonic clock), send it SIGTERM, and SIGKILL after the grace period.
 * Return false if the helper ends first.
 */
static bool await_program(const struct guard_program *program, pid_t pid, pid_t helper,
			  struct sampler *sampler, int fd, struct guard_news *ret)
{
	int64_t due = program->limit_ms ? (int64_t)loop_now_ms() + program->limit_ms : 0, ms;
	struct guard_news used = {.kind = GUARD_USED};
	int unread = 0;
	sigset_t set;
	pid_t gone;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, GUARD_ORPHAN_SIGNAL);
	while (getppid() == helper) {
		while ((gone = waitpid(-1, &ret->value, WNOHANG)) > 0) {
			if (gone == pid)
				return true;
		}
		if (due && (int64_t)loop_now_ms() >= due) {
			kill(-pid, ret->timed_out ? SIGKILL : SIGTERM);
			/* a stopped process handles SIGTERM only after SIGCONT */
			kill(-pid, SIGCONT);
			due = ret->timed_out ? 0 : (int64_t)loop_now_ms() + program->grace_ms;
			ret->timed_out = true;
		}
		/*
		 * Write only to an empty pipe. The helper may be waiting for a disk, and a full
		 * pipe would block the guard.
		 */
		if (ioctl(fd, FIONREAD, &unread) == 0 && unread == 0 &&
		    sampler_news(sampler, &used.usage))
			(void)!write(fd, &used, sizeof(used));
		ms = due ? max_of(due - (int64_t)loop_now_ms(), INT64_C(0)) : PAUSE_MS;
		ms = min_of(ms, (int64_t)PAUSE_MS);
		sigtimedwait(&set, NULL,
			     &(struct timespec){.tv_sec = ms / 1000,
						.tv_nsec = ms % 1000 * 1000000});
	}
	return false;
}

static _Noreturn void run_guard(const struct guard_program *program, pid_t helper, int out_fd,
				int fd)
{
	struct guard_news news;
	struct sampler *sampler = sampler_new();
	pid_t pid;

	prctl(PR_SET_NAME, GUARD_NAME);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, GUARD_ORPHAN_SIGNAL);
	if (getppid() != helper)
		_exit(1);
	start_program(program, out_fd, &news);
	close(out_fd);
	pid = news.value;
	(void)!write(fd, &news, sizeof(news));
	if (news.kind == GUARD_STARTED) {
		sampler_begin(sampler);
		news = (struct guard_news){.kind = GUARD_OVER};
		if (await_program(program, pid, helper, sampler, fd, &news))
			(void)!write(fd, &news, sizeof(news));
	}
	/* The helper inherits and reports processes that can't be killed. */
	(void)kill_all();
	if (news.kind == GUARD_OVER) {
		news = (struct guard_news){.kind = GUARD_USED};
		sampler_end(sampler, &news.usage);
		(void)!write(fd, &news, sizeof(news));
	}
	_exit(0);
}

/* --- in the helper --- */

int guard_start(const struct guard_program *program, int listen_fd, struct guard *ret)
{
	cleanup_fd int in = -1, out = -1, news_in = -1, news_out = -1;
	pid_t self = getpid(), pid;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	in = fds[0];
	out = fds[1];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	news_in = fds[0];
	news_out = fds[1];
	fcntl(in, F_SETFL, O_NONBLOCK);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(in);
		close(listen_fd);
		run_guard(program, self, out, news_out);
	}
	*ret = (struct guard){pid, take_fd(&in), take_fd(&news_in)};
	return 0;
}

void guard_signal(const struct guard *guard, pid_t program, int sig)
{
	if (sig == SIGTERM || sig == SIGKILL)
		kill(-program, sig);
	else if (sig == SIGSTOP || sig == SIGCONT)
		descent_signal(guard->pid, sig);
	/* again, for processes that were forked during the first pass */
	if (sig == SIGSTOP)
		descent_signal(guard->pid, sig);
}

bool guard_end(const struct guard *guard, int *ret_sig)
{
	int status = 0;

	waitpid(guard->pid, &status, 0);
	*ret_sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return kill_all();
}
