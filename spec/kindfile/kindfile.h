/* SPDX-License-Identifier: MIT */
/*
 * Kinds of jobs that a file describes, kxfs-kind(5). file.c reads such a file and finds all of its mistakes; path.c
 * reads the values in it and evaluates them; read.c is the reader of the objects (struct spec_reader) that goes by the
 * file. A kind that was read is immutable. Pure.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/pods/kind.h"

#define SPEC_MAX_KIND_FILE (64u << 10) /* bytes */

/*
 * Read the kind file TEXT. BUILT (NULL: there is none) is the part of the kind that is C: its run options, how an
 * AppDef becomes an object, what ctl can do beyond suspending. 0 and *RET; or the errno of E, with all mistakes.
 */
int spec_kind_file_read(const char *text, size_t len, const struct spec_kind *built,
			struct spec_kind **ret, struct spec_errors *e);
/* The name in the kind file TEXT, malloc'ed; NULL: it has none, which spec_kind_file_read reports. */
char *spec_kind_file_name(const char *text, size_t len);
/* Free a kind that spec_kind_file_read has made; NULL is allowed. */
void spec_kind_file_free(const struct spec_kind *kind);
/*
 * Make what the file status of a mount would have at NOW of the job OBJECT (JSON), with its pods among the items of
 * PODS (JSON): *RET, malloc'ed. 0, or -EINVAL: OBJECT is not an object.
 */
int spec_kind_show(const struct spec_kind *kind, const char *object, const char *pods, int64_t now,
		   char **ret);
/* True if KIND is made of a file. */
bool spec_kind_is_file(const struct spec_kind *kind);
