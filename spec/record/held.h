/* SPDX-License-Identifier: MIT */
/*
 * A held job: one that was submitted and is launched later, when its conditions hold (spec/app/hold.h). What is known
 * of it, as text for the disk and as the snapshot to publish; and whether it may begin. All texts are set with
 * spec_set.
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

/* How a wait for a job stands. */
enum spec_wait { SPEC_WAIT_OPEN, SPEC_WAIT_MET, SPEC_WAIT_NEVER };

/*
 * A job that is waited for. Plain data. It is the job of this uid, or of this submission ("": it is not ours),
 * whichever is known.
 */
struct spec_held_after {
	unsigned how; /* enum spec_after */
	char *id, *uid, *submission;
	unsigned wait; /* enum spec_wait */
	char *end;     /* NEVER: what became of the job, as "has FAILED" */
};

/* A held job. Plain data. */
struct spec_held {
	char *id;	  /* the id that the job has, now and when it is launched */
	char *submission; /* UUID of its launch; its uid as long as it has no other */
	char *file, *submitter, *backend, *namespace;
	char *digest; /* digest of what stands behind the head in its file */
	/* Length of the document there; the rest is the manifest that the dry run made. */
	int64_t len;
	uint64_t seed[2]; /* what its name is made of */
	unsigned readable;
	int64_t created;
	bool hold;
	int64_t begin; /* when it begins, in ns; 0: at any time */
	struct spec_held_after *after;
	size_t n_after;
	unsigned state;	  /* enum spec_held_state */
	bool failed;	  /* OVER: a launch was refused; else a condition can't hold any more */
	char *message;	  /* OVER: why */
	int64_t finished; /* OVER: when */
};

void spec_held_free(struct spec_held *h); /* NULL is allowed */
define_cleanup(spec_held_freep, struct spec_held *, spec_held_free)

/* What reading a document's conditions depends on. */
struct spec_held_place {
	int64_t now;
	int64_t (*local)(int64_t utc); /* see spec_hold_moment */
	/* Find the job that NAME means, and set id, uid and submission of *RET. False: there is none. */
	bool (*find)(void *data, const char *name, struct spec_held_after *ret);
	void *data;
};

/*
 * Read the conditions of the document TEXT into *RET. NULL: it has none, or is wrong in another way, which its launch
 * will tell. 0, or the errno of E: a job that it waits for does not exist.
 */
int spec_held_read(const char *text, size_t len, const struct spec_held_place *place,
		   struct spec_held **ret, struct spec_errors *e);

/* The head of H's file: a line. malloc'ed. */
char *spec_held_head(const struct spec_held *h);
/* Parse a whole file, which may be anything: the document is at *RET_DOCUMENT, and behind it the manifest. */
int spec_held_parse(const char *text, size_t len, struct spec_held **ret,
		    const char **ret_document);
/* The digest of what stands behind the head. */
void spec_held_digest(const char *rest, size_t len, char ret[65]);

/* Does AFTER mean JOB? */
bool spec_held_means(const struct spec_held_after *after, const struct spec_job *job);
/*
 * Note what became of AFTER's job: NOW, if it has ended; OLD was its last snapshot if it is gone; both NULL: it is
 * gone, and nobody saw how. True: that is news.
 */
bool spec_held_settle(struct spec_held_after *after, const struct spec_job *old,
		      const struct spec_job *now);

enum spec_decision { SPEC_DECISION_WAIT, SPEC_DECISION_GO, SPEC_DECISION_NEVER };
/* May H be launched now? NEVER: H's message says why. */
enum spec_decision spec_held_judge(struct spec_held *h, int64_t now);

/* What a snapshot says beside the record. Plain data. */
struct spec_held_news {
	/* Why the last launch was refused, which is tried again; NULL: none was. */
	const char *refusal;
	int64_t from, until; /* from when until when no kxfs ran, in ns; 0: one did */
	int64_t now;
	bool passive; /* this mount launches nothing */
};

/* The app, roles and replicas of the document; none if it can't be read. It is the SHAPE for the function below. */
struct spec_job *spec_held_shape(const char *text, size_t len, const char *home);
/* The snapshot to publish, of a job of that SHAPE. */
struct spec_job *spec_held_job(const struct spec_held *h, const struct spec_job *shape,
			       const struct spec_held_news *news);
