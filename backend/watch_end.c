/* SPDX-License-Identifier: MIT */
/*
 * How a request of a watch has ended, and what is done next: the next page, or the watch from where the list
 * was; after errors the same again, later; all anew where the server no longer has what we know.
 *
 * Pages: a pod of a large job has hundreds of KiB, so the first page is small, and each next one is made so that
 * PAGE_BYTES are to be expected.
 */
#include <errno.h>

#include "backend/diag.h"
#include "backend/tally.h"
#include "backend/watch_impl.h"
#include "spec/event.h"
#include "spec/url.h"

#define PAGE_BYTES (4u << 20)
#define PAGE_MAX   500
#define ABSENT_MS  60000 /* until a resource that is not served is asked for again */
#define STEADY_MS  5000	 /* a watch that lived so long was in order: no backoff after it */

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
	watch_tell(w, err, text ? text : strerror(-err));
	if (err == -EOPNOTSUPP) {
		watch_forget_version(w);
		watch_wait(w, ABSENT_MS);
	} else if (w->config.optional && !reply->err && reply->status == 403 && err != -EAGAIN) {
		watch_forget_version(w);
		watch_wait(w, WATCH_FORBIDDEN_MS);
	} else {
		watch_back_off(w, reply->wait_ms);
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

		watch_forget_version(w);
		failed(w, "list", &reply);
		return;
	}
	if (w->page_objects > 0)
		w->page = page_of(w->page_bytes / w->page_objects + 1);
	if (w->version) {
		w->config.listed(w->config.data);
		watch_tell(w, 0, "");
	}
	watch_next(w);
}

/* The server no longer has the version that we know: list anew. */
static void expired(struct watch *w)
{
	diag(DIAG_INFO, "%s: the server has forgotten where we were; listing anew",
	     w->config.resource);
	watch_forget_version(w);
	/* At once when the last try was in order; a server that says so again and again is not hurried. */
	if (w->backoff)
		watch_back_off(w, 0);
	else {
		w->backoff = WATCH_BACKOFF_MIN;
		watch_next(w);
	}
}

/* A page did not come: it is asked for again, in smaller parts should it have been too slow. */
static void page_failed(struct watch *w, const struct http_reply *reply)
{
	bool passes = reply->err || reply->status >= 500 || reply->status == 429;

	if (!passes || reply->err == -EINVAL || reply->err == -EFBIG)
		watch_forget_version(w);
	if (reply->err == -ETIMEDOUT || reply->status == 504)
		w->page = max_of(w->page / 2, 1u);
	failed(w, "list", reply);
}

void watch_list_done(void *data, const struct http_reply *reply)
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
		watch_forget_version(w);
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

void watch_events_done(void *data, const struct http_reply *reply)
{
	struct watch *w = data;
	bool steady = w->stands && loop_now_ms() - w->stands >= STEADY_MS;
	bool silent = reply->err == -ETIMEDOUT;

	w->request = NULL;
	w->probing = silent && steady;
	w->dead = silent;
	count_end(w, reply);
	if (w->probing && !w->page_bytes)
		w->silent = min_of(w->silent * 2, WATCH_SILENT_MAX_MS);
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
		watch_forget_version(w);
		watch_back_off(w, reply->wait_ms);
	} else if (reply->status == 0) {
		failed(w, "watch", reply);
	} else if (steady) {
		watch_next(w);
	} else {
		watch_back_off(w, reply->wait_ms);
	}
}
