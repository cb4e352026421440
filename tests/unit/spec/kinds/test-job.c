/* SPDX-License-Identifier: MIT */
/*
 * Batch Jobs: what users see while the real controller runs them. Also objects that no recording
 * contains: pods without an index, ends that no pod shows, and Jobs with an owner.
 */
#include "spec/job/status.h"
#include "spec/view/control.h"
#include "tests/unit/spec/kinds/cluster-world.h"
#include "tests/unit/table.h"

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

/* Send the Job's pod UID, created in second CREATED. INDEX is an annotation, or "". */
static void pod(struct world *w, const char *uid, unsigned created, const char *index,
		const char *phase, bool gone)
{
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
			     uid, uid, created, index, phase, ended),
		  gone);
}

static const char *why(const struct world *w)
{
	static char *text;
	size_t len;

	free(text);
	spec_status_why(w->last, ~0u, &text, &len);
	return text;
}

static const struct scenario {
	const char *name;
	const char *told;
	const char *reason, *message, *why;
} scenarios[] = {
	{"kueue_job_success",
	 "SUBMITTED app-0=PENDING app-1=PENDING\n"
	 "PENDING app-0=PENDING app-1=PENDING\n"
	 "RUNNING app-0=RUNNING app-1=PENDING\n"
	 "RUNNING app-0=RUNNING app-1=RUNNING\n"
	 "RUNNING app-0=SUCCEEDED/0/Completed app-1=RUNNING\n"
	 "SUCCEEDED app-0=SUCCEEDED/0/Completed app-1=SUCCEEDED/0/Completed\n",
	 "Completed", "", ""},
	{"kueue_job_fail",
	 "SUBMITTED app-0=PENDING app-1=PENDING\n"
	 "PENDING app-0=PENDING app-1=PENDING\n"
	 "RUNNING app-0=RUNNING app-1=PENDING\n"
	 "RUNNING app-0=RUNNING app-1=RUNNING\n"
	 "RUNNING app-0=RUNNING app-1=FAILED/3/Error\n"
	 "RUNNING app-0=FAILED/3/Error app-1=FAILED/3/Error\n"
	 "FAILED app-0=FAILED/3/Error app-1=FAILED/3/Error\n",
	 "Error", "app-0: exit code 3",
	 "app-0 ended with exit code 3. It was the first of 2 failed replicas: 0-1. There was no retry, because max_retries is 0. Its output is in app-0/log.\n"},
	{"kueue_job_quota_wait",
	 "SUBMITTED app-0=PENDING app-1=PENDING\n"
	 "PENDING app-0=PENDING app-1=PENDING\n"
	 "RUNNING app-0=PENDING app-1=RUNNING\n"
	 "RUNNING app-0=RUNNING app-1=RUNNING\n"
	 "RUNNING app-0=RUNNING app-1=SUCCEEDED/0/Completed\n"
	 "RUNNING app-0=SUCCEEDED/0/Completed app-1=SUCCEEDED/0/Completed\n"
	 "SUCCEEDED app-0=SUCCEEDED/0/Completed app-1=SUCCEEDED/0/Completed\n",
	 "Completed", "", ""},
	{"job_success",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=SUCCEEDED/0/Completed\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n",
	 "Completed", "", ""},
	{"job_failed_index",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING trainer-2=PENDING trainer-3=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING trainer-2=PENDING trainer-3=PENDING\n"
	 "RUNNING trainer-0=PENDING trainer-1=RUNNING trainer-2=PENDING trainer-3=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING trainer-2=PENDING trainer-3=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=FAILED/3/Error trainer-2=PENDING trainer-3=PENDING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=FAILED/3/Error trainer-2=PENDING trainer-3=PENDING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=FAILED/3/Error trainer-2=RUNNING trainer-3=PENDING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=FAILED/3/Error trainer-2=RUNNING trainer-3=RUNNING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=FAILED/3/Error trainer-2=SUCCEEDED/0/Completed trainer-3=RUNNING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=FAILED/3/Error trainer-2=SUCCEEDED/0/Completed trainer-3=SUCCEEDED/0/Completed\n"
	 "FAILED trainer-0=SUCCEEDED/0/Completed trainer-1=FAILED/3/Error trainer-2=SUCCEEDED/0/Completed trainer-3=SUCCEEDED/0/Completed\n",
	 "Error", "trainer-1: exit code 3",
	 "trainer-1 ended with exit code 3. There was no retry, because max_retries is 0. Its output is in trainer-1/log.\n"},
	{"job_retry_index",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=PENDING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING/4/Error\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING/attempt 1\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING/attempt 1\n"
	 "RUNNING trainer-0=RUNNING trainer-1=SUCCEEDED/0/Completed/attempt 1\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed/attempt 1\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed/attempt 1\n",
	 "Completed", "", ""},
	{"job_retry_job",
	 "SUBMITTED trainer-0=PENDING\n"
	 "PENDING trainer-0=PENDING\n"
	 "RUNNING trainer-0=RUNNING\n"
	 "PENDING trainer-0=PENDING/5/Error\n"
	 "PENDING trainer-0=PENDING/attempt 1\n"
	 "RUNNING trainer-0=RUNNING/attempt 1\n"
	 "PENDING trainer-0=PENDING/5/Error/attempt 1\n"
	 "RUNNING trainer-0=FAILED/5/Error/attempt 1\n"
	 "FAILED trainer-0=FAILED/5/Error/attempt 1\n",
	 "Error", "trainer-0: exit code 5",
	 "trainer-0 ended with exit code 5. Retries used: 1; max_retries is 1. Its output is in trainer-0/log.\n"},
	{"job_suspend_resume",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "CANCELLED trainer-0=RUNNING trainer-1=RUNNING\n"
	 "CANCELLED trainer-0=CANCELLED/137/Deleted trainer-1=RUNNING\n"
	 "CANCELLED trainer-0=CANCELLED/137/Deleted trainer-1=CANCELLED/137/Deleted\n"
	 "PENDING trainer-0=PENDING/137/Restarting trainer-1=PENDING/137/Restarting\n"
	 "PENDING trainer-0=PENDING/attempt 1 trainer-1=PENDING/137/Restarting\n"
	 "PENDING trainer-0=PENDING/attempt 1 trainer-1=PENDING/attempt 1\n"
	 "RUNNING trainer-0=RUNNING/attempt 1 trainer-1=PENDING/attempt 1\n"
	 "RUNNING trainer-0=RUNNING/attempt 1 trainer-1=RUNNING/attempt 1\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed/attempt 1 trainer-1=RUNNING/attempt 1\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed/attempt 1 trainer-1=SUCCEEDED/0/Completed/attempt 1\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed/attempt 1 trainer-1=SUCCEEDED/0/Completed/attempt 1\n",
	 "Completed", "", ""},
	{"job_deadline",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=PENDING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=CANCELLED/137/Deleted\n"
	 "RUNNING trainer-0=CANCELLED/137/Deleted trainer-1=CANCELLED/137/Deleted\n"
	 "FAILED trainer-0=CANCELLED/137/Deleted trainer-1=CANCELLED/137/Deleted\n",
	 "DeadlineExceeded", "Job was active longer than specified deadline",
	 "The job failed: Job was active longer than specified deadline.\n"},
	{"job_terminated",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=CANCELLED/137/Deleted\n"
	 "RUNNING trainer-0=CANCELLED/137/Deleted trainer-1=CANCELLED/137/Deleted\n"
	 "FAILED trainer-0=CANCELLED/137/Deleted trainer-1=CANCELLED/137/Deleted\n",
	 "Terminated", "it was terminated through ctl",
	 "The job was ended: it was terminated through ctl.\n"},
	{"job_deleted",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "CANCELLED trainer-0=RUNNING trainer-1=RUNNING\n"
	 "CANCELLED trainer-0=CANCELLED/137/Deleted trainer-1=RUNNING\n"
	 "CANCELLED trainer-0=CANCELLED/137/Deleted trainer-1=CANCELLED/137/Deleted\n",
	 "Deleted", "it was removed from the cluster",
	 "The job was cancelled: it was removed from the cluster.\n"},
	{"job_create",
	 "SUBMITTED app-0=PENDING\n"
	 "PENDING app-0=PENDING\n"
	 "RUNNING app-0=RUNNING\n"
	 "PENDING app-0=PENDING/6/Error\n"
	 "PENDING app-0=PENDING/attempt 1\n"
	 "RUNNING app-0=RUNNING/attempt 1\n"
	 "RUNNING app-0=SUCCEEDED/0/Completed/attempt 1\n"
	 "SUCCEEDED app-0=SUCCEEDED/0/Completed/attempt 1\n",
	 "Completed", "", ""},
	{"job_several",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING trainer-2=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING trainer-2=PENDING\n"
	 "RUNNING trainer-0=PENDING trainer-1=RUNNING trainer-2=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING trainer-2=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=SUCCEEDED/0/Completed trainer-2=PENDING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed trainer-2=PENDING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed trainer-2=RUNNING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed trainer-2=SUCCEEDED/0/Completed\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed trainer-2=SUCCEEDED/0/Completed\n",
	 "Completed", "", ""},
	/*
	 * The controller stops the third run as soon as it has started. The second one was the run
	 * that failed.
	 */
	{"job_on_failure_limit",
	 "SUBMITTED main-0=PENDING\n"
	 "PENDING main-0=PENDING\n"
	 "RUNNING main-0=RUNNING\n"
	 "PENDING main-0=PENDING/3/Error\n"
	 "RUNNING main-0=RUNNING/attempt 1\n"
	 "PENDING main-0=PENDING/3/Error/attempt 1\n"
	 "PENDING main-0=PENDING/3/CrashLoopBackOff/attempt 1\n"
	 "RUNNING main-0=RUNNING/attempt 2\n"
	 "RUNNING main-0=FAILED/3/Error/attempt 2\n"
	 "FAILED main-0=FAILED/3/Error/attempt 2\n",
	 "Error", "main-0: exit code 3",
	 "main-0 ended with exit code 3. Retries used: 2; max_retries is 2. Its output is in main-0/log.1.\n"},
	/*
	 * The controller deletes the other two pods. The object counts them as failed, but they are
	 * not retries.
	 */
	{"job_fail_policy",
	 "SUBMITTED main-0=PENDING main-1=PENDING main-2=PENDING\n"
	 "PENDING main-0=PENDING main-1=PENDING main-2=PENDING\n"
	 "RUNNING main-0=RUNNING main-1=PENDING main-2=PENDING\n"
	 "RUNNING main-0=RUNNING main-1=PENDING main-2=RUNNING\n"
	 "RUNNING main-0=RUNNING main-1=RUNNING main-2=RUNNING\n"
	 "RUNNING main-0=RUNNING main-1=FAILED/42/Error main-2=RUNNING\n"
	 "RUNNING main-0=CANCELLED/143/Deleted main-1=FAILED/42/Error main-2=RUNNING\n"
	 "RUNNING main-0=CANCELLED/143/Deleted main-1=FAILED/42/Error main-2=CANCELLED/143/Deleted\n"
	 "FAILED main-0=CANCELLED/143/Deleted main-1=FAILED/42/Error main-2=CANCELLED/143/Deleted\n",
	 "PodFailurePolicy",
	 "Container main for pod test/app-1-rrxll failed with exit code 42 matching FailJob rule at index 0",
	 "main-1 ended with exit code 42. The job was not retried, because rule 0 of its podFailurePolicy forbids retries. Its output is in main-1/log.\n"},
	{"job_fail_policy_retried",
	 "SUBMITTED main-0=PENDING\n"
	 "PENDING main-0=PENDING\n"
	 "RUNNING main-0=RUNNING\n"
	 "RUNNING main-0=FAILED/5/Error\n"
	 "PENDING main-0=PENDING/attempt 1\n"
	 "RUNNING main-0=RUNNING/attempt 1\n"
	 "RUNNING main-0=FAILED/42/Error/attempt 1\n"
	 "FAILED main-0=FAILED/42/Error/attempt 1\n",
	 "PodFailurePolicy",
	 "Container main for pod test/app-8467j failed with exit code 42 matching FailJob rule at index 0",
	 "main-0 ended with exit code 42. Retries used: 1; max_retries is 6. The job was not retried, because rule 0 of its podFailurePolicy forbids retries. Its output is in main-0/log.\n"},
	/* A failure that a rule ignores does not count as a retry. */
	{"job_count_policy",
	 "SUBMITTED main-0=PENDING\n"
	 "PENDING main-0=PENDING\n"
	 "RUNNING main-0=RUNNING\n"
	 "RUNNING main-0=FAILED/7/Error\n"
	 "PENDING main-0=PENDING/attempt 1\n"
	 "RUNNING main-0=RUNNING/attempt 1\n"
	 "RUNNING main-0=FAILED/5/Error/attempt 1\n"
	 "PENDING main-0=PENDING/attempt 2\n"
	 "RUNNING main-0=RUNNING/attempt 2\n"
	 "RUNNING main-0=FAILED/5/Error/attempt 2\n"
	 "FAILED main-0=FAILED/5/Error/attempt 2\n",
	 "Error", "main-0: exit code 5",
	 "main-0 ended with exit code 5. Retries used: 1; max_retries is 1. Its output is in main-0/log.\n"},
};

static void test_recordings(void **state)
{
	for (size_t i = 0; i < array_size(scenarios); i++) {
		struct world w = {.kind = test_kind("job"), .only = "app"};

		world_play(&w, scenarios[i].name);
		assert_string_equal(w.told, scenarios[i].told);
		assert_string_equal(w.last->reason, scenarios[i].reason);
		assert_string_equal(w.last->message, scenarios[i].message);
		assert_string_equal(why(&w), scenarios[i].why);
		world_clear(&w);
	}
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

#define ONE_POD	 "'template':{'spec':{'containers':[{'name':'c'}]}},'backoffLimit':2,'completions':1"
#define EXCEEDED "'conditions':[" CONDITION("Failed", "True", "BackoffLimitExceeded") "]"
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
	static const struct {
		const char *end;
		const char *log, *why;
	} ends[] = {
		{ENDED("143"), "a.c.1",
		 "c-0 ended with exit code 3. Retries used: 2; max_retries is 2. Its output is in c-0/log.1.\n"},
		{ENDED("0"), "a.c.1",
		 "c-0 ended with exit code 3. Retries used: 2; max_retries is 2. Its output is in c-0/log.1.\n"},
		{"{'running':{'startedAt':'1970-01-01T00:00:09Z'}}", "a.c.1",
		 "c-0 ended with exit code 3. Retries used: 2; max_retries is 2. Its output is in c-0/log.1.\n"},
		/* It failed once more before its controller could stop it. */
		{ENDED("4"), "a.c.2",
		 "c-0 ended with exit code 4. Retries used: 2; max_retries is 2. Its output is in c-0/log.\n"},
	};

	for (size_t i = 0; i < array_size(ends); i++) {
		struct world w = {.kind = test_kind("job")};

		job(&w, "", ONE_POD, "'active':1");
		rerun_pod(&w, 1, "{'running':{}}", "", false);
		assert_int_equal(w.last->retries, 1);
		rerun_pod(&w, 2, "{'running':{}}", "", false);
		assert_int_equal(w.last->retries, 2);
		assert_int_equal(w.last->replicas[0].attempt, 2);
		job(&w, "", ONE_POD, "'failed':1," EXCEEDED);
		rerun_pod(&w, 2, ends[i].end, DELETED, true);
		assert_int_equal(w.last->retries, 2);
		assert_int_equal(w.last->replicas[0].state, SPEC_FAILED);
		assert_string_equal(why(&w), ends[i].why);
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
	pod(&w, "a", 10, "'batch.kubernetes.io/job-completion-index':'1'", "Failed", false);
	pod(&w, "c", 20, "'batch.kubernetes.io/job-completion-index':'1'", "Failed", false);
	assert_int_equal(w.last->retries, 1);
	assert_string_equal(
		why(&w),
		"c-1 ended with exit code 3. Retries used: 1; max_retries is 6. The job was not "
		"retried, because rule 12 of its podFailurePolicy forbids retries. Its output is "
		"in c-1/log.\n");
	/* The rule's message is about another replica than the one that failed first. */
	pod(&w, "b", 5, "'batch.kubernetes.io/job-completion-index':'0'", "Failed", false);
	assert_non_null(strstr(
		why(&w),
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
		"'conditions':[" CONDITION("Suspended", "False",
					   "JobResumed") "," CONDITION("FailureTarget", "True",
								       "BackoffLimitExceeded") "]";

	job(&w, "", SPEC_OF(",'suspend':true"),
	    "'conditions':[" CONDITION("Suspended", "True", "JobSuspended") "]");
	assert_int_equal(w.last->state, SPEC_CANCELLED);
	assert_true(w.last->suspended);
	job(&w, ",'deletionTimestamp':'1970-01-01T00:00:30Z'", SPEC_OF(""), target);
	assert_int_equal(w.last->state, SPEC_CANCELLED);
	world_clear(&w);
	job(&w, "", SPEC_OF(",'suspend':true"),
	    "'conditions':[" CONDITION("Suspended", "True", "JobSuspended") "]");
	job(&w, "", SPEC_OF(""), target);
	assert_false(spec_state_is_final(w.last->state));
	job(&w, "", SPEC_OF(""),
	    "'conditions':[" CONDITION("Failed", "True", "BackoffLimitExceeded") "]");
	assert_int_equal(w.last->state, SPEC_FAILED);
	world_clear(&w);
}

/* A deadline ends the job while a failed replica is retried. `why` then names the deadline. */
static void test_deadline(void **state)
{
	struct world w = {.kind = test_kind("job")};

	job(&w, "", SPEC_OF(",'completionMode':'Indexed'"), "'active':2");
	pod(&w, "a", 10, "'batch.kubernetes.io/job-completion-index':'0'", "Failed", false);
	assert_non_null(strstr(why(&w), "c-0 ended with exit code 3."));
	job(&w, "", SPEC_OF(",'completionMode':'Indexed'"),
	    "'failed':2,'conditions':[" CONDITION("Failed", "True", "DeadlineExceeded") "]");
	assert_string_equal(w.last->reason, "DeadlineExceeded");
	assert_string_equal(why(&w), "The job failed: m.\n");
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
	static const unsigned failed[] = {1, 3, 4, 5};
	struct world w = {.kind = test_kind("job")};
	char uid[16], index[64];

	job(&w, "", spec, "'active':2");
	for (size_t i = 0; i < array_size(failed); i++) {
		snprintf(uid, sizeof(uid), "p%u", failed[i]);
		snprintf(index, sizeof(index), "'batch.kubernetes.io/job-completion-index':'%u'",
			 failed[i]);
		pod(&w, uid, 10, index, "Failed", false);
	}
	pod(&w, "p0", 10, "'batch.kubernetes.io/job-completion-index':'0'", "Running", false);
	assert_int_equal(w.last->state, SPEC_RUNNING);
	assert_string_equal(why(&w), "c-1 ended with exit code 3. It was the first of 4 failed "
				     "replicas: 1, 3-5. There was no retry, because max_retries "
				     "is 0.\n");
	job(&w, "", spec,
	    "'failedIndexes':'1,3-5','conditions':[" CONDITION("Failed", "True",
							       "FailedIndexes") "]");
	assert_int_equal(w.last->state, SPEC_FAILED);
	assert_non_null(strstr(why(&w), "failed replicas: 1, 3-5. "));
	world_clear(&w);
	/* No pods are left that could show it. */
	job(&w, "", spec,
	    "'failedIndexes':'1,3-5','conditions':[" CONDITION("Failed", "True",
							       "FailedIndexes") "]");
	assert_string_equal(w.last->reason, "FailedIndexes");
	assert_string_equal(why(&w), "The job failed: m: 1,3-5.\n");
	world_clear(&w);
}

/* A policy has ended the job. The reason is that of the policy, although a pod has failed. */
static void test_reasons(void **state)
{
	static const struct {
		const char *condition, *reason;
	} table[] = {
		{CONDITION("Failed", "True", "PodFailurePolicy"), "PodFailurePolicy"},
		{CONDITION("Failed", "True", "DeadlineExceeded"), "DeadlineExceeded"},
		{CONDITION("Failed", "True", "MaxFailedIndexesExceeded"), "Error"},
		{CONDITION("Failed", "True", "BackoffLimitExceeded"), "Error"},
		{CONDITION("FailureTarget", "True", "PodFailurePolicy"), "PodFailurePolicy"},
		{CONDITION("SuccessCriteriaMet", "True", "SuccessPolicy"), "SuccessPolicy"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {.kind = test_kind("job")};

		job(&w, "", SPEC_OF(""), "'active':2");
		pod(&w, "a", 10, "'batch.kubernetes.io/job-completion-index':'0'", "Failed", false);
		job(&w, "", SPEC_OF(""), world_json("'conditions':[%s]", table[i].condition));
		assert_string_equal(w.last->reason, table[i].reason);
		assert_int_equal(w.last->actions, 0);
		world_clear(&w);
	}
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
	pod(&w, "z", 10, "", "Running", false);
	pod(&w, "y", 10, "", "Running", false);
	/*
	 * Both pods were created in the same second, so "y" might be the first. But users already
	 * know the output of "z" as that of replica 0.
	 */
	assert_string_equal(w.last->replicas[0].pod, "j-z");
	pod(&w, "y", 10, "", "Failed", false);
	pod(&w, "z", 10, "", "Succeeded", false);
	pod(&w, "x", 20, "", "Running", false);
	assert_string_equal(w.last->replicas[2].pod, "j-x");
	pod(&w, "b", 30, "", "Running", false);
	assert_string_equal(w.last->replicas[1].pod, "j-b");
	assert_int_equal(w.last->replicas[1].attempt, 1);
	pod(&w, "x", 20, "", "Failed", false);
	pod(&w, "a", 40, "", "Running", false);
	assert_string_equal(w.last->replicas[0].pod, "j-z");
	assert_string_equal(w.last->replicas[1].pod, "j-b");
	assert_string_equal(w.last->replicas[2].pod, "j-a");
	/* There are more pods than replicas. */
	pod(&w, "c", 50, "", "Running", false);
	assert_int_equal(w.last->n_replicas, 3);
	world_clear(&w);
}

/*
 * A work-queue job has no number of completions. It has as many replicas as run at the same time.
 */
static void test_work_queue(void **state)
{
	struct world w = {.kind = test_kind("job")};

	job(&w, "",
	    "'template':{'spec':{'containers':[{'name':'c'}]}},'parallelism':2,"
	    "'backoffLimit':0",
	    "'active':2");
	assert_string_equal(w.told, "PENDING c-0=PENDING c-1=PENDING\n");
	world_clear(&w);
}

/* A JobSet suspends and recreates its Jobs. A CronJob does not. */
static void test_owned(void **state)
{
#define OWNER(kind)                                                                                \
	",'ownerReferences':[{'apiVersion':'batch/v1','kind':'" kind                               \
	"','name':'o','uid':'ou','controller':true}]"
	static const char suspended[] =
		"'conditions':[" CONDITION("Suspended", "True", "JobSuspended") "]";
	struct world w = {.kind = test_kind("job")};

	job(&w, OWNER("JobSet"), SPEC_OF(",'suspend':true"), suspended);
	assert_int_equal(w.last->state, SPEC_PENDING);
	assert_string_equal(w.last->reason, "SuspendedByOwner");
	assert_int_equal(w.last->actions, 0);
	job(&w, OWNER("JobSet"), SPEC_OF(""), "'active':2");
	assert_int_equal(w.last->actions, 0);
	job(&w, OWNER("CronJob"), SPEC_OF(",'suspend':true"), suspended);
	assert_int_equal(w.last->state, SPEC_CANCELLED);
	assert_int_equal(w.last->actions, 1u << SPEC_RESUME);
	job(&w, OWNER("CronJob"), SPEC_OF(""), "'active':2");
	assert_int_equal(w.last->actions, 1u << SPEC_SUSPEND | 1u << SPEC_TERMINATE);
	world_clear(&w);
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
				   "available.\n",
				   cases[i].shown);

		job(&w, "", SPEC_OF(""), "'active':0");
		world_event(&w, world_json("%s", event));
		assert_string_equal(why(&w), want);
		world_clear(&w);
	}
}

/* Another pod was created after the refusal, so quota no longer explains what is missing. */
static void test_quota_before(void **state)
{
	struct world w = {.kind = test_kind("job"), .events_known = true};

	job(&w, "", SPEC_OF(""), "'active':1");
	world_event(&w,
		    world_json("{'metadata':{'name':'e','uid':'e1'},'involvedObject':{'kind':"
			       "'Job','name':'j','uid':'u'},'reason':'FailedCreate','type':"
			       "'Warning','lastTimestamp':'1970-01-01T00:00:30Z','message':"
			       "'Error creating: pods j-0- is forbidden: exceeded quota: few'}"));
	assert_non_null(strstr(why(&w), "quota few is exhausted"));
	world_pod(&w,
		  world_json("{'metadata':{'name':'j-0','uid':'p','creationTimestamp':"
			     "'1970-01-01T00:00:40Z','ownerReferences':[{'uid':'u',"
			     "'controller':true}],'annotations':{"
			     "'batch.kubernetes.io/job-completion-index':'0'}},"
			     "'spec':{'containers':[{'name':'c'}]},'status':{'phase':'Running'}}"),
		  false);
	assert_null(strstr(why(&w), "quota"));
	world_clear(&w);
}

/* A request of ctl applies only to the version of the Job that kxfs has read. */
static void test_requests(void **state)
{
	struct world w = {.kind = test_kind("job")};
	const struct spec_kueue_facts none = {0};
	struct spec_control_job about = {.kueue = &none};
	struct spec_control_asked asked = {.job = &about, .namespace = "ns", .kind = w.kind};
	struct spec_control_request rq;
	const char *text;

	job(&w, "", SPEC_OF(""), "'active':2");
	about.view = w.job;
	asked.action = SPEC_SUSPEND;
	test_kind("job")->control->request(&asked, &rq);
	assert_string_equal(rq.path, "/apis/batch/v1/namespaces/ns/jobs/j?fieldManager=kxfs");
	assert_string_equal(rq.body, "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\"},"
				     "\"spec\":{\"suspend\":true}}");
	spec_control_request_clear(&rq);
	asked.action = SPEC_TERMINATE;
	test_kind("job")->control->request(&asked, &rq);
	assert_string_equal(rq.body, "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\"},"
				     "\"spec\":{\"activeDeadlineSeconds\":0}}");
	spec_control_request_clear(&rq);
	job(&w, "", SPEC_OF(",'suspend':true"),
	    "'conditions':[" CONDITION("Suspended", "True", "JobSuspended") "]");
	about.view = w.job;
	assert_int_equal(test_kind("job")->control->check(&about, SPEC_TERMINATE, &text), -EINVAL);
	assert_non_null(strstr(text, "the job is suspended"));
	world_clear(&w);
}

/* Absurd numbers are limited. */
static void test_hostile(void **state)
{
	struct world w = {.kind = test_kind("job")};

	job(&w, "", "'completions':2147483647,'backoffLimit':2147483647",
	    "'failed':2147483647,'failedIndexes':[1]");
	assert_in_range(w.last->n_replicas, 1, 10000);
	world_clear(&w);
	job(&w, "", "'completions':-1,'parallelism':'x','template':[]", "'conditions':{}");
	assert_int_equal(w.last->n_replicas, 1);
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recordings),   cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_deadline),     cmocka_unit_test(test_resumed_unseen),
		cmocka_unit_test(test_restarts),     cmocka_unit_test(test_late_retries),
		cmocka_unit_test(test_reasons),	     cmocka_unit_test(test_unnumbered),
		cmocka_unit_test(test_work_queue),   cmocka_unit_test(test_owned),
		cmocka_unit_test(test_injected),     cmocka_unit_test(test_quota),
		cmocka_unit_test(test_quota_before), cmocka_unit_test(test_requests),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
