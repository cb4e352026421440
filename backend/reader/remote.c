/* SPDX-License-Identifier: MIT */
/*
 * A call belongs to two: the thread that waits, and the I/O thread, which has it in a list until the archive has
 * answered. The one that is done with it last frees it, so a thread that has waited long enough leaves it behind.
 */
#include "backend/reader/remote.h"

#include <errno.h>
#include <stdatomic.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/wait.h"
#include "spec/base/mem.h"

#define ANSWER_S 5
#define AWAY_MS	 10000

struct listed {
	char *name;
	uint64_t size;
};

struct call {
	struct remote *remote;
	atomic_uint refs;
	sem_t answered;
	char *name, *after; /* AFTER: for a list; NULL: from the first name */
	bool list;
	uint64_t off;
	size_t n;
	int err;
	char *text, *bytes;
	struct listed *listed;
	size_t n_listed;
	bool more;
	struct call *prev, *next; /* of the I/O thread */
};

struct remote {
	struct loop *loop;
	struct archive *archive;
	char *dir;
	struct call *calls; /* of the I/O thread: calls that are under way */
	atomic_bool stopping;
	atomic_ullong until; /* the archive is not asked before that, by loop_now_ms */
	struct lock lock;    /* protects the members below */
	int64_t since;
	char *why;
};

static void call_unref(struct call *c)
{
	if (atomic_fetch_sub(&c->refs, 1) > 1)
		return;
	for (size_t i = 0; i < c->n_listed; i++)
		free(c->listed[i].name);
	free(c->listed);
	free(c->bytes);
	free(c->text);
	free(c->name);
	free(c->after);
	sem_destroy(&c->answered);
	free(c);
}

static void answer(struct call *c, int err, const char *text)
{
	c->err = err;
	c->text = text_copy(text);
	sem_post(&c->answered);
	call_unref(c);
}

static void on_bytes(void *data, int err, const char *text, const char *bytes, size_t n)
{
	struct call *c = data;

	DL_DELETE(c->remote->calls, c);
	if (!err)
		c->bytes = mem_copy(bytes, n);
	c->n = n;
	answer(c, err, text);
}

static void on_list(void *data, int err, const char *text, const struct archive_object *objects,
		    size_t n, bool more)
{
	struct call *c = data;

	DL_DELETE(c->remote->calls, c);
	c->listed = new0_n(struct listed, n);
	for (size_t i = 0; i < n; i++)
		c->listed[i] = (struct listed){text_copy(objects[i].name), objects[i].size};
	c->n_listed = n;
	c->more = more;
	answer(c, err, text);
}

static void begin(void *data)
{
	struct call *c = data;
	struct remote *r = c->remote;

	if (r->stopping)
		return answer(c, -EHOSTUNREACH, "");
	DL_APPEND(r->calls, c);
	if (c->list)
		archive_list(r->archive, c->name, c->after, on_list, c);
	else
		archive_get(r->archive, c->name, c->off, c->n, on_bytes, c);
}

/* --- any thread --- */

static void note(struct remote *r, bool away, const char *why)
{
	bool was;

	atomic_store(&r->until, away ? loop_now_ms() + AWAY_MS : 0);
	{
		lock_scope(&r->lock);
		was = r->since;
		if (away != was)
			r->since = away ? loop_time_ns() : 0;
		if (away)
			text_set(&r->why, "%s", why);
	}
	if (away != was)
		diag(away ? DIAG_WARNING : DIAG_INFO, "archive: %s%s", away ? why : r->dir,
		     away ? "; what is known of its jobs is shown" : ": can be read again");
}

int64_t remote_away(struct remote *r, char **ret_why)
{
	lock_scope(&r->lock);
	*ret_why = text_copy(r->since ? r->why : "");
	return r->since;
}

void remote_try(struct remote *r)
{
	atomic_store(&r->until, 0);
}

static struct call *call_new(struct remote *r, const char *name)
{
	struct call *c = new0(struct call);

	c->remote = r;
	c->refs = 2;
	c->name = text_copy(name);
	sem_init(&c->answered, 0, 0);
	return c;
}

/* Make the call C and wait for it. 0 or a negative errno; the caller frees C in any case. */
static int make(struct remote *r, struct call *c)
{
	cleanup_free char *late = text_print("%s: does not answer", r->dir);
	bool answered;
	int err;

	if (loop_now_ms() < atomic_load(&r->until) || r->stopping) {
		call_unref(c);
		return -EHOSTUNREACH;
	}
	loop_post(r->loop, begin, c);
	answered = wait_for(&c->answered, ANSWER_S);
	err = answered ? c->err : -ETIMEDOUT;
	if (r->stopping)
		return -EHOSTUNREACH;
	if (err == -ETIMEDOUT || err == -EHOSTUNREACH) {
		note(r, true, answered && *c->text ? c->text : late);
		return -EHOSTUNREACH;
	}
	note(r, false, "");
	return err;
}

int remote_get(struct remote *r, const char *name, uint64_t off, size_t n, char **ret,
	       size_t *ret_n)
{
	struct call *c;
	int err;

	if (!archive_is_name(name, false))
		return -ENOENT;
	c = call_new(r, name);
	c->off = off;
	c->n = n;
	err = make(r, c);
	if (!err) {
		*ret = take_ptr(c->bytes);
		*ret_n = c->n;
	}
	call_unref(c);
	return err;
}

int remote_list(struct remote *r, const char *prefix, size_t max,
		void (*fn)(void *data, const struct archive_object *object), void *data)
{
	cleanup_free char *after = NULL;
	bool more = archive_is_name(prefix, true);
	int err = 0;

	for (size_t n = 0; more && !err && n < max;) {
		struct call *c = call_new(r, prefix);

		c->list = true;
		c->after = after ? text_copy(after) : NULL;
		err = make(r, c);
		for (size_t i = 0; !err && i < c->n_listed && n < max; i++, n++)
			fn(data, &(struct archive_object){c->listed[i].name, c->listed[i].size});
		more = !err && c->more && c->n_listed;
		if (more)
			text_set(&after, "%s", c->listed[c->n_listed - 1].name);
		call_unref(c);
	}
	return err;
}

/* --- life --- */

void remote_stop(struct remote *r, loop_fn fn, void *data)
{
	struct call *c, *next;

	r->stopping = true;
	archive_stop(r->archive, fn, data);
	DL_FOREACH_SAFE(r->calls, c, next) {
		DL_DELETE(r->calls, c);
		answer(c, -EHOSTUNREACH, "");
	}
}

int remote_new(struct loop *loop, const struct archive_address *place, struct remote **ret,
	       char **ret_text)
{
	struct remote *r = new0(struct remote);
	int err = archive_new(loop, place, NULL, &r->archive, ret_text);

	if (err) {
		free(r);
		return err;
	}
	r->loop = loop;
	r->dir = text_copy(place->where);
	r->why = text_copy("");
	r->lock = (struct lock)LOCK_INIT;
	*ret = r;
	return 0;
}

void remote_free(struct remote *r)
{
	if (!r)
		return;
	archive_free(r->archive);
	free(r->dir);
	free(r->why);
	free(r);
}
