/* SPDX-License-Identifier: MIT */
/* When a local job is shown. The test plays the record's file and the store. */
#include "backend/jobs/store.h"
#include "backend/local/record.h"
#include "spec/base/mem.h"
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/noted.h"
#include "tests/unit/spec/app-document.h"

static struct rig {
	struct local_record *record;
	struct spec_head head;
} rig;

/* --- records.h --- */

const struct spec_head *record_head(const struct record *r)
{
	return &rig.head;
}

void records_commit(struct record *r, const struct record_change *change, records_fn done,
		    void *data)
{
	cleanup_free char *text = local_record_part(rig.record, RECORD_SNAPSHOT);

	rig.head.state = change->state;
	local_record_written(rig.record, 0);
}

/* Write all changes, if the record allows that. */
static void write_record(void)
{
	fake_pass(0);
}

/* --- store.h --- */

void store_put(struct store *store, struct spec_job *job)
{
	note("shown %s", job->id);
	spec_job_unref(job);
}

/* --- the callbacks of the job --- */

static void on_published(void *data, const struct spec_job *snap)
{
}

static void on_record_written(void *data, int err, uint64_t change)
{
	assert_int_equal(err, 0);
}

static void on_settled(void *data)
{
}

static const struct local_record_events events = {
	.published = on_published,
	.written = on_record_written,
	.settled = on_settled,
};

/* Create a job with two replicas. */
static int setup(void **state)
{
	static const char text[] =
		"name: job\nroles:\n- {name: a, image: i, entrypoint: e, num_replicas: 2}\n";
	const struct spec_record_origin origin = {.id = "job", .ttl = -1, .uid = "u"};
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;

	rig = (struct rig){.head.state = RECORD_SUBMITTING};
	forget_noted();
	assert_int_equal(document_parse(text, strlen(text), NULL, &app, &e), 0);
	rig.record =
		local_record_new(NULL, NULL, NULL, spec_record_new(app, &origin), &events, NULL);
	return 0;
}

static int teardown(void **state)
{
	local_record_free(rig.record);
	assert_null(fake.timers);
	return 0;
}

/* The job is shown only after the start of each replica was tried. */
static void test_all_tried(void **state)
{
	for (int i = 0; i < 2; i++) {
		write_record();
		assert_done("");
		local_record_tried(rig.record);
		local_record_changed(rig.record);
	}
	write_record();
	assert_done("shown job");
}

/* A helper hangs and reports nothing, so nothing changes. The job is shown soon, all the same. */
static void test_nothing_is_heard(void **state)
{
	fake_pass(1000);
	write_record();
	assert_done("");
	fake_pass(1000);
	write_record();
	assert_done("shown job");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_tried, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_heard, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
