/* SPDX-License-Identifier: MIT */
/* The parsed contents of a kind file. Plain data: file.c sets it, read.c uses it. Private. */
#pragma once

#include "spec/kindfile/kindfile.h"
#include "spec/kindfile/path.h"
#include "spec/view/reader.h"

struct texts {
	const char **v;
	size_t n;
};

/*
 * A test of a row: it passes if a value is one of ANY, where "*" is any value and "" a missing one.
 * If PHASE is true, the value is the job's phase, otherwise the one at PATH.
 */
struct kind_test {
	bool phase;
	struct value path;
	struct texts any;
	const struct kind_test *next;
};

/* A row applies if all of its tests pass. */
struct kind_tests {
	/* One of these conditions must be True; empty for no test. */
	struct texts condition;
	/* The condition's reason must be one of these; empty for any reason. */
	struct texts reason;
	const struct kind_test *first;
};

/*
 * A row of "roles". It makes a role from each item of the list or map EACH. If EACH is not set, it
 * makes one role from the whole object.
 */
struct kind_role {
	struct kind_tests tests;
	struct value each;
	struct values name, replicas, times, copies;
	struct value template;
	bool grows; /* as in spec_task_view */
};

/* A row of "pods": its values determine the replica of a pod. */
struct kind_pod {
	struct kind_tests tests;
	struct values first; /* INDEX of the first replica; 0 if not set */
	struct values role, index, copy, copies, attempt, failures, main;
	bool trim; /* remove the controller's name from ROLE */
};

struct kindfile_reading;
struct kind_state;

/* A state that a row of "states" may use. */
struct kind_word {
	const char *shown; /* the default of kind_state.shown */
	/* Sets the reason and message of V, a job in this state; NULL if it has neither. */
	void (*explain)(const struct kindfile_reading *r, const struct kind_state *state,
			struct spec_job_view *v);
	/*
	 * Rows of the kind's table of phases. NAME is the state's name in the kind file. kxfs uses
	 * the first row that applies. An empty row ends the list.
	 */
	struct spec_phase rows[3];
};

/* In the last element, SHOWN is NULL. */
extern const struct kind_word kind_words[];

/* A row of "states". */
struct kind_state {
	struct kind_tests tests;
	const struct kind_word *is;
	/*
	 * The phase that users see. If NULL, they see the condition or the phase that the row
	 * tests. If the row tests neither, they see the default, IS->shown.
	 */
	const char *shown;
	bool firm; /* as in spec_job_view */
	/*
	 * Texts which show that the job's reason and message explain more than its pods. A single
	 * word must be the whole reason. A text with a blank must occur in the message.
	 */
	struct texts exact;
};

/* An object between a job and its pods. */
struct kind_part {
	struct spec_part part;
	/*
	 * Where a pod has the uid of the part's owner. If OWNER_UID and NAMED are both set, kxfs
	 * needs only the pods, so the mount does not watch the part.
	 */
	struct values owner_uid;
	struct values named; /* values in a pod; joined by dashes, they are the part's name */
};

/* Where an object has the numbers of its attempts (kxfs-kind(5), attempts). */
struct kind_attempts {
	struct values failed, restarted, allowed, alone;
};

#define LIST_OF(type)                                                                              \
	struct {                                                                                   \
		type *v;                                                                           \
		size_t n;                                                                          \
	}

/* A kind file. The TEXT of a value is NULL if the file does not set it. */
struct spec_kind_file {
	struct spec_kind kind;
	struct spec_reader reader;
	struct arena arena; /* owns all that the members point to */
	struct texts released_by;
	bool released_at_end;
	LIST_OF(struct kind_part) parts;
	bool from_pods; /* pods determine the roles; ROLES is empty */
	LIST_OF(struct kind_role) roles;
	LIST_OF(struct kind_pod) pods;
	LIST_OF(struct kind_state) states;
	struct value phase, began, finished;
	struct values reason, message, minimum;
	struct kind_attempts attempts;
	struct value suspend, terminate; /* paths below .spec */
	struct values ignored, added;
};

/*
 * Each spec_kind_file gets a copy of this reader as its member READER. The functions compute the
 * address of the spec_kind_file from the address of this member.
 */
extern const struct spec_reader kind_file_reader;
