/* SPDX-License-Identifier: MIT */
/*
 * An API server with the kinds of jobs that the seed chooses, their pods and related objects. Each
 * change has a version. Each watch has its own delay, and sends the changes of its collection. Now
 * and then the server expires old versions. A controller (volcano.c, controllers.c) creates a job's
 * pods, kubelets run them (kubelet.c), and the job ends. Another user may remove the job, or create
 * it again from a saved copy.
 */
#include <stdio.h>
#include <time.h>
#include <utlist.h>

#include "spec/base/mem.h"
#include "tests/sim/cluster.h"
#include "tests/sim/sim.h"

#define MOST_OBJECTS 512
#define BOOKMARK_S   60
#define MOVES_S	     10
#define SAVED_S	     180 /* the time until etcd is backed up */
#define LOST_S	     80	 /* the time between the backup and the restore */
#define DOWN_S	     20
#define MEANWHILE    100000
#define DEEP	     1000
#define CHAINS	     500 /* per mille of histories */
#define COMMANDS     "/apis/bus.volcano.sh/v1alpha1/namespaces/team/commands"

#define KUEUE_API "kueue.x-k8s.io/v1beta2"
#define KUEUE	  "/apis/" KUEUE_API "/"

/* All resources. server_n_kinds appends a resource of JOBS for each kind. */
static struct resource resources[N_COLLECTIONS - 1 + SERVER_KINDS] = {
	{PODS, "/api/v1/namespaces/team/pods", "v1", "Pod", NULL, NO_TROUBLE},
	{GROUPS, "/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups",
	 "scheduling.volcano.sh/v1beta1", "PodGroup", NULL, NO_TROUBLE},
	{EVENTS, "/api/v1/namespaces/team/events", "v1", "Event", NULL, NO_TROUBLE},
	{QUEUES, "/apis/scheduling.volcano.sh/v1beta1/queues", "scheduling.volcano.sh/v1beta1",
	 "Queue", NULL, NO_TROUBLE},
	{WORKLOADS, KUEUE "namespaces/team/workloads", KUEUE_API, "Workload", NULL, UNSERVED},
	{LOCAL_QUEUES, KUEUE "namespaces/team/localqueues", KUEUE_API, "LocalQueue", NULL,
	 UNSERVED},
	{CLUSTER_QUEUES, KUEUE "clusterqueues", KUEUE_API, "ClusterQueue", NULL, UNSERVED},
	{LINKS, "/apis/example.com/v1/namespaces/team/links", "example.com/v1", "Link", NULL,
	 NO_TROUBLE},
};
static size_t n_resources = N_COLLECTIONS - 1;

struct change {
	const struct resource *of;
	unsigned version;
	char *line;
	size_t len;
};

static struct object objects[MOST_OBJECTS];
static size_t n_objects;
static struct change *changes;
static size_t n_changes;
static unsigned version = 100, forgotten;
static bool links_hidden;
static struct server_watch *watches;

/* --- replies --- */

char *server_status(int code, const char *reason, const char *message)
{
	return text_print(
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"%s\","
		"\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}",
		code < 300 ? "Success" : "Failure", message, reason, code);
}

void server_reply_with(struct server_reply *ret, int status, char *body)
{
	*ret = (struct server_reply){.status = status, .body = body, .len = strlen(body)};
}

void server_refuse(struct server_reply *ret, int status, const char *reason)
{
	server_reply_with(ret, status, server_status(status, reason, reason));
}

const char *cluster_time(char ret[32])
{
	time_t now = (time_t)(sim_clock_ns() / 1000000000);
	struct tm tm;

	strftime(ret, 32, "%FT%TZ", gmtime_r(&now, &tm));
	return ret;
}

struct json_object *json_at(struct json_object *o, const char *key)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v)) {
		v = json_object_new_object();
		json_object_object_add(o, key, v);
	}
	return v;
}

void json_put(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

const char *json_print(const struct json_object *o)
{
	return json_object_to_json_string_ext((struct json_object *)(uintptr_t)o,
					      JSON_C_TO_STRING_PLAIN);
}

struct json_object *json_parse(const char *text)
{
	struct json_tokener *t = json_tokener_new_ex(DEEP);
	struct json_object *ret = json_tokener_parse_ex(t, text, -1);

	json_tokener_free(t);
	return ret;
}

const char *json_get(struct json_object *o, const char *key)
{
	return json_object_get_string(json_at(o, key));
}

/* --- watches --- */

static void send_next(void *data);

static void send_soon(struct server_watch *w)
{
	if (w->gone || w->due)
		return;
	w->due = true;
	sim_after(1 + sim_delay(SIM_SERVER, w->lag), SIM_WORLD, send_next, w);
}

static void send_next(void *data)
{
	struct server_watch *w = data;

	w->due = false;
	while (!w->gone && w->at < n_changes) {
		const struct change *c = &changes[w->at++];

		if (c->of != w->of || c->version <= w->version)
			continue;
		w->fn(w->data, c->line, c->len);
		send_soon(w);
		return;
	}
}

static void bookmark(void *data)
{
	struct server_watch *w = data;
	cleanup_free char *line = NULL;

	if (w->gone)
		return;
	/*
	 * A watch that starts at a future version sends nothing before that version is reached
	 * (docs/facts.md).
	 */
	if (w->at == n_changes && w->version <= version) {
		line = text_print(
			"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\","
			"\"metadata\":{\"resourceVersion\":\"%u\"}}}\n",
			w->of->kind, w->of->api, version);
		w->fn(w->data, line, strlen(line));
	}
	sim_after(BOOKMARK_S * SIM_S, SIM_WORLD, bookmark, w);
}

static void watch_over(void *data)
{
	struct server_watch *w = data;

	if (!w->gone)
		w->fn(w->data, NULL, 0);
}

const char *path_query(const char *path, const char *key)
{
	const char *found = strstr(path, key);

	return found ? found + strlen(key) : "";
}

struct server_watch *cluster_watch(server_event_fn fn, void *data)
{
	struct server_watch *w = new0(struct server_watch);

	w->fn = fn;
	w->data = data;
	LL_PREPEND(watches, w);
	return w;
}

/*
 * True if the server refuses a request for OF (NULL: an unknown resource) now; *RET is then the
 * reply. METHOD is an HTTP method.
 */
static bool is_troubled(const struct resource *of, const char *method, struct server_reply *ret)
{
	static const char forbidden[] =
		"it is forbidden: User \\\"ann\\\" cannot do that in the namespace \\\"team\\\"";
	static const char ends[] =
		"create not allowed while custom resource definition is terminating";

	if (!of || of->trouble == UNSERVED)
		server_refuse(ret, 404, "NotFound");
	else if (of->trouble == FORBIDDEN || (of->in == WORKLOADS && streq(method, "PATCH")))
		server_reply_with(ret, 403, server_status(403, "Forbidden", forbidden));
	else if (of->trouble == ENDS && streq(method, "POST"))
		server_reply_with(ret, 405, server_status(405, "MethodNotAllowed", ends));
	else
		return false;
	return true;
}

/* Return the resource to which PATH belongs, or NULL. */
static const struct resource *resource_at(const char *path)
{
	for (size_t i = 0; i < n_resources; i++) {
		size_t n = strlen(resources[i].path);

		if (strncmp(path, resources[i].path, n) == 0 &&
		    (path[n] == '?' || path[n] == '/' || !path[n]))
			return &resources[i];
	}
	return NULL;
}

struct server_watch *server_watch(const char *path, server_event_fn fn, void *data,
				  struct server_reply *ret)
{
	static const char too_large[] =
		"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":"
		"\"Failure\",\"message\":\"Too large resource version\",\"reason\":\"Timeout\","
		"\"code\":504}}\n";
	static const char expired[] =
		"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":"
		"\"v1\",\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410}}\n";
	struct server_watch *w;
	const struct resource *of = resource_at(path);

	if (strstr(path, "/log?"))
		return kubelet_log(path, fn, data, ret);
	if (is_troubled(of, "GET", ret))
		return NULL;
	w = cluster_watch(fn, data);
	w->of = of;
	links_hidden &= of->in != LINKS;
	w->version = (unsigned)strtoul(path_query(path, "resourceVersion="), NULL, 10);
	w->lag = sim_delay(SIM_SERVER, 5 * SIM_S);
	if (sim_chance(SIM_SERVER, sim_faults.forgotten))
		forgotten = version;
	if (w->version < forgotten) {
		fn(data, expired, strlen(expired));
		sim_after(0, SIM_WORLD, watch_over, w);
		return w;
	}
	if (w->version > version && sim_chance(SIM_ETCD, 500)) {
		fn(data, too_large, strlen(too_large));
		sim_after(0, SIM_WORLD, watch_over, w);
		return w;
	}
	sim_after(strtoul(path_query(path, "timeoutSeconds="), NULL, 10) * SIM_S, SIM_WORLD,
		  watch_over, w);
	sim_after(BOOKMARK_S * SIM_S, SIM_WORLD, bookmark, w);
	send_soon(w);
	return w;
}

void server_unwatch(struct server_watch *w)
{
	w->gone = true;
	LL_DELETE(watches, w);
}

void server_unwatch_all(void)
{
	while (watches)
		server_unwatch(watches);
}

/* --- objects --- */

void object_changed(struct object *o, const char *type)
{
	cleanup_free char *rv = text_print("%u", ++version);
	struct server_watch *w;
	struct change c = {o->of, version, NULL, 0};

	o->changed = sim_now();
	json_put(json_at(o->json, "metadata"), "resourceVersion", rv);
	c.line = text_print("{\"type\":\"%s\",\"object\":%s}\n", type, json_print(o->json));
	c.len = strlen(c.line);
	changes = mem_grow(changes, n_changes + 1, sizeof(c));
	changes[n_changes++] = c;
	LL_FOREACH(watches, w)
		if (w->of == o->of)
			send_soon(w);
}

struct object *object_find(enum collection in, const char *name)
{
	for (size_t i = 0; i < n_objects; i++)
		if (!objects[i].gone && objects[i].in == in && streq(objects[i].name, name))
			return &objects[i];
	return NULL;
}

const struct resource *resource_of(enum collection in)
{
	for (size_t i = 0; i < n_resources; i++)
		if (resources[i].in == in)
			return &resources[i];
	return NULL;
}

struct object *object_add(const struct resource *of, struct json_object *json)
{
	struct object *o = &objects[n_objects++];
	struct json_object *meta = json_at(json, "metadata");
	cleanup_free char *uid = text_print("%08x-0000-4000-8000-%012zx",
					    (unsigned)sim_random(SIM_SERVER), n_objects);
	char when[32];

	if (n_objects == MOST_OBJECTS)
		sim_fail("too many objects");
	*o = (struct object){.in = of->in,
			     .of = of,
			     .name = text_copy(json_get(meta, "name")),
			     .json = json,
			     .made = sim_now(),
			     .phase = ""};
	json_put(json, "kind", of->kind);
	json_put(json, "apiVersion", of->api);
	json_put(meta, "namespace", "team");
	json_put(meta, "uid", uid);
	json_put(meta, "creationTimestamp", cluster_time(when));
	if (of->in == JOBS)
		kueue_admit(json);
	object_changed(o, "ADDED");
	return o;
}

void object_drop(struct object *o)
{
	o->gone = true;
	sim_log("server", "%s %s is gone", o->of->kind, o->name);
	object_changed(o, "DELETED");
	if (o->in == JOBS) {
		kueue_gone(o);
		hostile_gone(o);
	}
}

struct object *object_at(size_t k)
{
	return k < n_objects ? &objects[k] : NULL;
}

const char *object_uid(const struct object *o)
{
	return json_get(json_at(o->json, "metadata"), "uid");
}

bool object_is(const struct object *job, const char *phase)
{
	return !job->gone && streq(job->phase, phase);
}

/* True if O is a job that exists and that its controller handles. */
static bool is_job(const struct object *o)
{
	return o->in == JOBS && !o->gone && !o->hostile;
}

size_t server_n_jobs(void)
{
	size_t n = 0;

	if (sim_machine)
		return machine_n_jobs();
	for (size_t i = 0; i < n_objects; i++)
		n += is_job(&objects[i]);
	return n;
}

const char *server_job(size_t i)
{
	if (sim_machine)
		return machine_job(i);
	for (size_t k = 0; k < n_objects; k++)
		if (is_job(&objects[k]) && i-- == 0)
			return objects[k].name;
	return NULL;
}

/* --- queries of other modules --- */

bool server_has_job(const char *uid)
{
	for (size_t i = 0; i < n_objects; i++)
		if (objects[i].in == JOBS && !objects[i].gone && !objects[i].deleted &&
		    streq(object_uid(&objects[i]), uid))
			return true;
	return false;
}

void server_fate(const char *name, struct server_fate *ret)
{
	if (sim_machine)
		return machine_fate(name, ret);
	*ret = (struct server_fate){.phase = "", .gone = true};
	for (size_t i = 0; i < n_objects; i++) {
		const struct object *o = &objects[i];

		if (o->in == PODS && streq(o->job->name, name))
			ret->moves |= sim_now() - o->changed < MOVES_S * SIM_S;
		if (o->in != JOBS || o->undone || !streq(o->name, name))
			continue;
		ret->moves |= sim_now() - o->changed < MOVES_S * SIM_S || job_has_grace(o);
		/* A job that a restore of etcd has set back counts as another job. */
		ret->n += 1 + o->revived;
		ret->phase = o->phase;
		ret->gone = o->gone || o->deleted;
		ret->suspended |= o->suspended;
	}
}

bool server_is_suspended(const char *name)
{
	const struct object *job = object_find(JOBS, name);
	bool certain;

	if (sim_machine)
		return ctl_suspended(name, &certain) || !certain;
	return job && !job->queued && (object_is(job, "Aborting") || object_is(job, "Aborted"));
}

static struct server_run run_of(const struct object *pod, size_t run)
{
	const struct run *r = &pod->runs[run];

	return (struct server_run){
		.n = run_printed(r),
		.kept = r->kept,
		.there = !pod->gone && run + 1 + !pod->between >= pod->n_runs,
		.ended = r->ended > 0,
		.job = object_uid(pod->job),
		.job_name = pod->job->name,
		.revived = pod->job->revived,
		.foreign = pod->foreign || damage_hit(pod->job->name, true),
		.replica = "main-0",
		.pod_uid = object_uid(pod),
		.container = pod->container,
		.restart = (unsigned)run,
		.injected = pod->injected,
	};
}

bool server_run(const char *uid, struct server_run *ret)
{
	cleanup_free char *of = text_copy(uid);
	size_t run = strlen(uid) == SERVER_UID ? strtoul(uid + 9, NULL, 16) : MOST_RUNS;

	if (sim_machine)
		return machine_run(uid, ret);
	for (size_t i = 0; i < n_objects && run < MOST_RUNS; i++) {
		const struct object *o = &objects[i];

		memcpy(of + 9, "0000", 4);
		if (o->in != PODS || !streq(object_uid(o), of) || run >= o->n_runs)
			continue;
		*ret = run_of(o, run);
		return true;
	}
	return false;
}

bool server_job_run(const char *job, unsigned before, char ret_uid[SERVER_UID + 1],
		    struct server_run *ret)
{
	const struct object *o = object_find(JOBS, job), *pod = NULL;

	for (size_t i = 0; o && i < n_objects; i++)
		if (objects[i].in == PODS && objects[i].job == o)
			pod = &objects[i];

	/* machine.c checks the output of local jobs. */
	if (sim_machine || !pod || pod->gone || pod->n_runs <= before)
		return false;
	run_uid(pod, pod->n_runs - 1 - before, ret_uid);
	return server_run(ret_uid, ret) && ret->there;
}

bool server_nth_run(const char *job, size_t k, struct server_run *ret)
{
	for (size_t i = 0; i < n_objects; i++) {
		const struct object *o = &objects[i];

		if (o->in != PODS || !o->job || !streq(object_uid(o->job), job))
			continue;
		if (k < o->n_runs) {
			*ret = run_of(o, k);
			return true;
		}
		k -= o->n_runs;
	}
	return false;
}

bool server_pod_in(const char *text, struct server_pod *ret)
{
	bool found = false;

	*ret = (struct server_pod){0};
	for (size_t i = 0; i < n_objects; i++) {
		const struct object *o = &objects[i];
		cleanup_free char *first = text_print(" %s, container ", o->name);
		cleanup_free char *last = text_print(" of %s: ", o->name);

		if (o->in != PODS || !(strstr(text, first) || strstr(text, last)))
			continue;
		if (damage_hit(o->job->name, false))
			return false;
		found = true;
		ret->gone |=
			o->gone || (o->job->gone && kinds_removed(o->job->of->controller->source));
		ret->again |= o->n_runs > 1;
		for (size_t k = 0; k < o->n_runs; k++)
			ret->rotated |= o->runs[k].kept > 0;
	}
	return found;
}

/* --- the kinds --- */

static void add_kind(const struct controller *c)
{
	cleanup_free char *path = text_print("/apis/%s/namespaces/team/%s", c->api, c->plural);

	resources[n_resources++] =
		(struct resource){JOBS, take_ptr(path), c->api, c->kind, c, NO_TROUBLE};
	sim_log("server", "the server has %ss of %s", c->kind, c->api);
}

/* Return the first kind of this history. */
static const struct controller *first_kind(void)
{
	static const struct controller *const all[] = {&controller_volcano, &controller_volcano,
						       &controller_volcano, &controller_appwrapper,
						       &controller_jobset,  &controller_job};
	const struct controller *ret = all[sim_below(SIM_KIND, array_size(all))];

	/* A cluster serves only one of the two versions of AppWrappers. */
	if (ret == &controller_appwrapper && sim_chance(SIM_KINDS, 500))
		return &controller_mcad;
	return ret;
}

/*
 * Install Kueue in some histories. C is the only kind of jobs. The simulated Kueue does not manage
 * jobs of Volcano and MCAD.
 */
static void add_kueue(const struct controller *c)
{
	if (c == &controller_volcano || c == &controller_mcad || sim_faults.restored ||
	    !sim_chance(SIM_KUEUE, sim_faults.kueue))
		return;
	for (size_t i = 0; i < N_COLLECTIONS - 1; i++)
		if (streq(resources[i].api, KUEUE_API))
			resources[i].trouble = NO_TROUBLE;
	kueue_begin();
	sim_log("server", "the server has Kueue");
}

/* Add the kinds of this history, but no second kind with the name and plural of the first one. */
static void add_kinds(void)
{
	static const struct controller *const more[] = {&controller_volcano, &controller_appwrapper,
							&controller_jobset, &controller_job};
	const struct controller *first = first_kind();
	size_t begin;

	add_kind(first);
	if (!sim_chance(SIM_KINDS, sim_faults.several))
		return add_kueue(first);
	begin = sim_below(SIM_KINDS, array_size(more));
	for (size_t i = 0; i < array_size(more); i++) {
		const struct controller *c = more[(begin + i) % array_size(more)];

		if (!(streq(c->kind, first->kind) && streq(c->plural, first->plural)) &&
		    (n_resources == N_COLLECTIONS || sim_chance(SIM_KINDS, 500)))
			add_kind(c);
	}
}

bool server_has_chains(void)
{
	static int chains;

	if (!chains)
		chains = sim_chance(SIM_CHAINS, CHAINS) ? 1 : -1;
	return chains > 0;
}

size_t server_n_kinds(void)
{
	if (n_resources < N_COLLECTIONS)
		add_kinds();
	return n_resources - (N_COLLECTIONS - 1);
}

const char *server_kind(size_t k)
{
	return k < server_n_kinds() ? resources[N_COLLECTIONS - 1 + k].controller->source : NULL;
}

static void set_trouble(struct resource *of, enum trouble trouble)
{
	struct server_watch *w, *next;

	of->trouble = trouble;
	LL_FOREACH_SAFE(watches, w, next) {
		if (w->of != of)
			continue;
		watch_over(w);
		w->gone = true;
	}
}

void cluster_trouble(size_t k, enum trouble trouble)
{
	set_trouble(&resources[N_COLLECTIONS - 1 + k], trouble);
}

void cluster_forbid_links(bool forbidden)
{
	links_hidden |= forbidden;
	for (size_t i = 0; i < N_COLLECTIONS - 1; i++)
		if (resources[i].in == LINKS)
			set_trouble(&resources[i], forbidden ? FORBIDDEN : NO_TROUBLE);
}

bool server_hides_links(void)
{
	return links_hidden;
}

/* --- other users --- */

static void begins(void *data)
{
	struct object *job = data;

	if (!job->begun)
		job->of->controller->begins(job);
	job->begun = true;
}

void cluster_begins(struct object *job)
{
	kueue_begins(job);
	sim_after(sim_delay(SIM_SERVER, 3 * SIM_S), SIM_WORLD, begins, job);
}

/* Another user saves JOB, removes it, and creates it again with the same name and contents. */
static void copy_job(void *data)
{
	struct object *job = data, *pod, *copy;
	struct json_object *json;

	if (job->gone || job->deleted)
		return;
	while ((pod = cluster_pod(job)))
		pod_removed(pod);
	object_drop(job);
	json = json_parse(json_print(job->json));
	json_object_object_del(json, "status");
	copy = object_add(job->of, json);
	copy->foreign = true;
	users_copied(copy->name);
	sim_log("server", "another user has replaced job %s by a copy", copy->name);
	cluster_begins(copy);
}

uint64_t cluster_kept_us(void)
{
	return (KEPT_S + (sim_faults.away ? SERVER_AWAY_S : 0)) * SIM_S;
}

void server_ended(struct object *job)
{
	kueue_finished(job);
	if (sim_chance(SIM_SERVER, 300))
		sim_after(cluster_kept_us() + sim_delay(SIM_SERVER, 120 * SIM_S), SIM_WORLD,
			  job->of->controller->remove, job);
}

/* --- restoring etcd --- */

/* The backup of an object and of its controller's state. */
struct known {
	char *json;
	bool gone, deleted, counted;
	const char *phase;
	unsigned attempt, failures;
};

static struct {
	struct known v[MOST_OBJECTS];
	size_t n_objects, n_changes;
	unsigned version;
} backup;
static unsigned restores; /* the number of restores */
static bool down, never_down;

/* A scheduled call of a controller. */
struct plan {
	sim_fn fn;
	void *data;
	unsigned restores;
};

static void on_plan(void *data)
{
	struct plan *p = data;

	if (p->restores == restores)
		p->fn(p->data);
	free(p);
}

void cluster_after(uint64_t us, sim_fn fn, void *data)
{
	struct plan *p = new0(struct plan);

	*p = (struct plan){fn, data, restores};
	sim_after(us, SIM_WORLD, on_plan, p);
}

bool server_is_down(void)
{
	return down;
}

unsigned server_restores(void)
{
	return restores;
}

/* Remove O, because it was created after the backup. If O is a pod, its run ends. */
static void undo(struct object *o)
{
	o->undone = true;
	if (o->in == PODS)
		pod_end(o);
	if (o->in == JOBS && !o->gone) {
		users_undone(object_uid(o));
		sim_log("server", "job %s is removed by the restore", o->name);
	}
	o->gone = true;
}

static void turn_back(struct object *o, const struct known *k)
{
	cleanup_free char *status = text_copy(json_print(json_at(o->json, "status")));

	/* If the pod was removed after the backup, no node runs the pod, so remove it again. */
	if (o->in == PODS && o->gone) {
		if (!k->gone)
			object_changed(o, "DELETED");
		return;
	}
	json_object_put(o->json);
	o->json = json_parse(k->json);
	if (o->in == PODS) {
		o->counted = k->counted;
		/* The kubelet reports the current status of the pod again. */
		json_object_object_add(o->json, "status", json_parse(status));
		object_changed(o, "MODIFIED");
		return;
	}
	if (o->gone && !k->gone)
		sim_log("server", "job %s is back after the restore", o->name);
	o->revived |= o->gone != k->gone || !streq(o->phase, k->phase);
	o->gone = k->gone;
	o->deleted = k->deleted;
	o->phase = k->phase;
	o->attempt = k->attempt;
	o->failures = k->failures;
}

void cluster_restored(void *data)
{
	struct object *job = data;

	if (!job->gone)
		job->of->controller->restored(job);
}

static void restore(void *data)
{
	(void)data;
	if (!down)
		return;
	down = false;
	restores++;
	version = backup.version;
	forgotten = min_of(forgotten, version);
	n_changes = backup.n_changes;
	sim_log("server", "is up again, at version %u", version);
	for (size_t i = 0; i < n_objects; i++) {
		if (i < backup.n_objects)
			turn_back(&objects[i], &backup.v[i]);
		else
			undo(&objects[i]);
	}
	for (size_t i = 0; i < backup.n_objects; i++) {
		struct object *o = &objects[i];

		if (!is_job(o))
			continue;
		o->begun = true;
		cluster_after(sim_delay(SIM_ETCD, 5 * SIM_S), cluster_restored, o);
	}
}

void server_cut(void)
{
	struct server_watch *w, *next;

	LL_FOREACH_SAFE(watches, w, next) {
		watch_over(w);
		w->gone = true;
	}
}

static void go_down(void *data)
{
	(void)data;
	if (never_down)
		return;
	down = true;
	sim_log("server", "goes down");
	server_cut();
	sim_after(SIM_S + sim_delay(SIM_ETCD, DOWN_S * SIM_S), SIM_WORLD, restore, NULL);
}

/*
 * Back up etcd. Then advance the version far, as many writes of other users would, so that no
 * version that was used between the backup and the restore is used again after the restore.
 */
static void back_up(void *data)
{
	(void)data;
	for (size_t i = 0; i < n_objects; i++) {
		const struct object *o = &objects[i];

		backup.v[i] = (struct known){text_copy(json_print(o->json)),
					     o->gone,
					     o->deleted,
					     o->counted,
					     o->phase,
					     o->attempt,
					     o->failures};
	}
	backup.n_objects = n_objects;
	backup.n_changes = n_changes;
	backup.version = version;
	sim_log("server", "etcd is backed up at version %u", version);
	version += MEANWHILE;
	sim_after(sim_random(SIM_ETCD) % (LOST_S * SIM_S), SIM_WORLD, go_down, NULL);
}

void server_begin(void)
{
	if (sim_chance(SIM_ETCD, sim_faults.restored))
		sim_after(sim_random(SIM_ETCD) % (SAVED_S * SIM_S), SIM_WORLD, back_up, NULL);
}

void server_mend(void)
{
	never_down = true;
	restore(NULL);
}

/* --- requests --- */

/* A list in pages is consistent: all pages show the same moment. */
struct pages {
	unsigned version;
	char **v;
	size_t n;
};

static struct pages *all_pages;
static size_t n_pages;

static void list(const struct resource *of, const char *path, struct server_reply *ret)
{
	const char *field = path_query(path, "fieldSelector=metadata.name%3D");
	const char *token = path_query(path, "continue=");
	size_t n = strcspn(field, "&"), number, at = 0, most;
	cleanup_free char *next = NULL;
	struct pages *p;
	char *end;
	FILE *f;

	number = strtoul(token, &end, 10);
	if (*token)
		at = strtoul(end + 1, NULL, 10);
	/* A token expires with its version. */
	if (*token &&
	    (number >= n_pages || all_pages[number].version < forgotten ||
	     all_pages[number].version > version || sim_chance(SIM_SERVER, sim_faults.forgotten))) {
		server_refuse(ret, 410, "Expired");
		return;
	}
	if (!*token) {
		number = n_pages++;
		all_pages = mem_grow(all_pages, n_pages, sizeof(*all_pages));
		all_pages[number] = (struct pages){.version = version};
	}
	p = &all_pages[number];
	for (size_t i = 0; i < n_objects && !*token; i++) {
		const struct object *o = &objects[i];

		if (o->gone || o->of != of ||
		    (n && (strlen(o->name) != n || memcmp(o->name, field, n) != 0)))
			continue;
		p->v = mem_grow(p->v, p->n + 1, sizeof(char *));
		p->v[p->n++] = text_copy(json_print(o->json));
	}
	/* A page may be shorter than requested though more items follow (docs/facts.md). */
	most = sim_chance(SIM_SERVER, sim_faults.paged) ? 1 + sim_below(SIM_SERVER, 5) : SIZE_MAX;
	most = min_of(most, p->n - at);
	next = at + most < p->n ? text_print("%zu.%zu", number, at + most) : text_copy("");
	f = text_stream(&ret->body, &ret->len);
	fprintf(f,
		"{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%u\","
		"\"continue\":\"%s\"},\"items\":[",
		of->kind, of->api, p->version, next);
	for (size_t i = 0; i < most; i++)
		fprintf(f, "%s%s", i ? "," : "", p->v[at + i]);
	fputs("]}", f);
	text_stream_close(f);
	ret->status = 200;
}

/* Let a webhook modify JSON, which is about to be created. */
static void admit(struct json_object *json)
{
	struct json_object *meta = json_at(json, "metadata");

	if (!sim_faults.webhooks || !sim_chance(SIM_WEBHOOKS, sim_faults.webhooks))
		return;
	json_put(json_at(meta, "labels"), "example.com/team", "blue");
	json_put(json_at(meta, "annotations"), "example.com/admitted", "yes");
	json_put(json_at(json, "spec"), "priorityClassName", "low");
}

static void create(const struct resource *of, const char *path, const char *body, size_t len,
		   struct server_reply *ret)
{
	cleanup_free char *text = mem_copy(body, len);
	struct json_object *json = json_tokener_parse(text);
	const char *name = json ? json_get(json_at(json, "metadata"), "name") : "";
	struct object *o;

	if (!json) {
		server_refuse(ret, 400, "BadRequest");
	} else if (object_find(JOBS, name)) {
		server_refuse(ret, 409, "AlreadyExists");
	} else if (admit(json), strstr(path, "dryRun=All")) {
		kueue_admit(json);
		server_reply_with(ret, 201, text_copy(json_print(json)));
	} else {
		o = object_add(of, json);
		users_created(text, o->name, json_get(json_at(o->json, "metadata"), "uid"));
		if (sim_chance(SIM_SERVER, sim_faults.copied))
			sim_after(cluster_kept_us() + sim_delay(SIM_SERVER, 120 * SIM_S), SIM_WORLD,
				  copy_job, o);
		cluster_begins(o);
		server_reply_with(ret, 201, text_copy(json_print(o->json)));
	}
}

static void delete (struct object *job, const char *body, size_t len, struct server_reply *ret)
{
	cleanup_free char *text = mem_copy(body ? body : "", body ? len : 0);
	struct json_object *options = json_tokener_parse(text);
	struct json_object *conditions, *uid = NULL;

	if (json_object_object_get_ex(options, "preconditions", &conditions))
		json_object_object_get_ex(conditions, "uid", &uid);
	if (uid && !streq(json_object_get_string(uid), object_uid(job))) {
		server_refuse(ret, 409, "Conflict");
	} else if (job->foreign && !sim_faults.disk_error) {
		/*
		 * If the disk refused to record our job's uid, kxfs can't distinguish a copy from
		 * our job. Otherwise it must not delete a copy.
		 */
		sim_fail("kxfs deletes job %s of another user", job->name);
	} else {
		job->of->controller->remove(job);
		server_reply_with(ret, 200, server_status(200, "", ""));
	}
	json_object_put(options);
}

/* Patch fields of JOB's spec. Reply 409 if the uid or resourceVersion in BODY is not JOB's. */
static void patch(struct object *job, const char *body, size_t len, struct server_reply *ret)
{
	cleanup_free char *text = mem_copy(body, len);
	struct json_object *json = json_tokener_parse(text), *meta = json_at(json, "metadata");
	struct json_object *spec = json_at(json, "spec");
	const char *of = json_get(json_at(job->json, "metadata"), "resourceVersion");

	if (!streq(json_get(meta, "uid"), object_uid(job)) ||
	    !streq(json_get(meta, "resourceVersion"), of)) {
		server_refuse(ret, 409, "Conflict");
		json_object_put(json);
		return;
	}
	json_object_object_foreach(spec, key, value) {
		const char *action = !streq(key, "suspend")	      ? "TerminateJob"
				     : json_object_get_boolean(value) ? "AbortJob"
								      : "ResumeJob";

		ctl_created(job->name, action);
		json_object_object_add(json_at(job->json, "spec"), key, json_object_get(value));
		job->of->controller->patched(job, key, value);
	}
	object_changed(job, "MODIFIED");
	server_reply_with(ret, 200, text_copy(json_print(job->json)));
	json_object_put(json);
}

/* Reply with the group versions of Kueue and of the kinds of jobs that the server serves. */
static void list_groups(struct server_reply *ret)
{
	FILE *f = text_stream(&ret->body, &ret->len);
	const char *comma = "";

	fputs("{\"kind\":\"APIGroupList\",\"groups\":[", f);
	for (size_t i = N_COLLECTIONS - 1; i < n_resources; i++) {
		const struct resource *of = &resources[i];

		if (of->trouble == UNSERVED)
			continue;
		fprintf(f, "%s{\"name\":\"%.*s\",\"versions\":[{\"groupVersion\":\"%s\"}]}", comma,
			(int)strcspn(of->api, "/"), of->api, of->api);
		comma = ",";
	}
	if (kueue_is_here())
		fprintf(f,
			"%s{\"name\":\"kueue.x-k8s.io\",\"versions\":[{\"groupVersion\":"
			"\"" KUEUE_API "\"}]}",
			comma);
	fputs("]}", f);
	text_stream_close(f);
	ret->status = 200;
}

/* Handle a request for discovery. Return false for any other PATH. */
static bool is_answered(const char *method, const char *path, struct server_reply *ret)
{
	bool get = streq(method, "GET");

	if (get && streq(path, "/apis")) {
		list_groups(ret);
		return true;
	}
	for (size_t i = 0; i < n_resources && get; i++) {
		const struct resource *of = &resources[i];

		if (of->trouble == UNSERVED || strncmp(path, "/apis/", 6) != 0 ||
		    !streq(path + 6, of->api))
			continue;
		server_reply_with(ret, 200, text_copy("{\"kind\":\"APIResourceList\"}"));
		return true;
	}
	return false;
}

void server_ask(const char *method, const char *path, const char *body, size_t len,
		struct server_reply *ret)
{
	const struct resource *of = resource_at(path);
	char name[256] = "";
	struct object *o;

	if (streq(method, "POST") && strncmp(path, COMMANDS, strlen(COMMANDS)) == 0) {
		volcano_command(body, len, ret);
		return;
	}
	if (is_answered(method, path, ret) || is_troubled(of, method, ret))
		return;
	if (path[strlen(of->path)] == '/')
		snprintf(name, sizeof(name), "%s", path + strlen(of->path) + 1);
	name[strcspn(name, "?")] = '\0';
	o = object_find(of->in, name);
	if (o && o->of != of)
		o = NULL;
	if (streq(method, "GET") && !*name)
		list(of, path, ret);
	else if (streq(method, "POST") && of->in == JOBS && !*name)
		create(of, path, body, len, ret);
	else if (!o)
		server_refuse(ret, 404, "NotFound");
	else if (streq(method, "GET"))
		server_reply_with(ret, 200, text_copy(json_print(o->json)));
	else if (streq(method, "DELETE") && of->in == JOBS)
		delete (o, body, len, ret);
	else if (streq(method, "PATCH") && of->in == JOBS)
		patch(o, body, len, ret);
	else
		server_refuse(ret, 405, "MethodNotAllowed");
}
