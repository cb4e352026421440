/* SPDX-License-Identifier: MIT */
/*
 * The file ctl of a job: reading it lists the actions that the job would obey now, writing one word
 * does it. The write tells success and failure; .kxfs/log says why.
 */
#include <errno.h>

#include "backend/diag.h"
#include "fs/job.h"
#include "fs/park.h"
#include "spec/status.h"

/* backend_control answers within 5 s; this is for when it does not. */
#define JOB_CTL_MS 10000

static int job_render_ctl(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);

	return job ? spec_status_ctl(job, ret, ret_len) : -ENOENT;
}

struct job_ctl {
	struct fs *fs;
	uint64_t ticket;
	size_t size;
	char id[]; /* of the job, for messages */
};

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
	free(c);
}

/* The one word of a write, without white space around it; -EINVAL: it is no action. */
static int job_ctl_parse(const char *buf, size_t size)
{
	char word[32];
	size_t start = 0;

	while (start < size && strchr(" \t\n", buf[start]) && buf[start])
		start++;
	while (size > start && strchr(" \t\n", buf[size - 1]) && buf[size - 1])
		size--;
	if (size - start >= sizeof(word) || memchr(buf + start, '\0', size - start))
		return -EINVAL;
	memcpy(word, buf + start, size - start);
	word[size - start] = '\0';
	return spec_action_parse(word);
}

/* 0: ACTION may be asked of the job. */
static int job_ctl_check(struct fs *fs, const struct job_node *dir, int action)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, &dir->node);

	if (action < 0) {
		diag(DIAG_WARNING, "%s/ctl: write one of suspend, resume, restart, terminate",
		     dir->id);
		return action;
	}
	return job ? jobs_may_cancel(fs, job) : -ENOENT;
}

static void job_ctl_write(struct fs *fs, fuse_req_t req, struct node *node, const char *buf,
			  size_t size, off_t off, struct fuse_file_info *fi)
{
	const struct job_node *dir = jobs_dir_of(node);
	struct job_ctl *c cleanup_free = calloc(1, sizeof(*c) + strlen(dir->id) + 1);
	int action = job_ctl_parse(buf, size);
	int err = c ? job_ctl_check(fs, dir, action) : -ENOMEM;

	(void)off, (void)fi;
	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	c->fs = fs;
	c->size = size;
	memcpy(c->id, dir->id, strlen(dir->id) + 1);
	c->ticket = park_add(fs->park, req, PARK_WRITE, JOB_CTL_MS);
	if (!c->ticket)
		return;
	backend_control(fs->backend, dir->id, dir->uid, (enum spec_action)action, job_ctl_done, c);
	c = NULL; /* job_ctl_done frees it */
}

const struct text_class job_ctl_text = {
	.class =
		{
			.name = "ctl",
			.mode = S_IFREG | 0644,
			.getattr = job_text_getattr,
			TEXT_OPS,
			.write = job_ctl_write,
		},
	.render = job_render_ctl,
};
