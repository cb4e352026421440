/* SPDX-License-Identifier: MIT */
/* Counting and removing the folders of jobs: see room.h. */
#include "backend/output/room.h"

#include <dirent.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/base/diag.h"
#include "backend/output/folder.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define ROOM_DEPTH   16	  /* folders in folders that are counted or removed */
#define ROOM_ENTRIES 4096 /* bytes of entries that are read at once */

/* The name of a job on its way out: it is not there any more at once, also after a crash halfway. */
#define ROOM_REMOVED ".removed-"

struct room {
	struct loop *loop;
	struct files *files; /* a reference of its owner's */
	struct room_events events;
	atomic_llong bytes;
	bool counting;
	bool recount; /* something was removed meanwhile, which the count may have or not */
};

struct room *room_new(struct loop *loop, struct files *files, const struct room_events *events)
{
	struct room *room = new0(struct room);

	room->loop = loop;
	room->files = files;
	room->events = *events;
	return room;
}

void room_free(struct room *room)
{
	free(room);
}

void room_add(struct room *room, int64_t bytes)
{
	atomic_fetch_add(&room->bytes, bytes);
}

uint64_t room_bytes(const struct room *room)
{
	long long bytes = atomic_load(&room->bytes);

	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* --- on the pool --- */

/* What a job's folder has of output. */
static const char *const parts[] = {"merged", "merged.keys", "unmerged", "logs", "lines"};

static bool is_part(const char *name)
{
	for (size_t i = 0; i < array_size(parts); i++)
		if (streq(name, parts[i]))
			return true;
	return false;
}

struct room_walk {
	uint64_t bytes; /* of output */
	bool remove;
};

static void room_walk(int dir, const char *name, unsigned depth, bool output, struct room_walk *w);

/* One entry of the folder FD. */
static void room_entry(int fd, const char *name, unsigned char type, unsigned depth, bool output,
		       struct room_walk *w)
{
	bool counts = depth == 0 ? is_part(name) : output;
	bool folder = type == DT_DIR;
	struct stat st = {0};

	if (streq(name, ".") || streq(name, ".."))
		return;
	/* Not all filesystems say what an entry is. */
	if (!folder) {
		if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return;
		folder = S_ISDIR(st.st_mode);
	}
	if (folder && depth < ROOM_DEPTH)
		room_walk(fd, name, depth + 1, counts, w);
	else if (S_ISREG(st.st_mode) && counts)
		w->bytes += (uint64_t)st.st_size;
	if (w->remove)
		unlinkat(fd, name, folder ? AT_REMOVEDIR : 0);
}

/*
 * Count, and if so wanted remove, what is in the folder NAME of DIR, which at DEPTH 0 is that of a job and has output
 * in its PARTS alone, else (OUTPUT) only output, or none. Never follows a link. A start does so for all jobs, most of
 * which have a file or two, so it reads entries without a DIR, which takes 32 KiB and three calls.
 */
static void room_walk(int dir, const char *name, unsigned depth, bool output, struct room_walk *w)
{
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_Alignas(struct dirent64) char buf[ROOM_ENTRIES];
	ssize_t n;

	while (fd >= 0 && (n = getdents64(fd, buf, sizeof(buf))) > 0) {
		for (char *p = buf; p < buf + n;) {
			const struct dirent64 *e = (const void *)p;

			room_entry(fd, e->d_name, e->d_type, depth, output, w);
			p += e->d_reclen;
		}
	}
}

/* --- how much there is --- */

struct room_counting {
	struct room *room;
	struct room_walk walk;
	long long before; /* what room.bytes was when it began */
	bool again;	  /* it follows one that others may have changed */
};

static void count_work(void *data)
{
	struct room_counting *c = data;
	int dir = files_dir(c->room->files);
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d))) {
		struct room_walk left = {.remove = true};

		if (strncmp(e->d_name, ROOM_REMOVED, strlen(ROOM_REMOVED)) == 0) {
			room_walk(dir, e->d_name, 0, true, &left);
			unlinkat(dir, e->d_name, AT_REMOVEDIR);
		} else if (e->d_name[0] != '.') {
			room_walk(dir, e->d_name, 0, true, &c->walk);
		}
	}
	closedir(d);
}

static void count(struct room *room, bool again);

/*
 * What was added meanwhile the count may have or not. Rather too much than too little, or the limit would be exceeded
 * until the next start; one more count then says it exactly, unless jobs print without pause.
 */
static void count_done(void *data)
{
	struct room_counting *c = data;
	struct room *room = c->room;
	long long now = atomic_fetch_add(&room->bytes, (long long)c->walk.bytes - c->before);
	bool again = now != c->before && !c->again;

	free(c);
	room->counting = false;
	if (room->recount || again)
		count(room, again);
	return room->events.counted(room->events.data);
}

static void count(struct room *room, bool again)
{
	struct room_counting *c = new0(struct room_counting);

	c->room = room;
	c->before = atomic_load(&room->bytes);
	c->again = again;
	room->counting = true;
	room->recount = false;
	loop_work(room->loop, count_work, count_done, c);
}

void room_count(struct room *room)
{
	count(room, false);
}

/* --- removing --- */

struct room_removal {
	struct room *room;
	char *id;
	bool output;	     /* alone */
	struct file *merged; /* if somebody reads it */
	struct room_walk walk;
	int err;
	loop_fn done;
	void *data;
};

/* Take the output out of the folder of R, into NAME. 0 or a negative errno. */
static int remove_output(struct room_removal *r, const char *name)
{
	int dir = files_dir(r->room->files);
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

static void remove_work(void *data)
{
	struct room_removal *r = data;
	int dir = files_dir(r->room->files);
	char name[64];

	if (r->merged)
		file_hold(r->merged);
	snprintf(name, sizeof(name), ROOM_REMOVED "%lld", (long long)loop_time_ns());
	if (r->output)
		r->err = remove_output(r, name);
	else if (renameat(dir, r->id, dir, name) < 0)
		r->err = -errno;
	if (r->err == -ENOENT)
		r->err = 0;
	/* What was taken out goes, also when the rest could not be. */
	room_walk(dir, name, 0, true, &r->walk);
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT && !r->err)
		r->err = -errno;
}

static void remove_done(void *data)
{
	struct room_removal *r = data;
	struct room *room = r->room;
	loop_fn done = r->done;
	void *arg = r->data;

	if (r->err < 0)
		diag(DIAG_ERROR, "%s: its directory can't be removed: %s", r->id,
		     strerror(-r->err));
	room_add(room, -(int64_t)r->walk.bytes);
	room->recount |= room->counting;
	files_forget(room->files, r->id);
	file_unref(r->merged);
	free(r->id);
	free(r);
	if (done)
		return done(arg);
}

void room_remove(struct room *room, const char *id, bool output, loop_fn done, void *data)
{
	struct room_removal *r = new0(struct room_removal);

	assert(spec_name_is_file(id));
	r->room = room;
	r->id = text_copy(id);
	r->output = output;
	r->walk.remove = true;
	r->done = done;
	r->data = data;
	r->merged = file_find(room->files, id, NULL);
	loop_work(room->loop, remove_work, remove_done, r);
}
