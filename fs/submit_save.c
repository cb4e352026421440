/* SPDX-License-Identifier: MIT */
/*
 * Verdicts on disk, in STATE/submit/ beside the files. The disk follows memory on the I/O thread,
 * name by name: each save makes it equal to what memory says by then, so the order of saves does
 * not matter.
 */
#include <errno.h>
#include <fcntl.h>

#include "backend/diag.h"
#include "fs/options.h"
#include "fs/submit_impl.h"
#include "spec/name.h"

/* In STATE, not in STATE/submit, so that it can't be the name of a file. */
#define VERDICT_TEMP "submit.new"

/* --- to the disk, I/O thread --- */

struct verdict_save {
	struct submit *s;
	char *job;
	char *error;
	bool pending;
	int64_t since; /* the mark's own time; 0: that of now */
	struct submit_author author;
	char name[NAME_MAX + 1];
};

/*
 * On disk a NAME.error that its owner may not write stands for a submission under way, whatever else it
 * says: whoever finds it at a start is to find out what became of it.
 */
#define VERDICT_PENDING 0400
#define VERDICT_MODE	0600

/* What is to be on disk. */
static int verdict_read(struct verdict_save *save)
{
	const struct submit_verdict *v;

	lock_scope(&save->s->lock);
	v = submit_verdict_find(save->s, save->name);
	if (!v)
		return 0;
	save->author = v->author;
	save->pending = v->pending;
	save->since = v->pending_since;
	if ((v->job && asprintf(&save->job, SUBMIT_TARGET "%s", v->job) < 0) ||
	    ((v->error || v->pending) && !(save->error = strdup(v->error ? v->error : ""))))
		return -ENOMEM;
	return 0;
}

/*
 * The mark keeps the time at which it was first set: what is launched for it is newer, what was launched
 * before it is older, by the same clock.
 */
static int verdict_keep_time(struct verdict_save *save, int fd)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
				    {save->since / 1000000000, save->since % 1000000000}};
	struct submit_verdict *v;
	struct stat st;

	if (save->since)
		return futimens(fd, times) < 0 ? -errno : 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	lock_scope(&save->s->lock);
	v = submit_verdict_find(save->s, save->name);
	if (v && v->pending)
		v->pending_since = st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	return 0;
}

static int verdict_write_text(struct verdict_save *save, const char *text)
{
	int fd cleanup_fd =
		openat(save->s->state_fd, VERDICT_TEMP, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		       save->pending ? VERDICT_PENDING : VERDICT_MODE);
	int err = fd < 0 ? -errno : submit_pwrite(fd, text, strlen(text), 0);

	return err || !save->pending ? err : verdict_keep_time(save, fd);
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
		err = verdict_write_text(save, text);
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
		diag(DIAG_WARNING, "the verdict on %s/%s will be lost at the next mount: %s",
		     save->s->name, save->name, strerror(-err));
	free(save->job);
	free(save->error);
	free(save);
}

/* On the I/O thread it is done when this returns, else soon. */
void submit_verdict_save(struct submit *s, const char *name)
{
	struct verdict_save *save = calloc(1, sizeof(*save));

	if (!save) {
		diag(DIAG_WARNING, "the verdict on %s/%s will be lost at the next mount: %s",
		     s->name, name, strerror(ENOMEM));
		return;
	}
	save->s = s;
	snprintf(save->name, sizeof(save->name), "%s", name);
	if (loop_is_here(s->fs->loop))
		verdict_on_save(save);
	else
		loop_post(s->fs->loop, verdict_on_save, save);
}

/* --- from the disk --- */

static char *verdict_read_job(struct submit *s, const char *file)
{
	char target[sizeof(SUBMIT_TARGET) + NAME_MAX];
	ssize_t n = readlinkat(s->dir_fd, file, target, sizeof(target) - 1);
	size_t prefix = strlen(SUBMIT_TARGET);

	if (n < 0)
		return NULL;
	target[n] = '\0';
	if (strncmp(target, SUBMIT_TARGET, prefix) != 0 || !spec_name_is_file(target + prefix))
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
		diag(DIAG_WARNING, "%s/%s/%s: not a verdict of kxfs, ignored", s->fs->state_dir,
		     s->name, file);
		return 0;
	}
	when = st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	lock_scope(&s->lock);
	v = submit_verdict_make(s, name);
	if (!v) {
		free(value);
		return -ENOMEM;
	}
	*submit_verdict_field(v, kind) = value;
	*(kind == SUBMIT_NAME_JOB ? &v->job_time : &v->error_time) = when;
	if (kind == SUBMIT_NAME_ERROR && !(st.st_mode & S_IWUSR)) {
		v->pending = 1;
		v->pending_since = when;
	}
	v->author.uid = st.st_uid == geteuid() ? s->fs->options->uid : st.st_uid;
	v->author.gid = st.st_gid == getegid() ? s->fs->options->gid : st.st_gid;
	return 0;
}
