/* SPDX-License-Identifier: MIT */
/*
 * One captured log: copies the output of one run of a container from the API server to disk, from the first interest
 * in it until its job is forgotten. While it has a slot, it sends one request after the other
 * (backend/client/podlog.h); each continues after the last byte of the log, without loss or doubling, whatever
 * happens to the connection. A stream that is faster than the disk is paused; if too many are, it is ended and
 * requested again. Trouble with a log is logged once, and once more when it is over. Warnings are only about lost
 * output and a disk that fails. I/O thread.
 */
#pragma once

#include <stdatomic.h>

#include "backend/client/http.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

/* --- the run of a container that a log is of; pure functions --- */

/*
 * How the rest of a run's output is available. RUN_RUNNING: as the container's log; RUN_LAST: the same, and it has
 * ended; RUN_PREVIOUS: as the container's previous log, since the container runs again; RUN_GONE: not at all, since
 * the pod is gone, or more runs have followed. A run only moves forward.
 */
enum run_end { RUN_RUNNING, RUN_LAST, RUN_PREVIOUS, RUN_GONE };

struct run {
	const struct spec_pod_view *pod;
	const struct spec_container_view *container;
	unsigned restart; /* runs of the container before this one */
};

/* Return the length of the pod's uid at the beginning of KEY. */
size_t run_pod_len(const char *key);
/* Find the run KEY in POD (may be NULL). False: the pod has no such container, or KEY is malformed. */
bool run_find(const struct spec_pod_view *pod, const char *key, struct run *ret);
bool run_has_begun(const struct run *run);
enum run_end run_end(const struct run *run);
/* True if the container was started in this run; one that could not be started has no output. */
bool run_was_started(const struct run *run);
/* Return how many runs of its container before log I of R were never seen. */
unsigned run_missed_before(const struct spec_replica *r, size_t i);

/* --- slots --- */

/*
 * Which of the waiting logs may be followed now. There are as many slots as file descriptors allow. At most
 * SLOTS_FIRST of them go to logs that only a reader has requested. A log whose run or pod has ended is urgent, because
 * it may soon be gone: it moves to the front of the queue, and there are SLOTS_URGENT extra slots for such logs,
 * because programs that run for days may have all others. At most SLOTS_RETRIED slots go to logs that the server has
 * refused before, not counting those whose pod is being deleted. One thread, except for the counts.
 */
#define SLOTS_URGENT  64 /* extra slots for urgent logs */
#define SLOTS_FIRST   8
#define SLOTS_RETRIED 8

enum slot_state {
	SLOT_NONE,
	SLOT_QUEUED,
	SLOT_TAKEN,
	SLOT_PAUSED, /* it has no slot, and will be queued again */
	SLOT_STATES
};

/* The slot of one log. Plain data: the owner sets the first three members, and slots_ functions the others. */
struct slot {
	bool first;   /* only a reader has requested the log, and waits */
	bool retried; /* the log was refused before; change this only while it has no slot */
	bool leaving; /* its pod is being deleted */
	bool urgent;  /* slots_hasten was called */
	enum slot_state state;
	struct slot *prev, *next; /* of the queue */
};

struct slots {
	size_t max;
	struct slot *queue; /* urgent logs first */
	size_t n_first;	    /* how many logs with a slot are FIRST */
	size_t n_retried;
	atomic_size_t n[SLOT_STATES];
};

void slots_set(struct slots *all, struct slot *s, enum slot_state state);
/* Make S urgent. */
void slots_hasten(struct slots *all, struct slot *s);
/* The existing output of S has arrived: no reader waits for it any more. */
void slots_arrived(struct slots *all, struct slot *s);
/* Give a slot to the next log that may have one, and return it; NULL if there is none. */
struct slot *slots_next(struct slots *all);

/* --- a log --- */

struct follow;

/* What all logs of a mount share; it must live as long as they do. */
struct follow_context {
	struct loop *loop;
	struct http *http;
	const char *namespace;
	struct slots slots;
	bool away; /* the server can't be reached: failures are not refusals */
	/* follow_state of the log with this DATA has changed. Must not call back. */
	void (*changed)(void *data);
	/*
	 * The user may not read logs: TEXT is the server's refusal, or NULL once the server returns
	 * a log. This callback may be NULL.
	 */
	void (*forbidden)(void *data, const char *text);
	void *data;    /* for FORBIDDEN */
	bool stopping; /* no log gets a slot any more */
};

struct follow_run {
	const char *job; /* the name, for messages */
	struct output_job *output;
	const char *key, *prefix;	   /* of the log, which output_log_begin has begun */
	const char *pod, *uid, *container; /* UID: of the pod */
	unsigned restart;		   /* number of earlier runs of the container */
	bool reruns;			   /* containers of this pod that have ended run again */
	/*
	 * Only a reader has asked for the log: existing output is fetched by a request of its own. Otherwise the
	 * stream is opened immediately, and its bytes up to the first pause count as existing output.
	 */
	bool first;
	unsigned gaps;	 /* known gaps in the output of this run, */
	unsigned missed; /* and the number of earlier runs that were never seen */
	bool lost_end;	 /* one of the GAPS is after the end of the log */
	void *data;
};

/* Create a log that waits for a slot, until the next follow_fill. RUN and its strings are copied. */
struct follow *follow_new(struct follow_context *context, const struct follow_run *run);
/* End F: nothing more is requested, and what has arrived stays on disk. Waiting readers are called. */
void follow_free(struct follow *f);
/* Give free slots to waiting logs, and begin these. Call this after follow_new and follow_free. */
void follow_fill(struct follow_context *context);

/* The run has ended as END, according to the pod's status. An END before an earlier one is ignored. */
void follow_ended(struct follow *f, enum run_end end);
/* The pod is being deleted, so requests get shorter timeouts. */
void follow_leaving(struct follow *f);
/*
 * OVER: the job has finished. Job and pod events come from different watches, so this may arrive before the pods' own.
 * OUTLIVED: pods of this kind may run on, as those of a RayJob's cluster do; then the log ends a minute later, unless
 * the pod is being deleted.
 */
void follow_job_ended(struct follow *f, bool over, bool outlived);
/* End the pause of F. OPENED: because a reader opens it and waits. */
void follow_resume(struct follow *f, bool opened);
/* In the merged log the rest of F, if it arrives soon, precedes the log of the next run. */
void follow_precedes(struct follow *f);
/*
 * Call DONE(ARG) once all output printed before this call is on disk or known to be lost. If the run has ended, that
 * means all of its output, up to a time limit.
 */
void follow_wait(struct follow *f, loop_fn done, void *arg);

/*
 * True if more of the log is expected soon: EARLY, because the end of the run may not be reported yet; later, if the
 * run has ended, or bytes have arrived, in the last seconds. False for a log that the server refuses or that can't be
 * written.
 */
bool follow_is_fetching(const struct follow *f, bool early);

const char *follow_key(const struct follow *f); /* valid as long as F */

struct follow_state {
	bool over;
	bool complete; /* OVER, and nothing but GAPS is missing */
	bool outlived; /* OVER, because its run continued for a minute after the end of the job */
	bool refused; /* it is paused because the server has refused it; its readers see it as ended */
	bool waiting;  /* for a slot, for the server or for the disk */
	int disk;      /* why it can't be written now, a negative errno; 0 if it can */
	unsigned gaps; /* places where output is, or may be, missing; */
	bool lost_end; /* the last one is after the end of the log */
};

struct follow_state follow_state(const struct follow *f);
