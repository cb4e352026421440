/* SPDX-License-Identifier: MIT */
/*
 * What all users' requests have in common: the list of those in progress, their calls, and the
 * pauses between calls.
 */
#include "backend/kube/parts.h"

#include <errno.h>

#include <utlist.h>

#include "spec/api/refusal.h"
#include "spec/base/mem.h"

#define RETRY_MIN_MS 500u
#define RETRY_MAX_MS 15000u

struct requests {
	struct loop *loop;
	struct http *http;
	struct group *group;
	const char *namespace;
	struct request *list;
};

static void request_end(struct request *r)
{
	struct requests *all = r->all;

	http_drop(&r->call);
	loop_timer_stop(&r->timer);
	DL_DELETE(all->list, r);
	free(r->resource);
	r->ops->free(r);
	group_leave(all->group);
}

void request_set_kind(struct request *r, const struct spec_kind *kind)
{
	r->kind = kind;
	free(r->resource);
	r->resource = spec_asked_resource(kind->plural, kind->api_version);
}

uint64_t request_age(const struct request *r)
{
	return loop_now_ms() - r->since;
}

struct spec_asked request_asked(const struct request *r, const char *verb, const char *name)
{
	return (struct spec_asked){
		.verb = verb,
		.resource = r->resource,
		.namespace = r->all->namespace,
		.name = name,
	};
}

void request_call(struct request *r, const char *name, const char *query,
		  const struct http_call *call)
{
	struct http_call copy = *call;
	cleanup_free char *path =
		text_print("/apis/%s/namespaces/%s/%s%s%s%s", r->kind->api_version,
			   r->all->namespace, r->kind->plural, name ? "/" : "", name ? name : "",
			   query);

	if (!copy.path)
		copy.path = path;
	copy.urgent = true;
	r->call = http_send(r->all->http, &copy);
}

static void on_retry(void *data)
{
	struct request *r = data;

	r->ops->send(r);
}

void request_begin(struct requests *all, struct request *r, struct backend_request *rq,
		   const struct request_ops *ops)
{
	r->ops = ops;
	r->rq = rq;
	r->all = all;
	r->since = loop_now_ms();
	r->backoff = backoff_begin(RETRY_MIN_MS, RETRY_MAX_MS);
	loop_timer_init(&r->timer, all->loop, on_retry, r);
	DL_APPEND(all->list, r);
	group_enter(all->group);
}

bool request_again(struct request *r, unsigned wait_ms)
{
	if (request_age(r) > REQUEST_FIND_OUT_MS)
		return false;
	loop_timer_set(&r->timer, backoff_next(&r->backoff, wait_ms));
	return true;
}

void request_answer(struct request *r, int err, const char *id, const char *text)
{
	backend_answer(take_ptr(r->rq), err, id, text);
	request_end(r);
}

void request_reply(struct request *r, const struct backend_result *result)
{
	backend_reply(take_ptr(r->rq), result);
	request_end(r);
}

struct requests *requests_new(struct loop *loop, struct http *http, struct group *group,
			      const char *namespace)
{
	struct requests *all = new0(struct requests);

	*all = (struct requests){.loop = loop,
				 .http = http,
				 .group = group,
				 .namespace = namespace};
	return all;
}

void requests_stop(struct requests *all)
{
	struct request *r, *next;

	DL_FOREACH_SAFE(all->list, r, next) {
		if (r->working)
			continue;
		if (r->unclear)
			request_answer(
				r, -EINPROGRESS, NULL,
				"kxfs is shutting down; the next mount finds out whether the job "
				"was launched, and shows the result in submit/");
		else
			request_answer(r, -ECANCELED, NULL, "kxfs is shutting down");
	}
}

void requests_free(struct requests *all)
{
	free(all);
}
