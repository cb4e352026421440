/* SPDX-License-Identifier: MIT */
/*
 * Finds the kinds of jobs that a mount shows, and sets them in the world. A mount shows a kind if
 * SOURCE selects it, the cluster serves it, and the user has the right to list it. I/O thread,
 * unless noted otherwise.
 */
#pragma once

#include "backend/kube/watches.h"

struct kinds;

struct kinds_events {
	/*
	 * Called when a survey has the server's list of API groups, JSON (an APIGroupList), the
	 * first time before found().
	 */
	void (*groups)(void *data, const char *json, size_t len);
	/* Called once. If ERR is negative, the mount shows no kind, for the reason TEXT. */
	void (*found)(void *data, int err, const char *text);
	/* Called when the served kinds have changed later, and the watches have been switched. */
	void (*changed)(void *data);
	void *data;
};

/* KNOWN has all kinds that kxfs knows. SOURCE selects kinds of KNOWN. Both are borrowed. */
struct kinds *kinds_new(const struct watches_access *access, const struct spec_kinds *known,
			const char *source, const struct kinds_events *events);
void kinds_start(struct kinds *k);
/* Check the served kinds early. Call this when a watch reports that a kind is not served. */
void kinds_unserved(struct kinds *k);
void kinds_stop(struct kinds *k);
void kinds_free(struct kinds *k); /* NULL is allowed */

/* Print the keys of .kxfs/info about the kinds. Any thread. */
void kinds_info(struct kinds *k, FILE *out);
