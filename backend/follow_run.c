/* SPDX-License-Identifier: MIT */
/*
 * Which run of its container a stream is of. A request names the container, and the newest run answers, which the
 * pod's status may not have told of yet. Once a line of a run is known, a stream of another one shows by what it
 * does not repeat; until then, where containers are run again, what comes is held back until the server has
 * said, after the stream had begun, what was before the newest run.
 */
#include "backend/follow_impl.h"

#include <errno.h>

#include "spec/status.h"
#include "spec/time.h"

#define ASK_MS	  30000
#define HELD_MAX  (256u << 10) /* more is fetched again */
#define TRIES_MAX 3	       /* questions that are not answered */
#define SECOND	  INT64_C(1000000000)

bool follow_is_unsure(const struct follow *f)
{
	return f->config.reruns && !f->previous && spec_logline_size(f->l) == 0;
}

void follow_cancel(struct follow *f)
{
	if (f->rq)
		http_cancel(take_ptr(f->rq));
	if (f->question)
		http_cancel(take_ptr(f->question));
	free(take_ptr(f->held));
	free(take_ptr(f->held_text));
	f->n_held = 0;
	f->unsure = false;
}

int follow_hold(struct follow *f, const char *bytes, size_t n)
{
	char *grown = f->n_held + n <= HELD_MAX ? realloc(f->held, f->n_held + n) : NULL;

	if (!grown)
		return -EAGAIN;
	f->held = grown;
	memcpy(f->held + f->n_held, bytes, n);
	f->n_held += n;
	return 0;
}

void follow_hold_reply(struct follow *f, const struct http_reply *reply)
{
	f->held_reply = *reply;
	f->held_text = strdup(reply->text);
	f->held_reply.body = "";
	f->held_reply.len = 0;
}

void follow_take_held(struct follow *f)
{
	cleanup_free char *held = take_ptr(f->held), *text = take_ptr(f->held_text);
	struct http_reply reply = f->held_reply;
	size_t n = f->n_held;
	int err;

	if (f->question)
		http_cancel(take_ptr(f->question));
	reply.text = text ? text : "";
	f->n_held = 0;
	f->unsure = false;
	err = n > 0 ? follow_feed(f, held, n) : 0;
	if (f->rq && err == 0) {
		if (f->ended)
			follow_await_end(f);
		return;
	}
	if (f->rq) {
		http_cancel(take_ptr(f->rq));
		reply = (struct http_reply){.text = "", .body = ""};
	}
	if (err < 0) {
		reply.err = err;
		reply.text = strerror(-err);
	}
	follow_replied(f, &reply);
}

enum answer { THIS_RUN, OTHER_RUN, NO_ANSWER };

static enum answer meaning(const struct follow *f, const struct http_reply *reply)
{
	int64_t ns;

	if (reply->err < 0 || (reply->status / 100 != 2 && reply->status != 400))
		return NO_ANSWER;
	/* No run was before the newest. */
	if (reply->status / 100 != 2 || reply->status == 204)
		return THIS_RUN;
	/* This is the first run; or it has ended, and then that is how it can be had. */
	if (f->config.restart == 0 || f->config.started == 0)
		return OTHER_RUN;
	/* The one before has printed since this one began. */
	return spec_time_parse(reply->body, reply->len, &ns) > 0 ? OTHER_RUN : THIS_RUN;
}

static void on_answer(void *data, const struct http_reply *reply)
{
	struct follow *f = data;
	enum answer answer = meaning(f, reply);

	f->question = NULL;
	if (answer == THIS_RUN || (answer == NO_ANSWER && ++f->unanswered >= TRIES_MAX)) {
		follow_take_held(f);
		return;
	}
	follow_cancel(f);
	loop_timer_free(take_ptr(f->timer));
	if (answer == NO_ANSWER) {
		follow_back_off(f, reply->wait_ms);
		return;
	}
	f->rerun = true;
	follow_next(f);
}

void follow_ask_run(struct follow *f)
{
	cleanup_free char *rest = NULL, *path = NULL;
	char since[32] = "";
	struct http_call call = {
		.method = HTTP_GET,
		.deadline_ms = ASK_MS,
		.retry = true,
		.done = on_answer,
		.data = f,
	};

	/* Starts are told in whole seconds. */
	if (f->config.restart > 0 && f->config.started > 0)
		spec_time_text((f->config.started / SECOND + 1) * SECOND, since);
	if (asprintf(&rest, "previous=true&limitBytes=64%s%s", *since ? "&sinceTime=" : "", since) <
	    0)
		rest = NULL;
	path = rest ? follow_path(f, rest) : NULL;
	call.path = path;
	f->question = path ? http_send(f->config.http, &call) : NULL;
}
