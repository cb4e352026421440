/* SPDX-License-Identifier: MIT */
/*
 * AppDefs: the meaning of each field, its default, and the error for a wrong value. Messages are
 * compared completely, because they are all that a user sees.
 */
#include <errno.h>
#include <time.h>

#include "spec/base/limits.h"
#include "tests/unit/spec/app-document.h"
#include "tests/unit/unit.h"

static struct spec_app *parse(const char *text)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;

	if (document_parse(text, strlen(text), "/var/ada", &app, &e) < 0)
		fail_msg("%s", spec_errors_text(&e, NULL));
	assert_int_equal(e.n, 0);
	return app;
}

/* Assert that TEXT is refused with the errors EXPECTED. */
static void check(const char *text, size_t len, int err, const char *expected)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;
	int got = document_parse(text, len, "/var/ada", &app, &e);
	char *errors = spec_errors_text(&e, NULL);

	assert_string_equal(errors, expected);
	assert_int_equal(got, err);
	assert_null(app);
	free(errors);
	spec_errors_clear(&e);
}

static void check_text(const char *text, const char *expected)
{
	check(text, strlen(text), -EINVAL, expected);
}

/* --- accepted documents --- */

static void test_defaults(void **state)
{
	struct spec_app *app =
		parse("name: hello\nroles:\n- {name: echo, image: i, entrypoint: e}\n");
	const struct spec_role *role = &app->roles[0];

	assert_string_equal(app->name, "hello");
	assert_int_equal(app->n_roles, 1);
	assert_null(app->scheduler);
	assert_null(app->scheduler_args);
	assert_string_equal(role->name, "echo");
	assert_string_equal(role->image, "i");
	assert_string_equal(role->entrypoint, "e");
	assert_int_equal(role->n_args, 0);
	assert_int_equal(role->env.n, 0);
	assert_int_equal(role->num_replicas, 1);
	assert_int_equal(role->min_replicas, -1);
	assert_int_equal(role->max_retries, 0);
	assert_int_equal(role->retry_policy, SPEC_RETRY_APPLICATION);
	assert_true(role->resource.cpu == -1 && role->resource.mem_mb == -1);
	assert_int_equal(role->resource.gpu, -1);
	assert_int_equal(role->port_map.n, 0);
	assert_int_equal(role->n_mounts, 0);
	assert_string_equal(role->metadata, "{}");
	spec_app_free(app);
}

static const char full[] =
	"name: Train_1\n"
	"scheduler: local\n"
	"scheduler_args: {queue: research, priority: 5, x: [yes, 1.5]}\n"
	"metadata: {team: vision, kubernetes: {VCJob: [1]}, run: 010}\n"
	"roles:\n"
	"- name: trainer\n"
	"  image: img:1\n"
	"  base_image: old\n"
	"  entrypoint: 7\n"
	"  args: [--lr, 1e-3, yes, 010, 'null', \"\", \"a\\tb\"]\n"
	"  env: {Z: 1, A: b=c, TRUE: true, D: 2024-01-01}\n"
	"  num_replicas: 4\n"
	"  min_replicas: 0\n"
	"  max_retries: 3\n"
	"  retry_policy: HOT_SPARE\n"
	"  resource: {cpu: 2.5, gpu: 0, memMB: 1e5, devices: {x/y: 4, z: 0},\n"
	"    capabilities: {node.kubernetes.io/instance-type: 42, n: {x: [1, yes]}}}\n"
	"  port_map: {http: 8080, longest-port-nm: 1}\n"
	"  mounts:\n"
	"  - {type: bind, src_path: /a, dst_path: /b, read_only: true}\n"
	"  - type=bind,src=~/x,dst=/d,type=volume,src=c,dst=/e,readonly\n"
	"  metadata: {kubernetes: {spec: {a: [1, '1', null]}}}\n"
	"- {name: reader, image: i, entrypoint: e, resource: gpu.small,\n"
	"   mounts: 'type=device,src=/dev/null'}\n";

static void test_full(void **state)
{
	static const char *const args[] = {"--lr", "1e-3", "yes", "010", "null", "", "a\tb"};
	static const char *const env[][2] = {{"Z", "1"},
					     {"A", "b=c"},
					     {"TRUE", "true"},
					     {"D", "2024-01-01"}};
	struct spec_app *app = parse(full);
	const struct spec_role *role = &app->roles[0];

	assert_int_equal(app->n_roles, 2);
	assert_string_equal(app->name, "Train_1");
	assert_string_equal(app->scheduler, "local");
	assert_string_equal(app->scheduler_args,
			    "{\"queue\":\"research\",\"priority\":5,\"x\":[\"yes\",1.5]}");
	assert_string_equal(role->entrypoint, "7");
	assert_int_equal(role->n_args, array_size(args));
	for (size_t i = 0; i < array_size(args); i++)
		assert_string_equal(role->args[i], args[i]);
	assert_int_equal(role->env.n, array_size(env));
	for (size_t i = 0; i < array_size(env); i++) {
		assert_string_equal(role->env.v[i].key, env[i][0]);
		assert_string_equal(role->env.v[i].value, env[i][1]);
	}
	assert_int_equal(role->num_replicas, 4);
	assert_int_equal(role->min_replicas, 0);
	assert_int_equal(role->max_retries, 3);
	assert_int_equal(role->retry_policy, SPEC_RETRY_HOT_SPARE);
	assert_int_equal(role->port_map.n, 2);
	assert_string_equal(role->port_map.v[0].key, "http");
	assert_int_equal(role->port_map.v[0].value, 8080);
	assert_string_equal(role->metadata, "{\"kubernetes\":{\"spec\":{\"a\":[1,\"1\",null]}}}");
	spec_app_free(app);
}

static void test_resources(void **state)
{
	struct spec_app *app = parse(full);
	const struct spec_resource *r = &app->roles[0].resource;

	assert_true(r->cpu == 2.5);
	assert_int_equal(r->gpu, 0);
	assert_true(r->mem_mb == 1e5);
	assert_int_equal(r->devices.n, 2);
	assert_string_equal(r->devices.v[0].key, "x/y");
	assert_int_equal(r->devices.v[0].value, 4);
	assert_int_equal(r->capabilities.n, 2);
	assert_string_equal(r->capabilities.v[0].value, "42");
	assert_string_equal(r->capabilities.v[1].value, "{\"x\":[1,\"yes\"]}");
	r = &app->roles[1].resource;
	assert_true(r->cpu == 8 && r->mem_mb == 32768);
	assert_int_equal(r->gpu, 1);
	spec_app_free(app);
}

static void test_mounts(void **state)
{
	struct spec_app *app = parse(full);
	const struct spec_role *role = &app->roles[0];

	assert_int_equal(role->n_mounts, 3);
	assert_string_equal(role->mounts[0].src, "/a");
	assert_true(role->mounts[0].read_only);
	assert_string_equal(role->mounts[1].src, "/var/ada/x");
	assert_int_equal(role->mounts[2].type, SPEC_MOUNT_VOLUME);
	assert_true(role->mounts[2].read_only);
	assert_int_equal(app->roles[1].n_mounts, 1);
	assert_string_equal(app->roles[1].mounts[0].permissions, "rwm");
	spec_app_free(app);
}

/* The JSON form has all fields, and is itself an AppDef. */
static void test_json(void **state)
{
	static const char expected[] =
		"{\"name\":\"a\",\"roles\":[{\"name\":\"r\",\"image\":\"i\",\"entrypoint\":\"e/f\","
		"\"args\":[\"\\u0007\",\"\x7f\"],\"env\":{},\"num_replicas\":1,\"max_retries\":0,"
		"\"retry_policy\":\"ROLE\",\"resource\":{\"cpu\":-1,\"gpu\":-1,\"memMB\":-1,"
		"\"capabilities\":{},\"devices\":{}},\"port_map\":{},\"mounts\":[],"
		"\"metadata\":{}}]}";
	struct spec_app *app =
		parse("name: a\nroles:\n- {name: r, image: i, entrypoint: e/f, retry_policy: ROLE, "
		      "args: [\"\\a\", \"\\x7f\"]}\n");
	char *text = spec_app_json(app), *again;

	assert_string_equal(text, expected);
	spec_app_free(app);
	free(text);

	app = parse(full);
	text = spec_app_json(app);
	spec_app_free(app);
	app = parse(text);
	again = spec_app_json(app);
	assert_string_equal(text, again);
	spec_app_free(app);
	free(text);
	free(again);
}

/* --- errors in one field --- */

/* Check a role that starts at line 6 and has FIELD as an additional field. */
static void check_role(const char *field, const char *expected)
{
	char text[2000];

	snprintf(text, sizeof(text),
		 "name: n\nroles:\n- name: r\n  image: i\n  entrypoint: e\n  %s\n", field);
	check_text(text, expected);
}

struct pair {
	const char *text, *expected;
};

static void check_roles(const struct pair *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_role(table[i].text, table[i].expected);
}

static void test_fields(void **state)
{
	static const struct pair table[] = {
		{"imgae: x", "6:3: roles[0].imgae: unknown field; did you mean image?\n"},
		{"replicas: 3", "6:3: roles[0].replicas: unknown field; did you mean "
				"num_replicas?\n"},
		{"command: x", "6:3: roles[0].command: unknown field; did you mean entrypoint?\n"},
		{"cmd: x", "6:3: roles[0].cmd: unknown field; did you mean entrypoint?\n"},
		{"volumes: []", "6:3: roles[0].volumes: unknown field; did you mean mounts?\n"},
		{"\"a b\": 1", "6:3: roles[0][\"a b\"]: unknown field; the fields here are name, "
			       "image, entrypoint, args, env, num_replicas, min_replicas, "
			       "max_retries, retry_policy, resource, port_map, mounts, metadata, "
			       "base_image, workspace, overrides\n"},
		{"image: j", "6:3: the key \"image\" is given twice; the first is at line 4\n"},
		{"args: --lr 0.1",
		 "6:9: roles[0].args: must be a list, not text; write each argument as a "
		 "separate item, as in [--lr, 0.1]: no shell splits them\n"},
		{"args: [a, [b], {c: d}, null, ]",
		 "6:13: roles[0].args[1]: must be text, not a list\n"
		 "6:18: roles[0].args[2]: must be text, not a map\n"
		 "6:26: roles[0].args[3]: must not be null; leave out a field that has no "
		 "value, or put \"null\" in quotes if you mean this text\n"},
		{"args:",
		 "6:8: roles[0].args: has no value; give a value, or leave the field out\n"},
		{"args: [\"a\\0\"]", "6:10: roles[0].args[0]: must not contain a NUL character\n"},
		{"env: [A=1]", "6:8: roles[0].env: must be a map, not a list; write NAME: VALUE\n"},
		{"env: {A: ~, B: [1]}",
		 "6:12: roles[0].env.A: must not be null; leave out a field that has no value, "
		 "or put \"~\" in quotes if you mean this text\n"
		 "6:18: roles[0].env.B: must be text, not a list\n"},
		{"env: {\"\": 1, A=B: 2, \"C\\n\": 3, \u00c4: 4}",
		 "6:9: roles[0].env[\"\"]: the name of a variable must not be empty\n"
		 "6:16: roles[0].env[\"A=B\"]: the name of a variable must not contain \"=\"\n"
		 "6:24: roles[0].env[\"C\\n\"]: the name of a variable may contain only "
		 "printable ASCII characters\n"
		 "6:34: roles[0].env[\"\u00c4\"]: the name of a variable may contain only "
		 "printable ASCII characters\n"},
		{"retry_policy: application",
		 "6:17: roles[0].retry_policy: there is no policy \"application\"; did you mean "
		 "APPLICATION?\n"},
		{"retry_policy: never",
		 "6:17: roles[0].retry_policy: there is no policy \"never\"; use APPLICATION, "
		 "REPLICA, ROLE or HOT_SPARE\n"},
		{"metadata: x", "6:13: roles[0].metadata: must be a map, not text; write NAME: "
				"VALUE\n"},
		{"metadata: {a: [b, \"\\0\"]}",
		 "6:21: roles[0].metadata.a[1]: must not contain a NUL character\n"},
	};

	check_roles(table, array_size(table));
}

static void test_numbers(void **state)
{
	static const struct pair table[] = {
		{"num_replicas: 0", "6:17: roles[0].num_replicas: must be at least 1, not 0\n"},
		{"num_replicas: -99999999999999999999",
		 "6:17: roles[0].num_replicas: must be at least 1, not -99999999999999999999\n"},
		{"num_replicas: 10001",
		 "6:17: roles[0].num_replicas: must be at most 10000, not 10001\n"},
		{"num_replicas: \"2\"", "6:17: roles[0].num_replicas: must be a whole number, not "
					"text; write 2 without quotes\n"},
		{"num_replicas: 1.5",
		 "6:17: roles[0].num_replicas: must be a whole number, not \"1.5\"\n"},
		{"num_replicas: true",
		 "6:17: roles[0].num_replicas: must be a whole number, not \"true\"\n"},
		{"num_replicas: [1]",
		 "6:17: roles[0].num_replicas: must be a whole number, not a list\n"},
		{"num_replicas: 010",
		 "6:17: roles[0].num_replicas: \"010\" is ambiguous, because some YAML parsers "
		 "read a number with a leading 0 as octal; remove the 0\n"},
		{"num_replicas: 1_000",
		 "6:17: roles[0].num_replicas: \"1_000\" is ambiguous, because some YAML "
		 "parsers skip the _; write only digits\n"},
		{"num_replicas: 0x10", "6:17: roles[0].num_replicas: \"0x10\" is not decimal; "
				       "write it as a decimal number\n"},
		{"num_replicas: 1:30",
		 "6:17: roles[0].num_replicas: \"1:30\" is ambiguous, because some YAML "
		 "parsers read it as a base-60 number; write a decimal number\n"},
		{"min_replicas: 2",
		 "6:17: roles[0].min_replicas: is 2, more than num_replicas, which is 1\n"},
		{"min_replicas: -1", "6:17: roles[0].min_replicas: must be at least 0, not -1\n"},
		{"max_retries: -1", "6:16: roles[0].max_retries: must be at least 0, not -1\n"},
		{"max_retries: 2147483648",
		 "6:16: roles[0].max_retries: must be at most 2147483647, not 2147483648\n"},
	};

	check_roles(table, array_size(table));
}

static void test_resource_errors(void **state)
{
	static const struct pair table[] = {
		{"resource: gpu.smal",
		 "6:13: roles[0].resource: there is no resource \"gpu.smal\"; did you mean "
		 "gpu.small?\n"},
		{"resource: large-one",
		 "6:13: roles[0].resource: there is no resource \"large-one\"; appdef(5) lists "
		 "them, or write a map: {cpu: 1, gpu: 0, memMB: 1024}\n"},
		{"resource: null",
		 "6:13: roles[0].resource: must not be null; leave out a field that has no "
		 "value, or put \"null\" in quotes if you mean this text\n"},
		{"resource: [1]", "6:13: roles[0].resource: must be text, not a list; write the "
				  "name of a resource, or a map: {cpu: 1, gpu: 0, memMB: 1024}\n"},
		{"resource: {cpu: 1}", "6:13: roles[0].resource: gpu is missing\n"
				       "6:13: roles[0].resource: memMB is missing\n"},
		{"resource: {cpu: .inf, gpu: 0.5, memMB: \"100\"}",
		 "6:19: roles[0].resource.cpu: \".inf\" is not a finite number\n"
		 "6:30: roles[0].resource.gpu: must be a whole number, not \"0.5\"\n"
		 "6:42: roles[0].resource.memMB: must be a number, not text; write 100 without "
		 "quotes\n"},
		{"resource: {cpu: 01.5, gpu: 3000000000, memMB: 1e13}",
		 "6:19: roles[0].resource.cpu: \"01.5\" is ambiguous, because some YAML "
		 "parsers read a number with a leading 0 as octal; remove the 0\n"
		 "6:30: roles[0].resource.gpu: must be at most 2147483647, not 3000000000\n"
		 "6:49: roles[0].resource.memMB: must be at most 1000000000000, not 1e13\n"},
		{"resource: {cpu: 1, gpu: 0, memmb: 1, memMB: 1}",
		 "6:30: roles[0].resource.memmb: unknown field; did you mean memMB?\n"},
		{"resource: {cpu: 1, gpu: 0, memMB: 1, devices: {a: -1, b: x}}",
		 "6:53: roles[0].resource.devices.a: must be at least 0, not -1\n"
		 "6:60: roles[0].resource.devices.b: must be a whole number, not \"x\"\n"},
		{"resource: {cpu: 1, gpu: 0, memMB: 1, capabilities: {a: null}}",
		 "6:58: roles[0].resource.capabilities.a: must not be null; leave out a field "
		 "that has no value, or put \"null\" in quotes if you mean this text\n"},
	};

	check_roles(table, array_size(table));
}

static void test_port_errors(void **state)
{
	static const struct pair table[] = {
		{"port_map: {a: 0, b: 65536, c: '80', d: http}",
		 "6:17: roles[0].port_map.a: must be at least 1, not 0\n"
		 "6:23: roles[0].port_map.b: must be at most 65535, not 65536\n"
		 "6:33: roles[0].port_map.c: must be a whole number, not text; write 80 without "
		 "quotes\n"
		 "6:42: roles[0].port_map.d: must be a whole number, not \"http\"\n"},
		{"port_map: {HTTP: 1, \"1\": 2, a-name-too-long-: 3, -a: 4, a--b: 5, \"\": 6}",
		 "6:14: roles[0].port_map.HTTP: the name of a port may contain only lower-case "
		 "letters, digits and -\n"
		 "6:23: roles[0].port_map.1: the name of a port must contain a letter\n"
		 "6:31: roles[0].port_map.a-name-too-long-: the name of a port must have at "
		 "most 15 characters\n"
		 "6:52: roles[0].port_map.-a: the name of a port must not begin or end with -, "
		 "or contain --\n"
		 "6:59: roles[0].port_map.a--b: the name of a port must not begin or end with "
		 "-, or contain --\n"
		 "6:68: roles[0].port_map[\"\"]: the name of a port must not be empty\n"},
	};

	check_roles(table, array_size(table));
}

static void test_mount_errors(void **state)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	static const char *const bad[] = {"mounts: {type: bind, src_path: /a, dst_path: /b}",
					  "mounts: ''", "mounts: [type=x]",
					  "mounts: [{type: tmpfs}]", "mounts: [null]"};

	for (size_t i = 0; i < array_size(bad); i++) {
		struct spec_app *app = NULL;
		char text[500];

		snprintf(text, sizeof(text),
			 "name: n\nroles:\n- name: r\n  image: i\n  entrypoint: e\n  %s\n", bad[i]);
		assert_int_equal(document_parse(text, strlen(text), NULL, &app, &e), -EINVAL);
		assert_int_equal(e.v[0].line, 6);
		assert_memory_equal(e.v[0].path, "roles[0].mounts", 15);
		spec_errors_clear(&e);
	}
}

/* --- errors in the whole document --- */

static void test_document(void **state)
{
	static const struct pair table[] = {
		{"", "the document is empty\n"},
		{"hello\n", "1:1: must be a map, not text; an AppDef begins with \"name: \"\n"},
		{"- name: a\n",
		 "1:1: must be a map, not a list; an AppDef begins with \"name: \"\n"},
		{"{}", "1:1: name is missing\n1:1: roles is missing\n"},
		{"name: a\nroles: []\n", "2:8: roles: must contain at least one role\n"},
		{"name: a\nroles: {r: {}}\n",
		 "2:8: roles: must be a list, not a map; begin each role with \"- name: \"\n"},
		{"name: a\nroles: [b, {}]\n",
		 "2:9: roles[0]: must be a map, not text; write a role as a map with name, image and entrypoint\n"
		 "2:12: roles[1]: name is missing\n"
		 "2:12: roles[1]: image is missing\n"
		 "2:12: roles[1]: entrypoint is missing\n"},
		{"name: a\nrole: []\nroles:\n- {name: r, image: \"\", entrypoint: ''}\n",
		 "2:1: role: unknown field; did you mean roles?\n"
		 "4:20: roles[0].image: must not be empty\n"
		 "4:36: roles[0].entrypoint: must not be empty\n"},
		{"name: a\nroles: x\nroles:\n- {name: a, name: b, image: i, entrypoint: e}\n",
		 "2:8: roles: must be a list, not text; begin each role with \"- name: \"\n"
		 "3:1: the key \"roles\" is given twice; the first is at line 2\n"
		 "4:13: the key \"name\" is given twice; the first is at line 4\n"},
		{"name: a\nscheduler: volcan\nmetadata: [a]\nscheduler_args: q\nroles:\n"
		 "- {name: r, image: i, entrypoint: e}\n",
		 "2:12: scheduler: there is no scheduler \"volcan\"; did you mean volcano?\n"
		 "4:17: scheduler_args: must be a map, not text; write NAME: VALUE\n"},
		{"name: a\nscheduler: slurm\nroles:\n- {name: r, image: i, entrypoint: e}\n",
		 "2:12: scheduler: there is no scheduler \"slurm\"; use volcano, mcad, "
		 "appwrapper or local\n"},
		{"name: a\nkind: Job\nroles:\n- {name: r, image: i, entrypoint: e}\n",
		 "2:1: kind: unknown field; the fields here are name, roles, metadata, scheduler, "
		 "scheduler_args\n"},
	};

	for (size_t i = 0; i < array_size(table); i++)
		check_text(table[i].text, table[i].expected);
}

static void test_names(void **state)
{
	static const struct pair table[] = {
		{"name: ___\nroles:\n- {name: '...', image: i, entrypoint: e}\n",
		 "1:7: name: must contain a letter or digit (A-Z, a-z, 0-9), because kxfs derives "
		 "the names of jobs and pods from this name\n3:10: roles[0].name: must contain a "
		 "letter or digit (A-Z, a-z, 0-9), because kxfs derives the names of jobs and pods "
		 "from this name\n"},
		{"name: \"\"\nroles:\n- {name: \"a\\nb\", image: i, entrypoint: e}\n",
		 "1:7: name: must not be empty\n"
		 "3:10: roles[0].name: must not contain control characters or line breaks\n"},
		{"name: a\nroles:\n- &r {name: a_b, image: i, entrypoint: e}\n- {<<: *r, name: "
		 "ab}\n- {<<: *r, name: AB}\n- *r\n",
		 "3:13: roles[3].name: roles[0] has the same name\n4:18: roles[1].name: \"ab\" and "
		 "roles[0], \"a_b\", would have the same task name, \"ab\", because kxfs keeps "
		 "only a-z, 0-9 and - of a name; rename one of these roles\n5:18: roles[2].name: "
		 "\"AB\" and roles[0], \"a_b\", would have the same task name, \"ab\", because "
		 "kxfs keeps only a-z, 0-9 and - of a name; rename one of these roles\n"},
	};

	for (size_t i = 0; i < array_size(table); i++)
		check_text(table[i].text, table[i].expected);
}

/*
 * A pod is named APP-SUFFIX-ROLE-K-INDEX, so app and role together may have at most 43 characters.
 */
static void test_pod_names(void **state)
{
	static const char a42[] = "abcdefghijabcdefghijabcdefghijabcdefghijab";
	char text[400];

	snprintf(text, sizeof(text), "name: %s\nroles:\n- {name: r, image: i, entrypoint: e}\n",
		 a42);
	spec_app_free(parse(text));
	/* Characters that are removed from names do not count. */
	snprintf(text, sizeof(text), "name: _%s_\nroles:\n- {name: R., image: i, entrypoint: e}\n",
		 a42);
	spec_app_free(parse(text));
	/* A second digit of K needs one character, and so does a second digit of the index. */
	snprintf(text, sizeof(text),
		 "name: %s\nroles:\n- {name: r, image: i, entrypoint: e, num_replicas: 11}\n", a42);
	check_text(text, "1:7: name: pods of role \"r\" would have names of 65 characters, but at "
			 "most 63 are allowed; shorten the names of the app and the role by a "
			 "total of 2 (a job's name has a suffix of 15 characters)\n");
	snprintf(text, sizeof(text),
		 "name: %s\nroles:\n- {name: r, image: i, entrypoint: e}\n- {name: role, image: i, "
		 "entrypoint: e}\n",
		 a42);
	check_text(text, "1:7: name: pods of role \"role\" would have names of 66 characters, but "
			 "at most 63 are allowed; shorten the names of the app and the role by a "
			 "total of 3 (a job's name has a suffix of 15 characters)\n");
	/* MCAD's names are truncated to fit. */
	snprintf(text, sizeof(text),
		 "name: %s%s\nscheduler: mcad\nroles:\n- {name: r, image: i, entrypoint: e}\n", a42,
		 a42);
	spec_app_free(parse(text));
}

/* --- limits --- */

static void test_replicas(void **state)
{
	static const char text[] = "name: a\nroles:\n"
				   "- {name: a, image: i, entrypoint: e, num_replicas: 6000}\n"
				   "- {name: b, image: i, entrypoint: e, num_replicas: 4001}\n";

	check(text, strlen(text), -EFBIG,
	      "3:1: roles: there are 10001 replicas in total; a job can have at most 10000\n");
}

static void test_many_errors(void **state)
{
	char *text = malloc(SPEC_MAX_FILE), *to;
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;
	clock_t start = clock();

	assert_non_null(text);
	to = stpcpy(text, "name: a\nroles:\n- name: r\n  image: i\n  entrypoint: e\n");
	for (int i = 0; i < 50000; i++)
		to += sprintf(to, "  x%d: [1]\n", i);
	assert_int_equal(document_parse(text, strlen(text), NULL, &app, &e), -EINVAL);
	assert_int_equal(e.n, SPEC_MAX_ERRORS);
	assert_int_equal(e.n + e.dropped, 50000);
	assert_int_equal(e.v[0].line, 6);
	assert_true((clock() - start) / CLOCKS_PER_SEC < 10);
	spec_errors_clear(&e);
	free(text);
}

static void test_many_roles(void **state)
{
	char *text = malloc(SPEC_MAX_FILE), *to;
	clock_t start = clock();
	struct spec_app *app;

	assert_non_null(text);
	to = stpcpy(text, "name: a\nroles:\n");
	for (int i = 0; i < SPEC_MAX_REPLICAS; i++)
		to += sprintf(to, "- {name: r%d, image: i, entrypoint: e, args: [x, y]}\n", i);
	app = parse(text);
	assert_int_equal(app->n_roles, SPEC_MAX_REPLICAS);
	assert_string_equal(app->roles[9999].name, "r9999");
	assert_true((clock() - start) / CLOCKS_PER_SEC < 10);
	spec_app_free(app);
	free(text);
}

/* --- documents that TorchX writes --- */

#define DUMP                                                                                        \
	"{\"name\": \"train\", \"metadata\": {}, \"roles\": [{\"name\": \"r\", \"image\": \"i\", "  \
	"\"min_replicas\": null, \"base_image\": null, \"entrypoint\": \"e\", \"args\": [], "       \
	"\"env\": {}, \"num_replicas\": 2, \"max_retries\": 0, \"retry_policy\": \"APPLICATION\", " \
	"\"resource\": {\"cpu\": 2, \"gpu\": 0, \"memMB\": 1024, \"capabilities\": {}, "            \
	"\"devices\": {}, \"tags\": {\"a\": [1]}}, \"port_map\": {}, \"metadata\": {}, "            \
	"\"mounts\": [{\"src_path\": \"/a\", \"dst_path\": \"/b\", \"read_only\": true}, "          \
	"{\"src\": \"c\", \"dst_path\": \"/d\", \"read_only\": false}, "                            \
	"{\"src_path\": \"/e\", \"dst_path\": \"/f\", \"permissions\": \"rw\"}], "                  \
	"\"workspace\": %s, \"overrides\": %s}]}"

static char *dump(const char *workspace, const char *overrides)
{
	char *ret = NULL;

	assert_true(asprintf(&ret, DUMP, workspace, overrides) > 0);
	return ret;
}

static void test_torchx_dump(void **state)
{
	static const char *const empty[] = {"null", "{}", "{\"projects\": {}}", "\"\""};

	for (size_t i = 0; i < array_size(empty); i++) {
		cleanup_free char *text = dump(empty[i], "{}");
		struct spec_app *app = parse(text);
		const struct spec_role *role = &app->roles[0];

		assert_int_equal(role->min_replicas, -1);
		assert_int_equal(role->n_mounts, 3);
		assert_int_equal(role->mounts[0].type, SPEC_MOUNT_BIND);
		assert_true(role->mounts[0].read_only);
		assert_int_equal(role->mounts[1].type, SPEC_MOUNT_VOLUME);
		assert_string_equal(role->mounts[1].src, "c");
		assert_int_equal(role->mounts[2].type, SPEC_MOUNT_DEVICE);
		assert_string_equal(role->mounts[2].permissions, "rw");
		spec_app_free(app);
	}
}

static void test_torchx_refused(void **state)
{
	static const struct {
		const char *workspace, *overrides, *error;
	} cases[] = {
		{"{\"projects\": {\"/src\": \"\"}}", "{}",
		 "roles[0].workspace: is not empty, but kxfs does not build images: launch the "
		 "app with torchx run -s kxfs, which builds them, or leave the workspace out "
		 "(torchx run --workspace \"\")\n"},
		{"{\"projects\": {\"/src\": \"x\"}}", "{}", "roles[0].workspace: is not empty"},
		{"[]", "{}", NULL},
		{"null", "{\"image\": \"j\"}",
		 "roles[0].overrides: is not empty, but kxfs does not apply it: write the "
		 "values into the fields of the role, and leave this field out\n"},
		{"null", "null", "roles[0].overrides: must not be null"},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		cleanup_free char *text = dump(cases[i].workspace, cases[i].overrides);
		cleanup_free char *errors = NULL;
		struct spec_errors e = SPEC_ERRORS_INIT;
		struct spec_app *app = NULL;

		document_parse(text, strlen(text), NULL, &app, &e);
		errors = spec_errors_text(&e, NULL);
		if (cases[i].error)
			assert_non_null(strstr(errors, cases[i].error));
		else
			assert_string_equal(errors, "");
		spec_app_free(app);
		spec_errors_clear(&e);
	}
	check_text("name: a\nroles:\n- {name: r, image: i, entrypoint: <MISSING>}\n",
		   "3:35: roles[0].entrypoint: is <MISSING>"
		   ", TorchX's mark for a missing entrypoint: name a program\n");
	check_text("name: a\nroles: null\n",
		   "2:8: roles: must not be null; leave out a field that has no value, or put "
		   "\"null\" in quotes if you mean this text\n");
}

/*
 * The whole output of a dry run contains the app, its scheduler and the given options. It is an
 * AppDef too.
 */
static void test_torchx_dry_run(void **state)
{
	cleanup_free char *inner = dump("null", "{}");
	cleanup_free char *text = NULL;
	struct spec_app *app;

	assert_true(asprintf(&text,
			     "{\"scheduler\": \"kubernetes\", \"cfg\": {\"queue\": \"q\", "
			     "\"service_account\": null, \"quiet\": false},\n \"app\": %s, "
			     "\"request\": {\"resource\": {\"kind\": \"Job\"}}, \"later\": 1}",
			     inner) > 0);
	app = parse(text);
	assert_string_equal(app->name, "train");
	assert_string_equal(app->scheduler, "volcano");
	assert_string_equal(app->scheduler_args, "{\"queue\":\"q\",\"quiet\":false}");
	spec_app_free(app);
	/*
	 * An app for the scheduler of contrib/torchx is accepted by any mount. Options that only
	 * TorchX uses are dropped.
	 */
	free(text);
	assert_true(
		asprintf(
			&text,
			"{\"scheduler\": \"kxfs\", \"cfg\": {\"queue\": \"q\", \"mount\": \"/m\", "
			"\"quiet\": false, \"inherit_env\": true}, \"app\": %s, \"request\": \"x\"}",
			inner) > 0);
	app = parse(text);
	assert_null(app->scheduler);
	assert_string_equal(app->scheduler_args, "{\"queue\":\"q\"}");
	spec_app_free(app);
	/* manifest.yaml of a local job */
	app = parse("id: a-1\napp:\n  name: a\n  roles: [{name: r, image: i, entrypoint: e}]\n"
		    "  scheduler: local\n  scheduler_args: {ttl: 5}\n");
	assert_string_equal(app->scheduler, "local");
	assert_string_equal(app->scheduler_args, "{\"ttl\":5}");
	spec_app_free(app);
	check_text("scheduler: local\napp: {name: a, scheduler: local, roles: []}\n",
		   "1:1: name is missing\n1:1: roles is missing\n"
		   "2:1: app: unknown field; the fields here are name, roles, metadata, scheduler, "
		   "scheduler_args\n");
	check_text("request: x\ncfg: {}\nscheduler: slurm\napp:\n  name: a\n  roles: []\n",
		   "3:12: scheduler: there is no scheduler \"slurm\"; use volcano, mcad, "
		   "appwrapper or local\n6:10: roles: must contain at least one role\n");
	check_text("=== APPLICATION ===\nname: a\nroles: []\n",
		   "1:1: this is the output of torchx run --dryrun; submit only the part after "
		   "\"=== SCHEDULER REQUEST ===\", or submit the output of torchx run --dryrun "
		   "--json\n");
	check_text("app: null\ncfg: {}\n",
		   "1:1: app: unknown field; the fields here are name, roles, "
		   "metadata, scheduler, scheduler_args\n"
		   "1:1: name is missing\n1:1: roles is missing\n"
		   "2:1: cfg: unknown field; the fields here are name, roles, "
		   "metadata, scheduler, scheduler_args\n");
}

static void test_torchx_schedulers(void **state)
{
	static const char *const names[][2] = {{"kubernetes", "volcano"},
					       {"kubernetes_mcad", "mcad"},
					       {"local_cwd", "local"}};

	for (size_t i = 0; i < array_size(names); i++) {
		char text[120];
		struct spec_app *app;

		snprintf(text, sizeof(text),
			 "name: a\nscheduler: %s\nroles: [{name: r, image: i, entrypoint: e}]\n",
			 names[i][0]);
		app = parse(text);
		assert_string_equal(app->scheduler, names[i][1]);
		spec_app_free(app);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),       cmocka_unit_test(test_full),
		cmocka_unit_test(test_resources),      cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_json),	       cmocka_unit_test(test_fields),
		cmocka_unit_test(test_numbers),	       cmocka_unit_test(test_resource_errors),
		cmocka_unit_test(test_port_errors),    cmocka_unit_test(test_mount_errors),
		cmocka_unit_test(test_document),       cmocka_unit_test(test_names),
		cmocka_unit_test(test_pod_names),      cmocka_unit_test(test_replicas),
		cmocka_unit_test(test_many_errors),    cmocka_unit_test(test_many_roles),
		cmocka_unit_test(test_torchx_dump),    cmocka_unit_test(test_torchx_refused),
		cmocka_unit_test(test_torchx_dry_run), cmocka_unit_test(test_torchx_schedulers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
