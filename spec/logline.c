/* SPDX-License-Identifier: MIT */
/*
 * Reading streams of output. A stream first repeats what is known (logline_match.c finds where that ends);
 * from there on it is new.
 */
#include "spec/logline.h"

#include <assert.h>
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

struct spec_logline *spec_logline_new(void)
{
	struct spec_logline *l = calloc(1, sizeof(*l));

	if (l)
		l->last_ns = l->max_second = INT64_MIN;
	if (l)
		l->ask_below = UINT64_MAX;
	return l;
}

void spec_logline_free(struct spec_logline *l)
{
	if (l)
		free(l->match);
	free(l);
}

uint64_t spec_logline_size(const struct spec_logline *l)
{
	return l->size;
}

const char *spec_logline_text(const struct spec_logline *l)
{
	return l->body_lines == 0 ? l->text : "";
}

unsigned spec_logline_gaps(const struct spec_logline *l)
{
	return l->gaps;
}

int64_t spec_logline_last(const struct spec_logline *l)
{
	return l->last_ns == INT64_MIN ? 0 : l->last_ns;
}

static int64_t second_of(int64_t ns)
{
	return ns / LOGLINE_SECOND;
}

/* Forget all that begins after SIZE. */
static size_t cut_starts(struct logline_start *v, size_t n, uint64_t size)
{
	while (n > 0 && v[n - 1].at > size)
		n--;
	return n;
}

static void later_timed(const struct logline_start **timed, const struct logline_start *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].ns != LOGLINE_UNTIMED && (!*timed || v[i].at >= (*timed)->at))
			*timed = &v[i];
}

void logline_cut(struct spec_logline *l, uint64_t size)
{
	const struct logline_start *last = &l->first, *timed = NULL;

	if (size >= l->size)
		return;
	/* As it was loaded, with the ring from its beginning. */
	assert(l->n_lines <= LOGLINE_RING);
	l->n_marks = cut_starts(l->marks, l->n_marks, size);
	l->n_lines = cut_starts(l->ring, l->n_lines, size);
	if (l->n_marks > 0 && l->marks[l->n_marks - 1].at > last->at)
		last = &l->marks[l->n_marks - 1];
	if (l->n_lines > 0 && l->ring[l->n_lines - 1].at > last->at)
		last = &l->ring[l->n_lines - 1];
	/* Of a later start the hash is known, so what comes after it can be added. */
	l->size = last->at;
	l->hash = last->hash;
	l->midline = false;
	if (l->n_lines == 0)
		l->ring[l->n_lines++] = *last;
	later_timed(&timed, &l->first, 1);
	later_timed(&timed, l->marks, l->n_marks);
	later_timed(&timed, l->ring, l->n_lines);
	l->last_ns = timed ? timed->ns : INT64_MIN;
	l->untimed = l->size - (timed ? timed->at : 0);
	l->max_second = l->n_marks > 0 ? second_of(l->marks[l->n_marks - 1].ns) : INT64_MIN;
}

/* --- where lines began --- */

static const struct logline_start *last_start(const struct spec_logline *l)
{
	return &l->ring[(l->n_lines - 1) % LOGLINE_RING];
}

/*
 * A line begins at the end of what is known. A mark is the first line of its second: no line before it is
 * of that second or later, none after it is earlier. So when the clock steps back, marks go, and there are
 * new ones only when it is later than ever.
 */
static void note_line(struct spec_logline *l, int64_t ns)
{
	const struct logline_start start = {.ns = ns, .at = l->size, .hash = l->hash};
	int64_t second = second_of(ns);

	if (l->size == 0)
		l->first = start;
	while (l->n_marks > 0 && second_of(l->marks[l->n_marks - 1].ns) > second)
		l->n_marks--;
	if (second > l->max_second) {
		if (l->n_marks == LOGLINE_MARKS)
			memmove(l->marks, l->marks + 1, --l->n_marks * sizeof(l->marks[0]));
		l->marks[l->n_marks++] = start;
		l->max_second = second;
	}
	l->ring[l->n_lines++ % LOGLINE_RING] = start;
	l->last_ns = ns;
	l->untimed = 0;
}

static void append(struct spec_logline *l, const char *bytes, size_t n)
{
	l->hash = logline_hash(l->hash, bytes, n);
	l->size += n;
	l->midline = bytes[n - 1] != '\n';
}

/* Does a line begin at the end of what is known, or what may be a part of one? */
static bool begins_known(const struct spec_logline *l)
{
	uint64_t n = l->size - last_start(l)->at;

	return l->n_lines == 0 || (!l->midline && n > 0) || (!l->plain && n >= LOGLINE_ENTRY);
}

void spec_logline_known(struct spec_logline *l, const char *bytes, size_t n)
{
	const char *end = bytes + n;

	while (bytes < end) {
		const char *newline;

		if (begins_known(l)) {
			const struct logline_start start = {LOGLINE_UNTIMED, l->size, l->hash};

			if (l->n_lines == 0)
				l->first = start;
			l->ring[l->n_lines++ % LOGLINE_RING] = start;
		}
		n = (size_t)(end - bytes);
		if (!l->plain)
			n = min_of(n, (size_t)(last_start(l)->at + LOGLINE_ENTRY - l->size));
		newline = memchr(bytes, '\n', n);
		n = newline ? (size_t)(newline + 1 - bytes) : n;
		append(l, bytes, n);
		l->untimed += n;
		bytes += n;
	}
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
	*ret_ns = second_of(from->ns) * LOGLINE_SECOND;
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
		note_line(l, l->line_ns);
	l->line_noted = true;
	append(l, bytes, n);
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
