/* SPDX-License-Identifier: MIT */
/* Reads AppDefs and run options of local jobs, whose replicas run on this machine. */
#pragma once

#include "spec/app/app.h"

/* The properties of a local mount that affect its jobs. Plain data. */
struct spec_machine {
	const char *home;     /* the user's home, or NULL */
	const char *work_dir; /* where a job runs if its AppDef names no directory */
	/* run options of the mount; options for cluster jobs have no effect */
	const struct spec_pair *args;
	size_t n_args;
	unsigned gpus; /* number of GPUs for jobs; 0 if kxfs does not manage GPUs */
	/*
	 * Return why jobs can't run in the directory PATH (malloc'ed); NULL if they can. If this
	 * pointer is NULL, kxfs does not check directories.
	 */
	char *(*dir_error)(void *data, const char *path);
	void *data;
};

/* A job's settings. They are from its own run options and those of the mount. Plain data. */
struct spec_terms {
	char *dir;	    /* where the job runs, malloc'ed */
	int64_t time_limit; /* seconds; TIME_LIMIT and TTL are as in struct spec_job */
	int64_t ttl;
};

static inline void spec_terms_clear(struct spec_terms *terms)
{
	free(terms->dir);
}

/*
 * Like spec_app_read, but also set *RET_TERMS, which the caller has zeroed. After an error, its
 * member DIR is NULL. If the document is a manifest for a cluster, add one error.
 */
int spec_local_read(const struct spec_yaml *root, const struct spec_machine *m,
		    struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e);
/* Like spec_local_read, for a document's text. Return -EFBIG if LEN exceeds SPEC_MAX_FILE. */
int spec_local_parse(const char *text, size_t len, const struct spec_machine *m,
		     struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e);

/* Set the missing positions of errors in E: find their paths in the document TEXT. */
void spec_local_locate(const char *text, size_t len, struct spec_errors *e);
