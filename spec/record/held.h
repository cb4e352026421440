/* SPDX-License-Identifier: MIT */
/*
 * A held job: one that was submitted and is launched later, when its conditions are met
 * (spec/app/hold.h). This module converts the conditions to the part `hold` of the job's record,
 * makes the snapshot to publish, and decides whether the job may begin. All texts are set with
 * spec_set.
 */
#pragma once

#include "spec/app/hold.h"
#include "spec/job/job.h"
#include "spec/record/head.h"

/* The progress of waiting for another job. */
enum spec_wait { SPEC_WAIT_OPEN, SPEC_WAIT_MET, SPEC_WAIT_NEVER };

/*
 * A job to wait for, identified by its uid or its submission, whichever is known. The submission is
 * "" if the job was not submitted through this state directory. Plain data.
 */
struct spec_held_after {
	unsigned how; /* enum spec_after */
	char *id, *uid, *submission;
	unsigned wait; /* enum spec_wait */
	char *end;     /* NEVER: the job's result, as "has FAILED" */
};

/* The conditions of a held job. Plain data. */
struct spec_held {
	bool hold;
	int64_t begin; /* when it starts, in ns; 0: at any time */
	struct spec_held_after *after;
	size_t n_after;
};

void spec_held_free(struct spec_held *h); /* NULL is allowed */
define_cleanup(spec_held_freep, struct spec_held *, spec_held_free)

/* What reading a document's conditions depends on. */
struct spec_held_place {
	int64_t now;
	int64_t (*local)(int64_t utc); /* see spec_hold_moment */
	/*
	 * Find the job NAME, and set id, uid and submission of *RET. Return false if there is none.
	 */
	bool (*find)(void *data, const char *name, struct spec_held_after *ret);
	void *data;
};

/*
 * Read the conditions of the document TEXT into *RET, or NULL if it has none. Return 0, or the
 * errno of E if a job to wait for does not exist. A document with any other error has no
 * conditions: its launch will report that error.
 */
int spec_held_read(const char *text, size_t len, const struct spec_held_place *place,
		   struct spec_held **ret, struct spec_errors *e);

/* Return the unmet conditions of H as JSON text, for the part `hold` of a record. malloc'ed. */
char *spec_held_part(const struct spec_held *h);
/* Parse the text of spec_held_part; NULL means that no conditions are left. Return 0 or -EINVAL. */
int spec_held_parse(const char *part, struct spec_held **ret);

/* True if AFTER refers to JOB. */
bool spec_held_means(const struct spec_held_after *after, const struct spec_job *job);
/*
 * Record the result of AFTER's job if it has ended. NOW is the job's snapshot, or NULL if the job
 * was deleted; then OLD is its last snapshot, or NULL if its end is unknown. Return true if AFTER
 * changed.
 */
bool spec_held_settle(struct spec_held_after *after, const struct spec_job *old,
		      const struct spec_job *now);

enum spec_decision { SPEC_DECISION_WAIT, SPEC_DECISION_GO, SPEC_DECISION_NEVER };
/*
 * Decide whether a job with the conditions H can be launched now. If it never can, set *RET_WHY to
 * the reason (malloc'ed); otherwise to NULL.
 */
enum spec_decision spec_held_judge(const struct spec_held *h, int64_t now, char **ret_why);

/* The progress of the launch of a job whose state is SUBMITTING. */
enum spec_sending {
	SPEC_SENDING,	    /* its request is under way */
	SPEC_SENDING_ASKED, /* it is not known yet whether it was launched */
	SPEC_SENDING_LOST,  /* whether it was launched can't be found out any more */
};

/* Input of a snapshot besides the record. Plain data. */
struct spec_held_progress {
	/* Why the last launch, which is retried, was refused; or NULL. */
	const char *refusal;
	int64_t from, until; /* when no kxfs ran: beginning and end, in ns; or 0 */
	int64_t now;
	bool passive; /* this mount launches nothing */
	enum spec_sending sending;
};

/*
 * Return a job with the app, roles and replicas of the document; without them if the document can't
 * be read. It is the SHAPE of spec_held_job.
 */
struct spec_job *spec_held_shape(const char *text, size_t len, const char *home);
/*
 * Return the snapshot to publish of the job that has the record HEAD and the roles of SHAPE. H is
 * NULL if the job was not held.
 */
struct spec_job *spec_held_job(const struct spec_head *head, const struct spec_held *h,
			       const struct spec_job *shape,
			       const struct spec_held_progress *progress);
