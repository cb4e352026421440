/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/stat is "PID (NAME) STATE PPID PGRP SESSION TTY TPGID FLAGS ... UTIME STIME CUTIME
 * CSTIME ... RSS ... EXIT_CODE"; see proc(5). kxfs stores its limit of descriptors before it first
 * raises it, since it starts other programs with the old limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdatomic.h>

#include "backend/base/process.h"
#include "spec/base/mem.h"

/*
 * Bits of FLAGS, from the kernel's include/linux/sched.h: PF_EXITING and PF_SIGNALED. A thread that
 * a signal ends has PF_SIGNALED, and so has a thread that ends because another one called exit or
 * exec. EXIT_CODE, the process's status as returned by wait(2), distinguishes them: after a signal
 * its low seven bits are not 0. For a reader that may not trace the process, EXIT_CODE is 0.
 */
#define FLAG_EXITING  0x4
#define FLAG_SIGNALED 0x400

/*
 * Return the signal that ended a process. P is at the end of NAME; EXIT_CODE is the 50th field
 * after it.
 */
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
	/* NAME may contain any byte, so find its end by the last parenthesis. */
	const char *p = strrchr(text, ')');
	unsigned long user = 0, system = 0;
	long waited_user = 0, waited_system = 0, pages = 0;
	char state;
	int parent;
	unsigned flags;

	/* If the text is truncated, the fields after FLAGS are 0. */
	if (!p ||
	    sscanf(p + 1,
		   " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %lu %lu %ld %ld %*d %*d %*d %*d "
		   "%*u %*u %ld",
		   &state, &parent, &flags, &user, &system, &waited_user, &waited_system,
		   &pages) < 3)
		return -EINVAL;
	*ret = (struct process_stat){
		.parent = parent,
		.ticks = user + system + (unsigned long)max_of(waited_user, 0L) +
			 (unsigned long)max_of(waited_system, 0L),
		.pages = (unsigned long)max_of(pages, 0L),
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
		/* The kernel shows EXIT_CODE to the readers that may read this link. */
		snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
		if (readlink(path, &any, 1) >= 0 || errno != EACCES)
			ret->signal = 0;
	}
	return 0;
}

void process_boot(char ret[37])
{
	cleanup_fd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memset(ret, 0, 37);
	if (fd >= 0 && read(fd, ret, 36) != 36)
		*ret = '\0';
}

/* The soft limit before it was raised; 0 if it was not raised. */
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
