/* SPDX-License-Identifier: MIT */
/*
 * Whose the folders of the state directory are. What stands there says which jobs are ours, also after a
 * crash in the middle of a submission, and where output is. Folders come with submissions and with output;
 * they go when nobody needs them, or make room for another job of their name.
 */
#include <errno.h>
#include <sys/stat.h>

#include "backend/kube.h"
#include "spec/name.h"

struct kube_own *kube_own_find(struct kube *k, const char *id)
{
	struct kube_own *own;

	HASH_FIND_STR(k->own, id, own);
	return own;
}

static void own_free(struct kube_own *own)
{
	if (own->hh.tbl)
		HASH_DEL(own->k->own, own);
	free(own->id);
	free(own->uid);
	free(own->submission);
	free(own->file);
	free(own);
}

struct kube_own *kube_own_add(struct kube *k, const char *id, const char *submission,
			      const char *uid)
{
	struct kube_own *own = calloc(1, sizeof(*own));

	if (!own)
		return NULL;
	own->k = k;
	own->id = strdup(id);
	own->uid = strdup(uid);
	own->submission = strdup(submission);
	if (own->id && own->uid && own->submission)
		HASH_ADD_KEYPTR(hh, k->own, own->id, strlen(own->id), own);
	if (own->hh.tbl)
		return own;
	own_free(own);
	return NULL;
}

void kube_own_free(struct kube *k)
{
	struct kube_own *own, *next;

	HASH_ITER(hh, k->own, own, next)
		own_free(own);
}

/* Without annotations (no_annotations) the name has to do, if it is one that nobody else chooses. */
static bool is_submission(const struct kube_own *own, const struct spec_job_view *view)
{
	const char *dash = strrchr(own->id, '-');

	if (*view->submission)
		return streq(own->submission, view->submission);
	return *own->submission && dash && spec_name_is_suffix(dash + 1);
}

struct kube_own *kube_own_of(struct kube *k, const struct spec_job_view *view)
{
	struct kube_own *own = kube_own_find(k, view->meta.name);

	if (!own || own->removing)
		return NULL;
	return (*own->uid ? streq(own->uid, view->meta.uid) : is_submission(own, view)) ? own
											: NULL;
}

static int set_uid(struct kube_own *own, const char *uid)
{
	char *copy = strdup(uid);

	if (!copy)
		return -ENOMEM;
	free(own->uid);
	own->uid = copy;
	return 0;
}

void kube_own_bind(struct kube *k, const struct spec_job_view *view)
{
	struct kube_own *own = kube_own_of(k, view);

	if (own && !*own->uid)
		(void)set_uid(own, view->meta.uid); /* else when it is published next */
}

void kube_own_launched(struct kube *k, const char *id, const char *uid)
{
	struct kube_own *own = kube_own_find(k, id);

	if (own && !own->removing && !*own->uid)
		(void)set_uid(own, uid);
}

bool kube_is_own(struct kube *k, const struct spec_job_view *view)
{
	const struct kube_own *own = kube_own_of(k, view);

	return own && *own->submission;
}

bool kube_has_output(struct kube *k, const struct spec_job_view *view)
{
	const struct kube_own *own = kube_own_of(k, view);

	return own && own->output;
}

bool kube_is_dropped(struct kube *k, const struct spec_job_view *view)
{
	const struct kube_own *own = kube_own_of(k, view);

	return own && own->dropped;
}

/* --- folders that come and go --- */

/* A job of that name may wait for the folder. */
static void mark_all(struct kube *k, const char *id)
{
	for (struct kube_job *job = k->jobs; job; job = job->hh.next)
		if (job->view && streq(job->view->meta.name, id))
			kube_mark(job);
}

static void removed(void *data)
{
	struct kube_own *own = data;
	struct kube *k = own->k;
	loop_fn fn = own->removed;
	void *arg = own->data;

	mark_all(k, own->id);
	own_free(own);
	if (fn)
		fn(arg);
}

void kube_folder_remove(struct kube *k, const char *id, loop_fn done, void *data)
{
	struct kube_own *own = kube_own_find(k, id);

	if (own && !own->removing) {
		own->removing = true;
		own->removed = done;
		own->data = data;
		if (!own->clearing) /* else when that is done: by then the name may be another job's */
			spool_job_remove(k->b->spool, own->id, removed, own);
	} else if (!own) {
		spool_job_remove(k->b->spool, id, done, data);
	} else if (done) {
		loop_post(k->b->loop, done, data);
	}
}

/* Output that is being removed. */
struct drop {
	struct kube *k;
	char *id;
	char *uid;
	char *dir;
	int err;
	loop_fn done;
	void *data;
};

static void drop_free(struct drop *d)
{
	free(d->id);
	free(d->uid);
	free(d->dir);
	free(d);
}

static void dropped(void *data)
{
	struct drop *d = data;
	struct kube_own *own = kube_own_find(d->k, d->id);

	if (own)
		own->clearing = false;
	if (own && own->removing)
		spool_job_remove(d->k->b->spool, own->id, removed, own);
	mark_all(d->k, d->id);
	if (d->done)
		d->done(d->data);
	drop_free(d);
}

static void drop_output(void *data)
{
	struct drop *d = data;

	if (d->err)
		diag(DIAG_ERROR, "%s: that its output is removed can't be recorded: %s", d->id,
		     strerror(-d->err));
	spool_output_remove(d->k->b->spool, d->id, dropped, d);
}

/* First what says so, or the next mount would fetch it all again. */
static void drop_work(void *data)
{
	struct drop *d = data;
	cleanup_free char *snapshot = file_path(d->k->b->config.state_dir, d->id, "job.json");

	d->err = file_write(d->dir, "dropped", d->uid, strlen(d->uid));
	if (!d->err && snapshot && unlink(snapshot) < 0 && errno != ENOENT)
		d->err = -errno;
}

void kube_output_drop(struct kube *k, const char *id, loop_fn done, void *data)
{
	struct kube_own *own = kube_own_find(k, id);
	struct drop *d = own && !own->removing ? calloc(1, sizeof(*d)) : NULL;

	if (d) {
		d->id = strdup(id);
		d->uid = strdup(own->uid);
		d->dir = file_path(k->b->config.state_dir, id, NULL);
	}
	if (!d || !d->id || !d->uid || !d->dir) {
		if (d)
			drop_free(d);
		if (done)
			loop_post(k->b->loop, done, data);
		return;
	}
	d->k = k;
	d->done = done;
	d->data = data;
	own->output = false;
	own->dropped = own->clearing = true;
	loop_work(k->b->loop, drop_work, drop_output, d);
}

/* A folder that goes out of the way as it is. */
struct aside {
	struct kube *k;
	char *id;
	char *from;
	char *dir; /* STATE/unread */
	char *to;
	char *place; /* where it is now */
	int err;
};

static void aside_free(struct aside *a)
{
	free(a->id);
	free(a->from);
	free(a->dir);
	free(a->to);
	free(a->place);
	free(a);
}

static void aside_work(void *data)
{
	struct aside *a = data;

	if (mkdir(a->dir, 0700) < 0 && errno != EEXIST)
		a->err = -errno;
	else
		a->err = file_aside(a->from, a->to, &a->place);
}

static void aside_done(void *data)
{
	struct aside *a = data;
	struct kube_own *own = kube_own_find(a->k, a->id);

	if (!a->err) {
		diag(DIAG_WARNING,
		     "%s: another job of this name has output now; the old is kept in %s", a->id,
		     a->place);
		mark_all(a->k, a->id);
		own_free(own);
	} else {
		/* It is not tried again: OWN stays as it is. */
		diag(DIAG_ERROR,
		     "%s: its output is not captured: %s has that of another job, which can't be "
		     "read "
		     "and can't be moved to %s: %s",
		     a->id, a->from, a->to, strerror(-a->err));
	}
	aside_free(a);
}

/* Nobody can tell whose the folder of OWN is, and a job of its name wants one. */
static void put_aside(struct kube *k, struct kube_own *own)
{
	const char *state_dir = k->b->config.state_dir;
	struct aside *a = calloc(1, sizeof(*a));

	if (!a)
		return;
	a->k = k;
	a->id = strdup(own->id);
	a->from = file_path(state_dir, own->id, NULL);
	if (asprintf(&a->dir, "%s/unread", state_dir) < 0)
		a->dir = NULL;
	if (asprintf(&a->to, "%s/unread/%s", state_dir, own->id) < 0)
		a->to = NULL;
	if (!a->id || !a->from || !a->dir || !a->to) {
		aside_free(a);
		return;
	}
	own->removing = true;
	loop_work(k->b->loop, aside_work, aside_done, a);
}

/* OWN's folder is another job's. If that is history, or can't be told, it makes room. */
static void displace(struct kube *k, struct kube_own *own)
{
	if (!own->removing && own->unread)
		put_aside(k, own);
	if (own->removing || !*own->uid || kube_job_find(k, own->uid))
		return;
	diag(DIAG_INFO, "%s: another job of this name has output now; that of the old is removed",
	     own->id);
	store_remove(k->b->store, own->uid);
	kube_folder_remove(k, own->id, NULL, NULL);
}

int kube_own_claim(struct kube *k, const struct spec_job_view *view)
{
	struct kube_own *own = kube_own_find(k, view->meta.name);

	if (!own)
		own = kube_own_add(k, view->meta.name, "", view->meta.uid);
	else if (!kube_own_of(k, view)) {
		displace(k, own);
		return -EBUSY;
	} else if (own->clearing)
		return -EBUSY;
	if (!own || set_uid(own, view->meta.uid) < 0)
		return -ENOMEM;
	own->output = true;
	return 0;
}
