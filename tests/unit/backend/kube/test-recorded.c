/* SPDX-License-Identifier: MIT */
/*
 * Replays the recordings of real operators in tests/kinds/recordings. tests/kinds/golden.txt lists
 * each change that the world and a snapshot show, and the text of `why` in the end; of jobs in
 * Kueue also each change of their queue and `why`.
 *
 * The final state must be the same in whichever order jobs, parts and pods arrive. It must also be
 * the same whether parts are only watched or are shown as jobs of another kind. A part is never
 * shown as a job.
 *
 * Set KXFS_GOLDEN_WRITE to rewrite that file, then read the diff.
 */
#include "tests/unit/backend/client/fake_net.h"

#include <json-c/json.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/kube/world.h"
#include "spec/base/mem.h"
#include "spec/job/status.h"
#include "spec/kinds/kinds.h"
#include "tests/unit/spec/kindfile/mutants.h"
#include "tests/unit/spec/kinds/describe.h"
#include "tests/unit/table.h"

#define MAX_LINES 512

/* A watch event. */
struct told {
	char *json, *kind;
	bool gone;
};

struct story {
	char name[64];
	struct told v[MAX_LINES];
	size_t n;
};

/* The cluster of a recording. */
static struct {
	struct world *w;
	const struct spec_kind *kind;
	const struct spec_job *last;
	int64_t now; /* in seconds */
	char line[4096];
	char *queued; /* what Kueue's Workload shows */
	FILE *out;    /* NULL: don't write changes */
} rig;

static void on_changed(void *data, const struct world_job *job)
{
}

/* Write what NOW shows of its Workload. */
static void tell_queued(const struct spec_job *now)
{
	cleanup_free char *why = NULL;
	char *text;
	size_t len;

	spec_status_why(now, ~0u, &why, &len);
	text = text_print("  in %s%s%s, %s: %s", *now->queue ? now->queue : "no queue",
			  *now->flavors ? " with " : "", now->flavors,
			  *now->cause.reason ? now->cause.reason : "-", *why ? why : "-\n");
	if (rig.out && (!rig.queued || !streq(text, rig.queued)))
		fputs(text, rig.out);
	free(rig.queued);
	rig.queued = text;
}

/* Read JOB, which must be the only job that is shown. */
static void look(void *data, const struct world_job *job)
{
	struct spec_view_context ctx = {
		.reader = rig.kind->reader,
		.control = rig.kind->control,
		.backend = rig.kind->name,
		.namespace = "ns",
		.own = true,
		.now = ++rig.now * 1000000000,
		.events_known = true,
		.since = INT64_MAX / 2, /* the time that a job has waited is not shown */
		.kueue = world_kueue(rig.w, job),
		.before = rig.last,
	};
	const struct spec_pod_view **pods cleanup_free = NULL;
	struct events_list events cleanup(events_release) = {0};
	struct spec_job *now;
	char line[4096];
	size_t n;

	if (!job->view)
		return;
	assert_ptr_equal(job->kind, rig.kind);
	ctx.history = job->gone;
	pods = world_pods(job, &n);
	world_events_of(rig.w, job->uid, &events);
	ctx.events = events.v;
	ctx.n_events = events.n;
	now = spec_view_job(job->view, pods, n, &ctx);
	spec_job_unref(rig.last);
	rig.last = now;
	describe_job(now, true, line);
	if (rig.out && !streq(line, rig.line))
		fputs(line, rig.out);
	memcpy(rig.line, line, sizeof(line));
	if (ctx.kueue.workload)
		tell_queued(now);
}

/* Return the type of the objects of KIND. ALL: Jobs and JobSets are shown as jobs too. */
static enum world_type type_of(const char *kind, bool all)
{
	if (streq(kind, "Pod"))
		return WORLD_PODS;
	if (streq(kind, "Event"))
		return WORLD_EVENTS;
	if (streq(kind, "Workload"))
		return WORLD_WORKLOADS;
	if (streq(kind, rig.kind->kind))
		return WORLD_JOBS;
	if (all && streq(kind, "JobSet"))
		return WORLD_JOBS + 1;
	if (all && streq(kind, "Job"))
		return WORLD_JOBS + 2;
	for (size_t i = 0; i < rig.kind->n_parts; i++)
		if (streq(rig.kind->parts[i].kind, kind))
			return WORLD_PARTS + (enum world_type)i;
	return WORLD_N_TYPES;
}

/* Replay the events of STORY that WHICH selects: p for pods, o for parts, j for the rest. */
static void play(const struct story *story, bool all, const char *which)
{
	for (size_t i = 0; i < story->n; i++) {
		const struct told *t = &story->v[i];
		enum world_type type = type_of(t->kind, all);
		bool part =
			type == WORLD_JOBS + 1 || type == WORLD_JOBS + 2 || world_is_of_parts(type);

		if (type == WORLD_N_TYPES || !strchr(which, type == WORLD_PODS ? 'p'
							    : part	       ? 'o'
									       : 'j'))
			continue;
		world_object(rig.w, type, t->json, strlen(t->json), t->gone);
		world_each(rig.w, look, NULL);
	}
}

static void begin(const struct spec_kind *kind, bool all)
{
	rig.kind = kind;
	rig.w = world_new(NULL);
	world_set_changed(rig.w, on_changed, NULL);
	world_set_kind(rig.w, WORLD_JOBS, kind);
	world_set_watch_status(rig.w, WORLD_WORKLOADS, WORLD_CONFIRMED);
	if (all && !streq(kind->name, "job")) {
		world_set_kind(rig.w, WORLD_JOBS + 1, test_kind("jobset"));
		world_set_kind(rig.w, WORLD_JOBS + 2, test_kind("job"));
	}
	for (size_t i = 0; i < kind->n_parts; i++)
		world_set_part(rig.w, WORLD_PARTS + (enum world_type)i, &kind->parts[i]);
}

static void end(void)
{
	world_stop(rig.w);
	world_free(rig.w);
	spec_job_unref(rig.last);
	rig.last = NULL;
	*rig.line = 0;
	free(rig.queued);
	rig.queued = NULL;
	rig.now = 0;
	rig.out = NULL;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/*
 * Sort the words of LINE. This is needed because the roles are in the order in which their pods
 * arrived.
 */
static void sort_words(char *line)
{
	cleanup_free char *copy = text_copy(line);
	char *words[8 * DESCRIBE_SHOWN], *rest = copy;
	size_t n = 0;

	while (rest && n < array_size(words))
		words[n++] = strsep(&rest, " \n");
	qsort(words, n, sizeof(*words), by_text);
	for (size_t i = 0; i < n; i++)
		line += sprintf(line, "%s%s", words[i], i + 1 < n ? " " : "");
}

/*
 * Write to OUT what KIND shows of STORY. EVERY: also check that each other order of events leads to
 * the same result.
 */
static void tell(FILE *out, const struct spec_kind *kind, const struct story *story, bool every)
{
	static const char *const orders[][3] = {
		{"jop", "", ""},
		{"p", "j", "o"},
		{"p", "o", "j"},
		{"jp", "o", ""},
		/* Parts that are already gone connect later pods with their job. */
		{"o", "p", "j"},
		{"jo", "p", ""}};
	cleanup_free char *why = NULL;
	char first[4096] = "";
	size_t len;

	for (size_t i = 0; i < (every ? 2 * array_size(orders) : 1); i++) {
		/* BEGIN shows JobSets as another kind. */
		if (i % 2 && streq(kind->name, "jobset"))
			continue;
		begin(kind, i % 2);
		rig.out = i ? NULL : out;
		if (i == 0)
			fprintf(out, "%s\n", story->name);
		for (size_t k = 0; k < array_size(orders[0]); k++)
			play(story, i % 2, orders[i / 2][k]);
		/* A TrainJob without a runtime has no JobSet. */
		assert_true(rig.last || streq(kind->name, "jobset"));
		if (!rig.last) {
			end();
			return;
		}
		if (i == 0) {
			fprintf(out, "  in the end: %s  reason %s; %s\n", rig.line,
				*rig.last->reason ? rig.last->reason : "-",
				*rig.last->message ? rig.last->message : "-");
			spec_status_why(rig.last, ~0u, &why, &len);
			fprintf(out, "  why %s", *why ? why : "-\n");
		}
		sort_words(rig.line);
		if (i == 0)
			memcpy(first, rig.line, sizeof(first));
		if (!streq(first, rig.line))
			fail_msg("%s %s: order %zu%s ends in %s, not in %s", kind->name,
				 story->name, i / 2, i % 2 ? " among all kinds" : "", rig.line,
				 first);
		end();
	}
}

static void story_clear(struct story *story)
{
	for (size_t i = 0; i < story->n; i++) {
		free(story->v[i].json);
		free(story->v[i].kind);
	}
	story->n = 0;
}

static const char *text_of(struct json_object *o, const char *key)
{
	return json_object_get_string(json_object_object_get(o, key));
}

/* Call tell for each story of the recordings NAME. */
static void tell_stories(FILE *out, const struct spec_kind *kind, const char *name, bool every)
{
	cleanup_free char *path = text_print(TEST_SOURCE "/tests/kinds/recordings/%s.jsonl", name);
	cleanup_file FILE *f = fopen(path, "re");
	struct story *story = mem_zero(sizeof(*story));
	cleanup_free char *line = NULL;
	size_t cap = 0;

	assert_non_null(f);
	while (getline(&line, &cap, f) > 0) {
		struct json_object *o = json_tokener_parse(line);
		struct json_object *object = json_object_object_get(o, "object");

		assert_non_null(o);
		if (!object) {
			if (story->n)
				tell(out, kind, story, every);
			story_clear(story);
			snprintf(story->name, sizeof(story->name), "%s", text_of(o, "story"));
		} else {
			assert_true(story->n < MAX_LINES);
			story->v[story->n++] = (struct told){
				.json = text_copy(json_object_to_json_string(object)),
				.kind = text_copy(text_of(object, "kind")),
				.gone = streq(text_of(o, "type"), "DELETED"),
			};
		}
		json_object_put(o);
	}
	tell(out, kind, story, every);
	story_clear(story);
	free(story);
}

/* The JobSets of TrainJobs are also stories of JobSets. */
static char *tell_all(const struct spec_kind *kind, bool every)
{
	char *ret;
	size_t len;
	FILE *out = text_stream(&ret, &len);

	tell_stories(out, kind, kind->name, every);
	if (streq(kind->name, "jobset")) {
		fputs("\n# jobset of a trainjob\n", out);
		tell_stories(out, kind, "trainjob", false);
	}
	text_stream_close(out);
	return ret;
}

#define GOLDEN TEST_SOURCE "/tests/kinds/golden.txt"

static const char *const names[] = {"pytorchjob",	"tfjob",    "xgboostjob",
				    "paddlejob",	"jaxjob",   "mpijob",
				    "rayjob",		"trainjob", "workflow",
				    "sparkapplication", "jobset"};

static void test_recordings(void **state)
{
	cleanup_free char *text = NULL, *golden = NULL;
	size_t len, golden_len;
	FILE *out = text_stream(&text, &len);

	for (size_t i = 0; i < array_size(names); i++) {
		cleanup_free char *seen = tell_all(test_kind(names[i]), true);

		fprintf(out, "%s# %s\n%s", i ? "\n" : "", names[i], seen);
	}
	text_stream_close(out);
	if (getenv("KXFS_GOLDEN_WRITE")) {
		FILE *f = fopen(GOLDEN, "we");

		assert_non_null(f);
		fputs(text, f);
		fclose(f);
	}
	assert_int_equal(file_read(GOLDEN, 1u << 20, &golden, &golden_len), 0);
	assert_string_equal(text, golden);
}

/* --- mistakes that somebody could make in a shipped kind file --- */

struct original {
	const char *name, *seen;
};

/*
 * TEXT is a shipped kind file with a mistake in WHAT. Assert that it is refused, or that it shows
 * something else than the original.
 */
static void check_mutant(void *data, const char *text, const char *what)
{
	const struct original *original = data;
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *seen = NULL;
	struct spec_kind *kind;

	if (spec_kind_file_read(text, strlen(text), NULL, &kind, &e) < 0)
		return;
	seen = tell_all(kind, false);
	if (streq(seen, original->seen))
		fail_msg("%s.yaml: no recording shows the mistake in %s", original->name, what);
	spec_kind_file_free(kind);
}

/*
 * Each row of the states, their order, and each "first" must make a difference for some recording.
 */
static void test_mutants(void **state)
{
	cleanup_free char *of_siblings = states_of(shipped("pytorchjob"));

	for (size_t i = 0; i < array_size(names); i++) {
		cleanup_free char *seen = tell_all(test_kind(names[i]), false);
		cleanup_free char *states = states_of(shipped(names[i]));

		/* PyTorchJobs represent all kinds of that operator. */
		if (i == 0 || !streq(states, of_siblings))
			each_mutant(shipped(names[i]), check_mutant,
				    &(struct original){names[i], seen});
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_recordings),
					   cmocka_unit_test(test_mutants)};

	diag_setup(DIAG_INFO, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
