/* SPDX-License-Identifier: MIT */
/*
 * The part of the backend that fs/ may use, with output/log.h and base/: jobs as snapshots,
 * requests for changes, texts, and events. Functions that read use memory or the state directory,
 * and never wait for a server; operations that wait are requests with a reply.
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
	const char *kind; /* "local", or a word of SOURCE for some of KINDS; "": all that a cluster
		       * serves */
	const char *context;	/* context of the kubeconfig; "": its current one */
	const char *namespace;	/* "": the context's */
	const char *kubeconfig; /* a file; "": where kubectl looks */
	const char *as;		/* user to impersonate, or "" */
	const char *selector;	/* labels of the jobs to show; "": all */
	/* Only those that this user submitted through kxfs. */
	bool mine;
	enum backend_capture capture; /* jobs whose output is captured even without readers */
	const char *state_dir;	      /* absolute; it exists, belongs to us, and is locked */
	const char *work_dir;	      /* where local replicas run */
	const char *mountpoint;	      /* where they must not run, or NULL */
	const char *submitter;	      /* user@host of the mount */
	const char *home;	      /* for "~" in mounts, or NULL */
	const struct spec_pair *args; /* the mount's run options */
	size_t n_args;
	unsigned grace_ms; /* time between SIGTERM and SIGKILL */
	bool linger;	   /* local jobs outlive backend_stop */
	bool passive;	   /* launch and start nothing: the mount is read-only */
	unsigned jobs;	   /* largest number of running local jobs; 0: no limit */
	/* Number of GPUs for local jobs, at most 64; 0: none; -1: all of the machine's. */
	int gpus;
	uint64_t spool_limit; /* limit of bytes of output on disk */
	int64_t history_keep; /* how long jobs remain in the history, in seconds */
	const char *archive;  /* an absolute path: where finished jobs are copied; or NULL */
	bool archives;	      /* copy them; else only show the path */
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
	/* What backend_file finds for FILE may have changed. May only take note. */
	void (*file)(void *data, const char *file);
	/*
	 * The job of FILE is about to be removed, since it was in history/ for history_keep. DIGEST is
	 * the SHA-256 of its document. May only take note.
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
 * Check everything that a mount needs in the cluster of CONFIG (only the connection and the kind
 * are used): the connection, the server's version and clock, the served kinds, each right; and
 * change nothing there. Call FN with each result, a line for people without secrets, as soon as it
 * is known. This waits, for a limited time, and must be called when no thread runs yet; SIGINT,
 * SIGTERM and SIGHUP end the process, and those that it has started for this.
 */
void backend_examine(const struct backend_config *config,
		     void (*fn)(void *data, enum backend_grade grade, const char *text),
		     void *data);

/*
 * Check if the directory DIR can be an archive. Return 0, or a negative errno with *RET_TEXT,
 * malloc'ed. This waits for a limited time.
 */
int backend_examine_archive(const char *dir, char **ret_text);

/*
 * Return the contexts of the kubeconfig (a file; "" where kubectl looks) with their namespaces,
 * "CONTEXT/NAMESPACE": an array that ends with NULL; it and its texts are malloc'ed. 0, or a
 * negative errno with *RET_TEXT. Any time.
 */
int backend_contexts(const char *kubeconfig, char ***ret, char **ret_text);
/*
 * Return the libraries of the backend, "libuv 1.44.2, ...", and their features, "https http2 ...":
 * malloc'ed.
 */
char *backend_libraries(void);
char *backend_features(void);
/*
 * Return a name that distinguishes the jobs of CONFIG (no state_dir yet) from those of any other
 * mount, for the default state directory; malloc'ed. Reads the kubeconfig; 0, or a negative errno
 * with *RET_TEXT. Any time.
 */
int backend_key(const struct backend_config *config, char **ret, char **ret_text);
/*
 * Make a backend of CONFIG, whose strings must outlive it, on LOOP. Return 0, or a negative errno;
 * *RET_TEXT (malloc'ed or NULL) has the error and its remedy.
 */
int backend_new(struct loop *loop, const struct backend_config *config,
		const struct backend_events *events, struct backend **ret, char **ret_text);
/*
 * Read the files on disk and connect; the loop runs. Wait for the first list, at most 60 s. Return
 * 0, or a negative errno with *RET_TEXT.
 */
int backend_start(struct backend *b, char **ret_text);
/*
 * Cancel the start: backend_start returns -ECANCELED now, unless it only waits for this machine's
 * disk, which will soon be read. After the start this has no effect. Any thread.
 */
void backend_give_up(struct backend *b);
/*
 * Let B start and end jobs, since the mount is up. Before this call B only shows the existing jobs,
 * and backend_stop ends none: a start that fails, or a read-only mount, changes no job. Any thread.
 */
void backend_take_charge(struct backend *b);
/*
 * End the jobs that end with the mount (local ones, if B is in charge of them and they don't
 * linger), keep everything else, and wait for that, for a limited time. Return false if something
 * still waits for the disk, so nothing may be freed: the process must end now.
 */
bool backend_stop(struct backend *b);
/* Call this after loop_stop, if backend_stop returned true. */
void backend_free(struct backend *b);

/*
 * Call this first in main() of every program with a backend. For a process that outlives the
 * backend, or that becomes another program with other limits, a backend runs this executable again
 * under another name; in such a process this function does not return.
 */
void backend_helper(char **argv);

/* --- jobs; any thread, from memory --- */

/* Return the snapshot of ID, a new reference, or NULL. */
const struct spec_job *backend_job(struct backend *b, enum backend_place place, const char *id);
/* Return the snapshot of the job UID, in whatever folder it is now; a new reference. */
const struct spec_job *backend_job_by_uid(struct backend *b, const char *uid);
/*
 * Return all snapshots of a folder, in the order of their creation: *RET is malloc'ed, each item a
 * new reference.
 */
void backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		  size_t *ret_n);
/*
 * Return the time of the last change of the folder's list of jobs, in ns, which grows with each:
 * the mtime of a directory.
 */
int64_t backend_changed(struct backend *b, enum backend_place place);
/*
 * Return a number that differs after each change of any job of the folder, also of one that does
 * not change its directory.
 */
uint64_t backend_revision(struct backend *b, enum backend_place place);
/*
 * Find the job that FILE of submit/ launched last, of those that are shown in jobs/ or history/. 0;
 * -ENOENT: there is none, or backend_unlink_file was called for it.
 */
int backend_file(struct backend *b, const char *file, struct backend_file *ret);
/* Return all FILEs for which backend_file finds a job; *RET and its items are malloc'ed. */
size_t backend_files(struct backend *b, char ***ret);
/* Return the time of the last change of that list, in ns, which grows with each: an mtime. */
int64_t backend_files_changed(struct backend *b);
/*
 * Find no job for FILE any more, also after a restart, until FILE launches another one. 0 or
 * -ENOENT. An older job of FILE is never found instead.
 */
int backend_unlink_file(struct backend *b, const char *file);
/*
 * True if a document with this SHA-256 (hexadecimal) has a record: it was submitted, though it may
 * be held, or may never have become a job.
 */
bool backend_knows_digest(struct backend *b, const char *digest);

/* Return since when jobs/ has not been confirmed, in ns; 0 if it is. */
int64_t backend_stale_since(struct backend *b);

/*
 * Note that the data of JOB is being read. Data that the server sends only on request (the position
 * in a queue) is requested now, and periodically for a while; later snapshots have the replies.
 */
void backend_wanted(struct backend *b, const struct spec_job *job);

/* Like backend_wanted, for the usage of the jobs of jobs/. */
void backend_usage_wanted(struct backend *b);

/*
 * Return the directory of this namespace in the archive, malloc'ed; NULL without an archive. Any
 * thread.
 */
char *backend_archive(struct backend *b);

/* During the start, on the I/O thread: return what delays it, malloc'ed, or NULL if that is unknown. */
char *backend_trouble(struct backend *b);

/* --- texts; any thread; may read the state directory --- */

enum backend_text { BACKEND_MANIFEST, BACKEND_APPDEF };

/* Return the text WHICH of JOB: 0 and a malloc'ed text; -ENOENT if there is none. */
int backend_text(struct backend *b, const struct spec_job *job, enum backend_text which, char **ret,
		 size_t *ret_len);
/* Return only the size of the text: *RET_LEN of backend_text. */
int backend_text_size(struct backend *b, const struct spec_job *job, enum backend_text which,
		      size_t *ret_len);
/*
 * Return who may read the texts of JOB, besides the user who mounts: S_IRGRP, S_IROTH, as
 * backend_submission.readable. If the job was not submitted from here, both, since all users of the
 * cluster see the job; if that is not known, neither.
 */
mode_t backend_text_readable(struct backend *b, const struct spec_job *job);
/*
 * Return the text of `events` of a job in jobs/, and the time of the last event (or 0). -ENOENT if
 * events are not known here.
 */
int backend_events(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		   int64_t *ret_changed);
/* Lines "key: value" of YAML for .kxfs/info, Prometheus text for .kxfs/metrics. */
void backend_info(struct backend *b, FILE *out);
void backend_metrics(struct backend *b, FILE *out);

/* --- queues; any thread, from memory --- */

/*
 * Return all known queues: *RET is malloc'ed, each item a new reference. -ENOENT if queues are not
 * known here.
 */
int backend_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n);
bool backend_has_queues(struct backend *b);
/* Return the queue NAME, a new reference, or NULL. */
struct spec_queue_view *backend_queue(struct backend *b, const char *name);

/* The jobs in jobs/ that are in a queue, as counts. */
struct backend_queue_jobs {
	size_t pending, running;
	int64_t changed; /* when one of its jobs last changed, or jobs/ itself */
};
void backend_queue_jobs(struct backend *b, const char *name, struct backend_queue_jobs *ret);
/* Return the text of queues/NAME/status; -ENOENT if there is no such queue. */
int backend_queue_text(struct backend *b, const char *name, char **ret, size_t *ret_len);

/* --- output; any thread --- */

/*
 * Open the log KEY (struct spec_log.key) of JOB, or all replicas merged (KEY is NULL), in FORM. All
 * openers of the same log in the same form share one struct log. -ENOENT, -EMFILE.
 */
int backend_log(struct backend *b, const struct spec_job *job, const char *key, enum log_form form,
		struct log **ret);
/* Return the size and mtime of such a log, without opening it. */
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
	bool owned; /* UID and GID have submitted it; else the user who mounts */
	uid_t uid;
	gid_t gid;
	/*
	 * Return true if the submitter still waits for the reply. Called on the I/O thread with the
	 * DATA of the reply. NULL: the reply is always received.
	 */
	bool (*waits)(void *data);
};

/* Launch S, exactly once. It is copied. On success the job is in the store before the reply. */
void backend_submit(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		    void *data);
/*
 * Launch nothing: the reply has the manifest that S would be launched with. Errors are those of
 * backend_submit.
 */
void backend_dry_run(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		     void *data);
/* End the job with this id and uid and move it to history. -ESTALE: another job has the id; -ENOENT. */
void backend_cancel(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
/*
 * Carry out ACTION on the job. -EINVAL: a job in its phase would ignore it (the text has the
 * reason). ARGUMENT is NULL if the action has none; copied.
 */
void backend_control(struct backend *b, const char *id, const char *uid, enum spec_action action,
		     const char *argument, backend_reply_fn reply, void *data);
/* Remove a job of the history and its output for good. */
void backend_forget(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
