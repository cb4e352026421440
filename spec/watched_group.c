/* SPDX-License-Identifier: MIT */
/* Pod groups: what the scheduler says of the pods of a job together. */
#include <errno.h>

#include "spec/view_impl.h"
#include "spec/watched.h"

void spec_group_view_free(struct spec_group_view *v)
{
	if (!v)
		return;
	spec_meta_clear(&v->meta);
	spec_unset(&v->phase);
	spec_amounts_clear(&v->needs);
	free(v);
}

static void group_freep(struct spec_group_view **v)
{
	spec_group_view_free(*v);
}

static struct spec_group_view *group_new(void)
{
	struct spec_group_view *v = calloc(1, sizeof(*v));

	if (v && spec_meta_init(&v->meta) == 0 && spec_set(&v->phase, "") == 0)
		return v;
	spec_group_view_free(v);
	return NULL;
}

/* When condition TYPE became true; 0: it is not. */
static int64_t true_since(struct json_object *conditions, const char *type)
{
	int64_t ret = 0;

	for (size_t i = 0; i < spec_read_count(conditions); i++) {
		struct json_object *c = spec_read_at(conditions, i);

		if (streq(spec_read_text(c, "type"), type) &&
		    streq(spec_read_text(c, "status"), "True"))
			ret = max_of(spec_read_time(c, "lastTransitionTime"), INT64_C(1));
	}
	return ret;
}

static int read_group(struct spec_group_view *v, struct json_object *object)
{
	struct json_object *spec = spec_read_map(object, "spec");
	struct json_object *status = spec_read_map(object, "status");
	struct json_object *conditions = spec_read_list(status, "conditions");

	v->minimum = (unsigned)spec_read_int(spec, "minMember", 0);
	/* The scheduler leaves the old condition in place when it has changed its mind. */
	v->is_short = true_since(conditions, "Unschedulable") > true_since(conditions, "Scheduled");
	if (spec_read_copy(&v->phase, spec_read_text(status, "phase"), READ_MAX_WORD) < 0)
		return -ENOMEM;
	return spec_amounts_read(&v->needs, spec_read_map(spec, "minResources"));
}

int spec_group_view_parse(const char *json, size_t len, struct spec_group_view **ret)
{
	cleanup(group_freep) struct spec_group_view *v = group_new();
	struct json_object *o cleanup_json = NULL;
	int err = v ? spec_view_object(json, len, &o) : -ENOMEM;

	if (!err)
		err = spec_meta_read(o, &v->meta);
	if (!err)
		err = read_group(v, o);
	if (!err)
		*ret = take_ptr(v);
	return err;
}
