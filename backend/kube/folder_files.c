/* SPDX-License-Identifier: MIT */
/* What stands on disk is from outside: any of it may be missing, damaged, or of another version. */
#include "backend/kube/folder_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/sha256.h"
#include "spec/base/time.h"
#include "spec/job/snapshot.h"

#define UUID_LEN       36
#define SUBMISSION_MAX (UUID_LEN + 1 + NAME_MAX + 1 + UID_MAX + 1)
#define DIGEST_LEN     64
#define UNDER_WAY_MAX  (2 * (NAME_MAX + 1) + DIGEST_LEN + 1 + SPEC_MAX_FILE)
#define UID_MAX	       255
#define UID_SHORT      8
#define SNAPSHOT_MAX   (64u << 20)

/* Read NAME in the folder ID. 0; -ENOENT; -EINVAL: it is not a file of ours; any other errno: it can't be read now. */
static int read_file(const char *state_dir, const char *id, const char *name, size_t max,
		     char **ret, size_t *ret_len)
{
	cleanup_free char *path = file_path(state_dir, id, name);
	int err = file_read(path, max, ret, ret_len);

	return err == -EFBIG || err == -ELOOP || err == -ENOTDIR ? -EINVAL : err;
}

/* --- a folder, at the start --- */

/*
 * Take the line at *P, whose newline becomes a NUL; *P, which has LEFT bytes, then stands behind it. NULL: there is
 * none.
 */
static char *take_line(char **p, size_t *left)
{
	char *line = *p, *end = memchr(line, '\n', *left);

	if (!end)
		return NULL;
	*end++ = '\0';
	*left -= (size_t)(end - line);
	*p = end;
	return line;
}

static int is_printed(void *data, int at, const char *name, unsigned char type)
{
	struct stat st;

	return spec_name_is_file(name) && (disk_stat(at, name, &st) < 0 || st.st_size > 0);
}

/* Has the job printed anything? Empty files of logs are made before that. */
static bool has_output(const char *state_dir, const char *id)
{
	cleanup_free char *path = file_path(state_dir, id, "logs");

	return disk_list(AT_FDCWD, path, is_printed, NULL) > 0;
}

char *folder_files_name_of(const char *id, const char *uid)
{
	static const char plain[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
	size_t n = strspn(uid, plain);
	char *name = text_print("%s~%.*s", id, (int)min_of(n, (size_t)UID_SHORT), uid);

	if (n > 0 && spec_name_is_file(name))
		return name;
	free(name);
	return NULL;
}

/*
 * If the folder was moved under another name after the snapshot of F was written, give the snapshot the folder's name.
 */
static int take_moved(struct folder_found *f)
{
	cleanup_free char *name = folder_files_name_of(f->snapshot->id, f->snapshot->uid);
	struct spec_job *job;

	if (!name || !streq(name, f->id)) {
		spec_job_unref(take_ptr(f->snapshot));
		return -EINVAL;
	}
	job = spec_job_copy(f->snapshot);
	text_set(&job->id, "%s", f->id);
	spec_job_unref(f->snapshot);
	f->snapshot = job;
	return 0;
}

static int load_submission(const char *state_dir, struct folder_found *f)
{
	cleanup_free char *path = file_path(state_dir, f->id, "submission");
	cleanup_free char *text = NULL;
	char *rest;
	const char *line;
	struct stat st;
	size_t len;
	int err = read_file(state_dir, f->id, "submission", SUBMISSION_MAX, &text, &len);

	if (err)
		return err;
	rest = text;
	line = take_line(&rest, &len);
	f->submission = text_copy(line ? line : text);
	line = line ? take_line(&rest, &len) : NULL;
	if (!line || disk_stat(AT_FDCWD, path, &st) < 0)
		return 0;
	f->file = text_copy(line);
	line = take_line(&rest, &len);
	f->uid = line && *line ? text_copy(line) : NULL;
	f->written = spec_time_of(st.st_mtim);
	return 0;
}

/* --- submissions that were under way when a mount ended --- */

/* The path of STATE/submissions (UUID is NULL), or of UUID in it. */
static char *under_way_path(const char *state_dir, const char *uuid)
{
	return text_print("%s/submissions%s%s", state_dir, uuid ? "/" : "", uuid ? uuid : "");
}

/* The digest by which a start sees that a submission's whole file reached the disk; each submission has another one. */
static void under_way_digest(const char *uuid, const char *id, const char *file, const char *text,
			     size_t len, char ret[DIGEST_LEN + 1])
{
	char *head = text_print("%s\n%s\n%s\n", uuid, id, file);
	size_t n = strlen(head);
	cleanup_free char *all = mem_grow(head, n + len, 1);

	memcpy(all + n, text, len);
	spec_sha256(all, n + len, ret);
}

/* Write NAME in DIR and set its mtime to TIME (ns), that of the submission. */
static int write_at(const char *dir, const char *name, const char *text, size_t len, int64_t time)
{
	cleanup_free char *path = text_print("%s/%s", dir, name);
	int err = file_write(dir, name, text, len);

	return err ? err : disk_touch(AT_FDCWD, path, time);
}

/* Write NAME in DIR, unless it has this text already, with at most MORE bytes behind it. */
static int complete_file(const char *dir, const char *name, const char *text, size_t len,
			 size_t more, int64_t time)
{
	cleanup_free char *path = text_print("%s/%s", dir, name);
	cleanup_free char *now = NULL;
	size_t n;
	int err = file_read(path, len + more, &now, &n);

	if (!err && n >= len && memcmp(now, text, len) == 0)
		return 0;
	return write_at(dir, name, text, len, time);
}

/* Does the folder ID belong to another submission by now? */
static bool is_of_another(const char *state_dir, const char *id, const char *uuid)
{
	cleanup_free char *text = NULL;
	size_t len;
	int err = read_file(state_dir, id, "submission", SUBMISSION_MAX, &text, &len);

	return !err && len > UUID_LEN && text[UUID_LEN] == '\n' &&
	       strncmp(text, uuid, UUID_LEN) != 0;
}

/* The file of a submission that is under way, cut into its parts. */
struct under_way {
	const char *id, *file;
	const char *text; /* the text that the user wrote; LEN bytes */
	size_t len;
	int64_t time; /* when it was written, in ns */
};

/* Take TEXT apart; *RET points into it. -EINVAL: it is not the whole file of the submission UUID. */
static int under_way_parse(const char *uuid, char *text, size_t len, struct under_way *ret)
{
	const char *id = take_line(&text, &len), *file = id ? take_line(&text, &len) : NULL;
	const char *digest = file ? take_line(&text, &len) : NULL;
	char expected[DIGEST_LEN + 1];

	if (!digest || strlen(uuid) != UUID_LEN || !spec_name_is_file(id))
		return -EINVAL;
	under_way_digest(uuid, id, file, text, len, expected);
	if (!streq(digest, expected))
		return -EINVAL;
	ret->id = id;
	ret->file = file;
	ret->text = text;
	ret->len = len;
	return 0;
}

/* Make whatever the folder of the submission UUID lacks. */
static int complete(const char *state_dir, const char *uuid, const struct under_way *u)
{
	cleanup_free char *dir = file_path(state_dir, u->id, NULL);
	cleanup_free char *submission = text_print("%s\n%s\n", uuid, u->file);
	int err;

	if (is_of_another(state_dir, u->id, uuid))
		return folder_files_forget(state_dir, uuid);
	err = disk_mkdir(AT_FDCWD, dir);
	if (err < 0 && err != -EEXIST)
		return err;
	err = complete_file(dir, "app.yaml", u->text, u->len, 0, u->time);
	if (!err)
		err = complete_file(dir, "submission", submission, strlen(submission), UID_MAX + 1,
				    u->time);
	return err ? err : folder_files_settle(state_dir, u->id, uuid, "");
}

/* Move what stands at FROM to STATE/unread/NAME. */
static int move_aside(const char *state_dir, const char *from, const char *name, char **ret_place)
{
	cleanup_free char *unread = text_print("%s/unread", state_dir);
	cleanup_free char *to = text_print("%s/%s", unread, name);

	int err = disk_mkdir(AT_FDCWD, unread);

	if (err < 0 && err != -EEXIST)
		return err;
	return file_aside(from, to, ret_place);
}

static void under_way_aside(const char *state_dir, const char *uuid, const char *path)
{
	/* The name leaves room for the number that file_aside may add. */
	cleanup_free char *name = text_print("%.*s.submission", NAME_MAX - 20, uuid);
	cleanup_free char *place = NULL;
	int err = move_aside(state_dir, path, name, &place);

	if (err)
		diag(DIAG_WARNING, "%s is damaged, and can't be moved away: %s", path,
		     strerror(-err));
	else
		diag(DIAG_WARNING,
		     "%s is damaged, most probably by a power cut before anything was sent; it is in %s now",
		     path, place);
}

static int complete_submission(const char *state_dir, const char *uuid)
{
	cleanup_free char *path = under_way_path(state_dir, uuid);
	cleanup_free char *text = NULL;
	struct under_way u = {0};
	struct stat st;
	size_t len;
	int err = file_read(path, UNDER_WAY_MAX, &text, &len);

	if (!err)
		err = disk_stat(AT_FDCWD, path, &st);
	/* A power cut before the first sync had ended leaves an empty file: nothing was sent. */
	if (!err && len == 0)
		return folder_files_forget(state_dir, uuid);
	if (!err)
		err = under_way_parse(uuid, text, len, &u);
	/* A file that is damaged or not ours does not keep kxfs from starting. */
	if (err == -EINVAL || err == -EFBIG || err == -ELOOP) {
		under_way_aside(state_dir, uuid, path);
		return 0;
	}
	if (err)
		return err == -ENOENT ? 0 : err;
	u.time = spec_time_of(st.st_mtim);
	err = complete(state_dir, uuid, &u);
	switch (err) {
	case -EINVAL:
	case -EFBIG:
	case -ELOOP:
	case -ENOTDIR:
	case -EISDIR:
	case -ENOENT:
		diag(DIAG_WARNING, "%s: its folder can't be completed: %s", path, strerror(-err));
		return 0;
	default:
		return err;
	}
}

struct loading {
	const char *state_dir;
	struct folder_found **found;
};

static int complete_one(void *data, int at, const char *name, unsigned char type)
{
	const struct loading *l = data;

	if (spec_name_is_file(name))
		return complete_submission(l->state_dir, name);
	(void)disk_unlink(at, name); /* its writing was never finished */
	return 0;
}

static int load_one(void *data, int at, const char *name, unsigned char type)
{
	const struct loading *l = data;
	struct folder_found *f;
	cleanup_free char *text = NULL;
	size_t len;
	int err;

	/* A file is the record of a job. */
	if (!spec_name_is_file(name) || !file_is_dir(at, name, type))
		return 0;
	f = new0(struct folder_found);
	f->next = *l->found;
	*l->found = f;
	f->id = text_copy(name);
	err = load_submission(l->state_dir, f);
	if (!err || err == -ENOENT || err == -EINVAL)
		err = read_file(l->state_dir, f->id, "dropped", UID_MAX, &f->dropped, &len);
	if (err && err != -ENOENT && err != -EINVAL)
		return err;
	err = read_file(l->state_dir, f->id, "job.json", SNAPSHOT_MAX, &text, &len);
	if (!err)
		err = spec_snapshot_parse(text, len, &f->snapshot);
	if (!err && !streq(f->snapshot->id, f->id))
		err = take_moved(f);
	if (err == -ENOENT) {
		/* If there is output, an earlier mount ended before it had written its job.json. */
		f->unread = !f->dropped && has_output(l->state_dir, f->id);
		return 0;
	}
	if (err != -EINVAL && err != -ENOTSUP)
		return err;
	f->unread = !f->dropped;
	diag(DIAG_WARNING,
	     "%s/jobs/%s/job.json %s; unless the cluster still has the job it is not shown, "
	     "and its output stays in that folder",
	     l->state_dir, f->id, file_fault(err));
	return 0;
}

int folder_files_load(const char *state_dir, struct folder_found **ret)
{
	cleanup_free char *jobs = text_print("%s/jobs", state_dir);
	cleanup_free char *under_way = under_way_path(state_dir, NULL);
	struct loading l = {state_dir, ret};
	int err = disk_mkdir(AT_FDCWD, under_way);

	*ret = NULL;
	if (err == 0)
		err = file_sync_dir(state_dir);
	if (err == 0 || err == -EEXIST)
		err = disk_list(AT_FDCWD, under_way, complete_one, &l);
	return err ? err : disk_list(AT_FDCWD, jobs, load_one, &l);
}

void folder_found_free(struct folder_found *f)
{
	spec_job_unref(f->snapshot);
	free(f->id);
	free(f->submission);
	free(f->file);
	free(f->uid);
	free(f->dropped);
	free(f);
}

/* --- a submission --- */

/* Make NAME in DIR without a sync. */
static int write_unsynced(const char *dir, const char *name, const char *text, size_t len,
			  mode_t readable)
{
	cleanup_free char *path = text_print("%s/%s", dir, name);
	cleanup_fd int fd = disk_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL);
	int err = fd < 0 ? fd : disk_chmod(fd, "", S_IRUSR | S_IWUSR | readable);

	return err < 0 ? err : file_write_all(fd, text, len);
}

/* Does the folder ID belong to this SUBMISSION, or to none? A submission that is tried again has the same name. */
static bool is_begun(const char *state_dir, const char *id, const char *submission)
{
	cleanup_free char *text = NULL;
	size_t len;
	int err = read_file(state_dir, id, "submission", SUBMISSION_MAX, &text, &len);

	return err == -ENOENT ||
	       (!err && len <= strlen(submission) && strncmp(submission, text, len) == 0);
}

int folder_files_submit(const char *state_dir, const struct folder_submission *s)
{
	static const char *const begun[] = {"app.yaml", "submission"};
	cleanup_free char *dir = file_path(state_dir, s->id, NULL);
	cleanup_free char *under_way = under_way_path(state_dir, NULL);
	cleanup_free char *submission = text_print("%s\n%s\n", s->uuid, s->file);
	cleanup_free char *head = NULL, *all = NULL;
	char digest[DIGEST_LEN + 1];
	size_t n;
	int err;

	err = disk_mkdir(AT_FDCWD, dir);
	if (err == -EEXIST && is_begun(state_dir, s->id, submission)) {
		err = file_remove_dir(dir, begun, array_size(begun));
		err = err ? err : disk_mkdir(AT_FDCWD, dir);
	}
	if (err)
		return err;
	err = write_unsynced(dir, "app.yaml", s->text, s->len, s->readable);
	if (!err)
		err = write_unsynced(dir, "submission", submission, strlen(submission), 0);
	if (err)
		return err;
	under_way_digest(s->uuid, s->id, s->file, s->text, s->len, digest);
	head = text_print("%s\n%s\n%s\n", s->id, s->file, digest);
	n = strlen(head);
	all = mem_grow(NULL, n + s->len + 1, 1);
	memcpy(stpcpy(all, head), s->text, s->len);
	err = file_make(under_way, s->uuid, all, n + s->len);
	if (err)
		(void)folder_files_forget(state_dir, s->uuid);
	return err;
}

int folder_files_resume(const char *state_dir, const struct folder_submission *s, int64_t time)
{
	cleanup_free char *dir = file_path(state_dir, s->id, NULL);

	return complete_file(dir, "app.yaml", s->text, s->len, 0, time);
}

static int sync_file(const char *state_dir, const char *id, const char *name)
{
	cleanup_free char *path = file_path(state_dir, id, name);
	cleanup_fd int fd = disk_open(AT_FDCWD, path, O_RDONLY);

	return fd < 0 ? fd : disk_sync(fd);
}

/* Write UID into the file `submission` of ID, unless it is there. */
static int write_uid(const char *state_dir, const char *id, const char *uid)
{
	cleanup_free char *dir = file_path(state_dir, id, NULL);
	struct folder_found *f = new0(struct folder_found);
	cleanup_free char *text = NULL;
	int err;

	f->id = text_copy(id);
	err = load_submission(state_dir, f);
	if (!err && f->file && !(f->uid && streq(f->uid, uid))) {
		text = text_print("%s\n%s\n%s\n", f->submission, f->file, uid);
		err = write_at(dir, "submission", text, strlen(text), f->written);
	}
	folder_found_free(f);
	return err;
}

int folder_files_settle(const char *state_dir, const char *id, const char *uuid, const char *uid)
{
	cleanup_free char *dir = file_path(state_dir, id, NULL);
	cleanup_free char *jobs = text_print("%s/jobs", state_dir);
	int err = *uid ? write_uid(state_dir, id, uid) : sync_file(state_dir, id, "submission");

	if (!err)
		err = sync_file(state_dir, id, "app.yaml");
	if (!err)
		err = file_sync_dir(dir);
	if (!err)
		err = file_sync_dir(jobs);
	/* The folder may have been removed meanwhile. */
	return err && err != -ENOENT ? err : folder_files_forget(state_dir, uuid);
}

int folder_files_forget(const char *state_dir, const char *uuid)
{
	cleanup_free char *path = under_way_path(state_dir, uuid);

	int err = disk_unlink(AT_FDCWD, path);

	return err == -ENOENT ? 0 : err;
}

/* --- a snapshot, and the end --- */

int folder_files_save(const char *state_dir, const struct spec_job *job, bool unread,
		      char **ret_place)
{
	cleanup_free char *dir = file_path(state_dir, job->id, NULL);
	cleanup_free char *from = text_print("%s/job.json", dir);
	cleanup_free char *to = text_print("%s/job.json.unread", dir);
	cleanup_free char *text = spec_snapshot_text(job);
	int err = unread ? file_aside(from, to, ret_place) : 0;

	/* Before a crash the old snapshot may have been moved aside without a new one having been written. */
	if (err && err != -ENOENT)
		return err;
	return file_write(dir, "job.json", text, strlen(text));
}

int folder_files_drop(const char *state_dir, const char *id, const char *uid)
{
	cleanup_free char *dir = file_path(state_dir, id, NULL);

	return file_write(dir, "dropped", uid, strlen(uid));
}

int folder_files_aside(const char *state_dir, const char *id, char **ret_place)
{
	cleanup_free char *from = file_path(state_dir, id, NULL);

	return move_aside(state_dir, from, id, ret_place);
}
