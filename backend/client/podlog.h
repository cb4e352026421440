/* SPDX-License-Identifier: MIT */
/*
 * One try at one log: a request to the API server for the output of one run of a container. The caller gives the end of
 * what it knows of that output. New bytes go to the owner as they come, and in the end the owner is told how the try
 * went. What to do then, and when, is the owner's decision.
 *
 *	outcome			what the server said				what it means
 *	PODLOG_ALL		the stream ended				all that it had is known
 *	PODLOG_LESS		it ended within what is known			there may be more
 *	PODLOG_OTHER		it does not show what is known			rotated away, or another run's
 *	PODLOG_AGAIN		more than could be held, or was compared wrong	ask again at once
 *	PODLOG_MESSAGE		a text without a time (TEXT)			the kubelet has no log now
 *	PODLOG_NEVER_RAN	204						the pod was on no node
 *	PODLOG_NO_RUN		400 (TEXT)					no such run, or it has not begun
 *	PODLOG_GONE		404 for the pod (TEXT)				there is no such pod
 *				another one has its name			the same
 *				later runs, of which none is the next		the run can't be had any more
 *	PODLOG_REFUSED		anything else (TEXT, WAIT_MS)			not now
 *	PODLOG_CUT		a part of the stream (TEXT)			a connection that broke, as they do
 *	PODLOG_BROKEN		nothing, or too late (TEXT)			the connection
 *	PODLOG_SILENT		nothing, on a stream that goes on		the kubelet has lost it, or may have
 *	PODLOG_SLOW		(the owner took no more: -ENOBUFS)		the disk does not keep up
 *	PODLOG_NEXT_RUN		output of the next run				ask for the previous run
 *	PODLOG_WHICH_RUN	of which run or pod is not known (TEXT, WAIT_MS)	ask again later
 *
 * A request names a pod and a container, and is answered with the newest run of whatever pod has that name now; the
 * watch may not have told of that run yet. Once a line of a run is known, the stream of another run shows in that it
 * does not repeat the line. A stream that does not repeat it (FORCE), or that comes before any line is known, is held
 * until the server, asked after the stream had begun, has said which pod it is and how often the container has been run
 * again. I/O thread only.
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
	unsigned wait_ms; /* how long the server asks to wait; 0: it does not */
	bool more;	  /* output was given to the owner */
	bool begun;	  /* the server had answered with 2xx */
	uint64_t open_ms; /* how long the stream was open after that */
	bool forbidden;	  /* the user has no right to read logs (TEXT) */
};

struct podlog_config {
	struct http *http;
	struct loop *loop;
	const char *namespace, *pod, *container;
	bool follow; /* the stream goes on while the container runs */
	/* How many tries in a row ended as PODLOG_SILENT: the more, the longer this one may be silent. */
	unsigned lost;
	/* On a connection of its own, so that the stream can be paused in any case. */
	bool alone;
	bool previous; /* the log of the run before the newest one is wanted */
	/* The run: the pod's uid, and how many runs of the container were before it. */
	const char *uid;
	unsigned restart;
	/*
	 * The end of the log, which the podlog takes over, as in spec/logline/logline.h. With FORCE, or where nothing
	 * is known, output is held until the server has said which run it is of.
	 */
	struct spec_logline_known known;
	bool force;
	struct spec_logline_past *past;
	/* The server gives the log: its output comes now. */
	void (*begun)(void *data);
	/*
	 * New output: bytes of one line, whose time is NS. Returns 0, or a negative errno if the owner does not take
	 * them: then the try ends (-ENOBUFS: PODLOG_SLOW).
	 */
	int (*bytes)(void *data, int64_t ns, const char *bytes, size_t n);
	/* All that has come until now was given to the owner. */
	void (*paused)(void *data);
	/* Before the output that comes next some was lost, or (FORCE) may have been. */
	void (*gap)(void *data);
	/* The try is over. Called once, when the podlog is freed already. */
	void (*done)(void *data, const struct podlog_result *result);
	void *data;
};

/* Begin a try. CONFIG is copied; its strings, PAST and HTTP must stay. No function is called from within this. */
struct podlog *podlog_start(struct podlog_config *config);
/* End P; no function is called any more. NULL is allowed. */
void podlog_stop(struct podlog *p);
/*
 * From the next chunk on the stream waits until it is resumed, as with http_pause. False: it can't, so the owner has to
 * take what comes, or to end the try by -ENOBUFS. Both functions may be called from within paused().
 */
bool podlog_pause(struct podlog *p);
void podlog_resume(struct podlog *p);
/* Is output held, since it is not known which run it is of? */
bool podlog_is_unsure(const struct podlog *p);
/* Is the server being asked which run it is? */
bool podlog_is_asking(const struct podlog *p);
/* Has the server begun to answer? */
bool podlog_has_begun(const struct podlog *p);
/* How many bytes have come, those that were known before included. */
uint64_t podlog_came(const struct podlog *p);
/* When the last of them came, by loop_now_ms; 0: none has. */
uint64_t podlog_came_ms(const struct podlog *p);
