/* SPDX-License-Identifier: MIT */
/* The table of launches by file; see job_files.h. */
#include "backend/jobs/job_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/loop.h"
#include "backend/base/random.h"
#include "spec/base/mem.h"

struct job_files_name {
	struct job_launch *launches; /* newest first */
	UT_hash_handle hh;
	char text[];
};

struct job_files {
	struct lock lock; /* protects the members below, all launches, and their heads */
	struct job_files_name *names;
	uint64_t number; /* largest number of any launch */
	int64_t changed;
};

/* The first 48 bits of a launch's UUID are the launch's number. UUIDs of version 8 allow this. */
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

/* Return the number in UUID, or 0 if UUID is not from job_files_next_uuid. */
static uint64_t number_of(const char *uuid)
{
	unsigned high, low;

	if (strlen(uuid) != JOB_FILES_UUID - 1 || sscanf(uuid, "%8x-%4x-8", &high, &low) != 2 ||
	    uuid[14] != '8')
		return 0;
	return (uint64_t)high << 16 | low;
}

/* --- under the lock --- */

static bool is_unlinked(const struct job_launch *l)
{
	return l->hidden || l->head->unlinked;
}

static bool is_sending(const struct job_launch *l)
{
	return l->head->state == RECORD_SUBMITTING;
}

/*
 * Return the launch whose job NAME.job links to, or NULL. Do so even if the user has removed
 * NAME.job. NAME.job links to the previous job until the new job is in the store.
 */
static struct job_launch *newest(const struct job_files_name *n)
{
	struct job_launch *l = n ? n->launches : NULL;

	while (l && is_sending(l) && !l->shown && !is_unlinked(l))
		l = l->next;
	return l;
}

static struct job_launch *find(struct job_files *f, const char *file)
{
	struct job_files_name *n;
	struct job_launch *l;

	HASH_FIND_STR(f->names, file, n);
	l = newest(n);
	return l && !is_unlinked(l) ? l : NULL;
}

static void touch(struct job_files *f)
{
	f->changed = max_of(loop_time_ns(), f->changed + 1);
}

static struct job_files_name *need_name(struct job_files *f, const char *file)
{
	const size_t len = strlen(file);
	struct job_files_name *n;

	HASH_FIND(hh, f->names, file, len, n);
	if (n)
		return n;
	n = mem_zero(sizeof(*n) + len + 1);
	memcpy(n->text, file, len);
	HASH_ADD_KEYPTR(hh, f->names, n->text, len, n);
	return n;
}

static int by_age(const struct job_launch *a, const struct job_launch *b)
{
	return strcmp(b->head->key, a->head->key);
}

void job_files_add(struct job_files *f, struct job_launch *l, const struct spec_head *head)
{
	if (!head->own || !*head->file || strlen(head->key) != JOB_FILES_UUID - 1)
		return;
	lock_scope(&f->lock);
	l->head = head;
	l->name = need_name(f, head->file);
	DL_INSERT_INORDER(l->name->launches, l, by_age);
	f->number = max_of(f->number, number_of(head->key));
	touch(f);
}

struct lock *job_files_lock(struct job_files *f)
{
	return &f->lock;
}

void job_files_update(struct job_files *f, const struct job_launch *l)
{
	if (!l->name)
		return;
	lock_scope(&f->lock);
	touch(f);
}

void job_files_show(struct job_files *f, struct job_launch *l, bool shown)
{
	lock_scope(&f->lock);
	l->shown = shown;
	if (l->name)
		touch(f);
}

bool job_files_is_newest(struct job_files *f, const struct job_launch *l)
{
	lock_scope(&f->lock);
	return l->name && newest(l->name) == l && (!is_sending(l) || is_unlinked(l));
}

void job_files_remove(struct job_files *f, struct job_launch *l)
{
	struct job_files_name *n = l->name;

	if (!n)
		return;
	{
		lock_scope(&f->lock);
		DL_DELETE(n->launches, l);
		if (!n->launches)
			HASH_DEL(f->names, n);
		touch(f);
	}
	l->name = NULL;
	if (!n->launches)
		free(n);
}

int job_files_find(struct job_files *f, const char *file, struct backend_file *ret)
{
	const struct job_launch *l;

	lock_scope(&f->lock);
	l = find(f, file);
	if (!l)
		return -ENOENT;
	*ret = (struct backend_file){
		.id = text_copy(l->head->id),
		.place = l->head->state == RECORD_HISTORY || l->head->state == RECORD_NEVER
				 ? BACKEND_HISTORY
				 : BACKEND_JOBS,
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
		const struct job_launch *l = newest(name);

		if (l && !is_unlinked(l))
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
	const struct job_launch *l;

	/*
	 * A search of all launches is fast enough, because it happens only when a user opens or
	 * renames a file of submit/ that an earlier mount has left.
	 */
	lock_scope(&f->lock);
	for (const struct job_files_name *n = f->names; n; n = n->hh.next)
		DL_FOREACH(n->launches, l)
			if (streq(l->head->digest, digest))
				return true;
	return false;
}

int job_files_unlink(struct job_files *f, const char *file, char ret_key[JOB_FILES_UUID])
{
	struct job_launch *l;

	lock_scope(&f->lock);
	l = find(f, file);
	if (!l)
		return -ENOENT;
	l->hidden = true;
	memcpy(ret_key, l->head->key, JOB_FILES_UUID);
	touch(f);
	return 0;
}

struct job_files *job_files_new(void)
{
	struct job_files *f = new0(struct job_files);

	f->lock = (struct lock)LOCK_INIT;
	f->changed = loop_time_ns();
	return f;
}

void job_files_free(struct job_files *f)
{
	free(f);
}
