/* SPDX-License-Identifier: MIT */
/*
 * Prints lines of .kxfs/info (YAML) and .kxfs/metrics (Prometheus), and the texts of errors. Any
 * thread.
 */
#pragma once

#include <stdatomic.h>

#include "spec/base/base.h"

/* Print the line KEY: "TEXT", with TEXT escaped. */
void print_text(FILE *out, const char *key, const char *text);

/* A metric without labels. kxfs adds the prefix "kxfs_" to NAME, and a full stop to HELP. */
struct print_metric {
	const char *name, *type, *help;
	uint64_t value;
};

void print_metrics(FILE *out, const struct print_metric *metrics, size_t n);
/* Print the HELP and TYPE lines of a metric. The caller prints its samples. */
void print_metric_head(FILE *out, const char *name, const char *type, const char *help);

/*
 * A counter with labels whose values are known only at run time, such as a server's status codes.
 * Each combination of values has a row. Only one thread may add to a tally. Any thread may print it
 * at the same time, without a lock. A zeroed tally is empty.
 */
#define TALLY_ROWS   128
#define TALLY_LABELS 3
#define TALLY_TEXT   48 /* bytes of a stored value, with the NUL */

struct tally_row {
	char values[TALLY_LABELS][TALLY_TEXT];
	atomic_ullong n;
};

struct tally {
	atomic_uint n_rows;
	struct tally_row rows[TALLY_ROWS];
};

/*
 * Add 1 to the row of VALUES. An unused label is "". If all rows are used, add 1 to the last row,
 * "other".
 */
void tally_add(struct tally *t, const char *const values[TALLY_LABELS]);
/* Print the samples of kxfs_NAME. KEYS are the names of the labels; NULL if unused. */
void tally_print(const struct tally *t, FILE *out, const char *name,
		 const char *const keys[TALLY_LABELS]);

/* Set *RET_TEXT, malloc'ed, to the error and its remedy, without a newline. Return ERR. */
int refuse(int err, char **ret_text, const char *fmt, ...) printf_like(3, 4);
/* Print TEXT or, if TEXT is NULL, the text of ERR to standard error. Escape control characters. */
void refuse_print(int err, const char *text);
