/* SPDX-License-Identifier: MIT */
/*
 * The list of a document's errors, sorted by position. The text of an error may quote the document,
 * and users read it on a terminal. So control characters are escaped, and a long text is shortened.
 */
#include "spec/base/error.h"

#include <ctype.h>
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/utf8.h"

/*
 * A text of more than TEXT_MAX bytes loses its middle, because its beginning describes the error,
 * and its end describes the remedy.
 */
#define TEXT_MAX  1000
#define TEXT_HEAD 600
#define TEXT_TAIL 300

#define SUGGEST_MAX 64
/*
 * Suggest a word that merely contains the searched text only if the text has at least this length.
 * Shorter texts occur in too many words.
 */
#define PART_MIN 4

static void clear(struct spec_error *x)
{
	free(x->path);
	free(x->text);
}

void spec_errors_clear(struct spec_errors *e)
{
	for (size_t i = 0; i < e->n; i++)
		clear(&e->v[i]);
	free(e->v);
	*e = SPEC_ERRORS_INIT;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Copy TEXT, escape control characters, and remove the middle of a long text. */
static char *printable(const char *text)
{
	static const char gap[] = " ... ";
	char *ret = spec_utf8_clean_copy(text, "");
	size_t len = strlen(ret), n = sizeof(gap) - 1, head = TEXT_HEAD, tail;

	if (len <= TEXT_MAX)
		return ret;
	tail = len - TEXT_TAIL;
	while (is_continuation(ret[head]))
		head--;
	while (is_continuation(ret[tail]))
		tail++;
	memcpy(ret + head, gap, n);
	memmove(ret + head + n, ret + tail, len - tail + 1);
	return ret;
}

static bool is_before(const struct spec_error *a, const struct spec_error *b)
{
	return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/*
 * Insert NEW into the list by its position, and take ownership of its texts. If the list has an
 * equal error, free them instead. The list must have fewer than SPEC_MAX_ERRORS errors.
 */
static void insert(struct spec_errors *e, struct spec_error *new)
{
	size_t at;

	for (size_t i = 0; i < e->n; i++) {
		const struct spec_error *old = &e->v[i];

		/* Two checks may have found the same error. */
		if (old->line == new->line &&
		    old->column == new->column &&streq(old->path, new->path) &&
		    streq(old->text, new->text)) {
			clear(new);
			return;
		}
	}
	if (!e->v)
		e->v = new0_n(struct spec_error, SPEC_MAX_ERRORS);
	for (at = e->n; at > 0 && is_before(new, &e->v[at - 1]); at--)
		e->v[at] = e->v[at - 1];
	e->v[at] = *new;
	e->n++;
}

int spec_errors_add(struct spec_errors *e, int err, unsigned line, unsigned column,
		    const char *path, const char *fmt, ...)
{
	struct spec_error new = {.line = line, .column = column};
	cleanup_free char *text = NULL;

	if (!e->err || err == -EFBIG)
		e->err = err;
	if (e->n == SPEC_MAX_ERRORS) {
		e->dropped++;
		return err;
	}
	text = text_of_args(fmt);
	new.path = printable(path);
	new.text = printable(text);
	insert(e, &new);
	return err;
}

void spec_errors_locate(struct spec_errors *e, spec_errors_find find, void *data)
{
	struct spec_error *v = take_ptr(e->v);
	size_t n = e->n;

	e->n = 0;
	for (size_t i = 0; i < n; i++) {
		if (!v[i].line && !find(data, v[i].path, &v[i].line, &v[i].column))
			v[i].line = v[i].column = 0;
		insert(e, &v[i]);
	}
	free(v);
}

void spec_errors_key(FILE *out, const char *key, bool first)
{
	size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	if (n > 0 && key[n] == '\0')
		fprintf(out, "%s%s", first ? "" : ".", key);
	else
		fprintf(out, "[\"%s\"]", key);
}

char *spec_errors_text(const struct spec_errors *e, const char *file)
{
	cleanup_free char *name = printable(file ? file : "");
	char *ret = NULL;
	size_t len;
	FILE *out = text_stream(&ret, &len);

	for (size_t i = 0; i < e->n; i++) {
		const struct spec_error *x = &e->v[i];

		if (*name)
			fprintf(out, "%s:", name);
		if (x->line)
			fprintf(out, "%u:%u:", x->line, x->column);
		if (*name || x->line)
			fputc(' ', out);
		if (*x->path)
			fprintf(out, "%s: ", x->path);
		fprintf(out, "%s\n", x->text);
	}
	if (e->dropped)
		fprintf(out, "%s%s%zu more error%s\n", name, *name ? ": " : "", e->dropped,
			e->dropped == 1 ? "" : "s");
	text_stream_close(out);
	return ret;
}

/* Return the edit distance of A and B, ignoring case. Swapping adjacent letters is one edit. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][SUGGEST_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= b_len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *spare = before;
		int ca = tolower((unsigned char)a[i - 1]);

		now[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			int cb = tolower((unsigned char)b[j - 1]);
			size_t d = last[j - 1] + (ca != cb);

			d = min_of(d, last[j] + 1);
			d = min_of(d, now[j - 1] + 1);
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    cb == tolower((unsigned char)a[i - 2]))
				d = min_of(d, before[j - 2] + 1);
			now[j] = d;
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[b_len];
}

const char *spec_suggest(const char *word, const char *const *words)
{
	size_t len = strnlen(word, SUGGEST_MAX + 1), best = 1 + len / 4;
	const char *ret = NULL, *part = NULL;

	if (len == 0 || len > SUGGEST_MAX)
		return NULL;
	for (; *words; words++) {
		size_t n = strlen(*words), d;

		if (n > SUGGEST_MAX)
			continue;
		d = distance(word, len, *words, n);
		/* max(LEN, N) edits turn any word into any other, so require fewer. */
		if (d < max_of(len, n) && (ret ? d < best : d <= best)) {
			best = d;
			ret = *words;
		}
		if (!part && len >= PART_MIN && strcasestr(*words, word))
			part = *words;
	}
	return ret ? ret : part;
}

char *spec_suggestion(const char *word, const char *const *words, const char *otherwise)
{
	const char *near = spec_suggest(word, words);

	return near ? text_print("; did you mean %s?", near) : text_copy(otherwise);
}
