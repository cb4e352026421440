/* SPDX-License-Identifier: MIT */
/*
 * A snapshot: a job at one moment, independent of what runs the job. A published struct spec_job
 * never changes: kxfs makes a new snapshot instead (rule T3). The reference count is atomic, so any
 * thread may hold snapshots. Times are ns since 1970, or 0. Strings of a published job are not NULL
 * unless noted; "" means empty or unknown.
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
/* Indexed by enum spec_state; ends with NULL. */
extern const char *const spec_state_words[];
const char *spec_state_name(enum spec_state state);
/* True for SUCCEEDED, FAILED and CANCELLED. A read of `wait` blocks until such a state. */
bool spec_state_is_final(enum spec_state state);

/* The start of a state or phase of a job. Plain data. */
struct spec_transition {
	int64_t time;
	enum spec_state state;
	char *phase; /* the backend's name for the phase; "" if the job has no phase yet */
};

/* The newest transitions of a job, oldest first. Times never decrease. */
struct spec_transitions {
	struct spec_transition *v;
	size_t n;
};

/*
 * Record that the job is in STATE and PHASE from TIME on, unless the newest transition has both.
 * Drop the oldest transition beyond SPEC_MAX_TRANSITIONS.
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

/* The resources given to each replica of a role. Plain data. */
struct spec_request {
	int64_t cpu;	      /* thousandths of a core */
	int64_t memory;	      /* requested bytes */
	int64_t memory_limit; /* bytes beyond which the replica is killed */
	int64_t gpu;	      /* 0 if none was requested */
};

/* The usage of an attempt of a replica, up to the time LAST. Plain data. */
struct spec_usage {
	unsigned source;		 /* enum spec_usage_source */
	int64_t cpu_us;			 /* CPU time */
	int64_t cpu_now;		 /* thousandths of a core */
	int64_t memory_now, memory_peak; /* bytes */
	int64_t samples;		 /* samples during the attempt */
	int64_t first, last; /* times of the first and the last sample; 0 without samples */
};

/* --- jobs --- */

/* A log: the output of one container in one attempt. Plain data. */
struct spec_log {
	char *key;	 /* the backend's name; unique in the job, never changes */
	char *container; /* "" for the replica's own container */
	bool complete;	 /* in a cluster: the log has ended and is all on disk */
	bool waiting;	 /* in a cluster: not fetched yet, or ended but not fully fetched */
	bool lost_end;	 /* the output after the captured part is lost; GAP counts this */
	int disk;	 /* in a cluster: the errno of writing to disk, or 0 */
	uint64_t gap;	 /* number of places where output is, or may be, missing */
};

/* The replica restarts with the whole job. */
#define SPEC_REASON_RESTARTING "Restarting"
/* The node does not report the replica's state. */
#define SPEC_REASON_NODE_LOST "NodeLost"
/* The kubelet ended the replica after a failed probe, which the message names. */
#define SPEC_REASON_PROBE "ProbeFailed"
/* A rule of a Job's podFailurePolicy ended the Job. The message names the pod and the rule. */
#define SPEC_REASON_FAILURE_POLICY "PodFailurePolicy"

/* A replica. The backend that runs it fills it in. Plain data. */
struct spec_replica {
	char *name;    /* of its directory: ROLE-K */
	unsigned role; /* index in spec_job.roles */
	unsigned id;   /* the K of its name */
	enum spec_state state;
	unsigned attempt; /* from 0 */
	char *pod;	  /* "" if local */
	char *node;	  /* "" if local */
	char *reason;
	char *message;
	/* the container that blocks the replica or ended it; "" for the main container */
	char *blamed;
	int exit_code; /* -1 if unknown */
	int signal;    /* 0 if none */
	uint64_t gpus; /* local: the machine's GPUs that the replica uses, one bit each */
	/* when the time limit will end this attempt; 0 if never or unknown; not on disk */
	int64_t deadline;
	/*
	 * About a container that failed, and that the kubelet restarts in the same pod. If STATE is
	 * FAILED, the kubelet has restarted the container, and then stopped it.
	 */
	unsigned starts; /* starts of the container so far; 0 if none is restarted */
	int last_code;	 /* exit code of the failed run */
	int64_t next;	 /* time of the next start; 0 if unknown; not on disk */
	int64_t started;
	int64_t finished;	  /* when the last attempt ended */
	struct spec_usage *usage; /* of this attempt; NULL if unknown */
	struct spec_log *logs;	  /* grouped by container ("" first), each group oldest first */
	size_t n_logs;
};

/* Plain data. */
struct spec_role_status {
	char *name;
	unsigned desired;
	unsigned minimum;
	struct spec_request *request; /* NULL if unknown */
	unsigned first, n;	      /* the role's replicas in spec_job.replicas */
};

/*
 * Why a job waits, according to events, the scheduler and the queue. `why` and `status` show the
 * cause instead of the job's reason and message. A new cause does not set spec_job.changed.
 * Plain data.
 */
struct spec_cause {
	const char *reason; /* static; "" if there is no cause to show */
	char *text;	    /* a sentence without its full stop */
	const char *advice; /* static: a sentence on what to do, or "" */
	/* TEXT begins with the name of a replica */
	bool of_replica;
	bool stops; /* TEXT explains why a running job's pods are being ended */
};

/* A job. The backend fills it in, and then publishes it. Plain data. */
struct spec_job {
	unsigned refs; /* atomic */
	bool packed;   /* the job and all that it owns are one block of memory */
	bool held;     /* not launched yet; not on disk */
	/* spec_job_copy copies all members from here on. Small ones come first to avoid gaps. */
	bool silent;   /* the replica that failed first is known to have printed nothing */
	bool no_logs;  /* this user has no right to read logs; not on disk */
	bool fetching; /* the job has ended, and more of its output will arrive soon; not on disk */
	/* the job ended at least a second ago, so `why` counts late logs; not on disk */
	bool behind;
	/* the job has ended, and kxfs does not wait for pods that still run; not on disk */
	bool outlived;
	bool own;	 /* submitted through a mount with this state directory */
	bool mine;	 /* the job has the label of this mount's user; not on disk */
	bool has_appdef; /* the job's app.yaml can be read */
	bool history;	 /* in history/, no longer in jobs/ */
	/* the controller could not create the pods, and gave up; MESSAGE has whole sentences */
	bool given_up;
	bool exact;	  /* REASON or MESSAGE explains a failure better than replicas do */
	bool uncounted;	  /* RETRIES lacks some retries, because nothing counts them */
	bool unexplained; /* the job has failed, and its pods may still show why */
	bool suspended;	  /* the state is final, but the job may resume and print more */
	bool dropped;	  /* local: the output was removed to free space */
	/* the controller ends an attempt whose pods do not start within some minutes */
	bool impatient;
	/* bit sets (1u << enum spec_action) */
	uint8_t actions; /* accepted by ctl now */
	uint8_t pending; /* in a cluster: requested, without a visible effect yet */
	uint8_t ignored; /* in a cluster: requested, but the controller ignored the request */
	enum spec_state state;
	int priority;		 /* of the job's Workload; SPEC_NO_PRIORITY if unknown */
	unsigned queue_position; /* 1 is next; 0 if unknown */
	unsigned evictions;	 /* by Kueue */
	unsigned retries;
	unsigned max_retries;
	/* seconds that an attempt of a replica may run; 0 if unlimited, or if replicas differ */
	int time_limit;
	int ttl; /* local: seconds from the end to the move to history/; -1 for never */
	unsigned n_roles;
	unsigned n_replicas;
	struct spec_replica *replicas;
	struct spec_transitions transitions;
	char *id;  /* name of the job's directory */
	char *uid; /* unique among all jobs that ever had this id */
	char *app;
	char *phase; /* the backend's own word for the state */
	char *reason;
	char *message;
	char *last_words; /* of the replica that failed first (status.h), or "" */
	struct spec_cause cause;
	/* in a queue of Kueue: whole sentences on why the newest pods did not run, or "" */
	char *obstacle;
	char *backend;
	char *namespace;
	char *owner; /* the object's controller in the cluster, as "TrainJob/NAME", or "" */
	char *queue;
	char *cluster_queue; /* the ClusterQueue of QUEUE in Kueue; "" if unknown */
	char *flavors; /* the ResourceFlavors of the current or last quota: RESOURCE=FLAVOR,... */
	char *priority_class; /* of the job's Workload, or "" */
	char *submitter;      /* user@host; "" if unknown */
	char *submission;     /* UUID; "" if kxfs did not submit the job */
	/* static: when the controller retries a failed replica, or why it does not; or "" */
	const char *again;
	int64_t created;
	int64_t started;
	int64_t finished;
	/* last change of state, reason, message or a replica: mtime of the job's directory */
	int64_t changed;
	/* the snapshot may be out of date since this time; 0 if it is up to date */
	int64_t stale_since;
	uint64_t revision; /* unique in a mount, set by the store; 0 if not published */
	/* JSON of the object in the cluster; NULL if local or unknown */
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

const char *spec_action_name(enum spec_action action);
/* Return the name of ACTION's argument in ctl, "NAME" or "CLASS"; NULL without an argument. */
const char *spec_action_argument(enum spec_action action);
/*
 * Parse the name of an action ("abort" means suspend) and its argument, if any. Return the enum
 * spec_action, and the argument in *RET (malloc'ed, or NULL); or -EINVAL.
 */
int spec_action_parse(const char *text, char **ret);

/*
 * Create an empty job with one reference. Texts are "", numbers 0, and exit codes -1. The caller
 * sets FIRST and N of each role, and sets strings with spec_set.
 */
struct spec_job *spec_job_new(size_t n_roles, size_t n_replicas);
/* Return a copy of FROM with one reference, to be changed and published. */
struct spec_job *spec_job_copy(const struct spec_job *from);
/* Move FROM, which has one reference, into one block of memory, which must not be changed. */
struct spec_job *spec_job_pack(struct spec_job *from);
/* Record that the output after the captured part of LOG is lost. May be called again. */
void spec_log_lose_end(struct spec_log *log);
/* True if each log of JOB is complete, or its end is known to be lost. */
bool spec_job_has_ends(const struct spec_job *job);
/* Add a log to R, as the newest of CONTAINER. NULL or "" is the replica's own container. */
void spec_replica_add_log(struct spec_replica *r, const char *key, const char *container);
/* Add a copy of LOG to R, without WAITING and DISK, as the newest log of its container. */
void spec_replica_copy_log(struct spec_replica *r, const struct spec_log *log);

/*
 * Return the prefix of R's lines in the merged log ("trainer/0 "), malloc'ed. It contains the
 * role's part of R's name, because the role's own name may contain any bytes.
 */
char *spec_replica_log_prefix(const struct spec_replica *r);
/* Return the index after the last log of a container. FIRST is the index of its first log. */
size_t spec_replica_logs_end(const struct spec_replica *r, size_t first);
/* Return the file name of log I of N: "log", "log.0", "CONTAINER.log.0". Malloc'ed. */
char *spec_log_file(const char *container, size_t i, size_t n);

/* Set the usage of R to a copy of USAGE, or to unknown if USAGE is NULL. */
void spec_replica_set_usage(struct spec_replica *r, const struct spec_usage *usage);
/* Like spec_replica_set_usage. */
void spec_role_set_request(struct spec_role_status *role, const struct spec_request *request);

const struct spec_job *spec_job_ref(const struct spec_job *job);
void spec_job_unref(const struct spec_job *job); /* NULL is allowed */
static inline void spec_job_unrefp(void *p)
{
	spec_job_unref(*(const struct spec_job *const *)p);
}
#define cleanup_job cleanup(spec_job_unrefp)

/* Return the name of JOB's files on disk: the submission's UUID if JOB is OWN, else the uid. */
const char *spec_job_key(const struct spec_job *job);
/* True if JOB's state is final. False for a suspended job, which may resume. */
bool spec_job_has_ended(const struct spec_job *job);
/*
 * True if JOB and all its replicas have ended. A server may report the end of a job before the ends
 * of its pods. If kxfs does not wait for these pods (OUTLIVED), the end of JOB suffices.
 */
bool spec_job_is_over(const struct spec_job *job);
/* Return the replica whose directory is NAME, or NULL. */
const struct spec_replica *spec_job_replica(const struct spec_job *job, const char *name);

/* True if R waits, and its message only shows that the job's pods wait for each other. */
bool spec_replica_waits_for_gang(const struct spec_replica *r);
/*
 * Return the replica that failed first, or NULL. A replica whose end is unknown counts as the last.
 * *RET_N (may be NULL) is the number of failed replicas. Ignore an attempt of a step of a Workflow
 * if another attempt followed.
 */
const struct spec_replica *spec_job_first_failed(const struct spec_job *job, size_t *ret_n);
bool spec_job_any(const struct spec_job *job, enum spec_state state);
/*
 * Return the first replica that waits with a reason of its own, or NULL. *RET_N (may be NULL) is
 * the number of replicas with the same reason.
 */
const struct spec_replica *spec_job_first_waiting(const struct spec_job *job, size_t *ret_n);
