/* SPDX-License-Identifier: MIT */
/*
 * An archive that is a directory: a file for each object. The directory is a user's, perhaps shared, and its server may
 * not answer: so each call is a lookup (backend/base/lookup.h), which waits for a limited time and holds up nobody;
 * while one hangs, all others fail at once. A file is written beside its place, synced, and renamed. No link below the
 * directory is followed.
 *
 * A call has two structs. The thread of its lookup has the question, with copies of all that it needs; the I/O thread
 * has what to do when that is answered (struct waiting). A thread that hangs keeps its question and nothing else.
 */
#include "backend/archive/kind.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "backend/base/file.h"
#include "backend/base/lookup.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define ANSWER_MS 15000 /* time for 8 MiB to a slow server */
#define STOP_MS	  2000	/* how long the end waits for calls that hang */

struct archive_dir {
	struct archive archive;
	struct loop *loop;
	char *dir;
	char *writer; /* NULL: the owner only reads */
	atomic_uint refs;
	struct group group;
	bool stopping;
	struct loop_timer timer;
	loop_fn stopped; /* NULL: it was called */
	void *data;
};

struct question {
	int (*answer)(struct question *q); /* returns 0 or a negative errno */
	char *dir;
	char *writer;
	char *name;  /* name of the object; for a list: the prefix */
	char *bytes; /* bytes to write, or that were read */
	size_t n;
	uint64_t off;
	char *after; /* NULL: from the first */
	struct listed {
		char *name;
		uint64_t size;
	} * listed;
	size_t n_listed;
	struct archive_object *objects; /* the first objects of the list */
	int err;
	char *text;
};

/* What to do when a question is answered: one of the three functions is called. */
struct waiting {
	struct archive_dir *archive;
	archive_done_fn done;
	archive_bytes_fn bytes;
	archive_list_fn list;
	void *data;
};

/* --- in the thread of a lookup --- */

static void question_free(void *data)
{
	struct question *q = data;

	for (size_t i = 0; i < q->n_listed; i++)
		free(q->listed[i].name);
	free(q->listed);
	free(q->objects);
	free(q->dir);
	free(q->writer);
	free(q->name);
	free(q->bytes);
	free(q->after);
	free(q->text);
	free(q);
}

/*
 * Open the directory in which NAME is, below that of the archive; *RET is the last part of NAME. With MAKE missing
 * directories are made. Returns a descriptor or a negative errno.
 */
static int open_folder(const char *dir, char *name, bool make, char **ret)
{
	cleanup_fd int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *slash;

	if (at < 0)
		return errno == ENOENT || errno == ENOTDIR ? -EHOSTUNREACH : -errno;
	for (; (slash = strchr(name, '/')); name = slash + 1) {
		const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
		int next;

		*slash = '\0';
		next = openat(at, name, flags);
		if (next < 0 && errno == ENOENT && make) {
			if ((mkdirat(at, name, 0777) < 0 && errno != EEXIST) || fsync(at) < 0)
				return -errno;
			next = openat(at, name, flags);
		}
		if (next < 0)
			return -errno;
		close(at);
		at = next;
	}
	*ret = name;
	return take_fd(&at);
}

static int answer_put(struct question *q)
{
	cleanup_free char *new = NULL;
	char *last;
	cleanup_fd int at = open_folder(q->dir, q->name, true, &last);
	cleanup_fd int fd = -1;
	int err;

	if (at < 0)
		return at;
	new = text_print(".%s.%s", last, q->writer);
	fd = openat(at, new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		    0666);
	if (fd < 0)
		return -errno;
	err = file_write_all(fd, q->bytes, q->n);
	if (!err && fsync(fd) < 0)
		err = -errno;
	/* Nobody on this machine will soon read the file again, so its pages are freed. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	/* A server may tell only at the close that it has no room. */
	if (close(take_fd(&fd)) < 0 && !err)
		err = -errno;
	if (!err && renameat(at, new, at, last) < 0)
		err = -errno;
	if (err)
		unlinkat(at, new, 0);
	else if (fsync(at) < 0)
		err = -errno;
	return err;
}

static int answer_get(struct question *q)
{
	char *last;
	cleanup_fd int at = open_folder(q->dir, q->name, false, &last);
	cleanup_fd int fd = -1;
	struct stat st;
	ssize_t n;

	if (at < 0)
		return at;
	fd = openat(at, last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	q->n = q->off >= (uint64_t)st.st_size ? 0 : min_of(q->n, (uint64_t)st.st_size - q->off);
	q->bytes = mem_grow(NULL, q->n + 1, 1);
	n = file_read_at(fd, q->bytes, q->n, q->off);
	if (n < 0)
		return (int)n;
	q->n = (size_t)n;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Note the entry NAME of AT, if it can be an object. */
static int list_entry(struct question *q, int at, const struct dirent *entry)
{
	struct stat st;
	char *name;

	/* The name of a file that is being written begins with a dot. */
	if (!spec_name_is_file(entry->d_name))
		return 0;
	if (fstatat(at, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	name = text_print("%s%s", entry->d_name, S_ISDIR(st.st_mode) ? "/" : "");
	if (q->after && strcmp(name, q->after) <= 0) {
		free(name);
		return 0;
	}
	q->listed = mem_more(q->listed, q->n_listed, sizeof(*q->listed));
	q->listed[q->n_listed++] =
		(struct listed){name, S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size};
	return 0;
}

static int answer_list(struct question *q)
{
	char *last;
	int at = open_folder(q->dir, q->name, false, &last);
	cleanup_dir DIR *dir = NULL;
	const struct dirent *entry;
	int err = 0;

	if (at == -ENOENT)
		return 0;
	if (at < 0)
		return at;
	dir = fdopendir(at);
	if (!dir) {
		err = -errno;
		close(at);
		return err;
	}
	errno = 0;
	while (!err && (entry = readdir(dir))) {
		err = list_entry(q, at, entry);
		errno = 0;
	}
	if (!err)
		err = -errno;
	if (q->n_listed)
		qsort(q->listed, q->n_listed, sizeof(*q->listed), compare);
	q->objects = new0_n(struct archive_object, q->n_listed);
	for (size_t i = 0; i < q->n_listed; i++)
		q->objects[i] = (struct archive_object){q->listed[i].name, q->listed[i].size};
	return err;
}

static void look(void *data)
{
	static const struct {
		int from, to;
	} errors[] = {
		{ENOENT, -ENOENT},
		{EACCES, -EACCES},
		{EPERM, -EACCES},
		{EROFS, -EACCES},
		{ENOSPC, -ENOSPC},
		{EDQUOT, -ENOSPC},
		{EHOSTUNREACH, -EHOSTUNREACH},
		{ENOTCONN, -EHOSTUNREACH},
		{ESTALE, -EHOSTUNREACH},
		{EHOSTDOWN, -EHOSTUNREACH},
		{ETIMEDOUT, -ETIMEDOUT},
	};
	struct question *q = data;
	cleanup_free char *name = text_copy(q->name); /* this copy is cut into its parts */
	int err = q->answer(q);

	q->err = err ? -EIO : 0;
	for (size_t i = 0; i < array_size(errors); i++)
		if (errors[i].from == -err)
			q->err = errors[i].to;
	if (err == -EHOSTUNREACH)
		q->text = text_print("%s: no such directory", q->dir);
	else if (err)
		q->text = text_print("%s/%s: %s", q->dir, name, strerror(-err));
}

/* Its owner may do this on another thread. */
static void archive_unref(struct archive_dir *a)
{
	if (--a->refs)
		return;
	free(a->dir);
	free(a->writer);
	free(a);
}

/* --- I/O thread --- */

static void answered(void *data, void *question)
{
	struct waiting *w = data;
	const struct question *q = question;
	cleanup_free char *away = q ? NULL : text_print("%s: does not answer", w->archive->dir);
	const char *text = !q ? away : q->text ? q->text : "";
	const int err = q ? q->err : -EHOSTUNREACH;
	const bool fine = err == 0;

	if (w->archive->stopping)
		;
	else if (w->done)
		w->done(w->data, err, text);
	else if (w->bytes)
		w->bytes(w->data, err, text, fine ? q->bytes : NULL, fine ? q->n : 0);
	else
		w->list(w->data, err, text, fine ? q->objects : NULL,
			fine ? min_of(q->n_listed, (size_t)ARCHIVE_MAX_LIST) : 0,
			fine && q->n_listed > ARCHIVE_MAX_LIST);
	archive_unref(w->archive);
	free(w);
}

/* Ask Q, which is taken over. NAME and W are copied. */
static void ask(struct archive_dir *a, const char *name, struct question *q,
		const struct waiting *w)
{
	struct waiting *waiting = new0(struct waiting);

	assert(!a->stopping);
	*waiting = *w;
	waiting->archive = a;
	a->refs++;
	q->dir = text_copy(a->dir);
	q->name = text_copy(name);
	lookup_start(a->loop, &(struct lookup){.key = a->dir,
					       .ms = ANSWER_MS,
					       .look = look,
					       .question = q,
					       .free = question_free,
					       .done = answered,
					       .data = waiting,
					       .group = &a->group});
}

static struct archive_dir *dir_of(struct archive *a)
{
	return container_of(a, struct archive_dir, archive);
}

static void dir_put(struct archive *archive, const char *name, char *bytes, size_t n,
		    archive_done_fn done, void *data)
{
	struct archive_dir *a = dir_of(archive);
	struct question *q = new0(struct question);

	assert(a->writer);
	q->answer = answer_put;
	q->writer = text_copy(a->writer);
	q->bytes = bytes;
	q->n = n;
	ask(a, name, q, &(struct waiting){.done = done, .data = data});
}

static void dir_get(struct archive *a, const char *name, uint64_t off, size_t n,
		    archive_bytes_fn done, void *data)
{
	struct question *q = new0(struct question);

	q->answer = answer_get;
	q->off = off;
	q->n = n;
	ask(dir_of(a), name, q, &(struct waiting){.bytes = done, .data = data});
}

static void dir_list(struct archive *a, const char *prefix, const char *after, archive_list_fn done,
		     void *data)
{
	struct question *q = new0(struct question);

	q->answer = answer_list;
	q->after = after ? text_copy(after) : NULL;
	ask(dir_of(a), prefix, q, &(struct waiting){.list = done, .data = data});
}

static void on_stopped(void *data)
{
	struct archive_dir *a = data;
	loop_fn fn = a->stopped;

	loop_timer_stop(&a->timer);
	a->stopped = NULL;
	if (fn)
		fn(a->data);
	archive_unref(a);
}

static void on_stop_late(void *data)
{
	struct archive_dir *a = data;
	loop_fn fn = a->stopped;

	a->stopped = NULL;
	fn(a->data);
}

static void dir_stop(struct archive *archive, loop_fn fn, void *data)
{
	struct archive_dir *a = dir_of(archive);

	a->stopping = true;
	a->stopped = fn;
	a->data = data;
	a->refs++;
	loop_timer_init(&a->timer, a->loop, on_stop_late, a);
	loop_timer_set(&a->timer, STOP_MS);
	group_when_empty(&a->group, on_stopped, a);
}

static void dir_free(struct archive *a)
{
	archive_unref(dir_of(a));
}

struct archive *archive_dir_new(struct loop *loop, const char *dir, const char *writer)
{
	static const struct archive_ops ops = {dir_put, dir_get, dir_list, dir_stop, dir_free};
	struct archive_dir *a = new0(struct archive_dir);

	a->archive.ops = &ops;
	a->loop = loop;
	a->dir = text_copy(dir);
	a->writer = writer ? text_copy(writer) : NULL;
	a->refs = 1;
	group_init(&a->group, loop);
	return &a->archive;
}
