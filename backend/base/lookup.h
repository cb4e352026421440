/* SPDX-License-Identifier: MIT */
/*
 * Looks at what belongs to users, not to kxfs: their paths, which may lead to a server that does not answer, and their
 * names, which a directory service may have to be asked for. Each lookup has a thread of its own and a limited time. A
 * thread that hangs is left to itself: it holds up neither anybody nor the end of the process, and whoever asks for the
 * same meanwhile is told at once that it hangs.
 *
 *	static void look(void *question)		// that thread; touches nothing but QUESTION
 *	static void looked(void *data, void *question)	// I/O thread
 */
#pragma once

#include "backend/base/group.h"
#include "backend/base/loop.h"

struct lookup {
	/* Equal where one lookup hangs if another does: the path, or "user 1000"; copied. */
	const char *key;
	unsigned ms; /* how long the caller waits for the answer */
	/* Answers QUESTION, which nobody else touches until DONE is called; it may take for ever. */
	loop_fn look;
	void *question; /* the lookup owns it from lookup_start on */
	loop_fn free;	/* frees a question, in any thread */
	/*
	 * Called on the I/O thread, never from within lookup_start. QUESTION has its answer, and is freed afterwards;
	 * or it is NULL: no answer came within MS, another lookup of KEY hangs already, or too many hang.
	 */
	void (*done)(void *data, void *question);
	void *data;
	/* The lookup is under way in it until DONE has returned; NULL: in none. */
	struct group *group;
};

/* L is copied. I/O thread. */
void lookup_start(struct loop *loop, const struct lookup *l);
