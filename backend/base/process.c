/* SPDX-License-Identifier: MIT */
/*
 * Reads /proc and the user database, and starts programs. The format of /proc/PID/stat is "PID
 * (NAME) STATE PPID PGRP SESSION TTY TPGID FLAGS ... UTIME STIME CUTIME CSTIME ... STARTTIME ...
 * RSS ... EXIT_CODE"; see proc(5).
 */
#include "backend/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/signalfd.h>
#include <time.h>

#include "spec/base/mem.h"

/*
 * Bits of FLAGS: PF_EXITING and PF_SIGNALED of the kernel's include/linux/sched.h. A thread has
 * PF_SIGNALED if a signal has ended it, but also if another thread has called exit or exec.
 * EXIT_CODE, a status as of wait(2), distinguishes these cases. But the kernel shows 0 as EXIT_CODE
 * to readers who may not trace the process.
 */
#define FLAG_EXITING  0x4
#define FLAG_SIGNALED 0x400

/* Return SIGNAL of struct process_stat. P is the ')' after NAME; EXIT_CODE is 50 fields later. */
static int ended_by(unsigned flags, const char *p)
{
	int status;

	for (int i = 0; p && i < 50; i++)
		p = strchr(p + 1, ' ');
	status = p ? atoi(p) : 0;
	if (status == 0 && (flags & FLAG_SIGNALED))
		return PROCESS_HIDDEN;
	return flags & FLAG_EXITING ? status & 0x7f : 0;
}

int process_parse_stat(const char *text, struct process_stat *ret)
{
	/* NAME may contain any byte, even parentheses. */
	const char *p = strrchr(text, ')');
	unsigned long user = 0, system = 0;
	long waited_user = 0, waited_system = 0, pages = 0;
	unsigned long long started = 0;
	char state;
	int parent;
	unsigned flags;

	/* If TEXT ends after FLAGS, the missing fields are 0. */
	if (!p ||
	    sscanf(p + 1,
		   " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %lu %lu %ld %ld %*d %*d %*d %*d "
		   "%llu %*u %ld",
		   &state, &parent, &flags, &user, &system, &waited_user, &waited_system, &started,
		   &pages) < 3)
		return -EINVAL;
	*ret = (struct process_stat){
		.parent = parent,
		.ticks = user + system + (unsigned long)max_of(waited_user, 0L) +
			 (unsigned long)max_of(waited_system, 0L),
		.pages = (unsigned long)max_of(pages, 0L),
		.started = started,
		.remains = state == 'Z' || state == 'X',
		.signal = ended_by(flags, p),
	};
	return 0;
}

int process_stat(pid_t pid, struct process_stat *ret)
{
	char path[32], text[2048], any;
	cleanup_fd int fd = -1;
	ssize_t n;

	if (pid <= 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	if (process_parse_stat(text, ret) < 0)
		return -ESRCH;
	if (ret->signal == PROCESS_HIDDEN) {
		/*
		 * The kernel lets kxfs read this link only if it also shows kxfs the real
		 * EXIT_CODE. So if kxfs can read the link, EXIT_CODE is really 0, and no signal
		 * ended the process.
		 */
		snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
		if (readlink(path, &any, 1) >= 0 || errno != EACCES)
			ret->signal = 0;
	}
	return 0;
}

unsigned long long process_clock(void)
{
	const unsigned long long ticks = (unsigned long long)sysconf(_SC_CLK_TCK);
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (unsigned long long)ts.tv_sec * ticks +
	       (unsigned long long)ts.tv_nsec * ticks / 1000000000;
}

void process_boot(char ret[37])
{
	cleanup_fd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memset(ret, 0, 37);
	if (fd >= 0 && read(fd, ret, 36) != 36)
		*ret = '\0';
}

/* The soft limit before process_allow_descriptors raised it; 0 until then. */
static _Atomic rlim_t given;

rlim_t process_given_descriptors(void)
{
	struct rlimit limit;
	rlim_t was = given;

	if (was)
		return was;
	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? RLIM_INFINITY : limit.rlim_cur;
}

rlim_t process_allow_descriptors(void)
{
	rlim_t none = 0, soft = process_given_descriptors();
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return RLIM_INFINITY;
	atomic_compare_exchange_strong(&given, &none, soft);
	soft = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? soft : limit.rlim_cur;
}

void process_limit_descriptors(rlim_t soft)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= soft)
		return;
	limit.rlim_cur = soft;
	setrlimit(RLIMIT_NOFILE, &limit);
}

char *process_home(void)
{
	const char *home = getenv("HOME");
	struct passwd pw, *found = NULL;
	char buf[4096];

	if ((!home || *home != '/') && getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found) == 0)
		home = found ? found->pw_dir : NULL;
	return home && *home == '/' ? text_copy(home) : NULL;
}

char *process_user(uid_t uid)
{
	struct passwd pw, *found = NULL;
	char buf[4096];

	getpwuid_r(uid, &pw, buf, sizeof(buf), &found);
	return found ? text_copy(found->pw_name) : NULL;
}

char *process_submitter(void)
{
	cleanup_free char *user = process_user(getuid());
	char host[HOST_NAME_MAX + 1] = "localhost";

	gethostname(host, sizeof(host) - 1);
	return user ? text_print("%s@%s", user, host) : text_print("%u@%s", getuid(), host);
}

/* --- programs --- */

#define SELF	   "/proc/self/exe"
#define SPAWN_NAME "plugin-start"

/* This program's path at its start; "" if unknown. Written only before threads start. */
static char installed[PATH_MAX];

/*
 * Return the path with which kxfs starts itself again. BUF has PATH_MAX bytes. Usually this is
 * SELF, which is the running version even if a package manager has replaced the file. But pip moves
 * the old file to another directory before deleting it, and there the old program does not find its
 * libraries. In this case, return the original path, where pip has installed the new version.
 */
static const char *self_path(char *buf)
{
	ssize_t n = readlink(SELF, buf, PATH_MAX - 1);
	size_t len = strlen(installed);

	if (n < 0 || len == 0)
		return SELF;
	buf[n] = '\0';
	if (strncmp(buf, installed, len) == 0 && (!buf[len] || streq(buf + len, " (deleted)")))
		return SELF;
	return access(installed, X_OK) == 0 ? installed : SELF;
}

void spawn_between(char **argv)
{
	int report_fd, null, err;
	ssize_t n = readlink(SELF, installed, sizeof(installed) - 1);

	installed[max_of(n, 0)] = '\0';
	if (!argv[0] || !streq(argv[0], SPAWN_NAME))
		return;
	report_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (!argv[1] || !argv[2] || report_fd < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0)
		_exit(EXIT_FAILURE);
	process_limit_descriptors(strtoull(argv[1], NULL, 10));
	execvp(argv[2], argv + 2);
	err = errno;
	(void)!write(report_fd, &err, sizeof(err));
	_exit(EXIT_FAILURE);
}

int spawn_self(char *const *argv, char *const *env, const int fds[3], pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t all, none;
	char buf[PATH_MAX];
	int err;

	/* sigfillset omits the signals that glibc uses itself */
	memset(&all, 0xff, sizeof(all));
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawn_file_actions_init(&files);
	err = 0;
	for (int i = 0; i < 3 && !err; i++)
		err = fds[i] < 0
			      ? posix_spawn_file_actions_addopen(&files, i, "/dev/null", O_RDWR, 0)
			      : posix_spawn_file_actions_adddup2(&files, fds[i], i);
	/* Some of curl's descriptors are not close-on-exec. */
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	if (!err)
		err = posix_spawn(ret, self_path(buf), &files, &attr, argv, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -err;
}

int spawn_program(char *const *args, char *const *env, const int fds[3], pid_t *ret)
{
	char name[] = SPAWN_NAME;
	cleanup_free char *limit = text_print("%ju", (uintmax_t)process_given_descriptors());
	cleanup_free char **argv = NULL;
	size_t n = 0;

	while (args[n])
		n++;
	argv = new0_n(char *, n + 3);
	argv[0] = name;
	argv[1] = limit;
	memcpy(argv + 2, args, n * sizeof(*argv));
	return spawn_self(argv, env, fds, ret);
}

/* --- signals --- */

void interrupt_hold(struct interrupt *i)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction now;
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &i->was);
	sigemptyset(&set);
	for (size_t k = 0; k < array_size(signals); k++)
		if (sigismember(&i->was, signals[k]) == 0 &&
		    sigaction(signals[k], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			sigaddset(&set, signals[k]);
	i->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (i->fd >= 0)
		pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void interrupt_release(struct interrupt *i)
{
	base_close_fd(&i->fd);
	i->fd = -1;
	pthread_sigmask(SIG_SETMASK, &i->was, NULL);
}
