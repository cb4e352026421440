/* SPDX-License-Identifier: MIT */
/* How long the files of submit/ are kept: found again at the start, removed when they expire. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "backend/diag.h"
#include "fs/submit_impl.h"

/* Where a file that expires is put, in STATE, until it is sure that nobody has opened it. */
#define KEEP_OLD "submit.old"

static bool keep_is_idle(struct submit_file *f)
{
	return f->name && f->holds == 0 && f->accepted == f->content;
}

/* NAME has left STATE/submit: is it the last of F? */
static bool keep_detach(struct submit_file *f, const char *name)
{
	lock_scope(&f->s->lock);
	if (!keep_is_idle(f) || !streq(f->name, name))
		return false;
	submit_file_detach(f);
	return true;
}

int submit_file_expire(struct submit_file *f)
{
	const struct submit *s = f->s;
	char name[NAME_MAX + 1];

	{
		lock_scope(&f->s->lock);
		if (!keep_is_idle(f))
			return -EBUSY;
		memcpy(name, f->name, strlen(f->name) + 1);
	}
	if (renameat(s->dir_fd, name, s->state_fd, KEEP_OLD) < 0)
		return -errno;
	if (keep_detach(f, name)) {
		unlinkat(s->state_fd, KEEP_OLD, 0);
		submit_file_unref(f); /* the table's */
		return 0;
	}
	if (renameat2(s->state_fd, KEEP_OLD, s->dir_fd, name, RENAME_NOREPLACE) < 0)
		diag(DIAG_ERROR, "%s/%s, once %s/%s, can't be put back: %s", s->fs->state_dir,
		     KEEP_OLD, s->name, name, strerror(errno));
	return -EBUSY;
}

void submit_file_forget_all(struct submit *s)
{
	struct submit_file *f, *next;

	HASH_ITER(hh, s->files, f, next) {
		{
			lock_scope(&s->lock);
			submit_file_detach(f);
		}
		submit_file_unref(f);
	}
}

/* The names of all that were made before BEFORE, ns; *RET and each are malloc'ed. */
static size_t keep_list_old(struct submit *s, int64_t before, char ***ret)
{
	struct submit_file *f, *next;
	size_t n = 0;

	lock_scope(&s->lock);
	*ret = calloc(HASH_COUNT(s->files) + 1, sizeof(**ret));
	if (!*ret)
		return 0;
	HASH_ITER(hh, s->files, f, next) {
		if (f->st.st_ctim.tv_sec < before / 1000000000 && keep_is_idle(f) &&
		    ((*ret)[n] = strdup(f->name)))
			n++;
	}
	return n;
}

void submit_expire_made(struct submit *s, int64_t before)
{
	char **names cleanup_free = NULL;
	size_t n = keep_list_old(s, before, &names);

	for (size_t i = 0; i < n; i++) {
		struct submit_file *f cleanup_submit_file = submit_file_find(s, names[i]);

		if (f && submit_file_expire(f) == 0)
			submit_verdict_remove(s, names[i], SUBMIT_NAME_ERROR);
		free(names[i]);
	}
}

/* --- at the start --- */

static int scan_file(struct submit *s, const char *name)
{
	struct submit_file *f;
	struct stat st;

	if (fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || submit_name_check(name) < 0) {
		diag(DIAG_WARNING, "%s/%s/%s: not a file of kxfs, ignored", s->fs->state_dir,
		     s->name, name);
		return 0;
	}
	f = submit_file_new(s, &st);
	if (!f || submit_file_insert(f, name) < 0) {
		free(f);
		return -ENOMEM;
	}
	return 0;
}

int submit_scan(struct submit *s)
{
	struct dirent **names = NULL;
	int err = 0;
	int n = scandirat(s->dir_fd, ".", &names, NULL, NULL);

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		char base[NAME_MAX + 1];
		enum submit_name kind = submit_name_kind(name, base);

		if (!err && kind != SUBMIT_NAME_FILE)
			err = submit_verdict_load(s, base, kind);
		else if (!err && !streq(name, ".") && !streq(name, ".."))
			err = scan_file(s, name);
		free(names[i]);
	}
	free(names);
	return err;
}
