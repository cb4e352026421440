/* SPDX-License-Identifier: MIT */
/* Records as text, and their files; see record.h. */
#include "fs/submit/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define RECORD_HEAD "kxfs submit 2\n"
/* Launches of one name that are under way. */
#define RECORD_MAX_PENDING 1000
/* The largest number of a launch, which is one of 48 bits. */
#define RECORD_MAX_NUMBER ((UINT64_C(1) << 48) - 1)
/* The largest record: the other lines are bounded by the length of a name. */
#define RECORD_MAX (RECORD_MAX_ERROR + 1024 + RECORD_MAX_PENDING * 48)

/* --- text --- */

/* Stands for a digest that nobody knows. */
static const char unknown[RECORD_DIGEST] =
	"0000000000000000000000000000000000000000000000000000000000000000";

char *record_text(const struct record *r)
{
	char *text = NULL;
	size_t len;
	FILE *out = text_stream(&text, &len);

	fputs(RECORD_HEAD, out);
	if (r->launched_ino)
		fprintf(out, "launched %" PRIu64 " %s\n", r->launched_ino,
			*r->launched ? r->launched : unknown);
	if (r->told)
		fputs("told\n", out);
	if (r->job)
		fprintf(out, "job %s %" PRId64 "\n", r->job, r->job_time);
	if (r->job_number || r->number)
		fprintf(out, "numbers %" PRIu64 " %" PRIu64 "\n", r->job_number, r->number);
	for (size_t i = 0; i < r->n_pending && i < RECORD_MAX_PENDING; i++)
		fprintf(out, "pending %s\n", r->pending[i]);
	if (r->file_owned)
		fprintf(out, "file %u %u\n", r->file_owner.uid, r->file_owner.gid);
	if (r->owned)
		fprintf(out, "owner %u %u\n", r->owner.uid, r->owner.gid);
	if (r->error)
		fprintf(out, "error %" PRId64 " %zu\n%s", r->error_time, strlen(r->error),
			r->error);
	text_stream_close(out);
	return text;
}

/* Take the decimal number at *P, at most MAX, and the character END behind it. */
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

static bool take_launched(const char **p, struct record *r)
{
	if (!take_number(p, UINT64_MAX, ' ', &r->launched_ino) || !r->launched_ino)
		return false;
	if (strspn(*p, "0123456789abcdef") != RECORD_DIGEST - 1 || (*p)[RECORD_DIGEST - 1] != '\n')
		return false;
	if (strncmp(*p, unknown, RECORD_DIGEST - 1) != 0)
		memcpy(r->launched, *p, RECORD_DIGEST - 1);
	*p += RECORD_DIGEST;
	return true;
}

static bool take_told(const char **p, struct record *r)
{
	r->told = true;
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

static bool take_numbers(const char **p, struct record *r)
{
	return take_number(p, RECORD_MAX_NUMBER, ' ', &r->job_number) &&
	       take_number(p, RECORD_MAX_NUMBER, '\n', &r->number);
}

static bool take_pending(const char **p, struct record *r)
{
	size_t n = strcspn(*p, "\n");
	char uuid[RECORD_UUID] = "";

	if (n != RECORD_UUID - 1 || strspn(*p, "0123456789abcdef-") != n || (*p)[n] != '\n' ||
	    r->n_pending == RECORD_MAX_PENDING)
		return false;
	memcpy(uuid, *p, n);
	record_add_pending(r, uuid);
	*p += n + 1;
	return true;
}

static bool take_ids(const char **p, struct record_owner *ret)
{
	uint64_t uid, gid;

	if (!take_number(p, UINT32_MAX - 1, ' ', &uid) ||
	    !take_number(p, UINT32_MAX - 1, '\n', &gid))
		return false;
	*ret = (struct record_owner){(uid_t)uid, (gid_t)gid};
	return true;
}

static bool take_file(const char **p, struct record *r)
{
	r->file_owned = take_ids(p, &r->file_owner);
	return r->file_owned;
}

static bool take_owner(const char **p, struct record *r)
{
	r->owned = take_ids(p, &r->owner);
	return r->owned;
}

/* Take the last line, and the text behind it up to the end of the record. */
static bool take_error(const char **p, struct record *r)
{
	uint64_t n;

	if (!take_time(p, ' ', &r->error_time) || !take_number(p, RECORD_MAX_ERROR, '\n', &n) ||
	    n != strlen(*p))
		return false;
	r->error = mem_copy(*p, n);
	*p += n;
	return true;
}

static const struct {
	const char *key; /* the key, with the character that follows it */
	bool (*take)(const char **p, struct record *r);
} lines[] = {
	{"launched ", take_launched}, {"told\n", take_told},	  {"job ", take_job},
	{"pending ", take_pending},   {"owner ", take_owner},	  {"error ", take_error},
	{"file ", take_file},	      {"numbers ", take_numbers},
};

static bool take_line(const char **p, struct record *r)
{
	for (size_t i = 0; i < array_size(lines); i++) {
		size_t n = strlen(lines[i].key);

		if (strncmp(*p, lines[i].key, n) == 0) {
			*p += n;
			return lines[i].take(p, r);
		}
	}
	return false;
}

int record_parse(const char *text, size_t len, struct record *ret)
{
	const char *p = text;

	*ret = (struct record){0};
	if (memchr(text, '\0', len) || strncmp(text, RECORD_HEAD, strlen(RECORD_HEAD)) != 0)
		return -EINVAL;
	p += strlen(RECORD_HEAD);
	while (*p)
		if (!take_line(&p, ret))
			return -EINVAL;
	return 0;
}

void record_add_pending(struct record *r, const char *uuid)
{
	r->pending = mem_grow(r->pending, r->n_pending + 1, sizeof(*r->pending));
	snprintf(r->pending[r->n_pending++], RECORD_UUID, "%s", uuid);
}

void record_clear(struct record *r)
{
	free(r->job);
	free(r->pending);
	free(r->error);
	*r = (struct record){0};
}

bool record_is_empty(const struct record *r)
{
	return !r->launched_ino && !r->told && !r->job && !r->n_pending && !r->error &&
	       !r->file_owned;
}

/* --- files --- */

struct launches {
	char *state_dir;
	char *path;
	char *temp; /* in STATE, since in the directory itself its name could be that of a record */
	int state_fd;
	int fd;
};

int launches_open(const char *state_dir, const char *name, struct launches **ret)
{
	struct launches *all = new0(struct launches);
	int err;

	all->state_dir = text_copy(state_dir);
	all->path = text_print("%s/%s.records", state_dir, name);
	all->temp = text_print("%s.new", name);
	all->fd = -1;
	all->state_fd = disk_open(AT_FDCWD, state_dir, O_RDONLY | O_DIRECTORY);
	err = all->state_fd < 0 ? all->state_fd : disk_mkdir(AT_FDCWD, all->path);
	if (!err || err == -EEXIST) {
		all->fd = disk_open(AT_FDCWD, all->path, O_RDONLY | O_DIRECTORY);
		err = all->fd < 0 ? all->fd : 0;
	}
	if (err)
		launches_free(all);
	else
		*ret = all;
	return err;
}

void launches_free(struct launches *all)
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

const char *launches_path(const struct launches *all)
{
	return all->path;
}

int launches_write(struct launches *all, const char *name, const struct record *r)
{
	char *text cleanup_free = NULL;
	int fd cleanup_fd = -1;
	int err;

	if (record_is_empty(r)) {
		err = disk_unlink(all->fd, name);
		return err == -ENOENT ? 0 : err;
	}
	text = record_text(r);
	fd = file_open_new(all->state_fd, all->temp);
	err = fd < 0 ? fd : file_write_all(fd, text, strlen(text));
	return err ? err : disk_rename(all->state_fd, all->temp, all->fd, name);
}

int launches_read(struct launches *all, const char *name, struct record *ret)
{
	char *path cleanup_free = text_print("%s/%s", all->path, name);
	char *text cleanup_free = NULL;
	size_t len = 0;
	int err = file_read(path, RECORD_MAX, &text, &len);

	*ret = (struct record){0};
	if (!err)
		err = record_parse(text, len, ret);
	return err == -EFBIG || err == -ELOOP ? -EINVAL : err;
}

struct each {
	int (*fn)(void *data, const char *name);
	void *data;
};

static int each_name(void *data, int at, const char *name, unsigned char type)
{
	const struct each *each = data;

	return each->fn(each->data, name);
}

int launches_each(struct launches *all, int (*fn)(void *data, const char *name), void *data)
{
	struct each each = {fn, data};

	return disk_list(AT_FDCWD, all->path, each_name, &each);
}

void launches_aside(struct launches *all, const char *name, int err)
{
	char *from cleanup_free = text_print("%s/%s", all->path, name);
	char *dir cleanup_free = text_print("%s/aside", all->state_dir);
	/* The name leaves room for the number that file_aside may add. */
	char *to cleanup_free = text_print("%s/%.*s.record", dir, NAME_MAX - 20, name);
	char *place cleanup_free = NULL;
	int moved = disk_mkdir(AT_FDCWD, dir);

	if (!moved || moved == -EEXIST)
		moved = file_keep_aside(from, to, &place);
	if (moved)
		diag(DIAG_WARNING, "%s %s, and can't be kept in aside/: %s", from, file_fault(err),
		     strerror(-moved));
	else
		diag(DIAG_WARNING, "%s %s; it is in %s now, and what became of %s is not known",
		     from, file_fault(err), place, name);
}
