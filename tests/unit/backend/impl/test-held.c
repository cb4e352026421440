/* SPDX-License-Identifier: MIT */
/*
 * Held jobs in a backend whose implementation is the test's own. The implementation notes each
 * request, and turns a submission into a job with a uid, as a cluster does. The test controls the
 * clock.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "tests/unit/clock.h"
#include "tests/unit/noted.h"
#include "backend/impl/impl.h"
#include "tests/unit/backend/base/loop_rig.h"
#include "tests/unit/scratch.h"

#include "backend/base/diag.h"
#include "spec/base/mem.h"

#define HISTORY_S 100
/* Time for a few syncs of the disk. If kxfs has a bug, many tests wait this long in vain. */
#define SOON_S 30

static struct store *store;
static struct backend b;
static char base[64];
static atomic_bool whole;    /* what is_whole of impl.h returns */
static atomic_int refuse;    /* the error that answers all launches */
static atomic_bool unseen;   /* launched jobs do not become visible */
static atomic_size_t n_late; /* number of launches that wait for their answer */
static struct backend_request *late[16];
static atomic_bool is_late;
static char submissions[64]; /* submission UUID of the last launch */
static uint64_t seed;	     /* random seed of the last launch's name */

/* --- the disk --- */

static atomic_int bad_syncs;	/* how many further syncs of the directory STATE/jobs fail */
static atomic_bool hangs, hung; /* syncs do not return while HANGS is true; HUNG: one is waiting */

int fsync(int fd)
{
	char link[64], path[512] = "";

	for (; hangs; usleep(100))
		hung = true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (bad_syncs && readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, "/jobs") &&
	    streq(strstr(path, "/jobs"), "/jobs")) {
		bad_syncs--;
		errno = EIO;
		return -1;
	}
	return 0; /* the test has no power loss, and its clock does not wait for a disk */
}

/* --- the implementation --- */

/* Add the job ID of SUBMISSION. "": the job is somebody else's. */
static void put_job(const char *id, const char *submission, enum spec_state state)
{
	cleanup_free char *uid = text_print("uid-%s", id);
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, id);
	spec_set(&job->uid, uid);
	spec_set(&job->submission, submission);
	job->own = *submission;
	job->state = state;
	store_put(store, job);
}

/* Return the id for the document: the value of "name: ", and -1. */
static char *id_of(const struct backend_request *rq)
{
	return text_print("%.*s-1", (int)strcspn(rq->text + 6, "\n"), rq->text + 6);
}

static void answer_launch(void *data)
{
	struct backend_request *rq = data;
	cleanup_free char *id = id_of(rq);

	if (!refuse && !unseen)
		put_job(id, rq->submission, SPEC_RUNNING);
	backend_answer(rq, refuse, id, refuse ? "not\nnow" : NULL);
}

static bool is_again; /* true if the last launch may have been sent before */

static void fake_submit(struct backend *backend, struct backend_request *rq)
{
	cleanup_free char *id = id_of(rq);

	note("launch %s", id);
	assert_string_equal(rq->backend, "fake"); /* the dry run returned this */
	snprintf(submissions, sizeof(submissions), "%s", rq->submission);
	is_again = rq->again;
	seed = rq->seed[0];
	if (is_late)
		late[n_late++] = rq;
	else
		answer_launch(rq);
}

static void fake_dry_run(struct backend *backend, struct backend_request *rq)
{
	cleanup_free char *id = id_of(rq);

	assert_null(rq->backend);
	seed = rq->seed[0];
	backend_reply(rq, &(struct backend_result){0, "", id, "manifest\n", "fake", ""});
}

static void fake_cancel(struct backend *backend, struct backend_request *rq)
{
	note("cancel %s", rq->uid);
	if (streq(rq->id, "x-1"))
		store_remove(store, rq->uid);
	backend_answer(rq, 0, NULL, NULL);
}

static bool fake_is_whole(struct backend *backend)
{
	return whole;
}

static const struct backend_ops ops = {
	.request[BACKEND_SUBMIT] = fake_submit,
	.request[BACKEND_DRY_RUN] = fake_dry_run,
	.request[BACKEND_CANCEL] = fake_cancel,
	.is_whole = fake_is_whole,
};

/* --- the rig --- */

static void on_job(void *data, const struct spec_job *old, const struct spec_job *now)
{
	if (b.held)
		held_changed(b.held, old, now);
}

static void on_records(void *done, int err, const char *text)
{
	if (err) {
		note("%s", text);
		post_sem(done);
	} else {
		held_begin(b.held, post_sem, done);
	}
}

/* Call FN(sem) on the loop, and wait until it has posted the semaphore. */
static void call_and_wait(loop_fn fn)
{
	sem_t done;

	sem_init(&done, 0, 0);
	call(fn, &done);
	sem_wait_or_fail(&done);
	sem_destroy(&done);
}

/* Create the records and the held jobs, and load them. */
static void begin(void *done)
{
	b.records = records_new(b.loop, base, b.config.passive);
	b.held = held_new(&b);
	records_load(b.records, on_records, done);
}

static void take_charge(void *data)
{
	held_take_charge(b.held);
}

static void go_down(void *data)
{
	b.up = false;
}

static void on_held_stopped(void *done)
{
	records_stop(b.records, post_sem, done);
}

static void stop(void *done)
{
	b.up = false;
	held_stop(b.held, on_held_stopped, done);
}

/* Start kxfs. No job is listed yet. It shows what it finds, and launches nothing yet. */
static void begin_run(void)
{
	store = b.store = store_new(&(struct store_events){.changed = on_job});
	b.up = true;
	call_and_wait(begin);
}

static void end_run(void)
{
	call_and_wait(stop);
	held_free(take_ptr(b.held));
	records_free(take_ptr(b.records));
	store_free(take_ptr(store));
	b.store = NULL;
}

static int setup_held(void **state)
{
	diag_setup(DIAG_ERROR, false);
	strcpy(base, "/tmp/kxfs-unit-held-XXXXXX");
	assert_non_null(mkdtemp(base));
	b = (struct backend){.ops = &ops, .config = {.state_dir = base, .history_keep = HISTORY_S}};
	whole = true;
	unseen = is_late = false;
	refuse = 0;
	n_late = 0;
	bad_syncs = 0;
	forget_noted();
	atomic_store(&clock_ahead, 0);
	atomic_store(&clock_set, 0);
	setup_started(state);
	b.loop = loop;
	begin_run();
	call(take_charge, NULL);
	return 0;
}

static int teardown_held(void **state)
{
	if (b.held)
		end_run();
	teardown(state);
	return scratch_remove(base);
}

/* --- actions of the tests --- */

static void ask_pool(void *done)
{
	loop_work(loop, nothing, post_sem, done);
}

/*
 * Do everything that is due now. The loop and the pool give work to each other, so repeat this a
 * few times.
 */
static void settle(void)
{
	for (int i = 0; i < 20; i++) {
		call_and_wait(ask_pool);
		usleep(200); /* another thread of the pool may be writing a file */
	}
}

/* Let S seconds pass. */
static void pass(unsigned s)
{
	for (; s > 0; s--) {
		clock_pass(loop, 1);
		settle();
	}
}

/* Wait until the disk has done its work. This uses a clock that the test does not move. */
#define SOON(condition)                                                                            \
	for (time_t until = time(NULL) + SOON_S; !(condition) && time(NULL) < until; usleep(1000)) \
	settle()

static void count_noted(void *data)
{
	*(size_t *)data = strlen(noted);
}

static size_t n_noted(void)
{
	size_t n;

	call(count_noted, &n);
	return n;
}

static void forget(void *data)
{
	forget_noted();
}

/* Assert that the events since the last call are WANT. */
static void expect_now(const char *want)
{
	settle(); /* settle() itself notes nothing */
	assert_done(want);
}

/* Assert that WANT happens soon, and nothing else. */
static void expect(const char *want)
{
	if (n_noted() < strlen(want))
		pass(1);
	SOON(n_noted() >= strlen(want));
	expect_now(want);
}

static void on_submit(void *data, const struct backend_result *result)
{
	struct backend_file found;

	if (job_files_find(records_files(b.records), "a.yaml", &found) == 0) {
		memcpy(data, found.uuid, JOB_FILES_UUID);
		free(found.id);
	}
	note("submit %d%s%s", -result->err, *result->id ? " " : "", result->id);
}

/* When the release was accepted, status no longer lists the action "release". */
static void on_control(void *data, const struct backend_result *result)
{
	const struct spec_job *job cleanup_job = store_get_uid(b.store, data);

	if (job && !result->err)
		assert_false(job->actions & 1u << SPEC_RELEASE);
	note("control %d", -result->err);
}

static void on_cancel(void *data, const struct backend_result *result)
{
	note("cancel %d", -result->err);
}

/* UUIDs of submissions, by the first letter of the job's name */
static char uuids[26][JOB_FILES_UUID];

static char *uuid_of(const char *name)
{
	return uuids[*name - 'a'];
}

/* Submit NAME with the scheduler arguments ARGS. Assert that the events are SAID. */
static void submit(const char *name, const char *args, const char *said)
{
	cleanup_free char *text =
		text_print("name: %s\nroles: [{name: r, image: i, entrypoint: e}]\n"
			   "scheduler_args: {%s}\n",
			   name, args);

	backend_submit(&b,
		       &(struct backend_submission){.file = "a.yaml",
						    .text = text,
						    .len = strlen(text),
						    .submitter = "ada@login1"},
		       on_submit, uuid_of(name));
	expect(said);
}

/* Hold NAME until ARGS allow its launch. */
static void hold(const char *name, const char *args)
{
	cleanup_free char *said = text_print("submit 0 %s-1", name);

	submit(name, args, said);
}

static void release(const char *name, const char *said)
{
	cleanup_free char *id = text_print("%s-1", name);

	backend_control(&b, id, uuid_of(name), SPEC_RELEASE, NULL, on_control, uuid_of(name));
	expect(said);
}

static void cancel(const char *name, const char *said)
{
	cleanup_free char *id = text_print("%s-1", name);

	backend_cancel(&b, id, uuid_of(name), on_cancel, NULL);
	expect(said);
}

struct seen {
	const char *id;
	enum spec_state state;
	const char *submission;
};

static void see(void *data)
{
	const struct seen *s = data;

	put_job(s->id, s->submission ? s->submission : "", s->state);
}

/*
 * Report the job ID in STATE. SUBMISSION is its submission, or NULL if the job is somebody else's.
 */
static void job_is(const char *id, const char *submission, enum spec_state state)
{
	call(see, &(struct seen){id, state, submission});
}

/* Return the number of records in STATE/jobs. */
static unsigned n_records(void)
{
	cleanup_free char *path = text_print("%s/jobs", base);
	DIR *dir = opendir(path);
	const struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir)))
		n += *entry->d_name != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* Wait until there are N records. The disk takes its own time. */
static void expect_records(unsigned n)
{
	SOON(n_records() == n);
	assert_int_equal(n_records(), n);
}

/* Wait until N records are LIVE. */
static void expect_live(unsigned n)
{
	cleanup_free char *count =
		text_print("test $(grep -l '\"state\":\"LIVE\"' %s/jobs/* | wc -l) = %u", base, n);

	SOON(system(count) == 0);	    /* NOLINT(cert-env33-c) */
	assert_int_equal(system(count), 0); /* NOLINT(cert-env33-c) */
}

/* A job that will never be launched is in history/. */
static bool is_shown(const char *id, enum spec_state state, const char *reason)
{
	const bool over = state == SPEC_CANCELLED || state == SPEC_FAILED;
	const struct spec_job *job cleanup_job =
		store_get(store, over ? BACKEND_HISTORY : BACKEND_JOBS, id);

	return job && job->state == state &&
	       streq(*job->cause.reason ? job->cause.reason : job->reason, reason);
}

/* Wait until the job ID is shown in STATE with REASON. The disk takes its own time. */
static void assert_shown(const char *id, enum spec_state state, const char *reason)
{
	SOON(is_shown(id, state, reason));
	assert_true(is_shown(id, state, reason));
}

/* Begin to launch a-1. The launch waits in LATE for its answer. */
static void launch_late(void)
{
	is_late = true;
	hold("a", "hold: true");
	release("a", "control 0, launch a-1");
}

static bool store_has(const char *id)
{
	const struct spec_job *job cleanup_job = store_get(store, BACKEND_JOBS, id);

	return job;
}

static void restart(void)
{
	end_run();
	begin_run();
}

static void restart_in_charge(void)
{
	restart();
	call(take_charge, NULL);
}

/* --- tests --- */

/* The launch has the name and the UUID that the submitter was told. */
static void test_release(void **state)
{
	uint64_t shown;

	hold("a", "hold: true");
	shown = seed;
	submit("a", "hold: true", "submit 17"); /* the name is taken */
	pass(10);
	expect_now("");
	release("a", "control 0, launch a-1");
	assert_string_equal(submissions, uuid_of("a"));
	assert_true(seed == shown);
	pass(6);
	expect_live(1);
	/* Now it is a job like any other, even for a user who has read its files before. */
	cancel("a", "cancel uid-a-1, cancel 0");
}

/* NAME.job shows neither a job that the user removed, nor an older one instead. */
static void test_removed_link(void **state)
{
	struct backend_file found;

	hold("b", "hold: true");
	hold("a", "hold: true");
	cancel("a", "cancel 0");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(job_files_find(records_files(b.records), "a.yaml", &found),
				 -ENOENT);
		restart();
	}
}

/* The disk refuses to remove the job's record. The job remains held, and can be removed later. */
static void test_removed_unsynced(void **state)
{
	hold("a", "hold: true");
	bad_syncs = 1;
	cancel("a", "cancel 5");
	assert_shown("a-1", SPEC_PENDING, "Held");
	pass(5);
	restart_in_charge();
	assert_shown("a-1", SPEC_PENDING, "Held");
	cancel("a", "cancel 0");
	assert_false(store_has("a-1"));
	expect_records(0);
}

/* A release is accepted once it is on disk, and refused if it can't be written. */
static void test_release_not_recorded(void **state)
{
	hold("a", "hold: true");
	bad_syncs = 1;
	release("a", "control 5");
	assert_shown("a-1", SPEC_PENDING, "Held");
	pass(10);
	expect_now("");
	release("a", "control 0, launch a-1");
}

/*
 * A job that was never launched stays in the history as long as others do. It also stays if the
 * disk refuses to remove its record.
 */
static void test_never_launched(void **state)
{
	cleanup_free char *aside = text_print("%s/aside", base), *path = NULL;

	job_is("y-1", NULL, SPEC_FAILED);
	hold("b", "'after': [ok:y-1]");
	assert_shown("b-1", SPEC_CANCELLED, "DependencyNeverSatisfied");
	pass(10);
	path = text_print("%s/jobs/%s", base, uuid_of("b"));
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	backend_forget(&b, "b-1", uuid_of("b"), on_cancel, NULL);
	expect("cancel 21");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(aside, path), 0);
	pass(HISTORY_S - 30);
	assert_shown("b-1", SPEC_CANCELLED, "DependencyNeverSatisfied");
	pass(40);
	expect_records(0);
	expect_now("");
}

/* The job that another one waits for is gone. kxfs knows that only after all jobs were listed. */
static void test_after_gone(void **state)
{
	job_is("x-1", NULL, SPEC_RUNNING);
	hold("a", "'after': [any:x-1]");
	whole = false;
	restart_in_charge();
	pass(20);
	expect_now("");
	whole = true;
	pass(6);
	expect("launch a-1");
}

/*
 * Removing a job may affect a job that waits for it. The removal is answered once that effect is on
 * disk, or can't be written.
 */
static void test_removal_waits(void **state)
{
	static const struct {
		const char *name;
		int bad_syncs;
		const char *said;
	} cases[] = {
		{"a", 1000, "cancel uid-x-1, cancel 110"},
		{"b", 0, "cancel uid-x-1, cancel 0"},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		job_is("x-1", NULL, SPEC_RUNNING);
		hold(cases[i].name, "hold: true, 'after': [any:x-1]");
		bad_syncs = cases[i].bad_syncs;
		backend_cancel(&b, "x-1", "uid-x-1", on_cancel, NULL);
		expect(cases[i].said);
		bad_syncs = 0;
		pass(60);
	}
	restart_in_charge();
	release("a", "control 0, launch a-1");
	release("b", "control 0, launch b-1");
}

/*
 * A second condition can be decided while kxfs records that the first one can't be met. Removals of
 * other jobs do not wait for that.
 */
static void test_decided_while_written(void **state)
{
	job_is("x-1", NULL, SPEC_RUNNING);
	job_is("y-1", NULL, SPEC_RUNNING);
	hold("a", "'after': [ok:x-1, ok:y-1]");
	hangs = true;
	hung = false;
	job_is("x-1", NULL, SPEC_FAILED);
	clock_pass(loop, 1);
	while (!hung)
		usleep(1000);
	job_is("y-1", NULL, SPEC_SUCCEEDED);
	hangs = false;
	assert_shown("a-1", SPEC_CANCELLED, "DependencyNeverSatisfied");
	pass(10);
	backend_cancel(&b, "x-1", "uid-x-1", on_cancel, NULL);
	expect("cancel uid-x-1, cancel 0");
}

/*
 * kxfs reports that nothing was launched only after the removal of the record is on disk. Otherwise
 * a crash may bring the record back.
 */
static void test_unsure(void **state)
{
	bad_syncs = 1;
	submit("a", "hold: true", "submit 5");
	bad_syncs = 2;
	submit("b", "hold: true", "submit 115");
	assert_int_equal(bad_syncs, 0);
	assert_int_equal(n_records(), 0);
}

/* kxfs retries a refused launch after growing pauses. */
static void test_back_off(void **state)
{
	refuse = -EIO;
	hold("a", "begin: +5s");
	pass(4);
	expect("launch a-1");
	/* The delay shows immediately, not only after the next attempt. */
	assert_shown("a-1", SPEC_PENDING, "LaunchDelayed");
	pass(62);
	/* The pauses are 1, 2, 4, 8, 16 and 32 s, each up to a quarter longer or shorter. */
	call(forget, NULL);
	pass(100);
	assert_in_range(n_noted(), strlen("launch a-1"),
			strlen("launch a-1, launch a-1, launch a-1"));
	call(forget, NULL);
	refuse = 0;
	pass(80);
	expect("launch a-1");
}

/* The launch is refused, but the job appears. So it was launched. */
static void test_seen_though_refused(void **state)
{
	launch_late();
	job_is("a-1", uuid_of("a"), SPEC_RUNNING);
	refuse = -EIO;
	call(answer_launch, late[0]);
	pass(10);
	expect_now("");
	expect_live(1);
}

/* When kxfs ends, waiting requests are answered with an error. */
static void test_end(void **state)
{
	launch_late();
	cancel("a", "");
	refuse = -ENOTCONN;
	call(go_down, NULL);
	call(answer_launch, late[0]);
	expect("cancel 107");
	restart();
	assert_shown("a-1", SPEC_PENDING, "Launching");
	assert_int_equal(n_records(), 1);
}

/*
 * A start that finds a record launches the job once kxfs is in charge, unless the job already
 * exists.
 */
static void test_restart(void **state)
{
	hold("a", "begin: +1h");
	hold("b", "begin: +1h");
	end_run();
	clock_pass(loop, 3600);
	begin_run();
	pass(10);
	expect_now("");
	assert_shown("a-1", SPEC_PENDING, "Launching");
	job_is("b-1", uuid_of("b"), SPEC_RUNNING);
	call(take_charge, NULL);
	expect("launch a-1");
	assert_string_equal(submissions, uuid_of("a"));
	assert_false(is_again);
	pass(10);
	expect_now("");
	expect_live(2);
}

static void answer_lost(void *data)
{
	backend_answer(late[0], -EINPROGRESS, NULL, "the reply was lost");
}

/*
 * It is unknown whether a job was launched. Neither this run nor the next one launches it again,
 * and it can't be removed. If kxfs can't find out, the user decides.
 */
static void test_not_known(void **state)
{
	launch_late();
	call(answer_lost, NULL);
	assert_shown("a-1", SPEC_SUBMITTED, "Submitting");
	cancel("a", "cancel 11");
	restart_in_charge();
	assert_shown("a-1", SPEC_SUBMITTED, "Submitting");
	release("a", "control 22");
	clock_pass(loop, 610);
	pass(10);
	expect_now("");
	assert_shown("a-1", SPEC_SUBMITTED, "LaunchUnknown");
	is_late = false;
	release("a", "control 0, launch a-1");
	assert_true(is_again);
	pass(6);
	expect_live(1);
}

/* --- submissions that were not held --- */

static struct record *sent;
static struct held_answer given;

/* Create the record of a submission that is being sent. */
static void make_sent(void *done)
{
	struct spec_head *head = spec_head_new();

	head->state = RECORD_SUBMITTING;
	head->own = true;
	strcpy(uuid_of("s"), "uuid-s");
	spec_set(&head->key, "uuid-s");
	spec_set(&head->id, "s-1");
	spec_set(&head->file, "s.yaml");
	spec_set(&head->backend, "fake");
	sent = records_make(b.records, head, &(struct record_rest){.document = "name: s", .len = 7},
			    NULL, NULL, NULL);
}

static void show_sent(void *data)
{
	held_sent(b.held, sent, "name: s", 7);
}

static void answer_sent(void *data)
{
	given.text = "name: s";
	given.len = 7;
	held_answered(b.held, sent, &given);
}

static void find_sent(void *ret)
{
	*(struct record **)ret = records_by_key(b.records, "uuid-s");
}

/* True if the submission's record is gone from memory as well as from disk. */
static bool is_sent_gone(void)
{
	struct record *r = NULL;

	call(find_sent, &r);
	return !r;
}

/* What happens to a submission when it is answered, and when it is not. */
static void test_sent(void **state)
{
	call(make_sent, NULL);
	expect_records(1);
	call(show_sent, NULL);
	assert_shown("s-1", SPEC_SUBMITTED, "Submitting");
	cancel("s", "cancel 11");
	/* It was refused, and the user was notified. */
	given = (struct held_answer){.err = -EPERM, .heard = true};
	call(answer_sent, NULL);
	expect_records(0);
	assert_false(store_has("s-1"));
	SOON(is_sent_gone());
	/* It was refused when no user waited for the answer any more. */
	call(make_sent, NULL);
	given = (struct held_answer){.err = -EPERM, .why = "no right"};
	call(answer_sent, NULL);
	assert_shown("s-1", SPEC_FAILED, "LaunchFailed");
	restart();
	assert_shown("s-1", SPEC_FAILED, "LaunchFailed");
}

/* Wait until N launches were requested. */
static void expect_late(size_t n)
{
	SOON(n_late >= n);
	pass(2);
	assert_int_equal(n_late, n);
}

static void test_few_at_once(void **state)
{
	char name[] = "a";

	is_late = true;
	for (; *name <= 'j'; ++*name)
		hold(name, "begin: +1h");
	clock_pass(loop, 3600);
	expect_late(8);
	call(answer_launch, late[0]);
	expect_late(9);
	for (size_t i = 1; i < 10; i++) {
		call(answer_launch, late[i]);
		expect_late(10);
	}
}

/*
 * The record of a launched job that does not appear is kept for ten minutes. The event of the job,
 * or the discovery of its kind, may still be on the way.
 */
static void test_unseen(void **state)
{
	unseen = true;
	hold("a", "hold: true");
	release("a", "control 0, launch a-1");
	pass(500);
	assert_int_equal(n_records(), 1);
	whole = false;
	pass(120);
	assert_int_equal(n_records(), 1);
	whole = true;
	pass(10);
	expect_records(0);
	expect_now("");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_held, teardown_held)
	const struct CMUnitTest tests[] = {
		TEST(test_release),
		TEST(test_removed_link),
		TEST(test_removed_unsynced),
		TEST(test_release_not_recorded),
		TEST(test_never_launched),
		TEST(test_after_gone),
		TEST(test_removal_waits),
		TEST(test_decided_while_written),
		TEST(test_unsure),
		TEST(test_back_off),
		TEST(test_seen_though_refused),
		TEST(test_end),
		TEST(test_restart),
		TEST(test_not_known),
		TEST(test_sent),
		TEST(test_few_at_once),
		TEST(test_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
