/* SPDX-License-Identifier: MIT */
/* The format of the merged index: see merge.h. Numbers are little-endian. */
#include "backend/merge.h"

#include <endian.h>
#include <errno.h>

#include "spec/name.h"

static const char merge_magic[MERGE_HEAD] = "kxfs merged 1\n\0";

void merge_head(uint8_t ret[MERGE_HEAD])
{
	memcpy(ret, merge_magic, MERGE_HEAD);
}

bool merge_head_is_valid(const uint8_t head[MERGE_HEAD])
{
	return memcmp(head, merge_magic, MERGE_HEAD) == 0;
}

/* FNV-1a of the record's number and its first 28 bytes. */
static uint32_t merge_check(const uint8_t *bytes, uint64_t number)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < 8; i++)
		hash = (hash ^ (uint8_t)(number >> (8 * i))) * 16777619u;
	for (size_t i = 0; i < MERGE_RECORD - 4; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

static void merge_put32(uint8_t *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

static void merge_put64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

static uint32_t merge_get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static uint64_t merge_get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

void merge_encode(const struct merge_record *r, uint64_t number, uint8_t ret[MERGE_RECORD])
{
	merge_put64(ret, r->end);
	merge_put64(ret + 8, r->offset);
	merge_put32(ret + 16, r->length);
	merge_put32(ret + 20, r->log);
	merge_put32(ret + 24, r->flags);
	merge_put32(ret + 28, merge_check(ret, number));
}

int merge_decode(const uint8_t bytes[MERGE_RECORD], uint64_t number, struct merge_record *ret)
{
	if (merge_get32(bytes + 28) != merge_check(bytes, number))
		return -EINVAL;
	ret->end = merge_get64(bytes);
	ret->offset = merge_get64(bytes + 8);
	ret->length = merge_get32(bytes + 16);
	ret->log = merge_get32(bytes + 20);
	ret->flags = merge_get32(bytes + 24);
	return ret->length <= MERGE_LENGTH_MAX ? 0 : -EINVAL;
}

int merge_follow(struct merge_keys *keys, const struct merge_record *last,
		 const struct merge_record *r)
{
	uint64_t base = last ? last->end : 0;
	uint64_t most;
	struct merge_key *k;

	if (r->log >= keys->n || (r->length == 0 && !(r->flags & MERGE_NEWLINE)))
		return -EINVAL;
	k = &keys->v[r->log];
	most = (uint64_t)r->length * (1 + strlen(k->prefix)) + 1;
	if (r->offset != k->indexed || r->offset > (uint64_t)INT64_MAX - r->length)
		return -EINVAL;
	if (r->end > INT64_MAX || r->end < base + r->length || r->end - base > most)
		return -EINVAL;
	k->indexed += r->length;
	return 0;
}

bool merge_key_is_valid(const char *key, const char *prefix)
{
	return spec_name_is_file(key) && strlen(prefix) <= MERGE_PREFIX_MAX &&
	       !strpbrk(prefix, "\t\r\n");
}

int merge_keys_add(struct merge_keys *keys, const char *key, const char *prefix)
{
	struct merge_key *v = keys->v;
	struct merge_key k = {0};

	/* Doubled at each power of two. */
	if ((keys->n & (keys->n - 1)) == 0)
		v = reallocarray(v, keys->n ? 2 * keys->n : 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	keys->v = v;
	k.key = strdup(key);
	k.prefix = strdup(prefix);
	if (!k.key || !k.prefix) {
		free(k.key);
		free(k.prefix);
		return -ENOMEM;
	}
	v[keys->n++] = k;
	return 0;
}

void merge_keys_clear(struct merge_keys *keys)
{
	for (size_t i = 0; i < keys->n; i++) {
		free(keys->v[i].key);
		free(keys->v[i].prefix);
	}
	free(keys->v);
	*keys = (struct merge_keys){0};
}

int merge_keys_parse(struct merge_keys *keys, const char *text, size_t len, size_t *ret_len)
{
	const char *at = text, *end = text + len;

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		cleanup_free char *line = nl ? strndup(at, (size_t)(nl - at)) : NULL;
		char *tab;
		int err;

		if (!nl)
			break;
		if (!line)
			return -ENOMEM;
		tab = strchr(line, '\t');
		if (!tab || strlen(line) != (size_t)(nl - at))
			break;
		*tab = '\0';
		if (!merge_key_is_valid(line, tab + 1))
			break;
		err = merge_keys_add(keys, line, tab + 1);
		if (err < 0)
			return err;
		at = nl + 1;
	}
	*ret_len = (size_t)(at - text);
	return 0;
}

size_t merge_cut(const char *buf, size_t n, bool final)
{
	size_t limit = min_of(n, (size_t)MERGE_LENGTH_MAX);
	const char *nl = limit > 0 ? memrchr(buf, '\n', limit) : NULL;
	const char *cr;

	if (nl)
		return (size_t)(nl - buf) + 1;
	/* Not between '\r' and '\n': these two stay together. */
	if (n >= MERGE_LENGTH_MAX)
		return limit - (buf[limit - 1] == '\r');
	if (final || n == 0)
		return n;
	cr = memrchr(buf, '\r', n - 1);
	return cr ? (size_t)(cr - buf) + 1 : 0;
}

/* The lines of a record: each ends after '\n', or after '\r' that no '\n' follows. */
struct merge_lines {
	const char *buf;
	size_t len;
	size_t at;    /* where the next line begins */
	size_t whole; /* the end of the '\n' line that AT is in; 0: not known yet */
};

/* The end of the line that begins at AT, which moves there. */
static size_t merge_line(struct merge_lines *l)
{
	if (l->at >= l->whole) {
		const char *nl = memchr(l->buf + l->at, '\n', l->len - l->at);

		l->whole = nl ? (size_t)(nl - l->buf) + 1 : l->len;
	}
	while (l->at < l->whole) {
		const char *cr = memchr(l->buf + l->at, '\r', l->whole - l->at);

		l->at = cr ? (size_t)(cr - l->buf) + 1 : l->whole;
		if (cr && l->at < l->len && l->buf[l->at] != '\n')
			break;
	}
	return l->at;
}

struct merge_record merge_next(const struct merge_record *last, uint32_t log, uint64_t offset,
			       const char *buf, size_t length, size_t prefix_len)
{
	struct merge_record r = {.offset = offset, .length = (uint32_t)length, .log = log};
	struct merge_lines lines = {.buf = buf, .len = length};
	bool fresh = !last || (last->flags & MERGE_ENDS);

	if (!fresh && last->log != log)
		r.flags |= MERGE_NEWLINE;
	if (fresh || last->log != log || ((last->flags & MERGE_CR) && buf[0] != '\n'))
		r.flags |= MERGE_START;
	if (buf[length - 1] == '\n')
		r.flags |= MERGE_ENDS;
	if (buf[length - 1] == '\r')
		r.flags |= MERGE_CR;
	r.end = (last ? last->end : 0) + length;
	if (r.flags & MERGE_NEWLINE)
		r.end++;
	if (r.flags & MERGE_START)
		r.end += prefix_len;
	while (merge_line(&lines) < length)
		r.end += prefix_len;
	return r;
}

/* A window on a stream of bytes: the first SKIP are dropped, then at most ROOM are kept at OUT. */
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

size_t merge_render(const struct merge_record *r, uint64_t base, const char *prefix,
		    const char *buf, size_t have, uint64_t skip, char *out, size_t n)
{
	uint64_t left = r->end - base > skip ? r->end - base - skip : 0;
	struct merge_window w = {.skip = skip,
				 .out = out,
				 .room = (size_t)min_of(left, (uint64_t)n)};
	size_t total = w.room;
	struct merge_lines lines = {.buf = buf, .len = have};
	size_t prefix_len = strlen(prefix);
	bool start = r->flags & MERGE_START;

	if (r->flags & MERGE_NEWLINE)
		merge_emit(&w, "\n", 1);
	while (lines.at < have && w.room > 0) {
		size_t at = lines.at;

		if (start)
			merge_emit(&w, prefix, prefix_len);
		merge_emit(&w, buf + at, merge_line(&lines) - at);
		start = true;
	}
	memset(w.out, 0, w.room);
	return total;
}
