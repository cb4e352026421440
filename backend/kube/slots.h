/* SPDX-License-Identifier: MIT */
/*
 * Decides which of the waiting logs may be followed now. There are as many slots as file
 * descriptors allow. At most SLOTS_FIRST of them go to logs that only a reader has requested. A log
 * whose run or pod has ended is urgent, because it may soon be gone: it moves to the front of the
 * queue, and there are SLOTS_URGENT extra slots for such logs, because programs that run for days
 * may have all others. At most SLOTS_RETRIED slots go to logs that the server has refused before,
 * not counting those whose pod is being deleted. One thread, except for the counts.
 */
#pragma once

#include <stdatomic.h>
#include "spec/base/base.h"

#define SLOTS_URGENT  64 /* extra slots for urgent logs */
#define SLOTS_FIRST   8
#define SLOTS_RETRIED 8

enum slot_state {
	SLOT_NONE,
	SLOT_QUEUED,
	SLOT_TAKEN,
	SLOT_PAUSED, /* it has no slot, and will be queued again */
	SLOT_STATES
};

/* The slot of one log. Plain data: the owner sets the first four members, and slots_ functions the others. */
struct slot {
	void *data;   /* the owner's */
	bool first;   /* only a reader has requested the log, and waits */
	bool retried; /* the log was refused before; change this only while it has no slot */
	bool leaving; /* its pod is being deleted */
	bool urgent;  /* slots_hasten was called */
	enum slot_state state;
	struct slot *prev, *next; /* of the queue */
};

struct slots {
	size_t max;
	struct slot *queue; /* urgent logs first */
	size_t n_first;	    /* how many logs with a slot are FIRST */
	size_t n_retried;
	atomic_size_t n[SLOT_STATES];
};

void slots_set(struct slots *all, struct slot *s, enum slot_state state);
/* Make S urgent. */
void slots_hasten(struct slots *all, struct slot *s);
/* The existing output of S has arrived: no reader waits for it any more. */
void slots_arrived(struct slots *all, struct slot *s);
/* Give a slot to the next log that may have one, and return it; NULL if there is none. */
struct slot *slots_next(struct slots *all);
