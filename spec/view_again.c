/* SPDX-License-Identifier: MIT */
/*
 * Reading a job whose spec is known already. A job of a thousand tasks has a megabyte, nearly all of it
 * spec, and sends it again whenever one of its pods changes.
 */
#include <assert.h>
#include <errno.h>

#include "spec/limits.h"
#include "spec/span.h"
#include "spec/view_impl.h"

static void job_freep(struct spec_job_view **v)
{
	spec_job_view_free(*v);
}

/* An object of the metadata and the status alone; NULL: that can't be told without parsing it all. */
static struct json_object *without_spec(const char *json, size_t len)
{
	struct spec_span whole = {json, json + len}, metadata, status = {"{}", NULL}, spec;
	struct json_object *ret;
	char *text cleanup_free = NULL;
	int n;

	status.end = status.p + 2;
	if (len > SPEC_MAX_WATCHED || !spec_span_member(whole, "metadata", &metadata) ||
	    !spec_span_member(whole, "spec", &spec))
		return NULL;
	spec_span_member(whole, "status", &status);
	n = asprintf(&text, "{\"metadata\":%.*s,\"status\":%.*s}", (int)spec_span_len(metadata),
		     metadata.p, (int)spec_span_len(status), status.p);
	if (n < 0) {
		text = NULL;
		return NULL;
	}
	return spec_view_object(text, (size_t)n, &ret) == 0 ? ret : NULL;
}

static int copy_roles(struct spec_job_view *v, const struct spec_job_view *from)
{
	v->roles = calloc(from->n_roles + 1, sizeof(*v->roles));
	if (!v->roles)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_roles; i++) {
		struct spec_role_view *role = &v->roles[v->n_roles++];

		*role = from->roles[i];
		role->name = role->dir = NULL;
		if (spec_set(&role->name, from->roles[i].name) < 0 ||
		    spec_set(&role->dir, from->roles[i].dir) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int copy_tasks(struct spec_job_view *v, const struct spec_job_view *from)
{
	v->tasks = calloc(from->n_tasks + 1, sizeof(*v->tasks));
	v->by_name = calloc(from->n_tasks + 1, sizeof(*v->by_name));
	if (!v->tasks || !v->by_name)
		return -ENOMEM;
	memcpy(v->by_name, from->by_name, from->n_tasks * sizeof(*v->by_name));
	for (size_t i = 0; i < from->n_tasks; i++) {
		struct spec_task_view *task = &v->tasks[v->n_tasks++];

		*task = from->tasks[i];
		task->name = NULL;
		if (spec_set(&task->name, from->tasks[i].name) < 0)
			return -ENOMEM;
	}
	v->n_replicas = from->n_replicas;
	return 0;
}

/* What follows from the spec. */
static int copy_spec(struct spec_job_view *v, const struct spec_job_view *from)
{
	int err = copy_roles(v, from);

	v->max_retries = from->max_retries;
	v->retry_limit = from->retry_limit;
	v->minimum = from->minimum;
	v->restarts = from->restarts;
	v->asked = from->asked;
	v->hidden = from->hidden;
	if (spec_set(&v->app, from->app) < 0 || spec_set(&v->queue, from->queue) < 0)
		return -ENOMEM;
	return err ? err : copy_tasks(v, from);
}

int spec_job_view_parse_again(const struct spec_kind *kind, const char *json, size_t len,
			      spec_job_view_find find, void *data, struct spec_job_view **ret)
{
	cleanup(job_freep) struct spec_job_view *v = spec_job_view_new();
	struct json_object *o cleanup_json = v ? without_spec(json, len) : NULL;
	const struct spec_job_view *from;
	int err;

	assert(spec_kind_is_shown(kind));
	if (!v)
		return -ENOMEM;
	if (!o || spec_job_view_head(v, o) < 0)
		return spec_job_view_parse(kind, json, len, ret);
	from = find(data, v->meta.uid);
	if (!from || v->generation == 0 || v->generation != from->generation)
		return spec_job_view_parse(kind, json, len, ret);
	err = kind->reader->status(o, v);
	if (!err)
		err = copy_spec(v, from);
	if (!err)
		*ret = take_ptr(v);
	return err;
}
