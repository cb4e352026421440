/* SPDX-License-Identifier: MIT */
/*
 * The controllers of AppWrappers, JobSets and batch Jobs, as recorded (tests/replay/data). Each job
 * has one pod at a time. A pod's container exits some moments before the pod's phase shows it, and
 * the controller notices the new phase some moments after that. If a pod has failed or was evicted,
 * the controller replaces it as often as the job allows.
 *
 *  AppWrapper  the job is Suspended at first. A minute after a failure, the controller deletes the
 *              pods and creates them again
 *  JobSet      after a failure, the JobSet restarts: all pods are deleted, and then created again.
 *              If the limits of its Jobs allow it, a Job replaces only the failed pod instead
 *  Job         pods that have ended remain. Conditions such as FailureTarget announce the end of
 *              the Job
 *
 * Until the job has ended, each controller obeys spec.suspend, no matter who sets it.
 */
#include <stdio.h>

#include "spec/base/mem.h"
#include "tests/sim/cluster.h"

#define WRAPPER_API "workload.codeflare.dev/v1beta2"
#define SET_API	    "jobset.x-k8s.io/v1alpha2"
#define LIMIT	    "workload.codeflare.dev.appwrapper/retryLimit"
#define SET_LABEL   "jobset.sigs.k8s.io/"
#define BATCH	    "batch.kubernetes.io/"
#define GRACE_S	    60 /* how long an AppWrapper's controller leaves failed pods alone */
#define AGAIN_S	    10 /* how long a Job waits before it replaces a failed pod */

void controller_soon(unsigned seconds, sim_fn fn, void *data)
{
	cluster_after(sim_delay(SIM_SERVER, seconds * SIM_S), fn, data);
}

/* Call FN(DATA), a step of a node, within SECONDS. A restore of etcd does not cancel the call. */
static void node_soon(unsigned seconds, sim_fn fn, void *data)
{
	sim_after(sim_delay(SIM_SERVER, seconds * SIM_S), SIM_WORLD, fn, data);
}

static bool is_kind(const struct object *job, const char *source)
{
	return streq(job->of->controller->source, source);
}

/* --- a job's status --- */

struct json_object *job_status(const struct object *job)
{
	return json_at(job->json, "status");
}

static struct json_object *spec_of(const struct object *job)
{
	return json_at(job->json, "spec");
}

static void put_int(struct json_object *o, const char *key, unsigned n)
{
	json_object_object_add(o, key, json_object_new_int((int)n));
}

/* Return the number KEY of O, or NONE if O has no such key. */
static unsigned number(struct json_object *o, const char *key, unsigned none)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? (unsigned)json_object_get_int(v) : none;
}

struct json_object *cluster_condition(struct json_object *status, const char *type)
{
	struct json_object *list, *c = NULL;

	if (!json_object_object_get_ex(status, "conditions", &list)) {
		list = json_object_new_array();
		json_object_object_add(status, "conditions", list);
	}
	for (size_t i = 0; i < json_object_array_length(list) && !c; i++)
		if (streq(json_get(json_object_array_get_idx(list, i), "type"), type))
			c = json_object_array_get_idx(list, i);
	if (!c) {
		c = json_object_new_object();
		json_put(c, "type", type);
		json_object_array_add(list, c);
	}
	return c;
}

/* Set the condition TYPE of JOB to True if HOLDS, else to False. */
static void condition(struct object *job, const char *type, bool holds, const char *reason)
{
	struct json_object *c = cluster_condition(job_status(job), type);
	const char *word = holds ? "True" : "False";
	char when[32];

	if (!streq(json_get(c, "status"), word))
		json_put(c, "lastTransitionTime", cluster_time(when));
	json_put(c, "status", word);
	json_put(c, "reason", reason);
	json_put(c, "message", "");
}

static void set_phase(struct object *job, const char *phase)
{
	job->phase = phase;
	sim_log("server", "job %s: %s", job->name, phase);
	object_changed(job, "MODIFIED");
}

static bool is_over(const struct object *job)
{
	return job->gone || object_is(job, "Completed") || object_is(job, "Failed") ||
	       object_is(job, "Terminated");
}

/* --- pods --- */

/* Return the pod template inside a JobSet, a Job or an AppWrapper. */
static struct json_object *template_of(const struct object *job)
{
	struct json_object *spec = spec_of(job);

	if (is_kind(job, "mcad"))
		return json_at(json_object_array_get_idx(json_at(json_at(spec, "resources"),
								 "GenericItems"),
							 0),
			       "generictemplate");
	if (is_kind(job, "appwrapper"))
		return json_at(json_object_array_get_idx(json_at(spec, "components"), 0),
			       "template");
	if (is_kind(job, "jobset"))
		spec = json_at(json_at(json_object_array_get_idx(json_at(spec, "replicatedJobs"),
								 0),
				       "template"),
			       "spec");
	return json_at(spec, "template");
}

/* Return the spec of the Job that creates the pods. */
static struct json_object *job_spec(const struct object *job)
{
	struct json_object *spec = spec_of(job);

	if (is_kind(job, "job"))
		return spec;
	return json_at(json_at(json_object_array_get_idx(json_at(spec, "replicatedJobs"), 0),
			       "template"),
		       "spec");
}

static void label_wrapped(const struct object *job, struct json_object *meta)
{
	struct json_object *labels = json_at(meta, "labels");

	if (is_kind(job, "appwrapper")) {
		json_put(labels, "workload.codeflare.dev/appwrapper", job->name);
		return;
	}
	json_put(labels, "appwrapper.mcad.ibm.com", job->name);
	json_put(labels, "resourceName", json_get(meta, "name"));
}

static void label_indexed(const struct object *job, struct json_object *meta)
{
	struct json_object *labels = json_at(meta, "labels"), *notes = json_at(meta, "annotations");
	bool of_set = is_kind(job, "jobset");
	cleanup_free char *owner = text_print(of_set ? "%s-main-0" : "%s", job->name);
	cleanup_free char *name = text_print("%s-0-%05x", owner, sim_below(SIM_SERVER, 1u << 20));
	cleanup_free char *failures = text_print("%u", job->failures);
	cleanup_free char *attempt = text_print("%u", job->attempt);

	json_put(meta, "name", name);
	json_put(labels, BATCH "job-name", owner);
	json_put(labels, "job-name", owner);
	json_put(labels, BATCH "job-completion-index", "0");
	json_put(notes, BATCH "job-completion-index", "0");
	if (number(job_spec(job), "backoffLimitPerIndex", 0) > 0)
		json_put(notes, BATCH "job-index-failure-count", failures);
	if (!of_set)
		return;
	json_put(labels, SET_LABEL "jobset-name", job->name);
	json_put(labels, SET_LABEL "jobset-uid", object_uid(job));
	json_put(labels, SET_LABEL "replicatedjob-name", "main");
	json_put(labels, SET_LABEL "replicatedjob-replicas", "1");
	json_put(labels, SET_LABEL "job-index", "0");
	json_put(labels, SET_LABEL "restart-attempt", attempt);
}

/*
 * Return the link of JOB's current attempt. Remove the link of an earlier attempt, and create a new
 * one if needed.
 */
static struct object *need_link(const struct object *job)
{
	cleanup_free char *name = text_print("%s-main-0", job->name);
	cleanup_free char *text = text_print(
		"{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"%s\",\"kind\":"
		"\"%s\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}]},\"spec\":{}}",
		name, job->of->api, job->of->kind, job->name, object_uid(job));
	struct object *link = object_find(LINKS, name);

	if (link && (link->attempt != job->attempt || link->job != job)) {
		object_drop(link);
		link = NULL;
	}
	if (!link) {
		link = object_add(resource_of(LINKS), json_tokener_parse(text));
		link->attempt = job->attempt;
		link->job = (struct object *)(uintptr_t)job;
	}
	return link;
}

static void drop_link(const struct object *job)
{
	cleanup_free char *name = text_print("%s-main-0", job->name);
	struct object *link = object_find(LINKS, name);

	if (link && link->job == job)
		object_drop(link);
}

static void pod_starts(void *data);

void job_make_pod(struct object *job)
{
	struct json_object *template = template_of(job), *meta;
	struct json_object *first =
		json_object_array_get_idx(json_at(json_at(template, "spec"), "containers"), 0);
	const char *container = json_get(first, "name");
	bool wrapped = streq(job->of->kind, "AppWrapper"), of_set = is_kind(job, "jobset");
	cleanup_free char *owner = text_print(of_set ? "%s-main-0" : "%s", job->name);
	const struct object *link = of_set && server_has_chains() ? need_link(job) : NULL;
	cleanup_free char *uid =
		link	 ? text_copy(object_uid(link))
		: of_set ? text_print("%08x-0000-4000-9000-%012x", (unsigned)sim_random(SIM_SERVER),
				      job->attempt)
			 : text_copy(object_uid(job));
	bool reruns = sim_chance(SIM_SERVER, sim_faults.rerun);
	cleanup_free char *text = text_print(
		"{\"metadata\":%s,\"spec\":{\"nodeName\":\"n1\",\"restartPolicy\":\"%s\",\"containers\":"
		"[{\"name\":\"%s\"}]},\"status\":{\"phase\":\"Pending\"}}",
		json_print(json_at(template, "metadata")), reruns ? "OnFailure" : "Never",
		container);
	cleanup_free char *owners = text_print(
		"[{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}]",
		wrapped ? job->of->api
		: link	? link->of->api
			: "batch/v1",
		wrapped ? "AppWrapper"
		: link	? link->of->kind
			: "Job",
		owner, uid);
	struct json_object *json = json_tokener_parse(text);
	struct object *pod;

	meta = json_at(json, "metadata");
	if (wrapped)
		label_wrapped(job, meta);
	else
		label_indexed(job, meta);
	json_object_object_add(meta, "ownerReferences", json_tokener_parse(owners));
	pod = pod_add(job, json, text_copy(container));
	pod->reruns = reruns;
	node_soon(10, pod_starts, pod);
}

/*
 * Request the deletion of O. Return true, and do nothing, if it was removed or its deletion was
 * requested before.
 */
static bool is_deleted(struct object *o)
{
	char when[32];

	if (o->gone || o->deleted)
		return true;
	o->deleted = true;
	json_put(json_at(o->json, "metadata"), "deletionTimestamp", cluster_time(when));
	object_changed(o, "MODIFIED");
	return false;
}

static void deleted(void *data)
{
	struct object *pod = data;

	if (!pod->gone && pod_is_running(pod)) {
		pod_end(pod);
		pod_ended(pod, "Failed", 137);
	}
	pod_removed(pod);
}

/* Request the deletion of POD, which is removed some time later. */
static void delete_pod(struct object *pod)
{
	if (is_deleted(pod))
		return;
	node_soon(5, deleted, pod);
}

void job_delete_pods(const struct object *job, bool ended)
{
	struct object *o;

	for (size_t k = 0; (o = object_at(k)); k++)
		if (o->in == PODS && !o->gone && o->job == job && (ended || !o->over))
			delete_pod(o);
}

/* True if JOB has a pod that has not ended, or that is being deleted. */
static bool has_active(const struct object *job)
{
	const struct object *o;

	for (size_t k = 0; (o = object_at(k)); k++)
		if (o->in == PODS && !o->gone && o->job == job && (!o->over || o->deleted))
			return true;
	return false;
}

/* --- how a pod ends --- */

static unsigned limit_of(const struct object *job)
{
	struct json_object *spec = job_spec(job);

	return number(spec, "backoffLimitPerIndex", number(spec, "backoffLimit", 6));
}

static unsigned wrapper_limit(const struct object *job)
{
	const char *text = json_get(json_at(json_at(job->json, "metadata"), "annotations"), LIMIT);

	return (unsigned)strtoul(text, NULL, 10);
}

static bool indexed_is_retried(const struct object *job)
{
	if (job->failures < limit_of(job))
		return true;
	return is_kind(job, "jobset") &&
	       job->attempt < number(json_at(spec_of(job), "failurePolicy"), "maxRestarts", 0);
}

static bool wrapper_is_retried(const struct object *job)
{
	return job->attempt < wrapper_limit(job);
}

/* True if JOB is restarted after one more failure of its pod. */
static bool goes_on(const struct object *job)
{
	return job->of->controller->goes_on(job);
}

static void pod_over(void *data)
{
	struct object *pod = data, *job = pod->job;

	if (job->gone || pod->deleted || pod->counted)
		return;
	pod->counted = true;
	job->of->controller->pod_over(job, pod);
}

/* Set the pod's phase some moments after its container has exited. */
static void pod_says(void *data)
{
	struct object *pod = data;

	if (pod->gone)
		return;
	pod_ended(pod, pod->failed ? "Failed" : "Succeeded", pod->failed);
	controller_soon(2, pod_over, pod);
}

/*
 * POD's container exits while its job runs. Decide the outcome of the job now, although its
 * controller reports it later.
 */
static void ends(struct object *pod, bool failed)
{
	struct object *job = pod->job;

	pod->failed = failed;
	pod_end(pod);
	pod_ended(pod, "Running", failed);
	if (!failed || !goes_on(job))
		job->phase = failed ? "Failed" : "Completed";
	node_soon(3, pod_says, pod);
}

void job_over_again(struct object *job, struct object *pod)
{
	pod->counted = false;
	if (!pod->failed || !goes_on(job))
		job->phase = pod->failed ? "Failed" : "Completed";
	controller_soon(2, pod_over, pod);
}

static void container_ends(void *data)
{
	struct object *pod = data;

	if (pod->gone || pod->over || pod->deleted)
		return;
	if (pod_is_running(pod) && object_is(pod->job, "Running"))
		ends(pod, !pod->reruns && sim_chance(SIM_SERVER, 300));
	else
		sim_after(5 * SIM_S, SIM_WORLD, container_ends, pod);
}

/* Let the node evict POD. */
static void evict(void *data)
{
	struct object *pod = data;

	if (pod->deleted || !pod_is_running(pod) || !object_is(pod->job, "Running"))
		return;
	json_put(job_status(pod), "reason", "Evicted");
	ends(pod, true);
}

static void pod_starts(void *data)
{
	struct object *pod = data;

	if (pod->gone || pod->over || pod->deleted)
		return;
	pod_begin(pod);
	if (sim_chance(SIM_SERVER, sim_faults.evicted))
		node_soon(60, evict, pod);
	node_soon(100, container_ends, pod);
}

/* --- JobSets and Jobs --- */

static void indexed_over(void *data)
{
	struct object *job = data;
	bool of_set = is_kind(job, "jobset"), good = object_is(job, "Completed");

	if (job->gone)
		return;
	if (of_set)
		condition(job, good ? "Completed" : "Failed", true,
			  good ? "AllJobsCompleted" : "FailedJobs");
	else
		condition(job, good ? "Complete" : "Failed", true,
			  good				 ? "CompletionsReached"
			  : object_is(job, "Terminated") ? "DeadlineExceeded"
							 : "BackoffLimitExceeded");
	set_phase(job, job->phase);
	server_ended(job);
}

static void indexed_pod(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Running"))
		return;
	if (has_active(job))
		return controller_soon(3, indexed_pod, job);
	job_make_pod(job);
}

/* Act on the end of POD, a pod of JOB. */
static void indexed_pod_over(struct object *job, struct object *pod)
{
	if (object_is(job, "Terminated"))
		return;
	if (!is_over(job)) {
		bool again = job->failures < limit_of(job);

		job->failures += again;
		if (is_kind(job, "job")) {
			put_int(job_status(job), "failed", job->failures);
		} else if (!again) {
			job->failures = 0;
			put_int(job_status(job), "restarts", ++job->attempt);
			job_delete_pods(job, true);
		}
		object_changed(job, "MODIFIED");
		cluster_after(AGAIN_S * SIM_S, indexed_pod, job);
		return;
	}
	if (is_kind(job, "job") && !pod->failed) {
		condition(job, "SuccessCriteriaMet", true, "CompletionsReached");
	} else if (is_kind(job, "job")) {
		put_int(job_status(job), "failed", job->failures + 1);
		condition(job, "FailureTarget", true, "BackoffLimitExceeded");
	}
	object_changed(job, "MODIFIED");
	controller_soon(2, indexed_over, job);
}

static bool is_asked_to_wait(const struct object *job)
{
	struct json_object *suspend;

	return json_object_object_get_ex(spec_of(job), "suspend", &suspend) &&
	       json_object_get_boolean(suspend);
}

static void indexed_begins(void *data)
{
	struct object *job = data;
	char when[32];

	if (job->gone || *job->phase)
		return;
	if (is_asked_to_wait(job)) {
		job->suspended = !job->queued;
		condition(job, "Suspended", true,
			  is_kind(job, "job") ? "JobSuspended" : "SuspendedJobs");
		return set_phase(job, "Aborted");
	}
	if (is_kind(job, "jobset"))
		put_int(job_status(job), "restarts", 0);
	else
		json_put(job_status(job), "startTime", cluster_time(when));
	set_phase(job, "Running");
	job_make_pod(job);
}

static void indexed_suspends(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Aborting"))
		return;
	condition(job, "Suspended", true, is_kind(job, "job") ? "JobSuspended" : "SuspendedJobs");
	job_delete_pods(job, false);
	set_phase(job, "Aborted");
}

static void indexed_resumes(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Restarting"))
		return;
	condition(job, "Suspended", false, is_kind(job, "job") ? "JobResumed" : "ResumeJobs");
	set_phase(job, "Running");
	indexed_pod(job);
}

static void indexed_terminates(void *data)
{
	struct object *job = data;

	if (job->gone)
		return;
	condition(job, "FailureTarget", true, "DeadlineExceeded");
	job_delete_pods(job, false);
	object_changed(job, "MODIFIED");
	controller_soon(10, indexed_over, job);
}

/* Schedule the reaction to the new VALUE of spec.suspend: SUSPENDS if it is true, else RESUMES. */
static void suspend(struct object *job, const struct json_object *value, sim_fn suspends,
		    sim_fn resumes)
{
	bool is_suspended = object_is(job, "Aborting") || object_is(job, "Aborted");

	if (json_object_get_boolean(value) && !is_suspended) {
		ctl_obeyed(job->name, "AbortJob");
		job->phase = "Aborting";
		job->suspended = true;
		controller_soon(3, suspends, job);
	} else if (!json_object_get_boolean(value) && is_suspended) {
		ctl_obeyed(job->name, "ResumeJob");
		job->phase = "Restarting";
		controller_soon(3, resumes, job);
	}
}

static void indexed_patched(struct object *job, const char *key, const struct json_object *value)
{
	if (is_over(job))
		return;
	if (streq(key, "suspend"))
		return suspend(job, value, indexed_suspends, indexed_resumes);
	if (streq(key, "activeDeadlineSeconds") && object_is(job, "Running")) {
		ctl_obeyed(job->name, "TerminateJob");
		job->phase = "Terminated";
		controller_soon(3, indexed_terminates, job);
	}
}

static void indexed_restored(void *data)
{
	struct object *job = data, *pod = cluster_pod(job);

	if (!*job->phase)
		indexed_begins(job);
	else if (object_is(job, "Running") && pod && pod->over && !pod->counted && !pod->deleted)
		job_over_again(job, pod);
	else if (object_is(job, "Terminated"))
		indexed_terminates(job);
	else if (is_over(job))
		indexed_over(job);
	else
		indexed_pod(job);
	indexed_suspends(job);
	indexed_resumes(job);
}

static void indexed_remove(void *data)
{
	struct object *job = data;

	if (job->gone)
		return;
	object_drop(job);
	drop_link(job);
	job_delete_pods(job, true);
}

/* --- AppWrappers --- */

static bool wrapper_is(const struct object *job, const char *phase)
{
	return !job->gone && streq(json_get(job_status(job), "phase"), phase);
}

static void wrapper_says(struct object *job, const char *phase, const char *word)
{
	json_put(job_status(job), "phase", phase);
	sim_log("server", "job %s: %s", job->name, phase);
	job->phase = word;
	object_changed(job, "MODIFIED");
}

static void wrapper_runs(void *data)
{
	struct object *job = data;

	if (!wrapper_is(job, "Resuming"))
		return;
	job_make_pod(job);
	condition(job, "Unhealthy", false, "FoundNoFailedPods");
	/* The controller notices a suspension by a user only once the job is Running. */
	wrapper_says(job, "Running", object_is(job, "Aborting") ? "Aborting" : "Running");
}

static void wrapper_goes_on(struct object *job)
{
	struct object *pod = cluster_pod(job);

	job->phase = "Running";
	if (pod->over)
		job_over_again(job, pod);
}

static void wrapper_resumes(void *data)
{
	struct object *job = data;

	/* A user has suspended the job and resumed it before the controller noticed. */
	if (wrapper_is(job, "Running") && object_is(job, "Restarting"))
		return wrapper_goes_on(job);
	if (!wrapper_is(job, "Suspended") && !wrapper_is(job, "Resetting"))
		return;
	if (wrapper_is(job, "Suspended") && object_is(job, "Aborting"))
		job->phase = "Aborted";
	if (object_is(job, "Aborted"))
		return;
	if (has_active(job))
		return controller_soon(3, wrapper_resumes, job);
	condition(job, "QuotaReserved", true, "Resuming");
	condition(job, "ResourcesDeployed", true, "Resuming");
	condition(job, "PodsReady", false, "Resuming");
	wrapper_says(job, "Resuming", object_is(job, "Aborting") ? "Aborting" : "Running");
	controller_soon(3, wrapper_runs, job);
}

static void wrapper_begins(void *data)
{
	struct object *job = data;

	if (job->gone)
		return;
	if (!*job->phase && is_asked_to_wait(job)) {
		job->suspended = !job->queued;
		return wrapper_says(job, "Suspended", "Aborted");
	}
	wrapper_says(job, "Suspended", *job->phase ? job->phase : "Pending");
	controller_soon(3, wrapper_resumes, job);
}

/* Set PHASE in the status of JOB, which has lost its pods. WORD is PHASE in Volcano's terms. */
static void wrapper_cleared(struct object *job, const char *phase, const char *word)
{
	condition(job, "DeletingResources", false, "DeletionComplete");
	condition(job, "QuotaReserved", false, phase);
	condition(job, "ResourcesDeployed", false, phase);
	wrapper_says(job, phase, word);
}

static void wrapper_suspended(void *data)
{
	struct object *job = data;

	if (!wrapper_is(job, "Suspending"))
		return;
	if (cluster_pod(job))
		return controller_soon(3, wrapper_suspended, job);
	/* A user may have resumed the job meanwhile. The controller notices this only here. */
	if (json_object_get_boolean(json_at(spec_of(job), "suspend")))
		return wrapper_cleared(job, "Suspended", "Aborted");
	wrapper_cleared(job, "Suspended", "Restarting");
	controller_soon(3, wrapper_resumes, job);
}

static void wrapper_suspends(void *data)
{
	struct object *job = data;

	if (!object_is(job, "Aborting"))
		return;
	if (wrapper_is(job, "Suspended")) {
		job->phase = "Aborted";
		return;
	}
	if (!wrapper_is(job, "Running"))
		return controller_soon(3, wrapper_suspends, job);
	job_delete_pods(job, true);
	condition(job, "DeletingResources", true, "DeletionInitiated");
	wrapper_says(job, "Suspending", "Aborting");
	controller_soon(5, wrapper_suspended, job);
}

static void wrapper_failed(void *data)
{
	struct object *job = data;

	if (!wrapper_is(job, "Failed"))
		return;
	if (cluster_pod(job))
		return controller_soon(3, wrapper_failed, job);
	wrapper_cleared(job, "Failed", "Failed");
	server_ended(job);
}

/* JOB's pod has failed or is missing. Restart the job, or let it fail. */
static void wrapper_retries(struct object *job)
{
	job_delete_pods(job, true);
	condition(job, "DeletingResources", true, "DeletionInitiated");
	if (object_is(job, "Failed")) {
		wrapper_says(job, "Failed", "Failed");
		controller_soon(3, wrapper_failed, job);
		return;
	}
	put_int(job_status(job), "resettingCount", ++job->attempt);
	condition(job, "ResourcesDeployed", false, "Resetting");
	wrapper_says(job, "Resetting", "Running");
	controller_soon(3, wrapper_resumes, job);
}

/* Act at the end of the grace period after POD's failure. */
static void wrapper_acts(void *data)
{
	const struct object *pod = data;
	struct object *job = pod->job;

	if (wrapper_is(job, "Running") && !pod->deleted &&
	    (object_is(job, "Running") || object_is(job, "Failed")))
		wrapper_retries(job);
}

bool job_has_grace(const struct object *job)
{
	return !job->hostile && is_kind(job, "appwrapper") && object_is(job, "Failed") &&
	       wrapper_is(job, "Running");
}

static void wrapper_pod_over(struct object *job, struct object *pod)
{
	if (object_is(job, "Completed")) {
		condition(job, "QuotaReserved", false, "Succeeded");
		wrapper_says(job, "Succeeded", "Completed");
		server_ended(job);
	} else if (pod->failed && (object_is(job, "Running") || object_is(job, "Failed"))) {
		condition(job, "Unhealthy", true, "FoundFailedPods");
		object_changed(job, "MODIFIED");
		cluster_after(GRACE_S * SIM_S, wrapper_acts, pod);
	}
}

static void wrapper_patched(struct object *job, const char *key, const struct json_object *value)
{
	/*
	 * A job whose pod has ended can still be suspended: the controller checks spec.suspend
	 * first, and only then the pods.
	 */
	bool over = wrapper_is(job, "Succeeded") || wrapper_is(job, "Failed") ||
		    wrapper_is(job, "Terminating");

	if (!over && streq(key, "suspend"))
		suspend(job, value, wrapper_suspends, wrapper_resumes);
}

static void wrapper_removed(void *data)
{
	struct object *job = data;

	if (cluster_pod(job))
		return controller_soon(3, wrapper_removed, job);
	object_drop(job);
}

static void wrapper_remove(void *data)
{
	struct object *job = data;

	if (is_deleted(job))
		return;
	job_delete_pods(job, true);
	condition(job, "DeletingResources", true, "DeletionInitiated");
	wrapper_says(job, "Terminating", job->phase);
	controller_soon(5, wrapper_removed, job);
}

static void wrapper_restored(void *data)
{
	struct object *job = data, *pod = cluster_pod(job);

	if (!*job->phase)
		return wrapper_begins(job);
	if (wrapper_is(job, "Running") && !object_is(job, "Aborting")) {
		if (pod && pod->deleted)
			return controller_soon(3, cluster_restored, job);
		if (pod)
			return wrapper_goes_on(job);
		job->phase = goes_on(job) ? "Running" : "Failed";
		return wrapper_retries(job);
	}
	wrapper_suspends(job);
	wrapper_suspended(job);
	wrapper_resumes(job);
	wrapper_runs(job);
	wrapper_failed(job);
	if (wrapper_is(job, "Terminating"))
		wrapper_removed(job);
}

void job_queue(struct object *job, bool waits)
{
	bool wrapped = is_kind(job, "appwrapper");
	bool is_suspended = object_is(job, "Aborting") || object_is(job, "Aborted");

	json_object_object_add(spec_of(job), "suspend", json_object_new_boolean(waits));
	object_changed(job, "MODIFIED");
	if (waits == is_suspended || !*job->phase)
		return;
	job->phase = waits ? "Aborting" : "Restarting";
	if (wrapped)
		controller_soon(3, waits ? wrapper_suspends : wrapper_resumes, job);
	else
		controller_soon(3, waits ? indexed_suspends : indexed_resumes, job);
}

const struct controller controller_appwrapper = {
	.source = "appwrapper",
	.api = WRAPPER_API,
	.plural = "appwrappers",
	.kind = "AppWrapper",
	.begins = wrapper_begins,
	.remove = wrapper_remove,
	.restored = wrapper_restored,
	.patched = wrapper_patched,
	.goes_on = wrapper_is_retried,
	.pod_over = wrapper_pod_over,
};

const struct controller controller_jobset = {
	.source = "jobset",
	.api = SET_API,
	.plural = "jobsets",
	.kind = "JobSet",
	.begins = indexed_begins,
	.remove = indexed_remove,
	.restored = indexed_restored,
	.patched = indexed_patched,
	.goes_on = indexed_is_retried,
	.pod_over = indexed_pod_over,
};

const struct controller controller_job = {
	.source = "job",
	.api = "batch/v1",
	.plural = "jobs",
	.kind = "Job",
	.begins = indexed_begins,
	.remove = indexed_remove,
	.restored = indexed_restored,
	.patched = indexed_patched,
	.goes_on = indexed_is_retried,
	.pod_over = indexed_pod_over,
};
