/* SPDX-License-Identifier: MIT */
/* Reads last words with a timeout, because kxfs reports a job's end only after the read ends. */
#include "backend/jobs/last_words.h"

#include <fcntl.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/work.h"
#include "spec/base/mem.h"
#include "spec/job/status.h"

#define PATIENCE_MS 3000u
#define ERROR_MAX   (256u << 10)
#define TAIL	    (16u << 10)

struct last_words {
	struct work work;
	struct loop_timer timer;
	char *error, *log;
	char *words; /* what the pool has read; NULL if the log is empty */
	void (*fn)(void *data, const char *words); /* NULL after last_words_drop or the timeout */
	void *data;
};

static void read_words(void *data)
{
	struct last_words *w = data;
	cleanup_free char *text = NULL;
	cleanup_fd int fd = -1;
	char tail[TAIL];
	size_t len;
	struct stat st;
	uint64_t from = 0;
	ssize_t n = 0;

	if (w->error && file_read(w->error, ERROR_MAX, &text, &len) == 0)
		w->words = spec_last_error(text, len);
	if (w->words)
		return;
	fd = disk_open(AT_FDCWD, w->log, O_RDONLY | O_NONBLOCK);
	if (fd >= 0 && disk_stat(fd, "", &st) == 0) {
		if (st.st_size == 0)
			return;
		from = (uint64_t)max_of(st.st_size - (off_t)TAIL, (off_t)0);
		n = file_read_at(fd, tail, sizeof(tail), from);
	}
	w->words = spec_last_lines(tail, (size_t)max_of(n, (ssize_t)0), from > 0);
}

static void finish(struct last_words *w, const char *words)
{
	void (*fn)(void *data, const char *words) = w->fn;

	last_words_drop(w);
	if (fn)
		fn(w->data, words);
}

static void on_time(void *data)
{
	finish(data, "");
}

static void on_read(void *data)
{
	struct last_words *w = data;

	finish(w, w->words);
	free(w->error);
	free(w->log);
	free(w->words);
	free(w);
}

struct last_words *last_words_read(struct loop *loop, struct group *group, const char *error,
				   const char *log, void (*fn)(void *data, const char *words),
				   void *data)
{
	struct last_words *w = new0(struct last_words);

	w->error = error ? text_copy(error) : NULL;
	w->log = text_copy(log);
	w->fn = fn;
	w->data = data;
	loop_timer_init(&w->timer, loop, on_time, w);
	loop_timer_set(&w->timer, PATIENCE_MS);
	w->work = (struct work){.run = read_words, .done = on_read, .group = group, .data = w};
	work_start(&w->work, loop);
	return w;
}

void last_words_drop(struct last_words *w)
{
	if (!w)
		return;
	w->fn = NULL;
	loop_timer_stop(&w->timer);
}
