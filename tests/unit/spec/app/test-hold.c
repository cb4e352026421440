/* SPDX-License-Identifier: MIT */
/*
 * When a job starts: the members of scheduler_args that decide that, and the ways to write a time.
 */
#include <errno.h>

#include "spec/app/hold.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/value.h"
#include "tests/unit/unit.h"

#define NOW  INT64_C(1700000000000000000)
#define HOUR INT64_C(3600000000000)

/* In this test, local time is one hour ahead of UTC. */
static int64_t local(int64_t utc)
{
	return utc - HOUR;
}

static void test_moments(void **state)
{
	static const struct {
		const char *text;
		int64_t moment; /* 0: not a valid time */
	} rows[] = {
		{"+90s", NOW + 90 * INT64_C(1000000000)},
		{"+2h", NOW + 2 * HOUR},
		{"+1d", NOW + 24 * HOUR},
		/* the longest allowed delay, and one that is a second longer */
		{"+315360000s", NOW + 87600 * HOUR},
		{"+315360001s", 0},
		{"2023-11-14T22:13:20Z", NOW},
		{"2023-11-14T23:13:20+01:00", NOW},
		{"2023-11-14T23:13:20", NOW},
		{"2023-11-14T23:13", NOW - 20 * INT64_C(1000000000)},
		{"2023-11-14", NOW - 23 * HOUR - 800 * INT64_C(1000000000)},
		{"1013-12-01", 23 * HOUR},
		{"1969-12-31T23:59:59Z", 24 * HOUR},
		{"9999-12-31T23:59:59Z", INT64_MAX - 24 * HOUR},
	};
	static const char *const bad[] = {"+2",	   "+",		"+-2h",		 "+2h ",
					  "",	   "tomorrow",	"2023-11-14T23", "2023-11-14T25:00",
					  "23:13", "2023-13-14"};
	int64_t moment;

	for (size_t i = 0; i < array_size(rows); i++) {
		bool found = spec_hold_moment(rows[i].text, NOW, local, &moment);

		if (found != (rows[i].moment != 0) || (found && moment != rows[i].moment))
			fail_msg("%s: %d, %lld", rows[i].text, found, (long long)moment);
	}
	for (size_t i = 0; i < array_size(bad); i++)
		assert_false(spec_hold_moment(bad[i], NOW, local, &moment));
}

/*
 * Parse the JSON of scheduler_args. If SAID is not NULL, assert that there is an error that
 * contains SAID.
 */
static struct spec_held *held_by(const char *json, const char *said)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free struct spec_value *map = NULL;
	cleanup_free char *text = NULL;
	struct spec_held *h = new0(struct spec_held);

	assert_int_equal(spec_value_parse(json, strlen(json), &map), 0);
	for (size_t i = 0; i < map->n; i++)
		spec_hold_read(h, &map->items[i], NOW, local, &e);
	text = spec_errors_text(&e, "a.yaml");
	if (!said)
		assert_int_equal(e.err, 0);
	else if (e.err != -EINVAL || !strstr(text, said))
		fail_msg("%s: %d, %s", json, e.err, text);
	return h;
}

static void test_members(void **state)
{
	struct spec_held *h = held_by("{\"hold\":true,\"begin\":\"+2h\",\"queue\":"
				      "\"q\",\"after\":[\"ok:a\",\"any:b-1\",\"failed:c.yaml\"]}",
				      NULL);

	assert_true(h->hold && h->begin == NOW + 2 * HOUR);
	assert_int_equal(h->n_after, 3);
	assert_int_equal(h->after[0].how, SPEC_AFTER_OK);
	assert_string_equal(h->after[1].id, "b-1");
	assert_int_equal(h->after[2].how, SPEC_AFTER_FAILED);
	spec_held_free(h);
	/* These members do not hold a job. */
	h = held_by("{\"hold\":false,\"begin\":null,\"after\":[],\"queue\":\"q\"}", NULL);
	assert_true(!h->hold && !h->begin && !h->n_after);
	spec_held_free(h);
	h = held_by("{\"after\":\"ok:a\"}", NULL);
	assert_int_equal(h->n_after, 1);
	spec_held_free(h);
	assert_true(spec_hold_is("begin") && !spec_hold_is("queue"));
}

static void test_wrong(void **state)
{
#define LIST "scheduler_args.after: must be a list of jobs to wait for"
	static const char *const rows[][2] = {
		{"'hold':'true'", "scheduler_args.hold: must be true or false"},
		{"'hold':1", "must be true or false"},
		{"'begin':'now'", "scheduler_args.begin: must be a time"},
		{"'begin':5", "must be a time"},
		{"'begin':'+2h\\u0000'", "must be a time"},
		{"'after':{'ok':'a'}", LIST},
		{"'after':['a']", LIST},
		{"'after':['okay:a']", LIST},
		{"'after':['o:a']", LIST},
		{"'after':['ok:']", LIST},
		{"'after':['ok:../a']", LIST},
		{"'after':['ok:a',3]", LIST},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		cleanup_free char *json = unit_json(text_print("{%s}", rows[i][0]));

		spec_held_free(held_by(json, rows[i][1]));
	}
}

static void test_many(void **state)
{
	cleanup_free char *jobs = text_copy("\"any:a\"");

	for (int n = 1; n <= SPEC_MAX_AFTER + 1; n++) {
		cleanup_free char *json = text_print("{\"after\":[%s]}", jobs);
		const char *said = n > SPEC_MAX_AFTER ? "has more than 100 jobs" : NULL;
		struct spec_held *h = held_by(json, said);

		assert_int_equal(h->n_after, min_of(n, SPEC_MAX_AFTER));
		spec_held_free(h);
		text_set(&jobs, "%s,\"any:a\"", jobs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
