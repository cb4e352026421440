/* SPDX-License-Identifier: MIT */
/*
 * The classes of the directories submit/ and dryrun/, and of NAME.job and NAME.error in them: which names there are,
 * and what making, removing and renaming them means. Also the life of struct submit, and expiry.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>

#include "backend/base/diag.h"
#include "backend/base/loop.h"
#include "fs/submit/file.h"
#include "fs/submit/launch.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/listing.h"
#include "fs/vfs/text.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

/* A file expires this long after its job has finished, ns. */
#define DIR_EXPIRY (7 * 24 * 3600 * INT64_C(1000000000))

static struct submit *dir_of(const struct node *node)
{
	return node->object;
}

/* --- NAME.job and NAME.error --- */

static int verdict_view(const struct node *node, struct verdict_view *ret)
{
	char name[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(node_name(node), name);

	assert(kind != SUBMIT_NAME_FILE);
	return verdict_get(dir_of(node)->verdicts, name, kind, ret);
}

static int verdict_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	struct verdict_view v;
	int err = verdict_view(node, &v);

	(void)fs;
	if (err)
		return err;
	node_set_times(st, v.time, v.time);
	if (!S_ISLNK(st->st_mode))
		st->st_size = (off_t)strlen(v.text);
	st->st_uid = v.owner.uid;
	st->st_gid = v.owner.gid;
	free(v.text);
	return 0;
}

/* Where the job ID is, in jobs/ or by now in history/. One that is nowhere any more was in jobs/. */
static const char *job_place(struct backend *b, const char *id)
{
	const struct spec_job *there cleanup_job = backend_job(b, BACKEND_JOBS, id);
	const struct spec_job *old cleanup_job = there ? NULL : backend_job(b, BACKEND_HISTORY, id);

	return old ? "history" : "jobs";
}

static int job_readlink(struct fs *fs, struct node *node, char **ret)
{
	struct verdict_view v;
	int err = verdict_view(node, &v);

	(void)fs;
	if (err)
		return err;
	*ret = text_print("../%s/%s", job_place(dir_of(node)->config.backend, v.text), v.text);
	free(v.text);
	return 0;
}

static int error_render(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	struct verdict_view v;
	int err = verdict_view(node, &v);

	(void)fs;
	if (err)
		return err;
	*ret = v.text;
	*ret_len = strlen(v.text);
	return 0;
}

static const struct node_class job_class = {
	.name = "submit-job",
	.mode = S_IFLNK | 0777,
	.live = true,
	.getattr = verdict_getattr,
	.readlink = job_readlink,
};

static const struct text_class error_class = {
	.class =
		{
			.name = "submit-error",
			.mode = S_IFREG | 0644,
			.live = true,
			.getattr = verdict_getattr,
			TEXT_OPS,
		},
	.render = error_render,
};

static int verdict_lookup(struct fs *fs, struct node *dir, const char *file, struct node **ret)
{
	char name[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(file, name);
	struct verdict_view v;

	if (kind == SUBMIT_NAME_FILE || verdict_get(dir_of(dir)->verdicts, name, kind, &v) < 0)
		return -ENOENT;
	free(v.text);
	*ret = node_get(fs, dir, kind == SUBMIT_NAME_JOB ? &job_class : &error_class.class, file,
			NULL);
	return 0;
}

/* --- the directories --- */

static int dir_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	const struct submit *s = dir_of(node);
	int64_t changed = max_of(uploads_changed(s->uploads), verdicts_changed(s->verdicts));

	(void)fs;
	/* As /tmp: everybody makes files, only owners remove them. */
	if (s->config.allow_other)
		st->st_mode = S_IFDIR | 01777;
	node_set_times(st, changed, changed);
	return 0;
}

static int dir_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	struct upload *u cleanup_upload = upload_find(dir_of(dir)->uploads, name);

	if (!u)
		return verdict_lookup(fs, dir, name, ret);
	*ret = submit_file_node(fs, dir, u);
	return 0;
}

static void list_file(void *data, const char *name)
{
	listing_add(data, name);
}

static void list_job(void *data, const char *name)
{
	char file[NAME_MAX + sizeof(SUBMIT_JOB_SUFFIX)];

	snprintf(file, sizeof(file), "%s" SUBMIT_JOB_SUFFIX, name);
	listing_add(data, file);
}

static void list_error(void *data, const char *name)
{
	char file[NAME_MAX + sizeof(SUBMIT_ERROR_SUFFIX)];

	snprintf(file, sizeof(file), "%s" SUBMIT_ERROR_SUFFIX, name);
	listing_add(data, file);
}

static int dir_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct submit *s = dir_of(dir);

	(void)fs;
	uploads_visit(s->uploads, list_file, l);
	verdicts_visit(s->verdicts, SUBMIT_NAME_JOB, list_job, l);
	verdicts_visit(s->verdicts, SUBMIT_NAME_ERROR, list_error, l);
	return 0;
}

/* Make the file NAME, or find it, if somebody has made it since the kernel looked; a reference, and open. */
static int create_upload(struct submit *s, const char *name, mode_t mode, struct record_owner owner,
			 int flags, struct upload **ret)
{
	struct upload *u cleanup_upload = NULL;
	int err = submit_name_check(name);

	if (err)
		return err;
	u = upload_find(s->uploads, name);
	if (!u)
		return verdicts_room(s->verdicts) ? upload_make(s->uploads, name, mode, owner, ret)
						  : -ENOSPC;
	err = flags & O_EXCL ? -EEXIST : upload_open(u);
	if (!err)
		*ret = take_ptr(u);
	return err;
}

static void dir_create(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
		       mode_t mode, struct fuse_file_info *fi)
{
	struct submit *s = dir_of(dir);
	struct upload *u cleanup_upload = NULL;
	int err = create_upload(s, name, mode, launch_owner(s, req), fi->flags, &u);
	struct fuse_entry_param e;
	struct node *node;

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	node = submit_file_node(fs, dir, u);
	err = node_entry(fs, node, &e);
	if (err) {
		upload_close(u);
		fuse_reply_err(req, -err);
	} else {
		submit_file_open(fs, req, s, u, fi);
		if (fuse_reply_create(req, &e, fi) == -ENOENT) {
			handle_close(fs, fi);
			node_forget(fs, node, 1);
		}
	}
	node_put(fs, node);
}

/* NAME.error of a name that does not submit says no more than that: it goes when the file gets another name. */
static void forget_name(struct submit *s, const char *name)
{
	if (!spec_name_submits(name) && verdict_remove(s->verdicts, name, SUBMIT_NAME_ERROR) == 0)
		save_name(s, name);
}

static void dir_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	struct submit *s = dir_of(dir);
	struct upload *u cleanup_upload = upload_find(s->uploads, name);
	char base[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(name, base);
	int err = -ENOENT;

	(void)fs;
	if (u)
		err = upload_remove(u);
	else if (kind != SUBMIT_NAME_FILE)
		err = verdict_remove(s->verdicts, base, kind);
	if (!err)
		save_name(s, u ? name : base);
	fuse_reply_err(req, -err);
}

/* --- rename --- */

/* May U (NULL: there is no such file) be renamed from NAME to NEWNAME? 0 or a negative errno. */
static int rename_check(struct submit *s, const struct upload *u, const char *name,
			const char *newname, unsigned flags)
{
	struct upload *there cleanup_upload = upload_find(s->uploads, newname);
	char base[NAME_MAX + 1];
	int err = submit_name_check(newname);

	if (err)
		return err;
	if (flags & ~(unsigned)RENAME_NOREPLACE)
		return -EINVAL;
	if (there && (flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (!u)
		return submit_name_kind(name, base) == SUBMIT_NAME_FILE ? -ENOENT : -EPERM;
	return 0;
}

static void dir_rename(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
		       struct node *newdir, const char *newname, unsigned flags)
{
	struct submit *s = dir_of(dir);
	struct upload *u cleanup_upload = upload_find(s->uploads, name);
	int err = newdir == dir ? rename_check(s, u, name, newname, flags) : -EPERM;
	bool launched = !err && upload_is_launched(u);

	(void)fs;
	/* It gets another name, so it does not matter that this one does not submit. */
	if (!err)
		forget_name(s, name);
	/* The verdict on a file that is still written or being launched comes without a rename. */
	if (!err && spec_name_submits(newname) && upload_size(u) > 0 && !launched &&
	    !upload_is_busy(u)) {
		launch_rename(s, u, newname, req);
		return;
	}
	if (!err)
		err = upload_rename(u, newname);
	if (!err) {
		/* A content that was launched is not launched again by another name: its verdict moves along. */
		if (launched && spec_name_submits(name) && spec_name_submits(newname))
			verdict_move(s->verdicts, name, newname);
		/* In this order: in between, both records say that the file was launched. */
		save_name(s, newname);
		save_name(s, name);
	}
	fuse_reply_err(req, -err);
}

#define DIR_OPS                                                                                    \
	.mode = S_IFDIR | 0755, .getattr = dir_getattr, .lookup = dir_lookup, .list = dir_list,    \
	.create = dir_create, .unlink = dir_unlink, .rename = dir_rename

const struct node_class submit_class = {.name = "submit", DIR_OPS};
const struct node_class dryrun_class = {.name = "dryrun", DIR_OPS};

/* --- life --- */

static int submit_open(struct submit *s)
{
	int err;

	if (mkdir(s->dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dir_fd < 0)
		return -errno;
	err = records_open(s->config.state_dir, s->name, &s->records);
	if (!err)
		err = uploads_new(s->dir, s->dir_fd, s->us, &s->uploads);
	s->verdicts = verdicts_new(s->us);
	return err ? err : save_load(s, &s->saver);
}

int submit_new(struct fs *fs, const struct submit_config *config, const struct node_class *class,
	       struct submit **ret, char **ret_text)
{
	struct submit *s = new0(struct submit);
	int err;

	s->config = *config;
	s->fs = fs;
	s->name = class->name;
	s->dry = class == &dryrun_class;
	s->us = (struct record_owner){fs->config.uid, fs->config.gid};
	s->dir = text_print("%s/%s", config->state_dir, s->name);
	s->dir_fd = -1;
	err = submit_open(s);
	if (err) {
		*ret_text = text_print("%s: %s", s->dir, strerror(-err));
		submit_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

void submit_free(struct submit *s)
{
	if (!s)
		return;
	save_end(s);
	uploads_free(s->uploads);
	verdicts_free(s->verdicts);
	records_free(s->records);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s->dir);
	free(s);
}

/* --- expiry; I/O thread --- */

struct names {
	char **v;
	size_t n, room;
};

static void names_add(void *data, const char *name)
{
	struct names *names = data;

	if (names->n == names->room) {
		names->room = names->room ? 2 * names->room : 64;
		names->v = mem_grow(names->v, names->room, sizeof(*names->v));
	}
	names->v[names->n++] = text_copy(name);
}

/* When the job of NAME was over; INT64_MAX: it is not. Of a job that is gone, the time when it was launched. */
static int64_t expire_finished(struct submit *s, const char *name)
{
	const enum backend_place places[] = {BACKEND_JOBS, BACKEND_HISTORY};
	struct verdict_view v;
	int64_t finished;

	if (verdict_get(s->verdicts, name, SUBMIT_NAME_JOB, &v) < 0)
		return INT64_MAX;
	finished = v.time;
	for (size_t i = 0; i < array_size(places); i++) {
		const struct spec_job *job cleanup_job =
			backend_job(s->config.backend, places[i], v.text);

		if (job) {
			finished = job->finished ? job->finished : INT64_MAX;
			break;
		}
	}
	free(v.text);
	return finished;
}

static void expire_one(struct submit *s, const char *name)
{
	struct upload *u cleanup_upload = upload_find(s->uploads, name);

	/* It is open, or was changed since: it is no longer the file of that job. */
	if (u && upload_expire(u) < 0)
		return;
	verdict_remove(s->verdicts, name, SUBMIT_NAME_JOB);
	verdict_remove(s->verdicts, name, SUBMIT_NAME_ERROR);
	save_name(s, name);
	diag(DIAG_DEBUG, "%s/%s: removed, its job is long over", s->name, name);
}

void submit_expire(struct submit *s, int64_t now)
{
	struct names names = {0};
	char **made = NULL;
	size_t n_made = s->dry ? uploads_list_old(s->uploads, now - DIR_EXPIRY, &made) : 0;

	verdicts_visit(s->verdicts, SUBMIT_NAME_JOB, names_add, &names);
	for (size_t i = 0; i < names.n; i++) {
		int64_t finished = expire_finished(s, names.v[i]);

		if (finished <= now && now - finished > DIR_EXPIRY)
			expire_one(s, names.v[i]);
		free(names.v[i]);
	}
	for (size_t i = 0; i < n_made; i++) {
		expire_one(s, made[i]);
		free(made[i]);
	}
	free(names.v);
	free(made);
}
