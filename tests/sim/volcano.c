/* SPDX-License-Identifier: MIT */
/*
 * Volcano's controller: a job gets a phase and a pod, which is created again under the same name
 * after an eviction. In some phases the controller carries out Commands.
 */
#include <json-c/json_pointer.h>

#include "spec/base/mem.h"
#include "tests/sim/cluster.h"
#include "tests/sim/sim.h"

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

/* Start the container of the pod of the job DATA. */
static void pod_runs(void *data)
{
	struct object *pod = cluster_pod(data);

	if (pod && pod->n_runs == 0)
		pod_begin(pod);
}

/* Let the node evict the pod of the job DATA. The pod is created again under the same name. */
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
		fails = fails && !pod->reruns; /* the kubelet restarts a pod that reruns */
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

/* Remove JOB's pod, and set the phase that a Command requested. */
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

/* Volcano carries out a Command in some phases, and ignores the target's uid (docs/facts.md). */
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

/* --- MCAD --- */

/*
 * MCAD's controller of AppWrappers v1beta1, as recorded (tests/replay/data) and described in
 * docs/facts.md ("MCAD and AppWrapper"):
 *
 *  Queueing    the job is not yet at the head of the queue
 *  HeadOfLine  the job is at the head of the queue. The controller tries to dispatch it
 *  Backoff     there is not enough capacity for the job. It returns to the head later
 *  Failed      the job's items can't be created. The job returns to Queueing, and then to the head
 *  Dispatched  the job's pod exists. The state is Running, even after the pod has ended
 *
 * Some minutes after the pod has failed, the controller requeues the job as often as the job
 * allows: the condition is Backoff again, and the pod is deleted and created again under the same
 * name. Only the pod shows how the job has ended.
 */

/* A job is requeued REQUEUE_S to REQUEUE_S + LATER_S seconds after its pod has failed. */
#define REQUEUE_S 60
#define LATER_S	  120

static struct json_object *conditions_of(const struct object *job)
{
	struct json_object *status = job_status(job), *list;

	if (!json_object_object_get_ex(status, "conditions", &list)) {
		list = json_object_new_array();
		json_object_object_add(status, "conditions", list);
	}
	return list;
}

/*
 * Set a condition of JOB. If the condition exists, it keeps its position; Dispatched and
 * PreemptCandidate get a new time. Failed is appended again unless it is the last one.
 */
static void condition(const struct object *job, const char *type, const char *reason,
		      const char *message)
{
	struct json_object *list = conditions_of(job), *c = NULL;
	size_t n = json_object_array_length(list);
	char when[32];
	cleanup_free char *micro = text_print("%.19s.%06uZ", cluster_time(when),
					      (unsigned)(sim_clock_ns() / 1000 % 1000000));

	for (size_t i = streq(type, "Failed") && n ? n - 1 : 0; i < n && !c; i++) {
		c = json_object_array_get_idx(list, i);
		if (!streq(json_get(c, "type"), type) || !streq(json_get(c, "reason"), reason))
			c = NULL;
	}
	if (c && (streq(type, "Dispatched") || streq(type, "PreemptCandidate")))
		json_put(c, "lastTransitionMicroTime", micro);
	if (c)
		return;
	c = json_object_new_object();
	json_put(c, "type", type);
	json_put(c, "status", "True");
	json_put(c, "reason", reason);
	json_put(c, "message", message);
	json_put(c, "lastTransitionMicroTime", micro);
	json_object_array_add(list, c);
}

static void set_state(struct object *job, const char *state, const char *type, const char *reason,
		      const char *message)
{
	condition(job, type, reason, message);
	json_put(job_status(job), "state", state);
	json_put(job_status(job), "queuejobstate", type);
	sim_log("server", "job %s: %s, %s", job->name, state, type);
	object_changed(job, "MODIFIED");
}

static void comes_to_head(void *data);

static void is_behind(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Pending"))
		return;
	set_state(job, "Pending", "Queueing", "AwaitingHeadOfLine", "");
	controller_soon(3, comes_to_head, job);
}

static void runs(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Pending"))
		return;
	job->phase = "Running";
	set_state(job, "Running", "Dispatched", "AppWrapperRunnable", "");
}

static void is_dispatched(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Pending"))
		return;
	if (sim_chance(SIM_SERVER, 150)) {
		set_state(job, "Pending", "Backoff", "AppWrapperNotRunnable.",
			  "Insufficient resources to dispatch AppWrapper.");
		return controller_soon(20, comes_to_head, job);
	}
	if (sim_chance(SIM_SERVER, 150)) {
		set_state(job, "Failed", "Failed", "ItemCreationFailure.",
			  "creation failure: quota");
		return cluster_after(2 * SIM_S + sim_delay(SIM_SERVER, SIM_S), is_behind, job);
	}
	/* After a restore of etcd, the controller may dispatch the job a second time. */
	if (!cluster_pod(job))
		job_make_pod(job);
	controller_soon(2, runs, job);
}

static void comes_to_head(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Pending"))
		return;
	set_state(job, "Pending", "HeadOfLine", "FrontOfQueue.", "");
	controller_soon(2, is_dispatched, job);
}

static void begins(void *data)
{
	struct object *job = data;

	if (job->gone)
		return;
	job->phase = "Pending";
	set_state(job, "Pending", "Init", "", "");
	is_behind(job);
}

static bool goes_on(const struct object *job)
{
	struct json_object *most;

	return json_pointer_get(job->json, "/spec/schedulingSpec/requeuing/maxNumRequeuings",
				&most) == 0 &&
	       job->attempt < (unsigned)json_object_get_int(most);
}

/* The pod must be gone before the next one is created under its name. */
static void is_put_back(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Pending"))
		return;
	if (cluster_pod(job))
		return controller_soon(3, is_put_back, job);
	comes_to_head(job);
}

static void backs_off(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Pending"))
		return;
	set_state(job, "Pending", "Backoff", "PreemptionTriggered", "");
	job_delete_pods(job, true);
	controller_soon(5, is_put_back, job);
}

/* The controller counts the requeue while the state is still Running. */
static void requeues(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Running"))
		return;
	job->phase = "Pending";
	json_object_object_add(job_status(job), "numberOfRequeueings",
			       json_object_new_int((int)++job->attempt));
	condition(job, "PreemptCandidate", "MinPodsNotRunning",
		  "Insufficient number of Running and Completed pods.");
	sim_log("server", "job %s will be requeued", job->name);
	object_changed(job, "MODIFIED");
	controller_soon(2, backs_off, job);
}

static void pod_over(struct object *job, struct object *pod)
{
	(void)pod;
	if (object_is(job, "Running"))
		cluster_after(REQUEUE_S * SIM_S + sim_delay(SIM_SERVER, LATER_S * SIM_S), requeues,
			      job);
	else
		server_ended(job);
}

static void mcad_remove(void *data)
{
	struct object *job = data;

	if (job->gone)
		return;
	object_drop(job);
	job_delete_pods(job, true);
}

static void mcad_restored(void *data)
{
	struct object *job = data, *pod = cluster_pod(job);

	if (!*job->phase)
		return begins(job);
	if (object_is(job, "Pending") && pod && !pod->deleted && !pod->over)
		return runs(job);
	if (object_is(job, "Pending"))
		return backs_off(job);
	if (pod && pod->deleted)
		return controller_soon(3, cluster_restored, job);
	if (pod && pod->over)
		return job_over_again(job, pod);
	/*
	 * The controller learns only from the pod that the job has ended. So without a pod it
	 * starts the job again.
	 */
	if (!pod) {
		job->phase = "Running";
		job_make_pod(job);
	}
}

const struct controller controller_mcad = {
	.source = "mcad",
	.api = "workload.codeflare.dev/v1beta1",
	.plural = "appwrappers",
	.kind = "AppWrapper",
	.begins = begins,
	.remove = mcad_remove,
	.restored = mcad_restored,
	.goes_on = goes_on,
	.pod_over = pod_over,
};
