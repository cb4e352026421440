/* SPDX-License-Identifier: MIT */
/*
 * Two tables: jobs of which something is captured (by uid), and in each its logs (by key). A log goes through these
 * steps:
 *
 *	step	 what is under way		what ends it			next
 *	WAITING	 it stands in the queue		its turn comes			FOLLOWING
 *	FOLLOWING a capture_log (capture_log.h)	all of it is in, or nothing	OVER
 *						more can be had
 *						the server refuses it, or is	PAUSED
 *						away (-EAGAIN)
 *	PAUSED	 a timer			the pause is over; the server	WAITING
 *						is back; somebody opens it;
 *						its pod is on its way out
 *						the pod, or the run, is gone	OVER
 *	OVER	 nothing			-
 *
 * Places: at most STREAMS_MAX logs are followed at once, fewer where we may not have the descriptors for so many, and
 * at most FIRST_MAX of those that only a reader asked for and that have not arrived yet. A log whose run or pod has
 * ended is urgent, since it may soon be gone: it goes to the front of the queue, and has URGENT_MAX places more, so
 * that it need not wait for programs that run for days.
 *
 * A log whose run has ended and whose rest the server refuses is paused between two tries, longer each time, and has
 * no place meanwhile. For its readers it has ended; but when the server can't be reached, all wait until it can. The
 * log is given up when its pod is gone.
 *
 * The file is long because the places tie the logs of all jobs together: when one log ends, another may begin. The
 * sections "one log" know nothing of snapshots, and those after them nothing of how a log is followed.
 */
#include "backend/kube/capture.h"

#include <errno.h>
#include <stdatomic.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/process.h"
#include "backend/base/random.h"
#include "backend/kube/run.h"
#include "spec/base/mem.h"

#define STREAMS_MAX 10000
#define STREAM_FDS  2	/* a file; and a connection, where the server does not speak HTTP/2 */
#define OTHER_FDS   256 /* what else is open: connections, files of readers, the urgent logs */
#define URGENT_MAX  64
#define FIRST_MAX   8
#define RETRIED_MAX                                                                                \
	8 /* logs followed at once that were refused before, and whose pod is not on its way out */
#define PAUSE_MS     2000
#define PAUSE_MAX_MS 45000
#define PAUSE_ALL_MS                                                                               \
	100 /* times the number of paused logs: so often is one of them all asked for */
#define PREFIX_MAX 300
/* Who opens a log waits so long after the end of its job for the news that its run has ended, */
#define NEWS_MS 1000
#define REST_MS 8000 /* and so long after the end of its run for the rest of it */

enum step { LOG_WAITING, LOG_FOLLOWING, LOG_PAUSED, LOG_OVER };

/* Somebody who waits until what has been printed so far is on disk. */
struct waiter {
	loop_fn done;
	void *arg;
	struct waiter *next;
};

struct job {
	struct capture *c;
	char *uid;
	char *id;
	struct output_job *output; /* NULL: none has been wanted so far */
	struct captured *logs;	   /* by key */
	size_t n_open;		   /* of them, those that are not over */
	size_t n_refused;	   /* of these, those that the server refused, which are paused */
	int said;		   /* why its output can't be captured; 0: nothing was said */
	bool output_ended;	   /* output_job_end was called last, not output_job_resume */
	UT_hash_handle hh;	   /* by uid */
};

/* One log, from when it is wanted until its job is forgotten. */
struct captured {
	struct job *job;
	char *key;
	char *prefix; /* of its lines in the merged log; NULL: they are not part of it */
	char *pod, *pod_uid, *container;
	bool reruns; /* as in capture_log_config, like the next */
	unsigned restart;

	enum step step;
	struct capture_log *attempts; /* FOLLOWING */
	struct loop_timer *pause;     /* PAUSED */
	bool ended;		      /* the run is over, and what is left can be had as END says */
	enum capture_end end;
	bool first; /* only a reader asked for it, and it has not arrived yet */
	/*
	 * What had been printed when it began is on disk, or can't be had; and once the run has ended while it was
	 * followed: all of it, but for what takes longer than REST_MS.
	 */
	bool arrived;
	struct loop_timer *rest; /* runs while who opens it waits for its end */
	bool over;		 /* the job has ended, as its controller says */
	bool leaving;		 /* its pod is on its way out */
	bool urgent;		 /* the run has ended, or its pod is on its way out */
	bool refused;		 /* the server refused it, and it has ended for its readers */
	bool tried;		 /* it was paused before */
	unsigned tries;		 /* refused one after the other */

	bool complete;	 /* it is over, and nothing is missing */
	bool lost;	 /* its end could not be fetched */
	unsigned missed; /* runs of the container before it that nobody has seen */
	unsigned gap;	 /* as capture_log_config.gap says */
	struct waiter *waiters;
	struct captured *prev, *next; /* capture.queue */
	UT_hash_handle hh;	      /* of the job, by key */
};

struct capture {
	struct capture_config config;
	struct job *jobs;
	struct captured *queue; /* logs that wait for a place, the urgent ones first */
	size_t n_following, n_first;
	size_t places;
	bool away; /* the server can't be reached */
	bool stopping;
	/* Those of struct capture_counts, which metrics read: */
	atomic_size_t n_streams, n_waiting, n_paused, n_retried;
};

static struct job *find_job(const struct capture *c, const char *uid)
{
	struct job *job;

	HASH_FIND_STR(c->jobs, uid, job);
	return job;
}

static struct captured *find_log(const struct job *job, const char *key)
{
	struct captured *log = NULL;

	if (job)
		HASH_FIND_STR(job->logs, key, log);
	return log;
}

static void changed(struct job *job)
{
	job->c->config.events.changed(job->c->config.events.data, job->uid);
}

static const struct spec_pod_view *pod_of(struct capture *c, const char *uid, const char *key)
{
	return c->config.events.pod(c->config.events.data, uid, key, run_pod_len(key));
}

/* --- one log: its steps --- */

static void fill_places(struct capture *c);

/* What had been printed is on disk by now, or can't be had: call all who wait for that. */
static void log_arrived(struct captured *log)
{
	struct capture *c = log->job->c;
	struct waiter *w, *next;

	if (log->first && log->step == LOG_FOLLOWING)
		c->n_first--;
	log->first = false;
	log->arrived = true;
	loop_timer_free(take_ptr(log->rest));
	if (log->job->output)
		output_log_expect(log->job->output, log->key, false);
	for (w = take_ptr(log->waiters); w; w = next) {
		next = w->next;
		loop_post(c->config.loop, w->done, w->arg);
		free(w);
	}
}

static void enter_queue(struct captured *log)
{
	struct capture *c = log->job->c;

	log->step = LOG_WAITING;
	if (log->urgent)
		DL_PREPEND(c->queue, log);
	else
		DL_APPEND(c->queue, log);
	atomic_fetch_add(&c->n_waiting, 1);
}

/* End whatever is under way in the present step of LOG; the caller sets the next step. */
static void leave_step(struct captured *log)
{
	struct capture *c = log->job->c;

	switch (log->step) {
	case LOG_FOLLOWING:
		c->n_following--;
		c->n_retried -= log->refused;
		atomic_fetch_sub(&c->n_streams, 1);
		break;
	case LOG_WAITING:
		DL_DELETE(c->queue, log);
		atomic_fetch_sub(&c->n_waiting, 1);
		break;
	case LOG_PAUSED:
		loop_timer_free(take_ptr(log->pause));
		c->n_paused--;
		log->job->n_refused -= log->refused;
		break;
	case LOG_OVER:
		break;
	}
}

static void log_over(struct captured *log)
{
	log_arrived(log);
	leave_step(log);
	log->step = LOG_OVER;
	log->job->n_open--;
}

/* Nothing more of LOG can be had, for the reason TEXT: it is over. */
static void give_up(struct captured *log, const char *text)
{
	struct job *job = log->job;

	log->lost = true;
	diag(DIAG_WARNING, "%s: %s of %s: %s", job->id, log->container, log->pod, text);
	log_over(log);
	changed(job);
	fill_places(job->c);
}

/* Put a paused log back into the queue. */
static void resume(struct captured *log)
{
	if (log->step != LOG_PAUSED || log->end == CAPTURE_GONE)
		return;
	leave_step(log);
	enter_queue(log);
	fill_places(log->job->c);
}

static void on_pause_over(void *data)
{
	struct captured *log = data;

	if (log->end != CAPTURE_GONE) {
		resume(log);
		return;
	}
	if (!log->refused)
		output_log_end(log->job->output, log->key, NULL, NULL);
	give_up(log, "the pod is gone, or the run, and what it printed was refused");
}

static void pause_for(struct captured *log, unsigned ms)
{
	loop_timer_free(log->pause);
	log->pause = loop_timer_new(log->job->c->config.loop, ms, 0, on_pause_over, log);
}

/* The server refused LOG, or is away. */
static void pause_log(struct captured *log)
{
	struct job *job = log->job;
	struct capture *c = job->c;
	unsigned doubled = min_of(log->tries, 8u);
	unsigned ms = min_of(PAUSE_MS << doubled, PAUSE_MAX_MS);
	bool away = c->away && !log->refused;

	log_arrived(log);
	leave_step(log);
	log->step = LOG_PAUSED;
	log->tried = true;
	c->n_paused++;
	if (!away) {
		output_log_end(job->output, log->key, NULL, NULL);
		log->refused = true;
		log->tries++;
		job->n_refused++;
	}
	pause_for(log,
		  random_about(max_of(ms, (unsigned)atomic_load(&c->n_paused) * PAUSE_ALL_MS)));
	changed(job);
}

/* --- one log: its follow --- */

static void on_arrived(void *data)
{
	struct captured *log = data;

	log_arrived(log);
	fill_places(log->job->c); /* another first fetch may have its place now */
}

static void on_gap(void *data, unsigned total)
{
	struct captured *log = data;

	log->gap = total;
	changed(log->job);
}

static void on_done(void *data, int err, const char *text)
{
	struct captured *log = data;
	struct job *job = log->job;

	log->attempts = NULL;
	if (err == -EAGAIN && log->end != CAPTURE_GONE) {
		pause_log(log);
		fill_places(job->c);
		return;
	}
	output_log_end(job->output, log->key, NULL, NULL);
	log->complete = !err || err == -ENODATA;
	if (!log->complete) {
		give_up(log, text);
		return;
	}
	log_over(log);
	changed(job);
	fill_places(job->c);
}

static void follow_log(struct captured *log)
{
	struct job *job = log->job;
	struct capture *c = job->c;
	const struct capture_log_config config = {
		.loop = c->config.loop,
		.http = c->config.http,
		.output = job->output,
		.key = log->key,
		.namespace = c->config.namespace,
		.pod = log->pod,
		.uid = log->pod_uid,
		.container = log->container,
		.reruns = log->reruns,
		.restart = log->restart,
		.first = log->first,
		.warned = log->tried,
		.again = log->tries > 0,
		.arrived = on_arrived,
		.gaps = log->gap,
		.gap = on_gap,
		.done = on_done,
		.data = log,
	};

	if (log->refused && output_log_begin(job->output, log->key, log->prefix, false) < 0) {
		pause_log(log);
		return;
	}
	leave_step(log);
	log->step = LOG_FOLLOWING;
	log->attempts = capture_log_start(&config);
	atomic_fetch_add(&c->n_streams, 1);
	c->n_following++;
	c->n_retried += log->refused;
	c->n_first += log->first;
	if (log->leaving)
		capture_log_hurry(log->attempts);
	if (log->ended)
		capture_log_ended(log->attempts, log->end);
	changed(job); /* it waits no more */
}

/* --- one log: news of its run --- */

/* Move a log that waits in front of those that can wait longer. */
static void make_urgent(struct captured *log)
{
	if (log->urgent)
		return;
	log->urgent = true;
	if (log->step != LOG_WAITING)
		return;
	leave_step(log);
	enter_queue(log);
	fill_places(log->job->c);
}

/* The pod of LOG is on its way out: what is left must be fetched soon. */
static void log_leaving(struct captured *log)
{
	if (log->leaving || log->step == LOG_OVER)
		return;
	log->leaving = true;
	log->tries = 0;
	if (log->attempts)
		capture_log_hurry(log->attempts);
	make_urgent(log);
	resume(log);
}

static void on_rest_late(void *data)
{
	log_arrived(data);
}

/*
 * The run of LOG has ended, or soon will have: who reads the log after the job is to find its end there. What does not
 * come within MS is not waited for, so that the rest can be read meanwhile.
 */
static void await_rest(struct captured *log, unsigned ms)
{
	if (log->step != LOG_FOLLOWING || log->first)
		return;
	log->arrived = false;
	loop_timer_free(log->rest);
	log->rest = loop_timer_new(log->job->c->config.loop, ms, 0, on_rest_late, log);
}

/* The job has ended, or (not OVER) not: of that and of its pods the news come on two ways, and this may be first. */
static void log_job_ended(struct captured *log, bool over)
{
	if (over && !log->over && !log->ended)
		await_rest(log, NEWS_MS);
	log->over = over;
}

/* The run has ended. This may come again, each time harder to get: the container restarts, then its pod is gone. */
static void log_ended(struct captured *log, enum capture_end end)
{
	if (log->ended && log->end == end)
		return;
	if (!log->ended)
		await_rest(log, REST_MS);
	log->ended = true;
	log->end = end;
	if (log->attempts)
		capture_log_ended(log->attempts, end);
	make_urgent(log);
	if (log->step != LOG_PAUSED)
		return;
	log->tries = 0;
	if (end == CAPTURE_GONE)
		pause_for(log, 0); /* the timer gives it up, not this call */
	else
		resume(log);
}

/* --- one log: making and ending --- */

static struct captured *log_new(struct job *job, const char *key, const char *prefix,
				const struct run *run, bool first)
{
	struct captured *log = new0(struct captured);

	log->job = job;
	log->first = first;
	log->key = text_copy(key);
	log->prefix = prefix ? text_copy(prefix) : NULL;
	log->pod = text_copy(run->pod->meta.name);
	log->pod_uid = text_copy(run->pod->meta.uid);
	log->container = text_copy(run->container->name);
	log->reruns = run->pod->reruns && run_was_started(run);
	log->restart = run->restart;
	HASH_ADD_KEYPTR(hh, job->logs, log->key, strlen(log->key), log);
	output_log_expect(job->output, key, true);
	job->n_open++;
	enter_queue(log);
	return log;
}

static void log_free(struct captured *log)
{
	if (log->step == LOG_FOLLOWING)
		capture_log_stop(log->attempts);
	if (log->step != LOG_OVER)
		log_over(log);
	HASH_DEL(log->job->logs, log);
	free(log->key);
	free(log->prefix);
	free(log->pod);
	free(log->pod_uid);
	free(log->container);
	free(log);
}

static void log_wait(struct captured *log, loop_fn done, void *arg)
{
	struct waiter *w;

	if (log->arrived) {
		loop_post(log->job->c->config.loop, done, arg);
		return;
	}
	w = new0(struct waiter);
	*w = (struct waiter){done, arg, log->waiters};
	log->waiters = w;
}

/* Does it wait for a place, or for the server to give it? */
static bool is_waiting(const struct captured *log)
{
	return log->step == LOG_WAITING || log->step == LOG_PAUSED ||
	       (log->step == LOG_FOLLOWING && log->refused);
}

/* --- places --- */

static size_t count_places(void)
{
	rlim_t may = process_allow_descriptors();
	rlim_t n = may > OTHER_FDS ? (may - OTHER_FDS) / STREAM_FDS : 0;

	return (size_t)max_of(min_of(n, (rlim_t)STREAMS_MAX), (rlim_t)FIRST_MAX);
}

/* Follow the logs that wait, as far as there are places. */
static void fill_places(struct capture *c)
{
	struct captured *log, *next;

	DL_FOREACH_SAFE(c->queue, log, next) {
		size_t max = log->urgent ? c->places + URGENT_MAX : c->places;

		if (c->stopping || c->n_following >= max)
			return; /* the urgent ones come first, and have more places */
		if (log->first && c->n_first >= FIRST_MAX)
			continue;
		if (log->refused && !log->leaving && c->n_retried >= RETRIED_MAX)
			continue;
		follow_log(log);
	}
}

/* --- jobs --- */

static struct job *need_job(struct capture *c, const struct spec_job *snapshot)
{
	struct job *job = find_job(c, snapshot->uid);

	if (job)
		return job;
	job = new0(struct job);
	job->c = c;
	job->uid = text_copy(snapshot->uid);
	job->id = text_copy(snapshot->id);
	HASH_ADD_KEYPTR(hh, c->jobs, job->uid, strlen(job->uid), job);
	return job;
}

/* Open JOB's output on disk, if it is not open. 0 or a negative errno. */
static int need_output(struct job *job)
{
	struct capture *c = job->c;
	int err;

	if (job->output)
		return 0;
	err = c->config.events.claim(c->config.events.data, job->uid);
	if (err)
		return err;
	job->output = output_job_open(c->config.output, job->id);
	if (!job->output)
		return -errno;
	changed(job); /* from now on its snapshot is written to disk */
	return 0;
}

/* Begin to follow log KEY; FIRST: since somebody reads it. NULL: it has not begun, or can't be had. */
static struct captured *follow_key(struct capture *c, const struct spec_job *snapshot,
				   const char *key, const char *prefix, bool first)
{
	struct captured *log;
	enum capture_end end;
	struct job *job;
	struct run run;
	int err;

	if (!run_find(pod_of(c, snapshot->uid, key), key, &run) || !run_has_begun(&run))
		return NULL;
	if (run_has_ended(&run, &end) && end == CAPTURE_GONE)
		return NULL;
	job = need_job(c, snapshot);
	err = need_output(job);
	if (!err)
		err = output_log_begin(job->output, key, prefix, false);
	if (err) {
		if (err != -EBUSY && err != job->said)
			diag(DIAG_ERROR, "%s: output of %s can't be captured: %s", job->id,
			     run.pod->meta.name, strerror(-err));
		job->said = err;
		return NULL;
	}
	job->said = 0;
	log = log_new(job, key, prefix, &run, first);
	if (run_has_ended(&run, &end))
		log_ended(log, end);
	fill_places(c);
	return log;
}

/* Find out whether the run of LOG has ended meanwhile. */
static void check_run(struct captured *log)
{
	const struct spec_pod_view *pod;
	enum capture_end end;
	struct run run;

	if (log->step == LOG_OVER)
		return;
	pod = pod_of(log->job->c, log->job->uid, log->key);
	if (!pod) {
		log_ended(log, CAPTURE_GONE);
		return;
	}
	if (!run_find(pod, log->key, &run))
		return;
	if (pod->meta.deleted)
		log_leaving(log);
	if (run_has_ended(&run, &end))
		log_ended(log, end);
}

/*
 * What the lines of R's log L begin with in the merged log, printed into BUF: ROLE/K, where ROLE is as in the name of
 * its directory, since the label that it comes from may hold anything. NULL: L is of another container than the
 * replica's own, and so no part of that log.
 */
static const char *prefix_of(const struct spec_replica *r, const struct spec_log *l,
			     char buf[PREFIX_MAX])
{
	if (*l->container)
		return NULL;
	snprintf(buf, PREFIX_MAX, "%.*s/%u ", (int)(strrchr(r->name, '-') - r->name), r->name,
		 r->id);
	return buf;
}

/* Begin with the gaps of L that an earlier mount has counted. */
static void go_on_counting(struct captured *log, const struct spec_log *l)
{
	log->gap = (unsigned)(l->gap - min_of(l->gap, (uint64_t)log->missed));
}

/*
 * LOG, log J of R, is followed from now on. BEFORE is that of the attempt before it; NULL: none is followed. In the
 * merged log what is left of BEFORE comes first, if it comes within REST_MS after the end of its run; a run that goes
 * on beside the next one is not waited for.
 */
static void log_begun(struct captured *log, const struct spec_replica *r, size_t j,
		      struct captured *before)
{
	log->missed = run_missed_before(r, j);
	go_on_counting(log, &r->logs[j]);
	if (before && !before->arrived)
		output_log_expect(before->job->output, before->key, true);
	changed(log->job);
}

/* See which logs that are followed have ended, and, of a captured job, which others have begun. */
static void update_logs(struct capture *c, const struct spec_job *snapshot, bool wanted)
{
	bool over = spec_job_has_ended(snapshot);

	for (size_t i = 0; i < snapshot->n_replicas; i++) {
		const struct spec_replica *r = &snapshot->replicas[i];
		struct captured *before = NULL; /* that of the last attempt so far */
		char buf[PREFIX_MAX];

		for (size_t j = 0; j < r->n_logs; j++) {
			const char *key = r->logs[j].key;
			const char *prefix = prefix_of(r, &r->logs[j], buf);
			struct captured *log = find_log(find_job(c, snapshot->uid), key);

			if (log) {
				check_run(log);
				log_job_ended(log, over);
			} else if (wanted && !r->logs[j].complete) {
				log = follow_key(c, snapshot, key, prefix, false);
				if (log)
					log_begun(log, r, j, prefix ? before : NULL);
			}
			if (log && prefix)
				before = log;
		}
	}
}

void capture_update(struct capture *c, const struct spec_job *snapshot, bool wanted)
{
	struct job *job;
	bool over;

	if (c->stopping)
		return;
	update_logs(c, snapshot, wanted);
	job = find_job(c, snapshot->uid);
	over = spec_job_is_over(snapshot) && job && job->n_open == job->n_refused;
	if (!job || !job->output || over == job->output_ended)
		return;
	job->output_ended = over;
	if (over)
		output_job_end(job->output);
	else
		output_job_resume(job->output);
}

/* Is the output of the run of KEY lost? Nobody has followed it to its end. */
static bool is_out_of_reach(struct capture *c, const char *uid, const char *key)
{
	enum capture_end end;
	struct run run;

	return !run_find(pod_of(c, uid, key), key, &run) ||
	       (run_has_ended(&run, &end) && end == CAPTURE_GONE);
}

void capture_fill(struct capture *c, struct spec_job *snapshot, bool wanted, bool dropped)
{
	const struct job *job = find_job(c, snapshot->uid);

	for (size_t i = 0; i < snapshot->n_replicas; i++) {
		for (size_t j = 0; j < snapshot->replicas[i].n_logs; j++) {
			struct spec_log *l = &snapshot->replicas[i].logs[j];
			const struct captured *log = find_log(job, l->key);

			if (log) {
				l->complete |= log->complete;
				l->waiting = is_waiting(log);
				l->gap = max_of(l->gap,
						(uint64_t)log->missed + log->gap + log->lost);
			} else if (dropped) {
				l->complete = false; /* readers get what the cluster has */
			} else if (wanted && !l->complete &&
				   is_out_of_reach(c, snapshot->uid, l->key)) {
				l->gap = max_of(l->gap, (uint64_t)1);
			}
		}
	}
}

bool capture_has(const struct capture *c, const char *uid)
{
	const struct job *job = find_job(c, uid);

	return job && job->output;
}

bool capture_is_over(const struct capture *c, const char *uid)
{
	const struct job *job = find_job(c, uid);

	return !job || !job->n_open;
}

bool capture_is_quiet(const struct capture *c, const char *uid)
{
	const struct job *job = find_job(c, uid);

	return !job || job->n_open == job->n_refused;
}

void capture_forget(struct capture *c, const char *uid)
{
	struct job *job = find_job(c, uid);
	struct captured *log, *next;

	if (!job)
		return;
	HASH_ITER(hh, job->logs, log, next)
		log_free(log);
	output_job_close(job->output);
	HASH_DEL(c->jobs, job);
	free(job->uid);
	free(job->id);
	free(job);
	fill_places(c);
}

/* --- whoever waits for output --- */

/* Somebody who waits for several logs. */
struct all {
	size_t n; /* logs that are awaited, and one more while they are being counted */
	loop_fn done;
	void *arg;
};

static struct all *all_new(loop_fn done, void *arg)
{
	struct all *all = new0(struct all);

	*all = (struct all){1, done, arg};
	return all;
}

static void one_of_all(void *data)
{
	struct all *all = data;
	loop_fn done = all->done;
	void *arg = all->arg;

	if (--all->n)
		return;
	free(all);
	done(arg);
}

static void wait_for(struct all *all, struct captured *log)
{
	all->n++;
	log_wait(log, one_of_all, all);
}

/* Somebody opens LOG: if the server has refused it, it is asked for again now. */
static void log_open(struct captured *log)
{
	if (log->step != LOG_PAUSED || log->end == CAPTURE_GONE)
		return;
	log->arrived = false;
	resume(log);
}

void capture_open(struct capture *c, const struct spec_job *snapshot, const char *key, loop_fn done,
		  void *arg)
{
	struct all *all = all_new(done, arg);

	for (size_t i = 0; i < snapshot->n_replicas && !c->stopping; i++) {
		const struct spec_replica *r = &snapshot->replicas[i];
		char buf[PREFIX_MAX];

		for (size_t j = 0; j < r->n_logs; j++) {
			const struct spec_log *l = &r->logs[j];
			struct captured *log;

			/* The merged log consists of the replicas' own containers alone. */
			if (key ? !streq(l->key, key) : *l->container)
				continue;
			log = find_log(find_job(c, snapshot->uid), l->key);
			if (!log && !l->complete) {
				log = follow_key(c, snapshot, l->key, prefix_of(r, l, buf), true);
				if (log)
					go_on_counting(log, l);
			}
			if (!log)
				continue;
			log_open(log);
			wait_for(all, log);
		}
	}
	one_of_all(all);
}

void capture_wait(struct capture *c, const char *uid, loop_fn done, void *arg)
{
	struct job *job = find_job(c, uid);
	struct all *all = all_new(done, arg);

	for (struct captured *log = job ? job->logs : NULL; log; log = log->hh.next)
		wait_for(all, log);
	one_of_all(all);
}

/* --- the server, and life --- */

void capture_away(struct capture *c, bool away)
{
	bool back = c->away && !away;

	c->away = away;
	for (struct job *job = back ? c->jobs : NULL; job; job = job->hh.next)
		for (struct captured *log = job->logs; log; log = log->hh.next)
			resume(log);
}

void capture_count(const struct capture *c, struct capture_counts *ret)
{
	*ret = (struct capture_counts){
		.streams = atomic_load(&c->n_streams),
		.waiting = atomic_load(&c->n_waiting),
		.paused = atomic_load(&c->n_paused),
		.retried = atomic_load(&c->n_retried),
	};
}

struct capture *capture_new(const struct capture_config *config)
{
	struct capture *c = new0(struct capture);

	c->config = *config;
	c->places = count_places();
	return c;
}

void capture_stop(struct capture *c)
{
	struct job *job, *next;

	c->stopping = true;
	HASH_ITER(hh, c->jobs, job, next)
		capture_forget(c, job->uid);
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	capture_stop(c);
	free(c);
}
