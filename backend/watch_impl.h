/* SPDX-License-Identifier: MIT */
/*
 * What watch.c (requests, waiting, what comes) and watch_end.c (how requests have ended) share. Private to them.
 */
#ifndef KXFS_BACKEND_WATCH_IMPL_H
#define KXFS_BACKEND_WATCH_IMPL_H

#include "backend/watch.h"
#include "spec/split.h"

/* A watch is asked to last so long, with jitter, so that not all end at once. */
#define WATCH_MIN_S  240
#define WATCH_MORE_S 240
#define WATCH_LATE_S 60 /* beyond which it is dead */
/* The longest silence that is borne. */
#define WATCH_SILENT_MAX_MS ((WATCH_MIN_S + WATCH_MORE_S + WATCH_LATE_S) * 1000u)
#define WATCH_BACKOFF_MIN   250u

struct watch {
	struct watch_config config; /* strings owned */
	struct http_request *request;
	struct spec_split *split;
	struct loop_timer *timer;
	const char *verb; /* asked for last */
	char *version;	  /* to watch from; NULL: to be listed */
	char *next;	  /* token of the next page, escaped; NULL: the list begins */
	unsigned page;
	size_t page_objects, page_bytes;
	unsigned refusals; /* that are borne before what is optional counts as forbidden */
	unsigned backoff;  /* ms; 0: all was in order. A watch that lasts resets it, nothing else */
	uint64_t stands;   /* since when the watch under way does, loop_now_ms; 0: it doesn't */
	unsigned silent;   /* ms without a byte after which the watch is asked for anew */
	bool probing;	   /* that is done now */
	bool dead;	   /* the last request got no answer at all: its connection may be why */
	int event_err;	   /* code of an ERROR event in the stream; 0 none, -1 without a code */
	int err;	   /* as last told; 1: nothing yet */
};

/* --- watch.c --- */

/* Ask for what is to come: the next page, or the watch. */
void watch_next(struct watch *w);
/* The same in MS; there is no request under way. */
void watch_wait(struct watch *w, unsigned ms);
/* The same when the server has had some rest, AT_LEAST the ms that it asked for. */
void watch_back_off(struct watch *w, unsigned at_least);
/* What was told is confirmed (ERR is 0), or not and why. */
void watch_tell(struct watch *w, int err, const char *text);
/* Where it was is not known any more: the next request begins a list. */
void watch_forget_version(struct watch *w);

/* --- watch_end.c: the done() of its requests --- */

void watch_list_done(void *data, const struct http_reply *reply);
void watch_events_done(void *data, const struct http_reply *reply);

#endif
