/* SPDX-License-Identifier: MIT */
/*
 * A kind of job in a cluster is data: names, run options, and pure functions that share pod.h. A
 * new kind is a file of its own and a row in kind.c. spec/manifest.h is how a manifest is made.
 */
#ifndef KXFS_SPEC_KIND_H
#define KXFS_SPEC_KIND_H

#include "spec/job.h"
#include "spec/run_options.h"

struct json_object;
struct spec_build;    /* pod.h: what a kind is given, and what it makes */
struct spec_job_view; /* view.h: what it reads */
struct spec_pod_view;

/* Who submits what, when: chosen by the caller, since spec/ has no randomness of its own. */
struct spec_identity {
	uint64_t random[2];	/* for the job's name */
	const char *namespace;	/* the mount's */
	const char *submission; /* UUID of this write */
	const char *submitter;	/* user@host */
	bool rename;		/* a ready manifest takes a new name: its own is taken */
};

/* A task as it stands in a job's object; strings are borrowed. */
struct spec_task_source {
	const char *name;
	const char *role;  /* TorchX's role, of which this is one replica; "" not made so */
	unsigned replica;  /* TorchX's id of it */
	unsigned replicas; /* pods of the task */
	unsigned minimum;
};

/* What a word of the kind's controller means. */
struct spec_phase {
	const char *name; /* NULL: the end of the table */
	enum spec_state state;
	bool ending;	/* what is stopped now is not started again: not by itself, at least */
	bool suspended; /* may come back to life */
};

struct spec_kind {
	const char *name;	 /* "volcano": in SOURCE and in an AppDef's scheduler */
	const char *scheduler;	 /* TorchX's name of it, which begins its handles */
	const char *api_version; /* of the object */
	const char *kind;
	const char *plural;		   /* in the API's paths */
	const char *pod_selector;	   /* labels that all pods of its jobs have; "" none */
	const struct spec_option *options; /* ends with one whose name is NULL */
	/* Make the object's name and the object. 0, or an errno that is in the build's errors. */
	int (*build)(struct spec_build *b);
	/*
	 * Reading back; NULL: what is made can't be shown yet (spec_kind_is_shown). The views have their
	 * metadata. 0, -EINVAL: not such an object; -ENOMEM. Sets all but what is of metadata, roles and
	 * tasks; those are malloc'ed in *TASKS, in the object's order.
	 */
	int (*read_job)(struct json_object *object, struct spec_job_view *v,
			struct spec_task_source **tasks, size_t *n);
	/* Sets task, index, retry and main. */
	int (*read_pod)(struct json_object *object, struct spec_pod_view *v);
	const struct spec_phase *phases;
};

/* Can jobs of KIND be shown, not only made? */
static inline bool spec_kind_is_shown(const struct spec_kind *kind)
{
	return kind->read_job;
}

extern const struct spec_kind spec_volcano;
extern const struct spec_kind spec_mcad;

/* The I-th kind; NULL: no more. */
const struct spec_kind *spec_kind_at(size_t i);
/* The kind of this name; NULL: none. */
const struct spec_kind *spec_kind_find(const char *name);

#endif
