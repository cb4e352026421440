/* SPDX-License-Identifier: MIT */
/*
 * Sends requests to one server with libcurl. The reply to a call must arrive before a deadline. A
 * stream may last forever. Calls and streams have separate multi handles (rule T7), so that calls
 * never wait behind streams. The kubeconfig's connection determines TLS, proxy and impersonation.
 * I/O thread only, except http_new and http_free.
 *
 * The folder client/ talks to one API server, and knows nothing of jobs:
 *
 * kubeconfig  finds the kubeconfig; the objects below borrow its connection
 * credential  makes the credentials of requests; owns one plugin
 * plugin      one run of a credential plugin
 * http        owns http_server (the prepared connection), two curl_loop, all http_request
 * curl_loop   a multi handle of curl on libuv; an http_easy is one transfer in it
 * watch       watches one resource of a namespace
 * podlog      one stream of a container's log
 *
 * The creator of an object frees it.
 */
#pragma once

#include "backend/client/credential.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"

struct http;
struct tally;
struct http_request;

enum http_method { HTTP_GET, HTTP_POST, HTTP_PATCH /* a JSON merge patch */, HTTP_DELETE };

/* The result of a call. Strings are borrowed and never NULL. */
struct http_reply {
	/*
	 * 0: the whole reply has arrived. Otherwise a negative errno: -ETIMEDOUT (deadline, or idle
	 * timeout of a stream), -EHOSTUNREACH (no route, DNS, connection refused, no connection by
	 * the deadline), -EIO (TLS, broken connection, not HTTP), -EACCES (no credential, so
	 * nothing was sent), -EFBIG (the body exceeds MAX_BODY), -EINVAL (PATH is not valid), or
	 * the error of bytes().
	 */
	int err;
	int status; /* 0 if no status line arrived */
	/*
	 * The server may have carried out the request: some bytes of it were sent, but no complete
	 * reply arrived. False if ERR is 0.
	 */
	bool sent;
	/*
	 * The call was retried after a 429 or 503. Unless the call may be repeated (GET, HARMLESS),
	 * the reply showed that the earlier attempt had no effect. But a proxy may have passed on
	 * the request before it sent such a reply.
	 */
	bool again;
	unsigned wait_ms; /* Retry-After, at most 60 s; 0 if none */
	/* the Date header, in s since 1970; 0 if none */
	int64_t date;
	/* If there is no HTTP reply, a text for people with the reason; else "". */
	const char *text;
	/*
	 * If the status is 2xx, the whole body, or "" if the call has BYTES. Otherwise the first 64
	 * KiB of the body.
	 */
	const char *body;
	size_t len;
};

/* True if the server has carried out the request. */
static inline bool http_succeeded(const struct http_reply *reply)
{
	return !reply->err && reply->status / 100 == 2;
}

/* Return the negative errno of a failure. Set *RET_TEXT to a text for people, malloc'ed. */
static inline int http_refusal(const struct http_reply *reply, const struct spec_asked *asked,
			       char **ret_text)
{
	if (!reply->err)
		return spec_reply_errno(reply->status, reply->body, reply->len, asked, ret_text);
	*ret_text = text_print("%s %s: %s", asked->verb, asked->resource,
			       *reply->text ? reply->text : strerror(-reply->err));
	return reply->err;
}

/*
 * REPLY belongs to a failed request other than a GET. True if the server may have carried out the
 * request.
 */
static inline bool http_is_unknown(const struct http_reply *reply)
{
	return reply->err ? reply->sent
			  : !spec_reply_did_nothing(reply->status, reply->body, reply->len);
}

/* Plain data. http_send copies the call. */
struct http_call {
	enum http_method method;
	const char *path; /* with the query, below the server's URL */
	const char *body; /* JSON, or NULL; copied */
	size_t len;
	/*
	 * True to use the multi handle of streams. DEADLINE_MS then limits only the time until the
	 * head of the reply. After the head, the stream ends with -ETIMEDOUT if no byte arrives for
	 * IDLE_MS (0: no limit).
	 */
	bool stream;
	unsigned deadline_ms; /* includes retries; never 0 */
	unsigned idle_ms;
	/* The largest body kept for DONE; 0 means 64 KiB. */
	size_t max_body;
	bool fresh; /* use a new connection, because open ones may be dead */
	bool alone; /* use an HTTP/1.1 connection that no other request uses */
	/* the server may compress the reply: for long lists, not for streams */
	bool compress;
	/* HTTP_METADATA_LIST and, for a watch, HTTP_METADATA request only the objects' metadata. */
	enum { HTTP_WHOLE, HTTP_METADATA_LIST, HTTP_METADATA } metadata;
	/* A user waits: refresh the credential even if a refresh has just failed. */
	bool urgent;
	/* The request has no effect, such as a dry run, so it may be repeated. */
	bool harmless;
	/*
	 * Retry the call after 429, 503 or a broken connection, if the server certainly did nothing
	 * (spec_reply_did_nothing), or if the call may be repeated (GET, HARMLESS). The deadline,
	 * and a budget that all calls share, limit the retries. Every call is retried once after a
	 * 401, with a new credential.
	 */
	bool retry;
	/* Called when a 2xx reply begins. May be NULL. */
	void (*head)(void *data, int status);
	/* Called for chunks of a 2xx body. A negative errno ends the call. May be NULL. */
	int (*bytes)(void *data, const char *bytes, size_t n);
	/* Called exactly once, never within http_send. */
	void (*done)(void *data, const struct http_reply *reply);
	void *data;
};

/* C and CR must outlive the client. Return 0 or a negative errno with *RET_TEXT, malloc'ed. */
int http_new(struct loop *loop, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text);
/* Set FN(DATA), which is called each time a request succeeds after failures. */
void http_set_recovered(struct http *http, loop_fn fn, void *data);
/* Cancel all requests without calling done(). Call FN(DATA) when all transfers have ended. */
void http_stop(struct http *http, loop_fn fn, void *data);
/* Call this after http_stop has called FN, or if no request was ever sent. */
void http_free(struct http *http);

/* The returned request is valid until done() is called. Return NULL after http_stop. */
struct http_request *http_send(struct http *http, const struct http_call *call);
/* Cancel RQ without calling done(). */
void http_cancel(struct http_request *rq);
static inline void http_drop(struct http_request **rq)
{
	if (*rq)
		http_cancel(take_ptr(*rq));
}
/*
 * From the next chunk on, stop reading RQ's bytes until http_resume, so that the server has to
 * wait. With HTTP/2, curl first reads up to 32 MiB of the stream into memory. If too many streams
 * are paused already, return false without pausing RQ. The pause does not count towards IDLE_MS.
 * http_pause and http_resume may be called within bytes().
 */
bool http_pause(struct http_request *rq);
void http_resume(struct http_request *rq);
/* Deliver RQ's next chunk only in the next round of the loop, so that other requests proceed. */
void http_yield(struct http_request *rq);

/*
 * Return a text for people, malloc'ed, if requests fail or the server has not replied yet; else
 * NULL.
 */
char *http_trouble(const struct http *http);

/* Numbers for .kxfs/info and .kxfs/metrics. Any thread. */
struct http_counts {
	/*
	 * Requests by verb, resource and code. A request is counted when the head of its reply
	 * arrives, or with the code "none" if there is no reply. Valid as long as the struct http.
	 */
	const struct tally *answers;
	uint64_t failed, retried;
	unsigned connections; /* open now */
};
void http_count(struct http *http, struct http_counts *ret);
