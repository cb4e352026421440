/* SPDX-License-Identifier: MIT */
/*
 * Makes the snapshot of a job. place.c, state.c, replica.c and cause.c find the values. Only this
 * file writes the members of struct spec_job.
 */
#include "spec/base/mem.h"
#include "spec/job/status.h"
#include "spec/view/control.h"
#include "spec/view/kueue.h"
#include "spec/view/steps.h"

/* --- roles and replicas --- */

/* Return the replica NAME of BEFORE (or NULL). I is the index that it usually has. */
static const struct spec_replica *before_of(const struct spec_job *before, size_t i,
					    const char *name)
{
	if (!before)
		return NULL;
	if (i < before->n_replicas && streq(before->replicas[i].name, name))
		return &before->replicas[i];
	return spec_job_replica(before, name);
}

static void fill_replicas(struct spec_job *job, const struct spec_job_view *view,
			  struct spec_placed_pods pods, const struct spec_standing *standing,
			  const struct spec_job *before)
{
	size_t at = 0;

	for (size_t i = 0; i < view->n_tasks; i++) {
		const struct spec_task_view *task = &view->tasks[i];

		for (unsigned k = 0; k < task->n; k++) {
			size_t place = task->first + k;
			struct spec_replica *r = &job->replicas[place];
			struct spec_placed_pods its = {.v = &pods.v[at]};
			cleanup_free char *name = NULL;

			for (; at < pods.n && pods.v[at].replica == place; at++)
				its.n++;
			r->role = task->role;
			r->id = task->replica + k;
			name = text_print("%s-%u", view->roles[task->role].dir, r->id);
			spec_set(&r->name, name);
			spec_replica_fill(r, its, view, standing, before_of(before, place, name));
		}
	}
}

/* Set each role's request: that of its newest pod, else that in the last snapshot. */
static void fill_requests(struct spec_job *job, struct spec_placed_pods pods,
			  const struct spec_job *before)
{
	cleanup_free const struct spec_pod_view **newest =
		new0_n(const struct spec_pod_view *, job->n_roles);

	for (size_t i = 0; i < pods.n; i++) {
		const struct spec_pod_view **of = &newest[job->replicas[pods.v[i].replica].role];

		if (!*of || pods.v[i].pod->meta.created > (*of)->meta.created)
			*of = pods.v[i].pod;
	}
	for (size_t i = 0; i < job->n_roles; i++) {
		struct spec_role_status *role = &job->roles[i];

		if (newest[i])
			spec_role_set_request(role, &newest[i]->request);
		else if (before && i < before->n_roles && streq(before->roles[i].name, role->name))
			spec_role_set_request(role, before->roles[i].request);
	}
}

static void fill_roles(struct spec_job *job, const struct spec_job_view *view)
{
	for (size_t i = 0; i < job->n_roles; i++) {
		const struct spec_role_view *from = &view->roles[i];
		struct spec_role_status *role = &job->roles[i];

		role->desired = from->desired;
		role->minimum = from->minimum;
		role->first = (unsigned)from->first;
		role->n = (unsigned)from->n;
		spec_set(&role->name, from->name);
	}
}

/* --- retries --- */

/*
 * Count the retries of a job whose object counts failed pods, but not restarts of containers. When
 * the job ends, the controller deletes running pods, and the object counts these as failed, too.
 * From then on, count only failed pods that another pod followed.
 */
static unsigned recount(const struct spec_job_view *view, struct spec_placed_pods pods,
			const struct spec_standing *standing, const struct spec_job *before)
{
	unsigned restarts = 0, failed = 0;

	for (size_t i = 0; i < pods.n; i++) {
		const struct spec_pod_view *pod = pods.v[i].pod;

		failed += spec_pods_is_followed(pods, i) && spec_pod_end(pod) == SPEC_FAILED;
		for (size_t k = 0; pod->main_reruns && k < pod->n_containers; k++)
			restarts += min_of(pod->containers[k].restarts, (unsigned)INT16_MAX);
	}
	if (view->used_up)
		return max_of(view->max_retries, restarts);
	failed = standing->ending ? min_of(failed, view->retries) : view->retries;
	return max_of(failed + restarts, before ? before->retries : 0u);
}

static unsigned most_retries(struct spec_placed_pods pods, const struct spec_job *before)
{
	/* Failed pods may have been deleted since the last snapshot. */
	unsigned ret = before ? before->retries : 0;

	for (size_t i = 0; i < pods.n; i++)
		ret = max_of(ret, pods.v[i].pod->failures);
	return ret;
}

/* --- times --- */

static int64_t started(struct spec_placed_pods pods, const struct spec_job *before)
{
	int64_t ret = before ? before->started : 0;

	for (size_t i = 0; i < pods.n; i++) {
		const struct spec_container_view *c = spec_pod_main(pods.v[i].pod);

		if (c && c->started && (!ret || c->started < ret))
			ret = c->started;
	}
	return ret;
}

static int64_t finished(const struct spec_job *job, const struct spec_standing *standing,
			const struct spec_view_context *ctx)
{
	const struct spec_job *before = ctx->before;
	int64_t ret = 0;

	if (!spec_state_is_final(job->state) || job->suspended)
		return 0;
	if (before && before->state == job->state && before->finished)
		return before->finished;
	if (standing->over)
		return standing->ended;
	for (size_t i = 0; i < job->n_replicas; i++)
		ret = max_of(ret, job->replicas[i].finished);
	return ret ? ret : ctx->now;
}

static bool same_replica(const struct spec_replica *a, const struct spec_replica *b)
{
	return a->state == b->state && a->exit_code == b->exit_code && a->attempt == b->attempt &&
	       streq(a->reason, b->reason) && streq(a->message, b->message) &&
	       streq(a->pod, b->pod);
}

static bool same(const struct spec_job *a, const struct spec_job *b)
{
	if (a->state != b->state || a->n_replicas != b->n_replicas || a->history != b->history ||
	    !streq(a->reason, b->reason) || !streq(a->message, b->message))
		return false;
	for (size_t i = 0; i < a->n_replicas; i++)
		if (!same_replica(&a->replicas[i], &b->replicas[i]))
			return false;
	return true;
}

/*
 * Return the time when JOB last changed. If JOB differs from the last snapshot, this is now. If
 * there is no last snapshot, return the latest time in the job's objects.
 */
static int64_t changed(const struct spec_job *job, const struct spec_job_view *view,
		       struct spec_placed_pods pods, const struct spec_view_context *ctx)
{
	int64_t ret = max_of(job->created, view->changed);

	if (ctx->before)
		return same(job, ctx->before) ? ctx->before->changed : ctx->now;
	for (size_t i = 0; i < pods.n; i++) {
		const struct spec_container_view *c = spec_pod_main(pods.v[i].pod);

		ret = max_of(ret, pods.v[i].pod->meta.created);
		ret = max_of(ret, c ? c->started : 0);
		ret = max_of(ret, c ? c->finished : 0);
	}
	return ret ? ret : ctx->now;
}

/* --- transitions --- */

static enum spec_state state_in(const struct spec_reader *reader, const char *phase)
{
	for (const struct spec_phase *p = reader->phases; p->name; p++)
		if (streq(p->name, phase))
			return p->state;
	return SPEC_UNKNOWN;
}

/*
 * Return the time when phase I of C began. While a phase lasts, Volcano changes the time of its
 * condition with every update. So if a container started earlier, RUNNING began with the first
 * container.
 */
static int64_t began(const struct spec_job *job, const struct spec_transitions *c, size_t i,
		     enum spec_state state)
{
	int64_t first = i > 0 ? c->v[i - 1].time : job->created;

	if (state == SPEC_RUNNING && job->started > first && job->started < c->v[i].time)
		return job->started;
	return c->v[i].time;
}

/* Add the phases in the object that are newer than the last transition. */
static void add_unseen(struct spec_job *job, const struct spec_job_view *view,
		       const struct spec_reader *reader)
{
	const struct spec_transitions *c = &view->conditions;
	struct spec_transitions *t = &job->transitions;
	const struct spec_transition last = t->v[t->n - 1];
	/* index of LAST in C; C's length if C lacks it */
	size_t place = 0;
	/*
	 * If the last transition has no phase, all phases in C are newer, even if their times
	 * (whole seconds) are equal to its time.
	 */
	bool newer = !*last.phase;

	while (place < c->n && !streq(c->v[place].phase, last.phase))
		place++;
	for (size_t i = 0; i < c->n; i++) {
		enum spec_state state = state_in(reader, c->v[i].phase);

		newer |= i != place && (c->v[i].time > last.time || (place < c->n && i > place));
		if (newer && !(i + 1 == c->n && streq(c->v[i].phase, view->phase)))
			spec_transitions_add(t, state, c->v[i].phase, began(job, c, i, state));
	}
}

/*
 * Record when each phase began: the time in the object or, without one, the time when kxfs noticed
 * the phase.
 */
static void fill_transitions(struct spec_job *job, const struct spec_job_view *view,
			     const struct spec_view_context *ctx)
{
	const struct spec_transitions *c = &view->conditions;
	struct spec_transitions *t = &job->transitions;
	bool seen = ctx->before && ctx->before->transitions.n > 0;
	int64_t time = view->changed ? view->changed : ctx->now;

	if (seen)
		spec_transitions_copy(t, &ctx->before->transitions);
	else
		spec_transitions_add(t, SPEC_SUBMITTED, "", job->created);
	add_unseen(job, view, ctx->reader);
	/* The phase is the same as before, so pods have changed the state. */
	if (streq(t->v[t->n - 1].phase, job->phase))
		time = job->finished ? job->finished : ctx->now;
	else if (!seen && c->n && streq(c->v[c->n - 1].phase, job->phase))
		time = began(job, c, c->n - 1, job->state);
	spec_transitions_add(t, job->state, job->phase, time);
}

/* --- probes --- */

/*
 * If the kubelet ended a replica because a probe failed, set the replica's reason and message from
 * the event. The server deletes events after an hour. After that, use the last snapshot.
 */
static void blame_probes(struct spec_job *job, struct spec_placed_pods pods,
			 const struct spec_view_context *ctx)
{
	for (size_t i = 0; i < pods.n; i++) {
		struct spec_replica *r = &job->replicas[pods.v[i].replica];
		const struct spec_replica *before;
		const char *text;

		if (r->state != SPEC_FAILED || !streq(r->pod, pods.v[i].pod->meta.name) ||
		    !streq(r->reason, "Error"))
			continue;
		before = before_of(ctx->before, pods.v[i].replica, r->name);
		text = spec_cause_probe(pods.v[i].pod, ctx);
		if (!text && before && before->attempt == r->attempt &&
		    streq(before->reason, SPEC_REASON_PROBE))
			text = before->message;
		if (text) {
			spec_set(&r->reason, SPEC_REASON_PROBE);
			spec_set(&r->message, text);
		}
	}
}

/*
 * True if JOB has failed, but its pods may explain the failure later, because pods and jobs come
 * from different watches. False while the cache is stale, because kxfs can't know when the watch of
 * pods will continue.
 */
static bool is_unexplained(const struct spec_job *job, const struct spec_job_view *view,
			   const struct spec_standing *standing,
			   const struct spec_view_context *ctx)
{
	bool explained = (*view->reason || *view->message) && !view->vague;

	return job->state == SPEC_FAILED && standing->pods_late && !ctx->stale_since &&
	       !explained && !(standing->phase && standing->phase->gives_up) &&
	       !spec_job_first_failed(job, NULL) && !spec_job_is_over(job);
}

/* Set the last output of the replica that failed first. */
static void fill_last_words(struct spec_job *job, struct spec_placed_pods pods,
			    const struct spec_job *before)
{
	const struct spec_replica *r = spec_job_first_failed(job, NULL);
	const struct spec_replica *was = before ? spec_job_first_failed(before, NULL) : NULL;

	if (job->state != SPEC_FAILED || !r || job->exact)
		return;
	if (was && was->attempt == r->attempt && streq(was->name, r->name) &&
	    streq(was->pod, r->pod))
		spec_set(&job->last_words, before->last_words);
	for (size_t i = 0; i < pods.n; i++) {
		const struct spec_pod_view *pod = pods.v[i].pod;
		const char *container = *r->blamed ? r->blamed : pod->main;

		/*
		 * The container was restarted after the failure. If it was stopped later, the words
		 * of its last run explain nothing.
		 */
		if (r->starts > 0)
			continue;
		for (size_t k = 0; k < pod->n_containers && streq(pod->meta.name, r->pod); k++) {
			const struct spec_container_view *c = &pod->containers[k];

			if (*c->words && streq(c->name, container))
				spec_set(&job->last_words, c->words);
		}
	}
}

/*
 * Set the reason why the job's pods do not run. While Kueue does not let the job run, keep the
 * reason from the last snapshot, because it may be why Kueue evicted the job.
 */
static void fill_obstacle(struct spec_job *job, const struct spec_view_context *ctx)
{
	cleanup_free char *text = spec_status_obstacle(job);

	if (spec_kueue_lets_run(ctx) && (*text || spec_job_any(job, SPEC_RUNNING)))
		spec_set(&job->obstacle, text);
	else if (ctx->before)
		spec_set(&job->obstacle, ctx->before->obstacle);
}

/* --- all steps together --- */

/* Set what Kueue's objects show. If the Workload was already deleted, use the last snapshot. */
static void fill_kueue(struct spec_job *job, const struct spec_view_context *ctx)
{
	const struct spec_workload_view *w = ctx->kueue.workload;
	const struct spec_job *before = ctx->before;
	unsigned known = before ? before->evictions : 0;

	job->evictions = max_of(w ? w->evictions : 0u, known);
	spec_set(&job->cluster_queue, spec_kueue_cluster_queue(ctx));
	if (w) {
		spec_set(&job->flavors, w->flavors);
		spec_set(&job->priority_class, w->priority_class);
		job->priority = w->priority;
	} else if (before) {
		if (!*job->cluster_queue)
			spec_set(&job->cluster_queue, before->cluster_queue);
		spec_set(&job->flavors, before->flavors);
		spec_set(&job->priority_class, before->priority_class);
		job->priority = before->priority;
	}
}

static bool has_quota(const struct spec_view_context *ctx)
{
	const struct spec_workload_view *w = ctx->kueue.workload;

	return w && w->conditions[SPEC_WORKLOAD_RESERVED].is_true;
}

static void fill_head(struct spec_job *job, const struct spec_job_view *view,
		      const struct spec_view_context *ctx)
{
	cleanup_free char *owner = text_copy(view->meta.owner);
	char *space = strchr(owner, ' ');

	if (space)
		*space = '/';
	spec_set(&job->id, ctx->id ? ctx->id : view->meta.name);
	spec_set(&job->uid, view->meta.uid);
	spec_set(&job->app, view->app);
	spec_set(&job->phase, view->phase);
	spec_set(&job->backend, ctx->backend);
	spec_set(&job->namespace, ctx->namespace);
	spec_set(&job->owner, owner);
	spec_set(&job->queue, spec_kueue_queue(view, ctx));
	spec_set(&job->submitter, view->submitter);
	spec_set(&job->submission, view->submission);
	job->own = ctx->own;
	job->mine = ctx->user && *ctx->user && streq(view->user, ctx->user);
	job->history = ctx->history;
	job->stale_since = ctx->stale_since;
	job->has_appdef = view->has_appdef;
	job->retries = view->retries;
	job->max_retries = view->max_retries;
	job->exact = view->exact;
	job->uncounted = view->uncounted;
	job->time_limit = view->time_limit;
	job->created = view->meta.created;
}

static void fill_judgement(struct spec_job *job, struct spec_judgement v)
{
	job->state = v.state;
	job->suspended = v.suspended;
	job->given_up = v.given_up;
	spec_set(&job->reason, v.reason);
	spec_set(&job->message, v.message);
	free(v.message);
}

static struct spec_job *make_snapshot(const struct spec_job_view *view,
				      const struct spec_pod_view *const *pods, size_t n_pods,
				      const struct spec_view_context *ctx)
{
	struct spec_job *job = spec_job_new(view->n_roles, view->n_replicas);
	struct spec_placed_pods placed = spec_place_pods(view, pods, n_pods, ctx->before);
	const struct spec_standing standing = spec_standing_of(view, placed, ctx);
	const struct spec_control_job about = {.view = view, .kueue = &ctx->kueue};
	const char *again;

	fill_head(job, view, ctx);
	fill_kueue(job, ctx);
	fill_roles(job, view);
	if (view->alone)
		job->retries = most_retries(placed, ctx->before);
	else if (ctx->reader->recounted)
		job->retries = recount(view, placed, &standing, ctx->before);
	fill_replicas(job, view, placed, &standing, ctx->before);
	fill_requests(job, placed, ctx->before);
	blame_probes(job, placed, ctx);
	job->started = started(placed, ctx->before);
	if (*job->queue)
		fill_obstacle(job, ctx);
	fill_judgement(job, spec_judge(job, view, placed, &standing, ctx));
	if (ctx->control && !job->history)
		job->actions = spec_control_actions(ctx->control, &about);
	fill_last_words(job, placed, ctx->before);
	job->unexplained = is_unexplained(job, view, &standing, ctx);
	job->impatient = ctx->reader->impatient;
	again = job->state == SPEC_FAILED ? ctx->reader->no_more : ctx->reader->again;
	if (again && view->restarts && view->retries < view->max_retries)
		job->again = again;
	if (!standing.ending || spec_kueue_is_off(ctx))
		job->cause = spec_cause_find(job, view, placed, ctx);
	/* kxfs requests positions only periodically, so a position may be older than the quota. */
	if ((job->state == SPEC_PENDING || job->state == SPEC_SUBMITTED) && !has_quota(ctx))
		job->queue_position = ctx->kueue.position;
	job->finished = finished(job, &standing, ctx);
	job->changed = changed(job, view, placed, ctx);
	fill_transitions(job, view, ctx);
	free((void *)(uintptr_t)placed.v);
	return job;
}

struct spec_job *spec_view_job(const struct spec_job_view *view,
			       const struct spec_pod_view *const *pods, size_t n_pods,
			       const struct spec_view_context *ctx)
{
	struct spec_job_view *grown = roles_grow(view, pods, n_pods, ctx->before);
	struct spec_job *ret = make_snapshot(grown ? grown : view, pods, n_pods, ctx);

	if (grown)
		roles_clear(grown);
	free(grown);
	return ret;
}
