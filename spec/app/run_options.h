/* SPDX-License-Identifier: MIT */
/*
 * Run options: settings of a job besides its AppDef. Most of them have the names of the options of
 * TorchX's schedulers. A mount may set some ("-o queue=research"), and a job may set some in
 * scheduler_args. The job's value takes precedence. The caller's table of options has their types
 * and limits.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/base/limits.h"

enum spec_option_type {
	SPEC_OPTION_TEXT,
	SPEC_OPTION_NAME, /* text: the name of an object in the cluster, or "" */
	SPEC_OPTION_INT,
	SPEC_OPTION_BOOL,
	/*
	 * Seconds. The text must have a unit ("4h"), since users of Slurm would expect a number
	 * without a unit to mean minutes.
	 */
	SPEC_OPTION_TIME
};

struct spec_option {
	const char *name;
	enum spec_option_type type;
	bool required;
	int64_t min, max; /* limits of an INT or a TIME */
	const char *help; /* one line for the user */
	/* text for the user that explains why the option can't be used; NULL if it can be used */
	const char *refusal;
};

/*
 * Rows for tables of options. A kind that supports one of these options includes its row. TorchX
 * does not have these options (docs/deviations.md).
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

/* Return the option NAME of TABLE, or NULL. TABLE ends with an option that has no name. */
const struct spec_option *spec_option_find(const struct spec_option *table, const char *name);

/* The values of the options of a table. */
struct spec_options;

/*
 * Create options without values. Error messages use WHOSE ("volcano") as the name of the scheduler.
 * Both arguments are borrowed until spec_options_free.
 */
struct spec_options *spec_options_new(const char *whose, const struct spec_option *table);
void spec_options_free(struct spec_options *o);
define_cleanup(spec_options_freep, struct spec_options *, spec_options_free)

/*
 * Set an option from text, as on the command line. If the name is unknown or the value has the
 * wrong type, add an error with the path "-o NAME". Return 0 or the errno of E.
 */
int spec_options_set(struct spec_options *o, const char *name, const char *value,
		     struct spec_errors *e);

/*
 * Check whether VALUE is valid for the option NAME of TABLE. Return 0 if it is. Otherwise return an
 * errno, and set *RET_TEXT to the error for the user (one line, malloc'ed).
 */
int spec_option_check(const char *whose, const struct spec_option *table, const char *name,
		      const char *value, char **ret_text);

/*
 * Set options from a job's scheduler_args. JSON is the text of a map, or NULL. A null in the map
 * unsets an option, even one that the mount has set. "namespace" must equal NAMESPACE. Errors have
 * the path "scheduler_args.NAME".
 */
void spec_options_merge(struct spec_options *o, const char *json, const char *namespace,
			struct spec_errors *e);

/* Add an error for each required option that is not set. */
void spec_options_check(const struct spec_options *o, struct spec_errors *e);

/*
 * Return the value of the option NAME, which must be in the table. If the option is not set,
 * spec_options_text returns NULL, and spec_options_bool returns false.
 */
const char *spec_options_text(const struct spec_options *o, const char *name);
/* Set *RET to the value of an INT or a TIME option. Return false if it is not set. */
bool spec_options_int(const struct spec_options *o, const char *name, int64_t *ret);
bool spec_options_bool(const struct spec_options *o, const char *name);
