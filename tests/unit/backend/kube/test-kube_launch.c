/* SPDX-License-Identifier: MIT */
/*
 * Submissions to a cluster whose server is played by the test: each job is launched exactly once.
 */
#include <sys/syscall.h>

#include "tests/unit/backend/kube/kube_rig.h"

static size_t launches(void)
{
	return rig.n_objects;
}

static unsigned n_syncs;

/* These functions replace those of libc. */
int fsync(int fd)
{
	n_syncs++;
	return (int)syscall(SYS_fsync, fd);
}

/* True if the record of the job ID on disk contains TEXT. */
static bool record_has(const char *id, const char *text)
{
	char key[64];
	cleanup_free char *record = rig_record(id, key);

	return record && strstr(record, text);
}

/* A submission waits for two syncs of the disk. Everything else is synced afterwards. */
static void test_syncs(void **state)
{
	rig_start("", "");
	n_syncs = 0;
	rig_submit(RIG_APP);
	assert_non_null(rig_request());
	assert_int_equal(n_syncs, 2);
	rig_serve();
	assert_int_equal(rig.err, 0);
	assert_int_equal(n_syncs, 2);
	assert_true(record_has(rig.id, "SUBMITTING"));
	fake_pass(2000);
	assert_true(record_has(rig.id, "LIVE"));
	assert_in_range(n_syncs, 4, 6);
	rig_submit(RIG_APP);
	rig_answer(422, RIG_STATUS("422", "Invalid", "no good"));
	assert_int_equal(rig.err, -EINVAL);
	assert_int_equal(rig_records(), 1);
}

/*
 * The reply is lost, and the job is gone when kxfs sends the request again. The watch has shown the
 * job, so kxfs does not launch it twice.
 */
static void test_seen_and_gone(void **state)
{
	rig_start("", "");
	for (int shown = 0; shown < 2; shown++) {
		cleanup_free char *uid = NULL;
		size_t before = launches(), records = rig_records();
		const char *name, *json;

		rig_submit(RIG_APP);
		rig_lose(true);
		name = rig.objects[rig.n_objects - 1].name;
		json = rig.objects[rig.n_objects - 1].json;
		rig.objects[rig.n_objects - 1].there = false;
		uid = rig_behind(json, "\"uid\":\"");
		rig_event("jobs?watch", "ADDED", json);
		if (shown)
			fake_run();
		rig_job_event("DELETED", json);
		fake_pass(60000);
		assert_int_equal(rig.n_answers, 1);
		assert_int_equal(rig.err, 0);
		assert_string_equal(rig.id, name);
		assert_int_equal(launches() - before, 1);
		assert_int_equal(rig_records(), records);
	}
}

/*
 * The reply is lost, and the repeated request finds the name taken. The job is deleted before the
 * server shows whose it is. kxfs must not launch it twice.
 */
static void test_taken_and_gone(void **state)
{
	rig_start("", "");
	rig_submit(RIG_APP);
	rig_lose(true);
	rig_until_request();
	rig_serve(); /* answers the POST with 409 */
	rig.objects[0].there = false;
	rig_lose(false); /* loses the GET */
	rig_until_request();
	rig_serve();
	assert_int_equal(rig.n_answers, 1);
	assert_int_equal(rig.err, 0);
	assert_int_equal(launches(), 1);
}

/* A 409 that does not mean "already exists" proves that nothing was launched. */
static void test_conflict(void **state)
{
	rig_start("", "");
	rig_submit(RIG_APP);
	rig_answer(409, RIG_STATUS("409", "Conflict", "quota was modified, try again"));
	if (rig.n_answers == 0)
		rig_serve();
	assert_int_equal(rig.err == 0, launches() == 1);
}

static void test_named(void **state)
{
	size_t before;

	rig_start("", "");
	rig_submit(RIG_READY);
	rig_serve();
	assert_int_equal(rig.err, 0);
	assert_string_equal(rig.id, "mine");
	/*
	 * Another job of this mount has the name. kxfs picks another name without asking the
	 * server.
	 */
	rig_submit(RIG_READY);
	rig_serve();
	assert_int_equal(rig.err, 0);
	assert_string_not_equal(rig.id, "mine");
	/* Somebody else's job has the name. kxfs asks the server, then picks another name. */
	rig.objects[0].there = false;
	story_job("DELETED", "mine", "u-0", "Running");
	assert_false(rig_has_record("mine"));
	rig_create("{\"metadata\":{\"name\":\"mine\"}}");
	rig_submit(RIG_READY);
	rig_serve(); /* answers the POST with 409 */
	rig_serve(); /* answers the GET */
	before = launches();
	rig_serve();
	assert_int_equal(rig.err, 0);
	assert_int_equal(launches() - before, 1);
	assert_string_not_equal(rig.id, "mine");
	assert_false(rig_has_record("mine"));
	/*
	 * A reply was lost, and the name was taken meanwhile and is free again. kxfs must not
	 * launch the job twice.
	 */
	rig.objects[2].there = false;
	rig_submit(RIG_READY);
	before = launches();
	rig_lose(true);
	rig_until_request();
	rig_answer(409, RIG_STATUS("409", "AlreadyExists", "x"));
	rig_answer(404, RIG_STATUS("404", "NotFound", "x"));
	assert_int_equal(rig.n_answers, 1);
	assert_true(rig.err < 0);
	assert_non_null(strstr(rig.text, "could not find out"));
	assert_int_equal(launches() - before, 1);
}

static const struct spec_pair bare = {(char[]){"no_annotations"}, (char[]){"true"}};
/* the reply to a POST that was repeated after a 503 */
static const struct http_reply exists_again = {.status = 409,
					       .again = true,
					       .body = RIG_STATUS("409", "AlreadyExists", "x")};

/* Submit a named job without a UUID, whose name somebody's object has now. Refuse the POST. */
static void submit_without_uuid(void)
{
	rig.args = &bare;
	rig_start("", "");
	rig_create("{\"metadata\":{\"name\":\"mine\"}}");
	rig_submit(RIG_READY);
	fake_end(rig_request(), &exists_again);
	fake_run();
}

/*
 * The object that has the name may come from a POST that a proxy answered with 503. If it has no
 * UUID, kxfs does not launch the job again with another name.
 */
static void test_named_without_uuid(void **state)
{
	size_t before;

	submit_without_uuid();
	before = launches();
	rig_serve();
	assert_int_equal(launches(), before);
	assert_true(rig.err < 0);
	assert_non_null(strstr(rig.text, "could not find out"));
}

/* kxfs stops before it knows which job has the name. It keeps the record of the submission. */
static void test_stopped_without_uuid(void **state)
{
	submit_without_uuid();
	rig_stop();
	rig_start("", "");
	assert_true(rig_has_record("mine"));
}

static void dry_run(const char *text)
{
	const struct backend_submission s = {.file = "app.yaml",
					     .text = text,
					     .len = strlen(text),
					     .submitter = "ada@login1"};

	rig.n_answers = 0;
	backend_dry_run(rig.b, &s, rig_reply, NULL);
	fake_run();
}

/* A dry run launches nothing, so kxfs chooses another name at once. */
static void test_dry_run_without_uuid(void **state)
{
	rig.args = &bare;
	rig_start("", "");
	rig_create("{\"metadata\":{\"name\":\"mine\"}}");
	dry_run(RIG_READY);
	fake_end(rig_request(), &exists_again);
	fake_run();
	rig_serve(); /* answers the GET */
	assert_int_equal(rig.n_answers, 0);
	assert_non_null(strstr(rig_request()->path, "dryRun=All"));
	assert_null(strstr(rig_request()->body, "\"mine\""));
}

/* A job that starts to print may have the name that a submission is just trying. */
static void test_name_in_flight(void **state)
{
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	rig_create("{\"metadata\":{\"name\":\"mine\"}}");
	rig_submit(RIG_READY);
	story_run("mine", "u-0", "p1");
	rig_serve();
	rig_serve();
	rig_serve();
	assert_int_equal(rig.err, 0);
	assert_string_not_equal(rig.id, "mine");
	story_pod("MODIFIED", "p1", "u-0", 0, "Running", RIG_RUNNING);
	assert_non_null(rig.streams);
}

/* The pool renders the manifest of a dry run. The mount may end meanwhile. */
static void test_dry_run(void **state)
{
	rig_start("", "");
	for (int ends = 0; ends < 2; ends++) {
		cleanup_free char *object = NULL;

		dry_run(RIG_APP);
		assert_non_null(strstr(rig_request()->path, "dryRun=All"));
		object = text_copy(rig_request()->body);
		fake_answer(rig_request(), 201, object);
		assert_int_equal(rig.n_answers, 0);
		assert_non_null(fake.pool);
		if (ends)
			rig_stop();
		else
			fake_run();
		assert_int_equal(rig.n_answers, 1);
		assert_int_equal(rig.err, 0);
	}
	/* A login page is not a reply of the server. */
	rig_start("", "");
	dry_run(RIG_APP);
	rig_answer(200, RIG_PAGE);
	assert_int_equal(rig.err, -EIO);
	assert_non_null(strstr(rig.text, "Please log in"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_syncs, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_seen_and_gone, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_taken_and_gone, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_conflict, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_named, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_named_without_uuid, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stopped_without_uuid, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_dry_run_without_uuid, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_name_in_flight, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_dry_run, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("kube_launch", tests, NULL, NULL);
}
