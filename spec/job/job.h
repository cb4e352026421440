/* SPDX-License-Identifier: MIT */
/*
 * A snapshot: a job at one moment, independent of what runs the job. A published struct spec_job
 * never changes: kxfs makes a new snapshot instead (rule T3). The reference count is atomic, so any
 * thread may hold snapshots. Times are nanoseconds since 1970 UTC, or 0. Strings of a published job
 * are not NULL unless noted; "" means empty or unknown.
 */
#pragma once

#include "spec/base/mem.h"

/* --- states and transitions --- */

#define SPEC_MAX_TRANSITIONS 64

/* The states of TorchX's AppState, except UNSUBMITTED. */
enum spec_state {
	SPEC_SUBMITTED,
	SPEC_PENDING,
	SPEC_RUNNING,
	SPEC_SUCCEEDED,
	SPEC_FAILED,
	SPEC_CANCELLED,
	SPEC_UNKNOWN,
	SPEC_N_STATES
};

/* Initializers for an array indexed by enum spec_state: the state's name and the literal END. */
#define SPEC_STATE_WORDS(end)                                                                      \
	[SPEC_SUBMITTED] = "SUBMITTED" end, [SPEC_PENDING] = "PENDING" end,                        \
	[SPEC_RUNNING] = "RUNNING" end, [SPEC_SUCCEEDED] = "SUCCEEDED" end,                        \
	[SPEC_FAILED] = "FAILED" end, [SPEC_CANCELLED] = "CANCELLED" end,                          \
	[SPEC_UNKNOWN] = "UNKNOWN" end
/* The names of all states, such as "RUNNING", indexed by enum spec_state. NULL at the end. */
extern const char *const spec_state_words[];
/* Return the name of STATE, such as "RUNNING". The text is static. */
const char *spec_state_name(enum spec_state state);
/* True for SUCCEEDED, FAILED and CANCELLED. A read of `wait` blocks until such a state. */
bool spec_state_is_final(enum spec_state state);

/* The start of a state or phase of a job. Plain data. */
struct spec_transition {
	int64_t time;
	enum spec_state state;
	char *phase; /* the backend's name for the phase; "" if the job has no phase yet */
};

/*
 * The newest transitions of a job, oldest first. Times never decrease. Zeroed, the list is empty.
 */
struct spec_transitions {
	struct spec_transition *v;
	size_t n;
};

/*
 * Record that the job is in STATE and PHASE from TIME on, unless the newest transition has both. If
 * there are SPEC_MAX_TRANSITIONS already, drop the oldest.
 */
void spec_transitions_add(struct spec_transitions *t, enum spec_state state, const char *phase,
			  int64_t time);
/* Copy FROM to TO, which must be empty. */
void spec_transitions_copy(struct spec_transitions *to, const struct spec_transitions *from);
void spec_transitions_clear(struct spec_transitions *t);

/* --- resources of replicas; -1 means unknown --- */

/*
 * How struct spec_usage is measured. LOCAL: the helper of a replica adds up the usage of processes
 * that have ended, and samples /proc for the others. METRICS: kxfs samples the cluster's metrics
 * API. CPU_US is then the sum of each sample's CPU usage times the time since the previous sample.
 */
enum spec_usage_source { SPEC_USAGE_LOCAL, SPEC_USAGE_METRICS, SPEC_N_USAGE_SOURCES };

/* The resources given to each replica of a role. Plain data: the backend fills it in. */
struct spec_request {
	int64_t cpu;	      /* thousandths of a core */
	int64_t memory;	      /* bytes requested for the replica */
	int64_t memory_limit; /* bytes beyond which the replica is killed */
	int64_t gpu;	      /* 0 if none was requested */
};

/*
 * The usage of an attempt of a replica, up to the time LAST. Plain data: the backend fills it in.
 */
struct spec_usage {
	unsigned source;		 /* enum spec_usage_source */
	int64_t cpu_us;			 /* CPU time */
	int64_t cpu_now;		 /* thousandths of a core */
	int64_t memory_now, memory_peak; /* bytes */
	int64_t samples;		 /* number of samples during the attempt */
	/* times of the first and the last sample, ns; 0 if there are no samples */
	int64_t first, last;
};

/* --- jobs --- */

/* A log: the output of one container in one attempt. Plain data. */
struct spec_log {
	char *key;	 /* the backend's name for the log; unique in the job, never changes */
	char *container; /* "" for the replica's own container */
	/* for a log in a cluster: true if it has ended and all of it is on disk */
	bool complete;
	/*
	 * For a log in a cluster: true if it waits to be fetched, or has ended and is still being
	 * fetched.
	 */
	bool waiting;
	/* true if the output after the captured part is lost; GAP includes this */
	bool lost_end;
	int disk;     /* for a log in a cluster: the errno if writing to disk fails, or 0 */
	uint64_t gap; /* number of places where output is missing, or may be */
};

/* Reason of a replica that restarts with the whole job. */
#define SPEC_REASON_RESTARTING "Restarting"
/* Reason of a replica whose node does not report the replica's state. */
#define SPEC_REASON_NODE_LOST "NodeLost"
/* Reason of a replica that the kubelet ended after a failed probe, which the message names. */
#define SPEC_REASON_PROBE "ProbeFailed"
/*
 * Reason of a Job that a rule of its podFailurePolicy ended. The message names the pod and the
 * rule.
 */
#define SPEC_REASON_FAILURE_POLICY "PodFailurePolicy"

/* A replica. Plain data. The backend that runs the replica fills it in. */
struct spec_replica {
	char *name;    /* name of its directory: ROLE-K */
	unsigned role; /* index in spec_job.roles */
	unsigned id;   /* the K of its name */
	enum spec_state state;
	unsigned attempt; /* from 0 */
	char *pod;	  /* local: "" */
	char *node;	  /* local: "" */
	char *reason;
	char *message;
	/*
	 * Name of the container that blocks the replica or ended it; "" if this is the main
	 * container.
	 */
	char *blamed;
	int exit_code; /* -1 if unknown */
	int signal;    /* 0 if none */
	/* for a local job: the machine's GPUs that the replica uses, one bit each */
	uint64_t gpus;
	/*
	 * When the time limit will end this attempt; 0 if there is no limit, or if unknown. Not on
	 * disk.
	 */
	int64_t deadline;
	/*
	 * The next three members are for a container that failed and is restarted in the same pod.
	 * If the replica is FAILED, the container was stopped after a restart.
	 */
	unsigned starts; /* starts of the container so far; 0 if no container is restarted */
	int last_code;	 /* exit code of the failed run */
	int64_t next;	 /* when the container will start again; 0 if unknown. Not on disk. */
	int64_t started;
	int64_t finished;	  /* when the last attempt of the replica ended */
	struct spec_usage *usage; /* the usage of this attempt; NULL if unknown */
	struct spec_log *logs;	  /* grouped by container ("" first), each group oldest first */
	size_t n_logs;
};

/* A role of a job. Plain data. */
struct spec_role_status {
	char *name;
	unsigned desired;
	unsigned minimum;
	struct spec_request *request; /* the resources given to each replica; NULL if unknown */
	unsigned first, n;	      /* the role's replicas in spec_job.replicas */
};

/*
 * Why a job waits, according to events, the scheduler and the queue. `why` and `status` show the
 * cause instead of the job's reason and message. A new cause does not set CHANGED. Plain data.
 */
struct spec_cause {
	const char *reason; /* static; "" if there is no cause to show */
	char *text;	    /* a sentence without its full stop */
	const char *advice; /* static: a sentence on what to do, or "" */
	/* true if TEXT is about one replica and begins with its name */
	bool of_replica;
	bool stops; /* true if TEXT explains why a running job's pods are being ended */
};

/* A job. Plain data: the backend fills it in, and then publishes it. */
struct spec_job {
	unsigned refs; /* atomic; only spec_job_ref and spec_job_unref touch it */
	bool packed;   /* true if the job and all that it owns are one block of memory */
	/* true if kxfs holds the job and has not launched it yet; not on disk */
	bool held;
	/*
	 * spec_job_copy copies this member and all that follow. Small members come first to avoid
	 * gaps.
	 */
	bool silent; /* true if the replica that failed first is known to have printed nothing */
	/* true if this user has no right to read logs; not on disk */
	bool no_logs;
	/* true if the job has ended, and more of its output will arrive soon; not on disk */
	bool fetching;
	bool behind; /* true if the job ended at least a second ago; not on disk */
	/* true if the job has ended, and kxfs does not wait for pods that still run; not on disk */
	bool outlived;
	/* true if the job was submitted through a mount with this state directory */
	bool own;
	bool mine;	 /* true if the job has the label of this mount's user; not on disk */
	bool has_appdef; /* true if the job's app.yaml can be read */
	bool history;	 /* true if the job is in history/ and no longer in jobs/ */
	/*
	 * True if the controller gave up the job because it could not create the pods. MESSAGE then
	 * has whole sentences.
	 */
	bool given_up;
	bool exact;	  /* true if REASON or MESSAGE explains a failure better than replicas do */
	bool uncounted;	  /* true if nothing counts some of the retries; RETRIES lacks them */
	bool unexplained; /* true if the job has failed, and its pods may still show why */
	/* True if the job is suspended. Its state is final, but it may resume and print more. */
	bool suspended;
	bool dropped; /* for a local job: true if its output was removed to free space */
	/* true if the controller ends an attempt whose pods do not start within some minutes */
	bool impatient;
	/* The next three members are bit sets (1u << enum spec_action). */
	uint8_t actions; /* actions that ctl would accept now */
	/* for a job in a cluster: requested actions without a visible effect yet */
	uint8_t pending;
	uint8_t ignored; /* requested actions that had no effect */
	enum spec_state state;
	int priority;		 /* priority of its Workload; SPEC_NO_PRIORITY if unknown */
	unsigned queue_position; /* the job's position in its queue: 1 is next; 0 if unknown */
	unsigned evictions;	 /* how often Kueue has evicted the job */
	unsigned retries;
	unsigned max_retries;
	/* Seconds that each attempt of a replica may run; 0 if unlimited, or if replicas differ. */
	int time_limit;
	/* for a local job: seconds from its end to its move to history/; -1 for never */
	int ttl;
	unsigned n_roles;
	unsigned n_replicas;
	struct spec_replica *replicas;
	struct spec_transitions transitions; /* when each phase began */
	char *id;			     /* name of the job's directory */
	char *uid;			     /* unique among all jobs that ever had this id */
	char *app;
	char *phase; /* the backend's own word for the state */
	char *reason;
	char *message;
	/* the last words of the replica that failed first (see status.h), or "" */
	char *last_words;
	struct spec_cause cause;
	/* In a queue of Kueue: whole sentences on why the newest pods did not run, or "". */
	char *obstacle;
	char *backend;
	char *namespace;
	/* The object that controls the job's object in the cluster, as "TrainJob/NAME"; or "". */
	char *owner;
	char *queue;
	/* the ClusterQueue of a queue of Kueue; "" if unknown */
	char *cluster_queue;
	/*
	 * The ResourceFlavors of the job's current or last quota: RESOURCE=FLAVOR, separated by
	 * commas.
	 */
	char *flavors;
	char *priority_class; /* name of its Workload's priority class, or "" */
	char *submitter;      /* user@host; "" if unknown */
	char *submission;     /* UUID of its submission; "" if kxfs did not submit it */
	/*
	 * A static sentence on when the controller retries a failed replica, or why it does not
	 * although retries are left; or "".
	 */
	const char *again;
	int64_t created;
	int64_t started;
	int64_t finished;
	/* last change of state, reason, message or a replica: mtime of the job's directory */
	int64_t changed;
	/* since when the cluster has not confirmed the snapshot; 0 if it is confirmed */
	int64_t stale_since;
	/*
	 * Number of a published snapshot, unique in a mount; the store sets it. 0 if not published.
	 */
	uint64_t revision;
	/* the JSON of the job's object in the cluster; NULL for a local job, or if unknown */
	struct spec_text *object;
	struct spec_role_status roles[];
};

#define SPEC_NO_PRIORITY INT32_MIN

enum spec_action {
	SPEC_SUSPEND,
	SPEC_RESUME,
	SPEC_RESTART,
	SPEC_TERMINATE,
	SPEC_RELEASE,  /* start a held job */
	SPEC_QUEUE,    /* move the job to the queue that the argument names */
	SPEC_PRIORITY, /* set the priority class that the argument names */
	SPEC_N_ACTIONS
};

/* Return the name of ACTION, such as "suspend". The text is static. */
const char *spec_action_name(enum spec_action action);
/* Return the argument of ACTION in the file ctl, "NAME" or "CLASS"; NULL if it has none. */
const char *spec_action_argument(enum spec_action action);
/*
 * Parse TEXT: the name of an action ("abort" means suspend) and, for some actions, an argument.
 * Return the enum spec_action, and the argument in *RET (malloc'ed, or NULL); or -EINVAL.
 */
int spec_action_parse(const char *text, char **ret);

/*
 * Create an empty job with roles and replicas, to be filled in and published. It has one reference.
 * Texts are "", numbers 0, and exit codes -1. The caller sets FIRST and N of each role, and sets
 * strings with spec_set.
 */
struct spec_job *spec_job_new(size_t n_roles, size_t n_replicas);
/* Return a copy of FROM with one reference, to be changed and published. */
struct spec_job *spec_job_copy(const struct spec_job *from);
/*
 * Move FROM, which has only one reference, into one block of memory, and return the result, to be
 * published. From now on, the job can be copied, but not changed.
 */
struct spec_job *spec_job_pack(struct spec_job *from);
/* Record that the output after the captured part of LOG is lost. A second call has no effect. */
void spec_log_lose_end(struct spec_log *log);
/* True if each log of JOB is complete, or its end is known to be lost. */
bool spec_job_has_ends(const struct spec_job *job);
/* Add a log to R, as the newest of CONTAINER. NULL or "" is the replica's own container. */
void spec_replica_add_log(struct spec_replica *r, const char *key, const char *container);
/* Add a copy of LOG to R, without WAITING and DISK, as the newest log of its container. */
void spec_replica_copy_log(struct spec_replica *r, const struct spec_log *log);

/*
 * Return the prefix of the lines of R's log in the merged log ("trainer/0 "), malloc'ed. It begins
 * with the role's part of R's name, because the role's own name may contain any bytes.
 */
char *spec_replica_log_prefix(const struct spec_replica *r);
/* R's logs are grouped by container. Return the end of the group that begins at the index FIRST. */
size_t spec_replica_logs_end(const struct spec_replica *r, size_t first);
/*
 * Return the file name of log I of the N logs of CONTAINER: "log", "log.0", "CONTAINER.log.0".
 * Malloc'ed.
 */
char *spec_log_file(const char *container, size_t i, size_t n);

/* Set the usage of R to a copy of USAGE; NULL if unknown. */
void spec_replica_set_usage(struct spec_replica *r, const struct spec_usage *usage);
/* Set the resources given to each replica of ROLE to a copy of REQUEST; NULL if unknown. */
void spec_role_set_request(struct spec_role_status *role, const struct spec_request *request);

const struct spec_job *spec_job_ref(const struct spec_job *job);
void spec_job_unref(const struct spec_job *job); /* NULL is allowed */
/* P is the address of a (const) struct spec_job pointer. */
static inline void spec_job_unrefp(void *p)
{
	spec_job_unref(*(const struct spec_job *const *)p);
}
#define cleanup_job cleanup(spec_job_unrefp)

/*
 * Return the name of JOB's files in the state directory: the UUID of the submission if the job was
 * submitted through this state directory, else the job's uid.
 */
const char *spec_job_key(const struct spec_job *job);
/* True if JOB's state is final. False for a suspended job, which may resume. */
bool spec_job_has_ended(const struct spec_job *job);
/*
 * True if JOB has ended and each replica has ended, too. If kxfs no longer waits for a replica
 * (OUTLIVED), it counts as ended. In a cluster, the server may report the job's end before the ends
 * of its pods.
 */
bool spec_job_is_over(const struct spec_job *job);
/* Return the replica whose directory is NAME, or NULL. */
const struct spec_replica *spec_job_replica(const struct spec_job *job, const char *name);

/* True if R waits, and its message only shows that the job's pods wait for each other. */
bool spec_replica_waits_for_gang(const struct spec_replica *r);
/*
 * Return the replica that failed first, which `status` and `why` name, or NULL. A replica whose end
 * has no known time counts as the last. Ignore attempts of a step of a Workflow if another attempt
 * followed. *RET_N (may be NULL) is the number of failed replicas.
 */
const struct spec_replica *spec_job_first_failed(const struct spec_job *job, size_t *ret_n);
/* True if any replica of JOB is in this STATE. */
bool spec_job_any(const struct spec_job *job, enum spec_state state);
/*
 * Return the first replica that waits with a reason of its own, or NULL. `status` and `why` name it
 * if no replica has failed. *RET_N (may be NULL) is the number of replicas with the same reason.
 */
const struct spec_replica *spec_job_first_waiting(const struct spec_job *job, size_t *ret_n);
