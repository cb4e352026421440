/* SPDX-License-Identifier: MIT */
/*
 * When what had been printed at an open can be read: output that is fetched must have come, and the
 * merged log must have taken it up.
 */
#include <utlist.h>

#include "backend/log.h"
#include "backend/spool_impl.h"

bool log_settled(struct log *log)
{
	return !atomic_load(&log->fetching) && (log->key || atomic_load(&log->ended));
}

static void settle_free(struct spool_settle *w)
{
	log_unref(w->log);
	free(w);
}

/* What was to be fetched has come. */
static void settle_fetched(struct spool_settle *w)
{
	struct spool *spool = w->log->spool;
	struct spool_job *j = spool_find_job(spool, w->log->id);
	bool listed;

	{
		lock_scope(&spool->lock);
		listed = w->log->listed;
	}
	if (j && listed && !w->log->key && !spool->stopped) {
		spool_settle_begin(j, w);
		return;
	}
	w->fn(w->data);
	settle_free(w);
}

static void settle_here(void *data)
{
	struct spool_settle *w = data;

	if (atomic_load(&w->log->fetching))
		LL_APPEND(w->log->waits, w);
	else
		settle_fetched(w);
}

void log_settle(struct log *log, void (*fn)(void *data), void *data)
{
	struct spool_settle *w = log_settled(log) ? NULL : calloc(1, sizeof(*w));

	if (!w) {
		loop_post(log->spool->loop, fn, data);
		return;
	}
	w->log = log_ref(log);
	w->fn = fn;
	w->data = data;
	loop_post(log->spool->loop, settle_here, w);
}

/* --- fetching --- */

/* Has nobody begun it? Then no byte will come. */
static void end_unbegun(struct log *log)
{
	struct spool *spool = log->spool;
	struct spool_job *j = spool_find_job(spool, log->id);

	if (j && (!log->key || spool_find_source(j, log->key)))
		return;
	atomic_store(&log->ended, true);
	log_tell(log_ref(log));
}

static void fetched(void *data)
{
	struct log *log = data;
	struct spool_settle *w;

	if (atomic_fetch_sub(&log->fetching, 1) == 1) {
		end_unbegun(log);
		while ((w = log->waits)) {
			LL_DELETE(log->waits, w);
			settle_fetched(w);
		}
	}
	log_unref(log);
}

static void fetch_here(void *data)
{
	struct log *log = data;
	struct spool *spool = log->spool;

	if (spool->stopped)
		fetched(log);
	else
		spool->fetch(spool->fetch_data, log->id, log->key, fetched, log);
}

void log_fetch(struct log *log)
{
	atomic_fetch_add(&log->fetching, 1);
	loop_post(log->spool->loop, fetch_here, log_ref(log));
}
