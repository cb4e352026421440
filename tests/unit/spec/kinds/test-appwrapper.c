/* SPDX-License-Identifier: MIT */
/*
 * AppWrappers v1beta2 that no recording contains: queued in Kueue, with other objects inside, or in
 * trouble. test-stories.c tests what users see of the recorded ones.
 */
#include "tests/unit/spec/kinds/cluster-world.h"

#define POD(name, labels)                                                                          \
	"{'template':{'apiVersion':'v1','kind':'Pod','metadata':{'name':'" name                    \
	"','labels':{" labels "}}}}"
#define ROLE(role, id)                                                                             \
	"'torchx.pytorch.org/app-name':'App','torchx.pytorch.org/role-name':'" role                \
	"','torchx.pytorch.org/replica-id':'" id "'"
#define CONDITION(type, value, reason, message, second)                                            \
	"{'type':'" type "','status':'" value "','reason':'" reason "','message':'" message        \
	"','lastTransitionTime':'1970-01-01T00:00:" second "Z'}"

#define QUEUED		 "'kueue.x-k8s.io/queue-name':'research'"
#define COMPONENTS(list) "'components':[" list "]"
#define ONE		 COMPONENTS(POD("j-0", ""))
/* A component that is not a pod. */
#define OTHER(api, kind)                                                                           \
	"{'podSets':[],'template':{'apiVersion':'" api "','kind':'" kind                           \
	"','metadata':{'name':'j'}}}"

/* Send a job with these labels, spec and status, all without their braces. */
static void job(struct world *w, const char *labels, const char *spec, const char *status)
{
	w->kind = &spec_appwrapper;
	world_job(w,
		  world_json("{'metadata':{'name':'j','uid':'u','generation':%lld,'labels':{%s}},"
			     "'spec':{%s},'status':{%s}}",
			     (long long)w->now + 1, labels, spec, status),
		  false);
}

static void pod(struct world *w, const char *name, const char *uid, unsigned created,
		const char *status)
{
	world_pod(w,
		  world_json("{'metadata':{'name':'%s','uid':'%s','creationTimestamp':"
			     "'1970-01-01T00:00:%02uZ'},'spec':{'containers':[{'name':'c'}]},"
			     "'status':{'phase':'%s'}}",
			     name, uid, created, status),
		  false);
}

/* What the controller's phases and conditions mean, before and after the pod has succeeded. */
static void test_status(void **state)
{
#define UNHEALTHY(reason, message)                                                                 \
	"," CONDITIONS(CONDITION("Unhealthy", "True", reason, message, "20"))
#define QUOTA(value, reason)                                                                       \
	"," CONDITIONS(LIST2(CONDITION("QuotaReserved", value, reason, "", "20"),                  \
			     CONDITION("ResourcesDeployed", "False", reason, "", "50")))
	static const struct {
		const char *labels;
		bool suspend;
		const char *status;
		const char *before; /* the job while no pod exists */
		const char *after;  /* the job after its pod has succeeded; NULL: the same */
	} table[] = {
		{"", false, "'phase':''", "SUBMITTED", "RUNNING"},
		{"", false, "'phase':'Suspended'", "PENDING", NULL},
		{"", true, "'phase':'Suspended'", "CANCELLED/suspended Suspended", NULL},
		/*
		 * The pod's success is not that of the job: the controller checks SUSPEND first,
		 * and may delete all pods and create them again. Only the phase shows the success.
		 */
		{"", false, "'phase':'Running'", "PENDING", "RUNNING"},
		{QUEUED, true, "'phase':'Running'", "PENDING", "RUNNING"},
		{"", false, "'phase':'Suspending'", "PENDING", "RUNNING"},
		{"", true, "'phase':'Suspending'", "PENDING", "RUNNING"},
		{"", false, "'phase':'Terminating'", "PENDING", "RUNNING"},
		{"", false, "'phase':'Resetting','resettingCount':1", "PENDING", NULL},
		{"", false,
		 "'phase':'Resuming'," CONDITIONS(
			 CONDITION("ResourcesDeployed", "True", "", "", "30")),
		 "PENDING", NULL},
		{"", true, "'phase':'Succeeded'", "SUCCEEDED Completed", NULL},
		{"", true, "'phase':'Failed'", "FAILED Failed", NULL},
		{"", false, "'phase':'Dreaming'",
		 "UNKNOWN UnknownPhase: this version of kxfs does not know the phase", NULL},
		/* Kueue suspends jobs in a queue. */
		{QUEUED, true, "'phase':'Suspended'",
		 "PENDING QueuedInKueue: The job waits for Kueue to admit it from queue research",
		 NULL},
		/* The rest of a finished job is deleted. It is not being ended. */
		{"", false, "'phase':'Terminating'" QUOTA("False", "Succeeded"),
		 "SUCCEEDED Completed", NULL},
		{"", false, "'phase':'Terminating'" QUOTA("True", "Resuming"), "PENDING",
		 "RUNNING"},
		/* The controller found a problem that the pods do not show. */
		{"", false,
		 "'phase':'Failed'" UNHEALTHY("CreateFailed", "error creating components: no"),
		 "FAILED CreateFailed: error creating components: no", NULL},
		{"", false, "'phase':'Failed'" UNHEALTHY("FoundFailedPods", "1 pods failed"),
		 "FAILED Failed", NULL},
		{"", false,
		 "'phase':'Resetting','resettingCount':1" UNHEALTHY("InsufficientPodsReady",
								    "1 pods pending"),
		 "PENDING InsufficientPodsReady: 1 pods pending", NULL},
		/* In the next attempt, this condition is still that of the previous one. */
		{"", false,
		 "'phase':'Resuming','resettingCount':1" UNHEALTHY("InsufficientPodsReady",
								   "1 pods pending"),
		 "PENDING", NULL},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};

		job(&w, table[i].labels,
		    world_json("'suspend':%s," ONE, table[i].suspend ? "true" : "false"),
		    table[i].status);
		assert_job(&w, table[i].before);
		assert_string_equal(w.last->queue, *table[i].labels ? "research" : "");
		assert_int_equal(w.last->retries,
				 strstr(table[i].status, "resettingCount") != NULL);
		pod(&w, "j-0", "p", 10, "Succeeded");
		assert_job(&w, table[i].after ? table[i].after : table[i].before);
		world_clear(&w);
	}
}

/* When a job ended. */
static void test_end(void **state)
{
	static const struct {
		const char *status;
		int64_t finished; /* 0: now */
	} table[] = {
		/* when its quota was released, not when the rest of it was deleted */
		{"'phase':'Succeeded'" QUOTA("False", "Succeeded"), 20},
		{"'phase':'Terminating'" QUOTA("False", "Succeeded"), 20},
		{"'phase':'Failed'" UNHEALTHY("CreateFailed", "no"), 20},
		/*
		 * The controller waits a minute after pods failed, so the condition is older than
		 * the end. No field has the end time.
		 */
		{"'phase':'Failed'" UNHEALTHY("FoundFailedPods", "1 pods failed"), 0},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {.now = 100};

		job(&w, "", ONE, table[i].status);
		assert_int_equal(w.last->finished,
				 (table[i].finished ? table[i].finished : w.now) * SECOND);
		world_clear(&w);
	}
}

/*
 * A user suspends a job whose pods have all succeeded, before the controller has reported that. The
 * job must not be shown as SUCCEEDED before.
 */
static void test_suspended_after_success(void **state)
{
	struct world w = {0};

	job(&w, "", ONE, "'phase':'Running'");
	pod(&w, "j-0", "p", 10, "Running");
	pod(&w, "j-0", "p", 10, "Succeeded");
	assert_job(&w, "RUNNING");
	job(&w, "", "'suspend':true," ONE, "'phase':'Suspending'");
	assert_job(&w, "RUNNING");
	job(&w, "", "'suspend':true," ONE, "'phase':'Suspended'");
	assert_job(&w, "CANCELLED/suspended Suspended");
	assert_string_equal(w.last->phase, "Suspended");
	/* A removed job does not run again. */
	job(&w, "},'deletionTimestamp':'1970-01-01T00:00:30Z','annotations':{",
	    "'suspend':true," ONE, "'phase':'Terminating'");
	assert_job(&w, "CANCELLED Deleted: it was removed from the cluster");
	world_clear(&w);
}

/* The roles are TorchX's, whatever else the wrapper contains. */
static void test_roles(void **state)
{
	struct world w = {0};

	job(&w, "",
	    COMPONENTS(
		    LIST2(OTHER("scheduling.sigs.k8s.io/v1alpha1", "PodGroup"),
			  LIST4(POD("j-0", ROLE("trainer", "0")), POD("j-1", ROLE("trainer", "1")),
				POD("j-1-0", ROLE("reader", "0")), OTHER("v1", "Service")))),
	    "'phase':'Running'");
	assert_string_equal(w.last->app, "App");
	assert_int_equal(w.last->n_roles, 2);
	assert_shows(&w, "PENDING trainer-0=PENDING trainer-1=PENDING reader-0=PENDING");
	pod(&w, "j-0", "p0", 10, "Succeeded");
	pod(&w, "j-1", "p1", 10, "Succeeded");
	assert_job(&w, "RUNNING");
	pod(&w, "j-1-0", "p2", 10, "Succeeded");
	assert_job(&w, "RUNNING");
	world_clear(&w);
}

/*
 * Pods of other controllers' objects inside the wrapper are not shown. So the pods that are shown
 * can't prove that the job has finished.
 */
static void test_hidden(void **state)
{
	struct world w = {0};
	const char *spec = COMPONENTS(LIST2(POD("j-0", ""), OTHER("batch/v1", "Job")));

	job(&w, "", spec, "'phase':'Running'");
	pod(&w, "j-0", "p", 10, "Succeeded");
	assert_job(&w, "RUNNING");
	job(&w, "", spec, "'phase':'Succeeded'");
	assert_job(&w, "SUCCEEDED Completed");
	world_clear(&w);
	/* If no pod is shown at all, nothing proves that the job has finished. */
	job(&w, "", COMPONENTS(OTHER("batch/v1", "Job")), "'phase':'Running'");
	assert_shows(&w, "RUNNING");
	world_clear(&w);
}

/* A mount that starts late also counts the attempts that it has not seen. */
static void test_tries(void **state)
{
	struct world w = {0};

	job(&w, "", ONE,
	    "'phase':'Running','resettingCount':2," CONDITIONS(
		    CONDITION("ResourcesDeployed", "True", "Resuming", "Reset complete", "30")));
	pod(&w, "j-0", "p3", 30, "Running");
	assert_shows(&w, "RUNNING j-0-0=RUNNING/attempt 2");
	pod(&w, "j-0", "p3", 30, "Failed");
	assert_shows(&w, "RUNNING j-0-0=FAILED/attempt 2");
	job(&w, "", ONE, "'phase':'Resetting','resettingCount':3");
	assert_int_equal(w.last->replicas[0].state, SPEC_PENDING);
	world_clear(&w);
}

/* The controller ends an attempt whose pods do not start, even if it is the last one. */
static void test_time_limit_of_starting(void **state)
{
	struct world w = {0};

	job(&w, "", ONE, "'phase':'Running'");
	pod(&w, "j-0", "p", 10,
	    "Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"
	    "'Unschedulable','message':'persistentvolumeclaim \\\"c\\\" not found'}],'hostIP':'");
	assert_non_null(strstr(world_why(&w),
			       "It starts automatically when the claim exists, if this happens "
			       "soon: the current attempt times out after some minutes."));
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
		struct world w = {0};

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
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_suspended_after_success),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_tries),
		cmocka_unit_test(test_time_limit_of_starting),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
