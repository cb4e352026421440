/* SPDX-License-Identifier: MIT */
/*
 * Kinds of jobs that a file describes, kxfs-kind(5). file.c reads such a file and reports all of
 * its errors; path.c parses and evaluates the values in it; read.c implements struct spec_reader
 * for such kinds. A kind is immutable after it was read. Pure.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/pods/kind.h"

#define SPEC_MAX_KIND_FILE (64u << 10) /* bytes */

/*
 * Read the kind file TEXT. BUILT is the part of the kind that is written in C, or NULL: its run
 * options, how it makes an object of an AppDef, and what ctl can do besides suspending. Return 0
 * and *RET; or the errno of E, which then has all errors.
 */
int spec_kind_file_read(const char *text, size_t len, const struct spec_kind *built,
			struct spec_kind **ret, struct spec_errors *e);
/* Free KIND if spec_kind_file_read has made it; NULL is allowed. */
void spec_kind_file_free(const struct spec_kind *kind);
/*
 * Make the text that a mount would show at NOW in `status` of the job OBJECT (JSON), whose pods are
 * among the items of PODS (JSON): *RET, malloc'ed. Return 0, or -EINVAL if OBJECT is not an object.
 */
int spec_kind_show(const struct spec_kind *kind, const char *object, const char *pods, int64_t now,
		   char **ret);
