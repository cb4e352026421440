/* SPDX-License-Identifier: MIT */
/*
 * A log that is followed. At any time it is in one of these steps; from OPENING to CLOSING it has a place.
 *
 *	step	what is under way		what ends it				next
 *	WAITING	it stands in the queue		it gets a place				(proceed)
 *	OPENING	the log's writer is opened	it is open				(proceed)
 *						it can't be				PAUSING
 *	WRITING	bytes go to the disk		all are written				(proceed)
 *	READING	the end of the log is read	it is read				ASKING
 *						it can't be				PAUSING
 *	ASKING	a try				its outcome				as MEANINGS says
 *						a deadline, once the run has ended	(proceed)
 *	PAUSING	a timer				it fires; the run ends; it is urgent	(proceed)
 *	PAUSED	a timer, without a place:	it fires; the server is back; somebody	WAITING
 *		it was refused too often	opens it; its pod is on its way out
 *						the pod, or the run, is gone		OVER
 *	CLOSING	bytes go to the disk; if all	all are written: it was refused		PAUSED
 *		of it is in, they are synced	or all of it is in, or it is lost	OVER
 *	OVER	nothing				-
 *	any	bytes go to the disk		the disk fails				PAUSING
 *
 * (proceed) is WRITING if bytes wait for the disk; CLOSING if the run is gone; else READING. The owner tells how far
 * the run is (enum run_end), and each stream shows whether it repeats the known end of the log (enum fit); which try
 * follows from these two stands in NEXT_KIND. To its readers a log that is PAUSED looks ended, but while the server
 * can't be reached they wait until it can.
 *
 * The file is long because each of its sections changes the step: none of them is an object of its own.
 */
#include "backend/kube/follow.h"

#include <assert.h>
#include <errno.h>

#include "backend/base/backoff.h"
#include "backend/base/diag.h"
#include "backend/client/podlog.h"
#include "backend/output/writer.h"
#include "spec/base/mem.h"

/* The first pause; each is twice as long as the one before, up to one of these four: */
#define DELAY_MS       1000
#define DELAY_MAX_MS   30000
#define DELAY_DISK_MS  10000 /* after a failure of the disk */
#define DELAY_ENDED_MS 5000
#define DELAY_HURRY_MS 1000
/*
 * The first pause of a log that was refused too often; and of all logs that are paused so, one is asked for this often.
 */
#define REFUSED_MS     2000
#define REFUSED_MAX_MS 45000
#define REFUSED_ALL_MS 100
/* The stream of a run that has ended should end by itself. It is ended when nothing has come for this long: */
#define ENDING_MS 5000
#define HURRY_MS  500	 /* if the pod is on its way out */
#define GONE_MS	  30000	 /* if nothing can be asked for after this stream */
#define FLOW_MS	  600000 /* and after this time also if something has come */
/* All had come less than this before the pod was gone: then that was all. */
#define LATELY_MS 5000
/* A stream that pauses for QUIET_MS, or was checked for that QUIET_LOOKS times, has brought what there was. */
#define QUIET_MS    100
#define QUIET_LOOKS 20
/* Whoever opens a log after the end of its job waits this long for the news that its run has ended, */
#define NEWS_MS 1000
/* A run that goes on for this long after the end of its job is not the job's any more, if its pod is not removed. */
#define OUTLIVED_MS 60000
#define REST_MS	    8000 /* and this long after the end of its run for the rest of the log */
/*
 * After this many tries that bring nothing of a run that has ended, kxfs gives it up for now; after this many answers
 * that there is nothing, it believes that.
 */
#define TRIES_MAX  12
#define TRIES_NONE 3
/* Only if the container runs does a node keep its stream open for longer than this. */
#define OPEN_MS	   2000
#define AT_ONCE_MS 1000
/*
 * How many bytes of the log's end a stream is compared with: at first, and how many times more where that does not
 * help.
 */
#define WINDOW	    (64u << 10)
#define WINDOW_MORE 32
#define WINDOW_MAX  (64u << 20)
/* Room for the lines that may still come after a stream was slowed. */
#define SLACK (128u << 10)

enum step { WAITING, OPENING, WRITING, READING, ASKING, PAUSING, PAUSED, CLOSING, OVER };

/*
 * Do the streams repeat the known end of the log? DOUBTED: the last one did not; FORCED: a stream is taken although it
 * does not.
 */
enum fit { FITS, DOUBTED, FORCED };

/*
 * What a try asks for: what there is now, for somebody who waits (FIRST; a STREAM follows); that and all that comes
 * (STREAM); what is left of a run that has ended (REST); or whether the log is of the run before the newest one
 * (PROBE).
 */
enum kind { STREAM, FIRST, REST, PROBE };

static const enum kind next_kind[][3] = {
	/*		  FITS    DOUBTED FORCED */
	[RUN_GOES_ON] = {STREAM, PROBE, STREAM},
	[RUN_LAST] = {REST, PROBE, REST},
	[RUN_PREVIOUS] = {REST, PROBE, REST},
	[RUN_GONE] = {REST, REST, REST},
};

/* A reader who waits until what has been printed so far is on disk. */
struct waiter {
	loop_fn done;
	void *arg;
	struct waiter *next;
};

struct follow {
	struct follow_context *context;
	struct output_job *output;
	char *job, *key, *prefix, *pod, *uid, *container; /* the copies of follow_run's strings */
	void *data;
	unsigned restart;
	unsigned gaps, missed; /* see follow_run */
	unsigned places;       /* of gaps in the log, as far as it is known since it was opened */
	bool lost_end;	       /* the run has ended, and the rest of its output can't be had */

	enum step step;
	enum run_end run;
	enum fit fit;
	enum { SILENT, TROUBLE, DISK } said; /* what is wrong, as far as messages have said it */
	int disk_err;			     /* if DISK: the negative errno */
	struct place place;
	bool reruns;   /* see follow_run */
	bool over;     /* the job has ended, according to its controller */
	bool complete; /* OVER, and all of it is in the log */
	bool denied;   /* the user has no right to read it */
	uint64_t ended_ms;
	uint64_t came_ms; /* when the last byte of an earlier try came; 0: none has */
	uint64_t all_ms;  /* when all output had come, as far as is known; 0: it has not */
	unsigned tries;	  /* tries that brought nothing, in a row */
	unsigned none;	  /* tries in a row that said that there is nothing; each is among TRIES */
	unsigned failed;  /* tries in a row in which the disk failed */

	struct log_writer *writer; /* NULL: it has to be opened again */
	/* In PAUSING and PAUSED it ends the pause; in ASKING it is the deadline, if it is set. */
	struct loop_timer timer;
	/* In CLOSING: why the log is over, as text for people. */
	char *text;
	int err;

	/* The readers who wait. PATIENCE ends their wait for what may not come soon: see on_patience. */
	bool arrived;
	bool fetched; /* what there was at the start was fetched, as far as it can be */
	struct loop_timer patience;
	struct loop_timer outlived; /* set while the job has ended, and the run has not */
	struct waiter *waiters;
	uint64_t quiet_size; /* size of the log when on_patience last looked */
	unsigned quiet_looks;

	/* Of the present try, or the next one: */
	enum kind kind;
	struct podlog *podlog; /* NULL but in ASKING */
	/* Bytes of the log's end that the try is compared with; fewer than the whole log if PARTIAL. */
	size_t window;
	bool partial;
	bool previous; /* it asks for the run before the newest one */
	/* The last stream ended in order a moment ago, after having been open for a while. */
	bool early;
	bool alone;    /* it has a connection of its own, since before the disk did not keep up */
	bool slowed;   /* its stream is paused until the disk has caught up */
	uint64_t came; /* podlog_came when the end of the stream was last waited for */
	unsigned lost; /* streams in a row that the kubelet seemed to have lost */
	struct spec_logline_past past; /* what the streams so far have shown */
};

static const char gone[] = "the pod, or this run of it, is gone";

static void proceed(struct follow *f);

static bool has_ended(const struct follow *f)
{
	return f->run != RUN_GOES_ON;
}

/* --- news for the owner, messages for the user --- */

static void changed(struct follow *f)
{
	f->context->changed(f->data);
}

static void room(struct follow *f)
{
	f->context->room(f->context->room_data);
}

/* What had been printed is on disk now, or can't be had: call all who wait for that. */
static void arrived(struct follow *f)
{
	struct waiter *w, *next;

	loop_timer_stop(&f->patience);
	if (f->arrived)
		return;
	f->arrived = true;
	places_arrived(&f->context->places, &f->place);
	output_log_expect(f->output, f->key, false);
	for (w = take_ptr(f->waiters); w; w = next) {
		next = w->next;
		loop_post(f->context->loop, w->done, w->arg);
		free(w);
	}
}

static void say(struct follow *f, enum diag_level level, const char *text)
{
	diag(level, "output of %s, container %s: %s", f->pod, f->container, text);
}

/* Say once what is wrong: as a warning only where somebody has to do something. A loss is said when it happens. */
static void trouble(struct follow *f, const char *text)
{
	cleanup_free char *all = text_print("%s; trying again", text);

	if (f->said == SILENT) {
		say(f, DIAG_INFO, all);
		f->said = TROUBLE;
	}
}

/* Nothing is wrong any more: the log is COMPLETE, or has grown. */
static void mended(struct follow *f, bool complete)
{
	if (f->said != SILENT)
		say(f, DIAG_INFO, complete ? "is complete" : "goes on");
	if (f->said == DISK)
		changed(f); /* WAITING of its state is false again */
	f->said = SILENT;
	f->failed = 0;
}

/* TEXT: the server says that the user has no right to this log; NULL: it does not say that. */
static void set_forbidden(struct follow *f, const char *text)
{
	if (f->context->forbidden)
		f->context->forbidden(f->context->room_data, text);
	f->denied = text;
	output_log_deny(f->output, f->key, text);
}

static void on_begun(void *data)
{
	set_forbidden(data, NULL);
}

/* Each loss is counted once: an earlier mount, or a try whose bytes the disk has not taken, may have told of it. */
static void count_gaps(struct follow *f)
{
	unsigned n = f->missed + f->places + f->lost_end;

	if (n <= f->gaps)
		return;
	f->gaps = n;
	changed(f);
}

static void on_gap(void *data)
{
	struct follow *f = data;

	say(f, DIAG_WARNING, "what it printed while it could not be followed may be lost");
	log_writer_lost(f->writer);
	f->places++;
	f->lost_end = false; /* more has come: what was missing behind the end is missing here */
	count_gaps(f);
}

/* --- time --- */

/* Go on in the next turn of the loop, not in the middle of the caller's work. */
static void pause_shortly(struct follow *f)
{
	f->step = PAUSING;
	loop_timer_set(&f->timer, 0);
}

/*
 * Pause after N pauses in a row: at most MAX ms while the run goes on; shorter if it has ended, since what is left may
 * soon be gone. ASKED is what the server has asked for, in ms.
 */
static void pause_after(struct follow *f, unsigned n, unsigned max, unsigned asked)
{
	unsigned last = f->place.leaving ? DELAY_HURRY_MS : has_ended(f) ? DELAY_ENDED_MS : max;
	struct backoff pause = {DELAY_MS, last, n};

	f->step = PAUSING;
	loop_timer_set(&f->timer, backoff_next(&pause, asked));
}

/* The try brought nothing: pause, longer each time. */
static void back_off(struct follow *f, unsigned asked)
{
	pause_after(f, f->tries++, DELAY_MAX_MS, asked);
}

/* The try should end by itself: set the time after which it is ended if nothing comes any more. */
static void set_deadline(struct follow *f)
{
	f->came = podlog_came(f->podlog);
	loop_timer_set(&f->timer, f->run == RUN_GONE ? GONE_MS
				  : f->place.leaving ? HURRY_MS
						     : ENDING_MS);
}

/* Is the try worth waiting for? It brings something, or the disk is so far behind that no other one could begin. */
static bool is_of_use(const struct follow *f)
{
	return (podlog_came(f->podlog) != f->came || podlog_is_asking(f->podlog) ||
		log_writer_pending(f->writer) > 0) &&
	       loop_now_ms() - f->ended_ms < FLOW_MS;
}

/* When the last byte came, by loop_now_ms; 0: none has. */
static uint64_t came_ms(const struct follow *f)
{
	return f->podlog ? max_of(f->came_ms, podlog_came_ms(f->podlog)) : f->came_ms;
}

static void stop_try(struct follow *f)
{
	f->came_ms = came_ms(f);
	podlog_stop(take_ptr(f->podlog));
	f->slowed = false;
}

/* Stop the try and close the log's writer: nothing is under way any more. */
static void stop(struct follow *f)
{
	loop_timer_stop(&f->timer);
	stop_try(f);
	log_writer_close(take_ptr(f->writer));
}

/* See whether those who wait need not wait any longer: the run has ended, or will soon have, or the stream pauses. */
static void on_patience(void *data)
{
	struct follow *f = data;
	uint64_t size = f->writer ? log_writer_size(f->writer) : 0;
	bool paused = size == f->quiet_size && f->writer && log_writer_pending(f->writer) == 0;
	bool streaming = f->podlog && podlog_has_begun(f->podlog) && !podlog_is_unsure(f->podlog);

	f->quiet_size = size;
	if (has_ended(f) || f->over || (streaming && (paused || ++f->quiet_looks >= QUIET_LOOKS))) {
		arrived(f);
		room(f);
	} else {
		loop_timer_set(&f->patience, QUIET_MS);
	}
}

/*
 * The run has ended, or will soon have: whoever reads the log after the job is to find its end there. Output that does
 * not come within MS is not waited for, so that the rest can be read meanwhile.
 */
static void await_rest(struct follow *f, unsigned ms)
{
	if (f->place.state != PLACE_TAKEN || f->place.first)
		return;
	f->arrived = false;
	loop_timer_set(&f->patience, ms);
}

/* --- its end --- */

static void over(struct follow *f)
{
	f->step = OVER;
	loop_timer_stop(&f->outlived);
	stop(f);
	/* Else readers see it as ended already. */
	if (f->place.state != PLACE_PAUSED || !f->place.retried)
		output_log_end(f->output, f->key, NULL, NULL);
	/* Even with the right there would be nothing more. */
	output_log_deny(f->output, f->key, false);
	arrived(f);
	if (f->complete) {
		mended(f, true);
	} else {
		f->lost_end = true;
		count_gaps(f);
		diag(DIAG_WARNING, "%s: %s of %s: %s", f->job, f->container, f->pod, f->text);
	}
	places_set(&f->context->places, &f->place, PLACE_NONE);
	changed(f);
	room(f);
}

/* Pause without a place: the server has refused the log too often, or is away. */
static void pause_long(struct follow *f)
{
	struct places *places = &f->context->places;
	struct backoff pause = {REFUSED_MS, REFUSED_MAX_MS,
				f->tries > TRIES_MAX ? f->tries - TRIES_MAX : 0};

	f->step = PAUSED;
	stop(f);
	arrived(f);
	places_set(places, &f->place, PLACE_PAUSED);
	if (!f->context->away || f->place.retried) {
		output_log_end(f->output, f->key, NULL, NULL);
		f->place.retried = true;
		f->tries = max_of(f->tries, (unsigned)TRIES_MAX) + 1;
	}
	loop_timer_set(&f->timer,
		       backoff_next(&pause, (unsigned)places->n[PLACE_PAUSED] * REFUSED_ALL_MS));
	changed(f);
	room(f);
}

static void on_failed(struct follow *f, int err);

static void on_synced(void *data, int err)
{
	struct follow *f = data;

	if (err < 0)
		return on_failed(f, err);
	f->complete = true;
	over(f);
}

static void closed(struct follow *f)
{
	if (f->err == -EAGAIN && f->run != RUN_GONE)
		return pause_long(f);
	/* It will soon be on record that the log is complete, and that record is synced. */
	if (!f->err && f->writer && log_writer_size(f->writer) > 0)
		return log_writer_sync(f->writer, on_synced, f);
	f->complete = !f->err || f->err == -ENODATA;
	over(f);
}

/*
 * The log is over as soon as all is written. ERR 0: the container has ended and the log has all of its output;
 * -ENODATA: it has never printed; -ENOENT: some may be lost; -EAGAIN: what is left is to be asked for later.
 */
static void finish(struct follow *f, int err, const char *text)
{
	loop_timer_stop(&f->timer);
	f->step = CLOSING;
	f->err = err;
	free(f->text);
	f->text = text_copy(text);
	if (!f->writer || log_writer_pending(f->writer) == 0)
		closed(f);
}

/* Nothing more can be had. ERR says why, and is the result unless all had come. */
static void lost(struct follow *f, int err, const char *text)
{
	bool all = f->all_ms && loop_now_ms() - f->all_ms < LATELY_MS;

	if (!all && err == -EAGAIN)
		trouble(f, text);
	finish(f, all ? 0 : err, all ? "" : text);
}

/* --- news of its run --- */

/* The run has come to END, which is farther than before. */
static void go_forward(struct follow *f, enum run_end end)
{
	if (!has_ended(f))
		await_rest(f, REST_MS);
	f->run = end;
	f->ended_ms = loop_now_ms();
	f->tries = f->none = 0;
	places_hasten(&f->context->places, &f->place);
}

void follow_ended(struct follow *f, enum run_end end)
{
	if (end <= f->run || f->step == OVER)
		return;
	go_forward(f, end);
	/* The try may now be showing another run. */
	if (f->podlog && end == RUN_PREVIOUS &&
	    (podlog_is_unsure(f->podlog) || (f->kind == REST && !f->previous))) {
		stop_try(f);
		pause_shortly(f);
	} else if (f->podlog) {
		set_deadline(f);
	} else if (f->step == PAUSED && end == RUN_GONE) {
		/* The timer gives the try up, so that this call does not. */
		loop_timer_set(&f->timer, 0);
	} else if (f->step == PAUSED) {
		follow_resume(f, false);
	} else if (f->step == PAUSING) {
		pause_shortly(f);
	}
	room(f);
}

void follow_leaving(struct follow *f)
{
	if (f->place.leaving || f->step == OVER)
		return;
	f->place.leaving = true;
	f->tries = 0;
	places_hasten(&f->context->places, &f->place);
	/* If the log is PAUSING, it is tried now; a try that should end gets less time. */
	if (f->step == PAUSING)
		pause_shortly(f);
	else if (f->step == ASKING && loop_timer_is_set(&f->timer))
		set_deadline(f);
	follow_resume(f, false);
	room(f);
}

void follow_job_ended(struct follow *f, bool over, bool outlived)
{
	if (over == f->over)
		return;
	f->over = over;
	if (!over) {
		loop_timer_stop(&f->outlived);
	} else if (!has_ended(f) && f->step != OVER) {
		await_rest(f, NEWS_MS);
		if (outlived)
			loop_timer_set(&f->outlived, OUTLIVED_MS);
	}
}

static void on_outlived(void *data)
{
	struct follow *f = data;

	loop_timer_stop(&f->outlived);
	if (has_ended(f) || f->place.leaving || f->step == CLOSING)
		return;
	if (f->step == OPENING || f->step == READING) /* the pool has the writer */
		return loop_timer_set(&f->outlived, AT_ONCE_MS);
	stop_try(f);
	finish(f, 0, "");
}

void follow_resume(struct follow *f, bool opened)
{
	if (f->step != PAUSED || f->run == RUN_GONE)
		return;
	f->arrived &= !opened;
	loop_timer_stop(&f->timer);
	f->step = WAITING;
	places_set(&f->context->places, &f->place, PLACE_QUEUED);
	room(f);
}

static void on_timer(void *data)
{
	struct follow *f = data;

	if (f->step == PAUSED && f->run == RUN_GONE) {
		finish(f, -ENOENT, gone);
	} else if (f->step == PAUSED) {
		follow_resume(f, false);
	} else if (f->step == PAUSING) {
		proceed(f);
	} else if (is_of_use(f)) {
		set_deadline(f);
	} else {
		stop_try(f); /* the try should have ended by itself */
		f->all_ms = 0;
		proceed(f);
	}
}

/* --- the disk --- */

static void on_failed(struct follow *f, int err)
{
	cleanup_free char *text = text_print("%s; trying again", strerror(-err));

	/* That the disk fails is said even if the server was in trouble before. */
	if (f->said != DISK) {
		say(f, DIAG_WARNING, text);
		changed(f);
	}
	f->said = DISK;
	f->disk_err = err;
	/*
	 * Bytes that were not written are fetched again, from behind the last one that is on disk: so not all had come.
	 */
	f->all_ms = 0;
	stop(f);
	/* Whoever reads the log of a run that has just ended waits some seconds for the rest, as in other cases. */
	if (!has_ended(f) || !loop_timer_is_set(&f->patience))
		arrived(f);
	pause_after(f, f->failed++, DELAY_DISK_MS, 0);
	room(f);
}

static void on_opened(void *data, int err)
{
	struct follow *f = data;

	if (err < 0)
		return on_failed(f, err);
	f->places = log_writer_gaps(f->writer);
	count_gaps(f);
	proceed(f);
}

static void on_written(void *data, int err)
{
	struct follow *f = data;

	if (err < 0)
		return on_failed(f, err);
	if (f->step == CLOSING)
		return closed(f);
	mended(f, false);
	if (f->step == WRITING) {
		proceed(f);
	} else if (f->podlog && f->slowed) {
		f->slowed = false;
		podlog_resume(f->podlog);
	}
}

/* --- what an outcome means --- */

/*
 * A stream has ended in order although nothing says that its run is over. If it had been open for long, another one is
 * asked for at once: if the container still runs, a node would keep that one open, too.
 */
static void ended_early(struct follow *f, uint64_t open_ms)
{
	bool at_once = f->early && open_ms < AT_ONCE_MS;

	if (!f->early && !f->reruns && open_ms >= OPEN_MS) {
		f->early = true;
		proceed(f);
		return;
	}
	if (at_once)
		f->all_ms = loop_now_ms();
	f->early = at_once;
	back_off(f, 0);
}

/* The try brought all that there is. */
static void got_all(struct follow *f, const struct podlog_result *r)
{
	/* Otherwise a connection or a fetch has ended, and more may have been printed since. */
	if (f->kind == STREAM && (has_ended(f) || f->place.leaving))
		f->all_ms = loop_now_ms();
	f->fetched |= f->kind == FIRST;
	if (f->kind == REST || f->kind == PROBE || f->run == RUN_GONE) {
		finish(f, 0, "");
		return;
	}
	mended(f, false);
	if (f->kind == FIRST || has_ended(f))
		proceed(f);
	else
		ended_early(f, r->open_ms);
}

/*
 * The try brought nothing. ERR: the server says that there is nothing, which counts if it says so again; 0: it refused.
 */
static void got_nothing(struct follow *f, int err, const struct podlog_result *r)
{
	bool enough = err ? ++f->none >= TRIES_NONE : f->tries + 1 >= TRIES_MAX;

	if (!err)
		f->none = 0;
	f->fetched = true; /* as far as it can be fetched */
	f->early = false;
	arrived(f);
	if (f->run == RUN_GONE)
		lost(f, -ENOENT, r->text);
	else if (has_ended(f) && !r->more && enough)
		lost(f, err ? err : -EAGAIN, r->text);
	else
		back_off(f, r->wait_ms);
	room(f);
}

/* The server refuses; or the connection broke in the middle of a stream (PODLOG_CUT), as connections do. */
static void got_refusal(struct follow *f, const struct podlog_result *r)
{
	if (r->outcome != PODLOG_CUT)
		trouble(f, r->text);
	got_nothing(f, 0, r);
}

static void ask_again(struct follow *f, const struct podlog_result *r)
{
	f->lost += r->outcome == PODLOG_SILENT;
	proceed(f);
}

static void got_less(struct follow *f, const struct podlog_result *r)
{
	if (f->tries + 1 < TRIES_MAX)
		back_off(f, 0);
	else
		got_all(f, r);
}

/* From now on a try is taken although it does not repeat the log's end, as after a rotation, if it is of this run. */
static void force(struct follow *f)
{
	if (f->fit != FORCED)
		spec_logline_compare_again(&f->past);
	f->fit = FORCED;
}

/* The stream does not repeat the known end of the log. */
static void got_other(struct follow *f, const struct podlog_result *r)
{
	bool may_be_next = !f->previous && f->reruns; /* it may be of the next run */

	if (f->partial && f->window < WINDOW_MAX) {
		f->window *= WINDOW_MORE; /* the clock may have been set back */
		f->fit = f->kind == PROBE ? DOUBTED : f->fit;
		proceed(f);
	} else if (f->kind != PROBE && f->fit == FORCED && has_ended(f)) {
		lost(f, -ENOENT, "its end was rotated away, perhaps with more behind it");
	} else if (f->kind != PROBE && f->fit == FORCED) {
		back_off(f, 0);
	} else if (f->kind != PROBE && (!has_ended(f) || may_be_next)) {
		f->fit = DOUBTED;
		proceed(f);
	} else {
		force(f); /* the known end was rotated away: the present output comes after it */
		proceed(f);
	}
}

/* The probe tells nothing: neither that the log is of the run before the newest one, nor that it is not. */
static void probed_nothing(struct follow *f, const struct podlog_result *r)
{
	if (f->tries + 1 < TRIES_MAX)
		back_off(f, 0);
	else
		got_other(f, r);
}

/* There is no run before the newest one, so the log is of that; or the pod is gone, as the next try will find. */
static void probed_none(struct follow *f, const struct podlog_result *r)
{
	force(f);
	proceed(f);
}

static void was_slow(struct follow *f, const struct podlog_result *r)
{
	trouble(f, "the disk does not keep up");
	f->alone = true;
	proceed(f); /* goes on when all is written */
}

/* The server itself says that the run has ended, before the watch does. */
static void got_next_run(struct follow *f, const struct podlog_result *r)
{
	if (f->run < RUN_PREVIOUS)
		go_forward(f, RUN_PREVIOUS);
	proceed(f);
}

static void got_gone(struct follow *f, const struct podlog_result *r)
{
	lost(f, -ENOENT, r->text);
}

/*
 * The server says that the pod never ran, or that there is no such run, or that it has not begun. That can't be true of
 * the newest run if it has printed anything, also if the disk has not taken that.
 */
static void got_no_run(struct follow *f, const struct podlog_result *r)
{
	bool empty = log_writer_size(f->writer) == 0 && f->failed == 0;
	bool never = r->outcome == PODLOG_NEVER_RAN || empty;

	got_nothing(f, f->previous ? -ENOENT : never ? -ENODATA : 0, r);
}

/* What follows from an outcome, of a probe and of any other try. */
static const struct {
	void (*other)(struct follow *f, const struct podlog_result *r);
	void (*probe)(struct follow *f, const struct podlog_result *r);
} meanings[] = {
	[PODLOG_ALL] = {got_all, got_all},
	[PODLOG_LESS] = {got_less, probed_nothing},
	[PODLOG_OTHER] = {got_other, got_other},
	[PODLOG_AGAIN] = {ask_again, ask_again},
	[PODLOG_MESSAGE] = {got_refusal, probed_nothing},
	[PODLOG_NEVER_RAN] = {got_no_run, probed_none},
	[PODLOG_NO_RUN] = {got_no_run, probed_none},
	[PODLOG_GONE] = {got_gone, probed_none},
	[PODLOG_REFUSED] = {got_refusal, got_refusal},
	[PODLOG_CUT] = {got_refusal, got_refusal},
	[PODLOG_BROKEN] = {got_refusal, got_refusal},
	[PODLOG_SILENT] = {ask_again, ask_again},
	[PODLOG_SLOW] = {was_slow, was_slow},
	[PODLOG_NEXT_RUN] = {got_next_run, got_next_run},
	[PODLOG_WHICH_RUN] = {got_refusal, got_refusal},
};

static void on_done(void *data, const struct podlog_result *r)
{
	struct follow *f = data;

	f->podlog = NULL;
	f->came_ms = r->more ? loop_now_ms() : f->came_ms;
	f->slowed = false;
	/* This comes before those are called who wait for the log. */
	if (r->forbidden)
		set_forbidden(f, r->text);
	loop_timer_stop(&f->timer);
	/* By the next try the container may run again, so what a probe has shown does not hold for later tries. */
	if (r->more || (r->outcome != PODLOG_OTHER && r->outcome != PODLOG_AGAIN))
		f->fit = FITS;
	if (r->more) {
		spec_logline_compare_again(&f->past);
		f->window = WINDOW;
		f->tries = f->none = f->lost = 0;
	}
	if (r->begun && f->kind == STREAM && (r->more || r->open_ms >= AT_ONCE_MS))
		f->all_ms = 0; /* there was more output, or may have been */
	if (f->kind == PROBE)
		meanings[r->outcome].probe(f, r);
	else
		meanings[r->outcome].other(f, r);
}

/* --- tries --- */

static int on_bytes(void *data, int64_t ns, const char *bytes, size_t n)
{
	struct follow *f = data;

	if (!log_writer_has_room(f->writer, n))
		return -ENOBUFS;
	log_writer_add(f->writer, ns, bytes, n);
	return 0;
}

static void on_paused(void *data)
{
	struct follow *f = data;

	log_writer_flush(f->writer);
	/* Bytes of a log without room wait for the disk, so on_written follows. */
	if (!f->slowed && !log_writer_has_room(f->writer, SLACK))
		f->slowed = podlog_pause(f->podlog);
}

/* Begin a try; KNOWN is the end of the log. */
static void ask(struct follow *f, const struct spec_logline_known *known)
{
	struct podlog_config config = {
		.http = f->context->http,
		.loop = f->context->loop,
		.namespace = f->context->namespace,
		.pod = f->pod,
		.uid = f->uid,
		.container = f->container,
		.restart = f->restart,
		.known = *known,
		.past = &f->past,
		.begun = on_begun,
		.bytes = on_bytes,
		.paused = on_paused,
		.gap = on_gap,
		.done = on_done,
		.data = f,
	};

	f->kind = next_kind[f->run][f->fit];
	if (f->kind == STREAM && f->place.first && !f->fetched)
		f->kind = FIRST;
	f->fit = f->fit == DOUBTED ? FITS : f->fit;
	f->previous = f->kind == PROBE || f->run == RUN_PREVIOUS;
	f->partial = known->from > 0;
	config.follow = f->kind == STREAM;
	config.lost = f->lost;
	config.alone = f->alone;
	config.previous = f->previous;
	config.force = f->fit == FORCED && f->kind != PROBE;
	if (f->kind == STREAM && !f->arrived && !loop_timer_is_set(&f->patience))
		loop_timer_set(&f->patience, QUIET_MS);
	f->step = ASKING;
	f->podlog = podlog_start(&config);
}

static void on_known(void *data, int err, struct log_known *known)
{
	struct follow *f = data;
	struct spec_logline_known k = {
		.from = known->from,
		.size = known->size,
		.bytes = take_ptr(known->bytes),
		.n_lines = known->n_lines,
	};

	if (err < 0 || f->run == RUN_GONE) {
		free(k.bytes);
		return err < 0 ? on_failed(f, err) : lost(f, -ENOENT, gone);
	}
	k.lines = mem_zero_n(k.n_lines, sizeof(k.lines[0]));
	for (size_t i = 0; i < k.n_lines; i++)
		k.lines[i] = (struct spec_line){known->lines[i].at, known->lines[i].ns};
	ask(f, &k);
}

static void proceed(struct follow *f)
{
	const struct log_writer_events events = {on_opened, on_written, f};
	const struct spec_logline_known nothing = {0};

	assert(!f->podlog && f->place.state == PLACE_TAKEN);
	if (!f->writer) {
		f->step = OPENING;
		f->writer = log_writer_new(f->output, f->key, &events);
		return;
	}
	if (log_writer_pending(f->writer) > 0) {
		f->step = WRITING;
		return;
	}
	if (f->place.first && f->fetched && !has_ended(f)) {
		arrived(f);
		room(f);
	}
	if (f->run == RUN_GONE) {
		lost(f, -ENOENT, gone);
	} else if (log_writer_size(f->writer) == 0) {
		ask(f, &nothing);
	} else {
		f->step = READING;
		log_writer_known(f->writer, f->window, on_known, f);
	}
}

/* --- its life --- */

struct follow *follow_new(struct follow_context *context, const struct follow_run *run)
{
	struct follow *f = new0(struct follow);

	assert(loop_is_here(context->loop));
	f->context = context;
	f->output = run->output;
	f->job = text_copy(run->job);
	f->key = text_copy(run->key);
	f->prefix = run->prefix ? text_copy(run->prefix) : NULL;
	f->pod = text_copy(run->pod);
	f->uid = text_copy(run->uid);
	f->container = text_copy(run->container);
	f->restart = run->restart;
	f->missed = run->missed;
	f->gaps = max_of(run->gaps, run->missed);
	f->lost_end = run->lost_end;
	f->reruns = run->reruns;
	f->data = run->data;
	f->window = WINDOW;
	loop_timer_init(&f->timer, context->loop, on_timer, f);
	loop_timer_init(&f->patience, context->loop, on_patience, f);
	loop_timer_init(&f->outlived, context->loop, on_outlived, f);
	f->place = (struct place){.data = f, .first = run->first};
	output_log_expect(run->output, run->key, true);
	places_set(&context->places, &f->place, PLACE_QUEUED);
	return f;
}

void follow_begin(struct follow *f)
{
	/* To its readers the log looked ended. Now it can begin, as it could before. */
	if (f->place.retried)
		output_log_begin(f->output, f->key, f->prefix, false);
	changed(f); /* WAITING of its state is false again */
	proceed(f);
}

void follow_free(struct follow *f)
{
	loop_timer_stop(&f->outlived);
	stop(f);
	arrived(f);
	places_set(&f->context->places, &f->place, PLACE_NONE);
	free(f->job);
	free(f->key);
	free(f->prefix);
	free(f->pod);
	free(f->uid);
	free(f->container);
	free(f->text);
	free(f);
}

void follow_precedes(struct follow *f)
{
	if (!f->arrived)
		output_log_expect(f->output, f->key, true);
}

void follow_wait(struct follow *f, loop_fn done, void *arg)
{
	struct waiter *w;

	if (f->arrived) {
		loop_post(f->context->loop, done, arg);
		return;
	}
	w = new0(struct waiter);
	*w = (struct waiter){done, arg, f->waiters};
	f->waiters = w;
}

bool follow_is_fetching(const struct follow *f, bool early)
{
	if (f->step == OVER || f->step == PAUSED || f->place.retried || f->denied ||
	    f->said == DISK)
		return false;
	return early || (has_ended(f) && loop_now_ms() - max_of(f->ended_ms, came_ms(f)) < REST_MS);
}

const char *follow_key(const struct follow *f)
{
	return f->key;
}

struct follow_state follow_state(const struct follow *f)
{
	bool refused = f->place.retried && f->step != OVER;
	bool disk = f->said == DISK && f->step != OVER;

	return (struct follow_state){
		.over = f->step == OVER,
		.complete = f->complete,
		.outlived = f->step == OVER && !has_ended(f),
		.refused = refused && f->step == PAUSED,
		.waiting = refused || f->step == WAITING || f->step == PAUSED || disk,
		.disk = disk ? f->disk_err : 0,
		.gaps = f->gaps,
		.lost_end = f->lost_end,
	};
}
