/* SPDX-License-Identifier: MIT */
/*
 * One container's output in one attempt, from the API server into the spool: from its start to its
 * end, whatever happens to the connection. Asks for timestamps, takes them off again, and after a
 * break goes on behind the last line without loss or doubling. Never pauses a stream; writes to disk
 * run on the pool (rule T7). I/O thread only.
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
	/* All that had been printed when the stream was opened is in the spool; at most once. */
	void (*settled)(void *data);
	/*
	 * It is over: the container has ended and all of it is in the spool (0), or nothing more can be
	 * had (-ENOENT: the pod is gone; TEXT says what). GAP: bytes or lines known to be lost. The caller
	 * calls spool_log_end.
	 */
	void (*done)(void *data, int err, const char *text);
	void *data;
};

/* NULL: no memory. */
struct follow *follow_start(const struct follow_config *config);
/*
 * The run has ended, as the pod's status says: what is left is fetched, then it is over. How it can be
 * had: as before (LAST); as the container's previous log, since it runs again (PREVIOUS); not at all,
 * since the pod is gone and another may have its name: nothing is asked for any more, and what still
 * comes from an open stream is the rest (GONE). May be called again as that changes.
 */
enum follow_end { FOLLOW_LAST, FOLLOW_PREVIOUS, FOLLOW_GONE };
void follow_ended(struct follow *f, enum follow_end end);
/* End now; done() is not called. What came is kept. */
void follow_stop(struct follow *f);

#endif
