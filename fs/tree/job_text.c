/* SPDX-License-Identifier: MIT */
/* The texts in a job's directory: state, status, why, usage, manifest.yaml, events, ctl ... */
#include <errno.h>

#include "backend/base/diag.h"
#include "fs/tree/job.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/job/status.h"

void rendered_clear(struct rendered *r)
{
	spec_job_unref(r->job);
	free(r->text);
	*r = (struct rendered){0};
}

void rendered_text(struct rendered *r, const struct spec_job *job, rendered_fn fn, char **ret,
		   size_t *ret_len)
{
	if (r->job != job || r->fn != fn) {
		rendered_clear(r);
		r->job = spec_job_ref(job);
		r->fn = fn;
		fn(job, &r->text, &r->len);
	}
	*ret = mem_copy(r->text, r->len);
	*ret_len = r->len;
}

static int job_render(const struct node *node, rendered_fn fn, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (!job)
		return -ENOENT;
	rendered_text(&job_ref_of(node)->tree->rendered, job, fn, ret, ret_len);
	return 0;
}

static void job_state(const struct spec_job *job, char **ret, size_t *ret_len)
{
	*ret = text_copy(spec_status_state(job->state));
	*ret_len = strlen(*ret);
}

#define JOB_RENDER(name, text)                                                                     \
	static int name(struct fs *fs, struct node *node, char **ret, size_t *ret_len)             \
	{                                                                                          \
		return job_render(node, text, ret, ret_len);                                       \
	}
JOB_RENDER(job_render_state, job_state)
JOB_RENDER(job_render_status, spec_status_yaml)
JOB_RENDER(job_render_json, spec_status_json)
JOB_RENDER(job_render_usage, spec_status_usage)

/* Not cached, because the advice in `why` also depends on what this mount may do. */
static int job_render_why(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (!job)
		return -ENOENT;
	spec_status_why(job, job_ref_allowed(job_ref_of(node)->tree, job), ret, ret_len);
	return 0;
}

static enum backend_text job_backend_which(const struct node *node)
{
	return node->class == &job_appdef_text.class ? BACKEND_APPDEF : BACKEND_MANIFEST;
}

static int job_backend_text(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);
	int err = job ? serve_disk_begin(fs) : -ENOENT;

	if (err)
		return err;
	err = backend_text(job_ref_of(node)->tree->backend, job, job_backend_which(node), ret,
			   ret_len);
	serve_disk_end(fs);
	return err;
}

/* *RET_CHANGED, the last event's time, becomes the mtime, because events don't change the job. */
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

static int job_backend_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);
	const enum backend_text which = job_backend_which(node);
	struct backend *b = job_ref_of(node)->tree->backend;
	size_t len = 0;
	mode_t readable;
	int err = job ? serve_disk_begin(fs) : -ENOENT;

	if (err)
		return err;
	err = backend_text_size(b, job, which, &len);
	readable = backend_text_readable(b, job);
	serve_disk_end(fs);
	if (err)
		return err;
	node_set_times(st, which == BACKEND_APPDEF ? job->created : job->changed, job->created);
	/* The text may contain secrets: only readers of the submitted file may read it. */
	st->st_mode &= ~(mode_t)(S_IRGRP | S_IROTH) | readable;
	st->st_size = (off_t)len;
	return 0;
}

static void job_opened(struct node *node)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (job && *job->queue && (job->state == SPEC_PENDING || job->state == SPEC_SUBMITTED))
		backend_wanted(job_ref_of(node)->tree->backend, BACKEND_POSITIONS);
}

static void job_json_opened(struct node *node)
{
	job_opened(node);
	job_ref_usage_opened(node);
}

#define JOB_TEXT(file, render_fn, getattr_fn, opened_fn, is_on_disk)                               \
	const struct text_class file = {                                                           \
		.class = {.name = #file, TEXT_OPS, .getattr = getattr_fn, .on_disk = is_on_disk},  \
		.render = render_fn,                                                               \
		.opened = opened_fn,                                                               \
	}

JOB_TEXT(job_state_text, job_render_state, job_ref_text_getattr, NULL, false);
JOB_TEXT(job_status_text, job_render_status, job_ref_text_getattr, job_opened, false);
JOB_TEXT(job_json_text, job_render_json, job_ref_text_getattr, job_json_opened, false);
JOB_TEXT(job_why_text, job_render_why, job_ref_text_getattr, job_opened, false);
JOB_TEXT(job_usage_text, job_render_usage, job_ref_text_getattr, job_ref_usage_opened, false);
JOB_TEXT(job_manifest_text, job_backend_text, job_backend_getattr, NULL, true);
JOB_TEXT(job_events_text, job_render_events, job_events_getattr, NULL, false);
JOB_TEXT(job_appdef_text, job_backend_text, job_backend_getattr, NULL, true);

/* --- ctl: a read lists the possible actions, a write requests one of them --- */

/* deadline of a write to ctl; backend_control should answer within 5 s */
#define JOB_CTL_MS 10000

static int job_render_ctl(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (!job)
		return -ENOENT;
	spec_status_ctl(job, job_ref_allowed(job_ref_of(node)->tree, job), ret, ret_len);
	return 0;
}

/* Return the enum spec_action in BUF, or -EINVAL. Set *RET as spec_action_parse does. */
static int job_ctl_parse(const char *buf, size_t size, char **ret)
{
	char word[SPEC_MAX_NAME + 32];
	size_t start = 0;

	while (start < size && strchr(" \t\n", buf[start]) && buf[start])
		start++;
	while (size > start && strchr(" \t\n", buf[size - 1]) && buf[size - 1])
		size--;
	if (size - start >= sizeof(word) || memchr(buf + start, '\0', size - start))
		return -EINVAL;
	memcpy(word, buf + start, size - start);
	word[size - start] = '\0';
	return spec_action_parse(word, ret);
}

/* Return 0 if this mount allows ACTION (job_ctl_parse) for NODE's job, else a negative errno. */
static int job_ctl_check(const struct node *node, int action)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (action < 0) {
		diag(DIAG_WARNING,
		     "%s/ctl: write one of suspend, resume, restart, terminate, release, queue NAME, priority CLASS",
		     job_ref_of(node)->id);
		return action;
	}
	if (!job)
		return -ENOENT;
	/* -o cancel does not restrict `release`, which does not end a job. */
	return action == SPEC_RELEASE ? 0 : job_ref_may_end(job_ref_of(node)->tree, job);
}

static void job_ctl_write(struct fs *fs, fuse_req_t req, struct node *node, const char *buf,
			  size_t size, off_t off, struct fuse_file_info *fi)
{
	const struct job_ref *p = job_ref_of(node);
	cleanup_free char *argument = NULL;
	int action = job_ctl_parse(buf, size, &argument);
	int err = job_ctl_check(node, action);
	struct job_request *r;

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	r = job_request_new(fs, req, PARK_WRITE, JOB_CTL_MS, size, text_print("%s/ctl", p->id));
	if (r)
		backend_control(p->tree->backend, p->id, p->uid, (enum spec_action)action, argument,
				job_request_done, r);
}

const struct text_class job_ctl_text = {
	.class = {.name = "ctl", TEXT_OPS, .getattr = job_ref_text_getattr, .write = job_ctl_write},
	.render = job_render_ctl,
};
