/* SPDX-License-Identifier: MIT */
/* Rendered texts; see text.h. */
#include "backend/base/loop.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/text.h"
#include "spec/base/mem.h"

struct text_handle {
	struct handle handle;
	const char *text;
	size_t len;
	char *own; /* the text, unless SHARED owns it */
	struct spec_text *shared;
};

static void text_release(struct text_handle *t)
{
	free(t->own);
	spec_text_unref(t->shared);
}

static int text_take(struct fs *fs, struct node *node, struct text_handle *t)
{
	const struct text_class *class = container_of(node->class, struct text_class, class);
	int err;

	if (!class->share) {
		err = class->render(fs, node, &t->own, &t->len);
		t->text = t->own;
		return err;
	}
	err = class->share(fs, node, &t->shared);
	if (err)
		return err;
	t->text = t->shared->text;
	t->len = t->shared->len;
	return 0;
}

int text_size(struct fs *fs, struct node *node, off_t *ret)
{
	struct text_handle t cleanup(text_release) = {0};
	int err = text_take(fs, node, &t);

	if (err)
		return err;
	*ret = (off_t)t.len;
	return 0;
}

int text_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	int64_t now = loop_time_ns();

	node_set_times(st, now, fs->started);
	return text_size(fs, node, &st->st_size);
}

static void text_free(struct handle *h)
{
	struct text_handle *t = container_of(h, struct text_handle, handle);

	text_release(t);
	free(t);
}

void text_open(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	const struct text_class *class = container_of(node->class, struct text_class, class);
	struct text_handle *t = new0(struct text_handle);
	int err = text_take(fs, node, t);

	if (err) {
		text_free(&t->handle);
		fuse_reply_err(req, -err);
		return;
	}
	if (class->opened)
		class->opened(node);
	handle_open(fs, &t->handle, text_free, fi);
	handle_reply(fs, req, fi);
}

void text_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
	       struct fuse_file_info *fi)
{
	const struct text_handle *t = handle_of(fi);

	if ((uint64_t)off >= t->len)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, t->text + off, min_of(size, t->len - (size_t)off));
}
