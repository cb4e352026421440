/* SPDX-License-Identifier: MIT */
/*
 * What ctl does to the jobs of a kind: which actions its controller would obey now, the request that asks for one, and
 * the outcome. Pure functions, one struct of them for each kind; backend/kube/control.c sends the request.
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

/* An action that is asked for. Plain data. */
struct spec_control_asked {
	const struct spec_control_job *job; /* the job as the server has it now */
	const char *namespace;
	/* Version of Kueue's API: "kueue.x-k8s.io/v1beta2"; NULL: there is no Kueue. */
	const char *kueue;
	enum spec_action action;
	const char *argument; /* the name of a queue or class; NULL: the action has none */
	/* The name of an object that asks for the action: new, but the same when the request is repeated. */
	const char *name;
	const struct spec_control *control; /* of the job's kind */
};

/* The request to the server that asks for the action. Plain data. */
struct spec_control_request {
	bool patch; /* a JSON merge patch of what PATH names; else an object to be created */
	const char *resource; /* for messages: "commands.bus.volcano.sh" */
	/* For people: what a user without the right to this lacks, though others have it; NULL: nothing more. */
	const char *forbidden;
	char *path; /* below the server, with its query */
	char *body; /* JSON */
	/*
	 * The path of an object without which the controller can't obey; NULL: none is needed. A user who may not read
	 * that object asks all the same.
	 */
	char *needed;
	char *missing; /* text for people if there is no such object */
};

static inline void spec_control_request_clear(struct spec_control_request *rq)
{
	free(rq->path);
	free(rq->body);
	free(rq->needed);
	free(rq->missing);
}

/* How a job was when an action was asked for. Plain data. */
struct spec_control_mark {
	const char *phase;
	unsigned retries;
	const char *argument; /* argument of the action; NULL: none */
};

enum spec_control_outcome {
	SPEC_CONTROL_OPEN,   /* no outcome shows yet */
	SPEC_CONTROL_OBEYED, /* the job goes where the action leads */
	SPEC_CONTROL_LATE,   /* the job has gone another way, where the action is ignored */
};

struct spec_control {
	/* Of kinds whose objects are patched: their resource, and the path below spec that suspends a job. */
	const char *api_version, *plural;
	const char *resource; /* "jobs.batch" */
	const char *suspend;  /* "suspend" */
	unsigned known;	      /* bit set: actions that the kind has at all */
	/*
	 * Bit set: actions that might be done twice if they were asked for twice, so that a request must not be
	 * repeated when it may have arrived. The controller ignores any other action that it has obeyed.
	 */
	unsigned once;
	/* Bit set of 1u << enum spec_action: actions that the controller would obey now. */
	unsigned (*actions)(const struct spec_control_job *job);
	/*
	 * Why ACTION would not be obeyed: -EINVAL, or -EOPNOTSUPP if this mount can't ask for it at all. *RET_WHY is
	 * for people, static; NULL: because of the phase.
	 */
	int (*refusal)(const struct spec_control_job *job, enum spec_action action,
		       const char **ret_why);
	void (*request)(const struct spec_control_asked *asked, struct spec_control_request *ret);
	enum spec_control_outcome (*outcome)(enum spec_action action,
					     const struct spec_control_mark *before,
					     const struct spec_control_job *now);
};
