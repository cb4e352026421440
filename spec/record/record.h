/* SPDX-License-Identifier: MIT */
/*
 * The record of a local job: what the local backend knows of it, as it is written to job.json in the state
 * directory (the version of that format is in record.c; fields that are added later are optional), and
 * the snapshot that others see of it. A record owns its AppDef and its texts, is mutable and belongs to one
 * thread. Times are ns since 1970, 0: not yet.
 */
#ifndef KXFS_SPEC_RECORD_RECORD_H
#define KXFS_SPEC_RECORD_RECORD_H

#include "spec/app/app.h"
#include "spec/job/job.h"

/* What is to become of a job. All but RUN end its processes. */
enum spec_goal {
	SPEC_GOAL_RUN,
	SPEC_GOAL_FAIL,
	SPEC_GOAL_TERMINATE,
	SPEC_GOAL_CANCEL,
	SPEC_GOAL_STOP
};

struct spec_record_replica {
	unsigned role; /* index in app->roles */
	unsigned id;   /* K */
	enum spec_state state;
	unsigned attempt; /* from 0; logs of attempts 0..attempt exist, as "ROLE-K.ATTEMPT" */
	bool ended;	  /* it is known how the attempt ended; what follows stands here */
	bool again;	  /* to be started again when its attempt, its role or its job is gone */
	unsigned
		restarts; /* of the retry budget: its own, or (in the first of a role) the role's */
	int exit_code;	  /* -1: none */
	int signal;	  /* 0: none */
	int64_t started;
	int64_t finished;
	char *reason;
	char *message;
};

/*
 * Plain data: record.c fills in a new record and one that it reads, and the local backend writes into it what becomes
 * of the job.
 */
struct spec_record {
	char *id;
	char *uid;
	char *submitter;
	char *submission;
	char *file; /* the name it was submitted under */
	char *work_dir;
	enum spec_state state;
	/*
	 * Pending, Running, Suspended, Restarting, Terminating, Completed, Failed, Terminated,
	 * Cancelled
	 */
	char *phase;
	char *reason;
	char *message;
	char *last_words; /* as in spec_job */
	bool history;
	bool suspended;
	bool dropped;  /* its output was removed to make room */
	unsigned goal; /* enum spec_goal */
	bool again;    /* all replicas are to be started again when none runs */
	char *boot; /* the run of the machine in which it was submitted; "": it has been launched since */
	unsigned retries;
	int64_t created;
	int64_t started;
	int64_t finished;
	int64_t changed;
	struct spec_transitions transitions;
	struct spec_app *app;
	struct spec_record_replica *replicas; /* roles in order, replicas 0..n-1 */
	size_t n_replicas;
};

/* What is known of a job when it is submitted. */
struct spec_record_origin {
	const char *id, *uid, *submission, *submitter, *file, *work_dir, *boot;
	int64_t created;
};

/* Fill R, a new record: submitted, nothing runs yet. */
void spec_record_begin(struct spec_record *r, const struct spec_record_origin *o);

/* A record of APP, which is taken over; its replicas are PENDING. */
struct spec_record *spec_record_new(struct spec_app *app);
void spec_record_free(struct spec_record *r);

/* As JSON text, for job.json. malloc'ed. */
char *spec_record_text(const struct spec_record *r);
/*
 * And back. The text may be anything (the disk is outside). 0; -ENOTSUP: another version of kxfs wrote
 * it; -EINVAL: it is damaged.
 */
int spec_record_parse(const char *text, size_t len, struct spec_record **ret);
/* As YAML, for manifest.yaml. */
void spec_record_yaml(const struct spec_record *r, char **ret, size_t *ret_len);

/*
 * The key of a log, "trainer-0.1" (the replica's directory name, ".", attempt), and the prefix of
 * its lines, "trainer/0 ". malloc'ed.
 */
char *spec_record_log_key(const struct spec_record *r, const struct spec_record_replica *rep,
			  unsigned attempt);
char *spec_record_log_prefix(const struct spec_record *r, const struct spec_record_replica *rep);

/*
 * The snapshot to publish. max_retries is the largest of all roles. Its actions follow from the
 * phase alone (there are none in history): Pending, Running: suspend, restart, terminate; Suspended (whose
 * state is CANCELLED): resume, restart, terminate; Restarting: terminate; in any other phase there are none.
 */
struct spec_job *spec_record_job(const struct spec_record *r);

#endif
