/* SPDX-License-Identifier: MIT */
/*
 * One captured log: copies the output of one run of a container from the API server to disk, from the time when the
 * log is first needed until its job is forgotten. While the log has a slot, it sends one request after the other
 * (backend/client/podlog.h). Each request continues after the last byte of the log on disk, so no byte is lost or
 * doubled when the connection breaks. A stream that is faster than the disk is paused. If too many streams are
 * paused, the request is ended, and sent again later. A problem with a log is reported once, and its end once more.
 * Warnings are only about lost output and failing disks. I/O thread.
 */
#pragma once

#include <stdatomic.h>

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

/* --- runs: each log has the output of one run of a container; pure functions --- */

/*
 * How the server makes the rest of a run's output available. RUN_RUNNING: as the container's log; the run has not
 * ended. RUN_LAST: as the container's log; the run has ended. RUN_PREVIOUS: as the container's previous log, since
 * the container runs again. RUN_GONE: not at all, since the pod is gone, or the container has had more than one
 * later run. A run changes only to later values.
 */
enum run_end { RUN_RUNNING, RUN_LAST, RUN_PREVIOUS, RUN_GONE };

struct run {
	const struct spec_pod_view *pod;
	const struct spec_container_view *container;
	unsigned restart; /* number of earlier runs of the container */
};

/* Return the length of the pod's uid at the beginning of KEY. */
size_t run_pod_len(const char *key);
/* Find the run KEY in POD (may be NULL). Return false if the pod has no such container, or KEY is malformed. */
bool run_find(const struct spec_pod_view *pod, const char *key, struct run *ret);
bool run_has_begun(const struct run *run);
enum run_end run_end(const struct run *run);
/* True if the container was started in this run. A container that could not be started has no output. */
bool run_was_started(const struct run *run);
/* Return how many runs of the container, just before the run of log I of R, were never seen. */
unsigned run_missed_before(const struct spec_replica *r, size_t i);

/* --- slots --- */

/*
 * Slots limit how many logs are followed at the same time; the other logs wait in a queue. There are as many slots
 * as file descriptors allow. At most SLOTS_FIRST of them go to logs that only a reader has requested. A log whose
 * run or pod has ended is urgent, because its output may soon be gone. An urgent log moves to the front of the
 * queue, and may use one of SLOTS_URGENT extra slots, because programs that run for days may use all others. At
 * most SLOTS_RETRIED slots go to logs that the server has refused before, not counting logs whose pod is being
 * deleted. One thread, except for the counts.
 */
#define SLOTS_URGENT  64 /* extra slots for urgent logs */
#define SLOTS_FIRST   8
#define SLOTS_RETRIED 8

enum slot_state {
	SLOT_NONE,
	SLOT_QUEUED,
	SLOT_TAKEN,
	SLOT_PAUSED, /* the log has no slot, and will be queued again */
	SLOT_STATES
};

/*
 * The slot of one log. Plain data: the owner sets the first three members, and the slots_ functions set the others.
 */
struct slot {
	bool first; /* only a reader has requested the log, and that reader waits */
	/* the server has refused the log before; set this only while the log has no slot */
	bool retried;
	bool leaving; /* the log's pod is being deleted */
	bool urgent;  /* slots_hasten was called */
	enum slot_state state;
	struct slot *prev, *next; /* of the queue */
};

struct slots {
	size_t max;
	struct slot *queue; /* urgent logs first */
	size_t n_first;	    /* number of logs with a slot that are FIRST */
	size_t n_retried;
	atomic_size_t n[SLOT_STATES];
};

void slots_set(struct slots *all, struct slot *s, enum slot_state state);
/* Make S urgent. */
void slots_hasten(struct slots *all, struct slot *s);
/* The output that readers of S waited for has arrived: S is not FIRST any more. */
void slots_arrived(struct slots *all, struct slot *s);
/*
 * Give a slot to the next log that may have one, and return its struct slot; NULL if no waiting log may have one.
 */
struct slot *slots_next(struct slots *all);

/* --- a log --- */

struct follow;

/* The data that all logs of a mount share. It must outlive them. */
struct follow_context {
	struct loop *loop;
	struct http *http;
	const char *namespace;
	struct slots slots;
	bool away; /* the server can't be reached, so failures do not count as refusals */
	/*
	 * The result of follow_state has changed for the log with this DATA (follow_run.data). Must not call
	 * functions of follow.
	 */
	void (*changed)(void *data);
	/*
	 * The user may not read logs, and TEXT is the server's refusal; or TEXT is NULL, since the server has
	 * returned a log again. May be NULL.
	 */
	void (*forbidden)(void *data, const char *text);
	void *data;    /* for FORBIDDEN */
	bool stopping; /* no log gets a slot any more */
};

struct follow_run {
	const char *job; /* the name, for messages */
	struct output_job *output;
	const char *key, *prefix;	   /* of the log, for which output_log_begin was called */
	const char *pod, *uid, *container; /* UID: of the pod */
	unsigned restart;		   /* number of earlier runs of the container */
	/* containers of this pod are restarted when they have ended */
	bool reruns;
	/*
	 * Only a reader has requested the log: a request of its own fetches the existing output first. If false,
	 * the stream is opened immediately, and its bytes up to the first pause count as existing output.
	 */
	bool first;
	unsigned gaps;	 /* number of known gaps in the output of this run */
	unsigned missed; /* number of earlier runs that were never seen */
	bool lost_end;	 /* one of the GAPS is after the end of the log */
	void *data;
};

/*
 * Create a log that waits for a slot. Call follow_fill afterwards. RUN and its strings are copied. Free the log
 * with follow_free.
 */
struct follow *follow_new(struct follow_context *context, const struct follow_run *run);
/* Free F and cancel its request. Bytes that have arrived stay on disk. Waiting readers are called. */
void follow_free(struct follow *f);
/* Give free slots to waiting logs, and start these logs. Call this after follow_new and follow_free. */
void follow_fill(struct follow_context *context);

/* The pod's status shows END for the run. A value before an earlier END is ignored. */
void follow_ended(struct follow *f, enum run_end end);
/* The pod is being deleted, so requests get shorter timeouts. */
void follow_leaving(struct follow *f);
/*
 * OVER: the job has finished. Job and pod events come from different watches, so this may arrive before the events
 * of the pods. OUTLIVED: pods of this kind may continue to run, as the pods of a RayJob's cluster do. Then the log
 * ends a minute after the job, unless the pod is being deleted.
 */
void follow_job_ended(struct follow *f, bool over, bool outlived);
/* End the pause of F. OPENED: a reader opens the log and waits for its output. */
void follow_resume(struct follow *f, bool opened);
/*
 * Another run of the container follows the run of F. If the rest of F arrives soon, it precedes that run's output
 * in the merged log.
 */
void follow_precedes(struct follow *f);
/*
 * Call DONE(ARG) once all output printed before this call is on disk or known to be lost. If the run has ended, that
 * means all of its output, up to a time limit.
 */
void follow_wait(struct follow *f, loop_fn done, void *arg);

/*
 * True if more output of this log is expected soon. If EARLY: true because the end of the run may not be reported
 * yet. Otherwise: true if in the last seconds the run has ended or bytes have arrived. Always false if the server
 * refuses the log, or the log can't be written.
 */
bool follow_is_fetching(const struct follow *f, bool early);

const char *follow_key(const struct follow *f); /* valid as long as F */

struct follow_state {
	bool over;
	bool complete; /* OVER, and no output is missing except at the GAPS */
	bool outlived; /* OVER because the run continued for a minute after the end of the job */
	/* the log is paused because the server has refused it; its readers see it as ended */
	bool refused;
	bool waiting;  /* the log waits for a slot, for the server or for the disk */
	int disk;      /* the negative errno with which writing fails now; 0 if it does not fail */
	unsigned gaps; /* number of gaps: places where output is, or may be, missing */
	bool lost_end; /* the last gap is after the end of the log */
};

struct follow_state follow_state(const struct follow *f);
