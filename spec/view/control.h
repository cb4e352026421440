/* SPDX-License-Identifier: MIT */
/*
 * ctl for the jobs of a kind: which actions its controller would accept now, the request for an
 * action, and the outcome. Pure functions, one struct of them for each kind; backend/kube/control.c
 * sends the request.
 */
#pragma once

#include "spec/job/job.h"

struct spec_control;
struct spec_job_view;
struct spec_kueue_facts;

/* A job that ctl may act on. Plain data. */
struct spec_control_job {
	const struct spec_job_view *view;
	const struct spec_kueue_facts *kueue;
};

/* A requested action. Plain data. */
struct spec_control_asked {
	const struct spec_control_job *job; /* the job's present version on the server */
	const char *namespace;
	/* Version of Kueue's API: "kueue.x-k8s.io/v1beta2"; NULL without Kueue. */
	const char *kueue;
	enum spec_action action;
	const char *argument; /* the name of a queue or class, or NULL */
	/*
	 * The name of an object that requests the action. Each request has a new name, a repeated
	 * request keeps its name.
	 */
	const char *name;
	const struct spec_control *control; /* of the job's kind */
};

/* The request to the server for the action. Plain data. */
struct spec_control_request {
	bool patch; /* a JSON merge patch of the object at PATH; else an object to create */
	const char *resource; /* for messages: "commands.bus.volcano.sh" */
	/*
	 * Text for a user who gets a 403: which permission is missing, and what to do instead; NULL
	 * if the server's own text is enough.
	 */
	const char *forbidden;
	char *path; /* relative to the server, with its query */
	char *body; /* JSON */
	/*
	 * The path of an object that the controller needs for the action, or NULL. If the user may
	 * not read that object, the request is sent anyway.
	 */
	char *needed;
	char *missing; /* text for people if that object does not exist */
};

static inline void spec_control_request_clear(struct spec_control_request *rq)
{
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
	SPEC_CONTROL_OBEYED, /* the job follows the action */
	SPEC_CONTROL_LATE,   /* the job went to a state where the action is ignored */
};

struct spec_control {
	/*
	 * For kinds whose objects are patched: the kind's resource, and the path below spec that
	 * suspends a job.
	 */
	const char *api_version, *plural;
	const char *resource; /* "jobs.batch" */
	const char *suspend;  /* "suspend" */
	/* The path below spec that ends a job, and its value, a number or a word; or NULL. */
	const char *terminate, *terminate_to;
	unsigned known; /* bit set: actions that the kind supports at all */
	/*
	 * Bit set: actions that might be carried out twice if they are requested twice, so that a
	 * request must not be repeated when it may have arrived. The controller ignores a
	 * repetition of any other action.
	 */
	unsigned once;
	/*
	 * Return a bit set of 1u << enum spec_action: actions that the controller would accept now.
	 */
	unsigned (*actions)(const struct spec_control_job *job);
	/*
	 * Return the errno for a refused ACTION: -EOPNOTSUPP if this mount can't request it at all,
	 * else -EINVAL. *RET_WHY is the reason for people, static; NULL if the job's phase is the
	 * reason.
	 */
	int (*refusal)(const struct spec_control_job *job, enum spec_action action,
		       const char **ret_why);
	void (*request)(const struct spec_control_asked *asked, struct spec_control_request *ret);
	enum spec_control_outcome (*outcome)(enum spec_action action,
					     const struct spec_control_mark *before,
					     const struct spec_control_job *now);
};
