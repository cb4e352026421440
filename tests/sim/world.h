/* SPDX-License-Identifier: MIT */
/* What the parts of the world say to each other. */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"

/* --- server.c: an API server with jobs of one kind or several, and their pods (cluster.h) --- */

/*
 * Is a Link between each JobSet of this history and its pods, which alone says to which JobSet they belong? The file of
 * the kind is another one then.
 */
bool server_has_chains(void);
/* How many kinds it has, and the word for the K-th in kxfs's SOURCE, which an AppDef knows too. */
size_t server_n_kinds(void);
const char *server_kind(size_t k);

struct server_reply {
	int status;
	char *body; /* malloc'ed */
	size_t len;
	unsigned wait_ms; /* Retry-After; 0: none */
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
/* All that it streams ends. */
void server_cut(void);
/* Its etcd may be restored from now on; not any more. */
void server_begin(void);
void server_mend(void);
/* It is to be, and nothing reaches it. */
bool server_is_down(void);
/* How often it was. */
unsigned server_restores(void);
/* How many jobs there are, and the name of each. */
size_t server_n_jobs(void);
const char *server_job(size_t i);

/*
 * A run of a pod's container, which prints lines "UID NUMBER", where UID is the pod's with the number of the run in
 * it. False: there was none.
 */
#define SERVER_UID 36 /* characters */
struct server_run {
	const char *job_name;
	bool revived;	/* its job, by a restored etcd */
	size_t n, kept; /* its node has lost those before KEPT */
	bool there;	/* its node has it: it is the newest run, or the one before */
	bool ended;
	const char *job; /* its uid */
	bool foreign;	 /* which somebody else has made */
	const char *replica;
	/* Of a cluster: what tells the run from all others. */
	const char *pod_uid, *container;
	unsigned restart;
	bool injected; /* its pod has a container more, which prints nothing */
};
bool server_run(const char *uid, struct server_run *ret);
/* The K-th run of all pods that the job UID ever had. */
bool server_nth_run(const char *job, size_t k, struct server_run *ret);
/* The pods of the name that stands in TEXT as ", container C", or " of ", has it: what has become of one of them? */
struct server_pod {
	bool rotated; /* its node has lost lines */
	bool again;   /* its container ran again */
	bool gone;    /* or its job is, and its kind, whose pods are not looked for any more */
};
bool server_pod_in(const char *text, struct server_pod *ret);
/* Is the job UID there, and nobody deletes it? */
bool server_has_job(const char *uid);
/* The jobs that were called NAME: how many, and what is known of the last. */
struct server_fate {
	size_t n;
	const char *phase; /* "": its controller has not seen it yet */
	bool gone;	   /* or on its way */
	bool suspended;	   /* once */
	bool moves;	   /* it, or a pod of it, has changed just now */
};
void server_fate(const char *name, struct server_fate *ret);
/* Is it suspended, or may it be? */
bool server_is_suspended(const char *name);
/* The newest run of JOB's present pod, or the one BEFORE it, if its node has that. */
bool server_job_run(const char *job, unsigned before, char ret_uid[SERVER_UID + 1],
		    struct server_run *ret);

/* --- hostile.c: other users --- */

void hostile_begin(void);
/* How many objects they have made, and bytes in those and others. */
size_t hostile_made(void);
size_t hostile_bytes(void);
/* Is NAME a job that is there, and on which no controller acts? */
bool hostile_is(const char *name);

/* --- kueue.c: in some clusters, who lets jobs run --- */

bool kueue_is_here(void);
/* Is what waits for it shown so? In a task. */
void kueue_judge(void);

/* --- kinds.c: what becomes of one kind of several --- */

void kinds_begin(void);
/* Has the definition of KIND (NULL: of any) been removed, or begun to be? */
bool kinds_removed(const char *kind);

/* --- http.c: what is between kxfs and the server --- */

#define SERVER_AWAY_S 80 /* so long it can't be reached, once */

/* All that was under way is cut off; what the server has got it may still act on. */
void sim_http_kill(void);
/* Rights are taken and given back from now on. */
void sim_http_begin(void);
/* From now on nothing is lost. */
void sim_http_mend(void);

/* --- machine.c: in a history of a machine, its programs --- */

/* SIG for the group of the program PID. */
void machine_signal(pid_t pid, int sig);
/* It goes down. */
void machine_power_cut(void);
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
/* A program of JOB runs, or of its REPLICA (NULL: of any). */
bool machine_is_up(const char *job, const char *replica);
/* So many jobs run at once at most; 0: any number. Do so many? */
unsigned machine_places(void);
bool machine_is_full(void);
/* One of the replicas of JOB. */
const char *machine_replica(const char *job);
size_t machine_n_jobs(void);
const char *machine_job(size_t i);
/* What holds in the end? In a task. */
void machine_judge(void);

/* --- kxfs.c --- */

extern struct fs *sim_fs; /* of the present life; NULL: it is not mounted */
/* The lives of kxfs begin; each ends as the faults say. */
void sim_kxfs_begin(void);
/* In US the machine goes down, if this life goes on until then. */
/* It is killed so many us from now, if it lives until then. */
void sim_kxfs_kill(uint64_t us);
void sim_kxfs_power_cut(uint64_t us);
/* It is not killed any more, and mounted soon. */
void sim_kxfs_mend(void);

/* --- reader.c --- */

void readers_begin(void);
/* TEXT is what PATH, a file of JOB that blocks, has given so far; ENDED: and all that it gives. */
void readers_followed(const char *path, const char *text, bool merged, bool ended, const char *job);
/*
 * `wait` of JOB has just returned. Its log has all that its last run has printed, or status.json says that some of it
 * is missing, or that the server is away. In a task.
 */
void readers_waited(const char *job, pid_t pid);
/* What is to be read by now? In a task. */
void readers_judge(void);
/* TEXT is a log of JOB in the archive, "REPLICA/log", where its STATUS is status.json. */
void readers_archived(const char *job, const char *log, const char *text, const char *status);

/* --- archive.c: what is in the archive --- */

bool archive_is_here(void);
/* The state directory is small: archived output is removed from it, and that of a cluster may be fetched anew. */
bool archive_makes_room(void);
void archive_begin_looking(void);
/* Check what is there now. */
void archive_look(void);
void archive_after_power_cut(void);
/* Is TEXT in a file of some job in the archive? */
bool archive_has(const char *text);
/* In a task. */
void archive_judge(void);

/* --- gaps.c --- */

/* TEXT is what PATH, the log of a run, shows. */
void gaps_check(const char *path, const char *text);
/* kxfs says TEXT in .kxfs/log. */
void gaps_said(const char *text);
/* How many gaps are told? In a task. */
void gaps_judge(void);

/* --- ctl.c --- */

void ctl_begin(void);
/* The server has a Command for JOB; and has it that the job's controller obeys it. */
void ctl_created(const char *job, const char *action);
void ctl_obeyed(const char *job, const char *action);

/* How often somebody has asked for WORD of JOB, a local one, and was not refused. */
unsigned ctl_asked(const char *job, const char *word);
/* Was that it be suspended the last that was asked of it? CERTAIN: and is so; false then also if it is not. */
bool ctl_suspended(const char *job, bool *ret_certain);

/* --- waiter.c --- */

void waiters_begin(void);
/* Is the job over that was called NAME first? */
bool waiters_is_over(const char *name);
/* How many follow a job now. */
size_t waiters_following(void);
/* Who still waits, and for what? Do list and changes show what the server has? In a task. */
void waiters_judge(void);

/* --- writer.c --- */

#define WRITER_HABITS 9

/* How a text comes into a file. */
struct writing {
	unsigned tag, habit;
	enum kernel_sight sight;
	enum sim_stream stream;	 /* its own */
	const char *name, *path; /* of submit/, and below the mount */
	const char *text;
	uint64_t interrupt_us; /* as of kernel_close, of the last one */
	bool dies;	       /* some time, unless it is done */
	pid_t pid, child;      /* CHILD is 0: there is none */
	bool killed, over;
	bool late;   /* its name may still change by what it has done */
	bool passed; /* its descriptor is sent to somebody, who does not take it */
};

/* In a task. What the close or the rename has said that asks for it, or how it has failed before. */
int writer_write(struct writing *w);
/* Of the user: the close, or the rename, comes that asks for W. */
void writer_asks(struct writing *w);
pid_t writer_child(struct writing *w);
/* Does who asks hear what became of it? Is it a rename? */
bool writer_is_told(unsigned habit);
bool writer_renames(unsigned habit);

/* --- fuse.c --- */

/* As bounds_check, of those who wait for answers. */
void requests_check(bool still);
size_t requests_on_disk(void); /* that wait for the disk */

/* --- bounds.c --- */

/* A second has passed; STILL: kxfs stands still. */
void bounds_check(bool still);
/* kxfs asks the server, with BODY (NULL: none). */
void bounds_asked(const char *method, const char *path, const char *body);
/* Has a log of JOB been asked for so often, and just now, that kxfs may have given it up for the time being? */
bool bounds_gives_up(const char *job);
/* What does it hold in the end? */
void bounds_judge(void);

/* --- dry.c --- */

void dry_begin(void);

/* --- looker.c --- */

void lookers_begin(void);
/* What do the texts of all jobs say? In a task. */
void lookers_judge(void);
/* rm -r of PATH: what the rmdir of itself has said. In a task. */
int looker_remove(pid_t pid, const char *path);

/* --- user.c --- */

/* Those of whom SET has the bit. */
void users_begin(uint64_t set);
/* kxfs sends the object BODY; it has an answer that refuses it. */
void users_sent(const char *body);
void users_refused(const char *body);
/* The server has made a job of BODY with this NAME and UID. */
void users_created(const char *body, const char *name, const char *uid);
/* The job UID was made after what a restored etcd knows. */
void users_undone(const char *uid);
/* Somebody else has removed JOB and made a copy of it. */
void users_copied(const char *job);
/*
 * On a machine, JOB is of TAG: kxfs gives it to a helper in life LIFE (BOOT as of sim_boots), and its program starts.
 * FIRST: of the first attempt.
 */
void users_started(unsigned tag, const char *job, bool first, unsigned life, unsigned boot);
/* A program of JOB, which is of TAG, could not be started. */
void users_not_started(unsigned tag, const char *job);
/* kxfs shows JOB as launched: whoever removes it from now on ends it, and its programs may begin before that. */
void users_told(const char *job);
/*
 * What is asked for now may be started by a later mount, as what has been accepted is: kxfs has no helper for it yet,
 * or it ends in good order, and accepts what its writer does not hear of any more.
 */
void users_left(void);
/* Of a job of a machine: MAIN has so many replicas, and behind it stands SIDE, if it has any. */
enum users_policy { BY_REPLICA, BY_ROLE, BY_JOB };
struct users_roles {
	unsigned main, side, retries;
	enum users_policy policy;
};
const struct users_roles *users_roles(unsigned tag);
/* For how long a program of TAG may run at most; 0: for ever. */
unsigned users_limit_s(unsigned tag);
/* Is JOB one that was to begin later, and was not launched? */
bool users_held(const char *job);
bool users_may_be_not_known(const char *job);
/* Does kxfs show JOB as one of which it does not know whether it was launched? */
bool users_show_not_known(const char *job, pid_t pid);
/* Has its user removed JOB, or begun to? */
bool users_removed(const char *job);
/* How many jobs have been launched by now, whether they are over or not. */
size_t users_launched(void);
/* Faults have ended and time has passed: what holds by now? */
void users_judge(void);
/* That has been said. */
bool users_are_judged(void);
