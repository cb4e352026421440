/* SPDX-License-Identifier: MIT */
/* Queues, and the text of queues/NAME/status. */
#include <errno.h>

#include "spec/view_impl.h"
#include "spec/watched.h"
#include "spec/yaml.h"

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
	free(v);
}

static void queue_unrefp(struct spec_queue_view **v)
{
	spec_queue_view_unref(*v);
}

static struct spec_queue_view *queue_new(void)
{
	struct spec_queue_view *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->refs = 1;
	if (spec_meta_init(&v->meta) == 0 && spec_set(&v->state, "") == 0)
		return v;
	spec_queue_view_unref(v);
	return NULL;
}

static int read_queue(struct spec_queue_view *v, struct json_object *object)
{
	struct json_object *spec = spec_read_map(object, "spec");
	struct json_object *status = spec_read_map(object, "status");
	struct json_object *reservation = spec_read_map(status, "reservation");
	int err;

	v->weight = (unsigned)spec_read_int(spec, "weight", 1);
	err = spec_read_copy(&v->state, spec_read_text(status, "state"), READ_MAX_WORD);
	if (!err)
		err = spec_amounts_read(&v->capability, spec_read_map(spec, "capability"));
	if (!err)
		err = spec_amounts_read(&v->allocated, spec_read_map(status, "allocated"));
	return err ? err : spec_amounts_read(&v->reserved, spec_read_map(reservation, "resource"));
}

int spec_queue_view_parse(const char *json, size_t len, struct spec_queue_view **ret)
{
	cleanup(queue_unrefp) struct spec_queue_view *v = queue_new();
	struct json_object *o cleanup_json = NULL;
	int err = v ? spec_view_object(json, len, &o) : -ENOMEM;

	if (!err)
		err = spec_meta_read(o, &v->meta);
	if (!err)
		err = read_queue(v, o);
	if (!err)
		*ret = take_ptr(v);
	return err;
}

bool spec_queue_view_same(const struct spec_queue_view *a, const struct spec_queue_view *b)
{
	return streq(a->meta.uid, b->meta.uid) && streq(a->state, b->state) &&
	       a->weight == b->weight && spec_amounts_equal(&a->capability, &b->capability) &&
	       spec_amounts_equal(&a->allocated, &b->allocated) &&
	       spec_amounts_equal(&a->reserved, &b->reserved);
}

static void put_amounts(struct spec_tree *t, struct json_object *o, const char *key,
			const struct spec_amounts *a)
{
	struct json_object *map = spec_tree_add(t, o, key, json_object_new_object());

	for (size_t i = 0; map && i < a->n; i++)
		spec_tree_set(t, map, a->v[i].name, spec_tree_string(t, a->v[i].text));
}

int spec_queue_view_text(const struct spec_queue_view *v, size_t pending, size_t running,
			 char **ret, size_t *ret_len)
{
	cleanup_json struct json_object *o = json_object_new_object();
	struct spec_tree t = {0};

	spec_tree_text(&t, o, "name", v->meta.name);
	spec_tree_text(&t, o, "state", v->state);
	spec_tree_number(&t, o, "weight", v->weight);
	put_amounts(&t, o, "capability", &v->capability);
	put_amounts(&t, o, "allocated", &v->allocated);
	put_amounts(&t, o, "reserved", &v->reserved);
	spec_tree_number(&t, o, "pending", (int64_t)pending);
	spec_tree_number(&t, o, "running", (int64_t)running);
	return t.failed ? -ENOMEM : spec_yaml_emit(o, 0, ret, ret_len);
}
