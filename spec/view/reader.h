/* SPDX-License-Identifier: MIT */
/*
 * Declares the functions that read the objects of one kind of job (struct spec_reader), and helper
 * functions for them.
 */
#pragma once

#include "spec/base/value.h"
#include "spec/view/view.h"

/* A task in a job's object. Plain data. The strings are borrowed from the object. */
struct spec_task_source {
	const char *name;
	/* The TorchX role of which this task is one replica; "" if TorchX did not make the task. */
	const char *role;
	unsigned replica;  /* id of the replica, from TorchX */
	unsigned replicas; /* number of pods of the task */
	unsigned minimum;
	int time_limit; /* time limit of each pod in seconds; 0 if unlimited */
	bool grows;	/* true if the task may have more pods than REPLICAS */
	/* a buffer for a name that the kind's reader composes; no other code uses it */
	char key[80];
};

/* A row of the kind's table of phases: what a phase in a job's object means. */
struct spec_phase {
	const char *name; /* NULL in the last row */
	enum spec_state state;
	/* true if the controller does not replace a pod that is stopped in this phase */
	bool ending;
	bool suspended; /* true if the job is suspended and may resume */
	/* True if the row applies only while suspension is requested (spec_job_view.asked). */
	bool asked;
	/*
	 * true if the controller has created the pods before this phase begins; the job is then
	 * PENDING while all its pods wait
	 */
	bool by_pods;
	bool gives_up; /* true if a job whose pods can't be created also ends in this phase */
	/*
	 * True if this phase lies between two attempts. The job is then PENDING, unless one of its
	 * replicas has failed.
	 */
	bool between;
};

/* True if ROW describes V's phase. ROW is V->rows or a later row of the same table. */
static inline bool spec_phase_is(const struct spec_job_view *v, const struct spec_phase *row)
{
	return row && row->name && streq(row->name, v->rows->name);
}

/* The reason of a job that Kueue keeps suspended in a queue; kueue_cause.c finds the details. */
#define SPEC_REASON_QUEUED "QueuedInKueue"

/* What kxfs concludes from a job's pods about its end, before the phase shows the end. */
enum spec_pods_decide {
	/* kxfs concludes that the job has succeeded if all its pods have succeeded. */
	SPEC_PODS_DECIDE_SUCCESS,
	/*
	 * The controller may report the end of a running job minutes late, or never. So kxfs
	 * concludes that the job has ended as soon as all its pods have ended by themselves and the
	 * controller will not restart the job.
	 */
	SPEC_PODS_DECIDE_END,
	/*
	 * kxfs concludes nothing. A user can still suspend a job whose pods have all succeeded. The
	 * controller then deletes these pods and later creates them again.
	 */
	SPEC_PODS_DECIDE_NOTHING,
};

/* How kxfs reads the objects of a kind. The functions get this struct as READER. */
struct spec_reader {
	/*
	 * Sets the members of V that depend on the object's spec. kxfs calls this for a new object
	 * and when the spec has changed, but not when only metadata or status have changed. Returns
	 * the number of tasks. *RET_TASKS (malloc'ed) has the tasks in the object's order.
	 */
	size_t (*job)(const struct spec_reader *reader, const struct spec_value *object,
		      struct spec_job_view *v, struct spec_task_source **ret_tasks);
	/*
	 * Sets the members of V that depend on the object's status and metadata: phase, reason,
	 * message, retries, changed.
	 */
	void (*status)(const struct spec_reader *reader, const struct spec_value *object,
		       struct spec_job_view *v);
	/*
	 * The object that controls the pods: OF_GROUP is the beginning of its apiVersion
	 * ("batch/"), and OF_KIND is its kind.
	 */
	const char *of_group, *of_kind;
	/*
	 * Returns the uid of the object to which POD belongs, which is the controller in POD's
	 * owner references. That object is the job, or an object between POD and its job; in the
	 * second case, the function sets *RET_PART to true. Returns NULL if POD does not belong to
	 * this kind. If the pointer OWNER is NULL, POD belongs to its controller if that controller
	 * matches OF_GROUP and OF_KIND.
	 */
	const char *(*owner)(const struct spec_reader *reader, const struct spec_value *pod,
			     bool *ret_part);
	/*
	 * Sets the members task, index, retry, failures and main of V. OBJECT is a pod with only
	 * those members that the table spec_pod_pick in pod.c names.
	 */
	void (*pod)(const struct spec_reader *reader, const struct spec_value *object,
		    struct spec_pod_view *v);
	const struct spec_phase *phases; /* rows with the same name are adjacent */
	enum spec_pods_decide pods_decide;
	/*
	 * A sentence for users: what the controller does with a failed replica while retries are
	 * left. NULL if it retries immediately.
	 */
	const char *again;
	/*
	 * A sentence for users: why the controller may end a failed job although retries are left.
	 * NULL if it never does that.
	 */
	const char *no_more;
	/*
	 * True if the number of retries in the object is wrong: it does not include restarts of
	 * containers, and after the job's end it includes pods that the controller has deleted.
	 */
	bool recounted;
	bool remade; /* true if the object's owner creates the object again after a deletion */
	/* true if the controller ends an attempt whose pods do not start within some minutes */
	bool impatient;
};

/* Set the reason and the message of V: the job waits in QUEUE until Kueue admits it. */
void spec_job_view_queued(struct spec_job_view *v, const char *queue);
/*
 * Return the owner reference of OBJECT that names its controller (borrowed), or NULL if OBJECT has
 * no valid one.
 */
const struct spec_value *spec_view_controller(const struct spec_value *object);
/*
 * True if the owner reference CONTROLLER has the kind KIND and the API group in API_VERSION, such
 * as "batch/v1" or only "batch/".
 */
bool spec_view_is_a(const struct spec_value *controller, const char *api_version, const char *kind);
/* Return the labels of an object, borrowed, or NULL. */
const struct spec_value *spec_view_labels(const struct spec_value *object);
/* Return the condition TYPE in STATUS, borrowed, or NULL. */
const struct spec_value *spec_view_condition(const struct spec_value *status, const char *type);
bool spec_view_is_true(const struct spec_value *condition);
/* Return the time of the latest change of any condition in STATUS, or 0. */
int64_t spec_view_changed(const struct spec_value *status);
/* Return the time limit in seconds of POD, a pod's object or template; 0 if it has no limit. */
int spec_view_time_limit(const struct spec_value *pod);
/*
 * Return the name (borrowed) of the main container of OBJECT, a pod: the container named TASK, else
 * the container that the annotation default-container names, else the first container.
 */
const char *spec_pod_choose_main(const struct spec_value *object, const char *task);
