/* SPDX-License-Identifier: MIT */
/*
 * All of the backend that fs/ may see, with output/log.h and base/: jobs as snapshots,
 * requests that change something, texts, and news. What is read here comes from memory or the
 * state directory and never waits; what waits is a request with a reply.
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

struct backend_config {
	/* "local", "volcano", "mcad", "appwrapper", "jobset", "job"; "" all that a cluster serves */
	const char *kind;
	const char *context;	      /* of the kubeconfig; "" its current one */
	const char *namespace;	      /* "" that of the context */
	const char *kubeconfig;	      /* a file; "" where kubectl looks */
	const char *as;		      /* user to impersonate; "" none */
	const char *selector;	      /* labels of the jobs to show; "" all */
	bool mine;		      /* of these those that this user submitted through kxfs */
	enum backend_capture capture; /* whose output is captured without being read */
	const char *state_dir;	      /* absolute; exists, is ours, is locked */
	const char *work_dir;	      /* where local replicas run */
	const char *mountpoint;	      /* where they must not run; NULL: anywhere */
	const char *submitter;	      /* user@host of the mount */
	const char *home;	      /* for "~" in mounts; NULL: none */
	const struct spec_pair *args; /* run options of the mount; not copied */
	size_t n_args;
	unsigned grace_ms; /* SIGTERM to SIGKILL */
	bool linger;	   /* local jobs outlive backend_stop */
	unsigned jobs;	   /* local ones that run at once; 0: any number */
	int gpus; /* of the machine that local jobs are given, at most 64; 0: none; -1: those that it has */
	uint64_t spool_limit; /* bytes of captured output in all */
	int64_t history_keep; /* seconds */
	/* As archive_place has them; NULL: none. */
	const char *archive, *archive_endpoint, *archive_region;
	bool archives; /* jobs they are put there; else what is there is shown */
};

/* News, on the I/O thread, no lock held. Set once, before backend_start. */
struct backend_events {
	/*
	 * A job is new (OLD is NULL), changed, moved to history (NEW->history and not
	 * OLD->history), or gone for good (NEW is NULL). Both are borrowed. The store already
	 * shows NEW.
	 */
	void (*job)(void *data, const struct spec_job *old, const struct spec_job *new_job);
	/*
	 * While it starts: an earlier mount has launched the job ID for what was written as FILE, and may not have
	 * told anybody. SUBMISSION is the one of the request, by which this launch is told from others of FILE. ID is
	 * NULL: it is not known yet whether that was launched, since it may still be on its way. Then this is called
	 * again, minutes later perhaps, with the id, or with "": it was not launched. This call may also follow an
	 * answer to a request that said that it could not be found out.
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
	BACKEND_LACKS, /* a mount works, without something */
	BACKEND_WRONG, /* there would be no mount */
};
/*
 * Ask the cluster of CONFIG (of which only the connection and the kind count) for all that a mount needs of it,
 * and change nothing there: the connection, the server's version and clock, what it serves, each right. FN is told
 * each finding, a line for people without a secret in it, as soon as it is known, while this waits: bounded. When
 * no thread runs yet; SIGINT, SIGTERM and SIGHUP end the process, and what it has started for this.
 */
void backend_examine(const struct backend_config *config,
		     void (*fn)(void *data, enum backend_grade grade, const char *text),
		     void *data);

/* The same of an archive, in which it writes a small file. */
void backend_examine_archive(const struct backend_config *config,
			     void (*fn)(void *data, enum backend_grade grade, const char *text),
			     void *data);

/*
 * The contexts of the kubeconfig (a file; "" where kubectl looks) with their namespaces, "CONTEXT/NAMESPACE": an array
 * that ends with NULL; it and its texts are malloc'ed. 0, or a negative errno with *RET_TEXT. Any time.
 */
int backend_contexts(const char *kubeconfig, char ***ret, char **ret_text);
/* The libraries that the backend runs with, "libuv 1.44.2, ...", and what they can do, "https http2 ...": malloc'ed. */
char *backend_libraries(void);
char *backend_features(void);
/*
 * What tells the jobs of CONFIG (no state_dir yet) from those of any other mount: a file name,
 * malloc'ed, for the default state directory. Reads the kubeconfig; 0, or a negative errno with
 * *RET_TEXT. Any time.
 */
int backend_key(const struct backend_config *config, char **ret, char **ret_text);
/*
 * Make a backend of CONFIG (copied) on LOOP. -EOPNOTSUPP: no such kind. *RET_TEXT (malloc'ed or
 * NULL) says what is wrong and what to do.
 */
int backend_new(struct loop *loop, const struct backend_config *config,
		const struct backend_events *events, struct backend **ret, char **ret_text);
/*
 * Read what is known and come up; the loop runs. Waits until the first list is in (at most 60 s).
 * 0, or a negative errno with *RET_TEXT.
 */
int backend_start(struct backend *b, char **ret_text);
/*
 * Nobody wants it to start any more: backend_start returns -ECANCELED now, unless what it waits for is this machine's
 * disk alone, which is soon read. Later nothing happens. Any thread.
 */
void backend_give_up(struct backend *b);
/*
 * The mount is up, and jobs are its to begin and to end from here on. Without this a backend shows what there is, and
 * backend_stop ends nothing: a start that fails, or a mount that only reads, changes no job. Any thread.
 */
void backend_take_charge(struct backend *b);
/*
 * End what is to be ended with the mount (local jobs: their processes, if it is in charge of them and they don't
 * linger), keep everything, wait for it (bounded). False: some of it still waits for the disk, so nothing may be freed:
 * the process must end now.
 */
bool backend_stop(struct backend *b);
void backend_free(struct backend *b); /* after loop_stop; backend_stop was true */

/*
 * The first call in main() of every program with a backend: for what is to outlive it, and for what becomes another
 * program with other limits, a backend starts the program itself again under a name of its own. In such a process this
 * does not return.
 */
void backend_helper(char **argv);

/* --- jobs; any thread, from memory --- */

/* The snapshot of ID, a new reference; NULL: none. */
const struct spec_job *backend_job(struct backend *b, enum backend_place place, const char *id);
/* The same by uid, wherever it is now. */
const struct spec_job *backend_job_by_uid(struct backend *b, const char *uid);
/* All of a place, in the order of their creation: *RET is malloc'ed, each item a new reference. */
void backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		  size_t *ret_n);
/* Grows with every change of the place's list of jobs; for a directory's mtime. ns. */
int64_t backend_changed(struct backend *b, enum backend_place place);
/* Another one after every change of any job of the place, also of one that is no change for its directory. */
uint64_t backend_revision(struct backend *b, enum backend_place place);
/* Since when what jobs/ shows has not been confirmed (ns); 0: it is. */
int64_t backend_stale_since(struct backend *b);

/*
 * Somebody reads what is known of JOB. What its server tells only when it is asked (the place in a queue) is asked for
 * now, and for a while again and again; it comes with later snapshots.
 */
void backend_wanted(struct backend *b, const struct spec_job *job);

/* The same of what the jobs of jobs/ use. */
void backend_usage_wanted(struct backend *b);

/* --- what an archive has; any thread; all but the first may wait for it, as for a disk --- */

/* Is there one that is shown? Without one there is nothing in the answers of the others. */
bool backend_has_archive(const struct backend *b);
/* Somebody looks at the history, which is to have what the archive has. */
void backend_archive_look(struct backend *b);
/* Its days, oldest first: *RET, and each of them, is malloc'ed. */
int backend_archive_days(struct backend *b, char ***ret, size_t *ret_n);
/* The jobs of a day; *RET is malloc'ed, each item a new reference. -ENOENT: there is no such day. */
int backend_archive_jobs(struct backend *b, const char *day, const struct spec_job ***ret,
			 size_t *ret_n);
/* That of them which is called ID, a new reference. */
int backend_archive_job(struct backend *b, const char *day, const char *id,
			const struct spec_job **ret);
/* The job of any day that is called ID, a new reference. -ENOENT. */
int backend_archive_find(struct backend *b, const char *id, const struct spec_job **ret);
/*
 * *JOB, a reference, becomes a snapshot that is not brief; of a job that is not archived, one that has the logs of
 * attempts that only an archive has, if it can be had.
 */
int backend_complete(struct backend *b, const struct spec_job **job);

/* --- texts; any thread; may read the state directory --- */

enum backend_text { BACKEND_MANIFEST, BACKEND_APPDEF };

/* 0 and a malloc'ed text; -ENOENT: there is none. */
int backend_text(struct backend *b, const struct spec_job *job, enum backend_text which, char **ret,
		 size_t *ret_len);
/* Size and nothing else, without rendering twice: what backend_text would give as *RET_LEN. */
int backend_text_size(struct backend *b, const struct spec_job *job, enum backend_text which,
		      size_t *ret_len);
/*
 * Who may read the texts of a job, beside who mounts: S_IRGRP, S_IROTH, as backend_submission.readable. Of a job that
 * was not submitted from here both, since whoever sees the cluster sees it; of one of which it is not known, nobody.
 */
mode_t backend_text_readable(struct backend *b, const struct spec_job *job);
/*
 * The text of `events` of a job in jobs/, and when the last happened (0: none did). -ENOENT: events are
 * not known here.
 */
int backend_events(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		   int64_t *ret_changed);
/* Lines "key: value" of YAML for .kxfs/info, Prometheus text for .kxfs/metrics. */
void backend_info(struct backend *b, FILE *out);
void backend_metrics(struct backend *b, FILE *out);

/* --- queues; any thread, from memory --- */

/* All that are known: *RET is malloc'ed, each item a new reference. -ENOENT: queues are not known here. */
int backend_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n);
bool backend_has_queues(struct backend *b);
/* The queue NAME, a new reference; NULL: none. */
struct spec_queue_view *backend_queue(struct backend *b, const char *name);

/* What jobs/ has of a queue. */
struct backend_queue_jobs {
	size_t pending, running;
	int64_t changed; /* when one of its jobs last did, or jobs/ itself */
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
/* Its size and mtime without opening it. */
int backend_log_stat(struct backend *b, const struct spec_job *job, const char *key,
		     enum log_form form, struct log_stat *ret);

/* --- requests; any thread; never wait; exactly one reply, on the I/O thread --- */

struct backend_result {
	/*
	 * 0 or a negative errno, as docs/kxfs-layout.5 lists them. -EINPROGRESS: a submission that may have
	 * been launched when the mount ended; the next one tells by backend_events.launched.
	 */
	int err;
	const char *text;     /* for people; "" or lines; never NULL; borrowed */
	const char *id;	      /* submit: the job's id; dry run: what it would be; else "" */
	const char *manifest; /* dry run: YAML; else ""; borrowed */
	const char *backend, *namespace; /* of a dry run that was approved: whose job it would be */
};

typedef void (*backend_reply_fn)(void *data, const struct backend_result *result);

struct backend_submission {
	const char *file; /* name it was written under, for messages and the record */
	const char *text;
	size_t len;
	const char *submitter; /* user@host */
	mode_t readable;       /* who may read the file, beside who mounts: S_IRGRP, S_IROTH */
	/* A UUID of the launch, another for each: it goes on record with the job. Of no use to a dry run. */
	const char *submission;
};

/* Launch it, exactly once. All is copied. On success the job is in the store before the reply. */
void backend_submit(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		    void *data);
/* Launch nothing: the reply has the manifest that would be. Errors as those of backend_submit. */
void backend_dry_run(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		     void *data);
/* End the job with this id and uid and move it to history. -ESTALE: another job has the id; -ENOENT. */
void backend_cancel(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
/* -EINVAL: the job's phase would ignore it (the text says why). ARGUMENT: NULL where the action has none; copied. */
void backend_control(struct backend *b, const char *id, const char *uid, enum spec_action action,
		     const char *argument, backend_reply_fn reply, void *data);
/* Remove a job of the history and its output for good. */
void backend_forget(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data);
