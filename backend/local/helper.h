/* SPDX-License-Identifier: MIT */
/*
 * The protocol and the files that the daemon (task.c) shares with the helper of one attempt of a
 * replica (helper.c).
 *
 * The helper is started as HELPER_NAME, with instructions as standard input and a listening Unix
 * socket (SOCK_SEQPACKET) as standard output. On disk an attempt has these files in the job's
 * folder:
 *
 *	tasks/NAME.sock		The socket. The daemon binds it before it starts the helper, and
 *				every later daemon connects to it. Connecting succeeds only if the
 *				helper is running
 *	tasks/NAME.new		The helper makes this file right before it starts the program. It
 *				has the program's GPUs, and reserves space for the contents of NAME.
 *				The helper and its guard hold an flock on it while they run
 *	tasks/NAME		How the attempt ended, and its usage. The helper writes this into
 *				NAME.new, syncs that file, and renames it
 *
 * The instructions are a file of NUL-terminated strings: the job's folder, the log's key, NAME, the
 * working directory, the program's soft limit of descriptors, its time limit and its grace period
 * (in ms; 0 for none), its GPUs (hexadecimal, a bit for each GPU), the number of arguments, the
 * arguments, and then the environment.
 *
 * A helper may outlive the kxfs that started it. So this protocol and these files are a part of the
 * format of the state directory. After a change of either, raise the version in fs/mount/state.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The argv[0] of helpers, which ps shows. It does not begin with kxfs, so that "pkill kxfs" ends
 * only the daemon.
 */
#define HELPER_NAME "job-helper"

#define HELPER_DIR  "tasks"
#define HELPER_SOCK ".sock"
#define HELPER_NEW  ".new"

/*
 * The usage of an attempt. CPU time is sampled while the attempt runs. At its end, CPU time is
 * exact, because the kernel adds up the CPU time of all processes that were waited for. Memory is
 * always sampled. Plain data, set by the guard.
 */
struct task_usage {
	int64_t cpu_us;
	/* CPU usage between the last two samples, in thousandths of a core; -1: unknown */
	int64_t cpu_now;
	int64_t memory_now, memory_peak; /* bytes; -1: unknown */
	int64_t samples;		 /* samples so far */
	int64_t first, last;		 /* times of the first and the last sample, ns; 0: none */
};

enum task_how {
	TASK_NOT_STARTED, /* see WHY and ERR */
	TASK_ENDED,	  /* the program has ended, with EXIT_CODE or because of the signal SIG */
	/* a signal (SIG; 0 if unknown) killed the helper or the guard, and so the program */
	TASK_KILLED,
};

/* The step at which a start has failed. TASK_APP, set only by the daemon: reading the AppDef. */
enum task_why { TASK_HELPER, TASK_OUTPUT, TASK_CWD, TASK_EXEC, TASK_SEARCH, TASK_APP };

/*
 * How an attempt ended. Times are ns since 1970. Plain data. Usually the helper fills it. The
 * daemon fills it if the helper could not be started, or is gone.
 */
struct task_end {
	enum task_how how;
	enum task_why why;
	/*
	 * With TASK_NOT_STARTED: an errno. With TASK_ENDED: ETIMEDOUT if the program reached its
	 * time limit, else 0.
	 */
	int err;
	int exit_code; /* -1: none */
	int sig;       /* 0: none */
	int lost;      /* why output was lost, an errno; 0 if no output was lost */
	int late; /* 1: the output was still open after all processes of the attempt were gone */
	int left; /* 1: some processes of the attempt can't be killed */
	int64_t started, finished;
};

/*
 * The kinds of messages that the helper sends. While the program runs, the helper sends
 * HELPER_STARTED to each daemon that connects.
 */
enum helper_kind { HELPER_STARTED, HELPER_GROWN, HELPER_LOST, HELPER_ENDED, HELPER_USED };

struct helper_news {
	enum helper_kind kind;
	int value;	     /* with STARTED: the program's pid; with LOST: the errno */
	int64_t time;	     /* with STARTED: the time of the start */
	struct task_end end; /* with ENDED: how the attempt ended */
};

/*
 * The message HELPER_USED, which is longer than struct helper_news. While the program runs, the
 * helper sends this message only if the daemon has read all earlier messages. So usage never fills
 * the connection. The helper sends the final usage before HELPER_ENDED.
 */
struct helper_used {
	enum helper_kind kind;
	struct task_usage usage;
};

/*
 * A message to the helper is a signal or HELPER_SEEN. The signal is SIGTERM, SIGKILL, SIGSTOP or
 * SIGCONT; the helper delivers the signal once the program runs. HELPER_SEEN reports that the
 * daemon has received HELPER_GROWN.
 */
#define HELPER_SEEN 0

struct helper_ask {
	int sig;
};

/* The largest plausible value in struct task_usage. */
#define HELPER_FIGURE_MAX (INT64_C(1) << 53)

/* True if U has a sample, and its values are plausible. */
bool helper_usage_is_sane(const struct task_usage *u);

/*
 * Make this process a helper. It reads the instructions from INSTRUCTIONS_FD, and serves daemons
 * that connect to LISTEN_FD. Return 0 when the attempt has ended, or a negative errno if the
 * instructions or the job's folder can't be read.
 */
int helper_run(int instructions_fd, int listen_fd);

/*
 * Read from DIR/tasks/NAME how an attempt ended, and its usage. If the usage is unknown, set its
 * LAST to 0. Return 0, -EINVAL if the file is damaged, or another negative errno.
 */
int helper_end_read(const char *dir, const char *name, struct task_end *ret,
		    struct task_usage *ret_usage);
/*
 * Return the GPUs of the attempt NAME in the folder DIR, one bit for each GPU. Return 0 if the
 * attempt has no GPUs, or if the attempt's file can't be read.
 */
uint64_t helper_gpus_read(const char *dir, const char *name);
