/* SPDX-License-Identifier: MIT */
/*
 * How much room the spool takes, and making room: counting and removing directories. Both may take
 * long, so they run on the pool.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/diag.h"
#include "backend/spool_impl.h"
#include "spec/name.h"

#define SPOOL_DEPTH 16 /* folders in folders that are counted or removed */

/* A job on its way out: atomically not there any more, also after a crash half way. */
#define SPOOL_REMOVED ".removed-"

/* --- on the pool --- */

struct spool_walk {
	uint64_t bytes;
	bool remove;
};

/* Count, and if so wanted remove, what is in the folder NAME of DIR. Never follows a link. */
static void spool_walk(int dir, const char *name, unsigned depth, struct spool_walk *w)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat st = {0};

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d))) {
		if (streq(e->d_name, ".") || streq(e->d_name, "..") ||
		    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth < SPOOL_DEPTH)
			spool_walk(fd, e->d_name, depth + 1, w);
		else if (S_ISREG(st.st_mode))
			w->bytes += (uint64_t)st.st_size;
		if (w->remove)
			unlinkat(fd, e->d_name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	}
	closedir(d);
}

/* --- how much there is --- */

struct spool_counting {
	struct spool *spool;
	struct spool_walk walk;
};

static void spool_count_work(void *data)
{
	struct spool_counting *c = data;
	int dir = c->spool->dir_fd;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d))) {
		struct spool_walk left = {.remove = true};

		if (strncmp(e->d_name, SPOOL_REMOVED, strlen(SPOOL_REMOVED)) == 0) {
			spool_walk(dir, e->d_name, 0, &left);
			unlinkat(dir, e->d_name, AT_REMOVEDIR);
		} else if (e->d_name[0] != '.') {
			spool_walk(dir, e->d_name, 0, &c->walk);
		}
	}
	closedir(d);
}

static void spool_count(struct spool *spool);

static void spool_count_done(void *data)
{
	struct spool_counting *c = data;
	struct spool *spool = c->spool;
	struct spool_job *j, *next;

	atomic_store(&spool->bytes, (long long)c->walk.bytes);
	free(c);
	/* Up to here live logs were in the count. */
	HASH_ITER(hh, spool->jobs, j, next) {
		for (size_t i = 0; i < j->keys.n; i++)
			j->by_number[i]->counted = j->by_number[i]->seen;
	}
	spool->counting = false;
	if (spool->recount)
		spool_count(spool);
	spool_unref(spool);
}

static void spool_count(struct spool *spool)
{
	struct spool_counting *c = calloc(1, sizeof(*c));

	if (!c)
		return;
	c->spool = spool;
	spool->counting = true;
	spool->recount = false;
	atomic_fetch_add(&spool->refs, 1);
	loop_work(spool->loop, spool_count_work, spool_count_done, c);
}

void spool_start(struct spool *spool)
{
	spool_count(spool);
}

uint64_t spool_bytes(struct spool *spool)
{
	long long bytes = atomic_load(&spool->bytes);

	return bytes > 0 ? (uint64_t)bytes : 0;
}

void spool_captured(struct spool *spool, uint64_t *ret_bytes, uint64_t *ret_lines)
{
	*ret_bytes = atomic_load(&spool->captured_bytes);
	*ret_lines = atomic_load(&spool->captured_lines);
}

/* --- removing --- */

struct spool_removal {
	struct spool *spool;
	char *id;
	bool output;	    /* alone */
	struct log *merged; /* if somebody reads it */
	struct spool_walk walk;
	int err;
	loop_fn done;
	void *data;
};

/* Take the output out of the directory of R, into NAME. 0 or a negative errno. */
static int spool_take_output(struct spool_removal *r, const char *name)
{
	static const char *const parts[] = {"merged", "merged.keys", "positions", SPOOL_TIMES,
					    "logs"};
	int dir = r->spool->dir_fd;
	cleanup_fd int from = openat(dir, r->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	cleanup_fd int to = -1;

	if (from < 0 || mkdirat(dir, name, 0700) < 0)
		return -errno;
	to = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (to < 0)
		return -errno;
	for (size_t i = 0; i < array_size(parts); i++)
		if (renameat(from, parts[i], to, parts[i]) < 0 && errno != ENOENT)
			return -errno;
	return 0;
}

static void spool_remove_work(void *data)
{
	struct spool_removal *r = data;
	int dir = r->spool->dir_fd;
	char name[64];

	if (r->merged)
		log_merged_hold(r->merged);
	snprintf(name, sizeof(name), SPOOL_REMOVED "%lld", (long long)loop_time_ns());
	if (r->output)
		r->err = spool_take_output(r, name);
	else if (renameat(dir, r->id, dir, name) < 0)
		r->err = -errno;
	if (r->err == -ENOENT)
		r->err = 0;
	/* What was taken out goes, also when the rest could not be. */
	spool_walk(dir, name, 0, &r->walk);
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT && !r->err)
		r->err = -errno;
}

static void spool_remove_done(void *data)
{
	struct spool_removal *r = data;
	struct spool *spool = r->spool;

	if (r->err < 0)
		diag(DIAG_ERROR, "%s: its directory can't be removed: %s", r->id,
		     strerror(-r->err));
	atomic_fetch_sub(&spool->bytes, (long long)r->walk.bytes);
	spool->recount |= spool->counting; /* the count under way may have it or not */
	log_orphan(spool, r->id);
	log_unref(r->merged);
	if (r->done)
		r->done(r->data);
	free(r->id);
	free(r);
	spool_unref(spool);
}

static void spool_remove_run(void *data)
{
	struct spool_removal *r = data;

	loop_work(r->spool->loop, spool_remove_work, spool_remove_done, r);
}

static void spool_remove(struct spool *spool, const char *id, bool output, loop_fn done, void *data)
{
	struct spool_removal *r = calloc(1, sizeof(*r));
	struct spool_job *j = spool_find_job(spool, id);
	char name[SPOOL_PATH_MAX];

	assert(spec_name_is_file(id));
	assert(!j || j->closed);
	if (r)
		r->id = strdup(id);
	if (!r || !r->id) {
		diag(DIAG_ERROR, "%s: its directory can't be removed: out of memory", id);
		free(r);
		spool_job_free(j);
		if (done)
			loop_post(spool->loop, done, data);
		return;
	}
	atomic_fetch_add(&spool->refs, 1);
	r->spool = spool;
	r->output = output;
	r->walk.remove = true;
	r->done = done;
	r->data = data;
	if (spool_name(name, id, NULL, ""))
		r->merged = log_find(spool, name);
	/* Not while its folders may be made yet. */
	if (!j || !spool_load_then(j, spool_remove_run, r))
		spool_remove_run(r);
	spool_job_free(j);
}

void spool_job_remove(struct spool *spool, const char *id, loop_fn done, void *data)
{
	spool_remove(spool, id, false, done, data);
}

void spool_output_remove(struct spool *spool, const char *id, loop_fn done, void *data)
{
	spool_remove(spool, id, true, done, data);
}
