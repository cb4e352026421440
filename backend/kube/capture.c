/* SPDX-License-Identifier: MIT */
/*
 * struct capture has a table of jobs; the key is the uid. Each job has a table of the logs that
 * kxfs follows; the key is the log's key (follow.c). A job's snapshot lists all logs of the job.
 * Each log has the output of one run of a container. The job's pods show which runs have begun and
 * which have ended.
 */
#include "backend/kube/capture.h"

#include <errno.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/process.h"
#include "backend/kube/follow.h"
#include "spec/base/mem.h"

#define STREAMS_MAX 10000
/* file descriptors of each followed log: for its file and, with HTTP/1.1, for its connection */
#define STREAM_FDS 2
/* file descriptors for everything else: other connections, files of readers, urgent logs */
#define OTHER_FDS 256

struct captured {
	struct follow *follow;
	UT_hash_handle hh;
};

/* A wait for the output of several logs. When it has ended, DONE(ARG) is called once. */
struct all {
	/* Number of logs whose output has not arrived, plus 1 until kxfs has added all logs. */
	size_t n;
	loop_fn done;
	void *arg;
};

/*
 * A call of capture_open that waits, because kxfs is still removing old output of the job. After
 * the removal, kxfs repeats the call.
 */
struct capture_opening {
	char *key; /* key of the log; NULL for the merged log */
	struct all *all;
	struct capture_opening *next;
};

struct capture_job {
	struct capture *c;
	char *uid;
	char *id;
	char *key;		   /* name of the job's output on disk */
	struct output_job *output; /* NULL until the output was opened */
	struct captured *logs;
	struct capture_opening *openings;
	bool awaits_folder; /* true if old output must be removed before OUTPUT can be opened */
	int reported; /* the last error of following a log, or 0; kxfs logs the same error once */
	bool output_ended; /* true after output_job_end, until output_job_resume */
	UT_hash_handle hh;
};

struct capture {
	struct capture_config config;
	struct capture_events events;
	struct follow_context context;
	struct capture_job *jobs;
	bool forbidden;
};

static struct capture_job *find_job(const struct capture *c, const char *uid)
{
	struct capture_job *job;

	HASH_FIND_STR(c->jobs, uid, job);
	return job;
}

static struct follow *find_log(const struct capture_job *job, const char *key)
{
	struct captured *log = NULL;

	if (job)
		HASH_FIND_STR(job->logs, key, log);
	return log ? log->follow : NULL;
}

static void changed(void *data)
{
	const struct capture_job *job = data;

	job->c->events.changed(job->c->events.data, job->uid);
}

static const struct spec_pod_view *pod_of(struct capture *c, const char *uid, const char *key)
{
	return c->events.pod(c->events.data, uid, key, run_pod_len(key));
}

static void on_forbidden(void *data, const char *text)
{
	struct capture *c = data;

	if (!text && !c->forbidden)
		return;
	c->forbidden = text;
	c->config.forbidden(c->config.data, text);
}

bool capture_is_forbidden(const struct capture *c)
{
	return c->forbidden;
}

/* --- jobs --- */

static struct capture_job *need_job(struct capture *c, const struct spec_job *snapshot)
{
	struct capture_job *job = find_job(c, snapshot->uid);

	if (job)
		return job;
	job = new0(struct capture_job);
	job->c = c;
	job->uid = text_copy(snapshot->uid);
	job->id = text_copy(snapshot->id);
	job->key = text_copy(spec_job_key(snapshot));
	HASH_ADD_KEYPTR(hh, c->jobs, job->uid, strlen(job->uid), job);
	return job;
}

static int need_output(struct capture_job *job)
{
	struct capture *c = job->c;
	int err;

	if (job->output)
		return 0;
	err = c->events.claim(c->events.data, job->uid);
	job->awaits_folder = err == -EINPROGRESS;
	if (err)
		return err;
	job->output = output_job_open(c->config.output, job->key);
	if (!job->output)
		return -errno;
	changed(job); /* publish the job again, because from now on its snapshots are saved */
	return 0;
}

/* Return the prefix of L's lines in the merged log, malloc'ed, or NULL if that log omits L. */
static char *prefix_of(const struct spec_replica *r, const struct spec_log *l)
{
	return *l->container ? NULL : spec_replica_log_prefix(r);
}

/*
 * Start to follow log J of R. FIRST is true if kxfs follows the log only for a reader. Return NULL
 * if the run has not begun, or its log is no longer available, or the output can't be opened.
 */
static struct follow *follow_log(struct capture *c, const struct spec_job *snapshot,
				 const struct spec_replica *r, size_t j, bool first)
{
	const struct spec_log *l = &r->logs[j];
	cleanup_free char *prefix = prefix_of(r, l);
	struct captured *log;
	struct follow_run f = {.key = l->key, .prefix = prefix, .first = first};
	struct capture_job *job;
	struct run run;
	int err;

	if (!run_find(pod_of(c, snapshot->uid, l->key), l->key, &run) || !run_has_begun(&run) ||
	    run_end(&run) == RUN_GONE)
		return NULL;
	job = need_job(c, snapshot);
	err = need_output(job);
	if (!err)
		err = output_log_begin(job->output, l->key, f.prefix, false);
	if (err) {
		if (err != -EBUSY && err != -EINPROGRESS && err != job->reported)
			diag(DIAG_ERROR, "%s: kxfs can't capture the output of %s: %s", job->id,
			     run.pod->meta.name, strerror(-err));
		job->reported = err;
		return NULL;
	}
	job->reported = 0;
	f.job = job->id;
	f.output = job->output;
	f.pod = run.pod->meta.name;
	f.uid = run.pod->meta.uid;
	f.container = run.container->name;
	f.restart = run.restart;
	f.reruns = run.pod->reruns && run_was_started(&run);
	f.gaps = (unsigned)l->gap;
	f.missed = first ? 0 : run_missed_before(r, j);
	f.lost_end = l->lost_end;
	f.data = job;
	log = new0(struct captured);
	log->follow = follow_new(&c->context, &f);
	HASH_ADD_KEYPTR(hh, job->logs, follow_key(log->follow), strlen(l->key), log);
	follow_ended(log->follow, run_end(&run));
	follow_fill(&c->context);
	changed(job);
	return log->follow;
}

/* Report the state of F's run and pod to F, which is a log of job UID. */
static void check_run(struct capture *c, const char *uid, struct follow *f)
{
	const struct spec_pod_view *pod = pod_of(c, uid, follow_key(f));
	struct run run;

	if (!pod) {
		follow_ended(f, RUN_GONE);
	} else if (run_find(pod, follow_key(f), &run)) {
		if (pod->meta.deleted)
			follow_leaving(f);
		follow_ended(f, run_end(&run));
	}
}

/*
 * Notify the followed logs whose run or job has ended. Start to follow the logs of runs that have
 * begun. If kxfs does not capture the job (WANTED is false), follow new logs only while a reader
 * has the merged log open. Otherwise one `grep -r` would make kxfs follow all jobs until they end.
 */
static void update_logs(struct capture *c, const struct spec_job *snapshot, bool wanted,
			bool outlived)
{
	bool over = spec_job_has_ended(snapshot);
	bool is_read = !wanted && !snapshot->history &&
		       output_is_read(c->config.output, spec_job_key(snapshot));

	for (size_t i = 0; i < snapshot->n_replicas; i++) {
		const struct spec_replica *r = &snapshot->replicas[i];
		/* the last followed log before log J, among those of the replica's own container */
		struct follow *before = NULL;

		for (size_t j = 0; j < r->n_logs; j++) {
			const struct spec_log *l = &r->logs[j];
			struct follow *f = find_log(find_job(c, snapshot->uid), l->key);

			if (f) {
				check_run(c, snapshot->uid, f);
				follow_job_ended(f, over, outlived);
			} else if (!l->complete && (wanted || (is_read && !*l->container))) {
				f = follow_log(c, snapshot, r, j, !wanted);
				if (f && before && !*l->container)
					follow_precedes(before);
			}
			if (f && !*l->container)
				before = f;
		}
	}
}

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

/*
 * Open the logs of OPENINGS for their readers. If SNAPSHOT is NULL, only call the readers back.
 * Free OPENINGS.
 */
static void end_openings(struct capture *c, struct capture_opening *openings,
			 const struct spec_job *snapshot)
{
	struct capture_opening *o, *next;

	LL_FOREACH_SAFE(openings, o, next) {
		if (snapshot)
			capture_open(c, snapshot, o->key, one_of_all, o->all);
		else
			one_of_all(o->all);
		free(o->key);
		free(o);
	}
}

void capture_update(struct capture *c, const struct spec_job *snapshot, bool wanted, bool outlived)
{
	struct capture_job *job;
	bool over;

	if (c->context.stopping)
		return;
	update_logs(c, snapshot, wanted, outlived);
	if (wanted && c->config.archives)
		(void)need_output(need_job(c, snapshot));
	job = find_job(c, snapshot->uid);
	if (job)
		end_openings(c, take_ptr(job->openings), snapshot);
	over = spec_job_is_over(snapshot) && capture_is_quiet(c, snapshot->uid);
	if (!job || !job->output || over == job->output_ended)
		return;
	job->output_ended = over;
	if (over)
		output_job_end(job->output);
	else
		output_job_resume(job->output);
}

/* Return the capture_job of SNAPSHOT, and open the output that an earlier mount has left. */
static struct capture_job *need_earlier(struct capture *c, const struct spec_job *snapshot)
{
	struct capture_job *job = need_job(c, snapshot);

	if (!job->output)
		job->output = output_job_open(c->config.output, job->key);
	return job;
}

/*
 * Add the lines of R's log L that are on disk to the merged log, unless it already has them. Call
 * this when no more output of L will arrive.
 */
static void merge_rest(struct capture_job *job, const struct spec_replica *r,
		       const struct spec_log *l)
{
	cleanup_free char *prefix = prefix_of(r, l);

	if (job->output && output_log_begin(job->output, l->key, prefix, false) == 0)
		output_log_end(job->output, l->key, NULL, NULL);
}

void capture_merge_again(struct capture *c, const struct spec_job *snapshot, bool gone)
{
	struct capture_job *job = need_earlier(c, snapshot);

	for (size_t i = 0; i < snapshot->n_replicas; i++) {
		const struct spec_replica *r = &snapshot->replicas[i];

		for (size_t j = 0; j < r->n_logs; j++)
			if (gone || r->logs[j].complete || r->logs[j].lost_end)
				merge_rest(job, r, &r->logs[j]);
	}
	if (gone && job->output)
		output_job_end(job->output);
	if (gone)
		capture_forget(c, snapshot->uid);
}

static enum run_end end_of(struct capture *c, const char *uid, const char *key)
{
	struct run run;

	return run_find(pod_of(c, uid, key), key, &run) ? run_end(&run) : RUN_GONE;
}

void capture_fill(struct capture *c, struct spec_job *snapshot, bool wanted, bool dropped,
		  bool unmerged)
{
	const struct capture_job *job = find_job(c, snapshot->uid);
	bool ended = spec_job_has_ended(snapshot);

	for (size_t i = 0; i < snapshot->n_replicas; i++) {
		for (size_t j = 0; j < snapshot->replicas[i].n_logs; j++) {
			struct spec_log *l = &snapshot->replicas[i].logs[j];
			const struct follow *f = find_log(job, l->key);

			if (f) {
				const struct follow_state state = follow_state(f);

				l->complete |= state.complete;
				l->waiting = state.waiting ||
					     (!state.over &&
					      (ended || end_of(c, snapshot->uid, l->key)));
				l->disk = -state.disk;
				l->gap = max_of(l->gap, (uint64_t)state.gaps);
				l->lost_end = state.lost_end;
				snapshot->outlived |= ended && state.outlived;
			} else if (dropped) {
				/*
				 * kxfs has removed the output from the disk, so the known gaps no
				 * longer matter. The cluster may still have the whole log.
				 */
				l->complete = false;
				l->gap = 0;
			} else if (wanted && !l->complete &&
				   end_of(c, snapshot->uid, l->key) == RUN_GONE) {
				if (unmerged && !l->lost_end)
					merge_rest(need_earlier(c, snapshot),
						   &snapshot->replicas[i], l);
				spec_log_lose_end(l);
			}
		}
	}
}

bool capture_has(const struct capture *c, const char *uid)
{
	const struct capture_job *job = find_job(c, uid);

	return job && job->output;
}

/*
 * True if all followed logs of UID have ended. If REFUSED is true, a log that is paused after a
 * refusal counts as ended.
 */
static bool are_over(const struct capture *c, const char *uid, bool refused)
{
	const struct capture_job *job = find_job(c, uid);

	for (const struct captured *log = job ? job->logs : NULL; log; log = log->hh.next) {
		const struct follow_state state = follow_state(log->follow);

		if (!state.over && !(refused && state.refused))
			return false;
	}
	return true;
}

bool capture_is_over(const struct capture *c, const char *uid)
{
	return are_over(c, uid, false);
}

bool capture_is_quiet(const struct capture *c, const char *uid)
{
	return are_over(c, uid, true);
}

bool capture_is_fetching(struct capture *c, const struct spec_job *snapshot, bool wanted,
			 bool early)
{
	const struct capture_job *job = find_job(c, snapshot->uid);

	for (size_t i = 0; i < snapshot->n_replicas; i++) {
		for (size_t j = 0; j < snapshot->replicas[i].n_logs; j++) {
			const struct spec_log *l = &snapshot->replicas[i].logs[j];
			const struct follow *f = find_log(job, l->key);

			if (f ? follow_is_fetching(f, early)
			      : wanted && early && !l->complete && !l->lost_end)
				return true;
		}
	}
	return false;
}

void capture_forget(struct capture *c, const char *uid)
{
	struct capture_job *job = find_job(c, uid);
	struct capture_opening *openings;
	struct captured *log, *next;

	if (!job)
		return;
	openings = take_ptr(job->openings);
	HASH_ITER(hh, job->logs, log, next) {
		HASH_DEL(job->logs, log);
		follow_free(log->follow);
		free(log);
	}
	output_job_close(job->output);
	HASH_DEL(c->jobs, job);
	free(job->uid);
	free(job->id);
	free(job->key);
	free(job);
	follow_fill(&c->context);
	end_openings(c, openings, NULL);
}

/* --- readers --- */

static void wait_for(struct all *all, struct follow *f)
{
	all->n++;
	follow_wait(f, one_of_all, all);
}

void capture_open(struct capture *c, const struct spec_job *snapshot, const char *key, loop_fn done,
		  void *arg)
{
	struct all *all = all_new(done, arg);
	struct capture_job *job = find_job(c, snapshot->uid);
	struct capture_opening *o;

	if (job)
		job->awaits_folder = false;
	for (size_t i = 0; i < snapshot->n_replicas && !c->context.stopping; i++) {
		const struct spec_replica *r = &snapshot->replicas[i];

		for (size_t j = 0; j < r->n_logs; j++) {
			const struct spec_log *l = &r->logs[j];
			struct follow *f;

			/* A log of a replica's own container has the CONTAINER "". */
			if (key ? !streq(l->key, key) : *l->container)
				continue;
			f = find_log(find_job(c, snapshot->uid), l->key);
			if (!f && !l->complete)
				f = follow_log(c, snapshot, r, j, true);
			if (!f)
				continue;
			follow_resume(f, true);
			wait_for(all, f);
		}
	}
	job = find_job(c, snapshot->uid);
	if (job && job->awaits_folder) {
		o = new0(struct capture_opening);
		*o = (struct capture_opening){key ? text_copy(key) : NULL, all, NULL};
		LL_APPEND(job->openings, o);
		return;
	}
	one_of_all(all);
}

void capture_wait(struct capture *c, const char *uid, loop_fn done, void *arg)
{
	struct capture_job *job = find_job(c, uid);
	struct all *all = all_new(done, arg);

	for (struct captured *log = job ? job->logs : NULL; log; log = log->hh.next)
		wait_for(all, log->follow);
	one_of_all(all);
}

void capture_away(struct capture *c, bool away)
{
	bool back = c->context.away && !away;

	c->context.away = away;
	for (struct capture_job *job = back ? c->jobs : NULL; job; job = job->hh.next)
		for (struct captured *log = job->logs; log; log = log->hh.next)
			follow_resume(log->follow, false);
}

void capture_count(const struct capture *c, struct capture_counts *ret)
{
	const struct slots *slots = &c->context.slots;

	*ret = (struct capture_counts){
		.streams = slots->n[SLOT_TAKEN],
		.waiting = slots->n[SLOT_QUEUED],
	};
}

struct capture *capture_new(const struct capture_config *config)
{
	struct capture *c = new0(struct capture);
	rlim_t may = process_allow_descriptors();
	rlim_t n = may > OTHER_FDS ? (may - OTHER_FDS) / STREAM_FDS : 0;

	c->config = *config;
	c->context = (struct follow_context){
		.loop = config->loop,
		.http = config->http,
		.namespace = config->namespace,
		.slots.max = (size_t)max_of(min_of(n, (rlim_t)STREAMS_MAX), (rlim_t)SLOTS_FIRST),
		.changed = changed,
		.forbidden = on_forbidden,
		.data = c,
	};
	return c;
}

void capture_set_events(struct capture *c, const struct capture_events *events)
{
	c->events = *events;
}

void capture_stop(struct capture *c)
{
	struct capture_job *job, *next;

	c->context.stopping = true;
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
