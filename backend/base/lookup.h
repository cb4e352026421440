/* SPDX-License-Identifier: MIT */
/*
 * Lookups that may hang: a user's path may be on a file server that does not answer, and a
 * directory service may have to resolve a user's name. Each lookup has its own thread and a
 * timeout. If the thread hangs, kxfs abandons it, so that it delays neither other lookups nor the
 * end of the process. While a lookup hangs, other lookups of the same key fail immediately.
 *
 *         static void look(void *question)                // lookup's thread; uses only QUESTION
 *         static void looked(void *data, void *question)  // I/O thread
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/base/work.h"

struct lookup {
	/*
	 * Identifies what is looked up: a path, or "user 1000". If a lookup hangs, further lookups
	 * of the same key would hang, too. Copied.
	 */
	const char *key;
	unsigned ms; /* time limit for the answer, in ms */
	/*
	 * Put the answer into QUESTION. This function may hang for ever. No other thread uses
	 * QUESTION until DONE is called.
	 */
	loop_fn look;
	void *question; /* the lookup owns it from lookup_start on */
	loop_fn free;	/* frees a question; called on any thread */
	/*
	 * Called once on the I/O thread, never from within lookup_start. QUESTION contains the
	 * answer, and is freed after this call. QUESTION is NULL if no answer arrived within MS, if
	 * another lookup of KEY hangs already, or if too many lookups hang.
	 */
	void (*done)(void *data, void *question);
	void *data;
	/* May be NULL. The lookup is in this group until DONE has returned. */
	struct group *group;
};

/* Start lookup L, which is copied. I/O thread. */
void lookup_start(struct loop *loop, const struct lookup *l);
