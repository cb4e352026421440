/* SPDX-License-Identifier: MIT */
/*
 * What a kind of job provides so that its objects can be shown, and functions that help it to read them. Only kinds
 * include this.
 */
#pragma once

#include "spec/base/read.h"
#include "spec/view/view.h"

/* A task as it stands in a job's object: plain data; strings are borrowed from the object. */
struct spec_task_source {
	const char *name;
	/* TorchX's role, of which the task is one replica; "": TorchX did not make it. */
	const char *role;
	unsigned replica;  /* TorchX's id of the replica */
	unsigned replicas; /* pods of the task */
	unsigned minimum;
	int time_limit; /* seconds that each of its pods may run; 0: none */
	char key[80];	/* room for a name that the reader makes; nobody else reads it */
};

/* What a phase of the kind's controller means. */
struct spec_phase {
	const char *name; /* NULL: the end of the table */
	enum spec_state state;
	bool ending;	/* a pod that is stopped in this phase is not started again by itself */
	bool suspended; /* the job may come back to life */
	/* The row holds only if somebody has asked for suspension (spec_job_view.asked). */
	bool asked;
	bool by_pods; /* the pods have been made, but all may still wait: then the job is PENDING */
	bool gives_up; /* the phase is also that of a job whose pods could not be made */
	bool between;  /* an attempt is over: the job is PENDING unless a replica still runs */
};

/* The reason of a job that is suspended in a queue of Kueue, which says by itself why (kueue_cause.c). */
#define SPEC_REASON_QUEUED "QueuedInKueue"

/* How the objects of a kind are read. Each function gets the reader itself. */
struct spec_reader {
	/*
	 * Set what follows from the object's spec, which is not read again before the server says that it has changed;
	 * a change of its metadata alone does not count. Returns the number of its tasks, which are malloc'ed in
	 * *RET_TASKS, in the object's order.
	 */
	size_t (*job)(const struct spec_reader *reader, const struct spec_value *object,
		      struct spec_job_view *v, struct spec_task_source **ret_tasks);
	/* Set what follows from its status and its metadata: phase, reason, message, retries, changed. */
	void (*status)(const struct spec_reader *reader, const struct spec_value *object,
		       struct spec_job_view *v);
	/* The controller of its pods: an OF_KIND of an API that begins with OF_GROUP ("batch/"). */
	const char *of_group, *of_kind;
	/* Of the pods with such a controller, true for those of the kind. NULL: all are. */
	bool (*has)(const struct spec_reader *reader, const struct spec_value *pod);
	/* Set task, index, retry and main. OBJECT has the members in the table of pod.c, perhaps no others. */
	void (*pod)(const struct spec_reader *reader, const struct spec_value *object,
		    struct spec_pod_view *v);
	/*
	 * The objects that this object makes under names of their own: a list in it, where each is the member *RET_KEY
	 * of an item. NULL: the kind makes none.
	 */
	const struct spec_value *(*wrapped)(const struct spec_value *object, const char **ret_key);
	const struct spec_phase *phases;
	/*
	 * The controller may write minutes later, or never, that a running job is over. When all its pods have
	 * ended by themselves, the job has ended too, unless it is to be started again.
	 */
	bool pods_decide;
	/*
	 * What the controller does about a replica that failed, while retries are left: a sentence; NULL: it acts at
	 * once.
	 */
	const char *again;
	/* Why the controller may end a job that has failed though retries are left: a sentence; NULL: it does not. */
	const char *no_more;
	/*
	 * Restarts of containers are retries too, and once the job ends, its object also counts pods that its
	 * controller has deleted as retries.
	 */
	bool recounted;
	bool remade;	/* what owns an object of the kind makes it anew when it is deleted */
	bool impatient; /* it gives up an attempt whose pods have not started after some minutes */
};

/*
 * For kinds that Kueue suspends: set the queue that OBJECT's label names. If it names none, whoever suspends the job
 * has asked for that, unless OBJECT has a controller, which does it.
 */
void spec_job_view_labelled(struct spec_job_view *v, const struct spec_value *object);
/* V is suspended in QUEUE, one of Kueue's. */
void spec_job_view_queued(struct spec_job_view *v, const char *queue);
/* V belongs to the object with this uid, whatever its own controller is. Ignored if UID can't be one. */
void spec_pod_view_owned(struct spec_pod_view *v, const char *uid);
/* The reference to the controller of OBJECT, borrowed; NULL: it has none, or one that can't be. */
const struct spec_value *spec_view_controller(const struct spec_value *object);
/* The labels of an object, borrowed; NULL: it has none. */
const struct spec_value *spec_view_labels(const struct spec_value *object);
/* The condition TYPE that stands in a status, borrowed; NULL: none does. */
const struct spec_value *spec_view_condition(const struct spec_value *status, const char *type);
bool spec_view_is_true(const struct spec_value *condition);
/* When a condition that stands in a status changed last; 0: none does. */
int64_t spec_view_changed(const struct spec_value *status);
/* The main container of a pod's object: the one named TASK, else the pod's default one, else the first. Borrowed. */
int spec_view_time_limit(const struct spec_value *pod);
/* The seconds that a pod may run, by its object or its template; 0: there is no limit. */
const char *spec_pod_choose_main(const struct spec_value *object, const char *task);
