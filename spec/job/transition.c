/* SPDX-License-Identifier: MIT */
/*
 * States and lists of transitions. The lists are short, so dropping the oldest one moves all
 * others.
 */
#include "spec/job/transition.h"

#include <assert.h>
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/yaml/field.h"

const char *const spec_state_words[SPEC_N_STATES + 1] = {
	[SPEC_SUBMITTED] = "SUBMITTED", [SPEC_PENDING] = "PENDING", [SPEC_RUNNING] = "RUNNING",
	[SPEC_SUCCEEDED] = "SUCCEEDED", [SPEC_FAILED] = "FAILED",   [SPEC_CANCELLED] = "CANCELLED",
	[SPEC_UNKNOWN] = "UNKNOWN",
};

const char *spec_state_name(enum spec_state state)
{
	assert((unsigned)state < SPEC_N_STATES);
	return spec_state_words[state];
}

bool spec_state_is_final(enum spec_state state)
{
	return state == SPEC_SUCCEEDED || state == SPEC_FAILED || state == SPEC_CANCELLED;
}

#define FIELD(name, type, ...) SPEC_FIELD(struct spec_transition, name, type, __VA_ARGS__)

static const struct spec_field fields[] = {
	FIELD(time, SPEC_FIELD_TIME),
	FIELD(state, SPEC_FIELD_WORD, .words = spec_state_words),
	FIELD(phase, SPEC_FIELD_TEXT),
};

static void append(struct spec_transitions *t, const struct spec_transition *one)
{
	struct spec_transition copy = {.time = one->time, .state = one->state};

	spec_set(&copy.phase, one->phase);
	if (t->v && t->n == SPEC_MAX_TRANSITIONS) {
		spec_unset(&t->v[0].phase);
		memmove(t->v, t->v + 1, --t->n * sizeof(*t->v));
	}
	t->v = mem_grow(t->v, t->n + 1, sizeof(*t->v));
	t->v[t->n++] = copy;
}

void spec_transitions_add(struct spec_transitions *t, enum spec_state state, const char *phase,
			  int64_t time)
{
	const struct spec_transition *last = t->n ? &t->v[t->n - 1] : NULL;
	const struct spec_transition one = {
		.time = last ? max_of(time, last->time) : time,
		.state = state,
		.phase = (char *)(uintptr_t)phase,
	};

	if (!last || last->state != state || !streq(last->phase, phase))
		append(t, &one);
}

void spec_transitions_copy(struct spec_transitions *to, const struct spec_transitions *from)
{
	for (size_t i = 0; i < from->n; i++)
		append(to, &from->v[i]);
}

void spec_transitions_clear(struct spec_transitions *t)
{
	for (size_t i = 0; i < t->n; i++)
		spec_unset(&t->v[i].phase);
	free(t->v);
	*t = (struct spec_transitions){0};
}

void spec_transitions_write(struct json_object *o, const struct spec_transitions *t)
{
	struct json_object *list = spec_tree_add(o, "transitions", spec_tree_list(t->n));

	for (size_t i = 0; i < t->n; i++)
		spec_fields_write(spec_tree_append(list, spec_tree_map()), fields,
				  array_size(fields), &t->v[i], false);
}

int spec_transitions_read(const struct spec_value *o, struct spec_transitions *t)
{
	const struct spec_value *list = spec_read_member(o, "transitions");

	if (!list)
		return 0;
	if (list->type != SPEC_VALUE_LIST || list->n > SPEC_MAX_TRANSITIONS)
		return -EINVAL;
	for (size_t i = 0; i < list->n; i++) {
		struct spec_transition one = {0};
		int err = spec_fields_read(&list->items[i], fields, array_size(fields), &one);

		if (err == 0)
			append(t, &one);
		spec_unset(&one.phase);
		if (err < 0)
			return err;
	}
	return 0;
}
