/* SPDX-License-Identifier: MIT */
/* Finds the last words of a program (status.h) in a text, or in TorchElastic's error file. */
#include "spec/job/status.h"

#include "spec/base/utf8.h"
#include "spec/base/value.h"

#define LINES	 5
#define LINE_MAX 500 /* bytes of a line, before escaping */

struct line {
	const char *p;
	size_t n;
	bool cut; /* the beginning of the line, before P, is missing */
};

struct lines {
	struct line v[LINES];
	size_t n;
};

static bool is_blank(const struct line *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strchr(" \t", l->p[i]))
			return false;
	return true;
}

/*
 * Return the last lines of TEXT that are not blank; the first ones if FIRST is true. A '\r' also
 * ends a line.
 */
static struct lines split(const char *text, size_t n, bool first)
{
	struct lines ret = {0};

	for (size_t at = 0; at < n && !(first && ret.n == LINES);) {
		struct line l = {.p = text + at};

		while (at + l.n < n && l.p[l.n] != '\n' && l.p[l.n] != '\r')
			l.n++;
		at += l.n + 1;
		if (is_blank(&l))
			continue;
		if (ret.n == LINES)
			memmove(ret.v, ret.v + 1, --ret.n * sizeof(l));
		ret.v[ret.n++] = l;
	}
	return ret;
}

static struct lines split_text(const char *text, bool first)
{
	return split(text, strlen(text), first);
}

static void put_line(FILE *out, struct line l)
{
	size_t n = min_of(l.n, (size_t)LINE_MAX);
	char text[LINE_MAX + 1];
	cleanup_free char *clean = NULL;

	/*
	 * Cut a long line, but not within a character. Keep its beginning. If its beginning is
	 * already missing, keep its end.
	 */
	if (l.cut)
		l.p += l.n - n;
	while (n < l.n && !l.cut && n > 0 && ((unsigned char)l.p[n] & 0xc0) == 0x80)
		n--;
	while (l.cut && n > 0 && ((unsigned char)*l.p & 0xc0) == 0x80)
		l.p++, n--;
	for (size_t i = 0; i < n; i++)
		text[i] = l.p[i] ? l.p[i] : ' ';
	text[n] = '\0';
	clean = spec_utf8_clean_copy(text, "\t");
	fprintf(out, "%s%s%s", l.cut ? "... " : "", clean, n < l.n && !l.cut ? " ..." : "");
}

static char *print(const struct lines *lines)
{
	char *ret = NULL;
	size_t len;
	FILE *out = text_stream(&ret, &len);

	for (size_t i = 0; i < lines->n; i++) {
		if (i > 0)
			fputc('\n', out);
		put_line(out, lines->v[i]);
	}
	text_stream_close(out);
	return ret;
}

char *spec_last_lines(const char *text, size_t n, bool part)
{
	struct lines lines = split(text, n, false);

	/*
	 * If the first line is at the start of TEXT, its beginning is missing. Keep this line only
	 * if there is no other.
	 */
	if (part && lines.n > 0 && lines.v[0].p == text) {
		lines.v[0].cut = true;
		if (lines.n > 1)
			memmove(lines.v, lines.v + 1, --lines.n * sizeof(lines.v[0]));
	}
	return print(&lines);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	while (n > 0 && strchr(" \n", text[n - 1]))
		n--;
	while (m > 0 && strchr(" \n", end[m - 1]))
		m--;
	return n >= m && memcmp(text + n - m, end, m) == 0;
}

char *spec_last_error(const char *text, size_t n)
{
	cleanup_free struct spec_value *o = NULL;
	const struct spec_value *inner;
	const char *message, *stack;
	struct lines lines;

	if (spec_value_parse_map(text, n, &o) < 0)
		return NULL;
	inner = spec_read_map(o, "message");
	message = spec_read_text(inner ? inner : o, "message");
	stack = spec_read_text(spec_read_map(inner, "extraInfo"), "py_callstack");
	lines = split_text(message, true);
	if (*stack && lines.n < LINES && ends_with(stack, message))
		lines = split_text(stack, false);
	return lines.n > 0 ? print(&lines) : NULL;
}

const struct spec_log *spec_last_log(const struct spec_job *job)
{
	const struct spec_replica *r = spec_job_first_failed(job, NULL);
	const struct spec_log *ret = NULL, *before = NULL;

	for (size_t i = 0; r && !job->exact && i < r->n_logs; i++) {
		if (!streq(r->logs[i].container, r->blamed))
			continue;
		before = ret;
		ret = &r->logs[i];
	}
	return before && r->starts > 0 ? before : ret;
}
