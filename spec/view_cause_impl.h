/* SPDX-License-Identifier: MIT */
/*
 * What the files of view_cause share: how a cause is told, and which events tell of it. Private to them.
 */
#ifndef KXFS_SPEC_VIEW_CAUSE_IMPL_H
#define KXFS_SPEC_VIEW_CAUSE_IMPL_H

#include "spec/view_impl.h"

/* Text for people that is being made, and what it becomes. */
struct cause_words {
	FILE *out;
	char *text;
	size_t len;
};

/* 0 or -ENOMEM. What was begun is to be ended. */
int cause_begin(struct cause_words *w);
/* The cause of S is REASON, in these words. 0 or -ENOMEM. */
int cause_end(struct cause_words *w, const struct spec_making *s, const char *reason);
/* The same in one. */
int cause_say(const struct spec_making *s, const char *reason, const char *fmt, ...)
	printf_like(3, 4);

/* The newest event about UID with REASON (NULL: any) that says something; NULL: there is none. */
const struct spec_event_view *cause_newest(const struct spec_making *s, const char *uid,
					   const char *reason);
/* What stands behind KEY in TEXT, or TEXT. */
const char *cause_behind(const char *text, const char *key);
/* Is it so long since SINCE that what is missing may be said? */
bool cause_has_waited(const struct spec_making *s, int64_t since);

/* --- view_cause_queue.c --- */

/* The scheduler has not let the group in: why. 0 (also if that is not known) or -ENOMEM. */
int cause_find_pending(const struct spec_making *s);

#endif
