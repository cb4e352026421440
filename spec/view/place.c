/* SPDX-License-Identifier: MIT */
/*
 * Assigns pods to replicas. Most controllers number the pods of a task. Pods without a number are
 * assigned in order of creation, one to each replica. A further pod is the next attempt of a
 * replica whose pod has failed or is gone. A pod with a log in the last snapshot keeps its replica.
 */
#include "spec/view/steps.h"

#include "spec/base/mem.h"

#define NO_PLACE SIZE_MAX

static int compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/*
 * Compare by replica, then by age. Creation times are whole seconds. Within a second, pods with
 * fewer retries are older. Among pods with the same retries, those that are gone or being deleted
 * are older.
 */
static int by_age(const void *a, const void *b)
{
	const struct spec_placed_pod *x = a, *y = b;
	int diff = compare((int64_t)x->replica, (int64_t)y->replica);

	diff = diff ? diff : compare(x->pod->meta.created, y->pod->meta.created);
	diff = diff ? diff : compare(x->pod->retry, y->pod->retry);
	diff = diff ? diff : y->pod->gone - x->pod->gone;
	diff = diff ? diff : (y->pod->meta.deleted != 0) - (x->pod->meta.deleted != 0);
	return diff ? diff : strcmp(x->pod->meta.uid, y->pod->meta.uid);
}

static const struct spec_task_view *task_of(const struct spec_job_view *view,
					    const struct spec_pod_view *pod)
{
	const struct spec_task_view wanted = {.name = pod->task}, *key = &wanted;
	const struct spec_task_view *const *found;

	if (!*pod->task)
		return view->n_tasks == 1 ? &view->tasks[0] : NULL;
	found = bsearch(&key, view->by_name, view->n_tasks, sizeof(const struct spec_task_view *),
			roles_by_name);
	return found ? *found : NULL;
}

/* --- pods without a number --- */

/* A log in the last snapshot. */
struct known_log {
	const char *key;
	size_t replica;
};

/* Compare by the pod's uid, which is the key up to the first dot. */
static int by_uid(const void *a, const void *b)
{
	const char *x = ((const struct known_log *)a)->key, *y = ((const struct known_log *)b)->key;
	size_t x_len = strcspn(x, "."), y_len = strcspn(y, ".");
	int diff = memcmp(x, y, min_of(x_len, y_len));

	return diff ? diff : compare((int64_t)x_len, (int64_t)y_len);
}

/*
 * Return the index in VIEW of replica I of BEFORE. The two indexes differ if roles have grown.
 * Return NO_PLACE if VIEW lacks the replica.
 */
static size_t place_of(const struct spec_job_view *view, const struct spec_job *before, size_t i)
{
	size_t role = before->replicas[i].role, k = i - before->roles[role].first;

	return role < view->n_roles && k < view->roles[role].n ? view->roles[role].first + k
							       : NO_PLACE;
}

static struct known_log *known_of(const struct spec_job_view *view, const struct spec_job *before,
				  size_t *ret_n)
{
	struct known_log *ret;
	size_t n = 0;

	for (size_t i = 0; before && i < before->n_replicas; i++)
		n += before->replicas[i].n_logs;
	ret = new0_n(struct known_log, n);
	*ret_n = n;
	for (size_t i = 0; before && i < before->n_replicas; i++)
		for (size_t k = 0; k < before->replicas[i].n_logs; k++)
			ret[--n] = (struct known_log){before->replicas[i].logs[k].key,
						      place_of(view, before, i)};
	qsort(ret, *ret_n, sizeof(*ret), by_uid);
	return ret;
}

/* True if a further pod may belong to a replica. POD is the replica's newest pod, or NULL. */
static bool is_free(const struct spec_pod_view *pod)
{
	return !pod || pod->gone || spec_pod_state(pod) == SPEC_FAILED;
}

/*
 * Assign each of the N pods at V to a replica, or to NO_PLACE. V is sorted by task, then by age. On
 * entry, each pod has the first replica of its task.
 */
static void number(const struct spec_job_view *view, struct spec_placed_pod *v, size_t n,
		   const struct spec_job *before)
{
	const struct spec_pod_view **last cleanup_free =
		new0_n(const struct spec_pod_view *, view->n_replicas);
	struct known_log *known cleanup_free = NULL;
	bool *is_known cleanup_free = new0_n(bool, n);
	size_t n_known;

	known = known_of(view, before, &n_known);
	for (size_t i = 0; i < n; i++) {
		const struct known_log key = {.key = v[i].pod->meta.uid};
		const struct known_log *found =
			bsearch(&key, known, n_known, sizeof(*known), by_uid);

		is_known[i] = found && found->replica != NO_PLACE;
		if (is_known[i])
			last[v[i].replica = found->replica] = v[i].pod;
	}
	for (size_t i = 0; i < n; i++) {
		const struct spec_task_view *task = task_of(view, v[i].pod);
		size_t place = NO_PLACE, end = task->first + task->n;

		for (size_t k = task->first; !is_known[i] && k < end; k++) {
			if (!last[k]) {
				place = k;
				break;
			}
			if (place == NO_PLACE && is_free(last[k]))
				place = k;
		}
		if (is_known[i])
			continue;
		v[i].replica = place;
		if (place != NO_PLACE)
			last[place] = v[i].pod;
	}
}

/* --- all pods --- */

struct spec_placed_pods spec_place_pods(const struct spec_job_view *view,
					const struct spec_pod_view *const *pods, size_t n,
					const struct spec_job *before)
{
	struct spec_placed_pod *v = new0_n(struct spec_placed_pod, n);
	struct spec_placed_pods ret = {.v = v};
	size_t later = n;

	/* Put numbered pods at the beginning of V, and the others at its end. */
	for (size_t i = 0; i < n; i++) {
		const struct spec_task_view *task = task_of(view, pods[i]);

		if (task && pods[i]->index == UINT32_MAX)
			v[--later] = (struct spec_placed_pod){task->first, pods[i]};
		else if (task && pods[i]->index < task->n)
			v[ret.n++] =
				(struct spec_placed_pod){task->first + pods[i]->index, pods[i]};
	}
	if (later < n) {
		qsort(&v[later], n - later, sizeof(*v), by_age);
		number(view, &v[later], n - later, before);
	}
	for (; later < n; later++)
		if (v[later].replica != NO_PLACE)
			v[ret.n++] = v[later];
	qsort(v, ret.n, sizeof(*v), by_age);
	return ret;
}
