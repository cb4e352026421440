/* SPDX-License-Identifier: MIT */
/*
 * What is written to ctl. The server takes whatever it is asked, also what its controller then ignores;
 * so the job is read right before, and the write is answered when the job has gone where the action
 * leads, or after a while. What was asked for (struct kube_command, kube_command.c) is remembered longer, and
 * meanwhile no other action is taken. What to ask for is the kind's business (spec/control.h).
 *
 * After a lost reply the job is read again. What it has not obeyed is asked for once more, but for what
 * could then be done twice: that is only waited for, and who asked is told that it is not known.
 */
#include <errno.h>
#include <inttypes.h>

#include "backend/kube_command.h"
#include "backend/random.h"
#include "spec/event.h"

#define DRAIN_MS   2000
#define CALL_MS	   4000
#define WAIT_MS	   5000 /* for the phase to change, from the beginning on */
#define GIVE_UP_MS 8000 /* asking again after a lost reply */
#define REPLY_MAX  (8u << 20)

/* The logs of a job, awaited. It may outlive who waits. */
struct control_drain {
	size_t n;		/* logs, and one for who counts them */
	struct kube_control *c; /* NULL: nobody waits any more */
};

static struct kube_control *control_of(struct kube_op *op)
{
	return container_of(op, struct kube_control, op);
}

/* --- the end --- */

static void control_free(struct kube_op *op)
{
	struct kube_control *c = control_of(op);

	if (c->drain)
		c->drain->c = NULL;
	if (c->command)
		c->command->asker = NULL;
	loop_timer_free(c->timer);
	spec_control_request_clear(&c->request);
	free(c->lost);
	free(c);
}

/* Nothing was asked for, or it was refused. */
static void refuse(struct kube_control *c, int err, const char *text)
{
	if (c->command)
		kube_command_drop(c->command);
	kube_op_answer(&c->op, err, NULL, text);
}

/* --- asking --- */

/* Neither the server's answer nor the job says whether it was taken. */
static void give_up(struct kube_control *c)
{
	cleanup_free char *text = NULL;

	if (asprintf(&text,
		     "whether %s was taken could not be found out: %s; look at status before you "
		     "ask for it again",
		     spec_action_name(c->command->action), c->lost) < 0)
		text = NULL;
	kube_op_answer(&c->op, -ETIMEDOUT, NULL, text);
}

static void on_waited(void *data)
{
	struct kube_control *c = data;

	if (c->lost)
		give_up(c);
	else
		kube_op_answer(&c->op, 0, NULL, NULL);
}

/* Answer at UNTIL ms after the beginning, should nothing else do it. */
static void answer_after(struct kube_control *c, uint64_t until)
{
	uint64_t gone = loop_now_ms() - c->op.since;

	loop_timer_free(c->timer);
	c->timer = loop_timer_new(c->op.k->b->loop, gone < until ? (unsigned)(until - gone) : 0, 0,
				  on_waited, c);
	if (!c->timer)
		kube_op_answer(&c->op, 0, NULL, NULL);
}

static bool is_once(const struct kube_control *c)
{
	return c->op.k->kind->control->once & 1u << c->command->action;
}

/* The job is read again after a while, to see what came of it. */
static void look_again(struct kube_control *c, unsigned wait_ms)
{
	bool again = kube_command_taken(c->command) == 0 &&
		     loop_now_ms() - c->op.since < GIVE_UP_MS && kube_op_again(&c->op, wait_ms);

	if (again)
		answer_after(c, GIVE_UP_MS);
	else
		give_up(c);
}

/* The reply is lost. */
static void on_lost(struct kube_control *c, const struct http_reply *reply, const char *why)
{
	char *copy = strdup(why);

	if (!copy) {
		kube_op_answer(&c->op, -ENOMEM, NULL, NULL);
		return;
	}
	free(c->lost);
	c->lost = copy;
	c->command->unsure = true;
	look_again(c, reply->wait_ms);
}

/* May the server have done what this reply to a request, which has failed with ERR, is about? */
static bool may_be_done(const struct kube_control *c, const struct http_reply *reply, int err)
{
	if (reply->err)
		return reply->sent;
	/* 503 is a server that did nothing, or a proxy that lost it. */
	return err && reply->status >= 500 && (reply->status != 503 || is_once(c));
}

static void on_asked(void *data, const struct http_reply *reply)
{
	struct kube_control *c = data;
	struct kube *k = c->op.k;
	const struct spec_asked asked = {
		.verb = c->request.patch ? "patch" : "create",
		.resource = c->request.resource,
		.namespace = k->connection.namespace,
		.name = c->op.rq->id,
	};
	cleanup_free char *text = NULL;
	int err;

	c->op.call = NULL;
	err = !reply->err && reply->status / 100 == 2 ? 0 : kube_refusal(reply, &asked, &text);
	/* Nobody else has chosen this name: a try whose reply was lost has arrived. */
	if (err == -EEXIST && !c->request.patch)
		err = 0;
	/* An earlier try may be obeyed yet, whatever is said of this one. */
	if (may_be_done(c, reply, err) || (err && c->lost)) {
		on_lost(c, reply, text ? text : strerror(-err));
		return;
	}
	if (!err)
		err = kube_command_taken(c->command);
	if (err) {
		refuse(c, err, text);
		return;
	}
	free(take_ptr(c->lost));
	c->command->unsure = false;
	answer_after(c, WAIT_MS);
}

static void ask(struct kube_control *c)
{
	struct kube *k = c->op.k;
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

	c->op.call = http_send(k->http, &call);
	if (!c->op.call)
		refuse(c, -ENOMEM, NULL);
}

/* JOB stands where the action is obeyed: what is to be sent, and what will tell that it was. */
static int prepare(struct kube_control *c, const struct kube_job *job)
{
	struct kube *k = c->op.k;
	char name[32];
	uint64_t random;
	int err = random_bytes(&random, sizeof(random));
	const struct spec_control_asked asked = {
		.job = job->view,
		.namespace = k->connection.namespace,
		.action = c->command->action,
		.name = name,
	};

	if (err)
		return err;
	snprintf(name, sizeof(name), "kxfs-%016" PRIx64, random);
	c->command->retries = job->view->retries;
	c->command->phase = strdup(job->view->phase);
	return c->command->phase ? k->kind->control->request(&asked, &c->request) : -ENOMEM;
}

static void refuse_action(struct kube_control *c, const struct spec_job_view *view)
{
	enum spec_action action = c->command->action;
	const char *why = c->op.k->kind->control->refusal(view, action);
	cleanup_free char *text = NULL;

	if (why && asprintf(&text, "%s is refused: %s", spec_action_name(action), why) < 0)
		text = NULL;
	if (!why && asprintf(&text, "%s would have no effect: the job is %s; ctl lists what has",
			     spec_action_name(action),
			     *view->phase ? view->phase : "not yet seen by its controller") < 0)
		text = NULL;
	refuse(c, -EINVAL, text);
}

/* The job as it is now. */
static void decide(struct kube_control *c, const struct kube_job *job)
{
	const struct spec_control *control = c->op.k->kind->control;
	int err;

	if (c->request.body) {
		/* After a lost reply. If it was obeyed, that is answered when it is shown. */
		kube_command_look(c->command->job);
		if (c->command->outcome)
			return;
		if (is_once(c))
			look_again(c, 0);
		else
			ask(c);
		return;
	}
	if (!(control->actions(job->view) & 1u << c->command->action)) {
		refuse_action(c, job->view);
		return;
	}
	err = prepare(c, job);
	if (err)
		refuse(c, err, NULL);
	else
		ask(c);
}

static void on_read(void *data, const struct http_reply *reply)
{
	struct kube_control *c = data;
	struct kube *k = c->op.k;
	const struct spec_asked asked = {
		.verb = "get",
		.resource = k->resource,
		.namespace = k->connection.namespace,
		.name = c->op.rq->id,
	};
	cleanup_free char *text = NULL;
	const struct kube_job *job;
	int err;

	c->op.call = NULL;
	if (reply->err || reply->status != 200) {
		err = kube_refusal(reply, &asked, &text);
		if (c->lost)
			on_lost(c, reply, text ? text : strerror(-err));
		else
			refuse(c, err, text);
		return;
	}
	job = kube_job_told(k, reply->body, reply->len);
	if (!job)
		refuse(c, -ENOENT, "the job was deleted meanwhile");
	else if (!streq(job->uid, c->op.rq->uid))
		refuse(c, -ESTALE, "it is another job by now; look at it again");
	else
		decide(c, job);
}

static void read_job(struct kube_op *op)
{
	struct kube_control *c = control_of(op);
	const struct http_call call = {
		.method = HTTP_GET,
		.deadline_ms = CALL_MS,
		.max_body = REPLY_MAX,
		.retry = true,
		.done = on_read,
		.data = c,
	};

	if (!kube_op_send(op, op->rq->id, &call))
		refuse(c, -ENOMEM, NULL);
}

/* --- the logs of pods that will go --- */

static void drained(void *data)
{
	struct kube_control *c = data;

	loop_timer_free(take_ptr(c->timer));
	if (c->drain)
		c->drain->c = NULL;
	c->drain = NULL;
	read_job(&c->op);
}

static void one_drained(void *data)
{
	struct control_drain *d = data;

	if (--d->n)
		return;
	if (d->c)
		drained(d->c);
	free(d);
}

/* What is followed has come as far as it has been printed: its stream stands, and takes the rest. */
static void drain(struct kube_control *c, struct kube_job *job)
{
	struct control_drain *d = calloc(1, sizeof(*d));

	c->timer = loop_timer_new(c->op.k->b->loop, DRAIN_MS, 0, drained, c);
	if (!d || !c->timer) {
		free(d);
		refuse(c, -ENOMEM, NULL);
		return;
	}
	d->n = 1;
	d->c = c;
	c->drain = d;
	kube_logs_wait(job, &d->n, one_drained, d);
	one_drained(d);
}

/* --- the request --- */

void kube_control(struct backend *b, struct backend_request *rq)
{
	struct kube *k = kube_of(b);
	const struct spec_control *control = k->kind->control;
	struct kube_job *job = kube_job_find(k, rq->uid);
	cleanup_free char *offline = kube_offline(k);
	struct kube_control *c;

	if (!control || !(control->known & 1u << rq->action)) {
		backend_answer(rq, -EOPNOTSUPP, NULL, "jobs of this kind have no such action");
		return;
	}
	if (offline) {
		backend_answer(rq, -EHOSTUNREACH, NULL, offline);
		return;
	}
	if (!job || !job->view) {
		backend_answer(rq, -ENOENT, NULL, "the job is gone");
		return;
	}
	if (job->command) {
		backend_answer(rq, -EBUSY, NULL,
			       "another action is under way; status has it as pending_command");
		return;
	}
	c = calloc(1, sizeof(*c));
	job->command = c ? calloc(1, sizeof(*job->command)) : NULL;
	if (!job->command) {
		free(c);
		backend_answer(rq, -ENOMEM, NULL, NULL);
		return;
	}
	job->ignored = 0;
	job->command->job = job;
	job->command->action = rq->action;
	job->command->asker = c;
	c->command = job->command;
	c->op.rq = rq;
	c->op.send = read_job;
	c->op.free = control_free;
	kube_op_add(k, &c->op);
	drain(c, job);
}
