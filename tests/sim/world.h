/* SPDX-License-Identifier: MIT */
/* The interfaces between the parts of the simulated world. */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"

/* --- server.c: an API server with jobs of one kind or several, and their pods (cluster.h) --- */

/*
 * True if this history has chains: each JobSet owns a Link, which owns its pods, and nothing else
 * relates the pods to the JobSet. The mount then uses another kind file.
 */
bool server_has_chains(void);
/*
 * The number of kinds of the server, and the name of the K-th in kxfs's SOURCE, which is also its
 * scheduler in an AppDef.
 */
size_t server_n_kinds(void);
const char *server_kind(size_t k);

struct server_reply {
	int status;
	char *body; /* malloc'ed */
	size_t len;
	unsigned wait_ms; /* Retry-After; 0: none */
};

/* Handle a request that has arrived at the server. METHOD as in HTTP. */
void server_ask(const char *method, const char *path, const char *body, size_t len,
		struct server_reply *ret);
/* Return a Kubernetes Status as JSON, malloc'ed. */
char *server_status(int code, const char *reason, const char *message);

/*
 * Watch PATH, with its query. FN is called with each event in order, after a delay of this watch,
 * and with NULL when the server closes the watch. Return NULL if the server refuses the request;
 * *RET is its reply.
 */
struct server_watch;
typedef void (*server_event_fn)(void *data, const char *line, size_t len);
struct server_watch *server_watch(const char *path, server_event_fn fn, void *data,
				  struct server_reply *ret);
void server_unwatch(struct server_watch *w);
void server_unwatch_all(void);
/* Close all streams. */
void server_cut(void);
/* Allow restores of etcd from now on; stop them. */
void server_begin(void);
void server_mend(void);
/* True while etcd is being restored and the server is unreachable. */
bool server_is_down(void);
/* Return how often etcd was restored. */
unsigned server_restores(void);
/* The number of jobs, and the name of the K-th. */
size_t server_n_jobs(void);
const char *server_job(size_t i);

/*
 * A run of a pod's container, which prints lines "UID NUMBER". UID is the pod's uid with the number
 * of the run in it. server_run returns false if there was no such run.
 */
#define SERVER_UID 36 /* characters */
struct server_run {
	const char *job_name;
	bool revived;	/* restoring etcd has set its job back */
	size_t n, kept; /* N lines; the node has lost those before KEPT */
	bool there;	/* the node still has its log: it is the newest run or the one before */
	bool ended;
	const char *job; /* its uid */
	bool foreign;	 /* another user created the job, or its record was damaged */
	const char *replica;
	/* In a cluster: the key of the run. */
	const char *pod_uid, *container;
	unsigned restart;
	bool injected; /* its pod has an additional container, which prints nothing */
};
bool server_run(const char *uid, struct server_run *ret);
/* Find the K-th run of all pods that the job UID ever had. */
bool server_nth_run(const char *job, size_t k, struct server_run *ret);
/*
 * Find the pods that the message TEXT names before ", container C" or after " of ". Each member is
 * true if it holds for one of them. Return false if there are none, or if a file of their job was
 * damaged.
 */
struct server_pod {
	bool rotated; /* its node has lost lines */
	bool again;   /* its container was restarted */
	bool gone; /* it was removed; or the job and the kind were, whose pods kxfs then no longer fetches */
};
bool server_pod_in(const char *text, struct server_pod *ret);
/* True if the job UID exists and is not being deleted. */
bool server_has_job(const char *uid);
/* The number of jobs that ever had a NAME, and the status of the last. */
struct server_fate {
	size_t n;
	const char *phase; /* "": its controller has not seen it yet */
	bool gone;	   /* removed, or being deleted */
	bool suspended;	   /* at least once */
	bool moves; /* it or one of its pods has changed a moment ago, or has failed and has grace */
};
void server_fate(const char *name, struct server_fate *ret);
/* True if the job is suspended or may be. */
bool server_is_suspended(const char *name);
/*
 * Find the newest run of JOB's current pod, or the run BEFORE that one, if the node still has its
 * log.
 */
bool server_job_run(const char *job, unsigned before, char ret_uid[SERVER_UID + 1],
		    struct server_run *ret);

/* --- hostile.c: other users --- */

void hostile_begin(void);
/*
 * The number of objects that they have created, and the bytes that they have added to any object.
 */
size_t hostile_made(void);
size_t hostile_bytes(void);
/* True if the job NAME exists and no controller acts on it. */
bool hostile_is(const char *name);

/* --- kueue.c: Kueue, in some clusters --- */

bool kueue_is_here(void);
/* Check that kxfs shows which jobs wait for Kueue. In a task. */
void kueue_judge(void);

/* --- kinds.c: faults of one kind of several --- */

void kinds_begin(void);
/* True if the definition of KIND (NULL: of any kind) was removed or is being removed. */
bool kinds_removed(const char *kind);

/* --- http.c: the connections between kxfs and the server --- */

#define SERVER_AWAY_S 80 /* the server is unreachable for this long, once */

/* kxfs was killed: break all requests. The server may still act on those that it has received. */
void sim_http_kill(void);
/* Start taking and returning the user's rights. */
void sim_http_begin(void);
/* End all faults: no request is lost from now on. */
void sim_http_mend(void);

/* --- machine.c: in a history of a machine, its programs --- */

/* Send SIG to the process group of the program PID. */
void machine_signal(pid_t pid, int sig);
/* The machine loses power. */
void machine_power_cut(void);
/* Return how often the machine has lost power. */
unsigned sim_boots(void);
/* End all faults: only kxfs affects the processes from now on. */
void machine_mend(void);
/* kxfs is being unmounted, and terminates the programs that it has started. */
void machine_unmounted(void);
/* As server_run, for the local jobs that were started. */
bool machine_run(const char *uid, struct server_run *ret);
/*
 * As server_fate; PHASE is set if something of the job runs. N is 2 if it is only known that
 * nothing runs.
 */
void machine_fate(const char *name, struct server_fate *ret);
/* True if a program of JOB's REPLICA (NULL: of any replica) runs. */
bool machine_is_up(const char *job, const char *replica);
/* The limit of running jobs (0: none), and true if that many run. */
unsigned machine_places(void);
bool machine_is_full(void);
/* Return the name of a replica of JOB. */
const char *machine_replica(const char *job);
size_t machine_n_jobs(void);
const char *machine_job(size_t i);
/* Check the final state of the machine. In a task. */
void machine_judge(void);

/* --- kxfs.c --- */

extern struct fs *sim_fs; /* of the current life, or NULL while it is not mounted */
/* Return the time since it was mounted. */
uint64_t mounted_us(void);
/* Start the lives of kxfs, which end as the faults decide. */
void sim_kxfs_begin(void);
/* Kill kxfs, or cut the machine's power, in US microseconds if this life has not ended by then. */
void sim_kxfs_kill(uint64_t us);
void sim_kxfs_power_cut(uint64_t us);
/* End all faults: kxfs is mounted soon and not killed any more. */
void sim_kxfs_mend(void);

/* --- reader.c --- */

void readers_begin(void);
/* PATH, a file of JOB that blocks, has returned TEXT so far. ENDED: the reader has seen its end. */
void readers_followed(const char *path, const char *text, bool merged, bool ended, const char *job);
/*
 * `wait` of JOB has just returned. Check that its log has all output of its last run, or that
 * status.json reports missing output or that the server is unreachable. In a task.
 */
void readers_waited(const char *job, pid_t pid);
/* Check that all output can now be read. In a task. */
void readers_judge(void);
/* Check TEXT, the file LOG ("REPLICA/log") of JOB in the archive, whose status.json is STATUS. */
void readers_archived(const char *job, const char *log, const char *text, const char *status);

/* --- damage.c: a disk that damages files of the state directory --- */

/* kxfs is not mounted: files may be damaged. */
void damage_some(void);
/* kxfs has written TEXT to .kxfs/log; it is mounted; it sends or starts TAG in LIFE. */
void damage_reported(const char *text);
void damage_mounted(void);
void damage_launches(unsigned tag, unsigned life);
/* True if a file of JOB was damaged; RECORD: its record was. */
bool damage_hit(const char *job, bool record);

/* --- archive.c: checks of the archive --- */

bool archive_is_here(void);
/*
 * True if the state directory is small: archived output is removed from it, and a cluster's output
 * may be fetched again.
 */
bool archive_makes_room(void);
void archive_begin_looking(void);
/* Check the present contents. */
void archive_look(void);
void archive_after_power_cut(void);
/* True if a file of any job in the archive contains TEXT. */
bool archive_has(const char *text);
/* In a task. */
void archive_judge(void);

/* --- reader.c: gaps --- */

/* Check the gaps of PATH, the log of a run, whose contents are TEXT. */
void gaps_check(const char *path, const char *text);
/* kxfs has written TEXT to .kxfs/log. */
void gaps_reported(const char *text);
/* Check the number of reported gaps. In a task. */
void gaps_judge(void);

/* --- looker.c: ctl --- */

void ctl_begin(void);
/* A Command for JOB was created on the server; JOB's controller has carried it out. */
void ctl_created(const char *job, const char *action);
void ctl_obeyed(const char *job, const char *action);

/* Return how often WORD was written to the ctl of JOB, a local job, without an error. */
unsigned ctl_asked(const char *job, const char *word);
/*
 * True if the last request to JOB was to suspend it. *RET_CERTAIN: the request was certainly
 * accepted.
 */
bool ctl_suspended(const char *job, bool *ret_certain);

/* --- waiter.c --- */

void waiters_begin(void);
/* True if the job that first had NAME has ended. */
bool waiters_is_over(const char *name);
/* Return the number of readers that follow a job now. */
size_t waiters_following(void);
/*
 * Check that no reader waits longer than it should, and that list and changes match the server. In
 * a task.
 */
void waiters_judge(void);

/* --- writer.c --- */

#define WRITER_HABITS 9

/* One submission: how a user writes a text into a file. */
struct writing {
	unsigned tag, habit;
	enum kernel_sight sight;
	enum sim_stream stream;	 /* the writer's own */
	const char *name, *path; /* the name in submit/, and the path below the mount */
	const char *text;
	uint64_t interrupt_us; /* for the last kernel_close */
	bool dies;	       /* the process is killed at some moment, unless it has finished */
	pid_t pid, child;      /* CHILD is 0 if there is none */
	bool killed, over;
	bool late;   /* a request of the process may still change the file's name */
	bool passed; /* its descriptor was sent to a process that never received it */
};

/*
 * Write W. Return the result of the close or rename that submits it, or of the first call that
 * failed. In a task.
 */
int writer_write(struct writing *w);
/* In user.c: the close or rename that submits W follows. */
void writer_asks(struct writing *w);
pid_t writer_child(struct writing *w);
/*
 * writer_is_told: true if the process that submits gets the result. writer_renames: true if it
 * submits by a rename.
 */
bool writer_is_told(unsigned habit);
bool writer_renames(unsigned habit);

/* --- fuse.c --- */

/* As bounds_check, for requests that wait for an answer. */
void requests_check(bool still);
size_t requests_on_disk(void); /* the number that wait for the disk */

/* --- bounds.c --- */

/* Check all bounds; called once a second. STILL: the machine is suspended. */
void bounds_check(bool still);
/* kxfs sends a request to the server, with BODY (or NULL). */
void bounds_asked(const char *method, const char *path, const char *body);
/*
 * True if a log of JOB was requested so often recently that kxfs may have stopped requesting it for
 * now.
 */
bool bounds_gives_up(const char *job);
/* Check the resources that kxfs holds at the end. */
void bounds_judge(void);

/* --- writer.c: dryrun/ --- */

void dry_begin(void);

/* --- looker.c --- */

void lookers_begin(void);
/* Check the texts of all jobs. In a task. */
void lookers_judge(void);
/* Do rm -r of PATH; return the result of its last rmdir. In a task. */
int looker_remove(pid_t pid, const char *path);

/* --- user.c --- */

/* Start the users whose bit is in SET. */
void users_begin(uint64_t set);
/*
 * users_sent: kxfs has sent the object BODY. users_refused: kxfs has received the server's refusal
 * of BODY.
 */
void users_sent(const char *body);
void users_refused(const char *body);
/* The server has created a job from BODY, with this NAME and UID. */
void users_created(const char *body, const char *name, const char *uid);
/* The job UID was created after the backup from which etcd was restored. */
void users_undone(const char *uid);
/* Another user has removed JOB and created a copy of it. */
void users_copied(const char *job);
/*
 * On a machine: kxfs passes JOB, which belongs to TAG, to a helper in life LIFE (BOOT as of
 * sim_boots), and its program starts. FIRST: this is the first attempt.
 */
void users_started(unsigned tag, const char *job, bool first, unsigned life, unsigned boot);
/* A program of JOB, which belongs to TAG, could not be started. */
void users_not_started(unsigned tag, const char *job);
/*
 * kxfs shows JOB as launched. A user who removes it from now on ends it; its programs may start
 * before that.
 */
void users_shown(const char *job);
/*
 * A later mount may start jobs that are submitted now, as it does with accepted ones: kxfs has no
 * helper for them yet, or it is being unmounted and accepts files whose writers no longer get a
 * result.
 */
void users_left(void);
/*
 * The roles of a local job: MAIN has this many replicas, and SIDE is started after it, if it has
 * any.
 */
enum users_policy { BY_REPLICA, BY_ROLE, BY_JOB };
struct users_roles {
	unsigned main, side, retries;
	enum users_policy policy;
};
const struct users_roles *users_roles(unsigned tag);
/* Return the time limit of TAG's programs, or 0. */
unsigned users_limit_s(unsigned tag);
/* True if JOB is a held job that was not launched. */
bool users_held(const char *job);
bool users_may_be_not_known(const char *job);
/* True if kxfs shows that it does not know whether JOB was launched. */
bool users_show_not_known(const char *job, pid_t pid);
/* True if JOB's user has removed it or has begun to. */
bool users_removed(const char *job);
/* Return the number of jobs that were launched so far, ended or not. */
size_t users_launched(void);
/* Check all promises to users, some time after the last fault. */
void users_judge(void);
/* True once users_judge has run. */
bool users_are_judged(void);
