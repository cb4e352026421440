/* SPDX-License-Identifier: MIT */
/*
 * Records: they are the same after they were written and read, and any damage is detected. Also:
 * the snapshot and the texts that users see of a local job.
 */
#include <errno.h>
#include <json-c/json.h>

#include "spec/base/mem.h"
#include "spec/base/utf8.h"
#include "spec/job/status.h"
#include "spec/record/record.h"
#include "tests/unit/spec/app-document.h"
#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000000)
/* 2026-11-21T09:08:40Z plus a fraction */
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

static void set(char **field, const char *value)
{
	spec_set(field, value);
}

static struct spec_record *record_of(const char *document)
{
	const struct spec_record_origin origin = {
		.id = "demo-b1",
		.uid = "fb9f6f2e-7a59-4b1e-9c0a-3d2f1e0c9b8a",
		.submission = "7d1c3c1e-0000-4000-8000-000000000000",
		.submitter = "ada@login1",
		.work_dir = "/data/\u00e9",
		.time_limit = 14400,
		.ttl = 0,
		.created = CREATED,
	};
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;

	if (document_parse(document, strlen(document), NULL, &app, &e) < 0)
		fail_msg("%s", spec_errors_text(&e, "document"));
	return spec_record_new(app, &origin);
}

/* Return both parts of R, one per line. */
static char *text_of(const struct spec_record *r)
{
	cleanup_free char *snapshot = spec_record_snapshot(r), *plan = spec_record_plan(r);

	return text_print("%s\n%s", snapshot, plan);
}

static int parse_text(const char *text, struct spec_record **ret)
{
	cleanup_free char *snapshot = strdup(text);
	char *plan = strchr(snapshot, '\n');

	if (plan)
		*plan++ = '\0';
	return spec_record_parse(snapshot, plan, ret);
}

/* Return a record in which no field has its initial value. */
static struct spec_record *busy(void)
{
	struct spec_record *r = record_of(small);
	struct spec_job *job = r->job;

	job->state = SPEC_RUNNING;
	set(&job->phase, "Running");
	set(&job->reason, "Error");
	set(&job->message, "trainer-1: exit code 3");
	job->history = true;
	job->suspended = true;
	job->dropped = true;
	r->goal = SPEC_GOAL_CANCEL;
	r->again = true;
	job->retries = 2;
	job->started = CREATED + SECOND;
	job->finished = CREATED + 2 * SECOND;
	job->changed = CREATED + 3 * SECOND;
	for (size_t i = 0; i < job->n_replicas; i++) {
		struct spec_replica *rep = &job->replicas[i];

		spec_record_attempt(r, i, 1);
		spec_record_attempt(r, i, 2);
		r->plans[i] = (struct spec_plan){.ended = true, .again = true, .restarts = 3};
		rep->state = SPEC_FAILED;
		rep->exit_code = (int)i;
		rep->signal = 15;
		rep->started = CREATED + 4 * SECOND;
		rep->finished = CREATED + 5 * SECOND;
		set(&rep->reason, "Signal");
		set(&rep->message, "\"quoted\", \\ and / and \x1b");
	}
	return r;
}

/* A new record: a role with min_replicas 0 needs none of its replicas. By default, it needs all. */
static void test_new(void **state)
{
	struct spec_record *r = record_of(
		"name: demo\nroles:\n"
		"- {name: trainer, image: i, entrypoint: e, num_replicas: 2, min_replicas: 0}\n"
		"- {name: My Reader, image: i, entrypoint: e, max_retries: 1}\n");
	cleanup_job struct spec_job *job = spec_record_job(r);
	cleanup_free char *text = NULL;
	size_t len;

	assert_true(job->own && job->has_appdef && job->changed == CREATED);
	spec_status_yaml(job, &text, &len);
	assert_string_equal(
		text,
		"id: demo-b1\napp: demo\nstate: PENDING\nphase: Pending\nreason: \"\"\n"
		"message: \"\"\nlast_words: \"\"\nbackend: local\nsubmitter: ada@login1\n"
		"retries: 0\nmax_retries: 1\ntime_limit: 14400\ndeadline: null\n"
		"created: 2026-11-21T09:08:40Z\nstarted: null\nfinished: null\n"
		"transitions:\n- time: 2026-11-21T09:08:40Z\n  state: PENDING\n  phase: Pending\n"
		"roles:\n"
		"- name: trainer\n  desired: 2\n  minimum: 0\n"
		"  running: 0\n  waiting: 2\n  succeeded: 0\n  failed: 0\n  replicas:\n"
		"  - {id: 0, state: PENDING, attempt: 0, exit_code: null, signal: null, "
		"reason: \"\", message: \"\"}\n"
		"  - {id: 1, state: PENDING, attempt: 0, exit_code: null, signal: null, "
		"reason: \"\", message: \"\"}\n"
		"- name: My Reader\n  desired: 1\n  minimum: 1\n"
		"  running: 0\n  waiting: 1\n  succeeded: 0\n  failed: 0\n  replicas:\n"
		"  - {id: 0, state: PENDING, attempt: 0, exit_code: null, signal: null, "
		"reason: \"\", message: \"\"}\n");
	spec_record_free(r);
}

/* A path need not be UTF-8, nor need a text about it. JSON must be. */
static void test_reads_back(void **state)
{
	static const char dir[] = "/data/\xe9/\"\x01", message[] = "directory \"\xff\": gone";
	struct spec_record *copy = NULL, *r = busy();
	cleanup_free char *text = NULL, *again = NULL, *yaml = NULL;
	size_t len;

	set(&r->work_dir, dir);
	set(&r->job->replicas[0].message, message);
	text = text_of(r);
	assert_true(spec_utf8_is(text, strlen(text)));
	assert_int_equal(parse_text(text, &copy), 0);
	again = text_of(copy);
	assert_string_equal(text, again);
	assert_null(copy->app);
	assert_string_equal(copy->work_dir, dir);
	assert_string_equal(copy->job->replicas[0].message, message);
	assert_true(copy->job->history && copy->job->suspended && copy->job->dropped);
	assert_true(copy->goal == SPEC_GOAL_CANCEL && copy->again);
	assert_true(copy->plans[2].ended && copy->plans[2].again && copy->plans[2].restarts == 3);
	assert_int_equal(copy->job->replicas[0].n_logs, 3);
	spec_record_yaml(r, "a\xff.yaml", &yaml, &len);
	assert_non_null(strstr(yaml, "\nfile: a\\xff.yaml\nwork_dir: /data/\\xe9/\"\\x01\n"));
	assert_non_null(strstr(yaml, "\ncreated: 2026-11-21T09:08:40Z\napp:\n  name: demo\n"));
	spec_record_free(copy);
	spec_record_free(r);
}

/* --- damage --- */

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *ret;

	assert_true(json_object_object_get_ex(o, key, &ret));
	return ret;
}

static int parse_tree(struct json_object *root)
{
	struct spec_record *r = NULL;
	const char *plan = json_object_to_json_string(member(root, "plan"));
	int err = spec_record_parse(json_object_to_json_string(member(root, "snapshot")), plan, &r);

	assert_int_equal(err == 0, r != NULL);
	spec_record_free(r);
	return err;
}

/* True if KEY is a member that is only informative, so that the record is not wrong without it. */
static bool may_be_missing(const char *key)
{
	static const char keys[] =
		" app submitter submission backend namespace queue reason message given_up dropped "
		"transitions obstacle last_words pod node blamed silent time_limit ttl evictions gpus "
		"cluster_queue flavors priority_class priority owner starts last_code uncounted exact ";
	cleanup_free char *word = text_print(" %s ", key);

	return strstr(keys, word);
}

/* Assert that ROOT is refused if any other member of O is missing, or has another type. */
static void assert_all_needed(struct json_object *root, struct json_object *o)
{
	size_t n = 0;
	char *keys[64];

	json_object_object_foreach(o, name, unused) {
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
	cleanup_free char *snapshot = spec_record_snapshot(r), *plan = spec_record_plan(r);
	struct json_object *ret = json_object_new_object();

	json_object_object_add(ret, "snapshot", json_tokener_parse(snapshot));
	json_object_object_add(ret, "plan", json_tokener_parse(plan));
	spec_record_free(r);
	return ret;
}

static void test_missing_and_wrong_type(void **state)
{
	struct json_object *root = tree_of(busy());

	for (int i = 0; i < 2; i++) {
		struct json_object *part = member(root, i ? "plan" : "snapshot");

		assert_all_needed(root, part);
		assert_all_needed(root, json_object_array_get_idx(member(part, "replicas"), 1));
	}
	json_object_put(root);
}

/* Assert that a record is refused if KEY of the plan, or else of the snapshot, has another VALUE. */
static void assert_refused(const char *key, const char *value, bool replica)
{
	static const char *const parts[] = {"plan", "snapshot"};
	struct json_object *root = tree_of(busy()), *o = NULL;

	for (size_t i = 0; i < 2 && !json_object_object_get_ex(o, key, NULL); i++) {
		o = member(root, parts[i]);
		if (replica)
			o = json_object_array_get_idx(member(o, "replicas"), 1);
	}
	json_object_object_add(o, key, json_tokener_parse(value));
	if (parse_tree(root) != -EINVAL)
		fail_msg("%s: %s was taken", key, value);
	json_object_put(root);
}

static void test_wrong_values(void **state)
{
	/* a member of the snapshot or the plan, and wrong values for it */
	static const char *const table[][6] = {
		{"id", "\"\"", "\"../x\"", "\"a/b\""},
		{"uid", "\"\""},
		{"message", "\"a\\u0000b\""},
		{"work_dir", "{}", "{\"base64\": 1}", "{\"base64\": \"!\"}",
		 "{\"base64\": \"YQBi\"}"},
		{"state", "\"running\""},
		{"retries", "-1"},
		{"created", "-5"},
		{"history", "0"},
		{"replicas", "{}", "[]"},
		{"roles", "{}", "[]", "[{\"name\": \"trainer\", \"desired\": 3, \"minimum\": 1}]"},
		{"goal", "5"},
		{"again", "0"},
	};
	static const char *const of_replica[][6] = {
		{"name", "\"trainer-2\"", "\"../x\""},
		{"role", "1"},
		{"id", "0", "-1"},
		{"attempt", "4294967295", "-1"},
		{"ended", "1"},
		{"again", "null"},
		{"restarts", "-1"},
		{"signal", "-9"},
		{"state", "\"\""},
	};

	for (size_t i = 0; i < array_size(table); i++)
		for (size_t k = 1; table[i][k]; k++)
			assert_refused(table[i][0], table[i][k], false);
	for (size_t i = 0; i < array_size(of_replica); i++)
		for (size_t k = 1; of_replica[i][k]; k++)
			assert_refused(of_replica[i][0], of_replica[i][k], true);
}

/* --- the record's AppDef --- */

static void test_app(void **state)
{
#define REFUSED	  "this version of kxfs does not accept the job's app.yaml: app.yaml:"
#define DIFFERENT "to this version of kxfs, the job's app.yaml describes a different job"
	static const struct {
		const char *text, *fault;
	} table[] = {
		{"name: demo\n", REFUSED "1:1: roles is missing"},
		{"{", REFUSED},
		{"name: demo\nroles: [{name: trainer, image: i, entrypoint: e}]\n", DIFFERENT},
		{"name: demo\nroles:\n- {name: trainer, image: i, entrypoint: e, num_replicas: 2}\n"
		 "- {name: reader, image: i, entrypoint: e}\n",
		 DIFFERENT},
		{"name: demo\nroles:\n- {name: trainer, image: i, entrypoint: e, num_replicas: 3}\n"
		 "- {name: My Reader, image: i, entrypoint: e}\n",
		 DIFFERENT},
		{small, ""},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct spec_record *r = busy();
		cleanup_job struct spec_job *job = NULL;

		spec_app_free(take_ptr(r->app));
		spec_record_read_app(r, table[i].text, strlen(table[i].text), NULL);
		assert_int_equal(r->app == NULL, *table[i].fault != '\0');
		if (strncmp(r->fault, table[i].fault, strlen(table[i].fault)) != 0 ||
		    strchr(r->fault, '\n'))
			fail_msg("%zu: %s", i, r->fault);
		/* If the job could not be started again, it is not ended for a restart. */
		r->job->history = r->job->suspended = false;
		job = spec_record_job(r);
		assert_int_equal(job->actions & 1u << SPEC_RESTART,
				 r->app ? 1u << SPEC_RESTART : 0);
		assert_true(job->actions & 1u << SPEC_TERMINATE);
		spec_record_free(r);
	}
}

/*
 * A number of attempts that is possible for each replica may be too large for all of them together,
 * because each attempt has a file. A million logs are accepted, and not one more.
 */
static void test_too_many_attempts(void **state)
{
	struct spec_record *r = record_of("name: a\nroles: [{name: r, image: /, entrypoint: e, "
					  "num_replicas: 10000}]\n");
	struct spec_record *copy = NULL;
	cleanup_free char *all = NULL, *more = NULL;

	for (size_t i = 0; i < r->job->n_replicas; i++)
		r->job->replicas[i].attempt = 99;
	all = text_of(r);
	assert_int_equal(parse_text(all, &copy), 0);
	spec_record_free(take_ptr(copy));
	r->job->replicas[0].attempt = 1000000;
	more = text_of(r);
	assert_int_equal(parse_text(more, &copy), -EINVAL);
	spec_record_free(r);
}

static void test_no_json(void **state)
{
	static const char *const table[] = {"",	     "{",  "null",  "[]",  "1",
					    "\"x\"", "{}", "{} {}", "\xff"};
	struct spec_record *r = busy(), *copy = NULL;
	cleanup_free char *snapshot = spec_record_snapshot(r), *plan = spec_record_plan(r);

	for (size_t i = 0; i < array_size(table); i++) {
		assert_int_equal(spec_record_parse(table[i], plan, &copy), -EINVAL);
		assert_int_equal(spec_record_parse(snapshot, table[i], &copy), -EINVAL);
	}
	assert_int_equal(spec_record_parse(NULL, plan, &copy), -EINVAL);
	for (size_t n = 0; n < max_of(strlen(snapshot), strlen(plan)); n += 7) {
		cleanup_free char *cut = text_print("%.*s", (int)n, snapshot);
		cleanup_free char *cut_plan = text_print("%.*s", (int)n, plan);

		if (n < strlen(snapshot))
			assert_int_equal(spec_record_parse(cut, plan, &copy), -EINVAL);
		if (n < strlen(plan))
			assert_int_equal(spec_record_parse(snapshot, cut_plan, &copy), -EINVAL);
	}
	assert_null(copy);
	/* A finished job needs no plan. */
	assert_int_equal(spec_record_parse(snapshot, NULL, &copy), 0);
	spec_record_free(copy);
	spec_record_free(r);
}

/* --- what users see --- */

static void test_log_names(void **state)
{
	struct spec_record *r = busy();

	for (size_t i = 0; i < 2; i++) {
		const struct spec_replica *replica = &r->job->replicas[1 + i];
		cleanup_free char *key = spec_record_log_key(replica, 4);
		cleanup_free char *prefix = spec_replica_log_prefix(replica);

		assert_string_equal(key, i ? "myreader-0.4" : "trainer-1.4");
		assert_string_equal(prefix, i ? "myreader/0 " : "trainer/1 ");
		assert_ptr_equal(spec_job_replica(r->job, i ? "myreader-0" : "trainer-1"), replica);
		assert_string_equal(replica->logs[2].key, i ? "myreader-0.2" : "trainer-1.2");
		assert_string_equal(replica->logs[2].container, "");
	}
	spec_record_free(r);
}

static void test_actions(void **state)
{
#define ENDABLE (1u << SPEC_RESTART | 1u << SPEC_TERMINATE)
	static const struct {
		const char *phase;
		unsigned actions;
	} table[] = {
		{"Pending", ENDABLE | 1u << SPEC_SUSPEND},
		{"Running", ENDABLE | 1u << SPEC_SUSPEND},
		{"Suspended", ENDABLE | 1u << SPEC_RESUME},
		{"Restarting", 1u << SPEC_TERMINATE},
		{"Terminating", 0},
		{"Completed", 0},
		{"Failed", 0},
		{"Terminated", 0},
		{"Cancelled", 0},
	};
	struct spec_record *r = record_of(small);

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_job struct spec_job *job = NULL;
		cleanup_job struct spec_job *history = NULL;

		set(&r->job->phase, table[i].phase);
		r->job->suspended = streq(table[i].phase, "Suspended");
		job = spec_record_job(r);
		assert_int_equal(job->actions, table[i].actions);
		assert_int_equal(job->suspended, r->job->suspended);
		assert_int_equal(job->state == SPEC_CANCELLED, r->job->suspended);
		r->job->history = true;
		history = spec_record_job(r);
		r->job->history = false;
		assert_int_equal(history->actions, 0);
		assert_true(history->history);
	}
	spec_record_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_reads_back),
		cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_missing_and_wrong_type),
		cmocka_unit_test(test_no_json),
		cmocka_unit_test(test_log_names),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_app),
		/*
		 * This must be the last test. If MALLOC_PERTURB_ is set, malloc fills everything
		 * that this test frees.
		 */
		cmocka_unit_test(test_too_many_attempts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
