/* SPDX-License-Identifier: MIT */
/*
 * Text for people: lines of .kxfs/info (YAML) and .kxfs/metrics (Prometheus text), and the texts of
 * errors. Any thread.
 */
#pragma once

#include <stdatomic.h>

#include "spec/base/base.h"

/* Print the line KEY: "TEXT", with TEXT escaped. */
void print_text(FILE *out, const char *key, const char *text);

/* A metric without labels. kxfs prints NAME with the prefix "kxfs_", and HELP with a full stop. */
struct print_metric {
	const char *name, *type, *help;
	uint64_t value;
};

/* Print the N METRICS. */
void print_metrics(FILE *out, const struct print_metric *metrics, size_t n);
/* Print the HELP and TYPE lines of a metric. The caller then prints its samples. */
void print_metric_head(FILE *out, const char *name, const char *type, const char *help);

/*
 * A counter with labels whose values are known only at run time, such as a server's status codes.
 * It has one row for each combination of values. Rows are never removed, and there are at most
 * TALLY_ROWS. Only one thread may add to a tally. Any thread may print it at the same time, without
 * a lock. A zeroed tally is empty.
 */
#define TALLY_ROWS   128
#define TALLY_LABELS 3
#define TALLY_TEXT   48 /* size of a stored value in bytes, with the NUL */

struct tally_row {
	char values[TALLY_LABELS][TALLY_TEXT];
	atomic_ullong n;
};

struct tally {
	atomic_uint n_rows;
	struct tally_row rows[TALLY_ROWS];
};

/*
 * Add 1 to the row of VALUES. The value of an unused label is "". When all rows are used, count
 * each new combination as "other".
 */
void tally_add(struct tally *t, const char *const values[TALLY_LABELS]);
/*
 * Print the samples of the metric kxfs_NAME, without the HELP and TYPE lines. KEYS are the names of
 * the labels; the key of an unused label is NULL.
 */
void tally_print(const struct tally *t, FILE *out, const char *name,
		 const char *const keys[TALLY_LABELS]);

/*
 * Set *RET_TEXT to a malloc'ed text that describes the error and its remedy, without a newline.
 * Return ERR, so that callers can write "return refuse(-EINVAL, ret_text, ...)".
 */
int refuse(int err, char **ret_text, const char *fmt, ...) printf_like(3, 4);
/*
 * Print TEXT to standard error, for the user who gave the command. TEXT may quote a server or a
 * plugin, so control characters are escaped. If TEXT is NULL, print the text of ERR.
 */
void refuse_print(int err, const char *text);
