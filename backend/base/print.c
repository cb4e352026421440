/* SPDX-License-Identifier: MIT */
/*
 * Prints double-quoted strings for YAML, and lines of Prometheus' text format. Readers of a tally
 * need no lock: a row is complete before N_ROWS includes it, and then only its count changes.
 */
#include "backend/base/print.h"

#include <inttypes.h>

#include "spec/base/mem.h"
#include "spec/base/utf8.h"

/* Print TEXT in double quotes, with escapes that are valid in both formats. */
static void print_quoted(FILE *out, const char *text)
{
	cleanup_free char *clean = spec_utf8_clean_copy(text, "\n");

	fputc('"', out);
	for (const char *p = clean; *p; p++) {
		if (*p == '"' || *p == '\\')
			fputc('\\', out);
		if (*p == '\n')
			fputs("\\n", out);
		else
			fputc(*p, out);
	}
	fputc('"', out);
}

void print_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "%s: ", key);
	print_quoted(out, text);
	fputc('\n', out);
}

void print_metric_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP kxfs_%s %s.\n# TYPE kxfs_%s %s\n", name, help, name, type);
}

void print_metrics(FILE *out, const struct print_metric *metrics, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct print_metric *m = &metrics[i];

		print_metric_head(out, m->name, m->type, m->help);
		fprintf(out, "kxfs_%s %" PRIu64 "\n", m->name, m->value);
	}
}

static struct tally_row *need_row(struct tally *t, const char *const values[TALLY_LABELS])
{
	unsigned n = atomic_load_explicit(&t->n_rows, memory_order_relaxed);
	struct tally_row *row;

	for (unsigned i = 0; i < n; i++) {
		size_t same = 0;

		/* Rows store truncated values, so compare only the stored length. */
		while (same < TALLY_LABELS &&
		       strncmp(t->rows[i].values[same], values[same], TALLY_TEXT - 1) == 0)
			same++;
		if (same == TALLY_LABELS)
			return &t->rows[i];
	}
	if (n == TALLY_ROWS)
		return &t->rows[n - 1];
	row = &t->rows[n];
	for (size_t i = 0; i < TALLY_LABELS; i++)
		snprintf(row->values[i], TALLY_TEXT, "%s",
			 n == TALLY_ROWS - 1 ? "other" : values[i]);
	atomic_store_explicit(&t->n_rows, n + 1, memory_order_release);
	return row;
}

void tally_add(struct tally *t, const char *const values[TALLY_LABELS])
{
	atomic_fetch_add_explicit(&need_row(t, values)->n, 1, memory_order_relaxed);
}

void tally_print(const struct tally *t, FILE *out, const char *name,
		 const char *const keys[TALLY_LABELS])
{
	unsigned n = atomic_load_explicit(&t->n_rows, memory_order_acquire);

	for (unsigned i = 0; i < n; i++) {
		const struct tally_row *row = &t->rows[i];

		fprintf(out, "kxfs_%s", name);
		for (size_t k = 0; k < TALLY_LABELS && keys[k]; k++) {
			fprintf(out, "%c%s=", k ? ',' : '{', keys[k]);
			print_quoted(out, row->values[k]);
		}
		fprintf(out, "} %" PRIu64 "\n", (uint64_t)atomic_load(&row->n));
	}
}

/* --- errors --- */

int refuse(int err, char **ret_text, const char *fmt, ...)
{
	*ret_text = text_of_args(fmt);
	return err;
}

void refuse_print(int err, const char *text)
{
	cleanup_free char *clean = text ? spec_utf8_clean_copy(text, "\n\t") : NULL;

	fprintf(stderr, "kxfs: %s\n", clean ? clean : strerror(-err));
}
