/* SPDX-License-Identifier: MIT */
/*
 * The command line: one table of options for parsing and --help; tests check the man page and the
 * shell completion against --help.
 *
 * The folder: option_table.c is the table; options.c parses by it and prints --help; commands.c has
 * the commands that need no mount. All of it runs on the main thread before the fork.
 */
#pragma once

#include <sys/types.h>

#include "backend/base/diag.h"
#include "spec/pods/kind.h"

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
	OPTIONS_CHECK_KIND,
	OPTIONS_LIST_SOURCES,
	OPTIONS_DOCTOR,
	OPTIONS_CAPTURE,
	OPTIONS_HELP,
	OPTIONS_VERSION
};

/* The parsed command line. Plain data. */
struct options {
	enum options_action action;
	struct spec_kinds kinds; /* the table of kinds */
	char *source;		 /* SOURCE as given, or an equivalent word */
	char *backend;		 /* "local", "volcano" ...; "" if not given */
	char *context;		 /* "" if not given */
	char *namespace;	 /* "" if not given */
	char *mountpoint;	 /* as given */
	bool foreground;
	bool debug;
	bool read_only;
	bool rbac; /* doctor prints a Role */
	bool allow_other;
	enum options_cancel cancel;
	enum diag_level log_level;
	char *kubeconfig; /* a file; "": kubectl's default */
	char *as;	  /* "": no impersonation */
	char *selector;	  /* "": all jobs */
	bool mine;	  /* show only jobs that this user submitted */
	enum options_capture capture;
	char *state;   /* "": the default */
	char *archive; /* an absolute path, or "" */
	unsigned grace_ms;
	bool linger;   /* local jobs outlive the mount */
	uint64_t jobs; /* largest number of running local jobs; 0: no limit */
	/* Number of GPUs for local jobs; UINT64_MAX: all of the machine's. */
	uint64_t gpus;
	uint64_t spool_limit; /* in bytes */
	int64_t history_keep; /* in seconds */
	uid_t uid;
	gid_t gid;
	mode_t umask;
	char *dry_run;	  /* the FILE of --dry-run */
	char *check_kind; /* the FILE of --check-kind, and the operands after it; NULL if not given */
	char *check_object, *check_pods;
	struct spec_pair *args; /* run options, checked for the backend if one is given */
	size_t n_args;
	char *mount_options; /* generic options for the kernel, comma-separated, or "" */
};

/*
 * Parse the command line, of kxfs or of mount.kxfs, the helper of mount(8). Return 0, or -EINVAL
 * with *RET_TEXT (malloc'ed): the error, with a suggestion if an option is near a known one.
 * Sources that this version does not support are errors. The caller clears *RET in both cases. If
 * the action is OPTIONS_HELP or OPTIONS_VERSION, ignore all other members.
 */
int options_parse(int argc, char **argv, struct options *ret, char **ret_text);
void options_clear(struct options *o);

/* Print --help, from the table. */
void options_help(FILE *out);

/*
 * Return the name of the I-th backend, without its colon: the kinds of a cluster, then local. NULL
 * after the last.
 */
const char *source_backend_at(const struct spec_kinds *kinds, size_t i);
