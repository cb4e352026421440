/* SPDX-License-Identifier: MIT */
/*
 * Lookups that may hang: in paths of users, which may lead to a server that does not answer, and of
 * their names, which a directory service may have to resolve. Each lookup has a thread of its own
 * and a timeout. A thread that hangs is abandoned: it holds up neither other lookups nor the end of
 * the process. Another lookup of the same key fails immediately while it hangs.
 *
 *         static void look(void *question)                // that thread; touches nothing but
 * QUESTION
 *         static void looked(void *data, void *question)  // I/O thread
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/base/work.h"

struct lookup {
	/*
	 * The path, or "user 1000". If one lookup of a key hangs, others of the same key would hang
	 * too. Copied.
	 */
	const char *key;
	unsigned ms; /* how long the caller waits for the answer */
	/*
	 * Answer QUESTION. May never return. No other thread touches QUESTION until DONE is called.
	 */
	loop_fn look;
	void *question; /* the lookup owns it from lookup_start on */
	loop_fn free;	/* Free a question; called in any thread. */
	/*
	 * Called on the I/O thread, never from within lookup_start. QUESTION has its answer, and is
	 * freed afterwards. NULL: no answer arrived within MS, another lookup of KEY hangs already,
	 * or too many hang.
	 */
	void (*done)(void *data, void *question);
	void *data;
	/* The lookup is in this group until DONE has returned; NULL: in no group. */
	struct group *group;
};

/* Start lookup L, which is copied. I/O thread. */
void lookup_start(struct loop *loop, const struct lookup *l);
