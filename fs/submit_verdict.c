/* SPDX-License-Identifier: MIT */
/*
 * What became of what was submitted under a name: NAME.job, a link to the job of the last accepted
 * write, and NAME.error, why the last write was refused. Shown from memory; submit_save.c keeps
 * them on disk.
 */
#include <errno.h>

#include "backend/diag.h"
#include "fs/listing.h"
#include "fs/submit_impl.h"
#include "fs/text.h"
#include "spec/utf8.h"

/* --- under the lock --- */

struct submit_verdict *submit_verdict_find(struct submit *s, const char *name)
{
	struct submit_verdict *v;

	HASH_FIND_STR(s->verdicts, name, v);
	return v;
}

char **submit_verdict_field(struct submit_verdict *v, enum submit_name kind)
{
	return kind == SUBMIT_NAME_JOB ? &v->job : &v->error;
}

void submit_verdict_free(struct submit_verdict *v)
{
	free(v->name);
	free(v->job);
	free(v->error);
	free(v->launched);
	free(v);
}

static void verdict_drop_empty(struct submit *s, struct submit_verdict *v)
{
	s->changed = loop_time_ns();
	if (v->job || v->error || v->pending)
		return;
	HASH_DEL(s->verdicts, v);
	submit_verdict_free(v);
}

/* The one of NAME, made if need be. NULL: no memory. */
struct submit_verdict *submit_verdict_make(struct submit *s, const char *name)
{
	struct submit_verdict *v = submit_verdict_find(s, name);

	if (v)
		return v;
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->name = strdup(name);
	if (!v->name) {
		free(v);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, s->verdicts, v->name, strlen(v->name), v);
	return v;
}

/* --- changes --- */

static void verdict_lost(const struct submit *s, const char *name)
{
	diag(DIAG_ERROR, "no memory to show what became of %s/%s", s->name, name);
}

void submit_verdict_pending(struct submit *s, const char *name, struct submit_author author)
{
	{
		struct submit_verdict *v;

		lock_scope(&s->lock);
		v = submit_verdict_make(s, name);
		if (!v)
			return; /* it will be missed only after a crash */
		v->pending++;
		if (!v->job && !v->error)
			v->author = author;
	}
	submit_verdict_save(s, name);
}

void submit_verdict_ended(struct submit *s, const char *name)
{
	struct submit_verdict *v;

	lock_scope(&s->lock);
	v = submit_verdict_find(s, name);
	if (!v || !v->pending)
		return;
	v->pending--;
	if (!v->pending)
		v->pending_since = 0;
	verdict_drop_empty(s, v);
}

void submit_verdict_accepted(struct submit *s, const char *name, uint64_t seq, const char *id,
			     struct submit_author author)
{
	char *copy = strdup(id);
	struct submit_verdict *v = NULL;

	if (copy) {
		lock_scope(&s->lock);
		v = submit_verdict_make(s, name);
		if (v && seq > v->job_seq) {
			free(v->job);
			v->job = take_ptr(copy);
			v->job_seq = seq;
			v->job_time = loop_time_ns();
			v->author = author;
		}
		if (v && seq > v->seq) {
			free(take_ptr(v->error));
			v->seq = seq;
		}
		s->changed = loop_time_ns();
	}
	free(copy);
	if (v)
		submit_verdict_save(s, name);
	else
		verdict_lost(s, name);
}

/* A text as NAME.error shows it: clean, bounded, and whole lines. malloc'ed; NULL: no memory. */
static char *verdict_text(const char *text)
{
	char *clean cleanup_free = spec_utf8_clean_copy(text, "\n\t");
	size_t len = clean ? strnlen(clean, SUBMIT_MAX_TEXT) : 0;
	const char *end = len > 0 && clean[len - 1] == '\n' ? "" : "\n";
	char *ret;

	if (!clean)
		return NULL;
	if (clean[len])
		end = "...\n";
	return asprintf(&ret, "%.*s%s", (int)len, clean, end) < 0 ? NULL : ret;
}

void submit_verdict_refused(struct submit *s, const char *name, uint64_t seq, const char *text,
			    struct submit_author author)
{
	char *copy = verdict_text(text);
	struct submit_verdict *v = NULL;

	if (copy) {
		lock_scope(&s->lock);
		v = submit_verdict_make(s, name);
		if (v && seq > v->seq) {
			free(v->error);
			v->error = take_ptr(copy);
			v->seq = seq;
			v->error_time = loop_time_ns();
			v->author = author;
		}
		s->changed = loop_time_ns();
	}
	free(copy);
	if (v)
		submit_verdict_save(s, name);
	else
		verdict_lost(s, name);
}

int submit_verdict_remove(struct submit *s, const char *name, enum submit_name kind)
{
	{
		struct submit_verdict *v;

		lock_scope(&s->lock);
		v = submit_verdict_find(s, name);
		if (!v || !*submit_verdict_field(v, kind))
			return -ENOENT;
		free(take_ptr(*submit_verdict_field(v, kind)));
		verdict_drop_empty(s, v);
	}
	submit_verdict_save(s, name);
	return 0;
}

/*
 * What FROM shows is TO's from now on. What is under way stays with the name under which it was submitted.
 * Under the lock.
 */
static void verdict_hand_over(struct submit_verdict *from, struct submit_verdict *to)
{
	free(to->job);
	free(to->error);
	to->job = take_ptr(from->job);
	to->error = take_ptr(from->error);
	to->job_seq = from->job_seq;
	to->seq = from->seq;
	to->job_time = from->job_time;
	to->error_time = from->error_time;
	to->author = from->author;
}

void submit_verdict_move(struct submit *s, const char *from, const char *to)
{
	struct submit_verdict *v, *target = NULL;

	{
		lock_scope(&s->lock);
		v = submit_verdict_find(s, from);
		if (!v)
			return;
		target = submit_verdict_make(s, to);
		if (target) {
			verdict_hand_over(v, target);
			verdict_drop_empty(s, v);
		}
	}
	if (!target) {
		verdict_lost(s, to);
		return;
	}
	submit_verdict_save(s, from);
	submit_verdict_save(s, to);
}

bool submit_verdict_room(struct submit *s)
{
	lock_scope(&s->lock);
	return HASH_COUNT(s->verdicts) < SUBMIT_MAX_NAMES;
}

/* --- for expiry, and at the end --- */

static struct submit_verdict *verdict_copy(const struct submit_verdict *v)
{
	struct submit_verdict *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->name = strdup(v->name);
	copy->job = strdup(v->job);
	copy->job_time = v->job_time;
	if (copy->name && copy->job)
		return copy;
	submit_verdict_free(copy);
	return NULL;
}

struct submit_verdict *submit_verdict_copy_jobs(struct submit *s)
{
	struct submit_verdict *v, *next, *list = NULL;

	lock_scope(&s->lock);
	HASH_ITER(hh, s->verdicts, v, next) {
		struct submit_verdict *copy = v->job ? verdict_copy(v) : NULL;

		if (copy) {
			copy->next = list;
			list = copy;
		}
	}
	return list;
}

void submit_verdict_free_all(struct submit *s)
{
	struct submit_verdict *v, *next;

	HASH_ITER(hh, s->verdicts, v, next) {
		HASH_DEL(s->verdicts, v);
		submit_verdict_free(v);
	}
}

/* --- as they are shown; FUSE thread --- */

/* The text of a verdict now, malloc'ed, and its attributes. -ENOENT: it has gone. */
static int verdict_get(struct fs *fs, struct node *node, char **ret, struct stat *st)
{
	char name[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(node_name(node), name);
	const char *prefix = kind == SUBMIT_NAME_JOB ? SUBMIT_TARGET : "";
	struct submit *s = submit_of(fs, node->parent);
	struct submit_verdict *v;
	int64_t when;

	assert(kind != SUBMIT_NAME_FILE);
	lock_scope(&s->lock);
	v = submit_verdict_find(s, name);
	if (!v || !*submit_verdict_field(v, kind))
		return -ENOENT;
	if (asprintf(ret, "%s%s", prefix, *submit_verdict_field(v, kind)) < 0)
		return -ENOMEM;
	when = kind == SUBMIT_NAME_JOB ? v->job_time : v->error_time;
	if (st) {
		node_set_times(st, when, when);
		st->st_size = (off_t)strlen(*ret);
		st->st_uid = v->author.uid;
		st->st_gid = v->author.gid;
	}
	return 0;
}

static int verdict_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	char *text cleanup_free = NULL;

	return verdict_get(fs, node, &text, st);
}

static int verdict_readlink(struct fs *fs, struct node *node, char **ret)
{
	return verdict_get(fs, node, ret, NULL);
}

static int verdict_render(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	int err = verdict_get(fs, node, ret, NULL);

	*ret_len = err ? 0 : strlen(*ret);
	return err;
}

static const struct node_class link_class = {
	.name = "submit-job",
	.mode = S_IFLNK | 0777,
	.live = true,
	.getattr = verdict_getattr,
	.readlink = verdict_readlink,
};

static const struct text_class error_class = {
	.class =
		{
			.name = "submit-error",
			.mode = S_IFREG | 0644,
			.live = true,
			.getattr = verdict_getattr,
			TEXT_OPS,
		},
	.render = verdict_render,
};

static bool verdict_is_there(struct submit *s, const char *name, enum submit_name kind)
{
	struct submit_verdict *v;

	lock_scope(&s->lock);
	v = submit_verdict_find(s, name);
	return v && *submit_verdict_field(v, kind);
}

int submit_verdict_lookup(struct fs *fs, struct node *dir, const char *file, struct node **ret)
{
	char name[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(file, name);

	if (kind == SUBMIT_NAME_FILE || !verdict_is_there(submit_of(fs, dir), name, kind))
		return -ENOENT;
	*ret = node_get(fs, dir, kind == SUBMIT_NAME_JOB ? &link_class : &error_class.class, file,
			NULL);
	return *ret ? 0 : -ENOMEM;
}

int submit_verdict_list(struct submit *s, struct listing *l)
{
	struct submit_verdict *v, *next;

	lock_scope(&s->lock);
	HASH_ITER(hh, s->verdicts, v, next) {
		char file[NAME_MAX + 1 + sizeof(SUBMIT_ERROR_SUFFIX)];
		int err = 0;

		snprintf(file, sizeof(file), "%s" SUBMIT_JOB_SUFFIX, v->name);
		if (v->job)
			err = listing_add(l, file);
		snprintf(file, sizeof(file), "%s" SUBMIT_ERROR_SUFFIX, v->name);
		if (!err && v->error)
			err = listing_add(l, file);
		if (err)
			return err;
	}
	return 0;
}
