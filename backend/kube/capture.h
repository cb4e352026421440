/* SPDX-License-Identifier: MIT */
/*
 * Which containers' logs are followed into the output on disk: those of captured jobs from the moment a container
 * starts, any other from the moment somebody opens it. A log that was opened once is captured from then on. What is
 * known of a job's logs belongs to the capture until capture_forget; other parts name the job by its uid.
 * I/O thread, but for capture_count and capture_forbidden.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct capture;

struct capture_events {
	/* Output of job UID is about to come: 0, its folder is there for it; -EBUSY: not yet (changed() follows). */
	int (*claim)(void *data, const char *uid);
	/* The pod in the cluster whose uid is the N bytes at POD, of job UID; NULL: it is gone. */
	const struct spec_pod_view *(*pod)(void *data, const char *uid, const char *pod, size_t n);
	/* What capture_fill writes of job UID has changed, or none of its logs is followed now. May only take note. */
	void (*changed)(void *data, const char *uid);
	void *data;
};

struct capture_config {
	struct loop *loop;
	struct http *http;
	struct output *output;
	const char *namespace; /* borrowed */
};

struct capture *capture_new(const struct capture_config *config);
/* To be called once, before any job is published. */
void capture_set_events(struct capture *c, const struct capture_events *events);
/* Nothing is followed any more, and nothing will be. */
void capture_stop(struct capture *c);
/* After capture_stop, or when nothing was followed; NULL is allowed. */
void capture_free(struct capture *c);

/* --- a job that is published --- */

/*
 * SNAPSHOT is about to be published: follow what has begun, end what has ended. WANTED: the job is one of those whose
 * logs are followed without being read.
 */
void capture_update(struct capture *c, const struct spec_job *snapshot, bool wanted);
/*
 * Write into SNAPSHOT what is known of the job's logs: which are complete, which wait, where output is missing. WANTED
 * is as above; DROPPED: what was captured of it was removed to make room.
 */
void capture_fill(struct capture *c, struct spec_job *snapshot, bool wanted, bool dropped);
/*
 * An earlier mount has ended before the merged log of the job of SNAPSHOT had all that its logs have: what is complete,
 * or, when the job is GONE from the cluster, all that there is, is taken into it.
 */
void capture_merge_again(struct capture *c, const struct spec_job *snapshot, bool gone);
/* Is there output of job UID, as far as this mount has seen? */
bool capture_has(const struct capture *c, const char *uid);
/* Are all logs over that were captured of job UID? */
bool capture_is_over(const struct capture *c, const char *uid);
/* Is nothing of it being written now? Logs that the server refused may still be asked for. */
bool capture_is_quiet(const struct capture *c, const char *uid);
/* Follow no log of job UID any more, and forget them. */
void capture_forget(struct capture *c, const char *uid);

/* --- whoever waits for output --- */

/*
 * Somebody opens log KEY (NULL: all replicas merged) of the job of SNAPSHOT: follow it. DONE(ARG) is called
 * once, when what was printed so far is in, or can't be had.
 */
void capture_open(struct capture *c, const struct spec_job *snapshot, const char *key, loop_fn done,
		  void *arg);
/*
 * Call DONE(ARG) once, when of all logs of job UID that are being followed what was printed so far is in, or can't be
 * had.
 */
void capture_wait(struct capture *c, const char *uid, loop_fn done, void *arg);

/* --- the server --- */

/* The server can't be reached (AWAY), which is no refusal; or it can again: what it refused is asked for at once. */
void capture_away(struct capture *c, bool away);

struct capture_counts {
	size_t streams; /* logs that are followed now */
	size_t waiting; /* logs that wait for a place */
	size_t paused;	/* logs that were refused, and are asked for again after a pause */
	size_t retried; /* of STREAMS, those that were refused before */
};

void capture_count(const struct capture *c, struct capture_counts *ret);
/* Any thread: the server's words when the user has no right to read logs; malloc'ed. NULL: it gave the last one. */
char *capture_forbidden(struct capture *c);
