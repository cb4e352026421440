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
#include "tests/unit/backend/jobs/assert_file.h"
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
static int begin_err;	     /* result of the start */

/* --- the disk --- */

static const char
	/*
	 * Which file of STATE/jobs can't be opened. "": its directory can't be listed. NULL:
	 * everything works.
	 */
	*_Atomic broken;

int openat(int at, const char *path, int flags, ...)
{
	const char *in = strstr(path, "/jobs"), *what = broken;
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (in && what && (*what ? strstr(in, what) != NULL : streq(in, "/jobs"))) {
		if (!*what)
			broken = NULL;
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_openat, at, path, flags | O_LARGEFILE, mode);
}

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

	note("launch %s%s", id, rq->held ? "" : " at once");
	if (rq->held)
		assert_string_equal(rq->backend, "fake"); /* the dry run returned this */
	else
		assert_null(rq->backend);
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
	if (strstr(rq->text, "impossible"))
		backend_answer(rq, -EINVAL, NULL, "it is impossible");
	else
		backend_reply(rq, &(struct backend_result){0, "", id, "manifest\n", "fake", ""});
}

static void fake_cancel(struct backend *backend, struct backend_request *rq)
{
	note("cancel %s", rq->uid);
	if (streq(rq->id, "x-1"))
		store_remove(store, rq->uid);
	backend_answer(rq, 0, NULL, NULL);
}

static void fake_control(struct backend *backend, struct backend_request *rq)
{
	note("control %s", rq->uid);
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
	.request[BACKEND_CONTROL] = fake_control,
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
	begin_err = err;
	if (text)
		note("%s", text);
	if (err)
		post_sem(done);
	else
		held_begin(b.held, post_sem, done);
}

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

/* Start kxfs. It shows what it finds, and launches nothing yet. */
static void begin_run(void)
{
	sem_t done;

	sem_init(&done, 0, 0);
	b.up = true;
	call(begin, &done);
	sem_wait_or_fail(&done);
	sem_destroy(&done);
}

static void end_run(void)
{
	sem_t done;

	sem_init(&done, 0, 0);
	call(stop, &done);
	sem_wait_or_fail(&done);
	sem_destroy(&done);
	held_free(take_ptr(b.held));
	records_free(take_ptr(b.records));
}

static void free_store(void *data)
{
	store_free(store);
	store = b.store = NULL;
}

static void new_store(void *data)
{
	store = b.store = store_new(&(struct store_events){.changed = on_job});
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
	broken = NULL;
	bad_syncs = 0;
	forget_noted();
	atomic_store(&clock_ahead, 0);
	atomic_store(&clock_set, 0);
	setup_started(state);
	b.loop = loop;
	new_store(NULL);
	begin_run();
	call(take_charge, NULL);
	return 0;
}

static int teardown_held(void **state)
{
	if (b.held)
		end_run();
	teardown(state);
	free_store(NULL);
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
		sem_t done;

		sem_init(&done, 0, 0);
		call(ask_pool, &done);
		sem_wait_or_fail(&done);
		sem_destroy(&done);
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

static void control(const char *name, enum spec_action action)
{
	cleanup_free char *id = text_print("%s-1", name);

	backend_control(&b, id, uuid_of(name), action, NULL, on_control, uuid_of(name));
}

static void cancel(const char *name)
{
	cleanup_free char *id = text_print("%s-1", name);

	backend_cancel(&b, id, uuid_of(name), on_cancel, NULL);
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

static void forget_x(void *data)
{
	store_remove(store, "uid-x-1");
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

static bool store_has(const char *id)
{
	const struct spec_job *job cleanup_job = store_get(store, BACKEND_JOBS, id);

	return job;
}

/* Restart kxfs. No job is listed yet. */
static void restart(void)
{
	end_run();
	free_store(NULL);
	new_store(NULL);
	begin_run();
}

/* --- tests --- */

static void test_release(void **state)
{
	uint64_t shown;

	submit("a", "queue: q", "launch a-1 at once, submit 0 a-1");
	submit("b", "hold: true", "submit 0 b-1");
	shown = seed;
	assert_shown("b-1", SPEC_PENDING, "Held");
	assert_int_equal(n_records(), 1);
	pass(10);
	control("b", SPEC_SUSPEND);
	expect("control 22");
	control("b", SPEC_RELEASE);
	expect("control 0, launch b-1");
	/* The launch has the UUID that was returned to the user. */
	assert_string_equal(submissions, uuid_of("b"));
	assert_true(seed == shown);
	pass(6);
	expect_live(1);
	/* Now it is a job like any other, even for a user who has read its files before. */
	cancel("b");
	expect("cancel uid-b-1, cancel 0");
}

static void test_refused(void **state)
{
	submit("a", "hold: true, x: impossible", "submit 22");
	submit("b", "'after': [ok:nobody]", "submit 22");
	submit("c", "hold: true", "submit 0 c-1");
	submit("c", "hold: true", "submit 17");
	assert_int_equal(n_records(), 1);
}

static void test_removed(void **state)
{
	submit("a", "hold: true", "submit 0 a-1");
	cancel("a");
	expect("cancel 0");
	assert_int_equal(n_records(), 0);
	assert_null(store_get(store, BACKEND_JOBS, "a-1"));
	restart();
	assert_null(store_get(store, BACKEND_JOBS, "a-1"));
}

/* The disk refuses to remove the job's record. The job remains held, and can be removed later. */
static void test_removed_unsynced(void **state)
{
	submit("a", "hold: true", "submit 0 a-1");
	bad_syncs = 1;
	cancel("a");
	expect("cancel 5");
	assert_shown("a-1", SPEC_PENDING, "Held");
	pass(5);
	restart();
	assert_shown("a-1", SPEC_PENDING, "Held");
	call(take_charge, NULL);
	cancel("a");
	expect("cancel 0");
	assert_false(store_has("a-1"));
	expect_records(0);
}

/* The disk refuses to remove the record of a job that was never launched. It stays in history/. */
static void test_forget_refused(void **state)
{
	cleanup_free char *aside = text_print("%s/aside", base), *path = NULL;

	job_is("y-1", NULL, SPEC_FAILED);
	submit("b", "'after': [ok:y-1]", "submit 0 b-1");
	assert_shown("b-1", SPEC_CANCELLED, "DependencyNeverSatisfied");
	pass(10);
	path = text_print("%s/jobs/%s", base, uuid_of("b"));
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	backend_forget(&b, "b-1", uuid_of("b"), on_cancel, NULL);
	expect("cancel 21");
	assert_shown("b-1", SPEC_CANCELLED, "DependencyNeverSatisfied");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(aside, path), 0);
	backend_forget(&b, "b-1", uuid_of("b"), on_cancel, NULL);
	expect("cancel 0");
	expect_records(0);
}

/* A release is accepted once it is on disk, and refused if it can't be written. */
static void test_release_not_recorded(void **state)
{
	cleanup_free char *aside = text_print("%s/aside", base), *path = NULL;

	submit("a", "hold: true", "submit 0 a-1");
	path = text_print("%s/jobs/%s", base, uuid_of("a"));
	assert_int_equal(rename(path, aside), 0);
	control("a", SPEC_RELEASE);
	expect("control 2");
	assert_shown("a-1", SPEC_PENDING, "Held");
	pass(10);
	expect_now("");
	assert_int_equal(rename(aside, path), 0);
	control("a", SPEC_RELEASE);
	expect("control 0, launch a-1");
}

static void test_begin(void **state)
{
	submit("a", "begin: +1h", "submit 0 a-1");
	pass(10);
	clock_pass(loop, 3580);
	pass(3);
	expect_now("");
	assert_shown("a-1", SPEC_PENDING, "BeginTime");
	pass(8);
	expect("launch a-1");
}

static void test_after(void **state)
{
	job_is("x-1", NULL, SPEC_RUNNING);
	job_is("y-1", NULL, SPEC_RUNNING);
	submit("a", "'after': [ok:x-1, any:y-1]", "submit 0 a-1");
	submit("b", "'after': [ok:y-1]", "submit 0 b-1");
	assert_shown("a-1", SPEC_PENDING, "Dependency");
	job_is("x-1", NULL, SPEC_SUCCEEDED);
	pass(10);
	expect_now("");
	job_is("y-1", NULL, SPEC_FAILED);
	expect("launch a-1");
	pass(1);
	assert_shown("b-1", SPEC_CANCELLED, "DependencyNeverSatisfied");
	/* The job stays in the history as long as others do. */
	expect_records(2);
	pass(HISTORY_S - 20);
	assert_int_equal(n_records(), 2);
	pass(40);
	expect_records(1);
	expect_live(1);
	expect_now("");
}

/* The job that another one waits for is gone. kxfs knows that only after all jobs were listed. */
static void test_after_gone(void **state)
{
	job_is("x-1", NULL, SPEC_RUNNING);
	submit("a", "'after': [any:x-1]", "submit 0 a-1");
	whole = false;
	restart();
	call(take_charge, NULL);
	pass(20);
	expect_now("");
	whole = true;
	pass(6);
	expect("launch a-1");
}

static void test_after_removed(void **state)
{
	job_is("x-1", NULL, SPEC_RUNNING);
	submit("a", "'after': [any:x-1]", "submit 0 a-1");
	call(forget_x, NULL);
	expect("launch a-1");
}

/*
 * Removing a job may affect a job that waits for it. The removal is answered once that effect is on
 * disk, or can't be written.
 */
static void test_removal_waits(void **state)
{
	for (int sick = 1; sick >= 0; sick--) {
		job_is("x-1", NULL, SPEC_RUNNING);
		submit(sick ? "a" : "b", "hold: true, 'after': [any:x-1]",
		       sick ? "submit 0 a-1" : "submit 0 b-1");
		bad_syncs = sick ? 1000 : 0;
		backend_cancel(&b, "x-1", "uid-x-1", on_cancel, NULL);
		expect(sick ? "cancel uid-x-1, cancel 110" : "cancel uid-x-1, cancel 0");
		bad_syncs = 0;
		pass(60);
	}
	restart();
	call(take_charge, NULL);
	control("a", SPEC_RELEASE);
	expect("control 0, launch a-1");
	control("b", SPEC_RELEASE);
	expect("control 0, launch b-1");
}

/*
 * A second condition can be decided while kxfs records that the first one can't be met. Removals of
 * other jobs do not wait for that.
 */
static void test_decided_while_written(void **state)
{
	job_is("x-1", NULL, SPEC_RUNNING);
	job_is("y-1", NULL, SPEC_RUNNING);
	submit("a", "'after': [ok:x-1, ok:y-1]", "submit 0 a-1");
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

/*
 * Assert that a start fails if the disk can't read the held jobs, and that the message names the
 * file. The next start must find the jobs.
 */
static void expect_start_fails(const char *what, const char *said)
{
	broken = what;
	restart();
	assert_int_not_equal(begin_err, 0);
	assert_false(store_has("a-1"));
	expect(said);
	broken = NULL;
	restart();
	assert_int_equal(begin_err, 0);
	assert_shown("a-1", SPEC_PENDING, "Held");
	call(take_charge, NULL);
	control("a", SPEC_RELEASE);
	expect("control 0, launch a-1");
}

static void test_unlisted(void **state)
{
	cleanup_free char *said = text_print("%s/jobs can't be used: Input/output error", base);

	submit("a", "hold: true", "submit 0 a-1");
	expect_start_fails("", said);
}

static void test_unread(void **state)
{
	cleanup_free char *path = NULL, *said = NULL;

	submit("a", "hold: true", "submit 0 a-1");
	path = text_print("%s/jobs/%s", base, uuid_of("a"));
	said = text_print(
		"%s can't be read: Input/output error; to start without that job, move %s elsewhere",
		path, path);
	expect_start_fails(uuid_of("a"), said);
}

/* No flipped bit in a record changes what happens to its job. */
static void test_flipped_bit(void **state)
{
	cleanup_free char *flip = NULL, *aside = NULL;

	submit("a", "hold: true", "submit 0 a-1");
	flip = text_print("sed -i '2s/\"hold\":true/\"hold\":null/' %s/jobs/%s", base,
			  uuid_of("a"));
	aside = text_print("%s/aside/%s.record", base, uuid_of("a"));
	assert_int_equal(system(flip), 0); /* NOLINT(cert-env33-c) */
	restart();
	assert_int_equal(begin_err, 0);
	call(take_charge, NULL);
	pass(10);
	expect_now("");
	expect_records(0);
	assert_int_equal(access(aside, F_OK), 0);
}

/* kxfs retries a refused launch after growing pauses. */
static void test_back_off(void **state)
{
	refuse = -EIO;
	submit("a", "begin: +5s", "submit 0 a-1");
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

static void test_refused_for_good(void **state)
{
	submit("a", "begin: +5s", "submit 0 a-1");
	refuse = -EINVAL;
	pass(5);
	expect("launch a-1");
	assert_shown("a-1", SPEC_FAILED, "LaunchFailed");
	refuse = 0;
	pass(70);
	expect_now("");
}

/* The launch is refused, but the job appears. So it was launched. */
static void test_seen_though_refused(void **state)
{
	is_late = true;
	submit("a", "hold: true", "submit 0 a-1");
	control("a", SPEC_RELEASE);
	expect("control 0, launch a-1");
	job_is("a-1", uuid_of("a"), SPEC_RUNNING);
	refuse = -EIO;
	call(answer_launch, late[0]);
	pass(10);
	expect_now("");
	expect_live(1);
}

/*
 * Requests about a job wait while the job is being launched. Then they apply to the launched job.
 */
static void test_requests_wait(void **state)
{
	is_late = true;
	submit("a", "hold: true", "submit 0 a-1");
	control("a", SPEC_RELEASE);
	expect("control 0, launch a-1");
	cancel("a");
	pass(2);
	expect_now("");
	call(answer_launch, late[0]);
	pass(6);
	expect("cancel uid-a-1, cancel 0");
}

/* When kxfs ends, waiting requests are answered with an error. */
static void test_end(void **state)
{
	is_late = true;
	submit("a", "hold: true", "submit 0 a-1");
	control("a", SPEC_RELEASE);
	expect("control 0, launch a-1");
	cancel("a");
	call(nothing, NULL);
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
	submit("a", "begin: +1h", "submit 0 a-1");
	submit("b", "begin: +1h", "submit 0 b-1");
	end_run();
	clock_pass(loop, 3600);
	free_store(NULL);
	new_store(NULL);
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

static void go_unclear(void *data)
{
	backend_answer(late[0], -EINPROGRESS, NULL, "the reply was lost");
}

/*
 * It is unknown whether a job was launched. Neither this run nor the next one launches it again,
 * and it can't be removed. If kxfs can't find out, the user decides.
 */
static void test_not_known(void **state)
{
	is_late = true;
	submit("a", "hold: true", "submit 0 a-1");
	control("a", SPEC_RELEASE);
	expect("control 0, launch a-1");
	call(go_unclear, NULL);
	assert_shown("a-1", SPEC_SUBMITTED, "Submitting");
	cancel("a");
	expect("cancel 11");
	restart();
	call(take_charge, NULL);
	assert_shown("a-1", SPEC_SUBMITTED, "Submitting");
	control("a", SPEC_RELEASE);
	expect("control 22");
	clock_pass(loop, 610);
	pass(10);
	expect_now("");
	assert_shown("a-1", SPEC_SUBMITTED, "LaunchUnknown");
	is_late = false;
	control("a", SPEC_RELEASE);
	expect("control 0, launch a-1");
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
	cancel("s");
	expect("cancel 11");
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

/*
 * kxfs was killed while sending a submission. It does not send it again. If the server does not
 * have the job, it never becomes one.
 */
static void test_sent_killed(void **state)
{
	call(make_sent, NULL);
	expect_records(1);
	restart();
	call(take_charge, NULL);
	assert_shown("s-1", SPEC_SUBMITTED, "Submitting");
	clock_pass(loop, 610);
	pass(10);
	assert_shown("s-1", SPEC_CANCELLED, "NotLaunched");
	expect_now("");
	/* The server has the job after all. */
	job_is("s-1", "uuid-s", SPEC_RUNNING);
	assert_true(store_has("s-1"));
}

/* It is unknown whether a job was launched. Then the job appears, so it was. */
static void test_known_late(void **state)
{
	is_late = true;
	submit("a", "hold: true", "submit 0 a-1");
	control("a", SPEC_RELEASE);
	expect("control 0, launch a-1");
	call(go_unclear, NULL);
	restart();
	call(take_charge, NULL);
	job_is("a-1", uuid_of("a"), SPEC_RUNNING);
	pass(10);
	expect_now("");
	expect_live(1);
}

/* Assert that NAME.job of a.yaml shows ID in PLACE, or nothing if ID is NULL. */
static void assert_link(const char *id, enum backend_place place)
{
	assert_file(records_files(b.records), "a.yaml", id, place);
}

/*
 * NAME.job shows a held job, and a job that was never launched. It does so after a restart too. It
 * does not show a job that the user removed.
 */
static void test_link(void **state)
{
	submit("a", "hold: true", "submit 0 a-1");
	assert_link("a-1", BACKEND_JOBS);
	submit("b", "hold: true", "submit 0 b-1");
	submit("c", "'after': [ok:b-1]", "submit 0 c-1");
	assert_link("c-1", BACKEND_JOBS);
	cancel("b");
	expect("cancel 0");
	pass(1);
	assert_shown("c-1", SPEC_CANCELLED, "DependencyNeverSatisfied");
	assert_link("c-1", BACKEND_HISTORY);
	restart();
	assert_link("c-1", BACKEND_HISTORY);
	call(take_charge, NULL);
	submit("d", "begin: 2001-01-01", "submit 0 d-1, launch d-1");
	pass(6);
	expect_live(1);
	assert_link("d-1", BACKEND_JOBS);
	submit("e", "hold: true", "submit 0 e-1");
	cancel("e");
	expect("cancel 0");
	assert_link(NULL, 0);
	restart();
	assert_link(NULL, 0);
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
	for (; *name <= 'j'; ++*name) {
		cleanup_free char *said = text_print("submit 0 %s-1", name);

		submit(name, "begin: +1h", said);
	}
	clock_pass(loop, 3600);
	expect_late(8);
	call(answer_launch, late[0]);
	expect_late(9);
	for (size_t i = 1; i < 10; i++) {
		call(answer_launch, late[i]);
		expect_late(10);
	}
	call(forget, NULL);
}

/*
 * The record of a launched job that does not appear is kept for ten minutes. The event of the job,
 * or the discovery of its kind, may still be on the way.
 */
static void test_unseen(void **state)
{
	unseen = true;
	submit("a", "hold: true", "submit 0 a-1");
	control("a", SPEC_RELEASE);
	expect("control 0, launch a-1");
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

static void test_damaged(void **state)
{
	cleanup_free char *copy = NULL;

	submit("a", "begin: +1h", "submit 0 a-1");
	submit("b", "begin: +1h", "submit 0 b-1");
	copy = text_print("cd %s/jobs; cp %s uuid-c; echo x > uuid-d; mv %s uuid-e", base,
			  uuid_of("a"), uuid_of("b"));
	assert_int_equal(system(copy), 0); /* NOLINT(cert-env33-c) */
	restart();
	assert_false(store_has("b-1"));
	call(take_charge, NULL);
	clock_pass(loop, 3600);
	expect("launch a-1");
	pass(10);
	expect_now("");
	expect_live(1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_held, teardown_held)
	const struct CMUnitTest tests[] = {
		TEST(test_release),
		TEST(test_refused),
		TEST(test_removed),
		TEST(test_removed_unsynced),
		TEST(test_forget_refused),
		TEST(test_release_not_recorded),
		TEST(test_begin),
		TEST(test_after),
		TEST(test_after_gone),
		TEST(test_after_removed),
		TEST(test_removal_waits),
		TEST(test_decided_while_written),
		TEST(test_unread),
		TEST(test_unlisted),
		TEST(test_flipped_bit),
		TEST(test_unsure),
		TEST(test_back_off),
		TEST(test_refused_for_good),
		TEST(test_seen_though_refused),
		TEST(test_requests_wait),
		TEST(test_end),
		TEST(test_restart),
		TEST(test_not_known),
		TEST(test_known_late),
		TEST(test_sent),
		TEST(test_sent_killed),
		TEST(test_link),
		TEST(test_few_at_once),
		TEST(test_unseen),
		TEST(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
