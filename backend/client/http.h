/* SPDX-License-Identifier: MIT */
/*
 * One server, spoken to by libcurl on the loop: calls with a deadline, and streams without one. Two
 * multi handles (rule T7): writes and short reads never wait behind streams. HTTP/2 where the server
 * has it (at most 90 streams a connection), else HTTP/1.1. TLS, proxy and impersonation are those of the
 * connection, credentials come from credential.h. I/O thread only, but for http_new and http_free.
 *
 * The folder client/ is one API server and knows nothing of jobs. Its objects, each in one file:
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

enum http_method {
	HTTP_GET,
	HTTP_POST,
	HTTP_PATCH, /* a JSON merge patch */
	HTTP_DELETE,
	HTTP_PUT, /* may go out twice, as may a GET */
};

/* With what a request is signed, as curl does that for CURLOPT_AWS_SIGV4. Plain data. */
struct http_key {
	const char *scope; /* "aws:amz:REGION:SERVICE" */
	const char *id, *secret;
};

/* How a call has ended. All strings are borrowed and never NULL. */
struct http_reply {
	/*
	 * 0: the server answered (STATUS says what), whole. Else nothing whole came: -ETIMEDOUT
	 * (deadline), -EHOSTUNREACH (no route, DNS, refused, no connection by the deadline), -EIO (TLS, broken
	 * connection, no HTTP), -EACCES (credential; nothing was sent), -EFBIG (more than MAX_BODY), -EINVAL
	 * (PATH is none), or what the bytes function returned.
	 */
	int err;
	int status; /* 0: no reply line came */
	/*
	 * The server may have acted on it: it went out (or may have), and no whole reply came. Never
	 * true with ERR 0. What is neither a GET nor a PUT never goes out twice, but after a reply that says that
	 * nothing was done.
	 */
	bool sent;
	bool again;	  /* that was so: an earlier try of it was answered */
	unsigned wait_ms; /* Retry-After; 0: none. At most 60 s */
	int64_t date;	  /* the server's clock (Date), in s since 1970; 0: it does not say */
	const char *text; /* for people: what went wrong below HTTP, curl's words or the plugin's */
	const char *wanted; /* what the head has as http_call.wanted; "" nothing */
	/* Of a reply that is not 2xx (its first 64 KiB); of 2xx when there is no BYTES function. */
	const char *body;
	size_t len;
};

/* The errno of REPLY, which is no success, and its text for people (malloc'ed; NULL: no more than the errno says). */
int http_refusal(const struct http_reply *reply, const struct spec_asked *asked, char **ret_text);

/* May the server have acted on a request, not a GET, that was answered with REPLY, which is no success? */
bool http_is_unknown(const struct http_reply *reply);

/* Plain data: whoever sends a call fills one in, and http_send copies it. */
struct http_call {
	enum http_method method;
	const char *path; /* with its query; below the server's URL */
	const char *body; /* JSON; NULL: none. Copied */
	size_t len;
	/* Of a server of no kubeconfig: lines of the head, each ends with a newline; NULL: none. Copied */
	const char *headers;
	const struct http_key *key; /* NULL: it is not signed. Copied */
	const char *wanted; /* the name of a line of the reply's head; NULL: none. It stays */
	/*
	 * A stream: on the other multi handle, no deadline for the whole; DEADLINE_MS is for the head of
	 * the reply, and IDLE_MS (0: none) ends it with -ETIMEDOUT when no byte came for so long.
	 */
	bool stream;
	unsigned deadline_ms; /* of the whole call, its retries included; never 0 */
	unsigned idle_ms;
	size_t max_body; /* of what is kept for DONE; 0: 64 KiB. More is -EFBIG */
	bool fresh;	 /* on a new connection: those that there are may be dead */
	bool alone; /* on a connection of its own, of HTTP/1.1, which nothing else uses after it */
	bool compress; /* the server may compress the reply: for long lists, not for streams */
	bool metadata; /* of the objects of a list no more than their metadata is wanted */
	bool hurried;  /* a user waits for it: a credential that failed is asked for anew */
	/*
	 * Send it again, within the deadline and the budget that all calls share: after 429 and 503 (the wait is its
	 * Retry-After, or grows from try to try), and after a broken connection, both only where nothing was done
	 * (spec_reply_did_nothing) or doing it twice is the same (GET). After a 401 it is sent once more with fresh
	 * credentials whether this is set or not.
	 */
	bool retry;
	/* A 2xx reply begins. May be NULL. */
	void (*head)(void *data, int status);
	/* Its bytes. May be NULL: they are kept for DONE. A negative errno ends the call with it. */
	int (*bytes)(void *data, const char *bytes, size_t n);
	/* Exactly once, never from within http_send. */
	void (*done)(void *data, const struct http_reply *reply);
	void *data;
};

/*
 * Both are borrowed and must stay; CR is NULL where C is of no kubeconfig: then calls carry what they have. 0,
 * or a negative errno with *RET_TEXT (a CA file that can't be read ...).
 */
int http_new(struct loop *loop, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text);
/*
 * FN is called when the server has answered a request with success after one that had failed: it is there again.
 * What waits here to be sent again goes at once by itself.
 */
void http_set_recovered(struct http *http, loop_fn fn, void *data);
/* End all that is under way; done() is not called any more. Then FN once nothing of it runs. */
void http_stop(struct http *http, loop_fn fn, void *data);
void http_free(struct http *http); /* after http_stop, or when it was never used */

/* NULL: after http_stop. The result is valid until done() is called. */
struct http_request *http_send(struct http *http, const struct http_call *call);
/* done() is not called any more. */
void http_cancel(struct http_request *rq);
/*
 * The stream RQ waits: from the next chunk on its bytes stay where they are, and the server is slowed, until
 * http_resume; others are not. Over HTTP/2 curl takes up to 32 MiB of it into memory first. False: so many of these
 * wait that this one can't. The time between two bytes does not count meanwhile. Both may be called within bytes().
 */
bool http_pause(struct http_request *rq);
void http_resume(struct http_request *rq);
/*
 * The next chunk of RQ comes when the loop has gone round once. Else curl may give out MiB without pause, and a request
 * that is made within bytes() goes out only after that.
 */
void http_yield(struct http_request *rq);

/* For .kxfs/info and metrics; any thread. */
struct http_counts {
	/*
	 * Attempts by verb, resource and code: when the head of the answer came, or (code "none") when
	 * it was clear that none would. Not those that were cancelled before. Valid as HTTP is.
	 */
	const struct tally *answers;
	uint64_t failed, retried;
	unsigned connections, streams; /* open now */
};
void http_count(struct http *http, struct http_counts *ret);
