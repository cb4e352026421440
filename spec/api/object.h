/* SPDX-License-Identifier: MIT */
/*
 * Reads one object of a cluster, or one event of a watch, from a server's JSON. The annotations
 * that kxfs wrote into an object are untrusted, because other clients may have changed them.
 *
 * This folder parses bytes from servers and configuration files. split.h splits the body of a list
 * or a watch into objects or events. refusal.h explains failed replies, review.h asks what the user
 * may do, kubeconfig.h reads kubeconfig files and the output of credential plugins. All functions
 * are pure. A spec_split, spec_kubeconfig or spec_connection belongs to one thread, and owns
 * everything that it points to.
 */
#pragma once

#include "spec/base/base.h"

/* True if the object's annotation kxfs/submission equals SUBMISSION, a UUID. */
bool spec_object_is_submission(const char *json, size_t len, const char *submission);

/* The object that is expected in a reply. NULL matches any value. */
struct spec_object_wanted {
	const char *kind;
	const char *name;
	const char *uid;
	/*
	 * The expected annotation kxfs/submission. An object without this annotation also matches,
	 * because a webhook may have removed it.
	 */
	const char *submission;
};

/* True if the text is an object that matches W. A Status never matches. */
bool spec_object_is(const char *json, size_t len, const struct spec_object_wanted *w);
/* True if the text is a Status that reports success. */
bool spec_object_is_success(const char *json, size_t len);
/* True if the resourceVersions A and B are decimal numbers, and A is at most B. */
bool spec_version_is_up_to(const char *a, const char *b);
/* Return metadata.KEY ("name" or "uid") with JSON escapes, malloc'ed; "" if absent or too long. */
char *spec_object_name(const char *json, size_t len, const char *key);

/*
 * The current or last run of a container, as a list with one pod reports it. If the list is empty,
 * UID is "".
 */
struct spec_listed_run {
	char *uid;    /* of the pod, malloc'ed */
	int restarts; /* number of restarts; -1 if the pod's status does not have it */
	bool between; /* this run has ended, and the kubelet will restart the container */
};

/* CONTAINER may be an init container. Return 0, or -EINVAL if the text is not a list. */
int spec_object_listed_run(const char *json, size_t len, const char *container,
			   struct spec_listed_run *ret);

/*
 * Set *RET to the value of the annotation kxfs/appdef, malloc'ed. Return 0, -ENOENT if the object
 * has no such annotation, or -EINVAL if the text is not an object.
 */
int spec_object_appdef(const char *json, size_t len, char **ret, size_t *ret_len);

/*
 * Set *RET to the object as YAML without managedFields, malloc'ed. Return 0, or -EINVAL if the text
 * is not an object.
 */
int spec_object_yaml(const char *json, size_t len, char **ret, size_t *ret_len);

/* --- events --- */

enum spec_event_type {
	SPEC_EVENT_ADDED,
	SPEC_EVENT_MODIFIED,
	SPEC_EVENT_DELETED,
	SPEC_EVENT_BOOKMARK,
	SPEC_EVENT_ERROR,
};

struct spec_event {
	enum spec_event_type type;
	char *resource_version; /* of the object; "" only in an ERROR event */
	/* the code of the Status in an ERROR event (410, 504, ...); 0 if there is no code */
	int code;
	/* JSON, NUL-terminated; in an ERROR event, a Status */
	char *object;
	size_t len;
};

/*
 * Parse an event from a splitter. Copy its object without parsing it: the splitter has checked only
 * the object's brackets. Return 0, or -EINVAL if the event is malformed or its type unknown.
 */
int spec_event_parse(const char *json, size_t len, struct spec_event *ret);
void spec_event_clear(struct spec_event *e);
