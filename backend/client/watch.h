/* SPDX-License-Identifier: MIT */
/*
 * Keeps the owner's cache of one resource of one namespace up to date. A watch requests a list,
 * page by page, and then watches from the version of the list. When the request for events ends,
 * the watch sends a new one. If the server no longer has the version (410), the watch relists.
 * Objects that are not in the new list were deleted. I/O thread only.
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
	/* The number of objects in the first page. Later numbers depend on the objects' size. */
	unsigned page;
	bool metadata;		      /* true to request only the metadata of the objects */
	const struct spec_pick *pick; /* as in spec_split_new */
	/*
	 * True if the owner does not require the resource. If the resource is forbidden, the watch
	 * retries every 5 minutes.
	 */
	bool optional;
	/* For people: how a user can reduce the number of objects. Static; may be NULL. */
	const char *fewer;
	/* Counts the ends of watches by resource and reason; may be NULL. */
	struct tally *ends;

	/*
	 * Called when a list begins. If the owner has an object that object() does not report
	 * before listed() is called, the object was deleted.
	 */
	void (*begin)(void *data);
	/*
	 * Called when an object was added or has changed. If GONE, the object was deleted, and JSON
	 * is its last version. JSON is NUL-terminated and borrowed. The owner may already have this
	 * version. WRONG is as in spec_split_fn.
	 */
	void (*object)(void *data, const char *json, size_t len, bool gone, int wrong);
	/* Called when the list is complete. */
	void (*listed)(void *data);
	/*
	 * Called when the list is older than the version that this watch had before, because the
	 * server was restored from a backup. Other watches of the server may never get events
	 * again, so the owner calls watch_set_back for them. May be NULL.
	 */
	void (*set_back)(void *data);
	/*
	 * Called when the state of the cache changes. If ERR is 0, the cache is confirmed from now
	 * on. Otherwise the cache is no longer confirmed, because the server is unreachable or
	 * refuses requests; ERR and TEXT are the reason.
	 *
	 * -EOPNOTSUPP: the server does not have the resource. -EAGAIN: the server is reachable, but
	 * watches keep breaking.
	 *
	 * Only for an optional resource: -EACCES: the resource is forbidden. -EKEYREJECTED: kxfs
	 * has no credential, or the server rejects the user's identity (401), whatever rights the
	 * user has. -EAGAIN can also mean that the server refuses a watch that it had accepted
	 * before. Perhaps the server has just started.
	 */
	void (*state)(void *data, int err, const char *text);
	void *data;
};

/* Pause in ms before a watch retries a forbidden optional resource, or a list that is too large. */
#define WATCH_FORBIDDEN_MS 300000

/* Create and start a watch. */
struct watch *watch_new(const struct watch_config *config);
/*
 * Free W; its callbacks are not called any more. NULL is allowed. Of the callbacks, only state()
 * may call this.
 */
void watch_free(struct watch *w);

/*
 * Call this when the server may be reachable again, or when a user is interested. If W waits after
 * a failed request, retry now, but not within 2 s after the last early retry. If the server has
 * refused the request, or has asked for a pause, do not retry early.
 */
void watch_retry_now(struct watch *w);

/*
 * Check whether the server was restored from a backup: request the server's version, and relist if
 * it is older than W's version. Do nothing if W has made this check a moment ago.
 */
void watch_doubt(struct watch *w);

/*
 * Make W relist, because another watch has found that the server was restored from a backup. W
 * can't always detect this itself, because the version of the backup may be later than the version
 * that W knows. If W has relisted a moment ago, only check the version again.
 */
void watch_set_back(struct watch *w);

/*
 * Record that a reply to another request contained an object of VERSION. If the server later has an
 * older version, W relists, because no watch would report changes of that object.
 */
void watch_replied(struct watch *w, const char *version);

/* Return the verb of W's last request: "list" or "watch". */
const char *watch_verb(const struct watch *w);

/*
 * Return the version up to which the owner knows all changes. Return "" while W relists. The string
 * is borrowed. W may be NULL.
 */
const char *watch_version(const struct watch *w);
