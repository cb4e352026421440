/* SPDX-License-Identifier: MIT */
/*
 * One thread at a time works on the folder of a job, and others that want the folder wait for it. Parts of a log are
 * fetched one after the other and appended; the table of lines is replaced before, so that it tells of all bytes. The
 * merged log is made of the fetched logs like that of any job (backend/output/), on the I/O thread.
 */
#include "backend/reader/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#include <uthash.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/lock.h"
#include "backend/base/wait.h"
#include "backend/keep/text.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define WAIT_S	   9 /* the longest wait for another thread, or for the merged log */
#define KEY_MAX	   4096
#define PARTS_MAX  200000 /* parts of a log: 1.6 TB */
#define PREFIX_MAX 300

struct folder {
	char *uid;
	uint64_t bytes, used; /* USED: when it was last used, by loop_now_ms */
	bool busy, removing;
	bool merged; /* everything in the folder is in the merged log */
	UT_hash_handle hh;
};

struct spool {
	struct loop *loop;
	struct remote *remote;
	struct output *output, *of_mount;
	char *dir;
	uint64_t limit;
	struct lock lock; /* protects the members below */
	pthread_cond_t changed;
	struct folder *folders; /* by uid */
	uint64_t bytes;
	bool warned;
};

/* --- folders --- */

/* The folder UID, made if need be. Under the lock. */
static struct folder *need(struct spool *s, const char *uid)
{
	struct folder *f;

	HASH_FIND_STR(s->folders, uid, f);
	if (f)
		return f;
	f = new0(struct folder);
	f->uid = text_copy(uid);
	HASH_ADD_KEYPTR(hh, s->folders, f->uid, strlen(f->uid), f);
	return f;
}

/* Take the folder UID for this thread alone. False: another thread still has it. */
static bool enter(struct spool *s, const char *uid)
{
	struct timespec until;
	struct folder *f;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_S;
	lock_scope(&s->lock);
	while ((f = need(s, uid))->busy || f->removing) {
		if (err)
			return false;
		err = pthread_cond_clockwait(&s->changed, &s->lock.mutex, CLOCK_MONOTONIC, &until);
	}
	f->busy = true;
	f->used = loop_now_ms();
	return true;
}

static void set_merged(struct spool *s, const char *uid, bool merged)
{
	lock_scope(&s->lock);
	need(s, uid)->merged = merged;
}

static bool is_merged(struct spool *s, const char *uid)
{
	lock_scope(&s->lock);
	return need(s, uid)->merged;
}

/* --- room --- */

struct removal {
	struct spool *spool;
	char *uid;
};

static void on_removed(void *data, int err)
{
	struct removal *m = data;
	struct spool *s = m->spool;

	(void)err; /* the next start finds what is left behind */
	{
		lock_scope(&s->lock);
		struct folder *f = need(s, m->uid);

		HASH_DEL(s->folders, f);
		free(f->uid);
		free(f);
		pthread_cond_broadcast(&s->changed);
	}
	free(m->uid);
	free(m);
}

static void remove_one(void *data)
{
	struct removal *m = data;

	output_job_remove(m->spool->output, m->uid, on_removed, m);
}

/*
 * Make room for N bytes more for the folder UID, which this thread has taken. -ENOSPC: the limit does not allow them.
 */
static int take_room(struct spool *s, const char *uid, uint64_t n)
{
	const uint64_t others = output_bytes(s->of_mount);
	struct removal *m;
	bool first = false;

	do {
		struct folder *f, *oldest = NULL;

		m = NULL;
		{
			lock_scope(&s->lock);
			if (others <= s->limit && n <= s->limit - others &&
			    s->bytes <= s->limit - others - n) {
				s->bytes += n;
				need(s, uid)->bytes += n;
				return 0;
			}
			for (f = s->folders; f; f = f->hh.next)
				if (!f->busy && !f->removing && (!oldest || f->used < oldest->used))
					oldest = f;
			if (oldest) {
				oldest->removing = true;
				s->bytes -= oldest->bytes;
				m = new0(struct removal);
				*m = (struct removal){s, text_copy(oldest->uid)};
			} else {
				first = !s->warned;
				s->warned = true;
			}
		}
		if (m)
			loop_post(s->loop, remove_one, m);
	} while (m);
	if (first)
		diag(DIAG_WARNING,
		     "the spool has no room for a log of the archive of %" PRIu64
		     " bytes within its limit of %" PRIu64 " (-o spool_limit)",
		     n, s->limit);
	return -ENOSPC;
}

/* --- what the archive has of a log --- */

/* Parts of a log, which follow each other from the first byte on. */
struct parts {
	uint64_t size;
	bool broken; /* the parts after these do not follow */
};

static void on_part(void *data, const struct archive_object *object)
{
	struct parts *p = data;
	cleanup_free char *name = text_print("%016" PRIu64, p->size);

	p->broken |= !streq(object->name, name) || object->size > ARCHIVE_MAX;
	if (p->broken)
		return;
	p->size += object->size;
	/* Only the last part may be shorter, so nothing may follow a short one. */
	p->broken = object->size < ARCHIVE_MAX;
}

/* Find the size of the file or log whose parts stand at NAME. */
static int size_of(struct spool *s, const char *name, uint64_t *ret)
{
	cleanup_free char *prefix = text_print("%s/", name);
	struct parts parts = {0};
	int err = remote_list(s->remote, prefix, PARTS_MAX, on_part, &parts);

	*ret = parts.size;
	return err;
}

/* Find where the log KEY of JOB stands below FOLDER: "ROLE-K/log.N"; malloc'ed. -ENOENT: nowhere. */
static int find_log(struct spool *s, const struct spec_job *job, const char *folder,
		    const char *key, char **ret)
{
	cleanup_free char *name = NULL, *want = text_print("%s\n", key);
	unsigned n = 0;
	int err = 0;

	for (size_t i = 0; i < job->n_replicas && !name; i++)
		for (size_t j = 0; j < job->replicas[i].n_logs && !name; j++)
			if (streq(job->replicas[i].logs[j].key, key))
				name = keep_log_name(&job->replicas[i], j, &n);
	if (!name)
		return -ENOENT;
	/* The number may be that of another writer's log. */
	for (; n <= KEEP_MAX_LOGS && !err; n++) {
		cleanup_free char *file = text_print("%s/%s.%u.key", folder, name, n);
		cleanup_free char *text = NULL;
		size_t len;

		err = remote_get(s->remote, file, 0, KEY_MAX, &text, &len);
		if (!err && streq(text, want)) {
			*ret = text_print("%s/%s.%u", folder, name, n);
			return 0;
		}
	}
	return err ? err : -ENOENT;
}

/* --- fetching --- */

static char *path_of(const struct spool *s, const char *uid, const char *sub, const char *key)
{
	return text_print("%s/jobs/%s%s%s%s%s", s->dir, uid, *sub ? "/" : "", sub, *key ? "/" : "",
			  key);
}

static uint64_t size_here(const struct spool *s, const char *uid, const char *sub, const char *key)
{
	cleanup_free char *path = path_of(s, uid, sub, key);
	struct stat st;

	return disk_stat(AT_FDCWD, path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size
									  : 0;
}

/* Append the bytes FROM .. TO of the parts at NAME to the file FD. */
static int append(struct spool *s, const char *name, int fd, uint64_t from, uint64_t to)
{
	while (from < to) {
		uint64_t part = from - from % ARCHIVE_MAX;
		cleanup_free char *object = text_print("%s/%016" PRIu64, name, part);
		cleanup_free char *bytes = NULL;
		size_t n = (size_t)min_of(to - from, ARCHIVE_MAX - from % ARCHIVE_MAX);
		int err = remote_get(s->remote, object, from % ARCHIVE_MAX, n, &bytes, &n);

		if (!err && n == 0)
			err = -EIO;
		if (!err)
			err = file_write_all(fd, bytes, n);
		if (err)
			return err;
		from += n;
	}
	return 0;
}

static int fetch_lines(struct spool *s, const char *uid, const char *key, const char *name)
{
	cleanup_free char *lines = text_print("%s.lines", name);
	cleanup_free char *to = path_of(s, uid, "lines", key);
	cleanup_free char *new = path_of(s, uid, "lines", ".new");
	cleanup_fd int fd = -1;
	uint64_t size, here = size_here(s, uid, "lines", key);
	int err = size_of(s, lines, &size);

	if (err || size <= here)
		return err;
	err = take_room(s, uid, size - here);
	if (err)
		return err;
	fd = file_open_new(AT_FDCWD, new);
	err = fd < 0 ? fd : append(s, lines, fd, 0, size);
	return err ? err : disk_rename(AT_FDCWD, new, AT_FDCWD, to);
}

/* Fetch what the archive has of log KEY into the folder of JOB, which this thread has taken. */
static int fetch(struct spool *s, const struct spec_job *job, const char *folder, const char *key)
{
	static const char *const subs[] = {"", "logs", "lines"};
	cleanup_free char *name = NULL;
	cleanup_free char *path = path_of(s, job->uid, "logs", key);
	cleanup_fd int fd = -1;
	uint64_t size, here = size_here(s, job->uid, "logs", key);
	int err = find_log(s, job, folder, key, &name);

	if (err)
		return err;
	err = size_of(s, name, &size);
	if (err || (size <= here && here))
		return err;
	for (size_t i = 0; i < array_size(subs) && !err; i++) {
		cleanup_free char *sub = path_of(s, job->uid, subs[i], "");

		err = disk_mkdir(AT_FDCWD, sub);
		if (err == -EEXIST)
			err = 0;
	}
	if (!err)
		err = fetch_lines(s, job->uid, key, name);
	if (!err)
		err = take_room(s, job->uid, size - here);
	if (err)
		return err;
	set_merged(s, job->uid, false);
	fd = disk_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND);
	return fd < 0 ? fd : append(s, name, fd, here, size);
}

/* --- the merged log --- */

/*
 * A log that is being merged. It belongs to two: the thread that waits and the I/O thread; the one that is done with it
 * last frees it.
 */
struct merging {
	struct spool *spool;
	const struct spec_job *job;
	struct output_job *output;
	size_t n; /* logs that are not in the merged log yet, and one more while they are begun */
	unsigned refs;
	sem_t done;
};

static void merging_unref(struct merging *m)
{
	if (__atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL))
		return;
	spec_job_unref(m->job);
	sem_destroy(&m->done);
	free(m);
}

static void on_merged(void *data)
{
	struct merging *m = data;

	if (--m->n)
		return;
	output_job_end(m->output);
	output_job_close(m->output);
	sem_post(&m->done);
	merging_unref(m);
}

static void merge(void *data)
{
	struct merging *m = data;
	const struct spec_job *job = m->job;

	m->output = output_job_open(m->spool->output, job->uid);
	m->n = 1;
	for (size_t i = 0; m->output && i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];
		const char *dash = strrchr(r->name, '-');
		char prefix[PREFIX_MAX];

		snprintf(prefix, sizeof(prefix), "%.*s/%u ", dash ? (int)(dash - r->name) : 0,
			 r->name, r->id);
		for (size_t j = 0; j < r->n_logs; j++) {
			const char *key = r->logs[j].key;

			if (*r->logs[j].container ||
			    output_log_begin(m->output, key, prefix, false) < 0)
				continue;
			m->n++;
			output_log_end(m->output, key, on_merged, m);
		}
	}
	if (m->output)
		return on_merged(m);
	sem_post(&m->done);
	merging_unref(m);
}

/* Fetch all logs of which the merged log of JOB is made. */
static int fetch_merged(struct spool *s, const struct spec_job *job, const char *folder)
{
	struct merging *m;
	bool any = false, merged;
	int err = 0;

	for (size_t i = 0; i < job->n_replicas && !err; i++) {
		const struct spec_replica *r = &job->replicas[i];

		for (size_t j = 0; j < r->n_logs && !err; j++) {
			if (*r->logs[j].container)
				continue;
			err = fetch(s, job, folder, r->logs[j].key);
			any |= !err;
			/* A log that nobody has captured is missing in the merged log. */
			if (err == -ENOENT)
				err = 0;
		}
	}
	if (err || !any || is_merged(s, job->uid))
		return err;
	m = new0(struct merging);
	m->spool = s;
	m->job = spec_job_ref(job);
	m->refs = 2;
	sem_init(&m->done, 0, 0);
	loop_post(s->loop, merge, m);
	merged = wait_for(&m->done, WAIT_S);
	merging_unref(m);
	if (merged)
		set_merged(s, job->uid, true);
	return merged ? 0 : -ETIMEDOUT;
}

/* --- for readers --- */

int spool_log(struct spool *s, const struct spec_job *job, const char *folder, const char *key,
	      enum log_form form, struct log **ret)
{
	bool here = false;
	int err;

	if (!enter(s, job->uid))
		return -ETIMEDOUT;
	err = key ? fetch(s, job, folder, key) : fetch_merged(s, job, folder);
	if (err == -ENOENT) /* nobody has captured this log */
		err = 0;
	if (err == -EHOSTUNREACH)
		here = key ? size_here(s, job->uid, "logs", key) : is_merged(s, job->uid);
	if (!err || here)
		err = output_log(s->output, job->uid, key, form, ret);
	lock_scope(&s->lock);
	need(s, job->uid)->busy = false;
	pthread_cond_broadcast(&s->changed);
	return err;
}

int spool_stat(struct spool *s, const struct spec_job *job, const char *folder, const char *key,
	       enum log_form form, struct log_stat *ret)
{
	cleanup_free char *name = NULL;
	int err = 0;

	*ret = (struct log_stat){.ended = true};
	if (key ? size_here(s, job->uid, "logs", key) : is_merged(s, job->uid))
		err = output_log_stat(s->output, job->uid, key, form, ret);
	if (!key || form != LOG_PLAIN || err || ret->size)
		return err;
	err = find_log(s, job, folder, key, &name);
	return err ? err : size_of(s, name, &ret->size);
}

uint64_t spool_bytes(struct spool *s)
{
	lock_scope(&s->lock);
	return s->bytes;
}

/* --- life --- */

static int count_file(void *data, int at, const char *name, unsigned char type)
{
	uint64_t *bytes = data;
	struct stat st;

	if (disk_stat(at, name, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return disk_list(at, name, count_file, data);
	*bytes += (uint64_t)st.st_size;
	return 0;
}

static int load_folder(void *data, int at, const char *name, unsigned char type)
{
	struct spool *s = data;
	uint64_t bytes = 0;

	if (!spec_name_is_file(name))
		return 0;
	(void)disk_list(at, name, count_file, &bytes);
	lock_scope(&s->lock);
	need(s, name)->bytes = bytes;
	s->bytes += bytes;
	return 0;
}

void spool_load(struct spool *s)
{
	cleanup_free char *path = text_print("%s/jobs", s->dir);

	(void)disk_list(AT_FDCWD, path, load_folder, s);
}

/* Everything was fetched before anybody could open the log. */
static void on_open(void *data, const char *id, const char *key, loop_fn done, void *arg)
{
	return done(arg);
}

void spool_start(struct spool *s)
{
	output_start(s->output);
}

void spool_stop(struct spool *s, loop_fn fn, void *data)
{
	output_stop(s->output, fn, data);
}

int spool_new(struct loop *loop, struct remote *remote, struct output *output,
	      const char *state_dir, uint64_t limit, struct spool **ret, char **ret_text)
{
	struct spool *s = new0(struct spool);
	int err;

	s->loop = loop;
	s->remote = remote;
	s->of_mount = output;
	s->dir = text_print("%s/" SPOOL_DIR, state_dir);
	s->limit = limit;
	s->lock = (struct lock)LOCK_INIT;
	pthread_cond_init(&s->changed, NULL);
	err = disk_mkdir(AT_FDCWD, s->dir);
	if (err && err != -EEXIST && err != -EROFS)
		*ret_text = text_print("%s: %s", s->dir, strerror(-err));
	else
		err = output_new(loop, s->dir, &(struct output_events){0}, &s->output, ret_text);
	if (err) {
		spool_free(s);
		return err;
	}
	output_set_fetch(s->output, on_open, s);
	*ret = s;
	return 0;
}

void spool_free(struct spool *s)
{
	struct folder *f, *next;

	if (!s)
		return;
	HASH_ITER(hh, s->folders, f, next) {
		HASH_DEL(s->folders, f);
		free(f->uid);
		free(f);
	}
	output_free(s->output);
	pthread_cond_destroy(&s->changed);
	free(s->dir);
	free(s);
}
