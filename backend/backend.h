/* SPDX-License-Identifier: MIT */
/*
 * The part of the backend that fs/ may use, with output/log.h and base/: jobs as snapshots, requests for changes,
 * texts, and events. Functions that read data use memory or the state directory, and never wait for a server.
 * Operations that wait are requests, which get a reply.
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
	const struct spec_kinds *kinds; /* the table of kinds */
	/* "local", or the mount's SOURCE, which selects some of KINDS; "": all kinds that the cluster serves */
	const char *kind;
	const char *context;	/* context of the kubeconfig; "": the current context */
	const char *namespace;	/* "": the namespace of the context */
	const char *kubeconfig; /* path of a file; "": the files that kubectl uses */
	const char *as;		/* user to impersonate, or "" */
	const char *selector;	/* labels of the jobs to show; "": all */
	/* Show only the jobs that this user submitted through kxfs. */
	bool mine;
	enum backend_capture capture; /* which jobs' output is captured even without readers */
	/* absolute path; the directory exists, belongs to this user, and is locked */
	const char *state_dir;
	const char *work_dir;	      /* where local replicas run */
	const char *mountpoint;	      /* local replicas must not run below it; or NULL */
	const char *submitter;	      /* user@host of the mount */
	const char *home;	      /* for "~" in mounts, or NULL */
	const struct spec_pair *args; /* the mount's run options */
	size_t n_args;
	unsigned grace_ms; /* time between SIGTERM and SIGKILL, in ms */
	bool linger;	   /* local jobs outlive backend_stop */
	bool passive;	   /* do not launch or start any job: the mount is read-only */
	unsigned jobs;	   /* largest number of running local jobs; 0: no limit */
	/* Number of GPUs for local jobs, at most 64; 0: none; -1: all of the machine's. */
	int gpus;
	uint64_t spool_limit; /* largest size of all output on disk, in bytes */
	int64_t history_keep; /* the time for which jobs remain in history/, in seconds */
	/* absolute path of the directory for copies of finished jobs, or NULL */
	const char *archive;
	bool archives; /* true: copy finished jobs to ARCHIVE; false: only show its path */
};

/* Events, called on the I/O thread without a lock. Set once, before backend_start. */
struct backend_events {
	/*
	 * A job is new (OLD is NULL), changed, moved to history (NEW->history and not
	 * OLD->history), or deleted for good (NEW is NULL). Both are borrowed. The store already
	 * shows NEW.
	 */
	void (*job)(void *data, const struct spec_job *old, const struct spec_job *new_job);
	/* LOG, which is open, has grown or ended. Borrowed. */
	void (*log)(void *data, struct log *log);
	/* The result of backend_file for FILE may have changed. The callback may only take note of FILE. */
	void (*file)(void *data, const char *file);
	/*
	 * The job of FILE is about to be removed, since it was in history/ for history_keep. DIGEST is the SHA-256
	 * of its document. The callback may only take note of FILE and DIGEST.
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
 * Check everything that a mount needs in the cluster of CONFIG, without changing anything there: the connection,
 * the server's version and clock, the served kinds, and each right. Only the connection and the kind of CONFIG are
 * used. Call FN with each result as soon as it is known: a line for people, without secrets. This waits for a
 * limited time, and must be called before any thread runs. SIGINT, SIGTERM and SIGHUP end the process and the
 * processes that it has started for the checks.
 */
void backend_examine(const struct backend_config *config,
		     void (*fn)(void *data, enum backend_grade grade, const char *text),
		     void *data);

/*
 * Check if the directory DIR can be an archive. Return 0, or a negative errno with *RET_TEXT, malloc'ed. This waits
 * for a limited time.
 */
int backend_examine_archive(const char *dir, char **ret_text);

/*
 * Set *RET to the contexts of the file KUBECONFIG ("": the files that kubectl uses), each as "CONTEXT/NAMESPACE":
 * an array that ends with NULL. The array and its strings are malloc'ed. Return 0, or a negative errno with
 * *RET_TEXT, malloc'ed. May be called at any time.
 */
int backend_contexts(const char *kubeconfig, char ***ret, char **ret_text);
/*
 * Return the libraries of the backend, "libuv 1.44.2, ..."; return their features, "https http2 ...". Both are
 * malloc'ed.
 */
char *backend_libraries(void);
char *backend_features(void);
/*
 * Set *RET (malloc'ed) to the name of the default state directory of CONFIG, which needs no state_dir yet. Mounts
 * of different jobs get different names. Reads the kubeconfig. Return 0, or a negative errno with *RET_TEXT,
 * malloc'ed. May be called at any time.
 */
int backend_key(const struct backend_config *config, char **ret, char **ret_text);
/*
 * Make a backend on LOOP from CONFIG, whose strings must outlive it. Return 0, or a negative errno; *RET_TEXT
 * (malloc'ed or NULL) has the error and its remedy.
 */
int backend_new(struct loop *loop, const struct backend_config *config,
		const struct backend_events *events, struct backend **ret, char **ret_text);
/*
 * Read the files on disk, connect, and wait at most 60 s for the first list. Call this while the loop runs. Return
 * 0, or a negative errno with *RET_TEXT, malloc'ed.
 */
int backend_start(struct backend *b, char **ret_text);
/*
 * Cancel the start: backend_start returns -ECANCELED now, unless it waits only for this machine's disk, which takes
 * a short time. After the start this has no effect. Any thread.
 */
void backend_give_up(struct backend *b);
/*
 * Let B start and end jobs, since the mount is up. Before this call B only shows existing jobs, and backend_stop
 * does not end any job. So a start that fails, or a read-only mount, changes no job. Any thread.
 */
void backend_take_charge(struct backend *b);
/*
 * End the jobs that end with the mount (local jobs, if B is in charge of them and they don't linger) and save
 * everything else. Wait for that, for a limited time. Return false if an operation still waits for the disk: then
 * the caller may free nothing, and must end the process now.
 */
bool backend_stop(struct backend *b);
/* Call this after loop_stop, if backend_stop returned true. */
void backend_free(struct backend *b);

/*
 * Call this first in main() of every program with a backend. A backend runs this executable again, under another
 * name, to start a process that outlives the backend, or that becomes another program with other limits. In such a
 * process this function does not return.
 */
void backend_helper(char **argv);

/* --- jobs; any thread, from memory --- */

/* Return the snapshot of ID, a new reference, or NULL. */
const struct spec_job *backend_job(struct backend *b, enum backend_place place, const char *id);
/* Return the snapshot of the job UID in any folder, a new reference, or NULL. */
const struct spec_job *backend_job_by_uid(struct backend *b, const char *uid);
/*
 * Return all snapshots of the folder PLACE, in the order of the jobs' creation: *RET is malloc'ed, each item a new
 * reference.
 */
void backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		  size_t *ret_n);
/*
 * Return the mtime of the folder PLACE in ns: the time of the last change of its list of jobs. It grows with each
 * change.
 */
int64_t backend_changed(struct backend *b, enum backend_place place);
/* Return a number that changes whenever a job of the folder PLACE changes, even if the folder's mtime does not. */
uint64_t backend_revision(struct backend *b, enum backend_place place);
/*
 * Find the job that FILE of submit/ launched last, among those in jobs/ and history/. Return 0, or -ENOENT if there
 * is no such job, or backend_unlink_file was called for FILE since.
 */
int backend_file(struct backend *b, const char *file, struct backend_file *ret);
/* Return all FILEs for which backend_file finds a job; *RET and its items are malloc'ed. */
size_t backend_files(struct backend *b, char ***ret);
/*
 * Return the time of the last change of the list of backend_files in ns, for an mtime. It grows with each change.
 */
int64_t backend_files_changed(struct backend *b);
/*
 * Make backend_file find no job for FILE, not even an older one, until FILE launches another job. This survives a
 * restart. Return 0, or -ENOENT if backend_file finds no job now.
 */
int backend_unlink_file(struct backend *b, const char *file);
/*
 * True if a record has a document with this SHA-256 (hexadecimal), so the document was submitted. Its job may be
 * held, or may never have been launched.
 */
bool backend_knows_digest(struct backend *b, const char *digest);

/* Return the time in ns since which the server has not confirmed jobs/; 0 if jobs/ is confirmed. */
int64_t backend_stale_since(struct backend *b);

/*
 * Note that the data of JOB is being read. Data that the server sends only on request (the position
 * in a queue) is requested now, and periodically for a while; later snapshots have the replies.
 */
void backend_wanted(struct backend *b, const struct spec_job *job);

/* Note that the usage of the jobs in jobs/ is being read, as backend_wanted does. */
void backend_usage_wanted(struct backend *b);

/* Return the path of this namespace's directory in the archive, malloc'ed; NULL without an archive. Any thread. */
char *backend_archive(struct backend *b);

/*
 * Return the reason why the start takes so long, malloc'ed, or NULL if it is unknown. Only during the start, on the
 * I/O thread.
 */
char *backend_trouble(struct backend *b);

/* --- texts; any thread; may read the state directory --- */

enum backend_text { BACKEND_MANIFEST, BACKEND_APPDEF };

/* Return the text WHICH of JOB in *RET, malloc'ed. Return 0, or -ENOENT if there is no such text. */
int backend_text(struct backend *b, const struct spec_job *job, enum backend_text which, char **ret,
		 size_t *ret_len);
/* Like backend_text, but return only the size of the text in *RET_LEN. */
int backend_text_size(struct backend *b, const struct spec_job *job, enum backend_text which,
		      size_t *ret_len);
/*
 * Return who may read the texts of JOB besides the user who mounts: S_IRGRP, S_IROTH, as in
 * backend_submission.readable. Return both if the job was not submitted from here, since all users of the cluster
 * can see the job. Return neither if the job's record can't be read.
 */
mode_t backend_text_readable(struct backend *b, const struct spec_job *job);
/*
 * Return the text of the file `events` of JOB, which is in jobs/, and in *RET_CHANGED the time of the last event in
 * ns (0: there are no events). Return 0, or -ENOENT if this backend has no events.
 */
int backend_events(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		   int64_t *ret_changed);
/* Print the lines "key: value" of .kxfs/info (YAML), and the text of .kxfs/metrics (Prometheus). */
void backend_info(struct backend *b, FILE *out);
void backend_metrics(struct backend *b, FILE *out);

/* --- queues; any thread, from memory --- */

/*
 * Return all known queues: *RET is malloc'ed, each item a new reference. Return 0, or -ENOENT if this backend has
 * no queues.
 */
int backend_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n);
bool backend_has_queues(struct backend *b);
/* Return the queue NAME, a new reference, or NULL. */
struct spec_queue_view *backend_queue(struct backend *b, const char *name);

/* The counts of the jobs in jobs/ that are in a queue. */
struct backend_queue_jobs {
	size_t pending, running;
	/* the time in ns when a job of the queue, or the list of jobs/, last changed */
	int64_t changed;
};
void backend_queue_jobs(struct backend *b, const char *name, struct backend_queue_jobs *ret);
/* Return the text of queues/NAME/status in *RET, malloc'ed. Return 0, or -ENOENT if there is no such queue. */
int backend_queue_text(struct backend *b, const char *name, char **ret, size_t *ret_len);

/* --- output; any thread --- */

/*
 * Open the log KEY (struct spec_log.key) of JOB, or all replicas merged (KEY is NULL), in FORM. All openers of the
 * same log in the same form share one struct log. Return 0, -ENOENT (there is no such log) or -EMFILE (too many
 * logs are open).
 */
int backend_log(struct backend *b, const struct spec_job *job, const char *key, enum log_form form,
		struct log **ret);
/* Get the size and mtime of the log that backend_log would open, without opening it. */
int backend_log_stat(struct backend *b, const struct spec_job *job, const char *key,
		     enum log_form form, struct log_stat *ret);

/* --- requests; any thread; never wait; exactly one reply, on the I/O thread --- */

struct backend_result {
	/*
	 * 0 or a negative errno, as docs/kxfs-layout.5 lists them. -EINPROGRESS: a submission may
	 * have been launched when the mount ended; the next mount shows it.
	 */
	int err;
	const char *text; /* text for people; "" or lines; never NULL; borrowed */
	/* submit: the job's id; dry run: the id that it would have; else "" */
	const char *id;
	const char *manifest; /* dry run: the manifest as YAML; else ""; borrowed */
	/* Of a dry run without errors: the job's backend and namespace. */
	const char *backend, *namespace;
};

typedef void (*backend_reply_fn)(void *data, const struct backend_result *result);

struct backend_submission {
	const char *file; /* the name of its file, for messages and the record */
	const char *text;
	size_t len;
	const char *submitter; /* user@host */
	/* Who may read the file, besides the user who mounts: S_IRGRP, S_IROTH. */
	mode_t readable;
	/* true: UID and GID are the submitter's; false: the submitter is the user who mounts */
	bool owned;
	uid_t uid;
	gid_t gid;
	/*
	 * Return true if the submitter still waits for the reply. Called on the I/O thread with the DATA of the
	 * reply. NULL: the submitter always waits.
	 */
	bool (*waits)(void *data);
};

/* Launch S exactly once. S is copied. On success the job is in the store before the reply. */
void backend_submit(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		    void *data);
/*
 * Check S without launching it. The reply has the manifest with which S would be launched. Errors are those of
 * backend_submit.
 */
void backend_dry_run(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		     void *data);
/*
 * End the job with this id and uid, and move it to history. The reply has -ESTALE if another job has the id,
 * -ENOENT if there is no such job.
 */
void backend_cancel(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
/*
 * Carry out ACTION on the job. ARGUMENT is copied; it is NULL if the action has none. The reply has -EINVAL if a
 * job in this phase would ignore the action (the text has the reason).
 */
void backend_control(struct backend *b, const char *id, const char *uid, enum spec_action action,
		     const char *argument, backend_reply_fn reply, void *data);
/* Remove the job from history/, with its output, for good. The reply has errors as backend_cancel. */
void backend_forget(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
