/* SPDX-License-Identifier: MIT */
/*
 * After a user has read a position in a LocalQueue, that queue is wanted for WANTED_MS. kxfs
 * requests the positions of one wanted queue after the other, and of the same queue at most once in
 * ASK_MS. Kueue itself serves the visibility API, which has the positions. So Kueue may be down if
 * the API server replies 502, 503 or 504.
 */
#include "backend/kube/kueue.h"

#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "spec/api/refusal.h"
#include "spec/base/encode.h"
#include "spec/base/mem.h"

#define DEADLINE_MS   15000
#define POSITIONS_MAX 1000 /* kxfs requests the positions of at most this many jobs of a queue */
#define SUMMARY_MAX   (2u << 20) /* largest size of a reply with positions, in bytes */
#define QUEUES_MAX    64	 /* the largest number of wanted queues */
#define ASK_MS	      5000
#define WANTED_MS     30000
#define AGAIN_MS      60000  /* the pause after a failure that is not listed below */
#define AWAY_MS	      15000  /* the pause if the API server can't reach Kueue */
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
	struct http_request *request; /* for the positions in queue ASKED */
	char *asked;		      /* NULL if no request is in progress */
	struct loop_timer timer;      /* runs until the next request */
	uint64_t not_before;	      /* the earliest loop_now_ms() of the next request */
	bool stopped;
	struct lock lock;	/* protects all members below it */
	const char *version;	/* of Kueue's API; NULL if it was not found */
	const char *visibility; /* the same of the visibility API */
	struct wanted *queues;
	size_t n_queues;
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
	world_set_kueue(k->access.world, WORLD_KUEUE_ABSENT, !k->version);
	if (!found)
		return;
	diag(DIAG_INFO, "the cluster serves %s", version);
	watches_set_kueue(k->access.watches, version);
}

/* --- positions --- */

static void next_queue(void *data);

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
	due->asked = now;
	return text_copy(due->name);
}

static void next_queue(void *data)
{
	struct kueue *k = data;
	uint64_t now = loop_now_ms(), wait;
	cleanup_free char *escaped = NULL, *path = NULL;

	if (k->request || k->stopped)
		return;
	loop_timer_stop(&k->timer);
	forget_unwanted(k, now);
	k->asked = due_queue(k, now, &wait);
	if (!k->asked) {
		if (wait)
			loop_timer_set(&k->timer, wait);
		return;
	}
	escaped = spec_url_escape(k->asked);
	path = text_print("/apis/%s/namespaces/%s/localqueues/%s/pendingworkloads"
			  "?limit=%d&offset=0",
			  k->visibility, k->access.namespace, escaped, POSITIONS_MAX);
	k->request = http_send(k->access.http, &(struct http_call){
						       .method = HTTP_GET,
						       .path = path,
						       .deadline_ms = DEADLINE_MS,
						       .max_body = SUMMARY_MAX,
						       .done = on_positions,
						       .data = k,
					       });
}

void kueue_wanted(struct kueue *k, const char *name)
{
	bool post = false;

	{
		struct wanted *q;
		lock_scope(&k->lock);

		if (!k->visibility)
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
