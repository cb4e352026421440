/* SPDX-License-Identifier: MIT */
/*
 * Volcano's controller: a job gets a phase and a pod, which is created again under the same name
 * after an eviction. In some phases the controller carries out Commands.
 */
#include "spec/base/mem.h"
#include "tests/sim/cluster.h"

#define JOB_API "batch.volcano.sh/v1alpha1"

static void set_phase(struct object *job, const char *phase)
{
	struct json_object *state = json_at(json_at(job->json, "status"), "state");
	char when[32];

	job->phase = phase;
	json_put(state, "phase", phase);
	json_put(state, "lastTransitionTime", cluster_time(when));
	sim_log("server", "job %s: %s", job->name, phase);
	object_changed(job, "MODIFIED");
}

static void make_pod(struct object *job)
{
	const char *uid = object_uid(job);
	bool reruns = sim_chance(SIM_SERVER, sim_faults.rerun);
	cleanup_free char *text = text_print(
		"{\"metadata\":{\"name\":\"%s-main-0-0\",\"annotations\":{\"volcano.sh/task-index\":\"0\","
		"\"volcano.sh/task-spec\":\"main-0\",\"volcano.sh/job-retry-count\":\"%d\"},\"labels\":"
		"{\"volcano.sh/job-name\":\"%s\"},\"ownerReferences\":[{\"apiVersion\":\"" JOB_API
		"\",\"kind\":\"Job\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}]},\"spec\":{"
		"\"nodeName\":\"n1\",\"restartPolicy\":\"%s\",\"containers\":[{\"name\":\"main-0\"}]},"
		"\"status\":{\"phase\":\"Pending\"}}",
		job->name, json_object_get_int(json_at(json_at(job->json, "status"), "retryCount")),
		job->name, job->name, uid, reruns ? "OnFailure" : "Never");

	pod_add(job, json_tokener_parse(text), "main-0")->reruns = reruns;
}

/* The container of JOB's pod starts. */
static void pod_runs(void *data)
{
	struct object *pod = cluster_pod(data);

	if (pod && pod->n_runs == 0)
		pod_begin(pod);
}

/* The node evicts JOB's pod, which is created again under the same name. */
static void evict(void *data)
{
	struct object *job = data, *pod = cluster_pod(job);

	if (!object_is(job, "Running") || !pod || pod->over)
		return;
	pod_end(pod);
	object_drop(pod);
	make_pod(job);
	cluster_after(sim_delay(SIM_SERVER, 3 * SIM_S), pod_runs, job);
}

static void remove_job(void *data)
{
	struct object *job = data, *pod = cluster_pod(job);

	if (job->gone)
		return;
	object_drop(job);
	if (pod)
		sim_after(sim_delay(SIM_SERVER, 10 * SIM_S), SIM_WORLD, pod_removed, pod);
}

static void job_ends(void *data)
{
	struct object *job = data, *pod = cluster_pod(job);
	bool fails = sim_chance(SIM_SERVER, 200);

	if (!object_is(job, "Running"))
		return;
	if (pod && pod->over)
		return set_phase(job, pod->failed ? "Failed" : "Completed");
	if (pod && !pod_is_running(pod)) {
		cluster_after(5 * SIM_S, job_ends, job);
		return;
	}
	if (pod) {
		pod_end(pod);
		fails = fails && !pod->reruns; /* otherwise it would be restarted */
		pod->failed = fails;
		pod_ended(pod, fails ? "Failed" : "Succeeded", fails);
	}
	set_phase(job, fails ? "Failed" : "Completed");
	server_ended(job);
}

static void job_runs(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Pending"))
		return;
	pod_runs(job);
	set_phase(job, "Running");
	if (sim_chance(SIM_SERVER, sim_faults.evicted))
		cluster_after(sim_delay(SIM_SERVER, 60 * SIM_S), evict, job);
	cluster_after(sim_delay(SIM_SERVER, 100 * SIM_S), job_ends, job);
}

static void job_begins(void *data)
{
	struct object *job = data;

	if (job->gone)
		return;
	set_phase(job, "Pending");
	make_pod(job);
	cluster_after(sim_delay(SIM_SERVER, 10 * SIM_S), job_runs, job);
}

/* --- Commands --- */

/* JOB has no pods any more, and reaches the requested phase. */
static void settle(void *data)
{
	struct object *job = data, *pod = cluster_pod(job);
	bool again = object_is(job, "Restarting"), aborts = object_is(job, "Aborting");
	int retries = json_object_get_int(json_at(json_at(job->json, "status"), "retryCount"));
	const struct json_object *most = json_at(json_at(job->json, "spec"), "maxRetry");

	if (!again && !aborts && !object_is(job, "Terminating"))
		return;
	if (pod)
		pod_removed(pod);
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

/*
 * Volcano carries out a Command in some phases, whatever the uid of its target is (docs/facts.md).
 */
static void obey(void *data)
{
	struct command *c = data;
	struct object *job = object_find(JOBS, c->job);
	bool active = job && (object_is(job, "Pending") || object_is(job, "Running"));
	bool aborted = job && (object_is(job, "Aborting") || object_is(job, "Aborted"));
	struct json_object *status = job ? json_at(job->json, "status") : NULL;
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
					       json_object_get_int(json_at(status, "retryCount")) +
					       1));
	set_phase(job, phase);
	cluster_after(sim_delay(SIM_SERVER, 5 * SIM_S), settle, job);
}

void volcano_command(const char *body, size_t len, struct server_reply *ret)
{
	cleanup_free char *text = mem_copy(body, len);
	struct json_object *json = json_tokener_parse(text);
	struct command *c = new0(struct command);

	*c = (struct command){text_copy(json_get(json_at(json, "target"), "name")),
			      text_copy(json_get(json, "action"))};
	ctl_created(c->job, c->action);
	cluster_after(sim_delay(SIM_SERVER, 3 * SIM_S), obey, c);
	server_reply_with(ret, 201, text_copy(text));
	json_object_put(json);
}

static void restored(void *data)
{
	struct object *job = data;
	bool lacks_pod = !cluster_pod(job);

	if (!*job->phase)
		return job_begins(job);
	if (object_is(job, "Pending") || object_is(job, "Running")) {
		if (lacks_pod)
			make_pod(job);
		pod_runs(job);
		job_runs(job);
		cluster_after(sim_delay(SIM_SERVER, 100 * SIM_S), job_ends, job);
	}
	settle(job);
}

const struct controller controller_volcano = {
	.source = "volcano",
	.api = JOB_API,
	.plural = "jobs",
	.kind = "Job",
	.begins = job_begins,
	.remove = remove_job,
	.restored = restored,
};
