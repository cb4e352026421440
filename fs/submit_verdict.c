/* SPDX-License-Identifier: MIT */
/*
 * What became of what was submitted under a name: NAME.job, a link to the job of the last accepted
 * write, and NAME.error, why the last write was refused. Shown from memory. The disk follows on the
 * I/O thread, name by name: each save makes it equal to what memory says by then, so the order of
 * saves does not matter.
 */
#include <errno.h>
#include <fcntl.h>

#include "backend/diag.h"
#include "fs/listing.h"
#include "fs/options.h"
#include "fs/submit_impl.h"
#include "fs/text.h"
#include "spec/name.h"

#define VERDICT_TARGET "../jobs/"
/* In STATE, not in STATE/submit, so that it can't be the name of a file. */
#define VERDICT_TEMP "submit.new"

/* --- under the lock --- */

static struct submit_verdict *verdict_by_name(struct submit *s, const char *name)
{
	struct submit_verdict *v;

	HASH_FIND_STR(s->verdicts, name, v);
	return v;
}

void submit_verdict_free(struct submit_verdict *v)
{
	free(v->name);
	free(v->job);
	free(v->error);
	free(v);
}

static void verdict_drop_empty(struct submit *s, struct submit_verdict *v)
{
	s->changed = loop_time_ns();
	if (v->job || v->error)
		return;
	HASH_DEL(s->verdicts, v);
	submit_verdict_free(v);
}

/* The one of NAME, made if need be. NULL: no memory. */
static struct submit_verdict *verdict_make(struct submit *s, const char *name)
{
	struct submit_verdict *v = verdict_by_name(s, name);

	if (v)
		return v;
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->name = strdup(name);
	if (!v->name) {
		free(v);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, s->verdicts, v->name, strlen(v->name), v);
	return v;
}

/* --- to the disk, I/O thread --- */

struct verdict_save {
	struct submit *s;
	char *job;
	char *error;
	struct submit_author author;
	char name[NAME_MAX + 1];
};

/* What is to be on disk. */
static int verdict_read(struct verdict_save *save)
{
	const struct submit_verdict *v;

	lock_scope(&save->s->lock);
	v = verdict_by_name(save->s, save->name);
	if (!v)
		return 0;
	save->author = v->author;
	if ((v->job && asprintf(&save->job, VERDICT_TARGET "%s", v->job) < 0) ||
	    (v->error && !(save->error = strdup(v->error))))
		return -ENOMEM;
	return 0;
}

static int verdict_write_text(int dir, const char *text)
{
	int fd cleanup_fd =
		openat(dir, VERDICT_TEMP, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t len = strlen(text);

	if (fd < 0)
		return -errno;
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Make STATE/submit/FILE what it is to be: a link or a text, or (both NULL) nothing. */
static int verdict_put(struct verdict_save *save, const char *file, const char *target,
		       const char *text)
{
	const struct submit *s = save->s;
	int err = 0;

	if (!target && !text)
		return unlinkat(s->dir_fd, file, 0) < 0 && errno != ENOENT ? -errno : 0;
	unlinkat(s->state_fd, VERDICT_TEMP, 0);
	if (target && symlinkat(target, s->state_fd, VERDICT_TEMP) < 0)
		err = -errno;
	else if (text)
		err = verdict_write_text(s->state_fd, text);
	if (err)
		return err;
	if ((save->author.uid != geteuid() || save->author.gid != getegid()) &&
	    fchownat(s->state_fd, VERDICT_TEMP, save->author.uid, save->author.gid,
		     AT_SYMLINK_NOFOLLOW) < 0)
		diag(DIAG_DEBUG, "%s: not given to user %u: %s", file, save->author.uid,
		     strerror(errno));
	return renameat(s->state_fd, VERDICT_TEMP, s->dir_fd, file) < 0 ? -errno : 0;
}

static void verdict_on_save(void *data)
{
	struct verdict_save *save = data;
	char file[NAME_MAX + 1 + sizeof(SUBMIT_ERROR_SUFFIX)];
	int err = verdict_read(save);

	if (!err) {
		snprintf(file, sizeof(file), "%s" SUBMIT_JOB_SUFFIX, save->name);
		err = verdict_put(save, file, save->job, NULL);
	}
	if (!err) {
		snprintf(file, sizeof(file), "%s" SUBMIT_ERROR_SUFFIX, save->name);
		err = verdict_put(save, file, NULL, save->error);
	}
	if (err)
		diag(DIAG_WARNING, "the verdict on submit/%s will be lost at the next mount: %s",
		     save->name, strerror(-err));
	free(save->job);
	free(save->error);
	free(save);
}

/* On the I/O thread it is done when this returns, else soon. */
static void verdict_save(struct submit *s, const char *name)
{
	struct verdict_save *save = calloc(1, sizeof(*save));

	if (!save) {
		diag(DIAG_WARNING, "the verdict on submit/%s will be lost at the next mount: %s",
		     name, strerror(ENOMEM));
		return;
	}
	save->s = s;
	snprintf(save->name, sizeof(save->name), "%s", name);
	if (loop_is_here(s->fs->loop))
		verdict_on_save(save);
	else
		loop_post(s->fs->loop, verdict_on_save, save);
}

/* --- changes --- */

static void verdict_lost(const char *name)
{
	diag(DIAG_ERROR, "no memory to show what became of submit/%s", name);
}

void submit_verdict_accepted(struct submit *s, const char *name, uint64_t seq, const char *id,
			     struct submit_author author)
{
	char *copy = strdup(id);
	struct submit_verdict *v = NULL;

	if (copy) {
		lock_scope(&s->lock);
		v = verdict_make(s, name);
		if (v && seq > v->job_seq) {
			free(v->job);
			v->job = take_ptr(copy);
			v->job_seq = seq;
			v->job_time = loop_time_ns();
			v->author = author;
		}
		if (v && seq > v->seq) {
			free(take_ptr(v->error));
			v->seq = seq;
		}
		s->changed = loop_time_ns();
	}
	free(copy);
	if (v)
		verdict_save(s, name);
	else
		verdict_lost(name);
}

/* A text as NAME.error shows it: bounded, and whole lines. malloc'ed; NULL: no memory. */
static char *verdict_text(const char *text)
{
	size_t len = strnlen(text, SUBMIT_MAX_TEXT);
	const char *end = len > 0 && text[len - 1] == '\n' ? "" : "\n";
	char *ret;

	if (text[len])
		end = "...\n";
	return asprintf(&ret, "%.*s%s", (int)len, text, end) < 0 ? NULL : ret;
}

void submit_verdict_refused(struct submit *s, const char *name, uint64_t seq, const char *text,
			    struct submit_author author)
{
	char *copy = verdict_text(text);
	struct submit_verdict *v = NULL;

	if (copy) {
		lock_scope(&s->lock);
		v = verdict_make(s, name);
		if (v && seq > v->seq) {
			free(v->error);
			v->error = take_ptr(copy);
			v->seq = seq;
			v->error_time = loop_time_ns();
			v->author = author;
		}
		s->changed = loop_time_ns();
	}
	free(copy);
	if (v)
		verdict_save(s, name);
	else
		verdict_lost(name);
}

static char **verdict_field(struct submit_verdict *v, enum submit_name kind)
{
	return kind == SUBMIT_NAME_JOB ? &v->job : &v->error;
}

int submit_verdict_remove(struct submit *s, const char *name, enum submit_name kind)
{
	{
		struct submit_verdict *v;

		lock_scope(&s->lock);
		v = verdict_by_name(s, name);
		if (!v || !*verdict_field(v, kind))
			return -ENOENT;
		free(take_ptr(*verdict_field(v, kind)));
		verdict_drop_empty(s, v);
	}
	verdict_save(s, name);
	return 0;
}

/* TO has nothing any more, or what FROM had. Under the lock. */
static void verdict_retable(struct submit *s, struct submit_verdict *v, char *to)
{
	struct submit_verdict *old = verdict_by_name(s, to);

	if (old) {
		HASH_DEL(s->verdicts, old);
		submit_verdict_free(old);
	}
	HASH_DEL(s->verdicts, v);
	free(v->name);
	v->name = to;
	HASH_ADD_KEYPTR(hh, s->verdicts, v->name, strlen(v->name), v);
	s->changed = loop_time_ns();
}

void submit_verdict_move(struct submit *s, const char *from, const char *to)
{
	char *copy cleanup_free = strdup(to);

	if (!copy) {
		verdict_lost(to);
		return;
	}
	{
		struct submit_verdict *v;

		lock_scope(&s->lock);
		v = verdict_by_name(s, from);
		if (!v)
			return;
		verdict_retable(s, v, take_ptr(copy));
	}
	verdict_save(s, from);
	verdict_save(s, to);
}

bool submit_verdict_room(struct submit *s)
{
	lock_scope(&s->lock);
	return HASH_COUNT(s->verdicts) < SUBMIT_MAX_NAMES;
}

/* --- from the disk --- */

static char *verdict_read_job(struct submit *s, const char *file)
{
	char target[sizeof(VERDICT_TARGET) + NAME_MAX];
	ssize_t n = readlinkat(s->dir_fd, file, target, sizeof(target) - 1);
	size_t prefix = strlen(VERDICT_TARGET);

	if (n < 0)
		return NULL;
	target[n] = '\0';
	if (strncmp(target, VERDICT_TARGET, prefix) != 0 || !spec_name_is_file(target + prefix))
		return NULL;
	return strdup(target + prefix);
}

static char *verdict_read_error(struct submit *s, const char *file)
{
	int fd cleanup_fd = openat(s->dir_fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *text cleanup_free = calloc(1, SUBMIT_MAX_TEXT + 8);

	if (fd < 0 || !text || read(fd, text, SUBMIT_MAX_TEXT + 7) < 0)
		return NULL;
	return take_ptr(text);
}

int submit_verdict_load(struct submit *s, const char *name, enum submit_name kind)
{
	char file[NAME_MAX + 1 + sizeof(SUBMIT_ERROR_SUFFIX)];
	struct submit_verdict *v;
	char *value = NULL;
	struct stat st;
	int64_t when;

	snprintf(file, sizeof(file), "%s%s", name,
		 kind == SUBMIT_NAME_JOB ? SUBMIT_JOB_SUFFIX : SUBMIT_ERROR_SUFFIX);
	if (fstatat(s->dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (kind == SUBMIT_NAME_JOB && S_ISLNK(st.st_mode))
		value = verdict_read_job(s, file);
	else if (kind == SUBMIT_NAME_ERROR && S_ISREG(st.st_mode))
		value = verdict_read_error(s, file);
	if (!value) {
		diag(DIAG_WARNING, "%s/submit/%s: not a verdict of kxfs, ignored", s->fs->state_dir,
		     file);
		return 0;
	}
	when = st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	lock_scope(&s->lock);
	v = verdict_make(s, name);
	if (!v) {
		free(value);
		return -ENOMEM;
	}
	*verdict_field(v, kind) = value;
	*(kind == SUBMIT_NAME_JOB ? &v->job_time : &v->error_time) = when;
	v->author.uid = st.st_uid == geteuid() ? s->fs->options->uid : st.st_uid;
	v->author.gid = st.st_gid == getegid() ? s->fs->options->gid : st.st_gid;
	return 0;
}

static struct submit_verdict *verdict_copy(const struct submit_verdict *v)
{
	struct submit_verdict *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->name = strdup(v->name);
	copy->job = strdup(v->job);
	copy->job_time = v->job_time;
	if (copy->name && copy->job)
		return copy;
	submit_verdict_free(copy);
	return NULL;
}

struct submit_verdict *submit_verdict_copy_jobs(struct submit *s)
{
	struct submit_verdict *v, *next, *list = NULL;

	lock_scope(&s->lock);
	HASH_ITER(hh, s->verdicts, v, next) {
		struct submit_verdict *copy = v->job ? verdict_copy(v) : NULL;

		if (copy) {
			copy->next = list;
			list = copy;
		}
	}
	return list;
}

void submit_verdict_free_all(struct submit *s)
{
	struct submit_verdict *v, *next;

	HASH_ITER(hh, s->verdicts, v, next) {
		HASH_DEL(s->verdicts, v);
		submit_verdict_free(v);
	}
}

/* --- as they are shown; FUSE thread --- */

/* The text of a verdict now, malloc'ed, and its attributes. -ENOENT: it has gone. */
static int verdict_get(struct fs *fs, struct node *node, char **ret, struct stat *st)
{
	char name[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(node_name(node), name);
	const char *prefix = kind == SUBMIT_NAME_JOB ? VERDICT_TARGET : "";
	struct submit_verdict *v;
	int64_t when;

	assert(kind != SUBMIT_NAME_FILE);
	lock_scope(&fs->submit->lock);
	v = verdict_by_name(fs->submit, name);
	if (!v || !*verdict_field(v, kind))
		return -ENOENT;
	if (asprintf(ret, "%s%s", prefix, *verdict_field(v, kind)) < 0)
		return -ENOMEM;
	when = kind == SUBMIT_NAME_JOB ? v->job_time : v->error_time;
	if (st) {
		node_set_times(st, when, when);
		st->st_size = (off_t)strlen(*ret);
		st->st_uid = v->author.uid;
		st->st_gid = v->author.gid;
	}
	return 0;
}

static int verdict_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	char *text cleanup_free = NULL;

	return verdict_get(fs, node, &text, st);
}

static int verdict_readlink(struct fs *fs, struct node *node, char **ret)
{
	return verdict_get(fs, node, ret, NULL);
}

static int verdict_render(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	int err = verdict_get(fs, node, ret, NULL);

	*ret_len = err ? 0 : strlen(*ret);
	return err;
}

static const struct node_class link_class = {
	.name = "submit-job",
	.mode = S_IFLNK | 0777,
	.live = true,
	.getattr = verdict_getattr,
	.readlink = verdict_readlink,
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
	.render = verdict_render,
};

static bool verdict_is_there(struct submit *s, const char *name, enum submit_name kind)
{
	struct submit_verdict *v;

	lock_scope(&s->lock);
	v = verdict_by_name(s, name);
	return v && *verdict_field(v, kind);
}

int submit_verdict_lookup(struct fs *fs, struct node *dir, const char *file, struct node **ret)
{
	char name[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(file, name);

	if (kind == SUBMIT_NAME_FILE || !verdict_is_there(fs->submit, name, kind))
		return -ENOENT;
	*ret = node_get(fs, dir, kind == SUBMIT_NAME_JOB ? &link_class : &error_class.class, file,
			NULL);
	return *ret ? 0 : -ENOMEM;
}

int submit_verdict_list(struct submit *s, struct listing *l)
{
	struct submit_verdict *v, *next;

	lock_scope(&s->lock);
	HASH_ITER(hh, s->verdicts, v, next) {
		char file[NAME_MAX + 1 + sizeof(SUBMIT_ERROR_SUFFIX)];
		int err = 0;

		snprintf(file, sizeof(file), "%s" SUBMIT_JOB_SUFFIX, v->name);
		if (v->job)
			err = listing_add(l, file);
		snprintf(file, sizeof(file), "%s" SUBMIT_ERROR_SUFFIX, v->name);
		if (!err && v->error)
			err = listing_add(l, file);
		if (err)
			return err;
	}
	return 0;
}
