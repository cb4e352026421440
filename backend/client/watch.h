/* SPDX-License-Identifier: MIT */
/*
 * One resource of one namespace, known for ever: LIST page by page, then WATCH from there. The watch is resumed
 * after whatever may end it; where that can't be (410), the list is asked for anew. What the owner is told makes
 * its view equal to the server's: an object that a new list does not hold is gone. I/O thread only.
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
	const char *path;      /* of the collection: "/api/v1/namespaces/NS/pods"; copied */
	const char *selector;  /* of labels, not escaped; "" none; copied */
	const char *field;     /* selector of fields, not escaped; NULL: none; copied */
	const char *resource;  /* for messages: "pods", "jobs.batch.volcano.sh"; copied */
	const char *namespace; /* for messages; copied */
	unsigned page;	       /* objects to ask for at first; adapted to the bytes that come */
	const struct spec_pick *pick; /* as in spec_split_new */
	/* The owner can do without it where it is forbidden (then it is asked for again after 5 minutes). */
	bool optional;
	/* what has it ask for fewer objects, in words for people; static; NULL: nothing */
	const char *fewer;
	struct tally *ends; /* counts watches that have ended, by resource and why; NULL: not */

	/* A list begins: what is not told by its end is gone. */
	void (*begin)(void *data);
	/*
	 * An object is there or has changed, or (GONE) is no more, and this is what it was last. JSON is
	 * the object, NUL-terminated, borrowed. An event may tell what is known already. WRONG is as in spec_split_fn.
	 */
	void (*object)(void *data, const char *json, size_t len, bool gone, int wrong);
	/* The list is whole. */
	void (*listed)(void *data);
	/*
	 * 0: the view is confirmed from now on. Else it no longer is, since the server can't be
	 * reached or refuses (the errno and TEXT say why); the owner is called again when that changes.
	 * -EOPNOTSUPP: the server has no such resource; -EAGAIN: it can be reached, but watches break again
	 * and again. Of what is optional, -EACCES: it is forbidden; -EKEYREJECTED: the server does not accept
	 * who asks, which says nothing of rights; -EAGAIN also: it refuses what stood until now, maybe since
	 * it has just been started.
	 */
	void (*state)(void *data, int err, const char *text);
	void *data;
};

/* How often what is forbidden and optional is asked for. */
#define WATCH_FORBIDDEN_MS 300000

/* It starts at once. */
struct watch *watch_new(const struct watch_config *config);
/* The owner hears nothing any more. NULL is allowed. Of its functions only state() may call this. */
void watch_free(struct watch *w);

/*
 * The server may be there again, or somebody wants to know: what waits since a request failed is asked for now, or 2 s
 * after it was hurried last, should that be later; and not where the server has said when, or that it refuses.
 */
void watch_hurry(struct watch *w);

/* Called by object(): the owner has passed over what it needs now, so the list is asked for anew. */
void watch_list_anew(struct watch *w);

/* What it asked for last: "list" or "watch". */
const char *watch_verb(const struct watch *w);

/* The owner has all up to this version; "" while it lists anew. Borrowed; NULL is allowed. */
const char *watch_version(const struct watch *w);
