/* SPDX-License-Identifier: MIT */
/*
 * The Kubernetes events of jobs: the newest event for each cause. An event may arrive before the
 * object that it is about. It then waits until its job is known. I/O thread, unless noted
 * otherwise.
 */
#pragma once

#include "spec/view/watched.h"

/* The largest numbers of events: those of one job, those without a known job, those of all jobs. */
#define EVENTS_JOB_MAX	   64
#define EVENTS_WAITING_MAX 512
#define EVENTS_MAX	   32768

struct events;

struct events *events_new(void);
void events_free(struct events *ev); /* NULL is allowed */

/*
 * Add V, an event of JOB (a uid, or NULL if the job is unknown). Take ownership of the caller's
 * reference to V. BEGAN is the time in ns when the job's phase began. Return true if `why` of JOB
 * may change.
 */
bool events_put(struct events *ev, const char *job, int64_t began, struct spec_event_view *v);
/*
 * Move the waiting events about objects of JOB to JOB. IS(DATA, ABOUT) must return true if the
 * object with the uid ABOUT belongs to JOB. Return true if `why` of JOB may change.
 */
typedef bool (*events_is_fn)(void *data, const char *about);
bool events_adopt(struct events *ev, const char *job, events_is_fn is, void *data);
void events_forget(struct events *ev, const char *job);

/* The events of a job, in the order of arrival. V is a malloc'ed array of new references. */
struct events_list {
	struct spec_event_view **v;
	size_t n;
};

/* Get the events of JOB. Release them with events_release. Any thread. */
void events_get(struct events *ev, const char *job, struct events_list *ret);
void events_release(struct events_list *list);
