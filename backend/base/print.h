/* SPDX-License-Identifier: MIT */
/*
 * Lines of .kxfs/info (YAML) and .kxfs/metrics (Prometheus text). Any thread.
 */
#pragma once

#include "spec/base/base.h"

/* KEY: "TEXT", whatever TEXT holds. */
void print_text(FILE *out, const char *key, const char *text);

/* Names are without "kxfs_", helps without a full stop. */
struct print_metric {
	const char *name, *type, *help;
	uint64_t value;
};

/* Those without labels. */
void print_metrics(FILE *out, const struct print_metric *metrics, size_t n);
/* HELP and TYPE of one whose samples follow. */
void print_metric_head(FILE *out, const char *name, const char *type, const char *help);
/* KEY="VALUE", as it stands between the braces, whatever VALUE holds. */
void print_label(FILE *out, const char *key, const char *value);
