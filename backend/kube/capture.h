/* SPDX-License-Identifier: MIT */
/*
 * Copies the logs of containers to disk while the containers print them. If a job is captured, kxfs
 * follows its logs from the start of each container. kxfs follows any other log from the first time
 * that a reader opens it. While a reader has a job's merged log open, kxfs also follows the logs of
 * the job that begin later. This object owns the logs of a job until capture_forget. Callers
 * identify the job by its uid. I/O thread, except capture_count.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct capture;

struct capture_events {
	/*
	 * Prepare the output folder of job UID. Return 0, or -EBUSY if another job has the same
	 * key. Return -EINPROGRESS if kxfs is removing old output. In this case, call
	 * capture_update when the removal has ended.
	 */
	int (*claim)(void *data, const char *uid);
	/*
	 * Return the pod whose own uid is the N bytes at POD, and whose logs belong to job UID.
	 * Return NULL if the cluster does not have this pod any more.
	 */
	const struct spec_pod_view *(*pod)(void *data, const char *uid, const char *pod, size_t n);
	/*
	 * Called when capture_fill would mark the snapshot of job UID differently than before, or
	 * when all logs of job UID have ended. Must not call functions of capture.
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
	 * True if the mount has an archive. Each captured job then needs an output folder, because
	 * kxfs keeps only jobs with such a folder until they are archived.
	 */
	bool archives;
	/*
	 * Called with the server's refusal TEXT when the server denies this user access to logs.
	 * Called with NULL when the server returns a log again.
	 */
	void (*forbidden)(void *data, const char *text);
	void *data;
};

struct capture *capture_new(const struct capture_config *config);
/* Call this once, before any job is published. */
void capture_set_events(struct capture *c, const struct capture_events *events);
/* Stop following all logs. */
void capture_stop(struct capture *c);
/* Call this after capture_stop, or if no log was followed. C may be NULL. */
void capture_free(struct capture *c);

/* --- jobs that are published --- */

/*
 * Call this before SNAPSHOT is published. Notify each followed log whose container has ended.
 * WANTED is true if the job is captured. In this case, or if a reader has the merged log open, also
 * start to follow the logs of containers that have started. OUTLIVED has the same meaning as in
 * follow_job_ended.
 */
void capture_update(struct capture *c, const struct spec_job *snapshot, bool wanted, bool outlived);
/*
 * Mark in SNAPSHOT which logs are complete, which logs are waiting, and where output is missing.
 * WANTED has the same meaning as in capture_update. DROPPED is true if the job's output was removed
 * to free space. UNMERGED is true if an earlier mount may have ended before it had added all
 * captured lines to the job's merged log. In this case, if the rest of a log can't be fetched any
 * more, add the log's lines on disk to the merged log.
 */
void capture_fill(struct capture *c, struct spec_job *snapshot, bool wanted, bool dropped,
		  bool unmerged);
/*
 * Add the lines that an earlier mount did not add to the merged log of SNAPSHOT: those of each log
 * that is complete or whose end is lost. GONE is true if the cluster no longer has the job. In this
 * case add the missing lines of all logs of the job, and forget the job.
 */
void capture_merge_again(struct capture *c, const struct spec_job *snapshot, bool gone);
/* True if this mount has opened the output of job UID. */
bool capture_has(const struct capture *c, const char *uid);
/* True if all followed logs of job UID have ended. */
bool capture_is_over(const struct capture *c, const char *uid);
/* Like capture_is_over, but a log that is paused because the server refuses it counts as ended. */
bool capture_is_quiet(const struct capture *c, const char *uid);
/*
 * True if more output of SNAPSHOT's job is expected soon. Call this only after capture_fill for
 * SNAPSHOT, and only if the job has ended. WANTED has the same meaning as in capture_update, and
 * EARLY has the same meaning as in follow_is_fetching.
 */
bool capture_is_fetching(struct capture *c, const struct spec_job *snapshot, bool wanted,
			 bool early);
/* Stop following the logs of job UID, and free them. */
void capture_forget(struct capture *c, const char *uid);

/* --- readers --- */

/*
 * Call this when a reader opens a log of SNAPSHOT. KEY is the key of the log; NULL means the merged
 * log. If kxfs is removing old output, wait for the end of the removal. Then start to follow the
 * log. Call DONE(ARG) once the log on disk has all available output that was printed before this
 * call.
 */
void capture_open(struct capture *c, const struct spec_job *snapshot, const char *key, loop_fn done,
		  void *arg);
/*
 * Call DONE(ARG) once the followed logs of job UID on disk have all available output that was
 * printed before this call.
 */
void capture_wait(struct capture *c, const char *uid, loop_fn done, void *arg);

/* --- the server --- */

/*
 * Record whether the server is unreachable (AWAY). While the server is unreachable, failures do not
 * count as refusals. When the server can be reached again, end the pauses of all logs.
 */
void capture_away(struct capture *c, bool away);

struct capture_counts {
	size_t streams; /* number of logs that kxfs follows now */
	size_t waiting; /* number of logs that wait for a slot */
};

void capture_count(const struct capture *c, struct capture_counts *ret);
/*
 * True if the server has denied this user access to logs, and has not returned a log since the last
 * refusal.
 */
bool capture_is_forbidden(const struct capture *c);
