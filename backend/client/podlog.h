/* SPDX-License-Identifier: MIT */
/*
 * One request to the API server for the log of one run of a container. The caller passes the end of
 * the output that it already has. New bytes go to the owner as they arrive, and at the end the
 * owner gets the outcome. The owner decides about retries.
 *
 *	outcome			reply of the server				meaning
 *	PODLOG_ALL		the stream ended				all that it had is known
 *	PODLOG_LESS		it ended within what is known			there may be more
 *	PODLOG_OTHER		it does not show what is known			rotated away, or another run's
 *	PODLOG_AGAIN		more than could be held, or was compared wrong	retry immediately
 *	PODLOG_MESSAGE		a text without a time (TEXT)			the kubelet has no log now
 *	PODLOG_NEVER_RAN	204						the pod was on no node
 *	PODLOG_NO_RUN		400 (TEXT)					no such run, or it has not begun
 *	PODLOG_GONE		404 for the pod (TEXT)				there is no such pod
 *				another one has its name			the same
 *				later runs, but not the next one		the run is not available any more
 *	PODLOG_REFUSED		anything else (TEXT, WAIT_MS)			not now
 *	PODLOG_CUT		a part of the stream (TEXT)			a connection that broke, as they do
 *	PODLOG_BROKEN		nothing, or too late (TEXT)			the connection
 *	PODLOG_SILENT		nothing, on a stream that goes on		the kubelet has lost it, or may have
 *	PODLOG_SLOW		(the owner took no more: -ENOBUFS)		the disk does not keep up
 *	PODLOG_NEXT_RUN		output of the next run				ask for the previous run
 *	PODLOG_WHICH_RUN	its run or pod is not known (TEXT, WAIT_MS)	retry later
 *
 * A request names a pod and a container. The server returns the log of the newest run of the pod
 * that has that name now, which may be newer than the last event of the watch. Once a line of a run
 * is known, another run's stream is recognized because it does not repeat that line. A stream that
 * does not repeat it (FORCE), or that starts before any line is known, is held. It is released when
 * the server, asked after the stream had begun, has returned the pod's uid and the container's
 * restart count. I/O thread only.
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
	PODLOG_WHICH_RUN,
};

struct podlog_result {
	enum podlog_outcome outcome;
	const char *text; /* for people; borrowed, never NULL */
	unsigned wait_ms; /* Retry-After of the server; 0 if there is none */
	bool more;	  /* output was given to the owner */
	bool begun;	  /* the server had answered with 2xx */
	uint64_t open_ms; /* how long the stream was open after that */
	bool forbidden;	  /* the user may not read logs (TEXT) */
};

struct podlog_config {
	struct http *http;
	struct loop *loop;
	const char *namespace, *pod, *container;
	bool follow; /* the stream continues while the container runs */
	/*
	 * How many requests in a row ended as PODLOG_SILENT: the more, the longer this one may be
	 * silent.
	 */
	unsigned lost;
	/* Use a connection of its own, so that the stream can always be paused. */
	bool alone;
	bool previous; /* request the log of the run before the newest one */
	/* The run: the pod's uid, and the number of earlier runs of the container. */
	const char *uid;
	unsigned restart;
	/*
	 * The end of the log, which the podlog takes over, as in spec/logline/logline.h. With
	 * FORCE, or if nothing is known, output is held until the server has confirmed its run.
	 */
	struct spec_logline_known known;
	bool force;
	struct spec_logline_past *past;
	/* The server returns the log: its output follows. */
	void (*begun)(void *data);
	/*
	 * New output: bytes of one line with the time NS. Return 0, or a negative errno to end the
	 * request (-ENOBUFS: PODLOG_SLOW).
	 */
	int (*bytes)(void *data, int64_t ns, const char *bytes, size_t n);
	/* All output received so far was passed to the owner. */
	void (*paused)(void *data);
	/* Some output before the next bytes was lost, or (FORCE) may have been. */
	void (*gap)(void *data);
	/* The request has ended. Called once, after the podlog is freed. */
	void (*done)(void *data, const struct podlog_result *result);
	void *data;
};

/*
 * Start a request. CONFIG is copied; its strings, PAST and HTTP must remain valid. No callback is
 * called from within this.
 */
struct podlog *podlog_start(struct podlog_config *config);
/* End P; no callback is called any more. NULL is allowed. */
void podlog_stop(struct podlog *p);
/*
 * Pause the stream from the next chunk on, as http_pause does. Return false if that is impossible:
 * the owner must then accept bytes, or end the request by -ENOBUFS. Both functions may be called
 * from within paused().
 */
bool podlog_pause(struct podlog *p);
void podlog_resume(struct podlog *p);
/* True if output is held because its run is not known. */
bool podlog_is_unsure(const struct podlog *p);
/* True while the server is asked which run it is. */
bool podlog_is_asking(const struct podlog *p);
/* True if the server has begun to answer. */
bool podlog_has_begun(const struct podlog *p);
/* Return the number of bytes received, including known ones. */
uint64_t podlog_came(const struct podlog *p);
/* Return when the last of them arrived, by loop_now_ms; 0 if none has. */
uint64_t podlog_came_ms(const struct podlog *p);
