/* SPDX-License-Identifier: MIT */
/* Lists of transitions: a few dozen at most, so they are moved and copied as they are. */
#include "spec/transition.h"

#include <errno.h>

#include "spec/field.h"
#include "spec/job.h"

#define FIELD(name, type) SPEC_FIELD(struct spec_transition, name, type, 0, 0)

static const struct spec_field fields[] = {
	FIELD(time, SPEC_FIELD_TIME),
	FIELD(state, SPEC_FIELD_STATE),
	FIELD(phase, SPEC_FIELD_TEXT),
};

static int append(struct spec_transitions *t, const struct spec_transition *one)
{
	struct spec_transition copy = {.time = one->time, .state = one->state};
	struct spec_transition *v;

	if (spec_set(&copy.phase, one->phase) < 0)
		return -ENOMEM;
	if (t->v && t->n == SPEC_MAX_TRANSITIONS) {
		spec_unset(&t->v[0].phase);
		memmove(t->v, t->v + 1, --t->n * sizeof(*t->v));
	}
	v = reallocarray(t->v, t->n + 1, sizeof(*v));
	if (!v) {
		spec_unset(&copy.phase);
		return -ENOMEM;
	}
	t->v = v;
	v[t->n++] = copy;
	return 0;
}

int spec_transitions_add(struct spec_transitions *t, enum spec_state state, const char *phase,
			 int64_t time)
{
	const struct spec_transition *last = t->n ? &t->v[t->n - 1] : NULL;
	const struct spec_transition one = {
		.time = last ? max_of(time, last->time) : time,
		.state = state,
		.phase = (char *)(uintptr_t)phase,
	};

	if (last && last->state == state && streq(last->phase, phase))
		return 0;
	return append(t, &one);
}

int spec_transitions_copy(struct spec_transitions *to, const struct spec_transitions *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (append(to, &from->v[i]) < 0)
			return -ENOMEM;
	return 0;
}

void spec_transitions_clear(struct spec_transitions *t)
{
	for (size_t i = 0; i < t->n; i++)
		spec_unset(&t->v[i].phase);
	free(t->v);
	*t = (struct spec_transitions){0};
}

void spec_transitions_write(struct spec_tree *tree, struct json_object *o,
			    const struct spec_transitions *t)
{
	struct json_object *list =
		spec_tree_add(tree, o, "transitions", spec_tree_list(tree, t->n));

	for (size_t i = 0; i < t->n; i++)
		spec_fields_write(tree, spec_tree_append(tree, list, spec_tree_map(tree)), fields,
				  array_size(fields), &t->v[i], false);
}

int spec_transitions_read(struct json_object *o, struct spec_transitions *t)
{
	struct json_object *list;

	if (!json_object_object_get_ex(o, "transitions", &list))
		return 0;
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > SPEC_MAX_TRANSITIONS)
		return -EINVAL;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct spec_transition one = {0};
		int err = spec_fields_read(json_object_array_get_idx(list, i), fields,
					   array_size(fields), &one);

		if (err == 0)
			err = append(t, &one);
		spec_unset(&one.phase);
		if (err < 0)
			return err;
	}
	return 0;
}
