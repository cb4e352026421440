/* SPDX-License-Identifier: MIT */
/*
 * Parses a job's object with the kind's reader. The object of a job with a thousand tasks is a
 * megabyte, nearly all of it spec, and the server sends it whenever a pod changes. So if the spec
 * has not changed, kxfs copies what depends on it from the earlier view.
 */
#include <errno.h>

#include "spec/view/kueue.h"
#include "spec/view/reader.h"
#include "spec/view/steps.h"

static void texts_of(struct spec_job_view *v, char **ret[12])
{
	char **const texts[] = {&v->resource_version, &v->app,	     &v->phase,
				&v->reason,	      &v->message,   &v->queue,
				&v->priority,	      &v->submitter, &v->submission,
				&v->appdef_sha256,    &v->user,	     &v->owner_api};

	memcpy(ret, texts, sizeof(texts));
}

void spec_job_view_free(struct spec_job_view *v)
{
	char **texts[12];

	if (!v)
		return;
	spec_meta_clear(&v->meta);
	texts_of(v, texts);
	for (size_t i = 0; i < array_size(texts); i++)
		spec_unset(texts[i]);
	roles_clear(v);
	spec_transitions_clear(&v->conditions);
	free(v);
}

define_cleanup(job_freep, struct spec_job_view *, spec_job_view_free)

void spec_job_view_queued(struct spec_job_view *v, const char *queue)
{
	cleanup_free char *text =
		text_print("The job waits for Kueue to admit it from queue %s", queue);

	spec_set(&v->reason, SPEC_REASON_QUEUED);
	spec_read_copy(&v->message, text, READ_MAX_MESSAGE);
}

/* --- a job that is read for the first time --- */

/* Read what depends on the metadata. Return 0 or -EINVAL. */
static int read_head(struct spec_job_view *v, const struct spec_value *object)
{
	const struct spec_value *metadata = spec_read_map(object, "metadata");
	const struct spec_value *notes = spec_read_map(metadata, "annotations");

	if (spec_meta_read(object, &v->meta) < 0)
		return -EINVAL;
	v->generation = spec_read_int(metadata, "generation", 0);
	spec_read_copy_word(&v->owner_api, spec_view_controller(object), "apiVersion");
	spec_read_copy_word(&v->resource_version, metadata, "resourceVersion");
	spec_read_copy_word(&v->priority, spec_view_labels(object), SPEC_KUEUE_PRIORITY);
	v->has_appdef = *spec_read_text(notes, "kxfs/appdef");
	spec_read_copy_word(&v->submitter, notes, "kxfs/submitter");
	spec_read_copy_word(&v->submission, notes, "kxfs/submission");
	spec_read_copy_word(&v->user, spec_view_labels(object), "kxfs/user");
	spec_read_copy_word(&v->appdef_sha256, notes, "kxfs/appdef-sha256");
	return 0;
}

static void read_spec(struct spec_job_view *v, const struct spec_reader *reader,
		      const struct spec_value *object)
{
	struct spec_task_source *tasks cleanup_free = NULL;
	size_t n = reader->job(reader, object, v, &tasks);

	if (!*v->app)
		spec_set(&v->app, v->meta.name);
	roles_arrange(v, tasks, n);
	for (size_t i = 0; i < n; i++)
		v->time_limit =
			i == 0 || tasks[i].time_limit == v->time_limit ? tasks[i].time_limit : 0;
}

/* --- a job with a known spec --- */

static void copy_spec(struct spec_job_view *v, const struct spec_job_view *from)
{
	v->max_retries = from->max_retries;
	v->retry_limit = from->retry_limit;
	v->uncounted = from->uncounted;
	v->minimum = from->minimum;
	v->time_limit = from->time_limit;
	v->restarts = from->restarts;
	v->alone = from->alone;
	v->acts_on_success = from->acts_on_success;
	v->hidden = from->hidden;
	v->from_pods = from->from_pods;
	v->grows = from->grows;
	spec_set(&v->app, from->app);
	spec_set(&v->queue, from->queue);
	v->roles = new0_n(struct spec_role_view, from->n_roles);
	for (size_t i = 0; i < from->n_roles; i++) {
		struct spec_role_view *role = &v->roles[v->n_roles++];

		*role = from->roles[i];
		role->name = role->dir = NULL;
		spec_set(&role->name, from->roles[i].name);
		spec_set(&role->dir, from->roles[i].dir);
	}
	v->tasks = new0_n(struct spec_task_view, from->n_tasks);
	for (size_t i = 0; i < from->n_tasks; i++) {
		struct spec_task_view *task = &v->tasks[v->n_tasks++];

		*task = from->tasks[i];
		task->name = NULL;
		spec_set(&task->name, from->tasks[i].name);
	}
	v->by_name = new0_n(unsigned, from->n_tasks);
	memcpy(v->by_name, from->by_name, from->n_tasks * sizeof(*v->by_name));
	v->n_replicas = from->n_replicas;
}

int spec_job_view_parse(const struct spec_reader *reader, const char *json, size_t len,
			spec_job_view_find find, void *data, struct spec_job_view **ret)
{
	cleanup(job_freep) struct spec_job_view *v = NULL;
	struct spec_value *o cleanup_free = NULL;
	const struct spec_job_view *from = NULL;
	char **texts[12];

	if (spec_value_parse_map(json, len, &o) < 0)
		return -EINVAL;
	v = new0(struct spec_job_view);
	texts_of(v, texts);
	for (size_t i = 0; i < array_size(texts); i++)
		*texts[i] = spec_empty();
	if (read_head(v, o) < 0)
		return -EINVAL;
	if (find && v->generation != 0)
		from = find(data, v->meta.uid);
	if (from && v->generation == from->generation)
		copy_spec(v, from);
	else
		read_spec(v, reader, o);
	reader->status(reader, o, v);
	for (const struct spec_phase *p = reader->phases; p->name && !v->rows; p++)
		v->rows = streq(p->name, v->phase) ? p : NULL;
	for (const struct spec_phase *p = v->rows; spec_phase_is(v, p); p++) {
		v->suspends |= p->asked;
		v->over |= !p->asked && (p->ending || spec_state_is_final(p->state));
	}
	/*
	 * A controller that limits attempts also counts the last failure, although no retry
	 * followed it.
	 */
	if (v->retry_limit > 0)
		v->retries = min_of(v->retries, v->retry_limit - 1);
	*ret = take_ptr(v);
	return 0;
}
