/* SPDX-License-Identifier: MIT */
/* The state of a job, from its controller's phase and from its pods. Private to spec/view. */
#pragma once

#include "spec/view/pod.h"
#include "spec/view/reader.h"

/*
 * The data of a job before its replicas are made: whether they may restart, and so on. Plain data.
 */
struct spec_standing {
	const struct spec_phase *phase; /* NULL if the object has none, or an unknown one */
	bool over;			/* nothing of it restarts, unless that is requested */
	bool left;			/* the job is no longer in the cluster */
	bool ending;			/* the job is over, or about to be */
	bool cancelled;			/* the job ends, or has ended, as CANCELLED */
	bool failed;			/* its pods have failed, in any phase */
	bool pods_late;			/* see spec_view_context */
	bool unseen;			/* it may have pods that are not known */
	int64_t ended; /* when the job ended, for replicas that have no time of their own */
};

/*
 * The state of a job. Plain data; the reason is borrowed from its source, the message is malloc'ed.
 */
struct spec_judgement {
	enum spec_state state;
	bool suspended;
	bool given_up;
	const char *reason;
	char *message;
};

struct spec_standing spec_standing_of(const struct spec_job_view *view,
				      struct spec_placed_pods pods,
				      const struct spec_view_context *ctx);
/* Determine the state of JOB, which has its replicas. */
struct spec_judgement spec_judge(const struct spec_job *job, const struct spec_job_view *view,
				 struct spec_placed_pods pods, const struct spec_standing *standing,
				 const struct spec_view_context *ctx);
