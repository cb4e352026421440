/* SPDX-License-Identifier: MIT */
/*
 * Reads Kueue's queues and positions of jobs (kueue.h). Users often may not read ClusterQueues,
 * which belong to the whole cluster.
 */
#include <errno.h>

#include "spec/base/words.h"
#include "spec/view/steps.h"
#include "spec/yaml/yaml.h"

#define MAX_AMOUNTS 1024
#define MAX_PLACES  100000
#define NAMES_MAX   500 /* bytes; kxfs adds no name after this many */
#define TEXT_DEPTH  2	/* levels of block style in YAML: the queue, its list of flavors */

/* --- amounts --- */

/* Read the list FLAVORS: [{name: FLAVOR, resources: [{name: NAME, KEY: AMOUNT}]}]. */
static void read_amounts(struct spec_amounts *a, const struct spec_value *flavors, const char *key)
{
	for (size_t i = 0; i < spec_read_count(flavors); i++) {
		const struct spec_value *flavor = spec_read_at(flavors, i);
		const struct spec_value *resources = spec_read_list(flavor, "resources");

		for (size_t k = 0; k < spec_read_count(resources); k++) {
			const struct spec_value *resource = spec_read_at(resources, k);
			/* A manifest may have a number here instead of a string. */
			const char *text = spec_read_word(resource, key);

			if (*text && a->n < MAX_AMOUNTS)
				spec_amounts_add(a, spec_read_text(flavor, "name"),
						 spec_read_text(resource, "name"), text);
		}
	}
}

/* --- queues --- */

void spec_kueue_queue_free(struct spec_kueue_queue *q)
{
	if (!q)
		return;
	spec_unset(&q->cluster_queue, &q->stop_policy, &q->strategy, &q->cohort);
	spec_condition_clear(&q->active);
	spec_amounts_clear(&q->used);
	spec_amounts_clear(&q->reserved);
	spec_amounts_clear(&q->nominal);
	spec_amounts_clear(&q->limit);
	spec_amounts_clear(&q->borrowed);
	free(q);
}

struct spec_kueue_queue *spec_kueue_queue_read(const struct spec_value *object)
{
	const struct spec_value *spec = spec_read_map(object, "spec");
	const struct spec_value *status = spec_read_map(object, "status");
	const struct spec_value *used = spec_read_list(status, "flavorsUsage");
	const struct spec_value *groups = spec_read_list(spec, "resourceGroups");
	const char *cohort = spec_read_text(spec, "cohortName");
	struct spec_kueue_queue *q = new0(struct spec_kueue_queue);

	/* v1beta1 calls these fields flavorUsage and cohort. */
	used = used ? used : spec_read_list(status, "flavorUsage");
	cohort = *cohort ? cohort : spec_read_text(spec, "cohort");
	spec_read_copy_word(&q->cluster_queue, spec, "clusterQueue");
	spec_read_copy_word(&q->stop_policy, spec, "stopPolicy");
	spec_read_copy_word(&q->strategy, spec, "queueingStrategy");
	spec_read_copy(&q->cohort, cohort, READ_MAX_WORD);
	spec_condition_read(&q->active, status, "Active");
	read_amounts(&q->used, used, "total");
	read_amounts(&q->borrowed, used, "borrowed");
	read_amounts(&q->reserved, spec_read_list(status, "flavorsReservation"), "total");
	for (size_t i = 0; i < spec_read_count(groups); i++) {
		const struct spec_value *flavors =
			spec_read_list(spec_read_at(groups, i), "flavors");

		read_amounts(&q->nominal, flavors, "nominalQuota");
		read_amounts(&q->limit, flavors, "borrowingLimit");
	}
	q->pending = (unsigned)spec_read_int(status, "pendingWorkloads", 0);
	q->reserving = (unsigned)spec_read_int(status, "reservingWorkloads", 0);
	q->admitted = (unsigned)spec_read_int(status, "admittedWorkloads", 0);
	return q;
}

/* --- queues/NAME/status --- */

bool spec_queue_is_stopped(const char *policy)
{
	return policy && *policy && !streq(policy, "None");
}

/*
 * Return "Open", or why Q admits no jobs. If an administrator has stopped Q or its ClusterQueue,
 * set *RET_BY to the kind of the stopped queue, otherwise to "".
 */
static const char *state_of(const struct spec_kueue_queue *q,
			    const struct spec_kueue_queue *cluster, const char **ret_by)
{
	*ret_by = "";
	if (spec_queue_is_stopped(q->stop_policy)) {
		*ret_by = "LocalQueue";
		return q->stop_policy;
	}
	if (spec_queue_is_stopped(cluster->stop_policy)) {
		*ret_by = "ClusterQueue";
		return cluster->stop_policy;
	}
	return q->active.is_true ? "Open" : q->active.reason;
}

static void put_text(struct json_object *o, const char *key, const char *text)
{
	spec_tree_text(o, key, text && *text ? text : NULL);
}

/* Append an item for each amount in V, except resources that are also in OTHER (or NULL). */
static void put_amounts(struct json_object *list, const struct spec_kueue_queue *q,
			const struct spec_kueue_queue *cluster, const struct spec_amounts *v,
			const struct spec_amounts *other)
{
	for (size_t i = 0; i < v->n; i++) {
		const char *flavor = v->v[i].flavor, *resource = v->v[i].name;
		struct json_object *o;

		if (other && *spec_amounts_get(other, flavor, resource))
			continue;
		o = spec_tree_append(list, spec_tree_map());
		spec_tree_text(o, "flavor", flavor);
		spec_tree_text(o, "resource", resource);
		put_text(o, "used", spec_amounts_get(&q->used, flavor, resource));
		put_text(o, "reserved", spec_amounts_get(&q->reserved, flavor, resource));
		put_text(o, "nominal", spec_amounts_get(&cluster->nominal, flavor, resource));
		put_text(o, "borrowing_limit", spec_amounts_get(&cluster->limit, flavor, resource));
		put_text(o, "borrowed", spec_amounts_get(&cluster->borrowed, flavor, resource));
	}
}

void spec_local_queue_text(const struct spec_queue_view *v, const struct spec_queue_view *of,
			   size_t pending, size_t running, char **ret, size_t *ret_len)
{
	static const struct spec_kueue_queue unknown;
	cleanup_json struct json_object *o = spec_tree_map();
	const struct spec_kueue_queue *q = v->kueue, *cluster = of ? of->kueue : &unknown;
	struct json_object *list, *counts;
	const char *by, *state;

	state = state_of(q, cluster, &by);
	spec_tree_text(o, "name", v->meta.name);
	spec_tree_text(o, "state", state);
	put_text(o, "stopped_by", by);
	spec_tree_text(o, "message", q->active.message);
	spec_tree_text(o, "cluster_queue", q->cluster_queue);
	put_text(o, "cohort", cluster->cohort);
	put_text(o, "strategy", cluster->strategy);
	list = spec_tree_add(o, "flavors", spec_tree_list(q->used.n));
	put_amounts(list, q, cluster, &q->used, NULL);
	put_amounts(list, q, cluster, &cluster->nominal, &q->used);
	counts = spec_tree_add(o, "workloads", spec_tree_map());
	spec_tree_number(counts, "pending", q->pending);
	spec_tree_number(counts, "reserving", q->reserving);
	spec_tree_number(counts, "admitted", q->admitted);
	spec_tree_number(o, "pending", (int64_t)pending);
	spec_tree_number(o, "running", (int64_t)running);
	spec_yaml_emit(o, TEXT_DEPTH, ret, ret_len);
}

char *spec_local_queue_names(const char *json, size_t len, const char *name, bool *ret_has)
{
	struct spec_value *o cleanup_free = NULL;
	const struct spec_value *items;
	char *ret;

	if (spec_value_parse_map(json, len, &o) < 0 || !spec_read_member(o, "items"))
		return NULL;
	items = spec_read_list(o, "items");
	*ret_has = *spec_read_text(spec_read_map(o, "metadata"), "continue");
	ret = text_copy("");
	for (size_t i = 0; i < spec_read_count(items); i++) {
		const char *item =
			spec_read_text(spec_read_map(spec_read_at(items, i), "metadata"), "name");

		*ret_has |= streq(item, name);
		if (*item && strlen(ret) < NAMES_MAX)
			text_set(&ret, "%s%s%s", ret, *ret ? ", " : "", item);
	}
	(void)spec_words_clean(ret, 2 * NAMES_MAX);
	return ret;
}

/* --- positions --- */

static int by_uid(const void *a, const void *b)
{
	const struct spec_queue_position *x = a, *y = b;

	return strcmp(x->uid, y->uid);
}

/*
 * Return the uid of ITEM's job. It is the first owner: Kueue copies owner references without
 * "controller" (pkg/visibility/storage).
 */
static const char *job_of(const struct spec_value *item)
{
	const struct spec_value *owners =
		spec_read_list(spec_read_map(item, "metadata"), "ownerReferences");

	return spec_read_text(spec_read_at(owners, 0), "uid");
}

int spec_queue_positions_parse(const char *json, size_t len, struct spec_queue_position **ret,
			       size_t *ret_n)
{
	struct spec_value *o cleanup_free = NULL;
	const struct spec_value *items;
	struct spec_queue_position *v;
	size_t n;

	if (spec_value_parse_map(json, len, &o) < 0)
		return -EINVAL;
	items = spec_read_list(o, "items");
	n = min_of(spec_read_count(items), (size_t)MAX_PLACES);
	v = new0_n(struct spec_queue_position, n);
	*ret_n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct spec_value *item = spec_read_at(items, i);
		const char *uid = job_of(item);
		int position = spec_read_int(item, "positionInClusterQueue", -1);

		if (!*uid || strlen(uid) >= sizeof(v->uid) || position < 0)
			continue;
		snprintf(v[*ret_n].uid, sizeof(v->uid), "%s", uid);
		v[(*ret_n)++].position = (unsigned)position + 1;
	}
	qsort(v, *ret_n, sizeof(*v), by_uid);
	*ret = v;
	return 0;
}

unsigned spec_queue_positions_find(const struct spec_queue_position *v, size_t n, const char *uid)
{
	struct spec_queue_position key = {0};
	const struct spec_queue_position *found;

	if (strlen(uid) >= sizeof(key.uid) || n == 0)
		return 0;
	snprintf(key.uid, sizeof(key.uid), "%s", uid);
	found = bsearch(&key, v, n, sizeof(key), by_uid);
	return found ? found->position : 0;
}
