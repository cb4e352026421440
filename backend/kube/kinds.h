/* SPDX-License-Identifier: MIT */
/*
 * Finds out which kinds of jobs a mount shows: of those that its SOURCE means, each that the cluster serves and the
 * user may list. It sets the world's kinds accordingly. I/O thread, unless noted otherwise.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/kube/watches.h"

struct kinds;

struct kinds_events {
	/*
	 * Called once, after kinds_start: the world has the kinds of the mount; or ERR and TEXT are the reason why
	 * there are none. Later changes go to the watches; then changed() is called.
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
	const struct spec_kinds *kinds; /* the table of kinds */
	const char *source;		/* the word of SOURCE; "": all kinds */
	const char *namespace;
	struct kinds_events events;
};

struct kinds *kinds_new(const struct kinds_config *config);
void kinds_start(struct kinds *k);
/* The server no longer serves the jobs of some kind. */
void kinds_unserved(struct kinds *k);
void kinds_stop(struct kinds *k);
void kinds_free(struct kinds *k); /* NULL is allowed */

/* Any thread: print the keys of .kxfs/info about the kinds, and what the server refuses. */
void kinds_info(struct kinds *k, FILE *out);
void kinds_refused(struct kinds *k, struct watches_refused *list);
