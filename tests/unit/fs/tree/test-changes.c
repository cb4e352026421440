/* SPDX-License-Identifier: MIT */
/*
 * What a reader of `changes` gets: the current jobs, the changes since then, and how many changes
 * were lost.
 */
#include <errno.h>

#include "fs/tree/tree.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

#define PIECE 100000 /* bytes per read */

static struct stream *stream; /* the open stream */
static bool has_job;	      /* when the file is opened */
static uint64_t offset;

static struct spec_job *job_in(enum spec_state state)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, "j");
	spec_set(&job->uid, "u");
	job->state = state;
	return job;
}

/* --- the functions that the file calls --- */

void backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		  size_t *ret_n)
{
	assert_null(b);
	assert_int_equal(place, BACKEND_JOBS);
	*ret = new0_n(const struct spec_job *, 1);
	if (has_job)
		(*ret)[0] = job_in(SPEC_RUNNING);
	*ret_n = has_job;
}

struct stream *stream_new(struct fs *fs, const struct stream_class *class)
{
	stream = calloc(1, class->size);
	stream->class = class;
	stream->fs = fs;
	return stream;
}

void stream_open(struct stream *s, fuse_req_t req, struct fuse_file_info *fi)
{
	s->class->start(s);
}

void stream_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		 struct fuse_file_info *fi)
{
}

void stream_poll(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi,
		 struct fuse_pollhandle *ph)
{
}

void stream_release(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
}

/* --- the reader --- */

static void begin(void)
{
	struct tree tree = {0};
	struct node node = {.object = &tree};

	offset = 0;
	changes_class.open(NULL, NULL, &node, NULL);
}

static int teardown(void **state)
{
	stream->class->stop(stream);
	free(stream);
	return 0;
}

/* Change the state of one job N times. */
static void change(size_t n)
{
	static enum spec_state state = SPEC_RUNNING;

	for (; n > 0; n--) {
		const struct spec_job *old cleanup_job = job_in(state);
		const struct spec_job *job cleanup_job =
			job_in(state = state == SPEC_RUNNING ? SPEC_PENDING : SPEC_RUNNING);

		assert_true(changes_job_event(stream, old, job));
	}
}

/*
 * Read at most SIZE bytes of the available text. Set *RET_LOST to the sum of the numbers in LOST
 * lines. Return the number of other lines.
 */
static size_t read_some(size_t size, size_t *ret_lost)
{
	static char buf[4u << 20];
	size_t n = 0, lines = 0;
	const char *at;
	ssize_t got;

	while (n < size && (got = stream->class->read(stream, &at, min_of(size - n, (size_t)PIECE),
						      offset)) != -EAGAIN) {
		assert_true(got > 0);
		memcpy(buf + n, at, (size_t)got);
		n += (size_t)got;
		offset += (uint64_t)got;
	}
	buf[n] = '\0';
	*ret_lost = 0;
	for (char *line = buf, *end; (end = strchr(line, '\n')); line = end + 1) {
		const char *lost;

		*end = '\0';
		lost = strstr(line, "\t-\tLOST\t");
		if (lost)
			*ret_lost += strtoul(lost + strlen("\t-\tLOST\t"), NULL, 10);
		else
			lines++;
	}
	return lines;
}

/* Assert that N lines are available, and that none was lost. */
static void assert_lines(size_t n)
{
	size_t lost;

	assert_int_equal(read_some(PIECE, &lost), n);
	assert_int_equal(lost, 0);
}

static void test_begins(void **state)
{
	has_job = true;
	begin();
	assert_lines(2); /* the job, and SYNC */
	change(3);
	assert_lines(3);
	assert_int_equal(stream->class->read(stream, NULL, PIECE, offset), -EAGAIN);
}

/*
 * A job without output is removed from jobs/ without a trace. A job that is removed from the
 * history, or first appears there, is not reported. A job that a new list contains again is in
 * jobs/ again.
 */
static void test_leaves(void **state)
{
	struct spec_job *job = job_in(SPEC_SUCCEEDED), *there = job_in(SPEC_SUCCEEDED);

	has_job = false;
	begin();
	assert_lines(1);
	assert_true(changes_job_event(stream, job, NULL));
	assert_lines(1);
	job->history = true;
	assert_true(changes_job_event(stream, job, NULL));
	assert_true(changes_job_event(stream, NULL, job));
	assert_lines(0);
	assert_true(changes_job_event(stream, there, job));
	assert_lines(1);
	assert_true(changes_job_event(stream, job, there));
	assert_lines(1);
	spec_job_unref(there);
	spec_job_unref(job);
}

/*
 * A reader that has read everything that was kept is notified immediately how many lines were lost,
 * not only at the next change.
 */
static void test_lost(void **state)
{
	const size_t n = 40000;
	size_t lost, lines;

	has_job = false;
	begin();
	assert_lines(1);
	change(n);
	lines = read_some(SIZE_MAX, &lost);
	assert_true(lines > 1000 && lost > 1000);
	assert_int_equal(lines + lost, n);
	assert_int_equal(stream->class->read(stream, NULL, PIECE, offset), -EAGAIN);
	/* After that, nothing is lost. */
	change(3);
	assert_lines(3);
}

/*
 * Changes are lost, and there is space again before everything was read. The LOST line is where the
 * lines are missing.
 */
static void test_lost_in_between(void **state)
{
	const size_t n = 40000;
	size_t lost, later, lines;

	has_job = false;
	begin();
	change(n);
	lines = read_some(PIECE, &lost);
	assert_int_equal(lost, 0);
	change(1);
	lines += read_some(SIZE_MAX, &later);
	assert_int_equal(lines - 1 + later, n + 1); /* not counting SYNC */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_begins, teardown),
		cmocka_unit_test_teardown(test_leaves, teardown),
		cmocka_unit_test_teardown(test_lost, teardown),
		cmocka_unit_test_teardown(test_lost_in_between, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
