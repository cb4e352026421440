/* SPDX-License-Identifier: MIT */
/* backend/reader/spool.h: logs of an archive in a directory are fetched, once, and leave when there is no room. */
#include "backend/reader/spool.h"

#include "backend/keep/text.h"
#include "backend/output/lines.h"
#include "tests/unit/clock.h"
#include "tests/unit/backend/reader/rig.h"

static struct remote *remote;
static struct spool *spool;

static void do_start(void *data)
{
	output_start(output);
	spool_start(spool);
}

static void stop_spool(void *data)
{
	spool_stop(spool, post_sem, data);
}

static void stop_remote(void *data)
{
	remote_stop(remote, post_sem, data);
}

static void up(uint64_t limit)
{
	cleanup_free char *dir = dir_of("out"), *state = dir_of("state");
	char *why = NULL;

	output_up();
	assert_int_equal(remote_new(loop, &(struct archive_address){.where = dir}, &remote, &why),
			 0);
	assert_int_equal(spool_new(loop, remote, output, state, limit, &spool, &why), 0);
	call(do_start, NULL);
	spool_load(spool);
}

static void down(void)
{
	wait_for_stop(stop_remote);
	wait_for_stop(stop_spool);
	output_down();
	spool_free(spool);
	remote_free(remote);
	loop_down();
}

/* The job UID: its replica w-0 has the logs u.main.0 and u.main.1, and w-1 has the log v.main.0. */
static struct spec_job *job_of(const char *uid)
{
	struct spec_job *job = spec_job_new(1, 2);

	spec_set(&job->id, "a");
	spec_set(&job->uid, uid);
	spec_set(&job->roles[0].name, "w");
	job->roles[0].n = 2;
	spec_set(&job->replicas[0].name, "w-0");
	spec_set(&job->replicas[1].name, "w-1");
	job->replicas[1].id = 1;
	spec_replica_add_log(&job->replicas[0], "u.main.0", NULL);
	spec_replica_add_log(&job->replicas[0], "u.main.1", NULL);
	spec_replica_add_log(&job->replicas[1], "v.main.0", NULL);
	return job;
}

/*
 * A capture has put WORDS (of printf) as the part AT of the log NAME, "w-0/log.0", whose key is KEY, of the job in
 * FOLDER.
 */
static void captured(const char *folder, const char *name, const char *key, unsigned at,
		     const char *words)
{
	shell("mkdir -p out/ns/%s/%s", folder, name);
	shell("echo %s >out/ns/%s/%s.key", key, folder, name);
	shell("printf '%s' >out/ns/%s/%s/%016u", words, folder, name, at);
}

/* The N bytes of the log NAME of the job in FOLDER are a line that was printed at NS. */
static void printed_at(const char *folder, const char *name, int64_t ns, size_t n)
{
	cleanup_free char *dir = text_print("%s/out/ns/%s/%s.lines", base, folder, name);
	struct lines_encoder e = {0};
	uint8_t table[LINES_ADDED_MAX];
	size_t len = lines_add_line(&e, ns, n, true, table);

	shell("mkdir out/ns/%s/%s.lines", folder, name);
	assert_int_equal(file_write(dir, "0000000000000000", (const char *)table, len), 0);
}

static int read_form(const struct spec_job *job, const char *folder, const char *key,
		     enum log_form form, char **text)
{
	cleanup_free char *where = text_print("ns/%s", folder);
	struct log *log cleanup_log = NULL;
	int err = spool_log(spool, job, where, key, form, &log);
	ssize_t n;

	*text = NULL;
	if (err)
		return err;
	*text = new0_n(char, 65536);
	n = log_read(log, *text, 65535, 0);
	assert_true(n >= 0);
	return 0;
}

/* What the log KEY (NULL: the merged one) of JOB holds; *TEXT is malloc'ed. */
static int read_log(const struct spec_job *job, const char *folder, const char *key, char **text)
{
	return read_form(job, folder, key, LOG_PLAIN, text);
}

static void assert_log(const struct spec_job *job, const char *folder, const char *key,
		       const char *want)
{
	cleanup_free char *text = NULL;

	assert_int_equal(read_log(job, folder, key, &text), 0);
	assert_string_equal(text, want);
}

static uint64_t stat_of(const struct spec_job *job, const char *folder, const char *key)
{
	cleanup_free char *where = text_print("ns/%s", folder);
	struct log_stat st;

	assert_int_equal(spool_stat(spool, job, where, key, LOG_PLAIN, &st), 0);
	return st.size;
}

static void test_log(void **state)
{
	struct spec_job *job = job_of("uid-a");

	captured("d/a", "w-0/log.0", "u.main.0", 0, "one\\ntwo\\n");
	captured("d/a", "w-0/log.1", "u.main.1", 0, "again\\n");
	up(1 << 20);
	assert_int_equal(stat_of(job, "d/a", "u.main.0"), 8);
	assert_int_equal(spool_bytes(spool), 0);
	assert_log(job, "d/a", "u.main.0", "one\ntwo\n");
	assert_log(job, "d/a", "u.main.1", "again\n");
	assert_int_equal(spool_bytes(spool), 14);
	/* The log has grown: the bytes that are here already are not fetched again. */
	shell("printf 'odd\\ntwo\\nthree\\n' >out/ns/d/a/w-0/log.0/%016u", 0);
	assert_log(job, "d/a", "u.main.0", "one\ntwo\nthree\n");
	assert_int_equal(stat_of(job, "d/a", "u.main.0"), 14);
	/* What was fetched is there while the archive is away. */
	shell("mv out away");
	assert_log(job, "d/a", "u.main.0", "one\ntwo\nthree\n");
	down();
	spec_job_unref(job);
}

static void assert_stamped(const struct spec_job *job, const char *want)
{
	cleanup_free char *text = NULL;

	assert_int_equal(read_form(job, "d/a", "u.main.0", LOG_STAMPED, &text), 0);
	assert_string_equal(text, want);
}

/* The times of lines come with the bytes that were printed since. */
static void test_stamped(void **state)
{
	cleanup_free char *dir = text_print("%s/out/ns/d/a/w-0/log.0.lines", base);
	struct spec_job *job = job_of("uid-a");
	struct lines_encoder e = {0};
	uint8_t table[2 * LINES_ADDED_MAX];
	size_t len = lines_add_line(&e, 5000000000, 4, true, table);

	captured("d/a", "w-0/log.0", "u.main.0", 0, "one\\n");
	shell("mkdir out/ns/d/a/w-0/log.0.lines");
	assert_int_equal(file_write(dir, "0000000000000000", (const char *)table, len), 0);
	up(1 << 20);
	assert_stamped(job, "1970-01-01T00:00:05.000000Z one\n");
	len += lines_add_line(&e, 9000000000, 4, true, table + len);
	assert_int_equal(file_write(dir, "0000000000000000", (const char *)table, len), 0);
	captured("d/a", "w-0/log.0", "u.main.0", 0, "one\\ntwo\\n");
	assert_stamped(job, "1970-01-01T00:00:05.000000Z one\n1970-01-01T00:00:09.000000Z two\n");
	down();
	spec_job_unref(job);
}

/* A log of several parts; the first part is not fetched again from its beginning. */
static void test_parts(void **state)
{
	struct spec_job *job = job_of("uid-a");
	cleanup_free char *first = NULL, *all = NULL;

	captured("d/a", "w-0/log.0", "u.main.0", 0, "");
	shell("seq 2000000 | head -c %zu >printed", (size_t)ARCHIVE_MAX + 100);
	shell("head -c 1000 printed >out/ns/d/a/w-0/log.0/%016u", 0);
	up(64 << 20);
	assert_int_equal(read_log(job, "d/a", "u.main.0", &first), 0);
	assert_int_equal(strlen(first), 1000);
	shell("head -c %zu printed >out/ns/d/a/w-0/log.0/%016u", (size_t)ARCHIVE_MAX, 0);
	shell("tail -c 100 printed >out/ns/d/a/w-0/log.0/%016zu", (size_t)ARCHIVE_MAX);
	assert_int_equal(read_log(job, "d/a", "u.main.0", &all), 0);
	shell("cmp printed state/fetched/jobs/uid-a/logs/u.main.0");
	down();
	spec_job_unref(job);
}

/* Another writer has put a log that it calls log.0, too. */
static void test_another_number(void **state)
{
	struct spec_job *job = job_of("uid-a");

	captured("d/a", "w-0/log.0", "other.main.0", 0, "not this\\n");
	captured("d/a", "w-0/log.1", "u.main.0", 0, "this\\n");
	up(1 << 20);
	assert_log(job, "d/a", "u.main.0", "this\n");
	/* Nobody has captured it. */
	assert_log(job, "d/a", "u.main.1", "");
	down();
	spec_job_unref(job);
}

/* Other writers have all numbers but the last. */
static void test_last_number(void **state)
{
	struct spec_job *job = job_of("uid-a");

	shell("mkdir -p out/ns/d/a/w-0; for n in $(seq 0 %u); do "
	      "echo other.main.$n >out/ns/d/a/w-0/log.$n.key; done",
	      KEEP_MAX_LOGS - 1);
	captured("d/a", "w-0/log.999", "u.main.0", 0, "last\\n");
	up(1 << 20);
	assert_log(job, "d/a", "u.main.0", "last\n");
	down();
	spec_job_unref(job);
}

/* A part does not begin where the one before it ends, as a writer that was killed, or anybody, may leave it. */
static void test_hole(void **state)
{
	struct spec_job *job = job_of("uid-a");

	captured("d/a", "w-0/log.0", "u.main.0", 0, "one\\n");
	captured("d/a", "w-0/log.0", "u.main.0", 4, "behind a part that is not full\\n");
	captured("d/a", "w-0/log.1", "u.main.1", 0, "");
	captured("d/a", "w-0/log.1", "u.main.1", ARCHIVE_MAX + 1, "behind a hole\\n");
	shell("truncate -s %u out/ns/d/a/w-0/log.1/%016u", (unsigned)ARCHIVE_MAX, 0);
	up(1 << 20);
	assert_int_equal(stat_of(job, "d/a", "u.main.0"), 4);
	assert_log(job, "d/a", "u.main.0", "one\n");
	assert_int_equal(stat_of(job, "d/a", "u.main.1"), ARCHIVE_MAX);
	down();
	spec_job_unref(job);
}

static void test_room(void **state)
{
	struct spec_job *a = job_of("uid-a"), *b = job_of("uid-b");
	cleanup_free char *text = NULL;

	captured("d/a", "w-0/log.0", "u.main.0", 0, "0123456789");
	captured("d/b", "w-0/log.0", "u.main.0", 0, "abcdefghij");
	captured("d/b", "w-1/log.0", "v.main.0", 0, "0123456789012345678901234567890");
	up(16);
	assert_log(a, "d/a", "u.main.0", "0123456789");
	assert_log(b, "d/b", "u.main.0", "abcdefghij");
	assert_int_equal(spool_bytes(spool), 10);
	/* The log would not fit, whichever others left. */
	assert_int_equal(read_log(b, "d/b", "v.main.0", &text), -ENOSPC);
	assert_log(b, "d/b", "u.main.0", "abcdefghij");
	/* The folder of the log that has left is gone before it is fetched again. */
	assert_log(a, "d/a", "u.main.0", "0123456789");
	assert_file("state/fetched/jobs/uid-a/logs/u.main.0", "0123456789");
	down();
	spec_job_unref(a);
	spec_job_unref(b);
}

/* What the mount has captured itself counts too, and a log that fits to the byte is fetched. */
static void test_room_beside_others(void **state)
{
	struct spec_job *job = job_of("uid-a");
	cleanup_free char *text = NULL;

	shell("mkdir -p state/jobs/own/logs; printf 0123456789 >state/jobs/own/logs/k");
	captured("d/a", "w-0/log.0", "u.main.0", 0, "012345");
	captured("d/a", "w-0/log.1", "u.main.1", 0, "6");
	up(16);
	for (unsigned ms = 0; output_bytes(output) != 10; ms += 2) {
		assert_true(ms < WAIT_S * 1000);
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	assert_log(job, "d/a", "u.main.0", "012345");
	assert_int_equal(read_log(job, "d/a", "u.main.1", &text), -ENOSPC);
	down();
	spec_job_unref(job);
}

/* The logs that were read last stay. */
static void test_oldest(void **state)
{
	static const char *const reads[] = {"b", "a", "c", "a", "d"};

	for (const char *c = "abcd"; *c; c++) {
		char folder[] = {'d', '/', *c, '\0'};

		captured(folder, "w-0/log.0", "u.main.0", 0, "0123456789");
	}
	up(20);
	for (size_t i = 0; i < array_size(reads); i++) {
		struct spec_job *job = job_of(reads[i]);
		cleanup_free char *folder = text_print("d/%s", reads[i]);

		assert_log(job, folder, "u.main.0", "0123456789");
		clock_pass(loop, 1);
		spec_job_unref(job);
	}
	down();
	assert_file("state/fetched/jobs/a/logs/u.main.0", "0123456789");
	assert_file("state/fetched/jobs/b/logs/u.main.0", NULL);
	assert_file("state/fetched/jobs/c/logs/u.main.0", NULL);
}

static void test_next_mount(void **state)
{
	struct spec_job *a = job_of("uid-a"), *b = job_of("uid-b");

	shell("mkdir -p state/fetched/jobs/uid-a/logs");
	shell("printf 0123456789 >state/fetched/jobs/uid-a/logs/u.main.0");
	captured("d/a", "w-0/log.0", "u.main.0", 0, "0123456789");
	captured("d/b", "w-0/log.0", "u.main.0", 0, "abcdefghij");
	up(16);
	assert_int_equal(spool_bytes(spool), 10);
	assert_log(b, "d/b", "u.main.0", "abcdefghij");
	assert_int_equal(spool_bytes(spool), 10);
	down();
	spec_job_unref(a);
	spec_job_unref(b);
}

/*
 * The attempts of a replica stand one after the other, each line behind the name of its replica; an attempt that nobody
 * has captured is missing.
 */
static void test_merged(void **state)
{
	struct spec_job *job = job_of("uid-a");

	captured("d/a", "w-0/log.0", "u.main.0", 0, "first\\n");
	captured("d/a", "w-0/log.1", "u.main.1", 0, "second\\n");
	printed_at("d/a", "w-0/log.0", 5000000000, 6);
	printed_at("d/a", "w-0/log.1", 9000000000, 7);
	up(1 << 20);
	assert_log(job, "d/a", NULL, "w/0 first\nw/0 second\n");
	captured("d/a", "w-1/log.0", "v.main.0", 0, "other\\n");
	printed_at("d/a", "w-1/log.0", 7000000000, 6);
	assert_log(job, "d/a", NULL, "w/0 first\nw/0 second\nw/1 other\n");
	down();
	spec_job_unref(job);
}

/* A merged log that has all that is known is there while the archive is away; one that lacks something is not. */
static void test_merged_and_away(void **state)
{
	struct spec_job *job = job_of("uid-a");
	cleanup_free char *text = NULL;

	captured("d/a", "w-0/log.0", "u.main.0", 0, "first\\n");
	printed_at("d/a", "w-0/log.0", 5000000000, 6);
	up(1 << 20);
	assert_log(job, "d/a", NULL, "w/0 first\n");
	shell("mv out away");
	assert_log(job, "d/a", NULL, "w/0 first\n");
	shell("mv away out");
	captured("d/a", "w-1/log.0", "v.main.0", 0, "other\\n");
	printed_at("d/a", "w-1/log.0", 7000000000, 6);
	clock_pass(loop, 11);
	assert_log(job, "d/a", "v.main.0", "other\n");
	shell("mv out away");
	assert_int_equal(read_log(job, "d/a", NULL, &text), -EHOSTUNREACH);
	down();
	spec_job_unref(job);
}

/* The logs of other containers are not fetched for the merged log. */
static void test_merged_without_others(void **state)
{
	struct spec_job *job = job_of("uid-a");

	spec_replica_add_log(&job->replicas[0], "u.side.0", "side");
	captured("d/a", "w-0/log.0", "u.main.0", 0, "first\\n");
	captured("d/a", "w-0/side.log.0", "u.side.0", 0, "aside\\n");
	printed_at("d/a", "w-0/log.0", 5000000000, 6);
	printed_at("d/a", "w-0/side.log.0", 6000000000, 6);
	up(1 << 20);
	assert_log(job, "d/a", NULL, "w/0 first\n");
	assert_file("state/fetched/jobs/uid-a/logs/u.side.0", NULL);
	assert_log(job, "d/a", "u.side.0", "aside\n");
	shell("printf 'first\\nmore\\n' >out/ns/d/a/w-0/log.0/%016u", 0);
	assert_log(job, "d/a", NULL, "w/0 first\nw/0 more\n");
	down();
	spec_job_unref(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_log, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_stamped, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_parts, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_another_number, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_last_number, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_hole, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_room, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_room_beside_others, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_oldest, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_next_mount, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_merged, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_merged_and_away, setup_base, teardown_base),
		cmocka_unit_test_setup_teardown(test_merged_without_others, setup_base,
						teardown_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
