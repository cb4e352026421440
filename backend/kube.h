/* SPDX-License-Identifier: MIT */
/*
 * The Kubernetes implementation's own structures and what its files call of each other; private to
 * kube*.c. Two watches (jobs of the kind, their pods) feed two tables of views; pods are joined to
 * jobs by the uid of their controller; a job that has changed is marked, and once a turn of the loop
 * the marked ones are published as snapshots. All of it belongs to the I/O thread; what runs on the
 * pool gets copies.
 */
#ifndef KXFS_BACKEND_KUBE_H
#define KXFS_BACKEND_KUBE_H

#include <stdatomic.h>

/* No memory for a table: the caller sees it by the handle's tbl. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "backend/diag.h"
#include "backend/events.h"
#include "backend/file.h"
#include "backend/http.h"
#include "backend/impl.h"
#include "backend/keep.h"
#include "backend/tally.h"
#include "backend/watch.h"
#include "spec/kind.h"
#include "spec/view.h"

struct kube_command;
struct kube_discover;
struct kube_log;
struct kube_op;

struct kube_pod {
	struct spec_pod_view *view;
	struct kube_job *job;
	unsigned round;		      /* of the list that held it last */
	struct kube_pod *prev, *next; /* of the job */
	UT_hash_handle hh;	      /* kube.pods, by uid; only while it is in the cluster */
};

/*
 * A job is in jobs/ until it has LEFT: by our own hand (then the cluster may still have it), or since
 * its object is GONE. It is forgotten when its object and its pods are gone and its output is in.
 */
struct kube_job {
	struct kube *k;
	char *uid;
	struct spec_job_view *view; /* NULL: only pods of it have been seen */
	struct spec_text *object;   /* its JSON */
	struct kube_pod *pods;
	size_t n_pods; /* of them in the cluster */
	size_t n_gone;
	unsigned round;
	int64_t since; /* when it was seen first, or made */
	bool waited;   /* SPEC_PATIENCE has passed since */
	bool waits;    /* as it was published: it has not started */
	bool marked;   /* to be published */
	bool left;
	bool gone;
	struct kube_job *mark_prev, *mark_next;
	struct spool_job *spool;      /* NULL: no output of it is wanted so far */
	struct kube_log *logs;	      /* by key */
	size_t n_following;	      /* of them wait, are under way or rest */
	size_t n_resting;	      /* of these: refused, and asked for again now and then */
	bool output_over;	      /* the merged log has ended */
	struct kube_command *command; /* that was written to ctl and has not shown; NULL: none */
	unsigned ignored;	      /* as in spec_job */
	UT_hash_handle hh;	      /* kube.jobs, by uid */
};

/* What the scheduler says of the pods of a job. It may come before the job. */
struct kube_group {
	struct spec_group_view *view;
	unsigned round;
	bool waited;	       /* SPEC_PATIENCE has passed since it was seen */
	UT_hash_handle hh;     /* kube.groups, by uid */
	UT_hash_handle hh_job; /* kube.job_groups, by the uid of its job */
};

struct kube_queue {
	struct spec_queue_view *view;
	struct kube_extra *from; /* the watch that told of it */
	unsigned round;
	bool changed;	   /* why of the jobs that wait in it is to be told anew */
	UT_hash_handle hh; /* kube.queues, by name */
};

/* What is watched beside jobs and pods, if that is allowed (kube_extra.c). */
enum kube_extra_id { KUBE_GROUPS, KUBE_EVENTS, KUBE_QUEUES, KUBE_OWN_QUEUE, KUBE_N_EXTRAS };

struct kube_extra {
	struct kube *k;
	enum kube_extra_id id;
	struct watch *watch; /* NULL: it is not wanted */
	char *resource;	     /* "podgroups.scheduling.volcano.sh"; set before the watch */
	unsigned round;
	bool listed; /* once */
	/* Under kube.lock: */
	int err; /* as the watch said last; 1: nothing yet */
	bool known;
	const char *verb;
	char *text;
};

/*
 * A folder of the state directory: of a job that was submitted through it, or whose output is in it.
 * Names come again, so a folder is a job's by its uid; before that is known, by its submission.
 */
struct kube_own {
	struct kube *k;
	char *id;
	char *uid;	  /* "" not known yet */
	char *submission; /* "" not submitted from here */
	char *file;	  /* as which it was written before this mount; NULL: not known, or since */
	int64_t written;  /* when, ns */
	bool output;	  /* there is some: it is history when the job leaves */
	bool unread;	  /* what it has of the job can't be read, and is not to be written over */
	bool dropped;	  /* its output was removed to make room: it is not captured again */
	bool clearing;	  /* that is being done */
	bool removing;	  /* no job's any more */
	loop_fn removed;  /* to be called then; NULL: nothing */
	void *data;
	UT_hash_handle hh; /* by id */
};

struct kube {
	struct backend *b;
	const struct spec_kind *kind; /* NULL: the cluster is being asked which it serves */
	struct spec_connection connection;
	char *jobs_path; /* of the collection, below the server */
	char *pods_path;
	char *resource; /* "jobs.batch.volcano.sh", for messages */
	struct credential *credential;
	struct http *http;
	struct kube_discover *discover;
	struct watch *watch_jobs, *watch_pods;
	bool listed_jobs, listed_pods; /* once */
	unsigned round_jobs, round_pods;
	int err_jobs, err_pods; /* as the watches said last */
	char *text_jobs, *text_pods;
	struct kube_extra extras[KUBE_N_EXTRAS];
	struct kube_group *groups, *job_groups;
	struct events *events;
	struct loop_timer *tick; /* until what is missed may be said, or queues are told anew */
	bool started;
	bool loading; /* the state directory is being read */
	bool stopping, http_stopped, stopped;

	struct kube_job *jobs;
	struct kube_pod *pods;
	struct kube_job *marked;
	bool publishing; /* a turn is posted */
	struct kube_own *own;
	struct kube_op *ops;		     /* requests under way */
	struct kube_keep *keeps, *keep_list; /* snapshots to be written, by uid and in order */
	struct loop_timer *keep_timer;
	bool keeping;		     /* one is being written */
	struct keep *keep;	     /* what becomes of old jobs */
	size_t n_removing;	     /* of them under way */
	struct kube_log *waiting;    /* logs that wait for a stream */
	size_t n_following, n_first; /* streams; of them fetched for a reader that waits, */
	size_t n_again, n_resting;   /* of logs that have rested; logs that rest */

	struct lock lock; /* for what is below, which .kxfs/info reads */
	int64_t stale_since;
	char *stale_text;	   /* why; NULL: connected */
	struct kube_queue *queues; /* by name; changed on the I/O thread alone */
	/* for metrics, read by any thread */
	atomic_ulong n_streams, n_waiting, n_events, n_pods;
	struct tally watch_ends;
};

static inline struct kube *kube_of(struct backend *b)
{
	return b->impl;
}

/* --- kube.c --- */

/* The connection that CONFIG means. 0, or a negative errno with *RET_TEXT. */
int kube_connection(const struct backend_config *config, struct spec_connection *ret,
		    char **ret_text);
/* The first lists are in, or (ERR) can't be had. */
void kube_started(struct kube *k, int err, const char *text);
/* Stopped, if nothing of it is under way any more. */
void kube_check_stopped(struct kube *k);
/* Why the server can't be reached, as the watch of the jobs last found. malloc'ed; NULL: it can. */
char *kube_offline(struct kube *k);

/* --- kube_metrics.c --- */

int kube_metrics(struct backend *b, FILE *out);

/* --- kube_watch.c: the watches of jobs and pods --- */

int kube_watch_start(struct kube *k);

/* --- kube_jobs.c: the table of jobs --- */

struct kube_job *kube_job_find(struct kube *k, const char *uid);
/* The job UID, made if it is not known. NULL: no memory. */
struct kube_job *kube_job_need(struct kube *k, const char *uid);
/* The watch has told JSON; GONE: as it was last. */
void kube_job_watched(struct kube *k, const char *json, size_t len, bool gone);
/*
 * A reply has brought JSON, which may be older than what the watch has told meanwhile. The job as it is
 * known now; NULL: it can't be read, or is gone already.
 */
struct kube_job *kube_job_told(struct kube *k, const char *json, size_t len);
/* The job is no longer in the cluster. May free it. */
void kube_job_gone(struct kube_job *job);
/* Forget it if nothing of it is left. */
void kube_job_settle(struct kube_job *job);
/* The list of this round is whole: what it does not hold is gone. */
void kube_jobs_listed(struct kube *k);
void kube_jobs_free(struct kube *k);

/* --- kube_pods.c: the table of pods --- */

/* The watch has told JSON; GONE: as it was last. */
void kube_pod_watched(struct kube *k, const char *json, size_t len, bool gone);
/* The list of this round is whole: what it does not hold is gone. May free jobs. */
void kube_pods_listed(struct kube *k);
/* Those of JOB, gone or not. */
void kube_pods_free(struct kube_job *job);

/* --- kube_extra.c: what is watched if it is allowed --- */

/* The first lists are in: begin. */
void kube_extra_start(struct kube *k);
void kube_extra_stop(struct kube *k);
void kube_extra_free(struct kube *k);
/* Is it known, as it is or as it was when the server could be reached last? Any thread. */
bool kube_extra_known(struct kube *k, enum kube_extra_id id);
/* And confirmed: what is not known is not there. */
bool kube_extra_confirmed(struct kube *k, enum kube_extra_id id);
/* Lines of .kxfs/info: what is refused, and what that costs. */
void kube_extra_info(struct kube *k, FILE *out);
/* Something has been seen first of which nothing can be said before SPEC_PATIENCE. */
void kube_tick_later(struct kube *k);

/* --- kube_groups.c: pod groups, queues and events as they are told --- */

void kube_group_told(struct kube_extra *x, const char *json, size_t len, bool gone);
void kube_event_told(struct kube_extra *x, const char *json, size_t len, bool gone);
void kube_queue_told(struct kube_extra *x, const char *json, size_t len, bool gone);
/* A list of theirs is whole. */
void kube_groups_listed(struct kube_extra *x);
void kube_queues_listed(struct kube_extra *x);
/* The object of this uid is known now, and JOB's. */
void kube_adopt_events(struct kube_job *job, const char *about);
/* The group of JOB; NULL: none is known. */
struct kube_group *kube_group_of(const struct kube_job *job);
void kube_groups_free(struct kube *k);
/* As backend.h says. */
int kube_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n);
struct spec_queue_view *kube_queue(struct backend *b, const char *name);
int kube_events_text(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		     int64_t *ret_changed);

/* --- kube_publish.c: from views to snapshots --- */

/* JOB is to be published; all marked ones are, in the loop's next turn. */
void kube_mark(struct kube_job *job);
/* Publish it now. 0 or -ENOMEM (it stays marked). */
int kube_publish(struct kube_job *job);
/* JOB leaves jobs/: for the history if output of it is kept, else for good. */
void kube_leave(struct kube_job *job);
/* The watches' word on whether the view is confirmed has changed. */
void kube_confirm(struct kube *k);

/* --- kube_logs.c: output --- */

/* SNAPSHOT of JOB is to be published: begin to follow what is captured, end what has ended. */
void kube_logs_look(struct kube_job *job, const struct spec_job *snapshot);
/* Say in SNAPSHOT what is known of the logs of JOB: which are complete, where something is missing. */
void kube_logs_fill(struct kube_job *job, struct spec_job *snapshot);
/* The same of a job that has left the cluster, with its pods, while no mount was there. */
void kube_logs_left(const struct kube *k, struct spec_job *snapshot);
void kube_logs_free(struct kube_job *job);
/* The server can be reached again: what it has refused is asked for. */
void kube_logs_again(struct kube *k);
/*
 * Call DONE for each log of JOB that is followed, when what was printed so far is in, or can't be had; *N is
 * counted up for each before.
 */
void kube_logs_wait(struct kube_job *job, size_t *n, loop_fn done, void *arg);
/* Hook of the spool: somebody opens log KEY (NULL: all) of job ID. */
void kube_logs_open(void *data, const char *id, const char *key, loop_fn done, void *arg);

/* --- kube_files.c: what an earlier mount has left --- */

/* Read all, on the pool; then FN. 0 or -ENOMEM (FN is not called). */
int kube_files_load(struct kube *k, void (*fn)(struct kube *k, int err));
/* The first lists are in: what an earlier mount knew and the cluster no longer has is history. */
void kube_files_settle(struct kube *k);

/* --- kube_own.c: whose the folders of the state directory are --- */

/* Whose folder ID is; NULL: there is none. */
struct kube_own *kube_own_find(struct kube *k, const char *id);
/* The folder of this very job; NULL: it has none. */
struct kube_own *kube_own_of(struct kube *k, const struct spec_job_view *view);
/* A new one, of the job UID ("": not known yet). NULL: no memory. */
struct kube_own *kube_own_add(struct kube *k, const char *id, const char *submission,
			      const char *uid);
/* The folder of VIEW's name, if it is that job's, is its from now on. */
void kube_own_bind(struct kube *k, const struct spec_job_view *view);
/* The submission whose folder is ID has become the job UID. */
void kube_own_launched(struct kube *k, const char *id, const char *uid);
/*
 * There is output of this job: its folder, made if there is none. 0, -ENOMEM, or -EBUSY: another job of
 * that name has the folder, which is being cleared if nobody needs it, or put aside if nobody can tell
 * whose it is; the job is marked then.
 */
int kube_own_claim(struct kube *k, const struct spec_job_view *view);
void kube_own_free(struct kube *k);
/* Remove the folder ID with all that is in it, on the pool; DONE (may be NULL) is called after that. */
void kube_folder_remove(struct kube *k, const char *id, loop_fn done, void *data);
/*
 * Remove the output in the folder ID, whose job has finished and is still in the cluster; all else of the
 * job stays, and that it was so also for the next mount. DONE (may be NULL) is called after that.
 */
void kube_output_drop(struct kube *k, const char *id, loop_fn done, void *data);
/* Was that done with the output of this job? */
bool kube_is_dropped(struct kube *k, const struct spec_job_view *view);
/* Was this job submitted from here? */
bool kube_is_own(struct kube *k, const struct spec_job_view *view);
/* Is there output of this job that is kept? */
bool kube_has_output(struct kube *k, const struct spec_job_view *view);

/* --- kube_keep.c --- */

/* The newest snapshot of UID, whose job has a folder, is to be on disk soon, or (NOW) at once. */
void kube_keep(struct kube *k, const char *uid, bool now);
/* Write what is left, without waiting. */
void kube_keep_stop(struct kube *k);

/* --- kube_submit.c, kube_cancel.c --- */

void kube_submit(struct backend *b, struct backend_request *rq); /* a dry run too */
void kube_cancel(struct backend *b, struct backend_request *rq);

/* --- kube_control.c --- */

void kube_control(struct backend *b, struct backend_request *rq);

/* --- kube_command.c: what was asked for --- */

/* JOB's view is about to be shown: what has come of its command? */
void kube_command_look(struct kube_job *job);
/* As spec_job.pending. */
unsigned kube_command_pending(const struct kube_job *job);
/* It is shown: who waits for that is answered. */
void kube_command_shown(struct kube_job *job);
/* JOB leaves, or the mount ends. */
void kube_command_gone(struct kube_job *job);

/* --- kube_forget.c --- */

extern const struct keep_ops kube_keep_ops;
void kube_forget(struct backend *b, struct backend_request *rq);

#endif
