/* SPDX-License-Identifier: MIT */
/* backend/reader/reader.h over an archive in a directory: whose jobs are shown, where, and under which names. */
#include "backend/reader/reader.h"

#include "spec/base/time.h"
#include "spec/job/snapshot.h"
#include "tests/unit/clock.h"
#include "tests/unit/backend/reader/rig.h"

#define KEEP_S (7 * 86400)

static struct store *store;
static struct reader *reader;
static char today[11], yesterday[11], first_day[11], last_day[11], old_day[11], older_day[11];
static bool away; /* the archive is away from the start */

static void on_job(void *data, const struct spec_job *old, const struct spec_job *new_job)
{
	if (reader)
		reader_job(reader, old, new_job);
}

static void do_begin(void *data)
{
	output_start(output);
	reader_begin(reader, "ns", data);
}

static void stop_reader(void *data)
{
	reader_stop(reader, post_sem, data);
}

static void up(const char *uid)
{
	cleanup_free char *dir = dir_of("out"), *state = dir_of("state");
	char *why = NULL;

	output_up();
	shell("mkdir -p out/ns");
	if (away)
		shell("mv out away");
	store = store_new(&(struct store_events){.changed = on_job});
	assert_int_equal(reader_new(
				 &(struct reader_config){
					 .loop = loop,
					 .store = store,
					 .output = output,
					 .place = {.where = dir},
					 .state_dir = state,
					 .spool_limit = 1 << 20,
					 .history_keep = KEEP_S,
				 },
				 &reader, &why),
			 0);
	call(do_begin, (void *)(uintptr_t)uid);
	reader_look(reader);
}

static void down(void)
{
	wait_for_stop(stop_reader);
	output_down();
	reader_free(reader);
	reader = NULL;
	store_free(store);
	loop_down();
}

static int setup_days(void **state)
{
	int64_t now;

	/* The clock is set to noon, so that no day ends while a test runs. */
	atomic_fetch_add(&clock_ahead, 86400 - (loop_time_ns() / NS_PER_S + 43200) % 86400);
	now = loop_time_ns();
	keep_day(now, today);
	keep_day(now - 86400 * NS_PER_S, yesterday);
	keep_day(now - KEEP_S * NS_PER_S, first_day);
	keep_day(now - (KEEP_S + 86400) * NS_PER_S, last_day);
	keep_day(now - (KEEP_S + 2 * 86400) * NS_PER_S, old_day);
	keep_day(now - (KEEP_S + 3 * 86400) * NS_PER_S, older_day);
	away = false;
	return setup_base(state);
}

static void source(const char *uid)
{
	cleanup_free char *text = keep_source_text("ns", uid);

	shell("mkdir -p out/ns; printf '%%s' '%s' >out/ns/source.json", text);
}

/* A capture has put the job ID with uid UID of DAY, which began at minute M of ten o'clock. */
static void captured(const char *day, const char *id, const char *uid, unsigned m)
{
	shell("mkdir -p out/ns/%s/%s; echo %s >out/ns/%s/%s/uid", day, id, uid, day, id);
	shell("echo '{\"uid\":\"%s\",\"id\":\"%s\",\"created\":\"%sT10:%02u:00Z\",\"state\":\"SUCCEEDED\"}' "
	      ">>out/ns/%s/list.jsonl",
	      uid, id, day, m, day);
}

/* The uid of the job that has ID in the history of the store, malloc'ed; "": there is none. */
static char *shown(const char *id)
{
	const struct spec_job *job cleanup_job = store_get(store, BACKEND_HISTORY, id);

	return text_copy(job ? job->uid : "");
}

static void assert_shown(const char *id, const char *uid)
{
	cleanup_free char *is = shown(id);

	assert_string_equal(is, uid);
}

/* Wait until the history of the store has N jobs: the archive is read from time to time. */
static void until_count(size_t n)
{
	for (unsigned ms = 0; store_count(store, BACKEND_HISTORY) != n; ms += 2) {
		assert_true(ms < WAIT_S * 1000);
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
}

/* Somebody looks again, so much later that the archive is read again. */
static void look(void)
{
	clock_pass(loop, 6);
	reader_look(reader);
}

/*
 * All that was put so far is read and shown: a job is put last, into the day that is read first, so when that job is
 * shown all else was read, too.
 */
static void read_again(void)
{
	bool there = false;

	captured(today, "last", "uid-last", 59);
	look();
	for (unsigned ms = 0; !there; ms += 2) {
		cleanup_free char *uid = shown("last");

		there = *uid;
		assert_true(ms < WAIT_S * 1000);
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	call(nothing, NULL);
}

static void do_put(void *data)
{
	store_put(store, data);
}

static void do_remove(void *data)
{
	store_remove(store, data);
}

/* A job of the cluster, which this mount knows by itself. */
static void known(const char *id, const char *uid, bool history)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, id);
	spec_set(&job->uid, uid);
	job->history = history;
	job->created = 1;
	call(do_put, job);
}

static void test_recent(void **state)
{
	const struct spec_job *job cleanup_job = NULL;

	source("c1");
	captured(today, "a", "uid-a", 1);
	captured(old_day, "b", "uid-b", 1);
	up("c1");
	assert_shown("a", "uid-a");
	assert_shown("b", "");
	/* A job of an old day is found by its name, and by its day. */
	assert_int_equal(reader_find(reader, "b", &job), 0);
	assert_string_equal(job->uid, "uid-b");
	assert_shown("b", "");
	captured(today, "c", "uid-c", 2);
	look();
	until_count(2);
	assert_shown("c", "uid-c");
	/* Days become old while they are shown, too. */
	clock_pass(loop, KEEP_S + 2 * 86400);
	reader_look(reader);
	until_count(0);
	spec_job_unref(take_ptr(job));
	assert_int_equal(reader_find(reader, "c", &job), 0);
	down();
}

/* The first day that is in history/, and the last that is not, also when the archive is read again. */
static void test_first_day(void **state)
{
	source("c1");
	captured(first_day, "a", "uid-a", 1);
	captured(last_day, "b", "uid-b", 1);
	up("c1");
	assert_shown("a", "uid-a");
	assert_shown("b", "");
	captured(today, "c", "uid-c", 2);
	look();
	until_count(2);
	assert_shown("a", "uid-a");
	down();
}

/* The line of a job that began before midnight may be written after that. */
static void test_yesterday(void **state)
{
	source("c1");
	captured(yesterday, "a", "uid-a", 1);
	up("c1");
	assert_shown("a", "uid-a");
	captured(yesterday, "b", "uid-b", 2);
	read_again();
	assert_shown("b", "uid-b");
	down();
}

/* Of the jobs of one name the newest has the name itself, whichever line came first. */
static void test_names_of_days(void **state)
{
	source("c1");
	captured(yesterday, "a", "11111111-a", 1);
	captured(today, "a", "22222222-a", 1);
	captured(yesterday, "b", "33333333-b", 2);
	up("c1");
	assert_shown("a", "22222222-a");
	assert_shown("a~11111111", "11111111-a");
	assert_shown("b", "33333333-b");
	captured(today, "b", "44444444-b", 2);
	read_again();
	assert_shown("b", "44444444-b");
	assert_shown("b~33333333", "33333333-b");
	down();
}

/* A list that has grown too large goes on in a second file. */
static void test_lists(void **state)
{
	source("c1");
	captured(yesterday, "a", "uid-a", 1);
	shell("mv out/ns/%s/list.jsonl out/ns/%s/list-1.jsonl", yesterday, yesterday);
	captured(yesterday, "b", "uid-b", 2);
	up("c1");
	assert_shown("a", "uid-a");
	assert_shown("b", "uid-b");
	captured(yesterday, "c", "uid-c", 3);
	read_again();
	assert_shown("c", "uid-c");
	down();
}

static bool has_state(const char *id, enum spec_state is)
{
	const struct spec_job *job cleanup_job = store_get(store, BACKEND_HISTORY, id);

	return job && job->state == is;
}

/* A job's line changes when the job has ended. */
static void test_line_that_changes(void **state)
{
	source("c1");
	captured(yesterday, "a", "uid-a", 1);
	shell("sed -i s/SUCCEEDED/RUNNING/ out/ns/%s/list.jsonl", yesterday);
	up("c1");
	assert_true(has_state("a", SPEC_RUNNING));
	shell("sed -i s/RUNNING/SUCCEEDED/ out/ns/%s/list.jsonl", yesterday);
	read_again();
	assert_true(has_state("a", SPEC_SUCCEEDED));
	down();
}

/* A job that nobody has put yet is found later. */
static void test_asked_too_early(void **state)
{
	const struct spec_job *job cleanup_job = NULL;

	source("c1");
	captured(old_day, "a", "uid-a", 1);
	up("c1");
	assert_int_equal(reader_find(reader, "b", &job), -ENOENT);
	captured(old_day, "b", "uid-b", 2);
	clock_pass(loop, 31);
	assert_int_equal(reader_find(reader, "b", &job), 0);
	assert_string_equal(job->uid, "uid-b");
	down();
}

static void test_days(void **state)
{
	const struct spec_job *job cleanup_job = NULL, **jobs cleanup_free = NULL;
	char **days;
	size_t n;

	source("c1");
	captured(old_day, "b", "uid-b2", 2);
	captured(old_day, "c", "uid-c", 1);
	captured(older_day, "b", "uid-b1", 2);
	shell("mkdir out/ns/nonsense out/ns/2026-99");
	up("c1");
	assert_int_equal(reader_days(reader, &days, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(days[0], older_day);
	assert_string_equal(days[1], old_day);
	free(days[0]);
	free(days[1]);
	free(days);
	assert_int_equal(reader_jobs(reader, old_day, &jobs, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(jobs[0]->id, "c");
	assert_string_equal(jobs[1]->id, "b");
	spec_job_unref(jobs[0]);
	spec_job_unref(jobs[1]);
	assert_int_equal(reader_job_of(reader, older_day, "b", &job), 0);
	assert_string_equal(job->uid, "uid-b1");
	spec_job_unref(take_ptr(job));
	assert_int_equal(reader_job_of(reader, older_day, "c", &job), -ENOENT);
	assert_int_equal(reader_job_of(reader, "../out", "c", &job), -ENOENT);
	/* The newest job of that name, of any day. */
	assert_int_equal(reader_find(reader, "b", &job), 0);
	assert_string_equal(job->uid, "uid-b2");
	spec_job_unref(take_ptr(job));
	assert_int_equal(reader_find(reader, "nobody", &job), -ENOENT);
	job = reader_by_uid(reader, "uid-b1");
	assert_string_equal(job->id, "b");
	down();
}

/* A job that this mount knows keeps its place, and one that the mount has forgotten is shown from the archive. */
static void test_beside_others(void **state)
{
	source("c1");
	captured(today, "a", "uid-a", 1);
	captured(today, "b", "uid-b", 1);
	up("c1");
	known("a", "uid-a2", true);
	known("b", "uid-b", false);
	known("c", "uid-c", false);
	captured(today, "c", "uid-c", 2);
	assert_shown("a", "uid-a2");
	assert_shown("b", "");
	look();
	until_count(2);
	assert_shown("a~uid-a", "uid-a");
	call(do_remove, (void *)(uintptr_t) "uid-b");
	assert_shown("b", "");
	clock_pass(loop, 60);
	until_count(3);
	assert_shown("b", "uid-b");
	down();
}

static void test_another_cluster(void **state)
{
	const struct spec_job *job = NULL;
	char *info = NULL, **days = NULL;
	size_t len, n;
	FILE *out = open_memstream(&info, &len);

	source("c2");
	captured(today, "a", "uid-a", 1);
	captured(old_day, "b", "uid-b", 1);
	up("c1");
	assert_shown("a", "");
	assert_int_equal(reader_find(reader, "b", &job), -ENOENT);
	assert_int_equal(reader_days(reader, &days, &n), 0);
	assert_int_equal(n, 0);
	free(days);
	reader_info(reader, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(info, "has the jobs of another cluster"));
	free(info);
	down();
}

/* Nobody has put anything into the archive yet: what comes later is shown then. */
static void test_empty(void **state)
{
	up("c1");
	assert_int_equal(store_count(store, BACKEND_HISTORY), 0);
	source("c1");
	captured(today, "a", "uid-a", 1);
	look();
	until_count(1);
	assert_shown("a", "uid-a");
	down();
}

static void test_away(void **state)
{
	char **days;
	size_t n;

	source("c1");
	captured(today, "a", "uid-a", 1);
	up("c1");
	shell("mv out away");
	look();
	clock_pass(loop, 60);
	assert_int_equal(reader_days(reader, &days, &n), 0);
	assert_int_equal(n, 1);
	free(days[0]);
	free(days);
	assert_shown("a", "uid-a");
	/* When the archive is back it is read again. */
	shell("mv away out");
	captured(today, "b", "uid-b", 2);
	look();
	until_count(2);
	down();
}

/* It is not known what is in an archive that was away from the start. */
static void test_away_from_the_start(void **state)
{
	char **days;
	size_t n;

	source("c1");
	captured(today, "a", "uid-a", 1);
	away = true;
	up("c1");
	assert_int_equal(reader_days(reader, &days, &n), -EHOSTUNREACH);
	shell("mv away out");
	look();
	until_count(1);
	down();
}

/* The directory FOLDER of DAY has all that is known of job ID, whose uid is UID: it has a log. */
static void snapshot(const char *day, const char *folder, const char *id, const char *uid,
		     enum spec_state is)
{
	struct spec_job *job = spec_job_new(1, 1);
	cleanup_free char *text = NULL;

	spec_set(&job->id, id);
	spec_set(&job->uid, uid);
	spec_set(&job->backend, "volcano");
	spec_set(&job->roles[0].name, "w");
	job->roles[0].n = 1;
	job->history = true;
	job->state = is;
	spec_set(&job->replicas[0].name, "w-0");
	spec_replica_add_log(&job->replicas[0], uid, NULL);
	text = spec_snapshot_text(job);
	shell("mkdir -p out/ns/%s/%s; cat >out/ns/%s/%s/job.json <<'EOF'\n%sEOF\n", day, folder,
	      day, folder, text);
	shell("echo 'name: %s' >out/ns/%s/%s/manifest.yaml", uid, day, folder);
	spec_job_unref(job);
}

static void assert_whole(const char *id, const char *uid)
{
	cleanup_free char *want = text_print("name: %s\n", uid), *text = NULL;
	const struct spec_job *job cleanup_job = NULL;
	size_t len;

	assert_int_equal(reader_job_of(reader, old_day, id, &job), 0);
	assert_true(job->brief);
	assert_int_equal(reader_text(reader, job, KEEP_MANIFEST, &text, &len), 0);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(text, want, len);
	assert_int_equal(reader_complete(reader, &job), 0);
	assert_false(job->brief);
	assert_string_equal(job->id, id);
	assert_string_equal(job->replicas[0].logs[0].key, uid);
}

/*
 * Of two jobs of a day that have one name, the older one gets another name, and each has the texts of its own
 * directory.
 */
static void test_texts(void **state)
{
	const struct spec_job *job cleanup_job = NULL;
	cleanup_free char *text = NULL;
	size_t len;

	source("c1");
	captured(old_day, "a", "11111111-a", 1);
	captured(old_day, "a~22222222", "22222222-a", 2);
	shell("sed -i s/a~22222222/a/ out/ns/%s/list.jsonl", old_day);
	snapshot(old_day, "a", "a", "11111111-a", SPEC_SUCCEEDED);
	snapshot(old_day, "a~22222222", "a", "22222222-a", SPEC_SUCCEEDED);
	/* The texts in its directory belong to another job. */
	captured(old_day, "b", "33333333-b", 1);
	snapshot(old_day, "b", "b", "44444444-b", SPEC_SUCCEEDED);
	captured(old_day, "c", "uid-c", 1);
	up("c1");
	assert_whole("a", "22222222-a");
	assert_whole("a~11111111", "11111111-a");
	assert_int_equal(reader_job_of(reader, old_day, "b", &job), 0);
	assert_int_equal(reader_text(reader, job, KEEP_MANIFEST, &text, &len), -ENOENT);
	assert_int_equal(reader_complete(reader, &job), 0);
	assert_string_equal(job->uid, "33333333-b");
	assert_int_equal(job->n_replicas, 0);
	spec_job_unref(take_ptr(job));
	/* Of this job only a line was put. */
	assert_int_equal(reader_job_of(reader, old_day, "c", &job), 0);
	assert_int_equal(reader_complete(reader, &job), 0);
	assert_false(job->brief);
	down();
}

static void assert_whole_state(const char *id, enum spec_state is)
{
	const struct spec_job *job cleanup_job = NULL;

	assert_int_equal(reader_job_of(reader, old_day, id, &job), 0);
	assert_int_equal(reader_complete(reader, &job), 0);
	assert_int_equal(job->state, is);
}

/* What is known of a job that goes on is read again. */
static void test_goes_on(void **state)
{
	source("c1");
	captured(old_day, "a", "uid-a", 1);
	snapshot(old_day, "a", "a", "uid-a", SPEC_RUNNING);
	up("c1");
	assert_whole_state("a", SPEC_RUNNING);
	snapshot(old_day, "a", "a", "uid-a", SPEC_SUCCEEDED);
	clock_pass(loop, 31);
	assert_whole_state("a", SPEC_SUCCEEDED);
	down();
}

/* For a job that this mount knows, the archive has the attempts from before the mount began. */
static void test_attempts_before(void **state)
{
	struct spec_job *own = spec_job_new(1, 1);
	const struct spec_job *job cleanup_job = own;

	source("c1");
	captured(today, "a", "uid-a", 1);
	snapshot(today, "a", "a", "uid-a", SPEC_RUNNING);
	up("c1");
	spec_set(&own->id, "a");
	spec_set(&own->uid, "uid-a");
	spec_set(&own->replicas[0].name, "w-0");
	spec_replica_add_log(&own->replicas[0], "later", NULL);
	assert_int_equal(reader_complete(reader, &job), 0);
	assert_false(job->archived);
	assert_int_equal(job->replicas[0].n_logs, 2);
	assert_string_equal(job->replicas[0].logs[0].key, "uid-a");
	assert_string_equal(job->replicas[0].logs[1].key, "later");
	down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_recent, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_first_day, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_yesterday, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_names_of_days, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_lists, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_line_that_changes, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_asked_too_early, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_days, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_beside_others, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_another_cluster, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_empty, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_away, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_away_from_the_start, setup_days,
						teardown_base),
		cmocka_unit_test_setup_teardown(test_texts, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_goes_on, setup_days, teardown_base),
		cmocka_unit_test_setup_teardown(test_attempts_before, setup_days, teardown_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
