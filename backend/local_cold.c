/* SPDX-License-Identifier: MIT */
/*
 * Jobs that are over stand only on disk and, as a snapshot, in the store. What changes them is
 * done here, one after another: moving one to history, removing one for good.
 */
#include <errno.h>
#include <utlist.h>

#include "backend/local.h"

struct local_cold {
	struct local_cold *prev, *next;
	struct local *l;
	enum local_cold_kind kind;
	struct backend_request *rq;
	char *uid;
	const struct spec_job *job; /* as it is when its turn has come */
	struct spec_job *moved;	    /* the snapshot in its new place */
	int err;
};

static void cold_next(struct local *l);

static void cold_end(struct local_cold *c, int err, const char *text)
{
	bool more = c->kind == LOCAL_COLD_EXPIRE;
	struct local *l = c->l;

	if (c->rq)
		backend_answer(c->rq, err, c->rq->id, text);
	DL_DELETE(l->cold, c);
	free(c->uid);
	spec_job_unref(c->job);
	spec_job_unref(c->moved);
	free(c);
	l->cold_busy = false;
	cold_next(l);
	if (more)
		keep_now(l->keep);
	else
		keep_soon(l->keep);
	local_check_stopped(l);
}

/* Pool: the record says from now on that the job is history. */
static void move_work(void *data)
{
	struct local_cold *c = data;
	const char *state_dir = c->l->b->config.state_dir;
	cleanup(local_record_freep) struct spec_record *rec = NULL;

	c->err = local_record_read(state_dir, c->job->id, &rec);
	if (c->err < 0)
		return;
	rec->history = true;
	rec->changed = loop_time_ns();
	c->moved = spec_record_job(rec);
	c->err = c->moved ? local_record_write(state_dir, rec) : -ENOMEM;
}

static void move_done(void *data)
{
	struct local_cold *c = data;
	cleanup_free char *text = NULL;

	if (c->err == 0)
		c->err = store_put(c->l->b->store, c->moved);
	if (c->err == 0)
		c->moved = NULL; /* the store's now */
	if (c->err < 0 && asprintf(&text, "%s: its record can't be changed: %s", c->job->id,
				   strerror(-c->err)) < 0)
		text = NULL;
	cold_end(c, c->err, text);
}

static void remove_done(void *data)
{
	struct local_cold *c = data;

	store_remove(c->l->b->store, c->job->uid);
	cold_end(c, 0, NULL);
}

static void cold_next(struct local *l)
{
	struct local_cold *c = l->cold;

	if (!c || l->cold_busy)
		return;
	l->cold_busy = true;
	/* What came before may have moved or removed it. */
	c->job = store_get_uid(l->b->store, c->uid);
	if (!c->job || (c->kind == LOCAL_COLD_CANCEL && c->job->history))
		cold_end(c, -ENOENT, NULL);
	else if (c->kind == LOCAL_COLD_CANCEL)
		loop_work(l->b->loop, move_work, move_done, c);
	else
		spool_job_remove(l->b->spool, c->job->id, remove_done, c);
}

void local_cold_add(struct local *l, enum local_cold_kind kind, const char *uid,
		    struct backend_request *rq)
{
	struct local_cold *c = calloc(1, sizeof(*c));

	if (c)
		c->uid = strdup(uid);
	if (!c || !c->uid) {
		free(c);
		if (rq)
			backend_answer(rq, -ENOMEM, NULL, NULL);
		return;
	}
	c->l = l;
	c->kind = kind;
	c->rq = rq;
	DL_APPEND(l->cold, c);
	cold_next(l);
}
