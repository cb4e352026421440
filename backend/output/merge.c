/* SPDX-License-Identifier: MIT */
/* The format of the merged index; see merge.h. */
#include "backend/output/merge.h"

#include <errno.h>

#include "backend/output/folder.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

const uint8_t merge_head[MERGE_HEAD] = "kxfs merged 2\n";
const struct merge_record merge_start = {.flags = MERGE_ENDS};

/* Return a checksum: FNV-1a of NUMBER, and of the record's bytes before the checksum. */
static uint32_t merge_check(const uint8_t bytes[MERGE_RECORD], uint64_t number)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < 8; i++)
		hash = (hash ^ (uint8_t)(number >> (8 * i))) * 16777619u;
	for (size_t i = 0; i < MERGE_RECORD - 4; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

void merge_encode(const struct merge_record *r, uint64_t number, uint8_t ret[MERGE_RECORD])
{
	bytes_put64(ret, r->end);
	bytes_put64(ret + 8, r->offset);
	bytes_put64(ret + 16, r->stamps);
	bytes_put32(ret + 24, r->length);
	bytes_put32(ret + 28, r->log);
	bytes_put32(ret + 32, r->flags);
	bytes_put32(ret + 36, merge_check(ret, number));
}

int merge_decode(const uint8_t bytes[MERGE_RECORD], uint64_t number, struct merge_record *ret)
{
	if (bytes_get32(bytes + 36) != merge_check(bytes, number))
		return -EINVAL;
	ret->end = bytes_get64(bytes);
	ret->offset = bytes_get64(bytes + 8);
	ret->stamps = bytes_get64(bytes + 16);
	ret->length = bytes_get32(bytes + 24);
	ret->log = bytes_get32(bytes + 28);
	ret->flags = bytes_get32(bytes + 32);
	return ret->length <= MERGE_LENGTH_MAX ? 0 : -EINVAL;
}

int merge_follow(struct merge_keys *keys, const struct merge_record *last,
		 const struct merge_record *r)
{
	uint64_t most;
	struct merge_key *k;

	if (r->log >= keys->n || (r->length == 0 && !(r->flags & MERGE_NEWLINE)))
		return -EINVAL;
	k = keys->v[r->log];
	most = (uint64_t)r->length * (1 + strlen(k->prefix)) + 1;
	if (r->offset != k->indexed || r->offset > (uint64_t)INT64_MAX - r->length)
		return -EINVAL;
	if (r->end > INT64_MAX || r->end < last->end + r->length || r->end - last->end > most)
		return -EINVAL;
	if (r->stamps < last->stamps || r->stamps - last->stamps > r->length)
		return -EINVAL;
	k->indexed += r->length;
	return 0;
}

bool merge_key_is_valid(const char *key, const char *prefix)
{
	return spec_name_is_file(key) && strlen(prefix) <= MERGE_PREFIX_MAX &&
	       !strpbrk(prefix, "\t\r\n");
}

struct merge_key *merge_keys_add(struct merge_keys *keys, const char *key, const char *prefix)
{
	struct merge_key *k = new0(struct merge_key);

	*k = (struct merge_key){text_copy(key), text_copy(prefix), (uint32_t)keys->n, 0, 0};
	keys->v = mem_more(keys->v, keys->n, sizeof(struct merge_key *));
	return keys->v[keys->n++] = k;
}

void merge_keys_clear(struct merge_keys *keys)
{
	for (size_t i = 0; i < keys->n; i++) {
		free(keys->v[i]->key);
		free(keys->v[i]->prefix);
		free(keys->v[i]);
	}
	free(keys->v);
	*keys = (struct merge_keys){0};
}

size_t merge_keys_parse(struct merge_keys *keys, const char *text, size_t len)
{
	const char *at = text, *end = text + len, *nl;

	while (at < end && (nl = memchr(at, '\n', (size_t)(end - at)))) {
		cleanup_free char *line = mem_copy(at, (size_t)(nl - at));
		char *tab = strchr(line, '\t');

		if (!tab || strlen(line) != (size_t)(nl - at))
			break;
		*tab = '\0';
		if (!merge_key_is_valid(line, tab + 1))
			break;
		merge_keys_add(keys, line, tab + 1);
		at = nl + 1;
	}
	return (size_t)(at - text);
}

/* Iterates over the lines of a record. A '\r' that is not followed by '\n' also ends a line. */
struct merge_lines {
	const char *at; /* where the next line begins */
	const char *end;
	/* NL points after the next '\n', CR after the next such '\r'; END if there is none. */
	const char *nl, *cr;
};

static const char *merge_after(const char *at, const char *end, char c)
{
	const char *found = memchr(at, c, (size_t)(end - at));

	return found ? found + 1 : end;
}

/* Move AT to the beginning of the next line, and return the new AT. */
static const char *merge_line(struct merge_lines *l)
{
	if (l->at >= l->nl)
		l->nl = merge_after(l->at, l->end, '\n');
	while (l->cr < l->end && (l->cr <= l->at || *l->cr == '\n'))
		l->cr = merge_after(l->cr, l->end, '\r');
	return l->at = min_of(l->nl, l->cr);
}

struct merge_record merge_next(const struct merge_record *last, uint32_t log, const struct chunk *p,
			       size_t prefix_len)
{
	struct merge_record r = {.offset = p->from, .length = p->length, .log = log};
	bool fresh = last->flags & MERGE_ENDS;

	if (!fresh && last->log != log)
		r.flags |= MERGE_NEWLINE;
	if (fresh || last->log != log)
		r.flags |= MERGE_START | MERGE_LINE;
	else if ((last->flags & MERGE_CR) && !(p->flags & CHUNK_NEWLINE))
		r.flags |= MERGE_START;
	if (p->flags & CHUNK_ENDS)
		r.flags |= MERGE_ENDS;
	if (p->flags & CHUNK_CR)
		r.flags |= MERGE_CR;
	r.end = last->end + p->length + p->starts * prefix_len;
	if (r.flags & MERGE_NEWLINE)
		r.end++;
	if (r.flags & MERGE_START)
		r.end += prefix_len;
	r.stamps = last->stamps + p->lines;
	r.stamps += !!(r.flags & MERGE_LINE);
	r.stamps -= !!(r.flags & MERGE_ENDS);
	return r;
}

/* A window on a stream: drops the first SKIP bytes, then writes at most ROOM bytes to OUT. */
struct merge_window {
	uint64_t skip;
	char *out;
	size_t room;
};

static void merge_emit(struct merge_window *w, const char *bytes, size_t n)
{
	size_t dropped = (size_t)min_of((uint64_t)n, w->skip);

	w->skip -= dropped;
	n = min_of(n - dropped, w->room);
	if (n == 0)
		return;
	memcpy(w->out, bytes + dropped, n);
	w->out += n;
	w->room -= n;
}

static void merge_stamp(struct merge_window *w, const struct merge_style *style, uint64_t offset)
{
	char stamp[STAMP];

	if (w->skip >= STAMP) {
		w->skip -= STAMP;
		return;
	}
	style->stamp(style->data, offset, stamp);
	merge_emit(w, stamp, STAMP);
}

size_t merge_render(const struct merge_record *r, uint64_t total, const struct merge_style *style,
		    const char *buf, size_t have, uint64_t skip, char *out, size_t n)
{
	uint64_t left = total > skip ? total - skip : 0;
	struct merge_window w = {.skip = skip,
				 .out = out,
				 .room = (size_t)min_of(left, (uint64_t)n)};
	const size_t room = w.room;
	struct merge_lines lines = {buf, buf + have, buf, buf};
	const size_t prefix_len = strlen(style->prefix);
	bool start = r->flags & MERGE_START, line = r->flags & MERGE_LINE;

	if (r->flags & MERGE_NEWLINE)
		merge_emit(&w, "\n", 1);
	while (lines.at < lines.end && w.room > 0) {
		const char *at = lines.at;

		if (line && style->stamp)
			merge_stamp(&w, style, r->offset + (uint64_t)(at - buf));
		if (start)
			merge_emit(&w, style->prefix, prefix_len);
		merge_emit(&w, at, (size_t)(merge_line(&lines) - at));
		start = true;
		line = lines.at[-1] == '\n';
	}
	return room - w.room;
}
