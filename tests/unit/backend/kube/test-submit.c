/* SPDX-License-Identifier: MIT */
/*
 * A submission, step by step. The test plays the request that goes to the server, the folders, the disk, the world, and
 * publish, which shows the job; what they are asked to do is noted in its order.
 */
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/noted.h"

#include <errno.h>

#include "backend/base/diag.h"
#include "backend/kube/folder_files.h"
#include "backend/kube/parts.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/kinds/kinds.h"
#include "tests/unit/table.h"

#define UUID "00000001-0000-4000-8000-000000000000"
#define APP                                                                                        \
	"name: app\nscheduler_args: {queue: q}\nroles: [{name: a, image: i, entrypoint: sh, "      \
	"resource: {cpu: 1, memMB: 1, gpu: 0}}]\n"
#define APP_TTL                                                                                    \
	"name: app\nscheduler_args: {queue: q, ttl: 20s}\nroles: [{name: a, image: i, "            \
	"entrypoint: sh, resource: {cpu: 1, memMB: 1, gpu: 0}}]\n"
#define READY                                                                                      \
	"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: mine}\n"               \
	"spec: {tasks: []}\n"
#define WRAPPER                                                                                    \
	"apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: mine}\n"   \
	"spec: {components: [{template: {kind: Pod, metadata: {name: inner}}}]}\n"
#define STATUS(code, reason)                                                                       \
	"{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason                              \
	"\",\"message\":\"no\",\"details\":{\"name\":\"x\",\"kind\":\"jobs\"}}"
#define TAKEN	STATUS("409", "AlreadyExists")
#define NOBODY	STATUS("404", "NotFound")
#define INVALID STATUS("422", "Invalid")
#define JOB_NAMED                                                                                  \
	"{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",\"metadata\":{\"name\":"   \
	"\"%s\"}}"
#define PAGE "<html><head><title>Sign in</title></head><body>Please log in</body></html>"

static struct {
	struct backend b;
	struct kube_parts k;
	const struct spec_kind *kind;
	/* The first of the mount's kinds; NULL: it has only KIND. */
	const struct spec_kind *first_kind;
	char *backend; /* that the request names */
	struct backend_request rq;
	struct request *r; /* NULL: it was answered */
	char *file;	   /* NULL: it is app.yaml */
	char name[256];	   /* of the job, as it was last tried */
	char first[256];   /* as it was first tried */
	/* The request to the server that is under way, if CALLED. */
	struct http_call call;
	bool called;
	char *body;    /* of the last POST */
	char path[64]; /* the query of the last POST */
	bool waits;    /* for the pause before the next try */
	/* These are what the other parts say. */
	bool stopping, offline, over, held;
	bool seen;	       /* the watch has brought the job */
	struct folder earlier; /* the folder that has the name; all 0: none has */
	uint64_t age;	       /* for how many ms the submission has been tried */
	int files_err;
	unsigned n_taken; /* so many names are taken before one is free */
	struct world_job job;
	struct spec_job_view view; /* of JOB */
	bool unknown;		   /* the world does not learn of the job from the reply */
	/* The answer to the submission. */
	int err;
	char text[2048];
} rig;

/* --- requests.h --- */

void request_begin(struct requests *all, struct request *r, struct backend_request *rq,
		   const struct request_ops *ops)
{
	r->ops = ops;
	r->rq = rq;
	rig.r = r;
}

uint64_t request_age(const struct request *r)
{
	return rig.age;
}

void request_set_kind(struct request *r, const struct spec_kind *kind)
{
	r->kind = kind;
}

void request_set_working(struct request *r, bool working)
{
	r->working = working;
}

void request_set_unclear(struct request *r, bool unclear)
{
	r->unclear = unclear;
}

bool requests_are_stopping(const struct requests *all)
{
	return rig.stopping;
}

struct spec_asked request_asked(const struct request *r, const char *verb, const char *name)
{
	return (struct spec_asked){.verb = verb,
				   .resource = "jobs.batch.volcano.sh",
				   .namespace = "ns",
				   .name = name};
}

void request_call(struct request *r, const char *id, const char *query,
		  const struct http_call *call)
{
	assert_false(r->working || rig.called);
	rig.call = *call;
	rig.called = true;
	if (call->method == HTTP_POST) {
		assert_null(id);
		free(rig.body);
		rig.body = strndup(call->body, call->len);
		snprintf(rig.path, sizeof(rig.path), "%s", query);
	} else {
		assert_string_equal(id, rig.name);
	}
	note(call->method == HTTP_POST ? "POST" : "GET");
}

void request_replied(struct request *r)
{
	rig.called = false;
}

bool request_again(struct request *r, unsigned wait_ms)
{
	r->backoff.failures++;
	rig.waits = !rig.over;
	return rig.waits;
}

static void answered(struct request *r, int err)
{
	assert_false(rig.called || rig.waits);
	rig.err = err;
	note("answer");
	rig.r = NULL;
	r->ops->free(r);
}

void request_answer(struct request *r, int err, const char *id, const char *text)
{
	snprintf(rig.text, sizeof(rig.text), "%s", text ? text : "");
	if (!err)
		assert_string_equal(id, rig.name);
	else
		assert_null(id);
	answered(r, err);
}

void request_answer_dry_run(struct request *r, const struct backend_made *made)
{
	snprintf(rig.text, sizeof(rig.text), "%s", made->manifest);
	snprintf(rig.name, sizeof(rig.name), "%s", made->id);
	assert_string_equal(made->backend, "volcano");
	assert_string_equal(made->namespace, "ns");
	answered(r, 0);
}

void backend_answer(struct backend_request *rq, int err, const char *id, const char *text)
{
	assert_ptr_equal(rq, &rig.rq);
	assert_null(id);
	rig.err = err;
	snprintf(rig.text, sizeof(rig.text), "%s", text);
	note("answer");
}

/* --- folders.h, folder_files.h --- */

int folders_reserve(struct folders *f, const char *id, const char *submission)
{
	assert_string_equal(submission, UUID);
	snprintf(rig.name, sizeof(rig.name), "%s", id);
	if (!*rig.first)
		snprintf(rig.first, sizeof(rig.first), "%s", id);
	if (rig.n_taken > 0) {
		rig.n_taken--;
		return -EEXIST;
	}
	note("reserve");
	return 0;
}

int folders_resume(struct folders *f, const char *id, const char *submission)
{
	assert_string_equal(id, rig.name);
	note("resume");
	return streq(rig.earlier.submission, submission) ? 0 : -EEXIST;
}

void folders_release(struct folders *f, const char *id)
{
	assert_string_equal(id, rig.name);
	note("release");
}

static struct {
	folders_fn done;
	void *data;
} removing;

static void removing_done(void *data)
{
	removing.done(removing.data, 0);
}

void folders_remove(struct folders *f, const char *id, folders_fn done, void *data)
{
	assert_string_equal(id, rig.name);
	assert_true(rig.r->working); /* it is not answered meanwhile */
	note("remove");
	removing.done = done;
	removing.data = data;
	loop_work(NULL, fake_nothing, removing_done, NULL);
}

const struct folder *folders_find(const struct folders *f, const char *id)
{
	assert_string_equal(id, rig.name);
	return rig.earlier.submission ? &rig.earlier : NULL;
}

bool folders_was_seen(const struct folders *f, const char *id, const char *submission)
{
	assert_string_equal(id, rig.name);
	assert_string_equal(submission, UUID);
	return rig.seen;
}

void folders_submitted(struct folders *f, const char *id, const char *uid)
{
	assert_string_equal(id, rig.name);
	note("submitted %s", *uid ? uid : "?");
}

void folders_doubt(struct folders *f, const char *id, const char *file, uint64_t ms)
{
	assert_string_equal(id, rig.name);
	assert_string_equal(file, rig.rq.held ? "" : rig.rq.file);
	assert_int_equal(ms, REQUEST_FIND_OUT_MS);
	note("doubt");
}

int folder_files_submit(const char *state_dir, const struct folder_submission *s)
{
	int err = rig.files_err;

	assert_string_equal(state_dir, "/state");
	assert_string_equal(s->id, rig.name);
	assert_string_equal(s->uuid, UUID);
	assert_string_equal(s->file, rig.rq.held ? "" : rig.rq.file);
	assert_string_equal(s->text, rig.rq.text);
	assert_int_equal(s->readable, 0040);
	note("folder");
	rig.files_err = 0;
	return err;
}

int folder_files_resume(const char *state_dir, const struct folder_submission *s, int64_t time)
{
	int err = rig.files_err;

	assert_string_equal(state_dir, "/state");
	assert_string_equal(s->id, rig.name);
	assert_string_equal(s->text, rig.rq.text);
	assert_int_equal(time, rig.earlier.written);
	note("text");
	rig.files_err = 0;
	return err;
}

/* --- world.h, publish.h, watches.h --- */

size_t world_kinds(const struct world *w, const struct spec_kind *ret[SPEC_MAX_KINDS])
{
	size_t n = 0;

	if (rig.first_kind)
		ret[n++] = rig.first_kind;
	ret[n++] = rig.kind;
	return n;
}

enum world_sort world_sort_of(const struct world *w, const struct spec_kind *kind)
{
	assert_ptr_equal(kind, rig.kind);
	return WORLD_JOBS;
}

const struct world_job *world_reply(struct world *w, enum world_sort sort, const char *json,
				    size_t len, const char *watched)
{
	assert_int_equal(sort, WORLD_JOBS);
	assert_string_equal(watched, "7");
	assert_true(strlen(json) == len);
	return rig.unknown ? NULL : &rig.job;
}

void publish_now(struct publish *p, const struct world_job *job)
{
	assert_ptr_equal(job, &rig.job);
	note("show");
}

void publish_doubt(struct publish *p)
{
}

const char *watches_version(const struct watches *w, enum world_sort sort)
{
	return "7";
}

void watches_replied(struct watches *w, enum world_sort sort, const char *version)
{
	assert_int_equal(sort, WORLD_JOBS);
	assert_ptr_equal(version, rig.view.resource_version);
}

void watches_doubt(struct watches *w, enum world_sort sort)
{
	assert_int_equal(sort, WORLD_JOBS);
	note("doubt");
}

char *watches_offline(struct watches *w)
{
	return rig.offline ? text_copy("the server is away") : NULL;
}

/* --- the test's side --- */

static int setup(void **state)
{
	static const struct store_events no_events;
	static char uid[] = "u1", version[] = "9";

	memset(&rig, 0, sizeof(rig));
	forget_noted();
	memset(&fake, 0, sizeof(fake));
	diag_setup(DIAG_DEBUG, false);
	rig.b.config.kinds = test_table_of_kinds();
	rig.b.config.kind = "volcano";
	rig.b.config.state_dir = "/state";
	rig.b.config.home = "/home/ada";
	rig.b.store = store_new(&no_events);
	rig.b.impl = &rig.k;
	rig.kind = &spec_volcano;
	rig.k = (struct kube_parts){
		.b = &rig.b,
		.namespace = "ns",
		.user = "ada",
	};
	rig.view.resource_version = version;
	rig.job.uid = uid;
	rig.job.view = &rig.view;
	return 0;
}

static int teardown(void **state)
{
	assert_null(rig.r);
	assert_null(fake.pool);
	free(rig.body);
	store_free(rig.b.store);
	return 0;
}

static void begin(const char *text, enum backend_request_kind kind)
{
	static char usual[] = "app.yaml", submitter[] = "ada@login1", uuid[] = UUID;

	rig.rq = (struct backend_request){
		.b = &rig.b,
		.kind = kind,
		.file = rig.file ? rig.file : usual,
		.text = (char *)(uintptr_t)text,
		.len = strlen(text),
		.submitter = submitter,
		.submission = uuid,
		.readable = 0040,
		.held = rig.held,
		.backend = rig.backend,
	};
	forget_noted();
	rig.first[0] = '\0';
	rig.err = 1;
	kube_submit(&rig.b, &rig.rq);
	fake_run();
}

/* Begin a submission of TEXT, up to its first POST. */
static void submit(const char *text)
{
	begin(text, BACKEND_SUBMIT);
	assert_done("reserve, folder, POST");
	assert_true(rig.r->unclear); /* should the mount end now */
}

static void reply(const struct http_reply *reply)
{
	struct http_reply r = *reply;

	r.text = r.text ? r.text : "";
	r.body = r.body ? r.body : "";
	r.len = strlen(r.body);
	assert_true(rig.called);
	rig.call.done(rig.call.data, &r);
	fake_run();
}

static void answer(int status, const char *body)
{
	reply(&(struct http_reply){.status = status, .body = body});
}

/* Lose the reply. */
static void lose(void)
{
	reply(&(struct http_reply){.err = -EIO, .sent = true, .text = "it broke"});
}

/* Let the pause end. */
static void go_on(void)
{
	assert_true(rig.waits);
	rig.waits = false;
	rig.r->ops->send(rig.r);
	fake_run();
}

static void assert_answer(int err, const char *said)
{
	assert_null(rig.r);
	assert_int_equal(rig.err, err);
	assert_non_null(strstr(rig.text, said));
	if (*said)
		assert_int_equal(rig.text[strlen(rig.text) - 1], '\n');
}

/* The watch has brought a job with the name that is tried, and of SUBMISSION. */
static void put_job(const char *submission)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, rig.name);
	spec_set(&job->uid, submission);
	spec_set(&job->submission, submission);
	store_put(rig.b.store, job);
}

/* --- what is launched --- */

static void test_launched(void **state)
{
	submit(APP);
	assert_string_equal(rig.path, "?fieldManager=kxfs&fieldValidation=Strict");
	assert_non_null(strstr(rig.body, UUID));
	answer(201, rig.body);
	assert_done("submitted u1, show, answer");
	assert_answer(0, "");
	/* The watch should have told of this job before the reply came: the server is asked whether it was set back. */
	rig.unknown = true;
	submit(APP);
	answer(201, rig.body);
	assert_done("submitted ?, doubt, answer");
	assert_answer(0, "");
}

/* The reply is lost, the same request is sent again, and the name is taken: by our own job. */
static void test_lost(void **state)
{
	cleanup_free char *first = NULL;

	submit(APP);
	first = text_copy(rig.body);
	lose();
	assert_true(rig.r->unclear);
	go_on();
	assert_string_equal(rig.body, first);
	answer(409, TAKEN);
	assert_done("POST, GET");
	answer(200, first);
	assert_done("submitted u1, show, answer");
	assert_answer(0, "");
}

/* The watch has brought the job meanwhile: nothing is sent again. */
static void test_seen_meanwhile(void **state)
{
	submit(APP);
	lose();
	go_on();
	assert_done("POST");
	lose();
	rig.seen = true;
	go_on();
	assert_done("submitted ?, answer");
	assert_answer(0, "");
	/* The watch has brought the job while the request was sent again, and refused. */
	rig.seen = false;
	submit(APP);
	lose();
	go_on();
	answer(422, INVALID);
	rig.seen = true;
	answer(404, NOBODY);
	assert_done("POST, GET, submitted ?, answer");
	assert_answer(0, "");
}

/*
 * A job that the cluster removes 20 s after its end is not launched a second time once it may have been removed: who
 * has the name is asked, and if nobody has it, the answer is that it is not known what became of the job.
 */
static void test_maybe_gone(void **state)
{
	submit(APP_TTL);
	lose();
	rig.age = 19999;
	go_on();
	assert_done("POST");
	lose();
	rig.age = 20000;
	go_on();
	assert_done("GET");
	lose();
	go_on();
	assert_done("GET");
	answer(404, NOBODY);
	assert_done("doubt, answer");
	assert_answer(-ETIMEDOUT, "may have ended and gone by now");
	assert_non_null(strstr(rig.text, "could not be found out"));
	/* The job is there. */
	submit(APP_TTL);
	lose();
	go_on();
	assert_done("GET");
	answer(200, rig.body);
	assert_done("submitted u1, show, answer");
	assert_answer(0, "");
	/* A request that was refused was not lost. */
	submit(APP_TTL);
	answer(422, INVALID);
	assert_done("remove, answer");
	/* A job without a ttl is not removed. */
	submit(APP);
	lose();
	go_on();
	assert_done("POST");
	answer(201, rig.body);
	assert_answer(0, "");
}

/* Nobody else would choose this name, so our job has been there, though it may not be read, or is gone by now. */
static void test_taken_and_unreadable(void **state)
{
	submit(APP);
	answer(409, TAKEN);
	answer(403, STATUS("403", "Forbidden"));
	assert_done("GET, submitted ?, answer");
	assert_answer(0, "");
	submit(APP);
	lose();
	go_on();
	answer(409, TAKEN);
	answer(404, NOBODY);
	assert_done("POST, GET, submitted ?, answer");
	assert_answer(0, "");
}

/* Who has the name is asked again until the server tells. */
static void test_holder_not_told(void **state)
{
	submit(APP);
	answer(409, TAKEN);
	answer(503, PAGE);
	go_on();
	answer(409, TAKEN);
	reply(&(struct http_reply){.err = -EIO});
	go_on();
	answer(409, TAKEN);
	answer(200, rig.body);
	assert_done("GET, POST, GET, POST, GET, submitted u1, show, answer");
	assert_answer(0, "");
}

/*
 * Where no annotation says whose an object is, our own can't be told from another one; but when its name was drawn at
 * random it is ours.
 */
static void test_without_annotations(void **state)
{
	static char key[] = "no_annotations", value[] = "true";
	struct spec_pair option = {key, value};
	cleanup_free char *other = NULL;

	rig.b.config.args = &option;
	rig.b.config.n_args = 1;
	submit(APP);
	assert_null(strstr(rig.body, UUID));
	other = text_print(JOB_NAMED, rig.name);
	answer(409, TAKEN);
	answer(200, other);
	assert_done("GET, submitted ?, answer");
	assert_answer(0, "");
}

/* --- what is refused --- */

static void test_wrong_document(void **state)
{
	begin("nonsense", BACKEND_SUBMIT);
	assert_done("answer");
	assert_answer(-EINVAL, "app.yaml:1");
}

static void test_offline(void **state)
{
	rig.offline = true;
	begin(APP, BACKEND_SUBMIT);
	assert_done("answer");
	assert_answer(-EHOSTUNREACH, "app.yaml: the server is away; nothing was launched");
}

/* When a refusal is told, nothing is left of the submission. */
static void test_refused(void **state)
{
	submit(APP);
	answer(422, INVALID);
	assert_done("remove, answer");
	assert_answer(-EINVAL, "app.yaml: ");
}

/* A refusal that follows a lost reply may be due to our own job: only who has the name tells. */
static void test_refused_after_lost(void **state)
{
	submit(APP);
	lose();
	go_on();
	answer(422, INVALID);
	assert_done("POST, GET");
	answer(200, rig.body);
	assert_done("submitted u1, show, answer");
	assert_answer(0, "");
	/* Nobody has the name; but the request whose connection broke may still arrive. */
	submit(APP);
	lose();
	go_on();
	answer(422, INVALID);
	answer(404, NOBODY);
	assert_done("POST, GET, doubt, answer");
	assert_answer(-EINVAL, "could not be found out");
	assert_non_null(strstr(rig.text, rig.name));
	/* A request may also arrive still of which a proxy has lost the answer. */
	submit(APP);
	answer(504, PAGE);
	go_on();
	answer(422, INVALID);
	answer(404, NOBODY);
	assert_done("POST, GET, doubt, answer");
	assert_answer(-EINVAL, "could not be found out");
	/* The server never tells who has the name. */
	submit(APP);
	lose();
	go_on();
	answer(422, INVALID);
	answer(403, STATUS("403", "Forbidden"));
	assert_done("POST, GET, doubt, answer");
	assert_answer(-EINVAL, "could not be found out");
}

/*
 * A page of something that stands before the server is not the server's answer. The request is sent a few times more.
 */
static void test_page(void **state)
{
	unsigned n = 0;

	submit(APP);
	for (answer(200, PAGE); rig.waits; answer(200, PAGE)) {
		go_on();
		n++;
	}
	assert_in_range(n, 1, 10);
	assert_true(rig.called && rig.call.method == HTTP_GET);
	forget_noted();
	answer(404, NOBODY);
	assert_done("remove, answer"); /* it was answered, so no request is under way */
	assert_answer(-EIO, "Please log in");
	assert_null(strstr(rig.text, "could not be found out"));
	/* The page has the status of a name that is taken. */
	submit(APP);
	answer(409, PAGE);
	go_on();
	answer(201, rig.body);
	assert_answer(0, "");
}

/* http.c has sent the request again after a Status, which a proxy may write too. */
static void test_sent_again_below(void **state)
{
	submit(APP);
	reply(&(struct http_reply){.status = 422, .body = INVALID, .again = true});
	assert_done("GET");
	answer(404, NOBODY);
	assert_done("remove, answer");
	assert_answer(-EINVAL, "app.yaml: ");
	/* The server does not tell who has the name: then the Status counts. */
	submit(APP);
	reply(&(struct http_reply){.status = 422, .body = INVALID, .again = true});
	answer(503, PAGE);
	assert_done("GET, remove, answer");
	assert_answer(-EINVAL, "app.yaml: ");
}

/*
 * When it has been tried for long enough, the answer is that it is not known. The folder stays, by which the job is
 * known to be ours.
 */
static void test_never_found_out(void **state)
{
	submit(APP);
	rig.over = true;
	lose();
	assert_done("doubt, answer");
	assert_answer(-ETIMEDOUT, "whether it was launched could not be found out: ");
	assert_non_null(strstr(rig.text, rig.name));
}

/* --- names --- */

/* Somebody else's job has the name that the document gives: the same job gets another name, in a folder of its own. */
static void test_name_of_another(void **state)
{
	cleanup_free char *other = text_print(JOB_NAMED, "mine");

	submit(READY);
	assert_string_equal(rig.name, "mine");
	answer(409, TAKEN);
	answer(200, other);
	assert_done("GET, remove, reserve, folder, POST");
	assert_string_not_equal(rig.name, "mine");
	answer(201, rig.body);
	assert_done("submitted u1, show, answer");
	/* After a lost reply nobody has the name any more: our job may have had it, or not. */
	submit(READY);
	lose();
	go_on();
	answer(409, TAKEN);
	answer(404, NOBODY);
	assert_answer(-EEXIST, "could not be found out");
	forget_noted();
	/*
	 * Another job has the name now, but perhaps did not when the reply was lost. Under another name the job would
	 * run twice.
	 */
	submit(READY);
	lose();
	go_on();
	answer(409, TAKEN);
	answer(200, other);
	assert_done("POST, GET, doubt, answer");
	assert_answer(-EEXIST, "could not be found out");
	assert_null(strstr(rig.text, "nothing was launched"));
	/* The page of a proxy does not tell who has the name. */
	submit(READY);
	answer(409, TAKEN);
	answer(404, PAGE);
	assert_done("GET, remove, reserve, folder, POST");
	answer(201, rig.body);
	assert_answer(0, "");
	/* Nobody has the name, and no reply was lost: the name is free again. */
	submit(READY);
	answer(409, TAKEN);
	answer(404, NOBODY);
	go_on();
	assert_done("GET, POST");
	answer(201, rig.body);
	assert_answer(0, "");
}

/* A name that is drawn at random and that another job has is a surprise, which is told. */
static void test_drawn_name_of_another(void **state)
{
	cleanup_free char *other = NULL;

	submit(APP);
	other = text_print(JOB_NAMED, rig.name);
	answer(409, TAKEN);
	answer(200, other);
	assert_done("GET, remove, answer");
	assert_answer(-EEXIST, "exists already; nothing was launched");
}

/* There is a folder of that name here, in the table or on the disk alone: another name is drawn. */
static void test_name_taken_here(void **state)
{
	rig.n_taken = 2;
	submit(READY);
	assert_string_equal(rig.first, "mine");
	assert_string_not_equal(rig.name, "mine");
	answer(422, INVALID);
	rig.files_err = -EEXIST;
	begin(READY, BACKEND_SUBMIT);
	assert_done("reserve, folder, release, reserve, folder, POST");
	answer(422, INVALID);
	forget_noted();
	/* Names are not drawn for ever. */
	rig.n_taken = 1000;
	begin(APP, BACKEND_SUBMIT);
	assert_done("answer");
	assert_answer(-EEXIST, "nothing was launched");
	assert_in_range(1000 - rig.n_taken, 2, 100);
}

/* What an AppWrapper wraps has names too, which are taken as long as the job that has them is there. */
static void test_wrapped(void **state)
{
	rig.kind = &spec_appwrapper;
	rig.n_taken = 1;
	begin(WRAPPER, BACKEND_SUBMIT);
	assert_done("reserve, folder, POST"); /* only its folder is left */
	answer(422, INVALID);
	forget_noted();
	submit(WRAPPER);
	answer(409, TAKEN);
	answer(404, PAGE);
	assert_done("GET, remove, answer");
	assert_answer(-EEXIST, "wraps Pod inner: both need other names");
	rig.n_taken = 1;
	snprintf(rig.name, sizeof(rig.name), "mine");
	put_job("another");
	begin(WRAPPER, BACKEND_SUBMIT);
	assert_done("answer");
	assert_answer(-EEXIST, "wraps Pod inner: both need other names");
}

static void test_no_folder(void **state)
{
	rig.files_err = -ENOSPC;
	begin(APP, BACKEND_SUBMIT);
	assert_done("reserve, folder, remove, answer");
	assert_answer(-ENOSPC,
		      "the job can't be recorded in /state: No space left on device; nothing was");
}

/* --- the end of the mount, and dry runs --- */

/* A submission for which the pool still works when the mount ends is not sent. */
static void test_end(void **state)
{
	rig.stopping = true;
	begin(APP, BACKEND_SUBMIT);
	assert_done("reserve, folder, remove, answer");
	assert_answer(-ECANCELED, "kxfs is ending; nothing was launched");
}

/* A dry run keeps nothing, asks the server once, and answers with what would be sent. */
static void test_dry_run(void **state)
{
	cleanup_free char *other = NULL;

	begin(APP, BACKEND_DRY_RUN);
	assert_done("POST");
	assert_false(rig.r->unclear);
	assert_non_null(strstr(rig.path, "&dryRun=All"));
	other = text_copy(rig.body);
	snprintf(rig.name, sizeof(rig.name), "%s", "");
	answer(201, other);
	assert_done("answer");
	assert_answer(0, "kind: Job");
	begin(APP, BACKEND_DRY_RUN);
	lose();
	assert_done("POST, answer");
	assert_answer(-EIO, "app.yaml: ");
	begin(APP, BACKEND_DRY_RUN);
	answer(422, INVALID);
	assert_done("POST, answer");
	assert_answer(-EINVAL, "app.yaml: ");
}

/* --- a job that was held --- */

static void test_held(void **state)
{
	rig.held = true;
	rig.rq.seed[0] = 1;
	submit(APP);
	answer(201, rig.body);
	assert_done("submitted u1, show, answer");
	assert_answer(0, "");
}

static char submission[] = UUID, other[] = "other", none[] = "", known[] = "u1";

/* The folder of the held job is there: an earlier try may have launched it, so the same name is sent. */
static void test_held_again(void **state)
{
	rig.held = true;
	rig.n_taken = 1;
	rig.earlier = (struct folder){.submission = submission, .uid = none};
	begin(APP, BACKEND_SUBMIT);
	assert_done("resume, text, POST");
	answer(409, TAKEN);
	assert_done("GET");
	answer(200, rig.body);
	assert_done("submitted u1, show, answer");
	assert_answer(0, "");
	/* An earlier try did not launch it. */
	rig.n_taken = 1;
	begin(APP, BACKEND_SUBMIT);
	assert_done("resume, text, POST");
	answer(201, rig.body);
	assert_done("submitted u1, show, answer");
	assert_answer(0, "");
	/*
	 * The text of the job can't be mended: an earlier try may still take effect, so nobody says that nothing was
	 * launched.
	 */
	rig.n_taken = 1;
	rig.files_err = -EIO;
	begin(APP, BACKEND_SUBMIT);
	assert_done("resume, text, doubt, answer");
	assert_answer(-EINPROGRESS, "its app.yaml can't be written");
}

/* The held job has been launched, and is gone by now; nothing is sent. */
static void test_held_and_known(void **state)
{
	const struct folder earlier[] = {
		{.submission = submission, .uid = known},
		{.submission = submission, .uid = none, .output = true},
	};

	for (size_t i = 0; i < array_size(earlier); i++) {
		rig.held = true;
		rig.n_taken = 1;
		rig.earlier = earlier[i];
		begin(APP, BACKEND_SUBMIT);
		assert_done("submitted ?, answer");
		assert_answer(0, "");
	}
}

/* The folder belongs to another submission. */
static void test_held_and_taken(void **state)
{
	rig.held = true;
	rig.n_taken = 1;
	rig.earlier = (struct folder){.submission = other, .uid = none};
	begin(APP, BACKEND_SUBMIT);
	assert_done("resume, answer");
	assert_answer(-EEXIST, "exists already");
}

/*
 * A held job is launched as the kind that it was submitted for, though its document names none; if the mount no longer
 * has that kind, it is not launched.
 */
static void test_held_kind(void **state)
{
	static char volcano[] = "volcano", jobset[] = "jobset";

	rig.held = true;
	rig.first_kind = test_kind("job");
	rig.backend = volcano;
	submit(APP);
	answer(201, rig.body);
	assert_done("submitted u1, show, answer");
	assert_answer(0, "");
	rig.backend = jobset;
	begin(APP, BACKEND_SUBMIT);
	assert_done("answer");
	assert_answer(-EHOSTUNREACH, "the job is of jobset, of which this mount has none now");
}

/*
 * Since an earlier try the job may have ended and been removed by its ttl; also where the clock says that this try is
 * yet to come.
 */
static void test_held_and_over(void **state)
{
	static const int64_t times[] = {1 /* long ago */, INT64_MAX};

	for (size_t i = 0; i < array_size(times); i++) {
		rig.held = true;
		rig.n_taken = 1;
		rig.earlier =
			(struct folder){.submission = submission, .uid = none, .written = times[i]};
		begin(APP_TTL, BACKEND_SUBMIT);
		assert_done("resume, text, GET");
		answer(404, NOBODY);
		assert_done("doubt, answer");
		assert_answer(-EINPROGRESS, "may have ended and gone by now");
	}
}

int main(void)
{
#define SUBMIT_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		SUBMIT_TEST(test_launched),
		SUBMIT_TEST(test_lost),
		SUBMIT_TEST(test_maybe_gone),
		SUBMIT_TEST(test_seen_meanwhile),
		SUBMIT_TEST(test_taken_and_unreadable),
		SUBMIT_TEST(test_holder_not_told),
		SUBMIT_TEST(test_without_annotations),
		SUBMIT_TEST(test_wrong_document),
		SUBMIT_TEST(test_offline),
		SUBMIT_TEST(test_refused),
		SUBMIT_TEST(test_refused_after_lost),
		SUBMIT_TEST(test_page),
		SUBMIT_TEST(test_sent_again_below),
		SUBMIT_TEST(test_never_found_out),
		SUBMIT_TEST(test_name_of_another),
		SUBMIT_TEST(test_drawn_name_of_another),
		SUBMIT_TEST(test_name_taken_here),
		SUBMIT_TEST(test_wrapped),
		SUBMIT_TEST(test_no_folder),
		SUBMIT_TEST(test_end),
		SUBMIT_TEST(test_dry_run),
		SUBMIT_TEST(test_held),
		SUBMIT_TEST(test_held_again),
		SUBMIT_TEST(test_held_and_known),
		SUBMIT_TEST(test_held_and_taken),
		SUBMIT_TEST(test_held_kind),
		SUBMIT_TEST(test_held_and_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
