/* SPDX-License-Identifier: MIT */
/*
 * The capture of one log. At any time it is in one of these states:
 *
 *	state	what is under way		what ends it				next
 *	OPENING	the log's writer is opened	it is open				(proceed)
 *						it can't be				PAUSING
 *	WRITING	bytes go to the disk		all are written				(proceed)
 *	READING	the end of the log is read	it is read				ASKING
 *						it can't be				PAUSING
 *	ASKING	an attempt			its outcome				as below
 *						a deadline, once the run has ended	(proceed)
 *	PAUSING	a timer				it fires; the run ends; it is urgent	(proceed)
 *	CLOSING	bytes go to the disk		all are written				(done)
 *	any	bytes go to the disk		the disk fails				PAUSING
 *
 * (proceed) is WRITING if bytes wait for the disk; CLOSING if the pod is gone; else READING. An attempt asks for what
 * there is now, for somebody who waits (FIRST); for that and all that comes (STREAM); for what is left of a run that
 * has ended (REST); or whether what is in the log is of the run before the newest (PROBE). What its outcome
 * leads to stands above on_outcome.
 */
#include "backend/kube/capture_log.h"

#include <assert.h>
#include <errno.h>

#include "backend/base/diag.h"
#include "backend/base/random.h"
#include "backend/client/podlog.h"
#include "backend/output/writer.h"
#include "spec/base/mem.h"

#define DELAY_MS       1000 /* before a first attempt again */
#define DELAY_MAX_MS   30000
#define DELAY_ENDED_MS 5000
#define DELAY_HURRY_MS 1000
#define DISK_MS	       10000 /* a disk that failed is tried again after this */
/* The stream of a run that has ended ends by itself, or, when nothing has come for so long, is ended: */
#define ENDING_MS 5000
#define HURRY_MS  500	 /* when the pod is on its way out */
#define GONE_MS	  30000	 /* when nothing can be asked for after it */
#define FLOW_MS	  600000 /* and after this also if something has */
#define LATELY_MS 5000	 /* all had come, and then the pod is gone: that was all */
/* Where nobody waits, a pause of so long in the stream, or so many checks, count as the end of what there was. */
#define QUIET_MS    100
#define QUIET_LOOKS 20
/*
 * Attempts that bring nothing of a run that has ended, before it is given up for now. TRIES_NONE: in which the
 * server says that there is nothing.
 */
#define TRIES_MAX  12
#define TRIES_NONE 3
/* A node keeps the stream of a container open for longer than this if the container runs, else not. */
#define OPEN_MS	   2000
#define AT_ONCE_MS 1000
/* Bytes of the log's end that a stream is compared with: at first, and how many more where that does not help. */
#define WINDOW	    (64u << 10)
#define WINDOW_MORE 32
#define WINDOW_MAX  (64u << 20)
#define SLACK	    (128u << 10) /* room for the pieces that may come when a stream is slowed */

enum state { OPENING, WRITING, READING, ASKING, PAUSING, CLOSING };

enum kind { FIRST, STREAM, REST, PROBE };

struct capture_log {
	struct capture_log_config config; /* its strings are KEY and so on */
	char *key, *namespace, *pod, *uid, *container;
	enum state state;
	struct log_writer *writer; /* NULL: it is to be opened again */
	struct loop_timer *timer;  /* PAUSING: the pause; ASKING: the deadline, NULL: none */
	struct loop_timer *quiet;  /* until it has arrived: checks for a pause in the stream */
	uint64_t quiet_size;	   /* of the log at the last check */
	unsigned quiet_looks;
	bool arrived;
	bool fetched; /* what there was at the start has been fetched, as far as it can be */
	bool warned;
	bool full; /* what was said last is that the disk takes no more */
	unsigned gaps;
	uint64_t all_ms; /* when all had come, as far as is known; 0: not yet */

	/* What is known of the run: */
	bool hurry, ended;
	bool rerun; /* the container runs again, so this run can be had as the previous one */
	enum capture_end end;
	uint64_t ended_ms;

	/* The attempt, or the one to come: */
	struct podlog *attempt; /* ASKING */
	enum kind kind;
	bool previous;
	bool probing;  /* the next attempt is a PROBE */
	bool probed;   /* the container has not run again, and still the stream does not fit */
	bool force;    /* the next attempt takes what does not fit */
	bool early;    /* the last stream ended properly just now, after a while */
	bool partial;  /* it knows less than the whole log */
	size_t window; /* how much of it it knows */
	bool alone;    /* it has a connection of its own, since the disk did not keep up before */
	bool slowed;   /* it waits for the disk */
	uint64_t came; /* podlog_came when its end was awaited last */
	unsigned delay_ms; /* of the next pause */
	unsigned tries;	   /* that brought nothing, in a row */
	unsigned lost;	   /* streams in a row that the kubelet seemed to have lost */
	bool asked;	   /* there was an attempt before */

	/* CLOSING: done(ERR, TEXT) */
	int err;
	char *text;

	struct spec_logline_past past; /* what the streams so far have shown */
};

static const char gone[] = "the pod, or this run of it, is gone";

static void proceed(struct capture_log *c);

void capture_log_stop(struct capture_log *c)
{
	loop_timer_free(c->timer);
	loop_timer_free(c->quiet);
	podlog_stop(c->attempt);
	log_writer_close(c->writer);
	free(c->key);
	free(c->namespace);
	free(c->pod);
	free(c->uid);
	free(c->container);
	free(c->text);
	free(c);
}

/* --- news for the owner, messages for the user --- */

static void arrived(struct capture_log *c)
{
	loop_timer_free(take_ptr(c->quiet));
	if (c->arrived)
		return;
	c->arrived = true;
	c->config.arrived(c->config.data);
}

/* Say once what is wrong. It is a warning only where something has to be done; a loss is said when it is one. */
static void trouble(struct capture_log *c, enum diag_level level, const char *text)
{
	if (!c->warned)
		diag(level, "output of %s, container %s: %s; trying again", c->pod, c->container,
		     text);
	c->warned = true;
}

/* What was wrong is not any more: the log is COMPLETE, or has grown. */
static void mended(struct capture_log *c, bool complete)
{
	if (c->warned)
		diag(DIAG_INFO, "output of %s, container %s: %s", c->pod, c->container,
		     complete ? "is complete" : "goes on");
	c->warned = c->full = false;
}

static void on_gap(void *data)
{
	struct capture_log *c = data;

	diag(DIAG_WARNING,
	     "output of %s, container %s: what it printed while it could not be followed may be "
	     "lost",
	     c->pod, c->container);
	log_writer_lost(c->writer);
	c->config.gap(c->config.data, ++c->gaps);
}

/* --- its end --- */

static void done(struct capture_log *c)
{
	const struct capture_log_config config = c->config;
	cleanup_free char *text = take_ptr(c->text);
	int err = c->err;

	if (!err || err == -ENODATA)
		mended(c, true);
	arrived(c);
	capture_log_stop(c);
	config.done(config.data, err, text);
}

/* It is over as soon as all is written. */
static void finish(struct capture_log *c, int err, const char *text)
{
	loop_timer_free(take_ptr(c->timer));
	c->state = CLOSING;
	c->err = err;
	free(c->text);
	c->text = text_copy(text);
	if (!c->writer || log_writer_pending(c->writer) == 0)
		done(c);
}

/* Nothing more can be had, for ERR, which is the result unless all had come. */
static void lost(struct capture_log *c, int err, const char *text)
{
	bool all = c->all_ms && loop_now_ms() - c->all_ms < LATELY_MS;

	if (!all && err == -EAGAIN)
		trouble(c, DIAG_INFO, text);
	finish(c, all ? 0 : err, all ? "" : text);
}

/* --- time --- */

static void on_timer(void *data);

static void set_timer(struct capture_log *c, unsigned ms)
{
	loop_timer_free(c->timer);
	c->timer = loop_timer_new(c->config.loop, ms, 0, on_timer, c);
}

static void pause_for(struct capture_log *c, unsigned ms)
{
	c->state = PAUSING;
	set_timer(c, random_about(ms));
}

/* The attempt brought nothing: pause, longer each time. */
static void back_off(struct capture_log *c, unsigned at_least_ms)
{
	/* What is left of a run that has ended may soon be gone. */
	unsigned max = c->hurry ? DELAY_HURRY_MS : c->ended ? DELAY_ENDED_MS : DELAY_MAX_MS;
	unsigned ms = max_of(min_of(c->delay_ms, max), at_least_ms);

	c->delay_ms = min_of(2 * c->delay_ms, max);
	pause_for(c, ms);
}

/* The attempt should end by itself, or when nothing comes any more. */
static void set_deadline(struct capture_log *c)
{
	c->came = podlog_came(c->attempt);
	set_timer(c, c->end == CAPTURE_GONE ? GONE_MS : c->hurry ? HURRY_MS : ENDING_MS);
}

/* Is the attempt worth waiting for: it brings something, or the disk is so far behind that no other could begin? */
static bool is_of_use(const struct capture_log *c)
{
	return (podlog_came(c->attempt) != c->came || podlog_is_asking(c->attempt) ||
		log_writer_pending(c->writer) > 0) &&
	       loop_now_ms() - c->ended_ms < FLOW_MS;
}

static void stop_attempt(struct capture_log *c)
{
	podlog_stop(take_ptr(c->attempt));
	c->slowed = false;
}

static void on_timer(void *data)
{
	struct capture_log *c = data;

	loop_timer_free(take_ptr(c->timer));
	if (c->state == PAUSING) {
		proceed(c);
	} else if (is_of_use(c)) {
		set_deadline(c);
	} else {
		stop_attempt(c); /* it should have ended by itself */
		c->all_ms = 0;
		proceed(c);
	}
}

static void on_quiet(void *data)
{
	struct capture_log *c = data;
	uint64_t size = c->writer ? log_writer_size(c->writer) : 0;
	bool paused = size == c->quiet_size && c->writer && log_writer_pending(c->writer) == 0;
	bool streaming =
		c->attempt && podlog_has_begun(c->attempt) && !podlog_is_unsure(c->attempt);

	c->quiet_size = size;
	/* Of a run that has ended there is a true end to wait for. */
	if (streaming && !c->ended && (paused || ++c->quiet_looks >= QUIET_LOOKS))
		arrived(c);
}

/* --- the disk --- */

static void on_failed(struct capture_log *c, int err)
{
	/* This has to be said also if the server was in trouble before. */
	c->warned &= c->full;
	c->full = true;
	trouble(c, DIAG_WARNING, strerror(-err));
	stop_attempt(c);
	/* Bytes that were not written are fetched again, from the last one on that is on disk. */
	log_writer_close(take_ptr(c->writer));
	arrived(c);
	pause_for(c, DISK_MS);
}

static void on_opened(void *data, int err)
{
	struct capture_log *c = data;

	if (err < 0)
		on_failed(c, err);
	else
		proceed(c);
}

/* The disk has caught up with the stream. */
static void go_on(struct capture_log *c)
{
	c->slowed = false;
	podlog_resume(c->attempt);
}

static void on_written(void *data, int err)
{
	struct capture_log *c = data;

	if (err < 0)
		return on_failed(c, err);
	if (c->state == CLOSING)
		return done(c);
	mended(c, false);
	if (c->state == WRITING)
		proceed(c);
	else if (c->attempt && c->slowed)
		go_on(c);
}

/* --- what an outcome means --- */

/*
 * A stream has ended properly while nothing says that its run is over. If it had been open for long, another is
 * asked for at once: a node would keep that one open too if the container still ran.
 */
static void ended_early(struct capture_log *c, uint64_t open_ms)
{
	bool at_once = c->early && open_ms < AT_ONCE_MS;

	if (!c->early && !c->config.reruns && open_ms >= OPEN_MS) {
		c->early = true;
		proceed(c);
		return;
	}
	if (at_once)
		c->all_ms = loop_now_ms();
	c->early = at_once;
	back_off(c, 0);
}

/* The attempt brought all that there is. */
static void got_all(struct capture_log *c, const struct podlog_result *r)
{
	c->tries = 0;
	/* Otherwise the connection or a fetch has ended, and more may have been printed since. */
	if (c->kind == STREAM && (c->ended || c->hurry))
		c->all_ms = loop_now_ms();
	c->fetched |= c->kind == FIRST;
	if (c->kind == REST || c->kind == PROBE || (c->ended && c->end == CAPTURE_GONE)) {
		finish(c, 0, "");
		return;
	}
	mended(c, false);
	if (c->kind == FIRST || c->ended)
		proceed(c);
	else
		ended_early(c, r->open_ms);
}

/* The attempt brought nothing. ERR: there is nothing, which counts if the server says it again; 0: it refused. */
static void got_nothing(struct capture_log *c, int err, const struct podlog_result *r)
{
	unsigned tries = err ? TRIES_NONE : c->config.again ? 1 : TRIES_MAX;

	c->fetched = true; /* as far as it can be */
	c->early = false;
	arrived(c);
	if (c->ended && c->end == CAPTURE_GONE)
		lost(c, -ENOENT, r->text);
	else if (c->ended && !r->more && ++c->tries >= tries)
		lost(c, err ? err : -EAGAIN, r->text);
	else
		back_off(c, r->wait_ms);
}

/* From now on an attempt takes what does not fit. */
static void begin_force(struct capture_log *c)
{
	if (!c->force)
		spec_logline_compare_again(&c->past);
	c->force = true;
}

/* The run before the newest does not show the known end of the log; or (NONE) there is no such run. */
static void probed_other(struct capture_log *c, bool none)
{
	if (c->config.restart == 0 && !none) {
		/* So this run, the first, is not the newest. How it can be had, the pod's status will say. */
		c->rerun = true;
		back_off(c, 0);
		return;
	}
	/* The known end was rotated away: what there is now comes after it. */
	c->probed = true;
	begin_force(c);
	proceed(c);
}

/* The stream does not show the known end of the log. */
static void got_other(struct capture_log *c)
{
	bool may_be_next = !c->previous && c->config.reruns; /* it may be the next run's */

	if (c->partial && c->window < WINDOW_MAX) {
		c->window *= WINDOW_MORE; /* maybe the clock was set back */
		c->probing = c->kind == PROBE;
		proceed(c);
	} else if (c->kind == PROBE) {
		probed_other(c, false);
	} else if (c->ended && c->force) {
		finish(c, 0, ""); /* and there is nothing newer */
	} else if (c->ended && (!may_be_next || c->probed)) {
		begin_force(c);
		proceed(c);
	} else if (c->rerun) {
		back_off(c, 0);
	} else if (!c->probed) {
		c->probing = true;
		proceed(c);
	} else {
		begin_force(c);
		back_off(c, 0);
	}
}

/* A probe that tells nothing: neither that the run is the one before the newest, nor that it is not. */
static void probed_nothing(struct capture_log *c)
{
	if (++c->tries < TRIES_MAX)
		back_off(c, 0);
	else
		got_other(c);
}

/* There is no such run, or it has not begun. */
static void got_no_run(struct capture_log *c, const struct podlog_result *r)
{
	/* Of the newest run, of which there is output already, this can't be true; of the one before it can. */
	if (c->kind == PROBE) {
		probed_other(c, true);
	} else if (c->previous) {
		c->rerun =
			false; /* the newest is this run, unless the pod's status says that it is not */
		got_nothing(c, -EINVAL, r);
	} else {
		got_nothing(c, log_writer_size(c->writer) == 0 ? -ENODATA : 0, r);
	}
}

/*
 *	outcome		FIRST, STREAM			REST				PROBE
 *	ALL		(proceed); PAUSING if a	CLOSING				CLOSING
 *			stream has ended too early
 *	LESS		PAUSING; after many as ALL	the same			PAUSING; after many as OTHER
 *	OTHER		first with more of the log's end known, then:
 *			PROBE, then with FORCE		PROBE where it may be the	with FORCE; of the first
 *							next run's, then with FORCE,	run PAUSING
 *							then CLOSING
 *	AGAIN, SILENT	(proceed)			(proceed)			(proceed)
 *	SLOW		(proceed): WRITING		the same			the same
 *	NEXT_RUN	(proceed) with REST		-				-
 *	GONE		CLOSING				CLOSING				with FORCE
 *	NO_RUN		PAUSING				PAUSING; after 3 CLOSING	with FORCE
 *	MESSAGE		PAUSING				PAUSING; after 12 CLOSING	as LESS
 *	any other	PAUSING				PAUSING; after 12 CLOSING	PAUSING
 */
static void on_outcome(struct capture_log *c, const struct podlog_result *r)
{
	bool probe = c->kind == PROBE;

	switch (r->outcome) {
	case PODLOG_ALL:
		return got_all(c, r);
	case PODLOG_LESS:
		if (probe)
			return probed_nothing(c);
		return ++c->tries < TRIES_MAX ? back_off(c, 0) : got_all(c, r);
	case PODLOG_OTHER:
		return got_other(c);
	case PODLOG_SLOW:
		trouble(c, DIAG_INFO, "the disk does not keep up");
		c->alone = true;
		return proceed(c); /* when all is written */
	case PODLOG_SILENT:
		c->lost++;
		return proceed(c);
	case PODLOG_AGAIN:
		return proceed(c);
	case PODLOG_NEXT_RUN:
		c->rerun = true;
		return proceed(c);
	case PODLOG_WHICH_RUN:
		c->rerun = false; /* it is asked for as the pod's status says */
		break;
	case PODLOG_NO_RUN:
		return got_no_run(c, r);
	case PODLOG_GONE:
		return probe ? probed_other(c, true) : lost(c, -ENOENT, r->text);
	case PODLOG_NEVER_RAN:
		return got_nothing(c, -ENODATA, r);
	case PODLOG_MESSAGE:
		if (probe)
			return probed_nothing(c);
		break;
	case PODLOG_CUT:
		return got_nothing(c, 0, r);
	case PODLOG_REFUSED:
	case PODLOG_BROKEN:
		break;
	}
	trouble(c, DIAG_INFO, r->text);
	got_nothing(c, 0, r);
}

static void on_done(void *data, const struct podlog_result *r)
{
	struct capture_log *c = data;

	c->attempt = NULL;
	c->slowed = false;
	loop_timer_free(take_ptr(c->timer));
	/* By the next attempt the container may run again, so what a probe has shown is not kept for later ones. */
	if (r->more || (r->outcome != PODLOG_OTHER && r->outcome != PODLOG_AGAIN))
		c->force = c->probed = false;
	if (r->more) {
		spec_logline_compare_again(&c->past);
		c->window = WINDOW;
		c->delay_ms = DELAY_MS;
		c->tries = 0;
		c->lost = 0;
	}
	if (r->begun && c->kind == STREAM && (r->more || r->open_ms >= AT_ONCE_MS))
		c->all_ms = 0; /* there was more, or may have been */
	on_outcome(c, r);
}

/* --- attempts --- */

static int on_bytes(void *data, int64_t ns, const char *bytes, size_t n)
{
	struct capture_log *c = data;

	if (!log_writer_has_room(c->writer, n))
		return -ENOBUFS;
	log_writer_add(c->writer, ns, bytes, n);
	return 0;
}

static void on_paused(void *data)
{
	struct capture_log *c = data;

	log_writer_flush(c->writer);
	/* A log without room has bytes that wait for the disk, so on_written follows. */
	if (!c->slowed && !log_writer_has_room(c->writer, SLACK))
		c->slowed = podlog_pause(c->attempt);
}

static enum kind next_kind(const struct capture_log *c)
{
	if (c->probing)
		return PROBE;
	if (c->ended || c->rerun)
		return REST;
	return c->config.first && !c->fetched ? FIRST : STREAM;
}

/* Begin an attempt; KNOWN is the end of the log. */
static void ask(struct capture_log *c, const struct spec_logline_known *known)
{
	struct podlog_config config = {
		.http = c->config.http,
		.loop = c->config.loop,
		.namespace = c->namespace,
		.pod = c->pod,
		.uid = c->uid,
		.container = c->container,
		.restart = c->config.restart,
		.known = *known,
		.past = &c->past,
		.bytes = on_bytes,
		.paused = on_paused,
		.gap = on_gap,
		.done = on_done,
		.data = c,
	};

	c->kind = next_kind(c);
	c->probing = false;
	c->previous = c->kind == PROBE || c->rerun || (c->ended && c->end == CAPTURE_PREVIOUS);
	c->partial = known->from > 0;
	config.follow = c->kind == STREAM;
	config.lost = c->lost;
	config.alone = c->alone;
	config.previous = c->previous;
	/* Of a container that runs once, the watch has just said that it runs, or has. */
	config.sure = c->kind == PROBE || !(c->config.reruns || c->previous || c->asked);
	config.force = c->force && c->kind != PROBE;
	c->asked = true;
	if (c->kind == STREAM && !c->arrived && !c->quiet)
		c->quiet = loop_timer_new(c->config.loop, QUIET_MS, QUIET_MS, on_quiet, c);
	c->state = ASKING;
	c->attempt = podlog_start(&config);
}

static void on_known(void *data, int err, struct log_known *known)
{
	struct capture_log *c = data;
	struct spec_logline_known k = {
		.from = known->from,
		.size = known->size,
		.bytes = take_ptr(known->bytes),
		.n_lines = known->n_lines,
	};

	if (err < 0) {
		free(k.bytes);
		on_failed(c, err);
		return;
	}
	if (c->ended && c->end == CAPTURE_GONE) {
		free(k.bytes);
		lost(c, -ENOENT, gone);
		return;
	}
	k.lines = mem_zero_n(k.n_lines, sizeof(k.lines[0]));
	for (size_t i = 0; i < k.n_lines; i++)
		k.lines[i] = (struct spec_line){known->lines[i].at, known->lines[i].ns};
	ask(c, &k);
}

static void proceed(struct capture_log *c)
{
	const struct log_writer_events events = {on_opened, on_written, c};
	const struct spec_logline_known nothing = {0};

	assert(!c->attempt && !c->timer && c->state != CLOSING);
	if (!c->writer) {
		c->state = OPENING;
		c->writer = log_writer_new(c->config.output, c->key, &events);
		return;
	}
	if (log_writer_pending(c->writer) > 0) {
		c->state = WRITING;
		return;
	}
	if (c->fetched && !c->ended)
		arrived(c);
	if (c->ended && c->end == CAPTURE_GONE) {
		lost(c, -ENOENT, gone);
	} else if (log_writer_size(c->writer) == 0) {
		ask(c, &nothing);
	} else {
		c->state = READING;
		log_writer_known(c->writer, c->window, on_known, c);
	}
}

/* --- its life --- */

struct capture_log *capture_log_start(const struct capture_log_config *config)
{
	struct capture_log *c = new0(struct capture_log);

	assert(loop_is_here(config->loop));
	c->config = *config;
	c->key = text_copy(config->key);
	c->namespace = text_copy(config->namespace);
	c->pod = text_copy(config->pod);
	c->uid = text_copy(config->uid);
	c->container = text_copy(config->container);
	c->delay_ms = DELAY_MS;
	c->window = WINDOW;
	c->warned = c->asked = config->warned;
	c->gaps = config->gaps;
	proceed(c);
	return c;
}

void capture_log_hurry(struct capture_log *c)
{
	if (c->hurry)
		return;
	c->hurry = true;
	/* A log that is paused is tried now; an attempt that should end gets less time. */
	if (c->state == PAUSING)
		pause_for(c, 0);
	else if (c->state == ASKING && c->timer)
		set_deadline(c);
}

void capture_log_ended(struct capture_log *c, enum capture_end end)
{
	if (c->ended && c->end == end)
		return;
	if (!c->ended)
		c->arrived = false;
	c->ended = true;
	c->ended_ms = loop_now_ms();
	c->end = end;
	c->tries = 0;
	c->delay_ms = DELAY_MS;
	if (!c->writer || c->state == OPENING || c->state == READING || c->state == CLOSING)
		return;
	/* The attempt may be showing another run by now. */
	if (c->attempt && end == CAPTURE_PREVIOUS &&
	    (podlog_is_unsure(c->attempt) || (c->kind == REST && !c->previous)))
		stop_attempt(c);
	if (c->attempt)
		set_deadline(c);
	else
		pause_for(c, 0); /* later, not in the middle of the caller's work */
}
