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
#include "spec/job/status.h"
#include "spec/kinds/kinds.h"
#include "spec/view/kueue.h"
#include "tests/unit/spec/kinds/describe.h"
#include "tests/unit/unit.h"

#define WORLD_PODS   64
#define WORLD_EVENTS 64
#define SECOND	     INT64_C(1000000000)

/* Items of a JSON list. */
#define LIST2(a, b)	  a "," b
#define LIST3(a, b, c)	  a "," b "," c
#define LIST4(a, b, c, d) a "," b "," c "," d
/* The conditions in a status. */
#define CONDITIONS(list) "'conditions':[" list "]"

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
	bool cluster_queues; /* the user may read ClusterQueues; most users may not */
	/* The job to show if the recording has several. NULL: it has one. */
	const char *only;
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

/* Make a snapshot. */
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

	if (!w->job)
		return;
	job = spec_view_job(w->job, (const struct spec_pod_view *const *)w->pods, w->n_pods, &ctx);
	assert_non_null(job);
	spec_job_unref(w->last);
	w->last = job;
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

/* Report the pod that arrived as number I as deleted. */
static inline void world_pod_gone(struct world *w, size_t i)
{
	if (!w->pods[i]->meta.deleted)
		w->pods[i]->meta.deleted = 600 * SECOND;
	w->pods[i]->gone = true;
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

static inline void world_cluster_queue(struct world *w, const char *json, bool gone)
{
	spec_queue_view_unref(w->cluster_queue);
	assert_int_equal(spec_kueue_queue_parse(json, strlen(json), &w->cluster_queue), 0);
	w->kueue.cluster_queue = w->cluster_queues && !gone ? w->cluster_queue : NULL;
	world_look(w);
}

/* --- what users see --- */

/* Return the reason in `status`. */
static inline const char *world_reason(const struct world *w)
{
	return *w->last->cause.reason ? w->last->cause.reason : w->last->reason;
}

/* Return `why` without its last newline. The result is valid until the next call. */
static inline const char *world_why(const struct world *w)
{
	static char *text;
	size_t len;

	free(text);
	spec_status_why(w->last, ~0u, &text, &len);
	if (len > 0)
		text[len - 1] = '\0';
	return text;
}

/* Return "STATE", "/suspended" if the job is, and REASON and TEXT as in "REASON: TEXT". */
static inline char *world_line(const struct world *w, const char *reason, const char *text)
{
	return text_print("%s%s%s%s%s%s", spec_state_name(w->last->state),
			  w->last->suspended ? "/suspended" : "", *reason ? " " : "", reason,
			  *text ? ": " : "", text);
}

/* Assert the state of the job, its reason, and its message, as in "FAILED Error: exit code 3". */
static inline void assert_job(const struct world *w, const char *want)
{
	cleanup_free char *line = world_line(w, w->last->reason, w->last->message);

	assert_string_equal(line, want);
}

/* Assert the state, the reason in `status`, and `why`, as in "PENDING Queued: The job waits." */
static inline void assert_why(const struct world *w, const char *want)
{
	cleanup_free char *line = world_line(w, world_reason(w), world_why(w));

	assert_string_equal(line, want);
}

/* Assert that the job's state and its replicas are WANT, as describe_job() prints them. */
static inline void assert_shows(const struct world *w, const char *want)
{
	char line[4096];

	describe_job(w->last, false, line);
	line[strcspn(line, "\n")] = '\0';
	assert_string_equal(line, want);
}

/* Assert that the replicas are WANT, as describe_job() prints them. */
static inline void assert_replicas(const struct world *w, const char *want)
{
	cleanup_free char *line = text_print("%s %s", spec_state_name(w->last->state), want);

	assert_shows(w, line);
}

static inline void assert_reason(const struct world *w, const char *want)
{
	assert_string_equal(world_reason(w), want);
}

/* --- recordings --- */

enum world_file {
	WORLD_FILE_JOBS,
	WORLD_FILE_PODS,
	WORLD_FILE_GROUPS,
	WORLD_FILE_EVENTS,
	WORLD_FILE_WORKLOADS,
	WORLD_FILE_LOCAL_QUEUES,
	WORLD_FILE_CLUSTER_QUEUES,
	WORLD_FILE_PENDING, /* not played */
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

/* Return what the lines after HEAD, a line of a recording, are. */
static inline enum world_file world_file_of(const char *head)
{
	static const char *const names[] = {
		[WORLD_FILE_PODS] = "pods",
		[WORLD_FILE_GROUPS] = "podgroups",
		[WORLD_FILE_EVENTS] = "events",
		[WORLD_FILE_WORKLOADS] = "workloads",
		[WORLD_FILE_LOCAL_QUEUES] = "localqueues",
		[WORLD_FILE_CLUSTER_QUEUES] = "clusterqueues",
		[WORLD_FILE_PENDING] = "pendingworkloads",
	};
	char name[32];

	assert_int_equal(sscanf(head, "{\"recorded\": \"%31[a-z-]\"}", name), 1);
	for (size_t i = 1; i < array_size(names); i++)
		if (streq(name, names[i]))
			return (enum world_file)i;
	return WORLD_FILE_JOBS;
}

/* Read the recording SCENARIO. */
static inline void world_read(struct world_changes *changes, const char *scenario)
{
	struct spec_split *s = spec_split_new(SPEC_SPLIT_WATCH, NULL, world_change_add, changes);
	cleanup_free char *line = NULL, *path = NULL, *begin = NULL;
	cleanup_file FILE *f = NULL;
	bool played = false;
	size_t size = 0;
	ssize_t n;

	begin = text_print("{\"scenario\": \"%s\"}\n", scenario);
	path = text_print(TEST_SOURCE "/tests/replay/data/recordings/%s.jsonl",
			  world_controller(scenario));
	f = fopen(path, "re");
	assert_non_null(f);
	while ((n = getline(&line, &size, f)) > 0) {
		if (strncmp(line, "{\"scenario\": ", strlen("{\"scenario\": ")) == 0)
			played = streq(line, begin);
		else if (played && strncmp(line, "{\"recorded\": ", strlen("{\"recorded\": ")) == 0)
			changes->file = world_file_of(line);
		else if (played && changes->file != WORLD_FILE_PENDING)
			/* Feed it in chunks, as they arrive from a server. */
			for (ssize_t at = 0; at < n; at += 777)
				assert_int_equal(spec_split_feed(s, line + at,
								 (size_t)(n - at < 777 ? n - at
										       : 777)),
						 0);
	}
	assert_int_equal(spec_split_end(s, NULL), 0);
	assert_true(changes->n > 0);
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
	case WORLD_FILE_PENDING:
		break;
	}
}

/* Replay a recording in the order in which the server wrote. Call LOOK after each change. */
static inline void world_play(struct world *w, const char *scenario,
			      void (*look)(struct world *w, void *data), void *data)
{
	struct world_changes *changes = mem_zero(sizeof(*changes));

	world_read(changes, scenario);
	qsort(changes->v, changes->n, sizeof(changes->v[0]), world_by_version);
	for (size_t i = 0; i < changes->n; i++) {
		world_apply(w, &changes->v[i]);
		free(changes->v[i].object);
		if (look)
			look(w, data);
	}
	free(changes);
}
