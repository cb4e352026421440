/* SPDX-License-Identifier: MIT */
/*
 * Lines of .kxfs/info (YAML) and .kxfs/metrics (Prometheus text). Any thread.
 */
#pragma once

#include "spec/base/base.h"

/* Print KEY: "TEXT", with the escapes that any TEXT needs. */
void print_text(FILE *out, const char *key, const char *text);

/* Names are without "kxfs_", helps without a full stop. */
struct print_metric {
	const char *name, *type, *help;
	uint64_t value;
};

/* Print the N METRICS, which have no labels. */
void print_metrics(FILE *out, const struct print_metric *metrics, size_t n);
/* Print the lines HELP and TYPE of a metric whose samples follow. */
void print_metric_head(FILE *out, const char *name, const char *type, const char *help);
/* Print KEY="VALUE" for use between the braces, with the escapes that any VALUE needs. */
void print_label(FILE *out, const char *key, const char *value);
