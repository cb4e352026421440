/* SPDX-License-Identifier: MIT */
/*
 * Creates a mount of a fake cluster. The test plays the API server: it stores jobs as they were
 * created, chooses the server's replies, and sends watch events. Everything runs in one thread
 * (fake_net.h).
 */
#pragma once

#include "tests/unit/backend/client/fake_net.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/client/podlog.h"
#include "backend/kube/parts.h"
#include "tests/unit/scratch.h"
#include "tests/unit/table.h"

#define RIG_JOBS "/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs"
#define RIG_MAX	 4096

struct rig_object {
	char *name, *json; /* JSON: the object as the server stores it */
	bool there;
};

static struct {
	char dir[64];
	char kubeconfig[96];
	enum backend_capture capture;
	uint64_t spool_limit;	      /* 0: no limit in practice */
	const struct spec_pair *args; /* a run option of the mount, or NULL */
	bool mine;
	struct backend *b;
	const struct kube_parts *k;
	/* All objects that were ever created. The uid of each is "u-INDEX". */
	struct rig_object objects[RIG_MAX];
	size_t n_objects;
	unsigned version;
	size_t n_answers; /* number of answered user requests */
	int err;	  /* error of the last answered request */
	char text[4096], id[256];
	struct podlog *streams;
} rig;

/* --- log streams: they start immediately, deliver no data, and end when the test says so --- */

struct podlog {
	struct podlog_config config;
	struct podlog *prev, *next;
};

struct podlog *podlog_start(struct podlog_config *config)
{
	struct podlog *p = calloc(1, sizeof(*p));

	p->config = *config;
	free(config->known.bytes);
	free(config->known.lines);
	DL_APPEND(rig.streams, p);
	return p;
}

void podlog_stop(struct podlog *p)
{
	if (!p)
		return;
	DL_DELETE(rig.streams, p);
	free(p);
}

bool podlog_pause(struct podlog *p)
{
	return true;
}

void podlog_resume(struct podlog *p)
{
}

bool podlog_is_unsure(const struct podlog *p)
{
	return false;
}

bool podlog_is_asking(const struct podlog *p)
{
	return false;
}

bool podlog_has_begun(const struct podlog *p)
{
	return true;
}

uint64_t podlog_came(const struct podlog *p)
{
	return 0;
}

uint64_t podlog_came_ms(const struct podlog *p)
{
	return 0;
}

static inline void rig_outcome(struct podlog *p, enum podlog_outcome outcome)
{
	const struct podlog_result result = {.outcome = outcome, .text = "no"};
	struct podlog_config config = p->config;

	podlog_stop(p);
	config.done(config.data, &result);
	fake_run();
}

static inline struct capture_counts rig_logs(void)
{
	struct capture_counts counts;

	capture_count(rig.k->capture, &counts);
	return counts;
}

static inline char *rig_key(const struct podlog *p)
{
	char *key;

	assert_true(asprintf(&key, "%s.%s.%u", p->config.uid, p->config.container,
			     p->config.restart) > 0);
	return key;
}

/* Return the stream of the log KEY, or NULL if there is none. */
static inline struct podlog *rig_stream(const char *key)
{
	struct podlog *p;

	DL_FOREACH(rig.streams, p) {
		cleanup_free char *its = rig_key(p);

		if (streq(its, key))
			return p;
	}
	return NULL;
}

/*
 * Report all of P's log as read to its end. P's run must have ended. If kxfs then requests the rest
 * of the log, report that as read too.
 */
static inline void rig_stream_done(struct podlog *p)
{
	cleanup_free char *key = rig_key(p);

	for (; p; p = rig_stream(key))
		rig_outcome(p, PODLOG_ALL);
}

/* Refuse P's log repeatedly, until it releases its slot. */
static inline void rig_stream_refused(struct podlog *p)
{
	size_t streams = rig_logs().streams;
	cleanup_free char *key = rig_key(p);

	for (rig_outcome(p, PODLOG_REFUSED); rig_logs().streams == streams;
	     rig_outcome(rig_stream(key), PODLOG_REFUSED))
		while (!rig_stream(key))
			assert_true(fake_wait(60000));
}

/* --- start and stop --- */

/* Answer a survey of the kinds: the cluster serves Volcano, and the user may list its jobs. */
static inline void rig_survey(void)
{
	fake_answer(
		fake_find("/apis"), 200,
		"{\"groups\":[{\"versions\":[{\"groupVersion\":\"batch.volcano.sh/v1alpha1\"}]}]}");
	fake_run();
	fake_answer(fake_find(RIG_JOBS "?limit=1"), 200, "{}");
	fake_run();
}

static inline void rig_on_records(void *data, int err, const char *text)
{
	assert_int_equal(err, 0);
	rig.b->up = true;
	output_start(rig.b->output);
	rig.b->ops->start(rig.b);
}

static inline void rig_new(void)
{
	static const struct backend_events events = {0};
	const struct backend_config config = {
		.kinds = test_table_of_kinds(),
		.kind = "volcano",
		.context = "",
		.namespace = "ns",
		.kubeconfig = rig.kubeconfig,
		.as = "",
		.selector = "",
		.args = rig.args,
		.n_args = rig.args ? 1 : 0,
		.mine = rig.mine,
		.capture = rig.capture,
		.state_dir = rig.dir,
		.work_dir = "/",
		.submitter = "ada@login1",
		.grace_ms = 100,
		.spool_limit = rig.spool_limit ? rig.spool_limit : 1u << 30,
		.history_keep = 604800,
	};
	cleanup_free char *text = NULL;

	if (backend_new(NULL, &config, &events, &rig.b, &text) < 0)
		fail_msg("%s", text ? text : "no backend");
	rig.k = kube_parts_of(rig.b);
	records_load(rig.b->records, rig_on_records, NULL);
	fake_run();
	rig_survey();
}

/* Answer the list request of the watch whose path contains PART with ITEMS. */
static inline void rig_list(const char *part, const char *items)
{
	struct http_request *rq = fake_find(part);
	cleanup_free char *page = NULL;

	assert_non_null(rq);
	assert_true(asprintf(&page, "{\"metadata\":{\"resourceVersion\":\"%u\"},\"items\":[%s]}",
			     rig.version, items) > 0);
	fake_answer(rq, 200, page);
	fake_run();
}

/*
 * Confirm the current version to watches that check it after the server was unreachable: the server
 * did not go back to an older version.
 */
static inline void rig_confirm(void)
{
	struct http_request *rq, *next;

	DL_FOREACH_SAFE(fake.requests, rq, next) {
		if (rq->call.metadata)
			fake_answer(rq, 200,
				    "{\"metadata\":{\"resourceVersion\":\"999999\"},"
				    "\"items\":[]}");
	}
	fake_run();
}

static inline void rig_start(const char *jobs, const char *pods)
{
	rig_new();
	rig_list("jobs?limit", jobs);
	rig_list("pods?limit", pods);
	assert_false(rig.b->started.over); /* the start waits for the list of queues */
	rig_list("queues?limit", "");
	assert_true(rig.b->started.over);
	assert_int_equal(rig.b->started.err, 0);
}

/* Stop the backend and run until backend_stop has finished. */
static inline void rig_stop(void)
{
	int over;

	rig.b->up = false;
	rig.b->ops->stop(rig.b);
	fake_run();
	sem_getvalue(&rig.b->stopped.done, &over);
	assert_int_equal(over, 1);
	backend_free(take_ptr(rig.b));
	assert_null(rig.streams);
	assert_null(fake.requests);
}

static inline int rig_setup(void **state)
{
	FILE *f;

	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	rig.version = 100;
	diag_setup(DIAG_DEBUG, false);
	strcpy(rig.dir, "/tmp/kxfs-kube-XXXXXX");
	assert_non_null(mkdtemp(rig.dir));
	snprintf(rig.kubeconfig, sizeof(rig.kubeconfig), "%s/config", rig.dir);
	f = fopen(rig.kubeconfig, "w");
	assert_non_null(f);
	fputs("clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
	      "users: [{name: u, user: {}}]\n"
	      "contexts: [{name: x, context: {cluster: c, user: u, namespace: ns}}]\n"
	      "current-context: x\n",
	      f);
	fclose(f);
	return 0;
}

static inline int rig_teardown(void **state)
{
	if (rig.b)
		rig_stop();
	fake_forget_timers();
	for (size_t i = 0; i < rig.n_objects; i++) {
		free(rig.objects[i].name);
		free(rig.objects[i].json);
	}
	scratch_remove(rig.dir);
	return 0;
}

/* --- watch events --- */

static inline void rig_event(const char *part, const char *type, const char *object)
{
	struct http_request *rq = fake_find(part);
	cleanup_free char *event = NULL;

	assert_non_null(rq);
	assert_true(asprintf(&event, "{\"type\":\"%s\",\"object\":%s}\n", type, object) > 0);
	assert_int_equal(rq->call.bytes(rq->call.data, event, strlen(event)), 0);
}

static inline void rig_job_event(const char *type, const char *object)
{
	rig_event("jobs?watch", type, object);
	fake_run();
}

static inline void rig_pod_event(const char *type, const char *object)
{
	rig_event("pods?watch", type, object);
	fake_run();
}

/* Return a job that somebody else created, with one task "a" of REPLICAS replicas. malloc'ed. */
static inline char *rig_job(const char *name, const char *uid, const char *phase, unsigned replicas)
{
	char *json;

	assert_true(
		asprintf(&json,
			 "{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\","
			 "\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%u\","
			 "\"creationTimestamp\":\"2026-11-21T09:08:40Z\"},\"spec\":{\"tasks\":[{"
			 "\"name\":\"a\",\"replicas\":%u}]},\"status\":{\"state\":{\"phase\":\"%"
			 "s\"}}}",
			 name, uid, ++rig.version, replicas, phase) > 0);
	return json;
}

/*
 * Return pod INDEX of task "a" of the job OWNER. STATE is the JSON of its container's state.
 * malloc'ed.
 */
static inline char *rig_pod(const char *uid, const char *owner, unsigned index, const char *phase,
			    const char *state)
{
	char *json;

	assert_true(
		asprintf(&json,
			 "{\"metadata\":{\"name\":\"pod-%s\",\"uid\":\"%s\",\"resourceVersion\":\"%"
			 "u\","
			 "\"creationTimestamp\":\"2026-11-21T09:08:41Z\",\"annotations\":{"
			 "\"volcano.sh/task-index\":\"%u\",\"volcano.sh/task-spec\":\"a\"},"
			 "\"ownerReferences\":[{\"controller\":true,\"uid\":\"%s\"}]},\"spec\":{"
			 "\"containers\":[{\"name\":\"a\"}]},\"status\":{\"phase\":\"%s\","
			 "\"containerStatuses\":[{\"name\":\"a\",\"restartCount\":0,\"state\":%s}]}"
			 "}",
			 uid, uid, ++rig.version, index, owner, phase, state) > 0);
	return json;
}

#define RIG_RUNNING "{\"running\":{\"startedAt\":\"2026-11-21T09:08:45Z\"}}"
#define RIG_EXIT(code)                                                                             \
	"{\"terminated\":{\"exitCode\":" code ",\"reason\":\"Error\",\"startedAt\":"               \
	"\"2026-11-21T09:08:45Z\",\"finishedAt\":\"2026-11-21T09:08:50Z\"}}"

/* --- the server's side of requests --- */

static inline struct rig_object *rig_object(const char *name)
{
	for (size_t i = 0; i < rig.n_objects; i++)
		if (rig.objects[i].there && strcmp(rig.objects[i].name, name) == 0)
			return &rig.objects[i];
	return NULL;
}

/*
 * Return the text that follows KEY in TEXT, up to the next quote, or "" if TEXT does not contain
 * KEY. malloc'ed.
 */
static inline char *rig_behind(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	at = at ? at + strlen(key) : "";
	return strndup(at, strcspn(at, "\""));
}

static inline struct rig_object *rig_create(const char *body)
{
	static const char key[] = "\"metadata\":{";
	const char *at = strstr(body, key);
	struct rig_object *o = &rig.objects[rig.n_objects];

	assert_non_null(at);
	assert_true(rig.n_objects < RIG_MAX);
	o->name = rig_behind(at, "\"name\":\"");
	assert_true(asprintf(&o->json,
			     "%.*s\"uid\":\"u-%zu\",\"resourceVersion\":\"%u\","
			     "\"creationTimestamp\":\"2026-11-21T09:08:40Z\",%s",
			     (int)(at - body + (int)strlen(key)), body, rig.n_objects,
			     ++rig.version, at + strlen(key)) > 0);
	o->there = true;
	rig.n_objects++;
	return o;
}

#define RIG_STATUS(code, reason, message)                                                          \
	"{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason "\",\"message\":\"" message  \
	"\",\"details\":{\"name\":\"x\",\"kind\":\"jobs\"}}"

#define RIG_DELETED "{\"kind\":\"Status\",\"status\":\"Success\"}"
#define RIG_PAGE    "<html><head><title>Sign in</title></head><body>Please log in</body></html>"

/*
 * Perform the request RQ on the stored objects and return the HTTP status. *RET_BODY is borrowed.
 */
static inline int rig_act(const struct http_request *rq, const char **ret_body)
{
	const char *slash = strrchr(rq->path, '/');
	cleanup_free char *name = NULL;
	struct rig_object *o;

	if (rq->call.method == HTTP_POST) {
		name = rig_behind(strstr(rq->body, "\"metadata\":{"), "\"name\":\"");
		*ret_body = RIG_STATUS("409", "AlreadyExists", "it exists");
		if (rig_object(name))
			return 409;
		*ret_body = rig_create(rq->body)->json;
		return 201;
	}
	o = rig_object(slash + 1);
	*ret_body = RIG_STATUS("404", "NotFound", "not found");
	if (!o)
		return 404;
	*ret_body = o->json;
	if (rq->call.method == HTTP_DELETE)
		o->there = false;
	return 200;
}

/* Return the oldest request that is neither a list nor a watch, or NULL if there is none. */
static inline struct http_request *rig_request(void)
{
	struct http_request *rq;

	DL_FOREACH(fake.requests, rq)
		if (!strstr(rq->path, "?limit") && !strstr(rq->path, "?watch"))
			return rq;
	return NULL;
}

/* Let time pass until rig_request returns a request. */
static inline void rig_until_request(void)
{
	while (!rig_request())
		assert_true(fake_wait(30000));
}

/* Perform the oldest request, and answer it as a healthy server does. */
static inline void rig_serve(void)
{
	struct http_request *rq = rig_request();
	const char *body;
	int status;

	assert_non_null(rq);
	status = rig_act(rq, &body);
	fake_answer(rq, status, body);
	fake_run();
}

static inline void rig_answer(int status, const char *body)
{
	assert_non_null(rig_request());
	fake_answer(rig_request(), status, body);
	fake_run();
}

/* Break the connection of the oldest request. If ACTED, the server performs the request first. */
static inline void rig_lose(bool acted)
{
	const char *body;

	assert_non_null(rig_request());
	if (acted)
		(void)rig_act(rig_request(), &body);
	fake_break(rig_request(), -EIO, true);
	fake_run();
}

/* --- the user's side --- */

static inline void rig_reply(void *data, const struct backend_result *result)
{
	rig.n_answers++;
	rig.err = result->err;
	snprintf(rig.text, sizeof(rig.text), "%s", result->text);
	snprintf(rig.id, sizeof(rig.id), "%s", result->id);
}

#define RIG_APP                                                                                    \
	"name: app\nscheduler_args: {queue: q}\n"                                                  \
	"roles: [{name: a, image: i, entrypoint: sh, resource: {cpu: 1, memMB: 1, gpu: 0}}]\n"
#define RIG_READY                                                                                  \
	"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: mine}\n"               \
	"spec: {tasks: []}\n"

static inline void rig_submit(const char *text)
{
	const struct backend_submission s = {.file = "app.yaml",
					     .text = text,
					     .len = strlen(text),
					     .submitter = "ada@login1"};

	rig.n_answers = 0;
	backend_submit(rig.b, &s, rig_reply, NULL);
	fake_run();
}

static inline void rig_cancel(const char *id, const char *uid)
{
	rig.n_answers = 0;
	backend_cancel(rig.b, id, uid, rig_reply, NULL);
	fake_run();
}

/*
 * Return the text of the record of the job whose id is ID, or NULL if it has none. malloc'ed. Copy
 * the record's key to KEY, which has 64 bytes.
 */
static inline char *rig_record(const char *id, char *key)
{
	cleanup_free char *path = text_print("%s/jobs", rig.dir);
	cleanup_free char *json = text_print("\"id\":\"%s\"", id);
	cleanup_dir DIR *dir = opendir(path);
	struct dirent *e;

	strcpy(key, "none");
	while (dir && (e = readdir(dir))) {
		cleanup_free char *file = text_print("%s/%s", path, e->d_name), *text = NULL;
		size_t len;

		if (e->d_name[0] == '.' || file_read(file, 64u << 20, &text, &len) ||
		    !strstr(text, json))
			continue;
		snprintf(key, 64, "%.63s", e->d_name);
		return take_ptr(text);
	}
	return NULL;
}

static inline const char *rig_record_key(const char *id)
{
	static char key[64];

	free(rig_record(id, key));
	return key;
}

static inline bool rig_has_record(const char *id)
{
	return !streq(rig_record_key(id), "none");
}

static inline void rig_count_job(void *data, const struct world_job *job)
{
	size_t *n = data;

	(*n)++;
}

/*
 * Return the number of known jobs, including those that are gone but whose output is still being
 * read.
 */
static inline size_t rig_known_jobs(void)
{
	size_t n = 0;

	world_each(rig.k->world, rig_count_job, &n);
	return n;
}

static inline void rig_count_record(void *data, struct record *r)
{
	size_t *n = data;

	(*n)++;
}

static inline size_t rig_records(void)
{
	size_t n = 0;

	records_each(rig.b->records, rig_count_record, &n);
	return n;
}

/*
 * Assert that the states of job ID in PLACE are STATE. If STATE is NULL, assert that PLACE does not
 * contain the job.
 */
static inline void rig_expect(enum backend_place place, const char *id, const char *state)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, place, id);

	if (!state)
		assert_null(job);
	else
		assert_non_null(job);
	if (job)
		assert_string_equal(spec_state_name(job->state), state);
}

/* --- changes of jobs and pods; the logs of the job "one" --- */

static inline void story_pod(const char *type, const char *uid, const char *owner, unsigned index,
			     const char *phase, const char *state)
{
	cleanup_free char *json = rig_pod(uid, owner, index, phase, state);

	rig_pod_event(type, json);
}

static inline void story_job(const char *type, const char *name, const char *uid, const char *phase)
{
	cleanup_free char *json = rig_job(name, uid, phase, 2);

	rig_job_event(type, json);
}

/* Start a job of somebody else that is captured and prints output. */
static inline void story_run(const char *name, const char *uid, const char *pod)
{
	story_job("ADDED", name, uid, "Running");
	story_pod("ADDED", pod, uid, 0, "Running", RIG_RUNNING);
}

/* Start a mount that captures all jobs, and then a running job "one". */
static inline void story_begin(void)
{
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	story_run("one", "u1", "p1");
}

/* Send a running pod whose container was restarted RESTARTS times, which is a digit. */
static inline void story_restarted_pod(const char *type, const char *uid, char restarts)
{
	cleanup_free char *json = rig_pod(uid, "u1", 0, "Running", RIG_RUNNING);
	char *at = strstr(json, "\"restartCount\":0");

	at[strlen("\"restartCount\":")] = restarts;
	rig_pod_event(type, json);
}

static inline size_t story_follows(void)
{
	struct podlog *f;
	size_t n;

	DL_COUNT(rig.streams, f, n);
	return n;
}

/* Return how many logs of "one" wait for a slot, according to its status. */
static inline size_t story_waiting(void)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");
	size_t n = 0;

	for (size_t i = 0; i < job->n_replicas; i++)
		for (size_t j = 0; j < job->replicas[i].n_logs; j++)
			n += job->replicas[i].logs[j].waiting;
	return n;
}

/* Return the number of gaps of the first replica of "one", according to its status. */
static inline uint64_t story_gaps(void)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");
	uint64_t n = 0;

	if (!job)
		job = backend_job(rig.b, BACKEND_HISTORY, "one");
	assert_non_null(job);
	for (size_t j = 0; j < job->replicas[0].n_logs; j++)
		n += job->replicas[0].logs[j].gap;
	return n;
}
