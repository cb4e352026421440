/* SPDX-License-Identifier: MIT */
/*
 * Keeps the owner's cache of one resource of one namespace equal to the server's: sends LIST page by page, then
 * WATCH from the version of the list. The watch is restarted after any end. If the server no longer has its version
 * (410), it relists. An object that is not in the new list was deleted. I/O thread only.
 */
#pragma once

#include "backend/client/http.h"

struct spec_pick;
struct tally;
struct watch;

/* Plain data: the owner of a watch fills it in, and watch_new copies it. */
struct watch_config {
	struct loop *loop;
	struct http *http;
	const char *path;      /* path of the collection: "/api/v1/namespaces/NS/pods"; copied */
	const char *selector;  /* label selector, not escaped; "": none; copied */
	const char *field;     /* field selector, not escaped; or NULL; copied */
	const char *resource;  /* for messages: "pods", "jobs.batch.volcano.sh"; copied */
	const char *namespace; /* for messages; copied */
	/* size of the first page; later pages are adapted to the number of bytes received */
	unsigned page;
	bool metadata;		      /* request only the metadata of the objects */
	const struct spec_pick *pick; /* as in spec_split_new */
	/* The owner does not require the resource. If it is forbidden, the watch retries every 5 minutes. */
	bool optional;
	/* For people: how a user can reduce the number of objects. Static; may be NULL. */
	const char *fewer;
	/* Counts the ends of watches by resource and reason; may be NULL. */
	struct tally *ends;

	/* A list begins: objects that are not reported before listed() were deleted. */
	void (*begin)(void *data);
	/*
	 * An object was added or changed; or (GONE) deleted, and JSON is its last version. JSON is NUL-terminated
	 * and borrowed. The owner may already have this version. WRONG is as in spec_split_fn.
	 */
	void (*object)(void *data, const char *json, size_t len, bool gone, int wrong);
	/* The list is complete. */
	void (*listed)(void *data);
	/*
	 * The list is older than the version that W had: the server was restored from a backup. Its other watches
	 * may never get events again, so the owner calls watch_set_back for them. May be NULL.
	 */
	void (*set_back)(void *data);
	/*
	 * Return true if a reply to another request has reported a deletion that OBJECT has not. If the server was
	 * restored from a backup meanwhile, OBJECT will never report it, so W relists after the server was
	 * unreachable. May be NULL.
	 */
	bool (*unreported)(void *data);
	/*
	 * ERR 0: the cache is confirmed from now on. Otherwise it is no longer confirmed, since the server is
	 * unreachable or refuses (ERR and TEXT are the reason); this is called again when that changes.
	 * -EOPNOTSUPP: the server does not have the resource. -EAGAIN: the server is reachable, but watches keep
	 * breaking. For an optional resource -EACCES: it is forbidden; -EKEYREJECTED: the server rejects the user's
	 * identity, whatever rights it has; -EAGAIN also: the server refuses a watch that it had accepted before,
	 * perhaps because it has just started.
	 */
	void (*state)(void *data, int err, const char *text);
	void *data;
};

/* Pause before retrying an optional resource that is forbidden. */
#define WATCH_FORBIDDEN_MS 300000

/* Create and start a watch. */
struct watch *watch_new(const struct watch_config *config);
/* Free W; its callbacks are not called any more. NULL is allowed. Of the callbacks, only state() may call this. */
void watch_free(struct watch *w);

/*
 * Retry early, because the server may be reachable again or a user is interested. If W waits after a failed
 * request, retry now, but at the earliest 2 s after the last early retry. Do not retry early if the server has
 * refused, or has asked for a pause.
 */
void watch_retry_now(struct watch *w);

/* Relist; called by object() if the owner has skipped an object that it now needs. */
void watch_list_anew(struct watch *w);

/*
 * The server may have been restored from a backup: request its version, and relist if it is older than W's. Do
 * nothing if W did this a moment ago.
 */
void watch_doubt(struct watch *w);

/*
 * Relist, unless W did so a moment ago: another watch has found that the server was restored from a backup. W can't
 * detect that by the version if the backup has a later version than W knows.
 */
void watch_set_back(struct watch *w);

/*
 * Note that a reply to another request contained an object of VERSION. If the server turns out to have an older
 * version, relist, since no watch reports changes of that object.
 */
void watch_replied(struct watch *w, const char *version);

/* Return the verb of W's last request: "list" or "watch". */
const char *watch_verb(const struct watch *w);

/*
 * Return the version up to which the owner knows everything; "" while W relists. Borrowed; NULL is
 * allowed.
 */
const char *watch_version(const struct watch *w);
