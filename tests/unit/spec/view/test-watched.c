/* SPDX-License-Identifier: MIT */
/*
 * Pod groups, events and queues as a server writes them, and the texts of events and of
 * queues/NAME/status.
 */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/view/reader.h"
#include "spec/view/watched.h"
#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000000)

static struct spec_event_view *event(const char *json)
{
	struct spec_event_view *v;

	assert_int_equal(spec_event_view_parse(json, strlen(json), &v), 0);
	return v;
}

#define EVENT(second, message)                                                                        \
	"{\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"u-1\"},\"type\":\"Warning\"," \
	"\"reason\":\"FailedMount\",\"message\":\"" message "\",\"lastTimestamp\":"                   \
	"\"1970-01-01T00:00:" second "Z\",\"count\":3}"

static void test_events_text(void **state)
{
	struct spec_event_view *v[] = {
		event(EVENT("09", "a\\tb\\nc\\\\d")),
		event(EVENT("08", "0/0 tasks in gang unschedulable")),
		event(EVENT("07", "first")),
	};
	char *text;
	size_t len;
	int64_t changed;

	assert_true(spec_event_view_explains(v[0]));
	assert_true(spec_event_view_is_noise(v[1]));
	assert_false(spec_event_view_same(v[0], v[1]));
	assert_true(spec_event_view_is_old(v[2], 9 * SECOND));
	assert_false(spec_event_view_is_old(v[2], 8 * SECOND));
	spec_event_view_text(v, array_size(v), &text, &len, &changed);
	assert_string_equal(
		text, "1970-01-01T00:00:07Z\tPod/p\tWarning\tFailedMount\t3\tfirst\n"
		      "1970-01-01T00:00:09Z\tPod/p\tWarning\tFailedMount\t3\ta\\tb\\nc\\\\d\n");
	assert_int_equal(len, strlen(text));
	assert_int_equal(changed, 9 * SECOND);
	free(text);
	for (size_t i = 0; i < array_size(v); i++)
		spec_event_view_unref(v[i]);
}

/* Event recorders write the time to different fields. A series has a count. */
static void test_series(void **state)
{
	struct spec_event_view *v = event(
		"{\"involvedObject\":{\"uid\":\"u\"},\"eventTime\":\"1970-01-01T00:00:05.5Z\","
		"\"series\":{\"count\":4,\"lastObservedTime\":\"1970-01-01T00:00:08Z\"}}");
	struct spec_event_view *none;

	assert_int_equal(v->last, 8 * SECOND);
	assert_int_equal(v->count, 4);
	spec_event_view_unref(v);
	assert_int_equal(spec_event_view_parse("{}", 2, &none), -EINVAL);
	assert_int_equal(spec_event_view_parse("[]", 2, &none), -EINVAL);
}

#define META "\"metadata\":{\"name\":\"q\",\"uid\":\"u-q\"}"

static void test_queue(void **state)
{
	static const char json[] =
		"{" META
		",\"spec\":{\"capability\":{\"cpu\":\"4\"}},\"status\":{\"state\":\"Open\","
		"\"allocated\":{\"cpu\":\"1500m\",\"memory\":\"0\"}}}";
	struct spec_queue_view *v;
	char *text;
	size_t len;

	assert_int_equal(spec_queue_view_parse(json, strlen(json), &v), 0);
	assert_true(spec_queue_view_same(v, v));
	spec_queue_view_text(v, NULL, 3, 2, &text, &len);
	assert_string_equal(text, "name: q\nstate: Open\nweight: 1\ncapability:\n  cpu: \"4\"\n"
				  "allocated:\n  cpu: 1500m\n  memory: \"0\"\nreserved: {}\n"
				  "pending: 3\nrunning: 2\n");
	free(text);
	spec_queue_view_unref(v);
	assert_int_equal(spec_queue_view_parse("{}", 2, &v), -EINVAL);
}

/* The scheduler does not remove its old condition. The newer one counts. */
static void test_group(void **state)
{
	static const char short_of[] =
		"{" META ",\"spec\":{\"minMember\":3,\"minResources\":{\"cpu\":\"2\"}},\"status\":{"
		"\"phase\":\"Inqueue\",\"conditions\":[{\"type\":\"Unschedulable\",\"status\":"
		"\"True\",\"lastTransitionTime\":\"1970-01-01T00:00:05Z\"}%s]}}";
	struct spec_group_view *v;
	char json[1024];

	snprintf(json, sizeof(json), short_of, "");
	assert_int_equal(spec_group_view_parse(json, strlen(json), &v), 0);
	assert_int_equal(v->minimum, 3);
	assert_string_equal(v->phase, "Inqueue");
	assert_string_equal(spec_amounts_get(&v->needs, "", "cpu"), "2");
	assert_true(v->is_short);
	spec_group_view_free(v);
	snprintf(json, sizeof(json), short_of,
		 ",{\"type\":\"Scheduled\",\"status\":\"True\",\"lastTransitionTime\":"
		 "\"1970-01-01T00:00:06Z\"}");
	assert_int_equal(spec_group_view_parse(json, strlen(json), &v), 0);
	assert_false(v->is_short);
	spec_group_view_free(v);
}

#define SECOND INT64_C(1000000000)

static size_t read_job(const struct spec_reader *self, const struct spec_value *object,
		       struct spec_job_view *v, struct spec_task_source **ret_tasks)
{
	*ret_tasks = new0_n(struct spec_task_source, 1);
	(*ret_tasks)->name = "t";
	(*ret_tasks)->role = "";
	(*ret_tasks)->replicas = (*ret_tasks)->minimum = 1;
	return 1;
}

static void read_status(const struct spec_reader *self, const struct spec_value *object,
			struct spec_job_view *v)
{
	spec_set(&v->phase, "Up");
}

static void read_pod(const struct spec_reader *self, const struct spec_value *object,
		     struct spec_pod_view *v)
{
	spec_set(&v->task, "t");
	spec_set(&v->main, spec_pod_choose_main(object, ""));
}

static const struct spec_phase phases[] = {{.name = "Up", .state = SPEC_RUNNING}, {0}};
static const struct spec_reader reader = {.job = read_job,
					  .status = read_status,
					  .pod = read_pod,
					  .phases = phases};

/* A job with one replica, whose pod is p, and its snapshot. */
struct story {
	struct spec_job_view *job;
	struct spec_pod_view *pod;
	const struct spec_job *last;
};

static void show(struct story *s)
{
	const struct spec_view_context ctx = {.reader = &reader,
					      .backend = "made-up",
					      .namespace = "ns",
					      .now = 100,
					      .before = s->last};
	const struct spec_pod_view *pods[] = {s->pod};
	struct spec_job *job = spec_view_job(s->job, pods, s->pod ? 1 : 0, &ctx);

	spec_job_unref(s->last);
	s->last = spec_job_pack(job);
}

/* Give the pod p this UID, and its container this STATE, with ' in place of ". */
static void set_pod(struct story *s, const char *uid, const char *state)
{
	cleanup_free char *json = text_print(
		"{'metadata':{'name':'p','uid':'%s'},'spec':{'containers':[{'name':'main','resources':{"
		"'requests':{'cpu':'2'},'limits':{'memory':'1Gi'}}}]},'status':{'phase':'Running',"
		"'containerStatuses':[{'name':'main','state':%s}]}}",
		uid, state);
	struct spec_pod_view *v;

	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	assert_int_equal(spec_pod_view_parse(
				 &(struct spec_pod_readers){
					 .v = &(const struct spec_reader *){&reader}, .n = 1},
				 json, strlen(json), &v),
			 0);
	if (s->pod && streq(uid, s->pod->meta.uid))
		spec_pod_view_inherit(v, s->pod);
	spec_pod_view_free(s->pod);
	s->pod = v;
	show(s);
}

/* Let the container of the pod UID run since second START of 1970. */
static void run(struct story *s, const char *uid, int start)
{
	cleanup_free char *state =
		text_print("{'running':{'startedAt':'1970-01-01T00:%02d:%02dZ'}}", start / 60,
			   start % 60);

	set_pod(s, uid, state);
}

static struct spec_pod_view *find(void *data, const char *name)
{
	struct story *s = data;

	return streq(name, "p") ? s->pod : NULL;
}

/* Add a sample at second AT. Return whether it was new. */
static bool sample_as(struct story *s, int at, const char *cpu, const char *memory)
{
	cleanup_free char *json = text_print(
		"{\"metadata\":{\"name\":\"p\"},\"timestamp\":\"1970-01-01T00:%02d:%02dZ\",\"window\":\"15s\","
		"\"containers\":[{\"name\":\"proxy\",\"usage\":{\"cpu\":\"9\",\"memory\":\"9Gi\"}},"
		"{\"name\":\"main\",\"usage\":{\"cpu\":%s,\"memory\":%s}}]}",
		at / 60, at % 60, cpu, memory);
	const struct spec_pod_view *v = spec_pod_view_sample(json, strlen(json), find, s);

	show(s);
	return v;
}

static const struct spec_usage *used(const struct story *s)
{
	return s->last->replicas[0].usage;
}

static void expect(const struct story *s, int64_t cpu_us, int64_t cpu_now, int64_t memory_now,
		   int64_t memory_peak, int64_t samples)
{
	const struct spec_usage *u = used(s);

	assert_non_null(u);
	assert_int_equal(u->source, SPEC_USAGE_METRICS);
	assert_int_equal(u->cpu_us, cpu_us);
	assert_int_equal(u->cpu_now, cpu_now);
	assert_int_equal(u->memory_now, memory_now);
	assert_int_equal(u->memory_peak, memory_peak);
	assert_int_equal(u->samples, samples);
}

static int setup(void **state)
{
	static const char json[] = "{\"metadata\":{\"name\":\"j\",\"uid\":\"u\"}}";
	struct story *s = new0(struct story);

	assert_int_equal(spec_job_view_parse(&reader, json, sizeof(json) - 1, &s->job), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct story *s = *state;

	spec_job_view_free(s->job);
	spec_pod_view_free(s->pod);
	spec_job_unref(s->last);
	free(s);
	return 0;
}

static void test_sum(void **state)
{
	struct story *s = *state;

	run(s, "u1", 100);
	assert_null(used(s));
	assert_true(sample_as(s, 110, "\"500000001n\"", "\"100Ki\""));
	expect(s, 5000010, 500, 102400, 102400, 1);
	assert_int_equal(used(s)->first, 110 * SECOND);
	/* The same sample again, or an older one, is not new. */
	assert_false(sample_as(s, 110, "\"9\"", "\"9Gi\""));
	assert_false(sample_as(s, 105, "\"9\"", "\"9Gi\""));
	assert_true(sample_as(s, 125, "\"1\"", "\"300Ki\""));
	expect(s, 20000010, 1000, 307200, 307200, 2);
	/* One sample is missing. The next one counts for both. */
	assert_true(sample_as(s, 155, "\"2\"", "\"200Ki\""));
	expect(s, 80000010, 2000, 204800, 307200, 3);
	assert_int_equal(used(s)->last, 155 * SECOND);
	/* Other changes of the pod do not affect its usage. When it ends, its usage is kept. */
	run(s, "u1", 100);
	expect(s, 80000010, 2000, 204800, 307200, 3);
	set_pod(s, "u1",
		"{'terminated':{'exitCode':137,'reason':'OOMKilled','startedAt':'1970-01-01T00:01:40Z',"
		"'finishedAt':'1970-01-01T00:02:40Z'}}");
	expect(s, 80000010, 0, 0, 307200, 3);
}

/* Usage while there were no samples is unknown, and so is the total. */
static void test_gap(void **state)
{
	struct story *s = *state;

	run(s, "u1", 100);
	sample_as(s, 146, "\"1\"", "\"1Ki\"");
	expect(s, -1, 1000, 1024, 1024, 1);
	sample_as(s, 160, "\"2\"", "\"2Ki\"");
	expect(s, -1, 2000, 2048, 2048, 2);
}

static void test_gap_later(void **state)
{
	struct story *s = *state;

	run(s, "u1", 100);
	sample_as(s, 145, "\"1\"", "\"3Ki\"");
	expect(s, 45000000, 1000, 3072, 3072, 1);
	sample_as(s, 191, "\"1\"", "\"1Ki\"");
	expect(s, -1, 1000, 1024, 3072, 2);
}

/*
 * A sample of an earlier pod with the same name, or of an earlier run of its container, does not
 * count.
 */
static void test_runs(void **state)
{
	struct story *s = *state;

	run(s, "u1", 100);
	sample_as(s, 110, "\"1\"", "\"1Mi\"");
	run(s, "u2", 120);
	assert_null(used(s));
	sample_as(s, 119, "\"1\"", "\"1Mi\"");
	sample_as(s, 120, "\"1\"", "\"1Mi\"");
	assert_null(used(s));
	sample_as(s, 130, "\"500m\"", "\"1Ki\"");
	expect(s, 5000000, 500, 1024, 1024, 1);
	/* While the container waits for its restart, the usage of its last run is shown. */
	set_pod(s, "u2", "{'waiting':{'reason':'CrashLoopBackOff'}}");
	expect(s, 5000000, 0, 0, 1024, 1);
	run(s, "u2", 140);
	assert_null(used(s));
	sample_as(s, 150, "\"1\"", "\"2Ki\"");
	expect(s, 10000000, 1000, 2048, 2048, 1);
}

/* The next mount has only the snapshot that was written. */
static void test_restart(void **state)
{
	struct story *s = *state;

	run(s, "u1", 100);
	sample_as(s, 115, "\"1\"", "\"1Mi\"");
	spec_pod_view_free(s->pod);
	s->pod = NULL;
	run(s, "u1", 100);
	expect(s, 15000000, 1000, 1 << 20, 1 << 20, 1);
	sample_as(s, 145, "\"1\"", "\"1Ki\"");
	expect(s, 45000000, 1000, 1024, 1 << 20, 2);
}

static void test_unknown(void **state)
{
	struct story *s = *state;

	run(s, "u1", 100);
	sample_as(s, 110, "\"one\"", "\"-5\"");
	expect(s, -1, -1, -1, -1, 1);
	sample_as(s, 120, "{}", "\"1e18\"");
	expect(s, -1, -1, -1, -1, 2);
	sample_as(s, 130, "\"999999999\"", "\"7\"");
	expect(s, -1, 999999999000, 7, 7, 3);
}

static void test_too_much(void **state)
{
	struct story *s = *state;

	run(s, "u1", 100);
	sample_as(s, 145, "\"999999999\"", "\"7\"");
	expect(s, -1, 999999999000, 7, 7, 1);
}

static void test_not_metrics(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"{\"metadata\":{\"name\":\"p\"}}",
		"{\"metadata\":{\"name\":\"p\"},\"timestamp\":\"1970-01-01T00:03:00Z\"}",
		"{\"metadata\":{\"name\":\"p\"},\"timestamp\":\"1970-01-01T00:03:00Z\",\"containers\":[{}]}",
		"{\"metadata\":{\"name\":\"p\"},\"timestamp\":7,\"containers\":[{\"name\":\"main\"}]}",
		"{\"metadata\":{\"name\":\"q\"},\"timestamp\":\"1970-01-01T00:03:00Z\",\"containers\":["
		"{\"name\":\"main\",\"usage\":{\"cpu\":\"1\",\"memory\":\"1\"}}]}",
	};
	struct story *s = *state;

	run(s, "u1", 100);
	for (size_t i = 0; i < array_size(texts); i++)
		assert_null(spec_pod_view_sample(texts[i], strlen(texts[i]), find, s));
	show(s);
	assert_null(used(s));
}

#define METRICS(versions) "{\"groups\":[{\"name\":\"metrics.k8s.io\",\"versions\":" versions "}]}"

static void test_version(void **state)
{
	static const struct {
		const char *json, *version;
	} rows[] = {
		{METRICS("[{\"groupVersion\":\"metrics.k8s.io/v1beta1\"}]"),
		 "metrics.k8s.io/v1beta1"},
		{METRICS("[{\"groupVersion\":\"metrics.k8s.io/v1beta1\"},{\"groupVersion\":"
			 "\"metrics.k8s.io/v1\"}]"),
		 "metrics.k8s.io/v1"},
		{METRICS("[{\"groupVersion\":\"metrics.k8s.io/v2\"}]"), NULL},
		{METRICS("{}"), NULL},
		{"{\"groups\":{}}", NULL},
		{"nothing", NULL},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		const char *version =
			spec_group_version(rows[i].json, strlen(rows[i].json), SPEC_METRICS_GROUP);

		assert_int_equal(!version, !rows[i].version);
		if (version)
			assert_string_equal(version, rows[i].version);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_text),
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_group),
		cmocka_unit_test_setup_teardown(test_sum, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gap_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_much, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_metrics, setup, teardown),
		cmocka_unit_test(test_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
