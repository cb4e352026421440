/* SPDX-License-Identifier: MIT */
/*
 * To publish a job is to put a new snapshot of it into the store. A job may change many times in
 * one round of the loop, so kxfs queues a changed job, and publishes it once. In each round, kxfs
 * publishes for at most PUBLISH_MS. kxfs publishes no job before the first lists have arrived,
 * since the snapshot of a job without its pods would be wrong.
 *
 * Job and pod events come from different watches. If the end of a job arrives first, kxfs waits
 * SPEC_SETTLE_NS for events of the job's pods, or longer while watches fail. Then kxfs publishes
 * the job again, so that readers of `wait` get its final state even if the reason is unknown.
 *
 * The states of a job (struct publish_shown):
 *
 *   UNLISTED  This mount has not shown the job yet, because its pods may not be listed.
 *   SHOWN     The job is in jobs/.
 *   LEFT      The server has accepted a DELETE, but the cluster may still have the job's object.
 *   GONE      The cluster has no object of the job. It may still have the job's pods, and kxfs may
 *             still write their output.
 *
 *   state     what ends it                                                                 next
 *   UNLISTED  the job's pods are listed                                                    SHOWN
 *             the object is deleted                                                        GONE
 *   SHOWN     the object is deleted                                                        GONE
 *             the server accepts a DELETE from kxfs                                        LEFT
 *   LEFT      the object is deleted                                                        GONE
 *             a list that began after the DELETE has the object, not marked as deleted     UNLISTED
 *   GONE      the object exists again: its labels match again, or etcd was restored        UNLISTED
 *             no pod is left, and all output is on disk                                    (freed)
 *
 * A job in LEFT or GONE is not in jobs/. It is in history/ if it has output. A job that becomes
 * UNLISTED again chooses a new id.
 */
#include "backend/kube/publish.h"

#include <errno.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/jobs/last_words.h"
#include "spec/base/mem.h"
#include "spec/job/status.h"

#define PUBLISH_MS 20
/* if only the usage has changed, kxfs saves a job's snapshot at most once in this time */
#define SAMPLED_MS 60000
#define AWAIT_MS   1000
#define LATE_MS	   ((uint64_t)SPEC_SETTLE_NS / 1000000)

enum shown_state { UNLISTED, SHOWN, LEFT, GONE };

enum change { UNCHANGED, USAGE_CHANGED, CHANGED };

/* Why a job that has ended must be published again. */
enum shown_wait {
	WAIT_NOT,
	WAIT_PODS,   /* again in a second: events of the job's pods may still arrive */
	WAIT_OUTPUT, /* again when no more output is expected */
};

/* Progress of reading the last words of a job (spec/job/status.h) from a log. */
enum words_state { WORDS_UNREAD, WORDS_READING, WORDS_READ, WORDS_SILENT /* the log is empty */ };

/* RUNS_CAPTURED: the job runs, and kxfs captures its output. */
enum shown_running { RUNS_NOT, RUNS, RUNS_CAPTURED };

/* The entry of a job. It exists as long as the world has the job. */
struct publish_shown {
	struct publish *p;
	char *uid;
	char *id; /* name of the job's directory; NULL until a name is chosen */
	enum shown_state state;
	enum change change; /* UNCHANGED if the job is not in the queue */
	enum shown_wait wait;
	bool unsaved;		    /* true if the usage has changed since the last save */
	enum shown_running running; /* RUNS_NOT if the job is not in jobs/ */
	uint64_t saved;		    /* loop_now_ms() when the snapshot was last saved */
	unsigned round;		    /* world_rounds when the job left jobs/ */
	uint64_t ended; /* loop_now_ms() when kxfs first published the job as ended, or 0 */
	struct {
		enum words_state state;
		char *key;  /* NULL if WORDS.STATE is WORDS_UNREAD */
		char *text; /* valid if WORDS.STATE is WORDS_READ */
		struct last_words *reading;
	} words;
	struct publish_shown *prev, *next;
	UT_hash_handle hh;
};

struct publish {
	struct publish_config config;
	struct publish_shown *all;
	struct publish_shown *queue;
	bool begun;
	bool posted;
	bool stopping;
	int64_t stale_since; /* in ns: since when no job is confirmed; 0 if some jobs are */
	int64_t stale[WORLD_N_TYPES]; /* the same for the jobs of each type */
	uint64_t confirmed;	      /* loop_now_ms() when jobs were last confirmed again */
	struct loop_timer waiting;    /* publishes the jobs whose WAIT is not WAIT_NOT */
};

static struct publish_shown *find_shown(const struct publish *p, const char *uid)
{
	struct publish_shown *s;

	HASH_FIND_STR(p->all, uid, s);
	return s;
}

static struct publish_shown *need(struct publish *p, const char *uid)
{
	struct publish_shown *s = find_shown(p, uid);

	if (s)
		return s;
	s = new0(struct publish_shown);
	s->p = p;
	s->uid = text_copy(uid);
	HASH_ADD_KEYPTR(hh, p->all, s->uid, strlen(s->uid), s);
	return s;
}

static void unqueue(struct publish_shown *s)
{
	if (s->change)
		DL_DELETE(s->p->queue, s);
	s->change = UNCHANGED;
}

static bool has_left(const struct publish_shown *s)
{
	return s->state == LEFT || s->state == GONE;
}

bool publish_runs(const struct publish *p, bool captured)
{
	for (const struct publish_shown *s = p->all; s; s = s->hh.next)
		if (s->running >= (captured ? RUNS_CAPTURED : RUNS))
			return true;
	return false;
}

static void shown_free(struct publish_shown *s)
{
	unqueue(s);
	HASH_DEL(s->p->all, s);
	last_words_drop(s->words.reading);
	free(s->words.key);
	free(s->words.text);
	free(s->uid);
	free(s->id);
	free(s);
}

/* --- ids --- */

/*
 * True if JOB can't use its name as its id. Either a job of another kind has this id, or a
 * submission has chosen this name, but no watch has shown the submitted job yet.
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

/*
 * Return the id of JOB, the job of S. Normally this is the name of the object. If a job of another
 * kind already has this id, JOB gets the id NAME~KIND. It keeps this id, because the next mount
 * finds it in the snapshot on disk. If several jobs are listed together, the oldest job chooses its
 * id first.
 */
static const char *need_id(const struct publish *p, struct publish_shown *s,
			   const struct world_job *job)
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

static int64_t stale_since(const struct publish *p, const struct world_job *job)
{
	return p->stale_since ? p->stale_since : p->stale[job->type];
}

static bool is_wanted(const struct publish *p, const struct spec_job *snapshot)
{
	return p->config.mode == BACKEND_CAPTURE_ALL ||
	       (p->config.mode == BACKEND_CAPTURE_OWN && snapshot->own);
}

/* True if events of JOB's pods may still arrive. BEFORE is JOB's last snapshot, or NULL. */
static bool pods_are_late(const struct publish *p, const struct publish_shown *s,
			  const struct world_job *job, const struct spec_job *before)
{
	if (has_left(s))
		return false;
	if (stale_since(p, job) || world_awaits_pods(p->config.world, job->kind))
		return true;
	/*
	 * The end of JOB is not published yet. Events of its pods may still arrive if JOB already
	 * has a snapshot, or if kxfs first saw JOB a short time ago. Otherwise JOB had ended before
	 * this mount, and the first lists had all its pods.
	 */
	if (!s->ended)
		return before || loop_time_ns() - job->since < SPEC_SETTLE_NS;
	return loop_now_ms() - max_of(s->ended, p->confirmed) < LATE_MS;
}

static void enqueue(struct publish *p, struct publish_shown *s);

static void on_words(void *data, const char *words)
{
	struct publish_shown *s = data;

	s->words.reading = NULL;
	s->words.state = words ? WORDS_READ : WORDS_SILENT;
	s->words.text = words ? text_copy(words) : NULL;
	enqueue(s->p, s);
}

/* True if S has not ended, or has ended so recently that events of its pods may still arrive. */
static bool is_early(const struct publish_shown *s)
{
	return !s->ended || loop_now_ms() - s->ended < LATE_MS;
}

/*
 * If the pods of a failed job show no last words, read the last words from the log of the replica
 * that failed first. Wait until this log is complete, or its end is lost. JOB is the new snapshot
 * of S. CAPTURED is true if kxfs captures the logs of JOB. While the last words are expected soon,
 * mark JOB as unexplained.
 */
static void find_last_words(struct publish *p, struct publish_shown *s, struct spec_job *job,
			    bool captured)
{
	const struct publish_config *c = &p->config;
	const struct spec_log *log =
		job->state == SPEC_FAILED && !*job->last_words ? spec_last_log(job) : NULL;
	bool final = log && (log->complete || log->lost_end);
	cleanup_free char *path = NULL;

	if (!log)
		return;
	if (final && !streq(log->key, s->words.key)) {
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
	if (!p->stale_since && is_early(s) &&
	    (s->words.state == WORDS_READING ||
	     (captured && !final && capture_is_fetching(c->capture, job, true, true))))
		job->unexplained = true;
}

/*
 * Mark in SNAPSHOT whether more output is expected soon, because users who wait for the end of a
 * job usually read its log next.
 */
static void find_rest(struct publish *p, const struct publish_shown *s, struct spec_job *snapshot,
		      bool captured, bool pods_late)
{
	if (has_left(s) || !spec_job_has_ended(snapshot))
		return;
	snapshot->behind = s->ended && loop_now_ms() - s->ended >= AWAIT_MS;
	snapshot->fetching =
		(captured && is_early(s) && pods_late && !spec_job_is_over(snapshot)) ||
		capture_is_fetching(p->config.capture, snapshot, captured, is_early(s));
}

static struct spec_job *snapshot_of(struct publish *p, struct publish_shown *s,
				    const struct world_job *job, const struct spec_job *before)
{
	const struct publish_config *c = &p->config;
	struct spec_queue_view *queue cleanup(spec_queue_view_unrefp) =
		world_queue(c->world, world_queues_of(job->kind), job->view->queue);
	struct spec_queue_view *cluster cleanup(spec_queue_view_unrefp) = NULL;
	struct events_list events cleanup(events_release) = {0};
	const struct folder folder = folder_of(p, job);
	const struct spec_kind *kind = job->kind;
	const struct spec_pod_view **pods cleanup_free = NULL;
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
		.events_known = world_watch_status(c->world, WORLD_EVENTS) == WORLD_CONFIRMED,
		.unseen = (world_watch_status(c->world, WORLD_EVENTS) == WORLD_FORBIDDEN
				   ? SPEC_UNSEEN_EVENTS
				   : 0) |
			  (world_watch_status(c->world, WORLD_GROUPS) == WORLD_FORBIDDEN
				   ? SPEC_UNSEEN_GROUPS
				   : 0) |
			  (world_hides_pods(c->world, kind) ? SPEC_UNSEEN_PARTS : 0),
		.before = before,
	};
	struct spec_job *snapshot;
	bool captured;
	size_t n;

	if (queue && queue->kueue)
		cluster = world_queue(c->world, WORLD_CLUSTER_QUEUES, queue->kueue->cluster_queue);
	ctx.kueue.cluster_queue = cluster;
	pods = world_pods(job, &n);
	world_events_of(c->world, job->uid, &events);
	ctx.events = events.v;
	ctx.n_events = events.n;
	snapshot = spec_view_job(job->view, pods, n, &ctx);
	/* use the record's UUID, because the object may have none or that of another submission */
	if (ctx.own)
		spec_set(&snapshot->submission, folder.key);
	snapshot->object = spec_text_ref(job->object);
	snapshot->pending = has_left(s) ? 0 : commands_pending(c->commands, job->uid);
	snapshot->ignored = has_left(s) ? 0 : commands_ignored(c->commands, job->uid);
	capture_fill(c->capture, snapshot, is_wanted(p, snapshot), folder.dropped, folder.unmerged);
	snapshot->no_logs = capture_is_forbidden(c->capture);
	captured = is_wanted(p, snapshot) && !has_left(s) && !folder.dropped;
	find_last_words(p, s, snapshot, captured);
	find_rest(p, s, snapshot, captured, ctx.pods_late);
	return spec_job_pack(snapshot);
}

/* --- lists that have not arrived --- */

/* kxfs then shows the other kinds, and does not change what it has on disk about JOB. */
bool publish_is_unlisted(const struct publish *p, const struct spec_job *job)
{
	const struct world *w = p->config.world;
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n = world_kinds(w, kinds);

	for (size_t i = 0; i < n; i++)
		if (!world_has_listed(w, world_type_of(w, kinds[i])) &&
		    (!job || streq(job->backend, kinds[i]->name)))
			return true;
	return world_is_refused(w, job ? job->backend : NULL);
}

bool publish_is_whole(const struct publish *p)
{
	for (enum world_type i = 0; i < WORLD_N_TYPES; i++)
		if (p->stale[i])
			return false;
	return !p->stale_since && !p->queue && !publish_is_unlisted(p, NULL);
}

static void on_waited(void *data)
{
	struct publish *p = data;
	bool again = false;

	for (struct publish_shown *s = p->all; s; s = s->hh.next) {
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

/* Publish S again later, if S has ended, but more output or events of its pods may arrive. */
static void await_pods(struct publish *p, struct publish_shown *s, const struct spec_job *snapshot)
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
	 * While no job is confirmed, kxfs needs no timer to wait for late pods, because it will
	 * publish all jobs when they are confirmed.
	 */
	if ((snapshot->fetching || (pods && !p->stale_since)) && !loop_timer_is_set(&p->waiting) &&
	    !p->stopping)
		loop_timer_set(&p->waiting, AWAIT_MS);
}

/*
 * Save the snapshot of S. If only the usage has changed (SAMPLED), don't save it more often than
 * once in SAMPLED_MS.
 */
static void save(struct publish *p, struct publish_shown *s, bool sampled)
{
	uint64_t now = loop_now_ms();

	s->unsaved = sampled && now - s->saved < SAMPLED_MS;
	if (s->unsaved)
		return;
	s->saved = now;
	folders_save(p->config.folders, s->uid, has_left(s));
}

static bool has_output(const struct publish *p, const struct spec_job *job)
{
	return is_wanted(p, job) && !folders_find(p->config.folders, spec_job_key(job)).dropped;
}

/* Mark the incomplete logs of JOB as truncated, because no more output will be captured. */
static void lose_ends(struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		for (size_t j = 0; j < job->replicas[i].n_logs; j++)
			if (!job->replicas[i].logs[j].complete)
				spec_log_lose_end(&job->replicas[i].logs[j]);
}

/* Move OLD, a job of an earlier mount that the cluster no longer has, to history/. */
static void make_history(struct publish *p, const struct spec_job *old)
{
	struct spec_job *job = spec_job_copy(old);

	if (folders_find(p->config.folders, spec_job_key(old)).unmerged)
		capture_merge_again(p->config.capture, old, true);
	job->history = true;
	job->changed = loop_time_ns();
	if (has_output(p, old))
		lose_ends(job);
	if (!spec_state_is_final(job->state)) {
		job->state = SPEC_CANCELLED;
		job->finished = job->changed;
	}
	/* End each replica, so that readers of its `follow` get the end of the file. */
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
 * Move a job of an earlier mount to history/ if the new JOB has its id and kind, because the name
 * now belongs to JOB.
 */
static void displace(struct publish *p, const struct spec_job *job)
{
	const struct spec_job *old cleanup_job = store_get(p->config.store, BACKEND_JOBS, job->id);

	if (old && old->stale_since && !streq(old->uid, job->uid) &&
	    streq(old->backend, job->backend) && !world_find(p->config.world, old->uid))
		make_history(p, old);
}

static void show(struct publish *p, struct publish_shown *s, const struct world_job *job)
{
	const struct publish_config *c = &p->config;
	const struct spec_kueue_facts kueue = world_kueue(c->world, job);
	const struct spec_job *before cleanup_job = store_get_uid(c->store, job->uid);
	struct spec_job *snapshot;
	struct folder folder;
	bool sampled = s->change == USAGE_CHANGED, captured, kept;

	unqueue(s);
	if (!job->view)
		return;
	if (s->state == UNLISTED)
		s->state = SHOWN;
	(void)need_id(p, s, job);
	folders_bind(c->folders, job->view);
	folder = folder_of(p, job);
	/* The job has left jobs/ and has no output, so don't show it in history/. */
	if (has_left(s) && !folder.output)
		return;
	commands_check(c->commands, job->uid, job->kind->control,
		       &(struct spec_control_job){.view = job->view, .kueue = &kueue});
	snapshot = snapshot_of(p, s, job, before);
	if (!before || before->history)
		displace(p, snapshot);
	await_pods(p, s, snapshot);
	world_set_waiting(job,
			  snapshot->state == SPEC_PENDING || snapshot->state == SPEC_SUBMITTED);
	captured = !has_left(s) && is_wanted(p, snapshot);
	/*
	 * Pods may outlive their job only if kxfs can't submit jobs of its kind. For all other
	 * kinds, the controller ends the pods with the job.
	 */
	capture_update(c->capture, snapshot, captured && !folder.dropped, !job->kind->build);
	s->running = has_left(s) || !spec_job_any(snapshot, SPEC_RUNNING) ? RUNS_NOT
		     : captured						  ? RUNS_CAPTURED
									  : RUNS;
	/* Save the end even without output: the cluster may lack the job at the next start. */
	kept = has_left(s) || capture_has(c->capture, job->uid) ||
	       (before && before->history != snapshot->history) ||
	       (before && before->state != snapshot->state &&
		(folder.output || spec_job_has_ended(snapshot)));
	store_put(c->store, snapshot);
	if (kept)
		save(p, s, sampled);
	commands_shown(c->commands, job->uid, job->view->phase);
}

/*
 * If kxfs receives the end and the deletion of JOB together, publish the end, so that readers of
 * `wait` and held jobs get the result. If JOB was deleted before its end, do nothing. Readers then
 * report CANCELLED. JOB has no output, so the caller removes it from the store afterwards.
 */
static void show_end(struct publish *p, struct publish_shown *s, const struct world_job *job)
{
	const struct spec_job *before cleanup_job = store_get_uid(p->config.store, s->uid);
	struct spec_job *snapshot;

	if (!job->view || !before || before->history ||
	    (spec_job_has_ended(before) && !before->unexplained))
		return;
	(void)need_id(p, s, job);
	snapshot = snapshot_of(p, s, job, before);
	if (snapshot->state == SPEC_CANCELLED) {
		spec_job_unref(snapshot);
		return;
	}
	/* No more events can arrive, so readers need not wait for an explanation. */
	snapshot->history = snapshot->unexplained = snapshot->fetching = false;
	store_put(p->config.store, snapshot);
}

static void leave(struct publish *p, struct publish_shown *s, const struct world_job *job)
{
	const struct publish_config *c = &p->config;
	const struct folder folder = job->view ? folder_of(p, job) : (struct folder){0};

	if (!has_left(s))
		s->round = world_rounds(c->world, job->type);
	s->state = job->gone ? GONE : LEFT;
	s->running = RUNS_NOT;
	commands_gone(c->commands, s->uid);
	if (folder.output) {
		show(p, s, job);
		return;
	}
	unqueue(s);
	if (s->state == GONE)
		show_end(p, s, job);
	store_remove(c->store, s->uid);
	/*
	 * Keep the record while the cluster has the job: kxfs may show the job again, and then
	 * knows from the record who submitted it.
	 */
	if (folder.key && s->state == GONE)
		folders_remove(c->folders, folder.key, NULL, NULL);
}

/*
 * True if S must not be published before its pods are listed. JOB is the job of S, or NULL. kxfs
 * may lack pods after a kind was added, or while it can't list a part (world.h). If kxfs published
 * a job of an earlier mount without its pods, all unfetched output of the job would count as lost.
 */
static bool lacks_pods(const struct publish *p, const struct publish_shown *s,
		       const struct world_job *job)
{
	const struct world *w = p->config.world;
	const struct spec_job *before cleanup_job = NULL;

	if (!job || s->state != UNLISTED || !world_awaits_pods(w, job->view ? job->kind : NULL))
		return false;
	before = store_get_uid(p->config.store, s->uid);
	return before || !job->view || !world_hides_pods(w, job->kind);
}

/* Make all modules forget S, unless a module still needs S. JOB is the job of S, or NULL. */
static void forget(struct publish *p, struct publish_shown *s, const struct world_job *job)
{
	const struct publish_config *c = &p->config;

	if (s->change || lacks_pods(p, s, job) || s->words.reading ||
	    (job && (job->n_pods || (job->view && !job->gone))))
		return;
	if (!capture_is_over(c->capture, s->uid))
		return;
	capture_forget(c->capture, s->uid);
	commands_gone(c->commands, s->uid);
	if (job)
		world_forget(job);
	shown_free(s);
}

static void reconcile(struct publish *p, struct publish_shown *s)
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

/* --- rounds of publishing --- */

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

static void enqueue(struct publish *p, struct publish_shown *s)
{
	if (!s->change)
		DL_APPEND(p->queue, s);
	s->change = CHANGED;
	post_turn(p);
}

/* Put S at the front of the queue, so that its job leaves jobs/ before a new job needs the id. */
static void enqueue_first(struct publish *p, struct publish_shown *s)
{
	unqueue(s);
	DL_PREPEND(p->queue, s);
	s->change = CHANGED;
	post_turn(p);
}

void publish_sampled(struct publish *p, const struct world_job *job)
{
	struct publish_shown *s = need(p, job->uid);
	enum change change = s->change == CHANGED ? CHANGED : USAGE_CHANGED;

	enqueue(p, s);
	s->change = change;
}

bool publish_has_shown(const struct publish *p, const char *uid)
{
	const struct publish_shown *s = find_shown(p, uid);

	return !s || !(s->change || lacks_pods(p, s, world_find(p->config.world, uid)));
}

void publish_again(void *publish, const char *uid)
{
	struct publish *p = publish;
	struct publish_shown *s = find_shown(p, uid);

	if (s)
		enqueue(p, s);
}

void publish_set_stale(struct publish *p, enum world_type type, int64_t since)
{
	bool all = type == WORLD_N_TYPES;

	*(all ? &p->stale_since : &p->stale[type]) = since;
	if (!since)
		p->confirmed = loop_now_ms();
	if (all)
		capture_away(p->config.capture, since);
	for (struct publish_shown *s = p->all; s; s = s->hh.next) {
		const struct world_job *job = world_find(p->config.world, s->uid);

		if (all || (job && job->view && job->type == type))
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
	struct publish_shown *s = job ? need(p, uid) : NULL;

	if (!s || has_left(s))
		return;
	leave(p, s, job);
	forget(p, s, job);
}

/* --- the start --- */

/*
 * Mark the incomplete logs of OLD as truncated. The mount in which OLD left jobs/ may have ended
 * before it had captured all output.
 */
static void end_history(struct publish *p, const struct spec_job *old)
{
	struct spec_job *job;

	if (spec_job_has_ends(old) || !has_output(p, old))
		return;
	job = spec_job_copy(old);
	lose_ends(job);
	store_put(p->config.store, job);
	folders_save(p->config.folders, old->uid, false);
}

/* Settle a job of an earlier mount: keep it, move it to history/, or remove it. */
static void settle_folder(void *data, const struct folder *folder)
{
	struct publish *p = data;
	const struct publish_config *c = &p->config;
	const struct spec_job *job cleanup_job = store_get_uid(c->store, folder->uid);
	const struct world_job *live = world_find(c->world, folder->uid);
	bool is_there = live && live->view;
	struct spec_job *old;

	if (job && job->history) {
		if (!is_there && !publish_is_unlisted(p, job))
			end_history(p, job);
		return;
	}
	if (is_there && !world_awaits_pods(c->world, live->kind))
		return;
	if (is_there || publish_is_unlisted(p, job)) {
		/* Show the old snapshot as unconfirmed until the job and its pods are listed. */
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

static void begin_folder(void *data, const struct folder *folder)
{
	struct publish *p = data;
	const struct publish_config *c = &p->config;
	const struct spec_job *job cleanup_job = store_get_uid(c->store, folder->uid);
	const struct world_job *live = world_find(c->world, folder->uid);
	bool is_there = live && live->view;

	/* Don't wait for a list of JOB's kind, which may fail for a long time. */
	if (job && folder->unmerged)
		capture_merge_again(c->capture, job,
				    !is_there && (job->history || (spec_job_is_over(job) &&
								   spec_job_has_ends(job))));
	settle_folder(p, folder);
}

/* Sort jobs by age, so that the oldest job chooses its id first. */
static int by_age(const struct publish_shown *x, const struct publish_shown *y)
{
	const struct world_job *a = world_find(x->p->config.world, x->uid);
	const struct world_job *b = world_find(y->p->config.world, y->uid);
	const int64_t diff = (a && a->view ? a->view->meta.created : 0) -
			     (b && b->view ? b->view->meta.created : 0);

	return diff ? (diff < 0 ? -1 : 1) : strcmp(x->uid, y->uid);
}

static void bind(void *data, const struct world_job *job)
{
	const struct publish *p = data;

	if (job->view)
		folders_bind(p->config.folders, job->view);
}

void publish_begin(struct publish *p)
{
	struct publish_shown *s, *next;

	p->begun = true;
	world_each(p->config.world, bind, p);
	folders_each(p->config.folders, begin_folder, p);
	HASH_SORT(p->all, by_age);
	HASH_ITER(hh, p->all, s, next)
		reconcile(p, s);
}

/* Called when another list has arrived after the start. It may decide what becomes of FOLDER's job. */
static void settle_late(void *data, const struct folder *folder)
{
	struct publish *p = data;
	const struct spec_job *job cleanup_job = store_get_uid(p->config.store, folder->uid);

	if (job && (job->stale_since || job->history))
		settle_folder(p, folder);
}

void publish_listed(struct publish *p)
{
	if (!world_has_listed(p->config.world, WORLD_PODS))
		return;
	for (struct publish_shown *s = p->all; s; s = s->hh.next)
		enqueue(p, s);
	folders_each(p->config.folders, settle_late, p);
}

/* --- events of other modules --- */

static void on_changed(void *data, const struct world_job *job)
{
	struct publish *p = data;
	struct publish_shown *s = need(p, job->uid);
	/* true if a deleted job is back: its labels match again, or etcd was restored */
	bool again = s->state == GONE && !job->gone;

	/* A list that began after the DELETE has the job, and not marked as deleted. */
	if (s->state == LEFT && !job->gone && job->view && !job->view->meta.deleted &&
	    job->round > s->round) {
		diag(DIAG_WARNING,
		     "%s: the server accepted the deletion, but the job still exists; "
		     "kxfs shows the job again",
		     job->view->meta.name);
		again = true;
	}
	if (again) {
		s->state = UNLISTED;
		free(take_ptr(s->id)); /* another job may have got this id meanwhile */
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
	for (struct publish_shown *s = p->all; s; s = s->hh.next)
		if (s->unsaved)
			save(p, s, false);
}

void publish_free(struct publish *p)
{
	struct publish_shown *s, *next;

	if (!p)
		return;
	HASH_ITER(hh, p->all, s, next)
		shown_free(s);
	free(p);
}
