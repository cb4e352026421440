/* SPDX-License-Identifier: MIT */
/*
 * Events of jobs. kxfs keeps the newest event of each cause, up to a bound. It assigns an event to
 * its job even if the job becomes known much later.
 */
#include "backend/kube/events.h"
#include "tests/unit/unit.h"

static struct spec_event_view *event(const char *about, const char *reason, const char *message,
				     unsigned count)
{
	struct spec_event_view *v;
	cleanup_free char *json = NULL;

	assert_true(
		asprintf(&json,
			 "{\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"%s\"},"
			 "\"reason\":\"%s\",\"message\":\"%s\",\"count\":%u,\"type\":\"Normal\","
			 "\"lastTimestamp\":\"2026-11-21T09:13:%02uZ\"}",
			 about, reason, message, count, count % 60) > 0);
	assert_int_equal(spec_event_view_parse(json, strlen(json), &v), 0);
	return v;
}

static void assert_text(struct events *ev, const char *job, const char *want)
{
	struct events_list list cleanup(events_release) = {0};
	cleanup_free char *text = NULL;
	int64_t changed;
	size_t len;

	events_get(ev, job, &list);
	spec_event_view_text(list.v, list.n, &text, &len, &changed);
	assert_string_equal(text, want);
	assert_int_equal(len, strlen(want));
	assert_int_equal(changed != 0, len > 0);
}

static size_t count(struct events *ev, const char *job)
{
	struct events_list list cleanup(events_release) = {0};

	events_get(ev, job, &list);
	return list.n;
}

/*
 * Which events are new, so that the job changes. The text of `events` has the newest event of each
 * cause.
 */
static void test_new(void **state)
{
	static const struct {
		const char *about, *reason, *message;
		unsigned count, since; /* the second of the job's last attempt; 0: unknown */
		bool is_new;
	} rows[] = {
		{"g", "Unschedulable", "full", 1, 0, true},
		{"g", "Unschedulable", "full", 2, 0, false}, /* it is repeated */
		{"g", "Unschedulable", "over", 3, 0, true},
		{"g", "Unschedulable", "full", 4, 0, true},
		/* Events that `why` does not use. */
		{"p", "Pulled", "a\\tb\\nc\\\\d", 5, 0, false},
		{"p", "Pulling", "image", 6, 0, false},
		/* A volume can't be mounted. The first event that shows that it is, is new. */
		{"p", "FailedMount", "no volume", 11, 0, true},
		{"p", "FailedMount", "no volume", 12, 0, false},
		{"q", "Pulling", "image", 13, 0, false},
		{"p", "Killing", "container", 14, 0, false},
		{"p", "SuccessfulAttachVolume", "volume", 15, 0, true},
		{"p", "Pulled", "image", 16, 0, false},
		{"p", "FailedMount", "no volume", 17, 0, true},
		{"p", "Pulled", "image", 18, 0, true},
		{"p", "Started", "container", 19, 0, false},
		/* For a further attempt of the job, a repeated message counts as new once. */
		{"j", "FailedCreate", "quota", 20, 20, true},
		{"j", "FailedCreate", "quota", 21, 20, false},
		{"j", "FailedCreate", "quota", 22, 50, false},
		{"j", "FailedCreate", "quota", 50, 50, true},
		{"j", "FailedCreate", "quota", 51, 50, false},
		{"j", "FailedCreatePod", "quota", 52, 0, true},
	};
	const int64_t minute = INT64_C(1795252380); /* 2026-11-21T09:13:00Z */
	struct events *ev = events_new();

	for (size_t i = 0; i < array_size(rows); i++) {
		int64_t since = rows[i].since ? (minute + rows[i].since) * 1000000000 : 0;

		if (events_put(ev, "j", since,
			       event(rows[i].about, rows[i].reason, rows[i].message,
				     rows[i].count)) != rows[i].is_new)
			fail_msg("row %zu", i);
		if (i == 4)
			assert_text(
				ev, "j",
				"2026-11-21T09:13:03Z\tPod/p\tNormal\tUnschedulable\t3\tover\n"
				"2026-11-21T09:13:04Z\tPod/p\tNormal\tUnschedulable\t4\tfull\n"
				"2026-11-21T09:13:05Z\tPod/p\tNormal\tPulled\t5\ta\\tb\\nc\\\\d\n");
	}
	assert_text(ev, "other", "");
	events_forget(ev, "j");
	assert_text(ev, "j", "");
	events_free(ev);
}

/*
 * Two series of events for a waiting gang, one event per second each. The messages of one series
 * are empty.
 */
static void test_noise(void **state)
{
	struct events *ev = events_new();
	unsigned news = 0;

	for (unsigned i = 1; i < 600; i++) {
		news += events_put(ev, "j", 0, event("g", "Unschedulable", "overused cpu", i));
		news += events_put(ev, "j", 0,
				   event("g", "Unschedulable",
					 "0/0 tasks in gang unschedulable: pod group is not ready",
					 i));
	}
	assert_int_equal(news, 1);
	assert_int_equal(count(ev, "j"), 2);
	assert_text(ev, "j",
		    "2026-11-21T09:13:59Z\tPod/p\tNormal\tUnschedulable\t599\toverused cpu\n");
	events_free(ev);
}

static void test_bounds(void **state)
{
	struct events *ev = events_new();
	char text[32], job[32];

	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "message %u", i);
		events_put(ev, "j", 0, event("p", "Some", text, i));
	}
	assert_int_equal(count(ev, "j"), EVENTS_JOB_MAX);
	for (unsigned i = 0; i < 2 * EVENTS_MAX; i++) {
		snprintf(job, sizeof(job), "j%u", i / 32);
		snprintf(text, sizeof(text), "message %u", i);
		events_put(ev, job, 0, event("p", "Some", text, i));
	}
	/* The events of the oldest jobs were dropped. */
	assert_int_equal(count(ev, "j"), 0);
	assert_int_equal(count(ev, "j0"), 0);
	assert_int_equal(count(ev, job), 32);
	events_free(ev);
}

static bool is_same(void *data, const char *about)
{
	return streq(about, data);
}

static bool adopt(struct events *ev, const char *about, const char *job)
{
	cleanup_free char *uid = text_copy(about);

	return events_adopt(ev, job, is_same, uid);
}

static void test_before_its_object(void **state)
{
	struct events *ev = events_new();
	char about[32];

	assert_false(events_put(ev, NULL, 0, event("g", "Unschedulable", "full", 1)));
	assert_false(events_put(ev, NULL, 0, event("g", "Unschedulable", "full", 2)));
	assert_false(adopt(ev, "other", "j"));
	assert_int_equal(count(ev, "j"), 0);
	assert_true(adopt(ev, "g", "j"));
	assert_int_equal(count(ev, "j"), 1);
	assert_false(adopt(ev, "g", "j"));
	/* If too many events have no known job yet, only the newest of them are kept. */
	for (unsigned i = 0; i < 2 * EVENTS_WAITING_MAX; i++) {
		snprintf(about, sizeof(about), "o%u", i);
		events_put(ev, NULL, 0, event(about, "FailedMount", "no volume", 1));
	}
	assert_false(adopt(ev, "o0", "k"));
	assert_true(adopt(ev, about, "k"));
	events_free(ev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_before_its_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
