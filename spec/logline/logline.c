/* SPDX-License-Identifier: MIT */
/*
 * Reads one stream of a log, and removes the times of its lines. overlap.c decides which output is
 * new; this file delivers it.
 *
 *	state	the next bytes are		the state ends with		next state
 *	BEFORE	the time of a line, or		a time and a blank		CONTENT
 *		a message			a newline			BEFORE
 *						text that is not a time		OTHER
 *	CONTENT	output of the program		a newline			BEFORE
 *	OTHER	the rest of a message		a newline			BEFORE
 */
#include "spec/logline/logline.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/logline/overlap.h"

#define PREFIX_MAX   48 /* more than the length of a time */
#define TEXT_MAX     512
#define SECOND_CHARS 20 /* "2026-11-21T09:08:40." */

enum line_state { BEFORE, CONTENT, OTHER };

struct spec_logline {
	/* NULL after the end of the known output */
	struct overlap *overlap;
	struct spec_logline_past *past;
	int64_t since;
	bool force, gap;
	enum line_state state;
	uint64_t n; /* number of bytes that have arrived */
	bool any;   /* true after the first line has begun */
	int64_t line_ns;
	char prefix[PREFIX_MAX]; /* the last bytes, if they may be the beginning of a time */
	size_t n_prefix;
	char second[SECOND_CHARS]; /* the text of the last time, up to its seconds */
	int64_t second_ns;
	char text[TEXT_MAX]; /* the message after the last line */
	size_t n_text;
};

void spec_logline_compare_again(struct spec_logline_past *past)
{
	past->blind = false;
}

struct spec_logline *spec_logline_new(struct spec_logline_known *known, bool force,
				      struct spec_logline_past *past)
{
	struct spec_logline *l = new0(struct spec_logline);

	l->force = force;
	l->past = past;
	if (known->size > 0) {
		l->overlap = overlap_new(known, force);
		l->since = overlap_since(l->overlap);
	}
	return l;
}

void spec_logline_free(struct spec_logline *l)
{
	if (l)
		overlap_free(l->overlap);
	free(l);
}

bool spec_logline_since(const struct spec_logline *l, int64_t *ret_ns)
{
	*ret_ns = l->since;
	return l->since > 0;
}

bool spec_logline_gap(const struct spec_logline *l)
{
	return l->gap;
}

bool spec_logline_has_lines(const struct spec_logline *l)
{
	return l->any;
}

const char *spec_logline_text(const struct spec_logline *l)
{
	return l->text;
}

static void add_text(struct spec_logline *l, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n && l->n_text + 1 < sizeof(l->text); i++) {
		unsigned char c = (unsigned char)bytes[i];

		l->text[l->n_text++] = c == '\n' || (c >= ' ' && c < 0x7f) ? (char)c : '?';
	}
	l->text[l->n_text] = '\0';
}

/* Deliver the held bytes, and end the comparison, because the rest of the stream is new. */
static int begin_new(struct spec_logline *l, spec_logline_fn fn, void *data)
{
	int err = overlap_release(l->overlap, fn, data);

	overlap_free(take_ptr(l->overlap));
	return err;
}

/*
 * Handle a stream that lacks the known end. LINE is true if the new output begins with the current
 * line. LINE is false if earlier new output may already have been skipped by mistake.
 */
static int not_found(struct spec_logline *l, bool line, spec_logline_fn fn, void *data)
{
	if (!l->force)
		return -ESTALE;
	l->past->blind = !line;
	if (!line)
		return -EAGAIN;
	l->gap = true;
	return begin_new(l, fn, data);
}

/* Begin a line with the time NS. NEXT has N bytes, which begin with those of the line. */
static int begin_line(struct spec_logline *l, int64_t ns, const char *next, size_t n,
		      spec_logline_fn fn, void *data)
{
	const char *newline;

	l->line_ns = max_of(ns, (int64_t)0); /* no log is from before 1970 */
	l->state = CONTENT;
	l->any = true;
	l->n_text = 0;
	l->text[0] = '\0';
	if (!l->overlap)
		return 0;
	if (l->force && l->past->blind && overlap_is_newer(l->overlap, l->line_ns))
		return not_found(l, true, fn, data);
	newline = memchr(next, '\n', n);
	if (newline)
		n = (size_t)(newline + 1 - next);
	switch (overlap_line(l->overlap, l->line_ns, next, n)) {
	case OVERLAP_NEW:
		return begin_new(l, fn, data);
	case OVERLAP_NONE:
		return not_found(l, !overlap_has_skipped(l->overlap), fn, data);
	default:
		return 0;
	}
}

static int take_content(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
			void *data)
{
	int err = 0;

	while (n > 0 && l->overlap && err == 0) {
		size_t taken;
		enum overlap_answer answer = overlap_bytes(l->overlap, bytes, n, &taken);

		if (answer == OVERLAP_NEW)
			err = begin_new(l, fn, data);
		if (answer == OVERLAP_NONE)
			err = not_found(l, false, fn, data);
		bytes += taken;
		n -= taken;
	}
	if (err == 0 && n > 0)
		err = fn(data, l->line_ns, bytes, n);
	return min_of(err, 0);
}

/* Return the number in the nine digits at TEXT; -1 if a character is not a digit. */
static int64_t parse_fraction(const char *text)
{
	int64_t ret = 0;

	for (size_t i = 0; i < 9; i++) {
		unsigned digit = (unsigned char)text[i] - (unsigned)'0';

		if (digit > 9)
			return -1;
		ret = 10 * ret + digit;
	}
	return ret;
}

/*
 * Like spec_time_parse, but faster: usually, the time differs from the last time only in its
 * fraction, so the rest is not parsed again.
 */
static size_t parse_time(struct spec_logline *l, const char *bytes, size_t n, int64_t *ret_ns)
{
	const size_t len = SECOND_CHARS + strlen("123456789Z");
	size_t got;

	if (n > len && bytes[len - 1] == 'Z' && memcmp(bytes, l->second, SECOND_CHARS) == 0) {
		int64_t fraction = parse_fraction(bytes + SECOND_CHARS);

		*ret_ns = l->second_ns + fraction;
		return fraction < 0 ? spec_time_parse(bytes, n, ret_ns) : len;
	}
	got = spec_time_parse(bytes, n, ret_ns);
	if (got == len && bytes[len - 1] == 'Z' && *ret_ns >= 0) {
		memcpy(l->second, bytes, SECOND_CHARS);
		l->second_ns = *ret_ns - *ret_ns % NS_PER_S;
	}
	return got;
}

/*
 * Handle C, the next byte in the state BEFORE. Unlike take_time, this works for a time that arrives
 * in several chunks. NEXT has the N bytes after C.
 */
static int take_prefix(struct spec_logline *l, char c, const char *next, size_t n,
		       spec_logline_fn fn, void *data)
{
	int64_t ns;

	if (c == ' ' && l->n_prefix > 0 &&
	    spec_time_parse(l->prefix, l->n_prefix, &ns) == l->n_prefix) {
		l->n_prefix = 0;
		return begin_line(l, ns, next, n, fn, data);
	}
	l->prefix[l->n_prefix++] = c;
	if (c == '\n' || c == ' ' || l->n_prefix == sizeof(l->prefix)) {
		add_text(l, l->prefix, l->n_prefix);
		l->n_prefix = 0;
		l->state = c == '\n' ? BEFORE : OTHER;
	}
	return 0;
}

/*
 * If BYTES begin with a time, begin a line, and return the length of the time and its blank. Return
 * 0 if BYTES do not begin with a time, or if they are too few; take_prefix must then handle them.
 */
static size_t take_time(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
			void *data, int *ret_err)
{
	size_t len;
	int64_t ns;

	if (l->n_prefix > 0 || n <= PREFIX_MAX)
		return 0;
	len = parse_time(l, bytes, n, &ns);
	if (len == 0 || len >= PREFIX_MAX || bytes[len] != ' ')
		return 0;
	len++;
	*ret_err = begin_line(l, ns, bytes + len, n - len, fn, data);
	return len;
}

/* Process the output in BYTES up to the end of the line. Return the number of processed bytes. */
static size_t take_line(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
			void *data, int *ret_err)
{
	const char *newline = memchr(bytes, '\n', n);

	if (newline) {
		n = (size_t)(newline + 1 - bytes);
		l->state = BEFORE;
	}
	*ret_err = take_content(l, bytes, n, fn, data);
	return n;
}

/* Process the message in BYTES up to the end of its line. Return the number of processed bytes. */
static size_t take_other(struct spec_logline *l, const char *bytes, size_t n)
{
	const char *newline = memchr(bytes, '\n', n);

	if (newline)
		n = (size_t)(newline + 1 - bytes);
	add_text(l, bytes, n);
	if (newline)
		l->state = BEFORE;
	return n;
}

int spec_logline_feed(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
		      void *data)
{
	const char *end = bytes + n;
	int err = 0;

	l->n += n;
	while (bytes < end && err == 0) {
		size_t left = (size_t)(end - bytes), taken = 0;

		switch (l->state) {
		case CONTENT:
			taken = take_line(l, bytes, left, fn, data, &err);
			break;
		case BEFORE:
			taken = take_time(l, bytes, left, fn, data, &err);
			if (taken > 0)
				break;
			taken = 1;
			err = take_prefix(l, *bytes, bytes + 1, left - 1, fn, data);
			break;
		case OTHER:
			taken = take_other(l, bytes, left);
			break;
		}
		bytes += taken;
	}
	return min_of(err, 0);
}

/* Record where the stream ended. Return true if the last recorded stream ended at the same byte. */
static bool has_ended_again(struct spec_logline *l)
{
	struct spec_logline_past *past = l->past;
	bool again = past->ended && past->n == l->n && past->since == l->since;

	past->ended = true;
	past->n = l->n;
	past->since = l->since;
	return again;
}

int spec_logline_end(struct spec_logline *l, spec_logline_fn fn, void *data)
{
	bool again;

	add_text(l, l->prefix, l->n_prefix);
	if (!l->overlap)
		return 0;
	if (!overlap_is_found(l->overlap))
		return -ESTALE;
	again = has_ended_again(l);
	return overlap_end(l->overlap, again) == OVERLAP_NEW ? begin_new(l, fn, data) : -EAGAIN;
}
