/* SPDX-License-Identifier: MIT */
/*
 * The table of jobs, by uid, as their watch and the replies to requests tell them. Whichever of the two comes
 * later may be older. A job is in the table from when its object or a pod of it is seen until nothing of it is
 * left.
 */
#include <utlist.h>

#include "backend/kube.h"

struct kube_job *kube_job_find(struct kube *k, const char *uid)
{
	struct kube_job *job;

	HASH_FIND_STR(k->jobs, uid, job);
	return job;
}

struct kube_job *kube_job_need(struct kube *k, const char *uid)
{
	struct kube_job *job = kube_job_find(k, uid);

	if (job)
		return job;
	job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->k = k;
	job->uid = strdup(uid);
	if (job->uid)
		HASH_ADD_KEYPTR(hh, k->jobs, job->uid, strlen(job->uid), job);
	if (!job->hh.tbl) {
		free(job->uid);
		free(job);
		return NULL;
	}
	return job;
}

static void job_free(struct kube_job *job)
{
	if (job->marked)
		DL_DELETE2(job->k->marked, job, mark_prev, mark_next);
	kube_command_gone(job);
	kube_logs_free(job);
	kube_pods_free(job);
	events_forget(job->k->events, job->uid);
	HASH_DEL(job->k->jobs, job);
	spec_job_view_free(job->view);
	spec_text_unref(job->object);
	free(job->uid);
	free(job);
}

void kube_job_settle(struct kube_job *job)
{
	if (job->n_pods || job->n_following || (job->view && !job->gone))
		return;
	/* What it became in the end is still to be told. */
	if (job->marked)
		(void)kube_publish(job);
	job_free(job);
}

/* --- what is told of one --- */

static const struct spec_job_view *known_view(void *data, const char *uid)
{
	const struct kube_job *job = kube_job_find(data, uid);

	return job ? job->view : NULL;
}

/* NULL: it can't be read. */
static struct spec_job_view *read_job(struct kube *k, const char *json, size_t len)
{
	struct spec_job_view *view;
	int err = spec_job_view_parse_again(k->kind, json, len, known_view, k, &view);

	if (!err)
		return view;
	diag(DIAG_WARNING, "a %s of the server can't be read: %s", k->kind->kind, strerror(-err));
	return NULL;
}

static void first_seen(struct kube_job *job, const struct spec_job_view *view)
{
	struct kube *k = job->k;
	const struct kube_group *group = kube_group_of(job);

	job->since = k->listed_jobs ? loop_time_ns() : view->meta.created;
	job->waits = true;
	kube_adopt_events(job, job->uid);
	if (group)
		kube_adopt_events(job, group->view->meta.uid);
	kube_tick_later(k);
}

/* VIEW, which JSON says, is taken over. NULL: no memory. */
static struct kube_job *take_job(struct kube *k, struct spec_job_view *view, const char *json,
				 size_t len)
{
	struct spec_text *object = spec_text_new(json, len);
	struct kube_job *job;

	job = object ? kube_job_need(k, view->meta.uid) : NULL;
	if (job && job->view && !streq(job->view->meta.name, view->meta.name)) {
		diag(DIAG_WARNING, "the server says that job %s is called %s too: ignored",
		     job->view->meta.name, view->meta.name);
		spec_text_unref(object);
		spec_job_view_free(view);
		return NULL;
	}
	if (!job) {
		diag(DIAG_ERROR, "out of memory; job %s is not shown", view->meta.name);
		spec_text_unref(object);
		spec_job_view_free(view);
		return NULL;
	}
	if (!job->view)
		first_seen(job, view);
	spec_job_view_free(job->view);
	spec_text_unref(job->object);
	job->view = view;
	job->object = object;
	job->round = k->round_jobs;
	/* It left the labels that are shown, and is back. */
	if (job->gone)
		job->gone = job->left = false;
	kube_mark(job);
	return job;
}

/* Was A made before B, or is it B? Versions are numbers that only grow; others are not compared. */
static bool is_up_to(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	if (strspn(a, "0123456789") != n || strspn(b, "0123456789") != m)
		return false;
	return n != m ? n < m : strcmp(a, b) <= 0;
}

struct kube_job *kube_job_told(struct kube *k, const char *json, size_t len)
{
	struct spec_job_view *view = read_job(k, json, len);
	struct kube_job *job = view ? kube_job_find(k, view->meta.uid) : NULL;
	bool known = job && job->view;

	if (!view)
		return NULL;
	if (!is_up_to(view->meta.resource_version,
		      known ? job->view->meta.resource_version : watch_version(k->watch_jobs)))
		return take_job(k, view, json, len);
	spec_job_view_free(view);
	return known && !job->gone ? job : NULL;
}

void kube_job_gone(struct kube_job *job)
{
	job->gone = true;
	kube_leave(job);
	kube_job_settle(job);
}

/*
 * Has a reply brought what is newer than VIEW, which the watch tells? It comes to that yet. Not so of a list:
 * a server that was set back begins its versions anew.
 */
static bool is_late(struct kube *k, const struct spec_job_view *view)
{
	const struct kube_job *job = kube_job_find(k, view->meta.uid);
	const char *version = view->meta.resource_version;

	return job && job->view && !job->gone && *watch_version(k->watch_jobs) &&
	       !streq(version, job->view->meta.resource_version) &&
	       is_up_to(version, job->view->meta.resource_version);
}

void kube_job_watched(struct kube *k, const char *json, size_t len, bool gone)
{
	struct spec_job_view *view = read_job(k, json, len);
	struct kube_job *job;

	if (!view)
		return;
	if (!gone && is_late(k, view)) {
		spec_job_view_free(view);
		return;
	}
	job = take_job(k, view, json, len);
	if (job && gone)
		kube_job_gone(job);
}

void kube_jobs_listed(struct kube *k)
{
	struct kube_job *job, *next;

	HASH_ITER(hh, k->jobs, job, next) {
		if (job->view && !job->gone && job->round != k->round_jobs)
			kube_job_gone(job);
	}
}

void kube_jobs_free(struct kube *k)
{
	struct kube_job *job, *next;

	HASH_ITER(hh, k->jobs, job, next)
		job_free(job);
}
