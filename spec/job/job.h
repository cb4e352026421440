/* SPDX-License-Identifier: MIT */
/*
 * A job at one moment, whatever runs it. A published struct spec_job never changes: each change
 * makes a new one (rule T3). Reference counted with atomics, so any thread may hold snapshots. All
 * times are nanoseconds since 1970 UTC, or 0. Strings of a published job are not NULL unless noted;
 * "" means empty or unknown.
 */
#pragma once

#include "spec/base/mem.h"

/*
 * --- states and transitions; a job keeps the newest transitions, oldest first, and their times
 * never decrease ---
 */

#define SPEC_MAX_TRANSITIONS 64

/* TorchX's AppState, without UNSUBMITTED. */
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

/* The names of all states in the order of enum spec_state, each followed by END. */
#define SPEC_STATE_WORDS(end)                                                                      \
	[SPEC_SUBMITTED] = "SUBMITTED" end, [SPEC_PENDING] = "PENDING" end,                        \
	[SPEC_RUNNING] = "RUNNING" end, [SPEC_SUCCEEDED] = "SUCCEEDED" end,                        \
	[SPEC_FAILED] = "FAILED" end, [SPEC_CANCELLED] = "CANCELLED" end,                          \
	[SPEC_UNKNOWN] = "UNKNOWN" end
/* The names of all states, "RUNNING", indexed by enum spec_state; NULL at the end. */
extern const char *const spec_state_words[];
/* Return the name of STATE, "RUNNING"; static. */
const char *spec_state_name(enum spec_state state);
/* True for SUCCEEDED, FAILED or CANCELLED, which end a wait. */
bool spec_state_is_final(enum spec_state state);

/* The beginning of a phase. Plain data. */
struct spec_transition {
	int64_t time;
	enum spec_state state;
	char *phase; /* the backend's own word; "" if it has none yet */
};

/* The transitions of a job. All zeros is an empty list. */
struct spec_transitions {
	struct spec_transition *v;
	size_t n;
};

/*
 * Record that the job is in STATE and PHASE from TIME on, unless it already is. Beyond
 * SPEC_MAX_TRANSITIONS drop the oldest transition.
 */
void spec_transitions_add(struct spec_transitions *t, enum spec_state state, const char *phase,
			  int64_t time);
/* Copy FROM to TO, which is empty. */
void spec_transitions_copy(struct spec_transitions *to, const struct spec_transitions *from);
void spec_transitions_clear(struct spec_transitions *t);

/* --- resources: what replicas were given, and what they use; -1 means unknown --- */

/*
 * The source of the values in struct spec_usage. LOCAL: a replica's helper, which counts ended
 * processes and samples /proc. METRICS: samples of the cluster's metrics API; CPU time is the sum
 * of each sample's CPU usage times the time since the sample before.
 */
enum spec_usage_source { SPEC_USAGE_LOCAL, SPEC_USAGE_METRICS, SPEC_N_USAGE_SOURCES };

/* The resources given to each replica of a role. Plain data: filled by the creator of the job. */
struct spec_request {
	int64_t cpu;	      /* thousandths of a core */
	int64_t memory;	      /* bytes requested for it */
	int64_t memory_limit; /* bytes beyond which it is killed */
	int64_t gpu;	      /* 0 if none was requested */
};

/*
 * The usage of one attempt of a replica until the time LAST. Plain data: filled by the backend that
 * runs it.
 */
struct spec_usage {
	unsigned source;		 /* enum spec_usage_source */
	int64_t cpu_us;			 /* of CPU time */
	int64_t cpu_now;		 /* thousandths of a core */
	int64_t memory_now, memory_peak; /* bytes */
	int64_t samples;		 /* number of samples while it ran */
	int64_t first, last; /* times of the first and last samples, ns; 0 without samples */
};

/* --- jobs --- */

/* One stream of output: of one container in one attempt. Plain data. */
struct spec_log {
	char *key;	 /* the backend's name for it; unique in the job, never changes */
	char *container; /* "" for the replica's own container */
	bool complete;	 /* in a cluster: it has ended, and all of it is on disk */
	bool waiting;	 /* in a cluster: it is queued to be fetched, or has ended and is being
		        * fetched */
	bool lost_end;	 /* one of its gaps is after the end of the captured output */
	int disk;	 /* in a cluster: the errno of failing writes to disk, or 0 */
	uint64_t gap;	 /* how often some of it was lost, or may have been lost */
};

/* Reason of a replica: it restarts because the whole job restarts. */
#define SPEC_REASON_RESTARTING "Restarting"
/* Reason of a replica: its node does not report its state. */
#define SPEC_REASON_NODE_LOST "NodeLost"
/* Reason of a replica: it was ended because a probe failed; the message names the probe. */
#define SPEC_REASON_PROBE "ProbeFailed"
/*
 * Reason of a Job that a rule of its podFailurePolicy has ended; the message names the pod and the
 * rule.
 */
#define SPEC_REASON_FAILURE_POLICY "PodFailurePolicy"

/* A replica. Plain data: filled by the backend that runs it. */
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
	/* Another container of its pod that blocks or has ended it, or "". */
	char *blamed;
	int exit_code; /* -1 if unknown */
	int signal;    /* 0 if none */
	/* local: its GPUs of the machine, a bit each (spec/record/slots.h) */
	uint64_t gpus;
	/*
	 * When the time limit ends this attempt; 0 if there is no limit, or it is not known. Not on
	 * disk.
	 */
	int64_t deadline;
	/*
	 * For a container that failed and is restarted in the same pod, or, if the replica is
	 * FAILED, was stopped in that run:
	 */
	unsigned starts; /* number of starts of the container; 0 if no container is restarted */
	int last_code;	 /* exit code of the failed run */
	int64_t next;	 /* when the container restarts; 0 if unknown. Not on disk. */
	int64_t started;
	int64_t finished;	  /* end of the replica as a whole: no further attempt follows */
	struct spec_usage *usage; /* the usage of its attempt; NULL if unknown */
	struct spec_log *logs;	  /* grouped by container ("" first), each group oldest first */
	size_t n_logs;
};

/* A role, as far as its replicas need it. Plain data. */
struct spec_role_status {
	char *name;
	unsigned desired;
	unsigned minimum;
	struct spec_request *request; /* the resources given to each replica; NULL if unknown */
	size_t first, n;	      /* its replicas in spec_job.replicas */
};

/*
 * Why a job waits, according to events, the scheduler and the queue. It is shown instead of the
 * job's reason and message; a change of it does not count as a change of the job. Plain data.
 */
struct spec_cause {
	const char *reason; /* static; "" if unknown, or if the replicas' reasons take precedence */
	char *text;	    /* a sentence without its full stop */
	const char *advice; /* static: a sentence on what to do, or "" */
	bool of_replica;    /* TEXT begins with the name of a replica, and is only about that one */
	bool stops;	    /* TEXT is the reason why the pods of a running job are being ended */
};

/* A job. Plain data: filled by the backend that runs it, until it is published. */
struct spec_job {
	unsigned refs; /* atomic; only spec_job_ref and spec_job_unref touch it */
	bool packed;   /* one block of memory contains all that it owns */
	bool held;     /* kxfs holds it and has not launched it; not on disk */
	char *id;      /* name of its directory */
	char *uid;     /* distinguishes it from every other job that ever had this id */
	char *app;
	enum spec_state state;
	char *phase; /* the backend's own word */
	char *reason;
	char *message;
	/* The last lines of the replica that failed first, or "" (status.h). */
	char *last_words;
	bool silent;  /* the replica of LAST_WORDS is known to have printed nothing */
	bool no_logs; /* this user may not read logs that were not captured. Not on disk. */
	/* It has ended, and the rest of its output is expected soon; not on disk. */
	bool fetching;
	bool behind;   /* it has ended, a second ago or more; not on disk */
	bool outlived; /* it has ended, and pods that run on are no longer waited for; not on disk */
	struct spec_cause cause;
	/* In a queue of Kueue: why the newest pods did not run, in whole sentences, or "". */
	char *obstacle;
	char *backend;
	char *namespace;
	char *owner; /* in a cluster: the object that created it, "TrainJob/NAME", or "" */
	char *queue;
	/* In a queue of Kueue: the queue's ClusterQueue; "" if unknown. */
	char *cluster_queue;
	/*
	 * The ResourceFlavors of its present or last quota: RESOURCE=FLAVOR, separated by commas;
	 * "" if it has had no quota.
	 */
	char *flavors;
	char *priority_class;	 /* priority class of its Workload, of any kind, or "" */
	int priority;		 /* priority of its Workload; SPEC_NO_PRIORITY if unknown */
	unsigned queue_position; /* the job's position in its queue: 1 is next; 0 if unknown */
	unsigned evictions;	 /* how often Kueue has evicted it */
	char *submitter;	 /* user@host; "" if unknown */
	char *submission;	 /* UUID of its submission; "" if it was not submitted from here */
	bool own;		 /* submitted through a mount with this state directory */
	bool mine;		 /* it has the label of the user who mounts; not on disk */
	bool has_appdef;	 /* app.yaml can be read */
	bool history;		 /* it has left jobs/ */
	bool given_up; /* its controller could not start it; the message then has whole sentences */
	bool unexplained; /* it has failed, and its pods may still report the reason */
	/* It may resume: its output continues though its state is final. */
	bool suspended;
	bool dropped; /* a local job: its output was removed to free space */
	unsigned retries;
	unsigned max_retries;
	/*
	 * Seconds that an attempt of any replica may run; 0 if there is no limit, or replicas have
	 * different ones.
	 */
	int64_t time_limit;
	/* A local job: seconds from its end until it moves to history; -1: never. */
	int64_t ttl;
	int64_t created;
	int64_t started;
	int64_t finished;
	struct spec_transitions transitions; /* when each phase began */
	/* When state, reason, message or a replica last changed: the directory's mtime. */
	int64_t changed;
	int64_t stale_since; /* the time since which it is unconfirmed; 0 if it is confirmed */
	/*
	 * A number that the store sets, different for each published snapshot of a mount. 0: not
	 * published.
	 */
	uint64_t revision;
	struct spec_role_status *roles;
	size_t n_roles;
	struct spec_replica *replicas;
	size_t n_replicas;
	/* Bit sets of 1u << enum spec_action: */
	unsigned actions; /* actions that ctl would accept now */
	unsigned pending; /* in a cluster: requested actions that have had no visible effect yet */
	unsigned ignored; /* requested actions that had no effect */
	/*
	 * Static text: when the controller retries a failed part, or why it does not although
	 * retries are left; or "".
	 */
	const char *again;
	/* Its controller abandons pods that do not start within some minutes. */
	bool impatient;
	struct spec_text *object; /* in a cluster: its JSON, or NULL */
};

#define SPEC_NO_PRIORITY INT32_MIN

enum spec_action {
	SPEC_SUSPEND,
	SPEC_RESUME,
	SPEC_RESTART,
	SPEC_TERMINATE,
	SPEC_RELEASE,  /* start a held job */
	SPEC_QUEUE,    /* move it to another queue, given as an argument */
	SPEC_PRIORITY, /* set its priority class, given as an argument */
	SPEC_N_ACTIONS
};

/* Return the name of ACTION, "suspend"; static. */
const char *spec_action_name(enum spec_action action);
/* Return the argument that ACTION needs, as ctl lists it: "NAME", "CLASS", or NULL. */
const char *spec_action_argument(enum spec_action action);
/*
 * Parse TEXT, a request for an action ("abort" is suspend): a word, and a second one if the action
 * takes an argument, which becomes *RET (malloc'ed, or NULL). -EINVAL if TEXT is not an action.
 */
int spec_action_parse(const char *text, char **ret);

/*
 * Make an empty job ("", 0, exit codes -1), with one reference, to be filled and published. Its
 * roles and replicas are part of it; the caller sets FIRST and N of each role. Set every string
 * with spec_set.
 */
struct spec_job *spec_job_new(size_t n_roles, size_t n_replicas);
/* Return a copy of FROM, with one reference, to be changed and published. */
struct spec_job *spec_job_copy(const struct spec_job *from);
/*
 * Move FROM into a single block of memory, to be published, and return it. FROM's only reference is
 * taken over. From now on the job can be copied, but not changed.
 */
struct spec_job *spec_job_pack(struct spec_job *from);
/* Record that output after the end of LOG is lost. A second call has no effect. */
void spec_log_lose_end(struct spec_log *log);
/*
 * Add a log to R as the newest of CONTAINER (NULL counts as "", the replica's own, which comes
 * first).
 */
void spec_replica_add_log(struct spec_replica *r, const char *key, const char *container);
/* Like spec_replica_add_log. Also copy all members of LOG but WAITING to the new log. */
void spec_replica_copy_log(struct spec_replica *r, const struct spec_log *log);

/*
 * Return the end of the group of logs that begins at the index FIRST. The logs of R are grouped by
 * container.
 */
size_t spec_replica_logs_end(const struct spec_replica *r, size_t first);
/*
 * Return the file name of log I of the N logs of CONTAINER: "log", "log.0", "CONTAINER.log.0".
 * malloc'ed.
 */
char *spec_log_file(const char *container, size_t i, size_t n);

/* Set the usage of R to USAGE; NULL if unknown. */
void spec_replica_set_usage(struct spec_replica *r, const struct spec_usage *usage);
/* Set the resources given to each replica of ROLE to REQUEST; NULL if unknown. */
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
 * Return the name of JOB's files in the state directory: the UUID of its submission if it was
 * submitted from here, else its uid.
 */
const char *spec_job_key(const struct spec_job *job);
/* True if the state of JOB is final. A suspended job, which may resume, has not ended. */
bool spec_job_has_ended(const struct spec_job *job);
/*
 * True if JOB has ended, and all its replicas have ended or are no longer waited for. A cluster may
 * report the job's end before the ends of its pods.
 */
bool spec_job_is_over(const struct spec_job *job);
/* Return the replica whose directory is NAME, or NULL. */
const struct spec_replica *spec_job_replica(const struct spec_job *job, const char *name);

/* True if R only reports that all pods of its job wait for each other. */
bool spec_replica_waits_for_gang(const struct spec_replica *r);
/*
 * Return the replica that failed first, which status and why name for a failed job; NULL if none
 * has failed. Replicas whose end has no time come last. Set *RET_N (may be NULL) to the number of
 * failed replicas.
 */
const struct spec_replica *spec_job_first_failed(const struct spec_job *job, size_t *ret_n);
/*
 * Return the replica that status and why name if none has failed: the first that waits with a
 * reason of its own; NULL if no replica does. Set *RET_N (may be NULL) to the number of replicas
 * that wait for the same reason.
 */
const struct spec_replica *spec_job_first_waiting(const struct spec_job *job, size_t *ret_n);
