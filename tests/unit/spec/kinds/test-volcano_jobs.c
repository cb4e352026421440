/* SPDX-License-Identifier: MIT */
/*
 * Jobs and pods that no recording contains: created with vcctl and kubectl, with several replicas
 * per task and several containers, in all kinds of trouble, and with untrustworthy names and
 * numbers.
 */
#include "tests/unit/spec/kinds/cluster-world.h"

#include "spec/base/limits.h"
#include "spec/job/status.h"

/* Format FMT, with ' in place of ". The result is one of a few buffers that are reused in turn. */
static const char *json(const char *fmt, ...) printf_like(1, 2);
static const char *json(const char *fmt, ...)
{
	static char buffers[8][8192];
	static unsigned next;
	char *ret = buffers[next++ % array_size(buffers)];
	char *text cleanup_free = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	assert_in_range(n, 1, sizeof(buffers[0]) - 1);
	snprintf(ret, sizeof(buffers[0]), "%s", text);
	for (char *p = ret; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	return ret;
}

#define JOB_META "'metadata':{'name':'j','uid':'u-1','creationTimestamp':'1970-01-01T00:01:40Z'}"

/* Send a job with the given tasks in PHASE. "": without a status. */
static void job(struct world *w, const char *tasks, const char *phase)
{
	const char *status = *phase ? json("{'state':{'phase':'%s'}}", phase) : "{}";

	world_job(w,
		  json("{" JOB_META ",'spec':{'queue':'q','tasks':[%s]},'status':%s}", tasks,
		       status),
		  false);
}

/* Send a pod of TASK-INDEX with this status. CREATED is in seconds since 1970, below 60. */
static void pod(struct world *w, const char *uid, const char *task, unsigned index,
		unsigned created, const char *status)
{
	world_pod(
		w,
		json("{'metadata':{'name':'j-%s-%u','uid':'%s','creationTimestamp':"
		     "'1970-01-01T00:00:%02uZ','annotations':{'volcano.sh/task-spec':'%s',"
		     "'volcano.sh/task-index':'%u'}},'spec':{'nodeName':'n1','containers':[{'name':"
		     "'main'},{'name':'side'}]},'status':%s}",
		     task, index, uid, created, task, index, status),
		false);
}

static const char *container(const char *name, const char *state, unsigned restarts)
{
	return json("{'name':'%s','restartCount':%u,'state':%s}", name, restarts, state);
}

#define RUNNING "{'running':{'startedAt':'1970-01-01T00:02:00Z'}}"
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

static void assert_replica(const struct world *w, const char *name, enum spec_state state,
			   const char *reason, const char *message)
{
	const struct spec_replica *r = replica(w, name);

	assert_string_equal(spec_state_name(r->state), spec_state_name(state));
	assert_string_equal(r->reason, reason);
	assert_string_equal(r->message, message);
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
	    json("{'phase':'Running','containerStatuses':[%s,%s]}", container("side", RUNNING, 0),
		 container("main", RUNNING, 0)));
	assert_string_equal(strrchr(w.told, 'w'), "worker-2=RUNNING\n");
	assert_string_equal(replica(&w, "worker-2")->pod, "j-worker-2");
	assert_string_equal(replica(&w, "worker-2")->node, "n1");
	assert_int_equal(replica(&w, "worker-2")->started, 120 * SECOND);
	assert_logs(&w, "worker-2", "p1.main.0: p1.side.0:side");
	/*
	 * A pod of another task, or with an index beyond the replicas, does not belong to the job.
	 */
	pod(&w, "p2", "other", 0, 10, "{'phase':'Failed'}");
	pod(&w, "p3", "worker", 7, 10, "{'phase':'Failed'}");
	assert_int_equal(w.last->n_replicas, 4);
	assert_replica(&w, "worker-0", SPEC_PENDING, "", "");
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
		const char *text =
			json("{'metadata':{'name':'j-w-12','uid':'p','annotations':{"
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
	    json("{'phase':'Pending','initContainerStatuses':[%s],'containerStatuses':[%s]}",
		 container("prep", "{'waiting':{'reason':'CrashLoopBackOff','message':'back-off'}}",
			   0),
		 container("main", "{'waiting':{'reason':'PodInitializing'}}", 0)));
	assert_replica(&w, "t-0", SPEC_PENDING, "CrashLoopBackOff",
		       "init container prep: back-off");
	assert_string_equal(w.last->message, "t-0: init container prep: back-off");
	assert_logs(&w, "t-0", "");
	pod(&w, "p", "t", 0, 10,
	    json("{'phase':'Failed','initContainerStatuses':[%s],'containerStatuses':[%s,%s]}",
		 container("prep", ENDED(0, "Completed"), 0),
		 container("main", ENDED(0, "Completed"), 0),
		 container("side", ENDED(5, "Error"), 0)));
	assert_replica(&w, "t-0", SPEC_FAILED, "Error", "container side: exit code 5");
	assert_int_equal(replica(&w, "t-0")->exit_code, 0);
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
	const char *names[] = {"Trainer-0", "Trainer-1", "Trainer-10", "reader-0"};

	job(&w,
	    ROLE("trainer-0", "Trainer", "0", "") "," ROLE(
		    "trainer-1", "Trainer", "1",
		    ",'minAvailable':1") "," ROLE("trainer-10", "Trainer", "10",
						  ",'minAvailable':0") "," ROLE("reader-0",
										"reader", "0", ""),
	    "Pending");
	assert_string_equal(w.last->app, "App");
	assert_int_equal(w.last->n_roles, 2);
	assert_string_equal(w.last->roles[0].name, "Trainer");
	assert_int_equal(w.last->roles[0].n, 3);
	assert_int_equal(w.last->roles[0].minimum, 2);
	for (size_t i = 0; i < array_size(names); i++)
		assert_string_equal(w.last->replicas[i].name, names[i]);
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
		{ROLE("a", "r", "0", "") "," ROLE("b", "r", "0", ""), "r-0 r~1-0"},
		/* Tasks in another order than TorchX's. */
		{ROLE("a", "r", "2", "") "," ROLE("b", "r", "1", "") "," ROLE("c", "s", "0",
									      "") "," ROLE("d", "r",
											   "4", ""),
		 "r-2 r~1-1 s-0 r~3-4"},
		{ROLE("a", "r", "x", "") "," ROLE("b", "r", "", ""), "a-0 b-0"},
		/* A user has scaled a task to 0. */
		{ROLE("a", "r", "0", "") "," ROLE("b", "r", "1", ",'replicas':0") "," ROLE("c", "r",
											   "2", ""),
		 "r-0 r-2"},
		{"{'name':'a','replicas':2,'template':{'metadata':{'labels':{"
		 "'torchx.pytorch.org/role-name':'r','torchx.pytorch.org/replica-id':'0'}}}}",
		 "a-0 a-1"},
		{"{'name':'a'},{'name':'a'},{'name':'b'},{'name':'a'}", "a-0 a~1-0 b-0 a~3-0"},
		{"{'name':'A/b'},{'name':'ab'}", "ab-0 ab~1-0"},
		{"{'name':'..'},{'name':''},{'name':'/etc'},{'name':'.x'}",
		 "role-0 role~1-0 etc-0 x-0"},
		{ROLE("a", "a-1", "0", "") "," ROLE("b", "a", "1", "") ",{'name':'a-1'}",
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
	    "{'name':'a','replicas':9000},{'name':'b','replicas':2000000000},{'name':'c','replicas'"
	    ":"
	    "2147483648},{'name':'d','replicas':-4}",
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
		const char *status;
		enum spec_state state;
		int exit_code;
		const char *reason, *message;
	} table[] = {
		{"{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason'"
		 ":"
		 "'Unschedulable','message':'0/1 nodes are available'}]}",
		 SPEC_PENDING, -1, "Unschedulable", "0/1 nodes are available"},
		{"{'phase':'Pending','containerStatuses':[{'name':'main','state':{'waiting':{'"
		 "reason':"
		 "'CreateContainerConfigError','message':'secret \\'nope\\' not found'}}}]}",
		 SPEC_PENDING, -1, "CreateContainerConfigError", "secret \"nope\" not found"},
		/* The pod's phase is Running, but a volume is missing. */
		{"{'phase':'Running','containerStatuses':[{'name':'main','state':{'waiting':{'"
		 "reason':"
		 "'ContainerCreating'}}}]}",
		 SPEC_PENDING, -1, "", ""},
		{"{'phase':'Failed','containerStatuses':[{'name':'main','state':{'terminated':{"
		 "'exitCode':137,'reason':'OOMKilled','startedAt':'2026-11-21T09:00:00Z'}}}]}",
		 SPEC_FAILED, 137, "OOMKilled", "exit code 137"},
		{"{'phase':'Failed','containerStatuses':[{'name':'main','state':{'terminated':{"
		 "'exitCode':128,'reason':'StartError','message':'exec: \\'x\\': not found',"
		 "'startedAt':'1970-01-01T00:00:00Z'}}}]}",
		 SPEC_FAILED, 128, "StartError", "exec: \"x\": not found"},
		{"{'phase':'Failed','reason':'Evicted','message':'The node was low on memory',"
		 "'containerStatuses':[{'name':'main','state':{'terminated':{'exitCode':137,'"
		 "reason':"
		 "'ContainerStatusUnknown','message':'lost'}}}]}",
		 SPEC_FAILED, -1, "Evicted", "The node was low on memory"},
		{"{'phase':'Unknown'}", SPEC_UNKNOWN, -1, "Unknown",
		 "the node does not report the state of the pod"},
		{"{'phase':'Sleeping'}", SPEC_UNKNOWN, -1, "Sleeping",
		 "the node does not report the state of the pod"},
		{"{}", SPEC_PENDING, -1, "", ""},
		{"[]", SPEC_PENDING, -1, "", ""},
		{"{'phase':5,'containerStatuses':{'a':1},'conditions':'x'}", SPEC_PENDING, -1, "",
		 ""},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};

		job(&w, "{'name':'t'}", "Running");
		pod(&w, "p", "t", 0, 10, table[i].status);
		assert_replica(&w, "t-0", table[i].state, table[i].reason, table[i].message);
		assert_int_equal(replica(&w, "t-0")->exit_code, table[i].exit_code);
		if (streq(table[i].reason, "StartError"))
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
	static const struct {
		const char *tasks;
		int64_t limit;
	} table[] = {
		{"{'name':'t','template':{'spec':{'activeDeadlineSeconds':60}}}", 60},
		{"{'name':'t','template':{'spec':{'activeDeadlineSeconds':60}}},{'name':'u'}", 0},
		{"{'name':'t','template':{'spec':{'activeDeadlineSeconds':-60}}}", 0},
		{"{'name':'t','template':{'spec':{'activeDeadlineSeconds':'60'}}}", 0},
	};
	static const struct {
		const char *spec, *since;
		int64_t deadline;
	} pods[] = {
		{"'activeDeadlineSeconds':60", "1970-01-01T00:00:05Z", 65 * INT64_C(1000000000)},
		{"'activeDeadlineSeconds':60", "", 0},
		{"'nodeName':'n'", "1970-01-01T00:00:05Z", 0},
		{"'activeDeadlineSeconds':2147483647", "2262-04-11T23:47:16Z", 0},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};

		job(&w, table[i].tasks, "Running");
		assert_int_equal(w.last->time_limit, table[i].limit);
		world_clear(&w);
	}
	for (size_t i = 0; i < array_size(pods); i++) {
		struct world w = {0};

		job(&w, "{'name':'t'}", "Running");
		world_pod(
			&w,
			json("{'metadata':{'name':'j-t-0','uid':'p','annotations':{"
			     "'volcano.sh/task-spec':'t','volcano.sh/task-index':'0'}},'spec':{%s},"
			     "'status':{'phase':'Running','startTime':'%s'}}",
			     pods[i].spec, pods[i].since),
			false);
		assert_int_equal(replica(&w, "t-0")->deadline, pods[i].deadline);
		world_clear(&w);
	}
}

/*
 * Volcano numbers all pods, by an annotation or at the end of the name. A pod without a number is
 * not Volcano's, even if its owner reference names the job.
 */
static void test_pod_without_number(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t','replicas':2}", "Running");
	world_pod(&w,
		  json("{'metadata':{'name':'j-t-0x1','uid':'p','annotations':{"
		       "'volcano.sh/task-spec':'t','volcano.sh/task-index':'none'}},'spec':{"
		       "'containers':[{'name':'t'}]},'status':{'phase':'Failed'}}"),
		  false);
	assert_int_equal(replica(&w, "t-0")->n_logs, 0);
	assert_int_equal(replica(&w, "t-0")->state, SPEC_PENDING);
	world_clear(&w);
}

/* All containers have ended, but the pod's phase has not changed yet. */
static void test_outcome(void **state)
{
	const char *well = ENDED(0, "Completed"), *badly = ENDED(3, "Error");
	const char *unknown = ENDED(137, "ContainerStatusUnknown");
	const struct {
		/* The pod's restart policy, and further fields of its container main. */
		const char *policy, *own;
		const char *main, *side;
		enum spec_state state;
		const char *reason;
	} table[] = {
		{"Never", "", well, well, SPEC_SUCCEEDED, "Completed"},
		{"Never", "", badly, well, SPEC_FAILED, "Error"},
		{"Never", "", well, badly, SPEC_FAILED, "Error"},
		{"OnFailure", "", well, well, SPEC_SUCCEEDED, "Completed"},
		/* A container is still running, or will run again. */
		{"Never", "", badly, RUNNING, SPEC_RUNNING, "Error"},
		{"Never", "", RUNNING, badly, SPEC_RUNNING, ""},
		{"OnFailure", "", badly, well, SPEC_PENDING, "Error"},
		{"OnFailure", "", well, badly, SPEC_RUNNING, ""},
		{"Always", "", well, well, SPEC_RUNNING, ""},
		{"Never", ",'restartPolicy':'Always'", well, well, SPEC_RUNNING, ""},
		{"Never", ",'restartPolicy':'Never','restartPolicyRules':[{'action':'Restart'}]",
		 well, well, SPEC_RUNNING, ""},
		{"Always", ",'restartPolicy':'Never'", well, well, SPEC_RUNNING, ""},
		/* It is unknown how the container ended. */
		{"Never", "", unknown, well, SPEC_RUNNING, "ContainerStatusUnknown"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};

		job(&w, "{'name':'t','replicas':2}", "Running");
		world_pod(&w,
			  json("{'metadata':{'name':'p','uid':'p','creationTimestamp':"
			       "'1970-01-01T00:00:10Z','annotations':{'volcano.sh/task-spec':'t',"
			       "'volcano.sh/task-index':'0'}},'spec':{'restartPolicy':'%s',"
			       "'containers':[{'name':'main'%s},{'name':'side'}]},'status':{"
			       "'phase':'Running','containerStatuses':[%s,%s]}}",
			       table[i].policy, table[i].own, container("main", table[i].main, 0),
			       container("side", table[i].side, 0)),
			  false);
		assert_string_equal(spec_state_name(replica(&w, "t-0")->state),
				    spec_state_name(table[i].state));
		assert_string_equal(replica(&w, "t-0")->reason, table[i].reason);
		/* Only the controller decides what happens to the job. */
		assert_false(spec_state_is_final(w.last->state));
		world_clear(&w);
	}
}

/* The server reports only one of the two containers. */
static void test_outcome_unseen(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t'}", "Running");
	world_pod(&w,
		  json("{'metadata':{'name':'p','uid':'p','annotations':{'volcano.sh/task-spec':"
		       "'t','volcano.sh/task-index':'0'}},'spec':{'restartPolicy':'Never',"
		       "'containers':[{'name':'main'},{'name':'side'}]},'status':{"
		       "'phase':'Running','containerStatuses':[%s]}}",
		       container("main", ENDED(0, "Completed"), 0)),
		  false);
	assert_int_equal(replica(&w, "t-0")->state, SPEC_RUNNING);
	world_clear(&w);
}

static void test_phases(void **state)
{
	static const struct {
		const char *phase;
		enum spec_state state;
		bool suspended;
		const char *reason;
	} table[] = {
		{"", SPEC_SUBMITTED, false, ""},
		{"Pending", SPEC_PENDING, false, ""},
		{"Running", SPEC_RUNNING, false, ""},
		{"Restarting", SPEC_PENDING, false, ""},
		/* None of the job's pods ever ran. */
		{"Completing", SPEC_PENDING, false, ""},
		{"Terminating", SPEC_PENDING, false, ""},
		{"Aborting", SPEC_PENDING, false, ""},
		{"Aborted", SPEC_CANCELLED, true, "Suspended"},
		{"Completed", SPEC_SUCCEEDED, false, "Completed"},
		{"Failed", SPEC_FAILED, false, "Failed"},
		{"Terminated", SPEC_FAILED, false, "Terminated"},
		{"Dreaming", SPEC_UNKNOWN, false, "UnknownPhase"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};

		job(&w, "{'name':'t'}", table[i].phase);
		assert_string_equal(spec_state_name(w.last->state),
				    spec_state_name(table[i].state));
		assert_string_equal(w.last->phase, table[i].phase);
		assert_string_equal(w.last->reason, table[i].reason);
		assert_int_equal(w.last->suspended, table[i].suspended);
		assert_int_equal(w.last->finished != 0,
				 spec_state_is_final(table[i].state) && !table[i].suspended);
		world_clear(&w);
	}
}

static void assert_why(const struct world *w, const char *want)
{
	char *text cleanup_free = NULL;
	size_t len;

	spec_status_why(w->last, ~0u, &text, &len);
	assert_string_equal(text, want);
}

/* Send a job of two replicas that are retried individually, at most twice. */
static void retried_alone(struct world *w, const char *phase, unsigned retries)
{
	world_job(
		w,
		json("{" JOB_META
		     ",'spec':{'maxRetry':3,'tasks':[{'name':'t','replicas':2,'policies'"
		     ":[{'event':'PodFailed','action':'RestartTask'}]}]},'status':{'retryCount':%u,"
		     "'state':{'phase':'%s'}}}",
		     retries, phase),
		false);
}

static void gone(struct world *w, const char *uid)
{
	for (size_t i = 0; i < w->n_pods; i++)
		if (streq(w->pods[i]->meta.uid, uid))
			w->pods[i]->gone = true;
	world_look(w);
}

/*
 * When no retries are left, Volcano creates one more pod and kills it. The job's result is that of
 * the previous pod.
 */
static void test_last_attempt(void **state)
{
	static const char failed[] = "{'phase':'Failed','containerStatuses':[%s]}";
	struct world w = {0};

	retried_alone(&w, "Running", 0);
	pod(&w, "p0", "t", 0, 10, json(failed, container("main", ENDED(3, "Error"), 0)));
	pod(&w, "q0", "t", 1, 10,
	    json("{'phase':'Running','containerStatuses':[%s]}", container("main", RUNNING, 0)));
	gone(&w, "p0");
	retried_alone(&w, "Running", 1);
	pod(&w, "p1", "t", 0, 20, json(failed, container("main", ENDED(4, "Error"), 0)));
	gone(&w, "p1");
	retried_alone(&w, "Restarting", 2);
	pod(&w, "p2", "t", 0, 30,
	    json("{'phase':'Pending','containerStatuses':[%s]}",
		 container("main", "{'waiting':{'reason':'ContainerCreating'}}", 0)));
	assert_int_equal(replica(&w, "t-0")->attempt, 2);
	retried_alone(&w, "Failed", 3);
	assert_replica(&w, "t-0", SPEC_FAILED, "Error", "exit code 4");
	assert_int_equal(replica(&w, "t-0")->attempt, 1);
	assert_int_equal(replica(&w, "t-0")->finished, 180 * SECOND);
	w.pods[3]->meta.deleted = 190 * SECOND;
	gone(&w, "p2");
	assert_replica(&w, "t-0", SPEC_FAILED, "Error", "exit code 4");
	assert_string_equal(w.last->reason, "Error");
	assert_why(&w,
		   "t-0 ended with exit code 4. Retries used: 2; max_retries is 2. Its output is "
		   "in t-0/log.\n");
	/* kxfs forgets the pods before the killed one, as after a remount. */
	for (size_t i = 0; i < 3; i++)
		spec_pod_view_free(w.pods[i]);
	w.pods[0] = w.pods[3];
	w.n_pods = 1;
	world_look(&w);
	assert_replica(&w, "t-0", SPEC_FAILED, "Error", "exit code 4");
	world_clear(&w);
}

/*
 * Volcano may find that all pods have ended before it reacts to a failed one. Then it makes no
 * further attempt.
 */
static void test_fewer_attempts(void **state)
{
	static const char failed[] = "{'phase':'Failed','containerStatuses':[%s]}";
	struct world w = {0};

	retried_alone(&w, "Failed", 0);
	pod(&w, "p0", "t", 0, 10, json(failed, container("main", ENDED(3, "Error"), 0)));
	assert_why(&w,
		   "t-0 ended with exit code 3. Retries used: 0; max_retries is 2. Volcano does "
		   "not retry a job if all its pods end before Volcano handles the failed pod. "
		   "Its output is in t-0/log.\n");
	/* Somebody has ended the job. */
	retried_alone(&w, "Terminated", 0);
	assert_why(&w, "The job was ended: Terminated.\n");
	world_clear(&w);
}

/* The controller's phase counts more than the pods' states. */
static void test_controllers_word(void **state)
{
	struct world w = {0};

	world_job(&w,
		  json("{" JOB_META ",'spec':{'tasks':[{'name':'t'}]},'status':{'state':{'phase':"
		       "'Pending','reason':'Why','message':'so'}}}"),
		  false);
	pod(&w, "p", "t", 0, 10, "{'phase':'Pending','reason':'x','message':'y'}");
	assert_string_equal(w.last->reason, "Why");
	assert_string_equal(w.last->message, "so");
	world_clear(&w);
}

/* All pods have succeeded, but the job's phase has not changed yet. */
static void test_pods_decide(void **state)
{
	struct world w = {0};
	const char *ended = json("{'phase':'Succeeded','containerStatuses':[%s]}",
				 container("main", ENDED(0, "Completed"), 0));

	job(&w, "{'name':'t','replicas':2}", "Running");
	pod(&w, "p1", "t", 0, 10, ended);
	assert_int_equal(w.last->state, SPEC_RUNNING);
	pod(&w, "p2", "t", 1, 10,
	    json("{'phase':'Succeeded','containerStatuses':[%s]}",
		 container("main", ENDED(0, "Completed"), 0)));
	assert_int_equal(w.last->state, SPEC_SUCCEEDED);
	assert_string_equal(w.last->phase, "Running");
	assert_int_equal(w.last->finished, 180 * SECOND);
	world_clear(&w);
}

/*
 * Send the first pod of TASK as succeeded, in the attempt after RETRY retries. GONE: it was
 * deleted.
 */
static void succeed(struct world *w, const char *task, unsigned retry, bool gone)
{
	world_pod(w,
		  json("{'metadata':{'name':'j-%s-0','uid':'p-%s-0-%u','creationTimestamp':"
		       "'1970-01-01T00:00:%02uZ','annotations':{'volcano.sh/task-spec':'%s',"
		       "'volcano.sh/task-index':'0','volcano.sh/job-retry-count':'%u'},"
		       "'ownerReferences':[{'uid':'u-1','controller':true}]},'spec':{'containers':["
		       "{'name':'main'}]},'status':{'phase':'Succeeded','containerStatuses':[%s]}}",
		       task, task, retry, 10 + retry, task, retry,
		       container("main", ENDED(0, "Completed"), 0)),
		  gone);
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
		struct world w = {0};
		enum spec_state before = table[i].waits ? SPEC_RUNNING : SPEC_SUCCEEDED;
		/* The second iteration reuses what was derived from the spec. */
		static const char *const phases[] = {"Pending", "Running", "Completed"};

		for (size_t k = 0; k < array_size(phases); k++) {
			world_job(
				&w,
				json("{'metadata':{'name':'j','uid':'u-1','generation':1},'spec':{"
				     "'policies':[%s],'tasks':[{'name':'a','policies':[%s]},"
				     "{'name':'b'}]},'status':{'state':{'phase':'%s'}}}",
				     table[i].job, table[i].task, phases[k]),
				false);
			if (k != 1)
				continue;
			succeed(&w, "a", 0, false);
			succeed(&w, "b", 0, false);
			assert_string_equal(spec_state_name(w.last->state),
					    spec_state_name(before));
			/* A reader that follows the replica waits for the next attempt. */
			assert_int_equal(replica(&w, "a-0")->finished != 0, !table[i].waits);
		}
		assert_int_equal(w.last->state, SPEC_SUCCEEDED);
		assert_true(spec_job_is_over(w.last));
		world_clear(&w);
	}
}

/* Send a job in PHASE after RETRIES retries. */
static void retried(struct world *w, const char *phase, unsigned retries)
{
	world_job(w,
		  json("{" JOB_META ",'spec':{'tasks':[{'name':'t'}],'maxRetry':9},"
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
	succeed(&w, "t", 0, false);
	assert_int_equal(w.last->state, SPEC_SUCCEEDED);
	for (int gone = 0; gone < 2; gone++) {
		retried(&w, "Restarting", 1);
		assert_string_equal(spec_state_name(w.last->state), "PENDING");
		retried(&w, "Pending", 1);
		assert_string_equal(spec_state_name(w.last->state), "PENDING");
		succeed(&w, "t", 0, true);
	}
	retried(&w, "Running", 1);
	assert_string_equal(spec_state_name(w.last->state), "RUNNING");
	succeed(&w, "t", 1, false);
	assert_string_equal(spec_state_name(w.last->state), "SUCCEEDED");
	/* A job that is deleted while it waits for its next attempt counts as cancelled. */
	retried(&w, "Pending", 2);
	w.left = true;
	world_look(&w);
	assert_string_equal(spec_state_name(w.last->state), "CANCELLED");
	world_clear(&w);
}

/* --- attempts --- */

static void test_restarts(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t'}", "Running");
	for (unsigned i = 0; i < 3; i++)
		pod(&w, "p", "t", 0, 10,
		    json("{'phase':'Running','containerStatuses':[%s]}",
			 container("main", RUNNING, i)));
	/* The container waits between two runs. The latest run has ended. */
	pod(&w, "p", "t", 0, 10,
	    json("{'phase':'Running','containerStatuses':[{'name':'main','restartCount':2,'state':{"
		 "'waiting':{'reason':'CrashLoopBackOff','message':'back-off 10s'}},'lastState':{"
		 "'terminated':{'exitCode':4,'reason':'Error'}}}]}"));
	assert_replica(&w, "t-0", SPEC_PENDING, "CrashLoopBackOff", "back-off 10s");
	assert_int_equal(replica(&w, "t-0")->exit_code, 4);
	assert_int_equal(replica(&w, "t-0")->attempt, 2);
	assert_logs(&w, "t-0", "p.main.0: p.main.1: p.main.2:");
	world_clear(&w);
	/*
	 * The pod is seen for the first time. Of the previous runs, only the last one has a
	 * readable log.
	 */
	job(&w, "{'name':'t'}", "Running");
	pod(&w, "p", "t", 0, 10,
	    json("{'phase':'Running','containerStatuses':[%s]}", container("main", RUNNING, 7)));
	assert_logs(&w, "t-0", "p.main.6: p.main.7:");
	assert_int_equal(replica(&w, "t-0")->attempt, 7);
	world_clear(&w);
}

/*
 * The pods of a replica are attempts in the order of their creation, in whatever order they arrive.
 */
static void test_order_of_attempts(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t'}", "Running");
	pod(&w, "zz", "t", 0, 10,
	    json("{'phase':'Failed','containerStatuses':[%s]}",
		 container("main", ENDED(1, "Error"), 0)));
	pod(&w, "cc", "t", 0, 30,
	    json("{'phase':'Running','containerStatuses':[%s]}", container("main", RUNNING, 0)));
	assert_logs(&w, "t-0", "zz.main.0: cc.main.0:");
	assert_replica(&w, "t-0", SPEC_RUNNING, "", "");
	assert_int_equal(replica(&w, "t-0")->attempt, 1);
	assert_int_equal(replica(&w, "t-0")->exit_code, -1);
	world_clear(&w);
}

/* The pods of a finished job are deleted. What they showed is kept. */
static void test_pods_forgotten(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t','replicas':2}", "Running");
	pod(&w, "p1", "t", 0, 10,
	    json("{'phase':'Failed','containerStatuses':[%s]}",
		 container("main", ENDED(3, "Error"), 0)));
	pod(&w, "p2", "t", 1, 10,
	    json("{'phase':'Running','containerStatuses':[%s]}", container("main", RUNNING, 0)));
	job(&w, "{'name':'t','replicas':2}", "Failed");
	/* It is unknown whether the second pod has ended. */
	while (w.n_pods > 0)
		spec_pod_view_free(w.pods[--w.n_pods]);
	job(&w, "{'name':'t','replicas':2}", "Failed");
	assert_replica(&w, "t-0", SPEC_FAILED, "Error", "exit code 3");
	assert_int_equal(replica(&w, "t-0")->exit_code, 3);
	assert_string_equal(replica(&w, "t-0")->pod, "j-t-0");
	assert_int_equal(replica(&w, "t-1")->state, SPEC_CANCELLED);
	assert_true(replica(&w, "t-1")->finished != 0);
	assert_logs(&w, "t-0", "p1.main.0:");
	assert_logs(&w, "t-1", "p2.main.0:");
	assert_string_equal(w.last->message, "t-0: exit code 3");
	world_clear(&w);
}

/* A finished job is seen for the first time, without its pods. */
static void test_nothing_known(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t'}", "Completed");
	assert_int_equal(w.last->state, SPEC_SUCCEEDED);
	assert_int_equal(replica(&w, "t-0")->state, SPEC_UNKNOWN);
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
	pod(&w, "p", "t", 0, 10,
	    json("{'phase':'Running','containerStatuses':[%s]}", container("main", RUNNING, 0)));
	w.pods[0]->gone = true;
	world_look(&w);
	assert_replica(&w, "t-0", SPEC_PENDING, "Restarting", "");
	assert_int_equal(replica(&w, "t-0")->finished, 0);
	job(&w, "{'name':'t'}", "Aborted");
	assert_replica(&w, "t-0", SPEC_CANCELLED, "Deleted", "its pod was deleted");
	assert_int_equal(replica(&w, "t-0")->finished, 0); /* the pod may come back */
	job(&w, "{'name':'t'}", "Terminated");
	assert_replica(&w, "t-0", SPEC_CANCELLED, "Deleted", "its pod was deleted");
	assert_true(replica(&w, "t-0")->finished != 0);
	world_clear(&w);
}

/* A failed replica has finished, unless a policy may start it again. */
static void test_end_of_replica(void **state)
{
	for (int restarts = 0; restarts < 2; restarts++) {
		struct world w = {0};

		job(&w,
		    json("{'name':'t','policies':[{'event':'PodFailed','action':'%s'}]}",
			 restarts ? "RestartJob" : "AbortJob"),
		    "Running");
		pod(&w, "p", "t", 0, 10,
		    json("{'phase':'Failed','containerStatuses':[%s]}",
			 container("main", ENDED(3, "Error"), 0)));
		assert_int_equal(replica(&w, "t-0")->state, SPEC_FAILED);
		assert_int_equal(replica(&w, "t-0")->finished, restarts ? 0 : 180 * SECOND);
		world_clear(&w);
	}
}

/* Jobs and pods come from two watches, so the end of the job may arrive first. */
static void test_end_of_job_first(void **state)
{
	struct world w = {0};

	job(&w, "{'name':'t'}", "Running");
	pod(&w, "p", "t", 0, 10, json("{'phase':'Pending'}"));
	job(&w, "{'name':'t'}", "Completed");
	assert_int_equal(w.last->state, SPEC_SUCCEEDED);
	assert_int_equal(replica(&w, "t-0")->finished, 0);
	pod(&w, "p", "t", 0, 10,
	    json("{'phase':'Running','containerStatuses':[%s]}", container("main", RUNNING, 0)));
	assert_int_equal(replica(&w, "t-0")->finished, 0);
	pod(&w, "p", "t", 0, 10,
	    json("{'phase':'Succeeded','containerStatuses':[%s]}",
		 container("main", ENDED(0, "Completed"), 0)));
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
		const char *text = *bad[i] ? json("%s", bad[i]) : "";
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
		{"{}", false},
		{"{'restartPolicy':'Never','containers':[{'name':'a'}]}", false},
		{"{'restartPolicy':'OnFailure','containers':[{'name':'a'}]}", true},
		{"{'restartPolicy':'Always'}", true},
		{"{'restartPolicy':'Never','initContainers':[{'restartPolicy':'Always'}]}", true},
		{"{'restartPolicy':'Never','containers':[{},{'restartPolicy':'OnFailure'}]}", true},
		{"{'restartPolicy':5,'containers':[7]}", false},
	};

	for (size_t i = 0; i < array_size(pods); i++) {
		const char *text =
			json("{'metadata':{'name':'a','uid':'u'},'spec':%s}", pods[i].spec);
		struct spec_pod_view *p = NULL;

		assert_int_equal(
			spec_pod_view_parse(&(struct spec_pod_readers){.v = &spec_volcano.reader,
								       .n = 1},
					    text, strlen(text), &p),
			0);
		assert_int_equal(p->reruns, pods[i].reruns);
		spec_pod_view_free(p);
	}
}

static void test_notes(void **state)
{
	struct world w = {0};
	const char *text =
		json("{'metadata':{'name':'j','uid':'u','annotations':{'kxfs/submitter':"
		     "'ada@login1','kxfs/submission':'1-2','kxfs/appdef':'name: x\\nroles: []'"
		     "}},'spec':{'tasks':[],'maxRetry':2},'status':{'retryCount':1}}");

	world_job(&w, text, false);
	assert_string_equal(w.last->submitter, "ada@login1");
	assert_string_equal(w.last->submission, "1-2");
	assert_true(w.last->has_appdef);
	assert_true(w.last->own);
	assert_int_equal(w.last->retries, 1);
	assert_int_equal(w.last->max_retries, 1);
	assert_string_equal(w.last->backend, "volcano");
	assert_string_equal(w.last->namespace, "ns");
	world_clear(&w);
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
		const char *text = json("{'metadata':{'name':'j','uid':'u','generation':1},'spec':{"
					"'tasks':[],'policies':[%s],'maxRetry':%d},'status':{"
					"'retryCount':%d}}",
					table[i].policies, table[i].attempts, table[i].count);

		world_job(&w, text, false);
		assert_int_equal(w.last->retries, table[i].retries);
		assert_int_equal(w.last->max_retries, table[i].max_retries);
		world_clear(&w);
	}
}

/* A snapshot shows the newest spec. */
static void test_changed_spec(void **state)
{
	struct world w = {0};
	static const char fmt[] =
		"{'metadata':{'name':'j','uid':'u','annotations':{'kxfs/submitter':'%s'}},"
		"'spec':{'queue':'%s','tasks':[{'name':'%s','replicas':%d}]},"
		"'status':{'state':{'phase':'%s'}}}";

	world_job(&w, json(fmt, "ada", "q1", "a", 2, "Pending"), false);
	assert_string_equal(w.last->replicas[1].name, "a-1");
	assert_int_equal(w.last->n_replicas, 2);
	world_job(&w, json(fmt, "eve", "q2", "b", 3, "Running"), false);
	assert_string_equal(w.last->submitter, "eve");
	assert_int_equal(w.last->state, SPEC_RUNNING);
	assert_string_equal(w.last->queue, "q2");
	assert_string_equal(w.last->replicas[2].name, "b-2");
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
	pod(&w, "p", "t", 0, 10, json("{'phase':'Pending','reason':'x','message':'%s'}", text));
	assert_int_equal(strlen(replica(&w, "t-0")->message), 2046);
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_attempt),
		cmocka_unit_test(test_fewer_attempts),
		cmocka_unit_test(test_no_torchx),
		cmocka_unit_test(test_main_container),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_torchx),
		cmocka_unit_test(test_names_part),
		cmocka_unit_test(test_too_many_replicas),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_time_limit),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_pod_without_number),
		cmocka_unit_test(test_outcome),
		cmocka_unit_test(test_outcome_unseen),
		cmocka_unit_test(test_controllers_word),
		cmocka_unit_test(test_pods_decide),
		cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_order_of_attempts),
		cmocka_unit_test(test_pods_forgotten),
		cmocka_unit_test(test_nothing_known),
		cmocka_unit_test(test_vanished),
		cmocka_unit_test(test_end_of_replica),
		cmocka_unit_test(test_end_of_job_first),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_not_an_object),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_retries),
		cmocka_unit_test(test_reruns),
		cmocka_unit_test(test_changed_spec),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_policy_decides),
		cmocka_unit_test(test_restarted_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
