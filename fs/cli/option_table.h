/* SPDX-License-Identifier: MIT */
/*
 * The table of options. A row describes either a flag, such as -f or --dry-run, or a word of the -o
 * list, such as archive=DIR. options.c uses the rows to parse the command line and to print --help.
 * Only option_table.c and options.c include this file.
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
	/* letter of a flag; OPTION_* code of a flag without one; 0 for a word of the -o list */
	int letter;
	/* the word of the -o list, or the long name of the flag; NULL if there is none */
	const char *name;
	/* the name of the option's value in --help; NULL if the option has no value */
	const char *arg;
	const char *def; /* the default that --help prints, or NULL */
	const char *help;
	/*
	 * Set the option to VALUE. Return 0, or -EINVAL with a message in *RET_TEXT, malloc'ed.
	 * NULL in the row of -o itself.
	 */
	int (*set)(struct options *o, const struct option_def *def, const char *value,
		   char **ret_text);
	/* the offset of the member of struct options that SET writes; 0 if SET does not use it */
	size_t field;
};

/* The last row has a NULL help. */
extern const struct option_def option_table[];
