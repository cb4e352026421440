/* SPDX-License-Identifier: MIT */
/*
 * A cluster for tests of views: a job and its pods as a watch tells of them, event by event, and the
 * snapshots that they make. Recorded events come from tests/replay/data.
 */
#ifndef KXFS_TESTS_CLUSTER_WORLD_H
#define KXFS_TESTS_CLUSTER_WORLD_H

#include <errno.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "spec/event.h"
#include "spec/kind.h"
#include "spec/split.h"
#include "spec/view.h"

#define WORLD_PODS  64
#define WORLD_SHOWN 32 /* replicas of a job that are told of */
#define SECOND	    INT64_C(1000000000)

struct world {
	const struct spec_kind *kind; /* NULL: Volcano */
	struct spec_job_view *job;
	bool left; /* its object is gone */
	struct spec_pod_view *pods[WORLD_PODS];
	size_t n_pods;
	const struct spec_job *last;
	int64_t now;
	char told[65536]; /* what changed, one a line */
};

static inline const struct spec_kind *world_kind(const struct world *w)
{
	return w->kind ? w->kind : &spec_volcano;
}

static inline void world_clear(struct world *w)
{
	const struct spec_kind *kind = w->kind;

	spec_job_view_free(w->job);
	for (size_t i = 0; i < w->n_pods; i++)
		spec_pod_view_free(w->pods[i]);
	spec_job_unref(w->last);
	*w = (struct world){.kind = kind};
}

/* The state of the job and of its replicas: "RUNNING trainer-0=FAILED/3/Error trainer-1=RUNNING". */
static inline void world_describe(const struct spec_job *job, char ret[4096])
{
	size_t n = (size_t)snprintf(ret, 4096, "%s", spec_state_name(job->state));

	for (size_t i = 0; i < job->n_replicas && i < WORLD_SHOWN; i++) {
		const struct spec_replica *r = &job->replicas[i];

		n += (size_t)snprintf(ret + n, 4096 - n, " %s=%s", r->name,
				      spec_state_name(r->state));
		if (r->exit_code >= 0)
			n += (size_t)snprintf(ret + n, 4096 - n, "/%d", r->exit_code);
		if (*r->reason)
			n += (size_t)snprintf(ret + n, 4096 - n, "/%s", r->reason);
		if (r->attempt > 0)
			n += (size_t)snprintf(ret + n, 4096 - n, "/attempt %u", r->attempt);
	}
	snprintf(ret + n, 4096 - n, "\n");
}

/* Make a snapshot of what is known; note it if a user would see a difference. */
static inline void world_look(struct world *w)
{
	const struct spec_view_context ctx = {
		.kind = world_kind(w),
		.namespace = "ns",
		.now = ++w->now * SECOND,
		.own = true,
		.history = w->left,
		.before = w->last,
	};
	struct spec_job *job;
	char line[4096];
	size_t len = strlen(w->told);
	const char *before;

	if (!w->job)
		return;
	job = spec_view_job(w->job, (const struct spec_pod_view *const *)w->pods, w->n_pods, &ctx);
	assert_non_null(job);
	spec_job_unref(w->last);
	w->last = job;
	world_describe(job, line);
	before = len > 0 ? memrchr(w->told, '\n', len - 1) : NULL;
	before = before ? before + 1 : w->told;
	if (!streq(before, line))
		snprintf(w->told + len, sizeof(w->told) - len, "%s", line);
}

static inline const struct spec_job_view *world_find(void *data, const char *uid)
{
	const struct world *w = data;

	return w->job && streq(w->job->meta.uid, uid) ? w->job : NULL;
}

static inline void world_job(struct world *w, const char *json, bool gone)
{
	struct spec_job_view *view;

	assert_int_equal(spec_job_view_parse_again(world_kind(w), json, strlen(json), world_find, w,
						   &view),
			 0);
	spec_job_view_free(w->job);
	w->job = view;
	w->left = gone;
	world_look(w);
}

static inline void world_pod(struct world *w, const char *json, bool gone)
{
	struct spec_pod_view *view;
	size_t i = 0;

	assert_int_equal(spec_pod_view_parse(world_kind(w), json, strlen(json), &view), 0);
	while (i < w->n_pods && !streq(w->pods[i]->meta.uid, view->meta.uid))
		i++;
	assert_true(i < WORLD_PODS);
	if (i < w->n_pods) {
		spec_pod_view_inherit(view, w->pods[i]);
		spec_pod_view_free(w->pods[i]);
	} else {
		w->n_pods++;
	}
	view->gone = gone;
	w->pods[i] = view;
	world_look(w);
}

/* --- recordings ------------------------------------------------------------------------------ */

struct world_event {
	long version;
	bool is_pod, gone;
	char *object;
};

struct world_events {
	struct world_event v[512];
	size_t n;
	bool is_pod;
};

static inline int world_event_add(void *data, const char *json, size_t len)
{
	struct world_events *events = data;
	struct spec_event e;

	assert_int_equal(spec_event_parse(json, len, &e), 0);
	if (e.type == SPEC_EVENT_BOOKMARK || e.type == SPEC_EVENT_ERROR) {
		spec_event_clear(&e);
		return 0;
	}
	assert_true(events->n < array_size(events->v));
	events->v[events->n++] = (struct world_event){
		.version = strtol(e.resource_version, NULL, 10),
		.is_pod = events->is_pod,
		.gone = e.type == SPEC_EVENT_DELETED,
		.object = take_ptr(e.object),
	};
	spec_event_clear(&e);
	return 0;
}

static inline void world_read(struct world_events *events, const char *scenario, const char *file)
{
	struct spec_split *s = spec_split_new(SPEC_SPLIT_WATCH, true, world_event_add, events);
	char path[1024], bytes[777];
	cleanup_file FILE *f = NULL;
	size_t n;

	snprintf(path, sizeof(path), TEST_SOURCE "/tests/replay/data/recordings/%s/%s", scenario,
		 file);
	events->is_pod = streq(file, "pods.jsonl");
	f = fopen(path, "re");
	/* A gang that never started has no pods. */
	if (!f && events->is_pod) {
		spec_split_free(s);
		return;
	}
	assert_non_null(f);
	while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0)
		assert_int_equal(spec_split_feed(s, bytes, n), 0);
	assert_int_equal(spec_split_end(s, NULL), 0);
	spec_split_free(s);
}

static inline int world_by_version(const void *a, const void *b)
{
	const struct world_event *x = a, *y = b;

	return x->version < y->version ? -1 : x->version > y->version;
}

/* Play a recording, jobs and pods in the order in which the server wrote them. */
static inline void world_play(struct world *w, const char *scenario)
{
	struct world_events *events = calloc(1, sizeof(*events));

	assert_non_null(events);
	world_read(events, scenario, w->kind ? "appwrappers.jsonl" : "volcano-jobs.jsonl");
	world_read(events, scenario, "pods.jsonl");
	qsort(events->v, events->n, sizeof(events->v[0]), world_by_version);
	for (size_t i = 0; i < events->n; i++) {
		struct world_event *e = &events->v[i];

		if (e->is_pod)
			world_pod(w, e->object, e->gone);
		else
			world_job(w, e->object, e->gone);
		free(e->object);
	}
	free(events);
}

#endif
