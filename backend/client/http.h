/* SPDX-License-Identifier: MIT */
/*
 * Sends requests to one server with libcurl on the loop: calls, which have a deadline, and streams,
 * which have none. Calls and streams have separate multi handles (rule T7), so that calls never
 * wait behind streams. kxfs uses HTTP/2 if the server supports it (at most 90 streams per
 * connection), else HTTP/1.1. The kubeconfig's connection determines TLS, proxy and impersonation.
 * Credentials come from credential.h. I/O thread only, except http_new and http_free.
 *
 * The folder client/ talks to one API server, and does not depend on jobs. Its objects, one per
 * file:
 *
 * kubeconfig  finds the kubeconfig; the caller owns the connection, which all objects below borrow
 * credential  makes the credentials of requests, and reads files on the pool; owns the plugin, one
 *             run of a credential plugin
 * http        owns http_server (the connection prepared for curl), two curl_loop, all http_request
 * curl_loop   a multi handle of curl on libuv; an http_easy is one transfer in it
 * watch       watches one resource of a namespace; has at most two http_request
 * podlog      one stream of a container's log; has at most two http_request
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
	 * 0: the whole reply has arrived, and its status is STATUS. Otherwise a negative errno:
	 * -ETIMEDOUT (deadline, or idle timeout of a stream), -EHOSTUNREACH (no route, DNS,
	 * connection refused, no connection by the deadline), -EIO (TLS, broken connection, not
	 * HTTP), -EACCES (no credential, so nothing was sent), -EFBIG (the body exceeds MAX_BODY),
	 * -EINVAL (PATH is not valid), or the error that bytes() returned.
	 */
	int err;
	int status; /* HTTP status of the reply; 0 if no status line arrived */
	/*
	 * True if the server may have carried out the request: some of its bytes may have been
	 * sent, but no complete reply arrived. Always false if ERR is 0.
	 */
	bool sent;
	/* True if an earlier attempt got a reply that guarantees that the server did nothing. */
	bool again;
	unsigned wait_ms; /* Retry-After in ms, at most 60 s; 0 if there is none */
	/* the Date header, in s since 1970; 0 if there is none */
	int64_t date;
	/* If there is no HTTP reply, the reason for people (from curl or the plugin); else "". */
	const char *text;
	/*
	 * If the reply is an error (not 2xx), BODY has the first 64 KiB of its body. If the reply
	 * is 2xx and the call's BYTES is NULL, BODY has the whole body. Otherwise BODY is empty,
	 * because bytes() got the whole body.
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
 * Return the negative errno for REPLY, which must be a failure. Set *RET_TEXT to a text for people,
 * malloc'ed.
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

/*
 * True if the server may have carried out the request although REPLY is a failure. REPLY must be a
 * failed reply to a request other than GET.
 */
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
	 * True if the request is a stream, which uses the multi handle of streams. In this case,
	 * DEADLINE_MS limits only the time until the head of the reply arrives. After that, the
	 * stream ends with -ETIMEDOUT if no byte arrives for IDLE_MS (0: no limit).
	 */
	bool stream;
	unsigned deadline_ms; /* the time limit of the whole call, including its retries; never 0 */
	unsigned idle_ms;
	/* The largest body kept for DONE (0: 64 KiB). A larger body fails the call with -EFBIG. */
	size_t max_body;
	bool fresh; /* true to use a new connection, because the open ones may be dead */
	bool alone; /* true to use an HTTP/1.1 connection that no other request uses */
	/* true if the server may compress the reply: for long lists, not for streams */
	bool compress;
	/*
	 * HTTP_WHOLE requests whole objects. The other two request only the metadata of objects:
	 * HTTP_METADATA_LIST for a list, HTTP_METADATA for the events of a watch.
	 */
	enum { HTTP_WHOLE, HTTP_METADATA_LIST, HTTP_METADATA } metadata;
	/*
	 * True if a user waits for the reply. In this case, kxfs refreshes the credential even if a
	 * refresh has just failed.
	 */
	bool urgent;
	/* True for a POST that has no effect, such as a dry run. Such a request may be repeated. */
	bool harmless;
	/*
	 * True to retry the call after a reply of 429 or 503, and after a broken connection. The
	 * pause is the server's Retry-After, or else grows with each retry. The call's deadline,
	 * and a budget that all calls share, limit the retries. kxfs retries a call only if the
	 * server certainly did not carry it out (spec_reply_did_nothing), or if the call may be
	 * repeated (GET, HARMLESS). After a 401, kxfs retries the call once with a new credential,
	 * even if RETRY is false.
	 */
	bool retry;
	/* Called when a 2xx reply begins. May be NULL. */
	void (*head)(void *data, int status);
	/*
	 * Called for each chunk of the body of a 2xx reply. If this callback returns a negative
	 * errno, the call ends with that error. If BYTES is NULL, the body is kept for DONE.
	 */
	int (*bytes)(void *data, const char *bytes, size_t n);
	/* Called exactly once at the end, never from within http_send. */
	void (*done)(void *data, const struct http_reply *reply);
	void *data;
};

/*
 * Create a client. C and CR are borrowed, and must outlive the client. Return 0, or a negative
 * errno with *RET_TEXT, malloc'ed; for example, if a CA file can't be read.
 */
int http_new(struct loop *loop, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text);
/*
 * Call FN(DATA) whenever the server is reachable again, that is, when a request has succeeded after
 * a failure. At that moment, kxfs also sends the requests that wait for a retry.
 */
void http_set_recovered(struct http *http, loop_fn fn, void *data);
/* Cancel all requests without calling done(). Call FN(DATA) when all transfers have ended. */
void http_stop(struct http *http, loop_fn fn, void *data);
/* Call this after http_stop has called FN, or if no request was ever sent. */
void http_free(struct http *http);

/* Start CALL. The returned request is valid until done() is called. Return NULL after http_stop. */
struct http_request *http_send(struct http *http, const struct http_call *call);
/* Cancel RQ; done() will not be called. */
void http_cancel(struct http_request *rq);
/* Cancel *RQ, which may be NULL, and set *RQ to NULL. */
static inline void http_drop(struct http_request **rq)
{
	if (*rq)
		http_cancel(take_ptr(*rq));
}
/*
 * Pause the stream RQ until http_resume. From the next chunk on, kxfs does not read the stream's
 * bytes, so the server has to wait. Other requests continue. With HTTP/2, curl first reads up to 32
 * MiB of the stream into memory. If too many streams are paused already, do not pause RQ, and
 * return false. The time of the pause does not count towards IDLE_MS. http_pause and http_resume
 * may be called within bytes().
 */
bool http_pause(struct http_request *rq);
void http_resume(struct http_request *rq);
/*
 * Deliver the next chunk of RQ only in the next round of the loop. Without this, curl may deliver
 * several MiB at once, and other requests would have to wait. Even a request that bytes() has
 * started would be sent only after all these bytes.
 */
void http_yield(struct http_request *rq);

/*
 * Return a text for people, malloc'ed, that describes why replies are missing: a request has failed
 * and will be retried, or the server has not replied to any request yet. Return NULL if neither is
 * the case.
 */
char *http_trouble(const struct http *http);

/* Numbers for .kxfs/info and .kxfs/metrics. Any thread. */
struct http_counts {
	/*
	 * Numbers of requests by verb, resource and code. kxfs counts a request when the head of
	 * its reply arrives. If it is certain that no reply will arrive, kxfs counts the request
	 * with the code "none". kxfs does not count a request that was cancelled earlier. The tally
	 * is valid as long as the struct http exists.
	 */
	const struct tally *answers;
	uint64_t failed, retried;
	unsigned connections; /* open now */
};
void http_count(struct http *http, struct http_counts *ret);
