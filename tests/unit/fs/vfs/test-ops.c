/* SPDX-License-Identifier: MIT */
/*
 * fs/vfs/ops.h: how often the kernel has looked up a node, which a real mount does not show. The
 * test defines libfuse's replies, so there is no session.
 */
#include <errno.h>

#include "backend/base/loop.h"
#include "fs/vfs/node.h"
#include "tests/unit/unit.h"

/* The reply to the only request. */
static struct {
	unsigned n;
	int err;
	struct fuse_entry_param entry;
} reply;
/* true if the request was interrupted, so that the kernel does not accept the reply */
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
	struct fs_config config = {.umask = 022};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lookup, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
