/* SPDX-License-Identifier: MIT */
/*
 * Which kinds of jobs a mount shows: the one that its SOURCE says; the one of those that SOURCE may mean which the
 * cluster serves; or, of a mount of all kinds, each that the cluster serves and the user may list. What is found is in
 * the world. I/O thread, but for what says "any thread".
 */
#pragma once

#include "backend/client/http.h"
#include "backend/kube/watches.h"

struct kinds;

struct kinds_events {
	/*
	 * Once, after kinds_start: the world knows what the mount shows; or ERR and TEXT say why there is nothing.
	 * Later changes go to the watches, and are told by changed().
	 */
	void (*found)(void *data, int err, const char *text);
	void (*changed)(void *data);
	/* May the mount be of KIND, with the options that it has? 0, or a negative errno with *RET_TEXT. */
	int (*fits)(void *data, const struct spec_kind *kind, char **ret_text);
	void *data;
};

/* All is borrowed. */
struct kinds_config {
	struct loop *loop;
	struct http *http;
	struct world *world;
	struct watches *watches;
	const char *source; /* the word of SOURCE; "" all kinds */
	const char *namespace;
	struct kinds_events events;
};

struct kinds *kinds_new(const struct kinds_config *config);
void kinds_start(struct kinds *k);
/* The server says that it does not serve jobs of one of them any more. */
void kinds_unserved(struct kinds *k);
void kinds_stop(struct kinds *k);
void kinds_free(struct kinds *k); /* NULL is allowed */

/* Any thread: what .kxfs/info says of them, and what of the list of what is refused. */
void kinds_info(struct kinds *k, FILE *out);
void kinds_refused(struct kinds *k, struct watches_refused *list);
