/* SPDX-License-Identifier: MIT */
/*
 * AppDefs whose replicas run on this machine, or of which it is not known yet where they run. Manifests
 * for a cluster are refused with a sentence of their own.
 */
#ifndef KXFS_SPEC_KINDS_LOCAL_H
#define KXFS_SPEC_KINDS_LOCAL_H

#include "spec/app/app.h"

/* As spec_app_read. */
int spec_local_read(const struct spec_yaml *root, const char *home, struct spec_app **ret,
		    struct spec_errors *e);
/* The same of a document's text (LEN bytes, at most SPEC_MAX_FILE: more is -EFBIG). */
int spec_local_parse(const char *text, size_t len, const char *home, struct spec_app **ret,
		     struct spec_errors *e);

#endif
