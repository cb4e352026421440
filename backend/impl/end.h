/* SPDX-License-Identifier: MIT */
/*
 * A result that one thread waits for and another one sets, once: the result of starting a backend,
 * and that of stopping it.
 */
#pragma once

#include <semaphore.h>

#include "backend/base/lock.h"

struct end {
	sem_t done;
	struct lock lock; /* protects the members below */
	bool over;
	int err;
	char *text;
};

void end_init(struct end *e);
void end_clear(struct end *e);
/*
 * Set the result: 0, or a negative errno with TEXT (may be NULL). Only the first call counts. Any
 * thread.
 */
void end_reach(struct end *e, int err, const char *text);
/*
 * Wait for the result, at most SECONDS of the monotonic clock; after that return -ETIMEDOUT. If
 * RET_TEXT is not NULL, *RET_TEXT is the result's text, malloc'ed or NULL.
 */
int end_wait(struct end *e, unsigned seconds, char **ret_text);
