/* SPDX-License-Identifier: MIT */
/*
 * Lines of .kxfs/info (YAML) and .kxfs/metrics (Prometheus text). Any thread.
 */
#ifndef KXFS_BACKEND_PRINT_H
#define KXFS_BACKEND_PRINT_H

#include "spec/base.h"

/* KEY: "TEXT", whatever TEXT holds. */
void print_text(FILE *out, const char *key, const char *text);

struct print_metric {
	const char *name, *type, *help; /* name without "kxfs_", help without a full stop */
	uint64_t value;
};

void print_metrics(FILE *out, const struct print_metric *metrics, size_t n);

#endif
