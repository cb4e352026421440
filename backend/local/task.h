/* SPDX-License-Identifier: MIT */
/*
 * The daemon's side of one attempt of a replica. A task starts a helper (helper.h), or connects to
 * a helper of an earlier daemon. The task sends signals to the helper, and receives its messages.
 * I/O thread, except task_find and task_clean.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/local/helper.h"
#include "spec/base/base.h"
#include "spec/record/slots.h"

struct task;
struct tasks; /* data that all tasks of a backend share */

struct task_config {
	const char *dir;  /* the job's folder */
	const char *name; /* name of the attempt; short, because a socket's path is short */
	const char *key;
	const char *cwd;
	int64_t limit_ms;  /* time limit of the program; 0: none */
	uint64_t gpus;	   /* GPUs of the program, one bit for each */
	unsigned grace_ms; /* from SIGTERM at the limit to SIGKILL */
	/* NULL-terminated. kxfs searches the PATH in ENV for ARGS[0]. */
	char *const *args, *const *env;
};

/*
 * ended() must be set; it is called last, after the task was freed. task_start needs prepared().
 * The others may be NULL.
 */
struct task_events {
	/* Only for task_start: called first, when the start no longer needs a disk. */
	void (*prepared)(void *data);
	void (*started)(void *data, int64_t time);
	void (*grown)(void *data); /* called when the log has grown */
	/* Called when output was lost because of ERR. The program may still run. */
	void (*lost)(void *data, int err);
	/* Called with the usage so far, and at the end with the total usage. */
	void (*used)(void *data, const struct task_usage *usage);
	void (*ended)(void *data, const struct task_end *end);
};

/* Each helper of this daemon is in GROUP while it runs. */
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
	TASK_DROPPED, /* the helper was killed, or the machine was down */
	TASK_UNKNOWN, /* the helper may live, but ERR keeps kxfs from reaching it */
};

/* The result of task_find. The caller passes FD to task_adopt. Plain data. */
struct task_found {
	enum task_state state;
	int fd; /* RUNS: a connection to the helper; else -1 */
	/* UNKNOWN: a negative errno. -EWOULDBLOCK: the helper lives, but no longer listens. */
	int err;
	struct task_end end;
	struct task_usage usage; /* OVER: if its LAST is 0, the usage is unknown */
};

/* Find the attempt NAME of an earlier daemon in the job's folder DIR. On the pool. */
void task_find(struct tasks *tasks, const char *dir, const char *name, struct task_found *ret);
/*
 * Make a task for an attempt of an earlier daemon. FD is the connection from task_find, or -1 to
 * repeat task_find. If the program runs, started() is called.
 */
struct task *task_adopt(struct tasks *tasks, const char *dir, const char *name, int fd,
			const struct task_events *events, void *data);
/*
 * Send SIG now, or when the helper is connected. Repeat it on each later connection. SIGTERM and
 * SIGKILL go to the program's process group. If the helper is not started yet, they end the task.
 * SIGSTOP and SIGCONT go to all processes of the attempt.
 */
void task_signal(struct task *task, int sig);
/* Free TASK. Its helper continues, and a later daemon can connect to it. NULL is allowed. */
void task_release(struct task *task);
/* Remove the tasks' files in the job's folder DIR. On the pool. */
void task_clean(const char *dir);

/*
 * A job whose record is damaged or missing, but whose programs still run. kxfs can't control an
 * orphan. An orphan keeps its slot and its GPUs until all of its helpers have ended.
 */
struct orphan;

/* Return the orphan in the job's folder DIR; NULL if no helper lives there. On the pool. */
struct orphan *orphan_find(struct tasks *tasks, const char *dir);
void orphan_free(struct orphan *o); /* O must not be in a list. */
/*
 * Add O to LIST, and take ownership of O. When its helpers have ended, free O, and call FN(DATA).
 * I/O thread.
 */
void orphan_watch(struct orphan **list, struct orphan *o, loop_fn fn, void *data);
/* Add the slots and the GPUs of all orphans in LIST to those that are taken in SLOTS. */
void orphans_take(const struct orphan *list, struct spec_slots *slots);
/* Free the orphans. Their programs continue. */
void orphans_release(struct orphan **list);
