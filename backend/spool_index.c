/* SPDX-License-Identifier: MIT */
/*
 * The merged index as it grows. Logs that may have grown stand in a queue; a turn takes a bounded
 * number of bytes of them, cuts these into records and writes the records, so that a program that
 * prints faster than anybody reads costs the loop a slice a turn. What can't be written (a full disk)
 * stays in memory, at most SPOOL_OUT_MAX records a job, and is tried again every second; logs
 * themselves are not touched here, so nothing of them is ever lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <utlist.h>

#include "backend/diag.h"
#include "backend/spool_impl.h"

#define INDEX_READ     (256u << 10) /* bytes of a log looked at in one step */
#define INDEX_TURN     (1u << 20)   /* bytes in one turn of the loop */
#define INDEX_STEPS    256	    /* steps in one turn */
#define INDEX_RETRY_MS 1000
#define INDEX_KEYS_MAX (64u << 20) /* bytes of a table of keys that is believed */

/* --- what is there at the beginning --- */

struct spool_source *spool_index_add(struct spool_job *j, const char *key, const char *prefix)
{
	struct spool_source *s = calloc(1, sizeof(*s));
	struct spool_source **by_number;

	by_number = reallocarray(j->by_number, j->keys.n + 1, sizeof(*by_number));
	if (by_number)
		j->by_number = by_number;
	if (!s || !by_number || merge_keys_add(&j->keys, key, prefix) < 0)
		goto fail;
	s->job = j;
	s->number = (uint32_t)j->keys.n - 1;
	s->key = j->keys.v[s->number].key;
	s->ended = true;
	{
		lock_scope(&j->spool->lock);
		HASH_ADD_KEYPTR(hh, j->sources, s->key, strlen(s->key), s);
	}
	if (!s->hh.tbl) {
		/* Nobody has seen the number yet. */
		struct merge_key *k = &j->keys.v[--j->keys.n];

		free(k->key);
		free(k->prefix);
		goto fail;
	}
	j->by_number[s->number] = s;
	return s;
fail:
	free(s);
	return NULL;
}

/* All of the file NAME of J; *RET_LEN is 0 if there is none. */
static int index_read_file(struct spool_job *j, const char *name, char **ret, size_t *ret_len)
{
	char path[SPOOL_PATH_MAX];
	cleanup_fd int fd = -1;
	cleanup_free char *text = NULL;
	struct stat st;
	size_t n = 0;

	*ret_len = 0;
	if (!spool_name(path, j->id, NULL, name))
		return -ENAMETOOLONG;
	fd = openat(j->spool->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > INDEX_KEYS_MAX)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = pread(fd, text + n, (size_t)st.st_size - n, (off_t)n);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret = take_ptr(text);
	*ret_len = n;
	return 0;
}

static int index_load_keys(struct spool_job *j)
{
	cleanup(merge_keys_clear) struct merge_keys keys = {0};
	cleanup_free char *text = NULL;
	size_t len, good = 0;
	int err = index_read_file(j, "merged.keys", &text, &len);

	if (err < 0)
		return err;
	err = len ? merge_keys_parse(&keys, text, len, &good) : 0;
	if (err < 0)
		return err;
	for (size_t i = 0; i < keys.n; i++) {
		if (spool_find_source(j, keys.v[i].key))
			return -EBADMSG;
		if (!spool_index_add(j, keys.v[i].key, keys.v[i].prefix))
			return -ENOMEM;
	}
	j->keys_saved = keys.n;
	j->keys_len = good;
	return 0;
}

/* Read records until the end or one that can't be right: there the index goes on. */
static int index_load_records(struct spool_job *j, int fd)
{
	uint8_t bytes[512 * MERGE_RECORD];
	struct merge_record r;
	ssize_t n = pread(fd, bytes, MERGE_HEAD, 0);

	if (n < 0)
		return -errno;
	if (n < MERGE_HEAD || !merge_head_is_valid(bytes))
		return 0;
	for (;;) {
		n = pread(fd, bytes, sizeof(bytes), (off_t)(MERGE_HEAD + j->records * MERGE_RECORD));
		if (n < 0)
			return -errno;
		if (n < MERGE_RECORD)
			return 0;
		for (const uint8_t *at = bytes; n >= MERGE_RECORD; n -= MERGE_RECORD) {
			if (merge_decode(at, j->records, &r) < 0 ||
			    merge_follow(&j->keys, j->has_last ? &j->last : NULL, &r) < 0)
				return 0;
			at += MERGE_RECORD;
			j->last = r;
			j->has_last = true;
			j->records++;
		}
	}
}

int spool_index_load(struct spool_job *j)
{
	char path[SPOOL_PATH_MAX];
	cleanup_fd int fd = -1;
	struct stat st;
	int err = index_load_keys(j);

	/* Keys that stand there twice are not ours: start from nothing. */
	if (err == -EBADMSG || err == -EFBIG) {
		diag(DIAG_WARNING, "%s: its merged log is damaged and is made again", j->id);
		j->keys_saved = 0;
		j->keys_len = 0;
	} else if (err < 0) {
		return err;
	}
	if (!spool_name(path, j->id, NULL, "merged"))
		return -ENAMETOOLONG;
	fd = openat(j->spool->dir_fd, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (j->keys_saved > 0) {
		err = index_load_records(j, fd);
		if (err < 0)
			return err;
	}
	if (fstat(fd, &st) < 0)
		return -errno;
	/* What is torn goes: later records must not stand behind it. */
	if ((uint64_t)st.st_size > MERGE_HEAD + j->records * MERGE_RECORD) {
		diag(DIAG_WARNING, "%s: the end of its merged log was torn and is made again", j->id);
		if (ftruncate(fd, j->records ? (off_t)(MERGE_HEAD + j->records * MERGE_RECORD) : 0) < 0)
			return -errno;
	}
	j->size = j->has_last ? j->last.end : 0;
	j->mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	for (size_t i = 0; i < j->keys.n; i++)
		j->by_number[i]->seen = j->keys.v[i].indexed;
	return 0;
}

/* --- writing --- */

static int index_open(struct spool_job *j, const char *name)
{
	char path[SPOOL_PATH_MAX];
	int fd;

	if (!spool_name(path, j->id, NULL, name))
		return -ENAMETOOLONG;
	fd = openat(j->spool->dir_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
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

static int index_write_keys(struct spool_job *j)
{
	cleanup_fd int fd = -1;
	cleanup_free char *text = NULL;
	cleanup_file FILE *out = NULL;
	size_t len = 0;
	int err;

	if (j->keys_saved == j->keys.n)
		return 0;
	fd = index_open(j, "merged.keys");
	if (fd < 0)
		return fd;
	out = open_memstream(&text, &len);
	if (!out)
		return -ENOMEM;
	for (size_t i = j->keys_saved; i < j->keys.n; i++)
		fprintf(out, "%s\t%s\n", j->keys.v[i].key, j->keys.v[i].prefix);
	if (fflush(out))
		return -ENOMEM;
	/* Torn text behind it would be read as part of it. */
	if (ftruncate(fd, (off_t)j->keys_len) < 0)
		return -errno;
	err = index_write_at(fd, text, len, j->keys_len);
	if (err < 0)
		return err;
	j->keys_saved = j->keys.n;
	j->keys_len += len;
	return 0;
}

static int index_write_records(struct spool_job *j)
{
	uint8_t head[MERGE_HEAD];
	cleanup_fd int fd = index_open(j, "merged");
	int err;

	if (fd < 0)
		return fd;
	if (j->records == 0) {
		merge_head(head);
		err = index_write_at(fd, head, sizeof(head), 0);
		if (err < 0)
			return err;
	}
	return index_write_at(fd, j->out, j->n_out * MERGE_RECORD,
			      MERGE_HEAD + j->records * MERGE_RECORD);
}

/* Readers see what is on disk now. */
static void index_publish(struct spool_job *j, bool ended)
{
	struct log *log;

	{
		lock_scope(&j->spool->lock);
		j->records += j->n_out;
		j->size = j->has_last ? j->last.end : 0;
		if (j->n_out > 0)
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
	atomic_fetch_add(&j->spool->bytes, (long long)(j->n_out * MERGE_RECORD));
	j->n_out = 0;
	log_tell(log);
}

static void index_on_retry(void *data);

/* J's index can't go on because of ERR, which is said once: try again. */
static void index_later(struct spool_job *j, int err)
{
	struct spool *spool = j->spool;

	if (!j->said_stuck)
		diag(DIAG_ERROR, "%s: its merged log can't be made: %s; trying again every second",
		     j->id, strerror(-err));
	j->said_stuck = true;
	if (!spool->retry && !spool->stopped)
		spool->retry =
			loop_timer_new(spool->loop, INDEX_RETRY_MS, 0, index_on_retry, spool);
}

/* Write what waits. When that fails it is tried again. */
static int index_flush(struct spool_job *j)
{
	int err;

	if (j->n_out == 0)
		return 0;
	err = index_write_keys(j);
	if (err == 0)
		err = index_write_records(j);
	if (err < 0) {
		index_later(j, err);
		return err;
	}
	j->said_stuck = false;
	index_publish(j, false);
	return 0;
}

static void index_append(struct spool_job *j, const struct merge_record *r)
{
	/* Of two records in turn one is nearly full, and one step reads no more than a few of these. */
	assert(j->n_out < SPOOL_OUT_MAX);
	merge_encode(r, j->records + j->n_out, j->out + j->n_out * MERGE_RECORD);
	j->n_out++;
	j->last = *r;
	j->has_last = true;
}

/* --- those who wait for it --- */

static bool index_is_settled(const struct spool_job *j, const struct spool_settle *w)
{
	if (j->n_out > 0)
		return false;
	for (size_t i = 0; i < w->n; i++) {
		const struct spool_source *s = j->by_number[i];

		if (s->live && s->seen < w->targets[i])
			return false;
	}
	return true;
}

static void index_settle_done(struct spool_settle *w)
{
	w->fn(w->data);
	log_unref(w->log);
	free(w->targets);
	free(w);
}

static void index_check_settles(struct spool_job *j, bool all)
{
	struct spool_settle *w, *next, *done = NULL;

	LL_FOREACH_SAFE(j->settles, w, next)
	{
		if (all || index_is_settled(j, w)) {
			LL_DELETE(j->settles, w);
			LL_APPEND(done, w);
		}
	}
	LL_FOREACH_SAFE(done, w, next)
	{
		index_settle_done(w);
	}
}

void spool_index_release(struct spool_job *j)
{
	index_check_settles(j, true);
}

void spool_index_settle(struct spool_job *j, struct spool_settle *w)
{
	w->targets = calloc(j->keys.n + 1, sizeof(*w->targets));
	if (!w->targets) {
		index_settle_done(w);
		return;
	}
	w->n = j->keys.n;
	for (size_t i = 0; i < w->n; i++) {
		struct spool_source *s = j->by_number[i];
		char path[SPOOL_PATH_MAX];
		struct stat st;

		if (!s->live || !spool_name(path, j->id, "logs", s->key) ||
		    fstatat(j->spool->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		w->targets[i] = (uint64_t)st.st_size;
		if (s->seen < w->targets[i])
			spool_index_queue(s);
	}
	LL_APPEND(j->settles, w);
	index_check_settles(j, false);
}

/* --- the end --- */

/* For readers and for who asked, S has ended. */
static void index_source_ended(struct spool_source *s)
{
	loop_fn fn = s->fn;
	struct log *log = NULL;
	bool news;

	{
		lock_scope(&s->job->spool->lock);
		news = !s->ended;
		s->ended = true;
		if (s->log) {
			log = s->log;
			log->refs++;
			atomic_store(&log->ended, true);
		}
	}
	if (news)
		log_tell(log);
	else
		log_unref(log);
	s->fn = NULL;
	if (fn)
		fn(s->data);
}

void spool_index_end(struct spool_job *j)
{
	struct merge_record r;

	if (j->n_live > 0 || j->n_out > 0)
		return;
	spool_unwatch_job(j);
	if (j->end_asked && !j->ended) {
		if (j->has_last && !(j->last.flags & MERGE_ENDS)) {
			r = j->last;
			r.offset = j->keys.v[r.log].indexed;
			r.length = 0;
			r.flags = MERGE_NEWLINE | MERGE_ENDS;
			r.end++;
			index_append(j, &r);
			if (index_flush(j) < 0)
				return;
		}
		index_publish(j, true);
	}
	index_check_settles(j, false);
	if (j->closed && !j->busy)
		spool_job_free(j);
}

/* --- the queue --- */

static void index_turn(void *data);

static void index_wake(struct spool *spool)
{
	if (spool->pumping || spool->stopped)
		return;
	spool->pumping = true;
	loop_post(spool->loop, index_turn, spool);
}

void spool_index_queue(struct spool_source *s)
{
	struct spool *spool = s->job->spool;

	if (!s->live || s->queued)
		return;
	s->queued = true;
	s->stuck = false;
	DL_APPEND(spool->queue, s);
	index_wake(spool);
}

static void index_on_retry(void *data)
{
	struct spool *spool = data;
	struct spool_job *j, *next;

	loop_timer_free(take_ptr(spool->retry));
	HASH_ITER(hh, spool->jobs, j, next)
	{
		for (size_t i = 0; i < j->keys.n; i++) {
			if (j->by_number[i]->stuck)
				spool_index_queue(j->by_number[i]);
		}
		if (j->n_live == 0 && index_flush(j) == 0)
			spool_index_end(j);
	}
}

/* S can't go on now. Who waits for its end need not wait for the disk. */
static void index_stuck(struct spool_source *s)
{
	s->stuck = true;
	index_check_settles(s->job, true);
	if (s->ending)
		index_source_ended(s);
}

/* Up to INDEX_READ bytes of S that are not in the index, into spool.buf. */
static ssize_t index_read(struct spool_source *s)
{
	struct spool_job *j = s->job;
	char path[SPOOL_PATH_MAX];
	cleanup_fd int fd = -1;
	ssize_t n;

	if (!spool_name(path, j->id, "logs", s->key))
		return -ENAMETOOLONG;
	fd = openat(j->spool->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	n = pread(fd, j->spool->buf, INDEX_READ, (off_t)j->keys.v[s->number].indexed);
	return n < 0 ? -errno : n;
}

/* Make records of the N bytes in spool.buf. */
static void index_cut(struct spool_source *s, size_t n, bool final)
{
	struct spool_job *j = s->job;
	struct merge_key *k = &j->keys.v[s->number];
	const char *buf = j->spool->buf;
	size_t at = 0;

	for (;;) {
		size_t length = merge_cut(buf + at, n - at, final);
		struct merge_record r;

		if (length == 0)
			return;
		r = merge_next(j->has_last ? &j->last : NULL, s->number, k->indexed, buf + at,
			       length, strlen(k->prefix));
		index_append(j, &r);
		k->indexed += length;
		at += length;
	}
}

static void index_seen(struct spool_source *s, uint64_t seen)
{
	struct spool *spool = s->job->spool;
	struct log *log;

	if (seen > s->counted) {
		atomic_fetch_add(&spool->bytes, (long long)(seen - s->counted));
		s->counted = seen;
	}
	if (seen <= s->seen)
		return;
	s->seen = seen;
	{
		lock_scope(&spool->lock);
		log = s->log;
		if (log)
			log->refs++;
	}
	log_tell(log);
}

/* One step of S, which is not in the queue. Returns the bytes that it looked at. */
static size_t index_step(struct spool_source *s)
{
	struct spool_job *j = s->job;
	bool ending = s->ending;
	uint64_t from = j->keys.v[s->number].indexed;
	ssize_t n;

	if (index_flush(j) < 0) {
		index_stuck(s);
		return 0;
	}
	n = index_read(s);
	if (n < 0) {
		index_later(j, (int)n);
		index_stuck(s);
		return 0;
	}
	index_cut(s, (size_t)n, ending && n < INDEX_READ);
	index_seen(s, from + (uint64_t)n);
	if (index_flush(j) < 0) {
		index_stuck(s);
		return (size_t)n;
	}
	index_check_settles(j, false);
	if (n == INDEX_READ) {
		spool_index_queue(s);
	} else if (ending) {
		s->live = false;
		j->n_live--;
		index_source_ended(s);
	}
	return (size_t)n;
}

static void index_run(struct spool *spool)
{
	size_t bytes = 0;

	for (unsigned i = 0; spool->queue && i < INDEX_STEPS && bytes < INDEX_TURN; i++) {
		struct spool_source *s = spool->queue;
		struct spool_job *j = s->job;

		DL_DELETE(spool->queue, s);
		s->queued = false;
		/* Who hears of an end may close the job. */
		j->busy = true;
		bytes += index_step(s);
		j->busy = false;
		spool_index_end(j);
	}
}

static void index_turn(void *data)
{
	struct spool *spool = data;

	spool->pumping = false;
	index_run(spool);
	if (spool->queue)
		index_wake(spool);
}

void spool_index_drain(struct spool *spool, unsigned ms)
{
	uint64_t deadline = loop_now_ms() + ms;

	while (spool->queue && loop_now_ms() < deadline)
		index_run(spool);
}
