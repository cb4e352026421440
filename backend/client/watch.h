/* SPDX-License-Identifier: MIT */
/*
 * Keeps the owner's cache of one resource of one namespace equal to the server's: LIST page by
 * page, then WATCH from there. The watch restarts after any end; if that is impossible (410), it
 * relists. An object that is not in the new list was deleted. I/O thread only.
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
	unsigned page;	       /* page size at first; adapted to the number of bytes received */
	bool metadata;	       /* request only the metadata of the objects */
	const struct spec_pick *pick; /* as in spec_split_new */
	/*
	 * The owner can work without the resource if it is forbidden; the watch retries every 5
	 * minutes.
	 */
	bool optional;
	/* how a user can reduce the number of objects; text for people; static; or NULL */
	const char *fewer;
	/* Counts ended watches by resource and reason; may be NULL. */
	struct tally *ends;

	/* A list begins: objects that are not reported before listed() were deleted. */
	void (*begin)(void *data);
	/*
	 * An object was added or changed; or (GONE) deleted, and JSON is its last version. JSON is
	 * NUL-terminated and borrowed. An event may repeat known data. WRONG is as in
	 * spec_split_fn.
	 */
	void (*object)(void *data, const char *json, size_t len, bool gone, int wrong);
	/* The list is complete. */
	void (*listed)(void *data);
	/*
	 * The list is older than the known version: the server was restored from a backup, and its
	 * other watches may get no events for ever (watch_set_back). May be NULL.
	 */
	void (*set_back)(void *data);
	/*
	 * True if a reply to another request has reported a deletion that OBJECT has not. If the
	 * server was set back meanwhile, OBJECT never will. So the watch relists after the server
	 * was unreachable. May be NULL.
	 */
	bool (*unreported)(void *data);
	/*
	 * ERR 0: the cache is confirmed from now on. Otherwise it no longer is, because the server
	 * is unreachable or refuses (ERR and TEXT give the reason); the owner is called again when
	 * that changes. -EOPNOTSUPP: the server does not have the resource. -EAGAIN: it is
	 * reachable, but watches keep breaking. For an optional resource, -EACCES: it is forbidden;
	 * -EKEYREJECTED: the server rejects the user's identity, which does not depend on rights;
	 * -EAGAIN also: the server, which may just have started, refuses a watch that had been
	 * accepted.
	 */
	void (*state)(void *data, int err, const char *text);
	void *data;
};

/* Pause before retrying an optional resource that is forbidden. */
#define WATCH_FORBIDDEN_MS 300000

/* Create and start a watch. */
struct watch *watch_new(const struct watch_config *config);
/*
 * End W; its callbacks are not called any more. NULL is allowed. The only callback that may call
 * this is state().
 */
void watch_free(struct watch *w);

/*
 * Retry early, because the server may be reachable again or a user is interested. A watch that
 * waits after a failed request retries now, or 2 s after it last did so if that is later. It does
 * not if the server refuses, or has asked for a pause.
 */
void watch_retry_now(struct watch *w);

/* Relist; called by object() if the owner has skipped an object that it now needs. */
void watch_list_anew(struct watch *w);

/* Check the server's version, unless W did so a moment ago: the server may have been set back. */
void watch_doubt(struct watch *w);

/*
 * Relist, unless W did so a moment ago: another watch has found that the server was set back. W
 * can't see it by the version, if it was set back to a later one than W knows.
 */
void watch_set_back(struct watch *w);

/*
 * Note that a reply to another request contained an object of VERSION. If the server turns out to
 * be before VERSION, relist, since no watch reports changes of that object.
 */
void watch_replied(struct watch *w, const char *version);

/* Return the verb of W's last request: "list" or "watch". */
const char *watch_verb(const struct watch *w);

/*
 * Return the version up to which the owner knows everything; "" while W relists. Borrowed; NULL is
 * allowed.
 */
const char *watch_version(const struct watch *w);
