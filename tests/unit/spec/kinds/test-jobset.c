/* SPDX-License-Identifier: MIT */
/*
 * JobSets: what users see while a real controller runs them. Also objects that no recording
 * contains: restarts, replicas that are retried individually, and JobSets that others created.
 */
#include "spec/job/status.h"
#include "tests/unit/spec/kinds/cluster-world.h"
#include "tests/unit/table.h"

#define TASK(name, replicas, job)                                                                  \
	"{'name':'" name "','replicas':" replicas ",'template':{'spec':{" job "}}}"
#define PAIR TASK("trainer", "1", "'completions':2,'backoffLimit':0")
#define CONDITION                                                                                  \
	"{'type':'%s','status':'%s','reason':'R','message':'m',"                                   \
	"'lastTransitionTime':'1970-01-01T00:00:20Z'}"

/* Send a JobSet with these labels, spec and status, all without their braces. */
static void job(struct world *w, const char *labels, const char *spec, const char *status)
{
	world_job(w,
		  world_json("{'metadata':{'name':'j','uid':'u','generation':%lld,'labels':{%s}},"
			     "'spec':{%s},'status':{%s}}",
			     (long long)w->now + 1, labels, spec, status),
		  false);
}

/* Send the JobSet's pod UID: pod INDEX of Job NUMBER of COUNT, in attempt RESTART. */
static unsigned failures; /* failures of the replica before its next pod */

static void pod(struct world *w, const char *uid, const char *task, unsigned number, unsigned count,
		unsigned index, unsigned restart, const char *phase)
{
	const char *ended = streq(phase, "Failed")
				    ? "{'terminated':{'exitCode':3,'reason':'Error'}}"
			    : streq(phase, "Succeeded") ? "{'terminated':{'exitCode':0}}"
			    : streq(phase, "Running")	? "{'running':{}}"
							: "{'waiting':{}}";

	world_pod(w,
		  world_json("{'metadata':{'name':'j-%s-%u-%u-x','uid':'%s','creationTimestamp':"
			     "'1970-01-01T00:00:%02uZ','ownerReferences':[{'apiVersion':'batch/v1',"
			     "'kind':'Job','name':'j-%s-%u','uid':'of-the-job','controller':true}],"
			     "'labels':{'jobset.sigs.k8s.io/jobset-uid':'u',"
			     "'jobset.sigs.k8s.io/jobset-name':'j',"
			     "'jobset.sigs.k8s.io/replicatedjob-name':'%s',"
			     "'jobset.sigs.k8s.io/replicatedjob-replicas':'%u',"
			     "'jobset.sigs.k8s.io/job-index':'%u',"
			     "'jobset.sigs.k8s.io/restart-attempt':'%u'},'annotations':{"
			     "'batch.kubernetes.io/job-completion-index':'%u',"
			     "'batch.kubernetes.io/job-index-failure-count':'%u'}},"
			     "'spec':{'containers':[{'name':'c'}]},'status':{'phase':'%s',"
			     "'containerStatuses':[{'name':'c','state':%s}]}}",
			     task, number, index, uid, 10 + restart, task, number, task, count,
			     number, restart, index, failures, phase, ended),
		  false);
	assert_string_equal(w->pods[w->n_pods - 1]->meta.owner_uid, "u");
}

static const struct scenario {
	const char *name;
	const char *told;
	const char *reason, *message;
} scenarios[] = {
	{"kueue_jobset_success",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=RUNNING\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n",
	 "Completed", ""},
	{"kueue_jobset_quota_wait",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=RUNNING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n",
	 "Completed", ""},
};

static void test_recordings(void **state)
{
	for (size_t i = 0; i < array_size(scenarios); i++) {
		struct world w = {.kind = test_kind("jobset"), .only = "app"};

		world_play(&w, scenarios[i].name);
		assert_string_equal(w.told, scenarios[i].told);
		assert_string_equal(w.last->reason, scenarios[i].reason);
		assert_string_equal(w.last->message, scenarios[i].message);
		world_clear(&w);
	}
}

/* One pod fails, and all pods are created again. When one fails again, the job is finished. */
static void test_restarts(void **state)
{
	struct world w = {.kind = test_kind("jobset")};
	const char *spec = "'failurePolicy':{'maxRestarts':1},'replicatedJobs':[" PAIR "]";

	job(&w, "", spec, "'restarts':0");
	pod(&w, "a0", "trainer", 0, 1, 0, 0, "Running");
	pod(&w, "a1", "trainer", 0, 1, 1, 0, "Running");
	pod(&w, "a1", "trainer", 0, 1, 1, 0, "Failed");
	assert_int_equal(w.last->state, SPEC_RUNNING);
	assert_int_equal(w.last->max_retries, 1);
	job(&w, "", spec, "'restarts':1");
	pod(&w, "b0", "trainer", 0, 1, 0, 1, "Running");
	pod(&w, "b1", "trainer", 0, 1, 1, 1, "Running");
	assert_int_equal(w.last->state, SPEC_RUNNING);
	assert_int_equal(w.last->retries, 1);
	assert_int_equal(w.last->replicas[1].attempt, 1);
	pod(&w, "b1", "trainer", 0, 1, 1, 1, "Failed");
	job(&w, "", spec,
	    world_json("'restarts':1,'conditions':[" CONDITION "]", "Failed", "True"));
	assert_int_equal(w.last->state, SPEC_FAILED);
	assert_string_equal(w.last->reason, "Error");
	assert_string_equal(w.last->message, "trainer-1: exit code 3");
	world_clear(&w);
}

/* All pods are created again, even if the old ones succeeded. */
static void test_succeeded_too_late(void **state)
{
	struct world w = {.kind = test_kind("jobset")};
	const char *spec =
		"'failurePolicy':{'maxRestarts':1},'replicatedJobs':[" TASK("a", "1", "") "]";

	job(&w, "", spec, "'restarts':0");
	pod(&w, "a0", "a", 0, 1, 0, 0, "Succeeded");
	assert_string_equal(spec_state_name(w.last->state), "SUCCEEDED");
	job(&w, "", spec, "'restarts':1");
	assert_string_equal(spec_state_name(w.last->state), "RUNNING");
	pod(&w, "b0", "a", 0, 1, 0, 1, "Succeeded");
	assert_string_equal(spec_state_name(w.last->state), "SUCCEEDED");
	world_clear(&w);
}

/* The controller has not written a status yet, or none since somebody changed the object. */
static void test_no_word(void **state)
{
	struct world w = {.kind = test_kind("jobset")};

	job(&w, "", "'replicatedJobs':[" PAIR "]", "");
	assert_int_equal(w.last->state, SPEC_SUBMITTED);
	assert_string_equal(w.last->phase, "");
	job(&w, "", "'replicatedJobs':[" PAIR "]", "'restarts':0");
	assert_int_equal(w.last->state, SPEC_PENDING);
	world_clear(&w);
}

/* The pods were deleted, or exceeded a time limit. Only the controller's message is known. */
static void test_failed_without(void **state)
{
	struct world w = {.kind = test_kind("jobset")};
	char *why cleanup_free = NULL;
	size_t len;

	job(&w, "", "'replicatedJobs':[" PAIR "]", "'restarts':0");
	pod(&w, "a0", "trainer", 0, 1, 0, 0, "Running");
	job(&w, "", "'replicatedJobs':[" PAIR "]",
	    world_json("'conditions':[" CONDITION "]", "Failed", "True"));
	assert_int_equal(w.last->state, SPEC_FAILED);
	assert_string_equal(w.last->reason, "R");
	assert_string_equal(w.last->message, "m");
	spec_status_why(w.last, ~0u, &why, &len);
	assert_string_equal(why, "The job failed: m.\n");
	world_clear(&w);
}

/* Only the failed replica is created again, as a new attempt. */
static void test_retried_alone(void **state)
{
	struct world w = {.kind = test_kind("jobset")};
	const char *spec =
		"'replicatedJobs':[" TASK("trainer", "1",
					  "'completions':2,'backoffLimitPerIndex':1") "]";
	char *why cleanup_free = NULL;
	size_t len;

	job(&w, "", spec, "'restarts':0");
	pod(&w, "a0", "trainer", 0, 1, 0, 0, "Running");
	pod(&w, "a1", "trainer", 0, 1, 1, 0, "Failed");
	assert_int_equal(w.last->retries, 0);
	failures = 1;
	pod(&w, "b1", "trainer", 0, 1, 1, 0, "Running");
	failures = 0;
	assert_int_equal(w.last->retries, 1);
	assert_int_equal(w.last->max_retries, 1);
	assert_int_equal(w.last->state, SPEC_RUNNING);
	assert_int_equal(w.last->replicas[0].attempt, 0);
	assert_int_equal(w.last->replicas[1].attempt, 1);
	assert_int_equal(w.last->replicas[1].state, SPEC_RUNNING);
	failures = 1;
	pod(&w, "b1", "trainer", 0, 1, 1, 0, "Failed");
	failures = 0;
	job(&w, "", spec,
	    world_json("'restarts':0,'conditions':[" CONDITION "]", "Failed", "True"));
	assert_int_equal(w.last->state, SPEC_FAILED);
	spec_status_why(w.last, ~0u, &why, &len);
	assert_non_null(strstr(why, "Retries used: 1; max_retries is 1."));
	assert_null(strstr(why, "not retried"));
	world_clear(&w);
}

/* Jobs of a JobSet retry single pods, and no object counts that. So `why` mentions no retries. */
static void test_uncounted_retries(void **state)
{
	struct world w = {.kind = test_kind("jobset")};
	const char *spec = "'replicatedJobs':[" TASK("a", "1", "'backoffLimit':3") "]";
	char *why cleanup_free = NULL;
	size_t len;

	job(&w, "", spec, "'restarts':0");
	pod(&w, "a0", "a", 0, 1, 0, 0, "Failed");
	job(&w, "", spec,
	    world_json("'restarts':0,'conditions':[" CONDITION "]", "Failed", "True"));
	spec_status_why(w.last, ~0u, &why, &len);
	assert_string_equal(why, "a-0 ended with exit code 3.\n");
	world_clear(&w);
}

/*
 * JobSets that others created: several Jobs from one template with several pods each, and one
 * single Job.
 */
static void test_of_others(void **state)
{
	struct world w = {.kind = test_kind("jobset")};
	const char *spec = "'replicatedJobs':[" TASK("leader", "1", "'parallelism':1") "," TASK(
		"slice", "2", "'parallelism':1,'completions':2") "]";

	job(&w, "", spec, "'restarts':0");
	assert_string_equal(w.told, "PENDING leader-0=PENDING slice.0-0=PENDING slice.0-1=PENDING "
				    "slice.1-0=PENDING slice.1-1=PENDING\n");
	pod(&w, "p", "slice", 1, 2, 1, 0, "Running");
	assert_int_equal(w.last->replicas[4].state, SPEC_RUNNING);
	assert_int_equal(w.last->state, SPEC_RUNNING);
	world_clear(&w);
}

/* Send Kueue's Workload of the job. ACTIVE: Kueue may admit the job. */
static void workload(struct world *w, bool active)
{
	world_workload(
		w,
		world_json("{'metadata':{'name':'wl','uid':'w','ownerReferences':[{'uid':'u',"
			   "'controller':true}]},'spec':{'active':%s}}",
			   active ? "true" : "false"),
		false);
}

static void test_suspended(void **state)
{
	struct world w = {.kind = test_kind("jobset")};

	job(&w, "", "'suspend':true,'replicatedJobs':[" PAIR "]",
	    world_json("'conditions':[" CONDITION "]", "Suspended", "True"));
	assert_int_equal(w.last->state, SPEC_CANCELLED);
	assert_true(w.last->suspended);
	assert_int_equal(w.last->actions, 1u << SPEC_RESUME);
	job(&w, "", "'suspend':false,'replicatedJobs':[" PAIR "]",
	    world_json("'conditions':[" CONDITION "]", "Suspended", "False"));
	assert_int_equal(w.last->state, SPEC_PENDING);
	assert_int_equal(w.last->actions, 1u << SPEC_SUSPEND);
	/* Somebody has requested to suspend the JobSet, but that is not done yet. */
	job(&w, "", "'suspend':true,'replicatedJobs':[" PAIR "]",
	    world_json("'conditions':[" CONDITION "]", "Suspended", "False"));
	assert_int_equal(w.last->state, SPEC_PENDING);
	assert_string_equal(w.last->phase, "Running");
	assert_int_equal(w.last->actions, 1u << SPEC_RESUME);
	/* A job in a queue was suspended by Kueue. */
	job(&w, "'kueue.x-k8s.io/queue-name':'team'", "'suspend':true,'replicatedJobs':[" PAIR "]",
	    world_json("'conditions':[" CONDITION "]", "Suspended", "True"));
	assert_int_equal(w.last->state, SPEC_PENDING);
	assert_string_equal(w.last->message, "The job waits for Kueue to admit it from queue team");
	assert_int_equal(w.last->actions, 0);
	workload(&w, true);
	assert_int_equal(w.last->state, SPEC_PENDING);
	assert_int_equal(w.last->actions,
			 1u << SPEC_SUSPEND | 1u << SPEC_QUEUE | 1u << SPEC_PRIORITY);
	workload(&w, false);
	assert_int_equal(w.last->state, SPEC_CANCELLED);
	assert_true(w.last->suspended);
	assert_int_equal(w.last->actions, 1u << SPEC_RESUME);
	world_clear(&w);
}

/* Absurd numbers are limited. */
static void test_hostile(void **state)
{
	struct world w = {.kind = test_kind("jobset")};

	job(&w, "", "'replicatedJobs':[" TASK("a", "2147483647", "'completions':2147483647") "]",
	    "'restarts':0");
	assert_in_range(w.last->n_replicas, 1, 10000);
	world_clear(&w);
	job(&w, "", "'replicatedJobs':'none'", "'restarts':-1");
	assert_int_equal(w.last->n_replicas, 0);
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recordings),	   cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_succeeded_too_late), cmocka_unit_test(test_retried_alone),
		cmocka_unit_test(test_uncounted_retries),  cmocka_unit_test(test_of_others),
		cmocka_unit_test(test_suspended),	   cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_failed_without),	   cmocka_unit_test(test_no_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
