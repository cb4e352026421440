/* SPDX-License-Identifier: MIT */
/*
 * Jobs and pods that no recording contains: created with vcctl and kubectl, with several replicas
 * per task and several containers, in all kinds of trouble, and with untrustworthy names and
 * numbers. test-stories.c tests what users see of the recorded ones.
 */
#include "tests/unit/spec/job/transitions.h"
#include "tests/unit/spec/kinds/cluster-world.h"

#include "spec/base/limits.h"

#define JOB_META "'metadata':{'name':'j','uid':'u-1','creationTimestamp':'1970-01-01T00:01:40Z'}"

/* Send a job with the given tasks in PHASE. "": without a status. */
static void job(struct world *w, const char *tasks, const char *phase)
{
	const char *status = *phase ? world_json("{'state':{'phase':'%s'}}", phase) : "{}";

	world_job(w,
		  world_json("{" JOB_META ",'spec':{'queue':'q','tasks':[%s]},'status':%s}", tasks,
			     status),
		  false);
}

/* Send a pod of TASK-INDEX with this spec and status, and further annotations. */
static void pod_of(struct world *w, const char *uid, const char *task, unsigned index,
		   unsigned created, const char *notes, const char *spec, const char *status)
{
	world_pod(w,
		  world_json("{'metadata':{'name':'j-%s-%u','uid':'%s','creationTimestamp':"
			     "'1970-01-01T00:00:%02uZ','annotations':{'volcano.sh/task-spec':'%s',"
			     "'volcano.sh/task-index':'%u'%s}},'spec':{%s},'status':%s}",
			     task, index, uid, created, task, index, notes, spec, status),
		  false);
}

/* Send a pod of TASK-INDEX with this status. CREATED is in seconds since 1970, below 60. */
static void pod(struct world *w, const char *uid, const char *task, unsigned index,
		unsigned created, const char *status)
{
	pod_of(w, uid, task, index, created, "",
	       "'nodeName':'n1','containers':[{'name':'main'},{'name':'side'}]", status);
}

#define CONTAINER(name, state) "{'name':'" name "','restartCount':0,'state':" state "}"
/* The status of a pod with these init containers and containers. */
#define PODS(phase, init, containers)                                                              \
	"{'phase':'" phase "','initContainerStatuses':[" init "],'containerStatuses':[" containers \
	"]}"
/* The status of a pod whose only container is in this state. */
#define POD(phase, state) PODS(phase, "", CONTAINER("main", state))
#define RUNNING		  "{'running':{'startedAt':'1970-01-01T00:02:00Z'}}"
#define ENDED(code, reason)                                                                        \
	"{'terminated':{'exitCode':" #code ",'reason':'" reason                                    \
	"','startedAt':'1970-01-01T00:02:00Z','finishedAt':'1970-01-01T00:03:00Z'}}"

static const struct spec_replica *replica(const struct world *w, const char *name)
{
	const struct spec_replica *r = spec_job_replica(w->last, name);

	assert_non_null(r);
	return r;
}

/* Assert that the logs of a replica are WANT: "KEY CONTAINER,...". */
static void assert_logs(const struct world *w, const char *name, const char *want)
{
	const struct spec_replica *r = replica(w, name);
	char text[2048] = "";
	size_t n = 0;

	for (size_t i = 0; i < r->n_logs; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%s", i ? " " : "",
				      r->logs[i].key, r->logs[i].container);
	assert_string_equal(text, want);
}

/* --- jobs of others --- */

static void test_no_torchx(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'ps','replicas':1},{'name':'worker','replicas':3,'minAvailable':2}",
	    "Running");
	assert_string_equal(w.last->app, "j");
	assert_string_equal(w.last->queue, "q");
	assert_int_equal(w.last->n_roles, 2);
	assert_string_equal(w.last->roles[1].name, "worker");
	assert_int_equal(w.last->roles[1].desired, 3);
	assert_int_equal(w.last->roles[1].minimum, 2);
	assert_int_equal(w.last->roles[0].minimum, 1);
	pod(&w, "p1", "worker", 2, 10,
	    PODS("Running", "", LIST2(CONTAINER("side", RUNNING), CONTAINER("main", RUNNING))));
	assert_string_equal(replica(&w, "worker-2")->pod, "j-worker-2");
	assert_string_equal(replica(&w, "worker-2")->node, "n1");
	assert_int_equal(replica(&w, "worker-2")->started, 120 * SECOND);
	assert_logs(&w, "worker-2", "p1.main.0: p1.side.0:side");
	/*
	 * A pod of another task, or with an index beyond the replicas, does not belong to the job.
	 * Neither does a pod without a number: Volcano numbers all pods, by an annotation or at the
	 * end of the name.
	 */
	pod(&w, "p2", "other", 0, 10, "{'phase':'Failed'}");
	pod(&w, "p3", "worker", 7, 10, "{'phase':'Failed'}");
	world_pod(&w,
		  world_json("{'metadata':{'name':'j-ps-0x1','uid':'p4','annotations':{"
			     "'volcano.sh/task-spec':'ps','volcano.sh/task-index':'none'}},'spec':{"
			     "'containers':[{'name':'t'}]},'status':{'phase':'Failed'}}"),
		  false);
	assert_shows(&w, "RUNNING ps-0=PENDING worker-0=PENDING worker-1=PENDING worker-2=RUNNING");
	assert_int_equal(replica(&w, "ps-0")->n_logs, 0);
	world_clear(&w);
}

/*
 * If no container has the task's name, the main one is the pod's default container, or else the
 * first one.
 */
static void test_main_container(void **state)
{
	struct spec_pod_view *v;

	for (int i = 0; i < 3; i++) {
		const char *text = world_json(
			"{'metadata':{'name':'j-w-12','uid':'p','annotations':{"
			"'volcano.sh/task-spec':'w'%s}},'spec':{'containers':[{'name':'a'},"
			"{'name':'b'},{'name':'%s'}]}}",
			i == 1 ? ",'kubectl.kubernetes.io/default-container':'b'" : "",
			i == 2 ? "w" : "c");

		assert_int_equal(
			spec_pod_view_parse(&(struct spec_pod_readers){.v = &spec_volcano.reader,
								       .n = 1},
					    text, strlen(text), &v),
			0);
		assert_string_equal(v->main, i == 0 ? "a" : i == 1 ? "b" : "w");
		assert_string_equal(v->task, "w");
		/* No annotation has the index, so it is taken from the name. */
		assert_int_equal(v->index, 12);
		spec_pod_view_free(v);
	}
}

/* Init containers and their output, and a sidecar that makes the pod fail. */
static void test_containers(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t','replicas':1}", "Running");
	pod(&w, "p", "t", 0, 10,
	    PODS("Pending",
		 CONTAINER("prep",
			   "{'waiting':{'reason':'CrashLoopBackOff','message':'back-off'}}"),
		 CONTAINER("main", "{'waiting':{'reason':'PodInitializing'}}")));
	assert_job(&w, "RUNNING CrashLoopBackOff: t-0: init container prep: back-off");
	assert_string_equal(replica(&w, "t-0")->message, "init container prep: back-off");
	assert_logs(&w, "t-0", "");
	pod(&w, "p", "t", 0, 10,
	    PODS("Failed", CONTAINER("prep", ENDED(0, "Completed")),
		 LIST2(CONTAINER("main", ENDED(0, "Completed")),
		       CONTAINER("side", ENDED(5, "Error")))));
	assert_shows(&w, "RUNNING t-0=FAILED/0/Error");
	assert_string_equal(replica(&w, "t-0")->message, "container side: exit code 5");
	assert_logs(&w, "t-0", "p.main.0: p.prep.0:prep p.side.0:side");
	world_clear(&w);
}

/* --- TorchX's jobs --- */

#define ROLE(task, role, id, more)                                                                 \
	"{'name':'" task "','replicas':1" more ",'template':{'metadata':{'labels':{"               \
	"'torchx.pytorch.org/app-name':'App','torchx.pytorch.org/role-name':'" role                \
	"','torchx.pytorch.org/replica-id':'" id "'}}}}"

static void test_torchx(void **state)
{
	struct world w = {0};

	job(&w,
	    LIST4(ROLE("trainer-0", "Trainer", "0", ""),
		  ROLE("trainer-1", "Trainer", "1", ",'minAvailable':1"),
		  ROLE("trainer-10", "Trainer", "10", ",'minAvailable':0"),
		  ROLE("reader-0", "reader", "0", "")),
	    "Pending");
	assert_string_equal(w.last->app, "App");
	assert_int_equal(w.last->n_roles, 2);
	assert_string_equal(w.last->roles[0].name, "Trainer");
	assert_int_equal(w.last->roles[0].n, 3);
	assert_int_equal(w.last->roles[0].minimum, 2);
	assert_shows(&w, "PENDING Trainer-0=PENDING Trainer-1=PENDING Trainer-10=PENDING "
			 "reader-0=PENDING");
	assert_int_equal(w.last->replicas[2].id, 10);
	assert_int_equal(w.last->replicas[3].role, 1);
	world_clear(&w);
}

/*
 * Labels that somebody has copied, and names with the same normal form. Every replica gets its own
 * directory.
 */
static void test_names_part(void **state)
{
	static const struct {
		const char *tasks, *names;
	} table[] = {
		{LIST2(ROLE("a", "r", "0", ""), ROLE("b", "r", "0", "")), "r-0 r~1-0"},
		/* Tasks in another order than TorchX's. */
		{LIST4(ROLE("a", "r", "2", ""), ROLE("b", "r", "1", ""), ROLE("c", "s", "0", ""),
		       ROLE("d", "r", "4", "")),
		 "r-2 r~1-1 s-0 r~3-4"},
		{LIST2(ROLE("a", "r", "x", ""), ROLE("b", "r", "", "")), "a-0 b-0"},
		/* A user has scaled a task to 0. */
		{LIST3(ROLE("a", "r", "0", ""), ROLE("b", "r", "1", ",'replicas':0"),
		       ROLE("c", "r", "2", "")),
		 "r-0 r-2"},
		{"{'name':'a','replicas':2,'template':{'metadata':{'labels':{"
		 "'torchx.pytorch.org/role-name':'r','torchx.pytorch.org/replica-id':'0'}}}}",
		 "a-0 a-1"},
		{"{'name':'a'},{'name':'a'},{'name':'b'},{'name':'a'}", "a-0 a~1-0 b-0 a~3-0"},
		{"{'name':'A/b'},{'name':'ab'}", "ab-0 ab~1-0"},
		{"{'name':'..'},{'name':''},{'name':'/etc'},{'name':'.x'}",
		 "role-0 role~1-0 etc-0 x-0"},
		{LIST2(ROLE("a", "a-1", "0", ""), ROLE("b", "a", "1", "")) ",{'name':'a-1'}",
		 "a-1-0 a-1 a-1~2-0"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};
		char names[512] = "";
		size_t n = 0;

		job(&w, table[i].tasks, "Pending");
		for (size_t k = 0; k < w.last->n_replicas; k++)
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", k ? " " : "",
					      w.last->replicas[k].name);
		assert_string_equal(names, table[i].names);
		world_clear(&w);
	}
}

static void test_too_many_replicas(void **state)
{
	struct world w = {0};

	job(&w,
	    "{'name':'a','replicas':9000},{'name':'b','replicas':2000000000},"
	    "{'name':'c','replicas':2147483648},{'name':'d','replicas':-4}",
	    "Running");
	assert_int_equal(w.last->n_replicas, SPEC_MAX_REPLICAS);
	assert_int_equal(w.last->roles[1].desired, 2000000000);
	assert_int_equal(w.last->roles[1].n, 1000);
	assert_int_equal(w.last->roles[2].n, 0);
	assert_string_equal(w.last->replicas[9999].name, "b-999");
	world_clear(&w);
}

/* --- trouble --- */

static void test_reasons(void **state)
{
	static const struct {
		const char *status, *shows, *message;
	} table[] = {
		{"{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
		 "'reason':'Unschedulable','message':'0/1 nodes are available'}]}",
		 "PENDING/Unschedulable", "0/1 nodes are available"},
		{POD("Pending", "{'waiting':{'reason':'CreateContainerConfigError','message':"
				"'secret \\'nope\\' not found'}}"),
		 "PENDING/CreateContainerConfigError", "secret \"nope\" not found"},
		/* The pod's phase is Running, but a volume is missing. */
		{POD("Running", "{'waiting':{'reason':'ContainerCreating'}}"), "PENDING", ""},
		{POD("Failed", ENDED(137, "OOMKilled")), "FAILED/137/OOMKilled", "exit code 137"},
		{POD("Failed", "{'terminated':{'exitCode':128,'reason':'StartError','message':"
			       "'exec: \\'x\\': not found','startedAt':'1970-01-01T00:00:00Z'}}"),
		 "FAILED/128/StartError", "exec: \"x\": not found"},
		{"{'phase':'Failed','reason':'Evicted','message':'The node was low on memory',"
		 "'containerStatuses':[{'name':'main','state':{'terminated':{'exitCode':137,"
		 "'reason':'ContainerStatusUnknown','message':'lost'}}}]}",
		 "FAILED/Evicted", "The node was low on memory"},
		{"{'phase':'Unknown'}", "UNKNOWN/Unknown",
		 "the node does not report the state of the pod"},
		{"{'phase':'Sleeping'}", "UNKNOWN/Sleeping",
		 "the node does not report the state of the pod"},
		{"{}", "PENDING", ""},
		{"[]", "PENDING", ""},
		{"{'phase':5,'containerStatuses':{'a':1},'conditions':'x'}", "PENDING", ""},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *shows = text_print("t-0=%s", table[i].shows);
		struct world w = {0};

		job(&w, "{'name':'t'}", "Running");
		pod(&w, "p", "t", 0, 10, table[i].status);
		assert_replicas(&w, shows);
		assert_string_equal(replica(&w, "t-0")->message, table[i].message);
		if (strstr(shows, "StartError"))
			assert_int_equal(replica(&w, "t-0")->started, 0);
		world_clear(&w);
	}
}

/*
 * The job's time limit is that of the templates, if they all have the same one. Each pod has its
 * own deadline.
 */
static void test_time_limit(void **state)
{
#define LIMIT(seconds) "{'name':'t','template':{'spec':{'activeDeadlineSeconds':" seconds "}}}"
	static const struct {
		const char *tasks;
		int64_t limit;
	} jobs[] = {
		{LIMIT("60"), 60},
		{LIMIT("60") ",{'name':'u'}", 0},
		{LIMIT("-60"), 0},
		{LIMIT("'60'"), 0},
	};
	static const struct {
		const char *spec, *since;
		int64_t deadline;
	} pods[] = {
		{"'activeDeadlineSeconds':60", "1970-01-01T00:00:05Z", 65 * SECOND},
		{"'activeDeadlineSeconds':60", "", 0},
		{"'nodeName':'n'", "1970-01-01T00:00:05Z", 0},
		{"'activeDeadlineSeconds':2147483647", "2262-04-11T23:47:16Z", 0},
	};
	struct world w = {0};

	for (size_t i = 0; i < array_size(jobs); i++) {
		job(&w, jobs[i].tasks, "Running");
		assert_int_equal(w.last->time_limit, jobs[i].limit);
		world_clear(&w);
	}
	for (size_t i = 0; i < array_size(pods); i++) {
		job(&w, "{'name':'t'}", "Running");
		pod_of(&w, "p", "t", 0, 10, "", pods[i].spec,
		       world_json("{'phase':'Running','startTime':'%s'}", pods[i].since));
		assert_int_equal(replica(&w, "t-0")->deadline, pods[i].deadline);
		world_clear(&w);
	}
}

/* All containers have ended, but the pod's phase has not changed yet. */
static void test_outcome(void **state)
{
#define WELL		 ENDED(0, "Completed")
#define BADLY		 ENDED(3, "Error")
#define BOTH(main, side) LIST2(CONTAINER("main", main), CONTAINER("side", side))
	static const struct {
		/* The pod's restart policy, and further fields of its container main. */
		const char *policy, *own;
		const char *containers;
		const char *shows;
	} table[] = {
		{"Never", "", BOTH(WELL, WELL), "SUCCEEDED/0/Completed"},
		{"Never", "", BOTH(BADLY, WELL), "FAILED/3/Error"},
		{"Never", "", BOTH(WELL, BADLY), "FAILED/0/Error"},
		{"OnFailure", "", BOTH(WELL, WELL), "SUCCEEDED/0/Completed"},
		/* A container is still running, or will run again. */
		{"Never", "", BOTH(BADLY, RUNNING), "RUNNING/3/Error"},
		{"Never", "", BOTH(RUNNING, BADLY), "RUNNING"},
		{"OnFailure", "", BOTH(BADLY, WELL), "PENDING/3/Error"},
		{"OnFailure", "", BOTH(WELL, BADLY), "RUNNING/0"},
		{"Always", "", BOTH(WELL, WELL), "RUNNING/0"},
		{"Never", ",'restartPolicy':'Always'", BOTH(WELL, WELL), "RUNNING/0"},
		{"Never", ",'restartPolicy':'Never','restartPolicyRules':[{'action':'Restart'}]",
		 BOTH(WELL, WELL), "RUNNING/0"},
		{"Always", ",'restartPolicy':'Never'", BOTH(WELL, WELL), "RUNNING/0"},
		/* It is unknown how a container ended. */
		{"Never", "", BOTH(ENDED(137, "ContainerStatusUnknown"), WELL),
		 "RUNNING/ContainerStatusUnknown"},
		/* The server does not report the other container. */
		{"Never", "", CONTAINER("main", WELL), "RUNNING/0"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *shows = text_print("t-0=%s t-1=PENDING", table[i].shows);
		struct world w = {0};

		job(&w, "{'name':'t','replicas':2}", "Running");
		pod_of(&w, "p", "t", 0, 10, "",
		       world_json("'restartPolicy':'%s','containers':[{'name':'main'%s},"
				  "{'name':'side'}]",
				  table[i].policy, table[i].own),
		       world_json(PODS("Running", "", "%s"), table[i].containers));
		assert_replicas(&w, shows);
		/* Only the controller decides what happens to the job. */
		assert_false(spec_state_is_final(w.last->state));
		world_clear(&w);
	}
}

/* What each phase means for a job without pods. */
static void test_phases(void **state)
{
	static const struct {
		const char *phase, *job, *replica;
	} table[] = {
		{"", "SUBMITTED", "PENDING"},
		{"Pending", "PENDING", "PENDING"},
		{"Running", "RUNNING", "PENDING"},
		{"Restarting", "PENDING", "PENDING"},
		{"Completing", "PENDING", "PENDING"},
		{"Terminating", "PENDING", "PENDING"},
		{"Aborting", "PENDING", "PENDING"},
		{"Aborted", "CANCELLED/suspended Suspended", "PENDING"},
		/* The replicas may have ended in any way. */
		{"Completed", "SUCCEEDED Completed", "UNKNOWN"},
		{"Failed", "FAILED Failed", "UNKNOWN"},
		{"Terminated", "FAILED Terminated", "UNKNOWN"},
		{"Dreaming", "UNKNOWN UnknownPhase: this version of kxfs does not know the phase",
		 "PENDING"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *replicas = text_print("t-0=%s", table[i].replica);
		struct world w = {0};

		job(&w, "{'name':'t'}", table[i].phase);
		assert_job(&w, table[i].job);
		assert_replicas(&w, replicas);
		assert_string_equal(w.last->phase, table[i].phase);
		assert_int_equal(w.last->finished != 0,
				 spec_state_is_final(w.last->state) && !w.last->suspended);
		world_clear(&w);
	}
}

/* Send a job of two replicas that are retried individually, at most twice. */
static void retried_alone(struct world *w, const char *phase, unsigned retries)
{
	world_job(w,
		  world_json("{" JOB_META ",'spec':{'maxRetry':3,'tasks':[{'name':'t','replicas':2,"
			     "'policies':[{'event':'PodFailed','action':'RestartTask'}]}]},"
			     "'status':{'retryCount':%u,'state':{'phase':'%s'}}}",
			     retries, phase),
		  false);
}

/*
 * When no retries are left, Volcano creates one more pod and kills it. The job's result is that of
 * the previous pod.
 */
static void test_last_attempt(void **state)
{
	struct world w = {0};

	retried_alone(&w, "Running", 0);
	pod(&w, "p0", "t", 0, 10, POD("Failed", ENDED(3, "Error")));
	pod(&w, "q0", "t", 1, 10, POD("Running", RUNNING));
	world_pod_gone(&w, 0);
	retried_alone(&w, "Running", 1);
	pod(&w, "p1", "t", 0, 20, POD("Failed", ENDED(4, "Error")));
	world_pod_gone(&w, 2);
	retried_alone(&w, "Restarting", 2);
	pod(&w, "p2", "t", 0, 30, POD("Pending", "{'waiting':{'reason':'ContainerCreating'}}"));
	assert_replicas(&w, "t-0=PENDING/attempt 2 t-1=RUNNING");
	retried_alone(&w, "Failed", 3);
	assert_replicas(&w, "t-0=FAILED/4/Error/attempt 1 t-1=RUNNING");
	assert_int_equal(replica(&w, "t-0")->finished, 180 * SECOND);
	w.pods[3]->meta.deleted = 190 * SECOND;
	world_pod_gone(&w, 3);
	assert_replicas(&w, "t-0=FAILED/4/Error/attempt 1 t-1=RUNNING");
	assert_why(&w, "FAILED Error: t-0 ended with exit code 4. Retries used: 2; max_retries is "
		       "2. Its output is in t-0/log.");
	/* kxfs forgets the pods before the killed one, as after a remount. */
	for (size_t i = 0; i < 3; i++)
		spec_pod_view_free(w.pods[i]);
	w.pods[0] = w.pods[3];
	w.n_pods = 1;
	world_look(&w);
	assert_string_equal(replica(&w, "t-0")->message, "exit code 4");
	world_clear(&w);
}

/*
 * Volcano may find that all pods have ended before it reacts to a failed one. Then it makes no
 * further attempt.
 */
static void test_fewer_attempts(void **state)
{
	struct world w = {0};

	retried_alone(&w, "Failed", 0);
	pod(&w, "p0", "t", 0, 10, POD("Failed", ENDED(3, "Error")));
	assert_why(&w, "FAILED Error: t-0 ended with exit code 3. Retries used: 0; max_retries is "
		       "2. Volcano does not retry a job if all its pods end before Volcano handles "
		       "the failed pod. Its output is in t-0/log.");
	/* Somebody has ended the job. */
	retried_alone(&w, "Terminated", 0);
	assert_why(&w, "FAILED Terminated: The job was ended: Terminated.");
	world_clear(&w);
}

/* The controller's reason counts more than those of pods. */
static void test_controllers_word(void **state)
{
	struct world w = {0};

	world_job(&w,
		  world_json("{" JOB_META ",'spec':{'tasks':[{'name':'t'}]},'status':{'state':{"
			     "'phase':'Pending','reason':'Why','message':'so'}}}"),
		  false);
	pod(&w, "p", "t", 0, 10, "{'phase':'Pending','reason':'x','message':'y'}");
	assert_job(&w, "PENDING Why: so");
	world_clear(&w);
}

/* Send the first pod of TASK as succeeded, in the attempt after RETRY retries. */
static void succeed(struct world *w, const char *task, unsigned retry)
{
	pod_of(w, world_json("p-%s-%u", task, retry), task, 0, 10 + retry,
	       world_json(",'volcano.sh/job-retry-count':'%u'", retry),
	       "'containers':[{'name':'main'}]", POD("Succeeded", WELL));
}

/*
 * A policy may do something other than end a job whose pods have succeeded. Then only the
 * controller's phase counts.
 */
static void test_policy_decides(void **state)
{
	static const struct {
		/* A policy of the first of two tasks, and one of the job. */
		const char *task, *job;
		bool waits;
	} table[] = {
		{"", "", false},
		{"", "{'event':'PodFailed','action':'RestartJob'}", false},
		{"", "{'event':'TaskCompleted','action':'CompleteJob'}", false},
		{"", "{'event':'TaskCompleted','action':'RestartJob'}", true},
		{"", "{'event':'TaskCompleted','action':'TerminateJob'}", true},
		{"", "{'event':'TaskCompleted','action':'AbortJob'}", true},
		{"", "{'events':['PodEvicted','TaskCompleted'],'action':'RestartJob'}", true},
		{"", "{'event':'*','action':'RestartJob'}", true},
		{"", "{'events':['*'],'action':'RestartTask'}", true},
		{"", "{'exitCode':3,'action':'RestartJob'}", false},
		{"{'event':'TaskCompleted','action':'RestartJob'}", "", true},
		/*
		 * The first policy that matches applies. Policies of the task precede those of the
		 * job.
		 */
		{"{'event':'TaskCompleted','action':'RestartJob'}",
		 "{'event':'TaskCompleted','action':'CompleteJob'}", true},
		{"{'event':'PodFailed','action':'CompleteJob'}",
		 "{'event':'TaskCompleted','action':'CompleteJob'},"
		 "{'event':'*','action':'RestartJob'}",
		 false},
		/* These policies are for the other task. */
		{"{'event':'TaskCompleted','action':'CompleteJob'}",
		 "{'event':'TaskCompleted','action':'RestartJob'}", true},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		static const char fmt[] =
			"{'metadata':{'name':'j','uid':'u-1','generation':1},'spec':{'policies':[%s],"
			"'tasks':[{'name':'a','policies':[%s]},{'name':'b'}]},'status':{'state':{"
			"'phase':'%s'}}}";
		struct world w = {0};

		world_job(&w, world_json(fmt, table[i].job, table[i].task, "Pending"), false);
		/* This reuses what was derived from the spec. */
		world_job(&w, world_json(fmt, table[i].job, table[i].task, "Running"), false);
		succeed(&w, "a", 0);
		succeed(&w, "b", 0);
		assert_job(&w, table[i].waits ? "RUNNING" : "SUCCEEDED Completed");
		/* A reader that follows the replica waits for the next attempt. */
		assert_int_equal(replica(&w, "a-0")->finished != 0, !table[i].waits);
		world_job(&w, world_json(fmt, table[i].job, table[i].task, "Completed"), false);
		assert_job(&w, "SUCCEEDED Completed");
		assert_true(spec_job_is_over(w.last));
		world_clear(&w);
	}
}

/* Send a job in PHASE after RETRIES retries. */
static void retried(struct world *w, const char *phase, unsigned retries)
{
	world_job(w,
		  world_json("{" JOB_META ",'spec':{'tasks':[{'name':'t'}],'maxRetry':9},"
			     "'status':{'retryCount':%u,'state':{'phase':'%s'}}}",
			     retries, phase),
		  false);
}

/*
 * Somebody restarts a job whose pods have just succeeded. These pods do not show the result of the
 * next attempt.
 */
static void test_restarted_at_the_end(void **state)
{
	struct world w = {0};

	retried(&w, "Running", 0);
	succeed(&w, "t", 0);
	assert_shows(&w, "SUCCEEDED t-0=SUCCEEDED/0/Completed");
	for (int gone = 0; gone < 2; gone++) {
		retried(&w, "Restarting", 1);
		assert_string_equal(spec_state_name(w.last->state), "PENDING");
		retried(&w, "Pending", 1);
		assert_string_equal(spec_state_name(w.last->state), "PENDING");
		world_pod_gone(&w, 0);
	}
	retried(&w, "Running", 1);
	assert_string_equal(spec_state_name(w.last->state), "RUNNING");
	succeed(&w, "t", 1);
	assert_shows(&w, "SUCCEEDED t-0=SUCCEEDED/0/Completed/attempt 1");
	/* A job that is deleted while it waits for its next attempt counts as cancelled. */
	retried(&w, "Pending", 2);
	w.left = true;
	world_look(&w);
	assert_job(&w, "CANCELLED Deleted: it was removed from the cluster");
	world_clear(&w);
}

/* --- attempts --- */

/* Send a pod whose container has been restarted RESTARTS times. */
static void restarted(struct world *w, unsigned restarts, const char *state)
{
	pod(w, "p", "t", 0, 10,
	    world_json("{'phase':'Running','containerStatuses':[{'name':'main',"
		       "'restartCount':%u,%s}]}",
		       restarts, state));
}

static void test_restarts(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t'}", "Running");
	for (unsigned i = 0; i < 3; i++)
		restarted(&w, i, "'state':" RUNNING);
	/* The container waits between two runs. The latest run has ended. */
	restarted(&w, 2,
		  "'state':{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 10s'}},"
		  "'lastState':{'terminated':{'exitCode':4,'reason':'Error'}}");
	assert_shows(&w, "PENDING t-0=PENDING/4/CrashLoopBackOff/attempt 2");
	assert_string_equal(replica(&w, "t-0")->message, "back-off 10s");
	assert_logs(&w, "t-0", "p.main.0: p.main.1: p.main.2:");
	world_clear(&w);
	/*
	 * The pod is seen for the first time. Of the previous runs, only the last one has a
	 * readable log.
	 */
	job(&w, "{'name':'t'}", "Running");
	restarted(&w, 7, "'state':" RUNNING);
	assert_logs(&w, "t-0", "p.main.6: p.main.7:");
	assert_shows(&w, "RUNNING t-0=RUNNING/attempt 7");
	world_clear(&w);
}

/* The pods of a replica are attempts in the order of their creation, not in that of a list. */
static void test_order_of_attempts(void **state)
{
	struct world w = {0};

	pod(&w, "cc", "t", 0, 30, POD("Running", RUNNING));
	pod(&w, "zz", "t", 0, 10, POD("Failed", ENDED(1, "Error")));
	job(&w, "{'name':'t'}", "Running");
	assert_logs(&w, "t-0", "zz.main.0: cc.main.0:");
	assert_shows(&w, "RUNNING t-0=RUNNING/attempt 1");
	world_clear(&w);
}

/* The pods of a finished job are deleted. What they showed is kept. */
static void test_pods_forgotten(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t','replicas':2}", "Running");
	pod(&w, "p1", "t", 0, 10, POD("Failed", ENDED(3, "Error")));
	pod(&w, "p2", "t", 1, 10, POD("Running", RUNNING));
	job(&w, "{'name':'t','replicas':2}", "Failed");
	while (w.n_pods > 0)
		spec_pod_view_free(w.pods[--w.n_pods]);
	world_look(&w);
	/* It is unknown whether the second pod has ended. */
	assert_shows(&w, "FAILED t-0=FAILED/3/Error t-1=CANCELLED");
	assert_true(replica(&w, "t-1")->finished != 0);
	assert_string_equal(replica(&w, "t-0")->pod, "j-t-0");
	assert_logs(&w, "t-0", "p1.main.0:");
	assert_logs(&w, "t-1", "p2.main.0:");
	assert_string_equal(w.last->message, "t-0: exit code 3");
	world_clear(&w);
}

/*
 * A pod disappeared while it was running. Its replica waits, and counts as cancelled once the job
 * is finished.
 */
static void test_vanished(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t'}", "Running");
	pod(&w, "p", "t", 0, 10, POD("Running", RUNNING));
	world_pod_gone(&w, 0);
	assert_replicas(&w, "t-0=PENDING/Restarting");
	assert_int_equal(replica(&w, "t-0")->finished, 0);
	job(&w, "{'name':'t'}", "Aborted");
	assert_replicas(&w, "t-0=CANCELLED/Deleted");
	assert_string_equal(replica(&w, "t-0")->message, "its pod was deleted");
	assert_int_equal(replica(&w, "t-0")->finished, 0); /* the pod may come back */
	job(&w, "{'name':'t'}", "Terminated");
	assert_replicas(&w, "t-0=CANCELLED/Deleted");
	assert_true(replica(&w, "t-0")->finished != 0);
	world_clear(&w);
}

/* A failed replica has finished, unless a policy may start it again. */
static void test_end_of_replica(void **state)
{
	for (int restarts = 0; restarts < 2; restarts++) {
		struct world w = {0};

		job(&w,
		    world_json("{'name':'t','policies':[{'event':'PodFailed','action':'%s'}]}",
			       restarts ? "RestartJob" : "AbortJob"),
		    "Running");
		pod(&w, "p", "t", 0, 10, POD("Failed", ENDED(3, "Error")));
		assert_shows(&w, "RUNNING t-0=FAILED/3/Error");
		assert_int_equal(replica(&w, "t-0")->finished, restarts ? 0 : 180 * SECOND);
		world_clear(&w);
	}
}

/* Jobs and pods come from two watches, so the end of the job may arrive first. */
static void test_end_of_job_first(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t'}", "Running");
	pod(&w, "p", "t", 0, 10, "{'phase':'Pending'}");
	job(&w, "{'name':'t'}", "Completed");
	assert_shows(&w, "SUCCEEDED t-0=PENDING");
	assert_int_equal(replica(&w, "t-0")->finished, 0);
	pod(&w, "p", "t", 0, 10, POD("Running", RUNNING));
	assert_int_equal(replica(&w, "t-0")->finished, 0);
	pod(&w, "p", "t", 0, 10, POD("Succeeded", WELL));
	assert_int_equal(replica(&w, "t-0")->finished, 180 * SECOND);
	world_clear(&w);
}

/* --- times --- */

static void test_changed(void **state)
{
	struct world w = {0};
	int64_t changed;

	job(&w, "{'name':'t'}", "Running");
	assert_int_equal(w.last->created, 100 * SECOND);
	assert_int_equal(w.last->changed, 100 * SECOND);
	w.now = 1000;
	pod(&w, "p", "t", 0, 10, "{'phase':'Pending'}");
	changed = w.last->changed;
	assert_true(changed > 1000 * SECOND);
	pod(&w, "p", "t", 0, 10, "{'phase':'Pending','qosClass':'Burstable'}");
	assert_int_equal(w.last->changed, changed);
	pod(&w, "p", "t", 0, 10, "{'phase':'Running'}");
	assert_true(w.last->changed > changed);
	world_clear(&w);
}

/* The times are those of the events, although the times of the conditions change within a phase. */
static void test_seen(void **state)
{
	struct world w = {0};

	world_play(&w, "suspend_resume", NULL, NULL);
	assert_transitions(&w.last->transitions, "09:15:27 SUBMITTED \n"
						 "09:15:27 PENDING Pending\n"
						 "09:15:27 RUNNING Pending\n"
						 "09:15:30 RUNNING Running\n"
						 "09:15:33 RUNNING Aborting\n"
						 "09:15:41 RUNNING Restarting\n"
						 "09:15:41 PENDING Restarting\n"
						 "09:15:43 PENDING Pending\n"
						 "09:15:43 RUNNING Pending\n"
						 "09:15:44 RUNNING Running\n"
						 "09:15:56 SUCCEEDED Running\n"
						 "09:15:58 SUCCEEDED Completed\n");
	world_clear(&w);
}

/* Send a running job with these conditions. */
static void conditions(struct world *w, const char *list)
{
	world_job(w,
		  world_json("{'metadata':{'name':'j','uid':'u-1','creationTimestamp':"
			     "'1970-01-01T00:00:10Z'},'spec':{'tasks':[{'name':'a'}]},'status':{"
			     "'state':{'phase':'Running','lastTransitionTime':"
			     "'1970-01-01T00:00:50Z'},'conditions':[%s]}}",
			     list),
		  false);
}

/* The times of the phases that kxfs has not seen are those of the conditions. */
static void test_unseen_phases(void **state)
{
#define CONDITION(phase, second)                                                                   \
	"{'status':'" phase "','lastTransitionTime':'1970-01-01T00:00:" second "Z'}"
	struct world w = {0};

	conditions(&w, LIST2(CONDITION("Pending", "20"), CONDITION("Running", "50")));
	assert_transitions(&w.last->transitions, "00:00:10 SUBMITTED \n"
						 "00:00:20 PENDING Pending\n"
						 "00:00:50 RUNNING Running\n");
	world_clear(&w);
	/* A phase started in the second of the job's creation. */
	conditions(&w, LIST2(CONDITION("Pending", "10"), CONDITION("Running", "50")));
	assert_transitions(&w.last->transitions, "00:00:10 SUBMITTED \n"
						 "00:00:10 PENDING Pending\n"
						 "00:00:50 RUNNING Running\n");
	world_clear(&w);
	/* kxfs did not see the phases between the previous one and the current one. */
	conditions(&w, LIST2(CONDITION("Pending", "20"), CONDITION("Running", "30")));
	conditions(&w, LIST3(CONDITION("Restarting", "45"), CONDITION("Pending", "45"),
			     CONDITION("Running", "50")));
	assert_transitions(&w.last->transitions, "00:00:10 SUBMITTED \n"
						 "00:00:20 PENDING Pending\n"
						 "00:00:30 RUNNING Running\n"
						 "00:00:45 RUNNING Restarting\n"
						 "00:00:45 PENDING Pending\n"
						 "00:00:50 RUNNING Running\n");
	world_clear(&w);
	/*
	 * Its condition Running last changed at 50, but its pod shows that the job started to run
	 * at 30.
	 */
	conditions(&w, "");
	pod(&w, "p", "a", 0, 10,
	    POD("Running", "{'running':{'startedAt':'1970-01-01T00:00:30Z'}}"));
	spec_job_unref(w.last);
	w.last = NULL;
	conditions(&w, LIST2(CONDITION("Pending", "20"), CONDITION("Running", "50")));
	assert_transitions(&w.last->transitions, "00:00:10 SUBMITTED \n"
						 "00:00:20 PENDING Pending\n"
						 "00:00:30 RUNNING Running\n");
	world_clear(&w);
}

/* --- invalid objects --- */

static void test_not_an_object(void **state)
{
	static const char *const bad[] = {
		"",
		"5",
		"[]",
		"{",
		"{}",
		"{'metadata':{'name':'a'}}",
		"{'metadata':{'uid':'a'}}",
		"{'metadata':{'name':'a/b','uid':'u'}}",
		"{'metadata':{'name':'..','uid':'u'}}",
		"{'metadata':{'name':'.a','uid':'u'}}",
		"{'metadata':{'name':'','uid':'u'}}",
		"{'metadata':{'name':'a\\n','uid':'u'}}",
		"{'metadata':{'name':'a?b','uid':'u'}}",
		"{'metadata':{'name':'a','uid':'../u'}}",
		"{'metadata':{'name':5,'uid':'u'}}",
	};

	for (size_t i = 0; i < array_size(bad); i++) {
		const char *text = *bad[i] ? world_json("%s", bad[i]) : "";
		struct spec_job_view *j = NULL;
		struct spec_pod_view *p = NULL;

		assert_int_equal(spec_job_view_parse(&spec_volcano_reader, text, strlen(text), &j),
				 -EINVAL);
		assert_int_equal(
			spec_pod_view_parse(&(struct spec_pod_readers){.v = &spec_volcano.reader,
								       .n = 1},
					    text, strlen(text), &p),
			-EINVAL);
	}
}

/* Whether a container of the pod may be restarted. */
static void test_reruns(void **state)
{
	static const struct {
		const char *spec;
		bool reruns;
	} pods[] = {
		{"", false},
		{"'restartPolicy':'Never','containers':[{'name':'a'}]", false},
		{"'restartPolicy':'OnFailure','containers':[{'name':'a'}]", true},
		{"'restartPolicy':'Always'", true},
		{"'restartPolicy':'Never','initContainers':[{'restartPolicy':'Always'}]", true},
		{"'restartPolicy':'Never','containers':[{},{'restartPolicy':'OnFailure'}]", true},
		{"'restartPolicy':5,'containers':[7]", false},
	};

	for (size_t i = 0; i < array_size(pods); i++) {
		struct world w = {0};

		pod_of(&w, "p", "t", 0, 10, "", pods[i].spec, "{}");
		assert_int_equal(w.pods[0]->reruns, pods[i].reruns);
		world_clear(&w);
	}
}

/* Volcano counts attempts, and counts one more when it gives up. */
static void test_retries(void **state)
{
	static const struct {
		const char *policies;
		int attempts, count;
		unsigned retries, max_retries;
	} table[] = {
		{"", 0, 0, 0, 0},
		{"", 3, 0, 0, 0}, /* the default of the webhook */
		{"", 2, 1, 1, 1},
		{"{'event':'PodFailed','action':'RestartJob'}", 3, 1, 1, 2},
		{"{'event':'PodFailed','action':'RestartTask'}", 3, 2, 2, 2},
		{"{'event':'PodFailed','action':'RestartTask'}", 3, 3, 2, 2},
		{"{'event':'PodFailed','action':'RestartJob'}", 1, 1, 0, 0},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};
		const char *text =
			world_json("{'metadata':{'name':'j','uid':'u','generation':1},'spec':{"
				   "'tasks':[],'policies':[%s],'maxRetry':%d},'status':{"
				   "'retryCount':%d}}",
				   table[i].policies, table[i].attempts, table[i].count);

		world_job(&w, text, false);
		assert_int_equal(w.last->retries, table[i].retries);
		assert_int_equal(w.last->max_retries, table[i].max_retries);
		world_clear(&w);
	}
}

/* A snapshot shows the newest spec and the annotations of kxfs. */
static void test_changed_spec(void **state)
{
	struct world w = {0};
	static const char fmt[] =
		"{'metadata':{'name':'j','uid':'u','annotations':{'kxfs/submitter':'%s',"
		"'kxfs/submission':'1-2','kxfs/appdef':'name: x\\nroles: []'}},"
		"'spec':{'queue':'%s','tasks':[{'name':'%s','replicas':%d}]},"
		"'status':{'state':{'phase':'%s'}}}";

	world_job(&w, world_json(fmt, "ada@login1", "q1", "a", 2, "Pending"), false);
	assert_shows(&w, "PENDING a-0=PENDING a-1=PENDING");
	world_job(&w, world_json(fmt, "eve@login1", "q2", "b", 3, "Running"), false);
	assert_shows(&w, "RUNNING b-0=PENDING b-1=PENDING b-2=PENDING");
	assert_string_equal(w.last->submitter, "eve@login1");
	assert_string_equal(w.last->queue, "q2");
	assert_string_equal(w.last->submission, "1-2");
	assert_true(w.last->has_appdef);
	assert_true(w.last->own);
	assert_string_equal(w.last->backend, "volcano");
	assert_string_equal(w.last->namespace, "ns");
	world_clear(&w);
}

/* Texts from a server are truncated, between characters. */
static void test_long_texts(void **state)
{
	struct world w = {0};
	char text[6000] = "";

	for (int i = 0; i < 2000; i++)
		snprintf(text + 3 * i, sizeof(text) - 3 * (size_t)i, "%s",
			 i < 1999 ? "\xe2\x82\xac" : "");
	job(&w, "{'name':'t'}", "Pending");
	pod(&w, "p", "t", 0, 10,
	    world_json("{'phase':'Pending','reason':'x','message':'%s'}", text));
	assert_int_equal(strlen(replica(&w, "t-0")->message), 2046);
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_torchx),
		cmocka_unit_test(test_main_container),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_torchx),
		cmocka_unit_test(test_names_part),
		cmocka_unit_test(test_too_many_replicas),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_time_limit),
		cmocka_unit_test(test_outcome),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_last_attempt),
		cmocka_unit_test(test_fewer_attempts),
		cmocka_unit_test(test_controllers_word),
		cmocka_unit_test(test_policy_decides),
		cmocka_unit_test(test_restarted_at_the_end),
		cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_order_of_attempts),
		cmocka_unit_test(test_pods_forgotten),
		cmocka_unit_test(test_vanished),
		cmocka_unit_test(test_end_of_replica),
		cmocka_unit_test(test_end_of_job_first),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_seen),
		cmocka_unit_test(test_unseen_phases),
		cmocka_unit_test(test_not_an_object),
		cmocka_unit_test(test_reruns),
		cmocka_unit_test(test_retries),
		cmocka_unit_test(test_changed_spec),
		cmocka_unit_test(test_long_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
