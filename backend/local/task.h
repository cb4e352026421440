/* SPDX-License-Identifier: MIT */
/*
 * The daemon's side of one attempt of a replica, which runs under a helper (helper.h). A task
 * starts the helper, or takes it over from an earlier daemon. It sends signals to the helper, and
 * receives its messages. I/O thread, except task_find and task_clean.
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
	uint64_t gpus;	   /* its GPUs, a bit each */
	unsigned grace_ms; /* time between SIGTERM and SIGKILL at the limit */
	/* Both end with NULL. ARGS[0] is searched for on the PATH of ENV. */
	char *const *args, *const *env;
};

/* Callbacks. The task is freed before ENDED is called, the last one. All others may be NULL. */
struct task_events {
	/*
	 * The first callback of a task that this daemon starts: the start does not wait for the
	 * disk any more.
	 */
	void (*prepared)(void *data);
	void (*started)(void *data, int64_t time);
	void (*grown)(void *data); /* the log has grown */
	/* Output was lost because of this errno; the program may still run. */
	void (*lost)(void *data, int err);
	/* The usage so far, or in total. */
	void (*used)(void *data, const struct task_usage *usage);
	void (*ended)(void *data, const struct task_end *end);
};

/* A helper that was started here is in GROUP while it runs. */
struct tasks *tasks_new(struct loop *loop, struct group *group);
/* Call this after the loop has stopped. Running helpers continue. */
void tasks_free(struct tasks *tasks);
/* Let running helpers continue after the backend has stopped: they leave the group. */
void tasks_outlive(struct tasks *tasks);

/* Start a task. EVENTS->ended is called later, even if the task can't be started. */
struct task *task_start(struct tasks *tasks, const struct task_config *config,
			const struct task_events *events, void *data);

enum task_state {
	TASK_NONE,    /* the attempt has not started a program */
	TASK_RUNS,    /* its helper lives */
	TASK_OVER,    /* the attempt has ended as in END */
	TASK_DROPPED, /* its helper was killed, or the machine was down */
	TASK_UNKNOWN, /* its helper may live, but ERR keeps kxfs from reaching it */
};

/* The result of task_find. Plain data. */
struct task_found {
	enum task_state state;
	int fd; /* RUNS: connected to the helper, to be given to task_adopt; else -1 */
	/* UNKNOWN: a negative errno; -EWOULDBLOCK: the helper lives, but does not listen any more */
	int err;
	int64_t started; /* RUNS: when the program was started, in ns; 0 if unknown, or not yet */
	struct task_end end;
	struct task_usage usage; /* OVER: its usage; unknown if its LAST is 0 */
};

/* Find the state of the attempt NAME of an earlier daemon. On the pool. */
void task_find(struct tasks *tasks, const char *dir, const char *name, struct task_found *ret);
/*
 * Take over an attempt of an earlier daemon. FD is that of task_find if the state is TASK_RUNS;
 * with -1 (TASK_UNKNOWN) the task repeats task_find. started() is called again.
 */
struct task *task_adopt(struct tasks *tasks, const char *dir, const char *name, int fd,
			const struct task_events *events, void *data);
/*
 * Send SIGTERM or SIGKILL to the program's process group, or SIGSTOP or SIGCONT to all processes of the attempt, now or
 * when the helper is connected. SIGTERM or SIGKILL before the helper is started ends the task without a program.
 */
void task_signal(struct task *task, int sig);
/* Free TASK; its helper continues, for a later daemon. NULL is allowed. */
void task_release(struct task *task);
/* Remove the files of tasks in the job's folder DIR. On the pool. */
void task_clean(const char *dir);

/*
 * An orphan is a job whose record is damaged or missing, but whose programs run. kxfs can't control
 * it. It keeps its slot and its GPUs until all of its helpers have ended.
 */
struct orphan;

/* Return the orphan in the folder STATE/output/KEY; NULL if no helper lives there. On the pool. */
struct orphan *orphan_find(struct tasks *tasks, const char *state_dir, const char *key);
void orphan_free(struct orphan *o); /* O must not be watched (orphan_watch). */
/* Add O, which is taken over, to LIST. When all its helpers have ended, free it, and call FN(DATA). I/O thread. */
void orphan_watch(struct orphan **list, struct orphan *o, struct tasks *tasks, loop_fn fn,
		  void *data);
/* Count the slots and the GPUs of the orphans of LIST. */
void orphans_take(const struct orphan *list, struct spec_slots *slots);
/* Free the orphans of LIST; their programs run on. */
void orphans_release(struct orphan **list);
