/* SPDX-License-Identifier: MIT */
/*
 * Describes a kind of job in a cluster as data: names, run options, and pure functions (rule K1).
 * spec/kinds/ has the kinds.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/app/run_options.h"

struct spec_control; /* spec/view/control.h: actions of ctl */
struct spec_build;   /* spec/pods/pod.h: the input and the result of making a job's object */
struct spec_reader;  /* spec/view/reader.h: reads objects of a kind */
struct spec_job_view;
struct spec_pick;
struct spec_value;

/*
 * The identity of a submission. Plain data: the caller fills it in, because spec/ has no random
 * numbers.
 */
struct spec_identity {
	uint64_t random[2];	/* random numbers for the job's name */
	const char *namespace;	/* the mount's namespace */
	const char *submission; /* UUID of this submission */
	const char *submitter;	/* user@host */
	/* value of the label SPEC_LABEL_USER: the user of this mount */
	const char *user;
	/* true if a ready manifest needs a new name, because its own is taken */
	bool rename;
	/*
	 * true if the object with the manifest's own name still exists, and so do the objects in it
	 */
	bool old_exists;
};

/*
 * A resource between a kind's jobs and their pods: a job owns such objects, and they own pods. A
 * mount watches only their metadata.
 */
struct spec_part {
	const char *api_version, *kind, *plural;
	/* text for users: what the mount can't do if the user may not watch these objects */
	const char *cost;
};

/*
 * Where an object has pods or pod templates. The path PODS ("spec.tasks") leads to a list or a map.
 * In each of its items, the path POD ("template") leads to a pod or a template. If PODS is "", POD
 * begins at the object itself.
 */
struct spec_template {
	const char *pods, *pod;
};

/*
 * The member KEY of the map at the path AT. If VALUE is not NULL, the member must have this value.
 * AT is NULL at the end of a list.
 */
struct spec_member {
	const char *at, *key, *value;
};

/* A kind of job. Plain data: each kind is one constant. */
struct spec_kind {
	const char *name; /* the kind's name, "volcano", in SOURCE and in an AppDef's scheduler */
	/*
	 * Another word that selects the kind in SOURCE, or NULL. Kinds may share a word: the mount
	 * then shows the newest of them that the server serves.
	 */
	const char *source;
	const char *jobs; /* text for people: "Volcano jobs" */
	/* name of another kind, or NULL; this kind also accepts AppDefs with that scheduler */
	const char *also;
	/* The name that TorchX uses for this kind, in an AppDef's scheduler and in handles. */
	const char *scheduler;
	const char *api_version; /* apiVersion of the kind's objects */
	const char *kind;
	const char *plural; /* plural name of the resource, in URLs */
	/* A label selector that matches all pods of the kind's jobs. "" matches all pods. */
	const char *pod_selector;
	/* NULL, or a label selector of all pods of the kind's jobs that also matches other pods */
	const char *pods_also;
	/*
	 * Where an object of this kind has pods or templates; NULL if nowhere. POD is NULL in the
	 * last row.
	 */
	const struct spec_template *templates;
	/*
	 * The path of a map of labels in the object that a controller sets in all of the object's
	 * pods; or NULL.
	 */
	const char *user_labels;
	bool unlabelled; /* true if some of the pods do not get the label SPEC_LABEL_USER */
	/*
	 * Members that controllers add to objects of this kind, besides those that they add to
	 * every kind. A copy of an object omits them. NULL if there are none.
	 */
	const struct spec_member *added;
	/* the members that kxfs keeps of the kind's objects; NULL for all */
	const struct spec_pick *pick;
	/* the resources between jobs and pods, which a mount watches */
	const struct spec_part *parts;
	size_t n_parts;
	/* API version of the jobs' pod groups and queues; NULL if kxfs does not show them */
	const char *scheduling_api;
	/* true if an object has one template for each role, whatever the number of replicas */
	bool one_template;
	/* true if this kind is described by a user's kind file */
	bool users;
	bool in_kueue;			   /* true if the kind's jobs may be in queues of Kueue */
	const struct spec_option *options; /* the run options; the last element has the name NULL */
	/* As in struct spec_scheduler. */
	size_t (*pod_name_len)(size_t app, size_t role, size_t k, size_t last);
	/*
	 * Makes a job's object and chooses its name. Returns 0, or the errno of the error that it
	 * added to the build's errors. NULL if the kind accepts only ready manifests, not AppDefs.
	 */
	int (*build)(struct spec_build *b);
	const struct spec_reader *reader;
	const struct spec_control *control; /* NULL if ctl has no actions for the kind's jobs */
	/*
	 * The next three members are for the controls in spec/pods/suspend.h. The paths are below
	 * spec; NULL if there is no such member.
	 */
	const char *suspend; /* a job is suspended if this member is true */
	/* a job ends if this member is set to TERMINATE_TO, a number or a word */
	const char *terminate, *terminate_to;
	/*
	 * Called after an object's status was read, to set what a kind file can't express; or NULL.
	 */
	void (*hook)(const struct spec_value *object, struct spec_job_view *v);
};

#define SPEC_MAX_KINDS 32
#define SPEC_MAX_PARTS 32 /* of all kinds together */

/*
 * The kinds, in order of preference. Plain data: main() makes it and passes it to all other code.
 */
struct spec_kinds {
	const struct spec_kind *v[SPEC_MAX_KINDS];
	size_t n;
};
