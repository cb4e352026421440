/* SPDX-License-Identifier: MIT */
/*
 * The state machine of one followed log. In the steps from OPENING to CLOSING the log has a slot.
 *
 *	step	  what is in progress		what ends it				next
 *	WAITING	  a wait for a slot		the log gets a slot			(proceed)
 *	OPENING	  kxfs opens the log's writer	the writer is open			(proceed)
 *	WRITING	  kxfs writes to the disk	all bytes are written			(proceed)
 *	READING	  kxfs reads the end of the	the end is read				ASKING
 *		  log from the disk
 *	ASKING	  a request			the request ends			meanings[]
 *						the run has ended, and the request	(proceed)
 *						makes no progress for some time
 *						the writer has too little space		SLOWED
 *	SLOWED	  a paused request		all bytes are written			ASKING
 *						the request ends			meanings[]
 *						no progress, as in ASKING		(proceed)
 *	PAUSING	  a timer			the timer fires				(proceed)
 *						the run ends				(proceed)
 *						the pod is being deleted		(proceed)
 *	PAUSED	  a timer; the log has no slot,	the timer fires				WAITING
 *		  after too many failures	the server can be reached again		WAITING
 *						a reader opens the log			WAITING
 *						the run ends				WAITING
 *						the pod is being deleted		WAITING
 *						the run is gone (RUN_GONE)		CLOSING
 *	CLOSING	  kxfs writes the last bytes,	all is written; the log is complete	COMPLETE
 *		  and syncs a complete log	all is written; some output is lost	LOST
 *						all is written; too many refusals	PAUSED
 *	COMPLETE  nothing; the log has ended
 *	LOST	  nothing; the log has ended
 *
 * If the disk fails in one of these steps, the next step is PAUSING. (proceed) is the first of
 * these steps whose condition is true: OPENING if no writer is open; WRITING if bytes must still be
 * written; CLOSING if the run is gone; ASKING if the log on disk is empty; otherwise READING.
 * next_kind[] selects the kind of the next request. meanings[] has a function for each outcome of a
 * request, which selects the next step. Readers see a PAUSED log as ended, unless the server can't
 * be reached.
 *
 * The file is long because all its sections except the first two change the step.
 */
#include "backend/kube/follow.h"

#include <assert.h>
#include <errno.h>

#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/random.h"
#include "backend/client/podlog.h"
#include "backend/output/writer.h"
#include "spec/base/mem.h"

/* The first pause before a retry. Each further pause is twice as long, up to a limit. */
#define DELAY_MS	 1000
#define DELAY_MAX_MS	 30000
#define DELAY_DISK_MS	 10000 /* the limit after the disk has failed */
#define DELAY_ENDED_MS	 5000  /* the limit after the run has ended */
#define DELAY_LEAVING_MS 1000  /* the limit while the pod is being deleted */
#define REFUSED_MS	 2000  /* the first pause of a PAUSED log */
#define REFUSED_MAX_MS	 45000 /* the limit of the further pauses of a PAUSED log */
/* The pause of a PAUSED log is at least this, multiplied by the number of PAUSED logs. */
#define REFUSED_ALL_MS 100
/* after the end of the run, kxfs ends a stream that is silent for this long */
#define ENDING_MS  5000
#define LEAVING_MS 500	  /* replaces ENDING_MS while the pod is being deleted */
#define GONE_MS	   30000  /* replaces ENDING_MS in RUN_GONE, because this stream is the last one */
#define FLOW_MS	   600000 /* this long after the end of the run, kxfs ends every stream */
/* If the pod disappeared this soon after the log was complete, assume that no output is missing. */
#define LATELY_MS 5000
/* If a stream is silent for this long, kxfs assumes that all existing output has arrived. */
#define QUIET_MS     100
#define QUIET_CHECKS 20	   /* after this many QUIET_MS, kxfs assumes this of every stream */
#define ENDED_MS     1000  /* after the end of the job, readers wait this long for the run's end */
#define REST_MS	     8000  /* after the end of the run, readers wait this long for the rest */
#define OUTLIVED_MS  60000 /* see follow_job_ended */
/*
 * After this many failures in a row, kxfs believes the last result. If it is a refusal, the log
 * becomes PAUSED.
 */
#define FAILURES_MAX 12
/* kxfs believes that there is no output if this many replies in a row report it. */
#define EMPTY_MAX 3
/* If a kubelet keeps a stream open for longer than this, the container is running. */
#define OPEN_MS 2000
/* A stream that ends sooner than this has not waited for new output. */
#define AT_ONCE_MS  1000
#define WINDOW	    (64u << 10) /* bytes at the end of the log that kxfs compares with a stream */
#define WINDOW_MORE 32		/* after a failed comparison, kxfs multiplies the window by this */
#define WINDOW_MAX  (64u << 20)
/*
 * Pause a stream when the writer has less space than this, in bytes. Some lines may still arrive
 * after the pause has begun.
 */
#define SLACK (128u << 10)

enum step {
	WAITING,
	OPENING,
	WRITING,
	READING,
	ASKING,
	SLOWED,
	PAUSING,
	PAUSED,
	CLOSING,
	COMPLETE,
	LOST,
};

/* The known end is the end of the log on disk. Each stream first has to repeat it. */
enum fit {
	FITS,	 /* the normal case: kxfs accepts only a stream that repeats the known end */
	DOUBTED, /* the last stream did not repeat the known end, so the next request is a PROBE */
	FORCED	 /* kxfs also accepts a stream that does not repeat the known end */
};

/* The worst problem since the log last made progress. */
enum trouble {
	FINE,
	TROUBLE, /* any problem except those below */
	DENIED,	 /* the user is not allowed to read the log */
	DISK	 /* writing to the disk fails */
};

/* The state of the output that readers wait for. */
enum printed {
	EXPECTED, /* some of it has not arrived */
	FETCHED,  /* a request of kind FIRST has received all of it; not all of it is on disk */
	ARRIVED	  /* all of it is on disk or not available */
};

/* The state of the job, according to its controller. */
enum job_end {
	JOB_RUNS,
	JOB_OVER,
	JOB_OUTLIVED /* the run has not ended a minute after the job: see follow_job_ended */
};

/* The output that a request is for. */
enum kind {
	STREAM,	  /* the existing output and, while the run continues, all later output */
	FIRST,	  /* only the existing output, for a reader or after the end of the job */
	REST,	  /* the rest of the output, after the end of the run */
	PREVIOUS, /* like REST, but the container has been started again */
	PROBE,	  /* the log of the previous run, to check whether the log on disk is from it */
};

static const enum kind next_kind[][3] = {
	/*		  FITS    DOUBTED FORCED */
	[RUN_RUNNING] = {STREAM, PROBE, STREAM},
	[RUN_LAST] = {REST, PROBE, REST},
	[RUN_PREVIOUS] = {PREVIOUS, PROBE, PREVIOUS},
	[RUN_GONE] = {REST, REST, REST},
};

struct waiter {
	loop_fn done;
	void *arg;
	struct waiter *next;
};

struct follow {
	struct follow_context *context;
	struct output_job *output;
	char *job, *key, *prefix, *pod, *uid, *container;
	void *data;
	unsigned restart;
	unsigned gaps, missed; /* see follow_run */
	unsigned log_gaps;     /* gaps inside the log, including those from earlier mounts */
	bool lost_end;	       /* true if output after the last byte of the log is lost */

	enum step step;
	enum run_end run;
	enum fit fit;
	enum trouble trouble;
	enum printed printed;
	int disk_err; /* the negative errno if TROUBLE is DISK */
	struct slot slot;
	enum job_end job_end;
	bool reruns; /* see follow_run */
	uint64_t ended_ms;
	uint64_t came_ms; /* when the last byte of an earlier request arrived; 0 if none arrived */
	/* loop_now_ms() when the log was last known to be complete; 0 if it may lack output now */
	uint64_t all_ms;
	unsigned failures; /* requests in a row without output */
	unsigned empty;	   /* replies in a row that report that there is no output */
	unsigned failed;   /* requests in a row during which the disk failed */

	struct log_writer *writer;
	/* ends PAUSING and PAUSED; in ASKING and SLOWED it is the request's deadline, if any */
	struct loop_timer timer;
	char *text; /* TEXT and ERR are the arguments of finish(), in CLOSING */
	int err;

	struct loop_timer quiet_timer; /* ends the wait of readers (on_quiet) */
	struct loop_timer outlived;    /* changes JOB_OVER to JOB_OUTLIVED */
	struct waiter *waiters;
	uint64_t quiet_size; /* the size of the log when on_quiet last ran */
	unsigned quiet_checks;

	/* The members below describe the current request, or the next one if there is none. */
	enum kind kind;
	struct podlog *podlog; /* the request in ASKING and SLOWED, otherwise NULL */
	size_t window;	       /* bytes at the end of the log that kxfs compares with the stream */
	uint64_t from;	       /* offset of the WINDOW bytes; 0 if kxfs compares the whole log */
	/* true if the last stream ended cleanly before kxfs knew that the run has ended */
	bool early;
	bool alone;    /* true if the disk was too slow: each request then has its own connection */
	uint64_t came; /* the result of podlog_came when the deadline was set */
	unsigned lost; /* requests in a row that ended as PODLOG_SILENT */
	struct spec_logline_past past; /* what earlier streams have shown about the log */
};

static const char gone[] = "the pod, or this run of its container, no longer exists";

static void proceed(struct follow *f);

/* --- runs: a key is UID.CONTAINER.RESTART --- */

/* No part of a key contains a dot (uids and names of containers have none). */
size_t run_pod_len(const char *key)
{
	return strcspn(key, ".");
}

static bool is_part(const char *from, const char *to, const char *name)
{
	return strncmp(from, name, (size_t)(to - from)) == 0 && !name[to - from];
}

bool run_find(const struct spec_pod_view *pod, const char *key, struct run *ret)
{
	const char *name = strchr(key, '.'), *restart = strrchr(key, '.');

	if (!pod || !name || restart == name)
		return false;
	ret->pod = pod;
	ret->restart = (unsigned)strtoul(restart + 1, NULL, 10);
	for (size_t i = 0; i < pod->n_containers; i++) {
		ret->container = &pod->containers[i];
		if (is_part(name + 1, restart, ret->container->name))
			return true;
	}
	return false;
}

/* True if the container is between two runs. Its restart count is still that of the earlier run. */
static bool is_between(const struct run *run)
{
	return run->container->state == SPEC_WAITING && run->container->last_exit_code >= 0;
}

bool run_has_begun(const struct run *run)
{
	return run->restart < run->container->restarts || run->container->state != SPEC_WAITING ||
	       is_between(run);
}

enum run_end run_end(const struct run *run)
{
	if (run->restart + 1 < run->container->restarts)
		/* The kubelet keeps only the logs of the newest run and of the run before it. */
		return RUN_GONE;
	if (run->restart < run->container->restarts)
		return RUN_PREVIOUS;
	if (run->container->state == SPEC_TERMINATED || is_between(run))
		return RUN_LAST;
	return RUN_RUNNING;
}

bool run_was_started(const struct run *run)
{
	return run->container->started || is_between(run);
}

unsigned run_missed_before(const struct spec_replica *r, size_t i)
{
	const char *key = r->logs[i].key, *dot = strrchr(key, '.');
	unsigned long run = dot ? strtoul(dot + 1, NULL, 10) : 0;
	unsigned long first = 0;

	if (i > 0 && dot && strncmp(r->logs[i - 1].key, key, (size_t)(dot + 1 - key)) == 0)
		first = strtoul(r->logs[i - 1].key + (dot + 1 - key), NULL, 10) + 1;
	return run > first ? (unsigned)(run - first) : 0;
}

/* --- slots --- */

void slots_set(struct slots *all, struct slot *s, enum slot_state state)
{
	if (s->state == SLOT_QUEUED)
		DL_DELETE(all->queue, s);
	if (s->state == SLOT_TAKEN) {
		all->n_first -= s->first;
		all->n_retried -= s->retried;
	}
	all->n[s->state]--;
	all->n[state]++;
	s->state = state;
	if (state == SLOT_QUEUED && s->urgent)
		DL_PREPEND(all->queue, s);
	else if (state == SLOT_QUEUED)
		DL_APPEND(all->queue, s);
	if (state == SLOT_TAKEN) {
		all->n_first += s->first;
		all->n_retried += s->retried;
	}
}

void slots_hasten(struct slots *all, struct slot *s)
{
	if (s->urgent)
		return;
	s->urgent = true;
	if (s->state == SLOT_QUEUED)
		slots_set(all, s, SLOT_QUEUED);
}

void slots_arrived(struct slots *all, struct slot *s)
{
	if (s->state == SLOT_TAKEN)
		all->n_first -= s->first;
	s->first = false;
}

struct slot *slots_next(struct slots *all)
{
	struct slot *s;

	DL_FOREACH(all->queue, s) {
		if (all->n[SLOT_TAKEN] >= all->max + (s->urgent ? SLOTS_URGENT : 0))
			/* the logs behind this one are not more urgent */
			return NULL;
		if ((s->first && all->n_first >= SLOTS_FIRST) ||
		    (s->retried && !s->leaving && all->n_retried >= SLOTS_RETRIED))
			continue;
		slots_set(all, s, SLOT_TAKEN);
		return s;
	}
	return NULL;
}

static void begin(struct follow *f);

void follow_fill(struct follow_context *context)
{
	struct slot *slot;

	while (!context->stopping && (slot = slots_next(&context->slots)))
		begin(container_of(slot, struct follow, slot));
}

/* --- states --- */

static bool has_ended(const struct follow *f)
{
	return f->run != RUN_RUNNING;
}

/* True if the run continues a minute after the end of its job, and its pod is not being deleted. */
static bool is_outlived(const struct follow *f)
{
	return f->job_end == JOB_OUTLIVED && !has_ended(f) && !f->slot.leaving;
}

static bool is_over(const struct follow *f)
{
	return f->step >= COMPLETE;
}

/* --- events and messages --- */

static void changed(struct follow *f)
{
	f->context->changed(f->data);
}

/* Call the readers back: the output that they wait for is on disk or not available. */
static void arrived(struct follow *f)
{
	struct waiter *w, *next;

	loop_timer_stop(&f->quiet_timer);
	if (f->printed == ARRIVED)
		return;
	f->printed = ARRIVED;
	slots_arrived(&f->context->slots, &f->slot);
	output_log_expect(f->output, f->key, false);
	for (w = take_ptr(f->waiters); w; w = next) {
		next = w->next;
		loop_post(f->context->loop, w->done, w->arg);
		free(w);
	}
}

static void report(struct follow *f, enum diag_level level, const char *text)
{
	diag(level, "output of %s, container %s: %s", f->pod, f->container, text);
}

/* Record a problem. If F had none before, log TEXT as information, because kxfs retries. */
static void trouble(struct follow *f, enum trouble trouble, const char *text)
{
	cleanup_free char *all = text_print("%s; kxfs retries", text);

	if (f->trouble == FINE)
		report(f, DIAG_INFO, all);
	f->trouble = max_of(f->trouble, trouble);
}

static void mended(struct follow *f)
{
	if (f->trouble != FINE)
		report(f, DIAG_INFO, f->step == COMPLETE ? "is complete" : "continues");
	if (f->trouble == DISK)
		changed(f); /* follow_state.waiting becomes false */
	f->trouble = FINE;
	f->failed = 0;
}

static void set_forbidden(struct follow *f, const char *text)
{
	if (f->context->forbidden)
		f->context->forbidden(f->context->data, text);
	output_log_deny(f->output, f->key, text);
}

static void on_begun(void *data)
{
	struct follow *f = data;

	set_forbidden(f, NULL);
	if (f->trouble == DENIED)
		f->trouble = TROUBLE;
}

/*
 * Update GAPS, but never lower it. It may include gaps that an earlier mount has counted. It may
 * also include gaps from a request whose bytes were not written.
 */
static void count_gaps(struct follow *f)
{
	unsigned n = f->missed + f->log_gaps + f->lost_end;

	if (n <= f->gaps)
		return;
	f->gaps = n;
	changed(f);
}

static void on_gap(void *data)
{
	struct follow *f = data;

	report(f, DIAG_WARNING,
	       "kxfs could not follow the log for some time, and may have lost output from that "
	       "time");
	log_writer_lost(f->writer);
	f->log_gaps++;
	/* The lost end is now a gap inside the log. */
	f->lost_end = false;
	count_gaps(f);
}

/* --- time --- */

/* Call proceed() in the next round of the loop, after the caller has returned. */
static void pause_shortly(struct follow *f)
{
	f->step = PAUSING;
	loop_timer_set(&f->timer, 0);
}

/*
 * Pause before the next request. N is the number of pauses in a row before this one. The pause
 * grows with N, up to MAX ms. After the end of the run the limit is lower. ASKED is the server's
 * Retry-After in ms, or 0.
 */
static void pause_after(struct follow *f, unsigned n, unsigned max, unsigned asked)
{
	unsigned last = f->slot.leaving ? DELAY_LEAVING_MS : has_ended(f) ? DELAY_ENDED_MS : max;
	struct backoff pause = {DELAY_MS, last, n};

	f->step = PAUSING;
	loop_timer_set(&f->timer, backoff_next(&pause, asked));
}

static void back_off(struct follow *f, unsigned asked)
{
	pause_after(f, f->failures++, DELAY_MAX_MS, asked);
}

static void set_deadline(struct follow *f)
{
	f->came = podlog_came(f->podlog);
	loop_timer_set(&f->timer, f->run == RUN_GONE ? GONE_MS
				  : f->slot.leaving  ? LEAVING_MS
						     : ENDING_MS);
}

/*
 * True if the request may continue after its deadline. It may if it makes progress, or if another
 * request would have to wait for the disk anyway. But no request may continue later than FLOW_MS
 * after the end of the run.
 */
static bool makes_progress(const struct follow *f)
{
	return (podlog_came(f->podlog) != f->came || podlog_is_asking(f->podlog) ||
		log_writer_pending(f->writer) > 0) &&
	       loop_now_ms() - f->ended_ms < FLOW_MS;
}

static uint64_t came_ms(const struct follow *f)
{
	return f->podlog ? max_of(f->came_ms, podlog_came_ms(f->podlog)) : f->came_ms;
}

static void stop_request(struct follow *f)
{
	f->came_ms = came_ms(f);
	podlog_stop(take_ptr(f->podlog));
}

static void stop(struct follow *f)
{
	loop_timer_stop(&f->timer);
	stop_request(f);
	log_writer_close(take_ptr(f->writer));
}

/*
 * Call the readers back if the run or its job has ended, if the stream is silent, or after
 * QUIET_CHECKS checks. Otherwise check again after QUIET_MS.
 */
static void on_quiet(void *data)
{
	struct follow *f = data;
	uint64_t size = f->writer ? log_writer_size(f->writer) : 0;
	bool silent = size == f->quiet_size && f->writer && log_writer_pending(f->writer) == 0;
	bool streaming = f->podlog && podlog_has_begun(f->podlog) && !podlog_is_unsure(f->podlog);

	f->quiet_size = size;
	if (has_ended(f) || f->job_end != JOB_RUNS ||
	    (streaming && (silent || ++f->quiet_checks >= QUIET_CHECKS))) {
		arrived(f);
		follow_fill(f->context);
	} else {
		loop_timer_set(&f->quiet_timer, QUIET_MS);
	}
}

/*
 * Let readers wait for the rest of the output, at most MS. Call this when the run or its job has
 * ended.
 */
static void await_rest(struct follow *f, unsigned ms)
{
	if (f->slot.state != SLOT_TAKEN || f->slot.first)
		return;
	f->printed = EXPECTED;
	loop_timer_set(&f->quiet_timer, ms);
}

/* --- the end of the log --- */

/* End the log. END is COMPLETE or LOST. */
static void over(struct follow *f, enum step end)
{
	f->step = end;
	loop_timer_stop(&f->outlived);
	stop(f);
	if (f->slot.state != SLOT_PAUSED || !f->slot.retried)
		output_log_end(f->output, f->key, NULL, NULL);
	/* Clear the denial. Even if the user had the right, no more output would arrive. */
	output_log_deny(f->output, f->key, NULL);
	arrived(f);
	if (end == COMPLETE) {
		mended(f);
	} else {
		f->lost_end = true;
		count_gaps(f);
		diag(DIAG_WARNING, "%s: %s of %s: %s", f->job, f->container, f->pod, f->text);
	}
	slots_set(&f->context->slots, &f->slot, SLOT_NONE);
	changed(f);
	follow_fill(f->context);
}

/* Release the slot, and pause: the server has refused the log too often, or can't be reached. */
static void pause_long(struct follow *f)
{
	struct slots *slots = &f->context->slots;
	struct backoff pause = {REFUSED_MS, REFUSED_MAX_MS,
				f->failures > FAILURES_MAX ? f->failures - FAILURES_MAX : 0};

	f->step = PAUSED;
	stop(f);
	arrived(f);
	slots_set(slots, &f->slot, SLOT_PAUSED);
	if (!f->context->away || f->slot.retried) {
		output_log_end(f->output, f->key, NULL, NULL);
		f->slot.retried = true;
		f->failures = max_of(f->failures, (unsigned)FAILURES_MAX) + 1;
	}
	loop_timer_set(&f->timer,
		       backoff_next(&pause, (unsigned)slots->n[SLOT_PAUSED] * REFUSED_ALL_MS));
	changed(f);
	follow_fill(f->context);
}

static void on_failed(struct follow *f, int err);

static void on_synced(void *data, int err)
{
	struct follow *f = data;

	if (err < 0)
		return on_failed(f, err);
	over(f, COMPLETE);
}

static void closed(struct follow *f)
{
	if (f->err == -EAGAIN && f->run != RUN_GONE)
		return pause_long(f);
	/* The job's record will show the log as complete, so sync the log first. */
	if (!f->err && f->writer && log_writer_size(f->writer) > 0)
		return log_writer_sync(f->writer);
	over(f, !f->err || f->err == -ENODATA ? COMPLETE : LOST);
}

/*
 * End the log when all bytes are written. TEXT is the reason, for users. ERR is 0 if the log is
 * complete, -ENODATA if the run never printed anything, -ENOENT if output may be lost, or -EAGAIN
 * if kxfs will request the rest later.
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

/* Call finish(), but with 0 instead of ERR if the log was complete less than LATELY_MS ago. */
static void lost(struct follow *f, int err, const char *text)
{
	bool all = f->all_ms && loop_now_ms() - f->all_ms < LATELY_MS;

	if (!all && err == -EAGAIN)
		trouble(f, TROUBLE, text);
	finish(f, all ? 0 : err, all ? "" : text);
}

/* --- events of the run --- */

static void go_forward(struct follow *f, enum run_end end)
{
	if (!has_ended(f))
		await_rest(f, REST_MS);
	f->run = end;
	f->ended_ms = loop_now_ms();
	f->failures = f->empty = 0;
	slots_hasten(&f->context->slots, &f->slot);
}

void follow_ended(struct follow *f, enum run_end end)
{
	if (end <= f->run || is_over(f))
		return;
	go_forward(f, end);
	/* Stop the request if it may return the output of the next run from now on. */
	if (f->podlog && end == RUN_PREVIOUS && (podlog_is_unsure(f->podlog) || f->kind == REST)) {
		stop_request(f);
		pause_shortly(f);
	} else if (f->podlog) {
		set_deadline(f);
	} else if (f->step == PAUSED && end == RUN_GONE) {
		/* the timer fires after the caller has returned, and ends the log */
		loop_timer_set(&f->timer, 0);
	} else if (f->step == PAUSED) {
		follow_resume(f, false);
	} else if (f->step == PAUSING) {
		pause_shortly(f);
	}
	follow_fill(f->context);
}

void follow_leaving(struct follow *f)
{
	if (f->slot.leaving || is_over(f))
		return;
	f->slot.leaving = true;
	f->failures = 0;
	slots_hasten(&f->context->slots, &f->slot);
	if (f->step == PAUSING)
		pause_shortly(f);
	else if (f->podlog && loop_timer_is_set(&f->timer))
		set_deadline(f); /* this deadline is earlier than the old one */
	follow_resume(f, false);
	follow_fill(f->context);
}

void follow_job_ended(struct follow *f, bool over, bool outlived)
{
	if (over == (f->job_end != JOB_RUNS) || (is_over(f) && f->job_end == JOB_OUTLIVED))
		return;
	if (!over) {
		loop_timer_stop(&f->outlived);
	} else if (!has_ended(f) && !is_over(f)) {
		await_rest(f, ENDED_MS);
		if (outlived)
			loop_timer_set(&f->outlived, OUTLIVED_MS);
	}
	f->job_end = over ? JOB_OVER : JOB_RUNS;
}

static void on_outlived(void *data)
{
	struct follow *f = data;

	loop_timer_stop(&f->outlived);
	f->job_end = JOB_OUTLIVED;
	if (f->podlog && f->kind <= FIRST && is_outlived(f)) {
		stop_request(f);
		pause_shortly(f);
	}
}

void follow_resume(struct follow *f, bool opened)
{
	if (f->step != PAUSED || f->run == RUN_GONE)
		return;
	if (opened)
		f->printed = EXPECTED;
	loop_timer_stop(&f->timer);
	f->step = WAITING;
	slots_set(&f->context->slots, &f->slot, SLOT_QUEUED);
	follow_fill(f->context);
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
	} else if (makes_progress(f)) {
		set_deadline(f);
	} else {
		stop_request(f);
		f->all_ms = 0;
		proceed(f);
	}
}

/* --- the disk --- */

static void on_failed(struct follow *f, int err)
{
	cleanup_free char *text = text_print("%s; kxfs retries", strerror(-err));

	if (f->trouble != DISK) {
		report(f, DIAG_WARNING, text);
		changed(f);
	}
	f->trouble = DISK;
	f->disk_err = err;
	f->all_ms = 0; /* kxfs must request the unwritten bytes again */
	stop(f);
	/* Don't call the readers back while they wait for the rest of an ended run's output. */
	if (!has_ended(f) || !loop_timer_is_set(&f->quiet_timer))
		arrived(f);
	pause_after(f, f->failed++, DELAY_DISK_MS, 0);
	follow_fill(f->context);
}

static void on_opened(void *data, int err)
{
	struct follow *f = data;

	if (err < 0)
		return on_failed(f, err);
	f->log_gaps = log_writer_gaps(f->writer);
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
	mended(f);
	if (f->step == WRITING) {
		proceed(f);
	} else if (f->step == SLOWED) {
		f->step = ASKING;
		podlog_resume(f->podlog);
	}
}

/* --- the outcomes of requests --- */

/*
 * A stream has ended cleanly, although kxfs does not know that the run has ended. If the stream was
 * open for long, immediately request a second stream. If the container still runs, the kubelet
 * keeps the second stream open. If the second stream ends quickly, the run has ended, and the log
 * has all output.
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

static void got_all(struct follow *f, const struct podlog_result *r)
{
	/* Only a STREAM also returns the output that is printed during the request. */
	if (f->kind == STREAM && (has_ended(f) || f->slot.leaving))
		f->all_ms = loop_now_ms();
	if (f->kind == FIRST && f->printed == EXPECTED)
		f->printed = FETCHED;
	if (f->kind >= REST || (f->kind == FIRST && is_outlived(f)) ||
	    (f->kind == STREAM && f->run == RUN_GONE)) {
		finish(f, 0, "");
		return;
	}
	mended(f);
	if (f->kind == FIRST || has_ended(f))
		proceed(f);
	else
		ended_early(f, r->open_ms);
}

/*
 * The request has returned no output. ERR is 0 if the server refused it. Otherwise the server has
 * reported that there is no output. After EMPTY_MAX such reports in a row, end the log with ERR.
 */
static void got_nothing(struct follow *f, int err, const struct podlog_result *r)
{
	bool enough = err ? ++f->empty >= EMPTY_MAX : f->failures + 1 >= FAILURES_MAX;

	if (!err)
		f->empty = 0;
	f->early = false;
	arrived(f);
	if (f->run == RUN_GONE)
		lost(f, -ENOENT, r->text);
	else if (has_ended(f) && !r->more && enough)
		lost(f, err ? err : -EAGAIN, r->text);
	else
		back_off(f, r->wait_ms);
	follow_fill(f->context);
}

/* A stream that broke in the middle (PODLOG_CUT) is not worth a message. */
static void got_refusal(struct follow *f, const struct podlog_result *r)
{
	if (r->outcome != PODLOG_CUT)
		trouble(f, TROUBLE, r->text);
	got_nothing(f, 0, r);
}

static void ask_again(struct follow *f, const struct podlog_result *r)
{
	f->lost += r->outcome == PODLOG_SILENT;
	proceed(f);
}

/* From now on, accept a stream that lacks the known end: log rotation may have removed that end. */
static void force(struct follow *f)
{
	if (f->fit != FORCED)
		spec_logline_compare_again(&f->past);
	f->fit = FORCED;
}

/* The stream does not repeat the known end of the log. */
static void got_other(struct follow *f, const struct podlog_result *r)
{
	/* true if the stream may contain the output of the next run */
	bool may_be_next = f->kind < PREVIOUS && f->reruns;

	if (f->from > 0 && f->window < WINDOW_MAX) {
		/*
		 * If the node's clock was set back, a stream requested by time may begin elsewhere
		 * in the log. So compare more bytes.
		 */
		f->window *= WINDOW_MORE;
		f->fit = f->kind == PROBE ? DOUBTED : f->fit;
		proceed(f);
	} else if (f->kind != PROBE && f->fit == FORCED && has_ended(f)) {
		lost(f, -ENOENT,
		     "log rotation removed the end of this output, and perhaps "
		     "later output");
	} else if (f->kind != PROBE && f->fit == FORCED) {
		back_off(f, 0);
	} else if (f->kind != PROBE && (!has_ended(f) || may_be_next)) {
		f->fit = DOUBTED;
		proceed(f);
	} else {
		/* log rotation has removed the known end, so the stream has only later output */
		force(f);
		proceed(f);
	}
}

/*
 * The stream has ended before the end of the output on disk, or the reply to a PROBE is an error
 * message. Retry. After FAILURES_MAX failures, assume that no more output exists. If the request is
 * a PROBE, assume instead that the log on disk does not belong to the previous run.
 */
static void got_less(struct follow *f, const struct podlog_result *r)
{
	if (f->failures + 1 < FAILURES_MAX)
		back_off(f, 0);
	else if (f->kind == PROBE)
		got_other(f, r);
	else
		got_all(f, r);
}

/*
 * The container has no previous run, or the previous run is earlier than the run of this log. So
 * this log belongs to the newest run. If the pod is gone instead, the next request shows that.
 */
static void probed_none(struct follow *f, const struct podlog_result *r)
{
	force(f);
	proceed(f);
}

static void got_slow(struct follow *f, const struct podlog_result *r)
{
	trouble(f, TROUBLE, "the disk is too slow");
	f->alone = true;
	proceed(f);
}

/* The server has shown that the run has ended, before the watch has reported it. */
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
 * The server reports that the pod never ran, or that the run does not exist or has not begun. Don't
 * believe this about the newest run if kxfs has received output of it, even if the output is not on
 * disk.
 */
static void got_no_run(struct follow *f, const struct podlog_result *r)
{
	bool unwritten = f->failed > 0 && f->came_ms;
	bool empty = log_writer_size(f->writer) == 0 && !unwritten;
	bool never = r->outcome == PODLOG_NEVER_RAN || empty;

	got_nothing(f, f->kind == PREVIOUS ? -ENOENT : never ? -ENODATA : 0, r);
}

/* The handlers of each outcome, for a PROBE and for all other requests. */
static const struct {
	void (*other)(struct follow *f, const struct podlog_result *r);
	void (*probe)(struct follow *f, const struct podlog_result *r);
} meanings[] = {
	[PODLOG_ALL] = {got_all, got_all},
	[PODLOG_LESS] = {got_less, got_less},
	[PODLOG_OTHER] = {got_other, got_other},
	[PODLOG_AGAIN] = {ask_again, ask_again},
	[PODLOG_MESSAGE] = {got_refusal, got_less},
	[PODLOG_NEVER_RAN] = {got_no_run, probed_none},
	[PODLOG_NO_RUN] = {got_no_run, probed_none},
	[PODLOG_GONE] = {got_gone, probed_none},
	[PODLOG_REFUSED] = {got_refusal, got_refusal},
	[PODLOG_CUT] = {got_refusal, got_refusal},
	[PODLOG_BROKEN] = {got_refusal, got_refusal},
	[PODLOG_SILENT] = {ask_again, ask_again},
	[PODLOG_SLOW] = {got_slow, got_slow},
	[PODLOG_NEXT_RUN] = {got_next_run, got_next_run},
	[PODLOG_NOT_YET] = {got_refusal, probed_none},
	[PODLOG_WHICH_RUN] = {got_refusal, got_refusal},
};

static void on_done(void *data, const struct podlog_result *r)
{
	struct follow *f = data;

	f->podlog = NULL;
	f->came_ms = r->more ? loop_now_ms() : f->came_ms;
	if (r->forbidden) { /* do this before arrived(), so that readers find the refusal */
		set_forbidden(f, r->text);
		trouble(f, DENIED, r->text);
	}
	loop_timer_stop(&f->timer);
	/* Forget DOUBTED and FORCED: the container may be started again before the next request. */
	if (r->more || (r->outcome != PODLOG_OTHER && r->outcome != PODLOG_AGAIN))
		f->fit = FITS;
	if (r->more) {
		spec_logline_compare_again(&f->past);
		f->window = WINDOW;
		f->failures = f->empty = f->lost = 0;
	}
	if (r->begun && f->kind == STREAM && (r->more || r->open_ms >= AT_ONCE_MS))
		f->all_ms = 0; /* the run has printed more, or may have */
	if (f->kind == PROBE)
		meanings[r->outcome].probe(f, r);
	else
		meanings[r->outcome].other(f, r);
}

/* --- requests --- */

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
	/* on_written ends this pause, because a writer without space has bytes to write. */
	if (f->step == ASKING && !log_writer_has_room(f->writer, SLACK) && podlog_pause(f->podlog))
		f->step = SLOWED;
}

/* Start a request. KNOWN is the end of the log on disk. */
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
	if (f->kind == STREAM && (is_outlived(f) || (f->slot.first && f->printed == EXPECTED)))
		f->kind = FIRST;
	f->fit = f->fit == DOUBTED ? FITS : f->fit;
	f->from = known->from;
	config.follow = f->kind == STREAM;
	config.lost = f->lost;
	config.alone = f->alone;
	config.previous = f->kind >= PREVIOUS;
	config.force = f->fit == FORCED && f->kind != PROBE;
	if (f->kind == STREAM && f->printed != ARRIVED && !loop_timer_is_set(&f->quiet_timer))
		loop_timer_set(&f->quiet_timer, QUIET_MS);
	f->step = ASKING;
	f->podlog = podlog_start(&config);
}

static void on_known(void *data, int err, struct spec_logline_known *known)
{
	struct follow *f = data;
	struct spec_logline_known k = *known;

	if (err < 0)
		return on_failed(f, err);
	if (f->run == RUN_GONE)
		return lost(f, -ENOENT, gone);
	*known = (struct spec_logline_known){0};
	ask(f, &k);
}

static void proceed(struct follow *f)
{
	const struct log_writer_events events = {on_opened, on_written, on_known, on_synced, f};
	const struct spec_logline_known nothing = {0};

	assert(!f->podlog && f->slot.state == SLOT_TAKEN);
	if (!f->writer) {
		f->step = OPENING;
		f->writer = log_writer_new(f->output, f->key, &events);
		return;
	}
	if (log_writer_pending(f->writer) > 0) {
		f->step = WRITING;
		return;
	}
	if (f->printed == FETCHED && !has_ended(f)) {
		arrived(f);
		follow_fill(f->context);
	}
	if (f->run == RUN_GONE) {
		lost(f, -ENOENT, gone);
	} else if (log_writer_size(f->writer) == 0) {
		ask(f, &nothing);
	} else {
		f->step = READING;
		log_writer_known(f->writer, f->window);
	}
}

/* --- creation and the functions for callers --- */

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
	loop_timer_init(&f->quiet_timer, context->loop, on_quiet, f);
	loop_timer_init(&f->outlived, context->loop, on_outlived, f);
	f->slot = (struct slot){.first = run->first};
	output_log_expect(run->output, run->key, true);
	slots_set(&context->slots, &f->slot, SLOT_QUEUED);
	return f;
}

static void begin(struct follow *f)
{
	/* Readers saw the paused log as ended, so begin the log again. */
	if (f->slot.retried)
		output_log_begin(f->output, f->key, f->prefix, false);
	changed(f); /* follow_state.waiting becomes false */
	proceed(f);
}

void follow_free(struct follow *f)
{
	loop_timer_stop(&f->outlived);
	stop(f);
	arrived(f);
	slots_set(&f->context->slots, &f->slot, SLOT_NONE);
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
	if (f->printed != ARRIVED)
		output_log_expect(f->output, f->key, true);
}

void follow_wait(struct follow *f, loop_fn done, void *arg)
{
	struct waiter *w;

	if (f->printed == ARRIVED) {
		loop_post(f->context->loop, done, arg);
		return;
	}
	w = new0(struct waiter);
	*w = (struct waiter){done, arg, f->waiters};
	f->waiters = w;
}

bool follow_is_fetching(const struct follow *f, bool early)
{
	if (is_over(f) || f->step == PAUSED || f->slot.retried || f->trouble >= DENIED)
		return false;
	return early || (has_ended(f) && loop_now_ms() - max_of(f->ended_ms, came_ms(f)) < REST_MS);
}

const char *follow_key(const struct follow *f)
{
	return f->key;
}

struct follow_state follow_state(const struct follow *f)
{
	bool refused = f->slot.retried && !is_over(f);
	bool disk = f->trouble == DISK && !is_over(f);

	return (struct follow_state){
		.over = is_over(f),
		.complete = f->step == COMPLETE,
		.outlived = is_over(f) && is_outlived(f),
		.refused = refused && f->step == PAUSED,
		.waiting = refused || f->step == WAITING || f->step == PAUSED || disk,
		.disk = disk ? f->disk_err : 0,
		.gaps = f->gaps,
		.lost_end = f->lost_end,
	};
}
