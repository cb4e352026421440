/* SPDX-License-Identifier: MIT */
/*
 * fs/vfs/node.h: nodes are found again, live as long as they are used, and keep their inode
 * numbers.
 */
#include <errno.h>

#include "backend/base/loop.h"
#include "fs/vfs/node.h"
#include "tests/unit/unit.h"

static int freed;

static void count_free(struct node *node)
{
	freed++;
}

static const struct node_class dir_class = {.name = "dir",
					    .mode = S_IFDIR | 0755,
					    .free = count_free};
static const struct node_class file_class = {.name = "file",
					     .mode = S_IFREG | 0644,
					     .free = count_free};

static int asked;

static int count_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	(void)fs, (void)node;
	asked++;
	st->st_size = 42;
	return 0;
}

static const struct node_class costly_class = {.name = "costly",
					       .mode = S_IFREG | 0644,
					       .costly = true,
					       .getattr = count_getattr};

static const struct node_class on_disk_class = {.name = "on-disk",
						.mode = S_IFREG | 0644,
						.costly = true,
						.on_disk = true,
						.getattr = count_getattr};

struct fixture {
	struct loop *loop;
	struct fs *fs;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	const struct fs_config config = {.umask = 022};

	loop_new(&f->loop);
	f->fs = fs_new(f->loop, &config, &dir_class, f);
	freed = 0;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fs_close(f->fs);
	fs_free(f->fs);
	loop_free(f->loop);
	free(f);
	return 0;
}

static struct node *root_of(struct fs *fs)
{
	return node_of(fs, FUSE_ROOT_ID);
}

static void test_kernel_counts(void **state)
{
	struct fs *fs = ((struct fixture *)*state)->fs;
	struct node *file = node_get(fs, root_of(fs), &file_class, "state", NULL);

	node_looked_up(file);
	node_looked_up(file);
	node_put(fs, file);
	node_forget(fs, file, 1);
	assert_int_equal(freed, 0);
	node_forget(fs, file, 1);
	assert_int_equal(freed, 1);
}

/*
 * Listing a directory returns no attributes that are expensive to compute, and no size that
 * contradicts an earlier one.
 */
static void test_listed(void **state)
{
	struct fs *fs = ((struct fixture *)*state)->fs;
	struct node *file = node_get(fs, root_of(fs), &costly_class, "status", NULL);
	struct fuse_entry_param e;

	asked = 0;
	assert_int_equal(node_listed(fs, file, &e), 0);
	assert_int_equal(asked, 0);
	assert_true(S_ISREG(e.attr.st_mode));
	assert_int_equal(e.attr.st_ino, file->ino);
	assert_true(e.entry_timeout > 0);
	assert_true(e.attr_timeout == 0);
	assert_int_equal(node_entry(fs, file, &e), 0);
	assert_int_equal(asked, 1);
	assert_int_equal(e.attr.st_size, 42);
	assert_true(e.attr_timeout > 0);
	assert_int_equal(node_listed(fs, file, &e), 0);
	assert_int_equal(asked, 1);
	assert_int_equal(e.attr.st_size, 42);
	assert_true(e.attr_timeout == 0);
	node_forget(fs, file, 3);
	node_put(fs, file);
}

/* Neither a lookup nor a listing accesses the disk. The kernel does not cache the results. */
static void test_on_disk(void **state)
{
	struct fs *fs = ((struct fixture *)*state)->fs;
	struct node *file = node_get(fs, root_of(fs), &on_disk_class, "log", NULL);
	struct fuse_entry_param e;

	asked = 0;
	assert_int_equal(node_listed(fs, file, &e), 0);
	assert_true(e.attr_timeout == 0);
	assert_int_equal(node_entry(fs, file, &e), 0);
	assert_true(e.attr_timeout == 0);
	assert_true(S_ISREG(e.attr.st_mode));
	assert_int_equal(asked, 0);
	assert_int_equal(file->lookups, 2);
	node_forget(fs, file, 2);
	node_put(fs, file);
}

/* After a successful rmdir, the name must lead to a new node with the same inode number. */
static void test_forgotten_name(void **state)
{
	struct fs *fs = ((struct fixture *)*state)->fs;
	struct node *old = node_get(fs, root_of(fs), &dir_class, "trainer-0", NULL);
	struct node *new_node;

	node_forget_name(fs, old);
	new_node = node_get(fs, root_of(fs), &dir_class, "trainer-0", NULL);
	assert_ptr_not_equal(old, new_node);
	assert_int_equal(old->ino, new_node->ino);
	node_put(fs, old);
	assert_ptr_equal(node_get(fs, root_of(fs), &dir_class, "trainer-0", NULL), new_node);
	node_put(fs, new_node);
	node_put(fs, new_node);
}

/*
 * A lookup in a directory finds the entry of that directory, not of an earlier one with the same
 * name.
 */
static void test_another_parent(void **state)
{
	struct fs *fs = ((struct fixture *)*state)->fs;
	struct node *before = node_get(fs, root_of(fs), &dir_class, "d", NULL);
	struct node *old = node_get(fs, before, &file_class, "f", NULL), *dir, *file;

	node_forget_name(fs, before);
	dir = node_get(fs, root_of(fs), &dir_class, "d", NULL);
	file = node_get(fs, dir, &file_class, "f", NULL);
	assert_ptr_not_equal(dir, before);
	assert_ptr_not_equal(file, old);
	assert_ptr_equal(file->parent, dir);
	node_put(fs, file);
	node_put(fs, dir);
	node_put(fs, old);
	node_put(fs, before);
	assert_int_equal(freed, 4);
}

/* Nodes that the kernel still references when the mount ends are freed with the table. */
static void test_fini_frees_all(void **state)
{
	struct fs *fs = ((struct fixture *)*state)->fs;
	struct node *dir = node_get(fs, root_of(fs), &dir_class, "job", NULL);
	struct node *file = node_get(fs, dir, &file_class, "state", NULL);

	node_looked_up(dir);
	node_looked_up(file);
	node_forget_name(fs, dir);
	fs_close(fs);
	assert_int_equal(freed, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernel_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_parent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fini_frees_all, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
