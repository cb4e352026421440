/* SPDX-License-Identifier: MIT */
/* The parts of a session, made and freed together; see fs.h. */
#include "fs/vfs/fs.h"

#include "backend/base/loop.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/node.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "fs/vfs/stream.h"
#include "spec/base/mem.h"

struct fs *fs_new(struct loop *loop, const struct fs_config *config, const struct node_class *root,
		  void *object)
{
	struct fs *fs = new0(struct fs);

	fs->config = *config;
	fs->started = loop_time_ns();
	fs->loop = loop;
	fs->park = park_new();
	fs->serve = serve_new(fs);
	fs->nodes = node_table_new(root, object);
	fs->handles = handles_new();
	fs->streams = streams_new();
	return fs;
}

void fs_close(struct fs *fs)
{
	serve_finish(fs->serve);
	handles_free(take_ptr(fs->handles));
	streams_free(take_ptr(fs->streams));
	node_table_free(take_ptr(fs->nodes));
}

void fs_free(struct fs *fs)
{
	if (!fs)
		return;
	serve_free(fs->serve);
	park_free(fs->park);
	free(fs);
}

struct fs *fs_of_request(fuse_req_t req)
{
	struct fs *fs = fuse_req_userdata(req);

	fs->requests++;
	serve_begin_request(req);
	return fs;
}
