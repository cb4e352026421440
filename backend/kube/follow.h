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

#include "backend/client/http.h"
#include "backend/kube/slots.h"
#include "backend/kube/run.h"
#include "backend/output/output.h"

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
	/* slots_next may return a log. */
	void (*slot_freed)(void *slot_data);
	/*
	 * The user may not read logs: TEXT is the server's refusal, or NULL once the server returns
	 * a log. This callback may be NULL.
	 */
	void (*forbidden)(void *slot_data, const char *text);
	void *slot_data;
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

/* Create a log that waits for a slot. RUN and its strings are copied. */
struct follow *follow_new(struct follow_context *context, const struct follow_run *run);
/* End F: nothing more is requested, and what has arrived stays on disk. Waiting readers are called. */
void follow_free(struct follow *f);
/* F has got a slot: it was the data of what slots_next returned. */
void follow_begin(struct follow *f);

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
