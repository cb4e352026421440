/* SPDX-License-Identifier: MIT */
/*
 * The file ctl of a job: reading it lists the actions that the job would accept now; writing one,
 * with its argument, carries it out. The write fails if the action does; .kxfs/log has the reason.
 */
#include <errno.h>

#include "backend/base/diag.h"
#include "fs/tree/job.h"
#include "fs/vfs/park.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/job/status.h"

/* backend_control answers within 5 s; this limit applies if it does not. */
#define JOB_CTL_MS 10000

static int job_render_ctl(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (!job)
		return -ENOENT;
	spec_status_ctl(job, job_ref_allowed(job_ref_of(node)->tree, job), ret, ret_len);
	return 0;
}

struct job_ctl {
	struct fs *fs;
	uint64_t ticket;
	size_t size;
	char *id; /* id of the job, for messages */
};

static void job_ctl_free(struct job_ctl *c)
{
	free(c->id);
	free(c);
}

static void job_ctl_done(void *data, const struct backend_result *result)
{
	struct job_ctl *c = data;
	fuse_req_t req = park_claim(c->fs->park, c->ticket);

	if (result->err && *result->text)
		diag(DIAG_WARNING, "%s/ctl: %s", c->id, result->text);
	if (req && result->err)
		fuse_reply_err(req, -result->err);
	else if (req)
		fuse_reply_write(req, c->size);
	job_ctl_free(c);
}

/*
 * Parse the action of a write, without surrounding white space. -EINVAL if there is none. *RET is
 * set as by spec_action_parse.
 */
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

/* Check if ACTION may be requested for the job of NODE. Return 0 or a negative errno. */
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
	/* A release does not end anything. */
	return action == SPEC_RELEASE ? 0 : job_ref_may_end(job_ref_of(node)->tree, job);
}

static void job_ctl_write(struct fs *fs, fuse_req_t req, struct node *node, const char *buf,
			  size_t size, off_t off, struct fuse_file_info *fi)
{
	const struct job_ref *p = job_ref_of(node);
	cleanup_free char *argument = NULL;
	int action = job_ctl_parse(buf, size, &argument);
	int err = job_ctl_check(node, action);
	struct job_ctl *c;

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	c = new0(struct job_ctl);
	c->fs = fs;
	c->size = size;
	c->id = text_copy(p->id);
	c->ticket = park_add(fs->park, req, PARK_WRITE, JOB_CTL_MS);
	if (c->ticket)
		backend_control(p->tree->backend, p->id, p->uid, (enum spec_action)action, argument,
				job_ctl_done, c);
	else
		job_ctl_free(c);
}

const struct text_class job_ctl_text = {
	.class =
		{
			.name = "ctl",
			.mode = S_IFREG | 0644,
			.getattr = job_ref_text_getattr,
			TEXT_OPS,
			.write = job_ctl_write,
		},
	.render = job_render_ctl,
};
