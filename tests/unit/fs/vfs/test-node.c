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

static void test_object(void **state)
{
	struct fs *fs = ((struct fixture *)*state)->fs;
	int other = 0;
	const struct node_entry_def table[] = {
		{.name = "same", .class = &file_class},
		{.name = "other", .class = &file_class, .object = &other},
		{0},
	};
	struct node *same, *node;

	/* A child has the object of its parent, unless its entry names another one. */
	assert_int_equal(node_lookup_in(fs, root_of(fs), table, "same", &same), 0);
	assert_ptr_equal(same->object, *state);
	assert_int_equal(node_lookup_in(fs, root_of(fs), table, "other", &node), 0);
	assert_ptr_equal(node->object, &other);
	node_put(fs, same);
	same = node_get(fs, node, &file_class, "below", NULL);
	assert_ptr_equal(same->object, &other);
	node_put(fs, same);
	node_put(fs, node);
	assert_int_equal(node_lookup_in(fs, root_of(fs), table, "none", &node), -ENOENT);
}

static void test_found_again(void **state)
{
	struct fs *fs = ((struct fixture *)*state)->fs;
	bool fresh;
	struct node *a = node_get(fs, root_of(fs), &file_class, "state", &fresh);
	struct node *b;

	assert_true(fresh);
	b = node_get(fs, root_of(fs), &file_class, "state", &fresh);
	assert_ptr_equal(a, b);
	assert_false(fresh);
	node_put(fs, a);
	node_put(fs, b);
	assert_int_equal(freed, 1);
	a = node_get(fs, root_of(fs), &file_class, "state", &fresh);
	assert_true(fresh);
	node_put(fs, a);
}

static void test_child_keeps_parent(void **state)
{
	struct fs *fs = ((struct fixture *)*state)->fs;
	struct node *dir = node_get(fs, root_of(fs), &dir_class, "job", NULL);
	struct node *file = node_get(fs, dir, &file_class, "state", NULL);

	node_put(fs, dir);
	assert_int_equal(freed, 0);
	node_put(fs, file);
	assert_int_equal(freed, 2);
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

static void test_numbers_differ(void **state)
{
	struct fs *fs = ((struct fixture *)*state)->fs;
	struct node *a = node_get(fs, root_of(fs), &file_class, "log@trainer-0.0", NULL);
	struct node *b = node_get(fs, root_of(fs), &file_class, "log@trainer-0.1", NULL);

	assert_int_not_equal(a->ino, b->ino);
	assert_true(a->ino > FUSE_ROOT_ID);
	node_put(fs, a);
	node_put(fs, b);
}

static void test_umask(void **state)
{
	struct fixture *f = *state;
	struct node *file = node_get(f->fs, root_of(f->fs), &file_class, "state", NULL);
	struct stat st;

	f->fs->config.umask = 077;
	assert_int_equal(node_getattr(f->fs, file, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	node_put(f->fs, file);
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

/* --- the names in a directory at one moment --- */

static void test_begins_with_dots(void **state)
{
	struct listing *l cleanup(listing_freep) = listing_new();

	assert_non_null(l);
	assert_string_equal(listing_name(l, 0), ".");
	assert_string_equal(listing_name(l, 1), "..");
	assert_null(listing_name(l, 2));
}

static void test_keeps_many_names_in_order(void **state)
{
	struct listing *l cleanup(listing_freep) = listing_new();
	char name[32];

	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "job-%d", i);
		listing_add(l, name);
	}
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "job-%d", i);
		assert_string_equal(listing_name(l, (size_t)i + 2), name);
	}
	assert_null(listing_name(l, 10002));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_object, setup, teardown),
		cmocka_unit_test_setup_teardown(test_found_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_child_keeps_parent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_parent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(test_umask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fini_frees_all, setup, teardown),
		cmocka_unit_test(test_begins_with_dots),
		cmocka_unit_test(test_keeps_many_names_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
