/* SPDX-License-Identifier: MIT */
/*
 * Which containers' logs are followed into the output on disk: those of captured jobs from the moment a container
 * starts, any other from the moment somebody opens it. A log that was opened once is captured from then on. The capture
 * owns what is known of a job's logs until capture_forget; other parts name the job by its uid. I/O thread, but for
 * capture_count and capture_forbidden.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct capture;

struct capture_events {
	/*
	 * Output of job UID is about to come. 0: its folder is there for it; -EINPROGRESS: the folder is being made
	 * free, and capture_update is called when that is over; -EBUSY: another job has the folder.
	 */
	int (*claim)(void *data, const char *uid);
	/* The pod of job UID in the cluster whose uid is the N bytes at POD; NULL: it is gone. */
	const struct spec_pod_view *(*pod)(void *data, const char *uid, const char *pod, size_t n);
	/*
	 * What capture_fill writes of job UID has changed, or none of its logs is followed any more. May only take
	 * note.
	 */
	void (*changed)(void *data, const char *uid);
	void *data;
};

struct capture_config {
	struct loop *loop;
	struct http *http;
	struct output *output;
	const char *namespace; /* borrowed */
	bool archives; /* each job that is captured has a folder, so that it stays until it is archived */
};

struct capture *capture_new(const struct capture_config *config);
/* To be called once, before any job is published. */
void capture_set_events(struct capture *c, const struct capture_events *events);
/* Follow nothing any more. */
void capture_stop(struct capture *c);
/* To be called after capture_stop, or when nothing was followed; NULL is allowed. */
void capture_free(struct capture *c);

/* --- a job that is published --- */

/*
 * SNAPSHOT is about to be published: follow the logs that have begun, end those that have ended. WANTED: the logs of
 * this job are followed even if nobody reads them. OUTLIVED: as in follow_job_ended.
 */
void capture_update(struct capture *c, const struct spec_job *snapshot, bool wanted, bool outlived);
/*
 * Write into SNAPSHOT what is known of the job's logs: which are complete, which wait, where output is missing. WANTED
 * is as in capture_update; DROPPED: what was captured of the job was removed to make room.
 */
void capture_fill(struct capture *c, struct spec_job *snapshot, bool wanted, bool dropped);
/*
 * An earlier mount has ended before everything in the logs of the job of SNAPSHOT was in its merged log. Take in the
 * logs that are complete, or, when the job is GONE from the cluster, all that there is.
 */
void capture_merge_again(struct capture *c, const struct spec_job *snapshot, bool gone);
/* Has this mount seen output of job UID? */
bool capture_has(const struct capture *c, const char *uid);
/* Are all logs of job UID over that were captured? */
bool capture_is_over(const struct capture *c, const char *uid);
/* Is nothing of the output of job UID being written now? Logs that the server refused may still be asked for. */
bool capture_is_quiet(const struct capture *c, const char *uid);
/*
 * Is more of the output of the job of SNAPSHOT, which has ended and was filled by capture_fill, expected soon? WANTED
 * is as in capture_update; EARLY as in follow_is_fetching.
 */
bool capture_is_fetching(struct capture *c, const struct spec_job *snapshot, bool wanted,
			 bool early);
/* Follow no log of job UID any more, and forget them. */
void capture_forget(struct capture *c, const char *uid);

/* --- whoever waits for output --- */

/*
 * Somebody opens log KEY (NULL: all replicas merged) of the job of SNAPSHOT: follow it when the job's folder is free.
 * DONE(ARG) is called once, when the log has what was printed so far, or that can't be had.
 */
void capture_open(struct capture *c, const struct spec_job *snapshot, const char *key, loop_fn done,
		  void *arg);
/*
 * Call DONE(ARG) once, when all logs of job UID that are being followed have what was printed so far, or that can't be
 * had.
 */
void capture_wait(struct capture *c, const char *uid, loop_fn done, void *arg);

/* --- the server --- */

/*
 * AWAY: the server can't be reached, which is no refusal. Not AWAY: it can again, so the logs that it refused are asked
 * for at once.
 */
void capture_away(struct capture *c, bool away);

struct capture_counts {
	size_t streams; /* logs that are followed now */
	size_t waiting; /* logs that wait for a place */
};

void capture_count(const struct capture *c, struct capture_counts *ret);
/*
 * Any thread: the server's words, malloc'ed, if the user has no right to read logs. NULL: the server gave the last log
 * that was asked for.
 */
char *capture_forbidden(struct capture *c);
