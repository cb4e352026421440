/* SPDX-License-Identifier: MIT */
/* The table of names; see names.h. */
#include "fs/submit/names.h"

#include <errno.h>
#include <uthash.h>
#include <utlist.h>

#include "backend/base/loop.h"
#include "backend/base/random.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/utf8.h"

/* A launch that is under way; after a start, one that the last mount left. */
struct pending {
	char uuid[RECORD_UUID];
	bool left;  /* it was left: nobody in this mount waits for it */
	bool doubt; /* the backend will tell later what became of it */
	struct pending *next;
};

struct name {
	char *text;
	struct upload *file; /* a reference; NULL: there is no file of that name */
	enum name_state state;
	uint64_t version; /* version of the content that is LAUNCHING or LAUNCHED */
	/* Digest of the content that is LAUNCHED or CLAIMED; "": any content is. */
	char digest[RECORD_DIGEST];
	struct pending *pending;
	char *job; /* id of the job; NULL: none */
	int64_t job_time;
	uint64_t job_number; /* number of the launch that made JOB */
	char *error;	     /* text of the error; NULL: none */
	int64_t error_time;
	uint64_t number; /* number of the last launch that ended */
	struct record_owner owner;
	char *news; /* id of the newest job that the backend reported at the start; NULL: none */
	uint64_t news_number;
	UT_hash_handle hh, by_file;
};

struct names {
	struct lock *lock; /* constant, as is US */
	struct record_owner us;
	struct name *table;
	struct name *files; /* the names that have a file, by that */
	uint64_t number;    /* number of the last launch */
	uint64_t reported;
	uint64_t tags; /* how many tags were made */
	int64_t changed;
};

/* --- the number in a UUID: 48 bits, in one of version 8, whose bits are for its maker to choose --- */

static int make_uuid(uint64_t number, char ret[RECORD_UUID])
{
	char head[16];

	if (random_uuid(ret) < 0)
		return -EIO;
	snprintf(head, sizeof(head), "%08x-%04x-8", (unsigned)(number >> 16) & 0xffffffffU,
		 (unsigned)number & 0xffffU);
	memcpy(ret, head, strlen(head));
	return 0;
}

/* The number of the launch UUID; 0: it is another sort of UUID. */
static uint64_t number_of(const char *uuid)
{
	unsigned high, low;

	if (strlen(uuid) != RECORD_UUID - 1 || sscanf(uuid, "%8x-%4x-8", &high, &low) != 2 ||
	    uuid[14] != '8')
		return 0;
	return (uint64_t)high << 16 | low;
}

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
	n->owner = all->us;
	HASH_ADD_KEYPTR(hh, all->table, n->text, strlen(n->text), n);
	return n;
}

static struct name *find_file(struct names *all, const struct upload *u)
{
	struct name *n;

	HASH_FIND(by_file, all->files, &u, sizeof(struct upload *), n);
	return n;
}

static char **verdict_of(struct name *n, enum submit_name kind)
{
	return kind == SUBMIT_NAME_JOB ? &n->job : &n->error;
}

static void free_name(struct names *all, struct name *n)
{
	struct pending *p, *next;

	HASH_DEL(all->table, n);
	LL_FOREACH_SAFE(n->pending, p, next)
		free(p);
	free(n->text);
	free(n->job);
	free(n->error);
	free(n->news);
	free(n);
}

/* What is shown of N has changed: note that, and free a name of which nothing is known any more. */
static void show(struct names *all, struct name *n)
{
	all->changed = loop_time_ns();
	if (!n->file && !n->job && !n->error && !n->pending && !n->news)
		free_name(all, n);
}

static void set_job(struct name *n, const char *id, int64_t time)
{
	text_set(&n->job, "%s", id);
	n->job_time = time;
}

static void set_launched(struct name *n, uint64_t version, const char *digest)
{
	n->state = NAME_LAUNCHED;
	n->version = version;
	snprintf(n->digest, sizeof(n->digest), "%s", digest);
}

static struct pending *find_pending(struct name *n, const char *uuid)
{
	struct pending *p = n->pending;

	while (p && !streq(p->uuid, uuid))
		p = p->next;
	return p;
}

static struct pending *add_pending(struct names *all, struct name *n, const char *uuid)
{
	struct pending *p = new0(struct pending);

	snprintf(p->uuid, sizeof(p->uuid), "%s", uuid);
	LL_APPEND(n->pending, p);
	all->number = max_of(all->number, number_of(uuid));
	return p;
}

static void remove_pending(struct name *n, struct pending *p)
{
	if (!p)
		return;
	LL_DELETE(n->pending, p);
	free(p);
}

/* Let N be the name of the file U, whose reference is given away. */
static void attach(struct names *all, struct name *n, struct upload *u)
{
	n->file = u;
	HASH_ADD(by_file, all->files, file, sizeof(struct upload *), n);
	upload_set_name(u, n->text);
	all->changed = loop_time_ns();
}

/*
 * PROCESS takes the file of N from its other writers. The caller changes the name before it drops the lock: a process
 * that opens the file in between would write it, close it with success, and launch nothing.
 */
static void displace(struct names *all, const struct name *n, pid_t process, struct name_loss *ret)
{
	pid_t writer = upload_displace(n->file, process);

	if (!writer || !spec_name_submits(n->text))
		return;
	ret->writer = writer;
	ret->number = ++all->number;
	memcpy(ret->name, n->text, strlen(n->text) + 1);
}

/* Take the file from N; its reference is the caller's. */
static struct upload *detach(struct names *all, struct name *n)
{
	struct upload *u = n->file;

	HASH_DELETE(by_file, all->files, n);
	n->file = NULL;
	n->state = NAME_EMPTY;
	upload_set_name(u, NULL);
	return u;
}

/* --- the table --- */

struct names *names_new(struct lock *lock, struct record_owner us)
{
	struct names *all = new0(struct names);

	all->lock = lock;
	all->us = us;
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
			names_drop(all, n->file, 0, &none);
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
		if (kind == SUBMIT_NAME_FILE ? n->file != NULL : *verdict_of(n, kind) != NULL)
			(*ret)[count++] = text_copy(n->text);
	return count;
}

uint64_t names_next(struct names *all)
{
	lock_scope(all->lock);
	return ++all->number;
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

/* A file may have had that name before, and have another one now. */
static bool is_tag(struct names *all, const char *tag)
{
	for (const struct name *n = all->files; n; n = n->by_file.next)
		if (streq(upload_tag(n->file), tag))
			return true;
	return false;
}

int names_make(struct names *all, struct uploads *files, const char *name, mode_t mode,
	       struct record_owner owner, struct upload **ret)
{
	char tag[NAME_MAX + 32];

	lock_scope(all->lock);
	if (HASH_COUNT(all->table) >= NAMES_MAX)
		return -ENOSPC;
	if (find(all, name) && find(all, name)->file)
		return -EEXIST;
	snprintf(tag, sizeof(tag), "%s", name);
	while (is_tag(all, tag))
		snprintf(tag, sizeof(tag), "%s\n%ju", name, (uintmax_t)++all->tags);
	*ret = upload_new(files, tag, name, mode, owner);
	upload_hold(*ret);
	attach(all, make(all, name), *ret);
	return 0;
}

void names_add(struct names *all, const char *name, struct upload *u)
{
	lock_scope(all->lock);
	attach(all, make(all, name), u);
	if (!upload_is_empty(u))
		find(all, name)->state = spec_name_submits(name) ? NAME_WRITING : NAME_TOLD;
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

void names_drop(struct names *all, struct upload *u, pid_t process, struct name_loss *ret)
{
	struct name *n;

	ret->writer = 0;
	{
		lock_scope(all->lock);
		n = find_file(all, u);
		if (!n)
			return;
		displace(all, n, process, ret);
		detach(all, n);
		show(all, n);
	}
	upload_unref(u);
}

/* As names_move. Returns the file that loses the name TO; its reference is the caller's. */
static struct upload *move(struct names *all, struct upload *u, const char *to, pid_t process,
			   struct name_loss *ret)
{
	struct upload *lost = NULL;
	struct name *n, *target, content;

	lock_scope(all->lock);
	n = find_file(all, u);
	if (!n || streq(n->text, to))
		return NULL;
	content = *n;
	target = make(all, to);
	if (target->file) {
		displace(all, target, process, ret);
		lost = detach(all, target);
	}
	if (spec_name_submits(n->text) && !spec_name_submits(to))
		displace(all, n, process, ret);
	detach(all, n);
	attach(all, target, u);
	target->state = content.state;
	target->version = content.version;
	memcpy(target->digest, content.digest, RECORD_DIGEST);
	if ((content.state == NAME_LAUNCHED || content.state == NAME_CLAIMED) &&
	    spec_name_submits(n->text) && spec_name_submits(to) && (n->job || n->error)) {
		/*
		 * The verdict of N becomes that of TARGET. A launch that is under way stays with the name under which
		 * it was submitted.
		 */
		free(target->job);
		free(target->error);
		target->job = take_ptr(n->job);
		target->job_time = n->job_time;
		target->job_number = n->job_number;
		target->error = take_ptr(n->error);
		target->error_time = n->error_time;
		target->number = n->number;
		target->owner = n->owner;
	}
	show(all, n);
	return lost;
}

void names_move(struct names *all, struct upload *u, const char *to, pid_t process,
		struct name_loss *ret)
{
	ret->writer = 0;
	upload_unref(move(all, u, to, process, ret));
}

int names_expire(struct names *all, const char *name, int64_t before, struct upload **ret)
{
	struct name *n;

	lock_scope(all->lock);
	n = find(all, name);
	if (!n || !n->file)
		return -ENOENT;
	if (!upload_is_idle(n->file) || upload_ctime(n->file) >= before)
		return -EBUSY;
	if (n->state != NAME_LAUNCHED) {
		if (n->state != NAME_CLAIMED)
			return -EBUSY;
		upload_hold(n->file);
		*ret = n->file;
		return -EAGAIN;
	}
	*ret = detach(all, n);
	show(all, n);
	return 0;
}

/* --- content --- */

enum name_state names_state(struct names *all, const struct upload *u)
{
	const struct name *n;

	lock_scope(all->lock);
	n = find_file(all, u);
	return n ? n->state : NAME_EMPTY;
}

static bool is_on_record(const struct name *n)
{
	return n->state == NAME_LAUNCHED || n->state == NAME_CLAIMED ||
	       (n->state == NAME_TOLD && spec_name_submits(n->text));
}

bool names_writing(struct names *all, const struct upload *u)
{
	struct name *n;
	bool was;

	lock_scope(all->lock);
	n = find_file(all, u);
	if (!n)
		return false;
	was = is_on_record(n);
	n->state = NAME_WRITING;
	return was;
}

bool names_settle(struct names *all, const struct upload *u)
{
	struct name *n;

	lock_scope(all->lock);
	n = find_file(all, u);
	if (!n || n->state != NAME_WRITING || upload_has_dirty(u))
		return false;
	n->state = upload_is_empty(u) ? NAME_EMPTY : NAME_TOLD;
	return is_on_record(n);
}

void names_loaded(struct names *all, const struct upload *u, const char *digest)
{
	struct name *n;

	lock_scope(all->lock);
	n = find_file(all, u);
	if (!n || n->state != NAME_CLAIMED)
		return;
	if (!*n->digest || streq(n->digest, digest))
		set_launched(n, upload_version(u), digest);
	else
		n->state = NAME_TOLD;
}

void names_claim(struct names *all, const struct upload *u, const char *digest)
{
	struct name *n;

	lock_scope(all->lock);
	n = find_file(all, u);
	if (!n)
		return;
	n->state = NAME_CLAIMED;
	snprintf(n->digest, sizeof(n->digest), "%s", digest);
}

bool names_busy(struct names *all, const struct upload *u)
{
	const struct name *n;

	lock_scope(all->lock);
	n = find_file(all, u);
	return upload_has_dirty(u) || (n && n->state == NAME_LAUNCHING);
}

/* --- launches --- */

int names_launch(struct names *all, const char *name, const struct upload *u, uint64_t version,
		 struct record_owner owner, bool recorded, struct name_launch *ret)
{
	struct name *n;

	lock_scope(all->lock);
	ret->number = ++all->number;
	if (make_uuid(ret->number, ret->uuid) < 0)
		return -EIO;
	n = find_file(all, u);
	if (n) {
		n->state = NAME_LAUNCHING;
		n->version = version;
	}
	if (!recorded)
		return 0;
	n = make(all, name);
	add_pending(all, n, ret->uuid);
	if (!n->job && !n->error)
		n->owner = owner;
	return 0;
}

void names_concluded(struct names *all, const char *name, const struct upload *u, uint64_t version,
		     const struct name_launch *l, const char *digest, bool open)
{
	struct name *n;

	lock_scope(all->lock);
	n = find_file(all, u);
	if (n && upload_version(u) == version) {
		if (digest)
			set_launched(n, version, digest);
		else if (n->state == NAME_LAUNCHING)
			n->state = NAME_TOLD;
	}
	n = find(all, name);
	if (!n || open)
		return;
	remove_pending(n, find_pending(n, l->uuid));
	show(all, n);
}

void names_accepted(struct names *all, const char *name, uint64_t number, const char *id,
		    struct record_owner owner)
{
	struct pending *p, *next;
	struct name *n;

	lock_scope(all->lock);
	n = make(all, name);
	/*
	 * If it turns out that an older launch, which an earlier mount has left, did not happen, that is no verdict any
	 * more.
	 */
	LL_FOREACH_SAFE(n->pending, p, next)
		if (p->left && number_of(p->uuid) < number)
			remove_pending(n, p);
	if (number > n->job_number) {
		set_job(n, id, loop_time_ns());
		n->job_number = number;
		n->owner = owner;
	}
	/* The verdict on a launch may have been that it is not known. */
	if (number >= n->number) {
		free(take_ptr(n->error));
		n->number = number;
	}
	show(all, n);
}

void names_refused(struct names *all, const char *name, uint64_t number, const char *error,
		   struct record_owner owner)
{
	char *clean cleanup_free = spec_utf8_clean_copy(error, "\n\t");
	size_t len = strnlen(clean, RECORD_MAX_ERROR - strlen("...\n"));
	const char *end = len > 0 && clean[len - 1] == '\n' ? "" : "\n";
	/* Clean, bounded, and whole lines. */
	char *text cleanup_free = text_print("%.*s%s", (int)len, clean, clean[len] ? "...\n" : end);
	struct name *n;

	lock_scope(all->lock);
	n = make(all, name);
	if (number >= n->number) {
		free(n->error);
		n->error = take_ptr(text);
		n->number = number;
		n->error_time = loop_time_ns();
		n->owner = owner;
	}
	show(all, n);
}

int names_remove(struct names *all, const char *name, enum submit_name kind)
{
	struct name *n;

	lock_scope(all->lock);
	n = find(all, name);
	if (!n || !*verdict_of(n, kind))
		return -ENOENT;
	free(take_ptr(*verdict_of(n, kind)));
	show(all, n);
	return 0;
}

int names_verdict(struct names *all, const char *name, enum submit_name kind,
		  struct name_verdict *ret)
{
	struct name *n;

	lock_scope(all->lock);
	n = find(all, name);
	if (!n || !*verdict_of(n, kind))
		return -ENOENT;
	ret->text = text_copy(*verdict_of(n, kind));
	ret->time = kind == SUBMIT_NAME_JOB ? n->job_time : n->error_time;
	ret->owner = n->owner;
	return 0;
}

/* --- over the end of a mount --- */

static bool is_us(const struct names *all, struct record_owner owner)
{
	return owner.uid == all->us.uid && owner.gid == all->us.gid;
}

void names_record(struct names *all, const char *name, struct record *ret, struct upload **file)
{
	const struct pending *p;
	const struct name *n;

	*ret = (struct record){0};
	*file = NULL;
	lock_scope(all->lock);
	n = find(all, name);
	if (!n)
		return;
	if (n->file) {
		upload_hold(n->file);
		*file = n->file;
	}
	if (n->state == NAME_CLAIMED ||
	    (n->state == NAME_LAUNCHED && n->version == upload_version(n->file))) {
		ret->is_launched = true;
		memcpy(ret->launched, n->digest, RECORD_DIGEST);
	}
	ret->told = n->state == NAME_TOLD && spec_name_submits(name);
	ret->job = n->job ? text_copy(n->job) : NULL;
	ret->job_time = n->job_time;
	ret->job_number = n->job_number;
	ret->number = n->number;
	ret->error = n->error ? text_copy(n->error) : NULL;
	ret->error_time = n->error_time;
	LL_FOREACH(n->pending, p)
		record_add_pending(ret, p->uuid);
	if (n->file)
		ret->file_owner = upload_owner(n->file);
	ret->file_owned = n->file && !is_us(all, ret->file_owner);
	ret->owned = !is_us(all, n->owner);
	ret->owner = n->owner;
}

/* The name of the file with this inode number, which is most probably called NAME. */
static struct name *find_ino(struct names *all, const char *name, uint64_t ino)
{
	struct name *n = find(all, name);

	if (n && n->file && upload_ino(n->file) == ino)
		return n;
	for (n = all->files; n && upload_ino(n->file) != ino; n = n->by_file.next)
		;
	return n;
}

void names_take_record(struct names *all, const char *name, const struct record *r)
{
	struct name *n;

	lock_scope(all->lock);
	n = r->launched_ino ? find_ino(all, name, r->launched_ino) : NULL;
	if (n) {
		n->state = NAME_CLAIMED;
		memcpy(n->digest, r->launched, RECORD_DIGEST);
	}
	n = make(all, name);
	if (r->file_owned && n->file)
		upload_set_owner(n->file, r->file_owner);
	if (r->told && n->state == NAME_WRITING)
		n->state = NAME_TOLD;
	if (r->job)
		set_job(n, r->job, r->job_time);
	n->job_number = r->job_number;
	n->number = r->number;
	all->number = max_of(all->number, r->job_number);
	all->number = max_of(all->number, r->number);
	if (r->error)
		text_set(&n->error, "%s", r->error);
	n->error_time = r->error_time;
	for (size_t i = 0; i < r->n_pending; i++)
		add_pending(all, n, r->pending[i])->left = true;
	if (r->owned)
		n->owner = r->owner;
	show(all, n);
}

uint64_t names_reported(struct names *all)
{
	const struct pending *p;
	const struct name *n;

	lock_scope(all->lock);
	all->reported = all->number;
	for (n = all->table; n; n = n->hh.next)
		LL_FOREACH(n->pending, p)
			if (number_of(p->uuid))
				all->reported = min_of(all->reported, number_of(p->uuid) - 1);
	return all->reported;
}

void names_set_reported(struct names *all, uint64_t reported)
{
	lock_scope(all->lock);
	all->reported = reported;
	if (reported != UINT64_MAX)
		all->number = max_of(all->number, reported);
}

bool names_take_unfinished(struct names *all, char **name)
{
	struct name *n;

	lock_scope(all->lock);
	for (n = all->files; n; n = n->by_file.next)
		if (n->state == NAME_WRITING && !n->pending && !n->news) {
			n->state = NAME_TOLD;
			*name = text_copy(n->text);
			return true;
		}
	return false;
}

/* Was the verdict on launch NUMBER of N (NULL: no such name is known) told before the last mount ended? */
static bool is_old(const struct names *all, const struct name *n, uint64_t number)
{
	if (all->reported != UINT64_MAX)
		return number <= all->reported;
	/* If a file has no record at all, nothing was told of it. */
	return !number || !n || !n->file || n->state != NAME_WRITING || n->job || n->error;
}

bool names_was_launched(struct names *all, const char *name, const char *id, const char *uuid)
{
	uint64_t number = number_of(uuid);
	struct pending *asked;
	struct name *n;
	bool told, old;

	lock_scope(all->lock);
	all->number = max_of(all->number, number);
	n = find(all, name);
	asked = n ? find_pending(n, uuid) : NULL;
	old = is_old(all, n, number);
	if (!id && !asked && (!number || !old))
		asked = add_pending(all, make(all, name), uuid);
	if (asked) {
		asked->left = true;
		asked->doubt = !id;
	}
	if (!id || !*id)
		return false;
	/* A later launch has made NAME.job; or this one has, and it was removed. */
	if (n && number && number <= n->job_number && !streq(n->job, id)) {
		remove_pending(n, asked);
		return false;
	}
	told = n && streq(n->job, id) && !old;
	if ((!asked && old) || (n && (n->news || !asked) && number < n->news_number))
		return told;
	n = make(all, name);
	n->news_number = number;
	/* A job that is shown already is no news, and neither is an older one. */
	if (!streq(n->job, id)) {
		text_set(&n->news, "%s", id);
	} else {
		free(take_ptr(n->news));
		n->job_number = max_of(n->job_number, number);
		n->number = max_of(n->number, number);
	}
	return told;
}

/* Did the last mount leave P, and is it known what became of it? */
static bool is_known(const struct pending *p)
{
	return p->left && !p->doubt;
}

bool names_take_open(struct names *all, char **name, char **id, uint64_t *number,
		     struct record_owner *owner)
{
	struct pending *p, *next;
	struct name *n;

	lock_scope(all->lock);
	for (n = all->table; n && !n->news; n = n->hh.next) {
		for (p = n->pending; p && !is_known(p);)
			p = p->next;
		if (p)
			break;
	}
	if (!n)
		return false;
	*number = n->news ? n->news_number : 0;
	LL_FOREACH_SAFE(n->pending, p, next)
		if (is_known(p)) {
			if (!n->news)
				*number = max_of(*number, number_of(p->uuid));
			remove_pending(n, p);
		}
	if (!*number)
		*number = ++all->number;
	*name = text_copy(n->text);
	*id = take_ptr(n->news);
	*owner = n->owner;
	return true;
}
