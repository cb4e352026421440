/* SPDX-License-Identifier: MIT */
/*
 * Run options: settings of a job that its AppDef does not have as fields. Most have the same names
 * as options of TorchX's schedulers. A mount may set options ("-o queue=research"). A job may set
 * options in scheduler_args; these take precedence. The caller's table has the types and limits.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/base/limits.h"

enum spec_option_type {
	SPEC_OPTION_TEXT,
	SPEC_OPTION_NAME, /* name of an object in the cluster, or "" */
	SPEC_OPTION_INT,
	SPEC_OPTION_BOOL,
	/*
	 * Stored in seconds. The text must have a unit ("4h"), because users of Slurm would expect
	 * a number without a unit to be minutes.
	 */
	SPEC_OPTION_TIME
};

struct spec_option {
	const char *name;
	enum spec_option_type type;
	bool required;
	int64_t min, max;    /* of an INT or a TIME */
	const char *help;    /* one line for the user */
	const char *refusal; /* message for the user if the option can't be used; else NULL */
};

/*
 * Options of all kinds of jobs, as rows of a table. TorchX lacks these options
 * (docs/deviations.md).
 */
#define SPEC_TIME_LIMIT_OPTION                                                                     \
	{                                                                                          \
		.name = "time_limit", .type = SPEC_OPTION_TIME, .min = 1, .max = SPEC_MAX_LIMIT,   \
		.help = "how long an attempt of a replica may run"                                 \
	}
#define SPEC_TTL_OPTION                                                                            \
	{                                                                                          \
		.name = "ttl", .type = SPEC_OPTION_TIME, .max = SPEC_MAX_LIMIT,                    \
		.help = "how long after its end a job is removed"                                  \
	}

/* Return the option NAME; NULL if TABLE lacks it. The last row of TABLE has no name. */
const struct spec_option *spec_option_find(const struct spec_option *table, const char *name);

struct spec_options;

/*
 * Create options without values. Both arguments are borrowed. Error messages use WHOSE as the
 * scheduler's name.
 */
struct spec_options *spec_options_new(const char *whose, const struct spec_option *table);
void spec_options_free(struct spec_options *o);
define_cleanup(spec_options_freep, struct spec_options *, spec_options_free)

/* Set an option from text. Errors have the path "-o NAME". Return 0 or the errno of E. */
int spec_options_set(struct spec_options *o, const char *name, const char *value,
		     struct spec_errors *e);

/*
 * Check VALUE for the option NAME. Return 0. On error, return a negative errno, and set *RET_TEXT
 * to a message for the user (malloc'ed).
 */
int spec_option_check(const char *whose, const struct spec_option *table, const char *name,
		      const char *value, char **ret_text);

/*
 * Set options from JSON, the text of a job's scheduler_args; NULL if the job has none. A null
 * unsets an option, even if the mount has set it. The member "namespace" must be NAMESPACE, "" or
 * null. Errors have the path "scheduler_args.NAME".
 */
void spec_options_merge(struct spec_options *o, const char *json, const char *namespace,
			struct spec_errors *e);

void spec_options_check(const struct spec_options *o, struct spec_errors *e);

/* Return the value of a TEXT or a NAME option; NULL if it is not set. NAME is in the table. */
const char *spec_options_text(const struct spec_options *o, const char *name);
/* Set *RET to the value of an INT or a TIME option. Return false if it is not set. */
bool spec_options_int(const struct spec_options *o, const char *name, int64_t *ret);
/* Return the value of a BOOL option; false if it is not set. */
bool spec_options_bool(const struct spec_options *o, const char *name);
