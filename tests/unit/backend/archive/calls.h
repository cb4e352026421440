/* SPDX-License-Identifier: MIT */
/* Calls of an archive, each of which is waited for. */
#pragma once

#include "backend/archive/archive.h"
#include "spec/base/mem.h"
#include "tests/unit/backend/base/loop_rig.h"

static struct archive *archive;

/* A call, and what it has ended with. */
struct call {
	const char *name, *after;
	const char *bytes;
	size_t n;
	uint64_t off;
	int err;
	char *text;
	char *got; /* the bytes, or the names with their sizes */
	size_t n_got;
	bool more;
	sem_t done;
};

static void on_done(void *data, int err, const char *text)
{
	struct call *c = data;

	c->err = err;
	c->text = text_copy(text);
	sem_post(&c->done);
}

static void on_bytes(void *data, int err, const char *text, const char *bytes, size_t n)
{
	struct call *c = data;

	c->got = bytes ? mem_copy(bytes, n) : text_copy("");
	c->n_got = n;
	on_done(c, err, text);
}

static void on_list(void *data, int err, const char *text, const struct archive_object *objects,
		    size_t n, bool more)
{
	struct call *c = data;

	c->got = text_copy("");
	for (size_t i = 0; i < n; i++)
		text_set(&c->got, "%s%s %llu\n", n > 10 ? "" : c->got, objects[i].name,
			 (unsigned long long)objects[i].size);
	c->n_got = n;
	c->more = more;
	on_done(c, err, text);
}

static inline void put(void *data)
{
	struct call *c = data;

	archive_put(archive, c->name, mem_copy(c->bytes, c->n), c->n, on_done, c);
}

static inline void get(void *data)
{
	struct call *c = data;

	archive_get(archive, c->name, c->off, c->n, on_bytes, c);
}

static inline void list(void *data)
{
	struct call *c = data;

	archive_list(archive, c->name, c->after, on_list, c);
}

static inline void stop(void *data)
{
	archive_stop(archive, post_sem, data);
}

static inline void begin(struct call *c, loop_fn fn)
{
	sem_init(&c->done, 0, 0);
	call(fn, c);
}

static inline void finish(struct call *c)
{
	free(c->text);
	free(c->got);
	c->text = c->got = NULL;
}

static inline int do_put(const char *name, const char *text)
{
	struct call c = {.name = name, .bytes = text, .n = strlen(text)};

	begin(&c, put);
	sem_wait_or_fail(&c.done);
	assert_true(!c.err == (*c.text == '\0'));
	finish(&c);
	return c.err;
}

static inline void assert_get(const char *name, uint64_t off, size_t n, int err, const char *text)
{
	struct call c = {.name = name, .off = off, .n = n};

	begin(&c, get);
	sem_wait_or_fail(&c.done);
	assert_int_equal(c.err, err);
	assert_string_equal(c.got, text);
	finish(&c);
}

static inline void assert_list(const char *prefix, const char *after, const char *text)
{
	struct call c = {.name = prefix, .after = after};

	begin(&c, list);
	sem_wait_or_fail(&c.done);
	assert_int_equal(c.err, 0);
	assert_false(c.more);
	assert_string_equal(c.got, text);
	finish(&c);
}
