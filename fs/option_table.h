/* SPDX-License-Identifier: MIT */
/*
 * The options as data: flags are rows with a letter, words of the -o list are rows without one. Parsing
 * (options.c, option_list.c) and --help are made from the rows. Private to these three.
 */
#ifndef KXFS_FS_OPTION_TABLE_H
#define KXFS_FS_OPTION_TABLE_H

#include "fs/options.h"

#define OPTION_LONG_ONLY 256 /* above all letters */

#define OPTIONS_MAX 64 /* rows */

struct option_def {
	int letter;	  /* of a flag, or OPTION_LONG_ONLY; 0: a word of the -o list */
	const char *name; /* the word; of a flag its long name, NULL: none */
	const char *arg;  /* what follows, as --help names it; NULL: nothing */
	const char *def;  /* default, as --help shows it; NULL: not worth saying */
	const char *help;
	/* 0, or -EINVAL (-ENOMEM) with *RET_TEXT. */
	int (*set)(struct options *o, const struct option_def *def, const char *value,
		   char **ret_text);
};

/* Ends with a row that has no help. */
extern const struct option_def option_table[];

/* The value of -o: words of the table, generic options of the kernel, run options. */
int option_set_list(struct options *o, const struct option_def *def, const char *list,
		    char **ret_text);

/* Put a copy of VALUE into *S. 0 or -ENOMEM. */
int option_replace(char **s, const char *value);

#endif
