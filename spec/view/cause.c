/* SPDX-License-Identifier: MIT */
/*
 * Finds why a job waits if neither its object nor its pods show the reason. The sources are events,
 * the pod group and the queue. spec_cause_find returns the first cause that it finds. If the user
 * may not read the objects that would show the cause, the text names them.
 */
#include "spec/view/steps.h"

#include "spec/base/mem.h"
#include "spec/base/value.h"
#include "spec/base/words.h"
#include "spec/view/reader.h"
#include "spec/view/watched.h"

/*
 * When Volcano gives up a job, the last event about a failed creation of a pod is at most this old
 * (ns). Less than two minutes were measured.
 */
#define GIVING_UP INT64_C(300000000000)

#define WAITS_FOR_ROOM "It starts automatically when capacity becomes available."

/* `status` shows REASON, and `why` shows ADVICE after the cause. */
struct cause_class {
	const char *reason;
	const char *advice;
};

static const struct cause_class no_controller = {
	"NoController", "If this lasts, ask the cluster's administrator whether the controller of "
			"these jobs is down."};
static const struct cause_class no_scheduler = {
	"NoScheduler", "If this lasts, ask the cluster's administrator whether the scheduler of "
		       "these jobs is down."};
static const struct cause_class failed_create = {"FailedCreate", ""};
static const struct cause_class quota_exceeded = {
	"QuotaExceeded", "It continues automatically when quota becomes available."};
static const struct cause_class no_service_account = {
	"NoServiceAccount", "Create this service account, or submit the job with another "
			    "service_account."};
static const struct cause_class no_priority_class = {
	"NoPriorityClass", "Create this priority class, or submit the job with another "
			   "priority_class."};
static const struct cause_class failed_mount = {"FailedMount",
						"The replica starts automatically when this "
						"problem is fixed."};
static const struct cause_class node_lost = {
	SPEC_REASON_NODE_LOST, "Until the node returns or is removed from the cluster, kxfs "
			       "can't know whether the replica still runs."};
static const struct cause_class gang_short = {"GangShort", WAITS_FOR_ROOM};
static const struct cause_class cluster_full = {"ClusterFull", WAITS_FOR_ROOM};
static const struct cause_class queue_full = {"QueueFull", WAITS_FOR_ROOM};
static const struct cause_class queue_too_small = {"QueueTooSmall",
						   "Submit the job to another queue, or request "
						   "less."};
static const struct cause_class queue_closed = {
	"QueueClosed",
	"Submit the job to another queue, or ask the cluster's administrator to open this queue."};
static const struct cause_class unschedulable = {"Unschedulable", ""};
static const struct cause_class missing_right = {"MissingRight", ""};

/* How long (ns) a pod with a node may take to start, for example to pull its image. */
#define STARTING INT64_C(60000000000)

#define UNSEEN(what)                                                                               \
	"This user may not list and watch " what                                                   \
	", which would show the reason: ask the cluster's administrator for that right."

/* The index is the set of bits in spec_view_context.unseen. */
static const char *const unseen_advice[] = {
	[0] = "",
	[SPEC_UNSEEN_EVENTS] = UNSEEN("events"),
	[SPEC_UNSEEN_GROUPS] = UNSEEN("podgroups"),
	[SPEC_UNSEEN_EVENTS | SPEC_UNSEEN_GROUPS] = UNSEEN("events and podgroups"),
};

struct facts {
	const struct spec_job *job;
	const struct spec_job_view *view;
	struct spec_placed_pods pods;
	const struct spec_view_context *ctx;
};

static struct spec_cause none(void)
{
	return (struct spec_cause){.reason = "", .text = spec_empty(), .advice = ""};
}

static struct spec_cause made(const struct cause_class *class, const char *text)
{
	struct spec_cause ret = {.reason = class->reason, .advice = class->advice};

	spec_read_copy(&ret.text, text, READ_MAX_MESSAGE);
	return ret;
}

printf_like(2, 3) static struct spec_cause
	make(const struct cause_class *class, const char *fmt, ...)
{
	cleanup_free char *text = text_of_args(fmt);

	return made(class, text);
}

/* --- events --- */

/*
 * Return the newest event with REASON about the object UID, or NULL. Ignore events that healthy
 * jobs have, too (spec_event_view_is_noise).
 */
static const struct spec_event_view *newest(const struct facts *f, const char *uid,
					    const char *reason)
{
	const struct spec_event_view *ret = NULL;

	for (size_t i = 0; i < f->ctx->n_events; i++) {
		const struct spec_event_view *e = f->ctx->events[i];

		if (streq(e->about, uid) && streq(e->reason, reason) &&
		    !spec_event_view_is_noise(e) && (!ret || e->last >= ret->last))
			ret = e;
	}
	return ret;
}

static const struct spec_event_view *newest_refusal(const struct facts *f)
{
	const struct spec_event_view *ret = NULL;

	for (size_t i = 0; i < f->ctx->n_events; i++) {
		const struct spec_event_view *e = f->ctx->events[i];

		if (spec_event_view_is_refusal(e) && (!ret || e->last >= ret->last))
			ret = e;
	}
	return ret;
}

static bool any_about(const struct facts *f, const char *uid)
{
	for (size_t i = 0; i < f->ctx->n_events; i++)
		if (streq(f->ctx->events[i]->about, uid))
			return true;
	return false;
}

/* Return the part of TEXT after KEY, or TEXT if it lacks KEY. */
static const char *behind(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? p + strlen(key) : text;
}

/* Return the word after KEY in TEXT, without quotes, and set *N to its length; NULL if none. */
static const char *word_behind(const char *text, const char *key, size_t *n)
{
	const char *p = strstr(text, key);

	if (!p)
		return NULL;
	p += strlen(key);
	p += *p == '"';
	*n = strcspn(p, "\", \n");
	return *n > 0 ? p : NULL;
}

static bool has_waited(const struct facts *f, int64_t since)
{
	return f->ctx->now - since >= SPEC_SETTLE_NS;
}

/* --- pods that can't be made --- */

/*
 * Return a malloc'ed array with an element for each replica: true if the replica has a pod in the
 * cluster now. spec_replica.pod does not show this, since that pod may be deleted.
 */
static bool *made_replicas(const struct facts *f)
{
	bool *ret = new0_n(bool, f->job->n_replicas);

	for (size_t i = 0; i < f->pods.n; i++)
		if (!f->pods.v[i].pod->gone)
			ret[f->pods.v[i].replica] = true;
	return ret;
}

static bool any_unmade(const struct facts *f)
{
	bool *is_made cleanup_free = made_replicas(f);

	for (size_t i = 0; i < f->job->n_replicas; i++)
		if (!is_made[i] && f->job->replicas[i].state == SPEC_PENDING)
			return true;
	return false;
}

#define CANT "its pods can't be created: "

/* Return the cause. TEXT is the server's message about a pod that it refused. */
static struct spec_cause refused(const struct facts *f, const char *text)
{
	const char *word, *more;
	size_t n;

	word = word_behind(text, "exceeded quota: ", &n);
	if (word) {
		more = word[n] == ',' ? word + n + 1 : "";
		more += strspn(more, " ");
		return make(&quota_exceeded, CANT "quota %.*s is exhausted%s%s%s", (int)n, word,
			    *more ? " (" : "", more, *more ? ")" : "");
	}
	word = word_behind(text, "serviceaccount ", &n);
	if (word && strstr(text, "not found"))
		return make(&no_service_account,
			    CANT "there is no service account %.*s in namespace %s", (int)n, word,
			    f->ctx->namespace);
	word = word_behind(text, "no PriorityClass with name ", &n);
	if (word)
		return make(&no_priority_class, CANT "there is no priority class %.*s", (int)n,
			    word);
	return make(&failed_create, CANT "%s", behind(text, "forbidden: "));
}

/*
 * Return the cause from E, an event about a failed creation of pods. Kubernetes' controllers quote
 * the server's message after PLAIN. Volcano's controller dumps the whole reply.
 */
static struct spec_cause refused_by(const struct facts *f, const struct spec_event_view *e)
{
	static const char plain[] = "Error creating: ";
	/* client-go adds this prefix if the messages of an event series differ. */
	const char *message = behind(e->message, "(combined from similar events): ");
	cleanup_free char *text = text_copy(message);

	if (strncmp(text, plain, strlen(plain)) == 0)
		return refused(f, text + strlen(plain));
	return spec_words_undump(text) && *text ? refused(f, text) : none();
}

static struct spec_cause find_unmade(const struct facts *f)
{
	const struct spec_event_view *e = newest_refusal(f);
	struct spec_cause ret;

	/* MCAD creates no events. Its object quotes the server's message. */
	if (streq(f->view->reason, "ItemCreationFailure"))
		return refused(f, behind(f->view->message, "creation failure: "));
	if (!e || spec_event_view_is_old(e, f->view->changed) || !any_unmade(f))
		return none();
	/* Later pods show that the server no longer refuses them. */
	for (size_t i = 0; i < f->pods.n; i++)
		if (f->pods.v[i].pod->meta.created > e->last)
			return none();
	ret = refused_by(f, e);
	for (const struct spec_phase *p = f->ctx->reader->phases; p->name; p++)
		if (p->gives_up && ret.reason == quota_exceeded.reason)
			ret.advice = "The job continues automatically if quota becomes available "
				     "soon; Volcano gives up after some minutes.";
	return ret;
}

static const char *advice_after(const struct spec_cause *cause)
{
	static const struct {
		const struct cause_class *class;
		const char *advice;
	} table[] = {
		{&quota_exceeded, " Submit the job again when quota is available."},
		{&no_service_account, " Create this service account and submit the job again, or "
				      "submit it with another service_account."},
		{&no_priority_class, " Create this priority class and submit the job again, or "
				     "submit it with another priority_class."},
	};

	for (size_t i = 0; i < array_size(table); i++)
		if (streq(cause->reason, table[i].class->reason))
			return table[i].advice;
	return "";
}

struct spec_cause spec_cause_given_up(const struct spec_job *job, const struct spec_job_view *view,
				      struct spec_placed_pods pods,
				      const struct spec_view_context *ctx)
{
	const struct facts f = {job, view, pods, ctx};
	const struct spec_event_view *e = newest_refusal(&f);
	cleanup_free char *text = NULL;
	struct spec_cause ret = none();
	unsigned n = 0;

	if (!e || spec_event_view_is_old(e, view->changed - GIVING_UP))
		return ret;
	ret = refused_by(&f, e);
	if (!*ret.reason)
		return ret;
	/* Count the attempts to create the pods. */
	for (size_t i = 0; i < ctx->n_events; i++)
		if (spec_event_view_is_refusal(ctx->events[i]))
			n += min_of(ctx->events[i]->count, 1000000u);
	text = text_print("Volcano gave up after %u tr%s: %s.%s", n, n == 1 ? "y" : "ies",
			  behind(ret.text, CANT), advice_after(&ret));
	spec_unset(&ret.text);
	spec_read_copy(&ret.text, text, READ_MAX_MESSAGE);
	return ret;
}

/* --- probes --- */

const char *spec_cause_probe(const struct spec_pod_view *pod, const struct spec_view_context *ctx)
{
	const struct facts f = {.ctx = ctx};
	const struct spec_event_view *killing = newest(&f, pod->meta.uid, SPEC_EVENT_KILLING);
	const struct spec_event_view *probe = newest(&f, pod->meta.uid, SPEC_EVENT_UNHEALTHY);
	const struct spec_container_view *c = spec_pod_main(pod);

	if (!c || !killing || !strstr(killing->message, c->name) ||
	    !strstr(killing->message, " probe") || spec_event_view_is_old(killing, c->started))
		return NULL;
	return probe && strstr(probe->message, " probe failed") ? probe->message : killing->message;
}

/* --- volumes --- */

/* E is about a pod. Return its replica if the pod exists and the replica waits, else NULL. */
static const struct spec_replica *replica_of(const struct facts *f, const struct spec_event_view *e)
{
	for (size_t i = 0; i < f->pods.n; i++) {
		const struct spec_pod_view *pod = f->pods.v[i].pod;
		const struct spec_replica *r = &f->job->replicas[f->pods.v[i].replica];

		if (streq(pod->meta.uid, e->about))
			return !pod->gone && r->state == SPEC_PENDING && !r->started ? r : NULL;
	}
	return NULL;
}

/* True if a later event shows that the volumes of FAILURE's pod are mounted. */
static bool is_mounted(const struct facts *f, const struct spec_event_view *failure)
{
	for (size_t i = 0; i < f->ctx->n_events; i++) {
		const struct spec_event_view *e = f->ctx->events[i];

		if (streq(e->about, failure->about) && e->last >= failure->last &&
		    spec_event_view_mounts(e) > 0)
			return true;
	}
	return false;
}

static struct spec_cause not_mounted(const struct spec_replica *r, const char *message)
{
	struct spec_cause ret;
	size_t n;
	const char *volume = word_behind(message, "for volume ", &n);

	if (volume)
		ret = make(&failed_mount, "%s can't start: its volume %.*s can't be mounted: %s",
			   r->name, (int)n, volume, behind(volume + n, ": "));
	else
		ret = make(&failed_mount, "%s can't start: %s", r->name, message);
	ret.of_replica = true;
	return ret;
}

static struct spec_cause find_mount(const struct facts *f)
{
	const struct spec_event_view *first = NULL;
	const struct spec_replica *replica = NULL;

	for (size_t i = 0; i < f->ctx->n_events; i++) {
		const struct spec_event_view *e = f->ctx->events[i];
		const struct spec_replica *r = spec_event_view_mounts(e) < 0 && !is_mounted(f, e)
						       ? replica_of(f, e)
						       : NULL;

		if (r && (!replica || r < replica || (r == replica && e->last >= first->last))) {
			replica = r;
			first = e;
		}
	}
	return replica ? not_mounted(replica, first->message) : none();
}

/* --- nodes --- */

static struct spec_cause find_lost(const struct facts *f)
{
	for (size_t i = 0; i < f->pods.n; i++) {
		const struct spec_pod_view *pod = f->pods.v[i].pod;
		const struct spec_replica *r = &f->job->replicas[f->pods.v[i].replica];
		struct spec_cause ret;

		if (!streq(r->reason, SPEC_REASON_NODE_LOST) || !spec_pod_is_lost(pod))
			continue;
		ret = make(&node_lost, "%s: %s%s", r->name, r->message,
			   pod->meta.deleted ? ", and the pod is marked for eviction" : "");
		ret.of_replica = true;
		return ret;
	}
	return none();
}

/* --- the gang --- */

static bool any_waits_for_gang(const struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (spec_replica_waits_for_gang(&job->replicas[i]))
			return true;
	return false;
}

static struct spec_cause find_gang(const struct facts *f)
{
	const struct spec_group_view *g = f->ctx->group;
	unsigned minimum = g && g->minimum ? g->minimum : f->view->minimum;
	bool is_short = g && g->is_short && !streq(g->phase, "Running");
	bool *is_made cleanup_free = NULL;
	struct spec_cause ret;
	unsigned n = 0;

	if (!is_short && !any_waits_for_gang(f->job))
		return none();
	is_made = made_replicas(f);
	for (size_t i = 0; i < f->job->n_replicas; i++)
		n += is_made[i];
	if (n < minimum) {
		ret = make(&gang_short, "%u pods must start together, but only %u exist%s", minimum,
			   n, n == 1 ? "s" : "");
		/* Only events would show why the other pods were not created. */
		if (f->ctx->unseen & SPEC_UNSEEN_EVENTS)
			ret.advice = unseen_advice[SPEC_UNSEEN_EVENTS];
		return ret;
	}
	return make(&gang_short,
		    "%u pods must start together, but there is no capacity for all of them",
		    minimum);
}

/* --- the queue and the cluster --- */

/*
 * Copy the next resource in TEXT to NAME and advance TEXT. KEY ("overused ") precedes each
 * resource: "overused cpu, overused memory". Return false if there are no more.
 */
static bool next_resource(const char **text, const char *key, char name[256])
{
	const char *p = strstr(*text, key);
	size_t n;

	if (!p)
		return false;
	p += strlen(key);
	n = strcspn(p, ",; \n");
	*text = p + n;
	snprintf(name, 256, "%.*s", (int)n, p);
	return n > 0;
}

/* Print what the job needs of the resource NAME: "it needs 2.4 cpu". */
static void put_need(FILE *out, const char *name, const char *need)
{
	bool bytes = strstr(name, "memory") || strstr(name, "storage");
	double value = spec_amount_value(need);

	fputs("it needs ", out);
	if (value < 0) /* an unknown notation: quote it */
		fputs(need, out);
	else
		spec_amount_print(out, name, value);
	fprintf(out, "%s %s", bytes ? " of" : "", name);
}

/* Return Q's limit of the resource NAME; negative if unlimited or unknown. */
static double queue_limit(const struct spec_queue_view *q, const char *name)
{
	return q ? spec_amount_value(spec_amounts_get(&q->capability, "", name)) : -1;
}

/*
 * Print how much the queue Q has of the resource NAME, for a job that needs NEED: ", and the queue
 * has 1 of its 4 free".
 */
static void put_queue_has(FILE *out, const struct spec_queue_view *q, const char *name, double need)
{
	double all = queue_limit(q, name);
	double used = q ? spec_amount_value(spec_amounts_get(&q->allocated, "", name)) : 0;
	double left = used > 0 ? all - used : all;

	if (all < 0)
		return;
	/* If enough seems to be free, jobs that start soon will use it: print only the limit. */
	if (need > all || left >= need) {
		fputs(", and the queue's limit is ", out);
		spec_amount_print(out, name, all);
		return;
	}
	fputs(", and the queue has ", out);
	spec_amount_print(out, name, left > 0 ? left : 0);
	fputs(" of its ", out);
	spec_amount_print(out, name, all);
	fputs(" free", out);
}

/*
 * Return the cause "no capacity": in the job's queue if QUEUE is true, otherwise in the cluster.
 * KEY precedes each lacking resource in TEXT, the scheduler's message.
 */
static struct spec_cause is_full(const struct facts *f, const char *text, const char *key,
				 bool queue)
{
	const struct spec_queue_view *q = queue ? f->ctx->queue : NULL;
	const char *sep = ": ";
	bool never = false;
	char name[256];
	cleanup_free char *words = NULL;
	size_t len;
	FILE *out = text_stream(&words, &len);

	fprintf(out, "%s%s has no capacity for it now", queue ? "queue " : "the cluster",
		queue ? f->view->queue : "");
	while (next_resource(&text, key, name)) {
		const char *need = spec_amounts_get(&f->ctx->group->needs, "", name);
		double value = spec_amount_value(need), all = queue_limit(q, name);

		fputs(sep, out);
		if (*need)
			put_need(out, name, need);
		else
			fprintf(out, "there is not enough %s", name);
		if (value >= 0)
			put_queue_has(out, q, name, value);
		never |= all >= 0 && value > all;
		sep = "; ";
	}
	text_stream_close(out);
	return made(!queue ? &cluster_full : never ? &queue_too_small : &queue_full, words);
}

/* Return a cause if the job needs more than its queue may ever have. */
static struct spec_cause find_too_small(const struct facts *f)
{
	const struct spec_group_view *g = f->ctx->group;
	cleanup_free char *text = text_copy("");

	if (!g || (*g->phase && !streq(g->phase, "Pending")))
		return none();
	for (size_t i = 0; i < g->needs.n; i++) {
		double all = queue_limit(f->ctx->queue, g->needs.v[i].name);

		if (all >= 0 && spec_amount_value(g->needs.v[i].text) > all)
			text_set(&text, "%s insufficient %s", text, g->needs.v[i].name);
	}
	return *text ? is_full(f, text, "insufficient ", true) : none();
}

/* Return a cause if the job's queue is closed: it then starts no jobs. */
static struct spec_cause find_closed(const struct facts *f)
{
	const struct spec_group_view *g = f->ctx->group;
	const struct spec_queue_view *q = f->ctx->queue;
	const struct spec_replica *r = spec_job_first_waiting(f->job, NULL);

	if (!g || streq(g->phase, "Running") || (r && !streq(r->reason, "Unschedulable")) || !q ||
	    !(streq(q->state, "Closed") || streq(q->state, "Closing")))
		return none();
	return make(&queue_closed, "queue %s is closed", f->view->queue);
}

/* Return a cause if the scheduler has not admitted the pod group. */
static struct spec_cause find_pending(const struct facts *f)
{
	static const char quota[] = "queue resource quota insufficient";
	const struct spec_group_view *g = f->ctx->group;
	const struct spec_event_view *e;

	if (!g || (*g->phase && !streq(g->phase, "Pending")))
		return none();
	e = newest(f, g->meta.uid, SPEC_EVENT_UNSCHEDULABLE);
	if (e && strstr(e->message, "resource in cluster is overused"))
		return is_full(f, e->message, "overused ", false);
	if (e && strstr(e->message, quota))
		return is_full(f, behind(e->message, quota), "insufficient ", true);
	if (e)
		return make(&unschedulable, "the scheduler reports: %s", e->message);
	if (f->ctx->events_known && !any_about(f, g->meta.uid) && has_waited(f, g->seen))
		return make(&no_scheduler, "no scheduler has processed it yet");
	return none();
}

/* --- all steps together --- */

struct spec_cause spec_cause_find(const struct spec_job *job, const struct spec_job_view *view,
				  struct spec_placed_pods pods, const struct spec_view_context *ctx)
{
	const struct facts f = {job, view, pods, ctx};
	struct spec_cause ret = none();
	unsigned unseen = ctx->unseen & ~SPEC_UNSEEN_PARTS;
	size_t n = 0;

	if (job->suspended && spec_kueue_is_off(ctx))
		return spec_kueue_cause(job, view, ctx);
	if (spec_state_is_final(job->state) || job->state == SPEC_UNKNOWN || job->history)
		return ret;
	/*
	 * Kueue's reason takes precedence over a failed replica, which may be from an earlier
	 * attempt.
	 */
	if (*view->phase && (*spec_kueue_queue(view, ctx) || ctx->kueue.workload))
		ret = spec_kueue_cause(job, view, ctx);
	/* A failure explains more than what other replicas wait for. */
	if (*ret.reason || spec_job_first_failed(job, NULL))
		return ret;
	if (!*view->phase) {
		if (job->state == SPEC_SUBMITTED && !ctx->stale_since && has_waited(&f, ctx->since))
			ret = make(&no_controller, "no controller has processed it yet");
		return ret;
	}
	ret = find_unmade(&f);
	if (!*ret.reason && ctx->unseen & SPEC_UNSEEN_PARTS && pods.n == 0 && !job->suspended) {
		ret = make(&missing_right, "kxfs can't find its pods");
		ret.advice = "kxfs can't list the objects that own the pods; .kxfs/info shows the "
			     "reason.";
	}
	if (!*ret.reason)
		ret = find_lost(&f);
	if (!*ret.reason && job->state != SPEC_RUNNING)
		ret = find_closed(&f);
	if (!*ret.reason && job->state != SPEC_RUNNING)
		ret = find_too_small(&f);
	if (*ret.reason || spec_job_first_waiting(job, NULL))
		return ret;
	ret = find_mount(&f);
	if (*ret.reason || job->state == SPEC_RUNNING)
		return ret;
	ret = find_gang(&f);
	if (!*ret.reason)
		ret = find_pending(&f);
	if (*ret.reason || job->suspended || !unseen)
		return ret;
	for (size_t i = 0; i < pods.n; i++)
		n += !pods.v[i].pod->gone && *pods.v[i].pod->node;
	/* If all pods have nodes, only events (about volumes) would show the reason. */
	if (n >= job->n_replicas)
		unseen &= SPEC_UNSEEN_EVENTS;
	if (unseen && has_waited(&f, max_of(ctx->since, view->changed) +
					     (n >= job->n_replicas ? STARTING : 0))) {
		ret = make(&missing_right, "the reason is unknown");
		ret.advice = unseen_advice[unseen];
	}
	return ret;
}
