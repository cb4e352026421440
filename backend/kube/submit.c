/* SPDX-License-Identifier: MIT */
/*
 * A submission. On the pool a name and a UUID are chosen, the manifest is made, and what a start after a crash needs is
 * written (folder_files.h); then the manifest is sent. So the job is launched exactly once: a try whose reply was lost
 * is made again under the same name, and a name that is taken is ours when the object has our UUID. Only the API server
 * itself can say that a try had no effect, or which effect it had: anything else (the page of a proxy, a proxy's own
 * 503, success without the object) may stand in place of a reply that was lost. Then a refusal of a later try is final
 * only after the server was asked who has the name, since our own job may be what uses up the quota. The job is in the
 * store before the request is answered.
 *
 *	step	what is under way		what ends it			next
 *	PREPARE	the pool makes the manifest	its name is free		FOLDER
 *						its name is taken here		PREPARE
 *						the document is wrong		answer: refused
 *						it is that of the file, and
 *						an earlier one in doubt has it	HOLDER
 *	FOLDER	the pool makes the folder	it is made			POST
 *						there is one on the disk	PREPARE
 *						it can't be			CLEAN
 *	POST	a POST, or a pause before one	created				answer: launched
 *						refused				CLEAN
 *						the name is taken, or a try
 *						may have been acted on		HOLDER
 *						no answer			POST, later; or HOLDER,
 *										if the cluster may have
 *										removed the job by then
 *	HOLDER	a GET of who has the name	it is ours			answer: launched
 *						another has the name that the
 *						document gives			CLEAN, then PREPARE
 *						nobody has it, or another	CLEAN
 *						nobody has it any more, it
 *						can't be found out, or a try is
 *						on its way still		answer: unclear
 *						nobody has it, of whom there
 *						was doubt			CLEAN, then PREPARE
 *	CLEAN	the folder is being removed	it is removed			answer: refused
 *	RENDER	the pool writes the manifest	it is written			answer: dry run
 *		of a dry run as YAML
 *
 * A dry run goes from PREPARE to POST, keeps nothing, and asks the server for no more than its opinion; then comes
 * RENDER. While a part of it is on the pool (PREPARE, FOLDER, RENDER), the submission is the pool's. Before FOLDER the
 * name is reserved in the table of folders, which also has the folders that output is about to make.
 */
#include <errno.h>

#include "backend/base/diag.h"
#include "backend/base/random.h"
#include "backend/kube/folder_files.h"
#include "backend/kube/parts.h"
#include "spec/api/refusal.h"
#include "spec/api/object.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/kinds/manifest.h"

#define POST_MS	     25000
#define REPLY_MAX    (8u << 20)
#define SERVER_TRIES 4 /* after this many tries an internal error of the server is the answer */
/* Names that are tried: each has 64 random bits, so to need a second one is a surprise. */
#define NAME_TRIES 16

struct submit {
	struct request r;
	const struct kube_parts *k;
	const struct spec_kind *kinds[SPEC_MAX_KINDS]; /* the kinds that the mount shows */
	size_t n_kinds;
	const struct spec_kind *kind; /* the kind of M */
	struct spec_manifest *m;
	char uuid[37]; /* UUID of the submission */
	bool lost;     /* a try may have been acted on, though no reply said so */
	/* LOST, and a job that was launched so may have ended and been removed since */
	bool maybe_gone;
	/* The connection broke during a try, here or behind a proxy: the try may still be on its way. */
	bool in_flight;
	unsigned names;	 /* how many names were tried */
	bool old_exists; /* the cluster still has the job that has the first of these names */
	bool has_folder;
	int err;    /* what is wrong; in HOLDER: as far as is known */
	char *text; /* text for people; of a dry run that was approved: the manifest */
	/* For a held job: when an earlier mount has tried it, in ns, and how many seconds ago that was. */
	int64_t written;
	uint64_t age;
};

static struct submit *submit_of(struct request *r)
{
	return container_of(r, struct submit, r);
}

static bool is_dry(const struct submit *s)
{
	return s->r.rq->kind == BACKEND_DRY_RUN;
}

static void submit_free(struct request *r)
{
	struct submit *s = submit_of(r);

	spec_manifest_free(s->m);
	free(s->text);
	free(s);
}

/* The file for which a later mount tells what became of the submission; "": nobody waits to hear that of a held job. */
static const char *told_file(const struct submit *s)
{
	return s->r.rq->held ? "" : s->r.rq->file;
}

/* --- on the pool --- */

static int make_manifest(struct submit *s)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	const struct backend_config *config = &s->k->b->config;
	const struct backend_request *rq = s->r.rq;
	struct spec_manifest_request mr = {
		.kind = *config->kind ? s->kinds[0] : NULL,
		.kinds = s->kinds,
		.n_kinds = s->n_kinds,
		.known = config->kinds,
		.options = config->args,
		.n_options = config->n_args,
		.home = config->home,
		.mine = config->mine,
		.identity = {.namespace = s->k->namespace,
			     .submission = s->uuid,
			     .submitter = rq->submitter,
			     .user = s->k->user,
			     /* If the document gives the name, the first try keeps it. */
			     .rename = s->names > 0,
			     .old_exists = s->old_exists},
	};
	int err = random_name(&mr.identity.random[0]);

	if (!err)
		err = random_name(&mr.identity.random[1]);
	if (!err && !*s->uuid && rq->submission)
		snprintf(s->uuid, sizeof(s->uuid), "%s", rq->submission);
	else if (!err && !*s->uuid)
		err = random_uuid(s->uuid);
	if (err)
		return err;
	if (rq->held)
		memcpy(mr.identity.random, rq->seed, sizeof(rq->seed));
	err = spec_manifest_make(rq->text, rq->len, &mr, &s->m, &e);
	if (err)
		s->text = spec_errors_text(&e, rq->file);
	return err;
}

static void prepare(void *data)
{
	struct submit *s = data;

	spec_manifest_free(take_ptr(s->m));
	s->err = make_manifest(s);
}

static struct folder_submission submission_of(struct submit *s)
{
	const struct backend_request *rq = s->r.rq;

	return (struct folder_submission){
		.id = s->m->id,
		.uuid = s->uuid,
		.file = told_file(s),
		.text = rq->text,
		.len = rq->len,
		.readable = rq->readable,
	};
}

static void make_folder(void *data)
{
	struct submit *s = data;
	const struct folder_submission made = submission_of(s);

	s->err = folder_files_submit(s->k->b->config.state_dir, &made);
}

static void prepared(void *data);

/* Runs on the pool, since a large manifest takes a while to write as YAML. */
static void render(void *data)
{
	struct submit *s = data;
	size_t len;

	spec_manifest_yaml(s->m, &s->text, &len);
}

static void rendered(void *data)
{
	struct submit *s = data;

	request_answer_dry_run(&s->r, &(struct backend_made){.id = s->m->id,
							     .backend = s->kind->name,
							     .namespace = s->k->namespace,
							     .manifest = s->text});
}

/* --- answers --- */

static void cleaned(struct submit *s)
{
	request_answer(&s->r, s->err, NULL, s->text);
}

/* If something could not be removed, a message has said so; the answer does not wait for it. */
static void on_cleaned(void *data, int err)
{
	cleaned(data);
}

/*
 * Answer that it can't be found out whether the job was launched: a try may still take effect. The folder stays, so
 * that the job is known as ours if it appears.
 */
static void give_up(struct submit *s, int err, const char *why)
{
	cleanup_free char *text = text_print(
		"%s: sent as %s, but whether it was launched could not be found out: %s\n"
		"Look for jobs/%s before it is submitted again.\n",
		s->r.rq->file, s->m->id, why, s->m->id);

	folders_doubt(s->k->folders, s->uuid, told_file(s), REQUEST_FIND_OUT_MS);
	publish_doubt(s->k->publish);
	/* The record of a held job stays until it is known what became of it. */
	request_answer(&s->r, s->r.rq->held ? -EINPROGRESS : err, NULL, text);
}

/* Nothing was launched, unless a try is still on its way: remove the folder, then answer. */
static void refuse(struct submit *s, int err)
{
	cleanup_free char *why = NULL;

	s->err = err;
	if (s->in_flight) {
		why = take_ptr(s->text);
		give_up(s, err, why);
		return;
	}
	if (!s->has_folder) {
		cleaned(s);
		return;
	}
	request_set_working(&s->r, true);
	folders_remove(s->k->folders, s->uuid, on_cleaned, s);
}

static void launched(struct submit *s, const char *object, size_t len)
{
	enum world_sort sort = world_sort_of(s->k->world, s->kind);
	const struct world_job *job = len && sort != WORLD_N_SORTS
					      ? world_reply(s->k->world, sort, object, len,
							    watches_version(s->k->watches, sort))
					      : NULL;

	folders_submitted(s->k->folders, s->uuid, job ? job->uid : "");
	if (job) {
		watches_replied(s->k->watches, sort, job->view->resource_version);
		publish_now(s->k->publish, job);
	} else if (len && sort != WORLD_N_SORTS) {
		/* The watch is past its version and has not told of it: it never will if the server was set back. */
		watches_doubt(s->k->watches, sort);
	}
	request_answer(&s->r, 0, s->m->id, NULL);
}

/* --- calls --- */

/* Has the watch brought the job, though no reply did? */
static bool is_known(const struct submit *s)
{
	return s->lost && folders_was_seen(s->k->folders, s->uuid);
}

/* Send the same POST again after a while. WHY: what came instead of an answer. */
static void post_again(struct submit *s, const struct http_reply *reply, const char *why)
{
	if (!request_again(&s->r, reply->wait_ms))
		give_up(s, -ETIMEDOUT, why);
}

static void name_given_back(struct submit *s)
{
	s->has_folder = false;
	loop_work(s->k->b->loop, prepare, prepared, s);
}

static void on_given_back(void *data, int err)
{
	name_given_back(data);
}

/* Which job has the name, as a GET of it says. */
enum holder { HOLDER_OURS, HOLDER_OTHER, HOLDER_NONE, HOLDER_UNCLEAR };

static enum holder holder_of(const struct submit *s, const struct http_reply *reply)
{
	const struct spec_object_wanted wanted = {.kind = s->kind->kind, .name = s->m->id};

	if (reply->err)
		return HOLDER_UNCLEAR;
	if (reply->status == 404 && !http_is_unknown(reply))
		return HOLDER_NONE;
	if (reply->status != 200 || !spec_object_is(reply->body, reply->len, &wanted))
		return HOLDER_UNCLEAR;
	if (spec_object_is_submission(reply->body, reply->len, s->uuid))
		return HOLDER_OURS;
	/* Without annotations (no_annotations) our object looks like any other. */
	return spec_object_is_submission(s->m->json, s->m->json_len, s->uuid) ? HOLDER_OTHER
									      : HOLDER_UNCLEAR;
}

static void say_it_exists(struct submit *s)
{
	text_set(&s->text, "%s: a job named %s exists already; nothing was launched\n",
		 s->r.rq->file, s->m->id);
}

/* The name is taken, or may be: HOLDER says by whom. */
static void taken(struct submit *s, enum holder holder, const struct http_reply *reply)
{
	if (s->maybe_gone) {
		give_up(s, -ETIMEDOUT,
			"the reply was lost, and with its ttl the job may have ended and gone by "
			"now");
	} else if (holder == HOLDER_NONE && !s->lost) {
		post_again(s, reply, "its name is alternately taken and free");
	} else if (!s->m->named && !s->r.rq->held && holder != HOLDER_OTHER) {
		/*
		 * Nobody else would choose this name: it is our job, which may be gone already, or which the user may
		 * not read.
		 */
		launched(s, "", 0);
	} else if (s->lost) {
		/* A job of somebody else may have got the name after ours. */
		give_up(s, -EEXIST, "a job of that name is there or was, and may be another");
	} else if (s->m->named && s->names < NAME_TRIES) {
		/* Somebody has the name that the document gives: make the same job under another one. */
		s->names++;
		s->old_exists = true;
		request_set_working(&s->r, true);
		if (s->has_folder)
			folders_remove(s->k->folders, s->uuid, on_given_back, s);
		else
			name_given_back(s);
	} else {
		say_it_exists(s);
		refuse(s, -EEXIST);
	}
}

static void on_holder(void *data, const struct http_reply *reply)
{
	struct submit *s = data;
	enum holder holder = holder_of(s, reply);
	cleanup_free char *why = NULL;

	request_replied(&s->r);
	if (holder == HOLDER_OURS) {
		launched(s, reply->body, reply->len);
	} else if (is_known(s)) {
		launched(s, "", 0);
	} else if (s->err && (holder != HOLDER_UNCLEAR || !s->lost)) {
		refuse(s, s->err);
	} else if (reply->err || reply->status >= 500 || reply->status == 429) {
		post_again(s, reply,
			   *reply->text
				   ? reply->text
				   : "the name is taken, and the server does not show by which "
				     "object");
	} else if (s->err) {
		why = take_ptr(s->text);
		give_up(s, s->err, why);
	} else {
		taken(s, holder, reply);
	}
}

static void ask_holder(struct submit *s)
{
	const struct http_call call = {
		.method = HTTP_GET,
		.deadline_ms = POST_MS,
		.max_body = REPLY_MAX,
		.retry = true,
		.done = on_holder,
		.data = s,
	};

	request_call(&s->r, s->m->id, "", &call);
}

/* The POST has failed, at the server or on its way. */
static void not_posted(struct submit *s, const struct http_reply *reply)
{
	struct spec_asked asked = request_asked(&s->r, "create", s->m->id);
	bool unknown = !is_dry(s) && http_is_unknown(reply);
	cleanup_free char *text = NULL;

	asked.sent = s->m->json_len;
	s->err = http_refusal(reply, &asked, &text);
	if (s->err == -EEXIST && !unknown) {
		s->err = 0;
		ask_holder(s);
		return;
	}
	s->lost |= unknown;
	s->in_flight |= unknown && (reply->err || (reply->status > 500 && reply->status <= 504));
	request_set_unclear(&s->r, s->lost);
	/* A server that answers with failures is tried a few times; one that can't be reached is tried until it can. */
	if (s->lost && (reply->err ||
			((unknown || s->err == -EAGAIN) && s->r.backoff.failures < SERVER_TRIES))) {
		diag(DIAG_WARNING, "%s: trying again, since it may have been launched: %s",
		     s->m->id, text);
		post_again(s, reply, text);
		return;
	}
	text_set(&s->text, "%s: %s\n", s->r.rq->file, text);
	/* A proxy made for Kubernetes writes a Status too, so what it said of an earlier try is not relied on. */
	if (s->lost || (reply->again && !is_dry(s)))
		ask_holder(s);
	else
		refuse(s, s->err);
}

/* Is REPLY the object that was sent? The page of a proxy may come with success, too. */
static bool is_created(const struct submit *s, const struct http_reply *reply)
{
	const struct spec_object_wanted wanted = {
		.kind = s->kind->kind,
		.name = s->m->id,
		.submission = s->uuid,
	};

	return http_succeeded(reply) && spec_object_is(reply->body, reply->len, &wanted);
}

static void on_posted(void *data, const struct http_reply *reply)
{
	struct submit *s = data;

	request_replied(&s->r);
	request_set_unclear(&s->r, s->lost);
	s->err = 0;
	free(take_ptr(s->text));
	if (!is_created(s, reply)) {
		not_posted(s, reply);
	} else if (is_dry(s)) {
		request_set_working(&s->r, true);
		loop_work(s->k->b->loop, render, rendered, s);
	} else {
		launched(s, reply->body, reply->len);
	}
}

static void post(struct request *r)
{
	struct submit *s = submit_of(r);
	const struct http_call call = {
		.method = HTTP_POST,
		.body = s->m->json,
		.len = s->m->json_len,
		.deadline_ms = POST_MS,
		.max_body = REPLY_MAX,
		.harmless = is_dry(s),
		.retry = true,
		.done = on_posted,
		.data = s,
	};

	if (is_known(s)) {
		launched(s, "", 0);
		return;
	}
	if (s->lost && s->m->ttl >= 0 && request_age(r) / 1000 + s->age >= (uint64_t)s->m->ttl) {
		s->maybe_gone = true;
		s->err = 0;
		ask_holder(s);
		return;
	}
	request_call(r, NULL,
		     is_dry(s) ? "?fieldManager=kxfs&fieldValidation=Strict&dryRun=All"
			       : "?fieldManager=kxfs&fieldValidation=Strict",
		     &call);
	request_set_unclear(r, !is_dry(s));
}

/* No part of S is on the pool any more: send it, or answer why not. */
static void ready(struct submit *s)
{
	request_set_working(&s->r, false);
	if (!s->err && requests_are_stopping(s->k->requests)) {
		s->err = -ECANCELED;
		text_set(&s->text, "kxfs is ending; nothing was launched\n");
	}
	if (s->err)
		refuse(s, s->err);
	else
		post(&s->r);
}

/* The folder of S can't be made. */
static void not_recorded(struct submit *s)
{
	text_set(&s->text, "%s: the job can't be recorded in %s: %s; nothing was launched\n",
		 s->r.rq->file, s->k->b->config.state_dir, strerror(-s->err));
	ready(s);
}

/* Is JOB another than that of S? */
static bool is_other(const struct submit *s, const struct spec_job *job)
{
	return job && !streq(job->uid, s->uuid) && !(job->own && streq(job->submission, s->uuid));
}

/* Has another job the name of S, in jobs/ or history/? */
static bool is_used(struct submit *s)
{
	struct store *store = s->k->b->store;
	const struct spec_job *there cleanup_job = store_get(store, BACKEND_JOBS, s->m->id);
	const struct spec_job *old cleanup_job = store_get(store, BACKEND_HISTORY, s->m->id);

	s->old_exists |= is_other(s, there);
	return is_other(s, there) || is_other(s, old);
}

static void name_is_taken_here(struct submit *s)
{
	if (s->r.rq->held && !s->m->named) {
		s->err = -EEXIST;
		say_it_exists(s);
		ready(s);
	} else if (++s->names < NAME_TRIES)
		loop_work(s->k->b->loop, prepare, prepared, s);
	else
		not_recorded(s);
}

static void folder_made(void *data)
{
	struct submit *s = data;

	if (s->err == -EEXIST) {
		folders_release(s->k->folders, s->uuid);
		name_is_taken_here(s);
		return;
	}
	s->has_folder = true;
	if (s->err)
		not_recorded(s);
	else
		ready(s);
}

static void mend_folder(void *data)
{
	struct submit *s = data;
	const struct folder_submission made = submission_of(s);

	s->err = folder_files_resume(s->k->b->config.state_dir, &made, s->written);
}

static void folder_mended(void *data)
{
	struct submit *s = data;
	cleanup_free char *why = NULL;

	if (!s->err) {
		ready(s);
		return;
	}
	why = text_print("its app.yaml can't be written: %s", strerror(-s->err));
	give_up(s, -ETIMEDOUT, why);
}

/*
 * The folder that a held job was to have is there: an earlier mount may have launched the job, or this one, without
 * finding out. It is sent again under the same name.
 */
static void try_again(struct submit *s)
{
	struct folders *f = s->k->folders;
	const struct folder *folder = folders_find(f, s->uuid);
	int64_t age = folder ? loop_time_ns() - folder->written : 0;

	/* What has printed was launched, also where a crash has taken its uid. */
	if (folder && (*folder->uid || folder->output)) {
		request_set_working(&s->r, false);
		launched(s, "", 0);
	} else if (folder && folders_resume(f, s->uuid) == 0) {
		s->lost = s->has_folder = true;
		s->written = folder->written;
		/* If the clock was set back, nobody knows how long ago that was. */
		s->age = (uint64_t)(age < 0 ? INT64_MAX : age) / NS_PER_S;
		loop_work(s->k->b->loop, mend_folder, folder_mended, s);
	} else {
		name_is_taken_here(s);
	}
}

static void prepared(void *data)
{
	struct submit *s = data;

	if (!s->err) {
		s->kind = s->m->kind;
		request_set_kind(&s->r, s->kind);
	}
	if (s->err || is_dry(s)) {
		ready(s);
		return;
	}
	s->err = is_used(s) ? -EEXIST : folders_reserve(s->k->folders, s->m->id, s->uuid);
	if (s->err && s->r.rq->held)
		try_again(s);
	else if (s->err)
		name_is_taken_here(s);
	else
		loop_work(s->k->b->loop, make_folder, folder_made, s);
}

static const struct request_ops submit_ops = {.send = post, .free = submit_free};

/*
 * A held job is launched as what its dry run made, since its name, and what an earlier try may have sent, are of that
 * kind: leave only the kind NAME. False: there is none now.
 */
static bool keep_kind(struct submit *s, const char *name)
{
	for (size_t i = 0; i < s->n_kinds; i++) {
		if (!streq(s->kinds[i]->name, name))
			continue;
		s->kinds[0] = s->kinds[i];
		s->n_kinds = 1;
		return true;
	}
	return false;
}

void kube_submit(struct backend *b, struct backend_request *rq)
{
	const struct kube_parts *k = kube_parts_of(b);
	cleanup_free char *offline = watches_offline(k->watches), *text = NULL;
	struct submit *s;

	if (offline) {
		text = text_print("%s: %s; nothing was launched\n", rq->file, offline);
		backend_answer(rq, -EHOSTUNREACH, NULL, text);
		return;
	}
	s = new0(struct submit);
	s->k = k;
	s->n_kinds = world_kinds(k->world, s->kinds);
	if (rq->backend && !keep_kind(s, rq->backend)) {
		text = text_print(
			"%s: this mount does not show jobs of %s now; nothing was launched\n",
			rq->file, rq->backend);
		free(s);
		backend_answer(rq, -EHOSTUNREACH, NULL, text);
		return;
	}
	request_begin(k->requests, &s->r, rq, &submit_ops);
	request_set_working(&s->r, true);
	loop_work(b->loop, prepare, prepared, s);
}
