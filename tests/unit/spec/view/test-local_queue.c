/* SPDX-License-Identifier: MIT */
/*
 * Kueue's queues as a server writes them, their text, and the positions of the jobs that wait in
 * them.
 */
#include <errno.h>

#include "spec/view/kueue.h"
#include "tests/unit/unit.h"

#define LOCAL(spec, status)                                                                            \
	"{\"metadata\":{\"name\":\"team\",\"uid\":\"u\"},\"spec\":{\"clusterQueue\":\"research\"" spec \
	"},\"status\":{" status "}}"
#define ACTIVE(status, reason, message)                                                            \
	"\"conditions\":[{\"type\":\"Active\",\"status\":\"" status "\",\"reason\":\"" reason      \
	"\",\"message\":\"" message "\"}]"
#define FLAVOR(key, total)                                                                         \
	"\"" key "\":[{\"name\":\"gpus\",\"resources\":[{\"name\":\"cpu\",\"total\":\"" total      \
	"\"}]}]"

static struct spec_queue_view *parse(const char *json)
{
	struct spec_queue_view *v;

	assert_int_equal(spec_kueue_queue_parse(json, strlen(json), &v), 0);
	return v;
}

static void assert_text(struct spec_queue_view *v, struct spec_queue_view *c, const char *expected)
{
	char *text;
	size_t len;

	spec_queue_view_text(v, c, 3, 2, &text, &len);
	assert_string_equal(text, expected);
	assert_int_equal(len, strlen(text));
	free(text);
}

/* Both versions of the API, for a user who may not read the ClusterQueue. */
static void test_local(void **state)
{
	static const char *const names[] = {"flavorsUsage", "flavorUsage"};

	for (size_t i = 0; i < array_size(names); i++) {
		char *json = text_print(
			LOCAL("",
			      ACTIVE("True", "Ready",
				     "Can submit") ",\"%s\":[{\"name\":\"gpus\","
						   "\"resources\":[{\"name\":\"cpu\",\"total\":\"50m\"}]}]," FLAVOR(
							   "flavorsReservation",
							   "100m") ",\"pendingWorkloads\":4,"
								   "\"reservingWorkloads\":2,\"admittedWorkloads\":1"),
			names[i]);
		struct spec_queue_view *v = parse(json);

		assert_text(
			v, NULL,
			"name: team\nstate: Open\nstopped_by: null\nmessage: Can submit\n"
			"cluster_queue: research\ncohort: null\nstrategy: null\nflavors:\n"
			"- {flavor: gpus, resource: cpu, used: 50m, reserved: 100m, nominal: null, "
			"borrowing_limit: null, borrowed: null}\n"
			"workloads:\n  pending: 4\n  reserving: 2\n  admitted: 1\n"
			"pending: 3\nrunning: 2\n");
		assert_true(spec_queue_view_same(v, v));
		spec_queue_view_unref(v);
		free(json);
	}
}

/* Unused quota is shown too. Amounts may be numbers. */
static void test_cluster(void **state)
{
	struct spec_queue_view *v = parse(LOCAL("", ACTIVE("True", "Ready", "")));
	struct spec_queue_view *c = parse(
		"{\"metadata\":{\"name\":\"research\",\"uid\":\"c\"},\"spec\":{\"cohort\":\"all\","
		"\"queueingStrategy\":\"StrictFIFO\",\"resourceGroups\":[{\"flavors\":[{\"name\":"
		"\"gpus\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":9,\"borrowingLimit\":3},"
		"{\"name\":\"memory\",\"nominalQuota\":\"36Gi\"}]}]}]},\"status\":{"
		"\"flavorsUsage\":[{\"name\":\"gpus\","
		"\"resources\":[{\"name\":\"cpu\",\"total\":10,\"borrowed\":1}]}]}}");
	struct spec_queue_view *held = parse(
		"{\"metadata\":{\"name\":\"research\",\"uid\":\"c\"},\"spec\":{\"cohortName\":\"all\","
		"\"stopPolicy\":\"HoldAndDrain\"}}");

	assert_text(v, c,
		    "name: team\nstate: Open\nstopped_by: null\nmessage: \"\"\n"
		    "cluster_queue: research\ncohort: all\nstrategy: StrictFIFO\nflavors:\n"
		    "- {flavor: gpus, resource: cpu, used: null, reserved: null, nominal: \"9\", "
		    "borrowing_limit: \"3\", borrowed: \"1\"}\n"
		    "- {flavor: gpus, resource: memory, used: null, reserved: null, nominal: 36Gi, "
		    "borrowing_limit: null, borrowed: null}\n"
		    "workloads:\n  pending: 0\n  reserving: 0\n  admitted: 0\n"
		    "pending: 3\nrunning: 2\n");
	assert_text(v, held,
		    "name: team\nstate: HoldAndDrain\nstopped_by: ClusterQueue\nmessage: \"\"\n"
		    "cluster_queue: research\ncohort: all\nstrategy: null\nflavors: []\n"
		    "workloads:\n  pending: 0\n  reserving: 0\n  admitted: 0\n"
		    "pending: 3\nrunning: 2\n");
	spec_queue_view_unref(v);
	spec_queue_view_unref(spec_queue_view_ref(c));
	spec_queue_view_unref(c);
	spec_queue_view_unref(held);
	assert_int_equal(spec_kueue_queue_parse("{}", 2, &c), -EINVAL);
}

/* A stopped queue is shown as such, with who has stopped it. */
static void test_stopped(void **state)
{
	static const struct {
		const char *json, *head;
	} table[] = {
		{LOCAL(",\"stopPolicy\":\"Hold\"", ACTIVE("False", "Stopped", "is stopped")),
		 "name: team\nstate: Hold\nstopped_by: LocalQueue\nmessage: is stopped\n"},
		{LOCAL(",\"stopPolicy\":\"None\"", ACTIVE("False", "ClusterQueueIsInactive", "m")),
		 "name: team\nstate: ClusterQueueIsInactive\nstopped_by: null\nmessage: m\n"},
		{LOCAL("", ""), "name: team\nstate: \"\"\nstopped_by: null\nmessage: \"\"\n"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct spec_queue_view *v = parse(table[i].json);
		char *text;
		size_t len;

		spec_queue_view_text(v, NULL, 0, 0, &text, &len);
		assert_memory_equal(text, table[i].head, strlen(table[i].head));
		free(text);
		spec_queue_view_unref(v);
	}
}

static void test_same(void **state)
{
	struct spec_queue_view *a = parse(LOCAL("", FLAVOR("flavorsUsage", "1")));
	struct spec_queue_view *b = parse(LOCAL("", FLAVOR("flavorsUsage", "2")));
	struct spec_queue_view *c = parse(LOCAL("", "\"pendingWorkloads\":1"));

	assert_false(spec_queue_view_same(a, b));
	assert_false(spec_queue_view_same(a, c));
	spec_queue_view_unref(a);
	spec_queue_view_unref(b);
	spec_queue_view_unref(c);
}

static void test_names(void **state)
{
	static const struct {
		const char *json, *said; /* NULL: not a list */
		bool has;		 /* it contains the queue b */
	} cases[] = {
		{"{\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}]}",
		 "a, b", true},
		{"{\"items\":[{\"metadata\":{\"name\":\"a\"}},{},7]}", "a", false},
		{"{\"metadata\":{\"continue\":\"x\"},\"items\":[{\"metadata\":{\"name\":\"a\"}}]}",
		 "a", true},
		{"{\"items\":[{\"metadata\":{\"name\":\"\\u001b[31m\\nx\"}}]}", "[31m x", false},
		{"{\"items\":null}", "", false},
		{"{\"items\":[]}", "", false},
		{"{}", NULL, false},
		{"[]", NULL, false},
	};
	char *many cleanup_free = text_copy("{\"items\":[");
	bool has;

	for (size_t i = 0; i < array_size(cases); i++) {
		char *text cleanup_free = NULL;

		has = false;
		text = spec_local_queue_names(cases[i].json, strlen(cases[i].json), "b", &has);
		assert_int_equal(!!text, !!cases[i].said);
		if (text)
			assert_string_equal(text, cases[i].said);
		assert_int_equal(has, cases[i].has);
	}
	for (unsigned i = 0; i < 1000; i++)
		text_set(&many, "%s%s{\"metadata\":{\"name\":\"%s%u\"}}", many, i ? "," : "",
			 "queue-", i);
	text_set(&many, "%s]}", many);
	for (unsigned i = 0; i < 2; i++) {
		char *text cleanup_free =
			spec_local_queue_names(many, strlen(many), i ? "queue-999" : "queue-1000",
					       &has);

		assert_in_range(strlen(text), 400, 1100);
		assert_int_equal(has, i);
	}
}

static void test_places(void **state)
{
	static const char json[] =
		"{\"items\":[{\"metadata\":{\"ownerReferences\":[{\"uid\":\"b\"}]},"
		"\"positionInClusterQueue\":0,\"positionInLocalQueue\":0},"
		"{\"metadata\":{\"ownerReferences\":[{\"uid\":\"a\"},{\"uid\":\"x\"}]},"
		"\"positionInClusterQueue\":7,\"positionInLocalQueue\":1},"
		"{\"metadata\":{},\"positionInClusterQueue\":8},{},7]}";
	struct spec_queue_position *v;
	size_t n;

	assert_int_equal(spec_queue_positions_parse(json, strlen(json), &v, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(spec_queue_positions_find(v, n, "a"), 8);
	assert_int_equal(spec_queue_positions_find(v, n, "b"), 1);
	assert_int_equal(spec_queue_positions_find(v, n, "x"), 0);
	assert_int_equal(spec_queue_positions_find(v, n, ""), 0);
	free(v);
	assert_int_equal(spec_queue_positions_parse("[]", 2, &v, &n), -EINVAL);
	assert_int_equal(spec_queue_positions_parse("{}", 2, &v, &n), 0);
	assert_int_equal(spec_queue_positions_find(v, n, "a"), 0);
	free(v);
}

#define VERSION(group, v)     "{\"groupVersion\":\"" group "/" v "\"}"
#define GROUP(name, versions) "{\"name\":\"" name "\",\"versions\":[" versions "]}"
#define GROUPS(list)	      "{\"groups\":[" list "]}"

static void test_versions(void **state)
{
	static const char old[] = GROUP(SPEC_KUEUE_GROUP, VERSION(SPEC_KUEUE_GROUP, "v1beta1"));
	static const char list[] = GROUPS(GROUP("apps", VERSION("apps", "v1")) "," GROUP(
		SPEC_KUEUE_VISIBILITY,
		VERSION(SPEC_KUEUE_VISIBILITY,
			"v1beta1")) "," GROUP(SPEC_KUEUE_GROUP,
					      VERSION(SPEC_KUEUE_GROUP,
						      "v1beta1") "," VERSION(SPEC_KUEUE_GROUP,
									     "v1beta2")));
	cleanup_free char *one = text_print("{\"groups\":[%s]}", old);

	assert_string_equal(spec_group_version(list, strlen(list), SPEC_KUEUE_GROUP),
			    "kueue.x-k8s.io/v1beta2");
	assert_string_equal(spec_group_version(list, strlen(list), SPEC_KUEUE_VISIBILITY),
			    "visibility.kueue.x-k8s.io/v1beta1");
	assert_string_equal(spec_group_version(one, strlen(one), SPEC_KUEUE_GROUP),
			    "kueue.x-k8s.io/v1beta1");
	assert_null(spec_group_version(one, strlen(one), SPEC_KUEUE_VISIBILITY));
	assert_null(spec_group_version(old, strlen(old), SPEC_KUEUE_GROUP));
	assert_null(spec_group_version("no", 2, SPEC_KUEUE_GROUP));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_local),	 cmocka_unit_test(test_cluster),
		cmocka_unit_test(test_stopped),	 cmocka_unit_test(test_same),
		cmocka_unit_test(test_places),	 cmocka_unit_test(test_names),
		cmocka_unit_test(test_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
