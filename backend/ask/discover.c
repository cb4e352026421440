/* SPDX-License-Identifier: MIT */
/*
 * To ask for a version means to get its list of resources, which everybody who may use the API can read. Where even
 * that is refused, the first kind is taken, and its watches will say what is wrong.
 */
#include "backend/ask/discover.h"

#include <errno.h>

#include "backend/client/kubeconfig.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"

/* How long a server that can't be reached is asked again, since at boot the network often comes late. */
#define DISCOVER_MS  30000
#define RESOURCE_MAX (1u << 20)

struct discover {
	struct http *http;
	const char *source; /* borrowed */
	discover_fn fn;
	void *data;
	size_t i; /* number of the version that is being asked for */
	struct http_request *request;
};

int discover_connection(const struct backend_config *config, struct spec_connection *ret,
			char **ret_text)
{
	int err = kubeconfig_load(config->kubeconfig, config->work_dir, config->context, ret,
				  ret_text);

	if (!err && *config->namespace)
		text_set(&ret->namespace, "%s", config->namespace);
	if (!err && *config->as)
		text_set(&ret->as, "%s", config->as);
	return err;
}

/* --- one version after the other --- */

static void ask(struct discover *d);

/* The server has none of them: answer with a text for people. */
static void found_none(struct discover *d)
{
	const struct spec_served *first = spec_served_at(d->source, 0);
	struct spec_asked asked = {.verb = "list", .namespace = "", .name = ""};
	cleanup_free char *resource = NULL, *text = NULL;
	int err;

	if (!*d->source) {
		d->fn(d->data, NULL, -EOPNOTSUPP,
		      "the cluster serves no Volcano jobs, AppWrappers, JobSets or Jobs\nIs it the right "
		      "cluster?");
		return;
	}
	resource = spec_asked_resource(first->plural, first->api_version);
	asked.resource = resource;
	err = spec_reply_errno(404, "", 0, &asked, &text);
	d->fn(d->data, NULL, err, text ? text : strerror(-err));
}

static void on_reply(void *data, const struct http_reply *reply)
{
	struct discover *d = data;
	const struct spec_served *served = spec_served_at(d->source, d->i);

	d->request = NULL;
	if (!reply->err && (reply->status / 100 == 2 || (reply->status == 403 && served->kind))) {
		cleanup_free char *text = NULL;

		if (served->kind) {
			d->fn(d->data, served, 0, "");
			return;
		}
		text = text_print("the cluster serves %s of %s, which kxfs does not know\n%s",
				  served->plural, served->api_version, served->instead);
		d->fn(d->data, NULL, -EOPNOTSUPP, text);
	} else if (!reply->err && (reply->status == 404 || reply->status == 403)) {
		d->i++;
		if (spec_served_at(d->source, d->i))
			ask(d);
		else
			found_none(d);
	} else {
		const struct spec_asked asked = {
			.verb = "get",
			.resource = served->api_version,
			.namespace = "",
			.name = "",
		};
		cleanup_free char *text = NULL;
		int err = http_refusal(reply, &asked, &text);

		d->fn(d->data, NULL, err, text ? text : strerror(-err));
	}
}

static void ask(struct discover *d)
{
	const struct spec_served *served = spec_served_at(d->source, d->i);
	cleanup_free char *path = text_print("/apis/%s", served->api_version);
	const struct http_call call = {
		.method = HTTP_GET,
		.path = path,
		.deadline_ms = DISCOVER_MS,
		.max_body = RESOURCE_MAX,
		.retry = true,
		.done = on_reply,
		.data = d,
	};

	d->request = http_send(d->http, &call);
}

struct discover *discover_new(struct http *http, const char *source, discover_fn fn, void *data)
{
	struct discover *d = new0(struct discover);

	*d = (struct discover){.http = http, .source = source, .fn = fn, .data = data};
	ask(d);
	return d;
}

void discover_free(struct discover *d)
{
	if (!d)
		return;
	http_drop(&d->request);
	free(d);
}
