/* SPDX-License-Identifier: MIT */
/*
 * Jobs in Kueue queues that no recording contains. test-stories.c tests what users read of the
 * recorded ones.
 */
#include "tests/unit/spec/kinds/cluster-world.h"
#include "tests/unit/table.h"

/* Return a world that has just seen the job, so that no waiting time has passed yet. */
static struct world world_of(const char *kind)
{
	return (struct world){.kind = test_kind(kind),
			      .since = INT64_MAX / 2,
			      .kueue = {.known = true}};
}

#define CONDITION(type, value, reason, message)                                                    \
	"{'type':'" type "','status':'" value "','reason':'" reason "','message':'" message        \
	"','lastTransitionTime':'1970-01-01T00:00:20Z'}"
#define UNRESERVED(reason, message) CONDITION("QuotaReserved", "False", reason, message)
#define EVICTED(reason, message)    CONDITION("Evicted", "True", reason, message)
#define ADMITTED                                                                                   \
	CONDITION("QuotaReserved", "True", "QuotaReserved", "m")                                   \
	"," CONDITION("Admitted", "True", "Admitted", "m")

/* Send the job's Workload, with this spec, conditions, and other members of its status. */
static void workload(struct world *w, const char *spec, const char *conditions, const char *status)
{
	world_workload(w,
		       world_json("{'metadata':{'name':'wl','uid':'w','ownerReferences':[{'uid':"
				  "'u','controller':true}]},'spec':{%s},'status':{%s"
				  "'conditions':[%s]}}",
				  spec, status, conditions),
		       false);
}

/* Send an AppWrapper that is queued in Kueue, and its Workload. */
static void held(struct world *w, const char *spec, const char *conditions, const char *status)
{
	world_job(w,
		  "{\"metadata\":{\"name\":\"app\",\"uid\":\"u\",\"labels\":{"
		  "\"kueue.x-k8s.io/queue-name\":\"team\"}},\"spec\":{\"suspend\":true,"
		  "\"components\":[]},\"status\":{\"phase\":\"Suspended\"}}",
		  false);
	workload(w, spec, conditions, status);
}

/* What `why` shows of a Workload, and what ctl accepts. */
static void test_workloads(void **state)
{
#define QUOTE(reason, text, advice)                                                                \
	"PENDING " reason ": The job waits: it has no quota in queue team. Kueue: \"" text         \
	"\"." advice
#define OUT(reason, text)                                                                          \
	"CANCELLED/suspended " reason ": The job is suspended: " text                              \
	". Kueue will not admit it again: to run it again, copy its manifest.yaml into submit/."
	static const struct {
		const char *spec, *conditions, *why;
	} table[] = {
		/* Kueue's message is quoted. The reason decides the advice. */
		{"", UNRESERVED("Pending", "no"), QUOTE("Queued", "no", "")},
		{"", UNRESERVED("Pending", ""), QUOTE("Queued", "Pending", "")},
		{"", UNRESERVED("WaitingForQuota", "no"),
		 QUOTE("QueueFull", "no", " Kueue admits it when quota becomes available.")},
		{"", UNRESERVED("ExceedsMaxQuota", "no"),
		 QUOTE("QueueTooSmall", "no",
		       " Submit the job to another queue, or request less.")},
		{"", UNRESERVED("NoMatchingFlavor", "no"),
		 QUOTE("NoMatchingFlavor", "no",
		       " Change the job's node selector or affinity, or submit the job to another "
		       "queue.")},
		{"", UNRESERVED("Inadmissible", "LocalQueue team doesn\\u0027t exist"),
		 QUOTE("Inadmissible", "LocalQueue team doesn't exist", "")},
		{"", UNRESERVED("AdmissionGated", "Admission is gated by: budget"),
		 QUOTE("AdmissionGated", "Admission is gated by: budget",
		       " The job continues when its admission gate is removed.")},
		{"", UNRESERVED("Rain", "it rains"), QUOTE("Queued", "it rains", "")},
		/* Kueue will never admit the job again. It counts as finished, and can't resume. */
		{"'active':false",
		 LIST2(UNRESERVED("Pending", "m"),
		       EVICTED("DeactivatedDueToMaximumExecutionTimeExceeded", "m")),
		 OUT("ExecutionTimeExceeded", "it reached its maximum execution time")},
		{"'active':false",
		 CONDITION("DeactivationTarget", "True", "MaximumExecutionTimeExceeded", "m"),
		 OUT("ExecutionTimeExceeded", "it reached its maximum execution time")},
		{"'active':false", EVICTED("DeactivatedDueToRain", "it rains"),
		 OUT("Deactivated", "it was deactivated. Kueue: \"it rains\"")},
		{"'active':false",
		 EVICTED("DeactivatedDueToAdmissionCheck", "checks in Rejected state: \\\"no\\\""),
		 OUT("AdmissionCheckRejected",
		     "it was rejected by an admission check. Kueue: \"checks in Rejected state: "
		     "\"no\"\"")},
		{"", CONDITION("Finished", "True", "FailedToStart", "a conflict"),
		 OUT("FailedToStart", "Kueue admitted it, but could not start it: a conflict")},
		/* Somebody has resumed the job, and Kueue has not admitted it again. */
		{"'active':true",
		 LIST2(UNRESERVED("Pending", "m"),
		       CONDITION("Requeued", "False", "DeactivatedDueToRequeuingLimitExceeded",
				 "m")),
		 OUT("PodsNotReady", "its pods repeatedly did not become ready before Kueue's "
				     "timeout, so Kueue gave up")},
		/* A job that only waits for its next attempt is in the queue. */
		{"",
		 LIST2(UNRESERVED("Pending", "no"),
		       CONDITION("Requeued", "False", "PodsReadyTimeout", "m")),
		 QUOTE("Queued", "no", "")},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = world_of("appwrapper");

		held(&w, table[i].spec, table[i].conditions, "");
		assert_why(&w, table[i].why);
		assert_actions(w.last->actions, w.last->suspended ? "" : " suspend queue priority");
		world_clear(&w);
	}
}

/* Kueue is not running, or does not manage the namespace. */
static void test_no_workload(void **state)
{
	static const struct {
		const char *labels;
		struct spec_kueue_facts kueue;
		const char *why;
	} table[] = {
		{"",
		 {0},
		 "PENDING QueuedInKueue: The job waits: Kueue has not admitted it from queue team. "
		 "This mount can't watch Workloads, which show the reason; see .kxfs/info."},
		{"",
		 {.absent = true},
		 "PENDING NoKueue: The job waits: it is in Kueue queue team, but Kueue is not "
		 "installed in this cluster. Submit the job without a queue."},
		{"",
		 {.known = true},
		 "PENDING NoWorkload: The job waits: Kueue has not processed it yet. If this lasts, "
		 "Kueue may be down, or may not manage this namespace."},
		{",'kueue.x-k8s.io/priority-class':'high'",
		 {.known = true},
		 "PENDING NoWorkload: The job waits: Kueue has not processed it yet, perhaps because "
		 "there is no priority class high. If this lasts, Kueue may be down, or may not "
		 "manage this namespace."},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {.kind = &spec_appwrapper, .now = 10, .kueue = table[i].kueue};

		world_job(&w,
			  world_json("{'metadata':{'name':'app','uid':'u','labels':{"
				     "'kueue.x-k8s.io/queue-name':'team'%s}},'spec':{'suspend':"
				     "true},'status':{'phase':'Suspended'}}",
				     table[i].labels),
			  false);
		assert_why(&w, table[i].why);
		world_clear(&w);
	}
}

/* The time of the next attempt is shown while it is in the future. */
static void test_requeued_at(void **state)
{
	static const struct {
		int64_t now;
		const char *said;
	} cases[] = {{50, " and Kueue retries at 1970-01-01T00:01:40Z"},
		     {150, " and Kueue retries automatically"}};

	for (size_t i = 0; i < array_size(cases); i++) {
		struct world w = world_of("appwrapper");

		w.now = cases[i].now;
		held(&w, "", LIST2(UNRESERVED("Pending", "no"), EVICTED("PodsReadyTimeout", "m")),
		     "'requeueState':{'count':1,'requeueAt':'1970-01-01T00:01:40Z'},");
		if (!strstr(world_why(&w), cases[i].said))
			fail_msg("not \"%s\" in: %s", cases[i].said, world_why(&w));
		world_clear(&w);
	}
}

/* The number of evictions is the sum over all reasons. It stays known when the Workload is gone. */
static void test_evictions(void **state)
{
	static const char preempted[] =
		LIST2(UNRESERVED("Pending", "m"), EVICTED("Preempted", "m"));
	static const char status[] =
		"'schedulingStats':{'evictions':[{'reason':'Preempted','count':%s},"
		"{'reason':'PodsReadyTimeout','count':1},{'count':-1},{'count':'x'},7]},";
	struct world w = world_of("appwrapper");

	held(&w, "", "", "");
	assert_int_equal(w.last->evictions, 0);
	held(&w, "", preempted,
	     "'schedulingStats':{'evictions':[{'reason':'Preempted','count':1}]},");
	assert_int_equal(w.last->evictions, 1);
	assert_why(&w, "PENDING Preempted: The job waits: it was preempted at "
		       "1970-01-01T00:00:20Z. Kueue: \"m\". Kueue admits it when quota becomes "
		       "available.");
	held(&w, "", preempted, world_json(status, "1"));
	assert_int_equal(w.last->evictions, 2);
	assert_why(&w, "PENDING Preempted: The job waits: it was preempted at "
		       "1970-01-01T00:00:20Z; Kueue has evicted it 2 times so far. Kueue: \"m\". "
		       "Kueue admits it when quota becomes available.");
	w.kueue.workload = NULL;
	world_look(&w);
	assert_int_equal(w.last->evictions, 2);
	held(&w, "", preempted, world_json(status, "2147483647"));
	assert_int_equal(w.last->evictions, INT32_MAX);
	world_clear(&w);
}

/*
 * What a job's Workload reports about quota and priority, and what of that stays known when the
 * Workload is gone.
 */
static void test_quota(void **state)
{
	static const struct {
		const char *spec, *class;
		int priority, takes;
	} table[] = {
		{"'priority':0", "", 0, SPEC_PRIORITY_WAITING},
		{"'priority':-7,'priorityClassRef':{'group':'kueue.x-k8s.io','kind':"
		 "'WorkloadPriorityClass','name':'low'}",
		 "low", -7, SPEC_PRIORITY_ANY},
		{"'priority':9,'priorityClassRef':{'kind':'PriorityClass','name':'pods'}", "pods",
		 9, SPEC_PRIORITY_FIXED},
		/* v1beta1 */
		{"'priority':0,'priorityClassSource':''", "", 0, SPEC_PRIORITY_FIXED},
		{"'priority':5,'priorityClassSource':'kueue.x-k8s.io/workloadpriorityclass',"
		 "'priorityClassName':'high'",
		 "high", 5, SPEC_PRIORITY_WAITING},
		{"'priority':'x'", "", SPEC_NO_PRIORITY, SPEC_PRIORITY_WAITING},
		{"'priority':99999999999", "", SPEC_NO_PRIORITY, SPEC_PRIORITY_WAITING},
	};
	struct world w = world_of("appwrapper");

	for (size_t i = 0; i < array_size(table); i++) {
		held(&w, table[i].spec, "", "");
		assert_string_equal(w.last->priority_class, table[i].class);
		assert_int_equal(w.last->priority, table[i].priority);
		assert_int_equal(w.kueue.workload->takes_priority, table[i].takes);
	}
	held(&w, table[1].spec, "",
	     "'admission':{'clusterQueue':'cq','podSetAssignments':["
	     "{'flavors':{'cpu':'spot','nvidia.com/gpu':'a100','x,y':'z','memory':7}},"
	     "{'flavors':{'cpu':'spot','memory':'spot=1'}},{'flavors':{'cpu':'spo'}},3]},");
	for (int i = 0; i < 2; i++) {
		assert_string_equal(w.last->cluster_queue, "cq");
		assert_string_equal(w.last->flavors, "cpu=spot,nvidia.com/gpu=a100,cpu=spo");
		assert_string_equal(w.last->priority_class, "low");
		assert_int_equal(w.last->priority, -7);
		w.kueue.workload = NULL;
		world_look(&w);
	}
	/* The job has no quota any more. */
	held(&w, table[0].spec, "", "");
	assert_string_equal(w.last->flavors, "");
	world_clear(&w);
}

/*
 * A TrainJob suspends and resumes its JobSet, and Kueue does so with the TrainJob. Nobody has
 * requested to stop the JobSet itself.
 */
static void test_owned(void **state)
{
	static const char inactive[] = UNRESERVED("Inadmissible", "LocalQueue team is inactive");
	struct world w = world_of("jobset");

	world_job(&w,
		  world_json(
			  "{'metadata':{'name':'t','uid':'u','ownerReferences':[{'kind':'TrainJob',"
			  "'name':'t','uid':'t','controller':true}]},'spec':{'suspend':true,"
			  "'replicatedJobs':[{'name':'w','template':{'spec':{'completions':1}}}]},"
			  "'status':{" CONDITIONS(CONDITION("Suspended", "True", "r", "m")) "}}"),
		  false);
	assert_job(&w, "PENDING SuspendedByOwner: The job waits until its owner, TrainJob t, lets "
		       "it run");
	assert_actions(w.last->actions, "");
	workload(&w, "'queueName':'team'", inactive, "");
	assert_why(&w, "PENDING Inadmissible: The job waits: it has no quota in queue team. Kueue: "
		       "\"LocalQueue team is inactive\".");
	assert_string_equal(w.last->queue, "team");
	assert_actions(w.last->actions, "");
	workload(&w, "'queueName':'team','active':false", inactive, "");
	assert_job(&w, "CANCELLED/suspended Deactivated");
	world_clear(&w);
}

/*
 * Kueue manages all jobs, also those without a queue. Nobody has requested to suspend this one. It
 * waits until a user names a queue.
 */
static void test_managed(void **state)
{
	static const char missing[] = UNRESERVED("Inadmissible", "LocalQueue  is missing");
	struct world w = world_of("job");

	world_job(&w,
		  world_json("{'metadata':{'name':'j','uid':'u'},'spec':{'suspend':true,"
			     "'template':{'spec':{}}},'status':{" CONDITIONS(
				     CONDITION("Suspended", "True", "JobSuspended", "m")) "}}"),
		  false);
	assert_job(&w, "CANCELLED/suspended Suspended");
	workload(&w, "'queueName':''", missing, "");
	assert_why(&w, "PENDING Inadmissible: The job waits: it has no quota in any queue. Kueue: "
		       "\"LocalQueue  is missing\". Kueue manages all jobs here, so the job needs "
		       "a queue.");
	assert_int_equal(w.last->actions & 1u << SPEC_RESUME, 0);
	/* Kueue has not considered the job yet. */
	workload(&w, "'queueName':''", "", "");
	assert_why(&w, "PENDING InLine: The job waits: it is in no queue. Kueue manages all jobs "
		       "here, so the job needs a queue.");
	workload(&w, "'queueName':'','active':false", missing, "");
	assert_job(&w, "CANCELLED/suspended Deactivated");
	world_clear(&w);
}

/* --- pods of admitted jobs --- */

/* Send a JobSet in a queue, and what Kueue reports about it. */
static void set(struct world *w, bool suspended, unsigned restarts)
{
	const char *flag = suspended ? "true" : "false", *value = suspended ? "True" : "False";

	world_job(w,
		  world_json("{'metadata':{'name':'j','uid':'u','labels':{"
			     "'kueue.x-k8s.io/queue-name':'team'}},'spec':{'suspend':%s,"
			     "'failurePolicy':{'maxRestarts':%u},'replicatedJobs':[{'name':'w',"
			     "'template':{'spec':{'completions':1,'backoffLimit':0}}}]},"
			     "'status':{" CONDITIONS(CONDITION("Suspended", "%s", "r", "m")) "}}",
			     flag, restarts, value),
		  false);
}

static void pod(struct world *w, const char *uid, const char *phase, unsigned restarts,
		const char *state)
{
	world_pod(w,
		  world_json("{'metadata':{'name':'j-w-0-0-x','uid':'%s','labels':{"
			     "'jobset.sigs.k8s.io/jobset-uid':'u','jobset.sigs.k8s.io/jobset-name'"
			     ":'j','jobset.sigs.k8s.io/replicatedjob-name':'w'},"
			     "'ownerReferences':[{'apiVersion':'batch/v1','kind':'Job','name':"
			     "'j-w-0','uid':'b','controller':true}],'annotations':{"
			     "'batch.kubernetes.io/job-completion-index':'0'}},'spec':{"
			     "'containers':[{'name':'w'}]},'status':{'phase':'%s',"
			     "'containerStatuses':[{'name':'w','restartCount':%u,%s}]}}",
			     uid, phase, restarts, state),
		  false);
}

/*
 * Something kept the pods of an admitted job from running, so Kueue evicted the job. `why` still
 * names that problem.
 */
static void test_kept(void **state)
{
	struct world w = world_of("jobset");

	set(&w, false, 0);
	workload(&w, "", ADMITTED, "");
	pod(&w, "p1", "Pending", 0,
	    "'state':{'waiting':{'reason':'ErrImagePull','message':'failed to pull and unpack image "
	    "\\'docker.io/library/nosuch:1\\': failed to resolve reference: no such host'}}");
	assert_reason(&w, "ErrImagePull");
	workload(&w, "'active':false", EVICTED("DeactivatedDueToRequeuingLimitExceeded", "m"), "");
	set(&w, true, 0);
	pod(&w, "p1", "Failed", 0, "'state':{'terminated':{}}");
	world_pod_gone(&w, 0);
	assert_non_null(strstr(w.last->obstacle, "docker.io/library/nosuch:1 can't be pulled"));
	assert_non_null(strstr(world_why(&w), w.last->obstacle));
	/* The job was admitted again, and now its program exits again and again. */
	workload(&w, "", ADMITTED, "");
	set(&w, false, 0);
	pod(&w, "p2", "Running", 2,
	    "'state':{'waiting':{'reason':'CrashLoopBackOff','message':'back-off'}},"
	    "'lastState':{'terminated':{'exitCode':3}}");
	assert_string_equal(w.last->obstacle, "w-0 ended with exit code 3.");
	/* The pod is running, so there is no problem any more. */
	pod(&w, "p2", "Running", 3, "'state':{'running':{}}");
	assert_string_equal(w.last->obstacle, "");
	world_clear(&w);
}

/*
 * `why` first shows what the job waits for. A pod that failed in an earlier attempt is not what
 * delays the job.
 */
static void test_failed_before(void **state)
{
#define RAIN                                                                                       \
	"PENDING Queued: The job waits: it has no quota in queue team. Kueue: \"it rains\"; it "   \
	"was preempted at 1970-01-01T00:00:20Z. Before that, w-0 ended with exit code 1."
	struct world w = world_of("jobset");

	set(&w, false, 2);
	workload(&w, "", ADMITTED, "");
	pod(&w, "p1", "Failed", 0, "'state':{'terminated':{'exitCode':1,'reason':'Error'}}");
	assert_why(&w, "RUNNING Error: w-0 ended with exit code 1. Retries used: 0; max_retries is "
		       "2.");
	workload(&w, "", LIST2(UNRESERVED("Pending", "it rains"), EVICTED("Preempted", "m")), "");
	set(&w, true, 2);
	assert_why(&w, RAIN " Retries used: 0; max_retries is 2.");
	/* Kueue starts the job again, so the text must not report that the job has no retries. */
	set(&w, true, 0);
	assert_why(&w, RAIN);
	world_clear(&w);
}

/* The position of the job follows the reason, and is shown only while the job waits. */
static void test_place(void **state)
{
#define INLINE                                                                                     \
	"PENDING InLine: The job waits: it is in queue team, and Kueue has not tried to admit it " \
	"yet."
#define PLACE " Its position in the queue is 3."
	struct world w = world_of("appwrapper");

	w.kueue.position = 3;
	held(&w, "", "", "");
	assert_int_equal(w.last->queue_position, 3);
	assert_why(&w, INLINE PLACE);
	/* One job is ahead of it, which may request the same quota and may not fit. */
	w.since = -10 * SECOND;
	held(&w, "", "", "");
	assert_why(&w, INLINE " Other jobs are ahead of it, and Kueue 0.18 and later also skips a "
			      "job if another job with the same request did not fit." PLACE);
	held(&w, "'active':false", "", "");
	assert_int_equal(w.last->queue_position, 0);
	/* The job has its quota now. The positions were requested before that. */
	held(&w, "", CONDITION("QuotaReserved", "True", "QuotaReserved", "m"), "");
	assert_int_equal(w.last->queue_position, 0);
	assert_null(strstr(world_why(&w), "position"));
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_workloads),     cmocka_unit_test(test_no_workload),
		cmocka_unit_test(test_requeued_at),   cmocka_unit_test(test_evictions),
		cmocka_unit_test(test_quota),	      cmocka_unit_test(test_owned),
		cmocka_unit_test(test_managed),	      cmocka_unit_test(test_kept),
		cmocka_unit_test(test_failed_before), cmocka_unit_test(test_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
