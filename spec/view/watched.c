/* SPDX-License-Identifier: MIT */
/* Parses pod groups, events and queues. Makes the texts of `events` and queues/NAME/status. */
#include "spec/view/watched.h"

#include <errno.h>

#include "spec/base/time.h"
#include "spec/base/utf8.h"
#include "spec/base/words.h"
#include "spec/view/steps.h"
#include "spec/yaml/yaml.h"

/* --- pod groups --- */

void spec_group_view_free(struct spec_group_view *v)
{
	if (!v)
		return;
	spec_meta_clear(&v->meta);
	spec_unset(&v->phase);
	spec_amounts_clear(&v->needs);
	free(v);
}

define_cleanup(group_freep, struct spec_group_view *, spec_group_view_free)

/*
 * Return the time at which the condition TYPE became true, or 0 if it is not true. Ignore
 * conditions whose message shows that the group does not wait for capacity.
 */
static int64_t true_since(const struct spec_value *conditions, const char *type)
{
	int64_t ret = 0;

	for (size_t i = 0; i < spec_read_count(conditions); i++) {
		const struct spec_value *c = spec_read_at(conditions, i);

		if (streq(spec_read_text(c, "type"), type) && spec_view_is_true(c) &&
		    !spec_words_is_passing(spec_read_text(c, "message")) &&
		    !spec_words_is_beside_gang(spec_read_text(c, "message")))
			ret = max_of(spec_read_time(c, "lastTransitionTime"), INT64_C(1));
	}
	return ret;
}

int spec_group_view_parse(const char *json, size_t len, struct spec_group_view **ret)
{
	cleanup(group_freep) struct spec_group_view *v = NULL;
	struct spec_value *o cleanup_free = NULL;
	const struct spec_value *spec, *status, *conditions;

	if (spec_value_parse_map(json, len, &o) < 0)
		return -EINVAL;
	v = new0(struct spec_group_view);
	if (spec_meta_read(o, &v->meta) < 0)
		return -EINVAL;
	spec = spec_read_map(o, "spec");
	status = spec_read_map(o, "status");
	conditions = spec_read_list(status, "conditions");
	v->minimum = (unsigned)spec_read_int(spec, "minMember", 0);
	/*
	 * With each decision, the scheduler sets one of these two conditions and leaves the other
	 * unchanged. So the later one is current.
	 */
	v->is_short = true_since(conditions, "Unschedulable") > true_since(conditions, "Scheduled");
	spec_read_copy_word(&v->phase, status, "phase");
	spec_amounts_read(&v->needs, spec_read_map(spec, "minResources"));
	*ret = take_ptr(v);
	return 0;
}

/* --- events --- */

struct spec_event_view *spec_event_view_ref(struct spec_event_view *v)
{
	__atomic_fetch_add(&v->refs, 1, __ATOMIC_RELAXED);
	return v;
}

void spec_event_view_unref(struct spec_event_view *v)
{
	if (!v || __atomic_fetch_sub(&v->refs, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	spec_unset(&v->about, &v->kind, &v->name, &v->type, &v->reason, &v->message);
	free(v);
}

/*
 * Read the event's count and time. Which members have them depends on the version of the library
 * that recorded the event.
 */
static void read_series(struct spec_event_view *v, const struct spec_value *o)
{
	const struct spec_value *series = spec_read_map(o, "series");
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

int spec_event_view_parse(const char *json, size_t len, struct spec_event_view **ret)
{
	struct spec_value *o cleanup_free = NULL;
	const struct spec_value *about;
	struct spec_event_view *v;

	if (spec_value_parse_map(json, len, &o) < 0)
		return -EINVAL;
	about = spec_read_map(o, "involvedObject");
	if (!*spec_read_text(about, "uid"))
		return -EINVAL;
	v = new0(struct spec_event_view);
	v->refs = 1;
	read_series(v, o);
	spec_read_copy_word(&v->about, about, "uid");
	spec_read_copy_word(&v->kind, about, "kind");
	spec_read_copy_word(&v->name, about, "name");
	spec_read_copy_word(&v->type, o, "type");
	spec_read_copy_word(&v->reason, o, "reason");
	spec_read_copy_message(&v->message, o);
	*ret = v;
	return 0;
}

bool spec_event_view_same(const struct spec_event_view *a, const struct spec_event_view *b)
{
	return streq(a->about, b->about) && streq(a->reason, b->reason) &&
	       streq(a->message, b->message);
}

bool spec_event_view_explains(const struct spec_event_view *v)
{
	return (streq(v->reason, SPEC_EVENT_UNSCHEDULABLE) && !spec_event_view_is_noise(v)) ||
	       spec_event_view_is_refusal(v) || spec_event_view_mounts(v) < 0 ||
	       (streq(v->reason, SPEC_EVENT_KILLING) && strstr(v->message, " probe"));
}

bool spec_event_view_is_refusal(const struct spec_event_view *v)
{
	/* Kubeflow's training operator writes FailedCreatePod. */
	return streq(v->reason, "FailedCreate") || streq(v->reason, "FailedCreatePod");
}

int spec_event_view_mounts(const struct spec_event_view *v)
{
	static const char *const failed[] = {"FailedMount", "FailedAttachVolume", NULL};
	static const char *const later[] = {
		"SuccessfulAttachVolume", "Pulling", "Pulled", "Created", "Started", NULL};

	return streq_any(v->reason, later) - streq_any(v->reason, failed);
}

bool spec_event_view_is_old(const struct spec_event_view *v, int64_t began)
{
	return v->last + NS_PER_S < began; /* times are whole seconds */
}

bool spec_event_view_is_noise(const struct spec_event_view *v)
{
	return spec_words_is_passing(v->message);
}

static int by_time(const void *a, const void *b)
{
	const struct spec_event_view *x = *(struct spec_event_view *const *)a;
	const struct spec_event_view *y = *(struct spec_event_view *const *)b;

	return x->last < y->last ? -1 : x->last > y->last;
}

void spec_event_view_text(struct spec_event_view **v, size_t n, char **ret, size_t *ret_len,
			  int64_t *ret_changed)
{
	FILE *out = text_stream(ret, ret_len);

	*ret_changed = 0;
	qsort(v, n, sizeof(struct spec_event_view *), by_time);
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *kind = spec_utf8_field(v[i]->kind);
		cleanup_free char *name = spec_utf8_field(v[i]->name);
		cleanup_free char *type = spec_utf8_field(v[i]->type);
		cleanup_free char *reason = spec_utf8_field(v[i]->reason);
		cleanup_free char *message = spec_utf8_field(v[i]->message);
		char time[32];

		if (spec_event_view_is_noise(v[i]))
			continue;
		spec_time_text(v[i]->last, time);
		fprintf(out, "%s\t%s/%s\t%s\t%s\t%u\t%s\n", time, kind, name, type, reason,
			v[i]->count, message);
		*ret_changed = v[i]->last;
	}
	text_stream_close(out);
}

/* --- queues --- */

struct spec_queue_view *spec_queue_view_ref(struct spec_queue_view *v)
{
	__atomic_fetch_add(&v->refs, 1, __ATOMIC_RELAXED);
	return v;
}

void spec_queue_view_unref(struct spec_queue_view *v)
{
	if (!v || __atomic_fetch_sub(&v->refs, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	spec_meta_clear(&v->meta);
	spec_unset(&v->state);
	spec_amounts_clear(&v->capability);
	spec_amounts_clear(&v->allocated);
	spec_amounts_clear(&v->reserved);
	spec_kueue_queue_free(v->kueue);
	free(v);
}

struct spec_queue_view *spec_queue_view_new(const char *name)
{
	struct spec_queue_view *v = new0(struct spec_queue_view);

	v->refs = 1;
	v->state = v->meta.uid = v->meta.owner_uid = v->meta.owner = spec_empty();
	spec_set(&v->meta.name, name);
	return v;
}

static int parse_queue(const char *json, size_t len, bool kueue, struct spec_queue_view **ret)
{
	cleanup(spec_queue_view_unrefp) struct spec_queue_view *v = NULL;
	struct spec_value *o cleanup_free = NULL;
	const struct spec_value *spec, *status;

	if (spec_value_parse_map(json, len, &o) < 0)
		return -EINVAL;
	v = spec_queue_view_new("");
	if (spec_meta_read(o, &v->meta) < 0)
		return -EINVAL;
	spec = spec_read_map(o, "spec");
	status = spec_read_map(o, "status");
	v->weight = (unsigned)spec_read_int(spec, "weight", 1);
	spec_read_copy_word(&v->state, status, "state");
	spec_amounts_read(&v->capability, spec_read_map(spec, "capability"));
	spec_amounts_read(&v->allocated, spec_read_map(status, "allocated"));
	spec_amounts_read(&v->reserved,
			  spec_read_map(spec_read_map(status, "reservation"), "resource"));
	if (kueue)
		v->kueue = spec_kueue_queue_read(o);
	*ret = take_ptr(v);
	return 0;
}

int spec_queue_view_parse(const char *json, size_t len, struct spec_queue_view **ret)
{
	return parse_queue(json, len, false, ret);
}

int spec_kueue_queue_parse(const char *json, size_t len, struct spec_queue_view **ret)
{
	return parse_queue(json, len, true, ret);
}

static void put_amounts(struct json_object *o, const char *key, const struct spec_amounts *a)
{
	struct json_object *map = spec_tree_add(o, key, spec_tree_map());

	for (size_t i = 0; i < a->n; i++)
		spec_tree_set(map, a->v[i].name, spec_tree_string(a->v[i].text));
}

void spec_queue_view_text(const struct spec_queue_view *v, const struct spec_queue_view *cluster,
			  size_t pending, size_t running, char **ret, size_t *ret_len)
{
	cleanup_json struct json_object *o = NULL;

	if (v->kueue) {
		spec_local_queue_text(v, cluster, pending, running, ret, ret_len);
		return;
	}
	o = spec_tree_map();
	spec_tree_text(o, "name", v->meta.name);
	spec_tree_text(o, "state", v->state);
	spec_tree_number(o, "weight", v->weight);
	put_amounts(o, "capability", &v->capability);
	put_amounts(o, "allocated", &v->allocated);
	put_amounts(o, "reserved", &v->reserved);
	spec_tree_number(o, "pending", (int64_t)pending);
	spec_tree_number(o, "running", (int64_t)running);
	spec_yaml_emit(o, 0, ret, ret_len);
}

bool spec_queue_view_same(const struct spec_queue_view *a, const struct spec_queue_view *b)
{
	cleanup_free char *one = NULL, *two = NULL;
	size_t len;

	spec_queue_view_text(a, NULL, 0, 0, &one, &len);
	spec_queue_view_text(b, NULL, 0, 0, &two, &len);
	return streq(a->meta.uid, b->meta.uid) && streq(one, two);
}
