/* SPDX-License-Identifier: MIT */
/*
 * Removing what is kept of jobs: those of the history for good, because somebody asked for it or their
 * time is over; and, where room is short, the output of finished jobs that are still in the cluster.
 */
#include <errno.h>

#include "backend/kube.h"

struct removal {
	struct kube *k;
	struct backend_request *rq; /* NULL: nobody asked */
	char *id;
	char *uid;
	bool history;
};

static void removal_free(struct removal *r)
{
	free(r->id);
	free(r->uid);
	free(r);
}

static void removed(void *data)
{
	struct removal *r = data;
	struct kube *k = r->k;

	if (r->history)
		store_remove(k->b->store, r->uid);
	if (r->rq)
		backend_answer(r->rq, 0, NULL, NULL);
	removal_free(r);
	k->n_removing--;
	keep_now(k->keep);
	kube_check_stopped(k);
}

/* 0, or -ENOMEM: nothing is removed. */
static int begin(struct kube *k, const struct spec_job *job, struct backend_request *rq)
{
	struct kube_job *live = kube_job_find(k, job->uid);
	struct removal *r = calloc(1, sizeof(*r));
	const struct kube_own *own;

	if (r) {
		r->id = strdup(job->id);
		r->uid = strdup(job->uid);
	}
	if (!r || !r->id || !r->uid) {
		if (r)
			removal_free(r);
		return -ENOMEM;
	}
	r->k = k;
	r->rq = rq;
	r->history = job->history;
	k->n_removing++;
	own = kube_own_find(k, job->id);
	if (live)
		kube_logs_free(live);
	/* The folder may be another job's of that name by now. */
	if (!own || (*own->uid && !streq(own->uid, job->uid)))
		loop_post(k->b->loop, removed, r);
	else if (job->history)
		kube_folder_remove(k, r->id, removed, r);
	else
		kube_output_drop(k, r->id, removed, r);
	/* Its streams may have been all that kept it. */
	if (live)
		kube_job_settle(live);
	return 0;
}

void kube_forget(struct backend *b, struct backend_request *rq)
{
	const struct spec_job *job cleanup_job = store_get_uid(b->store, rq->uid);
	int err = job ? begin(kube_of(b), job, rq) : -ENOENT;

	if (err)
		backend_answer(rq, err, NULL, NULL);
}

/* --- when nobody asks --- */

static bool may_go(struct backend *b, const struct spec_job *job)
{
	struct kube *k = kube_of(b);
	const struct kube_job *live = kube_job_find(k, job->uid);
	const struct kube_own *own = kube_own_find(k, job->id);

	return own && own->output && !own->removing && streq(own->uid, job->uid) &&
	       !job->suspended && !(live && live->n_following > live->n_resting);
}

static bool is_removing(struct backend *b)
{
	return kube_of(b)->n_removing;
}

static void remove_job(struct backend *b, const struct spec_job *job)
{
	(void)begin(kube_of(b), job, NULL);
}

const struct keep_ops kube_keep_ops = {may_go, is_removing, remove_job};
