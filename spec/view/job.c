/* SPDX-License-Identifier: MIT */
/*
 * Reads a job. Metadata and annotations are read here, tasks and status by the kind; then the order
 * of the replicas and the names of their directories are found, which all snapshots of the job
 * share. A job of a thousand tasks has a megabyte, nearly all of it spec, and is sent again
 * whenever one of its pods changes; so if the spec has not changed, everything that depends on it
 * is copied from the earlier view.
 */
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/name.h"
#include "spec/view/kueue.h"
#include "spec/view/meta.h"
#include "spec/view/reader.h"

#define MAX_DIR 200 /* bytes; still a file name with a number appended */

/* A task while the tasks are sorted. */
struct placed {
	const struct spec_task_source *task;
	size_t position; /* in the object */
	size_t group;	 /* position of the first task of its role */
};

static void texts_of(struct spec_job_view *v, char **ret[12])
{
	char **const texts[] = {&v->resource_version, &v->app,	     &v->phase,
				&v->reason,	      &v->message,   &v->queue,
				&v->priority,	      &v->submitter, &v->submission,
				&v->appdef_sha256,    &v->user,	     &v->owner_api};

	memcpy(ret, texts, sizeof(texts));
}

void spec_job_view_free(struct spec_job_view *v)
{
	char **texts[12];

	if (!v)
		return;
	spec_meta_clear(&v->meta);
	texts_of(v, texts);
	for (size_t i = 0; i < array_size(texts); i++)
		spec_unset(texts[i]);
	for (size_t i = 0; i < v->n_roles; i++)
		spec_unset(&v->roles[i].name, &v->roles[i].dir);
	free(v->roles);
	for (size_t i = 0; i < v->n_tasks; i++)
		spec_unset(&v->tasks[i].name);
	free(v->tasks);
	free(v->by_name);
	spec_transitions_clear(&v->conditions);
	free(v);
}

define_cleanup(job_freep, struct spec_job_view *, spec_job_view_free)

void spec_job_view_labelled(struct spec_job_view *v, const struct spec_value *object)
{
	const char *queue = spec_read_text(spec_view_labels(object), SPEC_KUEUE_QUEUE);

	spec_read_copy(&v->queue, queue, READ_MAX_WORD);
	/* A CronJob makes its Jobs, and does not change them afterwards. */
	v->owned =
		*v->meta.owner_uid && strncmp(v->meta.owner, "CronJob ", strlen("CronJob ")) != 0;
	v->asked = spec_read_bool(spec_read_map(object, "spec"), "suspend") && !*queue && !v->owned;
}

void spec_job_view_queued(struct spec_job_view *v, const char *queue)
{
	cleanup_free char *text =
		text_print("The job waits for Kueue to admit it from queue %s", queue);

	spec_set(&v->reason, SPEC_REASON_QUEUED);
	spec_read_copy(&v->message, text, READ_MAX_MESSAGE);
}

/* --- the order of tasks --- */

static bool is_replica(const struct spec_task_source *task)
{
	return *task->role && task->replicas == 1;
}

/*
 * The order of tasks: first those that are roles of their own, then those of each role together, by
 * their ids.
 */
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

/*
 * Sort N tasks. Return false if a role has an id twice. TorchX never makes such a job; each task of
 * it is then shown as a role of its own.
 */
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

/* --- roles --- */

static int by_dir(const void *a, const void *b)
{
	const struct spec_role_view *x = *(const struct spec_role_view *const *)a;
	const struct spec_role_view *y = *(const struct spec_role_view *const *)b;
	int diff = strcmp(x->dir, y->dir);

	return diff ? diff : x < y ? -1 : 1;
}

/*
 * Different names may have the same normal form: then append a number to all but the first such
 * role.
 */
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
		/* No normal form has a "~". */
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
	/* The directory of replica 0, without the number. */
	dir = spec_name_replica_dir(role->name, 0);
	*strrchr(dir, '-') = '\0';
	spec_read_copy(&role->dir, dir, MAX_DIR);
}

/* Add a task. ID is that of its first replica. */
static void add_task(struct spec_job_view *v, const struct spec_task_source *from, unsigned id)
{
	struct spec_task_view *task = &v->tasks[v->n_tasks++];
	struct spec_role_view *role = &v->roles[v->n_roles - 1];

	task->role = (unsigned)(v->n_roles - 1);
	task->replica = id;
	task->n = min_of(from->replicas, (unsigned)(SPEC_MAX_REPLICAS - v->n_replicas));
	task->first = v->n_replicas;
	v->n_replicas += task->n;
	role->n += task->n;
	role->desired = add(role->desired, from->replicas);
	role->minimum = add(role->minimum, from->minimum);
	spec_read_copy(&task->name, from->name, READ_MAX_WORD);
}

static int by_name(const void *a, const void *b, void *data)
{
	const struct spec_job_view *v = data;
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	int diff = strcmp(v->tasks[x].name, v->tasks[y].name);

	return diff ? diff : x < y ? -1 : 1;
}

/* Make roles and tasks of SOURCES, in the display order of the job's replicas. */
static void arrange(struct spec_job_view *v, const struct spec_task_source *sources, size_t n)
{
	struct placed *placed cleanup_free = NULL;
	bool torchx; /* a task is a replica of a role, by its id there */

	n = min_of(n, (size_t)SPEC_MAX_REPLICAS);
	placed = new0_n(struct placed, n);
	for (size_t i = 0; i < n; i++)
		placed[i] = (struct placed){.task = &sources[i], .position = i};
	torchx = place_tasks(placed, n);
	v->roles = new0_n(struct spec_role_view, n);
	v->tasks = new0_n(struct spec_task_view, n);
	v->by_name = new0_n(unsigned, n);
	for (size_t i = 0; i < n; i++) {
		const struct spec_task_source *task = placed[i].task;
		bool replica = torchx && is_replica(task);

		if (i == 0 || placed[i - 1].group != placed[i].group)
			add_role(v, replica ? task->role : task->name);
		add_task(v, task, replica ? task->replica : 0);
		v->by_name[i] = (unsigned)i;
	}
	part_dirs(v);
	qsort_r(v->by_name, n, sizeof(*v->by_name), by_name, v);
}

/* --- a job that is read for the first time --- */

/* Read the members that depend on the metadata. Return 0 or -EINVAL. */
static int read_head(struct spec_job_view *v, const struct spec_value *object)
{
	const struct spec_value *metadata = spec_read_map(object, "metadata");
	const struct spec_value *notes = spec_read_map(metadata, "annotations");

	if (spec_meta_read(object, &v->meta) < 0)
		return -EINVAL;
	v->generation = spec_read_int(metadata, "generation", 0);
	spec_read_copy_word(&v->owner_api, spec_view_controller(object), "apiVersion");
	spec_read_copy_word(&v->resource_version, metadata, "resourceVersion");
	spec_read_copy_word(&v->priority, spec_view_labels(object), SPEC_KUEUE_PRIORITY);
	v->has_appdef = *spec_read_text(notes, "kxfs/appdef");
	spec_read_copy_word(&v->submitter, notes, "kxfs/submitter");
	spec_read_copy_word(&v->submission, notes, "kxfs/submission");
	spec_read_copy_word(&v->user, spec_view_labels(object), "kxfs/user");
	spec_read_copy_word(&v->appdef_sha256, notes, "kxfs/appdef-sha256");
	return 0;
}

/* Read the members that depend on the spec. */
static void read_spec(struct spec_job_view *v, const struct spec_reader *reader,
		      const struct spec_value *object)
{
	struct spec_task_source *tasks cleanup_free = NULL;
	size_t n = reader->job(reader, object, v, &tasks);

	if (!*v->app)
		spec_set(&v->app, v->meta.name);
	arrange(v, tasks, n);
	for (size_t i = 0; i < n; i++)
		v->time_limit =
			i == 0 || tasks[i].time_limit == v->time_limit ? tasks[i].time_limit : 0;
}

/* --- a job whose spec is known already --- */

static void copy_spec(struct spec_job_view *v, const struct spec_job_view *from)
{
	v->max_retries = from->max_retries;
	v->retry_limit = from->retry_limit;
	v->minimum = from->minimum;
	v->time_limit = from->time_limit;
	v->restarts = from->restarts;
	v->alone = from->alone;
	v->acts_on_success = from->acts_on_success;
	v->hidden = from->hidden;
	spec_set(&v->app, from->app);
	spec_set(&v->queue, from->queue);
	v->roles = new0_n(struct spec_role_view, from->n_roles);
	for (size_t i = 0; i < from->n_roles; i++) {
		struct spec_role_view *role = &v->roles[v->n_roles++];

		*role = from->roles[i];
		role->name = role->dir = NULL;
		spec_set(&role->name, from->roles[i].name);
		spec_set(&role->dir, from->roles[i].dir);
	}
	v->tasks = new0_n(struct spec_task_view, from->n_tasks);
	for (size_t i = 0; i < from->n_tasks; i++) {
		struct spec_task_view *task = &v->tasks[v->n_tasks++];

		*task = from->tasks[i];
		task->name = NULL;
		spec_set(&task->name, from->tasks[i].name);
	}
	v->by_name = new0_n(unsigned, from->n_tasks);
	memcpy(v->by_name, from->by_name, from->n_tasks * sizeof(*v->by_name));
	v->n_replicas = from->n_replicas;
}

int spec_job_view_parse(const struct spec_reader *reader, const char *json, size_t len,
			spec_job_view_find find, void *data, struct spec_job_view **ret)
{
	cleanup(job_freep) struct spec_job_view *v = NULL;
	struct spec_value *o cleanup_free = NULL;
	const struct spec_job_view *from = NULL;
	char **texts[12];

	if (spec_value_parse_map(json, len, &o) < 0)
		return -EINVAL;
	v = new0(struct spec_job_view);
	texts_of(v, texts);
	for (size_t i = 0; i < array_size(texts); i++)
		*texts[i] = spec_empty();
	if (read_head(v, o) < 0)
		return -EINVAL;
	if (find && v->generation != 0)
		from = find(data, v->meta.uid);
	if (from && v->generation == from->generation)
		copy_spec(v, from);
	else
		read_spec(v, reader, o);
	reader->status(reader, o, v);
	for (const struct spec_phase *p = reader->phases; p->name; p++) {
		if (!streq(p->name, v->phase))
			continue;
		v->suspends |= p->asked;
		v->over |= !p->asked && (p->ending || spec_state_is_final(p->state));
	}
	/* The controller also counts the failure after which it makes no further attempt. */
	if (v->retry_limit > 0)
		v->retries = min_of(v->retries, v->retry_limit - 1);
	*ret = take_ptr(v);
	return 0;
}
