/* SPDX-License-Identifier: MIT */
/*
 * A version is asked for by its list of resources, which everybody who may use the API can read. Where
 * even that is refused, the best is taken, and the watches say what is wrong.
 */
#include "backend/kube_discover.h"

#include <errno.h>

#include "backend/kube.h"
#include "backend/kube_request.h"
#include "spec/event.h"

/* A server that can't be reached: at boot the network often comes late. */
#define DISCOVER_MS 30000

struct kube_discover {
	struct http *http;
	const char *source; /* borrowed */
	kube_discover_fn fn;
	void *data;
	size_t i; /* which is asked for */
	struct http_request *request;
};

static int ask(struct kube_discover *d);

/* --- one version after the other --- */

static void tell(struct kube_discover *d, const struct spec_served *served, int err,
		 const char *text)
{
	d->fn(d->data, served, err, text);
}

/* What a server says that has none of them. */
static void none(struct kube_discover *d)
{
	const struct spec_served *first = spec_served_at(d->source, 0);
	struct spec_asked asked = {.verb = "list", .namespace = "", .name = ""};
	cleanup_free char *resource = NULL, *text = NULL;
	int err = -EOPNOTSUPP;

	if (!*d->source) {
		tell(d, NULL, err,
		     "the cluster serves neither Volcano's jobs nor AppWrappers\nIs it the right "
		     "cluster? Else ask who runs it to install Volcano or AppWrapper.");
		return;
	}
	if (asprintf(&resource, "%s.%.*s", first->plural, (int)strcspn(first->api_version, "/"),
		     first->api_version) < 0)
		resource = NULL;
	asked.resource = resource ? resource : first->plural;
	err = spec_reply_errno(404, "", 0, &asked, &text);
	tell(d, NULL, err, text ? text : strerror(-err));
}

/* It is there. */
static void found(struct kube_discover *d, const struct spec_served *served)
{
	cleanup_free char *text = NULL;

	if (served->kind) {
		tell(d, served, 0, "");
		return;
	}
	if (asprintf(&text, "the cluster serves %s of %s, which kxfs does not know\n%s",
		     served->plural, served->api_version, served->instead) < 0)
		text = NULL;
	tell(d, NULL, -EOPNOTSUPP, text ? text : served->instead);
}

static void refused(struct kube_discover *d, const struct http_reply *reply)
{
	const struct spec_served *served = spec_served_at(d->source, d->i);
	const struct spec_asked asked = {
		.verb = "get",
		.resource = served->api_version,
		.namespace = "",
		.name = "",
	};
	cleanup_free char *text = NULL;
	int err = kube_refusal(reply, &asked, &text);

	tell(d, NULL, err, text ? text : strerror(-err));
}

static void on_reply(void *data, const struct http_reply *reply)
{
	struct kube_discover *d = data;
	const struct spec_served *served = spec_served_at(d->source, d->i);

	d->request = NULL;
	if (!reply->err && (reply->status / 100 == 2 || (reply->status == 403 && served->kind))) {
		found(d, served);
	} else if (!reply->err && (reply->status == 404 || reply->status == 403)) {
		d->i++;
		if (!spec_served_at(d->source, d->i))
			none(d);
		else if (ask(d) < 0)
			tell(d, NULL, -ENOMEM, strerror(ENOMEM));
	} else {
		refused(d, reply);
	}
}

static int ask(struct kube_discover *d)
{
	const struct spec_served *served = spec_served_at(d->source, d->i);
	cleanup_free char *path = NULL;
	struct http_call call = {
		.method = HTTP_GET,
		.deadline_ms = DISCOVER_MS,
		.max_body = 1u << 20,
		.retry = true,
		.done = on_reply,
		.data = d,
	};

	if (asprintf(&path, "/apis/%s", served->api_version) < 0)
		path = NULL;
	call.path = path;
	d->request = path ? http_send(d->http, &call) : NULL;
	return d->request ? 0 : -ENOMEM;
}

struct kube_discover *kube_discover_new(struct http *http, const char *source, kube_discover_fn fn,
					void *data)
{
	struct kube_discover *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	*d = (struct kube_discover){.http = http, .source = source, .fn = fn, .data = data};
	if (ask(d) == 0)
		return d;
	free(d);
	return NULL;
}

void kube_discover_free(struct kube_discover *d)
{
	if (!d)
		return;
	if (d->request)
		http_cancel(d->request);
	free(d);
}
