/* SPDX-License-Identifier: MIT */
/*
 * Reads AppDefs for local jobs, whose replicas run on this machine. Reads both the AppDef's fields
 * and the run options of local jobs. If the file is a ready manifest for a cluster instead of an
 * AppDef, reports one error that explains this.
 */
#pragma once

#include "spec/app/app.h"

/* This machine's environment for local jobs. Plain data. */
struct spec_machine {
	const char *home;     /* the user's home, or NULL */
	const char *work_dir; /* where a job runs if its AppDef names no directory */
	/* run options of the mount; those for jobs of a cluster have no effect */
	const struct spec_pair *args;
	size_t n_args;
	unsigned gpus; /* total number of GPUs for jobs, or 0 */
	/*
	 * Returns NULL if jobs can run in the directory PATH. Otherwise returns the reason as text
	 * for people, malloc'ed. If this pointer is NULL, directories are not checked.
	 */
	char *(*dir_error)(void *data, const char *path);
	void *data;
};

/* A job's settings, from its run options and the mount's run options. Plain data. */
struct spec_terms {
	/* where the job runs, malloc'ed: its run option cwd, or WORK_DIR of the machine */
	char *dir;
	int64_t time_limit; /* seconds; this and TTL as in struct spec_job */
	int64_t ttl;
};

static inline void spec_terms_clear(struct spec_terms *terms)
{
	free(terms->dir);
}

/*
 * Like spec_app_read, but also set *RET_TERMS to the job's settings. After an error, the DIR of the
 * settings is NULL.
 */
int spec_local_read(const struct spec_yaml *root, const struct spec_machine *m,
		    struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e);
/* Like spec_local_read, for a document's text. Return -EFBIG if LEN exceeds SPEC_MAX_FILE. */
int spec_local_parse(const char *text, size_t len, const struct spec_machine *m,
		     struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e);

/* Set the positions that errors in E lack: find each error's path in the document TEXT. */
void spec_local_locate(const char *text, size_t len, struct spec_errors *e);
