/* SPDX-License-Identifier: MIT */
/*
 * The inside of the simulated cluster: server.c keeps objects and tells of their changes, a controller for each kind of
 * job acts on them, and kubelet.c runs pods.
 */
#pragma once

#include <json-c/json.h>

#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define MOST_RUNS    5
#define SERVER_KINDS 4 /* of jobs at most */
/*
 * For so long nobody removes a job. Whoever removes one while its POST is still tried again, since its reply was lost,
 * has it launched twice: its name is free then, and the server knows nothing of it any more.
 */
#define KEPT_S 90 /* and as long as the server may be away */

enum collection {
	JOBS,
	PODS,
	GROUPS,
	EVENTS,
	QUEUES,
	WORKLOADS,
	LOCAL_QUEUES,
	CLUSTER_QUEUES,
	LINKS, /* between a JobSet and its pods, in a history of chains (world.h) */
	N_COLLECTIONS
};

/* One run of a pod's container: when it ran, and the first line that its node still has. */
struct run {
	uint64_t began, ended; /* us; 0: not yet */
	size_t kept;
};

/* What is wrong with a resource: who mounts has no right to it, nothing of it can be made, it is not served. */
enum trouble { NO_TROUBLE, FORBIDDEN, ENDS, UNSERVED };

/* What has a path of its own. */
struct resource {
	enum collection in;
	const char *path, *api, *kind;
	const struct controller *controller; /* of JOBS */
	enum trouble trouble;
};

struct object {
	enum collection in;
	const struct resource *of;
	char *name;
	struct json_object *json;
	bool gone;
	bool foreign;		/* somebody else has made it, or its job */
	bool hostile;		/* no controller acts on it (hostile.c) */
	bool deleted;		/* somebody has deleted it, and it goes some time later */
	bool undone;		/* it was made after what a restored etcd knows */
	uint64_t made, changed; /* us */
	/* Of a job: */
	/* The phase, by Volcano's word for it, whatever kind the job is of; "" until its controller has seen it. */
	const char *phase;
	bool begun;	/* its controller has seen it */
	bool suspended; /* once, by somebody, or made so */
	bool queued;	/* Kueue suspends and resumes it */
	bool revived;	/* by a restored etcd, by which it is not what it was */
	/*
	 * Of one that is not Volcano's: how often it was tried again (a link: its job), and its pod failed in the
	 * present try.
	 */
	unsigned attempt, failures;
	/* Of a pod, or a Workload: */
	struct object *job;
	const struct object *owner; /* another that controls it, as it says; NULL: none */
	const char *container;
	struct run runs[MOST_RUNS];
	size_t n_runs;
	bool reruns;   /* its container runs again when it has failed */
	bool between;  /* and waits for that */
	bool injected; /* a webhook has put a container into it that is not the job's */
	bool over;     /* it does not run any more */
	bool failed;
	bool counted; /* its controller has heard that it has ended */
};

/* A kind of job, and what its controller does. */
struct controller {
	const char *source; /* the word for it in kxfs's SOURCE */
	const char *api, *plural, *kind;
	sim_fn begins; /* it sees the job for the first time */
	sim_fn remove; /* somebody has asked for that */
	/* It sees the job of a restored etcd, and has forgotten all that it had planned. */
	sim_fn restored;
	/* VALUE has been patched into KEY of JOB's spec; NULL: nobody does that. */
	void (*patched)(struct object *job, const char *key, const struct json_object *value);
	/* Of those whose pods controllers.c makes: is there a further try after one more failure of JOB's pod? */
	bool (*goes_on)(const struct object *job);
	/* And it hears that POD has ended. */
	void (*pod_over)(struct object *job, struct object *pod);
};
extern const struct controller controller_volcano, controller_mcad, controller_appwrapper,
	controller_jobset, controller_job;

/* --- server.c --- */

/* In US, unless etcd is restored meanwhile: controllers begin anew then. */
void cluster_after(uint64_t us, sim_fn fn, void *data);
/* What KEY of a map is, which is made if it is not there. */
struct json_object *json_at(struct json_object *o, const char *key);
void json_put(struct json_object *o, const char *key, const char *value);
const char *json_get(struct json_object *o, const char *key);
/* As deep as others may make it; NULL: it is none. */
struct json_object *json_parse(const char *text);
const char *json_print(const struct json_object *o);
const char *object_uid(const struct object *o);
const char *cluster_time(char ret[32]);
/* The condition TYPE of STATUS, borrowed; it is made where there is none. */
struct json_object *cluster_condition(struct json_object *status, const char *type);

/* O is another than watches know. TYPE as they say it. */
void object_changed(struct object *o, const char *type);
/* NULL: there is none. */
struct object *object_find(enum collection in, const char *name);
/* That of the K-th kind of jobs is troubled; watches of it end. */
void cluster_trouble(size_t k, enum trouble trouble);
/* That of what is not a job. */
const struct resource *resource_of(enum collection in);
/* JSON is given away. */
struct object *object_add(const struct resource *of, struct json_object *json);
void object_drop(struct object *o);
/* For so long nobody removes a job (KEPT_S). */
uint64_t cluster_kept_us(void);
/* Its controller is to see JOB, which somebody has made. */
void cluster_begins(struct object *job);
/* JOB has ended; some time later somebody may remove it. */
void server_ended(struct object *job);
/* The K-th of all that there ever were; NULL: no more. */
struct object *object_at(size_t k);
/* Is JOB there, and in PHASE? */
bool object_is(const struct object *job, const char *phase);

void server_reply_with(struct server_reply *ret, int status, char *body);
void server_refuse(struct server_reply *ret, int status, const char *reason);
/* What follows KEY in PATH; "". */
const char *path_query(const char *path, const char *key);

struct server_watch {
	const struct resource *of; /* NULL: it is the log of POD */
	size_t at;		   /* of the changes, or the next line */
	const struct object *pod;
	size_t run; /* of it */
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

/* What a program leaves when it ends, as in a text of JSON. */
const char *hostile_words(void);
/* JOB is gone. */
void hostile_gone(const struct object *job);

/* --- volcano.c --- */

void volcano_command(const char *body, size_t len, struct server_reply *ret);

/* --- controllers.c --- */

/* A controller does it. */
void controller_soon(unsigned seconds, sim_fn fn, void *data);
struct json_object *job_status(const struct object *job);
/* Of its template, with the names, labels and owner that its controller gives it. */
void job_make_pod(struct object *job);
/* Those of JOB go, some time later; ENDED: also those that have ended. */
void job_delete_pods(const struct object *job, bool ended);
/* The controller of JOB, which runs, is to hear that POD has ended. */
void job_over_again(struct object *job, struct object *pod);
/* Kueue has it that JOB waits, or goes on. */
void job_queue(struct object *job, bool waits);

/* --- kueue.c --- */

/* From now on the cluster has it. */
void kueue_begin(void);
/* JOB, an object, is about to be made. */
void kueue_admit(struct json_object *job);
/* It has been made, has ended, is gone. */
void kueue_begins(struct object *job);
void kueue_finished(const struct object *job);
void kueue_gone(const struct object *job);

/* --- kubelet.c --- */

/* JSON, which is given away, is a pod of JOB, whose container is called CONTAINER. */
struct object *pod_add(struct object *job, struct json_object *json, const char *container);
/* The newest pod of JOB that is there; NULL: none. */
struct object *cluster_pod(const struct object *job);
/* Say that POD is in PHASE, and STATE of its container. */
void pod_container(struct object *pod, const char *phase, const char *state);
/* Its container has ended with CODE; PHASE as pod_container has it. */
void pod_ended(struct object *pod, const char *phase, int code);
bool pod_is_running(const struct object *pod);
/* The container of POD begins a run. */
void pod_begin(struct object *pod);
/* POD does not run any more. */
void pod_end(struct object *pod);
/* Its node and the server have nothing of POD any more. */
void pod_removed(void *pod);
/* How many lines has R printed? */
size_t run_printed(const struct run *r);
/* A pod's uid with the number of a run in the place of four zeros. */
void run_uid(const struct object *pod, size_t run, char ret[SERVER_UID + 1]);
struct server_watch *kubelet_log(const char *path, server_event_fn fn, void *data,
				 struct server_reply *ret);
