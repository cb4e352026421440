/* SPDX-License-Identifier: MIT */
/*
 * The parts `snapshot` and `plan` of a local job's record (head.h): the job as it is now, and what
 * kxfs will do with it. kxfs parses the document, an AppDef, only when it may have to start
 * something. A record is mutable, belongs to one thread, and owns all that it points to.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/job/job.h"

/* no real queue reaches this */
#define SPEC_MAX_QUEUE_NUMBER (INT64_MAX / 2)

/* The state that a job must reach. For any goal but RUN, kxfs ends the job's processes. */
enum spec_goal {
	SPEC_GOAL_RUN,
	SPEC_GOAL_FAIL,
	SPEC_GOAL_TERMINATE,
	SPEC_GOAL_CANCEL,
	SPEC_GOAL_STOP
};

/* Plain data. */
struct spec_plan {
	bool ended; /* the newest attempt has ended, with its result in the snapshot */
	/*
	 * True if kxfs must restart the replica after its attempt has ended. To restart a whole
	 * role or job, kxfs first waits until none of its replicas runs.
	 */
	bool again;
	/*
	 * Number of restarts of the replica. If the role restarts as a whole, only the plan of the
	 * role's first replica counts them.
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
	bool again;    /* restart all replicas when none runs any more */
	/* order among jobs that wait for a slot (slots.h); 0 if the job does not wait */
	int64_t queue_number;
	/* NULL if not read yet, or if it can't be read (see FAULT) */
	struct spec_app *app;
	char *fault; /* an error about the AppDef, without a full stop, or "" */
};

struct spec_record_origin {
	const char *id, *uid, *submission, *submitter, *work_dir;
	int64_t created, time_limit, ttl; /* as in struct spec_job */
};

/* Return a job with only the roles and replicas of APP. All replicas are PENDING. */
struct spec_job *spec_record_shape(const struct spec_app *app);
/* Make a record for a submitted APP, and take ownership of APP. All replicas are PENDING. */
struct spec_record *spec_record_new(struct spec_app *app, const struct spec_record_origin *o);
void spec_record_free(struct spec_record *r);
define_cleanup(spec_record_freep, struct spec_record *, spec_record_free)

/* Return the part `snapshot` or `plan` of R as JSON text, malloc'ed. */
char *spec_record_snapshot(const struct spec_record *r);
char *spec_record_plan(const struct spec_record *r);
/*
 * Parse the parts, which are untrusted. PLAN may be NULL. Return 0, or -EINVAL if a part is invalid
 * or SNAPSHOT is NULL.
 */
int spec_record_parse(const char *snapshot, const char *plan, struct spec_record **ret);
/* Read the document TEXT into APP, or set FAULT. HOME is as in struct spec_app_rules. */
void spec_record_read_app(struct spec_record *r, const char *text, size_t len, const char *home);
/* Set *RET to manifest.yaml: what was submitted as FILE, with the AppDef if it was read. */
void spec_record_yaml(const struct spec_record *r, const char *file, char **ret, size_t *ret_len);

void spec_record_attempt(struct spec_record *r, size_t i, unsigned n);
/* Return the key of the log of ATTEMPT ("trainer-0.1"), malloc'ed. */
char *spec_record_log_key(const struct spec_replica *rep, unsigned attempt);

/*
 * Return the snapshot to publish. It does not allow the action "restart" while R waits for a slot,
 * or if APP is NULL.
 */
struct spec_job *spec_record_job(const struct spec_record *r);
