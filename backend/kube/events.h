/* SPDX-License-Identifier: MIT */
/*
 * The events of jobs: the newest one for each cause, at most EVENTS_JOB_MAX per job. An event may arrive before its
 * object: the newest EVENTS_WAITING_MAX of these wait. Written by the I/O thread, read by any thread, under one lock.
 */
#pragma once

#include "spec/view/watched.h"

#define EVENTS_JOB_MAX	   64
#define EVENTS_WAITING_MAX 512
#define EVENTS_MAX	   32768 /* events of all jobs; the oldest are displaced */

struct events;

struct events *events_new(void);
void events_free(struct events *ev); /* NULL is allowed */

/*
 * Add V, whose reference is taken over. It is about JOB (a uid; NULL: unknown), whose phase began at BEGAN. True if
 * `why` may change.
 */
bool events_put(struct events *ev, const char *job, int64_t began, struct spec_event_view *v);
/*
 * JOB has got more objects: events that wait become JOB's if IS returns true for the uid of their object. Return as
 * events_put.
 */
typedef bool (*events_is_fn)(void *data, const char *about);
bool events_adopt(struct events *ev, const char *job, events_is_fn is, void *data);
/* Drop the events of JOB. */
void events_forget(struct events *ev, const char *job);

/* References to the events of a job, oldest first; malloc'ed. */
struct events_list {
	struct spec_event_view **v;
	size_t n;
};

/* Any thread: get the events of JOB. */
void events_get(struct events *ev, const char *job, struct events_list *ret);
void events_release(struct events_list *list);
