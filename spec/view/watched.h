/* SPDX-License-Identifier: MIT */
/*
 * Views of pod groups, events and queues, which kxfs watches if the user has the right. view.h has
 * the conventions. Events and queues never change and are reference counted, so any thread may hold
 * them.
 */
#pragma once

#include "spec/base/amount.h"
#include "spec/view/view.h"

struct spec_kueue_queue; /* see kueue.h */

#define SPEC_EVENT_UNSCHEDULABLE "Unschedulable"
#define SPEC_EVENT_KILLING	 "Killing"   /* the kubelet ends a container */
#define SPEC_EVENT_UNHEALTHY	 "Unhealthy" /* a probe has failed */

/* A pod group. Plain data; backend/kube sets SEEN. */
struct spec_group_view {
	struct spec_meta meta;	   /* owner_uid: uid of the job */
	char *phase;		   /* "" if no scheduler has processed it */
	unsigned minimum;	   /* members that must start together */
	struct spec_amounts needs; /* resources for MINIMUM pods */
	bool is_short;		   /* the scheduler lacks capacity for the group */
	/* When kxfs first saw the group, or its creation if it existed before the mount. */
	int64_t seen;
};

struct spec_event_view {
	unsigned refs; /* atomic; only spec_event_view_ref and _unref touch it */
	char *about;   /* uid of the object concerned */
	char *kind;    /* of that object */
	char *name;
	char *type; /* Normal, Warning */
	char *reason;
	char *message;
	unsigned count;
	int64_t last; /* when it last occurred */
};

/* A queue. Plain data; backend/kube sets CHANGED before sharing it. */
struct spec_queue_view {
	unsigned refs; /* atomic, as above */
	struct spec_meta meta;
	char *state;
	unsigned weight;
	struct spec_amounts capability, allocated, reserved;
	/* A LocalQueue or ClusterQueue of Kueue (kueue.h); NULL for a queue of Volcano. */
	struct spec_kueue_queue *kueue;
	int64_t changed; /* when kxfs first saw this version */
};

/* Return 0, or -EINVAL if JSON is not an object with a valid name and uid. */
int spec_group_view_parse(const char *json, size_t len, struct spec_group_view **ret);
void spec_group_view_free(struct spec_group_view *v); /* NULL is allowed */

int spec_event_view_parse(const char *json, size_t len, struct spec_event_view **ret);
struct spec_event_view *spec_event_view_ref(struct spec_event_view *v);
void spec_event_view_unref(struct spec_event_view *v); /* NULL is allowed */
/* True if object, reason and message are the same. */
bool spec_event_view_same(const struct spec_event_view *a, const struct spec_event_view *b);
/* True if the text of `why` may depend on V. */
bool spec_event_view_explains(const struct spec_event_view *v);
/* True if V reports that a controller could not create pods. */
bool spec_event_view_is_refusal(const struct spec_event_view *v);
/*
 * Return -1 if V reports that a pod's volume can't be mounted, 1 if V shows that volumes are
 * mounted, otherwise 0.
 */
int spec_event_view_mounts(const struct spec_event_view *v);
/* True if V last occurred before BEGAN (ns, the server's clock). */
bool spec_event_view_is_old(const struct spec_event_view *v, int64_t began);
/* True if healthy jobs have events like V, too. */
bool spec_event_view_is_noise(const struct spec_event_view *v);
/*
 * Return the text of the file `events`: one line for each event except noise, oldest first. Its
 * fields, escaped and separated by tabs: TIME, KIND/NAME, TYPE, REASON, COUNT, MESSAGE.
 * *RET_CHANGED is the time of the last event, or 0. V becomes sorted.
 */
void spec_event_view_text(struct spec_event_view **v, size_t n, char **ret, size_t *ret_len,
			  int64_t *ret_changed);

/* Create the view of a queue with an unknown state. */
struct spec_queue_view *spec_queue_view_new(const char *name);
int spec_queue_view_parse(const char *json, size_t len, struct spec_queue_view **ret);
struct spec_queue_view *spec_queue_view_ref(struct spec_queue_view *v);
void spec_queue_view_unref(struct spec_queue_view *v); /* NULL is allowed */
define_cleanup(spec_queue_view_unrefp, struct spec_queue_view *, spec_queue_view_unref)
/*
 * Return queues/NAME/status as YAML. PENDING and RUNNING count jobs of this namespace. CLUSTER is
 * the ClusterQueue of a LocalQueue, or NULL if unknown.
 */
void spec_queue_view_text(const struct spec_queue_view *v, const struct spec_queue_view *cluster,
			  size_t pending, size_t running, char **ret, size_t *ret_len);
/* True if A and B are the same queue, with the same text. */
bool spec_queue_view_same(const struct spec_queue_view *a, const struct spec_queue_view *b);
