/* SPDX-License-Identifier: MIT */
/*
 * The inside of the simulated cluster: server.c stores objects and sends watch events, a controller
 * for each kind of job acts on the objects, and kubelet.c runs pods.
 */
#pragma once

#include <json-c/json.h>

#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define MOST_RUNS    5
#define SERVER_KINDS 4 /* the largest number of kinds of jobs */
/*
 * Nobody removes a job in its first KEPT_S seconds. kxfs retries a POST whose reply was lost. If
 * the job were removed before the retry, its name would be free, the server would have forgotten
 * the job, and the retry would create it a second time.
 */
#define KEPT_S 90 /* longer than the server may be unreachable */

enum collection {
	JOBS,
	PODS,
	GROUPS,
	EVENTS,
	QUEUES,
	WORKLOADS,
	LOCAL_QUEUES,
	CLUSTER_QUEUES,
	LINKS, /* with chains (world.h): a JobSet owns a Link, and the Link owns the pods */
	N_COLLECTIONS
};

/* One run of a pod's container: its times, and the first line that the node still has. */
struct run {
	uint64_t began, ended; /* us; 0: not yet */
	size_t kept;
};

/*
 * Faults of a resource. FORBIDDEN: the mounting user has no right to it. ENDS: its definition is
 * being removed, so nothing can be created. UNSERVED: the server does not serve it.
 */
enum trouble { NO_TROUBLE, FORBIDDEN, ENDS, UNSERVED };

/* A resource of the API: it has its own path. */
struct resource {
	enum collection in;
	const char *path, *api, *kind;
	const struct controller *controller; /* for JOBS only */
	enum trouble trouble;
};

struct object {
	enum collection in;
	const struct resource *of;
	char *name;
	struct json_object *json;
	bool gone;
	bool foreign;		/* another user created this object, or the job of this pod */
	bool hostile;		/* no controller acts on it (hostile.c) */
	bool deleted;		/* deletion was requested; it is removed some time later */
	bool undone;		/* it was created after the backup from which etcd was restored */
	uint64_t made, changed; /* us */
	/* Of a job: */
	/* The phase in Volcano's terms for all kinds; "" until the controller has seen the job. */
	const char *phase;
	bool begun;	/* its controller has seen it */
	bool suspended; /* it was suspended at least once, by a user or when it was created */
	bool queued;	/* Kueue suspends and resumes it */
	bool revived;	/* restoring etcd has set it back to an earlier version */
	/*
	 * For kinds other than Volcano's: the number of restarts, and of pod failures since the
	 * last restart. A link has the ATTEMPT of its job.
	 */
	unsigned attempt, failures;
	/* Of a pod, or a Workload: */
	struct object *job;
	const struct object *owner; /* another controlling owner in its metadata, or NULL */
	const char *container;
	struct run runs[MOST_RUNS];
	size_t n_runs;
	bool reruns;   /* its container is restarted after a failure */
	bool between;  /* the container waits for its restart */
	bool injected; /* a webhook has added a container */
	bool over;     /* the pod does not run any more */
	bool failed;
	bool counted; /* its controller has seen that the pod has ended */
};

/* A kind of jobs and the callbacks of its controller. */
struct controller {
	const char *source; /* the kind's name in kxfs's SOURCE */
	const char *api, *plural, *kind;
	sim_fn begins; /* the controller sees the job for the first time */
	sim_fn remove; /* the deletion of the job was requested */
	/*
	 * Called after a restore of etcd, because the restore has dropped the controller's
	 * scheduled calls. The controller sees the job again.
	 */
	sim_fn restored;
	/* KEY in JOB's spec was patched to VALUE. NULL: no user patches jobs of this kind. */
	void (*patched)(struct object *job, const char *key, const struct json_object *value);
	/*
	 * Only for kinds whose pods controllers.c creates: true if the controller restarts JOB
	 * after one more failure of its pod.
	 */
	bool (*goes_on)(const struct object *job);
	/* For the same kinds: notify the controller that POD of JOB has ended. */
	void (*pod_over)(struct object *job, struct object *pod);
};
extern const struct controller controller_volcano, controller_mcad, controller_appwrapper,
	controller_jobset, controller_job;

/* --- server.c --- */

/*
 * Call FN(DATA) after US microseconds, unless etcd is restored before that: after a restore,
 * controllers start afresh.
 */
void cluster_after(uint64_t us, sim_fn fn, void *data);
/* Return the map KEY of O. Add the map if it is missing. */
struct json_object *json_at(struct json_object *o, const char *key);
void json_put(struct json_object *o, const char *key, const char *value);
const char *json_get(struct json_object *o, const char *key);
/* Parse TEXT, which may be nested deeper than json-c's default. Return NULL if it is not JSON. */
struct json_object *json_parse(const char *text);
const char *json_print(const struct json_object *o);
const char *object_uid(const struct object *o);
const char *cluster_time(char ret[32]);
/* Return the condition TYPE of STATUS, borrowed. Add it if it is missing. */
struct json_object *cluster_condition(struct json_object *status, const char *type);

/* Send O, which has changed, to watches as an event of TYPE. */
void object_changed(struct object *o, const char *type);
/* Return the object NAME of the collection IN, or NULL if there is none. */
struct object *object_find(enum collection in, const char *name);
/* Set the fault of the K-th kind of jobs, and end its watches. */
void cluster_trouble(size_t k, enum trouble trouble);
/* Forbid the mounting user to list and watch links, or allow it again. End all watches of links. */
void cluster_forbid_links(bool forbidden);
/* Return the resource of a collection other than JOBS. */
const struct resource *resource_of(enum collection in);
/* Create an object of the resource OF from JSON, and take ownership of JSON. */
struct object *object_add(const struct resource *of, struct json_object *json);
void object_drop(struct object *o);
/* Return the time during which nobody removes a new job, in us (see KEPT_S). */
uint64_t cluster_kept_us(void);
/* Begin JOB, which a user has created: notify Kueue, and schedule its controller's first step. */
void cluster_begins(struct object *job);
/* After a restore of etcd, let the controller of the job DATA continue, unless the job is gone. */
void cluster_restored(void *data);
/* Notify Kueue that JOB has ended. Sometimes schedule the removal of JOB by another user. */
void server_ended(struct object *job);
/* Return the K-th of all objects that were ever created, or NULL. */
struct object *object_at(size_t k);
/* True if JOB exists and is in PHASE. */
bool object_is(const struct object *job, const char *phase);

void server_reply_with(struct server_reply *ret, int status, char *body);
void server_refuse(struct server_reply *ret, int status, const char *reason);
/* Return the value of the query parameter KEY in PATH, or "". */
const char *path_query(const char *path, const char *key);

struct server_watch {
	const struct resource *of; /* NULL if this streams the log of POD */
	size_t at;		   /* position in the changes, or the next line of the log */
	const struct object *pod;
	size_t run; /* the run of POD */
	bool follow;
	unsigned version;
	uint64_t lag;
	server_event_fn fn;
	void *data;
	bool gone, due;
	struct server_watch *next;
};
struct server_watch *cluster_watch(server_event_fn fn, void *data);

/* --- hostile.c --- */

/* Return a termination message, escaped for JSON. */
const char *hostile_words(void);
/* Schedule the removal of hostile pods whose owner JOB was removed. */
void hostile_gone(const struct object *job);

/* --- volcano.c --- */

void volcano_command(const char *body, size_t len, struct server_reply *ret);

/* --- controllers.c --- */

/* Call FN(DATA), a step of a controller, within SECONDS. A restore of etcd cancels the call. */
void controller_soon(unsigned seconds, sim_fn fn, void *data);
struct json_object *job_status(const struct object *job);
/* Create a pod from JOB's template, with the names, labels and owner that its controller sets. */
void job_make_pod(struct object *job);
/*
 * Request the deletion of JOB's pods. Each pod is removed some time later. ENDED: include pods that
 * have ended.
 */
void job_delete_pods(const struct object *job, bool ended);
/*
 * After a restore of etcd, notify JOB's controller again that POD of the running JOB has ended.
 */
void job_over_again(struct object *job, struct object *pod);
/* True if JOB is an AppWrapper that is still Running, in the grace period after a pod failure. */
bool job_has_grace(const struct object *job);
/* Let Kueue suspend JOB if WAITS is true, and resume it otherwise. */
void job_queue(struct object *job, bool waits);

/* --- kueue.c --- */

/* Install Kueue in the cluster. */
void kueue_begin(void);
/* The object JOB is about to be created. Let Kueue's webhook suspend it if it has a queue. */
void kueue_admit(struct json_object *job);
/* Notify Kueue that JOB was created, has finished, or was removed. */
void kueue_begins(struct object *job);
void kueue_finished(const struct object *job);
void kueue_gone(const struct object *job);

/* --- kubelet.c --- */

/*
 * Add a pod with the contents JSON to JOB, and take ownership of JSON. The pod's container is
 * called CONTAINER.
 */
struct object *pod_add(struct object *job, struct json_object *json, const char *container);
/* Return the newest pod of JOB that exists, or NULL. */
struct object *cluster_pod(const struct object *job);
/* Set the phase of POD, and the state of its container. */
void pod_container(struct object *pod, const char *phase, const char *state);
/* Set the state of POD's container, which has exited with CODE, and the PHASE of POD. */
void pod_ended(struct object *pod, const char *phase, int code);
bool pod_is_running(const struct object *pod);
/* Start a run of POD's container. */
void pod_begin(struct object *pod);
/* End the current run of POD for good. */
void pod_end(struct object *pod);
/* POD was removed from its node and from the server. */
void pod_removed(void *pod);
/* Return the number of lines that R has printed. */
size_t run_printed(const struct run *r);
/* Copy POD's uid to RET, with four of its zeros replaced by the number RUN. */
void run_uid(const struct object *pod, size_t run, char ret[SERVER_UID + 1]);
struct server_watch *kubelet_log(const char *path, server_event_fn fn, void *data,
				 struct server_reply *ret);
