/* SPDX-License-Identifier: MIT */
/*
 * Reads one object of a cluster from the JSON text that a server sends. Returns the object as YAML.
 * Also returns the data that kxfs wrote into the object; other clients may have changed this data.
 * Also parses an event of a watch, which contains an object.
 *
 * The folder parses bytes from servers and from configuration files. split.h splits the body of a
 * list or a watch into the texts of its objects or events. object.h reads one such text. refusal.h
 * finds the errno of a failed reply and explains the reply to people. review.h makes requests that
 * ask what the user may do. kubeconfig.h builds a spec_connection from kubeconfig files, and parses
 * the output of credential plugins. Its code is in three files: kubeconfig.c stores and searches
 * the files, connection.c reads their entries, and exec_credential.c parses a plugin's output. All
 * functions are pure, so they open neither files nor connections. A spec_split, spec_kubeconfig or
 * spec_connection belongs to one thread and owns everything that it points to.
 */
#pragma once

#include "spec/base/base.h"

/*
 * True if the object was created by the submission whose UUID is SUBMISSION. The object's
 * annotation kxfs/submission has the UUID of its submission.
 */
bool spec_object_is_submission(const char *json, size_t len, const char *submission);

/* The object that is expected in a reply. A member that is NULL matches any value. */
struct spec_object_wanted {
	const char *kind;
	const char *name;
	const char *uid;
	/*
	 * The UUID of the submission that created the object. An object without the annotation
	 * kxfs/submission also matches, since a webhook may have removed that annotation.
	 */
	const char *submission;
};

/* True if the text is one object that matches W. A Status never matches. */
bool spec_object_is(const char *json, size_t len, const struct spec_object_wanted *w);
/* True if the text is a Status that reports success. */
bool spec_object_is_success(const char *json, size_t len);
/* Compare two resourceVersions. True if A and B are decimal numbers and A is at most B. */
bool spec_version_is_up_to(const char *a, const char *b);
/*
 * Return the member KEY ("name" or "uid") of the object's metadata, malloc'ed. Its JSON escapes are
 * not decoded. Return "" if there is no such member, or if it has more than 254 bytes.
 */
char *spec_object_name(const char *json, size_t len, const char *key);

/* The newest run of one container. It is read from a list of pods that has at most one pod. */
struct spec_listed_run {
	char *uid;    /* uid of the pod, malloc'ed; "" if the list is empty */
	int restarts; /* restartCount of the container; -1 if the pod's status has none */
	bool between; /* true if this run has ended and the container waits for its restart */
};

/*
 * Find the newest run of CONTAINER in the first pod of a list. CONTAINER may also be an init
 * container. Return 0, or -EINVAL if the text is not a list.
 */
int spec_object_listed_run(const char *json, size_t len, const char *container,
			   struct spec_listed_run *ret);

/*
 * Set *RET to the AppDef in the object's annotation kxfs/appdef, malloc'ed and NUL-terminated.
 * Return 0; -ENOENT if the object has no such annotation; -EINVAL if the text is not an object.
 */
int spec_object_appdef(const char *json, size_t len, char **ret, size_t *ret_len);

/*
 * Set *RET to the object as YAML, malloc'ed and NUL-terminated, without managedFields. This is the
 * text of manifest.yaml. Return 0, or -EINVAL if the text is not an object.
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
	char *resource_version; /* resourceVersion of the object; "" only in an ERROR event */
	/*
	 * In an ERROR event, the code of its Status (410, 504, ...), or 0 if the Status has none.
	 * In any other event, 0.
	 */
	int code;
	/* JSON text of the object, NUL-terminated. In an ERROR event, the object is a Status. */
	char *object;
	size_t len;
};

/*
 * Parse JSON, one event of a watch. The text is from a splitter (spec/api/split.h). Copy the
 * event's object without parsing it; the splitter has only checked that its brackets match. Return
 * 0, or -EINVAL if the event is malformed or has an unknown type.
 */
int spec_event_parse(const char *json, size_t len, struct spec_event *ret);
void spec_event_clear(struct spec_event *e);
