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
#include "tests/unit/spec/kinds/describe.h"
#include "tests/unit/table.h"
#include "tests/unit/unit.h"

/* What is known of a job: an AppWrapper in phase Running if there is no other value. */
struct known {
	const char *kind, *phase;
	unsigned retries; /* used */
	unsigned limit;	  /* of attempts */
	bool asked;	  /* somebody has requested to suspend the job */
	bool owned, deleted;
	const char *queue; /* the job is in this queue of Kueue, but may have no Workload */
	enum {
		NO_WORKLOAD,
		ON, /* Kueue's Workload is active */
		OFF /* somebody has deactivated it */
	} workload;
	bool reserved; /* the Workload has quota */
	int takes;     /* when it accepts a priority class */
	bool no_kueue; /* this mount can't watch Workloads */
};

static const struct spec_kind *kind_of(const struct known *k)
{
	return test_kind(k->kind ? k->kind : "appwrapper");
}

/* Return K as the functions of a kind expect it. The result is valid until the next call. */
static const struct spec_control_job *job(const struct known *k)
{
	static char name[] = "trainer", uid[] = "u-1", none[] = "", version[] = "7";
	static char workload_name[] = "wl", workload_uid[] = "w-1", team[] = "team", low[] = "low";
	static struct spec_job_view view;
	static struct spec_workload_view workload;
	static struct spec_kueue_facts kueue;
	static struct spec_control_job ret = {&view, &kueue};
	const char *phase = k->phase ? k->phase : "Running";

	view = (struct spec_job_view){
		.meta = {.name = name, .uid = uid, .owner_uid = none, .deleted = k->deleted},
		.resource_version = version,
		.phase = (char *)(uintptr_t)phase,
		.queue = (char *)(uintptr_t)(k->queue ? k->queue : ""),
		.retries = k->retries,
		.retry_limit = k->limit,
		.asked = k->asked,
		.owned = k->owned,
		.suspends = strncmp(phase, "Suspend", 7) == 0,
		.over = streq(phase, "Terminating") || streq(phase, "Succeeded") ||
			streq(phase, "Failed"),
	};
	workload = (struct spec_workload_view){
		.meta = {.name = workload_name, .uid = workload_uid},
		.queue = team,
		.priority_class = low,
		.active = k->workload == ON,
		.takes_priority = k->takes,
	};
	workload.conditions[SPEC_WORKLOAD_RESERVED] =
		(struct spec_condition_view){.is_set = true, .is_true = k->reserved};
	kueue = (struct spec_kueue_facts){.known = !k->no_kueue,
					  .workload = k->workload ? &workload : NULL};
	return &ret;
}

#define IN_QUEUE   .queue = "team"
#define QUEUED_ON  .queue = "team", .workload = ON
#define QUEUED_OFF .queue = "team", .workload = OFF

static void test_actions(void **state)
{
	static const struct {
		struct known job;
		const char *actions;
	} table[] = {
		{{.kind = "volcano", .phase = "Pending"}, " suspend restart terminate"},
		{{.kind = "volcano", .phase = "Running"}, " suspend restart terminate"},
		{{.kind = "volcano", .phase = "Aborting"}, " resume"},
		{{.kind = "volcano", .phase = "Aborted"}, " resume"},
		{{.kind = "volcano", .phase = ""}, ""},
		{{.kind = "volcano", .phase = "Restarting"}, ""},
		{{.kind = "volcano", .phase = "Completing"}, ""},
		{{.kind = "volcano", .phase = "Terminating"}, ""},
		{{.kind = "volcano", .phase = "Completed"}, ""},
		{{.kind = "volcano", .phase = "Failed"}, ""},
		{{.kind = "volcano", .phase = "Terminated"}, ""},
		{{.kind = "volcano", .phase = "Inventing"}, ""},
		/* If an action costs a retry and none is left, ctl does not offer it. */
		{{.kind = "volcano", .limit = 3, .retries = 1}, " suspend restart terminate"},
		{{.kind = "volcano", .limit = 3, .retries = 2}, " suspend terminate"},
		{{.kind = "volcano", .limit = 3, .retries = 2, .phase = "Aborted"}, ""},
		{{.kind = "volcano", .deleted = true}, ""},
		{{.phase = "Resuming"}, " suspend"},
		{{.phase = "Running"}, " suspend"},
		{{.phase = "Resetting"}, " suspend"},
		{{.asked = true}, " resume"},
		{{.phase = "Succeeded"}, ""},
		{{.phase = "Failed"}, ""},
		{{.phase = "Terminating"}, ""},
		{{.owned = true}, ""},
		{{.kind = "jobset"}, " suspend"},
		{{.kind = "job"}, " suspend terminate"},
		{{.kind = "job", .phase = "Suspended", .asked = true}, " resume"},
		/* Kueue sets spec.suspend itself. Its Workload decides. */
		{{IN_QUEUE}, ""},
		{{QUEUED_ON, .reserved = true}, " suspend"},
		{{QUEUED_ON, .reserved = true, .asked = true}, " suspend"},
		{{QUEUED_OFF}, " resume"},
		{{QUEUED_ON, .phase = "Succeeded"}, ""},
		{{IN_QUEUE, .no_kueue = true}, ""},
		/* ctl offers the labels in the states in which Kueue uses them. */
		{{QUEUED_ON, .phase = "Suspended", .takes = SPEC_PRIORITY_ANY},
		 " suspend queue priority"},
		{{QUEUED_ON, .phase = "", .takes = SPEC_PRIORITY_WAITING},
		 " suspend queue priority"},
		{{QUEUED_ON, .phase = "Suspended", .takes = SPEC_PRIORITY_FIXED}, " suspend queue"},
		{{QUEUED_ON, .phase = "Suspended", .takes = SPEC_PRIORITY_WAITING,
		  .reserved = true},
		 " suspend"},
		{{QUEUED_ON, .takes = SPEC_PRIORITY_ANY, .reserved = true}, " suspend priority"},
		{{QUEUED_ON, .takes = SPEC_PRIORITY_WAITING}, " suspend"},
		{{QUEUED_ON, .phase = "Suspended", .takes = SPEC_PRIORITY_ANY, .owned = true}, ""},
	};

	for (size_t i = 0; i < array_size(table); i++)
		assert_actions(spec_control_actions(kind_of(&table[i].job)->control,
						    job(&table[i].job)),
			       table[i].actions);
	/* Volcano has its own queues, and no Command changes the queue or the priority. */
	assert_actions(spec_volcano.control->known, " suspend resume restart terminate");
	assert_actions(spec_appwrapper.control->known, " suspend resume queue priority");
}

/* Why an action is refused. If only the phase does not permit it, there is no explanation. */
static void test_refusals(void **state)
{
	static const struct {
		struct known job;
		enum spec_action action;
		int err;
		const char *why; /* part of the explanation, or NULL */
	} table[] = {
		{{.kind = "volcano", .limit = 3, .retries = 2}, SPEC_RESTART, -EINVAL, "none left"},
		{{.kind = "volcano", .limit = 3, .retries = 2}, SPEC_RESUME, -EINVAL, NULL},
		{{.kind = "volcano", .deleted = true}, SPEC_RESTART, -EINVAL, "being deleted"},
		{{.phase = "Succeeded"}, SPEC_SUSPEND, -EINVAL, NULL},
		{{QUEUED_ON, .phase = "Succeeded"}, SPEC_SUSPEND, -EINVAL, NULL},
		{{QUEUED_OFF}, SPEC_SUSPEND, -EINVAL, NULL},
		{{IN_QUEUE}, SPEC_SUSPEND, -EINVAL, "Kueue has not created a Workload"},
		{{IN_QUEUE, .no_kueue = true}, SPEC_SUSPEND, -EOPNOTSUPP, "can't watch Workloads"},
		{{QUEUED_ON}, SPEC_QUEUE, -EINVAL, "only while the job waits"},
		{{QUEUED_ON, .phase = "Suspended", .reserved = true},
		 SPEC_QUEUE,
		 -EINVAL,
		 "only while the job waits"},
		{{QUEUED_ON, .takes = SPEC_PRIORITY_WAITING},
		 SPEC_PRIORITY,
		 -EINVAL,
		 "does not change"},
		{{QUEUED_ON, .phase = "Suspended", .takes = SPEC_PRIORITY_FIXED},
		 SPEC_PRIORITY,
		 -EINVAL,
		 "does not apply"},
		{{0}, SPEC_QUEUE, -EINVAL, "not in a Kueue queue"},
		{{.kind = "job", .phase = "Suspended", .asked = true},
		 SPEC_TERMINATE,
		 -EINVAL,
		 "the job is suspended"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const struct known *k = &table[i].job;
		const char *why;

		assert_int_equal(kind_of(k)->control->check(job(k), table[i].action, &why),
				 table[i].err);
		if (!table[i].why)
			assert_null(why);
		else
			assert_non_null(strstr(why, table[i].why));
	}
}

/* The requests to the server. A patch applies only to the version that kxfs has read. */
static void test_requests(void **state)
{
#define VERSION "{\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":\"7\""
#define ACTIVE	"{\"metadata\":{\"uid\":\"w-1\"},\"spec\":{\"active\":"
#define TARGET                                                                                     \
	"\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",\"name\":\"trainer\","      \
	"\"uid\":\"u-1\""
#define WORKLOAD "kueue.x-k8s.io/v1beta2/namespaces/ns/workloads/wl"
	static const struct {
		struct known job;
		enum spec_action action;
		const char *argument;
		const char *resource, *path, *body;
		const char *needed; /* an object that must exist, or NULL */
	} table[] = {
		{{.kind = "volcano"},
		 SPEC_TERMINATE,
		 NULL,
		 "commands.bus.volcano.sh",
		 "bus.volcano.sh/v1alpha1/namespaces/ns/commands",
		 "{\"metadata\":{\"name\":\"kxfs-1\",\"namespace\":\"ns\",\"ownerReferences\":[{" TARGET
		 "}]},\"apiVersion\":\"bus.volcano.sh/v1alpha1\",\"kind\":\"Command\",\"action\":"
		 "\"TerminateJob\",\"target\":{" TARGET "}}",
		 NULL},
		{{0},
		 SPEC_SUSPEND,
		 NULL,
		 "appwrappers.workload.codeflare.dev",
		 "workload.codeflare.dev/v1beta2/namespaces/ns/appwrappers/trainer",
		 VERSION "},\"spec\":{\"suspend\":true}}",
		 NULL},
		{{.kind = "job"},
		 SPEC_SUSPEND,
		 NULL,
		 "jobs.batch",
		 "batch/v1/namespaces/ns/jobs/trainer",
		 VERSION "},\"spec\":{\"suspend\":true}}",
		 NULL},
		{{.kind = "job"},
		 SPEC_TERMINATE,
		 NULL,
		 "jobs.batch",
		 "batch/v1/namespaces/ns/jobs/trainer",
		 VERSION "},\"spec\":{\"activeDeadlineSeconds\":0}}",
		 NULL},
		{{QUEUED_ON},
		 SPEC_SUSPEND,
		 NULL,
		 "workloads.kueue.x-k8s.io",
		 WORKLOAD,
		 ACTIVE "false}}",
		 NULL},
		{{.kind = "jobset", QUEUED_OFF},
		 SPEC_RESUME,
		 NULL,
		 "workloads.kueue.x-k8s.io",
		 WORKLOAD,
		 ACTIVE "true}}",
		 NULL},
		{{.kind = "job", QUEUED_ON},
		 SPEC_QUEUE,
		 "other",
		 "jobs.batch",
		 "batch/v1/namespaces/ns/jobs/trainer",
		 VERSION ",\"labels\":{\"kueue.x-k8s.io/queue-name\":\"other\"}}}",
		 "/apis/kueue.x-k8s.io/v1beta2/namespaces/ns/localqueues/other"},
		{{QUEUED_ON},
		 SPEC_PRIORITY,
		 "high",
		 "appwrappers.workload.codeflare.dev",
		 "workload.codeflare.dev/v1beta2/namespaces/ns/appwrappers/trainer",
		 VERSION ",\"labels\":{\"kueue.x-k8s.io/priority-class\":\"high\"}}}",
		 "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses/high"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const struct spec_control_asked asked = {
			.job = job(&table[i].job),
			.namespace = "ns",
			.kueue = "kueue.x-k8s.io/v1beta2",
			.action = table[i].action,
			.argument = table[i].argument,
			.name = "kxfs-1",
			.kind = kind_of(&table[i].job),
		};
		cleanup_free char *path = text_print("/apis/%s?fieldManager=kxfs", table[i].path);
		struct spec_control_request rq;

		asked.kind->control->request(&asked, &rq);
		assert_int_equal(rq.patch, asked.kind != &spec_volcano);
		assert_string_equal(rq.resource, table[i].resource);
		assert_string_equal(rq.path, path);
		assert_string_equal(rq.body, table[i].body);
		if (table[i].needed)
			assert_string_equal(rq.needed, table[i].needed);
		else
			assert_null(rq.needed);
		if (table[i].action == SPEC_QUEUE)
			assert_non_null(strstr(rq.missing, "no queue other in namespace ns"));
		if (strstr(rq.resource, "workloads"))
			assert_non_null(strstr(rq.forbidden, "no right to patch workloads"));
		spec_control_request_clear(&rq);
	}
}

/* Whether a controller has obeyed, might still obey, or is too late. */
static void test_outcomes(void **state)
{
#define OPEN	     SPEC_CONTROL_OPEN
#define OBEYED	     SPEC_CONTROL_OBEYED
#define LATE	     SPEC_CONTROL_LATE
#define VOLCANO(now) .kind = "volcano", .phase = now
	static const struct {
		enum spec_action action;
		struct spec_control_mark before;
		struct known now;
		enum spec_control_outcome outcome;
	} table[] = {
		{SPEC_SUSPEND, {"Running", 0, NULL}, {VOLCANO("Running")}, OPEN},
		{SPEC_SUSPEND, {"Running", 0, NULL}, {VOLCANO("Aborting")}, OBEYED},
		{SPEC_SUSPEND, {"Running", 0, NULL}, {VOLCANO("Aborted")}, OBEYED},
		{SPEC_SUSPEND, {"Pending", 0, NULL}, {VOLCANO("Running")}, OPEN},
		{SPEC_SUSPEND, {"Running", 0, NULL}, {VOLCANO("Restarting"), .retries = 1}, OPEN},
		{SPEC_SUSPEND, {"Running", 0, NULL}, {VOLCANO("Completed")}, LATE},
		{SPEC_RESUME, {"Aborting", 0, NULL}, {VOLCANO("Aborted")}, OPEN},
		{SPEC_RESUME, {"Aborted", 0, NULL}, {VOLCANO("Restarting"), .retries = 1}, OBEYED},
		{SPEC_RESUME, {"Aborted", 0, NULL}, {VOLCANO("Pending"), .retries = 1}, OBEYED},
		{SPEC_RESTART, {"Running", 0, NULL}, {VOLCANO("Running")}, OPEN},
		{SPEC_RESTART, {"Running", 0, NULL}, {VOLCANO("Running"), .retries = 1}, OBEYED},
		{SPEC_RESTART, {"Running", 0, NULL}, {VOLCANO("Completing")}, LATE},
		{SPEC_TERMINATE, {"Running", 0, NULL}, {VOLCANO("Terminating")}, OBEYED},
		{SPEC_TERMINATE, {"Running", 0, NULL}, {VOLCANO("Terminated")}, OBEYED},
		{SPEC_TERMINATE, {"Running", 0, NULL}, {VOLCANO("Failed")}, LATE},
		{SPEC_TERMINATE, {"Running", 0, NULL}, {VOLCANO("Aborted")}, LATE},

		{SPEC_SUSPEND, {0}, {.phase = "Running"}, OPEN},
		{SPEC_SUSPEND, {0}, {.phase = "Running", .asked = true}, OPEN},
		/* suspended before the command */
		{SPEC_SUSPEND, {0}, {.phase = "Suspended"}, OPEN},
		{SPEC_SUSPEND, {0}, {.phase = "Suspending", .asked = true}, OBEYED},
		{SPEC_SUSPEND, {0}, {.phase = "Suspended", .asked = true}, OBEYED},
		{SPEC_SUSPEND, {0}, {.phase = "Succeeded", .asked = true}, LATE},
		{SPEC_RESUME, {0}, {.phase = "Suspended", .asked = true}, OPEN},
		{SPEC_RESUME, {0}, {.phase = "Suspended"}, OPEN},
		{SPEC_RESUME, {0}, {.phase = "Resuming"}, OBEYED},
		{SPEC_RESUME, {0}, {.phase = "Running"}, OBEYED},
		{SPEC_RESUME, {0}, {.phase = "Succeeded"}, OBEYED},
		{SPEC_RESUME, {0}, {.phase = "Succeeded", .asked = true}, LATE},
		{SPEC_RESUME, {0}, {.phase = "Terminating"}, OBEYED},

		/* In a queue, Kueue sets spec.suspend itself, whatever users request. */
		{SPEC_SUSPEND, {0}, {.asked = true, QUEUED_ON}, OPEN},
		{SPEC_SUSPEND, {0}, {.asked = true, QUEUED_OFF}, OPEN},
		/* The job waits in the queue. */
		{SPEC_SUSPEND, {0}, {.phase = "Suspended", .asked = true, QUEUED_ON}, OPEN},
		{SPEC_SUSPEND, {0}, {.phase = "Suspended", .asked = true, IN_QUEUE}, OPEN},
		{SPEC_SUSPEND, {0}, {.phase = "Suspending", QUEUED_OFF}, OBEYED},
		{SPEC_SUSPEND, {0}, {.phase = "Suspended", QUEUED_OFF}, OBEYED},
		{SPEC_SUSPEND, {0}, {.phase = "Succeeded", QUEUED_OFF}, LATE},
		{SPEC_RESUME, {0}, {.phase = "Suspended", QUEUED_OFF}, OPEN},
		{SPEC_RESUME, {0}, {.phase = "Suspended", .asked = true, IN_QUEUE}, OPEN},
		/* The job waits in the queue again. */
		{SPEC_RESUME, {0}, {.phase = "Suspended", .asked = true, QUEUED_ON}, OBEYED},
		{SPEC_RESUME, {0}, {.phase = "Running", .asked = true, QUEUED_ON}, OBEYED},
		{SPEC_RESUME, {0}, {.phase = "Failed", .asked = true, QUEUED_ON}, LATE},

		/* Kueue copies the label to the Workload, which is in queue team, of class low. */
		{SPEC_QUEUE, {"", 0, "team"}, {.phase = "Suspended", QUEUED_ON}, OBEYED},
		{SPEC_QUEUE, {"", 0, "other"}, {.phase = "Suspended", QUEUED_ON}, OPEN},
		{SPEC_QUEUE, {"", 0, "other"}, {.phase = "Suspended", IN_QUEUE}, OPEN},
		{SPEC_QUEUE, {"", 0, "other"}, {QUEUED_ON, .reserved = true}, LATE},
		{SPEC_QUEUE, {"", 0, "other"}, {.phase = "Succeeded", QUEUED_ON}, LATE},
		{SPEC_PRIORITY, {"", 0, "low"}, {QUEUED_ON, .reserved = true}, OBEYED},
		{SPEC_PRIORITY, {"", 0, "high"}, {QUEUED_ON, .reserved = true}, OPEN},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const struct known *k = &table[i].now;

		assert_int_equal(kind_of(k)->control->outcome(table[i].action, &table[i].before,
							      job(k)),
				 table[i].outcome);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_outcomes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
