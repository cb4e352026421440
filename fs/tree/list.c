/* SPDX-License-Identifier: MIT */
/*
 * The files list and list.jsonl. Those in the root list jobs/, those in history/ list history/.
 * Their texts are cached. An open renders a text again only if a job has changed, or an age in the
 * text is out of date. Rendering 100 000 jobs takes seconds; meanwhile other requests are served.
 * FUSE thread.
 */
#include <pthread.h>

#include "fs/tree/job_ref.h"
#include "fs/vfs/serve.h"

struct list_text {
	struct spec_text *text;
	uint64_t revision;
	int64_t stale_since;
	int64_t made, until; /* TEXT is valid from MADE to UNTIL, in ns */
};

struct list_file {
	struct list_text now;
	/*
	 * Serializes rendering, which runs without the session lock. Not a struct lock, because a
	 * thread that has a struct lock must not render.
	 */
	pthread_mutex_t rendering;
	struct spec_list *list; /* under RENDERING */
};

struct lists {
	struct list_file all[BACKEND_N_PLACES][SPEC_LIST_N_FORMS];
};

struct lists *lists_new(void)
{
	struct lists *lists = new0(struct lists);

	for (size_t place = 0; place < BACKEND_N_PLACES; place++) {
		for (size_t form = 0; form < SPEC_LIST_N_FORMS; form++) {
			struct list_file *f = &lists->all[place][form];

			pthread_mutex_init(&f->rendering, NULL);
			f->list = spec_list_new((enum spec_list_form)form);
		}
	}
	return lists;
}

void lists_free(struct lists *lists)
{
	if (!lists)
		return;
	for (size_t place = 0; place < BACKEND_N_PLACES; place++) {
		for (size_t form = 0; form < SPEC_LIST_N_FORMS; form++) {
			struct list_file *f = &lists->all[place][form];

			spec_text_unref(f->now.text);
			pthread_mutex_destroy(&f->rendering);
			spec_list_free(f->list);
		}
	}
	free(lists);
}

/* Render LIST into T, with the ages at the time T->made. */
static void list_make(struct spec_list *list, struct backend *b, enum backend_place place,
		      struct list_text *t)
{
	const struct spec_job **jobs cleanup_free = NULL;
	size_t n = 0;

	/* Read the revision first: if a job changes meanwhile, the next open renders again. */
	t->revision = backend_revision(b, place);
	backend_jobs(b, place, &jobs, &n);
	t->text = spec_list_text(list, jobs, n, t->stale_since, t->made, &t->until);
	for (size_t i = 0; i < n; i++)
		spec_job_unref(jobs[i]);
}

static const struct list_class *list_class_of(const struct node *node)
{
	const struct text_class *text = container_of(node->class, struct text_class, class);

	return container_of(text, struct list_class, text);
}

static struct list_file *list_of(const struct node *node)
{
	const struct list_class *class = list_class_of(node);

	return &tree_of(node)->lists->all[class->place][class->form];
}

/* Render NODE's text again if it is out of date. Return 0 or a negative errno. */
static int list_refresh(const struct node *node)
{
	const struct list_class *class = list_class_of(node);
	const struct tree *tree = tree_of(node);
	struct list_file *f = list_of(node);
	const struct list_text *t = &f->now;
	struct list_text next = {
		.stale_since =
			class->place == BACKEND_JOBS ? backend_stale_since(tree->backend) : 0,
		.made = loop_time_ns(),
	};
	int err;

	if (t->text && t->revision == backend_revision(tree->backend, class->place) &&
	    t->stale_since == next.stale_since && t->made <= next.made && next.made < t->until)
		return 0;
	err = serve_disk_begin(tree->fs);
	if (err)
		return err;
	pthread_mutex_lock(&f->rendering);
	list_make(f->list, tree->backend, class->place, &next);
	pthread_mutex_unlock(&f->rendering);
	serve_disk_end(tree->fs);
	spec_text_unref(f->now.text);
	f->now = next;
	return 0;
}

static void list_opened(struct node *node)
{
	const struct list_class *class = list_class_of(node);

	if (class->place != BACKEND_JOBS)
		return;
	backend_wanted(tree_of(node)->backend, BACKEND_POSITIONS);
	if (class->form == SPEC_LIST_JSON)
		backend_wanted(tree_of(node)->backend, BACKEND_USAGE);
}

static int list_share(struct fs *fs, struct node *node, struct spec_text **ret)
{
	int err = list_refresh(node);

	if (err)
		return err;
	*ret = spec_text_ref(list_of(node)->now.text);
	return 0;
}

static int list_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	const struct list_text *t = &list_of(node)->now;
	int err = list_refresh(node);

	if (err)
		return err;
	node_set_times(st, t->made, fs->started);
	st->st_size = (off_t)t->text->len;
	return 0;
}

#define LIST_CLASS(file, of_place, in_form)                                                        \
	const struct list_class file = {                                                           \
		.text = {.class =                                                                  \
				 {.name = #file, TEXT_OPS, .live = true, .getattr = list_getattr}, \
			 .share = list_share,                                                      \
			 .opened = list_opened},                                                   \
		.place = of_place,                                                                 \
		.form = in_form,                                                                   \
	}

LIST_CLASS(list_jobs_table, BACKEND_JOBS, SPEC_LIST_TABLE);
LIST_CLASS(list_jobs_json, BACKEND_JOBS, SPEC_LIST_JSON);
LIST_CLASS(list_history_table, BACKEND_HISTORY, SPEC_LIST_TABLE);
LIST_CLASS(list_history_json, BACKEND_HISTORY, SPEC_LIST_JSON);
