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
#define SUBMISSION_MAX (2 * (NAME_MAX + 1) + UID_MAX + 1)
#define DIGEST_LEN     64
#define UNDER_WAY_MAX  (2 * (NAME_MAX + 1) + DIGEST_LEN + 1 + SPEC_MAX_FILE)
#define UID_MAX	       255
#define SNAPSHOT_MAX   (64u << 20)

/* Read NAME in the folder KEY. 0; -ENOENT; -EINVAL: it is not a file of ours; any other errno: it can't be read now. */
static int read_file(const char *state_dir, const char *key, const char *name, size_t max,
		     char **ret, size_t *ret_len)
{
	cleanup_free char *path = file_path(state_dir, key, name);
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
static bool has_output(const char *state_dir, const char *key)
{
	cleanup_free char *path = file_path(state_dir, key, "logs");

	return disk_list(AT_FDCWD, path, is_printed, NULL) > 0;
}

static int load_submission(const char *state_dir, struct folder_found *f)
{
	cleanup_free char *path = file_path(state_dir, f->key, "submission");
	cleanup_free char *text = NULL;
	char *rest;
	const char *line;
	struct stat st;
	size_t len;
	int err = read_file(state_dir, f->key, "submission", SUBMISSION_MAX, &text, &len);

	if (err)
		return err;
	rest = text;
	line = take_line(&rest, &len);
	f->own = true;
	f->id = text_copy(line ? line : text);
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
	cleanup_free char *dir = file_path(state_dir, uuid, NULL);
	cleanup_free char *submission = text_print("%s\n%s\n", u->id, u->file);
	int err;

	err = disk_mkdir(AT_FDCWD, dir);
	if (err < 0 && err != -EEXIST)
		return err;
	err = complete_file(dir, "app.yaml", u->text, u->len, 0, u->time);
	if (!err)
		err = complete_file(dir, "submission", submission, strlen(submission), UID_MAX + 1,
				    u->time);
	return err ? err : folder_files_settle(state_dir, uuid, "");
}

static void under_way_aside(const char *state_dir, const char *uuid, const char *path)
{
	/* The name leaves room for the number that file_aside may add. */
	cleanup_free char *name = text_print("%.*s.submission", NAME_MAX - 20, uuid);
	cleanup_free char *place = NULL;
	int err = file_aside_state(path, state_dir, name, &place);

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

/*
 * Read the snapshot in the folder of F. A damaged one, and one of another folder, is moved out of the way: the folder
 * is as one whose snapshot was not written yet.
 */
static int load_snapshot(const char *state_dir, struct folder_found *f)
{
	cleanup_free char *path = file_path(state_dir, f->key, "job.json");
	cleanup_free char *name = text_print("%.*s.job.json", NAME_MAX - 20, f->key);
	cleanup_free char *text = NULL, *place = NULL;
	struct spec_job *job = NULL;
	size_t len;
	int err = read_file(state_dir, f->key, "job.json", SNAPSHOT_MAX, &text, &len);

	if (!err)
		err = spec_snapshot_parse(text, len, &job);
	if (!err && !streq(spec_job_key(job), f->key)) {
		spec_job_unref(job);
		err = -EINVAL;
	}
	if (!err) {
		f->snapshot = job;
		f->own |= job->own;
		text_set(&f->id, "%s", job->id);
	}
	if (err != -EINVAL && err != -ENOTSUP)
		return err == -ENOENT ? 0 : err;
	if (file_aside_state(path, state_dir, name, &place))
		place = text_copy("left there");
	else
		text_set(&place, "in %s now", place);
	diag(DIAG_WARNING,
	     "%s %s; it is %s; unless the cluster still has the job it is not shown, and its "
	     "output stays in that folder",
	     path, file_fault(err), place);
	return 0;
}

static int load_one(void *data, int at, const char *name, unsigned char type)
{
	const struct loading *l = data;
	struct folder_found *f;
	size_t len;
	int err;

	/* A file is the record of a job. */
	if (!spec_name_is_file(name) || !file_is_dir(at, name, type))
		return 0;
	f = new0(struct folder_found);
	f->next = *l->found;
	*l->found = f;
	f->key = text_copy(name);
	err = load_submission(l->state_dir, f);
	if (!err || err == -ENOENT || err == -EINVAL)
		err = read_file(l->state_dir, f->key, "dropped", UID_MAX, &f->dropped, &len);
	if (err && err != -ENOENT && err != -EINVAL)
		return err;
	err = load_snapshot(l->state_dir, f);
	/* If there is output, an earlier mount ended before it had written its job.json. */
	f->printed = !err && !f->snapshot && !f->dropped && has_output(l->state_dir, f->key);
	return err;
}

int folder_files_load(const char *state_dir, struct folder_found **ret)
{
	cleanup_free char *output = text_print("%s/output", state_dir);
	cleanup_free char *under_way = under_way_path(state_dir, NULL);
	struct loading l = {state_dir, ret};
	int err = disk_mkdir(AT_FDCWD, under_way);

	*ret = NULL;
	if (err == 0)
		err = file_sync_dir(state_dir);
	if (err == 0 || err == -EEXIST)
		err = disk_list(AT_FDCWD, under_way, complete_one, &l);
	return err ? err : disk_list(AT_FDCWD, output, load_one, &l);
}

void folder_found_free(struct folder_found *f)
{
	spec_job_unref(f->snapshot);
	free(f->key);
	free(f->id);
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

int folder_files_submit(const char *state_dir, const struct folder_submission *s)
{
	static const char *const begun[] = {"app.yaml", "submission"};
	cleanup_free char *dir = file_path(state_dir, s->uuid, NULL);
	cleanup_free char *under_way = under_way_path(state_dir, NULL);
	cleanup_free char *submission = text_print("%s\n%s\n", s->id, s->file);
	cleanup_free char *head = NULL, *all = NULL;
	char digest[DIGEST_LEN + 1];
	size_t n;
	int err;

	err = disk_mkdir(AT_FDCWD, dir);
	if (err == -EEXIST) {
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
	cleanup_free char *dir = file_path(state_dir, s->uuid, NULL);

	return complete_file(dir, "app.yaml", s->text, s->len, 0, time);
}

static int sync_file(const char *state_dir, const char *key, const char *name)
{
	cleanup_free char *path = file_path(state_dir, key, name);
	cleanup_fd int fd = disk_open(AT_FDCWD, path, O_RDONLY);

	return fd < 0 ? fd : disk_sync(fd);
}

/* Write UID into the file `submission` of UUID, unless it is there. */
static int write_uid(const char *state_dir, const char *uuid, const char *uid)
{
	cleanup_free char *dir = file_path(state_dir, uuid, NULL);
	struct folder_found *f = new0(struct folder_found);
	cleanup_free char *text = NULL;
	int err;

	f->key = text_copy(uuid);
	err = load_submission(state_dir, f);
	if (!err && f->file && !(f->uid && streq(f->uid, uid))) {
		text = text_print("%s\n%s\n%s\n", f->id, f->file, uid);
		err = write_at(dir, "submission", text, strlen(text), f->written);
	}
	folder_found_free(f);
	return err;
}

int folder_files_settle(const char *state_dir, const char *uuid, const char *uid)
{
	cleanup_free char *dir = file_path(state_dir, uuid, NULL);
	cleanup_free char *output = text_print("%s/output", state_dir);
	int err = *uid ? write_uid(state_dir, uuid, uid) : sync_file(state_dir, uuid, "submission");

	if (!err)
		err = sync_file(state_dir, uuid, "app.yaml");
	if (!err)
		err = file_sync_dir(dir);
	if (!err)
		err = file_sync_dir(output);
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

int folder_files_save(const char *state_dir, const struct spec_job *job)
{
	cleanup_free char *dir = file_path(state_dir, spec_job_key(job), NULL);
	cleanup_free char *text = spec_snapshot_text(job);

	return file_write(dir, "job.json", text, strlen(text));
}

int folder_files_drop(const char *state_dir, const char *key, const char *uid)
{
	cleanup_free char *dir = file_path(state_dir, key, NULL);

	return file_write(dir, "dropped", uid, strlen(uid));
}
