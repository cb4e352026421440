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
 */
#include <errno.h>

#include "backend/diag.h"
#include "backend/random.h"
#include "backend/watch_impl.h"
#include "spec/event.h"
#include "spec/split.h"
#include "spec/url.h"

#define HEAD_MS	     30000 /* until a reply begins */
#define LIST_IDLE_MS 30000
/* How long a watch may be silent at first, and how soon the one that is to tell why must stand. */
#define SILENT_MS   65000
#define PROBE_MS    10000
#define BACKOFF_MAX 30000u
/* A server that has just started refuses everybody for a moment: what stood is not taken for forbidden before. */
#define REFUSALS_MAX 5

/* --- telling --- */

void watch_tell(struct watch *w, int err, const char *text)
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
	watch_next(w);
}

static unsigned jitter(unsigned ms)
{
	unsigned r = 0;

	if (random_bytes(&r, sizeof(r)))
		r = 0;
	return ms / 2 + r % (ms / 2 + 1);
}

void watch_wait(struct watch *w, unsigned ms)
{
	w->timer = loop_timer_new(w->config.loop, ms, 0, on_timer, w);
	if (!w->timer) {
		diag(DIAG_ERROR, "out of memory");
		abort(); /* the view would never be confirmed again, and nobody would know */
	}
}

void watch_back_off(struct watch *w, unsigned at_least)
{
	w->backoff = w->backoff ? min_of(w->backoff * 2, BACKOFF_MAX) : WATCH_BACKOFF_MIN;
	watch_wait(w, max_of(jitter(w->backoff), at_least));
}

/* --- what comes --- */

void watch_forget_version(struct watch *w)
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

/* The watch stands: what was told is confirmed. */
static void on_watch_head(void *data, int status)
{
	struct watch *w = data;

	(void)status;
	w->stands = loop_now_ms();
	watch_tell(w, 0, "");
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
		watch_back_off(w, 1000);
}

static void send_list(struct watch *w)
{
	struct http_call call = {.idle_ms = LIST_IDLE_MS,
				 .retry = true,
				 .compress = true,
				 .done = watch_list_done};
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
		.done = watch_events_done,
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

void watch_next(struct watch *w)
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
	watch_next(w);
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
	watch_forget_version(w);
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
