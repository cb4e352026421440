/* SPDX-License-Identifier: MIT */
/*
 * A log's life: opened, fetched, followed, resumed, ended. At any time either its writer is being opened, or
 * a request is under way, or a timer runs, or it is over and waits for the disk.
 */
#include "backend/follow.h"

#include <assert.h>
#include <errno.h>

#include "backend/diag.h"
#include "backend/follow_impl.h"
#include "backend/random.h"

#define DELAY_MAX_MS   30000
#define DELAY_ENDED_MS 5000
#define DELAY_HURRY_MS 1000
#define DISK_MS	       10000 /* a disk that failed is tried again after this */
/* The stream of a run that has ended ends by itself, or, when nothing has come for so long, is ended: */
#define ENDING_MS   5000
#define HURRY_MS    500	   /* when the pod is on its way out */
#define GONE_MS	    30000  /* when nothing can be asked for after it */
#define FLOW_MS	    600000 /* and after this also if something has */
#define LATELY_MS   5000   /* all had come, and then the pod is gone: that was all */
#define QUIET_MS    100
#define QUIET_LOOKS 20

static void follow_open(struct follow *f);

static void follow_free(struct follow *f)
{
	loop_timer_free(f->timer);
	loop_timer_free(f->quiet);
	follow_cancel(f);
	spool_writer_close(f->writer);
	free((char *)(uintptr_t)f->config.key);
	free((char *)(uintptr_t)f->config.prefix);
	free((char *)(uintptr_t)f->config.namespace);
	free((char *)(uintptr_t)f->config.pod);
	free((char *)(uintptr_t)f->config.container);
	free(f->text);
	free(f);
}

/* --- telling --- */

void follow_settle(struct follow *f)
{
	loop_timer_free(take_ptr(f->quiet));
	if (f->settled)
		return;
	f->settled = true;
	if (f->config.settled)
		f->config.settled(f->config.data);
}

void follow_trouble(struct follow *f, const char *text)
{
	if (*text && !f->said)
		diag(DIAG_WARNING, "output of %s, container %s: %s; trying again", f->config.pod,
		     f->config.container, text);
	else if (!*text && f->said)
		diag(DIAG_INFO, "output of %s, container %s: goes on", f->config.pod,
		     f->config.container);
	f->said = *text;
}

static void check_gaps(struct follow *f)
{
	unsigned gaps = spec_logline_gaps(f->l);

	if (gaps == f->gaps)
		return;
	if (gaps > f->gaps && f->head)
		diag(DIAG_WARNING,
		     "output of %s, container %s: what it printed while it could not be followed "
		     "may "
		     "be lost",
		     f->config.pod, f->config.container);
	f->gaps = gaps;
	if (f->config.gap)
		f->config.gap(f->config.data, gaps);
}

/* It is over, and all is written. */
static void follow_done(struct follow *f)
{
	const struct follow_config config = f->config;
	cleanup_free char *text = take_ptr(f->text);
	int err = f->err;

	follow_settle(f);
	follow_free(f);
	config.done(config.data, err, text ? text : "");
}

void follow_finish(struct follow *f, int err, const char *text)
{
	f->over = true;
	f->err = err;
	free(f->text);
	f->text = strdup(text);
	loop_timer_free(take_ptr(f->timer));
	if (f->writer && spool_writer_pending(f->writer) > 0)
		return; /* until that is written */
	follow_done(f);
}

void follow_lost(struct follow *f, int err, const char *text)
{
	bool all = f->all_ms && loop_now_ms() - f->all_ms < LATELY_MS;

	follow_finish(f, all ? 0 : err, all ? "" : text);
}

/* --- waiting --- */

static void on_timer(void *data);

void follow_await_end(struct follow *f)
{
	unsigned ms = f->end == FOLLOW_GONE ? GONE_MS : f->hurry ? HURRY_MS : ENDING_MS;

	loop_timer_free(f->timer);
	f->came_at = f->came;
	f->timer = loop_timer_new(f->config.loop, ms, 0, on_timer, f);
}

/* Does it still bring something, or would nothing be asked for after it before the disk has caught up? */
static bool is_of_use(const struct follow *f)
{
	bool pending = f->question || (f->writer && spool_writer_pending(f->writer) > 0);

	return (f->came != f->came_at || pending) && loop_now_ms() - f->ended_ms < FLOW_MS;
}

static void on_timer(void *data)
{
	struct follow *f = data;

	loop_timer_free(take_ptr(f->timer));
	if (f->unsure && f->ended && f->end == FOLLOW_GONE) {
		follow_take_held(f); /* nobody can be asked any more */
		return;
	}
	if (f->rq && is_of_use(f)) {
		follow_await_end(f);
		return;
	}
	if (f->rq) {
		follow_cancel(f); /* it should have ended by itself */
		f->head = false;
		f->all_ms = 0;
	}
	follow_next(f);
}

void follow_wait(struct follow *f, unsigned ms)
{
	loop_timer_free(f->timer);
	f->timer = loop_timer_new(f->config.loop, random_about(ms), 0, on_timer, f);
	if (!f->timer)
		follow_finish(f, -ENOMEM, "out of memory");
}

void follow_back_off(struct follow *f, unsigned at_least_ms)
{
	/* What is left of a run that has ended may soon be gone. */
	unsigned max = f->hurry ? DELAY_HURRY_MS : f->ended ? DELAY_ENDED_MS : DELAY_MAX_MS;
	unsigned ms = max_of(min_of(f->delay_ms, max), at_least_ms);

	f->delay_ms = min_of(2 * f->delay_ms, max);
	follow_wait(f, ms);
}

/* --- the disk --- */

static void on_opened(void *data, int err, struct spec_logline *l)
{
	struct follow *f = data;

	if (err < 0) {
		follow_trouble(f, strerror(-err));
		follow_settle(f);
		spool_writer_close(take_ptr(f->writer));
		follow_wait(f, DISK_MS);
		return;
	}
	f->l = l;
	check_gaps(f);
	follow_next(f);
}

/* What was not written is fetched again, from where the disk has it. */
static void on_failed(struct follow *f, int err)
{
	follow_trouble(f, strerror(-err));
	follow_cancel(f);
	f->over = false;
	spool_writer_close(take_ptr(f->writer));
	f->l = NULL;
	follow_settle(f);
	follow_wait(f, DISK_MS);
}

static void on_written(void *data, int err)
{
	struct follow *f = data;

	if (err < 0) {
		on_failed(f, err);
		return;
	}
	if (f->over) {
		follow_done(f);
		return;
	}
	check_gaps(f);
	if (!f->rq && !f->timer)
		follow_next(f);
}

static void follow_open(struct follow *f)
{
	const struct spool_writer_events events = {on_opened, on_written, f};

	f->writer = spool_writer_new(f->config.spool, f->config.key, &events);
	if (!f->writer)
		follow_wait(f, DISK_MS);
}

/* --- what next --- */

static void on_quiet(void *data)
{
	struct follow *f = data;
	uint64_t size = f->l ? spec_logline_size(f->l) : 0;
	bool paused = size == f->quiet_at && f->writer && spool_writer_pending(f->writer) == 0;

	f->quiet_at = size;
	if (f->head && !f->unsure && (paused || ++f->quiet_looks >= QUIET_LOOKS))
		follow_settle(f);
}

/* Look for a pause in what comes first. */
static void look_for_quiet(struct follow *f)
{
	if (f->settled || f->quiet)
		return;
	f->quiet = loop_timer_new(f->config.loop, QUIET_MS, QUIET_MS, on_quiet, f);
	if (!f->quiet)
		follow_settle(f);
}

void follow_next(struct follow *f)
{
	if (f->over || f->rq || f->question || f->timer)
		return;
	if (!f->writer) {
		follow_open(f);
		return;
	}
	if (!f->l || spool_writer_pending(f->writer) > 0)
		return; /* on_opened, on_written */
	if (f->fetched)
		follow_settle(f);
	if (f->ended && f->end == FOLLOW_GONE) {
		follow_lost(f, -ENOENT, "the pod is gone");
		return;
	}
	if (f->ended || f->rerun) {
		follow_send(f, FOLLOW_REST);
	} else if (f->config.first && !f->fetched) {
		follow_send(f, FOLLOW_FIRST);
	} else {
		look_for_quiet(f);
		follow_send(f, FOLLOW_ON);
	}
}

/* --- its life --- */

struct follow *follow_start(const struct follow_config *config)
{
	struct follow *f = calloc(1, sizeof(*f));

	assert(loop_is_here(config->loop));
	if (!f)
		return NULL;
	f->config = *config;
	f->config.key = strdup(config->key);
	f->config.prefix = strdup(config->prefix);
	f->config.namespace = strdup(config->namespace);
	f->config.pod = strdup(config->pod);
	f->config.container = strdup(config->container);
	f->delay_ms = FOLLOW_DELAY_MS;
	f->said = config->said;
	if (!f->config.key || !f->config.prefix || !f->config.namespace || !f->config.pod ||
	    !f->config.container) {
		follow_free(f);
		return NULL;
	}
	follow_open(f);
	return f;
}

void follow_hurry(struct follow *f)
{
	if (f->hurry)
		return;
	f->hurry = true;
	/* One that waits is tried now; one that should end ends sooner. */
	if (f->timer && f->rq)
		follow_await_end(f);
	else if (f->timer && !f->over)
		follow_wait(f, 0);
}

void follow_ended(struct follow *f, enum follow_end end)
{
	bool changed = !f->ended || f->end != end;

	if (!changed)
		return;
	f->ended = true;
	f->ended_ms = loop_now_ms();
	f->end = end;
	f->tries = 0;
	f->delay_ms = FOLLOW_DELAY_MS;
	if (f->over || !f->l)
		return;
	/* It may show another run by now. */
	if (end == FOLLOW_PREVIOUS && (f->unsure || (f->kind == FOLLOW_REST && !f->previous)))
		follow_cancel(f);
	if (f->rq && !(f->unsure && end == FOLLOW_GONE)) {
		follow_await_end(f);
		return;
	}
	/* not from within the caller's own work */
	loop_timer_free(take_ptr(f->timer));
	follow_wait(f, 0);
}

void follow_stop(struct follow *f)
{
	follow_free(f);
}
