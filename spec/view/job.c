/* SPDX-License-Identifier: MIT */
/* Parses a job's object with the kind's reader. */
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

/* Read what depends on the metadata. Return 0 or -EINVAL. */
static int read_head(struct spec_job_view *v, const struct spec_value *object)
{
	const struct spec_value *metadata = spec_read_map(object, "metadata");
	const struct spec_value *notes = spec_read_map(metadata, "annotations");

	if (spec_meta_read(object, &v->meta) < 0)
		return -EINVAL;
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

int spec_job_view_parse(const struct spec_reader *reader, const char *json, size_t len,
			struct spec_job_view **ret)
{
	cleanup(job_freep) struct spec_job_view *v = NULL;
	struct spec_value *o cleanup_free = NULL;
	char **texts[12];

	if (spec_value_parse_map(json, len, &o) < 0)
		return -EINVAL;
	v = new0(struct spec_job_view);
	texts_of(v, texts);
	for (size_t i = 0; i < array_size(texts); i++)
		*texts[i] = spec_empty();
	if (read_head(v, o) < 0)
		return -EINVAL;
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
