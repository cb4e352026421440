/* SPDX-License-Identifier: MIT */
/*
 * Which jobs are removed, in which order and when. The test controls the clock, the timer and the
 * size of the output on disk.
 */
#include "backend/archive/archive.h"
#include "backend/base/diag.h"
#include "backend/jobs/expiry.h"
#include "backend/output/output.h"
#include "spec/base/mem.h"
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/noted.h"

#define S INT64_C(1000000000)

/* --- the modules that expiry calls --- */

static uint64_t bytes;

uint64_t output_bytes(struct output *output)
{
	return bytes;
}

static const char *lacks; /* id of the job that the archive does not have yet */
static bool away;	  /* the archive accepts no jobs */

bool archive_lacks(const struct archive *a, const char *uid)
{
	return streq(lacks, uid);
}

bool archive_gives_up(const struct archive *a, const char *uid)
{
	return away;
}

/* --- the rig --- */

static int64_t began; /* the time at which the test began, in ns */
static struct store *store;
static struct expiry *x;
static bool busy, slow;	 /* SLOW: a removal takes long */
static const char *held; /* this job must not be removed */
static char dropped[64]; /* jobs whose output was removed */

/*
 * Add a job that last changed CHANGED s after the test began, and finished FINISHED s after it began.
 * A TTL of -1 means none.
 */
static void put_ttl(const char *id, enum spec_state state, int64_t changed, bool history,
		    int64_t finished, int64_t ttl)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, id);
	spec_set(&job->uid, id);
	job->state = state;
	job->changed = began + changed * S;
	job->history = history;
	job->finished = began + finished * S;
	job->ttl = ttl;
	store_put(store, job);
}

static void put(const char *id, enum spec_state state, int64_t changed, bool history)
{
	put_ttl(id, state, changed, history, 0, -1);
}

static bool may_go(void *data, const struct spec_job *job)
{
	return !streq(job->id, held);
}

static bool is_busy(void *data)
{
	return busy;
}

static bool has_output(void *data, const struct spec_job *job)
{
	return !strstr(dropped, job->id);
}

static void retire(void *data, const struct spec_job *job)
{
	note("%s>", job->id);
	put(job->id, job->state, (loop_time_ns() - began) / S, true);
}

static void remove_job(void *data, const struct spec_job *job)
{
	note("%s", job->id);
	store_remove(store, job->uid);
	expiry_now(x);
}

/* Remove the output of JOB, 100 bytes, but keep the job. */
static void drop_output(void *data, const struct spec_job *job)
{
	note("%s/", job->id);
	busy = slow;
	bytes -= min_of(bytes, (uint64_t)100);
	strcat(dropped, job->id);
	if (!slow)
		expiry_now(x);
}

/* Let MS pass, and assert what was done since the last call. */
static void expect(uint64_t ms, const char *want)
{
	fake_pass(ms);
	assert_done(want);
}

static int setup(void **state)
{
	const struct store_events events = {0};

	diag_setup(DIAG_DEBUG, false);
	memset(&fake, 0, sizeof(fake));
	began = loop_time_ns();
	bytes = 0;
	busy = slow = away = false;
	held = lacks = NULL;
	forget_noted();
	dropped[0] = '\0';
	store = store_new(&events);
	x = expiry_new(&(struct expiry_config){
		.store = store,
		.spool_limit = 1000,
		.history_keep = 3600,
		.may_go = may_go,
		.is_busy = is_busy,
		.has_output = has_output,
		.retire = retire,
		.remove = remove_job,
		.drop = drop_output,
	});
	return 0;
}

static int teardown(void **state)
{
	expiry_free(x);
	assert_null(fake.timers);
	store_free(store);
	return 0;
}

/* --- tests --- */

static void test_time(void **state)
{
	put("past", SPEC_FAILED, -3600, true);
	put("old", SPEC_FAILED, 10, true);
	put("new", SPEC_SUCCEEDED, 110, true);
	put("finished", SPEC_SUCCEEDED, 0, false); /* a job in jobs/ is not removed */
	put("gone", SPEC_UNKNOWN, 0, true);	   /* nor is a job that has not finished */
	expect(10000, "");			   /* nothing is removed before expiry_soon */
	expiry_soon(x);
	expect(1000, "past");
	expect(3599 * 1000 - 1, "");
	expiry_now(x); /* slightly too early */
	expect(0, "");
	expect(2, "old");
	expect(99 * 1000, "");
	expect(1002, "new");
	expect(1000000000, "");
}

/* A finished job is moved from jobs/ to the history when its ttl has passed since its end. */
static void test_ttl(void **state)
{
	put("none", SPEC_SUCCEEDED, 0, false);
	put_ttl("nought", SPEC_SUCCEEDED, 0, false, 0, 0);
	put_ttl("ten", SPEC_SUCCEEDED, 12, false, 5, 10);
	expiry_soon(x);
	expect(1001, "nought>");
	expect(13500, "");
	expect(1000, "ten>");
	expect(3600 * 1000, "nought, ten");
}

static void test_soon(void **state)
{
	put("a", SPEC_FAILED, -3600, true);
	expiry_soon(x);
	expect(900, "");
	expiry_soon(x); /* another call does not postpone it */
	expect(100, "a");
	put("b", SPEC_FAILED, -3600, true);
	expiry_now(x);
	expect(0, "b");
	expiry_soon(NULL);
	expiry_now(NULL);
}

/* kxfs removes the output of the history first, oldest first, and only as much as needed. */
static void test_room(void **state)
{
	put("h2", SPEC_FAILED, -2, true);
	put("h1", SPEC_FAILED, -3, true);
	put("j1", SPEC_SUCCEEDED, -9, false);
	put("j2", SPEC_SUCCEEDED, -8, false);
	put("runs", SPEC_RUNNING, -10, false);
	bytes = 1300;
	expiry_soon(x);
	expect(1000, "h1/, h2/, j1/");
	bytes = 1001;
	held = "j2";
	expect(60000, ""); /* all others may still print */
	held = NULL;
	expect(60000, "j2/");
	bytes = 1001;
	expect(1000000, ""); /* nothing else can be removed */
	/* The jobs are removed too when their time has passed. */
	expect(3600 * 1000, "h1, h2");
}

/*
 * A job that is not archived yet is kept, with its output. Exception: the archive accepts no jobs,
 * and nothing else can be removed.
 */
static void test_archive(void **state)
{
	put("old", SPEC_FAILED, -3600, true);
	put("j1", SPEC_SUCCEEDED, -2, false);
	lacks = "old";
	bytes = 1200;
	expiry_soon(x);
	expect(60000, "j1/");
	away = true;
	expect(60000, "old/");
	lacks = NULL;
	expect(60000, "old");
}

/* While a removal is under way, no other job is removed. */
static void test_busy(void **state)
{
	put("h1", SPEC_FAILED, -3, true);
	put("h2", SPEC_FAILED, -2, true);
	bytes = 1200;
	slow = true;
	expiry_now(x);
	expect(0, "h1/");
	expect(200000, "");
	busy = slow = false;
	expiry_now(x);
	expect(0, "h2/");
}

int main(void)
{
#define expiry_test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		expiry_test(test_time), expiry_test(test_ttl),	expiry_test(test_soon),
		expiry_test(test_room), expiry_test(test_busy), expiry_test(test_archive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
