/* SPDX-License-Identifier: MIT */
/* What a kind file holds. Plain data, which file.c makes and read.c goes by. Private to spec/kindfile. */
#pragma once

#include "spec/kindfile/kindfile.h"
#include "spec/kindfile/path.h"
#include "spec/view/control.h"
#include "spec/view/reader.h"

struct texts {
	const char **v;
	size_t n;
};

/* What has to be so for a row to fit: the value of WHAT is one of ANY. */
struct kind_test {
	enum { TEST_CONDITION, TEST_PHASE, TEST_REASON, TEST_VALUE } what;
	struct value value; /* of TEST_VALUE */
	struct texts any;   /* "*": it is there and not empty; "": it is not there */
};

/* What has to be so for a row, all of it. */
struct kind_tests {
	struct kind_test *v;
	size_t n;
};

/* A row of "roles": a role for each item of a list or a map; or for the object itself. */
struct kind_role {
	struct kind_tests tests;
	struct value each; /* TEXT is NULL: the object itself */
	struct values name, replicas, times, copies;
	int replicas_default;
	struct value template;
	bool grows; /* its pods may be more than its replicas */
};

/* A row of "pods": where a pod says to which replica of its job it belongs. */
struct kind_pod {
	struct kind_tests tests;
	int first; /* the lowest index */
	struct values role, index, copy, copies, attempt, failures, main;
	bool trim; /* the role is what follows the name of the pod's controller */
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

/* The word of a state in a file, how it is shown without a name of its own, and the rows of its phase. */
extern const struct kind_word {
	const char *word, *shown;
	/* The second row is for a job that the first one does not fit; it may be empty. */
	struct spec_phase rows[2];
} kind_words[N_IS];

/* A row of "states". */
struct kind_state {
	struct kind_tests tests;
	enum kind_is is;
	const char *shown; /* NULL: the condition, the phase, or what it is */
	bool firm;
	struct texts vague; /* reasons; "true": all */
	struct texts exact;
	struct texts exact_message; /* parts of messages */
};

/* An object between pods and job. */
struct kind_part {
	const char *api_version, *group, *kind, *plural;
	/* If these are given, it is not watched: the pods themselves have the uid of its owner, and */
	struct values owner_uid;
	struct values named; /* its name is these, joined by dashes */
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
	struct arena arena; /* all that the others point to */
	const char *group;
	struct texts released_by;
	bool released_at_end;
	struct kind_part *parts;
	size_t n_parts;
	bool from_pods; /* the pods decide the roles; otherwise: */
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

/* The functions of struct spec_reader for such kinds. */
size_t kind_file_job(const struct spec_reader *reader, const struct spec_value *object,
		     struct spec_job_view *v, struct spec_task_source **ret_tasks);
void kind_file_status(const struct spec_reader *reader, const struct spec_value *object,
		      struct spec_job_view *v);
void kind_file_pod(const struct spec_reader *reader, const struct spec_value *object,
		   struct spec_pod_view *v);
const char *kind_file_owner(const struct spec_reader *reader, const struct spec_value *pod,
			    bool *ret_part);
