/* SPDX-License-Identifier: MIT */
/*
 * Requests to one server by libcurl on the loop: calls with a deadline, and streams without one.
 * Two multi handles (rule T7): writes and short reads never wait behind streams. HTTP/2 if the
 * server supports it (at most 90 streams a connection), else HTTP/1.1. TLS, proxy and impersonation
 * are those of the connection, credentials come from credential.h. I/O thread only, except http_new
 * and http_free.
 *
 * The folder client/ talks to one API server and knows nothing of jobs. Its objects, one per file:
 *
 *         kubeconfig  finds the kubeconfig; its connection is the caller's, and all below borrow it
 *         credential  the credentials of requests; owns the plugin (one run of a credential
 * plugin); reads files on the pool
 *         http        owns http_server (the connection prepared for curl), two curl_loop and all
 * http_request
 *         curl_loop   a multi handle of curl on libuv; an http_easy is one transfer in it
 *         watch       one resource of a namespace; has at most two http_request
 *         podlog      one stream of one log of a container; has at most two http_request
 *
 * The creator of an object frees it. http_stop calls back when nothing is in progress.
 */
#pragma once

#include "backend/client/credential.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"

struct http;
struct tally;
struct http_request;

enum http_method { HTTP_GET, HTTP_POST, HTTP_PATCH /* a JSON merge patch */, HTTP_DELETE };

/* The result of a call. All strings are borrowed and never NULL. */
struct http_reply {
	/*
	 * 0: the whole reply has arrived, with STATUS. Otherwise it has not: -ETIMEDOUT (deadline),
	 * -EHOSTUNREACH (no route, DNS, refused, no connection by the deadline), -EIO (TLS, broken
	 * connection, no HTTP), -EACCES (credential; nothing was sent), -EFBIG (more than
	 * MAX_BODY), -EINVAL (PATH is not valid), or what the bytes function returned.
	 */
	int err;
	int status; /* of the reply; 0 if no status line arrived */
	/*
	 * The server may have acted on the request: some of it may have been sent, and no whole
	 * reply arrived. Always false if ERR is 0. A request other than GET is repeated only after
	 * a reply which guarantees that the server did nothing.
	 */
	bool sent;
	bool again;	  /* an earlier attempt of this call received such a reply */
	unsigned wait_ms; /* Retry-After in ms, at most 60 s; 0 if there is none */
	int64_t date;	  /* the server's clock (Date), in s since 1970; 0 if there is none */
	const char *text; /* for people: the error below HTTP, from curl or the plugin */
	/*
	 * The body: the first 64 KiB of a reply that is not 2xx; all of a 2xx if there is no BYTES
	 * function.
	 */
	const char *body;
	size_t len;
};

/* True if the server has done what the request asked for. */
static inline bool http_succeeded(const struct http_reply *reply)
{
	return !reply->err && reply->status / 100 == 2;
}

/*
 * Return the errno for REPLY, a failure, and its text for people (malloc'ed; NULL: the errno is
 * enough).
 */
static inline int http_refusal(const struct http_reply *reply, const struct spec_asked *asked,
			       char **ret_text)
{
	if (!reply->err)
		return spec_reply_errno(reply->status, reply->body, reply->len, asked, ret_text);
	*ret_text = text_print("%s %s: %s", asked->verb, asked->resource,
			       *reply->text ? reply->text : strerror(-reply->err));
	return reply->err;
}

/* True if the server may have acted on a request other than GET that failed with REPLY. */
static inline bool http_is_unknown(const struct http_reply *reply)
{
	return reply->err ? reply->sent
			  : !spec_reply_did_nothing(reply->status, reply->body, reply->len);
}

/* Plain data: the caller fills it in, and http_send copies it. */
struct http_call {
	enum http_method method;
	const char *path; /* with its query; below the server's URL */
	const char *body; /* JSON, or NULL; copied */
	size_t len;
	/*
	 * This is a stream: it uses the other multi handle and has no deadline for the whole.
	 * DEADLINE_MS is for the head of the reply. IDLE_MS (0: none) ends it with -ETIMEDOUT when
	 * no byte arrived for that long.
	 */
	bool stream;
	unsigned deadline_ms; /* of the whole call, its retries included; never 0 */
	unsigned idle_ms;
	size_t max_body; /* the largest body kept for DONE; 0: 64 KiB. A larger one is -EFBIG */
	bool fresh;	 /* use a new connection: the open ones may be dead */
	bool alone;	 /* use an HTTP/1.1 connection of its own, which nothing reuses */
	bool compress;	 /* the server may compress the reply: for long lists, not for streams */
	/* Request only the metadata of a list's objects, or of those in a watch's events. */
	enum { HTTP_WHOLE, HTTP_METADATA_LIST, HTTP_METADATA } metadata;
	bool urgent;   /* a user waits for it: refresh credentials that failed */
	bool harmless; /* a POST that changes nothing, such as a dry run, so it may be repeated */
	/*
	 * Retry, within the deadline and the budget that all calls share, after 429 and 503 (after
	 * their Retry-After, or a growing pause) and after a broken connection. Both only if the
	 * server did nothing (spec_reply_did_nothing) or the request may be repeated (GET,
	 * HARMLESS). After a 401 the call is always retried once with fresh credentials.
	 */
	bool retry;
	/* Called when a 2xx reply begins. May be NULL. */
	void (*head)(void *data, int status);
	/*
	 * Called for each chunk of its body. If NULL, the body is kept for DONE. A negative errno
	 * ends the call with that error.
	 */
	int (*bytes)(void *data, const char *bytes, size_t n);
	/* Called exactly once at the end, never from within http_send. */
	void (*done)(void *data, const struct http_reply *reply);
	void *data;
};

/*
 * Create a client. C and CR are borrowed and must outlive it. Return 0, or a negative errno with
 * *RET_TEXT (a CA file can't be read ...).
 */
int http_new(struct loop *loop, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text);
/*
 * Call FN when a request has succeeded after one had failed: the server is reachable again. Waiting
 * requests are retried then automatically.
 */
void http_set_recovered(struct http *http, loop_fn fn, void *data);
/* Cancel all requests without calling done(). FN is called once everything has ended. */
void http_stop(struct http *http, loop_fn fn, void *data);
/* Call this after http_stop has called FN, or if no request was ever sent. */
void http_free(struct http *http);

/* Start CALL. Return NULL after http_stop. The result is valid until done() is called. */
struct http_request *http_send(struct http *http, const struct http_call *call);
/* Cancel RQ; done() is not called any more. */
void http_cancel(struct http_request *rq);
/* Cancel *RQ, which may be NULL, and set it to NULL. */
static inline void http_drop(struct http_request **rq)
{
	if (*rq)
		http_cancel(take_ptr(*rq));
}
/*
 * Pause the stream RQ until http_resume: its bytes stay unread from the next chunk on, and the
 * server slows down. Other requests continue. Over HTTP/2 curl first reads up to 32 MiB of it into
 * memory. Return false if too many streams are paused. While paused, IDLE_MS does not count. Both
 * functions may be called within bytes().
 */
bool http_pause(struct http_request *rq);
void http_resume(struct http_request *rq);
/*
 * Deliver the next chunk of RQ only in the next round of the loop. Otherwise curl may deliver MiB
 * without pause, and a request made within bytes() is sent only after that.
 */
void http_yield(struct http_request *rq);

/*
 * Return why the server has not sent what was requested, malloc'ed: a request failed and is
 * retried, or there was no reply yet. NULL if neither is known.
 */
char *http_trouble(const struct http *http);

/* For .kxfs/info and metrics; any thread. */
struct http_counts {
	/*
	 * Requests by verb, resource and code, counted when the head of the reply arrived, or (code
	 * "none") when it was clear that none would. Requests cancelled before that are not
	 * counted. Valid as long as HTTP.
	 */
	const struct tally *answers;
	uint64_t failed, retried;
	unsigned connections; /* open now */
};
void http_count(struct http *http, struct http_counts *ret);
