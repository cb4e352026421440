/* SPDX-License-Identifier: MIT */
/*
 * A kind of job in a cluster is data: names, run options, and pure functions (rule K1). The kinds are in spec/kinds.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/app/run_options.h"

struct spec_control; /* spec/view/control.h: what ctl does */
struct spec_build;   /* spec/pods/pod.h: input and result of a kind */
struct spec_reader;  /* spec/view/reader.h: how its objects are read */
struct spec_job_view;
struct spec_pick;
struct spec_value;

/*
 * The identity of a submission. Plain data, chosen by the caller, since spec/ has no randomness of
 * its own.
 */
struct spec_identity {
	uint64_t random[2];	/* for the job's name */
	const char *namespace;	/* the mount's namespace */
	const char *submission; /* UUID of this submission */
	const char *submitter;	/* user@host */
	const char *user;	/* value of SPEC_LABEL_USER: the user who mounts */
	bool rename;		/* give a ready manifest a new name, since its own is taken */
	bool old_exists; /* the old object with the name still exists, with all that it wraps */
};

/* Objects between the pods and the jobs of a kind. A mount watches only their metadata. */
struct spec_part {
	const char *api_version, *kind, *plural;
	const char *cost; /* what a user who may not watch them lacks */
};

/*
 * Where an object has pods or pod templates. The path PODS ("spec.tasks") leads to a list, to a map
 * (with MAP) or to a single value. Each item, each member, or that value has a pod or a template at
 * the path POD ("template").
 */
struct spec_template {
	const char *pods, *pod;
	bool map;
};

/*
 * The member KEY of the map at the path AT; with a VALUE, only if the member has it. AT is NULL at
 * the end of a list.
 */
struct spec_member {
	const char *at, *key, *value;
};

/* A kind. Plain data: each kind is one constant. */
struct spec_kind {
	const char *name; /* its name, "volcano", in SOURCE and in an AppDef's scheduler */
	/*
	 * Another word for SOURCE, which several kinds share: a mount shows one of these kinds.
	 * NULL if only NAME selects the kind.
	 */
	const char *source;
	const char *jobs;	 /* its jobs, for people: "Volcano jobs" */
	const char *also;	 /* another kind whose AppDefs it also runs, or NULL */
	const char *scheduler;	 /* TorchX's name for it, in an AppDef's scheduler and in handles */
	const char *api_version; /* version of its object */
	const char *kind;
	const char *plural;	  /* plural name in the API's paths */
	const char *pod_selector; /* labels that all pods of its jobs have, or "" */
	/* a label that its pods share with pods of other kinds, or NULL */
	const char *pods_also;
	/* Its pods or their templates; ends with a row without POD. NULL if the object has none. */
	const struct spec_template *templates;
	/*
	 * The path of a map of labels that all of its pods get, besides the labels in templates; or
	 * NULL.
	 */
	const char *user_labels;
	bool unlabelled; /* some of its pods get no label of the user who submits the job */
	/* Other members that controllers add to an object, and that a copy omits; or NULL. */
	const struct spec_member *added;
	/* The members of its objects that the splitter keeps; NULL: all of them. */
	const struct spec_pick *pick;
	/* The N_PARTS parts of its jobs that are watched. */
	const struct spec_part *parts;
	size_t n_parts;
	/* The API version of its pod groups and queues; NULL if none are shown. */
	const char *scheduling_api;
	/* The object has one template per role, however many replicas the role has. */
	bool one_template;
	bool users;			   /* it comes from a kind file of the user */
	bool in_kueue;			   /* its jobs may be in queues of Kueue */
	const struct spec_option *options; /* ends with one whose name is NULL */
	/* See struct spec_scheduler. */
	size_t (*pod_name_len)(size_t app, size_t role, size_t k, size_t last);
	/*
	 * Make the object's name and the object. Return 0, or an errno that is in the build's
	 * errors. If the function is NULL, the kind takes only ready manifests, not AppDefs.
	 */
	int (*build)(struct spec_build *b);
	/* The reader of its objects. */
	const struct spec_reader *reader;
	const struct spec_control *control; /* NULL if ctl has no actions for its jobs */
	/*
	 * For a kind described by a file: set what the file can't express, after the status was
	 * read. May be NULL.
	 */
	void (*hook)(const struct spec_value *object, struct spec_job_view *v);
};

#define SPEC_MAX_KINDS 32
#define SPEC_MAX_PARTS 32 /* of all kinds */

/* The table of kinds, in order of preference. Plain data: main makes it, and passes it on. */
struct spec_kinds {
	const struct spec_kind *v[SPEC_MAX_KINDS];
	size_t n;
};
