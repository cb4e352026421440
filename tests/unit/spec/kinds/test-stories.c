/* SPDX-License-Identifier: MIT */
/*
 * What users read of each recorded job, from its first event to its last.
 * tests/replay/data/recordings/CONTROLLER.why contains a story for each recording in
 * CONTROLLER.jsonl. A story starts with a line "=== SCENARIO". The next line shows the state, the
 * reason, and `why`, and so does one line for each change. An indented line shows the replicas when
 * they change. The last lines show the job's message and its retries, if there are any.
 *
 * If a user who may read ClusterQueues reads something else, a second story shows that.
 *
 * Set KXFS_WRITE_STORIES=1 to rewrite the files instead of comparing them.
 */
#include "tests/unit/spec/kinds/cluster-world.h"
#include "tests/unit/table.h"

#define FOLDER TEST_SOURCE "/tests/replay/data/recordings/"

struct story {
	FILE *out;
	char *job, *replicas; /* the last lines about them */
};

/* Print LINE unless it is *LAST, and free it later. */
static void tell_change(FILE *out, char *line, char **last)
{
	if (!streq(line, *last))
		fputs(line, out);
	free(*last);
	*last = line;
}

static void look(struct world *w, void *data)
{
	struct story *s = data;
	cleanup_free char *job = NULL;
	char line[4096];

	if (!w->last)
		return;
	job = world_line(w, world_reason(w), world_why(w));
	tell_change(s->out, text_print("%s\n", job), &s->job);
	describe_job(w->last, false, line);
	if (w->last->n_replicas > 0)
		tell_change(s->out, text_print(" %s", strchr(line, ' ')), &s->replicas);
}

static bool has(const char *scenario, const char *word)
{
	return strstr(scenario, word) != NULL;
}

/* Replay SCENARIO, and return its story. CLUSTER_QUEUES: for a user who may read them. */
static char *story_of(const char *scenario, bool cluster_queues)
{
	const char *controller = world_controller(scenario);
	char *ret;
	size_t len;
	struct story s = {.out = text_stream(&ret, &len)};
	struct world w = {.cluster_queues = cluster_queues};

	w.kind = has(controller, "volcano") ? &spec_volcano
		 : has(controller, "mcad")  ? &spec_mcad
		 : has(scenario, "jobset_") ? test_kind("jobset")
		 : has(scenario, "job_")    ? test_kind("job")
					    : &spec_appwrapper;
	if (has(controller, "kueue")) {
		w.only = "app";
		w.since = INT64_MAX / 2; /* the job was first seen just now */
		w.kueue.known = true;
	}
	world_play(&w, scenario, look, &s);
	if (*w.last->message)
		fprintf(s.out, "  message: %s\n", w.last->message);
	if (w.last->retries > 0 || w.last->max_retries > 0)
		fprintf(s.out, "  retries: %u of %u\n", w.last->retries, w.last->max_retries);
	text_stream_close(s.out);
	free(s.job);
	free(s.replicas);
	world_clear(&w);
	return ret;
}

static void tell(const char *scenario, FILE *out)
{
	char *most cleanup_free = story_of(scenario, false);
	char *all cleanup_free = story_of(scenario, true);

	fprintf(out, "=== %s\n%s", scenario, most);
	if (!streq(most, all))
		fprintf(out, "=== %s, with ClusterQueues\n%s", scenario, all);
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

static void test_stories(void **state)
{
	assert_stories(*state);
}

int main(void)
{
	static const char *const controllers[] = {"appwrapper", "job",	"kueue",
						  "kueue_v014", "mcad", "volcano"};
	struct CMUnitTest tests[array_size(controllers)];

	for (size_t i = 0; i < array_size(controllers); i++)
		tests[i] = (struct CMUnitTest){.name = controllers[i],
					       .test_func = test_stories,
					       .initial_state = (void *)(uintptr_t)controllers[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
