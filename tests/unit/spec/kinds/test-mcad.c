/* SPDX-License-Identifier: MIT */
/*
 * MCAD's AppWrappers beyond the recordings: MCAD's messages while a job waits, requeued jobs, ends
 * that MCAD reports late or never, pods of several roles, and other wrapped objects.
 */
#include "tests/unit/spec/kinds/cluster-world.h"

#define ITEM(role, name, id)                                                                        \
	"{'replicas':1,'generictemplate':{'apiVersion':'v1','kind':'Pod','metadata':{'name':'j-" id \
	"','labels':{'torchx.pytorch.org/app-name':'app','torchx.pytorch.org/role-index':'" role    \
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
		  world_json("{'apiVersion':'workload.codeflare.dev/v1beta1','kind':'AppWrapper',"
			     "'metadata':{'name':'j','uid':'u-1','creationTimestamp':"
			     "'1970-01-01T00:01:40Z'},'spec':{%s'resources':{'GenericItems':[%s]}},"
			     "'status':{%s}}",
			     more, items, status),
		  false);
}

#define RUNNING "{'running':{'startedAt':'1970-01-01T00:02:00Z'}}"
#define ENDED(code)                                                                                \
	"{'terminated':{'exitCode':" #code ",'reason':'Error','startedAt':'1970-01-01T00:02:00Z'," \
	"'finishedAt':'1970-01-01T00:03:00Z'}}"

/*
 * Send replica ID of role ROLE as MCAD creates it. UID is "p" and two digits, which are the second
 * of the pod's creation. STATE is the state of its container.
 */
static void pod(struct world *w, const char *uid, const char *role, const char *id,
		const char *phase, const char *state)
{
	world_pod(w,
		  world_json("{'metadata':{'name':'j-%s','uid':'%s','creationTimestamp':"
			     "'1970-01-01T00:00:%sZ','labels':{'torchx.pytorch.org/role-index':"
			     "'%s','torchx.pytorch.org/role-name':'x',"
			     "'torchx.pytorch.org/replica-id':'%s'}},'spec':{'containers':[{"
			     "'name':'j-%s'}]},'status':{'phase':'%s','containerStatuses':[{"
			     "'name':'j-%s','restartCount':0,'state':%s}]}}",
			     id, uid, uid + 1, role, id, id, phase, id, state),
		  false);
}

#define CONDITION(type, reason, message)                                                           \
	"{'type':'" type "','status':'True','reason':'" reason "','message':'" message "'}"
/* A condition that last changed AT seconds after 1970. AT has two digits. */
#define CONDITION_AT(at, type, reason)                                                             \
	"{'type':'" type "','status':'True','reason':'" reason                                     \
	"','lastTransitionMicroTime':'1970-01-01T00:00:" at ".500000Z'}"
#define DISPATCHED(at) CONDITION_AT(at, "Dispatched", "AppWrapperRunnable")
#define PUT_BACK(at)   CONDITION_AT(at, "PreemptCandidate", "MinPodsNotRunning")
#define QUEUED	       LIST2(CONDITION("Init", "", ""), CONDITION("Queueing", "AwaitingHeadOfLine", ""))

/* What MCAD's states and conditions mean. `why` shows the message. */
static void test_status(void **state)
{
#define UNMADE(message) CONDITION("Failed", "ItemCreationFailure.", message)
#define BACKOFF                                                                                    \
	CONDITION("Backoff", "AppWrapperNotRunnable.",                                             \
		  "Insufficient quota and/or resources to dispatch AppWrapper.")
#define AGAIN(state, dispatched)                                                                   \
	"'state':'" state "','numberOfRequeueings':2," CONDITIONS(                                 \
		LIST3(DISPATCHED(dispatched), PUT_BACK("40"),                                      \
		      CONDITION_AT("20", "Failed", "ItemCreationFailure.")))
	static const struct {
		const char *status, *job;
		const char *why; /* NULL: the message */
	} table[] = {
		{"", "SUBMITTED", NULL},
		{"'state':'Pending'", "PENDING", NULL},
		/* The job was dispatched, and no pod is running yet. */
		{"'state':'Running'", "PENDING", NULL},
		{"'state':'RunningHoldCompletion'", "PENDING", NULL},
		{"'state':'Completed'", "SUCCEEDED Completed", NULL},
		{"'state':'Failed'", "FAILED: MCAD has ended the job",
		 "The job failed: MCAD has ended the job."},
		{"'state':'Deleted'", "CANCELLED: MCAD has ended the job",
		 "The job was cancelled: MCAD has ended the job."},
		{"'state':'Meditating'",
		 "UNKNOWN UnknownPhase: this version of kxfs does not know the phase", NULL},
		{"'state':'Pending'," CONDITIONS(QUEUED),
		 "PENDING AwaitingHeadOfLine: The job waits in MCAD's queue until the jobs ahead of it "
		 "have been dispatched",
		 NULL},
		{"'state':'Pending'," CONDITIONS(
			 LIST2(QUEUED, CONDITION("HeadOfLine", "FrontOfQueue.", ""))),
		 "PENDING FrontOfQueue: The job is at the head of MCAD's queue", NULL},
		{"'state':'Pending'," CONDITIONS(LIST2(QUEUED, BACKOFF)),
		 "PENDING AppWrapperNotRunnable: MCAD can't dispatch the job yet, and retries "
		 "automatically: Insufficient quota and/or resources to dispatch AppWrapper.",
		 NULL},
		/* An old condition does not apply to a job that was dispatched. */
		{"'state':'Running'," CONDITIONS(LIST2(QUEUED, BACKOFF)), "PENDING", NULL},
		{"'state':'Running'," CONDITIONS(UNMADE("no")), "PENDING", NULL},
		/* MCAD retries again and again, and alternates between Pending and Failed. */
		{"'state':'Failed'," CONDITIONS(UNMADE("ns/j creation failure: no")),
		 "PENDING ItemCreationFailure: MCAD could not create the job's objects: ns/j creation "
		 "failure: no",
		 "The job waits: its pods can't be created: no."},
		{"'state':'Pending'," CONDITIONS(LIST2(
			 UNMADE("ns/j creation failure: pods \\\"j-0\\\" is forbidden: error looking up "
				"service account ns/sa: serviceaccount \\\"sa\\\" not found"),
			 QUEUED)),
		 "PENDING ItemCreationFailure: MCAD could not create the job's objects: ns/j creation "
		 "failure: pods \"j-0\" is forbidden: error looking up service account ns/sa: "
		 "serviceaccount \"sa\" not found",
		 "The job waits: its pods can't be created: there is no service account sa in "
		 "namespace ns. Create this service account, or submit the job with another "
		 "service_account."},
		{"'state':'Failed'," CONDITIONS(
			 CONDITION("PreemptCandidate", "DispatchDeadlineExceeded",
				   "Dispatch deadline exceeded. allowed to run for 9 seconds")),
		 "FAILED DispatchDeadlineExceeded: MCAD has ended the job: Dispatch deadline exceeded. "
		 "allowed to run for 9 seconds",
		 "The job failed: MCAD has ended the job: Dispatch deadline exceeded. allowed to run "
		 "for 9 seconds."},
		/* The pods could not be created in the first attempt. */
		{AGAIN("Pending", "10"),
		 "PENDING ItemCreationFailure: MCAD could not create the job's objects (requeued 2 "
		 "times)",
		 "The job waits: its pods can't be created: MCAD could not create the job's objects "
		 "(requeued 2 times)."},
		/* They were created later. Now the job waits for another attempt. */
		{AGAIN("Pending", "30"),
		 "PENDING MinPodsNotRunning: MCAD has requeued the job (requeued 2 times)", NULL},
		/* They can't be created in this attempt either. The old condition is still there. */
		{AGAIN("Failed", "30"),
		 "PENDING MinPodsNotRunning: MCAD has requeued the job (requeued 2 times)", NULL},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const char *message = strstr(table[i].job, ": ");
		struct world w = {0};

		job(&w, ONE, REQUEUED(1, 2), table[i].status);
		assert_job(&w, table[i].job);
		if (table[i].why)
			assert_string_equal(world_why(&w), table[i].why);
		else if (message)
			assert_memory_equal(world_why(&w), message + 2, strlen(message + 2));
		assert_int_equal(w.last->finished != 0, spec_state_is_final(w.last->state));
		world_clear(&w);
	}
}

/* --- ends --- */

/* MCAD reports Running for minutes, or forever, after everything of the job has ended. */
static void test_pods_decide(void **state)
{
	struct world w = {0};

	job(&w, TWO, "", "'state':'Running'");
	pod(&w, "p10", "0", "0", "Failed", ENDED(3));
	assert_job(&w, "RUNNING Error: main-0: exit code 3");
	pod(&w, "p11", "0", "1", "Running", RUNNING);
	assert_job(&w, "RUNNING Error: main-0: exit code 3");
	pod(&w, "p11", "0", "1", "Succeeded", ENDED(0));
	assert_job(&w, "FAILED Error: main-0: exit code 3");
	assert_int_equal(w.last->finished, 180 * SECOND);
	/* The job has failed, even if somebody deletes the pods and later the job. */
	world_pod_gone(&w, 0);
	assert_job(&w, "FAILED Error: main-0: exit code 3");
	w.left = true;
	world_look(&w);
	assert_job(&w, "FAILED Error: main-0: exit code 3");
	world_clear(&w);
	/* A pod that was stopped has not ended by itself. MCAD dispatches the job again. */
	job(&w, ONE, "", "'state':'Running'");
	pod(&w, "p10", "0", "0", "Running", RUNNING);
	world_pod_gone(&w, 0);
	assert_shows(&w, "PENDING main-0=PENDING/Restarting");
	world_clear(&w);
	job(&w, TWO, "", "'state':'RunningHoldCompletion'");
	pod(&w, "p10", "0", "0", "Succeeded", ENDED(0));
	pod(&w, "p11", "0", "1", "Running", RUNNING);
	assert_job(&w, "RUNNING");
	pod(&w, "p11", "0", "1", "Succeeded", ENDED(0));
	assert_job(&w, "SUCCEEDED Completed");
	assert_string_equal(w.last->phase, "RunningHoldCompletion");
	world_clear(&w);
}

/* --- requeued jobs --- */

static void test_requeued(void **state)
{
	struct world w = {0};

	job(&w, ONE, REQUEUED(1, 1), "'state':'Running'");
	pod(&w, "p10", "0", "0", "Failed", ENDED(3));
	/* MCAD will requeue the job some minutes from now. */
	assert_shows(&w, "RUNNING main-0=FAILED/3/Error");
	assert_why(
		&w,
		"RUNNING Error: main-0 ended with exit code 3. Retries used: 0; max_retries is 1. "
		"MCAD restarts the whole job automatically after some minutes.");
	job(&w, ONE, REQUEUED(1, 1),
	    "'state':'Pending','numberOfRequeueings':1," CONDITIONS(
		    LIST2(QUEUED, CONDITION("Backoff", "PreemptionTriggered",
					    "Insufficient number of pods."))));
	world_pod_gone(&w, 0);
	assert_job(&w, "PENDING PreemptionTriggered: MCAD can't dispatch the job yet, and retries "
		       "automatically (requeued 1 time): Insufficient number of pods.");
	assert_shows(&w, "PENDING main-0=PENDING/3/Error");
	assert_string_equal(world_why(&w),
			    "main-0 ended with exit code 3. It will be restarted soon. "
			    "Retries used: 1; max_retries is 1.");
	/*
	 * The job is dispatched, but the new pod does not exist yet. The old pod's end is not that
	 * of the job.
	 */
	job(&w, ONE, REQUEUED(1, 1), "'state':'Running','numberOfRequeueings':1");
	assert_job(&w, "PENDING Error: main-0: exit code 3");
	pod(&w, "p20", "0", "0", "Running", RUNNING);
	assert_shows(&w, "RUNNING main-0=RUNNING/attempt 1");
	pod(&w, "p20", "0", "0", "Failed", ENDED(4));
	/* No retries are left. */
	assert_shows(&w, "FAILED main-0=FAILED/4/Error/attempt 1");
	assert_int_equal(w.last->retries, 1);
	world_clear(&w);
}

/*
 * MCAD reports that it has requeued a job, how often and when. But its state is still Running, and
 * the failed pod still exists.
 */
static void test_put_back_soon(void **state)
{
	struct world w = {0};

	job(&w, ONE, REQUEUED(1, 1), "'state':'Running'");
	pod(&w, "p10", "0", "0", "Failed", ENDED(3));
	job(&w, ONE, REQUEUED(1, 1),
	    "'state':'Running','numberOfRequeueings':1," CONDITIONS(PUT_BACK("15")));
	assert_shows(&w, "PENDING main-0=PENDING/3/Error");
	world_pod_gone(&w, 0);
	assert_shows(&w, "PENDING main-0=PENDING/3/Error");
	/* The next pod may be created in the same second. */
	pod(&w, "p15", "0", "0", "Failed", ENDED(4));
	assert_shows(&w, "FAILED main-0=FAILED/4/Error/attempt 1");
	/* Deleting a failed job also deletes its pods, and the pods may disappear first. */
	world_pod_gone(&w, 1);
	assert_shows(&w, "FAILED main-0=FAILED/4/Error/attempt 1");
	w.left = true;
	world_look(&w);
	assert_job(&w, "FAILED Error: main-0: exit code 4");
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
	    "'state':'Running','numberOfRequeueings':1," CONDITIONS(PUT_BACK("15")));
	pod(&w, "p20", "0", "0", "Failed", ENDED(4));
	assert_job(&w, "RUNNING Error: main-0: exit code 4");
	w.stale_since = 0;
	world_look(&w);
	assert_job(&w, "FAILED Error: main-0: exit code 4");
	/* A job that has ended remains so when it is not confirmed any more. */
	w.stale_since = 2 * SECOND;
	world_look(&w);
	assert_job(&w, "FAILED Error: main-0: exit code 4");
	world_clear(&w);
}

/* Whether MCAD starts a failed pod again. */
static void test_retried(void **state)
{
	static const struct {
		const char *scheduling, *status, *second;
		const char *shows;
		bool ended; /* the first replica has ended for good */
	} table[] = {
		/* If the user sets no limit, MCAD requeues the job as often as needed. */
		{REQUEUED(1, 0), "'state':'Running','numberOfRequeueings':7", "Running",
		 "RUNNING main-0=FAILED/3/Error main-1=RUNNING", false},
		/* Enough pods have succeeded. */
		{REQUEUED(1, 5), "'state':'Running'", "Succeeded",
		 "FAILED main-0=FAILED/3/Error main-1=SUCCEEDED/0/Completed", true},
		/* MCAD is not configured to requeue the job. */
		{"", "'state':'Running'", "Running", "RUNNING main-0=FAILED/3/Error main-1=RUNNING",
		 true},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};

		job(&w, TWO, table[i].scheduling, table[i].status);
		pod(&w, "p10", "0", "0", "Failed", ENDED(3));
		pod(&w, "p11", "0", "1", table[i].second,
		    streq(table[i].second, "Running") ? RUNNING : ENDED(0));
		assert_shows(&w, table[i].shows);
		assert_int_equal(w.last->replicas[0].finished != 0, table[i].ended);
		/* That does not change when the pod is gone. */
		if (table[i].ended)
			world_pod_gone(&w, 0);
		assert_shows(&w, table[i].shows);
		assert_int_equal(w.last->replicas[0].finished != 0, table[i].ended);
		world_clear(&w);
	}
}

/* --- wrapped objects --- */

/* TorchX gives the pods of two roles the same names. Labels show the role of each. */
static void test_roles(void **state)
{
	struct world w = {0};

	job(&w, LIST2(ITEM("0", "a", "0"), ITEM("1", "b", "0")), "", "'state':'Running'");
	assert_int_equal(w.last->n_roles, 2);
	assert_string_equal(w.last->app, "app");
	pod(&w, "p10", "1", "0", "Failed", ENDED(3));
	assert_shows(&w, "RUNNING a-0=PENDING b-0=FAILED/3/Error");
	assert_string_equal(w.last->replicas[1].pod, "j-0");
	assert_string_equal(w.last->replicas[1].logs[0].container, "");
	world_clear(&w);
}

/*
 * The pods of a wrapped batch Job are not shown. So the other pods can't prove that everything has
 * finished.
 */
static void test_of_others(void **state)
{
	struct world w = {0};

	job(&w,
	    "{'generictemplate':{'apiVersion':'v1','kind':'Pod','metadata':{'name':'j-0'}}},"
	    "{'generictemplate':{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'x'}}},"
	    "{'generictemplate':7},{},3",
	    "", "'state':'Running'");
	assert_string_equal(w.last->app, "j");
	world_pod(
		&w,
		world_json(
			"{'metadata':{'name':'j-0','uid':'p'},'spec':{'containers':[{'name':'c'}]},"
			"'status':{'phase':'Succeeded'}}"),
		false);
	assert_shows(&w, "RUNNING j-0-0=SUCCEEDED/Completed");
	world_clear(&w);
	job(&w, "{'generictemplate':{'apiVersion':'batch/v1','kind':'Job'}}", "",
	    "'state':'Running'");
	assert_shows(&w, "RUNNING");
	job(&w, "{'generictemplate':{'apiVersion':'batch/v1','kind':'Job'}}", "",
	    "'state':'Completed'");
	assert_job(&w, "SUCCEEDED Completed");
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),	    cmocka_unit_test(test_pods_decide),
		cmocka_unit_test(test_requeued),    cmocka_unit_test(test_put_back_soon),
		cmocka_unit_test(test_unconfirmed), cmocka_unit_test(test_retried),
		cmocka_unit_test(test_roles),	    cmocka_unit_test(test_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
