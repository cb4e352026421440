/* SPDX-License-Identifier: MIT */
/*
 * The Kubernetes events of jobs: the newest event for each cause, and at most EVENTS_JOB_MAX events
 * per job. An event may arrive before the object that it is about. kxfs keeps the newest
 * EVENTS_WAITING_MAX such events until their jobs are known. Only the I/O thread writes. Any thread
 * may read. One lock protects everything.
 */
#pragma once

#include "spec/view/watched.h"

#define EVENTS_JOB_MAX	   64
#define EVENTS_WAITING_MAX 512
/* largest number of events of all jobs together; each further one replaces the oldest */
#define EVENTS_MAX 32768

struct events;

struct events *events_new(void);
void events_free(struct events *ev); /* NULL is allowed */

/*
 * Add V, an event of JOB. Take ownership of the caller's reference to V. JOB is the uid of the job,
 * or NULL if the job is unknown. BEGAN is the time when the job's phase began. Return true if `why`
 * of JOB may change.
 */
bool events_put(struct events *ev, const char *job, int64_t began, struct spec_event_view *v);
/*
 * Move the waiting events about objects of JOB to JOB. Call this when kxfs has found another object
 * of JOB. IS(DATA, ABOUT) must return true if the object with the uid ABOUT belongs to JOB. Return
 * true if `why` of JOB may change.
 */
typedef bool (*events_is_fn)(void *data, const char *about);
bool events_adopt(struct events *ev, const char *job, events_is_fn is, void *data);
/* Drop the events of JOB. */
void events_forget(struct events *ev, const char *job);

/* The events of a job, in the order of arrival. V is malloc'ed, with new references. */
struct events_list {
	struct spec_event_view **v;
	size_t n;
};

/* Get the events of JOB. Release them with events_release. Any thread. */
void events_get(struct events *ev, const char *job, struct events_list *ret);
void events_release(struct events_list *list);
