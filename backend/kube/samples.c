/* SPDX-License-Identifier: MIT */
/*
 * The state machine of samples:
 *
 *	state   | what is in progress       | what ends it               | next
 *	IDLE    | nothing                   | the API is served, a job   | PAUSED before NOT_BEFORE;
 *	        |                           | runs, and a reader or a    | else LISTING
 *	        |                           | capture wants samples      |
 *	PAUSED  | a timer, until NOT_BEFORE | it fires                   | IDLE
 *	LISTING | LIST of PodMetrics        | its reply                  | IDLE
 *
 * samples.h describes when samples are wanted. After a successful list, NOT_BEFORE is EVERY_MS
 * later. After a failure, NOT_BEFORE is normally AGAIN_MS later. But after each of the first two
 * failures since a successful list, it is only EVERY_MS later, because a metrics-server that is
 * being replaced soon answers again. This does not apply to 403 and 404. While the API server can't
 * be reached, a failure does not count, and NOT_BEFORE is EVERY_MS later.
 */
#include "backend/kube/samples.h"

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/print.h"
#include "spec/api/refusal.h"
#include "spec/api/split.h"
#include "spec/base/mem.h"
#include "spec/view/view.h"

#define EVERY_MS    15000
#define AGAIN_MS    600000
#define WANTED_MS   300000 /* after a user has read samples, kxfs requests samples for this long */
#define DEADLINE_MS 15000
#define TRIES	    3

static const char resource[] = "pods." SPEC_METRICS_GROUP;

struct samples {
	struct watches_access access;
	samples_fn sampled;
	void *data;
	enum { IDLE, PAUSED, LISTING } state;
	struct loop_timer timer;      /* runs in PAUSED */
	struct http_request *request; /* the request in LISTING */
	struct spec_split *split;     /* splits the reply into objects; used in LISTING */
	const char *version;	      /* the version of the API; NULL if it is not served */
	uint64_t not_before;	      /* the earliest loop_now_ms() of the next request */
	unsigned failures;	      /* number of failures since the last successful list */
	enum { NONE_RUNS, SOME_RUN, SOME_CAPTURED } running;
	bool stopped;
	struct lock lock;   /* protects all members below it */
	uint64_t read;	    /* loop_now_ms() when a user last read samples; 0 if never */
	const char *source; /* the VERSION that the samples are from; NULL if there are none */
	char *failed; /* why there are no samples; NULL if there are samples, or after a 403 */
};

static void request_next(void *data);

/* The caller must hold L's lock. */
static bool is_read(const struct samples *l)
{
	return l->read && loop_now_ms() - l->read < WANTED_MS;
}

static bool is_wanted(struct samples *l)
{
	lock_scope(&l->lock);

	return l->running == SOME_CAPTURED || (l->running == SOME_RUN && is_read(l));
}

static void pause_for(struct samples *l, uint64_t ms)
{
	l->not_before = loop_now_ms() + ms;
	l->state = IDLE;
	request_next(l);
}

/*
 * Record a result: a list of VERSION has succeeded, or requests fail for the reason TEXT (VERSION
 * is NULL). FORBIDDEN is true if the failure is a 403.
 */
static void set_source(struct samples *l, const char *version, const char *text, bool forbidden)
{
	watches_refuse(l->access.watches, REFUSED_SAMPLES, "list", resource,
		       "usage files show only what each replica requested",
		       forbidden ? text : NULL);
	lock_scope(&l->lock);
	l->source = version;
	free(l->failed);
	l->failed = text && !forbidden ? text_copy(text) : NULL;
}

/* Handle a failed request. If WHY is NULL, REPLY contains the reason. */
static void failed(struct samples *l, const struct http_reply *reply, const char *why)
{
	const struct spec_asked asked = spec_asked_of("list", resource, l->access.namespace);
	bool away = reply->err && watches_stale_since(l->access.watches);
	cleanup_free char *text = NULL;
	int err = why ? 0 : http_refusal(reply, &asked, &text);
	const char *reason = why ? why : text ? text : strerror(-err);

	if (!away)
		l->failures++;
	if (away ||
	    (l->source && l->failures < TRIES && reply->status != 403 && reply->status != 404))
		return pause_for(l, EVERY_MS);
	diag(DIAG_INFO, "the resource usage of pods is unknown: %s", reason);
	set_source(l, NULL, reason, !reply->err && reply->status == 403);
	pause_for(l, AGAIN_MS);
}

/* --- the list --- */

static int on_pod(void *data, const char *json, size_t len, int wrong)
{
	const struct samples *l = data;
	const struct world_job *job = wrong ? NULL : world_sample(l->access.world, json, len);

	if (job)
		l->sampled(l->data, job);
	return 0;
}

static int on_bytes(void *data, const char *bytes, size_t n)
{
	const struct samples *l = data;

	return spec_split_feed(l->split, bytes, n);
}

static void on_list(void *data, const struct http_reply *reply)
{
	struct samples *l = data;
	bool answered = http_succeeded(reply);
	bool whole = answered && spec_split_end(l->split, NULL) == 0;

	l->request = NULL;
	spec_split_free(take_ptr(l->split));
	if (!whole)
		return failed(l, reply,
			      answered ? "the list of " SPEC_METRICS_GROUP " is incomplete" : NULL);
	l->failures = 0;
	set_source(l, l->version, NULL, false);
	pause_for(l, EVERY_MS);
}

static void list(struct samples *l)
{
	cleanup_free char *path =
		text_print("/apis/%s/namespaces/%s/pods", l->version, l->access.namespace);
	const struct http_call call = {
		.method = HTTP_GET,
		.path = path,
		.deadline_ms = DEADLINE_MS,
		.compress = true,
		.bytes = on_bytes,
		.done = on_list,
		.data = l,
	};

	l->state = LISTING;
	l->split = spec_split_new(SPEC_SPLIT_LIST, NULL, on_pod, l);
	l->request = http_send(l->access.http, &call);
}

/* --- the time of the next request --- */

static void on_timer(void *data)
{
	struct samples *l = data;

	l->state = IDLE;
	request_next(l);
}

static void request_next(void *data)
{
	struct samples *l = data;
	uint64_t now = loop_now_ms();

	if (l->state != IDLE || l->stopped || !l->version || !is_wanted(l))
		return;
	if (now < l->not_before) {
		l->state = PAUSED;
		loop_timer_set(&l->timer, l->not_before - now);
	} else {
		list(l);
	}
}

void samples_served(struct samples *l, const char *groups, size_t len)
{
	const char *version = spec_group_version(groups, len, SPEC_METRICS_GROUP);

	if (!version || !l->version)
		set_source(l, NULL,
			   version ? NULL
				   : "the cluster does not serve " SPEC_METRICS_GROUP
				     ", the API of metrics-server",
			   false);
	l->version = version;
	request_next(l);
}

void samples_set_running(struct samples *l, bool any, bool captured)
{
	l->running = captured ? SOME_CAPTURED : any ? SOME_RUN : NONE_RUNS;
	request_next(l);
}

void samples_wanted(struct samples *l)
{
	bool was_read;

	{
		lock_scope(&l->lock);
		was_read = is_read(l);
		l->read = max_of(loop_now_ms(), (uint64_t)1);
	}
	/* if a user has read samples recently, the next request is planned already */
	if (!was_read)
		loop_post(l->access.loop, request_next, l);
}

/* --- creation and end --- */

struct samples *samples_new(const struct watches_access *access, samples_fn sampled, void *data)
{
	struct samples *l = new0(struct samples);

	l->access = *access;
	l->sampled = sampled;
	l->data = data;
	l->lock = (struct lock)LOCK_INIT;
	loop_timer_init(&l->timer, access->loop, on_timer, l);
	return l;
}

void samples_stop(struct samples *l)
{
	l->stopped = true;
	loop_timer_stop(&l->timer);
	http_drop(&l->request);
}

void samples_free(struct samples *l)
{
	if (!l)
		return;
	spec_split_free(l->split);
	free(l->failed);
	free(l);
}

/* --- .kxfs/info --- */

void samples_info(struct samples *l, FILE *out)
{
	cleanup_free char *failed = NULL;
	const char *version;

	{
		lock_scope(&l->lock);
		version = l->source;
		failed = l->failed ? text_copy(l->failed) : NULL;
	}
	fprintf(out, "usage: %s\n", version ? version : "null");
	if (failed)
		print_text(out, "usage_failed", failed);
}
