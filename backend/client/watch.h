/* SPDX-License-Identifier: MIT */
/*
 * Keeps the owner's cache of one resource of one namespace up to date: a list, page by page, then
 * watches from the version (resourceVersion) of the list. If the server no longer has the version
 * (410), the watch relists. I/O thread only.
 */
#pragma once

#include "backend/client/http.h"

struct tally;
struct watch;

/* Plain data. watch_new copies the config. */
struct watch_config {
	struct loop *loop;
	struct http *http;
	const char *path;      /* of the collection: "/api/v1/namespaces/NS/pods"; copied */
	const char *selector;  /* label selector, not escaped; or ""; copied */
	const char *field;     /* field selector, not escaped; or NULL; copied */
	const char *resource;  /* for messages: "pods", "jobs.batch.volcano.sh"; copied */
	const char *namespace; /* for messages; copied */
	/*
	 * The number of objects in the first page. For later pages, it depends on the objects'
	 * size.
	 */
	unsigned page;
	bool metadata;		    /* request only the metadata of objects */
	const char *const *ignored; /* as in spec_split_new */
	/* The owner does not require the resource. If it is forbidden, retry every 5 minutes. */
	bool optional;
	/* For people: how to reduce the number of objects. Static; may be NULL. */
	const char *fewer;
	/* Counts the ends of watches by resource and reason; may be NULL. */
	struct tally *ends;

	/* A list begins. Objects that object() does not report before listed() were deleted. */
	void (*begin)(void *data);
	/*
	 * An object was added, changed or, if GONE, deleted. JSON is its last version,
	 * NUL-terminated and borrowed; the owner may have this version already. WRONG is as in
	 * spec_split_fn.
	 */
	void (*object)(void *data, const char *json, size_t len, bool gone, int wrong);
	/* The list is complete. */
	void (*listed)(void *data);
	/*
	 * The state of the cache has changed. If ERR is 0, the cache is confirmed, that is, kxfs
	 * assumes that it is current. Otherwise it is not confirmed, and ERR and TEXT are the
	 * reason: the server is unreachable, or refuses requests. -EOPNOTSUPP: the server does not
	 * have the resource. -EAGAIN: watches keep breaking.
	 *
	 * These errors have a special meaning for an optional resource. -EACCES: the resource is
	 * forbidden. -EKEYREJECTED: kxfs has no credential, or the server rejects it (401). This
	 * shows nothing about the user's rights. -EAGAIN: watches keep breaking, or the server
	 * forbids a watch that it had accepted before, perhaps because it has just started.
	 */
	void (*state)(void *data, int err, const char *text);
	void *data;
};

/* Pause before retrying a forbidden optional resource, or a list that is too large. */
#define WATCH_FORBIDDEN_MS 300000

struct watch *watch_new(const struct watch_config *config);
/*
 * Free W without further callbacks. NULL is allowed. Of the callbacks, only state() may call this.
 */
void watch_free(struct watch *w);

/*
 * Call this when the server may be reachable again, or when a user requests something. If W waits
 * after a failed request, retry now, but not within 2 s after the last early retry. Don't retry
 * early if the server has refused the request, or has asked for a pause.
 */
void watch_retry_now(struct watch *w);

/*
 * Call this when a reply to another request had an object of VERSION. If the server later has a
 * lower version, W relists, because a restored etcd may lack this object.
 */
void watch_replied(struct watch *w, const char *version);

/*
 * Call this when a reply to another request had an object that W has not reported, although W has
 * passed its version. Request the server's version, at most once in 10 s, and relist if it is lower
 * than W's version, because the server was restored from a backup.
 */
void watch_doubt(struct watch *w);

const char *watch_verb(const struct watch *w);

/*
 * Return the version up to which the owner knows all changes, borrowed; "" while W relists. W may
 * be NULL.
 */
const char *watch_version(const struct watch *w);
