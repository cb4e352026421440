/* SPDX-License-Identifier: MIT */
/*
 * LIST then WATCH, for ever. There is at most one request under way, or a timer until the next. A watch
 * that ends cleanly is the rule (the server ends each after the time that it was asked for); one that
 * breaks is resumed where it was; a version that the server no longer has makes a new list, during
 * which the old view stays.
 *
 * Servers send a bookmark a minute, so a watch that says nothing for longer may be on a connection that is
 * dead without a word, or at a server that hangs. It is ended and asked for anew, which finds out: there is
 * an answer soon, or the view is no longer confirmed. Where that silence was nothing, the next may last
 * longer, so that a server without bookmarks is not asked again and again.
 *
 * Pages: a pod of a large job has hundreds of KiB, so the first page is small, and each next one is
 * made so that PAGE_BYTES are to be expected.
 */
#include "backend/watch.h"

#include <errno.h>

#include "backend/diag.h"
#include "backend/random.h"
#include "backend/tally.h"
#include "spec/event.h"
#include "spec/split.h"
#include "spec/url.h"

#define PAGE_BYTES   (4u << 20)
#define PAGE_MAX     500
#define HEAD_MS	     30000 /* until a reply begins */
#define LIST_IDLE_MS 30000
/* A watch is asked to last so long, with jitter, so that not all end at once. */
#define WATCH_MIN_S  240
#define WATCH_MORE_S 240
#define WATCH_LATE_S 60 /* beyond which it is dead */
/* How long a watch may be silent at first, and how soon the one that is to tell why must stand. */
#define SILENT_MS     65000
#define PROBE_MS      10000
#define SILENT_MAX_MS ((WATCH_MIN_S + WATCH_MORE_S + WATCH_LATE_S) * 1000u)
#define BACKOFF_MIN   250u
#define BACKOFF_MAX   30000u
#define ABSENT_MS     60000 /* until a resource that is not served is asked for again */
/* A server that has just started refuses everybody for a moment: what stood is not taken for forbidden before. */
#define REFUSALS_MAX 5
#define STEADY_MS    5000 /* a watch that lived so long was in order: no backoff after it */

struct watch {
	struct watch_config config; /* strings owned */
	struct http_request *request;
	struct spec_split *split;
	struct loop_timer *timer;
	const char *verb; /* asked for last */
	char *version;	  /* to watch from; NULL: to be listed */
	char *next;	  /* token of the next page, escaped; NULL: the list begins */
	unsigned page;
	size_t page_objects, page_bytes;
	unsigned refusals; /* that are borne before what is optional counts as forbidden */
	unsigned backoff;  /* ms; 0: all was in order. A watch that lasts resets it, nothing else */
	uint64_t stands;   /* since when the watch under way does, loop_now_ms; 0: it doesn't */
	unsigned silent;   /* ms without a byte after which the watch is asked for anew */
	bool probing;	   /* that is done now */
	bool dead;	   /* the last request got no answer at all: its connection may be why */
	int event_err;	   /* code of an ERROR event in the stream; 0 none, -1 without a code */
	int err;	   /* as last told; 1: nothing yet */
};

static void next(struct watch *w);

/* --- telling --- */

static void tell(struct watch *w, int err, const char *text)
{
	if (err == 0 && w->err == 0)
		return;
	w->err = err;
	if (err == 0)
		w->refusals = REFUSALS_MAX;
	w->config.state(w->config.data, err, text);
}

/* --- waiting --- */

static void on_timer(void *data)
{
	struct watch *w = data;

	loop_timer_free(take_ptr(w->timer));
	next(w);
}

static unsigned jitter(unsigned ms)
{
	unsigned r = 0;

	if (random_bytes(&r, sizeof(r)))
		r = 0;
	return ms / 2 + r % (ms / 2 + 1);
}

static void wait_then_next(struct watch *w, unsigned ms)
{
	w->timer = loop_timer_new(w->config.loop, ms, 0, on_timer, w);
	if (!w->timer) {
		diag(DIAG_ERROR, "out of memory");
		abort(); /* the view would never be confirmed again, and nobody would know */
	}
}

/* AT_LEAST: what the server asked for. */
static void back_off(struct watch *w, unsigned at_least)
{
	w->backoff = w->backoff ? min_of(w->backoff * 2, BACKOFF_MAX) : BACKOFF_MIN;
	wait_then_next(w, max_of(jitter(w->backoff), at_least));
}

/* --- what comes --- */

static void forget_version(struct watch *w)
{
	free(take_ptr(w->version));
	free(take_ptr(w->next));
}

static int on_item(void *data, const char *json, size_t len)
{
	struct watch *w = data;

	w->page_objects++;
	w->config.object(w->config.data, json, len, false);
	return 0;
}

static void spec_event_clearp(struct spec_event *e)
{
	spec_event_clear(e);
}

static void take_version(struct watch *w, struct spec_event *e)
{
	free(w->version);
	w->version = take_ptr(e->resource_version);
}

static int on_event(void *data, const char *json, size_t len)
{
	struct watch *w = data;
	struct spec_event e cleanup(spec_event_clearp) = {0};
	int err = spec_event_parse(json, len, &e);

	if (err)
		return err;
	switch (e.type) {
	case SPEC_EVENT_ADDED:
	case SPEC_EVENT_MODIFIED:
	case SPEC_EVENT_DELETED:
		w->config.object(w->config.data, e.object, e.len, e.type == SPEC_EVENT_DELETED);
		break;
	case SPEC_EVENT_BOOKMARK:
		break;
	case SPEC_EVENT_ERROR:
		w->event_err = e.code ? e.code : -1;
		return -ECANCELED;
	}
	take_version(w, &e);
	return 0;
}

static int on_bytes(void *data, const char *bytes, size_t n)
{
	struct watch *w = data;

	w->page_bytes += n;
	w->silent = SILENT_MS;
	return spec_split_feed(w->split, bytes, n);
}

/* --- how a request has ended --- */

/* The request failed: say so, and try again later. */
static void failed(struct watch *w, const char *verb, const struct http_reply *reply)
{
	const struct spec_asked asked = {
		.verb = verb,
		.resource = w->config.resource,
		.namespace = w->config.namespace,
		.name = "",
	};
	cleanup_free char *text = NULL;
	int err = reply->err;

	if (!err)
		err = spec_reply_errno(reply->status, reply->body, reply->len, &asked, &text);
	else if (asprintf(&text, "%s %s: %s", asked.verb, asked.resource,
			  *reply->text ? reply->text : strerror(-err)) < 0)
		text = NULL;
	if (w->config.optional && !reply->err && reply->status == 401)
		err = -EKEYREJECTED;
	if (w->config.optional && !reply->err && reply->status == 403 && w->refusals > 0) {
		w->refusals--;
		err = -EAGAIN;
	}
	/* The first word, if it is an error, is the owner's to say. */
	if (w->err != err && w->err <= 0)
		diag(DIAG_WARNING, "%s", text ? text : strerror(-err));
	tell(w, err, text ? text : strerror(-err));
	if (err == -EOPNOTSUPP) {
		forget_version(w);
		wait_then_next(w, ABSENT_MS);
	} else if (w->config.optional && !reply->err && reply->status == 403 && err != -EAGAIN) {
		forget_version(w);
		wait_then_next(w, WATCH_FORBIDDEN_MS);
	} else {
		back_off(w, reply->wait_ms);
	}
}

/* How many objects of EACH bytes to ask for. */
static unsigned page_of(size_t each)
{
	return (unsigned)min_of((size_t)PAGE_MAX, max_of((size_t)1, PAGE_BYTES / each));
}

static void page_done(struct watch *w)
{
	struct spec_list_meta meta;
	int err = spec_split_end(w->split, &meta);

	if (!err) {
		free(w->next);
		w->next = *meta.next ? spec_url_escape(meta.next) : NULL;
		err = *meta.next && !w->next ? -ENOMEM : 0;
	}
	if (!err && !w->next && !*meta.resource_version)
		err = -EINVAL;
	if (!err && !w->next) {
		w->version = strdup(meta.resource_version);
		err = w->version ? 0 : -ENOMEM;
	}
	if (err) {
		const struct http_reply reply = {.err = err,
						 .text = "the list is not whole",
						 .body = ""};

		forget_version(w);
		failed(w, "list", &reply);
		return;
	}
	if (w->page_objects > 0)
		w->page = page_of(w->page_bytes / w->page_objects + 1);
	if (w->version) {
		w->config.listed(w->config.data);
		tell(w, 0, "");
	}
	next(w);
}

/* The server no longer has the version that we know: list anew. */
static void expired(struct watch *w)
{
	diag(DIAG_INFO, "%s: the server has forgotten where we were; listing anew",
	     w->config.resource);
	forget_version(w);
	/* At once when the last try was in order; a server that says so again and again is not hurried. */
	if (w->backoff)
		back_off(w, 0);
	else {
		w->backoff = BACKOFF_MIN;
		next(w);
	}
}

/* A page did not come: it is asked for again, in smaller parts should it have been too slow. */
static void page_failed(struct watch *w, const struct http_reply *reply)
{
	bool passes = reply->err || reply->status >= 500 || reply->status == 429;

	if (!passes || reply->err == -EINVAL || reply->err == -EFBIG)
		forget_version(w);
	if (reply->err == -ETIMEDOUT || reply->status == 504)
		w->page = max_of(w->page / 2, 1u);
	failed(w, "list", reply);
}

static void list_done(void *data, const struct http_reply *reply)
{
	struct watch *w = data;

	w->request = NULL;
	w->probing = false;
	w->dead = reply->err == -ETIMEDOUT;
	if (!reply->err && reply->status / 100 == 2)
		page_done(w);
	else if (!reply->err && reply->status == 410)
		expired(w);
	else
		page_failed(w, reply);
}

/* The server refuses to watch. */
static void watch_refused(struct watch *w, const struct http_reply *reply)
{
	/* It may be for the version, which one that was set back has never had. */
	if (reply->status == 400 || reply->status == 504)
		forget_version(w);
	failed(w, "watch", reply);
}

static void count_end(struct watch *w, const struct http_reply *reply)
{
	const char *why = "ended";

	if (w->event_err == 410 || (!reply->err && reply->status == 410))
		why = "expired";
	else if (!reply->err && reply->status / 100 != 2)
		why = "refused";
	else if (reply->err == -ETIMEDOUT)
		why = "silent";
	else if (reply->err)
		why = "broken";
	if (w->config.ends)
		tally_add(w->config.ends, (const char *const[]){w->config.resource, why, ""});
}

static void watch_done(void *data, const struct http_reply *reply)
{
	struct watch *w = data;
	bool steady = w->stands && loop_now_ms() - w->stands >= STEADY_MS;
	bool silent = reply->err == -ETIMEDOUT;

	w->request = NULL;
	w->probing = silent && steady;
	w->dead = silent;
	count_end(w, reply);
	if (w->probing && !w->page_bytes)
		w->silent = min_of(w->silent * 2, SILENT_MAX_MS);
	if (steady)
		w->backoff = 0;
	if (w->event_err == 410 || (!reply->err && reply->status == 410)) {
		expired(w);
	} else if (!reply->err && reply->status / 100 != 2) {
		watch_refused(w, reply);
	} else if (w->event_err || reply->err == -EINVAL || reply->err == -EFBIG) {
		/* 504 and the like; or what came is no watch: listing anew is always right. */
		diag(DIAG_INFO, "%s: the watch ended with %s; listing anew", w->config.resource,
		     w->event_err ? "an error of the server" : strerror(-reply->err));
		forget_version(w);
		back_off(w, reply->wait_ms);
	} else if (reply->status == 0) {
		failed(w, "watch", reply);
	} else if (steady) {
		next(w);
	} else {
		back_off(w, reply->wait_ms);
	}
}

/* The watch stands: what was told is confirmed. */
static void on_watch_head(void *data, int status)
{
	struct watch *w = data;

	(void)status;
	w->stands = loop_now_ms();
	tell(w, 0, "");
}

/* --- requests --- */

static void send_call(struct watch *w, struct http_call *call, char *path)
{
	cleanup_free char *own = path;

	w->stands = 0;
	w->event_err = 0;
	w->page_objects = w->page_bytes = 0;
	spec_split_free(w->split);
	w->split = spec_split_new(w->version ? SPEC_SPLIT_WATCH : SPEC_SPLIT_LIST,
				  w->config.drop_env, w->version ? on_event : on_item, w);
	call->method = HTTP_GET;
	call->path = own;
	call->stream = true;
	call->deadline_ms = w->probing ? PROBE_MS : HEAD_MS;
	call->fresh = w->dead;
	call->bytes = on_bytes;
	call->data = w;
	if (own && w->split)
		w->request = http_send(w->config.http, call);
	if (!w->request)
		back_off(w, 1000);
}

static void send_list(struct watch *w)
{
	struct http_call call = {.idle_ms = LIST_IDLE_MS,
				 .retry = true,
				 .compress = true,
				 .done = list_done};
	char *path;

	w->verb = "list";
	if (asprintf(&path, "%s?limit=%u%s%s%s%s", w->config.path, w->page, w->config.selector,
		     w->config.field, w->next ? "&continue=" : "", w->next ? w->next : "") < 0)
		path = NULL;
	if (!w->next)
		w->config.begin(w->config.data);
	send_call(w, &call, path);
}

static void send_watch(struct watch *w)
{
	unsigned seconds = WATCH_MIN_S + jitter(2 * WATCH_MORE_S) % WATCH_MORE_S;
	struct http_call call = {
		.idle_ms = min_of((seconds + WATCH_LATE_S) * 1000, w->silent),
		.head = on_watch_head,
		.done = watch_done,
	};
	cleanup_free char *version = spec_url_escape(w->version);
	char *path;

	if (!version ||
	    asprintf(
		    &path,
		    "%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=%s%s%"
		    "s",
		    w->config.path, seconds, version, w->config.selector, w->config.field) < 0)
		path = NULL;
	w->verb = "watch";
	send_call(w, &call, path);
}

static void next(struct watch *w)
{
	if (w->version)
		send_watch(w);
	else
		send_list(w);
}

/* --- life --- */

/* The part of a query that SELECTOR makes of parameter NAME. malloc'ed; NULL: no memory. */
static char *selector_query(const char *name, const char *selector)
{
	cleanup_free char *escaped = spec_url_escape(selector);
	char *query;

	if (!*selector)
		return strdup("");
	if (!escaped || asprintf(&query, "&%s=%s", name, escaped) < 0)
		return NULL;
	return query;
}

struct watch *watch_new(const struct watch_config *config)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->config = *config;
	w->config.path = strdup(config->path);
	w->config.selector = selector_query("labelSelector", config->selector);
	w->config.field = selector_query("fieldSelector", config->field ? config->field : "");
	w->config.resource = strdup(config->resource);
	w->config.namespace = strdup(config->namespace);
	w->page = config->page;
	w->silent = SILENT_MS;
	w->err = 1;
	if (!w->config.path || !w->config.selector || !w->config.field || !w->config.resource ||
	    !w->config.namespace) {
		watch_free(w);
		return NULL;
	}
	next(w);
	return w;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	if (w->request)
		http_cancel(w->request);
	loop_timer_free(w->timer);
	spec_split_free(w->split);
	forget_version(w);
	free((char *)(uintptr_t)w->config.path);
	free((char *)(uintptr_t)w->config.selector);
	free((char *)(uintptr_t)w->config.field);
	free((char *)(uintptr_t)w->config.resource);
	free((char *)(uintptr_t)w->config.namespace);
	free(w);
}

const char *watch_verb(const struct watch *w)
{
	return w->verb;
}

const char *watch_version(const struct watch *w)
{
	return w && w->version ? w->version : "";
}
