/* SPDX-License-Identifier: MIT */
/*
 * Text that two formats read: YAML's double-quoted strings and Prometheus' lines.
 */
#include "backend/print.h"

#include <inttypes.h>

#include "spec/utf8.h"

void print_text(FILE *out, const char *key, const char *text)
{
	cleanup_free char *clean = spec_utf8_clean_copy(text, "");

	fprintf(out, "%s: \"", key);
	for (const char *p = clean ? clean : ""; *p; p++) {
		if (*p == '"' || *p == '\\')
			fputc('\\', out);
		fputc(*p, out);
	}
	fputs("\"\n", out);
}

void print_metrics(FILE *out, const struct print_metric *metrics, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct print_metric *m = &metrics[i];

		fprintf(out, "# HELP kxfs_%s %s.\n# TYPE kxfs_%s %s\nkxfs_%s %" PRIu64 "\n",
			m->name, m->help, m->name, m->type, m->name, m->value);
	}
}
