/* SPDX-License-Identifier: MIT */
/*
 * Launches; see launch.h.
 *
 * The steps of a launch:
 *
 *	1. The pool writes the file's bytes to disk. If this fails, the launch ends.
 *	2. A thread looks up the owner's name, unless the mounting user owns the file. If this
 *	   fails, the launch continues.
 *	3. The backend gets the document, and answers.
 *	4. In dryrun/, the pool writes the manifest to the file, unless the file has changed.
 *	5. For a launch by rename that was accepted, the pool renames the file on disk.
 *	6. launch_end shows the result, and answers the FUSE request.
 */
#include "fs/submit/launch.h"

#include <errno.h>

#include "backend/base/diag.h"
#include "backend/base/lookup.h"
#include "backend/base/loop.h"
#include "backend/base/process.h"
#include "fs/submit/writer.h"
#include "fs/vfs/fs.h"
#include "fs/vfs/park.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

/* time limit for looking up the name of a user other than the mounting one */
#define LAUNCH_OWNER_MS 5000

struct launch {
	struct submit *s;
	struct upload *upload; /* a reference, and open (upload_open) */
	/* true for a launch by rename (launch_rename) */
	bool rename;
	pid_t process;	  /* the process that requested the rename */
	uint64_t version; /* version of TEXT */
	uint64_t number;  /* number of this launch (names_begin) */
	uint64_t ticket;  /* the parked request that waits, or 0 */
	struct file_owner owner;
	char *submitter; /* user@host; NULL for the mounting user */
	char *text;
	size_t len;
	mode_t readable;	 /* S_IRGRP and S_IROTH: who may read the job's texts */
	char name[NAME_MAX + 1]; /* the name under which TEXT is submitted */
	int err;		 /* 0 if TEXT was launched */
	/* error of the rename after the launch, or 0 */
	int unnamed;
	char *why;  /* explains ERR; may be NULL */
	char *made; /* dryrun/: the manifest; may be NULL */
};

static void launch_free(struct launch *l)
{
	upload_close(l->upload);
	upload_unref(l->upload);
	free(l->submitter);
	free(l->text);
	free(l->why);
	free(l->made);
	free(l);
}

struct file_owner launch_owner(const struct submit *s, fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return s->config.allow_other ? (struct file_owner){ctx->uid, ctx->gid} : s->us;
}

static void reply(struct submit *s, uint64_t ticket, int err)
{
	fuse_req_t req = park_claim(s->fs->park, ticket);

	if (req)
		fuse_reply_err(req, -err);
}

void launch_reply_rename(struct submit *s, uint64_t ticket, int err)
{
	reply(s, ticket, err == -EINVAL ? -EBADMSG : err);
}

/* --- the reply; I/O thread --- */

static void launch_end(struct launch *l)
{
	struct submit *s = l->s;
	bool current = upload_look(l->upload, NULL).version == l->version;
	/* Show a dry run's result only if the file still shows the same contents. */
	bool shown = !s->dry || (current && (l->err || l->made));

	/* After a dry run the contents are NEW again, so that a user can repeat it. */
	upload_set_state(l->upload, l->version, l->err || s->dry ? CONTENT_NEW : CONTENT_LAUNCHED);
	upload_concluded(l->upload, l->number, !l->err);
	if (l->made) {
		upload_set_state(l->upload, upload_replace(l->upload, l->version, l->made),
				 CONTENT_LAUNCHED);
		save_soon(s, l->upload);
	}
	if (l->err && !l->why)
		l->why = text_copy(strerror(-l->err));
	names_end(s->names, l->name, shown ? l->number : 0, l->err ? l->why : NULL, l->owner);
	if (l->rename)
		launch_reply_rename(s, l->ticket, l->err ? l->err : l->unnamed);
	else
		reply(s, l->ticket, l->err);
	launch_free(l);
}

static void launch_on_renamed(void *data, int err)
{
	struct launch *l = data;

	/* In submit/, the launch has succeeded even if kxfs could not rename the file. */
	if (err && l->s->dry)
		l->err = err;
	else if (err)
		l->unnamed = err;
	else
		launch_renamed(l->s, l->upload, l->name, l->process, l->ticket);
	launch_end(l);
}

/* If a launch by rename was accepted, and its request still waits, rename the file on disk. */
static void launch_finish(struct launch *l)
{
	if (!l->err && l->rename && park_waits(l->s->fs->park, l->ticket))
		save_file(l->s, l->upload, SAVE_RENAME, l->name, launch_on_renamed, l);
	else
		launch_end(l);
}

static void launch_on_text(void *data, int err)
{
	struct launch *l = data;

	l->err = err;
	if (err)
		free(take_ptr(l->made));
	launch_finish(l);
}

/*
 * True if the file still shows the launched contents under a submitting name. If a rename waits for
 * this launch, its new name counts.
 */
static bool launch_is_shown(const struct launch *l)
{
	char name[NAME_MAX + 1];
	bool submits = (l->rename && park_waits(l->s->fs->park, l->ticket)) ||
		       (names_of(l->s->names, l->upload, name) && spec_name_submits(name));

	return submits && upload_look(l->upload, NULL).version == l->version;
}

/* Called with the backend's result. In dryrun/, replace the file's contents by the manifest. */
static void launch_on_reply(void *data, const struct backend_result *r)
{
	struct launch *l = data;

	l->err = r->err;
	l->why = *r->text ? text_copy(r->text) : NULL;
	if (l->s->dry && !l->err && launch_is_shown(l)) {
		l->made = text_copy(r->manifest);
		save_file(l->s, l->upload, SAVE_TEXT, l->made, launch_on_text, l);
	} else {
		launch_finish(l);
	}
}

/* --- the request; I/O thread --- */

static bool launch_is_awaited(void *data)
{
	const struct launch *l = data;

	return park_waits(l->s->fs->park, l->ticket);
}

static void launch_send(struct launch *l)
{
	const struct submit_config *config = &l->s->config;
	const struct backend_submission submission = {
		.file = l->name,
		.text = l->text,
		.len = l->len,
		.submitter = l->submitter ? l->submitter : config->submitter,
		.readable = l->readable,
		.owned = l->owner.uid != l->s->us.uid || l->owner.gid != l->s->us.gid,
		.uid = l->owner.uid,
		.gid = l->owner.gid,
		.waits = launch_is_awaited,
	};

	if (l->s->dry)
		backend_dry_run(config->backend, &submission, launch_on_reply, l);
	else
		backend_submit(config->backend, &submission, launch_on_reply, l);
}

/* Looks up an owner's name on a thread of its own, because this may need the network. */
struct owner {
	uid_t uid;
	char *name;
};

static void owner_look(void *data)
{
	struct owner *o = data;

	o->name = process_user(o->uid);
}

static void owner_free(void *data)
{
	struct owner *o = data;

	free(o->name);
	free(o);
}

static void owner_found(void *data, void *question)
{
	struct launch *l = data;
	const struct owner *o = question;
	const char *host = strrchr(l->s->config.submitter, '@');

	if (o && o->name)
		l->submitter = text_print("%s%s", o->name, host ? host : "");
	else
		l->submitter = text_print("uid-%u%s", l->owner.uid, host ? host : "");
	launch_send(l);
}

static void launch_saved(void *data, int err)
{
	struct launch *l = data;
	char *key cleanup_free = text_print("user %u", l->owner.uid);
	struct owner *o;

	if (err) {
		l->err = err;
		text_set(&l->why,
			 "%s: can't be written to the state directory: %s. Nothing was launched. "
			 "Write it again.",
			 l->name, strerror(-err));
		launch_end(l);
		return;
	}
	if (l->owner.uid == l->s->us.uid) {
		launch_send(l);
		return;
	}
	o = new0(struct owner);
	o->uid = l->owner.uid;
	lookup_start(l->s->fs->loop, &(struct lookup){.key = key,
						      .ms = LAUNCH_OWNER_MS,
						      .look = owner_look,
						      .question = o,
						      .free = owner_free,
						      .done = owner_found,
						      .data = l});
}

/* --- making a launch --- */

/* Make a launch of a copy of W's contents (upload_copy) under the name NAME. U must be open. */
static struct launch *launch_new(struct submit *s, struct upload *u, const struct upload_writer *w,
				 const char *name, struct file_owner owner)
{
	struct launch *l = new0(struct launch);
	mode_t mode;
	struct stat st;

	l->s = s;
	l->upload = upload_ref(u);
	upload_open(u, false);
	l->owner = owner;
	/*
	 * Files such as the job's manifest.yaml will have the group of the mounting user. So let
	 * the group read them only if the uploaded file has that group, or if all users may read it
	 * anyway.
	 */
	upload_stat(u, w, &st);
	mode = st.st_mode & ~s->fs->config.umask & (S_IRGRP | S_IROTH);
	l->readable = st.st_gid != s->us.gid && !(mode & S_IROTH) ? 0 : mode;
	snprintf(l->name, sizeof(l->name), "%s", name);
	upload_copy(u, w, &l->text, &l->len, &l->version);
	upload_set_state(u, l->version, CONTENT_LAUNCHING);
	l->number = names_begin(s->names, name);
	return l;
}

/* --- what starts a launch --- */

/* Write to NAME.error why the file has not been launched. FLAW: see struct upload_look. */
static void launch_refuse(struct submit *s, const char *name, int flaw, struct file_owner owner)
{
	char *text cleanup_free = NULL;

	if (flaw == ECANCELED)
		text = text_print(
			"%s: a signal ended the process that wrote this file, so the file may "
			"be incomplete. Nothing was launched. Write it again.",
			name);
	else if (flaw == EINVAL)
		text = text_print(
			"%s: the last line has no newline, so the file may be incomplete. kxfs "
			"can't check this, because the process that wrote the file belongs to "
			"another user or container. Nothing was launched. Write the file "
			"again, with a newline at its end.",
			name);
	else if (flaw == EFBIG)
		text = text_print("%s: larger than %u bytes, the limit for submitted files. "
				  "Nothing was launched.",
				  name, SPEC_MAX_FILE);
	else
		text = text_print("%s: was not written completely: %s. Nothing was launched. "
				  "Write it again.",
				  name, strerror(flaw));
	names_explain(s->names, name, text, owner);
}

/*
 * If NAME is not a submitting name, explain in NAME.error that nothing was launched, because the
 * user may expect a job. Temporary names of editors get no such error.
 */
static void launch_explain_name(struct submit *s, const char *name, struct file_owner owner)
{
	char *text cleanup_free = NULL;
	struct name_error there;

	if (spec_name_submits(name) || submit_name_is_passing(name) ||
	    strlen(name) + strlen(SUBMIT_ERROR_SUFFIX) > NAME_MAX)
		return;
	if (names_error(s->names, name, &there) == 0) {
		free(there.text);
		return;
	}
	text = text_print("%s: not submitted: the name must end in .yaml, .yml or .json", name);
	diag(DIAG_INFO, "%s/%s", s->name, text);
	names_explain(s->names, name, text, owner);
}

struct launch_wait {
	struct submit *s;
	uint64_t ticket;
};

static void wait_over(void *data, int err)
{
	struct launch_wait *w = data;

	reply(w->s, w->ticket, err);
	free(w);
}

void launch_wait(struct submit *s, struct upload *u, enum save_what what, fuse_req_t req)
{
	struct launch_wait *w;

	if (what == SAVE_BYTES && upload_look(u, NULL).is_saved) {
		fuse_reply_err(req, 0);
		return;
	}
	w = new0(struct launch_wait);
	w->s = s;
	w->ticket = park_add(s->fs->park, req, PARK_CLOSE, LAUNCH_CLOSE_MS);
	save_file(s, u, what, NULL, wait_over, w);
}

void launch_close(struct submit *s, struct upload *u, struct upload_writer *w,
		  struct file_owner owner, fuse_req_t req)
{
	const struct upload_look look = upload_look(u, w);
	char name[NAME_MAX + 1];
	bool closed = look.is_dirty && names_of(s->names, u, name);
	bool submits = closed && spec_name_submits(name);
	bool written = closed && (look.flaw || look.size > 0);
	int err = 0;
	struct launch *l = NULL;

	if (closed)
		(void)upload_show(u, w);
	if (written)
		launch_explain_name(s, name, owner);
	if (written && submits) {
		err = -look.flaw;
		if (!err && w->unseen && !look.is_whole)
			err = -EINVAL;
		if (!err)
			l = launch_new(s, u, w, name, owner);
	}
	/*
	 * A later close of W must not submit the same contents again, because another writer may
	 * have closed the file by then.
	 */
	if (submits)
		upload_submitted(u, w, l ? l->number : 0);
	if (err)
		launch_refuse(s, name, -err, owner);
	if (l) {
		if (req)
			l->ticket = park_add(s->fs->park, req, PARK_CLOSE, LAUNCH_CLOSE_MS);
		save_file(s, u, SAVE_BYTES, NULL, launch_saved, l);
	} else if (req && (err || upload_look(u, w).is_lost)) {
		/* EBUSY: another process has taken the file (upload.h) before the launch. */
		save_soon(s, u);
		fuse_reply_err(req, err ? -err : EBUSY);
	} else if (req) {
		launch_wait(s, u, SAVE_BYTES, req);
	} else {
		save_soon(s, u);
	}
}

void launch_rename(struct submit *s, struct upload *u, const char *name, struct file_owner owner,
		   pid_t process, uint64_t ticket)
{
	const struct upload_look look = upload_look(u, NULL);
	struct launch *l;
	int err = -look.flaw;

	if (!err && look.size > SPEC_MAX_FILE)
		err = -EFBIG;
	if (err) {
		launch_refuse(s, name, -err, owner);
		launch_reply_rename(s, ticket, err);
		return;
	}
	l = launch_new(s, u, NULL, name, owner);
	l->rename = true;
	l->process = process;
	l->ticket = ticket;
	save_file(s, u, SAVE_BYTES, NULL, launch_saved, l);
}

/* --- a process that takes the file from its writer --- */

/* Return a text such as "process 123 (cp)", malloc'ed. */
static char *process_text(pid_t process)
{
	char comm[64] = "";

	if (process <= 0)
		return text_copy("a process that kxfs can't see");
	writer_command(process, comm, sizeof(comm));
	return *comm ? text_print("process %d (%s)", (int)process, comm)
		     : text_print("process %d", (int)process);
}

/* Explain in NAME.error of the lost file that PROCESS has taken the file from its writer. */
static void launch_show_loss(struct submit *s, const struct name_loss *loss, pid_t process)
{
	char *who cleanup_free = NULL, *whom cleanup_free = NULL, *text cleanup_free = NULL;

	if (!loss->writer)
		return;
	who = process_text(process);
	whom = process_text(loss->writer);
	text = text_print("%s: %s removed or replaced this file while %s was writing it. kxfs did "
			  "not launch the unfinished version. Write the file again, or under "
			  "another name.",
			  loss->name, who, whom);
	names_end(s->names, loss->name, loss->number, text, s->us);
}

/*
 * PROCESS takes a file from its writers with the request TICKET. Return the process whose handles
 * keep the file: PROCESS while the request waits. Afterwards return 0, because PROCESS may have
 * opened the file again.
 */
static pid_t launch_keeper(const struct submit *s, pid_t process, uint64_t ticket)
{
	return park_waits(s->fs->park, ticket) ? process : 0;
}

void launch_renamed(struct submit *s, struct upload *u, const char *name, pid_t process,
		    uint64_t ticket)
{
	struct name_loss loss;

	names_move(s->names, u, name, launch_keeper(s, process, ticket), &loss);
	launch_show_loss(s, &loss, process);
}
