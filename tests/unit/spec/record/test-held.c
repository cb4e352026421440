/* SPDX-License-Identifier: MIT */
/*
 * Held jobs: how they are parsed from a document, written to disk and read again, what they wait
 * for, and what is shown of them.
 */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/job/status.h"
#include "spec/record/held.h"
#include "tests/unit/unit.h"

#define NOW INT64_C(1700000000000000000)
#define APP                                                                                        \
	"name: a\nroles: [{name: r, image: i, entrypoint: e, num_replicas: 2}]\nscheduler_args: "

static int64_t local(int64_t utc)
{
	return utc;
}

static bool find(void *data, const char *name, struct spec_held_after *ret)
{
	cleanup_free char *id = text_print("%s-1", name);

	if (streq(name, "nobody"))
		return false;
	spec_set(&ret->id, id);
	spec_set(&ret->uid, name);
	spec_set(&ret->submission, streq(name, "ours") ? "s-ours" : "");
	return true;
}

/*
 * Return the conditions of a job from a document with ARGS, or NULL if the job is not held. If SAID
 * is not NULL, assert that there is an error that contains SAID.
 */
static struct spec_held *held_by(const char *args, const char *said)
{
	const struct spec_held_place place = {.now = NOW, .local = local, .find = find};
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *text = text_print(APP "%s\n", args), *why = NULL;
	struct spec_held *h;
	int err = spec_held_read(text, strlen(text), &place, &h, &e);

	why = spec_errors_text(&e, "a.yaml");
	assert_int_equal(err, said ? -EINVAL : 0);
	if (said && !strstr(why, said))
		fail_msg("%s: %s", args, why);
	return h;
}

static void test_read(void **state)
{
	/* These are not held. Launching the last three leads to an error. */
	static const char *const free_to_go[] = {"{}", "{queue: q, hold: false}", "{hold: 3}",
						 "[hold]", "{hold: true"};
	struct spec_held *h;

	for (size_t i = 0; i < array_size(free_to_go); i++)
		assert_null(held_by(free_to_go[i], NULL));
	assert_null(held_by("{after: [ok:nobody]}",
			    "a.yaml:3:25: scheduler_args.after: nobody is neither a job"));
	h = held_by("{hold: true, begin: +1m, after: [ok:b, any:ours]}", NULL);
	assert_true(h->hold && h->begin == NOW + 60 * INT64_C(1000000000));
	assert_int_equal(h->n_after, 2);
	assert_string_equal(h->after[0].id, "b-1");
	assert_string_equal(h->after[1].submission, "s-ours");
	spec_held_free(h);
}

static void test_part(void **state)
{
	static const char *const bad[] = {"{}", "{", "{\"hold\":1,\"begin\":0}",
					  "{\"hold\":true,\"begin\":0,\"after\":[{}]}"};
	struct spec_held *h =
		held_by("{hold: true, begin: +1m, after: [failed:b, any:ours, ok:c]}", NULL);
	struct spec_held *back;
	cleanup_free char *text = NULL, *again = NULL;

	/*
	 * A condition that was met is not written any more. One that can't be met is written, so
	 * that no later start considers it met.
	 */
	h->after[0].wait = SPEC_WAIT_MET;
	h->after[1].wait = SPEC_WAIT_NEVER;
	text = spec_held_part(h);
	assert_int_equal(spec_held_parse(text, &back), 0);
	assert_true(back->hold && back->begin == h->begin);
	assert_int_equal(back->n_after, 2);
	assert_string_equal(back->after[0].submission, "s-ours");
	assert_int_equal(back->after[1].how, SPEC_AFTER_OK);
	again = spec_held_part(back);
	assert_string_equal(text, again);
	spec_held_free(back);
	spec_held_free(h);
	/* A job that was being launched waits for nothing. */
	assert_int_equal(spec_held_parse(NULL, &back), 0);
	assert_true(!back->hold && !back->begin && back->n_after == 0);
	spec_held_free(back);
	for (size_t i = 0; i < array_size(bad); i++)
		assert_int_equal(spec_held_parse(bad[i], &back), -EINVAL);
}

/* Return a job in STATE; NULL if STATE is negative. */
static struct spec_job *job_in(int state)
{
	struct spec_job *job = state < 0 ? NULL : spec_job_new(0, 0);

	if (job) {
		spec_set(&job->uid, "b");
		job->state = (enum spec_state)state;
	}
	return job;
}

#define NONE -1

static void test_settle(void **state)
{
	static const struct {
		enum spec_after how;
		int old, now; /* states */
		enum spec_wait wait;
	} rows[] = {
		{SPEC_AFTER_OK, NONE, SPEC_RUNNING, SPEC_WAIT_OPEN},
		{SPEC_AFTER_OK, NONE, SPEC_UNKNOWN, SPEC_WAIT_OPEN},
		{SPEC_AFTER_OK, SPEC_RUNNING, SPEC_SUCCEEDED, SPEC_WAIT_MET},
		{SPEC_AFTER_OK, NONE, SPEC_FAILED, SPEC_WAIT_NEVER},
		{SPEC_AFTER_OK, SPEC_RUNNING, NONE, SPEC_WAIT_NEVER},
		{SPEC_AFTER_OK, SPEC_SUCCEEDED, NONE, SPEC_WAIT_MET},
		{SPEC_AFTER_OK, NONE, NONE, SPEC_WAIT_NEVER},
		{SPEC_AFTER_FAILED, NONE, SPEC_FAILED, SPEC_WAIT_MET},
		{SPEC_AFTER_FAILED, NONE, SPEC_CANCELLED, SPEC_WAIT_MET},
		{SPEC_AFTER_FAILED, SPEC_PENDING, NONE, SPEC_WAIT_MET},
		{SPEC_AFTER_FAILED, NONE, SPEC_SUCCEEDED, SPEC_WAIT_NEVER},
		{SPEC_AFTER_FAILED, NONE, NONE, SPEC_WAIT_NEVER},
		{SPEC_AFTER_ANY, NONE, SPEC_PENDING, SPEC_WAIT_OPEN},
		{SPEC_AFTER_ANY, NONE, SPEC_FAILED, SPEC_WAIT_MET},
		{SPEC_AFTER_ANY, NONE, NONE, SPEC_WAIT_MET},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_job *old = job_in(rows[i].old), *now = job_in(rows[i].now);
		struct spec_held_after after = {.how = rows[i].how, .end = spec_empty()};
		bool news = spec_held_settle(&after, old, now);

		if (after.wait != rows[i].wait || news != (after.wait != SPEC_WAIT_OPEN))
			fail_msg("row %zu: %u", i, after.wait);
		/* A decided condition does not change any more. */
		assert_false(spec_held_settle(&after, now, NULL) && news);
		spec_unset(&after.end);
		spec_job_unref(old);
		spec_job_unref(now);
	}
}

static void test_suspended(void **state)
{
	struct spec_job *job = job_in(SPEC_CANCELLED);
	struct spec_held_after after = {.how = SPEC_AFTER_ANY, .end = spec_empty()};

	job->suspended = true; /* it may continue */
	assert_false(spec_held_settle(&after, NULL, job));
	job->state = SPEC_FAILED;
	job->suspended = false;
	job->unexplained = true;
	assert_false(spec_held_settle(&after, NULL, job));
	spec_job_unref(job);
}

static void test_means(void **state)
{
	struct spec_held *h = held_by("{after: [ok:b, ok:ours]}", NULL);
	struct spec_job *job = job_in(SPEC_RUNNING);

	assert_true(spec_held_means(&h->after[0], job));
	assert_false(spec_held_means(&h->after[1], job));
	spec_set(&job->uid, "x");
	spec_set(&job->submission, "s-ours");
	assert_false(spec_held_means(&h->after[1], job)); /* anybody can copy this annotation */
	job->own = true;
	assert_true(spec_held_means(&h->after[1], job));
	spec_set(&job->submission, "");
	assert_false(spec_held_means(&h->after[0], job));
	spec_job_unref(job);
	spec_held_free(h);
}

/*
 * Return the snapshot of a job with the conditions H, in the state RECORD. Set *RET_WHY to its
 * `why`.
 */
static struct spec_job *show(enum record_state record, struct spec_held *h,
			     const struct spec_held_progress *news, char **ret_why)
{
	struct spec_head *head cleanup(spec_head_freep) = spec_head_new();
	static const char document[] = APP "{}\n";
	struct spec_job *shape = spec_held_shape(document, strlen(document), NULL);
	struct spec_job *job;
	size_t len;

	spec_set(&head->id, "a-1");
	spec_set(&head->key, "uuid");
	head->state = record;
	head->since = NOW;
	job = spec_held_job(head, h, shape, news);
	spec_job_unref(shape);
	spec_status_why(job, ~0u, ret_why, &len);
	return job;
}

/* tests/mount/test_queue.py has the texts of a mount that launches the job later. */
static void test_shown(void **state)
{
	static const struct {
		bool passive;
		const char *refusal;
		const char *args, *reason, *why;
	} rows[] = {
		{false, NULL, "{begin: 2001-01-01}", "Launching",
		 "The job waits until kxfs has launched it.\n"},
		{true, NULL, "{begin: 2001-01-01}", "ReadOnly",
		 "The job waits to be launched; this mount is read-only and launches no jobs.\n"},
		{true, NULL, "{hold: true}", "Held",
		 "The job waits to be released; this mount is read-only and launches no jobs. "
		 "To release the job, write \"release\" to its file ctl.\n"},
		{true, NULL, "{after: [ok:b], begin: 2030-01-02}", "Dependency",
		 "The job waits for b-1 to succeed, and until 2030-01-02T00:00:00Z; this mount "
		 "is read-only and launches no jobs.\n"},
		{false, "no\nand more", "{begin: 2001-01-01}", "LaunchDelayed",
		 "The job waits: the launch failed (kxfs retries): no.\n"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_held *h = held_by(rows[i].args, NULL);
		const struct spec_held_progress news = {.refusal = rows[i].refusal,
							.now = NOW,
							.passive = rows[i].passive};
		cleanup_free char *why = NULL;
		struct spec_job *job = show(RECORD_HELD, h, &news, &why);

		assert_string_equal(why, rows[i].why);
		assert_string_equal(job->cause.reason, rows[i].reason);
		assert_string_equal(job->app, "a");
		assert_string_equal(job->phase, "Held");
		assert_true(job->held && job->own && job->has_appdef && job->n_replicas == 2);
		assert_int_equal(job->state, SPEC_PENDING);
		assert_int_equal(job->actions, h->hold ? 1u << SPEC_RELEASE : 0);
		spec_job_unref(job);
		spec_held_free(h);
	}
}

/* It was sent, and it is unknown whether it was launched. */
static void test_sent(void **state)
{
	static const struct {
		enum spec_sending sending;
		enum spec_state state;
		const char *reason, *said;
	} rows[] = {
		{SPEC_SENDING, SPEC_PENDING, "Launching", "until kxfs has launched it"},
		{SPEC_SENDING_ASKED, SPEC_SUBMITTED, "Submitting", "the server may have the job"},
		{SPEC_SENDING_LOST, SPEC_SUBMITTED, "LaunchUnknown", "may have had it"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_held *h = held_by("{begin: 2001-01-01}", NULL);
		const struct spec_held_progress news = {.now = NOW, .sending = rows[i].sending};
		cleanup_free char *why = NULL;
		struct spec_job *job = show(RECORD_SUBMITTING, h, &news, &why);

		assert_non_null(strstr(why, rows[i].said));
		assert_string_equal(job->cause.reason, rows[i].reason);
		assert_int_equal(job->state, rows[i].state);
		assert_int_equal(job->actions,
				 rows[i].sending == SPEC_SENDING_LOST ? 1u << SPEC_RELEASE : 0);
		spec_job_unref(job);
		spec_held_free(h);
	}
}

static void test_judge(void **state)
{
	struct spec_held *h = held_by("{hold: true, begin: 2023-11-14T22:13:20}", NULL);
	struct spec_job *failed = job_in(SPEC_FAILED);
	char *why;

	assert_int_equal(spec_held_judge(h, NOW, &why), SPEC_DECISION_WAIT);
	h->hold = false;
	assert_int_equal(spec_held_judge(h, NOW - 1, &why), SPEC_DECISION_WAIT);
	assert_int_equal(spec_held_judge(h, NOW, &why), SPEC_DECISION_GO);
	spec_held_free(h);
	h = held_by("{after: [ok:b]}", NULL);
	assert_int_equal(spec_held_judge(h, NOW, &why), SPEC_DECISION_WAIT);
	assert_true(spec_held_settle(&h->after[0], NULL, failed));
	assert_int_equal(spec_held_judge(h, NOW, &why), SPEC_DECISION_NEVER);
	assert_string_equal(why, "it waited for b-1 to succeed, but b-1 failed");
	free(why);
	spec_held_free(h);
	spec_job_unref(failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),   cmocka_unit_test(test_part),
		cmocka_unit_test(test_settle), cmocka_unit_test(test_suspended),
		cmocka_unit_test(test_means),  cmocka_unit_test(test_shown),
		cmocka_unit_test(test_sent),   cmocka_unit_test(test_judge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
