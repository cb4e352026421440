/* SPDX-License-Identifier: MIT */
/*
 * When each phase of a job began: the newest ones, oldest first. Times are ns since 1970 and never
 * decrease.
 */
#ifndef KXFS_SPEC_TRANSITION_H
#define KXFS_SPEC_TRANSITION_H

#include "spec/base.h"

#define SPEC_MAX_TRANSITIONS 64

/* TorchX's AppState, without UNSUBMITTED. */
enum spec_state {
	SPEC_SUBMITTED,
	SPEC_PENDING,
	SPEC_RUNNING,
	SPEC_SUCCEEDED,
	SPEC_FAILED,
	SPEC_CANCELLED,
	SPEC_UNKNOWN,
	SPEC_N_STATES
};

struct json_object;
struct spec_tree;

struct spec_transition {
	int64_t time;
	enum spec_state state;
	char *phase; /* the backend's own word; "" it has said none yet */
};

struct spec_transitions {
	struct spec_transition *v;
	size_t n;
};

/*
 * From TIME on a job is in STATE and PHASE; nothing new if it was so already. Beyond SPEC_MAX_TRANSITIONS
 * the oldest is forgotten. 0 or -ENOMEM.
 */
int must_check spec_transitions_add(struct spec_transitions *t, enum spec_state state,
				    const char *phase, int64_t time);
/* TO is empty. 0 or -ENOMEM. */
int must_check spec_transitions_copy(struct spec_transitions *to,
				     const struct spec_transitions *from);
void spec_transitions_clear(struct spec_transitions *t);

/* As the member "transitions" of O, for the state directory. */
void spec_transitions_write(struct spec_tree *tree, struct json_object *o,
			    const struct spec_transitions *t);
/* And back; O without one is no error. 0, -EINVAL, -ENOMEM. */
int spec_transitions_read(struct json_object *o, struct spec_transitions *t);

#endif
