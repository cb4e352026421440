/* SPDX-License-Identifier: MIT */
/*
 * The interface that fs/ uses. It has snapshots of jobs, their texts and output, requests that
 * change jobs, and callbacks for events. Of the rest of backend/, fs/ may use only output/log.h and
 * base/. Functions that read data use memory or the state directory, and never wait for a server.
 * An operation that may wait for a server is a request: a callback receives its reply.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/jobs/job_files.h"
#include "backend/jobs/store.h"
#include "backend/output/log.h"
#include "spec/app/app.h"
#include "spec/job/job.h"
#include "spec/view/watched.h"

struct backend;

enum backend_capture { BACKEND_CAPTURE_OWN, BACKEND_CAPTURE_ALL, BACKEND_CAPTURE_NONE };

/* Plain data; everything that it points to is borrowed. */
struct backend_config {
	const struct spec_kinds *kinds; /* all kinds that kxfs knows */
	/*
	 * The SOURCE of the mount: "local", or a source such as "jobset" that selects one kind. If
	 * it is "", the mount shows all KINDS that the cluster serves.
	 */
	const char *kind;
	const char *context;	/* the context of the kubeconfig to use; "": its current context */
	const char *namespace;	/* "": the namespace of the context */
	const char *kubeconfig; /* path of a file; "": the files that kubectl uses */
	const char *as;		/* the user to impersonate; "": none */
	const char *selector;	/* label selector of the jobs to show; "": all jobs */
	/* True to show only the jobs that this user submitted through kxfs. */
	bool mine;
	/* The jobs whose output kxfs captures even if no process reads it. */
	enum backend_capture capture;
	/* absolute path; the directory exists, belongs to this user, and is locked */
	const char *state_dir;
	const char *work_dir;	/* where local replicas run */
	const char *mountpoint; /* local replicas must not run below it; may be NULL */
	const char *submitter;	/* user@host of the user who mounts */
	/* the path for a leading "~" in a job's bind mounts, or NULL */
	const char *home;
	const struct spec_pair *args; /* the mount's run options */
	size_t n_args;
	unsigned grace_ms; /* time between SIGTERM and SIGKILL, in ms */
	bool linger;	   /* true if local jobs continue to run after backend_stop */
	/* true if kxfs must not launch or start any job: the mount is read-only */
	bool passive;
	unsigned jobs; /* largest number of running local jobs; 0: no limit */
	/* Number of GPUs for local jobs, at most 64; 0: none; -1: all of the machine's. */
	int gpus;
	uint64_t spool_limit; /* largest size of all output on disk, in bytes */
	int64_t history_keep; /* the time for which jobs remain in history/, in seconds */
	/* absolute path of the directory for copies of finished jobs, or NULL */
	const char *archive;
	bool archives; /* true to copy finished jobs to ARCHIVE; false to only show its path */
};

/*
 * Callbacks for events. kxfs calls them on the I/O thread, without a lock. Set once, before
 * backend_start.
 */
struct backend_events {
	/*
	 * Called when a job is new (OLD is NULL), has changed, was moved to history
	 * (NEW_JOB->history and not OLD->history), or was deleted for good (NEW_JOB is NULL). OLD
	 * and NEW_JOB are borrowed. The store already has NEW_JOB.
	 */
	void (*job)(void *data, const struct spec_job *old, const struct spec_job *new_job);
	/* Called when the open log LOG has grown or ended. LOG is borrowed. */
	void (*log)(void *data, struct log *log);
	/*
	 * Called when the job that FILE launched is about to be removed, because it was in history/
	 * for history_keep, unless FILE has launched another job since. DIGEST is the SHA-256 of
	 * the job's document. The callback may only remember FILE and DIGEST for later.
	 */
	void (*expired)(void *data, const char *file, const char *digest);
	void *data;
};

enum backend_grade {
	BACKEND_FINE,
	BACKEND_LACKS, /* a mount works, with limitations */
	BACKEND_WRONG, /* a mount would fail */
};
/*
 * Check everything that a mount needs in the cluster of CONFIG: the connection, the server's
 * version and clock, the served kinds, and each right. Do not change anything in the cluster. Use
 * only those members of CONFIG that describe the connection and the kind. Call FN with each result
 * as soon as it is known. TEXT is a line for people, without secrets. The checks take a limited
 * time. Call this before any thread runs. SIGINT, SIGTERM and SIGHUP end this process, and the
 * processes that it has started for the checks.
 */
void backend_examine(const struct backend_config *config,
		     void (*fn)(void *data, enum backend_grade grade, const char *text),
		     void *data);

/*
 * Check whether the directory DIR can be an archive. Wait for the disk of DIR, but only for a
 * limited time. Return 0, or a negative errno with *RET_TEXT, malloc'ed.
 */
int backend_examine_archive(const char *dir, char **ret_text);

/*
 * Read the contexts of the file KUBECONFIG. If KUBECONFIG is "", read the contexts of the files
 * that kubectl uses. Set *RET to an array of the strings "CONTEXT/NAMESPACE" that ends with NULL.
 * The array and its strings are malloc'ed. Return 0, or a negative errno with *RET_TEXT, malloc'ed.
 * May be called at any time.
 */
int backend_contexts(const char *kubeconfig, char ***ret, char **ret_text);
/*
 * backend_libraries returns the backend's libraries and their versions, "libuv 1.44.2, ...".
 * backend_features returns the features of these libraries, "https http2 ...". Both texts are
 * malloc'ed.
 */
char *backend_libraries(void);
char *backend_features(void);
/*
 * Set *RET (malloc'ed) to the name of the default state directory for a mount with CONFIG. Mounts
 * that show different jobs get different names. This reads the kubeconfig, and does not use
 * CONFIG->state_dir. Return 0, or a negative errno with *RET_TEXT, malloc'ed. May be called at any
 * time.
 */
int backend_key(const struct backend_config *config, char **ret, char **ret_text);
/*
 * Make a backend on LOOP from CONFIG. The strings of CONFIG must outlive the backend. Return 0, or
 * a negative errno; *RET_TEXT (malloc'ed or NULL) has the error and its remedy.
 */
int backend_new(struct loop *loop, const struct backend_config *config,
		const struct backend_events *events, struct backend **ret, char **ret_text);
/*
 * Read the state directory, connect to the server, and wait at most 60 s for the first list of
 * jobs. Call this while the loop runs. Return 0, or a negative errno with *RET_TEXT, malloc'ed.
 */
int backend_start(struct backend *b, char **ret_text);
/*
 * Cancel the start: make backend_start return -ECANCELED immediately. After the start, this has no
 * effect. It also has no effect on a local backend, which waits only for the disk of this machine
 * when it starts. Any thread.
 */
void backend_give_up(struct backend *b);
/*
 * Let B start and end jobs. Call this once the mount is up, but never for a read-only mount. Before
 * this call, B only shows existing jobs, and backend_stop does not end any job. So a failed start
 * does not change any job. Any thread.
 */
void backend_take_charge(struct backend *b);
/* Return how long backend_stop may take, in seconds. */
unsigned backend_stop_seconds(const struct backend *b);
/*
 * End the local jobs, unless they linger or backend_take_charge was not called. Write all pending
 * changes to disk. Wait for both operations, but only for a limited time. Return true if both are
 * done. Otherwise return false. The caller must then end the process immediately, without freeing
 * anything.
 */
bool backend_stop(struct backend *b);
/* Call this after loop_stop, if backend_stop returned true. */
void backend_free(struct backend *b);

/*
 * Call this first in main() of every program with a backend. To run a helper process, the backend
 * starts its own executable under another name. A helper process outlives the backend, or sets its
 * resource limits and executes another program. In a helper process this function does not return.
 */
void backend_helper(char **argv);

/* --- jobs; any thread, from memory --- */

/*
 * Return a new reference to the snapshot of the job ID in the folder PLACE. Return NULL if there is
 * no such job.
 */
const struct spec_job *backend_job(struct backend *b, enum backend_place place, const char *id);
/*
 * Return a new reference to the snapshot of the job with this UID, in whichever folder it is.
 * Return NULL if there is no such job.
 */
const struct spec_job *backend_job_by_uid(struct backend *b, const char *uid);
/*
 * Set *RET to all snapshots of the folder PLACE, ordered by the creation of their jobs. *RET is
 * malloc'ed, and each item is a new reference.
 */
void backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		  size_t *ret_n);
/*
 * Return the mtime of the folder PLACE in ns: the time at which its list of jobs last changed. Each
 * change of the list increases the mtime.
 */
int64_t backend_changed(struct backend *b, enum backend_place place);
/*
 * Return a number that changes whenever a job of the folder PLACE changes. Such a change need not
 * change the folder's mtime.
 */
uint64_t backend_revision(struct backend *b, enum backend_place place);
/*
 * Find the job that FILE of submit/ launched last, if it is in jobs/ or history/. Return 0, or
 * -ENOENT if there is no such job. Also return -ENOENT if backend_unlink_file was called for FILE
 * after that launch.
 */
int backend_file(struct backend *b, const char *file, struct backend_file *ret);
/*
 * Set *RET to all FILEs for which backend_file finds a job, and return their number. *RET and its
 * items are malloc'ed.
 */
size_t backend_files(struct backend *b, char ***ret);
/*
 * Return the time in ns at which the list of backend_files last changed. fs/ shows this time as an
 * mtime. Each change of the list increases it.
 */
int64_t backend_files_changed(struct backend *b);
/*
 * Unlink FILE: from now on, backend_file finds no job for FILE, not even an older one, until FILE
 * launches another job. This remains so after a restart. Return 0, or -ENOENT if backend_file finds
 * no job for FILE now.
 */
int backend_unlink_file(struct backend *b, const char *file);
/*
 * True if a document with the SHA-256 DIGEST (hexadecimal) was submitted, and its record still
 * exists. The job may be held, or may never have been launched.
 */
bool backend_knows_digest(struct backend *b, const char *digest);

/*
 * Return 0 while the server confirms that jobs/ is up to date. Otherwise return the time in ns
 * since which jobs/ may be out of date.
 */
int64_t backend_stale_since(struct backend *b);

/*
 * Record that a process reads the data of JOB. The server sends some data, such as the position in
 * a queue, only on request. kxfs requests such data now, and periodically for a while. Later
 * snapshots contain it.
 */
void backend_wanted(struct backend *b, const struct spec_job *job);

/* Like backend_wanted, but record that a process reads the usage of all jobs in jobs/. */
void backend_usage_wanted(struct backend *b);

/*
 * Return the path of the directory in the archive for the jobs of this mount, malloc'ed; or NULL if
 * there is no archive. Any thread.
 */
char *backend_archive(struct backend *b);

/*
 * Return the reason why the start is taking long, malloc'ed; NULL if the reason is unknown. Call
 * this only during the start, on the I/O thread.
 */
char *backend_trouble(struct backend *b);

/* --- texts; any thread --- */

enum backend_text { BACKEND_MANIFEST, BACKEND_APPDEF };

/*
 * Set *RET (malloc'ed) to the text WHICH of JOB. This may read the state directory. Return 0, or
 * -ENOENT if there is no such text.
 */
int backend_text(struct backend *b, const struct spec_job *job, enum backend_text which, char **ret,
		 size_t *ret_len);
/* Like backend_text, but return only the size of the text in *RET_LEN. */
int backend_text_size(struct backend *b, const struct spec_job *job, enum backend_text which,
		      size_t *ret_len);
/*
 * Return the mode bits for the texts of JOB: S_IRGRP if group may read them, S_IROTH if others may
 * read them (see backend_submission.readable). If JOB was not submitted through this mount, return
 * both bits, because all users of the cluster can read JOB there. If JOB's record can't be read,
 * return 0.
 */
mode_t backend_text_readable(struct backend *b, const struct spec_job *job);
/*
 * Set *RET (malloc'ed) to the text of the file `events` of JOB, which must be in jobs/. Set
 * *RET_CHANGED to the time of the last event in ns, or to 0 if there are no events. Return 0, or
 * -ENOENT if this backend has no events.
 */
int backend_events(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		   int64_t *ret_changed);
/*
 * backend_info prints the contents of .kxfs/info, YAML lines "key: value". backend_metrics prints
 * the contents of .kxfs/metrics for Prometheus.
 */
void backend_info(struct backend *b, FILE *out);
void backend_metrics(struct backend *b, FILE *out);

/* --- queues; any thread, from memory --- */

/*
 * Set *RET to all known queues. *RET is malloc'ed, and each item is a new reference. Return 0, or
 * -ENOENT if this backend has no queues.
 */
int backend_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n);
bool backend_has_queues(struct backend *b);
/* Return a new reference to the queue NAME. Return NULL if there is no such queue. */
struct spec_queue_view *backend_queue(struct backend *b, const char *name);

/* How many of the jobs in jobs/ are in one queue, by state. */
struct backend_queue_jobs {
	size_t pending, running;
	/* the time in ns at which a job of the queue, or the list of jobs in jobs/, last changed */
	int64_t changed;
};
void backend_queue_jobs(struct backend *b, const char *name, struct backend_queue_jobs *ret);
/*
 * Set *RET (malloc'ed) to the text of queues/NAME/status. Return 0, or -ENOENT if there is no such
 * queue.
 */
int backend_queue_text(struct backend *b, const char *name, char **ret, size_t *ret_len);

/* --- output; any thread --- */

/*
 * Open the log KEY (struct spec_log.key) of JOB in FORM. If KEY is NULL, open the merged log of all
 * replicas. All openers of the same log in the same form share one struct log. Return 0, -ENOENT if
 * there is no such log, or -EMFILE if too many logs are open.
 */
int backend_log(struct backend *b, const struct spec_job *job, const char *key, enum log_form form,
		struct log **ret);
/* Get the size and mtime of the log that backend_log would open, without opening it. */
int backend_log_stat(struct backend *b, const struct spec_job *job, const char *key,
		     enum log_form form, struct log_stat *ret);

/* --- requests: any thread; each gets one reply, on the I/O thread --- */

struct backend_result {
	/*
	 * 0, or a negative errno that docs/kxfs-layout.5 lists. -EINPROGRESS: the mount ended
	 * before kxfs knew whether the job was launched. The next mount finds the result and shows
	 * it.
	 */
	int err;
	const char *text; /* text for people; "" or lines; never NULL; borrowed */
	/*
	 * After a submission: the job's id. After a dry run: the id that the job would get. Else
	 * "".
	 */
	const char *id;
	const char *manifest; /* after a dry run: the manifest as YAML; else ""; borrowed */
	/* After a dry run without errors: the job's backend and namespace. */
	const char *backend, *namespace;
};

typedef void (*backend_reply_fn)(void *data, const struct backend_result *result);

struct backend_submission {
	const char *file; /* name of the file in submit/, for messages and the record */
	const char *text;
	size_t len;
	const char *submitter; /* user@host */
	/* Mode bits: S_IRGRP if group may read the file, S_IROTH if others may read it. */
	mode_t readable;
	/*
	 * True if UID and GID are those of the submitter. If false, the submitter is the user who
	 * mounts.
	 */
	bool owned;
	uid_t uid;
	gid_t gid;
	/*
	 * True if the submitter still waits for the reply. Called on the I/O thread. DATA is the
	 * DATA that was passed to backend_submit. NULL: the submitter always waits.
	 */
	bool (*waits)(void *data);
};

/*
 * Launch S exactly once. S is copied. If this succeeds, the store has the job before REPLY is
 * called.
 */
void backend_submit(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		    void *data);
/*
 * Check S without launching it. The reply has the manifest with which S would be launched. The
 * errors are those of backend_submit.
 */
void backend_dry_run(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		     void *data);
/*
 * End the job with this ID and UID, and move it to history. The reply has -ENOENT if no job has
 * this ID, or -ESTALE if the job with this ID has another UID.
 */
void backend_cancel(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
/*
 * Carry out ACTION on the job. ARGUMENT is copied; it is NULL if ACTION has no argument. If the
 * job's current phase does not allow ACTION, the reply has -EINVAL, and its text has the reason.
 */
void backend_control(struct backend *b, const char *id, const char *uid, enum spec_action action,
		     const char *argument, backend_reply_fn reply, void *data);
/*
 * Remove the job from history/ for good, with its output. The reply has the same errors as the
 * reply of backend_cancel.
 */
void backend_forget(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
