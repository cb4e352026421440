/* SPDX-License-Identifier: MIT */
/*
 * This file collects information without a mount: the contexts of the kubeconfig, the libraries of
 * this process, and whether a cluster supports a mount. To check the cluster, kxfs sends one
 * request after the other:
 *
 *	state    request                                    next, after the reply
 *	VERSION  /version                                   SERVED; OVER if it fails
 *	SERVED   the groups that the server has             QUEUES if Kueue is served and a kind can
 *	                                                    use its queues, else RIGHTS; OVER if no
 *	                                                    kind is served
 *	QUEUES   Kueue's queues of the namespace            RIGHTS
 *	RIGHTS   a review of each verb that the kinds need  OVER, after the last reply
 *	OVER
 *
 * The checks run on a loop of their own. The main thread waits for the last reply, or for a signal
 * (process.h), which also leads to OVER. Then it waits until the loop has stopped.
 */
#include <errno.h>
#include <semaphore.h>

#include <curl/curl.h>
#include <uv.h>

#include "backend/base/process.h"
#include "backend/client/http.h"
#include "backend/client/kubeconfig.h"
#include "backend/kube/parts.h"
#include "spec/api/refusal.h"
#include "spec/api/review.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/kinds/kinds.h"
#include "spec/kinds/right.h"
#include "spec/view/kueue.h"

#define DEADLINE_MS 15000
#define REPLY_MAX   (1u << 20)
#define CLOCK_S	    3 /* tolerated difference of the clocks; a reply's date has only seconds */

enum state { VERSION, SERVED, QUEUES, RIGHTS, OVER };

struct examine {
	const struct backend_config *config;
	void (*fn)(void *data, enum backend_grade grade, const char *text);
	void *data;
	struct spec_connection connection;
	struct loop *loop;
	struct credential *credential;
	struct http *http;
	struct interrupt interrupt;
	struct loop_watch *watch; /* watches INTERRUPT until STATE is OVER */
	sem_t done; /* posted when STATE becomes OVER, and again when all operations have ended */
	enum state state;
	size_t i, verb;	  /* in RIGHTS, kxfs now checks the verb with index VERB of RIGHTS[I] */
	int64_t asked_at; /* when kxfs requested the version, in seconds */
	const struct spec_kind *kinds[SPEC_MAX_KINDS]; /* the kinds that a mount would show */
	size_t n_kinds;
	bool may_list;	   /* true if the user has the right to list at least one kind of jobs */
	const char *kueue; /* the version of Kueue's group; NULL if no kind can use Kueue */
	bool has_metrics;
	struct spec_right *rights; /* the rights that a mount of KINDS needs */
	size_t n_rights;
	/* MISSING[V] is true if the user has no right to use verb V of RIGHTS[I]. */
	bool missing[array_size(((struct spec_right *)NULL)->verbs)];
	struct http_request *request;
};

static void printf_like(3, 4)
	say(const struct examine *e, enum backend_grade grade, const char *fmt, ...)
{
	cleanup_free char *text = text_of_args(fmt);

	e->fn(e->data, grade, text);
}

static void ask(struct examine *e);
static size_t right_from(const struct examine *e, size_t i);

static void enter(struct examine *e, enum state state)
{
	const bool over = e->state == OVER;

	e->state = state;
	if (state == RIGHTS)
		e->rights = spec_rights(e->kinds, e->n_kinds, &e->n_rights);
	e->i = state == RIGHTS ? right_from(e, 0) : 0;
	if (state != OVER)
		return ask(e);
	/* free the watch now, because it would fire again: the signal remains pending */
	loop_watch_free(take_ptr(e->watch));
	if (!over)
		sem_post(&e->done);
}

static void print_refusal(const struct examine *e, const struct http_reply *reply,
			  const char *resource)
{
	const struct spec_asked asked = spec_asked_of("get", resource, "");
	cleanup_free char *text = NULL;
	int err = http_refusal(reply, &asked, &text);

	say(e, BACKEND_WRONG, "%s", text ? text : strerror(-err));
}

/* --- the server: its version and its clock --- */

/* Compare THEIRS, the server's time in s (0 if unknown), with the time of this machine. */
static void check_clock(const struct examine *e, int64_t theirs)
{
	int64_t now = loop_time_ns() / NS_PER_S;
	int64_t ahead = theirs > now ? theirs - now : min_of(theirs - e->asked_at, INT64_C(0));

	if (!theirs)
		return;
	if (ahead >= -CLOCK_S && ahead <= CLOCK_S)
		say(e, BACKEND_FINE, "the clocks of the server and of this machine agree");
	else
		say(e, BACKEND_LACKS,
		    "the server's clock is %lld s %s this machine's clock, so ages are wrong "
		    "by that much: correct the wrong clock",
		    llabs((long long)ahead), ahead > 0 ? "ahead of" : "behind");
}

static void version_replied(struct examine *e, const struct http_reply *reply)
{
	cleanup_free char *version = NULL;

	if (reply->err || reply->status == 401) {
		print_refusal(e, reply, "/version");
		return enter(e, OVER);
	}
	if (reply->status == 200 && spec_version_reply(reply->body, reply->len, &version) == 0)
		say(e, BACKEND_FINE, "%s answers: Kubernetes %s", e->connection.server, version);
	else
		say(e, BACKEND_LACKS, "%s answers, but does not report its version (HTTP %d)",
		    e->connection.server, reply->status);
	check_clock(e, reply->date);
	enter(e, SERVED);
}

/* --- the served kinds --- */

/* Report whether the API groups that kxfs can use besides the kinds are in GROUPS. */
static void check_groups(struct examine *e, const char *groups, size_t len)
{
	const char *metrics = spec_group_version(groups, len, SPEC_METRICS_GROUP);

	e->has_metrics = metrics;
	if (metrics)
		say(e, BACKEND_FINE, "%s reports the resource usage of pods", metrics);
	else
		say(e, BACKEND_LACKS,
		    "the cluster does not report the resource usage of pods (no "
		    "metrics-server): usage files show only what each replica requested");
	for (size_t i = 0; i < e->n_kinds; i++)
		if (e->kinds[i]->in_kueue)
			e->kueue = spec_group_version(groups, len, SPEC_KUEUE_GROUP);
	if (e->kueue)
		say(e, BACKEND_FINE, "queues of %s are served", e->kueue);
}

static void served_replied(struct examine *e, const struct http_reply *reply)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	bool open = http_succeeded(reply);
	int n = -EINVAL;

	if (open)
		n = spec_kinds_served(e->config->kinds, reply->body, reply->len, e->config->kind,
				      kinds);
	else if (!reply->err && (reply->status == 403 || reply->status == 404))
		n = spec_kinds_served(e->config->kinds, NULL, 0, e->config->kind, kinds);
	if (n < 0) {
		if (open)
			say(e, BACKEND_WRONG, "the server's list of its APIs can't be read");
		else
			print_refusal(e, reply, "/apis");
		return enter(e, OVER);
	}
	for (int i = 0; i < n; i++) {
		if (!kinds[i])
			continue;
		say(e, BACKEND_FINE, "%s of %s %s", kinds[i]->plural, kinds[i]->api_version,
		    open ? "are served" : "may be served: the server does not list its APIs");
		e->kinds[e->n_kinds++] = kinds[i];
	}
	if (!e->n_kinds) {
		say(e, BACKEND_WRONG,
		    "the cluster serves no %s: check that this is the right cluster, or ask the "
		    "cluster's administrator to install them",
		    spec_kinds_text(e->config->kinds, e->config->kind));
		return enter(e, OVER);
	}
	if (open)
		check_groups(e, reply->body, reply->len);
	enter(e, e->kueue ? QUEUES : RIGHTS);
}

/*
 * Report the queues of the namespace. Warn if the mount's queue (-o queue=) does not exist, because
 * Kueue accepts jobs for a missing queue and lets them wait. If the user has no right to list
 * queues, the check of rights reports that.
 */
static void queues_replied(struct examine *e, const struct http_reply *reply)
{
	const char *wanted = e->kinds[0]->in_kueue ? kube_own_queue(e->config) : "";
	const char *namespace = e->connection.namespace;
	cleanup_free char *names = NULL;
	bool has = false;

	if (!reply->err && reply->status == 200)
		names = spec_local_queue_names(reply->body, reply->len, wanted, &has);
	if (names)
		say(e, BACKEND_FINE, "queues of namespace %s: %s", namespace,
		    *names ? names : "none");
	if (names && *wanted && !has)
		say(e, BACKEND_LACKS,
		    "-o queue=%s: there is no such queue, so jobs wait until somebody creates it: "
		    "correct the name, or create the queue",
		    wanted);
	enter(e, RIGHTS);
}

/* --- the rights --- */

static bool is_needed(const struct examine *e, const struct spec_right *right)
{
	bool kueue =
		streq(right->group, SPEC_KUEUE_GROUP) || streq(right->group, SPEC_KUEUE_VISIBILITY);

	return (!kueue || e->kueue) && (!streq(right->group, SPEC_METRICS_GROUP) || e->has_metrics);
}

static char *words(const struct spec_right *right, const bool *only)
{
	char *text = text_copy("");

	for (size_t i = 0; i < array_size(right->verbs) && right->verbs[i]; i++)
		if (!only || only[i])
			text_set(&text, "%s%s%s", text, *text ? ", " : "", right->verbs[i]);
	return text;
}

static void say_right(struct examine *e, const struct spec_right *right)
{
	cleanup_free char *all = words(right, NULL), *missing = words(right, e->missing);
	cleanup_free char *resource =
		text_print("%s%s%s", right->resource, *right->group ? "." : "", right->group);

	e->may_list |= !*missing && right->jobs;
	if (!*missing)
		say(e, BACKEND_FINE, "%s: %s", resource, all);
	else if (right->jobs)
		say(e, BACKEND_LACKS, "%s: this user may not %s, so kxfs does not show these jobs",
		    resource, missing);
	else if (right->cost)
		say(e, BACKEND_LACKS, "%s: this user may not %s, so %s", resource, missing,
		    right->cost);
	else
		say(e, BACKEND_WRONG,
		    "%s: this user may not %s, which every mount needs: check the namespace, "
		    "or ask the cluster's administrator for the rights that "
		    "kxfs doctor --rbac prints",
		    resource, missing);
}

/* Return the index of the first right, from index I on, that the mount needs. */
static size_t right_from(const struct examine *e, size_t i)
{
	while (i < e->n_rights && !is_needed(e, &e->rights[i]))
		i++;
	return i;
}

static void right_replied(struct examine *e, const struct http_reply *reply)
{
	const struct spec_right *right = &e->rights[e->i];
	bool allowed = false;

	if (!http_succeeded(reply) || spec_review_reply(reply->body, reply->len, &allowed) < 0) {
		say(e, BACKEND_LACKS, "the server does not report the user's rights (%s)",
		    reply->err ? reply->text : "the server refuses to review this user's rights");
		return enter(e, OVER);
	}
	e->missing[e->verb++] = !allowed;
	if (e->verb == array_size(right->verbs) || !right->verbs[e->verb]) {
		say_right(e, right);
		memset(e->missing, 0, sizeof(e->missing));
		e->i = right_from(e, e->i + 1);
		e->verb = 0;
	}
	if (e->i < e->n_rights)
		return ask(e);
	if (!e->may_list)
		say(e, BACKEND_WRONG,
		    "this user may not list jobs of any kind: check the namespace, or ask the "
		    "cluster's administrator for the rights that kxfs doctor --rbac prints");
	enter(e, OVER);
}

/* --- requests, one after the other --- */

static const struct {
	const char *path; /* NULL in QUEUES, whose path depends on an earlier reply */
	void (*replied)(struct examine *e, const struct http_reply *reply);
} steps[OVER] = {
	[VERSION] = {"/version", version_replied},
	[SERVED] = {"/apis", served_replied},
	[QUEUES] = {NULL, queues_replied},
	[RIGHTS] = {SPEC_REVIEW_PATH, right_replied},
};

static void on_reply(void *data, const struct http_reply *reply)
{
	struct examine *e = data;

	e->request = NULL;
	if (e->state != OVER)
		steps[e->state].replied(e, reply);
}

static void ask(struct examine *e)
{
	cleanup_free char *queues =
		e->state == QUEUES ? text_print("/apis/%s/namespaces/%s/localqueues?limit=100",
						e->kueue, e->connection.namespace)
				   : NULL;
	cleanup_free char *body = NULL;
	struct http_call call = {
		.method = HTTP_GET,
		.path = queues ? queues : steps[e->state].path,
		.deadline_ms = DEADLINE_MS,
		.max_body = REPLY_MAX,
		/* don't retry the first request, to report an unreachable server soon */
		.retry = e->state != VERSION,
		.done = on_reply,
		.data = e,
	};

	if (e->state == RIGHTS) {
		const struct spec_right *right = &e->rights[e->i];

		body = spec_review_ask(right->group, right->resource, right->verbs[e->verb],
				       right->cluster ? "" : e->connection.namespace);
		call.method = HTTP_POST;
		call.body = body;
		call.len = strlen(body);
	}
	e->request = http_send(e->http, &call);
}

/* --- the loop --- */

static void on_signal(void *data)
{
	enter(data, OVER);
}

static void begin(void *data)
{
	struct examine *e = data;

	if (e->interrupt.fd >= 0)
		e->watch = loop_watch_new(e->loop, e->interrupt.fd, false, on_signal, e);
	e->asked_at = loop_time_ns() / NS_PER_S;
	enter(e, VERSION);
}

static void on_stopped(void *data)
{
	struct examine *e = data;

	sem_post(&e->done);
}

static void end(void *data)
{
	struct examine *e = data;

	http_drop(&e->request);
	credential_stop(e->credential);
	http_stop(e->http, on_stopped, e);
}

static void await(struct examine *e)
{
	while (sem_wait(&e->done) < 0)
		;
}

/*
 * Run the loop until all operations have ended. Return false if a disk operation hangs. In this
 * case E must not be freed, because the operation may still use E.
 */
static bool run(struct examine *e)
{
	bool stopped;

	interrupt_hold(&e->interrupt);
	loop_post(e->loop, begin, e);
	await(e);
	loop_post(e->loop, end, e);
	await(e);
	stopped = loop_stop(e->loop);
	interrupt_release(&e->interrupt);
	return stopped;
}

static void examine_free(struct examine *e)
{
	http_free(e->http);
	credential_free(e->credential);
	loop_free(e->loop);
	spec_connection_clear(&e->connection);
	sem_destroy(&e->done);
	free(e->rights);
	free(e);
}

/* --- the connection --- */

static const char *credential_words(const struct spec_connection *c)
{
	return c->exec.command		       ? "a credential plugin"
	       : *c->token_file || *c->token   ? "a token"
	       : *c->user		       ? "a user and a password"
	       : *c->cert_pem || *c->cert_file ? "a client certificate"
					       : "no credentials";
}

void backend_examine(const struct backend_config *config,
		     void (*fn)(void *data, enum backend_grade grade, const char *text), void *data)
{
	struct examine *e = new0(struct examine);
	struct spec_connection *c = &e->connection;
	cleanup_free char *text = NULL;
	int err;

	e->config = config;
	e->fn = fn;
	e->data = data;
	sem_init(&e->done, 0, 0);
	loop_new(&e->loop);
	err = kube_connection(config, c, &text);
	if (!err) {
		say(e, BACKEND_FINE, "context %s, namespace %s%s%s, with %s",
		    *c->context ? c->context : "(none; service account of this pod)", c->namespace,
		    *c->as ? ", as " : "", c->as, credential_words(c));
		err = credential_new(e->loop, c, &e->credential, &text);
	}
	if (!err)
		err = http_new(e->loop, c, e->credential, &e->http, &text);
	if (!err)
		err = loop_start(e->loop);
	if (err)
		say(e, BACKEND_WRONG, "%s", text ? text : strerror(-err));
	if (err || run(e))
		examine_free(e);
}

/* --- libraries: their versions at run time --- */

char *backend_libraries(void)
{
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);

	return text_print("libuv %s, libcurl %s, %s", uv_version_string(), curl->version,
			  curl->ssl_version ? curl->ssl_version : "no TLS");
}

char *backend_features(void)
{
	static const struct {
		int bit;
		const char *name;
	} known[] = {
		{CURL_VERSION_SSL, "https"},	       {CURL_VERSION_HTTPS_PROXY, "https-proxy"},
		{CURL_VERSION_HTTP2, "http2"},	       {CURL_VERSION_LIBZ, "gzip"},
		{CURL_VERSION_ASYNCHDNS, "async-dns"}, {CURL_VERSION_IPV6, "ipv6"},
	};
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
	char *text = text_copy("");

	for (size_t i = 0; i < array_size(known); i++) {
		if (curl->features & known[i].bit)
			text_set(&text, "%s%s%s", text, *text ? " " : "", known[i].name);
	}
	return text;
}

int backend_contexts(const char *kubeconfig, char ***ret, char **ret_text)
{
	return kubeconfig_contexts(kubeconfig, ret, ret_text);
}
