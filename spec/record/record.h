/* SPDX-License-Identifier: MIT */
/*
 * The parts `snapshot` and `plan` of a local job's record (head.h has the rest): a mutable
 * snapshot, and the plan for the job. The AppDef is the document of the record, and is read only if
 * something may have to be started. A record owns everything that it points to, is mutable and
 * belongs to one thread.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/job/job.h"

/* The upper bound of spec_record.queue_number: more jobs than can ever have waited. */
#define SPEC_MAX_QUEUE_NUMBER (INT64_MAX / 2)

/* The goal of a job. All goals but RUN end its processes. */
enum spec_goal {
	SPEC_GOAL_RUN,
	SPEC_GOAL_FAIL,
	SPEC_GOAL_TERMINATE,
	SPEC_GOAL_CANCEL,
	SPEC_GOAL_STOP
};

/* The plan for one replica. Plain data. */
struct spec_plan {
	bool ended; /* the result of its newest attempt is known and in the snapshot */
	/* Restart the replica when its attempt, its role or its job has ended. */
	bool again;
	/* Restarts used so far: its own, or (in the first replica of a role) the role's. */
	unsigned restarts;
};

/*
 * A record. Plain data: record.c fills it in, from an AppDef or from the disk, and the local
 * backend writes the job's progress into it.
 */
struct spec_record {
	/*
	 * The job as it is now. Its phase is one of Pending, Running, Suspended, Restarting,
	 * Terminating, Completed, Failed, Terminated, Cancelled. spec_record_attempt adds the log
	 * of an attempt that begins.
	 */
	struct spec_job *job;
	struct spec_plan *plans; /* one for each replica in JOB */
	char *file;		 /* the name it was submitted under, from the head */
	char *work_dir;
	unsigned goal;	      /* enum spec_goal */
	bool again;	      /* restart all replicas when none runs */
	int64_t queue_number; /* its number among the waiting jobs (slots.h); 0 if it does not wait */
	struct spec_app *app; /* the AppDef; NULL: not read yet, or unreadable because of FAULT */
	char *fault;	      /* a sentence without its full stop, or "" */
};

/* The input of a submission. */
struct spec_record_origin {
	const char *id, *uid, *submission, *submitter, *file, *work_dir;
	int64_t created, time_limit, ttl; /* as in struct spec_job */
};

/* Return a job with the roles and replicas of APP, all PENDING; nothing else is set. */
struct spec_job *spec_record_shape(const struct spec_app *app);
/*
 * Make a record of a submitted APP, which is taken over: nothing runs yet, and all its replicas are
 * PENDING.
 */
struct spec_record *spec_record_new(struct spec_app *app, const struct spec_record_origin *o);
void spec_record_free(struct spec_record *r);
define_cleanup(spec_record_freep, struct spec_record *, spec_record_free)

/* Return the part `snapshot`, or `plan`, of R as JSON text, without the AppDef. malloc'ed. */
char *spec_record_snapshot(const struct spec_record *r);
char *spec_record_plan(const struct spec_record *r);
/*
 * Parse the two parts, which may be anything (the disk is untrusted). A NULL SNAPSHOT counts as
 * damaged; PLAN may be NULL if it is not needed. Return 0, or -EINVAL if a part is damaged.
 */
int spec_record_parse(const char *snapshot, const char *plan, struct spec_record **ret);
/*
 * Read the AppDef of R from the document (HOME as in struct spec_app_rules). If this version's rules
 * refuse it, R's fault has the reason instead.
 */
void spec_record_read_app(struct spec_record *r, const char *text, size_t len, const char *home);
/* Return the YAML text of R, for manifest.yaml, with the AppDef if it was read. */
void spec_record_yaml(const struct spec_record *r, char **ret, size_t *ret_len);

/* Begin attempt N of replica I of R. */
void spec_record_attempt(struct spec_record *r, size_t i, unsigned n);
/*
 * Return the key of the log of ATTEMPT, "trainer-0.1" (the replica's directory name, ".", attempt),
 * or the prefix of the log's lines, "trainer/0 ". malloc'ed.
 */
char *spec_record_log_key(const struct spec_replica *rep, unsigned attempt);
char *spec_record_log_prefix(const struct spec_replica *rep);

/*
 * Return the snapshot of R to publish. Its actions depend only on the phase (history has none):
 * Pending, Running: suspend, restart, terminate; Suspended (whose state is CANCELLED): resume,
 * restart, terminate; Restarting: terminate; in any other phase none. A job that can't be started,
 * or waits for its slot, can't be restarted.
 */
struct spec_job *spec_record_job(const struct spec_record *r);
