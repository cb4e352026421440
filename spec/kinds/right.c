/* SPDX-License-Identifier: MIT */
/* The table of rights. Rights to a kind's jobs are derived from the kind. ROWS has all others. */
#include "spec/kinds/right.h"

#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"
#include "spec/view/control.h"
#include "spec/view/view.h"

/*
 * Which mounts need a right: all, those of kinds with a SCHEDULING_API, or those of kinds whose
 * jobs may be in queues of Kueue.
 */
enum who { ANY, SCHEDULED, QUEUED };

static const struct right_row {
	enum who who;
	struct spec_right right;
} rows[] = {
	/* mounting fails without it */
	{ANY, {.group = "", .resource = "pods", .verbs = {"list", "watch"}}},
	{ANY,
	 {.group = "",
	  .resource = "pods/log",
	  .verbs = {"get"},
	  .cost = "kxfs can open only logs that it has already captured"}},
	{SCHEDULED,
	 {.group = "bus.volcano.sh",
	  .resource = "commands",
	  .verbs = {"create"},
	  .cost = "writes to ctl have no effect"}},
	{SCHEDULED,
	 {.group = "scheduling.volcano.sh",
	  .resource = "podgroups",
	  .verbs = {"list", "watch"},
	  .cost = "the file \"why\" can't report why the scheduler does not admit a job or "
		  "start its gang"}},
	{ANY,
	 {.group = "",
	  .resource = "events",
	  .verbs = {"list", "watch"},
	  .cost = "there is no events file; the file \"why\" can't report pods that can't be "
		  "created, volumes that can't be mounted, or full queues"}},
	{ANY,
	 {.group = SPEC_METRICS_GROUP,
	  .resource = "pods",
	  .verbs = {"list"},
	  .cost = "usage files show only what each replica requested"}},
	{SCHEDULED,
	 {.group = "scheduling.volcano.sh",
	  .resource = "queues",
	  .verbs = {"list", "watch"},
	  .cluster = true,
	  .cost = "queues/ shows only the queue of -o queue=NAME"}},
	{QUEUED,
	 {.group = "kueue.x-k8s.io",
	  .resource = "workloads",
	  .verbs = {"list", "watch"},
	  .cost = "the file \"why\" can't report what a job in a Kueue queue waits for, or that "
		  "Kueue deactivated it; ctl can't suspend or resume such a job"}},
	{QUEUED,
	 {.group = "kueue.x-k8s.io",
	  .resource = "workloads",
	  .verbs = {"patch"},
	  .cost = "ctl can't suspend or resume jobs in a Kueue queue"}},
	{QUEUED,
	 {.group = "kueue.x-k8s.io",
	  .resource = "localqueues",
	  .verbs = {"list", "watch"},
	  .cost = "there is no queues/ directory; the file \"why\" can't report whether a queue is "
		  "stopped"}},
	{QUEUED,
	 {.group = "kueue.x-k8s.io",
	  .resource = "localqueues",
	  .verbs = {"get"},
	  .cost = "ctl can't check whether a queue exists"}},
	{QUEUED,
	 {.group = "visibility.kueue.x-k8s.io",
	  .resource = "localqueues/pendingworkloads",
	  .verbs = {"get"},
	  .cost = "status.json has no queue_position"}},
	{QUEUED,
	 {.group = "kueue.x-k8s.io",
	  .resource = "clusterqueues",
	  .verbs = {"list", "watch"},
	  .cluster = true,
	  .cost = "queues/ shows no nominal quota; the file \"why\" can't report that a cluster "
		  "queue is stopped or uses StrictFIFO"}},
	{QUEUED,
	 {.group = "kueue.x-k8s.io",
	  .resource = "workloadpriorityclasses",
	  .verbs = {"get"},
	  .cluster = true,
	  .cost = "ctl can't check whether a priority class exists, and Kueue ignores jobs whose "
		  "class does not exist"}},
};

/* The rights for the jobs of one kind. */
static const struct spec_right of_jobs[] = {
	{.verbs = {"get", "list", "watch"}, .jobs = true},
	{.verbs = {"create"},
	 .cost = "jobs can't be submitted (a mount with -o ro does not "
		 "need this right)"},
	{.verbs = {"delete"},
	 .cost = "jobs can't be cancelled (a mount with -o ro does not "
		 "need this right)"},
	{.verbs = {"patch"}},
};

static bool is_for(const struct right_row *row, const struct spec_kind *const *kinds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (row->who == ANY || (row->who == QUEUED && kinds[i]->in_kueue) ||
		    (row->who == SCHEDULED && kinds[i]->scheduling_api))
			return true;
	return false;
}

/* Return what ctl can't do without the right to patch jobs of KIND, or NULL. */
static const char *cost_of_patch(const struct spec_kind *kind)
{
	/* ctl controls Volcano's jobs by creating Commands, so it does not patch the jobs. */
	if (!kind->control || kind->scheduling_api)
		return NULL;
	return kind->control->known & 1u << SPEC_TERMINATE
		       ? "ctl can't suspend, resume or terminate jobs"
		       : "ctl can't suspend or resume jobs";
}

/* Append RIGHT to the *M rights in V, for RESOURCE in the API group of API ("batch/v1"). */
static void add(struct spec_right *v, size_t *m, struct spec_right right, const char *api,
		const char *resource)
{
	snprintf(right.group, sizeof(right.group), "%.*s", (int)strcspn(api, "/"), api);
	right.resource = resource;
	v[(*m)++] = right;
}

/* Append the right of_jobs[K] of each kind. */
static void add_of_jobs(struct spec_right *v, size_t *m, size_t k,
			const struct spec_kind *const *kinds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct spec_right right = of_jobs[k];

		if (streq(right.verbs[0], "patch"))
			right.cost = cost_of_patch(kinds[i]);
		if (right.cost || right.jobs)
			add(v, m, right, kinds[i]->api_version, kinds[i]->plural);
	}
}

/* True if V has a right to the resource of PART. */
static bool is_there(const struct spec_right *v, size_t m, const struct spec_part *part)
{
	size_t len = strcspn(part->api_version, "/");

	for (size_t i = 0; i < m; i++)
		if (streq(v[i].resource, part->plural) && strlen(v[i].group) == len &&
		    strncmp(v[i].group, part->api_version, len) == 0)
			return true;
	return false;
}

static void add_of_parts(struct spec_right *v, size_t *m, const struct spec_kind *const *kinds,
			 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < kinds[i]->n_parts; k++) {
			const struct spec_part *part = &kinds[i]->parts[k];
			struct spec_right right = {.verbs = {"list", "watch"}, .cost = part->cost};

			if (!is_there(v, *m, part))
				add(v, m, right, part->api_version, part->plural);
		}
	}
}

struct spec_right *spec_rights(const struct spec_kind *const *kinds, size_t n, size_t *ret_n)
{
	struct spec_right *v = new0_n(struct spec_right,
				      array_size(rows) + n * array_size(of_jobs) + SPEC_MAX_PARTS);
	size_t m = 0;

	add_of_jobs(v, &m, 0, kinds, n);
	v[m++] = rows[0].right;
	for (size_t k = 1; k < array_size(of_jobs); k++)
		add_of_jobs(v, &m, k, kinds, n);
	add_of_parts(v, &m, kinds, n);
	for (size_t i = 1; i < array_size(rows); i++)
		if (is_for(&rows[i], kinds, n))
			v[m++] = rows[i].right;
	*ret_n = m;
	return v;
}

const char *spec_right_cost(const char *resource)
{
	for (size_t i = 0; i < array_size(rows); i++)
		if (streq(rows[i].right.resource, resource) &&
		    streq(rows[i].right.verbs[0], "list") && rows[i].right.verbs[1])
			return rows[i].right.cost;
	return NULL;
}
