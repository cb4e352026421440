/* SPDX-License-Identifier: MIT */
/*
 * Determines a job's roles and tasks, the order of its replicas, and the names of their
 * directories.
 *
 * Some objects lack roles of their job, or the number of replicas of a role. kxfs then also uses
 * the roles in the last snapshot and the roles that pods name, and puts them after the object's
 * roles. kxfs never removes such a role or replica from a snapshot, so names and positions do not
 * change.
 */
#include "spec/view/steps.h"

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define MAX_DIR 200 /* bytes; a file name also has a number */

/* --- roles --- */

/* True also for a task that a user has scaled to 0, so that it does not split its role in two. */
static bool is_replica(const struct spec_task_source *task)
{
	return *task->role && task->replicas <= 1;
}

/*
 * True if TASK belongs to the same role as BEFORE, the previous task. TorchX orders the tasks of an
 * object by role, then by replica.
 */
static bool same_role(const struct spec_task_source *before, const struct spec_task_source *task)
{
	return is_replica(before) && is_replica(task) && streq(before->role, task->role) &&
	       before->replica < task->replica;
}

static int by_dir(const void *a, const void *b)
{
	const struct spec_role_view *x = *(const struct spec_role_view *const *)a;
	const struct spec_role_view *y = *(const struct spec_role_view *const *)b;
	int diff = strcmp(x->dir, y->dir);

	return diff ? diff : x < y ? -1 : 1;
}

/* Append a number to a directory name that an earlier role already has. */
static void part_dirs(struct spec_job_view *v)
{
	struct spec_role_view **sorted cleanup_free = new0_n(struct spec_role_view *, v->n_roles);
	char dir[MAX_DIR + 32];
	size_t first = 0;

	for (size_t i = 0; i < v->n_roles; i++)
		sorted[i] = &v->roles[i];
	qsort(sorted, v->n_roles, sizeof(struct spec_role_view *), by_dir);
	for (size_t i = 1; i < v->n_roles; i++) {
		if (!streq(sorted[first]->dir, sorted[i]->dir)) {
			first = i;
			continue;
		}
		/* No role has a "~" in its directory name, so the new name is unique. */
		snprintf(dir, sizeof(dir), "%s~%td", sorted[i]->dir, sorted[i] - v->roles);
		spec_set(&sorted[i]->dir, dir);
	}
}

static unsigned add(unsigned a, unsigned b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static void add_role(struct spec_job_view *v, const char *name)
{
	struct spec_role_view *role = &v->roles[v->n_roles++];
	cleanup_free char *dir = NULL;

	role->first = v->n_replicas;
	role->dir = spec_empty();
	spec_read_copy(&role->name, name, READ_MAX_WORD);
	/* Use the directory of replica 0 without the number. */
	dir = spec_name_replica_dir(role->name, 0);
	*strrchr(dir, '-') = '\0';
	spec_read_copy(&role->dir, dir, MAX_DIR);
}

static void add_task(struct spec_job_view *v, const struct spec_task_source *from, unsigned id)
{
	struct spec_task_view *task = &v->tasks[v->n_tasks++];
	struct spec_role_view *role = &v->roles[v->n_roles - 1];

	task->role = (unsigned)(v->n_roles - 1);
	task->replica = id;
	task->n = min_of(from->replicas, (unsigned)(SPEC_MAX_REPLICAS - v->n_replicas));
	task->first = v->n_replicas;
	task->grows = from->grows;
	v->n_replicas += task->n;
	role->n += task->n;
	role->desired = add(role->desired, from->replicas);
	role->minimum = add(role->minimum, from->minimum);
	spec_read_copy(&task->name, from->name, READ_MAX_WORD);
}

int roles_by_name(const void *a, const void *b)
{
	const struct spec_task_view *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

void roles_arrange(struct spec_job_view *v, const struct spec_task_source *sources, size_t n)
{
	n = min_of(n, (size_t)SPEC_MAX_REPLICAS);
	v->roles = new0_n(struct spec_role_view, n);
	v->tasks = new0_n(struct spec_task_view, n);
	v->by_name = new0_n(const struct spec_task_view *, n);
	for (size_t i = 0; i < n; i++) {
		const struct spec_task_source *task = &sources[i];
		bool replica = is_replica(task);

		if (i == 0 || !same_role(task - 1, task))
			add_role(v, replica ? task->role : task->name);
		add_task(v, task, replica ? task->replica : 0);
		v->by_name[i] = &v->tasks[i];
	}
	part_dirs(v);
	qsort(v->by_name, n, sizeof(const struct spec_task_view *), roles_by_name);
}

void roles_clear(struct spec_job_view *v)
{
	for (size_t i = 0; i < v->n_roles; i++)
		spec_unset(&v->roles[i].name, &v->roles[i].dir);
	free(v->roles);
	for (size_t i = 0; i < v->n_tasks; i++)
		spec_unset(&v->tasks[i].name);
	free(v->tasks);
	free(v->by_name);
}

/* --- roles from pods and the last snapshot --- */

/* A mention of a role, in the object, the last snapshot or a pod. */
struct roles_claim {
	const char *name;
	size_t position;		 /* sort key */
	const struct spec_task_view *of; /* the task in the object, or NULL */
	const struct spec_pod_view *pod; /* or NULL */
	unsigned replicas;
};

static int by_creation(const void *a, const void *b)
{
	const struct spec_pod_view *x = *(const struct spec_pod_view *const *)a;
	const struct spec_pod_view *y = *(const struct spec_pod_view *const *)b;

	if (x->meta.created != y->meta.created)
		return x->meta.created < y->meta.created ? -1 : 1;
	if (!streq(x->meta.name, y->meta.name))
		return strcmp(x->meta.name, y->meta.name);
	return strcmp(x->meta.uid, y->meta.uid);
}

static int by_role_name(const void *a, const void *b)
{
	const struct roles_claim *x = a, *y = b;
	int diff = strcmp(x->name, y->name);

	return diff ? diff : x->position < y->position ? -1 : 1;
}

static int by_position(const void *a, const void *b)
{
	const struct roles_claim *x = a, *y = b;

	return x->position < y->position ? -1 : 1;
}

/*
 * Return the time when POD failed or was deleted, or INT64_MAX if neither has happened. From this
 * time on, a new pod may replace POD.
 */
static int64_t left(const struct spec_pod_view *pod)
{
	const struct spec_container_view *c = spec_pod_main(pod);
	int64_t failed = c && spec_pod_state(pod) == SPEC_FAILED ? c->finished : 0;
	int64_t deleted = pod->meta.deleted || pod->gone ? pod->meta.deleted : INT64_MAX;

	return failed ? min_of(failed, deleted) : deleted;
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Return how many unnumbered pods existed at the same time, at most. CLAIMS are sorted by age. */
static unsigned at_a_time(const struct roles_claim *claims, size_t n)
{
	int64_t *ends cleanup_free = new0_n(int64_t, n);
	unsigned made = 0, ret = 0;
	size_t ended = 0, n_ends = 0;

	for (size_t i = 0; i < n; i++)
		if (claims[i].pod && claims[i].pod->index == UINT32_MAX)
			ends[n_ends++] = left(claims[i].pod);
	qsort(ends, n_ends, sizeof(*ends), by_time);
	for (size_t i = 0; i < n; i++) {
		if (!claims[i].pod || claims[i].pod->index != UINT32_MAX)
			continue;
		made++;
		while (ended + 1 < made && ends[ended] <= claims[i].pod->meta.created)
			ended++;
		ret = max_of(ret, made - (unsigned)ended);
	}
	return ret;
}

/* List all claims in *RET (malloc'ed), sorted by position. Return their number. */
static size_t list_claims(const struct spec_job_view *view, const struct spec_pod_view *const *pods,
			  size_t n, const struct spec_job *before, struct roles_claim **ret)
{
	const struct spec_pod_view **sorted cleanup_free = new0_n(const struct spec_pod_view *, n);
	size_t n_before = before ? before->n_roles : 0, m = 0;
	struct roles_claim *v = new0_n(struct roles_claim, view->n_tasks + n_before + n);

	for (size_t i = 0; i < view->n_tasks; i++, m++)
		v[m] = (struct roles_claim){
			.name = view->tasks[i].name,
			.of = &view->tasks[i],
			.replicas = view->roles[view->tasks[i].role].desired,
		};
	for (size_t i = 0; i < n_before; i++, m++)
		v[m] = (struct roles_claim){.name = before->roles[i].name,
					    .replicas = before->roles[i].n};
	if (n)
		memcpy(sorted, pods, n * sizeof(struct spec_pod_view *));
	qsort(sorted, n, sizeof(struct spec_pod_view *), by_creation);
	for (size_t i = 0; i < n; i++)
		if (*sorted[i]->task && sorted[i]->index != SPEC_INDEX_NONE)
			v[m++] = (struct roles_claim){.name = sorted[i]->task,
						      .pod = sorted[i],
						      .replicas = sorted[i]->index + 1};
	for (size_t i = 0; i < m; i++)
		v[i].position = i;
	*ret = v;
	return m;
}

/* Merge the claims of each role into one, and sort the results by position. Return their number. */
static size_t merge_claims(const struct spec_job_view *view, struct roles_claim *v, size_t n)
{
	size_t m = 0;

	qsort(v, n, sizeof(*v), by_role_name);
	for (size_t i = 0, end; i < n; i = end) {
		struct roles_claim role = v[i];

		for (end = i + 1; end < n && streq(v[end].name, role.name);)
			end++;
		if (role.of ? !role.of->grows : !view->from_pods) {
			if (role.of)
				v[m++] = role;
			continue;
		}
		for (size_t k = i; k < end; k++)
			role.replicas = max_of(role.replicas, v[k].replicas);
		role.replicas = max_of(role.replicas, at_a_time(&v[i], end - i));
		v[m++] = role;
	}
	qsort(v, m, sizeof(*v), by_position);
	return m;
}

struct spec_job_view *roles_grow(const struct spec_job_view *view,
				 const struct spec_pod_view *const *pods, size_t n,
				 const struct spec_job *before)
{
	struct spec_task_source *sources cleanup_free = NULL;
	struct roles_claim *claims cleanup_free = NULL;
	struct spec_job_view *ret;

	if (!view->from_pods && !view->grows)
		return NULL;
	n = list_claims(view, pods, n, before, &claims);
	n = merge_claims(view, claims, n);
	sources = new0_n(struct spec_task_source, n);
	for (size_t i = 0; i < n; i++)
		sources[i] = (struct spec_task_source){
			.name = claims[i].name,
			.role = "",
			.replicas = claims[i].replicas,
			.minimum = claims[i].replicas,
			.grows = claims[i].of && claims[i].of->grows,
		};
	ret = new0(struct spec_job_view);
	*ret = *view;
	ret->n_roles = ret->n_tasks = ret->n_replicas = 0;
	roles_arrange(ret, sources, n);
	return ret;
}
