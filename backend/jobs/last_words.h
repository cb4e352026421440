/* SPDX-License-Identifier: MIT */
/* Reads a failed replica's last words (spec/job/status.h) from the state directory. I/O thread. */
#pragma once

#include "backend/base/loop.h"
#include "backend/base/work.h"

struct last_words;

/*
 * Read the last words from the file ERROR, which the program may have written. If ERROR is NULL or
 * has no last words, read them from the end of LOG. Both are absolute paths. Call FN(DATA, words)
 * once, after this function has returned. WORDS (borrowed) is NULL if the log is empty, and "" if
 * the log has no last words or the disk does not respond within some seconds. GROUP counts the
 * operation until the disk has responded.
 */
struct last_words *last_words_read(struct loop *loop, struct group *group, const char *error,
				   const char *log, void (*fn)(void *data, const char *words),
				   void *data);
/* Cancel W. W's FN must not have been called yet. W may be NULL. */
void last_words_drop(struct last_words *w);
