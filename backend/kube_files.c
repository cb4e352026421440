/* SPDX-License-Identifier: MIT */
/*
 * The state directory of a mount of a cluster: STATE/jobs/ID/ with the file as it was submitted
 * (app.yaml) and the UUID of the write (submission), both made before anything is sent; the output that
 * was captured; and with it the newest snapshot (job.json). What stands there says which jobs are ours,
 * also after a crash in the middle of a submission, and what there is in the history.
 */
#include <dirent.h>
#include <errno.h>

#include "backend/kube.h"
#include "spec/name.h"
#include "spec/snapshot.h"

#define UUID_LEN     36
#define SNAPSHOT_MAX (64u << 20)

struct kube_own *kube_own_find(struct kube *k, const char *id)
{
	struct kube_own *own;

	HASH_FIND_STR(k->own, id, own);
	return own;
}

int kube_own_add(struct kube *k, const char *id, const char *submission)
{
	struct kube_own *own = calloc(1, sizeof(*own));

	if (!own)
		return -ENOMEM;
	own->id = strdup(id);
	own->submission = strdup(submission);
	if (own->id && own->submission)
		HASH_ADD_KEYPTR(hh, k->own, own->id, strlen(own->id), own);
	if (own->hh.tbl)
		return 0;
	free(own->id);
	free(own->submission);
	free(own);
	return -ENOMEM;
}

static void own_free(struct kube *k, struct kube_own *own)
{
	HASH_DEL(k->own, own);
	free(own->id);
	free(own->submission);
	free(own);
}

void kube_own_remove(struct kube *k, const char *id)
{
	struct kube_own *own = kube_own_find(k, id);

	if (own)
		own_free(k, own);
}

void kube_own_free(struct kube *k)
{
	struct kube_own *own, *next;

	HASH_ITER(hh, k->own, own, next)
		own_free(k, own);
}

bool kube_is_own(struct kube *k, const struct spec_job_view *view)
{
	const struct kube_own *own = kube_own_find(k, view->meta.name);

	/* Without annotations (no_annotations) the name, which is random, has to do. */
	return own && *own->submission &&
	       (!*view->submission || streq(own->submission, view->submission));
}

/* --- what an earlier mount has left --- */

/* A folder of STATE/jobs/. */
struct folder {
	char *id;
	char *submission;	   /* NULL: not submitted from here */
	struct spec_job *snapshot; /* NULL: none was kept */
	struct folder *next;
};

struct load {
	struct kube *k;
	char *state_dir;
	struct folder *folders;
	int err;
	void (*fn)(struct kube *k, int err);
};

/* NAME in the folder ID, *RET NULL if there is none that is ours. 0 or a negative errno. */
static int load_file(const struct load *l, const char *id, const char *name, size_t max, char **ret,
		     size_t *ret_len)
{
	cleanup_free char *path = file_path(l->state_dir, id, name);
	int err = path ? file_read(path, max, ret, ret_len) : -ENOMEM;

	if (err == -ENOMEM || err == -EIO || err == -EMFILE || err == -EACCES)
		return err;
	if (err)
		*ret = NULL;
	return 0;
}

static int load_folder(struct load *l, const char *id)
{
	struct folder *f = calloc(1, sizeof(*f));
	cleanup_free char *text = NULL;
	size_t len;
	int err;

	if (!f)
		return -ENOMEM;
	f->next = l->folders;
	l->folders = f;
	f->id = strdup(id);
	if (!f->id)
		return -ENOMEM;
	err = load_file(l, id, "submission", UUID_LEN, &f->submission, &len);
	if (!err)
		err = load_file(l, id, "job.json", SNAPSHOT_MAX, &text, &len);
	if (err || !text)
		return err;
	err = spec_snapshot_parse(text, len, &f->snapshot);
	if (!err && !streq(f->snapshot->id, id)) {
		spec_job_unref(take_ptr(f->snapshot));
		err = -EINVAL;
	}
	if (err == -EINVAL)
		diag(DIAG_WARNING, "%s/jobs/%s/job.json can't be read; its output is kept",
		     l->state_dir, id);
	return err == -EINVAL ? 0 : err;
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
	int err = kube_own_add(k, f->id, f->submission ? f->submission : "");

	if (err || !f->snapshot)
		return err;
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

void kube_files_remove(struct kube *k, const char *id)
{
	struct kube_own *own = kube_own_find(k, id);

	if (!own)
		return;
	spool_job_remove(k->b->spool, own->id, NULL, NULL);
	own_free(k, own);
}

/* A job that an earlier mount has seen is no longer in the cluster: what is known is its history. */
static void into_history(struct kube *k, const struct spec_job *old)
{
	cleanup_free char *text = spec_snapshot_text(old);
	struct spec_job *job;

	if (!text || spec_snapshot_parse(text, strlen(text), &job) < 0)
		return;
	job->history = true;
	job->changed = loop_time_ns();
	if (!spec_state_is_final(job->state)) {
		job->state = SPEC_CANCELLED;
		job->finished = job->changed;
	}
	if (store_put(k->b->store, job) < 0)
		spec_job_unref(job);
	else
		kube_keep(k, old->uid, true);
}

void kube_files_settle(struct kube *k)
{
	struct kube_own *own, *next;

	HASH_ITER(hh, k->own, own, next) {
		const struct spec_job *job cleanup_job =
			store_get(k->b->store, BACKEND_JOBS, own->id);
		const struct spec_job *past cleanup_job =
			store_get(k->b->store, BACKEND_HISTORY, own->id);
		const struct kube_job *live = job ? kube_job_find(k, job->uid) : NULL;

		if (past || (live && live->view))
			continue;
		if (job) {
			into_history(k, job);
			continue;
		}
		/* Never launched, or nothing that was printed has been kept. */
		kube_files_remove(k, own->id);
	}
}
