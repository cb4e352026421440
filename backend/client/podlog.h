/* SPDX-License-Identifier: MIT */
/*
 * One request to the API server for the log of one run of a container. The owner passes the known
 * end of the log, gets new bytes and then the outcome, and decides about retries. I/O thread only.
 *
 * outcome           reply of the server, or other reason          meaning, or what to do
 * PODLOG_ALL        the stream ended                              the owner has all existing output
 * PODLOG_LESS       the stream ended within the known output      more output may exist
 * PODLOG_OTHER      the stream does not repeat the known end      the known end was rotated away,
 *                                                                 or the stream is of another run
 * PODLOG_AGAIN      too much output before the run was confirmed  retry immediately
 *                   new output was mistaken for known output      retry immediately
 * PODLOG_MESSAGE    a text without a time (TEXT)                  the log can't be read now
 * PODLOG_NEVER_RAN  204                                           the pod was on no node
 * PODLOG_NO_RUN     400 (TEXT)                                    the run does not exist (yet)
 * PODLOG_GONE       404 for the pod (TEXT)                        there is no such pod
 *                   another pod has the pod's name                there is no such pod
 *                   the run is older than the previous run        the run's log no longer exists
 * PODLOG_REFUSED    any other status (TEXT, WAIT_MS)              the server refused the request
 * PODLOG_CUT        a part of the stream (TEXT)                   the connection broke
 * PODLOG_BROKEN     nothing, or too late (TEXT)                   the connection has failed
 * PODLOG_SILENT     the stream is open, but silent                kubelet may not follow the log
 * PODLOG_SLOW       (the owner returned -ENOBUFS)                 the disk does not keep up
 * PODLOG_NEXT_RUN   output of the next run                        retry with PREVIOUS
 * PODLOG_NOT_YET    PREVIOUS, but the run is the newest (TEXT)    retry later
 * PODLOG_WHICH_RUN  the run or the pod is unknown (TEXT, WAIT_MS) retry later
 *
 * The server returns the log of the newest run in the pod that has the requested name now. This may
 * be a pod or a run that the watch has not reported yet. If a line of the requested run is known,
 * the stream must repeat this line. If no line is known, or with FORCE, kxfs holds the output back
 * until the server has confirmed the pod's uid and the container's restart count.
 */
#pragma once

#include "backend/client/http.h"
#include "spec/logline/logline.h"

struct podlog;

enum podlog_outcome {
	PODLOG_ALL,
	PODLOG_LESS,
	PODLOG_OTHER,
	PODLOG_AGAIN,
	PODLOG_MESSAGE,
	PODLOG_NEVER_RAN,
	PODLOG_NO_RUN,
	PODLOG_GONE,
	PODLOG_REFUSED,
	PODLOG_CUT,
	PODLOG_BROKEN,
	PODLOG_SILENT,
	PODLOG_SLOW,
	PODLOG_NEXT_RUN,
	PODLOG_NOT_YET,
	PODLOG_WHICH_RUN,
};

struct podlog_result {
	enum podlog_outcome outcome;
	const char *text; /* for people; borrowed, never NULL */
	unsigned wait_ms; /* Retry-After; 0 if none */
	bool more;	  /* the owner got new output */
	bool begun;	  /* the server has replied with 2xx */
	uint64_t open_ms; /* how long the stream was open after BEGUN */
	/* the user is not allowed to read logs (TEXT) */
	bool forbidden;
};

struct podlog_config {
	struct http *http;
	struct loop *loop;
	const char *namespace, *pod, *container;
	bool follow; /* the stream continues while the container runs */
	/*
	 * The number of earlier requests, in a row, that ended with PODLOG_SILENT. Each doubles the
	 * silence after which kxfs first checks whether the kubelet still follows the log.
	 */
	unsigned lost;
	/* Use a connection of its own, so that the stream can always be paused. */
	bool alone;
	bool previous; /* request the log of the run before the newest one */
	/* The requested run: the pod's uid, and the number of earlier runs of the container. */
	const char *uid;
	unsigned restart;
	/* The known end of the log (spec/logline/logline.h), owned by the podlog. */
	struct spec_logline_known known;
	bool force; /* also accept a stream that does not repeat the known end */
	struct spec_logline_past *past;
	/* Called when the server has accepted the request. */
	void (*begun)(void *data);
	/* Called for N new bytes of a line with the time NS. A negative errno ends the request. */
	int (*bytes)(void *data, int64_t ns, const char *bytes, size_t n);
	/*
	 * Called when all output that has arrived was passed to bytes(). The owner may now write
	 * this output, or pause the stream.
	 */
	void (*paused)(void *data);
	/* Called when output before the next bytes was lost or, with FORCE, may have been lost. */
	void (*gap)(void *data);
	/* Called once, when the request has ended. The podlog is already freed. */
	void (*done)(void *data, const struct podlog_result *result);
	void *data;
};

/*
 * Start a request, without callbacks within this function. CONFIG is copied; its strings, PAST and
 * HTTP must outlive the podlog.
 */
struct podlog *podlog_start(struct podlog_config *config);
/* Cancel P without further callbacks. NULL is allowed. */
void podlog_stop(struct podlog *p);
/*
 * Pause the stream from the next chunk on; allowed within paused(). If this returns false, the
 * owner must accept more bytes, or return -ENOBUFS from bytes().
 */
bool podlog_pause(struct podlog *p);
void podlog_resume(struct podlog *p);
/* True if output is held back because its run is not known. */
bool podlog_is_unsure(const struct podlog *p);
/* True while kxfs asks the server for the pod and the run of the stream. */
bool podlog_is_asking(const struct podlog *p);
/* True if the server has replied with 2xx. */
bool podlog_has_begun(const struct podlog *p);
/* Return the number of bytes received, including those of known lines. */
uint64_t podlog_came(const struct podlog *p);
/* Return the time (loop_now_ms) at which the last byte arrived; 0 if no byte has arrived. */
uint64_t podlog_came_ms(const struct podlog *p);
