/* SPDX-License-Identifier: MIT */
/*
 * Reads kind files, which describe kinds of jobs; see kxfs-kind(5). file.c parses a kind file,
 * path.c finds its values in objects, and read.c implements struct spec_reader. A kind does not
 * change after it was read. Pure.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/pods/kind.h"

#define SPEC_MAX_KIND_FILE (64u << 10) /* bytes */

/*
 * Read the kind file TEXT. BUILT has the kind's C code, which makes objects from AppDefs. BUILT is
 * NULL if the kind has no C code. Return 0 and the kind. If there are errors, add them to E and
 * return their errno.
 */
int spec_kind_file_read(const char *text, size_t len, const struct spec_kind *built,
			struct spec_kind **ret, struct spec_errors *e);
/* Free KIND (or NULL) if it is from spec_kind_file_read. */
void spec_kind_file_free(const struct spec_kind *kind);
/*
 * Return the text of a job's file `status` at NOW, malloc'ed. OBJECT is the job's object as JSON,
 * and PODS is a list of its pods. Return 0, or -EINVAL if OBJECT is not an object.
 */
int spec_kind_show(const struct spec_kind *kind, const char *object, const char *pods, int64_t now,
		   char **ret);
