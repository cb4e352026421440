/* SPDX-License-Identifier: MIT */
/*
 * A cluster for tests of views. It receives watch events of a job and its pods one by one, and
 * makes the snapshots. Recorded events are in tests/replay/data.
 */
#pragma once

#include <errno.h>
#include <json-c/json.h>

#include "spec/api/object.h"
#include "spec/api/split.h"
#include "spec/kinds/kinds.h"
#include "spec/view/kueue.h"
#include "tests/unit/spec/kinds/describe.h"
#include "tests/unit/unit.h"

#define WORLD_PODS   64
#define WORLD_EVENTS 64
#define SECOND	     INT64_C(1000000000)

struct world {
	const struct spec_kind *kind; /* NULL means Volcano */
	struct spec_job_view *job;
	bool left; /* the job's object was deleted */
	struct spec_pod_view *pods[WORLD_PODS];
	size_t n_pods;
	const struct spec_job *last;
	int64_t now;   /* in seconds */
	int64_t since; /* when kxfs first saw the job, in ns */
	int64_t stale_since;
	/* The other known objects. */
	struct spec_group_view *group;
	struct spec_queue_view *queue;
	struct spec_event_view *events[WORLD_EVENTS];
	size_t n_events;
	bool events_known;
	unsigned unseen;
	struct spec_kueue_facts kueue; /* the world owns its objects */
	struct spec_workload_view *workload;
	struct spec_queue_view *cluster_queue;
	/* The job to show if the recording has several. NULL: it has one. */
	const char *only;
	char told[65536]; /* all changes, one per line */
};

/* Format FMT, with ' in place of ". The result is static, and valid for the next seven calls. */
static inline const char *world_json(const char *fmt, ...) printf_like(1, 2);
static inline const char *world_json(const char *fmt, ...)
{
	static char buffers[8][8192];
	static unsigned next;
	char *ret = buffers[next++ % array_size(buffers)];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(ret, sizeof(buffers[0]), fmt, ap);
	va_end(ap);
	assert_in_range(n, 1, sizeof(buffers[0]) - 1);
	for (char *p = ret; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	return ret;
}

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
	for (size_t i = 0; i < w->n_events; i++)
		spec_event_view_unref(w->events[i]);
	spec_group_view_free(w->group);
	spec_queue_view_unref(w->queue);
	spec_workload_view_free(w->workload);
	spec_queue_view_unref(w->cluster_queue);
	spec_job_unref(w->last);
	*w = (struct world){.kind = kind};
}

/* Make a snapshot. Record it if a user would see a difference. */
static inline void world_look(struct world *w)
{
	const struct spec_view_context ctx = {
		.reader = world_kind(w)->reader,
		.control = world_kind(w)->control,
		.backend = world_kind(w)->name,
		.namespace = "ns",
		.now = ++w->now * SECOND,
		.stale_since = w->stale_since,
		.own = true,
		.history = w->left,
		.since = w->since,
		.group = w->group,
		.queue = w->queue,
		.events = w->events,
		.n_events = w->n_events,
		.events_known = w->events_known,
		.unseen = w->unseen,
		.kueue = w->kueue,
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
	describe_job(job, false, line);
	before = len > 0 ? memrchr(w->told, '\n', len - 1) : NULL;
	before = before ? before + 1 : w->told;
	if (!streq(before, line))
		snprintf(w->told + len, sizeof(w->told) - len, "%s", line);
}

static inline void world_job(struct world *w, const char *json, bool gone)
{
	struct spec_job_view *view;

	assert_int_equal(spec_job_view_parse(world_kind(w)->reader, json, strlen(json), &view), 0);
	if (w->only && !streq(view->meta.name, w->only)) {
		spec_job_view_free(view);
		return;
	}
	spec_job_view_free(w->job);
	w->job = view;
	w->left = gone;
	world_look(w);
}

static inline void world_pod(struct world *w, const char *json, bool gone)
{
	struct spec_pod_view *view;
	size_t i = 0;

	assert_int_equal(spec_pod_view_parse(&(struct spec_pod_readers){.v = &world_kind(w)->reader,
									.n = 1},
					     json, strlen(json), &view),
			 0);
	if (w->only && !(w->job && streq(view->meta.owner_uid, w->job->meta.uid))) {
		spec_pod_view_free(view);
		return;
	}
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

/* --- other watched objects --- */

static inline void world_group(struct world *w, const char *json, bool gone)
{
	spec_group_view_free(w->group);
	w->group = NULL;
	if (!gone) {
		assert_int_equal(spec_group_view_parse(json, strlen(json), &w->group), 0);
		w->group->seen = w->group->meta.created;
	}
	world_look(w);
}

/* Keep the newest event of each cause, as events.c does. */
static inline void world_event(struct world *w, const char *json)
{
	struct spec_event_view *view;
	size_t i = 0;

	assert_int_equal(spec_event_view_parse(json, strlen(json), &view), 0);
	while (i < w->n_events && !spec_event_view_same(w->events[i], view))
		i++;
	assert_true(i < WORLD_EVENTS);
	if (i < w->n_events)
		spec_event_view_unref(w->events[i]);
	else
		w->n_events++;
	w->events[i] = view;
	world_look(w);
}

static inline void world_queue(struct world *w, const char *json)
{
	spec_queue_view_unref(w->queue);
	assert_int_equal(spec_queue_view_parse(json, strlen(json), &w->queue), 0);
	world_look(w);
}

/* --- Kueue --- */

static inline void world_workload(struct world *w, const char *json, bool gone)
{
	struct spec_workload_view *view;

	assert_int_equal(spec_workload_view_parse(json, strlen(json), &view), 0);
	if (w->only && !(w->job && streq(view->meta.owner_uid, w->job->meta.uid))) {
		spec_workload_view_free(view);
		return;
	}
	spec_workload_view_free(w->workload);
	w->workload = view;
	w->kueue.workload = gone ? NULL : view;
	world_look(w);
}

static inline void world_local_queue(struct world *w, const char *json, bool gone)
{
	spec_queue_view_unref(w->queue);
	assert_int_equal(spec_kueue_queue_parse(json, strlen(json), &w->queue), 0);
	if (gone) {
		spec_queue_view_unref(w->queue);
		w->queue = NULL;
	}
	world_look(w);
}

/*
 * The queue is not shown until a test sets kueue.cluster_queue, because most users may not read it.
 */
static inline void world_cluster_queue(struct world *w, const char *json, bool gone)
{
	bool shown = w->kueue.cluster_queue;

	spec_queue_view_unref(w->cluster_queue);
	assert_int_equal(spec_kueue_queue_parse(json, strlen(json), &w->cluster_queue), 0);
	w->kueue.cluster_queue = shown && !gone ? w->cluster_queue : NULL;
	world_look(w);
}

/* --- recordings --- */

enum world_file {
	WORLD_FILE_JOBS,
	WORLD_FILE_PODS,
	WORLD_FILE_GROUPS,
	WORLD_FILE_EVENTS,
	WORLD_FILE_WORKLOADS,
	WORLD_FILE_LOCAL_QUEUES,
	WORLD_FILE_CLUSTER_QUEUES
};

struct world_change {
	long version;
	enum world_file file;
	bool gone;
	char *object;
};

struct world_changes {
	struct world_change v[512];
	size_t n;
	enum world_file file;
};

static inline int world_change_add(void *data, const char *json, size_t len, int wrong)
{
	struct world_changes *events = data;
	struct spec_event e;

	assert_int_equal(wrong, 0);
	assert_int_equal(spec_event_parse(json, len, &e), 0);
	if (e.type == SPEC_EVENT_BOOKMARK || e.type == SPEC_EVENT_ERROR) {
		spec_event_clear(&e);
		return 0;
	}
	assert_true(events->n < array_size(events->v));
	events->v[events->n++] = (struct world_change){
		.version = strtol(e.resource_version, NULL, 10),
		.file = events->file,
		.gone = e.type == SPEC_EVENT_DELETED,
		.object = take_ptr(e.object),
	};
	spec_event_clear(&e);
	return 0;
}

/* Return the recording file that contains SCENARIO. */
static inline const char *world_controller(const char *scenario)
{
	static const char *const controllers[] = {"kueue_v014", "kueue", "job", "appwrapper",
						  "mcad"};

	for (size_t i = 0; i < array_size(controllers); i++)
		if (strncmp(scenario, controllers[i], strlen(controllers[i])) == 0 &&
		    scenario[strlen(controllers[i])] == '_')
			return controllers[i];
	return "volcano";
}

static inline void world_read(struct world_changes *events, const struct spec_kind *kind,
			      const char *scenario, enum world_file which)
{
	static const char *const files[] = {
		[WORLD_FILE_PODS] = "pods",
		[WORLD_FILE_GROUPS] = "podgroups",
		[WORLD_FILE_EVENTS] = "events",
		[WORLD_FILE_WORKLOADS] = "workloads",
		[WORLD_FILE_LOCAL_QUEUES] = "localqueues",
		[WORLD_FILE_CLUSTER_QUEUES] = "clusterqueues",
	};
	struct spec_split *s = spec_split_new(SPEC_SPLIT_WATCH, NULL, world_change_add, events);
	char path[1024], jobs[64], head[128], begin[128];
	cleanup_free char *line = NULL;
	cleanup_file FILE *f = NULL;
	bool played = false, found = false, mine = false;
	size_t size = 0;
	ssize_t n;

	snprintf(jobs, sizeof(jobs), "%s%s", kind == &spec_volcano ? "volcano-" : "", kind->plural);
	snprintf(head, sizeof(head), "{\"recorded\": \"%s\"}\n",
		 which == WORLD_FILE_JOBS ? jobs : files[which]);
	snprintf(begin, sizeof(begin), "{\"scenario\": \"%s\"}\n", scenario);
	snprintf(path, sizeof(path), TEST_SOURCE "/tests/replay/data/recordings/%s.jsonl",
		 world_controller(scenario));
	events->file = which;
	f = fopen(path, "re");
	assert_non_null(f);
	while ((n = getline(&line, &size, f)) > 0) {
		if (strncmp(line, "{\"scenario\": ", strlen("{\"scenario\": ")) == 0) {
			if (played)
				break;
			played = strcmp(line, begin) == 0;
		}
		if (!played)
			continue;
		if (strncmp(line, "{\"recorded\": ", strlen("{\"recorded\": ")) == 0) {
			mine = strcmp(line, head) == 0;
			found |= mine;
			continue;
		}
		/* Feed it in chunks, as they arrive from a server. */
		for (ssize_t at = 0; mine && at < n; at += 777)
			assert_int_equal(spec_split_feed(s, line + at,
							 (size_t)(n - at < 777 ? n - at : 777)),
					 0);
	}
	assert_true(played);
	assert_int_equal(spec_split_end(s, NULL), 0);
	/* A gang that never started has no pods. Queues may be missing. */
	assert_true(found || which == WORLD_FILE_PODS || which >= WORLD_FILE_LOCAL_QUEUES);
	spec_split_free(s);
}

static inline int world_by_version(const void *a, const void *b)
{
	const struct world_change *x = a, *y = b;

	return x->version < y->version ? -1 : x->version > y->version;
}

static inline void world_apply(struct world *w, const struct world_change *c)
{
	switch (c->file) {
	case WORLD_FILE_JOBS:
		world_job(w, c->object, c->gone);
		break;
	case WORLD_FILE_PODS:
		world_pod(w, c->object, c->gone);
		break;
	case WORLD_FILE_GROUPS:
		world_group(w, c->object, c->gone);
		break;
	case WORLD_FILE_EVENTS:
		world_event(w, c->object);
		break;
	case WORLD_FILE_WORKLOADS:
		world_workload(w, c->object, c->gone);
		break;
	case WORLD_FILE_LOCAL_QUEUES:
		world_local_queue(w, c->object, c->gone);
		break;
	case WORLD_FILE_CLUSTER_QUEUES:
		world_cluster_queue(w, c->object, c->gone);
		break;
	}
}

/*
 * Replay files of a recording in the order in which the server wrote. Call LOOK after each change.
 */
static inline void world_play_these(struct world *w, const char *scenario,
				    const enum world_file *files, size_t n_files,
				    void (*look)(struct world *w, void *data), void *data)
{
	struct world_changes *changes = calloc(1, sizeof(*changes));

	assert_non_null(changes);
	for (size_t i = 0; i < n_files; i++)
		world_read(changes, world_kind(w), scenario, files[i]);
	qsort(changes->v, changes->n, sizeof(changes->v[0]), world_by_version);
	for (size_t i = 0; i < changes->n; i++) {
		world_apply(w, &changes->v[i]);
		free(changes->v[i].object);
		if (look)
			look(w, data);
	}
	free(changes);
}

/* Replay the files of a recording up to LAST. */
static inline void world_play_files(struct world *w, const char *scenario, enum world_file last,
				    void (*look)(struct world *w, void *data), void *data)
{
	static const enum world_file files[] = {WORLD_FILE_JOBS, WORLD_FILE_PODS, WORLD_FILE_GROUPS,
						WORLD_FILE_EVENTS};

	world_play_these(w, scenario, files, (size_t)last + 1, look, data);
}

/* Replay the jobs and pods of a recording. */
static inline void world_play(struct world *w, const char *scenario)
{
	world_play_files(w, scenario, WORLD_FILE_PODS, NULL, NULL);
}
