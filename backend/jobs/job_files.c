/* SPDX-License-Identifier: MIT */
/* The table of launches by file and by digest; see job_files.h. The number of a launch is in its UUID. */
#include "backend/jobs/job_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/lock.h"
#include "backend/base/loop.h"
#include "backend/base/random.h"
#include "spec/base/mem.h"

struct job_files_name {
	char *text;
	struct job_files_entry *launches; /* the newest one first */
	UT_hash_handle hh;
};

/* Copies of the members of HEAD that change; other threads may read the others. */
struct job_files_entry {
	struct job_files *f;
	struct record *r;
	const struct spec_head *head;
	struct job_files_name *name;
	char *id;
	bool sending;  /* SUBMITTING */
	bool history;  /* HISTORY or NEVER */
	bool shown;    /* its job is in the store */
	bool unlinked; /* NAME.job was removed */
	struct job_files_entry *prev, *next;
	UT_hash_handle hh; /* by digest, which several may have */
};

struct job_files {
	void (*fn)(void *data, const char *file); /* may be NULL */
	void *data;
	struct lock lock; /* protects all members below, and all launches */
	struct job_files_name *names;
	struct job_files_entry *by_digest;
	uint64_t number; /* number of the last launch */
	int64_t changed;
};

/* --- the number in a UUID: 48 bits, in one of version 8, whose bits are for its maker to choose --- */

int job_files_next_uuid(struct job_files *f, char ret[JOB_FILES_UUID])
{
	uint64_t number;
	char head[16];

	if (random_uuid(ret) < 0)
		return -EIO;
	{
		lock_scope(&f->lock);
		number = ++f->number;
	}
	snprintf(head, sizeof(head), "%08x-%04x-8", (unsigned)(number >> 16) & 0xffffffffU,
		 (unsigned)number & 0xffffU);
	memcpy(ret, head, strlen(head));
	return 0;
}

/* Return the number of the launch UUID; 0 if UUID is of another kind. */
static uint64_t number_of(const char *uuid)
{
	unsigned high, low;

	if (sscanf(uuid, "%8x-%4x-8", &high, &low) != 2 || uuid[14] != '8')
		return 0;
	return (uint64_t)high << 16 | low;
}

/* --- under the lock --- */

/* A launch that is under way hides no earlier ones until its job is shown. */
static bool counts(const struct job_files_entry *l)
{
	return !l->sending || l->shown || l->unlinked;
}

/*
 * Return the launch that NAME.job shows, or would show if it were not removed; NULL if there is
 * none.
 */
static struct job_files_entry *newest(const struct job_files_name *n)
{
	struct job_files_entry *l = n ? n->launches : NULL;

	while (l && !counts(l))
		l = l->next;
	return l;
}

static struct job_files_entry *find(struct job_files *f, const char *file)
{
	struct job_files_name *n;
	struct job_files_entry *l;

	HASH_FIND_STR(f->names, file, n);
	l = newest(n);
	return l && !l->unlinked ? l : NULL;
}

static void touch(struct job_files *f)
{
	f->changed = max_of(loop_time_ns(), f->changed + 1);
}

/* True: that has changed something. */
static bool take_head(struct job_files_entry *l)
{
	const struct spec_head *h = l->head;
	const bool sending = h->state == RECORD_SUBMITTING, unlinked = l->unlinked || h->unlinked;
	const bool history = h->state == RECORD_HISTORY || h->state == RECORD_NEVER;

	if (streq(l->id, h->id) && l->sending == sending && l->history == history &&
	    l->unlinked == unlinked)
		return false;
	text_set(&l->id, "%s", h->id);
	l->sending = sending;
	l->history = history;
	l->unlinked = unlinked;
	touch(l->f);
	return true;
}

static struct job_files_name *need_name(struct job_files *f, const char *file)
{
	struct job_files_name *n;

	HASH_FIND_STR(f->names, file, n);
	if (n)
		return n;
	n = new0(struct job_files_name);
	n->text = text_copy(file);
	HASH_ADD_KEYPTR(hh, f->names, n->text, strlen(n->text), n);
	return n;
}

static int by_age(const struct job_files_entry *a, const struct job_files_entry *b)
{
	return strcmp(b->head->key, a->head->key);
}

static void drop(struct job_files_entry *l)
{
	struct job_files *f = l->f;
	struct job_files_name *n = l->name;

	DL_DELETE(n->launches, l);
	HASH_DEL(f->by_digest, l);
	touch(f);
	free(l->id);
	free(l);
	if (n->launches)
		return;
	HASH_DEL(f->names, n);
	free(n->text);
	free(n);
}

/* --- I/O thread --- */

static void changed(struct job_files *f, const char *file)
{
	if (f->fn)
		return f->fn(f->data, file);
}

struct job_files_entry *job_files_add(struct job_files *f, struct record *r,
				      const struct spec_head *head)
{
	struct job_files_entry *l;

	if (!head->own || !*head->file || strlen(head->key) != JOB_FILES_UUID - 1)
		return NULL;
	l = new0(struct job_files_entry);
	l->f = f;
	l->r = r;
	l->head = head;
	lock_scope(&f->lock);
	l->name = need_name(f, head->file);
	DL_INSERT_INORDER(l->name->launches, l, by_age);
	HASH_ADD_KEYPTR(hh, f->by_digest, head->digest, strlen(head->digest), l);
	f->number = max_of(f->number, number_of(head->key));
	(void)take_head(l);
	return l;
}

void job_files_update(struct job_files_entry *l)
{
	bool news;

	if (!l)
		return;
	{
		lock_scope(&l->f->lock);
		news = take_head(l);
	}
	if (news)
		return changed(l->f, l->head->file);
}

void job_files_show(struct job_files_entry *l, bool shown)
{
	if (!l)
		return;
	{
		lock_scope(&l->f->lock);
		l->shown = shown;
		touch(l->f);
	}
	return changed(l->f, l->head->file);
}

struct record *job_files_remove(struct job_files_entry *l)
{
	struct record *older = NULL;
	const char *file;
	struct job_files *f;

	if (!l)
		return NULL;
	f = l->f;
	file = l->head->file;
	{
		lock_scope(&f->lock);
		/* The end of a launch that was refused changes nothing. */
		if (newest(l->name) == l && (!l->sending || l->unlinked) && l->next)
			older = l->next->r;
		drop(l);
	}
	changed(f, file);
	return older;
}

/* --- any thread --- */

int job_files_find(struct job_files *f, const char *file, struct backend_file *ret)
{
	const struct job_files_entry *l;

	lock_scope(&f->lock);
	l = find(f, file);
	if (!l)
		return -ENOENT;
	*ret = (struct backend_file){
		.id = text_copy(l->id),
		.place = l->history ? BACKEND_HISTORY : BACKEND_JOBS,
		.time = l->head->created,
		.owned = l->head->owned,
		.uid = l->head->user,
		.gid = l->head->group,
	};
	memcpy(ret->uuid, l->head->key, JOB_FILES_UUID);
	snprintf(ret->digest, sizeof(ret->digest), "%s", l->head->digest);
	return 0;
}

size_t job_files_list(struct job_files *f, char ***ret)
{
	size_t n = 0;

	lock_scope(&f->lock);
	*ret = new0_n(char *, HASH_COUNT(f->names) + 1);
	for (const struct job_files_name *name = f->names; name; name = name->hh.next) {
		const struct job_files_entry *l = newest(name);

		if (l && !l->unlinked)
			(*ret)[n++] = text_copy(name->text);
	}
	return n;
}

int64_t job_files_changed(struct job_files *f)
{
	lock_scope(&f->lock);
	return f->changed;
}

bool job_files_know(struct job_files *f, const char *digest)
{
	const struct job_files_entry *l;

	lock_scope(&f->lock);
	HASH_FIND_STR(f->by_digest, digest, l);
	return l;
}

int job_files_unlink(struct job_files *f, const char *file, char ret_key[JOB_FILES_UUID])
{
	struct job_files_entry *l;

	lock_scope(&f->lock);
	l = find(f, file);
	if (!l)
		return -ENOENT;
	l->unlinked = true;
	memcpy(ret_key, l->head->key, JOB_FILES_UUID);
	touch(f);
	return 0;
}

/* --- life --- */

struct job_files *job_files_new(void)
{
	struct job_files *f = new0(struct job_files);

	f->lock = (struct lock)LOCK_INIT;
	f->changed = loop_time_ns();
	return f;
}

void job_files_set_changed(struct job_files *f, void (*fn)(void *data, const char *file),
			   void *data)
{
	f->fn = fn;
	f->data = data;
}

void job_files_free(struct job_files *f)
{
	free(f);
}
