/* SPDX-License-Identifier: MIT */
/* One pass over the bytes; the only state is the path of the open elements, whose length bounds their depth. */
#include "spec/api/xml.h"

#include "spec/base/mem.h"

#define PATH_MAX_LEN 256

struct reader {
	const char *p, *end;
	char path[PATH_MAX_LEN];
	size_t depth; /* bytes of PATH */
	char *value;  /* room for as many bytes as the text has */
	size_t n;
	spec_xml_fn fn;
	void *data;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool begins(const struct reader *r, const char *word)
{
	return (size_t)(r->end - r->p) >= strlen(word) && memcmp(r->p, word, strlen(word)) == 0;
}

/* Move behind the next WORD. */
static bool skip_to(struct reader *r, const char *word)
{
	while (r->p < r->end && !begins(r, word))
		r->p++;
	if (r->p == r->end)
		return false;
	r->p += strlen(word);
	return true;
}

/* Put the character C, if XML allows it, as UTF-8. */
static bool put_char(struct reader *r, unsigned long c)
{
	unsigned char *to = (unsigned char *)r->value + r->n;

	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return false;
	if (c < 0x80) {
		to[0] = (unsigned char)c;
		r->n += 1;
	} else if (c < 0x800) {
		to[0] = (unsigned char)(0xc0 | c >> 6);
		to[1] = (unsigned char)(0x80 | (c & 0x3f));
		r->n += 2;
	} else if (c < 0x10000) {
		to[0] = (unsigned char)(0xe0 | c >> 12);
		to[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (unsigned char)(0x80 | (c & 0x3f));
		r->n += 3;
	} else {
		to[0] = (unsigned char)(0xf0 | c >> 18);
		to[1] = (unsigned char)(0x80 | (c >> 12 & 0x3f));
		to[2] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
		to[3] = (unsigned char)(0x80 | (c & 0x3f));
		r->n += 4;
	}
	return true;
}

/* Read the entity at P, which begins with '&'. The character never has more bytes than the reference to it. */
static bool read_entity(struct reader *r)
{
	static const struct {
		const char *name;
		char c;
	} entities[] = {
		{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''},
	};
	const char *semicolon = memchr(r->p, ';', min_of((size_t)(r->end - r->p), (size_t)12));
	char number[12], *rest;
	unsigned long c;
	bool hex;

	for (size_t i = 0; i < array_size(entities); i++)
		if (begins(r, entities[i].name)) {
			r->value[r->n++] = entities[i].c;
			r->p += strlen(entities[i].name);
			return true;
		}
	if (!semicolon || !begins(r, "&#"))
		return false;
	hex = r->p[2] == 'x';
	snprintf(number, sizeof(number), "%.*s", (int)(semicolon - r->p - 2 - hex), r->p + 2 + hex);
	c = strtoul(number, &rest, hex ? 16 : 10);
	r->p = semicolon + 1;
	return *number && !*rest && strspn(number, "+- \t") == 0 && put_char(r, c);
}

static bool read_text(struct reader *r)
{
	while (r->p < r->end && *r->p != '<') {
		if (*r->p == '&') {
			if (!read_entity(r))
				return false;
			continue;
		}
		if (*r->p == '\0' || (r->depth == 0 && !is_blank(*r->p)))
			return false;
		r->value[r->n++] = *r->p++;
	}
	return r->depth > 0 || r->n == 0 || is_blank(r->value[0]);
}

/* The name at P; its length, 0: none that is short enough. */
static size_t name_length(const struct reader *r)
{
	size_t n = 0;

	while (r->p + n < r->end && !is_blank(r->p[n]) && !strchr("/>=<&\"'", r->p[n]))
		n++;
	return n + r->depth + 2 > PATH_MAX_LEN ? 0 : n;
}

static void close_element(struct reader *r)
{
	r->value[r->n] = '\0';
	r->fn(r->data, r->path, r->value);
	r->n = 0;
	while (r->path[--r->depth] != '/')
		;
	r->path[r->depth] = '\0';
}

static bool read_open(struct reader *r)
{
	size_t n = name_length(r);
	char quote = '\0';

	if (n == 0)
		return false;
	r->path[r->depth++] = '/';
	memcpy(r->path + r->depth, r->p, n);
	r->depth += n;
	r->path[r->depth] = '\0';
	r->n = 0;
	for (r->p += n; r->p < r->end && (quote || *r->p != '>'); r->p++) {
		if (quote && *r->p == quote)
			quote = '\0';
		else if (!quote && (*r->p == '"' || *r->p == '\''))
			quote = *r->p;
		else if (*r->p == '<' || *r->p == '\0')
			return false;
	}
	if (r->p == r->end)
		return false;
	if (r->p[-1] == '/')
		close_element(r);
	r->p++;
	return true;
}

static bool read_close(struct reader *r)
{
	size_t n = name_length(r);
	const char *last = strrchr(r->path, '/');

	if (!last || n == 0 || strlen(last + 1) != n || memcmp(last + 1, r->p, n) != 0)
		return false;
	r->p += n;
	while (r->p < r->end && is_blank(*r->p))
		r->p++;
	if (r->p == r->end || *r->p++ != '>')
		return false;
	close_element(r);
	return true;
}

static bool read_markup(struct reader *r)
{
	if (begins(r, "<?"))
		return skip_to(r, "?>");
	if (begins(r, "<!--"))
		return skip_to(r, "-->");
	if (begins(r, "</")) {
		r->p += 2;
		return read_close(r);
	}
	r->p++;
	return read_open(r);
}

bool spec_xml_read(const char *text, size_t len, spec_xml_fn fn, void *data)
{
	cleanup_free char *value = mem_zero(len + 1);
	struct reader r = {.p = text, .end = text + len, .value = value, .fn = fn, .data = data};
	bool any = false;

	while (r.p < r.end) {
		if (*r.p == '<') {
			if (!read_markup(&r))
				return false;
			any = true;
		} else if (!read_text(&r)) {
			return false;
		}
		if (r.depth == 0)
			r.n = 0;
	}
	return any && r.depth == 0;
}
