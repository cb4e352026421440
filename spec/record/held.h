/* SPDX-License-Identifier: MIT */
/*
 * Held jobs, which kxfs launches when their conditions are met (spec/app/hold.h). This module
 * converts the conditions to the part `hold` of a record and back, makes snapshots of held jobs,
 * and decides whether kxfs may launch a job. All texts are set with spec_set.
 */
#pragma once

#include "spec/app/hold.h"
#include "spec/job/job.h"
#include "spec/record/head.h"

/* The input of spec_held_read besides the document. */
struct spec_held_place {
	int64_t now;
	int64_t (*local)(int64_t utc); /* see spec_hold_moment */
	/*
	 * Find the job whose id, or whose file in submit/, is NAME. Set its id, uid and submission
	 * in *RET. Return false if there is no such job.
	 */
	bool (*find)(void *data, const char *name, struct spec_held_after *ret);
	void *data;
};

/*
 * Set *RET to the conditions in the document TEXT; NULL if it has none. Return 0, or the errno of E
 * if a job to wait for does not exist. An invalid document counts as a document without conditions,
 * since the launch of its job will report the errors.
 */
int spec_held_read(const char *text, size_t len, const struct spec_held_place *place,
		   struct spec_held **ret, struct spec_errors *e);

/* Return the unmet conditions of H as JSON text for the part `hold` of a record, malloc'ed. */
char *spec_held_part(const struct spec_held *h);
/* Parse PART, a text of spec_held_part. NULL means no conditions. Return 0 or -EINVAL. */
int spec_held_parse(const char *part, struct spec_held **ret);

bool spec_held_means(const struct spec_held_after *after, const struct spec_job *job);
/*
 * If the job of AFTER has ended or was removed, record its result in AFTER. Return true if this
 * changes AFTER. NOW is the job's snapshot; NULL if the job was removed. OLD is its previous
 * snapshot; NULL if unknown.
 */
bool spec_held_settle(struct spec_held_after *after, const struct spec_job *old,
		      const struct spec_job *now);

enum spec_decision { SPEC_DECISION_WAIT, SPEC_DECISION_GO, SPEC_DECISION_NEVER };
/*
 * Decide whether kxfs may launch a job with the conditions H. If a condition can't be met any more,
 * set *RET_WHY to the reason (malloc'ed); otherwise to NULL.
 */
enum spec_decision spec_held_judge(const struct spec_held *h, int64_t now, char **ret_why);

/* The progress of the launch of a job whose state is SUBMITTING. */
enum spec_sending {
	SPEC_SENDING,	    /* kxfs has sent the request, and waits for the reply */
	SPEC_SENDING_ASKED, /* it is unknown whether the server has the job; kxfs is finding out */
	SPEC_SENDING_LOST,  /* the server does not have the job, but may have had it earlier */
};

/* What the snapshot of a job shows in addition to its record. Plain data. */
struct spec_held_progress {
	/* why the server refused the last launch, if kxfs will retry it; else NULL */
	const char *refusal;
	int64_t now;
	bool passive; /* this mount does not launch jobs */
	enum spec_sending sending;
};

/*
 * Return a job with the app name, roles and replicas of the document TEXT; an empty job if TEXT is
 * invalid.
 */
struct spec_job *spec_held_shape(const char *text, size_t len, const char *home);
/*
 * Return the snapshot of a job that is not launched yet or never was. HEAD is its record. H has its
 * conditions; NULL if it had none. SHAPE is the result of spec_held_shape.
 */
struct spec_job *spec_held_job(const struct spec_head *head, const struct spec_held *h,
			       const struct spec_job *shape,
			       const struct spec_held_progress *progress);
