/* SPDX-License-Identifier: MIT */
/*
 * What the daemon (task.c) and the helper of one attempt of a replica (helper.c) agree on.
 *
 * The helper is started as HELPER_NAME, with instructions as standard input and a listening Unix socket
 * (SOCK_SEQPACKET) as standard output. On disk an attempt has these files in the job's folder:
 *
 *	tasks/NAME.sock		the socket. The daemon binds it before the helper is started, and every later
 *				daemon connects to it: that succeeds only if the helper lives
 *	tasks/NAME.new		is made by the helper right before it starts the program, with the program's GPUs and
 *				room for the end.
 *				The helper and its guard hold an flock on it as long as they live
 *	tasks/NAME		how the attempt has ended, and what it has used: NAME.new, written, synced and renamed
 *
 * The instructions are a file of texts, each with its NUL: the job's folder, the log's key, NAME, the working
 * directory, the soft limit of descriptors that the program gets, its limit of time and its grace (ms; 0: none), its
 * GPUs (hexadecimal, a bit each), how many arguments there are, these, and then the environment.
 *
 * A helper may outlive the kxfs that started it, so all of this belongs to the format of the state directory: a change
 * of it raises the version in fs/mount/state.c.
 */
#pragma once

#include "backend/local/look.h"

/* argv[0], and the name that ps shows. It does not begin with kxfs, so that "pkill kxfs" means the daemon alone. */
#define HELPER_NAME "job-helper"

#define HELPER_DIR  "tasks"
#define HELPER_SOCK ".sock"
#define HELPER_NEW  ".new"

enum task_how {
	TASK_NOT_STARTED, /* see WHY and ERR */
	TASK_ENDED,	  /* with EXIT_CODE or by SIG */
	TASK_KILLED,	  /* the helper was killed, by SIG (0: unknown), and the program with it */
};

/* What failed where a program was not started. APP: nobody knows what the program is, which only the daemon says. */
enum task_why { TASK_HELPER, TASK_OUTPUT, TASK_CWD, TASK_EXEC, TASK_SEARCH, TASK_APP };

/*
 * How an attempt has ended. Times are ns since 1970. Plain data: the helper fills it in, and so does the daemon for
 * an attempt whose helper could not be started or is gone.
 */
struct task_end {
	enum task_how how;
	enum task_why why;
	/* An errno; with TASK_ENDED: ETIMEDOUT if it was ended for its limit of time, else 0. */
	int err;
	int exit_code; /* -1: none */
	int sig;       /* 0: none */
	int lost;      /* the errno for which output was lost; 0: none was */
	int late;      /* 1: the output was still open after all of the attempt was gone */
	int left;      /* 1: something of it can't be killed */
	int64_t started, finished;
};

/* News from the helper; HELPER_STARTED is sent to each daemon that connects while the program runs. */
enum helper_kind { HELPER_STARTED, HELPER_GROWN, HELPER_LOST, HELPER_ENDED, HELPER_USED };

struct helper_news {
	enum helper_kind kind;
	int value;	     /* STARTED: the program's pid; LOST: the errno */
	int64_t time;	     /* STARTED: when */
	struct task_end end; /* ENDED: how */
};

/*
 * HELPER_USED, which is longer than struct helper_news. It is sent only when the daemon has read all that was sent
 * before, so that it never fills the connection, and once more before ENDED.
 */
struct helper_used {
	enum helper_kind kind;
	struct task_usage usage;
};

/*
 * To the helper: a signal (SIGTERM, SIGKILL, SIGSTOP, SIGCONT), which the helper keeps until the program was started;
 * or HELPER_SEEN: the daemon has seen HELPER_GROWN.
 */
#define HELPER_SEEN 0

struct helper_ask {
	int sig;
};

/* No figure of what was used may be larger. */
#define HELPER_FIGURE_MAX (INT64_C(1) << 53)

/* Can U, of which the last look is told, be what an attempt has used? */
bool helper_usage_is_sane(const struct task_usage *u);

/*
 * The whole life of the helper, in a process of its own: do what INSTRUCTIONS_FD says, for a daemon that connects to
 * LISTEN_FD. 0, or a negative errno if the instructions can't be read.
 */
int helper_run(int instructions_fd, int listen_fd);

/*
 * Read the end of an attempt from DIR/tasks/NAME, and what it has used; RET_USAGE->last is 0 if that is not known. 0 or
 * a negative errno; -EINVAL: the file is damaged.
 */
int helper_end_read(const char *dir, const char *name, struct task_end *ret,
		    struct task_usage *ret_usage);
/* The GPUs of the program that runs as DIR/tasks/NAME, a bit each; 0: it has none. */
uint64_t helper_gpus_read(const char *dir, const char *name);
