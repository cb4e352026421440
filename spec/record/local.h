/* SPDX-License-Identifier: MIT */
/*
 * Reads AppDefs whose replicas run on this machine, or of which it is not known yet where they run: their fields, and
 * the run options of local jobs. Manifests for a cluster are refused with a sentence of their own.
 */
#pragma once

#include "spec/app/app.h"

/* What local jobs find on this machine. Plain data. */
struct spec_machine {
	const char *home;     /* the user's home; NULL: unknown */
	const char *work_dir; /* where jobs run that name no directory */
	/* run options of the mount; those for clusters have no effect */
	const struct spec_pair *args;
	size_t n_args;
	unsigned gpus; /* GPUs that jobs are given, all together; 0: they are given none */
	/*
	 * Why no job can run in the directory PATH: malloc'ed, text for people; NULL: one can. May be NULL: that is not
	 * checked.
	 */
	char *(*dir_error)(void *data, const char *path);
	void *data;
};

/* How a job runs, by its own run options and those of the mount. Plain data. */
struct spec_terms {
	char *dir;	    /* its directory, malloc'ed: M's, or that of its run option cwd */
	int64_t time_limit; /* as in struct spec_job, like TTL */
	int64_t ttl;
};

static inline void spec_terms_clear(struct spec_terms *terms)
{
	free(terms->dir);
}

/* Like spec_app_read; *RET_TERMS are the job's, of which DIR is NULL after an error. */
int spec_local_read(const struct spec_yaml *root, const struct spec_machine *m,
		    struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e);
/* Like spec_local_read, for a document's text (LEN bytes, at most SPEC_MAX_FILE: more is -EFBIG). */
int spec_local_parse(const char *text, size_t len, const struct spec_machine *m,
		     struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e);

/* Give the errors of E that have no position that of what they name in the document (LEN bytes of TEXT). */
void spec_local_locate(const char *text, size_t len, struct spec_errors *e);
