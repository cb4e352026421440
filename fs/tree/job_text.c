/* SPDX-License-Identifier: MIT */
/* The texts of a job: state, status, status.json, why, usage, manifest.yaml, app.yaml, events. */
#include <errno.h>

#include "fs/tree/job.h"
#include "fs/vfs/serve.h"
#include "spec/base/mem.h"
#include "spec/job/status.h"

static int job_render_state(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (!job)
		return -ENOENT;
	*ret = text_copy(spec_status_state(job->state));
	*ret_len = strlen(*ret);
	return 0;
}

/* A file whose text depends only on the snapshot. */
static int job_render(const struct node *node, rendered_fn text, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (!job)
		return -ENOENT;
	rendered_text(job_ref_of(node)->tree->rendered, job, text, ret, ret_len);
	return 0;
}

#define JOB_RENDER(name, text)                                                                     \
	static int name(struct fs *fs, struct node *node, char **ret, size_t *ret_len)             \
	{                                                                                          \
		return job_render(node, text, ret, ret_len);                                       \
	}
JOB_RENDER(job_render_status, spec_status_yaml)
JOB_RENDER(job_render_json, spec_status_json)
JOB_RENDER(job_render_usage, spec_status_usage)

/* The advice in why depends on the mount, too. */
static int job_render_why(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (!job)
		return -ENOENT;
	spec_status_why(job, job_ref_allowed(job_ref_of(node)->tree, job), ret, ret_len);
	return 0;
}

/* A text from the backend. Its size is found without rendering it. */
static int job_backend_text(struct node *node, enum backend_text which, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);
	const struct tree *t = job_ref_of(node)->tree;
	int err = job ? serve_disk_begin(t->fs) : -ENOENT;

	if (err)
		return err;
	err = backend_text(t->backend, job, which, ret, ret_len);
	serve_disk_end(t->fs);
	return err;
}

static int job_render_manifest(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	return job_backend_text(node, BACKEND_MANIFEST, ret, ret_len);
}

static int job_render_appdef(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	return job_backend_text(node, BACKEND_APPDEF, ret, ret_len);
}

/*
 * The time of the file `events` is that of its last line, since an event does not change the job.
 */
static int job_events(const struct node *node, char **ret, size_t *ret_len, int64_t *ret_changed)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	return job ? backend_events(job_ref_of(node)->tree->backend, job, ret, ret_len, ret_changed)
		   : -ENOENT;
}

static int job_render_events(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	int64_t changed;

	return job_events(node, ret, ret_len, &changed);
}

static int job_events_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	char *text cleanup_free = NULL;
	int64_t changed;
	size_t len;
	int err = job_ref_getattr(fs, node, st);

	if (!err)
		err = job_events(node, &text, &len, &changed);
	if (err)
		return err;
	if (changed)
		node_set_times(st, changed, changed);
	st->st_size = (off_t)len;
	return 0;
}

static int job_backend_getattr(struct node *node, enum backend_text which, struct stat *st)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);
	const struct tree *t = job_ref_of(node)->tree;
	size_t len = 0;
	mode_t readable;
	int err = job ? serve_disk_begin(t->fs) : -ENOENT;

	if (err)
		return err;
	err = backend_text_size(t->backend, job, which, &len);
	readable = backend_text_readable(t->backend, job);
	serve_disk_end(t->fs);
	if (err)
		return err;
	node_set_times(st, which == BACKEND_APPDEF ? job->created : job->changed, job->created);
	/*
	 * Only users who might read the submitted file may read app.yaml: it may have secrets in
	 * it.
	 */
	st->st_mode &= ~(mode_t)(S_IRGRP | S_IROTH) | readable;
	st->st_size = (off_t)len;
	return 0;
}

static int job_manifest_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	return job_backend_getattr(node, BACKEND_MANIFEST, st);
}

static int job_appdef_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	return job_backend_getattr(node, BACKEND_APPDEF, st);
}

static void job_opened(struct node *node)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (job)
		backend_wanted(job_ref_of(node)->tree->backend, job);
}

static void job_json_opened(struct node *node)
{
	job_opened(node);
	job_ref_usage_opened(node);
}

#define JOB_TEXT(file, render_fn, getattr_fn, opened_fn, is_on_disk)                               \
	const struct text_class file = {                                                           \
		.class =                                                                           \
			{                                                                          \
				.name = #file,                                                     \
				.mode = S_IFREG | 0644,                                            \
				.getattr = getattr_fn,                                             \
				.on_disk = is_on_disk,                                             \
				TEXT_OPS,                                                          \
			},                                                                         \
		.render = render_fn,                                                               \
		.opened = opened_fn,                                                               \
	}

JOB_TEXT(job_state_text, job_render_state, job_ref_text_getattr, NULL, false);
JOB_TEXT(job_status_text, job_render_status, job_ref_text_getattr, job_opened, false);
JOB_TEXT(job_json_text, job_render_json, job_ref_text_getattr, job_json_opened, false);
JOB_TEXT(job_why_text, job_render_why, job_ref_text_getattr, job_opened, false);
JOB_TEXT(job_usage_text, job_render_usage, job_ref_text_getattr, job_ref_usage_opened, false);
JOB_TEXT(job_manifest_text, job_render_manifest, job_manifest_getattr, NULL, true);
JOB_TEXT(job_events_text, job_render_events, job_events_getattr, NULL, false);
JOB_TEXT(job_appdef_text, job_render_appdef, job_appdef_getattr, NULL, true);
