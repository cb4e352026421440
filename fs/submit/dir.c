/* SPDX-License-Identifier: MIT */
/* The classes of submit/, dryrun/, NAME.job and NAME.error. Makes and frees struct submit. */
#include <errno.h>
#include <fcntl.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "fs/submit/launch.h"
#include "fs/submit/save.h"
#include "fs/submit/writer.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/node.h"
#include "fs/vfs/park.h"
#include "fs/vfs/text.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/time.h"

/* How long (ns) a file of dryrun/ stays unchanged before it expires. */
#define DIR_EXPIRY (7 * 24 * 3600 * NS_PER_S)

static struct submit *dir_of(const struct node *node)
{
	return node->object;
}

/* --- NAME.job and NAME.error --- */

/* Return 0 or -ENOENT. Files of dryrun/ have no jobs. */
static int find_job(const struct submit *s, const char *name, struct backend_file *ret)
{
	return s->dry ? -ENOENT : backend_file(s->config.backend, name, ret);
}

static int job_of(const struct node *node, struct backend_file *ret)
{
	char name[NAME_MAX + 1];

	(void)submit_name_kind(node_name(node), name);
	return find_job(dir_of(node), name, ret);
}

static int job_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	const struct submit *s = dir_of(node);
	struct backend_file job;
	int err = job_of(node, &job);

	if (err)
		return err;
	node_set_times(st, job.time, job.time);
	st->st_uid = job.owned ? job.uid : s->us.uid;
	st->st_gid = job.owned ? job.gid : s->us.gid;
	free(job.id);
	return 0;
}

static int job_readlink(struct fs *fs, struct node *node, char **ret)
{
	struct backend_file job;
	int err = job_of(node, &job);

	if (err)
		return err;
	*ret = text_print("../%s/%s", job.place == BACKEND_HISTORY ? "history" : "jobs", job.id);
	free(job.id);
	return 0;
}

static int error_of(const struct node *node, struct name_error *ret)
{
	char name[NAME_MAX + 1];

	(void)submit_name_kind(node_name(node), name);
	return names_error(dir_of(node)->names, name, ret);
}

static int error_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	struct name_error e;
	int err = error_of(node, &e);

	if (err)
		return err;
	node_set_times(st, e.time, e.time);
	st->st_size = (off_t)strlen(e.text);
	st->st_uid = e.owner.uid;
	st->st_gid = e.owner.gid;
	free(e.text);
	return 0;
}

static int error_render(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	struct name_error e;
	int err = error_of(node, &e);

	if (err)
		return err;
	*ret = e.text;
	*ret_len = strlen(e.text);
	return 0;
}

static const struct node_class job_class = {
	.name = "submit-job",
	.mode = S_IFLNK | 0777,
	.live = true,
	.getattr = job_getattr,
	.readlink = job_readlink,
};

static const struct text_class error_class = {
	.class = {.name = "submit-error", TEXT_OPS, .live = true, .getattr = error_getattr},
	.render = error_render,
};

/* --- the directories --- */

static int dir_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	const struct submit *s = dir_of(node);
	int64_t jobs = s->dry ? 0 : backend_files_changed(s->config.backend);
	int64_t changed = max_of(names_changed(s->names), jobs);

	/* as in /tmp, every user may make files, and only their owners may remove them */
	if (s->config.allow_other)
		st->st_mode = S_IFDIR | 01777;
	node_set_times(st, changed, changed);
	return 0;
}

static bool has_result(const struct submit *s, enum submit_name kind, const char *base)
{
	struct backend_file job;
	struct name_error e;
	int err =
		kind == SUBMIT_NAME_JOB ? find_job(s, base, &job) : names_error(s->names, base, &e);

	if (!err)
		free(kind == SUBMIT_NAME_JOB ? job.id : e.text);
	return !err;
}

static int dir_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct submit *s = dir_of(dir);
	struct upload *u cleanup_upload = names_file(s->names, name);
	char base[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(name, base);

	if (u) {
		*ret = submit_file_node(fs, dir, u);
		return 0;
	}
	if (kind == SUBMIT_NAME_FILE || !has_result(s, kind, base))
		return -ENOENT;
	*ret = node_get(fs, dir, kind == SUBMIT_NAME_JOB ? &job_class : &error_class.class, name,
			NULL);
	return 0;
}

/* Add the N names in NAMES, with SUFFIX appended, to L. Free NAMES. */
static void list_names(struct listing *l, char **names, size_t n, const char *suffix)
{
	for (size_t i = 0; i < n; i++) {
		char *file cleanup_free = text_print("%s%s", names[i], suffix);

		listing_add(l, file);
		free(names[i]);
	}
	free(names);
}

static int dir_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct submit *s = dir_of(dir);
	char **names;
	size_t n = names_list(s->names, SUBMIT_NAME_FILE, &names);

	list_names(l, names, n, "");
	n = names_list(s->names, SUBMIT_NAME_ERROR, &names);
	list_names(l, names, n, SUBMIT_ERROR_SUFFIX);
	if (s->dry)
		return 0;
	n = backend_files(s->config.backend, &names);
	list_names(l, names, n, SUBMIT_JOB_SUFFIX);
	return 0;
}

static void dir_create(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
		       mode_t mode, struct fuse_file_info *fi)
{
	struct submit *s = dir_of(dir);
	struct upload *u cleanup_upload = NULL;
	struct fuse_entry_param e;
	struct node *node = NULL;
	int err = submit_name_check(name);

	if (!err)
		err = names_make(s->names, s->files, name, mode, launch_owner(s, req), &u);
	if (!err) {
		node = submit_file_node(fs, dir, u);
		err = submit_file_open(fs, req, node, true, fi);
	}
	if (err) {
		/*
		 * EEXIST: another request has made the file since the kernel's lookup. ESTALE makes
		 * the kernel repeat the lookup, unless the caller demands a new file.
		 */
		fuse_reply_err(req, err == -EEXIST && !(fi->flags & O_EXCL) ? ESTALE : -err);
		node_put(fs, node);
		return;
	}
	/* Save the file now. But if its name submits, the close saves it. */
	if (!spec_name_submits(name))
		save_soon(s, u);
	err = node_entry(fs, node, &e);
	fi->direct_io = 1;
	if (err) {
		fuse_reply_err(req, -err);
		handle_close(fs, fi);
	} else if (fuse_reply_create(req, &e, fi) == -ENOENT) {
		handle_close(fs, fi);
		node_forget(fs, node, 1);
	}
	node_put(fs, node);
}

/* --- unlink and rename --- */

/* an unlink or rename that waits for the disk */
struct dir_change {
	struct submit *s;
	/* a reference; a rename has also opened it (upload_open) */
	struct upload *upload;
	char name[NAME_MAX + 1];
	char newname[NAME_MAX + 1];
	pid_t process;
	struct file_owner owner;
	uint64_t ticket;
};

static struct dir_change *change_new(struct submit *s, fuse_req_t req, struct upload *u,
				     const char *name, const char *newname)
{
	struct dir_change *c = new0(struct dir_change);

	c->s = s;
	c->upload = upload_ref(u);
	snprintf(c->name, sizeof(c->name), "%s", name);
	snprintf(c->newname, sizeof(c->newname), "%s", newname);
	c->process = writer_process(fuse_req_ctx(req)->pid, NULL);
	c->owner = launch_owner(s, req);
	c->ticket = park_add(s->fs->park, req, PARK_DIR, LAUNCH_RENAME_MS);
	return c;
}

static void change_free(struct dir_change *c)
{
	upload_unref(c->upload);
	free(c);
}

static void dir_unlinked(void *data, int err)
{
	struct dir_change *c = data;

	if (!err)
		launch_renamed(c->s, c->upload, NULL, c->process, c->ticket);
	launch_reply_rename(c->s, c->ticket, err);
	change_free(c);
}

static void dir_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	struct submit *s = dir_of(dir);
	struct upload *u cleanup_upload = names_file(s->names, name);
	char base[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(name, base);
	int err = -ENOENT;

	if (u) {
		save_file(s, u, SAVE_RENAME, NULL, dir_unlinked, change_new(s, req, u, name, ""));
		return;
	}
	if (kind == SUBMIT_NAME_ERROR)
		err = names_remove_error(s->names, base);
	else if (kind == SUBMIT_NAME_JOB && !s->dry)
		err = backend_unlink_file(s->config.backend, base);
	fuse_reply_err(req, -err);
}

static void dir_rename_over(void *data, int err)
{
	struct dir_change *c = data;

	launch_reply_rename(c->s, c->ticket, err);
	upload_close(c->upload);
	change_free(c);
}

/*
 * If the new name is a submitting name, and the file has NEW contents (upload.h) and is not empty,
 * launch them under the new name, free C, and return true. Otherwise return false. Also return
 * false if a writer has unsubmitted changes, because its close will launch them, or if a launch is
 * in progress.
 */
static bool dir_rename_launches(struct dir_change *c)
{
	struct upload *u = c->upload;
	const struct upload_look look = upload_look(u, NULL);

	if (!spec_name_submits(c->newname) || look.size == 0 || look.state != CONTENT_NEW ||
	    look.is_busy)
		return false;
	launch_rename(c->s, u, c->newname, c->owner, c->process, c->ticket);
	upload_close(u);
	change_free(c);
	return true;
}

static void dir_renamed(void *data, int err)
{
	struct dir_change *c = data;

	if (!err)
		launch_renamed(c->s, c->upload, c->newname, c->process, c->ticket);
	/*
	 * A writer may have closed the file during the rename. If the old name does not submit,
	 * that close has not launched the contents, so launch them now.
	 */
	if (err || spec_name_submits(c->name) || !dir_rename_launches(c))
		dir_rename_over(c, err);
}

/*
 * Called when the bytes are in memory, so their state is not FOUND any more. If the contents must
 * be launched, launch and rename; otherwise only rename.
 */
static void dir_rename_go(void *data, int err)
{
	struct dir_change *c = data;

	if (err) {
		dir_rename_over(c, err);
		return;
	}
	/* Remove the error that explains why the old name does not submit. */
	if (!spec_name_submits(c->name))
		(void)names_remove_error(c->s->names, c->name);
	if (!dir_rename_launches(c))
		save_file(c->s, c->upload, SAVE_RENAME, c->newname, dir_renamed, c);
}

/* Check if U may be renamed from NAME to NEWNAME. U is NULL if no file is called NAME. */
static int rename_check(struct submit *s, const struct upload *u, const char *name,
			const char *newname, unsigned flags)
{
	struct upload *there cleanup_upload = names_file(s->names, newname);
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
	struct upload *u cleanup_upload = names_file(s->names, name);
	/* EXDEV makes mv(1) copy the file to the other directory. */
	int err = newdir == dir		  ? rename_check(s, u, name, newname, flags)
		  : newdir->class->create ? -EXDEV
					  : -EPERM;
	struct dir_change *c;

	if (!err && !streq(name, newname))
		err = upload_open(u, false);
	if ((err && err != -EAGAIN) || streq(name, newname)) {
		fuse_reply_err(req, -err);
		return;
	}
	c = change_new(s, req, u, name, newname);
	if (err || upload_look(u, NULL).state == CONTENT_FOUND)
		save_file(s, u, SAVE_LOAD, NULL, dir_rename_go, c);
	else
		dir_rename_go(c, 0);
}

#define DIR_OPS                                                                                    \
	.mode = S_IFDIR | 0755, .getattr = dir_getattr, .lookup = dir_lookup, .list = dir_list,    \
	.create = dir_create, .unlink = dir_unlink, .rename = dir_rename

const struct node_class submit_class = {.name = "submit", DIR_OPS};
const struct node_class dryrun_class = {.name = "dryrun", DIR_OPS};

/* --- making and freeing struct submit --- */

static int submit_open(struct submit *s)
{
	int err = disk_mkdir(AT_FDCWD, s->dir);

	if (err && err != -EEXIST)
		return err;
	s->dir_fd = disk_open(AT_FDCWD, s->dir, O_RDONLY | O_DIRECTORY);
	if (s->dir_fd < 0)
		return s->dir_fd;
	s->files = uploads_new(s->dir_fd, s->us, &s->lock);
	s->names = names_new(&s->lock);
	return save_open(s);
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
	s->us = (struct file_owner){fs->config.uid, fs->config.gid};
	s->dir = text_print("%s/%s", config->state_dir, s->name);
	s->dir_fd = -1;
	s->lock = (struct lock)LOCK_INIT;
	*ret_text = NULL;
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
	names_free(s->names);
	uploads_free(s->files);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s->dir);
	free(s);
}

/* --- owners of files that earlier mounts have launched --- */

/* If the file NAME is unchanged since a user launched it, make this user its owner. */
static void find_owner(struct submit *s, const char *name)
{
	struct upload *u cleanup_upload = names_file(s->names, name);
	char digest[UPLOAD_DIGEST];
	struct backend_file job;
	uint64_t version;

	if (!u || backend_file(s->config.backend, name, &job) < 0)
		return;
	if (job.owned && upload_load(u, &version, digest) == 0 && streq(digest, job.digest))
		upload_set_owner(u, (struct file_owner){job.uid, job.gid});
	free(job.id);
}

void submit_find_owners(struct submit *s)
{
	char **names cleanup_free = NULL;
	size_t n;

	/* As root, kxfs has stored the right owners on disk. */
	if (s->dry || !s->config.allow_other || geteuid() == 0)
		return;
	n = backend_files(s->config.backend, &names);
	for (size_t i = 0; i < n; i++) {
		find_owner(s, names[i]);
		free(names[i]);
	}
}

/* --- expiry; I/O thread --- */

/* an expired file, which is removed only if its contents are still VERSION */
struct expiring {
	struct submit *s;
	struct upload *upload; /* a reference */
	uint64_t version;
};

static void on_checked(void *data, int err)
{
	struct expiring *x = data;
	char name[NAME_MAX + 1];

	if (!err && names_of(x->s->names, x->upload, name) &&
	    names_expire(x->s->names, x->upload, x->version)) {
		(void)names_remove_error(x->s->names, name);
		save_file(x->s, x->upload, SAVE_RENAME, NULL, NULL, NULL);
		diag(DIAG_DEBUG, "%s/%s: expired", x->s->name, name);
	}
	upload_unref(x->upload);
	free(x);
}

static struct expiring *expiring_new(struct submit *s, struct upload *u)
{
	struct expiring *x = new0(struct expiring);

	x->s = s;
	x->upload = upload_ref(u);
	x->version = upload_look(u, NULL).version;
	return x;
}

void submit_expired(struct submit *s, const char *file, const char *digest)
{
	struct upload *u cleanup_upload = names_file(s->names, file);

	if (u)
		save_file(s, u, SAVE_CHECK, digest, on_checked, expiring_new(s, u));
}

void submit_expire_dryrun(struct submit *s, int64_t now)
{
	char **names cleanup_free = NULL;
	size_t n = names_list(s->names, SUBMIT_NAME_FILE, &names);

	for (size_t i = 0; i < n; i++) {
		struct upload *u cleanup_upload = names_file(s->names, names[i]);
		struct expiring *x = u ? expiring_new(s, u) : NULL;
		struct stat st;

		free(names[i]);
		if (!x)
			continue;
		upload_stat(u, NULL, &st);
		on_checked(x, spec_time_of(st.st_ctim) < now - DIR_EXPIRY ? 0 : -EBUSY);
	}
}
