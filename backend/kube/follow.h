/* SPDX-License-Identifier: MIT */
/*
 * Copies the output of one run of a container from the API server to a log on disk. While the log
 * has a slot, kxfs sends one request after the other (backend/client/podlog.h). Each request
 * continues after the last byte on disk, so a broken connection neither loses nor duplicates a
 * byte. kxfs pauses a stream that is faster than the disk. If the stream can't be paused, kxfs ends
 * the request, and sends a new one later. I/O thread.
 */
#pragma once

#include <stdatomic.h>

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

/* --- runs: pure functions --- */

/* Where kxfs can get the rest of a run's output. A run only moves down this list. */
enum run_end {
	RUN_RUNNING,  /* from the container's log; the run has not ended */
	RUN_LAST,     /* from the container's log; the run has ended */
	RUN_PREVIOUS, /* from the container's previous log: the container runs again */
	RUN_GONE      /* not available: the pod is gone, or the container has had two later runs */
};

struct run {
	const struct spec_pod_view *pod;
	const struct spec_container_view *container;
	unsigned restart; /* number of runs of this container before this run */
};

/* Return the length of the pod's uid at the beginning of KEY. */
size_t run_pod_len(const char *key);
/* Find the run KEY in POD. Return false if POD is NULL or lacks this run, or KEY is malformed. */
bool run_find(const struct spec_pod_view *pod, const char *key, struct run *ret);
bool run_has_begun(const struct run *run);
enum run_end run_end(const struct run *run);
/* True if the container was started in this run; otherwise it has no output. */
bool run_was_started(const struct run *run);
/* Return how many runs of the container kxfs has missed directly before the run of log I of R. */
unsigned run_missed_before(const struct spec_replica *r, size_t i);

/* --- slots --- */

/*
 * Slots limit how many logs kxfs follows at the same time. The other logs wait in a queue. At most
 * SLOTS_FIRST slots go to logs that kxfs follows only for a reader. At most SLOTS_RETRIED slots go
 * to logs that the server has refused before, unless their pod is being deleted.
 *
 * A log is urgent if its run has ended or its pod is being deleted, because its output may soon be
 * gone. Urgent logs are first in the queue. They may use SLOTS_URGENT extra slots, because programs
 * that run for days may use all normal slots. I/O thread, but any thread may read slots.n.
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
 * The slot of one log. Plain data: callers of the slots_ functions set only FIRST, RETRIED and
 * LEAVING.
 */
struct slot {
	bool first;   /* true while kxfs follows the log only for a waiting reader */
	bool retried; /* true if the server has refused the log; don't change it in SLOT_TAKEN */
	bool leaving; /* true if the log's pod is being deleted */
	bool urgent;
	enum slot_state state;
	struct slot *prev, *next;
};

struct slots {
	size_t max;
	struct slot *queue; /* has the urgent logs first */
	size_t n_first;	    /* logs that have a slot and whose FIRST is true */
	size_t n_retried;
	atomic_size_t n[SLOT_STATES];
};

void slots_set(struct slots *all, struct slot *s, enum slot_state state);
void slots_hasten(struct slots *all, struct slot *s);
/* Clear FIRST of S. Call this when the readers have got the output that they waited for. */
void slots_arrived(struct slots *all, struct slot *s);
/* Give a slot to the first log that is allowed to have one. Return its slot, or NULL. */
struct slot *slots_next(struct slots *all);

/* --- a log --- */

struct follow;

/* Data that all logs of a mount share. It must outlive them. */
struct follow_context {
	struct loop *loop;
	struct http *http;
	const char *namespace;
	struct slots slots;
	bool away; /* true if the server can't be reached; failures then do not count as refusals */
	/*
	 * Called when follow_state would return a new result for the log with this follow_run.data.
	 * Must not call functions of follow.
	 */
	void (*changed)(void *data);
	/*
	 * Called with the server's TEXT when the server denies this user access to a log. Called
	 * with NULL when the server returns a log. May be NULL.
	 */
	void (*forbidden)(void *data, const char *text);
	void *data;    /* the argument of FORBIDDEN */
	bool stopping; /* true if kxfs must not give a slot to any log */
};

struct follow_run {
	const char *job;
	struct output_job *output;
	const char *key, *prefix;	   /* see output_log_begin */
	const char *pod, *uid, *container; /* names of pod and container; the pod's uid */
	unsigned restart;		   /* number of runs of this container before this run */
	bool reruns; /* true if the kubelet restarts ended containers of this pod */
	/*
	 * True if kxfs follows the log only for a reader. The first request is then only for the
	 * existing output. If FIRST is false, the first request is a stream. The output that
	 * arrives before the stream is first silent then counts as existing output.
	 */
	bool first;
	unsigned gaps;	 /* number of known gaps in the output of this run */
	unsigned missed; /* number of earlier runs that kxfs never saw */
	bool lost_end;	 /* true if one of the GAPS follows the last byte of the log */
	void *data;
};

/* Create a log that waits for a slot. Call follow_fill afterwards. RUN's strings are copied. */
struct follow *follow_new(struct follow_context *context, const struct follow_run *run);
/* Cancel F's request, call the waiting readers back, and free F. Written bytes remain on disk. */
void follow_free(struct follow *f);
/* Give free slots to waiting logs. Call this after follow_new and follow_free. */
void follow_fill(struct follow_context *context);

/* Record that the run has the state END. Ignore END if an earlier call had a later state. */
void follow_ended(struct follow *f, enum run_end end);
/* Record that the pod is being deleted. From now on requests have shorter timeouts. */
void follow_leaving(struct follow *f);
/*
 * Record whether the job has finished (OVER). This call may precede follow_ended, because job and
 * pod events come from different watches. OUTLIVED is true if pods may outlive jobs of this kind,
 * for example the pods of a RayJob's cluster. If OUTLIVED is true, and the run continues a minute
 * after the job's end, kxfs fetches the existing output, and ends the log. But if the pod is being
 * deleted, kxfs follows the log until the run ends.
 */
void follow_job_ended(struct follow *f, bool over, bool outlived);
/* If F is PAUSED, end the pause. OPENED is true if a reader waits for the log's output. */
void follow_resume(struct follow *f, bool opened);
/*
 * Call this when kxfs also follows a later run of F's container. If the rest of F arrives soon, the
 * merged log shows it before the output of the later run.
 */
void follow_precedes(struct follow *f);
/*
 * Call DONE(ARG) once all output that was printed before this call is on disk or known to be lost.
 * If the run has ended, this means all of its output. After a time limit, call DONE in any case.
 */
void follow_wait(struct follow *f, loop_fn done, void *arg);

/*
 * True if more output is expected soon. Output is expected for a few seconds after the end of the
 * run was reported, and after each byte that arrives later. If EARLY is true, output is expected at
 * any time. Always false if the log has ended, if the server refuses it, or if it can't be written
 * to disk.
 */
bool follow_is_fetching(const struct follow *f, bool early);

const char *follow_key(const struct follow *f); /* valid as long as F */

struct follow_state {
	bool over;     /* kxfs has ended the log */
	bool complete; /* OVER, and no output is missing except at the GAPS */
	bool outlived; /* OVER, but the run had not ended a minute after the job */
	bool refused;  /* paused after a refusal; readers see the log as ended */
	bool waiting;  /* true if the log waits for a slot, the server or the disk */
	int disk;      /* the negative errno if writing fails; 0 if it works */
	unsigned gaps; /* number of places where output is, or may be, missing */
	bool lost_end; /* true if the last gap follows the last byte of the log */
};

struct follow_state follow_state(const struct follow *f);
