/* SPDX-License-Identifier: MIT */
/*
 * The guard of an attempt: a child of the helper, and the parent of the program. It starts the
 * program, ends it at its time limit, and kills all remaining processes when the program has ended.
 * It never waits for a disk, so a disk can't delay the time limit. Only the helper calls these
 * functions; it has one thread.
 *
 * Helper and guard are subreapers: every process that a program starts becomes a child of the guard when its parent
 * ends, whatever it does with sessions and environments. If the guard is killed, the kernel kills the program, and its
 * other processes become children of the helper, which kills them. If the helper is killed, the guard gets a signal and
 * kills all. So nothing that a program does to its parent reaches the daemon or another replica.
 *
 * The simulator (tests/sim) links its own versions of these functions.
 */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "backend/local/helper.h"
#include "spec/base/base.h"

/*
 * The kernel sends this signal to the guard when the helper has ended. Helper and guard block it.
 * Its default action is to be ignored, so it can't kill a process.
 */
#define GUARD_ORPHAN_SIGNAL SIGURG

/* The program, and how the guard starts it. Plain data. */
struct guard_program {
	const char *cwd;
	rlim_t nofile;	    /* the program's soft limit of descriptors */
	int64_t limit_ms;   /* time limit of the program; 0: no limit */
	int64_t grace_ms;   /* time between SIGTERM and SIGKILL at the limit */
	char **args, **env; /* NULL-terminated arguments and environment */
};

enum guard_kind { GUARD_STARTED, GUARD_FAILED, GUARD_USED, GUARD_OVER, GUARD_LEFT };

/*
 * The guard's messages to the helper, in this order: STARTED or FAILED, USED repeatedly, OVER, the
 * last USED, and LEFT if some process can't be killed.
 */
struct guard_news {
	enum guard_kind kind;
	enum task_why why;
	/* STARTED: the program's pid; FAILED: an errno; OVER: its status as waitpid has it */
	int value;
	/* OVER: the program got SIGTERM at its time limit */
	bool timed_out;
	struct task_usage usage; /* USED */
};

struct guard {
	pid_t pid;
	int output_fd; /* the output of the attempt; non-blocking */
	int news_fd;   /* one struct guard_news a read; ends when the guard ends */
};

/*
 * Start a guard, which closes its copy of the helper's LISTEN_FD. Return 0 or a negative errno. The caller closes both
 * descriptors in *RET.
 */
int guard_start(const struct guard_program *program, int listen_fd, struct guard *ret);
/* Send SIGTERM or SIGKILL to the group of PROGRAM, as a terminal would; SIGSTOP or SIGCONT to all of the attempt. */
void guard_signal(const struct guard *guard, pid_t program, int sig);
/*
 * Wait for the guard, whose NEWS_FD has ended, and kill all remaining processes of the attempt. Set
 * *RET_SIG to the signal that ended the guard, or 0. Return false if some process, of another user
 * or unkillable, is left after some seconds.
 */
bool guard_end(const struct guard *guard, int *ret_sig);
