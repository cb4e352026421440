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
#include "tests/unit/unit.h"

#define S INT64_C(1000000000)

/* --- the modules that expiry calls --- */

static uint64_t now;		 /* in ms */
static struct loop_timer *timer; /* the running timer */
static uint64_t bytes;

void loop_timer_set(struct loop_timer *t, uint64_t ms)
{
	assert_true(!timer || timer == t); /* expiry sets only one timer at a time */
	timer = t;
	t->at = now + ms;
	t->position = 1;
}

void loop_timer_stop(struct loop_timer *t)
{
	t->position = 0;
	timer = NULL;
}

uint64_t loop_now_ms(void)
{
	return now;
}

int64_t loop_time_ns(void)
{
	return (int64_t)now * 1000000;
}

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

static struct store *store;
static struct expiry *x;
static bool busy, slow; /* SLOW: a removal takes long */
static char removed[256];
static const char *held; /* this job must not be removed */

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
	return !job->dropped;
}

static void remove_job(void *data, const struct spec_job *job)
{
	strcat(strcat(removed, job->id), " ");
	store_remove(store, job->uid);
	expiry_now(x);
}

static void put_dropped(const char *id, enum spec_state state, int64_t changed, bool history,
			bool dropped)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, id);
	spec_set(&job->uid, id);
	job->state = state;
	job->changed = changed;
	job->history = history;
	job->dropped = dropped;
	job->ttl = -1;
	store_put(store, job);
}

/* Remove the output of JOB, but keep the job. */
static void drop_output(void *data, const struct spec_job *job)
{
	strcat(strcat(removed, job->id), "/ ");
	busy = slow;
	bytes -= min_of(bytes, (uint64_t)100);
	put_dropped(job->id, job->state, job->changed, job->history, true);
	if (!slow)
		expiry_now(x);
}

static void put(const char *id, enum spec_state state, int64_t changed, bool history)
{
	put_dropped(id, state, changed, history, false);
}

/* Let MS pass. */
static void pass(uint64_t ms)
{
	uint64_t until = now + ms;

	while (timer && timer->at <= until) {
		struct loop_timer *t = timer;

		now = max_of(now, t->at);
		loop_timer_stop(t);
		t->fn(t->data);
	}
	now = until;
}

static int setup(void **state)
{
	const struct store_events events = {0};
	const struct expiry_config config = {
		.spool_limit = 1000,
		.history_keep = 3600,
		.may_go = may_go,
		.is_busy = is_busy,
		.has_output = has_output,
		.remove = remove_job,
		.drop = drop_output,
	};
	struct expiry_config c = config;

	diag_setup(DIAG_DEBUG, false);
	now = 0;
	bytes = 0;
	busy = slow = away = false;
	held = lacks = NULL;
	removed[0] = '\0';
	store = c.store = store_new(&events);
	x = expiry_new(&c);
	return 0;
}

static int teardown(void **state)
{
	expiry_free(x);
	assert_null(timer);
	store_free(store);
	return 0;
}

/* --- tests --- */

static void test_time(void **state)
{
	put("old", SPEC_FAILED, 0, true);
	put("new", SPEC_SUCCEEDED, 100 * S, true);
	put("finished", SPEC_SUCCEEDED, 0, false); /* a job in jobs/ is not removed */
	put("gone", SPEC_UNKNOWN, 0, true);	   /* a job that has not finished is not removed */
	pass(100000000);
	assert_string_equal(removed, ""); /* nothing is removed before expiry_soon */
	now = 0;
	expiry_soon(x);
	pass(3600 * 1000 - 1);
	expiry_now(x); /* slightly too early */
	pass(0);
	assert_string_equal(removed, "");
	pass(2);
	assert_string_equal(removed, "old ");
	pass(99 * 1000);
	assert_string_equal(removed, "old ");
	pass(1002);
	assert_string_equal(removed, "old new ");
	pass(1000000000);
	assert_string_equal(removed, "old new ");
}

/* A finished job is moved from jobs/ to the history when its ttl has passed since its end. */
static void retire(void *data, const struct spec_job *job)
{
	strcat(strcat(removed, job->id), "> ");
	put(job->id, job->state, loop_time_ns(), true);
}

static void put_with_ttl(const char *id, int64_t ttl, int64_t finished, int64_t changed)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, id);
	spec_set(&job->uid, id);
	job->state = SPEC_SUCCEEDED;
	job->ttl = ttl;
	job->finished = finished;
	job->changed = changed;
	store_put(store, job);
}

static void test_ttl(void **state)
{
	expiry_free(x);
	x = expiry_new(&(struct expiry_config){
		.store = store,
		.spool_limit = 1000,
		.history_keep = 3600,
		.may_go = may_go,
		.is_busy = is_busy,
		.has_output = has_output,
		.remove = remove_job,
		.drop = drop_output,
		.retire = retire,
	});
	put_with_ttl("none", -1, 0, 0);
	put_with_ttl("nought", 0, 0, 0);
	put_with_ttl("ten", 10, 5 * S, 12 * S);
	expiry_soon(x);
	pass(1001);
	assert_string_equal(removed, "nought> ");
	pass(13500);
	assert_string_equal(removed, "nought> ");
	pass(1000);
	assert_string_equal(removed, "nought> ten> ");
	pass(3600 * 1000);
	assert_string_equal(removed, "nought> ten> nought ten ");
}

static void test_soon(void **state)
{
	put("a", SPEC_FAILED, -3600 * S, true);
	expiry_soon(x);
	pass(900);
	expiry_soon(x); /* another call does not postpone it */
	assert_string_equal(removed, "");
	pass(100);
	assert_string_equal(removed, "a ");
	put("b", SPEC_FAILED, -3600 * S, true);
	expiry_now(x);
	pass(0);
	assert_string_equal(removed, "a b ");
	expiry_soon(NULL);
	expiry_now(NULL);
}

static void test_room(void **state)
{
	put("h2", SPEC_FAILED, -2 * S, true);
	put("h1", SPEC_FAILED, -3 * S, true);
	put("j1", SPEC_SUCCEEDED, -9 * S, false);
	put("j2", SPEC_SUCCEEDED, -8 * S, false);
	put("runs", SPEC_RUNNING, -10 * S, false);
	bytes = 1300;
	expiry_soon(x);
	pass(1000);
	/*
	 * kxfs first removes the output of the history, oldest first, and only as much as needed.
	 */
	assert_string_equal(removed, "h1/ h2/ j1/ ");
	bytes = 1001;
	held = "j2";
	pass(60000);
	assert_string_equal(removed, "h1/ h2/ j1/ "); /* all others may still print */
	held = NULL;
	pass(60000);
	assert_string_equal(removed, "h1/ h2/ j1/ j2/ ");
	bytes = 1001; /* nothing else can be removed */
	pass(1000000);
	assert_string_equal(removed, "h1/ h2/ j1/ j2/ ");
	pass(3600 * 1000);
	/* The jobs are removed too when their time has passed. */
	assert_string_equal(removed, "h1/ h2/ j1/ j2/ h1 h2 ");
}

/*
 * A job that is not archived yet is kept, with its output. Exception: the archive accepts no jobs,
 * and nothing else can be removed.
 */
static void test_archive(void **state)
{
	put("old", SPEC_FAILED, -3600 * S, true);
	put("j1", SPEC_SUCCEEDED, -2 * S, false);
	lacks = "old";
	bytes = 1200;
	expiry_soon(x);
	pass(60000);
	assert_string_equal(removed, "j1/ ");
	away = true;
	pass(60000);
	assert_string_equal(removed, "j1/ old/ ");
	lacks = NULL;
	pass(60000);
	assert_string_equal(removed, "j1/ old/ old ");
}

/* While a removal is under way, no other job is removed. */
static void test_busy(void **state)
{
	put("h1", SPEC_FAILED, -3 * S, true);
	put("h2", SPEC_FAILED, -2 * S, true);
	bytes = 1200;
	slow = true;
	expiry_now(x);
	pass(0);
	assert_string_equal(removed, "h1/ ");
	pass(200000);
	assert_string_equal(removed, "h1/ ");
	busy = slow = false;
	expiry_now(x);
	pass(0);
	assert_string_equal(removed, "h1/ h2/ ");
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
