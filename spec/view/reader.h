/* SPDX-License-Identifier: MIT */
/*
 * The functions with which a kind of job reads its objects, and helpers for them. Only kinds
 * include this.
 */
#pragma once

#include "spec/base/value.h"
#include "spec/view/view.h"

/* A task in a job's object: plain data; strings are borrowed from the object. */
struct spec_task_source {
	const char *name;
	/* TorchX's role, if the task is one replica of it; "" if TorchX did not make it. */
	const char *role;
	unsigned replica;  /* TorchX's id of the replica */
	unsigned replicas; /* pods of the task */
	unsigned minimum;
	int time_limit; /* time limit of each of its pods in seconds, or 0 */
	bool grows;	/* it may have more pods than REPLICAS */
	char key[80];	/* space for a name that the reader makes; only the reader uses it */
};

/* The meaning of a phase of the kind's controller. */
struct spec_phase {
	const char *name; /* NULL: the end of the table */
	enum spec_state state;
	bool ending;	/* a pod stopped in this phase is not restarted automatically */
	bool suspended; /* the job may resume */
	/* The row applies only if suspension was requested (spec_job_view.asked). */
	bool asked;
	bool by_pods;  /* the pods are made; while all of them wait, the job is PENDING */
	bool gives_up; /* a job whose pods could not be made also gets this phase */
	bool between;  /* an attempt is over: the job is PENDING unless a replica still runs */
	bool firm;     /* a running replica does not make the job RUNNING */
};

/* True if ROW, V's first row or one after it, is of V's phase. */
static inline bool spec_phase_is(const struct spec_job_view *v, const struct spec_phase *row)
{
	return row && row->name && streq(row->name, v->rows->name);
}

/* The reason of a job that is suspended in a queue of Kueue; kueue_cause.c finds the details. */
#define SPEC_REASON_QUEUED "QueuedInKueue"

/* How the objects of a kind are read. READER is this struct. */
struct spec_reader {
	/*
	 * Set the members of V that depend on the object's spec; called again only after the spec
	 * has changed, not after a change of only the metadata. Return the number of tasks;
	 * *RET_TASKS (malloc'ed) has them in the object's order.
	 */
	size_t (*job)(const struct spec_reader *reader, const struct spec_value *object,
		      struct spec_job_view *v, struct spec_task_source **ret_tasks);
	/*
	 * Set the members of V that depend on the object's status and metadata: phase, reason,
	 * message, retries, changed.
	 */
	void (*status)(const struct spec_reader *reader, const struct spec_value *object,
		       struct spec_job_view *v);
	/*
	 * The controller of its pods: of the kind OF_KIND, in an API that begins with OF_GROUP
	 * ("batch/").
	 */
	const char *of_group, *of_kind;
	/*
	 * Return the uid of the object that POD belongs to, according to POD's controller: a job,
	 * or (*RET_PART) an object between the two; NULL if POD has another controller. If the
	 * function itself is NULL, all pods are of this kind.
	 */
	const char *(*owner)(const struct spec_reader *reader, const struct spec_value *pod,
			     bool *ret_part);
	/* Set task, index, retry and main. OBJECT has the members in the table of pod.c, perhaps no others. */
	void (*pod)(const struct spec_reader *reader, const struct spec_value *object,
		    struct spec_pod_view *v);
	/*
	 * Return the list in OBJECT from which the controller creates other objects; NULL if OBJECT
	 * has no such list. Each item has an object as its member *RET_KEY.
	 */
	const struct spec_value *(*wrapped)(const struct spec_value *object, const char **ret_key);
	const struct spec_phase *phases; /* rows of one name follow each other */
	/*
	 * True if the controller may report the end of a running job minutes late, or never. Then
	 * the job has ended when all its pods have ended by themselves, unless it will be
	 * restarted.
	 */
	bool pods_decide;
	/*
	 * How the controller treats a failed replica while retries are left: a sentence; NULL if it
	 * acts immediately.
	 */
	const char *again;
	/*
	 * Why the controller may end a failed job though retries are left: a sentence; NULL if it
	 * does not.
	 */
	const char *no_more;
	/*
	 * True if restarts of containers are also retries, and the object of an ended job also
	 * counts pods that its controller has deleted.
	 */
	bool recounted;
	bool remade;	/* after a deletion the owner of the object recreates the object */
	bool impatient; /* the controller abandons an attempt whose pods do not start in minutes */
};

/* Mark V as suspended in QUEUE, one of Kueue's. */
void spec_job_view_queued(struct spec_job_view *v, const char *queue);
/* Return the reference to the controller of OBJECT, borrowed; NULL if it has no valid one. */
const struct spec_value *spec_view_controller(const struct spec_value *object);
/*
 * True if CONTROLLER is of KIND and of the group of API_VERSION, which is "batch/v1" or only
 * "batch/".
 */
bool spec_view_is_a(const struct spec_value *controller, const char *api_version, const char *kind);
/* Return the labels of an object, borrowed, or NULL. */
const struct spec_value *spec_view_labels(const struct spec_value *object);
/* Return the condition TYPE of a status, borrowed, or NULL. */
const struct spec_value *spec_view_condition(const struct spec_value *status, const char *type);
bool spec_view_is_true(const struct spec_value *condition);
/* Return when a condition of a status changed last, or 0. */
int64_t spec_view_changed(const struct spec_value *status);
/*
 * Return the time limit of a pod in seconds, from its object or its template; 0 if there is none.
 */
int spec_view_time_limit(const struct spec_value *pod);
/*
 * Return the main container of a pod's object: the one named TASK, else the pod's default one, else
 * the first. Borrowed.
 */
const char *spec_pod_choose_main(const struct spec_value *object, const char *task);
