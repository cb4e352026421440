/* SPDX-License-Identifier: MIT */
/*
 * Manifests beyond the golden tests: names, annotations, ready manifests, sizes, and the positions
 * of errors.
 */
#include <errno.h>

#include <json-c/json.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"
#include "spec/kinds/manifest.h"
#include "spec/base/name.h"
#include "tests/unit/unit.h"
#include "tests/unit/table.h"

#define APP                                                                                        \
	"name: app\nroles:\n- name: r\n  image: i\n  entrypoint: e\n  resource: {cpu: 1, gpu: 0, " \
	"memMB: 2000}\n"

static struct spec_pair bare[] = {{(char[]){"no_annotations"}, (char[]){"true"}}};
static struct spec_pair queue[] = {{(char[]){"queue"}, (char[]){"q"}}};

static struct spec_manifest_request request(const struct spec_kind *kind)
{
	return (struct spec_manifest_request){
		.known = test_table_of_kinds(),
		.kind = kind,
		.options = queue,
		.n_options = kind == &spec_volcano,
		.identity = {.random = {1234567890123456789u, 9876543210987654321u},
			     .namespace = "ns",
			     .submission = "uuid",
			     .submitter = "ada@login1",
			     .user = "ada"},
	};
}

/* Make the manifest of TEXT, which kxfs must accept. */
static struct json_object *make(const struct spec_manifest_request *rq, const char *text)
{
	cleanup(spec_manifest_freep) struct spec_manifest *m = NULL;
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct json_object *ret, *name;

	if (spec_manifest_make(text, strlen(text), rq, &m, &e) < 0) {
		char *errors cleanup_free = spec_errors_text(&e, "f");

		fail_msg("%s", errors);
	}
	assert_int_equal(strlen(m->json), m->json_len);
	ret = json_tokener_parse(m->json);
	assert_int_equal(json_pointer_get(ret, "/metadata/name", &name), 0);
	assert_string_equal(json_object_get_string(name), m->id);
	return ret;
}

/* Replace FROM by TO in TEXT. */
static void translate(char *text, char from, char to)
{
	for (char *p = text; (p = strchr(p, from));)
		*p = to;
}

/*
 * Return the value at PATH (a JSON pointer) in the manifest of TEXT: a string's text, or JSON with '
 * in place of ". NULL if it is absent. The result is valid until the next call.
 */
static const char *made(const struct spec_manifest_request *rq, const char *text, const char *path)
{
	static char *ret;
	struct json_object *o = make(rq, text), *value;

	free(ret);
	ret = NULL;
	if (json_pointer_get(o, path, &value) == 0)
		ret = text_copy(json_object_is_type(value, json_type_string)
					? json_object_get_string(value)
					: json_object_to_json_string_ext(
						  value, JSON_C_TO_STRING_PLAIN |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
	if (ret && (*ret == '{' || *ret == '['))
		translate(ret, '"', '\'');
	json_object_put(o);
	return ret;
}

/* Assert that the manifest of TEXT is WANTED, in which ' replaces ". */
static void assert_made(const struct spec_manifest_request *rq, const char *text,
			const char *wanted)
{
	struct json_object *o = make(rq, text), *want;
	cleanup_free char *json = text_copy(wanted);

	translate(json, '\'', '"');
	want = json_tokener_parse(json);
	assert_non_null(want);
	if (!json_object_equal(o, want))
		fail_msg("%s", json_object_to_json_string(o));
	json_object_put(o);
	json_object_put(want);
}

/* Return the errors of TEXT, one per line. The result is valid until the next call. */
static const char *refuse(const struct spec_manifest_request *rq, const char *text, int err)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_manifest *m = NULL;
	static char *ret;

	assert_int_equal(spec_manifest_make(text, strlen(text), rq, &m, &e), err);
	assert_null(m);
	assert_int_equal(e.err, err);
	free(ret);
	ret = spec_errors_text(&e, "f");
	return ret;
}

#define NAME "/metadata/name"

static void test_names(void **state)
{
	struct spec_manifest_request volcano = request(&spec_volcano), mcad = request(&spec_mcad);
	char suffix[SPEC_SUFFIX_MAX];
	cleanup_free char *name = NULL;

	spec_name_suffix(volcano.identity.random[0], suffix);
	name = text_print("app-%s", suffix);
	assert_string_equal(made(&volcano, APP, NAME), name);
	assert_null(made(&volcano, APP, "/metadata/namespace"));
	assert_int_equal(strlen(made(&mcad, APP, NAME)), strlen("app-") + 14);
	assert_string_equal(made(&mcad, APP, "/metadata/namespace"), "ns");
	/* If the random numbers are all zero, names are still valid, and as long as documented. */
	mcad.identity.random[0] = mcad.identity.random[1] = 0;
	assert_memory_equal(made(&mcad, APP, NAME), "app", 3);
}

static void test_annotations(void **state)
{
#define NOTE "/metadata/annotations/kxfs~1"
	struct spec_manifest_request rq = request(&spec_mcad);
	cleanup_free char *large = text_print("%s%0*d", APP "#", SPEC_MAX_APPDEF_NOTE, 0);

	assert_string_equal(made(&rq, APP, NOTE "appdef"), APP);
	assert_string_equal(made(&rq, APP, NOTE "submitter"), "ada@login1");
	assert_string_equal(made(&rq, APP, NOTE "submission"), "uuid");
	assert_null(made(&rq, APP, NOTE "appdef-sha256"));
	large[SPEC_MAX_APPDEF_NOTE] = '\0';
	assert_string_equal(made(&rq, large, NOTE "appdef"), large);
	large[SPEC_MAX_APPDEF_NOTE] = '0';
	large[SPEC_MAX_APPDEF_NOTE + 1] = '\0';
	assert_null(made(&rq, large, NOTE "appdef"));
	assert_int_equal(strlen(made(&rq, large, NOTE "appdef-sha256")), 64);
	assert_null(
		made(&rq, APP "scheduler_args: {no_annotations: true}\n", "/metadata/annotations"));
}

/* All errors are reported together, each with its position. */
static void test_positions(void **state)
{
	struct spec_manifest_request rq = request(&spec_volcano);

	assert_string_equal(refuse(&rq,
				   "name: app\n"
				   "roles:\n"
				   "- name: a\n"
				   "  image: 'sha256:1'\n"
				   "  entrypoint: e\n"
				   "  retry_policy: HOT_SPARE\n"
				   "  max_retries: 1\n"
				   "  mounts: [{type: bind, src_path: /a, dst_path: /dev/shm}]\n"
				   "- name: b\n"
				   "  image: i\n"
				   "  entrypoint: e\n"
				   "  metadata: {kubernetes: {spec: {volumes: {}}}}\n",
				   -EINVAL),
			    "f:4:10: roles[0].image: is the id of a local image; set the run "
			    "option image_repo to the repository that has this image\n"
			    "f:6:17: roles[0].retry_policy: Volcano does not support "
			    "HOT_SPARE: use APPLICATION or REPLICA, or max_retries: 0\n"
			    "f:8:11: roles[0].mounts: /dev/shm is mounted twice: every "
			    "pod has a memory volume there\n"
			    "f:12:43: roles[1].metadata.kubernetes.spec.volumes: must be "
			    "a list, as in the pod, but is a map\n");
	assert_string_equal(refuse(&rq, "name: a\nroles: [{name: r, image: ' i', entrypoint: e}]\n",
				   -EINVAL),
			    "f:2:26: roles[0].image: must not begin or end with a space\n");
	assert_string_equal(refuse(&rq, APP "scheduler: mcad\n", -EINVAL),
			    "f:7:12: scheduler: is mcad, but this mount submits jobs to "
			    "volcano\n");
	rq.n_options = 0;
	assert_memory_equal(refuse(&rq, APP, -EINVAL), "f: scheduler_args.queue: ", 25);
}

/* What the API server would refuse later is refused here, for either kind. */
static void test_values(void **state)
{
#define DEVICES(list) "resource: {cpu: 4, gpu: 1, memMB: 20000, devices: {" list "}}"
#define VOLUME(path)  "'type=volume,src=c,dst=" path "'"
	/* A field of a role, and a part of its error. */
	static const char *const cases[][2] = {
		{"mounts: [{type: bind, src_path: /a/../b, dst_path: /x}]",
		 "mounts: /a/../b: a path of the host must not contain \"..\""},
		{"mounts: [" VOLUME("/a:b") "]",
		 "mounts: /a:b: a path in the container must not contain \":\""},
		{"mounts: [" VOLUME("/a") ", 'type=device,src=/a']", "mounts: /a is mounted twice"},
		{"mounts: [" VOLUME("/a") ", " VOLUME("/a/") "]", "mounts: /a is mounted twice"},
		{"mounts: [" VOLUME("/dev/shm/") "]",
		 "mounts: /dev/shm is mounted twice: every pod has a memory volume there"},
		{DEVICES("fpga: 1"), "resource.devices.fpga: \"fpga\" is not a resource"},
		{DEVICES("'a/b c': 1"), "resource.devices[\"a/b c\"]: \"a/b c\" is not a resource"},
		{DEVICES("hugepages-x: 3"), "\"hugepages-x\" is not a resource"},
		{DEVICES("requests.nvidia.com/gpu: 3"),
		 "\"requests.nvidia.com/gpu\" is not a resource"},
		{DEVICES("nvidia.com/gpu: 2"),
		 "resource.devices[\"nvidia.com/gpu\"]: is 2, but gpu is 1, and both mean the "
		 "same: leave one out"},
		{DEVICES("hugepages-2Mi: 3"),
		 "resource.devices.hugepages-2Mi: is a number of bytes, and must be a multiple "
		 "of the page size, 2097152"},
		{DEVICES("hugepages-9999999Ei: 3"),
		 "is a number of bytes, and must be a multiple of "},
		{"resource: {cpu: -1, gpu: 1, memMB: -1, devices: {hugepages-2Mi: 4194304}}",
		 "resource.devices.hugepages-2Mi: can't be requested without cpu or memMB: set one "
		 "of them"},
		{DEVICES("cpu: 0"), "resource.devices.cpu: is a limit of 0, which is less than the "
				    "request in cpu: leave one out"},
		{DEVICES("memory: 5"), "resource.devices.memory: is a limit of 5, which is less "
				       "than the request in memMB"},
		{"metadata: {kubernetes: {spec: {'__put__:': 1}}}",
		 "must have the name of a field after the operator"},
		{"metadata: {kubernetes: {kind: Job}}",
		 "metadata.kubernetes.kind: a pod overlay can have only metadata and spec"},
		{"metadata: {kubernetes: {V1Pod: {apiVersion: v2}}}",
		 "metadata.kubernetes.V1Pod.apiVersion: a pod overlay can have only metadata "
		 "and spec"},
		{"env: {A: '[FIELD_PATH]'}", "env.A: names no field"},
		{"env: {A: '[FIELD_PATH]spec.node'}",
		 "env.A: \"spec.node\" is not a pod field that a variable can contain"},
		{"env: {A: '[FIELD_PATH]metadata.${replica_id}'}",
		 "env.A: \"metadata.0\" is not a pod field"},
		{"env: {A: '[FIELD_PATH]metadata.labels'}",
		 "env.A: \"metadata.labels\" is not a pod field"},
		{"env: {A: \"[FIELD_PATH]metadata.labels['a']b\"}",
		 "env.A: \"metadata.labels['a']b\" is not a pod field"},
	};

	for (size_t i = 0; i < 2 * array_size(cases); i++) {
		struct spec_manifest_request rq = request(test_table_of_kinds()->v[i % 2]);
		cleanup_free char *document =
			text_print("name: a\nroles: [{name: r, image: i, entrypoint: e, %s}]\n",
				   cases[i / 2][0]);
		const char *text = refuse(&rq, document, -EINVAL);

		assert_memory_equal(text, "f:2:", 4);
		if (!strstr(text, cases[i / 2][1]))
			fail_msg("%s", text);
	}
}

/*
 * If there are several kinds, the document names one, or else the first one is used. Options apply
 * to the kinds that have them.
 */
static void test_several_kinds(void **state)
{
#define OF(scheduler) "name: a\n" scheduler "roles: [{name: r, image: i, entrypoint: e}]\n"
	const struct spec_kind *const kinds[] = {&spec_appwrapper, test_kind("job")};
	const struct spec_kind *const ray[] = {test_kind("rayjob")};
	struct spec_manifest_request rq = request(NULL);
	struct spec_pair options[] = {{(char[]){"queue"}, (char[]){"q"}},
				      {(char[]){"coscheduler_name"}, (char[]){"c"}},
				      {(char[]){"ttl"}, (char[]){"1d"}}};

	rq.kinds = kinds;
	rq.n_kinds = array_size(kinds);
	rq.options = options;
	rq.n_options = array_size(options);
	assert_string_equal(made(&rq, OF(""), "/kind"), "AppWrapper");
	assert_string_equal(made(&rq, OF("scheduler: mcad\n"), "/kind"), "AppWrapper");
	assert_string_equal(made(&rq, OF("scheduler: kubernetes_mcad\n"), "/kind"), "AppWrapper");
	assert_string_equal(made(&rq, OF("scheduler: job\n"), "/kind"), "Job");
	assert_string_equal(refuse(&rq, OF("scheduler: jobset\n"), -EINVAL),
			    "f:2:12: scheduler: is jobset, which this mount does not show; this "
			    "mount submits jobs to appwrapper, job\n");
	assert_string_equal(
		refuse(&rq,
		       "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
		       "metadata: {name: a}\n",
		       -EINVAL),
		"f:2:7: kind: is JobSet of jobset.x-k8s.io/v1alpha2, which kxfs can't submit here: "
		"write an AppDef, or a manifest of AppWrapper (workload.codeflare.dev/v1beta2) or "
		"Job (batch/v1)\n");
	rq.kinds = ray;
	rq.n_kinds = 1;
	assert_non_null(strstr(refuse(&rq, OF("scheduler: mcad\n"), -EINVAL),
			       "for RayJobs, write a Kubernetes manifest"));
	rq.n_kinds = 0;
	assert_non_null(
		strstr(refuse(&rq, OF(""), -EOPNOTSUPP), "no kind of job that this user may list"));
}

/*
 * What Kubernetes accepts is accepted here. One mount path is refused for Volcano, which mounts
 * something there itself.
 */
static void test_taken(void **state)
{
	static const char fine[] =
		"name: a\nroles: [{name: r, image: i, entrypoint: e, port_map: {a: 80, b: 80}, "
		"env: {A: '[FIELD_PATH]spec.nodeName', B: \"[FIELD_PATH]metadata.labels['a/b.c']\", "
		"C: \"[FIELD_PATH]metadata.annotations['${app_id}-$replica_id']\"}, "
		"resource: {cpu: 1, gpu: 2, memMB: 1, devices: "
		"{nvidia.com/gpu: 2, hugepages-2Mi: 4194304}}, mounts: "
		"['type=volume,src=c,dst=/etc/volcano/x']}]\n";
	static const char taken[] = "name: a\nroles: [{name: r, image: i, entrypoint: e, mounts: "
				    "['type=volume,src=c,dst=/etc/volcano/']}]\n";
	struct spec_manifest_request volcano = request(&spec_volcano), mcad = request(&spec_mcad);

	assert_non_null(made(&volcano, fine, NAME));
	assert_non_null(made(&mcad, fine, NAME));
	assert_non_null(made(&mcad, taken, NAME));
	assert_string_equal(refuse(&volcano, taken, -EINVAL),
			    "f:2:52: roles[0].mounts: /etc/volcano is mounted twice: Volcano "
			    "mounts the list of the job's hosts there\n");
}

/* An overlay names its kind, and may contain macros. */
static void test_overlay(void **state)
{
	struct spec_manifest_request rq = request(&spec_volcano);
	static const char text[] =
		"name: a\nroles: [{name: r, image: i, entrypoint: e, num_replicas: 2, metadata: "
		"{kubernetes: {apiVersion: v1, kind: Pod, spec: {a: ['${app_id}-$replica_id', "
		"{b: '$$'}, $no, 1]}}}}]\n";

	assert_string_equal(made(&rq, text, "/spec/tasks/0/template/spec/a"),
			    "['a-mqkf5pcm9b1ch-0',{'b':'$'},'$no',1]");
	assert_string_equal(made(&rq, text, "/spec/tasks/1/template/spec/a"),
			    "['a-mqkf5pcm9b1ch-1',{'b':'$'},'$no',1]");
	assert_null(made(&rq, text, "/spec/tasks/1/template/kind"));
}

/* MCAD's names, in whatever characters, and roles that differ only in a label. */
static void test_mcad_names(void **state)
{
	struct spec_manifest_request rq = request(&spec_mcad);
	cleanup_free char *kanji = text_copy("name: "), *roles = NULL;
	const char *id;

	for (int i = 0; i < 47; i++)
		text_set(&kanji, "%s\u65e5", kanji);
	text_set(&kanji, "%sabc\nroles: [{name: r, image: i, entrypoint: e}]\n", kanji);
	id = made(&rq, kanji, NAME);
	assert_memory_equal(id, "abc-", 4);
	assert_int_equal(strlen(id), 4 + 8);
	roles = text_print("name: a\nroles:\n- {name: x%062da, image: i, entrypoint: e}\n"
			   "- {name: x%062db, image: i, entrypoint: e}\n",
			   0, 0);
	assert_memory_equal(refuse(&rq, roles, -EINVAL),
			    "f:4:10: roles[1].name: would have the same label as roles[0], \"x00",
			    62);
}

/* Names are checked by the kind's rules, whether or not the document names the kind. */
static void test_long_names(void **state)
{
	static const char text[] = "name: a123456789a123456789a123456789a123456789a123456789\n"
				   "roles: [{name: r, image: i, entrypoint: e}]\n";
	struct spec_manifest_request volcano = request(&spec_volcano), mcad = request(&spec_mcad);

	assert_non_null(made(&mcad, text, NAME));
	assert_memory_equal(refuse(&volcano, text, -EINVAL),
			    "f:1:7: name: pods of role \"r\" would have names of ", 50);
}

/* --- the label by which a mount finds its user's jobs --- */

#define USER "/metadata/labels/kxfs~1user"

/*
 * For all kinds, the object and each pod of an AppDef have the label. An overlay can't change it.
 */
static void test_user(void **state)
{
	static const char *const kinds[][3] = {
		{"volcano", "/spec/tasks", "/template"},
		{"mcad", "/spec/resources/GenericItems", "/generictemplate"},
		{"appwrapper", "/spec/components", "/template"},
		{"jobset", "/spec/replicatedJobs", "/template/spec/template"},
	};
	static const char text[] =
		"name: app\nroles:\n"
		"- {name: a, image: i, entrypoint: e, metadata: {kubernetes: {metadata: {labels: "
		"{kxfs/user: bob, x: y}}}}}\n"
		"- {name: b, image: i, entrypoint: e}\n";

	for (size_t i = 0; i < array_size(kinds); i++) {
		struct spec_manifest_request rq = request(test_kind(kinds[i][0]));

		assert_string_equal(made(&rq, text, USER), "ada");
		for (int k = 0; k < 2; k++) {
			cleanup_free char *path =
				text_print("%s/%d%s" USER, kinds[i][1], k, kinds[i][2]);

			assert_string_equal(made(&rq, text, path), "ada");
		}
	}
}

#define VOLCANO "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"

/*
 * A copy of somebody else's job gets our label, and so do its pods. Members that are not pods or
 * not maps do not change. kxfs creates the maps in which the labels are missing.
 */
static void test_ready_user(void **state)
{
	struct spec_manifest_request rq = request(&spec_volcano);
	static const char volcano[] =
		VOLCANO "metadata: {name: mine, labels: {kxfs/user: bob, a: b}}\n"
			"spec: {tasks: [{template: {metadata: {labels: {kxfs/user: bob}}}}, "
			"{template: {spec: {}}}, {template: 1}, 2, "
			"{template: {metadata: {labels: []}}}]}\n";
	static const char mcad[] =
		"apiVersion: workload.codeflare.dev/v1beta1\nkind: AppWrapper\n"
		"metadata: {name: mine, labels: null}\n"
		"spec: {resources: {GenericItems: [{generictemplate: {kind: Service}}, "
		"{generictemplate: {kind: Pod}}]}}\n";

	assert_string_equal(made(&rq, volcano, "/metadata/labels"), "{'kxfs/user':'ada','a':'b'}");
	assert_string_equal(made(&rq, volcano, "/spec/tasks"),
			    "[{'template':{'metadata':{'labels':{'kxfs/user':'ada'}}}},"
			    "{'template':{'spec':{},'metadata':{'labels':{'kxfs/user':'ada'}}}},"
			    "{'template':1},2,{'template':{'metadata':{'labels':[]}}}]");
	rq = request(&spec_mcad);
	assert_string_equal(made(&rq, mcad, USER), "ada");
	assert_string_equal(made(&rq, mcad, "/spec/resources/GenericItems"),
			    "[{'generictemplate':{'kind':'Service'}},{'generictemplate':{"
			    "'kind':'Pod','metadata':{'labels':{'kxfs/user':'ada'}}}}]");
	rq = request(test_kind("workflow"));
	assert_string_equal(made(&rq,
				 "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n"
				 "metadata: {name: mine}\nspec: {entrypoint: a}\n",
				 "/spec/podMetadata"),
			    "{'labels':{'kxfs/user':'ada'}}");
	rq = request(test_kind("pytorchjob"));
	assert_string_equal(made(&rq,
				 "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"
				 "metadata: {name: mine}\nspec: {pytorchReplicaSpecs: {Master: "
				 "{template: {}}, Worker: {template: {}}}}",
				 "/spec/pytorchReplicaSpecs/Worker/template" USER),
			    "ada");
}

/*
 * An option leaves the object as TorchX creates it. It is refused if the mount finds its jobs by
 * the label.
 */
static void test_no_user(void **state)
{
	struct spec_manifest_request rq = request(&spec_mcad);

	assert_null(made(&rq, APP "scheduler_args: {no_annotations: true}\n", "/metadata/labels"));
	assert_null(made(&rq, APP "scheduler_args: {no_annotations: true}\n",
			 "/spec/resources/GenericItems/0/generictemplate" USER));
	rq.options = bare;
	rq.n_options = 1;
	assert_null(made(&rq,
			 "apiVersion: workload.codeflare.dev/v1beta1\nkind: AppWrapper\n"
			 "metadata: {name: mine, labels: {kxfs/user: bob}}\n",
			 USER));
	rq.mine = true;
	assert_string_equal(refuse(&rq, APP, -EINVAL),
			    "f: scheduler_args.no_annotations: leaves out the label kxfs/user, "
			    "which a mount with -o mine needs to find its jobs: remove "
			    "no_annotations\n");
	assert_string_equal(made(&rq, APP "scheduler_args: {no_annotations: false}\n", USER),
			    "ada");
}

/* --- ready manifests --- */

static void test_ready(void **state)
{
	struct spec_manifest_request rq = request(&spec_volcano);

	assert_made(&rq,
		    VOLCANO "metadata:\n"
			    "  name: mine\n"
			    "  namespace: ns\n"
			    "  uid: x\n"
			    "  resourceVersion: '5'\n"
			    "  generation: 2\n"
			    "  creationTimestamp: '2026-11-21T09:08:40Z'\n"
			    "  selfLink: /x\n"
			    "  managedFields: [{manager: m}]\n"
			    "  ownerReferences: [{uid: y}]\n"
			    "  annotations: {a: b, kxfs/submission: old, kxfs/appdef: old}\n"
			    "spec: {queue: x, c: 1.5, b: true}\n"
			    "status: {state: {}}\n",
		    "{'apiVersion':'batch.volcano.sh/v1alpha1','kind':'Job','metadata':{"
		    "'name':'mine','namespace':'ns','annotations':{'a':'b',"
		    "'kxfs/submitter':'ada@login1','kxfs/submission':'uuid'},"
		    "'labels':{'kxfs/user':'ada'}},'spec':{'queue':'x','c':1.5,'b':true}}");
	/* A ready manifest does not need the option for its queue. */
	rq.n_options = 0;
	assert_non_null(made(&rq, VOLCANO "metadata: {name: mine}\n", NAME));
}

/* Submit the live OBJECT again for KIND, and assert that the manifest is WANTED. */
static void again(const struct spec_kind *kind, const char *object, const char *wanted)
{
	struct spec_manifest_request rq = request(kind);

	rq.options = bare;
	rq.n_options = 1;
	assert_made(&rq, object, wanted);
}

#define JOBSET	   "'apiVersion': 'jobset.x-k8s.io/v1alpha2', 'kind': 'JobSet'"
#define JOB	   "'apiVersion': 'batch/v1', 'kind': 'Job'"
#define WORKFLOW   "'apiVersion': 'argoproj.io/v1alpha1', 'kind': 'Workflow'"
#define PYTORCHJOB "'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob'"
#define SPARK	   "'apiVersion': 'sparkoperator.k8s.io/v1beta2', 'kind': 'SparkApplication'"
#define APPWRAPPER "'apiVersion': 'workload.codeflare.dev/v1beta2', 'kind': 'AppWrapper'"
#define MCAD	   "'apiVersion': 'workload.codeflare.dev/v1beta1', 'kind': 'AppWrapper'"

/*
 * The copy leaves out what Kueue, Volcano and others have added to a job, because that would keep
 * it from running.
 */
static void test_ready_admitted(void **state)
{
	again(test_kind("jobset"),
	      "{" JOBSET ", 'metadata': {'name': 'a', 'uid': 'u', 'finalizers': ['orphan', 'x'], "
	      "'labels': {'kueue.x-k8s.io/queue-name': 'team', "
	      "'kueue.x-k8s.io/prebuilt-workload-name': 'w', "
	      "'kueue.x-k8s.io/multikueue-origin': 'm'}}, 'spec': {'suspend': false, "
	      "'managedBy': 'kueue.x-k8s.io/multikueue', 'failurePolicy': {'maxRestarts': 2}, "
	      "'replicatedJobs': [{'name': 'main', 'template': {'spec': {'template': {'metadata': "
	      "{'annotations': {'kueue.x-k8s.io/workload': 'jobset-a-95b64', "
	      "'kueue.x-k8s.io/workload-slice-name': 'x', "
	      "'kueue.x-k8s.io/podset-required-topology': 'rack', "
	      "'autoscaling.x-k8s.io/consume-provisioning-request': 'p', "
	      "'autoscaling.x-k8s.io/provisioning-class-name': 'c', 'b': 'c'}, 'labels': "
	      "{'kueue.x-k8s.io/podset': 'main', 'kueue.x-k8s.io/local-queue-name': 'team', "
	      "'kueue.x-k8s.io/cluster-queue-name': 'all', 'd': 'e', "
	      "'kueue.x-k8s.io/multikueue-worker-workload-pod': 'true'}}, "
	      "'spec': {'nodeSelector': {'zone': 'a'}, 'schedulingGates': [{'name': "
	      "'kueue.x-k8s.io/topology'}, {'name': 'mine'}, "
	      "{'name': 'kueue.x-k8s.io/elastic-job'}]}}}}}]}, "
	      "'status': {'restarts': 2, 'terminalState': 'Failed'}}",
	      "{" JOBSET ", 'metadata': {'name': 'a', 'finalizers': ['x'], 'labels': "
	      "{'kueue.x-k8s.io/queue-name': 'team'}}, 'spec': "
	      "{'failurePolicy': {'maxRestarts': 2}, 'replicatedJobs': [{'name': 'main', 'template': "
	      "{'spec': {'template': {'metadata': {'annotations': "
	      "{'kueue.x-k8s.io/podset-required-topology': 'rack', 'b': 'c'}, 'labels': {'d': 'e'}}, "
	      "'spec': {'nodeSelector': {'zone': 'a'}, 'schedulingGates': [{'name': 'mine'}]}}}}}]}}");
	again(&spec_appwrapper,
	      "{" APPWRAPPER ", 'metadata': {'name': 'a', 'uid': 'u', 'finalizers': "
	      "['workload.codeflare.dev/finalizer'], 'annotations': "
	      "{'workload.codeflare.dev.appwrapper/retryLimit': '2'}}, 'spec': {'suspend': true, "
	      "'components': [{'podSetInfos': [{'annotations': {'kueue.x-k8s.io/workload': 'w'}, "
	      "'nodeSelector': {'flavor': 'spot'}, 'tolerations': [{'key': 'spot'}], "
	      "'schedulingGates': [{'name': 'kueue.x-k8s.io/topology'}]}], "
	      "'template': {'kind': 'Pod', 'spec': {}}}]}, 'status': {'resettingCount': 2}}",
	      "{" APPWRAPPER ", 'metadata': {'name': 'a', 'finalizers': [], 'annotations': "
	      "{'workload.codeflare.dev.appwrapper/retryLimit': '2'}}, 'spec': {'components': "
	      "[{'template': {'kind': 'Pod', 'spec': {}}}]}}");
	again(&spec_volcano,
	      "{'apiVersion': 'batch.volcano.sh/v1alpha1', 'kind': 'Job', 'metadata': {'name': 'a', "
	      "'uid': 'u', 'annotations': {'volcano.sh/job-forwarding': 'true'}}, 'spec': "
	      "{'maxRetry': 3, 'volumes': [{'mountPath': '/a', 'volumeClaimName': 'a-volume-x1', "
	      "'volumeClaim': {'accessModes': ['ReadWriteOnce']}}, "
	      "{'mountPath': '/b', 'volumeClaimName': 'mine'}]}, 'status': {'retryCount': 2}}",
	      "{'apiVersion': 'batch.volcano.sh/v1alpha1', 'kind': 'Job', 'metadata': {'name': 'a', "
	      "'annotations': {}}, 'spec': {'maxRetry': 3, 'volumes': [{'mountPath': '/a', "
	      "'volumeClaim': {'accessModes': ['ReadWriteOnce']}}, "
	      "{'mountPath': '/b', 'volumeClaimName': 'mine'}]}}");
	again(&spec_mcad,
	      "{" MCAD ", 'metadata': {'name': 'a', 'uid': 'u'}, 'spec': {'schedulingSpec': "
	      "{'requeuing': {'maxNumRequeuings': 2}}, 'resources': {'GenericItems': []}}, "
	      "'status': {'requeueing': 2}}",
	      "{" MCAD ", 'metadata': {'name': 'a'}, 'spec': {'schedulingSpec': "
	      "{'requeuing': {'maxNumRequeuings': 2}}, 'resources': {'GenericItems': []}}}");
	again(test_kind("workflow"),
	      "{" WORKFLOW ", 'metadata': {'name': 'a', 'uid': 'u', 'labels': {'b': 'c', "
	      "'workflows.argoproj.io/completed': 'true', 'kxfs/user': 'bob', "
	      "'workflows.argoproj.io/phase': 'Failed'}}, 'spec': {'shutdown': 'Stop', "
	      "'suspend': true, 'podMetadata': {'labels': {'kxfs/user': 'bob'}}}}",
	      "{" WORKFLOW ", 'metadata': {'name': 'a', 'labels': {'b': 'c'}}, "
	      "'spec': {'podMetadata': {'labels': {}}}}");
	again(test_kind("pytorchjob"),
	      "{" PYTORCHJOB ", 'metadata': {'name': 'a', 'uid': 'u'}, 'spec': {'runPolicy': "
	      "{'suspend': true, 'backoffLimit': 1}}}",
	      "{" PYTORCHJOB ", 'metadata': {'name': 'a'}, 'spec': {'runPolicy': "
	      "{'backoffLimit': 1}}}");
	again(test_kind("sparkapplication"),
	      "{" SPARK ", 'metadata': {'name': 'a', 'uid': 'u'}, 'spec': {'suspend': false, "
	      "'driver': {'cores': 1, 'annotations': {'kueue.x-k8s.io/workload': 'w'}, 'template': "
	      "{'spec': {'schedulingGates': [{'name': 'kueue.x-k8s.io/topology'}]}}}, "
	      "'executor': {'annotations': {'b': 'c', 'kueue.x-k8s.io/workload': 'w'}, 'labels': "
	      "{'kueue.x-k8s.io/podset': 'executor', 'kueue.x-k8s.io/local-queue-name': 'team', "
	      "'kueue.x-k8s.io/cluster-queue-name': 'all', 'd': 'e'}}}}",
	      "{" SPARK ", 'metadata': {'name': 'a'}, 'spec': {'driver': "
	      "{'cores': 1, 'annotations': {}, 'template': {'spec': {'schedulingGates': []}}}, "
	      "'executor': {'annotations': {'b': 'c'}, 'labels': {'d': 'e'}}}}");
	again(test_kind("job"),
	      "{" JOB ", 'metadata': {'name': 'a', 'uid': 'u'}, 'spec': "
	      "{'activeDeadlineSeconds': 0}}",
	      "{" JOB ", 'metadata': {'name': 'a'}, 'spec': {}}");
}

/*
 * What a person wrote is kept: a job that starts suspended, a request for nodes, a scheduling gate.
 */
static void test_ready_by_hand(void **state)
{
#define HAND                                                                                       \
	"'spec': {'suspend': true, 'managedBy': 'mine', 'replicatedJobs': [{'template': {'spec': " \
	"{'template': {'metadata': {'annotations': "                                               \
	"{'autoscaling.x-k8s.io/consume-provisioning-request': 'p'}}, 'spec': "                    \
	"{'schedulingGates': [{'name': 'kueue.x-k8s.io/topology'}]}}}}}, 1, {'template': []}]}"
	again(test_kind("jobset"),
	      "{" JOBSET ", 'metadata': {'name': 'a', 'finalizers': ['orphan'], "
	      "'labels': {'kueue.x-k8s.io/prebuilt-workload-name': 'w'}}, " HAND "}",
	      "{" JOBSET ", 'metadata': {'name': 'a', 'finalizers': ['orphan'], "
	      "'labels': {'kueue.x-k8s.io/prebuilt-workload-name': 'w'}}, " HAND "}");
	again(test_kind("jobset"),
	      "{" JOBSET ", 'metadata': {'name': 'a', 'uid': 'u', 'labels': 1}, 'spec': 2}",
	      "{" JOBSET ", 'metadata': {'name': 'a', 'labels': 1}, 'spec': 2}");
}

/* If a name is taken, the job gets another suffix. It replaces a suffix that kxfs gave earlier. */
static void test_ready_renamed(void **state)
{
	static const char *const names[][2] = {
		{"mine", "mine-mqkf5pcm9b1ch"},
		{"trainer-v5mn39x7hrcl7", "trainer-mqkf5pcm9b1ch"},
		{"trainer-large", "trainer-large-mqkf5pcm9b1ch"},
		{"a23456789012345678901234567890123456789012345678901234567890123",
		 "a23456789012345678901234567890123456789012345678-mqkf5pcm9b1ch"},
	};
	struct spec_manifest_request rq = request(&spec_volcano);

	rq.identity.rename = true;
	for (size_t i = 0; i < array_size(names); i++) {
		cleanup(spec_manifest_freep) struct spec_manifest *m = NULL;
		struct spec_errors e = SPEC_ERRORS_INIT;
		cleanup_free char *text = text_print(VOLCANO "metadata: {name: %s}\n", names[i][0]);

		assert_int_equal(spec_manifest_make(text, strlen(text), &rq, &m, &e), 0);
		assert_string_equal(m->id, names[i][1]);
		assert_non_null(strstr(m->json, names[i][1]));
		assert_true(strlen(m->id) <= 63);
		assert_false(m->named);
	}
}

#define WRAPPER(name, wrapped)                                                                     \
	"apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: " name     \
	"}\nspec: {components: [{template: {apiVersion: v1, kind: Pod, metadata: " wrapped         \
	"}}]}\n"

/* A name with a suffix identifies the job wherever it occurs, so all occurrences are changed. */
static void test_ready_renamed_inside(void **state)
{
	struct spec_manifest_request rq = request(&spec_appwrapper);
	static const char text[] =
		WRAPPER("a-v5mn39x7hrcl",
			"{name: a-v5mn39x7hrcl-1-0}, spec: {subdomain: a-v5mn39x7hrcl, c: 1, "
			"args: ['a-v5mn39x7hrcl-0.a-v5mn39x7hrcl:9', ba-v5mn39x7hrcl, "
			"a-v5mn39x7hrcl7, /x/a-v5mn39x7hrcl/a-v5mn39x7hrclz, a]}");

	rq.identity.rename = rq.identity.old_exists = true;
	/* The new name is not longer than the old one, so names that contain it fit as well. */
	assert_string_equal(made(&rq, text, NAME), "a-mqkf5pcm9b1c");
	assert_string_equal(made(&rq, text, "/spec/components/0/template/metadata/name"),
			    "a-mqkf5pcm9b1c-1-0");
	assert_string_equal(made(&rq, text, "/spec/components/0/template/spec"),
			    "{'subdomain':'a-mqkf5pcm9b1c','c':1,'args':["
			    "'a-mqkf5pcm9b1c-0.a-mqkf5pcm9b1c:9','ba-v5mn39x7hrcl',"
			    "'a-v5mn39x7hrcl7','/x/a-mqkf5pcm9b1c/a-v5mn39x7hrclz','a']}");
}

/*
 * Any other name may be a common word, so names that only contain it are kept. Such an object can't
 * exist twice.
 */
static void test_ready_beside(void **state)
{
	struct spec_manifest_request rq = request(&spec_appwrapper);
	static const char named[] = WRAPPER("train", "{generateName: train-}, args: [train]");

	rq.identity.rename = rq.identity.old_exists = true;
	assert_string_equal(refuse(&rq, WRAPPER("train", "{name: train-0}, args: [train]"),
				   -EEXIST),
			    "f:3:18: metadata.name: the existing job train already contains Pod "
			    "train-0. Choose other names for the job and for this object. Nothing "
			    "was launched\n");
	(void)refuse(&rq, WRAPPER("a-v5mn39x7hrcl", "{name: worker}"), -EEXIST);
	assert_string_equal(made(&rq, named, NAME), "train-mqkf5pcm9b1ch");
	assert_string_equal(made(&rq, named, "/spec/components/0/template/args"), "['train']");
	rq.identity.old_exists = false;
	assert_non_null(made(&rq, WRAPPER("train", "{name: train-0}"), NAME));
}

static void test_ready_refused(void **state)
{
#define ONLY_VOLCANO                                                                               \
	", which kxfs can't submit here: write an AppDef, or a manifest of Job "                   \
	"(batch.volcano.sh/v1alpha1)"
#define NO_PREFIX                                                                                  \
	": metadata.generateName: must be the beginning of a name: lower-case letters, digits, "   \
	"dashes and dots\n"
	static const char *const table[][2] = {
		{"kind: Job\nmetadata: {name: a}\n",
		 "f:1:1: apiVersion: is missing from the manifest\n"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
		 "f:2:7: kind: is Pod of v1" ONLY_VOLCANO "\n"},
		{"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n",
		 "f:2:7: kind: is CronJob of batch/v1" ONLY_VOLCANO "; copy "
		 "spec.jobTemplate.spec of the CronJob to a Job\n"},
		{"apiVersion: workload.codeflare.dev/v1beta1\nkind: AppWrapper\nmetadata: {name: "
		 "a}\n",
		 "f:2:7: kind: is AppWrapper of workload.codeflare.dev/v1beta1" ONLY_VOLCANO "\n"},
		{VOLCANO, "f:1:1: metadata: is missing from the manifest\n"},
		{VOLCANO "metadata: []\n", "f:3:11: metadata: must be a map\n"},
		{VOLCANO "metadata: {}\n",
		 "f:3:11: metadata.name: is missing from the manifest, and "
		 "so is generateName\n"},
		{VOLCANO "metadata: {name: a/b}\n",
		 "f:3:18: metadata.name: must be 1 to 63 lower-case letters, digits, dashes and "
		 "dots; the name, and each part between dots, must begin and end with a letter or "
		 "digit\n"},
		{VOLCANO "metadata: {name: 12}\n", "f:3:18: metadata.name: must be text\n"},
		{VOLCANO "metadata: {generateName: A-b}\n", "f:3:26" NO_PREFIX},
		{VOLCANO "metadata: {generateName: '-'}\n", "f:3:26" NO_PREFIX},
		{VOLCANO "metadata: {name: a, generateName: a_}\n", "f:3:35" NO_PREFIX},
		{VOLCANO "metadata: {generateName: yes}\n",
		 "f:3:26: metadata.generateName: must be text\n"},
		{VOLCANO "metadata: {name: a, namespace: other}\n",
		 "f:3:32: metadata.namespace: is \"other\", but this mount submits only to "
		 "namespace \"ns\"\n"},
		{VOLCANO "metadata: {name: a, annotations: 1}\n",
		 "f:3:34: metadata.annotations: must be a map\n"},
	};
	struct spec_manifest_request rq = request(&spec_volcano);

	for (size_t i = 0; i < array_size(table); i++)
		assert_string_equal(refuse(&rq, table[i][0], -EINVAL), table[i][1]);
}

static char *large_app(unsigned replicas, size_t arg)
{
	return text_print("%s  num_replicas: %u\n  args: ['%0*d']\n", APP, replicas, (int)arg, 0);
}

/* 900 replicas fit, and 2000 do not. The size is reported whether or not the object was created. */
static void test_size(void **state)
{
	struct spec_manifest_request rq = request(&spec_volcano);
	cleanup_free char *fits = large_app(900, 1), *many = large_app(2000, 1);
	cleanup_free char *huge = large_app(9999, 900000);
	unsigned long long size, limit, each;

	assert_non_null(made(&rq, fits, NAME));
	assert_int_equal(
		sscanf(refuse(&rq, many, -EFBIG),
		       "f:3:1: roles: the object would have %llu bytes, but the cluster stores "
		       "at most %llu; with %llu bytes per replica",
		       &size, &limit, &each),
		3);
	assert_int_equal(limit, SPEC_MAX_OBJECT);
	assert_true(size > limit && size / 2000 == each);
	assert_int_equal(sscanf(refuse(&rq, huge, -EFBIG),
				"f:3:1: roles: the object would have at least %llu bytes", &size),
			 1);
	assert_true(size > 9999ull * 900000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_kinds),  cmocka_unit_test(test_names),
		cmocka_unit_test(test_annotations),    cmocka_unit_test(test_positions),
		cmocka_unit_test(test_ready),	       cmocka_unit_test(test_user),
		cmocka_unit_test(test_ready_user),     cmocka_unit_test(test_no_user),
		cmocka_unit_test(test_size),	       cmocka_unit_test(test_ready_refused),
		cmocka_unit_test(test_ready_admitted), cmocka_unit_test(test_ready_by_hand),
		cmocka_unit_test(test_ready_renamed),  cmocka_unit_test(test_ready_renamed_inside),
		cmocka_unit_test(test_ready_beside),   cmocka_unit_test(test_values),
		cmocka_unit_test(test_taken),	       cmocka_unit_test(test_overlay),
		cmocka_unit_test(test_mcad_names),     cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
