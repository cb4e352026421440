/* SPDX-License-Identifier: MIT */
/* The texts of a job: state, status, status.json, why, manifest.yaml, app.yaml, events. */
#include <errno.h>

#include "fs/job.h"
#include "spec/status.h"

int job_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);

	if (!job)
		return -ENOENT;
	node_set_times(st, job->changed, job->created);
	/* Who has read that a job has ended must find its times changed as well. */
	node->live = !job->finished;
	return 0;
}

int job_text_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	int err = job_getattr(fs, node, st);

	return err ? err : text_size(fs, node, &st->st_size);
}

static int job_render_state(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);

	if (!job)
		return -ENOENT;
	*ret = strdup(spec_status_state(job->state));
	*ret_len = *ret ? strlen(*ret) : 0;
	return *ret ? 0 : -ENOMEM;
}

/* A file whose text is a function of the snapshot alone. */
static int job_render(struct fs *fs, const struct node *node,
		      int (*text)(const struct spec_job *, char **, size_t *), char **ret,
		      size_t *ret_len)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);

	return job ? text(job, ret, ret_len) : -ENOENT;
}

static int job_render_status(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	return job_render(fs, node, spec_status_yaml, ret, ret_len);
}

static int job_render_json(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	return job_render(fs, node, spec_status_json, ret, ret_len);
}

static int job_render_why(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	return job_render(fs, node, spec_status_why, ret, ret_len);
}

/* A text that the backend keeps; its size is known without reading it. */
static int job_backend_text(struct fs *fs, struct node *node, enum backend_text which, char **ret,
			    size_t *ret_len)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);

	return job ? backend_text(fs->backend, job, which, ret, ret_len) : -ENOENT;
}

static int job_render_manifest(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	return job_backend_text(fs, node, BACKEND_MANIFEST, ret, ret_len);
}

static int job_render_appdef(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	return job_backend_text(fs, node, BACKEND_APPDEF, ret, ret_len);
}

/* Events are no change of the job: they have times of their own. */
static int job_events(struct fs *fs, const struct node *node, char **ret, size_t *ret_len,
		      int64_t *ret_changed)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);

	return job ? backend_events(fs->backend, job, ret, ret_len, ret_changed) : -ENOENT;
}

static int job_render_events(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	int64_t changed;

	return job_events(fs, node, ret, ret_len, &changed);
}

static int job_events_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	char *text cleanup_free = NULL;
	int64_t changed;
	size_t len;
	int err = job_getattr(fs, node, st);

	if (!err)
		err = job_events(fs, node, &text, &len, &changed);
	if (err)
		return err;
	if (changed)
		node_set_times(st, changed, changed);
	st->st_size = (off_t)len;
	return 0;
}

static int job_backend_getattr(struct fs *fs, struct node *node, enum backend_text which,
			       struct stat *st)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);
	size_t len = 0;
	int err = job ? backend_text_size(fs->backend, job, which, &len) : -ENOENT;

	if (err)
		return err;
	node_set_times(st, which == BACKEND_APPDEF ? job->created : job->changed, job->created);
	st->st_size = (off_t)len;
	return 0;
}

static int job_manifest_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	return job_backend_getattr(fs, node, BACKEND_MANIFEST, st);
}

static int job_appdef_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	return job_backend_getattr(fs, node, BACKEND_APPDEF, st);
}

#define JOB_TEXT(file, render_fn, getattr_fn)                                                      \
	const struct text_class file = {                                                           \
		.class =                                                                           \
			{                                                                          \
				.name = #file,                                                     \
				.mode = S_IFREG | 0644,                                            \
				.getattr = getattr_fn,                                             \
				TEXT_OPS,                                                          \
			},                                                                         \
		.render = render_fn,                                                               \
	}

JOB_TEXT(job_state_text, job_render_state, job_text_getattr);
JOB_TEXT(job_status_text, job_render_status, job_text_getattr);
JOB_TEXT(job_json_text, job_render_json, job_text_getattr);
JOB_TEXT(job_why_text, job_render_why, job_text_getattr);
JOB_TEXT(job_manifest_text, job_render_manifest, job_manifest_getattr);
JOB_TEXT(job_events_text, job_render_events, job_events_getattr);
JOB_TEXT(job_appdef_text, job_render_appdef, job_appdef_getattr);
