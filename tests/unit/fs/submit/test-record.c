/* SPDX-License-Identifier: MIT */
/* fs/submit/record.h: what was written is read again; a damaged record is refused as a whole, and moved away. */
#include <errno.h>

#include "fs/submit/record.h"
#include "spec/base/mem.h"
#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#define UUID_1 "00000000-0001-8abc-9def-0123456789ab"
#define UUID_2 "00000000-0002-8abc-9def-0123456789ab"
#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char top[64];

static int setup(void **state)
{
	snprintf(top, sizeof(top), "/tmp/kxfs-test-record-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	return scratch_remove(top);
}

static struct record full(void)
{
	static char job[] = "app-x7k2pd0", error[] = "x.yaml:1:1: bad\nand more\n";
	static char pending[][RECORD_UUID] = {UUID_1, UUID_2};

	return (struct record){
		.launched_ino = UINT64_MAX,
		.launched = DIGEST,
		.told = true,
		.job = job,
		.job_time = 1,
		.job_number = 3,
		.number = (UINT64_C(1) << 48) - 1,
		.pending = pending,
		.n_pending = 2,
		.file_owned = true,
		.file_owner = {1001, 101},
		.owned = true,
		.owner = {1000, 100},
		.error = error,
		.error_time = 12345,
	};
}

static void assert_same(const struct record *a, const struct record *b)
{
	assert_int_equal(a->launched_ino, b->launched_ino);
	assert_string_equal(a->launched, b->launched);
	assert_int_equal(a->file_owned, b->file_owned);
	assert_int_equal(a->file_owner.uid, b->file_owner.uid);
	assert_int_equal(a->file_owner.gid, b->file_owner.gid);
	assert_true(streq(a->job, b->job));
	assert_int_equal(a->job_time, b->job_time);
	assert_int_equal(a->job_number, b->job_number);
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->told, b->told);
	assert_int_equal(a->n_pending, b->n_pending);
	for (size_t i = 0; i < a->n_pending; i++)
		assert_string_equal(a->pending[i], b->pending[i]);
	assert_int_equal(a->owned, b->owned);
	assert_int_equal(a->owner.uid, b->owner.uid);
	assert_int_equal(a->owner.gid, b->owner.gid);
	assert_true(streq(a->error, b->error));
	assert_int_equal(a->error_time, b->error_time);
}

static void test_there_and_back(void **state)
{
	const struct record want = full();
	char *text = record_text(&want);
	struct record got;

	assert_string_equal(text,
			    "kxfs submit 2\nlaunched 18446744073709551615 " DIGEST
			    "\ntold\njob app-x7k2pd0 1\nnumbers 3 281474976710655\npending " UUID_1
			    "\npending " UUID_2 "\nfile 1001 101\nowner 1000 100\n"
			    "error 12345 25\nx.yaml:1:1: bad\nand more\n");
	assert_int_equal(record_parse(text, strlen(text), &got), 0);
	assert_same(&got, &want);
	assert_false(record_is_empty(&got));
	record_clear(&got);
	assert_true(record_is_empty(&got));
	free(text);
}

/* A file was launched, and nobody knew with which content: its record can be read again all the same. */
static void test_unknown_digest(void **state)
{
	const struct record want = {.is_launched = true, .launched_ino = 7};
	char *text = record_text(&want);
	struct record got;

	assert_int_equal(record_parse(text, strlen(text), &got), 0);
	assert_int_equal(got.launched_ino, 7);
	assert_string_equal(got.launched, "");
	record_clear(&got);
	free(text);
}

/* No part of a record can be read as one, unless it ends with a line before the text. */
static void test_cut(void **state)
{
	const struct record want = full();
	char *text = record_text(&want);
	size_t n_good = 0;

	for (size_t len = 0; len < strlen(text); len++) {
		char *part = mem_copy(text, len);
		struct record got;
		int err = record_parse(part, len, &got);

		free(part);
		n_good += err == 0;
		assert_true(err == -EINVAL || (err == 0 && text[len - 1] == '\n' && !got.error));
		record_clear(&got);
	}
	assert_int_equal(n_good, 9);
	free(text);
}

static void test_damaged(void **state)
{
	static const char *const bad[] = {
		"",
		"kxfs",
		"kxfs submit 2",
		"kxfs submit 2\n\n",
		"kxfs submit 2\nnonsense 1\n",
		"kxfs submit 2\nlaunched 0 " DIGEST "\n",
		"kxfs submit 2\nlaunched 1 0123\n",
		"kxfs submit 2\nlaunched 99999999999999999999 " DIGEST "\n",
		"kxfs submit 2\njob ../../etc/passwd 1\n",
		"kxfs submit 2\njob .hidden 1\n",
		"kxfs submit 2\njob a\n",
		"kxfs submit 2\njob a -1\n",
		"kxfs submit 2\njob a 1\njob b 1\n",
		"kxfs submit 1\n",
		"kxfs submit 3\nwhatever\n",
		"kxfs submit 2\npending\n",
		"kxfs submit 2\npending 9223372036854775807\n",
		"kxfs submit 2\nnumbers 1\n",
		"kxfs submit 2\nnumbers 1 281474976710656\n",
		"kxfs submit 2\npending 0000\nx",
		"kxfs submit 2\npending 00000000-0001-8abc-9def-0123456789aX\n",
		"kxfs submit 2\nowner 1\n",
		"kxfs submit 2\nowner 4294967295 0\n",
		"kxfs submit 2\nerror 1 3\nab",
		"kxfs submit 2\nerror 1 1\nab",
		"kxfs submit 2\nerror 1 32769\n",
	};
	const char nul[] = "kxfs submit 2\nerror 1 3\na\0b";
	struct record r;

	for (size_t i = 0; i < array_size(bad); i++) {
		if (record_parse(bad[i], strlen(bad[i]), &r) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
		record_clear(&r);
	}
	assert_int_equal(record_parse(nul, sizeof(nul) - 1, &r), -EINVAL);
	record_clear(&r);
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int count_name(void *data, const char *name)
{
	assert_string_equal(name, "x.yaml");
	++*(size_t *)data;
	return 0;
}

static void test_files(void **state)
{
	struct record want = full(), got;
	struct launches *all = NULL;
	char path[256];
	size_t n = 0;

	assert_int_equal(launches_open(top, "submit", &all), 0);
	assert_int_equal(launches_read(all, "x.yaml", &got), -ENOENT);
	assert_int_equal(launches_write(all, "x.yaml", &want), 0);
	assert_int_equal(launches_read(all, "x.yaml", &got), 0);
	assert_same(&got, &want);
	record_clear(&got);
	assert_int_equal(launches_each(all, count_name, &n), 0);
	assert_int_equal(n, 1);
	/* An empty record is none. */
	assert_int_equal(launches_write(all, "x.yaml", &got), 0);
	assert_int_equal(launches_read(all, "x.yaml", &got), -ENOENT);
	assert_int_equal(launches_write(all, "x.yaml", &got), 0);

	write_file(launches_path(all), "bad.yaml", "kxfs submit 2\njob");
	assert_int_equal(launches_read(all, "bad.yaml", &got), -EINVAL);
	record_clear(&got);
	launches_aside(all, "bad.yaml", -EINVAL);
	snprintf(path, sizeof(path), "%s/aside/bad.yaml.record", top);
	assert_int_equal(access(path, F_OK), 0);
	/*
	 * A damaged record stays until another takes its place: without any record its file would count as never
	 * launched.
	 */
	assert_int_equal(launches_read(all, "bad.yaml", &got), -EINVAL);
	record_clear(&got);
	assert_int_equal(launches_write(all, "bad.yaml", &want), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(launches_read(all, "bad.yaml", &got), 0);
	assert_same(&got, &want);
	record_clear(&got);
	/*
	 * A crash of the machine can leave a record under its name and beside its place: the next record does not
	 * change that file.
	 */
	{
		char temp[256], record[256];

		snprintf(temp, sizeof(temp), "%s/submit.new", top);
		snprintf(record, sizeof(record), "%s/bad.yaml", launches_path(all));
		assert_int_equal(link(record, temp), 0);
		got = (struct record){.told = true};
		assert_int_equal(launches_write(all, "y.yaml", &got), 0);
		assert_int_equal(launches_read(all, "bad.yaml", &got), 0);
		assert_same(&got, &want);
		record_clear(&got);
	}
	/* A link in the place of a record is not followed. */
	snprintf(path, sizeof(path), "%s/link", launches_path(all));
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(launches_read(all, "link", &got), -EINVAL);
	launches_free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_unknown_digest),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test_setup_teardown(test_files, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
