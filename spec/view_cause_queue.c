/* SPDX-License-Identifier: MIT */
/*
 * Why the scheduler has not let a job in, out of the pod group's last event and the queue's numbers: its
 * queue is closed, or it or the cluster is full, or no scheduler has looked at it.
 */
#include <errno.h>

#include "spec/view_cause_impl.h"
#include "spec/watched.h"

static void put_amount(FILE *out, const char *name, const char *text)
{
	double value = spec_amount_value(text);

	if (value < 0) /* the server's own words then */
		fprintf(out, "%s", text);
	else
		spec_amount_print(out, name, value);
}

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
	struct cause_words w;

	if (cause_begin(&w) < 0)
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
	return cause_end(&w, s, "ClusterFull");
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
	struct cause_words w;

	if (cause_begin(&w) < 0)
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
	return cause_end(&w, s, never ? "QueueTooSmall" : "QueueFull");
}

static bool is_closed(const struct spec_queue_view *q)
{
	return q && (streq(q->state, "Closed") || streq(q->state, "Closing"));
}

static bool any_about(const struct spec_making *s, const char *uid)
{
	for (size_t i = 0; i < s->ctx->n_events; i++)
		if (streq(s->ctx->events[i]->about, uid))
			return true;
	return false;
}

int cause_find_pending(const struct spec_making *s)
{
	const struct spec_group_view *g = s->ctx->group;
	const struct spec_event_view *e;

	if (!g || (*g->phase && !streq(g->phase, "Pending")))
		return 0;
	if (is_closed(s->ctx->queue))
		return cause_say(s, "QueueClosed", "queue %s is closed", s->view->queue);
	e = cause_newest(s, g->meta.uid, "Unschedulable");
	if (e && strstr(e->message, "resource in cluster is overused"))
		return say_cluster_full(s, e->message);
	if (e && strstr(e->message, "queue resource quota insufficient"))
		return say_queue_full(s, cause_behind(e->message,
						      "queue resource quota insufficient"));
	if (e)
		return cause_say(s, "Unschedulable", "the scheduler says: %s", e->message);
	if (s->ctx->events_known && !any_about(s, g->meta.uid) && cause_has_waited(s, g->seen))
		return cause_say(s, "NoScheduler", "no scheduler has looked at it yet");
	return 0;
}
