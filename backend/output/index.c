/* SPDX-License-Identifier: MIT */
/* The index of a job's merged log: see index.h. */
#include "backend/output/index.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/output/folder.h"
#include "spec/base/mem.h"

#define INDEX_TORN_MAX 4096 /* records that may be bad at the end of an index */
#define OUT_FIRST      16   /* records that there is room for at first */

/* What is being written, or was not written and is to be tried again. */
struct index_batch {
	char *keys; /* new lines of the table of keys */
	size_t keys_len, n_keys;
	uint8_t *bytes;
	size_t n; /* records */
	struct merge_record last;
	bool writing;	/* the pool has it */
	unsigned works; /* of the pool whose end was not told yet */
	int err;
	sem_t done;
	void (*written)(void *data, int err);
	void *data;
};

struct index {
	int dir_fd;
	char *id;
	struct merge_keys keys;
	size_t keys_saved;	  /* how many of them are on disk */
	uint64_t keys_len;	  /* and how long that is */
	struct merge_record last; /* that can't be made longer */
	struct index_size size;	  /* on disk */
	uint8_t *out;		  /* records behind those of the batch */
	size_t n_out, out_room;
	/* The last of them is OPEN_PIECE of log OPEN_LOG: it may still be made longer, and is encoded then. */
	bool open;
	uint32_t open_log;
	struct piece open_piece;
	struct index_batch batch;
};

/* --- loading --- */

static int index_load_keys(struct index *x)
{
	cleanup_free char *text = NULL;
	size_t len;
	int err = folder_read(x->dir_fd, x->id, "merged.keys", &text, &len);

	if (err < 0)
		return err == -ENOENT ? 0 : err;
	x->keys_len = merge_keys_parse(&x->keys, text, len);
	x->keys_saved = x->keys.n;
	return 0;
}

/* Does a key stand there twice? Then the table is not ours. */
static bool index_is_damaged(const struct index *x)
{
	for (size_t i = 0; i < x->keys.n; i++)
		for (size_t k = 0; k < i; k++)
			if (streq(x->keys.v[i].key, x->keys.v[k].key))
				return true;
	return false;
}

static void index_forget_keys(struct index *x)
{
	diag(DIAG_WARNING, "%s: its merged log is damaged and is made again", x->id);
	merge_keys_clear(&x->keys);
	x->keys_saved = 0;
	x->keys_len = 0;
}

/* Where record NUMBER stands in `merged`. */
static uint64_t index_place(uint64_t number)
{
	return MERGE_HEAD + number * MERGE_RECORD;
}

/* Read records until the end or one that can't be right: there the index goes on. */
static int index_load_records(struct index *x, int fd)
{
	uint8_t bytes[512 * MERGE_RECORD];
	struct merge_record r;
	ssize_t n = pread(fd, bytes, MERGE_HEAD, 0);

	if (n < 0)
		return -errno;
	if (n < MERGE_HEAD || memcmp(bytes, merge_head, MERGE_HEAD) != 0)
		return 0;
	for (;;) {
		n = pread(fd, bytes, sizeof(bytes), (off_t)index_place(x->size.records));
		if (n < 0)
			return -errno;
		if (n < MERGE_RECORD)
			return 0;
		for (const uint8_t *at = bytes; n >= MERGE_RECORD; n -= MERGE_RECORD) {
			if (merge_decode(at, x->size.records, &r) < 0 ||
			    merge_follow(&x->keys, &x->last, &r) < 0)
				return 0;
			at += MERGE_RECORD;
			x->last = r;
			x->size.records++;
		}
	}
}

static int index_load_file(struct index *x)
{
	cleanup_fd int fd = folder_open(x->dir_fd, x->id, NULL, "merged", O_RDWR);
	uint64_t whole;
	struct stat st;
	int err = 0;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (x->keys_saved > 0)
		err = index_load_records(x, fd);
	if (err < 0)
		return err;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* What is torn goes: later records must not stand behind it. */
	whole = index_place(x->size.records);
	if ((uint64_t)st.st_size > whole) {
		diag(DIAG_WARNING, "%s: the end of its merged log was torn and is made again",
		     x->id);
		if (ftruncate(fd, x->size.records ? (off_t)whole : 0) < 0)
			return -errno;
	}
	x->size.end = x->last.end;
	x->size.stamps = x->last.stamps;
	x->size.mtime = folder_mtime(&st);
	return 0;
}

int index_load(int dir_fd, const char *id, struct index **ret)
{
	struct index *x = new0(struct index);
	int err;

	x->dir_fd = dir_fd;
	x->id = text_copy(id);
	x->last = merge_start;
	sem_init(&x->batch.done, 0, 0);
	err = index_load_keys(x);
	if (err == -EFBIG || (err == 0 && index_is_damaged(x))) {
		index_forget_keys(x);
		err = 0;
	}
	if (err == 0)
		err = index_load_file(x);
	if (err < 0) {
		index_free(x);
		return err;
	}
	*ret = x;
	return 0;
}

void index_free(struct index *x)
{
	if (!x)
		return;
	assert(!x->batch.writing);
	sem_destroy(&x->batch.done);
	merge_keys_clear(&x->keys);
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
	uint64_t n;

	*ret = (struct index_size){0};
	if (fstat(fd, &st) < 0)
		return -errno;
	ret->mtime = folder_mtime(&st);
	if (pread(fd, bytes, MERGE_HEAD, 0) < MERGE_HEAD ||
	    memcmp(bytes, merge_head, MERGE_HEAD) != 0)
		return 0;
	n = ((uint64_t)st.st_size - MERGE_HEAD) / MERGE_RECORD;
	for (unsigned i = 0; n > 0 && i < INDEX_TORN_MAX; i++, n--) {
		ssize_t got = pread(fd, bytes, MERGE_RECORD, (off_t)index_place(n - 1));

		if (got < 0)
			return -errno;
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
	for (size_t i = 0; i < x->keys.n; i++)
		if (streq(x->keys.v[i].key, key))
			return (uint32_t)i;
	merge_keys_add(&x->keys, key, prefix);
	return (uint32_t)x->keys.n - 1;
}

uint64_t index_indexed(const struct index *x, uint32_t number)
{
	return x->keys.v[number].indexed;
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

/* R stands at the end of what is to be written, where there is a place for it. */
static void index_put(struct index *x, const struct merge_record *r)
{
	merge_encode(r, index_appended(x) - 1, x->out + (x->n_out - 1) * MERGE_RECORD);
	x->last = *r;
}

/* The open record is not made longer any more. */
static void index_close(struct index *x)
{
	struct merge_record r;

	if (!x->open)
		return;
	r = merge_next(&x->last, x->open_log, &x->open_piece,
		       strlen(x->keys.v[x->open_log].prefix));
	index_put(x, &r);
	x->open = false;
}

/* A place for one more record at the end. */
static void index_grow(struct index *x)
{
	if (x->n_out == x->out_room) {
		x->out_room = max_of(2 * x->out_room, (size_t)OUT_FIRST);
		x->out = mem_grow(x->out, x->out_room, MERGE_RECORD);
	}
	x->n_out++;
}

void index_append(struct index *x, uint32_t number, const struct piece *p)
{
	struct merge_key *k = &x->keys.v[number];

	assert(p->from == k->indexed && p->length > 0 && index_room(x) > 0);
	k->indexed += p->length;
	if (x->open && x->open_log == number && piece_join(&x->open_piece, p))
		return;
	index_close(x);
	index_grow(x);
	x->open = true;
	x->open_log = number;
	x->open_piece = *p;
}

bool index_end_line(struct index *x)
{
	struct merge_record r;

	index_close(x);
	r = x->last;
	if (r.flags & MERGE_ENDS || index_room(x) == 0)
		return false;
	r.offset = x->keys.v[r.log].indexed;
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

	if (x->batch.keys_len == 0)
		return 0;
	fd = folder_open(x->dir_fd, x->id, NULL, "merged.keys", O_WRONLY | O_CREAT);
	if (fd < 0)
		return fd;
	/* Torn text behind it would be read as part of it. */
	if (ftruncate(fd, (off_t)x->keys_len) < 0)
		return -errno;
	return file_pwrite_all(fd, x->batch.keys, x->batch.keys_len, (off_t)x->keys_len);
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

	x->batch.err = index_write_keys(x);
	if (x->batch.err == 0)
		x->batch.err = index_write_records(x);
	sem_post(&x->batch.done);
}

/* --- writing, on the I/O thread --- */

/* What came of the batch is known: once. */
static void index_take_written(struct index *x)
{
	struct index_batch *b = &x->batch;

	if (b->n == 0 || b->err < 0)
		return;
	x->keys_saved = b->n_keys;
	x->keys_len += b->keys_len;
	x->size.records += b->n;
	x->size.end = b->last.end;
	x->size.stamps = b->last.stamps;
	x->size.mtime = loop_time_ns();
	b->n = 0;
	free(take_ptr(b->bytes)); /* most logs are silent most of the time */
}

static void index_done(void *data)
{
	struct index *x = data;

	if (--x->batch.works > 0)
		return; /* index_wait has waited for this one */
	index_take_written(x);
	x->batch.writing = false;
	return x->batch.written(x->batch.data, x->batch.err);
}

/* The keys that are not on disk, as text. */
static void index_batch_keys(struct index *x)
{
	struct index_batch *b = &x->batch;

	text_set(&b->keys, "%s", "");
	for (size_t i = x->keys_saved; i < x->keys.n; i++)
		text_set(&b->keys, "%s%s\t%s\n", b->keys, x->keys.v[i].key, x->keys.v[i].prefix);
	b->keys_len = strlen(b->keys);
	b->n_keys = x->keys.n;
}

bool index_write(struct index *x, struct loop *loop, void (*written)(void *data, int err),
		 void *data)
{
	struct index_batch *b = &x->batch;

	if (b->writing || (b->n == 0 && x->n_out == 0))
		return false;
	if (b->n == 0) {
		index_close(x);
		b->bytes = take_ptr(x->out);
		b->n = x->n_out;
		b->last = x->last;
		x->n_out = x->out_room = 0;
		index_batch_keys(x);
	}
	b->written = written;
	b->data = data;
	b->writing = true;
	b->works++;
	while (sem_trywait(&b->done) == 0)
		;
	loop_work(loop, index_work, index_done, x);
	return true;
}

bool index_wait(struct index *x, unsigned ms)
{
	struct timespec until;

	if (!x->batch.writing)
		return true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	while (sem_timedwait(&x->batch.done, &until) < 0)
		if (errno != EINTR)
			return false;
	index_take_written(x);
	x->batch.writing = false;
	return true;
}
