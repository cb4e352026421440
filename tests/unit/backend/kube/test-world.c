/* SPDX-License-Identifier: MIT */
/*
 * Which jobs change when an object appears, changes or disappears. Of two related objects, either
 * one may arrive first.
 */
#include "tests/unit/backend/client/fake_net.h"

#include <errno.h>

#include "backend/base/diag.h"
#include "backend/kube/world.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"
#include "tests/unit/table.h"

static struct {
	struct world *w;
	char changed[256]; /* uids of the changed jobs, in order */
} rig;

static void on_changed(void *data, const struct world_job *job)
{
	size_t n = strlen(rig.changed);

	assert_null(data);
	snprintf(rig.changed + n, sizeof(rig.changed) - n, "%s%s", n ? " " : "", job->uid);
}

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	diag_setup(DIAG_INFO, false);
	rig.w = world_new(NULL);
	world_set_changed(rig.w, on_changed, NULL);
	world_set_kind(rig.w, WORLD_JOBS, &spec_volcano);
	return 0;
}

static int teardown(void **state)
{
	world_stop(rig.w);
	assert_null(fake.timers);
	world_free(rig.w);
	return 0;
}

/* Deliver an object of SORT. FMT is its JSON, with ' in place of ". */
static void printf_like(3, 4) tell(enum world_type sort, bool gone, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = text_vprint(fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	world_object(rig.w, sort, text, strlen(text), gone);
}

#define META "'metadata':{'name':'%s','uid':'%s'}"
#define OWNED                                                                                      \
	"'metadata':{'name':'%s','uid':'%s','ownerReferences':[{'controller':true,'uid':'%s'}]}"

static void tell_job(const char *name, const char *uid, const char *queue)
{
	tell(WORLD_JOBS, false,
	     "{" META ",'spec':{'queue':'%s','tasks':[{'name':'a','replicas':1}]},"
	     "'status':{'state':{'phase':'Pending'}}}",
	     name, uid, queue);
}

static void tell_queue(const char *name, const char *uid, const char *state, bool gone)
{
	tell(WORLD_QUEUES, gone, "{" META ",'status':{'state':'%s'}}", name, uid, state);
}

static void tell_event(const char *about, const char *reason)
{
	tell(WORLD_EVENTS, false,
	     "{'involvedObject':{'kind':'X','name':'x','uid':'%s'},'reason':'%s','message':'m',"
	     "'lastTimestamp':'2023-11-14T22:13:20Z'}",
	     about, reason);
}

/* Assert that the jobs that changed since the last call are WANT. */
static void assert_changed(const char *want)
{
	assert_string_equal(rig.changed, want);
	rig.changed[0] = '\0';
}

static void all_listed(void)
{
	for (size_t i = 0; i < WORLD_N_TYPES; i++)
		world_list_ends(rig.w, (enum world_type)i);
}

/*
 * Jobs u1 and u2 wait in the queues q1 and q2. u3 is running, and is in q1. The change after a long
 * wait was already reported.
 */
static void fill(void)
{
	static const char *const jobs[][3] = {{"j1", "u1", "q1"},
					      {"j2", "u2", "q2"},
					      {"j3", "u3", "q1"}};

	tell_queue("q1", "a", "Open", false);
	tell_queue("q2", "b", "Open", false);
	for (size_t i = 0; i < array_size(jobs); i++)
		tell_job(jobs[i][0], jobs[i][1], jobs[i][2]);
	world_set_waiting(world_find(rig.w, "u3"), false);
	all_listed();
	fake_pass(20000);
	assert_null(fake.timers);
	rig.changed[0] = '\0';
}

static void test_queue_changes(void **state)
{
	fill();
	tell_queue("q1", "a", "Open", false);
	assert_null(fake.timers); /* nothing changed */
	tell_queue("q1", "a", "Closed", false);
	assert_changed("");
	fake_pass(10000);
	assert_changed("u1");
}

/*
 * A job that waits in a deleted queue changes. It changes again when somebody recreates the queue.
 */
static void test_queue_goes(void **state)
{
	struct spec_queue_view **all;
	size_t n;

	fill();
	tell_queue("q1", "a", "Open", true);
	assert_null(world_queue(rig.w, WORLD_QUEUES, "q1"));
	fake_pass(10000);
	assert_changed("u1");
	tell_queue("q1", "c", "Open", false);
	fake_pass(10000);
	assert_changed("u1");
	/* A late event of the deleted queue with the same name. */
	tell_queue("q1", "a", "Open", true);
	all = world_queues(rig.w, &n);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++)
		spec_queue_view_unref(all[i]);
	free(all);
	assert_null(fake.timers);
	/* A list that contains only q2. */
	world_list_begins(rig.w, WORLD_QUEUES);
	tell_queue("q2", "b", "Open", false);
	world_list_ends(rig.w, WORLD_QUEUES);
	fake_pass(10000);
	assert_changed("u1");
}

static void test_group(void **state)
{
	fill();
	/* The group arrives before its job, and an event about the group arrives before both. */
	tell_event("g", "Unschedulable");
	tell(WORLD_GROUPS, false, "{" OWNED ",'status':{'phase':'Inqueue'}}", "g", "g", "u4");
	assert_changed("");
	tell_job("j4", "u4", "q1");
	assert_changed("u4 u4");
	assert_string_equal(world_group(rig.w, world_find(rig.w, "u4"))->phase, "Inqueue");
	tell_event("g", "FailedCreate");
	assert_changed("u4");
	/* The job and the group have waited long enough. The job changes only once. */
	fake_pass(20000);
	assert_changed("u4");
	/* Of two groups the newer one counts, also if the older one is deleted afterwards. */
	tell(WORLD_GROUPS, false, "{" OWNED ",'status':{'phase':'Running'}}", "h", "h", "u4");
	tell(WORLD_GROUPS, true, "{" OWNED "}", "g", "g", "u4");
	assert_changed("u4 u4");
	assert_string_equal(world_group(rig.w, world_find(rig.w, "u4"))->phase, "Running");
	/* A group without a controller belongs to no job. */
	tell(WORLD_GROUPS, false, "{" META "}", "h", "h");
	assert_changed("u4");
	assert_null(world_group(rig.w, world_find(rig.w, "u4")));
}

static size_t count_messages(const char *what)
{
	size_t len, n = 0;
	char *text = diag_text(&len);

	for (const char *p = text; (p = strstr(p, what)); p++)
		n++;
	free(text);
	return n;
}

/*
 * A job has a position in its queue. In another queue it has none until that queue's positions are
 * requested.
 */
static void test_moved(void **state)
{
	const struct spec_queue_position first = {.uid = "u1", .position = 3};

	fill();
	world_set_positions(rig.w, "q1", &first, 1);
	assert_int_equal(world_kueue(rig.w, world_find(rig.w, "u1")).position, 3);
	tell_job("j1", "u1", "q1");
	assert_int_equal(world_kueue(rig.w, world_find(rig.w, "u1")).position, 3);
	tell_job("j1", "u1", "q2");
	assert_int_equal(world_kueue(rig.w, world_find(rig.w, "u1")).position, 0);
}

/*
 * A watch event that is older than a reply does not bring back an old state. A list does, because
 * somebody may have restored the server from a backup.
 */
static void test_behind_a_reply(void **state)
{
	enum { EVENT, REPLY, LIST };
	static const struct {
		int from, version;
		const char *phase, *shown;
	} rows[] = {
		{EVENT, 5, "Pending", "Pending"},	 {REPLY, 9, "Completed", "Completed"},
		{EVENT, 7, "Running", "Completed"},	 {REPLY, 8, "Running", "Completed"},
		{EVENT, 10, "Restarting", "Restarting"}, {LIST, 3, "Running", "Running"},
		{EVENT, 4, "Completed", "Completed"},
	};

	all_listed();
	for (size_t i = 0; i < array_size(rows); i++) {
		cleanup_free char *text = text_print(
			"{\"metadata\":{\"name\":\"j1\",\"uid\":\"u1\",\"resourceVersion\":"
			"\"%d\"},\"status\":{\"state\":{\"phase\":\"%s\"}}}",
			rows[i].version, rows[i].phase);

		if (rows[i].from == LIST)
			world_list_begins(rig.w, WORLD_JOBS);
		if (rows[i].from == REPLY)
			assert_non_null(world_reply(rig.w, WORLD_JOBS, text, strlen(text), "1"));
		else
			world_object(rig.w, WORLD_JOBS, text, strlen(text), false);
		assert_string_equal(world_find(rig.w, "u1")->view->phase, rows[i].shown);
		if (rows[i].from == LIST)
			world_list_ends(rig.w, WORLD_JOBS);
	}
}

/* If the server reports one uid with two names, kxfs ignores the second one. */
static void test_two_names(void **state)
{
	fill();
	tell_job("j9", "u1", "q2");
	assert_string_equal(world_find(rig.w, "u1")->view->meta.name, "j1");
	assert_int_equal(count_messages("the server reports job j1 under a second name, j9"), 1);
}

/* kxfs requests the positions in each LocalQueue in which jobs wait, and in no other queue. */
static void test_next_queue(void **state)
{
	static const struct spec_queue_position first = {.uid = "v1", .position = 3};
	static const char *const queues[] = {"z", "b", "b", "m", "w"};

	fill();
	world_set_kind(rig.w, WORLD_JOBS + 1, test_kind("job"));
	assert_null(world_next_queue(rig.w, ""));
	for (size_t i = 0; i < array_size(queues); i++) {
		cleanup_free char *uid = text_print("v%zu", i);

		tell(WORLD_JOBS + 1, queues[i][0] == 'm',
		     "{'metadata':{'name':'%s','uid':'%s','labels':{'kueue.x-k8s.io/queue-name':'%s'}}}",
		     uid, uid, queues[i]);
	}
	world_set_waiting(world_find(rig.w, "v4"), false);
	assert_string_equal(world_next_queue(rig.w, ""), "b");
	assert_string_equal(world_next_queue(rig.w, "b"), "z");
	assert_null(world_next_queue(rig.w, "z"));
	world_set_positions(rig.w, "b", &first, 1);
	assert_int_equal(world_kueue(rig.w, world_find(rig.w, "v1")).position, 3);
	world_set_positions(rig.w, NULL, NULL, 0);
	assert_int_equal(world_kueue(rig.w, world_find(rig.w, "v1")).position, 0);
}

/* The reason why jobs wait in a LocalQueue may be in its ClusterQueue. */
static void test_cluster_queue(void **state)
{
	struct spec_queue_view *queue;

	fill();
	world_set_kind(rig.w, WORLD_JOBS + 1, test_kind("job"));
	/* A Volcano job with the same queue name is in another queue. */
	tell(WORLD_JOBS + 1, false,
	     "{'metadata':{'name':'%s','uid':'%s','labels':{'kueue.x-k8s.io/queue-name':'q2'}}}",
	     "k", "u9");
	fake_pass(10000);
	assert_changed("u9 u9");
	tell(WORLD_LOCAL_QUEUES, false, "{" META ",'spec':{'clusterQueue':'all'}}", "q2", "d");
	fake_pass(10000);
	assert_changed("u9");
	tell(WORLD_CLUSTER_QUEUES, false, "{" META "}", "all", "e");
	tell(WORLD_CLUSTER_QUEUES, false, "{" META "}", "other", "f");
	fake_pass(10000);
	assert_changed("u9");
	tell(WORLD_CLUSTER_QUEUES, true, "{" META "}", "other", "f");
	fake_pass(10000);
	assert_changed("");
	queue = world_queue(rig.w, WORLD_CLUSTER_QUEUES, "all");
	assert_non_null(queue);
	tell(WORLD_CLUSTER_QUEUES, true, "{" META "}", "all", "e");
	assert_null(world_queue(rig.w, WORLD_CLUSTER_QUEUES, "all"));
	fake_pass(10000);
	assert_changed("u9");
	assert_string_equal(queue->meta.uid, "e"); /* the view that a reader uses does not change */
	spec_queue_view_unref(queue);
}

/* Deliver object I of SORT. Each of these objects has an owner of its own. */
static void tell_one(enum world_type sort, unsigned i, bool gone)
{
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "{\"metadata\":{\"name\":\"x%u\",\"uid\":\"%d-%u\",\"ownerReferences\":[{"
			 "\"controller\":true,\"uid\":\"o%u\"}]},\"status\":{}}",
			 i, sort, i, i);

	world_object(rig.w, sort, text, (size_t)n, gone);
}

static size_t n_pods_of(const char *uid)
{
	const struct world_job *job = world_find(rig.w, uid);

	return job ? job->n_pods : 0;
}

/*
 * A deleted part or pod still connects other pods with their job. If there are too many deleted
 * ones, kxfs forgets the oldest.
 */
static void test_gone_links(void **state)
{
	fill();
	tell_one(WORLD_PARTS, 0, false);
	tell(WORLD_PARTS, false, "{" OWNED "}", "x", "x", "u1");
	tell(WORLD_PARTS, true, "{" OWNED "}", "x", "x", "u1");
	tell(WORLD_PODS, false, "{" OWNED ",'status':{}}", "p", "p", "x");
	assert_int_equal(n_pods_of("u1"), 1);
	tell(WORLD_PODS, true, "{" OWNED ",'status':{}}", "p", "p", "x");
	tell(WORLD_PODS, false, "{" OWNED ",'status':{}}", "q", "q", "p");
	assert_int_equal(n_pods_of("u1"), 1);
	rig.changed[0] = '\0';
	for (unsigned i = 1; i <= 10000; i++) {
		tell_one(WORLD_PARTS, i, false);
		tell_one(WORLD_PARTS, i, true);
	}
	tell(WORLD_PODS, false, "{" OWNED ",'status':{}}", "r", "r", "x");
	assert_int_equal(n_pods_of("u1"), 1);
	assert_int_equal(n_pods_of("x"), 1);
	assert_changed("x");
}

/*
 * An earlier mount has seen a pod of a job, and now the part between them is unknown. The job still
 * gets the pod for its logs, and is reported when the pod changes.
 */
static void test_pod_of_unknown_part(void **state)
{
	const struct spec_pod_view *pod;

	fill();
	tell(WORLD_PODS, false, "{" OWNED ",'status':{}}", "p", "p", "x");
	assert_null(world_pod(rig.w, "u1", "q", 1));
	pod = world_pod(rig.w, "u1", "p", 1);
	assert_non_null(pod);
	assert_string_equal(pod->meta.name, "p");
	assert_int_equal(n_pods_of("u1"), 0);
	assert_changed("x");
	tell(WORLD_PODS, false, "{" OWNED ",'status':{'phase':'Failed'}}", "p", "p", "x");
	assert_changed("x u1");
	tell(WORLD_PARTS, false, "{" OWNED "}", "x", "x", "u2");
	tell(WORLD_PODS, false, "{" OWNED ",'status':{}}", "p", "p", "x");
	assert_int_equal(n_pods_of("u2"), 1);
	assert_null(world_pod(rig.w, "u1", "p", 1));
	assert_non_null(world_pod(rig.w, "u2", "p", 1));
	tell(WORLD_PODS, true, "{" OWNED ",'status':{}}", "p", "p", "x");
	assert_null(world_pod(rig.w, "u2", "p", 1));
}

/* Deliver metadata of an object of SORT that kxfs can't read, with the error WRONG. */
static void pass_over(enum world_type sort, const char *name, const char *uid, bool gone, int wrong)
{
	cleanup_free char *text =
		text_print("{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"}}", name, uid);

	world_pass_over(rig.w, sort, text, strlen(text), gone, wrong);
}

/*
 * kxfs reports an unreadable object once, and keeps its last known state. When the object is
 * deleted, kxfs removes it.
 */
static void test_passed_over(void **state)
{
	static const char deep[] = "kxfs does not show the Job j1: it is nested too deeply";
	static const char large[] = "kxfs does not show the Pod p: it is too large";

	fill();
	for (int i = 0; i < 3; i++) {
		world_list_begins(rig.w, WORLD_JOBS);
		pass_over(WORLD_JOBS, "j1", "u1", false, -ELOOP);
		tell_job("j3", "u3", "q1");
		world_list_ends(rig.w, WORLD_JOBS);
	}
	assert_changed("u3 u2 u3 u3");
	assert_false(world_find(rig.w, "u1")->gone);
	assert_true(world_find(rig.w, "u2")->gone);
	assert_int_equal(count_messages(deep), 1);
	assert_int_equal(world_n_passed_over(rig.w), 1);
	/* Somebody has made the object smaller. */
	tell_job("j1", "u1", "q2");
	assert_int_equal(world_n_passed_over(rig.w), 0);
	assert_changed("u1");
	pass_over(WORLD_JOBS, "j1", "u1", true, -EFBIG);
	assert_true(world_find(rig.w, "u1")->gone);
	assert_changed("u1");
	assert_int_equal(world_n_passed_over(rig.w), 0);
	/* One object that was never known, and two that the parser of their type refuses. */
	pass_over(WORLD_PODS, "p", "p1", false, -EFBIG);
	tell(WORLD_PODS, false, "{" OWNED "}", "../x", "p2", "u3");
	tell(WORLD_GROUPS, false, "{" OWNED ",'status':1}", "..", "g1", "u3");
	tell(WORLD_GROUPS, false, "{" OWNED ",'status':1}", "..", "g1", "u3");
	assert_int_equal(count_messages(large), 1);
	assert_int_equal(count_messages("kxfs does not show the PodGroup ..: it can't be read"), 1);
	assert_int_equal(world_n_passed_over(rig.w), 3);
	world_list_begins(rig.w, WORLD_PODS);
	world_list_ends(rig.w, WORLD_PODS);
	assert_int_equal(world_n_passed_over(rig.w), 1);
	assert_changed("");
}

/*
 * A watch reports more and more objects. kxfs ignores those above the bound, and reports that once.
 */
static void test_too_many(void **state)
{
	static const struct {
		enum world_type sort;
		const char *said;
	} table[] = {
		{WORLD_JOBS, "the cluster has more than 200000 objects of kind Job"},
		{WORLD_PODS, "the cluster has more than 200000 objects of kind Pod"},
		{WORLD_GROUPS, "the cluster has more than 200000 objects of kind PodGroup"},
	};

	all_listed();
	for (size_t i = 0; i < array_size(table); i++) {
		const enum world_type sort = table[i].sort;
		cleanup_free char *uid = text_print("%d-%u", sort, SPEC_MAX_LISTED + 1);
		unsigned n = 0;

		while (n < SPEC_MAX_LISTED)
			tell_one(sort, n++, false);
		assert_int_equal(world_n_passed_over(rig.w), 0);
		tell_one(sort, n, false);
		tell_one(sort, n + 1, false);
		tell_one(sort, n, false);
		tell_one(sort, 0, false); /* this object is already known */
		assert_int_equal(world_n_passed_over(rig.w), 2);
		assert_int_equal(count_messages(table[i].said), 1);
		if (sort == WORLD_JOBS)
			assert_null(world_find(rig.w, uid));
		if (sort == WORLD_PODS)
			assert_int_equal(world_n_pods(rig.w), SPEC_MAX_LISTED);
		/* When there is space again, a change of an ignored object shows it. */
		tell_one(sort, 1, true);
		tell_one(sort, n + 1, false);
		assert_int_equal(world_n_passed_over(rig.w), 1);
		if (sort == WORLD_JOBS)
			assert_non_null(world_find(rig.w, uid));
		/* kxfs counts no more than 1000 ignored objects. */
		for (unsigned k = 2; k < 2000; k++)
			tell_one(sort, n + k, false);
		assert_int_equal(world_n_passed_over(rig.w), 1000);
		/* A list may add as many objects as the bound, beside the previously known ones. */
		world_list_begins(rig.w, sort);
		for (unsigned k = 0; k < 4; k++)
			tell_one(sort, n + k, false);
		world_list_ends(rig.w, sort);
		assert_int_equal(world_n_passed_over(rig.w), 0);
		world_list_begins(rig.w, sort);
		world_list_ends(rig.w, sort);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_queue_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_queue_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_group, setup, teardown),
		cmocka_unit_test_setup_teardown(test_next_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cluster_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind_a_reply, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pod_of_unknown_part, setup, teardown),
		cmocka_unit_test_setup_teardown(test_passed_over, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
