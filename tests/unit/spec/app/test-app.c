/* SPDX-License-Identifier: MIT */
/*
 * AppDefs: the meaning of each field, its default, and the error for a wrong value.
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

/* Assert that TEXT has the errors EXPECTED, or is accepted if EXPECTED is empty. */
static void check(const char *text, int err, const char *expected)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;
	int got = document_parse(text, strlen(text), "/var/ada", &app, &e);
	cleanup_free char *errors = spec_errors_text(&e, NULL);

	assert_messages(errors, expected);
	assert_int_equal(got, *expected ? err : 0);
	assert_int_equal(app == NULL, *expected != '\0');
	spec_app_free(app);
	spec_errors_clear(&e);
}

static void check_text(const char *text, const char *expected)
{
	check(text, -EINVAL, expected);
}

struct pair {
	const char *text, *expected;
};

static void check_all(const struct pair *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_text(table[i].text, table[i].expected);
}

/* --- accepted documents --- */

/* Assert that TEXT is accepted, and has the JSON form WANT, with ' in place of ". */
static void check_json(const char *text, const char *want)
{
	struct spec_app *app = parse(text);
	cleanup_free char *json = spec_app_json(app);

	for (char *c = json; *c; c++)
		*c = *c == '"' ? '\'' : *c;
	assert_string_equal(json, want);
	spec_app_free(app);
}

static void test_defaults(void **state)
{
	check_json("name: a\nroles:\n- {name: r, image: i, entrypoint: e/f, retry_policy: ROLE, "
		   "args: [\"\\a\", \"\\x7f\"]}\n",
		   "{'name':'a','roles':[{'name':'r','image':'i','entrypoint':'e/f',"
		   "'args':['\\u0007','\x7f'],'env':{},'num_replicas':1,'max_retries':0,"
		   "'retry_policy':'ROLE','resource':{'cpu':-1,'gpu':-1,'memMB':-1,"
		   "'capabilities':{},'devices':{}},'port_map':{},'mounts':[],'metadata':{}}]}");
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

/* The JSON form has all fields, and is itself an AppDef. */
static void test_full(void **state)
{
	struct spec_app *app = parse(full);
	cleanup_free char *json = spec_app_json(app), *again = NULL;

	spec_app_free(app);
	app = parse(json);
	again = spec_app_json(app);
	assert_string_equal(json, again);
	spec_app_free(app);
	check_json(full,
		   "{'name':'Train_1','roles':[{'name':'trainer','image':'img:1','entrypoint':'7',"
		   "'args':['--lr','1e-3','yes','010','null','','a\\tb'],"
		   "'env':{'Z':'1','A':'b=c','TRUE':'true','D':'2024-01-01'},"
		   "'num_replicas':4,'min_replicas':0,'max_retries':3,'retry_policy':'HOT_SPARE',"
		   "'resource':{'cpu':2.5,'gpu':0,'memMB':100000,'capabilities':{"
		   "'node.kubernetes.io/instance-type':'42','n':'{\\'x\\':[1,\\'yes\\']}'},"
		   "'devices':{'x/y':4,'z':0}},'port_map':{'http':8080,'longest-port-nm':1},"
		   "'mounts':[{'type':'bind','src_path':'/a','dst_path':'/b','read_only':true},"
		   "{'type':'bind','src_path':'/var/ada/x','dst_path':'/d','read_only':false},"
		   "{'type':'volume','src':'c','dst_path':'/e','read_only':true}],"
		   "'metadata':{'kubernetes':{'spec':{'a':[1,'1',null]}}}},"
		   "{'name':'reader','image':'i','entrypoint':'e','args':[],'env':{},"
		   "'num_replicas':1,'max_retries':0,'retry_policy':'APPLICATION',"
		   "'resource':{'cpu':8,'gpu':1,'memMB':32768,'capabilities':{},'devices':{}},"
		   "'port_map':{},'mounts':[{'type':'device','src_path':'/dev/null',"
		   "'dst_path':'/dev/null','permissions':'rwm'}],'metadata':{}}],"
		   "'scheduler':'local',"
		   "'scheduler_args':{'queue':'research','priority':5,'x':['yes',1.5]}}");
}

/* --- errors in one field --- */

/*
 * Check a role with the additional FIELD at line 6. In EXPECTED, lines lack "6:" before the column,
 * and "roles[0]." before the name of the field.
 */
static void check_role(const char *field, const char *expected)
{
	cleanup_free char *text =
		text_print("name: n\nroles:\n- name: r\n  image: i\n  entrypoint: e\n  %s\n",
			   field);
	cleanup_free char *want = text_copy("");

	for (const char *line = expected; *line; line = strchr(line, '\n') + 1) {
		const char *path = strchr(line, ' ') + 1;

		text_set(&want, "%s6:%.*sroles[0]%s%.*s", want, (int)(path - line), line,
			 *path == '[' ? "" : ".", (int)(strchr(path, '\n') - path + 1), path);
	}
	check_text(text, want);
}

static void check_roles(const struct pair *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_role(table[i].text, table[i].expected);
}

static void test_fields(void **state)
{
	static const struct pair table[] = {
		{"imgae: x", "3: imgae: unknown field; did you mean image?\n"},
		{"replicas: 3", "3: replicas: unknown field; did you mean num_replicas?\n"},
		{"command: x", "3: command: unknown field; did you mean entrypoint?\n"},
		{"cmd: x", "3: cmd: unknown field; did you mean entrypoint?\n"},
		{"volumes: []", "3: volumes: unknown field; did you mean mounts?\n"},
		{"\"a b\": 1",
		 "3: [\"a b\"]: unknown field; the fields here are name, image, entrypoint, args, env, "
		 "num_replicas, min_replicas, max_retries, retry_policy, resource, port_map, mounts, "
		 "metadata, base_image, workspace, overrides\n"},
		{"args: --lr 0.1", "9: args: must be a list, not text; write each argument...\n"},
		{"args: [a, [b], {c: d}, null, ]",
		 "13: args[1]: must be text, not a list\n18: args[2]: must be text, not a map\n"
		 "26: args[3]: must not be null...\n"},
		{"args:", "8: args: has no value...\n"},
		{"args: [\"a\\0\"]", "10: args[0]: must not contain a NUL character\n"},
		{"env: [A=1]", "8: env: must be a map, not a list; write NAME: VALUE\n"},
		{"env: {A: ~, B: [1]}",
		 "12: env.A: must not be null; leave out a field that has no value, or put "
		 "\"~\" in quotes if you mean this text\n"
		 "18: env.B: must be text, not a list\n"},
		{"env: {\"\": 1, A=B: 2, \"C\\n\": 3, \u00c4: 4}",
		 "9: env[\"\"]: the name of a variable must not be empty\n"
		 "16: env[\"A=B\"]: the name of a variable must not contain \"=\"\n"
		 "24: env[\"C\\n\"]: the name of a variable may contain only...\n"
		 "34: env[\"\u00c4\"]: the name of a variable may contain only...\n"},
		{"retry_policy: application",
		 "17: retry_policy: there is no policy \"application\"; did you mean "
		 "APPLICATION?\n"},
		{"retry_policy: never",
		 "17: retry_policy: there is no policy \"never\"; use APPLICATION, REPLICA, "
		 "ROLE or HOT_SPARE\n"},
		{"metadata: x", "13: metadata: must be a map, not text; write NAME: VALUE\n"},
		{"mounts: {type: bind, src_path: /a, dst_path: /b}",
		 "11: mounts: must be a list, not a map; begin each mount with \"- \"\n"},
		{"mounts: [{type: tmpfs}]", "19: mounts[0].type: must be bind, volume or device\n"},
		{"metadata: {a: [b, \"\\0\"]}",
		 "21: metadata.a[1]: must not contain a NUL character\n"},
	};

	check_roles(table, array_size(table));
}

static void test_numbers(void **state)
{
	static const struct pair table[] = {
		{"num_replicas: 0", "17: num_replicas: must be at least 1, not 0\n"},
		{"num_replicas: -99999999999999999999",
		 "17: num_replicas: must be at least 1, not -99999999999999999999\n"},
		{"num_replicas: 10001", "17: num_replicas: must be at most 10000, not 10001\n"},
		{"num_replicas: \"2\"",
		 "17: num_replicas: must be a whole number, not text; write 2 without quotes\n"},
		{"num_replicas: 1.5", "17: num_replicas: must be a whole number, not \"1.5\"\n"},
		{"num_replicas: true", "17: num_replicas: must be a whole number, not \"true\"\n"},
		{"num_replicas: [1]", "17: num_replicas: must be a whole number, not a list\n"},
		{"num_replicas: 010",
		 "17: num_replicas: \"010\" is ambiguous, because some YAML parsers read a "
		 "number...\n"},
		{"num_replicas: 1_000",
		 "17: num_replicas: \"1_000\" is ambiguous, because some YAML parsers skip...\n"},
		{"num_replicas: 0x10", "17: num_replicas: \"0x10\" is not decimal...\n"},
		{"num_replicas: 1:30",
		 "17: num_replicas: \"1:30\" is ambiguous, because some YAML parsers read "
		 "it...\n"},
		{"min_replicas: 2", "17: min_replicas: is 2, more than num_replicas, which is 1\n"},
		{"min_replicas: -1", "17: min_replicas: must be at least 0, not -1\n"},
		{"max_retries: -1", "16: max_retries: must be at least 0, not -1\n"},
		{"max_retries: 2147483648",
		 "16: max_retries: must be at most 2147483647, not 2147483648\n"},
	};

	check_roles(table, array_size(table));
}

static void test_resource_errors(void **state)
{
	static const struct pair table[] = {
		{"resource: gpu.smal",
		 "13: resource: there is no resource \"gpu.smal\"; did you mean gpu.small?\n"},
		{"resource: large-one",
		 "13: resource: there is no resource \"large-one\"; appdef(5)...\n"},
		{"resource: null", "13: resource: must not be null...\n"},
		{"resource: [1]",
		 "13: resource: must be text, not a list; write the name of a resource...\n"},
		{"resource: {cpu: 1}",
		 "13: resource: gpu is missing\n13: resource: memMB is missing\n"},
		{"resource: {cpu: .inf, gpu: 0.5, memMB: \"100\"}",
		 "19: resource.cpu: \".inf\" is not a finite number\n"
		 "30: resource.gpu: must be a whole number, not \"0.5\"\n"
		 "42: resource.memMB: must be a number, not text; write 100 without quotes\n"},
		{"resource: {cpu: 01.5, gpu: 3000000000, memMB: 1e13}",
		 "19: resource.cpu: \"01.5\" is ambiguous, because some YAML parsers read a "
		 "number...\n30: resource.gpu: must be at most 2147483647, not 3000000000\n"
		 "49: resource.memMB: must be at most 1000000000000, not 1e13\n"},
		{"resource: {cpu: 1, gpu: 0, memmb: 1, memMB: 1}",
		 "30: resource.memmb: unknown field; did you mean memMB?\n"},
		{"resource: {cpu: 1, gpu: 0, memMB: 1, devices: {a: -1, b: x}}",
		 "53: resource.devices.a: must be at least 0, not -1\n"
		 "60: resource.devices.b: must be a whole number, not \"x\"\n"},
		{"resource: {cpu: 1, gpu: 0, memMB: 1, capabilities: {a: null}}",
		 "58: resource.capabilities.a: must not be null...\n"},
	};

	check_roles(table, array_size(table));
}

static void test_port_errors(void **state)
{
	static const struct pair table[] = {
		{"port_map: {a: 0, b: 65536, c: '80', d: http}",
		 "17: port_map.a: must be at least 1, not 0\n"
		 "23: port_map.b: must be at most 65535, not 65536\n"
		 "33: port_map.c: must be a whole number, not text; write 80 without quotes\n"
		 "42: port_map.d: must be a whole number, not \"http\"\n"},
		{"port_map: {HTTP: 1, \"1\": 2, a-name-too-long-: 3, -a: 4, a--b: 5, \"\": 6}",
		 "14: port_map.HTTP: the name of a port may contain only...\n"
		 "23: port_map.1: the name of a port must contain a letter\n"
		 "31: port_map.a-name-too-long-: the name of a port must have at most 15 "
		 "characters\n52: port_map.-a: the name of a port must not begin...\n"
		 "59: port_map.a--b: the name of a port must not begin...\n"
		 "68: port_map[\"\"]: the name of a port must not be empty\n"},
	};

	check_roles(table, array_size(table));
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
		 "2:9: roles[0]: must be a map, not text; write a role...\n"
		 "2:12: roles[1]: name is missing\n2:12: roles[1]: image is missing\n"
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
		 "2:1: kind: unknown field; the fields here are name, roles, metadata, "
		 "scheduler, scheduler_args\n"},
	};

	check_all(table, array_size(table));
}

static void test_names(void **state)
{
	static const struct pair table[] = {
		{"name: ___\nroles:\n- {name: '...', image: i, entrypoint: e}\n",
		 "1:7: name: must contain a letter or digit...\n"
		 "3:10: roles[0].name: must contain a letter or digit...\n"},
		{"name: \"\"\nroles:\n- {name: \"a\\nb\", image: i, entrypoint: e}\n",
		 "1:7: name: must not be empty\n"
		 "3:10: roles[0].name: must not contain control characters or line breaks\n"},
		{"name: a\nroles:\n- &r {name: a_b, image: i, entrypoint: e}\n- {<<: *r, name: "
		 "ab}\n- {<<: *r, name: AB}\n- *r\n",
		 "3:13: roles[3].name: roles[0] has the same name\n"
		 "4:18: roles[1].name: \"ab\" and roles[0], \"a_b\", would have the same task "
		 "name, \"ab\"...\n"
		 "5:18: roles[2].name: \"AB\" and roles[0], \"a_b\", would have the same task "
		 "name, \"ab\"...\n"},
	};

	check_all(table, array_size(table));
}

/*
 * A pod is named APP-SUFFIX-ROLE-K-INDEX, so app and role together may have at most 43 characters.
 * Characters that are removed from names do not count. A second digit of K needs one more, and so
 * does a second digit of the index. MCAD's names are truncated to fit.
 */
static void test_pod_names(void **state)
{
#define A42 "abcdefghijabcdefghijabcdefghijabcdefghijab"
#define LONG(role, have, over)                                                                     \
	"1:7: name: pods of role \"" role "\" would have names of " have " characters, but at "    \
	"most 63 are allowed; shorten the names of the app and the role by a total of " over       \
	" (a job's name has a suffix of 15 characters)\n"
	check_text("name: " A42 "\nroles:\n- {name: r, image: i, entrypoint: e}\n", "");
	check_text("name: _" A42 "_\nroles:\n- {name: R., image: i, entrypoint: e}\n", "");
	check_text("name: " A42 "\nroles:\n- {name: r, image: i, entrypoint: e, "
		   "num_replicas: 11}\n",
		   LONG("r", "65", "2"));
	check_text("name: " A42 "\nroles:\n- {name: r, image: i, entrypoint: e}\n"
		   "- {name: role, image: i, entrypoint: e}\n",
		   LONG("role", "66", "3"));
	check_text("name: " A42 A42 "\nscheduler: mcad\nroles:\n"
		   "- {name: r, image: i, entrypoint: e}\n",
		   "");
}

/* --- limits --- */

static void test_replicas(void **state)
{
	check("name: a\nroles:\n- {name: a, image: i, entrypoint: e, num_replicas: 6000}\n"
	      "- {name: b, image: i, entrypoint: e, num_replicas: 4001}\n",
	      -EFBIG,
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

static void test_torchx_roles(void **state)
{
	static const struct pair table[] = {
		{"workspace: null", ""},
		{"overrides: {}", ""},
		{"workspace: {}", ""},
		{"workspace: {projects: {}}", ""},
		{"workspace: ''", ""},
		{"workspace: []", ""},
		{"workspace: {projects: {/src: ''}}",
		 "14: workspace: is not empty, but kxfs does not build images...\n"},
		{"overrides: {image: j}",
		 "14: overrides: is not empty, but kxfs does not apply it...\n"},
		{"overrides: null", "14: overrides: must not be null...\n"},
	};

	check_roles(table, array_size(table));
	check_text("name: a\nroles:\n- {name: r, image: i, entrypoint: <MISSING>}\n",
		   "3:35: roles[0].entrypoint: is <MISSING>"
		   ", TorchX's mark for a missing entrypoint: name a program\n");
	check_text("name: a\nroles: null\n", "2:8: roles: must not be null...\n");
}

#define ROLES "roles: [{name: r, image: i, entrypoint: e}]"

/*
 * The whole output of a dry run is an AppDef too: tests/golden/test_components.py and tests/torchx
 * have accepted outputs.
 */
static void test_torchx_dry_run(void **state)
{
	static const struct {
		const char *text, *scheduler, *args;
	} accepted[] = {
		/* manifest.yaml of a local job */
		{"id: a-1\napp: {name: a, scheduler: local, scheduler_args: {ttl: 5}, " ROLES "}\n",
		 "local", "{\"ttl\":5}"},
		/* TorchX's name of a scheduler */
		{"name: a\nscheduler: kubernetes_mcad\n" ROLES "\n", "mcad", NULL},
	};
	static const struct pair refused[] = {
		{"scheduler: local\napp: {name: a, scheduler: local, roles: []}\n",
		 "1:1: name is missing\n1:1: roles is missing\n"
		 "2:1: app: unknown field; the fields here are name, roles...\n"},
		{"request: x\ncfg: {}\nscheduler: slurm\napp:\n  name: a\n  roles: []\n",
		 "3:12: scheduler: there is no scheduler \"slurm\"; use volcano, mcad, appwrapper "
		 "or local\n6:10: roles: must contain at least one role\n"},
		{"=== APPLICATION ===\nname: a\nroles: []\n",
		 "1:1: this is the output of torchx run --dryrun...\n"},
		{"app: null\ncfg: {}\n",
		 "1:1: app: unknown field; the fields here are name, roles...\n"
		 "1:1: name is missing\n1:1: roles is missing\n"
		 "2:1: cfg: unknown field; the fields here are name, roles...\n"},
	};

	for (size_t i = 0; i < array_size(accepted); i++) {
		struct spec_app *app = parse(accepted[i].text);

		assert_string_equal(app->name, "a");
		assert_true(streq(app->scheduler, accepted[i].scheduler));
		assert_true(streq(app->scheduler_args, accepted[i].args));
		spec_app_free(app);
	}
	check_all(refused, array_size(refused));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),	cmocka_unit_test(test_full),
		cmocka_unit_test(test_fields),		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_resource_errors), cmocka_unit_test(test_port_errors),
		cmocka_unit_test(test_document),	cmocka_unit_test(test_names),
		cmocka_unit_test(test_pod_names),	cmocka_unit_test(test_replicas),
		cmocka_unit_test(test_many_errors),	cmocka_unit_test(test_many_roles),
		cmocka_unit_test(test_torchx_roles),	cmocka_unit_test(test_torchx_dry_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
