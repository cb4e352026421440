/* SPDX-License-Identifier: MIT */
/*
 * AppDefs whose replicas run on this machine, or of which it is not known yet where they run: their fields, and
 * the run options of local jobs. Manifests for a cluster are refused with a sentence of their own.
 */
#ifndef KXFS_SPEC_RECORD_LOCAL_H
#define KXFS_SPEC_RECORD_LOCAL_H

#include "spec/app/app.h"

/* What local jobs find on this machine. Plain data. */
struct spec_machine {
	const char *home;     /* NULL: unknown */
	const char *work_dir; /* where jobs run that name no other directory */
	/* Why no job can run in the directory PATH: malloc'ed, for people; NULL: it can. May be NULL: not asked. */
	char *(*dir_error)(void *data, const char *path);
	void *data;
};

/*
 * As spec_app_read. *RET_DIR (malloc'ed) is the directory in which the job runs: M's, or that of its run option cwd.
 */
int spec_local_read(const struct spec_yaml *root, const struct spec_machine *m,
		    struct spec_app **ret, char **ret_dir, struct spec_errors *e);
/* The same of a document's text (LEN bytes, at most SPEC_MAX_FILE: more is -EFBIG). */
int spec_local_parse(const char *text, size_t len, const struct spec_machine *m,
		     struct spec_app **ret, char **ret_dir, struct spec_errors *e);

/* The errors of E that have no position get that of what they name in the document (LEN bytes of TEXT). */
void spec_local_locate(const char *text, size_t len, struct spec_errors *e);

#endif
