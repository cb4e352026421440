/* SPDX-License-Identifier: MIT */
/*
 * An outcome that one thread waits for and another tells, once: that of starting a backend, and that of stopping it.
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
/* Tell the outcome: 0, or a negative errno with TEXT (NULL: none). The first that is told counts. Any thread. */
void end_reach(struct end *e, int err, const char *text);
/*
 * Wait for the outcome, at most SECONDS of a clock that nobody can set (-ETIMEDOUT). *RET_TEXT, if RET_TEXT is not
 * NULL, is its text, malloc'ed or NULL.
 */
int end_wait(struct end *e, unsigned seconds, char **ret_text);
