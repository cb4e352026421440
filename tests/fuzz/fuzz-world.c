/* SPDX-License-Identifier: MIT */
/*
 * Feeds the world any objects, one per line, after a letter for their type: r RayJob, j Job, s
 * JobSet, t TrainJob, a SparkApplication, p pod, c RayCluster, l another part, e event. An
 * uppercase letter deletes the object. A line with only a letter lists the type again: objects of
 * the type that don't follow before the next such line are gone. Owners may be missing, late or
 * circular. Each pod still belongs to at most one job, and everything can be freed.
 */
#include "fuzz.h"

#include <ctype.h>

#include "backend/base/diag.h"
#include "backend/kube/world.h"
#include "spec/base/mem.h"
#include "tests/unit/table.h"

/* --- the loop, which does nothing --- */

void loop_timer_set(struct loop_timer *t, uint64_t ms)
{
	t->position = ms != 0;
}

void loop_timer_stop(struct loop_timer *t)
{
	t->position = 0;
}

int64_t loop_time_ns(void)
{
	return 1700000000000000000;
}

/* --- the cluster --- */

static const char types[] = "pelcrjsta";
static const char *const kinds[] = {"rayjob", "job", "jobset", "trainjob", "sparkapplication"};

static enum world_type type_of(char letter)
{
	static const enum world_type of[] = {WORLD_PODS,      WORLD_EVENTS,   WORLD_PARTS,
					     WORLD_PARTS + 1, WORLD_JOBS,     WORLD_JOBS + 1,
					     WORLD_JOBS + 2,  WORLD_JOBS + 3, WORLD_JOBS + 4};
	const char *at = strchr(types, tolower((unsigned char)letter));

	return at && *at ? of[at - types] : WORLD_N_TYPES;
}

static void on_changed(void *data, const struct world_job *job)
{
	assert(job->uid);
}

/* Counts the pods that can be found through their jobs. */
struct count {
	struct world *w;
	size_t pods;
};

static void look(void *data, const struct world_job *job)
{
	struct count *count = data;
	const struct spec_pod_view **pods cleanup_free = NULL;
	size_t n, gone = 0;

	pods = world_pods(job, &n);
	for (size_t i = 0; i < n; i++) {
		gone += pods[i]->gone;
		assert(pods[i]->gone || world_pod(count->w, job->uid, pods[i]->meta.uid,
						  strlen(pods[i]->meta.uid)) == pods[i]);
	}
	assert(n - gone == job->n_pods);
	count->pods += n - gone;
	assert(!job->view || (job->kind && streq(job->view->meta.uid, job->uid)));
}

static void forget(void *data, const struct world_job *job)
{
	world_forget(job);
}

static void check(struct world *w)
{
	struct count count = {w, 0};

	world_each(w, look, &count);
	assert(count.pods == world_n_pods(w));
}

static void tell(struct world *w, const char *line, size_t len)
{
	cleanup_free char *text = mem_copy(line, len);
	enum world_type type = type_of(*text);

	if (type == WORLD_N_TYPES)
		return;
	if (len > 1) {
		world_object(w, type, text + 1, len - 1, isupper((unsigned char)*text));
		return;
	}
	if (world_rounds(w, type) % 2)
		world_list_ends(w, type);
	world_list_begins(w, type);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct spec_part parts[] = {{"example.com/v1", "Link", "links", ""},
						 {"ray.io/v1", "RayCluster", "rayclusters", ""}};
	const char *p = (const char *)data, *end = p + size;
	struct world *w = world_new(NULL);

	diag_setup(DIAG_ERROR, false);
	world_set_changed(w, on_changed, NULL);
	for (size_t i = 0; i < array_size(kinds); i++)
		world_set_kind(w, WORLD_JOBS + (enum world_type)i, test_kind(kinds[i]));
	for (size_t i = 0; i < array_size(parts); i++)
		world_set_part(w, WORLD_PARTS + (enum world_type)i, &parts[i]);
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		nl = nl ? nl : end;
		if (nl > p)
			tell(w, p, (size_t)(nl - p));
		check(w);
		p = nl + 1;
	}
	for (const char *c = types; *c; c++)
		world_forget_type(w, type_of(*c));
	check(w);
	assert(world_n_pods(w) == 0);
	world_each(w, forget, NULL);
	world_stop(w);
	world_free(w);
	return 0;
}
