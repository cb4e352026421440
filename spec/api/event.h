/* SPDX-License-Identifier: MIT */
/*
 * One event of a watch: what has happened to an object, and the object's text.
 *
 * The folder: what a server and its clients' configuration say, as bytes. split.h cuts the body of a list or a watch
 * into texts of objects, event.h takes one event apart, object.h reads back what kxfs wrote into an object, refusal.h
 * makes an errno and a text for people of an answer that is no success. kubeconfig.h makes a connection of kubeconfig
 * files (kubeconfig.c holds and searches them, connection.c reads the entries) and speaks with credential plugins
 * (exec_credential.c). All functions are pure; a spec_split, spec_kubeconfig or spec_connection belongs to one thread
 * and owns what it points to.
 */
#pragma once

#include "spec/base/base.h"

enum spec_event_type {
	SPEC_EVENT_ADDED,
	SPEC_EVENT_MODIFIED,
	SPEC_EVENT_DELETED,
	SPEC_EVENT_BOOKMARK,
	SPEC_EVENT_ERROR,
};

struct spec_event {
	enum spec_event_type type;
	char *resource_version; /* of the object; "" in an error, never in another event */
	/* Of an error: 410, 504, ..., or 0 if it has none; in other events 0. */
	int code;
	char *object; /* JSON text of the object (in an error: of the Status); NUL-terminated */
	size_t len;
};

/*
 * Parse one event of a watch; JSON is one from a splitter (spec/api/split.h). Its object is copied, not parsed: it is a
 * "{...}" whose brackets match. 0; -EINVAL, also for an unknown type.
 */
int spec_event_parse(const char *json, size_t len, struct spec_event *ret);
void spec_event_clear(struct spec_event *e);
