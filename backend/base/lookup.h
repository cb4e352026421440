/* SPDX-License-Identifier: MIT */
/*
 * Lookups that may hang: of users' paths, which may be on a server that does not answer, and of users' names, which
 * a directory service may have to resolve. Each lookup has its own thread and a timeout. A thread that hangs is
 * abandoned, so it does not delay other lookups or the end of the process. While it hangs, another lookup of the
 * same key fails immediately.
 *
 *         static void look(void *question)                // lookup's thread; uses only QUESTION
 *         static void looked(void *data, void *question)  // I/O thread
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/base/work.h"

struct lookup {
	/*
	 * What is looked up: a path, or "user 1000". If one lookup of a key hangs, others with the same key would
	 * hang too. Copied.
	 */
	const char *key;
	unsigned ms; /* timeout of the answer */
	/* Put the answer into QUESTION. May never return. No other thread uses QUESTION until DONE is called. */
	loop_fn look;
	void *question; /* the lookup owns it from lookup_start on */
	loop_fn free;	/* Free a question; called in any thread. */
	/*
	 * Called on the I/O thread, never from within lookup_start. QUESTION has its answer, and is freed
	 * afterwards. QUESTION is NULL if no answer arrived within MS, another lookup of KEY hangs already, or too
	 * many lookups hang.
	 */
	void (*done)(void *data, void *question);
	void *data;
	/* The lookup is in this group until DONE has returned; NULL: in no group. */
	struct group *group;
};

/* Start lookup L, which is copied. I/O thread. */
void lookup_start(struct loop *loop, const struct lookup *l);
