/* SPDX-License-Identifier: MIT */
/* Run options on the command line, "-o queue=research": TorchX's options for the kinds of jobs in clusters. */
#pragma once

#include "fs/cli/options.h"
#include "spec/app/run_options.h"

#define RUN_OPTIONS_MAX 64 /* the largest number of options of all kinds */

/* Return the option NAME of any kind, or NULL. */
const struct spec_option *run_option_find(const char *name);

/*
 * Add OPTION to O. VALUE NULL: the option was given without a value. Return 0, or -EINVAL with
 * *RET_TEXT.
 */
int run_option_add(struct options *o, const struct spec_option *option, const char *value,
		   char **ret_text);

/*
 * Check that O's run options have the right types, and belong to O's backend, if that is a kind of
 * jobs in clusters. On local: they are for dry runs of documents of any kind.
 */
int run_options_check(const struct options *o, char **ret_text);

/* Set RET to the names of all run options, at most MAX; return their number. */
size_t run_option_names(const struct spec_kinds *kinds, const char **ret, size_t max);

/* Print the part of --help about them. */
void run_options_help(const struct spec_kinds *kinds, FILE *out);
