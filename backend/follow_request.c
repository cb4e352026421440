/* SPDX-License-Identifier: MIT */
/*
 * Asking the API server for a log, and what its answers mean. That a stream ends, however properly, says
 * nothing about the container: only the pod's status does (follow_ended).
 */
#include <errno.h>

#include "backend/follow_impl.h"
#include "spec/event.h"
#include "spec/status.h"
#include "spec/url.h"

#define HEAD_MS	 30000
#define IDLE_MS	 600000 /* a silent stream is opened anew: old kubelets lose it at a rotation */
#define FETCH_MS 60000	/* the same of one that ends */
/* Answers that bring nothing of a run that has ended, before it is given a rest; those that say there is nothing: */
#define TRIES_MAX 12
#define TRIES_BAD 3
/* A node that keeps streams open keeps them for longer than this; of a container that has ended, it does not: */
#define OPEN_MS	   2000
#define AT_ONCE_MS 1000

/* --- the path --- */

static char *path(const struct follow *f, bool from, int64_t ns)
{
	char since[32] = "";
	char query[96];

	if (from)
		spec_time_text(ns, since);
	snprintf(query, sizeof(query), "%s%s%s%s", f->kind == FOLLOW_ON ? "&follow=true" : "",
		 f->previous ? "&previous=true" : "", *since ? "&sinceTime=" : "", since);
	return follow_path(f, *query ? query + 1 : "");
}

char *follow_path(const struct follow *f, const char *query)
{
	cleanup_free char *container = spec_url_escape(f->config.container);
	cleanup_free char *pod = spec_url_escape(f->config.pod);
	char *ret;

	if (!container || !pod ||
	    asprintf(&ret, "/api/v1/namespaces/%s/pods/%s/log?container=%s&timestamps=true%s%s",
		     f->config.namespace, pod, container, *query ? "&" : "", query) < 0)
		return NULL;
	return ret;
}

/* --- what an answer means --- */

/*
 * A stream has ended properly while nothing says that its run is over. If it had been open for long, another is
 * asked for at once: a node would keep that one open too if the container still ran.
 */
static void ended_early(struct follow *f, uint64_t open_ms)
{
	bool at_once = f->check && open_ms < AT_ONCE_MS;

	if (!f->check && !f->config.reruns && open_ms >= OPEN_MS) {
		f->check = true;
		follow_next(f);
		return;
	}
	if (at_once)
		f->all_ms = loop_now_ms();
	f->check = at_once;
	follow_back_off(f, 0);
}

/* The answer brought all that there is. */
static void got_all(struct follow *f)
{
	f->tries = 0;
	/* Else it was the connection that ended, or a fetch: more may have been printed since. */
	if (f->kind == FOLLOW_ON && (f->ended || f->hurry))
		f->all_ms = loop_now_ms();
	follow_trouble(f, "");
	switch (f->kind) {
	case FOLLOW_FIRST:
		f->fetched = true;
		follow_next(f);
		return;
	case FOLLOW_PROBE:
	case FOLLOW_REST:
		follow_finish(f, 0, "");
		return;
	default:
		break;
	}
	if (f->ended && f->end == FOLLOW_GONE)
		follow_finish(f, 0, "");
	else if (f->ended)
		follow_next(f);
	else
		ended_early(f, loop_now_ms() - f->head_ms);
}

/* It can't be had now, since TEXT. ERR: there is nothing, if that is said more than once; 0: it was refused. */
static void got_nothing(struct follow *f, int err, unsigned wait_ms, const char *text)
{
	bool more = spec_logline_size(f->l) > f->before;
	unsigned tries = err ? TRIES_BAD : f->config.again ? 1 : TRIES_MAX;

	f->fetched = true; /* as far as it can be */
	f->check = false;
	follow_settle(f);
	if (f->ended && f->end == FOLLOW_GONE) {
		follow_lost(f, -ENOENT, text);
		return;
	}
	if (f->ended && !more && ++f->tries >= tries) {
		follow_lost(f, err ? err : -EAGAIN, text);
		return;
	}
	follow_back_off(f, wait_ms);
}

/* What is known is not in it. */
static void got_other(struct follow *f)
{
	if (f->kind == FOLLOW_PROBE) {
		/* It was rotated away: what there is now comes after it. */
		f->probed = true;
		f->force = true;
		follow_next(f);
	} else if (f->ended && f->force) {
		follow_finish(f, 0, ""); /* and there is nothing newer */
	} else if (f->ended) {
		f->force = true;
		follow_next(f);
	} else if (!f->probed) {
		follow_send(f, FOLLOW_PROBE);
	} else {
		f->force = true;
		follow_back_off(f, 0);
	}
}

static int on_output(void *data, int64_t ns, const char *bytes, size_t n)
{
	struct follow *f = data;

	return spool_writer_add(f->writer, ns, bytes, n);
}

/* The body has ended, properly, or since it is not to be read any further. */
static void body_ended(struct follow *f, int err)
{
	const char *text;

	if (err == -EAGAIN) {
		follow_next(f); /* another way to recognise what is known */
		return;
	}
	if (err == 0)
		err = spec_logline_end(f->l, on_output, f);
	spool_writer_flush(f->writer);
	text = spec_logline_text(f->l);
	if (*text && f->kind != FOLLOW_PROBE) {
		follow_trouble(f, text);
		got_nothing(f, 0, 0, text);
	} else if (err == -ESTALE || (err < 0 && f->kind == FOLLOW_PROBE)) {
		got_other(f);
	} else if (err == -EAGAIN && ++f->tries < TRIES_MAX) {
		follow_back_off(f, 0); /* it has less than we have */
	} else {
		got_all(f);
	}
}

/* Not 2xx. */
static void refused(struct follow *f, const struct http_reply *reply)
{
	const struct spec_asked asked = {
		.verb = "get",
		.resource = "pods/log",
		.namespace = f->config.namespace,
		.name = f->config.pod,
	};
	cleanup_free char *text = NULL;
	int err = spec_reply_errno(reply->status, reply->body, reply->len, &asked, &text);
	const char *said = text ? text : "out of memory";
	bool bad = reply->status == 400; /* a container that has not started, or has no such log */
	bool gone = reply->status == 404 && err == -ENOENT;

	if (f->kind == FOLLOW_PROBE && (bad || gone)) {
		got_other(f);
		return;
	}
	if (gone) {
		follow_lost(f, -ENOENT, said);
		return;
	}
	if (!bad)
		follow_trouble(f, said);
	else if (!f->previous && spec_logline_size(f->l) == 0)
		err = -ENODATA;
	/* A node that says so of a run of which it had output, and that is not the one before, is not right. */
	got_nothing(f, bad && (f->previous || err == -ENODATA) ? err : 0, reply->wait_ms, said);
}

void follow_replied(struct follow *f, const struct http_reply *reply)
{
	bool more = spec_logline_size(f->l) > f->before;

	if (more) {
		f->force = f->probed = false;
		f->delay_ms = FOLLOW_DELAY_MS;
		f->tries = 0;
	}
	if (f->head && f->kind == FOLLOW_ON && (more || loop_now_ms() - f->head_ms >= AT_ONCE_MS))
		f->all_ms = 0; /* that was not all, or may not have been */
	if (reply->err == -EAGAIN || reply->err == -ESTALE) {
		body_ended(f, reply->err);
	} else if (reply->err == -ENOBUFS) {
		follow_trouble(f, "the disk does not keep up");
		follow_next(f); /* when all is written */
	} else if (reply->err == -ETIMEDOUT && f->head && f->kind == FOLLOW_ON) {
		follow_next(f); /* it was silent for long */
	} else if (reply->err < 0) {
		if (reply->err != -EIO || !f->head)
			follow_trouble(f, reply->text);
		got_nothing(f, 0, 0, reply->text);
	} else if (reply->status == 204) {
		got_nothing(f, -ENODATA, 0, "the pod never ran");
	} else if (reply->status / 100 == 2) {
		body_ended(f, 0);
	} else {
		refused(f, reply);
	}
}

static void on_done(void *data, const struct http_reply *reply)
{
	struct follow *f = data;

	f->rq = NULL;
	loop_timer_free(take_ptr(f->timer));
	if (f->question || f->n_held > 0)
		follow_hold_reply(f, reply);
	else
		f->unsure = false;
	if (f->question)
		return;
	if (f->unsure)
		follow_take_held(f); /* there was no memory for the question */
	else
		follow_replied(f, reply);
}

/* --- asking --- */

int follow_feed(struct follow *f, const char *bytes, size_t n)
{
	int err;

	if (!spool_writer_has_room(f->writer, n))
		return -ENOBUFS;
	err = spec_logline_feed(f->l, bytes, n, on_output, f);
	spool_writer_flush(f->writer);
	return err;
}

static int on_bytes(void *data, const char *bytes, size_t n)
{
	struct follow *f = data;

	f->came += n;
	return f->unsure ? follow_hold(f, bytes, n) : follow_feed(f, bytes, n);
}

static void on_head(void *data, int status)
{
	struct follow *f = data;

	f->head = true;
	f->head_ms = loop_now_ms();
	if (f->unsure && status != 204)
		follow_ask_run(f);
}

void follow_send(struct follow *f, enum follow_kind kind)
{
	cleanup_free char *where = NULL;
	struct http_call call = {
		.method = HTTP_GET,
		.stream = true,
		.deadline_ms = HEAD_MS,
		.idle_ms = kind == FOLLOW_ON ? IDLE_MS : FETCH_MS,
		.head = on_head,
		.bytes = on_bytes,
		.done = on_done,
		.data = f,
	};
	int64_t ns = 0;
	bool from;

	f->kind = kind;
	f->previous = kind == FOLLOW_PROBE || f->rerun || (f->ended && f->end == FOLLOW_PREVIOUS);
	f->unsure = follow_is_unsure(f);
	f->head = false;
	f->before = spec_logline_size(f->l);
	from = spec_logline_begin(f->l, f->force && kind != FOLLOW_PROBE, &ns);
	where = path(f, from, ns);
	call.path = where;
	f->rq = where ? http_send(f->config.http, &call) : NULL;
	if (!f->rq)
		follow_back_off(f, 0);
}
