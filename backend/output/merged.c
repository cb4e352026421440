/* SPDX-License-Identifier: MIT */
/* Reads a merged log; see merged.h. */
#include "backend/output/merged.h"

#include <errno.h>
#include <fcntl.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/output/folder.h"
#include "spec/base/mem.h"

#define MERGED_BATCH 64	 /* records read in one call */
#define MERGED_KEPT  64	 /* limit of logs with open descriptors, and of stampers in one read */
#define MERGED_HELD  512 /* the same limit for logs, while the job is being removed */

struct merged_log {
	char *key;
	char *prefix;
	int fd, lines_fd; /* negative if not open; under the lock */
};

struct merged {
	struct lock *lock;
	int dir_fd;
	char *id;
	int fd; /* of the index; -1 until it is needed; under the lock */
	/* The lock protects the array. The logs remain valid until merged_free. */
	struct merged_log **logs;
	size_t n_logs;
	size_t n_kept;	  /* logs with descriptors; under the lock */
	uint64_t hint[2]; /* by form: the record that was read last; under the lock */
};

struct merged *merged_new(struct lock *lock, int dir_fd, const char *id)
{
	struct merged *m = new0(struct merged);

	m->lock = lock;
	m->dir_fd = dir_fd;
	m->id = text_copy(id);
	m->fd = -1;
	return m;
}

void merged_free(struct merged *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_logs; i++) {
		base_close_fd(&m->logs[i]->fd);
		base_close_fd(&m->logs[i]->lines_fd);
		free(m->logs[i]->key);
		free(m->logs[i]->prefix);
		free(m->logs[i]);
	}
	free(m->logs);
	base_close_fd(&m->fd);
	free(m->id);
	free(m);
}

uint64_t merged_size(const struct index_size *size, enum log_form form)
{
	return size->end + (form == LOG_STAMPED ? STAMP * size->stamps : 0);
}

static int merged_index(struct merged *m)
{
	cleanup_fd int fd = -1;

	{
		lock_scope(m->lock);
		if (m->fd >= 0)
			return m->fd;
	}
	fd = folder_open(m->dir_fd, m->id, NULL, "merged", O_RDONLY);
	if (fd < 0)
		return fd;
	lock_scope(m->lock);
	if (m->fd < 0)
		m->fd = take_fd(&fd);
	return m->fd; /* another thread may have opened it meanwhile */
}

/* Return the offset in the merged log, in FORM, at which R's rendering ends. */
static uint64_t record_end(const struct merge_record *r, enum log_form form)
{
	return r->end + (form == LOG_STAMPED ? STAMP * r->stamps : 0);
}

static int merged_record(int fd, uint64_t i, struct merge_record *ret)
{
	uint8_t bytes[MERGE_RECORD];
	ssize_t n = file_read_at(fd, bytes, sizeof(bytes), MERGE_HEAD + i * MERGE_RECORD);

	if (n < 0)
		return (int)n;
	return n < MERGE_RECORD || merge_decode(bytes, i, ret) < 0 ? -EBADMSG : 0;
}

/*
 * Find the first record whose rendering ends after OFF. Set *RET_I to its number, and *RET_BASE to
 * the offset at which its rendering begins. HINT is a guess of the number.
 */
static int merged_find(int fd, const struct index_size *size, enum log_form form, uint64_t hint,
		       uint64_t off, uint64_t *ret_i, uint64_t *ret_base)
{
	uint64_t low = 0, high = size->records; /* the record's number is in [low, high) */
	uint64_t mid = hint < high ? hint : high / 2;
	struct merge_record r = {0};

	*ret_base = 0;
	while (low < high) {
		int err = merged_record(fd, mid, &r);

		if (err < 0)
			return err;
		if (record_end(&r, form) <= off) {
			low = mid + 1;
			*ret_base = record_end(&r, form);
			/* For sequential readers, first try the record after HINT. */
			mid = mid == hint && low < high ? low : low + (high - low) / 2;
		} else {
			high = mid;
			mid = mid == hint && mid > low ? mid - 1 : low + (high - low) / 2;
		}
	}
	*ret_i = low;
	return low < size->records ? 0 : -EBADMSG;
}

static int merged_load_logs(struct merged *m)
{
	cleanup(merge_keys_clear) struct merge_keys keys = {0};
	uint64_t len;
	int err = index_read_keys(m->dir_fd, m->id, &keys, &len);

	if (err < 0)
		return err;
	lock_scope(m->lock);
	if (keys.n > m->n_logs)
		m->logs = mem_grow(m->logs, keys.n, sizeof(void *));
	for (; m->n_logs < keys.n; m->n_logs++) {
		struct merged_log *l = m->logs[m->n_logs] = new0(struct merged_log);

		l->key = take_ptr(keys.v[m->n_logs]->key);
		l->prefix = take_ptr(keys.v[m->n_logs]->prefix);
		l->fd = l->lines_fd = -1;
	}
	return 0;
}

static struct merged_log *merged_have(struct merged *m, uint32_t number)
{
	lock_scope(m->lock);
	return number < m->n_logs ? m->logs[number] : NULL;
}

static int merged_log(struct merged *m, uint32_t number, struct merged_log **ret)
{
	int err = 0;

	*ret = merged_have(m, number);
	if (!*ret)
		err = merged_load_logs(m);
	if (!*ret && err == 0)
		*ret = merged_have(m, number);
	return err < 0 ? err : *ret ? 0 : -EBADMSG;
}

/*
 * Get descriptors of L and of its table of lines (negative if there is none). M keeps those of at
 * most KEEP logs. If *RET_OWN, the caller must close them.
 */
static int merged_open(struct merged *m, struct merged_log *l, size_t keep, int *ret_fd,
		       int *ret_lines_fd, bool *ret_own)
{
	*ret_own = false;
	{
		lock_scope(m->lock);
		*ret_fd = l->fd;
		*ret_lines_fd = l->lines_fd;
		if (l->fd >= 0)
			return 0;
	}
	*ret_fd = folder_open(m->dir_fd, m->id, "logs", l->key, O_RDONLY);
	if (*ret_fd < 0)
		return *ret_fd;
	*ret_lines_fd = folder_open(m->dir_fd, m->id, "lines", l->key, O_RDONLY);
	lock_scope(m->lock);
	*ret_own = l->fd >= 0 || m->n_kept >= keep;
	if (*ret_own)
		return 0;
	l->fd = *ret_fd;
	l->lines_fd = *ret_lines_fd;
	m->n_kept++;
	return 0;
}

void merged_hold(struct merged *m)
{
	struct merged_log *l;

	if (merged_index(m) < 0)
		return;
	for (uint32_t i = 0; i < MERGED_HELD && merged_log(m, i, &l) == 0; i++) {
		int fd, lines_fd;
		bool own;

		if (merged_open(m, l, MERGED_HELD, &fd, &lines_fd, &own) == 0 && own) {
			close(fd);
			base_close_fd(&lines_fd);
		}
	}
}

/* One read. Several threads may read at the same time. */
struct merged_read {
	struct merged *m;
	enum log_form form;
	char *src; /* for the bytes of a record */
	char *out;
	size_t n;    /* space left in OUT */
	uint64_t at; /* offset of the next byte in the merged log */
	struct stamper *stampers[MERGED_KEPT];
};

static struct stamper *read_stamper(struct merged_read *m, uint32_t number, int lines_fd)
{
	struct stamper **s = &m->stampers[number % MERGED_KEPT];

	if (*s && (*s)->lines.fd == lines_fd)
		return *s;
	free(*s);
	return *s = stamper_new(lines_fd);
}

static int read_record(struct merged_read *m, const struct merge_record *r, uint64_t base)
{
	struct merge_style style = {0};
	struct merged_log *l;
	uint64_t total = record_end(r, m->form) - base;
	size_t want, n;
	ssize_t got;
	bool whole;
	int fd = -1, lines_fd = -1, err;
	bool own = false;

	err = merged_log(m->m, r->log, &l);
	if (err == 0)
		err = merged_open(m->m, l, MERGED_KEPT, &fd, &lines_fd, &own);
	if (err < 0)
		return err;
	/* Each byte of a log adds at least one byte to the rendering, so this is enough. */
	want = (size_t)min_of((uint64_t)r->length, m->at - base + m->n);
	got = file_read_sure(fd, m->src, want, r->offset);
	style.prefix = l->prefix;
	if (m->form == LOG_STAMPED) {
		style.stamp = stamper_stamp;
		style.data = read_stamper(m, r->log, lines_fd);
	}
	n = merge_render(r, total, &style, m->src, (size_t)max_of(got, (ssize_t)0), m->at - base,
			 m->out, m->n);
	whole = n == min_of(total - (m->at - base), (uint64_t)m->n);
	if (own) {
		close(fd);
		base_close_fd(&lines_fd);
		free(take_ptr(m->stampers[r->log % MERGED_KEPT]));
	}
	m->out += n;
	m->n -= n;
	m->at += n;
	/* The disk has lost bytes of the record, or can't return them now. The reader may retry. */
	return whole ? 0 : got < 0 ? (int)got : -EBADMSG;
}

/* Render records from record I on, until OUT is full. The rendering of record I begins at BASE. */
static int read_records(struct merged_read *m, int fd, const struct index_size *size, uint64_t i,
			uint64_t base)
{
	uint8_t bytes[MERGED_BATCH * MERGE_RECORD];
	struct merge_record r = {0};

	while (m->n > 0 && i < size->records) {
		uint64_t want = min_of(size->records - i, (uint64_t)MERGED_BATCH);
		ssize_t got =
			disk_pread(fd, bytes, want * MERGE_RECORD, MERGE_HEAD + i * MERGE_RECORD);

		if (got < MERGE_RECORD)
			return got < 0 ? (int)got : -EBADMSG;
		for (const uint8_t *at = bytes; got >= MERGE_RECORD && m->n > 0; i++) {
			bool good = merge_decode(at, i, &r) == 0 && record_end(&r, m->form) >= base;
			int err = good ? read_record(m, &r, base) : -EBADMSG;

			if (err < 0)
				return err;
			base = record_end(&r, m->form);
			at += MERGE_RECORD;
			got -= MERGE_RECORD;
		}
	}
	lock_scope(m->m->lock);
	m->m->hint[m->form] = i > 0 ? i - 1 : 0;
	return 0;
}

ssize_t merged_read(struct merged *m, const struct index_size *size, enum log_form form, char *buf,
		    size_t n, uint64_t off)
{
	struct merged_read r = {.m = m, .form = form, .out = buf, .at = off};
	uint64_t end = merged_size(size, form), hint, i, base;
	cleanup_free char *src = NULL;
	int err, fd;

	if (off >= end)
		return 0;
	r.n = (size_t)min_of((uint64_t)n, end - off);
	/* A record never has more bytes than the merged log. */
	src = mem_grow(NULL, (size_t)min_of(size->end, (uint64_t)MERGE_LENGTH_MAX), 1);
	r.src = src;
	{
		lock_scope(m->lock);
		hint = m->hint[form];
	}
	fd = merged_index(m);
	err = fd < 0 ? fd : merged_find(fd, size, form, hint, off, &i, &base);
	if (err == 0)
		err = read_records(&r, fd, size, i, base);
	for (size_t k = 0; k < MERGED_KEPT; k++)
		free(r.stampers[k]);
	/* After a partial read, the next call returns the error. */
	return r.at > off ? (ssize_t)(r.at - off) : err;
}
