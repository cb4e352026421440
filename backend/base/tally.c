/* SPDX-License-Identifier: MIT */
/* A row is complete before n_rows counts it; only its count changes after that. */
#include "backend/base/tally.h"

#include <inttypes.h>

#include "backend/base/print.h"

static struct tally_row *need_row(struct tally *t, const char *const values[TALLY_LABELS])
{
	unsigned n = atomic_load_explicit(&t->n_rows, memory_order_relaxed);
	struct tally_row *row;

	for (unsigned i = 0; i < n; i++) {
		size_t same = 0;

		/* Values are equal if their stored parts are. */
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
		const char *before = "{";

		fprintf(out, "kxfs_%s", name);
		for (size_t k = 0; k < TALLY_LABELS && keys[k]; k++) {
			fputs(before, out);
			print_label(out, keys[k], row->values[k]);
			before = ",";
		}
		fprintf(out, "} %" PRIu64 "\n", (uint64_t)atomic_load(&row->n));
	}
}
