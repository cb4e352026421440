/* SPDX-License-Identifier: MIT */
/*
 * A kind of job in a cluster is data: names, run options, and pure functions (rule K1). The kinds are in spec/kinds.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/app/run_options.h"

struct spec_control; /* spec/view/control.h: what ctl does */
struct spec_build;   /* spec/pods/pod.h: what a kind is given, and what it makes */
struct spec_reader;  /* spec/view/reader.h: how its objects are read */
struct spec_job_view;
struct spec_value;

/* Who submits, and what. Plain data, chosen by the caller, since spec/ has no randomness of its own. */
struct spec_identity {
	uint64_t random[2];	/* for the job's name */
	const char *namespace;	/* the mount's namespace */
	const char *submission; /* UUID of this submission */
	const char *submitter;	/* user@host */
	const char *user;	/* value of SPEC_LABEL_USER: the user who mounts */
	bool rename;		/* a ready manifest gets a new name, since its own is taken */
	bool old_exists; /* the object that has the name is still there, with all that it wraps */
};

/* A kind. Plain data: each kind is one constant. */
struct spec_kind {
	const char *name; /* its name, "volcano", in SOURCE and in an AppDef's scheduler */
	/*
	 * A word of SOURCE that may mean this kind too, as it may mean others: a mount shows one kind of those that
	 * share the word. NULL if only its name means it.
	 */
	const char *source;
	const char *jobs;	 /* its jobs, for people: "Volcano jobs" */
	const char *also;	 /* another kind whose AppDefs it runs too; NULL: none */
	const char *scheduler;	 /* TorchX's name for it, in an AppDef's scheduler and in handles */
	const char *api_version; /* version of its object */
	const char *kind;
	const char *plural;	  /* in the API's paths */
	const char *pod_selector; /* labels that all pods of its jobs have; "": none */
	/* a label that they have in common with pods of other kinds; NULL: none */
	const char *pods_also;
	/*
	 * The path of the list that its pods stand in, and in each item of it the path of the pod or its template:
	 * "spec.tasks" and "template". Items that are no pods are passed over. If there is no list, the value at the
	 * path is the only item; or, if it is a map and PODS_MAP, each of its members is.
	 */
	const char *pods, *pod;
	bool pods_map;
	/* The API version of the groups of its pods and of its queues; NULL: it has none that are shown. */
	const char *scheduling_api;
	/* The object has the pods of a role once, however many replicas that has. */
	bool one_template;
	bool in_kueue;			   /* its jobs may be in queues of Kueue */
	const struct spec_option *options; /* ends with one whose name is NULL */
	/* See struct spec_scheduler. */
	size_t (*pod_name_len)(size_t app, size_t role, size_t k, size_t last);
	/*
	 * Make the object's name and the object. 0, or an errno that is in the build's errors. NULL: an AppDef can't
	 * become such a job; it is submitted as a ready manifest.
	 */
	int (*build)(struct spec_build *b);
	/* How its objects are read back. */
	const struct spec_reader *reader;
	const struct spec_control *control; /* NULL: ctl does nothing to its jobs */
	/* Of a kind that is read by a file: sets what the file can't say, after the status was read. May be NULL. */
	void (*hook)(const struct spec_value *object, struct spec_job_view *v);
};

#define SPEC_MAX_KINDS 32

/* The table of kinds, in the order of preference. Plain data: main makes it, and all who need it get it from there. */
struct spec_kinds {
	const struct spec_kind *v[SPEC_MAX_KINDS];
	size_t n;
};
