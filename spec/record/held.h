/* SPDX-License-Identifier: MIT */
/*
 * A held job: a job that was submitted but is launched later, when its conditions are met
 * (spec/app/hold.h). Its data as text for the disk and as the snapshot to publish; and the decision
 * to launch it. All texts are set with spec_set.
 *
 *	state     | what is so                                   | what ends it            | next
 *	WAITS     | a condition does not hold, or it is just     | launched                | LAUNCHED
 *	          | being launched                               | it can't hold any more, | OVER
 *	          |                                              | or a launch is refused  |
 *	LAUNCHED  | a job of its submission was made             | the job is seen         | (gone)
 *	OVER      | it is never launched; how that came is known | removed                 | (gone)
 */
#pragma once

#include "spec/app/hold.h"
#include "spec/job/job.h"

enum spec_held_state { SPEC_HELD_WAITS, SPEC_HELD_LAUNCHED, SPEC_HELD_OVER };

/* The status of a wait for a job. */
enum spec_wait { SPEC_WAIT_OPEN, SPEC_WAIT_MET, SPEC_WAIT_NEVER };

/*
 * A job to wait for. Plain data. It is identified by its uid or its submission ("": it is not
 * ours), whichever is known.
 */
struct spec_held_after {
	unsigned how; /* enum spec_after */
	char *id, *uid, *submission;
	unsigned wait; /* enum spec_wait */
	char *end;     /* NEVER: the job's result, as "has FAILED" */
};

/* A held job. Plain data. */
struct spec_held {
	char *id;	  /* the job's id, before and after its launch */
	char *submission; /* UUID of its launch; also its uid while it has no other */
	char *file, *submitter, *backend, *namespace;
	char *digest; /* digest of the file's contents after the head */
	/* Length of the document there; the rest is the manifest made by the dry run. */
	int64_t len;
	uint64_t seed[2]; /* input of its name */
	unsigned readable;
	int64_t created;
	bool hold;
	int64_t begin; /* when it starts, in ns; 0: at any time */
	struct spec_held_after *after;
	size_t n_after;
	unsigned state;	  /* enum spec_held_state */
	bool failed;	  /* OVER: a launch was refused; otherwise a condition can't be met any
			   * more */
	char *message;	  /* OVER: why */
	int64_t finished; /* OVER: when */
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
 * Read the conditions of the document TEXT into *RET. NULL if it has none, or has another error,
 * which its launch will report. Return 0, or the errno of E: a job that it waits for does not
 * exist.
 */
int spec_held_read(const char *text, size_t len, const struct spec_held_place *place,
		   struct spec_held **ret, struct spec_errors *e);

/* Return the head of H's file: a line. malloc'ed. */
char *spec_held_head(const struct spec_held *h);
/*
 * Parse a whole file, which may be anything: the document is at *RET_DOCUMENT, followed by the
 * manifest.
 */
int spec_held_parse(const char *text, size_t len, struct spec_held **ret,
		    const char **ret_document);
/* Compute the digest of the contents after the head. */
void spec_held_digest(const char *rest, size_t len, char ret[65]);

/* True if AFTER refers to JOB. */
bool spec_held_means(const struct spec_held_after *after, const struct spec_job *job);
/*
 * Record the result of AFTER's job: NOW, if it has ended; OLD was its last snapshot if it was
 * deleted; both NULL: it was deleted, and its end is unknown. Return true if that is a change.
 */
bool spec_held_settle(struct spec_held_after *after, const struct spec_job *old,
		      const struct spec_job *now);

enum spec_decision { SPEC_DECISION_WAIT, SPEC_DECISION_GO, SPEC_DECISION_NEVER };
/* Decide if H may be launched now. NEVER: H's message has the reason. */
enum spec_decision spec_held_judge(struct spec_held *h, int64_t now);

/* Input of a snapshot besides the record. Plain data. */
struct spec_held_news {
	/* Why the last launch, which is retried, was refused; or NULL. */
	const char *refusal;
	int64_t from, until; /* the period in which no kxfs ran, in ns; or 0 */
	int64_t now;
	bool passive; /* this mount launches nothing */
};

/*
 * Return the app, roles and replicas of the document; none if it can't be read. It is the SHAPE for
 * the function below.
 */
struct spec_job *spec_held_shape(const char *text, size_t len, const char *home);
/* Return the snapshot to publish, of a job of that SHAPE. */
struct spec_job *spec_held_job(const struct spec_held *h, const struct spec_job *shape,
			       const struct spec_held_news *news);
