/* SPDX-License-Identifier: MIT */
/* Lines that a stream has brought, for a writer, which takes them one by one. */
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
