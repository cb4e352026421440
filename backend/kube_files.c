/* SPDX-License-Identifier: MIT */
/*
 * What an earlier mount has left in the state directory of a mount of a cluster: STATE/jobs/ID/ with the file as it was
 * submitted (app.yaml) and the UUID of the write and its name (submission), both made before anything is sent; the
 * output that was captured; and with it the newest snapshot (job.json), or instead of both, that it was removed to
 * make room (dropped, with the uid of the job). It is read at the start, and once the cluster has told its jobs,
 * the rest is history. A job.json that can't be read is never written over (kube_keep.c), nor is output whose
 * job nobody can tell (kube_own.c).
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

/* A folder of STATE/jobs/. */
struct folder {
	char *id;
	char *submission;	   /* NULL: not submitted from here */
	char *file;		   /* as which it was written; NULL: not known */
	int64_t written;	   /* when, ns */
	char *dropped;		   /* uid of the job whose output was removed; NULL: none was */
	struct spec_job *snapshot; /* NULL: none was kept */
	bool unread;		   /* there is output, and nobody can tell what of */
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

static bool has_output(const struct load *l, const char *id)
{
	cleanup_free char *path = file_path(l->state_dir, id, "logs");
	DIR *dir = path ? opendir(path) : NULL;
	struct dirent *e;
	bool ret = false;

	while (dir && !ret && (e = readdir(dir)))
		ret = spec_name_is_file(e->d_name);
	if (dir)
		closedir(dir);
	return ret;
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
	if (err == -ENOENT && !f->dropped && has_output(l, f->id)) {
		f->unread = true; /* of a mount that ended before it could write that down */
	} else if (err == -EINVAL || err == -ENOTSUP) {
		f->unread = !f->dropped;
		diag(DIAG_WARNING,
		     "%s/jobs/%s/job.json %s; unless the cluster still has the job it is not "
		     "shown, and "
		     "its output stays in that folder",
		     l->state_dir, f->id, file_fault(err));
	} else {
		return err == -ENOENT ? 0 : err;
	}
	return 0;
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
	const char *uid = f->snapshot ? f->snapshot->uid : f->dropped ? f->dropped : "";
	struct kube_own *own = kube_own_add(k, f->id, f->submission ? f->submission : "", uid);
	int err;

	if (!own)
		return -ENOMEM;
	own->output = f->snapshot || f->unread;
	own->unread = f->unread;
	own->dropped = f->dropped;
	own->file = take_ptr(f->file);
	own->written = f->written;
	if (f->dropped && !f->snapshot)
		kube_output_drop(k, f->id, NULL, NULL); /* should that have been cut off */
	if (!f->snapshot)
		return 0;
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

void kube_files_settle(struct kube *k)
{
	struct kube_own *own, *next;

	for (struct kube_job *job = k->jobs; job; job = job->hh.next)
		if (job->view)
			kube_own_bind(k, job->view);
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
