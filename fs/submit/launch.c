/* SPDX-License-Identifier: MIT */
/*
 * Launches of this mount, and those that the last mount left; see launch.h. The steps of one:
 *
 *	what is under way			| what ends it	| next
 *	the disk gets the bytes and the record	| it has them	| asked for the owner's name; refused
 *	the owner's name is looked up		| known, or not	| the backend is asked
 *	the backend is asked			| its answer	| a rename; a manifest for dryrun/; shown
 *	the disk gets the manifest (dryrun/)	| it has it	| a rename; shown
 *	the disk gives the file its name	| it has it	| shown
 *	shown: the disk gets the record		| it has it	| the request is answered; over
 */
#include "fs/submit/launch.h"

#include <errno.h>
#include <pwd.h>

#include "backend/base/diag.h"
#include "backend/base/lookup.h"
#include "backend/base/loop.h"
#include "fs/submit/writer.h"
#include "fs/vfs/fs.h"
#include "fs/vfs/park.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/sha256.h"

/* How long the name of a user is waited for who is not the one that mounted. */
#define LAUNCH_OWNER_MS 5000

struct launch {
	struct submit *s;
	struct upload *upload; /* a reference; the upload is open, too */
	/* UPLOAD gets NAME if the content is accepted while the request still waits */
	bool rename;
	pid_t process;	  /* the process that renames */
	uint64_t version; /* version of the content that TEXT is */
	struct name_launch number;
	uint64_t ticket; /* ticket of the request that waits; 0: none does */
	struct record_owner owner;
	char *submitter; /* user@host, if that is not the user who mounted */
	char *text;
	size_t len;
	mode_t readable;	 /* which of S_IRGRP and S_IROTH its file has */
	char name[NAME_MAX + 1]; /* the name under which it is submitted */
	int err;		 /* the verdict; 0: launched */
	/* Why the file did not get NAME although its content was launched. */
	int unnamed;
	char *why;  /* the text of a refusal */
	char *id;   /* id of the job */
	char *made; /* the manifest, for dryrun/ */
};

static void launch_free(struct launch *l)
{
	upload_close(l->upload);
	upload_unref(l->upload);
	free(l->submitter);
	free(l->text);
	free(l->why);
	free(l->id);
	free(l->made);
	free(l);
}

struct record_owner launch_owner(const struct submit *s, fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return s->config.allow_other ? (struct record_owner){ctx->uid, ctx->gid} : s->us;
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

/* --- the answer; I/O thread --- */

static void launch_on_shown(void *data, int err)
{
	struct launch *l = data;

	if (err)
		diag(DIAG_WARNING,
		     "the result of %s/%s can't be written, and the next mount will not know it: %s",
		     l->s->name, l->name, strerror(-err));
	if (l->rename)
		launch_reply_rename(l->s, l->ticket, l->err ? l->err : l->unnamed);
	else
		reply(l->s, l->ticket, l->err);
	launch_free(l);
}

/* Show the verdict under the name that the file has now, if that submits. */
static void launch_show(struct launch *l)
{
	struct names *names = l->s->names;
	char now[NAME_MAX + 1];
	bool named = names_of(names, l->upload, now) && spec_name_submits(now);
	const char *shown = !l->rename && named ? now : l->name;
	char digest[RECORD_DIGEST];
	bool current = upload_is_version(l->upload, l->version);
	uint64_t version = l->version;

	spec_sha256(l->text, l->len, digest);
	if (l->made) {
		version = upload_replace(l->upload, l->version, l->made);
		spec_sha256(l->made, strlen(l->made), digest);
		save_soon(l->s, l->upload);
	}
	upload_concluded(l->upload, l->number.number, !l->err);
	/* A manifest that nobody asks for any more is no verdict, so that the file may be asked about again. */
	names_concluded(names, l->name, l->upload, version, &l->number,
			l->err || (l->s->dry && !l->made) ? NULL : digest, l->err == -EINPROGRESS);
	if (l->err && (!l->s->dry || current))
		names_refused(names, shown, l->number.number, l->why ? l->why : strerror(-l->err),
			      l->owner);
	else if (!l->err && !l->s->dry)
		names_accepted(names, shown, l->number.number, l->id, l->owner);
	else if (l->made && current)
		names_remove(names, shown, SUBMIT_NAME_ERROR);
	/* The launch was recorded under the name that the file had when it began. */
	if (!streq(shown, l->name)) {
		save_name(l->s, l->name, NULL, NULL);
		snprintf(l->name, sizeof(l->name), "%s", shown);
	}
	save_name(l->s, l->name, launch_on_shown, l);
	save_answered(l->s, l->name);
}

static void launch_on_renamed(void *data, int err)
{
	struct launch *l = data;

	/* A job that was launched is shown, whatever becomes of its file. */
	if (err && l->s->dry)
		l->err = err;
	else if (err)
		l->unnamed = err;
	else
		launch_renamed(l->s, l->upload, l->name, l->process, l->ticket);
	launch_show(l);
}

/* The content was accepted: give the file the name for which it was launched. */
static void launch_finish(struct launch *l)
{
	if (!l->err && l->rename && park_waits(l->s->fs->park, l->ticket))
		save_file(l->s, l->upload, SAVE_RENAME, l->name, launch_on_renamed, l);
	else
		launch_show(l);
}

static void launch_on_reply(void *data, const struct backend_result *r)
{
	struct launch *l = data;

	l->err = r->err;
	l->why = *r->text ? text_copy(r->text) : NULL;
	l->id = text_copy(r->id);
	launch_finish(l);
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
 * Like launch_on_reply, for a dry run, which has no job to show: the file itself becomes the manifest, if its name
 * submits.
 */
static void launch_on_made(void *data, const struct backend_result *r)
{
	struct launch *l = data;
	char name[NAME_MAX + 1];
	bool shown = (l->rename && park_waits(l->s->fs->park, l->ticket)) ||
		     (names_of(l->s->names, l->upload, name) && spec_name_submits(name));

	l->err = r->err;
	l->why = *r->text ? text_copy(r->text) : NULL;
	if (l->err || !shown || !upload_is_version(l->upload, l->version)) {
		launch_finish(l);
		return;
	}
	l->made = text_copy(r->manifest);
	save_file(l->s, l->upload, SAVE_TEXT, l->made, launch_on_text, l);
}

/* --- the question; I/O thread --- */

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
		.submission = l->number.uuid,
		.waits = launch_is_awaited,
	};

	if (l->s->dry)
		backend_dry_run(config->backend, &submission, launch_on_made, l);
	else
		backend_submit(config->backend, &submission, launch_on_reply, l);
}

/* The owner of a launch who has not mounted, whose name may come from a network. */
struct owner {
	uid_t uid;
	char *name;
};

static void owner_look(void *data)
{
	struct owner *o = data;
	struct passwd pw, *found = NULL;
	char buf[4096];

	getpwuid_r(o->uid, &pw, buf, sizeof(buf), &found);
	if (found)
		o->name = text_copy(pw.pw_name);
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

static void launch_recorded(void *data, int err)
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
		launch_show(l);
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

static void launch_saved(void *data, int err)
{
	struct launch *l = data;

	if (err || l->s->dry)
		launch_recorded(l, err);
	else
		save_name(l->s, l->name, launch_recorded, l);
}

/* --- the beginning --- */

/* Make a launch of what U, which is open, shows, or what W has, as NAME; nothing is done yet. */
static int launch_new(struct submit *s, struct upload *u, const struct upload_writer *w,
		      const char *name, struct record_owner owner, struct launch **ret)
{
	struct launch *l = new0(struct launch);
	int err;
	mode_t mode;
	struct stat st;

	l->s = s;
	l->upload = upload_ref(u);
	upload_open(u, false);
	l->owner = owner;
	/*
	 * The bits say who may read the file as it is shown. The job belongs to the user who mounts, so its group
	 * differs from that of other users' files.
	 */
	upload_stat(u, w, &st);
	mode = st.st_mode & ~s->fs->config.umask & (S_IRGRP | S_IROTH);
	l->readable = st.st_gid != s->us.gid && !(mode & S_IROTH) ? 0 : mode;
	snprintf(l->name, sizeof(l->name), "%s", name);
	upload_copy(u, w, &l->text, &l->len, &l->version);
	err = names_launch(s->names, name, u, l->version, owner, !s->dry, &l->number);
	if (err)
		launch_free(l);
	else
		*ret = l;
	return err;
}

/* --- when --- */

/* Show that the content can't be submitted as NAME, for FLAW, an errno. */
static void launch_refuse(struct submit *s, const char *name, int flaw, struct record_owner owner)
{
	char *text cleanup_free = NULL;

	if (flaw == ECANCELED)
		text = text_print(
			"%s: a signal ended the process that wrote it, so it may be incomplete. "
			"Nothing was launched. Write it again.",
			name);
	else if (flaw == EINVAL)
		text = text_print(
			"%s: its last line has no newline, so it may be incomplete: kxfs can't see whether "
			"a signal ended the process that wrote it, which is another user's or in another "
			"container. Nothing was launched. Write it again, with a newline at its end.",
			name);
	else if (flaw == EFBIG)
		text = text_print("%s: larger than %u bytes, the limit for a file that is "
				  "submitted. Nothing was launched.",
				  name, SPEC_MAX_FILE);
	else
		text = text_print("%s: was not written completely: %s. Nothing was launched. "
				  "Write it again.",
				  name, strerror(flaw));
	names_refused(s->names, name, names_next(s->names), text, owner);
	save_name(s, name, NULL, NULL);
}

void launch_show_flaw(struct submit *s, struct upload *u, struct upload_writer *w,
		      struct record_owner owner)
{
	char name[NAME_MAX + 1];

	if (names_of(s->names, u, name) && spec_name_submits(name))
		launch_refuse(s, name, upload_flaw(u, w), owner);
}

/* A user who copies a file here under a name that does not submit should not wait for a job in vain: say so. */
static void launch_explain_name(struct submit *s, const char *name, struct record_owner owner)
{
	char *text cleanup_free = NULL;
	struct name_verdict v;

	if (spec_name_submits(name) || submit_name_is_passing(name) ||
	    strlen(name) + strlen(SUBMIT_ERROR_SUFFIX) > NAME_MAX)
		return;
	if (names_verdict(s->names, name, SUBMIT_NAME_ERROR, &v) == 0) {
		free(v.text);
		return;
	}
	text = text_print("%s: not submitted: the name must end in .yaml, .yml or .json", name);
	diag(DIAG_INFO, "%s/%s", s->name, text);
	names_refused(s->names, name, names_next(s->names), text, owner);
	save_name(s, name, NULL, NULL);
}

struct wait {
	struct submit *s;
	uint64_t ticket;
};

static void wait_over(void *data, int err)
{
	struct wait *w = data;

	reply(w->s, w->ticket, err);
	free(w);
}

void launch_wait(struct submit *s, struct upload *u, enum save_what what, fuse_req_t req)
{
	struct wait *w;

	if (what == SAVE_BYTES && upload_is_saved(u)) {
		fuse_reply_err(req, 0);
		return;
	}
	w = new0(struct wait);
	w->s = s;
	w->ticket = park_add(s->fs->park, req, PARK_CLOSE, LAUNCH_CLOSE_MS);
	save_file(s, u, what, NULL, wait_over, w);
}

void launch_close(struct submit *s, struct upload *u, struct upload_writer *w,
		  struct record_owner owner, fuse_req_t req)
{
	char name[NAME_MAX + 1];
	bool closed = upload_is_dirty(u, w) && names_of(s->names, u, name);
	bool submits = closed && spec_name_submits(name);
	int flaw = closed ? upload_flaw(u, w) : 0, err = 0;
	bool written = closed && (flaw || upload_size(u, w) > 0);
	struct launch *l = NULL;

	if (closed && upload_show(u, w) && names_writing(s->names, u))
		save_name(s, name, NULL, NULL);
	if (written)
		launch_explain_name(s, name, owner);
	if (written && submits) {
		err = -flaw;
		if (!err && w->unseen && !upload_is_whole(u, w))
			err = -EINVAL;
		if (!err)
			err = launch_new(s, u, w, name, owner, &l);
	}
	/* Its next close, or its release, shows nothing again: another writer may have closed by then. */
	if (submits)
		upload_launching(u, w, l ? l->number.number : 0);
	if (err) {
		names_settle(s->names, u);
		launch_refuse(s, name, -err, owner);
	}
	if (l) {
		if (req)
			l->ticket = park_add(s->fs->park, req, PARK_CLOSE, LAUNCH_CLOSE_MS);
		save_file(s, u, SAVE_BYTES, NULL, launch_saved, l);
	} else if (req && (err || upload_is_lost(u, w))) {
		/* The name may have been taken from the file a moment ago, before it could be launched. */
		fuse_reply_err(req, err ? -err : EBUSY);
	} else if (req) {
		launch_wait(s, u, SAVE_BYTES, req);
	} else {
		save_soon(s, u);
	}
}

void launch_rename(struct submit *s, struct upload *u, const char *name, struct record_owner owner,
		   pid_t process, uint64_t ticket)
{
	struct launch *l;
	int err = -upload_flaw(u, NULL);

	if (!err && upload_size(u, NULL) > SPEC_MAX_FILE)
		err = -EFBIG;
	if (!err)
		err = launch_new(s, u, NULL, name, owner, &l);
	if (err) {
		launch_refuse(s, name, -err, owner);
		launch_reply_rename(s, ticket, err);
		return;
	}
	l->rename = true;
	l->process = process;
	l->ticket = ticket;
	save_file(s, u, SAVE_BYTES, NULL, launch_saved, l);
}

/* --- a process that takes the file from its writer --- */

/* "process 123 (cp)", malloc'ed. */
static char *process_text(pid_t process)
{
	char comm[64] = "";

	if (process <= 0)
		return text_copy("a process that kxfs can't see");
	writer_command(process, comm, sizeof(comm));
	return *comm ? text_print("process %d (%s)", (int)process, comm)
		     : text_print("process %d", (int)process);
}

/* PROCESS has taken the file from its writer: say so under the name that the file had. */
static void launch_show_loss(struct submit *s, const struct name_loss *loss, pid_t process)
{
	char *who cleanup_free = NULL, *whom cleanup_free = NULL, *text cleanup_free = NULL;

	if (!loss->writer)
		return;
	who = process_text(process);
	whom = process_text(loss->writer);
	text = text_print("%s: %s removed or replaced it while %s was writing it. Nothing of that "
			  "was launched. Write it again, or under another name.",
			  loss->name, who, whom);
	names_refused(s->names, loss->name, loss->number, text, s->us);
}

/*
 * PROCESS, which has sent the request with TICKET, keeps what it writes itself, unless the request has timed out: then
 * it may have opened the file since, after it read of the failure. Return the process that keeps it; 0: none.
 */
static pid_t launch_keeper(const struct submit *s, pid_t process, uint64_t ticket)
{
	return park_waits(s->fs->park, ticket) ? process : 0;
}

void launch_renamed(struct submit *s, struct upload *u, const char *name, pid_t process,
		    uint64_t ticket)
{
	char old[NAME_MAX + 1] = "";
	struct name_loss loss;

	names_of(s->names, u, old);
	names_move(s->names, u, name, launch_keeper(s, process, ticket), &loss);
	launch_show_loss(s, &loss, process);
	/* The records are written in this order, so that in between both say that the file was launched. */
	save_name(s, name, NULL, NULL);
	if (*old && !streq(old, name))
		save_name(s, old, NULL, NULL);
}

void launch_removed(struct submit *s, struct upload *u, const char *name, pid_t process,
		    uint64_t ticket)
{
	struct name_loss loss;

	names_drop(s->names, u, launch_keeper(s, process, ticket), &loss);
	launch_show_loss(s, &loss, process);
	save_name(s, name, NULL, NULL);
}

/* --- what the last mount left: it was killed, or the machine went down --- */

/* A name with a verdict that is perhaps not on disk: its record is to be there whatever happens to the machine. */
struct told {
	struct submit *s;
	char name[NAME_MAX + 1];
};

static void on_told(void *data)
{
	struct told *t = data;

	save_answered(t->s, t->name);
	free(t);
}

static void told(struct submit *s, const char *name)
{
	struct told *t = new0(struct told);

	t->s = s;
	snprintf(t->name, sizeof(t->name), "%s", name);
	if (loop_is_here(s->fs->loop))
		on_told(t);
	else
		loop_post(s->fs->loop, on_told, t);
}

void submit_launched(struct submit *s, const char *file, const char *id, const char *submission)
{
	if (submit_name_check(file) < 0)
		return;
	if (names_was_launched(s->names, file, id, submission))
		told(s, file);
	if (atomic_load(&s->recovered))
		submit_recover(s);
}

/*
 * The job ID was launched from NAME: see to it that a rename does not launch the content again. The file may be another
 * one, which was to be replaced by the rename that launched the job but came too late.
 */
static void recover_file(struct submit *s, const char *name, const char *id)
{
	struct backend *b = s->config.backend;
	struct upload *u cleanup_upload = names_file(s->names, name);
	const struct spec_job *job cleanup_job = backend_job(b, BACKEND_JOBS, id);
	char *sent cleanup_free = NULL;
	char digest[RECORD_DIGEST] = "";
	size_t n = 0;

	if (!u)
		return;
	if (!job)
		job = backend_job(b, BACKEND_HISTORY, id);
	/* That a job runs twice is worse than that a file has to be copied again. */
	if (job && !loop_is_here(s->fs->loop) &&
	    backend_text(b, job, BACKEND_APPDEF, &sent, &n) == 0)
		spec_sha256(sent, n, digest);
	names_claim(s->names, u, digest);
}

static void recover_one(struct submit *s, const char *name, const char *id, uint64_t number,
			struct record_owner owner)
{
	struct upload *u cleanup_upload = names_file(s->names, name);
	char *text cleanup_free = NULL;

	if (id) {
		diag(DIAG_INFO, "%s: an earlier mount has launched it from %s", id, name);
		recover_file(s, name, id);
		names_accepted(s->names, name, number, id, owner);
	} else {
		text = text_print(
			"%s: kxfs ended while it was launching this, and there is no such job: either "
			"nothing was launched, or the job has been removed since. Writing the file "
			"again launches a new job.\n",
			name);
		names_refused(s->names, name, number, text, owner);
		if (u)
			names_settle(s->names, u);
	}
	save_name(s, name, NULL, NULL);
	told(s, name);
}

static void recover_known(struct submit *s)
{
	struct record_owner owner;
	char *name, *id;
	uint64_t number;

	while (names_take_open(s->names, &name, &id, &number, &owner)) {
		recover_one(s, name, id, number, owner);
		free(name);
		free(id);
	}
}

static void on_recovered(void *data)
{
	recover_known(data); /* news that came before RECOVERED was set */
	save_reported(data);
}

void submit_recover(struct submit *s)
{
	if (!atomic_load(&s->recovered))
		save_unfinished(s);
	recover_known(s);
	atomic_store(&s->recovered, true);
	loop_post(s->fs->loop, on_recovered, s);
}
