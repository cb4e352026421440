/* SPDX-License-Identifier: MIT */
/*
 * Pod groups and events as a server writes them, and the text of events. A test of
 * tests/replay/test_volcano_why.py has the text of Volcano's queues.
 */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/view/watched.h"
#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000000)

static struct spec_event_view *event(const char *json)
{
	struct spec_event_view *v;

	assert_int_equal(spec_event_view_parse(json, strlen(json), &v), 0);
	return v;
}

#define EVENT(second, message)                                                                        \
	"{\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"u-1\"},\"type\":\"Warning\"," \
	"\"reason\":\"FailedMount\",\"message\":\"" message "\",\"lastTimestamp\":"                   \
	"\"1970-01-01T00:00:" second "Z\",\"count\":3}"

static void test_events_text(void **state)
{
	struct spec_event_view *v[] = {
		event(EVENT("09", "a\\tb\\nc\\\\d")),
		event(EVENT("08", "0/0 tasks in gang unschedulable")),
		event(EVENT("07", "first")),
	};
	char *text;
	size_t len;
	int64_t changed;

	assert_true(spec_event_view_explains(v[0]));
	assert_true(spec_event_view_is_noise(v[1]));
	assert_false(spec_event_view_same(v[0], v[1]));
	assert_true(spec_event_view_is_old(v[2], 9 * SECOND));
	assert_false(spec_event_view_is_old(v[2], 8 * SECOND));
	spec_event_view_text(v, array_size(v), &text, &len, &changed);
	assert_string_equal(
		text, "1970-01-01T00:00:07Z\tPod/p\tWarning\tFailedMount\t3\tfirst\n"
		      "1970-01-01T00:00:09Z\tPod/p\tWarning\tFailedMount\t3\ta\\tb\\nc\\\\d\n");
	assert_int_equal(len, strlen(text));
	assert_int_equal(changed, 9 * SECOND);
	free(text);
	for (size_t i = 0; i < array_size(v); i++)
		spec_event_view_unref(v[i]);
}

/* Event recorders write the time to different fields. A series has a count. */
static void test_series(void **state)
{
	struct spec_event_view *v = event(
		"{\"involvedObject\":{\"uid\":\"u\"},\"eventTime\":\"1970-01-01T00:00:05.5Z\","
		"\"series\":{\"count\":4,\"lastObservedTime\":\"1970-01-01T00:00:08Z\"}}");
	struct spec_event_view *none;

	assert_int_equal(v->last, 8 * SECOND);
	assert_int_equal(v->count, 4);
	spec_event_view_unref(v);
	assert_int_equal(spec_event_view_parse("{}", 2, &none), -EINVAL);
	assert_int_equal(spec_event_view_parse("[]", 2, &none), -EINVAL);
}

/* The scheduler does not remove its old condition. The newer one counts. */
static void test_group(void **state)
{
	for (int scheduled = 0; scheduled < 2; scheduled++) {
		cleanup_free char *json = unit_json(text_print(
			"{'metadata':{'name':'q','uid':'u-q'},'spec':{'minMember':3,'minResources':{"
			"'cpu':'2'}},'status':{'phase':'Inqueue','conditions':[{'type':"
			"'Unschedulable','status':'True','lastTransitionTime':"
			"'1970-01-01T00:00:05Z'},{'type':'Scheduled','status':'%s',"
			"'lastTransitionTime':'1970-01-01T00:00:06Z'}]}}",
			scheduled ? "True" : "False"));
		struct spec_group_view *v;

		assert_int_equal(spec_group_view_parse(json, strlen(json), &v), 0);
		assert_int_equal(v->minimum, 3);
		assert_string_equal(v->phase, "Inqueue");
		assert_string_equal(spec_amounts_get(&v->needs, "", "cpu"), "2");
		assert_int_equal(v->is_short, !scheduled);
		spec_group_view_free(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_text),
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
