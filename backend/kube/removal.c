/* SPDX-License-Identifier: MIT */
/*
 * This file removes jobs from jobs/ and from history/.
 *
 * From jobs/: kxfs sends a DELETE with the job's uid as precondition. kxfs can repeat such a
 * DELETE, because it never deletes another job of the same name. The DELETE has succeeded if the
 * server replies with the job, or with a Status of success. Any other reply, such as a page from a
 * proxy, counts as a failure, because kxfs must not hide a job that still runs.
 *
 * From history/: kxfs removes a job on request, or because backend/jobs/expiry.h has selected the
 * job or its output.
 */
#include <errno.h>

#include "backend/base/diag.h"
#include "backend/jobs/expiry.h"
#include "backend/kube/parts.h"
#include "spec/api/object.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/view/reader.h"

#define DELETE_MS 25000
#define REPLY_MAX (8u << 20) /* the reply may be the whole object */
/* The largest number of retries after unclear replies. A proxy may have sent such replies. */
#define SERVER_TRIES 4

/* --- removals from jobs/ --- */

struct cancel {
	struct request r;
	const struct kube_parts *k;
	char *name; /* name of the object */
	char *body;
	bool lost; /* true if an earlier DELETE may have succeeded */
};

static void cancel_free(struct request *r)
{
	struct cancel *c = container_of(r, struct cancel, r);

	free(c->name);
	free(c->body);
	free(c);
}

static bool is_accepted(const struct cancel *c, const struct http_reply *reply)
{
	const struct spec_object_wanted wanted = {.uid = c->r.rq->uid};

	return http_succeeded(reply) && (spec_object_is_success(reply->body, reply->len) ||
					 spec_object_is(reply->body, reply->len, &wanted));
}

static void on_deleted(void *data, const struct http_reply *reply)
{
	struct cancel *c = data;
	const struct kube_parts *k = c->k;
	const struct spec_asked asked = request_asked(&c->r, "delete", c->name);
	bool accepted = is_accepted(c, reply), unknown = !accepted && http_is_unknown(reply);
	cleanup_free char *text = NULL;
	int err = accepted ? 0 : http_refusal(reply, &asked, &text);

	c->r.call = NULL;
	/*
	 * -ESTALE means that another job now has the name. It counts as a success only if an
	 * earlier DELETE may have deleted the job.
	 */
	if (!err ||
	    (!unknown && (err == -ENOENT || (err == -ESTALE && (c->lost || reply->again))))) {
		publish_leave(k->publish, c->r.rq->uid);
		request_answer(&c->r, 0, NULL, NULL);
		return;
	}
	c->lost |= unknown;
	if (unknown && (reply->err || c->r.backoff.failures < SERVER_TRIES) &&
	    request_again(&c->r, reply->wait_ms))
		return;
	request_answer(&c->r, err, NULL, text);
}

static void send_delete(struct request *r)
{
	struct cancel *c = container_of(r, struct cancel, r);
	const struct http_call call = {
		.method = HTTP_DELETE,
		.body = c->body,
		.len = strlen(c->body),
		.deadline_ms = DELETE_MS,
		.max_body = REPLY_MAX,
		.retry = true,
		.done = on_deleted,
		.data = c,
	};

	request_call(r, c->name, "", &call);
}

static const struct request_ops cancel_ops = {.send = send_delete, .free = cancel_free};

/*
 * Some owners create a deleted job again. For example, a TrainJob creates its JobSet again. If JOB
 * has such an owner, return a text that explains this, malloc'ed. Otherwise return NULL. The text
 * has a command only if the owner's name is valid, because users may paste it into a shell.
 */
static char *find_owner(const struct kube_parts *k, const struct world_job *job)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	const char *owner = job->view->meta.owner;
	size_t kind = strspn(owner, letters);

	if (!*owner || !job->view->owned || !job->kind->reader->remade)
		return NULL;
	if (kind == 0 || owner[kind] != ' ' || !spec_name_is_object(owner + kind + 1))
		return text_print("the job's owner, %s, would create the job again; delete the "
				  "owner",
				  owner);
	return text_print(
		"the job's owner, %s, would create the job again; to delete both, run kubectl -n "
		"%s delete %s",
		owner, k->namespace, owner);
}

void kube_cancel(struct backend *b, struct backend_request *rq)
{
	const struct kube_parts *k = kube_parts_of(b);
	cleanup_free char *offline = watches_offline(k->watches);
	const struct world_job *job = world_find(k->world, rq->uid);
	cleanup_free char *owner = job && job->view ? find_owner(k, job) : NULL;
	struct cancel *c;

	if (!job || !job->view) {
		backend_answer(rq, -ENOENT, NULL,
			       "the job no longer exists, or kxfs can't list jobs of its kind now "
			       "(.kxfs/info shows why)");
		return;
	}
	if (owner) {
		backend_answer(rq, -EPERM, NULL, owner);
		return;
	}
	/* an rmdir that waits for an unreachable server would block the directory */
	if (offline) {
		backend_answer(rq, -EHOSTUNREACH, NULL, offline);
		return;
	}
	c = new0(struct cancel);
	c->k = k;
	c->name = text_copy(job->view->meta.name);
	c->body = text_print("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
			     "\"propagationPolicy\":\"Background\","
			     "\"preconditions\":{\"uid\":\"%s\"}}",
			     rq->uid);
	request_begin(k->requests, &c->r, rq, &cancel_ops);
	request_set_kind(&c->r, job->kind);
	send_delete(&c->r);
}

/* --- removals from history/ --- */

struct removals {
	struct backend *b;
	struct folders *folders;
	struct capture *capture;
	struct publish *publish;
	struct expiry *expiry; /* NULL while the mount is ending */
	size_t n;	       /* number of removals in progress */
};

struct kube_removal {
	struct removals *all;
	struct backend_request *rq; /* NULL if no user has requested the removal */
	char *uid, *id;
	bool whole; /* false to remove only the job's output */
};

static void on_removed(void *data, int err)
{
	struct kube_removal *r = data;
	struct removals *all = r->all;
	cleanup_free char *text = NULL;

	if (r->whole && err < 0)
		text = text_print("its directory can't be removed: %s", strerror(-err));
	else if (r->whole)
		store_remove(all->b->store, r->uid);
	all->n--;
	if (!r->whole)
		expiry_dropped(all->expiry, r->id, err);
	else if (!err)
		expiry_now(all->expiry);
	if (r->rq)
		backend_answer(r->rq, err, r->id, text);
	else if (text)
		diag(DIAG_ERROR, "%s: %s", r->id, text);
	free(r->uid);
	free(r->id);
	free(r);
}

static void begin(struct removals *all, const struct spec_job *job, bool whole,
		  struct backend_request *rq)
{
	struct kube_removal *r = new0(struct kube_removal);

	*r = (struct kube_removal){
		.all = all,
		.rq = rq,
		.uid = text_copy(job->uid),
		.id = text_copy(job->id),
		.whole = whole,
	};
	all->n++;
	capture_forget(all->capture, job->uid);
	if (whole)
		folders_remove(all->folders, spec_job_key(job), on_removed, r);
	else
		folders_drop_output(all->folders, spec_job_key(job), on_removed, r);
	/* publish.c then forgets the job if kxfs kept it only because of this output */
	publish_again(all->publish, job->uid);
}

void kube_forget(struct backend *b, struct backend_request *rq)
{
	const struct spec_job *job cleanup_job = store_get_uid(b->store, rq->uid);

	if (job)
		begin(kube_parts_of(b)->removals, job, true, rq);
	else
		backend_answer(rq, -ENOENT, NULL, NULL);
}

/* --- removals because of age or size --- */

/*
 * While the mount is ending, or while JOB's kind is not listed, a job is settled only if each of its
 * logs is complete, or has lost its end. kxfs may fetch the rest of any other log later.
 */
bool kube_is_settled(struct backend *b, const struct spec_job *job)
{
	const struct removals *all = kube_parts_of(b)->removals;
	const bool later = !all->expiry || publish_is_unlisted(all->publish, job);

	return (!later || spec_job_has_ends(job)) && folders_holds(all->folders, job) &&
	       capture_is_over(all->capture, job->uid) && publish_has_shown(all->publish, job->uid);
}

/* A log that kxfs retries because the server has refused it does not prevent the removal. */
static bool may_go(void *data, const struct spec_job *job)
{
	const struct removals *all = data;

	return folders_holds(all->folders, job) && capture_is_quiet(all->capture, job->uid) &&
	       publish_has_shown(all->publish, job->uid) && !job->suspended;
}

static bool has_output(void *data, const struct spec_job *job)
{
	const struct removals *all = data;

	return folders_has_output(all->folders, job);
}

static bool is_busy(void *data)
{
	const struct removals *all = data;

	return all->n > 0;
}

static void remove_job(void *data, const struct spec_job *job)
{
	const struct removals *all = data;

	backend_expired(all->b, spec_job_key(job));
	begin(data, job, true, NULL);
}

static void drop_output(void *data, const struct spec_job *job)
{
	begin(data, job, false, NULL);
}

void removals_soon(void *removals)
{
	struct removals *all = removals;

	expiry_soon(all->expiry);
}

struct removals *removals_new(struct backend *b, struct folders *folders, struct capture *capture,
			      struct publish *publish)
{
	struct removals *all = new0(struct removals);
	const struct expiry_config config = {
		.loop = b->loop,
		.store = b->store,
		.output = b->output,
		.archive = b->archive,
		.spool_limit = b->config.spool_limit,
		.history_keep = b->config.history_keep,
		.may_go = may_go,
		.has_output = has_output,
		.is_busy = is_busy,
		.remove = remove_job,
		.drop = drop_output,
		.data = all,
	};

	*all = (struct removals){
		.b = b,
		.folders = folders,
		.capture = capture,
		.publish = publish,
		.expiry = expiry_new(&config),
	};
	folders_set_saved(folders, removals_soon, all);
	return all;
}

void removals_stop(struct removals *all)
{
	expiry_free(take_ptr(all->expiry));
}

void removals_free(struct removals *all)
{
	if (!all)
		return;
	removals_stop(all);
	free(all);
}
