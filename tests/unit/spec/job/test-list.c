/* SPDX-License-Identifier: MIT */
/*
 * The texts of list and list.jsonl: what they show, in which order, how long they are valid, and
 * which lines are rendered again.
 */
#include <json-c/json.h>

#include "spec/job/list.h"
#include "spec/job/status.h"
#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
/* 2026-11-21T09:08:40.5Z */
#define NOW (INT64_C(1795252120) * SECOND + SECOND / 2)

/*
 * Create a job with N of DESIRED replicas, all in STATE. It was created, and last changed, AGE ago.
 */
static struct spec_job *job_new(const char *id, uint64_t revision, int64_t age,
				enum spec_state state, unsigned desired, size_t n)
{
	struct spec_job *job = spec_job_new(1, n);

	spec_set(&job->id, id);
	job->revision = revision;
	job->created = job->changed = NOW - age;
	job->state = state;
	job->roles[0].desired = desired;
	job->roles[0].n = n;
	for (size_t i = 0; i < n; i++)
		job->replicas[i].state = state;
	return job;
}

static struct spec_text *make(struct spec_list *list, struct spec_job **jobs, size_t n, int64_t now,
			      int64_t *until)
{
	return spec_list_text(list, (const struct spec_job *const *)jobs, n, 0, now, until);
}

static void drop(struct spec_job **jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		spec_job_unref(jobs[i]);
}

static void test_table(void **state)
{
	struct spec_list *list = spec_list_new(SPEC_LIST_TABLE);
	struct spec_job *jobs[] = {
		job_new("old-b", 1, 3 * DAY, SPEC_SUCCEEDED, 2, 2),
		job_new("trainer-x7k2pd0", 2, 90 * MINUTE, SPEC_RUNNING, 4, 4),
		job_new("new", 3, 5 * SECOND, SPEC_PENDING, 8, 0),
	};
	struct spec_text *text;
	int64_t until;

	jobs[1]->replicas[3].state = SPEC_FAILED;
	jobs[1]->retries = 2;
	spec_set(&jobs[1]->queue, "research");
	spec_set(&jobs[1]->submitter, "ada@login1");
	spec_set(&jobs[1]->reason, "Error");
	jobs[2]->cause.reason = "Unschedulable";
	spec_set(&jobs[2]->reason, "Hidden");
	jobs[2]->queue_position = 4294967295;
	spec_set(&jobs[2]->queue, "b lue");
	text = make(list, jobs, 3, NOW, &until);
	assert_string_equal(
		text->text,
		"ID               STATE      AGE  QUEUE     READY  RETRIES  SUBMITTER   REASON\n"
		"new              PENDING    5s   b?lue     0/8    0        -           Unschedulable "
		"(4294967295 in b?lue)\n"
		"trainer-x7k2pd0  RUNNING    90m  research  3/4    2        ada@login1  Error\n"
		"old-b            SUCCEEDED  3d   -         2/2    0        -           -\n");
	assert_int_equal(text->len, strlen(text->text));
	spec_text_unref(text);
	drop(jobs, 3);
	spec_list_free(list);
	spec_list_free(NULL);
}

/* The longest texts that the columns can contain fit. */
static void test_place(void **state)
{
	struct spec_list *list = spec_list_new(SPEC_LIST_TABLE);
	char id[256], word[201];
	struct spec_job *job;
	struct spec_text *text;
	int64_t until;

	memset(id, 'i', sizeof(id) - 1);
	memset(word, 'w', sizeof(word) - 1);
	id[sizeof(id) - 1] = word[sizeof(word) - 1] = '\0';
	job = job_new(id, 1, DAY, SPEC_SUBMITTED, 1, 0);
	job->queue_position = 4294967295;
	spec_set(&job->queue, word);
	spec_set(&job->submitter, word);
	spec_set(&job->reason, word);
	text = make(list, &job, 1, NOW, &until);
	assert_non_null(strstr(text->text, "www... (4294967295 in wwww"));
	spec_text_unref(text);
	spec_job_unref(job);
	spec_list_free(list);
}

/* If there are several kinds, the kind of each job is shown. */
static void test_kinds(void **state)
{
	struct spec_list *list = spec_list_new(SPEC_LIST_TABLE);
	struct spec_job *jobs[] = {
		job_new("a", 1, MINUTE, SPEC_RUNNING, 1, 1),
		job_new("b~jobset", 2, HOUR, SPEC_RUNNING, 1, 1),
	};
	struct spec_text *text;
	int64_t until;

	spec_set(&jobs[0]->backend, "job");
	spec_set(&jobs[0]->reason, "Error");
	spec_set(&jobs[1]->backend, "jobset");
	text = make(list, jobs, 2, NOW, &until);
	assert_string_equal(
		text->text,
		"ID        STATE    AGE  QUEUE  READY  RETRIES  SUBMITTER  KIND    REASON\n"
		"a         RUNNING  60s  -      1/1    0        -          job     Error\n"
		"b~jobset  RUNNING  60m  -      1/1    0        -          jobset  -\n");
	spec_text_unref(text);
	text = make(list, jobs, 1, NOW, &until);
	assert_null(strstr(text->text, "KIND"));
	spec_text_unref(text);
	spec_list_free(list);
	drop(jobs, 2);
}

static void test_nothing(void **state)
{
	for (int form = 0; form < SPEC_LIST_N_FORMS; form++) {
		struct spec_list *list = spec_list_new((enum spec_list_form)form);
		int64_t until = 0;
		struct spec_text *text = make(list, NULL, 0, NOW, &until);

		assert_string_equal(text->text, form == SPEC_LIST_TABLE
							? "ID  STATE  AGE  QUEUE  READY  RETRIES  "
							  "SUBMITTER  REASON\n"
							: "");
		assert_true(until - NOW > 365 * DAY);
		spec_text_unref(text);
		spec_list_free(list);
	}
}

static void test_stale(void **state)
{
	struct spec_list *list = spec_list_new(SPEC_LIST_TABLE);
	int64_t until;
	struct spec_text *text = spec_list_text(list, NULL, 0, NOW - HOUR, NOW, &until);

	assert_memory_equal(text->text, "stale_since: 2026-11-21T08:08:40Z (", 35);
	assert_memory_equal(strchr(text->text, '\n') + 1, "ID ", 3);
	spec_text_unref(text);
	spec_list_free(list);
}

/*
 * Assert that the table shows EXPECTED for a job of this AGE, and something else after EXPECTED_FOR
 * ns.
 */
static void check_age(int64_t age, const char *expected, int64_t expected_for)
{
	struct spec_list *list = spec_list_new(SPEC_LIST_TABLE);
	struct spec_job *job = job_new("a", 1, 0, SPEC_PENDING, 0, 0);
	struct spec_text *text;
	int64_t until, now = NOW - NOW % SECOND;
	char word[32];

	job->created = now - age;
	text = make(list, &job, 1, now, &until);
	assert_int_equal(sscanf(strchr(text->text, '\n'), " a PENDING %31s", word), 1);
	assert_string_equal(word, expected);
	assert_int_equal(until - now, expected_for);
	spec_text_unref(text);
	/* The text changes exactly then. */
	text = make(list, &job, 1, now + expected_for - 1, &until);
	assert_int_equal(sscanf(strchr(text->text, '\n'), " a PENDING %31s", word), 1);
	assert_string_equal(word, expected);
	spec_text_unref(text);
	text = make(list, &job, 1, now + expected_for, &until);
	assert_int_equal(sscanf(strchr(text->text, '\n'), " a PENDING %31s", word), 1);
	assert_string_not_equal(word, expected);
	spec_text_unref(text);
	spec_job_unref(job);
	spec_list_free(list);
}

static void test_ages(void **state)
{
	check_age(0, "0s", SECOND);
	check_age(-2 * SECOND, "0s", 3 * SECOND); /* the server's clock is ahead */
	check_age(119 * SECOND, "119s", SECOND);
	check_age(120 * SECOND, "2m", MINUTE);
	check_age(119 * MINUTE + 59 * SECOND, "119m", SECOND);
	check_age(2 * HOUR, "2h", HOUR);
	check_age(47 * HOUR, "47h", HOUR);
	check_age(2 * DAY, "2d", DAY);
	check_age(400 * DAY + 3 * HOUR, "400d", DAY - 3 * HOUR);
}

/*
 * The text is valid until the age of any job changes. A job whose age is unknown never changes it.
 */
static void test_until(void **state)
{
	struct spec_list *list = spec_list_new(SPEC_LIST_TABLE);
	struct spec_job *jobs[] = {
		job_new("days", 1, 3 * DAY, SPEC_PENDING, 0, 0),
		job_new("minutes", 2, 10 * MINUTE + 20 * SECOND, SPEC_PENDING, 0, 0),
		job_new("never", 3, NOW, SPEC_PENDING, 0, 0),
	};
	int64_t until, now = NOW - NOW % SECOND;
	struct spec_text *text = make(list, jobs, 3, NOW, &until);

	assert_int_equal(until - now, 40 * SECOND);
	assert_non_null(strstr(text->text, "never    PENDING  -    "));
	spec_text_unref(text);
	drop(jobs, 3);
	spec_list_free(list);
}

/*
 * A text from a cluster must not break a line, move a cursor, or push all columns out of the
 * window.
 */
static void test_hostile(void **state)
{
	struct spec_list *list = spec_list_new(SPEC_LIST_TABLE);
	struct spec_job *job = job_new("a", 1, DAY * 2, SPEC_PENDING, 1, 0);
	char long_id[201], submitter[5000];
	struct spec_job *jobs[] = {job, job_new("", 2, DAY * 3, SPEC_PENDING, 1, 0)};
	struct spec_text *text;
	int64_t until;

	memset(long_id, 'x', 200);
	long_id[200] = '\0';
	memset(submitter, 's', sizeof(submitter) - 1);
	submitter[sizeof(submitter) - 1] = '\0';
	spec_set(&job->queue, "a b\tc\nd\x1b[31m");
	spec_set(&job->submitter, "j\xc3\xb8rgen\xe2\x80\xae\xe4\xb8\xad\xff@h");
	spec_set(&job->reason, submitter);
	spec_set(&jobs[1]->id, long_id);
	text = make(list, jobs, 2, NOW, &until);
	for (const char *c = text->text; *c; c++)
		assert_true(*c == '\n' || (*c >= ' ' && *c < 0x7f));
	assert_non_null(strstr(text->text, "  a?b?c?d?[31m  "));
	assert_non_null(strstr(text->text, "  j?rgen???@h  "));
	assert_non_null(strstr(text->text, "  sssssssssssssssssssssssssssssssssssss...\n"));
	/* The id is not truncated, because it is the name of a directory. */
	assert_non_null(strstr(text->text, long_id));
	assert_memory_equal(text->text, "ID", 2);
	assert_int_equal(strstr(text->text, "STATE") - text->text, 64 + 2);
	spec_text_unref(text);
	drop(jobs, 2);
	spec_list_free(list);
}

static void test_json(void **state)
{
	struct spec_list *list = spec_list_new(SPEC_LIST_JSON);
	struct spec_job *jobs[] = {
		job_new("old", 1, DAY, SPEC_RUNNING, 1, 1),
		job_new("new", 2, HOUR, SPEC_RUNNING, 1, 1),
	};
	struct spec_text *text;
	cleanup_free char *expected = NULL;
	char *lines[2];
	size_t len;
	int64_t until;

	spec_set(&jobs[0]->reason, "a\nb\xe2\x80\xa8");
	for (int i = 0; i < 2; i++)
		spec_status_json_line(jobs[i], &lines[i], &len);
	expected = text_print("%s%s", lines[1], lines[0]);
	text = make(list, jobs, 2, NOW, &until);
	assert_string_equal(text->text, expected);
	assert_int_equal(until, INT64_MAX);
	assert_int_equal(strchr(text->text, '\n') - text->text, strlen(lines[1]) - 1);
	/* Each line has the same contents as status.json. */
	for (int i = 0; i < 2; i++) {
		cleanup_free char *whole = NULL;
		struct json_object *a, *b;

		spec_status_json(jobs[i], &whole, &len);
		a = json_tokener_parse(whole);
		b = json_tokener_parse(lines[i]);
		assert_non_null(a);
		assert_true(json_object_equal(a, b));
		json_object_put(a);
		json_object_put(b);
		free(lines[i]);
	}
	spec_text_unref(text);
	drop(jobs, 2);
	spec_list_free(list);
}

/* Return the line of TEXT for the job ID. malloc'ed. */
static char *line_of(const struct spec_text *text, const char *id)
{
	const char *line = text->text;

	for (;;) {
		const char *end = strchr(line, '\n');
		char *copy = mem_copy(line, (size_t)(end - line));

		if (strstr(copy, id))
			return copy;
		free(copy);
		line = end + 1;
	}
}

/*
 * A snapshot that was rendered before is not rendered again. A new snapshot is, and so is one that
 * was never published.
 */
static void check_remembered(enum spec_list_form form)
{
	struct spec_list *list = spec_list_new(form);
	struct spec_job *jobs[] = {
		job_new("job-a", 7, 2 * DAY, SPEC_PENDING, 0, 0),
		job_new("job-b", 9, 3 * DAY, SPEC_PENDING, 0, 0),
		job_new("job-c", 0, 4 * DAY, SPEC_PENDING, 0, 0),
	};
	struct spec_text *first, *text;
	int64_t until;

	first = make(list, jobs, 3, NOW, &until);
	for (int i = 0; i < 3; i++)
		spec_set(&jobs[i]->reason, "Changed");
	jobs[1]->revision = 10;
	jobs[1]->changed = NOW;
	text = make(list, jobs, 3, NOW, &until);
	for (int i = 0; i < 3; i++) {
		char *before cleanup_free = line_of(first, jobs[i]->id);
		char *after cleanup_free = line_of(text, jobs[i]->id);

		/* The text that a reader already has does not change. */
		assert_null(strstr(before, "Changed"));
		assert_int_equal(strstr(after, "Changed") != NULL, i > 0);
	}
	assert_true(strstr(first->text, "job-b") > strstr(first->text, "job-a"));
	assert_true(strstr(text->text, "job-b") < strstr(text->text, "job-a"));
	spec_text_unref(first);
	first = make(list, jobs + 1, 1, NOW, &until);
	assert_null(strstr(first->text, "job-a"));
	assert_non_null(strstr(first->text, "job-b"));
	spec_text_unref(first);
	spec_text_unref(text);
	drop(jobs, 3);
	spec_list_free(list);
}

static void test_remembered(void **state)
{
	check_remembered(SPEC_LIST_TABLE);
	check_remembered(SPEC_LIST_JSON);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	cmocka_unit_test(test_place),
		cmocka_unit_test(test_nothing), cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_stale),	cmocka_unit_test(test_ages),
		cmocka_unit_test(test_until),	cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_json),	cmocka_unit_test(test_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
