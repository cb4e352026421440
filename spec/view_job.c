/* SPDX-License-Identifier: MIT */
/*
 * Reading a job: metadata and annotations here, tasks and status by the kind; then the order of its
 * replicas and the names of their directories, which all its snapshots share.
 */
#include <assert.h>
#include <errno.h>

#include "spec/limits.h"
#include "spec/name.h"
#include "spec/view_impl.h"

#define MAX_DIR 200 /* bytes; with a number behind it, it is a file name */

/* A task on its way to its place. */
struct placed {
	const struct spec_task_source *task;
	size_t position; /* in the object */
	size_t group;	 /* position of the first task of its role */
};

static void texts_of(struct spec_job_view *v, char **ret[8])
{
	char **const texts[] = {&v->app,   &v->phase,	  &v->reason,	  &v->message,
				&v->queue, &v->submitter, &v->submission, &v->appdef_sha256};

	memcpy(ret, texts, sizeof(texts));
}

void spec_job_view_free(struct spec_job_view *v)
{
	char **texts[8];

	if (!v)
		return;
	spec_meta_clear(&v->meta);
	texts_of(v, texts);
	for (size_t i = 0; i < array_size(texts); i++)
		spec_unset(texts[i]);
	for (size_t i = 0; i < v->n_roles; i++) {
		spec_unset(&v->roles[i].name);
		spec_unset(&v->roles[i].dir);
	}
	free(v->roles);
	for (size_t i = 0; i < v->n_tasks; i++)
		spec_unset(&v->tasks[i].name);
	free(v->tasks);
	free(v->by_name);
	spec_transitions_clear(&v->conditions);
	free(v);
}

static void job_freep(struct spec_job_view **v)
{
	spec_job_view_free(*v);
}

struct spec_job_view *spec_job_view_new(void)
{
	struct spec_job_view *v = calloc(1, sizeof(*v));
	char **texts[8];
	int err = v ? spec_meta_init(&v->meta) : -ENOMEM;

	if (!v)
		return NULL;
	texts_of(v, texts);
	for (size_t i = 0; !err && i < array_size(texts); i++)
		err = spec_set(texts[i], "");
	if (!err)
		return v;
	spec_job_view_free(v);
	return NULL;
}

/* --- the order of tasks ---------------------------------------------------------------------- */

static bool is_replica(const struct spec_task_source *task)
{
	return *task->role && task->replicas == 1;
}

/* Tasks that are roles of their own first, then those of a role side by side, by their ids. */
static int by_role(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	int diff = is_replica(x->task) - is_replica(y->task);

	if (diff == 0 && is_replica(x->task))
		diff = strcmp(x->task->role, y->task->role);
	if (diff == 0 && is_replica(x->task) && x->task->replica != y->task->replica)
		diff = x->task->replica < y->task->replica ? -1 : 1;
	return diff ? diff : x->position < y->position ? -1 : 1;
}

static int by_group(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->task->replica != y->task->replica)
		return x->task->replica < y->task->replica ? -1 : 1;
	return x->position < y->position ? -1 : 1;
}

static bool same_role(const struct placed *a, const struct placed *b)
{
	return is_replica(a->task) && is_replica(b->task) && streq(a->task->role, b->task->role);
}

/* Put N tasks in order. False: an id twice in a role, which TorchX never makes: each task is a role. */
static bool place_tasks(struct placed *v, size_t n)
{
	bool twice = false;

	qsort(v, n, sizeof(*v), by_role);
	for (size_t i = 1; i < n; i++)
		twice |=
			same_role(&v[i - 1], &v[i]) && v[i - 1].task->replica == v[i].task->replica;
	for (size_t i = 0, end; i < n; i = end) {
		size_t group = v[i].position;

		for (end = i + 1; !twice && end < n && same_role(&v[i], &v[end]); end++)
			group = min_of(group, v[end].position);
		for (size_t k = i; k < end; k++)
			v[k].group = group;
	}
	qsort(v, n, sizeof(*v), by_group);
	return !twice;
}

/* --- roles ----------------------------------------------------------------------------------- */

static int dir_of(struct spec_role_view *role)
{
	char *dir cleanup_free = spec_name_replica_dir(role->name, 0);
	char *dash = dir ? strrchr(dir, '-') : NULL;

	if (!dash)
		return -ENOMEM;
	*dash = '\0';
	return spec_read_copy(&role->dir, dir, MAX_DIR);
}

static int by_dir(const void *a, const void *b)
{
	const struct spec_role_view *x = *(const struct spec_role_view *const *)a;
	const struct spec_role_view *y = *(const struct spec_role_view *const *)b;
	int diff = strcmp(x->dir, y->dir);

	return diff ? diff : x < y ? -1 : 1;
}

/* Names that differ may have the same normal form: such roles get their number. */
static int part_dirs(struct spec_job_view *v)
{
	struct spec_role_view **sorted cleanup_free =
		calloc(v->n_roles + 1, sizeof(struct spec_role_view *));
	char dir[MAX_DIR + 32];
	size_t first = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < v->n_roles; i++)
		sorted[i] = &v->roles[i];
	qsort(sorted, v->n_roles, sizeof(struct spec_role_view *), by_dir);
	for (size_t i = 1; i < v->n_roles; i++) {
		if (!streq(sorted[first]->dir, sorted[i]->dir)) {
			first = i;
			continue;
		}
		/* No directory has a "~" of its own. */
		snprintf(dir, sizeof(dir), "%s~%td", sorted[i]->dir, sorted[i] - v->roles);
		if (spec_set(&sorted[i]->dir, dir) < 0)
			return -ENOMEM;
	}
	return 0;
}

static unsigned add(unsigned a, unsigned b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static int add_role(struct spec_job_view *v, const struct placed *p, bool torchx)
{
	struct spec_role_view *role = &v->roles[v->n_roles++];

	role->first = v->n_replicas;
	if (spec_set(&role->dir, "") < 0 ||
	    spec_read_copy(&role->name, torchx ? p->task->role : p->task->name, READ_MAX_WORD) < 0)
		return -ENOMEM;
	return dir_of(role);
}

/* TORCHX: the task is a replica of a role, by the id that it has there. */
static int add_task(struct spec_job_view *v, const struct placed *p, bool torchx)
{
	struct spec_task_view *task = &v->tasks[v->n_tasks++];
	struct spec_role_view *role = &v->roles[v->n_roles - 1];

	task->role = (unsigned)(v->n_roles - 1);
	task->replica = torchx ? p->task->replica : 0;
	task->n = min_of(p->task->replicas, (unsigned)(SPEC_MAX_REPLICAS - v->n_replicas));
	task->first = v->n_replicas;
	v->n_replicas += task->n;
	role->n += task->n;
	role->desired = add(role->desired, p->task->replicas);
	role->minimum = add(role->minimum, p->task->minimum);
	return spec_read_copy(&task->name, p->task->name, READ_MAX_WORD);
}

static int add_tasks(struct spec_job_view *v, const struct placed *placed, size_t n, bool torchx)
{
	int err = 0;

	v->roles = calloc(n + 1, sizeof(*v->roles));
	v->tasks = calloc(n + 1, sizeof(*v->tasks));
	if (!v->roles || !v->tasks)
		return -ENOMEM;
	for (size_t i = 0; !err && i < n; i++) {
		bool replica = torchx && is_replica(placed[i].task);

		if (i == 0 || placed[i - 1].group != placed[i].group)
			err = add_role(v, &placed[i], replica);
		if (!err)
			err = add_task(v, &placed[i], replica);
	}
	return err;
}

/* --- finding a pod's task ---------------------------------------------------------------------- */

static int by_name(const void *a, const void *b, void *data)
{
	const struct spec_job_view *v = data;
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	int diff = strcmp(v->tasks[x].name, v->tasks[y].name);

	return diff ? diff : x < y ? -1 : 1;
}

static int index_names(struct spec_job_view *v)
{
	v->by_name = calloc(v->n_tasks + 1, sizeof(*v->by_name));
	if (!v->by_name)
		return -ENOMEM;
	for (unsigned i = 0; i < v->n_tasks; i++)
		v->by_name[i] = i;
	qsort_r(v->by_name, v->n_tasks, sizeof(*v->by_name), by_name, v);
	return 0;
}

/* --- the whole --------------------------------------------------------------------------------- */

static int arrange(struct spec_job_view *v, const struct spec_task_source *tasks, size_t n)
{
	struct placed *placed cleanup_free = NULL;
	bool torchx;
	int err;

	n = min_of(n, (size_t)SPEC_MAX_REPLICAS);
	placed = calloc(n + 1, sizeof(*placed));
	if (!placed)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		placed[i] = (struct placed){.task = &tasks[i], .position = i};
	torchx = place_tasks(placed, n);
	err = add_tasks(v, placed, n, torchx);
	if (!err)
		err = part_dirs(v);
	return err ? err : index_names(v);
}

int spec_job_view_head(struct spec_job_view *v, struct json_object *object)
{
	struct json_object *metadata = spec_read_map(object, "metadata");
	struct json_object *notes = spec_read_map(metadata, "annotations");
	int err = spec_meta_read(object, &v->meta);

	if (err)
		return err;
	v->generation = spec_read_int(metadata, "generation", 0);
	v->has_appdef = *spec_read_text(notes, "kxfs/appdef");
	if (spec_read_copy(&v->submitter, spec_read_text(notes, "kxfs/submitter"), READ_MAX_WORD) <
		    0 ||
	    spec_read_copy(&v->submission, spec_read_text(notes, "kxfs/submission"),
			   READ_MAX_WORD) < 0 ||
	    spec_read_copy(&v->appdef_sha256, spec_read_text(notes, "kxfs/appdef-sha256"),
			   READ_MAX_WORD) < 0)
		return -ENOMEM;
	return 0;
}

int spec_job_view_parse(const struct spec_kind *kind, const char *json, size_t len,
			struct spec_job_view **ret)
{
	cleanup(job_freep) struct spec_job_view *v = spec_job_view_new();
	struct spec_task_source *tasks cleanup_free = NULL;
	struct json_object *o cleanup_json = NULL;
	int err = v ? spec_view_object(json, len, &o) : -ENOMEM;
	size_t n = 0;

	assert(spec_kind_is_shown(kind));
	if (!err)
		err = spec_job_view_head(v, o);
	if (!err)
		err = kind->reader->job(o, v, &tasks, &n);
	if (!err)
		err = kind->reader->status(o, v);
	if (!err && !*v->app)
		err = spec_set(&v->app, v->meta.name);
	if (!err)
		err = arrange(v, tasks, n);
	if (!err)
		*ret = take_ptr(v);
	return err;
}
