/* SPDX-License-Identifier: MIT */
/*
 * Parses a pod: its state, why it waits or how it ended, and its containers. The kind's reader
 * finds the task, which each controller records in its own way.
 */
#include "spec/view/steps.h"

#include <errno.h>
#include <math.h>

#include "spec/base/amount.h"
#include "spec/base/name.h"
#include "spec/base/time.h"
#include "spec/base/words.h"
#include "spec/job/status.h"

#define MAX_CONTAINERS 64
#define MICRO	       1e6
#define MAX_FIGURE     1e15 /* larger amounts are implausible */
/*
 * The reason of a container whose end is unknown to the kubelet. Its exit code is unknown, too,
 * although the kubelet reports 137.
 */
#define UNKNOWN_END "ContainerStatusUnknown"

void spec_pod_view_free(struct spec_pod_view *v)
{
	if (!v)
		return;
	spec_meta_clear(&v->meta);
	spec_unset(&v->task, &v->phase, &v->node, &v->reason, &v->message, &v->main);
	for (size_t i = 0; i < v->n_containers; i++)
		spec_unset(&v->containers[i].name, &v->containers[i].reason,
			   &v->containers[i].message, &v->containers[i].words);
	free(v->containers);
	free(v);
}

define_cleanup(pod_freep, struct spec_pod_view *, spec_pod_view_free)

const struct spec_container_view *spec_pod_main(const struct spec_pod_view *pod)
{
	for (size_t i = 0; i < pod->n_containers; i++) {
		const struct spec_container_view *c = &pod->containers[i];

		if (!c->init && streq(c->name, pod->main))
			return c;
	}
	return NULL;
}

bool spec_pod_is_lost(const struct spec_pod_view *pod)
{
	return pod->lost && !pod->gone && !spec_state_is_final(spec_pod_state(pod));
}

bool spec_pod_loops(const struct spec_pod_view *pod, const struct spec_container_view *c)
{
	if (c->state == SPEC_WAITING)
		return c->last_exit_code >= 0 && streq(c->reason, "CrashLoopBackOff");
	return c->state == SPEC_TERMINATED && c->exit_code != 0 && pod->main_reruns &&
	       streq(pod->phase, "Running") && streq(c->name, pod->main);
}

enum spec_state spec_pod_state(const struct spec_pod_view *pod)
{
	static const struct {
		const char *phase;
		enum spec_state state;
	} states[] = {
		{"", SPEC_PENDING},	   {"Pending", SPEC_PENDING},
		{"Running", SPEC_RUNNING}, {"Succeeded", SPEC_SUCCEEDED},
		{"Failed", SPEC_FAILED},
	};
	const struct spec_container_view *c = spec_pod_main(pod);

	for (size_t i = 0; i < array_size(states); i++) {
		if (!streq(pod->phase, states[i].phase))
			continue;
		/*
		 * The kubelet updates the phase slightly after it reports the ends of all
		 * containers. Return the state that the phase will show.
		 */
		if (!spec_state_is_final(states[i].state) && pod->outcome != SPEC_UNKNOWN)
			return pod->outcome;
		/* In phase Running, the main container may wait for its first or next run. */
		if (states[i].state == SPEC_RUNNING && c &&
		    (c->state == SPEC_WAITING || spec_pod_loops(pod, c)))
			return SPEC_PENDING;
		return states[i].state;
	}
	return SPEC_UNKNOWN;
}

bool spec_pod_is_settled(const struct spec_pod_view *pod)
{
	return streq(pod->phase, "Succeeded") || streq(pod->phase, "Failed");
}

bool spec_pod_was_stopped(const struct spec_pod_view *pod)
{
	const struct spec_container_view *c = spec_pod_main(pod);

	if (!spec_state_is_final(spec_pod_state(pod)))
		return pod->gone;
	return pod->meta.deleted && !pod->ended &&
	       (!c || !c->finished || c->finished >= pod->meta.deleted);
}

bool spec_pod_is_past(const struct spec_pod_view *pod, const struct spec_job_view *job)
{
	if (job->began)
		return pod->meta.created < job->began;
	return pod->retry != SPEC_RETRY_UNKNOWN && pod->retry < job->retries;
}

int spec_pod_end(const struct spec_pod_view *pod)
{
	enum spec_state state = spec_pod_state(pod);

	return spec_state_is_final(state) && !spec_pod_was_stopped(pod) ? (int)state : -1;
}

const char *spec_pod_choose_main(const struct spec_value *object, const char *task)
{
	const struct spec_value *list = spec_read_list(spec_read_map(object, "spec"), "containers");
	const struct spec_value *notes =
		spec_read_map(spec_read_map(object, "metadata"), "annotations");
	const char *chosen = spec_read_text(notes, "kubectl.kubernetes.io/default-container");

	if (*task && spec_read_item(list, "name", task))
		return task;
	if (*chosen && spec_read_item(list, "name", chosen))
		return chosen;
	return spec_read_text(spec_read_at(list, 0), "name");
}

int spec_view_time_limit(const struct spec_value *pod)
{
	return spec_read_int(spec_read_map(pod, "spec"), "activeDeadlineSeconds", 0);
}

/* --- containers --- */

static void read_words(struct spec_container_view *c, const struct spec_value *o)
{
	spec_read_copy_word(&c->reason, o, "reason");
	spec_read_copy_message(&c->message, o);
}

/*
 * Set the last output of the failed program in C. MESSAGE is the end of its output (at most 4096
 * bytes) or of an error file. If MESSAGE ends like a JSON object and contains no error, ignore it:
 * the log explains more.
 */
static void read_last_words(struct spec_container_view *c, const char *message)
{
	cleanup_free char *error = NULL, *lines = NULL;
	size_t len = strlen(message);

	if (c->exit_code <= 0 || !(streq(c->reason, "Error") || streq(c->reason, "OOMKilled")))
		return;
	error = spec_last_error(message, len);
	lines = spec_last_lines(message, len, false);
	if (error || (len > 0 && message[len - 1] != '}'))
		spec_set(&c->words, error ? error : lines);
	if (error)
		spec_set(&c->message, strrchr(error, '\n') ? strrchr(error, '\n') + 1 : error);
}

static void read_container(struct spec_container_view *c, const struct spec_value *status)
{
	const struct spec_value *state = spec_read_map(status, "state");
	const struct spec_value *terminated = spec_read_map(state, "terminated");
	const struct spec_value *running = spec_read_map(state, "running");
	const struct spec_value *last =
		spec_read_map(spec_read_map(status, "lastState"), "terminated");

	c->exit_code = -1;
	c->reason = c->message = c->words = spec_empty();
	c->restarts = (unsigned)spec_read_int(status, "restartCount", 0);
	c->last_exit_code = spec_read_int(last, "exitCode", -1);
	c->last_finished = spec_read_time(last, "finishedAt");
	if (terminated) {
		c->state = SPEC_TERMINATED;
		c->started = spec_read_time(terminated, "startedAt");
		c->finished = spec_read_time(terminated, "finishedAt");
		c->signal = spec_read_int(terminated, "signal", 0);
		if (!streq(spec_read_text(terminated, "reason"), UNKNOWN_END))
			c->exit_code = spec_read_int(terminated, "exitCode", -1);
		read_words(c, terminated);
		read_last_words(c, spec_read_text(terminated, "message"));
	} else if (running) {
		c->state = SPEC_STARTED;
		c->started = spec_read_time(running, "startedAt");
	} else {
		read_words(c, spec_read_map(state, "waiting"));
	}
}

/* Read the containers, except those whose names are not valid in file names. */
static void read_containers(struct spec_pod_view *v, const struct spec_value *status)
{
	static const char *const keys[] = {"initContainerStatuses", "containerStatuses",
					   "ephemeralContainerStatuses"};

	for (size_t i = 0; i < array_size(keys); i++) {
		const struct spec_value *list = spec_read_list(status, keys[i]);

		for (size_t k = 0; k < spec_read_count(list); k++) {
			const struct spec_value *one = spec_read_at(list, k);
			const char *name = spec_read_text(one, "name");
			struct spec_container_view *c;

			if (v->n_containers == MAX_CONTAINERS || !spec_name_is_label(name))
				continue;
			v->containers = mem_grow(v->containers, v->n_containers + 1,
						 sizeof(*v->containers));
			c = &v->containers[v->n_containers++];
			*c = (struct spec_container_view){.init = i == 0};
			c->name = text_copy(name);
			read_container(c, one);
		}
	}
}

/* --- the pod --- */

/* True if the restart policy of O, a pod's spec or a container, allows restarts. */
static bool is_rerun(const struct spec_value *o)
{
	const char *policy = spec_read_text(o, "restartPolicy");

	return *policy && !streq(policy, "Never");
}

/* True if a container may restart. The server has set missing restart policies. */
static bool reruns(const struct spec_value *spec)
{
	static const char *const keys[] = {"initContainers", "containers"};

	for (size_t i = 0; i < array_size(keys); i++) {
		const struct spec_value *list = spec_read_list(spec, keys[i]);

		for (size_t k = 0; k < spec_read_count(list); k++)
			if (is_rerun(spec_read_at(list, k)))
				return true;
	}
	return is_rerun(spec);
}

static const struct spec_value *main_container(const struct spec_pod_view *v,
					       const struct spec_value *spec)
{
	return spec_read_item(spec_read_list(spec, "containers"), "name", v->main);
}

static bool main_reruns(const struct spec_pod_view *v, const struct spec_value *spec)
{
	const struct spec_value *main = main_container(v, spec);

	return is_rerun(*spec_read_text(main, "restartPolicy") ? main : spec);
}

/* Return the amount NAME in MAP, multiplied by BY; -1 if the amount is missing or invalid. */
static int64_t amount(const struct spec_value *map, const char *name, double by)
{
	double value = spec_amount_value(spec_read_text(map, name)) * by;

	return value >= 0 && value <= MAX_FIGURE ? (int64_t)ceil(value) : -1;
}

/* Return the number of GPUs of any vendor (nvidia.com/gpu, amd.com/gpu); -1 if invalid. */
static int64_t count_gpus(const struct spec_value *limits)
{
	int64_t n = 0, one;

	for (size_t i = 0; i < spec_read_count(limits); i++) {
		const char *name = spec_read_at(limits, i)->key;
		const char *slash = strrchr(name, '/');

		one = slash && streq(slash, "/gpu") ? amount(limits, name, 1) : 0;
		n = one < 0 || n < 0 || n + one > (int64_t)MAX_FIGURE ? -1 : n + one;
	}
	return n;
}

/* Return CONTAINER's requests. If a request was missing, the server has set it to the limit. */
static struct spec_request request(const struct spec_value *container)
{
	const struct spec_value *resources = spec_read_map(container, "resources");
	const struct spec_value *requests = spec_read_map(resources, "requests");
	const struct spec_value *limits = spec_read_map(resources, "limits");

	return (struct spec_request){
		.cpu = amount(requests, "cpu", 1000),
		.memory = amount(requests, "memory", 1),
		.memory_limit = amount(limits, "memory", 1),
		.gpu = container ? count_gpus(limits) : -1,
	};
}

/* Return the state "terminated" of the container NAME, or NULL. */
static const struct spec_value *terminated(const struct spec_value *status, const char *name)
{
	const struct spec_value *one =
		spec_read_item(spec_read_list(status, "containerStatuses"), "name", name);

	return spec_read_map(spec_read_map(one, "state"), "terminated");
}

/* True if the kubelet will certainly not restart CONTAINER after exit code CODE. */
static bool is_last_run(const struct spec_value *pod, const struct spec_value *container, int code)
{
	const char *policy = spec_read_text(container, "restartPolicy");

	if (!*policy)
		policy = spec_read_text(pod, "restartPolicy");
	if (spec_read_count(spec_read_list(container, "restartPolicyRules")) > 0)
		return false;
	return streq(policy, "Never") || (streq(policy, "OnFailure") && code == 0);
}

/* Return spec_pod_view.outcome. */
static enum spec_state outcome(const struct spec_value *spec, const struct spec_value *status)
{
	const struct spec_value *list = spec_read_list(spec, "containers");
	enum spec_state ret = SPEC_UNKNOWN;

	for (size_t i = 0; i < spec_read_count(list); i++) {
		const struct spec_value *one = spec_read_at(list, i);
		const struct spec_value *end = terminated(status, spec_read_text(one, "name"));
		int code = spec_read_int(end, "exitCode", -1);

		if (!end || streq(spec_read_text(end, "reason"), UNKNOWN_END) ||
		    !is_last_run(spec, one, code))
			return SPEC_UNKNOWN;
		if (ret != SPEC_FAILED)
			ret = code == 0 ? SPEC_SUCCEEDED : SPEC_FAILED;
	}
	return ret;
}

/*
 * Return the condition that explains why the pod is not scheduled, or NULL. If the scheduler has
 * found a node and only waits for other pods, return NULL.
 */
static const struct spec_value *unscheduled(const struct spec_value *status)
{
	const struct spec_value *c = spec_view_condition(status, "PodScheduled");

	return streq(spec_read_text(c, "status"), "False") &&
			       !streq(spec_read_text(c, "reason"), "Schedulable") &&
			       !spec_words_is_passing(spec_read_text(c, "message"))
		       ? c
		       : NULL;
}

static bool any_ready(const struct spec_value *status)
{
	const struct spec_value *list = spec_read_list(status, "containerStatuses");

	for (size_t i = 0; i < spec_read_count(list); i++)
		if (spec_read_bool(spec_read_at(list, i), "ready"))
			return true;
	return false;
}

/*
 * True if condition C means that the node does not respond, or that Kubernetes evicts the pod
 * because of this. ANY_READY is true if the last report has a ready container.
 */
static bool is_silent(const struct spec_value *c, bool any_ready)
{
	const char *reason = spec_read_text(c, "reason");
	bool is_true = spec_view_is_true(c);

	if (streq(spec_read_text(c, "type"), "DisruptionTarget"))
		return is_true && streq(reason, "DeletionByTaintManager");
	return streq(spec_read_text(c, "type"), "Ready") && !is_true && any_ready &&
	       (!*reason || strncmp(reason, "Node", strlen("Node")) == 0);
}

/*
 * Return the time when the node stopped responding, or 0 if the node responds. The node controller
 * marks the pods of a silent node as not ready, and evicts them minutes later. The containers'
 * status remains as last reported.
 */
static int64_t lost_since(const struct spec_value *status)
{
	const struct spec_value *list = spec_read_list(status, "conditions");
	bool ready = any_ready(status);
	int64_t ret = 0;

	for (size_t i = 0; i < spec_read_count(list); i++) {
		const struct spec_value *c = spec_read_at(list, i);
		int64_t time = max_of(spec_read_time(c, "lastTransitionTime"), INT64_C(1));

		if (is_silent(c, ready) && (!ret || time < ret))
			ret = time;
	}
	return ret;
}

/*
 * Return the time at which the pod's time limit ends, or 0 if unknown or unlimited. The limit
 * begins when the kubelet accepts the pod.
 */
static int64_t deadline(const struct spec_value *pod)
{
	int64_t since = spec_read_time(spec_read_map(pod, "status"), "startTime");
	int64_t ns = spec_view_time_limit(pod) * NS_PER_S;

	return since && ns && !__builtin_add_overflow(since, ns, &ns) ? ns : 0;
}

static void read_status(struct spec_pod_view *v, const struct spec_value *status)
{
	const struct spec_value *why = status;

	if (!*spec_read_text(status, "reason") && !*spec_read_text(status, "message"))
		why = unscheduled(status);
	spec_read_copy_word(&v->phase, status, "phase");
	spec_read_copy_word(&v->reason, why, "reason");
	spec_read_copy_message(&v->message, why);
	read_containers(v, status);
	v->lost = lost_since(status);
}

/* Return the uid of POD's owner, or NULL if POD does not belong to R's kind (spec_reader.owner). */
static const char *owner_of(const struct spec_reader *r, const struct spec_value *pod,
			    bool *ret_part)
{
	const struct spec_value *controller = spec_view_controller(pod);

	if (r->owner)
		return r->owner(r, pod, ret_part);
	return spec_view_is_a(controller, r->of_group, r->of_kind)
		       ? spec_read_text(controller, "uid")
		       : NULL;
}

/* Return POD's reader, or NULL, and set the owner in V (see spec_pod_view_parse). */
static const struct spec_reader *find_reader(const struct spec_pod_readers *readers,
					     const struct spec_value *pod, struct spec_pod_view *v)
{
	/* the reader that FIND returns for the pod itself, or NULL */
	const struct spec_reader *own =
		readers->find ? readers->find(readers->data, v->meta.uid) : NULL;
	const struct spec_reader *ret = NULL;
	const char *owner = "";

	for (size_t i = 0; i < readers->n; i++) {
		bool part = false;
		const char *uid = owner_of(readers->v[i], pod, &part);
		const struct spec_reader *known;

		if (!uid || !spec_meta_is_uid(uid))
			continue;
		known = readers->find ? readers->find(readers->data, uid) : NULL;
		known = known ? known : own;
		if (known && known != readers->v[i])
			continue;
		v->owner = !known && (v->owner == SPEC_OWNER_OPEN || part || ret)
				   ? SPEC_OWNER_OPEN
				   : SPEC_OWNER_FOUND;
		owner = known || !ret ? uid : owner;
		ret = known || !ret ? readers->v[i] : ret;
		if (known)
			break;
	}
	if (!ret && own && !*v->meta.owner_uid) {
		owner = v->meta.uid;
		ret = own;
	}
	if (!ret && readers->n == 1)
		return readers->v[0];
	spec_set(&v->meta.owner_uid, ret ? owner : "");
	return ret;
}

int spec_pod_view_parse(const struct spec_pod_readers *readers, const char *json, size_t len,
			struct spec_pod_view **ret)
{
	cleanup(pod_freep) struct spec_pod_view *v = NULL;
	struct spec_value *o cleanup_free = NULL;
	const struct spec_value *spec;
	const struct spec_reader *reader;

	if (spec_value_parse_map(json, len, &o) < 0)
		return -EINVAL;
	v = new0(struct spec_pod_view);
	v->task = v->main = spec_empty();
	if (spec_meta_read(o, &v->meta) < 0)
		return -EINVAL;
	spec = spec_read_map(o, "spec");
	read_status(v, spec_read_map(o, "status"));
	spec_read_copy_word(&v->node, spec, "nodeName");
	v->reruns = reruns(spec);
	v->deadline = deadline(o);
	reader = find_reader(readers, o, v);
	if (reader)
		reader->pod(reader, o, v);
	v->main_reruns = main_reruns(v, spec);
	v->request = request(main_container(v, spec));
	v->outcome = outcome(spec, spec_read_map(o, "status"));
	v->ended = !v->meta.deleted && spec_state_is_final(spec_pod_state(v));
	*ret = take_ptr(v);
	return 0;
}

void spec_pod_view_inherit(struct spec_pod_view *now, const struct spec_pod_view *before)
{
	/*
	 * meta.deleted is computed from the grace period. The kubelet shortens this period when the
	 * pod has ended. So the earlier time is correct.
	 */
	if (before->meta.deleted && before->meta.deleted < now->meta.deleted)
		now->meta.deleted = before->meta.deleted;
	/*
	 * Times are whole seconds, so NOW does not show whether the pod ended before the deletion
	 * request.
	 */
	now->ended |= before->ended;
	now->sample = before->sample;
}

/* --- the pod's usage --- */

const struct spec_pod_view *spec_pod_view_sample(const char *json, size_t len,
						 spec_pod_view_find find, void *data)
{
	struct spec_value *o cleanup_free = NULL;
	struct spec_pod_view *v = NULL;
	const struct spec_value *main, *usage;
	int64_t at;

	if (spec_value_parse_map(json, len, &o) == 0)
		v = find(data, spec_read_text(spec_read_map(o, "metadata"), "name"));
	main = v ? main_container(v, o) : NULL;
	at = spec_read_time(o, "timestamp");
	if (!main || at <= v->sample.at)
		return NULL;
	usage = spec_read_map(main, "usage");
	v->sample =
		(struct spec_sample){at, amount(usage, "cpu", MICRO), amount(usage, "memory", 1)};
	return v;
}

char *spec_view_log_key(const struct spec_pod_view *pod, const char *container, unsigned restart)
{
	return text_print("%s.%s.%u", pod->meta.uid, container, restart);
}
