/* SPDX-License-Identifier: MIT */
/* Each helper of an orphan is a task. Only its end matters. */
#include "backend/local/orphan.h"

#include <fcntl.h>
#include <utlist.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "spec/base/mem.h"

struct helper_of {
	struct orphan *orphan;
	char *name;
	int fd;		   /* -1 if the helper lives, but does not listen */
	struct task *task; /* NULL if it has ended, or is not watched yet */
};

struct orphan {
	char *dir;
	struct helper_of *v;
	size_t n;
	size_t live;
	uint64_t gpus;
	struct orphan **list;
	loop_fn fn;
	void *data;
	struct orphan *prev, *next;
};

/* --- on the pool --- */

struct search {
	struct tasks *tasks;
	struct orphan *o;
};

static int find_one(void *data, int at, const char *name, unsigned char type)
{
	struct search *s = data;
	struct orphan *o = s->o;
	cleanup_free char *task = NULL;
	struct task_found found;

	if (!has_end(name, HELPER_SOCK))
		return 0;
	task = mem_copy(name, strlen(name) - strlen(HELPER_SOCK));
	task_find(s->tasks, o->dir, task, &found);
	if (found.state != TASK_RUNS && found.state != TASK_UNKNOWN)
		return 0;
	o->gpus |= helper_gpus_read(o->dir, task);
	o->v = mem_more(o->v, o->n, sizeof(*o->v));
	o->v[o->n++] = (struct helper_of){.orphan = o, .name = take_ptr(task), .fd = found.fd};
	return 0;
}

struct orphan *orphan_find(struct tasks *tasks, const char *state_dir, const char *key)
{
	struct search s = {tasks, new0(struct orphan)};
	cleanup_free char *folder = NULL;

	s.o->dir = file_path(state_dir, key, NULL);
	folder = text_print("%s/" HELPER_DIR, s.o->dir);
	(void)disk_list(AT_FDCWD, folder, find_one, &s);
	if (s.o->n)
		return s.o;
	orphan_free(s.o);
	return NULL;
}

void orphan_free(struct orphan *o)
{
	for (size_t i = 0; i < o->n; i++) {
		task_release(o->v[i].task);
		if (o->v[i].fd >= 0)
			close(o->v[i].fd);
		free(o->v[i].name);
	}
	free(o->v);
	free(o->dir);
	free(o);
}

/* --- I/O thread --- */

static void on_ended(void *data, const struct task_end *end)
{
	struct helper_of *h = data;
	struct orphan *o = h->orphan;
	const loop_fn fn = o->fn;
	void *arg = o->data;

	h->task = NULL;
	if (--o->live)
		return;
	DL_DELETE(*o->list, o);
	orphan_free(o);
	return fn(arg);
}

void orphan_watch(struct orphan **list, struct orphan *o, struct tasks *tasks, loop_fn fn,
		  void *data)
{
	static const struct task_events events = {.ended = on_ended};

	o->list = list;
	o->fn = fn;
	o->data = data;
	o->live = o->n;
	DL_APPEND(*list, o);
	for (size_t i = 0; i < o->n; i++) {
		struct helper_of *h = &o->v[i];
		const int fd = h->fd;

		h->fd = -1;
		h->task = task_adopt(tasks, o->dir, h->name, fd, &events, h);
	}
}

void orphans_take(const struct orphan *list, struct spec_turns *turns)
{
	for (const struct orphan *o = list; o; o = o->next) {
		turns->running++;
		turns->taken |= o->gpus;
	}
}

void orphans_release(struct orphan **list)
{
	struct orphan *o, *next;

	DL_FOREACH_SAFE(*list, o, next) {
		DL_DELETE(*list, o);
		orphan_free(o);
	}
}
