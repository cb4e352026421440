/* SPDX-License-Identifier: MIT */
/*
 * One captured log: one container's output in one run, from the API server into its log, from when it is wanted until
 * its job is forgotten. While it has a place it makes one try after the other (backend/client/podlog.h), and goes
 * on behind the last byte of the log, without loss or doubling, whatever happens to the connection. A stream that is
 * ahead of the disk waits for it; where too many do, it is ended and asked for again. If something is wrong with a log,
 * the daemon's messages say so once, and when it is mended; they warn of what is lost, and of a disk that takes no
 * more. A container that waits to start is nothing wrong. I/O thread only.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/kube/places.h"
#include "backend/kube/run.h"
#include "backend/output/output.h"

struct follow;

/* What all logs share. It stays as long as they do. */
struct follow_context {
	struct loop *loop;
	struct http *http;
	const char *namespace;
	struct places places;
	bool away; /* the server can't be reached: what it does not give now is no refusal */
	/* follow_state of the log whose DATA this is has changed. May only take note. */
	void (*changed)(void *data);
	/* places_next may give a place now. */
	void (*room)(void *room_data);
	/* The user has no right to read logs, the server says (TEXT); NULL: it gives one. May be NULL. */
	void (*forbidden)(void *room_data, const char *text);
	void *room_data;
};

struct follow_run {
	const char *job; /* its name, for messages */
	struct output_job *output;
	const char *key, *prefix;	   /* of the log, which has begun (output_log_begin) */
	const char *pod, *uid, *container; /* UID is the pod's */
	unsigned restart;		   /* runs of the container before this one */
	bool reruns; /* containers of this pod are run again when they have ended */
	/*
	 * Only a reader wants it: what has been printed so far is fetched by a request of its own. Else the stream is
	 * opened at once, and what comes first, without a pause, is taken for that.
	 */
	bool first;
	unsigned gaps; /* how often output of it is known to be lost */
	void *data;
};

/* It waits for a place. RUN and its strings are copied. */
struct follow *follow_new(struct follow_context *context, const struct follow_run *run);
/* Nothing is followed any more; what came stays. Who waits is answered. */
void follow_free(struct follow *f);
/* It has a place (places_next; F is the place's data). */
void follow_begin(struct follow *f);

/*
 * The pod's status says that its run has ended in this way: what is left of the log is fetched, or given up. An END
 * that was told earlier stays.
 */
void follow_ended(struct follow *f, enum run_end end);
/* The pod is on its way out: what is left must be fetched soon, no try waits for long any more. */
void follow_leaving(struct follow *f);
/*
 * The job has ended (OVER), or it has not. That is told by another watch than what becomes of its pods, so it may be
 * known before their end is.
 */
void follow_job_ended(struct follow *f, bool over);
/* If it is paused: it is tried again now; OPENED: since somebody opens it, who waits for that. */
void follow_resume(struct follow *f, bool opened);
/* What is left of it comes before the log of the next run in the merged log, if it comes soon. */
void follow_precedes(struct follow *f);
/*
 * Call DONE(ARG) once, when what had been printed when it began is on disk, or can't be had; or, once its run has
 * ended while it was followed, all of it, but for what takes too long.
 */
void follow_wait(struct follow *f, loop_fn done, void *arg);

const char *follow_key(const struct follow *f); /* as long as F */

struct follow_state {
	bool over;
	bool complete; /* it is over, and nothing of the run is missing but what GAPS counts */
	bool refused; /* it is paused, since the server has refused it: for its readers it has ended */
	bool waiting;  /* for a place, for the server to give it, or for the disk to take it */
	int disk;      /* a negative errno: the disk refuses it at this moment */
	unsigned gaps; /* how often output was lost, or may have been */
};

struct follow_state follow_state(const struct follow *f);
