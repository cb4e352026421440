/* SPDX-License-Identifier: MIT */
/*
 * Decides which of the logs that wait may be followed now. At most as many are followed at once as there are
 * descriptors for, and at most FIRST of them are logs that only a reader has asked for and waits for. A log whose run
 * or pod has ended is urgent, since it may soon be gone: it goes to the front of the queue, and there are some places
 * more for such logs, so that they need not wait for programs that run for days. Of the logs that the server has
 * refused before, only a few are tried at once; those whose pod is on its way out do not count. Nothing here knows what
 * a log is, or the time. One thread, but for the counts.
 */
#pragma once

#include <stdatomic.h>
#include "spec/base/base.h"

#define PLACES_URGENT  64 /* as many places more, for urgent logs */
#define PLACES_FIRST   8
#define PLACES_RETRIED 8

enum place_state {
	PLACE_NONE,
	PLACE_QUEUED,
	PLACE_TAKEN,
	PLACE_PAUSED, /* it has no place, and will be queued again */
	PLACE_STATES
};

/* The place of one log. Plain data: the log's owner sets the first four members, and places_ functions the others. */
struct place {
	void *data;   /* the owner's */
	bool first;   /* a reader has asked for it, and waits */
	bool retried; /* the log was refused before; to be changed only while it has no place */
	bool leaving; /* its pod is on its way out */
	bool urgent;  /* places_hasten was called */
	enum place_state state;
	struct place *prev, *next; /* of the queue */
};

struct places {
	size_t max;
	struct place *queue; /* urgent logs stand first */
	size_t n_first;	     /* how many that have a place are FIRST */
	size_t n_retried;
	atomic_size_t n[PLACE_STATES];
};

void places_set(struct places *p, struct place *l, enum place_state state);
/* L is urgent from now on. */
void places_hasten(struct places *p, struct place *l);
/* Nobody waits for L any more. */
void places_arrived(struct places *p, struct place *l);
/* Give a place to the next that may have one, and return it. NULL: there is none. */
struct place *places_next(struct places *p);
