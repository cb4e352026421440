/* SPDX-License-Identifier: MIT */
/*
 * Programs that run for a job whose record is damaged or gone. An orphan is such a job: nobody can control it, but it
 * has its place in the queue, and its GPUs, until all of its helpers have ended.
 */
#pragma once

#include "backend/local/task.h"
#include "spec/record/turns.h"

struct orphan;

/* Look for helpers that live in the folder STATE/output/KEY, on the pool. NULL: there are none. */
struct orphan *orphan_find(struct tasks *tasks, const char *state_dir, const char *key);
void orphan_free(struct orphan *o); /* one that is not watched; NULL is allowed */
/* Add O, which is taken over, to LIST, and free it when all its helpers have ended; then call FN(DATA). I/O thread. */
void orphan_watch(struct orphan **list, struct orphan *o, struct tasks *tasks, loop_fn fn,
		  void *data);
/* Count what the orphans of LIST have. */
void orphans_take(const struct orphan *list, struct spec_turns *turns);
/* Forget them; their programs run on. */
void orphans_release(struct orphan **list);
