/* SPDX-License-Identifier: MIT */
/*
 * The daemon's side of one attempt of a replica, which runs under a helper (helper.h). A task
 * starts a helper, or connects to a helper that an earlier daemon has started. The task sends
 * signals to the helper, and receives its messages. I/O thread, except task_find and task_clean.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/local/helper.h"
#include "spec/base/base.h"
#include "spec/record/slots.h"

struct task;
struct tasks; /* the data that all tasks of a backend share */

struct task_config {
	const char *dir;  /* the job's folder; logs/KEY is below it */
	const char *name; /* name of the attempt: short, because a socket's path is short */
	const char *key;
	const char *cwd;
	int64_t limit_ms;  /* time limit of the program; 0: none */
	uint64_t gpus;	   /* the program's GPUs, one bit for each GPU */
	unsigned grace_ms; /* time between SIGTERM and SIGKILL when the limit is reached */
	/* Both arrays end with NULL. kxfs searches the PATH in ENV for ARGS[0]. */
	char *const *args, *const *env;
};

/*
 * Callbacks. ended() is called last, after the task was freed, and must be set. prepared() must be
 * set for task_start. All other callbacks may be NULL.
 */
struct task_events {
	/*
	 * Called when the start of the task no longer waits for the disk. Only a task of task_start
	 * calls this, and before all other callbacks.
	 */
	void (*prepared)(void *data);
	void (*started)(void *data, int64_t time);
	void (*grown)(void *data); /* called when the log has grown */
	/* Called when output was lost because of ERR. The program may still run. */
	void (*lost)(void *data, int err);
	/* Called with the usage so far, and once more at the end with the total usage. */
	void (*used)(void *data, const struct task_usage *usage);
	void (*ended)(void *data, const struct task_end *end);
};

/* Make the data that all tasks share. Each helper of this daemon is in GROUP while it runs. */
struct tasks *tasks_new(struct loop *loop, struct group *group);
/* Call this after the loop has stopped. Running helpers continue. */
void tasks_free(struct tasks *tasks);
/* Make all running helpers leave the group, so that the backend can stop while they continue. */
void tasks_outlive(struct tasks *tasks);

/* Start a task. EVENTS->ended is called later, even if the task can't be started. */
struct task *task_start(struct tasks *tasks, const struct task_config *config,
			const struct task_events *events, void *data);

enum task_state {
	TASK_NONE,    /* the attempt has not started a program */
	TASK_RUNS,    /* the attempt's helper lives */
	TASK_OVER,    /* the attempt is over; END describes how it ended */
	TASK_DROPPED, /* the attempt's helper was killed, or the machine was down */
	TASK_UNKNOWN, /* the attempt's helper may live, but ERR keeps kxfs from reaching it */
};

/* The result of task_find. Plain data. */
struct task_found {
	enum task_state state;
	int fd; /* With TASK_RUNS: a connection to the helper, for task_adopt. Otherwise -1. */
	/*
	 * With TASK_UNKNOWN: why the state is unknown, as a negative errno. -EWOULDBLOCK: the
	 * helper lives, but no longer listens.
	 */
	int err;
	/*
	 * With TASK_RUNS: the time at which the program was started, in ns. 0 if the time is
	 * unknown, or if the program was not started yet.
	 */
	int64_t started;
	struct task_end end;
	/* With TASK_OVER: the usage of the attempt. If its LAST is 0, the usage is unknown. */
	struct task_usage usage;
};

/*
 * Find the state of the attempt NAME in the job's folder DIR. An earlier daemon has started this
 * attempt. On the pool.
 */
void task_find(struct tasks *tasks, const char *dir, const char *name, struct task_found *ret);
/*
 * Make a task for an attempt of an earlier daemon. If task_find has returned TASK_RUNS, FD is the
 * connection that task_find has made. If task_find has returned TASK_UNKNOWN, FD is -1, and the
 * task repeats task_find. If the program runs, started() is called, even if the earlier daemon has
 * received that message already.
 */
struct task *task_adopt(struct tasks *tasks, const char *dir, const char *name, int fd,
			const struct task_events *events, void *data);
/*
 * Send SIG to the attempt now, or when the helper is connected. SIGTERM and SIGKILL go to the
 * program's process group. SIGSTOP and SIGCONT go to all processes of the attempt. If SIG is
 * SIGTERM or SIGKILL, and the helper is not started yet, the task ends without starting a program.
 */
void task_signal(struct task *task, int sig);
/* Free TASK. Its helper continues, and a later daemon can connect to it. NULL is allowed. */
void task_release(struct task *task);
/* Remove the files of tasks in the job's folder DIR. On the pool. */
void task_clean(const char *dir);

/*
 * An orphan is a job whose record is damaged or missing, but whose programs still run. kxfs can't
 * control an orphan. An orphan keeps its slot and its GPUs until all of its helpers have ended.
 */
struct orphan;

/* Return the orphan in the job's folder DIR; NULL if no helper lives there. On the pool. */
struct orphan *orphan_find(struct tasks *tasks, const char *dir);
void orphan_free(struct orphan *o); /* O must not be in the list of orphan_watch. */
/*
 * Add O to LIST, and take ownership of O. When all helpers of O have ended, free O, and call
 * FN(DATA). I/O thread.
 */
void orphan_watch(struct orphan **list, struct orphan *o, loop_fn fn, void *data);
/* Count the orphans of LIST in SLOTS: each orphan uses one slot, and its GPUs. */
void orphans_take(const struct orphan *list, struct spec_slots *slots);
/* Free the orphans of LIST. Their programs continue. */
void orphans_release(struct orphan **list);
