/* SPDX-License-Identifier: MIT */
/*
 * One log that is followed into the spool, from the day that it is wanted until its job is forgotten, and
 * those who wait for it. Private to kube_logs.c and kube_stream.c.
 */
#ifndef KXFS_BACKEND_KUBE_STREAM_H
#define KXFS_BACKEND_KUBE_STREAM_H

#include "backend/follow.h"
#include "backend/kube.h"

enum log_step { LOG_WAITING, LOG_FOLLOWING, LOG_RESTING, LOG_OVER };

/* Somebody who opens a log and waits for what has been printed so far. */
struct log_wait {
	loop_fn done;
	void *arg;
	struct log_wait *next;
};

struct kube_log {
	struct kube_job *job;
	char *key;
	char *prefix; /* of its lines in the merged log */
	char *pod, *container;
	bool reruns; /* as in follow_config, like the next two */
	unsigned restart;
	int64_t started;
	bool ended; /* the run is over, in the way that END says */
	enum follow_end end;
	bool first; /* only a reader asked for it, and it is not settled yet */
	bool settled;
	bool complete;	 /* it is over, and nothing is missing */
	bool hurried;	 /* its pod is at its end */
	bool urgent;	 /* the run, or its pod, is at its end: what is left may soon be gone */
	unsigned missed; /* runs before it of which nothing was seen */
	unsigned gap;	 /* as follow_config.gap */
	bool lost;	 /* its end could not be had */
	bool rested;	 /* between two follows */
	bool refused;	 /* so often that it has rested as one that has ended for its readers */
	unsigned rests;	 /* one after the other */
	struct loop_timer *rest; /* NULL: it does not rest */
	enum log_step step;
	struct follow *follow;
	struct log_wait *waits;
	struct kube_log *prev, *next; /* kube.waiting */
	UT_hash_handle hh;	      /* of the job, by key */
};

/*
 * A log of JOB, in whose spool KEY has begun: it is followed when its turn comes (kube_streams_start).
 * FIRST: only a reader asked for it. NULL: no memory.
 */
struct kube_log *kube_stream_new(struct kube_job *job, const char *key, const char *prefix,
				 const char *pod, const char *container, bool first);
void kube_stream_free(struct kube_log *log);
/* Begin what waits and may. */
void kube_streams_start(struct kube *k);
/* The run is over, and what is left can be had as END says. */
void kube_stream_end(struct kube_log *log, enum follow_end end);
/* Its pod is on its way out. */
void kube_stream_hurry(struct kube_log *log);
/* If it rests, it is asked for when its turn comes; the same for somebody who opens it, and waits. */
void kube_stream_again(struct kube_log *log);
void kube_stream_open(struct kube_log *log);
/* Does it wait for its turn, or to be had at all? */
bool kube_stream_waits(const struct kube_log *log);
/* How often some of it was lost, or may have been. */
uint64_t kube_stream_gaps(const struct kube_log *log);
/* Call DONE when what LOG's container has printed so far is in, or can't be had. */
void kube_stream_wait(struct kube_log *log, loop_fn done, void *arg);

#endif
