/* SPDX-License-Identifier: MIT */
/*
 * A table of watches, with a row for each type of object. Optional watches start after the first
 * lists. The watch of events starts only when the watch of groups works or has failed. Otherwise
 * too many events would wait until their groups are known. If the server refuses the watch of all
 * queues, kxfs watches only the queue of the mount's own jobs. The file is long because most of its
 * functions change rows of the table.
 */
#include "backend/kube/watches.h"

#include <errno.h>
#include <stdatomic.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/print.h"
#include "backend/client/watch.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/time.h"
#include "spec/kinds/right.h"

/* Number of objects in the first page of a list. A pod of a large job has hundreds of KiB. */
#define PAGE_JOBS  100
#define PAGE_PODS  50
#define PAGE_OTHER 500

#define READY_MS 5000 /* the start waits this long for queues and Workloads */

enum api { API_KIND, API_PART, API_CORE, API_SCHEDULING, API_KUEUE };

static const struct watch_def {
	const char *plural; /* name of the resource; NULL if the kind or the part defines it */
	enum api api;
	bool cluster; /* true if the objects are not in a namespace */
	bool of_user; /* true if the objects have the label SPEC_LABEL_USER */
	unsigned page;
} defs[WORLD_JOBS + 1] = {
	[WORLD_PODS] = {"pods", API_CORE, false, true, PAGE_PODS},
	[WORLD_GROUPS] = {"podgroups", API_SCHEDULING, false, true, PAGE_OTHER},
	[WORLD_EVENTS] = {"events", API_CORE, false, false, PAGE_OTHER},
	[WORLD_QUEUES] = {"queues", API_SCHEDULING, true, false, PAGE_OTHER},
	[WORLD_OWN_QUEUE] = {"queues", API_SCHEDULING, true, false, PAGE_OTHER},
	[WORLD_WORKLOADS] = {"workloads", API_KUEUE, false, false, PAGE_JOBS},
	[WORLD_LOCAL_QUEUES] = {"localqueues", API_KUEUE, false, false, PAGE_OTHER},
	[WORLD_CLUSTER_QUEUES] = {"clusterqueues", API_KUEUE, true, false, PAGE_OTHER},
	[WORLD_PARTS] = {NULL, API_PART, false, false, PAGE_OTHER}, /* one row for each resource */
	[WORLD_JOBS] = {NULL, API_KIND, false, true, PAGE_JOBS},    /* one row for each kind */
};

static const struct watch_def *def_of(enum world_type type)
{
	return &defs[world_is_of_jobs(type)    ? WORLD_JOBS
		     : world_is_of_parts(type) ? WORLD_PARTS
					       : type];
}

struct watched {
	struct watches *w;
	enum world_type type;
	struct watch *watch; /* NULL if this type is not watched */
	char *resource;	     /* for example "podgroups.scheduling.volcano.sh" */
	int err;	     /* the last error of the watch; 0 if there is none */
	bool stale; /* true if publish.c shows the jobs of this type as possibly outdated */
	char *text; /* the reason why the watch fails, or ""; watches.lock protects it */
};

/* The arguments of watches_refuse. RESOURCE and ANSWER are NULL if there is no refusal. */
struct refusal {
	const char *verb, *cost;
	char *resource, *answer;
};

enum phase { PHASE_LISTING, PHASE_LISTED, PHASE_READY, PHASE_FAILED };

struct watches {
	struct watches_config config;
	struct watched all[WORLD_N_TYPES];
	enum phase phase;
	const char *kueue;	 /* the version of Kueue's API; NULL if Kueue was not found */
	struct loop_timer ready; /* runs in PHASE_LISTED */
	struct lock lock;	 /* protects STALE_SINCE to REFUSALS, and TEXT of ALL */
	int64_t stale_since;
	char *stale_text; /* why the jobs are not confirmed; NULL if they are confirmed */
	struct refusal refusals[N_REFUSED];
	/* Any thread may read the members below. */
	atomic_size_t n_objects;
	struct tally ends;
};

/* Return what users lack without a watch of TYPE. NULL if the watch is required. */
static const char *cost_of(const struct watches *w, enum world_type type)
{
	const struct spec_part *part =
		world_is_of_parts(type) ? world_part(w->config.world, type) : NULL;

	if (type == WORLD_OWN_QUEUE)
		return "there is no queues/ directory; the file \"why\" can't report the capacity "
		       "of a queue";
	if (world_is_of_parts(type))
		return part ? part->cost : NULL;
	return world_is_of_jobs(type) ? NULL : spec_right_cost(defs[type].plural);
}

static void set_status(const struct watched *x, enum world_watch_status status, const char *text)
{
	struct watches *w = x->w;
	const char *cost = cost_of(w, x->type);

	world_set_watch_status(w->config.world, x->type, status);
	if (!cost && world_is_of_jobs(x->type))
		cost = "jobs of this kind are not shown";
	if (cost)
		watches_refuse(w, REFUSED_TYPES + x->type, x->watch ? watch_verb(x->watch) : "",
			       x->resource, cost, status == WORLD_FORBIDDEN ? text : NULL);
}

static void start(struct watches *w, enum world_type type);
static const char *api_version(const struct watches *w, enum world_type type);

/* --- whether the jobs are confirmed --- */

/* Return the first watch of jobs if all of them fail; NULL if at least one works. */
static const struct watched *failing_jobs(const struct watches *w)
{
	const struct watched *ret = NULL;

	for (enum world_type i = WORLD_JOBS; i < WORLD_N_TYPES; i++) {
		const struct watched *x = &w->all[i];

		if (!world_kind(w->config.world, i))
			continue;
		if (!x->err)
			return NULL;
		ret = ret ? ret : x;
	}
	return ret;
}

static bool has_listed_jobs(const struct watches *w)
{
	for (enum world_type i = WORLD_JOBS; i < WORLD_N_TYPES; i++)
		if (world_has_listed(w->config.world, i))
			return true;
	return false;
}

static void check_confirmed_kinds(struct watches *w)
{
	for (enum world_type i = WORLD_JOBS; i < WORLD_N_TYPES; i++) {
		struct watched *x = &w->all[i];
		bool failing = world_kind(w->config.world, i) && x->err;

		if (failing == x->stale)
			continue;
		x->stale = failing;
		/* If all jobs are unconfirmed, check_confirmed logs one message for all kinds. */
		if (failing && !w->stale_since)
			diag(DIAG_WARNING, "%s: kxfs can't confirm that the list is current: %s",
			     x->resource, x->text);
		else if (!failing)
			diag(DIAG_INFO, "%s: confirmed", x->resource);
		publish_set_stale(w->config.publish, i, failing ? loop_time_ns() : 0);
	}
}

static void check_confirmed(struct watches *w)
{
	const struct watched *jobs = failing_jobs(w), *pods = &w->all[WORLD_PODS];
	const struct watched *failing = jobs ? jobs : pods->err ? pods : NULL;
	bool changed;
	int64_t since;

	{
		lock_scope(&w->lock);
		changed = (failing != NULL) != (w->stale_since != 0);
		if (changed)
			w->stale_since = failing ? loop_time_ns() : 0;
		since = w->stale_since;
		free(take_ptr(w->stale_text));
		if (failing)
			w->stale_text = text_copy(failing->text);
	}
	check_confirmed_kinds(w);
	if (!changed)
		return;
	if (failing)
		diag(DIAG_INFO, "kxfs can no longer confirm that what it shows is current: %s",
		     failing->text);
	else
		diag(DIAG_INFO, "connected");
	publish_set_stale(w->config.publish, WORLD_N_TYPES, since);
}

static void on_ready(void *data)
{
	struct watches *w = data;

	loop_timer_stop(&w->ready);
	w->phase = PHASE_READY;
	return w->config.events.started(w->config.events.data, 0, NULL);
}

static enum world_watch_status status_of(const struct watched *x)
{
	return world_watch_status(x->w->config.world, x->type);
}

/* True if X has a watch that has not reported anything yet. */
static bool is_unknown(const struct watched *x)
{
	return x->watch && status_of(x) == WORLD_UNCONFIRMED;
}

static void check_ready(struct watches *w)
{
	static const enum world_type waited[] = {WORLD_QUEUES, WORLD_OWN_QUEUE, WORLD_WORKLOADS,
						 WORLD_LOCAL_QUEUES, WORLD_CLUSTER_QUEUES};
	bool ready = w->phase == PHASE_LISTED;

	for (size_t i = 0; i < array_size(waited); i++)
		ready = ready && !is_unknown(&w->all[waited[i]]);
	if (ready)
		return on_ready(w);
}

/* Start the optional watches that depend on the kinds, unless they are running. */
static void start_others(struct watches *w)
{
	bool scheduling = api_version(w, WORLD_GROUPS);

	if (scheduling && !w->all[WORLD_GROUPS].watch) {
		start(w, WORLD_GROUPS);
		start(w, WORLD_QUEUES);
	} else if (!scheduling && !w->all[WORLD_EVENTS].watch) {
		start(w, WORLD_EVENTS);
	}
	if (api_version(w, WORLD_WORKLOADS) && !w->all[WORLD_WORKLOADS].watch) {
		start(w, WORLD_WORKLOADS);
		start(w, WORLD_LOCAL_QUEUES);
		start(w, WORLD_CLUSTER_QUEUES);
	}
}

/*
 * True if the first lists of pods and of at least one kind have arrived, and all other lists of
 * kinds and parts have arrived or failed.
 */
static bool needed_known(const struct watches *w)
{
	for (enum world_type i = WORLD_JOBS; i < WORLD_N_TYPES; i++) {
		if (world_kind(w->config.world, i) && !world_has_listed(w->config.world, i) &&
		    !w->all[i].err)
			return false;
	}
	for (enum world_type i = WORLD_PARTS; i < WORLD_JOBS; i++)
		if (is_unknown(&w->all[i]))
			return false;
	return world_has_listed(w->config.world, WORLD_PODS) && has_listed_jobs(w);
}

static void needed_listed(struct watches *w)
{
	if (w->phase != PHASE_LISTING || !needed_known(w))
		return;
	w->phase = PHASE_LISTED;
	w->config.events.listed(w->config.events.data);
	check_confirmed_kinds(w);
	start_others(w);
	loop_timer_set(&w->ready, READY_MS);
	return check_ready(w);
}

/* --- optional watches --- */

static void stop_optional(struct watched *x)
{
	watch_free(take_ptr(x->watch));
	{
		lock_scope(&x->w->lock);
		free(take_ptr(x->text));
	}
	set_status(x, WORLD_ABSENT, NULL);
	world_forget_type(x->w->config.world, x->type);
}

static void optional_state(struct watched *x, bool first, bool lost)
{
	struct watches *w = x->w;

	if (lost)
		world_forget_type(w->config.world, x->type);
	/* The file `why` shows some reasons only while the objects of this type are known. */
	if (first || lost)
		world_waiting_changed(w->config.world);
	if (x->type == WORLD_QUEUES) {
		struct watched *all = &w->all[WORLD_QUEUES], *own = &w->all[WORLD_OWN_QUEUE];

		if (status_of(all) == WORLD_FORBIDDEN && !own->watch && *w->config.own_queue)
			start(w, WORLD_OWN_QUEUE);
		else if (status_of(all) == WORLD_CONFIRMED && own->watch)
			stop_optional(own);
	}
	if (x->type == WORLD_GROUPS && !w->all[WORLD_EVENTS].watch)
		start(w, WORLD_EVENTS);
	if (w->phase == PHASE_LISTING)
		return needed_listed(w);
	if (world_is_of_parts(x->type) && x->err)
		publish_listed(w->config.publish);
	return check_ready(w);
}

/* --- events of a watch --- */

static void on_begin(void *data)
{
	struct watched *x = data;

	world_list_begins(x->w->config.world, x->type);
}

static void on_object(void *data, const char *json, size_t len, bool gone, int wrong)
{
	struct watched *x = data;

	atomic_fetch_add(&x->w->n_objects, 1);
	if (wrong)
		world_pass_over(x->w->config.world, x->type, json, len, gone, wrong);
	else
		world_object(x->w->config.world, x->type, json, len, gone);
}

static void on_listed(void *data)
{
	struct watched *x = data;
	bool needed = !cost_of(x->w, x->type) || world_is_of_parts(x->type);
	bool late = needed && !world_has_listed(x->w->config.world, x->type) &&
		    x->w->phase != PHASE_LISTING;

	world_list_ends(x->w->config.world, x->type);
	if (!cost_of(x->w, x->type))
		needed_listed(x->w);
	if (late)
		publish_listed(x->w->config.publish);
}

static enum world_watch_status status_after(int err)
{
	switch (err) {
	case 0:
		return WORLD_CONFIRMED;
	case -EACCES:
		return WORLD_FORBIDDEN;
	case -EOPNOTSUPP:
		return WORLD_ABSENT;
	default:
		return WORLD_AWAY;
	}
}

static void on_state(void *data, int err, const char *text)
{
	struct watched *x = data;
	const enum world_watch_status status = status_after(err);
	struct watches *w = x->w;
	bool first = status == WORLD_CONFIRMED && status_of(x) != WORLD_CONFIRMED;
	bool lost = world_has_listed(w->config.world, x->type) &&
		    (status == WORLD_FORBIDDEN || status == WORLD_ABSENT);
	bool breaks, others;

	x->err = err;
	{
		lock_scope(&w->lock);
		text_set(&x->text, "%s", text);
	}
	set_status(x, status, text);
	if (cost_of(x->w, x->type))
		return optional_state(x, first, lost);
	/* the start fails, unless X breaks after its first list, or another kind's watch works */
	breaks = world_has_listed(w->config.world, x->type) && err == -EAGAIN;
	others = world_is_of_jobs(x->type) && !failing_jobs(w);
	if (w->phase == PHASE_LISTING && err && !breaks && !others) {
		w->phase = PHASE_FAILED;
		return w->config.events.started(w->config.events.data, err, x->text);
	}
	if (w->phase == PHASE_LISTING && others)
		needed_listed(w);
	if (w->phase == PHASE_LISTING || w->phase == PHASE_FAILED)
		return;
	check_confirmed(w);
	/* This list has failed. Jobs of other kinds may wait for parts in it, so publish them. */
	if (world_is_of_jobs(x->type) && err && !world_has_listed(w->config.world, x->type))
		publish_listed(w->config.publish);
	if (world_is_of_jobs(x->type) && err == -EOPNOTSUPP)
		return w->config.events.unserved(w->config.events.data);
}

/* --- start, changes and end --- */

/* Return the API version of TYPE. NULL if it is unknown, or if no shown kind needs TYPE. */
static const char *api_version(const struct watches *w, enum world_type type)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n = world_kinds(w->config.world, kinds);

	switch (def_of(type)->api) {
	case API_CORE:
		return "v1";
	case API_KIND:
		return world_kind(w->config.world, type)->api_version;
	case API_PART:
		return world_part(w->config.world, type)->api_version;
	case API_SCHEDULING:
		for (size_t i = 0; i < n; i++)
			if (kinds[i]->scheduling_api)
				return kinds[i]->scheduling_api;
		return NULL;
	default:
		for (size_t i = 0; i < n; i++)
			if (kinds[i]->in_kueue)
				return w->kueue;
		return NULL;
	}
}

static char *selector_of(const struct watches *w, enum world_type type)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n = type == WORLD_PODS ? world_kinds(w->config.world, kinds) : 0;
	const char *labels = world_is_of_jobs(type) ? w->config.selector
			     : n		    ? kinds[n - 1]->pod_selector
						    : "";
	bool unlabelled = false;

	/* if no selector matches the pods of all kinds, select all pods */
	for (size_t i = 0; i < n; i++)
		if (!streq(kinds[i]->pod_selector, labels) && !streq(kinds[i]->pods_also, labels))
			labels = "";
	for (size_t i = 0; i < n; i++)
		unlabelled |= kinds[i]->unlabelled;
	if (!*w->config.user || !def_of(type)->of_user || unlabelled)
		return text_copy(labels);
	return text_print("%s%s" SPEC_LABEL_USER "=%s", labels, *labels ? "," : "", w->config.user);
}

/* Return the mount options that reduce the number of objects of TYPE, or NULL. */
static const char *fewer_of(const struct watches *w, enum world_type type)
{
	bool mine = *w->config.user;

	if (world_is_of_jobs(type))
		return mine ? "-o selector=" : "-o mine or -o selector=";
	return def_of(type)->of_user && !mine ? "-o mine" : NULL;
}

static void start(struct watches *w, enum world_type type)
{
	const struct watch_def *def = def_of(type);
	struct watched *x = &w->all[type];
	const char *version = api_version(w, type);
	const char *plural = def->plural	       ? def->plural
			     : world_is_of_parts(type) ? world_part(w->config.world, type)->plural
						       : world_kind(w->config.world, type)->plural;
	const char *namespace = w->config.namespace;
	cleanup_free char *path = NULL, *field = NULL, *labels = selector_of(w, type);
	struct watch_config config = {
		.loop = w->config.loop,
		.http = w->config.http,
		.selector = labels,
		.namespace = def->cluster ? "" : namespace,
		.page = def->page,
		.metadata = def->api == API_PART,
		.ignored =
			world_is_of_jobs(type) ? world_kind(w->config.world, type)->ignored : NULL,
		.optional = cost_of(w, type) || world_is_of_jobs(type),
		.fewer = fewer_of(w, type),
		.ends = &w->ends,
		.begin = on_begin,
		.object = on_object,
		.listed = on_listed,
		.state = on_state,
		.data = x,
	};

	path = text_print("%s/%s%s%s/%s", def->api == API_CORE ? "/api" : "/apis", version,
			  def->cluster ? "" : "/namespaces/", def->cluster ? "" : namespace,
			  plural);
	if (!x->resource)
		x->resource = spec_asked_resource(plural, version);
	if (type == WORLD_OWN_QUEUE)
		field = text_print("metadata.name=%s", w->config.own_queue);
	config.path = path;
	config.field = field;
	config.resource = x->resource;
	set_status(x, WORLD_UNCONFIRMED, NULL);
	x->watch = watch_new(&config);
}

/* True if the watch of a shown kind returns all objects of the resource PART. */
static bool is_fed(const struct watches *w, const struct spec_part *part)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n = *w->config.selector || *w->config.user ? 0 : world_kinds(w->config.world, kinds);

	for (size_t i = 0; i < n; i++)
		if (spec_part_is(part, kinds[i]))
			return true;
	return false;
}

/* Return the type of PART, or the first unused type of parts if PART has no type yet. */
static enum world_type type_of_part(const struct watches *w, const struct spec_part *part)
{
	enum world_type i = WORLD_PARTS;
	const struct spec_part *at;

	while ((at = world_part(w->config.world, i)) &&
	       (!streq(at->plural, part->plural) || !streq(at->api_version, part->api_version)))
		i++;
	return i;
}

/* Watch the parts of the shown kinds, and no other parts. */
static void start_parts(struct watches *w)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n = world_kinds(w->config.world, kinds);
	bool wanted[SPEC_MAX_PARTS] = {false};

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < kinds[i]->n_parts; k++) {
			const struct spec_part *part = &kinds[i]->parts[k];
			enum world_type type = type_of_part(w, part);

			if (is_fed(w, part))
				continue;
			world_set_part(w->config.world, type, part);
			wanted[type - WORLD_PARTS] = true;
		}
	}
	for (enum world_type i = WORLD_PARTS; i < WORLD_JOBS; i++) {
		struct watched *x = &w->all[i];

		if (wanted[i - WORLD_PARTS] && !x->watch)
			start(w, i);
		else if (!wanted[i - WORLD_PARTS] && x->watch)
			stop_optional(x);
	}
}

void watches_start(struct watches *w)
{
	for (enum world_type i = WORLD_JOBS; i < WORLD_N_TYPES; i++)
		if (world_kind(w->config.world, i))
			start(w, i);
	start(w, WORLD_PODS);
	start_parts(w);
}

void watches_set_kueue(struct watches *w, const char *version)
{
	w->kueue = version;
	if (w->phase != PHASE_LISTING)
		start_others(w);
}

void watches_switch(struct watches *w)
{
	for (enum world_type i = WORLD_JOBS; i < WORLD_N_TYPES; i++)
		watch_free(take_ptr(w->all[i].watch));
	watch_free(take_ptr(w->all[WORLD_PODS].watch));
	world_await_list(w->config.world, WORLD_PODS);
	watches_start(w);
	if (w->phase != PHASE_LISTING)
		start_others(w);
	if (!api_version(w, WORLD_GROUPS) && w->all[WORLD_GROUPS].watch) {
		static const enum world_type types[] = {WORLD_GROUPS, WORLD_QUEUES,
							WORLD_OWN_QUEUE};

		for (size_t i = 0; i < array_size(types); i++)
			stop_optional(&w->all[types[i]]);
	}
}

void watches_drop(struct watches *w, enum world_type type)
{
	struct watched *x = &w->all[type];

	stop_optional(x);
	x->err = 0;
	if (x->stale)
		publish_set_stale(w->config.publish, type, 0);
	x->stale = false;
}

void watches_retry_now(void *watches)
{
	struct watches *w = watches;

	for (size_t i = 0; i < WORLD_N_TYPES; i++)
		if (w->all[i].watch)
			watch_retry_now(w->all[i].watch);
}

void watches_stop(struct watches *w)
{
	loop_timer_stop(&w->ready);
	for (size_t i = 0; i < WORLD_N_TYPES; i++)
		watch_free(take_ptr(w->all[i].watch));
}

struct watches *watches_new(const struct watches_config *config)
{
	struct watches *w = new0(struct watches);

	w->config = *config;
	w->lock = (struct lock)LOCK_INIT;
	loop_timer_init(&w->ready, config->loop, on_ready, w);
	for (size_t i = 0; i < WORLD_N_TYPES; i++) {
		w->all[i].w = w;
		w->all[i].type = (enum world_type)i;
	}
	return w;
}

void watches_free(struct watches *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < WORLD_N_TYPES; i++) {
		free(w->all[i].text);
		free(w->all[i].resource);
	}
	for (size_t i = 0; i < N_REFUSED; i++) {
		free(w->refusals[i].resource);
		free(w->refusals[i].answer);
	}
	free(w->stale_text);
	free(w);
}

/* --- functions for other modules --- */

const struct world_job *watches_reply(struct watches *w, const struct spec_kind *kind,
				      const char *json, size_t len)
{
	enum world_type type = world_type_of(w->config.world, kind);
	const struct world_job *job;
	struct watch *watch;

	if (type == WORLD_N_TYPES)
		return NULL;
	watch = w->all[type].watch;
	job = world_reply(w->config.world, type, json, len, watch_version(watch));
	if (watch && job)
		watch_replied(watch, job->view->resource_version);
	else if (watch)
		watch_doubt(watch);
	return job;
}

char *watches_offline(struct watches *w)
{
	const struct watched *jobs = failing_jobs(w), *pods = &w->all[WORLD_PODS];
	/* the watch of pods may be the first to find out that the server can't be reached */
	const struct watched *x = jobs ? jobs : pods->err == -EHOSTUNREACH ? pods : NULL;

	if (!x)
		return NULL;
	watches_retry_now(w);
	if (x->err != -EHOSTUNREACH && x->err != -EIO && x->err != -ETIMEDOUT)
		return NULL;
	return text_copy(x->text);
}

static char *trouble_of(struct watches *w, enum world_type type)
{
	const struct watched *x = &w->all[type];
	lock_scope(&w->lock);

	return status_of(x) == WORLD_CONFIRMED
		       ? NULL
		       : text_copy(x->text && *x->text ? x->text
						       : "the server has not sent the list yet");
}

char *watches_trouble(struct watches *w, enum world_type type)
{
	const struct spec_kind *kind = world_kind(w->config.world, type);
	char *ret = trouble_of(w, type);

	for (size_t i = 0; kind && i < kind->n_parts && !ret; i++) {
		enum world_type feed = world_feed(w->config.world, &kind->parts[i]);
		cleanup_free char *text =
			feed < WORLD_N_TYPES ? trouble_of(w, feed) : text_copy("");

		if (text && *text)
			ret = text_print("%s: %s", kind->parts[i].cost, text);
	}
	return ret;
}

size_t watches_n_objects(const struct watches *w)
{
	return atomic_load(&w->n_objects);
}

void watches_refuse(struct watches *w, unsigned place, const char *verb, const char *resource,
		    const char *cost, const char *answer)
{
	struct refusal *r = &w->refusals[place];
	lock_scope(&w->lock);

	free(r->resource);
	free(r->answer);
	*r = (struct refusal){.verb = verb, .cost = cost};
	if (answer) {
		r->resource = text_copy(resource);
		r->answer = text_copy(answer);
	}
}

void watches_print_refused(struct watches *w, FILE *out)
{
	size_t n = 0;

	for (size_t i = 0; i < N_REFUSED; i++) {
		struct refusal r = {0};

		{
			lock_scope(&w->lock);
			/* if the server also refuses WORLD_OWN_QUEUE, omit WORLD_QUEUES */
			if (w->refusals[i].answer &&
			    !(i == REFUSED_TYPES + WORLD_QUEUES &&
			      w->refusals[REFUSED_TYPES + WORLD_OWN_QUEUE].answer)) {
				r = w->refusals[i];
				r.resource = text_copy(r.resource);
				r.answer = text_copy(r.answer);
			}
		}
		if (!r.answer)
			continue;
		fprintf(out, "%s- verb: %s\n", n++ ? "" : "refused:\n", r.verb);
		fprintf(out, "  resource: %s\n", r.resource);
		print_text(out, "  cost", r.cost);
		print_text(out, "  answer", r.answer);
		free(r.resource);
		free(r.answer);
	}
	if (n == 0)
		fputs("refused: []\n", out);
}

int64_t watches_stale_since(struct watches *w)
{
	lock_scope(&w->lock);
	return w->stale_since;
}

void watches_info(struct watches *w, FILE *out)
{
	cleanup_free char *why = NULL, *labels = selector_of(w, WORLD_JOBS);
	char since[32];
	int64_t stale;

	if (*labels)
		print_text(out, "selector", labels);
	{
		lock_scope(&w->lock);
		stale = w->stale_since;
		why = text_copy(w->stale_text ? w->stale_text : "");
	}
	fprintf(out, "connected: %s\n", stale ? "false" : "true");
	if (stale) {
		spec_time_text(stale, since);
		fprintf(out, "stale_since: %s\n", since);
		print_text(out, "stale_reason", why);
	}
}

void watches_metrics(struct watches *w, FILE *out)
{
	int64_t since = watches_stale_since(w);

	print_metric_head(out, "view_unconfirmed_seconds", "gauge",
			  "For how long kxfs has been unable to confirm that what it shows is "
			  "current; 0 if it can");
	fprintf(out, "kxfs_view_unconfirmed_seconds %.3f\n",
		since ? (double)max_of(loop_time_ns() - since, (int64_t)0) / 1e9 : 0.0);
	print_metric_head(out, "watch_restarts_total", "counter", "Watches restarted, by reason");
	tally_print(&w->ends, out, "watch_restarts_total",
		    (const char *const[]){"resource", "reason", NULL});
}
