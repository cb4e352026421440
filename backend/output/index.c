/* SPDX-License-Identifier: MIT */
/* The index of a job's merged log; see index.h. */
#include "backend/output/index.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/work.h"
#include "backend/output/folder.h"
#include "spec/base/key_table.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

/* A power cut may damage at most this many records at the end of an index. */
#define INDEX_TORN_MAX 4096
#define OUT_FIRST      16	   /* initial capacity of OUT */
#define INDEX_KEYS_MAX (64u << 20) /* bytes of `merged.keys` */

/* A batch of records that is being written or retried. */
struct index_batch {
	char *keys; /* new lines of `merged.keys` */
	size_t keys_len, n_keys;
	uint8_t *bytes;
	size_t n; /* records */
	struct merge_record last;
	struct work work;
	bool writing;
	void (*written)(void *data, int err);
	void *data;
};

struct index {
	int dir_fd;
	char *id;
	struct merge_keys keys;
	struct key_table by_key;  /* the items of KEYS */
	size_t keys_saved;	  /* keys on disk */
	uint64_t keys_len;	  /* bytes of `merged.keys` on disk */
	struct merge_record last; /* last encoded record */
	struct index_size size;	  /* on disk */
	uint8_t *out;		  /* encoded records that are not in BATCH */
	size_t n_out, out_room;
	/*
	 * If OPEN, the last record of OUT is not encoded yet. It is OPEN_CHUNK of log OPEN_LOG, and
	 * may still grow.
	 */
	bool open;
	uint32_t open_log;
	struct chunk open_chunk;
	struct index_batch batch;
};

/* --- loading --- */

int index_read_keys(int dir_fd, const char *id, struct merge_keys *ret, uint64_t *ret_len)
{
	cleanup_fd int fd = folder_open(dir_fd, id, NULL, "merged.keys", O_RDONLY);
	cleanup_free char *text = NULL;
	size_t len;
	int err = fd < 0 ? fd : file_read_fd(fd, INDEX_KEYS_MAX, &text, &len);

	if (err == 0)
		*ret_len = merge_keys_parse(ret, text, len);
	return err;
}

static const char *key_of(const void *item)
{
	const struct merge_key *k = item;

	return k->key;
}

/* Add the loaded keys to BY_KEY. Return false if a key occurs twice, which means damage. */
static bool index_list_keys(struct index *x)
{
	for (size_t i = 0; i < x->keys.n; i++) {
		if (key_table_find(&x->by_key, x->keys.v[i]->key))
			return false;
		key_table_add(&x->by_key, x->keys.v[i]);
	}
	return true;
}

static void index_clear_keys(struct index *x)
{
	key_table_clear(&x->by_key);
	merge_keys_clear(&x->keys);
}

static uint64_t index_place(uint64_t number)
{
	return MERGE_HEAD + number * MERGE_RECORD;
}

static int index_log_sizes(struct index *x)
{
	char path[FOLDER_PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < x->keys.n; i++) {
		struct merge_key *k = x->keys.v[i];
		int err = folder_path(path, x->id, "logs", k->key) ? disk_stat(x->dir_fd, path, &st)
								   : -ENOENT;

		if (err < 0 && err != -ENOENT)
			return err;
		k->size = err < 0 ? 0 : (uint64_t)st.st_size;
	}
	return 0;
}

/*
 * Read the records up to the first one that is implausible, or that refers to bytes that a power
 * cut has lost. New records will replace the rest.
 */
static int index_load_records(struct index *x, int fd)
{
	uint8_t bytes[512 * MERGE_RECORD];
	struct merge_record r;
	ssize_t n = index_log_sizes(x);

	if (n == 0)
		n = disk_pread(fd, bytes, MERGE_HEAD, 0);
	if (n < 0)
		return (int)n;
	if (n < MERGE_HEAD || memcmp(bytes, merge_head, MERGE_HEAD) != 0)
		return 0;
	for (;;) {
		n = disk_pread(fd, bytes, sizeof(bytes), index_place(x->size.records));
		if (n < 0)
			return (int)n;
		if (n < MERGE_RECORD)
			return 0;
		for (const uint8_t *at = bytes; n >= MERGE_RECORD; n -= MERGE_RECORD) {
			if (merge_decode(at, x->size.records, &r) < 0 || r.log >= x->keys.n ||
			    r.offset + r.length > x->keys.v[r.log]->size ||
			    merge_follow(&x->keys, &x->last, &r) < 0)
				return 0;
			at += MERGE_RECORD;
			x->last = r;
			x->size.records++;
		}
	}
}

static int index_load_file(struct index *x, bool sync)
{
	cleanup_fd int fd = folder_open(x->dir_fd, x->id, NULL, "merged", O_RDWR);
	uint64_t whole;
	struct stat st;
	int err;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = index_load_records(x, fd);
	if (err == 0)
		err = disk_stat(fd, "", &st);
	if (err)
		return err;
	/*
	 * Remove the invalid records at the end, and sync the file. Otherwise a power cut could
	 * restore them after the logs have got other bytes at their offsets.
	 */
	whole = index_place(x->size.records);
	if ((uint64_t)st.st_size > whole) {
		diag(DIAG_WARNING,
		     "%s: its merged log had an incomplete end; kxfs rebuilds this end", x->id);
		err = disk_truncate(fd, x->size.records ? whole : 0);
		sync = true;
	}
	if (err == 0 && sync)
		err = disk_sync_data(fd);
	if (err < 0)
		return err;
	x->size.end = x->last.end;
	x->size.stamps = x->last.stamps;
	x->size.mtime = spec_time_of(st.st_mtim);
	return 0;
}

static int index_load_keys(struct index *x)
{
	int err = index_read_keys(x->dir_fd, x->id, &x->keys, &x->keys_len);

	if (err < 0 && err != -ENOENT && err != -EFBIG)
		return err;
	if (err == -EFBIG || !index_list_keys(x)) {
		diag(DIAG_WARNING, "%s: its merged log is damaged; kxfs rebuilds it", x->id);
		index_clear_keys(x);
		x->keys_len = 0;
	}
	x->keys_saved = x->keys.n;
	return 0;
}

int index_load(int dir_fd, const char *id, bool sync, struct index **ret)
{
	struct index *x = new0(struct index);
	int err;

	x->dir_fd = dir_fd;
	x->id = text_copy(id);
	x->last = merge_start;
	x->by_key = (struct key_table){.key = key_of};
	err = index_load_keys(x);
	if (err == 0)
		err = index_load_file(x, sync);
	if (err == 0)
		*ret = x;
	else
		index_free(x);
	return err;
}

void index_free(struct index *x)
{
	if (!x)
		return;
	assert(!x->batch.writing);
	index_clear_keys(x);
	free(x->batch.keys);
	free(x->batch.bytes);
	free(x->out);
	free(x->id);
	free(x);
}

int index_size_read(int fd, struct index_size *ret)
{
	uint8_t bytes[MERGE_RECORD];
	struct merge_record r;
	struct stat st;
	ssize_t got;
	uint64_t n;
	int err = disk_stat(fd, "", &st);

	*ret = (struct index_size){0};
	if (err < 0)
		return err;
	ret->mtime = spec_time_of(st.st_mtim);
	got = disk_pread(fd, bytes, MERGE_HEAD, 0);
	if (got < 0)
		return (int)got;
	if (got < MERGE_HEAD || memcmp(bytes, merge_head, MERGE_HEAD) != 0)
		return 0;
	/* If the head was written after disk_stat, st_size is too small. */
	n = (max_of((uint64_t)st.st_size, (uint64_t)MERGE_HEAD) - MERGE_HEAD) / MERGE_RECORD;
	for (unsigned i = 0; n > 0 && i < INDEX_TORN_MAX; i++, n--) {
		got = disk_pread(fd, bytes, MERGE_RECORD, index_place(n - 1));
		if (got < 0)
			return (int)got;
		if (got < MERGE_RECORD || merge_decode(bytes, n - 1, &r) < 0)
			continue;
		ret->records = n;
		ret->end = r.end;
		ret->stamps = r.stamps;
		return 0;
	}
	return 0;
}

/* --- in memory --- */

uint32_t index_number(struct index *x, const char *key, const char *prefix)
{
	struct merge_key *k = key_table_find(&x->by_key, key);

	if (!k) {
		k = merge_keys_add(&x->keys, key, prefix);
		key_table_add(&x->by_key, k);
	}
	return k->number;
}

uint64_t index_indexed(const struct index *x, uint32_t number)
{
	return x->keys.v[number]->indexed;
}

uint64_t index_appended(const struct index *x)
{
	return x->size.records + x->batch.n + x->n_out;
}

size_t index_room(const struct index *x)
{
	return INDEX_WAITING_MAX - x->n_out;
}

const struct index_size *index_written(const struct index *x)
{
	return &x->size;
}

uint64_t index_bytes(const struct index *x)
{
	return x->size.records > 0 ? index_place(x->size.records) + x->keys_len : 0;
}

/* Encode R into the space that index_grow has added to OUT. */
static void index_put(struct index *x, const struct merge_record *r)
{
	merge_encode(r, index_appended(x) - 1, x->out + (x->n_out - 1) * MERGE_RECORD);
	x->last = *r;
}

/* Encode the open record, so that it can't grow any more. */
static void index_close(struct index *x)
{
	struct merge_record r;

	if (!x->open)
		return;
	r = merge_next(&x->last, x->open_log, &x->open_chunk,
		       strlen(x->keys.v[x->open_log]->prefix));
	index_put(x, &r);
	x->open = false;
}

static void index_grow(struct index *x)
{
	if (x->n_out == x->out_room) {
		x->out_room = max_of(2 * x->out_room, (size_t)OUT_FIRST);
		x->out = mem_grow(x->out, x->out_room, MERGE_RECORD);
	}
	x->n_out++;
}

void index_append(struct index *x, uint32_t number, const struct chunk *p)
{
	struct merge_key *k = x->keys.v[number];

	assert(p->from == k->indexed && p->length > 0 && index_room(x) > 0);
	k->indexed += p->length;
	if (x->open && x->open_log == number && chunk_join(&x->open_chunk, p))
		return;
	index_close(x);
	index_grow(x);
	x->open = true;
	x->open_log = number;
	x->open_chunk = *p;
}

bool index_end_line(struct index *x)
{
	struct merge_record r;

	index_close(x);
	r = x->last;
	if (r.flags & MERGE_ENDS || index_room(x) == 0)
		return false;
	r.offset = x->keys.v[r.log]->indexed;
	r.length = 0;
	r.flags = MERGE_NEWLINE | MERGE_ENDS;
	r.end++;
	index_grow(x);
	index_put(x, &r);
	return true;
}

/* --- writing, on the pool --- */

static int index_write_keys(const struct index *x)
{
	cleanup_fd int fd = -1;
	int err;

	if (x->batch.keys_len == 0)
		return 0;
	fd = folder_open(x->dir_fd, x->id, NULL, "merged.keys", O_WRONLY | O_CREAT);
	if (fd < 0)
		return fd;
	/* Remove an incomplete last line, because it would become a part of the next line. */
	err = disk_truncate(fd, x->keys_len);
	return err < 0 ? err
		       : file_pwrite_all(fd, x->batch.keys, x->batch.keys_len, (off_t)x->keys_len);
}

static int index_write_records(const struct index *x)
{
	cleanup_fd int fd = folder_open(x->dir_fd, x->id, NULL, "merged", O_WRONLY | O_CREAT);
	int err = min_of(fd, 0);

	if (err == 0 && x->size.records == 0)
		err = file_pwrite_all(fd, (const char *)merge_head, MERGE_HEAD, 0);
	if (err < 0)
		return err;
	return file_pwrite_all(fd, (const char *)x->batch.bytes, x->batch.n * MERGE_RECORD,
			       (off_t)index_place(x->size.records));
}

static void index_work(void *data)
{
	struct index *x = data;
	int err = index_write_keys(x);

	x->batch.work.err = err < 0 ? err : index_write_records(x);
}

/* --- writing, on the I/O thread --- */

static void index_done(void *data)
{
	struct index *x = data;
	struct index_batch *b = &x->batch;

	b->writing = false;
	if (b->work.err == 0) {
		x->keys_saved = b->n_keys;
		x->keys_len += b->keys_len;
		x->size.records += b->n;
		x->size.end = b->last.end;
		x->size.stamps = b->last.stamps;
		x->size.mtime = loop_time_ns();
		b->n = 0;
		/* Most logs are silent most of the time, so do not keep the buffer. */
		free(take_ptr(b->bytes));
	}
	return b->written(b->data, b->work.err);
}

void index_write(struct index *x, struct group *group, void (*written)(void *data, int err),
		 void *data)
{
	struct index_batch *b = &x->batch;
	FILE *f;

	if (b->writing || (b->n == 0 && x->n_out == 0))
		return;
	if (b->n == 0) {
		index_close(x);
		b->bytes = take_ptr(x->out);
		b->n = x->n_out;
		b->last = x->last;
		x->n_out = x->out_room = 0;
		/* Write the keys that are not on disk yet into B->keys. */
		free(take_ptr(b->keys));
		f = text_stream(&b->keys, &b->keys_len);
		for (size_t i = x->keys_saved; i < x->keys.n; i++)
			fprintf(f, "%s\t%s\n", x->keys.v[i]->key, x->keys.v[i]->prefix);
		text_stream_close(f);
		b->n_keys = x->keys.n;
	}
	b->written = written;
	b->data = data;
	b->writing = true;
	b->work = (struct work){.run = index_work, .done = index_done, .data = x, .group = group};
	work_start(&b->work, group->loop);
}
