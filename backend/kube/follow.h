/* SPDX-License-Identifier: MIT */
/*
 * One captured log: follows the output of one run of a container from the API server into the log on disk, from when it
 * is wanted until its job is forgotten. While it has a place it makes one try after the other
 * (backend/client/podlog.h), each of which goes on behind the last byte of the log, without loss or doubling, whatever
 * happens to the connection. A stream that is ahead of the disk waits for it; if too many streams do, it is ended and
 * asked for again. If something is wrong with a log, the daemon's messages say so once, and again when it is mended;
 * they warn of output that is lost, and of a disk that takes no more. That a container waits to start is not wrong. I/O
 * thread only.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/kube/places.h"
#include "backend/kube/run.h"
#include "backend/output/output.h"

struct follow;

/* What all logs of a mount share; it must stay as long as they do. */
struct follow_context {
	struct loop *loop;
	struct http *http;
	const char *namespace;
	struct places places;
	bool away; /* the server can't be reached: that it gives no log is no refusal */
	/* follow_state of the log with this DATA has changed. May only take note. */
	void (*changed)(void *data);
	/* places_next may have a log to begin. */
	void (*room)(void *room_data);
	/* TEXT: the server says that the user has no right to read logs; NULL: it gives one. May be NULL. */
	void (*forbidden)(void *room_data, const char *text);
	void *room_data;
};

struct follow_run {
	const char *job; /* its name, for messages */
	struct output_job *output;
	const char *key, *prefix;	   /* of the log, which output_log_begin has begun */
	const char *pod, *uid, *container; /* UID: of the pod */
	unsigned restart;		   /* runs of the container before this one */
	bool reruns;			   /* a container of this pod that has ended is run again */
	/*
	 * Only a reader wants the log, so what has been printed so far is fetched by a request of its own. Else the
	 * stream is opened at once, and what it brings before its first pause counts as printed so far.
	 */
	bool first;
	unsigned gaps;	 /* how many losses of its output are known; */
	unsigned missed; /* of the output of earlier runs: as many were never seen */
	bool lost_end;	 /* one of the GAPS is behind the end of the log */
	void *data;
};

/* Make a log that waits for a place. RUN and its strings are copied. */
struct follow *follow_new(struct follow_context *context, const struct follow_run *run);
/* End F: nothing more is fetched; what came stays on disk. Those who wait are answered. */
void follow_free(struct follow *f);
/* F has a place now (F is what places_next gave as the place's data). */
void follow_begin(struct follow *f);

/*
 * The pod's status says that the run has ended in this way: what is left of the log is fetched, or given up. An END
 * that goes less far than one told before changes nothing.
 */
void follow_ended(struct follow *f, enum run_end end);
/* The pod is on its way out: what is left must be fetched soon, so no try waits for long any more. */
void follow_leaving(struct follow *f);
/*
 * The job has ended (OVER), or it has not. Another watch tells that than what becomes of its pods, so it may be known
 * before the pods' ends are. If the pods of the kind may run on after the end (OUTLIVED), as those of a RayJob's
 * cluster do, the log is over a minute after it, unless the pod is on its way out.
 */
void follow_job_ended(struct follow *f, bool over, bool outlived);
/* If F is paused, it is tried again now; OPENED: because somebody opens it and waits. */
void follow_resume(struct follow *f, bool opened);
/* In the merged log the rest of F comes before the log of the next run, if it comes soon. */
void follow_precedes(struct follow *f);
/*
 * Call DONE(ARG) once, when what had been printed at the time of this call is on disk or can't be had; or, if the run
 * ended while it was followed, when all of its output is, but for what takes too long.
 */
void follow_wait(struct follow *f, loop_fn done, void *arg);

/*
 * Is more of the log expected soon? While it is EARLY, the news that the run has ended may be on its way. Later, true
 * if the run has ended, and bytes have come in the last seconds or the end is that recent. Never true of a log that
 * the server refuses or the disk does not take.
 */
bool follow_is_fetching(const struct follow *f, bool early);

const char *follow_key(const struct follow *f); /* valid as long as F */

struct follow_state {
	bool over;
	bool complete; /* it is over, and nothing but what GAPS counts is missing */
	bool outlived; /* it is over, since its run has gone on for a minute after the end of the job */
	/* It is paused, since the server has refused it: to its readers it looks ended. */
	bool refused;
	/* It waits for a place, for the server to give the log, or for the disk to take it. */
	bool waiting;
	/* With which the disk refuses it at this moment, a negative errno; 0: it does not. */
	int disk;
	unsigned gaps; /* how often output was lost, or may have been, */
	bool lost_end; /* the last time behind the end of the log */
};

struct follow_state follow_state(const struct follow *f);
