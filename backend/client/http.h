/* SPDX-License-Identifier: MIT */
/*
 * One server, spoken to by libcurl on the loop: calls with a deadline, and streams without one. Two multi handles (rule
 * T7): writes and short reads never wait behind streams. HTTP/2 where the server has it (at most 90 streams a
 * connection), else HTTP/1.1. TLS, proxy and impersonation are those of the connection, credentials come from
 * credential.h. I/O thread only, but for http_new and http_free.
 *
 * The folder client/ speaks to one API server and knows nothing of jobs. Its objects, each in one file:
 *
 *	kubeconfig  finds the kubeconfig; the connection it names is the caller's, all below borrow it
 *	credential  what requests carry; owns the plugin (one run of a credential plugin), reads files on the pool
 *	http        owns http_server (the connection as curl wants it), two curl_loop and all http_request
 *	curl_loop   a multi handle of curl on libuv; http_easy is one try in it
 *	watch       one resource of a namespace; has at most two http_request
 *	podlog      one stream of one log of a container; has at most two
 *
 * Who makes one frees it; http_stop calls back when nothing of it is under way. All run on the I/O thread.
 */
#pragma once

#include "backend/client/credential.h"

struct http;
struct tally;
struct http_request;
struct spec_asked;

enum http_method { HTTP_GET, HTTP_POST, HTTP_PATCH /* a JSON merge patch */, HTTP_DELETE };

/* How a call has ended. All strings are borrowed and never NULL. */
struct http_reply {
	/*
	 * 0: the server answered, and the whole reply is here (STATUS says what it is). Else no whole reply came:
	 * -ETIMEDOUT (deadline), -EHOSTUNREACH (no route, DNS, refused, no connection by the deadline), -EIO (TLS,
	 * broken connection, no HTTP), -EACCES (credential; nothing was sent), -EFBIG (more than MAX_BODY), -EINVAL
	 * (PATH is not valid), or what the bytes function returned.
	 */
	int err;
	int status; /* of the reply; 0: no reply line came */
	/*
	 * The server may have acted on the request: it was sent, or may have been, and no whole reply came. Never true
	 * with ERR 0. A request that is not a GET is sent twice only after a reply which says that nothing was
	 * done.
	 */
	bool sent;
	bool again;	  /* an earlier try of this call was answered with such a reply */
	unsigned wait_ms; /* Retry-After in ms; 0: none. At most 60 s */
	int64_t date;	  /* the server's clock (Date), in s since 1970; 0: it does not say */
	const char *text; /* for people: what went wrong below HTTP, curl's words or the plugin's */
	/*
	 * The body: of a reply that is not 2xx its first 64 KiB, of a 2xx all of it where there is no BYTES function.
	 */
	const char *body;
	size_t len;
};

/* Has the server done what it was asked for? */
static inline bool http_succeeded(const struct http_reply *reply)
{
	return !reply->err && reply->status / 100 == 2;
}

/* The errno that fits REPLY, which is no success, and its text for people (malloc'ed; NULL: the errno says it all). */
int http_refusal(const struct http_reply *reply, const struct spec_asked *asked, char **ret_text);

/* May the server have acted on a request other than a GET, answered with REPLY, which is no success? */
bool http_is_unknown(const struct http_reply *reply);

/* Plain data: whoever sends a call fills one in, and http_send copies it. */
struct http_call {
	enum http_method method;
	const char *path; /* with its query; below the server's URL */
	const char *body; /* JSON; NULL: none. Copied */
	size_t len;
	/*
	 * It is a stream: it goes to the other multi handle and has no deadline for the whole. DEADLINE_MS is for the
	 * head of the reply; IDLE_MS (0: none) ends it with -ETIMEDOUT when no byte came for that long.
	 */
	bool stream;
	unsigned deadline_ms; /* of the whole call, its retries included; never 0 */
	unsigned idle_ms;
	size_t max_body; /* the largest body that is kept for DONE; 0: 64 KiB. More is -EFBIG */
	bool fresh;	 /* on a new connection: those that are open may be dead */
	bool alone;	 /* on an HTTP/1.1 connection of its own, which nothing uses afterwards */
	bool compress;	 /* the server may compress the reply: for long lists, not for streams */
	bool metadata;	 /* only the metadata of a list's objects is wanted */
	bool hurried;	 /* a user waits for it: credentials that failed are asked for anew */
	bool harmless; /* a POST that changes nothing, such as a dry run, so it may be sent twice */
	/*
	 * Send it again, within the deadline and the budget that all calls share, after 429 and 503 (the pause is their
	 * Retry-After, or grows from try to try) and after a broken connection; both only where nothing was done
	 * (spec_reply_did_nothing) or where it may be sent twice (GET, HARMLESS). After a 401 it is sent once more with
	 * fresh credentials whether this is set or not.
	 */
	bool retry;
	/* A 2xx reply begins. May be NULL. */
	void (*head)(void *data, int status);
	/* Its bytes have come. May be NULL: they are kept for DONE. A negative errno ends the call with that. */
	int (*bytes)(void *data, const char *bytes, size_t n);
	/* The call is over. Called exactly once, never from within http_send. */
	void (*done)(void *data, const struct http_reply *reply);
	void *data;
};

/* C and CR are borrowed and must stay. 0, or a negative errno with *RET_TEXT (a CA file can't be read ...). */
int http_new(struct loop *loop, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text);
/*
 * FN is called when a request has succeeded after one that had failed: the server is there again. Requests that wait to
 * be sent again are sent at once without FN's doing.
 */
void http_set_recovered(struct http *http, loop_fn fn, void *data);
/* End all requests; done() is not called for any. FN is called once nothing is under way any more. */
void http_stop(struct http *http, loop_fn fn, void *data);
/* To be called when http_stop has called FN, or if no request was ever sent. */
void http_free(struct http *http);

/* Begin CALL. NULL: http_stop was called. The result is valid until done() is called. */
struct http_request *http_send(struct http *http, const struct http_call *call);
/* End RQ; done() is not called any more. */
void http_cancel(struct http_request *rq);
/* The same, of *RQ, which is NULL then and may be NULL before. */
static inline void http_drop(struct http_request **rq)
{
	if (*rq)
		http_cancel(take_ptr(*rq));
}
/*
 * Let the stream RQ wait until http_resume: from the next chunk on its bytes stay where they are, and the server is
 * slowed; other requests are not. Over HTTP/2 curl first takes up to 32 MiB of it into memory. False: so many streams
 * wait that this one can't. Meanwhile the time between two bytes is not limited. Both functions may be called within
 * bytes().
 */
bool http_pause(struct http_request *rq);
void http_resume(struct http_request *rq);
/*
 * Let the next chunk of RQ come only when the loop has gone round once. Else curl may give out MiB without pause, and a
 * request that is made within bytes() is sent only after that.
 */
void http_yield(struct http_request *rq);

/* For .kxfs/info and metrics; any thread. */
struct http_counts {
	/*
	 * Tries by verb, resource and code, counted when the head of the answer came, or (code "none") when it was
	 * clear that none would. Tries that were cancelled before that are not counted. Valid as long as HTTP.
	 */
	const struct tally *answers;
	uint64_t failed, retried;
	unsigned connections; /* open now */
};
void http_count(struct http *http, struct http_counts *ret);
