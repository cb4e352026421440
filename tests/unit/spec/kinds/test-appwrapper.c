/* SPDX-License-Identifier: MIT */
/*
 * AppWrappers v1beta2: what users see while a real controller runs them. Also objects that no
 * recording contains: queued in Kueue, with other objects inside, or in trouble.
 */
#include "tests/unit/spec/kinds/cluster-world.h"

#include "spec/job/status.h"

static const struct scenario {
	const char *name;
	const char *told;
	const char *reason, *message;
	unsigned retries, max_retries;
} scenarios[] = {
	{"appwrapper_success",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=RUNNING\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n",
	 "Completed", "", 0, 3},
	{"appwrapper_fail",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=FAILED/3/Error\n"
	 "RUNNING trainer-0=FAILED/3/Error trainer-1=FAILED/3/Error\n"
	 "FAILED trainer-0=FAILED/3/Error trainer-1=FAILED/3/Error\n",
	 "Error", "trainer-0: exit code 3", 0, 0},
	{"appwrapper_retry",
	 "SUBMITTED trainer-0=PENDING\n"
	 "PENDING trainer-0=PENDING\n"
	 "RUNNING trainer-0=RUNNING\n"
	 "RUNNING trainer-0=FAILED/3/Error\n"
	 "PENDING trainer-0=PENDING/3/Error\n"
	 "PENDING trainer-0=PENDING/attempt 1\n"
	 "RUNNING trainer-0=RUNNING/attempt 1\n"
	 "RUNNING trainer-0=FAILED/3/Error/attempt 1\n"
	 "PENDING trainer-0=PENDING/3/Error/attempt 1\n"
	 "PENDING trainer-0=PENDING/attempt 2\n"
	 "RUNNING trainer-0=RUNNING/attempt 2\n"
	 "RUNNING trainer-0=FAILED/3/Error/attempt 2\n"
	 "FAILED trainer-0=FAILED/3/Error/attempt 2\n",
	 "Error", "trainer-0: exit code 3", 2, 2},
	{"appwrapper_pending",
	 "SUBMITTED trainer-0=PENDING\n"
	 "PENDING trainer-0=PENDING\n"
	 "PENDING trainer-0=PENDING/Unschedulable\n"
	 "PENDING trainer-0=PENDING/Restarting\n"
	 "PENDING trainer-0=CANCELLED/Deleted\n"
	 "CANCELLED trainer-0=CANCELLED/Deleted\n",
	 "Deleted", "it was removed from the cluster", 0, 3},
	{"appwrapper_suspend_resume",
	 "SUBMITTED trainer-0=PENDING\n"
	 "PENDING trainer-0=PENDING\n"
	 "RUNNING trainer-0=RUNNING\n"
	 "RUNNING trainer-0=CANCELLED/0/Deleted\n"
	 "CANCELLED trainer-0=CANCELLED/0/Deleted\n"
	 "PENDING trainer-0=PENDING/0/Restarting\n"
	 "PENDING trainer-0=PENDING/attempt 1\n"
	 "RUNNING trainer-0=RUNNING/attempt 1\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed/attempt 1\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed/attempt 1\n",
	 "Completed", "", 0, 3},
	{"appwrapper_delete_running",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=PENDING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=CANCELLED/0/Deleted\n"
	 "RUNNING trainer-0=CANCELLED/0/Deleted trainer-1=CANCELLED/0/Deleted\n"
	 "CANCELLED trainer-0=CANCELLED/0/Deleted trainer-1=CANCELLED/0/Deleted\n",
	 "Deleted", "it was removed from the cluster", 0, 3},
};

static void test_recordings(void **state)
{
	for (size_t i = 0; i < array_size(scenarios); i++) {
		struct world w = {.kind = &spec_appwrapper};

		world_play(&w, scenarios[i].name);
		assert_string_equal(w.told, scenarios[i].told);
		assert_string_equal(w.last->reason, scenarios[i].reason);
		assert_string_equal(w.last->message, scenarios[i].message);
		assert_int_equal(w.last->retries, scenarios[i].retries);
		assert_int_equal(w.last->max_retries, scenarios[i].max_retries);
		world_clear(&w);
	}
}

/* --- objects that no recording contains --- */

#define POD(name, labels)                                                                          \
	"{'template':{'apiVersion':'v1','kind':'Pod','metadata':{'name':'" name                    \
	"','labels':{" labels "}}}}"
#define ROLE(role, id)                                                                             \
	"'torchx.pytorch.org/app-name':'App','torchx.pytorch.org/role-name':'" role                \
	"','torchx.pytorch.org/replica-id':'" id "'"
#define CONDITION(type, value, reason, message, second)                                            \
	"{'type':'" type "','status':'" value "','reason':'" reason "','message':'" message        \
	"','lastTransitionTime':'1970-01-01T00:00:" second "Z'}"

/* Copy TEXT to RET, with ' replaced by ". */
static void quote(const char *text, char ret[8192])
{
	snprintf(ret, 8192, "%s", text);
	for (char *p = ret; *p; p++)
		*p = *p == '\'' ? '"' : *p;
}

/* Send a job with these labels, spec and status, all without their braces. */
static void job(struct world *w, const char *labels, const char *spec, const char *status)
{
	char *text cleanup_free = NULL;
	char json[8192];

	assert_true(asprintf(&text,
			     "{'metadata':{'name':'j','uid':'u','generation':%lld,'labels':{%s}},"
			     "'spec':{%s},'status':{%s}}",
			     (long long)w->now + 1, labels, spec, status) > 0);
	quote(text, json);
	world_job(w, json, false);
}

static void pod(struct world *w, const char *name, const char *uid, unsigned created,
		const char *status)
{
	char *text cleanup_free = NULL;
	char json[8192];

	assert_true(asprintf(&text,
			     "{'metadata':{'name':'%s','uid':'%s','creationTimestamp':"
			     "'1970-01-01T00:00:%02uZ'},'spec':{'containers':[{'name':'c'}]},"
			     "'status':{'phase':'%s'}}",
			     name, uid, created, status) > 0);
	quote(text, json);
	world_pod(w, json, false);
}

static void assert_job(const struct world *w, enum spec_state state, bool suspended,
		       const char *reason, const char *message)
{
	assert_string_equal(spec_state_name(w->last->state), spec_state_name(state));
	assert_int_equal(w->last->suspended, suspended);
	assert_string_equal(w->last->reason, reason);
	assert_string_equal(w->last->message, message);
}

static void test_phases(void **state)
{
	static const struct {
		const char *phase, *suspend;
		enum spec_state state;
		bool suspended;
		const char *reason;
	} table[] = {
		{"", "false", SPEC_SUBMITTED, false, ""},
		{"Suspended", "false", SPEC_PENDING, false, ""},
		{"Suspended", "true", SPEC_CANCELLED, true, "Suspended"},
		{"Resuming", "false", SPEC_PENDING, false, ""},
		{"Running", "false", SPEC_PENDING, false, ""},
		{"Resetting", "false", SPEC_PENDING, false, ""},
		/* None of the job's pods ever ran. */
		{"Suspending", "false", SPEC_PENDING, false, ""},
		{"Suspending", "true", SPEC_PENDING, false, ""},
		{"Terminating", "false", SPEC_PENDING, false, ""},
		{"Succeeded", "false", SPEC_SUCCEEDED, false, "Completed"},
		{"Failed", "false", SPEC_FAILED, false, "Failed"},
		{"Failed", "true", SPEC_FAILED, false, "Failed"},
		{"Dreaming", "false", SPEC_UNKNOWN, false, "UnknownPhase"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {.kind = &spec_appwrapper};
		char spec[256], status[256];

		snprintf(spec, sizeof(spec), "'suspend':%s,'components':[%s]", table[i].suspend,
			 POD("j-0", ""));
		snprintf(status, sizeof(status), "'phase':'%s'", table[i].phase);
		job(&w, "", spec, status);
		assert_job(&w, table[i].state, table[i].suspended, table[i].reason,
			   table[i].state == SPEC_UNKNOWN
				   ? "this version of kxfs does not know the phase"
				   : "");
		assert_string_equal(w.last->phase, table[i].phase);
		world_clear(&w);
	}
}

/*
 * A suspended job in a Kueue queue is waiting. A suspended job without a queue was stopped by
 * somebody.
 */
static void test_kueue(void **state)
{
	struct world w = {.kind = &spec_appwrapper};
	const char *spec = "'suspend':true,'components':[" POD("j-0", "") "]";

	job(&w, "'kueue.x-k8s.io/queue-name':'research'", spec, "'phase':'Suspended'");
	assert_job(&w, SPEC_PENDING, false, "QueuedInKueue",
		   "The job waits for Kueue to admit it from queue research");
	assert_string_equal(w.last->queue, "research");
	job(&w, "'kueue.x-k8s.io/queue-name':'research'", "'components':[" POD("j-0", "") "]",
	    "'phase':'Running'");
	assert_job(&w, SPEC_PENDING, false, "", "");
	pod(&w, "j-0", "p", 10, "Running");
	assert_job(&w, SPEC_RUNNING, false, "", "");
	/* Kueue takes the quota back for another job. */
	job(&w, "'kueue.x-k8s.io/queue-name':'research'", spec, "'phase':'Suspending'");
	assert_job(&w, SPEC_RUNNING, false, "", "");
	world_clear(&w);
}

/*
 * All pods have succeeded, but the job has not: its controller may delete them and create them
 * again. Only the phase shows the job's success.
 */
static void test_succeeded_too_late(void **state)
{
	static const struct {
		const char *suspend, *status;
		enum spec_state state;
	} table[] = {
		/* The controller checks SUSPEND first, and a user can still set it. */
		{"false", "'phase':'Running'", SPEC_RUNNING},
		{"true", "'phase':'Running'", SPEC_RUNNING},
		{"true", "'phase':'Suspending'", SPEC_RUNNING},
		{"true", "'phase':'Suspended'", SPEC_PENDING},
		{"false",
		 "'phase':'Resuming','conditions':[" CONDITION("ResourcesDeployed", "True", "", "",
							       "30") "]",
		 SPEC_PENDING},
		{"false", "'phase':'Resetting','resettingCount':1", SPEC_PENDING},
		{"true", "'phase':'Succeeded'", SPEC_SUCCEEDED},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {.kind = &spec_appwrapper};
		char spec[256];

		snprintf(spec, sizeof(spec), "'suspend':%s,'components':[%s]", table[i].suspend,
			 POD("j-0", ""));
		job(&w, "'kueue.x-k8s.io/queue-name':'research'", spec, table[i].status);
		pod(&w, "j-0", "p", 10, "Succeeded");
		assert_string_equal(spec_state_name(w.last->state),
				    spec_state_name(table[i].state));
		world_clear(&w);
	}
}

/*
 * A user suspends a job whose pods have all succeeded, before the controller has reported that. The
 * job must not be shown as SUCCEEDED before.
 */
static void test_suspended_after_success(void **state)
{
	struct world w = {.kind = &spec_appwrapper};

	job(&w, "", "'components':[" POD("j-0", "") "]", "'phase':'Running'");
	pod(&w, "j-0", "p", 10, "Running");
	pod(&w, "j-0", "p", 10, "Succeeded");
	assert_job(&w, SPEC_RUNNING, false, "", "");
	job(&w, "", "'suspend':true,'components':[" POD("j-0", "") "]", "'phase':'Suspending'");
	assert_job(&w, SPEC_RUNNING, false, "", "");
	job(&w, "", "'suspend':true,'components':[" POD("j-0", "") "]", "'phase':'Suspended'");
	assert_job(&w, SPEC_CANCELLED, true, "Suspended", "");
	/* A removed job does not run again. */
	job(&w, "},'deletionTimestamp':'1970-01-01T00:00:30Z','annotations':{",
	    "'suspend':true,'components':[" POD("j-0", "") "]", "'phase':'Terminating'");
	assert_job(&w, SPEC_CANCELLED, false, "Deleted", "it was removed from the cluster");
	world_clear(&w);
}

/* The controller found a problem that the pods do not show. */
static void test_unhealthy(void **state)
{
	struct world w = {.kind = &spec_appwrapper};
	const char *spec = "'components':[" POD("j-0", "") "]";

	job(&w, "", spec,
	    "'phase':'Failed','conditions':[" CONDITION("Unhealthy", "True", "CreateFailed",
							"error creating components: no", "20") "]");
	assert_job(&w, SPEC_FAILED, false, "CreateFailed", "error creating components: no");
	assert_int_equal(w.last->finished, 20 * SECOND);
	world_clear(&w);
	/*
	 * The controller waits a minute after pods failed, so the condition is older than the end.
	 * No field has the end time.
	 */
	job(&w, "", spec,
	    "'phase':'Failed','conditions':[" CONDITION("Unhealthy", "True", "FoundFailedPods",
							"1 pods failed", "20") "]");
	assert_job(&w, SPEC_FAILED, false, "Failed", "");
	assert_int_equal(w.last->finished, w.now * SECOND);
	world_clear(&w);
	job(&w, "", spec,
	    "'phase':'Resetting','resettingCount':1,'conditions':[" CONDITION(
		    "Unhealthy", "True", "InsufficientPodsReady", "1 pods pending", "20") "]");
	assert_job(&w, SPEC_PENDING, false, "InsufficientPodsReady", "1 pods pending");
	assert_int_equal(w.last->retries, 1);
	/* In the next attempt, this condition is still that of the previous one. */
	job(&w, "", spec,
	    "'phase':'Resuming','resettingCount':1,'conditions':[" CONDITION(
		    "Unhealthy", "True", "InsufficientPodsReady", "1 pods pending", "20") "]");
	assert_job(&w, SPEC_PENDING, false, "", "");
	world_clear(&w);
}

/* The job's end is when its quota was released, not when the rest of it was deleted. */
static void test_end(void **state)
{
	struct world w = {.kind = &spec_appwrapper};

	job(&w, "", "'components':[" POD("j-0", "") "]",
	    "'phase':'Succeeded','conditions':[" CONDITION(
		    "QuotaReserved", "False", "Succeeded", "",
		    "20") "," CONDITION("ResourcesDeployed", "False", "Succeeded", "", "50") "]");
	assert_int_equal(w.last->finished, 20 * SECOND);
	world_clear(&w);
}

/* The rest of a finished job is deleted. That does not mean that the job is being ended. */
static void test_deleted_after_the_end(void **state)
{
	struct world w = {.kind = &spec_appwrapper};

	job(&w, "", "'components':[" POD("j-0", "") "]",
	    "'phase':'Terminating','conditions':[" CONDITION("QuotaReserved", "False", "Succeeded",
							     "", "20") "]");
	assert_job(&w, SPEC_SUCCEEDED, false, "Completed", "");
	assert_int_equal(w.last->finished, 20 * SECOND);
	world_clear(&w);
	job(&w, "", "'components':[" POD("j-0", "") "]",
	    "'phase':'Terminating','conditions':[" CONDITION("QuotaReserved", "True", "Resuming",
							     "", "20") "]");
	assert_job(&w, SPEC_PENDING, false, "", "");
	world_clear(&w);
}

/* The roles are TorchX's, whatever else the wrapper contains. */
static void test_roles(void **state)
{
	struct world w = {.kind = &spec_appwrapper};

	job(&w, "",
	    "'components':[{'template':{'apiVersion':'scheduling.sigs.k8s.io/v1alpha1','kind':"
	    "'PodGroup'}}," POD("j-0", ROLE("trainer", "0")) "," POD(
		    "j-1",
		    ROLE("trainer",
			 "1")) "," POD("j-1-0",
				       ROLE("reader",
					    "0")) ",{'podSets':[],'template':{'apiVersion':'v1',"
						  "'kind':'Service','metadata':{'name':'j'}}}]",
	    "'phase':'Running'");
	assert_string_equal(w.last->app, "App");
	assert_int_equal(w.last->n_roles, 2);
	assert_string_equal(w.told,
			    "PENDING trainer-0=PENDING trainer-1=PENDING reader-0=PENDING\n");
	pod(&w, "j-0", "p0", 10, "Succeeded");
	pod(&w, "j-1", "p1", 10, "Succeeded");
	assert_job(&w, SPEC_RUNNING, false, "", "");
	pod(&w, "j-1-0", "p2", 10, "Succeeded");
	assert_job(&w, SPEC_RUNNING, false, "", "");
	world_clear(&w);
}

/*
 * Pods of other controllers' objects inside the wrapper are not shown. So the pods that are shown
 * can't prove that the job has finished.
 */
static void test_hidden(void **state)
{
	struct world w = {.kind = &spec_appwrapper};
	const char *spec = "'components':[" POD("j-0", "") ",{'template':{'apiVersion':'batch/v1',"
							   "'kind':'Job'}}]";

	job(&w, "", spec, "'phase':'Running'");
	pod(&w, "j-0", "p", 10, "Succeeded");
	assert_job(&w, SPEC_RUNNING, false, "", "");
	job(&w, "", spec, "'phase':'Succeeded'");
	assert_job(&w, SPEC_SUCCEEDED, false, "Completed", "");
	world_clear(&w);
	/* If no pod is shown at all, nothing proves that the job has finished. */
	job(&w, "", "'components':[{'template':{'apiVersion':'batch/v1','kind':'Job'}}]",
	    "'phase':'Running'");
	assert_job(&w, SPEC_RUNNING, false, "", "");
	assert_int_equal(w.last->n_replicas, 0);
	world_clear(&w);
}

/* A mount that starts late also counts the attempts that it has not seen. */
static void test_tries(void **state)
{
	struct world w = {.kind = &spec_appwrapper};
	const char *spec = "'components':[" POD("j-0", "") "]";

	job(&w, "", spec,
	    "'phase':'Running','resettingCount':2,'conditions':[" CONDITION(
		    "ResourcesDeployed", "True", "Resuming", "Reset complete", "30") "]");
	pod(&w, "j-0", "p3", 30, "Running");
	assert_int_equal(w.last->replicas[0].attempt, 2);
	pod(&w, "j-0", "p3", 30, "Failed");
	assert_int_equal(w.last->replicas[0].state, SPEC_FAILED);
	job(&w, "", spec, "'phase':'Resetting','resettingCount':3");
	assert_int_equal(w.last->replicas[0].state, SPEC_PENDING);
	world_clear(&w);
}

/* The controller ends an attempt whose pods do not start, even if it is the last one. */
static void test_time_limit_of_starting(void **state)
{
	struct world w = {.kind = &spec_appwrapper};
	cleanup_free char *why = NULL;
	size_t len;

	job(&w, "", "'components':[" POD("j-0", "") "]", "'phase':'Running'");
	pod(&w, "j-0", "p", 10,
	    "Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"
	    "'Unschedulable','message':'persistentvolumeclaim \\\"c\\\" not found'}],'hostIP':'");
	spec_status_why(w.last, ~0u, &why, &len);
	assert_non_null(strstr(why,
			       "It starts automatically when the claim exists, if this happens "
			       "soon: the current attempt times out after some minutes.\n"));
	world_clear(&w);
}

/* Fields of a wrong type count as missing. */
static void test_nonsense(void **state)
{
	static const char *const specs[] = {
		"'components':{}",
		"'components':[1,null,[],{},{'template':1},{'template':{'kind':5}}]",
		"'components':[{'template':{'apiVersion':'v1','kind':'Pod','metadata':[]}}]",
	};

	for (size_t i = 0; i < array_size(specs); i++) {
		struct world w = {.kind = &spec_appwrapper};

		job(&w, "'kueue.x-k8s.io/queue-name':[]", specs[i],
		    "'phase':'Running','conditions':[1,{'type':[]}],'resettingCount':'x'");
		assert_int_equal(w.last->retries, 0);
		assert_string_equal(w.last->queue, "");
		world_clear(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recordings),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_kueue),
		cmocka_unit_test(test_unhealthy),
		cmocka_unit_test(test_succeeded_too_late),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_deleted_after_the_end),
		cmocka_unit_test(test_suspended_after_success),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_tries),
		cmocka_unit_test(test_time_limit_of_starting),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
