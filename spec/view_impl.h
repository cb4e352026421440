/* SPDX-License-Identifier: MIT */
/*
 * What the files of view.h share. Private to view*.c
 * and the kinds.
 */
#ifndef KXFS_SPEC_VIEW_IMPL_H
#define KXFS_SPEC_VIEW_IMPL_H

#include "spec/kind.h"
#include "spec/view_read.h"
#include "spec/tree.h"
#include "spec/view.h"

/* A task as it stands in a job's object; strings are borrowed. */
struct spec_task_source {
	const char *name;
	const char *role;  /* TorchX's role, of which this is one replica; "" not made so */
	unsigned replica;  /* TorchX's id of it */
	unsigned replicas; /* pods of the task */
	unsigned minimum;
	char key[32]; /* room for a name that the reader makes; not read by others */
};

/* What a word of the kind's controller means. */
struct spec_phase {
	const char *name; /* NULL: the end of the table */
	enum spec_state state;
	bool ending;	/* what is stopped now is not started again: not by itself, at least */
	bool suspended; /* may come back to life */
	bool asked;	/* it is this one only if somebody asked for it (spec_job_view.asked) */
	bool by_pods;	/* its pods have been made, and may still wait: then it is PENDING */
};

/* How the objects of a kind are read (struct spec_kind). 0, -EINVAL: not such an object; -ENOMEM. */
struct spec_reader {
	/*
	 * What follows from the object's spec; its tasks are malloc'ed in *TASKS, in the object's
	 * order.
	 */
	int (*job)(struct json_object *object, struct spec_job_view *v,
		   struct spec_task_source **tasks, size_t *n);
	/* What follows from its status: phase, reason, message, retries, changed. */
	int (*status)(struct json_object *object, struct spec_job_view *v);
	/* Sets task, index, retry and main. */
	int (*pod)(struct json_object *object, struct spec_pod_view *v);
	/*
	 * What an object makes under names of its own: a list in it, each object the member *RET_KEY of an
	 * item. NULL: it makes none.
	 */
	struct json_object *(*wrapped)(struct json_object *object, const char **ret_key);
	const struct spec_phase *phases;
	/*
	 * Its controller may not tell for minutes, or ever, that a running job is over: when all pods have
	 * ended by themselves, so has the job, unless it is to be started again.
	 */
	bool pods_decide;
};

extern const struct spec_reader spec_volcano_reader;
extern const struct spec_reader spec_appwrapper_reader;
extern const struct spec_reader spec_mcad_reader;

/* The object that JSON is. 0, -EINVAL, -ENOMEM. */
int spec_view_object(const char *json, size_t len, struct json_object **ret);

/* NULL: none. */
struct json_object *spec_view_labels(struct json_object *object);

/* Fill M, whose strings are empty ones. 0, -EINVAL: no name or uid that is one; -ENOMEM. */
int spec_meta_read(struct json_object *object, struct spec_meta *m);
int must_check spec_meta_init(struct spec_meta *m);
void spec_meta_clear(struct spec_meta *m);

/* A view with nothing in it; NULL: no memory. */
struct spec_job_view *spec_job_view_new(void);
/* What follows from OBJECT's metadata. */
int spec_job_view_head(struct spec_job_view *v, struct json_object *object);

/* Where a job stands, for its replicas. */
struct spec_standing {
	bool over;	/* nothing of it starts again, unless somebody asks for it */
	bool left;	/* it is no longer in the cluster */
	bool ending;	/* or it is on the way there */
	bool cancelled; /* it ends, or has ended, as CANCELLED */
	int64_t ended;	/* a time for what has none of its own */
};

/* A snapshot while it is made. */
struct spec_making {
	const struct spec_job_view *view;
	const struct spec_view_context *ctx;
	const struct spec_phase *phase; /* NULL: none, or an unknown one */
	struct spec_standing standing;
	bool failed; /* its pods say so, whatever the phase */
	struct spec_job *job;
	/* Its pods, by replica; those of one replica oldest first. */
	const struct spec_pod_view **pods;
	size_t *slots; /* the replica's index of each */
	size_t n;
};

/* Before the replicas are known: may they start again? Sets phase and standing. */
void spec_making_stand(struct spec_making *s);
/* And after: sets the job's state, reason, message and times. 0 or -ENOMEM. */
int spec_making_conclude(struct spec_making *s);
/* Its transitions, when all else is known. 0 or -1: no memory. */
int spec_making_history(struct spec_making *s);

/* The pods of one replica, oldest first. */
struct spec_runs {
	const struct spec_pod_view *const *v;
	size_t n;
};

/*
 * Fill R, whose name, role and id are set, from its RUNS and from BEFORE (NULL: none), what it was in
 * the snapshot before. 0 or -ENOMEM.
 */
int spec_replica_fill(struct spec_replica *r, struct spec_runs runs,
		      const struct spec_job_view *job, const struct spec_standing *standing,
		      const struct spec_replica *before);

/* The state that POD ended in by itself; -1: it has not, or was stopped. */
int spec_pod_end(const struct spec_pod_view *pod);

/* Of a pod's object: the container named TASK, else the pod's default one, else the first. Borrowed. */
const char *spec_pod_choose_main(struct json_object *object, const char *task);
/* Does R say no more than that all pods of its job wait for each other? */
bool spec_says_gang(const struct spec_replica *r);

/*
 * When the job's state and replicas are known: sets its cause and cause_text from what is known beside
 * the job and its pods. 0 or -ENOMEM.
 */
int spec_view_cause(const struct spec_making *s);

/* The container that is the pod's main one; NULL: the server has not told of it yet. */
const struct spec_container_view *spec_pod_main(const struct spec_pod_view *pod);

/* --- view_wrap.c: what AppWrappers of all versions have in common --- */

/*
 * The pods among the items of LIST, each of which holds its object under KEY: as struct spec_reader's
 * job, with the app's name in V.
 */
int spec_wrap_tasks(struct json_object *list, const char *key, struct spec_job_view *v,
		    struct spec_task_source **tasks, size_t *n);
/* As struct spec_reader's pod. */
int spec_wrap_pod(struct json_object *object, struct spec_pod_view *v);

#endif
