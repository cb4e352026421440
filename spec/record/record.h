/* SPDX-License-Identifier: MIT */
/*
 * The parts `snapshot` and `plan` of a local job's record (head.h). The snapshot is the job as it
 * is now. The plan is what kxfs will do with the job. kxfs parses the job's AppDef only when it may
 * have to start replicas. A record is mutable, belongs to one thread, and owns all that it points
 * to.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/job/job.h"

/* a limit for files from disk, which no real queue reaches */
#define SPEC_MAX_QUEUE_NUMBER (INT64_MAX / 2)

/* How a job must continue or end. For every goal except RUN, kxfs ends the job's processes. */
enum spec_goal {
	SPEC_GOAL_RUN,
	SPEC_GOAL_FAIL,
	SPEC_GOAL_TERMINATE,
	SPEC_GOAL_CANCEL,
	SPEC_GOAL_STOP
};

/* The plan for one replica. Plain data. */
struct spec_plan {
	bool ended; /* the newest attempt has ended, and the snapshot has its result */
	/*
	 * True if kxfs must restart the replica after its attempt has ended. To restart a whole
	 * role or job, kxfs first waits until none of its replicas runs.
	 */
	bool again;
	/*
	 * Number of restarts of the replica. If the role restarts as a whole, only the plan of its
	 * first replica counts the restarts.
	 */
	unsigned restarts;
};

/* A record. The local backend records the job's progress in it. Plain data. */
struct spec_record {
	/*
	 * The phase is Pending, Running, Suspended, Restarting, Terminating, Completed, Failed,
	 * Terminated or Cancelled. spec_record_attempt adds the log of each attempt.
	 */
	struct spec_job *job;
	struct spec_plan *plans; /* one for each replica in JOB */
	char *work_dir;
	unsigned goal; /* enum spec_goal */
	bool again;    /* kxfs must restart all replicas as soon as none of them runs */
	/* Jobs wait for a slot (slots.h) in the order of this number; 0 if JOB does not wait. */
	int64_t queue_number;
	/* the AppDef; NULL if it is not read yet, or not valid (see FAULT) */
	struct spec_app *app;
	char *fault; /* the error in the AppDef, without a full stop; "" if there is none */
};

struct spec_record_origin {
	const char *id, *uid, *submission, *submitter, *work_dir;
	int64_t created, time_limit, ttl; /* as in struct spec_job */
};

/* Return a job that only has the roles and replicas of APP. All replicas are PENDING. */
struct spec_job *spec_record_shape(const struct spec_app *app);
/* Make a record for a submitted APP, and take ownership of APP. All replicas are PENDING. */
struct spec_record *spec_record_new(struct spec_app *app, const struct spec_record_origin *o);
void spec_record_free(struct spec_record *r);
define_cleanup(spec_record_freep, struct spec_record *, spec_record_free)

/* Return the part `snapshot` or `plan` of R as JSON text, malloc'ed. */
char *spec_record_snapshot(const struct spec_record *r);
char *spec_record_plan(const struct spec_record *r);
/*
 * Parse the parts `snapshot` and `plan`, which are untrusted. PLAN may be NULL. Return 0, or
 * -EINVAL if a part is invalid, or if SNAPSHOT is NULL.
 */
int spec_record_parse(const char *snapshot, const char *plan, struct spec_record **ret);
/* Read the document TEXT into R->app, or set R->fault. HOME is as in struct spec_app_rules. */
void spec_record_read_app(struct spec_record *r, const char *text, size_t len, const char *home);
/* Set *RET to the text of manifest.yaml. FILE is the name of the submitted file. */
void spec_record_yaml(const struct spec_record *r, const char *file, char **ret, size_t *ret_len);

void spec_record_attempt(struct spec_record *r, size_t i, unsigned n);
/* Return the key of REP's log in ATTEMPT ("trainer-0.1"), malloc'ed. */
char *spec_record_log_key(const struct spec_replica *rep, unsigned attempt);

/*
 * Return the snapshot to publish. Its ACTIONS lack "restart" while the job waits for a slot, or if
 * APP is NULL.
 */
struct spec_job *spec_record_job(const struct spec_record *r);
