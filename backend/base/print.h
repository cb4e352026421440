/* SPDX-License-Identifier: MIT */
/*
 * Text for people: lines of .kxfs/info (YAML) and .kxfs/metrics (Prometheus text), and the texts of
 * errors. Any thread.
 */
#pragma once

#include <stdatomic.h>

#include "spec/base/base.h"

/* Print KEY: "TEXT", with the escapes that any TEXT needs. */
void print_text(FILE *out, const char *key, const char *text);

/* A metric without labels. NAME is without "kxfs_", HELP without a full stop. */
struct print_metric {
	const char *name, *type, *help;
	uint64_t value;
};

/* Print the N METRICS. */
void print_metrics(FILE *out, const struct print_metric *metrics, size_t n);
/* Print the lines HELP and TYPE of a metric whose samples follow. */
void print_metric_head(FILE *out, const char *name, const char *type, const char *help);

/*
 * A counter with labels whose values are known only at run time, such as a server's status codes. It has one row
 * for each combination of values. Rows are never removed, and there are at most TALLY_ROWS. One thread counts; any
 * thread may print at the same time without a lock. An empty tally is all zeros.
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
 * Add 1 to the row of VALUES; an unused label has "". When all rows are used, a new combination is counted as
 * "other".
 */
void tally_add(struct tally *t, const char *const values[TALLY_LABELS]);
/*
 * Print the samples of kxfs_NAME, without their head. KEYS are the names of the labels; NULL for an unused label.
 */
void tally_print(const struct tally *t, FILE *out, const char *name,
		 const char *const keys[TALLY_LABELS]);

/*
 * Set *RET_TEXT (malloc'ed) to the error and its remedy, without a newline. Return ERR, for "return
 * refuse(-EINVAL, ret_text, ...)".
 */
int refuse(int err, char **ret_text, const char *fmt, ...) printf_like(3, 4);
/*
 * Print TEXT, which may quote a server or a plugin, for the user who gave the command. NULL: print
 * the text of ERR.
 */
void refuse_print(int err, const char *text);
