/* SPDX-License-Identifier: MIT */
/*
 * Copies the output of one run of a container from the API server to a log on disk. A follow begins
 * when the log is first needed, and ends when the job is forgotten. While the log has a slot, it
 * sends one request after the other (backend/client/podlog.h). Each request continues after the
 * last byte of the log on disk, so a broken connection neither loses nor duplicates a byte. If a
 * stream is faster than the disk, kxfs pauses the stream. If too many streams are paused, kxfs ends
 * the request, and sends it again later. kxfs reports the beginning and the end of each problem
 * with a log once. It warns only of lost output and of failing disks. I/O thread.
 */
#pragma once

#include <stdatomic.h>

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

/* --- runs: pure functions --- */

/*
 * Where kxfs can get the rest of a run's output. RUN_RUNNING: from the container's log, and the run
 * has not ended. RUN_LAST: from the container's log, and the run has ended. RUN_PREVIOUS: from the
 * container's previous log, because the container runs again. RUN_GONE: from nowhere, because the
 * pod is gone, or because the container has had more than one later run. The state of a run only
 * moves forward, in the order of these values.
 */
enum run_end { RUN_RUNNING, RUN_LAST, RUN_PREVIOUS, RUN_GONE };

struct run {
	const struct spec_pod_view *pod;
	const struct spec_container_view *container;
	unsigned restart; /* number of runs of this container before this run */
};

/* Return the length of the pod's uid at the beginning of KEY. */
size_t run_pod_len(const char *key);
/*
 * Find the run KEY in POD (may be NULL). Return false if POD has no such run, or KEY is malformed.
 */
bool run_find(const struct spec_pod_view *pod, const char *key, struct run *ret);
bool run_has_begun(const struct run *run);
enum run_end run_end(const struct run *run);
/* True if the container was started in this run; otherwise it has no output. */
bool run_was_started(const struct run *run);
/*
 * Return the number of runs of the container between log I of R and the log before it that kxfs
 * never saw.
 */
unsigned run_missed_before(const struct spec_replica *r, size_t i);

/* --- slots --- */

/*
 * Slots limit how many logs kxfs follows at the same time. The other logs wait in a queue. The
 * number of slots depends on the limit of file descriptors. At most SLOTS_FIRST slots go to logs
 * that only a reader has requested. At most SLOTS_RETRIED slots go to logs that the server has
 * refused before; logs whose pod is being deleted do not count.
 *
 * A log is urgent if its run has ended or its pod is being deleted, because its output may soon be
 * gone. An urgent log moves to the front of the queue. It may use one of SLOTS_URGENT extra slots,
 * because programs that run for days may use all normal slots. Only one thread may use slots, but
 * any thread may read N.
 */
#define SLOTS_URGENT  64 /* extra slots for urgent logs */
#define SLOTS_FIRST   8
#define SLOTS_RETRIED 8

enum slot_state {
	SLOT_NONE,
	SLOT_QUEUED,
	SLOT_TAKEN,
	SLOT_PAUSED, /* the log has no slot now, but will be queued again */
	SLOT_STATES
};

/*
 * The slot of one log. Plain data: the caller of the slots_ functions sets the first three members.
 * These functions set the others, and slots_arrived clears FIRST.
 */
struct slot {
	bool first; /* true while a reader waits for the log and nothing else has requested it */
	/* true if the server has refused the log before; set only while it has no slot */
	bool retried;
	bool leaving; /* true if the log's pod is being deleted */
	bool urgent;  /* true if slots_hasten was called */
	enum slot_state state;
	struct slot *prev, *next; /* neighbours in the queue */
};

struct slots {
	size_t max;
	struct slot *queue; /* has the urgent logs first */
	size_t n_first;	    /* number of logs that have a slot and whose FIRST is true */
	size_t n_retried;
	atomic_size_t n[SLOT_STATES];
};

void slots_set(struct slots *all, struct slot *s, enum slot_state state);
/* Make S urgent. */
void slots_hasten(struct slots *all, struct slot *s);
/* Clear FIRST of S. Call this when the readers have got the output that they waited for. */
void slots_arrived(struct slots *all, struct slot *s);
/* Give a slot to the first log that is allowed to have one. Return its slot, or NULL. */
struct slot *slots_next(struct slots *all);

/* --- a log --- */

struct follow;

/* The data that all logs of a mount share. The data must outlive the logs. */
struct follow_context {
	struct loop *loop;
	struct http *http;
	const char *namespace;
	struct slots slots;
	bool away; /* true if the server can't be reached; failures then do not count as refusals */
	/*
	 * Called when follow_state would return a new result for a log. DATA is follow_run.data of
	 * this log. Must not call functions of follow.
	 */
	void (*changed)(void *data);
	/*
	 * Called with the server's refusal TEXT if the server denies this user access to logs.
	 * Called with NULL if the server has returned a log. May be NULL.
	 */
	void (*forbidden)(void *data, const char *text);
	void *data;    /* the argument of FORBIDDEN */
	bool stopping; /* true if kxfs must not give a slot to any log */
};

struct follow_run {
	const char *job; /* the name of the job, for messages */
	struct output_job *output;
	/* KEY and PREFIX are arguments of output_log_begin. */
	const char *key, *prefix;
	/* names of the pod and the container; UID is the pod's uid */
	const char *pod, *uid, *container;
	unsigned restart; /* number of runs of this container before this run */
	/* true if the kubelet restarts the containers of this pod after they have ended */
	bool reruns;
	/*
	 * True if only a reader has requested the log. The first request then returns only the
	 * existing output. Otherwise the first request is a stream, and the bytes that arrive
	 * before the stream is first silent count as existing output.
	 */
	bool first;
	unsigned gaps;	 /* number of known gaps in the output of this run */
	unsigned missed; /* number of earlier runs that kxfs never saw */
	bool lost_end;	 /* true if one of the GAPS follows the last byte of the log */
	void *data;
};

/*
 * Create a log, which waits for a slot. Call follow_fill afterwards. RUN and its strings are
 * copied. Free the log with follow_free.
 */
struct follow *follow_new(struct follow_context *context, const struct follow_run *run);
/*
 * Cancel the request of F, call the callbacks of the waiting readers, and free F. The bytes that
 * were written remain on disk.
 */
void follow_free(struct follow *f);
/* Give free slots to waiting logs. Call this after follow_new and follow_free. */
void follow_fill(struct follow_context *context);

/*
 * Record that the run is in the state END, according to the status of its pod. Ignore END if an
 * earlier call had a later END.
 */
void follow_ended(struct follow *f, enum run_end end);
/* Record that the pod is being deleted. From now on requests have shorter timeouts. */
void follow_leaving(struct follow *f);
/*
 * Record whether the job has finished (OVER). Job and pod events come from different watches, so
 * this call may precede follow_ended. OUTLIVED is true if pods of this kind may continue to run
 * after the job, as the pods of a RayJob's cluster do. In this case kxfs fetches the existing output
 * a minute after the job and ends the log, unless the pod is being deleted.
 */
void follow_job_ended(struct follow *f, bool over, bool outlived);
/* If F is PAUSED, end the pause. OPENED is true if a reader waits for the log's output. */
void follow_resume(struct follow *f, bool opened);
/*
 * Let the merged log show the rest of F before the output of a later run of the container, if the
 * rest arrives soon. Call this when kxfs also follows that later run.
 */
void follow_precedes(struct follow *f);
/*
 * Call DONE(ARG) once all output that was printed before this call is on disk or known to be lost.
 * If the run has ended, wait for all output of the run, but only up to a time limit.
 */
void follow_wait(struct follow *f, loop_fn done, void *arg);

/*
 * True if more output of this log is expected soon: the run has ended, and its end or its last byte
 * arrived in the last seconds. If EARLY is true, always expect more output, because kxfs may not
 * know yet that the run has ended. Always false if the log has ended, if the server refuses it, or
 * if it can't be written.
 */
bool follow_is_fetching(const struct follow *f, bool early);

const char *follow_key(const struct follow *f); /* valid as long as F */

struct follow_state {
	bool over;
	bool complete; /* true if OVER is true and no output is missing except at the GAPS */
	/* true if OVER is true although the run had not ended a minute after the job */
	bool outlived;
	/* true if the log is paused after a refusal; readers see it as ended */
	bool refused;
	bool waiting;  /* true if the log waits for a slot, for the server or for the disk */
	int disk;      /* the negative errno if writing fails; 0 if it works */
	unsigned gaps; /* number of places where output is missing or may be missing */
	bool lost_end; /* true if the last gap follows the last byte of the log */
};

struct follow_state follow_state(const struct follow *f);
