/* SPDX-License-Identifier: MIT */
/*
 * The archiver: which files of finished jobs it writes to the archive directory DIR. The state
 * directory and DIR are real. The test runs the loop and the pool.
 */
#include "backend/archive/archive.h"

#include <dirent.h>

#include "tests/unit/backend/output/output_rig.h"

#define CREATED	   INT64_C(86400000000000) /* 1970-01-02 */
#define A_WHILE_MS 600000

static char *top; /* DIR */
static struct archive *archive;
static struct spec_job *job; /* the newest one */
static bool unsettled;	     /* is_settled returns false */
static bool dropped;	     /* delete the output of new jobs */
static int text_err;	     /* error of reading the manifest of the job "bad" */

static bool is_settled(void *data, const struct spec_job *of)
{
	return !unsettled;
}

static int text_of_job(void *data, const struct spec_job *of, const char *name, char **ret,
		       size_t *ret_len, mode_t *ret_mode)
{
	if (streq(name, "manifest.yaml") && streq(of->id, "bad"))
		return text_err;
	if (streq(name, "events"))
		return 0;
	*ret = text_copy("a text\n");
	*ret_len = strlen(*ret);
	*ret_mode = streq(name, "app.yaml") ? 0600 : 0644;
	return 0;
}

static int setup(void **state)
{
	cleanup_free char *text = NULL;

	rig_setup(state);
	unsettled = dropped = false;
	text_err = 0;
	top = text_print("%s/dir", rig.dir);
	assert_int_equal(mkdir(top, 0700), 0);
	archive = archive_new(&(struct archive_config){
		.output = rig.output,
		.dir = top,
		.state_dir = rig.dir,
		.stop_ms = 1000,
		.is_settled = is_settled,
		.text = text_of_job,
	});
	assert_int_equal(archive_check(top, rig.dir, &text), 0);
	archive_begin(archive, "ns");
	return 0;
}

static int teardown(void **state)
{
	unsigned stopped = 0;

	archive_stop(archive, rig_count, &stopped);
	fake_run();
	assert_int_equal(stopped, 1);
	archive_free(archive);
	spec_job_unref(take_ptr(job));
	free(top);
	return rig_teardown(state);
}

/* Pass a finished job with one log to the archiver. */
static void add(const char *id, const char *uid)
{
	cleanup_free char *logs = text_print("%s/logs", uid), *log = text_print("%s/key", logs);
	struct spec_replica *r;

	spec_job_unref(job);
	job = spec_job_new(1, 1);
	r = &job->replicas[0];
	if (!rig_there(uid)) {
		rig_mkdir(uid);
		rig_mkdir(logs);
	}
	rig_put(log, "printed\n");
	spec_set(&job->id, id);
	spec_set(&job->uid, uid);
	spec_set(&job->roles[0].name, "main");
	job->roles[0].n = 1;
	job->state = r->state = SPEC_SUCCEEDED;
	job->created = CREATED;
	job->finished = r->finished = CREATED + 1;
	job->dropped = dropped;
	spec_set(&r->name, "main-0");
	spec_replica_add_log(r, "key", NULL);
	archive_job(archive, NULL, job);
}

/* --- DIR --- */

static char *path_of(const char *id, const char *name)
{
	return text_print("%s/ns/1970-01-02/%s/%s", top, id, name);
}

static bool there(const char *id, const char *name)
{
	cleanup_free char *path = path_of(id, name);

	return access(path, F_OK) == 0;
}

/* Assert that the archiver has written the job ID by now. */
static void expect_archived(const char *id, const char *uid)
{
	cleanup_free char *path = path_of(id, "uid"), *is = NULL, *wanted = text_print("%s\n", uid);
	size_t len;

	fake_run();
	fake_pass(A_WHILE_MS);
	assert_int_equal(file_read(path, 4096, &is, &len), 0);
	assert_string_equal(is, wanted);
}

static void expect_absent(const char *id)
{
	fake_run();
	fake_pass(A_WHILE_MS);
	assert_false(there(id, ""));
}

static void expect_file(const char *id, const char *name, const char *wanted)
{
	cleanup_free char *path = path_of(id, name), *is = NULL;
	size_t len;

	assert_int_equal(file_read(path, 4096, &is, &len), 0);
	assert_string_equal(is, wanted);
}

static bool says(const char *words)
{
	cleanup_free char *text = NULL;
	size_t len;
	FILE *out = text_stream(&text, &len);

	archive_info(archive, out);
	text_stream_close(out);
	return strstr(text, words);
}

/* Assert that DIR has no temporary directories. */
static void expect_no_rest(void)
{
	cleanup_free char *path = text_print("%s/ns", top);
	cleanup_dir DIR *dir = opendir(path);
	const struct dirent *e;

	while ((e = readdir(dir)))
		assert_null(strstr(e->d_name, ".tmp"));
}

/* --- the tests --- */

/*
 * The archiver does not change a job that is already in DIR. It gives another job of that name a
 * longer name. If that name is taken too, the archiver does not archive the job.
 */
static void test_names(void **state)
{
	add("job", "u1-11111111");
	expect_archived("job", "u1-11111111");
	add("job", "u2-22222222");
	expect_archived("job~u2-22222", "u2-22222222");
	expect_archived("job", "u1-11111111");
	add("job~u3-33333", "u3-33333333"); /* the name of this job in its mount's history */
	expect_archived("job~u3-33333", "u3-33333333");
	add("job", "u2-22222x");
	add("last", "u4");
	expect_archived("last", "u4");
	assert_true(says("File exists"));
	expect_no_rest();
}

/* Files keep their modes. A text without bytes has no file. */
static void test_files(void **state)
{
	cleanup_free char *path = path_of("job", "app.yaml");
	struct stat st;

	add("job", "u1");
	expect_archived("job", "u1");
	expect_file("job", "state", "SUCCEEDED\n");
	expect_file("job", "main-0/log", "printed\n");
	expect_file("job", "app.yaml", "a text\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_false(there("job", "events"));
	expect_no_rest();
}

/* If a job's manifest can't be read, other jobs are archived all the same. */
static void test_one_fails(void **state)
{
	text_err = -EIO;
	add("bad", "u1");
	add("good", "u2");
	expect_archived("good", "u2");
	assert_false(there("bad", ""));
	assert_true(says("archive_waiting: 1\n"));
	assert_true(says("bad/manifest.yaml: Input/output error"));
	text_err = 0;
	expect_archived("bad", "u1");
	expect_no_rest();
}

/* A job is archived when it has settled, unless it is gone by then. */
static void test_not_settled(void **state)
{
	unsettled = true;
	add("job", "u1");
	add("gone", "u2");
	archive_job(archive, job, NULL);
	expect_absent("job");
	unsettled = false;
	expect_archived("job", "u1");
	assert_false(there("gone", ""));
}

/* Begin the merged log of the job u1. */
static struct output_job *begin_log(void)
{
	struct output_job *j = output_job_open(rig.output, "u1");

	assert_non_null(j);
	assert_int_equal(output_log_begin(j, "key", "main/0 ", false), 0);
	fake_run();
	return j;
}

static void end_log(struct output_job *j)
{
	output_log_end(j, "key", NULL, NULL);
	output_job_end(j);
	output_job_close(j);
	fake_run();
}

/* While the merged log lacks output, the job is not archived. */
static void test_not_merged(void **state)
{
	struct output_job *j = begin_log();

	add("job", "u1");
	add("other", "u2");
	expect_archived("other", "u2");
	expect_absent("job");
	end_log(j);
	expect_archived("job", "u1");
	expect_file("job", "log", "main/0 printed\n");
}

/* After a power loss, the index of a merged log may exist although its logs were removed. */
static void test_log_is_gone(void **state)
{
	cleanup_free char *log = rig_path("u1/logs/key");

	unsettled = true;
	add("job", "u1");
	end_log(begin_log());
	assert_true(rig_there("u1/merged"));
	assert_int_equal(unlink(log), 0);
	unsettled = false;
	expect_archived("job", "u1");
	expect_file("job", "log", "");
	assert_false(there("job", "main-0/log"));
	assert_true(says("archive_error: \"\"\n"));
}

/* After a power loss, removed output may be back, completely or in part. */
static void test_output_is_removed(void **state)
{
	dropped = true;
	add("job", "u1");
	expect_archived("job", "u1");
	expect_file("job", "log", "");
	assert_false(there("job", "main-0/log"));
}

/* A directory without the mark file does not count as DIR. */
static void test_another_directory(void **state)
{
	cleanup_free char *mark = text_print("%s/.kxfs-archive", top), *text = NULL;

	assert_int_equal(unlink(mark), 0);
	add("job", "u1");
	expect_absent("job");
	assert_true(says("Mount the disk of that archive"));
	assert_int_equal(archive_check(top, rig.dir, &text), -ENODEV);
	assert_non_null(strstr(text, "Mount the disk of that archive"));
	assert_int_equal(file_write(top, ".kxfs-archive", "", 0), 0);
	expect_archived("job", "u1");
	assert_true(says("archive_error: \"\"\n"));
}

int main(void)
{
#define archive_test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		archive_test(test_names),
		archive_test(test_files),
		archive_test(test_one_fails),
		archive_test(test_not_settled),
		archive_test(test_not_merged),
		archive_test(test_log_is_gone),
		archive_test(test_output_is_removed),
		archive_test(test_another_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
