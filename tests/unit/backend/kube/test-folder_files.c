/* SPDX-License-Identifier: MIT */
/* The files of a job's folder: what a start finds of a submission, wherever a crash or a power cut came. */
#include <errno.h>
#include <sys/stat.h>

#include "backend/base/file.h"
#include "backend/kube/folder_files.h"
#include "spec/base/mem.h"
#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#define UUID_A "11111111-2222-4333-8444-555555555555"
#define UUID_B "99999999-2222-4333-8444-555555555555"

static char dir[64];

static char *path_of(const char *name)
{
	return text_print("%s/%s", dir, name);
}

static int setup(void **state)
{
	cleanup_free char *output = NULL;
	struct folder_found *found;

	strcpy(dir, "/tmp/kxfs-folder-XXXXXX");
	assert_non_null(mkdtemp(dir));
	output = path_of("output");
	assert_int_equal(mkdir(output, 0700), 0);
	/* The first start makes what is missing. */
	assert_int_equal(folder_files_load(dir, &found), 0);
	assert_null(found);
	return 0;
}

static int teardown(void **state)
{
	return scratch_remove(dir);
}

static bool exists(const char *name)
{
	cleanup_free char *path = path_of(name);

	return access(path, F_OK) == 0;
}

static void write_text(const char *name, const char *text)
{
	cleanup_free char *path = path_of(name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void expect_text(const char *name, const char *expected)
{
	cleanup_free char *path = path_of(name), *text = NULL;
	size_t len;

	assert_int_equal(file_read(path, 4096, &text, &len), 0);
	assert_string_equal(text, expected);
}

static int submit(const char *id, const char *uuid)
{
	const struct folder_submission s = {id, uuid, "a.yaml", "name: a\n", 8, 0};

	return folder_files_submit(dir, &s);
}

/* The only folder, as a start finds it. To be freed. */
static struct folder_found *load_one(void)
{
	struct folder_found *found;

	assert_int_equal(folder_files_load(dir, &found), 0);
	assert_non_null(found);
	assert_null(found->next);
	return found;
}

static void expect_submission(const char *id, const char *uuid)
{
	struct folder_found *found = load_one();

	assert_string_equal(found->key, uuid);
	assert_true(found->own);
	assert_string_equal(found->id, id);
	assert_string_equal(found->file, "a.yaml");
	assert_true(found->written > 0);
	assert_null(found->snapshot);
	assert_false(found->printed);
	folder_found_free(found);
	expect_text("output/" UUID_A "/app.yaml", "name: a\n");
}

static void test_submit(void **state)
{
	assert_int_equal(submit("one", UUID_A), 0);
	assert_true(exists("submissions/" UUID_A));
	/* It is sent under another name. */
	assert_int_equal(submit("two", UUID_A), 0);
	assert_int_equal(submit("one", UUID_A), 0);
	assert_int_equal(folder_files_settle(dir, UUID_A, ""), 0);
	assert_false(exists("submissions/" UUID_A));
	expect_submission("one", UUID_A);
	/* A folder that was removed meanwhile is not missed. */
	assert_int_equal(folder_files_settle(dir, UUID_B, ""), 0);
}

/* A held job is tried again in the folder that a crash has left. */
static void test_resumed(void **state)
{
	const struct folder_submission s = {"one", UUID_A, "a.yaml", "name: a\n", 8, 0};

	assert_int_equal(submit("one", UUID_A), 0);
	write_text("output/" UUID_A "/app.yaml", "name");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(folder_files_resume(dir, &s, INT64_C(1700000000000000000)), 0);
		expect_text("output/" UUID_A "/app.yaml", "name: a\n");
	}
}

/* What was not synced before a power cut may be on disk whole, in part, or not at all. */
static void test_completed(void **state)
{
	struct stat before, after;
	cleanup_free char *was = path_of("submissions/" UUID_A),
			  *is = path_of("output/" UUID_A "/submission");
	cleanup_free char *folder = path_of("output/" UUID_A);

	for (int how = 0; how < 4; how++) {
		assert_int_equal(submit("one", UUID_A), 0);
		assert_int_equal(stat(was, &before), 0);
		if (how == 1)
			write_text("output/" UUID_A "/submission", "");
		if (how == 2)
			write_text("output/" UUID_A "/app.yaml",
				   "name: a\n and more than was written");
		if (how == 3)
			scratch_remove(folder);
		expect_submission("one", UUID_A);
		assert_false(exists("submissions/" UUID_A));
		/* Completing a folder leaves the time at which it was written. */
		assert_int_equal(stat(is, &after), 0);
		assert_in_range(after.st_mtime, before.st_mtime - 1, before.st_mtime);
		scratch_remove(folder);
	}
}

static void load_none(void)
{
	struct folder_found *found;

	assert_int_equal(folder_files_load(dir, &found), 0);
	assert_null(found);
}

/* Of a submission that was not sent yet, a power cut has left something: none of it is believed. */
static void test_torn(void **state)
{
	cleanup_free char *path = path_of("submissions/" UUID_A), *text = NULL;
	cleanup_free char *folder = path_of("output/" UUID_A);
	size_t len;

	assert_int_equal(submit("one", UUID_A), 0);
	scratch_remove(folder);
	assert_int_equal(file_read(path, 4096, &text, &len), 0);
	write_text("submissions/" UUID_A, "");
	load_none();
	assert_false(exists("submissions/" UUID_A) || exists("aside"));
	for (size_t n = 1; n < len; n++) {
		char was = text[n];

		text[n] = '\0';
		write_text("submissions/" UUID_A, text);
		text[n] = was;
		/* The other files are missing, or were never written. */
		if (n % 2)
			assert_int_equal(truncate(path, (off_t)len), 0);
		load_none();
		assert_false(exists("submissions/" UUID_A));
		assert_true(exists("aside/" UUID_A ".submission"));
	}
	/* The text is whole, but that of another submission. */
	write_text("submissions/" UUID_B, text);
	load_none();
	assert_false(exists("submissions/" UUID_B));
	write_text("submissions/" UUID_A, text);
	expect_submission("one", UUID_A);
}

/* A damaged file does not make the start fail, and what was never finished is removed. */
static void test_damaged(void **state)
{
	static const char *const texts[] = {"one", "one\na.yaml", "one\na.yaml\nname: a\n",
					    "../x\na.yaml\nname: a\n"};
	static const char *const places[] = {"aside/" UUID_A ".submission",
					     "aside/" UUID_A ".submission.1",
					     "aside/" UUID_A ".submission.2",
					     "aside/" UUID_A ".submission.3"};
	cleanup_free char *path = path_of("submissions/directory");

	assert_int_equal(mkdir(path, 0700), 0);
	write_text("submissions/." UUID_B ".new", "one\n");
	for (size_t i = 0; i < array_size(texts); i++) {
		write_text("submissions/" UUID_A, texts[i]);
		load_none();
		/* The damaged files are out of the way, and none of them is lost. */
		assert_false(exists("submissions/" UUID_A));
		expect_text(places[i], texts[i]);
	}
	assert_false(exists("submissions/directory"));
	assert_false(exists("submissions/." UUID_B ".new"));
	assert_false(exists("x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_submit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resumed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_completed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_torn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
