/* SPDX-License-Identifier: MIT */
/* spec/api/object.h: parsing objects from a server. */
#include <errno.h>

#include "spec/api/object.h"
#include "spec/api/refusal.h"
#include "spec/api/review.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

#define OURS                                                                                       \
	"{\"metadata\":{\"name\":\"a\",\"annotations\":{\"kxfs/submission\":\"u-1\","              \
	"\"kxfs/appdef\":\"name: a\\nroles: []\\n\"}}}"

static void test_submission(void **state)
{
	static const char *const others[] = {
		"{\"metadata\":{\"annotations\":{\"kxfs/submission\":1}}}",
		"{\"metadata\":{\"annotations\":[]}}",
		"{\"metadata\":{\"name\":\"u-1\"}}",
		"[]",
		"{\"metadata\":",
		"",
	};

	assert_true(spec_object_is_submission(OURS, strlen(OURS), "u-1"));
	assert_false(spec_object_is_submission(OURS, strlen(OURS), "u-2"));
	for (size_t i = 0; i < array_size(others); i++)
		assert_false(spec_object_is_submission(others[i], strlen(others[i]), "u-1"));
}

static void test_appdef(void **state)
{
	cleanup_free char *text = NULL;
	size_t len;

	assert_int_equal(spec_object_appdef(OURS, strlen(OURS), &text, &len), 0);
	assert_string_equal(text, "name: a\nroles: []\n");
	assert_int_equal(len, strlen(text));
	assert_int_equal(spec_object_appdef("{}", 2, &text, &len), -ENOENT);
}

static void test_yaml(void **state)
{
	static const char json[] =
		"{\"kind\":\"Job\",\"metadata\":{\"managedFields\":[{}],\"name\":"
		"\"a\"},\"managedFields\":\"stays\"}";
	cleanup_free char *text = NULL;
	size_t len;

	assert_int_equal(spec_object_yaml(json, strlen(json), &text, &len), 0);
	assert_string_equal(text, "kind: Job\nmetadata:\n  name: a\nmanagedFields: stays\n");
	assert_int_equal(len, strlen(text));
	free(take_ptr(text));
	assert_int_equal(spec_object_yaml("{", 1, &text, &len), -EINVAL);
	assert_int_equal(spec_object_yaml("[]", 2, &text, &len), -EINVAL);
}

/* The restart count of one container, if there are containers of all types. */
static void test_listed_run(void **state)
{
	static const struct {
		const char *status;
		int restarts;
		bool between;
	} rows[] = {
		{"'containerStatuses':[{'name':'a','restartCount':7},"
		 "{'name':'main','restartCount':2,'state':{'running':{}}}]",
		 2, false},
		{"'initContainerStatuses':[{'name':'main','restartCount':2}]", 2, false},
		{"'containerStatuses':[{}],'ephemeralContainerStatuses':[{'name':'main',"
		 "'restartCount':2,'state':{'waiting':{}},'lastState':{'terminated':{}}}]",
		 2, true},
		{"'containerStatuses':[{'name':'main','restartCount':-1}]", -1, false},
		{"'containerStatuses':[{'name':'other','restartCount':1}]", -1, false},
	};
	struct spec_listed_run run;

	for (size_t i = 0; i < array_size(rows); i++) {
		cleanup_free char *json =
			unit_json(text_print("{'items':[{'metadata':{'uid':'u'},'status':{%s}}]}",
					     rows[i].status));

		assert_int_equal(spec_object_listed_run(json, strlen(json), "main", &run), 0);
		assert_string_equal(run.uid, "u");
		assert_int_equal(run.restarts, rows[i].restarts);
		assert_int_equal(run.between, rows[i].between);
		free(run.uid);
	}
	assert_int_equal(spec_object_listed_run("{\"items\":[]}", 12, "main", &run), 0);
	assert_string_equal(run.uid, "");
	assert_int_equal(run.restarts, -1);
	free(run.uid);
	assert_int_equal(spec_object_listed_run("{\"items\":{}}", 12, "main", &run), -EINVAL);
	assert_int_equal(spec_object_listed_run("{\"items\":[", 10, "main", &run), -EINVAL);
}

static void test_event(void **state)
{
#define OBJECT "{\"metadata\":{\"resourceVersion\":\"17\",\"x\":[\"}\\\"]\"]},\"a\":{}}"
	static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"};
	static const char expired[] = "{\"type\":\"ERROR\",\"object\":{\"code\":410}}";
	struct spec_event e;

	for (unsigned i = 0; i < array_size(names); i++) {
		cleanup_free char *text =
			text_print(" { \"object\" : " OBJECT " , \"type\" : \"%s\" } ", names[i]);

		assert_int_equal(spec_event_parse(text, strlen(text), &e), 0);
		assert_int_equal(e.type, i);
		assert_string_equal(e.resource_version, "17");
		assert_string_equal(e.object, OBJECT);
		assert_int_equal(e.len, strlen(OBJECT));
		assert_int_equal(e.code, 0);
		spec_event_clear(&e);
	}
	assert_int_equal(spec_event_parse(expired, strlen(expired), &e), 0);
	assert_int_equal(e.type, SPEC_EVENT_ERROR);
	assert_int_equal(e.code, 410);
	assert_string_equal(e.resource_version, "");
	spec_event_clear(&e);
}

static void test_no_event(void **state)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"'type'",
		"{'type':'ADDED'}",
		"{'type':'ADDED','object':[]}",
		"{'type':'ADDED','object':{}}",
		"{'type':'ADDED','object':{'metadata':{'resourceVersion':''}}}",
		"{'type':'ADDED','object':{'metadata':{'resourceVersion':5}}}",
		"{'type':'ADDED','object':{'metadata':{'resourceVersion':'1'}",
		"{'type':'SOMETHING','object':{'metadata':{'resourceVersion':'1'}}}",
		"{'type':5,'object':{'metadata':{'resourceVersion':'1'}}}",
	};

	for (size_t i = 0; i < array_size(bad); i++) {
		cleanup_free char *json = unit_json(text_copy(bad[i]));
		struct spec_event e;

		assert_int_equal(spec_event_parse(json, strlen(json), &e), -EINVAL);
		assert_null(e.object);
	}
}

/* --- replies --- */

#define JOBS "jobs.batch.volcano.sh"

struct answer {
	const char *verb;
	int status, err;
	const char *body;
	const char *text;
};

#define STATUS(message)		 "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"" message "\"}"
#define BECAUSE(reason, message) "{\"reason\":\"" reason "\",\"message\":\"" message "\"}"
#define DENIED			 "admission webhook \\\"validatejob.volcano.sh\\\" denied the request: "
#define WEBHOOK			 "Internal error occurred: failed calling webhook "
#define CREATE			 "create " JOBS " x-1: "
#define LARGE(limit)                                                                               \
	"the object has 2865000 bytes, but the cluster accepts at most " limit                     \
	"\nUse fewer replicas..."

static const struct answer answers[] = {
	{"create", 400, -EINVAL,
	 STATUS("Job cannot be handled: strict decoding error: unknown field "
		"\\\"spec.maxRetryy\\\", duplicate field "
		"\\\"spec.queue\\\""),
	 "the server rejects these fields: unknown field \"spec.maxRetryy\", duplicate field "
	 "\"spec.queue\""},
	{"create", 400, -EINVAL,
	 STATUS(DENIED "unable to find job queue: queue.scheduling.volcano.sh \\\"nosuch\\\" not "
		       "found;"),
	 "there is no queue \"nosuch\"\nName another queue..."},
	{"create", 400, -EINVAL,
	 STATUS(DENIED "can only submit job to queue with state `Open`, queue `q` status is "
		       "`Closed`;"),
	 "the queue \"q\" accepts no jobs: it is Closed\nName another queue (queue in..."},
	{"create", 400, -EINVAL,
	 STATUS(DENIED
		"job 'minAvailable' should not be greater than total replicas in tasks;\\n "),
	 "the cluster refuses the request: job 'minAvailable' should not be greater than total "
	 "replicas in tasks"},
	{"create", 403, -EINVAL,
	 STATUS("admission webhook \\\"policy\\\" denied the request: no team label"),
	 "the cluster refuses the request: no team label"},
	{"create", 400, -EINVAL, STATUS("the object is no good"),
	 "the cluster refuses the request: the object is no good"},
	{"create", 422, -EINVAL,
	 STATUS("Job.batch.volcano.sh \\\"x\\\" is invalid: [metadata.annotations: Too long: may not "
		"be more than 262144 bytes, spec.queue: Required value]"),
	 "the cluster refuses the request: [metadata.annotations: Too long: may not be more than "
	 "262144 bytes, spec.queue: Required value]"},
	{"list", 400, -EINVAL,
	 BECAUSE("BadRequest", "unable to parse requirement: found 'b', expected: in, notin"),
	 "the label selector is invalid: unable to parse requirement: found 'b', expected: in, "
	 "notin"},
	{"create", 401, -EACCES, BECAUSE("Unauthorized", "Unauthorized"),
	 "the server rejects the credentials (401)\nThe credentials in the kubeconfig..."},
	{"create", 403, -EACCES,
	 BECAUSE("Forbidden",
		 "pods is forbidden: User \\\"system:anonymous\\\" cannot list resource "
		 "\\\"pods\\\" in API group \\\"\\\" in the namespace \\\"default\\\""),
	 "the server treats the request as anonymous, and user system:anonymous may not create " JOBS
	 " in namespace training\nThe kubeconfig has no credentials..."},
	{"create", 403, -EACCES,
	 BECAUSE("Forbidden", JOBS " is forbidden: User \\\"ada\\\" cannot create resource "
				   "\\\"jobs\\\" in API group \\\"batch.volcano.sh\\\" in the "
				   "namespace \\\"training\\\""),
	 "forbidden: user ada may not create " JOBS
	 " in namespace training, or this namespace does "
	 "not exist\nCheck the name of the namespace..."},
	{"create", 403, -EDQUOT,
	 BECAUSE("Forbidden", "x is forbidden: exceeded quota: q1, requested: count/x=1, used: "
			      "count/x=2, limited: count/x=2"),
	 "the quota q1 of namespace training is exhausted: requested count/x=1, used count/x=2, "
	 "limit count/x=2\nRemove jobs..."},
	{"create", 403, -EAGAIN,
	 BECAUSE("Forbidden", "x is forbidden: status unknown for quota: few, resources: count/x"),
	 "the cluster has not computed the usage of quota few of namespace training yet\n"
	 "Nothing was done..."},
	{"create", 403, -EACCES,
	 BECAUSE("Forbidden",
		 "jobs \\\"x\\\" is forbidden: unable to create new content in namespace "
		 "x because it is being terminated"),
	 "namespace training is being deleted and accepts no new objects"},
	{"create", 403, -EACCES, BECAUSE("Forbidden", "x is forbidden: violates PodSecurity"),
	 CREATE "forbidden (403): x is forbidden: violates PodSecurity"},
	{"create", 404, -EOPNOTSUPP, "404 page not found\n",
	 "the cluster has no " JOBS ": Volcano is not installed there...\nCheck that this..."},
	{"get", 404, -ENOENT,
	 "{\"message\":\"" JOBS " \\\"x-1\\\" not found\",\"reason\":\"NotFound\",\"details\":{"
	 "\"name\":\"x-1\",\"kind\":\"jobs\"}}",
	 JOBS " \"x-1\" not found"},
	{"get", 404, -EAGAIN,
	 "{\"message\":\"the server could not find the requested resource ( pods/log x-1-a-0)\","
	 "\"reason\":\"NotFound\",\"details\":{\"name\":\"x-1-a-0\",\"kind\":\"pods/log\"}}",
	 "the kubelet does not know pod x-1: either the pod is too new, or it no longer exists"},
	{"create", 404, -ENOENT,
	 "{\"message\":\"namespaces \\\"training\\\" not found\",\"reason\":\"NotFound\",\"details\":{"
	 "\"name\":\"training\",\"kind\":\"namespaces\"}}",
	 "there is no namespace training"},
	{"create", 405, -EOPNOTSUPP, STATUS("no"),
	 CREATE "the server does not support this request (405): no"},
	{"create", 409, -EEXIST, BECAUSE("AlreadyExists", "x already exists"),
	 JOBS " x-1 exists already in namespace training"},
	{"create", 409, -EAGAIN,
	 BECAUSE("Conflict", "Operation cannot be fulfilled: the object has been modified"),
	 CREATE "the object changed meanwhile, so nothing was done; try again (409): Operation "
		"cannot be fulfilled: the object has been modified"},
	{"delete", 409, -ESTALE,
	 BECAUSE("Conflict", "Operation cannot be fulfilled on jobs \\\"x-1\\\": the UID in the "
			     "precondition (a) does not match"),
	 "x-1 was removed, and another object has its name now; this object was not deleted"},
	{"list", 410, -ESTALE, BECAUSE("Expired", "too old"),
	 "list " JOBS " x-1: the requested resource version is too old (410): too old"},
	{"create", 413, -EFBIG, "", LARGE("about 1433600")},
	{"create", 413, -EFBIG, STATUS("Request entity too large: limit is 3145728"),
	 LARGE("3145728")},
	{"create", 500, -EFBIG, STATUS("etcdserver: request is too large"), LARGE("about 1433600")},
	{"create", 500, -EFBIG,
	 STATUS("rpc error: trying to send message larger than max (2865147 vs. 2097152)"),
	 LARGE("2097152")},
	{"create", 429, -EAGAIN, STATUS("too many requests"),
	 CREATE "the server is too busy or not ready, try again later (429): too many requests"},
	{"create", 503, -EAGAIN, "upstream connect error\n",
	 CREATE
	 "the server is too busy or not ready, try again later (503): upstream connect error"},
	{"create", 504, -ETIMEDOUT, STATUS("Timeout: request did not complete"),
	 CREATE "the server did not finish in time (504): Timeout: request did not complete"},
	{"create", 500, -EIO,
	 STATUS(WEBHOOK
		"\\\"mutatejob.volcano.sh\\\": failed to call webhook: Post "
		"\\\"https://a.b.svc:443/x?timeout=10s\\\": dial tcp 10.0.0.1:443: connect: "
		"connection refused"),
	 "the cluster can't check the object: its webhook mutatejob.volcano.sh (a.b.svc) "
	 "does not answer: connection refused\nInform..."},
	{"create", 500, -EIO,
	 STATUS(WEBHOOK "\\\"mjobset.kb.io\\\": could not get REST client: no such thing"),
	 "the cluster can't check the object: its webhook mjobset.kb.io does not answer: "
	 "no such thing\nInform..."},
	{"create", 500, -EIO,
	 STATUS("&errors.StatusError{ErrStatus:v1.Status{TypeMeta:v1.TypeMeta{Kind:\\\"\\\"}, "
		"Message:\\\"it is \\\\\\\"so\\\\\\\"\\\", Reason:\\\"Forbidden\\\"}}"),
	 CREATE "the server failed (500): it is \"so\""},
	{"create", 502, -EIO, "<html><body>Bad Gateway</body></html>",
	 CREATE "the server failed (502): Bad Gateway"},
	{"create", 200, -EIO,
	 "\n<!DOCTYPE html><html><head><style>a{b:c}</style><script>if (a<b) f();</script></head>\n"
	 "<body class=x><h1>Please</h1>log in\x1b[2J</body></html> <",
	 CREATE "this reply is not from Kubernetes (200): Please log in [2J"},
	{"create", 200, -EIO, "{}", CREATE "this reply is not from Kubernetes (200)"},
	{"create", 302, -EIO, "", CREATE "this reply is not from Kubernetes (302)"},
};

static void test_answers(void **state)
{
	for (size_t i = 0; i < array_size(answers); i++) {
		const struct answer *a = &answers[i];
		const struct spec_asked asked = {
			.verb = a->verb,
			.resource = JOBS,
			.namespace = "training",
			.name = "x-1",
			.sent = 2865000,
		};
		char *text cleanup_free = NULL;
		int err = spec_reply_errno(a->status, a->body, strlen(a->body), &asked, &text);

		assert_messages(text, a->text);
		assert_int_equal(err, a->err);
	}
}

static void test_resource(void **state)
{
	char *job cleanup_free = spec_asked_resource("jobs", "batch.volcano.sh/v1alpha1");
	char *pod cleanup_free = spec_asked_resource("pods", "v1");

	assert_string_equal(job, "jobs.batch.volcano.sh");
	assert_string_equal(pod, "pods");
}

/* Only a reply of the API server itself proves that a request had no effect. */
static void test_did_nothing(void **state)
{
	static const struct {
		int status;
		bool nothing;
		const char *body;
	} cases[] = {
		{400, true, STATUS("no")},
		{409, true, STATUS("no")},
		{409, false, "<html>"},
		{400, false, "{\"kind\":\"Job\"}"},
		{400, false, ""},
		{404, true, "404 page not found\n"},
		{404, false, "404 page not found"},
		/* A proxy sends these itself, instead of passing the request on. */
		{401, true, ""},
		{413, true, ""},
		{429, true, "Too many requests, please try again later.\n"},
		{503, true, "{\"kind\":\"Status\",\"reason\":\"ServiceUnavailable\"}"},
		{503, false, STATUS("no")},
		{503, false, "upstream connect error or disconnect/reset before headers"},
		{500, false, STATUS("Internal error occurred: etcdserver: leader changed")},
		{500, true, STATUS("etcdserver: request is too large")},
		{500, false, "request is too large"},
		{504, false, STATUS("Timeout")},
		{502, false, ""},
		{302, false, ""},
		{200, false, STATUS("no")},
	};

	for (size_t i = 0; i < array_size(cases); i++)
		assert_int_equal(spec_reply_did_nothing(cases[i].status, cases[i].body,
							strlen(cases[i].body)),
				 cases[i].nothing);
}

/* A message has a limited size, however long and strange the server's text is. */
static void test_bounded(void **state)
{
	const struct spec_asked asked = {"list", JOBS, "training", "", 0};
	char *text cleanup_free = NULL;
	char body[60000];

	snprintf(body, sizeof(body), "a\tb\x1b[2J\n\n\nc");
	memset(body + strlen(body), 'x', sizeof(body) - strlen(body));
	assert_int_equal(spec_reply_errno(500, body, sizeof(body), &asked, &text), -EIO);
	assert_true(strlen(text) < 1000);
	assert_non_null(strstr(text, "a b [2J c"));
	free(take_ptr(text));
	assert_int_equal(spec_reply_errno(200, NULL, 0, &asked, &text), -EIO);
	assert_non_null(text);
}

/* A resource without a namespace. */
static void test_forbidden_everywhere(void **state)
{
	static const char body[] =
		BECAUSE("Forbidden", "queues.scheduling.volcano.sh is forbidden: User \\\"ada\\\" "
				     "cannot list resource \\\"queues\\\" in API group "
				     "\\\"scheduling.volcano.sh\\\" at the cluster scope");
	const struct spec_asked asked = {"list", "queues.scheduling.volcano.sh", "", "", 0};
	cleanup_free char *text = NULL;

	assert_int_equal(spec_reply_errno(403, body, strlen(body), &asked, &text), -EACCES);
	assert_messages(text, "forbidden: user ada has no cluster-wide right to list "
			      "queues.scheduling.volcano.sh\nAsk the cluster's...");
}

static void test_many_fields(void **state)
{
	const struct spec_asked asked = {"create", JOBS, "training", "", 0};
	char *text cleanup_free = NULL;
	char *body cleanup_free = text_copy("{\"message\":\"strict decoding error: a");

	for (int i = 0; i < 90; i++)
		text_set(&body, "%s, unknown field \\\"f%d\\\"", body, i);
	text_set(&body, "%s\"}", body);
	assert_int_equal(spec_reply_errno(400, body, strlen(body), &asked, &text), -EINVAL);
	assert_non_null(strstr(text, "fields: a, unknown field \"f0\", unknown field \"f1\", "));
	assert_in_range(strlen(text), 500, 700);
	assert_string_equal(text + strlen(text) - 4, " ...");
}

static void test_ask(void **state)
{
	cleanup_free char *log = spec_review_ask("", "pods/log", "get", "training");
	cleanup_free char *queues = spec_review_ask("scheduling.volcano.sh", "queues", "list", "");

	assert_string_equal(log, "{\"apiVersion\":\"authorization.k8s.io/v1\","
				 "\"kind\":\"SelfSubjectAccessReview\",\"spec\":{"
				 "\"resourceAttributes\":{\"group\":\"\",\"resource\":\"pods\","
				 "\"subresource\":\"log\",\"verb\":\"get\","
				 "\"namespace\":\"training\"}}}");
	assert_non_null(strstr(queues, "{\"group\":\"scheduling.volcano.sh\","
				       "\"resource\":\"queues\",\"verb\":\"list\"}"));
}

static void test_reply(void **state)
{
	static const struct {
		const char *text;
		int err;
		bool allowed;
	} rows[] = {
		{"{\"status\":{\"allowed\":true}}", 0, true},
		{"{\"status\":{\"allowed\":false,\"denied\":true}}", 0, false},
		{"{\"status\":{}}", 0, false},
		{"{\"kind\":\"Status\"}", -EINVAL, false},
		{"[]", -EINVAL, false},
		{"", -EINVAL, false},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		bool allowed = false;

		assert_int_equal(spec_review_reply(rows[i].text, strlen(rows[i].text), &allowed),
				 rows[i].err);
		assert_int_equal(allowed, rows[i].allowed);
	}
}

static void test_version(void **state)
{
	static const char good[] = "{\"major\":\"1\",\"gitVersion\":\"v1.30.2\"}";
	static const char odd[] = "{\"gitVersion\":\"v1\\u001b[31m\\n\"}";
	static const char bad[] = "{\"gitVersion\":3}";
	char *text = NULL;

	assert_int_equal(spec_version_reply(good, strlen(good), &text), 0);
	assert_string_equal(text, "v1.30.2");
	free(text);
	assert_int_equal(spec_version_reply(odd, strlen(odd), &text), 0);
	assert_null(strpbrk(text, "\033\n"));
	free(text);
	assert_int_equal(spec_version_reply(bad, strlen(bad), &text), -EINVAL);
	assert_int_equal(spec_version_reply("", 0, &text), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_submission),  cmocka_unit_test(test_appdef),
		cmocka_unit_test(test_yaml),	    cmocka_unit_test(test_listed_run),
		cmocka_unit_test(test_event),	    cmocka_unit_test(test_no_event),
		cmocka_unit_test(test_answers),	    cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_many_fields), cmocka_unit_test(test_forbidden_everywhere),
		cmocka_unit_test(test_resource),    cmocka_unit_test(test_did_nothing),
		cmocka_unit_test(test_ask),	    cmocka_unit_test(test_reply),
		cmocka_unit_test(test_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
