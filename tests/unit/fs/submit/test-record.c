/* SPDX-License-Identifier: MIT */
/* fs/submit/record: what is written is read again; what is damaged is refused whole, and moved away. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fs/submit/record.h"
#include "spec/base/mem.h"
#include "tests/unit/scratch.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char top[64];

static int setup(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/kxfs-test-record-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return scratch_remove(top);
}

static struct record full(void)
{
	static char job[] = "app-x7k2pd0", error[] = "x.yaml:1:1: bad\nand more\n";

	return (struct record){
		.launched_ino = UINT64_MAX,
		.launched = DIGEST,
		.job = job,
		.job_time = 1,
		.pending = true,
		.since = INT64_MAX,
		.writing = true,
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
	assert_true(streq(a->job, b->job));
	assert_int_equal(a->job_time, b->job_time);
	assert_int_equal(a->pending, b->pending);
	assert_int_equal(a->since, b->since);
	assert_int_equal(a->writing, b->writing);
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

	(void)state;
	assert_string_equal(
		text, "kxfs submit 1\nlaunched 18446744073709551615 " DIGEST
		      "\njob app-x7k2pd0 1\npending 9223372036854775807\nwriting\nowner 1000 100\n"
		      "error 12345 25\nx.yaml:1:1: bad\nand more\n");
	assert_int_equal(record_parse(text, strlen(text), &got), 0);
	assert_same(&got, &want);
	assert_false(record_is_empty(&got));
	record_clear(&got);
	assert_true(record_is_empty(&got));
	free(text);
}

/* No part of a record is one, but where a line ends before the text. */
static void test_cut(void **state)
{
	const struct record want = full();
	char *text = record_text(&want);
	size_t n_good = 0;

	(void)state;
	for (size_t len = 0; len < strlen(text); len++) {
		char *part = mem_copy(text, len);
		struct record got;
		int err = record_parse(part, len, &got);

		free(part);
		n_good += err == 0;
		assert_true(err == -EINVAL || (err == 0 && text[len - 1] == '\n' && !got.error));
		record_clear(&got);
	}
	assert_int_equal(n_good, 6);
	free(text);
}

static void test_damaged(void **state)
{
	static const char *const bad[] = {
		"",
		"kxfs",
		"kxfs submit 1",
		"kxfs submit 1\n\n",
		"kxfs submit 1\nnonsense 1\n",
		"kxfs submit 1\nlaunched 0 " DIGEST "\n",
		"kxfs submit 1\nlaunched 1 0123\n",
		"kxfs submit 1\nlaunched 99999999999999999999 " DIGEST "\n",
		"kxfs submit 1\njob ../../etc/passwd 1\n",
		"kxfs submit 1\njob .hidden 1\n",
		"kxfs submit 1\njob a\n",
		"kxfs submit 1\njob a -1\n",
		"kxfs submit 1\njob a 1\njob b 1\n",
		"kxfs submit 1\npending\n",
		"kxfs submit 1\nowner 1\n",
		"kxfs submit 1\nowner 4294967295 0\n",
		"kxfs submit 1\nerror 1 3\nab",
		"kxfs submit 1\nerror 1 1\nab",
		"kxfs submit 1\nerror 1 32769\n",
	};
	const char nul[] = "kxfs submit 1\nerror 1 3\na\0b";
	const char later[] = "kxfs submit 2\nwhatever\n";
	struct record r;

	(void)state;
	for (size_t i = 0; i < array_size(bad); i++) {
		if (record_parse(bad[i], strlen(bad[i]), &r) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
		record_clear(&r);
	}
	assert_int_equal(record_parse(nul, sizeof(nul) - 1, &r), -EINVAL);
	record_clear(&r);
	assert_int_equal(record_parse(later, strlen(later), &r), -ENOTSUP);
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

static ino_t inode_of(const struct records *all, const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", records_path(all), name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

/* Write WANT and find it there. Has it been written over the record before it, in the same file? */
static bool is_written_over(struct records *all, const struct record *want)
{
	char path[256], found[2048] = "", *text = record_text(want);
	ino_t before = inode_of(all, "x.yaml");
	int64_t time = 0;
	FILE *f;

	assert_int_equal(records_write(all, "x.yaml", want, &time), 0);
	assert_true(time > 0);
	snprintf(path, sizeof(path), "%s/x.yaml", records_path(all));
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fread(found, 1, sizeof(found) - 1, f), strlen(text));
	fclose(f);
	assert_string_equal(found, text);
	free(text);
	return inode_of(all, "x.yaml") == before;
}

/* A launch takes one file; a verdict is never written over, since a power cut could then leave neither. */
static void test_written_over(void **state)
{
	struct record writing = {.writing = true}, pending = {.pending = true}, verdict = full();
	struct record large = full();
	struct records *all = NULL;
	int64_t time;

	(void)state;
	verdict.since = large.since = 1;
	large.error = memset(calloc(1, 1001), 'e', 1000);
	assert_int_equal(records_open(top, "over", &all), 0);
	assert_int_equal(records_write(all, "x.yaml", &writing, &time), 0);
	assert_true(is_written_over(all, &pending));
	assert_true(is_written_over(all, &verdict));
	verdict.job_time *= 100;
	assert_false(is_written_over(all, &verdict));
	assert_false(is_written_over(all, &pending));
	assert_false(is_written_over(all, &writing));
	assert_false(is_written_over(all, &large));
	free(large.error);
	records_free(all);
}

static void test_files(void **state)
{
	struct record want = full(), got;
	struct records *all = NULL;
	char **names = NULL;
	char path[256];
	int64_t time;
	size_t n;

	(void)state;
	assert_int_equal(records_open(top, "submit", &all), 0);
	assert_int_equal(records_read(all, "x.yaml", &got), -ENOENT);
	want.since = 0;
	assert_int_equal(records_write(all, "x.yaml", &want, &time), 0);
	assert_true(time > 0);
	assert_int_equal(records_read(all, "x.yaml", &got), 0);
	want.since = time; /* of one that was not known when it was written */
	assert_same(&got, &want);
	record_clear(&got);
	assert_int_equal(records_list(all, &names, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(names[0], "x.yaml");
	free(names[0]);
	free(names);
	/* An empty one is none. */
	assert_int_equal(records_write(all, "x.yaml", &got, &time), 0);
	assert_int_equal(records_read(all, "x.yaml", &got), -ENOENT);
	assert_int_equal(records_write(all, "x.yaml", &got, &time), 0);

	write_file(records_path(all), "bad.yaml", "kxfs submit 1\njob");
	assert_int_equal(records_read(all, "bad.yaml", &got), -EINVAL);
	record_clear(&got);
	records_aside(all, "bad.yaml", -EINVAL);
	snprintf(path, sizeof(path), "%s/unread/bad.yaml.record", top);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(records_read(all, "bad.yaml", &got), -ENOENT);
	/* What is no file is not followed. */
	snprintf(path, sizeof(path), "%s/link", records_path(all));
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(records_read(all, "link", &got), -EINVAL);
	records_free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test_setup_teardown(test_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written_over, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
