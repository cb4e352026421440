/* SPDX-License-Identifier: MIT */
/*
 * Events of jobs: of each job the newest for each cause, at most EVENTS_JOB_MAX of them. An event may
 * come before the object that it is about: the newest EVENTS_WAITING_MAX of such events wait for it. Written
 * by the I/O thread, read by any; one lock, a leaf.
 */
#pragma once

#include "spec/view/watched.h"

#define EVENTS_JOB_MAX	   64
#define EVENTS_WAITING_MAX 512
#define EVENTS_MAX	   32768 /* events of all jobs together; the oldest give way */

struct events;

struct events *events_new(void);
void events_free(struct events *ev); /* NULL is allowed */

/*
 * Put in V, whose reference is taken over. It is about JOB (its uid; NULL: it is not known yet whose event it is),
 * whose present phase began at BEGAN. True: `why` may say something else now.
 */
bool events_put(struct events *ev, const char *job, int64_t began, struct spec_event_view *v);
/*
 * More is known of what belongs to JOB: events that wait become JOB's if IS returns true for the uid of the object that
 * they are about. Returns the same as events_put.
 */
typedef bool (*events_is_fn)(void *data, const char *about);
bool events_adopt(struct events *ev, const char *job, events_is_fn is, void *data);
/* JOB is not known any more: drop its events. */
void events_forget(struct events *ev, const char *job);

/* Events of a job, each a reference, oldest first; malloc'ed. */
struct events_list {
	struct spec_event_view **v;
	size_t n;
};

/* Any thread: the events of JOB; there may be none. */
void events_get(struct events *ev, const char *job, struct events_list *ret);
void events_release(struct events_list *list);
