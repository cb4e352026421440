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
#define ALL	  VOLCANO " " WRAPPER " " JOBSET " batch/v1"

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
	cleanup_free char *text = text_print("%s %s", verb, resource);

	if (answer)
		snprintf(refused, sizeof(refused), "%s", text);
	else if (streq(refused, text))
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
	if (status == 404)
		body = "404 page not found\n"; /* the API server's own */
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

/* Answer requests for lists. REPLIES has a part of each path and the HTTP status of the reply. */
static void answer_lists(const char *replies)
{
	char part[128];
	int status, n;

	for (; sscanf(replies, "%127s %d%n", part, &status, &n) == 2; replies += n)
		answer(part, status, "{}");
	assert_null(fake.requests);
}

/* Run the first survey. It finds VERSIONS, and the user may list each of these kinds. */
static void find(const char *versions)
{
	kinds_start(rig.k);
	serve(versions);
	while (fake.requests)
		answer("limit=1", 200, "{}");
}

/* What the first survey finds. The replies to the lists of kinds arrive in any order. */
static void test_found(void **state)
{
	static const struct {
		const char *served, *replies, *found;
	} rows[] = {
		/* AppWrapper replaces MCAD. The watch of JobSets will report the 500. */
		{JOBSET " " WRAPPER " " MCAD " batch/v1 apps/v1",
		 "/apis/batch/v1/namespaces/ns/jobs?limit=1 200 "
		 "/apis/" WRAPPER "/namespaces/ns/appwrappers?limit=1 200 "
		 "/apis/" JOBSET "/namespaces/ns/jobsets?limit=1 500",
		 "found 0, appwrapper, jobset, job"},
		/* The 404 is from an aggregated API server that serves this group. */
		{VOLCANO " " JOBSET " batch/v1", "batch.volcano.sh 404 /jobsets 403 /batch/v1 200",
		 "found 0, job"},
		{"apps/v1", "",
		 "found -95, the cluster serves no jobs that kxfs can show\nCheck that "},
		{VOLCANO " batch/v1", "/batch/v1 403 batch.volcano.sh 403",
		 "found -13, forbidden: user this user may not list jobs.batch.volcano.sh in "},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		kinds_start(rig.k);
		serve(rows[i].served);
		answer_lists(rows[i].replies);
		if (strncmp(noted, rows[i].found, strlen(rows[i].found)))
			fail_msg("%s, not %s", noted, rows[i].found);
		teardown(state);
		setup(state);
	}
}

/*
 * A kind that the server refuses does not stop the others. Each survey requests the list of each
 * refused kind again, and of no other kind. kxfs shows a kind once it is permitted.
 */
static void test_refused(void **state)
{
	kinds_start(rig.k);
	serve(ALL);
	answer_lists("batch.volcano.sh 403 appwrappers 403 /jobsets 403 /batch/v1 200");
	assert_done("found 0, job");
	assert_string_equal(refused, "list jobsets.jobset.x-k8s.io");
	assert_true(world_is_refused(rig.w, "jobset"));
	/* A failure does not show that the kind is permitted now. */
	fake_pass(SURVEY_MS);
	serve(ALL);
	answer_lists("batch.volcano.sh 403 appwrappers 403 /jobsets 503");
	assert_done("");
	assert_true(world_is_refused(rig.w, "jobset"));
	fake_pass(SURVEY_MS);
	serve(ALL);
	answer_lists("batch.volcano.sh 403 appwrappers 403 /jobsets 200");
	assert_done("switch, changed");
	assert_string_equal(refused, "list appwrappers.workload.codeflare.dev");
	assert_ptr_equal(world_kind(rig.w, WORLD_JOBS + 2), test_kind("jobset"));
	assert_false(world_is_refused(rig.w, "jobset"));
	/* Volcano was removed from the cluster. */
	fake_pass(SURVEY_MS);
	serve(WRAPPER " " JOBSET " batch/v1");
	answer_lists("appwrappers 403");
	assert_done("changed");
	assert_false(world_is_refused(rig.w, "volcano"));
	/* So was AppWrapper, but discovery still lists it. Only the API server's own 404 shows that. */
	fake_pass(SURVEY_MS);
	serve(WRAPPER " " JOBSET " batch/v1");
	fake_answer(fake_find("appwrappers"), 404, "<html>");
	fake_run();
	assert_done("");
	fake_pass(SURVEY_MS);
	serve(WRAPPER " " JOBSET " batch/v1");
	answer_lists("appwrappers 404");
	assert_done("changed");
	assert_string_equal(refused, "");
	assert_false(world_is_refused(rig.w, "appwrapper"));
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
	/* The kind is served again, and so is MCAD. Then MCAD is replaced by AppWrapper. */
	fake_pass(SURVEY_MS);
	serve(VOLCANO " " MCAD " " JOBSET " batch/v1");
	answer_lists("/jobsets 200 " MCAD " 200");
	assert_done("switch, changed");
	fake_pass(SURVEY_MS);
	serve(VOLCANO " " WRAPPER " " JOBSET " batch/v1");
	answer_lists(WRAPPER " 200");
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

/*
 * If the server does not return its API groups, kxfs requests each kind, and with each survey those
 * that are not shown.
 */
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
	fake_pass(SURVEY_MS);
	answer("/apis", 403, "{}");
	answer("batch.volcano.sh", 403, "{}");
	answer(WRAPPER, 404, "{}");
	assert_null(fake_find("/batch/v1"));
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
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_server, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
