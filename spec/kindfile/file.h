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
 * A test of a row: a value must be one of ANY. "*" in ANY: the value exists and is not empty; "":
 * it does not exist.
 */
struct kind_test {
	enum { TEST_CONDITION, TEST_PHASE, TEST_REASON, TEST_VALUE } what;
	struct value value; /* of TEST_VALUE */
	struct texts any;
};

/* The tests of a row; the row applies if all are met. */
struct kind_tests {
	struct texts condition; /* one of these is True; empty: any */
	struct kind_test *v;	/* all others */
	size_t n;
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

enum kind_is {
	IS_PENDING,
	IS_RUNNING,
	IS_BETWEEN,
	IS_ENDING,
	IS_SUSPENDING,
	IS_SUSPENDED,
	IS_PAUSED,
	IS_SUCCEEDED,
	IS_FAILED,
	IS_CANCELLED,
	N_IS
};

/*
 * A state: the word that users see unless the file gives another, and its rows. A row's name is the
 * state's name in the file.
 */
extern const struct kind_word {
	const char *shown;
	/* The second row is for jobs to which the first row does not apply. An empty row ends the list. */
	struct spec_phase rows[3];
} kind_words[N_IS];

/* A row of "states". */
struct kind_state {
	struct kind_tests tests;
	enum kind_is is;
	const char *shown; /* the word for users; NULL: the condition, phase or default word */
	bool firm;
	struct texts vague; /* vague reasons; "true": all of them */
	struct texts exact;
	struct texts exact_message; /* parts of messages with which the reason is exact */
	struct spec_phase rows[3];
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

/* How a kind counts attempts. If the TEXT of a value is NULL, the file does not give the value. */
struct kind_attempts {
	struct value failed, restarted, allowed, alone, pods;
	int allowed_default;
};

struct spec_kind_file {
	struct spec_kind kind;
	struct spec_reader reader;
	struct spec_control control;
	struct arena arena; /* owns everything that the other members point to */
	struct spec_part object;
	struct texts released_by;
	bool released_at_end;
	struct {
		struct kind_part *v;
		size_t n;
	} parts;
	bool from_pods; /* the pods determine the roles; otherwise: */
	struct {
		struct kind_role *v;
		size_t n;
	} roles;
	struct {
		struct kind_pod *v;
		size_t n;
	} pods;
	struct {
		struct kind_state *v;
		size_t n;
	} states;
	struct value phase, began, finished;
	struct values reason, message, minimum;
	struct kind_attempts attempts;
	struct value suspend, terminate; /* paths below .spec */
	struct values ignored, added;
};

/* The functions of struct spec_reader for kinds that a file describes. */
size_t kind_file_job(const struct spec_reader *reader, const struct spec_value *object,
		     struct spec_job_view *v, struct spec_task_source **ret_tasks);
void kind_file_status(const struct spec_reader *reader, const struct spec_value *object,
		      struct spec_job_view *v);
void kind_file_pod(const struct spec_reader *reader, const struct spec_value *object,
		   struct spec_pod_view *v);
const char *kind_file_owner(const struct spec_reader *reader, const struct spec_value *pod,
			    bool *ret_part);
