/* SPDX-License-Identifier: MIT */
/*
 * One object of a cluster, as a server sends it: its text as YAML, and the data that kxfs wrote
 * into it, which other clients may have changed. Also one event of a watch, which contains an
 * object.
 *
 * The folder parses bytes from servers and from configuration files. split.h cuts the body of a
 * list or a watch into texts of objects or events, object.h reads one of them, refusal.h maps a
 * failed reply to an errno and a text for people. kubeconfig.h makes a connection from kubeconfig
 * files (kubeconfig.c stores and searches them, connection.c reads the entries) and handles the
 * output of credential plugins (exec_credential.c). All functions are pure; a spec_split,
 * spec_kubeconfig or spec_connection belongs to one thread and owns everything that it points to.
 */
#pragma once

#include "spec/base/base.h"

/*
 * True if the submission SUBMISSION (a UUID) created the object, according to its annotation
 * kxfs/submission.
 */
bool spec_object_is_submission(const char *json, size_t len, const char *submission);

/* The object expected in a reply; NULL: any. */
struct spec_object_wanted {
	const char *kind;
	const char *name;
	const char *uid;
	/*
	 * The submission that created it. An object without this annotation matches too, since a
	 * webhook may have removed annotations.
	 */
	const char *submission;
};

/* True if the text is one object of a cluster, and the expected one. A Status is not an object. */
bool spec_object_is(const char *json, size_t len, const struct spec_object_wanted *w);
/* True if the text is a Status that reports success. */
bool spec_object_is_success(const char *json, size_t len);
/* True if A and B, versions of an object or a list, are numbers and A is at most B. */
bool spec_version_is_up_to(const char *a, const char *b);
/*
 * Return the member KEY, "name" or "uid", of the object's metadata, as written and at most 254
 * bytes; malloc'ed. "" if it has none.
 */
char *spec_object_name(const char *json, size_t len, const char *key);

/* The run of one container, according to a list of pods. */
struct spec_listed_run {
	char *uid;    /* uid of the first pod of the list, malloc'ed; "" if the list is empty */
	int restarts; /* runs of the container before its newest; -1 if its status has none */
	bool between; /* the newest run has ended, and the container waits for its restart */
};

/*
 * Find the run of CONTAINER, which may also be an init container. Return 0, or -EINVAL if the text
 * is not a list.
 */
int spec_object_listed_run(const char *json, size_t len, const char *container,
			   struct spec_listed_run *ret);

/*
 * Copy the AppDef in the annotation kxfs/appdef of the object to *RET, malloc'ed and
 * NUL-terminated. Return 0; -ENOENT if the object has no such annotation; -EINVAL if the text is
 * not an object.
 */
int spec_object_appdef(const char *json, size_t len, char **ret, size_t *ret_len);

/*
 * Write the object without its managedFields as YAML, for manifest.yaml, to *RET, malloc'ed and
 * NUL-terminated. Return 0, or -EINVAL if the text is not an object.
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
	char *resource_version; /* of the object; "" only in an error */
	/* The code of an error (410, 504, ...), or 0 if it has none; 0 in other events. */
	int code;
	char *object; /* JSON text of the object (in an error: of the Status); NUL-terminated */
	size_t len;
};

/*
 * Parse JSON, an event of a watch that a splitter has delivered (spec/api/split.h). The event's
 * object is copied but not parsed; only its brackets are known to match. Return 0, or -EINVAL if
 * the event is malformed or has an unknown type.
 */
int spec_event_parse(const char *json, size_t len, struct spec_event *ret);
void spec_event_clear(struct spec_event *e);
