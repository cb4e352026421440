/* SPDX-License-Identifier: MIT */
/*
 * The table of options: flags, such as -f or --dry-run, and words of the -o list, such as
 * archive=DIR. It defines both the parser of the command line and the text of --help (options.c).
 */
#pragma once

#include "fs/cli/options.h"

/* Codes for long-only options: unique, and above CHAR_MAX. */
#define OPTION_LONG_ONLY    256
#define OPTION_DRY_RUN	    256
#define OPTION_LIST_SOURCES 257
#define OPTION_CHECK_KIND   258
#define OPTION_RBAC	    259

#define OPTIONS_MAX 64 /* the largest number of rows */

struct option_def {
	/* a flag's letter or OPTION_* code; 0 for a word of the -o list */
	int letter;
	/* the word, or the long name of the flag; NULL if there is none */
	const char *name;
	/* the value's name in --help; NULL if there is no value */
	const char *arg;
	const char *def; /* the default, or NULL */
	const char *help;
	/* returns 0, or -EINVAL with a message, malloc'ed; NULL in the row of -o itself */
	int (*set)(struct options *o, const struct option_def *def, const char *value,
		   char **ret_text);
	/* offset of the member of struct options that SET writes; some setters use it otherwise */
	size_t field;
};

/* The last row has a NULL help. */
extern const struct option_def option_table[];
