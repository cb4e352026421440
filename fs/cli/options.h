/* SPDX-License-Identifier: MIT */
/*
 * The command line: one table of options from which parsing and --help are made, and against
 * whose --help the man page and the shell completion are checked.
 *
 * The folder: option_table.c is the table, options.c parses by it and prints --help, run_options.c the options of kinds
 * of jobs, source.c the SOURCE; dry_run.c is all of --dry-run, who.c finds user and host, and refuse.c says why there
 * will be no mount. All of it runs on the main thread before the fork.
 */
#pragma once

#include <sys/types.h>

#include "backend/base/diag.h"
#include "spec/app/app.h"

enum options_capture { OPTIONS_CAPTURE_OWN, OPTIONS_CAPTURE_ALL, OPTIONS_CAPTURE_NONE };
enum options_cancel {
	OPTIONS_CANCEL_OWN,
	OPTIONS_CANCEL_MINE,
	OPTIONS_CANCEL_ALL,
	OPTIONS_CANCEL_NONE
};
enum options_action {
	OPTIONS_MOUNT,
	OPTIONS_DRY_RUN,
	OPTIONS_LIST_SOURCES,
	OPTIONS_DOCTOR,
	OPTIONS_CAPTURE,
	OPTIONS_HELP,
	OPTIONS_VERSION
};

/* Plain data. */
struct options {
	enum options_action action;
	char *source;	  /* as given, or what that means */
	char *backend;	  /* "local", "volcano" ...; "" not given */
	char *context;	  /* "" not given */
	char *namespace;  /* "" not given */
	char *mountpoint; /* as given */
	bool foreground;
	bool debug;
	bool read_only;
	bool allow_other;
	enum options_cancel cancel;
	enum diag_level log_level;
	char *kubeconfig; /* a file; "" where kubectl looks */
	char *as;	  /* "" nobody else */
	char *selector;	  /* "" all jobs */
	bool mine;	  /* of these those that this user submitted */
	enum options_capture capture;
	char *state;		 /* "" default */
	char *archive;		 /* a directory, or s3://BUCKET[/PREFIX]; "" none */
	char *endpoint, *region; /* of the latter; "" not given */
	unsigned grace_ms;
	bool linger;	      /* local jobs outlive the mount */
	uint64_t jobs;	      /* local ones that run at once; 0: any number */
	uint64_t gpus;	      /* that they are given; UINT64_MAX: those that the machine has */
	uint64_t spool_limit; /* bytes */
	int64_t history_keep; /* seconds */
	uid_t uid;
	gid_t gid;
	mode_t umask;
	char *dry_run;		/* FILE */
	struct spec_pair *args; /* run options, checked for the backend if that is given */
	size_t n_args;
	char *mount_options; /* generic ones for the kernel, comma-separated; "" none */
};

/*
 * Parse. 0, or -EINVAL with *RET_TEXT (malloc'ed): what is wrong, with a suggestion where an option is near a known
 * one. A mount of a source that this version does not serve is refused here. *RET is to be cleared with options_clear
 * in both cases. With OPTIONS_HELP and OPTIONS_VERSION nothing else of *RET is set.
 */
int options_parse(int argc, char **argv, struct options *ret, char **ret_text);
void options_clear(struct options *o);

/* What --help prints, from the table. */
void options_help(FILE *out);
