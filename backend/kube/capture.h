/* SPDX-License-Identifier: MIT */
/*
 * Copies the logs of containers to disk while the containers print them. kxfs follows the logs of a
 * captured job from the start of each container, and any other log from the first time that a
 * reader opens it. Callers identify a job by its uid. I/O thread, except capture_count.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct capture;

struct capture_events {
	/*
	 * Prepare the output folder of job UID, and return what folders_claim returns. After
	 * -EINPROGRESS, the owner must call capture_update when the removal of old output has
	 * ended.
	 */
	int (*claim)(void *data, const char *uid);
	/*
	 * Return the pod whose uid is POD (N bytes). Its logs belong to job UID. Return NULL if the
	 * cluster no longer has the pod.
	 */
	const struct spec_pod_view *(*pod)(void *data, const char *uid, const char *pod, size_t n);
	/*
	 * Called when capture_fill would mark the snapshot of job UID in another way than before,
	 * or when all logs of the job have ended. Must not call functions of capture.
	 */
	void (*changed)(void *data, const char *uid);
	void *data;
};

struct capture_config {
	struct loop *loop;
	struct http *http;
	struct output *output;
	const char *namespace; /* borrowed */
	/*
	 * True if the mount has an archive. Each captured job then gets an output folder, even if
	 * it has no output. Without this folder, kxfs would forget a deleted job before it is
	 * archived.
	 */
	bool archives;
	/*
	 * Called with the server's TEXT when the server denies this user access to logs. Called
	 * with NULL when the server returns a log again.
	 */
	void (*forbidden)(void *data, const char *text);
	void *data;
};

struct capture *capture_new(const struct capture_config *config);
/* Call this once, before any job is published. */
void capture_set_events(struct capture *c, const struct capture_events *events);
void capture_stop(struct capture *c);
/* If kxfs has followed any log, call capture_stop first. C may be NULL. */
void capture_free(struct capture *c);

/*
 * Notify the followed logs of SNAPSHOT's job if their run or the job has ended. If kxfs captures
 * the job (WANTED), or if a reader has the merged log open, start to follow the logs of runs that
 * have begun. OUTLIVED: see follow_job_ended. Call this before SNAPSHOT is published.
 */
void capture_update(struct capture *c, const struct spec_job *snapshot, bool wanted, bool outlived);
/*
 * Mark in SNAPSHOT which logs are complete or waiting, and where output is missing. WANTED is true
 * if the job is captured. DROPPED is true if the job's output was removed to free space. UNMERGED
 * is true if the merged log may lack lines that an earlier mount captured. If the rest of a log
 * can't be fetched, capture_fill then adds the captured lines of this log to the merged log.
 */
void capture_fill(struct capture *c, struct spec_job *snapshot, bool wanted, bool dropped,
		  bool unmerged);
/*
 * The merged log may lack lines that an earlier mount captured. Add these lines of each log that is
 * complete or whose end is lost. If no more output of the job can arrive (GONE), add the lines of
 * all logs, and then forget the job.
 */
void capture_merge_again(struct capture *c, const struct spec_job *snapshot, bool gone);
/* True if this mount has opened the output of job UID. */
bool capture_has(const struct capture *c, const char *uid);
/* True if all followed logs of job UID have ended. */
bool capture_is_over(const struct capture *c, const char *uid);
/* Like capture_is_over, but a log that is paused because the server refuses it counts as ended. */
bool capture_is_quiet(const struct capture *c, const char *uid);
/*
 * True if more output of SNAPSHOT's job, which has ended, is expected soon. Call capture_fill
 * first. WANTED: see capture_fill. EARLY: see follow_is_fetching.
 */
bool capture_is_fetching(struct capture *c, const struct spec_job *snapshot, bool wanted,
			 bool early);
/* Stop following the logs of job UID, and free them. */
void capture_forget(struct capture *c, const char *uid);

/*
 * Call this when a reader opens the log KEY of SNAPSHOT, or the merged log (KEY is NULL). If kxfs
 * is removing old output, wait for the end of the removal. Then follow the log. Call DONE(ARG) once
 * all output that was printed before this call is on disk or not available.
 */
void capture_open(struct capture *c, const struct spec_job *snapshot, const char *key, loop_fn done,
		  void *arg);
/* Like capture_open, but wait only for the logs of job UID that kxfs already follows. */
void capture_wait(struct capture *c, const char *uid, loop_fn done, void *arg);

/*
 * Record whether the server is unreachable (AWAY). While it is, failures do not count as refusals.
 * When the server can be reached again, end the pauses of all logs.
 */
void capture_away(struct capture *c, bool away);

struct capture_counts {
	size_t streams; /* logs that kxfs follows now */
	size_t waiting; /* logs that wait for a slot */
};

void capture_count(const struct capture *c, struct capture_counts *ret);
/* True if the server denied this user access to logs, and has not returned a log since. */
bool capture_is_forbidden(const struct capture *c);
