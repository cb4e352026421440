/* SPDX-License-Identifier: MIT */
/*
 * Why a job waits, as far as neither it nor its pods say so: its pods can't be made, a volume can't be
 * mounted, its gang finds no room, its queue or the cluster is full, nobody has looked at it. What
 * blocks first is told: what a replica says of itself comes before the gang, and that it can't be made
 * before all else. What is not known is not said.
 */
#include <errno.h>
#include <stdarg.h>

#include "spec/view_impl.h"
#include "spec/watched.h"

/* --- words ----------------------------------------------------------------------------------- */

static void put_amount(FILE *out, const char *name, const char *text)
{
	double value = spec_amount_value(text);

	if (value < 0) /* the server's own words then */
		fprintf(out, "%s", text);
	else
		spec_amount_print(out, name, value);
}

/* Text for people that is being made, and what it becomes. */
struct words {
	FILE *out;
	char *text;
	size_t len;
};

static int words_begin(struct words *w)
{
	w->out = open_memstream(&w->text, &w->len);
	return w->out ? 0 : -ENOMEM;
}

/* The cause of S is REASON, in these words. */
static int words_end(struct words *w, const struct spec_making *s, const char *reason)
{
	char *text cleanup_free = NULL;
	bool failed = ferror(w->out) != 0;

	failed |= fclose(w->out) != 0;
	text = take_ptr(w->text);
	if (failed || spec_set(&s->job->cause, reason) < 0 ||
	    spec_read_copy(&s->job->cause_text, text, READ_MAX_MESSAGE) < 0)
		return -ENOMEM;
	return 0;
}

static int say(const struct spec_making *s, const char *reason, const char *fmt, ...)
	printf_like(3, 4);
static int say(const struct spec_making *s, const char *reason, const char *fmt, ...)
{
	struct words w;
	va_list ap;

	if (words_begin(&w) < 0)
		return -ENOMEM;
	va_start(ap, fmt);
	vfprintf(w.out, fmt, ap);
	va_end(ap);
	return words_end(&w, s, reason);
}

/* --- events ---------------------------------------------------------------------------------- */

/* The newest about UID with REASON (NULL: any) that says something; NULL: there is none. */
static const struct spec_event_view *newest(const struct spec_making *s, const char *uid,
					    const char *reason)
{
	const struct spec_event_view *ret = NULL;

	for (size_t i = 0; i < s->ctx->n_events; i++) {
		const struct spec_event_view *e = s->ctx->events[i];

		if (streq(e->about, uid) && (!reason || streq(e->reason, reason)) &&
		    !spec_event_view_is_noise(e) && (!ret || e->last >= ret->last))
			ret = e;
	}
	return ret;
}

static bool any_about(const struct spec_making *s, const char *uid)
{
	for (size_t i = 0; i < s->ctx->n_events; i++)
		if (streq(s->ctx->events[i]->about, uid))
			return true;
	return false;
}

/* --- pods that can't be made ------------------------------------------------------------------- */

/*
 * Which replicas have a pod in the cluster now; a replica also names that of the try before, when it is
 * gone. malloc'ed, one for each; NULL: no memory.
 */
static bool *made_replicas(const struct spec_making *s)
{
	bool *ret = calloc(s->job->n_replicas + 1, sizeof(*ret));

	for (size_t i = 0; ret && i < s->n; i++)
		if (!s->pods[i]->gone)
			ret[s->slots[i]] = true;
	return ret;
}

static bool any_unmade(const struct spec_job *job, const bool *made)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (!made[i] && job->replicas[i].state == SPEC_PENDING)
			return true;
	return false;
}

/*
 * What the server said when it refused, out of MESSAGE, which is a dump of the controller's: the
 * quoted text after `Message:`. malloc'ed; "": there is none.
 */
static char *refusal_of(const char *message)
{
	static const char key[] = "Message:\"";
	const char *p = strstr(message, key);
	char *ret = calloc(1, strlen(message) + 1);
	char *to = ret;

	if (!ret || !p)
		return ret;
	for (p += strlen(key); *p && *p != '"'; p++) {
		if (*p == '\\' && p[1])
			p++;
		*to++ = *p;
	}
	return ret;
}

/* What stands behind KEY in TEXT, or TEXT. */
static const char *behind(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? p + strlen(key) : text;
}

/* The word behind KEY in TEXT, without quotes; its length in *N. NULL: there is none. */
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

static int say_refusal(const struct spec_making *s, const char *text)
{
	const char *more = behind(text, "forbidden: ");
	const char *word;
	size_t n;

	word = word_behind(text, "exceeded quota: ", &n);
	if (word)
		return say(s, "QuotaExceeded",
			   "its pods can't be made: quota %.*s is used up%s%s%s", (int)n, word,
			   *(word + n) == ',' ? " (" : "", *(word + n) == ',' ? word + n + 2 : "",
			   *(word + n) == ',' ? ")" : "");
	word = word_behind(text, "serviceaccount ", &n);
	if (word && strstr(text, "not found"))
		return say(s, "NoServiceAccount",
			   "its pods can't be made: there is no service account %.*s in namespace "
			   "%s",
			   (int)n, word, s->ctx->namespace);
	word = word_behind(text, "no PriorityClass with name ", &n);
	if (word)
		return say(s, "NoPriorityClass",
			   "its pods can't be made: there is no priority class %.*s", (int)n, word);
	return say(s, "FailedCreate", "its pods can't be made: %s", more);
}

static int find_unmade(const struct spec_making *s)
{
	const struct spec_event_view *e = newest(s, s->view->meta.uid, "FailedCreate");
	char *text cleanup_free = NULL;
	bool *made cleanup_free = NULL;

	if (!e || spec_event_view_is_old(e, s->view->changed))
		return 0;
	made = made_replicas(s);
	if (!made)
		return -ENOMEM;
	if (!any_unmade(s->job, made))
		return 0;
	text = refusal_of(e->message);
	if (!text)
		return -ENOMEM;
	return *text ? say_refusal(s, text) : 0;
}

/* --- what a replica says ----------------------------------------------------------------------- */

bool spec_says_gang(const struct spec_replica *r)
{
	return strstr(r->message, "tasks in gang") || strstr(r->message, "pod group is not ready");
}

/* Does R say itself why it waits, and not only that all wait for each other? */
static bool tells(const struct spec_replica *r)
{
	return r->state == SPEC_PENDING && *r->message && !streq(r->reason, "Restarting") &&
	       !spec_says_gang(r);
}

static bool any_replica(const struct spec_job *job, bool (*is)(const struct spec_replica *))
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (is(&job->replicas[i]))
			return true;
	return false;
}

static bool waits_for_gang(const struct spec_replica *r)
{
	return r->state == SPEC_PENDING && spec_says_gang(r);
}

/* --- volumes ----------------------------------------------------------------------------------- */

static bool is_mount_failure(const struct spec_event_view *e)
{
	return streq(e->reason, "FailedMount") || streq(e->reason, "FailedAttachVolume");
}

/* The replica whose pod E is about, while nothing of it has started; NULL: none. */
static const struct spec_replica *replica_of(const struct spec_making *s,
					     const struct spec_event_view *e)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct spec_pod_view *pod = s->pods[i];
		const struct spec_replica *r = &s->job->replicas[s->slots[i]];

		if (streq(pod->meta.uid, e->about))
			return !pod->gone && r->state == SPEC_PENDING && !r->started ? r : NULL;
	}
	return NULL;
}

/* What comes once the volumes are there. */
static bool is_mounted(const struct spec_making *s, const struct spec_event_view *failure)
{
	static const char *const later[] = {"SuccessfulAttachVolume", "Pulling", "Pulled",
					    "Created", "Started"};

	for (size_t i = 0; i < s->ctx->n_events; i++) {
		const struct spec_event_view *e = s->ctx->events[i];

		if (!streq(e->about, failure->about) || e->last < failure->last)
			continue;
		for (size_t k = 0; k < array_size(later); k++)
			if (streq(e->reason, later[k]))
				return true;
	}
	return false;
}

static int find_mount(const struct spec_making *s)
{
	const struct spec_event_view *first = NULL;
	const struct spec_replica *replica = NULL;
	const char *volume;
	size_t n;

	for (size_t i = 0; i < s->ctx->n_events; i++) {
		const struct spec_event_view *e = s->ctx->events[i];
		const struct spec_replica *r =
			is_mount_failure(e) && !is_mounted(s, e) ? replica_of(s, e) : NULL;

		if (r && (!replica || r < replica || (r == replica && e->last >= first->last))) {
			replica = r;
			first = e;
		}
	}
	if (!replica)
		return 0;
	volume = word_behind(first->message, "for volume ", &n);
	if (!volume)
		return say(s, "FailedMount", "%s can't start: %s", replica->name, first->message);
	return say(s, "FailedMount", "%s can't start: its volume %.*s can't be mounted: %s",
		   replica->name, (int)n, volume, behind(volume + n, ": "));
}

/* --- the gang ---------------------------------------------------------------------------------- */

static int find_gang(const struct spec_making *s)
{
	const struct spec_group_view *g = s->ctx->group;
	unsigned minimum = g && g->minimum ? g->minimum : s->view->minimum;
	bool is_short = g && g->is_short && !streq(g->phase, "Running");
	bool *is_made cleanup_free = NULL;
	unsigned made = 0;

	if (!is_short && !any_replica(s->job, waits_for_gang))
		return 0;
	is_made = made_replicas(s);
	if (!is_made)
		return -ENOMEM;
	for (size_t i = 0; i < s->job->n_replicas; i++)
		made += is_made[i];
	if (made < minimum)
		return say(s, "GangShort",
			   "%u pods must start together, and there %s only %u of them", minimum,
			   made == 1 ? "is" : "are", made);
	return say(s, "GangShort",
		   "%u pods must start together, and there is no room for all of them", minimum);
}

/* --- the queue and the cluster ----------------------------------------------------------------- */

/* The next resource of TEXT ("overused cpu, overused memory") behind KEY, copied; false: no more. */
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

/* "it needs 2.4 cpu at once" */
static void put_need(FILE *out, const char *name, const char *need)
{
	bool bytes = strstr(name, "memory") || strstr(name, "storage");

	fputs("it needs ", out);
	put_amount(out, name, need);
	fprintf(out, "%s %s at once", bytes ? " of" : "", name);
}

static int say_cluster_full(const struct spec_making *s, const char *text)
{
	const char *sep = ": ";
	char name[256];
	struct words w;

	if (words_begin(&w) < 0)
		return -ENOMEM;
	fputs("the cluster has no room for it now", w.out);
	while (next_resource(&text, "overused ", name)) {
		const char *need = spec_amounts_get(&s->ctx->group->needs, name);

		fputs(sep, w.out);
		if (*need)
			put_need(w.out, name, need);
		else
			fprintf(w.out, "there is not enough %s", name);
		sep = "; ";
	}
	return words_end(&w, s, "ClusterFull");
}

/* What queue Q has of NAME: ", and 1 of the queue's 4 is free". */
static void put_queue_has(FILE *out, const struct spec_queue_view *q, const char *name, double need)
{
	const char *capability = q ? spec_amounts_get(&q->capability, name) : "";
	double all = spec_amount_value(capability);
	double used = q ? spec_amount_value(spec_amounts_get(&q->allocated, name)) : 0;
	double left = used > 0 ? all - used : all;

	if (all < 0)
		return;
	if (need > all || left >= need) {
		fputs(", and the queue may use ", out);
		spec_amount_print(out, name, all);
		fputs(" in all", out);
		return;
	}
	fputs(", and ", out);
	spec_amount_print(out, name, left > 0 ? left : 0);
	fputs(" of the queue's ", out);
	spec_amount_print(out, name, all);
	fputs(" is free", out);
}

static bool can_never_hold(const struct spec_queue_view *q, const char *name, double need)
{
	double all = q ? spec_amount_value(spec_amounts_get(&q->capability, name)) : -1;

	return all >= 0 && need > all;
}

static int say_queue_full(const struct spec_making *s, const char *text)
{
	const struct spec_queue_view *q = s->ctx->queue;
	const char *sep = ": ";
	bool never = false;
	char name[256];
	struct words w;

	if (words_begin(&w) < 0)
		return -ENOMEM;
	fprintf(w.out, "queue %s has no room for it now", s->view->queue);
	while (next_resource(&text, "insufficient ", name)) {
		const char *need = spec_amounts_get(&s->ctx->group->needs, name);
		double value = spec_amount_value(need);

		fputs(sep, w.out);
		if (value >= 0) {
			put_need(w.out, name, need);
			put_queue_has(w.out, q, name, value);
		} else {
			fprintf(w.out, "there is not enough %s", name);
		}
		never |= can_never_hold(q, name, value);
		sep = "; ";
	}
	return words_end(&w, s, never ? "QueueTooSmall" : "QueueFull");
}

static bool is_closed(const struct spec_queue_view *q)
{
	return q && (streq(q->state, "Closed") || streq(q->state, "Closing"));
}

static bool has_waited(const struct spec_making *s, int64_t since)
{
	return s->ctx->now - since >= SPEC_PATIENCE;
}

/* The scheduler has not let the group in. */
static int find_pending(const struct spec_making *s)
{
	const struct spec_group_view *g = s->ctx->group;
	const struct spec_event_view *e;

	if (!g || (*g->phase && !streq(g->phase, "Pending")))
		return 0;
	if (is_closed(s->ctx->queue))
		return say(s, "QueueClosed", "queue %s is closed", s->view->queue);
	e = newest(s, g->meta.uid, "Unschedulable");
	if (e && strstr(e->message, "resource in cluster is overused"))
		return say_cluster_full(s, e->message);
	if (e && strstr(e->message, "queue resource quota insufficient"))
		return say_queue_full(s, behind(e->message, "queue resource quota insufficient"));
	if (e)
		return say(s, "Unschedulable", "the scheduler says: %s", e->message);
	if (s->ctx->events_known && !any_about(s, g->meta.uid) && has_waited(s, g->seen))
		return say(s, "NoScheduler", "no scheduler has looked at it yet");
	return 0;
}

/* --- the whole --------------------------------------------------------------------------------- */

static int find(const struct spec_making *s)
{
	int err = find_unmade(s);

	if (err || *s->job->cause || any_replica(s->job, tells))
		return err;
	err = find_mount(s);
	if (err || *s->job->cause || s->job->state == SPEC_RUNNING)
		return err;
	err = find_gang(s);
	if (!err && !*s->job->cause)
		err = find_pending(s);
	return err;
}

int spec_view_cause(const struct spec_making *s)
{
	const struct spec_job *job = s->job;

	if (spec_state_is_final(job->state) || job->state == SPEC_UNKNOWN || job->history ||
	    s->standing.ending)
		return 0;
	if (*s->view->phase)
		return find(s);
	/* Not looked at by a controller: it has no group and no pods. */
	if (job->state == SPEC_SUBMITTED && !s->ctx->stale_since && has_waited(s, s->ctx->since))
		return say(s, "NoController", "no controller has looked at it yet");
	return 0;
}
