/* SPDX-License-Identifier: MIT */
/*
 * The job queue of one machine: which job may run and which GPUs it gets, what the other jobs wait
 * for, and the text that shows this.
 */
#include "spec/base/mem.h"
#include "spec/record/slots.h"
#include "tests/unit/spec/app-document.h"
#include "tests/unit/unit.h"

#define MAX 6

static struct spec_record *job_of_text(const char *text)
{
	const struct spec_record_origin origin = {
		.id = "a",
		.uid = "u",
		.submission = "",
		.submitter = "",
		.work_dir = "/",
		.created = 1,
	};
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;

	assert_int_equal(document_parse(text, strlen(text), NULL, &app, &e), 0);
	return spec_record_new(app, &origin);
}

/* Return a job of one role with N replicas, each of which requests GPU GPUs. */
static struct spec_record *job_of(int n, int gpu)
{
	cleanup_free char *text =
		text_print("name: a\nroles: [{name: r, image: i, entrypoint: e, num_replicas: %d, "
			   "resource: {cpu: 1, gpu: %d, memMB: 1}}]\n",
			   n, gpu);

	return job_of_text(text);
}

static const struct row {
	const char *name;
	unsigned jobs, gpus;
	uint64_t taken; /* the GPUs of a running job, if RUNNING */
	size_t running;
	/* The waiting jobs: the number of replicas, and of GPUs per replica. */
	struct {
		int n, gpu;
		/*
		 * "0,1 2,3" lists the GPUs of each replica. Any other text is what the job waits
		 * for.
		 */
		const char *wanted;
	} v[MAX];
} rows[] = {
	{"one after the other",
	 1,
	 0,
	 0,
	 0,
	 {{1, 0, ""},
	  {1, 2, "waits for a slot: 1 of 1 is in use"},
	  {1, 0, "waits for a slot: 1 of 1 is in use, 1 job ahead of it"},
	  {1, 0, "waits for a slot: 1 of 1 is in use, 2 jobs ahead of it"}}},
	{"GPUs that are not given out",
	 3,
	 0,
	 0,
	 2,
	 {{2, 9, ""}, {1, 0, "waits for a slot: 3 of 3 are in use"}}},
	{"the GPUs of each replica",
	 0,
	 8,
	 0x22,
	 1,
	 {{2, 2, "0,2 3,4"},
	  {1, 0, ""},
	  {1, 2, "6,7"},
	  {1, 1, "waits for 1 GPU: 0 of 8 are free"},
	  {1, 0, "waits in the queue: 1 job ahead of it"}}},
	{"nobody overtakes",
	 0,
	 8,
	 0x7f,
	 1,
	 {{1, 2, "waits for 2 GPUs: 1 of 8 is free"},
	  {1, 1, "waits for 1 GPU: 1 of 8 is free, 1 job ahead of it"}}},
	{"what never fits is in nobody's way",
	 0,
	 2,
	 0,
	 0,
	 {{3, 1, "waits for 3 GPUs, but this mount has only 2"}, {1, 2, "0,1"}}},
	{"all of them",
	 0,
	 64,
	 0,
	 0,
	 {{1, 63, NULL}, {1, 1, "63"}, {1, 1, "waits for 1 GPU: 0 of 64 are free"}}},
	{"both",
	 2,
	 4,
	 0xf,
	 1,
	 {{1, 0, ""},
	  {1, 4, "waits for 4 GPUs: 0 of 4 are free"},
	  {1, 0, "waits for a slot: 2 of 2 are in use, 1 job ahead of it"}}},
	{"a mount with fewer than before",
	 1,
	 2,
	 0xf0,
	 3,
	 {{1, 1, "waits for a slot: 3 of 1 are in use"}}},
};

static char *gpus_of(const struct spec_job *job)
{
	char *ret = text_copy("");

	for (size_t i = 0; i < job->n_replicas; i++) {
		cleanup_free char *numbers = spec_slots_numbers(job->replicas[i].gpus);

		text_set(&ret, "%s%s%s", ret, i && *numbers ? " " : "", numbers);
	}
	return ret;
}

static void check(const struct row *row)
{
	struct spec_slots t = {.jobs = row->jobs,
			       .gpus = spec_slots_first(UINT64_MAX, row->gpus),
			       .running = row->running,
			       .taken = row->taken};
	unsigned place = 0;

	for (size_t i = 0; i < MAX && row->v[i].n; i++) {
		struct spec_record *r = job_of(row->v[i].n, row->v[i].gpu);
		const char *wanted = row->v[i].wanted;
		bool moved = false, given;

		r->queue_number = (int64_t)i + 1;
		given = spec_slots_give(&t, r, &moved);
		assert_int_equal(given, r->queue_number == 0);
		if (given) {
			cleanup_free char *gpus = gpus_of(r->job);

			if (wanted)
				assert_string_equal(gpus, wanted);
		} else {
			assert_true(moved);
			assert_string_equal(r->job->cause.text, wanted);
			assert_string_equal(r->job->cause.reason, "Resources");
			place += !strstr(wanted, "only");
			assert_int_equal(r->job->queue_position,
					 strstr(wanted, "only") ? 0 : place);
		}
		spec_record_free(r);
	}
}

static void test_give(void **state)
{
	for (size_t i = 0; i < array_size(rows); i++) {
		print_message("%s\n", rows[i].name);
		check(&rows[i]);
	}
}

/* A role without a GPU request needs none, and takes none from other roles. */
static void test_roles(void **state)
{
	struct spec_record *r = job_of_text(
		"name: a\nroles: [{name: r, image: i, entrypoint: e, num_replicas: 2}, "
		"{name: s, image: i, entrypoint: e, resource: {cpu: 1, gpu: 2, memMB: 1}}]\n");
	struct spec_slots t = {.gpus = 1};
	bool moved;

	r->queue_number = 1;
	assert_false(spec_slots_give(&t, r, &moved));
	assert_string_equal(r->job->cause.text, "waits for 2 GPUs, but this mount has only 1");
	t.gpus = 3;
	assert_true(spec_slots_give(&t, r, &moved));
	assert_int_equal(r->job->replicas[2].gpus, 3);
	spec_record_free(r);
}

/* A job's change is reported if it waits for something else than before. */
static void test_moved(void **state)
{
	static const struct {
		uint64_t taken;
		bool moved;
		const char *text;
	} looks[] = {
		{3, true, "waits for 2 GPUs: 0 of 2 are free"},
		{3, false, "waits for 2 GPUs: 0 of 2 are free"},
		{1, true, "waits for 2 GPUs: 1 of 2 is free"},
	};
	struct spec_record *r = job_of(1, 2);

	r->queue_number = 1;
	for (size_t i = 0; i < array_size(looks); i++) {
		struct spec_slots t = {.gpus = 3, .running = 1, .taken = looks[i].taken};
		bool moved;

		assert_false(spec_slots_give(&t, r, &moved));
		assert_int_equal(moved, looks[i].moved);
		assert_string_equal(r->job->cause.text, looks[i].text);
	}
	spec_record_free(r);
}

/* A finished job has returned its GPUs. A running job keeps them, even if kxfs is restarted. */
static void test_take(void **state)
{
	struct spec_slots t = {.gpus = 0xf}, then = t;
	struct spec_record *r = job_of(2, 1), *next = job_of(1, 2);
	bool moved;

	r->queue_number = next->queue_number = 1;
	assert_true(spec_slots_give(&t, r, &moved));
	spec_slots_take(&then, r);
	assert_int_equal(then.taken, 3);
	assert_int_equal(then.running, 1);
	assert_true(spec_slots_give(&then, next, &moved));
	assert_int_equal(next->job->replicas[0].gpus, 0xc);
	spec_record_free(r);
	spec_record_free(next);
}

/*
 * The snapshot shows what a job waits for while it waits. An unchanged position is not reported as
 * a change.
 */
static void test_snapshot(void **state)
{
	struct spec_slots t = {.jobs = 1, .running = 1}, again = t;
	struct spec_record *r = job_of(1, 0);
	const struct spec_job *job;
	cleanup_free char *text = NULL, *status = NULL;
	size_t len;
	bool moved;

	r->queue_number = 7;
	assert_false(spec_slots_give(&t, r, &moved));
	assert_false(spec_slots_give(&again, r, &moved));
	assert_false(moved);
	job = spec_record_job(r);
	assert_string_equal(job->cause.reason, "Resources");
	assert_int_equal(job->queue_position, 1);
	assert_false(job->actions & 1u << SPEC_RESTART);
	spec_slots_text(&t, &job, 1, &status, &len);
	assert_string_equal(
		status,
		"name: local\nslots: 1\ngpus: 0\ngpus_free: \"\"\npending: 1\nrunning: 0\njobs:\n"
		"- {id: a, state: PENDING, reason: Resources, queue_position: 1, gpus: {}}\n");
	spec_job_unref(job);
	r->job->suspended = true;
	job = spec_record_job(r);
	assert_string_equal(job->cause.reason, "");
	assert_int_equal(job->queue_position, 0);
	spec_job_unref(job);
	spec_record_free(r);
}

/* A finished or held job is not in the queue. Its GPUs are free once they are no longer counted. */
static void test_text(void **state)
{
	struct spec_slots t = {.gpus = 7};
	struct spec_record *r[3];
	const struct spec_job *jobs[3];
	cleanup_free char *text = NULL;
	size_t len;

	for (size_t i = 0; i < 3; i++) {
		bool moved;

		r[i] = job_of(1, 1);
		assert_true(spec_slots_give(&t, r[i], &moved));
		r[i]->job->state = i == 0 ? SPEC_SUCCEEDED : SPEC_RUNNING;
		r[i]->job->held = i == 1;
		jobs[i] = r[i]->job;
	}
	spec_slots_text(&t, jobs, 3, &text, &len);
	assert_string_equal(text, "name: local\nslots: null\ngpus: 3\ngpus_free: \"\"\n"
				  "pending: 0\nrunning: 1\njobs:\n"
				  "- {id: a, state: RUNNING, reason: \"\", gpus: {r-0: \"2\"}}\n");
	/* A suspended job neither waits nor runs. */
	r[2]->job->state = SPEC_SUBMITTED;
	free(take_ptr(text));
	spec_slots_text(&t, jobs, 3, &text, &len);
	assert_non_null(strstr(text, "pending: 0\nrunning: 0\njobs:\n"));
	for (size_t i = 0; i < 3; i++)
		spec_record_free(r[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_give),	 cmocka_unit_test(test_roles),
		cmocka_unit_test(test_moved),	 cmocka_unit_test(test_take),
		cmocka_unit_test(test_snapshot), cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
