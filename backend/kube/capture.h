/* SPDX-License-Identifier: MIT */
/*
 * Copies the logs of containers to disk while the containers print them. If a job is captured, kxfs
 * follows its logs from the start of each container. kxfs follows any other log from the first time
 * that a reader opens it. This object owns the logs of a job until capture_forget. Callers identify
 * the job by its uid. I/O thread, except capture_count and capture_forbidden.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct capture;

struct capture_events {
	/*
	 * Prepare the output folder of job UID. Return 0, or -EBUSY if another job has the same
	 * key. Return -EINPROGRESS if kxfs is removing old output. The owner calls capture_update
	 * when the removal has ended.
	 */
	int (*claim)(void *data, const char *uid);
	/*
	 * Return the pod that has the N bytes at POD as its own uid, and whose logs belong to job
	 * UID. Return NULL if the cluster does not have this pod any more.
	 */
	const struct spec_pod_view *(*pod)(void *data, const char *uid, const char *pod, size_t n);
	/*
	 * Called when capture_fill would give a new result for job UID, or when all logs of job UID
	 * have ended. This callback must not call functions of capture.
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
	 * True if the mount has an archive. Each captured job then needs an output folder, so that
	 * kxfs keeps the job until it is archived.
	 */
	bool archives;
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
 * Call this before SNAPSHOT is published. Notify each followed log whose container has ended. If
 * WANTED, the job is captured: also start to follow the logs of containers that have started.
 * OUTLIVED has the same meaning as in follow_job_ended.
 */
void capture_update(struct capture *c, const struct spec_job *snapshot, bool wanted, bool outlived);
/*
 * Mark in SNAPSHOT which logs are complete, which logs are waiting, and where output is missing.
 * WANTED has the same meaning as in capture_update. DROPPED: the job's output was removed to free
 * space. UNMERGED: an earlier mount may have ended before it had added all captured lines to the
 * job's merged log. If so, add the missing lines of each log whose end is lost.
 */
void capture_fill(struct capture *c, struct spec_job *snapshot, bool wanted, bool dropped,
		  bool unmerged);
/*
 * An earlier mount ended before it had added all lines to the merged log of SNAPSHOT. Add the
 * missing lines of each log that is complete or whose end is lost. If GONE, the cluster no longer
 * has the job, so add the missing lines of all its logs.
 */
void capture_merge_again(struct capture *c, const struct spec_job *snapshot, bool gone);
/* True if this mount has opened the output of job UID. */
bool capture_has(const struct capture *c, const char *uid);
/* True if all followed logs of job UID have ended. */
bool capture_is_over(const struct capture *c, const char *uid);
/*
 * True if each followed log of job UID has ended, or is paused because the server has refused it.
 * kxfs may retry a paused log later.
 */
bool capture_is_quiet(const struct capture *c, const char *uid);
/*
 * True if more output of SNAPSHOT's job is expected soon. Call this only for a job that has ended,
 * and after capture_fill for SNAPSHOT. WANTED has the same meaning as in capture_update, and EARLY
 * the same as in follow_is_fetching.
 */
bool capture_is_fetching(struct capture *c, const struct spec_job *snapshot, bool wanted,
			 bool early);
/* Stop following the logs of job UID, and free them. */
void capture_forget(struct capture *c, const char *uid);

/* --- readers --- */

/*
 * Call this when a reader opens the log KEY (NULL: the merged log) of SNAPSHOT. If kxfs is removing
 * old output, wait for the end of the removal. Then start to follow the log. Call DONE(ARG) once
 * the log on disk has all output that existed at this call and is available.
 */
void capture_open(struct capture *c, const struct spec_job *snapshot, const char *key, loop_fn done,
		  void *arg);
/*
 * Call DONE(ARG) once the followed logs of job UID have, on disk, all output that existed at this
 * call and is available.
 */
void capture_wait(struct capture *c, const char *uid, loop_fn done, void *arg);

/* --- the server --- */

/*
 * Note whether the server is unreachable (AWAY). While it is, failures do not count as refusals.
 * When the server can be reached again, end the pauses of all logs.
 */
void capture_away(struct capture *c, bool away);

struct capture_counts {
	size_t streams; /* number of logs that kxfs follows now */
	size_t waiting; /* number of logs that wait for a slot */
};

void capture_count(const struct capture *c, struct capture_counts *ret);
/*
 * If the server denies this user access to logs, return the server's error text, malloc'ed. Return
 * NULL if the server never denied access, or if it has returned a log since then. Any thread.
 */
char *capture_forbidden(struct capture *c);
