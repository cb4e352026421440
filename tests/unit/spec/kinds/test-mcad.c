/* SPDX-License-Identifier: MIT */
/*
 * MCAD's AppWrappers beyond the recordings: MCAD's messages while a job waits, requeued jobs, ends
 * that MCAD reports late or never, pods of several roles, and other wrapped objects.
 */
#include "tests/unit/spec/kinds/cluster-world.h"

#include "spec/job/status.h"

#define ITEM(role, name, id)                                                                       \
	"{'replicas':1,'generictemplate':{'apiVersion':'v1','kind':'Pod','metadata':{'name':'"     \
	"j-" id                                                                                    \
	"','labels':{'torchx.pytorch.org/app-name':'app','torchx.pytorch.org/role-index':'" role   \
	"','torchx.pytorch.org/role-name':'" name "','torchx.pytorch.org/replica-id':'" id "'}}}}"
#define SERVICE "{'generictemplate':{'apiVersion':'v1','kind':'Service','metadata':{'name':'j'}}}"
#define ONE	ITEM("0", "main", "0") "," SERVICE
#define TWO	ITEM("0", "main", "0") "," ITEM("0", "main", "1") "," SERVICE
#define REQUEUED(n, max)                                                                           \
	"'schedulingSpec':{'minAvailable':" #n ",'requeuing':{'maxNumRequeuings':" #max "}},"

static void job(struct world *w, const char *items, const char *more, const char *status)
{
	w->kind = &spec_mcad;
	world_job(w,
		  world_json("{'apiVersion':'workload.codeflare.dev/"
			     "v1beta1','kind':'AppWrapper','metadata':"
			     "{'name':'j','uid':'u-1','creationTimestamp':'1970-01-01T00:01:40Z'},"
			     "'spec':{%s'resources':{'GenericItems':[%s]}},'status':{%s}}",
			     more, items, status),
		  false);
}

/* Return replica ID of role ROLE as MCAD creates it. STATE is the state of its container. */
static const char *pod_json(const char *uid, const char *role, const char *id, const char *phase,
			    const char *state, const char *more)
{
	return world_json(
		"{'metadata':{'name':'j-%s','uid':'%s','creationTimestamp':'1970-01-01T00:00:%s"
		"Z',%s'labels':{'torchx.pytorch.org/role-index':'%s','torchx.pytorch.org/"
		"role-name':'x','torchx.pytorch.org/replica-id':'%s'}},'spec':{'containers':[{"
		"'name':'j-%s'}]},'status':{'phase':'%s','containerStatuses':[{'name':'j-%s',"
		"'restartCount':0,'state':%s}]}}",
		id, uid, uid + 1, more, role, id, id, phase, id, state);
}

#define RUNNING "{'running':{'startedAt':'1970-01-01T00:02:00Z'}}"
#define ENDED(code)                                                                                \
	"{'terminated':{'exitCode':" #code ",'reason':'Error','startedAt':'1970-01-01T00:02:00Z'," \
	"'finishedAt':'1970-01-01T00:03:00Z'}}"

/* Send a pod. UID is "p" and two digits, which are the second of the pod's creation. */
static void pod(struct world *w, const char *uid, const char *role, const char *id,
		const char *phase, const char *state)
{
	world_pod(w, pod_json(uid, role, id, phase, state, ""), false);
}

/* Report such a pod as deleted, after its deletion was requested. */
static void pod_gone(struct world *w, const char *uid, const char *id, const char *phase,
		     const char *state)
{
	world_pod(w,
		  pod_json(uid, "0", id, phase, state,
			   "'deletionTimestamp':'1970-01-01T00:10:00Z',"),
		  true);
}

#define CONDITION(type, reason, message)                                                           \
	"{'type':'" type "','status':'True','reason':'" reason "','message':'" message "'}"
/* A condition that last changed AT seconds after 1970. AT has two digits. */
#define CONDITION_AT(at, type, reason)                                                             \
	"{'type':'" type "','status':'True','reason':'" reason                                     \
	"','lastTransitionMicroTime':'1970-01-01T00:00:" at ".500000Z'}"
#define QUEUED CONDITION("Init", "", "") "," CONDITION("Queueing", "AwaitingHeadOfLine", "")

static void assert_job(const struct world *w, enum spec_state state, const char *reason,
		       const char *message)
{
	assert_string_equal(spec_state_name(w->last->state), spec_state_name(state));
	assert_string_equal(w->last->reason, reason);
	assert_string_equal(w->last->message, message);
}

static void assert_replica(const struct world *w, const char *name, enum spec_state state,
			   unsigned attempt)
{
	const struct spec_replica *r = spec_job_replica(w->last, name);

	assert_non_null(r);
	assert_string_equal(spec_state_name(r->state), spec_state_name(state));
	assert_int_equal(r->attempt, attempt);
}

static void assert_why(const struct world *w, const char *want)
{
	char *text cleanup_free = NULL;
	size_t len;

	spec_status_why(w->last, ~0u, &text, &len);
	assert_string_equal(text, want);
}

/* --- waiting jobs --- */

static void test_waiting(void **state)
{
	struct world w = {0};

	job(&w, ONE, "", "");
	assert_job(&w, SPEC_SUBMITTED, "", "");
	job(&w, ONE, "", "'state':'Pending','conditions':[" QUEUED "]");
	assert_job(&w, SPEC_PENDING, "AwaitingHeadOfLine",
		   "The job waits in MCAD's queue until the jobs ahead of it have been dispatched");
	assert_why(&w, "The job waits in MCAD's queue until the jobs ahead of it have "
		       "been dispatched.\n");
	job(&w, ONE, "",
	    "'state':'Pending','conditions':[" QUEUED
	    "," CONDITION("HeadOfLine", "FrontOfQueue.", "") "]");
	assert_job(&w, SPEC_PENDING, "FrontOfQueue", "The job is at the head of MCAD's queue");
	job(&w, ONE, "",
	    "'state':'Pending','conditions':[" QUEUED
	    "," CONDITION("Backoff", "AppWrapperNotRunnable.",
			  "Insufficient quota and/or resources to dispatch AppWrapper.") "]");
	assert_why(&w, "MCAD can't dispatch the job yet, and retries automatically: "
		       "Insufficient quota and/or resources to dispatch AppWrapper.\n");
	assert_string_equal(w.last->reason, "AppWrapperNotRunnable");
	/* An old condition does not apply to a job that was dispatched. */
	job(&w, ONE, "",
	    "'state':'Running','conditions':[" QUEUED
	    "," CONDITION("Backoff", "AppWrapperNotRunnable.", "Insufficient ...") "]");
	assert_job(&w, SPEC_PENDING, "", "");
	world_clear(&w);
}

/* --- ends --- */

static void test_phases(void **state)
{
	static const struct {
		const char *phase;
		enum spec_state state;
	} phases[] = {
		{"Pending", SPEC_PENDING},
		/* The job was dispatched, and no pod is running yet. */
		{"Running", SPEC_PENDING},
		{"RunningHoldCompletion", SPEC_PENDING},
		{"Completed", SPEC_SUCCEEDED},
		{"Failed", SPEC_FAILED},
		{"Deleted", SPEC_CANCELLED},
		{"Meditating", SPEC_UNKNOWN},
	};

	for (size_t i = 0; i < array_size(phases); i++) {
		struct world w = {0};

		job(&w, ONE, "", world_json("'state':'%s'", phases[i].phase));
		assert_string_equal(spec_state_name(w.last->state),
				    spec_state_name(phases[i].state));
		assert_string_equal(w.last->phase, phases[i].phase);
		assert_int_equal(w.last->finished != 0, spec_state_is_final(phases[i].state));
		world_clear(&w);
	}
}

/* MCAD reports Running for minutes, or forever, after everything of the job has ended. */
static void test_pods_decide(void **state)
{
	struct world w = {0};

	job(&w, TWO, "", "'state':'Running'");
	pod(&w, "p10", "0", "0", "Failed", ENDED(3));
	assert_job(&w, SPEC_RUNNING, "Error", "main-0: exit code 3");
	pod(&w, "p11", "0", "1", "Running", RUNNING);
	assert_job(&w, SPEC_RUNNING, "Error", "main-0: exit code 3");
	pod(&w, "p11", "0", "1", "Succeeded", ENDED(0));
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 3");
	assert_int_equal(w.last->finished, 180 * SECOND);
	/* The job has failed, even if somebody deletes the pods and later the job. */
	pod_gone(&w, "p10", "0", "Failed", ENDED(3));
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 3");
	w.left = true;
	world_look(&w);
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 3");
	world_clear(&w);
	/* A pod that was stopped has not ended by itself. MCAD dispatches the job again. */
	job(&w, ONE, "", "'state':'Running'");
	pod_gone(&w, "p10", "0", "Running", RUNNING);
	assert_job(&w, SPEC_PENDING, "", "");
	assert_replica(&w, "main-0", SPEC_PENDING, 0);
	world_clear(&w);
}

static void test_hold(void **state)
{
	struct world w = {0};

	job(&w, TWO, "", "'state':'RunningHoldCompletion'");
	pod(&w, "p10", "0", "0", "Succeeded", ENDED(0));
	pod(&w, "p11", "0", "1", "Running", RUNNING);
	assert_job(&w, SPEC_RUNNING, "", "");
	pod(&w, "p11", "0", "1", "Succeeded", ENDED(0));
	assert_job(&w, SPEC_SUCCEEDED, "Completed", "");
	world_clear(&w);
}

static void test_failed_by_mcad(void **state)
{
	struct world w = {0};

	job(&w, ONE, "",
	    "'state':'Failed','conditions':[" CONDITION("Failed", "ItemCreationFailure.",
							"ns/j creation failure: no") "]");
	/* MCAD retries again and again, and alternates between Pending and Failed. */
	assert_job(&w, SPEC_PENDING, "ItemCreationFailure",
		   "MCAD could not create the job's objects: ns/j creation failure: no");
	assert_why(&w, "The job waits: its pods can't be created: no.\n");
	job(&w, ONE, "",
	    "'state':'Pending','conditions':[" CONDITION(
		    "Failed", "ItemCreationFailure.",
		    "ns/j creation failure: pods \\\"j-0\\\" is forbidden: error looking up "
		    "service account ns/sa: serviceaccount \\\"sa\\\" not found") "," QUEUED "]");
	assert_why(
		&w,
		"The job waits: its pods can't be created: there is no service account sa in "
		"namespace ns. Create this service account, or submit the job with another service_account.\n");
	job(&w, ONE, "",
	    "'state':'Running','conditions':[" CONDITION("Failed", "ItemCreationFailure.",
							 "no") "]");
	assert_why(&w, "");
	job(&w, ONE, "",
	    "'state':'Failed','conditions':[" CONDITION(
		    "PreemptCandidate", "DispatchDeadlineExceeded",
		    "Dispatch deadline exceeded. allowed to run for 9 seconds") "]");
	assert_job(&w, SPEC_FAILED, "DispatchDeadlineExceeded",
		   "MCAD has ended the job: Dispatch deadline exceeded. allowed to run for 9 "
		   "seconds");
	world_clear(&w);
}

/* --- requeued jobs --- */

static void test_requeued(void **state)
{
	struct world w = {0};

	job(&w, ONE, REQUEUED(1, 1), "'state':'Running'");
	assert_int_equal(w.last->max_retries, 1);
	pod(&w, "p10", "0", "0", "Failed", ENDED(3));
	/* MCAD will requeue the job some minutes from now. */
	assert_job(&w, SPEC_RUNNING, "Error", "main-0: exit code 3");
	assert_replica(&w, "main-0", SPEC_FAILED, 0);
	assert_why(&w, "main-0 ended with exit code 3. Retries used: 0; max_retries is 1. MCAD "
		       "restarts the whole job automatically after some minutes.\n");
	job(&w, ONE, REQUEUED(1, 1),
	    "'state':'Pending','numberOfRequeueings':1,'conditions':[" QUEUED
	    "," CONDITION("Backoff", "PreemptionTriggered", "Insufficient number of pods.") "]");
	assert_why(&w, "main-0 ended with exit code 3. Retries used: 1; max_retries is 1.\n");
	pod_gone(&w, "p10", "0", "Failed", ENDED(3));
	assert_replica(&w, "main-0", SPEC_PENDING, 0);
	assert_job(&w, SPEC_PENDING, "PreemptionTriggered",
		   "MCAD can't dispatch the job yet, and retries automatically "
		   "(requeued 1 time): Insufficient number of pods.");
	/*
	 * The job is dispatched, but the new pod does not exist yet. The old pod's end is not that
	 * of the job.
	 */
	job(&w, ONE, REQUEUED(1, 1), "'state':'Running','numberOfRequeueings':1");
	assert_job(&w, SPEC_PENDING, "Error", "main-0: exit code 3");
	pod(&w, "p20", "0", "0", "Running", RUNNING);
	assert_replica(&w, "main-0", SPEC_RUNNING, 1);
	pod(&w, "p20", "0", "0", "Failed", ENDED(4));
	/* No retries are left. */
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 4");
	assert_replica(&w, "main-0", SPEC_FAILED, 1);
	assert_int_equal(w.last->retries, 1);
	world_clear(&w);
}

#define PUT_BACK(at) CONDITION_AT(at, "PreemptCandidate", "MinPodsNotRunning")

/*
 * MCAD reports that it has requeued a job, how often and when. But its state is still Running, and
 * the failed pod still exists.
 */
static void test_put_back_soon(void **state)
{
	struct world w = {0};

	job(&w, ONE, REQUEUED(1, 1), "'state':'Running'");
	pod(&w, "p10", "0", "0", "Failed", ENDED(3));
	assert_job(&w, SPEC_RUNNING, "Error", "main-0: exit code 3");
	job(&w, ONE, REQUEUED(1, 1),
	    "'state':'Running','numberOfRequeueings':1,'conditions':[" PUT_BACK("15") "]");
	assert_job(&w, SPEC_PENDING, "Error", "main-0: exit code 3");
	assert_replica(&w, "main-0", SPEC_PENDING, 0);
	pod_gone(&w, "p10", "0", "Failed", ENDED(3));
	assert_job(&w, SPEC_PENDING, "Error", "main-0: exit code 3");
	/* The next pod may be created in the same second. */
	pod(&w, "p15", "0", "0", "Failed", ENDED(4));
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 4");
	assert_replica(&w, "main-0", SPEC_FAILED, 1);
	world_clear(&w);
}

/* Deleting a failed job also deletes its pods, and the pods may disappear first. */
static void test_failed_and_removed(void **state)
{
	struct world w = {0};

	job(&w, ONE, REQUEUED(1, 1),
	    "'state':'Running','numberOfRequeueings':1,'conditions':[" PUT_BACK("15") "]");
	pod(&w, "p20", "0", "0", "Failed", ENDED(4));
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 4");
	pod_gone(&w, "p20", "0", "Failed", ENDED(4));
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 4");
	w.left = true;
	world_look(&w);
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 4");
	world_clear(&w);
}

/*
 * The job's pods could not be created in the first attempt, but were created later. Now the job
 * waits for another attempt.
 */
static void test_made_since(void **state)
{
	struct world w = {0};

	job(&w, ONE, REQUEUED(1, 2),
	    "'state':'Pending','numberOfRequeueings':2,'conditions':[" CONDITION_AT(
		    "10", "Dispatched",
		    "AppWrapperRunnable") "," PUT_BACK("40") "," CONDITION_AT("20", "Failed",
									      "ItemCreationFailure.") "]");
	assert_string_equal(w.last->reason, "ItemCreationFailure");
	job(&w, ONE, REQUEUED(1, 2),
	    "'state':'Pending','numberOfRequeueings':2,'conditions':[" CONDITION_AT(
		    "30", "Dispatched",
		    "AppWrapperRunnable") "," PUT_BACK("40") "," CONDITION_AT("20", "Failed",
									      "ItemCreationFailure.") "]");
	assert_job(&w, SPEC_PENDING, "MinPodsNotRunning",
		   "MCAD has requeued the job (requeued 2 times)");
	/*
	 * The pods can't be created in this attempt either, and the old condition is still there.
	 */
	job(&w, ONE, REQUEUED(1, 2),
	    "'state':'Failed','numberOfRequeueings':2,'conditions':[" CONDITION_AT(
		    "30", "Dispatched",
		    "AppWrapperRunnable") "," PUT_BACK("40") "," CONDITION_AT("20", "Failed",
									      "ItemCreationFailure.") "]");
	assert_job(&w, SPEC_PENDING, "MinPodsNotRunning",
		   "MCAD has requeued the job (requeued 2 times)");
	world_clear(&w);
}

/*
 * While the job is not confirmed, a failed pod may belong to an earlier attempt than kxfs knows,
 * because etcd was restored from a backup.
 */
static void test_unconfirmed(void **state)
{
	struct world w = {.stale_since = SECOND};

	job(&w, ONE, REQUEUED(1, 1),
	    "'state':'Running','numberOfRequeueings':1,'conditions':[" PUT_BACK("15") "]");
	pod(&w, "p20", "0", "0", "Failed", ENDED(4));
	assert_job(&w, SPEC_RUNNING, "Error", "main-0: exit code 4");
	w.stale_since = 0;
	world_look(&w);
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 4");
	/* A job that has ended remains so when it is not confirmed any more. */
	w.stale_since = 2 * SECOND;
	world_look(&w);
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 4");
	world_clear(&w);
}

/* If the user sets no limit, MCAD requeues the job as often as needed. */
static void test_requeued_without_end(void **state)
{
	struct world w = {0};

	job(&w, ONE, REQUEUED(1, 0), "'state':'Running','numberOfRequeueings':7");
	pod(&w, "p10", "0", "0", "Failed", ENDED(3));
	assert_job(&w, SPEC_RUNNING, "Error", "main-0: exit code 3");
	assert_replica(&w, "main-0", SPEC_FAILED, 0);
	world_clear(&w);
}

/*
 * If MCAD is not configured to requeue the job, it never starts it again. A failed pod makes the
 * job fail, even if the pod is gone.
 */
static void test_not_requeued(void **state)
{
	struct world w = {0};

	job(&w, TWO, "", "'state':'Running'");
	pod(&w, "p11", "0", "1", "Running", RUNNING);
	pod(&w, "p10", "0", "0", "Failed", ENDED(3));
	assert_replica(&w, "main-0", SPEC_FAILED, 0);
	assert_true(spec_job_replica(w.last, "main-0")->finished > 0);
	pod_gone(&w, "p10", "0", "Failed", ENDED(3));
	assert_replica(&w, "main-0", SPEC_FAILED, 0);
	assert_true(spec_job_replica(w.last, "main-0")->finished > 0);
	world_clear(&w);
}

/* Enough pods have succeeded, so MCAD does not start the failed one again. */
static void test_enough(void **state)
{
	struct world w = {0};

	job(&w, TWO, REQUEUED(1, 5), "'state':'Running'");
	pod(&w, "p10", "0", "0", "Failed", ENDED(3));
	pod(&w, "p11", "0", "1", "Succeeded", ENDED(0));
	assert_job(&w, SPEC_FAILED, "Error", "main-0: exit code 3");
	world_clear(&w);
}

/* --- wrapped objects --- */

/* TorchX gives the pods of two roles the same names. Labels show the role of each. */
static void test_roles(void **state)
{
	struct world w = {0};

	job(&w, ITEM("0", "a", "0") "," ITEM("1", "b", "0"), "", "'state':'Running'");
	assert_int_equal(w.last->n_roles, 2);
	assert_string_equal(w.last->app, "app");
	pod(&w, "p10", "1", "0", "Failed", ENDED(3));
	assert_replica(&w, "a-0", SPEC_PENDING, 0);
	assert_replica(&w, "b-0", SPEC_FAILED, 0);
	assert_string_equal(spec_job_replica(w.last, "b-0")->pod, "j-0");
	assert_string_equal(spec_job_replica(w.last, "b-0")->logs[0].container, "");
	world_clear(&w);
}

static void test_of_others(void **state)
{
	struct world w = {0};

	job(&w,
	    "{'generictemplate':{'apiVersion':'v1','kind':'Pod','metadata':{'name':'j-0'}}},"
	    "{'generictemplate':{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'x'}}},"
	    "{'generictemplate':7},{},3",
	    "", "'state':'Running'");
	assert_int_equal(w.last->n_replicas, 1);
	assert_string_equal(w.last->app, "j");
	world_pod(
		&w,
		world_json(
			"{'metadata':{'name':'j-0','uid':'p'},'spec':{'containers':[{'name':'c'}]},"
			"'status':{'phase':'Succeeded'}}"),
		false);
	/*
	 * The pods of the batch Job are not shown. So the other pods can't prove that everything
	 * has finished.
	 */
	assert_replica(&w, "j-0-0", SPEC_SUCCEEDED, 0);
	assert_job(&w, SPEC_RUNNING, "", "");
	world_clear(&w);
	job(&w, "{'generictemplate':{'apiVersion':'batch/v1','kind':'Job'}}", "",
	    "'state':'Running'");
	assert_job(&w, SPEC_RUNNING, "", "");
	assert_int_equal(w.last->n_replicas, 0);
	job(&w, "{'generictemplate':{'apiVersion':'batch/v1','kind':'Job'}}", "",
	    "'state':'Completed'");
	assert_job(&w, SPEC_SUCCEEDED, "Completed", "");
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waiting),	       cmocka_unit_test(test_phases),
		cmocka_unit_test(test_pods_decide),    cmocka_unit_test(test_hold),
		cmocka_unit_test(test_failed_by_mcad), cmocka_unit_test(test_requeued),
		cmocka_unit_test(test_put_back_soon),  cmocka_unit_test(test_failed_and_removed),
		cmocka_unit_test(test_made_since),     cmocka_unit_test(test_requeued_without_end),
		cmocka_unit_test(test_not_requeued),   cmocka_unit_test(test_enough),
		cmocka_unit_test(test_roles),	       cmocka_unit_test(test_of_others),
		cmocka_unit_test(test_unconfirmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
