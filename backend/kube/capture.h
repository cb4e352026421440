/* SPDX-License-Identifier: MIT */
/*
 * Copies the logs of containers to the output on disk, as they are printed. A log of a captured job is followed
 * from the start of its container, any other log from the first time that a reader opens it. Capture owns the logs
 * of a job until capture_forget; other parts name the job by its uid. I/O thread, except capture_count and
 * capture_forbidden.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct capture;

struct capture_events {
	/*
	 * Prepare the output folder of job UID. Return 0; -EINPROGRESS if old output is being removed, after which
	 * the owner calls capture_update; or -EBUSY if another job has the key of this one.
	 */
	int (*claim)(void *data, const char *uid);
	/*
	 * Return the pod of job UID whose own uid is the N bytes at POD; NULL if the cluster no longer has this
	 * pod.
	 */
	const struct spec_pod_view *(*pod)(void *data, const char *uid, const char *pod, size_t n);
	/*
	 * The result of capture_fill for job UID has changed, or all its logs have ended. Must not call functions
	 * of capture.
	 */
	void (*changed)(void *data, const char *uid);
	void *data;
};

struct capture_config {
	struct loop *loop;
	struct http *http;
	struct output *output;
	const char *namespace; /* borrowed */
	/* each captured job needs an output folder, so that the job remains until it is archived */
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
 * SNAPSHOT will be published: follow the logs of containers that have started, and end the logs of containers that
 * have ended. WANTED: follow the logs of this job even if nobody reads them. OUTLIVED: as in follow_job_ended.
 */
void capture_update(struct capture *c, const struct spec_job *snapshot, bool wanted, bool outlived);
/*
 * Set in SNAPSHOT which logs are complete, which wait, and where output is missing. WANTED: as in capture_update.
 * DROPPED: the job's output was removed to free space. UNMERGED: an earlier mount may have ended before it had
 * added all captured lines to the job's merged log. For each log whose end is lost, the missing lines are added
 * now.
 */
void capture_fill(struct capture *c, struct spec_job *snapshot, bool wanted, bool dropped,
		  bool unmerged);
/*
 * An earlier mount has ended before it had added all lines to the merged log of SNAPSHOT. Add the missing lines of
 * all complete logs; if the job is GONE from the cluster, the missing lines of all logs.
 */
void capture_merge_again(struct capture *c, const struct spec_job *snapshot, bool gone);
/* True if this mount has opened the output of job UID. */
bool capture_has(const struct capture *c, const char *uid);
/* True if all captured logs of job UID have ended. */
bool capture_is_over(const struct capture *c, const char *uid);
/* True if no output of job UID is being written. Logs that the server has refused may still be retried. */
bool capture_is_quiet(const struct capture *c, const char *uid);
/*
 * True if more output of SNAPSHOT is expected soon. The job has ended, and capture_fill was called for SNAPSHOT.
 * WANTED: as in capture_update; EARLY: as in follow_is_fetching.
 */
bool capture_is_fetching(struct capture *c, const struct spec_job *snapshot, bool wanted,
			 bool early);
/* Stop following the logs of job UID, and free them. */
void capture_forget(struct capture *c, const char *uid);

/* --- readers --- */

/*
 * A reader opens log KEY (NULL: the merged log) of SNAPSHOT: follow the log, after any old output is removed. Call
 * DONE(ARG) once the log on disk has all output that exists now, or the rest of it is not available.
 */
void capture_open(struct capture *c, const struct spec_job *snapshot, const char *key, loop_fn done,
		  void *arg);
/*
 * Call DONE(ARG) once the followed logs of job UID have all output that exists now, or the rest of it is not
 * available.
 */
void capture_wait(struct capture *c, const char *uid, loop_fn done, void *arg);

/* --- the server --- */

/*
 * Note whether the server can't be reached (AWAY): then failures do not count as refusals. When the server is back,
 * retry refused logs.
 */
void capture_away(struct capture *c, bool away);

struct capture_counts {
	size_t streams; /* number of logs that are followed now */
	size_t waiting; /* number of logs that wait for a slot */
};

void capture_count(const struct capture *c, struct capture_counts *ret);
/*
 * Return the server's refusal, malloc'ed, if the user may not read logs; NULL if the server returned the log of the
 * last request. Any thread.
 */
char *capture_forbidden(struct capture *c);
