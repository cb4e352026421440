/* SPDX-License-Identifier: MIT */
/* What the parts of the world say to each other. */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* --- server.c: an API server with Volcano's Jobs and their pods --- */

struct server_reply {
	int status;
	char *body; /* malloc'ed */
	size_t len;
};

/* It acts on a request that has come. METHOD as HTTP has it. */
void server_ask(const char *method, const char *path, const char *body, size_t len,
		struct server_reply *ret);
/* The text of a Status. malloc'ed. */
char *server_status(int code, const char *reason, const char *message);

/*
 * A watch of PATH, a query: FN is called with each event in its order, after a lag of this watch's own; with NULL when
 * the server ends it. NULL: a refusal, in *RET.
 */
struct server_watch;
typedef void (*server_event_fn)(void *data, const char *line, size_t len);
struct server_watch *server_watch(const char *path, server_event_fn fn, void *data,
				  struct server_reply *ret);
void server_unwatch(struct server_watch *w);
void server_unwatch_all(void);
/* How many jobs there are, and the name of each. */
size_t server_n_jobs(void);
const char *server_job(size_t i);

/*
 * A run of a pod's container, which prints lines "UID NUMBER", where UID is the pod's with the number of the run in
 * it. False: there was none.
 */
#define SERVER_UID 36 /* characters */
struct server_run {
	const char *name; /* of the pod */
	size_t n, kept;	  /* its node has lost those before KEPT */
	bool there;	  /* its node has it: it is the newest run, or the one before */
	bool ended;
	const char *job; /* its uid */
	bool foreign;	 /* which somebody else has made */
};
bool server_run(const char *uid, struct server_run *ret);
/* Is the job UID there, and nobody deletes it? */
bool server_has_job(const char *uid);
/* The jobs that were called NAME: how many, and what is known of the last. */
struct server_fate {
	size_t n;
	const char *phase; /* "": its controller has not seen it yet */
	bool gone;
	bool suspended; /* once */
};
void server_fate(const char *name, struct server_fate *ret);
bool server_is_suspended(const char *name);
/* The newest run of JOB's present pod, or the one BEFORE it, if its node has that. */
bool server_job_run(const char *job, unsigned before, char ret_uid[SERVER_UID + 1],
		    struct server_run *ret);

/* --- http.c: what is between kxfs and the server --- */

/* All that was under way is cut off; what the server has got it may still act on. */
void sim_http_kill(void);
/* From now on nothing is lost. */
void sim_http_mend(void);

/* --- machine.c: in a history of a machine, its programs --- */

/* SIG for the group of the program PID. */
void machine_signal(pid_t pid, int sig);
/* It goes down. */
void machine_power_cut(void);
/* Is it suspended, or may it be? */
/* How often it has. */
unsigned sim_boots(void);
/* From now on nothing happens to its processes but what kxfs does. */
void machine_mend(void);
/* kxfs ends all that it has started, as it is unmounted. */
void machine_unmounted(void);
/* As server_run, server_n_jobs and server_job, of what has been started. */
bool machine_run(const char *uid, struct server_run *ret);
/* Something of it runs, or all that is known is that nothing does: N is 2. */
void machine_fate(const char *name, struct server_fate *ret);
size_t machine_n_jobs(void);
const char *machine_job(size_t i);
/* What holds in the end? In a task. */
void machine_judge(void);

/* --- kxfs.c --- */

extern struct fs *sim_fs; /* of the present life; NULL: it is not mounted */
/* The lives of kxfs begin; each ends as the faults say. */
void sim_kxfs_begin(void);
/* It is not killed any more, and mounted soon. */
void sim_kxfs_mend(void);

/* --- reader.c --- */

void readers_begin(void);
/* TEXT is what PATH, a file of JOB that blocks, has given so far; ENDED: and all that it gives. */
void readers_followed(const char *path, const char *text, bool merged, bool ended, const char *job);
/* What is to be read by now? In a task. */
void readers_judge(void);

/* --- ctl.c --- */

void ctl_begin(void);
/* The server has a Command for JOB; and has it that the job's controller obeys it. */
void ctl_created(const char *job, const char *action);
void ctl_obeyed(const char *job, const char *action);

/* --- waiter.c --- */

void waiters_begin(void);
/* Who still waits, and for what? Do list and changes show what the server has? In a task. */
void waiters_judge(void);

/* --- user.c --- */

/* Those of whom SET has the bit. */
void users_begin(uint64_t set);
/* The server has made a job of BODY with this NAME and UID. */
void users_created(const char *body, const char *name, const char *uid);
/*
 * On a machine, JOB is of TAG: kxfs gives it to a helper in life LIFE (BOOT as of sim_boots), and its program starts.
 */
void users_started(unsigned tag, const char *job, unsigned life, unsigned boot);
/* A program of TAG could not be started. */
void users_not_started(unsigned tag);
/* How often it may be started again. */
unsigned users_retries(unsigned tag);
/* Has its user removed JOB, or begun to? */
bool users_removed(const char *job);
/* Faults have ended and time has passed: what holds by now? */
void users_judge(void);
/* That has been said. */
bool users_are_judged(void);
 * FIRST: of the first attempt.
