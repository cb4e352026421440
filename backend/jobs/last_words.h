/* SPDX-License-Identifier: MIT */
/* The last words of a replica that has failed (spec/job/last_words.h), as the state directory has them. I/O thread. */
#pragma once

#include "backend/base/group.h"
#include "backend/base/loop.h"

struct last_words;

/*
 * Read the last words from the file ERROR, which the program may have written (NULL: there is none), or else from the
 * end of the log LOG; both are absolute paths. FN(DATA, words) is called once, not from here; WORDS are borrowed, NULL
 * if the log is there and empty, and "" if it has none or the disk has not answered for some seconds. The reading is in
 * GROUP until the disk has answered.
 */
struct last_words *last_words_read(struct loop *loop, struct group *group, const char *error,
				   const char *log, void (*fn)(void *data, const char *words),
				   void *data);
/* End W whose FN was not called: it will not be. NULL is allowed. */
void last_words_drop(struct last_words *w);
