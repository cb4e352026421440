/* SPDX-License-Identifier: MIT */
/*
 * What users read of each recorded job, from its first event to its last.
 * tests/replay/data/recordings/CONTROLLER.why contains a story for each recording in
 * CONTROLLER.jsonl. A story starts with a line "=== SCENARIO". The next line shows the state, the
 * reason, and `why`, and so does one line for each change.
 *
 * Set KXFS_WRITE_STORIES=1 to rewrite the files instead of comparing them.
 */
#include "spec/job/status.h"
#include "tests/unit/spec/kinds/cluster-world.h"
#include "tests/unit/table.h"

#define FOLDER TEST_SOURCE "/tests/replay/data/recordings/"

struct story {
	FILE *out;
	char *last;
};

static void look(struct world *w, void *data)
{
	struct story *s = data;
	char *why cleanup_free = NULL;
	const char *reason;
	size_t len;
	char *line;

	if (!w->last)
		return;
	reason = *w->last->cause.reason ? w->last->cause.reason : w->last->reason;
	spec_status_why(w->last, ~0u, &why, &len);
	line = text_print("%s%s%s%s%s%s", spec_state_name(w->last->state),
			  w->last->suspended ? "/suspended" : "", *reason ? " " : "", reason,
			  *why ? ": " : "\n", why);
	if (!streq(line, s->last))
		fputs(line, s->out);
	free(s->last);
	s->last = line;
}

static bool has(const char *scenario, const char *word)
{
	return strstr(scenario, word) != NULL;
}

/* Replay SCENARIO, and print its story. */
static void tell(const char *scenario, FILE *out)
{
	static const enum world_file volcano[] = {WORLD_FILE_JOBS, WORLD_FILE_PODS,
						  WORLD_FILE_GROUPS, WORLD_FILE_EVENTS};
	/* Most users may not read ClusterQueues. */
	static const enum world_file kueue[] = {WORLD_FILE_JOBS, WORLD_FILE_PODS,
						WORLD_FILE_WORKLOADS, WORLD_FILE_LOCAL_QUEUES};
	const char *controller = world_controller(scenario);
	struct story s = {.out = out};
	struct world w = {0};

	fprintf(out, "=== %s\n", scenario);
	if (has(controller, "kueue")) {
		w.kind = has(scenario, "_jobset_") ? test_kind("jobset")
			 : has(scenario, "_job_")  ? test_kind("job")
						   : &spec_appwrapper;
		w.only = "app";
		w.since = INT64_MAX / 2; /* the job was first seen just now */
		w.kueue.known = true;
		world_play_these(&w, scenario, kueue, array_size(kueue), look, &s);
	} else {
		w.kind = streq(controller, "volcano") ? &spec_volcano
			 : streq(controller, "mcad")  ? &spec_mcad
			 : streq(controller, "job")   ? test_kind("job")
						      : &spec_appwrapper;
		world_play_these(&w, scenario, volcano,
				 streq(controller, "volcano") ? array_size(volcano) : 2, look, &s);
	}
	free(s.last);
	world_clear(&w);
}

/* Print the stories of all recordings of CONTROLLER. */
static void tell_all(const char *controller, FILE *out)
{
	char *path cleanup_free = text_print(FOLDER "%s.jsonl", controller);
	cleanup_file FILE *f = fopen(path, "re");
	cleanup_free char *line = NULL;
	char scenario[128];
	size_t size = 0;

	assert_non_null(f);
	while (getline(&line, &size, f) > 0)
		/* The recordings kueue_v014_job* contain only Workloads. */
		if (sscanf(line, "{\"scenario\": \"%127[a-z0-9_]\"}", scenario) == 1 &&
		    !has(scenario, "kueue_v014_job"))
			tell(scenario, out);
}

static void assert_stories(const char *controller)
{
	char *path cleanup_free = text_print(FOLDER "%s.why", controller);
	char *text cleanup_free = NULL, *line cleanup_free = NULL;
	FILE *out, *f;
	size_t size = 0, len;
	char *p;

	out = text_stream(&text, &len);
	tell_all(controller, out);
	text_stream_close(out);
	f = fopen(path, getenv("KXFS_WRITE_STORIES") ? "we" : "re");
	assert_non_null(f);
	if (getenv("KXFS_WRITE_STORIES")) {
		fputs(text, f);
	} else {
		p = text;
		for (unsigned n = 1; getline(&line, &size, f) > 0; n++) {
			if (strncmp(p, line, strlen(line)) != 0)
				fail_msg("%s:%u: not %.*s", path, n, (int)strcspn(p, "\n"), p);
			p += strlen(line);
		}
		assert_string_equal(p, "");
	}
	fclose(f);
}

static void test_appwrapper(void **state)
{
	assert_stories("appwrapper");
}

static void test_job(void **state)
{
	assert_stories("job");
}

static void test_kueue(void **state)
{
	assert_stories("kueue");
}

static void test_kueue_v014(void **state)
{
	assert_stories("kueue_v014");
}

static void test_mcad(void **state)
{
	assert_stories("mcad");
}

static void test_volcano(void **state)
{
	assert_stories("volcano");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_appwrapper), cmocka_unit_test(test_job),
		cmocka_unit_test(test_kueue),	   cmocka_unit_test(test_kueue_v014),
		cmocka_unit_test(test_mcad),	   cmocka_unit_test(test_volcano),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
