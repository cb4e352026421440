/* SPDX-License-Identifier: MIT */
/* fs/node: nodes are found again, live as long as somebody needs them, and keep their numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fs/node.h"
#include "fs/options.h"

static int freed;

static void count_free(struct node *node)
{
	(void)node;
	freed++;
}

static const struct node_class dir_class = {.name = "dir",
					    .mode = S_IFDIR | 0755,
					    .free = count_free};
static const struct node_class file_class = {.name = "file",
					     .mode = S_IFREG | 0644,
					     .free = count_free};

struct fixture {
	struct options options;
	struct fs fs;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->options.umask = 022;
	f->fs.options = &f->options;
	freed = 0;
	*state = f;
	return node_init(&f->fs, &dir_class);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	node_fini(&f->fs);
	free(f);
	return 0;
}

static void test_found_again(void **state)
{
	struct fs *fs = &((struct fixture *)*state)->fs;
	bool fresh;
	struct node *a = node_get(fs, fs->root, &file_class, "state", &fresh);
	struct node *b;

	assert_true(fresh);
	b = node_get(fs, fs->root, &file_class, "state", &fresh);
	assert_ptr_equal(a, b);
	assert_false(fresh);
	node_put(fs, a);
	node_put(fs, b);
	assert_int_equal(freed, 1);
	assert_null(node_known(fs, fs->root, "state"));
}

static void test_child_keeps_parent(void **state)
{
	struct fs *fs = &((struct fixture *)*state)->fs;
	struct node *dir = node_get(fs, fs->root, &dir_class, "job", NULL);
	struct node *file = node_get(fs, dir, &file_class, "state", NULL);

	node_put(fs, dir);
	assert_int_equal(freed, 0);
	node_put(fs, file);
	assert_int_equal(freed, 2);
}

static void test_kernel_counts(void **state)
{
	struct fs *fs = &((struct fixture *)*state)->fs;
	struct node *file = node_get(fs, fs->root, &file_class, "state", NULL);

	node_looked_up(file);
	node_looked_up(file);
	node_put(fs, file);
	node_forget(fs, file, 1);
	assert_int_equal(freed, 0);
	node_forget(fs, file, 1);
	assert_int_equal(freed, 1);
}

/* After an accepted rmdir the name must lead to a new node with the number of the old one. */
static void test_forgotten_name(void **state)
{
	struct fs *fs = &((struct fixture *)*state)->fs;
	struct node *old = node_get(fs, fs->root, &dir_class, "trainer-0", NULL);
	struct node *new_node;

	node_forget_name(fs, old);
	new_node = node_get(fs, fs->root, &dir_class, "trainer-0", NULL);
	assert_ptr_not_equal(old, new_node);
	assert_int_equal(old->ino, new_node->ino);
	node_put(fs, old);
	assert_ptr_equal(node_known(fs, fs->root, "trainer-0"), new_node);
	node_put(fs, new_node);
}

static void test_numbers_differ(void **state)
{
	struct fs *fs = &((struct fixture *)*state)->fs;
	struct node *a = node_get(fs, fs->root, &file_class, "log@trainer-0.0", NULL);
	struct node *b = node_get(fs, fs->root, &file_class, "log@trainer-0.1", NULL);

	assert_int_not_equal(a->ino, b->ino);
	assert_true(a->ino > FUSE_ROOT_ID);
	node_put(fs, a);
	node_put(fs, b);
}

static void test_umask(void **state)
{
	struct fixture *f = *state;
	struct node *file = node_get(&f->fs, f->fs.root, &file_class, "state", NULL);
	struct stat st;

	f->options.umask = 077;
	assert_int_equal(node_getattr(&f->fs, file, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	node_put(&f->fs, file);
}

/* What the kernel still counts when the mount ends is freed with the table. */
static void test_fini_frees_all(void **state)
{
	struct fs *fs = &((struct fixture *)*state)->fs;
	struct node *dir = node_get(fs, fs->root, &dir_class, "job", NULL);
	struct node *file = node_get(fs, dir, &file_class, "state", NULL);

	node_looked_up(dir);
	node_looked_up(file);
	node_forget_name(fs, dir);
	node_fini(fs);
	assert_int_equal(freed, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_found_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_child_keeps_parent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(test_umask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fini_frees_all, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
