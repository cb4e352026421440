/* SPDX-License-Identifier: MIT */
/*
 * fs/vfs/ops.h: what can't be tested with a real mount. How often the kernel has looked up a node,
 * and too many requests that wait for the disk. The test defines libfuse's replies and the
 * functions of fs/vfs/serve.h, so there is neither a session nor a thread.
 */
#include <errno.h>
#include <limits.h>
#include <sys/statvfs.h>

#include "backend/base/loop.h"
#include "fs/vfs/node.h"
#include "fs/vfs/serve.h"
#include "tests/unit/unit.h"

/* The reply to the only request. */
static struct {
	unsigned n;
	/*
	 * The errno of the reply, which is also the kernel's result of sending it. -ENOENT: the
	 * request was interrupted.
	 */
	int err;
	struct fuse_entry_param entry;
	size_t namemax;
} reply;
static bool unwanted;
static struct fs *session;

static int answer(int err)
{
	reply.n++;
	reply.err = err;
	return unwanted ? -ENOENT : 0;
}

void *fuse_req_userdata(fuse_req_t req)
{
	return session;
}

int fuse_reply_err(fuse_req_t req, int err)
{
	return answer(err);
}

void fuse_reply_none(fuse_req_t req)
{
	answer(0);
}

int fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *e)
{
	reply.entry = *e;
	return answer(0);
}

int fuse_reply_statfs(fuse_req_t req, const struct statvfs *st)
{
	reply.namemax = st->f_namemax;
	return answer(0);
}

struct serve *serve_new(struct fs *fs)
{
	return NULL;
}

void serve_free(struct serve *s)
{
}

void serve_finish(struct serve *s)
{
}

void serve_begin_request(fuse_req_t req)
{
}

char *serve_buffer(size_t size)
{
	static char buffer[4096];

	assert_true(size <= sizeof(buffer));
	return buffer;
}

static int disk; /* result for a handler that must wait for the disk */

int serve_disk_begin(struct fs *fs)
{
	return disk;
}

int serve_disk_end(struct fs *fs)
{
	return 0;
}

/* --- a tree with two files --- */

static const struct node_class file_class = {.name = "file", .mode = S_IFREG | 0644};

static int root_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	if (!streq(name, "one") && !streq(name, "other"))
		return -ENOENT;
	*ret = node_get(fs, dir, &file_class, name, NULL);
	return 0;
}

static const struct node_class root_class = {.name = "root",
					     .mode = S_IFDIR | 0755,
					     .lookup = root_lookup};

static int setup(void **state)
{
	struct fs_config config = {.umask = 022, .disk = "/"};
	struct loop *loop;

	loop_new(&loop);
	session = fs_new(loop, &config, &root_class, NULL);
	memset(&reply, 0, sizeof(reply));
	unwanted = false;
	*state = loop;
	return 0;
}

static int teardown(void **state)
{
	fs_close(session);
	fs_free(session);
	loop_free(*state);
	return 0;
}

/* Look up NAME. Return its node, which the kernel then references once. */
static fuse_ino_t looked_up(const char *name)
{
	fs_ops.lookup(NULL, FUSE_ROOT_ID, name);
	assert_int_equal(reply.err, 0);
	return reply.entry.ino;
}

/* Assert that the request CALL gets exactly one reply, with ERR. */
#define ANSWERED(err_, ...)                                                                        \
	do {                                                                                       \
		reply.n = 0;                                                                       \
		fs_ops.__VA_ARGS__;                                                                \
		assert_int_equal(reply.n, 1);                                                      \
		assert_int_equal(reply.err, err_);                                                 \
	} while (0)

/* If the reply to a lookup was not delivered, the kernel does not reference the node. */
static void test_lookup(void **state)
{
	struct node *node = node_of(session, looked_up("one"));

	assert_int_equal(node->lookups, 1);
	unwanted = true;
	ANSWERED(0, lookup(NULL, FUSE_ROOT_ID, "one"));
	assert_int_equal(node->lookups, 1);
	unwanted = false;
	ANSWERED(ENOENT, lookup(NULL, FUSE_ROOT_ID, "none"));
}

static void test_forget(void **state)
{
	fuse_ino_t one = looked_up("one"), other = looked_up("other");
	struct fuse_forget_data all[] = {{FUSE_ROOT_ID, 7}, {other, 1}};

	looked_up("other");
	ANSWERED(0, forget(NULL, FUSE_ROOT_ID, 1)); /* the root is never freed */
	ANSWERED(0, forget(NULL, one, 1));
	ANSWERED(0, forget_multi(NULL, 2, all));
	assert_int_equal(node_of(session, other)->lookups, 1);
}

/* Too many requests already wait for the disk. */
static void test_disk(void **state)
{
	ANSWERED(0, statfs(NULL, FUSE_ROOT_ID));
	assert_int_equal(reply.namemax, NAME_MAX);
	disk = -ETIMEDOUT;
	ANSWERED(ETIMEDOUT, statfs(NULL, FUSE_ROOT_ID));
	disk = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lookup, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
