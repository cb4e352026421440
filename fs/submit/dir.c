/* SPDX-License-Identifier: MIT */
/*
 * The classes of the directories submit/ and dryrun/, and of NAME.job and NAME.error in them: which names there are,
 * and what making, removing and renaming them means. Also the life of struct submit, and expiry.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "fs/submit/file.h"
#include "fs/submit/launch.h"
#include "fs/submit/writer.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/listing.h"
#include "fs/vfs/park.h"
#include "fs/vfs/text.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/time.h"

/* A file expires this long after its job has finished, in ns. */
#define DIR_EXPIRY (7 * 24 * 3600 * NS_PER_S)

static struct submit *dir_of(const struct node *node)
{
	return node->object;
}

/* --- NAME.job and NAME.error --- */

static int verdict_of(const struct node *node, struct name_verdict *ret)
{
	char name[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(node_name(node), name);

	assert(kind != SUBMIT_NAME_FILE);
	return names_verdict(dir_of(node)->names, name, kind, ret);
}

static int verdict_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	struct name_verdict v;
	int err = verdict_of(node, &v);

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

/* The link leads to the job in jobs/ or, by now, in history/; if the job is in neither, to jobs/. */
static int job_readlink(struct fs *fs, struct node *node, char **ret)
{
	struct backend *b = dir_of(node)->config.backend;
	const struct spec_job *there cleanup_job = NULL, *old cleanup_job = NULL;
	struct name_verdict v;
	int err = verdict_of(node, &v);

	if (err)
		return err;
	there = backend_job(b, BACKEND_JOBS, v.text);
	old = there ? NULL : backend_job(b, BACKEND_HISTORY, v.text);
	*ret = text_print("../%s/%s", old ? "history" : "jobs", v.text);
	free(v.text);
	return 0;
}

static int error_render(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	struct name_verdict v;
	int err = verdict_of(node, &v);

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

/* --- the directories --- */

static int dir_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	const struct submit *s = dir_of(node);
	int64_t changed = names_changed(s->names);

	/* As in /tmp, everybody makes files, and only owners remove them. */
	if (s->config.allow_other)
		st->st_mode = S_IFDIR | 01777;
	node_set_times(st, changed, changed);
	return 0;
}

static int dir_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	struct names *names = dir_of(dir)->names;
	struct upload *u cleanup_upload = names_file(names, name);
	char base[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(name, base);
	struct name_verdict v;

	if (u) {
		*ret = submit_file_node(fs, dir, u);
		return 0;
	}
	if (kind == SUBMIT_NAME_FILE || names_verdict(names, base, kind, &v) < 0)
		return -ENOENT;
	free(v.text);
	*ret = node_get(fs, dir, kind == SUBMIT_NAME_JOB ? &job_class : &error_class.class, name,
			NULL);
	return 0;
}

static int dir_list(struct fs *fs, struct node *dir, struct listing *l)
{
	static const struct {
		enum submit_name kind;
		const char *suffix;
	} kinds[] = {
		{SUBMIT_NAME_FILE, ""},
		{SUBMIT_NAME_JOB, SUBMIT_JOB_SUFFIX},
		{SUBMIT_NAME_ERROR, SUBMIT_ERROR_SUFFIX},
	};

	for (size_t i = 0; i < array_size(kinds); i++) {
		char **names cleanup_free = NULL;
		size_t n = names_list(dir_of(dir)->names, kinds[i].kind, &names);

		for (size_t j = 0; j < n; j++) {
			char *file cleanup_free = text_print("%s%s", names[j], kinds[i].suffix);

			listing_add(l, file);
			free(names[j]);
		}
	}
	return 0;
}

static void dir_create(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
		       mode_t mode, struct fuse_file_info *fi)
{
	struct submit *s = dir_of(dir);
	struct upload *u cleanup_upload = NULL;
	struct fuse_entry_param e;
	struct node *node;
	int err = submit_name_check(name);

	if (!err)
		err = names_make(s->names, s->files, name, mode, launch_owner(s, req), &u);
	if (!err)
		err = submit_file_open(fs, req, s, u, true, fi);
	if (err) {
		/* Somebody has made the file since the kernel looked for it: after ESTALE the kernel looks again. */
		fuse_reply_err(req, err == -EEXIST && !(fi->flags & O_EXCL) ? ESTALE : -err);
		return;
	}
	/* A file that is launched comes to disk when it is closed. */
	if (!spec_name_submits(name))
		save_soon(s, u);
	node = submit_file_node(fs, dir, u);
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

/* A request to change a name, which waits for the disk. */
struct change {
	struct submit *s;
	struct upload *upload; /* a reference; for a rename the upload is open, too */
	char name[NAME_MAX + 1];
	char newname[NAME_MAX + 1];
	pid_t process;
	struct record_owner owner;
	uint64_t ticket;
};

static struct change *change_new(struct submit *s, fuse_req_t req, struct upload *u,
				 const char *name, const char *newname)
{
	struct change *c = new0(struct change);

	c->s = s;
	c->upload = upload_ref(u);
	snprintf(c->name, sizeof(c->name), "%s", name);
	snprintf(c->newname, sizeof(c->newname), "%s", newname);
	c->process = writer_process(fuse_req_ctx(req)->pid, NULL);
	c->owner = launch_owner(s, req);
	c->ticket = park_add(s->fs->park, req, PARK_DIR, LAUNCH_RENAME_MS);
	return c;
}

static void change_free(struct change *c)
{
	upload_unref(c->upload);
	free(c);
}

static void dir_unlinked(void *data, int err)
{
	struct change *c = data;
	fuse_req_t req;

	if (!err)
		launch_removed(c->s, c->upload, c->name, c->process, c->ticket);
	req = park_claim(c->s->fs->park, c->ticket);
	if (req)
		fuse_reply_err(req, -err);
	change_free(c);
}

static void dir_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	struct submit *s = dir_of(dir);
	struct upload *u cleanup_upload = names_file(s->names, name);
	char base[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(name, base);
	int err;

	if (u) {
		save_file(s, u, SAVE_RENAME, NULL, dir_unlinked, change_new(s, req, u, name, ""));
		return;
	}
	err = kind == SUBMIT_NAME_FILE ? -ENOENT : names_remove(s->names, base, kind);
	if (!err)
		save_name(s, base, NULL, NULL);
	fuse_reply_err(req, -err);
}

static void dir_rename_over(void *data, int err)
{
	struct change *c = data;

	launch_reply_rename(c->s, c->ticket, err);
	upload_close(c->upload);
	change_free(c);
}

static void dir_renamed(void *data, int err)
{
	struct change *c = data;

	if (err) {
		dir_rename_over(c, err);
		return;
	}
	launch_renamed(c->s, c->upload, c->newname, c->process, c->ticket);
	/* The request is answered when both records are on disk, since the end of the mount may be next. */
	save_name(c->s, c->newname, dir_rename_over, c);
}

/* The bytes are in memory, and it is known whether they were launched: do the rename. */
static void dir_rename_go(void *data, int err)
{
	struct change *c = data;
	struct submit *s = c->s;
	struct upload *u = c->upload;

	if (err) {
		dir_rename_over(c, err);
		return;
	}
	/* The file gets another name, so it no longer matters that this name does not submit. */
	if (!spec_name_submits(c->name) && names_remove(s->names, c->name, SUBMIT_NAME_ERROR) == 0)
		save_name(s, c->name, NULL, NULL);
	/* If the file is still being written or launched, its verdict comes without this rename. */
	if (spec_name_submits(c->newname) && upload_size(u, NULL) > 0 &&
	    names_state(s->names, u) != NAME_LAUNCHED && !names_busy(s->names, u)) {
		launch_rename(s, u, c->newname, c->owner, c->process, c->ticket);
		upload_close(u);
		change_free(c);
	} else {
		save_file(s, u, SAVE_RENAME, c->newname, dir_renamed, c);
	}
}

/* May U (NULL: there is no such file) be renamed from NAME to NEWNAME in its directory? 0 or a negative errno. */
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
	/* EXDEV: mv(1) copies the file, so that the other directory takes it as it takes any new file. */
	int err = newdir == dir		  ? rename_check(s, u, name, newname, flags)
		  : newdir->class->create ? -EXDEV
					  : -EPERM;
	struct change *c;

	if (!err && !streq(name, newname))
		err = upload_open(u, false);
	if ((err && err != -EAGAIN) || streq(name, newname)) {
		fuse_reply_err(req, -err);
		return;
	}
	c = change_new(s, req, u, name, newname);
	if (err || names_state(s->names, u) == NAME_CLAIMED)
		save_file(s, u, SAVE_LOAD, NULL, dir_rename_go, c);
	else
		dir_rename_go(c, 0);
}

#define DIR_OPS                                                                                    \
	.mode = S_IFDIR | 0755, .getattr = dir_getattr, .lookup = dir_lookup, .list = dir_list,    \
	.create = dir_create, .unlink = dir_unlink, .rename = dir_rename

const struct node_class submit_class = {.name = "submit", DIR_OPS};
const struct node_class dryrun_class = {.name = "dryrun", DIR_OPS};

/* --- life --- */

static int submit_open(struct submit *s, char **ret_text)
{
	int err = disk_mkdir(AT_FDCWD, s->dir);

	if (err && err != -EEXIST)
		return err;
	s->dir_fd = disk_open(AT_FDCWD, s->dir, O_RDONLY | O_DIRECTORY);
	if (s->dir_fd < 0)
		return s->dir_fd;
	err = launches_open(s->config.state_dir, s->name, &s->records);
	s->files = uploads_new(s->dir_fd, s->us, &s->lock);
	s->names = names_new(&s->lock, s->us);
	return err ? err : save_open(s, &s->saver, ret_text);
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
	s->lock = (struct lock)LOCK_INIT;
	*ret_text = NULL;
	err = submit_open(s, ret_text);
	if (err) {
		if (!*ret_text)
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
	names_free(s->names);
	uploads_free(s->files);
	launches_free(s->records);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s->dir);
	free(s);
}

char *submit_job_of(struct submit *s, const char *file)
{
	struct name_verdict v;

	return names_verdict(s->names, file, SUBMIT_NAME_JOB, &v) ? NULL : v.text;
}

/* --- expiry; I/O thread --- */

/* When the job of NAME was over; INT64_MAX: it is not. For a job that is gone, the time at which it was launched. */
static int64_t expire_finished(struct submit *s, const char *name)
{
	const enum backend_place places[] = {BACKEND_JOBS, BACKEND_HISTORY};
	struct name_verdict v;
	int64_t finished;

	if (names_verdict(s->names, name, SUBMIT_NAME_JOB, &v) < 0)
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

/* Remove NAME, unless its file was changed after BEFORE. */
static void expire_one(struct submit *s, const char *name, int64_t before)
{
	struct upload *u cleanup_upload = NULL;
	int err = names_expire(s->names, name, before, &u);

	if (err == -EAGAIN)
		save_file(s, u, SAVE_LOAD, NULL, NULL, NULL); /* removed the next time, then */
	if (!err)
		save_file(s, u, SAVE_RENAME, NULL, NULL, NULL);
	/* The file is open, or was changed since: it is no longer the file of that job. */
	if (err && err != -ENOENT)
		return;
	names_remove(s->names, name, SUBMIT_NAME_JOB);
	names_remove(s->names, name, SUBMIT_NAME_ERROR);
	save_name(s, name, NULL, NULL);
	diag(DIAG_DEBUG, "%s/%s: removed, its job is long over", s->name, name);
}

void submit_expire(struct submit *s, int64_t now)
{
	const enum submit_name kind = s->dry ? SUBMIT_NAME_FILE : SUBMIT_NAME_JOB;
	char **names cleanup_free = NULL;
	size_t n = names_list(s->names, kind, &names);

	for (size_t i = 0; i < n; i++) {
		int64_t finished = s->dry ? INT64_MAX : expire_finished(s, names[i]);

		if (s->dry)
			expire_one(s, names[i], now - DIR_EXPIRY);
		else if (finished <= now && now - finished > DIR_EXPIRY)
			expire_one(s, names[i], INT64_MAX);
		free(names[i]);
	}
}
