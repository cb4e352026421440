/* SPDX-License-Identifier: MIT */
/* Counts and removes the folders of jobs; see room.h. */
#include "backend/output/room.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define ROOM_DEPTH 16 /* depth of folders that are counted or removed, at most */

/* kxfs renames a folder before its removal, so that all output disappears in one step. */
#define ROOM_REMOVED ".removed-"
/* The directory of a local job's attempts. Its files are not output, and are not counted. */
#define ROOM_TASKS "tasks"

struct room {
	struct loop *loop;
	struct files *files;
	atomic_llong bytes;
	unsigned n_counts; /* how many counts have begun */
	/* The members below are about the count in progress, if COUNTING. */
	bool counting;
	bool recount;	  /* something was removed, so the sum may be wrong */
	bool again;	  /* this count repeats one during which files may have changed */
	long long before; /* BYTES when this count began */
	uint64_t counted; /* sum so far; the pool adds to it */
};

struct room *room_new(struct loop *loop, struct files *files)
{
	struct room *room = new0(struct room);

	room->loop = loop;
	room->files = files;
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

struct room_walk {
	uint64_t bytes; /* of the output that was found */
	bool remove;
	unsigned depth;
};

/* Count the output in NAME. If W->remove, also remove NAME. Never follow a link. */
static int room_entry(void *data, int at, const char *name, unsigned char type)
{
	struct room_walk *w = data;
	bool folder = type == DT_DIR;
	const uint64_t before = w->bytes;
	struct stat st = {0};

	/* Not all filesystems return the type in a listing. */
	if (!folder) {
		if (disk_stat(at, name, &st) < 0)
			return 0;
		folder = S_ISDIR(st.st_mode);
	}
	if (folder && w->depth < ROOM_DEPTH) {
		w->depth++;
		disk_list(at, name, room_entry, w);
		w->depth--;
		if (w->depth == 0 && streq(name, ROOM_TASKS))
			w->bytes = before;
	} else if (S_ISREG(st.st_mode)) {
		w->bytes += (uint64_t)st.st_size;
	}
	if (w->remove)
		folder ? disk_rmdir(at, name) : disk_unlink(at, name);
	return 0;
}

/* Count the folder NAME of a job. Finish a removal that a crash has interrupted. */
static int count_folder(void *data, int at, const char *name, unsigned char type)
{
	struct room *room = data;
	struct room_walk w = {.remove = strncmp(name, ROOM_REMOVED, strlen(ROOM_REMOVED)) == 0};

	if (w.remove || name[0] != '.')
		disk_list(at, name, room_entry, &w);
	if (w.remove)
		disk_rmdir(at, name);
	else
		room->counted += w.bytes;
	return 0;
}

static void count_work(void *data)
{
	struct room *room = data;

	disk_list(files_dir(room->files), ".", count_folder, room);
}

/*
 * The sum may or may not include bytes that were added during the count. Assume that it does not:
 * too large a sum does no harm, but with too small a sum, output exceeds the limit until the next
 * start. If bytes were added, count once more for a better sum.
 */
static void count_done(void *data)
{
	struct room *room = data;
	long long now = atomic_fetch_add(&room->bytes, (long long)room->counted - room->before);

	room->again = now != room->before && !room->again;
	room->counting = false;
	if (room->recount || room->again)
		room_count(room);
}

void room_count(struct room *room)
{
	room->n_counts++;
	room->before = atomic_load(&room->bytes);
	room->counted = 0;
	room->counting = true;
	room->recount = false;
	loop_work(room->loop, count_work, count_done, room);
}

struct room_removal {
	struct room *room;
	char *id;
	struct file *merged; /* may have readers */
	struct room_walk walk;
	unsigned n_counts; /* N_COUNTS of ROOM when the removal began */
	int err;
	int left; /* why files remain, as a negative errno; or 0 */
	room_fn done;
	void *data;
};

static int remove_renamed(struct room_removal *r, int dir, const char *name)
{
	int err;

	disk_list(dir, name, room_entry, &r->walk);
	err = disk_rmdir(dir, name);
	return err == -ENOENT ? 0 : err;
}

static void remove_work(void *data)
{
	struct room_removal *r = data;
	int dir = files_dir(r->room->files);
	cleanup_free char *name = text_print(ROOM_REMOVED "%s", r->id);

	file_hold(r->merged);
	r->err = disk_rename(dir, r->id, dir, name);
	/* An earlier removal of this job has left files under the new name. */
	if (r->err == -ENOTEMPTY || r->err == -EEXIST) {
		remove_renamed(r, dir, name);
		r->err = disk_rename(dir, r->id, dir, name);
	}
	if (r->err == -ENOENT)
		r->err = 0;
	r->left = remove_renamed(r, dir, name);
}

static void remove_done(void *data)
{
	struct room_removal *r = data;
	struct room *room = r->room;
	room_fn done = r->done;
	void *arg = r->data;
	int err = r->err;

	if (err < 0 && !done)
		diag(DIAG_ERROR, "%s: its directory can't be removed: %s", r->id, strerror(-err));
	room_add(room, -(int64_t)r->walk.bytes);
	/* A count that began meanwhile may lack the removed bytes, but they were subtracted. */
	if (room->counting)
		room->recount = true;
	else if (room->n_counts != r->n_counts)
		room_count(room);
	if (!r->err && r->left < 0)
		diag(DIAG_ERROR,
		     "%s: some of its files can't be removed: %s; the next start of kxfs retries",
		     r->id, strerror(-r->left));
	files_forget(room->files, r->id);
	file_unref(r->merged);
	free(r->id);
	free(r);
	if (done)
		return done(arg, err);
}

struct room_removal *room_removal_new(struct room *room, const char *id, room_fn done, void *data)
{
	struct room_removal *r = new0(struct room_removal);

	assert(spec_name_is_file(id));
	*r = (struct room_removal){.room = room,
				   .id = text_copy(id),
				   .walk = {.remove = true},
				   .done = done,
				   .data = data};
	return r;
}

void room_remove(void *removal)
{
	struct room_removal *r = removal;

	r->n_counts = r->room->n_counts;
	r->merged = file_get(r->room->files, r->id, NULL);
	loop_work(r->room->loop, remove_work, remove_done, r);
}
