/* SPDX-License-Identifier: MIT */
/*
 * The Kubernetes implementation: jobs of one kind in one namespace. This file is its face to backend.c:
 * life, texts, info and metrics; kube.h says what the other files do.
 */
#include "backend/kube.h"

#include <errno.h>

#include "backend/kube_discover.h"
#include "backend/kube_request.h"
#include "backend/kubeconfig.h"
#include "backend/print.h"
#include "spec/limits.h"
#include "spec/object.h"
#include "spec/sha256.h"
#include "spec/status.h"

/* --- life --- */

static int replace(char **s, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*s);
	*s = copy;
	return 0;
}

int kube_connection(const struct backend_config *config, struct spec_connection *ret,
		    char **ret_text)
{
	int err = kubeconfig_load(config->kubeconfig, config->context, ret, ret_text);

	if (!err && *config->namespace)
		err = replace(&ret->namespace, config->namespace);
	if (!err && *config->as)
		err = replace(&ret->as, config->as);
	return err;
}

/* The server's name in it would be no file name, and two servers may differ in their path alone. */
static int kube_key(const struct backend_config *config, char **ret, char **ret_text)
{
	struct spec_connection c cleanup(spec_connection_clear) = {0};
	char digest[65];
	int err = kube_connection(config, &c, ret_text);

	if (err)
		return err;
	spec_sha256(c.server, strlen(c.server), digest);
	if (asprintf(ret, "%s-%s-%.12s", config->kind, c.namespace, digest) < 0)
		return -ENOMEM;
	return 0;
}

/* The options of the mount were those of all kinds that its name may mean. */
static int check_options(const struct kube *k, char **ret_text)
{
	const struct backend_config *c = &k->b->config;
	cleanup_free char *text = NULL;
	int err = 0;

	for (size_t i = 0; i < c->n_args && !err; i++)
		err = spec_option_check(k->kind, c->args[i].key, c->args[i].value, &text);
	if (err &&
	    asprintf(ret_text, "%s\nThe jobs of this mount are %s of %s: leave that option out.",
		     text ? text : strerror(-err), k->kind->plural, k->kind->api_version) < 0)
		*ret_text = NULL;
	return err;
}

/* Its jobs are of KIND. */
static int set_kind(struct kube *k, const struct spec_kind *kind, char **ret_text)
{
	const char *namespace = k->connection.namespace;

	k->kind = kind;
	if (asprintf(&k->jobs_path, "/apis/%s/namespaces/%s/%s", kind->api_version, namespace,
		     kind->plural) < 0)
		k->jobs_path = NULL;
	if (asprintf(&k->pods_path, "/api/v1/namespaces/%s/pods", namespace) < 0)
		k->pods_path = NULL;
	if (asprintf(&k->resource, "%s.%.*s", kind->plural, (int)strcspn(kind->api_version, "/"),
		     kind->api_version) < 0)
		k->resource = NULL;
	return k->jobs_path && k->pods_path && k->resource ? check_options(k, ret_text) : -ENOMEM;
}

static void kube_fini(struct backend *b)
{
	struct kube *k = kube_of(b);

	if (!k)
		return;
	keep_free(k->keep);
	kube_jobs_free(k);
	kube_extra_free(k);
	kube_own_free(k);
	http_free(k->http);
	credential_free(k->credential);
	spec_connection_clear(&k->connection);
	free(k->jobs_path);
	free(k->pods_path);
	free(k->resource);
	free(k->stale_text);
	free(k->text_jobs);
	free(k->text_pods);
	free(k);
	b->impl = NULL;
}

/* Pool: the same as the kubeconfig has it now, relative to where kxfs was started. */
static int load_again(void *data, struct spec_connection *ret)
{
	const struct kube *k = data;
	struct backend_config config = k->b->config;
	cleanup_free char *path = NULL, *text = NULL;

	config.context = k->connection.context;
	if (*config.kubeconfig && *config.kubeconfig != '/') {
		if (asprintf(&path, "%s/%s", config.work_dir, config.kubeconfig) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		config.kubeconfig = path;
	}
	return kube_connection(&config, ret, &text);
}

static int kube_init(struct backend *b, char **ret_text)
{
	struct kube *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	b->impl = k;
	k->b = b;
	k->lock = (struct lock)LOCK_INIT;
	k->keep = keep_new(b, &kube_keep_ops);
	k->events = events_new();
	err = k->keep && k->events ? kube_connection(&b->config, &k->connection, ret_text)
				   : -ENOMEM;
	/* Where the name may mean several, the cluster is asked. */
	if (!err && !spec_served_at(b->config.kind, 1))
		err = set_kind(k, spec_kind_find(b->config.kind), ret_text);
	if (!err)
		err = credential_new(b->loop, &k->connection, &k->credential, ret_text);
	if (!err) {
		credential_set_load(k->credential, load_again, k);
		err = http_new(b->loop, &k->connection, k->credential, &k->http, ret_text);
	}
	if (err) {
		kube_fini(b);
		return err;
	}
	spool_set_fetch(b->spool, kube_logs_open, k);
	return 0;
}

static void on_loaded(struct kube *k, int err)
{
	cleanup_free char *text = NULL;

	k->loading = false;
	if (k->stopping) {
		kube_check_stopped(k);
		return;
	}
	if (!err)
		err = kube_watch_start(k);
	if (!err)
		return;
	if (asprintf(&text, "%s: %s", k->b->config.state_dir, strerror(-err)) < 0)
		text = NULL;
	kube_started(k, err, text);
}

static void load(struct kube *k)
{
	int err;

	k->loading = true;
	err = kube_files_load(k, on_loaded);
	if (err)
		on_loaded(k, err);
}

static void on_discovered(void *data, const struct spec_served *served, int err, const char *text)
{
	struct kube *k = data;
	cleanup_free char *why = NULL;

	kube_discover_free(take_ptr(k->discover));
	if (!err)
		err = set_kind(k, served->kind, &why);
	if (err) {
		kube_started(k, err, why ? why : text);
		return;
	}
	diag(DIAG_INFO, "the cluster serves %s of %s", served->plural, served->api_version);
	load(k);
}

static void kube_start(struct backend *b)
{
	struct kube *k = kube_of(b);

	if (k->kind) {
		load(k);
		return;
	}
	k->discover = kube_discover_new(k->http, b->config.kind, on_discovered, k);
	if (!k->discover)
		kube_started(k, -ENOMEM, strerror(ENOMEM));
}

void kube_started(struct kube *k, int err, const char *text)
{
	k->started = true;
	backend_started(k->b, err, text);
}

void kube_check_stopped(struct kube *k)
{
	if (!k->stopping || k->stopped || !k->http_stopped || k->ops || k->loading || k->keeping ||
	    k->keep_list)
		return;
	k->stopped = true;
	backend_stopped(k->b);
}

static void on_http_stopped(void *data)
{
	struct kube *k = data;

	k->http_stopped = true;
	kube_check_stopped(k);
}

static void kube_stop(struct backend *b)
{
	struct kube *k = kube_of(b);

	k->stopping = true;
	keep_free(take_ptr(k->keep));
	kube_discover_free(take_ptr(k->discover));
	watch_free(take_ptr(k->watch_jobs));
	watch_free(take_ptr(k->watch_pods));
	kube_extra_stop(k);
	kube_ops_stop(k);
	for (struct kube_job *job = k->jobs; job; job = job->hh.next) {
		kube_command_gone(job);
		kube_logs_free(job);
	}
	kube_keep_stop(k);
	credential_stop(k->credential);
	http_stop(k->http, on_http_stopped, k);
}

/* --- texts --- */

static int appdef(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len)
{
	cleanup_free char *path = file_path(b->config.state_dir, job->id, "app.yaml");
	int err = path && job->own ? file_read(path, SPEC_MAX_FILE, ret, ret_len) : -ENOENT;

	if (err != -ENOENT || !job->object)
		return err;
	return spec_object_appdef(job->object->text, job->object->len, ret, ret_len);
}

static int kube_text(struct backend *b, const struct spec_job *job, enum backend_text which,
		     char **ret, size_t *ret_len)
{
	if (which == BACKEND_APPDEF)
		return appdef(b, job, ret, ret_len);
	if (!job->object)
		return -ENOENT;
	return spec_object_yaml(job->object->text, job->object->len, ret, ret_len);
}

char *kube_offline(struct kube *k)
{
	int err = k->err_jobs;

	if (err != -EHOSTUNREACH && err != -EIO && err != -ETIMEDOUT)
		return NULL;
	return strdup(k->text_jobs ? k->text_jobs : strerror(-err));
}

static int kube_info(struct backend *b, FILE *out)
{
	struct kube *k = kube_of(b);
	cleanup_free char *why = NULL;
	char since[32];
	int64_t stale;

	{
		lock_scope(&k->lock);
		stale = k->stale_since;
		why = k->stale_text ? strdup(k->stale_text) : NULL;
	}
	spec_time_text(stale, since);
	print_text(out, "server", k->connection.server);
	print_text(out, "context", k->connection.context);
	print_text(out, "namespace", k->connection.namespace);
	if (k->kind)
		print_text(out, "api", k->kind->api_version);
	print_text(out, "state", b->config.state_dir);
	fprintf(out, "connected: %s\n", stale ? "false" : "true");
	if (stale) {
		fprintf(out, "stale_since: %s\n", since);
		print_text(out, "stale_reason", why ? why : "");
	}
	kube_extra_info(k, out);
	return ferror(out) ? -ENOMEM : 0;
}

const struct backend_ops kube_ops = {
	.key = kube_key,
	.init = kube_init,
	.start = kube_start,
	.stop = kube_stop,
	.fini = kube_fini,
	.submit = kube_submit,
	.dry_run = kube_submit,
	.cancel = kube_cancel,
	.control = kube_control,
	.forget = kube_forget,
	.text = kube_text,
	.events = kube_events_text,
	.queues = kube_queues,
	.queue = kube_queue,
	.info = kube_info,
	.metrics = kube_metrics,
};
