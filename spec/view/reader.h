/* SPDX-License-Identifier: MIT */
/* How kxfs reads the objects of one kind of job (struct spec_reader), and functions for readers. */
#pragma once

#include "spec/base/value.h"
#include "spec/view/view.h"

/* A task in a job's object. Plain data. The strings are borrowed from the object. */
struct spec_task_source {
	const char *name;
	/* the TorchX role of which this task is one replica; "" if TorchX did not make the task */
	const char *role;
	unsigned replica;  /* id of the replica, from TorchX */
	unsigned replicas; /* number of pods of the task */
	unsigned minimum;
	int time_limit; /* time limit of each pod in seconds; 0 if unlimited */
	bool grows;	/* true if the task may have more pods than REPLICAS */
	/* for the kind's reader: storage for NAME, if the object does not contain it */
	char key[80];
};

/* A row of the kind's table of phases: what a phase in a job's object means. */
struct spec_phase {
	const char *name; /* NULL in the last row */
	enum spec_state state;
	/* true if the controller does not replace pods that end or are deleted in this phase */
	bool ending;
	bool suspended; /* true if the job is suspended and may resume */
	/* True if the row applies only while suspension is requested (spec_job_view.asked). */
	bool asked;
	/*
	 * true if the pods exist before this phase begins; the job is PENDING while all of them
	 * wait
	 */
	bool by_pods;
	/* true if the controller also uses this phase for a job whose pods it could not create */
	bool gives_up;
	/*
	 * True if this phase is between two attempts. The job is then PENDING, unless a replica has
	 * failed.
	 */
	bool between;
};

/* True if ROW describes V's phase. ROW is V->rows or a later row of the same table. */
static inline bool spec_phase_is(const struct spec_job_view *v, const struct spec_phase *row)
{
	return row && row->name && streq(row->name, v->rows->name);
}

/* Reason of a job that Kueue keeps suspended in a queue. kueue_cause.c finds the details. */
#define SPEC_REASON_QUEUED "QueuedInKueue"

/* What the pods show about the end of a job before its phase shows the end. */
enum spec_pods_decide {
	/* The job has succeeded if all pods have succeeded. */
	SPEC_PODS_DECIDE_SUCCESS,
	/*
	 * The job has ended if all pods have ended and the controller will not restart it. For
	 * controllers that report the end minutes late, or never.
	 */
	SPEC_PODS_DECIDE_END,
	/*
	 * Nothing: if a user suspends a job whose pods have all succeeded, the controller deletes
	 * the pods and later creates them again.
	 */
	SPEC_PODS_DECIDE_NOTHING,
};

/* How kxfs reads the objects of a kind. The functions get this struct as READER. */
struct spec_reader {
	/*
	 * Sets the members of V that depend on the spec. Called for a new object and after a change
	 * of the spec. Returns the number of tasks, and the tasks in *RET_TASKS (malloc'ed).
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
	 * Returns the uid of the job that owns POD. May instead return the uid of an object between
	 * them, and then sets *RET_PART to true. Returns NULL if POD does not belong to this kind.
	 * If the pointer OWNER is NULL, POD's controller owns POD if it matches OF_GROUP and
	 * OF_KIND.
	 */
	const char *(*owner)(const struct spec_reader *reader, const struct spec_value *pod,
			     bool *ret_part);
	/*
	 * Sets the members task, index, retry, failures and main of V. OBJECT is a pod with only
	 * the members that spec_pod_pick keeps.
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
	 * True if the object's number of retries is wrong: it lacks restarts of containers, and
	 * after the job's end it includes pods that the controller has deleted.
	 */
	bool recounted;
	bool remade; /* true if the object's owner creates the object again after a deletion */
	/* true if the controller ends an attempt whose pods do not start within some minutes */
	bool impatient;
};

/* Set the reason and the message of V: the job waits in QUEUE until Kueue admits it. */
void spec_job_view_queued(struct spec_job_view *v, const char *queue);
/* Return the owner reference of OBJECT's controller (borrowed), or NULL if it has no valid one. */
const struct spec_value *spec_view_controller(const struct spec_value *object);
/*
 * True if the owner reference CONTROLLER has the kind KIND and the API group of API_VERSION
 * ("batch/v1" or only "batch/").
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
