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
	bool unread;	    /* there is one that can't be read, and is not written over */
	char *unread_place; /* where that is now */
	int err;
	struct kube_keep *prev, *next;
	UT_hash_handle hh; /* by uid */
};

static void entry_free(struct kube_keep *keep)
{
	spec_job_unref(keep->job);
	free(keep->dir);
	free(keep->unread_place);
	free(keep->uid);
	free(keep);
}

static void write_next(struct kube *k);

static int put_aside(struct kube_keep *keep)
{
	cleanup_free char *from = NULL, *to = NULL;
	int err;

	if (asprintf(&from, "%s/job.json", keep->dir) < 0)
		from = NULL;
	if (asprintf(&to, "%s/job.json.unread", keep->dir) < 0)
		to = NULL;
	err = from && to ? file_aside(from, to, &keep->unread_place) : -ENOMEM;
	return err == -ENOENT ? 0
			      : err; /* a crash came after this and before the next was written */
}

static void keep_work(void *data)
{
	struct kube_keep *keep = data;
	cleanup_free char *text = spec_snapshot_text(keep->job);

	keep->err = text && keep->dir ? 0 : -ENOMEM;
	if (!keep->err && keep->unread)
		keep->err = put_aside(keep);
	if (!keep->err)
		keep->err = file_write(keep->dir, "job.json", text, strlen(text));
}

static void kept(void *data)
{
	struct kube_keep *keep = data;
	struct kube *k = keep->k;
	struct kube_own *own = kube_own_find(k, keep->job->id);

	if (keep->unread && !keep->err && own)
		own->unread = false;
	if (keep->unread_place)
		diag(DIAG_WARNING, "%s: what could not be read is kept in %s", keep->job->id,
		     keep->unread_place);
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

/* The folder of JOB's name, if it is its own and has output; else NULL. */
static const struct kube_own *folder_of(struct kube *k, const struct spec_job *job)
{
	const struct kube_own *own = kube_own_find(k, job->id);

	return own && own->output && !own->removing && streq(own->uid, job->uid) ? own : NULL;
}

/* Is its folder still to be made? A disk that hangs may take long for that, and then has no output either. */
static bool is_early(struct kube *k, const struct kube_keep *keep)
{
	const struct kube_job *live = kube_job_find(k, keep->uid);

	return live && live->spool && !spool_job_is_made(live->spool) && !k->stopping;
}

/* Write KEEP, which is not in the list any more; or it is of no more use. */
static void write_one(struct kube *k, struct kube_keep *keep)
{
	const struct kube_own *own;

	keep->job = store_get_uid(k->b->store, keep->uid);
	own = keep->job ? folder_of(k, keep->job) : NULL;
	if (!own) {
		entry_free(keep);
		return;
	}
	keep->unread = own->unread;
	keep->dir = file_path(k->b->config.state_dir, keep->job->id, NULL);
	k->keeping = true;
	loop_work(k->b->loop, keep_work, kept, keep);
}

static void on_keep_timer(void *data);

static void write_soon(struct kube *k)
{
	if (!k->keep_timer)
		k->keep_timer = loop_timer_new(k->b->loop, SOON_MS, 0, on_keep_timer, k);
}

static void write_next(struct kube *k)
{
	struct kube_keep *keep, *next;

	DL_FOREACH_SAFE(k->keep_list, keep, next) {
		if (k->keeping)
			return;
		if (is_early(k, keep)) {
			write_soon(k);
			continue;
		}
		DL_DELETE(k->keep_list, keep);
		HASH_DEL(k->keeps, keep);
		write_one(k, keep);
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
	else
		write_soon(k);
}

void kube_keep_stop(struct kube *k)
{
	loop_timer_free(take_ptr(k->keep_timer));
	write_next(k);
}
