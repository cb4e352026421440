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

static struct json_object *make(const struct spec_manifest_request *rq, const char *text)
{
	cleanup(spec_manifest_freep) struct spec_manifest *m = NULL;
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct json_object *ret, *metadata, *name;

	if (spec_manifest_make(text, strlen(text), rq, &m, &e) < 0) {
		char *errors cleanup_free = spec_errors_text(&e, "f");

		fail_msg("%s", errors);
	}
	assert_int_equal(strlen(m->json), m->json_len);
	ret = json_tokener_parse(m->json);
	assert_non_null(ret);
	assert_true(json_object_object_get_ex(ret, "metadata", &metadata));
	assert_true(json_object_object_get_ex(metadata, "name", &name));
	assert_string_equal(json_object_get_string(name), m->id);
	return ret;
}

/* Return the errors of TEXT, one per line. */
static char *refuse(const struct spec_manifest_request *rq, const char *text, int err)
{
	struct spec_manifest *m = NULL;
	struct spec_errors e = SPEC_ERRORS_INIT;
	char *ret;

	assert_int_equal(spec_manifest_make(text, strlen(text), rq, &m, &e), err);
	assert_null(m);
	assert_int_equal(e.err, err);
	ret = spec_errors_text(&e, "f");
	assert_non_null(ret);
	spec_errors_clear(&e);
	return ret;
}

static struct json_object *member(struct json_object *o, const char *a, const char *b)
{
	struct json_object *inner = NULL, *ret = NULL;

	if (json_object_object_get_ex(o, a, &inner))
		json_object_object_get_ex(inner, b, &ret);
	return ret;
}

static const char *text_of(struct json_object *o, const char *a, const char *b)
{
	return json_object_get_string(member(o, a, b));
}

static void test_names(void **state)
{
	struct spec_manifest_request volcano = request(&spec_volcano), mcad = request(&spec_mcad);
	struct json_object *a = make(&volcano, APP), *b = make(&mcad, APP);
	char suffix[SPEC_SUFFIX_MAX], name[64];

	spec_name_suffix(volcano.identity.random[0], suffix);
	snprintf(name, sizeof(name), "app-%s", suffix);
	assert_string_equal(text_of(a, "metadata", "name"), name);
	assert_null(member(a, "metadata", "namespace"));
	assert_int_equal(strlen(text_of(b, "metadata", "name")), strlen("app-") + 14);
	assert_string_equal(text_of(b, "metadata", "namespace"), "ns");
	json_object_put(a);
	json_object_put(b);
	/* If the random numbers are all zero, names are still valid, and as long as documented. */
	mcad.identity.random[0] = mcad.identity.random[1] = 0;
	b = make(&mcad, APP);
	assert_memory_equal(text_of(b, "metadata", "name"), "app", 3);
	json_object_put(b);
}

static void test_annotations(void **state)
{
	struct spec_manifest_request rq = request(&spec_mcad);
	struct json_object *o = make(&rq, APP), *notes;
	char *large cleanup_free = malloc(SPEC_MAX_APPDEF_NOTE + sizeof(APP));

	notes = member(o, "metadata", "annotations");
	assert_int_equal(json_object_object_length(notes), 3);
	assert_string_equal(json_object_get_string(json_object_object_get(notes, "kxfs/appdef")),
			    APP);
	assert_string_equal(json_object_get_string(json_object_object_get(notes, "kxfs/submitter")),
			    "ada@login1");
	assert_string_equal(json_object_get_string(
				    json_object_object_get(notes, "kxfs/submission")),
			    "uuid");
	json_object_put(o);

	assert_non_null(large);
	strcpy(large, APP);
	memset(large + strlen(APP), '#', SPEC_MAX_APPDEF_NOTE);
	large[SPEC_MAX_APPDEF_NOTE] = '\0';
	o = make(&rq, large);
	notes = member(o, "metadata", "annotations");
	assert_non_null(json_object_object_get(notes, "kxfs/appdef"));
	json_object_put(o);
	strcat(large, "#");
	o = make(&rq, large);
	notes = member(o, "metadata", "annotations");
	assert_null(json_object_object_get(notes, "kxfs/appdef"));
	assert_int_equal(strlen(json_object_get_string(
				 json_object_object_get(notes, "kxfs/appdef-sha256"))),
			 64);
	json_object_put(o);

	o = make(&rq, APP "scheduler_args: {no_annotations: true}\n");
	assert_null(member(o, "metadata", "annotations"));
	json_object_put(o);
}

/* All errors are reported together, each with its position. */
static void test_positions(void **state)
{
	struct spec_manifest_request rq = request(&spec_volcano);
	char *text cleanup_free = NULL;

	text = refuse(&rq,
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
		      -EINVAL);
	assert_string_equal(text, "f:4:10: roles[0].image: is the id of a local image; set the run "
				  "option image_repo to the repository that has this image\n"
				  "f:6:17: roles[0].retry_policy: Volcano does not support "
				  "HOT_SPARE: use APPLICATION or REPLICA, or max_retries: 0\n"
				  "f:8:11: roles[0].mounts: /dev/shm is mounted twice: every "
				  "pod has a memory volume there\n"
				  "f:12:43: roles[1].metadata.kubernetes.spec.volumes: must be "
				  "a list, as in the pod, but is a map\n");
	free(text);
	text = refuse(&rq, APP "scheduler: mcad\n", -EINVAL);
	assert_string_equal(text, "f:7:12: scheduler: is mcad, but this mount submits jobs to "
				  "volcano\n");
	free(text);
	rq.n_options = 0;
	text = refuse(&rq, APP, -EINVAL);
	assert_memory_equal(text, "f: scheduler_args.queue: ", 25);
}

/* What the API server would refuse later is refused here, for either kind. */
static void test_values(void **state)
{
	static const char *const cases[][2] = {
		{"image: ' i', entrypoint: e", "image: must not begin or end with a space"},
		{"image: i, entrypoint: e, mounts: [{type: bind, src_path: /a/../b, dst_path: /x}]",
		 "mounts: /a/../b: a path of the host must not contain \"..\""},
		{"image: i, entrypoint: e, mounts: ['type=volume,src=c,dst=/a:b']",
		 "mounts: /a:b: a path in the container must not contain \":\""},
		{"image: i, entrypoint: e, mounts: ['type=volume,src=c,dst=/a', "
		 "'type=device,src=/a']",
		 "mounts: /a is mounted twice"},
		{"image: i, entrypoint: e, resource: {cpu: 1, gpu: 0, memMB: 1, devices: {fpga: "
		 "1}}",
		 "resource.devices.fpga: \"fpga\" is not a resource"},
		{"image: i, entrypoint: e, resource: {cpu: 1, gpu: 0, memMB: 1, devices: {'a/b c': "
		 "1}}",
		 "resource.devices[\"a/b c\"]: \"a/b c\" is not a resource"},
		{"image: i, entrypoint: e, mounts: ['type=volume,src=c,dst=/a', "
		 "'type=volume,src=d,dst=/a/']",
		 "mounts: /a is mounted twice"},
		{"image: i, entrypoint: e, mounts: ['type=volume,src=c,dst=/dev/shm/']",
		 "mounts: /dev/shm is mounted twice: every pod has a memory volume there"},
		{"image: i, entrypoint: e, resource: {cpu: 1, gpu: 1, memMB: 1, devices: "
		 "{nvidia.com/gpu: 2}}",
		 "resource.devices[\"nvidia.com/gpu\"]: is 2, but gpu is 1, and both mean the "
		 "same: leave one out"},
		{"image: i, entrypoint: e, resource: {cpu: 1, gpu: 1, memMB: 1, devices: "
		 "{hugepages-2Mi: 3}}",
		 "resource.devices.hugepages-2Mi: is a number of bytes, and must be a multiple "
		 "of the page size, 2097152"},
		{"image: i, entrypoint: e, resource: {cpu: 1, gpu: 1, memMB: 1, devices: "
		 "{hugepages-9999999Ei: 3}}",
		 "is a number of bytes, and must be a multiple of "},
		{"image: i, entrypoint: e, resource: {cpu: -1, gpu: 1, memMB: -1, devices: "
		 "{hugepages-2Mi: 4194304}}",
		 "resource.devices.hugepages-2Mi: can't be requested without cpu or memMB: set one of them"},
		{"image: i, entrypoint: e, resource: {cpu: 1, gpu: 1, memMB: 1, devices: "
		 "{hugepages-x: 3}}",
		 "\"hugepages-x\" is not a resource"},
		{"image: i, entrypoint: e, resource: {cpu: 1, gpu: 1, memMB: 1, devices: "
		 "{requests.nvidia.com/gpu: 3}}",
		 "\"requests.nvidia.com/gpu\" is not a resource"},
		{"image: i, entrypoint: e, resource: {cpu: 4, gpu: 0, memMB: 1, devices: {cpu: 0}}",
		 "resource.devices.cpu: is a limit of 0, which is less than the request in "
		 "cpu: leave one out"},
		{"image: i, entrypoint: e, resource: {cpu: 4, gpu: 0, memMB: 20000, devices: "
		 "{memory: 5}}",
		 "resource.devices.memory: is a limit of 5, which is less than the request in memMB"},
		{"image: i, entrypoint: e, metadata: {kubernetes: {spec: {'__put__:': 1}}}",
		 "must have the name of a field after the operator"},
		{"image: i, entrypoint: e, env: {A: '[FIELD_PATH]'}", "env.A: names no field"},
		{"image: i, entrypoint: e, env: {A: '[FIELD_PATH]spec.node'}",
		 "env.A: \"spec.node\" is not a pod field that a variable can contain"},
		{"image: i, entrypoint: e, env: {A: '[FIELD_PATH]metadata.${replica_id}'}",
		 "env.A: \"metadata.0\" is not a pod field"},
		{"image: i, entrypoint: e, env: {A: '[FIELD_PATH]metadata.labels'}",
		 "env.A: \"metadata.labels\" is not a pod field"},
		{"image: i, entrypoint: e, env: {A: \"[FIELD_PATH]metadata.labels['a']b\"}",
		 "env.A: \"metadata.labels['a']b\" is not a pod field"},
		{"image: i, entrypoint: e, metadata: {kubernetes: {kind: Job}}",
		 "metadata.kubernetes.kind: a pod overlay can have only metadata and spec"},
		{"image: i, entrypoint: e, metadata: {kubernetes: {V1Pod: {apiVersion: v2}}}",
		 "metadata.kubernetes.V1Pod.apiVersion: a pod overlay can have only metadata "
		 "and spec"},
	};

	for (size_t i = 0; i < 2 * array_size(cases); i++) {
		struct spec_manifest_request rq = request(test_table_of_kinds()->v[i % 2]);
		char *document cleanup_free = NULL, *text cleanup_free = NULL;

		assert_true(asprintf(&document, "name: a\nroles: [{name: r, %s}]\n",
				     cases[i / 2][0]) > 0);
		text = refuse(&rq, document, -EINVAL);
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
	const struct spec_kind *const kinds[] = {&spec_appwrapper, test_kind("job")};
	struct spec_manifest_request rq = request(NULL);
	static const struct {
		const char *scheduler, *kind;
	} cases[] = {
		{"", "AppWrapper"},
		{"scheduler: mcad\n", "AppWrapper"},
		{"scheduler: job\n", "Job"},
		{"scheduler: kubernetes_mcad\n", "AppWrapper"},
	};
	struct spec_pair options[] = {{(char[]){"queue"}, (char[]){"q"}},
				      {(char[]){"coscheduler_name"}, (char[]){"c"}},
				      {(char[]){"ttl"}, (char[]){"1d"}}};

	rq.kinds = kinds;
	rq.n_kinds = array_size(kinds);
	rq.options = options;
	rq.n_options = array_size(options);
	for (size_t i = 0; i < array_size(cases); i++) {
		char *text cleanup_free = NULL;
		struct json_object *made;

		assert_true(asprintf(&text,
				     "name: a\n%sroles: [{name: r, image: i, entrypoint: e}]\n",
				     cases[i].scheduler) > 0);
		made = make(&rq, text);
		assert_string_equal(json_object_get_string(json_object_object_get(made, "kind")),
				    cases[i].kind);
		json_object_put(made);
	}
	{
		char *text cleanup_free = refuse(
			&rq,
			"name: a\nscheduler: jobset\nroles: [{name: r, image: i, entrypoint: e}]\n",
			-EINVAL);

		assert_string_equal(text, "f:2:12: scheduler: is jobset, which this mount does not "
					  "show; this mount submits jobs to appwrapper, job\n");
	}
	{
		char *text cleanup_free =
			refuse(&rq,
			       "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
			       "metadata: {name: a}\n",
			       -EINVAL);

		assert_string_equal(
			text, "f:2:7: kind: is JobSet of jobset.x-k8s.io/v1alpha2, which kxfs "
			      "can't submit here: write an AppDef, or a manifest of AppWrapper "
			      "(workload.codeflare.dev/v1beta2) or Job (batch/v1)\n");
	}
	{
		const struct spec_kind *const only[] = {test_kind("rayjob")};
		char *text cleanup_free = NULL;

		rq.kinds = only;
		rq.n_kinds = 1;
		text = refuse(
			&rq,
			"name: a\nscheduler: mcad\nroles: [{name: r, image: i, entrypoint: e}]\n",
			-EINVAL);
		assert_non_null(strstr(text, "for RayJobs, write a Kubernetes manifest"));
	}
	rq.n_kinds = 0;
	{
		char *text cleanup_free =
			refuse(&rq, "name: a\nroles: [{name: r, image: i, entrypoint: e}]\n",
			       -EOPNOTSUPP);

		assert_non_null(strstr(text, "no kind of job that this user may list"));
	}
}

static struct json_object *pod_of(struct json_object *job, size_t task)
{
	struct json_object *tasks = member(job, "spec", "tasks");

	return json_object_object_get(json_object_array_get_idx(tasks, task), "template");
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
	char *text cleanup_free = refuse(&volcano, taken, -EINVAL);

	json_object_put(make(&volcano, fine));
	json_object_put(make(&mcad, fine));
	json_object_put(make(&mcad, taken));
	assert_string_equal(text, "f:2:52: roles[0].mounts: /etc/volcano is mounted twice: Volcano "
				  "mounts the list of the job's hosts there\n");
}

/* An overlay names its kind, and may contain macros. */
static void test_overlay(void **state)
{
	struct spec_manifest_request rq = request(&spec_volcano);
	struct json_object *o = make(
		&rq,
		"name: a\nroles: [{name: r, image: i, entrypoint: e, num_replicas: 2, metadata: "
		"{kubernetes: {apiVersion: v1, kind: Pod, spec: {a: ['${app_id}-$replica_id', "
		"{b: '$$'}, $no, 1]}}}}]\n");

	for (unsigned k = 0; k < 2; k++) {
		struct json_object *pod = pod_of(o, k);
		char *wanted cleanup_free =
			text_print("[\"a-%s-%u\",{\"b\":\"$\"},\"$no\",1]", "mqkf5pcm9b1ch", k);

		assert_int_equal(json_object_object_length(pod), 2);
		assert_string_equal(json_object_to_json_string_ext(member(pod, "spec", "a"),
								   JSON_C_TO_STRING_PLAIN),
				    wanted);
	}
	json_object_put(o);
}

/* MCAD's names, in whatever characters, and roles that differ only in a label. */
static void test_mcad_names(void **state)
{
	struct spec_manifest_request rq = request(&spec_mcad);
	char *kanji cleanup_free = NULL, *roles cleanup_free = NULL, *text cleanup_free = NULL;
	const char *id;
	struct json_object *o;
	char long_name[64];

	for (int i = 0; i < 47; i++)
		text_set(&kanji, "%s\u65e5", kanji ? kanji : "");
	text_set(&kanji, "name: %sabc\nroles: [{name: r, image: i, entrypoint: e}]\n", kanji);
	o = make(&rq, kanji);
	id = text_of(o, "metadata", "name");
	assert_memory_equal(id, "abc-", 4);
	assert_int_equal(strlen(id), 4 + 8);
	json_object_put(o);
	memset(long_name, 'x', 63);
	long_name[63] = '\0';
	assert_true(asprintf(&roles,
			     "name: a\nroles:\n- {name: %sa, image: i, entrypoint: e}\n"
			     "- {name: %sb, image: i, entrypoint: e}\n",
			     long_name, long_name) > 0);
	text = refuse(&rq, roles, -EINVAL);
	assert_memory_equal(text,
			    "f:4:10: roles[1].name: would have the same label as roles[0], \"xxx",
			    62);
}

/* Names are checked by the kind's rules, whether or not the document names the kind. */
static void test_long_names(void **state)
{
	static const char text[] = "name: a123456789a123456789a123456789a123456789a123456789\n"
				   "roles: [{name: r, image: i, entrypoint: e}]\n";
	struct spec_manifest_request volcano = request(&spec_volcano), mcad = request(&spec_mcad);
	struct json_object *made = make(&mcad, text);
	char *errors cleanup_free = refuse(&volcano, text, -EINVAL);

	json_object_put(made);
	assert_memory_equal(errors, "f:1:7: name: pods of role \"r\" would have names of ", 50);
}

/* Return the user label of an object or a pod, or NULL if it has none. */
static const char *user_of(struct json_object *object)
{
	struct json_object *labels = member(object, "metadata", "labels"), *user = NULL;

	json_object_object_get_ex(labels, "kxfs/user", &user);
	return json_object_get_string(user);
}

/* Return the value in O at PATH, which consists of keys and indexes. */
static struct json_object *at(struct json_object *o, const char *path)
{
	struct json_object *ret = NULL;

	assert_int_equal(json_pointer_get(o, path, &ret), 0);
	return ret;
}

/*
 * For all kinds, the object and each pod of an AppDef have the label. An overlay can't change it.
 */
static void test_user(void **state)
{
	const struct {
		const struct spec_kind *kind;
		const char *pods[2];
	} kinds[] = {
		{&spec_volcano, {"/spec/tasks/0/template", "/spec/tasks/1/template"}},
		{&spec_mcad,
		 {"/spec/resources/GenericItems/0/generictemplate",
		  "/spec/resources/GenericItems/1/generictemplate"}},
		{&spec_appwrapper, {"/spec/components/0/template", "/spec/components/1/template"}},
		{test_kind("jobset"),
		 {"/spec/replicatedJobs/0/template/spec/template",
		  "/spec/replicatedJobs/1/template/spec/template"}},
	};
	static const char text[] =
		"name: app\nroles:\n"
		"- {name: a, image: i, entrypoint: e, metadata: {kubernetes: {metadata: {labels: "
		"{kxfs/user: bob, x: y}}}}}\n"
		"- {name: b, image: i, entrypoint: e}\n";

	for (size_t i = 0; i < array_size(kinds); i++) {
		struct spec_manifest_request rq = request(kinds[i].kind);
		struct json_object *o = make(&rq, text);

		assert_string_equal(user_of(o), "ada");
		for (size_t k = 0; k < 2; k++)
			assert_string_equal(user_of(at(o, kinds[i].pods[k])), "ada");
		json_object_put(o);
	}
}

#define VOLCANO "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"

static void test_ready(void **state)
{
	struct spec_manifest_request rq = request(&spec_volcano);
	struct json_object *o = make(&rq, VOLCANO "metadata:\n"
						  "  name: mine\n"
						  "  namespace: ns\n"
						  "  uid: x\n"
						  "  resourceVersion: '5'\n"
						  "  generation: 2\n"
						  "  creationTimestamp: '2026-11-21T09:08:40Z'\n"
						  "  selfLink: /x\n"
						  "  managedFields: [{manager: m}]\n"
						  "  ownerReferences: [{uid: y}]\n"
						  "  annotations: {a: b, kxfs/submission: old, "
						  "kxfs/appdef: old}\n"
						  "spec: {queue: x, c: 1.5, b: true}\n"
						  "status: {state: {}}\n");
	struct json_object *wanted = json_tokener_parse(
		"{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",\"metadata\":{"
		"\"name\":\"mine\",\"namespace\":\"ns\",\"annotations\":{\"a\":\"b\","
		"\"kxfs/submitter\":\"ada@login1\",\"kxfs/submission\":\"uuid\"},"
		"\"labels\":{\"kxfs/user\":\"ada\"}},"
		"\"spec\":{\"queue\":\"x\",\"c\":1.5,\"b\":true}}");

	if (!json_object_equal(o, wanted))
		fail_msg("%s", json_object_to_json_string(o));
	json_object_put(o);
	json_object_put(wanted);
	/* A ready manifest does not need the option for its queue. */
	rq.n_options = 0;
	o = make(&rq, VOLCANO "metadata: {name: mine}\n");
	json_object_put(o);
}

/*
 * A copy of somebody else's job gets our label, and so do its pods. Members that are not pods or
 * not maps do not change.
 */
static void test_ready_user(void **state)
{
	struct spec_manifest_request rq = request(&spec_volcano);
	struct json_object *o =
		make(&rq,
		     VOLCANO "metadata: {name: mine, labels: {kxfs/user: bob, a: b}}\n"
			     "spec: {tasks: [{template: {metadata: {labels: {kxfs/user: bob}}}}, "
			     "{template: {spec: {}}}, {template: 1}, 2, "
			     "{template: {metadata: {labels: []}}}]}\n");

	assert_string_equal(user_of(o), "ada");
	assert_string_equal(json_object_get_string(at(o, "/metadata/labels/a")), "b");
	assert_string_equal(user_of(at(o, "/spec/tasks/0/template")), "ada");
	assert_string_equal(user_of(at(o, "/spec/tasks/1/template")), "ada");
	assert_int_equal(json_object_get_int(at(o, "/spec/tasks/2/template")), 1);
	assert_true(json_object_is_type(at(o, "/spec/tasks/4/template/metadata/labels"),
					json_type_array));
	json_object_put(o);

	rq = request(&spec_mcad);
	o = make(&rq, "apiVersion: workload.codeflare.dev/v1beta1\nkind: AppWrapper\n"
		      "metadata: {name: mine, labels: null}\n"
		      "spec: {resources: {GenericItems: [{generictemplate: {kind: Service}}, "
		      "{generictemplate: {kind: Pod}}]}}\n");
	assert_string_equal(user_of(o), "ada");
	assert_null(user_of(at(o, "/spec/resources/GenericItems/0/generictemplate")));
	assert_string_equal(user_of(at(o, "/spec/resources/GenericItems/1/generictemplate")),
			    "ada");
	json_object_put(o);

	/* kxfs creates the maps in which the labels are missing. It finds templates in a map. */
	rq = request(test_kind("workflow"));
	o = make(&rq, "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n"
		      "metadata: {name: mine}\nspec: {entrypoint: a}\n");
	assert_string_equal(user_of(o), "ada");
	assert_string_equal(json_object_get_string(
				    member(at(o, "/spec/podMetadata"), "labels", "kxfs/user")),
			    "ada");
	json_object_put(o);
	rq = request(test_kind("pytorchjob"));
	o = make(&rq,
		 "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: mine}\n"
		 "spec: {pytorchReplicaSpecs: {Master: {template: {}}, Worker: {template: {}}}}");
	assert_string_equal(user_of(at(o, "/spec/pytorchReplicaSpecs/Worker/template")), "ada");
	json_object_put(o);
}

/*
 * An option leaves the object as TorchX creates it. It is refused if the mount finds its jobs by
 * the label.
 */
static void test_no_user(void **state)
{
	struct spec_pair bare[] = {{(char[]){"no_annotations"}, (char[]){"true"}}};
	struct spec_manifest_request rq = request(&spec_mcad);
	char *text cleanup_free = NULL;
	struct json_object *o = make(&rq, APP "scheduler_args: {no_annotations: true}\n");

	assert_null(member(o, "metadata", "labels"));
	assert_null(user_of(at(o, "/spec/resources/GenericItems/0/generictemplate")));
	json_object_put(o);
	rq.options = bare;
	rq.n_options = 1;
	o = make(&rq, "apiVersion: workload.codeflare.dev/v1beta1\nkind: AppWrapper\n"
		      "metadata: {name: mine, labels: {kxfs/user: bob}}\n");
	assert_null(user_of(o));
	json_object_put(o);

	rq.mine = true;
	text = refuse(&rq, APP, -EINVAL);
	assert_string_equal(text, "f: scheduler_args.no_annotations: leaves out the label "
				  "kxfs/user, which a mount with -o mine needs to find its "
				  "jobs: remove no_annotations\n");
	o = make(&rq, APP "scheduler_args: {no_annotations: false}\n");
	assert_string_equal(user_of(o), "ada");
	json_object_put(o);
}

/*
 * Submit the live OBJECT again for KIND, and assert that the manifest is WANTED. In both, '
 * replaces ".
 */
static void again(const struct spec_kind *kind, const char *object, const char *wanted)
{
	struct spec_manifest_request rq = request(kind);
	cleanup_free char *text = text_print("%s", wanted);
	struct json_object *o, *want;

	for (char *p = text; (p = strchr(p, '\''));)
		*p = '"';
	rq.n_options = 0;
	rq.identity.user = NULL;
	o = make(&rq, object);
	json_object_object_del(member(o, "metadata", "annotations"), "kxfs/submitter");
	json_object_object_del(member(o, "metadata", "annotations"), "kxfs/submission");
	want = json_tokener_parse(text);
	assert_non_null(want);
	if (!json_object_equal(o, want))
		fail_msg("%s", json_object_to_json_string(o));
	json_object_put(o);
	json_object_put(want);
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
	      "{'kueue.x-k8s.io/queue-name': 'team'}, 'annotations': {}}, 'spec': "
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
	      "{" MCAD ", 'metadata': {'name': 'a', 'annotations': {}}, 'spec': {'schedulingSpec': "
	      "{'requeuing': {'maxNumRequeuings': 2}}, 'resources': {'GenericItems': []}}}");
	again(test_kind("workflow"),
	      "{" WORKFLOW ", 'metadata': {'name': 'a', 'uid': 'u', 'labels': {'b': 'c', "
	      "'workflows.argoproj.io/completed': 'true', 'kxfs/user': 'bob', "
	      "'workflows.argoproj.io/phase': 'Failed'}}, 'spec': {'shutdown': 'Stop', "
	      "'suspend': true, 'podMetadata': {'labels': {'kxfs/user': 'bob'}}}}",
	      "{" WORKFLOW ", 'metadata': {'name': 'a', 'labels': {'b': 'c'}, 'annotations': {}}, "
	      "'spec': {'podMetadata': {'labels': {}}}}");
	again(test_kind("pytorchjob"),
	      "{" PYTORCHJOB ", 'metadata': {'name': 'a', 'uid': 'u'}, 'spec': {'runPolicy': "
	      "{'suspend': true, 'backoffLimit': 1}}}",
	      "{" PYTORCHJOB
	      ", 'metadata': {'name': 'a', 'annotations': {}}, 'spec': {'runPolicy': "
	      "{'backoffLimit': 1}}}");
	again(test_kind("sparkapplication"),
	      "{" SPARK ", 'metadata': {'name': 'a', 'uid': 'u'}, 'spec': {'suspend': false, "
	      "'driver': {'cores': 1, 'annotations': {'kueue.x-k8s.io/workload': 'w'}, 'template': "
	      "{'spec': {'schedulingGates': [{'name': 'kueue.x-k8s.io/topology'}]}}}, "
	      "'executor': {'annotations': {'b': 'c', 'kueue.x-k8s.io/workload': 'w'}, 'labels': "
	      "{'kueue.x-k8s.io/podset': 'executor', 'kueue.x-k8s.io/local-queue-name': 'team', "
	      "'kueue.x-k8s.io/cluster-queue-name': 'all', 'd': 'e'}}}}",
	      "{" SPARK ", 'metadata': {'name': 'a', 'annotations': {}}, 'spec': {'driver': "
	      "{'cores': 1, 'annotations': {}, 'template': {'spec': {'schedulingGates': []}}}, "
	      "'executor': {'annotations': {'b': 'c'}, 'labels': {'d': 'e'}}}}");
	again(test_kind("job"),
	      "{" JOB ", 'metadata': {'name': 'a', 'uid': 'u'}, 'spec': "
	      "{'activeDeadlineSeconds': 0}}",
	      "{" JOB ", 'metadata': {'name': 'a', 'annotations': {}}, 'spec': {}}");
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
	      "'labels': {'kueue.x-k8s.io/prebuilt-workload-name': 'w'}, "
	      "'annotations': {}}, " HAND "}");
	again(test_kind("jobset"),
	      "{" JOBSET ", 'metadata': {'name': 'a', 'uid': 'u', 'labels': 1}, 'spec': 2}",
	      "{" JOBSET ", 'metadata': {'name': 'a', 'labels': 1, 'annotations': {}}, 'spec': 2}");
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
		cleanup_free char *text = NULL;

		assert_true(asprintf(&text, VOLCANO "metadata: {name: %s}\n", names[i][0]) > 0);
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
	struct json_object *o, *want;

	rq.identity.rename = rq.identity.old_exists = true;
	o = make(&rq, WRAPPER("a-v5mn39x7hrcl",
			      "{name: a-v5mn39x7hrcl-1-0}, spec: {subdomain: a-v5mn39x7hrcl, c: 1, "
			      "args: ['a-v5mn39x7hrcl-0.a-v5mn39x7hrcl:9', ba-v5mn39x7hrcl, "
			      "a-v5mn39x7hrcl7, /x/a-v5mn39x7hrcl/a-v5mn39x7hrclz, a]}"));
	/* The new name is not longer than the old one, so names that contain it fit as well. */
	want = json_tokener_parse(
		"[{\"template\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
		"\"metadata\":{\"name\":\"a-mqkf5pcm9b1c-1-0\","
		"\"labels\":{\"kxfs/user\":\"ada\"}},"
		"\"spec\":{\"subdomain\":\"a-mqkf5pcm9b1c\",\"c\":1,\"args\":["
		"\"a-mqkf5pcm9b1c-0.a-mqkf5pcm9b1c:9\",\"ba-v5mn39x7hrcl\",\"a-v5mn39x7hrcl7\","
		"\"/x/a-mqkf5pcm9b1c/a-v5mn39x7hrclz\",\"a\"]}}}]");
	assert_string_equal(text_of(o, "metadata", "name"), "a-mqkf5pcm9b1c");
	if (!json_object_equal(member(o, "spec", "components"), want))
		fail_msg("%s", json_object_to_json_string(o));
	json_object_put(o);
	json_object_put(want);
}

/*
 * Any other name may be a common word, so names that only contain it are kept. Such an object can't
 * exist twice.
 */
static void test_ready_beside(void **state)
{
	struct spec_manifest_request rq = request(&spec_appwrapper);
	struct json_object *o;
	char *text;

	rq.identity.rename = rq.identity.old_exists = true;
	text = refuse(&rq, WRAPPER("train", "{name: train-0}, args: [train]"), -EEXIST);
	assert_string_equal(text, "f:3:18: metadata.name: the existing job train already contains "
				  "Pod train-0. Choose other names for the job and for this "
				  "object. Nothing was launched\n");
	free(text);
	free(refuse(&rq, WRAPPER("a-v5mn39x7hrcl", "{name: worker}"), -EEXIST));
	o = make(&rq, WRAPPER("train", "{generateName: train-}, args: [train]"));
	assert_string_equal(text_of(o, "metadata", "name"), "train-mqkf5pcm9b1ch");
	assert_non_null(strstr(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN),
			       "\"args\":[\"train\"]"));
	json_object_put(o);
	rq.identity.old_exists = false;
	json_object_put(make(&rq, WRAPPER("train", "{name: train-0}")));
}

static void test_ready_refused(void **state)
{
	static const char *const table[][2] = {
		{"kind: Job\nmetadata: {name: a}\n",
		 "f:1:1: apiVersion: is missing from the manifest\n"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
		 "f:2:7: kind: is Pod of v1, which kxfs can't submit here: write an AppDef, or "
		 "a manifest of Job (batch.volcano.sh/v1alpha1)\n"},
		{"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n",
		 "f:2:7: kind: is CronJob of batch/v1, which kxfs can't submit here: write an "
		 "AppDef, or a manifest of Job (batch.volcano.sh/v1alpha1); copy "
		 "spec.jobTemplate.spec of the CronJob to a Job\n"},
		{"apiVersion: workload.codeflare.dev/v1beta1\nkind: AppWrapper\nmetadata: {name: "
		 "a}\n",
		 "f:2:7: kind: is AppWrapper of workload.codeflare.dev/v1beta1, which kxfs "
		 "can't submit here: write an AppDef, or a manifest of Job "
		 "(batch.volcano.sh/v1alpha1)\n"},
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
		{VOLCANO "metadata: {generateName: A-b}\n",
		 "f:3:26: metadata.generateName: must be the beginning of a name: lower-case "
		 "letters, digits, dashes and dots\n"},
		{VOLCANO "metadata: {generateName: '-'}\n",
		 "f:3:26: metadata.generateName: must be the beginning of a name: lower-case "
		 "letters, digits, dashes and dots\n"},
		{VOLCANO "metadata: {name: a, generateName: a_}\n",
		 "f:3:35: metadata.generateName: must be the beginning of a name: lower-case "
		 "letters, digits, dashes and dots\n"},
		{VOLCANO "metadata: {generateName: yes}\n",
		 "f:3:26: metadata.generateName: must be text\n"},
		{VOLCANO "metadata: {name: a, namespace: other}\n",
		 "f:3:32: metadata.namespace: is \"other\", but this mount submits only to "
		 "namespace \"ns\"\n"},
		{VOLCANO "metadata: {name: a, annotations: 1}\n",
		 "f:3:34: metadata.annotations: must be a map\n"},
	};
	struct spec_manifest_request rq = request(&spec_volcano);

	for (size_t i = 0; i < array_size(table); i++) {
		char *text cleanup_free = refuse(&rq, table[i][0], -EINVAL);

		assert_string_equal(text, table[i][1]);
	}
}

static char *large_app(unsigned replicas, size_t arg)
{
	char *ret;

	assert_true(asprintf(&ret, "%s  num_replicas: %u\n  args: ['%0*d']\n", APP, replicas,
			     (int)arg, 0) > 0);
	return ret;
}

/* 900 replicas fit, and 2000 do not. The size is reported whether or not the object was created. */
static void test_size(void **state)
{
	struct spec_manifest_request rq = request(&spec_volcano);
	char *fits cleanup_free = large_app(900, 1), *many cleanup_free = large_app(2000, 1);
	char *huge cleanup_free = large_app(9999, 900000), *text cleanup_free = NULL;
	unsigned long long size, limit, each;
	struct json_object *o = make(&rq, fits);

	json_object_put(o);
	text = refuse(&rq, many, -EFBIG);
	assert_int_equal(
		sscanf(text,
		       "f:3:1: roles: the object would have %llu bytes, but the cluster stores "
		       "at most %llu; with %llu bytes per replica",
		       &size, &limit, &each),
		3);
	assert_int_equal(limit, SPEC_MAX_OBJECT);
	assert_true(size > limit && size / 2000 == each);
	free(text);
	text = refuse(&rq, huge, -EFBIG);
	assert_int_equal(sscanf(text, "f:3:1: roles: the object would have at least %llu bytes",
				&size),
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
