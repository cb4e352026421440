/* SPDX-License-Identifier: MIT */
/*
 * The guard of an attempt: a child of the helper, and the parent of the program. It ends the
 * program at its time limit, and kills all processes that the program leaves behind. It never waits
 * for a disk, so a hanging disk can't delay the time limit.
 *
 * Helper and guard are subreapers. Children of an ended process of the attempt become children of
 * the guard, even in a new session. If the guard is killed, the kernel kills the program, and the
 * helper inherits and kills the rest. If the helper is killed, the guard gets a signal and
 * kills all processes. So a program that kills its parent harms neither the daemon nor other
 * replicas.
 *
 * Only the helper, which has one thread, calls these functions.
 */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "backend/local/helper.h"
#include "spec/base/base.h"

/*
 * The kernel sends this signal to the guard when the helper has ended. Helper and guard block it.
 * Other processes ignore it by default.
 */
#define GUARD_ORPHAN_SIGNAL SIGURG

/* How the guard starts the program. Plain data. */
struct guard_program {
	const char *cwd;
	rlim_t nofile;	    /* soft limit of descriptors */
	int64_t limit_ms;   /* time limit; 0: none */
	int64_t grace_ms;   /* from SIGTERM at the limit to SIGKILL */
	char **args, **env; /* NULL-terminated */
};

enum guard_kind { GUARD_STARTED, GUARD_FAILED, GUARD_USED, GUARD_OVER };

/*
 * A message of the guard. The guard sends STARTED, then USED repeatedly, then OVER, and finally
 * USED again. If the program can't be started, the guard sends only FAILED.
 */
struct guard_news {
	enum guard_kind kind;
	enum task_why why;
	/* STARTED: the program's pid; FAILED: an errno; OVER: the wait status */
	int value;
	bool timed_out;		 /* OVER: the program got SIGTERM at its time limit */
	struct task_usage usage; /* USED: the usage so far */
};

struct guard {
	pid_t pid;
	int output_fd; /* the output of the attempt; non-blocking */
	int news_fd;   /* each read returns one struct guard_news */
};

/*
 * Start a guard, which closes its copy of the helper's socket LISTEN_FD. Return 0 or a negative
 * errno. The caller closes both descriptors in *RET.
 */
int guard_start(const struct guard_program *program, int listen_fd, struct guard *ret);
/*
 * Send SIG to the attempt. SIGTERM and SIGKILL go to the process group of PROGRAM, like signals
 * from a terminal. SIGSTOP and SIGCONT go to all processes of the attempt.
 */
void guard_signal(const struct guard *guard, pid_t program, int sig);
/*
 * Call this at the end of file of NEWS_FD. Wait until the guard has exited, then kill the remaining
 * processes. Set *RET_SIG to the signal that ended the guard, or 0. Return false if some processes
 * can't be killed within seconds, for example those of another user.
 */
bool guard_end(const struct guard *guard, int *ret_sig);
