/* SPDX-License-Identifier: MIT */
/*
 * Submits jobs. On the pool kxfs chooses a name and a UUID, and makes the manifest. Then kxfs
 * writes a record of the job in the state SUBMITTING (backend/jobs/records.h), and sends the
 * manifest. A held job has a record already.
 *
 * kxfs launches a job exactly once. After a lost reply kxfs sends the same manifest again, with the
 * same name. If the name is then taken, the UUID of the existing object shows whether it is the
 * job of this submission. Only a clear reply of the API server itself counts. kxfs treats any other
 * reply (a page or a 503 from a proxy, success without the object) as lost. A refusal after a lost
 * reply may be a consequence of the first POST: the launched job may have used up the quota. So
 * this refusal is final only when the server has shown which job has the name. kxfs puts the job
 * into the store before it answers the request.
 *
 *	step	what is in progress		what ends it			next
 *	PREPARE	the pool makes the manifest	the job's name is free		RECORD
 *						a job of this mount has the	PREPARE, with
 *						name				another name
 *						the document is wrong		answer: refused
 *	RECORD	kxfs writes the record:		the record is on disk		POST
 *		SUBMITTING, and the name	an error			answer: refused
 *	POST	a POST, or a pause before it	the job was created		answer: launched
 *						the server refuses the POST	answer: refused
 *						the server refuses the POST,	HOLDER
 *						but an earlier POST may have
 *						launched the job
 *						the name is taken		HOLDER
 *						no clear reply			POST, later
 *						no clear reply, and the job's	HOLDER
 *						ttl may be over
 *	HOLDER	a GET of the job that has the	it is the submitted job		answer: launched
 *		name, or a pause before it	it is another job, and the	PREPARE, with
 *						document gives the name		another name
 *						it is another job, otherwise	answer: refused
 *						no job has the name any more	POST, later
 *						the POST was refused		answer: refused
 *						a POST may still arrive		answer: unclear
 *						the job may have been launched	answer: unclear
 *						and deleted since then
 *						the reply is unclear		answer: unclear
 *	RENDER	the pool makes the YAML text	the text is complete		answer: dry run
 *
 * A dry run goes from PREPARE to a POST without effect, and then to RENDER. In PREPARE, RECORD and
 * RENDER only the pool may use the submission. After the answer, held.c decides whether the record
 * remains.
 */
#include <errno.h>

#include "backend/base/diag.h"
#include "backend/base/random.h"
#include "backend/kube/parts.h"
#include "spec/api/refusal.h"
#include "spec/api/object.h"
#include "spec/base/mem.h"
#include "spec/kinds/manifest.h"

#define POST_MS	     25000
#define REPLY_MAX    (8u << 20)
#define SHOWN_MS     5000 /* after this time without a reply, kxfs shows the job as SUBMITTED */
#define SERVER_TRIES 4	  /* largest number of retries after internal errors of the server */
#define NAME_TRIES   16	  /* largest number of names to try */

/* What the POSTs so far may have done. With each later value, more cases are possible. */
enum tried {
	TRIED_NOTHING,	  /* no POST has had an effect */
	TRIED_LOST,	  /* a POST whose reply was lost may have succeeded */
	TRIED_IN_FLIGHT,  /* a POST may still arrive: a connection broke, here or behind a proxy */
	TRIED_MAYBE_GONE, /* the job may have been launched and removed since */
};

struct kube_submit {
	struct request r;
	const struct kube_parts *k;
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n_kinds;
	const struct spec_kind *kind;
	struct spec_manifest *m;
	char uuid[37];
	struct record *record; /* pinned; NULL if the record does not exist yet */
	bool held;	/* true if the job was held; held.c then keeps or removes its record */
	bool concluded; /* true if held_answered was called */
	struct loop_timer shown;
	enum tried tried;
	/*
	 * True if kxfs must send a GET (HOLDER) next, not a POST. The job may have been launched
	 * and deleted already, and a POST would then launch it a second time.
	 */
	bool asks;
	unsigned names;	 /* number of names that were taken */
	bool old_exists; /* true if another job in the cluster has the first name that was tried */
	int err;
	char *text; /* error text for users, or the manifest of a dry run */
};

static struct kube_submit *submit_of(struct request *r)
{
	return container_of(r, struct kube_submit, r);
}

static bool is_dry(const struct kube_submit *s)
{
	return s->r.rq->kind == BACKEND_DRY_RUN;
}

static void submit_free(struct request *r)
{
	struct kube_submit *s = submit_of(r);

	loop_timer_stop(&s->shown);
	/* CONCLUDED is false if requests_stop has answered the request */
	if (!s->held && s->record && !s->concluded)
		held_answered(s->k->b->held, s->record,
			      &(struct held_answer){.err = s->r.unclear ? -EINPROGRESS : -ECANCELED,
						    .heard = true});
	if (s->record)
		record_unpin(s->record);
	spec_manifest_free(s->m);
	free(s->text);
	free(s);
}

/* --- on the pool --- */

static int make_manifest(struct kube_submit *s)
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
			     /* If the document has a name, try this name first. */
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
	struct kube_submit *s = data;

	spec_manifest_free(take_ptr(s->m));
	s->err = make_manifest(s);
}

static void prepared(void *data);

/* Runs on the pool, because a large manifest takes a while. */
static void render(void *data)
{
	struct kube_submit *s = data;
	size_t len;

	spec_manifest_yaml(s->m, &s->text, &len);
}

static void rendered(void *data)
{
	struct kube_submit *s = data;

	request_reply(&s->r, &(struct backend_result){.text = "",
						      .id = s->m->id,
						      .manifest = s->text,
						      .backend = s->kind->name,
						      .namespace = s->k->namespace});
}

/* --- answers --- */

/*
 * Report the result to held.c. ERR is 0 if the job was launched, -EINPROGRESS if kxfs does not
 * know. After any other error the job was not launched, for the reason WHY.
 */
static void conclude(struct kube_submit *s, int err, const char *why)
{
	const struct backend_request *rq = s->r.rq;
	const struct held_answer answer = {
		.err = err,
		.heard = !rq->waits || rq->waits(rq->data),
		.why = why,
		.text = rq->text,
		.len = rq->len,
	};

	if (s->record && !s->held)
		held_answered(s->k->b->held, s->record, &answer);
	s->concluded = true;
}

static void give_up(struct kube_submit *s, int err, const char *why)
{
	cleanup_free char *text = text_print(
		"%s: kxfs sent the job as %s, but could not find out whether it was launched: "
		"%s\n"
		"Look for jobs/%s before you submit the file again.\n",
		s->r.rq->file, s->m->id, why, s->m->id);

	conclude(s, -EINPROGRESS, why);
	request_answer(&s->r, s->held ? -EINPROGRESS : err, NULL, text);
}

/* Answer that the job was not launched, or give up if a POST may still arrive at the server. */
static void refuse(struct kube_submit *s, int err)
{
	cleanup_free char *why = take_ptr(s->text);

	if (s->tried >= TRIED_IN_FLIGHT)
		return give_up(s, err, why);
	conclude(s, err, why);
	request_answer(&s->r, err, NULL, why);
}

static void launched(struct kube_submit *s, const char *object, size_t len)
{
	const struct world_job *job =
		len ? watches_reply(s->k->watches, s->kind, object, len) : NULL;

	if (job)
		publish_now(s->k->publish, job);
	conclude(s, 0, NULL);
	request_answer(&s->r, 0, s->m->id, NULL);
}

/* --- calls --- */

/* True if a watch has reported the job, although no reply to a POST has shown it. */
static bool is_known(const struct kube_submit *s)
{
	return s->tried && s->record &&
	       (record_is_going(s->record) || record_head(s->record)->state != RECORD_SUBMITTING);
}

static void send_again(struct kube_submit *s, const struct http_reply *reply, const char *why)
{
	if (!request_again(&s->r, reply->wait_ms))
		give_up(s, -ETIMEDOUT, why);
}

/* Which job has the name, according to the reply to a GET. OURS is the submitted job. */
enum holder { HOLDER_OURS, HOLDER_OTHER, HOLDER_NONE, HOLDER_UNCLEAR };

/* False if the option no_annotations has left the UUID of the submission out of the manifest. */
static bool has_uuid(const struct kube_submit *s)
{
	return spec_object_is_submission(s->m->json, s->m->json_len, s->uuid);
}

static enum holder holder_of(const struct kube_submit *s, const struct http_reply *reply)
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
	/* without a UUID, kxfs can't recognize the submitted job */
	return has_uuid(s) ? HOLDER_OTHER : HOLDER_UNCLEAR;
}

static void set_exists(struct kube_submit *s)
{
	text_set(&s->text, "%s: a job named %s exists already; nothing was launched\n",
		 s->r.rq->file, s->m->id);
}

/* The server refused the POST, because the name is taken. HOLDER shows which job has the name. */
static void taken(struct kube_submit *s, enum holder holder, const struct http_reply *reply)
{
	if (s->tried == TRIED_MAYBE_GONE) {
		give_up(s, -ETIMEDOUT,
			"kxfs did not receive the server's reply, and the cluster may have removed "
			"the job since then, because of the job's ttl");
	} else if (holder == HOLDER_NONE && !s->tried) {
		s->asks = false;
		send_again(s, reply,
			   "the server first reported that the job's name is taken, and then "
			   "that no such job exists");
	} else if (!s->m->named && !s->held && holder != HOLDER_OTHER) {
		/*
		 * The name is random, so only this submission can have used it. The job was
		 * launched. It is already gone, or the user may not read it.
		 */
		launched(s, "", 0);
	} else if (s->tried) {
		/* our job may be gone, and another job may have got its name since */
		give_up(s, -EEXIST,
			"a job with this name exists, or existed until recently; another "
			"submission may have created it");
	} else if (s->m->named && s->names < NAME_TRIES) {
		/* another job has the name from the document, so use another name */
		s->names++;
		s->old_exists = true;
		s->asks = false;
		s->r.working = true;
		loop_work(s->k->b->loop, prepare, prepared, s);
	} else {
		set_exists(s);
		refuse(s, -EEXIST);
	}
}

static void on_holder(void *data, const struct http_reply *reply)
{
	struct kube_submit *s = data;
	enum holder holder = holder_of(s, reply);
	cleanup_free char *why = NULL;

	s->r.call = NULL;
	if (holder == HOLDER_OURS) {
		launched(s, reply->body, reply->len);
	} else if (is_known(s)) {
		launched(s, "", 0);
	} else if (s->err && (holder != HOLDER_UNCLEAR || !s->tried)) {
		refuse(s, s->err);
	} else if (reply->err || reply->status >= 500 || reply->status == 429) {
		send_again(s, reply,
			   *reply->text
				   ? reply->text
				   : "the server reports that the name is taken, but does not show "
				     "which object has it");
	} else if (s->err) {
		why = take_ptr(s->text);
		give_up(s, s->err, why);
	} else {
		taken(s, holder, reply);
	}
}

static void ask_holder(struct kube_submit *s)
{
	const struct http_call call = {
		.method = HTTP_GET,
		.deadline_ms = POST_MS,
		.max_body = REPLY_MAX,
		.retry = true,
		.done = on_holder,
		.data = s,
	};

	s->asks = true;
	request_call(&s->r, s->m->id, "", &call);
}

static void tried(struct kube_submit *s, enum tried how)
{
	s->tried = max_of(s->tried, how);
}

static void not_posted(struct kube_submit *s, const struct http_reply *reply)
{
	struct spec_asked asked = request_asked(&s->r, "create", s->m->id);
	bool unknown = !is_dry(s) && http_is_unknown(reply);
	bool again = !is_dry(s) && reply->again;
	cleanup_free char *text = NULL;

	asked.sent = s->m->json_len;
	s->err = http_refusal(reply, &asked, &text);
	if (s->err == -EEXIST && !unknown) {
		/*
		 * The HTTP client has repeated this POST. Its first attempt may have created the
		 * object. Without a UUID, kxfs can't find out.
		 */
		if (again && !has_uuid(s))
			tried(s, TRIED_LOST);
		s->r.unclear = s->tried || again;
		s->err = 0;
		ask_holder(s);
		return;
	}
	if (unknown)
		tried(s, reply->err || (reply->status > 500 && reply->status <= 504)
				 ? TRIED_IN_FLIGHT
				 : TRIED_LOST);
	s->r.unclear = s->tried;
	/*
	 * After internal errors of the server, retry only a few times. Without a reply, retry until
	 * REQUEST_FIND_OUT_MS have passed.
	 */
	if (s->tried && (reply->err || ((unknown || s->err == -EAGAIN) &&
					s->r.backoff.failures < SERVER_TRIES))) {
		diag(DIAG_WARNING,
		     "%s: the job may have been launched; kxfs keeps trying to "
		     "find out: %s",
		     s->m->id, text);
		send_again(s, reply, text);
		return;
	}
	text_set(&s->text, "%s: %s\n", s->r.rq->file, text);
	/* An earlier POST may have launched the job. So this refusal is not final yet. */
	s->r.unclear = s->tried || again;
	if (s->r.unclear)
		ask_holder(s);
	else
		refuse(s, s->err);
}

/* True if REPLY has the sent object. A page from a proxy may also have a status of success. */
static bool is_created(const struct kube_submit *s, const struct http_reply *reply)
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
	struct kube_submit *s = data;

	s->r.call = NULL;
	s->r.unclear = s->tried;
	s->err = 0;
	free(take_ptr(s->text));
	if (!is_created(s, reply)) {
		not_posted(s, reply);
	} else if (is_dry(s)) {
		s->r.working = true;
		loop_work(s->k->b->loop, render, rendered, s);
	} else {
		launched(s, reply->body, reply->len);
	}
}

static void post(struct request *r)
{
	struct kube_submit *s = submit_of(r);
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
	if (s->asks)
		return ask_holder(s);
	if (s->tried && r->unclear && s->m->ttl >= 0 &&
	    request_age(r) / 1000 >= (uint64_t)s->m->ttl) {
		s->tried = TRIED_MAYBE_GONE;
		s->err = 0;
		ask_holder(s);
		return;
	}
	request_call(r, NULL,
		     is_dry(s) ? "?fieldManager=kxfs&fieldValidation=Strict&dryRun=All"
			       : "?fieldManager=kxfs&fieldValidation=Strict",
		     &call);
	r->unclear = !is_dry(s);
}

static void ready(struct kube_submit *s)
{
	s->r.working = false;
	if (!s->err && !s->k->b->up) {
		s->err = -ECANCELED;
		text_set(&s->text, "kxfs is shutting down; nothing was launched\n");
	}
	if (s->err)
		refuse(s, s->err);
	else
		post(&s->r);
}

static bool is_other(const struct kube_submit *s, const struct spec_job *job)
{
	return job && !streq(job->uid, s->uuid) && !(job->own && streq(job->submission, s->uuid));
}

static bool is_used(struct kube_submit *s)
{
	struct store *store = s->k->b->store;
	const struct spec_job *there cleanup_job = store_get(store, BACKEND_JOBS, s->m->id);
	const struct spec_job *old cleanup_job = store_get(store, BACKEND_HISTORY, s->m->id);

	s->old_exists |= is_other(s, there);
	return is_other(s, there) || is_other(s, old);
}

static void name_is_taken_here(struct kube_submit *s)
{
	if ((!s->held || s->m->named) && ++s->names < NAME_TRIES) {
		loop_work(s->k->b->loop, prepare, prepared, s);
		return;
	}
	s->err = -EEXIST;
	set_exists(s);
	ready(s);
}

/* Show the job as SUBMITTED, because the server has not replied for SHOWN_MS. */
static void on_shown(void *data)
{
	const struct kube_submit *s = data;

	held_sent(s->k->b->held, s->record, s->r.rq->text, s->r.rq->len);
}

static void recorded(void *data, int err)
{
	struct kube_submit *s = data;

	s->err = err;
	if (!records_by_key(s->k->b->records, s->uuid))
		s->record = NULL;
	if (err)
		text_set(&s->text,
			 "%s: kxfs can't record the job in %s/jobs: %s; nothing was launched\n",
			 s->r.rq->file, s->k->b->config.state_dir, strerror(-err));
	else if (!s->held)
		loop_timer_set(&s->shown, SHOWN_MS);
	ready(s);
}

static void make_record(struct kube_submit *s)
{
	const struct backend_request *rq = s->r.rq;
	struct spec_head *head;

	if (s->record && streq(record_head(s->record)->id, s->m->id))
		return ready(s);
	if (s->record)
		return records_commit(s->record,
				      &(struct record_change){.state = RECORD_SUBMITTING,
							      .id = s->m->id},
				      recorded, s);
	head = backend_head(rq);
	head->state = RECORD_SUBMITTING;
	spec_set(&head->backend, s->kind->name);
	spec_set(&head->more->namespace, s->k->namespace);
	spec_set(&head->id, s->m->id);
	s->record = records_make(s->k->b->records, head,
				 &(struct record_rest){.document = rq->text, .len = rq->len}, NULL,
				 recorded, s);
	record_pin(s->record);
}

static void prepared(void *data)
{
	struct kube_submit *s = data;

	if (!s->err) {
		s->kind = s->m->kind;
		request_set_kind(&s->r, s->kind);
	}
	if (s->err || is_dry(s))
		ready(s);
	else if (is_used(s) || folders_awaits(s->k->folders, s->m->id, s->uuid))
		name_is_taken_here(s);
	else
		make_record(s);
}

static const struct request_ops submit_ops = {.send = post, .free = submit_free};

/*
 * Keep only the kind NAME, which the dry run of the held job has chosen. Another kind is not
 * allowed, because an earlier POST may have created a job of kind NAME. Return false if the mount
 * does not show this kind now.
 */
static bool keep_kind(struct kube_submit *s, const char *name)
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
	cleanup_free char *offline = watches_offline(k->watches);
	struct kube_submit *s;

	if (offline) {
		backend_refuse(rq, -EHOSTUNREACH, "%s: %s; nothing was launched\n", rq->file,
			       offline);
		return;
	}
	s = new0(struct kube_submit);
	s->k = k;
	s->n_kinds = world_kinds(k->world, s->kinds);
	if (rq->backend && !keep_kind(s, rq->backend)) {
		free(s);
		backend_refuse(
			rq, -EHOSTUNREACH,
			"%s: this mount shows no jobs of kind %s now; nothing was launched\n",
			rq->file, rq->backend);
		return;
	}
	s->held = rq->held && rq->kind == BACKEND_SUBMIT;
	s->record = s->held ? records_by_key(b->records, rq->submission) : NULL;
	if (s->record)
		record_pin(s->record);
	loop_timer_init(&s->shown, b->loop, on_shown, s);
	request_begin(k->requests, &s->r, rq, &submit_ops);
	/* an earlier request may have launched the held job, although no watch reported it */
	s->tried = rq->again ? TRIED_LOST : TRIED_NOTHING;
	s->r.working = true;
	loop_work(b->loop, prepare, prepared, s);
}
