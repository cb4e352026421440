/* SPDX-License-Identifier: MIT */
/*
 * Records: what was written is read back, damage of any kind is noticed, and the snapshot and
 * the texts made of a record are what users see of a local job.
 */
#include <errno.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "spec/base/limits.h"
#include "spec/record/record.h"
#include "spec/base/utf8.h"
#include "tests/unit/spec/app-document.h"

#define SECOND INT64_C(1000000000)
/* 2026-11-21T09:08:40Z and a bit */
#define CREATED (INT64_C(1795252120) * SECOND + 123456789)

static const char small[] = "name: demo\n"
			    "roles:\n"
			    "- name: trainer\n"
			    "  image: img\n"
			    "  entrypoint: ./train.sh\n"
			    "  num_replicas: 2\n"
			    "  min_replicas: 1\n"
			    "  max_retries: 3\n"
			    "- {name: My Reader, image: img, entrypoint: cat, max_retries: 1}\n";

static const char full[] =
	"name: full\n"
	"metadata: {team: vision}\n"
	"scheduler: local\n"
	"scheduler_args: {queue: research, deep: {list: [1, 2.5, null, true, x]}}\n"
	"roles:\n"
	"- name: all\n"
	"  image: img\n"
	"  base_image: base\n"
	"  entrypoint: python\n"
	"  args: [-c, \"print('\\u00e9\\t\\\\ \\\"')\", \"two\\nlines\", '', '${app_id}']\n"
	"  env: {B: '2', A: \"\", LONG: yes}\n"
	"  num_replicas: 4\n"
	"  min_replicas: 0\n"
	"  retry_policy: HOT_SPARE\n"
	"  resource:\n"
	"    cpu: 0.1\n"
	"    gpu: 2\n"
	"    memMB: 1536.5\n"
	"    capabilities: {node.kubernetes.io/instance-type: p4d.24xlarge}\n"
	"    devices: {vpc.amazonaws.com/efa: 4}\n"
	"  port_map: {http: 8080, c10d: 29500}\n"
	"  metadata: {kubernetes: {spec: {a: [1, {b: c}]}}}\n"
	"  mounts:\n"
	"  - {type: bind, src_path: /a, dst_path: /b, read_only: true}\n"
	"  - type=volume,src=claim,dst=/v\n"
	"  - type=device,src=/dev/fuse,perm=r\n"
	"- {name: aws, image: i, entrypoint: e, resource: aws_p4d.24xlarge, retry_policy: ROLE}\n"
	"- {name: none, image: i, entrypoint: e, retry_policy: REPLICA}\n";

static void set(char **field, const char *value)
{
	spec_set(field, value);
}

static struct spec_record *record_of(const char *document)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;
	struct spec_record *r;

	if (document_parse(document, strlen(document), NULL, &app, &e) < 0)
		fail_msg("%s", spec_errors_text(&e, "document"));
	r = spec_record_new(app);
	assert_non_null(r);
	set(&r->id, "demo-b1");
	set(&r->uid, "fb9f6f2e-7a59-4b1e-9c0a-3d2f1e0c9b8a");
	return r;
}

/* A record in which no field has the value that a new one has. */
static struct spec_record *busy(void)
{
	struct spec_record *r = record_of(small);

	set(&r->submitter, "ada@login1");
	set(&r->submission, "7d1c3c1e-0000-4000-8000-000000000000");
	set(&r->file, "a b\n.yaml");
	set(&r->work_dir, "/data/\u00e9");
	r->state = SPEC_RUNNING;
	set(&r->phase, "Running");
	set(&r->reason, "Error");
	set(&r->message, "trainer-1: exit code 3");
	r->history = true;
	r->suspended = true;
	r->goal = SPEC_GOAL_CANCEL;
	r->again = true;
	r->retries = 2;
	r->created = CREATED;
	r->started = CREATED + SECOND;
	r->finished = CREATED + 2 * SECOND;
	r->changed = CREATED + 3 * SECOND;
	for (size_t i = 0; i < r->n_replicas; i++) {
		struct spec_record_replica *rep = &r->replicas[i];

		rep->state = SPEC_FAILED;
		rep->attempt = 2;
		rep->ended = true;
		rep->again = true;
		rep->restarts = 3;
		rep->exit_code = (int)i;
		rep->signal = 15;
		rep->started = CREATED + 4 * SECOND;
		rep->finished = CREATED + 5 * SECOND;
		set(&rep->reason, "Signal");
		set(&rep->message, "\"quoted\", \\ and / and \x1b");
	}
	return r;
}

static void test_new(void **state)
{
	struct spec_record *r = record_of(small);

	(void)state;
	assert_int_equal(r->state, SPEC_PENDING);
	assert_string_equal(r->phase, "Pending");
	assert_string_equal(r->message, "");
	assert_int_equal(r->n_replicas, 3);
	assert_int_equal(r->replicas[1].role, 0);
	assert_int_equal(r->replicas[1].id, 1);
	assert_int_equal(r->replicas[2].role, 1);
	assert_int_equal(r->replicas[2].id, 0);
	assert_int_equal(r->replicas[2].exit_code, -1);
	assert_int_equal(r->replicas[2].state, SPEC_PENDING);
	assert_string_equal(r->replicas[2].reason, "");
	spec_record_free(r);
}

static void assert_reads_back(struct spec_record *r)
{
	cleanup_free char *text = spec_record_text(r), *again = NULL, *app = NULL,
			  *app_again = NULL;
	struct spec_record *copy = NULL;

	assert_non_null(text);
	assert_int_equal(spec_record_parse(text, strlen(text), &copy), 0);
	again = spec_record_text(copy);
	assert_string_equal(text, again);
	app = spec_app_json(r->app);
	app_again = spec_app_json(copy->app);
	assert_string_equal(app, app_again);
	spec_record_free(copy);
	spec_record_free(r);
}

static void test_reads_back(void **state)
{
	struct spec_record *copy = NULL, *r = busy();
	cleanup_free char *text = spec_record_text(r);

	(void)state;
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_int_equal(spec_record_parse(text, strlen(text), &copy), 0);
	assert_string_equal(copy->file, "a b\n.yaml");
	assert_string_equal(copy->work_dir, "/data/\u00e9");
	assert_int_equal(copy->state, SPEC_RUNNING);
	assert_true(copy->history && copy->suspended);
	assert_int_equal(copy->retries, 2);
	assert_true(copy->created == CREATED && copy->changed == CREATED + 3 * SECOND);
	assert_int_equal(copy->goal, SPEC_GOAL_CANCEL);
	assert_true(copy->again);
	assert_true(copy->replicas[2].ended && copy->replicas[2].again);
	assert_int_equal(copy->replicas[2].restarts, 3);
	assert_int_equal(copy->replicas[2].exit_code, 2);
	assert_int_equal(copy->replicas[1].signal, 15);
	assert_string_equal(copy->replicas[0].message, "\"quoted\", \\ and / and \x1b");
	assert_string_equal(copy->app->roles[1].name, "My Reader");
	spec_record_free(copy);
	assert_reads_back(r);
	assert_reads_back(record_of(small));
	assert_reads_back(record_of(full));
}

/* A path need not be UTF-8, nor what is said of it; JSON has to be. */
static void test_not_utf8(void **state)
{
	static const char dir[] = "/data/\xe9/\"\x01";
	cleanup_free char *text = NULL, *yaml = NULL;
	struct spec_record *copy = NULL, *r = busy();
	size_t len;

	(void)state;
	set(&r->work_dir, dir);
	set(&r->replicas[0].message, "working directory \"\xff\": gone");
	text = spec_record_text(r);
	assert_non_null(text);
	assert_true(spec_utf8_is(text, strlen(text)));
	assert_int_equal(spec_record_parse(text, strlen(text), &copy), 0);
	assert_string_equal(copy->work_dir, dir);
	assert_string_equal(copy->replicas[0].message, "working directory \"\xff\": gone");
	spec_record_yaml(r, &yaml, &len);
	assert_non_null(strstr(yaml, "work_dir: /data/\\xe9/\"\\x01\n"));
	spec_record_free(copy);
	assert_reads_back(r);
}

/* --- damage --- */

static int parse_tree(struct json_object *root)
{
	const char *text = json_object_to_json_string(root);
	struct spec_record *r = NULL;
	int err = spec_record_parse(text, strlen(text), &r);

	assert_int_equal(err == 0, r != NULL);
	spec_record_free(r);
	return err;
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *ret;

	assert_true(json_object_object_get_ex(o, key, &ret));
	return ret;
}

/* What only describes a job, and of which "" says nothing untrue. */
static bool may_be_missing(const char *key)
{
	static const char *const keys[] = {"submitter", "submission", "file",	     "work_dir",
					   "reason",	"message",    "transitions", "dropped",
					   "boot",	"last_words"};

	for (size_t i = 0; i < array_size(keys); i++)
		if (streq(keys[i], key))
			return true;
	return false;
}

/* Without any other member of O, or with one of another type, ROOT is refused. */
static void assert_all_needed(struct json_object *root, struct json_object *o)
{
	size_t n = 0;
	char *keys[64];

	json_object_object_foreach(o, name, unused) {
		(void)unused;
		keys[n++] = strdup(name);
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *v = json_object_get(member(o, keys[i]));

		json_object_object_del(o, keys[i]);
		assert_int_equal(parse_tree(root), may_be_missing(keys[i]) ? 0 : -EINVAL);
		json_object_object_add(o, keys[i], NULL);
		assert_int_equal(parse_tree(root), -EINVAL);
		json_object_object_add(o, keys[i], json_object_new_double(1.5));
		assert_int_equal(parse_tree(root), -EINVAL);
		json_object_object_add(o, keys[i], v);
		assert_int_equal(parse_tree(root), 0);
		free(keys[i]);
	}
}

static struct json_object *tree_of(struct spec_record *r)
{
	cleanup_free char *text = spec_record_text(r);
	struct json_object *ret = json_tokener_parse(text);

	assert_non_null(ret);
	spec_record_free(r);
	return ret;
}

static void test_missing_and_wrong_type(void **state)
{
	struct json_object *root = tree_of(busy());

	(void)state;
	assert_all_needed(root, root);
	assert_all_needed(root, json_object_array_get_idx(member(root, "replicas"), 1));
	json_object_put(root);
}

static void test_version(void **state)
{
	struct json_object *root = tree_of(busy());

	(void)state;
	json_object_object_add(root, "version", json_object_new_int(3));
	assert_int_equal(parse_tree(root), -ENOTSUP);
	json_object_put(root);
}

static void test_wrong_values(void **state)
{
	static const struct {
		const char *key, *value;
		bool replica;
	} table[] = {
		{"version", "null", false},
		{"id", "\"\"", false},
		{"id", "\"../x\"", false},
		{"id", "\"a/b\"", false},
		{"uid", "\"\"", false},
		{"message", "\"a\\u0000b\"", false},
		{"work_dir", "{}", false},
		{"work_dir", "{\"base64\": 1}", false},
		{"work_dir", "{\"base64\": \"!\"}", false},
		{"work_dir", "{\"base64\": \"YQBi\"}", false},
		{"state", "\"running\"", false},
		{"retries", "-1", false},
		{"created", "-5", false},
		{"history", "0", false},
		{"replicas", "{}", false},
		{"replicas", "[]", false},
		{"app", "{}", false},
		{"app", "{\"name\": \"x\", \"roles\": []}", false},
		{"role", "1", true},
		{"id", "0", true},
		{"id", "-1", true},
		{"attempt", "4294967295", true},
		{"attempt", "-1", true},
		{"goal", "5", false},
		{"again", "0", false},
		{"ended", "1", true},
		{"again", "null", true},
		{"restarts", "-1", true},
		{"exit_code", "256", true},
		{"signal", "-9", true},
		{"signal", "128", true},
		{"state", "\"\"", true},
	};

	(void)state;
	for (size_t i = 0; i < array_size(table); i++) {
		struct json_object *root = tree_of(busy()), *o = root;

		if (table[i].replica)
			o = json_object_array_get_idx(member(root, "replicas"), 1);
		json_object_object_add(o, table[i].key, json_tokener_parse(table[i].value));
		if (parse_tree(root) != -EINVAL)
			fail_msg("%s: %s was taken", table[i].key, table[i].value);
		json_object_put(root);
	}
}

/*
 * The AppDef in a record of an earlier version, as it wrote it: it took names of variables that are no ASCII and
 * TorchX's word for no entrypoint. Other values are at the limits of what is taken at all.
 */
static const char older[] =
	"{\"name\":\"Größe x\",\"roles\":[{\"name\":\"all\",\"image\":\"i \","
	"\"base_image\":\"\",\"entrypoint\":\"<MISSING>\",\"args\":[\"\",\"a\\nb\","
	"\"null\",\"1\"],\"env\":{\"É\":\"x\"},\"num_replicas\":2,\"min_replicas\":0,"
	"\"max_retries\":0,\"retry_policy\":\"HOT_SPARE\","
	"\"resource\":{\"cpu\":0.1,\"gpu\":-7,\"memMB\":150000000000,"
	"\"capabilities\":{\"a\":\"[1,{\\\"b\\\":\\\"~\\\"}]\",\"c\":\"1\"},"
	"\"devices\":{\"x/y\":0}},\"port_map\":{\"a\":1,\"b\":65535},"
	"\"mounts\":[{\"type\":\"device\",\"src_path\":\"/dev/a\","
	"\"dst_path\":\"/dev/a\",\"permissions\":\"\"},{\"type\":\"bind\","
	"\"src_path\":\"/nonexistent/x\",\"dst_path\":\"y\",\"read_only\":false},"
	"{\"type\":\"volume\",\"src\":\"c\",\"dst_path\":\"/v\","
	"\"read_only\":false}],\"metadata\":{\"k\":{\"\":[],\"e\":{},"
	"\"f\":1.0e+22},\"\":\"é\"}},{\"name\":\"r2\",\"image\":\"i\","
	"\"entrypoint\":\"e\",\"args\":[],\"env\":{\"É\":\"\",\"a b\":\"1\"},"
	"\"num_replicas\":1,\"max_retries\":0,\"retry_policy\":\"APPLICATION\","
	"\"resource\":{\"cpu\":96,\"gpu\":8,\"memMB\":1132416,"
	"\"capabilities\":{\"node.kubernetes.io/instance-type\":\"p4d.24xlarge\"},"
	"\"devices\":{\"vpc.amazonaws.com/efa\":4}},\"port_map\":{},"
	"\"mounts\":[],\"metadata\":{}}],\"metadata\":{\"team\":\"\","
	"\"ö\\n\":\"a\\tb\"},\"scheduler\":\"local\","
	"\"scheduler_args\":{\"queue\":\"research\",\"deep\":{\"list\":[1,2.5,"
	"null,true,\"x\",-0.0,1.0e+20,18446744073709551615,\"1e400\"]}}}";

/* ROOT's AppDef is read, and is what OLDER has. */
static void assert_older(struct json_object *root)
{
	const char *text = json_object_to_json_string(root);
	cleanup_free char *app = NULL;
	struct spec_record *r = NULL;

	assert_int_equal(spec_record_parse(text, strlen(text), &r), 0);
	app = spec_app_json(r->app);
	assert_string_equal(app, older);
	spec_record_free(r);
}

/* What was accepted once is read, whatever is accepted now. */
static void test_older_rules(void **state)
{
	struct json_object *root = tree_of(busy()), *app = json_tokener_parse(older);
	struct json_object *role = json_object_array_get_idx(member(app, "roles"), 0);

	(void)state;
	json_object_object_add(root, "app", app);
	assert_older(root);
	/* A later version may have added fields. */
	json_object_object_add(app, "later", json_object_new_int(1));
	json_object_object_add(role, "later", NULL);
	json_object_object_add(member(role, "resource"), "later", json_object_new_object());
	assert_older(root);
	json_object_put(root);
}

/* Names and other texts are not judged. */
static void test_any_texts(void **state)
{
	static const char *const texts[] = {"", "\n", "<MISSING>"};

	(void)state;
	for (size_t i = 0; i < array_size(texts); i++) {
		struct spec_record *r = record_of(full);
		struct spec_role *role = &r->app->roles[0];

		text_set(&r->app->name, "%s", texts[i]);
		text_set(&r->app->scheduler, "none%s", texts[i]);
		text_set(&role->name, "%s", texts[i]);
		text_set(&role->image, "%s", texts[i]);
		text_set(&role->entrypoint, "%s", texts[i]);
		text_set(&role->env.v[0].key, "=%s", texts[i]);
		text_set(&role->port_map.v[0].key, "UPPER%s", texts[i]);
		text_set(&r->app->roles[1].name, "%s", texts[i]);
		assert_reads_back(r);
	}
}

/* With its defaults filled in, an AppDef may be larger than a file. */
static void test_large_app(void **state)
{
	struct spec_record *r = record_of(full);
	cleanup_free char *text = NULL;

	(void)state;
	text_set(&r->app->roles[0].args[0], "%*s", (int)SPEC_MAX_FILE + 1, "x");
	text = spec_app_json(r->app);
	assert_true(strlen(text) > SPEC_MAX_FILE);
	assert_reads_back(r);
}

static void test_wrong_app(void **state)
{
	enum { APP, ROLE, RESOURCE };
	static const struct {
		int in;
		const char *key, *value;
	} table[] = {
		{APP, "name", "null"},
		{APP, "name", "[]"},
		{APP, "roles", "{}"},
		{APP, "roles", "[null, {}]"},
		{APP, "metadata", "{\"a\": \"b\\u0000c\"}"},
		{APP, "scheduler", "{}"},
		{APP, "scheduler_args", "[]"},
		{ROLE, "entrypoint", "{}"},
		{ROLE, "args", "\"x\""},
		{ROLE, "args", "[null]"},
		{ROLE, "env", "{\"A\": null}"},
		{ROLE, "num_replicas", "\"2\""},
		{ROLE, "num_replicas", "2.0"},
		{ROLE, "num_replicas", "0"},
		{ROLE, "num_replicas", "-1"},
		{ROLE, "num_replicas", "10001"},
		{ROLE, "num_replicas", "18446744073709551615"},
		{ROLE, "min_replicas", "3"},
		{ROLE, "max_retries", "2147483648"},
		{ROLE, "retry_policy", "\"NEVER\""},
		{ROLE, "resource", "{}"},
		{ROLE, "port_map", "{\"a\": \"80\"}"},
		{ROLE, "mounts", "[{\"type\": \"tmpfs\"}]"},
		{ROLE, "mounts", "[{\"type\": \"volume\", \"src\": \"c\"}]"},
		{ROLE, "metadata", "\"{}\""},
		{RESOURCE, "cpu", "NaN"},
		{RESOURCE, "cpu", "1e999"},
		{RESOURCE, "memMB", "\"1\""},
		{RESOURCE, "gpu", "0.5"},
		{RESOURCE, "devices", "[]"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(table); i++) {
		struct json_object *root = tree_of(busy()), *app = member(root, "app");
		struct json_object *role = json_object_array_get_idx(member(app, "roles"), 0);
		struct json_object *o = table[i].in == APP    ? app
					: table[i].in == ROLE ? role
							      : member(role, "resource");

		json_object_object_add(o, table[i].key, json_tokener_parse(table[i].value));
		if (parse_tree(root) != -EINVAL)
			fail_msg("%s: %s was taken", table[i].key, table[i].value);
		json_object_put(root);
	}
}

/* Attempts that are possible one by one may be too many together: each is a file. */
static void test_too_many_attempts(void **state)
{
	struct spec_record *r = busy(), *copy = NULL;

	(void)state;
	for (int attempt = 300000; attempt <= 400000; attempt += 100000) {
		cleanup_free char *text = NULL;

		for (size_t i = 0; i < r->n_replicas; i++)
			r->replicas[i].attempt = (unsigned)attempt;
		text = spec_record_text(r);
		assert_int_equal(spec_record_parse(text, strlen(text), &copy),
				 attempt == 300000 ? 0 : -EINVAL);
		spec_record_free(take_ptr(copy));
	}
	spec_record_free(r);
}

static void test_no_json(void **state)
{
	static const char *const table[] = {"",	     "{",  "null",  "[]",  "1",
					    "\"x\"", "{}", "{} {}", "\xff"};
	struct spec_record *r = busy(), *copy = NULL;
	cleanup_free char *text = spec_record_text(r);
	cleanup_free char *twice = NULL;

	(void)state;
	for (size_t i = 0; i < array_size(table); i++)
		assert_int_equal(spec_record_parse(table[i], strlen(table[i]), &copy), -EINVAL);
	/* Cut off anywhere before its last brace, it is none. */
	for (size_t n = 0; n + 2 < strlen(text); n += 7)
		assert_int_equal(spec_record_parse(text, n, &copy), -EINVAL);
	assert_true(asprintf(&twice, "%s%s", text, text) > 0);
	assert_int_equal(spec_record_parse(twice, strlen(twice), &copy), -EINVAL);
	assert_null(copy);
	spec_record_free(r);
}

/* --- what users see --- */

static void test_yaml(void **state)
{
	struct spec_record *r =
		record_of("name: demo\nroles: [{name: a, image: i, entrypoint: e}]");
	cleanup_free char *text = NULL;
	const char *replicas;
	size_t len;

	(void)state;
	r->created = CREATED;
	spec_record_yaml(r, &text, &len);
	assert_int_equal(len, strlen(text));
	assert_non_null(strstr(text, "id: demo-b1\nuid: fb9f6f2e-7a59-4b1e-9c0a-3d2f1e0c9b8a\n"));
	assert_non_null(strstr(text, "\ncreated: 2026-11-21T09:08:40Z\nstarted: null\n"));
	assert_non_null(strstr(text, "\napp:\n  name: demo\n"));
	replicas = strstr(text, "\nreplicas:\n");
	assert_non_null(replicas);
	assert_string_equal(replicas, "\nreplicas:\n"
				      "- role: 0\n"
				      "  id: 0\n"
				      "  state: PENDING\n"
				      "  attempt: 0\n"
				      "  exit_code: -1\n"
				      "  signal: 0\n"
				      "  started: null\n"
				      "  finished: null\n"
				      "  reason: \"\"\n"
				      "  message: \"\"\n");
	spec_record_free(r);
}

static void test_log_names(void **state)
{
	struct spec_record *r = record_of(small);
	char *text;

	(void)state;
	text = spec_record_log_key(r, &r->replicas[1], 4);
	assert_string_equal(text, "trainer-1.4");
	free(text);
	text = spec_record_log_key(r, &r->replicas[2], 0);
	assert_string_equal(text, "myreader-0.0");
	free(text);
	text = spec_record_log_prefix(r, &r->replicas[1]);
	assert_string_equal(text, "trainer/1 ");
	free(text);
	text = spec_record_log_prefix(r, &r->replicas[2]);
	assert_string_equal(text, "myreader/0 ");
	free(text);
	spec_record_free(r);
}

static void test_job(void **state)
{
	struct spec_record *r = busy();
	cleanup_job struct spec_job *job = NULL;
	const struct spec_replica *rep;

	(void)state;
	r->history = r->suspended = false;
	job = spec_record_job(r);
	assert_non_null(job);
	assert_string_equal(job->id, "demo-b1");
	assert_string_equal(job->app, "demo");
	assert_string_equal(job->backend, "local");
	assert_string_equal(job->namespace, "");
	assert_string_equal(job->queue, "");
	assert_string_equal(job->submitter, "ada@login1");
	assert_int_equal(job->state, SPEC_RUNNING);
	assert_true(job->own && job->has_appdef && !job->history && !job->suspended);
	assert_int_equal(job->retries, 2);
	assert_int_equal(job->max_retries, 3);
	assert_true(job->changed == CREATED + 3 * SECOND && job->stale_since == 0);
	assert_int_equal(job->n_roles, 2);
	assert_string_equal(job->roles[0].name, "trainer");
	assert_int_equal(job->roles[0].desired, 2);
	assert_int_equal(job->roles[0].minimum, 1);
	assert_string_equal(job->roles[1].name, "My Reader");
	assert_int_equal(job->roles[1].minimum, 1);
	assert_int_equal(job->roles[1].first, 2);
	rep = spec_job_replica(job, "trainer-1");
	assert_ptr_equal(rep, &job->replicas[1]);
	assert_int_equal(rep->exit_code, 1);
	assert_int_equal(rep->signal, 15);
	assert_int_equal(rep->attempt, 2);
	assert_int_equal(rep->n_logs, 3);
	assert_string_equal(rep->logs[0].key, "trainer-1.0");
	assert_string_equal(rep->logs[2].key, "trainer-1.2");
	assert_string_equal(rep->logs[2].container, "");
	assert_non_null(spec_job_replica(job, "myreader-0"));
	spec_record_free(r);
}

static void test_actions(void **state)
{
	static const struct {
		const char *phase;
		unsigned actions;
	} table[] = {
		{"Pending", 1u << SPEC_SUSPEND | 1u << SPEC_RESTART | 1u << SPEC_TERMINATE},
		{"Running", 1u << SPEC_SUSPEND | 1u << SPEC_RESTART | 1u << SPEC_TERMINATE},
		{"Suspended", 1u << SPEC_RESUME | 1u << SPEC_RESTART | 1u << SPEC_TERMINATE},
		{"Restarting", 1u << SPEC_TERMINATE},
		{"Terminating", 0},
		{"Completed", 0},
		{"Failed", 0},
		{"Terminated", 0},
		{"Cancelled", 0},
	};
	struct spec_record *r = record_of(small);

	(void)state;
	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_job struct spec_job *job = NULL;
		cleanup_job struct spec_job *history = NULL;

		set(&r->phase, table[i].phase);
		r->suspended = streq(table[i].phase, "Suspended");
		job = spec_record_job(r);
		assert_int_equal(job->actions, table[i].actions);
		assert_int_equal(job->suspended, r->suspended);
		assert_int_equal(job->state == SPEC_CANCELLED, r->suspended);
		r->history = true;
		history = spec_record_job(r);
		r->history = false;
		assert_int_equal(history->actions, 0);
		assert_true(history->history);
	}
	spec_record_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),	     cmocka_unit_test(test_reads_back),
		cmocka_unit_test(test_not_utf8),     cmocka_unit_test(test_version),
		cmocka_unit_test(test_wrong_values), cmocka_unit_test(test_missing_and_wrong_type),
		cmocka_unit_test(test_no_json),	     cmocka_unit_test(test_yaml),
		cmocka_unit_test(test_log_names),    cmocka_unit_test(test_job),
		cmocka_unit_test(test_actions),	     cmocka_unit_test(test_too_many_attempts),
		cmocka_unit_test(test_older_rules),  cmocka_unit_test(test_any_texts),
		cmocka_unit_test(test_large_app),    cmocka_unit_test(test_wrong_app),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
