/* SPDX-License-Identifier: MIT */
/*
 * Reading `list`: when its text is rendered again, that other requests are served meanwhile, and
 * which reader gets which text.
 */
#include <errno.h>

#include "fs/tree/job_ref.h"
#include "fs/vfs/serve.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

static struct fs mount;
static struct tree tree;
static struct node node;
/* The revision of the backend's jobs. There is one job, JOB-REVISION. */
static uint64_t revision;
static int begin_err;
static bool others_may; /* true while other threads may serve requests */
static unsigned n_made; /* how often a text was rendered */
/* Called before the thread that has rendered a text serves requests again. */
static void (*before_turn)(void);

/* --- the functions that the file calls --- */

int serve_disk_begin(struct fs *fs)
{
	others_may = begin_err == 0;
	return begin_err;
}

int serve_disk_end(struct fs *fs)
{
	void (*fn)(void) = take_ptr(before_turn);

	if (fn)
		fn();
	others_may = false;
	return 0;
}

uint64_t backend_revision(struct backend *b, enum backend_place place)
{
	assert_int_equal(place, BACKEND_JOBS);
	return revision;
}

int64_t backend_stale_since(struct backend *b)
{
	return 0;
}

void backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		  size_t *ret_n)
{
	struct spec_job *job = spec_job_new(0, 0);

	assert_true(others_may);
	n_made++;
	job->id = text_print("job-%u", (unsigned)revision);
	job->revision = revision;
	job->state = SPEC_PENDING;
	spec_set(&job->queue, "q");
	*ret = new0_n(const struct spec_job *, 1);
	(*ret)[0] = job;
	*ret_n = 1;
}

void backend_wanted(struct backend *b, enum backend_data which)
{
}

void text_open(struct fs *fs, fuse_req_t req, struct node *of, struct fuse_file_info *fi)
{
}

void text_read(struct fs *fs, fuse_req_t req, struct node *of, size_t size, off_t off,
	       struct fuse_file_info *fi)
{
}

/* --- the reader --- */

static int setup(void **state)
{
	tree = (struct tree){.lists = lists_new(), .fs = &mount};
	node = (struct node){.class = &list_jobs_table.text.class, .object = &tree};
	revision = 1;
	begin_err = 0;
	n_made = 0;
	return 0;
}

static int teardown(void **state)
{
	lists_free(tree.lists);
	return 0;
}

static void expect(const char *job)
{
	struct spec_text *text = NULL;

	assert_int_equal(list_jobs_table.text.share(&mount, &node, &text), 0);
	if (!strstr(text->text, job))
		fail_msg("there is no %s: %s", job, text->text);
	spec_text_unref(text);
}

/* While a text is rendered, other requests are served. It is rendered once per change. */
static void test_made_apart(void **state)
{
	struct stat st = {0};

	expect("job-1");
	expect("job-1");
	assert_int_equal(list_jobs_table.text.class.getattr(&mount, &node, &st), 0);
	assert_true(st.st_size > 0);
	assert_int_equal(n_made, 1);
	revision = 2;
	assert_int_equal(list_jobs_table.text.class.getattr(&mount, &node, &st), 0);
	expect("job-2");
	assert_int_equal(n_made, 2);
}

/* If too many requests already wait, this one fails. The next one does not. */
static void test_too_many(void **state)
{
	struct spec_text *text = NULL;
	struct stat st;

	begin_err = -ETIMEDOUT;
	assert_int_equal(list_jobs_table.text.share(&mount, &node, &text), -ETIMEDOUT);
	assert_null(text);
	assert_int_equal(list_jobs_table.text.class.getattr(&mount, &node, &st), -ETIMEDOUT);
	assert_int_equal(n_made, 0);
	begin_err = 0;
	expect("job-1");
}

static void read_later(void)
{
	revision = 2;
	expect("job-2");
}

/* If a rendering began earlier but ended later than another one, the next reader still gets the newer text. */
static void test_late(void **state)
{
	before_turn = read_later;
	expect("job-1");
	expect("job-2");
	expect("job-2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_made_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
	};

	return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
