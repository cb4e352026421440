/* SPDX-License-Identifier: MIT */
/*
 * The command line. Parsing and --help use one table of options; tests compare the man page and the
 * shell completion with --help. All of this runs on the main thread before the fork.
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
	struct spec_kinds kinds;
	/* SOURCE as given; if not given, a description for messages */
	char *source;
	char *backend;	  /* "local", "volcano" ...; "" if not given */
	char *context;	  /* "" if not given */
	char *namespace;  /* "" if not given */
	char *mountpoint; /* as given */
	bool foreground;
	bool debug;
	bool read_only;
	bool rbac; /* --rbac of doctor */
	bool allow_other;
	enum options_cancel cancel;
	enum diag_level log_level;
	char *kubeconfig; /* "" for kubectl's default */
	char *as;	  /* the user to impersonate, or "" */
	char *selector;	  /* a label selector, or "" */
	bool mine;	  /* true if only jobs of this user are shown */
	enum options_capture capture;
	char *state;	/* the state directory, or "" */
	char *archive;	/* an absolute path, or "" */
	uint64_t grace; /* in seconds */
	bool linger;
	uint64_t jobs; /* the most local jobs that run at the same time; 0 for no limit */
	/* GPUs for local jobs; UINT64_MAX for all GPUs of this machine */
	uint64_t gpus;
	uint64_t spool_limit;  /* in bytes */
	uint64_t history_keep; /* in seconds */
	uint64_t uid, gid, umask;
	char *dry_run; /* the FILE of --dry-run */
	/* the file and the operands of --check-kind; NULL if not given */
	char *check_kind;
	char *check_object, *check_pods;
	struct spec_pair *args; /* run options, such as queue=research */
	size_t n_args;
	char *mount_options; /* generic options for the kernel, comma-separated, or "" */
};

/*
 * Parse the command line of kxfs, or of mount.kxfs, the helper of mount(8). Return 0, or -EINVAL
 * with a message in *RET_TEXT, malloc'ed. The caller clears *RET in both cases. If the action is
 * OPTIONS_HELP or OPTIONS_VERSION, only the kinds in *RET are complete.
 */
int options_parse(int argc, char **argv, struct options *ret, char **ret_text);
void options_clear(struct options *o);

void options_help(FILE *out);

/* Return the name of backend I, counted from 0, without its colon; NULL after the last one. */
const char *source_backend_at(const struct spec_kinds *kinds, size_t i);
