/* SPDX-License-Identifier: MIT */
/* How jobs are called in an archive, what is on record of them, and the lists of a day. */
#include "backend/keep/text.h"
#include "tests/unit/unit.h"

static struct spec_job *job_of(const char *id, const char *uid)
{
	struct spec_job *job = spec_job_new(0, 1);

	spec_set(&job->id, id);
	spec_set(&job->uid, uid);
	job->created = INT64_C(1764115200) * 1000000000; /* 2025-11-26 */
	spec_set(&job->replicas[0].name, "w-0");
	return job;
}

static void assert_text(char *text, const char *want)
{
	assert_string_equal(text, want);
	free(text);
}

static void test_names(void **state)
{
	struct spec_job *job = job_of("train", "0f3a9c21-77");
	struct spec_replica *r = &job->replicas[0];
	unsigned n;

	assert_text(keep_folder(job, false), "2025-11-26/train");
	assert_text(keep_folder(job, true), "2025-11-26/train~0f3a9c21");
	/* The job is called as in a state directory where another job has its name now. */
	spec_set(&job->id, "train~0f3a9c21");
	assert_text(keep_folder(job, false), "2025-11-26/train");
	spec_set(&job->id, "train~JobSet");
	assert_text(keep_folder(job, true), "2025-11-26/train~JobSet~0f3a9c21");
	/* The longest id that there is, and the longest that has room for its mark. */
	for (size_t n_id = 246; n_id <= 255; n_id += 9) {
		cleanup_free char *id = mem_zero(n_id + 1), *folder = NULL;

		memset(id, 'x', n_id);
		spec_set(&job->id, id);
		folder = keep_folder(job, true);
		assert_int_equal(strlen(folder), strlen("2025-11-26/") + 255);
		free(take_ptr(folder));
		folder = keep_folder(job, false);
		assert_int_equal(strlen(folder), strlen("2025-11-26/") + n_id);
	}
	/* A job of which nobody knows when it was made. */
	spec_set(&job->id, "train");
	for (int i = 0; i < 2; i++) {
		job->created = -i * INT64_C(86400000000000);
		assert_text(keep_folder(job, false), "1970-01-01/train");
	}
	spec_replica_add_log(r, "u.main.0", NULL);
	spec_replica_add_log(r, "u.main.1", NULL);
	spec_replica_add_log(r, "u.side.0", "side");
	assert_text(keep_log_name(r, 0, &n), "w-0/log");
	assert_int_equal(n, 0);
	assert_text(keep_log_name(r, 1, &n), "w-0/log");
	assert_int_equal(n, 1);
	assert_text(keep_log_name(r, 2, &n), "w-0/side.log");
	assert_int_equal(n, 0);
	spec_set(&r->name, "../w");
	assert_null(keep_log_name(r, 0, &n));
	spec_set(&r->name, "w");
	spec_set(&r->logs[0].container, "a/b");
	assert_null(keep_log_name(r, 0, &n));
	assert_text(keep_part_name("w-0/log", 1, "", 8 << 20), "w-0/log.1/0000000008388608");
	assert_text(keep_part_name("w-0/log", 0, ".lines", 0), "w-0/log.0.lines/0000000000000000");
	spec_job_unref(job);
}

static void test_record(void **state)
{
	struct keep_record *r = new0(struct keep_record);
	cleanup_free char *text = NULL, *again = NULL;
	struct keep_log *log;

	r->folder = text_copy("2025-11-26/a job");
	r->digest[KEEP_WHY] = text_copy("00ff");
	r->line = text_copy("ab");
	log = keep_record_log(r, "u.main.0", "w-0/log", 2);
	log->claimed = true;
	log->size = UINT64_C(1) << 40;
	log->lines = 7;
	assert_ptr_equal(keep_record_log(r, "u.main.0", "w-0/log", 0), log);
	keep_record_log(r, "u.main.1", "w-0/log", 3); /* no byte of it is there */
	r->final = true;
	text = keep_record_text(r);
	keep_record_free(r);
	assert_string_equal(text, "folder 2025-11-26/a job\ntext why 00ff\n"
				  "log 2 1099511627776 7 u.main.0 w-0/log\nline ab\nfinal\n");
	r = keep_record_parse(text);
	again = keep_record_text(r);
	assert_string_equal(again, text);
	keep_record_free(r);
}

/* A log that can't be is not on record, and a record without a folder tells of nothing. */
static void test_damaged_records(void **state)
{
	static const char *const bad[] = {
		"folder ../x\nfinal\n",
		"folder a/b/c\nfinal\n",
		"folder a\nfinal\n",
		"final\nline 00\n",
		"\n\n",
	};
	struct keep_record *r;

	for (size_t i = 0; i < array_size(bad); i++) {
		r = keep_record_parse(bad[i]);
		assert_null(r->folder);
		assert_null(r->line);
		assert_false(r->final);
		keep_record_free(r);
	}
	r = keep_record_parse(
		"folder d/i\nlog 1 2\nlog -1 2 3 j w/log\nlog 1 2 3 ../k w/log\n"
		"log 1 2 3 k ../log\ntext nonsense 00\ntext why xyz\nlog 1 2 3 k w/log");
	assert_string_equal(r->folder, "d/i");
	assert_int_equal(r->n_logs, 1);
	assert_null(r->digest[KEEP_WHY]);
	keep_record_free(r);
}

/*
 * Merge lines with VALUE of the jobs A, B ... into TEXT; PLACED gets the jobs, with capitals for those that found a
 * place.
 */
static char *merged(const char *text, const char *uids, const char *value, bool append, size_t max,
		    char placed[8])
{
	struct keep_line lines[8];
	size_t n = strlen(uids), len;
	char *ret;
	bool changed;

	for (size_t i = 0; i < n; i++) {
		const char uid[] = {uids[i], '\0'};
		cleanup_free char *status = text_print("{\"v\":%s}\n", value);

		keep_line_init(&lines[i], uid, status);
	}
	changed = keep_list_merge(text, strlen(text), lines, n, append, max, &ret, &len);
	assert_int_equal(len, strlen(ret));
	assert_true(changed == !streq(ret, text));
	for (size_t i = 0; i < n; i++) {
		placed[i] = lines[i].placed ? '+' : '-';
		free(lines[i].text);
	}
	placed[n] = '\0';
	return ret;
}

#define A "{\"uid\":\"a\",\"v\":1}\n"
#define B "{\"uid\":\"b\",\"v\":1}\n"

static void test_lists(void **state)
{
	char placed[8];

	assert_text(merged("", "ab", "1", true, 1000, placed), A B);
	assert_text(merged(A B, "ab", "1", true, 1000, placed), A B);
	assert_string_equal(placed, "++");
	assert_text(merged(A B, "a", "22", true, 1000, placed), "{\"uid\":\"a\",\"v\":22}\n" B);
	assert_text(merged(B, "a", "1", false, 1000, placed), B);
	assert_string_equal(placed, "-");
	/* Lines that somebody else has written stay; a line that is there twice is removed. */
	assert_text(merged("x\n\n" A "{\"uid\"" A A, "a", "2", true, 1000, placed),
		    "x\n\n{\"uid\":\"a\",\"v\":2}\n{\"uid\"" A);
	assert_text(merged("no end", "a", "1", true, 1000, placed), "no end\n" A);
	/* No more lines are written than there is room for: the others go into the next file. */
	for (size_t room = strlen(A B) - 1; room <= strlen(A B); room++) {
		bool both = room == strlen(A B);

		assert_text(merged(A, "ab", "1", true, room, placed), both ? A B : A);
		assert_string_equal(placed, both ? "++" : "+-");
	}
	/* A line may grow as long as there is room for the lines behind it, and for its newline. */
	for (size_t i = 0; i < 4; i++) {
		const char *text = i & 1 ? A "{\"uid\":\"b\",\"v\":1}" : A B;
		size_t least = strlen(A B) + strlen("1234567") - 1;
		bool fits = i < 2;

		assert_text(merged(text, "a", "1234567", true, least - !fits, placed),
			    fits ? "{\"uid\":\"a\",\"v\":1234567}\n" B : B);
		assert_string_equal(placed, fits ? "+" : "-");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_damaged_records),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
