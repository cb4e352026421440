/* SPDX-License-Identifier: MIT */
/*
 * The Kubernetes events of jobs: the newest event for each cause, at most EVENTS_JOB_MAX per job. An event may
 * arrive before the object that it is about; the newest EVENTS_WAITING_MAX such events are kept until their jobs
 * are known. Written by the I/O thread, read by any thread, under one lock.
 */
#pragma once

#include "spec/view/watched.h"

#define EVENTS_JOB_MAX	   64
#define EVENTS_WAITING_MAX 512
/* largest number of events of all jobs; a new event displaces the oldest */
#define EVENTS_MAX 32768

struct events;

struct events *events_new(void);
void events_free(struct events *ev); /* NULL is allowed */

/*
 * Add V, and take over its reference. It is about JOB (a uid; NULL: unknown), whose phase began at BEGAN. Return
 * true if `why` of JOB may change.
 */
bool events_put(struct events *ev, const char *job, int64_t began, struct spec_event_view *v);
/*
 * JOB has more objects than before. Move waiting events to JOB: IS gets the uid of an event's object, and returns
 * true if that object belongs to JOB. Return true if `why` of JOB may change.
 */
typedef bool (*events_is_fn)(void *data, const char *about);
bool events_adopt(struct events *ev, const char *job, events_is_fn is, void *data);
/* Drop the events of JOB. */
void events_forget(struct events *ev, const char *job);

/* The events of a job, oldest first. The array is malloc'ed, and each item is a new reference. */
struct events_list {
	struct spec_event_view **v;
	size_t n;
};

/* Get the events of JOB. Release them with events_release. Any thread. */
void events_get(struct events *ev, const char *job, struct events_list *ret);
void events_release(struct events_list *list);
