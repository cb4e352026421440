/* SPDX-License-Identifier: MIT */
/* Jobs are put, with what they have printed, and never over what is there already. */
#include "backend/keep/keep.h"
#include "backend/archive/archive.h"
#include "tests/unit/backend/keep/rig.h"
#include "tests/unit/clock.h"

#define FOLDER "out/ns/1970-01-01/"

static struct keep *keep;
static sem_t begun, put, stopped;
static int begun_err;

static int text_of(void *data, const struct spec_job *job, enum keep_text which, char **ret,
		   size_t *ret_len)
{
	if (which == KEEP_APPDEF)
		return -ENOENT;
	*ret = text_copy(which == KEEP_EVENTS ? "" : "kind: Job\n");
	*ret_len = strlen(*ret);
	return 0;
}

static void on_begun(void *data, int err, const char *text)
{
	begun_err = err;
	sem_post(&begun);
}

static void begin(void *data)
{
	keep_begin(keep, "ns", data, on_begun, NULL);
}

static void start(const char *cluster)
{
	cleanup_free char *dir = text_print("%s/out", base);
	char *text;

	sem_init(&begun, 0, 0);
	sem_init(&put, 0, 0);
	sem_init(&stopped, 0, 0);
	assert_int_equal(keep_new(
				 &(struct keep_config){
					 .loop = loop,
					 .place = {.where = dir},
					 .state_dir = base,
					 .writer = "me@here",
					 .stop_ms = WAIT_S * 1000,
					 .text = text_of,
				 },
				 &keep, &text),
			 0);
	keep_set_put(keep, post_sem, &put);
	call(begin, (void *)(uintptr_t)cluster);
	sem_wait_or_fail(&begun);
}

static void do_stop(void *data)
{
	keep_stop(keep, post_sem, &stopped);
}

static void stop(void)
{
	call(do_stop, NULL);
	sem_wait_or_fail(&stopped);
	keep_free(keep);
}

/* What keep is told of a job. */
struct told {
	const struct spec_job *old, *job;
};

static void tell(void *data)
{
	const struct told *told = data;

	keep_job(keep, told->old, told->job);
}

/* The job ID, whose uid is its id too, with the log u.main.0, which has ended; LEFT: it has left jobs/. */
static struct spec_job *job_of(const char *id, bool left)
{
	struct spec_job *job = spec_job_new(1, 1);

	spec_set(&job->id, id);
	spec_set(&job->uid, id);
	spec_set(&job->backend, "volcano");
	job->state = SPEC_SUCCEEDED;
	job->replicas[0].state = SPEC_SUCCEEDED;
	job->replicas[0].finished = job->finished = 1;
	spec_set(&job->roles[0].name, "w");
	job->roles[0].n = 1;
	spec_set(&job->replicas[0].name, "w-0");
	spec_replica_add_log(&job->replicas[0], "u.main.0", NULL);
	job->replicas[0].logs[0].complete = true;
	job->history = left;
	return job;
}

static void prints(const char *id, const char *text)
{
	shell("mkdir -p jobs/%s/logs jobs/%s/lines; printf '%s' >jobs/%s/logs/u.main.0", id, id,
	      text, id);
	shell("printf T%s >jobs/%s/lines/u.main.0", id, id);
}

/* Once a job is due it is put, and then its line in the list, when that is due. */
static void is_put(void)
{
	clock_pass_slowly(loop, 5);
	sem_wait_or_fail(&put);
}

static void put_job(const char *id, bool left)
{
	struct spec_job *job = job_of(id, left);
	struct told told = {NULL, job};

	call(tell, &told);
	is_put();
	spec_job_unref(job);
}

struct has {
	const char *uid;
	bool ret;
};

static void do_has(void *data)
{
	struct has *h = data;

	h->ret = keep_has(keep, h->uid);
}

static bool has(const char *uid)
{
	struct has h = {.uid = uid};

	call(do_has, &h);
	return h.ret;
}

static void test_put(void **state)
{
	struct spec_job *job;

	shell("mkdir out");
	prints("a", "one\\n");
	start("c1");
	assert_int_equal(begun_err, 0);
	assert_file("out/ns/source.json", "{\"namespace\":\"ns\",\"uid\":\"c1\"}\n");
	assert_false(has("a"));
	put_job("a", false);
	assert_true(has("a"));
	assert_file(FOLDER "a/uid", "a\n");
	assert_file(FOLDER "a/manifest.yaml", "kind: Job\n");
	assert_file(FOLDER "a/events", "");
	assert_file(FOLDER "a/app.yaml", NULL);
	assert_file(FOLDER "a/w-0/log.0.key", "u.main.0\n");
	assert_file(FOLDER "a/w-0/log.0/0000000000000000", "one\n");
	assert_file(FOLDER "a/w-0/log.0.lines/0000000000000000", "Ta");
	shell("grep -q '^{\"uid\":\"a\",\"id\":\"a\"' " FOLDER "list.jsonl");
	prints("a", "one\\ntwo\\n");
	job = job_of("a", true);
	call(tell, &(struct told){NULL, job});
	assert_false(has("a")); /* the jobs are not there as they are now */
	spec_job_unref(job);
	is_put();
	assert_file(FOLDER "a/w-0/log.0/0000000000000000", "one\ntwo\n");
	stop();
	/* Nothing of the job is left to be done, and the next run does not look at it any more. */
	shell("grep -qx final " KEEP_DIR "/a && rm " FOLDER "a/why");
	start("c1");
	put_job("a", true);
	assert_file(FOLDER "a/why", NULL);
	stop();
	start("c2");
	assert_int_equal(begun_err, -EEXIST);
	stop();
}

/* Other writers have put more of a log, or other bytes: these stay as they are. */
static void test_other_writers(void **state)
{
	shell("mkdir -p " FOLDER "a/w-0/log.0 " FOLDER "b");
	shell("echo a >" FOLDER "a/uid; echo another >" FOLDER "b/uid");
	shell("echo u.main.0 >" FOLDER "a/w-0/log.0.key; echo longer >" FOLDER
	      "a/w-0/log.0/0000000000000000");
	prints("a", "long");
	prints("b", "mine");
	start("c");
	put_job("a", true);
	assert_file(FOLDER "a/w-0/log.0/0000000000000000", "longer\n");
	assert_file(FOLDER "a/w-0/log.1.key", NULL);
	put_job("b", true);
	assert_file(FOLDER "b/uid", "another\n");
	assert_file(FOLDER "b~b/w-0/log.0/0000000000000000", "mine");
	stop();
	shell("rm -r " KEEP_DIR);
	prints("a", "other");
	start("c");
	put_job("a", true);
	assert_file(FOLDER "a/w-0/log.0/0000000000000000", "longer\n");
	assert_file(FOLDER "a/w-0/log.1/0000000000000000", "other");
	stop();
}

/* A job that leaves without a folder is known to the next run, until it is put. */
static void test_left(void **state)
{
	struct spec_job *job = job_of("a", false);
	struct told told = {NULL, job};

	job->replicas[0].logs[0].complete = false;
	job->replicas[0].logs[0].gap = 1;
	/* This job is kept as long as anybody has seen it. */
	job->state = job->replicas[0].state = SPEC_RUNNING;
	start("c"); /* the archive is not there yet */
	assert_int_equal(begun_err, 0);
	call(tell, &told);
	told = (struct told){job, NULL};
	call(tell, &told);
	stop();
	spec_job_unref(job);
	assert_file(FOLDER "a/uid", NULL);
	shell("test -f " KEEP_DIR "/a" KEEP_LEFT " && mkdir out");
	start("c");
	is_put();
	assert_file(FOLDER "a/uid", "a\n");
	shell("grep -q '\"state\": *\"CANCELLED\"' " FOLDER "a/status.json");
	stop();
	assert_file(KEEP_DIR "/a" KEEP_LEFT, NULL);
}

/* The job was removed from the history: nothing of it is left in the state directory. */
static void test_removed(void **state)
{
	struct spec_job *job = job_of("a", true);
	struct told told = {job, NULL};

	shell("mkdir out");
	start("c");
	put_job("a", true);
	call(tell, &told);
	while (has("a"))
		call(nothing, NULL);
	stop();
	assert_file(KEEP_DIR "/a", NULL);
	assert_file(FOLDER "a/uid", "a\n");
	spec_job_unref(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_put, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_other_writers, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_left, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_removed, setup_base, teardown_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
