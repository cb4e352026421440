/* SPDX-License-Identifier: MIT */
/*
 * An API server with one kind of jobs, which the seed chooses, their pods and what belongs to them. Each change has a
 * version; a watch tells the changes of its collection after a lag of its own, and forgets them now and then. A
 * controller (volcano.c, controllers.c) makes pods of a job, kubelets run them (kubelet.c), the job ends, and
 * perhaps somebody removes it, or makes it anew of what he has saved.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <time.h>
#include <utlist.h>

#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "tests/sim/loop.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define MOST_OBJECTS 512
#define MOST_RUNS    5
#define BOOKMARK_S   60
/*
 * For so long nobody removes a job. Whoever removes one while its POST is still tried again, since its reply was lost,
 * has it launched twice: its name is free then, and the server knows nothing of it any more.
 */
#define KEPT_S	 90
#define LINE_US	 (700 * SIM_MS) /* a pod prints a line each such time */
#define JOB_API	 "batch.volcano.sh/v1alpha1"
#define COMMANDS "/apis/bus.volcano.sh/v1alpha1/namespaces/team/commands"

enum collection { JOBS, PODS, GROUPS, EVENTS, QUEUES, N_COLLECTIONS };

static const struct {
	const char *path, *api, *kind;
} collections[N_COLLECTIONS] = {
	[JOBS] = {"/apis/" JOB_API "/namespaces/team/jobs", JOB_API, "Job"},
	[PODS] = {"/api/v1/namespaces/team/pods", "v1", "Pod"},
	[GROUPS] = {"/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups",
		    "scheduling.volcano.sh/v1beta1", "PodGroup"},
	[EVENTS] = {"/api/v1/namespaces/team/events", "v1", "Event"},
	[QUEUES] = {"/apis/scheduling.volcano.sh/v1beta1/queues", "scheduling.volcano.sh/v1beta1",
		    "Queue"},
};

/* One run of a pod's container: when it ran, and the first line that its node still has. */
struct run {
	uint64_t began, ended; /* us; 0: not yet */
	size_t kept;
};

struct object {
	enum collection in;
	char *name;
	struct json_object *json;
	bool gone;
	bool foreign;	 /* somebody else has made it, or its job */
	bool suspended;	 /* once */
	const char *job; /* of a pod: its uid */
	/* Of a pod: */
	struct run runs[MOST_RUNS];
	size_t n_runs;
	bool reruns;  /* its container runs again when it has failed */
	bool between; /* and waits for that */
	bool over;    /* it does not run any more */
};

struct change {
	enum collection in;
	unsigned version;
	char *line;
	size_t len;
};

struct server_watch {
	enum collection in; /* N_COLLECTIONS: it is the log of POD */
	size_t at;	    /* of the changes, or the next line */
	const struct object *pod;
	size_t run; /* of it */
	bool follow;
	unsigned version;
	uint64_t lag;
	server_event_fn fn;
	void *data;
	bool gone, due;
	struct server_watch *next;
};

static struct object objects[MOST_OBJECTS];
static size_t n_objects;
static struct change *changes;
static size_t n_changes;
static unsigned version = 100, forgotten;
static struct server_watch *watches;

/* --- texts --- */

char *server_status(int code, const char *reason, const char *message)
{
	return text_print(
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"%s\","
		"\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}",
		code < 300 ? "Success" : "Failure", message, reason, code);
}

static void reply(struct server_reply *ret, int status, char *body)
{
	*ret = (struct server_reply){status, body, strlen(body)};
}

static void refuse(struct server_reply *ret, int status, const char *reason)
{
	reply(ret, status, server_status(status, reason, reason));
}

static const char *time_text(char ret[32])
{
	time_t now = (time_t)(sim_clock_ns() / 1000000000);
	struct tm tm;

	strftime(ret, 32, "%FT%TZ", gmtime_r(&now, &tm));
	return ret;
}

static struct json_object *at(struct json_object *o, const char *key)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v)) {
		v = json_object_new_object();
		json_object_object_add(o, key, v);
	}
	return v;
}

static void set(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

static const char *text_of(const struct json_object *o)
{
	return json_object_to_json_string_ext((struct json_object *)(uintptr_t)o,
					      JSON_C_TO_STRING_PLAIN);
}

static const char *get(struct json_object *o, const char *key)
{
	return json_object_get_string(at(o, key));
}

/* --- watches --- */

static void tell(void *data);

static void tell_soon(struct server_watch *w)
{
	if (w->gone || w->due)
		return;
	w->due = true;
	sim_after(1 + sim_delay(SIM_SERVER, w->lag), SIM_WORLD, tell, w);
}

static void tell(void *data)
{
	struct server_watch *w = data;

	w->due = false;
	while (!w->gone && w->at < n_changes) {
		const struct change *c = &changes[w->at++];

		if (c->in != w->in || c->version <= w->version)
			continue;
		w->fn(w->data, c->line, c->len);
		tell_soon(w);
		return;
	}
}

static void bookmark(void *data)
{
	struct server_watch *w = data;
	cleanup_free char *line = NULL;

	if (w->gone)
		return;
	if (w->at == n_changes) {
		line = text_print(
			"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\","
			"\"metadata\":{\"resourceVersion\":\"%u\"}}}\n",
			collections[w->in].kind, collections[w->in].api, version);
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

static const char *query(const char *path, const char *key)
{
	const char *found = strstr(path, key);

	return found ? found + strlen(key) : "";
}

static struct server_watch *watch_new(server_event_fn fn, void *data)
{
	struct server_watch *w = new0(struct server_watch);

	w->fn = fn;
	w->data = data;
	w->in = N_COLLECTIONS;
	LL_PREPEND(watches, w);
	return w;
}

static int collection_of(const char *path)
{
	for (int i = 0; i < N_COLLECTIONS; i++) {
		size_t n = strlen(collections[i].path);

		if (strncmp(path, collections[i].path, n) == 0 &&
		    (path[n] == '?' || path[n] == '/' || !path[n]))
			return i;
	}
	return -1;
}

static struct server_watch *log_watch(const char *path, server_event_fn fn, void *data,
				      struct server_reply *ret);

struct server_watch *server_watch(const char *path, server_event_fn fn, void *data,
				  struct server_reply *ret)
{
	static const char expired[] =
		"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":"
		"\"v1\",\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410}}\n";
	struct server_watch *w;
	int in = collection_of(path);

	if (strstr(path, "/log?"))
		return log_watch(path, fn, data, ret);
	if (in < 0) {
		refuse(ret, 404, "NotFound");
		return NULL;
	}
	w = watch_new(fn, data);
	w->in = (enum collection)in;
	w->version = (unsigned)strtoul(query(path, "resourceVersion="), NULL, 10);
	w->lag = sim_delay(SIM_SERVER, 5 * SIM_S);
	if (sim_chance(SIM_SERVER, sim_faults.forgotten))
		forgotten = version;
	if (w->version < forgotten) {
		fn(data, expired, strlen(expired));
		sim_after(0, SIM_WORLD, watch_over, w);
		return w;
	}
	sim_after(strtoul(query(path, "timeoutSeconds="), NULL, 10) * SIM_S, SIM_WORLD, watch_over,
		  w);
	sim_after(BOOKMARK_S * SIM_S, SIM_WORLD, bookmark, w);
	tell_soon(w);
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

static void changed(struct object *o, const char *type)
{
	cleanup_free char *rv = text_print("%u", ++version);
	struct server_watch *w;
	struct change c = {o->in, version, NULL, 0};

	set(at(o->json, "metadata"), "resourceVersion", rv);
	c.line = text_print("{\"type\":\"%s\",\"object\":%s}\n", type, text_of(o->json));
	c.len = strlen(c.line);
	changes = mem_grow(changes, n_changes + 1, sizeof(c));
	changes[n_changes++] = c;
	LL_FOREACH(watches, w)
		if (w->in == o->in)
			tell_soon(w);
}

static struct object *find(enum collection in, const char *name)
{
	for (size_t i = 0; i < n_objects; i++)
		if (!objects[i].gone && objects[i].in == in && streq(objects[i].name, name))
			return &objects[i];
	return NULL;
}

/* JSON is given away. */
static struct object *add(enum collection in, struct json_object *json)
{
	struct object *o = &objects[n_objects++];
	struct json_object *meta = at(json, "metadata");
	cleanup_free char *uid = text_print("%08x-0000-4000-8000-%012zx",
					    (unsigned)sim_random(SIM_SERVER), n_objects);
	char when[32];

	if (n_objects == MOST_OBJECTS)
		sim_fail("too many objects");
	*o = (struct object){.in = in, .name = text_copy(get(meta, "name")), .json = json};
	set(json, "kind", collections[in].kind);
	set(json, "apiVersion", collections[in].api);
	set(meta, "namespace", "team");
	set(meta, "uid", uid);
	set(meta, "creationTimestamp", time_text(when));
	changed(o, "ADDED");
	return o;
}

static void drop(struct object *o)
{
	o->gone = true;
	sim_say("server", "%s %s is gone", collections[o->in].kind, o->name);
	changed(o, "DELETED");
}

size_t server_n_jobs(void)
{
	size_t n = 0;

	if (sim_machine)
		return machine_n_jobs();
	for (size_t i = 0; i < n_objects; i++)
		n += objects[i].in == JOBS && !objects[i].gone;
	return n;
}

const char *server_job(size_t i)
{
	if (sim_machine)
		return machine_job(i);
	for (size_t k = 0; k < n_objects; k++)
		if (objects[k].in == JOBS && !objects[k].gone && i-- == 0)
			return objects[k].name;
	return NULL;
}

/* --- what others ask --- */

static struct object *pod_of(const struct object *job)
{
	cleanup_free char *name = text_print("%s-main-0-0", job->name);

	return find(PODS, name);
}

static const char *phase_of(const struct object *job)
{
	return get(at(at(job->json, "status"), "state"), "phase");
}

static bool is_in(const struct object *job, const char *phase)
{
	return !job->gone && streq(phase_of(job), phase);
}

static void set_phase(struct object *job, const char *phase)
{
	struct json_object *state = at(at(job->json, "status"), "state");
	char when[32];

	set(state, "phase", phase);
	set(state, "lastTransitionTime", time_text(when));
	sim_say("server", "job %s: %s", job->name, phase);
	changed(job, "MODIFIED");
}

static void make_pod(const struct object *job)
{
	const char *uid = get(at(job->json, "metadata"), "uid");
	bool reruns = sim_chance(SIM_SERVER, sim_faults.rerun);
	cleanup_free char *text = text_print(
		"{\"metadata\":{\"name\":\"%s-main-0-0\",\"annotations\":{\"volcano.sh/task-index\":\"0\","
		"\"volcano.sh/task-spec\":\"main-0\",\"volcano.sh/job-retry-count\":\"%d\"},\"labels\":"
		"{\"volcano.sh/job-name\":\"%s\"},\"ownerReferences\":[{\"apiVersion\":\"" JOB_API
		"\",\"kind\":\"Job\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}]},\"spec\":{"
		"\"nodeName\":\"n1\",\"restartPolicy\":\"%s\",\"containers\":[{\"name\":\"main-0\"}]},"
		"\"status\":{\"phase\":\"Pending\"}}",
		job->name, json_object_get_int(at(at(job->json, "status"), "retryCount")),
		job->name, job->name, uid, reruns ? "OnFailure" : "Never");

	struct object *pod = add(PODS, json_tokener_parse(text));

	pod->reruns = reruns;
	pod->foreign = job->foreign;
	pod->job = text_copy(uid);
}

static void set_container(struct object *pod, const char *phase, const char *state)
{
	struct json_object *status = at(pod->json, "status");
	bool has_last = pod->n_runs > 1 || pod->between;
	cleanup_free char *text = text_print(
		"[{\"name\":\"main-0\",\"restartCount\":%zu,\"started\":%s,\"state\":%s,\"lastState\":{%s}}]",
		pod->n_runs - 1, strstr(state, "running") ? "true" : "false", state,
		has_last ? "\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}" : "");

	set(status, "phase", phase);
	json_object_object_add(status, "containerStatuses", json_tokener_parse(text));
	changed(pod, "MODIFIED");
}

static bool is_running(const struct object *pod)
{
	return pod->n_runs > 0 && !pod->runs[pod->n_runs - 1].ended;
}

/* POD does not run any more. */
static void end_pod(struct object *pod)
{
	if (is_running(pod))
		pod->runs[pod->n_runs - 1].ended = sim_now();
	pod->over = true;
}

static void run_ends(void *data);

/* The container of POD begins a run. */
static void begin_run(struct object *pod)
{
	cleanup_free char *state = NULL;
	char when[32];

	pod->runs[pod->n_runs++] = (struct run){.began = sim_now()};
	pod->between = false;
	state = text_print("{\"running\":{\"startedAt\":\"%s\"}}", time_text(when));
	set_container(pod, "Running", state);
	if (pod->reruns && pod->n_runs < MOST_RUNS)
		sim_after(sim_delay(SIM_SERVER, 20 * SIM_S), SIM_WORLD, run_ends, pod);
}

static void runs_again(void *data)
{
	struct object *pod = data;

	if (!pod->gone && !pod->over)
		begin_run(pod);
}

static void waits(void *data)
{
	struct object *pod = data;

	if (pod->gone || pod->over || is_running(pod))
		return;
	pod->between = true;
	set_container(pod, "Running",
		      "{\"waiting\":{\"reason\":\"CrashLoopBackOff\",\"message\":\"back-off\"}}");
}

/* The container of POD fails; some time later it waits, and then, or at once, runs again. */
static void run_ends(void *data)
{
	struct object *pod = data;
	uint64_t pause = sim_delay(SIM_SERVER, 5 * SIM_S);
	cleanup_free char *state = NULL;
	char when[32];

	if (pod->gone || pod->over)
		return;
	pod->runs[pod->n_runs - 1].ended = sim_now();
	sim_say("server", "pod %s: run %zu ends", pod->name, pod->n_runs - 1);
	state = text_print(
		"{\"terminated\":{\"exitCode\":1,\"startedAt\":\"%s\",\"finishedAt\":\"%s\"}}",
		time_text(when), when);
	set_container(pod, "Running", state);
	sim_after(sim_delay(SIM_SERVER, 2 * SIM_S), SIM_WORLD, waits, pod);
	sim_after(pause, SIM_WORLD, runs_again, pod);
}

/* The container of JOB's pod begins. */
static void pod_runs(void *data)
{
	struct object *pod = pod_of(data);

	if (pod && pod->n_runs == 0)
		begin_run(pod);
}

/* Its node throws JOB's pod out, and it is made anew under its name. */
static void evict(void *data)
{
	struct object *job = data, *pod = pod_of(job);

	if (!is_in(job, "Running") || !pod || pod->over)
		return;
	end_pod(pod);
	drop(pod);
	make_pod(job);
	sim_after(sim_delay(SIM_SERVER, 3 * SIM_S), SIM_WORLD, pod_runs, job);
}

static void removed_late(void *data)
{
	struct object *pod = data;

	end_pod(pod);
	if (!pod->gone)
		drop(pod);
}

static void remove_job(void *data)
{
	struct object *job = data, *pod = pod_of(job);

	if (job->gone)
		return;
	drop(job);
	if (pod)
		sim_after(sim_delay(SIM_SERVER, 10 * SIM_S), SIM_WORLD, removed_late, pod);
}

static void job_ends(void *data)
{
	struct object *job = data, *pod = pod_of(job);
	cleanup_free char *state = NULL;
	bool fails = sim_chance(SIM_SERVER, 200);
	char when[32];

	if (!is_in(job, "Running"))
		return;
	if (pod && !is_running(pod)) {
		sim_after(5 * SIM_S, SIM_WORLD, job_ends, job);
		return;
	}
	if (pod) {
		end_pod(pod);
		fails = fails && !pod->reruns; /* else it would run again */
		state = text_print(
			"{\"terminated\":{\"exitCode\":%d,\"startedAt\":\"%s\",\"finishedAt\":\"%s\"}}",
			fails, time_text(when), when);
		set_container(pod, fails ? "Failed" : "Succeeded", state);
	}
	set_phase(job, fails ? "Failed" : "Completed");
	if (sim_chance(SIM_SERVER, 300))
		sim_after(KEPT_S * SIM_S + sim_delay(SIM_SERVER, 120 * SIM_S), SIM_WORLD,
			  remove_job, job);
}

static void job_runs(void *data)
{
	struct object *job = data;

	if (!is_in(job, "Pending"))
		return;
	pod_runs(job);
	set_phase(job, "Running");
	if (sim_chance(SIM_SERVER, sim_faults.evicted))
		sim_after(sim_delay(SIM_SERVER, 60 * SIM_S), SIM_WORLD, evict, job);
	sim_after(sim_delay(SIM_SERVER, 100 * SIM_S), SIM_WORLD, job_ends, job);
}

static void job_begins(void *data)
{
	struct object *job = data;

	if (job->gone)
		return;
	set_phase(job, "Pending");
	make_pod(job);
	sim_after(sim_delay(SIM_SERVER, 10 * SIM_S), SIM_WORLD, job_runs, job);
}

/* --- Commands --- */

/* JOB has no pods any more, and goes where it was to go. */
static void settle(void *data)
{
	struct object *job = data, *pod = pod_of(job);
	bool again = is_in(job, "Restarting"), aborts = is_in(job, "Aborting");
	int retries = json_object_get_int(at(at(job->json, "status"), "retryCount"));
	const struct json_object *most = at(at(job->json, "spec"), "maxRetry");

	if (!again && !aborts && !is_in(job, "Terminating"))
		return;
	if (pod)
		removed_late(pod);
	if (again && retries >= json_object_get_int(most))
		set_phase(job, "Failed");
	else if (again)
		job_begins(job);
	else
		set_phase(job, aborts ? "Aborted" : "Terminated");
}

struct command {
	char *job, *action;
};

/* Volcano obeys a Command in some phases, whatever the uid of its target is (docs/facts.md). */
static void obey(void *data)
{
	struct command *c = data;
	struct object *job = find(JOBS, c->job);
	bool active = job && (is_in(job, "Pending") || is_in(job, "Running"));
	bool aborted = job && (is_in(job, "Aborting") || is_in(job, "Aborted"));
	struct json_object *status = job ? at(job->json, "status") : NULL;
	const char *phase = NULL;

	if (active && streq(c->action, "AbortJob"))
		phase = "Aborting";
	else if (active && streq(c->action, "TerminateJob"))
		phase = "Terminating";
	else if ((active && streq(c->action, "RestartJob")) ||
		 (aborted && streq(c->action, "ResumeJob")))
		phase = "Restarting";
	if (!phase)
		return;
	ctl_obeyed(c->job, c->action);
	job->suspended |= streq(phase, "Aborting");
	if (streq(phase, "Restarting"))
		json_object_object_add(status, "retryCount",
				       json_object_new_int(
					       json_object_get_int(at(status, "retryCount")) + 1));
	set_phase(job, phase);
	sim_after(sim_delay(SIM_SERVER, 5 * SIM_S), SIM_WORLD, settle, job);
}

static void command(const char *body, size_t len, struct server_reply *ret)
{
	cleanup_free char *text = mem_copy(body, len);
	struct json_object *json = json_tokener_parse(text);
	struct command *c = new0(struct command);

	*c = (struct command){text_copy(get(at(json, "target"), "name")),
			      text_copy(get(json, "action"))};
	ctl_created(c->job, c->action);
	sim_after(sim_delay(SIM_SERVER, 3 * SIM_S), SIM_WORLD, obey, c);
	reply(ret, 201, text_copy(text));
	json_object_put(json);
}

/* Somebody has saved JOB as it is, removes it, and makes it anew: with its name and all that stands in it. */
static void copy_job(void *data)
{
	struct object *job = data, *pod = pod_of(job), *copy;
	struct json_object *json;

	if (job->gone)
		return;
	if (pod)
		removed_late(pod);
	drop(job);
	json = json_tokener_parse(text_of(job->json));
	json_object_object_del(json, "status");
	copy = add(JOBS, json);
	copy->foreign = true;
	sim_say("server", "job %s is somebody else's now", copy->name);
	sim_after(sim_delay(SIM_SERVER, 3 * SIM_S), SIM_WORLD, job_begins, copy);
}

/* --- logs --- */

/* How many lines has R printed? */
static size_t printed(const struct run *r)
{
	uint64_t end = r->ended ? r->ended : sim_now();

	return (size_t)((end - r->began) / LINE_US);
}

/* When line K of R was printed, in ns since 1970. */
static int64_t line_time(const struct run *r, size_t k)
{
	return sim_clock_ns() -
	       ((int64_t)sim_now() - (int64_t)(r->began + (k + 1) * LINE_US)) * 1000;
}

/* A pod's uid with the number of a run in the place of four zeros. */
static void run_uid(const struct object *pod, size_t run, char ret[SERVER_UID + 1])
{
	const char *uid = get(at(pod->json, "metadata"), "uid");

	snprintf(ret, SERVER_UID + 1, "%.9s%04zx%s", uid, run, uid + 13);
}

bool server_has_job(const char *uid)
{
	for (size_t i = 0; i < n_objects; i++)
		if (objects[i].in == JOBS && !objects[i].gone &&
		    streq(get(at(objects[i].json, "metadata"), "uid"), uid))
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

		if (o->in != JOBS || !streq(o->name, name))
			continue;
		ret->n++;
		ret->phase = get(at(at(o->json, "status"), "state"), "phase");
		ret->gone = o->gone;
		ret->suspended |= o->suspended;
	}
}

bool server_is_suspended(const char *name)
{
	const struct object *job = find(JOBS, name);

	return job && (is_in(job, "Aborting") || is_in(job, "Aborted"));
}

bool server_run(const char *uid, struct server_run *ret)
{
	cleanup_free char *of = text_copy(uid);
	size_t run = strlen(uid) == SERVER_UID ? strtoul(uid + 9, NULL, 16) : MOST_RUNS;

	if (sim_machine)
		return machine_run(uid, ret);
	for (size_t i = 0; i < n_objects && run < MOST_RUNS; i++) {
		const struct object *o = &objects[i];
		const struct run *r = &o->runs[run];

		memcpy(of + 9, "0000", 4);
		if (o->in != PODS || !streq(get(at(o->json, "metadata"), "uid"), of) ||
		    run >= o->n_runs)
			continue;
		*ret = (struct server_run){
			.name = o->name,
			.n = printed(r),
			.kept = r->kept,
			.there = !o->gone && run + 1 + !o->between >= o->n_runs,
			.ended = r->ended > 0,
			.job = o->job,
			.foreign = o->foreign,
		};
		return true;
	}
	return false;
}

bool server_job_run(const char *job, unsigned before, char ret_uid[SERVER_UID + 1],
		    struct server_run *ret)
{
	const struct object *o = find(JOBS, job), *pod = o ? pod_of(o) : NULL;

	/* What a machine's jobs have printed is judged by machine.c. */
	if (sim_machine || !pod || pod->n_runs <= before)
		return false;
	run_uid(pod, pod->n_runs - 1 - before, ret_uid);
	return server_run(ret_uid, ret) && ret->there;
}

/* The lines that have been printed since the last time; then, if it follows, the next ones. */
static void print(void *data)
{
	struct server_watch *w = data;
	const struct run *r = &w->pod->runs[w->run];
	char uid[SERVER_UID + 1];

	run_uid(w->pod, w->run, uid);
	while (!w->gone && w->at < printed(r)) {
		int64_t ns = line_time(r, w->at);
		cleanup_free char *line = NULL;
		char when[32];

		spec_time_text(ns, when);
		line = text_print("%.19s.%09dZ %s %zu\n", when, (int)(ns % 1000000000), uid,
				  w->at++);
		w->fn(w->data, line, strlen(line));
	}
	if (w->gone)
		return;
	if (!w->follow || r->ended)
		w->fn(w->data, NULL, 0);
	else
		sim_after(LINE_US + sim_delay(SIM_SERVER, w->lag), SIM_WORLD, print, w);
}

static struct server_watch *log_watch(const char *path, server_event_fn fn, void *data,
				      struct server_reply *ret)
{
	cleanup_free char *name = text_copy(query(path, "/pods/"));
	const char *since = query(path, "sinceTime=");
	size_t before = strstr(path, "previous=true") != NULL;
	struct object *pod;
	struct server_watch *w;
	struct run *r;
	int64_t from = 0;

	name[strcspn(name, "/")] = '\0';
	pod = find(PODS, name);
	if (pod && pod->between)
		before = 0;
	if (!pod || pod->n_runs <= before) {
		refuse(ret, pod ? 400 : 404, pod ? "BadRequest" : "NotFound");
		return NULL;
	}
	w = watch_new(fn, data);
	w->pod = pod;
	w->run = pod->n_runs - 1 - before;
	w->follow = strstr(path, "follow=true");
	w->lag = sim_delay(SIM_SERVER, 3 * SIM_S);
	r = &pod->runs[w->run];
	if (sim_chance(SIM_SERVER, sim_faults.rotated))
		r->kept = max_of(r->kept, (size_t)(sim_random(SIM_SERVER) % (printed(r) + 1)));
	w->at = r->kept;
	if (*since && spec_time_parse(since, strcspn(since, "&"), &from) > 0)
		while (w->at < printed(r) && line_time(r, w->at) < from)
			w->at++;
	sim_after(0, SIM_WORLD, print, w);
	return w;
}

/* --- requests --- */

/* A list whose pages are asked for one after the other is that of one moment. */
struct pages {
	unsigned version;
	char **v;
	size_t n;
};

static struct pages *all_pages;
static size_t n_pages;

static void list(enum collection in, const char *path, struct server_reply *ret)
{
	const char *field = query(path, "fieldSelector=metadata.name%3D");
	const char *token = query(path, "continue=");
	size_t n = strcspn(field, "&"), number, at = 0, most;
	cleanup_free char *next = NULL;
	struct pages *p;
	char *end;
	FILE *f;

	number = strtoul(token, &end, 10);
	if (*token)
		at = strtoul(end + 1, NULL, 10);
	/* A token is of a version, which is forgotten with the others. */
	if (*token && (number >= n_pages || all_pages[number].version < forgotten ||
		       sim_chance(SIM_SERVER, sim_faults.forgotten))) {
		refuse(ret, 410, "Expired");
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

		if (o->gone || o->in != in ||
		    (n && (strlen(o->name) != n || memcmp(o->name, field, n) != 0)))
			continue;
		p->v = mem_grow(p->v, p->n + 1, sizeof(char *));
		p->v[p->n++] = text_copy(text_of(o->json));
	}
	/* A server may give fewer than it is asked for, though there are more (docs/facts.md). */
	most = sim_chance(SIM_SERVER, sim_faults.paged) ? 1 + sim_below(SIM_SERVER, 5) : SIZE_MAX;
	most = min_of(most, p->n - at);
	next = at + most < p->n ? text_print("%zu.%zu", number, at + most) : text_copy("");
	f = text_stream(&ret->body, &ret->len);
	fprintf(f,
		"{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%u\","
		"\"continue\":\"%s\"},\"items\":[",
		collections[in].kind, collections[in].api, p->version, next);
	for (size_t i = 0; i < most; i++)
		fprintf(f, "%s%s", i ? "," : "", p->v[at + i]);
	fputs("]}", f);
	text_stream_close(f);
	ret->status = 200;
}

static void create(const char *path, const char *body, size_t len, struct server_reply *ret)
{
	cleanup_free char *text = mem_copy(body, len);
	struct json_object *json = json_tokener_parse(text);
	const char *name = json ? get(at(json, "metadata"), "name") : "";
	struct object *o;

	if (!json) {
		refuse(ret, 400, "BadRequest");
	} else if (find(JOBS, name)) {
		refuse(ret, 409, "AlreadyExists");
	} else if (strstr(path, "dryRun=All")) {
		reply(ret, 201, text_copy(text_of(json)));
	} else {
		o = add(JOBS, json);
		users_created(text, o->name, get(at(o->json, "metadata"), "uid"));
		if (sim_chance(SIM_SERVER, sim_faults.copied))
			sim_after(KEPT_S * SIM_S + sim_delay(SIM_SERVER, 120 * SIM_S), SIM_WORLD,
				  copy_job, o);
		sim_after(sim_delay(SIM_SERVER, 3 * SIM_S), SIM_WORLD, job_begins, o);
		reply(ret, 201, text_copy(text_of(o->json)));
	}
}

static void delete (struct object *job, const char *body, size_t len, struct server_reply *ret)
{
	cleanup_free char *text = mem_copy(body ? body : "", body ? len : 0);
	struct json_object *options = json_tokener_parse(text);
	struct json_object *conditions, *uid = NULL;

	if (json_object_object_get_ex(options, "preconditions", &conditions))
		json_object_object_get_ex(conditions, "uid", &uid);
	if (uid && !streq(json_object_get_string(uid), get(at(job->json, "metadata"), "uid"))) {
		refuse(ret, 409, "Conflict");
	} else if (job->foreign) {
		sim_fail("job %s, which is somebody else's, is deleted", job->name);
	} else {
		remove_job(job);
		reply(ret, 200, server_status(200, "", ""));
	}
	json_object_put(options);
}

void server_ask(const char *method, const char *path, const char *body, size_t len,
		struct server_reply *ret)
{
	int in = collection_of(path);
	char name[256] = "";
	struct object *o;

	if (streq(method, "POST") && strncmp(path, COMMANDS, strlen(COMMANDS)) == 0) {
		command(body, len, ret);
		return;
	}
	if (in < 0) {
		refuse(ret, 404, "NotFound");
		return;
	}
	if (path[strlen(collections[in].path)] == '/')
		snprintf(name, sizeof(name), "%s", path + strlen(collections[in].path) + 1);
	name[strcspn(name, "?")] = '\0';
	o = find((enum collection)in, name);
	if (streq(method, "GET") && !*name)
		list((enum collection)in, path, ret);
	else if (streq(method, "POST") && in == JOBS && !*name)
		create(path, body, len, ret);
	else if (!o)
		refuse(ret, 404, "NotFound");
	else if (streq(method, "GET"))
		reply(ret, 200, text_copy(text_of(o->json)));
	else if (streq(method, "DELETE") && in == JOBS)
		delete (o, body, len, ret);
	else
		refuse(ret, 405, "MethodNotAllowed");
}
