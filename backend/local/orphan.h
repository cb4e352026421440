/* SPDX-License-Identifier: MIT */
/*
 * An orphan is a job whose record is damaged or missing, but whose programs run. Nobody can control it. It keeps its
 * slot and its GPUs until all of its helpers have ended.
 */
#pragma once

#include "backend/local/task.h"
#include "spec/record/turns.h"

struct orphan;

/* Return the orphan in the folder STATE/output/KEY; NULL if no helper lives there. On the pool. */
struct orphan *orphan_find(struct tasks *tasks, const char *state_dir, const char *key);
void orphan_free(struct orphan *o); /* it is not watched */
/* Add O, which is taken over, to LIST. When all its helpers have ended, free it, and call FN(DATA). I/O thread. */
void orphan_watch(struct orphan **list, struct orphan *o, struct tasks *tasks, loop_fn fn,
		  void *data);
/* Count the slots and the GPUs of the orphans of LIST. */
void orphans_take(const struct orphan *list, struct spec_turns *turns);
/* Free the orphans of LIST; their programs run on. */
void orphans_release(struct orphan **list);
