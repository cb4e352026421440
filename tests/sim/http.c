/* SPDX-License-Identifier: MIT */
/*
 * Replaces backend/client/http.c and kubeconfig.c: requests on their way to server.c, and their
 * faults. As http.h promises, a request is sent again after a 429 or 503 only if the reply shows
 * that the server did nothing.
 *
 *  state    | phase                              | ends when                   | next
 *  GOES     | the request is on its way          | it arrives, or breaks       | ANSWERED, BROKEN
 *  ANSWERED | the reply is on its way            | it arrives                  | over, or GOES
 *  BROKEN   | kxfs will be notified of the break | kxfs is notified            | over
 *  STREAMS  | chunks of a stream arrive          | it breaks, ends, or is idle | over
 *
 * kxfs may abandon a request that is still on its way. The server acts on it when it arrives.
 */
#include "backend/client/http.h"

#include <errno.h>
#include <utlist.h>

#include "backend/base/print.h"
#include "backend/client/kubeconfig.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define PIECE_MAX     4096
#define RIGHTS_EACH_S 15
#define FORBIDDEN_S   60
#define AWAY_BEGIN_S  240 /* the server may become unreachable within this time */
#define AWAY_S	      SERVER_AWAY_S
#define LATE_MS	      3000u /* how long after a break the server may act on the request */

struct http {
	struct loop *loop;
	struct http_request *all;
	bool stopping;
	struct tally answers;
	loop_fn recovered;
	void *recovered_data;
	bool failing;
};

struct http_request {
	struct http *http;
	struct http_call call;
	unsigned number;
	uint64_t since, fed; /* us: when it began; when bytes last arrived */
	unsigned restores;   /* how often etcd had been restored when it began */
	bool again, over;
	bool paused;
	struct server_watch *watch;
	/*
	 * The status and the body of a reply, or the bytes that the server has sent on a stream so
	 * far. kxfs has received the first AT bytes.
	 */
	int status;
	unsigned wait_ms; /* the reply's Retry-After */
	char *text;
	size_t len, at;
	bool ended; /* TEXT is complete */
	bool feeding;
	int err;
	bool sent;
	bool unread; /* kxfs was not yet notified of the status */
	struct http_request *prev, *next;
};

/* One attempt of a request as the server sees it. It continues even if kxfs is killed. */
struct
try {
	char *method, *path, *body;
	size_t len;
	struct http_request *rq; /* NULL if kxfs no longer waits for it */
	unsigned life;
	bool deaf;	   /* the reply is lost */
	unsigned restores; /* how often etcd had been restored when it began */
};

static unsigned last_number;
static bool mended;

/*
 * Rights that the mounting user may lose for a while. If a right is missing, the server refuses
 * requests with this method (NULL: any) whose path contains IN.
 */
static const struct right {
	const char *method, *in;
} rights[] = {{"GET", "/pods?"}, {"GET", "/log?"}, {"GET", "/events?"}, {"GET", "/apis/"},
	      {"POST", "/"},	 {"DELETE", "/"},  {"PATCH", "/"},	{NULL, "/"}};
static const struct right *taken; /* the right that is missing now, or NULL */

/*
 * Until this time the server is unreachable although it runs: all connections are reset, and new
 * ones are refused.
 */
static uint64_t away_until;

static bool is_down(void)
{
	return server_is_down() || sim_now() < away_until;
}

static bool goes_wrong(unsigned per_mille)
{
	return !mended && sim_chance(SIM_NET, per_mille);
}

/* --- the end of a request --- */

/* True if RQ creates an object. */
static bool is_launch(const struct http_request *rq)
{
	return rq->call.method == HTTP_POST && rq->call.body && !strstr(rq->call.path, "dryRun=");
}

static void over(void *data)
{
	struct http_request *rq = data;
	struct http_reply reply = {
		.err = rq->err,
		.status = rq->status,
		.sent = rq->sent,
		.again = rq->again,
		.wait_ms = rq->wait_ms,
		.date = 0,
		.text = rq->err ? strerror(-rq->err) : "",
		.body = rq->text ? rq->text : "",
		.len = rq->call.bytes && rq->status / 100 == 2 ? 0 : rq->len,
	};
	struct http *http = rq->http;
	bool good = !rq->err && rq->status / 100 == 2;

	if (rq->over)
		return;
	rq->over = true;
	DL_DELETE(http->all, rq);
	if (rq->watch)
		server_unwatch(take_ptr(rq->watch));
	if (good && http->failing && http->recovered)
		loop_post(http->loop, http->recovered, http->recovered_data);
	http->failing = !good;
	rq->call.done(rq->call.data, &reply);
}

/* Notify kxfs after US microseconds that RQ has ended. */
static void end(struct http_request *rq, uint64_t us, int err, bool sent);

static void on_over(void *data)
{
	sim_loop_call(over, data);
}

static void end(struct http_request *rq, uint64_t us, int err, bool sent)
{
	rq->err = err;
	rq->sent = sent && err;
	if (err)
		sim_log("net", "#%u breaks: %s", rq->number, strerror(-err));
	sim_after(us, SIM_OF_KXFS, on_over, rq);
}

static void on_deadline(void *data)
{
	struct http_request *rq = data;

	if (rq->over)
		return;
	rq->err = -ETIMEDOUT;
	rq->sent = true;
	sim_log("net", "#%u takes too long", rq->number);
	sim_loop_call(over, rq);
}

/* --- bytes --- */

static void feed(void *data);

static void on_feed(void *data)
{
	sim_loop_call(feed, data);
}

static void feed_soon(struct http_request *rq, uint64_t us)
{
	if (rq->feeding || rq->over)
		return;
	rq->feeding = true;
	sim_after(us, SIM_OF_KXFS, on_feed, rq);
}

/* Deliver the next chunk. Its length is random. */
static void feed(void *data)
{
	struct http_request *rq = data;
	size_t n;
	int err = 0;

	rq->feeding = false;
	if (rq->over || rq->paused)
		return;
	if (rq->unread && rq->call.head)
		rq->call.head(rq->call.data, rq->status);
	rq->unread = false;
	if (rq->over)
		return;
	rq->fed = sim_now();
	if (rq->at < rq->len && goes_wrong(sim_faults.cut)) {
		rq->err = -EIO;
		sim_log("net", "#%u is cut", rq->number);
		return over(rq);
	}
	if (rq->at < rq->len) {
		cleanup_free char *piece = NULL;

		n = 1 + sim_below(SIM_NET, PIECE_MAX);
		n = min_of(n, rq->len - rq->at);
		piece = mem_copy(rq->text + rq->at, n);
		rq->at += n;
		err = rq->call.bytes(rq->call.data, piece, n);
	}
	if (rq->over)
		return;
	if (err) {
		rq->err = err;
		return over(rq);
	}
	if (rq->at < rq->len)
		return feed_soon(rq, sim_delay(SIM_NET, SIM_MS));
	if (rq->ended)
		return over(rq);
}

static void on_event(void *data, const char *line, size_t len)
{
	struct http_request *rq = data;

	rq->ended |= !line;
	/* If the server is down, this is a broken connection, not the end of the stream. */
	if (!line && is_down())
		rq->err = -EIO;
	if (line) {
		rq->text = mem_grow(rq->text, rq->len + len + 1, 1);
		memcpy(rq->text + rq->len, line, len);
		rq->len += len;
		rq->text[rq->len] = '\0';
	}
	feed_soon(rq, 0);
}

/* End a stream that has been silent for too long. */
static void on_idle(void *data)
{
	struct http_request *rq = data;
	uint64_t limit = rq->call.idle_ms * SIM_MS, quiet = sim_now() - rq->fed;

	if (rq->over)
		return;
	if (quiet >= limit && !rq->paused) {
		rq->err = -ETIMEDOUT;
		sim_log("net", "#%u is silent", rq->number);
		sim_loop_call(over, rq);
		return;
	}
	sim_after(rq->paused ? limit : limit - quiet, SIM_OF_KXFS, on_idle, rq);
}

/* --- one attempt --- */

static const char *const methods[] = {
	[HTTP_GET] = "GET",
	[HTTP_POST] = "POST",
	[HTTP_PATCH] = "PATCH",
	[HTTP_DELETE] = "DELETE",
};

static void try_free(struct try *t)
{
	free(t->method);
	free(t->path);
	free(t->body);
	free(t);
}

static void go(void *data);

/* The reply has arrived: end the request, or send it again as http.c does. */
static void answered(void *data)
{
	struct http_request *rq = data;

	if (rq->over)
		return;
	if (rq->status / 100 != 2 && is_launch(rq))
		users_refused(rq->call.body);
	if (rq->call.retry && (rq->status == 429 || rq->status == 503) &&
	    spec_reply_did_nothing(rq->status, rq->text, rq->len) &&
	    sim_now() - rq->since < rq->call.deadline_ms * SIM_MS / 2) {
		rq->again = true;
		free(take_ptr(rq->text));
		rq->len = rq->at = 0;
		sim_after(rq->wait_ms * SIM_MS + 1 + sim_delay(SIM_NET, 2 * SIM_S), SIM_OF_KXFS, go,
			  rq);
		return;
	}
	if (rq->call.bytes && rq->status / 100 == 2) {
		rq->unread = rq->ended = true;
		feed_soon(rq, 0);
		return;
	}
	on_over(rq);
}

static const char proxy_page[] =
	"<html>upstream connect error or disconnect/reset before headers</html>";

static void proxy(struct server_reply *reply)
{
	static const int codes[] = {502, 503, 504, 503, 200};

	free(reply->body);
	reply->status = codes[sim_below(SIM_NET, array_size(codes))];
	reply->body = text_copy(proxy_page);
	reply->len = strlen(proxy_page);
}

/*
 * Replace REPLY by a 500 or 504, which does not show whether the server has acted on the request.
 */
static void trouble(struct server_reply *reply)
{
	bool late = sim_chance(SIM_NET, 500);

	free(reply->body);
	reply->status = late ? 504 : 500;
	reply->body = late ? server_status(504, "Timeout", "request did not complete in time")
			   : server_status(500, "InternalError", "etcdserver: request timed out");
	reply->len = strlen(reply->body);
}

static bool is_forbidden(const struct try *t)
{
	return taken && (!taken->method || streq(taken->method, t->method)) &&
	       strstr(t->path, taken->in);
}

/*
 * Reply with 401. The server sends this reply before it has read the request, and the body of the
 * reply may be cut off (docs/facts.md).
 */
static void refuse_stranger(struct server_reply *reply)
{
	reply->status = 401;
	reply->body = server_status(401, "Unauthorized", "Unauthorized");
	if (sim_chance(SIM_RIGHTS, 300))
		reply->body[sim_below(SIM_RIGHTS, (unsigned)strlen(reply->body))] = '\0';
}

/* Reply as if a webhook had refused the request or timed out. The server does not act on it. */
static void refuse_by_webhook(struct server_reply *reply)
{
	static const struct {
		int code;
		const char *reason, *text;
	} no[] = {{403, "Forbidden", "admission webhook \\\"x\\\" denied the request: not today"},
		  {400, "BadRequest",
		   "admission webhook \\\"x\\\" denied the request: no such team"},
		  {500, "InternalError",
		   "failed calling webhook \\\"x\\\": context deadline exceeded"}};
	unsigned i = sim_below(SIM_WEBHOOKS, array_size(no));

	reply->status = no[i].code;
	reply->body = server_status(no[i].code, no[i].reason, no[i].text);
}

/*
 * True if the server refuses the request. *REPLY is then the refusal, and the request has no
 * effect.
 */
static bool is_refused(const struct try *t, struct server_reply *reply)
{
	*reply = (struct server_reply){0};
	if (is_forbidden(t)) {
		reply->status = 403;
		reply->body = server_status(403, "Forbidden",
					    "it is forbidden: User \\\"ann\\\" cannot do that in "
					    "the namespace \\\"team\\\"");
	} else if (goes_wrong(sim_faults.busy)) {
		static const struct {
			int code;
			const char *reason;
		} busy[] = {{429, "TooManyRequests"}, {503, "ServiceUnavailable"}};
		unsigned i = sim_below(SIM_NET, array_size(busy));

		reply->status = busy[i].code;
		/* A 429 has a plain text, and may have a Retry-After (docs/facts.md). */
		reply->body = i ? server_status(reply->status, busy[i].reason, "try again")
				: text_copy("Too many requests, please try again later.");
		reply->wait_ms = i ? 0 : 1000 * sim_below(SIM_RIGHTS, 10);
	} else if (goes_wrong(sim_faults.stranger)) {
		refuse_stranger(reply);
	} else if (streq(t->method, "POST") && goes_wrong(sim_faults.quota)) {
		static const struct {
			int code;
			const char *reason, *text;
		} no[] = {{403, "Forbidden", "exceeded quota: jobs, used: 5, limited: 5"},
			  {400, "BadRequest",
			   "admission webhook denied the request: no such queue"}};
		unsigned i = sim_below(SIM_NET, array_size(no));

		reply->status = no[i].code;
		reply->body = server_status(no[i].code, no[i].reason, no[i].text);
	}
	if (!reply->body && !streq(t->method, "GET") && sim_faults.webhooks && !mended &&
	    sim_chance(SIM_WEBHOOKS, sim_faults.webhooks / 2))
		refuse_by_webhook(reply);
	reply->len = reply->body ? strlen(reply->body) : 0;
	return reply->body;
}

/*
 * RQ has reached a server that is down, or that was restored meanwhile. The connection breaks, or a
 * proxy answers.
 */
static void find_down(struct http_request *rq)
{
	static const int codes[] = {502, 503};
	bool down = server_is_down() && rq->restores == server_restores();

	if (!down || !sim_faults.proxied || sim_chance(SIM_NET, 300))
		return end(rq, 0, -EIO, true);
	free(rq->text);
	rq->status = codes[sim_below(SIM_NET, array_size(codes))];
	rq->text = text_copy(proxy_page);
	rq->len = strlen(proxy_page);
	rq->at = 0;
	sim_after(sim_delay(SIM_NET, 50 * SIM_MS), SIM_OF_KXFS, answered, rq);
}

/* Handle a request that has arrived at the server. */
static void arrive(void *data)
{
	struct try *t = data;
	struct server_reply reply;
	struct http_request *rq = t->rq;
	bool heard = rq && t->life == sim_life() && !rq->over && !t->deaf;
	void (*spoil)(struct server_reply * reply) = NULL;

	/* No request outlives the restart of the server for a restore. */
	if (is_down() || t->restores != server_restores()) {
		if (heard)
			find_down(rq);
		return try_free(t);
	}
	if (goes_wrong(sim_faults.proxied) && sim_chance(SIM_NET, 300))
		spoil = proxy;
	else if (goes_wrong(sim_faults.troubled) && sim_chance(SIM_NET, 300))
		spoil = trouble;
	/* A proxy that answers in the server's place may not have forwarded the request. */
	if (spoil && sim_chance(SIM_NET, 500)) {
		reply = (struct server_reply){0};
		spoil(&reply);
	} else if (!is_refused(t, &reply)) {
		server_ask(t->method, t->path, t->body, t->len, &reply);
		if (spoil)
			spoil(&reply);
	}
	if (!streq(t->method, "GET") || (heard && reply.status / 100 != 2))
		sim_log("server", "#%u %s %.120s: %d%s",
			rq && t->life == sim_life() ? rq->number : 0, t->method, t->path,
			reply.status, heard ? "" : ", but kxfs gets no reply");
	if (heard) {
		rq->status = reply.status;
		rq->wait_ms = reply.wait_ms;
		free(rq->text);
		rq->text = reply.body;
		rq->len = reply.len;
		rq->at = 0;
		sim_after(sim_delay(SIM_NET, 50 * SIM_MS), SIM_OF_KXFS, answered, rq);
	} else {
		free(reply.body);
	}
	try_free(t);
}

static struct try *try_new(struct http_request *rq)
{
	struct try *t = new0(struct try);

	*t = (struct try){
		.method = text_copy(methods[rq->call.method]),
		.path = text_copy(rq->call.path),
		.body = rq->call.body ? mem_copy(rq->call.body, rq->call.len) : NULL,
		.len = rq->call.body ? rq->call.len : 0,
		.rq = rq,
		.life = sim_life(),
		.restores = server_restores(),
	};
	return t;
}

/*
 * Return the longest time for which a proxy delays a request, in ms: three seconds, or a minute.
 * Within a minute, kxfs may be killed and started again.
 */
static uint64_t late_ms(void)
{
	return sim_chance(SIM_NET, 500) ? 20 * LATE_MS : LATE_MS;
}

/* Break the connection. The server receives the request before the break, after it, or never. */
static void lose(struct http_request *rq)
{
	uint64_t broken = sim_delay(SIM_NET, 2 * SIM_S);
	uint64_t at = sim_chance(SIM_NET, sim_faults.late)
			      ? broken + sim_delay(SIM_NET, late_ms() * SIM_MS)
			      : sim_random(SIM_NET) % (broken + 1);
	struct try *t;

	end(rq, broken, -EIO, true);
	if (sim_chance(SIM_NET, 300))
		return;
	t = try_new(rq);
	t->deaf = true;
	t->rq = NULL;
	sim_after(at, SIM_WORLD, arrive, t);
}

static void start_stream(struct http_request *rq)
{
	static char get[] = "GET";
	cleanup_free char *path = text_copy(rq->call.path);
	struct server_reply reply = {0};

	if (!is_refused(&(struct try){.method = get, .path = path}, &reply))
		rq->watch = server_watch(rq->call.path, on_event, rq, &reply);
	rq->status = rq->watch ? 200 : reply.status;
	rq->wait_ms = reply.wait_ms;
	rq->fed = sim_now();
	if (!rq->watch) {
		rq->text = reply.body;
		rq->len = reply.len;
		sim_after(sim_delay(SIM_NET, 50 * SIM_MS), SIM_OF_KXFS, on_over, rq);
		return;
	}
	rq->unread = true;
	feed_soon(rq, sim_delay(SIM_NET, 50 * SIM_MS));
}

static void on_arrived_stream(void *data)
{
	struct http_request *rq = data;

	if (rq->over)
		return;
	/*
	 * A request for a watch does not survive a restore of etcd, even in a proxy. Otherwise kxfs
	 * would not notice the restore.
	 */
	if (is_down() || rq->restores != server_restores())
		return find_down(rq);
	start_stream(rq);
}

/* True if kxfs reaches a proxy although the server is down. */
static bool is_proxied(void)
{
	return server_is_down() && sim_faults.proxied && sim_chance(SIM_NET, 700);
}

static void go(void *data)
{
	struct http_request *rq = data;
	/* A proxy may delay the request, and forward it after kxfs has ended. */
	bool held_up = goes_wrong(sim_faults.late / 8);
	uint64_t way = sim_delay(SIM_NET, held_up ? late_ms() * SIM_MS : 20 * SIM_MS);

	if (held_up && rq->call.method == HTTP_POST && sim_chance(SIM_NET, sim_faults.killed))
		sim_kxfs_kill(sim_random(SIM_NET) % (way + 1));
	if (rq->over)
		return;
	rq->restores = server_restores();
	if ((is_down() && !is_proxied()) || goes_wrong(sim_faults.refused))
		return end(rq, sim_delay(SIM_NET, SIM_S), -EHOSTUNREACH, false);
	if (is_launch(rq))
		users_sent(rq->call.body);
	if (goes_wrong(sim_faults.lost)) {
		lose(rq);
	} else if (goes_wrong(sim_faults.silent)) {
		struct try *t = try_new(rq);

		t->deaf = true;
		t->rq = NULL;
		if (sim_chance(SIM_NET, 500))
			sim_after(way, SIM_WORLD, arrive, t);
		else
			try_free(t);
	} else if (strstr(rq->call.path, "watch=true") || strstr(rq->call.path, "/log?")) {
		sim_after(way, SIM_OF_KXFS, on_arrived_stream, rq);
	} else {
		sim_after(way, SIM_WORLD, arrive, try_new(rq));
	}
}

/* --- http.h --- */

int http_new(struct loop *loop, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text)
{
	(void)c, (void)cr, (void)ret_text;
	*ret = new0(struct http);
	(*ret)->loop = loop;
	return 0;
}

void http_set_recovered(struct http *http, loop_fn fn, void *data)
{
	http->recovered = fn;
	http->recovered_data = data;
}

void http_cancel(struct http_request *rq)
{
	if (rq->over)
		return;
	rq->over = true;
	DL_DELETE(rq->http->all, rq);
	if (rq->watch)
		server_unwatch(take_ptr(rq->watch));
}

void http_stop(struct http *http, loop_fn fn, void *data)
{
	http->stopping = true;
	while (http->all)
		http_cancel(http->all);
	loop_post(http->loop, fn, data);
}

void http_free(struct http *http)
{
	free(http);
}

struct http_request *http_send(struct http *http, const struct http_call *call)
{
	struct http_request *rq;

	sim_of_world();
	if (http->stopping)
		return NULL;
	rq = new0(struct http_request);
	rq->http = http;
	rq->call = *call;
	rq->call.path = text_copy(call->path);
	rq->call.body = call->body ? mem_copy(call->body, call->len) : NULL;
	rq->number = ++last_number;
	rq->since = rq->fed = sim_now();
	DL_APPEND(http->all, rq);
	bounds_asked(methods[call->method], rq->call.path, rq->call.body);
	sim_log("kxfs", "#%u %s %.160s", rq->number, methods[call->method], call->path);
	if (!call->stream)
		sim_after(call->deadline_ms * SIM_MS, SIM_OF_KXFS, on_deadline, rq);
	else if (call->idle_ms)
		sim_after(call->idle_ms * SIM_MS, SIM_OF_KXFS, on_idle, rq);
	sim_after(0, SIM_OF_KXFS, go, rq);
	return rq;
}

bool http_pause(struct http_request *rq)
{
	rq->paused = true;
	return true;
}

void http_resume(struct http_request *rq)
{
	rq->paused = false;
	rq->fed = sim_now();
	feed_soon(rq, 0);
}

void http_yield(struct http_request *rq)
{
	(void)rq;
}

char *http_trouble(const struct http *http)
{
	return NULL;
}

void http_count(struct http *http, struct http_counts *ret)
{
	*ret = (struct http_counts){.answers = &http->answers};
}

/* --- kubeconfig.h --- */

int kubeconfig_load(const char *option, const char *dir, const char *context,
		    struct spec_connection *ret, char **ret_text)
{
	static const char text[] =
		"current-context: sim\n"
		"contexts: [{name: sim, context: {cluster: c, user: u, namespace: team}}]\n"
		"clusters: [{name: c, cluster: {server: 'https://sim:6443'}}]\n"
		"users: [{name: u, user: {token: t}}]\n";
	struct spec_kubeconfig *k cleanup(spec_kubeconfig_freep) = spec_kubeconfig_new();
	struct spec_errors e cleanup(spec_errors_clear) = SPEC_ERRORS_INIT;

	(void)option, (void)dir, (void)context, (void)ret_text;
	if (spec_kubeconfig_merge(k, "/sim", text, strlen(text), &e) < 0)
		return -EINVAL;
	return spec_kubeconfig_connect(k, "", ret, &e);
}

int kubeconfig_contexts(const char *option, char ***ret, char **ret_text)
{
	(void)option, (void)ret, (void)ret_text;
	return -ENOENT;
}

/* --- world.h --- */

void sim_http_kill(void)
{
	server_unwatch_all();
}

static void give_back(void *data)
{
	(void)data;
	if (taken)
		sim_log("server", "the mounting user has all rights again");
	taken = NULL;
}

static void take(void *data)
{
	if (mended)
		return;
	if (!taken && sim_chance(SIM_RIGHTS, sim_faults.forbidden)) {
		taken = &rights[sim_below(SIM_RIGHTS, array_size(rights))];
		sim_log("server", "the mounting user may not %s %s any more",
			taken->method ? taken->method : "request", taken->in);
		sim_after(1 + sim_delay(SIM_RIGHTS, FORBIDDEN_S * SIM_S), SIM_WORLD, give_back,
			  NULL);
	}
	sim_after(RIGHTS_EACH_S * SIM_S, SIM_WORLD, take, data);
}

static void come_back(void *data)
{
	(void)data;
	if (sim_now() < away_until)
		return;
	sim_log("net", "the server can be reached again");
}

static void go_away(void *data)
{
	(void)data;
	if (mended)
		return;
	away_until = sim_now() + SIM_S + sim_random(SIM_AWAY) % (AWAY_S * SIM_S);
	sim_log("net", "the server can't be reached");
	server_cut();
	sim_after(away_until - sim_now(), SIM_WORLD, come_back, NULL);
}

void sim_http_begin(void)
{
	if (sim_chance(SIM_AWAY, sim_faults.away))
		sim_after(sim_random(SIM_AWAY) % (AWAY_BEGIN_S * SIM_S), SIM_WORLD, go_away, NULL);
	sim_after(0, SIM_WORLD, take, NULL);
}

void sim_http_mend(void)
{
	mended = true;
	away_until = 0;
	give_back(NULL);
}
