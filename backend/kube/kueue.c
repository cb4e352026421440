/* SPDX-License-Identifier: MIT */
/*
 * One state machine finds out whether the cluster has Kueue:
 *
 *	state   | what is in progress        | what ends it              | next
 *	UNASKED | nothing                    | kueue_start               | ASKING
 *	ASKING  | GET of Kueue's API group   | the group is served       | SERVED
 *	        |                            | the group is not served   | ABSENT
 *	        |                            | a failure                 | WAITING
 *	WAITING | a timer                    | it fires                  | ASKING
 *	SERVED  | requests for positions     | -                         |
 *	ABSENT  | a timer, since Kueue may   | it fires                  | ASKING
 *	        | be installed later         |                           |
 *
 * Positions: after a user has read a position in a LocalQueue, that queue is wanted for WANTED_MS.
 * kxfs requests the positions of one wanted queue after the other. It requests those of the same
 * queue at most once in ASK_MS. The visibility API, which has the positions, is served by Kueue
 * itself. So if the API server replies 502, 503 or 504, Kueue may be down.
 */
#include "backend/kube/kueue.h"

#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "spec/api/refusal.h"
#include "spec/base/encode.h"
#include "spec/base/mem.h"

#define DEADLINE_MS   15000
#define GROUP_MAX     (64u << 10) /* largest size of the description of an API group, in bytes */
#define POSITIONS_MAX 1000 /* kxfs requests the positions of at most this many jobs of a queue */
#define SUMMARY_MAX   (2u << 20) /* largest size of a reply with positions, in bytes */
#define QUEUES_MAX    64	 /* the largest number of wanted queues */
#define ASK_MS	      5000
#define WANTED_MS     30000
#define AGAIN_MS      60000  /* the pause after a failure that is not listed below */
#define AWAY_MS	      15000  /* the pause if the API server can't reach Kueue */
#define ABSENT_MS     600000 /* the pause if the cluster has no Kueue */
#define FORBIDDEN_MS  300000 /* the pause after a 403 */

static const char resource[] = "localqueues/pendingworkloads." SPEC_KUEUE_VISIBILITY;

struct wanted {
	char *name;
	uint64_t read;	/* loop_now_ms() when a user last read a position */
	uint64_t asked; /* loop_now_ms() when kxfs last sent a request for this queue; 0 if never */
	struct wanted *prev, *next;
};

struct kueue {
	struct watches_access access;
	enum { UNASKED, ASKING, WAITING, SERVED, ABSENT } state;
	struct loop_timer retry;      /* runs in WAITING and ABSENT */
	struct http_request *request; /* for the API group, the visibility API, or positions */
	struct loop_timer timer;      /* runs until the next request for positions */
	char *asked;		      /* the queue for which REQUEST gets positions, or NULL */
	const char *visibility;	      /* the version of the visibility API; NULL if unknown */
	uint64_t not_before; /* the earliest loop_now_ms() of the next request for positions */
	bool stopped;
	struct lock lock; /* protects all members below it */
	const char *version;
	struct wanted *queues;
	size_t n_queues;
};

static void next_queue(void *data);

static void send_get(struct kueue *k, const char *path, size_t max_body,
		     void (*done)(void *data, const struct http_reply *reply))
{
	const struct http_call call = {
		.method = HTTP_GET,
		.path = path,
		.deadline_ms = DEADLINE_MS,
		.max_body = max_body,
		.done = done,
		.data = k,
	};

	k->request = http_send(k->access.http, &call);
}

/* --- whether the cluster has Kueue --- */

static void on_group(void *data, const struct http_reply *reply)
{
	struct kueue *k = data;
	const char *version = NULL;
	int status = reply->err ? 0 : reply->status;

	k->request = NULL;
	/* a reply without a version, such as a proxy's page, counts as a failure */
	if (http_succeeded(reply))
		version = spec_group_version(reply->body, reply->len);
	k->state = version ? SERVED : status == 404 ? ABSENT : WAITING;
	if (k->state == WAITING)
		loop_timer_set(&k->retry, status == 403 ? FORBIDDEN_MS : AGAIN_MS);
	if (k->state == ABSENT)
		loop_timer_set(&k->retry, ABSENT_MS);
	world_set_kueue(k->access.world, WORLD_KUEUE_ABSENT, k->state == ABSENT);
	if (version) {
		diag(DIAG_INFO, "the cluster serves %s", version);
		lock_scope(&k->lock);
		k->version = version;
	}
	return watches_start_kueue(k->access.watches, version);
}

static void find_kueue(void *data)
{
	struct kueue *k = data;

	k->state = ASKING;
	send_get(k, "/apis/" SPEC_KUEUE_GROUP, GROUP_MAX, on_group);
}

void kueue_start(struct kueue *k)
{
	if (k->state != UNASKED || k->stopped)
		return;
	watches_await_kueue(k->access.watches);
	find_kueue(k);
}

/* --- positions --- */

static void wanted_free(struct kueue *k, struct wanted *q)
{
	DL_DELETE(k->queues, q);
	k->n_queues--;
	free(q->name);
	free(q);
}

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

	if (k->asked)
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
	free(take_ptr(k->asked));
	next_queue(k);
}

static void on_visibility(void *data, const struct http_reply *reply)
{
	struct kueue *k = data;

	k->request = NULL;
	if (http_succeeded(reply))
		k->visibility = spec_group_version(reply->body, reply->len);
	if (!k->visibility)
		positions_failed(k, reply);
	next_queue(k);
}

static void forget_unwanted(struct kueue *k, uint64_t now)
{
	bool none;
	char *name;

	do {
		{
			struct wanted *q;
			lock_scope(&k->lock);

			DL_FOREACH(k->queues, q)
				if (now - q->read >= WANTED_MS)
					break;
			name = q ? text_copy(q->name) : NULL;
			if (q)
				wanted_free(k, q);
			none = !k->queues;
		}
		if (name)
			world_set_positions(k->access.world, name, NULL, 0);
		free(name);
	} while (name);
	if (none) /* kxfs sends no requests now, so it can't know whether Kueue is down */
		world_set_kueue(k->access.world, WORLD_KUEUE_AWAY, false);
}

/*
 * Return the name of the queue that is due, malloc'ed. If no queue is due, return NULL, and set
 * *RET_WAIT to the time in ms until one is due or not wanted any more; 0 if no queue is wanted.
 */
static char *due_queue(struct kueue *k, uint64_t now, uint64_t *ret_wait)
{
	struct wanted *q, *due = NULL;
	uint64_t first = 0;
	lock_scope(&k->lock);

	DL_FOREACH(k->queues, q) {
		uint64_t at = q->asked ? q->asked + ASK_MS : now;

		at = max_of(at, k->not_before);
		if (at <= now && (!due || q->asked < due->asked))
			due = q;
		at = min_of(at, q->read + WANTED_MS);
		first = first ? min_of(first, at) : at;
	}
	*ret_wait = due || !first ? 0 : max_of(first, now + 1) - now;
	if (!due)
		return NULL;
	if (k->visibility)
		due->asked = now;
	return text_copy(due->name);
}

static void next_queue(void *data)
{
	struct kueue *k = data;
	uint64_t now = loop_now_ms(), wait;
	char *name;

	if (k->request || k->stopped || k->state != SERVED)
		return;
	loop_timer_stop(&k->timer);
	forget_unwanted(k, now);
	name = due_queue(k, now, &wait);
	if (name && k->visibility) {
		cleanup_free char *escaped = spec_url_escape(name);
		cleanup_free char *path =
			text_print("/apis/%s/namespaces/%s/localqueues/%s/pendingworkloads"
				   "?limit=%d&offset=0",
				   k->visibility, k->access.namespace, escaped, POSITIONS_MAX);

		k->asked = name;
		send_get(k, path, SUMMARY_MAX, on_positions);
		return;
	}
	if (name)
		send_get(k, "/apis/" SPEC_KUEUE_VISIBILITY, GROUP_MAX, on_visibility);
	else if (wait)
		loop_timer_set(&k->timer, wait);
	free(name);
}

void kueue_wanted(struct kueue *k, const char *name)
{
	bool post = false;

	{
		struct wanted *q;
		lock_scope(&k->lock);

		if (!k->version)
			return;
		DL_FOREACH(k->queues, q)
			if (streq(q->name, name))
				break;
		if (!q && k->n_queues < QUEUES_MAX) {
			q = new0(struct wanted);
			q->name = text_copy(name);
			DL_APPEND(k->queues, q);
			k->n_queues++;
			post = true;
		}
		if (q)
			q->read = loop_now_ms();
	}
	/* if the queue was wanted already, the timer is set already */
	if (post)
		loop_post(k->access.loop, next_queue, k);
}

/* --- creation and end --- */

struct kueue *kueue_new(const struct watches_access *access)
{
	struct kueue *k = new0(struct kueue);

	k->access = *access;
	k->lock = (struct lock)LOCK_INIT;
	loop_timer_init(&k->retry, access->loop, find_kueue, k);
	loop_timer_init(&k->timer, access->loop, next_queue, k);
	return k;
}

void kueue_stop(struct kueue *k)
{
	k->stopped = true;
	loop_timer_stop(&k->retry);
	loop_timer_stop(&k->timer);
	http_drop(&k->request);
}

void kueue_free(struct kueue *k)
{
	if (!k)
		return;
	while (k->queues)
		wanted_free(k, k->queues);
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
