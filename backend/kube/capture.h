/* SPDX-License-Identifier: MIT */
/*
 * Follows containers' logs into the output on disk: those of captured jobs from the start of the container, any other
 * from the first open, and from then on. Capture keeps the logs of a job until capture_forget; other parts name the
 * job by its uid. I/O thread, except capture_count and capture_forbidden.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct capture;

struct capture_events {
	/*
	 * Prepare for output of job UID. Return 0; -EINPROGRESS: old output is being removed, and capture_update
	 * follows; -EBUSY: another job has its key.
	 */
	int (*claim)(void *data, const char *uid);
	/* Return the pod of job UID in the cluster whose uid is the N bytes at POD; NULL if it is gone. */
	const struct spec_pod_view *(*pod)(void *data, const char *uid, const char *pod, size_t n);
	/* The result of capture_fill for job UID has changed, or all its logs are over. Must not call back. */
	void (*changed)(void *data, const char *uid);
	void *data;
};

struct capture_config {
	struct loop *loop;
	struct http *http;
	struct output *output;
	const char *namespace; /* borrowed */
	bool archives; /* each captured job has a folder, so that it is kept until it is archived */
};

struct capture *capture_new(const struct capture_config *config);
/* Call this once, before any job is published. */
void capture_set_events(struct capture *c, const struct capture_events *events);
/* End all logs. */
void capture_stop(struct capture *c);
/* After capture_stop, or if nothing was followed; NULL is allowed. */
void capture_free(struct capture *c);

/* --- a job that is published --- */

/*
 * SNAPSHOT will be published: follow the logs that have begun, end those that have ended. WANTED: follow the logs of
 * this job although nobody reads them. OUTLIVED: as in follow_job_ended.
 */
void capture_update(struct capture *c, const struct spec_job *snapshot, bool wanted, bool outlived);
/*
 * Set in SNAPSHOT which logs are complete, which wait, and where output is missing. WANTED: as in capture_update;
 * DROPPED: the job's output was removed to free space. UNMERGED: an earlier mount has left lines on disk that its
 * merged log may lack; those of logs whose end is lost are merged now.
 */
void capture_fill(struct capture *c, struct spec_job *snapshot, bool wanted, bool dropped,
		  bool unmerged);
/*
 * An earlier mount has ended before everything in the logs of SNAPSHOT was in its merged log. Merge the complete logs,
 * or, if the job is GONE from the cluster, all of them.
 */
void capture_merge_again(struct capture *c, const struct spec_job *snapshot, bool gone);
/* True if this mount has opened the output of job UID. */
bool capture_has(const struct capture *c, const char *uid);
/* True if all captured logs of job UID are over. */
bool capture_is_over(const struct capture *c, const char *uid);
/* True if no output of job UID is being written. Logs that the server has refused may still be retried. */
bool capture_is_quiet(const struct capture *c, const char *uid);
/*
 * True if more of the output of SNAPSHOT, which has ended and was filled by capture_fill, is expected soon. WANTED:
 * as in capture_update; EARLY: as in follow_is_fetching.
 */
bool capture_is_fetching(struct capture *c, const struct spec_job *snapshot, bool wanted,
			 bool early);
/* End and forget the logs of job UID. */
void capture_forget(struct capture *c, const char *uid);

/* --- readers --- */

/*
 * A reader opens log KEY (NULL: the merged log) of SNAPSHOT: follow it when no old output is being removed. Call
 * DONE(ARG) once the log has all existing output, or that is not available.
 */
void capture_open(struct capture *c, const struct spec_job *snapshot, const char *key, loop_fn done,
		  void *arg);
/* Call DONE(ARG) once all followed logs of job UID have all existing output, or that is not available. */
void capture_wait(struct capture *c, const char *uid, loop_fn done, void *arg);

/* --- the server --- */

/* AWAY: the server can't be reached, so failures are not refusals. When it is back, refused logs are retried. */
void capture_away(struct capture *c, bool away);

struct capture_counts {
	size_t streams; /* logs that are followed now */
	size_t waiting; /* logs that wait for a slot */
};

void capture_count(const struct capture *c, struct capture_counts *ret);
/*
 * Any thread: return the server's refusal, malloc'ed, if the user may not read logs; NULL if it returned the last log
 * that was requested.
 */
char *capture_forbidden(struct capture *c);
