/* SPDX-License-Identifier: MIT */
/* Reads the conditions for launching a job from its scheduler_args. */
#include "spec/app/hold.h"

#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/time.h"
#include "spec/base/value.h"

#define DAY (86400 * NS_PER_S)

static const char *const after_names[] = {"ok", "any", "failed", NULL};

bool spec_hold_moment(const char *text, int64_t now, int64_t (*local)(int64_t), int64_t *ret)
{
	static const char *const rests[] = {"", "Z", ":00Z", "T00:00:00Z"};
	int64_t seconds;

	if (*text == '+') {
		if (!spec_time_span_parse(text + 1, &seconds) || !strpbrk(text, "smhd") ||
		    seconds > SPEC_MAX_LIMIT)
			return false;
		*ret = now + seconds * NS_PER_S;
		return true;
	}
	for (size_t i = 0; i < array_size(rests); i++) {
		cleanup_free char *whole = text_print("%s%s", text, rests[i]);

		if (!*text || spec_time_parse(whole, strlen(whole), ret) != strlen(whole))
			continue;
		*ret = min_of(max_of(*ret, DAY), INT64_MAX - DAY);
		if (i > 0 && local)
			*ret = local(*ret);
		return true;
	}
	return false;
}

struct spec_held_after *spec_held_add(struct spec_held *h)
{
	struct spec_held_after *a;

	h->after = mem_more(h->after, h->n_after, sizeof(*h->after));
	a = &h->after[h->n_after++];
	*a = (struct spec_held_after){0};
	a->id = a->uid = a->submission = a->end = spec_empty();
	return a;
}

void spec_held_free(struct spec_held *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n_after; i++) {
		struct spec_held_after *a = &h->after[i];

		spec_unset(&a->id, &a->uid, &a->submission, &a->end);
	}
	free(h->after);
	free(h);
}

static int wrong(const struct spec_value *value, struct spec_errors *e, const char *text)
{
	cleanup_free char *path = text_print("scheduler_args.%s", value->key);

	return spec_errors_add(e, -EINVAL, 0, 0, path, "%s", text);
}

static bool is_text(const struct spec_value *value)
{
	return value->type == SPEC_VALUE_STRING && *value->text && strlen(value->text) == value->n;
}

static int add_after(struct spec_held *h, const struct spec_value *value,
		     const struct spec_value *item, struct spec_errors *e)
{
	const char *colon = is_text(item) ? strchr(item->text, ':') : NULL;
	struct spec_held_after *a;
	int how = -1;

	for (int i = 0; colon && after_names[i]; i++)
		if (strlen(after_names[i]) == (size_t)(colon - item->text) &&
		    strncmp(after_names[i], item->text, strlen(after_names[i])) == 0)
			how = i;
	if (how < 0 || !spec_name_is_file(colon + 1))
		return wrong(value, e,
			     "must be a list of jobs to wait for, as in [ok:prep, any:ID, "
			     "failed:prep.yaml]. Each item is ok:JOB, any:JOB or failed:JOB, with "
			     "no blank. JOB is a job's ID, or the name of the file in submit/ that "
			     "launched the job");
	if (h->n_after == SPEC_MAX_AFTER)
		return wrong(value, e, "has more than 100 jobs");
	a = spec_held_add(h);
	a->how = (unsigned)how;
	spec_set(&a->id, colon + 1);
	return 0;
}

static void read_after(struct spec_held *h, const struct spec_value *value, struct spec_errors *e)
{
	int ret = 0;

	if (value->type != SPEC_VALUE_LIST)
		add_after(h, value, value, e);
	else
		for (unsigned i = 0; i < value->n && !ret; i++)
			ret = add_after(h, value, &value->items[i], e);
}

static const char *const names[] = {"hold", "begin", "after", NULL};

_Static_assert(array_size(names) == SPEC_N_HOLDS + 1, "count all names");

const char *spec_hold_name(size_t i)
{
	return names[i];
}

bool spec_hold_is(const char *name)
{
	return streq_any(name, names);
}

void spec_hold_read(struct spec_held *h, const struct spec_value *value, int64_t now,
		    int64_t (*local)(int64_t), struct spec_errors *e)
{
	if (value->type == SPEC_VALUE_NULL)
		return;
	if (streq(value->key, "hold")) {
		if (value->type != SPEC_VALUE_BOOL)
			wrong(value, e, "must be true or false");
		h->hold = *value->text == 't';
	} else if (streq(value->key, "begin")) {
		if (!is_text(value) || !spec_hold_moment(value->text, now, local, &h->begin))
			wrong(value, e,
			      "must be a time, like 2026-12-01T08:00 (local time, unless an "
			      "offset or Z follows), or a delay, like +90s, +30m, +2h or +1d");
	} else if (streq(value->key, "after")) {
		read_after(h, value, e);
	}
}
