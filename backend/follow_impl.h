/* SPDX-License-Identifier: MIT */
/*
 * What follow.c (a log's life) and follow_request.c (asking for it) share. Private to them.
 */
#ifndef KXFS_BACKEND_FOLLOW_IMPL_H
#define KXFS_BACKEND_FOLLOW_IMPL_H

#include "backend/follow.h"
#include "backend/spool_write.h"

#define FOLLOW_DELAY_MS 1000 /* before a first try again */

enum follow_kind {
	FOLLOW_FIRST, /* what there is, for who waits */
	FOLLOW_ON,    /* and what comes */
	FOLLOW_PROBE, /* is what we have the run before the present one's? */
	FOLLOW_REST,  /* of a run that has ended */
};

struct follow {
	struct follow_config config; /* its strings belong to it */
	struct spool_writer *writer; /* NULL: to be opened again */
	struct spec_logline *l;	     /* NULL: not open yet */
	struct loop_timer *timer; /* until the next try, or the end of a stream that should end */
	struct loop_timer *quiet; /* not settled yet: looks for a pause */
	struct loop_timer *keep;  /* its position is to be kept */
	unsigned delay_ms;	  /* before the next try */
	bool settled;
	bool fetched; /* what there was at the start */
	bool said;    /* what is wrong */
	unsigned gaps;
	uint64_t kept_ms; /* when its position was kept last */
	uint64_t all_ms;  /* when a stream that was the last ended properly; 0: none has */

	bool hurry; /* what is left may soon be gone */
	bool ended;
	uint64_t ended_ms;
	enum follow_end end;
	bool over; /* as soon as all is written: done(ERR, TEXT) */
	int err;
	char *text;

	/* The present request, if RQ is not NULL, or the one to come: */
	struct http_request *rq;
	enum follow_kind kind;
	bool previous; /* it asks for the run before the present one */
	bool head;
	bool force;	   /* take what does not fit */
	bool probed;	   /* what does not fit is not because the container runs again */
	unsigned tries;	   /* that brought nothing, one after the other */
	uint64_t before;   /* bytes known when it began */
	uint64_t came;	   /* bytes of it and all before it, known ones too */
	uint64_t came_at;  /* when its end was awaited last */
	uint64_t quiet_at; /* bytes known at the last look */
	unsigned quiet_looks;
};

/* --- follow.c --- */

/* What is to be done now. */
void follow_next(struct follow *f);
/* Do that in MS, about. */
void follow_wait(struct follow *f, unsigned ms);
/* Nothing came: wait, longer each time. */
void follow_back_off(struct follow *f, unsigned at_least_ms);
void follow_settle(struct follow *f);
/* Nothing more can be had, since the pod is gone. */
void follow_gone(struct follow *f, const char *text);
/* When all is written, it is over. */
void follow_finish(struct follow *f, int err, const char *text);
/* Say once what is wrong; "": nothing any more. */
void follow_trouble(struct follow *f, const char *text);

/* --- follow_request.c --- */

/* Send a request of KIND. */
void follow_send(struct follow *f, enum follow_kind kind);

#endif
