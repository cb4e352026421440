/* SPDX-License-Identifier: MIT */
/*
 * Carries out the commands that users write to ctl. The server also accepts requests that the job's
 * controller will ignore. So kxfs first reads the job, and refuses an action that the job would
 * ignore. kxfs answers the write when the job shows the outcome, or after WAIT_MS. After the
 * answer, kxfs continues to wait for the outcome (commands.h), and refuses other actions until
 * then. The job's kind makes the request (spec/view/control.h).
 *
 *	step	what is in progress		what ends it			next
 *	DRAIN	a wait until the output that	all of it has arrived		READ
 *		exists now has arrived		DRAIN_MS are over		READ
 *	READ	a GET of the job		the job would obey		LOOK, or ASK if the
 *										action needs no
 *										other object
 *						the job would ignore the action	answer: refused
 *						the GET fails			answer: refused
 *						the GET fails, after the reply	READ, later
 *						to ASK was lost
 *	LOOK	a GET of the other object	the object does not exist	answer: refused
 *						any other reply			ASK
 *	ASK	the request that the kind made	the server accepts it		WAIT
 *						the server refuses it		answer: refused
 *						the reply is lost		READ, later
 *						the job has changed since READ	READ
 *	WAIT	a wait for the outcome		the job shows the outcome	answer
 *						WAIT_MS are over		answer
 *
 * If the reply to ASK is lost, kxfs reads the job again. If the job has not obeyed, kxfs repeats
 * the request. But if the action must not be executed twice, kxfs only waits for the outcome. If
 * the job shows no outcome in time, kxfs answers that the outcome is unknown.
 */
#include <errno.h>
#include <inttypes.h>

#include "backend/base/random.h"
#include "backend/kube/kueue.h"
#include "backend/kube/parts.h"
#include "spec/api/object.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"
#include "spec/view/control.h"

#define DRAIN_MS   2000
#define READ_MS	   6000 /* timeout of READ; after the first ASK it is CALL_MS */
#define LOOK_MS	   2000
#define CALL_MS	   4000
#define WAIT_MS	   5000 /* WAIT ends this long after the write began */
#define GIVE_UP_MS 8000 /* the same after a lost reply */
#define REPLY_MAX  (8u << 20)

struct kube_control;

/* A wait for the existing output of the job. It may outlive the kube_control. */
struct drain {
	struct kube_control *c; /* NULL if the kube_control was freed */
};

/* One write to ctl, until it is answered. */
struct kube_control {
	struct request r;
	const struct kube_parts *k;
	/* the actions of the job's kind when the request began; the kind may change later */
	const struct spec_control *control;
	char *uid, *name;
	enum spec_action action;
	struct spec_control_request request;
	char *lost; /* the error of a request that the server may have carried out, or NULL */
	struct drain *drain;
	struct loop_timer timer; /* ends DRAIN, later WAIT */
};

static struct kube_control *control_of(struct request *r)
{
	return container_of(r, struct kube_control, r);
}

/* --- answers --- */

static void control_free(struct request *r)
{
	struct kube_control *c = control_of(r);

	if (c->drain)
		c->drain->c = NULL;
	commands_leave(c->k->commands, c->uid);
	loop_timer_stop(&c->timer);
	spec_control_request_clear(&c->request);
	free(c->lost);
	free(c->uid);
	free(c->name);
	free(c);
}

static void answer(struct kube_control *c, int err, const char *text)
{
	request_answer(&c->r, err, NULL, text);
}

static void on_ended(void *data, enum command_end end, const char *text)
{
	struct kube_control *c = data;

	switch (end) {
	case COMMAND_OBEYED:
		return answer(c, 0, NULL);
	case COMMAND_LATE:
		return answer(c, -EINVAL, text);
	case COMMAND_IGNORED:
		return answer(c, -ETIMEDOUT, text);
	default:
		return answer(c, -ENOENT, "the job was deleted meanwhile");
	}
}

/* --- waiting --- */

static void give_up(struct kube_control *c)
{
	cleanup_free char *text =
		text_print("kxfs does not know whether the server accepted %s: %s; read "
			   "status.json before you write the action again",
			   spec_action_name(c->action), c->lost);

	answer(c, -ETIMEDOUT, text);
}

static void on_waited(void *data)
{
	struct kube_control *c = data;

	if (c->lost)
		give_up(c);
	else
		answer(c, 0, NULL);
}

/* Set the timer so that it answers the write UNTIL ms after the request began. */
static void answer_after(struct kube_control *c, uint64_t until)
{
	uint64_t age = request_age(&c->r);

	loop_timer_stop(&c->timer);
	loop_timer_init(&c->timer, c->k->b->loop, on_waited, c);
	loop_timer_set(&c->timer, age < until ? until - age : 0);
}

static bool is_once(const struct kube_control *c)
{
	return c->control->once & 1u << c->action;
}

/* After a pause, read the job to find out whether it has obeyed. */
static void read_later(struct kube_control *c, unsigned wait_ms)
{
	commands_taken(c->k->commands, c->uid, true);
	if (request_age(&c->r) < GIVE_UP_MS && request_again(&c->r, wait_ms))
		answer_after(c, GIVE_UP_MS);
	else
		give_up(c);
}

static void on_lost(struct kube_control *c, const struct http_reply *reply, const char *why)
{
	text_set(&c->lost, "%s", why);
	read_later(c, reply->wait_ms);
}

/* --- requests to the server --- */

static void read_job(struct request *r);

/* Answer that the server refused the request. After a 403, add the kind's explanation, if any. */
static void refuse_request(struct kube_control *c, const struct http_reply *reply, int err,
			   const char *text)
{
	cleanup_free char *more = NULL;

	if (err == -EACCES && reply->status == 403 && c->request.forbidden) {
		err = -EOPNOTSUPP;
		more = text_print("%s is refused: %s\n%s", spec_action_name(c->action),
				  c->request.forbidden, text);
	}
	answer(c, err, more ? more : text);
}

static void on_asked(void *data, const struct http_reply *reply)
{
	struct kube_control *c = data;
	const struct spec_asked asked = {
		.verb = c->request.patch ? "patch" : "create",
		.resource = c->request.resource,
		.namespace = c->k->namespace,
		.name = c->name,
	};
	bool done = http_succeeded(reply) &&
		    spec_object_is(reply->body, reply->len, &(struct spec_object_wanted){0});
	/*
	 * True if the reply reports that a webhook did not respond. The API server then has not
	 * executed the action. But a proxy may have sent this reply. So don't trust this reply if
	 * the action must not be executed twice.
	 */
	bool unchecked =
		!reply->err && spec_reply_is_unchecked(reply->status, reply->body, reply->len);
	bool unknown = !done && ((http_is_unknown(reply) && (!unchecked || is_once(c))) ||
				 (!reply->err && reply->status == 503 && is_once(c)));
	cleanup_free char *text = NULL;
	int err = done ? 0 : http_refusal(reply, &asked, &text);

	c->r.call = NULL;
	/*
	 * The request creates an object with a random name. The name is taken, so the server has
	 * accepted an earlier request of this command, but its reply was lost.
	 */
	if (err == -EEXIST && !c->request.patch && !unknown)
		err = 0;
	/* The server may have carried out this request, or an earlier one whose reply was lost. */
	if (unknown || (err && c->lost)) {
		on_lost(c, reply, text ? text : strerror(-err));
		return;
	}
	if (err && reply->status == 409 && c->request.patch && request_age(&c->r) < GIVE_UP_MS) {
		spec_control_request_clear(&c->request);
		c->request = (struct spec_control_request){0};
		read_job(&c->r);
		return;
	}
	if (err) {
		refuse_request(c, reply, err, text);
		return;
	}
	commands_taken(c->k->commands, c->uid, false);
	free(take_ptr(c->lost));
	answer_after(c, WAIT_MS);
}

static void ask(struct kube_control *c);

/* The reply about the object that the action needs. Send the request if this object may exist. */
static void on_needed(void *data, const struct http_reply *reply)
{
	struct kube_control *c = data;

	c->r.call = NULL;
	free(take_ptr(c->request.needed));
	if (!reply->err && reply->status == 404)
		answer(c, -EINVAL, c->request.missing);
	else
		ask(c);
}

/* If the action needs another object, send a GET of this object. Otherwise send the request. */
static void ask(struct kube_control *c)
{
	const struct http_call get = {
		.method = HTTP_GET,
		.path = c->request.needed,
		.deadline_ms = LOOK_MS,
		.max_body = REPLY_MAX,
		.done = on_needed,
		.data = c,
	};
	const struct http_call call = {
		.method = c->request.patch ? HTTP_PATCH : HTTP_POST,
		.path = c->request.path,
		.body = c->request.body,
		.len = strlen(c->request.body),
		.deadline_ms = CALL_MS,
		.max_body = REPLY_MAX,
		.retry = !is_once(c),
		.done = on_asked,
		.data = c,
	};

	request_call(&c->r, NULL, "", c->request.needed ? &get : &call);
}

static int make_request(struct kube_control *c, const struct spec_control_job *job)
{
	char name[32];
	uint64_t random;
	int err = random_bytes(&random, sizeof(random));
	const struct spec_control_asked asked = {
		.job = job,
		.namespace = c->k->namespace,
		.kueue = kueue_version(c->k->kueue),
		.action = c->action,
		.argument = c->r.rq->argument,
		.name = name,
		.kind = c->r.kind,
	};

	if (err)
		return err;
	snprintf(name, sizeof(name), "kxfs-%016" PRIx64, random);
	c->control->request(&asked, &c->request);
	return 0;
}

/* JOB is the state that was just read. Send the request, wait for the outcome, or refuse. */
static void decide(struct kube_control *c, const struct spec_control_job *job)
{
	const struct spec_control *control = c->control;
	const char *why;
	int err;

	if (c->request.body) {
		/* The request was sent. If it had an effect, publish_again answers the write. */
		if (commands_check(c->k->commands, c->uid, control, job))
			return publish_again(c->k->publish, c->uid);
		return is_once(c) ? read_later(c, 0) : ask(c);
	}
	err = control->check(job, c->action, &why);
	if (err) {
		const char *phase = job->view->phase, *name = spec_action_name(c->action);
		cleanup_free char *text = NULL;

		if (why)
			text = text_print("%s is refused: %s", name, why);
		else
			text = text_print("%s has no effect while the job is %s; read the file "
					  "ctl for the actions that are possible now",
					  name,
					  *phase ? phase : "not processed by its controller yet");
		return answer(c, err, text);
	}
	err = make_request(c, job);
	if (err)
		return answer(c, err, NULL);
	commands_sent(c->k->commands, c->uid, job->view, c->r.rq->argument);
	ask(c);
}

static void on_read(void *data, const struct http_reply *reply)
{
	struct kube_control *c = data;
	const struct spec_asked asked = request_asked(&c->r, "get", c->name);
	cleanup_free char *text = NULL;
	struct spec_kueue_facts kueue;
	const struct world_job *job;
	int err;

	c->r.call = NULL;
	if (reply->err || reply->status != 200) {
		err = http_refusal(reply, &asked, &text);
		if (c->lost)
			on_lost(c, reply, text ? text : strerror(-err));
		else
			answer(c, err, text);
		return;
	}
	job = watches_reply(c->k->watches, c->r.kind, reply->body, reply->len);
	if (!job) {
		answer(c, -ENOENT, "the job was deleted meanwhile");
	} else if (!streq(job->uid, c->uid)) {
		answer(c, -ESTALE,
		       "another job has this name now; read that job's status before you retry");
	} else {
		kueue = world_kueue(c->k->world, job);
		decide(c, &(struct spec_control_job){.view = job->view, .kueue = &kueue});
	}
}

static void read_job(struct request *r)
{
	struct kube_control *c = control_of(r);
	const struct http_call call = {
		.method = HTTP_GET,
		.deadline_ms = c->request.body ? CALL_MS : READ_MS,
		.max_body = REPLY_MAX,
		.retry = true,
		.done = on_read,
		.data = c,
	};

	request_call(r, c->name, "", &call);
}

/* --- logs of pods that will be deleted --- */

static void on_drain_over(void *data)
{
	struct kube_control *c = data;

	loop_timer_stop(&c->timer);
	if (c->drain)
		c->drain->c = NULL;
	c->drain = NULL;
	read_job(&c->r);
}

static void on_drained(void *data)
{
	struct drain *d = data;
	struct kube_control *c = d->c;

	free(d);
	if (c) {
		c->drain = NULL;
		on_drain_over(c);
	}
}

/*
 * The action may delete pods. So first wait until kxfs has fetched the output that exists now. The
 * streams of the followed logs capture the rest until the pods are deleted.
 */
static void drain(struct kube_control *c)
{
	loop_timer_init(&c->timer, c->k->b->loop, on_drain_over, c);
	loop_timer_set(&c->timer, DRAIN_MS);
	c->drain = new0(struct drain);
	c->drain->c = c;
	capture_wait(c->k->capture, c->uid, on_drained, c->drain);
}

static const struct request_ops control_ops = {.send = read_job, .free = control_free};

void kube_control(struct backend *b, struct backend_request *rq)
{
	const struct kube_parts *k = kube_parts_of(b);
	const struct world_job *job = world_find(k->world, rq->uid);
	const struct spec_control *control = job && job->view ? job->kind->control : NULL;
	cleanup_free char *offline = watches_offline(k->watches);
	struct kube_control *c;

	if (!job || !job->view) {
		backend_answer(rq, -ENOENT, NULL, "the job no longer exists");
		return;
	}
	if (!control || !(control->known & 1u << rq->action)) {
		backend_answer(rq, -EOPNOTSUPP, NULL,
			       "jobs of this kind do not support this "
			       "action");
		return;
	}
	if (offline) {
		backend_answer(rq, -EHOSTUNREACH, NULL, offline);
		return;
	}
	c = new0(struct kube_control);
	if (commands_begin(k->commands, rq->uid, rq->id, rq->action, on_ended, c) < 0) {
		free(c);
		backend_answer(rq, -EBUSY, NULL,
			       "another action is pending (pending_command in status.json); try "
			       "again when that action has ended");
		return;
	}
	c->k = k;
	c->control = control;
	c->uid = text_copy(rq->uid);
	c->name = text_copy(job->view->meta.name);
	c->action = rq->action;
	request_begin(k->requests, &c->r, rq, &control_ops);
	request_set_kind(&c->r, job->kind);
	drain(c);
}
