/* SPDX-License-Identifier: MIT */
/*
 * What belongs to users, not to kxfs: their paths, which may lead to a server that does not answer, and their names,
 * which a directory service may have. Each is looked at in a thread of its own, for a limited time. A thread that hangs
 * is left to itself: it holds up nobody, nor the end of the process, and who asks for the same meanwhile is told at
 * once that it hangs.
 *
 *	static void look(void *question)		// that thread; touches nothing but QUESTION
 *	static void looked(void *data, void *question)	// I/O thread
 */
#pragma once

#include "backend/base/group.h"
#include "backend/base/loop.h"

struct lookup {
	const char *key; /* equal for what hangs alike, as the path, or "user 1000"; copied */
	unsigned ms;	 /* so long DATA's owner waits */
	loop_fn look; /* answers QUESTION, which nobody else touches until DONE; may take for ever */
	void *question; /* given away */
	loop_fn free;	/* frees a question, in any thread */
	/*
	 * I/O thread, never from within lookup_start: QUESTION is answered, and freed afterwards; or it is NULL:
	 * nothing came within MS, another lookup of KEY hangs already, or too many hang.
	 */
	void (*done)(void *data, void *question);
	void *data;
	struct group *group; /* in which it is under way until DONE has returned; NULL: none */
};

/* L is copied. I/O thread. */
void lookup_start(struct loop *loop, const struct lookup *l);
