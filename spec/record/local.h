/* SPDX-License-Identifier: MIT */
/*
 * Reads AppDefs whose replicas run on this machine, or may do so: their fields, and the run options
 * of local jobs. Manifests for a cluster are refused with a sentence of their own.
 */
#pragma once

#include "spec/app/app.h"

/* This machine's environment for local jobs. Plain data. */
struct spec_machine {
	const char *home;     /* the user's home, or NULL */
	const char *work_dir; /* the directory of jobs that name none */
	/* run options of the mount; those for clusters have no effect */
	const struct spec_pair *args;
	size_t n_args;
	unsigned gpus; /* total number of GPUs for jobs, or 0 */
	/*
	 * Return why no job can run in the directory PATH, as malloc'ed text for people; NULL if
	 * jobs can. If the function itself is NULL, nothing is checked.
	 */
	char *(*dir_error)(void *data, const char *path);
	void *data;
};

/* The settings of a job, from its own run options and those of the mount. Plain data. */
struct spec_terms {
	char *dir;	    /* its directory, malloc'ed: its run option cwd, or M's */
	int64_t time_limit; /* seconds; this and TTL as in struct spec_job */
	int64_t ttl;
};

static inline void spec_terms_clear(struct spec_terms *terms)
{
	free(terms->dir);
}

/* Like spec_app_read. Also set *RET_TERMS to the job's settings; after an error its DIR is NULL. */
int spec_local_read(const struct spec_yaml *root, const struct spec_machine *m,
		    struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e);
/* Like spec_local_read, for a document's text (LEN bytes, at most SPEC_MAX_FILE: more is -EFBIG). */
int spec_local_parse(const char *text, size_t len, const struct spec_machine *m,
		     struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e);

/* Set the missing positions of E's errors, by the paths of the errors in the document TEXT. */
void spec_local_locate(const char *text, size_t len, struct spec_errors *e);
