/* SPDX-License-Identifier: MIT */
/* The interfaces between the parts of the simulated world. */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"

/* --- server.c: an API server with jobs of one kind or several, and their pods (cluster.h) --- */

/*
 * True if this history has chains. With chains, each JobSet owns a Link, and the Link owns the
 * pods. Nothing else relates the pods to the JobSet. The mount then uses a kind file that describes
 * this.
 */
bool server_has_chains(void);
/*
 * Return the number of kinds of jobs that the server has, and the name of the K-th or NULL. The
 * name is used in the SOURCE of kxfs and as `scheduler` in an AppDef.
 */
size_t server_n_kinds(void);
const char *server_kind(size_t k);

struct server_reply {
	int status;
	char *body; /* malloc'ed */
	size_t len;
	unsigned wait_ms; /* Retry-After; 0: none */
};

/* Handle a request that has arrived at the server. METHOD is an HTTP method. */
void server_ask(const char *method, const char *path, const char *body, size_t len,
		struct server_reply *ret);
/* Return a Kubernetes Status as JSON, malloc'ed. */
char *server_status(int code, const char *reason, const char *message);

/*
 * Watch PATH, which includes its query. The server calls FN with each event in order, after the
 * delay of this watch. It calls FN with NULL when it closes the watch. If the server refuses the
 * request, return NULL and store the reply in *RET.
 */
struct server_watch;
typedef void (*server_event_fn)(void *data, const char *line, size_t len);
struct server_watch *server_watch(const char *path, server_event_fn fn, void *data,
				  struct server_reply *ret);
void server_unwatch(struct server_watch *w);
void server_unwatch_all(void);
/* Close all streams. */
void server_cut(void);
/*
 * server_begin: etcd may be restored from now on. server_mend: finish a restore that has begun, and
 * allow no more.
 */
void server_begin(void);
void server_mend(void);
/* True while etcd is being restored and the server is unreachable. */
bool server_is_down(void);
/* Return how often etcd was restored. */
unsigned server_restores(void);
/* Return the number of jobs that exist, and the name of the I-th. */
size_t server_n_jobs(void);
const char *server_job(size_t i);

/*
 * A run of a pod's container. It prints lines "UID NUMBER"; UID is the pod's uid with the number of
 * the run in it. server_run finds the run with this UID, and returns false if there is none.
 */
#define SERVER_UID 36 /* characters */
struct server_run {
	const char *job_name;
	bool revived;	/* a restore of etcd has set its job back to an earlier version */
	size_t n, kept; /* it has printed N lines; the node has lost those before line KEPT */
	/* The node still has the run's log, because the run is the newest one or the one before. */
	bool there;
	bool ended;
	const char *job; /* the uid of its job */
	bool foreign;	 /* another user created the job, or its record was damaged */
	const char *replica;
	/* In a cluster, these identify the run. */
	const char *pod_uid, *container;
	unsigned restart;
	/* A webhook has added a container to its pod; that container prints nothing. */
	bool injected;
};
/*
 * True from the time when the mounting user loses the right to watch links until kxfs watches them
 * again. Meanwhile kxfs does not know which pods belong to a job with links, and a mount that
 * starts then can't read their output.
 */
bool server_hides_links(void);
bool server_run(const char *uid, struct server_run *ret);
/* Find the K-th run among all pods that JOB, a uid, ever had. Return false if there is none. */
bool server_nth_run(const char *job, size_t k, struct server_run *ret);
/*
 * Find the pods that TEXT, a message of kxfs, names before ", container C" or after " of ". Set
 * each member of *RET that is true for at least one of these pods. Return false if there are none,
 * or if a file of their job was damaged.
 */
struct server_pod {
	bool rotated; /* its node has lost lines */
	bool again;   /* its container was restarted */
	/*
	 * The pod was removed, or its job and the job's kind were removed. kxfs does not list the
	 * pods of a removed kind.
	 */
	bool gone;
};
bool server_pod_in(const char *text, struct server_pod *ret);
/* True if the job UID exists and is not being deleted. */
bool server_has_job(const char *uid);
/* All jobs that ever had the same name: their number N, and the status of the last one. */
struct server_fate {
	size_t n;
	const char *phase; /* "": its controller has not seen it yet */
	bool gone;	   /* removed, or being deleted */
	bool suspended;	   /* it was suspended at least once */
	/*
	 * The job or one of its pods changed a moment ago, or the job is an AppWrapper in its
	 * grace period after a failure.
	 */
	bool moves;
};
void server_fate(const char *name, struct server_fate *ret);
/* True if the job NAME is suspended, or if that is not certain. */
bool server_is_suspended(const char *name);
/*
 * Find a run of JOB's newest pod: its newest run, or the run that is BEFORE runs older. Return
 * false if there is no such run or if the node no longer has its log.
 */
bool server_job_run(const char *job, unsigned before, char ret_uid[SERVER_UID + 1],
		    struct server_run *ret);

/* --- hostile.c: other users --- */

void hostile_begin(void);
/*
 * Return the number of objects that other users have created, and the number of bytes that they
 * have added to objects.
 */
size_t hostile_made(void);
size_t hostile_bytes(void);
/* True if hostile.c created the job NAME, it exists, and no controller acts on it. */
bool hostile_is(const char *name);

/* --- kueue.c: Kueue, in some clusters --- */

bool kueue_is_here(void);
/* Check that kxfs shows which jobs wait for Kueue. Call this in a task. */
void kueue_judge(void);

/* --- kinds.c: faults that affect one of several kinds --- */

void kinds_begin(void);
/* True if the definition of KIND (NULL: of any kind) was removed or is being removed. */
bool kinds_removed(const char *kind);

/* --- http.c: the connections between kxfs and the server --- */

/* The longest time for which the server is unreachable, once in a history. */
#define SERVER_AWAY_S 80

/* After a kill of kxfs, break all requests. The server may still act on those that have arrived. */
void sim_http_kill(void);
/* From now on the mounting user may lose rights, and the server may become unreachable once. */
void sim_http_begin(void);
/* End all faults: no request is lost from now on. */
void sim_http_mend(void);

/* --- machine.c: the programs of local jobs --- */

/* Send SIG to the process group of the program PID. */
void machine_signal(pid_t pid, int sig);
/* Simulate a power cut of the machine. */
void machine_power_cut(void);
/* Return how often the machine has lost power. */
unsigned sim_boots(void);
/* End all faults: only kxfs affects the processes from now on. */
void machine_mend(void);
/* Note that kxfs is being unmounted, and may now terminate the programs that it has started. */
void machine_unmounted(void);
/* As server_run, for the local jobs that were started. */
bool machine_run(const char *uid, struct server_run *ret);
/*
 * As server_fate, for a local job. If one of its programs runs, PHASE is "Running" and N is 1.
 * Otherwise nothing more is known, and N is 2: callers don't compare the result of such a job, and
 * waiters_is_over returns true for it.
 */
void machine_fate(const char *name, struct server_fate *ret);
/* True if a program of JOB's REPLICA (NULL: of any replica) runs. */
bool machine_is_up(const char *job, const char *replica);
/*
 * machine_places: return the limit of running jobs, or 0 if there is none. machine_is_full: true if
 * that many jobs run.
 */
unsigned machine_places(void);
bool machine_is_full(void);
/* Return the name of a random replica of JOB. */
const char *machine_replica(const char *job);
size_t machine_n_jobs(void);
const char *machine_job(size_t i);
/* Check the final state of the machine. Call this in a task. */
void machine_judge(void);

/* --- kxfs.c --- */

extern struct fs *sim_fs; /* the mount of the current life, or NULL while it is not mounted */
/* Return the time since kxfs was mounted, in us, or 0 if it is not mounted. */
uint64_t mounted_us(void);
/* Start kxfs, and start it again after each life. The faults decide how a life ends. */
void sim_kxfs_begin(void);
/* Kill kxfs, or cut the machine's power, in US microseconds if this life has not ended by then. */
void sim_kxfs_kill(uint64_t us);
void sim_kxfs_power_cut(uint64_t us);
/* End all faults. If kxfs is not mounted, it is mounted soon. It is not killed any more. */
void sim_kxfs_mend(void);

/* --- reader.c --- */

void readers_begin(void);
/*
 * Check TEXT, which is what a reader of PATH, a `follow` file of JOB, has read so far. MERGED: it
 * is the merged log. ENDED: the reader has reached the end of the file.
 */
void readers_followed(const char *path, const char *text, bool merged, bool ended, const char *job);
/*
 * `wait` of JOB has just returned. Check that JOB's log has all output of its last run, or that
 * status.json reports missing output or an unreachable server. Call this in a task.
 */
void readers_waited(const char *job, pid_t pid);
/* Check that all output can now be read. Call this in a task. */
void readers_judge(void);
/* Check TEXT, the file LOG ("REPLICA/log") of JOB in the archive, whose status.json is STATUS. */
void readers_archived(const char *job, const char *log, const char *text, const char *status);

/* --- damage.c: a disk that damages files of the state directory --- */

/* Damage some files at random. Call this only while kxfs is not mounted. */
void damage_some(void);
/*
 * Note what kxfs does. damage_reported: it has written TEXT to .kxfs/log. damage_mounted: it is
 * mounted now. damage_launches: it sends or starts the job of TAG in LIFE.
 */
void damage_reported(const char *text);
void damage_mounted(void);
void damage_launches(unsigned tag, unsigned life);
/* True if a file of JOB was damaged; if RECORD, only its record counts. */
bool damage_hit(const char *job, bool record);

/* --- archive.c: checks of the archive --- */

bool archive_is_here(void);
/*
 * True if spool_limit is small. kxfs then removes archived output from the state directory, and it
 * may fetch output from a cluster again.
 */
bool archive_makes_room(void);
void archive_begin_looking(void);
/* Check the current contents of the archive. */
void archive_look(void);
void archive_after_power_cut(void);
/* True if a file of any job in the archive contains TEXT. */
bool archive_has(const char *text);
/* Check the archive at the end. Call this in a task. */
void archive_judge(void);

/* --- reader.c: gaps --- */

/* Check the gaps of PATH, the log of a run, whose contents are TEXT. */
void gaps_check(const char *path, const char *text);
/* Check the message TEXT, which kxfs has written to .kxfs/log. */
void gaps_reported(const char *text);
/* Check the number of reported gaps. Call this in a task. */
void gaps_judge(void);

/* --- looker.c: ctl --- */

void ctl_begin(void);
/* ctl_created: the server has accepted ACTION for JOB. ctl_obeyed: the controller acted on it. */
void ctl_created(const char *job, const char *action);
void ctl_obeyed(const char *job, const char *action);

/* Return how often users wrote WORD to JOB's ctl without being refused. */
unsigned ctl_asked(const char *job, const char *word);
/*
 * True if `suspend` is the last request for JOB that was not refused. *RET_CERTAIN is true if it is
 * certain that all requests that were not refused have been accepted.
 */
bool ctl_suspended(const char *job, bool *ret_certain);

/* --- waiter.c --- */

void waiters_begin(void);
/* True if the job that first had NAME has ended. */
bool waiters_is_over(const char *name);
/* Return the number of readers that follow a job now. */
size_t waiters_following(void);
/*
 * Check that no reader waits longer than it should, and that list and changes match the server.
 * Call this in a task.
 */
void waiters_judge(void);

/* --- writer.c --- */

#define WRITER_HABITS 9

/* One submission: how a user writes a text into a file. */
struct writing {
	unsigned tag, habit;
	enum kernel_sight sight;
	enum sim_stream stream;	 /* the stream of random numbers of this writer */
	const char *name, *path; /* the name in submit/, and the path below the mount */
	const char *text;
	uint64_t interrupt_us; /* for the last kernel_close */
	/* The process is killed at a random moment, unless it has finished by then. */
	bool dies;
	pid_t pid, child; /* CHILD is 0 if there is none */
	bool killed, over;
	bool late;   /* a request of the process may still change the file's name */
	bool passed; /* its descriptor is sent to a process that never receives it */
};

/*
 * Write W. Return the result of the close or rename that submits it, or of the first call that
 * failed. Call this in a task.
 */
int writer_write(struct writing *w);
/* Called before W's writer makes the close or rename that submits W. Defined in user.c. */
void writer_asks(struct writing *w);
pid_t writer_child(struct writing *w);
/*
 * writer_is_told: true if some process gets the result of the close or rename that submits.
 * writer_renames: true if a rename submits.
 */
bool writer_is_told(unsigned habit);
bool writer_renames(unsigned habit);

/* --- fuse.c --- */

/* Check that no request waits too long for its answer. STILL as in bounds_check. */
void requests_check(bool still);
size_t requests_on_disk(void); /* the number of requests that wait for the disk */

/* --- bounds.c --- */

/* Check all bounds; called once a second. STILL: the machine is suspended. */
void bounds_check(bool still);
/* Count a request that kxfs sends to the server. BODY may be NULL. */
void bounds_asked(const char *method, const char *path, const char *body);
/* True if kxfs has requested a log of JOB so often that it may pause before its next request. */
bool bounds_gives_up(const char *job);
/* Check the resources that kxfs holds at the end. */
void bounds_judge(void);

/* --- writer.c: dryrun/ --- */

void dry_begin(void);

/* --- looker.c --- */

void lookers_begin(void);
/* Check the texts of all jobs. Call this in a task. */
void lookers_judge(void);
/* Do what rm -r does with PATH; return the result of its last rmdir. Call this in a task. */
int looker_remove(pid_t pid, const char *path);

/* --- user.c --- */

/* Start the users. SET has a bit for each user who takes part. */
void users_begin(uint64_t set);
/*
 * Note what kxfs has done. users_sent: it has sent the object BODY. users_refused: it has received
 * the server's refusal of BODY.
 */
void users_sent(const char *body);
void users_refused(const char *body);
/* Note that the server has created a job from BODY, with this NAME and UID. */
void users_created(const char *body, const char *name, const char *uid);
/* Note that a restore of etcd has removed the job UID, which was created after the backup. */
void users_undone(const char *uid);
/* Note that another user has removed JOB and created a copy of it. */
void users_copied(const char *job);
/*
 * Check that a program of the local JOB, which belongs to TAG, may start. The helper of the program
 * started in the life LIFE, when sim_boots returned BOOT. FIRST: this is the first attempt.
 */
void users_started(unsigned tag, const char *job, bool first, unsigned life, unsigned boot);
/* Note that a program of JOB, which belongs to TAG, could not be started. */
void users_not_started(unsigned tag, const char *job);
/*
 * Note that kxfs shows JOB as launched. If a user removes JOB from now on, its programs may still
 * start before kxfs ends them.
 */
void users_shown(const char *job);
/*
 * Note that a later mount may start the jobs that are being submitted now, as if they had been
 * accepted. Call this if kxfs has no helper for them yet, or if kxfs is being unmounted and accepts
 * files whose writers no longer get a result.
 */
void users_left(void);
/*
 * The roles of a local job: "main" has MAIN replicas. "side" has SIDE replicas; if SIDE is 0, there
 * is no such role.
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
/* Return the number of jobs that have been launched so far, ended or not. */
size_t users_launched(void);
/* Check all promises to users, some time after the last fault. */
void users_judge(void);
/* True once users_judge has run. */
bool users_are_judged(void);
