/* SPDX-License-Identifier: MIT */
/*
 * Kubelets of the simulated cluster. They run the pods that controllers have created, and the pods
 * print numbered lines. A pod's container may run several times. A request for a log names the
 * container, and asks for its current run or for the previous one. Between two runs, the node
 * serves the finished run for both requests. It keeps no older runs (docs/facts.md).
 */
#include <stdio.h>

#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "tests/sim/cluster.h"
#include "tests/sim/sim.h"

#define INJECTED "proxy"
#define LINE_US	 (700 * SIM_MS) /* the interval of a pod's lines */

/* --- pods --- */

/*
 * Let a webhook add a container to the pod JSON, in front of the existing ones (docs/facts.md).
 * Return true if it did.
 */
static bool inject(struct json_object *json)
{
	struct json_object *spec = json_at(json, "spec"), *all = json_object_new_array();
	const struct json_object *own = json_at(spec, "containers");
	bool injected = sim_faults.webhooks && sim_chance(SIM_WEBHOOKS, sim_faults.webhooks);

	if (!injected) {
		json_object_put(all);
		return false;
	}
	json_object_array_add(all, json_tokener_parse("{\"name\":\"" INJECTED "\"}"));
	for (size_t i = 0; i < json_object_array_length(own); i++)
		json_object_array_add(all, json_object_get(json_object_array_get_idx(own, i)));
	json_object_object_add(spec, "containers", all);
	return true;
}

struct object *pod_add(struct object *job, struct json_object *json, const char *container)
{
	bool injected = inject(json);
	struct object *pod = object_add(resource_of(PODS), json);

	pod->foreign = job->foreign;
	pod->job = job;
	pod->container = container;
	pod->injected = injected;
	return pod;
}

struct object *cluster_pod(const struct object *job)
{
	struct object *ret = NULL, *o;

	for (size_t k = 0; (o = object_at(k)); k++)
		if (o->in == PODS && !o->gone && o->job == job)
			ret = o;
	return ret;
}

void pod_container(struct object *pod, const char *phase, const char *state)
{
	struct json_object *status = json_at(pod->json, "status");
	bool has_last = pod->n_runs > 1 || pod->between;
	const char *other =
		!pod->injected ? ""
		: streq(phase, "Running")
			? "{\"name\":\"" INJECTED
			  "\",\"restartCount\":0,\"state\":{\"running\":{}}},"
			: "{\"name\":\"" INJECTED
			  "\",\"restartCount\":0,\"state\":{\"terminated\":{\"exitCode\":0}}},";
	cleanup_free char *text = text_print(
		"[%s{\"name\":\"%s\",\"restartCount\":%zu,\"started\":%s,\"state\":%s,\"lastState\":{%s}}]",
		other, pod->container, pod->n_runs - 1, strstr(state, "running") ? "true" : "false",
		state, has_last ? "\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}" : "");

	json_put(status, "phase", phase);
	json_object_object_add(status, "containerStatuses", json_tokener_parse(text));
	object_changed(pod, "MODIFIED");
}

void pod_ended(struct object *pod, const char *phase, int code)
{
	char when[32];
	cleanup_free char *state = text_print(
		"{\"terminated\":{\"exitCode\":%d,\"message\":\"%s\",\"startedAt\":\"%s\",\"finishedAt\":\"%s\"}}",
		code, hostile_words(), cluster_time(when), when);

	pod_container(pod, phase, state);
}

bool pod_is_running(const struct object *pod)
{
	return pod->n_runs > 0 && !pod->runs[pod->n_runs - 1].ended;
}

void pod_end(struct object *pod)
{
	if (pod_is_running(pod))
		pod->runs[pod->n_runs - 1].ended = sim_now();
	pod->over = true;
}

static void runs_again(void *data)
{
	struct object *pod = data;

	if (!pod->gone && !pod->over)
		pod_begin(pod);
}

static void waits(void *data)
{
	struct object *pod = data;

	if (pod->gone || pod->over || pod_is_running(pod))
		return;
	pod->between = true;
	pod_container(pod, "Running",
		      "{\"waiting\":{\"reason\":\"CrashLoopBackOff\",\"message\":\"back-off\"}}");
}

/*
 * Let the container of the pod DATA fail. The kubelet restarts it immediately, or after it has
 * been waiting for a while.
 */
static void run_ends(void *data)
{
	struct object *pod = data;
	uint64_t pause = sim_delay(SIM_SERVER, 5 * SIM_S);

	if (pod->gone || pod->over)
		return;
	pod->runs[pod->n_runs - 1].ended = sim_now();
	sim_log("server", "pod %s: run %zu ends", pod->name, pod->n_runs - 1);
	pod_ended(pod, "Running", 1);
	sim_after(sim_delay(SIM_SERVER, 2 * SIM_S), SIM_WORLD, waits, pod);
	sim_after(pause, SIM_WORLD, runs_again, pod);
}

void pod_begin(struct object *pod)
{
	cleanup_free char *state = NULL;
	char when[32];

	pod->runs[pod->n_runs++] = (struct run){.began = sim_now()};
	pod->between = false;
	state = text_print("{\"running\":{\"startedAt\":\"%s\"}}", cluster_time(when));
	pod_container(pod, "Running", state);
	if (pod->reruns && pod->n_runs < MOST_RUNS)
		sim_after(sim_delay(SIM_SERVER, 20 * SIM_S), SIM_WORLD, run_ends, pod);
}

void pod_removed(void *data)
{
	struct object *pod = data;

	pod_end(pod);
	if (!pod->gone)
		object_drop(pod);
}

/* --- logs --- */

size_t run_printed(const struct run *r)
{
	uint64_t end = r->ended ? r->ended : sim_now();

	return (size_t)((end - r->began) / LINE_US);
}

/* Return the time at which line K of R was printed, in ns since 1970. */
static int64_t line_time(const struct run *r, size_t k)
{
	return sim_clock_ns() -
	       ((int64_t)sim_now() - (int64_t)(r->began + (k + 1) * LINE_US)) * 1000;
}

void run_uid(const struct object *pod, size_t run, char ret[SERVER_UID + 1])
{
	const char *uid = object_uid(pod);

	snprintf(ret, SERVER_UID + 1, "%.9s%04zx%s", uid, run, uid + 13);
}

/*
 * Send the lines that were printed since the last call. If the request follows a run that is still
 * running, schedule the next call. Otherwise end the stream.
 */
static void print(void *data)
{
	struct server_watch *w = data;
	const struct run *r = &w->pod->runs[w->run];
	char uid[SERVER_UID + 1];

	run_uid(w->pod, w->run, uid);
	while (!w->gone && w->at < run_printed(r)) {
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

/* True if PATH, a request for a log, names CONTAINER. */
static bool is_named(const char *container, const char *path)
{
	const char *name = path_query(path, "container=");

	return strncmp(name, container, strlen(container)) == 0 &&
	       strchr("&", name[strlen(container)]);
}

struct server_watch *kubelet_log(const char *path, server_event_fn fn, void *data,
				 struct server_reply *ret)
{
	cleanup_free char *name = text_copy(path_query(path, "/pods/"));
	const char *since = path_query(path, "sinceTime=");
	size_t before = strstr(path, "previous=true") != NULL;
	struct object *pod;
	struct server_watch *w;
	struct run *r;
	int64_t from = 0;

	name[strcspn(name, "/")] = '\0';
	pod = object_find(PODS, name);
	if (pod && pod->between)
		before = 0;
	if (!pod || pod->n_runs <= before || !is_named(pod->container, path)) {
		server_refuse(ret, pod ? 400 : 404, pod ? "BadRequest" : "NotFound");
		return NULL;
	}
	w = cluster_watch(fn, data);
	w->pod = pod;
	w->run = pod->n_runs - 1 - before;
	w->follow = strstr(path, "follow=true");
	w->lag = sim_delay(SIM_SERVER, 3 * SIM_S);
	r = &pod->runs[w->run];
	if (sim_chance(SIM_SERVER, sim_faults.rotated))
		r->kept = max_of(r->kept, (size_t)(sim_random(SIM_SERVER) % (run_printed(r) + 1)));
	w->at = r->kept;
	if (*since && spec_time_parse(since, strcspn(since, "&"), &from) > 0)
		while (w->at < run_printed(r) && line_time(r, w->at) < from)
			w->at++;
	sim_after(0, SIM_WORLD, print, w);
	return w;
}
