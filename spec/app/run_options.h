/* SPDX-License-Identifier: MIT */
/*
 * Run options: the options that TorchX's schedulers take in addition to the AppDef, under their own
 * names. A mount has some ("-o queue=research"), a job may have its own (scheduler_args), which
 * take precedence. The caller's table of options defines their types and checks.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/base/limits.h"

enum spec_option_type {
	SPEC_OPTION_TEXT,
	SPEC_OPTION_NAME, /* text that is the name of an object in the cluster, or "" */
	SPEC_OPTION_INT,
	SPEC_OPTION_BOOL,
	SPEC_OPTION_TIME /* seconds, written with a unit ("4h"), since Slurm counts minutes
			  * without one */
};

struct spec_option {
	const char *name;
	enum spec_option_type type;
	bool required;
	int64_t min, max;    /* bounds of an INT or a TIME */
	const char *help;    /* one line for people */
	const char *refusal; /* why it can't be used, for people; NULL if it can */
};

/*
 * Options that kxfs adds to TorchX's, for the tables of all kinds that have them;
 * docs/deviations.md.
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

/* Return the option NAME of TABLE, which ends with one whose name is NULL; NULL if it has none. */
const struct spec_option *spec_option_find(const struct spec_option *table, const char *name);

/* The values of the options of a table. */
struct spec_options;

/*
 * Create options without values. Errors name WHOSE ("volcano"). Both arguments are borrowed until
 * spec_options_free.
 */
struct spec_options *spec_options_new(const char *whose, const struct spec_option *table);
void spec_options_free(struct spec_options *o);
define_cleanup(spec_options_freep, struct spec_options *, spec_options_free)

/*
 * Set an option from text, as on the command line. An unknown name or a value of the wrong type is
 * an error with the path "-o NAME". Return 0 or the errno of E.
 */
int spec_options_set(struct spec_options *o, const char *name, const char *value,
		     struct spec_errors *e);

/*
 * Check VALUE for the option NAME of TABLE. Return 0, or an errno with an error for people in
 * *RET_TEXT (one line, malloc'ed).
 */
int spec_option_check(const char *whose, const struct spec_option *table, const char *name,
		      const char *value, char **ret_text);

/*
 * Set options from a job's scheduler_args (JSON text of a map, or NULL). A null restores the
 * option's default. "namespace" must equal NAMESPACE. Errors have the path "scheduler_args.NAME".
 */
void spec_options_merge(struct spec_options *o, const char *json, const char *namespace,
			struct spec_errors *e);

/* Add an error for each required option that is not set. */
void spec_options_check(const struct spec_options *o, struct spec_errors *e);

/*
 * Return the value of the option NAME, which must be in the table; NULL or false if it is not set.
 */
const char *spec_options_text(const struct spec_options *o, const char *name);
/* Set *RET to the value of an INT or a TIME option. Return false if it is not set. */
bool spec_options_int(const struct spec_options *o, const char *name, int64_t *ret);
bool spec_options_bool(const struct spec_options *o, const char *name);
