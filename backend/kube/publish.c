/* SPDX-License-Identifier: MIT */
/*
 * A job may change many times in one turn of the loop (each pod of a gang starts), so it is queued and shown once.
 * Making a snapshot is cheap but not free, so one turn publishes for a limited time, and requests of the FUSE thread
 * are served between turns. Nothing is shown until the first lists are in, since a job without its pods would look
 * changed.
 *
 * The ends of jobs and their pods come by two watches. Where a job's end comes first, a pod that was never seen may
 * still come, for SPEC_PATIENCE or as long as the watch of pods is not confirmed. When that time is over, the job is
 * shown again, so that those who wait for its reason learn that none will come.
 *
 * The last words of a job that has failed are those of its pod, or the end of the log of the replica that failed first,
 * once that is on disk. The job is first shown without them, with a mark that they are still to come.
 *
 * Who waits for a job reads its log next. So a job that has ended is marked as long as the rest of its output is
 * expected soon (fetching); that is looked at each second.
 *
 * A job that runs changes with each look at what it uses, and each look is shown at once. On disk only the next mount
 * needs it, so it is written there once a minute, with the next other change, and at the end.
 *
 * A job is called as its object is. Where jobs of several kinds are shown, one whose name a job of another kind has is
 * called NAME~KIND, for as long as it lives; its snapshot on disk tells the next mount of it. Of jobs that are listed
 * together those that have a snapshot choose first, then the older ones.
 *
 * A kind whose first list has not come (it may be forbidden) hides no other. Jobs on disk that may be of this kind are
 * shown as they were, and are settled when the list has come.
 *
 * A job (struct shown) has these states. A job that is back is shown anew, so it chooses its name again.
 *
 *   state     what is so                        what ends it                                         next
 *   UNLISTED  this mount has not shown it; its  its pods are listed                                  SHOWN
 *             pods may not be listed yet        its object is gone                                   GONE
 *   SHOWN     it is in jobs/                    its object is gone (handled in the next turn of the  GONE
 *                                               loop before other jobs, to free its name)
 *                                               the cluster has accepted a DELETE of this mount      LEFT
 *   LEFT      it is not in jobs/, only in       its object is gone                                   GONE
 *             history/ if there is output; the  a list that was requested later has it, not marked   UNLISTED
 *             cluster may still have it         as deleted
 *   GONE      it has no object; its pods may    the object is back (labels, etcd restored)           UNLISTED
 *             run, and its output be written    no pod is left and its output is on disk             (freed)
 */
#include "backend/kube/publish.h"

#include <errno.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/jobs/last_words.h"
#include "backend/kube/requests.h"
#include "spec/base/mem.h"
#include "spec/job/last_words.h"

#define PUBLISH_MS 20
#define LOOKED_MS  60000 /* how often usage is written to disk while nothing else changes */
#define AWAIT_MS   1000
#define LATE_MS	   ((uint64_t)SPEC_PATIENCE / 1000000)

enum shown_state { UNLISTED, SHOWN, LEFT, GONE };

/* Why a job is in the queue. */
enum change { UNCHANGED, USAGE_CHANGED, CHANGED };

/* Why a job that has ended is shown again. */
enum wait {
	WAIT_NOT,
	WAIT_PODS,   /* in a second, since events of its pods may still arrive */
	WAIT_OUTPUT, /* when no more of its output is expected */
};

/* The last words of a job, from the end of the log KEY. */
enum words_state { WORDS_UNREAD, WORDS_READING, WORDS_READ, WORDS_SILENT /* the log is empty */ };

/* Bits of what a job is counted in. */
enum { IN_RUNNING = 1, IN_CAPTURED = 2 };

/* What is known of a job here, as long as the world knows it. */
struct shown {
	struct publish *p;
	char *uid;
	char *id; /* the name of its directory; NULL until it is chosen */
	enum shown_state state;
	enum change change; /* it is in the queue unless UNCHANGED */
	enum wait wait;
	bool unsaved;	  /* its usage has changed since its snapshot was written */
	unsigned counted; /* IN_RUNNING, IN_CAPTURED */
	uint64_t saved;	  /* when its snapshot was written, by loop_now_ms */
	unsigned round;	  /* world_rounds when it left jobs/ */
	uint64_t
		ended; /* when it was first shown as ended, by loop_now_ms; 0 if it has not ended */
	struct {
		enum words_state state;
		char *key;  /* NULL if UNREAD */
		char *text; /* if READ */
		struct last_words *reading;
	} words;
	struct shown *prev, *next; /* in the queue */
	UT_hash_handle hh;	   /* by uid */
};

struct publish {
	struct publish_config config;
	struct shown *all;
	struct shown *queue;
	bool begun;
	bool posted; /* the next turn has been posted to the loop */
	bool stopping;
	int64_t stale_since;
	int64_t stale[WORLD_N_SORTS]; /* the same for the jobs of one sort */
	uint64_t confirmed;	      /* when it was last stale, by loop_now_ms; 0: never */
	struct loop_timer waiting;    /* for jobs that await pods */
	size_t n_running;	      /* jobs of jobs/ that run */
	size_t n_captured;	      /* those of them whose output is captured */
};

static struct shown *need(struct publish *p, const char *uid)
{
	struct shown *s;

	HASH_FIND_STR(p->all, uid, s);
	if (s)
		return s;
	s = new0(struct shown);
	s->p = p;
	s->uid = text_copy(uid);
	HASH_ADD_KEYPTR(hh, p->all, s->uid, strlen(s->uid), s);
	return s;
}

static void unqueue(struct shown *s)
{
	if (s->change)
		DL_DELETE(s->p->queue, s);
	s->change = UNCHANGED;
}

/* True if S is not in jobs/ any more. */
static bool has_left(const struct shown *s)
{
	return s->state == LEFT || s->state == GONE;
}

/* Count S in IN (IN_RUNNING, IN_CAPTURED) and in nothing else. */
static void count(struct shown *s, unsigned in)
{
	struct publish *p = s->p;
	bool any = p->n_running, captured = p->n_captured;

	p->n_running -= (s->counted & IN_RUNNING) != 0;
	p->n_captured -= (s->counted & IN_CAPTURED) != 0;
	p->n_running += (in & IN_RUNNING) != 0;
	p->n_captured += (in & IN_CAPTURED) != 0;
	s->counted = in;
	if (any != (p->n_running > 0) || captured != (p->n_captured > 0))
		p->config.running(p->config.data, p->n_running, p->n_captured);
}

static void shown_free(struct shown *s)
{
	unqueue(s);
	count(s, 0);
	HASH_DEL(s->p->all, s);
	last_words_drop(s->words.reading);
	free(s->words.key);
	free(s->words.text);
	free(s->uid);
	free(s->id);
	free(s);
}

/* --- what a job is called --- */

/*
 * Has a job of another kind than JOB's the name of JOB? Or will one have it: a submission of which no job was seen yet,
 * which is not JOB?
 */
static bool is_taken(const struct publish *p, const struct world_job *job)
{
	const struct publish_config *c = &p->config;
	const char *name = job->view->meta.name;
	const struct spec_job *holder cleanup_job = store_get(c->store, BACKEND_JOBS, name);

	if (holder && !streq(holder->uid, job->uid) && !streq(holder->backend, job->kind->name))
		return true;
	return !folders_of(c->folders, job->view).own && folders_awaits(c->folders, name, "");
}

/* The id of JOB, which is the job of S; it is chosen when it is first needed. */
static const char *need_id(const struct publish *p, struct shown *s, const struct world_job *job)
{
	const struct publish_config *c = &p->config;
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	const char *name = job->view->meta.name;
	const struct spec_job *before cleanup_job = NULL;
	cleanup_free char *other = NULL;

	if (s->id)
		return s->id;
	if (world_kinds(c->world, kinds) > 1) {
		other = text_print("%s~%s", name, job->kind->name);
		before = store_get_uid(c->store, s->uid);
		if ((before && streq(before->id, other)) || is_taken(p, job))
			s->id = take_ptr(other);
	}
	if (!s->id)
		s->id = text_copy(name);
	return s->id;
}

static struct folder folder_of(const struct publish *p, const struct world_job *job)
{
	return folders_of(p->config.folders, job->view);
}

/* --- snapshots --- */

/* Since when JOB has not been confirmed, in ns; 0: it is. */
static int64_t stale_since(const struct publish *p, const struct world_job *job)
{
	return p->stale_since ? p->stale_since : p->stale[job->sort];
}

static bool is_wanted(const struct publish *p, const struct spec_job *snapshot)
{
	return p->config.mode == BACKEND_CAPTURE_ALL ||
	       (p->config.mode == BACKEND_CAPTURE_OWN && snapshot->own);
}

/* May there be pods of JOB, which is the job of S, that were not told yet? BEFORE: its last snapshot, or NULL. */
static bool pods_are_late(const struct publish *p, const struct shown *s,
			  const struct world_job *job, const struct spec_job *before)
{
	if (has_left(s))
		return false;
	if (stale_since(p, job) || world_awaits_pods(p->config.world, job->kind))
		return true;
	if (!s->ended) /* a job that had ended before this mount began was listed with its pods */
		return before || loop_time_ns() - job->since < SPEC_PATIENCE;
	return loop_now_ms() - max_of(s->ended, p->confirmed) < LATE_MS;
}

static void enqueue(struct publish *p, struct shown *s);

static void on_words(void *data, const char *words)
{
	struct shown *s = data;

	s->words.reading = NULL;
	s->words.state = words ? WORDS_READ : WORDS_SILENT;
	s->words.text = words ? text_copy(words) : NULL;
	enqueue(s->p, s);
}

/*
 * Set the last words of JOB, the new snapshot of S, if its pods tell none. CAPTURED: its logs are captured, so a log
 * whose end is not there yet is waited for.
 */
static void find_last_words(struct publish *p, struct shown *s, struct spec_job *job, bool captured)
{
	const struct publish_config *c = &p->config;
	const struct spec_log *log =
		job->state == SPEC_FAILED && !*job->last_words ? spec_last_log(job) : NULL;
	bool begun = capture_has(c->capture, job->uid);
	bool over = begun && capture_is_quiet(c->capture, job->uid);
	cleanup_free char *path = NULL;

	if (!log)
		return;
	if ((log->complete || over) && !streq(log->key, s->words.key)) {
		last_words_drop(s->words.reading);
		text_set(&s->words.key, "%s", log->key);
		free(take_ptr(s->words.text));
		path = text_print("%s/output/%s/logs/%s", c->state_dir, spec_job_key(job),
				  log->key);
		s->words.state = WORDS_READING;
		s->words.reading = last_words_read(c->loop, c->group, NULL, path, on_words, s);
	} else if (streq(log->key, s->words.key) && s->words.state != WORDS_READING) {
		spec_set(&job->last_words, s->words.text ? s->words.text : "");
		job->silent = s->words.state == WORDS_SILENT && log->complete && !log->gap;
	}
	if (s->words.state == WORDS_READING ||
	    (captured && !log->complete && !(begun ? over : log->gap > 0)))
		job->unexplained |=
			!p->stale_since && (!s->ended || loop_now_ms() - s->ended < LATE_MS);
}

/* May the news that runs of the job of S have ended, which the job itself has, still be on its way? */
static bool is_early(const struct shown *s)
{
	return !s->ended || loop_now_ms() - s->ended < LATE_MS;
}

/* Set what SNAPSHOT, the new one of S, says of the rest of its output. CAPTURED is as in find_last_words. */
static void find_rest(struct publish *p, const struct shown *s, struct spec_job *snapshot,
		      bool captured, bool pods_late)
{
	if (has_left(s) || !spec_job_has_ended(snapshot))
		return;
	snapshot->behind = s->ended && loop_now_ms() - s->ended >= AWAIT_MS;
	snapshot->fetching =
		(captured && is_early(s) && pods_late && !spec_job_is_over(snapshot)) ||
		capture_is_fetching(p->config.capture, snapshot, captured, is_early(s));
}

/* Make a snapshot of JOB, which is the job of S, as it is now. BEFORE: its last snapshot, or NULL. */
static struct spec_job *snapshot_of(struct publish *p, struct shown *s, const struct world_job *job,
				    const struct spec_job *before)
{
	const struct publish_config *c = &p->config;
	struct spec_queue_view *queue cleanup(spec_queue_view_unrefp) =
		world_queue(c->world, world_queues_of(job->kind), job->view->queue);
	struct spec_cluster_queue_view *cluster cleanup(spec_cluster_queue_view_unrefp) = NULL;
	struct events_list events cleanup(events_release) = {0};
	const struct folder folder = folder_of(p, job);
	const struct spec_kind *kind = job->kind;
	const struct spec_pod_view **pods cleanup_free = NULL;
	cleanup_free char *forbidden = capture_forbidden(c->capture);
	struct spec_view_context ctx = {
		.reader = kind->reader,
		.control = kind->control,
		.backend = kind->name,
		.id = s->id,
		.namespace = c->namespace,
		.now = loop_time_ns(),
		.stale_since = has_left(s) ? 0 : stale_since(p, job),
		.own = folder.own,
		.user = c->user,
		.history = has_left(s),
		.pods_late = pods_are_late(p, s, job, before),
		.since = job->since,
		.group = world_group(c->world, job),
		.queue = queue,
		.kueue = world_kueue(c->world, job),
		.events_known = world_sight_of(c->world, WORLD_EVENTS) == WORLD_CONFIRMED,
		.unseen = (world_sight_of(c->world, WORLD_EVENTS) == WORLD_FORBIDDEN
				   ? SPEC_UNSEEN_EVENTS
				   : 0) |
			  (world_sight_of(c->world, WORLD_GROUPS) == WORLD_FORBIDDEN
				   ? SPEC_UNSEEN_GROUPS
				   : 0) |
			  (world_hides_pods(c->world, kind) ? SPEC_UNSEEN_PARTS : 0),
		.before = before,
	};
	struct spec_job *snapshot;
	bool captured;
	size_t n;

	if (queue && queue->local)
		cluster = world_cluster_queue(c->world, queue->local->cluster_queue);
	ctx.kueue.cluster_queue = cluster;
	pods = world_pods(job, &n);
	world_events_of(c->world, job->uid, &events);
	ctx.events = events.v;
	ctx.n_events = events.n;
	snapshot = spec_view_job(job->view, pods, n, &ctx);
	if (ctx.own) /* the object may have no annotations, or those of another */
		spec_set(&snapshot->submission, folder.key);
	snapshot->object = spec_text_ref(job->object);
	snapshot->pending = has_left(s) ? 0 : commands_pending(c->commands, job->uid);
	snapshot->ignored = has_left(s) ? 0 : commands_ignored(c->commands, job->uid);
	capture_fill(c->capture, snapshot, is_wanted(p, snapshot), folder.dropped);
	snapshot->no_logs = forbidden != NULL;
	captured = is_wanted(p, snapshot) && !has_left(s) && !folder.dropped;
	find_last_words(p, s, snapshot, captured);
	find_rest(p, s, snapshot, captured, ctx.pods_late);
	return spec_job_pack(snapshot);
}

/* --- the view of the cluster --- */

/*
 * Has the first list not come of JOB's kind, or, with JOB NULL, of any kind of which an unknown job may be? None comes
 * while the user may not list it.
 */
static bool is_unheard(const struct publish *p, const struct spec_job *job)
{
	const struct world *w = p->config.world;
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n = world_kinds(w, kinds);

	for (size_t i = 0; i < n; i++)
		if (!world_has_listed(w, world_sort_of(w, kinds[i])) &&
		    (!job || streq(job->backend, kinds[i]->name)))
			return true;
	return world_is_refused(w, job ? job->backend : NULL);
}

bool publish_is_whole(const struct publish *p)
{
	return !p->stale_since && !is_unheard(p, NULL);
}

/* --- one job --- */

static void on_waited(void *data)
{
	struct publish *p = data;
	bool again = false;

	for (struct shown *s = p->all; s; s = s->hh.next) {
		const struct spec_job *job cleanup_job =
			s->wait == WAIT_OUTPUT ? store_get_uid(p->config.store, s->uid) : NULL;

		if (job && capture_is_fetching(p->config.capture, job, false, is_early(s)))
			again = true;
		else if (s->wait)
			enqueue(p, s);
	}
	if (again)
		loop_timer_set(&p->waiting, AWAIT_MS);
}

/*
 * If the job of S, whose snapshot is now SNAPSHOT, has ended and not all of its pods are known, have it shown again in
 * time.
 */
static void await_pods(struct publish *p, struct shown *s, const struct spec_job *snapshot)
{
	bool ended = spec_job_has_ended(snapshot);
	bool pods;

	if (!ended)
		s->ended = 0;
	else if (!s->ended)
		s->ended = loop_now_ms();
	pods = ended && (!spec_job_is_over(snapshot) || snapshot->unexplained) &&
	       (p->stale_since ||
		loop_now_ms() - max_of(s->ended, p->confirmed) < LATE_MS + AWAIT_MS);
	pods |= snapshot->fetching && !snapshot->behind;
	s->wait = pods ? WAIT_PODS : snapshot->fetching ? WAIT_OUTPUT : WAIT_NOT;
	/*
	 * While the view is stale no time is set for pods: when it is confirmed, all jobs are shown again.
	 */
	if ((snapshot->fetching || (pods && !p->stale_since)) && !loop_timer_is_set(&p->waiting) &&
	    !p->stopping)
		loop_timer_set(&p->waiting, AWAIT_MS);
}

/* Does any replica of JOB run? */
static bool runs(const struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (job->replicas[i].state == SPEC_RUNNING)
			return true;
	return false;
}

/* Have the snapshot of S written; LOOKED: only its usage has changed. */
static void save(struct publish *p, struct shown *s, bool looked)
{
	uint64_t now = loop_now_ms();

	s->unsaved = looked && now - s->saved < LOOKED_MS;
	if (s->unsaved)
		return;
	s->saved = now;
	folders_save(p->config.folders, s->uid, has_left(s));
}

/*
 * No mount captures the rest of the output of JOB: is that to be told of any log? They lack something unless they are
 * complete.
 */
static bool lacks_ends(const struct publish *p, const struct spec_job *job)
{
	if (!is_wanted(p, job) || folders_find(p->config.folders, spec_job_key(job)).dropped)
		return false;
	for (size_t i = 0; i < job->n_replicas; i++)
		for (size_t j = 0; j < job->replicas[i].n_logs; j++)
			if (!job->replicas[i].logs[j].complete &&
			    !job->replicas[i].logs[j].lost_end)
				return true;
	return false;
}

static void lose_ends(struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		for (size_t j = 0; j < job->replicas[i].n_logs; j++)
			if (!job->replicas[i].logs[j].complete)
				spec_log_lose_end(&job->replicas[i].logs[j]);
}

/* The cluster no longer has the job OLD, which an earlier mount has seen: its last snapshot becomes its history. */
static void make_history(struct publish *p, const struct spec_job *old)
{
	struct spec_job *job = spec_job_copy(old);

	if (folders_find(p->config.folders, spec_job_key(old)).unmerged)
		capture_merge_again(p->config.capture, old, true);
	job->history = true;
	job->changed = loop_time_ns();
	if (lacks_ends(p, old))
		lose_ends(job);
	if (!spec_state_is_final(job->state)) {
		job->state = SPEC_CANCELLED;
		job->finished = job->changed;
	}
	/* Who follows one of them waits for no more. */
	for (size_t i = 0; i < job->n_replicas; i++) {
		struct spec_replica *r = &job->replicas[i];

		if (r->finished)
			continue;
		r->finished = job->changed;
		if (!spec_state_is_final(r->state))
			r->state = SPEC_CANCELLED;
	}
	store_put(p->config.store, job);
	folders_save(p->config.folders, old->uid, true);
}

/*
 * JOB, of another uid, has the name of a job that an earlier mount has seen and of which the cluster has told nothing
 * yet: that job is gone.
 */
static void make_room(struct publish *p, const struct spec_job *job)
{
	const struct spec_job *old cleanup_job = store_get(p->config.store, BACKEND_JOBS, job->id);

	if (old && old->stale_since && !streq(old->uid, job->uid) &&
	    streq(old->backend, job->backend) && !world_find(p->config.world, old->uid))
		make_history(p, old);
}

static void show(struct publish *p, struct shown *s, const struct world_job *job)
{
	const struct publish_config *c = &p->config;
	const struct spec_kueue_facts kueue = world_kueue(c->world, job);
	const struct spec_job *before cleanup_job = store_get_uid(c->store, job->uid);
	struct spec_job *snapshot;
	struct folder folder;
	bool looked = s->change == USAGE_CHANGED, captured, kept;

	unqueue(s);
	if (!job->view)
		return;
	if (s->state == UNLISTED)
		s->state = SHOWN;
	(void)need_id(p, s, job);
	folders_bind(c->folders, job->view);
	folder = folder_of(p, job);
	/* A job that has left jobs/ without a byte of output is no longer shown. */
	if (has_left(s) && !folder.output)
		return;
	commands_check(c->commands, job->uid, job->kind->control,
		       &(struct spec_control_job){.view = job->view, .kueue = &kueue});
	snapshot = snapshot_of(p, s, job, before);
	if (!before || before->history)
		make_room(p, snapshot);
	await_pods(p, s, snapshot);
	world_set_waiting(job,
			  snapshot->state == SPEC_PENDING || snapshot->state == SPEC_SUBMITTED);
	captured = !has_left(s) && is_wanted(p, snapshot);
	/* The controllers of jobs that kxfs builds end the pods. */
	capture_update(c->capture, snapshot, captured && !folder.dropped, !job->kind->build);
	count(s, has_left(s) || !runs(snapshot) ? 0 : IN_RUNNING | (captured ? IN_CAPTURED : 0));
	/*
	 * The end of a job is written although nothing of it is captured now, since the next mount may find it gone.
	 */
	kept = has_left(s) || capture_has(c->capture, job->uid) ||
	       (before && before->history != snapshot->history) ||
	       (before && before->state != snapshot->state &&
		(folder.output || spec_job_has_ended(snapshot)));
	store_put(c->store, snapshot);
	if (kept)
		save(p, s, looked);
	commands_shown(c->commands, job->uid, job->view->phase);
}

static void leave(struct publish *p, struct shown *s, const struct world_job *job)
{
	const struct publish_config *c = &p->config;
	const struct folder folder = job->view ? folder_of(p, job) : (struct folder){0};

	if (!has_left(s))
		s->round = world_rounds(c->world, job->sort);
	s->state = job->gone ? GONE : LEFT;
	count(s, 0);
	commands_gone(c->commands, s->uid);
	/* There may be output that an earlier mount has captured. */
	if (folder.output) {
		show(p, s, job);
		return;
	}
	unqueue(s);
	store_remove(c->store, s->uid);
	/* As long as the cluster has the job, it may come back, and be ours. */
	if (folder.key && s->state == GONE)
		folders_remove(c->folders, folder.key, NULL, NULL);
}

/*
 * True if JOB (NULL if the world does not know it), which is the job of S, is not shown before its pods are listed.
 * When another kind begins to be shown, its jobs may be listed first. While the list of a part fails, a job that an
 * earlier mount has shown stays as it was: without its pods its unfetched output would count as lost.
 */
static bool lacks_pods(const struct publish *p, const struct shown *s, const struct world_job *job)
{
	const struct world *w = p->config.world;
	const struct spec_job *before cleanup_job = NULL;

	if (!job || s->state != UNLISTED || !world_awaits_pods(w, job->view ? job->kind : NULL))
		return false;
	before = store_get_uid(p->config.store, s->uid);
	return before || !job->view || !world_hides_pods(w, job->kind);
}

/* Have all parts forget the job of S if nothing of it is left. */
static void forget(struct publish *p, struct shown *s, const struct world_job *job)
{
	const struct publish_config *c = &p->config;

	if (s->change || lacks_pods(p, s, job) || s->words.reading ||
	    (job && (job->n_pods || (job->view && !job->gone))))
		return; /* its last change was not shown yet, or the cluster still has it */
	if (!capture_is_over(c->capture, s->uid))
		return;
	capture_forget(c->capture, s->uid);
	commands_gone(c->commands, s->uid);
	if (job)
		world_forget(job);
	shown_free(s);
}

static void reconcile(struct publish *p, struct shown *s)
{
	const struct world_job *job = world_find(p->config.world, s->uid);

	unqueue(s);
	if (lacks_pods(p, s, job))
		return;
	if (job && job->gone)
		leave(p, s, job);
	else if (job)
		show(p, s, job);
	forget(p, s, job);
}

/* --- turns --- */

static void post_turn(struct publish *p);

static void turn(void *data)
{
	struct publish *p = data;
	uint64_t until = loop_now_ms() + PUBLISH_MS;

	p->posted = false;
	while (p->queue && !p->stopping) {
		reconcile(p, p->queue);
		if (loop_now_ms() >= until)
			break;
	}
	post_turn(p);
}

static void post_turn(struct publish *p)
{
	if (!p->queue || p->posted || !p->begun || p->stopping)
		return;
	p->posted = true;
	loop_post(p->config.loop, turn, p);
}

static void enqueue(struct publish *p, struct shown *s)
{
	if (!s->change)
		DL_APPEND(p->queue, s);
	s->change = CHANGED;
	post_turn(p);
}

/* The job of S leaves jobs/ before any other is shown, so that a new job can have its name. */
static void enqueue_first(struct publish *p, struct shown *s)
{
	unqueue(s);
	DL_PREPEND(p->queue, s);
	s->change = CHANGED;
	post_turn(p);
}

void publish_looked(void *publish, const struct world_job *job)
{
	struct publish *p = publish;
	struct shown *s = need(p, job->uid);
	enum change change = s->change == CHANGED ? CHANGED : USAGE_CHANGED;

	enqueue(p, s);
	s->change = change;
}

static struct shown *find_shown(const struct publish *p, const char *uid)
{
	struct shown *s;

	HASH_FIND_STR(p->all, uid, s);
	return s;
}

bool publish_has_shown(const struct publish *p, const char *uid)
{
	const struct shown *s = find_shown(p, uid);

	return !s || !(s->change || lacks_pods(p, s, world_find(p->config.world, uid)));
}

void publish_again(void *publish, const char *uid)
{
	struct publish *p = publish;
	struct shown *s = find_shown(p, uid);

	if (s)
		enqueue(p, s);
}

void publish_set_stale(void *publish, int64_t since)
{
	struct publish *p = publish;

	p->stale_since = since;
	if (!since)
		p->confirmed = loop_now_ms();
	capture_away(p->config.capture, since);
	for (struct shown *s = p->all; s; s = s->hh.next)
		enqueue(p, s);
}

void publish_set_stale_kind(void *publish, enum world_sort sort, int64_t since)
{
	struct publish *p = publish;

	p->stale[sort] = since;
	if (!since)
		p->confirmed = loop_now_ms();
	for (struct shown *s = p->all; s; s = s->hh.next) {
		const struct world_job *job = world_find(p->config.world, s->uid);

		if (job && job->view && job->sort == sort)
			enqueue(p, s);
	}
}

void publish_now(struct publish *p, const struct world_job *job)
{
	show(p, need(p, job->uid), job);
}

void publish_leave(struct publish *p, const char *uid)
{
	const struct world_job *job = world_find(p->config.world, uid);
	struct shown *s = job ? need(p, uid) : NULL;

	if (!s || has_left(s))
		return;
	leave(p, s, job);
	forget(p, s, job);
}

bool publish_has_untold(void *publish, enum world_sort sort)
{
	const struct publish *p = publish;

	for (const struct shown *s = p->all; s; s = s->hh.next) {
		const struct world_job *job =
			s->state == LEFT ? world_find(p->config.world, s->uid) : NULL;

		if (job && job->view && job->sort == sort && !job->gone && !job->view->meta.deleted)
			return true;
	}
	return false;
}

/* --- the start --- */

static void bind_folder(void *data, const struct world_job *job)
{
	struct publish *p = data;

	if (job->view)
		folders_bind(p->config.folders, job->view);
}

/* Decide what becomes of a job that an earlier mount has launched or captured. */
static void settle_folder(void *data, const struct folder *folder)
{
	struct publish *p = data;
	const struct publish_config *c = &p->config;
	const struct spec_job *job cleanup_job = store_get_uid(c->store, folder->uid);
	const struct world_job *live = world_find(c->world, folder->uid);
	bool is_there = live && live->view;
	struct spec_job *old;

	if ((job && job->history) || (is_there && !world_awaits_pods(c->world, live->kind)))
		return;
	if (is_there || is_unheard(p, job)) {
		/*
		 * What is known of the job is from an earlier mount, and not confirmed until the cluster has told of
		 * it and its pods.
		 */
		if (job && !job->stale_since) {
			old = spec_job_copy(job);
			old->stale_since = loop_time_ns();
			store_put(c->store, old);
		}
		return;
	}
	if (job && folder->output) {
		make_history(p, job);
		return;
	}
	if (job)
		store_remove(c->store, job->uid);
	folders_remove(c->folders, folder->key, NULL, NULL);
}

/* The job OLD left jobs/ in an earlier mount, which may have ended while it still captured the job's output. */
static void end_history(struct publish *p, const struct spec_job *old)
{
	struct spec_job *job;

	if (!lacks_ends(p, old))
		return;
	job = spec_job_copy(old);
	lose_ends(job);
	store_put(p->config.store, job);
	folders_save(p->config.folders, old->uid, false);
}

static void begin_folder(void *data, const struct folder *folder)
{
	struct publish *p = data;
	const struct publish_config *c = &p->config;
	const struct spec_job *job cleanup_job = store_get_uid(c->store, folder->uid);
	const struct world_job *live = world_find(c->world, folder->uid);
	bool is_there = live && live->view;

	if (*folder->file)
		c->launched(c->data, folder->file, folder->id, folder->key);
	if (job && folder->unmerged && (is_there || job->history))
		capture_merge_again(c->capture, job, !is_there);
	if (job && job->history && !is_there && !is_unheard(p, job))
		end_history(p, job);
	settle_folder(p, folder);
}

/* Is JOB, by its snapshot on disk, called as its object is? */
static bool has_name(const struct publish *p, const struct world_job *job)
{
	const struct spec_job *before cleanup_job = store_get_uid(p->config.store, job->uid);

	return before && streq(before->id, job->view->meta.name);
}

/* Compare two jobs that are listed together: which one chooses its id first? */
static int by_claim(const void *a, const void *b, void *data)
{
	const struct publish *p = data;
	const struct world_job *x = *(const struct world_job *const *)a;
	const struct world_job *y = *(const struct world_job *const *)b;
	int diff = !has_name(p, x) - !has_name(p, y);

	if (diff == 0 && x->view->meta.created != y->view->meta.created)
		diff = x->view->meta.created < y->view->meta.created ? -1 : 1;
	return diff ? diff : strcmp(x->uid, y->uid);
}

/* All jobs that have an object, in the order of by_claim. */
struct claims {
	const struct world_job **v;
	size_t n;
};

static void add_claim(void *data, const struct world_job *job)
{
	struct claims *claims = data;

	if (job->view)
		claims->v[claims->n++] = job;
}

void publish_begin(struct publish *p)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	bool several = world_kinds(p->config.world, kinds) > 1;
	struct claims claims = {.v = new0_n(const struct world_job *, HASH_COUNT(p->all))};
	struct shown *s, *next;

	p->begun = true;
	world_each(p->config.world, bind_folder, p);
	folders_each(p->config.folders, begin_folder, p);
	if (several)
		world_each(p->config.world, add_claim, &claims);
	qsort_r(claims.v, claims.n, sizeof(struct world_job *), by_claim, p);
	for (size_t i = 0; i < claims.n; i++)
		reconcile(p, need(p, claims.v[i]->uid));
	free((void *)(uintptr_t)claims.v);
	HASH_ITER(hh, p->all, s, next)
		if (s->change || !several)
			reconcile(p, s);
}

/* Settle what an earlier mount has shown, after a late list. */
static void settle_late(void *data, const struct folder *folder)
{
	struct publish *p = data;
	const struct spec_job *job cleanup_job = store_get_uid(p->config.store, folder->uid);
	const struct world_job *live = world_find(p->config.world, folder->uid);

	if (!job || !job->stale_since)
		return;
	if (live && live->view && folder->unmerged)
		capture_merge_again(p->config.capture, job, false);
	settle_folder(p, folder);
}

void publish_listed(void *publish)
{
	struct publish *p = publish;

	if (!world_has_listed(p->config.world, WORLD_PODS))
		return;
	for (struct shown *s = p->all; s; s = s->hh.next)
		enqueue(p, s);
	folders_each(p->config.folders, settle_late, p);
}

/* --- what the others tell, as their headers say --- */

static void on_changed(void *data, const struct world_job *job)
{
	struct publish *p = data;
	struct shown *s = need(p, job->uid);
	/* The job had lost the labels that are shown, and has them again. */
	bool again = s->state == GONE && !job->gone;

	/*
	 * The job's DELETE was answered with success, and a list that was asked for after that has it as it was before.
	 */
	if (s->state == LEFT && !job->gone && job->view && !job->view->meta.deleted &&
	    job->round > s->round) {
		diag(DIAG_WARNING,
		     "%s: the server has accepted that it is deleted, and still has it",
		     job->view->meta.name);
		again = true;
	}
	if (again) {
		s->state = UNLISTED;
		free(take_ptr(s->id)); /* another job may have its name by now */
	}
	if (job->gone && !has_left(s))
		enqueue_first(p, s);
	else
		enqueue(p, s);
}

static int claim(void *data, const char *uid)
{
	struct publish *p = data;
	const struct world_job *job = world_find(p->config.world, uid);

	return job && job->view ? folders_claim(p->config.folders, job->view) : -EBUSY;
}

static const struct spec_pod_view *pod_of(void *data, const char *uid, const char *pod, size_t n)
{
	const struct publish *p = data;

	return world_pod(p->config.world, uid, pod, n);
}

/* --- life --- */

struct publish *publish_new(const struct publish_config *config)
{
	struct publish *p = new0(struct publish);

	p->config = *config;
	loop_timer_init(&p->waiting, config->loop, on_waited, p);
	world_set_changed(config->world, on_changed, p);
	commands_set_changed(config->commands, publish_again, p);
	folders_set_events(config->folders, &(struct folders_events){publish_again, p});
	capture_set_events(config->capture,
			   &(struct capture_events){claim, pod_of, publish_again, p});
	return p;
}

void publish_stop(struct publish *p)
{
	p->stopping = true;
	loop_timer_stop(&p->waiting);
	for (struct shown *s = p->all; s; s = s->hh.next)
		if (s->unsaved)
			save(p, s, false);
}

void publish_free(struct publish *p)
{
	struct shown *s, *next;

	if (!p)
		return;
	HASH_ITER(hh, p->all, s, next)
		shown_free(s);
	free(p);
}
