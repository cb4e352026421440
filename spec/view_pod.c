/* SPDX-License-Identifier: MIT */
/*
 * Reading a pod: its state, why it waits or has ended, and its containers. What depends on who made it
 * (which task it is of) is the kind's.
 */
#include <assert.h>
#include <errno.h>

#include "spec/name.h"
#include "spec/view_impl.h"

#define MAX_CONTAINERS 64

void spec_pod_view_free(struct spec_pod_view *v)
{
	if (!v)
		return;
	spec_meta_clear(&v->meta);
	spec_unset(&v->task);
	spec_unset(&v->phase);
	spec_unset(&v->node);
	spec_unset(&v->reason);
	spec_unset(&v->message);
	spec_unset(&v->main);
	for (size_t i = 0; i < v->n_containers; i++) {
		spec_unset(&v->containers[i].name);
		spec_unset(&v->containers[i].reason);
		spec_unset(&v->containers[i].message);
	}
	free(v->containers);
	free(v);
}

static void pod_freep(struct spec_pod_view **v)
{
	spec_pod_view_free(*v);
}

static struct spec_pod_view *pod_new(void)
{
	struct spec_pod_view *v = calloc(1, sizeof(*v));

	if (v && spec_meta_init(&v->meta) == 0 && spec_set(&v->task, "") == 0 &&
	    spec_set(&v->phase, "") == 0 && spec_set(&v->node, "") == 0 &&
	    spec_set(&v->reason, "") == 0 && spec_set(&v->message, "") == 0 &&
	    spec_set(&v->main, "") == 0)
		return v;
	spec_pod_view_free(v);
	return NULL;
}

const struct spec_container_view *spec_pod_main(const struct spec_pod_view *pod)
{
	for (size_t i = 0; i < pod->n_containers; i++) {
		const struct spec_container_view *c = &pod->containers[i];

		if (!c->init && streq(c->name, pod->main))
			return c;
	}
	return NULL;
}

static bool has_container(struct json_object *list, const char *name)
{
	for (size_t i = 0; i < spec_read_count(list); i++)
		if (*name && streq(spec_read_text(spec_read_at(list, i), "name"), name))
			return true;
	return false;
}

const char *spec_pod_choose_main(struct json_object *object, const char *task)
{
	struct json_object *list = spec_read_list(spec_read_map(object, "spec"), "containers");
	struct json_object *notes = spec_read_map(spec_read_map(object, "metadata"), "annotations");
	const char *chosen = spec_read_text(notes, "kubectl.kubernetes.io/default-container");

	if (has_container(list, task))
		return task;
	if (has_container(list, chosen))
		return chosen;
	return spec_read_text(spec_read_at(list, 0), "name");
}

/* --- containers ----------------------------------------------------------------------------- */

static int read_words(struct spec_container_view *c, struct json_object *o)
{
	if (spec_read_copy(&c->reason, spec_read_text(o, "reason"), READ_MAX_WORD) < 0 ||
	    spec_read_copy(&c->message, spec_read_text(o, "message"), READ_MAX_MESSAGE) < 0)
		return -ENOMEM;
	return 0;
}

static int read_terminated(struct spec_container_view *c, struct json_object *o)
{
	c->state = SPEC_TERMINATED;
	c->started = spec_read_time(o, "startedAt");
	c->finished = spec_read_time(o, "finishedAt");
	c->signal = spec_read_int(o, "signal", 0);
	/* The kubelet has lost sight of it: its 137 is no exit code of anything. */
	if (!streq(spec_read_text(o, "reason"), "ContainerStatusUnknown"))
		c->exit_code = spec_read_int(o, "exitCode", -1);
	return read_words(c, o);
}

static int read_state(struct spec_container_view *c, struct json_object *status)
{
	struct json_object *state = spec_read_map(status, "state");
	struct json_object *terminated = spec_read_map(state, "terminated");
	struct json_object *running = spec_read_map(state, "running");
	struct json_object *last = spec_read_map(spec_read_map(status, "lastState"), "terminated");

	c->restarts = (unsigned)spec_read_int(status, "restartCount", 0);
	c->last_exit_code = spec_read_int(last, "exitCode", -1);
	if (terminated)
		return read_terminated(c, terminated);
	if (running) {
		c->state = SPEC_STARTED;
		c->started = spec_read_time(running, "startedAt");
		return 0;
	}
	return read_words(c, spec_read_map(state, "waiting"));
}

/* The container that a STATUS is of; one whose name can't be a file's is left out. */
static int read_container(struct spec_pod_view *v, struct json_object *status, bool init)
{
	struct spec_container_view *c = &v->containers[v->n_containers];
	const char *name = spec_read_text(status, "name");

	if (!spec_name_is_label(name))
		return 0;
	v->n_containers++;
	c->init = init;
	c->exit_code = -1;
	if (spec_set(&c->name, name) < 0 || spec_set(&c->reason, "") < 0 ||
	    spec_set(&c->message, "") < 0)
		return -ENOMEM;
	return read_state(c, status);
}

static int read_containers(struct spec_pod_view *v, struct json_object *status)
{
	static const char *const keys[] = {"initContainerStatuses", "containerStatuses",
					   "ephemeralContainerStatuses"};
	size_t n = 0;

	for (size_t i = 0; i < array_size(keys); i++)
		n += spec_read_count(spec_read_list(status, keys[i]));
	n = min_of(n, (size_t)MAX_CONTAINERS);
	if (n == 0)
		return 0;
	v->containers = calloc(n, sizeof(*v->containers));
	if (!v->containers)
		return -ENOMEM;
	for (size_t i = 0; i < array_size(keys); i++) {
		struct json_object *list = spec_read_list(status, keys[i]);

		for (size_t k = 0; k < spec_read_count(list) && v->n_containers < n; k++) {
			int err = read_container(v, spec_read_at(list, k), i == 0);

			if (err)
				return err;
		}
	}
	return 0;
}

/* --- the pod -------------------------------------------------------------------------------- */

/* The policy of the pod, or a container's own. */
static bool is_rerun(struct json_object *o)
{
	const char *policy = spec_read_text(o, "restartPolicy");

	return *policy && !streq(policy, "Never");
}

/* The server fills in what is not said. */
static bool reruns(struct json_object *spec)
{
	static const char *const keys[] = {"initContainers", "containers"};

	for (size_t i = 0; i < array_size(keys); i++) {
		struct json_object *list = spec_read_list(spec, keys[i]);

		for (size_t k = 0; k < spec_read_count(list); k++)
			if (is_rerun(spec_read_at(list, k)))
				return true;
	}
	return is_rerun(spec);
}

/* Why it is not scheduled; NULL: it is, or nobody has tried. */
static struct json_object *unscheduled(struct json_object *status)
{
	struct json_object *list = spec_read_list(status, "conditions");

	for (size_t i = 0; i < spec_read_count(list); i++) {
		struct json_object *condition = spec_read_at(list, i);

		if (streq(spec_read_text(condition, "type"), "PodScheduled") &&
		    streq(spec_read_text(condition, "status"), "False"))
			return condition;
	}
	return NULL;
}

static int read_status(struct spec_pod_view *v, struct json_object *status)
{
	struct json_object *why = status;

	if (!*spec_read_text(status, "reason") && !*spec_read_text(status, "message"))
		why = unscheduled(status);
	if (spec_read_copy(&v->phase, spec_read_text(status, "phase"), READ_MAX_WORD) < 0 ||
	    spec_read_copy(&v->reason, spec_read_text(why, "reason"), READ_MAX_WORD) < 0 ||
	    spec_read_copy(&v->message, spec_read_text(why, "message"), READ_MAX_MESSAGE) < 0)
		return -ENOMEM;
	return read_containers(v, status);
}

int spec_pod_view_parse(const struct spec_kind *kind, const char *json, size_t len,
			struct spec_pod_view **ret)
{
	cleanup(pod_freep) struct spec_pod_view *v = pod_new();
	struct json_object *o cleanup_json = NULL;
	int err = v ? spec_view_object(json, len, &o) : -ENOMEM;

	assert(spec_kind_is_shown(kind));
	if (!err)
		err = spec_meta_read(o, &v->meta);
	if (!err)
		err = read_status(v, spec_read_map(o, "status"));
	if (!err)
		err = spec_read_copy(&v->node, spec_read_text(spec_read_map(o, "spec"), "nodeName"),
				     READ_MAX_WORD);
	v->reruns = reruns(spec_read_map(o, "spec"));
	if (!err)
		err = kind->reader->pod(o, v);
	if (!err)
		*ret = take_ptr(v);
	return err;
}

void spec_pod_view_inherit(struct spec_pod_view *now, const struct spec_pod_view *before)
{
	/* The kubelet shortens the grace to nothing once the pod has ended. */
	if (before->meta.deleted && before->meta.deleted < now->meta.deleted)
		now->meta.deleted = before->meta.deleted;
}

char *spec_view_log_key(const struct spec_pod_view *pod, const char *container, unsigned restart)
{
	char *ret;

	return asprintf(&ret, "%s.%s.%u", pod->meta.uid, container, restart) < 0 ? NULL : ret;
}
