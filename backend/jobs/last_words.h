/* SPDX-License-Identifier: MIT */
/* The last words of a replica that has failed (spec/job/last_words.h), as the state directory has them. I/O thread. */
#pragma once

#include "backend/base/group.h"
#include "backend/base/loop.h"

struct last_words;

/*
 * Read them from the file ERROR, which its program may have written (NULL: there is none), or else from the end of the
 * log LOG; both are absolute paths. FN(DATA, words) is called once, not from here, and WORDS are borrowed: NULL if the
 * log is there and empty; "" if it has none, or the disk has not answered for some seconds. Until the disk has, GROUP
 * is entered.
 */
struct last_words *last_words_read(struct loop *loop, struct group *group, const char *error,
				   const char *log, void (*fn)(void *data, const char *words),
				   void *data);
/* FN has not been called, and will not be. NULL is allowed. */
void last_words_drop(struct last_words *w);
