/* SPDX-License-Identifier: MIT */
/*
 * Kueue, in some histories. Jobs of its kinds wait in a queue until Kueue admits them. Kueue
 * reports this in a Workload for each job, and it suspends and resumes the job itself
 * (docs/facts.md, "Kueue"). Conditions and messages are those of recordings
 * (tests/replay/data/recordings/kueue_*):
 *
 *  the job...  | conditions of its Workload
 *  was created | none. A webhook has suspended the job
 *  waits       | QuotaReserved is False. Some jobs wait for ever
 *  is admitted | QuotaReserved and Admitted are True, Evicted is False. Kueue resumes the job
 *  is evicted  | Evicted is True. Kueue suspends the job. When its pods have ended, it waits again
 *  has ended   | Finished is True
 *  is removed  | Finished is True. Kueue removes the Workload soon
 *
 * kxfs must never show a waiting job as failed or cancelled.
 */
#include "spec/base/mem.h"
#include "spec/view/kueue.h"
#include "tests/sim/cluster.h"
#include "tests/sim/kernel.h"

#define WAITS_S	  100
#define EVICTED_S 60
#define MESSAGE                                                                                    \
	"couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor "    \
	"default-flavor, 50m more needed"
#define PREEMPTED                                                                                  \
	"Preempted to accommodate a workload (UID: other) due to prioritization in the ClusterQueue"

static bool here;

static void kueue_soon(unsigned seconds, sim_fn fn, void *data)
{
	sim_after(1 + sim_delay(SIM_KUEUE, seconds * SIM_S), SIM_WORLD, fn, data);
}

static void condition(const struct object *workload, const char *type, bool holds,
		      const char *reason, const char *message)
{
	struct json_object *c = cluster_condition(json_at(workload->json, "status"), type);
	char when[32];

	json_put(c, "status", holds ? "True" : "False");
	json_put(c, "reason", reason);
	json_put(c, "message", message);
	json_put(c, "lastTransitionTime", cluster_time(when));
}

static void changed(struct object *workload, const char *word)
{
	sim_log("kueue", "%s: %s", workload->job->name, word);
	object_changed(workload, "MODIFIED");
}

static bool is_over(const struct object *workload)
{
	const struct object *job = workload->job;

	return workload->gone || job->gone || job->deleted || object_is(job, "Completed") ||
	       object_is(job, "Failed") || object_is(job, "Terminated");
}

static void admits(void *data);

static void waits(struct object *workload)
{
	condition(workload, "QuotaReserved", false, "Pending", MESSAGE);
	changed(workload, "waits");
	/* Don't let a copy wait for ever: the final checks need it and its original to end. */
	if (!sim_chance(SIM_KUEUE, 100) || workload->job->foreign)
		kueue_soon(WAITS_S, admits, workload);
}

static void puts_back(void *data)
{
	struct object *workload = data;

	if (is_over(workload))
		return;
	if (cluster_pod(workload->job) && !cluster_pod(workload->job)->over)
		return kueue_soon(3, puts_back, workload);
	condition(workload, "Admitted", false, "NoReservation", "The workload has no reservation");
	condition(workload, "Requeued", true, "Preempted", PREEMPTED);
	json_object_object_del(json_at(workload->json, "status"), "admission");
	waits(workload);
}

static void evicts(void *data)
{
	struct object *workload = data;

	if (is_over(workload) || !object_is(workload->job, "Running"))
		return;
	condition(workload, "Evicted", true, "Preempted", PREEMPTED);
	condition(workload, "Preempted", true, "InClusterQueue", PREEMPTED);
	changed(workload, "evicted");
	job_queue(workload->job, true);
	kueue_soon(3, puts_back, workload);
}

static void resumes(void *data)
{
	struct object *workload = data;

	if (is_over(workload))
		return;
	job_queue(workload->job, false);
	if (sim_chance(SIM_KUEUE, 300))
		kueue_soon(EVICTED_S, evicts, workload);
}

static void admits(void *data)
{
	struct object *workload = data;

	if (is_over(workload))
		return;
	condition(workload, "QuotaReserved", true, "QuotaReserved",
		  "Quota reserved in ClusterQueue cq");
	condition(workload, "Admitted", true, "Admitted", "The workload is admitted");
	condition(workload, "Evicted", false, "QuotaReserved", "Previously: " PREEMPTED);
	json_put(json_at(json_at(workload->json, "status"), "admission"), "clusterQueue", "cq");
	changed(workload, "admitted");
	kueue_soon(2, resumes, workload);
}

static void looks(void *data)
{
	struct object *workload = data;

	if (is_over(workload))
		return;
	if (sim_chance(SIM_KUEUE, 600))
		waits(workload);
	else
		admits(workload);
}

static void makes(void *data)
{
	struct object *job = data, *workload;
	cleanup_free char *text = NULL;

	if (job->gone)
		return;
	text = text_print(
		"{\"metadata\":{\"name\":\"%s-%s-%05x\",\"labels\":{\"kueue.x-k8s.io/job-uid\":\"%s\"},"
		"\"ownerReferences\":[{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\","
		"\"controller\":true}]},\"spec\":{\"queueName\":\"default\",\"active\":true,"
		"\"priority\":0,\"podSets\":[{\"name\":\"main\",\"count\":1}]}}",
		job->of->controller->source, job->name, sim_below(SIM_KUEUE, 1u << 20),
		object_uid(job), job->of->api, job->of->kind, job->name, object_uid(job));
	workload = object_add(resource_of(WORKLOADS), json_tokener_parse(text));
	workload->job = job;
	kueue_soon(2, looks, workload);
}

static struct object *workload_of(const struct object *job)
{
	struct object *o;

	for (size_t k = 0; (o = object_at(k)); k++)
		if (o->in == WORKLOADS && !o->gone && o->job == job)
			return o;
	return NULL;
}

/* Return the queue label of the object JOB, or "". */
static const char *queue_of(struct json_object *job)
{
	struct json_object *meta, *labels, *queue;

	return json_object_object_get_ex(job, "metadata", &meta) &&
			       json_object_object_get_ex(meta, "labels", &labels) &&
			       json_object_object_get_ex(labels, SPEC_KUEUE_QUEUE, &queue)
		       ? json_object_get_string(queue)
		       : "";
}

bool kueue_is_here(void)
{
	return here;
}

void kueue_begin(void)
{
	static const char local[] =
		"{\"metadata\":{\"name\":\"default\"},\"spec\":{\"clusterQueue\":\"cq\"},\"status\":{"
		"\"conditions\":[{\"type\":\"Active\",\"status\":\"True\",\"reason\":\"Ready\","
		"\"message\":\"Can submit new workloads to localQueue\"}]}}";
	static const char cluster[] =
		"{\"metadata\":{\"name\":\"cq\"},\"spec\":{\"queueingStrategy\":\"BestEffortFIFO\"},"
		"\"status\":{\"conditions\":[{\"type\":\"Active\",\"status\":\"True\",\"reason\":\"Ready\","
		"\"message\":\"Can admit new workloads\"}]}}";

	here = true;
	object_add(resource_of(LOCAL_QUEUES), json_tokener_parse(local));
	object_add(resource_of(CLUSTER_QUEUES), json_tokener_parse(cluster));
}

void kueue_admit(struct json_object *job)
{
	if (here && streq(queue_of(job), "default"))
		json_object_object_add(json_at(job, "spec"), "suspend",
				       json_object_new_boolean(true));
}

void kueue_begins(struct object *job)
{
	job->queued = here && streq(queue_of(job->json), "default");
	if (job->queued)
		kueue_soon(2, makes, job);
}

void kueue_finished(const struct object *job)
{
	struct object *workload = workload_of(job);
	bool good = object_is(job, "Completed");

	if (!workload)
		return;
	condition(workload, "Finished", true, good ? "Succeeded" : "Failed", "");
	changed(workload, "finished");
}

static void goes(void *data)
{
	struct object *workload = data;

	if (!workload->gone)
		object_drop(workload);
}

void kueue_gone(const struct object *job)
{
	struct object *workload = workload_of(job);

	if (!workload)
		return;
	condition(workload, "Finished", true, "OwnerNotFound",
		  "The workload's owner no longer exists");
	changed(workload, "has no owner");
	kueue_soon(1, goes, workload);
}

/* True if JOB has been waiting for Kueue for at least a minute. */
static bool is_waiting(const struct object *job)
{
	return job->queued && !job->deleted && object_is(job, "Aborted") &&
	       sim_now() - job->changed > 60 * SIM_S;
}

void kueue_judge(void)
{
	pid_t pid = kernel_fork(KERNEL_SEEN);
	const struct object *job;

	for (size_t k = 0; (job = object_at(k)); k++) {
		cleanup_free char *path = text_print("jobs/%s/state", job->name), *state = NULL;
		cleanup_free char *asked = text_print("jobs/%s/why", job->name), *why = NULL;

		if (job->in != JOBS || job->hostile || !is_waiting(job))
			continue;
		if (kernel_read(pid, path, &state) || !streq(state, "PENDING\n"))
			sim_fail("%s waits for Kueue, but its state is %s", job->name,
				 state ? state : "not there");
		if (kernel_read(pid, asked, &why) || !strstr(why, "it has no quota in queue"))
			sim_fail("%s waits for quota, but its why is %s", job->name,
				 why ? why : "nothing");
	}
}
