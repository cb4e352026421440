/* SPDX-License-Identifier: MIT */
/*
 * Lookups that may hang, such as a path on a file server that does not answer, or a user name in a
 * directory service. Each lookup has its own thread and a timeout. A hanging thread is abandoned,
 * and delays neither other lookups nor the end of the process. While a lookup hangs, other lookups
 * of the same key fail immediately.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/base/work.h"

struct lookup {
	/* What is looked up, such as a path or "user 1000". Copied. */
	const char *key;
	unsigned ms; /* timeout */
	/*
	 * Put the answer into QUESTION. Runs on the lookup's thread, and may hang forever. Use only
	 * QUESTION, because a hanging thread may outlive all other data.
	 */
	loop_fn look;
	void *question; /* owned by the lookup */
	loop_fn free;	/* called on any thread */
	/*
	 * Called once on the I/O thread, never within lookup_start. QUESTION has the answer, and is
	 * freed after this call. QUESTION is NULL if no answer arrived within MS, if another lookup
	 * of KEY hangs, or if there are too many lookups.
	 */
	void (*done)(void *data, void *question);
	void *data;
	/* May be NULL. The lookup is in this group until DONE has returned. */
	struct group *group;
};

/* Start a copy of L. I/O thread. */
void lookup_start(struct loop *loop, const struct lookup *l);
