/* SPDX-License-Identifier: MIT */
/*
 * dryrun/: what is in a file becomes the manifest that it would make. Done by the I/O thread when the
 * backend has answered, while the FUSE thread keeps its hands off the bytes (submit_file_change).
 */
#include <errno.h>
#include <fcntl.h>

#include "fs/submit_impl.h"

/* Nobody changes the bytes of F from now on; false: they are not CONTENT any more. */
static bool replace_begin(struct submit_file *f, uint64_t content)
{
	lock_scope(&f->s->lock);
	if (f->content != content)
		return false;
	f->replacing = true;
	return true;
}

static void replace_end(struct submit_file *f, bool done)
{
	{
		lock_scope(&f->s->lock);
		f->replacing = false;
		f->content++;
		if (done) {
			f->accepted = f->content;
			f->modes++;
		}
	}
	submit_file_refresh(f);
	submit_file_save_mode(f);
}

/* A full disk must not cost the document: the room is there before the first byte changes. */
static int replace_bytes(int fd, const char *text, size_t len)
{
	int err;

	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)len) < 0 && errno != EOPNOTSUPP)
		return -errno;
	err = submit_pwrite(fd, text, len, 0);
	if (err < 0)
		return err;
	return ftruncate(fd, (off_t)len) < 0 ? -errno : 0;
}

int submit_file_replace(struct submit_file *f, uint64_t content, const char *text)
{
	int err;

	if (!replace_begin(f, content))
		return 0;
	err = replace_bytes(f->fd, text, strlen(text));
	replace_end(f, !err);
	return err;
}

bool submit_file_is_made(struct submit_file *f)
{
	lock_scope(&f->s->lock);
	return f->replacing || f->accepted == f->content;
}
