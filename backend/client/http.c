/* SPDX-License-Identifier: MIT */
/*
 * Requests to one server:
 *
 * state   | what is in progress           | what ends it                          | next
 * NEW     | nothing                       | the timer, after 0 ms                 | QUEUED
 * QUEUED  | the request waits in its lane | the lane may start a request          | ASKING
 * ASKING  | credential_get runs           | it delivers a credential              | RUNNING
 *         |                               | it fails                              | OVER
 * RUNNING | a transfer of curl            | the first reply of 401                | QUEUED
 *         |                               | a failure, if a retry is allowed      | WAITING
 *         |                               | any other end                         | OVER
 * WAITING | a pause before the retry      | the timer, at the end of the pause    | QUEUED
 * OVER    | the request waits to be freed | work(), which is posted               | (freed)
 *
 * The deadline, http_cancel and http_stop lead from every state to OVER. Each request has one
 * timer. Except in NEW and WAITING, the timer expires at the deadline. But once the head of a
 * stream has arrived, the stream has no deadline, and the timer is its idle timeout. When the
 * server is reachable again, kxfs ends all pauses except those that the server has requested
 * (Retry-After).
 *
 * Within a callback of curl, code must not use curl's handles or free a request. Such code calls
 * post_work, and work() frees requests and starts others later. The group counts the requests and
 * the curl_loops. http_stop waits until it is empty.
 *
 * This is one file because a request is one state machine: curl's callbacks, the timer and the
 * posted work all change its state.
 */
#include "backend/client/http.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <utlist.h>

#include "backend/base/process.h"
#include "backend/base/random.h"
#include "backend/client/curl_loop.h"
#include "backend/client/http_easy.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"

#define BODY_MAX    (64u << 10)
#define BURST_MAX   (1u << 20)
#define WAIT_MAX_MS 60000
/* The largest numbers of connections. The limit of file descriptors may allow fewer for streams. */
#define CALL_SOCKETS   64
#define STREAM_SOCKETS 16384
/* The largest number of paused HTTP/2 streams. For each, curl may keep up to 32 MiB in memory. */
#define PAUSED_MAX 8
/* Since curl 7.88.1, a paused HTTP/2 stream does not stop the other streams of its connection. */
#define PAUSES_SINCE 0x075801

/*
 * All calls share this budget of retries, so that more jobs don't mean more retries for a server in
 * trouble.
 */
#define BUDGET_MAX  32	/* retries that may follow each other without a pause */
#define BUDGET_MS   500 /* time after which one more retry is allowed */
#define BACKOFF_MIN 250u
#define BACKOFF_MAX 10000u

/*
 * A queue of requests for one multi handle. With HTTP/2, requests share only established
 * connections, so curl would open a connection for each request of a burst. To avoid this, kxfs
 * passes the next request to curl only when the one before has its connection. With HTTP/1.1,
 * requests are not queued.
 */
struct lane {
	struct curl_loop *curl;
	/*
	 * True if requests can share connections (HTTP/2). Before the first reply, true if the
	 * server uses TLS.
	 */
	bool shares;
	unsigned starting;	    /* requests that have no connection yet */
	struct http_request *queue; /* requests that wait to start */
};

struct http {
	struct loop *loop;
	struct credential *credential;
	struct http_server server;
	struct group group; /* the requests and curl_loops */
	bool begun;	    /* both lanes have their curl_loop */
	bool work_posted;
	bool stopping;
	struct lane calls, streams;
	struct http_request *requests; /* requests that are not OVER */
	struct http_request *dead;     /* requests that are OVER and not freed yet */
	struct http_request *resumed;  /* requests with a pending resume, sorted by RESUME_ROUND */
	unsigned n_paused;	       /* paused HTTP/2 streams */
	uint64_t round;		       /* number of calls of work() */
	/*
	 * ANSWERS: requests succeed. FAILING: the last request failed, or is retried. RECOVERED: a
	 * request has succeeded after failures, and work() will notify the owner.
	 */
	enum { ANSWERS, FAILING, RECOVERED } answers_now;
	bool heard;	      /* a reply has arrived */
	char *trouble;	      /* why a request is retried; NULL after a success */
	loop_fn on_recovered; /* may be NULL */
	void *recovered_data;
	unsigned tokens;       /* retries allowed now */
	uint64_t tokens_since; /* when the last token was added, by loop_now_ms */
	struct tally answers;  /* by verb, resource and code */
	atomic_ullong n_failed, n_retried;
	atomic_uint n_connections;
};

enum state { NEW, QUEUED, ASKING, RUNNING, WAITING, OVER };

struct http_request {
	struct http *http;
	struct http_call call;
	char *path, *call_body; /* copies; CALL points to them */
	enum state state;
	struct loop_timer timer;
	uint64_t deadline, due; /* by loop_now_ms; DUE: when NEW or WAITING ends */
	uint64_t ticket;	/* of credential_get; 0 if none */
	struct backoff backoff;
	/* in WAITING: the server has chosen the time of the retry (Retry-After) */
	bool server_chose;
	bool renewed; /* retried with other credentials after a 401 */
	/* retried after 429 or 503 (see struct http_reply) */
	bool again;
	bool paused; /* by http_pause */
	/*
	 * Flags. IN_STARTING: STARTING of the lane counts this request. IN_PAUSED: N_PAUSED of HTTP
	 * counts this request.
	 */
	enum { IN_STARTING = 1, IN_PAUSED = 2 } counted;
	/*
	 * The value of http.round when http_resume or http_yield was called; 0 if no resume is
	 * pending. The next call of work() resumes the transfer.
	 */
	uint64_t resume_round;
	struct http_request *prev, *next;
	struct http_request *queue_prev, *queue_next;
	struct http_request *resume_prev, *resume_next;

	/* The current transfer: */
	struct http_easy easy;
	uint64_t generation; /* of the credential */
	struct transfer {
		bool sent;   /* bytes of the request may have been sent */
		bool head;   /* the reply's head is complete */
		bool shares; /* the reply came over HTTP/2 */
		/* The owner got a part of the reply. A retry would deliver this part twice. */
		bool passed_on;
	} now;
	size_t burst; /* bytes received since on_body last let other requests proceed */
	int status;
	int64_t date; /* from the reply's head, or 0 */
	int body_err; /* error of a callback that ended the transfer, or 0 */
	uint64_t last_byte;
	char *body;
	size_t len, size;
};

static void work(void *data);

static void post_work(struct http *http)
{
	if (http->work_posted)
		return;
	http->work_posted = true;
	group_enter(&http->group);
	loop_post(http->loop, work, http);
}

static struct lane *lane_of(struct http_request *rq)
{
	return rq->call.stream ? &rq->http->streams : &rq->http->calls;
}

static bool is_good(const struct http_request *rq)
{
	return rq->now.head && rq->status / 100 == 2;
}

/* Call this when the head of the current reply has arrived, or can't arrive. Count the reply. */
static void count_answer(struct http_request *rq)
{
	struct http *http = rq->http;

	http->heard |= rq->now.head;
	if (is_good(rq))
		free(take_ptr(http->trouble));
	if (is_good(rq) && http->answers_now == FAILING) {
		http->answers_now = RECOVERED;
		post_work(http);
	}
	http_tally_add(&http->answers, rq->call.method, rq->call.path,
		       rq->now.head ? rq->status : 0);
}

/* --- the end of a request --- */

/* End the current transfer. Don't call this within a callback of curl. */
static void drop_try(struct http_request *rq)
{
	if (!rq->easy.curl)
		return;
	curl_loop_remove(lane_of(rq)->curl, rq->easy.curl);
	http_easy_fini(&rq->easy);
}

/* Call this when RQ has a connection, or needs none. Let the next request of its lane start. */
static void started(struct http_request *rq)
{
	if (!(rq->counted & IN_STARTING))
		return;
	rq->counted &= ~IN_STARTING;
	lane_of(rq)->starting--;
	if (lane_of(rq)->queue)
		post_work(rq->http);
}

static void stop_waiting(struct http_request *rq)
{
	rq->http->n_paused -= (rq->counted & IN_PAUSED) != 0;
	rq->counted &= ~IN_PAUSED;
	rq->paused = false;
}

static void resume_over(struct http_request *rq)
{
	if (rq->resume_round)
		DL_DELETE2(rq->http->resumed, rq, resume_prev, resume_next);
	rq->resume_round = 0;
}

/*
 * End RQ, whose owner gets no callbacks from now on. RQ remains valid until control returns to the
 * loop.
 */
static void end_request(struct http_request *rq)
{
	struct http *http = rq->http;

	resume_over(rq);
	if (rq->state == QUEUED)
		DL_DELETE2(lane_of(rq)->queue, rq, queue_prev, queue_next);
	started(rq);
	stop_waiting(rq);
	rq->state = OVER;
	loop_timer_stop(&rq->timer);
	if (rq->ticket)
		credential_cancel(http->credential, rq->ticket);
	rq->ticket = 0;
	DL_DELETE(http->requests, rq);
	DL_APPEND(http->dead, rq);
	post_work(http);
}

static unsigned retry_after(const struct http_request *rq)
{
	curl_off_t seconds = 0;

	if (curl_easy_getinfo(rq->easy.curl, CURLINFO_RETRY_AFTER, &seconds) || seconds <= 0)
		return 0;
	return (unsigned)min_of(seconds, (curl_off_t)(WAIT_MAX_MS / 1000)) * 1000;
}

static void finish(struct http_request *rq, int err, const char *text)
{
	const struct http_reply reply = {
		.err = err,
		.status = rq->status,
		.date = rq->date,
		.sent = err && rq->now.sent,
		.again = rq->again,
		.wait_ms = rq->easy.curl ? retry_after(rq) : 0,
		.text = text ? text : "",
		.body = rq->len ? rq->body : "",
		.len = rq->len,
	};

	if (err)
		atomic_fetch_add(&rq->http->n_failed, 1);
	if (err || rq->status == 401 || rq->status >= 500)
		rq->http->answers_now = FAILING;
	end_request(rq);
	rq->call.done(rq->call.data, &reply);
}

/* --- the timer of a request --- */

static void arm(struct http_request *rq, uint64_t at)
{
	uint64_t now = loop_now_ms();

	loop_timer_set(&rq->timer, at > now ? at - now : 0);
}

static void too_late(struct http_request *rq)
{
	bool idle = rq->call.stream && is_good(rq);
	bool connects = !rq->now.sent && rq->state != ASKING;
	const char *what = idle			 ? "the server sent no data"
			   : rq->state == ASKING ? "no credentials"
			   : connects		 ? "no connection"
			   : rq->now.head	 ? "incomplete answer"
						 : "no answer";
	cleanup_free char *text =
		text_print("%s: %s within %.1f s", rq->http->server.name, what,
			   (idle ? rq->call.idle_ms : rq->call.deadline_ms) / 1000.0);

	if (rq->state == RUNNING && !rq->now.head)
		count_answer(rq);
	/* Without a connection, return the same error as after curl's connect timeout. */
	finish(rq, connects ? -EHOSTUNREACH : -ETIMEDOUT, text);
}

/* --- callbacks of curl, which may only continue or end the transfer --- */

/* True if sending RQ twice has the same effect as sending it once. */
static bool may_repeat(const struct http_request *rq)
{
	return rq->call.method == HTTP_GET || rq->call.harmless;
}

/*
 * Called before curl sends the request. If a reused connection breaks, curl sends the request
 * again. Prevent this for a request such as a POST, which the server may have carried out already.
 */
static int before_sending(void *data, char *remote_ip, char *local_ip, int remote_port,
			  int local_port)
{
	struct http_request *rq = data;

	if (rq->now.sent && !may_repeat(rq))
		return CURL_PREREQFUNC_ABORT;
	rq->now.sent = true;
	started(rq);
	return CURL_PREREQFUNC_OK;
}

/* If LINE, of N bytes, is the header NAME, return its value, malloc'ed. Otherwise return NULL. */
static char *value_of(const char *line, size_t n, const char *name)
{
	size_t at = strlen(name);

	if (n <= at || line[at] != ':' || strncasecmp(line, name, at) != 0)
		return NULL;
	for (at++; at < n && (line[at] == ' ' || line[at] == '\t');)
		at++;
	while (n > at && strchr("\r\n ", line[n - 1]))
		n--;
	return mem_copy(line + at, n - at);
}

/* Ignore the heads of 1xx replies, and trailers after the body. An empty line ends the head. */
static size_t on_header(char *line, size_t size, size_t n, void *data)
{
	struct http_request *rq = data;
	bool empty = size * n > 0 && (*line == '\r' || *line == '\n');
	long status = 0, version = 0;

	if (rq->state == OVER)
		return 0;
	curl_easy_getinfo(rq->easy.curl, CURLINFO_RESPONSE_CODE, &status);
	if (!empty && !rq->now.head) {
		cleanup_free char *date = value_of(line, size * n, "date");

		if (date)
			rq->date = max_of((int64_t)curl_getdate(date, NULL), (int64_t)0);
	}
	if (!empty || rq->now.head || status < 200)
		return size * n;
	curl_easy_getinfo(rq->easy.curl, CURLINFO_HTTP_VERSION, &version);
	rq->now.shares = version >= CURL_HTTP_VERSION_2_0;
	if (!rq->call.alone)
		lane_of(rq)->shares = rq->now.shares;
	if (lane_of(rq)->queue)
		post_work(rq->http);
	rq->now.head = true;
	rq->status = (int)status;
	count_answer(rq);
	rq->last_byte = loop_now_ms();
	if (is_good(rq)) {
		/* After its head, a stream has no deadline, but perhaps an idle timeout. */
		if (rq->call.stream && rq->call.idle_ms)
			arm(rq, rq->last_byte + rq->call.idle_ms);
		else if (rq->call.stream)
			loop_timer_stop(&rq->timer);
		if (rq->call.head) {
			rq->now.passed_on = true;
			rq->call.head(rq->call.data, rq->status);
		}
	}
	return rq->state == OVER ? 0 : size * n;
}

/* Append bytes to the body for done(). Return -EFBIG if the body would exceed MAX bytes. */
static int keep_bytes(struct http_request *rq, const char *bytes, size_t n, size_t max)
{
	size_t size = max_of(rq->size, (size_t)1024);

	if (n > max - rq->len)
		return -EFBIG;
	while (size < rq->len + n + 1)
		size *= 2;
	if (size > rq->size) {
		rq->body = mem_grow(rq->body, size, 1);
		rq->size = size;
	}
	memcpy(rq->body + rq->len, bytes, n);
	rq->len += n;
	rq->body[rq->len] = '\0';
	return 0;
}

static int take_bytes(struct http_request *rq, const char *bytes, size_t n)
{
	const struct http_call *call = &rq->call;

	/* The beginning of an error reply is enough to explain the error. */
	if (!is_good(rq))
		return keep_bytes(rq, bytes, min_of(n, BODY_MAX - rq->len), BODY_MAX);
	if (!call->bytes)
		return keep_bytes(rq, bytes, n, call->max_body ? call->max_body : BODY_MAX);
	rq->now.passed_on = true;
	return call->bytes(call->data, bytes, n);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *data)
{
	struct http_request *rq = data;

	if (rq->state == OVER)
		return 0;
	if (rq->paused || rq->resume_round)
		return CURL_WRITEFUNC_PAUSE; /* curl delivers this chunk again after the pause */
	rq->last_byte = loop_now_ms();
	curl_loop_count_chunk(lane_of(rq)->curl);
	if (size * n == 0)
		return 0;
	rq->body_err = take_bytes(rq, bytes, size * n);
	if (rq->body_err < 0 || rq->state == OVER)
		return 0;
	/* Curl may deliver several MiB without a pause. Let other requests proceed meanwhile. */
	rq->burst += size * n;
	if (rq->burst >= BURST_MAX) {
		rq->burst = 0;
		http_yield(rq);
	}
	return size * n;
}

/* --- retries --- */

static bool take_token(struct http *http, uint64_t now)
{
	uint64_t more = (now - http->tokens_since) / BUDGET_MS;

	http->tokens_since += more * BUDGET_MS;
	http->tokens = (unsigned)min_of(http->tokens + more, (uint64_t)BUDGET_MAX);
	if (http->tokens == 0)
		return false;
	http->tokens--;
	return true;
}

/*
 * If the deadline and the budget allow a retry, let RQ wait for it, and return true. ASKED is the
 * server's Retry-After in ms, or 0.
 */
static bool wait_to_retry(struct http_request *rq, unsigned asked, const char *why)
{
	uint64_t now = loop_now_ms();
	unsigned wait;

	if (!rq->call.retry)
		return false;
	wait = backoff_next(&rq->backoff, asked);
	if (now + wait >= rq->deadline || !take_token(rq->http, now))
		return false;
	atomic_fetch_add(&rq->http->n_retried, 1);
	started(rq);
	drop_try(rq);
	rq->state = WAITING;
	rq->server_chose = asked;
	rq->http->answers_now = FAILING;
	text_set(&rq->http->trouble, "%s", why);
	arm(rq, rq->due = now + wait);
	return true;
}

static void send_try(struct http_request *rq, const struct credential_parts *parts)
{
	const struct http_easy_config config = {
		.call = &rq->call,
		.server = &rq->http->server,
		.parts = parts,
		.n_connections = &rq->http->n_connections,
		.before = before_sending,
		.header = on_header,
		.bytes = on_body,
		.data = rq,
	};
	int err;

	rq->now = (struct transfer){0};
	rq->status = rq->body_err = 0;
	rq->len = 0;
	rq->generation = parts->generation;
	err = http_easy_init(&rq->easy, &config);
	if (err) {
		finish(rq, err,
		       err == -EACCES	? "the credential contains a control character"
		       : err == -EINVAL ? "the request path is not valid"
					: strerror(-err));
		return;
	}
	rq->state = RUNNING;
	curl_loop_add(lane_of(rq)->curl, rq->easy.curl, rq);
}

static void on_credential(void *data, int err, const struct credential_parts *parts,
			  const char *text)
{
	struct http_request *rq = data;

	rq->ticket = 0;
	if (err)
		finish(rq, -EACCES, text);
	else
		send_try(rq, parts);
}

static bool may_start(const struct lane *m)
{
	return !m->shares || m->starting == 0;
}

/* Start a transfer of RQ, or queue RQ. Don't call this within a callback of curl. */
static void try_request(struct http_request *rq)
{
	struct lane *m = lane_of(rq);
	uint64_t ticket;

	arm(rq, rq->deadline);
	if (!may_start(m)) {
		rq->state = QUEUED;
		DL_APPEND2(m->queue, rq, queue_prev, queue_next);
		return;
	}
	rq->counted |= IN_STARTING;
	m->starting++;
	if (rq->call.urgent)
		credential_retry_now(rq->http->credential);
	rq->call.urgent = false; /* only the first transfer is urgent */
	rq->state = ASKING;
	/* This call may end RQ. But RQ remains valid until control returns to the loop. */
	ticket = credential_get(rq->http->credential, on_credential, rq);
	if (ticket)
		rq->ticket = ticket;
}

static void on_timer(void *data)
{
	struct http_request *rq = data;
	bool begins = rq->state == NEW || rq->state == WAITING;
	bool idle = rq->call.stream && is_good(rq);
	uint64_t at = begins ? rq->due : idle ? rq->last_byte + rq->call.idle_ms : rq->deadline;

	if (rq->paused)
		arm(rq, loop_now_ms() + rq->call.idle_ms);
	else if (loop_now_ms() < at)
		arm(rq, at);
	else if (begins)
		try_request(rq);
	else
		too_late(rq);
}

static bool did_nothing(const struct http_request *rq)
{
	return spec_reply_did_nothing(rq->status, rq->len ? rq->body : "", rq->len);
}

static void answered(struct http_request *rq)
{
	bool harmless = may_repeat(rq) || did_nothing(rq);
	unsigned asked = retry_after(rq);
	cleanup_free char *text =
		text_print("%s: the server returned HTTP %d", rq->http->server.name, rq->status);

	rq->now.sent = false;
	if (rq->status == 401 && !rq->renewed &&
	    credential_refused(rq->http->credential, rq->generation)) {
		rq->renewed = true;
		drop_try(rq);
		try_request(rq);
		return;
	}
	if ((rq->status == 429 || rq->status == 503) && harmless && wait_to_retry(rq, asked, text))
		rq->again = true;
	else
		finish(rq, 0, NULL);
}

static void broken(struct http_request *rq, CURLcode code)
{
	bool harmless = !rq->now.sent || may_repeat(rq);
	cleanup_free char *text = NULL;

	if (!rq->now.head)
		count_answer(rq);
	if (rq->body_err < 0) {
		finish(rq, rq->body_err, rq->body_err == -EFBIG ? "the answer is too large" : NULL);
		return;
	}
	text = http_error_text(code,
			       code == CURLE_ABORTED_BY_CALLBACK
				       ? "the connection broke before the server answered"
				       : rq->easy.words,
			       &rq->http->server);
	if (harmless && !rq->now.passed_on && http_error_passes(code) && wait_to_retry(rq, 0, text))
		return;
	finish(rq, http_error_errno(code), text);
}

/* Called when curl has ended the current transfer of the request DATA. */
static void try_ended(void *data, CURLcode code)
{
	struct http_request *rq = data;

	if (rq->state == OVER)
		return;
	/* If the server closes the connection before the head ends, curl may report success. */
	if (code == CURLE_OK && !rq->now.head)
		code = CURLE_GOT_NOTHING;
	/*
	 * A server may refuse a request before it has read the whole request. It then resets the
	 * stream, which may truncate the reply. Accept a truncated reply that guarantees that the
	 * server did nothing.
	 */
	if (code == CURLE_OK || (rq->now.head && did_nothing(rq)))
		answered(rq);
	else
		broken(rq, code);
}

/* --- posted work, outside of curl --- */

/* Continue the transfer of RQ. Within this call, curl delivers the bytes that it has kept. */
static void resume_now(struct http_request *rq)
{
	CURLcode code;

	resume_over(rq);
	if (rq->state != RUNNING)
		return;
	code = curl_easy_pause(rq->easy.curl, CURLPAUSE_CONT);
	/* Curl may have read more bytes of the stream, which no event reports. */
	curl_loop_read_again(lane_of(rq)->curl);
	/* If curl could not deliver the kept bytes, only CODE reports this. */
	if (code != CURLE_OK && rq->state == RUNNING)
		try_ended(rq, code);
}

static void start_queued(struct lane *m)
{
	while (m->queue && may_start(m)) {
		struct http_request *rq = m->queue;

		DL_DELETE2(m->queue, rq, queue_prev, queue_next);
		try_request(rq);
	}
}

/* Call this when the server is reachable again. End pauses, and notify the owner. */
static void recovered(struct http *http)
{
	struct http_request *rq;

	DL_FOREACH(http->requests, rq) {
		if (rq->state == WAITING && !rq->server_chose)
			arm(rq, rq->due = loop_now_ms());
	}
	if (http->on_recovered)
		return http->on_recovered(http->recovered_data);
}

static void work(void *data)
{
	struct http *http = data;
	bool notify = http->answers_now == RECOVERED && !http->stopping;
	struct http_request *rq;

	http->work_posted = false;
	if (http->answers_now == RECOVERED)
		http->answers_now = ANSWERS;
	http->round++;
	while (!http->stopping && (rq = http->resumed) && rq->resume_round != http->round)
		resume_now(rq); /* may end RQ and other requests */
	while ((rq = http->dead)) {
		DL_DELETE(http->dead, rq);
		drop_try(rq);
		free(rq->path);
		free(rq->call_body);
		free(rq->body);
		free(rq);
		group_leave(&http->group);
	}
	if (http->stopping) {
		curl_loop_free(take_ptr(http->calls.curl));
		curl_loop_free(take_ptr(http->streams.curl));
	} else {
		start_queued(&http->calls);
		start_queued(&http->streams);
	}
	group_leave(&http->group);
	if (notify)
		return recovered(http);
}

/* --- calls --- */

static void lane_init(struct http *http, struct lane *m, long max_connections)
{
	m->shares = http->server.tls;
	m->curl = curl_loop_new(http->loop, &http->group, max_connections, try_ended);
}

struct http_request *http_send(struct http *http, const struct http_call *call)
{
	struct http_request *rq;

	assert(loop_is_here(http->loop) && call->deadline_ms && call->done);
	if (http->stopping)
		return NULL;
	if (!http->begun) {
		/* Streams may use up to half of the file descriptors. */
		rlim_t half = process_allow_descriptors() / 2;

		lane_init(http, &http->calls, CALL_SOCKETS);
		lane_init(http, &http->streams,
			  (long)min_of(max_of(half, (rlim_t)CALL_SOCKETS), (rlim_t)STREAM_SOCKETS));
		http->begun = true;
	}
	rq = new0(struct http_request);
	rq->http = http;
	rq->call = *call;
	rq->call.path = rq->path = text_copy(call->path);
	rq->call.body = rq->call_body = call->body ? mem_copy(call->body, call->len) : NULL;
	rq->deadline = loop_now_ms() + call->deadline_ms;
	rq->backoff = backoff_begin(BACKOFF_MIN, BACKOFF_MAX);
	loop_timer_init(&rq->timer, http->loop, on_timer, rq);
	group_enter(&http->group);
	DL_APPEND(http->requests, rq);
	arm(rq, 0);
	return rq;
}

void http_cancel(struct http_request *rq)
{
	if (rq->state != OVER) /* RQ is OVER if its done() calls this */
		end_request(rq);
}

bool http_pause(struct http_request *rq)
{
	struct http *http = rq->http;

	if (rq->paused || rq->state == OVER)
		return true;
	if (rq->now.shares && (http->n_paused >= PAUSED_MAX ||
			       curl_version_info(CURLVERSION_NOW)->version_num < PAUSES_SINCE))
		return false;
	rq->paused = true;
	if (rq->now.shares) {
		rq->counted |= IN_PAUSED;
		http->n_paused++;
	}
	return true;
}

void http_resume(struct http_request *rq)
{
	if (!rq->paused)
		return;
	stop_waiting(rq);
	rq->last_byte = loop_now_ms();
	http_yield(rq);
}

void http_yield(struct http_request *rq)
{
	resume_over(rq);
	rq->resume_round = rq->http->round;
	DL_APPEND2(rq->http->resumed, rq, resume_prev, resume_next);
	post_work(rq->http);
}

void http_count(struct http *http, struct http_counts *ret)
{
	*ret = (struct http_counts){
		.answers = &http->answers,
		.failed = atomic_load(&http->n_failed),
		.retried = atomic_load(&http->n_retried),
		.connections = atomic_load(&http->n_connections),
	};
}

/* --- life cycle --- */

int http_new(struct loop *loop, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text)
{
	cleanup_free struct http *http = new0(struct http);
	int err;

	*ret_text = NULL;
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		mem_out();
	err = http_server_init(&http->server, c, ret_text);
	if (err) {
		curl_global_cleanup();
		return err;
	}
	http->loop = loop;
	http->credential = cr;
	http->round = 1;
	http->tokens = BUDGET_MAX;
	http->tokens_since = loop_now_ms();
	group_init(&http->group, loop);
	*ret = take_ptr(http);
	return 0;
}

void http_set_recovered(struct http *http, loop_fn fn, void *data)
{
	http->on_recovered = fn;
	http->recovered_data = data;
}

void http_stop(struct http *http, loop_fn fn, void *data)
{
	assert(loop_is_here(http->loop) && !http->stopping);
	http->stopping = true;
	while (http->requests)
		end_request(http->requests);
	post_work(http);
	group_when_empty(&http->group, fn, data);
}

char *http_trouble(const struct http *http)
{
	if (http->trouble)
		return text_copy(http->trouble);
	if (http->heard)
		return NULL;
	if (http->requests && http->requests->state == ASKING)
		return text_print("%s: kxfs is still waiting for the credentials",
				  http->server.name);
	return http_error_text(CURLE_OPERATION_TIMEDOUT, "no answer yet", &http->server);
}

void http_free(struct http *http)
{
	if (!http)
		return;
	assert(!http->requests && http->group.n == 0);
	http_server_fini(&http->server);
	curl_global_cleanup();
	free(http->trouble);
	free(http);
}
