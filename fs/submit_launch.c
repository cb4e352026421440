/* SPDX-License-Identifier: MIT */
/*
 * From contents to verdicts: take what is in the file now, give it to the backend, and when it has
 * answered show the verdict and answer whoever waits. Whether somebody still waits then makes no
 * difference to the verdict: a request that was made is carried through.
 */
#include <errno.h>
#include <pwd.h>
#include <utlist.h>

#include "backend/diag.h"
#include "fs/options.h"
#include "fs/park.h"
#include "fs/submit_impl.h"
#include "spec/limits.h"
#include "spec/name.h"

struct launch {
	struct submit *s;
	struct submit_file *file; /* a reference and a hold */
	bool rename;		  /* FILE gets NAME when it is accepted and REQ still waits */
	uint64_t seq;
	uint64_t content; /* of FILE, that TEXT is */
	uint64_t ticket;  /* 0: nobody waits */
	struct submit_author author;
	char *submitter;
	char *text;
	size_t len;
	char name[NAME_MAX + 1]; /* under which it is submitted */
};

static void launch_free(struct launch *l)
{
	submit_file_drop(l->file);
	submit_file_unref(l->file);
	free(l->submitter);
	free(l->text);
	free(l);
}

static uint64_t launch_next_seq(struct submit *s)
{
	lock_scope(&s->lock);
	return ++s->seq;
}

struct submit_author submit_author_of(struct fs *fs, fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	if (!fs->options->allow_other)
		return (struct submit_author){fs->options->uid, fs->options->gid};
	return (struct submit_author){ctx->uid, ctx->gid};
}

/* --- the answer, I/O thread --- */

/* What it means for the file and for those who have it open. */
static void launch_settle(struct launch *l, bool accepted)
{
	struct submit_handle *h;

	{
		lock_scope(&l->s->lock);
		DL_FOREACH(l->file->handles, h) {
			if (h->seq != l->seq)
				continue;
			h->spent = accepted;
			h->seq = 0;
		}
		if (l->file->pending == l->content)
			l->file->pending = 0;
		if (accepted) {
			l->file->accepted = max_of(l->file->accepted, l->content);
			l->file->modes++;
		}
	}
	if (accepted)
		submit_file_save_mode(l->file);
}

/* The name that the verdict is about: the file's own now, if it still has one that submits. */
static const char *launch_verdict_name(struct launch *l, char buf[NAME_MAX + 1])
{
	if (!l->rename && submit_file_name(l->file, buf) && spec_name_submits(buf))
		return buf;
	return l->name;
}

/* Is what was asked about still in the file? */
static bool launch_is_current(const struct launch *l)
{
	lock_scope(&l->s->lock);
	return l->file->content == l->content;
}

static void launch_on_reply(void *data, const struct backend_result *r)
{
	struct launch *l = data;
	fuse_req_t req = park_claim(l->s->fs->park, l->ticket);
	char buf[NAME_MAX + 1];
	const char *shown;
	int err = r->err;

	launch_settle(l, !err);
	if (!err && l->rename && req)
		err = submit_file_rename(l->file, l->name);
	shown = launch_verdict_name(l, buf);
	if (r->err != -EINPROGRESS)
		submit_verdict_ended(l->s, l->name);
	if (r->err)
		submit_verdict_refused(l->s, shown, l->seq, *r->text ? r->text : strerror(-r->err),
				       l->author);
	else
		submit_verdict_accepted(l->s, shown, l->seq, r->id, l->author);
	/* It was under way under the name that the file had then. */
	if (!streq(shown, l->name))
		submit_verdict_save(l->s, l->name);
	if (req)
		fuse_reply_err(req, -err);
	launch_free(l);
}

/* Is L's file one that shows what became of it: by its name, or the one that it will get now? */
static bool launch_is_shown(const struct launch *l, bool renames)
{
	char name[NAME_MAX + 1];

	return renames || (submit_file_name(l->file, name) && spec_name_submits(name));
}

/* The same for a dry run, which has no job to show: the file itself shows what came of it. */
static void launch_on_made(void *data, const struct backend_result *r)
{
	struct launch *l = data;
	fuse_req_t req = park_claim(l->s->fs->park, l->ticket);
	bool shown = launch_is_shown(l, l->rename && req);
	bool current = launch_is_current(l);
	const char *text = r->text;
	char buf[NAME_MAX + 1];
	int err = r->err;

	if (!err && shown) {
		err = submit_file_replace(l->file, l->content, r->manifest);
		text = "";
	}
	launch_settle(l, !err && shown);
	if (!err && l->rename && req)
		err = submit_file_rename(l->file, l->name);
	if (err && current)
		submit_verdict_refused(l->s, launch_verdict_name(l, buf), l->seq,
				       *text ? text : strerror(-err), l->author);
	else if (current && shown)
		submit_verdict_remove(l->s, launch_verdict_name(l, buf), SUBMIT_NAME_ERROR);
	if (req)
		fuse_reply_err(req, -err);
	launch_free(l);
}

/* --- the question --- */

static void launch_send(void *data)
{
	struct launch *l = data;
	struct backend *backend = l->s->fs->backend;
	const struct backend_submission submission = {
		.file = l->name,
		.text = l->text,
		.len = l->len,
		.submitter = l->submitter ? l->submitter : l->s->fs->submitter,
	};

	if (l->s->dry)
		backend_dry_run(backend, &submission, launch_on_made, l);
	else
		backend_submit(backend, &submission, launch_on_reply, l);
}

/* "user@host" of somebody else than who mounted: names may come from a network, so on the pool. */
static void launch_name_author(void *data)
{
	struct launch *l = data;
	const char *host = strchr(l->s->fs->submitter, '@');
	struct passwd pw, *found = NULL;
	char buf[4096];
	int n;

	getpwuid_r(l->author.uid, &pw, buf, sizeof(buf), &found);
	if (found)
		n = asprintf(&l->submitter, "%s%s", pw.pw_name, host ? host : "");
	else
		n = asprintf(&l->submitter, "uid-%u%s", l->author.uid, host ? host : "");
	if (n < 0)
		l->submitter = NULL;
}

static void launch_find_author(void *data)
{
	const struct launch *l = data;

	loop_work(l->s->fs->loop, launch_name_author, launch_send, data);
}

/* The content of F as it is now, not sent yet. */
static int launch_new(struct submit_file *f, const char *name, struct submit_author author,
		      struct launch **ret)
{
	struct launch *l;
	int err = submit_file_hold(f);

	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l) {
		submit_file_drop(f);
		return -ENOMEM;
	}
	submit_file_ref(f);
	l->s = f->s;
	l->file = f;
	l->author = author;
	l->seq = launch_next_seq(f->s);
	snprintf(l->name, sizeof(l->name), "%s", name);
	err = submit_read(f, &l->text, &l->len);
	if (err) {
		launch_free(l);
		return err;
	}
	lock_scope(&f->s->lock);
	l->content = f->content;
	f->pending = f->content;
	*ret = l;
	return 0;
}

static void launch_start(struct launch *l, fuse_req_t req, enum park_kind kind, unsigned ms)
{
	struct fs *fs = l->s->fs;

	if (req)
		l->ticket = park_add(fs->park, req, kind, ms);
	if (!l->s->dry)
		submit_verdict_pending(l->s, l->name, l->author);
	if (l->author.uid == fs->options->uid)
		launch_send(l);
	else
		loop_post(fs->loop, launch_find_author, l);
}

/* --- when --- */

void submit_say_flaw(struct submit_file *f, const char *name, int flaw, struct submit_author author)
{
	char *text cleanup_free = NULL;
	int n;

	if (flaw == ECANCELED)
		n = asprintf(&text,
			     "%s: its writer was killed by a signal, so it may be only a part: "
			     "nothing was launched. Write it again.",
			     name);
	else if (flaw == EFBIG)
		n = asprintf(&text,
			     "%s: more than %u bytes: a file that is submitted may have at "
			     "most %u. Nothing was launched.",
			     name, SPEC_MAX_FILE, SPEC_MAX_FILE);
	else
		n = asprintf(&text,
			     "%s: could not be written whole: %s. Nothing was launched. "
			     "Write it again.",
			     name, strerror(flaw));
	submit_verdict_refused(f->s, name, launch_next_seq(f->s), n < 0 ? strerror(flaw) : text,
			       author);
}

/* All that the process of H has written takes part in this submission (SEQ) or needs none. */
static void commit_group(struct submit_handle *h, uint64_t seq)
{
	struct submit_handle *other;

	lock_scope(&h->file->s->lock);
	DL_FOREACH(h->file->handles, other) {
		if (other != h && (h->opener == 0 || other->opener != h->opener))
			continue;
		if (other->dirty)
			other->seq = seq;
		other->dirty = false;
	}
}

static bool commit_is_dirty(struct submit_handle *h)
{
	struct submit_handle *other;

	lock_scope(&h->file->s->lock);
	DL_FOREACH(h->file->handles, other)
		if (other->dirty && (other == h || (h->opener && other->opener == h->opener)))
			return true;
	return false;
}

/* The verdict was reached here. */
static void commit_refuse(struct submit_handle *h, const char *name, int flaw, fuse_req_t req)
{
	commit_group(h, 0);
	submit_say_flaw(h->file, name, flaw, h->author);
	if (req)
		fuse_reply_err(req, flaw);
}

void submit_commit(struct submit_handle *h, fuse_req_t req)
{
	struct submit_file *f = h->file;
	char name[NAME_MAX + 1];
	struct launch *l;
	int err;

	if (!submit_file_name(f, name) || !spec_name_submits(name) || submit_file_size(f) == 0 ||
	    !commit_is_dirty(h) || (f->s->dry && submit_file_is_made(f))) {
		if (req)
			fuse_reply_err(req, 0);
		return;
	}
	err = f->flaw ? -f->flaw : launch_new(f, name, h->author, &l);
	if (err) {
		commit_refuse(h, name, -err, req);
		return;
	}
	commit_group(h, l->seq);
	launch_start(l, req, PARK_CLOSE, SUBMIT_CLOSE_MS);
}

void submit_commit_rename(struct submit_file *f, const char *name, fuse_req_t req)
{
	struct submit_author author = submit_author_of(f->s->fs, req);
	struct launch *l;
	int err;

	if (f->flaw)
		err = -f->flaw;
	else if (submit_file_size(f) > SPEC_MAX_FILE)
		err = -EFBIG;
	else
		err = launch_new(f, name, author, &l);
	if (err) {
		submit_say_flaw(f, name, -err, author);
		fuse_reply_err(req, -err);
		return;
	}
	l->rename = true;
	launch_start(l, req, PARK_DIR, SUBMIT_RENAME_MS);
}
