/* SPDX-License-Identifier: MIT */
/*
 * kxfs checks every EVERY_MS whether samples are wanted, and then requests the list of PodMetrics.
 * After a 403 or 404, it pauses for REFUSED_MS.
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
#define REFUSED_MS  600000
#define WANTED_MS   300000 /* after a user has read samples, kxfs requests samples for this long */
#define DEADLINE_MS 15000

static const char resource[] = "pods." SPEC_METRICS_GROUP;

struct samples {
	struct watches_access access;
	struct publish *publish;
	const char *version;	      /* the version of the API; NULL if it is not served */
	struct http_request *request; /* for the list */
	struct spec_split *split;     /* splits the reply into objects */
	struct loop_timer timer;      /* runs while VERSION is known and there is no REQUEST */
	uint64_t not_before;	      /* the earliest loop_now_ms() of the next request */
	bool stopped;
	struct lock lock;   /* protects all members below it */
	uint64_t read;	    /* loop_now_ms() when a user last read samples; 0 if never */
	const char *source; /* the VERSION that the samples are from; NULL if there are none */
	char *failed; /* why there are no samples; NULL if there are samples, or after a 403 */
};

static void check(void *data);

/* The caller must hold L's lock. */
static bool is_read(const struct samples *l)
{
	return l->read && loop_now_ms() - l->read < WANTED_MS;
}

static bool is_wanted(struct samples *l)
{
	bool read;

	{
		lock_scope(&l->lock);
		read = is_read(l);
	}
	return publish_runs(l->publish, !read);
}

static void pause_for(struct samples *l, uint64_t ms)
{
	l->not_before = loop_now_ms() + ms;
	check(l);
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
	bool forbidden = !reply->err && reply->status == 403;
	bool refused = forbidden || (!reply->err && reply->status == 404);
	cleanup_free char *text = NULL;
	int err = why ? 0 : http_refusal(reply, &asked, &text);
	const char *reason = why ? why : text ? text : strerror(-err);

	if (!l->failed)
		diag(DIAG_INFO, "the resource usage of pods is unknown: %s", reason);
	set_source(l, NULL, reason, forbidden);
	pause_for(l, refused ? REFUSED_MS : EVERY_MS);
}

/* --- the list --- */

static int on_pod(void *data, const char *json, size_t len, int wrong)
{
	const struct samples *l = data;
	const struct world_job *job = wrong ? NULL : world_sample(l->access.world, json, len);

	if (job)
		publish_sampled(l->publish, job);
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

	l->split = spec_split_new(SPEC_SPLIT_LIST, NULL, on_pod, l);
	l->request = http_send(l->access.http, &call);
}

/* --- the time of the next request --- */

static void check(void *data)
{
	struct samples *l = data;
	uint64_t now = loop_now_ms();

	loop_timer_stop(&l->timer);
	if (l->request || l->stopped || !l->version)
		return;
	if (now < l->not_before)
		loop_timer_set(&l->timer, l->not_before - now);
	else if (is_wanted(l))
		list(l);
	else
		loop_timer_set(&l->timer, EVERY_MS);
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
	if (!version) {
		http_drop(&l->request);
		spec_split_free(take_ptr(l->split));
	}
	check(l);
}

void samples_wanted(struct samples *l)
{
	bool was_read;

	{
		lock_scope(&l->lock);
		was_read = is_read(l);
		l->read = max_of(loop_now_ms(), (uint64_t)1);
	}
	/* after an earlier read, the timer is soon enough */
	if (!was_read)
		loop_post(l->access.loop, check, l);
}

/* --- creation and end --- */

struct samples *samples_new(const struct watches_access *access, struct publish *publish)
{
	struct samples *l = new0(struct samples);

	l->access = *access;
	l->publish = publish;
	l->lock = (struct lock)LOCK_INIT;
	loop_timer_init(&l->timer, access->loop, check, l);
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
