/* SPDX-License-Identifier: MIT */
/*
 * The interface of the backend for fs/: snapshots of jobs, their texts and output, and requests
 * that change jobs. Functions that read use memory or the state directory, and never wait for a
 * server. A request may wait for a server. Its reply arrives in a callback.
 *
 * All results are malloc'ed, and the caller frees them. *RET_TEXT is the reason for an error.
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

/* Plain data. Everything that it points to must outlive the backend. */
struct backend_config {
	const struct spec_kinds *kinds;
	/* "local"; one kind, such as "jobset"; or "" for all KINDS that the cluster serves */
	const char *kind;
	const char *context;	      /* "": the current context of the kubeconfig */
	const char *namespace;	      /* "": the namespace of the context */
	const char *kubeconfig;	      /* "": the files that kubectl uses */
	const char *as;		      /* user to impersonate; "": none */
	const char *selector;	      /* label selector of the jobs to show; "": all jobs */
	bool mine;		      /* show only jobs that this user submitted through kxfs */
	enum backend_capture capture; /* jobs whose output kxfs captures even if nobody reads it */
	const char *state_dir;	      /* absolute; exists, belongs to this user, and is locked */
	const char *work_dir;	      /* where local replicas run */
	const char *mountpoint;	      /* local replicas must not run below it; may be NULL */
	const char *submitter;	      /* user@host of the user who mounts */
	const char *home;	      /* replaces a leading "~" in bind mounts; may be NULL */
	const struct spec_pair *args; /* the mount's run options */
	size_t n_args;
	unsigned grace_ms;    /* from SIGTERM to SIGKILL */
	bool linger;	      /* local jobs continue to run after backend_stop */
	bool passive;	      /* the mount is read-only: don't launch or start any job */
	unsigned jobs;	      /* maximum of local jobs that run at the same time; 0: no limit */
	int gpus;	      /* GPUs for local jobs, at most 64; -1: all of the machine's */
	uint64_t spool_limit; /* limit of all output on disk, in bytes */
	int64_t history_keep; /* how long jobs remain in history/, in seconds */
	const char *archive;  /* absolute path for copies of finished jobs, or NULL */
	bool archives;	      /* copy finished jobs to ARCHIVE; false: only show its path */
};

/* Called on the I/O thread, without a lock. OLD, NEW_JOB and LOG are borrowed. */
struct backend_events {
	/*
	 * Called after the store has changed. OLD is NULL for a new job. NEW_JOB is NULL for a
	 * removed job. If OLD->history is false and NEW_JOB->history is true, the job was moved to
	 * history/.
	 */
	void (*job)(void *data, const struct spec_job *old, const struct spec_job *new_job);
	/* Called when an open log has grown or ended. */
	void (*log)(void *data, struct log *log);
	/*
	 * Called before kxfs removes a job that was in history/ for history_keep. FILE is the file
	 * in submit/ that launched the job, and launched no job after it. DIGEST is the SHA-256 of
	 * the job's document. The callback must only copy FILE and DIGEST, and use them later.
	 */
	void (*expired)(void *data, const char *file, const char *digest);
	void *data;
};

enum backend_grade {
	BACKEND_FINE,
	BACKEND_LACKS, /* a mount would work, with limitations */
	BACKEND_WRONG, /* a mount would fail */
};
/*
 * Check what a mount with CONFIG needs in its cluster: connection, version, clock, served kinds,
 * rights. Change nothing there. Use only the members of CONFIG about the connection and the kind.
 * Call FN with each result as soon as it is known. TEXT has no secrets. The checks take a limited
 * time.
 *
 * Call this before any thread runs. During this call, SIGINT, SIGTERM and SIGHUP end this process
 * and its children.
 */
void backend_examine(const struct backend_config *config,
		     void (*fn)(void *data, enum backend_grade grade, const char *text),
		     void *data);

/* Check, for a limited time, if DIR can be an archive. Return 0 or a negative errno. */
int backend_examine_archive(const char *dir, char **ret_text);

/*
 * Set *RET to the strings "CONTEXT/NAMESPACE" of the file KUBECONFIG. The array ends with NULL. If
 * KUBECONFIG is "", read kubectl's files. Return 0 or a negative errno. Call this at any time.
 */
int backend_contexts(const char *kubeconfig, char ***ret, char **ret_text);
/* Return the libraries with their versions: "libuv 1.44.2, ...". */
char *backend_libraries(void);
/* Return the features of these libraries: "http2 ...". */
char *backend_features(void);
/*
 * Set *RET to the name of the default state directory for CONFIG. Ignore CONFIG->state_dir. Mounts
 * that show different jobs get different names. This reads the kubeconfig. Return 0 or a negative
 * errno.
 */
int backend_key(const struct backend_config *config, char **ret, char **ret_text);
/* CONFIG and EVENTS are copied. Return 0, or a negative errno with *RET_TEXT, which may be NULL. */
int backend_new(struct loop *loop, const struct backend_config *config,
		const struct backend_events *events, struct backend **ret, char **ret_text);
/*
 * Read the state directory, connect to the server, and wait at most 60 s for the first list of
 * jobs. The loop must run. Return 0 or a negative errno.
 */
int backend_start(struct backend *b, char **ret_text);
/* If backend_start is waiting for a cluster, make it return -ECANCELED immediately. Any thread. */
void backend_give_up(struct backend *b);
/*
 * Let B start and end jobs. Call this once the mount is up, so that a failed mount changes no job.
 * Never call it for a read-only mount. Any thread.
 */
void backend_take_charge(struct backend *b);
/* Return the time limit of backend_stop in s. ARCHIVES is true if the mount has an archive. */
unsigned backend_stop_seconds(unsigned grace_ms, bool archives);
/*
 * End the local jobs, unless they linger or backend_take_charge was not called. Write all changes
 * to disk. If this takes too long, return false: the caller must then exit, and free nothing.
 */
bool backend_stop(struct backend *b);
/* Call this after loop_stop, if backend_stop returned true. */
void backend_free(struct backend *b);

/*
 * Call this first in main(). The backend starts helper processes from its own executable, under
 * another name. In a helper process this function does not return.
 */
void backend_helper(char **argv);

/* --- jobs; any thread, from memory; returned jobs are new references --- */

const struct spec_job *backend_job(struct backend *b, enum backend_place place, const char *id);
/* Return the job with this UID, in jobs/ or history/, or NULL. */
const struct spec_job *backend_job_by_uid(struct backend *b, const char *uid);
/* Set *RET to all jobs of the folder PLACE, the oldest first. */
void backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		  size_t *ret_n);
/* Return the mtime of the folder PLACE in ns. Each change of its list increases the mtime. */
int64_t backend_changed(struct backend *b, enum backend_place place);
/* Return a number that changes whenever any job of the folder PLACE changes. */
uint64_t backend_revision(struct backend *b, enum backend_place place);
/*
 * Find the last job that the file FILE in submit/ has launched. Return -ENOENT if there is no such
 * job, or if backend_unlink_file was called for FILE after the launch.
 */
int backend_file(struct backend *b, const char *file, struct backend_file *ret);
/* Set *RET to all FILEs for which backend_file finds a job, and return their number. */
size_t backend_files(struct backend *b, char ***ret);
/* Return the mtime in ns of the list that backend_files returns. Each change increases it. */
int64_t backend_files_changed(struct backend *b);
/*
 * Make backend_file find no job for FILE until FILE launches another job, even after a restart.
 * Return -ENOENT if backend_file finds no job now.
 */
int backend_unlink_file(struct backend *b, const char *file);
/*
 * True if a document with the SHA-256 DIGEST (hexadecimal) was submitted, and its record still
 * exists. The job may never have been launched.
 */
bool backend_knows_digest(struct backend *b, const char *digest);

/* Return 0 if jobs/ is up to date, else the time in ns since which it may be out of date. */
int64_t backend_stale_since(struct backend *b);

/* Data of the jobs in jobs/ that a server sends only on request. */
enum backend_data { BACKEND_POSITIONS /* of waiting jobs in their queues */, BACKEND_USAGE };
/*
 * Call this when a process reads the data WHICH. The backend then requests the data, and repeats
 * the request for a while. The replies appear in later snapshots.
 */
void backend_wanted(struct backend *b, enum backend_data which);

/* Return the path of this mount's directory in the archive; NULL if there is no archive. */
char *backend_archive(struct backend *b);

/* Return why the start takes long, or NULL. Call this only during the start, on the I/O thread. */
char *backend_trouble(struct backend *b);

/* --- texts; any thread --- */

enum backend_text { BACKEND_MANIFEST, BACKEND_APPDEF };

/* May read the state directory. Return 0, -ENOENT if there is no such text, or another error. */
int backend_text(struct backend *b, const struct spec_job *job, enum backend_text which, char **ret,
		 size_t *ret_len);
/* Like backend_text, but return only the size of the text. */
int backend_text_size(struct backend *b, const struct spec_job *job, enum backend_text which,
		      size_t *ret_len);
/*
 * Return who may read the texts of JOB: S_IRGRP for the group, S_IROTH for others. Return both if
 * JOB was submitted elsewhere, because all users can read it in the cluster. Return 0 if the record
 * can't be read.
 */
mode_t backend_text_readable(struct backend *b, const struct spec_job *job);
/*
 * Set *RET to the text of the file `events` of JOB, which must be in jobs/. Set *RET_CHANGED to the
 * time of the last event in ns, 0 if there are no events. Return -ENOENT if JOB can't have events.
 * If RET is NULL, set nothing, and only return 0 or -ENOENT.
 */
int backend_events(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		   int64_t *ret_changed);
/* Print the contents of .kxfs/info (YAML), or of .kxfs/metrics (Prometheus). */
void backend_info(struct backend *b, FILE *out);
void backend_metrics(struct backend *b, FILE *out);

/* --- queues; any thread, from memory; returned queues are new references --- */

/* Return 0, or -ENOENT if this backend has no queues. */
int backend_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n);
bool backend_has_queues(struct backend *b);
struct spec_queue_view *backend_queue(struct backend *b, const char *name);

/* How many jobs of one queue are in jobs/. */
struct backend_queue_jobs {
	size_t pending, running;
	/* time in ns at which a job of the queue, or the list of jobs in jobs/, last changed */
	int64_t changed;
};
void backend_queue_jobs(struct backend *b, const char *name, struct backend_queue_jobs *ret);
/* Set *RET to the text of queues/NAME/status. Return 0, or -ENOENT if there is no such queue. */
int backend_queue_text(struct backend *b, const char *name, char **ret, size_t *ret_len);

/* --- output; any thread --- */

/*
 * Open the log KEY (struct spec_log.key) of JOB in FORM. KEY is NULL for the merged log. All
 * openers of the same log in the same form share one struct log. Return 0, -ENOENT if there is no
 * such log, or -EMFILE if too many logs are open.
 */
int backend_log(struct backend *b, const struct spec_job *job, const char *key, enum log_form form,
		struct log **ret);
/* Get the size and mtime of a log without opening it. */
int backend_log_stat(struct backend *b, const struct spec_job *job, const char *key,
		     enum log_form form, struct log_stat *ret);

/* --- requests: any thread; strings are copied; each gets one reply, on the I/O thread --- */

/* The strings are valid until the reply function returns. */
struct backend_result {
	/*
	 * 0, or a negative errno that docs/kxfs-layout.5 lists. -EINPROGRESS: the mount ended
	 * before kxfs knew whether the job was launched. The next mount finds out.
	 */
	int err;
	const char *text;     /* for people; "" or lines; never NULL; borrowed */
	const char *id;	      /* the job's id; after a dry run: the id it would get; else "" */
	const char *manifest; /* after a dry run: the manifest as YAML; else ""; borrowed */
	const char *backend, *namespace; /* set only after a successful dry run */
};

typedef void (*backend_reply_fn)(void *data, const struct backend_result *result);

struct backend_submission {
	const char *file; /* name of the file in submit/ */
	const char *text;
	size_t len;
	const char *submitter; /* user@host */
	mode_t readable;       /* S_IRGRP if the group may read the file, S_IROTH if others may */
	/* True if UID and GID are the submitter's. Else the submitter is the user who mounts. */
	bool owned;
	uid_t uid;
	gid_t gid;
	/*
	 * True if the submitter still waits for the reply. Called on the I/O thread with the DATA
	 * of backend_submit. NULL: the submitter always waits.
	 */
	bool (*waits)(void *data);
};

/* Launch S exactly once. S is copied. The store has the job before REPLY reports success. */
void backend_submit(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		    void *data);
/* Check S without launching it. The reply has S's manifest, or the errors of backend_submit. */
void backend_dry_run(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		     void *data);
/*
 * End the job, and move it to history/. The reply has -ENOENT if no job has this ID, or -ESTALE if
 * the job with this ID has another UID.
 */
void backend_cancel(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
/* Carry out ACTION. ARGUMENT may be NULL. -EINVAL: the job's phase does not allow ACTION. */
void backend_control(struct backend *b, const char *id, const char *uid, enum spec_action action,
		     const char *argument, backend_reply_fn reply, void *data);
/* Remove the job from history/ for good, with its output. Errors as for backend_cancel. */
void backend_forget(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
