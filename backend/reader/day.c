/* SPDX-License-Identifier: MIT */
/* Reads list.jsonl, list-1.jsonl and so on, as backend/keep/lister.h writes them. */
#include "backend/reader/day.h"

#include <uthash.h>

#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/job/listed.h"

#define JOBS_MAX 100000

bool day_is(const char *name)
{
	static const char form[] = "dddd-dd-dd";
	size_t i = 0;

	for (; form[i] && name[i]; i++)
		if (form[i] == '-' ? name[i] != '-' : name[i] < '0' || name[i] > '9')
			return false;
	return !form[i] && !name[i];
}

void day_clear(struct day_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		spec_job_unref(list->jobs[i]);
	free(list->jobs);
	*list = (struct day_list){0};
}

void day_add(struct day_list *list, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((stop ? stop : end) - text);
		struct spec_job *job;

		if (list->n < JOBS_MAX && spec_listed_parse(text, n, &job) == 0) {
			list->jobs = mem_more(list->jobs, list->n, sizeof(struct spec_job *));
			list->jobs[list->n++] = job;
		} else {
			list->passed_over += n > 0;
		}
		text += min_of(n + 1, (size_t)(end - text));
	}
}

static int compare(const void *a, const void *b)
{
	const struct spec_job *x = *(const struct spec_job *const *)a;
	const struct spec_job *y = *(const struct spec_job *const *)b;

	if (x->created != y->created)
		return x->created < y->created ? -1 : 1;
	return strcmp(x->uid, y->uid);
}

struct taken {
	char *name;
	UT_hash_handle hh;
};

/* Enter NAME into TABLE. False: it is there already. */
static bool take(struct taken **table, const char *name)
{
	struct taken *t;

	HASH_FIND_STR(*table, name, t);
	if (t)
		return false;
	t = new0(struct taken);
	t->name = text_copy(name);
	HASH_ADD_KEYPTR(hh, *table, t->name, strlen(t->name), t);
	return true;
}

static void forget(struct taken **table)
{
	struct taken *t, *next;

	HASH_ITER(hh, *table, t, next) {
		HASH_DEL(*table, t);
		free(t->name);
		free(t);
	}
}

void day_settle(struct day_list *list)
{
	struct taken *uids = NULL, *ids = NULL;
	size_t n = 0;

	if (list->n)
		qsort(list->jobs, list->n, sizeof(struct spec_job *), compare);
	for (size_t i = list->n; i-- > 0;) {
		const struct spec_job *job cleanup_job = take_ptr(list->jobs[i]);
		cleanup_free char *name = text_print("%s~%.8s", job->id, job->uid);
		struct spec_job *other;

		if (!take(&uids, job->uid))
			continue;
		if (take(&ids, job->id)) {
			list->jobs[i] = take_ptr(job);
		} else if (spec_name_is_file(name) && take(&ids, name)) {
			other = spec_job_copy(job);
			spec_set(&other->id, name);
			/* The other line has that name in it. */
			spec_text_unref(take_ptr(other->line));
			list->jobs[i] = spec_job_pack(other);
		}
	}
	for (size_t i = 0; i < list->n; i++)
		if (list->jobs[i])
			list->jobs[n++] = list->jobs[i];
	list->passed_over += list->n - n;
	list->n = n;
	forget(&uids);
	forget(&ids);
}
