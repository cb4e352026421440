/* SPDX-License-Identifier: MIT */
/*
 * The file ctl of a job: which actions the job's controller would accept now, the request for an
 * action, and its outcome. Each kind has one struct of pure functions. backend/kube/control.c sends
 * the requests.
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
	/*
	 * Kueue's API version on the server, "kueue.x-k8s.io/v1beta2"; NULL if the server has none.
	 */
	const char *kueue;
	enum spec_action action;
	const char *argument; /* the name of a queue or class, or NULL */
	/*
	 * The name of a new object, for kinds that are controlled by creating objects. A repeated
	 * request has the same name, so that the server creates only one object.
	 */
	const char *name;
	const struct spec_kind *kind; /* the job's kind */
};

/* The request to the server for the action. Plain data. */
struct spec_control_request {
	/*
	 * True if BODY is a JSON merge patch of the object at PATH. False if BODY is an object to
	 * be created at PATH.
	 */
	bool patch;
	char *resource; /* for messages: "commands.bus.volcano.sh" */
	/*
	 * After a 403: text for the user that names the missing right, and what to do instead. NULL
	 * if the server's own text is enough.
	 */
	const char *forbidden;
	char *path; /* relative to the server, with its query */
	char *body; /* JSON */
	/*
	 * The path of an object without which the action has no effect, or NULL. kxfs reads the
	 * object first. If the user may not read it, kxfs sends the request anyway.
	 */
	char *needed;
	char *missing; /* text for the user if the object NEEDED does not exist */
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
	const char *argument; /* argument of the action, or NULL */
};

enum spec_control_outcome {
	SPEC_CONTROL_OPEN,   /* no outcome is visible yet */
	SPEC_CONTROL_OBEYED, /* the action has had an effect on the job */
	/* the job has reached a state in which the controller ignores the action */
	SPEC_CONTROL_LATE,
};

struct spec_control {
	unsigned known; /* bit set (1u << enum spec_action): all actions that the kind supports */
	/*
	 * Bit set of the actions that the controller would carry out twice if it received two
	 * requests. kxfs does not repeat such a request if the server may have received it.
	 */
	unsigned once;
	/*
	 * Returns a bit set (1u << enum spec_action) of the actions that the controller would
	 * accept now.
	 */
	unsigned (*actions)(const struct spec_control_job *job);
	/*
	 * Returns the errno for an ACTION that is not accepted now: -EOPNOTSUPP if this mount can't
	 * request it at all, otherwise -EINVAL. Sets *RET_WHY to the reason (static), or to NULL if
	 * the job's phase is the reason.
	 */
	int (*refusal)(const struct spec_control_job *job, enum spec_action action,
		       const char **ret_why);
	void (*request)(const struct spec_control_asked *asked, struct spec_control_request *ret);
	enum spec_control_outcome (*outcome)(enum spec_action action,
					     const struct spec_control_mark *before,
					     const struct spec_control_job *now);
};
