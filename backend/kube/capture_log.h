/* SPDX-License-Identifier: MIT */
/*
 * One container's output in one run, from the API server into its log: from its start to its end, whatever
 * happens to the connection. It makes one attempt after the other (backend/client/podlog.h) and decides what each
 * outcome means; after a break it goes on behind the last byte of the log, without loss or doubling. A stream that is
 * ahead of the disk waits for it; where too many do, it is ended and asked for again. If something is wrong with a log,
 * the daemon's messages say so once, and when it is mended; they warn of what is lost, and of a disk that takes no
 * more. A container that waits to start is nothing wrong. I/O thread only.
 */
#ifndef KXFS_BACKEND_KUBE_CAPTURE_LOG_H
#define KXFS_BACKEND_KUBE_CAPTURE_LOG_H

#include "backend/client/http.h"
#include "backend/output/output.h"

struct capture_log;

struct capture_log_config {
	struct loop *loop;
	struct http *http;
	struct output_job *output;
	const char *key; /* of the log, which has begun (output_log_begin) */
	const char *namespace, *pod, *uid, *container; /* UID is the pod's */
	/*
	 * Containers of this pod are run again when they have ended; and runs before this one.
	 */
	bool reruns;
	unsigned restart;
	/*
	 * Somebody waits for what has been printed so far: it is fetched by a request of its own. Else the
	 * stream is opened at once, and what comes first, without a pause, is taken for that.
	 */
	bool first;
	/*
	 * All that had been printed by now is in the log, or can't be had now; at most once, and once more after
	 * capture_log_ended.
	 */
	void (*arrived)(void *data);
	bool warned; /* a message has said before that something is wrong */
	bool again;  /* the run has ended and was refused before: one more refusal is enough */
	/* Called when output is lost, or may be: TOTAL times by now; GAPS is how often before. */
	unsigned gaps;
	void (*gap)(void *data, unsigned total);
	/*
	 * It is over: the container has ended and all of it is in the log (0); or what is left has been
	 * refused so often that it should be asked for later, by another capture_log (-EAGAIN: TEXT says why); or
	 * nothing more can be had (-ENODATA: it has never printed; -ENOENT: the pod is gone, or -EINVAL: the
	 * run: some of it may be lost). The caller calls output_log_end.
	 */
	void (*done)(void *data, int err, const char *text);
	void *data;
};

/* CONFIG and its strings are copied. */
struct capture_log *capture_log_start(const struct capture_log_config *config);
/*
 * The run has ended, as the pod's status says: what is left is fetched, then it is over. How it can be
 * had: as before (LAST); as the container's previous log, since it runs again (PREVIOUS); not at all,
 * since the pod is gone and another may have its name: nothing is asked for any more, and what still
 * comes from an open stream is the rest (GONE). May be called again as that changes.
 */
enum capture_end { CAPTURE_LAST, CAPTURE_PREVIOUS, CAPTURE_GONE };
void capture_log_ended(struct capture_log *c, enum capture_end end);
/* The pod is on its way out: what is left must be fetched soon, no attempt waits for long any more. */
void capture_log_hurry(struct capture_log *c);
/* End now; done() is not called. What came stays. */
void capture_log_stop(struct capture_log *c);

#endif
