/* SPDX-License-Identifier: MIT */
/* Records as text, and their files; see record.h. */
#include "fs/submit/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define RECORD_HEAD    "kxfs submit 1\n"
#define RECORD_WRITING "writing\n"
/* No record is larger: the lines are bounded by the length of a name. */
#define RECORD_MAX (RECORD_MAX_ERROR + 1024)
/* So many bytes are written in one piece, even if the process is killed meanwhile. */
#define RECORD_PIECE 512

/* --- text --- */

char *record_text(const struct record *r)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		mem_out();
	fputs(RECORD_HEAD, out);
	if (r->launched_ino)
		fprintf(out, "launched %" PRIu64 " %s\n", r->launched_ino, r->launched);
	if (r->job)
		fprintf(out, "job %s %" PRId64 "\n", r->job, r->job_time);
	if (r->pending)
		fprintf(out, "pending %" PRId64 "\n", r->since);
	if (r->writing)
		fputs(RECORD_WRITING, out);
	if (r->owned)
		fprintf(out, "owner %u %u\n", r->owner.uid, r->owner.gid);
	if (r->error)
		fprintf(out, "error %" PRId64 " %zu\n%s", r->error_time, strlen(r->error),
			r->error);
	if (fclose(out))
		mem_out();
	return text;
}

/* The decimal number at *P, at most MAX, and the character END behind it. */
static bool take_number(const char **p, uint64_t max, char end, uint64_t *ret)
{
	char *after;

	if (**p < '0' || **p > '9')
		return false;
	errno = 0;
	*ret = strtoull(*p, &after, 10);
	if (errno || *ret > max || *after != end)
		return false;
	*p = after + 1;
	return true;
}

static bool take_time(const char **p, char end, int64_t *ret)
{
	uint64_t v;

	if (!take_number(p, INT64_MAX, end, &v))
		return false;
	*ret = (int64_t)v;
	return true;
}

/* Is the line at *P a KEY and a blank? *P is then what follows. */
static bool take_key(const char **p, const char *key)
{
	size_t n = strlen(key);

	if (strncmp(*p, key, n) != 0 || (*p)[n] != ' ')
		return false;
	*p += n + 1;
	return true;
}

static bool take_launched(const char **p, struct record *r)
{
	if (!take_number(p, UINT64_MAX, ' ', &r->launched_ino) || !r->launched_ino)
		return false;
	if (strspn(*p, "0123456789abcdef") != RECORD_DIGEST - 1 || (*p)[RECORD_DIGEST - 1] != '\n')
		return false;
	memcpy(r->launched, *p, RECORD_DIGEST - 1);
	*p += RECORD_DIGEST;
	return true;
}

static bool take_job(const char **p, struct record *r)
{
	size_t n = strcspn(*p, " \n");

	if (r->job || n > NAME_MAX || (*p)[n] != ' ')
		return false;
	r->job = mem_copy(*p, n);
	*p += n + 1;
	return spec_name_is_file(r->job) && take_time(p, '\n', &r->job_time);
}

static bool take_owner(const char **p, struct record *r)
{
	uint64_t uid, gid;

	if (!take_number(p, UINT32_MAX - 1, ' ', &uid) ||
	    !take_number(p, UINT32_MAX - 1, '\n', &gid))
		return false;
	r->owned = true;
	r->owner = (struct record_owner){(uid_t)uid, (gid_t)gid};
	return true;
}

/* Read the last line and the text behind it, up to the end of the record. */
static bool take_error(const char **p, const char *end, struct record *r)
{
	uint64_t n;

	if (!take_time(p, ' ', &r->error_time) || !take_number(p, RECORD_MAX_ERROR, '\n', &n) ||
	    n != (size_t)(end - *p))
		return false;
	r->error = mem_copy(*p, n);
	*p = end;
	return true;
}

static bool take_line(const char **p, const char *end, struct record *r)
{
	if (take_key(p, "launched"))
		return take_launched(p, r);
	if (take_key(p, "job"))
		return take_job(p, r);
	if (take_key(p, "pending")) {
		r->pending = true;
		return take_time(p, '\n', &r->since);
	}
	if (strncmp(*p, RECORD_WRITING, strlen(RECORD_WRITING)) == 0) {
		r->writing = true;
		*p += strlen(RECORD_WRITING);
		return true;
	}
	if (take_key(p, "owner"))
		return take_owner(p, r);
	return take_key(p, "error") && take_error(p, end, r);
}

int record_parse(const char *text, size_t len, struct record *ret)
{
	const char *p = text, *end = text + len;

	*ret = (struct record){0};
	if (len == 0 || memchr(text, '\0', len))
		return -EINVAL;
	if (strncmp(text, RECORD_HEAD, strlen(RECORD_HEAD)) != 0)
		return take_key(&p, "kxfs submit") && strchr(p, '\n') ? -ENOTSUP : -EINVAL;
	p += strlen(RECORD_HEAD);
	while (p < end)
		if (!take_line(&p, end, ret))
			return -EINVAL;
	return 0;
}

void record_clear(struct record *r)
{
	free(r->job);
	free(r->error);
	*r = (struct record){0};
}

bool record_is_empty(const struct record *r)
{
	return !r->launched_ino && !r->job && !r->pending && !r->writing && !r->error;
}

/* --- files --- */

struct records {
	char *state_dir;
	char *path;
	char *temp; /* in STATE: a name in the directory itself could be that of a record */
	int state_fd;
	int fd;
};

int records_open(const char *state_dir, const char *name, struct records **ret)
{
	struct records *all = new0(struct records);
	int err = 0;

	all->state_dir = text_copy(state_dir);
	all->path = text_print("%s/%s.records", state_dir, name);
	all->temp = text_print("%s.new", name);
	all->state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	all->fd = -1;
	if (all->state_fd < 0 || (mkdir(all->path, 0700) < 0 && errno != EEXIST))
		err = -errno;
	if (!err)
		all->fd = open(all->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (!err && all->fd < 0)
		err = -errno;
	if (err)
		records_free(all);
	else
		*ret = all;
	return err;
}

void records_free(struct records *all)
{
	if (!all)
		return;
	if (all->fd >= 0)
		close(all->fd);
	if (all->state_fd >= 0)
		close(all->state_fd);
	free(all->state_dir);
	free(all->path);
	free(all->temp);
	free(all);
}

const char *records_path(const struct records *all)
{
	return all->path;
}

static int64_t record_time(const struct stat *st)
{
	return st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
}

/* Does the record in FD, of SIZE bytes, say no more than that the name is being written or submitted? */
static bool record_has_no_verdict(int fd, size_t size)
{
	struct record r cleanup(record_clear) = {0};
	char text[RECORD_PIECE + 1] = "";

	return size <= RECORD_PIECE && file_read_at(fd, text, size, 0) == (ssize_t)size &&
	       record_parse(text, size, &r) == 0 && !r.launched_ino && !r.job && !r.error;
}

/*
 * Write TEXT over the record before it, which spares an inode and the removal of the old one: a disk without a journal
 * may need a millisecond for that. A power cut may leave a part of the text, so nothing is written over that may have
 * been synced and must stay; and the text is no shorter, so there is nothing to cut off. False: it can't be done.
 */
static bool record_write_over(struct records *all, const char *name, const char *text,
			      struct stat *ret)
{
	size_t len = strlen(text);
	int fd cleanup_fd = -1;

	if (len > RECORD_PIECE)
		return false;
	fd = openat(all->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, ret) < 0 || !S_ISREG(ret->st_mode) ||
	    (uintmax_t)ret->st_size > len || !record_has_no_verdict(fd, (size_t)ret->st_size))
		return false;
	return file_pwrite_all(fd, text, len, 0) == 0 && fstat(fd, ret) == 0;
}

/* Make a new file with TEXT, and have it take the place of the record. */
static int record_replace(struct records *all, const char *name, const char *text, struct stat *ret)
{
	int fd cleanup_fd = openat(all->state_fd, all->temp,
				   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int err = fd < 0 ? -errno : file_write_all(fd, text, strlen(text));

	if (!err && (fstat(fd, ret) < 0 || renameat(all->state_fd, all->temp, all->fd, name) < 0))
		err = -errno;
	return err;
}

int records_write(struct records *all, const char *name, const struct record *r, int64_t *ret_time)
{
	char *text cleanup_free = NULL;
	struct stat st;
	int err = 0;

	*ret_time = 0;
	if (record_is_empty(r))
		return unlinkat(all->fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	text = record_text(r);
	if (!record_write_over(all, name, text, &st))
		err = record_replace(all, name, text, &st);
	if (!err)
		*ret_time = record_time(&st);
	return err;
}

int records_read(struct records *all, const char *name, struct record *ret)
{
	char *path cleanup_free = text_print("%s/%s", all->path, name);
	char *text cleanup_free = NULL;
	size_t len = 0;
	struct stat st;
	int err = file_read(path, RECORD_MAX, &text, &len);

	*ret = (struct record){0};
	if (!err)
		err = record_parse(text, len, ret);
	if (!err && ret->pending && !ret->since && lstat(path, &st) == 0)
		ret->since = record_time(&st);
	return err == -EFBIG || err == -ELOOP ? -EINVAL : err;
}

int records_list(struct records *all, char ***ret, size_t *ret_n)
{
	struct dirent **found = NULL;
	int n = scandirat(all->fd, ".", &found, NULL, NULL);

	if (n < 0)
		return -errno;
	*ret = new0_n(char *, (size_t)n);
	*ret_n = 0;
	for (int i = 0; i < n; i++) {
		if (!streq(found[i]->d_name, ".") && !streq(found[i]->d_name, ".."))
			(*ret)[(*ret_n)++] = text_copy(found[i]->d_name);
		free(found[i]);
	}
	free(found);
	return 0;
}

void records_aside(struct records *all, const char *name, int err)
{
	char *from cleanup_free = text_print("%s/%s", all->path, name);
	char *dir cleanup_free = text_print("%s/unread", all->state_dir);
	/* Room is left for the number that file_aside may add. */
	char *to cleanup_free = text_print("%s/%.*s.record", dir, NAME_MAX - 20, name);
	char *place cleanup_free = NULL;
	int moved = mkdir(dir, 0700) < 0 && errno != EEXIST ? -errno : 0;

	if (!moved)
		moved = file_aside(from, to, &place);
	if (moved)
		diag(DIAG_WARNING, "%s %s, and can't be moved away: %s", from, file_fault(err),
		     strerror(-moved));
	else
		diag(DIAG_WARNING, "%s %s; it is in %s now, and what became of %s is not shown",
		     from, file_fault(err), place, name);
}
