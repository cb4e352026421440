/* SPDX-License-Identifier: MIT */
/*
 * Reads kind files, which describe kinds of jobs; see kxfs-kind(5). file.c reads a kind file and
 * reports all of its errors. path.c parses and evaluates the values in a kind file. read.c
 * implements struct spec_reader for kinds from kind files. A kind does not change after it was
 * read. Pure.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/pods/kind.h"

#define SPEC_MAX_KIND_FILE (64u << 10) /* maximum size in bytes */

/*
 * Read the kind file TEXT. BUILT is the part of the kind that is written in C: it has the kind's
 * run options and makes objects from AppDefs. BUILT is NULL if there is no such part. Return 0 and
 * set *RET to the kind. If the file has errors, add them to E and return E's errno.
 */
int spec_kind_file_read(const char *text, size_t len, const struct spec_kind *built,
			struct spec_kind **ret, struct spec_errors *e);
/* Free KIND if it is from spec_kind_file_read. KIND may be NULL. */
void spec_kind_file_free(const struct spec_kind *kind);
/*
 * Set *RET (malloc'ed) to the text that a mount would show at NOW in the file `status` of a job.
 * OBJECT is the job's object as JSON. PODS is a list with the job's pods as JSON. Return 0, or
 * -EINVAL if OBJECT is not an object.
 */
int spec_kind_show(const struct spec_kind *kind, const char *object, const char *pods, int64_t now,
		   char **ret);
