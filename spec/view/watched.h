/* SPDX-License-Identifier: MIT */
/*
 * Views of the other objects that kxfs watches if the user has the right: pod groups, events and
 * queues. view.h has the conventions. Events and queues do not change after parsing and are
 * reference counted, so any thread may hold them.
 */
#pragma once

#include "spec/base/amount.h"
#include "spec/view/view.h"

struct spec_local_queue; /* kueue.h */

/* Reasons of events that `why` uses. */
#define SPEC_EVENT_UNSCHEDULABLE "Unschedulable"
#define SPEC_EVENT_KILLING	 "Killing"   /* the kubelet ends a container */
#define SPEC_EVENT_UNHEALTHY	 "Unhealthy" /* a probe has failed */

/*
 * An object between a job and its pods: the job owns it, directly or not, and it owns pods. Plain
 * data.
 */
struct spec_part_view {
	struct spec_meta meta; /* owner_uid: uid of the job, or of another part */
};

int spec_part_view_parse(const char *json, size_t len, struct spec_part_view **ret);
void spec_part_view_free(struct spec_part_view *v); /* NULL is allowed */

/* A pod group. Plain data; backend/kube sets SEEN. */
struct spec_group_view {
	struct spec_meta meta;	   /* owner_uid: uid of the job */
	char *phase;		   /* "" if no scheduler has processed it */
	unsigned minimum;	   /* pods that must start together */
	struct spec_amounts needs; /* the resources that MINIMUM pods request together */
	/* true if the scheduler reports too little capacity for the group's pods */
	bool is_short;
	/*
	 * When kxfs first saw the group. If the group existed before the mount: when it was
	 * created.
	 */
	int64_t seen;
};

struct spec_event_view {
	unsigned refs; /* atomic; only spec_event_view_ref and _unref touch it */
	char *about;   /* uid of the object that the event is about */
	char *kind;    /* kind of that object */
	char *name;
	char *type; /* Normal, Warning */
	char *reason;
	char *message;
	unsigned count;
	int64_t last; /* when it last happened */
};

/* A queue. Plain data; backend/kube sets CHANGED before other threads get the view. */
struct spec_queue_view {
	unsigned refs; /* atomic, as above */
	struct spec_meta meta;
	char *state;
	unsigned weight;
	struct spec_amounts capability, allocated, reserved;
	/* The data of a LocalQueue of Kueue (kueue.h); NULL if this is a queue of Volcano. */
	struct spec_local_queue *local;
	int64_t changed; /* when kxfs first saw the queue's current contents */
};

/* Parse a pod group. Return 0, or -EINVAL if JSON is not an object with a valid name and uid. */
int spec_group_view_parse(const char *json, size_t len, struct spec_group_view **ret);
void spec_group_view_free(struct spec_group_view *v); /* NULL is allowed */

int spec_event_view_parse(const char *json, size_t len, struct spec_event_view **ret);
struct spec_event_view *spec_event_view_ref(struct spec_event_view *v);
void spec_event_view_unref(struct spec_event_view *v); /* NULL is allowed */
/* True if A and B are about the same object, and have the same reason and message. */
bool spec_event_view_same(const struct spec_event_view *a, const struct spec_event_view *b);
/* True if the text of `why` may depend on V. */
bool spec_event_view_explains(const struct spec_event_view *v);
/* True if V reports that a controller could not create pods. */
bool spec_event_view_is_refusal(const struct spec_event_view *v);
/*
 * Return -1 if V reports that a volume of a pod can't be mounted, 1 if V shows that the volumes are
 * mounted, otherwise 0.
 */
int spec_event_view_mounts(const struct spec_event_view *v);
/*
 * True if V last happened before BEGAN (ns, by the server's clock), when the job's attempt began.
 */
bool spec_event_view_is_old(const struct spec_event_view *v, int64_t began);
/* True if V shows no problem, because healthy jobs have such events, too. */
bool spec_event_view_is_noise(const struct spec_event_view *v);
/*
 * Return the text of `events`: a line for each event of V except noise, oldest first. Tabs separate
 * the fields: TIME, KIND/NAME, TYPE, REASON, COUNT, MESSAGE. Tabs, newlines and backslashes in a
 * field are escaped. *RET_CHANGED is the time of the last event, or 0. Sort V.
 */
void spec_event_view_text(struct spec_event_view **v, size_t n, char **ret, size_t *ret_len,
			  int64_t *ret_changed);

/* Create the view of a queue of which only the name is known. */
struct spec_queue_view *spec_queue_view_new(const char *name);
int spec_queue_view_parse(const char *json, size_t len, struct spec_queue_view **ret);
struct spec_queue_view *spec_queue_view_ref(struct spec_queue_view *v);
void spec_queue_view_unref(struct spec_queue_view *v); /* NULL is allowed */
define_cleanup(spec_queue_view_unrefp, struct spec_queue_view *, spec_queue_view_unref)
/* True if A and B are the same queue with the same values. */
bool spec_queue_view_same(const struct spec_queue_view *a, const struct spec_queue_view *b);
/*
 * Return the text of queues/NAME/status, as YAML. PENDING and RUNNING count the jobs of this
 * namespace. CLUSTER is the ClusterQueue of a LocalQueue; NULL if the user may not read it, or if V
 * is not a LocalQueue.
 */
void spec_queue_view_text(const struct spec_queue_view *v,
			  const struct spec_cluster_queue_view *cluster, size_t pending,
			  size_t running, char **ret, size_t *ret_len);
