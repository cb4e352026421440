/* SPDX-License-Identifier: MIT */
/*
 * A job as it is at one moment, whatever runs it. Once published, a struct spec_job never changes: each change makes a
 * new one (rule T3). Reference counted with atomics, so snapshots may be held by any thread. All times are nanoseconds
 * since 1970 UTC, 0: none. All strings are never NULL in a published job unless said so; "" means nothing to say.
 */
#pragma once

#include "spec/base/mem.h"
#include "spec/base/shared.h"
#include "spec/job/transition.h"
#include "spec/job/usage.h"

/* One stream of output: of one container in one attempt. Plain data. */
struct spec_log {
	char *key;	 /* the backend's name for it; unique in the job, stable for ever */
	char *container; /* "": the replica's own container */
	bool complete;	 /* in a cluster: it has ended, and all of it is kept here */
	bool waiting;  /* in a cluster: it waits to be fetched, or has ended and is being fetched */
	bool lost_end; /* one of its gaps is behind what is kept of it */
	int disk; /* in a cluster: the errno with which the disk refuses it at this moment; 0: none */
	uint64_t gap; /* how often some of it was lost, or may have been lost */
};

/* Reasons of a replica: it is started again because the whole job is started again; */
#define SPEC_REASON_RESTARTING "Restarting"
/* its node does not tell how it is; */
#define SPEC_REASON_NODE_LOST "NodeLost"
/* it was ended because a probe had failed, which the message names. */
#define SPEC_REASON_PROBE "ProbeFailed"
/* A rule of its podFailurePolicy has ended the Job; the message names the pod and the rule. */
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
	/* Another container of its pod that keeps it from going on, or has ended it; "": none. */
	char *blamed;
	int exit_code; /* -1: none */
	int signal;    /* 0: none */
	/* local: the GPUs of the machine that it has, a bit each (spec/record/turns.h) */
	uint64_t gpus;
	/* When this attempt is ended for its time limit; 0: it has none, or that is not known. Not on disk. */
	int64_t deadline;
	/*
	 * For a container that failed and is run again in the same pod, or that was stopped in that run, if the replica
	 * is FAILED:
	 */
	unsigned starts; /* how often the container was started; 0: no container is run again */
	int last_code;	 /* exit code of the run that has failed */
	int64_t next;	 /* when the container is started again; 0: not known. Not on disk. */
	int64_t started;
	int64_t finished;	  /* end of the replica as a whole: no further attempt comes */
	struct spec_usage *usage; /* what its attempt has used; NULL: nobody tells */
	struct spec_log *logs;	  /* grouped by container ("" first), each group oldest first */
	size_t n_logs;
};

/* A role, as far as its replicas need it. Plain data. */
struct spec_role_status {
	char *name;
	unsigned desired;
	unsigned minimum;
	struct spec_request *request; /* what each of its replicas is given; NULL: not known */
	size_t first, n;	      /* its replicas in spec_job.replicas */
};

/*
 * Why a job waits, as events, the scheduler and the queue tell it. It is shown in place of the job's reason and
 * message; a change of it is no change of the job. Plain data.
 */
struct spec_cause {
	const char *reason; /* static; "": nothing is known, or what the replicas say comes first */
	char *text;	    /* a sentence without its full stop */
	const char *advice; /* static: a sentence on what to do; "": none */
	bool of_replica; /* TEXT begins with the name of a replica, and tells of that one alone */
	bool stops;	 /* TEXT says why the pods of a job that runs are being ended */
};

/* A job. Plain data: filled by the backend that runs it, until it is published. */
struct spec_job {
	unsigned refs; /* atomic; only spec_job_ref and spec_job_unref touch it */
	bool packed;   /* all that it owns is in its own block of memory */
	bool held;     /* kxfs holds it and has not launched it; not on disk */
	char *id;      /* name of its directory */
	char *uid;     /* tells it from every other job that ever had this id */
	char *app;
	enum spec_state state;
	char *phase; /* the backend's own word */
	char *reason;
	char *message;
	/* Last words of the replica that failed first, in lines; "": none (last_words.h). */
	char *last_words;
	bool silent;  /* that replica is known to have printed nothing */
	bool no_logs; /* this user may not read logs that were not captured. Not on disk. */
	/* It has ended, and the rest of its output is expected soon; not on disk. */
	bool fetching;
	bool behind; /* it has ended, a second ago or more; not on disk */
	struct spec_cause cause;
	/* In a queue of Kueue: what kept the pods that were made last from running, in whole sentences; "": nothing. */
	char *obstacle;
	char *backend;
	char *namespace;
	char *owner; /* in a cluster: the object that has made it, "TrainJob/NAME"; "": none */
	char *queue;
	/* In a queue of Kueue: the ClusterQueue to which that belongs; "": not known. */
	char *cluster_queue;
	/* The flavors that it has there, or had last: RESOURCE=FLAVOR, separated by commas; "": it has no quota. */
	char *flavors;
	char *priority_class;	 /* priority class of its Workload, of whatever sort; "": none */
	int priority;		 /* priority of its Workload; SPEC_NO_PRIORITY: not known */
	unsigned queue_position; /* the job's place in its queue: 1 is next; 0: not known */
	unsigned evictions;	 /* how often Kueue has evicted it */
	char *submitter;	 /* user@host; "" unknown */
	char *submission;	 /* UUID of its submission; "": it was not submitted from here */
	bool own;		 /* submitted through a mount with this state directory */
	bool mine;		 /* it has the label of the user who mounts; not on disk */
	bool has_appdef;	 /* app.yaml can be read */
	bool history;		 /* it has left jobs/ */
	bool given_up; /* its controller could not start it; then the message has whole sentences */
	bool unexplained; /* it has failed, and in a moment more may be known of the reason */
	/* It may come back to life: its output goes on though its state is final. */
	bool suspended;
	bool dropped; /* a local job: its output was removed to make room */
	unsigned retries;
	unsigned max_retries;
	/* Seconds that an attempt of any replica may run; 0: there is no limit, or not the same one for all. */
	int64_t time_limit;
	/* A local job: seconds from its end until it goes to history; -1: it does not. */
	int64_t ttl;
	int64_t created;
	int64_t started;
	int64_t finished;
	struct spec_transitions transitions; /* when each phase began */
	/* When state, reason, message or a replica last changed: the directory's mtime. */
	int64_t changed;
	int64_t stale_since; /* since when it is not confirmed; 0: it is */
	/* Set by the store: each published snapshot of a mount has another one. 0: not published. */
	uint64_t revision;
	struct spec_role_status *roles;
	size_t n_roles;
	struct spec_replica *replicas;
	size_t n_replicas;
	/* Bit sets of 1u << enum spec_action: */
	unsigned actions; /* actions that ctl would carry out now */
	unsigned pending; /* in a cluster: actions that were asked for, and have not shown yet */
	unsigned ignored; /* actions that were asked for, and had no effect */
	/*
	 * Static: when a part that has failed is tried again, or why it is not though retries are left; "": nothing to
	 * say.
	 */
	const char *again;
	/* Its controller gives up pods that do not start within some minutes. */
	bool impatient;
	struct spec_text *object; /* in a cluster: its JSON; NULL: none */
};

#define SPEC_NO_PRIORITY INT32_MIN

enum spec_action {
	SPEC_SUSPEND,
	SPEC_RESUME,
	SPEC_RESTART,
	SPEC_TERMINATE,
	SPEC_RELEASE,  /* let a held job begin */
	SPEC_QUEUE,    /* move it to another queue, which has to be named */
	SPEC_PRIORITY, /* give it a priority class, as well */
	SPEC_N_ACTIONS
};

/* "suspend", ... */
const char *spec_action_name(enum spec_action action);
/* The argument that ACTION needs, as ctl lists it: "NAME", "CLASS"; NULL: none. */
const char *spec_action_argument(enum spec_action action);
/*
 * The action that TEXT asks for ("abort" is suspend): a word, and a second one if the action takes an argument, which
 * becomes *RET (malloc'ed; NULL: there is none). -EINVAL: TEXT is no action.
 */
int spec_action_parse(const char *text, char **ret);

/*
 * Make a job, all empty ("", 0, exit codes -1), with one reference, to be filled and published. Its roles and replicas
 * are part of it; whoever fills it sets FIRST and N of each role. Every string of it is set with spec_set.
 */
struct spec_job *spec_job_new(size_t n_roles, size_t n_replicas);
/* A copy of FROM, with one reference, to be changed and published. */
struct spec_job *spec_job_copy(const struct spec_job *from);
/*
 * Put FROM, which is taken over with its one reference, into a single block of memory, to be published: from now on it
 * can only be copied, not changed.
 */
struct spec_job *spec_job_pack(struct spec_job *from);
/* What follows the end of LOG can't be had any more: that is counted once. */
void spec_log_lose_end(struct spec_log *log);
/*
 * Add a log to R as the newest of CONTAINER (NULL counts as "", the replica's own, which stands
 * first).
 */
void spec_replica_add_log(struct spec_replica *r, const char *key, const char *container);
/* Like spec_replica_add_log; the new log has all members of LOG but WAITING. */
void spec_replica_copy_log(struct spec_replica *r, const struct spec_log *log);

/* The logs of R stand in groups, one for each container. Return the end of the group that begins at FIRST. */
size_t spec_replica_logs_end(const struct spec_replica *r, size_t first);
/* The name of the file of log I of N of CONTAINER: "log", "log.0", "CONTAINER.log.0". malloc'ed. */
char *spec_log_file(const char *container, size_t i, size_t n);

/* Set what R has used to USAGE; NULL: nobody tells. */
void spec_replica_set_usage(struct spec_replica *r, const struct spec_usage *usage);
/* Set what each replica of ROLE is given to REQUEST; NULL: nobody tells. */
void spec_role_set_request(struct spec_role_status *role, const struct spec_request *request);

const struct spec_job *spec_job_ref(const struct spec_job *job);
void spec_job_unref(const struct spec_job *job); /* NULL is allowed */
/* P is the address of a (const) struct spec_job pointer. */
static inline void spec_job_unrefp(void *p)
{
	spec_job_unref(*(const struct spec_job *const *)p);
}
#define cleanup_job cleanup(spec_job_unrefp)

/* Is the state of JOB final, and not that of a suspended job, which may come back to life? */
bool spec_job_has_ended(const struct spec_job *job);
/* Has JOB ended, and have all its replicas? A cluster may tell of the job's end before the ends of its pods. */
bool spec_job_is_over(const struct spec_job *job);
/* The replica whose directory is NAME; NULL: none. */
const struct spec_replica *spec_job_replica(const struct spec_job *job, const char *name);

/* Does R say only that all pods of its job wait for each other? */
bool spec_replica_waits_for_gang(const struct spec_replica *r);
/*
 * The replica that status and why name for a job that failed: the one that failed first; those whose end has no time
 * come last. *RET_N (unless RET_N is NULL): how many have failed. NULL: none has.
 */
const struct spec_replica *spec_job_first_failed(const struct spec_job *job, size_t *ret_n);
/*
 * The replica that status and why name if none has failed: the first that waits and itself says for what. *RET_N
 * (unless RET_N is NULL): how many wait for the same reason. NULL: none says so.
 */
const struct spec_replica *spec_job_first_waiting(const struct spec_job *job, size_t *ret_n);
