/* SPDX-License-Identifier: MIT */
/*
 * For WANTED_MS after a user has read positions, kxfs requests them in rounds. In each round, it
 * requests the positions in each queue where jobs wait, one queue after the other. Then it pauses.
 * Kueue itself serves the visibility API, which has the positions. So Kueue may be down if the API
 * server replies 502, 503 or 504.
 */
#include "backend/kube/kueue.h"

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "spec/api/refusal.h"
#include "spec/base/encode.h"
#include "spec/base/mem.h"

#define DEADLINE_MS   15000
#define POSITIONS_MAX 1000 /* kxfs requests the positions of at most this many jobs of a queue */
#define SUMMARY_MAX   (2u << 20) /* largest size of a reply with positions, in bytes */
#define QUEUE_MS      200	 /* the pause after the request for a queue */
#define ROUND_MS      5000	 /* the pause after a round */
#define WANTED_MS     30000
#define AGAIN_MS      60000  /* the pause after a failure that is not listed below */
#define AWAY_MS	      15000  /* the pause if the API server can't reach Kueue */
#define FORBIDDEN_MS  300000 /* the pause after a 403 */

static const char resource[] = "localqueues/pendingworkloads." SPEC_KUEUE_VISIBILITY;

struct kueue {
	struct watches_access access;
	struct http_request *request; /* for the positions in queue ASKED */
	char *asked;		      /* the last queue of this round; NULL before the first one */
	struct loop_timer timer;      /* runs until the next request */
	uint64_t not_before;	      /* the earliest loop_now_ms() of the next request */
	bool stopped;
	struct lock lock;	/* protects all members below it */
	const char *version;	/* of Kueue's API; NULL if it was not found */
	const char *visibility; /* of the visibility API; NULL if it was not found */
	uint64_t read;		/* loop_now_ms() when a user last read positions; 0 if never */
};

/* --- whether the cluster has Kueue --- */

void kueue_served(struct kueue *k, const char *groups, size_t len)
{
	const char *version = spec_group_version(groups, len, SPEC_KUEUE_GROUP);
	const char *visibility = spec_group_version(groups, len, SPEC_KUEUE_VISIBILITY);
	bool found = version && !k->version;

	{
		lock_scope(&k->lock);
		k->version = k->version ? k->version : version;
		k->visibility = k->visibility ? k->visibility : visibility;
	}
	world_set_kueue(k->access.world, WORLD_KUEUE_ABSENT,
			!k->version && !spec_group_is_served(groups, len, SPEC_KUEUE_GROUP));
	if (!found)
		return;
	diag(DIAG_INFO, "the cluster serves %s", version);
	watches_set_kueue(k->access.watches, version);
}

/* --- positions --- */

static void next_queue(void *data);

/* Record why the server refuses to return positions; TEXT is NULL if it does not refuse. */
static void set_refused(const struct kueue *k, const char *text)
{
	watches_refuse(k->access.watches, REFUSED_POSITIONS, "get", resource,
		       "status.json has no queue_position", text);
}

static void positions_failed(struct kueue *k, const struct http_reply *reply)
{
	const struct spec_asked asked = spec_asked_of("get", resource, k->access.namespace);
	cleanup_free char *text = NULL;
	bool forbidden = !reply->err && reply->status == 403;
	bool away = !reply->err && reply->status >= 502 && reply->status <= 504;

	world_set_positions(k->access.world, k->asked, NULL, 0);
	if (forbidden)
		http_refusal(reply, &asked, &text);
	set_refused(k, text);
	world_set_kueue(k->access.world, WORLD_KUEUE_AWAY, away);
	k->not_before = loop_now_ms() + (forbidden ? FORBIDDEN_MS : away ? AWAY_MS : AGAIN_MS);
}

static void on_positions(void *data, const struct http_reply *reply)
{
	struct kueue *k = data;
	struct spec_queue_position *v cleanup_free = NULL;
	size_t n = 0;

	k->request = NULL;
	k->not_before = loop_now_ms() + QUEUE_MS;
	if (http_succeeded(reply) &&
	    spec_queue_positions_parse(reply->body, reply->len, &v, &n) == 0) {
		set_refused(k, NULL);
		world_set_kueue(k->access.world, WORLD_KUEUE_AWAY, false);
		world_set_positions(k->access.world, k->asked, v, n);
	} else if (!reply->err && reply->status == 404) {
		world_set_kueue(k->access.world, WORLD_KUEUE_AWAY, false);
		/* the queue or its ClusterQueue does not exist */
		world_set_positions(k->access.world, k->asked, NULL, 0);
	} else {
		positions_failed(k, reply);
	}
	next_queue(k);
}

/* The caller must hold K's lock. */
static bool is_read(const struct kueue *k)
{
	return k->read && loop_now_ms() - k->read < WANTED_MS;
}

static bool is_wanted(struct kueue *k)
{
	lock_scope(&k->lock);

	return is_read(k);
}

static void ask(struct kueue *k)
{
	cleanup_free char *escaped = spec_url_escape(k->asked);
	cleanup_free char *path =
		text_print("/apis/%s/namespaces/%s/localqueues/%s/pendingworkloads"
			   "?limit=%d&offset=0",
			   k->visibility, k->access.namespace, escaped, POSITIONS_MAX);
	const struct http_call call = {
		.method = HTTP_GET,
		.path = path,
		.deadline_ms = DEADLINE_MS,
		.max_body = SUMMARY_MAX,
		.done = on_positions,
		.data = k,
	};

	k->request = http_send(k->access.http, &call);
}

static void next_queue(void *data)
{
	struct kueue *k = data;
	uint64_t now = loop_now_ms();
	const char *name;

	if (k->request || k->stopped)
		return;
	if (now < k->not_before) {
		loop_timer_set(&k->timer, k->not_before - now);
		return;
	}
	if (!is_wanted(k)) {
		free(take_ptr(k->asked));
		world_set_positions(k->access.world, NULL, NULL, 0);
		world_set_kueue(k->access.world, WORLD_KUEUE_AWAY, false);
		return;
	}
	name = world_next_queue(k->access.world, k->asked ? k->asked : "");
	/* without requests, kxfs can't know whether Kueue is down */
	if (!name && !k->asked)
		world_set_kueue(k->access.world, WORLD_KUEUE_AWAY, false);
	free(k->asked);
	k->asked = name ? text_copy(name) : NULL;
	if (k->asked)
		return ask(k);
	k->not_before = now + ROUND_MS;
	loop_timer_set(&k->timer, ROUND_MS);
}

void kueue_wanted(struct kueue *k)
{
	bool was_read;

	{
		lock_scope(&k->lock);
		if (!k->visibility)
			return;
		was_read = is_read(k);
		k->read = max_of(loop_now_ms(), (uint64_t)1);
	}
	/* after an earlier read, the timer or a request is soon enough */
	if (!was_read)
		loop_post(k->access.loop, next_queue, k);
}

/* --- creation and end --- */

struct kueue *kueue_new(const struct watches_access *access)
{
	struct kueue *k = new0(struct kueue);

	k->access = *access;
	k->lock = (struct lock)LOCK_INIT;
	loop_timer_init(&k->timer, access->loop, next_queue, k);
	return k;
}

void kueue_stop(struct kueue *k)
{
	k->stopped = true;
	loop_timer_stop(&k->timer);
	http_drop(&k->request);
}

void kueue_free(struct kueue *k)
{
	if (!k)
		return;
	free(k->asked);
	free(k);
}

/* --- .kxfs/info --- */

const char *kueue_version(struct kueue *k)
{
	lock_scope(&k->lock);

	return k->version;
}

void kueue_info(struct kueue *k, FILE *out)
{
	const char *version = kueue_version(k);

	fprintf(out, "kueue: %s\n", version ? version : "null");
}
