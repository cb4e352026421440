/* SPDX-License-Identifier: MIT */
/*
 * All of the backend that fs/ may see, with output/log.h and base/: jobs as snapshots, requests that change something,
 * texts, and news. Functions that read answer from memory or the state directory, and never wait for a server; what has
 * to wait is a request with a reply.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/jobs/store.h"
#include "backend/output/log.h"
#include "spec/app/app.h"
#include "spec/job/job.h"
#include "spec/view/watched.h"

struct backend;

enum backend_capture { BACKEND_CAPTURE_OWN, BACKEND_CAPTURE_ALL, BACKEND_CAPTURE_NONE };

/* Plain data; all that it points to is borrowed. */
struct backend_config {
	const struct spec_kinds *kinds; /* the table of kinds */
	const char *
		kind; /* "local", or a word of SOURCE for some of KINDS; "": all that a cluster serves */
	const char *context;	/* context of the kubeconfig; "": its current one */
	const char *namespace;	/* "": that of the context */
	const char *kubeconfig; /* a file; "": where kubectl looks */
	const char *as;		/* user to impersonate; "" none */
	const char *selector;	/* labels of the jobs to show; "" all */
	/* Of these only those that this user submitted through kxfs. */
	bool mine;
	enum backend_capture capture; /* jobs whose output is captured although nobody reads it */
	const char *state_dir;	      /* absolute; it exists, is ours, and is locked */
	const char *work_dir;	      /* where local replicas run */
	const char *mountpoint;	      /* where they must not run; NULL: anywhere */
	const char *submitter;	      /* user@host of the mount */
	const char *home;	      /* for "~" in mounts; NULL: none */
	const struct spec_pair *args; /* the mount's run options */
	size_t n_args;
	unsigned grace_ms; /* time between SIGTERM and SIGKILL */
	bool linger;	   /* local jobs outlive backend_stop */
	bool passive;	   /* nothing is launched or started: the mount is read-only */
	unsigned jobs;	   /* how many local jobs run at once; 0: any number */
	/* How many GPUs local jobs are given, at most 64; 0: none; -1: all that the machine has. */
	int gpus;
	uint64_t spool_limit; /* bytes of output on disk in all */
	int64_t history_keep; /* how long jobs stay in the history, in seconds */
	const char *
		archive; /* an absolute path: where jobs that have ended are copied; NULL: nowhere */
	bool archives;	 /* they are copied there; else this only shows where that is */
};

/* News, told on the I/O thread without a lock. Set once, before backend_start. */
struct backend_events {
	/*
	 * A job is new (OLD is NULL), changed, moved to history (NEW->history and not
	 * OLD->history), or gone for good (NEW is NULL). Both are borrowed. The store already
	 * shows NEW.
	 */
	void (*job)(void *data, const struct spec_job *old, const struct spec_job *new_job);
	/*
	 * Called during the start: an earlier mount has launched the job ID for the content of FILE, and may not have
	 * told anybody. SUBMISSION is the UUID of the request, which tells this launch from others of FILE. ID is NULL:
	 * it is not known yet whether the content was launched, since the request may still be on its way. Then this is
	 * called again, perhaps minutes later, with the id, or with "": it was not launched. This call may also follow
	 * a reply to a request which said that the outcome could not be found out.
	 */
	void (*launched)(void *data, const char *file, const char *id, const char *submission);
	/* LOG has grown or ended. Borrowed; only logs that somebody holds open are told. */
	void (*log)(void *data, struct log *log);
	/* A question: the id of the job that FILE of submit/ launched last, malloc'ed; NULL: none. Any thread. */
	char *(*job_of)(void *data, const char *file);
	void *data;
};

enum backend_grade {
	BACKEND_FINE,
	BACKEND_LACKS, /* a mount works, but lacks something */
	BACKEND_WRONG, /* a mount would fail */
};
/*
 * Ask the cluster of CONFIG (of which only the connection and the kind count) for all that a mount needs: the
 * connection, the server's version and clock, the kinds that it serves, each right; and change nothing there. FN is
 * told each finding, a line for people without a secret in it, as soon as it is known. This waits, for a limited time,
 * and must be called when no thread runs yet; SIGINT, SIGTERM and SIGHUP end the process, and what it has started for
 * this.
 */
void backend_examine(const struct backend_config *config,
		     void (*fn)(void *data, enum backend_grade grade, const char *text),
		     void *data);

/*
 * Can the directory DIR be an archive? 0, or a negative errno with *RET_TEXT, malloc'ed. This waits for a limited time.
 */
int backend_examine_archive(const char *dir, char **ret_text);

/*
 * The contexts of the kubeconfig (a file; "" where kubectl looks) with their namespaces, "CONTEXT/NAMESPACE": an array
 * that ends with NULL; it and its texts are malloc'ed. 0, or a negative errno with *RET_TEXT. Any time.
 */
int backend_contexts(const char *kubeconfig, char ***ret, char **ret_text);
/* The libraries that the backend runs with, "libuv 1.44.2, ...", and what they can do, "https http2 ...": malloc'ed. */
char *backend_libraries(void);
char *backend_features(void);
/*
 * A name that tells the jobs of CONFIG (no state_dir yet) from those of any other mount, for the default state
 * directory; malloc'ed. Reads the kubeconfig; 0, or a negative errno with *RET_TEXT. Any time.
 */
int backend_key(const struct backend_config *config, char **ret, char **ret_text);
/*
 * Make a backend of CONFIG, whose strings stay as long as it does, on LOOP. 0, or a negative errno; *RET_TEXT
 * (malloc'ed or NULL) says what is wrong and what to do.
 */
int backend_new(struct loop *loop, const struct backend_config *config,
		const struct backend_events *events, struct backend **ret, char **ret_text);
/*
 * Read what is on disk and connect; the loop runs. Waits until the first list is in, at most 60 s. 0, or a negative
 * errno with *RET_TEXT.
 */
int backend_start(struct backend *b, char **ret_text);
/*
 * Nobody wants B to start any more: backend_start returns -ECANCELED now, unless it only waits for this machine's disk,
 * which will soon be read. After the start this has no effect. Any thread.
 */
void backend_give_up(struct backend *b);
/*
 * The mount is up: from here on B begins and ends jobs. Before this call B shows the jobs that there are, and
 * backend_stop ends none: a start that fails, or a read-only mount, changes no job. Any thread.
 */
void backend_take_charge(struct backend *b);
/*
 * End the jobs that end with the mount (local ones, if B is in charge of them and they don't linger), keep everything
 * else, and wait for that, for a limited time. False: something still waits for the disk, so nothing may be freed: the
 * process must end now.
 */
bool backend_stop(struct backend *b);
/* To be called after loop_stop, if backend_stop returned true. */
void backend_free(struct backend *b);

/*
 * Must be the first call in main() of every program with a backend: for a process that is to outlive it, or that
 * becomes another program with other limits, a backend starts the program itself again under a name of its own. In such
 * a process this does not return.
 */
void backend_helper(char **argv);

/* --- jobs; any thread, from memory --- */

/* The snapshot of ID, a new reference; NULL: none. */
const struct spec_job *backend_job(struct backend *b, enum backend_place place, const char *id);
/* The snapshot of the job UID, in whatever place it is now; a new reference. */
const struct spec_job *backend_job_by_uid(struct backend *b, const char *uid);
/* All snapshots of a place, in the order of their creation: *RET is malloc'ed, each item a new reference. */
void backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		  size_t *ret_n);
/* The time of the last change of the place's list of jobs, in ns, which grows with each: the mtime of a directory. */
int64_t backend_changed(struct backend *b, enum backend_place place);
/*
 * A number that is another after each change of any job of the place, also of one that does not change its directory.
 */
uint64_t backend_revision(struct backend *b, enum backend_place place);
/* Since when jobs/ has not been confirmed, in ns; 0: it is. */
int64_t backend_stale_since(struct backend *b);

/*
 * Somebody reads what is known of JOB. Whatever the server tells only when it is asked (the place in a queue) is asked
 * for now, and again and again for a while; the answers come with later snapshots.
 */
void backend_wanted(struct backend *b, const struct spec_job *job);

/* Like backend_wanted, for the usage of the jobs of jobs/. */
void backend_usage_wanted(struct backend *b);

/* The directory of this namespace in the archive, malloc'ed; NULL: there is no archive. Any thread. */
char *backend_archive(struct backend *b);

/* --- texts; any thread; may read the state directory --- */

enum backend_text { BACKEND_MANIFEST, BACKEND_APPDEF };

/* The text WHICH of JOB. 0 and a malloc'ed text; -ENOENT: there is none. */
int backend_text(struct backend *b, const struct spec_job *job, enum backend_text which, char **ret,
		 size_t *ret_len);
/* The size of the text alone: what backend_text would give as *RET_LEN. */
int backend_text_size(struct backend *b, const struct spec_job *job, enum backend_text which,
		      size_t *ret_len);
/*
 * Who may read the texts of JOB, beside the user who mounts: S_IRGRP, S_IROTH, as backend_submission.readable. If the
 * job was not submitted from here, both, since whoever sees the cluster sees the job; if that is not known, neither.
 */
mode_t backend_text_readable(struct backend *b, const struct spec_job *job);
/*
 * The text of `events` of a job in jobs/, and the time of the last event (0: there is none). -ENOENT: events are not
 * known here.
 */
int backend_events(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		   int64_t *ret_changed);
/* Lines "key: value" of YAML for .kxfs/info, Prometheus text for .kxfs/metrics. */
void backend_info(struct backend *b, FILE *out);
void backend_metrics(struct backend *b, FILE *out);

/* --- queues; any thread, from memory --- */

/* All queues that are known: *RET is malloc'ed, each item a new reference. -ENOENT: queues are not known here. */
int backend_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n);
bool backend_has_queues(struct backend *b);
/* The queue NAME, a new reference; NULL: none. */
struct spec_queue_view *backend_queue(struct backend *b, const char *name);

/* The jobs in jobs/ that are in a queue, as counts. */
struct backend_queue_jobs {
	size_t pending, running;
	int64_t changed; /* when one of its jobs last changed, or jobs/ itself */
};
void backend_queue_jobs(struct backend *b, const char *name, struct backend_queue_jobs *ret);
/* The text of queues/NAME/status; -ENOENT: there is no such queue. */
int backend_queue_text(struct backend *b, const char *name, char **ret, size_t *ret_len);

/* --- output; any thread --- */

/*
 * The log KEY (struct spec_log.key) of JOB, or all replicas merged (KEY is NULL), in FORM. All who open
 * the same log in the same form share one struct log. -ENOENT, -EMFILE.
 */
int backend_log(struct backend *b, const struct spec_job *job, const char *key, enum log_form form,
		struct log **ret);
/* The size and mtime of such a log, without opening it. */
int backend_log_stat(struct backend *b, const struct spec_job *job, const char *key,
		     enum log_form form, struct log_stat *ret);

/* --- requests; any thread; never wait; exactly one reply, on the I/O thread --- */

struct backend_result {
	/*
	 * 0 or a negative errno, as docs/kxfs-layout.5 lists them. -EINPROGRESS: a submission may have been launched
	 * when the mount ended; the next mount tells by backend_events.launched.
	 */
	int err;
	const char *text; /* text for people; "" or lines; never NULL; borrowed */
	/* submit: the job's id; dry run: the id that it would have; else "" */
	const char *id;
	const char *manifest; /* dry run: the manifest as YAML; else ""; borrowed */
	/* Of a dry run that was approved: where the job would be. */
	const char *backend, *namespace;
};

typedef void (*backend_reply_fn)(void *data, const struct backend_result *result);

struct backend_submission {
	const char *file; /* the name of its file, for messages and the record */
	const char *text;
	size_t len;
	const char *submitter; /* user@host */
	/* Who may read the file, beside the user who mounts: S_IRGRP, S_IROTH. */
	mode_t readable;
	/* A UUID of this launch alone, which goes on record with the job. A dry run does not need it. */
	const char *submission;
};

/* Launch S, exactly once. It is copied. On success the job is in the store before the reply. */
void backend_submit(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		    void *data);
/* Launch nothing: the reply has the manifest that S would be launched with. Errors are those of backend_submit. */
void backend_dry_run(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		     void *data);
/* End the job with this id and uid and move it to history. -ESTALE: another job has the id; -ENOENT. */
void backend_cancel(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
/*
 * Do ACTION with the job. -EINVAL: a job in its phase would ignore it (the text says so). ARGUMENT is NULL where the
 * action has none; copied.
 */
void backend_control(struct backend *b, const char *id, const char *uid, enum spec_action action,
		     const char *argument, backend_reply_fn reply, void *data);
/* Remove a job of the history and its output for good. */
void backend_forget(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
