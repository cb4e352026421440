/* SPDX-License-Identifier: MIT */
/*
 * What the daemon (task.c) shares with the helper of one attempt of a replica (helper.c): a
 * protocol, and files in the job's folder. The helper is started as HELPER_NAME, with instructions
 * as standard input and a listening Unix socket (SOCK_SEQPACKET) as standard output.
 *
 *	tasks/NAME.sock		The socket. The daemon binds it before it starts the helper. Later
 *				daemons connect to it. This succeeds only if the helper is running
 *	tasks/NAME.new		The helper makes this file right before it starts the program. It
 *				has the program's GPUs, and reserves space for NAME. The helper and
 *				its guard hold an flock on it while they run
 *	tasks/NAME		How the attempt ended, and its usage. The helper writes this into
 *				NAME.new, syncs that file, and renames it
 *
 * The instructions are NUL-terminated strings: the job's folder, the log's key, NAME, the working
 * directory, the soft limit of descriptors, the time limit and the grace period (ms; 0: none), the
 * GPUs (hexadecimal, a bit for each), the number of arguments, the arguments, the environment.
 *
 * Helpers outlive the kxfs that started them. After a change of the protocol or the files, raise
 * the version of the state directory in fs/mount/state.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The argv[0] of helpers. It does not begin with kxfs, so "pkill kxfs" ends only the daemon. */
#define HELPER_NAME "job-helper"

#define HELPER_DIR  "tasks"
#define HELPER_SOCK ".sock"
#define HELPER_NEW  ".new"

/*
 * The usage of an attempt, sampled. At the end, CPU time is exact, because the kernel adds up the
 * CPU time of processes that were waited for. Plain data.
 */
struct task_usage {
	int64_t cpu_us;
	/* between the last two samples, in thousandths of a core; -1: unknown */
	int64_t cpu_now;
	int64_t memory_now, memory_peak; /* bytes; -1: unknown */
	int64_t samples;
	int64_t first, last; /* times of the first and the last sample, in ns; 0: no sample */
};

enum task_how {
	TASK_NOT_STARTED, /* see WHY and ERR */
	TASK_ENDED,	  /* see EXIT_CODE and SIG */
	/* SIG (0: unknown) killed the helper or the guard, so the program was killed, too */
	TASK_KILLED,
};

/* The step at which a start failed. Only the daemon sets TASK_APP: the AppDef can't be read. */
enum task_why { TASK_HELPER, TASK_OUTPUT, TASK_CWD, TASK_EXEC, TASK_SEARCH, TASK_APP };

/* How an attempt ended. Set by the helper or the daemon. Times: ns since 1970. Plain data. */
struct task_end {
	enum task_how how;
	enum task_why why;
	/* NOT_STARTED: an errno; ENDED: ETIMEDOUT at the time limit, else 0 */
	int err;
	int exit_code; /* -1: none */
	int sig;       /* 0: none */
	int lost;      /* errno of the error that lost output; 0: no output was lost */
	int late;      /* 1: output was still open after all processes of the attempt were gone */
	int left;      /* 1: some processes can't be killed */
	int64_t started, finished;
};

/* Messages of the helper. A daemon that connects while the program runs gets HELPER_STARTED. */
enum helper_kind { HELPER_STARTED, HELPER_GROWN, HELPER_LOST, HELPER_ENDED, HELPER_USED };

struct helper_news {
	enum helper_kind kind;
	int value;	     /* STARTED: the program's pid; LOST: the errno */
	int64_t time;	     /* STARTED: the time of the start */
	struct task_end end; /* ENDED */
};

/*
 * The message HELPER_USED, longer than struct helper_news. It is sent only if the daemon has read
 * all earlier messages, so usage never fills the connection. HELPER_ENDED follows the final usage.
 */
struct helper_used {
	enum helper_kind kind;
	struct task_usage usage;
};

/*
 * A message to the helper: SIGTERM, SIGKILL, SIGSTOP or SIGCONT, which the helper delivers once the
 * program runs; or HELPER_SEEN, if the daemon has received HELPER_GROWN.
 */
#define HELPER_SEEN 0

struct helper_ask {
	int sig;
};

/* largest plausible value in struct task_usage */
#define HELPER_FIGURE_MAX (INT64_C(1) << 53)

/* True if U has a sample with plausible values. */
bool helper_usage_is_sane(const struct task_usage *u);

/*
 * Make this process a helper. LISTEN_FD is its socket. Return 0 when the attempt has ended, or a
 * negative errno if the instructions or the job's folder can't be read.
 */
int helper_run(int instructions_fd, int listen_fd);

/*
 * Read DIR/tasks/NAME. If the usage is unknown, RET_USAGE->last is 0. Return 0, -EINVAL if the file
 * is damaged, or another negative errno.
 */
int helper_end_read(const char *dir, const char *name, struct task_end *ret,
		    struct task_usage *ret_usage);
/* Return the GPUs of an attempt, one bit for each; 0 if it has none, or its file can't be read. */
uint64_t helper_gpus_read(const char *dir, const char *name);
