/* SPDX-License-Identifier: MIT */
/*
 * A request and its life: credentials are asked for, an attempt is given to curl, its end leads to another one
 * or to done(). Each has one timer: first it begins the request, so that nothing happens within http_send; then
 * it is the deadline, the wait before a retry, or the time between bytes.
 */
#include <errno.h>
#include <utlist.h>

#include "backend/http_impl.h"
#include "backend/random.h"

/* --- its end --- */

static void request_closed(uv_handle_t *handle)
{
	struct http_request *rq = container_of((uv_timer_t *)handle, struct http_request, timer);
	struct http *http = rq->http;

	free((char *)(uintptr_t)rq->call.path);
	free((char *)(uintptr_t)rq->call.body);
	free(rq->body);
	free(rq);
	http_handle_closed(http);
}

static void request_drop_easy(struct http_request *rq)
{
	if (!rq->easy)
		return;
	http_multi_remove(http_multi_of(rq), rq->easy);
	http_easy_free(rq);
}

void http_request_release(struct http_request *rq)
{
	DL_DELETE(rq->http->dead, rq);
	request_drop_easy(rq);
	uv_close((uv_handle_t *)&rq->timer, request_closed);
}

void http_started(struct http_request *rq)
{
	if (rq->starting)
		http_multi_of(rq)->starting--;
	rq->starting = false;
}

void http_request_over(struct http_request *rq)
{
	struct http *http = rq->http;

	if (rq->state == HTTP_QUEUED)
		DL_DELETE2(http_multi_of(rq)->queue, rq, queue_prev, queue_next);
	http_started(rq);
	rq->state = HTTP_OVER;
	uv_timer_stop(&rq->timer);
	if (rq->ticket)
		credential_cancel(http->credential, rq->ticket);
	rq->ticket = 0;
	if (rq->call.stream)
		atomic_fetch_sub(&http->n_streams, 1);
	DL_DELETE(http->requests, rq);
	DL_APPEND(http->dead, rq);
}

static void request_finish(struct http_request *rq, int err, const char *text)
{
	const struct http_reply reply = {
		.err = err,
		.status = rq->status,
		.sent = err && rq->sent,
		.wait_ms = rq->easy ? http_retry_after(rq) : 0,
		.text = text ? text : "",
		.body = rq->len ? rq->body : "",
		.len = rq->len,
	};

	assert(rq->http->depth > 0);
	if (err)
		atomic_fetch_add(&rq->http->n_failed, 1);
	http_request_over(rq);
	rq->call.done(rq->call.data, &reply);
}

/* --- its timer --- */

static void request_on_timer(uv_timer_t *timer);

static void request_arm(struct http_request *rq, uint64_t at)
{
	uint64_t now = loop_now_ms();

	uv_update_time(rq->timer.loop); /* a long callback must not make it shorter */
	uv_timer_start(&rq->timer, request_on_timer, at > now ? at - now : 0, 0);
}

void http_watch_idle(struct http_request *rq)
{
	if (!rq->call.stream)
		return;
	if (rq->call.idle_ms)
		request_arm(rq, rq->last_byte + rq->call.idle_ms);
	else
		uv_timer_stop(&rq->timer);
}

static void request_too_late(struct http_request *rq)
{
	bool idle = rq->call.stream && http_is_good(rq);
	const char *what = idle			      ? "no byte came"
			   : rq->state == HTTP_ASKING ? "no credential"
			   : !rq->sent		      ? "no connection"
			   : rq->head		      ? "no whole answer"
						      : "no answer";
	cleanup_free char *text = NULL;

	if (asprintf(&text, "%s: %s within %.1f s", rq->http->server.name, what,
		     (idle ? rq->call.idle_ms : rq->call.deadline_ms) / 1000.0) < 0)
		text = NULL;
	if (rq->state == HTTP_RUNNING && !rq->head)
		http_answer_count(rq);
	request_finish(rq, -ETIMEDOUT, text);
}

/* --- its attempts --- */

/* A retry within the deadline and the budget? Then it is under way. */
static bool request_again(struct http_request *rq, unsigned asked)
{
	uint64_t now = loop_now_ms();
	unsigned wait, r = 0;

	if (!rq->call.retry)
		return false;
	if (random_bytes(&r, sizeof(r)))
		r = 0;
	wait = http_backoff(rq->tries + 1, asked, r);
	if (now + wait >= rq->deadline || !http_budget_take(&rq->http->budget, now))
		return false;
	atomic_fetch_add(&rq->http->n_retried, 1);
	http_started(rq);
	request_drop_easy(rq);
	rq->state = HTTP_WAITING;
	request_arm(rq, rq->due = now + wait);
	return true;
}

static void request_send(struct http_request *rq, const struct credential_view *view)
{
	struct http *http = rq->http;
	int err;

	http_reply_reset(rq);
	rq->generation = view->generation;
	err = http_easy_new(rq, view);
	if (!err) {
		rq->state = HTTP_RUNNING;
		err = http_multi_add(rq->call.stream ? &http->streams : &http->calls, rq->easy);
	}
	if (err)
		request_finish(rq, err,
			       err == -EACCES	? "the credential holds a control character"
			       : err == -EINVAL ? "the path of the request is none"
						: strerror(-err));
}

static void request_on_credential(void *data, int err, const struct credential_view *view,
				  const char *text)
{
	struct http_request *rq = data;
	struct http *http = rq->http;

	rq->ticket = 0;
	http_enter(http);
	if (err)
		request_finish(rq, err == -ENOMEM ? err : -EACCES, text);
	else
		request_send(rq, view);
	http_leave(http);
}

void http_request_try(struct http_request *rq)
{
	struct http_multi *m = http_multi_of(rq);
	uint64_t ticket;

	request_arm(rq, rq->deadline);
	if (!http_may_start(m)) {
		rq->state = HTTP_QUEUED;
		DL_APPEND2(m->queue, rq, queue_prev, queue_next);
		return;
	}
	rq->starting = true;
	m->starting++;
	rq->tries++;
	rq->state = HTTP_ASKING;
	/* RQ stays until the loop goes on, also when it has ended within this call. */
	ticket = credential_get(rq->http->credential, request_on_credential, rq);
	if (ticket)
		rq->ticket = ticket;
}

static void request_on_timer(uv_timer_t *timer)
{
	struct http_request *rq = container_of(timer, struct http_request, timer);
	struct http *http = rq->http;
	bool begins = rq->state == HTTP_NEW || rq->state == HTTP_WAITING;
	bool idle = rq->call.stream && http_is_good(rq);
	uint64_t at = begins ? rq->due : idle ? rq->last_byte + rq->call.idle_ms : rq->deadline;

	http_enter(http);
	if (loop_now_ms() < at)
		request_arm(rq, at);
	else if (begins)
		http_request_try(rq);
	else
		request_too_late(rq);
	http_leave(http);
}

static void request_answered(struct http_request *rq)
{
	unsigned asked = http_retry_after(rq);

	rq->sent = false;
	if (rq->status == 401 && !rq->refused &&
	    credential_refused(rq->http->credential, rq->generation)) {
		rq->refused = true;
		request_drop_easy(rq);
		http_request_try(rq);
		return;
	}
	if ((rq->status == 429 || rq->status == 503) && request_again(rq, asked))
		return;
	request_finish(rq, 0, NULL);
}

static void request_broken(struct http_request *rq, CURLcode code)
{
	bool harmless = !rq->sent || rq->call.method == HTTP_GET;
	cleanup_free char *text = NULL;

	if (!rq->head)
		http_answer_count(rq);
	if (rq->body_err < 0) {
		request_finish(rq, rq->body_err,
			       rq->body_err == -EFBIG ? "the answer is too large" : NULL);
		return;
	}
	if (harmless && !rq->told && http_error_passes(code) && request_again(rq, 0))
		return;
	text = http_error_text(code,
			       code == CURLE_ABORTED_BY_CALLBACK
				       ? "the connection broke before an answer came"
				       : rq->words,
			       &rq->http->server);
	request_finish(rq, http_error_errno(code), text);
}

void http_ended(struct http_request *rq, CURLcode code)
{
	if (rq->state == HTTP_OVER)
		return;
	/* A connection that ends in an orderly way within the head is all right for curl. */
	if (code == CURLE_OK && !rq->head)
		code = CURLE_GOT_NOTHING;
	if (code == CURLE_OK)
		request_answered(rq);
	else
		request_broken(rq, code);
}

/* --- calls --- */

struct http_request *http_send(struct http *http, const struct http_call *call)
{
	cleanup_free struct http_request *rq = calloc(1, sizeof(*rq));
	cleanup_free char *path = strdup(call->path);
	cleanup_free char *body = call->body ? malloc(call->len + 1) : NULL;

	assert(loop_is_here(http->loop) && call->deadline_ms && call->done);
	if (http->stopping || !rq || !path || (call->body && !body) || http_begin(http))
		return NULL;
	if (body)
		memcpy(body, call->body, call->len);
	rq->http = http;
	rq->call = *call;
	rq->call.path = take_ptr(path);
	rq->call.body = take_ptr(body);
	rq->deadline = loop_now_ms() + call->deadline_ms;
	uv_timer_init(loop_uv(http->loop), &rq->timer);
	http->handles++;
	DL_APPEND(http->requests, rq);
	if (call->stream)
		atomic_fetch_add(&http->n_streams, 1);
	request_arm(rq, 0);
	return take_ptr(rq);
}

void http_cancel(struct http_request *rq)
{
	struct http *http = rq->http;

	if (rq->state == HTTP_OVER)
		return; /* from within its own done() */
	http_enter(http);
	http_request_over(rq);
	http_leave(http);
}
