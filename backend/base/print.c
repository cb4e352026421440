/* SPDX-License-Identifier: MIT */
/*
 * Text that two formats read: YAML's double-quoted strings and Prometheus' lines.
 */
#include "backend/base/print.h"

#include <inttypes.h>

#include "spec/base/utf8.h"

/*
 * Print TEXT in the quotes that both formats have, with escapes for control characters, line ends
 * too.
 */
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

void print_label(FILE *out, const char *key, const char *value)
{
	fprintf(out, "%s=", key);
	print_quoted(out, value);
}

void print_metrics(FILE *out, const struct print_metric *metrics, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct print_metric *m = &metrics[i];

		print_metric_head(out, m->name, m->type, m->help);
		fprintf(out, "kxfs_%s %" PRIu64 "\n", m->name, m->value);
	}
}
