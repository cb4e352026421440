/* SPDX-License-Identifier: MIT */
/* Which text of a snapshot is rendered again, and that a snapshot is kept with its text. */
#include "fs/tree/tree.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

static unsigned made;

static void show_id(const struct spec_job *job, char **ret, size_t *ret_len)
{
	made++;
	*ret = text_copy(job->id);
	*ret_len = strlen(*ret);
}

static void show_state(const struct spec_job *job, char **ret, size_t *ret_len)
{
	made++;
	*ret = text_copy("state");
	*ret_len = strlen(*ret);
}

static struct spec_job *job_named(const char *id)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, id);
	return job;
}

static void check(struct rendered *r, const struct spec_job *job, rendered_fn fn, const char *text)
{
	cleanup_free char *got = NULL;
	size_t len;

	rendered_text(r, job, fn, &got, &len);
	assert_string_equal(got, text);
	assert_int_equal(len, strlen(text));
}

static void test_each_its_own(void **state)
{
	const struct spec_job *a cleanup_job = job_named("a"), *b cleanup_job = job_named("b");
	struct rendered r = {0};

	made = 0;
	check(&r, a, show_id, "a");
	check(&r, a, show_id, "a");
	assert_int_equal(made, 1);
	check(&r, a, show_state, "state");
	check(&r, b, show_state, "state");
	check(&r, b, show_id, "b");
	assert_int_equal(made, 4);
	rendered_clear(&r);
}

/* Otherwise a new snapshot at the same address would get the old text. */
static void test_keeps_the_snapshot(void **state)
{
	const struct spec_job *job cleanup_job = job_named("a");
	struct rendered r = {0};

	check(&r, job, show_id, "a");
	assert_int_equal(job->refs, 2);
	rendered_clear(&r);
	assert_int_equal(job->refs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_its_own),
		cmocka_unit_test(test_keeps_the_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
