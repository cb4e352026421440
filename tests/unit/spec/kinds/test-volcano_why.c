/* SPDX-License-Identifier: MIT */
/*
 * For each cause of a waiting or failed cluster job: the exact sentence of `why`, and the reason in
 * `status`. Objects and messages are from a real cluster.
 */
#include "tests/unit/spec/kinds/cluster-world.h"

/* Send job j with N replicas of task t, in queue q. Its phase began in second BEGAN. */
static void job_since(struct world *w, unsigned n, const char *phase, unsigned began)
{
	w->since = SECOND;
	w->events_known = true;
	world_job(w,
		  world_json("{'metadata':{'name':'j','uid':'u-j','creationTimestamp':"
			     "'1970-01-01T00:00:01Z'},'spec':{'queue':'q','minAvailable':%u,"
			     "'tasks':[{'name':'t','replicas':%u}]},'status':{'state':{'phase':"
			     "'%s','lastTransitionTime':'1970-01-01T00:%02u:%02uZ'}}}",
			     n, n, phase, began / 60, began % 60),
		  false);
}

static void job(struct world *w, unsigned n, const char *phase)
{
	job_since(w, n, phase, 2);
}

/* Send a pod with this spec, which may be "". */
static void pod_of(struct world *w, unsigned index, const char *spec, const char *status)
{
	world_pod(w,
		  world_json("{'metadata':{'name':'j-t-%u','uid':'u-p%u','creationTimestamp':"
			     "'1970-01-01T00:00:03Z','annotations':{'volcano.sh/task-spec':'t',"
			     "'volcano.sh/task-index':'%u'}},'spec':{%s},'status':%s}",
			     index, index, index, *spec ? spec : "'containers':[{'name':'t'}]",
			     status),
		  false);
}

static void pod(struct world *w, unsigned index, const char *status)
{
	pod_of(w, index, "", status);
}

#define STATE(phase, state)                                                                        \
	"{'phase':'" phase "','containerStatuses':[{'name':'t','restartCount':0,'state':" state    \
	"}]}"
#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

#define PENDING "{'phase':'Pending'}"
#define RUNNING STATE("Running", "{'running':{'startedAt':'1970-01-01T00:00:07Z'}}")
#define WAITING(reason, message)                                                                   \
	STATE("Pending", "{'waiting':{'reason':'" reason "','message':'" message "'}}")
#define ENDED(code, reason, message)                                                               \
	STATE("Failed",                                                                            \
	      "{'terminated':{'exitCode':" code ",'reason':'" reason "','message':'" message       \
	      "','startedAt':'1970-01-01T00:00:04Z','finishedAt'"                                  \
	      ":'1970-01-01T00:00:05Z'}}")
#define UNSCHEDULABLE(message)                                                                     \
	"{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"       \
	"'Unschedulable','message':'" message "'}]}"

static void group(struct world *w, const char *phase, const char *conditions)
{
	world_group(w,
		    world_json("{'metadata':{'name':'j-u-j','uid':'u-g','creationTimestamp':"
			       "'1970-01-01T00:00:01Z','ownerReferences':[{'controller':true,"
			       "'uid':'u-j'}]},'spec':{'minMember':3,'minResources':{'cpu':"
			       "'2400m','memory':'3Gi'}},'status':{'phase':'%s',"
			       "'conditions':[%s]}}",
			       phase, conditions),
		    false);
}

/* A condition of the group. */
#define SHORT(message)                                                                              \
	"{'type':'Unschedulable','status':'True','reason':'NotEnoughResources','message':'" message \
	"','lastTransitionTime':'1970-01-01T00:00:05Z'}"

/* Send an event. MESSAGE is escaped as in JSON. */
static void event(struct world *w, const char *about, const char *reason, const char *message,
		  unsigned second)
{
	world_event(w,
		    world_json("{'involvedObject':{'kind':'K','name':'n','uid':'%s'},'reason':'%s',"
			       "'message':'%s','lastTimestamp':'1970-01-01T00:%02u:%02uZ'}",
			       about, reason, message, second / 60, second % 60));
}

static void queue(struct world *w, const char *state, const char *capability, const char *allocated)
{
	world_queue(w, world_json("{'metadata':{'name':'q','uid':'u-q','creationTimestamp':"
				  "'1970-01-01T00:00:01Z'},'spec':{'capability':{%s}},'status':{"
				  "'state':'%s','allocated':{%s}}}",
				  capability, state, allocated));
}

/* --- no controller acts --- */

static void test_nobody(void **state)
{
	struct world w = {0};

	job(&w, 3, "");
	for (int i = 0; i < 4; i++)
		world_look(&w);
	assert_why(&w, "SUBMITTED");
	world_look(&w);
	assert_why(&w, "SUBMITTED NoController: The job waits: no controller has processed it yet. "
		       "If this lasts, ask the cluster's administrator whether the controller of "
		       "these jobs is down.");
	job(&w, 3, "Pending");
	assert_why(&w, "PENDING");
	group(&w, "Pending", "");
	assert_why(&w, "PENDING NoScheduler: The job waits: no scheduler has processed it yet. If "
		       "this lasts, ask the cluster's administrator whether the scheduler of "
		       "these jobs is down.");
	/* Without events, the cause is unknown. */
	w.events_known = false;
	world_look(&w);
	assert_why(&w, "PENDING");
	w.events_known = true;
	event(&w, "u-g", "Unschedulable", "0/0 tasks in gang unschedulable: pod group is not ready",
	      9);
	assert_why(&w, "PENDING");
	world_clear(&w);
}

/* --- objects that the user may not read --- */

#define MAY_NOT(what)                                                                              \
	" This user may not list and watch " what                                                  \
	", which would show the reason: ask the cluster's administrator for that right."
#define UNKNOWN(what) "PENDING MissingRight: The job waits: the reason is unknown." MAY_NOT(what)
#define GANG	      "PENDING GangShort: The job waits: 3 pods must start together, but "
#define GANG_SHORT                                                                                 \
	GANG "there is no capacity for all of them. It starts automatically when capacity "        \
	     "becomes available."

/*
 * `why` names the objects that the user may not read if the job has waited for a while and nothing
 * else is known. It does not name them if they would not help.
 */
static void test_unseen(void **state)
{
	struct world w = {0};

	job(&w, 3, "Pending");
	w.events_known = false;
	w.unseen = SPEC_UNSEEN_EVENTS | SPEC_UNSEEN_GROUPS;
	for (int i = 0; i < 8; i++) {
		world_look(&w);
		assert_why(&w, w.now < 7 ? "PENDING" : UNKNOWN("events and podgroups"));
	}
	w.unseen = SPEC_UNSEEN_GROUPS;
	world_look(&w);
	assert_why(&w, UNKNOWN("podgroups"));
	w.unseen = SPEC_UNSEEN_EVENTS;
	pod(&w, 0, PENDING);
	assert_why(&w, UNKNOWN("events"));
	group(&w, "Inqueue", SHORT(""));
	assert_why(&w, GANG "only 1 exists." MAY_NOT("events"));
	pod(&w, 1, PENDING);
	pod(&w, 2, PENDING);
	assert_why(&w, GANG_SHORT);
	world_clear(&w);
}

/*
 * Pods that were scheduled may be pulling their image. The scheduler has nothing more to report,
 * but events may still arrive.
 */
static void test_unseen_starting(void **state)
{
	struct world w = {0};

	job(&w, 1, "Pending");
	w.unseen = SPEC_UNSEEN_EVENTS | SPEC_UNSEEN_GROUPS;
	pod_of(&w, 0, "'nodeName':'n','containers':[{'name':'t'}]", PENDING);
	for (int i = 0; i < 30; i++)
		world_look(&w);
	assert_why(&w, "PENDING");
	for (int i = 0; i < 40; i++)
		world_look(&w);
	assert_why(&w, UNKNOWN("events"));
	w.unseen = SPEC_UNSEEN_GROUPS;
	world_look(&w);
	assert_why(&w, "PENDING");
	world_clear(&w);
}

/* --- no capacity --- */

static void test_queue_full(void **state)
{
#define FULL  "PENDING QueueFull: The job waits: queue q has no capacity for it now: it needs "
#define LATER " It starts automatically when capacity becomes available."
	struct world w = {0};

	job(&w, 3, "Pending");
	group(&w, "Pending", "");
	queue(&w, "Open", "'cpu':'4','memory':'8Gi'", "'cpu':'3','memory':'6Gi'");
	event(&w, "u-g", "Unschedulable",
	      "queue resource quota insufficient: insufficient cpu, insufficient memory", 9);
	assert_why(&w, FULL "2.4 cpu, and the queue has 1 of its 4 free; it needs 3 GiB of "
			    "memory, and the queue has 2 GiB of its 8 GiB free." LATER);
	/*
	 * Jobs that are admitted but not running yet also use the queue's quota. The message does
	 * not show their use.
	 */
	queue(&w, "Open", "'cpu':'4'", "'cpu':'1'");
	event(&w, "u-g", "Unschedulable", "queue resource quota insufficient: insufficient cpu",
	      10);
	assert_why(&w, FULL "2.4 cpu, and the queue's limit is 4." LATER);
	queue(&w, "Open", "'cpu':'2'", "");
	assert_why(&w, "PENDING QueueTooSmall: The job waits: queue q has no capacity for it now: "
		       "it needs 2.4 cpu, and the queue's limit is 2. Submit the job to another "
		       "queue, or request less.");
	/*
	 * The scheduler checks the cluster first, but waiting for the cluster does not help here.
	 */
	event(&w, "u-g", "Unschedulable", "resource in cluster is overused: overused cpu", 11);
	assert_reason(&w, "QueueTooSmall");
	queue(&w, "Closed", "'cpu':'2'", "");
	assert_why(&w, "PENDING QueueClosed: The job waits: queue q is closed. Submit the job to "
		       "another queue, or ask the cluster's administrator to open this queue.");
	/* Whatever else lacks capacity, a closed queue admits no pods. */
	group(&w, "Inqueue", SHORT(""));
	assert_reason(&w, "QueueClosed");
	pod(&w, 0, UNSCHEDULABLE("0/1 nodes are available"));
	assert_reason(&w, "QueueClosed");
	pod(&w, 0, WAITING("ImagePullBackOff", "no such host"));
	assert_reason(&w, "ImagePullBackOff");
	pod(&w, 0, STATE("Pending", "{}"));
	group(&w, "Pending", "");
	/* An unknown message is quoted. */
	queue(&w, "Open", "", "");
	event(&w, "u-g", "Unschedulable", "something new", 11);
	assert_why(&w,
		   "PENDING Unschedulable: The job waits: the scheduler reports: something new.");
	world_clear(&w);
}

static void test_gang(void **state)
{
	static const char condition[] =
		SHORT("3/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 3 "
		      "minAvailable");
	struct world w = {0};

	job(&w, 3, "Pending");
	pod(&w, 0, PENDING);
	group(&w, "Inqueue", condition);
	assert_why(&w, GANG "only 1 exists." LATER);
	pod(&w, 1, PENDING);
	pod(&w, 2,
	    UNSCHEDULABLE("3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 "
			  "minAvailable"));
	assert_why(&w, GANG_SHORT);
	/* The pods show it too. This matters if the user may not read groups. */
	world_group(&w, "", true);
	assert_why(&w, GANG_SHORT);
	/*
	 * If a pod does not fit on any node, its own message is more specific. So is a message
	 * about an image.
	 */
	pod(&w, 1,
	    UNSCHEDULABLE("0/1 nodes are unavailable: 1 Insufficient cpu. preemption: 0/1 "
			  "nodes are available: 1 No preemption victims found."));
	assert_why(&w, "PENDING Unschedulable: t-1 fits on no node: 0/1 nodes are unavailable: 1 "
		       "Insufficient cpu.");
	/* The old condition remains when there is capacity again. */
	group(&w, "Running",
	      world_json("%s,{'type':'Scheduled','status':'True','lastTransitionTime':"
			 "'1970-01-01T00:00:06Z'}",
			 condition));
	for (unsigned i = 0; i < 3; i++)
		pod(&w, i, RUNNING);
	job(&w, 3, "Running");
	assert_why(&w, "RUNNING");
	world_clear(&w);
}

/* The scheduler's message about an admitted gang is not a cause. */
static void test_passing(void **state)
{
	struct world w = {0};

	job(&w, 2, "Pending");
	group(&w, "Inqueue",
	      SHORT("0/2 tasks in gang unschedulable: pod group is ready, 2 minAvailable"));
	event(&w, "u-g", "Unschedulable", "pod group is ready, 1 Binding, 1 Running", 9);
	pod(&w, 0,
	    "{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"
	    "'Schedulable','message':'Pod ns/j-t-0 can possibly be assigned to node-1, once "
	    "minAvailable is satisfied'}]}");
	pod(&w, 1,
	    UNSCHEDULABLE("0/2 tasks in gang unschedulable: pod group is ready, 1 Binding, 2 "
			  "minAvailable"));
	assert_why(&w, "PENDING");
	world_clear(&w);
}

/* A gang with enough pods is running, but its other pods may wait in vain. `why` reports that. */
static void test_beside_gang(void **state)
{
#define BESIDE "pod group is ready, 1 Pending, 2 minAvailable, 2 Running; Pending: 1 Unschedulable"
	struct world w = {0};

	job(&w, 3, "Running");
	group(&w, "Running", "");
	pod(&w, 0, RUNNING);
	pod(&w, 1, RUNNING);
	pod(&w, 2, UNSCHEDULABLE(BESIDE));
	assert_why(&w, "RUNNING Unschedulable: t-2 waits for capacity while other replicas run. It "
		       "starts automatically when capacity becomes available.");
	assert_replicas(&w, "t-0=RUNNING t-1=RUNNING t-2=PENDING/Unschedulable");
	assert_string_equal(w.last->replicas[2].message, BESIDE);
	event(&w, "u-p2", "FailedScheduling", BESIDE, 9);
	assert_false(spec_event_view_is_noise(w.events[0]));
	world_clear(&w);
}

/* --- pods that can't be created --- */

#define DUMP(message)                                                                              \
	"Error creating pods: [failed to create pod j-t-2, err: &errors.StatusError{ErrStatus:v1." \
	"Status{TypeMeta:v1.TypeMeta{Kind:\\\"\\\", APIVersion:\\\"\\\"}, "                        \
	"Status:\\\"Failure\\\", "                                                                 \
	"Message:\\\"pods \\\\\\\"j-t-2\\\\\\\" is forbidden: " message                            \
	"\\\", Reason:\\\"Forbidden\\\", Code:403}}]"
#define EXCEEDED DUMP("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1")
#define NO_ACCOUNT                                                                                 \
	DUMP("error looking up service account ns/nope: serviceaccount \\\\\\\"nope\\\\\\\" not "  \
	     "found")

static void test_unmade(void **state)
{
#define UNMADE(reason) "PENDING " reason ": The job waits: its pods can't be created: "
	static const struct {
		const char *message, *why;
	} table[] = {
		{EXCEEDED,
		 UNMADE("QuotaExceeded") "quota few is exhausted (requested: pods=1, used: pods=1, "
					 "limited: pods=1). The job continues automatically if "
					 "quota becomes available soon; Volcano gives up after "
					 "some minutes."},
		{NO_ACCOUNT,
		 UNMADE("NoServiceAccount") "there is no service account nope in namespace ns. "
					    "Create this service account, or submit the job with "
					    "another service_account."},
		{"(combined from similar events): " DUMP(
			 "no PriorityClass with name nope was found"),
		 UNMADE("NoPriorityClass") "there is no priority class nope. Create this priority "
					   "class, or submit the job with another priority_class."},
		{DUMP("violates PodSecurity"), UNMADE("FailedCreate") "violates PodSecurity."},
		/* The dump of an error without a message is not shown. */
		{"&errors.StatusError{}", GANG "only 1 exists." LATER},
	};
	struct world w = {0};

	job(&w, 3, "Pending");
	pod(&w, 0, PENDING);
	group(&w, "Inqueue", SHORT(""));
	for (unsigned i = 0; i < array_size(table); i++) {
		event(&w, "u-j", "FailedCreate", table[i].message, 5 + i);
		assert_why(&w, table[i].why);
	}
	/* An event of an earlier attempt does not count any more. */
	event(&w, "u-j", "FailedCreate", EXCEEDED, 20);
	assert_reason(&w, "QuotaExceeded");
	job_since(&w, 3, "Pending", 30);
	assert_reason(&w, "GangShort");
	world_clear(&w);
	/*
	 * The pods of the previous attempt do not belong to this one, although the replicas still
	 * name them.
	 */
	job(&w, 2, "Pending");
	for (unsigned i = 0; i < 2; i++) {
		pod(&w, i, PENDING);
		world_pod_gone(&w, i);
	}
	event(&w, "u-j", "FailedCreate", EXCEEDED, 5);
	assert_reason(&w, "QuotaExceeded");
	world_clear(&w);
}

/* The last cause remains when Volcano has given up. */
static void test_given_up(void **state)
{
	static const char why[] =
		"FAILED NoServiceAccount: Volcano gave up after 1 try: there is no service account "
		"nope in namespace ns. Create this service account and submit the job again, or "
		"submit it with another service_account.";
	struct world w = {0};

	job(&w, 1, "Pending");
	event(&w, "u-j", "FailedCreate", NO_ACCOUNT, 9);
	assert_reason(&w, "NoServiceAccount");
	job(&w, 1, "Terminated");
	assert_why(&w, why);
	/* It also remains when the events are gone. */
	spec_event_view_unref(w.events[0]);
	w.n_events = 0;
	job(&w, 1, "Terminated");
	assert_why(&w, why);
	world_clear(&w);
	/*
	 * Volcano's last attempts, and the event about them, may be minutes old. An older event
	 * belongs to something else.
	 */
	for (unsigned second = 100; second < 104; second += 3) {
		w.events_known = true;
		event(&w, "u-j", "FailedCreate", NO_ACCOUNT, second);
		job_since(&w, 1, "Terminated", 402);
		assert_why(&w, second == 103 ? why
					     : "FAILED Terminated: The job was ended: Terminated.");
		world_clear(&w);
	}
}

/* --- pods that can't start --- */

/* Why a pod has not started, or is restarted again and again. */
static void test_not_running(void **state)
{
#define UNPULLED(reason, image, rest)                                                              \
	"PENDING " reason ": t-0 can't start: its image " image " can't be pulled" rest
#define LOOP(more)                                                                                 \
	"{'phase':'Running','containerStatuses':[{'name':'t','restartCount':3," more "}]}"
#define CHECK ". Check the image's name and tag, and that the cluster's nodes may pull it."
	static const struct {
		const char *pod, *why;
	} table[] = {
		{UNSCHEDULABLE(
			 "0/1 nodes are unavailable: 1 node(s) didn\\u0027t match Pod\\u0027s "
			 "node affinity/selector."),
		 "PENDING Unschedulable: t-0 fits on no node: 0/1 nodes are unavailable: 1 node(s) "
		 "didn't match Pod's node affinity/selector."},
		{UNSCHEDULABLE("0/1 nodes are available: 1 Insufficient cpu. no new claims to "
			       "deallocate, preemption: 0/1 nodes are available: 1 No preemption "
			       "victims found for incoming pod."),
		 "PENDING Unschedulable: t-0 fits on no node: 0/1 nodes are available: 1 "
		 "Insufficient cpu."},
		{UNSCHEDULABLE("0/1 nodes are available: persistentvolumeclaim \\\"nope\\\" not "
			       "found. preemption: 0/1 nodes are available."),
		 "PENDING Unschedulable: t-0 can't start: there is no persistent volume claim nope "
		 "in namespace ns. It starts automatically when the claim exists."},
		{UNSCHEDULABLE("0/1 nodes are available: pod has unbound immediate "
			       "PersistentVolumeClaims."),
		 "PENDING Unschedulable: t-0 fits on no node: 0/1 nodes are available: pod has "
		 "unbound immediate PersistentVolumeClaims."},
		{WAITING("ErrImagePull",
			 "failed to pull and unpack image \\\"docker.io/library/nope:1\\\": failed "
			 "to resolve reference \\\"docker.io/library/nope:1\\\": pull access "
			 "denied, repository does not exist or may require authorization: server "
			 "message: insufficient_scope: authorization failed"),
		 UNPULLED("ErrImagePull", "docker.io/library/nope:1",
			  ": authorization failed" CHECK)},
		{WAITING("ImagePullBackOff", "Back-off pulling image \\\"nope:1\\\""),
		 UNPULLED("ImagePullBackOff", "nope:1", CHECK)},
		{WAITING("ErrImagePull", "failed to pull and unpack image \\\"r.example:5000/x:" HEX
					 "\\\": failed to resolve reference: not found"),
		 UNPULLED("ErrImagePull", "r.example:5000/x:" HEX,
			  ": not found. The image is only in the Docker of one machine; push it "
			  "from there: docker tag sha256:" HEX " r.example:5000/x:" HEX
			  " && docker push r.example:5000/x:" HEX)},
		{WAITING("ImagePullBackOff", "Back-off pulling image \\\"r/x@sha256:" HEX "\\\""),
		 UNPULLED("ImagePullBackOff", "r/x@sha256:" HEX, CHECK)},
		{WAITING("CreateContainerConfigError", "secret \\\"nope\\\" not found"),
		 "PENDING CreateContainerConfigError: t-0 can't start: secret \"nope\" not found. "
		 "The replica starts automatically when this problem is fixed."},
		{LOOP("'lastState':{'terminated':{'exitCode':7,'finishedAt':'1970-01-01T00:01:00Z'}},"
		      "'state':{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 1m20s "
		      "restarting failed container=t pod=j-t-0_ns(u-p0)'}}"),
		 "PENDING CrashLoopBackOff: t-0 ended with exit code 7. It has been started 4 times so "
		 "far, and the kubelet restarts it at 1970-01-01T00:02:20Z. Its output is in "
		 "t-0/log."},
		{LOOP("'state':{'terminated':{'exitCode':7,'reason':'Error'}}"),
		 "PENDING Error: t-0 ended with exit code 7. It has been started 4 times so far, and the "
		 "kubelet restarts it automatically. Its output is in t-0/log."},
		{"{'phase':'Pending','initContainerStatuses':[{'name':'prep','restartCount':0,"
		 "'lastState':{'terminated':{'exitCode':127}},'state':{'waiting':{'reason':"
		 "'CrashLoopBackOff','message':'no time'}}}],'containerStatuses':[{'name':'t',"
		 "'restartCount':0,'state':{'waiting':{'reason':'PodInitializing'}}}]}",
		 "PENDING CrashLoopBackOff: t-0 can't start: its container prep ended with exit "
		 "code 127 (in a shell: a command was not found). It has been started 1 time so far, and "
		 "the kubelet restarts it automatically. The output of that container is in "
		 "t-0/prep.log."},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};

		job(&w, 1, strstr(table[i].pod, "'phase':'Running'") ? "Running" : "Pending");
		/* The pod's own problem counts more than the gang's. */
		group(&w, "Inqueue", SHORT(""));
		pod_of(&w, 0, "'restartPolicy':'OnFailure','containers':[{'name':'t'}]",
		       table[i].pod);
		assert_int_equal(w.last->replicas[0].state, SPEC_PENDING);
		assert_why(&w, table[i].why);
		assert_string_equal(w.last->cause.reason, "");
		world_clear(&w);
	}
}

static void test_several(void **state)
{
	struct world w = {0};

	job(&w, 3, "Pending");
	for (unsigned i = 1; i < 3; i++)
		pod(&w, i, WAITING("CreateContainerConfigError", "secret \\\"nope\\\" not found"));
	assert_why(&w, "PENDING CreateContainerConfigError: t-1 can't start: secret \"nope\" not "
		       "found. The replica starts automatically when this problem is fixed. It is "
		       "the first of 2 replicas that wait for the same reason.");
	world_clear(&w);
}

/* The phases of the pod and the job are Running. Only the event shows the problem. */
static void test_mount(void **state)
{
	struct world w = {0};

	job(&w, 1, "Running");
	pod(&w, 0, STATE("Running", "{'waiting':{'reason':'ContainerCreating'}}"));
	assert_why(&w, "RUNNING");
	event(&w, "u-p0", "FailedMount",
	      "MountVolume.SetUp failed for volume \\\"config\\\" : configmap \\\"nope\\\" not "
	      "found",
	      9);
	assert_why(&w, "RUNNING FailedMount: t-0 can't start: its volume config can't be mounted: "
		       "configmap \"nope\" not found. The replica starts automatically when this "
		       "problem is fixed.");
	/* The kubelet has retried since then. */
	event(&w, "u-p0", "Pulling", "Pulling image", 10);
	assert_why(&w, "RUNNING");
	pod(&w, 0, RUNNING);
	assert_why(&w, "RUNNING");
	world_clear(&w);
}

/* --- failed pods --- */

/* Why a pod failed. */
static void test_failed(void **state)
{
	static const struct {
		const char *pod, *why;
	} table[] = {
		{ENDED("128", "StartError",
		       "failed to create containerd task: failed to create shim task: OCI runtime "
		       "create failed: runc create failed: unable to start container process: "
		       "exec: \\\"nosuchbinary\\\": executable file not found in $PATH: unknown"),
		 "t-0 could not be started: exec: \"nosuchbinary\": executable file not found in "
		 "$PATH. Check the entrypoint of role t: it must be a program in PATH or the "
		 "path of an executable file."},
		{ENDED("3", "Error", ""), "t-0 ended with exit code 3."},
		{ENDED("128", "Error", ""), "t-0 ended with exit code 128."},
		{ENDED("137", "Error", ""),
		 "t-0 ended with exit code 137, which means signal 9 (SIGKILL), which the kernel also "
		 "sends when memory runs out."},
		{ENDED("139", "Error", ""),
		 "t-0 ended with exit code 139, which means signal 11 (SIGSEGV)."},
		{ENDED("255", "Error", ""), "t-0 ended with exit code 255."},
	};
	struct world w = {0};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *want = text_print("%s There was no retry, because max_retries "
						     "is 0. Its output is in t-0/log.",
						     table[i].why);

		job(&w, 1, "Running");
		pod(&w, 0, table[i].pod);
		job(&w, 1, "Failed");
		assert_string_equal(world_why(&w), want);
		world_clear(&w);
	}
	job(&w, 1, "Running");
	pod(&w, 0,
	    "{'phase':'Failed','initContainerStatuses':[{'name':'prep','restartCount':0,'state':{"
	    "'terminated':{'exitCode':2,'reason':'Error','finishedAt':'1970-01-01T00:00:05Z'}}}],"
	    "'containerStatuses':[{'name':'t','restartCount':0,'state':{'waiting':{'reason':"
	    "'PodInitializing'}}}]}");
	job(&w, 1, "Failed");
	assert_why(&w, "FAILED Error: t-0 failed: init container prep: exit code 2. There was no "
		       "retry, because max_retries is 0. The output of that container is in "
		       "t-0/prep.log.");
	world_clear(&w);
}

/*
 * If a container was killed for its memory, the text shows the limit of that very container, if it
 * is known.
 */
static void test_memory(void **state)
{
	static const struct {
		const char *resources, *limit;
	} table[] = {
		{"{'limits':{'memory':'16Gi'}}", " of 16 GiB"},
		{"{'limits':{'cpu':'1','memory':'500M'},'requests':{'memory':'400M'}}",
		 " of 476.8 MiB"},
		{"{'requests':{'memory':'1Gi'}}", ""},
		{"{'limits':{'memory':'much'}}", ""},
		{"{'limits':{'memory':7}}", ""},
		{"{'limits':{'memory':'1000E'}}", ""},
		{"[]", ""},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *want = text_print(
			"FAILED OOMKilled: t-0 was killed because it used more memory than its "
			"limit%s. Role t must request more memory, or use less. There was no "
			"retry, because max_retries is 0. Its output is in t-0/log.",
			table[i].limit);
		struct world w = {0};

		job(&w, 1, "Failed");
		pod_of(&w, 0,
		       world_json("'containers':[{'name':'s','resources':{'limits':{'memory':"
				  "'1Mi'}}},{'name':'t','resources':%s}]",
				  table[i].resources),
		       ENDED("137", "OOMKilled", ""));
		assert_why(&w, want);
		world_clear(&w);
	}
}

/*
 * A node that does not respond, and a probe that failed. The sentence names the replica and the
 * reported message.
 */
static void test_lost_and_probed(void **state)
{
	struct world w = {0};

	job(&w, 1, "Running");
	pod(&w, 0,
	    "{'phase':'Running','conditions':[{'type':'Ready','status':'False','lastTransitionTime':"
	    "'1970-01-01T00:01:00Z'}],'containerStatuses':[{'name':'t','ready':true,'restartCount':0,"
	    "'state':{'running':{'startedAt':'1970-01-01T00:00:04Z'}}}]}");
	assert_why(&w, "RUNNING NodeLost: t-0: its node  has not reported since "
		       "1970-01-01T00:01:00Z. Until the node returns or is removed from the "
		       "cluster, kxfs can't know whether the replica still runs.");
	world_clear(&w);
	job(&w, 1, "Running");
	event(&w, "u-p0", "Unhealthy", "Liveness probe failed: HTTP 500", 5);
	event(&w, "u-p0", "Killing", "Container t failed liveness probe", 5);
	pod(&w, 0, ENDED("137", "Error", ""));
	assert_why(&w, "RUNNING ProbeFailed: t-0 was terminated because its probe failed: Liveness "
		       "probe failed: HTTP 500. There was no retry, because max_retries is 0.");
	world_clear(&w);
}

/* --- status and why name the same replica --- */

/* Assert that `status` has these lines. */
static void assert_status(const struct world *w, const char *reason, const char *message)
{
	cleanup_free char *lines = text_print("\nreason: %s\nmessage: \"%s\"\n", reason, message);
	char *text cleanup_free = NULL;
	size_t len;

	spec_status_yaml(w->last, &text, &len);
	if (!strstr(text, lines))
		fail_msg("not \"%s\" in %s", lines, text);
}

/* While a job continues to run, a failed replica counts more than a waiting one. */
static void test_same_failed(void **state)
{
	struct world w = {0};

	job(&w, 3, "Running");
	pod(&w, 0, WAITING("ImagePullBackOff", "no such host"));
	pod(&w, 1, ENDED("3", "Error", ""));
	for (int i = 0; i < 2; i++) {
		assert_why(&w, "RUNNING Error: t-1 ended with exit code 3. There was no retry, "
			       "because max_retries is 0.");
		assert_status(&w, "Error", "t-1: exit code 3");
		/* A cause from the cluster's events does not hide that replica either. */
		event(&w, "u-j", "FailedCreate",
		      "pods \\\"j-t-2\\\" is forbidden: violates PodSecurity", 9);
		event(&w, "u-p0", "FailedMount", "no volume", 9);
	}
	world_clear(&w);
}

/*
 * Of the waiting replicas, one with its own cause counts more than one that waits for the others.
 */
static void test_same_waiting(void **state)
{
	struct world w = {0};

	job(&w, 2, "Pending");
	pod(&w, 0,
	    UNSCHEDULABLE("2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 "
			  "minAvailable"));
	pod(&w, 1, WAITING("CreateContainerConfigError", "no secret"));
	assert_why(&w, "PENDING CreateContainerConfigError: t-1 can't start: no secret. The "
		       "replica starts automatically when this problem is fixed.");
	assert_status(&w, "CreateContainerConfigError", "t-1: no secret");
	world_clear(&w);
}

/* --- a new cause is not a change of the job --- */

static void test_not_a_change(void **state)
{
	struct world w = {0};
	int64_t changed;

	job(&w, 3, "Pending");
	group(&w, "Pending", "");
	changed = w.last->changed;
	event(&w, "u-g", "Unschedulable", "resource in cluster is overused: overused cpu", 9);
	assert_status(&w, "ClusterFull",
		      "the cluster has no capacity for it now: it needs 2.4 cpu");
	assert_int_equal(w.last->changed, changed);
	assert_string_equal(w.last->reason, "");
	/* A finished job waits for nothing. */
	job(&w, 3, "Aborted");
	assert_string_equal(w.last->cause.reason, "");
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_unseen_starting),
		cmocka_unit_test(test_queue_full),
		cmocka_unit_test(test_gang),
		cmocka_unit_test(test_passing),
		cmocka_unit_test(test_beside_gang),
		cmocka_unit_test(test_unmade),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_not_running),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_mount),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_lost_and_probed),
		cmocka_unit_test(test_same_failed),
		cmocka_unit_test(test_same_waiting),
		cmocka_unit_test(test_not_a_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
