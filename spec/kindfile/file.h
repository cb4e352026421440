/* SPDX-License-Identifier: MIT */
/*
 * The contents of a kind file. Plain data: file.c makes it, and read.c uses it. Private to
 * spec/kindfile.
 */
#pragma once

#include "spec/kindfile/kindfile.h"
#include "spec/kindfile/path.h"
#include "spec/view/control.h"
#include "spec/view/reader.h"

struct texts {
	const char **v;
	size_t n;
};

/*
 * A test of a row: the PHASE of the job, or the value at PATH, must be one of ANY. "*" in ANY: the
 * value exists and is not empty; "": it does not exist.
 */
struct kind_test {
	bool phase;
	struct value path;
	struct texts any;
	const struct kind_test *next;
};

/* The tests of a row; the row applies if all are met. */
struct kind_tests {
	struct texts condition; /* one of these is True; empty: any */
	struct texts reason;	/* of that condition; empty: any */
	const struct kind_test *first;
};

/* A row of "roles": it makes a role of each item of a list or a map, or of the object itself. */
struct kind_role {
	struct kind_tests tests;
	struct value each; /* TEXT is NULL: the object itself is the role */
	struct values name, replicas, times, copies;
	int replicas_default;
	struct value template;
	bool grows; /* it may have more pods than replicas */
};

/* A row of "pods": which values of a pod name its replica. */
struct kind_pod {
	struct kind_tests tests;
	int first; /* the lowest index */
	struct values role, index, copy, copies, attempt, failures, main;
	bool trim; /* remove the name of the pod's controller from the role */
};

struct kindfile_reading;
struct kind_state;

/* A state that a row of "states" may have. */
struct kind_word {
	const char *shown; /* the word that users see, unless the file gives another */
	/* Set the reason and the message of V, a job in this state; NULL if it has none. */
	void (*explain)(const struct kindfile_reading *r, const struct kind_state *state,
			struct spec_job_view *v);
	/*
	 * A row's name is the state's name in the file. The second row is for jobs to which the
	 * first row does not apply. An empty row ends the list.
	 */
	struct spec_phase rows[3];
};

/* Ends with one that is not SHOWN. */
extern const struct kind_word kind_words[];

/* A row of "states". */
struct kind_state {
	struct kind_tests tests;
	const struct kind_word *is;
	const char *shown; /* the word for users; NULL: the condition, phase or default word */
	bool firm;
	struct texts vague; /* vague reasons; "true": all of them */
	struct texts exact;
	struct texts exact_message; /* parts of messages with which the reason is exact */
};

/* An object between pods and job. */
struct kind_part {
	struct spec_part part;
	/*
	 * Values of a pod that are the uid of the part's owner. If a file gives OWNER_UID and
	 * NAMED, the part is not watched, since its pods show everything.
	 */
	struct values owner_uid;
	struct values named; /* Values of a pod that make the part's name, joined by dashes. */
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

/* If the TEXT of a value is NULL, the file does not give the value. */
struct spec_kind_file {
	struct spec_kind kind;
	struct spec_reader reader;
	struct spec_control control;
	struct arena arena; /* owns everything that the other members point to */
	struct texts released_by;
	bool released_at_end;
	LIST_OF(struct kind_part) parts;
	bool from_pods; /* the pods determine the roles; otherwise: */
	LIST_OF(struct kind_role) roles;
	LIST_OF(struct kind_pod) pods;
	LIST_OF(struct kind_state) states;
	struct value phase, began, finished;
	struct values reason, message, minimum;
	struct kind_attempts attempts;
	struct value suspend, terminate; /* paths below .spec */
	struct values ignored, added;
};

/* The reader of a kind that a file describes, a member of struct spec_kind_file. */
extern const struct spec_reader kind_file_reader;
