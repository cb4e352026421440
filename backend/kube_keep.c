/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of jobs whose output is kept are written beside it, one after the other, on the pool: soon
 * after they have changed, and again when they have changed meanwhile. What is written is the newest
 * that the store has when its turn comes.
 */
#include <errno.h>
#include <utlist.h>

#include "backend/kube.h"
#include "spec/snapshot.h"

#define SOON_MS 1000

struct kube_keep {
	struct kube *k;
	char *uid;
	const struct spec_job *job; /* being written */
	char *dir;
	int err;
	struct kube_keep *prev, *next;
	UT_hash_handle hh; /* by uid */
};

static void entry_free(struct kube_keep *keep)
{
	spec_job_unref(keep->job);
	free(keep->dir);
	free(keep->uid);
	free(keep);
}

static void write_next(struct kube *k);

static void keep_work(void *data)
{
	struct kube_keep *keep = data;
	cleanup_free char *text = spec_snapshot_text(keep->job);

	keep->err =
		text && keep->dir ? file_write(keep->dir, "job.json", text, strlen(text)) : -ENOMEM;
}

static void kept(void *data)
{
	struct kube_keep *keep = data;
	struct kube *k = keep->k;

	/* Its folder may have been removed meanwhile. */
	if (keep->err && keep->err != -ENOENT)
		diag(DIAG_ERROR, "%s: what is known of it can't be kept: %s", keep->job->id,
		     strerror(-keep->err));
	entry_free(keep);
	k->keeping = false;
	keep_soon(k->keep);
	write_next(k);
	kube_check_stopped(k);
}

/* Is the folder of JOB's name its own, with output? */
static bool has_folder(struct kube *k, const struct spec_job *job)
{
	const struct kube_own *own = kube_own_find(k, job->id);

	return own && own->output && !own->removing && streq(own->uid, job->uid);
}

static void write_next(struct kube *k)
{
	struct kube_keep *keep;

	while (!k->keeping && (keep = k->keep_list)) {
		DL_DELETE(k->keep_list, keep);
		HASH_DEL(k->keeps, keep);
		keep->job = store_get_uid(k->b->store, keep->uid);
		if (!keep->job || !has_folder(k, keep->job)) {
			entry_free(keep);
			continue;
		}
		keep->dir = file_path(k->b->config.state_dir, keep->job->id, NULL);
		k->keeping = true;
		loop_work(k->b->loop, keep_work, kept, keep);
	}
}

static void on_keep_timer(void *data)
{
	struct kube *k = data;

	loop_timer_free(take_ptr(k->keep_timer));
	write_next(k);
}

void kube_keep(struct kube *k, const char *uid, bool now)
{
	struct kube_keep *keep;

	HASH_FIND_STR(k->keeps, uid, keep);
	if (!keep) {
		keep = calloc(1, sizeof(*keep));
		if (keep)
			keep->uid = strdup(uid);
		if (keep && keep->uid)
			HASH_ADD_KEYPTR(hh, k->keeps, keep->uid, strlen(keep->uid), keep);
		if (!keep || !keep->hh.tbl) {
			diag(DIAG_ERROR, "out of memory; what is known of a job is not kept");
			if (keep)
				entry_free(keep);
			return;
		}
		keep->k = k;
		DL_APPEND(k->keep_list, keep);
	}
	if (now)
		write_next(k);
	else if (!k->keep_timer)
		k->keep_timer = loop_timer_new(k->b->loop, SOON_MS, 0, on_keep_timer, k);
}

void kube_keep_stop(struct kube *k)
{
	loop_timer_free(take_ptr(k->keep_timer));
	write_next(k);
}
