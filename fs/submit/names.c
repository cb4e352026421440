/* SPDX-License-Identifier: MIT */
/* The table of names; see names.h. */
#include "fs/submit/names.h"

#include <errno.h>
#include <uthash.h>

#include "backend/base/loop.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/utf8.h"

struct name {
	char *text;
	struct upload *file; /* a reference, or NULL */
	unsigned launching;  /* launches that are in progress */
	uint64_t number;     /* number of the newest launch that has a result */
	char *error;	     /* NAME.error, or NULL */
	int64_t error_time;
	struct file_owner error_owner;
	UT_hash_handle hh, by_file;
};

struct names {
	struct lock *lock; /* constant */
	struct name *table;
	struct name *files; /* the names that have a file, hashed by the file */
	uint64_t number;    /* number of the launch that began last */
	int64_t changed;
};

/* --- under the lock --- */

static struct name *find(struct names *all, const char *text)
{
	struct name *n;

	HASH_FIND_STR(all->table, text, n);
	return n;
}

static struct name *make(struct names *all, const char *text)
{
	struct name *n = find(all, text);

	if (n)
		return n;
	n = new0(struct name);
	n->text = text_copy(text);
	HASH_ADD_KEYPTR(hh, all->table, n->text, strlen(n->text), n);
	return n;
}

static struct name *find_file(struct names *all, const struct upload *u)
{
	struct name *n;

	HASH_FIND(by_file, all->files, &u, sizeof(struct upload *), n);
	return n;
}

static void free_name(struct names *all, struct name *n)
{
	HASH_DEL(all->table, n);
	free(n->text);
	free(n->error);
	free(n);
}

/* Called after a change of N. Record the time. Free N if it has no file, no error and no launch. */
static void show(struct names *all, struct name *n)
{
	all->changed = loop_time_ns();
	if (!n->file && !n->error && !n->launching)
		free_name(all, n);
}

static uint64_t begin(struct names *all, struct name *n)
{
	n->launching++;
	return ++all->number;
}

/* Make U the file of N. Take ownership of the reference to U. */
static void attach(struct names *all, struct name *n, struct upload *u)
{
	n->file = u;
	HASH_ADD(by_file, all->files, file, sizeof(struct upload *), n);
	upload_set_name(u, n->text);
	all->changed = loop_time_ns();
}

/*
 * Take N's file from its writers, except those that PROCESS has opened. The caller must change the
 * name before it releases the lock. Otherwise the close of a writer could succeed before the change
 * of the name, but kxfs would never launch the writer's contents.
 */
static void displace(struct names *all, struct name *n, pid_t process, struct name_loss *ret)
{
	pid_t writer = upload_displace(n->file, process);

	if (!writer || !spec_name_submits(n->text))
		return;
	ret->writer = writer;
	ret->number = begin(all, n);
	memcpy(ret->name, n->text, strlen(n->text) + 1);
}

/* Remove the file from N. The caller gets the reference. */
static struct upload *detach(struct names *all, struct name *n)
{
	struct upload *u = n->file;

	HASH_DELETE(by_file, all->files, n);
	n->file = NULL;
	upload_set_name(u, NULL);
	return u;
}

/* --- the table --- */

struct names *names_new(struct lock *lock)
{
	struct names *all = new0(struct names);

	all->lock = lock;
	all->changed = loop_time_ns();
	return all;
}

void names_free(struct names *all)
{
	struct name *n, *next;

	if (!all)
		return;
	HASH_ITER(hh, all->table, n, next) {
		struct name_loss none;

		if (n->file)
			names_move(all, n->file, NULL, 0, &none);
	}
	HASH_ITER(hh, all->table, n, next)
		free_name(all, n);
	free(all);
}

int64_t names_changed(struct names *all)
{
	lock_scope(all->lock);
	return all->changed;
}

size_t names_list(struct names *all, enum submit_name kind, char ***ret)
{
	struct name *n;
	size_t count = 0;

	lock_scope(all->lock);
	*ret = new0_n(char *, HASH_COUNT(all->table));
	for (n = all->table; n; n = n->hh.next)
		if (kind == SUBMIT_NAME_FILE ? n->file != NULL : n->error != NULL)
			(*ret)[count++] = text_copy(n->text);
	return count;
}

/* --- files --- */

struct upload *names_file(struct names *all, const char *name)
{
	const struct name *n;
	struct upload *u;

	lock_scope(all->lock);
	n = find(all, name);
	u = n ? n->file : NULL;
	if (u)
		upload_hold(u);
	return u;
}

int names_make(struct names *all, struct uploads *files, const char *name, mode_t mode,
	       struct file_owner owner, struct upload **ret)
{
	lock_scope(all->lock);
	if (HASH_COUNT(all->table) >= NAMES_MAX)
		return -ENOSPC;
	if (find(all, name) && find(all, name)->file)
		return -EEXIST;
	*ret = upload_new(files, name, mode, owner);
	upload_hold(*ret);
	attach(all, make(all, name), *ret);
	return 0;
}

void names_add(struct names *all, const char *name, struct upload *u)
{
	lock_scope(all->lock);
	attach(all, make(all, name), u);
}

bool names_of(struct names *all, const struct upload *u, char ret[NAME_MAX + 1])
{
	const struct name *n;

	lock_scope(all->lock);
	n = find_file(all, u);
	if (n)
		memcpy(ret, n->text, strlen(n->text) + 1);
	return n;
}

/* Do what names_move does. The caller gets the reference to the file that lost its name. */
static struct upload *move(struct names *all, struct upload *u, const char *to, pid_t process,
			   struct name_loss *ret)
{
	struct upload *lost = to ? NULL : u;
	struct name *n, *target;

	lock_scope(all->lock);
	n = find_file(all, u);
	if (!n || streq(n->text, to))
		return NULL;
	target = to ? make(all, to) : NULL;
	if (target && target->file) {
		displace(all, target, process, ret);
		lost = detach(all, target);
	}
	if (!to || (spec_name_submits(n->text) && !spec_name_submits(to)))
		displace(all, n, process, ret);
	detach(all, n);
	if (target)
		attach(all, target, u);
	show(all, n);
	return lost;
}

void names_move(struct names *all, struct upload *u, const char *to, pid_t process,
		struct name_loss *ret)
{
	ret->writer = 0;
	upload_unref(move(all, u, to, process, ret));
}

bool names_expire(struct names *all, struct upload *u, uint64_t version)
{
	struct name *n;

	{
		lock_scope(all->lock);
		n = find_file(all, u);
		if (!n || !upload_is_idle(u) || upload_version(u) != version)
			return false;
		detach(all, n);
		show(all, n);
	}
	upload_unref(u);
	return true;
}

/* --- launches --- */

uint64_t names_begin(struct names *all, const char *name)
{
	lock_scope(all->lock);
	return begin(all, make(all, name));
}

/* Return the text of NAME.error for ERROR: at most NAMES_MAX_ERROR bytes, with a newline at its end. */
static char *error_text(const char *error)
{
	char *clean cleanup_free = spec_utf8_clean_copy(error, "\n\t");
	size_t len = strnlen(clean, NAMES_MAX_ERROR - strlen("...\n"));
	const char *tail = clean[len] ? "...\n" : has_end(clean, "\n") ? "" : "\n";

	/* don't cut within a character */
	while (((unsigned char)clean[len] & 0xc0) == 0x80)
		len--;
	return text_print("%.*s%s", (int)len, clean, tail);
}

void names_end(struct names *all, const char *name, uint64_t number, const char *error,
	       struct file_owner owner)
{
	char *text cleanup_free = error ? error_text(error) : NULL;
	struct name *n;

	lock_scope(all->lock);
	n = find(all, name);
	n->launching--;
	if (number && number >= n->number) {
		n->number = number;
		free(n->error);
		n->error = take_ptr(text);
		n->error_time = loop_time_ns();
		n->error_owner = owner;
	}
	show(all, n);
}

void names_explain(struct names *all, const char *name, const char *error, struct file_owner owner)
{
	names_end(all, name, names_begin(all, name), error, owner);
}

int names_error(struct names *all, const char *name, struct name_error *ret)
{
	const struct name *n;

	lock_scope(all->lock);
	n = find(all, name);
	if (!n || !n->error)
		return -ENOENT;
	*ret = (struct name_error){text_copy(n->error), n->error_time, n->error_owner};
	return 0;
}

int names_remove_error(struct names *all, const char *name)
{
	struct name *n;

	lock_scope(all->lock);
	n = find(all, name);
	if (!n || !n->error)
		return -ENOENT;
	free(take_ptr(n->error));
	show(all, n);
	return 0;
}

/* --- what names mean --- */

enum submit_name submit_name_kind(const char *name, char ret_base[NAME_MAX + 1])
{
	const bool is_error = has_end(name, SUBMIT_ERROR_SUFFIX);

	if (strlen(name) > NAME_MAX || (!is_error && !has_end(name, SUBMIT_JOB_SUFFIX)))
		return SUBMIT_NAME_FILE;
	snprintf(ret_base, NAME_MAX + 1, "%s", name);
	*strrchr(ret_base, '.') = '\0';
	if (is_error)
		return SUBMIT_NAME_ERROR;
	return spec_name_submits(ret_base) ? SUBMIT_NAME_JOB : SUBMIT_NAME_FILE;
}

int submit_name_check(const char *name)
{
	size_t max = NAME_MAX - (spec_name_submits(name) ? strlen(SUBMIT_ERROR_SUFFIX) : 0);
	char base[NAME_MAX + 1];

	if (strlen(name) > max)
		return -ENAMETOOLONG;
	/* A name may begin with dots; the rest must be a valid file name. */
	if (!spec_name_is_file(name + strspn(name, ".")))
		return -EINVAL;
	return submit_name_kind(name, base) == SUBMIT_NAME_FILE ? 0 : -EPERM;
}

static bool is_one_of(const char *text, const char *const *all)
{
	while (*all && !streq(*all, text))
		all++;
	return *all;
}

bool submit_name_is_passing(const char *name)
{
	static const char *const endings[] = {".tmp", ".temp", ".part", ".partial", ".new", ".old",
					      ".bak", ".orig", ".swp",	".swx",	    NULL};
	static const char *const within[] = {".yaml", ".yml", ".json"};
	static const char *const mistakes[] = {".txt", ".jsonl", ".", NULL};
	const char *dot = strrchr(name, '.');
	size_t len = strlen(name);

	if ((dot && is_one_of(dot, mistakes)) || name[len - 1] == ' ')
		return false;
	for (size_t i = 0; i < array_size(within); i++)
		if (strcasestr(name, within[i]))
			return true;
	return strchr(".#~", *name) || strchr("~#", name[len - 1]) ||
	       strspn(name, "0123456789") == len || (dot && is_one_of(dot, endings)) ||
	       strncmp(name, "tmp", 3) == 0 || (strncmp(name, "sed", 3) == 0 && len == 9);
}
