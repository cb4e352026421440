/* SPDX-License-Identifier: MIT */
/*
 * fs/vfs/ops.h: each operation finds its node, calls the class of that, and answers for a class without such a
 * function. libfuse's answers and the threads of fs/vfs/serve.h are defined here, so there is neither a session nor a
 * thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/statvfs.h>

#include "backend/base/loop.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/listing.h"
#include "fs/vfs/node.h"
#include "fs/vfs/serve.h"
#include "tests/unit/unit.h"

/* The answer to the only request. */
static struct {
	unsigned n;
	/* The errno, which is also what the kernel says of the answer. -ENOENT: nobody waits for it. */
	int err;
	struct fuse_entry_param entry;
	struct stat attr;
	double timeout;
	char text[4096];
	size_t len;
	unsigned events;
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

int fuse_reply_attr(fuse_req_t req, const struct stat *attr, double timeout)
{
	reply.attr = *attr;
	reply.timeout = timeout;
	return answer(0);
}

int fuse_reply_readlink(fuse_req_t req, const char *link)
{
	snprintf(reply.text, sizeof(reply.text), "%s", link);
	return answer(0);
}

int fuse_reply_buf(fuse_req_t req, const char *buf, size_t size)
{
	assert_true(size <= sizeof(reply.text));
	memcpy(reply.text, buf, size);
	reply.len = size;
	return answer(0);
}

int fuse_reply_statfs(fuse_req_t req, const struct statvfs *st)
{
	reply.len = st->f_namemax;
	return answer(0);
}

int fuse_reply_poll(fuse_req_t req, unsigned events)
{
	reply.events = events;
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

static int disk; /* a handler that has to wait for the disk is told this */

int serve_disk_begin(struct fs *fs)
{
	return disk;
}

void serve_disk_end(struct fs *fs)
{
}

/* These tests read only the names of a listing: here an entry is its name and a newline. */
size_t fuse_add_direntry_plus(fuse_req_t req, char *buf, size_t room, const char *name,
			      const struct fuse_entry_param *e, off_t off)
{
	size_t need = strlen(name) + 1;

	if (need <= room) {
		memcpy(buf, name, need - 1);
		buf[need - 1] = '\n';
	}
	return need;
}

/* --- a tree: "plain" can do nothing, "able" writes down what it is asked for --- */

static char called[64];
static bool plain_gone;

static void note(fuse_req_t req, const char *what)
{
	snprintf(called, sizeof(called), "%s", what);
	fuse_reply_err(req, EXDEV);
}

static void able_open(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	note(req, "open");
}

static void able_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		      struct fuse_file_info *fi)
{
	note(req, "read");
}

static void able_write(struct fs *fs, fuse_req_t req, struct node *node, const char *buf,
		       size_t size, off_t off, struct fuse_file_info *fi)
{
	note(req, "write");
}

static void able_flush(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	note(req, "flush");
}

static void able_fsync(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	note(req, "fsync");
}

static void able_release(struct fs *fs, fuse_req_t req, struct node *node,
			 struct fuse_file_info *fi)
{
	note(req, "release");
}

static void able_poll(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi,
		      struct fuse_pollhandle *ph)
{
	note(req, "poll");
}

static void able_setattr(struct fs *fs, fuse_req_t req, struct node *node, struct stat *attr,
			 int to_set, struct fuse_file_info *fi)
{
	note(req, "setattr");
}

static void able_create(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
			mode_t mode, struct fuse_file_info *fi)
{
	note(req, "create");
}

static void able_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	note(req, "unlink");
}

static void able_rmdir(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	note(req, "rmdir");
}

static void able_rename(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
			struct node *newdir, const char *newname, unsigned flags)
{
	note(req, "rename");
}

static int able_readlink(struct fs *fs, struct node *node, char **ret)
{
	*ret = strdup("target");
	return 0;
}

static const struct node_class plain_class = {.name = "plain", .mode = S_IFREG | 0644};
static const struct node_class able_class = {
	.name = "able",
	.mode = S_IFREG | 0644,
	.live = true,
	.open = able_open,
	.read = able_read,
	.write = able_write,
	.flush = able_flush,
	.fsync = able_fsync,
	.release = able_release,
	.poll = able_poll,
	.setattr = able_setattr,
	.create = able_create,
	.unlink = able_unlink,
	.rmdir = able_rmdir,
	.rename = able_rename,
	.readlink = able_readlink,
};

static int root_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	bool able = strcmp(name, "able") == 0;

	if (!able && (strcmp(name, "plain") != 0 || plain_gone))
		return -ENOENT;
	*ret = node_get(fs, dir, able ? &able_class : &plain_class, name, NULL);
	return 0;
}

static int root_list(struct fs *fs, struct node *dir, struct listing *l)
{
	listing_add(l, "able");
	if (!plain_gone)
		listing_add(l, "plain");
	return 0;
}

static const struct node_class root_class = {.name = "root",
					     .mode = S_IFDIR | 0755,
					     .lookup = root_lookup,
					     .list = root_list};

static int setup(void **state)
{
	struct fs_config config = {.umask = 022, .disk = "/"};
	struct loop *loop;

	loop_new(&loop);
	session = fs_new(loop, &config, &root_class, NULL);
	memset(&reply, 0, sizeof(reply));
	memset(called, 0, sizeof(called));
	unwanted = plain_gone = false;
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

/* Look NAME up: its node, which the kernel counts once. */
static fuse_ino_t looked_up(const char *name)
{
	fs_ops.lookup(NULL, FUSE_ROOT_ID, name);
	assert_int_equal(reply.err, 0);
	return reply.entry.ino;
}

/* The request CALL was answered once: by the class that can, which says EXDEV, or with ERR. */
#define ANSWERED(err_, what, ...)                                                                  \
	do {                                                                                       \
		reply.n = 0;                                                                       \
		called[0] = '\0';                                                                  \
		fs_ops.__VA_ARGS__;                                                                \
		assert_int_equal(reply.n, 1);                                                      \
		assert_int_equal(reply.err, err_);                                                 \
		assert_string_equal(called, what);                                                 \
	} while (0)

/* --- the tests --- */

static void test_lookup(void **state)
{
	char name[NAME_MAX + 2];
	struct node *node = node_of(session, looked_up("plain"));

	assert_ptr_equal(node->class, &plain_class);
	assert_int_equal(node->lookups, 1);
	assert_int_equal(reply.entry.attr.st_mode, S_IFREG | 0644);
	ANSWERED(ENOENT, "", lookup(NULL, FUSE_ROOT_ID, "none"));
	memset(name, 'a', sizeof(name) - 1);
	name[NAME_MAX + 1] = '\0';
	ANSWERED(ENAMETOOLONG, "", lookup(NULL, FUSE_ROOT_ID, name));
	/* A file has no entries. */
	ANSWERED(ENOENT, "", lookup(NULL, (fuse_ino_t)(uintptr_t)node, "x"));
	/* A lookup whose answer nobody took is not counted by the kernel. */
	unwanted = true;
	ANSWERED(0, "", lookup(NULL, FUSE_ROOT_ID, "plain"));
	assert_int_equal(node->lookups, 1);
}

static void test_forget(void **state)
{
	fuse_ino_t ino = looked_up("plain"), other = looked_up("able");
	struct fuse_forget_data all[] = {{FUSE_ROOT_ID, 7}, {other, 1}};

	looked_up("able");
	ANSWERED(0, "", forget(NULL, FUSE_ROOT_ID, 1)); /* the root is never freed */
	ANSWERED(0, "", forget(NULL, ino, 1));
	ANSWERED(0, "", forget_multi(NULL, 2, all));
	assert_int_equal(node_of(session, other)->lookups, 1);
}

static void test_attributes(void **state)
{
	fuse_ino_t plain = looked_up("plain"), able = looked_up("able");
	struct stat st = {0};

	ANSWERED(0, "", getattr(NULL, plain, NULL));
	assert_int_equal(reply.attr.st_mode, S_IFREG | 0644);
	assert_true(reply.timeout > 0);
	/* The kernel keeps no attributes of a live file. */
	ANSWERED(0, "", getattr(NULL, able, NULL));
	assert_true(reply.timeout == 0);
	ANSWERED(0, "", setattr(NULL, plain, &st, FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME, NULL));
	ANSWERED(EPERM, "", setattr(NULL, plain, &st, FUSE_SET_ATTR_SIZE, NULL));
	ANSWERED(EPERM, "", setattr(NULL, plain, &st, FUSE_SET_ATTR_MODE, NULL));
	ANSWERED(EPERM, "", setattr(NULL, plain, &st, FUSE_SET_ATTR_UID, NULL));
	ANSWERED(EXDEV, "setattr", setattr(NULL, able, &st, FUSE_SET_ATTR_MODE, NULL));
}

static void test_links(void **state)
{
	fuse_ino_t plain = looked_up("plain"), able = looked_up("able");

	ANSWERED(EINVAL, "", readlink(NULL, plain));
	ANSWERED(0, "", readlink(NULL, able));
	assert_string_equal(reply.text, "target");
}

/* Nobody makes directories, links or devices, not even where files can be made. */
static void test_names(void **state)
{
	fuse_ino_t plain = looked_up("plain"), able = looked_up("able");
	struct fuse_file_info fi = {0};

	ANSWERED(EPERM, "", create(NULL, plain, "x", 0644, &fi));
	ANSWERED(EPERM, "", unlink(NULL, plain, "x"));
	ANSWERED(EPERM, "", rmdir(NULL, plain, "x"));
	ANSWERED(EPERM, "", rename(NULL, plain, "x", able, "y", 0));
	ANSWERED(EXDEV, "create", create(NULL, able, "x", 0644, &fi));
	ANSWERED(EXDEV, "unlink", unlink(NULL, able, "x"));
	ANSWERED(EXDEV, "rmdir", rmdir(NULL, able, "x"));
	ANSWERED(EXDEV, "rename", rename(NULL, able, "x", plain, "y", 0));
	ANSWERED(EPERM, "", mkdir(NULL, able, "x", 0755));
	ANSWERED(EPERM, "", mknod(NULL, able, "x", 0644, 0));
	ANSWERED(EPERM, "", symlink(NULL, "x", able, "y"));
	ANSWERED(EPERM, "", link(NULL, plain, able, "y"));
}

static void test_files(void **state)
{
	fuse_ino_t plain = looked_up("plain"), able = looked_up("able");
	struct fuse_file_info fi = {.flags = O_RDONLY}, out = {.flags = O_WRONLY};

	ANSWERED(EPERM, "", open(NULL, plain, &fi));
	ANSWERED(EBADF, "", read(NULL, plain, 1, 0, &fi));
	ANSWERED(EPERM, "", write(NULL, plain, "x", 1, 0, &fi));
	ANSWERED(0, "", flush(NULL, plain, &fi));
	ANSWERED(0, "", fsync(NULL, plain, 0, &fi));
	ANSWERED(EXDEV, "open", open(NULL, able, &fi));
	ANSWERED(EXDEV, "open", open(NULL, able, &out));
	ANSWERED(EXDEV, "read", read(NULL, able, 1, 0, &fi));
	ANSWERED(EXDEV, "write", write(NULL, able, "x", 1, 0, &fi));
	ANSWERED(EXDEV, "flush", flush(NULL, able, &fi));
	ANSWERED(EXDEV, "fsync", fsync(NULL, able, 0, &fi));
	ANSWERED(EXDEV, "release", release(NULL, able, &fi));
}

/* A file whose class has no poll is always ready; ENOSYS would switch poll off for the whole mount. */
static void test_poll(void **state)
{
	fuse_ino_t plain = looked_up("plain"), able = looked_up("able");
	struct fuse_file_info fi = {0};

	ANSWERED(0, "", poll(NULL, plain, &fi, NULL));
	assert_int_equal(reply.events & (POLLIN | POLLOUT), POLLIN | POLLOUT);
	ANSWERED(EXDEV, "poll", poll(NULL, able, &fi, NULL));
}

/* The names that reading the directory of FI from OFF gives, with room for SIZE bytes. */
static const char *names(struct fuse_file_info *fi, size_t size, off_t off)
{
	ANSWERED(0, "", readdirplus(NULL, FUSE_ROOT_ID, size, off, fi));
	reply.text[reply.len] = '\0';
	return reply.text;
}

/*
 * Each name is given once, as it was when the directory was opened, or when it was last read from its start; names that
 * have gone are left out.
 */
static void test_directories(void **state)
{
	struct fuse_file_info fi = {0};

	ANSWERED(0, "", opendir(NULL, FUSE_ROOT_ID, &fi));
	assert_string_equal(names(&fi, 4000, 0), ".\n..\nable\nplain\n");
	assert_string_equal(names(&fi, 12, 0), ".\n..\nable\n"); /* no part of a name is given */
	assert_string_equal(names(&fi, 4000, 3), "plain\n");
	assert_string_equal(names(&fi, 4000, 4), "");
	plain_gone = true;
	assert_string_equal(names(&fi, 4000, 3), "");
	assert_string_equal(names(&fi, 4000, 0), ".\n..\nable\n");
	plain_gone = false;
	assert_string_equal(names(&fi, 4000, 2), "able\n");
	assert_string_equal(names(&fi, 4000, 0), ".\n..\nable\nplain\n");
	ANSWERED(0, "", releasedir(NULL, FUSE_ROOT_ID, &fi));
}

static void test_statfs(void **state)
{
	ANSWERED(0, "", statfs(NULL, FUSE_ROOT_ID));
	assert_int_equal(reply.len, NAME_MAX);
	/* So many requests wait for the disk that this one may not. */
	disk = -ETIMEDOUT;
	ANSWERED(ETIMEDOUT, "", statfs(NULL, FUSE_ROOT_ID));
	disk = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lookup, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_attributes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_poll, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directories, setup, teardown),
		cmocka_unit_test_setup_teardown(test_statfs, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
