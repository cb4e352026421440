/* SPDX-License-Identifier: MIT */
/*
 * The daemon's side of one attempt of a replica that runs under a helper (helper.h): starting it, taking it over from
 * an earlier daemon, signals, and the news of it. I/O thread, but for task_find and task_clean.
 */
#pragma once

#include "backend/base/group.h"
#include "backend/local/helper.h"
#include "spec/base/base.h"

struct task;
struct tasks; /* what all tasks of a backend share */

struct task_config {
	const char *dir;  /* the job's folder; logs/KEY is below it */
	const char *name; /* of the attempt: a short one, since a socket's path is */
	const char *key;
	const char *cwd;
	int64_t limit_ms;  /* how long the program may run; 0: for ever */
	unsigned grace_ms; /* that it has then between SIGTERM and SIGKILL */
	/* Both are NULL-terminated. ARGS[0] is searched on the PATH of ENV. */
	char *const *args, *const *env;
};

/* What has happened. The task is gone when ENDED is called; any other may come before that, or not at all. */
struct task_events {
	/* first of a task that is started: the disk is not waited for any more */
	void (*prepared)(void *data);
	void (*started)(void *data, int64_t time);
	void (*grown)(void *data);	   /* the log has */
	void (*lost)(void *data, int err); /* output, for this errno; the program may still run */
	void (*used)(void *data, const struct task_usage *usage); /* so far, or in all */
	void (*ended)(void *data, const struct task_end *end);
};

/* GROUP is entered as long as a helper that was started here runs. */
struct tasks *tasks_new(struct loop *loop, struct group *group);
/* After the loop has stopped. Helpers that run go on. */
void tasks_free(struct tasks *tasks);
/* Helpers that run are to go on when the backend has stopped: they leave the group. */
void tasks_outlive(struct tasks *tasks);

/* EVENTS->ended is called, not from here, also when it can't be started. */
struct task *task_start(struct tasks *tasks, const struct task_config *config,
			const struct task_events *events, void *data);

enum task_state {
	TASK_NONE,    /* no program has been started for it */
	TASK_RUNS,    /* its helper lives */
	TASK_OVER,    /* END says how it has ended */
	TASK_DROPPED, /* its helper was killed, or the machine has been down */
	TASK_UNKNOWN, /* its helper may live: ERR kept us from reaching it */
};

/* Plain data: what task_find has found, a value that is handed from the pool to the I/O thread. */
struct task_found {
	enum task_state state;
	int fd;	 /* RUNS: connected to the helper, to be given to task_adopt; else -1 */
	int err; /* UNKNOWN: a negative errno; -EWOULDBLOCK: it lives, and listens no more */
	int64_t started; /* RUNS: when the program was started, ns; 0: it may not be yet */
	struct task_end end;
	struct task_usage usage; /* OVER: what it has used; its last is 0: not known */
};

/* What became of the attempt NAME of an earlier daemon. Pool. */
void task_find(struct tasks *tasks, const char *dir, const char *name, struct task_found *ret);
/*
 * Take over what was found to run; FD is taken over too. -1: it is not known whether it runs, and looked for. started()
 * is called again.
 */
struct task *task_adopt(struct tasks *tasks, const char *dir, const char *name, int fd,
			const struct task_events *events, void *data);
/* SIGTERM or SIGKILL for the program's process group; SIGSTOP or SIGCONT for all of the attempt. Sent, or kept. */
void task_signal(struct task *task, int sig);
/* Let it run on for a later daemon; no event comes any more. NULL is allowed. */
void task_release(struct task *task);
/* Remove what tasks have left in the job's folder. Pool. */
void task_clean(const char *dir);
