/* SPDX-License-Identifier: MIT */
/*
 * Reading a merged log: find the record that an offset is in, by bisection in the index on disk (no
 * index is held in memory, whatever its size), then render record after record from the logs themselves.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/spool_impl.h"

#define MERGED_BATCH	64  /* records read at once */
#define MERGED_KEPT	64  /* descriptors that an open merged log keeps */
#define MERGED_HELD	512 /* the same once its job is being removed */
#define MERGED_KEYS_MAX (64u << 20)
#define MERGED_TORN	4096 /* records that may be bad at the end of an index */

/* --- records --- */

static int merged_record(int fd, uint64_t i, struct merge_record *ret)
{
	uint8_t bytes[MERGE_RECORD];
	ssize_t n = pread(fd, bytes, sizeof(bytes), (off_t)(MERGE_HEAD + i * MERGE_RECORD));

	if (n < 0)
		return -errno;
	if (n < MERGE_RECORD || merge_decode(bytes, i, ret) < 0)
		return -EIO;
	return 0;
}

int log_merged_tail(int fd, uint64_t *ret_records, uint64_t *ret_end)
{
	uint8_t head[MERGE_HEAD];
	struct merge_record r = {0};
	struct stat st;
	uint64_t n;
	int err;

	*ret_records = 0;
	*ret_end = 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (pread(fd, head, sizeof(head), 0) < MERGE_HEAD || !merge_head_is_valid(head))
		return 0;
	n = ((uint64_t)st.st_size - MERGE_HEAD) / MERGE_RECORD;
	for (unsigned i = 0; n > 0 && i < MERGED_TORN; i++, n--) {
		err = merged_record(fd, n - 1, &r);
		if (err == -EIO)
			continue;
		if (err < 0)
			return err;
		*ret_records = n;
		*ret_end = r.end;
		return 0;
	}
	return 0;
}

/* The first of N records that ends after OFF, and where it begins. */
static int merged_find(int fd, uint64_t n, uint64_t hint, uint64_t off, uint64_t *ret_i,
		       uint64_t *ret_base)
{
	uint64_t low = 0, high = n; /* it is in [low, high) */
	uint64_t mid = hint < n ? hint : n / 2;
	struct merge_record r = {0};
	int err;

	*ret_base = 0;
	while (low < high) {
		err = merged_record(fd, mid, &r);
		if (err < 0)
			return err;
		if (r.end <= off) {
			low = mid + 1;
			*ret_base = r.end;
			/* Who reads on is in this one or in the next. */
			mid = mid == hint && low < high ? low : low + (high - low) / 2;
		} else {
			high = mid;
			mid = mid == hint && mid > low ? mid - 1 : low + (high - low) / 2;
		}
	}
	*ret_i = low;
	return low < n ? 0 : -EIO;
}

static int merged_index_fd(struct log *log)
{
	int fd;

	{
		lock_scope(&log->spool->lock);
		if (log->fd >= 0)
			return log->fd;
	}
	fd = spool_open(log->spool, log->id, NULL, "merged");
	if (fd < 0)
		return fd;
	{
		int other;

		lock_scope(&log->spool->lock);
		other = log->fd;
		if (other < 0) {
			log->fd = fd;
			return fd;
		}
		/* Another thread was faster. */
		close(fd);
		return other;
	}
}

/* --- the logs that it is made of --- */

static void merged_source_free(struct log_source *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s->key);
	free(s->prefix);
	free(s);
}

void log_merged_clear(struct log *log)
{
	for (size_t i = 0; i < log->n_sources; i++)
		merged_source_free(log->sources[i]);
	free(log->sources);
}

/* Read the table of keys from disk. */
static int merged_keys(struct log *log, struct merge_keys *ret)
{
	cleanup_free char *text = NULL;
	cleanup_fd int fd = spool_open(log->spool, log->id, NULL, "merged.keys");
	struct stat st;
	size_t good;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > MERGED_KEYS_MAX)
		return -EIO;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = pread(fd, text, (size_t)st.st_size, 0);
	if (n < 0)
		return -errno;
	return merge_keys_parse(ret, text, (size_t)n, &good);
}

/* Take the keys that LOG does not have yet; sources that stand there never move. */
static int merged_install(struct log *log, struct merge_keys *keys)
{
	struct log_source **sources;

	lock_scope(&log->spool->lock);
	if (keys->n <= log->n_sources)
		return 0;
	sources = reallocarray(log->sources, keys->n, sizeof(struct log_source *));
	if (!sources)
		return -ENOMEM;
	log->sources = sources;
	while (log->n_sources < keys->n) {
		struct log_source *s = calloc(1, sizeof(*s));
		struct merge_key *k = &keys->v[log->n_sources];

		if (!s)
			return -ENOMEM;
		s->key = take_ptr(k->key);
		s->prefix = take_ptr(k->prefix);
		s->fd = -1;
		sources[log->n_sources++] = s;
	}
	return 0;
}

static struct log_source *merged_have(struct log *log, uint32_t number)
{
	lock_scope(&log->spool->lock);
	return number < log->n_sources ? log->sources[number] : NULL;
}

static int merged_source(struct log *log, uint32_t number, struct log_source **ret)
{
	cleanup(merge_keys_clear) struct merge_keys keys = {0};
	int err;

	*ret = merged_have(log, number);
	if (*ret)
		return 0;
	err = merged_keys(log, &keys);
	if (err == 0)
		err = merged_install(log, &keys);
	if (err < 0)
		return err;
	*ret = merged_have(log, number);
	return *ret ? 0 : -EIO;
}

/* A descriptor of S's log. *RET_OWN: the caller closes it, since LOG keeps KEEP already. */
static int merged_open_source(struct log *log, struct log_source *s, size_t keep, bool *ret_own)
{
	int fd;

	*ret_own = false;
	{
		lock_scope(&log->spool->lock);
		if (s->fd >= 0)
			return s->fd;
	}
	fd = spool_open(log->spool, log->id, "logs", s->key);
	if (fd < 0)
		return fd;
	lock_scope(&log->spool->lock);
	if (s->fd < 0 && log->n_kept < keep) {
		s->fd = fd;
		log->n_kept++;
	} else {
		*ret_own = true;
	}
	return fd;
}

void log_merged_hold(struct log *log)
{
	struct log_source *s;

	if (merged_index_fd(log) < 0)
		return;
	for (uint32_t i = 0; i < MERGED_HELD && merged_source(log, i, &s) == 0; i++) {
		bool own;
		int fd = merged_open_source(log, s, MERGED_HELD, &own);

		if (own)
			close(fd);
	}
}

/* --- reading --- */

struct merged_read {
	struct log *log;
	char *src; /* room for the bytes of a record */
	char *out;
	size_t n;    /* room left in OUT */
	uint64_t at; /* offset in the merged log of what comes next */
};

static int merged_render(struct merged_read *m, const struct merge_record *r, uint64_t base)
{
	struct log_source *s;
	size_t have = 0, n;
	bool own;
	int fd, err;

	err = merged_source(m->log, r->log, &s);
	if (err < 0)
		return err;
	fd = merged_open_source(m->log, s, MERGED_KEPT, &own);
	if (fd < 0)
		return fd;
	while (have < r->length) {
		ssize_t got = pread(fd, m->src + have, r->length - have, (off_t)(r->offset + have));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	if (own)
		close(fd);
	n = merge_render(r, base, s->prefix, m->src, have, m->at - base, m->out, m->n);
	m->out += n;
	m->n -= n;
	m->at += n;
	return 0;
}

/* Render records from I on, which begins at BASE, until there is no room. */
static int merged_fill(struct merged_read *m, int fd, uint64_t i, uint64_t base, uint64_t records)
{
	uint8_t bytes[MERGED_BATCH * MERGE_RECORD];
	struct merge_record r = {0};

	while (m->n > 0 && i < records) {
		uint64_t want = min_of(records - i, (uint64_t)MERGED_BATCH);
		ssize_t got = pread(fd, bytes, want * MERGE_RECORD,
				    (off_t)(MERGE_HEAD + i * MERGE_RECORD));

		if (got < 0)
			return -errno;
		if (got < MERGE_RECORD)
			return -EIO;
		for (const uint8_t *at = bytes; got >= MERGE_RECORD && m->n > 0; i++) {
			int err = merge_decode(at, i, &r) < 0 || r.end < base ? -EIO : 0;

			if (err == 0)
				err = merged_render(m, &r, base);
			if (err < 0)
				return err;
			base = r.end;
			at += MERGE_RECORD;
			got -= MERGE_RECORD;
		}
	}
	lock_scope(&m->log->spool->lock);
	m->log->hint = i > 0 ? i - 1 : 0;
	return 0;
}

ssize_t log_merged_read(struct log *log, char *buf, size_t n, uint64_t off)
{
	struct merged_read m = {.log = log, .out = buf, .at = off};
	uint64_t records, hint, i, base;
	cleanup_free char *src = NULL;
	int err, fd;

	{
		lock_scope(&log->spool->lock);
		if (off >= log->end)
			return 0;
		m.n = (size_t)min_of((uint64_t)n, log->end - off);
		records = log->records;
		hint = log->hint;
	}
	m.src = src = malloc(MERGE_LENGTH_MAX);
	if (!src)
		return -ENOMEM;
	fd = merged_index_fd(log);
	err = fd < 0 ? fd : merged_find(fd, records, hint, off, &i, &base);
	if (err == 0)
		err = merged_fill(&m, fd, i, base, records);
	/* What was read before an error counts; the next call meets the error. */
	if (m.at > off)
		return (ssize_t)(m.at - off);
	return err;
}
