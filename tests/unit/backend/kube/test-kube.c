/* SPDX-License-Identifier: MIT */
/* Jobs of a cluster, against a server that the test plays: how they are shown, and how they are ended. */
#include "tests/unit/backend/kube/kube_story.h"

static void test_join(void **state)
{
	const struct spec_job *job;

	rig_start("", "");
	/* Pods may come before their job. */
	story_pod("ADDED", "p0", "u0", 0, "Running", RIG_RUNNING);
	story_pod("ADDED", "p1", "u0", 1, "Pending", "{}");
	rig_expect(BACKEND_JOBS, "one", NULL);
	story_job("ADDED", "one", "u0", "Running");
	job = backend_job(rig.b, BACKEND_JOBS, "one");
	assert_int_equal(job->replicas[0].state, SPEC_RUNNING);
	assert_int_equal(job->replicas[1].state, SPEC_PENDING);
	spec_job_unref(job);
	/* The last state of a pod that is gone is remembered. */
	story_pod("MODIFIED", "p0", "u0", 0, "Failed", RIG_EXIT("3"));
	story_pod("DELETED", "p0", "u0", 0, "Failed", RIG_EXIT("3"));
	story_pod("DELETED", "p1", "u0", 1, "Pending", "{}");
	story_job("MODIFIED", "one", "u0", "Failed");
	job = backend_job(rig.b, BACKEND_JOBS, "one");
	assert_int_equal(job->state, SPEC_FAILED);
	assert_int_equal(job->replicas[0].exit_code, 3);
	spec_job_unref(job);
	/* Pods that belong to nobody, and objects that can't be read, are left out. */
	rig_pod_event("ADDED", "{\"metadata\":{\"name\":\"x\",\"uid\":\"x\",\"resourceVersion\":"
			       "\"7\"}}");
	rig_pod_event("ADDED", "{\"metadata\":{\"name\":\"../x\",\"uid\":\"x\",\"resourceVersion\":"
			       "\"7\"}}");
	assert_int_equal(world_n_pods(rig.k->world), 0);
	story_job("DELETED", "one", "u0", "Failed");
	rig_expect(BACKEND_JOBS, "one", NULL);
	rig_expect(BACKEND_HISTORY, "one", NULL);
	assert_int_equal(rig_known_jobs(), 0);
}

/* The objects of a new list are compared with those that are known. */
static void test_relist(void **state)
{
	cleanup_free char *one = rig_job("one", "u1", "Running", 1);
	cleanup_free char *two = rig_job("two", "u2", "Running", 1);
	cleanup_free char *pod = rig_pod("p1", "u1", 0, "Running", RIG_RUNNING);
	cleanup_free char *both = NULL;

	assert_true(asprintf(&both, "%s,%s", one, two) > 0);
	rig_start(both, pod);
	rig_expect(BACKEND_JOBS, "one", "RUNNING");
	fake_pass(10000);
	rig_event("jobs?watch", "MODIFIED", two);
	fake_answer(fake_find("jobs?watch"), 410, "{}");
	fake_pass(1000);
	/* Until the new list is whole, all jobs stay. */
	rig_expect(BACKEND_JOBS, "one", "RUNNING");
	rig_list("jobs?limit", two);
	rig_expect(BACKEND_JOBS, "one", NULL);
	rig_expect(BACKEND_JOBS, "two", "RUNNING");
	fake_answer(fake_find("pods?watch"), 410, "{}");
	fake_pass(1000);
	rig_list("pods?limit", "");
	assert_int_equal(world_n_pods(rig.k->world), 0);
	assert_int_equal(rig_known_jobs(), 1);
}

/* What can't be confirmed is marked so, with the reason of the watch that still fails. */
static void test_stale(void **state)
{
	cleanup_free char *info = NULL;
	size_t len;
	FILE *out;

	rig_start("", "");
	story_job("ADDED", "one", "u1", "Running");
	fake_end(fake_find("jobs?watch"),
		 &(struct http_reply){.err = -EHOSTUNREACH, .text = "no jobs"});
	fake_end(fake_find("pods?watch"),
		 &(struct http_reply){.err = -EHOSTUNREACH, .text = "no pods"});
	fake_run();
	rig_cancel("one", "u1");
	assert_int_equal(rig.err, -EHOSTUNREACH); /* the answer comes at once */
	assert_non_null(strstr(rig.text, "no jobs"));
	while (!fake_find("jobs?limit=1"))
		assert_true(fake_wait(1000));
	rig_confirm();
	fake_find("jobs?watch")->call.head(fake_find("jobs?watch")->call.data, 200);
	fake_run();
	out = open_memstream(&info, &len);
	backend_info(rig.b, out);
	fclose(out);
	assert_non_null(strstr(info, "connected: false"));
	assert_non_null(strstr(info, "no pods"));
}

static void test_cancel(void **state)
{
	rig_start("", "");
	for (int i = 0; i < 8; i++) {
		char name[16], uid[16];

		snprintf(name, sizeof(name), "job-%d", i);
		snprintf(uid, sizeof(uid), "u%d", i);
		story_job("ADDED", name, uid, "Running");
		rig_cancel(name, uid);
		assert_int_equal(rig_request()->call.method, HTTP_DELETE);
		assert_non_null(strstr(rig_request()->body, uid));
		assert_non_null(strstr(rig_request()->body, "Background"));
		switch (i) {
		case 0:
			rig_answer(200, RIG_DELETED);
			break;
		case 1:
			rig_answer(404, RIG_STATUS("404", "NotFound", "gone"));
			break;
		/* The job was deleted, but the reply was lost, and another job has the name by now. */
		case 2:
			rig_lose(false);
			rig_until_request();
			rig_answer(409, RIG_STATUS("409", "Conflict", "the UID does not match"));
			break;
		/* What the server tells next shows that something else has answered in place of the lost reply. */
		case 6:
			rig_answer(503, "upstream connect error");
			rig_until_request();
			rig_answer(409, RIG_STATUS("409", "Conflict", "the UID does not match"));
			break;
		case 7: /* the page of a proxy is no success: the job runs on */
			for (int try = 0; rig.n_answers == 0; try++) {
				assert_true(try < 10);
				rig_until_request();
				rig_answer(200, RIG_PAGE);
			}
			assert_int_equal(rig.err, -EIO);
			assert_non_null(strstr(rig.text, "Please log in"));
			rig_expect(BACKEND_JOBS, name, "RUNNING");
			continue;
		case 3:
			rig_answer(409, RIG_STATUS("409", "Conflict", "the UID does not match"));
			assert_int_equal(rig.err, -ESTALE);
			rig_expect(BACKEND_JOBS, name, "RUNNING");
			continue;
		case 4:
			rig_answer(403, RIG_STATUS("403", "Forbidden", "no"));
			assert_int_equal(rig.err, -EACCES);
			rig_expect(BACKEND_JOBS, name, "RUNNING");
			continue;
		default:
			fake_break(rig_request(), -EHOSTUNREACH, false);
			fake_run();
			assert_int_equal(rig.err, -EHOSTUNREACH);
			rig_expect(BACKEND_JOBS, name, "RUNNING");
			continue;
		}
		assert_int_equal(rig.n_answers, 1);
		assert_int_equal(rig.err, 0);
		rig_expect(BACKEND_JOBS, name, NULL);
		/* What the server still tells of the job does not bring it back. */
		story_job("MODIFIED", name, uid, "Terminating");
		rig_expect(BACKEND_JOBS, name, NULL);
	}
}

static void test_stop(void **state)
{
	for (int moment = 0; moment < 9; moment++) {
		rig.capture = BACKEND_CAPTURE_ALL;
		if (moment == 0)
			rig_new();
		else
			rig_start("", "");
		rig.n_answers = 0;
		rig.err = 0;
		if (moment == 2)
			story_run("one", "u1", "p1");
		if (moment == 3) {
			const struct backend_submission s = {.file = "a.yaml",
							     .text = RIG_APP,
							     .len = strlen(RIG_APP),
							     .submitter = "a"};

			/* Submit, and go on while the pool has the work. */
			backend_submit(rig.b, &s, rig_reply, NULL);
			fake_step(&fake.posted);
		}
		if (moment >= 4)
			rig_submit(RIG_APP);
		if (moment == 5)
			rig_lose(true);
		if (moment == 6)
			rig_answer(409, RIG_STATUS("409", "AlreadyExists", "x"));
		if (moment == 7)
			fake_break(rig_request(), -EHOSTUNREACH, false); /* its record is removed */
		if (moment == 8) {
			story_job("ADDED", "one", "u1", "Running");
			rig_cancel("one", "u1");
			rig.n_answers = 1; /* the submission and the cancel are answered */
		}
		rig_stop();
		if (moment >= 3)
			assert_true(rig.n_answers >= 1 && rig.err < 0);
	}
}

/* When there are more objects than are read, the message says with which options fewer are asked for. */
static void test_too_many(void **state)
{
	static const struct {
		const char *list;
		bool mine;
		const char *end;
	} table[] = {
		{"jobs?limit", false, "; to request fewer, use -o mine or -o selector="},
		{"jobs?limit", true, "; to request fewer, use -o selector="},
		{"pods?limit", false, "; to request fewer, use -o mine"},
		{"pods?limit", true, " MiB"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const struct http_reply large = {.err = -EFBIG, .status = 200};
		const char *text;

		rig.mine = table[i].mine;
		rig_new();
		fake_end(fake_find(table[i].list), &large);
		fake_run();
		assert_int_equal(rig.b->started.err, -EFBIG);
		text = rig.b->started.text;
		if (strlen(text) < strlen(table[i].end) ||
		    !streq(text + strlen(text) - strlen(table[i].end), table[i].end))
			fail_msg("%s", text);
		rig_stop();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_join, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_relist, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stale, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_cancel, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stop, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_too_many, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("kube", tests, NULL, NULL);
}
