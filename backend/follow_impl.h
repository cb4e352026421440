/* SPDX-License-Identifier: MIT */
/*
 * What follow.c (a log's life), follow_request.c (asking for it) and follow_run.c (of which run it is) share.
 * Private to them.
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
	struct spec_logline *l;	     /* the writer's; NULL: not open yet */
	struct loop_timer *timer; /* until the next try, or the end of a stream that should end */
	struct loop_timer *quiet; /* not settled yet: looks for a pause */
	unsigned delay_ms;	  /* before the next try */
	bool settled;
	bool fetched; /* what there was at the start */
	bool said;    /* what is wrong */
	unsigned gaps;
	uint64_t all_ms; /* when all had come, as far as can be known; 0: it has not */

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
	uint64_t head_ms;
	bool check;	   /* the stream before it was open for long, and ended properly just now */
	bool force;	   /* take what does not fit */
	bool probed;	   /* what does not fit is not because the container runs again */
	unsigned tries;	   /* that brought nothing, one after the other */
	uint64_t before;   /* bytes known when it began */
	uint64_t came;	   /* bytes of it and all before it, known ones too */
	uint64_t came_at;  /* when its end was awaited last */
	uint64_t quiet_at; /* bytes known at the last look */
	unsigned quiet_looks;

	/* It is not known of which run the present request's output is, which is held: */
	bool unsure;
	struct http_request *question; /* under way */
	char *held;
	size_t n_held;
	struct http_reply held_reply; /* if the request is over */
	char *held_text;	      /* of it */
	unsigned unanswered;
	bool rerun; /* the container runs again, so this run can be had as the previous one */
};

/* --- follow.c --- */

/* What is to be done now. */
void follow_next(struct follow *f);
/* Do that in MS, about. */
void follow_wait(struct follow *f, unsigned ms);
/* Nothing came: wait, longer each time. */
void follow_back_off(struct follow *f, unsigned at_least_ms);
void follow_settle(struct follow *f);
/* Nothing more can be had, since ERR; unless all had come, that is the outcome. */
void follow_lost(struct follow *f, int err, const char *text);
/* The present request should end by itself, or when nothing comes any more. */
void follow_await_end(struct follow *f);
/* When all is written, it is over. */
void follow_finish(struct follow *f, int err, const char *text);
/* Say once what is wrong; "": nothing any more. */
void follow_trouble(struct follow *f, const char *text);

/* --- follow_request.c --- */

/* Send a request of KIND. */
void follow_send(struct follow *f, enum follow_kind kind);
/* Of the log, with what is asked of it. malloc'ed; NULL: no memory. */
char *follow_path(const struct follow *f, const char *query);
/* Output has come. 0, or a negative errno: the request is to end with it. */
int follow_feed(struct follow *f, const char *bytes, size_t n);
/* The present request has ended so. */
void follow_replied(struct follow *f, const struct http_reply *reply);

/* --- follow_run.c --- */

/* May the output of a request that begins now be another run's? */
bool follow_is_unsure(const struct follow *f);
/* Ask for that. */
void follow_ask_run(struct follow *f);
/* Output, and the end of the request, before that is answered. */
int follow_hold(struct follow *f, const char *bytes, size_t n);
void follow_hold_reply(struct follow *f, const struct http_reply *reply);
/* What is held is taken for this run's. */
void follow_take_held(struct follow *f);
/* End the present request, and forget what is held of it. */
void follow_cancel(struct follow *f);

#endif
