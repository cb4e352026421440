/* SPDX-License-Identifier: MIT */
/*
 * The texts of list and list.jsonl: what they show, in which order, how long they are valid, and
 * which lines are rendered again.
 */
#include "spec/job/list.h"
#include "spec/job/status.h"
#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
/* 2026-11-21T09:08:40Z */
#define NOW (INT64_C(1795252120) * SECOND)

/* The jobs of one test, and their list as it was shown last. */
static struct {
	struct spec_job *jobs[3];
	size_t n;
	uint64_t revision; /* the last one that was given to a job */
	struct spec_list *list;
	struct spec_text *text;
	int64_t until;
} all;

static int setup(void **state)
{
	all.list = spec_list_new(SPEC_LIST_TABLE);
	return 0;
}

static int setup_json(void **state)
{
	all.list = spec_list_new(SPEC_LIST_JSON);
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < all.n; i++)
		spec_job_unref(all.jobs[i]);
	spec_text_unref(all.text);
	spec_list_free(all.list);
	memset(&all, 0, sizeof(all));
	return 0;
}

/* Add a job with N of DESIRED replicas, all in STATE. It was created, and last changed, AGE ago. */
static struct spec_job *add(const char *id, int64_t age, enum spec_state state, unsigned desired,
			    size_t n)
{
	struct spec_job *job = spec_job_new(1, n);

	all.jobs[all.n++] = job;
	spec_set(&job->id, id);
	job->revision = ++all.revision;
	job->created = job->changed = NOW - age;
	job->state = state;
	job->roles[0].desired = desired;
	job->roles[0].n = n;
	for (size_t i = 0; i < n; i++)
		job->replicas[i].state = state;
	return job;
}

static const char *show_at(int64_t now)
{
	const struct spec_job *const *jobs = (const struct spec_job *const *)all.jobs;

	spec_text_unref(all.text);
	all.text = spec_list_text(all.list, jobs, all.n, 0, now, &all.until);
	assert_int_equal(all.text->len, strlen(all.text->text));
	return all.text->text;
}

static void test_table(void **state)
{
	struct spec_job *old = add("old-b", 3 * DAY, SPEC_SUCCEEDED, 2, 2);
	struct spec_job *running = add("trainer-x7k2pd0", 90 * MINUTE, SPEC_RUNNING, 4, 4);
	struct spec_job *new = add("new", 5 * SECOND, SPEC_PENDING, 8, 0);

	running->replicas[3].state = SPEC_FAILED;
	running->retries = 2;
	spec_set(&running->queue, "research");
	spec_set(&running->submitter, "ada@login1");
	spec_set(&running->reason, "Error");
	new->cause.reason = "Unschedulable";
	spec_set(&new->reason, "Hidden");
	new->queue_position = 4294967295;
	spec_set(&new->queue, "b lue");
	assert_string_equal(
		show_at(NOW),
		"ID               STATE      AGE  QUEUE     READY  RETRIES  SUBMITTER   REASON\n"
		"new              PENDING    5s   b?lue     0/8    0        -           Unschedulable "
		"(4294967295 in b?lue)\n"
		"trainer-x7k2pd0  RUNNING    90m  research  3/4    2        ada@login1  Error\n"
		"old-b            SUCCEEDED  3d   -         2/2    0        -           -\n");
	/* Of several kinds, the kind of each job is shown. */
	spec_set(&old->backend, "job");
	spec_set(&running->backend, "jobset");
	old->revision = ++all.revision;
	running->revision = ++all.revision;
	all.n = 2;
	assert_string_equal(
		show_at(NOW),
		"ID               STATE      AGE  QUEUE     READY  RETRIES  SUBMITTER   KIND    REASON\n"
		"trainer-x7k2pd0  RUNNING    90m  research  3/4    2        ada@login1  jobset  Error\n"
		"old-b            SUCCEEDED  3d   -         2/2    0        -           job     -\n");
	all.n = 3;
}

static void test_nothing(void **state)
{
	assert_string_equal(show_at(NOW),
			    "ID  STATE  AGE  QUEUE  READY  RETRIES  SUBMITTER  REASON\n");
	assert_true(all.until - NOW > 365 * DAY);
	spec_list_free(all.list);
	spec_list_free(NULL);
	all.list = spec_list_new(SPEC_LIST_JSON);
	assert_string_equal(show_at(NOW), "");
	assert_true(all.until - NOW > 365 * DAY);
}

static void test_stale(void **state)
{
	all.text = spec_list_text(all.list, NULL, 0, NOW - HOUR, NOW, &all.until);
	assert_memory_equal(all.text->text, "stale_since: 2026-11-21T08:08:40Z (", 35);
	assert_memory_equal(strchr(all.text->text, '\n') + 1, "ID ", 3);
}

static void assert_age(int64_t now, const char *want, bool same)
{
	char word[32];

	assert_int_equal(sscanf(strchr(show_at(now), '\n'), " a PENDING %31s", word), 1);
	assert_int_equal(streq(word, want), same);
}

/* The text is valid exactly until the age changes. */
static void test_ages(void **state)
{
	static const struct {
		int64_t age;
		const char *shown;
		int64_t lasts;
	} rows[] = {
		{0, "0s", SECOND},
		{-2 * SECOND, "0s", 3 * SECOND}, /* the server's clock is ahead */
		{119 * SECOND, "119s", SECOND},
		{120 * SECOND, "2m", MINUTE},
		{119 * MINUTE + 59 * SECOND, "119m", SECOND},
		{2 * HOUR, "2h", HOUR},
		{47 * HOUR, "47h", HOUR},
		{2 * DAY, "2d", DAY},
		{400 * DAY + 3 * HOUR, "400d", DAY - 3 * HOUR},
	};
	struct spec_job *job = add("a", 0, SPEC_PENDING, 0, 0);

	for (size_t i = 0; i < array_size(rows); i++) {
		job->revision = ++all.revision;
		job->created = NOW - rows[i].age;
		assert_age(NOW, rows[i].shown, true);
		assert_int_equal(all.until - NOW, rows[i].lasts);
		assert_age(NOW + rows[i].lasts - 1, rows[i].shown, true);
		assert_age(NOW + rows[i].lasts, rows[i].shown, false);
	}
}

/*
 * The text is valid until the age of any job changes. A job whose age is unknown never changes it.
 */
static void test_until(void **state)
{
	add("days", 3 * DAY, SPEC_PENDING, 0, 0);
	add("minutes", 10 * MINUTE + 20 * SECOND, SPEC_PENDING, 0, 0);
	add("never", NOW, SPEC_PENDING, 0, 0);
	assert_non_null(strstr(show_at(NOW + SECOND / 2), "never    PENDING  -    "));
	assert_int_equal(all.until - NOW, 40 * SECOND);
}

/*
 * A text from a cluster must not break a line, move a cursor, or push all columns out of the
 * window.
 */
static void test_hostile(void **state)
{
	struct spec_job *job = add("a", 2 * DAY, SPEC_PENDING, 1, 0);
	cleanup_free char *id = text_print("%0200d", 0), *word = text_print("%05000d", 0);
	const char *text;

	spec_set(&job->queue, "a b\tc\nd\x1b[31m");
	spec_set(&job->submitter, "j\xc3\xb8rgen\xe2\x80\xae\xe4\xb8\xad\xff@h");
	spec_set(&job->reason, word);
	add(id, 3 * DAY, SPEC_PENDING, 1, 0);
	text = show_at(NOW);
	for (const char *c = text; *c; c++)
		assert_true(*c == '\n' || (*c >= ' ' && *c < 0x7f));
	assert_non_null(strstr(text, "  a?b?c?d?[31m  "));
	assert_non_null(strstr(text, "  j?rgen???@h  "));
	assert_non_null(strstr(text, "  0000000000000000000000000000000000000...\n"));
	/* The id is not truncated, because it is the name of a directory. */
	assert_non_null(strstr(text, id));
	assert_int_equal(strstr(text, "STATE") - text, 64 + 2);
	/* The longest texts that the columns can contain fit. */
	job->revision = ++all.revision;
	job->queue_position = 4294967295;
	spec_set(&job->queue, word);
	assert_non_null(strstr(show_at(NOW), "000... (4294967295 in 0000"));
}

/* tests/mount/test_tree.py compares the lines with status.json. */
static void test_json(void **state)
{
	struct spec_job *old = add("old", DAY, SPEC_RUNNING, 1, 1);
	struct spec_job *new = add("new", HOUR, SPEC_RUNNING, 1, 1);
	cleanup_free char *first = NULL, *second = NULL, *want = NULL;
	size_t len;

	spec_set(&new->reason, "a\nb\xe2\x80\xa8");
	spec_status_json_line(new, &first, &len);
	assert_int_equal(strchr(first, '\n') - first, len - 1);
	spec_status_json_line(old, &second, &len);
	want = text_print("%s%s", first, second);
	assert_string_equal(show_at(NOW), want);
	assert_int_equal(all.until, INT64_MAX);
}

/* True if the line of the job ID has "Changed". */
static bool has_changed(const char *text, const char *id)
{
	const char *line = strstr(text, id);
	cleanup_free char *copy = mem_copy(line, (size_t)(strchr(line, '\n') - line));

	return strstr(copy, "Changed");
}

/*
 * A snapshot that was rendered before is not rendered again. A new snapshot is, and so is one that
 * was never published. The text that a reader already has does not change.
 */
static void test_remembered(void **state)
{
	struct spec_text *first;
	const char *text;

	add("job-a", 2 * DAY, SPEC_PENDING, 0, 0);
	add("job-b", 3 * DAY, SPEC_PENDING, 0, 0);
	add("job-c", 4 * DAY, SPEC_PENDING, 0, 0)->revision = 0;
	show_at(NOW);
	first = spec_text_ref(all.text);
	for (int i = 0; i < 3; i++)
		spec_set(&all.jobs[i]->reason, "Changed");
	all.jobs[1]->revision = ++all.revision;
	all.jobs[1]->changed = NOW;
	text = show_at(NOW);
	assert_null(strstr(first->text, "Changed"));
	assert_false(has_changed(text, "job-a"));
	assert_true(has_changed(text, "job-b"));
	assert_true(has_changed(text, "job-c"));
	assert_true(strstr(first->text, "job-b") > strstr(first->text, "job-a"));
	assert_true(strstr(text, "job-b") < strstr(text, "job-a"));
	spec_text_unref(first);
	all.n = 1;
	assert_null(strstr(show_at(NOW), "job-b"));
	all.n = 3;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_until, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_json, setup_json, teardown),
		cmocka_unit_test_setup_teardown(test_remembered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remembered, setup_json, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
