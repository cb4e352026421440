/* SPDX-License-Identifier: MIT */
/*
 * A lister goes through the files list.jsonl, list-1.jsonl and so on, and replaces lines where they stand. New lines go
 * into the last file, or, where that has no room, into another.
 *
 *	FILE  | a file is read                  | NEXT; there is none: MERGE
 *	NEXT  | is there one behind it?         | MERGE
 *	MERGE | the pool puts the lines into it | PUT, if that is another text now; FILE of the next
 *	PUT   | that                            | FILE of the next; MERGE of a new one with what is left; over
 */
#include "backend/keep/lister.h"

#include <errno.h>

#include "backend/base/work.h"

struct lister {
	struct loop *loop;
	struct group *group;
	struct archive *archive;
	char *namespace, *day;
	struct keep_line *lines;
	size_t n;
	char *text; /* text of file NUMBER, while the lister has that */
	size_t len;
	unsigned number;
	bool changed; /* it differs from the archive's */
	bool last;    /* there is no file behind it, so the lines that are left are added here */
	struct work work;
	bool working; /* the pool works on it */
	bool cancelled;
	archive_done_fn done;
	void *data;
};

static void get(struct lister *l);

static char *name_of(const struct lister *l, unsigned number)
{
	cleanup_free char *mark = number ? text_print("-%u", number) : text_copy("");

	return text_print("%s/%s/list%s.jsonl", l->namespace, l->day, mark);
}

static void lister_free(struct lister *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->lines[i].text);
	free(l->lines);
	free(l->text);
	free(l->namespace);
	free(l->day);
	free(l);
}

void lister_cancel(struct lister *l)
{
	l->cancelled = true;
	if (!l->working) /* else it is freed when the pool is done with it */
		lister_free(l);
}

static void over(struct lister *l, int err, const char *text)
{
	l->done(l->data, err, text);
	lister_free(l);
}

/* Runs on the pool. */
static void merge(void *data)
{
	struct lister *l = data;
	char *text;
	size_t len;

	/* kxfs makes no file as long as the largest object: such a file may have more than was read. */
	if (l->len == ARCHIVE_MAX)
		return;
	l->changed |= keep_list_merge(l->text ? l->text : "", l->len, l->lines, l->n, l->last,
				      ARCHIVE_MAX - 1, &text, &len);
	free(l->text);
	l->text = text;
	l->len = len;
}

static void on_merged(void *data);

static void run_merge(struct lister *l)
{
	l->working = true;
	l->work = (struct work){.run = merge, .done = on_merged, .data = l, .group = l->group};
	work_start(&l->work, l->loop);
}

static void on_put(void *data, int err, const char *text)
{
	struct lister *l = data;
	bool left = false;

	if (err)
		return over(l, err, text);
	/* A line for which no file has room is left out; the job's own directory tells the same. */
	for (size_t i = 0; i < l->n; i++)
		left |= !l->lines[i].placed && l->lines[i].len < ARCHIVE_MAX;
	if (!left)
		return over(l, 0, "");
	free(take_ptr(l->text));
	l->len = 0;
	l->changed = false;
	l->number++;
	if (l->last)
		return run_merge(l);
	get(l);
}

static void on_merged(void *data)
{
	struct lister *l = data;
	cleanup_free char *name = NULL;

	l->working = false;
	if (l->cancelled)
		return lister_free(l);
	name = name_of(l, l->number);
	if (!l->changed)
		return on_put(l, 0, "");
	archive_put(l->archive, name, take_ptr(l->text), l->len, on_put, l);
}

static void on_next(void *data, int err, const char *text, const char *bytes, size_t n)
{
	struct lister *l = data;

	if (err && err != -ENOENT)
		return over(l, err, text);
	l->last = err;
	run_merge(l);
}

static void on_file(void *data, int err, const char *text, const char *bytes, size_t n)
{
	struct lister *l = data;
	cleanup_free char *name = name_of(l, l->number + 1);

	if (err == -ENOENT)
		return on_next(l, err, text, NULL, 0);
	if (err)
		return over(l, err, text);
	l->text = mem_copy(bytes, n);
	l->len = n;
	archive_get(l->archive, name, 0, 1, on_next, l);
}

static void get(struct lister *l)
{
	cleanup_free char *name = name_of(l, l->number);

	archive_get(l->archive, name, 0, ARCHIVE_MAX, on_file, l);
}

struct lister *lister_start(struct loop *loop, struct group *group, struct archive *archive,
			    const char *namespace, const char *day, struct keep_line *lines,
			    size_t n, archive_done_fn done, void *data)
{
	struct lister *l = new0(struct lister);

	*l = (struct lister){
		.loop = loop,
		.group = group,
		.archive = archive,
		.namespace = text_copy(namespace),
		.day = text_copy(day),
		.lines = lines,
		.n = n,
		.done = done,
		.data = data,
	};
	get(l);
	return l;
}
