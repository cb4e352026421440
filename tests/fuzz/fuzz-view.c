/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a job and its pods, one object per line. The first line is the job. Whatever they
 * contain, the snapshot must be consistent: valid directory names, each replica in one role, and
 * finished replicas with times. The first byte chooses whether the job was deleted, whether its
 * pods are gone, whether some pods arrive late, and the kind.
 */
#include "fuzz.h"

#include "spec/base/limits.h"
#include "spec/base/name.h"
#include "spec/job/status.h"
#include "spec/kinds/kinds.h"
#include "spec/view/kueue.h"
#include "tests/unit/table.h"

#define MAX_PODS   32
#define MAX_EVENTS 64

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Assert that all names are valid file names, and that they differ. */
static void check_names(char **names, size_t n)
{
	qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++) {
		assert(spec_name_is_file(names[i]));
		assert(i == 0 || strcmp(names[i - 1], names[i]) != 0);
	}
}

static void check_logs(const struct spec_replica *r)
{
	char **keys = calloc(r->n_logs + 1, sizeof(*keys));

	assert(keys);
	for (size_t i = 0; i < r->n_logs; i++) {
		keys[i] = r->logs[i].key;
		assert(!*r->logs[i].container || spec_name_is_file(r->logs[i].container));
		assert(i == 0 || *r->logs[i].container || !*r->logs[i - 1].container);
	}
	check_names(keys, r->n_logs);
	free(keys);
}

static void check_replicas(const struct spec_job *job)
{
	char **names = calloc(job->n_replicas + 1, sizeof(*names));
	size_t next = 0;

	assert(names && job->n_replicas <= SPEC_MAX_REPLICAS);
	for (size_t i = 0; i < job->n_roles; i++) {
		assert(job->roles[i].first == next && job->roles[i].n <= job->roles[i].desired);
		next += job->roles[i].n;
	}
	assert(next == job->n_replicas);
	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];

		names[i] = r->name;
		assert(r->role < job->n_roles &&
		       i - job->roles[r->role].first < job->roles[r->role].n);
		assert(r->exit_code >= -1 && strlen(r->message) < 4096);
		assert(!spec_state_is_final(job->state) || job->suspended ||
		       (job->state == SPEC_SUCCEEDED && !job->history) || r->finished ||
		       (!job->history && !spec_state_is_final(r->state)));
		check_logs(r);
	}
	check_names(names, job->n_replicas);
	free(names);
}

static void check(const struct spec_job *job)
{
	char *text;
	size_t len;

	assert(job && spec_name_is_file(job->id) && *job->uid);
	assert(job->state < SPEC_N_STATES);
	assert((job->finished != 0) == (spec_state_is_final(job->state) && !job->suspended));
	assert(!job->history || spec_state_is_final(job->state));
	check_replicas(job);
	if (job->n_replicas > 100)
		return;
	spec_status_yaml(job, &text, &len);
	free(text);
	spec_status_why(job, ~0u, &text, &len);
	assert(len == 0 || text[len - 1] == '\n');
	free(text);
}

struct cluster {
	const struct spec_kind *kind;
	struct spec_job_view *job;
	struct spec_pod_view *pods[MAX_PODS];
	struct spec_group_view *group;
	struct spec_queue_view *queue;
	struct spec_workload_view *workload;
	struct spec_queue_view *cluster_queue;
	unsigned place;
	struct spec_event_view *events[MAX_EVENTS];
	size_t n_events;
	size_t n;
};

/* Return the I-th kind, or the first one if there is none. */
static const struct spec_kind *choose_kind(size_t i)
{
	const struct spec_kinds *kinds = test_table_of_kinds();

	return kinds->v[i < kinds->n ? i : 0];
}

static void read_queue(struct cluster *c, bool local, const char *line, size_t len)
{
	struct spec_queue_view *queue;
	char *text;
	size_t text_len;

	if ((local ? spec_kueue_queue_parse(line, len, &queue)
		   : spec_queue_view_parse(line, len, &queue)) < 0)
		return;
	assert(!local == !queue->kueue);
	assert(spec_name_is_file(queue->meta.name) && spec_queue_view_same(queue, queue));
	spec_queue_view_text(queue, c->cluster_queue, 1, 2, &text, &text_len);
	free(text);
	spec_queue_view_unref(c->queue);
	c->queue = queue;
}

static void read_workload(struct cluster *c, const char *line, size_t len)
{
	struct spec_workload_view *workload;

	if (spec_workload_view_parse(line, len, &workload) < 0)
		return;
	assert(spec_name_is_file(workload->meta.name));
	spec_workload_view_free(c->workload);
	c->workload = workload;
}

static void read_cluster_queue(struct cluster *c, const char *line, size_t len)
{
	struct spec_queue_view *queue;

	if (spec_kueue_queue_parse(line, len, &queue) < 0)
		return;
	spec_queue_view_unref(c->cluster_queue);
	c->cluster_queue = queue;
}

static void read_places(struct cluster *c, const char *line, size_t len)
{
	struct spec_queue_position *v;
	size_t n;

	if (spec_queue_positions_parse(line, len, &v, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		c->place = spec_queue_positions_find(v, n, v[i].uid);
		assert(c->place > 0 && *v[i].uid);
	}
	free(v);
}

/* Read an object that is neither a job nor a pod: a letter for its type, then the object. */
static bool read_watched(struct cluster *c, const char *line, size_t len)
{
	struct spec_group_view *group;

	switch (len > 0 ? *line : 0) {
	case 'g':
		if (spec_group_view_parse(line + 1, len - 1, &group) == 0) {
			spec_group_view_free(c->group);
			c->group = group;
		}
		return true;
	case 'e':
		if (c->n_events < MAX_EVENTS &&
		    spec_event_view_parse(line + 1, len - 1, &c->events[c->n_events]) == 0)
			c->n_events++;
		return true;
	case 'q':
		read_queue(c, false, line + 1, len - 1);
		return true;
	case 'l':
		read_queue(c, true, line + 1, len - 1);
		return true;
	case 'w':
		read_workload(c, line + 1, len - 1);
		return true;
	case 'c':
		read_cluster_queue(c, line + 1, len - 1);
		return true;
	case 'p':
		read_places(c, line + 1, len - 1);
		spec_group_version(line + 1, len - 1, SPEC_KUEUE_GROUP);
		return true;
	default:
		return false;
	}
}

/* Assert that each event becomes a line of six fields, whatever it contains. */
static void check_events(struct cluster *c)
{
	char *text;
	size_t len, lines = 0, tabs = 0;
	int64_t changed;

	spec_event_view_text(c->events, c->n_events, &text, &len, &changed);
	assert(len == strlen(text));
	for (size_t i = 0; i < len; i++) {
		lines += text[i] == '\n';
		tabs += text[i] == '\t';
	}
	assert(lines <= c->n_events && tabs == 5 * lines);
	free(text);
}

/* Read a pod, unless there are too many. */
static void read_pod(struct cluster *c, const char *line, size_t len)
{
	struct spec_pod_view *pod;

	if (spec_pod_view_parse(&(struct spec_pod_readers){.v = &c->kind->reader, .n = 1}, line,
				len, &pod) < 0)
		return;
	c->pods[c->n++] = pod;
}

static void read_line(struct cluster *c, const char *line, size_t len)
{
	if (read_watched(c, line, len))
		return;
	if (!c->job) {
		if (spec_job_view_parse(c->kind->reader, line, len, &c->job) < 0)
			c->job = NULL;
	} else if (c->n < MAX_PODS) {
		read_pod(c, line, len);
	}
}

/* Return a snapshot with the first N pods, after checking it. Release BEFORE. */
static const struct spec_job *look(const struct cluster *c, size_t n, bool left,
				   const struct spec_job *before)
{
	const struct spec_view_context ctx = {
		.reader = c->kind->reader,
		.control = c->kind->control,
		.backend = c->kind->name,
		.namespace = "ns",
		.now = 1000000000,
		.history = left,
		.group = c->group,
		.queue = c->queue,
		.events = c->events,
		.n_events = c->n_events,
		.events_known = c->n_events > 0,
		.kueue = {.known = true,
			  .workload = c->workload,
			  .cluster_queue = c->cluster_queue,
			  .position = c->place},
		.before = before,
	};
	const struct spec_job *job =
		spec_view_job(c->job, (const struct spec_pod_view *const *)c->pods, n, &ctx);

	check(job);
	spec_job_unref(before);
	return job;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cluster c = {0};
	const char *p = (const char *)data + 1, *end = (const char *)data + size;
	const struct spec_job *job;

	if (size == 0)
		return 0;
	c.kind = choose_kind(data[0] >> 4 & 3);
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		nl = nl ? nl : end;
		read_line(&c, p, (size_t)(nl - p));
		p = nl + 1;
	}
	check_events(&c);
	if (c.job) {
		/* Two views with the same uid are one pod. The owner merges them. */
		for (size_t i = 1; i < c.n; i++)
			spec_pod_view_inherit(c.pods[i], c.pods[i - 1]);
		job = look(&c, data[0] & 4 ? c.n / 2 : c.n, false, NULL);
		for (size_t i = 0; i < c.n; i++)
			c.pods[i]->gone = data[0] & 2;
		job = look(&c, c.n, data[0] & 1, job);
		job = look(&c, data[0] & 8 ? 0 : c.n, data[0] & 1, job);
		spec_job_unref(job);
	}
	for (size_t i = 0; i < c.n; i++)
		spec_pod_view_free(c.pods[i]);
	for (size_t i = 0; i < c.n_events; i++)
		spec_event_view_unref(c.events[i]);
	spec_group_view_free(c.group);
	spec_queue_view_unref(c.queue);
	spec_workload_view_free(c.workload);
	spec_queue_view_unref(c.cluster_queue);
	spec_job_view_free(c.job);
	return 0;
}
