/* SPDX-License-Identifier: MIT */
/*
 * Views of objects that kxfs watches besides jobs and pods, if the user may: the pod group of a
 * job, events, and queues. The conventions of view.h apply. Events and queues do not change once
 * read, and are reference counted: any thread may hold them.
 */
#pragma once

#include "spec/base/amount.h"
#include "spec/view/view.h"

struct spec_local_queue; /* kueue.h */

/* Reasons of events that `why` uses. */
#define SPEC_EVENT_UNSCHEDULABLE "Unschedulable"
#define SPEC_EVENT_FAILED_CREATE "FailedCreate"
#define SPEC_EVENT_FAILED_MOUNT	 "FailedMount"
#define SPEC_EVENT_FAILED_ATTACH "FailedAttachVolume"
#define SPEC_EVENT_KILLING	 "Killing"   /* a container, by the kubelet */
#define SPEC_EVENT_UNHEALTHY	 "Unhealthy" /* a probe has failed */

/* An object between pods and job. Plain data. */
struct spec_part_view {
	struct spec_meta meta; /* owner_uid: uid of the job, or of another part */
};

int spec_part_view_parse(const char *json, size_t len, struct spec_part_view **ret);
void spec_part_view_free(struct spec_part_view *v); /* NULL is allowed */

/* A pod group. Plain data; the owner of the view sets SEEN. */
struct spec_group_view {
	struct spec_meta meta;	   /* owner_uid: uid of the job */
	char *phase;		   /* "" if no scheduler has processed it */
	unsigned minimum;	   /* pods that must start together */
	struct spec_amounts needs; /* amounts that MINIMUM pods need together */
	bool is_short;		   /* the scheduler reports insufficient capacity for these pods */
	int64_t seen;		   /* when it was first seen, or made */
};

struct spec_event_view {
	unsigned refs; /* atomic; only spec_event_view_ref and _unref touch it */
	char *about;   /* uid of the object that it is about */
	char *kind;    /* kind of that object */
	char *name;
	char *type; /* Normal, Warning */
	char *reason;
	char *message;
	unsigned count;
	int64_t last; /* when it last happened */
};

/* A queue. Plain data; the owner of the view sets CHANGED before it is shared. */
struct spec_queue_view {
	unsigned refs; /* atomic, as above */
	struct spec_meta meta;
	char *state;
	unsigned weight;
	struct spec_amounts capability, allocated, reserved;
	struct spec_local_queue *local; /* kueue.h: set for a LocalQueue of Kueue; NULL for
					 * Volcano's */
	int64_t changed;		/* when its present contents were first seen */
};

/* Parse a group. Return 0, or -EINVAL if it is not such an object. */
int spec_group_view_parse(const char *json, size_t len, struct spec_group_view **ret);
void spec_group_view_free(struct spec_group_view *v); /* NULL is allowed */

int spec_event_view_parse(const char *json, size_t len, struct spec_event_view **ret);
struct spec_event_view *spec_event_view_ref(struct spec_event_view *v);
void spec_event_view_unref(struct spec_event_view *v); /* NULL is allowed */
/* True if A and B are the same event, apart from the time. */
bool spec_event_view_same(const struct spec_event_view *a, const struct spec_event_view *b);
/* True if V may change `why`. */
bool spec_event_view_explains(const struct spec_event_view *v);
/*
 * True if V is about an attempt of the job before the one that began at BEGAN (ns, of the server's
 * clock).
 */
bool spec_event_view_is_old(const struct spec_event_view *v, int64_t began);
/* True if healthy jobs have events like V as well, so that V is not a sign of trouble. */
bool spec_event_view_is_noise(const struct spec_event_view *v);
/*
 * Return the text of `events`: a line for each of V, oldest first: TIME, KIND/NAME, TYPE, REASON,
 * COUNT, MESSAGE, tab-separated; tabs, newlines and backslashes in a field are escaped; noise is
 * omitted. *RET_CHANGED is the time of the last event, or 0. The function sorts V.
 */
void spec_event_view_text(struct spec_event_view **v, size_t n, char **ret, size_t *ret_len,
			  int64_t *ret_changed);

/* Make a queue with only a name, since nothing else is known. */
struct spec_queue_view *spec_queue_view_new(const char *name);
int spec_queue_view_parse(const char *json, size_t len, struct spec_queue_view **ret);
struct spec_queue_view *spec_queue_view_ref(struct spec_queue_view *v);
void spec_queue_view_unref(struct spec_queue_view *v); /* NULL is allowed */
define_cleanup(spec_queue_view_unrefp, struct spec_queue_view *, spec_queue_view_unref)
/* True if A and B are the same queue with the same values. */
bool spec_queue_view_same(const struct spec_queue_view *a, const struct spec_queue_view *b);
/*
 * Return the text of queues/NAME/status, YAML, with the numbers of this namespace's jobs. CLUSTER:
 * the ClusterQueue of a LocalQueue; NULL if the user may not see it, or V is not a LocalQueue.
 */
void spec_queue_view_text(const struct spec_queue_view *v,
			  const struct spec_cluster_queue_view *cluster, size_t pending,
			  size_t running, char **ret, size_t *ret_len);
