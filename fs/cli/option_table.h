/* SPDX-License-Identifier: MIT */
/*
 * The options as data: flags are rows with a letter, words of the -o list are rows without one. Parsing and --help
 * (options.c) are made from the rows. Private to these two.
 */
#pragma once

#include "fs/cli/options.h"

/* Flags without a letter: above all letters, each another. */
#define OPTION_LONG_ONLY    256
#define OPTION_DRY_RUN	    256
#define OPTION_LIST_SOURCES 257

#define OPTIONS_MAX 64 /* rows */

struct option_def {
	int letter;	  /* of a flag, or one of OPTION_*; 0: a word of the -o list */
	const char *name; /* the word; of a flag its long name, NULL: none */
	const char *arg;  /* what follows, as --help names it; NULL: nothing */
	const char *def;  /* default, as --help shows it; NULL: not worth saying */
	const char *help;
	/* 0, or -EINVAL with *RET_TEXT. NULL: the -o list itself. */
	int (*set)(struct options *o, const struct option_def *def, const char *value,
		   char **ret_text);
	size_t field; /* offset in struct options of what SET writes, where that is one field */
};

/* Ends with a row that has no help. */
extern const struct option_def option_table[];
