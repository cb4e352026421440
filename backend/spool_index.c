/* SPDX-License-Identifier: MIT */
/*
 * The merged index of a job on disk as it is read when the job is opened, mended where it was torn.
 * spool_index_write.c goes on with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/diag.h"
#include "backend/spool_impl.h"

#define INDEX_KEYS_MAX (64u << 20) /* bytes of a table of keys that is believed */

/* --- what is there at the beginning --- */

struct spool_source *spool_index_add(struct spool_job *j, const char *key, const char *prefix)
{
	struct spool_source *s = calloc(1, sizeof(*s));
	struct spool_source **by_number, **heap;

	by_number = reallocarray(j->by_number, j->keys.n + 1, sizeof(struct spool_source *));
	if (by_number)
		j->by_number = by_number;
	heap = reallocarray(j->heap, j->keys.n + 1, sizeof(struct spool_source *));
	if (heap)
		j->heap = heap;
	if (!s || !by_number || !heap || merge_keys_add(&j->keys, key, prefix) < 0)
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
		n = pread(fd, bytes, sizeof(bytes),
			  (off_t)(MERGE_HEAD + j->records * MERGE_RECORD));
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
		diag(DIAG_WARNING, "%s: the end of its merged log was torn and is made again",
		     j->id);
		if (ftruncate(fd,
			      j->records ? (off_t)(MERGE_HEAD + j->records * MERGE_RECORD) : 0) < 0)
			return -errno;
	}
	j->size = j->has_last ? j->last.end : 0;
	j->mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	for (size_t i = 0; i < j->keys.n; i++)
		j->by_number[i]->seen = j->keys.v[i].indexed;
	return 0;
}

/* Room in J for N logs. -ENOMEM. */
static int index_make_room(struct spool_job *j, size_t n)
{
	struct spool_source **by_number, **heap;
	struct merge_key *v;
	size_t room = 1;

	by_number = reallocarray(j->by_number, n, sizeof(struct spool_source *));
	if (by_number)
		j->by_number = by_number;
	heap = reallocarray(j->heap, n, sizeof(struct spool_source *));
	if (heap)
		j->heap = heap;
	while (room < n)
		room *= 2; /* as merge_keys_add wants it */
	v = reallocarray(j->keys.v, room, sizeof(*v));
	if (v)
		j->keys.v = v;
	return by_number && heap && v ? 0 : -ENOMEM;
}

/* S, which has begun with KEY while KEYS were read, is one of these, or a new one. */
static void index_adopt_begun(struct spool_job *read, struct spool_source *s, struct merge_key *key)
{
	struct spool_source *known = spool_find_source(read, key->key);

	if (known) {
		struct merge_key *k = &read->keys.v[known->number];

		HASH_DEL(read->sources, known);
		s->number = known->number;
		s->seen = known->seen;
		free(k->key);
		k->key = key->key; /* S is found by it */
		free(key->prefix);
		free(known);
	} else {
		s->number = (uint32_t)read->keys.n;
		read->keys.v[read->keys.n++] = *key;
	}
	read->by_number[s->number] = s;
}

int spool_index_adopt(struct spool_job *j, struct spool_job *read)
{
	struct spool_source *s, *next;

	if (index_make_room(read, read->keys.n + j->keys.n + 1) < 0)
		return -ENOMEM;
	lock_scope(&j->spool->lock);
	for (size_t i = 0; i < j->keys.n; i++)
		index_adopt_begun(read, j->by_number[i], &j->keys.v[i]);
	free(j->keys.v);
	free(j->by_number);
	free(j->heap);
	j->keys = read->keys;
	j->by_number = take_ptr(read->by_number);
	j->heap = take_ptr(read->heap);
	read->keys = (struct merge_keys){0};
	if (!j->sources)
		j->sources = take_ptr(read->sources);
	HASH_ITER(hh, read->sources, s, next) {
		HASH_DEL(read->sources, s);
		HASH_ADD_KEYPTR(hh, j->sources, s->key, strlen(s->key), s);
	}
	for (size_t i = 0; i < j->keys.n; i++)
		j->by_number[i]->job = j;
	j->keys_saved = read->keys_saved;
	j->keys_len = read->keys_len;
	j->last = read->last;
	j->has_last = read->has_last;
	j->records = read->records;
	j->size = read->size;
	j->mtime = read->mtime;
	return 0;
}
