/* SPDX-License-Identifier: MIT */
/*
 * One event of a watch: its type, and the object's text.
 *
 * The folder parses bytes from servers and from configuration files. split.h cuts the body of a
 * list or a watch into texts of objects, event.h parses one event, object.h reads back what kxfs
 * wrote into an object, refusal.h maps a failed reply to an errno and a text for people.
 * kubeconfig.h makes a connection from kubeconfig files (kubeconfig.c stores and searches them,
 * connection.c reads the entries) and talks to credential plugins (exec_credential.c). All
 * functions are pure; a spec_split, spec_kubeconfig or spec_connection belongs to one thread and
 * owns everything that it points to.
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
	char *resource_version; /* of the object; "" only in an error */
	/* Of an error: 410, 504, ..., or 0 without a code; 0 in other events. */
	int code;
	char *object; /* JSON text of the object (in an error: of the Status); NUL-terminated */
	size_t len;
};

/*
 * Parse one event of a watch; JSON is one from a splitter (spec/api/split.h). Its object is copied,
 * not parsed: it is a "{...}" whose brackets match. Return 0, or -EINVAL, also for an unknown type.
 */
int spec_event_parse(const char *json, size_t len, struct spec_event *ret);
void spec_event_clear(struct spec_event *e);
