/* SPDX-License-Identifier: MIT */
/*
 * Texts with several owners: texts that the snapshots of one job share, and texts of a file that
 * several processes have opened. Immutable once published, reference counted with atomics: any
 * thread may hold a reference.
 */
#pragma once

#include "spec/base/base.h"

/* A text with its length. Plain data. */
struct spec_text {
	unsigned refs; /* atomic; only spec_text_ref and spec_text_unref touch it */
	size_t len;
	char text[]; /* the bytes, and a NUL */
};

/*
 * Return a copy of LEN bytes, with one reference; if TEXT is NULL, LEN zeros for the caller to
 * fill.
 */
struct spec_text *spec_text_new(const char *text, size_t len);
struct spec_text *spec_text_ref(struct spec_text *t);
void spec_text_unref(struct spec_text *t); /* NULL is allowed */
