/* SPDX-License-Identifier: MIT */
/*
 * What ctl requests from a kind's controller: in which phases, with which change, and what shows
 * that the controller has obeyed.
 */
#include <errno.h>

#include "spec/kinds/kinds.h"
#include "spec/view/control.h"
#include "spec/view/kueue.h"
#include "spec/view/view.h"
#include "tests/unit/unit.h"
#include "tests/unit/table.h"

#define BUSY	(1u << SPEC_SUSPEND | 1u << SPEC_RESTART | 1u << SPEC_TERMINATE)
#define CONTROL (&spec_volcano_control)

static char name[] = "trainer", uid[] = "u-1", no_owner[] = "", version[] = "7";
static char workload_name[] = "appwrapper-trainer-1a2b3", workload_uid[] = "w-1";

/* Return a job in PHASE that has used RETRIES of its 3 retries. */
static struct spec_job_view job(const char *phase, unsigned retries)
{
	return (struct spec_job_view){
		.meta = {.name = name, .uid = uid, .owner_uid = no_owner},
		.phase = (char *)(uintptr_t)phase,
		.retries = retries,
		.retry_limit = 3,
	};
}

/*
 * Return what is known of VIEW. WORKLOAD is Kueue's, or NULL. The result is static, and valid until
 * the next call.
 */
static const struct spec_control_job *known(const struct spec_job_view *view,
					    const struct spec_workload_view *workload)
{
	static struct spec_kueue_facts kueue;
	static struct spec_control_job ret;

	kueue = (struct spec_kueue_facts){.known = true, .workload = workload};
	ret = (struct spec_control_job){view, &kueue};
	return &ret;
}

static unsigned actions(const char *phase, unsigned retries)
{
	const struct spec_job_view v = job(phase, retries);

	return spec_control_actions(CONTROL, known(&v, NULL));
}

/* Return why ACTION is refused with EINVAL, or NULL if the phase does not permit it. */
static const char *refusal(const struct spec_control *control, const struct spec_control_job *job,
			   enum spec_action action)
{
	const char *why;

	assert_int_equal(control->check(job, action, &why), -EINVAL);
	return why;
}

static void test_phases(void **state)
{
	static const char *const none[] = {"",		"Restarting", "Completing", "Terminating",
					   "Completed", "Failed",     "Terminated", "Inventing"};

	assert_int_equal(actions("Pending", 0), BUSY);
	assert_int_equal(actions("Running", 0), BUSY);
	assert_int_equal(actions("Aborting", 0), 1u << SPEC_RESUME);
	assert_int_equal(actions("Aborted", 0), 1u << SPEC_RESUME);
	for (size_t i = 0; i < array_size(none); i++)
		assert_int_equal(actions(none[i], 0), 0);
	/* Volcano has its own queues, and no Command changes the queue or the priority. */
	assert_int_equal(CONTROL->known, BUSY | 1u << SPEC_RESUME);
}

/* If an action costs a retry and none is left, ctl does not offer it. The refusal explains that. */
static void test_retries(void **state)
{
	struct spec_job_view v = job("Running", 2);

	assert_int_equal(actions("Running", 1), BUSY);
	assert_int_equal(actions("Running", 2), BUSY & ~(1u << SPEC_RESTART));
	assert_int_equal(actions("Aborted", 2), 0);
	assert_non_null(strstr(refusal(CONTROL, known(&v, NULL), SPEC_RESTART), "none left"));
	assert_null(refusal(CONTROL, known(&v, NULL), SPEC_RESUME));
	v.retry_limit = 0;
	assert_int_equal(spec_control_actions(CONTROL, known(&v, NULL)), BUSY);
	v.meta.deleted = 1;
	assert_int_equal(spec_control_actions(CONTROL, known(&v, NULL)), 0);
	assert_non_null(strstr(refusal(CONTROL, known(&v, NULL), SPEC_RESTART), "being deleted"));
}

static void test_request(void **state)
{
	const struct spec_job_view v = job("Running", 0);
	const struct spec_control_asked asked = {known(&v, NULL), "ns", NULL,
						 SPEC_TERMINATE,  NULL, "kxfs-1",
						 &spec_volcano};
	struct spec_control_request rq;

	CONTROL->request(&asked, &rq);
	assert_false(rq.patch);
	assert_string_equal(rq.resource, "commands.bus.volcano.sh");
	assert_string_equal(
		rq.path, "/apis/bus.volcano.sh/v1alpha1/namespaces/ns/commands?fieldManager=kxfs");
	assert_string_equal(
		rq.body,
		"{\"metadata\":{\"name\":\"kxfs-1\",\"namespace\":\"ns\",\"ownerReferences\":[{"
		"\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",\"name\":"
		"\"trainer\",\"uid\":\"u-1\"}]},\"apiVersion\":\"bus.volcano.sh/v1alpha1\","
		"\"kind\":\"Command\",\"action\":\"TerminateJob\",\"target\":{\"apiVersion\":"
		"\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",\"name\":\"trainer\",\"uid\":"
		"\"u-1\"}}");
	spec_control_request_clear(&rq);
}

static void test_outcome(void **state)
{
	static const struct {
		enum spec_action action;
		const char *before, *now;
		unsigned retries; /* retries used now; earlier: 0 */
		enum spec_control_outcome outcome;
	} table[] = {
		{SPEC_SUSPEND, "Running", "Running", 0, SPEC_CONTROL_OPEN},
		{SPEC_SUSPEND, "Running", "Aborting", 0, SPEC_CONTROL_OBEYED},
		{SPEC_SUSPEND, "Running", "Aborted", 0, SPEC_CONTROL_OBEYED},
		{SPEC_SUSPEND, "Pending", "Running", 0, SPEC_CONTROL_OPEN},
		{SPEC_SUSPEND, "Running", "Restarting", 1, SPEC_CONTROL_OPEN},
		{SPEC_SUSPEND, "Running", "Completed", 0, SPEC_CONTROL_LATE},
		{SPEC_RESUME, "Aborting", "Aborted", 0, SPEC_CONTROL_OPEN},
		{SPEC_RESUME, "Aborted", "Restarting", 1, SPEC_CONTROL_OBEYED},
		{SPEC_RESUME, "Aborted", "Pending", 1, SPEC_CONTROL_OBEYED},
		{SPEC_RESTART, "Running", "Running", 0, SPEC_CONTROL_OPEN},
		{SPEC_RESTART, "Running", "Running", 1, SPEC_CONTROL_OBEYED},
		{SPEC_RESTART, "Running", "Completing", 0, SPEC_CONTROL_LATE},
		{SPEC_TERMINATE, "Running", "Terminating", 0, SPEC_CONTROL_OBEYED},
		{SPEC_TERMINATE, "Running", "Terminated", 0, SPEC_CONTROL_OBEYED},
		{SPEC_TERMINATE, "Running", "Failed", 0, SPEC_CONTROL_LATE},
		{SPEC_TERMINATE, "Running", "Aborted", 0, SPEC_CONTROL_LATE},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const struct spec_control_mark before = {table[i].before, 0, NULL};
		const struct spec_job_view now = job(table[i].now, table[i].retries);

		assert_int_equal(CONTROL->outcome(table[i].action, &before, known(&now, NULL)),
				 table[i].outcome);
	}
}

/* --- AppWrapper v1beta2 --- */

#define WRAPPER (spec_appwrapper.control)

static struct spec_job_view wrapper(const char *phase, bool asked, const char *queue)
{
	return (struct spec_job_view){
		.suspends = streq(phase, "Suspending") || streq(phase, "Suspended"),
		.over = streq(phase, "Terminating") || streq(phase, "Succeeded") ||
			streq(phase, "Failed"),
		.meta = {.name = name, .uid = uid, .owner_uid = no_owner},
		.resource_version = version,
		.phase = (char *)(uintptr_t)phase,
		.queue = (char *)(uintptr_t)queue,
		.asked = asked,
	};
}

/* Kueue's Workload of an active job, and of one that somebody has deactivated. */
static const struct spec_workload_view on = {.meta = {.name = workload_name, .uid = workload_uid},
					     .active = true};
static const struct spec_workload_view off = {.meta = {.name = workload_name, .uid = workload_uid}};

static void test_wrapper_actions(void **state)
{
	static const char *const open[] = {"Resuming", "Running", "Resetting"};
	static const char *const over[] = {"Succeeded", "Failed", "Terminating"};
	struct spec_job_view v;

	for (size_t i = 0; i < array_size(open); i++) {
		v = wrapper(open[i], false, "");
		assert_int_equal(spec_control_actions(WRAPPER, known(&v, NULL)),
				 1u << SPEC_SUSPEND);
		v = wrapper(open[i], true, "");
		assert_int_equal(spec_control_actions(WRAPPER, known(&v, NULL)), 1u << SPEC_RESUME);
		v = wrapper(open[i], false, "research");
		assert_int_equal(spec_control_actions(WRAPPER, known(&v, &on)), 1u << SPEC_SUSPEND);
		assert_int_equal(spec_control_actions(WRAPPER, known(&v, &off)), 1u << SPEC_RESUME);
		assert_null(refusal(WRAPPER, known(&v, &off), SPEC_SUSPEND));
		assert_int_equal(spec_control_actions(WRAPPER, known(&v, NULL)), 0);
		assert_non_null(strstr(refusal(WRAPPER, known(&v, NULL), SPEC_SUSPEND), "Kueue"));
	}
	for (size_t i = 0; i < array_size(over); i++) {
		v = wrapper(over[i], false, "");
		assert_int_equal(spec_control_actions(WRAPPER, known(&v, NULL)), 0);
		assert_null(refusal(WRAPPER, known(&v, NULL), SPEC_SUSPEND));
		v = wrapper(over[i], false, "research");
		assert_int_equal(spec_control_actions(WRAPPER, known(&v, &on)), 0);
		assert_null(refusal(WRAPPER, known(&v, NULL), SPEC_SUSPEND));
	}
	assert_int_equal(WRAPPER->known, 1u << SPEC_SUSPEND | 1u << SPEC_RESUME | 1u << SPEC_QUEUE |
						 1u << SPEC_PRIORITY);
}

static void test_wrapper_request(void **state)
{
	const struct spec_job_view v = wrapper("Running", false, "");
	const struct spec_control_asked asked = {known(&v, NULL), "ns", NULL,
						 SPEC_SUSPEND,	  NULL, "kxfs-1",
						 &spec_appwrapper};
	struct spec_control_request rq;

	WRAPPER->request(&asked, &rq);
	assert_true(rq.patch);
	assert_string_equal(rq.path, "/apis/workload.codeflare.dev/v1beta2/namespaces/ns/"
				     "appwrappers/trainer?fieldManager=kxfs");
	assert_string_equal(rq.body, "{\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":\"7\"},"
				     "\"spec\":{\"suspend\":true}}");
	spec_control_request_clear(&rq);
}

static void test_wrapper_outcome(void **state)
{
	static const struct {
		enum spec_action action;
		const char *phase;
		bool asked;
		enum spec_control_outcome outcome;
	} table[] = {
		{SPEC_SUSPEND, "Running", false, SPEC_CONTROL_OPEN},
		{SPEC_SUSPEND, "Running", true, SPEC_CONTROL_OPEN},
		/* suspended before the command */
		{SPEC_SUSPEND, "Suspended", false, SPEC_CONTROL_OPEN},
		{SPEC_SUSPEND, "Suspending", true, SPEC_CONTROL_OBEYED},
		{SPEC_SUSPEND, "Suspended", true, SPEC_CONTROL_OBEYED},
		{SPEC_SUSPEND, "Succeeded", true, SPEC_CONTROL_LATE},
		{SPEC_RESUME, "Suspended", true, SPEC_CONTROL_OPEN},
		{SPEC_RESUME, "Suspended", false, SPEC_CONTROL_OPEN},
		{SPEC_RESUME, "Resuming", false, SPEC_CONTROL_OBEYED},
		{SPEC_RESUME, "Running", false, SPEC_CONTROL_OBEYED},
		{SPEC_RESUME, "Succeeded", false, SPEC_CONTROL_OBEYED},
		{SPEC_RESUME, "Succeeded", true, SPEC_CONTROL_LATE},
		{SPEC_RESUME, "Terminating", false, SPEC_CONTROL_OBEYED},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const struct spec_job_view v = wrapper(table[i].phase, table[i].asked, "");
		const struct spec_control_mark before = {"Running", 0, NULL};

		assert_int_equal(WRAPPER->outcome(table[i].action, &before, known(&v, NULL)),
				 table[i].outcome);
	}
}

/* --- in a Kueue queue --- */

/* A mount that can't see Workloads can't suspend, and reports why. */
static void test_queued_unknown(void **state)
{
	const struct spec_job_view v = wrapper("Running", false, "research");
	const struct spec_kueue_facts unknown = {0};
	const struct spec_control_job job = {&v, &unknown};
	const char *why;

	assert_int_equal(spec_control_actions(WRAPPER, &job), 0);
	assert_int_equal(WRAPPER->check(&job, SPEC_SUSPEND, &why), -EOPNOTSUPP);
	assert_non_null(strstr(why, "can't watch Workloads"));
}

static void test_queued_request(void **state)
{
	const struct spec_kind *const kinds[] = {&spec_appwrapper, test_kind("jobset")};
	const struct spec_job_view v = wrapper("Running", false, "research");
	struct spec_control_asked asked = {.namespace = "ns", .kueue = "kueue.x-k8s.io/v1beta1"};
	struct spec_control_request rq;

	for (size_t i = 0; i < array_size(kinds); i++) {
		asked.job = known(&v, &on);
		asked.action = SPEC_SUSPEND;
		asked.kind = kinds[i];
		kinds[i]->control->request(&asked, &rq);
		assert_true(rq.patch);
		assert_string_equal(rq.resource, "workloads.kueue.x-k8s.io");
		assert_non_null(strstr(rq.forbidden, "no right to patch workloads"));
		assert_string_equal(rq.path, "/apis/kueue.x-k8s.io/v1beta1/namespaces/ns/workloads/"
					     "appwrapper-trainer-1a2b3?fieldManager=kxfs");
		assert_string_equal(rq.body,
				    "{\"metadata\":{\"uid\":\"w-1\"},\"spec\":{\"active\":false}}");
		spec_control_request_clear(&rq);
		asked.job = known(&v, &off);
		asked.action = SPEC_RESUME;
		kinds[i]->control->request(&asked, &rq);
		assert_string_equal(rq.body,
				    "{\"metadata\":{\"uid\":\"w-1\"},\"spec\":{\"active\":true}}");
		spec_control_request_clear(&rq);
	}
}

static void test_queued_outcome(void **state)
{
	static const struct {
		const char *phase;
		const struct spec_workload_view *workload;
		enum spec_action action;
		enum spec_control_outcome outcome;
	} table[] = {
		{"Running", &on, SPEC_SUSPEND, SPEC_CONTROL_OPEN},
		{"Running", &off, SPEC_SUSPEND, SPEC_CONTROL_OPEN},
		/* the job waits in the queue */
		{"Suspended", &on, SPEC_SUSPEND, SPEC_CONTROL_OPEN},
		{"Suspended", NULL, SPEC_SUSPEND, SPEC_CONTROL_OPEN},
		{"Suspending", &off, SPEC_SUSPEND, SPEC_CONTROL_OBEYED},
		{"Suspended", &off, SPEC_SUSPEND, SPEC_CONTROL_OBEYED},
		{"Succeeded", &off, SPEC_SUSPEND, SPEC_CONTROL_LATE},
		{"Suspended", &off, SPEC_RESUME, SPEC_CONTROL_OPEN},
		{"Suspended", NULL, SPEC_RESUME, SPEC_CONTROL_OPEN},
		/* the job waits in the queue again */
		{"Suspended", &on, SPEC_RESUME, SPEC_CONTROL_OBEYED},
		{"Running", &on, SPEC_RESUME, SPEC_CONTROL_OBEYED},
		{"Failed", &on, SPEC_RESUME, SPEC_CONTROL_LATE},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		/* Kueue sets spec.suspend itself, whatever users request. */
		const struct spec_job_view v = wrapper(table[i].phase, true, "research");
		const struct spec_control_mark before = {"Running", 0, NULL};

		assert_int_equal(WRAPPER->outcome(table[i].action, &before,
						  known(&v, table[i].workload)),
				 table[i].outcome);
	}
}

/* Return a Workload that accepts a priority class in the cases of TAKES. */
static struct spec_workload_view line(int takes, bool reserved)
{
	static char team[] = "team", low[] = "low";
	struct spec_workload_view ret = on;

	ret.queue = team;
	ret.priority_class = low;
	ret.takes_priority = takes;
	ret.conditions[SPEC_WORKLOAD_RESERVED] =
		(struct spec_condition_view){.is_set = true, .is_true = reserved};
	return ret;
}

/*
 * ctl offers the labels in the states in which Kueue uses them. It does so even for a user who may
 * not patch Workloads.
 */
static void test_label_actions(void **state)
{
	const unsigned suspend = 1u << SPEC_SUSPEND, queue = 1u << SPEC_QUEUE,
		       priority = 1u << SPEC_PRIORITY;
	static const struct {
		const char *phase;
		int takes;
		bool reserved;
		unsigned actions;
		const char *queue_refusal, *priority_refusal;
	} table[] = {
		{"Suspended", SPEC_PRIORITY_ANY, false, queue | priority, NULL, NULL},
		{"", SPEC_PRIORITY_WAITING, false, queue | priority, NULL, NULL},
		{"Suspended", SPEC_PRIORITY_FIXED, false, queue, NULL, "does not apply"},
		{"Suspended", SPEC_PRIORITY_WAITING, true, 0, "only while the job waits",
		 "does not change"},
		{"Running", SPEC_PRIORITY_ANY, true, priority, "only while the job waits", NULL},
		{"Running", SPEC_PRIORITY_WAITING, false, 0, "only while the job waits",
		 "does not change"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct spec_job_view v = wrapper(table[i].phase, false, "team");
		const struct spec_workload_view w = line(table[i].takes, table[i].reserved);
		const char *why;

		assert_int_equal(spec_control_actions(WRAPPER, known(&v, &w)),
				 table[i].actions | suspend);
		if (table[i].queue_refusal) {
			why = refusal(WRAPPER, known(&v, &w), SPEC_QUEUE);
			assert_non_null(strstr(why, table[i].queue_refusal));
		}
		if (table[i].priority_refusal) {
			why = refusal(WRAPPER, known(&v, &w), SPEC_PRIORITY);
			assert_non_null(strstr(why, table[i].priority_refusal));
		}
		v.owned = true;
		assert_int_equal(spec_control_actions(WRAPPER, known(&v, &w)), 0);
		v = wrapper(table[i].phase, false, "");
		assert_int_equal(spec_control_actions(WRAPPER, known(&v, NULL)), suspend);
		assert_non_null(strstr(refusal(WRAPPER, known(&v, NULL), SPEC_QUEUE),
				       "not in a Kueue queue"));
	}
}

static void test_label_request(void **state)
{
	const struct spec_job_view v = wrapper("Suspended", false, "team");
	const struct spec_workload_view w = line(SPEC_PRIORITY_ANY, false);
	struct spec_control_asked asked = {.job = known(&v, &w),
					   .namespace = "ns",
					   .kueue = "kueue.x-k8s.io/v1beta2",
					   .action = SPEC_QUEUE,
					   .argument = "other"};
	struct spec_control_request rq;

	asked.kind = test_kind("job");
	asked.kind->control->request(&asked, &rq);
	assert_true(rq.patch);
	assert_string_equal(rq.resource, "jobs.batch");
	assert_string_equal(rq.path, "/apis/batch/v1/namespaces/ns/jobs/trainer?fieldManager=kxfs");
	assert_string_equal(rq.body, "{\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":\"7\","
				     "\"labels\":{\"kueue.x-k8s.io/queue-name\":\"other\"}}}");
	assert_string_equal(rq.needed,
			    "/apis/kueue.x-k8s.io/v1beta2/namespaces/ns/localqueues/other");
	assert_non_null(strstr(rq.missing, "no queue other in namespace ns"));
	spec_control_request_clear(&rq);
	asked.action = SPEC_PRIORITY;
	asked.argument = "high";
	asked.kind = &spec_appwrapper;
	WRAPPER->request(&asked, &rq);
	assert_string_equal(rq.body, "{\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":\"7\","
				     "\"labels\":{\"kueue.x-k8s.io/priority-class\":\"high\"}}}");
	assert_string_equal(rq.needed, "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses/high");
	spec_control_request_clear(&rq);
}

static void test_label_outcome(void **state)
{
	const struct spec_job_view v = wrapper("Suspended", false, "team");
	const struct spec_job_view over = wrapper("Succeeded", false, "team");
	const struct spec_workload_view waits = line(SPEC_PRIORITY_ANY, false);
	const struct spec_workload_view runs = line(SPEC_PRIORITY_ANY, true);
	const struct {
		enum spec_action action;
		const char *argument;
		const struct spec_job_view *view;
		const struct spec_workload_view *workload;
		enum spec_control_outcome outcome;
	} table[] = {
		{SPEC_QUEUE, "team", &v, &waits, SPEC_CONTROL_OBEYED},
		{SPEC_QUEUE, "other", &v, &waits, SPEC_CONTROL_OPEN},
		{SPEC_QUEUE, "other", &v, &runs, SPEC_CONTROL_LATE},
		{SPEC_QUEUE, "other", &v, NULL, SPEC_CONTROL_OPEN},
		{SPEC_QUEUE, "other", &over, &runs, SPEC_CONTROL_LATE},
		{SPEC_PRIORITY, "low", &v, &runs, SPEC_CONTROL_OBEYED},
		{SPEC_PRIORITY, "team", &v, &runs, SPEC_CONTROL_OPEN},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const struct spec_control_mark before = {.argument = table[i].argument};

		assert_int_equal(WRAPPER->outcome(table[i].action, &before,
						  known(table[i].view, table[i].workload)),
				 table[i].outcome);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phases),		cmocka_unit_test(test_retries),
		cmocka_unit_test(test_request),		cmocka_unit_test(test_outcome),
		cmocka_unit_test(test_wrapper_actions), cmocka_unit_test(test_wrapper_request),
		cmocka_unit_test(test_wrapper_outcome), cmocka_unit_test(test_queued_unknown),
		cmocka_unit_test(test_queued_request),	cmocka_unit_test(test_queued_outcome),
		cmocka_unit_test(test_label_actions),	cmocka_unit_test(test_label_request),
		cmocka_unit_test(test_label_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
