/* SPDX-License-Identifier: MIT */
/*
 * What ctl does to the jobs of a kind: which actions its controller would obey now, the request that
 * asks for one, and what came of it. Pure functions, a struct of them a kind; the request is sent by
 * backend/kube_control.c.
 */
#ifndef KXFS_SPEC_CONTROL_H
#define KXFS_SPEC_CONTROL_H

#include "spec/job.h"

struct spec_job_view;

struct spec_control_asked {
	const struct spec_job_view *job; /* as the server has it now */
	const char *namespace;
	enum spec_action action;
	const char
		*name; /* of an object that asks for it: new, and the same if it is asked again */
};

struct spec_control_request {
	bool patch; /* a JSON merge patch of what PATH names; else an object to be created */
	const char *resource; /* for messages: "commands.bus.volcano.sh" */
	char *path;	      /* below the server, with its query */
	char *body;	      /* JSON */
};

static inline void spec_control_request_clear(struct spec_control_request *rq)
{
	free(rq->path);
	free(rq->body);
}

/* Where a job stood when an action was asked for. */
struct spec_control_mark {
	const char *phase;
	unsigned retries;
};

enum spec_control_outcome {
	SPEC_CONTROL_OPEN,   /* nothing has come of it yet */
	SPEC_CONTROL_OBEYED, /* the job goes where the action leads */
	SPEC_CONTROL_LATE,   /* the job has gone another way, where the action is ignored */
};

struct spec_control {
	unsigned known; /* bit set: there is a way to ask for it; not so for all others */
	/*
	 * Bit set: asked for twice, it may be done twice, so that a request whose fate is not known is not sent
	 * again. What else is asked for where it has been obeyed already is ignored.
	 */
	unsigned once;
	/* Bit set of 1u << enum spec_action: what would be obeyed. */
	unsigned (*actions)(const struct spec_job_view *job);
	/* For people: why ACTION, which is none of them, is not; NULL: because of the phase. Static. */
	const char *(*refusal)(const struct spec_job_view *job, enum spec_action action);
	/* 0 or -ENOMEM. */
	int (*request)(const struct spec_control_asked *asked, struct spec_control_request *ret);
	enum spec_control_outcome (*outcome)(enum spec_action action,
					     const struct spec_control_mark *before,
					     const struct spec_job_view *now);
};

extern const struct spec_control spec_volcano_control;
extern const struct spec_control spec_appwrapper_control;

#endif
