/* SPDX-License-Identifier: MIT */
/* Run options on the command line, "-o queue=research": TorchX's, of the kinds of jobs in clusters. */
#pragma once

#include "fs/cli/options.h"
#include "spec/app/run_options.h"

#define RUN_OPTIONS_MAX 64 /* of all kinds */

/* The option NAME of any kind; NULL: none. */
const struct spec_option *run_option_find(const char *name);

/* Add it to O. VALUE NULL: it stands alone. 0, or -EINVAL with *RET_TEXT. */
int run_option_add(struct options *o, const struct spec_option *option, const char *value,
		   char **ret_text);

/*
 * Are O's run options of the right types, and those of its backend, if that is a kind of cluster job? On
 * local: they are for dry runs of documents of any kind.
 */
int run_options_check(const struct options *o, char **ret_text);

/* Names of all, at most MAX of them; returns how many. */
size_t run_option_names(const char **ret, size_t max);

/* Their part of --help. */
void run_options_help(FILE *out);
