/* SPDX-License-Identifier: MIT */
/*
 * Finds the kinds of jobs that a mount shows: the kinds that its SOURCE selects, that the cluster serves, and that
 * the user may list. Sets the kinds of the world accordingly. I/O thread, unless noted otherwise.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/kube/watches.h"

struct kinds;

struct kinds_events {
	/*
	 * Called once, after kinds_start. ERR is 0: the world has the kinds of the mount. ERR is negative: the
	 * mount shows no kind, for the reason TEXT. If kinds change later, kinds reports that to the watches, and
	 * then calls changed().
	 */
	void (*found)(void *data, int err, const char *text);
	void (*changed)(void *data);
	void *data;
};

/* All is borrowed. */
struct kinds_config {
	struct loop *loop;
	struct http *http;
	struct world *world;
	struct watches *watches;
	const struct spec_kinds *kinds; /* the table of all kinds */
	/* the mount's SOURCE, which selects some of KINDS; "": all kinds */
	const char *source;
	const char *namespace;
	struct kinds_events events;
};

struct kinds *kinds_new(const struct kinds_config *config);
void kinds_start(struct kinds *k);
/*
 * Find the served kinds again. Call this when a watch reports that the server no longer serves the jobs of some
 * kind.
 */
void kinds_unserved(struct kinds *k);
void kinds_stop(struct kinds *k);
void kinds_free(struct kinds *k); /* NULL is allowed */

/*
 * Print the keys of .kxfs/info about the kinds. Append to LIST the requests that the server has refused. Any thread.
 */
void kinds_info(struct kinds *k, FILE *out);
void kinds_refused(struct kinds *k, struct watches_refused *list);
