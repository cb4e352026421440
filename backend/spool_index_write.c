/* SPDX-License-Identifier: MIT */
/*
 * Writing the records that spool_pump.c makes, on the pool, a batch of a job at a time, so that a disk that stands
 * still holds up nobody but this merged log. What can't be written (a full disk) stays in memory, at
 * most SPOOL_OUT_MAX records a job; logs themselves are not touched here, so nothing of them is ever lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <time.h>

#include "backend/spool_impl.h"

struct index_batch {
	struct spool *spool; /* a reference */
	struct spool_job *j; /* NULL: it is gone, or has been told */
	char *id;
	char *keys; /* new lines of the table of keys */
	size_t keys_len, n_keys;
	uint64_t keys_at;
	uint8_t bytes[SPOOL_OUT_MAX * MERGE_RECORD];
	size_t n;
	uint64_t at;  /* the number of the first */
	uint64_t end; /* of the merged log, with them */
	int err;
	sem_t written;
};

/* --- on the pool --- */

static int index_open(const struct index_batch *b, const char *name)
{
	char path[SPOOL_PATH_MAX];
	int fd;

	if (!spool_name(path, b->id, NULL, name))
		return -ENAMETOOLONG;
	fd = openat(b->spool->dir_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

static int index_write_at(int fd, const void *bytes, size_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t done = pwrite(fd, bytes, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		bytes = (const char *)bytes + done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
	return 0;
}

static int index_write_keys(const struct index_batch *b)
{
	cleanup_fd int fd = -1;

	if (b->keys_len == 0)
		return 0;
	fd = index_open(b, "merged.keys");
	if (fd < 0)
		return fd;
	/* Torn text behind it would be read as part of it. */
	if (ftruncate(fd, (off_t)b->keys_at) < 0)
		return -errno;
	return index_write_at(fd, b->keys, b->keys_len, b->keys_at);
}

static int index_write_records(const struct index_batch *b)
{
	uint8_t head[MERGE_HEAD];
	cleanup_fd int fd = index_open(b, "merged");
	int err;

	if (fd < 0)
		return fd;
	if (b->at == 0) {
		merge_head(head);
		err = index_write_at(fd, head, sizeof(head), 0);
		if (err < 0)
			return err;
	}
	return index_write_at(fd, b->bytes, b->n * MERGE_RECORD, MERGE_HEAD + b->at * MERGE_RECORD);
}

static void index_work(void *data)
{
	struct index_batch *b = data;

	b->err = index_write_keys(b);
	if (b->err == 0)
		b->err = index_write_records(b);
	sem_post(&b->written);
}

/* --- on the I/O thread --- */

/* Show readers what is on disk now: N records more, with which the merged log ends at END. */
static void index_publish(struct spool_job *j, size_t n, uint64_t end, bool ended)
{
	struct log *log;

	{
		lock_scope(&j->spool->lock);
		j->records += n;
		j->size = end;
		if (n > 0)
			j->mtime = loop_time_ns();
		j->ended = ended;
		log = j->log;
		if (log) {
			log->refs++;
			log->records = j->records;
			log->end = j->size;
			log->mtime = j->mtime;
			atomic_store(&log->ended, ended);
		}
	}
	atomic_fetch_add(&j->spool->bytes, (long long)(n * MERGE_RECORD));
	log_tell(log);
}

void spool_index_end(struct spool_job *j)
{
	assert(j->n_out == 0);
	index_publish(j, 0, j->size, true);
}

/* What came of B, once. */
static void index_tell(struct index_batch *b)
{
	struct spool_job *j = take_ptr(b->j);

	if (!j)
		return;
	j->batch = NULL;
	if (b->err == 0) {
		j->keys_saved = b->n_keys;
		j->keys_len += b->keys_len;
		j->n_out -= b->n;
		memmove(j->out, j->out + b->n * MERGE_RECORD, j->n_out * MERGE_RECORD);
		index_publish(j, b->n, b->end, false);
	}
	spool_pump_written(j, b->err);
}

static void index_done(void *data)
{
	struct index_batch *b = data;

	index_tell(b);
	sem_destroy(&b->written);
	spool_unref(b->spool);
	free(b->id);
	free(b->keys);
	free(b);
}

/* The keys that are not on disk. -ENOMEM. */
static int index_keys(const struct spool_job *j, struct index_batch *b)
{
	cleanup_file FILE *out = NULL;

	b->keys_at = j->keys_len;
	b->n_keys = j->keys.n;
	if (j->keys_saved == j->keys.n)
		return 0;
	out = open_memstream(&b->keys, &b->keys_len);
	if (!out)
		return -ENOMEM;
	for (size_t i = j->keys_saved; i < j->keys.n; i++)
		fprintf(out, "%s\t%s\n", j->keys.v[i].key, j->keys.v[i].prefix);
	return fflush(out) ? -ENOMEM : 0;
}

void spool_index_flush(struct spool_job *j)
{
	struct index_batch *b;

	if (j->n_out == 0 || j->batch)
		return;
	b = calloc(1, sizeof(*b));
	if (b)
		b->id = strdup(j->id);
	if (!b || !b->id || index_keys(j, b) < 0) {
		if (b) {
			free(b->id);
			free(b->keys);
		}
		free(b);
		spool_pump_written(j, -ENOMEM);
		return;
	}
	b->spool = j->spool;
	atomic_fetch_add(&b->spool->refs, 1);
	sem_init(&b->written, 0, 0);
	memcpy(b->bytes, j->out, j->n_out * MERGE_RECORD);
	b->n = j->n_out;
	b->at = j->records;
	b->end = j->last.end;
	b->j = j;
	j->batch = b;
	loop_work(j->spool->loop, index_work, index_done, b);
}

void spool_index_wait(struct spool_job *j, unsigned ms)
{
	struct index_batch *b = j->batch;
	struct timespec until;

	if (!b)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	while (sem_timedwait(&b->written, &until) < 0)
		if (errno != EINTR)
			return;
	index_tell(b);
}

void spool_index_forget(struct spool_job *j)
{
	if (j->batch)
		take_ptr(j->batch)->j = NULL;
}

void spool_index_append(struct spool_job *j, const struct merge_record *r)
{
	assert(j->n_out < SPOOL_OUT_MAX);
	merge_encode(r, j->records + j->n_out, j->out + j->n_out * MERGE_RECORD);
	j->n_out++;
	j->last = *r;
	j->has_last = true;
}
