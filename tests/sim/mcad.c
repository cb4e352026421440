/* SPDX-License-Identifier: MIT */
/*
 * MCAD's controller of AppWrappers v1beta1, as recorded (tests/replay/data) and described in docs/facts.md ("MCAD and
 * AppWrapper"):
 *
 *	Queueing     at first, until the job is at the head of the queue
 *	HeadOfLine   the job is dispatched, or can't be
 *	Backoff      it can't be dispatched for lack of capacity, and returns to the head later
 *	Failed       its items can't be created; alternates with Pending until they can
 *	Dispatched   its pod exists some moments before the state is Running, which the state then remains
 *	Backoff      some minutes after a failure the job is requeued: its pod is deleted, and created again under the
 *		     same name, as often as the job allows
 *
 * Only the job's pod shows how the job has ended.
 */
#include <json-c/json_pointer.h>

#include "spec/base/mem.h"
#include "tests/sim/cluster.h"
#include "tests/sim/loop.h"

#define REQUEUE_S 60  /* after which a job whose pod has failed may be requeued, */
#define LATER_S	  120 /* or this much later */

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
 * An existing condition keeps its position, and gets a new time if it is about a dispatch or its
 * end. A condition about items that can't be created is appended again unless it is the last.
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
	/* After a restore of etcd the controller may start the job a second time. */
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
	sim_log("server", "job %s is to be put back", job->name);
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

static void remove_job(void *data)
{
	struct object *job = data;

	if (job->gone)
		return;
	object_drop(job);
	job_delete_pods(job, true);
}

static void restored(void *data)
{
	struct object *job = data, *pod = cluster_pod(job);

	if (!*job->phase)
		return begins(job);
	if (object_is(job, "Pending") && pod && !pod->deleted && !pod->over)
		return runs(job);
	if (object_is(job, "Pending"))
		return backs_off(job);
	if (pod && pod->deleted)
		return controller_soon(3, restored, job);
	if (pod && pod->over)
		return job_over_again(job, pod);
	/* The controller only knows of an end by the pod. */
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
	.remove = remove_job,
	.restored = restored,
	.goes_on = goes_on,
	.pod_over = pod_over,
};
