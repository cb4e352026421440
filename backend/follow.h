/* SPDX-License-Identifier: MIT */
/*
 * One container's output in one attempt, from the API server into the spool: from its start to its
 * end, whatever happens to the connection. Asks for timestamps, takes them off again, and after a
 * break goes on behind the last line without loss or doubling. Never pauses a stream; writes to disk
 * run on the pool (rule T7): what a slow disk can't take ends the stream, and is fetched later. What is
 * wrong with a log (a container that waits to start is not) is said in the daemon's messages, once.
 * I/O thread only.
 */
#ifndef KXFS_BACKEND_FOLLOW_H
#define KXFS_BACKEND_FOLLOW_H

#include "backend/http.h"
#include "backend/spool.h"

struct follow;

struct follow_config {
	struct loop *loop;
	struct http *http;
	struct spool_job *spool;
	const char *key;    /* of the log in the spool, which has begun (spool_log_begin) */
	const char *prefix; /* of its lines in the merged log */
	const char *namespace, *pod, *container;
	/*
	 * Containers of this pod are run again when they have ended; runs before this one, and when it
	 * began (ns, as the pod's status says; 0: it has ended, or it is not known).
	 */
	bool reruns;
	unsigned restart;
	int64_t started;
	/*
	 * Somebody waits for what has been printed so far: it is fetched by a request of its own. Else the
	 * stream is opened at once, and what comes first, without a pause, is taken for that.
	 */
	bool first;
	/* All that had been printed by now is in the spool, or can't be had now; at most once. */
	void (*settled)(void *data);
	bool said;  /* that something is wrong has been said before */
	bool again; /* the run has ended, and has been refused before: one refusal more is enough */
	/* Output is lost, or may be, TOTAL times by now (restarts of kxfs included). May be NULL. */
	void (*gap)(void *data, unsigned total);
	/*
	 * It is over: the container has ended and all of it is in the spool (0); or what is left has been
	 * refused so often that it should be asked for later, by another follow (-EAGAIN: TEXT says why); or
	 * nothing more can be had (-ENODATA: it has never printed; -ENOENT: the pod is gone, or -EINVAL: the
	 * run: some of it may be lost). The caller calls spool_log_end.
	 */
	void (*done)(void *data, int err, const char *text);
	void *data;
};

/* CONFIG and its strings are copied. NULL: no memory. */
struct follow *follow_start(const struct follow_config *config);
/*
 * The run has ended, as the pod's status says: what is left is fetched, then it is over. How it can be
 * had: as before (LAST); as the container's previous log, since it runs again (PREVIOUS); not at all,
 * since the pod is gone and another may have its name: nothing is asked for any more, and what still
 * comes from an open stream is the rest (GONE). May be called again as that changes.
 */
enum follow_end { FOLLOW_LAST, FOLLOW_PREVIOUS, FOLLOW_GONE };
void follow_ended(struct follow *f, enum follow_end end);
/* The pod is on its way out: what is left must be fetched soon, no try waits for long any more. */
void follow_hurry(struct follow *f);
/* End now; done() is not called. What came is kept. */
void follow_stop(struct follow *f);

#endif
