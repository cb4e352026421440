/* SPDX-License-Identifier: MIT */
/*
 * Text that two formats read: YAML's double-quoted strings and Prometheus' lines.
 */
#include "backend/print.h"

#include <inttypes.h>

void print_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "%s: \"", key);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\x%02x", *p);
		else
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
