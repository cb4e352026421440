/* SPDX-License-Identifier: MIT */
/* Events of the cluster, and the lines of `events`. */
#include <errno.h>

#include "spec/line.h"
#include "spec/status.h"
#include "spec/view_impl.h"
#include "spec/watched.h"

struct spec_event_view *spec_event_view_ref(struct spec_event_view *v)
{
	__atomic_fetch_add(&v->refs, 1, __ATOMIC_RELAXED);
	return v;
}

void spec_event_view_unref(struct spec_event_view *v)
{
	if (!v || __atomic_fetch_sub(&v->refs, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	spec_unset(&v->about);
	spec_unset(&v->kind);
	spec_unset(&v->name);
	spec_unset(&v->type);
	spec_unset(&v->reason);
	spec_unset(&v->message);
	free(v);
}

static void event_unrefp(struct spec_event_view **v)
{
	spec_event_view_unref(*v);
}

static struct spec_event_view *event_new(void)
{
	struct spec_event_view *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->refs = 1;
	if (spec_set(&v->about, "") == 0 && spec_set(&v->kind, "") == 0 &&
	    spec_set(&v->name, "") == 0 && spec_set(&v->type, "") == 0 &&
	    spec_set(&v->reason, "") == 0 && spec_set(&v->message, "") == 0)
		return v;
	spec_event_view_unref(v);
	return NULL;
}

/* Recorders of different ages write these in different places. */
static void read_series(struct spec_event_view *v, struct json_object *o)
{
	struct json_object *series = spec_read_map(o, "series");
	const int64_t times[] = {
		spec_read_time(series, "lastObservedTime"),
		spec_read_time(o, "lastTimestamp"),
		spec_read_time(o, "eventTime"),
		spec_read_time(o, "firstTimestamp"),
		spec_read_time(spec_read_map(o, "metadata"), "creationTimestamp"),
	};

	for (size_t i = 0; i < array_size(times) && !v->last; i++)
		v->last = times[i];
	v->count = (unsigned)spec_read_int(series, "count", spec_read_int(o, "count", 1));
	v->count = max_of(v->count, 1u);
}

static int read_event(struct spec_event_view *v, struct json_object *o)
{
	struct json_object *about = spec_read_map(o, "involvedObject");
	const char *uid = spec_read_text(about, "uid");

	if (!*uid)
		return -EINVAL;
	read_series(v, o);
	if (spec_read_copy(&v->about, uid, READ_MAX_WORD) < 0 ||
	    spec_read_copy(&v->kind, spec_read_text(about, "kind"), READ_MAX_WORD) < 0 ||
	    spec_read_copy(&v->name, spec_read_text(about, "name"), READ_MAX_WORD) < 0 ||
	    spec_read_copy(&v->type, spec_read_text(o, "type"), READ_MAX_WORD) < 0 ||
	    spec_read_copy(&v->reason, spec_read_text(o, "reason"), READ_MAX_WORD) < 0 ||
	    spec_read_copy(&v->message, spec_read_text(o, "message"), READ_MAX_MESSAGE) < 0)
		return -ENOMEM;
	return 0;
}

int spec_event_view_parse(const char *json, size_t len, struct spec_event_view **ret)
{
	cleanup(event_unrefp) struct spec_event_view *v = event_new();
	struct json_object *o cleanup_json = NULL;
	int err = v ? spec_view_object(json, len, &o) : -ENOMEM;

	if (!err)
		err = read_event(v, o);
	if (!err)
		*ret = take_ptr(v);
	return err;
}

bool spec_event_view_same(const struct spec_event_view *a, const struct spec_event_view *b)
{
	return streq(a->about, b->about) && streq(a->reason, b->reason) &&
	       streq(a->message, b->message);
}

bool spec_event_view_tells(const struct spec_event_view *v)
{
	static const char *const reasons[] = {"Unschedulable", "FailedCreate", "FailedMount",
					      "FailedAttachVolume"};

	for (size_t i = 0; i < array_size(reasons); i++)
		if (streq(v->reason, reasons[i]))
			return true;
	return false;
}

bool spec_event_view_is_old(const struct spec_event_view *v, int64_t began)
{
	return v->last + 1000000000 < began; /* times have whole seconds */
}

bool spec_event_view_is_noise(const struct spec_event_view *v)
{
	static const char noise[] = "0/0 tasks in gang";

	return strncmp(v->message, noise, strlen(noise)) == 0;
}

/* --- text ------------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
	const struct spec_event_view *x = *(struct spec_event_view *const *)a;
	const struct spec_event_view *y = *(struct spec_event_view *const *)b;

	return x->last < y->last ? -1 : x->last > y->last;
}

static int put_event(FILE *out, const struct spec_event_view *v)
{
	cleanup_free char *kind = spec_line_field(v->kind);
	cleanup_free char *name = spec_line_field(v->name);
	cleanup_free char *type = spec_line_field(v->type);
	cleanup_free char *reason = spec_line_field(v->reason);
	cleanup_free char *message = spec_line_field(v->message);
	char time[32];

	if (!kind || !name || !type || !reason || !message)
		return -ENOMEM;
	spec_time_text(v->last, time);
	fprintf(out, "%s\t%s/%s\t%s\t%s\t%u\t%s\n", time, kind, name, type, reason, v->count,
		message);
	return 0;
}

int spec_event_view_text(struct spec_event_view **v, size_t n, char **ret, size_t *ret_len,
			 int64_t *ret_changed)
{
	FILE *out = open_memstream(ret, ret_len);
	int err = out ? 0 : -ENOMEM;

	*ret_changed = 0;
	qsort(v, n, sizeof(struct spec_event_view *), by_time);
	for (size_t i = 0; !err && i < n; i++) {
		if (spec_event_view_is_noise(v[i]))
			continue;
		err = put_event(out, v[i]);
		*ret_changed = v[i]->last;
	}
	if (out && fclose(out) != 0)
		err = -ENOMEM;
	if (err && out)
		free(take_ptr(*ret));
	return err;
}
