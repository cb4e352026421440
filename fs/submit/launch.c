/* SPDX-License-Identifier: MIT */
/* Launches, those of this mount and those that the last one left; see launch.h. */
#include "fs/submit/launch.h"

#include <errno.h>
#include <pwd.h>

#include "backend/base/diag.h"
#include "backend/base/loop.h"
#include "backend/base/random.h"
#include "fs/vfs/fs.h"
#include "fs/vfs/park.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/sha256.h"

/* How long a close and a rename wait for the verdict. */
#define LAUNCH_CLOSE_MS	 30000
#define LAUNCH_RENAME_MS 3000

struct launch {
	struct submit *s;
	struct upload *upload; /* a reference, and open */
	bool rename;	       /* UPLOAD gets NAME when it is accepted and REQ still waits */
	uint64_t number;
	uint64_t content; /* number of the content that TEXT is */
	uint64_t ticket;  /* 0: nobody waits */
	struct record_owner owner;
	char *submitter; /* user@host, if that is not who mounted */
	char *text;
	size_t len;
	char submission[37];	 /* the UUID of the launch */
	mode_t readable;	 /* the bits of S_IRGRP and S_IROTH that its file has */
	char name[NAME_MAX + 1]; /* under which it is submitted */
};

static void launch_free(struct launch *l)
{
	upload_close(l->upload);
	upload_unref(l->upload);
	free(l->submitter);
	free(l->text);
	free(l);
}

struct record_owner launch_owner(const struct submit *s, fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return s->config.allow_other ? (struct record_owner){ctx->uid, ctx->gid} : s->us;
}

/* mv takes the EINVAL of a rename for "cannot move to a subdirectory of itself". */
static void launch_reply(fuse_req_t req, bool rename, int err)
{
	fuse_reply_err(req, rename && err == -EINVAL ? EBADMSG : -err);
}

/* --- the answer; I/O thread --- */

/* Tell the upload, and with it those who have it open, how the launch has ended. */
static void launch_conclude(struct launch *l, bool accepted)
{
	char digest[RECORD_DIGEST];

	if (accepted)
		spec_sha256(l->text, l->len, digest);
	upload_concluded(l->upload, l->number, l->content, accepted ? digest : NULL);
}

/* The name that the verdict is about: the file's own now, if it still has one that submits. */
static const char *launch_verdict_name(struct launch *l, char buf[NAME_MAX + 1])
{
	if (!l->rename && upload_name(l->upload, buf) && spec_name_submits(buf))
		return buf;
	return l->name;
}

/* Give the upload the name for which it was launched. */
static int launch_finish_rename(struct launch *l)
{
	char old[NAME_MAX + 1];
	bool named = upload_name(l->upload, old);
	int err = upload_rename(l->upload, l->name);

	if (!err && named)
		save_name(l->s, old);
	return err;
}

static void launch_on_reply(void *data, const struct backend_result *r)
{
	struct launch *l = data;
	fuse_req_t req = park_claim(l->s->fs->park, l->ticket);
	const char *why = *r->text ? r->text : strerror(-r->err);
	char buf[NAME_MAX + 1];
	const char *shown;
	int err = r->err;

	launch_conclude(l, !err);
	if (!err && l->rename && req)
		err = launch_finish_rename(l);
	shown = launch_verdict_name(l, buf);
	/* In progress: only the next start will know whether it was launched, so the record stays as it is. */
	if (r->err != -EINPROGRESS)
		verdict_end(l->s->verdicts, l->name);
	if (r->err)
		verdict_refused(l->s->verdicts, shown, l->number, why, l->owner);
	else
		verdict_accepted(l->s->verdicts, shown, l->number, r->id, l->owner);
	save_name(l->s, shown);
	/* The launch was recorded under the name that the file had when it began. */
	if (!streq(shown, l->name))
		save_name(l->s, l->name);
	if (req)
		launch_reply(req, l->rename, err);
	save_answered(l->s, shown);
	launch_free(l);
}

/* Does L's file show what became of it, since its name submits, or the one that it gets now (RENAMES)? */
static bool launch_is_shown(const struct launch *l, bool renames)
{
	char name[NAME_MAX + 1];

	return renames || (upload_name(l->upload, name) && spec_name_submits(name));
}

/* The same for a dry run, which has no job to show: the file itself shows what came of it. */
static void launch_on_made(void *data, const struct backend_result *r)
{
	struct launch *l = data;
	fuse_req_t req = park_claim(l->s->fs->park, l->ticket);
	bool shown = launch_is_shown(l, l->rename && req);
	bool current = upload_is_current(l->upload, l->content);
	const char *text = r->text;
	char buf[NAME_MAX + 1];
	const char *name;
	int err = r->err;

	if (!err && shown) {
		err = upload_replace(l->upload, l->content, r->manifest);
		text = "";
	}
	launch_conclude(l, !err && shown);
	if (!err && l->rename && req)
		err = launch_finish_rename(l);
	name = launch_verdict_name(l, buf);
	if (err && current)
		verdict_refused(l->s->verdicts, name, l->number, *text ? text : strerror(-err),
				l->owner);
	else if (current && shown)
		verdict_remove(l->s->verdicts, name, SUBMIT_NAME_ERROR);
	save_name(l->s, name);
	if (req)
		launch_reply(req, l->rename, err);
	save_answered(l->s, name);
	launch_free(l);
}

/* --- the question --- */

static void launch_send(void *data)
{
	struct launch *l = data;
	const struct submit_config *config = &l->s->config;
	const struct backend_submission submission = {
		.file = l->name,
		.text = l->text,
		.len = l->len,
		.submitter = l->submitter ? l->submitter : config->submitter,
		.readable = l->readable,
		.submission = l->submission,
	};

	if (l->s->dry)
		backend_dry_run(config->backend, &submission, launch_on_made, l);
	else
		backend_submit(config->backend, &submission, launch_on_reply, l);
}

/* Find "user@host" of an owner who has not mounted: on the pool, since names may come from a network. */
static void launch_name_owner(void *data)
{
	struct launch *l = data;
	const char *host = strrchr(l->s->config.submitter, '@');
	struct passwd pw, *found = NULL;
	char buf[4096];

	getpwuid_r(l->owner.uid, &pw, buf, sizeof(buf), &found);
	if (found)
		l->submitter = text_print("%s%s", pw.pw_name, host ? host : "");
	else
		l->submitter = text_print("uid-%u%s", l->owner.uid, host ? host : "");
}

static void launch_find_owner(void *data)
{
	const struct launch *l = data;

	loop_work(l->s->fs->loop, launch_name_owner, launch_send, data);
}

/* Who may read the file as it is shown. Its job belongs to who mounts, so to another group than a file of others. */
static mode_t launch_readable(struct submit *s, struct upload *u)
{
	mode_t mode;
	struct stat st;

	upload_stat(u, &st);
	mode = st.st_mode & ~s->fs->config.umask & (S_IRGRP | S_IROTH);
	return st.st_gid != s->us.gid && !(mode & S_IROTH) ? 0 : mode;
}

/* Take the content of U as it is now, to be launched as NAME; nothing is sent yet. */
static int launch_new(struct submit *s, struct upload *u, struct upload_writer *w, const char *name,
		      struct record_owner owner, struct launch **ret)
{
	struct launch *l;
	int err = upload_open(u);

	if (err)
		return err;
	l = new0(struct launch);
	l->s = s;
	l->upload = upload_ref(u);
	l->owner = owner;
	l->readable = launch_readable(s, u);
	snprintf(l->name, sizeof(l->name), "%s", name);
	err = random_uuid(l->submission);
	if (!err)
		err = upload_bytes(u, &l->text, &l->len);
	if (err) {
		launch_free(l);
		return err;
	}
	l->number = verdicts_next(s->verdicts);
	l->content = upload_launching(u, w, l->number);
	*ret = l;
	return 0;
}

static void launch_start(struct launch *l, fuse_req_t req, enum park_kind kind, unsigned ms)
{
	struct fs *fs = l->s->fs;

	if (req)
		l->ticket = park_add(fs->park, req, kind, ms);
	if (!l->s->dry) {
		/* This is posted before the question, so the record is on disk when the backend is asked. */
		verdict_begin(l->s->verdicts, l->name, l->owner);
		save_name(l->s, l->name);
	}
	if (l->owner.uid == l->s->us.uid)
		launch_send(l);
	else
		loop_post(fs->loop, launch_find_owner, l);
}

/* --- when --- */

/* Show that the content can't be submitted as NAME, for FLAW, an errno. */
static void launch_refuse(struct submit *s, const char *name, int flaw, struct record_owner owner)
{
	char *text cleanup_free = NULL;

	if (flaw == ECANCELED)
		text = text_print(
			"%s: its writer was killed by a signal, so it may be only a part: "
			"nothing was launched. Write it again.",
			name);
	else if (flaw == EFBIG)
		text = text_print("%s: more than %u bytes: a file that is submitted may have at "
				  "most %u. Nothing was launched.",
				  name, SPEC_MAX_FILE, SPEC_MAX_FILE);
	else
		text = text_print("%s: could not be written whole: %s. Nothing was launched. "
				  "Write it again.",
				  name, strerror(flaw));
	verdict_refused(s->verdicts, name, verdicts_next(s->verdicts), text, owner);
	save_name(s, name);
}

void launch_show_flaw(struct submit *s, struct upload *u, struct record_owner owner)
{
	char name[NAME_MAX + 1];

	if (upload_name(u, name) && spec_name_submits(name))
		launch_refuse(s, name, upload_flaw(u), owner);
}

/* Who copies a file here under a name that does not submit should not wait for a job in vain. */
static void launch_explain_name(struct submit *s, const char *name, struct record_owner owner)
{
	char *text cleanup_free = NULL;
	struct verdict_view v;

	if (spec_name_submits(name) || submit_name_is_passing(name) ||
	    strlen(name) + strlen(SUBMIT_ERROR_SUFFIX) > NAME_MAX)
		return;
	if (verdict_get(s->verdicts, name, SUBMIT_NAME_ERROR, &v) == 0) {
		free(v.text);
		return;
	}
	text = text_print("%s: not submitted: the name must end in .yaml, .yml or .json", name);
	diag(DIAG_INFO, "%s/%s", s->name, text);
	verdict_refused(s->verdicts, name, verdicts_next(s->verdicts), text, owner);
	save_name(s, name);
}

void launch_close(struct submit *s, struct upload *u, struct upload_writer *w,
		  struct record_owner owner, fuse_req_t req)
{
	char name[NAME_MAX + 1];
	bool written = upload_name(u, name) && upload_size(u) > 0 && upload_is_dirty(u, w);
	struct launch *l = NULL;
	int err = 0;

	if (written)
		launch_explain_name(s, name, owner);
	if (written && spec_name_submits(name) && !(s->dry && upload_is_launched(u))) {
		err = -upload_flaw(u);
		if (!err)
			err = launch_new(s, u, w, name, owner, &l);
		if (err) {
			upload_launching(u, w, 0);
			launch_refuse(s, name, -err, owner);
		}
	}
	if (l)
		launch_start(l, req, PARK_CLOSE, LAUNCH_CLOSE_MS);
	else if (req)
		fuse_reply_err(req, -err);
}

void launch_rename(struct submit *s, struct upload *u, const char *name, fuse_req_t req)
{
	struct record_owner owner = launch_owner(s, req);
	struct launch *l;
	int err = -upload_flaw(u);

	if (!err && upload_size(u) > SPEC_MAX_FILE)
		err = -EFBIG;
	if (!err)
		err = launch_new(s, u, NULL, name, owner, &l);
	if (err) {
		launch_refuse(s, name, -err, owner);
		launch_reply(req, true, err);
		return;
	}
	l->rename = true;
	launch_start(l, req, PARK_DIR, LAUNCH_RENAME_MS);
}

/* --- what the last mount left: it was killed, or the machine went down --- */

void submit_launched(struct submit *s, const char *file, const char *id, const char *submission,
		     int64_t time)
{
	(void)submission;
	if (submit_name_check(file) == 0)
		verdict_was_launched(s->verdicts, file, id, time, save_reported_until(s));
}

/*
 * What is in NAME, if the job ID was launched from it, is not launched again by a rename. It may be another file: one
 * that was to be replaced by the rename that launched the job, which came too late.
 */
static void recover_upload(struct submit *s, const char *name, const char *id)
{
	struct backend *b = s->config.backend;
	struct upload *u cleanup_upload = upload_find(s->uploads, name);
	const struct spec_job *job cleanup_job = backend_job(b, BACKEND_JOBS, id);
	char *sent cleanup_free = NULL;
	size_t n = 0;

	if (!u)
		return;
	if (!job)
		job = backend_job(b, BACKEND_HISTORY, id);
	/* A job that runs twice is worse than a file that has to be copied. */
	if (!job || backend_text(b, job, BACKEND_APPDEF, &sent, &n) < 0)
		upload_recover(u, NULL, 0);
	else
		upload_recover(u, sent, n);
}

static void recover_one(struct submit *s, const char *name, const char *id,
			struct record_owner owner)
{
	uint64_t number = verdicts_next(s->verdicts);
	char *text cleanup_free = NULL;

	if (id) {
		diag(DIAG_INFO, "%s: launched from %s when the last mount ended", id, name);
		recover_upload(s, name, id);
		verdict_accepted(s->verdicts, name, number, id, owner);
	} else {
		text = text_print(
			"%s: kxfs ended while this was being launched, and there is no job of it: nothing "
			"was launched, or it has been removed since. Write it again to launch it.\n",
			name);
		verdict_refused(s->verdicts, name, number, text, owner);
	}
	save_name(s, name);
}

void submit_recover(struct submit *s)
{
	struct record_owner owner;
	char *name, *id;

	while (verdicts_take_open(s->verdicts, &name, &id, &owner)) {
		recover_one(s, name, id, owner);
		free(name);
		free(id);
	}
	save_reported(s);
}
