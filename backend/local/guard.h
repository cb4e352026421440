/* SPDX-License-Identifier: MIT */
/*
 * The guard of an attempt: a child of the helper, and the parent of the program. The guard starts
 * the program, and ends the program at its time limit. When the program has ended, the guard kills
 * all remaining processes. The guard never waits for a disk, so a hanging disk can't delay the time
 * limit. Only the helper, which has one thread, calls these functions.
 *
 * Helper and guard are subreapers. When a process of the attempt ends, its children become children
 * of the guard, even if they have started a new session or changed their environment. If the guard
 * is killed, the kernel kills the program. The other processes of the attempt become children of
 * the helper, which kills them. If the helper is killed, the guard gets a signal and kills all
 * processes of the attempt. So a program that kills its parent affects neither the daemon nor other
 * replicas.
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
 * Its default action is to be ignored, so it never kills a process.
 */
#define GUARD_ORPHAN_SIGNAL SIGURG

/* The program, and how the guard starts it. Plain data. */
struct guard_program {
	const char *cwd;
	rlim_t nofile;	    /* the program's soft limit of descriptors */
	int64_t limit_ms;   /* time limit of the program; 0: no limit */
	int64_t grace_ms;   /* time between SIGTERM and SIGKILL when the limit is reached */
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
	/* with STARTED: the program's pid; with FAILED: an errno; with OVER: the wait status */
	int value;
	/* with OVER: true if the program got SIGTERM at its time limit */
	bool timed_out;
	struct task_usage usage; /* with USED: the usage so far */
};

struct guard {
	pid_t pid;
	int output_fd; /* the output of the attempt; non-blocking */
	/* each read returns one struct guard_news; end of file when the guard ends */
	int news_fd;
};

/*
 * Start a guard. The guard closes its copy of LISTEN_FD, the helper's socket. Return 0 or a
 * negative errno. The caller closes both descriptors in *RET.
 */
int guard_start(const struct guard_program *program, int listen_fd, struct guard *ret);
/*
 * Send SIG to the attempt. SIGTERM and SIGKILL go to the process group of PROGRAM, like signals
 * from a terminal. SIGSTOP and SIGCONT go to all processes of the attempt.
 */
void guard_signal(const struct guard *guard, pid_t program, int sig);
/*
 * Wait until the guard has exited, then kill all remaining processes of the attempt. Call this
 * after NEWS_FD has reached end of file. Set *RET_SIG to the signal that ended the guard, or 0.
 * Return false if processes are still there after some seconds, because they belong to another user
 * or can't be killed.
 */
bool guard_end(const struct guard *guard, int *ret_sig);
