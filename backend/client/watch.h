/* SPDX-License-Identifier: MIT */
/*
 * Keeps the owner's view of one resource of one namespace equal to the server's: LIST page by page, then WATCH from
 * there. The watch is begun again whatever has ended it; where that can't be (410), the list is asked for anew. An
 * object that a new list does not hold is gone. I/O thread only.
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
	const char *selector;  /* selector of labels, not escaped; "": none; copied */
	const char *field;     /* selector of fields, not escaped; NULL: none; copied */
	const char *resource;  /* for messages: "pods", "jobs.batch.volcano.sh"; copied */
	const char *namespace; /* for messages; copied */
	unsigned page;	       /* objects to ask for at first; adapted to the bytes that come */
	const struct spec_pick *pick; /* as in spec_split_new */
	/* The owner can do without the resource where it is forbidden; then it is asked for again after 5 minutes. */
	bool optional;
	/* what a user can do so that fewer objects are asked for; text for people; static; NULL: nothing */
	const char *fewer;
	/* Counts watches that have ended, by resource and why; NULL: they are not counted. */
	struct tally *ends;

	/* A list begins: an object that it has not told by its end is gone. */
	void (*begin)(void *data);
	/*
	 * An object is there or has changed; or (GONE) it is gone, and JSON is what it was last. JSON is NUL-terminated
	 * and borrowed. An event may tell what is known already. WRONG is as in spec_split_fn.
	 */
	void (*object)(void *data, const char *json, size_t len, bool gone, int wrong);
	/* The list has come to its end. */
	void (*listed)(void *data);
	/*
	 * The list is older than what was known: the server was restored from a backup, and its other watches may hear
	 * nothing for ever (watch_doubt). NULL: the owner does not want to know.
	 */
	void (*set_back)(void *data);
	/*
	 * Has a reply to another request told that an object is gone, and OBJECT not yet? If the server was set back
	 * meanwhile, OBJECT never does. So when the server could not be reached, a list comes. NULL: no.
	 */
	bool (*untold)(void *data);
	/*
	 * ERR 0: the view is confirmed from now on. Else it no longer is, since the server can't be reached or refuses
	 * (ERR and TEXT say why), and the owner is called again when that changes. -EOPNOTSUPP: the server has no such
	 * resource; -EAGAIN: it can be reached, but watches break again and again. For an optional resource, -EACCES:
	 * it is forbidden; -EKEYREJECTED: the server does not accept who asks, which says nothing of rights; -EAGAIN
	 * also: the server, which may just have started, refuses a watch that stood until now.
	 */
	void (*state)(void *data, int err, const char *text);
	void *data;
};

/* How often an optional resource that is forbidden is asked for. */
#define WATCH_FORBIDDEN_MS 300000

/* The watch starts at once. */
struct watch *watch_new(const struct watch_config *config);
/* End W: the owner hears nothing any more. NULL is allowed. Of the owner's functions only state() may call this. */
void watch_free(struct watch *w);

/*
 * The server may be there again, or somebody wants to know: a watch that waits after a failed request asks now, or 2 s
 * after it was last hurried if that is later. It does not where the server refuses, or has asked for a pause.
 */
void watch_hurry(struct watch *w);

/* Called by object(): the owner has passed over an object that it needs now, so the list is asked for anew. */
void watch_list_anew(struct watch *w);

/* The server may have been set back: W asks for its version, unless it did so a moment ago. */
void watch_doubt(struct watch *w);

/*
 * A reply to another request has brought an object of VERSION, so the server had come that far. If it turns out to be
 * before that, everything is listed anew, since no watch tells what has become of that object.
 */
void watch_replied(struct watch *w, const char *version);

/* The verb of W's last request: "list" or "watch". */
const char *watch_verb(const struct watch *w);

/* The owner knows everything up to this version; "" while W lists anew. Borrowed; NULL is allowed. */
const char *watch_version(const struct watch *w);
