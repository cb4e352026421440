/* SPDX-License-Identifier: MIT */
/*
 * The parsed contents of a kind file. Plain data: file.c fills it in, and read.c uses it. Private
 * to spec/kindfile.
 */
#pragma once

#include "spec/kindfile/kindfile.h"
#include "spec/kindfile/path.h"
#include "spec/view/reader.h"

struct texts {
	const char **v;
	size_t n;
};

/*
 * A test of a row. If PHASE is true, it tests the job's phase; otherwise it tests the value at
 * PATH. The test passes if the tested value is one of ANY. In ANY, "*" stands for any value that is
 * not empty, and "" stands for a missing value.
 */
struct kind_test {
	bool phase;
	struct value path;
	struct texts any;
	const struct kind_test *next;
};

/* The tests of a row. The row applies if all of them pass. */
struct kind_tests {
	/* One of these conditions must have the status True. Empty if there is no such test. */
	struct texts condition;
	/* The condition that was found must have one of these reasons. Empty if any is allowed. */
	struct texts reason;
	const struct kind_test *first;
};

/*
 * A row of "roles". It makes one role from each item of a list or from each member of a map. It can
 * also make a single role from the object itself.
 */
struct kind_role {
	struct kind_tests tests;
	/* The list or the map. If its TEXT is NULL, the object itself is the role. */
	struct value each;
	struct values name, replicas, times, copies;
	int replicas_default;
	struct value template;
	bool grows; /* true if a role may have more pods than REPLICAS */
};

/* A row of "pods". Its values identify the replica to which a pod belongs. */
struct kind_pod {
	struct kind_tests tests;
	int first; /* the lowest index of a replica */
	struct values role, index, copy, copies, attempt, failures, main;
	bool trim; /* true if the name of the pod's controller is removed from the role's name */
};

struct kindfile_reading;
struct kind_state;

/* A state that the kind file may use in a row of "states". */
struct kind_word {
	const char *shown; /* the word that users see, unless the file sets another one */
	/*
	 * Sets the reason and the message of the job V, which is in this state. NULL if jobs in
	 * this state have neither.
	 */
	void (*explain)(const struct kindfile_reading *r, const struct kind_state *state,
			struct spec_job_view *v);
	/*
	 * How kxfs treats jobs in this state. The name of each row is the state's name in the kind
	 * file. If the first row does not apply to a job, the second row does. An empty row ends
	 * the list.
	 */
	struct spec_phase rows[3];
};

/* The list ends with an element whose SHOWN is NULL. */
extern const struct kind_word kind_words[];

/* A row of "states". */
struct kind_state {
	struct kind_tests tests;
	const struct kind_word *is;
	/*
	 * The word that users see. If SHOWN is NULL, users see the condition or the phase that the
	 * row tests, or else the word of IS.
	 */
	const char *shown;
	bool firm;
	/*
	 * Reasons that only mean that pods have failed. The pods explain more than such a reason.
	 * The text "true" stands for all reasons.
	 */
	struct texts vague;
	struct texts exact;
	/* a reason is not vague if the message contains one of these, whatever VAGUE contains */
	struct texts exact_message;
};

/* A part: an object between a job and its pods. */
struct kind_part {
	struct spec_part part;
	/*
	 * Where a pod of the part has the uid of the part's owner. If the file sets OWNER_UID and
	 * NAMED, the mount does not watch the part, since its pods already show everything.
	 */
	struct values owner_uid;
	struct values named; /* the values of a pod that, joined by dashes, are the part's name */
};

/* How a kind counts attempts. */
struct kind_attempts {
	struct values failed, restarted, allowed;
	int allowed_default;
	struct value alone, pods;
};

#define LIST_OF(type)                                                                              \
	struct {                                                                                   \
		type *v;                                                                           \
		size_t n;                                                                          \
	}

/* A kind file. If the file does not set a value, the TEXT of the value is NULL. */
struct spec_kind_file {
	struct spec_kind kind;
	struct spec_reader reader;
	struct arena arena; /* owns everything that the other members point to */
	struct texts released_by;
	bool released_at_end;
	LIST_OF(struct kind_part) parts;
	bool from_pods; /* true if the pods determine the roles; ROLES is then empty */
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
 * The initial value of the member READER of a spec_kind_file. The reader's functions find the
 * spec_kind_file by the address of that member.
 */
extern const struct spec_reader kind_file_reader;
