/* SPDX-License-Identifier: MIT */
/*
 * The archiver: which files of finished jobs it writes to the archive directory DIR. The state
 * directory, DIR and the loop are real.
 */
#include "backend/archive/archive.h"

#include <dirent.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/output/output.h"
#include "tests/unit/scratch.h"
#include "tests/unit/waiting.h"

#define DAY	"1970-01-02"
#define CREATED INT64_C(86400000000000)

static struct {
	char top[64], state[96], dir[96];
	struct loop *loop;
	struct output *output;
	struct archive *archive;
	const struct spec_job *job; /* argument of calls on the loop */
	atomic_bool unsettled;	    /* is_settled returns false */
	atomic_int text_err;	    /* error of reading a manifest */
	bool dropped;		    /* delete the output of new jobs */
} rig;

/* Replaces libc's function, which ThreadSanitizer does not know. */
int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
	sem_wait_or_fail(sem);
	return 0;
}

static bool is_settled(void *data, const struct spec_job *job)
{
	return !rig.unsettled;
}

static int text_of_job(void *data, const struct spec_job *job, const char *name, char **ret,
		       size_t *ret_len, mode_t *ret_mode)
{
	if (streq(name, "manifest.yaml") && streq(job->id, "bad"))
		return rig.text_err;
	if (streq(name, "events"))
		return 0;
	*ret = text_copy("a text\n");
	*ret_len = strlen(*ret);
	*ret_mode = streq(name, "app.yaml") ? 0600 : 0644;
	return 0;
}

static void begin(void *data)
{
	archive_begin(rig.archive, "ns");
}

static void note(void *data)
{
	archive_job(rig.archive, NULL, rig.job);
}

static void forget(void *data)
{
	archive_job(rig.archive, rig.job, NULL);
}

static void put_file(const char *path, const char *name, const char *bytes)
{
	assert_int_equal(file_write(path, name, bytes, strlen(bytes)), 0);
}

static char *path_of(const char *id, const char *name)
{
	return text_print("%s/ns/" DAY "/%s/%s", rig.dir, id, name);
}

static bool there(const char *id, const char *name)
{
	cleanup_free char *path = path_of(id, name);

	return access(path, F_OK) == 0;
}

#define until(condition)                                                                           \
	do {                                                                                       \
		for (uint64_t end_ = loop_now_ms() + WAIT_S * 1000; !(condition); usleep(2000))    \
			if (loop_now_ms() > end_)                                                  \
				fail_msg("never came: %s", #condition);                            \
	} while (0)

static void assert_file(const char *id, const char *name, const char *wanted)
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

	archive_info(rig.archive, out);
	text_stream_close(out);
	return strstr(text, words);
}

/* Return the number of temporary directories in DIR. */
static size_t temporary(void)
{
	cleanup_free char *path = text_print("%s/ns", rig.dir);
	cleanup_dir DIR *dir = opendir(path);
	const struct dirent *e;
	size_t n = 0;

	while (dir && (e = readdir(dir)))
		n += strstr(e->d_name, ".tmp") != NULL;
	return n;
}

/* Pass a finished job with one log to the archiver. */
static void add(const char *id, const char *uid)
{
	cleanup_free char *logs = text_print("%s/output/%s/logs", rig.state, uid);
	cleanup_free char *lines = text_print("%s/output/%s/lines", rig.state, uid);
	cleanup_free char *folder = text_print("%s/output/%s", rig.state, uid);
	struct spec_job *job = spec_job_new(1, 1);
	struct spec_replica *r = &job->replicas[0];

	mkdir(folder, 0700);
	mkdir(logs, 0700);
	mkdir(lines, 0700);
	put_file(logs, "key", "printed\n");
	spec_set(&job->id, id);
	spec_set(&job->uid, uid);
	spec_set(&job->roles[0].name, "main");
	job->roles[0].n = 1;
	job->state = r->state = SPEC_SUCCEEDED;
	job->created = CREATED;
	job->finished = r->finished = CREATED + 1;
	job->dropped = rig.dropped;
	spec_set(&r->name, "main-0");
	spec_replica_add_log(r, "key", NULL);
	spec_job_unref(rig.job);
	rig.job = job;
	run_on(rig.loop, note, NULL);
}

static int setup(void **state)
{
	cleanup_free char *text = NULL;

	diag_setup(DIAG_ERROR, false);
	strcpy(rig.top, "/tmp/kxfs-archive-XXXXXX");
	assert_non_null(mkdtemp(rig.top));
	snprintf(rig.state, sizeof(rig.state), "%s/state", rig.top);
	snprintf(rig.dir, sizeof(rig.dir), "%s/dir", rig.top);
	mkdir(rig.state, 0700);
	mkdir(rig.dir, 0700);
	rig.unsettled = rig.dropped = false;
	rig.text_err = 0;
	loop_new(&rig.loop);
	assert_int_equal(output_new(rig.loop, rig.state, &(struct output_events){0}, &rig.output,
				    &text),
			 0);
	rig.archive = archive_new(&(struct archive_config){
		.loop = rig.loop,
		.output = rig.output,
		.dir = rig.dir,
		.state_dir = rig.state,
		.stop_ms = 1000,
		.is_settled = is_settled,
		.text = text_of_job,
	});
	assert_int_equal(archive_check(rig.dir, rig.state, &text), 0);
	assert_int_equal(loop_start(rig.loop), 0);
	run_on(rig.loop, begin, NULL);
	return 0;
}

static void stopped(void *data)
{
	sem_post(data);
}

static void stop(void *data)
{
	archive_stop(rig.archive, stopped, data);
}

static int teardown(void **state)
{
	sem_t done;

	sem_init(&done, 0, 0);
	loop_post(rig.loop, stop, &done);
	sem_wait_or_fail(&done);
	assert_true(loop_stop(rig.loop));
	archive_free(rig.archive);
	output_free(rig.output);
	loop_free(rig.loop);
	spec_job_unref(take_ptr(rig.job));
	return scratch_remove(rig.top);
}

static void test_whole(void **state)
{
	cleanup_free char *path = path_of("job", "app.yaml");
	struct stat st;

	add("job", "u1");
	until(there("job", ""));
	assert_file("job", "uid", "u1\n");
	assert_file("job", "state", "SUCCEEDED\n");
	assert_file("job", "main-0/log", "printed\n");
	assert_file("job", "app.yaml", "a text\n");
	assert_true(there("job", "status.json") && there("job", "why") && !there("job", "events"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(temporary(), 0);
}

/*
 * The archiver does not change a job that is already in DIR. It gives another job of that name a
 * longer name. If that name is taken too, the archiver does not archive the job.
 */
static void test_names(void **state)
{
	add("job", "u1-11111111");
	until(there("job", ""));
	add("job", "u2-22222222");
	until(there("job~u2-22222", ""));
	assert_file("job", "uid", "u1-11111111\n");
	add("job~u3-33333", "u3-33333333"); /* the name of this job in its mount's history */
	until(there("job~u3-33333", ""));
	add("job", "u2-22222x");
	until(says("File exists"));
	add("last", "u4");
	until(there("last", ""));
	assert_int_equal(temporary(), 0);
}

/* If a job's manifest can't be read, other jobs are archived all the same. */
static void test_one_fails(void **state)
{
	rig.text_err = -EIO;
	add("bad", "u1");
	add("good", "u2");
	until(there("good", ""));
	until(says("archive_waiting: 1\n") && says("bad/manifest.yaml: Input/output error"));
	assert_false(there("bad", ""));
	rig.text_err = 0;
	until(there("bad", ""));
	assert_int_equal(temporary(), 0);
}

static void test_not_settled(void **state)
{
	rig.unsettled = true;
	add("job", "u1");
	add("gone", "u2");
	run_on(rig.loop, forget, NULL);
	usleep(1200000);
	assert_false(there("job", ""));
	rig.unsettled = false;
	until(there("job", ""));
	assert_false(there("gone", ""));
}

static void begin_log(void *data)
{
	struct output_job **j = data;

	*j = output_job_open(rig.output, "u1");
	assert_non_null(*j);
	assert_int_equal(output_log_begin(*j, "key", "main/0 ", false), 0);
}

static void end_log(void *data)
{
	output_log_end(data, "key", NULL, NULL);
	output_job_end(data);
}

static void merge(void *data)
{
	struct output_job **j = data;

	begin_log(j);
	end_log(*j);
}

static void close_job(void *data)
{
	output_job_close(data);
}

static bool is_merged(void)
{
	struct log_stat st;

	return output_log_stat(rig.output, "u1", NULL, LOG_PLAIN, &st) == 0 && st.size > 0;
}

/* While the merged log lacks output, the job is not archived. */
static void test_not_merged(void **state)
{
	struct output_job *j = NULL;

	run_on(rig.loop, begin_log, &j);
	add("job", "u1");
	add("other", "u2");
	until(there("other", ""));
	usleep(1200000);
	assert_false(there("job", ""));
	run_on(rig.loop, end_log, j);
	until(there("job", ""));
	assert_file("job", "log", "main/0 printed\n");
	run_on(rig.loop, close_job, j);
}

/* After a power loss, the index of a merged log may exist although its logs were removed. */
static void test_log_is_gone(void **state)
{
	cleanup_free char *log = text_print("%s/output/u1/logs/key", rig.state);
	struct output_job *j = NULL;

	rig.unsettled = true;
	add("job", "u1");
	run_on(rig.loop, merge, &j);
	until(is_merged());
	run_on(rig.loop, close_job, j);
	assert_int_equal(unlink(log), 0);
	rig.unsettled = false;
	until(there("job", ""));
	assert_file("job", "uid", "u1\n");
	assert_file("job", "log", "");
	assert_false(there("job", "main-0/log"));
	until(says("archive_error: \"\"\n"));
}

/* After a power loss, removed output may be back, completely or in part. */
static void test_output_is_removed(void **state)
{
	rig.dropped = true;
	add("job", "u1");
	until(there("job", ""));
	assert_file("job", "log", "");
	assert_false(there("job", "main-0/log"));
}

/* A directory without the mark file does not count as DIR. */
static void test_another_directory(void **state)
{
	cleanup_free char *mark = text_print("%s/.kxfs-archive", rig.dir), *text = NULL;

	assert_int_equal(unlink(mark), 0);
	add("job", "u1");
	until(says("Mount the disk of that archive"));
	assert_false(there("job", ""));
	assert_int_equal(archive_check(rig.dir, rig.state, &text), -ENODEV);
	assert_non_null(strstr(text, "Mount the disk of that archive"));
	put_file(rig.dir, ".kxfs-archive", "");
	until(there("job", ""));
	until(says("archive_error: \"\"\n"));
}

int main(void)
{
#define archive_test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		archive_test(test_whole),
		archive_test(test_names),
		archive_test(test_one_fails),
		archive_test(test_not_settled),
		archive_test(test_not_merged),
		archive_test(test_log_is_gone),
		archive_test(test_another_directory),
		archive_test(test_output_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
