/* SPDX-License-Identifier: MIT */
/*
 * Jobs in Kueue queues: what only some users may read of recorded jobs, and objects that no
 * recording contains. test-stories.c tests what all users read of the recorded jobs.
 */
#include "spec/job/status.h"
#include "tests/unit/spec/kinds/cluster-world.h"
#include "tests/unit/table.h"

/* --- stories --- */

/* What users read of a job: one line for each change of its state, its reason or its `why`. */
struct story {
	char *text;
	char *last;
};

static void story_clear(struct story *s)
{
	free(s->text);
	free(s->last);
}

static void look(struct world *w, void *data)
{
	struct story *s = data;
	char *why cleanup_free = NULL, *line, *text;
	const char *reason;
	size_t len;

	if (!w->last)
		return;
	reason = *w->last->cause.reason ? w->last->cause.reason : w->last->reason;
	spec_status_why(w->last, ~0u, &why, &len);
	line = text_print("%s%s %s%s%s", spec_state_name(w->last->state),
			  w->last->suspended ? "/suspended" : "", reason, *why ? ": " : "\n", why);
	if (!streq(line, s->last)) {
		text = text_print("%s%s", s->text ? s->text : "", line);
		free(s->text);
		s->text = text;
	}
	free(s->last);
	s->last = line;
}

/* Wherever FROM occurs in *TEXT, replace the N bytes that start there by TO. */
static void replace(char **text, const char *from, size_t n, const char *to)
{
	char *p;

	while ((p = strstr(*text, from))) {
		char *longer = text_print("%.*s%s%s", (int)(p - *text), *text, to, p + n);

		free(*text);
		*text = longer;
	}
}

/* The job is "app". It counts as seen just now, so that no waiting time has passed yet. */
#define WORLD_OF_APP                                                                               \
	{                                                                                          \
		.kind = &spec_appwrapper, .only = "app", .since = INT64_MAX / 2, .kueue = {        \
			.known = true                                                              \
		}                                                                                  \
	}

static const enum world_file files[] = {WORLD_FILE_JOBS, WORLD_FILE_PODS, WORLD_FILE_WORKLOADS,
					WORLD_FILE_LOCAL_QUEUES, WORLD_FILE_CLUSTER_QUEUES};

/* For a user who may read the ClusterQueue, some sentences contain more. */
static void test_with_cluster_queue(void **state)
{
	static const struct {
		const char *scenario, *part;
	} table[] = {
		{"kueue_appwrapper_clusterqueue_hold",
		 "PENDING QueueStopped: The job waits: cluster queue "
		 "appwrapper-clusterqueue-hold (of queue team) is stopped (Hold). Kueue admits "
		 "it when the queue is opened again.\n"},
		{"kueue_v014_appwrapper_clusterqueue_drain",
		 "PENDING QueueStopped: The job waits: cluster queue "
		 "v014-appwrapper-clusterqueue-drain (of queue team) is stopped "
		 "(HoldAndDrain); its cluster queue was drained at 2026-11-22T06:32:12Z. Kueue "
		 "admits it when the queue is opened again.\n"},
		{"kueue_appwrapper_strictfifo",
		 "PENDING InLine: The job waits: it is in queue team (cluster queue "
		 "appwrapper-strictfifo), which admits jobs strictly in order (StrictFIFO), and "
		 "the jobs ahead of it wait too.\n"},
	};
	struct spec_kueue_queue none = {0};
	struct spec_queue_view view = {.kueue = &none};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = WORLD_OF_APP;
		struct story s cleanup(story_clear) = {0};

		w.kueue.cluster_queue = &view; /* the queue is shown once it arrives */
		none.stop_policy = none.strategy = none.active.message = spec_empty();
		world_play_these(&w, table[i].scenario, files, array_size(files), look, &s);
		assert_non_null(strstr(s.text, table[i].part));
		world_clear(&w);
	}
}

/* --- Workloads of other kinds --- */

/*
 * Create an AppWrapper that is queued in Kueue, with the uid of the owner of V. It replaces the job
 * of another kind, to which V belongs.
 */
static void stand_in(struct world *w, const struct spec_workload_view *v)
{
	world_job(w,
		  world_json("{'metadata':{'name':'app','uid':'%s','labels':{"
			     "'kueue.x-k8s.io/queue-name':'team'}},'spec':{'suspend':true},"
			     "'status':{'phase':'Suspended'}}",
			     v->meta.owner_uid),
		  false);
}

/*
 * What `why` shows of a Workload does not depend on the kind of its job. Only the Workloads of
 * these recordings were kept.
 */
static void test_other_kinds(void **state)
{
	static const struct {
		const char *scenario, *story;
	} table[] = {
#define STOPPED(begin, rest) "PENDING QueueStopped: The job " begin " at " rest
#define QUEUED		     "PENDING QueuedInKueue: The job waits for Kueue to admit it from queue team.\n"
#define AGAIN		     ". Kueue admits it when the queue is opened again.\n"
#define STORY(queue, time)                                                                             \
	"PENDING InLine: The job waits: it is in queue team (cluster queue " queue                     \
	"), and Kueue has not tried to admit it yet.\n"                                                \
	"PENDING Admitted: The job waits: Kueue has admitted it, and it is about to start.\n" STOPPED( \
		"is being stopped: its cluster queue was drained", time AGAIN)                         \
		STOPPED("waits: its cluster queue was drained", time AGAIN)                            \
			STOPPED("waits: queue team (cluster queue " queue                              \
				") is inactive. Kueue: \"Can't submit new workloads to "               \
				"clusterQueue\"; its cluster queue was drained",                       \
				time AGAIN) QUEUED
		{"kueue_v014_job_clusterqueue_drain",
		 STORY("v014-job-clusterqueue-drain", "2026-11-22T06:34:31Z")},
		{"kueue_v014_jobset_clusterqueue_drain",
		 STORY("v014-jobset-clusterqueue-drain", "2026-11-22T06:34:30Z")},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = WORLD_OF_APP;
		struct story s cleanup(story_clear) = {0};
		struct world_changes *changes = calloc(1, sizeof(*changes));

		assert_non_null(changes);
		world_read(changes, w.kind, table[i].scenario, WORLD_FILE_WORKLOADS);
		world_read(changes, w.kind, table[i].scenario, WORLD_FILE_LOCAL_QUEUES);
		qsort(changes->v, changes->n, sizeof(changes->v[0]), world_by_version);
		for (size_t k = 0; k < changes->n; k++) {
			const char *json = changes->v[k].object;
			struct spec_workload_view *v = NULL;

			if (changes->v[k].file == WORLD_FILE_WORKLOADS)
				assert_int_equal(spec_workload_view_parse(json, strlen(json), &v),
						 0);
			if (!w.job && v && strstr(v->meta.name, "-app-"))
				stand_in(&w, v);
			world_apply(&w, &changes->v[k]);
			if (!changes->v[k].gone)
				look(&w, &s);
			spec_workload_view_free(v);
			free(changes->v[k].object);
		}
		free(changes);
		assert_string_equal(s.text, table[i].story);
		world_clear(&w);
	}
}

/* --- objects that no recording contains --- */

#define CONDITION(type, value, reason, message)                                                    \
	"{'type':'" type "','status':'" value "','reason':'" reason "','message':'" message        \
	"','lastTransitionTime':'1970-01-01T00:00:20Z'}"

/* Send a job that is queued in Kueue, and its Workload with this spec and status. */
static void held(struct world *w, const char *spec, const char *status)
{
	world_job(w,
		  "{\"metadata\":{\"name\":\"app\",\"uid\":\"u\",\"labels\":{"
		  "\"kueue.x-k8s.io/queue-name\":\"team\"}},\"spec\":{\"suspend\":true,"
		  "\"components\":[]},\"status\":{\"phase\":\"Suspended\"}}",
		  false);
	world_workload(
		w,
		world_json("{'metadata':{'name':'wl','uid':'w','ownerReferences':[{'uid':'u',"
			   "'controller':true}]},'spec':{%s},'status':{%s}}",
			   spec, status),
		false);
}

static void assert_why(const struct world *w, const char *reason, const char *expected)
{
	char *why cleanup_free = NULL;
	size_t len;

	spec_status_why(w->last, ~0u, &why, &len);
	assert_string_equal(w->last->cause.reason, reason);
	assert_string_equal(why, expected);
}

/* `why` quotes Kueue's message. The reason decides the advice. */
static void test_quota_messages(void **state)
{
	static const struct {
		const char *reason, *message, *shown, *why;
	} table[] = {
#define QUOTE(text) "The job waits: it has no quota in queue team. Kueue: \"" text "\"."
		{"Pending", "no", "Queued", QUOTE("no") "\n"},
		{"Pending", "", "Queued", QUOTE("Pending") "\n"},
		{"WaitingForQuota", "no", "QueueFull",
		 QUOTE("no") " Kueue admits it when quota becomes available.\n"},
		{"ExceedsMaxQuota", "no", "QueueTooSmall",
		 QUOTE("no") " Submit the job to another queue, or request less.\n"},
		{"NoMatchingFlavor", "no", "NoMatchingFlavor",
		 QUOTE("no") " Change the job's node selector or affinity, or submit the job to another queue.\n"},
		{"Inadmissible", "LocalQueue team doesn\"t exist", "Inadmissible",
		 QUOTE("LocalQueue team doesn't exist") "\n"},
		{"AdmissionGated", "Admission is gated by: budget", "AdmissionGated",
		 QUOTE("Admission is gated by: budget") " The job continues when its admission gate is removed.\n"},
		{"Rain", "it rains", "Queued", QUOTE("it rains") "\n"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = WORLD_OF_APP;
		char *status cleanup_free = NULL;

		status = text_print("'conditions':[" CONDITION("QuotaReserved", "False", "%s",
							       "%s") "]",
				    table[i].reason, table[i].message);
		replace(&status, "\"", 1, "\\u0027");
		held(&w, "", status);
		assert_why(&w, table[i].shown, table[i].why);
		assert_string_equal(spec_state_name(w.last->state), "PENDING");
		world_clear(&w);
	}
}

/* Kueue is not running, or does not manage the namespace. */
static void test_no_workload(void **state)
{
	struct world w = {.kind = &spec_appwrapper};
	const char *json =
		world_json("{'metadata':{'name':'app','uid':'u','labels':{"
			   "'kueue.x-k8s.io/queue-name':'team'}},'spec':{'suspend':true},"
			   "'status':{'phase':'Suspended'}}");

	w.now = 10;
	world_job(&w, json, false);
	assert_why(&w, "QueuedInKueue",
		   "The job waits: Kueue has not admitted it from queue team. This mount can't "
		   "watch Workloads, which show the reason; see .kxfs/info.\n");
	w.kueue.absent = true;
	world_job(&w, json, false);
	assert_why(&w, "NoKueue",
		   "The job waits: it is in Kueue queue team, but Kueue is not installed in "
		   "this cluster. Submit the job without a queue.\n");
	w.kueue.absent = false;
	w.kueue.known = true;
	world_job(&w, json, false);
	assert_why(&w, "NoWorkload",
		   "The job waits: Kueue has not processed it yet. If this lasts, Kueue may be "
		   "down, or may not manage this namespace.\n");
	world_job(
		&w,
		world_json(
			"{'metadata':{'name':'app','uid':'u','labels':{"
			"'kueue.x-k8s.io/queue-name':'team','kueue.x-k8s.io/priority-class':'high'}},"
			"'spec':{'suspend':true},'status':{'phase':'Suspended'}}"),
		false);
	assert_why(
		&w, "NoWorkload",
		"The job waits: Kueue has not processed it yet, perhaps because there is no priority "
		"class high. If this lasts, Kueue may be down, or may not manage this namespace.\n");
	world_clear(&w);
}

static void test_time_is_over(void **state)
{
	struct world w = WORLD_OF_APP;

	held(&w, "'active':false",
	     "'conditions':[" CONDITION("QuotaReserved", "False", "Pending", "m") "," CONDITION(
		     "Evicted", "True", "DeactivatedDueToMaximumExecutionTimeExceeded", "m") "]");
	assert_why(&w, "ExecutionTimeExceeded",
		   "The job is suspended: it reached its maximum execution time. Kueue will "
		   "not admit it again: to run it again, copy its manifest.yaml into submit/.\n");
	assert_true(w.last->suspended);
	assert_int_equal(w.last->actions, 0);
	held(&w, "'active':false",
	     "'conditions':[" CONDITION("Evicted", "True", "DeactivatedDueToRain", "it rains") "]");
	assert_why(&w, "Deactivated",
		   "The job is suspended: it was deactivated. Kueue: \"it rains\". Kueue will "
		   "not admit it again: to run it again, copy its manifest.yaml into submit/.\n");
	assert_int_equal(w.last->actions, 0);
	world_clear(&w);
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
		struct world w = WORLD_OF_APP;

		w.now = cases[i].now;
		held(&w, "",
		     "'requeueState':{'count':1,'requeueAt':'1970-01-01T00:01:40Z'},'conditions':[" CONDITION(
			     "QuotaReserved", "False", "Pending",
			     "no") "," CONDITION("Evicted", "True", "PodsReadyTimeout",
						 "m") "," CONDITION("Requeued", "False",
								    "PodsReadyTimeout", "m") "]");
		if (!strstr(w.last->cause.text, cases[i].said))
			fail_msg("not \"%s\" in: %s", cases[i].said, w.last->cause.text);
		world_clear(&w);
	}
}

/*
 * Kueue will never admit the job again. It counts as finished, and the text explains what the user
 * can do.
 */
static void test_out_for_good(void **state)
{
	struct world w = WORLD_OF_APP;

	held(&w, "",
	     "'conditions':[" CONDITION("Finished", "True", "FailedToStart", "a conflict") "]");
	assert_why(&w, "FailedToStart",
		   "The job is suspended: Kueue admitted it, but could not start it: a "
		   "conflict. Kueue will not admit it again: to run it again, copy its "
		   "manifest.yaml into submit/.\n");
	assert_int_equal(w.last->state, SPEC_CANCELLED);
	assert_int_equal(w.last->actions, 0);
	/* Somebody has resumed the job, and Kueue has not admitted it again. */
	held(&w, "'active':true",
	     "'conditions':[" CONDITION("QuotaReserved", "False", "Pending", "m") "," CONDITION(
		     "Requeued", "False", "DeactivatedDueToRequeuingLimitExceeded", "m") "]");
	assert_string_equal(w.last->cause.reason, "PodsNotReady");
	assert_int_equal(w.last->state, SPEC_CANCELLED);
	assert_int_equal(w.last->actions, 0);
	held(&w, "'active':false",
	     "'conditions':[" CONDITION("Evicted", "True", "DeactivatedDueToAdmissionCheck",
					"checks in Rejected state: \\\"no\\\"") "]");
	assert_string_equal(w.last->cause.reason, "AdmissionCheckRejected");
	assert_int_equal(w.last->actions, 0);
	/*
	 * The time limit would make Kueue evict the job again immediately, so it can't be resumed.
	 */
	held(&w, "'active':false",
	     "'conditions':[" CONDITION("DeactivationTarget", "True",
					"MaximumExecutionTimeExceeded", "m") "]");
	assert_int_equal(w.last->actions, 0);
	/* A job that only waits for its next attempt is in the queue. */
	held(&w, "",
	     "'conditions':[" CONDITION("QuotaReserved", "False", "Pending",
					"no") "," CONDITION("Requeued", "False", "PodsReadyTimeout",
							    "m") "]");
	assert_int_equal(w.last->state, SPEC_PENDING);
	world_clear(&w);
}

/* The number of evictions is the sum over all reasons. It stays known when the Workload is gone. */
static void test_evictions(void **state)
{
	static const char status[] =
		"'schedulingStats':{'evictions':[{'reason':'Preempted','count':%s},"
		"{'reason':'PodsReadyTimeout','count':1},{'count':-1},{'count':'x'},7]},"
		"'conditions':[" CONDITION("QuotaReserved", "False", "Pending",
					   "m") "," CONDITION("Evicted", "True", "Preempted",
							      "m") "]";
	static const char once[] =
		"'schedulingStats':{'evictions':[{'reason':'Preempted','count':1}]},"
		"'conditions':[" CONDITION("QuotaReserved", "False", "Pending",
					   "m") "," CONDITION("Evicted", "True", "Preempted",
							      "m") "]";
	struct world w = WORLD_OF_APP;
	char *many cleanup_free = text_print(status, "4");
	char *endless cleanup_free = text_print(status, "2147483647");

	held(&w, "", "'conditions':[]");
	assert_int_equal(w.last->evictions, 0);
	held(&w, "", once);
	assert_int_equal(w.last->evictions, 1);
	assert_why(&w, "Preempted",
		   "The job waits: it was preempted at "
		   "1970-01-01T00:00:20Z. Kueue: \"m\". Kueue admits it when quota becomes "
		   "available.\n");
	held(&w, "", many);
	assert_int_equal(w.last->evictions, 5);
	assert_why(&w, "Preempted",
		   "The job waits: it was preempted at 1970-01-01T00:00:20Z; "
		   "Kueue has evicted it 5 times so far. Kueue: \"m\". "
		   "Kueue admits it when quota becomes available.\n");
	world_workload(&w,
		       world_json(
			       "{'metadata':{'name':'wl','uid':'w','ownerReferences':[{'uid':'u',"
			       "'controller':true}]}}"),
		       true);
	assert_int_equal(w.last->evictions, 5);
	held(&w, "", endless);
	assert_int_equal(w.last->evictions, INT32_MAX);
	world_clear(&w);
}

/*
 * What a job's Workload reports about quota and priority, and what of that stays known when the
 * Workload is gone.
 */
static void test_quota(void **state)
{
	static const char admission[] =
		"'admission':{'clusterQueue':'cq','podSetAssignments':["
		"{'flavors':{'cpu':'spot','nvidia.com/gpu':'a100','x,y':'z','memory':7}},"
		"{'flavors':{'cpu':'spot','memory':'spot=1'}},{'flavors':{'cpu':'spo'}},3]}";
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
	struct world w = WORLD_OF_APP;

	for (size_t i = 0; i < array_size(table); i++) {
		held(&w, table[i].spec, "");
		assert_string_equal(w.last->priority_class, table[i].class);
		assert_int_equal(w.last->priority, table[i].priority);
		assert_int_equal(w.kueue.workload->takes_priority, table[i].takes);
	}
	assert_string_equal(w.last->flavors, "");
	held(&w, table[1].spec, admission);
	assert_string_equal(w.last->cluster_queue, "cq");
	assert_string_equal(w.last->flavors, "cpu=spot,nvidia.com/gpu=a100,cpu=spo");
	world_workload(&w,
		       world_json(
			       "{'metadata':{'name':'wl','uid':'w','ownerReferences':[{'uid':'u',"
			       "'controller':true}]}}"),
		       true);
	assert_string_equal(w.last->cluster_queue, "cq");
	assert_string_equal(w.last->flavors, "cpu=spot,nvidia.com/gpu=a100,cpu=spo");
	assert_string_equal(w.last->priority_class, "low");
	assert_int_equal(w.last->priority, -7);
	/* The job has no quota any more. */
	held(&w, table[0].spec, "");
	assert_string_equal(w.last->flavors, "");
	world_clear(&w);
}

/*
 * A TrainJob suspends and resumes its JobSet, and Kueue does so with the TrainJob. Nobody has
 * requested to stop the JobSet itself.
 */
static void test_owned(void **state)
{
	struct world w = {.kind = test_kind("jobset"),
			  .since = INT64_MAX / 2,
			  .kueue = {.known = true}};
	static const char workload[] =
		"{'metadata':{'name':'trainjob-t-5d40e','uid':'w','ownerReferences':[{'kind':"
		"'TrainJob','uid':'t','controller':true}]},'spec':{'queueName':'team','active':%s},"
		"'status':{'conditions':[" CONDITION("QuotaReserved", "False", "Inadmissible",
						     "LocalQueue team is inactive") "]}}";

	world_job(&w,
		  world_json(
			  "{'metadata':{'name':'t','uid':'u','ownerReferences':[{'kind':'TrainJob',"
			  "'name':'t','uid':'t','controller':true}]},'spec':{'suspend':true,"
			  "'replicatedJobs':[{'name':'w','template':{'spec':{'completions':1}}}]},"
			  "'status':{'conditions':[" CONDITION("Suspended", "True", "r",
							       "m") "]}}"),
		  false);
	assert_int_equal(w.last->state, SPEC_PENDING);
	assert_false(w.last->suspended);
	assert_string_equal(w.last->reason, "SuspendedByOwner");
	assert_string_equal(w.last->message,
			    "The job waits until its owner, TrainJob t, lets it run");
	assert_int_equal(w.last->actions, 0);
	world_workload(&w, world_json(workload, "true"), false);
	assert_why(&w, "Inadmissible",
		   "The job waits: it has no quota in queue team. Kueue: \"LocalQueue team is "
		   "inactive\".\n");
	assert_string_equal(w.last->queue, "team");
	assert_int_equal(w.last->actions, 0);
	world_workload(&w, world_json(workload, "false"), false);
	assert_int_equal(w.last->state, SPEC_CANCELLED);
	assert_true(w.last->suspended);
	world_clear(&w);
}

/*
 * Kueue manages all jobs, also those without a queue. Nobody has requested to suspend this one. It
 * waits until a user names a queue.
 */
static void test_managed(void **state)
{
	struct world w = {.kind = test_kind("job"),
			  .since = INT64_MAX / 2,
			  .kueue = {.known = true}};
	static const char workload[] =
		"{'metadata':{'name':'job-j','uid':'w','ownerReferences':[{'kind':'Job','uid':'u',"
		"'controller':true}]},'spec':{'queueName':'','active':%s},'status':{'conditions':"
		"[" CONDITION("QuotaReserved", "False", "Inadmissible",
			      "LocalQueue  is missing") "]}}";

	world_job(&w,
		  world_json("{'metadata':{'name':'j','uid':'u'},'spec':{'suspend':true,"
			     "'template':{'spec':{}}},'status':{'conditions':[" CONDITION(
				     "Suspended", "True", "JobSuspended", "m") "]}}"),
		  false);
	assert_int_equal(w.last->state, SPEC_CANCELLED);
	assert_true(w.last->suspended);
	world_workload(&w, world_json(workload, "true"), false);
	assert_int_equal(w.last->state, SPEC_PENDING);
	assert_false(w.last->suspended);
	assert_int_equal(w.last->actions & 1u << SPEC_RESUME, 0);
	assert_why(&w, "Inadmissible",
		   "The job waits: it has no quota in any queue. Kueue: \"LocalQueue  is "
		   "missing\". Kueue manages all jobs here, so the job needs a queue.\n");
	/* Kueue has not considered the job yet. */
	world_workload(&w,
		       world_json("{'metadata':{'name':'job-j','uid':'w','ownerReferences':[{"
				  "'kind':'Job','uid':'u','controller':true}]},'spec':{"
				  "'queueName':'','active':true}}"),
		       false);
	assert_why(&w, "InLine",
		   "The job waits: it is in no queue. Kueue manages all jobs here, so the job "
		   "needs a queue.\n");
	world_workload(&w, world_json(workload, "false"), false);
	assert_int_equal(w.last->state, SPEC_CANCELLED);
	assert_true(w.last->suspended);
	world_clear(&w);
}

/*
 * Something kept the pods of an admitted job from running, so Kueue evicted the job. `why` still
 * names that problem.
 */
static void test_kept(void **state)
{
	struct world w = {.kind = test_kind("jobset"),
			  .since = INT64_MAX / 2,
			  .kueue = {.known = true}};
	static const char job[] =
		"{'metadata':{'name':'j','uid':'u','labels':{'kueue.x-k8s.io/queue-name':'team'}},"
		"'spec':{'suspend':%s,'replicatedJobs':[{'name':'w','template':{'spec':"
		"{'completions':1}}}]},'status':{'conditions':[" CONDITION("Suspended", "%s", "r",
									   "m") "]}}";
	static const char pod[] =
		"{'metadata':{'name':'j-w-0-0-x','uid':'p%d','labels':{'jobset.sigs.k8s.io/jobset-uid'"
		":'u','jobset.sigs.k8s.io/jobset-name':'j','jobset.sigs.k8s.io/replicatedjob-name':'w'},"
		"'ownerReferences':[{'apiVersion':'batch/v1','kind':'Job','name':'j-w-0','uid':'b',"
		"'controller':true}],'annotations':{"
		"'batch.kubernetes.io/job-completion-index':'0'}},'spec':{'containers':[{'name':'w'}]}"
		",'status':{'phase':'%s','containerStatuses':[{'name':'w','restartCount':%d,'state':"
		"{'%s':{'reason':'%s','message':'%s'}},'lastState':{%s}}]}}";
	static const char workload[] =
		"{'metadata':{'name':'wl','uid':'w','ownerReferences':[{'kind':'JobSet','uid':'u',"
		"'controller':true}]},'spec':{'active':%s},'status':{'conditions':[%s]}}";
#define ADMITTED                                                                                   \
	CONDITION("QuotaReserved", "True", "QuotaReserved", "m")                                   \
	"," CONDITION("Admitted", "True", "Admitted", "m")

	world_job(&w, world_json(job, "false", "False"), false);
	world_workload(&w, world_json(workload, "true", ADMITTED), false);
	world_pod(&w,
		  world_json(pod, 1, "Pending", 0, "waiting", "ErrImagePull",
			     "failed to pull and unpack image \\'docker.io/library/nosuch:1\\': "
			     "failed to resolve reference: no such host",
			     ""),
		  false);
	assert_string_equal(w.last->reason, "ErrImagePull");
	world_workload(&w,
		       world_json(workload, "false",
				  CONDITION("Evicted", "True",
					    "DeactivatedDueToRequeuingLimitExceeded", "m")),
		       false);
	world_job(&w, world_json(job, "true", "True"), false);
	world_pod(&w, world_json(pod, 1, "Failed", 0, "terminated", "", "", ""), true);
	assert_non_null(strstr(w.last->obstacle, "docker.io/library/nosuch:1 can't be pulled"));
	assert_non_null(strstr(w.last->cause.text, w.last->obstacle));
	/* The job was admitted again, and now its program exits again and again. */
	world_workload(&w, world_json(workload, "true", ADMITTED), false);
	world_job(&w, world_json(job, "false", "False"), false);
	world_pod(&w,
		  world_json(pod, 2, "Running", 2, "waiting", "CrashLoopBackOff", "back-off",
			     "'terminated':{'exitCode':3}"),
		  false);
	assert_string_equal(w.last->obstacle, "w-0 ended with exit code 3.");
	/* The pod is running, so there is no problem any more. */
	world_pod(&w, world_json(pod, 2, "Running", 3, "running", "", "", ""), false);
	assert_string_equal(w.last->obstacle, "");
	world_clear(&w);
#undef ADMITTED
}

/*
 * `why` first shows what the job waits for. A pod that failed in an earlier attempt is not what
 * delays the job.
 */
static void test_failed_before(void **state)
{
	struct world w = {.kind = test_kind("jobset"),
			  .since = INT64_MAX / 2,
			  .kueue = {.known = true}};
	static const char job[] =
		"{'metadata':{'name':'j','uid':'u','labels':{'kueue.x-k8s.io/queue-name':'team'}},"
		"'spec':{'suspend':%s,'failurePolicy':{'maxRestarts':%d},'replicatedJobs':[{'name':'w',"
		"'template':{'spec':{'completions':1,'backoffLimit':0}}}]},'status':{'conditions':[" CONDITION(
			"Suspended", "%s", "r", "m") "]}}";
	static const char workload[] =
		"{'metadata':{'name':'wl','uid':'w','ownerReferences':[{'kind':'JobSet','uid':'u',"
		"'controller':true}]},'spec':{'active':true},'status':{'conditions':[%s]}}";

	world_job(&w, world_json(job, "false", 2, "False"), false);
	world_workload(&w,
		       world_json(workload, CONDITION("QuotaReserved", "True", "QuotaReserved",
						      "m") "," CONDITION("Admitted", "True",
									 "Admitted", "m")),
		       false);
	world_pod(
		&w,
		world_json(
			"{'metadata':{'name':'j-w-0-0-x','uid':'p1','labels':{"
			"'jobset.sigs.k8s.io/jobset-uid':'u','jobset.sigs.k8s.io/jobset-name':'j',"
			"'jobset.sigs.k8s.io/replicatedjob-name':'w'},'ownerReferences':[{"
			"'apiVersion':'batch/v1','kind':'Job','name':'j-w-0','uid':'b',"
			"'controller':true}],'annotations':{"
			"'batch.kubernetes.io/job-completion-index':'0'}},'spec':{'containers':[{"
			"'name':'w'}]},'status':{'phase':'Failed','containerStatuses':[{'name':'w',"
			"'state':{'terminated':{'exitCode':1,'reason':'Error'}}}]}}"),
		false);
	assert_why(&w, "", "w-0 ended with exit code 1. Retries used: 0; max_retries is 2.\n");
	world_workload(&w,
		       world_json(workload, CONDITION("QuotaReserved", "False", "Pending",
						      "it rains") "," CONDITION("Evicted", "True",
										"Preempted", "m")),
		       false);
	world_job(&w, world_json(job, "true", 2, "True"), false);
	assert_int_equal(w.last->state, SPEC_PENDING);
	assert_why(
		&w, "Queued",
		"The job waits: it has no quota in queue team. Kueue: \"it rains\"; it was preempted at "
		"1970-01-01T00:00:20Z. Before that, w-0 ended with exit code 1. Retries used: 0; "
		"max_retries is 2.\n");
	/* Kueue starts the job again, so the text must not report that the job has no retries. */
	world_job(&w, world_json(job, "true", 0, "True"), false);
	assert_why(
		&w, "Queued",
		"The job waits: it has no quota in queue team. Kueue: \"it rains\"; it was preempted at "
		"1970-01-01T00:00:20Z. Before that, w-0 ended with exit code 1.\n");
	world_clear(&w);
}

/* The position of the job follows the reason, and is shown only while the job waits. */
static void test_place(void **state)
{
	struct world w = WORLD_OF_APP;

	w.kueue.position = 3;
	held(&w, "", "'conditions':[]");
	assert_int_equal(w.last->queue_position, 3);
	assert_why(&w, "InLine",
		   "The job waits: it is in queue team, and Kueue has not tried to admit it yet. "
		   "Its position in the queue is 3.\n");
	/* One job is ahead of it, which may request the same quota and may not fit. */
	w.since = -10 * SECOND;
	held(&w, "", "'conditions':[]");
	assert_why(&w, "InLine",
		   "The job waits: it is in queue team, and Kueue has not tried to admit it yet. "
		   "Other jobs are ahead of it, and Kueue 0.18 and later also skips a job if "
		   "another job with the same request did not fit. Its position in the queue is "
		   "3.\n");
	held(&w, "'active':false", "'conditions':[]");
	assert_int_equal(w.last->queue_position, 0);
	/* The job has its quota now. The positions were requested before that. */
	held(&w, "", "'conditions':[" CONDITION("QuotaReserved", "True", "QuotaReserved", "m") "]");
	assert_int_equal(w.last->queue_position, 0);
	assert_null(strstr(w.last->cause.text, "position"));
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_cluster_queue),
		cmocka_unit_test(test_other_kinds),
		cmocka_unit_test(test_quota_messages),
		cmocka_unit_test(test_no_workload),
		cmocka_unit_test(test_time_is_over),
		cmocka_unit_test(test_requeued_at),
		cmocka_unit_test(test_out_for_good),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_owned),
		cmocka_unit_test(test_managed),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_evictions),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_failed_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
