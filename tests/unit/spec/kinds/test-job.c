/* SPDX-License-Identifier: MIT */
/*
 * Batch Jobs and JobSets that no recording contains: pods without an index, ends that no pod shows,
 * jobs with an owner, retries of single replicas. test-stories.c tests what users see of the
 * recorded ones, and tests/unit/backend/kube/test-recorded.c of further JobSets.
 */
#include "spec/base/limits.h"
#include "tests/unit/spec/kinds/cluster-world.h"
#include "tests/unit/table.h"

#define ONE_POD "'template':{'spec':{'containers':[{'name':'c'}]}},'backoffLimit':2,'completions':1"
#define SPEC_OF(more)                                                                              \
	"'template':{'spec':{'containers':[{'name':'c'}]}},'backoffLimit':0,"                      \
	"'completions':2,'parallelism':2" more
#define CONDITION(type, value, reason)                                                             \
	"{'type':'" type "','status':'" value "','reason':'" reason                                \
	"','message':'m','lastTransitionTime':'1970-01-01T00:00:20Z'}"

/* Send a Job with these labels or owners, spec and status, all without their braces. */
static void job(struct world *w, const char *metadata, const char *spec, const char *status)
{
	world_job(w,
		  world_json("{'metadata':{'name':'j','uid':'u','resourceVersion':'%lld',"
			     "'generation':%lld%s},'spec':{%s},'status':{%s}}",
			     (long long)w->now + 1, (long long)w->now + 1, metadata, spec, status),
		  false);
}

#define NO_INDEX -1

/* Send the Job's pod UID, created in second CREATED. It has this INDEX, or NO_INDEX. */
static void pod(struct world *w, const char *uid, unsigned created, int index, const char *phase)
{
	const char *notes =
		index < 0 ? ""
			  : world_json("'batch.kubernetes.io/job-completion-index':'%d'", index);
	const char *ended = streq(phase, "Failed") ? "{'terminated':{'exitCode':3,'reason':'Error',"
						     "'startedAt':'1970-01-01T00:00:01Z'}}"
			    : streq(phase, "Succeeded") ? "{'terminated':{'exitCode':0,"
							  "'startedAt':'1970-01-01T00:00:01Z'}}"
			    : streq(phase, "Running")	? "{'running':{}}"
							: "{'waiting':{}}";

	world_pod(w,
		  world_json("{'metadata':{'name':'j-%s','uid':'%s','creationTimestamp':"
			     "'1970-01-01T00:00:%02uZ','ownerReferences':[{'uid':'u',"
			     "'controller':true}],'annotations':{%s}},"
			     "'spec':{'containers':[{'name':'c'}]},'status':{'phase':'%s',"
			     "'containerStatuses':[{'name':'c','state':%s}]}}",
			     uid, uid, created, notes, phase, ended),
		  false);
}

/* Send a pod of a Job with restartPolicy OnFailure, whose container has this state. */
static void rerun_pod(struct world *w, unsigned restarts, const char *state, const char *more,
		      bool gone)
{
	world_pod(w,
		  world_json("{'metadata':{'name':'j-a','uid':'a','creationTimestamp':"
			     "'1970-01-01T00:00:01Z','ownerReferences':[{'uid':'u','controller':"
			     "true}]%s},'spec':{'restartPolicy':'OnFailure','containers':[{'name':"
			     "'c'}]},'status':{'phase':'%s','containerStatuses':[{'name':'c',"
			     "'restartCount':%u,'state':%s,'lastState':{'terminated':{'exitCode':3,"
			     "'reason':'Error'}}}]}}",
			     more, gone ? "Failed" : "Running", restarts, state),
		  gone);
}

#define EXCEEDED CONDITIONS(CONDITION("Failed", "True", "BackoffLimitExceeded"))
#define DELETED	 ",'deletionTimestamp':'1970-01-01T00:00:40Z','deletionGracePeriodSeconds':30"
#define ENDED(code)                                                                                \
	"{'terminated':{'exitCode':" code ",'reason':'Error','startedAt':'1970-01-01T00:00:09Z',"  \
	"'finishedAt':'1970-01-01T00:00:12Z'}}"

/*
 * Restarts of a container count as retries, also while the job is running. The result is that of
 * the last run that failed by itself.
 */
static void test_restarts(void **state)
{
#define AGAIN(code, log)                                                                           \
	"c-0 ended with exit code " code                                                           \
	". Retries used: 2; max_retries is 2. Its output is in c-0/" log "."
	static const struct {
		const char *end, *log, *why;
	} ends[] = {
		{ENDED("143"), "a.c.1", AGAIN("3", "log.1")},
		{ENDED("0"), "a.c.1", AGAIN("3", "log.1")},
		{"{'running':{'startedAt':'1970-01-01T00:00:09Z'}}", "a.c.1", AGAIN("3", "log.1")},
		/* It failed once more before its controller could stop it. */
		{ENDED("4"), "a.c.2", AGAIN("4", "log")},
	};

	for (size_t i = 0; i < array_size(ends); i++) {
		struct world w = {.kind = test_kind("job")};

		job(&w, "", ONE_POD, "'active':1");
		rerun_pod(&w, 1, "{'running':{}}", "", false);
		assert_int_equal(w.last->retries, 1);
		rerun_pod(&w, 2, "{'running':{}}", "", false);
		assert_int_equal(w.last->retries, 2);
		assert_shows(&w, "RUNNING c-0=RUNNING/attempt 2");
		job(&w, "", ONE_POD, "'failed':1," EXCEEDED);
		rerun_pod(&w, 2, ends[i].end, DELETED, true);
		assert_int_equal(w.last->retries, 2);
		assert_int_equal(w.last->replicas[0].state, SPEC_FAILED);
		assert_string_equal(world_why(&w), ends[i].why);
		assert_string_equal(spec_last_log(w.last)->key, ends[i].log);
		world_clear(&w);
	}
}

/* The retries of a job that ended before kxfs saw it. Its controller has deleted pods. */
static void test_late_retries(void **state)
{
	static const char three[] =
		"'template':{'spec':{'containers':[{'name':'c'}]}},'backoffLimit':6,"
		"'completionMode':'Indexed','completions':3,'parallelism':3";
	static const char by_rule[] =
		"'failed':4,'conditions':[{'type':'Failed','status':'True','reason':'PodFailurePolicy',"
		"'message':'Container c for pod ns/%s failed with exit code 3 matching FailJob rule at "
		"index 12'}]";
	struct world w = {.kind = test_kind("job")};

	job(&w, "", ONE_POD, "'failed':1," EXCEEDED);
	assert_int_equal(w.last->retries, 2);
	world_clear(&w);

	job(&w, "", three, world_json(by_rule, "j-c"));
	assert_int_equal(w.last->retries, 0);
	pod(&w, "a", 10, 1, "Failed");
	pod(&w, "c", 20, 1, "Failed");
	assert_int_equal(w.last->retries, 1);
	assert_string_equal(
		world_why(&w),
		"c-1 ended with exit code 3. Retries used: 1; max_retries is 6. The job was not "
		"retried, because rule 12 of its podFailurePolicy forbids retries. Its output is "
		"in c-1/log.");
	/* The rule's message is about another replica than the one that failed first. */
	pod(&w, "b", 5, 0, "Failed");
	assert_non_null(strstr(
		world_why(&w),
		"c-0 ended with exit code 3. It was the first of 2 failed replicas: 0-1. "
		"Retries used: 1; max_retries is 6. The job was not retried: Container c for "
		"pod ns/j-c failed with exit code 3 matching FailJob rule at index 12. "));
	world_clear(&w);
}

/*
 * While no mount runs, a suspended job is resumed and begins to fail. It is not CANCELLED any more,
 * unless it is being removed.
 */
static void test_resumed_unseen(void **state)
{
	struct world w = {.kind = test_kind("job")};
	const char *target =
		CONDITIONS(LIST2(CONDITION("Suspended", "False", "JobResumed"),
				 CONDITION("FailureTarget", "True", "BackoffLimitExceeded")));

	job(&w, "", SPEC_OF(",'suspend':true"),
	    CONDITIONS(CONDITION("Suspended", "True", "JobSuspended")));
	assert_job(&w, "CANCELLED/suspended Suspended");
	job(&w, ",'deletionTimestamp':'1970-01-01T00:00:30Z'", SPEC_OF(""), target);
	assert_shows(&w, "CANCELLED c-0=PENDING c-1=PENDING");
	world_clear(&w);
	job(&w, "", SPEC_OF(",'suspend':true"),
	    CONDITIONS(CONDITION("Suspended", "True", "JobSuspended")));
	job(&w, "", SPEC_OF(""), target);
	assert_false(spec_state_is_final(w.last->state));
	job(&w, "", SPEC_OF(""), CONDITIONS(CONDITION("Failed", "True", "BackoffLimitExceeded")));
	assert_int_equal(w.last->state, SPEC_FAILED);
	world_clear(&w);
}

/*
 * The failed indexes are shown as ranges: while the job is running, and at its end whatever the
 * controller reports.
 */
static void test_ranges(void **state)
{
	static const char spec[] =
		"'template':{'spec':{'containers':[{'name':'c'}]}},'backoffLimitPerIndex':0,"
		"'completionMode':'Indexed','completions':8,'parallelism':2";
	static const int failed[] = {1, 3, 4, 5};
	static const char ended[] =
		"'failedIndexes':'1,3-5'," CONDITIONS(CONDITION("Failed", "True", "FailedIndexes"));
	struct world w = {.kind = test_kind("job")};
	char uid[16];

	job(&w, "", spec, "'active':2");
	for (size_t i = 0; i < array_size(failed); i++) {
		snprintf(uid, sizeof(uid), "p%d", failed[i]);
		pod(&w, uid, 10, failed[i], "Failed");
	}
	pod(&w, "p0", 10, 0, "Running");
	assert_why(&w, "RUNNING Error: c-1 ended with exit code 3. It was the first of 4 failed "
		       "replicas: 1, 3-5. There was no retry, because max_retries "
		       "is 0.");
	job(&w, "", spec, ended);
	assert_int_equal(w.last->state, SPEC_FAILED);
	assert_non_null(strstr(world_why(&w), "failed replicas: 1, 3-5. "));
	world_clear(&w);
	/* No pods are left that could show it. */
	job(&w, "", spec, ended);
	assert_why(&w, "FAILED FailedIndexes: The job failed: m: 1,3-5.");
	world_clear(&w);
}

/* A policy has ended the job. `status` and `why` name that policy, although a pod has failed. */
static void test_reasons(void **state)
{
	static const struct {
		const char *condition, *reason, *why;
	} table[] = {
		{CONDITION("Failed", "True", "PodFailurePolicy"), "PodFailurePolicy",
		 "c-0 ended with exit code 3. "},
		{CONDITION("Failed", "True", "DeadlineExceeded"), "DeadlineExceeded",
		 "The job failed: m."},
		{CONDITION("Failed", "True", "MaxFailedIndexesExceeded"), "Error",
		 "c-0 ended with exit code 3. "},
		{CONDITION("Failed", "True", "BackoffLimitExceeded"), "Error",
		 "c-0 ended with exit code 3. "},
		{CONDITION("FailureTarget", "True", "PodFailurePolicy"), "PodFailurePolicy",
		 "c-0 ended with exit code 3. "},
		{CONDITION("SuccessCriteriaMet", "True", "SuccessPolicy"), "SuccessPolicy", ""},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {.kind = test_kind("job")};

		job(&w, "", SPEC_OF(",'completionMode':'Indexed'"), "'active':2");
		pod(&w, "a", 10, 0, "Failed");
		assert_non_null(strstr(world_why(&w), "c-0 ended with exit code 3."));
		job(&w, "", SPEC_OF(",'completionMode':'Indexed'"),
		    world_json("'conditions':[%s]", table[i].condition));
		assert_reason(&w, table[i].reason);
		assert_memory_equal(world_why(&w), table[i].why, strlen(table[i].why));
		assert_actions(w.last->actions, "");
		world_clear(&w);
	}
}

/* Assert that the pods of the replicas are WANT. */
static void assert_pods(const struct world *w, const char *want)
{
	cleanup_free char *text = text_copy("");

	for (size_t i = 0; i < w->last->n_replicas; i++)
		text_set(&text, "%s %s", text, w->last->replicas[i].pod);
	assert_string_equal(text, want);
}

/*
 * Pods without an index become replicas in the order of their creation. Once there are enough
 * replicas, a new pod replaces a failed one. Later events of other pods do not move a replica.
 */
static void test_unnumbered(void **state)
{
	const char *spec = "'template':{'spec':{'containers':[{'name':'c'}]}},'completions':3,"
			   "'parallelism':2,'backoffLimit':2";
	struct world w = {.kind = test_kind("job")};

	job(&w, "", spec, "'active':2");
	pod(&w, "z", 10, NO_INDEX, "Running");
	pod(&w, "y", 10, NO_INDEX, "Running");
	/*
	 * Both pods were created in the same second, so "y" might be the first. But users already
	 * know the output of "z" as that of replica 0.
	 */
	assert_pods(&w, " j-z j-y ");
	pod(&w, "y", 10, NO_INDEX, "Failed");
	pod(&w, "z", 10, NO_INDEX, "Succeeded");
	pod(&w, "x", 20, NO_INDEX, "Running");
	assert_pods(&w, " j-z j-y j-x");
	pod(&w, "b", 30, NO_INDEX, "Running");
	assert_pods(&w, " j-z j-b j-x");
	assert_int_equal(w.last->replicas[1].attempt, 1);
	pod(&w, "x", 20, NO_INDEX, "Failed");
	pod(&w, "a", 40, NO_INDEX, "Running");
	assert_pods(&w, " j-z j-b j-a");
	/* There are more pods than replicas. */
	pod(&w, "c", 50, NO_INDEX, "Running");
	assert_pods(&w, " j-z j-b j-a");
	world_clear(&w);
}

/*
 * Which suspended jobs wait, and what ctl accepts. A JobSet suspends and recreates its Jobs. A
 * CronJob does not.
 */
static void test_suspended(void **state)
{
#define OWNER(kind)                                                                                \
	",'ownerReferences':[{'apiVersion':'batch/v1','kind':'" kind                               \
	"','name':'o','uid':'ou','controller':true}]"
#define QUEUE ",'labels':{'kueue.x-k8s.io/queue-name':'team'}"
	static const struct {
		const char *metadata;
		bool asked, suspended; /* in the Job's spec, and by its controller */
		const char *active;    /* in Kueue's Workload. NULL: there is none */
		const char *job, *actions;
	} table[] = {
		{"", false, false, NULL, "PENDING", " suspend terminate"},
		{"", true, true, NULL, "CANCELLED/suspended Suspended", " resume"},
		/* Somebody has requested to suspend the Job, but that is not done yet. */
		{"", true, false, NULL, "PENDING", " resume terminate"},
		{OWNER("CronJob"), false, false, NULL, "PENDING", " suspend terminate"},
		{OWNER("CronJob"), true, true, NULL, "CANCELLED/suspended Suspended", " resume"},
		{OWNER("JobSet"), false, false, NULL, "PENDING", ""},
		{OWNER("JobSet"), true, true, NULL,
		 "PENDING SuspendedByOwner: The job waits until its owner, JobSet o, lets it run",
		 ""},
		{QUEUE, true, true, NULL,
		 "PENDING QueuedInKueue: The job waits for Kueue to admit it from queue team", ""},
		{QUEUE, true, true, "true",
		 "PENDING QueuedInKueue: The job waits for Kueue to admit it from queue team",
		 " suspend queue priority"},
		{QUEUE, true, true, "false", "CANCELLED/suspended Deactivated", " resume"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {.kind = test_kind("job"), .kueue = {.known = true}};

		job(&w, table[i].metadata,
		    table[i].asked ? SPEC_OF(",'suspend':true") : SPEC_OF(""),
		    table[i].suspended ? CONDITIONS(CONDITION("Suspended", "True", "JobSuspended"))
				       : "'active':2");
		if (table[i].active)
			world_workload(&w,
				       world_json("{'metadata':{'name':'wl','uid':'w',"
						  "'ownerReferences':[{'uid':'u',"
						  "'controller':true}]},'spec':{'active':%s}}",
						  table[i].active),
				       false);
		assert_job(&w, table[i].job);
		assert_actions(w.last->actions, table[i].actions);
		world_clear(&w);
	}
}

/* A webhook may add a container to a pod, even before the role's container. */
static void test_injected(void **state)
{
	struct world w = {.kind = test_kind("job")};

	job(&w, "", SPEC_OF(""), "'active':1");
	world_pod(&w,
		  world_json("{'metadata':{'name':'j-0','uid':'p','ownerReferences':[{'uid':'u',"
			     "'controller':true}],'labels':{'torchx.pytorch.org/role-name':"
			     "'Data_Loader'},'annotations':{"
			     "'batch.kubernetes.io/job-completion-index':'0'}},"
			     "'spec':{'containers':[{'name':'proxy'},{'name':'dataloader'}]}}"),
		  false);
	assert_string_equal(w.pods[0]->main, "dataloader");
	world_clear(&w);
}

/*
 * The job's pods can't be created, and the controller retries without end. The server's message may
 * end after the name of the quota. The event recorder combines similar events. Kubeflow's training
 * operator has its own reason. The event may be about a part of the job, such as a launcher's Job.
 */
static void test_quota(void **state)
{
	static const struct {
		const char *about, *reason, *prefix, *amounts, *shown;
	} cases[] = {
		{"u", "FailedCreate", "", " requested: pods=1, used: pods=1, limited: pods=1",
		 " (requested: pods=1, used: pods=1, limited: pods=1)"},
		{"u", "FailedCreate", "", "", ""},
		{"u", "FailedCreate", "(combined from similar events): ", "", ""},
		{"u", "FailedCreatePod", "", "", ""},
		{"of-a-part", "FailedCreate", "", "", ""},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		struct world w = {.kind = test_kind("job"), .events_known = true};
		cleanup_free char *event = text_print(
			"{'metadata':{'name':'e','uid':'e1'},'involvedObject':{'kind':'Job','name':"
			"'j','uid':'%s'},'reason':'%s','type':'Warning','lastTimestamp':"
			"'1970-01-01T00:00:30Z','message':'%sError creating: pods \\'j-0-\\' is "
			"forbidden: exceeded quota: few,%s'}",
			cases[i].about, cases[i].reason, cases[i].prefix, cases[i].amounts);
		cleanup_free char *want =
			text_print("The job waits: its pods can't be created: quota few is "
				   "exhausted%s. It continues automatically when quota becomes "
				   "available.",
				   cases[i].shown);

		job(&w, "", SPEC_OF(""), "'active':0");
		world_event(&w, world_json("%s", event));
		assert_string_equal(world_why(&w), want);
		/* A pod was created after the refusal, so quota no longer explains what is missing. */
		pod(&w, "a", 40, 0, "Running");
		assert_string_equal(world_why(&w), "");
		world_clear(&w);
	}
}

/* The number of replicas. Absurd numbers are limited. */
static void test_numbers(void **state)
{
	static const struct {
		const char *kind, *spec, *status;
		size_t n;
	} table[] = {
		/* A work-queue job has as many replicas as run at the same time. */
		{"job", "'parallelism':2", "'active':2", 2},
		{"job", "'parallelism':2,'completions':3", "'active':2", 3},
		{"job", "'completions':2147483647,'backoffLimit':2147483647",
		 "'failed':2147483647,'failedIndexes':[1]", SPEC_MAX_REPLICAS},
		{"job", "'completions':-1,'parallelism':'x','template':[]", "'conditions':{}", 1},
		{"jobset",
		 "'replicatedJobs':[{'name':'a','replicas':2147483647,'template':{'spec':{"
		 "'completions':2147483647}}}]",
		 "'restarts':0", SPEC_MAX_REPLICAS},
		{"jobset", "'replicatedJobs':'none'", "'restarts':-1", 0},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {.kind = test_kind(table[i].kind)};

		job(&w, "", table[i].spec, table[i].status);
		assert_int_equal(w.last->n_replicas, table[i].n);
		world_clear(&w);
	}
}

/* --- JobSets --- */

#define SET(policy, job)                                                                           \
	"'failurePolicy':{" policy "},'replicatedJobs':[{'name':'a','replicas':1,'template':"      \
	"{'spec':{" job "}}}]"

/* Send the only pod of the JobSet's Job, in attempt RESTART, after FAILURES of this replica. */
static void set_pod(struct world *w, const char *uid, unsigned restart, unsigned failures,
		    const char *phase)
{
	world_pod(w,
		  world_json("{'metadata':{'name':'j-a-0-0-x','uid':'%s','creationTimestamp':"
			     "'1970-01-01T00:00:1%uZ','ownerReferences':[{'apiVersion':'batch/v1',"
			     "'kind':'Job','name':'j-a-0','uid':'of-the-job','controller':true}],"
			     "'labels':{'jobset.sigs.k8s.io/jobset-uid':'u',"
			     "'jobset.sigs.k8s.io/jobset-name':'j',"
			     "'jobset.sigs.k8s.io/replicatedjob-name':'a',"
			     "'jobset.sigs.k8s.io/restart-attempt':'%u'},'annotations':{"
			     "'batch.kubernetes.io/job-completion-index':'0',"
			     "'batch.kubernetes.io/job-index-failure-count':'%u'}},"
			     "'spec':{'containers':[{'name':'c'}]},'status':{'phase':'%s',"
			     "'containerStatuses':[{'name':'c','state':{'terminated':{"
			     "'exitCode':%d}}}]}}",
			     uid, restart + failures, restart, failures, phase,
			     streq(phase, "Failed") ? 3 : 0),
		  false);
}

/* All pods are created again, even if the old ones succeeded. */
static void test_succeeded_too_late(void **state)
{
	struct world w = {.kind = test_kind("jobset")};

	job(&w, "", SET("'maxRestarts':1", ""), "'restarts':0");
	set_pod(&w, "a", 0, 0, "Succeeded");
	assert_shows(&w, "SUCCEEDED a-0=SUCCEEDED/0/Completed");
	job(&w, "", SET("'maxRestarts':1", ""), "'restarts':1");
	assert_shows(&w, "RUNNING a-0=SUCCEEDED/0/Completed");
	set_pod(&w, "b", 1, 0, "Succeeded");
	assert_shows(&w, "SUCCEEDED a-0=SUCCEEDED/0/Completed/attempt 1");
	world_clear(&w);
}

/* Retries of a single replica. If no object counts them, `why` mentions none. */
static void test_retried_alone(void **state)
{
#define FAILED "'restarts':0," CONDITIONS(CONDITION("Failed", "True", "R"))
	struct world w = {.kind = test_kind("jobset")};

	job(&w, "", SET("", "'backoffLimitPerIndex':1"), "'restarts':0");
	set_pod(&w, "a", 0, 0, "Failed");
	set_pod(&w, "b", 0, 1, "Failed");
	job(&w, "", SET("", "'backoffLimitPerIndex':1"), FAILED);
	assert_shows(&w, "FAILED a-0=FAILED/3/attempt 1");
	assert_string_equal(world_why(&w),
			    "a-0 ended with exit code 3. Retries used: 1; max_retries is 1.");
	world_clear(&w);
	job(&w, "", SET("", "'backoffLimit':3"), "'restarts':0");
	set_pod(&w, "a", 0, 0, "Failed");
	job(&w, "", SET("", "'backoffLimit':3"), FAILED);
	assert_string_equal(world_why(&w), "a-0 ended with exit code 3.");
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_late_retries),
		cmocka_unit_test(test_resumed_unseen),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_unnumbered),
		cmocka_unit_test(test_suspended),
		cmocka_unit_test(test_injected),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_succeeded_too_late),
		cmocka_unit_test(test_retried_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
