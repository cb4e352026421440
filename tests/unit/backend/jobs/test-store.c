/* SPDX-License-Identifier: MIT */
/* The store: places, order, notifications, and many readers at the same time. */
#include <pthread.h>
#include <stdatomic.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/jobs/store.h"
#include "tests/unit/unit.h"

static struct store *store;
static char told[4096];

/*
 * Note the change as "old>new ", each as "id:phase", or "-" for none. Check whether the store shows
 * the new job.
 */
static void on_job(void *data, const struct spec_job *old, const struct spec_job *new_job)
{
	size_t n = strlen(told);

	assert_int_equal(lock_held, 0);
	if (new_job) {
		const struct spec_job *now cleanup_job = store_get_uid(store, new_job->uid);

		assert_ptr_equal(now, new_job);
	}
	snprintf(told + n, sizeof(told) - n, "%s%s%s>%s%s%s ", old ? old->id : "-", old ? ":" : "",
		 old ? old->phase : "", new_job ? new_job->id : "-", new_job ? ":" : "",
		 new_job ? new_job->phase : "");
}

static const struct store_events events = {.changed = on_job};
static const struct store_events no_events;

static int setup(void **state)
{
	told[0] = '\0';
	store = store_new(&events);
	return 0;
}

static int teardown(void **state)
{
	store_free(store);
	store = NULL;
	return 0;
}

static struct spec_job *job_new(const char *id, const char *uid, int64_t created, const char *phase,
				bool history)
{
	struct spec_job *job = spec_job_new(0, 0);

	assert_non_null(job);
	spec_set(&job->id, id);
	spec_set(&job->uid, uid);
	spec_set(&job->phase, phase);
	job->created = created;
	job->history = history;
	return job;
}

static void put(const char *id, const char *uid, int64_t created, const char *phase, bool history)
{
	store_put(store, job_new(id, uid, created, phase, history));
}

static void expect_list(enum backend_place place, const char *ids)
{
	struct store_jobs jobs;
	char got[1024] = "";

	store_list(store, place, &jobs);
	assert_int_equal(jobs.n, store_count(store, place));
	for (size_t i = 0; i < jobs.n; i++) {
		strcat(got, jobs.v[i]->id);
		strcat(got, " ");
	}
	store_jobs_clear(&jobs);
	assert_string_equal(got, ids);
}

static void expect_phase(enum backend_place place, const char *id, const char *phase)
{
	const struct spec_job *job cleanup_job = store_get(store, place, id);

	assert_string_equal(job ? job->phase : "none", phase);
}

/* Each change has its own number. The number of a place is that of its last change. */
static void test_revision(void **state)
{
	uint64_t jobs = store_revision(store, BACKEND_JOBS);
	uint64_t history = store_revision(store, BACKEND_HISTORY);
	const struct spec_job *first cleanup_job = NULL;
	const struct spec_job *second cleanup_job = NULL;

	put("a", "u1", 1, "one", false);
	first = store_get(store, BACKEND_JOBS, "a");
	assert_int_equal(store_revision(store, BACKEND_JOBS), first->revision);
	assert_true(first->revision > jobs);
	put("a", "u1", 1, "two", false);
	second = store_get(store, BACKEND_JOBS, "a");
	assert_true(second->revision > first->revision);
	assert_int_equal(store_revision(store, BACKEND_JOBS), second->revision);
	assert_int_equal(store_revision(store, BACKEND_HISTORY), history);
	jobs = second->revision;

	put("a", "u1", 1, "three", true);
	assert_true(store_revision(store, BACKEND_JOBS) > jobs);
	assert_true(store_revision(store, BACKEND_HISTORY) > history);
	jobs = store_revision(store, BACKEND_JOBS);
	history = store_revision(store, BACKEND_HISTORY);
	store_remove(store, "u1");
	assert_true(store_revision(store, BACKEND_HISTORY) > history);
	assert_int_equal(store_revision(store, BACKEND_JOBS), jobs);
}

static void test_life_of_a_job(void **state)
{
	const struct spec_job *old cleanup_job = NULL;
	int64_t jobs, history;

	jobs = store_changed(store, BACKEND_JOBS);
	history = store_changed(store, BACKEND_HISTORY);
	put("a", "u1", 1, "one", false);
	assert_true(store_changed(store, BACKEND_JOBS) > jobs);
	jobs = store_changed(store, BACKEND_JOBS);
	old = store_get(store, BACKEND_JOBS, "a");
	put("a", "u1", 1, "two", false);
	assert_string_equal(old->phase, "one"); /* a snapshot never changes */
	expect_phase(BACKEND_JOBS, "a", "two");
	assert_int_equal(store_changed(store, BACKEND_JOBS), jobs); /* the names did not change */
	assert_int_equal(store_changed(store, BACKEND_HISTORY), history);

	put("a", "u1", 1, "three", true);
	expect_phase(BACKEND_JOBS, "a", "none");
	expect_phase(BACKEND_HISTORY, "a", "three");
	assert_true(store_changed(store, BACKEND_JOBS) > jobs);
	assert_true(store_changed(store, BACKEND_HISTORY) > history);
	history = store_changed(store, BACKEND_HISTORY);

	store_remove(store, "u1");
	store_remove(store, "u1");
	expect_phase(BACKEND_HISTORY, "a", "none");
	assert_null(store_get_uid(store, "u1"));
	assert_true(store_changed(store, BACKEND_HISTORY) > history);
	assert_string_equal(told, "->a:one a:one>a:two a:two>a:three a:three>- ");
}

static void test_order(void **state)
{
	put("c", "u3", 30, "", false);
	put("a", "u1", 10, "", false);
	put("z", "u4", 20, "", false);
	put("b", "u2", 20, "", false);
	expect_list(BACKEND_JOBS, "a b z c ");
	put("z", "u4", 99, "later snapshot, same place in the list", false);
	expect_list(BACKEND_JOBS, "a b z c ");
	put("b", "u2", 20, "", true);
	put("a", "u1", 10, "", true);
	expect_list(BACKEND_JOBS, "z c ");
	expect_list(BACKEND_HISTORY, "a b ");
	put("a", "u1", 10, "", false);
	expect_list(BACKEND_JOBS, "a z c ");
	store_remove(store, "u4");
	expect_list(BACKEND_JOBS, "a c ");
	expect_list(BACKEND_HISTORY, "b ");
}

static void test_same_id(void **state)
{
	put("a", "u1", 1, "first", true);
	put("a", "u2", 2, "second", false);
	expect_phase(BACKEND_HISTORY, "a", "first");
	expect_phase(BACKEND_JOBS, "a", "second");
	told[0] = '\0';
	put("a", "u2", 2, "second", true); /* the newer job gets the name */
	assert_string_equal(told, "a:first>a~u1:first a:second>a:second ");
	expect_phase(BACKEND_HISTORY, "a", "second");
	expect_phase(BACKEND_HISTORY, "a~u1", "first");
	expect_list(BACKEND_HISTORY, "a~u1 a ");
	expect_list(BACKEND_JOBS, "");
	/* A job keeps its name as long as it is in that place. */
	put("a", "u1", 1, "again", true);
	expect_phase(BACKEND_HISTORY, "a~u1", "again");
	put("a", "u0", 1, "oldest", true);
	expect_list(BACKEND_HISTORY, "a~u0 a~u1 a ");
	store_remove(store, "u2");
	expect_list(BACKEND_HISTORY, "a~u0 a~u1 ");
	/* The first job is in the cluster again. */
	put("a", "u1", 1, "back", false);
	expect_phase(BACKEND_JOBS, "a", "back");
	expect_list(BACKEND_HISTORY, "a~u0 ");
}

/*
 * A start gives jobs the same names, in whatever order it finds them and whatever they were called
 * before.
 */
static void test_names_over_starts(void **state)
{
	static const char *const ids[][3] = {{"a", "a", "a"},
					     {"a~u1", "a~u2", "a"},
					     {"a", "a~u2", "a~u3"}};
	char uid[] = "u1";

	for (size_t how = 0; how < array_size(ids); how++) {
		for (unsigned i = 0; i < 3; i++) {
			unsigned k = how % 2 ? i : 2 - i;

			uid[1] = (char)('1' + k);
			put(ids[how][k], uid, k < 2 ? 5 : 7, "", true);
		}
		expect_list(BACKEND_HISTORY, "a~u1 a~u2 a ");
		for (unsigned i = 0; i < 3; i++) {
			uid[1] = (char)('1' + i);
			store_remove(store, uid);
		}
	}
}

/* Uids and ids are untrusted. */
static void test_strange_names(void **state)
{
	char longest[256];

	memset(longest, 'x', 253);
	longest[253] = '\0';
	put(longest, "12345678-1", 1, "first", true);
	put(longest, "12345678-2", 2, "second", true);
	put(longest, "12345678-3", 3, "third", true);
	put("b", "../..", 1, "first", true);
	put("b", "..//..", 2, "second", true);
	put("b", "./", 3, "third", true);
	assert_int_equal(store_count(store, BACKEND_HISTORY), 6);
	expect_phase(BACKEND_HISTORY, longest, "third");
	longest[246] = '\0';
	strcat(longest, "~12345678");
	assert_int_equal(strlen(longest), 255);
	expect_phase(BACKEND_HISTORY, longest, "first");
	longest[244] = '\0';
	strcat(longest, "~12345678~2");
	expect_phase(BACKEND_HISTORY, longest, "second");
	expect_phase(BACKEND_HISTORY, "b", "third");
	expect_phase(BACKEND_HISTORY, "b~", "first");
	expect_phase(BACKEND_HISTORY, "b~~2", "second");
}

#define MANY 3000

static atomic_bool reading;
static atomic_uint wrong;

static void *reader(void *data)
{
	while (atomic_load(&reading)) {
		struct store_jobs jobs;

		store_list(store, BACKEND_JOBS, &jobs);
		for (size_t i = 1; i < jobs.n; i++) {
			if (jobs.v[i - 1]->created > jobs.v[i]->created)
				atomic_fetch_add(&wrong, 1);
		}
		store_jobs_clear(&jobs);
		spec_job_unref(store_get(store, BACKEND_HISTORY, "job-7"));
		spec_job_unref(store_get_uid(store, "uid-9"));
	}
	return NULL;
}

static void test_readers(void **state)
{
	pthread_t thread[2];
	char id[32], uid[32];

	store_free(store);
	store = store_new(&no_events);
	atomic_store(&reading, true);
	for (size_t i = 0; i < array_size(thread); i++)
		pthread_create(&thread[i], NULL, reader, NULL);
	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "job-%d", i);
		snprintf(uid, sizeof(uid), "uid-%d", i);
		put(id, uid, (i * 7919) % MANY, "", false);
		put(id, uid, (i * 7919) % MANY, "", i % 3 == 0);
		if (i % 5 == 0)
			store_remove(store, uid);
	}
	atomic_store(&reading, false);
	for (size_t i = 0; i < array_size(thread); i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	assert_int_equal(store_count(store, BACKEND_JOBS), MANY * 8 / 15);
	assert_int_equal(store_count(store, BACKEND_HISTORY), MANY * 4 / 15);
}

/*
 * A held job is found by its submission until it has a uid. Then the uid and the submission find
 * the same job, in the same position.
 */
static void test_held(void **state)
{
	struct spec_job *job = job_new("a-1", "s1", 1, "Held", false);
	const struct spec_job *found;

	job->held = job->own = true;
	spec_set(&job->submission, "s1");
	store_put(store, job);
	/* Somebody else's job has a copy of that annotation. */
	job = job_new("b", "u2", 2, "Running", false);
	spec_set(&job->submission, "s1");
	store_put(store, job);
	told[0] = '\0';
	job = job_new("a-1", "u1", 3, "Pending", false);
	job->own = true;
	spec_set(&job->submission, "s1");
	store_put(store, job);
	assert_string_equal(told, "a-1:Held>a-1:Pending ");
	expect_list(BACKEND_JOBS, "a-1 b "); /* the job kept its position */
	for (int i = 0; i < 2; i++) {
		found = store_get_uid(store, i ? "u1" : "s1");
		assert_string_equal(found->phase, "Pending");
		spec_job_unref(found);
	}
	put("a-1", "u1", 3, "Gone", true);
	assert_null(store_get(store, BACKEND_JOBS, "a-1"));
	store_remove(store, "u1");
	assert_null(store_get_uid(store, "s1"));
	job = job_new("c", "u3", 2, "Running", false);
	spec_set(&job->submission, "s3");
	store_put(store, job);
	assert_null(store_get_uid(store, "s3"));
	/* Jobs with the same time are sorted by name, whatever their uids are. */
	put("a", "u4", 2, "Running", false);
	expect_list(BACKEND_JOBS, "a b c ");
}

/* The daemon's messages report once that a job has ended, and how. */
static void test_end_is_said(void **state)
{
	static const char line[] = "said: FAILED, Error: it broke\n";
	static const enum spec_state states[] = {SPEC_RUNNING, SPEC_FAILED, SPEC_FAILED};
	cleanup_free char *before = NULL, *text = NULL;
	const char *at;
	size_t len;

	for (size_t i = 0; i < array_size(states); i++) {
		struct spec_job *job = job_new("said", "u", 1, "x", false);

		job->state = states[i];
		spec_set(&job->reason, "Error");
		spec_set(&job->message, "it broke");
		store_put(store, job);
		if (i == 0)
			before = diag_text(&len);
	}
	assert_null(strstr(before, line));
	text = diag_text(&len);
	at = strstr(text, line);
	assert_non_null(at);
	assert_null(strstr(at + 1, line));
}

int main(void)
{
#define store_test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		store_test(test_life_of_a_job), store_test(test_revision),
		store_test(test_order),		store_test(test_same_id),
		store_test(test_readers),	store_test(test_held),
		store_test(test_end_is_said),	store_test(test_names_over_starts),
		store_test(test_strange_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
