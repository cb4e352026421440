/* SPDX-License-Identifier: MIT */
/*
 * A job as it is at one moment, whatever runs it. Once published, a struct spec_job never
 * changes: a change is a new one (rule T3). Reference counted with atomics, so snapshots may be
 * held by any thread. All times are nanoseconds since 1970 UTC, 0: none. All strings are never
 * NULL in a published job unless said so; "" means nothing to say.
 */
#ifndef KXFS_SPEC_JOB_H
#define KXFS_SPEC_JOB_H

#include "spec/transition.h"

/* "RUNNING" */
const char *spec_state_name(enum spec_state state);
/* The state that WORD names; -EINVAL: none. */
int spec_state_parse(const char *word);
/* SUCCEEDED, FAILED and CANCELLED: what ends wait. */
bool spec_state_is_final(enum spec_state state);

/* A text that several snapshots share: immutable, reference counted as they are. */
struct spec_text {
	unsigned refs; /* atomic; only spec_text_ref and spec_text_unref touch it */
	size_t len;
	char text[]; /* and a NUL */
};

/* A copy of LEN bytes, one reference. NULL: no memory. */
struct spec_text *spec_text_new(const char *text, size_t len);
struct spec_text *spec_text_ref(struct spec_text *t);
void spec_text_unref(struct spec_text *t); /* NULL is allowed */

/* One stream of output: of one container in one attempt. */
struct spec_log {
	char *key;	 /* the backend's name of it; unique in the job, stable for ever */
	char *container; /* "": the replica's own container */
	bool complete;	 /* in a cluster: it has ended, and all of it is kept here */
	bool waiting;	 /* for its turn to be fetched; only at this moment */
	uint64_t gap;	 /* how often some of it was lost, or may have been */
};

struct spec_replica {
	char *name;    /* of its directory: ROLE-K */
	unsigned role; /* index in spec_job.roles */
	unsigned id;   /* K */
	enum spec_state state;
	char *pod;  /* local: "" */
	char *node; /* local: "" */
	char *reason;
	char *message;
	unsigned attempt; /* from 0 */
	int exit_code;	  /* -1: none */
	int signal;	  /* 0: none */
	int64_t started;
	int64_t finished;      /* of the replica as a whole: no further attempt comes */
	struct spec_log *logs; /* grouped by container ("" first), each group oldest first */
	size_t n_logs;
};

struct spec_role_status {
	char *name;
	unsigned desired;
	unsigned minimum;
	size_t first, n; /* its replicas in spec_job.replicas */
};

struct spec_job {
	unsigned refs; /* atomic; only spec_job_ref and spec_job_unref touch it */
	char *id;      /* name of its directory */
	char *uid;     /* tells it from any other job that ever had this id */
	char *app;
	enum spec_state state;
	char *phase; /* the backend's own word */
	char *reason;
	char *message;
	/*
	 * What events, the scheduler and the queue tell of why it waits, as reason and message, in whose
	 * place it is shown; "" nothing, or nothing that blocks before these do. Its changes are none of
	 * the job's.
	 */
	char *cause;
	char *cause_text;
	char *backend;
	char *namespace;
	char *queue;
	char *submitter;  /* user@host; "" unknown */
	char *submission; /* UUID of the write that made it; "" not ours */
	bool own;	  /* submitted through a mount with this state directory */
	bool has_appdef;  /* app.yaml can be read */
	bool history;	  /* it has left jobs/ */
	bool suspended;	  /* may come back to life: its output goes on though its state is final */
	unsigned retries;
	unsigned max_retries;
	int64_t created;
	int64_t started;
	int64_t finished;
	struct spec_transitions transitions; /* when each phase began */
	int64_t changed;     /* of state, reason, message, a replica: the directory's mtime */
	int64_t stale_since; /* 0: confirmed */
	struct spec_role_status *roles;
	size_t n_roles;
	struct spec_replica *replicas;
	size_t n_replicas;
	/* Bit sets of 1u << enum spec_action: */
	unsigned actions;	  /* what ctl would do now */
	unsigned pending;	  /* in a cluster: was asked for, and has not shown yet */
	unsigned ignored;	  /* was asked for, and nothing came of it */
	struct spec_text *object; /* in a cluster: its JSON; NULL: none */
};

enum spec_action { SPEC_SUSPEND, SPEC_RESUME, SPEC_RESTART, SPEC_TERMINATE, SPEC_N_ACTIONS };

/* "suspend", ... */
const char *spec_action_name(enum spec_action action);
/* The action that WORD names ("abort" is suspend); -EINVAL: none. */
int spec_action_parse(const char *word);

/*
 * A new job, all empty ("", 0, exit codes -1), one reference, to be filled and published. Roles and
 * replicas are part of it; who fills it sets first and n of each role. NULL: no memory.
 */
struct spec_job *spec_job_new(size_t n_roles, size_t n_replicas);
/*
 * Every string of a job, of its parts and of a spec_record is set through this: releases *FIELD
 * (NULL is allowed), copies VALUE (NULL counts as ""). Empty strings are all the same static one,
 * so such a field is never freed directly. -ENOMEM: *FIELD is as it was.
 */
int must_check spec_set(char **field, const char *value);
/* Release *FIELD; it is NULL afterwards. */
void spec_unset(char **field);
/*
 * Add a log to R as the newest of CONTAINER (NULL counts as "", the replica's own, which stands
 * first). 0 or -ENOMEM.
 */
int must_check spec_replica_add_log(struct spec_replica *r, const char *key, const char *container);
/* The same with all that LOG says for good. */
int must_check spec_replica_copy_log(struct spec_replica *r, const struct spec_log *log);

const struct spec_job *spec_job_ref(const struct spec_job *job);
void spec_job_unref(const struct spec_job *job); /* NULL is allowed */
/* P is the address of a (const) struct spec_job pointer. */
static inline void spec_job_unrefp(void *p)
{
	spec_job_unref(*(const struct spec_job *const *)p);
}
#define cleanup_job cleanup(spec_job_unrefp)

/* Has it ended, and all its replicas too? What a cluster tells of the job may come before that of its pods. */
bool spec_job_is_over(const struct spec_job *job);
/* The replica whose directory is NAME; NULL: none. */
const struct spec_replica *spec_job_replica(const struct spec_job *job, const char *name);

#endif
