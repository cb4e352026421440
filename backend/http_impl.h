/* SPDX-License-Identifier: MIT */
/*
 * What the files of http share; private to them.
 *
 *	http.c          the whole: its beginning and end, what waits until curl is left
 *	http_request.c  one request: from http_send to done(), its deadline
 *	http_reply.c    what comes back: head, bytes, how an attempt has ended
 *	http_multi.c    curl's multi handles on the loop
 *	http_easy.c     one attempt as curl sees it: its options
 *	http_error.c    curl's error codes: errno, words, whether trying again may help
 *	http_count.c    what was asked for and answered, for .kxfs/metrics
 *	http_retry.c    the budget of retries, and how long to wait
 *	http_server.c   the connection of the kubeconfig, checked and prepared once
 *	http_proxy.c    which proxy the environment names
 *
 * curl calls us back from within curl_multi_*(), where none of these may be called again. So what
 * touches curl runs between http_enter and http_leave, and what may not be done inside is done when the
 * outermost http_leave has come: requests that were cancelled are released, and http_stop does its work.
 */
#ifndef KXFS_BACKEND_HTTP_IMPL_H
#define KXFS_BACKEND_HTTP_IMPL_H

#include <curl/curl.h>
#include <stdatomic.h>

#include "backend/http.h"
#include "backend/impl.h"
#include "backend/tally.h"

#define HTTP_BODY_MAX	 (64u << 10)
#define HTTP_WAIT_MAX_MS 60000
#define HTTP_CONNECT_MS	 10000
#define HTTP_MAX_STREAMS 90 /* a connection; servers allow 100 and more */
#define HTTP_CALL_SOCKETS                                                                          \
	64 /* connections for calls; those for streams are bounded by descriptors */

/* --- http_server.c --- */

/* Where requests go. Made once; any thread may read it. */
struct http_server {
	char *url;	  /* without a slash at its end; its host is the one that TLS verifies */
	char *connect_to; /* with tls-server-name: where to connect to instead, as curl has it; or NULL */
	char *host;	  /* with it: the Host header line; or NULL */
	char *name;	  /* for messages: HOST:PORT */
	char *proxy;  /* "" none */
	char *ca_pem; /* NULL: the system's */
	bool tls, insecure;
	struct curl_slist *impersonate; /* header lines */
};

/* 0, or -EINVAL, -ENOMEM, or the errno of reading the CA file, with *RET_TEXT. */
int http_server_init(struct http_server *s, const struct spec_connection *c, char **ret_text);
void http_server_fini(struct http_server *s);
/* May TEXT be a header's value? Line ends in it would make headers of their own. */
bool http_header_ok(const char *text);

/* --- http_proxy.c --- */

/*
 * The proxy for HOST (without brackets), as kubectl chooses it: HTTPS_PROXY (for http:, HTTP_PROXY) unless
 * NO_PROXY says otherwise or HOST is this machine. "" none. GET is getenv. Valid as getenv's result is.
 */
const char *http_proxy_choose(bool tls, const char *host, unsigned port,
			      char *(*get)(const char *name));

/* --- http_retry.c --- */

/* Retries that all calls may make together: a bucket of tokens that fills up slowly. */
struct http_budget {
	unsigned tokens;
	uint64_t since; /* ms: when the last token came */
};

void http_budget_init(struct http_budget *b, uint64_t now);
bool http_budget_take(struct http_budget *b, uint64_t now);
/*
 * Before try number TRY (2 is the first retry): how long to wait in ms. ASKED is the server's Retry-After
 * (0: none), RANDOM any number.
 */
unsigned http_backoff(unsigned try, unsigned asked, unsigned random);

/* --- http_error.c --- */

int http_error_errno(CURLcode code);
/* May the same request, sent again, end otherwise? */
bool http_error_passes(CURLcode code);
/* For people: curl's WORDS with what to do about it. malloc'ed; NULL: no memory. */
char *http_error_text(CURLcode code, const char *words, const struct http_server *s);

/* --- http_multi.c --- */

struct http_socket;

/*
 * When all connections are full, curl opens one for each stream of a burst, since it does not share a
 * connection that isn't up yet. So requests are given to it one after the other, each when the one
 * before has its connection; but for a server that is known to have HTTP/1.1 only.
 */
struct http_multi {
	struct http *http;
	CURLM *curl;
	uv_timer_t timer;
	uv_timer_t again;  /* until sockets that had something are looked at once more */
	uint64_t n_bodies; /* pieces of replies that have come */
	struct http_socket *sockets;
	bool shares;		    /* connections: true until a reply shows otherwise */
	unsigned starting;	    /* requests that have no connection yet */
	struct http_request *queue; /* those after them */
};

/* On the I/O thread. 0 or a negative errno. */
int http_multi_init(struct http_multi *m, struct http *http, long max_connections);
/* Nothing is in it any more. Its handles close; http_handle_closed is told of each. */
void http_multi_fini(struct http_multi *m);
int http_multi_add(struct http_multi *m, CURL *easy);
void http_multi_remove(struct http_multi *m, CURL *easy);

/* --- http.c --- */

struct http {
	struct loop *loop;
	struct credential *credential;
	struct http_server server;
	struct http_budget budget;
	bool begun; /* curl and the handles below exist */
	struct http_multi calls, streams;
	struct http_request *requests; /* all that live */
	struct http_request *dead;     /* cancelled inside; released by http_leave */
	unsigned depth;		       /* of http_enter */
	unsigned handles;	       /* of libuv, open or closing */
	bool stopping, closed;
	loop_fn stop_fn;
	void *stop_data;
	struct tally answers; /* by verb, resource and code */
	atomic_ullong n_failed, n_retried;
	atomic_uint n_connections, n_streams;
};

enum http_state {
	HTTP_NEW,     /* begins when its timer fires, at once */
	HTTP_QUEUED,  /* in its multi handle's queue */
	HTTP_ASKING,  /* for credentials */
	HTTP_RUNNING, /* in curl's hands */
	HTTP_WAITING, /* to be sent again */
	HTTP_OVER,    /* nothing of it is told any more */
};

struct http_request {
	struct http *http;
	struct http_call call; /* strings owned */
	enum http_state state;
	uv_timer_t timer;
	uint64_t deadline, due; /* loop_now_ms; DUE: when HTTP_NEW or HTTP_WAITING ends */
	uint64_t ticket;	/* of credential_get; 0 none */
	unsigned tries;
	bool refused;  /* a 401 has been tried once more */
	bool starting; /* counted in its multi handle */
	struct http_request *prev, *next;
	struct http_request *queue_prev, *queue_next;

	/* Of the present attempt: */
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	char words[CURL_ERROR_SIZE];
	uint64_t generation; /* of its credential */
	bool sent;	     /* bytes of it may have gone out */
	bool head;	     /* the reply's head is whole */
	bool told;	     /* head() or bytes() was called: it can't be sent again unnoticed */
	int status;
	int body_err; /* why we ended it from within */
	uint64_t last_byte;
	char *body;
	size_t len, size;
};

void http_enter(struct http *http);
void http_leave(struct http *http);
void http_handle_closed(struct http *http);
static inline struct http_multi *http_multi_of(struct http_request *rq)
{
	return rq->call.stream ? &rq->http->streams : &rq->http->calls;
}

/* The handles that requests need are there from the first one on. 0 or a negative errno. */
int http_begin(struct http *http);
/* May another request get a connection now? Else it stands in M's queue, and is tried when it may. */
bool http_may_start(const struct http_multi *m);

/* --- http_request.c --- */

/* Begin an attempt, or stand in the queue for it. */
void http_request_try(struct http_request *rq);
/* Nothing of it is told any more; http_leave releases it. */
void http_request_over(struct http_request *rq);
void http_request_release(struct http_request *rq);
/* It has a connection, or needs none any more: the next may start. */
void http_started(struct http_request *rq);
/* Curl has ended the present attempt. Not from within curl. */
void http_ended(struct http_request *rq, CURLcode code);
/* The head has come: from now on the time between bytes counts, if anything does. */
void http_watch_idle(struct http_request *rq);

/* --- http_reply.c --- */

/* The reply of the present attempt is forgotten; a new one is to come. */
void http_reply_reset(struct http_request *rq);
bool http_is_good(const struct http_request *rq); /* the head says 2xx */
size_t http_on_header(char *line, size_t size, size_t n, void *data);
size_t http_on_body(char *bytes, size_t size, size_t n, void *data);
unsigned http_retry_after(const struct http_request *rq);

/* --- http_count.c --- */

/* The present attempt has been answered (its head is there), or never will be. */
void http_answer_count(struct http_request *rq);

/* --- http_easy.c --- */

/* Make RQ->easy. 0, -ENOMEM, -EACCES (the credential is no header), -EINVAL (the path is none). */
int http_easy_new(struct http_request *rq, const struct credential_view *view);
void http_easy_free(struct http_request *rq);

#endif
