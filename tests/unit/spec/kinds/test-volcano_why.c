/* SPDX-License-Identifier: MIT */
/*
 * For each cause of a waiting or failed cluster job: the exact sentence of `why`, and the reason in
 * `status`. Objects and messages are from a real cluster.
 */
#include "tests/unit/spec/kinds/cluster-world.h"

#include "spec/job/status.h"

#define META(name, uid, more)                                                                      \
	"'metadata':{'name':'" name "','uid':'" uid                                                \
	"','creationTimestamp':'1970-01-01T00:00:01Z'" more "}"

/* Send job j with N replicas of task t, in queue q. */
static void job(struct world *w, unsigned n, const char *phase)
{
	const char *status =
		*phase ? world_json("{'state':{'phase':'%s','lastTransitionTime':'1970-01-01T00:00:"
				    "02Z'}}",
				    phase)
		       : "{}";

	w->since = SECOND;
	w->events_known = true;
	world_job(w,
		  world_json("{" META("j", "u-j",
				      "") ",'spec':{'queue':'q','minAvailable':%u,'tasks':[{"
					  "'name':'t','replicas':%u}]},'status':%s}",
			     n, n, status),
		  false);
}

static void pod(struct world *w, unsigned index, const char *status)
{
	world_pod(w,
		  world_json("{'metadata':{'name':'j-t-%u','uid':'u-p%u','creationTimestamp':"
			     "'1970-01-01T00:00:03Z','annotations':{'volcano.sh/task-spec':'t',"
			     "'volcano.sh/task-index':'%u'}},'spec':{'containers':[{'name':'t'}]},"
			     "'status':%s}",
			     index, index, index, status),
		  false);
}

/* Send a pod whose containers are restarted when they fail. */
static void again(struct world *w, unsigned index, const char *status)
{
	world_pod(w,
		  world_json("{'metadata':{'name':'j-t-%u','uid':'u-p%u','creationTimestamp':"
			     "'1970-01-01T00:00:03Z','annotations':{'volcano.sh/task-spec':'t',"
			     "'volcano.sh/task-index':'%u'}},'spec':{'restartPolicy':'OnFailure',"
			     "'containers':[{'name':'t'}]},'status':%s}",
			     index, index, index, status),
		  false);
}

#define STATE(phase, state)                                                                        \
	"{'phase':'" phase "','containerStatuses':[{'name':'t','restartCount':0,'state':" state    \
	"}]}"
#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

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
	world_group(
		w,
		world_json(
			"{" META("j-u-j", "u-g",
				 ",'ownerReferences':[{'controller':true,'uid':'u-j'}]") ",'spec':{"
											 "'minMembe"
											 "r':"
											 "3,'"
											 "minResour"
											 "ces'"
											 ":{'cpu':'"
											 "2400m','"
											 "memory':'"
											 "3Gi'"
											 "}},'"
											 "status':{"
											 "'phase':'"
											 "%s',"
											 "'conditio"
											 "ns':"
											 "[%s]}}",
			phase, conditions),
		false);
}

/* Send an event. MESSAGE is escaped as in JSON. */
static void event(struct world *w, const char *about, const char *reason, const char *message,
		  unsigned second)
{
	world_event(w,
		    world_json("{'involvedObject':{'kind':'K','name':'n','uid':'%s'},'reason':'%s',"
			       "'message':'%s','lastTimestamp':'1970-01-01T00:00:%02uZ'}",
			       about, reason, message, second));
}

static void queue(struct world *w, const char *state, const char *capability, const char *allocated)
{
	world_queue(w, world_json("{" META("q", "u-q", "") ",'spec':{'capability':{%s}},'status':{"
							   "'state':'%s','allocated':{%s}}}",
				  capability, state, allocated));
}

static void assert_why(const struct world *w, const char *want)
{
	char *text cleanup_free = NULL;
	size_t len;

	spec_status_why(w->last, ~0u, &text, &len);
	assert_string_equal(text, want);
}

static void assert_reason(const struct world *w, const char *reason)
{
	char *text cleanup_free = NULL;
	cleanup_free char *line = NULL;
	size_t len;

	spec_status_yaml(w->last, &text, &len);
	assert_true(asprintf(&line, "\nreason: %s\n", reason) > 0);
	if (!strstr(text, line))
		fail_msg("not \"%s\" in %s", line, text);
}

/* --- no controller acts --- */

static void test_nobody(void **state)
{
	struct world w = {0};

	job(&w, 3, "");
	assert_why(&w, "");
	for (int i = 0; i < 4; i++)
		world_look(&w);
	assert_why(&w, "");
	world_look(&w);
	assert_why(&w, "The job waits: no controller has processed it yet. If this lasts, ask the "
		       "cluster's administrator whether the controller of these jobs is down.\n");
	assert_reason(&w, "NoController");
	job(&w, 3, "Pending");
	assert_why(&w, "");
	group(&w, "Pending", "");
	assert_why(&w, "The job waits: no scheduler has processed it yet. If this lasts, ask the "
		       "cluster's administrator whether the scheduler of these jobs is down.\n");
	assert_reason(&w, "NoScheduler");
	/* Without events, the cause is unknown. */
	w.events_known = false;
	world_look(&w);
	assert_why(&w, "");
	w.events_known = true;
	event(&w, "u-g", "Unschedulable", "0/0 tasks in gang unschedulable: pod group is not ready",
	      9);
	assert_why(&w, "");
	world_clear(&w);
}

/* --- objects that the user may not read --- */

#define MAY_NOT(what)                                                                              \
	" This user may not list and watch " what                                                  \
	", which would show the reason: ask the cluster's administrator for that right.\n"
#define UNKNOWN(what) "The job waits: the reason is unknown." MAY_NOT(what)

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
		assert_why(&w, w.now < 7 ? "" : UNKNOWN("events and podgroups"));
	}
	w.unseen = SPEC_UNSEEN_GROUPS;
	world_look(&w);
	assert_why(&w, UNKNOWN("podgroups"));
	assert_reason(&w, "MissingRight");
	w.unseen = SPEC_UNSEEN_EVENTS;
	pod(&w, 0, "{'phase':'Pending'}");
	assert_why(&w, UNKNOWN("events"));
	group(&w, "Inqueue",
	      "{'type':'Unschedulable','status':'True','lastTransitionTime':'1970-01-01T00:00:05Z'}");
	assert_why(&w, "The job waits: 3 pods must start together, but only 1 exists." MAY_NOT(
			       "events"));
	pod(&w, 1, "{'phase':'Pending'}");
	pod(&w, 2, "{'phase':'Pending'}");
	assert_why(&w, "The job waits: 3 pods must start together, but there is no capacity "
		       "for all of them. It starts automatically when capacity becomes "
		       "available.\n");
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
	world_pod(&w,
		  "{\"metadata\":{\"name\":\"j-t-0\",\"uid\":\"u-p0\",\"creationTimestamp\":"
		  "\"1970-01-01T00:00:03Z\",\"annotations\":{\"volcano.sh/task-spec\":\"t\","
		  "\"volcano.sh/task-index\":\"0\"}},\"spec\":{\"nodeName\":\"n\",\"containers\":[{"
		  "\"name\":\"t\"}]},\"status\":{\"phase\":\"Pending\"}}",
		  false);
	for (int i = 0; i < 30; i++)
		world_look(&w);
	assert_why(&w, "");
	for (int i = 0; i < 40; i++)
		world_look(&w);
	assert_why(&w, UNKNOWN("events"));
	w.unseen = SPEC_UNSEEN_GROUPS;
	world_look(&w);
	assert_why(&w, "");
	world_clear(&w);
}

/* --- no capacity --- */

/* In this recording, the job itself does not change. */
static void look_quiet(struct world *w, void *data)
{
	int64_t *changed = data;

	if (!w->last || w->left)
		return;
	if (streq(w->last->phase, "Pending") && !*changed)
		*changed = w->last->changed;
	if (*changed && w->n_pods == 0)
		assert_int_equal(w->last->changed, *changed);
}

/* The last `why` before the job is deleted. */
struct last_why {
	int64_t changed;
	char *text;
};

static void look_why(struct world *w, void *data)
{
	struct last_why *last = data;
	size_t len;

	look_quiet(w, &last->changed);
	if (!w->last || w->left || !w->group || w->last->history)
		return;
	free(last->text);
	spec_status_why(w->last, ~0u, &last->text, &len);
}

static void assert_recorded(const char *scenario, const char *why)
{
	struct world w = {0};
	struct last_why last = {0};

	world_play_files(&w, scenario, WORLD_FILE_EVENTS, look_why, &last);
	assert_string_equal(last.text, why);
	free(last.text);
	world_clear(&w);
}

static void test_recorded(void **state)
{
	assert_recorded("pending_unschedulable",
			"The job waits: the cluster has no capacity for it now: it "
			"needs 127.8 cpu. It starts automatically when capacity "
			"becomes available.\n");
	assert_recorded("gang_too_big",
			"The job waits: queue default has no capacity for it now: it "
			"needs 2.4 cpu. It starts automatically when capacity "
			"becomes available.\n");
	assert_recorded("image_pull_failure",
			"trainer-0 can't start: its image nosuch.invalid/none:1 can't be pulled: "
			"no such host. Check the image's name and tag, and that the cluster's "
			"nodes may pull it.\n");
	assert_recorded("success", "");
}

static void test_queue_full(void **state)
{
	struct world w = {0};

	job(&w, 3, "Pending");
	group(&w, "Pending", "");
	queue(&w, "Open", "'cpu':'4','memory':'8Gi'", "'cpu':'3','memory':'6Gi'");
	event(&w, "u-g", "Unschedulable",
	      "queue resource quota insufficient: insufficient cpu, insufficient memory", 9);
	assert_why(&w, "The job waits: queue q has no capacity for it now: it needs "
		       "2.4 cpu, and the queue has 1 of its 4 free; it needs 3 "
		       "GiB of memory, and the queue has 2 GiB of its 8 GiB free. "
		       "It starts automatically when capacity becomes available.\n");
	assert_reason(&w, "QueueFull");
	/*
	 * Jobs that are admitted but not running yet also use the queue's quota. The message does
	 * not show their use.
	 */
	queue(&w, "Open", "'cpu':'4'", "'cpu':'1'");
	event(&w, "u-g", "Unschedulable", "queue resource quota insufficient: insufficient cpu",
	      10);
	assert_why(&w, "The job waits: queue q has no capacity for it now: it needs "
		       "2.4 cpu, and the queue's limit is 4. It starts "
		       "automatically when capacity becomes available.\n");
	queue(&w, "Open", "'cpu':'2'", "");
	assert_why(&w, "The job waits: queue q has no capacity for it now: it needs 2.4 cpu, and "
		       "the queue's limit is 2. Submit the job to another queue, or request "
		       "less.\n");
	assert_reason(&w, "QueueTooSmall");
	/*
	 * The scheduler checks the cluster first, but waiting for the cluster does not help here.
	 */
	event(&w, "u-g", "Unschedulable", "resource in cluster is overused: overused cpu", 11);
	assert_reason(&w, "QueueTooSmall");
	queue(&w, "Closed", "'cpu':'2'", "");
	assert_why(&w, "The job waits: queue q is closed. Submit the job to another queue, "
		       "or ask the cluster's administrator to open this queue.\n");
	assert_reason(&w, "QueueClosed");
	/* Whatever else lacks capacity, a closed queue admits no pods. */
	group(&w, "Inqueue",
	      "{'type':'Unschedulable','status':'True','lastTransitionTime':'1970-01-01T00:00:03Z'}");
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
	assert_why(&w, "The job waits: the scheduler reports: something new.\n");
	world_clear(&w);
}

static void test_gang(void **state)
{
	static const char condition[] =
		"{'type':'Unschedulable','status':'True','reason':'NotEnoughResources','message':"
		"'3/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 3 "
		"minAvailable','lastTransitionTime':'1970-01-01T00:00:05Z'}";
	struct world w = {0};

	job(&w, 3, "Pending");
	pod(&w, 0, "{'phase':'Pending'}");
	group(&w, "Inqueue", condition);
	assert_why(&w, "The job waits: 3 pods must start together, but only 1 exists. "
		       "It starts automatically when capacity becomes "
		       "available.\n");
	pod(&w, 1, "{'phase':'Pending'}");
	pod(&w, 2,
	    UNSCHEDULABLE("3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 "
			  "minAvailable"));
	assert_why(&w, "The job waits: 3 pods must start together, but there is no capacity "
		       "for all of them. It starts automatically when capacity becomes "
		       "available.\n");
	assert_reason(&w, "GangShort");
	/* The pods show it too. This matters if the user may not read groups. */
	world_group(&w, "", true);
	assert_why(&w, "The job waits: 3 pods must start together, but there is no capacity "
		       "for all of them. It starts automatically when capacity becomes "
		       "available.\n");
	/*
	 * If a pod does not fit on any node, its own message is more specific. So is a message
	 * about an image.
	 */
	pod(&w, 1,
	    UNSCHEDULABLE("0/1 nodes are unavailable: 1 Insufficient cpu. preemption: 0/1 "
			  "nodes are available: 1 No preemption victims found."));
	assert_why(&w, "t-1 fits on no node: 0/1 nodes are unavailable: 1 Insufficient cpu.\n");
	/* The old condition remains when there is capacity again. */
	group(&w, "Running",
	      world_json("%s,{'type':'Scheduled','status':'True','lastTransitionTime':"
			 "'1970-01-01T00:00:06Z'}",
			 condition));
	pod(&w, 1, STATE("Running", "{'running':{'startedAt':'1970-01-01T00:00:07Z'}}"));
	pod(&w, 2, STATE("Running", "{'running':{'startedAt':'1970-01-01T00:00:07Z'}}"));
	pod(&w, 0, STATE("Running", "{'running':{'startedAt':'1970-01-01T00:00:07Z'}}"));
	job(&w, 3, "Running");
	assert_why(&w, "");
	world_clear(&w);
}

/* --- pods that can't be created --- */

static void pod_gone(struct world *w, unsigned index, const char *status)
{
	pod(w, index, status);
	w->pods[index]->gone = true;
	world_look(w);
}

#define DUMP(message)                                                                              \
	"Error creating pods: [failed to create pod j-t-2, err: &errors.StatusError{ErrStatus:v1." \
	"Status{TypeMeta:v1.TypeMeta{Kind:\\\"\\\", APIVersion:\\\"\\\"}, "                        \
	"Status:\\\"Failure\\\", "                                                                 \
	"Message:\\\"" message "\\\", Reason:\\\"Forbidden\\\", Code:403}}]"

/*
 * The pods of the previous attempt do not belong to this one, although the replicas still name
 * them.
 */
static void test_unmade_again(void **state)
{
	struct world w = {0};

	job(&w, 2, "Pending");
	pod_gone(&w, 0, "{'phase':'Pending'}");
	pod_gone(&w, 1, "{'phase':'Pending'}");
	event(&w, "u-j", "FailedCreate",
	      DUMP("pods \\\\\\\"j-t-1\\\\\\\" is forbidden: exceeded quota: few, requested: "
		   "pods=1, "
		   "used: pods=1, limited: pods=1"),
	      5);
	assert_reason(&w, "QuotaExceeded");
	world_clear(&w);
}

static void test_unmade(void **state)
{
	struct world w = {0};

	job(&w, 3, "Pending");
	pod(&w, 0, "{'phase':'Pending'}");
	group(&w, "Inqueue",
	      "{'type':'Unschedulable','status':'True','lastTransitionTime':"
	      "'1970-01-01T00:00:05Z'}");
	event(&w, "u-j", "FailedCreate",
	      DUMP("pods \\\\\\\"j-t-2\\\\\\\" is forbidden: exceeded quota: few, requested: "
		   "pods=1, used: pods=1, limited: pods=1"),
	      5);
	assert_why(&w, "The job waits: its pods can't be created: quota few is exhausted "
		       "(requested: pods=1, used: pods=1, limited: pods=1). The job continues "
		       "automatically if quota becomes available soon; Volcano gives up after some "
		       "minutes.\n");
	assert_reason(&w, "QuotaExceeded");
	event(&w, "u-j", "FailedCreate",
	      DUMP("pods \\\\\\\"j-t-2\\\\\\\" is forbidden: error looking up service account "
		   "ns/nope: serviceaccount \\\\\\\"nope\\\\\\\" not found"),
	      6);
	assert_why(&w, "The job waits: its pods can't be created: there is no service account nope "
		       "in namespace ns. Create this service account, or submit the job with "
		       "another service_account.\n");
	assert_reason(&w, "NoServiceAccount");
	event(&w, "u-j", "FailedCreate",
	      "(combined from similar events): " DUMP(
		      "pods \\\\\\\"j-t-2\\\\\\\" is forbidden: no PriorityClass with name nope "
		      "was found"),
	      7);
	assert_why(&w,
		   "The job waits: its pods can't be created: there is no priority class nope. "
		   "Create this priority class, or submit the job with another priority_class.\n");
	assert_reason(&w, "NoPriorityClass");
	event(&w, "u-j", "FailedCreate",
	      DUMP("pods \\\\\\\"j-t-2\\\\\\\" is forbidden: violates PodSecurity"), 8);
	assert_why(&w, "The job waits: its pods can't be created: violates PodSecurity.\n");
	/* The dump of an error without a message is not shown. */
	event(&w, "u-j", "FailedCreate", "&errors.StatusError{}", 9);
	assert_reason(&w, "GangShort");
	/* An event of an earlier attempt does not count any more. */
	world_job(&w,
		  world_json("{" META("j", "u-j",
				      "") ",'spec':{'queue':'q','minAvailable':3,'tasks':[{"
					  "'name':'t','replicas':3}]},'status':{'state':{"
					  "'phase':'Pending','lastTransitionTime':"
					  "'1970-01-01T00:00:30Z'}}}"),
		  false);
	assert_reason(&w, "GangShort");
	world_clear(&w);
}

/* --- pods that can't start --- */

static void test_not_starting(void **state)
{
	static const struct {
		const char *pod, *why;
	} table[] = {
		{UNSCHEDULABLE(
			 "0/1 nodes are unavailable: 1 node(s) didn\\u0027t match Pod\\u0027s "
			 "node affinity/selector."),
		 "t-0 fits on no node: 0/1 nodes are unavailable: 1 node(s) didn't match Pod's "
		 "node affinity/selector.\n"},
		{UNSCHEDULABLE("0/1 nodes are available: 1 Insufficient cpu. no new claims to "
			       "deallocate, preemption: 0/1 nodes are available: 1 No preemption "
			       "victims found for incoming pod."),
		 "t-0 fits on no node: 0/1 nodes are available: 1 Insufficient cpu.\n"},
		{UNSCHEDULABLE("0/1 nodes are available: persistentvolumeclaim \\\"nope\\\" not "
			       "found. preemption: 0/1 nodes are available."),
		 "t-0 can't start: there is no persistent volume claim nope in "
		 "namespace ns. It starts automatically when the claim exists.\n"},
		{UNSCHEDULABLE("0/1 nodes are available: pod has unbound immediate "
			       "PersistentVolumeClaims."),
		 "t-0 fits on no node: 0/1 nodes are available: pod has unbound immediate "
		 "PersistentVolumeClaims.\n"},
		{WAITING("ErrImagePull",
			 "failed to pull and unpack image \\\"docker.io/library/nope:1\\\": failed "
			 "to resolve reference \\\"docker.io/library/nope:1\\\": pull access "
			 "denied, repository does not exist or may require authorization: server "
			 "message: insufficient_scope: authorization failed"),
		 "t-0 can't start: its image docker.io/library/nope:1 can't be pulled: "
		 "authorization failed. Check the image's name and tag, and that the cluster's "
		 "nodes may pull it.\n"},
		{WAITING("ImagePullBackOff", "Back-off pulling image \\\"nope:1\\\""),
		 "t-0 can't start: its image nope:1 can't be pulled. Check the image's name and "
		 "tag, and that the cluster's nodes may pull it.\n"},
		{WAITING("ErrImagePull", "failed to pull and unpack image \\\"r.example:5000/x:" HEX
					 "\\\": failed to resolve reference: not found"),
		 "t-0 can't start: its image r.example:5000/x:" HEX
		 " can't be pulled: not found. The image is only in the Docker of one machine; push "
		 "it from there: docker tag sha256:" HEX " r.example:5000/x:" HEX
		 " && docker push r.example:5000/x:" HEX "\n"},
		{WAITING("ImagePullBackOff", "Back-off pulling image \\\"r/x@sha256:" HEX "\\\""),
		 "t-0 can't start: its image r/x@sha256:" HEX
		 " can't be pulled. Check the image's name "
		 "and tag, and that the cluster's nodes may pull it.\n"},
		{WAITING("CreateContainerConfigError", "secret \\\"nope\\\" not found"),
		 "t-0 can't start: secret \"nope\" not found. The replica starts automatically "
		 "when this problem is fixed.\n"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};

		job(&w, 1, "Pending");
		/* This has priority over the gang's message. */
		group(&w, "Running",
		      "{'type':'Unschedulable','status':'True','lastTransitionTime':"
		      "'1970-01-01T00:00:05Z'}");
		pod(&w, 0, table[i].pod);
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
	assert_why(&w, "t-1 can't start: secret \"nope\" not found. The replica starts "
		       "automatically when this problem is fixed. It is the first of 2 replicas "
		       "that wait for the same reason.\n");
	world_clear(&w);
}

/* The phases of the pod and the job are Running. Only the event shows the problem. */
static void test_mount(void **state)
{
	struct world w = {0};

	job(&w, 1, "Running");
	pod(&w, 0, STATE("Running", "{'waiting':{'reason':'ContainerCreating'}}"));
	assert_why(&w, "");
	event(&w, "u-p0", "FailedMount",
	      "MountVolume.SetUp failed for volume \\\"config\\\" : configmap \\\"nope\\\" not "
	      "found",
	      9);
	assert_why(&w, "t-0 can't start: its volume config can't be mounted: configmap \"nope\" "
		       "not found. The replica starts automatically when this problem is fixed.\n");
	assert_reason(&w, "FailedMount");
	/* The kubelet has retried since then. */
	event(&w, "u-p0", "Pulling", "Pulling image", 10);
	assert_why(&w, "");
	pod(&w, 0, STATE("Running", "{'running':{'startedAt':'1970-01-01T00:00:07Z'}}"));
	assert_why(&w, "");
	world_clear(&w);
}

/* --- failed pods --- */

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
		struct world w = {0};
		char want[256];

		snprintf(want, sizeof(want),
			 "t-0 was killed because it used more memory than its limit%s. Role t must "
			 "request more memory, or use less. There was no retry, because "
			 "max_retries is 0. Its output is in t-0/log.\n",
			 table[i].limit);
		job(&w, 1, "Failed");
		world_pod(
			&w,
			world_json(
				"{'metadata':{'name':'j-t-0','uid':'u-p0','creationTimestamp':"
				"'1970-01-01T00:00:03Z','annotations':{'volcano.sh/task-spec':'t',"
				"'volcano.sh/task-index':'0'}},'spec':{'containers':[{'name':'s',"
				"'resources':{'limits':{'memory':'1Mi'}}},{'name':'t','resources':"
				"%s}]},'status':%s}",
				table[i].resources, ENDED("137", "OOMKilled", "")),
			false);
		assert_why(&w, want);
		world_clear(&w);
	}
}

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
		{ENDED("137", "OOMKilled", ""),
		 "t-0 was killed because it used more memory than its limit. Role t must request "
		 "more memory, or use less."},
		{ENDED("3", "Error", ""), "t-0 ended with exit code 3."},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};
		char want[1024];

		job(&w, 1, "Running");
		pod(&w, 0, table[i].pod);
		job(&w, 1, "Failed");
		snprintf(want, sizeof(want),
			 "%s There was no retry, because max_retries is 0. Its output is "
			 "in t-0/log.\n",
			 table[i].why);
		assert_why(&w, want);
		world_clear(&w);
	}
}

#define REFUSED                                                                                            \
	"Error creating pods: [failed to create pod j-t-0, err: &errors.StatusError{ErrStatus:"            \
	"v1.Status{Message:\\\"pods \\\\\\\"j-t-0\\\\\\\" is forbidden: error looking up service account " \
	"ns/sa: serviceaccount \\\\\\\"sa\\\\\\\" not found\\\", Reason:\\\"Forbidden\\\"}}]"

/* The last cause remains when Volcano has given up. */
static void test_given_up(void **state)
{
	static const char why[] = "Volcano gave up after 1 try: there is no service account sa in "
				  "namespace ns. Create this service account and submit the job "
				  "again, or submit it with another service_account.\n";
	struct world w = {0};

	job(&w, 1, "Pending");
	event(&w, "u-j", "FailedCreate", REFUSED, 9);
	assert_reason(&w, "NoServiceAccount");
	job(&w, 1, "Terminated");
	assert_why(&w, why);
	assert_reason(&w, "NoServiceAccount");
	/* It also remains when the events are gone. */
	spec_event_view_unref(w.events[0]);
	w.n_events = 0;
	job(&w, 1, "Terminated");
	assert_why(&w, why);
	world_clear(&w);
	job(&w, 1, "Terminated");
	assert_why(&w, "The job was ended: Terminated.\n");
	world_clear(&w);
}

/*
 * Volcano's last attempts, and the event about them, may be minutes old. An older event belongs to
 * something else.
 */
static void test_given_up_minutes_after(void **state)
{
	static const struct {
		const char *last;
		const char *reason;
	} cases[] = {{"1970-01-01T00:01:43Z", "NoServiceAccount"},
		     {"1970-01-01T00:01:40Z", "Terminated"}};

	for (size_t i = 0; i < array_size(cases); i++) {
		struct world w = {0};

		w.since = SECOND;
		w.events_known = true;
		world_event(&w, world_json("{'involvedObject':{'kind':'K','name':'n','uid':'u-j'},"
					   "'reason':'FailedCreate','message':'" REFUSED
					   "','lastTimestamp':'%s'}",
					   cases[i].last));
		world_job(&w,
			  world_json("{" META(
				  "j", "u-j",
				  "") ",'spec':{'queue':'q','minAvailable':1,"
				      "'tasks':[{'name':'t','replicas':1}]},'status':{'state':{"
				      "'phase':'Terminated','lastTransitionTime':"
				      "'1970-01-01T00:06:42Z'}}}"),
			  false);
		assert_reason(&w, cases[i].reason);
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
	assert_why(&w, "t-0: its node  has not reported since 1970-01-01T00:01:00Z. Until the "
		       "node returns or is removed from the cluster, kxfs can't know whether the "
		       "replica still runs.\n");
	assert_reason(&w, "NodeLost");
	world_clear(&w);
	job(&w, 1, "Running");
	event(&w, "u-p0", "Unhealthy", "Liveness probe failed: HTTP 500", 5);
	event(&w, "u-p0", "Killing", "Container t failed liveness probe", 5);
	pod(&w, 0, ENDED("137", "Error", ""));
	assert_why(&w, "t-0 was terminated because its probe failed: Liveness probe "
		       "failed: HTTP 500. There was no retry, because max_retries is "
		       "0.\n");
	assert_reason(&w, "ProbeFailed");
	world_clear(&w);
	/* A policy may end a job although none of its pods failed. */
	job(&w, 1, "Running");
	pod(&w, 0, ENDED("0", "Completed", ""));
	job(&w, 1, "Failed");
	world_clear(&w);
}

/* What an exit code above 128 means, and which output explains more. */
static void test_codes(void **state)
{
	static const struct {
		const char *pod, *why;
	} table[] = {
		{ENDED("139", "Error", ""),
		 "t-0 ended with exit code 139, which means signal 11 (SIGSEGV)."},
		{ENDED("137", "Error", ""),
		 "t-0 ended with exit code 137, which means signal 9 (SIGKILL), which the kernel also "
		 "sends when memory runs out."},
		{ENDED("255", "Error", ""), "t-0 ended with exit code 255."},
		{ENDED("128", "Error", ""), "t-0 ended with exit code 128."},
	};
	struct world w = {0};

	for (size_t i = 0; i < array_size(table); i++) {
		char want[1024];

		job(&w, 1, "Running");
		pod(&w, 0, table[i].pod);
		snprintf(want, sizeof(want), "%s There was no retry, because max_retries is 0.\n",
			 table[i].why);
		assert_why(&w, want);
		world_clear(&w);
	}
	job(&w, 1, "Running");
	pod(&w, 0,
	    "{'phase':'Failed','initContainerStatuses':[{'name':'prep','restartCount':0,'state':{"
	    "'terminated':{'exitCode':2,'reason':'Error','finishedAt':'1970-01-01T00:00:05Z'}}}],"
	    "'containerStatuses':[{'name':'t','restartCount':0,'state':{'waiting':{'reason':"
	    "'PodInitializing'}}}]}");
	job(&w, 1, "Failed");
	assert_why(&w, "t-0 failed: init container prep: exit code 2. There was no retry, because "
		       "max_retries is 0. The output of that container is in t-0/prep.log.\n");
	world_clear(&w);
}

#define LOOP(more)                                                                                 \
	"{'phase':'Running','containerStatuses':[{'name':'t','restartCount':3," more "}]}"
#define LAST "'lastState':{'terminated':{'exitCode':7,'finishedAt':'1970-01-01T00:01:00Z'}},"

/*
 * A container that is restarted again and again. The sentence shows how often, how it ended, and
 * when it runs again.
 */
static void test_loop(void **state)
{
	static const struct {
		const char *pod, *why;
	} table[] = {
		{LOOP(LAST
		      "'state':{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 1m20s "
		      "restarting failed container=t pod=j-t-0_ns(u-p0)'}}"),
		 "t-0 ended with exit code 7. It was started 4 times so far, and the kubelet "
		 "restarts it at 1970-01-01T00:02:20Z. Its output is in t-0/log.\n"},
		{LOOP("'state':{'terminated':{'exitCode':7,'reason':'Error'}}"),
		 "t-0 ended with exit code 7. It was started 4 times so far, and the kubelet "
		 "restarts it automatically. Its output is in t-0/log.\n"},
		{"{'phase':'Pending','initContainerStatuses':[{'name':'prep','restartCount':0,"
		 "'lastState':{'terminated':{'exitCode':127}},'state':{'waiting':{'reason':"
		 "'CrashLoopBackOff','message':'no time'}}}],'containerStatuses':[{'name':'t',"
		 "'restartCount':0,'state':{'waiting':{'reason':'PodInitializing'}}}]}",
		 "t-0 can't start: its container prep ended with exit code 127 "
		 "(in a shell: a command was not found). It was "
		 "started 1 time so far, and the kubelet restarts it automatically. The "
		 "output of that container is in t-0/prep.log.\n"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct world w = {0};

		job(&w, 1, i == 2 ? "Pending" : "Running");
		again(&w, 0, table[i].pod);
		assert_string_equal(spec_state_name(w.last->state), "PENDING");
		assert_string_equal(spec_state_name(w.last->replicas[0].state), "PENDING");
		assert_why(&w, table[i].why);
		world_clear(&w);
	}
}

/* The scheduler's message about an admitted gang is not a cause. */
static void test_passing(void **state)
{
	struct world w = {0};

	job(&w, 2, "Pending");
	group(&w, "Inqueue",
	      "{'type':'Unschedulable','status':'True','lastTransitionTime':'1970-01-01T00:00:03Z',"
	      "'message':'0/2 tasks in gang unschedulable: pod group is ready, 2 minAvailable'}");
	event(&w, "u-g", "Unschedulable", "pod group is ready, 1 Binding, 1 Running", 9);
	pod(&w, 0,
	    "{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"
	    "'Schedulable','message':'Pod ns/j-t-0 can possibly be assigned to node-1, once "
	    "minAvailable is satisfied'}]}");
	pod(&w, 1,
	    UNSCHEDULABLE("0/2 tasks in gang unschedulable: pod group is ready, 1 Binding, 2 "
			  "minAvailable"));
	assert_why(&w, "");
	assert_reason(&w, "\"\"");
	world_clear(&w);
}

/* A gang with enough pods is running, but its other pods may wait in vain. `why` reports that. */
static void test_beside_gang(void **state)
{
#define BESIDE "pod group is ready, 1 Pending, 2 minAvailable, 2 Running; Pending: 1 Unschedulable"
	struct world w = {0};

	job(&w, 3, "Running");
	group(&w, "Running", "");
	pod(&w, 0, STATE("Running", "{'running':{'startedAt':'1970-01-01T00:00:04Z'}}"));
	pod(&w, 1, STATE("Running", "{'running':{'startedAt':'1970-01-01T00:00:04Z'}}"));
	pod(&w, 2, UNSCHEDULABLE(BESIDE));
	assert_why(&w, "t-2 waits for capacity while other replicas run. It starts "
		       "automatically when capacity becomes available.\n");
	assert_string_equal(w.last->replicas[2].reason, "Unschedulable");
	assert_string_equal(w.last->replicas[2].message, BESIDE);
	assert_int_equal(w.last->state, SPEC_RUNNING);
	event(&w, "u-p2", "FailedScheduling", BESIDE, 9);
	assert_false(spec_event_view_is_noise(w.events[0]));
	world_clear(&w);
}

/* --- status and why name the same replica --- */

static void assert_message(const struct world *w, const char *message)
{
	char *text cleanup_free = NULL;
	cleanup_free char *line = NULL;
	size_t len;

	spec_status_yaml(w->last, &text, &len);
	assert_true(asprintf(&line, "\nmessage: \"%s\"\n", message) > 0);
	if (!strstr(text, line))
		fail_msg("not \"%s\" in %s", line, text);
}

/* While a job continues to run, a failed replica counts more than a waiting one. */
static void test_same_failed(void **state)
{
	struct world w = {0};

	job(&w, 3, "Running");
	pod(&w, 0, WAITING("ImagePullBackOff", "no such host"));
	pod(&w, 1, ENDED("3", "Error", ""));
	assert_why(&w, "t-1 ended with exit code 3. There was no retry, because max_retries is "
		       "0.\n");
	assert_reason(&w, "Error");
	assert_message(&w, "t-1: exit code 3");
	/* A cause from the cluster's events does not hide that replica either. */
	event(&w, "u-j", "FailedCreate", "pods \\\"j-t-2\\\" is forbidden: violates PodSecurity",
	      9);
	event(&w, "u-p0", "FailedMount", "no volume", 9);
	assert_why(&w, "t-1 ended with exit code 3. There was no retry, because max_retries is "
		       "0.\n");
	assert_reason(&w, "Error");
	assert_message(&w, "t-1: exit code 3");
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
	assert_why(
		&w,
		"t-1 can't start: no secret. The replica starts automatically when this problem is fixed.\n");
	assert_reason(&w, "CreateContainerConfigError");
	assert_message(&w, "t-1: no secret");
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
	assert_reason(&w, "ClusterFull");
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
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_queue_full),
		cmocka_unit_test(test_gang),
		cmocka_unit_test(test_unmade),
		cmocka_unit_test(test_unmade_again),
		cmocka_unit_test(test_not_starting),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_mount),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_given_up_minutes_after),
		cmocka_unit_test(test_lost_and_probed),
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_passing),
		cmocka_unit_test(test_beside_gang),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_not_a_change),
		cmocka_unit_test(test_same_failed),
		cmocka_unit_test(test_same_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
