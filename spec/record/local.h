/* SPDX-License-Identifier: MIT */
/*
 * AppDefs whose replicas run on this machine, or of which it is not known yet where they run: their fields, and
 * the run options of local jobs. Manifests for a cluster are refused with a sentence of their own.
 */
#pragma once

#include "spec/app/app.h"

/* What local jobs find on this machine. Plain data. */
struct spec_machine {
	const char *home;     /* NULL: unknown */
	const char *work_dir; /* where jobs run that name no other directory */
	/* run options of the mount; those of clusters count for nothing */
	const struct spec_pair *args;
	size_t n_args;
	unsigned gpus; /* that jobs are given, all together; 0: they are not given any */
	/* Why no job can run in the directory PATH: malloc'ed, for people; NULL: it can. May be NULL: not asked. */
	char *(*dir_error)(void *data, const char *path);
	void *data;
};

/* How a job runs, as its run options and those of the mount say. Plain data. */
struct spec_terms {
	char *dir;	    /* malloc'ed: M's, or that of its run option cwd */
	int64_t time_limit; /* as in struct spec_job, and so is TTL */
	int64_t ttl;
};

static inline void spec_terms_clear(struct spec_terms *terms)
{
	free(terms->dir);
}

/* As spec_app_read; *RET_TERMS are the job's, of which DIR is NULL after an error. */
int spec_local_read(const struct spec_yaml *root, const struct spec_machine *m,
		    struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e);
/* The same of a document's text (LEN bytes, at most SPEC_MAX_FILE: more is -EFBIG). */
int spec_local_parse(const char *text, size_t len, const struct spec_machine *m,
		     struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e);

/* The errors of E that have no position get that of what they name in the document (LEN bytes of TEXT). */
void spec_local_locate(const char *text, size_t len, struct spec_errors *e);
