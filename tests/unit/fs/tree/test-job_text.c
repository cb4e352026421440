/* SPDX-License-Identifier: MIT */
/*
 * The cache of texts of snapshots (job_text.c). Each text is rendered once, and a lookup always
 * returns the text of the requested snapshot.
 */
#include "fs/tree/tree.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

static unsigned made;

static void show(const struct spec_job *job, const char *word, char **ret, size_t *ret_len)
{
	made++;
	*ret = text_print("%s of %s", word, job->id);
	*ret_len = strlen(*ret);
}

static void show_state(const struct spec_job *job, char **ret, size_t *ret_len)
{
	show(job, "state", ret, ret_len);
}

static void show_why(const struct spec_job *job, char **ret, size_t *ret_len)
{
	show(job, "why", ret, ret_len);
}

static void show_large(const struct spec_job *job, char **ret, size_t *ret_len)
{
	made++;
	*ret_len = 1u << 20;
	*ret = new0_n(char, *ret_len + 1);
}

static struct spec_job *job_named(const char *id)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, id);
	return job;
}

static void check(struct rendered *r, const struct spec_job *job, rendered_fn fn, const char *word)
{
	cleanup_free char *text = NULL, *wanted = text_print("%s of %s", word, job->id);
	size_t len;

	rendered_text(r, job, fn, &text, &len);
	assert_string_equal(text, wanted);
	assert_int_equal(len, strlen(wanted));
}

static void test_once(void **state)
{
	struct rendered *r = rendered_new();
	struct spec_job *a = job_named("a");

	made = 0;
	for (int i = 0; i < 3; i++)
		check(r, a, show_state, "state");
	assert_int_equal(made, 1);
	check(r, a, show_why, "why");
	assert_int_equal(made, 2);
	spec_job_unref(a);
	rendered_free(r);
}

/*
 * While a snapshot's text is cached, the snapshot is kept too. Otherwise a new snapshot could get
 * the same address.
 */
static void test_each_its_own(void **state)
{
	struct rendered *r = rendered_new();

	for (int i = 0; i < 1000; i++) {
		char id[16];
		struct spec_job *job;

		snprintf(id, sizeof(id), "job-%d", i);
		job = job_named(id);
		check(r, job, show_state, "state");
		check(r, job, show_why, "why");
		check(r, job, show_state, "state");
		spec_job_unref(job);
	}
	rendered_free(r);
	rendered_free(NULL);
}

static void test_large(void **state)
{
	struct rendered *r = rendered_new();
	struct spec_job *a = job_named("a");

	made = 0;
	for (int i = 0; i < 2; i++) {
		cleanup_free char *text = NULL;
		size_t len;

		rendered_text(r, a, show_large, &text, &len);
		assert_int_equal(len, 1u << 20);
	}
	assert_int_equal(made, 2);
	spec_job_unref(a);
	rendered_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_each_its_own),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests_name("rendered", tests, NULL, NULL);
}
