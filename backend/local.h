/* SPDX-License-Identifier: MIT */
/*
 * The local backend's own structures and what its files call of each other; private to local*.c.
 * A job whose processes may still run, or whose record is not on disk yet, is a struct local_job
 * in struct local; any other is only a snapshot in the store and a job.json in the state
 * directory. All of it belongs to the I/O thread; what runs on the pool gets copies.
 *
 * Life of a replica's attempt: queued -> started (local_process.c) -> ended -> swept, that is
 * nothing of it runs any more (local_scan.c) -> drained, all that it printed is in its log
 * (local_relay.c) -> its log has ended -> gone (local_replica.c).
 */
#ifndef KXFS_BACKEND_LOCAL_H
#define KXFS_BACKEND_LOCAL_H

#include <signal.h>
#include <stdatomic.h>
#include <uthash.h>

#include "backend/diag.h"
#include "backend/file.h"
#include "backend/impl.h"
#include "backend/keep.h"
#include "spec/record.h"

struct local_job;

enum local_step {
	LOCAL_IDLE,    /* nothing runs and nothing is planned */
	LOCAL_QUEUED,  /* to be started, in local.queue */
	LOCAL_HELD,    /* to be started when the job is resumed */
	LOCAL_DELAYED, /* to be started when the timer fires */
	LOCAL_RUNNING, /* CHILD runs */
	LOCAL_LEAVING, /* CHILD has ended; what it left, RELAY's and its log's end are awaited */
};

struct local_replica {
	struct local_job *job;
	struct spec_record_replica *rec;
	enum local_step step;
	struct local_child *child;
	struct local_relay *relay; /* brings the attempt's output to its log; NULL: none */
	char *lost;		   /* why output of the attempt is lost; NULL: none is */
	struct loop_timer *timer;  /* RUNNING: until SIGKILL; DELAYED: until the start */
	unsigned restarts;	   /* of the retry budget */
	unsigned delay_ms;	   /* before the next start */
	unsigned tries;		   /* to start this attempt, in vain */
	bool begun;		   /* the attempt's log has begun */
	bool used;		   /* the attempt has been started, or given up */
	bool again;		   /* to be started again when it, its role or its job is gone */
	bool told;		   /* SIGTERM has been sent */
	struct local_replica *prev, *next; /* in local.queue */
};

struct local_role {
	size_t first, n;   /* its replicas */
	size_t live;	   /* of them RUNNING or LEAVING */
	unsigned restarts; /* of the retry budget, as a whole */
	unsigned delay_ms;
	bool again; /* all are started again when none is live */
};

/* What is to become of a job. All but RUN end its processes. */
enum local_goal { LOCAL_RUN, LOCAL_FAIL, LOCAL_TERMINATE, LOCAL_CANCEL, LOCAL_STOP };

/* A request that waits for the published job to fulfil it. */
struct local_wait {
	struct local_wait *prev, *next;
	struct local_job *job;
	struct backend_request *rq;
	enum { LOCAL_WAIT_SUBMIT, LOCAL_WAIT_CONTROL, LOCAL_WAIT_CANCEL, LOCAL_WAIT_FORGET } kind;
	struct loop_timer *timer;
};

struct local_job {
	struct local *l;
	struct spec_record *rec;
	struct spool_job *spool;
	struct local_replica *reps; /* rec->n_replicas */
	struct local_role *roles;   /* rec->app->n_roles */
	enum local_goal goal;
	size_t live;	 /* replicas RUNNING or LEAVING */
	size_t to_start; /* replicas that have not been tried at all */
	unsigned delay_ms;
	bool again;	 /* all are started again when none is live */
	bool restarting; /* until a process runs again */
	bool started;	 /* a process has run */
	bool shown;	 /* it has been published */
	bool over;	 /* its final state stands in the record */
	bool posted;	 /* a save is due in this turn */
	bool dirty;	 /* the record has changed since the last save began */
	bool writing;
	bool write_failed;
	struct spec_job *snapshot; /* to be published when it is written */
	struct loop_timer *retry;  /* of a failed save */
	struct local_wait *waits;
	struct local_replica *blamed; /* whose failure ended the job; NULL: none */
	UT_hash_handle hh;	      /* local.jobs, by rec->id */
};

struct local {
	struct backend *b;
	char *mark; /* "KXFS_STATE=" and the real path of the state directory */
	struct local_job *jobs;
	struct local_replica *queue;
	bool spawning;		  /* the queue's turn is posted */
	struct local_scan *scans; /* the first is under way when SCANNING */
	bool scanning;
	bool scan_posted;
	struct local_cold *cold; /* the first is under way when COLD_BUSY */
	bool cold_busy;
	struct keep *keep; /* what becomes of old jobs */
	size_t submitting; /* submissions and dry runs on the pool */
	size_t n_relays;   /* that run */
	bool recovering;   /* what is on disk is being read */
	bool stopping;
	bool stopped;
	struct loop_timer *deadline; /* of stopping */
	/* for metrics, read by any thread */
	atomic_ulong n_processes, n_started, n_not_started, n_restarts, n_unsaved;
};

static inline struct local *local_of(struct backend *b)
{
	return b->impl;
}

/* --- local_file.c: the record on disk; any thread, waits for the disk --- */

int local_record_read(const char *state_dir, const char *id, struct spec_record **ret);
int local_record_write(const char *state_dir, const struct spec_record *rec);
static inline void local_record_freep(struct spec_record **rec)
{
	spec_record_free(*rec);
}
/* Set a text of a record; out of memory, it stays as it was. */
void local_say(char **field, const char *fmt, ...) printf_like(2, 3);

/* --- local_submit.c, local_control.c: requests --- */

void local_submit(struct backend *b, struct backend_request *rq);
void local_cancel(struct backend *b, struct backend_request *rq);
void local_control(struct backend *b, struct backend_request *rq);
void local_forget(struct backend *b, struct backend_request *rq);
/* SNAP of JOB is published: answer who waited for it. */
void local_wait_check(struct local_job *job, const struct spec_job *snap);
/* JOB leaves memory: what still waits for that. */
void local_wait_retired(struct local_job *job);
/* Let RQ wait on JOB; -ENOMEM: it is still the caller's. */
int local_wait_add(struct local_job *job, int kind, struct backend_request *rq);

/* --- local_dry_run.c --- */

void local_dry_run(struct backend *b, struct backend_request *rq);
/* The manifest of the document in RQ. 0, or an errno, with errors in E if the document is to blame. */
int local_dry_run_make(struct local *l, const struct backend_request *rq, char **ret,
		       struct spec_errors *e);

/* --- local_cold.c: changes of jobs that are only on disk, one at a time --- */

enum local_cold_kind { LOCAL_COLD_CANCEL, LOCAL_COLD_FORGET, LOCAL_COLD_EXPIRE };
/* RQ is answered when it is done; NULL for LOCAL_COLD_EXPIRE. */
void local_cold_add(struct local *l, enum local_cold_kind kind, const char *uid,
		    struct backend_request *rq);

/* --- local_recover.c --- */

/* Read what the state directory holds, end what an earlier daemon left; then backend_started. */
void local_recover(struct local *l);

/* --- local_job.c: a job as a whole --- */

/* A job of REC (taken over, also on failure). NULL: no memory. */
struct local_job *local_job_new(struct local *l, struct spec_record *rec);
struct local_job *local_job_find(struct local *l, const char *id);
/* Something of it has changed: state and phase follow, it is saved and published. */
void local_job_touch(struct local_job *job);
/* End all its processes and with them the job, for the reason GOAL. */
void local_job_end(struct local_job *job, enum local_goal goal);
/* Nothing of REP, or of the job when REP is NULL, is live any more: what comes next? */
void local_job_next(struct local_job *job, struct local_replica *rep);
/* Start all again once nothing is live. */
void local_job_restart(struct local_job *job, unsigned delay_ms);
/* Free what fini finds. */
void local_job_free(struct local_job *job);

/* --- local_save.c: the record on disk, and then the snapshot in the store --- */

/* Write and publish JOB at the end of this turn. */
void local_save(struct local_job *job);
void local_save_free(struct local_job *job);

/* --- local_replica.c: one replica --- */

struct spec_role *local_replica_role(const struct local_replica *rep);
/* Start it, after DELAY_MS. */
void local_replica_begin(struct local_replica *rep, unsigned delay_ms);
/* Have it started again once it, its role or its job is gone: end what runs. */
void local_replica_again(struct local_replica *rep);
/* End what runs or is planned, for good. */
void local_replica_end(struct local_replica *rep);
/* SIGKILL now. */
void local_replica_kill(struct local_replica *rep);
/* Its process has ended with STATUS or by signal SIG. */
void local_replica_exited(struct local_replica *rep, int status, int sig);
/* Nothing of the attempt runs any more. */
void local_replica_swept(struct local_replica *rep);
/* All that it printed is in its log. */
void local_replica_drained(struct local_replica *rep);
void local_replica_free(struct local_replica *rep);
/* Have its log there, empty, before it is started. */
void local_replica_open_log(struct local_replica *rep);
/* Held replicas of a job that goes on. */
void local_replica_release(struct local_replica *rep);

/* --- local_reason.c --- */

/* "9 (SIGKILL)" */
void local_signal_text(int sig, char ret[32]);
/* Its message, and maybe its reason: how the attempt has ended, if it has, and what of it is lost. */
void local_replica_say(struct local_replica *rep);
/* Its output is cut: TEXT (taken over; NULL: no memory) says why. Before local_replica_drained. */
void local_replica_lost(struct local_replica *rep, char *text);
/* The reason then. */
#define LOCAL_LOST "OutputLost"
/* The job's reason is REP's, which has failed for good. */
void local_job_blame(struct local_job *job, struct local_replica *rep);

/* --- local_retry.c --- */

/* REP has failed, by its own fault: start again what its policy says, or give the job up. */
void local_retry(struct local_replica *rep);
/* Before the first retry, and at most. */
#define LOCAL_DELAY_MIN_MS 100u
#define LOCAL_DELAY_MAX_MS 10000u

/* --- local_process.c: one process --- */

struct local_child {
	uv_process_t process;
	struct local_replica *rep; /* NULL: nobody cares any more */
};

/*
 * Start the process of REP with stdout and stderr to FD. 0, or a negative errno with *RET_TEXT
 * (malloc'ed or NULL), which says what can't be run.
 */
int local_process_start(struct local_replica *rep, int fd, char **ret_text);
/* Signal its process group. */
void local_process_signal(const struct local_replica *rep, int sig);
/* Field 22 of /proc/PID/stat; 0: there is no such process, or only its remains. */
uint64_t local_process_birth(pid_t pid);

/* --- local_relay.c: the way of a replica's output --- */

/*
 * Start what brings the output of REP's attempt to LOG_FD (O_APPEND). *RET_FD (the caller's) is
 * where the attempt's process is to write. 0, or a negative errno with *RET_TEXT (malloc'ed or
 * NULL); -EAGAIN: a relay that was dropped still has the log.
 */
int local_relay_start(struct local_replica *rep, int log_fd, int *ret_fd, char **ret_text);
/* No process was started after all. It ends when *RET_FD is closed, and nobody waits for that. */
void local_relay_drop(struct local_replica *rep);
/* Nothing of the attempt runs any more: when all is written (bounded), local_replica_drained. */
void local_relay_end(struct local_replica *rep);
/*
 * Pool: wait until no relay of an earlier daemon writes the log PATH, or until DEADLINE
 * (loop_now_ms): false. One whose pipe is held open is told to end.
 */
bool local_relay_await(const char *path, uint64_t deadline);

/* --- local_scan.c: processes found by their mark --- */

/* SIGKILL all that REP's process left behind; then local_replica_swept. */
void local_scan_sweep(struct local_replica *rep);
/* Signal the processes of JOB that have left their replica's group. */
void local_scan_signal(struct local_job *job, int sig);
/* On the pool: SIGKILL all processes of this state directory, until none is left (bounded). */
void local_scan_kill_all(const char *mark);

/* --- local.c --- */

/* Perhaps the last of it is gone: if so, say that the backend has stopped. */
void local_check_stopped(struct local *l);

#endif
