/* SPDX-License-Identifier: MIT */
/* The table of lines beside a log; see lines.h. */
#include "backend/output/lines.h"

#include <assert.h>
#include <errno.h>
#include <sys/stat.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/output/folder.h"
#include "spec/base/mem.h"

#define LINES_WHOLE 24 /* bytes of a whole record */

static size_t put_varint(uint8_t *to, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

/* Return the length of the varint at FROM, or 0 if it is incomplete or exceeds 64 bits. */
static size_t get_varint(const uint8_t *from, size_t len, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < min_of(len, (size_t)10); i++) {
		v |= (uint64_t)(from[i] & 0x7f) << (7 * i);
		if (from[i] < 0x80) {
			*ret = v;
			return i < 9 || from[i] < 2 ? i + 1 : 0;
		}
	}
	return 0;
}

static uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ -(v & 1));
}

static size_t put_whole(uint8_t *to, const struct lines_record *r)
{
	bytes_put64(to, r->line.at);
	bytes_put64(to + 8, (uint64_t)r->line.ns);
	bytes_put64(to + 16, r->number);
	return LINES_WHOLE;
}

static bool get_whole(const uint8_t *from, size_t len, uint64_t block, struct lines_record *ret)
{
	if (len < LINES_WHOLE)
		return false;
	ret->line.at = bytes_get64(from);
	ret->line.ns = (int64_t)bytes_get64(from + 8);
	ret->number = bytes_get64(from + 16);
	/* A power cut may leave zeros, which are a valid record only in the first block. */
	return ret->line.at <= INT64_MAX && ret->number <= ret->line.at &&
	       (block == 0 || ret->number > 0);
}

static size_t put_difference(uint8_t *to, const struct lines_record *last,
			     const struct lines_record *r)
{
	size_t n = put_varint(to, r->line.at - last->line.at);

	n += put_varint(to + n, zigzag((int64_t)((uint64_t)r->line.ns - (uint64_t)last->line.ns)));
	return n + put_varint(to + n, r->number - last->number);
}

/* True if a record may be AT bytes and NUMBER lines after LAST. Each line has at least one byte. */
static bool may_follow(const struct lines_record *last, uint64_t at, uint64_t number)
{
	return at > 0 && at <= INT64_MAX - last->line.at && number > 0 && number <= at;
}

/* Return the length of the record at FROM, or 0 if the record is not plausible. */
static size_t get_difference(const uint8_t *from, size_t len, const struct lines_record *last,
			     struct lines_record *ret)
{
	uint64_t at = 0, ns = 0, number = 0;
	size_t n_at = get_varint(from, len, &at);
	size_t n_ns = n_at ? get_varint(from + n_at, len - n_at, &ns) : 0;
	size_t n_number = n_ns ? get_varint(from + n_at + n_ns, len - n_at - n_ns, &number) : 0;

	if (!n_number || !may_follow(last, at, number))
		return 0;
	ret->line.at = last->line.at + at;
	ret->line.ns = (int64_t)((uint64_t)last->line.ns + (uint64_t)unzigzag(ns));
	ret->number = last->number + number;
	return n_at + n_ns + n_number;
}

static size_t lines_encode(struct lines_encoder *e, const struct lines_record *r, uint8_t *ret)
{
	size_t used = e->table % LINES_BLOCK, n;
	uint8_t bytes[LINES_ADDED_MAX];

	if (used > 0) {
		n = put_difference(bytes, &e->last, r);
		if (used + n <= LINES_BLOCK) {
			memcpy(ret, bytes, n);
			return n;
		}
		memset(ret, 0, LINES_BLOCK - used);
		return LINES_BLOCK - used + put_whole(ret + LINES_BLOCK - used, r);
	}
	return put_whole(ret, r);
}

size_t lines_count(const char *p, size_t n)
{
	const char *end = p + n;
	size_t lines = 0;

	while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
		p++;
		lines++;
	}
	return lines;
}

/*
 * Add N bytes with ENDS newlines to E. FIRST is the offset in these bytes of the first line that
 * begins in them; N if no line does. MIDLINE is true if the N bytes end within a line. Return the
 * number of bytes in RET, which the caller appends to the table.
 */
static size_t lines_put(struct lines_encoder *e, int64_t ns, size_t n, size_t ends, size_t first,
			bool midline, uint8_t ret[LINES_ADDED_MAX])
{
	struct lines_record r = {.line = {e->size + first, ns}, .number = e->lines};
	bool begins = first < n;
	size_t done = 0;

	/* A line of unknown time gets the time of the line before it. */
	if (begins && ns == 0 && e->any)
		r.line.ns = e->last.line.ns;
	if (begins && (!e->any || r.line.ns != e->last.line.ns ||
		       r.line.at - e->last.line.at >= LINES_SPAN)) {
		done = lines_encode(e, &r, ret);
		e->last = r;
		e->any = true;
	}
	e->table += done;
	e->lines += ends + midline - e->midline;
	e->midline = midline;
	e->size += n;
	return done;
}

size_t lines_add(struct lines_encoder *e, int64_t ns, const char *bytes, size_t n,
		 uint8_t ret[LINES_ADDED_MAX])
{
	size_t ends = lines_count(bytes, n), first = 0;

	assert(n > 0 && n <= LINES_SPAN);
	if (e->midline) {
		const char *nl = ends > 0 ? memchr(bytes, '\n', n) : NULL;

		first = nl ? (size_t)(nl - bytes) + 1 : n;
	}
	return lines_put(e, ns, n, ends, first, bytes[n - 1] != '\n', ret);
}

size_t lines_add_line(struct lines_encoder *e, int64_t ns, size_t n, bool whole,
		      uint8_t ret[LINES_ADDED_MAX])
{
	return lines_put(e, ns, n, whole, e->midline ? n : 0, !whole, ret);
}

/* Add records for the bytes of the log that the table does not cover. */
static int mend_rest(int fd, int log_fd, uint64_t size, struct lines_encoder *e)
{
	cleanup_free char *buf = mem_grow(NULL, LINES_SPAN, 1);
	uint8_t bytes[LINES_ADDED_MAX];
	int err = 0;

	while (err == 0 && e->size < size) {
		size_t want = (size_t)min_of(size - e->size, (uint64_t)LINES_SPAN);
		ssize_t n = file_read_at(log_fd, buf, want, e->size);
		uint64_t table = e->table;
		size_t len;

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		len = lines_add(e, 0, buf, (size_t)n, bytes);
		err = file_pwrite_all(fd, (const char *)bytes, len, (off_t)table);
	}
	return err;
}

int lines_mend(int fd, int log_fd, uint64_t size, struct lines_encoder *ret)
{
	struct lines_reader r;
	struct lines_record last;
	struct stat st;
	int err;

	*ret = (struct lines_encoder){0};
	lines_open(&r, fd);
	err = size > 0 ? lines_find(&r, 0, size - 1, &last) : -ENOENT;
	if (err == 0) {
		ret->any = true;
		ret->last = last;
		ret->size = last.line.at;
		ret->lines = last.number;
		ret->table = r.block * LINES_BLOCK + r.at;
	} else if (err != -ENOENT) {
		return err;
	}
	err = disk_stat(fd, "", &st);
	if (err == 0 && (uint64_t)st.st_size > ret->table) {
		err = disk_truncate(fd, ret->table);
		/*
		 * A power cut must not restore removed records, which would describe other bytes.
		 */
		if (err == 0)
			err = disk_sync_data(fd);
	}
	return err < 0 ? err : mend_rest(fd, log_fd, size, ret);
}

void lines_open(struct lines_reader *r, int fd)
{
	r->fd = fd;
	r->block = UINT64_MAX;
	r->n = r->at = 0;
	r->last = (struct lines_record){0};
}

/* Return 0, -ENOENT if BLOCK does not begin with a valid record, or another negative errno. */
static int read_block(struct lines_reader *r, uint64_t block)
{
	ssize_t n = file_read_sure(r->fd, r->bytes, LINES_BLOCK, block * LINES_BLOCK);

	if (n < 0)
		return (int)n;
	r->block = block;
	r->n = (size_t)n;
	r->at = LINES_WHOLE;
	return get_whole(r->bytes, r->n, block, &r->last) ? 0 : -ENOENT;
}

static uint64_t place_of(const struct lines_record *r, uint64_t weight)
{
	return r->line.at + weight * r->number;
}

/* Find and read the last block whose first record is not after PLACE. */
static int find_block(struct lines_reader *r, uint64_t weight, uint64_t place)
{
	/* The first block whose first record is after PLACE is in [low, high]. */
	uint64_t low = 0, high;
	struct stat st;
	int err = disk_stat(r->fd, "", &st);

	if (err < 0)
		return err;
	high = ((uint64_t)st.st_size + LINES_BLOCK - 1) / LINES_BLOCK;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		err = read_block(r, mid);
		if (err < 0 && err != -ENOENT)
			return err;
		if (err == 0 && place_of(&r->last, weight) <= place)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 ? read_block(r, low - 1) : -ENOENT;
}

int lines_find(struct lines_reader *r, uint64_t weight, uint64_t place, struct lines_record *ret)
{
	int err = find_block(r, weight, place);

	if (err < 0)
		return err;
	for (;;) {
		struct lines_record next;
		size_t n = get_difference(r->bytes + r->at, r->n - r->at, &r->last, &next);

		if (n == 0 || place_of(&next, weight) > place)
			break;
		r->last = next;
		r->at += n;
	}
	*ret = r->last;
	return 0;
}

int lines_next(struct lines_reader *r, struct lines_record *ret)
{
	struct lines_record last = r->last;
	uint64_t block = r->block;
	size_t at = r->at, n;
	int err;

	assert(block != UINT64_MAX);
	/* R->n is 0 after an error of the disk. */
	n = at < r->n ? get_difference(r->bytes + at, r->n - at, &last, ret) : 0;
	if (n == 0 && r->n < LINES_BLOCK) {
		/* The block may have grown. */
		err = read_block(r, block);
		if (err < 0)
			return err;
		r->last = last;
		r->at = at;
		n = at < r->n ? get_difference(r->bytes + at, r->n - at, &last, ret) : 0;
	}
	if (n > 0) {
		r->at = at + n;
		r->last = *ret;
		return 0;
	}
	if (r->n < LINES_BLOCK)
		return -ENOENT;
	err = read_block(r, block + 1);
	/* If a number decreases, the unsigned difference is huge, and may_follow rejects it. */
	if (err == 0 &&
	    !may_follow(&last, r->last.line.at - last.line.at, r->last.number - last.number))
		err = -ENOENT;
	if (err == 0) {
		*ret = r->last;
		return 0;
	}
	/* Move R back to the last position, so that the caller can retry. */
	if (read_block(r, block) < 0)
		r->n = 0;
	r->last = last;
	r->at = at;
	return err;
}
