/* SPDX-License-Identifier: MIT */
/*
 * The last words of a replica that has failed (spec/job/status.h), read from the state
 * directory. I/O thread.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/base/work.h"

struct last_words;

/*
 * Read the last words from the file ERROR, which the program may have written (may be NULL), or
 * else from the end of the log LOG; both are absolute paths. FN(DATA, words) is called once, not
 * from within this call. WORDS are borrowed: NULL if the log exists and is empty, "" if it has no
 * last words or the disk has not answered for some seconds. The read is in GROUP until the disk has
 * answered.
 */
struct last_words *last_words_read(struct loop *loop, struct group *group, const char *error,
				   const char *log, void (*fn)(void *data, const char *words),
				   void *data);
/* Cancel W, whose FN was not called yet: it will not be. NULL is allowed. */
void last_words_drop(struct last_words *w);
