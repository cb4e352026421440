/* SPDX-License-Identifier: MIT */
/*
 * Describes a kind of job in a cluster as data: names, run options, and pure functions (rule K1).
 * spec/kinds has the kinds.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/app/run_options.h"

struct spec_control; /* spec/view/control.h: actions of ctl */
struct spec_build;   /* spec/pods/pod.h: input and result of spec_kind.build */
struct spec_reader;  /* spec/view/reader.h: reads a kind's objects */
struct spec_job_view;
struct spec_pick;
struct spec_value;

/*
 * The identity of a submission. Plain data. The caller sets it, since spec/ has no source of
 * randomness.
 */
struct spec_identity {
	uint64_t random[2];	/* for the job's name */
	const char *namespace;	/* the mount's namespace */
	const char *submission; /* UUID of this submission */
	const char *submitter;	/* user@host */
	const char *user;	/* value of the label SPEC_LABEL_USER; names the user who mounts */
	/* true to give a ready manifest a new name, because its own name is taken */
	bool rename;
	/*
	 * True if the object that has the manifest's own name still exists. The objects that it
	 * wraps then exist, too.
	 */
	bool old_exists;
};

/*
 * A resource whose objects are between a kind's jobs and their pods: a job owns such objects, and
 * they own pods. A mount watches only their metadata.
 */
struct spec_part {
	const char *api_version, *kind, *plural;
	/* the text for users: what the mount can't do if the user may not watch these objects */
	const char *cost;
};

/*
 * The place in an object that contains pods or pod templates. The path PODS ("spec.tasks") leads to
 * a list, to a map (if MAP is true) or to a single value. The path POD ("template") leads from each
 * item of the list, from each member of the map, or from the single value to a pod or a template.
 */
struct spec_template {
	const char *pods, *pod;
	bool map;
};

/*
 * The member KEY of the map at the path AT. If VALUE is not NULL, only a member with this value is
 * meant. The last element of a list of such members has AT NULL.
 */
struct spec_member {
	const char *at, *key, *value;
};

/* A kind of job. Plain data: each kind is one constant. */
struct spec_kind {
	const char *name; /* its name, "volcano", in SOURCE and in an AppDef's scheduler */
	/*
	 * A word that the user may write as SOURCE instead of NAME; several kinds may share it. The
	 * mount then shows only one of these kinds. NULL if there is no such word.
	 */
	const char *source;
	const char *jobs; /* text for people: "Volcano jobs" */
	/* another kind's name that this kind accepts as an AppDef's scheduler, or NULL */
	const char *also;
	/* TorchX's name for the kind, in an AppDef's scheduler and in handles */
	const char *scheduler;
	const char *api_version; /* apiVersion of the kind's objects */
	const char *kind;
	const char *plural; /* plural name of the resource, in URLs */
	/* label selector that matches all pods of the kind's jobs, or "" */
	const char *pod_selector;
	/* a label that the kind's pods have, and pods of other kinds as well; or NULL */
	const char *pods_also;
	/*
	 * A table that shows where an object has its pods or their templates. The last row has no
	 * POD. NULL if the object has neither.
	 */
	const struct spec_template *templates;
	/*
	 * The path of a map in the object, or NULL. A controller gives the labels in this map to
	 * all of the object's pods, besides the labels in the templates.
	 */
	const char *user_labels;
	bool unlabelled; /* true if some of the pods don't get the label SPEC_LABEL_USER */
	/*
	 * Members that controllers add to an object besides the members that they add to every kind
	 * of object; or NULL. A copy of the object omits them.
	 */
	const struct spec_member *added;
	/* Selects the members of the objects that the splitter keeps; NULL for all members. */
	const struct spec_pick *pick;
	/* The N_PARTS resources between jobs and pods that a mount watches. */
	const struct spec_part *parts;
	size_t n_parts;
	/*
	 * The API version of the pod groups and queues of the kind's jobs; NULL if kxfs shows none.
	 */
	const char *scheduling_api;
	/*
	 * True if an object has only one template for each role, whatever the number of replicas.
	 */
	bool one_template;
	bool users;			   /* true if a kind file of the user describes this kind */
	bool in_kueue;			   /* true if the kind's jobs may be in queues of Kueue */
	const struct spec_option *options; /* the run options; the last element has the name NULL */
	/* As in struct spec_scheduler. */
	size_t (*pod_name_len)(size_t app, size_t role, size_t k, size_t last);
	/*
	 * Makes the object and chooses its name. Returns 0, or the errno of an error that was added
	 * to the build's errors. NULL if the kind accepts only ready manifests, not AppDefs.
	 */
	int (*build)(struct spec_build *b);
	/* Reads the kind's objects. */
	const struct spec_reader *reader;
	const struct spec_control *control; /* NULL if ctl has no actions for its jobs */
	/*
	 * For a kind that a file describes: called after the status was read, to set what the file
	 * can't express. May be NULL.
	 */
	void (*hook)(const struct spec_value *object, struct spec_job_view *v);
};

#define SPEC_MAX_KINDS 32
#define SPEC_MAX_PARTS 32 /* of all kinds */

/*
 * The table of kinds, in order of preference. Plain data: main() makes it and passes it to all
 * other parts.
 */
struct spec_kinds {
	const struct spec_kind *v[SPEC_MAX_KINDS];
	size_t n;
};
