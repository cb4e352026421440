/* SPDX-License-Identifier: MIT */
/*
 * What ctl does to the jobs of a kind: which actions its controller would obey now, the request that
 * asks for one, and what came of it. Pure functions, a struct of them a kind; the request is sent by
 * backend/kube/control.c.
 */
#pragma once

#include "spec/job/job.h"

struct spec_job_view;
struct spec_kueue_facts;

/* A job that ctl may act on. Plain data. */
struct spec_control_job {
	const struct spec_job_view *view;
	const struct spec_kueue_facts *kueue;
};

/* An action that is asked for. Plain data. */
struct spec_control_asked {
	const struct spec_control_job *job; /* as the server has it now */
	const char *namespace;
	const char *kueue; /* version of its API: "kueue.x-k8s.io/v1beta2"; NULL: there is none */
	enum spec_action action;
	const char *argument; /* the name of a queue or class; NULL: the action has none */
	/* Of an object that asks for it: new, but the same when the request is repeated. */
	const char *name;
};

/* The request to the server that asks for it. Plain data. */
struct spec_control_request {
	bool patch; /* a JSON merge patch of what PATH names; else an object to be created */
	const char *resource; /* for messages: "commands.bus.volcano.sh" */
	/* For people: what a user who has no right to it lacks, though others have it; NULL: no more than that. */
	const char *forbidden;
	char *path; /* below the server, with its query */
	char *body; /* JSON */
	/*
	 * The path of an object without which the controller can't obey; NULL: none is needed. Who may not read that
	 * asks all the same.
	 */
	char *needed;
	char *missing; /* for people, where there is none */
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
	const char *argument; /* of the action; NULL: none */
};

enum spec_control_outcome {
	SPEC_CONTROL_OPEN,   /* nothing has come of it yet */
	SPEC_CONTROL_OBEYED, /* the job goes where the action leads */
	SPEC_CONTROL_LATE,   /* the job has gone another way, where the action is ignored */
};

struct spec_control {
	unsigned known; /* bit set: actions that the kind has at all */
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
