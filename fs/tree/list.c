/* SPDX-License-Identifier: MIT */
/*
 * list and list.jsonl, in the root for jobs/ and in history/: all jobs in one text. A text is made anew only when
 * somebody asks for it after a job, or an age in it, has changed; all who open it meanwhile share it. FUSE thread, but
 * for the making: of 100 000 jobs that takes seconds, in which others are served.
 */
#include "fs/tree/place.h"

#define QUEUES_MAX 64 /* the most queues that the backend asks for at one time */

struct list_text {
	struct spec_list *list;
	/* A job of each queue in which some wait, whose places are asked for while somebody reads. */
	const struct spec_job *waiting[QUEUES_MAX];
	size_t n_waiting;
	struct spec_text *text; /* NULL: none was asked for yet */
	uint64_t revision;	/* what it was made from: of the backend's jobs, */
	int64_t stale_since;	/* whether they were confirmed, */
	int64_t made, until;	/* and at which times (ns) it is the same */
};

struct lists {
	struct list_text all[BACKEND_N_PLACES][SPEC_LIST_N_FORMS];
};

struct lists *lists_new(void)
{
	struct lists *lists = new0(struct lists);

	for (size_t place = 0; place < BACKEND_N_PLACES; place++)
		for (size_t form = 0; form < SPEC_LIST_N_FORMS; form++)
			lists->all[place][form].list = spec_list_new((enum spec_list_form)form);
	return lists;
}

static void list_forget_waiting(struct list_text *t)
{
	while (t->n_waiting > 0)
		spec_job_unref(t->waiting[--t->n_waiting]);
}

void lists_free(struct lists *lists)
{
	if (!lists)
		return;
	for (size_t place = 0; place < BACKEND_N_PLACES; place++) {
		for (size_t form = 0; form < SPEC_LIST_N_FORMS; form++) {
			list_forget_waiting(&lists->all[place][form]);
			spec_list_free(lists->all[place][form].list);
			spec_text_unref(lists->all[place][form].text);
		}
	}
	free(lists);
}

static void list_make(struct list_text *t, struct backend *b, enum backend_place place, int64_t now)
{
	const struct spec_job **jobs cleanup_free = NULL;
	size_t n = 0;

	/* The revision is read first: a change in between is then seen the next time. */
	t->revision = backend_revision(b, place);
	backend_jobs(b, place, &jobs, &n);
	spec_text_unref(t->text);
	t->text = spec_list_text(t->list, jobs, n, t->stale_since, now, &t->until);
	t->made = now;
	list_forget_waiting(t);
	for (size_t i = 0; i < n && t->n_waiting < QUEUES_MAX; i++) {
		const struct spec_job *job = jobs[i];
		size_t q = 0;

		if (!*job->queue || (job->state != SPEC_PENDING && job->state != SPEC_SUBMITTED))
			continue;
		while (q < t->n_waiting && !streq(t->waiting[q]->queue, job->queue))
			q++;
		if (q == t->n_waiting)
			t->waiting[t->n_waiting++] = spec_job_ref(job);
	}
	for (size_t i = 0; i < n; i++)
		spec_job_unref(jobs[i]);
}

static const struct list_class *list_class_of(const struct node *node)
{
	const struct text_class *text = container_of(node->class, struct text_class, class);

	return container_of(text, struct list_class, text);
}

/* The text as it is now. */
static struct list_text *list_now(const struct node *node)
{
	const struct list_class *class = list_class_of(node);
	const struct tree *tree = tree_of(node);
	struct list_text *t = &tree->lists->all[class->place][class->form];
	int64_t stale_since = class->place == BACKEND_JOBS ? backend_stale_since(tree->backend) : 0;
	int64_t now = loop_time_ns();

	if (t->text && t->revision == backend_revision(tree->backend, class->place) &&
	    t->stale_since == stale_since && t->made <= now && now < t->until)
		return t;
	t->stale_since = stale_since;
	list_make(t, tree->backend, class->place, now);
	return t;
}

static void list_opened(struct node *node)
{
	const struct list_class *class = list_class_of(node);
	const struct list_text *t;

	place_look(tree_of(node)->fs, tree_of(node), class->place);
	t = list_now(node);

	for (size_t i = 0; i < t->n_waiting; i++)
		backend_wanted(tree_of(node)->backend, t->waiting[i]);
	if (class->place == BACKEND_JOBS && class->form == SPEC_LIST_JSON)
		backend_usage_wanted(tree_of(node)->backend);
}

static int list_share(struct fs *fs, struct node *node, struct spec_text **ret)
{
	(void)fs;
	*ret = spec_text_ref(list_now(node)->text);
	return 0;
}

static int list_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	const struct list_text *t = list_now(node);

	node_set_times(st, t->made, fs->started);
	st->st_size = (off_t)t->text->len;
	return 0;
}

#define LIST_CLASS(file, of_place, in_form)                                                        \
	const struct list_class file = {                                                           \
		.text =                                                                            \
			{                                                                          \
				.class =                                                           \
					{                                                          \
						.name = #file,                                     \
						.mode = S_IFREG | 0644,                            \
						.live = true,                                      \
						.getattr = list_getattr,                           \
						TEXT_OPS,                                          \
					},                                                         \
				.share = list_share,                                               \
				.opened = list_opened,                                             \
			},                                                                         \
		.place = of_place,                                                                 \
		.form = in_form,                                                                   \
	}

LIST_CLASS(list_jobs_table, BACKEND_JOBS, SPEC_LIST_TABLE);
LIST_CLASS(list_jobs_json, BACKEND_JOBS, SPEC_LIST_JSON);
LIST_CLASS(list_history_table, BACKEND_HISTORY, SPEC_LIST_TABLE);
LIST_CLASS(list_history_json, BACKEND_HISTORY, SPEC_LIST_JSON);
