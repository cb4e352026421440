/* SPDX-License-Identifier: MIT */
/*
 * Sends requests to one server with libcurl on the loop: calls, which have a deadline, and streams, which have
 * none. Calls and streams have separate multi handles (rule T7), so that calls never wait behind streams. kxfs uses
 * HTTP/2 if the server supports it (at most 90 streams per connection), else HTTP/1.1. The connection of the
 * kubeconfig sets TLS, proxy and impersonation; credentials come from credential.h. I/O thread only, except
 * http_new and http_free.
 *
 * The folder client/ talks to one API server, and does not depend on jobs. Its objects, one per file:
 *
 *	kubeconfig  finds the kubeconfig; the caller owns its connection, and all objects below borrow it
 *	credential  the credentials of requests; owns the plugin (one run of a credential plugin); reads files on the
 *		    pool
 *	http        owns http_server (the connection prepared for curl), two curl_loop and all http_request
 *	curl_loop   a multi handle of curl on libuv; an http_easy is one transfer in it
 *	watch       watches one resource of a namespace; has at most two http_request
 *	podlog      one stream of one log of a container; has at most two http_request
 *
 * The creator of an object frees it. http_stop calls its callback when no request is in progress.
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
	 * 0: the whole reply has arrived, and its status is STATUS. Otherwise the error: -ETIMEDOUT (deadline),
	 * -EHOSTUNREACH (no route, DNS, refused, no connection by the deadline), -EIO (TLS, broken connection, no
	 * HTTP), -EACCES (credential; nothing was sent), -EFBIG (more than MAX_BODY), -EINVAL (PATH is not valid),
	 * or what the bytes function returned.
	 */
	int err;
	int status; /* the status of the reply; 0 if no status line arrived */
	/*
	 * The server may have carried out the request: some bytes of it may have been sent, and no complete reply
	 * arrived. Always false if ERR is 0. A request other than GET is repeated only after a reply which
	 * guarantees that the server did not carry it out.
	 */
	bool sent;
	/* an earlier attempt of this call got a reply which guarantees that the server did nothing */
	bool again;
	unsigned wait_ms; /* Retry-After in ms, at most 60 s; 0 if there is none */
	int64_t date;	  /* the Date header, in s since 1970; 0 if there is none */
	const char *text; /* for people: an error without an HTTP reply, from curl or the plugin */
	/*
	 * The body: of a reply that is not 2xx, the first 64 KiB; of a 2xx reply, everything if BYTES is NULL, else
	 * nothing.
	 */
	const char *body;
	size_t len;
};

/* True if the server has carried out the request. */
static inline bool http_succeeded(const struct http_reply *reply)
{
	return !reply->err && reply->status / 100 == 2;
}

/*
 * Return the negative errno for REPLY, which is a failure. *RET_TEXT is its text for people, malloc'ed, or NULL if
 * the errno explains it.
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

/* True if the server may have carried out a request other than GET although the reply is REPLY, a failure. */
static inline bool http_is_unknown(const struct http_reply *reply)
{
	return reply->err ? reply->sent
			  : !spec_reply_did_nothing(reply->status, reply->body, reply->len);
}

/* Plain data: the caller fills it in, and http_send copies it. */
struct http_call {
	enum http_method method;
	const char *path; /* path and query, below the server's URL */
	const char *body; /* JSON, or NULL; copied */
	size_t len;
	/*
	 * true: the request is a stream, in the multi handle of streams. DEADLINE_MS limits only the time until the
	 * head of the reply. IDLE_MS (0: none) ends the stream with -ETIMEDOUT when no byte arrived for that long.
	 */
	bool stream;
	unsigned deadline_ms; /* the time limit of the whole call, including its retries; never 0 */
	unsigned idle_ms;
	size_t max_body; /* the largest body kept for DONE; 0: 64 KiB. A larger one is -EFBIG */
	bool fresh;	 /* use a new connection: the open ones may be dead */
	bool alone;	 /* use an HTTP/1.1 connection of its own, which nothing reuses */
	bool compress;	 /* the server may compress the reply: for long lists, not for streams */
	/* Request only the metadata of the objects in a list, or in the events of a watch. */
	enum { HTTP_WHOLE, HTTP_METADATA_LIST, HTTP_METADATA } metadata;
	/* a user waits for the reply: refresh credentials even if that has just failed */
	bool urgent;
	bool harmless; /* a POST without an effect, such as a dry run, so it may be repeated */
	/*
	 * Retry after 429 and 503 (after their Retry-After, or a growing pause), and after a broken connection,
	 * within the deadline and the budget that all calls share. Retry only if the server did not carry out the
	 * request (spec_reply_did_nothing), or if the request may be repeated (GET, HARMLESS). Whatever RETRY is,
	 * the call is retried once with fresh credentials after a 401.
	 */
	bool retry;
	/* Called when a 2xx reply begins. May be NULL. */
	void (*head)(void *data, int status);
	/*
	 * Called for each chunk of the body of a 2xx reply. If it returns a negative errno, the call ends with that
	 * error. If BYTES is NULL, the body is kept for DONE.
	 */
	int (*bytes)(void *data, const char *bytes, size_t n);
	/* Called exactly once at the end, never from within http_send. */
	void (*done)(void *data, const struct http_reply *reply);
	void *data;
};

/*
 * Create a client. C and CR are borrowed and must outlive it. Return 0, or a negative errno with *RET_TEXT,
 * malloc'ed (such as: a CA file can't be read).
 */
int http_new(struct loop *loop, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text);
/*
 * Call FN(DATA) when a request has succeeded after another one had failed: the server is reachable again. Requests
 * that wait for a retry are then sent automatically.
 */
void http_set_recovered(struct http *http, loop_fn fn, void *data);
/* Cancel all requests without calling done(). FN(DATA) is called once all transfers have ended. */
void http_stop(struct http *http, loop_fn fn, void *data);
/* Call this after http_stop has called FN, or if no request was ever sent. */
void http_free(struct http *http);

/* Start CALL. The returned request is valid until done() is called. Return NULL after http_stop. */
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
 * Pause the stream RQ until http_resume: from the next chunk on its bytes are not read, so the server slows down.
 * Other requests continue. With HTTP/2, curl first reads up to 32 MiB of the stream into memory. Return false,
 * without pausing, if too many streams are paused. While the stream is paused, IDLE_MS does not count. Both
 * functions may be called within bytes().
 */
bool http_pause(struct http_request *rq);
void http_resume(struct http_request *rq);
/*
 * Deliver the next chunk of RQ only in the next round of the loop. Otherwise curl may deliver several MiB without
 * pause, and a request that bytes() has started is not sent before the end of these.
 */
void http_yield(struct http_request *rq);

/*
 * Return the reason why a reply is missing, malloc'ed: a request has failed and will be retried, or the server has
 * not replied to any request yet. Return NULL if neither is the case.
 */
char *http_trouble(const struct http *http);

/* For .kxfs/info and metrics; any thread. */
struct http_counts {
	/*
	 * Numbers of requests by verb, resource and code. A request is counted when the head of its reply arrives,
	 * or, with the code "none", when it is certain that none will arrive. A request that is cancelled before
	 * that is not counted. Valid as long as HTTP.
	 */
	const struct tally *answers;
	uint64_t failed, retried;
	unsigned connections; /* open now */
};
void http_count(struct http *http, struct http_counts *ret);
