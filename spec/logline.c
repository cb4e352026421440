/* SPDX-License-Identifier: MIT */
/*
 * Reading streams of output. A stream first repeats what is known (logline_match.c finds where that ends);
 * from there on it is new, and becomes known (logline_known.c).
 */
#include "spec/logline.h"

#include <ctype.h>
#include <errno.h>

#include "spec/logline_impl.h"
#include "spec/time.h"

/*
 * A stream that repeats no more than this may begin earlier, best with the first line: what was printed after
 * the clock had stepped back does not show in a stream from a later second on.
 */
#define OVERLAP_MAX (64u << 10)
/* Between two parts of a line; what a program prints where a line is cut is hardly a time so near. */
#define PART_MAX (INT64_C(30) * 86400 * LOGLINE_SECOND)

const char *spec_logline_text(const struct spec_logline *l)
{
	return l->body_lines == 0 ? l->text : "";
}

/* --- a stream --- */

bool spec_logline_begin(struct spec_logline *l, bool force, int64_t *ret_ns)
{
	const struct logline_start *from = NULL;

	free(take_ptr(l->match));
	l->force = force;
	l->is_new = l->size == 0;
	l->place = LOGLINE_BEFORE;
	l->n_prefix = 0;
	l->entry = 0;
	l->body_lines = 0;
	l->text[0] = '\0';
	l->n_text = 0;
	for (size_t i = l->size <= OVERLAP_MAX ? 0 : l->n_marks; i-- > 0;) {
		const struct logline_start *m = &l->marks[i];

		if (m->at < l->ask_below && (!from || l->size - m->at <= OVERLAP_MAX))
			from = m;
	}
	l->asked_at = from ? from->at : 0;
	/* The first line of all is the first of its second too. */
	if (!from)
		return false;
	*ret_ns = logline_second(from->ns) * LOGLINE_SECOND;
	return true;
}

static void keep_text(struct spec_logline *l, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n && l->n_text + 1 < sizeof(l->text); i++) {
		unsigned char c = (unsigned char)bytes[i];

		l->text[l->n_text++] = c == '\n' || (c >= ' ' && c < 0x7f) ? (char)c : '?';
	}
	l->text[l->n_text] = '\0';
}

static void begin_new(struct spec_logline *l)
{
	free(take_ptr(l->match));
	l->is_new = true;
	l->ask_below = UINT64_MAX;
	l->doubts = 0;
	l->blind = false;
	l->end_n = l->end_hash = 0;
}

/* A line of time NS begins, or a part of one. */
static int begin_line(struct spec_logline *l, int64_t ns)
{
	int ret;

	ns = max_of(ns, (int64_t)0); /* no log is that old */
	l->line_ns = ns;
	l->line_noted = false;
	l->entry = 0;
	l->body_lines++;
	if (l->is_new)
		return 0;
	ret = logline_match_line(l, ns);
	if (ret == LOGLINE_GAP)
		l->gaps++;
	if (ret > 0)
		begin_new(l);
	return min_of(ret, 0);
}

/* What FN does not take is not known: a later stream has to bring it again. */
static int put_content(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
		       void *data)
{
	int err = fn(data, l->line_ns, bytes, n);

	if (err < 0)
		return err;
	if (!l->line_noted)
		logline_note_line(l, l->line_ns);
	l->line_noted = true;
	logline_append(l, bytes, n);
	return 0;
}

/* Bytes of a line, without its time. */
static int take_content(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
			void *data)
{
	while (n > 0 && !l->is_new) {
		size_t same = logline_match_most(l, n);
		int ret = logline_match_bytes(l, bytes, same);

		if (ret < 0)
			return ret;
		bytes += same;
		n -= same;
		if (ret == LOGLINE_NEW) {
			begin_new(l);
			l->line_noted = true; /* what is known ends within this line, or with it */
		}
	}
	return n > 0 ? put_content(l, bytes, n, fn, data) : 0;
}

/* --- times in the middle of lines --- */

/* May these be the beginning of a time, as a kubelet writes it, and its blank? */
static bool may_be_time(const char *text, size_t n)
{
	static const char form[] = "0000-00-00T00:00:00.";

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (i >= sizeof(form) - 1 ? !isdigit(c) && !strchr("Z+-: ", c)
		    : form[i] == '0'	  ? !isdigit(c)
					  : c != (unsigned char)form[i])
			return false;
	}
	return n < LOGLINE_PREFIX && !memchr(text, '\0', n);
}

/* What was held back is output after all. */
static int release(struct spec_logline *l, spec_logline_fn fn, void *data)
{
	char held[LOGLINE_PREFIX];
	size_t n = l->n_prefix;

	memcpy(held, l->prefix, n);
	l->n_prefix = 0;
	l->place = LOGLINE_CONTENT;
	return n > 0 ? take_content(l, held, n, fn, data) : 0;
}

/* A line has been cut, and this comes next: the time of the next part, or its first byte. */
static int take_middle(struct spec_logline *l, char c, spec_logline_fn fn, void *data)
{
	int64_t ns;
	int err;

	l->prefix[l->n_prefix++] = c;
	if (c == ' ' && spec_time_parse(l->prefix, l->n_prefix, &ns) + 1 == l->n_prefix &&
	    ns >= l->line_ns && ns - l->line_ns < PART_MAX) {
		l->n_prefix = 0;
		l->place = LOGLINE_CONTENT;
		return begin_line(l, ns);
	}
	if (c != ' ' && may_be_time(l->prefix, l->n_prefix))
		return 0;
	l->plain |= c != '\n' || l->n_prefix > 1;
	err = release(l, fn, data);
	if (c == '\n')
		l->place = LOGLINE_BEFORE;
	return err;
}

/* --- the bytes of a stream --- */

/* What is before a line's content, byte by byte: its time and a blank, or something else. */
static int take_prefix(struct spec_logline *l, char c)
{
	int64_t ns;

	if (c == ' ' && l->n_prefix > 0 &&
	    spec_time_parse(l->prefix, l->n_prefix, &ns) == l->n_prefix) {
		l->n_prefix = 0;
		l->place = LOGLINE_CONTENT;
		return begin_line(l, ns);
	}
	l->prefix[l->n_prefix++] = c;
	if (c == '\n' || c == ' ' || l->n_prefix == sizeof(l->prefix)) {
		keep_text(l, l->prefix, l->n_prefix);
		l->n_prefix = 0;
		l->place = c == '\n' ? LOGLINE_BEFORE : LOGLINE_OTHER;
	}
	return 0;
}

/* The same of a whole time and its blank, where they are in one piece: how many bytes; 0: they are not. */
static size_t take_time(struct spec_logline *l, const char *bytes, size_t n, int *ret_err)
{
	size_t len;
	int64_t ns;

	if (l->n_prefix > 0 || n <= LOGLINE_PREFIX)
		return 0;
	len = spec_time_parse(bytes, n, &ns);
	if (len == 0 || len >= LOGLINE_PREFIX || bytes[len] != ' ')
		return 0;
	l->place = LOGLINE_CONTENT;
	*ret_err = begin_line(l, ns);
	return len + 1;
}

/* Content, up to the end of its line, or to where it may be cut. How many bytes. */
static size_t take_line(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
			void *data, int *ret_err)
{
	const char *newline;

	if (!l->plain)
		n = min_of(n, LOGLINE_ENTRY - l->entry);
	newline = memchr(bytes, '\n', n);
	if (newline)
		n = (size_t)(newline + 1 - bytes);
	*ret_err = take_content(l, bytes, n, fn, data);
	l->entry += n;
	if (newline)
		l->place = LOGLINE_BEFORE;
	else if (!l->plain && l->entry == LOGLINE_ENTRY)
		l->place = LOGLINE_MIDDLE;
	return n;
}

int spec_logline_feed(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
		      void *data)
{
	const char *end = bytes + n;
	int err = 0;

	while (bytes < end && err == 0) {
		const char *newline;

		if (l->place == LOGLINE_CONTENT) {
			bytes += take_line(l, bytes, (size_t)(end - bytes), fn, data, &err);
			continue;
		}
		if (l->place == LOGLINE_MIDDLE) {
			err = take_middle(l, *bytes++, fn, data);
			continue;
		}
		if (l->place == LOGLINE_BEFORE) {
			n = take_time(l, bytes, (size_t)(end - bytes), &err);
			if (n == 0)
				err = take_prefix(l, *bytes);
			bytes += max_of(n, (size_t)1);
			continue;
		}
		newline = memchr(bytes, '\n', (size_t)(end - bytes));
		n = (size_t)((newline ? newline + 1 : end) - bytes);
		keep_text(l, bytes, n);
		bytes += n;
		if (newline)
			l->place = LOGLINE_BEFORE;
	}
	return err;
}

/*
 * A line has been cut, and the stream ends within what may be a time. If it ends there twice it is likely to be
 * whole, and that is output.
 */
static int end_middle(struct spec_logline *l, spec_logline_fn fn, void *data)
{
	uint64_t hash = logline_hash(l->hash, l->prefix, l->n_prefix);

	if (l->held_hash == hash)
		return release(l, fn, data);
	l->held_hash = hash;
	return -EAGAIN;
}

int spec_logline_end(struct spec_logline *l, spec_logline_fn fn, void *data)
{
	if (!l->is_new) {
		keep_text(l, l->prefix, l->n_prefix);
		return logline_match_end(l);
	}
	if (l->place == LOGLINE_MIDDLE && l->n_prefix > 0)
		return end_middle(l, fn, data);
	keep_text(l, l->prefix, l->n_prefix);
	return 0;
}
