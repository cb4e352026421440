/* SPDX-License-Identifier: MIT */
/*
 * A snapshot: the state of a job at one moment. Jobs of all backends have the same struct. A
 * published struct spec_job never changes: kxfs makes a new snapshot instead (rule T3). The
 * reference count is atomic, so any thread may own references. Times are ns since 1970; 0 means
 * unknown or none. Strings of a published job are not NULL unless noted; "" means empty or unknown.
 * A member that is marked "not on disk" is not written to the state directory.
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

/*
 * Initializers for an array indexed by enum spec_state. Each element is the name of the state,
 * followed by the string literal END.
 */
#define SPEC_STATE_WORDS(end)                                                                      \
	[SPEC_SUBMITTED] = "SUBMITTED" end, [SPEC_PENDING] = "PENDING" end,                        \
	[SPEC_RUNNING] = "RUNNING" end, [SPEC_SUCCEEDED] = "SUCCEEDED" end,                        \
	[SPEC_FAILED] = "FAILED" end, [SPEC_CANCELLED] = "CANCELLED" end,                          \
	[SPEC_UNKNOWN] = "UNKNOWN" end
/* Indexed by enum spec_state; ends with NULL. */
extern const char *const spec_state_words[];
const char *spec_state_name(enum spec_state state);
/* True for SUCCEEDED, FAILED and CANCELLED. A read of `wait` blocks until the state is final. */
bool spec_state_is_final(enum spec_state state);

/* The moment at which a job got a new state or phase. Plain data. */
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
 * Record that the job is in STATE and PHASE from TIME on. Do nothing if the newest transition has
 * the same state and phase. If there are more than SPEC_MAX_TRANSITIONS, drop the oldest one.
 */
void spec_transitions_add(struct spec_transitions *t, enum spec_state state, const char *phase,
			  int64_t time);
/* Copy FROM to TO, which must be empty. */
void spec_transitions_copy(struct spec_transitions *to, const struct spec_transitions *from);
void spec_transitions_clear(struct spec_transitions *t);

/* --- resources of replicas; -1 means unknown --- */

/*
 * How kxfs measures struct spec_usage. LOCAL: the helper process of a replica adds up the usage of
 * the processes that have ended, and samples /proc for those that still run. METRICS: kxfs samples
 * the cluster's metrics API. It then estimates CPU_US: it multiplies the CPU usage in each sample
 * by the time since the previous sample, and adds up the products.
 */
enum spec_usage_source { SPEC_USAGE_LOCAL, SPEC_USAGE_METRICS, SPEC_N_USAGE_SOURCES };

/* The resources that a role requests for each of its replicas. Plain data. */
struct spec_request {
	int64_t cpu;	      /* thousandths of a core */
	int64_t memory;	      /* requested bytes */
	int64_t memory_limit; /* bytes; a replica that uses more is killed */
	int64_t gpu;	      /* 0 if none was requested */
};

/* The usage of an attempt of a replica, up to the time LAST. Plain data. */
struct spec_usage {
	unsigned source;		 /* enum spec_usage_source */
	int64_t cpu_us;			 /* CPU time */
	int64_t cpu_now;		 /* thousandths of a core */
	int64_t memory_now, memory_peak; /* bytes */
	int64_t samples;		 /* number of samples */
	int64_t first, last; /* times of the first and the last sample; 0 without samples */
};

/* --- jobs --- */

/* A log: the output of one container in one attempt. Plain data. */
struct spec_log {
	char *key;	 /* the backend's name for the log; unique in the job, never changes */
	char *container; /* "" for the main container */
	bool complete;	 /* in a cluster: the log has ended, and all of it is on disk */
	/*
	 * In a cluster: kxfs does not fetch the log yet, or has paused, or has not fetched all of a
	 * log that has ended.
	 */
	bool waiting;
	bool lost_end; /* the output after the captured part is lost; GAP counts this place */
	int disk;      /* in a cluster: the errno if kxfs can't write the log to disk; else 0 */
	uint64_t gap;  /* number of places where output is, or may be, missing */
};

/* The reason of a replica that restarts because the whole job restarts. */
#define SPEC_REASON_RESTARTING "Restarting"
/* The node does not report the replica's state. */
#define SPEC_REASON_NODE_LOST "NodeLost"
/* The kubelet ended the replica after a failed probe, which the message names. */
#define SPEC_REASON_PROBE "ProbeFailed"
/* A rule of a Job's podFailurePolicy ended the Job. The message names the pod and the rule. */
#define SPEC_REASON_FAILURE_POLICY "PodFailurePolicy"

/* A replica. The backend fills it in. Plain data. */
struct spec_replica {
	char *name;    /* of the replica's directory: ROLE-K */
	unsigned role; /* index in spec_job.roles */
	unsigned id;   /* the number K in NAME */
	enum spec_state state;
	unsigned attempt; /* from 0 */
	char *pod;	  /* "" if local */
	char *node;	  /* "" if local */
	char *reason;
	char *message;
	/* the container that prevents the start or caused the failure; "" for the main container */
	char *blamed;
	int exit_code; /* -1 if unknown */
	int signal;    /* 0 if none */
	uint64_t gpus; /* local: which of the machine's GPUs the replica uses, one bit each */
	/* when the time limit will end this attempt; 0 if not limited or unknown; not on disk */
	int64_t deadline;
	/*
	 * These members are about a container that fails, and that the kubelet restarts in the same
	 * pod. If STATE is FAILED, the kubelet restarted the container after its failure, but later
	 * stopped it.
	 */
	unsigned starts; /* how often the container was started; 0 if there is no such container */
	int last_code;	 /* exit code of the run that failed last */
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
	unsigned first, n;	      /* of its replicas: index in spec_job.replicas, and number */
};

/*
 * Why a job waits, according to events, the scheduler and the queue. If there is a cause, `why` and
 * `status` show it instead of the job's reason and message. A new cause does not update
 * spec_job.changed. Plain data.
 */
struct spec_cause {
	const char *reason; /* static; "" if there is no cause to show */
	char *text;	    /* a sentence without its full stop */
	const char *advice; /* static: a sentence on what to do, or "" */
	bool of_replica;    /* TEXT begins with the name of a replica */
	bool stops;	    /* the job's pods are being ended, and TEXT explains why */
};

/* A job. The backend fills it in, and then publishes it. Plain data. */
struct spec_job {
	unsigned refs; /* atomic */
	bool packed;   /* the job and all that it owns are one block of memory */
	bool held;     /* not launched yet; not on disk */
	/* spec_job_copy copies all following members. Small members come first to avoid padding. */
	bool silent;   /* the replica that failed first is known to have printed nothing */
	bool no_logs;  /* this user has no right to read logs; not on disk */
	bool fetching; /* the job has ended, and more of its output will arrive soon; not on disk */
	/* the job ended more than a second ago, so `why` mentions unfetched logs; not on disk */
	bool behind;
	/* the job has ended, and kxfs no longer waits for pods that still run; not on disk */
	bool outlived;
	bool own;	 /* submitted through a mount with this state directory */
	bool mine;	 /* the job has the label of this mount's user; not on disk */
	bool has_appdef; /* the job's app.yaml can be read */
	bool history;	 /* in history/, no longer in jobs/ */
	/* the controller could not create the pods, and gave up; MESSAGE has whole sentences */
	bool given_up;
	bool exact;	  /* REASON and MESSAGE explain a failure better than the replicas do */
	bool uncounted;	  /* RETRIES lacks some retries, because the cluster does not count them */
	bool unexplained; /* the job has failed, and the reason may soon arrive with its pods */
	bool suspended;	  /* the state is final, but the job may resume and print more */
	bool dropped;	  /* local: the output was removed to free space */
	/* the controller ends an attempt if its pods do not start within some minutes */
	bool impatient;
	/* bit sets (1u << enum spec_action) */
	uint8_t actions; /* those that ctl accepts now */
	uint8_t pending; /* in a cluster: those requested, but without a visible effect yet */
	uint8_t ignored; /* in a cluster: those that the controller ignored */
	enum spec_state state;
	int priority;		 /* of the job's Workload; SPEC_NO_PRIORITY if unknown */
	unsigned queue_position; /* 1 is next; 0 if unknown */
	unsigned evictions;	 /* number of evictions by Kueue */
	unsigned retries;
	unsigned max_retries;
	/* seconds that each attempt of a replica may run; 0 if unlimited, or if replicas differ */
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
	char *last_words; /* last output of the replica that failed first (status.h), or "" */
	struct spec_cause cause;
	/* with Kueue: why the newest pods did not start, as whole sentences; "" if unknown */
	char *obstacle;
	char *backend;
	char *namespace;
	char *owner; /* the object's controller in the cluster, as "TrainJob/NAME", or "" */
	char *queue;
	char *cluster_queue; /* the ClusterQueue of QUEUE in Kueue; "" if unknown */
	/* ResourceFlavors of the job's current or last quota reservation: RESOURCE=FLAVOR,... */
	char *flavors;
	char *priority_class; /* of the job's Workload, or "" */
	char *submitter;      /* user@host; "" if unknown */
	char *submission;     /* UUID; "" if kxfs did not submit the job */
	/* static: a sentence on when the controller retries a failed replica, or why not; or "" */
	const char *again;
	int64_t created;
	int64_t started;
	int64_t finished;
	/* when state, reason, message or a replica last changed; mtime of the job's directory */
	int64_t changed;
	/* the snapshot may be out of date since this time; 0 if it is up to date */
	int64_t stale_since;
	/* number of this snapshot, unique in a mount; set by the store; 0 if not published */
	uint64_t revision;
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
 * Parse an action with its argument, if any. "abort" means suspend. Return the enum spec_action,
 * and set *RET to the argument (malloc'ed; NULL if there is none). Return -EINVAL if TEXT is
 * invalid.
 */
int spec_action_parse(const char *text, char **ret);

/*
 * Create an empty job with one reference. Texts are "", numbers 0, and exit codes -1. The caller
 * sets FIRST and N of each role, and sets strings with spec_set.
 */
struct spec_job *spec_job_new(size_t n_roles, size_t n_replicas);
/* Return a copy of FROM with one reference, to be changed and published. */
struct spec_job *spec_job_copy(const struct spec_job *from);
/*
 * Move FROM, which must have one reference, into one block of memory. Return the moved job, which
 * must not be changed.
 */
struct spec_job *spec_job_pack(struct spec_job *from);
/* Record that the output after the captured part of LOG is lost. A second call has no effect. */
void spec_log_lose_end(struct spec_log *log);
/* True if each log of JOB is either complete, or known to have lost its end. */
bool spec_job_has_ends(const struct spec_job *job);
/* Add a log to R, as the newest log of CONTAINER; NULL or "" means the main container. */
void spec_replica_add_log(struct spec_replica *r, const char *key, const char *container);
/* Add a copy of LOG to R, without WAITING and DISK, as the newest log of its container. */
void spec_replica_copy_log(struct spec_replica *r, const struct spec_log *log);

/*
 * Return the prefix of R's lines in the merged log ("trainer/0 "), malloc'ed. It contains the
 * role's part of R's name, because the role's own name may contain any bytes.
 */
char *spec_replica_log_prefix(const struct spec_replica *r);
/* FIRST is the index of a container's first log. Return the index after its last log. */
size_t spec_replica_logs_end(const struct spec_replica *r, size_t first);
/*
 * Return the file name of a container's log I of N, malloc'ed. The newest log is "log" or
 * "CONTAINER.log"; an older log is "log.I" or "CONTAINER.log.I".
 */
char *spec_log_file(const char *container, size_t i, size_t n);

/* Set the usage of R to a copy of USAGE, or to unknown if USAGE is NULL. */
void spec_replica_set_usage(struct spec_replica *r, const struct spec_usage *usage);
/* Set the request of ROLE to a copy of REQUEST, or to unknown if REQUEST is NULL. */
void spec_role_set_request(struct spec_role_status *role, const struct spec_request *request);

const struct spec_job *spec_job_ref(const struct spec_job *job);
void spec_job_unref(const struct spec_job *job); /* NULL is allowed */
static inline void spec_job_unrefp(void *p)
{
	spec_job_unref(*(const struct spec_job *const *)p);
}
#define cleanup_job cleanup(spec_job_unrefp)

/* Return the name of JOB's files on disk: SUBMISSION if it is set and OWN is true, else UID. */
const char *spec_job_key(const struct spec_job *job);
/* True if JOB's state is final. False for a suspended job, which may resume. */
bool spec_job_has_ended(const struct spec_job *job);
/*
 * True if JOB and all its replicas have ended. A server may report the end of a job before its pods
 * have ended. If kxfs no longer waits for these pods (OUTLIVED), only JOB must have ended.
 */
bool spec_job_is_over(const struct spec_job *job);
/* Return the replica whose directory is NAME, or NULL. */
const struct spec_replica *spec_job_replica(const struct spec_job *job, const char *name);

/* True if R waits, and its message only means that the pods of a gang wait for each other. */
bool spec_replica_waits_for_gang(const struct spec_replica *r);
/*
 * Return the replica that failed first; NULL if none failed. Prefer a replica whose time of failure
 * is known. Set *RET_N to the number of failed replicas; RET_N may be NULL. Ignore a failed attempt
 * of a Workflow's step if another attempt of this step followed.
 */
const struct spec_replica *spec_job_first_failed(const struct spec_job *job, size_t *ret_n);
bool spec_job_any(const struct spec_job *job, enum spec_state state);
/*
 * Return the first replica that has a reason to wait other than its gang or a restart of the job;
 * NULL if there is none. Set *RET_N to the number of replicas with the same reason; RET_N may be
 * NULL.
 */
const struct spec_replica *spec_job_first_waiting(const struct spec_job *job, size_t *ret_n);
