/* SPDX-License-Identifier: MIT */
/*
 * Removes fields from a manifest before kxfs submits it. kxfs always removes the fields that the
 * server or kxfs sets. If the object was in a cluster, kxfs also removes the fields that
 * controllers and webhooks set, because a copy with these fields could fail. For example, Kueue
 * does not admit a copy with the annotations of an earlier admission (FailedToStart: "conflict for
 * annotations"). Volcano refuses a copy with the name of a claim that Volcano created for the
 * original job.
 *
 * Kueue adds node selectors and tolerations of a flavor. In an AppWrapper, they are in a separate
 * list, so kxfs removes them. In other objects, a user may have written them, so kxfs keeps them.
 */
#include "spec/kinds/ready_manifest.h"

#include "spec/pods/pod.h"
#include "spec/view/kueue.h"

#define ANNOTATIONS "metadata.annotations"
#define LABELS	    "metadata.labels"
/* keys of a SparkApplication's driver or executor, beside its pod template */
#define SPARK_ANNOTATIONS "annotations"
#define SPARK_LABELS	  "labels"

/* Kueue sets the label PODSET and the annotation WORKLOAD in the pods of an admitted job. */
#define PODSET	 SPEC_KUEUE_GROUP "/podset"
#define WORKLOAD SPEC_KUEUE_GROUP "/workload"
#define BATCH	 "batch.kubernetes.io/"

enum where {
	ANY,	   /* any manifest */
	LIVE,	   /* an object that was in a cluster */
	POD,	   /* a pod template of an admitted job */
	SELECTED,  /* a batch Job with a generated selector */
	COMPONENT, /* a component of an AppWrapper, if LIVE */
	/* A volume of a Volcano job, if LIVE and if Volcano has created the volume's claim. */
	VOLUME,
};

#define MAX_KEYS 10

/*
 * Fields to remove. AT is the path of a map or a list. From a map, remove the members KEYS. If
 * VALUE is not NULL, remove only those with this value. From a list, remove the items called KEYS
 * (is_called). SPARK is the same path in the driver or executor of a SparkApplication, or NULL.
 *
 * Comments name the functions that set the fields. Paths without pkg/ are in Kueue's
 * pkg/controller, or in Volcano's pkg.
 */
struct added {
	enum where where;
	const char *at, *spark;
	const char *keys[MAX_KEYS];
	const char *value;
};

static const struct added table[] = {
	{
		.where = ANY,
		.at = "",
		.keys = {"status"},
	},
	{
		/* A copy must not have the owners of the original job. */
		.where = ANY,
		.at = "metadata",
		.keys = {"uid", "resourceVersion", "generation", "creationTimestamp",
			 "deletionTimestamp", "managedFields", "selfLink",
			 "deletionGracePeriodSeconds", "ownerReferences"},
	},
	{
		/* The server sets the first two at a deletion. Controllers set the others. */
		.where = LIVE,
		.at = "metadata.finalizers",
		.keys = {"foregroundDeletion", "orphan", "workload.codeflare.dev/finalizer",
			 "ray.io/rayjob-finalizer"},
	},
	{
		/* kxfs itself (manifest.c) */
		.where = ANY,
		.at = ANNOTATIONS,
		.keys = {"kxfs/appdef", "kxfs/appdef-sha256", "kxfs/submission", "kxfs/submitter"},
	},
	{
		/* Kueue's ApplyDefaultForSuspend (jobframework/defaults.go), or ctl of kxfs */
		.where = LIVE,
		.at = "spec",
		.keys = {"suspend"},
	},
	{
		/* Kueue's patches of the runtime (jobs/trainjob/trainjob_controller.go) */
		.where = LIVE,
		.at = "spec.runtimePatches",
		.keys = {SPEC_KUEUE_GROUP "/manager"},
	},
	{
		/* Kubernetes' generateSelector (pkg/registry/batch/job/strategy.go) */
		.where = SELECTED,
		.at = "spec",
		.keys = {"selector", "manualSelector"},
	},
	{
		.where = SELECTED,
		.at = LABELS,
		.keys = {BATCH "controller-uid", BATCH "job-name", "controller-uid", "job-name"},
	},
	{
		.where = SELECTED,
		.at = "spec.template." LABELS,
		.keys = {BATCH "controller-uid", BATCH "job-name", "controller-uid", "job-name"},
	},
	{
		/* Kueue's ApplyDefaultForManagedBy (jobframework/defaults.go) */
		.where = LIVE,
		.at = "spec",
		.keys = {"managedBy"},
		.value = SPEC_KUEUE_GROUP "/multikueue",
	},
	{
		/* Kueue's SyncJob (jobs/jobset/jobset_multikueue_adapter.go) */
		.where = LIVE,
		.at = LABELS,
		.keys = {SPEC_KUEUE_GROUP "/prebuilt-workload-name",
			 SPEC_KUEUE_GROUP "/multikueue-origin"},
	},
	{
		.where = LIVE,
		.at = ANNOTATIONS,
		.keys = {SPEC_KUEUE_GROUP "/prebuilt-workload-name"},
	},
	{
		/* Kueue's getPodSetsInfoFromStatus (jobframework/reconciler.go) */
		.where = POD,
		.at = LABELS,
		.spark = SPARK_LABELS,
		.keys = {PODSET, SPEC_KUEUE_GROUP "/local-queue-name",
			 SPEC_KUEUE_GROUP "/cluster-queue-name",
			 SPEC_KUEUE_GROUP "/multikueue-worker-workload-pod"},
	},
	{
		/*
		 * Kueue's getPodSetsInfoFromStatus, and its podSetUpdates
		 * (admissionchecks/provisioning/controller.go)
		 */
		.where = POD,
		.at = ANNOTATIONS,
		.spark = SPARK_ANNOTATIONS,
		.keys = {WORKLOAD, SPEC_KUEUE_GROUP "/workload-slice-name",
			 "autoscaling.x-k8s.io/consume-provisioning-request",
			 "autoscaling.x-k8s.io/provisioning-class-name",
			 "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
			 "cluster-autoscaler.kubernetes.io/provisioning-class-name"},
	},
	{
		/* Kueue's FromAssignment (pkg/podset/podset.go). The second is for elastic jobs. */
		.where = POD,
		.at = "spec.schedulingGates",
		.spark = "template.spec.schedulingGates",
		.keys = {SPEC_KUEUE_GROUP "/topology", SPEC_KUEUE_GROUP "/elastic-job"},
	},
	{
		/* Kueue's RunWithPodSetsInfo (jobs/appwrapper/appwrapper_controller.go) */
		.where = COMPONENT,
		.at = "",
		.keys = {"podSetInfos"},
	},
	{
		/* Volcano's createJobIOIfNotExist (controllers/job/job_controller_actions.go) */
		.where = VOLUME,
		.at = "",
		.keys = {"volumeClaimName"},
	},
	{
		/* Volcano's syncJob (controllers/job/job_controller_actions.go) */
		.where = LIVE,
		.at = ANNOTATIONS,
		.keys = {"volcano.sh/job-forwarding"},
	},
};

/*
 * True if ITEM is the text KEY, or a map with the name KEY. The name of a map is its member "name"
 * or, if it has none, "manager".
 */
static bool is_called(struct json_object *item, const char *key)
{
	struct json_object *map = json_object_is_type(item, json_type_object) ? item : NULL;

	if (map && !json_object_object_get_ex(map, "name", &item))
		item = json_object_object_get(map, "manager");
	return (json_object_is_type(item, json_type_string) ||
		json_object_is_type(item, json_type_int)) &&
	       streq(json_object_get_string(item), key);
}

/* Remove what A describes from the map or list at PATH of O. */
static void remove_keys(struct json_object *o, const struct added *a, const char *path)
{
	struct json_object *at = spec_tree_find(o, path);

	for (size_t i = 0; i < MAX_KEYS && a->keys[i]; i++) {
		if (json_object_is_type(at, json_type_array)) {
			for (size_t k = json_object_array_length(at); k-- > 0;)
				if (is_called(json_object_array_get_idx(at, k), a->keys[i]))
					json_object_array_del_idx(at, k, 1);
		} else if (json_object_is_type(at, json_type_object) &&
			   (!a->value ||
			    is_called(json_object_object_get(at, a->keys[i]), a->value))) {
			json_object_object_del(at, a->keys[i]);
		}
	}
}

static void remove_all(struct json_object *o, enum where where)
{
	for (size_t i = 0; i < array_size(table); i++)
		if (table[i].where == where)
			remove_keys(o, &table[i], table[i].at);
}

static bool has(struct json_object *o, const char *at, const char *key)
{
	struct json_object *map = spec_tree_find(o, at);

	return json_object_is_type(map, json_type_object) && json_object_object_get(map, key);
}

static bool fits(struct json_object *item, enum where where)
{
	return (where == POD && (has(item, LABELS, PODSET) || has(item, ANNOTATIONS, WORKLOAD))) ||
	       where == COMPONENT || (where == VOLUME && has(item, "", "volumeClaim"));
}

static void remove_in(struct json_object *item, enum where where)
{
	if (fits(item, where))
		remove_all(item, where);
}

/* In the list at the path LIST, remove the fields of WHERE from the items that fit WHERE. */
static void remove_in_list(struct json_object *o, const char *list, enum where where)
{
	struct json_object *items = spec_tree_find(o, list);
	size_t n =
		json_object_is_type(items, json_type_array) ? json_object_array_length(items) : 0;

	for (size_t i = 0; i < n; i++)
		remove_in(json_object_array_get_idx(items, i), where);
}

static void remove_notes(struct json_object *pod, const void *data)
{
	remove_in(pod, POD);
}

/* Undo Kueue's RunWithPodSetsInfo (jobs/sparkapplication/sparkapplication_controller.go). */
static void remove_notes_of_spark(struct json_object *part)
{
	if (!has(part, SPARK_LABELS, PODSET) && !has(part, SPARK_ANNOTATIONS, WORKLOAD))
		return;
	for (size_t i = 0; i < array_size(table); i++)
		if (table[i].spark)
			remove_keys(part, &table[i], table[i].spark);
}

void spec_added_remove(struct json_object *object, const struct spec_kind *kind)
{
	if (has(object, "metadata", "uid")) {
		remove_all(object, LIVE);
		for (const struct spec_member *m = kind->added; m && m->at; m++)
			remove_keys(object, &(struct added){.keys = {m->key}, .value = m->value},
				    m->at);
		remove_in_list(object, "spec.components", COMPONENT);
		remove_in_list(object, "spec.volumes", VOLUME);
		if (has(object, "spec.selector.matchLabels", BATCH "controller-uid"))
			remove_all(object, SELECTED);
	}
	remove_all(object, ANY);
	spec_each_template(kind, object, remove_notes, NULL);
	remove_notes_of_spark(spec_tree_find(object, "spec.driver"));
	remove_notes_of_spark(spec_tree_find(object, "spec.executor"));
}
