/* SPDX-License-Identifier: MIT */
/*
 * What is watched beside jobs and pods, each if it is allowed: pod groups and queues where the kind has
 * them, events. A mount works without any of it; what is refused, and what that costs, is in
 * .kxfs/info. Queues belong to the whole cluster: who may not see all may still see the one that the
 * mount submits to.
 */
#include "backend/kube.h"

#include <errno.h>

#include "backend/print.h"

#define PAGE	500
#define TICK_MS 5000

/* The queue of the mount's own jobs, as -o queue says; "" none. */
static const char *own_queue(const struct kube *k)
{
	const struct backend_config *c = &k->b->config;

	for (size_t i = 0; i < c->n_args; i++)
		if (streq(c->args[i].key, "queue"))
			return c->args[i].value;
	return "";
}

struct extra_def {
	const char *plural;
	bool scheduling; /* of the kind's scheduling API; else of the core */
	bool cluster;	 /* not of a namespace */
	const char *cost;
	void (*told)(struct kube_extra *x, const char *json, size_t len, bool gone);
	void (*listed)(struct kube_extra *x);
};

static const struct extra_def defs[KUBE_N_EXTRAS] = {
	[KUBE_GROUPS] = {.plural = "podgroups",
			 .scheduling = true,
			 .cost = "why can't tell of gangs, and of jobs that the scheduler does not "
				 "let in",
			 .told = kube_group_told,
			 .listed = kube_groups_listed},
	[KUBE_EVENTS] = {.plural = "events",
			 .cost = "there is no events file; why can't tell of pods that can't be "
				 "made, of volumes that can't be mounted, of queues and a cluster "
				 "that are full",
			 .told = kube_event_told},
	[KUBE_QUEUES] = {.plural = "queues",
			 .scheduling = true,
			 .cluster = true,
			 .cost = "queues/ has at most the queue of this mount",
			 .told = kube_queue_told,
			 .listed = kube_queues_listed},
	[KUBE_OWN_QUEUE] = {.plural = "queues",
			    .scheduling = true,
			    .cluster = true,
			    .cost = "there is no queues/; why can't tell what a queue has",
			    .told = kube_queue_told,
			    .listed = kube_queues_listed},
};

/* --- what the watches say --- */

static void on_begin(void *data)
{
	struct kube_extra *x = data;

	x->round++;
}

static void on_object(void *data, const char *json, size_t len, bool gone)
{
	struct kube_extra *x = data;

	atomic_fetch_add(&x->k->n_events, 1);
	defs[x->id].told(x, json, len, gone);
}

static void on_listed(void *data)
{
	struct kube_extra *x = data;

	x->listed = true;
	if (defs[x->id].listed)
		defs[x->id].listed(x);
}

static void start(struct kube *k, enum kube_extra_id id);

/* What X told is not known any more: it goes as if a list had nothing of it. */
static void forget(struct kube_extra *x)
{
	x->round++;
	if (defs[x->id].listed)
		defs[x->id].listed(x);
	x->listed = false;
}

static void stop(struct kube_extra *x)
{
	watch_free(take_ptr(x->watch));
	{
		lock_scope(&x->k->lock);
		x->err = 1;
		x->known = false;
		free(take_ptr(x->text));
	}
	forget(x);
}

/* What one watch says of queues decides on the other. */
static void choose_queues(struct kube *k)
{
	struct kube_extra *all = &k->extras[KUBE_QUEUES], *own = &k->extras[KUBE_OWN_QUEUE];

	if (all->err == -EACCES && !own->watch && *own_queue(k))
		start(k, KUBE_OWN_QUEUE);
	else if (all->err == 0 && own->watch)
		stop(own);
}

static void on_state(void *data, int err, const char *text)
{
	struct kube_extra *x = data;
	struct kube *k = x->k;
	char *copy = strdup(text);
	bool first = err == 0 && x->err != 0;
	bool lost = x->known && (err == -EACCES || err == -EOPNOTSUPP);

	{
		lock_scope(&k->lock);
		x->err = err;
		x->known = err == 0 || (x->known && !lost);
		x->verb = watch_verb(x->watch);
		free(x->text);
		x->text = copy;
	}
	if (lost)
		forget(x);
	/* Some of what is not said while nothing is known may be said now, or no longer. */
	for (struct kube_job *job = k->jobs; (first || lost) && job; job = job->hh.next)
		if (job->waits)
			kube_mark(job);
	if (x->id == KUBE_QUEUES)
		choose_queues(k);
	if (x->id == KUBE_GROUPS && !k->extras[KUBE_EVENTS].watch)
		start(k, KUBE_EVENTS);
}

bool kube_extra_confirmed(struct kube *k, enum kube_extra_id id)
{
	lock_scope(&k->lock);
	return k->extras[id].known && k->extras[id].err == 0;
}

bool kube_extra_known(struct kube *k, enum kube_extra_id id)
{
	lock_scope(&k->lock);
	return k->extras[id].known;
}

/* --- life --- */

/* What the resources of the scheduling API are below; "" the kind has none. */
static const char *scheduling_api(const struct kube *k)
{
	return k->kind->scheduling_api ? k->kind->scheduling_api : "";
}

/* NULL: no memory. */
static char *path_of(const struct kube *k, const struct extra_def *def)
{
	const char *api = def->scheduling ? scheduling_api(k) : "v1";
	const char *root = def->scheduling ? "/apis" : "/api";
	char *path;
	int n;

	if (def->cluster)
		n = asprintf(&path, "%s/%s/%s", root, api, def->plural);
	else
		n = asprintf(&path, "%s/%s/namespaces/%s/%s", root, api, k->connection.namespace,
			     def->plural);
	return n < 0 ? NULL : path;
}

static char *resource_of(const struct kube *k, const struct extra_def *def)
{
	const char *api = scheduling_api(k);
	char *text;
	int n;

	if (!def->scheduling)
		return strdup(def->plural);
	n = asprintf(&text, "%s.%.*s", def->plural, (int)strcspn(api, "/"), api);
	return n < 0 ? NULL : text;
}

static void start(struct kube *k, enum kube_extra_id id)
{
	const struct extra_def *def = &defs[id];
	struct kube_extra *x = &k->extras[id];
	cleanup_free char *path = path_of(k, def);
	cleanup_free char *field = NULL;
	struct watch_config config = {
		.loop = k->b->loop,
		.http = k->http,
		.path = path,
		.selector = "",
		.namespace = def->cluster ? "" : k->connection.namespace,
		.page = PAGE,
		.optional = true,
		.ends = &k->watch_ends,
		.begin = on_begin,
		.object = on_object,
		.listed = on_listed,
		.state = on_state,
		.data = x,
	};

	if (id == KUBE_OWN_QUEUE && asprintf(&field, "metadata.name=%s", own_queue(k)) < 0) {
		field = NULL;
		return;
	}
	config.field = field;
	if (!x->resource)
		x->resource = resource_of(k, def);
	config.resource = x->resource;
	x->k = k;
	x->id = id;
	{
		lock_scope(&k->lock);
		x->err = 1;
	}
	x->watch = path && x->resource ? watch_new(&config) : NULL;
	if (!x->watch)
		diag(DIAG_ERROR, "out of memory; %s are not watched", def->plural);
}

void kube_extra_start(struct kube *k)
{
	if (k->kind->scheduling_api) {
		start(k, KUBE_GROUPS);
		start(k, KUBE_QUEUES);
	}
	/* Else when groups have had their say: what is told of them before must wait, and few can. */
	if (!k->extras[KUBE_GROUPS].watch)
		start(k, KUBE_EVENTS);
}

void kube_extra_stop(struct kube *k)
{
	loop_timer_free(take_ptr(k->tick));
	for (size_t i = 0; i < KUBE_N_EXTRAS; i++)
		watch_free(take_ptr(k->extras[i].watch));
}

void kube_extra_free(struct kube *k)
{
	for (size_t i = 0; i < KUBE_N_EXTRAS; i++) {
		free(k->extras[i].text);
		free(k->extras[i].resource);
	}
	kube_groups_free(k);
	events_free(k->events);
}

/* --- what only time tells --- */

/* What was seen first long enough ago is told anew. True: some was seen since. */
static bool look_at_patience(struct kube *k)
{
	int64_t before = loop_time_ns() - SPEC_PATIENCE;
	bool more = false;

	for (struct kube_job *job = k->jobs; job; job = job->hh.next) {
		struct kube_group *group = job->waits ? kube_group_of(job) : NULL;
		bool mark = false;

		if (job->view && !job->waited && job->waits)
			mark = job->waited = job->since <= before;
		if (group && !group->waited)
			mark |= group->waited = group->view->seen <= before;
		if (mark)
			kube_mark(job);
		more |= job->waits && (!job->waited || (group && !group->waited));
	}
	return more;
}

static void look_at_queues(struct kube *k)
{
	for (struct kube_job *job = k->jobs; job; job = job->hh.next) {
		struct kube_queue *queue = NULL;

		if (job->view && job->waits)
			HASH_FIND_STR(k->queues, job->view->queue, queue);
		if (queue && queue->changed)
			kube_mark(job);
	}
	for (struct kube_queue *queue = k->queues; queue; queue = queue->hh.next)
		queue->changed = false;
}

static void on_tick(void *data)
{
	struct kube *k = data;

	loop_timer_free(take_ptr(k->tick));
	look_at_queues(k);
	if (look_at_patience(k))
		kube_tick_later(k);
}

void kube_tick_later(struct kube *k)
{
	if (!k->tick && !k->stopping)
		k->tick = loop_timer_new(k->b->loop, TICK_MS, 0, on_tick, k);
}

/* --- .kxfs/info --- */

void kube_extra_info(struct kube *k, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < KUBE_N_EXTRAS; i++) {
		struct kube_extra *x = &k->extras[i];
		cleanup_free char *text = NULL;
		const char *verb = NULL;

		{
			lock_scope(&k->lock);
			bool twice = i == KUBE_QUEUES && k->extras[KUBE_OWN_QUEUE].err == -EACCES;

			if (x->err == -EACCES && !twice) {
				verb = x->verb;
				text = x->text ? strdup(x->text) : NULL;
			}
		}
		if (!verb)
			continue;
		fprintf(out, "%s- verb: %s\n", any ? "" : "refused:\n", verb);
		any = true;
		fprintf(out, "  resource: %s\n", x->resource);
		print_text(out, "  cost", defs[i].cost);
		print_text(out, "  answer", text ? text : "");
	}
	if (!any)
		fputs("refused: []\n", out);
}
