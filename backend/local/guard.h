/* SPDX-License-Identifier: MIT */
/*
 * The guard of an attempt: a process between its helper and its program, a child of the one and the parent of the
 * other. It starts the program, ends it if it runs longer than its limit of time (which no disk can delay, since the
 * guard waits for none), and kills all that is left when the program has ended. All calls are the helper's, which has
 * one thread.
 *
 * Helper and guard are subreapers: every process that a program starts comes to the guard when its parent ends,
 * whatever it does with sessions and environments. A program that kills its parent kills the guard; then all its
 * processes come to the helper, which kills them. When the helper is killed, the guard gets a signal and kills all. A
 * program whose guard is killed is killed by the kernel. Nothing a program does to its parent reaches the daemon or
 * another replica.
 *
 * Other functions may be linked in place of these, to start programs in another way.
 */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "backend/local/helper.h"
#include "spec/base/base.h"

/* The kernel sends it to the guard when the helper has ended; both have it blocked. By default it is ignored. */
#define GUARD_ORPHAN_SIGNAL SIGURG

/* What the guard starts, and how. Plain data. */
struct guard_program {
	const char *cwd;
	rlim_t nofile;	    /* the program's soft limit of descriptors */
	int64_t limit_ms;   /* how long the program may run; 0: for ever */
	int64_t grace_ms;   /* the time that it has then between SIGTERM and SIGKILL */
	char **args, **env; /* NULL-terminated arguments and environment */
};

enum guard_kind { GUARD_STARTED, GUARD_FAILED, GUARD_USED, GUARD_OVER, GUARD_LEFT };

/*
 * The guard tells the helper these, in this order: STARTED or FAILED, USED now and then, OVER, USED for the last time,
 * and LEFT if something can't be killed.
 */
struct guard_news {
	enum guard_kind kind;
	enum task_why why;
	/* STARTED: the program's pid; FAILED: an errno; OVER: its status as waitpid has it */
	int value;
	/* OVER: for its limit of time it was sent SIGTERM before it ended */
	bool timed_out;
	struct task_usage usage; /* USED: what was used */
};

struct guard {
	pid_t pid;
	int output_fd; /* what the attempt prints; does not block */
	int news_fd;   /* brings one struct guard_news a read, and ends when the guard has ended */
};

/*
 * Start a guard, which closes its copy of LISTEN_FD, the helper's. 0 or a negative errno; the caller closes both
 * descriptors in *RET.
 */
int guard_start(const struct guard_program *program, int listen_fd, struct guard *ret);
/* Send SIGTERM or SIGKILL to the group of PROGRAM, as a terminal would; SIGSTOP or SIGCONT to all of the attempt. */
void guard_signal(const struct guard *guard, pid_t program, int sig);
/*
 * NEWS_FD has ended: wait for the guard, and kill all that is left of the attempt. *RET_SIG: the signal that has ended
 * the guard; 0: it has ended itself. False: after some seconds something was left, which belongs to another user or
 * can't end.
 */
bool guard_end(const struct guard *guard, int *ret_sig);
