/* SPDX-License-Identifier: MIT */
/*
 * Kueue's queues as a server writes them, their text, and the positions of the jobs that wait in
 * them.
 */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/view/kueue.h"
#include "tests/unit/unit.h"

#define LOCAL(spec, status)                                                                        \
	"{'metadata':{'name':'team','uid':'u'},'spec':{'clusterQueue':'research'" spec             \
	"},'status':{" status "}}"
#define ACTIVE(status, reason, message)                                                            \
	"'conditions':[{'type':'Active','status':'" status "','reason':'" reason                   \
	"','message':'" message "'}]"
#define GPUS(total) "[{'name':'gpus','resources':[{'name':'cpu','total':'" total "'}]}]"

/* Parse JSON in which ' replaces ". */
static struct spec_queue_view *parse(const char *text)
{
	cleanup_free char *json = unit_json(text_copy(text));
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

/* Unused quota is shown too. Amounts may be numbers. */
static void test_text(void **state)
{
	struct spec_queue_view *v = parse(LOCAL("", ACTIVE("True", "Ready", "")));
	struct spec_queue_view *c =
		parse("{'metadata':{'name':'research','uid':'c'},'spec':{'cohort':'all',"
		      "'queueingStrategy':'StrictFIFO','resourceGroups':[{'flavors':[{'name':"
		      "'gpus','resources':[{'name':'cpu','nominalQuota':9,'borrowingLimit':3},"
		      "{'name':'memory','nominalQuota':'36Gi'}]}]}]},'status':{'flavorsUsage':["
		      "{'name':'gpus','resources':[{'name':'cpu','total':10,'borrowed':1}]}]}}");
	struct spec_queue_view *held =
		parse("{'metadata':{'name':'research','uid':'c'},'spec':{'cohortName':'all',"
		      "'stopPolicy':'HoldAndDrain'}}");

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
	static const char *const rows[][2] = {
		{LOCAL(",'stopPolicy':'Hold'", ACTIVE("False", "Stopped", "is stopped")),
		 "name: team\nstate: Hold\nstopped_by: LocalQueue\nmessage: is stopped\n"},
		{LOCAL(",'stopPolicy':'None'", ACTIVE("False", "ClusterQueueIsInactive", "m")),
		 "name: team\nstate: ClusterQueueIsInactive\nstopped_by: null\nmessage: m\n"},
		{LOCAL("", ""), "name: team\nstate: \"\"\nstopped_by: null\nmessage: \"\"\n"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_queue_view *v = parse(rows[i][0]);
		cleanup_free char *text = NULL;
		size_t len;

		spec_queue_view_text(v, NULL, 0, 0, &text, &len);
		assert_memory_equal(text, rows[i][1], strlen(rows[i][1]));
		spec_queue_view_unref(v);
	}
}

static void test_same(void **state)
{
	struct spec_queue_view *a = parse(LOCAL("", "'flavorsUsage':" GPUS("1")));
	struct spec_queue_view *b = parse(LOCAL("", "'flavorsUsage':" GPUS("2")));
	struct spec_queue_view *c = parse(LOCAL("", "'pendingWorkloads':1"));

	assert_true(spec_queue_view_same(a, a));
	assert_false(spec_queue_view_same(a, b));
	assert_false(spec_queue_view_same(a, c));
	spec_queue_view_unref(a);
	spec_queue_view_unref(b);
	spec_queue_view_unref(c);
}

static void test_names(void **state)
{
#define NAMED(name) "{'metadata':{'name':'" name "'}}"
	static const struct {
		const char *text, *said; /* NULL: not a list */
		bool has;		 /* it contains the queue b */
	} cases[] = {
		{"{'items':[" NAMED("a") "," NAMED("b") "]}", "a, b", true},
		{"{'items':[" NAMED("a") ",{},7]}", "a", false},
		{"{'metadata':{'continue':'x'},'items':[" NAMED("a") "]}", "a", true},
		{"{'items':[" NAMED("\\u001b[31m\\nx") "]}", "[31m x", false},
		{"{'items':null}", "", false},
		{"{}", NULL, false},
		{"[]", NULL, false},
	};
	char *many cleanup_free = text_copy("{'items':[{}");
	bool has;

	for (size_t i = 0; i < array_size(cases); i++) {
		char *json cleanup_free = unit_json(text_copy(cases[i].text));
		char *text cleanup_free = NULL;

		has = false;
		text = spec_local_queue_names(json, strlen(json), "b", &has);
		assert_true(streq(text, cases[i].said));
		assert_int_equal(has, cases[i].has);
	}
	for (unsigned i = 0; i < 1000; i++)
		text_set(&many, "%s," NAMED("queue-%u"), many, i);
	text_set(&many, "%s]}", many);
	unit_json(many);
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
	cleanup_free char *json =
		unit_json(text_copy("{'items':[{'metadata':{'ownerReferences':[{'uid':'b'}]},"
				    "'positionInClusterQueue':0,'positionInLocalQueue':0},"
				    "{'metadata':{'ownerReferences':[{'uid':'a'},{'uid':'x'}]},"
				    "'positionInClusterQueue':7,'positionInLocalQueue':1},"
				    "{'metadata':{},'positionInClusterQueue':8},{},7]}"));
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

static void test_versions(void **state)
{
#define VERSION(name)	      "{'groupVersion':'" name "'}"
#define GROUP(name, versions) "{'name':'" name "','versions':[" versions "]}"
	static const char *const rows[][3] = {
		/* the server's groups; a group; its version */
		{GROUP("kueue.x-k8s.io", VERSION("kueue.x-k8s.io/v1beta1")), "kueue.x-k8s.io",
		 "kueue.x-k8s.io/v1beta1"},
		{GROUP("kueue.x-k8s.io",
		       VERSION("kueue.x-k8s.io/v1beta1") "," VERSION("kueue.x-k8s.io/v1beta2")),
		 "kueue.x-k8s.io", "kueue.x-k8s.io/v1beta2"},
		{GROUP("apps",
		       VERSION("apps/v1")) "," GROUP("visibility.kueue.x-k8s.io",
						     VERSION("visibility.kueue.x-k8s.io/v1beta1")),
		 "visibility.kueue.x-k8s.io", "visibility.kueue.x-k8s.io/v1beta1"},
		{GROUP("kueue.x-k8s.io", VERSION("kueue.x-k8s.io/v1beta1")),
		 "visibility.kueue.x-k8s.io", NULL},
		{GROUP("metrics.k8s.io",
		       VERSION("metrics.k8s.io/v1beta1") "," VERSION("metrics.k8s.io/v1")),
		 "metrics.k8s.io", "metrics.k8s.io/v1"},
		{GROUP("metrics.k8s.io", VERSION("metrics.k8s.io/v2")), "metrics.k8s.io", NULL},
		{"{'name':'metrics.k8s.io','versions':{}}", "metrics.k8s.io", NULL},
		{"nothing", "metrics.k8s.io", NULL},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		cleanup_free char *json = unit_json(text_print("{'groups':[%s]}", rows[i][0]));
		const char *version = spec_group_version(json, strlen(json), rows[i][1]);

		assert_true(streq(version, rows[i][2]));
	}
	/* the versions of one group, as a server lists them at another path */
	assert_null(spec_group_version("{\"versions\":[]}", 15, "metrics.k8s.io"));
	assert_null(spec_group_version("{\"groups\":{}}", 13, "metrics.k8s.io"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),  cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_same),  cmocka_unit_test(test_places),
		cmocka_unit_test(test_names), cmocka_unit_test(test_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
