/* SPDX-License-Identifier: MIT */
/*
 * The daemon's side of one attempt of a replica that runs under a helper (helper.h): it starts the helper or takes it
 * over from an earlier daemon, sends it signals, and hears its news. I/O thread, but for task_find and task_clean.
 */
#pragma once

#include "backend/base/group.h"
#include "backend/local/helper.h"
#include "spec/base/base.h"

struct task;
struct tasks; /* what all tasks of a backend share */

struct task_config {
	const char *dir;  /* the job's folder; logs/KEY is below it */
	const char *name; /* name of the attempt: a short one, since a socket's path is short */
	const char *key;
	const char *cwd;
	int64_t limit_ms;  /* how long the program may run; 0: for ever */
	uint64_t gpus;	   /* which GPUs it has, a bit each */
	unsigned grace_ms; /* the time that it has then between SIGTERM and SIGKILL */
	/* Both end with NULL. ARGS[0] is searched for on the PATH of ENV. */
	char *const *args, *const *env;
};

/* What has happened. When ENDED is called, the task is gone; any other may be called before that, or not at all. */
struct task_events {
	/* the first event of a task that is started: it waits for the disk no longer */
	void (*prepared)(void *data);
	void (*started)(void *data, int64_t time);
	void (*grown)(void *data); /* the log has grown */
	/* Output was lost, for this errno; the program may still run. */
	void (*lost)(void *data, int err);
	/* What was used so far, or in all. */
	void (*used)(void *data, const struct task_usage *usage);
	void (*ended)(void *data, const struct task_end *end);
};

/* A helper that was started here is in GROUP as long as it runs. */
struct tasks *tasks_new(struct loop *loop, struct group *group);
/* To be called after the loop has stopped. Helpers that run go on. */
void tasks_free(struct tasks *tasks);
/* Helpers that run are to go on when the backend has stopped: they leave the group. */
void tasks_outlive(struct tasks *tasks);

/* Start a task. EVENTS->ended is called when it is over, also if it can't be started, but not from here. */
struct task *task_start(struct tasks *tasks, const struct task_config *config,
			const struct task_events *events, void *data);

enum task_state {
	TASK_NONE,    /* no program has been started for it */
	TASK_RUNS,    /* its helper lives */
	TASK_OVER,    /* END says how it has ended */
	TASK_DROPPED, /* its helper was killed, or the machine was down */
	TASK_UNKNOWN, /* its helper may live: ERR has kept kxfs from reaching it */
};

/* What task_find has found. Plain data, which the pool hands to the I/O thread. */
struct task_found {
	enum task_state state;
	int fd; /* RUNS: connected to the helper, to be given to task_adopt; else -1 */
	/* UNKNOWN: a negative errno; -EWOULDBLOCK: the helper lives, but does not listen any more */
	int err;
	int64_t started; /* RUNS: when the program was started, in ns; 0: perhaps it was not yet */
	struct task_end end;
	struct task_usage usage; /* OVER: what the attempt has used; its LAST is 0: not known */
};

/* Finds what became of the attempt NAME of an earlier daemon. On the pool. */
void task_find(struct tasks *tasks, const char *dir, const char *name, struct task_found *ret);
/*
 * Take over an attempt that was found to run, with FD; or (FD is -1) one of which it is not known whether it runs, and
 * which is then looked for. started() is called again.
 */
struct task *task_adopt(struct tasks *tasks, const char *dir, const char *name, int fd,
			const struct task_events *events, void *data);
/*
 * Send SIGTERM or SIGKILL to the program's process group, or SIGSTOP or SIGCONT to all of the attempt, now or when
 * there is a connection. SIGTERM or SIGKILL before the helper is started ends the task, and no program runs.
 */
void task_signal(struct task *task, int sig);
/* Let TASK run on for a later daemon; no event comes any more. NULL is allowed. */
void task_release(struct task *task);
/* Remove what tasks have left in the job's folder. On the pool. */
void task_clean(const char *dir);
