/* SPDX-License-Identifier: MIT */
/*
 * Tries what a mount does with an archive: lists its names, puts the object `doctor`, always the same, and reads it.
 * Each call has a deadline, so the whole takes a limited time.
 */
#include <errno.h>
#include <semaphore.h>

#include "backend/archive/archive.h"
#include "backend/backend.h"
#include "spec/base/mem.h"

#define NAME "doctor"
#define TEXT "kxfs doctor has written this, to see whether it can.\n"

struct examine {
	struct archive *archive;
	const char *dir;
	void (*fn)(void *data, enum backend_grade grade, const char *text);
	void *data;
	sem_t done;
};

static void on_stopped(void *data)
{
	struct examine *e = data;

	sem_post(&e->done);
}

/* Say that WHAT works; or, with ERR, that it does not, and that nothing more is tried. True: go on. */
static bool say(struct examine *e, const char *what, int err, const char *text)
{
	cleanup_free char *line =
		err ? text_print("archive: %s", text) : text_print("archive %s: %s", e->dir, what);

	e->fn(e->data, err ? BACKEND_LACKS : BACKEND_FINE, line);
	if (err)
		archive_stop(e->archive, on_stopped, e);
	return !err;
}

static void on_got(void *data, int err, const char *text, const char *bytes, size_t n)
{
	struct examine *e = data;

	if (!err && (n != strlen(TEXT) || memcmp(bytes, TEXT, n) != 0)) {
		err = -EIO;
		text = "what was written reads back as something else";
	}
	if (say(e, "can be listed, written (the object " NAME ") and read", err, text))
		archive_stop(e->archive, on_stopped, e);
}

static void on_put(void *data, int err, const char *text)
{
	struct examine *e = data;

	cleanup_free char *read_only = text_print(
		"%s; it can be listed, which is enough for a mount, not for kxfs capture", text);

	if (err)
		say(e, "", err, read_only);
	else
		archive_get(e->archive, NAME, 0, ARCHIVE_MAX, on_got, e);
}

static void on_listed(void *data, int err, const char *text, const struct archive_object *objects,
		      size_t n, bool more)
{
	struct examine *e = data;

	if (err)
		say(e, "", err, text);
	else
		archive_put(e->archive, NAME, text_copy(TEXT), strlen(TEXT), on_put, e);
}

static void begin(void *data)
{
	struct examine *e = data;

	archive_list(e->archive, "", NULL, on_listed, e);
}

void backend_examine_archive(const struct backend_config *config,
			     void (*fn)(void *data, enum backend_grade grade, const char *text),
			     void *data)
{
	const struct archive_address place = {config->archive, config->archive_endpoint,
					      config->archive_region};
	struct examine e = {.dir = config->archive, .fn = fn, .data = data};
	cleanup_free char *text = NULL;
	struct loop *loop;

	sem_init(&e.done, 0, 0);
	loop_new(&loop);
	if (archive_new(loop, &place, "doctor", &e.archive, &text)) {
		fn(data, BACKEND_WRONG, text);
	} else if (loop_start(loop) == 0) {
		loop_post(loop, begin, &e);
		while (sem_wait(&e.done) < 0)
			;
		loop_stop(loop);
	}
	archive_free(e.archive);
	loop_free(loop);
	sem_destroy(&e.done);
}
