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
	const char *buf;
	size_t len;
	size_t at;    /* where the next line begins */
	size_t whole; /* offset after the next '\n', or LEN; merge_line sets it */
};

/* Move AT to the next line, and return it. */
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

/* --- many short lines --- */

/*
 * Find all line ends in a block at the same time, and copy lines in steps of a fixed length.
 * Calling memchr and memcpy for each line would take three times as long.
 */
#define MERGE_STEP  16 /* bytes that are compared, or copied, in one step */
#define MERGE_BLOCK 64 /* bytes of a block */

typedef uint8_t merge_bytes __attribute__((vector_size(MERGE_STEP)));

/* Return a mask with one bit for each byte of V. Each byte must be 0 or 255. */
static inline uint64_t merge_bits(merge_bytes v)
{
#ifdef __SSE2__
	typedef char chars __attribute__((vector_size(MERGE_STEP)));

	return (uint64_t)(unsigned)__builtin_ia32_pmovmskb128((chars)v);
#else
	uint64_t bits = 0;

	for (unsigned i = 0; i < MERGE_STEP; i++)
		bits |= (uint64_t)(v[i] & 1) << i;
	return bits;
#endif
}

static inline merge_bytes merge_load(const char *at)
{
	merge_bytes v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* Return a mask of the bytes in BLOCK that end a line. At least one more byte must follow BLOCK. */
static inline uint64_t merge_ends(const char *block)
{
	uint64_t nl = 0, cr = 0;
	merge_bytes any = {0};

	for (unsigned i = 0; i < MERGE_BLOCK; i += MERGE_STEP) {
		merge_bytes v = merge_load(block + i);

		nl |= merge_bits((merge_bytes)(v == '\n')) << i;
		any |= (merge_bytes)(v == '\r');
	}
	if (merge_bits(any) == 0)
		return nl;
	for (unsigned i = 0; i < MERGE_BLOCK; i += MERGE_STEP)
		cr |= merge_bits((merge_bytes)(merge_load(block + i) == '\r')) << i;
	return nl | (cr & ~(nl >> 1 | (uint64_t)(block[MERGE_BLOCK] == '\n') << 63));
}

/* A prefix. The unused bytes after it allow code to copy whole steps. */
struct merge_prefix {
	size_t len;
	char text[MERGE_PREFIX_MAX + MERGE_STEP];
};

/* The fields of merge_window and merge_lines that merge_run changes. */
struct merge_run {
	const char *line; /* the next line */
	char *out, *out_end;
	uint64_t skip;
};

/* Drop the next line, which ends before NEXT. Return false if a part of it must be kept. */
static inline bool merge_drop_line(struct merge_run *run, const struct merge_prefix *prefix,
				   const char *next)
{
	uint64_t n = prefix->len + (uint64_t)(next - run->line);

	if (run->skip < n)
		return false;
	run->skip -= n;
	run->line = next;
	return true;
}

/*
 * Copy the next line, which ends before NEXT, with its prefix. At least MERGE_BLOCK bytes of the
 * buffer must follow NEXT. Return false if OUT has no space.
 */
static inline bool merge_copy_line(struct merge_run *run, const struct merge_prefix *prefix,
				   const char *next)
{
	size_t n = (size_t)(next - run->line);

	/* Whole steps may write more bytes than the line has. */
	if ((size_t)(run->out_end - run->out) < prefix->len + n + 2 * MERGE_STEP)
		return false;
	memcpy(run->out, prefix->text, MERGE_STEP);
	for (size_t i = MERGE_STEP; i < prefix->len; i += MERGE_STEP)
		memcpy(run->out + i, prefix->text + i, MERGE_STEP);
	run->out += prefix->len;
	memcpy(run->out, run->line, 2 * MERGE_STEP);
	for (size_t i = 2 * MERGE_STEP; i < n; i += MERGE_STEP)
		memcpy(run->out + i, run->line + i, MERGE_STEP);
	run->out += n;
	run->line = next;
	return true;
}

typedef bool (*merge_line_fn)(struct merge_run *run, const struct merge_prefix *prefix,
			      const char *next);

/* Call FN for each line that ends in BLOCK. If FN returns false, return false immediately. */
static inline bool merge_block(struct merge_run *run, const struct merge_prefix *prefix,
			       const char *block, merge_line_fn fn)
{
	for (uint64_t ends = merge_ends(block); ends; ends &= ends - 1) {
		if (!fn(run, prefix, block + (unsigned)__builtin_ctzll(ends) + 1))
			return false;
	}
	return true;
}

/*
 * Render lines a block at a time: drop those that W skips, then copy lines. The caller must render
 * the remaining lines.
 */
static void merge_run(struct merge_window *w, struct merge_lines *l,
		      const struct merge_prefix *prefix)
{
	struct merge_run run = {l->buf + l->at, w->out, w->out + w->room, w->skip};
	const char *block = run.line, *end = l->buf + l->len;

	while (run.skip > 0 && end - block >= 2 * MERGE_BLOCK &&
	       merge_block(&run, prefix, block, merge_drop_line))
		block += MERGE_BLOCK;
	if (run.skip == 0)
		block = run.line;
	while (run.skip == 0 && end - block >= 2 * MERGE_BLOCK &&
	       merge_block(&run, prefix, block, merge_copy_line))
		block += MERGE_BLOCK;
	l->at = (size_t)(run.line - l->buf);
	w->out = run.out;
	w->room = (size_t)(run.out_end - run.out);
	w->skip = run.skip;
}

size_t merge_render(const struct merge_record *r, uint64_t total, const struct merge_style *style,
		    const char *buf, size_t have, uint64_t skip, char *out, size_t n)
{
	uint64_t left = total > skip ? total - skip : 0;
	struct merge_window w = {.skip = skip,
				 .out = out,
				 .room = (size_t)min_of(left, (uint64_t)n)};
	const size_t room = w.room;
	struct merge_lines lines = {.buf = buf, .len = have};
	struct merge_prefix prefix;
	bool start = r->flags & MERGE_START, line = r->flags & MERGE_LINE;

	prefix.len = strlen(style->prefix);
	memcpy(prefix.text, style->prefix, prefix.len);
	memset(prefix.text + prefix.len, 0, MERGE_STEP);
	if (r->flags & MERGE_NEWLINE)
		merge_emit(&w, "\n", 1);
	while (lines.at < have && w.room > 0) {
		size_t at;

		if (start && !style->stamp)
			merge_run(&w, &lines, &prefix);
		at = lines.at;
		if (line && style->stamp)
			merge_stamp(&w, style, r->offset + at);
		if (start)
			merge_emit(&w, prefix.text, prefix.len);
		merge_emit(&w, buf + at, merge_line(&lines) - at);
		start = true;
		line = buf[lines.at - 1] == '\n';
	}
	return room - w.room;
}
