/* SPDX-License-Identifier: MIT */
/* Passes lines to a writer one by one, as a stream does. */
#pragma once

#include "backend/output/writer.h"

static inline void print_lines(struct log_writer *w, int64_t ns, const char *text)
{
	while (*text) {
		const char *newline = strchr(text, '\n');
		size_t n = newline ? (size_t)(newline + 1 - text) : strlen(text);

		log_writer_add(w, ns, text, n);
		text += n;
	}
	log_writer_flush(w);
}
