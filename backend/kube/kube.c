/* SPDX-License-Identifier: MIT */
/*
 * The backend for Kubernetes: jobs of one kind or of all kinds, in one namespace. The files:
 *
 *	kinds     finds out which kinds of jobs the cluster serves
 *	watches   watches of jobs, pods, groups, events and queues; they fill the world
 *	world     a cache of these objects (events.h has the events)
 *	capture   follows the logs of containers (follow.h)
 *	folders   the record (jobs/records.h) and the output of a job on disk
 *	commands  the commands that users have written to ctl
 *	publish   puts a new snapshot of each changed job into the store and onto the disk; makes
 *		  all modules forget a deleted job
 *	kueue     the version of Kueue; positions in its queues
 *	samples   CPU and memory of pods
 *	requests  users' requests in progress; submit, control and removal handle them
 *	kube      (this file) creates and owns all these objects, and implements backend_ops
 *	examine   checks a cluster for kxfs doctor, without using the others
 *
 * World, capture, folders and commands do not use each other; publish connects them. Each of them
 * has its own data about a job, found by the job's uid. They report events by callbacks, which only
 * queue the job in publish. All these objects belong to the I/O thread. Work on the pool uses
 * copies. Other threads read the store, and call the functions marked "any thread".
 *
 * At the start kube.c finds the kinds, reads the records, waits for the first lists of jobs and
 * pods, and publishes all jobs. When the mount ends, the backend stops once the group of all
 * operations in progress is empty.
 */
#include <errno.h>

#include "backend/base/print.h"
#include "backend/client/kubeconfig.h"
#include "backend/kube/kinds.h"
#include "backend/kube/kueue.h"
#include "backend/kube/parts.h"
#include "backend/kube/samples.h"
#include "spec/api/object.h"
#include "spec/base/encode.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

struct kube {
	struct kube_parts parts;
	struct spec_connection connection;
	struct credential *credential;
	struct http *http;
	struct kinds *kinds;
	char *user;
	struct group group; /* all operations in progress */
	bool stopping;
};

static struct kube *kube_of(struct backend *b)
{
	return container_of(kube_parts_of(b), struct kube, parts);
}

static bool is_in_kueue(const struct kube *k)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n = world_kinds(k->parts.world, kinds);

	for (size_t i = 0; i < n; i++)
		if (kinds[i]->in_kueue)
			return true;
	return false;
}

/* See output_fetch_fn. */
static void on_open(void *data, const char *id, const char *key, loop_fn done, void *arg)
{
	const struct kube *k = data;
	const struct spec_job *snapshot cleanup_job = store_get_uid(k->parts.b->store, id);

	if (snapshot && !snapshot->history)
		capture_open(k->parts.capture, snapshot, key, done, arg);
	else
		done(arg);
}

static void on_logs_forbidden(void *data, const char *text)
{
	const struct kube *k = data;

	watches_refuse(k->parts.watches, REFUSED_LOGS, "get", "pods/log",
		       "kxfs can open only logs that it has already captured", text);
}

/* --- creation --- */

int kube_connection(const struct backend_config *config, struct spec_connection *ret,
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

const char *kube_own_queue(const struct backend_config *config)
{
	for (size_t i = 0; i < config->n_args; i++)
		if (streq(config->args[i].key, "queue"))
			return config->args[i].value;
	return "";
}

/* The key becomes a file name, so it has a hash instead of the server's address. */
static int kube_key(const struct backend_config *config, char **ret, char **ret_text)
{
	struct spec_connection c cleanup(spec_connection_clear) = {0};
	char digest[65];
	int err = kube_connection(config, &c, ret_text);

	if (err)
		return err;
	spec_sha256(c.server, strlen(c.server), digest);
	*ret = text_print("%s-%s-%.12s", *config->kind ? config->kind : "all", c.namespace, digest);
	return 0;
}

/*
 * Check the run options again, now that the KINDS of the mount are known. An option is wrong if no
 * kind has it, or if a kind that has it does not accept its value.
 */
static int check_options(const struct kube *k, const struct spec_kind *const *kinds, size_t n,
			 char **ret_text)
{
	const struct backend_config *c = &k->parts.b->config;

	for (size_t i = 0; i < c->n_args; i++) {
		const struct spec_pair *arg = &c->args[i];
		bool has = false;

		for (size_t m = 0; m <= n; m++) {
			/* the last round: no kind has the option, so the first kind rejects it */
			const struct spec_kind *kind = kinds[m < n ? m : 0];
			cleanup_free char *text = NULL;
			int err;

			if (m < n ? !spec_option_find(kind->options, arg->key) : has)
				continue;
			has = true;
			err = spec_option_check(kind->name, kind->options, arg->key, arg->value,
						&text);
			if (!err)
				continue;
			*ret_text = text_print("%s\n"
					       "This mount shows %s of %s%s: leave -o %s out.",
					       text ? text : strerror(-err), kind->plural,
					       kind->api_version, n > 1 ? " and other kinds" : "",
					       arg->key);
			return err;
		}
	}
	return 0;
}

/* --- events of kinds --- */

static void on_groups(void *data, const char *json, size_t len)
{
	const struct kube *k = data;

	kueue_served(k->parts.kueue, json, len);
	samples_served(k->parts.samples, json, len);
}

static void on_kinds_changed(void *data)
{
	const struct kube *k = data;

	publish_listed(k->parts.publish);
}

/* --- events of the watches; DATA is the backend --- */

static void on_listed(void *data)
{
	struct kube *k = kube_of(data);

	publish_begin(k->parts.publish);
	removals_soon(k->parts.removals);
}

static void on_unserved(void *data)
{
	kinds_unserved(kube_of(data)->kinds);
}

static void on_loaded(void *data, int err)
{
	struct kube *k = data;
	cleanup_free char *text = NULL;

	if (k->stopping)
		return;
	if (!err) {
		watches_start(k->parts.watches);
		return;
	}
	text = text_print("%s: %s", k->parts.b->config.state_dir, strerror(-err));
	backend_started(k->parts.b, err, text);
}

static void on_found(void *data, int err, const char *text)
{
	struct kube *k = data;
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n = world_kinds(k->parts.world, kinds);
	cleanup_free char *why = NULL;

	if (!err)
		err = check_options(k, kinds, n, &why);
	if (err)
		return backend_started(k->parts.b, err, why ? why : text);
	if (!k->stopping)
		folders_load(k->parts.folders, on_loaded, k);
}

static void make_parts(struct kube *k, struct backend *b)
{
	struct kube_parts *parts = &k->parts;
	const char *namespace = k->connection.namespace;
	struct watches_access access;

	k->user = spec_label_user(b->config.submitter);
	parts->b = b;
	parts->namespace = namespace;
	parts->user = k->user;
	parts->world = world_new(b->loop);
	parts->commands = commands_new(b->loop);
	parts->folders = folders_new(&(struct folders_config){
		.loop = b->loop,
		.store = b->store,
		.records = b->records,
		.output = b->output,
		.state_dir = b->config.state_dir,
		.group = &k->group,
		.passive = b->config.passive,
	});
	parts->capture = capture_new(&(struct capture_config){
		.loop = b->loop,
		.http = k->http,
		.output = b->output,
		.namespace = namespace,
		.archives = b->config.archives,
		.forbidden = on_logs_forbidden,
		.data = k,
	});
	parts->publish = publish_new(&(struct publish_config){
		.loop = b->loop,
		.store = b->store,
		.world = parts->world,
		.folders = parts->folders,
		.capture = parts->capture,
		.commands = parts->commands,
		.namespace = namespace,
		.state_dir = b->config.state_dir,
		.group = &k->group,
		.user = k->user,
		.mode = b->config.capture,
	});
	parts->watches = watches_new(&(struct watches_config){
		.loop = b->loop,
		.http = k->http,
		.world = parts->world,
		.publish = parts->publish,
		.namespace = namespace,
		.selector = b->config.selector,
		.user = b->config.mine ? k->user : "",
		.own_queue = kube_own_queue(&b->config),
		.events = {on_listed, backend_started, on_unserved, b},
	});
	access = (struct watches_access){
		.loop = b->loop,
		.http = k->http,
		.world = parts->world,
		.watches = parts->watches,
		.namespace = namespace,
	};
	k->kinds = kinds_new(&access, b->config.kinds, b->config.kind,
			     &(struct kinds_events){on_groups, on_found, on_kinds_changed, k});
	parts->kueue = kueue_new(&access);
	parts->samples = samples_new(&access, parts->publish);
	parts->requests = requests_new(b->loop, k->http, &k->group, namespace);
	parts->removals = removals_new(b, parts->folders, parts->capture, parts->publish);
}

static void kube_fini(struct backend *b)
{
	struct kube *k = b->impl ? kube_of(b) : NULL;

	if (!k)
		return;
	removals_free(k->parts.removals);
	requests_free(k->parts.requests);
	publish_free(k->parts.publish);
	kinds_free(k->kinds);
	watches_free(k->parts.watches);
	kueue_free(k->parts.kueue);
	samples_free(k->parts.samples);
	capture_free(k->parts.capture);
	folders_free(k->parts.folders);
	commands_free(k->parts.commands);
	world_free(k->parts.world);
	http_free(k->http);
	credential_free(k->credential);
	spec_connection_clear(&k->connection);
	free(k->user);
	free(k);
	backend_set_impl(b, NULL);
}

static const char *kube_namespace(struct backend *b)
{
	return kube_parts_of(b)->namespace;
}

/* Runs on the pool. */
static int load_again(void *data, struct spec_connection *ret)
{
	const struct kube *k = data;
	struct backend_config config = k->parts.b->config;
	cleanup_free char *text = NULL;

	config.context = k->connection.context;
	return kube_connection(&config, ret, &text);
}

static int kube_init(struct backend *b, char **ret_text)
{
	struct kube *k = new0(struct kube);
	int err;

	backend_set_impl(b, &k->parts);
	group_init(&k->group, b->loop);
	err = kube_connection(&b->config, &k->connection, ret_text);
	if (!err)
		err = credential_new(b->loop, &k->connection, &k->credential, ret_text);
	if (!err) {
		credential_set_load(k->credential, load_again, k);
		err = http_new(b->loop, &k->connection, k->credential, &k->http, ret_text);
	}
	if (!err) {
		make_parts(k, b);
		http_set_recovered(k->http, watches_retry_now, k->parts.watches);
	}
	if (err) {
		kube_fini(b);
		return err;
	}
	output_set_fetch(b->output, on_open, k);
	return 0;
}

/* --- start and stop --- */

static void kube_start(struct backend *b)
{
	kinds_start(kube_of(b)->kinds);
}

static void on_http_stopped(void *data)
{
	struct kube *k = data;

	group_leave(&k->group);
}

static void kube_stop(struct backend *b)
{
	struct kube *k = kube_of(b);

	k->stopping = true;
	publish_stop(k->parts.publish);
	removals_stop(k->parts.removals);
	kinds_stop(k->kinds);
	kueue_stop(k->parts.kueue);
	samples_stop(k->parts.samples);
	watches_stop(k->parts.watches);
	world_stop(k->parts.world);
	requests_stop(k->parts.requests);
	commands_stop(k->parts.commands);
	capture_stop(k->parts.capture);
	folders_stop(k->parts.folders);
	credential_stop(k->credential);
	group_enter(&k->group);
	http_stop(k->http, on_http_stopped, k);
	group_when_empty(&k->group, backend_stopped, b);
}

/* --- texts --- */

static int kube_text(struct backend *b, const struct spec_job *job, enum backend_text which,
		     char **ret, size_t *ret_len)
{
	if (which == BACKEND_APPDEF) {
		int err = job->own ? record_file_read_rest(b->config.state_dir, spec_job_key(job),
							   false, ret, ret_len)
				   : -ENOENT;

		if (err != -ENOENT || !job->object)
			return err;
		return spec_object_appdef(job->object->text, job->object->len, ret, ret_len);
	}
	if (!job->object)
		return -ENOENT;
	return spec_object_yaml(job->object->text, job->object->len, ret, ret_len);
}

static bool kube_is_whole(struct backend *b)
{
	return publish_is_whole(kube_parts_of(b)->publish);
}

static int kube_events_text(struct backend *b, const struct spec_job *job, char **ret,
			    size_t *ret_len, int64_t *ret_changed)
{
	const struct kube_parts *k = kube_parts_of(b);
	struct events_list events cleanup(events_release) = {0};

	if (!world_has_listed(k->world, WORLD_EVENTS))
		return -ENOENT;
	if (!ret)
		return 0;
	world_events_of(k->world, job->uid, &events);
	spec_event_view_text(events.v, events.n, ret, ret_len, ret_changed);
	return 0;
}

static int64_t kube_stale_since(struct backend *b)
{
	return watches_stale_since(kube_parts_of(b)->watches);
}

static int kube_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n)
{
	const struct kube_parts *k = kube_parts_of(b);

	if (!world_has_listed(k->world, WORLD_QUEUES) &&
	    !world_has_listed(k->world, WORLD_OWN_QUEUE) &&
	    !world_has_listed(k->world, WORLD_LOCAL_QUEUES))
		return -ENOENT;
	*ret = world_queues(k->world, ret_n);
	return 0;
}

/* Return the queue NAME. If Volcano and Kueue both have one, return Volcano's. */
static struct spec_queue_view *kube_queue(struct backend *b, const char *name)
{
	struct world *w = kube_parts_of(b)->world;
	struct spec_queue_view *ret = world_queue(w, WORLD_QUEUES, name);

	return ret ? ret : world_queue(w, WORLD_LOCAL_QUEUES, name);
}

static struct spec_queue_view *kube_cluster_queue(struct backend *b, const char *name)
{
	return world_queue(kube_parts_of(b)->world, WORLD_CLUSTER_QUEUES, name);
}

static void kube_wanted(struct backend *b, enum backend_data which)
{
	if (which == BACKEND_POSITIONS)
		kueue_wanted(kube_parts_of(b)->kueue);
	else
		samples_wanted(kube_parts_of(b)->samples);
}

static char *kube_trouble(struct backend *b)
{
	return http_trouble(kube_of(b)->http);
}

static void kube_info(struct backend *b, FILE *out)
{
	struct kube *k = kube_of(b);

	print_text(out, "server", k->connection.server);
	print_text(out, "context", k->connection.context);
	print_text(out, "namespace", k->connection.namespace);
	kinds_info(k->kinds, out);
	print_text(out, "state", b->config.state_dir);
	if (is_in_kueue(k))
		kueue_info(k->parts.kueue, out);
	samples_info(k->parts.samples, out);
	watches_info(k->parts.watches, out);
	fprintf(out, "passed_over: %zu\n", world_n_passed_over(k->parts.world));
	watches_print_refused(k->parts.watches, out);
}

static void kube_metrics(struct backend *b, FILE *out)
{
	struct kube *k = kube_of(b);
	struct capture_counts logs;
	struct http_counts http;

	http_count(k->http, &http);
	capture_count(k->parts.capture, &logs);
	const struct print_metric metrics[] = {
		{"pods", "gauge", "Pods of the jobs in jobs/", world_n_pods(k->parts.world)},
		{"server_failures_total", "counter", "Requests that failed after all retries",
		 http.failed},
		{"server_retries_total", "counter", "Requests that were retried", http.retried},
		{"server_connections", "gauge", "Connections to the server", http.connections},
		{"watch_events_total", "counter", "Watch events from the server",
		 watches_n_objects(k->parts.watches)},
		{"log_streams", "gauge", "Logs that are followed", logs.streams},
		{"log_streams_waiting", "gauge", "Logs that wait for a slot", logs.waiting},
	};

	print_metrics(out, metrics, array_size(metrics));
	print_metric_head(out, "server_requests_total", "counter",
			  "Requests sent to the server, by the HTTP status of its answer");
	tally_print(http.answers, out, "server_requests_total",
		    (const char *const[]){"verb", "resource", "code"});
	watches_metrics(k->parts.watches, out);
}

const struct backend_ops kube_ops = {
	.key = kube_key,
	.init = kube_init,
	.start = kube_start,
	.start_asks = true,
	.stop = kube_stop,
	.fini = kube_fini,
	.request[BACKEND_SUBMIT] = kube_submit,
	.request[BACKEND_DRY_RUN] = kube_submit,
	.request[BACKEND_CANCEL] = kube_cancel,
	.request[BACKEND_CONTROL] = kube_control,
	.request[BACKEND_FORGET] = kube_forget,
	.text = kube_text,
	.is_whole = kube_is_whole,
	.is_settled = kube_is_settled,
	.trouble = kube_trouble,
	.namespace = kube_namespace,
	.events = kube_events_text,
	.stale_since = kube_stale_since,
	.queues = kube_queues,
	.queue = kube_queue,
	.cluster_queue = kube_cluster_queue,
	.wanted = kube_wanted,
	.info = kube_info,
	.metrics = kube_metrics,
};
