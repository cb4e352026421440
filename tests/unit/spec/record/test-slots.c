/* SPDX-License-Identifier: MIT */
/*
 * The job queue of one machine: which job may run and which GPUs it gets, what the other jobs wait
 * for, and the text that shows this.
 */
#include "spec/base/mem.h"
#include "spec/record/slots.h"
#include "tests/unit/spec/app-document.h"
#include "tests/unit/unit.h"

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
	struct spec_record *ret;

	assert_int_equal(document_parse(text, strlen(text), NULL, &app, &e), 0);
	ret = spec_record_new(app, &origin);
	ret->queue_number = 1; /* it waits */
	return ret;
}

/* Return a waiting job of one role with N replicas, each of which requests GPU GPUs. */
static struct spec_record *job_of(unsigned n, unsigned gpu)
{
	cleanup_free char *text =
		text_print("name: a\nroles: [{name: r, image: i, entrypoint: e, num_replicas: %u, "
			   "resource: {cpu: 1, gpu: %u, memMB: 1}}]\n",
			   n, gpu);

	return job_of_text(text);
}

/*
 * A queue, and its waiting jobs in order, one per line: the number of replicas, x the GPUs of each,
 * and what the job gets or waits for. "gets 0,1 2,3" lists the GPUs of each replica.
 */
static const struct row {
	unsigned jobs, gpus; /* the maximum of running jobs, and the GPUs of the machine */
	uint64_t taken;	     /* the GPUs of the running jobs */
	size_t running;
	const char *story;
} rows[] = {
	{.jobs = 1,
	 .story = "1x0 gets\n"
		  "1x2 waits for a slot: 1 of 1 is in use\n"
		  "1x0 waits for a slot: 1 of 1 is in use, 1 job ahead of it\n"
		  "1x0 waits for a slot: 1 of 1 is in use, 2 jobs ahead of it\n"},
	/* GPUs that are not managed */
	{.jobs = 3,
	 .running = 2,
	 .story = "2x9 gets\n"
		  "1x0 waits for a slot: 3 of 3 are in use\n"},
	{.gpus = 8,
	 .taken = 0x22,
	 .running = 1,
	 .story = "2x2 gets 0,2 3,4\n"
		  "1x0 gets\n"
		  "1x2 gets 6,7\n"
		  "1x1 waits for 1 GPU: 0 of 8 are free\n"
		  "1x0 waits in the queue: 1 job ahead of it\n"},
	/* Nobody overtakes. */
	{.gpus = 8,
	 .taken = 0x7f,
	 .running = 1,
	 .story = "1x2 waits for 2 GPUs: 1 of 8 is free\n"
		  "1x1 waits for 1 GPU: 1 of 8 is free, 1 job ahead of it\n"},
	/* What never fits is in nobody's way. */
	{.gpus = 2,
	 .story = "3x1 waits for 3 GPUs, but this mount has only 2\n"
		  "1x2 gets 0,1\n"},
	/* the last bit of the set */
	{.gpus = 64,
	 .taken = UINT64_MAX / 2,
	 .running = 1,
	 .story = "1x1 gets 63\n"
		  "1x1 waits for 1 GPU: 0 of 64 are free\n"},
	{.jobs = 2,
	 .gpus = 4,
	 .taken = 0xf,
	 .running = 1,
	 .story = "1x0 gets\n"
		  "1x4 waits for 4 GPUs: 0 of 4 are free\n"
		  "1x0 waits for a slot: 2 of 2 are in use, 1 job ahead of it\n"},
	/* a mount with fewer slots and GPUs than before */
	{.jobs = 1,
	 .gpus = 2,
	 .taken = 0xf0,
	 .running = 3,
	 .story = "1x1 waits for a slot: 3 of 1 are in use\n"},
};

/* Add to *STORY what the waiting job R gets or waits for. *PLACE counts the jobs in the queue. */
static void tell(char **story, const struct spec_record *r, bool given, unsigned *place)
{
	const struct spec_job *job = r->job;

	assert_int_equal(given, r->queue_number == 0);
	if (given) {
		text_set(story, "%sgets", *story);
		for (size_t i = 0; i < job->n_replicas; i++) {
			cleanup_free char *numbers = spec_slots_numbers(job->replicas[i].gpus);

			text_set(story, "%s%s%s", *story, *numbers ? " " : "", numbers);
		}
	} else {
		bool never = strstr(job->cause.text, "only");

		text_set(story, "%s%s", *story, job->cause.text);
		assert_string_equal(job->cause.reason, "Resources");
		assert_int_equal(job->queue_position, never ? 0 : ++*place);
	}
	text_set(story, "%s\n", *story);
}

static void test_give(void **state)
{
	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_slots t = {.jobs = rows[i].jobs,
				       .gpus = spec_slots_first(UINT64_MAX, rows[i].gpus),
				       .running = rows[i].running,
				       .taken = rows[i].taken};
		cleanup_free char *story = text_copy("");
		unsigned place = 0, n, gpu;

		for (const char *line = rows[i].story; *line; line = strchr(line, '\n') + 1) {
			struct spec_record *r;
			bool moved;

			assert_int_equal(sscanf(line, "%ux%u", &n, &gpu), 2);
			r = job_of(n, gpu);
			text_set(&story, "%s%ux%u ", story, n, gpu);
			tell(&story, r, spec_slots_give(&t, r, &moved), &place);
			spec_record_free(r);
		}
		assert_string_equal(story, rows[i].story);
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
	cleanup_job struct spec_job *job = NULL;

	for (size_t i = 0; i < array_size(looks); i++) {
		struct spec_slots t = {.gpus = 3, .running = 1, .taken = looks[i].taken};
		bool moved;

		assert_false(spec_slots_give(&t, r, &moved));
		assert_int_equal(moved, looks[i].moved);
		assert_string_equal(r->job->cause.text, looks[i].text);
	}
	/* A suspended job does not show what it waited for. */
	r->job->suspended = true;
	job = spec_record_job(r);
	assert_string_equal(job->cause.reason, "");
	assert_int_equal(job->queue_position, 0);
	spec_record_free(r);
}

/* A finished job has returned its GPUs. A running job keeps them, even if kxfs is restarted. */
static void test_take(void **state)
{
	struct spec_slots t = {.gpus = 0xf}, then = t;
	struct spec_record *r = job_of(2, 1), *next = job_of(1, 2);
	bool moved;

	assert_true(spec_slots_give(&t, r, &moved));
	spec_slots_take(&then, r);
	assert_int_equal(then.taken, 3);
	assert_int_equal(then.running, 1);
	assert_true(spec_slots_give(&then, next, &moved));
	assert_int_equal(next->job->replicas[0].gpus, 0xc);
	spec_record_free(r);
	spec_record_free(next);
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
	r[2]->job->state = SPEC_PENDING;
	r[2]->job->queue_position = 1;
	free(take_ptr(text));
	spec_slots_text(&t, jobs, 3, &text, &len);
	assert_non_null(strstr(text, "pending: 1\nrunning: 0\njobs:\n- {id: a, state: PENDING, "
				     "reason: \"\", queue_position: 1, gpus: {r-0: \"2\"}}\n"));
	for (size_t i = 0; i < 3; i++)
		spec_record_free(r[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_give),  cmocka_unit_test(test_roles),
		cmocka_unit_test(test_moved), cmocka_unit_test(test_take),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
