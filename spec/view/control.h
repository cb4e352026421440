/* SPDX-License-Identifier: MIT */
/*
 * The actions of a job's file ctl: which ones the job's controller accepts now, the request to the
 * server, and its outcome. Each kind has one struct spec_control of pure functions.
 */
#pragma once

#include "spec/job/job.h"

struct spec_job_view;
struct spec_kind; /* spec/pods/kind.h */
struct spec_kueue_facts;

/* A job that ctl may act on. Plain data. */
struct spec_control_job {
	const struct spec_job_view *view;
	const struct spec_kueue_facts *kueue;
};

/* A requested action. Plain data. */
struct spec_control_asked {
	const struct spec_control_job *job; /* the job's current version on the server */
	const char *namespace;
	const char *kueue; /* API version of Kueue, or NULL if not served */
	enum spec_action action;
	const char *argument; /* the name of a queue or class, or NULL */
	/*
	 * The name of the object to create, for kinds that create one. A retry uses the same name,
	 * so that the server creates only one object.
	 */
	const char *name;
	const struct spec_kind *kind;
};

/* The request to the server. Plain data. */
struct spec_control_request {
	/*
	 * True if BODY is a JSON merge patch of the object at PATH. Otherwise, BODY is a new
	 * object, to be created at PATH.
	 */
	bool patch;
	char *resource; /* for messages: "commands.bus.volcano.sh" */
	/* The message to the user after a 403; NULL to use the server's text. */
	const char *forbidden;
	char *path; /* relative to the server, with the query */
	char *body; /* JSON */
	/*
	 * The path of an object that must exist for the action to have an effect, or NULL. kxfs
	 * reads the object first. If the user may not read it, kxfs sends the request anyway.
	 */
	char *needed;
	char *missing; /* message to the user if the object NEEDED does not exist */
};

static inline void spec_control_request_clear(struct spec_control_request *rq)
{
	free(rq->resource);
	free(rq->path);
	free(rq->body);
	free(rq->needed);
	free(rq->missing);
}

/* The job's state when an action was requested. Plain data. */
struct spec_control_mark {
	const char *phase;
	unsigned retries;
	const char *argument; /* the action's argument, or NULL */
};

enum spec_control_outcome {
	SPEC_CONTROL_OPEN,   /* no outcome is visible yet */
	SPEC_CONTROL_OBEYED, /* the action has taken effect */
	SPEC_CONTROL_LATE,   /* the controller will ignore the action */
};

struct spec_control {
	unsigned known; /* bit set (1u << enum spec_action): the actions of this kind */
	/*
	 * The actions that the controller would carry out twice if it received the request twice.
	 * kxfs does not retry such a request if the server may have received it.
	 */
	unsigned once;
	/*
	 * ACTION is one of KNOWN. Returns 0 if the controller accepts ACTION now, -EOPNOTSUPP if
	 * this mount can't request ACTION, or -EINVAL if there is another reason against it. Sets
	 * *RET_WHY to the reason (static), or to NULL if the reason is the job's phase.
	 */
	int (*check)(const struct spec_control_job *job, enum spec_action action,
		     const char **ret_why);
	void (*request)(const struct spec_control_asked *asked, struct spec_control_request *ret);
	enum spec_control_outcome (*outcome)(enum spec_action action,
					     const struct spec_control_mark *before,
					     const struct spec_control_job *now);
};

/* Return the bit set of actions that the controller accepts now. */
static inline unsigned spec_control_actions(const struct spec_control *control,
					    const struct spec_control_job *job)
{
	unsigned ret = 0;
	const char *why;

	for (unsigned i = 0; i < SPEC_N_ACTIONS; i++)
		if (control->known & 1u << i && control->check(job, (enum spec_action)i, &why) == 0)
			ret |= 1u << i;
	return ret;
}
