/* SPDX-License-Identifier: MIT */
/*
 * Which kinds an --all mount shows: what it requests from the cluster and when, and how it reacts
 * to the replies. The test plays the server and the watches. The world is the real one.
 */
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/noted.h"

#include <errno.h>

#include "backend/base/diag.h"
#include "backend/kube/kinds.h"
#include "spec/base/mem.h"
#include "tests/unit/table.h"

#define SURVEY_MS 600000u
#define VOLCANO	  "batch.volcano.sh/v1alpha1"
#define MCAD	  "workload.codeflare.dev/v1beta1"
#define WRAPPER	  "workload.codeflare.dev/v1beta2"
#define JOBSET	  "jobset.x-k8s.io/v1alpha2"

static struct {
	struct kinds *k;
	struct world *w;
} rig;

/* --- watches.h --- */

void watches_switch(struct watches *w)
{
	note("switch");
}

void watches_drop(struct watches *w, enum world_type sort)
{
	note("drop %s", world_kind(rig.w, sort)->name);
}

char *watches_trouble(struct watches *w, enum world_type sort)
{
	return NULL;
}

static char refused[64]; /* the request that was refused last */

void watches_refuse(struct watches *w, unsigned place, const char *verb, const char *resource,
		    const char *cost, const char *answer)
{
	if (answer)
		snprintf(refused, sizeof(refused), "%s %s", verb, resource);
	else
		*refused = '\0';
}

/* --- test helpers --- */

static void on_found(void *data, int err, const char *text)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n = world_kinds(rig.w, kinds);

	note("found %d", err);
	if (err)
		note("%s", text);
	for (size_t i = 0; i < n; i++)
		note("%s", kinds[i]->name);
}

static void on_changed(void *data)
{
	note("changed");
}

static unsigned n_groups; /* how often kxfs has got the list of API groups */

static void on_groups(void *data, const char *json, size_t len)
{
	n_groups++;
}

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	n_groups = 0;
	forget_noted();
	diag_setup(DIAG_DEBUG, false);
	rig.w = world_new(NULL);
	rig.k = kinds_new(&(struct watches_access){.world = rig.w, .namespace = "ns"},
			  test_table_of_kinds(), "",
			  &(struct kinds_events){on_groups, on_found, on_changed, NULL});
	return 0;
}

static int teardown(void **state)
{
	kinds_stop(rig.k);
	assert_null(fake.timers);
	assert_null(fake.requests);
	kinds_free(rig.k);
	world_free(rig.w);
	return 0;
}

static void answer(const char *part, int status, const char *body)
{
	struct http_request *rq = fake_find(part);

	if (!rq)
		fail_msg("nobody asks for %s", part);
	fake_end(rq, &(struct http_reply){.status = status, .body = body, .len = strlen(body)});
	fake_run();
}

/* Answer a survey: the cluster serves VERSIONS, which are separated by spaces. */
static void serve(const char *versions)
{
	cleanup_free char *list = text_copy(""), *copy = text_copy(versions), *body = NULL;

	for (char *v = strtok(copy, " "); v; v = strtok(NULL, " "))
		text_set(&list, "%s%s{\"name\":\"g\",\"versions\":[{\"groupVersion\":\"%s\"}]}",
			 list, *list ? "," : "", v);
	body = text_print("{\"kind\":\"APIGroupList\",\"groups\":[%s]}", list);
	assert_string_equal(fake.requests->path, "/apis");
	answer("/apis", 200, body);
}

/* Run the first survey. It finds VERSIONS, and the user may list each of these kinds. */
static void find(const char *versions)
{
	kinds_start(rig.k);
	serve(versions);
	while (fake.requests)
		answer("limit=1", 200, "{}");
}

static void test_found(void **state)
{
	kinds_start(rig.k);
	serve(JOBSET " " WRAPPER " " MCAD " batch/v1 apps/v1");
	assert_done("");
	answer("/apis/batch/v1/namespaces/ns/jobs?limit=1", 200, "{}");
	answer("/apis/" WRAPPER "/namespaces/ns/appwrappers?limit=1", 200, "{}");
	answer("/apis/" JOBSET "/namespaces/ns/jobsets?limit=1", 500,
	       "{}"); /* the watch of that kind will report the error */
	assert_done("found 0, appwrapper, jobset, job");
}

/*
 * A kind that the server refuses does not stop the others. kxfs requests it again with each survey,
 * and shows it once it is permitted.
 */
static void test_refused(void **state)
{
	kinds_start(rig.k);
	serve(VOLCANO " " JOBSET " batch/v1");
	/* The 404 is from an aggregated API server that serves this group. */
	answer("batch.volcano.sh", 404, "404 page not found\n");
	answer("/jobsets", 403, "{\"kind\":\"Status\",\"message\":\"no\"}");
	assert_string_equal(refused, "list jobsets.jobset.x-k8s.io");
	answer("/batch/v1", 200, "{}");
	assert_done("found 0, job");
	assert_true(world_is_refused(rig.w, "jobset"));
	assert_false(world_is_refused(rig.w, "volcano"));
	fake_pass(SURVEY_MS);
	serve(JOBSET " batch/v1");
	answer("/jobsets", 503, "{}"); /* this does not show that the kind is permitted now */
	assert_done("");
	assert_true(world_is_refused(rig.w, "jobset"));
	fake_pass(SURVEY_MS);
	serve(JOBSET " batch/v1");
	answer("/jobsets", 200, "{}");
	assert_string_equal(refused, "");
	assert_done("switch, changed");
	assert_ptr_equal(world_kind(rig.w, WORLD_JOBS + 2), test_kind("jobset"));
	assert_false(world_is_refused(rig.w, "jobset"));
}

/* A kind that was refused, and that the server then no longer has, is not refused any more. */
static void test_refused_and_gone(void **state)
{
	kinds_start(rig.k);
	serve(JOBSET " batch/v1");
	answer("/jobsets", 403, "{}");
	answer("/batch/v1", 200, "{}");
	assert_true(world_is_refused(rig.w, "jobset"));
	fake_pass(SURVEY_MS);
	serve(JOBSET " batch/v1");
	answer("/jobsets", 404, "404 page not found\n");
	assert_false(world_is_refused(rig.w, "jobset"));
	assert_done("found 0, job");
}

#define ALL VOLCANO " " WRAPPER " " JOBSET " batch/v1"
/* Each survey requests the list of each refused kind again, and of no other kind. */
static void test_several_refused(void **state)
{
	kinds_start(rig.k);
	serve(ALL);
	answer("/jobsets", 403, "{}");
	answer("appwrappers", 403, "{}");
	answer("batch.volcano.sh", 403, "{}");
	answer("/batch/v1", 200, "{}");
	assert_done("found 0, job");
	fake_pass(SURVEY_MS);
	serve(ALL);
	answer("/jobsets", 200, "{}");
	answer("appwrappers", 403, "{}");
	answer("batch.volcano.sh", 403, "{}");
	assert_null(fake.requests);
	assert_done("switch, changed");
	assert_ptr_equal(world_kind(rig.w, WORLD_JOBS + 2), test_kind("jobset"));
	fake_pass(SURVEY_MS);
	serve(VOLCANO " " JOBSET " batch/v1"); /* AppWrappers were removed from the cluster */
	answer("batch.volcano.sh", 403, "{}");
	assert_null(fake.requests);
	assert_done("changed");
}

/*
 * When a kind is no longer served, kxfs runs a survey immediately, but only once. Then it drops the
 * kind.
 */
static void test_gone(void **state)
{
	find(VOLCANO " " JOBSET " batch/v1");
	assert_done("found 0, volcano, jobset, job");
	kinds_unserved(rig.k);
	serve(VOLCANO " " JOBSET " batch/v1"); /* discovery still lists the kind */
	kinds_unserved(rig.k);
	assert_null(fake.requests);
	assert_done("");
	fake_pass(SURVEY_MS);
	serve(VOLCANO " batch/v1");
	assert_done("drop jobset, switch, changed");
	assert_null(world_kind(rig.w, WORLD_JOBS + 2));
	/*
	 * The kind is served again, and so is MCAD. Its successor AppWrapper is not shown any more.
	 */
	fake_pass(SURVEY_MS);
	serve(VOLCANO " " MCAD " " JOBSET " batch/v1");
	answer("/jobsets", 200, "{}");
	answer(MCAD, 200, "{}");
	assert_done("switch, changed");
	fake_pass(SURVEY_MS);
	serve(VOLCANO " " WRAPPER " " JOBSET " batch/v1");
	answer(WRAPPER, 200, "{}");
	assert_done("drop mcad, switch, changed");
	assert_ptr_equal(world_kind(rig.w, WORLD_JOBS + 1), &spec_appwrapper);
}

/* A failed survey changes nothing. */
static void test_failure(void **state)
{
	find(VOLCANO " batch/v1");
	assert_done("found 0, volcano, job");
	fake_pass(SURVEY_MS);
	fake_end(fake_find("/apis"), &(struct http_reply){.err = -EHOSTUNREACH, .text = "away"});
	fake_pass(SURVEY_MS);
	answer("/apis", 200, "no list");
	fake_pass(SURVEY_MS);
	answer("/apis", 403, "{}");
	assert_null(fake.requests);
	assert_done("");
	assert_int_equal(n_groups, 1);
	fake_pass(SURVEY_MS);
	serve(VOLCANO " batch/v1");
	assert_int_equal(n_groups, 2);
}

/* If the server does not return its API groups, kxfs requests each kind. */
static void test_closed(void **state)
{
	kinds_start(rig.k);
	answer("/apis", 403, "{}");
	answer("batch.volcano.sh", 403, "{}");
	answer(WRAPPER, 404, "{}");
	answer("/jobsets", 404, "{}");
	answer("/batch/v1", 200, "{}");
	for (size_t i = 5; i < test_table_of_kinds()->n; i++) {
		cleanup_free char *path = text_print("/%s", test_table_of_kinds()->v[i]->plural);

		answer(path, 404, "{}");
	}
	assert_done("found 0, job");
	assert_int_equal(n_groups, 0);
	fake_pass(SURVEY_MS); /* each survey requests all kinds that are not shown */
	answer("/apis", 403, "{}");
	answer("batch.volcano.sh", 403, "{}");
	answer(WRAPPER, 404, "{}");
	assert_null(fake_find("/batch/v1"));
}

static void test_nothing(void **state)
{
	kinds_start(rig.k);
	serve("apps/v1");
	assert_non_null(
		strstr(noted, "found -95, the cluster serves no jobs that kxfs can show\n"));
	assert_non_null(strstr(
		noted,
		"\nCheck that this is the right cluster, or ask the cluster's administrator to "
		"install them."));
}

static void test_no_right(void **state)
{
	kinds_start(rig.k);
	serve(VOLCANO " batch/v1");
	answer("/batch/v1", 403, "{}");
	answer("batch.volcano.sh", 403, "{}");
	assert_non_null(strstr(noted, "found -13, forbidden"));
	assert_non_null(strstr(noted, "jobs.batch.volcano.sh"));
}

static void test_no_server(void **state)
{
	kinds_start(rig.k);
	fake_end(fake_find("/apis"), &(struct http_reply){.err = -EHOSTUNREACH, .text = "away"});
	assert_non_null(strstr(noted, "found -113, "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_and_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_right, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_server, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
