/* SPDX-License-Identifier: MIT */
/*
 * What comes back: curl's callbacks for the head and the bytes of a reply. Called from within curl, so
 * they only take, and end the transfer by refusing bytes. A stream is never paused.
 */
#include <errno.h>

#include "backend/http_impl.h"

void http_reply_reset(struct http_request *rq)
{
	rq->sent = rq->head = rq->told = false;
	rq->status = rq->body_err = 0;
	rq->len = 0;
}

bool http_is_good(const struct http_request *rq)
{
	return rq->head && rq->status / 100 == 2;
}

unsigned http_retry_after(const struct http_request *rq)
{
	curl_off_t seconds = 0;

	if (curl_easy_getinfo(rq->easy, CURLINFO_RETRY_AFTER, &seconds) || seconds <= 0)
		return 0;
	return (unsigned)min_of(seconds, (curl_off_t)(HTTP_WAIT_MAX_MS / 1000)) * 1000;
}

/* A head ends with an empty line. Those of 1xx are not it; trailers come later. */
size_t http_on_header(char *line, size_t size, size_t n, void *data)
{
	struct http_request *rq = data;
	bool empty = size * n > 0 && (*line == '\r' || *line == '\n');
	long status = 0, version = 0;

	if (rq->state == HTTP_OVER)
		return 0;
	curl_easy_getinfo(rq->easy, CURLINFO_RESPONSE_CODE, &status);
	if (!empty || rq->head || status < 200)
		return size * n;
	curl_easy_getinfo(rq->easy, CURLINFO_HTTP_VERSION, &version);
	http_multi_of(rq)->shares = version >= CURL_HTTP_VERSION_2_0;
	rq->head = true;
	rq->status = (int)status;
	http_answer_count(rq);
	rq->last_byte = loop_now_ms();
	if (http_is_good(rq)) {
		http_watch_idle(rq);
		if (rq->call.head) {
			rq->told = true;
			rq->call.head(rq->call.data, rq->status);
		}
	}
	return rq->state == HTTP_OVER ? 0 : size * n;
}

/* Keep bytes for done(), up to MAX. */
static int reply_keep(struct http_request *rq, const char *bytes, size_t n, size_t max)
{
	size_t size = max_of(rq->size, (size_t)1024);
	char *body;

	if (n > max - rq->len)
		return -EFBIG;
	while (size < rq->len + n + 1)
		size *= 2;
	if (size > rq->size) {
		body = realloc(rq->body, size);
		if (!body)
			return -ENOMEM;
		rq->body = body;
		rq->size = size;
	}
	memcpy(rq->body + rq->len, bytes, n);
	rq->len += n;
	rq->body[rq->len] = '\0';
	return 0;
}

static int reply_take(struct http_request *rq, const char *bytes, size_t n)
{
	const struct http_call *call = &rq->call;

	if (!http_is_good(rq)) {
		/* An error's words: their beginning is enough. */
		size_t left = HTTP_BODY_MAX - rq->len;

		return reply_keep(rq, bytes, min_of(n, left), HTTP_BODY_MAX);
	}
	if (!call->bytes)
		return reply_keep(rq, bytes, n, call->max_body ? call->max_body : HTTP_BODY_MAX);
	rq->told = true;
	return call->bytes(call->data, bytes, n);
}

size_t http_on_body(char *bytes, size_t size, size_t n, void *data)
{
	struct http_request *rq = data;

	if (rq->state == HTTP_OVER)
		return 0;
	rq->last_byte = loop_now_ms();
	http_multi_of(rq)->n_bodies++;
	if (size * n == 0)
		return 0;
	rq->body_err = reply_take(rq, bytes, size * n);
	return rq->body_err < 0 || rq->state == HTTP_OVER ? 0 : size * n;
}
