/* SPDX-License-Identifier: MIT */
/*
 * The record of a local job: a snapshot that changes, and the plan for the job. It is written to job.json in the state
 * directory (the version of that format is in record.c; fields that are added later are optional). The AppDef stands in
 * app.yaml beside it, and is read only if something may have to be started. A record owns all that it points to, is
 * mutable and belongs to one thread.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/job/job.h"

/* The largest number of a job that waits: more than can ever have waited. */
#define SPEC_MAX_TURN (INT64_MAX / 2)

/* What is to become of a job. All goals but RUN end its processes. */
enum spec_goal {
	SPEC_GOAL_RUN,
	SPEC_GOAL_FAIL,
	SPEC_GOAL_TERMINATE,
	SPEC_GOAL_CANCEL,
	SPEC_GOAL_STOP
};

/* The plan for one replica. Plain data. */
struct spec_plan {
	bool ended; /* it is known how its newest attempt ended; the snapshot says so */
	/* The replica is to be started again when its attempt, its role or its job is gone. */
	bool again;
	/* Restarts that were used: its own, or (in the first replica of a role) the role's. */
	unsigned restarts;
};

/*
 * A record. Plain data: record.c fills in a new record and one that it reads, and the local backend writes into it what
 * becomes of the job.
 */
struct spec_record {
	/*
	 * The job as it is now. Its phase is one of Pending, Running, Suspended, Restarting, Terminating, Completed,
	 * Failed, Terminated, Cancelled. The log of an attempt is there as soon as spec_record_attempt has begun the
	 * attempt.
	 */
	struct spec_job *job;
	struct spec_plan *plans; /* one for each replica in JOB */
	char *file;		 /* the name it was submitted under */
	char *work_dir;
	char *digest; /* digest of app.yaml */
	/* The run of the machine in which the job was submitted; "": it has been launched since. */
	char *boot;
	unsigned goal; /* enum spec_goal */
	bool again;    /* all replicas are to be started again when none runs */
	int64_t turn; /* its number among those that wait for their turn (turns.h); 0: it does not wait */
	struct spec_app *app; /* the AppDef; NULL: it was not read, or can't be, for FAULT */
	char *fault;	      /* a sentence without its full stop; "": none */
};

/* What is known of a job when it is submitted. APPDEF are the LEN bytes of app.yaml. */
struct spec_record_origin {
	const char *id, *uid, *submission, *submitter, *file, *work_dir, *boot, *appdef;
	size_t len;
	int64_t created, time_limit, ttl; /* as in struct spec_job */
};

/* A job with the roles and replicas of APP, all PENDING; nothing else is set. */
struct spec_job *spec_record_shape(const struct spec_app *app);
/* Make a record of APP, which is taken over: submitted, nothing runs yet, all its replicas are PENDING. */
struct spec_record *spec_record_new(struct spec_app *app, const struct spec_record_origin *o);
void spec_record_free(struct spec_record *r);
define_cleanup(spec_record_freep, struct spec_record *, spec_record_free)

/* The JSON text of R, for job.json, without the AppDef. malloc'ed. */
char *spec_record_text(const struct spec_record *r);
/*
 * Parse such a text, which may be anything (the disk is outside). 0; -ENOTSUP: another version of kxfs wrote it;
 * -EINVAL: it is damaged.
 */
int spec_record_parse(const char *text, size_t len, struct spec_record **ret);
/*
 * Read the AppDef of R from the text of app.yaml (HOME as in struct spec_app_rules). If it is not the one that was
 * submitted, or is refused by the rules of this version, it is not taken, and R's fault says why.
 */
void spec_record_read_app(struct spec_record *r, const char *text, size_t len, const char *home);
/* The YAML text of R, for manifest.yaml, with the AppDef as far as it was read. */
void spec_record_yaml(const struct spec_record *r, char **ret, size_t *ret_len);

/* Replica I of R begins attempt N. */
void spec_record_attempt(struct spec_record *r, size_t i, unsigned n);
/*
 * The key of a log, "trainer-0.1" (the replica's directory name, ".", attempt), and the prefix of
 * its lines, "trainer/0 ". malloc'ed.
 */
char *spec_record_log_key(const struct spec_replica *rep, unsigned attempt);
char *spec_record_log_prefix(const struct spec_replica *rep);

/*
 * The snapshot of R to publish. Its actions follow from the phase alone (there are none in history): Pending, Running:
 * suspend, restart, terminate; Suspended (whose state is CANCELLED): resume, restart, terminate; Restarting: terminate;
 * in any other phase there are none. A job that can't be started, or waits for its turn, can't be restarted.
 */
struct spec_job *spec_record_job(const struct spec_record *r);
