/* SPDX-License-Identifier: MIT */
/* How kxfs reads the objects of one kind of job, and functions for readers. */
#pragma once

#include "spec/base/value.h"
#include "spec/view/view.h"

/* A task in a job's object. Plain data. Strings are borrowed from the object. */
struct spec_task_source {
	const char *name;
	/* The TorchX role if this task is one replica of a role, otherwise "". */
	const char *role;
	unsigned replica;  /* id of the replica in its role */
	unsigned replicas; /* number of pods */
	unsigned minimum;
	int time_limit; /* seconds for each pod, or 0 */
	bool grows;	/* as in spec_task_view */
	char key[80];	/* storage for NAME, for the reader's use */
};

/* What a phase in a job's object means: a row of the kind's table. */
struct spec_phase {
	const char *name; /* NULL in the last row */
	enum spec_state state;
	/* True if the controller does not replace pods that end or are deleted in this phase. */
	bool ending;
	bool suspended; /* the job may resume */
	/* True if the row applies only while a user has suspended the job. */
	bool asked;
	/* True if pods may wait in this phase. While all of them wait, the job is PENDING. */
	bool by_pods;
	/* True if the controller also sets this phase when it could not create the pods. */
	bool gives_up;
	/*
	 * True for a phase between two attempts. The job is then PENDING if no replica runs and
	 * none has failed.
	 */
	bool between;
};

/* True if ROW describes V's phase. ROW is V->rows or a later row of its table. */
static inline bool spec_phase_is(const struct spec_job_view *v, const struct spec_phase *row)
{
	return row && row->name && streq(row->name, v->rows->name);
}

/* The reason of a job that Kueue keeps suspended in a queue. */
#define SPEC_REASON_QUEUED "QueuedInKueue"

/* What kxfs concludes from the ends of pods before the phase shows the job's end. */
enum spec_pods_decide {
	/* The job has succeeded if all pods have succeeded. */
	SPEC_PODS_DECIDE_SUCCESS,
	/*
	 * The job has ended if all pods have ended and no retry follows. For controllers that
	 * report the end minutes late, or never.
	 */
	SPEC_PODS_DECIDE_END,
	/*
	 * Nothing. When a job is suspended after all pods have succeeded, this controller deletes
	 * the pods, and creates them again later.
	 */
	SPEC_PODS_DECIDE_NOTHING,
};

/* How kxfs reads the objects of a kind. READER is this struct. */
struct spec_reader {
	/*
	 * Sets the members of V that depend on the spec. Returns the number of tasks, and the tasks
	 * in *RET_TASKS (malloc'ed).
	 */
	size_t (*job)(const struct spec_reader *reader, const struct spec_value *object,
		      struct spec_job_view *v, struct spec_task_source **ret_tasks);
	/* Sets the members of V that depend on status and metadata, such as phase and retries. */
	void (*status)(const struct spec_reader *reader, const struct spec_value *object,
		       struct spec_job_view *v);
	/* The controller of the pods: the beginning of its apiVersion ("batch/"), and its kind. */
	const char *of_group, *of_kind;
	/*
	 * Returns the uid of POD's job, or of an object between the job and POD. Sets *RET_PART to
	 * true if the uid may be that of such an object. Returns NULL if POD does not belong to
	 * this kind.
	 *
	 * If OWNER is NULL, the job is POD's controller, which must match OF_GROUP and OF_KIND.
	 */
	const char *(*owner)(const struct spec_reader *reader, const struct spec_value *pod,
			     bool *ret_part);
	/* Sets the members task, index, retry, failures and main of V. */
	void (*pod)(const struct spec_reader *reader, const struct spec_value *object,
		    struct spec_pod_view *v);
	const struct spec_phase *phases; /* rows with the same name are adjacent */
	enum spec_pods_decide pods_decide;
	/*
	 * What the controller does with a failed replica while retries are left, as a sentence for
	 * users. NULL if it retries immediately.
	 */
	const char *again;
	/*
	 * Why the controller may end a failed job although retries are left, as a sentence for
	 * users. NULL if it never does that.
	 */
	const char *no_more;
	/* True if the object's count of retries is wrong. snapshot.c then counts them. */
	bool recounted;
	bool remade; /* the owner creates the object again after a deletion */
	/* True if an attempt fails when its pods do not start within some minutes. */
	bool impatient;
};

/* Set V's reason and message: the job waits in QUEUE for Kueue. */
void spec_job_view_queued(struct spec_job_view *v, const char *queue);
/* Return the owner reference of OBJECT's controller (borrowed), or NULL. */
const struct spec_value *spec_view_controller(const struct spec_value *object);
/* True if the owner reference CONTROLLER has this kind and the group of API_VERSION. */
bool spec_view_is_a(const struct spec_value *controller, const char *api_version, const char *kind);
/* Return the labels of OBJECT (borrowed), or NULL. */
const struct spec_value *spec_view_labels(const struct spec_value *object);
/* Return the condition TYPE in STATUS (borrowed), or NULL. */
const struct spec_value *spec_view_condition(const struct spec_value *status, const char *type);
bool spec_view_is_true(const struct spec_value *condition);
/* Return the time of the last change of any condition in STATUS, or 0. */
int64_t spec_view_changed(const struct spec_value *status);
/* Return the time limit of POD, a pod or a template, in seconds; 0 if it has none. */
int spec_view_time_limit(const struct spec_value *pod);
/*
 * Return the name (borrowed) of the main container of the pod OBJECT: TASK if there is such a
 * container, else the one in the annotation default-container, else the first.
 */
const char *spec_pod_choose_main(const struct spec_value *object, const char *task);
