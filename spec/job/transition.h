/* SPDX-License-Identifier: MIT */
/*
 * States, and when each phase of a job began: the newest phases, oldest first. Times are ns since 1970 and never
 * decrease.
 */
#pragma once

#include "spec/base/base.h"

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

/* "RUNNING", ... by enum spec_state; ends with NULL. */
extern const char *const spec_state_words[];
/* "RUNNING" */
const char *spec_state_name(enum spec_state state);
/* True for SUCCEEDED, FAILED or CANCELLED, which end a wait. */
bool spec_state_is_final(enum spec_state state);

struct json_object;
struct spec_value;

/* The beginning of a phase. Plain data. */
struct spec_transition {
	int64_t time;
	enum spec_state state;
	char *phase; /* the backend's own word; "" if it has none yet */
};

/* The transitions of a job. All zeros is an empty list. */
struct spec_transitions {
	struct spec_transition *v;
	size_t n;
};

/*
 * Record that the job is in STATE and PHASE from TIME on, unless it was already. Beyond
 * SPEC_MAX_TRANSITIONS the oldest one is dropped.
 */
void spec_transitions_add(struct spec_transitions *t, enum spec_state state, const char *phase,
			  int64_t time);
/* Copy FROM to TO, which is empty. */
void spec_transitions_copy(struct spec_transitions *to, const struct spec_transitions *from);
void spec_transitions_clear(struct spec_transitions *t);

/* Write T as the member "transitions" of O, for the state directory. */
void spec_transitions_write(struct json_object *o, const struct spec_transitions *t);
/*
 * Read the member that spec_transitions_write writes; an O without one is not an error. Return 0 or
 * -EINVAL.
 */
int spec_transitions_read(const struct spec_value *o, struct spec_transitions *t);
