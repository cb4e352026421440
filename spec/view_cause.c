/* SPDX-License-Identifier: MIT */
/*
 * Why a job waits, as far as neither it nor its pods say so: its pods can't be made, a volume can't be
 * mounted, its gang finds no room, its queue or the cluster is full, nobody has looked at it. What
 * blocks first is told: what a replica says of itself comes before the gang, and that it can't be made
 * before all else. What is not known is not said. What the queue and the cluster lack: view_cause_queue.c.
 */
#include <errno.h>
#include <stdarg.h>

#include "spec/view_cause_impl.h"
#include "spec/watched.h"
#include "spec/words.h"

/* --- words ----------------------------------------------------------------------------------- */

int cause_begin(struct cause_words *w)
{
	w->out = open_memstream(&w->text, &w->len);
	return w->out ? 0 : -ENOMEM;
}

int cause_end(struct cause_words *w, const struct spec_making *s, const char *reason)
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

int cause_say(const struct spec_making *s, const char *reason, const char *fmt, ...)
{
	struct cause_words w;
	va_list ap;

	if (cause_begin(&w) < 0)
		return -ENOMEM;
	va_start(ap, fmt);
	vfprintf(w.out, fmt, ap);
	va_end(ap);
	return cause_end(&w, s, reason);
}

/* --- events ---------------------------------------------------------------------------------- */

const struct spec_event_view *cause_newest(const struct spec_making *s, const char *uid,
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

const char *cause_behind(const char *text, const char *key)
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
	const char *more = cause_behind(text, "forbidden: ");
	const char *word;
	size_t n;

	word = word_behind(text, "exceeded quota: ", &n);
	if (word)
		return cause_say(s, "QuotaExceeded",
				 "its pods can't be made: quota %.*s is used up%s%s%s", (int)n,
				 word, *(word + n) == ',' ? " (" : "",
				 *(word + n) == ',' ? word + n + 2 : "",
				 *(word + n) == ',' ? ")" : "");
	word = word_behind(text, "serviceaccount ", &n);
	if (word && strstr(text, "not found"))
		return cause_say(
			s, "NoServiceAccount",
			"its pods can't be made: there is no service account %.*s in namespace "
			"%s",
			(int)n, word, s->ctx->namespace);
	word = word_behind(text, "no PriorityClass with name ", &n);
	if (word)
		return cause_say(s, "NoPriorityClass",
				 "its pods can't be made: there is no priority class %.*s", (int)n,
				 word);
	return cause_say(s, "FailedCreate", "its pods can't be made: %s", more);
}

static int find_unmade(const struct spec_making *s)
{
	const struct spec_event_view *e = cause_newest(s, s->view->meta.uid, "FailedCreate");
	char *text cleanup_free = NULL;
	bool *made cleanup_free = NULL;

	if (!e || spec_event_view_is_old(e, s->view->changed))
		return 0;
	made = made_replicas(s);
	if (!made)
		return -ENOMEM;
	if (!any_unmade(s->job, made))
		return 0;
	text = strdup(e->message);
	if (!text)
		return -ENOMEM;
	/* What the server said when it refused stands in a dump of the controller's. */
	return spec_words_undump(text) && *text ? say_refusal(s, text) : 0;
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
		return cause_say(s, "FailedMount", "%s can't start: %s", replica->name,
				 first->message);
	return cause_say(s, "FailedMount", "%s can't start: its volume %.*s can't be mounted: %s",
			 replica->name, (int)n, volume, cause_behind(volume + n, ": "));
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
		return cause_say(s, "GangShort",
				 "%u pods must start together, and there %s only %u of them",
				 minimum, made == 1 ? "is" : "are", made);
	return cause_say(s, "GangShort",
			 "%u pods must start together, and there is no room for all of them",
			 minimum);
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
		err = cause_find_pending(s);
	return err;
}

bool cause_has_waited(const struct spec_making *s, int64_t since)
{
	return s->ctx->now - since >= SPEC_PATIENCE;
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
	if (job->state == SPEC_SUBMITTED && !s->ctx->stale_since &&
	    cause_has_waited(s, s->ctx->since))
		return cause_say(s, "NoController", "no controller has looked at it yet");
	return 0;
}
