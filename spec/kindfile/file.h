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

/* A test of a row: the value of WHAT must be one of ANY. */
struct kind_test {
	enum { TEST_CONDITION, TEST_PHASE, TEST_REASON, TEST_VALUE } what;
	struct value value; /* of TEST_VALUE */
	struct texts any;   /* "*": it exists and is not empty; "": it does not exist */
};

/* The tests of a row; the row applies if all are met. */
struct kind_tests {
	struct kind_test *v;
	size_t n;
};

/* A row of "roles": a role for each item of a list or a map; or for the object itself. */
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
	bool trim; /* the role is the rest of the name of the pod's controller */
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

/* A state: its name in a file, the name under which it is shown by default, and the rows of its phase. */
extern const struct kind_word {
	const char *word, *shown;
	/* The second row is for jobs to which the first one does not apply; it may be empty. */
	struct spec_phase rows[2];
} kind_words[N_IS];

/* A row of "states". */
struct kind_state {
	struct kind_tests tests;
	enum kind_is is;
	const char *
		shown; /* the name that is shown; NULL: that of the condition, of the phase, or the default */
	bool firm;
	struct texts vague; /* vague reasons; "true": all of them */
	struct texts exact;
	struct texts exact_message; /* parts of messages */
};

/* An object between pods and job. */
struct kind_part {
	const char *api_version, *group, *kind, *plural;
	/*
	 * If these are given, the part is not watched: the pods themselves have the uid of its
	 * owner, and
	 */
	struct values owner_uid;
	struct values named; /* the part's name, which is these values joined by dashes */
};

struct kind_attempts {
	enum { COUNT_NONE, COUNT_FAILED, COUNT_STARTED, COUNT_RESTARTED, N_COUNTS } counts;
	struct value count[N_COUNTS];	   /* TEXT is NULL: not given */
	struct value allowed, alone, pods; /* TEXT is NULL: not given */
	int allowed_default;
};

struct spec_kind_file {
	struct spec_kind kind;
	struct spec_reader reader;
	struct spec_control control;
	struct arena arena; /* owns everything that the other members point to */
	const char *group;
	struct texts released_by;
	bool released_at_end;
	struct kind_part *parts;
	size_t n_parts;
	bool from_pods; /* the pods determine the roles; otherwise: */
	struct kind_role *roles;
	size_t n_roles;
	struct kind_pod *placed;
	size_t n_placed;
	struct value phase, began, finished; /* TEXT is NULL: not given */
	struct kind_state *states;
	size_t n_states;
	struct values reason, message, minimum;
	struct kind_attempts attempts;
	struct value suspend, terminate; /* paths below .spec; TEXT is NULL: not given */
	const char *terminate_to;
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
