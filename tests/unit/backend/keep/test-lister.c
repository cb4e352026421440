/* SPDX-License-Identifier: MIT */
/* The lines of jobs go into the files of their days, wherever their place in these is. */
#include "backend/keep/lister.h"
#include "tests/unit/backend/keep/rig.h"

static struct archive *archive;
static sem_t done;
static int result;

static void on_done(void *data, int err, const char *text)
{
	result = err;
	sem_post(&done);
}

static void start(void *data)
{
	const char *uids = data;
	size_t n = strlen(uids);
	struct keep_line *lines = new0_n(struct keep_line, n);
	static struct group group;

	group_init(&group, loop);
	for (size_t i = 0; i < n; i++) {
		const char uid[] = {uids[i], '\0'};

		keep_line_init(&lines[i], uid, "{\"v\":1}\n");
	}
	lister_start(loop, &group, archive, "ns", "day", lines, n, on_done, NULL);
}

static void stop(void *data)
{
	archive_stop(archive, post_sem, data);
}

static int put(const char *uids)
{
	cleanup_free char *dir = text_print("%s/archive", base);
	sem_t stopped;
	char *text;

	sem_init(&done, 0, 0);
	sem_init(&stopped, 0, 0);
	assert_int_equal(archive_new(loop, &(struct archive_address){.where = dir}, "me", &archive,
				     &text),
			 0);
	call(start, (void *)(uintptr_t)uids);
	sem_wait_or_fail(&done);
	call(stop, &stopped);
	sem_wait_or_fail(&stopped);
	archive_free(archive);
	return result;
}

#define LINE(uid, v) "{\"uid\":\"" uid "\",\"v\":" v "}\n"

static void test_one_file(void **state)
{
	shell("mkdir archive");
	assert_int_equal(put("ab"), 0);
	assert_file("archive/ns/day/list.jsonl", LINE("a", "1") LINE("b", "1"));
	shell("echo '{\"uid\":\"c\",\"v\":0}' >>archive/ns/day/list.jsonl");
	assert_int_equal(put("dc"), 0);
	assert_file("archive/ns/day/list.jsonl",
		    LINE("a", "1") LINE("b", "1") LINE("c", "1") LINE("d", "1"));
	assert_file("archive/ns/day/list-1.jsonl", NULL);
}

static void write_list(const char *bytes, size_t n)
{
	cleanup_free char *day = text_print("%s/archive/ns/day", base);

	assert_int_equal(file_write(day, "list.jsonl", bytes, n), 0);
}

/* A file that is full is changed only in lines of its own jobs, and new lines go into the next file. */
static void test_full_files(void **state)
{
	size_t n = ARCHIVE_MAX - sizeof(LINE("a", "0"));
	cleanup_free char *full = mem_zero(ARCHIVE_MAX);

	memset(full, 'x', n);
	memcpy(full + n, "\n" LINE("a", "0"), sizeof(LINE("a", "0")));
	shell("mkdir -p archive/ns/day");
	write_list(full, ARCHIVE_MAX);
	assert_int_equal(put("ab"), 0);
	/* A line of the greatest size may have others behind it. */
	assert_file("archive/ns/day/list-1.jsonl", LINE("a", "1") LINE("b", "1"));
	shell("rm archive/ns/day/list-1.jsonl");
	write_list(full + 1, ARCHIVE_MAX - 1);
	assert_int_equal(put("ab"), 0);
	assert_file("archive/ns/day/list-1.jsonl", LINE("b", "1"));
	full[ARCHIVE_MAX - 3] = '1';
	cleanup_free char *want = mem_copy(full + 1, ARCHIVE_MAX - 1);
	assert_file("archive/ns/day/list.jsonl", want);
	shell("echo '{\"uid\":\"z\",\"v\":0}' >archive/ns/day/list-2.jsonl");
	assert_int_equal(put("bc"), 0);
	assert_file("archive/ns/day/list-1.jsonl", LINE("b", "1"));
	assert_file("archive/ns/day/list-2.jsonl", LINE("z", "0") LINE("c", "1"));
}

static void test_away(void **state)
{
	assert_int_equal(put("a"), -EHOSTUNREACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_file, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_full_files, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_away, setup_base, teardown_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
