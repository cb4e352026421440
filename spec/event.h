/* SPDX-License-Identifier: MIT */
/*
 * What the API server says, besides objects: one event of a watch, and the Status object of an error,
 * which becomes an errno and a text for people (docs/kxfs-layout.5, errors).
 */
#ifndef KXFS_SPEC_EVENT_H
#define KXFS_SPEC_EVENT_H

#include "spec/base.h"

enum spec_event_type {
	SPEC_EVENT_ADDED,
	SPEC_EVENT_MODIFIED,
	SPEC_EVENT_DELETED,
	SPEC_EVENT_BOOKMARK,
	SPEC_EVENT_ERROR,
};

struct spec_event {
	enum spec_event_type type;
	char *resource_version; /* of the object; "" of an error, never of another */
	int code;		/* of an error: 410, 504, ..., 0: it has none; of others 0 */
	char *object; /* JSON text of the object (of an error: the Status); NUL-terminated */
	size_t len;
};

/*
 * One event of a watch; JSON is one from a splitter (spec/split.h). Its object is copied, not parsed:
 * it is a "{...}" whose brackets match. 0, -EINVAL (an unknown type too), -ENOMEM.
 */
int spec_event_parse(const char *json, size_t len, struct spec_event *ret);
void spec_event_clear(struct spec_event *e);

/* What was asked, for the text of an answer. */
struct spec_asked {
	const char *verb;     /* "create" */
	const char *resource; /* "jobs.batch.volcano.sh" */
	const char *namespace;
	const char *name; /* "" none */
	size_t sent;	  /* bytes of the body that was sent; for EFBIG */
};

/*
 * The errno of a reply that is not 2xx, with its text for people: one to three lines without a newline
 * at the end, no Go dump, no credential; says what to do where that is known. BODY is a Status
 * object, or anything. Never 0: -EINVAL, -EFBIG, -EACCES, -EDQUOT, -ENOENT, -EOPNOTSUPP, -EEXIST,
 * -ESTALE (a precondition; 410), -EAGAIN (nothing was done; may be asked again), -ETIMEDOUT, -EIO.
 * *RET_TEXT is malloc'ed; NULL: no memory.
 */
int spec_reply_errno(int status, const char *body, size_t len, const struct spec_asked *asked,
		     char **ret_text);

#endif
