/* SPDX-License-Identifier: MIT */
/*
 * One request to the API server for the log of one run of a container. The owner passes the end of
 * the output that it already has, gets new bytes as they arrive, gets the outcome when the request
 * ends, and decides about retries.
 *
 * outcome           reply of the server                           meaning
 * PODLOG_ALL        the stream ended                              the owner has all existing output
 * PODLOG_LESS       the stream ended within the known output      there may be more
 * PODLOG_OTHER      the stream does not repeat the known end      end rotated away, or another run
 * PODLOG_AGAIN      too much held output, or wrong comparison     retry immediately
 * PODLOG_MESSAGE    a text without a time (TEXT)                  the log can't be read now
 * PODLOG_NEVER_RAN  204                                           the pod was on no node
 * PODLOG_NO_RUN     400 (TEXT)                                    no such run, or it has not begun
 * PODLOG_GONE       404 for the pod (TEXT)                        there is no such pod
 *                   another pod has its name                      the same
 *                   the requested run is before the previous one  the run is not available any more
 * PODLOG_REFUSED    anything else (TEXT, WAIT_MS)                 not now
 * PODLOG_CUT        a part of the stream (TEXT)                   the connection broke
 * PODLOG_BROKEN     nothing, or too late (TEXT)                   the connection has failed
 * PODLOG_SILENT     the stream is open, but silent                kubelet may not follow the log
 * PODLOG_SLOW       (the owner returned -ENOBUFS)                 the disk does not keep up
 * PODLOG_NEXT_RUN   output of the next run                        ask for the previous run
 * PODLOG_NOT_YET    PREVIOUS, but this run is the newest (TEXT)   retry later
 * PODLOG_WHICH_RUN  the run or the pod is unknown (TEXT, WAIT_MS) retry later
 *
 * A request names a pod and a container. The server returns the log of the container's newest run
 * in the pod that has this name now. This may be a pod or a run that the watch has not reported
 * yet. If a line of the requested run is known, the stream must repeat that line; the stream of
 * another run does not. If no line is known, or if the stream need not repeat it (FORCE), kxfs
 * holds the output back. After the stream has begun, it asks the server for the pod's uid and the
 * container's restart count. If these are right, it releases the output. I/O thread only.
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
	unsigned wait_ms; /* Retry-After of the server; 0 if there is none */
	bool more;	  /* true if the owner got new output */
	bool begun;	  /* true if the server has replied with 2xx */
	uint64_t open_ms; /* how long the stream was open after BEGUN, in ms */
	/* true if the server refused because the user is not allowed to read logs (TEXT) */
	bool forbidden;
};

struct podlog_config {
	struct http *http;
	struct loop *loop;
	const char *namespace, *pod, *container;
	bool follow; /* true if the stream continues while the container runs */
	/*
	 * Number of requests in a row that ended as PODLOG_SILENT. The higher this number is, the
	 * longer this stream may be silent.
	 */
	unsigned lost;
	/* True to use a connection of its own, so that the stream can always be paused. */
	bool alone;
	bool previous; /* true to request the log of the run before the newest one */
	/* The requested run: the pod's uid, and the number of earlier runs of the container. */
	const char *uid;
	unsigned restart;
	/*
	 * The known end of the log (spec/logline/logline.h), owned by the podlog. If no line is
	 * known, or with FORCE, kxfs holds output back until the server has confirmed the run.
	 */
	struct spec_logline_known known;
	bool force;
	struct spec_logline_past *past;
	/* Called when the server has accepted the request. Output follows. */
	void (*begun)(void *data);
	/*
	 * Called for new output. BYTES are N bytes of one line, and NS is the time of this line.
	 * Return 0, or a negative errno to end the request (-ENOBUFS: PODLOG_SLOW).
	 */
	int (*bytes)(void *data, int64_t ns, const char *bytes, size_t n);
	/*
	 * Called when all output received so far was passed to bytes(). The owner may now write
	 * this output, or pause the stream.
	 */
	void (*paused)(void *data);
	/*
	 * Called when output before the next bytes was lost. If FORCE is set, this call means only
	 * that output may have been lost.
	 */
	void (*gap)(void *data);
	/* Called once, when the request has ended. The podlog is already freed. */
	void (*done)(void *data, const struct podlog_result *result);
	void *data;
};

/*
 * Start a request. CONFIG is copied; its strings, PAST and HTTP must outlive the podlog. No
 * callback is called before this function has returned.
 */
struct podlog *podlog_start(struct podlog_config *config);
/* Cancel P: no callback is called any more. NULL is allowed. */
void podlog_stop(struct podlog *p);
/*
 * Pause the stream from the next chunk on, as http_pause does. If the stream can't be paused,
 * return false. In that case, the owner must accept more bytes, or end the request by returning
 * -ENOBUFS from bytes(). podlog_pause and podlog_resume may be called from within paused().
 */
bool podlog_pause(struct podlog *p);
void podlog_resume(struct podlog *p);
/* True if output is held because the run of the stream is not known. */
bool podlog_is_unsure(const struct podlog *p);
/* True while kxfs asks the server for the pod and the run of the stream. */
bool podlog_is_asking(const struct podlog *p);
/* True if the head of the server's reply has arrived. */
bool podlog_has_begun(const struct podlog *p);
/* Return the number of bytes received, including those of lines that were known before. */
uint64_t podlog_came(const struct podlog *p);
/* Return when the last byte arrived, by loop_now_ms; 0 if no byte has arrived. */
uint64_t podlog_came_ms(const struct podlog *p);
