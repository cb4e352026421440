/* SPDX-License-Identifier: MIT */
/*
 * The options as data: rows with a letter are flags, rows without one are words of the -o list.
 * options.c parses and prints --help by these rows. Only option_table.c and options.c include this
 * file.
 */
#pragma once

#include "fs/cli/options.h"

/* Codes for long-only options: unique, and above CHAR_MAX. */
#define OPTION_LONG_ONLY    256
#define OPTION_DRY_RUN	    256
#define OPTION_LIST_SOURCES 257
#define OPTION_CHECK_KIND   258
#define OPTION_RBAC	    259

#define OPTIONS_MAX 64 /* the most rows */

struct option_def {
	/* The letter of a flag, or its OPTION_* code; 0 if the row is a word of the -o list. */
	int letter;
	const char *name; /* the word; for a flag its long name, or NULL */
	const char *arg;  /* name of its value in --help, or NULL */
	const char *def;  /* its default in --help, or NULL to print none */
	const char *help;
	/*
	 * Set the option. Return 0, or -EINVAL with *RET_TEXT (malloc'ed). NULL in the row of -o
	 * itself.
	 */
	int (*set)(struct options *o, const struct option_def *def, const char *value,
		   char **ret_text);
	/* Offset in struct options of the field that SET writes, if that is one field. */
	size_t field;
};

/* Ends with a row that has no help. */
extern const struct option_def option_table[];
