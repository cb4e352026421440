/* SPDX-License-Identifier: MIT */
/*
 * The state directory of a mount of a cluster: STATE/jobs/ID/ with the file as it was submitted
 * (app.yaml) and the UUID of the write and its name (submission), both made before anything is sent; the output that
 * was captured; and with it the newest snapshot (job.json), or instead of both, that it was removed to
 * make room (dropped, with the uid of the job). What stands there says which jobs are ours, also after a
 * crash in the middle of a submission, and what there is in the history.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "backend/kube.h"
#include "spec/name.h"
#include "spec/snapshot.h"

#define UUID_LEN       36
#define SUBMISSION_MAX (UUID_LEN + 1 + NAME_MAX + 1)
#define UID_MAX	       255
#define SNAPSHOT_MAX   (64u << 20)

/* --- whose folders they are --- */

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

static struct kube_own *own_new(struct kube *k, const char *id, const char *submission)
{
	struct kube_own *own = calloc(1, sizeof(*own));

	if (!own)
		return NULL;
	own->k = k;
	own->id = strdup(id);
	own->uid = strdup("");
	own->submission = strdup(submission);
	if (own->id && own->uid && own->submission)
		HASH_ADD_KEYPTR(hh, k->own, own->id, strlen(own->id), own);
	if (own->hh.tbl)
		return own;
	own_free(own);
	return NULL;
}

int kube_own_add(struct kube *k, const char *id, const char *submission)
{
	return own_new(k, id, submission) ? 0 : -ENOMEM;
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

/* OWN's folder is another job's. If that is history, it makes room. */
static void displace(struct kube *k, const struct kube_own *own)
{
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
		own = own_new(k, view->meta.name, "");
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

/* --- what an earlier mount has left --- */

/* A folder of STATE/jobs/. */
struct folder {
	char *id;
	char *submission;	   /* NULL: not submitted from here */
	char *file;		   /* as which it was written; NULL: not known */
	int64_t written;	   /* when, ns */
	char *dropped;		   /* uid of the job whose output was removed; NULL: none was */
	struct spec_job *snapshot; /* NULL: none was kept */
	bool damaged;		   /* what was kept can't be read */
	struct folder *next;
};

struct load {
	struct kube *k;
	char *state_dir;
	struct folder *folders;
	int err;
	void (*fn)(struct kube *k, int err);
};

/* NAME in the folder ID. 0; -ENOENT; -EINVAL: it is none of ours; any other errno: not now. */
static int load_file(const struct load *l, const char *id, const char *name, size_t max, char **ret,
		     size_t *ret_len)
{
	cleanup_free char *path = file_path(l->state_dir, id, name);
	int err = path ? file_read(path, max, ret, ret_len) : -ENOMEM;

	return err == -EFBIG || err == -ELOOP || err == -ENOTDIR ? -EINVAL : err;
}

static int load_snapshot(struct load *l, struct folder *f)
{
	cleanup_free char *text = NULL;
	size_t len;
	int err = load_file(l, f->id, "job.json", SNAPSHOT_MAX, &text, &len);

	if (!err)
		err = spec_snapshot_parse(text, len, &f->snapshot);
	if (!err && !streq(f->snapshot->id, f->id)) {
		spec_job_unref(take_ptr(f->snapshot));
		err = -EINVAL;
	}
	f->damaged = err == -EINVAL;
	if (f->damaged)
		diag(DIAG_WARNING, "%s/jobs/%s/job.json can't be read; its output is kept",
		     l->state_dir, f->id);
	return f->damaged || err == -ENOENT ? 0 : err;
}

/* The UUID, a newline, and the name of the file. */
static int load_submission(struct load *l, struct folder *f)
{
	cleanup_free char *path = file_path(l->state_dir, f->id, "submission");
	char *newline;
	struct stat st;
	size_t len;
	int err = load_file(l, f->id, "submission", SUBMISSION_MAX, &f->submission, &len);

	if (err)
		return err;
	newline = strchr(f->submission, '\n');
	if (!newline || !path || stat(path, &st) < 0)
		return 0;
	*newline = '\0';
	f->file = strndup(newline + 1, strcspn(newline + 1, "\n"));
	f->written = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	return f->file ? 0 : -ENOMEM;
}

static int load_folder(struct load *l, const char *id)
{
	struct folder *f = calloc(1, sizeof(*f));
	size_t len;
	int err;

	if (!f)
		return -ENOMEM;
	f->next = l->folders;
	l->folders = f;
	f->id = strdup(id);
	if (!f->id)
		return -ENOMEM;
	err = load_submission(l, f);
	if (!err || err == -ENOENT || err == -EINVAL)
		err = load_file(l, id, "dropped", UID_MAX, &f->dropped, &len);
	if (err && err != -ENOENT && err != -EINVAL)
		return err;
	return load_snapshot(l, f);
}

static void load_work(void *data)
{
	struct load *l = data;
	cleanup_free char *path = NULL;
	struct dirent *e;
	DIR *dir;

	if (asprintf(&path, "%s/jobs", l->state_dir) < 0)
		path = NULL;
	dir = path ? opendir(path) : NULL;
	if (!dir) {
		l->err = -errno;
		return;
	}
	while (!l->err && (e = readdir(dir))) {
		if (spec_name_is_file(e->d_name))
			l->err = load_folder(l, e->d_name);
	}
	closedir(dir);
}

static int take_folder(struct kube *k, struct folder *f)
{
	struct kube_own *own = own_new(k, f->id, f->submission ? f->submission : "");
	int err = own ? 0 : -ENOMEM;

	if (err)
		return err;
	own->output = f->snapshot || f->damaged;
	own->dropped = f->dropped;
	own->file = take_ptr(f->file);
	own->written = f->written;
	if (f->dropped && !f->snapshot) {
		err = set_uid(own, f->dropped);
		if (!err)
			kube_output_drop(k, f->id, NULL, NULL); /* should that have been cut off */
	}
	if (!f->snapshot)
		return err;
	err = set_uid(own, f->snapshot->uid);
	if (!err)
		err = store_put(k->b->store, f->snapshot);
	if (!err)
		f->snapshot = NULL;
	return err;
}

static void loaded(void *data)
{
	struct load *l = data;
	struct folder *f;

	while ((f = l->folders)) {
		l->folders = f->next;
		if (!l->err)
			l->err = take_folder(l->k, f);
		spec_job_unref(f->snapshot);
		free(f->id);
		free(f->submission);
		free(f->file);
		free(f->dropped);
		free(f);
	}
	l->fn(l->k, l->err);
	free(l->state_dir);
	free(l);
}

int kube_files_load(struct kube *k, void (*fn)(struct kube *k, int err))
{
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->k = k;
	l->fn = fn;
	l->state_dir = strdup(k->b->config.state_dir);
	if (!l->state_dir) {
		free(l);
		return -ENOMEM;
	}
	loop_work(k->b->loop, load_work, loaded, l);
	return 0;
}

/* --- what has become of it --- */

/* A job that an earlier mount has seen is no longer in the cluster: what is known is its history. */
static void into_history(struct kube *k, const struct spec_job *old)
{
	cleanup_free char *text = spec_snapshot_text(old);
	struct spec_job *job;

	if (!text || spec_snapshot_parse(text, strlen(text), &job) < 0)
		return;
	job->history = true;
	job->changed = loop_time_ns();
	kube_logs_left(k, job);
	if (!spec_state_is_final(job->state)) {
		job->state = SPEC_CANCELLED;
		job->finished = job->changed;
	}
	if (store_put(k->b->store, job) < 0)
		spec_job_unref(job);
	else
		kube_keep(k, old->uid, true);
}

/* The folders of jobs that the cluster has. */
static void bind_all(struct kube *k)
{
	for (struct kube_job *job = k->jobs; job; job = job->hh.next) {
		struct kube_own *own = job->view ? kube_own_find(k, job->view->meta.name) : NULL;

		if (own && !*own->uid && !*own->submission)
			(void)set_uid(
				own,
				job->uid); /* of a mount that ended before it wrote whose it is */
		else if (own)
			kube_own_bind(k, job->view);
	}
}

void kube_files_settle(struct kube *k)
{
	struct kube_own *own, *next;

	bind_all(k);
	HASH_ITER(hh, k->own, own, next) {
		const struct spec_job *job cleanup_job = store_get_uid(k->b->store, own->uid);
		const struct kube_job *live = kube_job_find(k, own->uid);

		if (own->file && (job || (live && live->view)))
			backend_launched(k->b, own->file, own->id, own->written);
		free(take_ptr(own->file));
		if ((job && job->history) || (live && live->view))
			continue;
		if (job)
			into_history(k, job);
		else if (!own->output)
			kube_folder_remove(k, own->id, NULL, NULL); /* never launched */
	}
}
