/* SPDX-License-Identifier: MIT */
/* The files of records; see record_file.h. */
#include "backend/jobs/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "spec/base/encode.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

#define FIRST_READ (16u << 10) /* most heads fit into it */
#define MAX_FILE   (SPEC_HEAD_LINE + SPEC_MAX_HEAD + SPEC_MAX_FILE + SPEC_HEAD_MANIFEST)
/*
 * The last version of a record has all results of the job. kxfs reserves space for it: ROOM_TIMES
 * the size of the first version, plus ROOM bytes.
 */
#define ROOM	   (16u << 10)
#define ROOM_TIMES 4

static char *jobs_dir(const char *state_dir)
{
	return text_print("%s/jobs", state_dir);
}

static int damaged_for(int err)
{
	return err == -EFBIG || err == -ELOOP || err == -ENOTDIR || err == -EISDIR ? -EINVAL : err;
}

/* Read exactly N bytes at OFF. Return -EINVAL if the file is shorter. */
static int read_exactly(int fd, char *buf, size_t n, uint64_t off)
{
	ssize_t got = file_read_sure(fd, buf, n, off);

	return got < 0 ? (int)got : (size_t)got == n ? 0 : -EINVAL;
}

/* A record file that kxfs has read up to the end of the head. */
struct opened {
	int fd;
	struct spec_head_line line;
	int64_t mtime;
	char *text; /* first line, head, and perhaps the beginning of the document */
	size_t len; /* of TEXT */
};

static void opened_close(struct opened *o)
{
	free(o->text);
	base_close_fd(&o->fd);
}

static int open_record(const char *state_dir, const char *key, struct opened *o)
{
	cleanup_free char *path = text_print("%s/jobs/%s", state_dir, key);
	struct stat st;
	size_t size, end;
	int err;

	o->fd = disk_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
	if (o->fd < 0)
		return damaged_for(o->fd);
	err = disk_stat(o->fd, "", &st);
	if (err < 0)
		return err;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uintmax_t)st.st_size > MAX_FILE)
		return -EINVAL;
	size = (size_t)st.st_size;
	o->mtime = spec_time_of(st.st_mtim);
	o->len = min_of(size, (size_t)FIRST_READ);
	o->text = mem_grow(NULL, o->len + 1, 1);
	err = read_exactly(o->fd, o->text, o->len, 0);
	if (!err)
		err = spec_head_line_parse(o->text, o->len, &o->line);
	if (err < 0)
		return err;
	end = SPEC_HEAD_LINE + o->line.head;
	if (end + o->line.document + o->line.manifest != size)
		return -EINVAL;
	if (end <= o->len)
		return 0;
	o->text = mem_grow(o->text, end + 1, 1);
	err = read_exactly(o->fd, o->text + o->len, end - o->len, o->len);
	o->len = end;
	return err;
}

/* Set *RET (malloc'ed) to the document and the manifest, and *RET_SUM to their checksum. */
static int read_any(const struct opened *o, char **ret, uint64_t *ret_sum)
{
	const size_t n = o->line.document + o->line.manifest;
	cleanup_free char *rest = mem_grow(NULL, n + 1, 1);
	int err = read_exactly(o->fd, rest, n, SPEC_HEAD_LINE + o->line.head);

	if (err)
		return err;
	rest[n] = '\0';
	*ret_sum = spec_fnv1a(SPEC_FNV1A_INIT, rest, n);
	*ret = take_ptr(rest);
	return 0;
}

/* Like read_any, but verify the checksum. */
static int read_rest(const struct opened *o, char **ret)
{
	uint64_t sum;
	int err = read_any(o, ret, &sum);

	return !err && sum != o->line.rest_sum ? -EINVAL : err;
}

int record_file_read(const char *state_dir, const char *key, struct spec_head **ret)
{
	struct opened o cleanup(opened_close) = {.fd = -1};
	cleanup(spec_head_freep) struct spec_head *h = NULL;
	cleanup_free char *rest = NULL;
	int err = open_record(state_dir, key, &o);

	if (!err)
		err = spec_head_parse(&o.line, o.text + SPEC_HEAD_LINE, &h);
	if (err)
		return err;
	/* If somebody has copied the file to another name, the copy is not another job. */
	if (!streq(h->key, key))
		return -EINVAL;
	if (h->state == RECORD_HELD || h->state == RECORD_SUBMITTING)
		err = read_rest(&o, &rest);
	if (err)
		return err;
	/* record_file_mark stores the time of the move to history/ only as the file's mtime. */
	if (h->state == RECORD_HISTORY)
		h->since = o.mtime;
	*ret = take_ptr(h);
	return 0;
}

int record_file_read_rest(const char *state_dir, const char *key, bool manifest, char **ret,
			  size_t *ret_len)
{
	struct opened o cleanup(opened_close) = {.fd = -1};
	cleanup_free char *rest = NULL;
	int err = open_record(state_dir, key, &o);

	if (!err)
		err = read_rest(&o, &rest);
	if (err)
		return err;
	*ret_len = manifest ? o.line.manifest : o.line.document;
	*ret = mem_copy(rest + (manifest ? o.line.document : 0), *ret_len);
	return 0;
}

int record_file_stat(const char *state_dir, const char *key, size_t *ret_len,
		     unsigned *ret_readable)
{
	struct opened o cleanup(opened_close) = {.fd = -1};
	cleanup(spec_head_freep) struct spec_head *h = NULL;
	int err = open_record(state_dir, key, &o);

	if (!err)
		err = spec_head_parse(&o.line, o.text + SPEC_HEAD_LINE, &h);
	if (err)
		return err;
	*ret_len = o.line.document;
	*ret_readable = h->more->readable;
	return 0;
}

/* If H has a plan, reserve space for the record's last change. N is the current file's size. */
static int keep_room(const char *dir, const struct spec_head *h, size_t n)
{
	return h->more->parts[RECORD_PLAN] ? file_keep_room(dir, h->key, ROOM_TIMES * n + ROOM) : 0;
}

/*
 * Return the contents of a record's file, malloc'ed: the first line, H and REST. LINE must have the
 * lengths and the checksum of REST.
 */
static char *compose(const struct spec_head *h, struct spec_head_line *line, const char *rest,
		     size_t *ret_len)
{
	const size_t n = line->document + line->manifest;
	char *all;

	all = spec_head_text(h, line, ret_len);
	all = mem_grow(all, *ret_len + n + 1, 1);
	memcpy(all + *ret_len, rest, n);
	*ret_len += n;
	return all;
}

int record_file_make(const char *state_dir, const struct spec_head *h,
		     const struct record_rest *rest, bool *ret_left)
{
	cleanup_free char *dir = jobs_dir(state_dir), *both = NULL, *all = NULL;
	struct spec_head_line line = {.document = rest->len, .manifest = rest->manifest_len};
	size_t n;
	int err, gone;

	*ret_left = false;
	both = mem_grow(NULL, rest->len + rest->manifest_len + 1, 1);
	memcpy(both, rest->document, rest->len);
	if (rest->manifest_len)
		memcpy(both + rest->len, rest->manifest, rest->manifest_len);
	line.rest_sum = spec_fnv1a(SPEC_FNV1A_INIT, both, rest->len + rest->manifest_len);
	all = compose(h, &line, both, &n);
	err = keep_room(dir, h, n);
	if (!err)
		err = file_make(dir, h->key, all, n);
	if (!err)
		return 0;
	gone = record_file_remove(state_dir, h->key, true);
	*ret_left = gone && gone != -ENOTDIR;
	return err;
}

int record_file_write(const char *state_dir, const struct spec_head *h)
{
	struct opened o cleanup(opened_close) = {.fd = -1};
	cleanup(spec_head_freep) struct spec_head *old = NULL;
	cleanup_free char *rest = NULL, *all = NULL, *dir = jobs_dir(state_dir);
	const bool held = h->state == RECORD_HELD || (h->state == RECORD_SUBMITTING && h->held);
	const bool launched = h->state == RECORD_LIVE || h->state == RECORD_HISTORY;
	struct spec_head_line line;
	const struct spec_head_more *m;
	struct spec_head_more more;
	struct spec_head next = *h;
	uint64_t sum = 0;
	size_t n;
	int err = open_record(state_dir, h->key, &o);

	if (!err)
		err = spec_head_parse(&o.line, o.text + SPEC_HEAD_LINE, &old);
	if (!err)
		err = read_any(&o, &rest, &sum);
	if (!err && sum != o.line.rest_sum && !launched)
		err = -EINVAL;
	if (err)
		return err;
	/* Start with the data in OLD, because H has no MORE after spec_head_forget. */
	more = *old->more;
	m = h->more ? h->more : old->more;
	more.reason = m->reason;
	more.why = m->why;
	more.boot = m->boot;
	for (size_t i = 0; i < RECORD_N_PARTS; i++)
		if (m->parts[i])
			more.parts[i] = *m->parts[i] ? m->parts[i] : NULL;
	next.more = &more;
	line = (struct spec_head_line){.document = o.line.document,
				       .manifest = held ? o.line.manifest : 0};
	/* Keep the old checksum of a damaged document, so that the damage remains detectable. */
	line.rest_sum = sum != o.line.rest_sum
				? o.line.rest_sum
				: spec_fnv1a(SPEC_FNV1A_INIT, rest, line.document + line.manifest);
	all = compose(&next, &line, rest, &n);
	if (more.parts[RECORD_PLAN] && !old->more->parts[RECORD_PLAN])
		err = keep_room(dir, &next, n);
	if (!err)
		err = (h->over && !old->over ? file_write_last : file_write)(dir, h->key, all, n);
	/* Restore the file's mtime, which is the time of the move to history/. */
	if (!err && h->state == RECORD_HISTORY)
		err = record_file_mark(state_dir, h->key, h->since);
	return err;
}

int record_file_mark(const char *state_dir, const char *key, int64_t time)
{
	cleanup_free char *path = text_print("%s/jobs/%s", state_dir, key);
	cleanup_fd int fd = disk_open(AT_FDCWD, path, O_WRONLY | O_NONBLOCK);
	int err = fd < 0 ? fd : file_pwrite_all(fd, "h", 1, SPEC_HEAD_LETTER);

	return err ? err : disk_touch(fd, "", time);
}

int record_file_remove(const char *state_dir, const char *key, bool sync)
{
	cleanup_free char *dir = jobs_dir(state_dir), *path = text_print("%s/%s", dir, key);
	int err = disk_unlink(AT_FDCWD, path);

	if (!err || err == -ENOENT)
		file_free_room(dir, key);
	if (err == -ENOENT)
		err = 0;
	return !err && sync ? file_sync_dir(dir) : err;
}

void record_file_put_aside(const char *state_dir, const char *key, bool passive, int err)
{
	cleanup_free char *path = text_print("%s/jobs/%s", state_dir, key), *place = NULL;
	cleanup_free char *name = text_print("%s.record", key);
	const int moved = passive ? -EROFS : file_aside_state(path, state_dir, name, &place);

	diag(DIAG_WARNING, "%s %s; kxfs neither shows nor launches its job, and %s%s", path,
	     file_fault(err), moved ? "leaves the record there" : "has moved the record to ",
	     moved ? "" : place);
}

bool record_file_output_aside(const char *state_dir, const char *key, char **ret_place)
{
	cleanup_free char *record = text_print("%s/aside/%s.record", state_dir, key);
	cleanup_free char *output = file_path(state_dir, key, NULL);
	struct stat st;

	*ret_place = NULL;
	/* disk_stat follows no link, so it also finds a dangling link. */
	if (disk_stat(AT_FDCWD, record, &st) != 0)
		return false;
	(void)file_aside_state(output, state_dir, key, ret_place);
	return true;
}
