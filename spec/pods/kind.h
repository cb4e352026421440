/* SPDX-License-Identifier: MIT */
/*
 * Describes a kind of job in a cluster as data: names, run options, and pure functions (rule K1).
 * The kinds themselves are in spec/kinds.
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
 * The identity of a submission. Plain data: the caller fills it in, since spec/ has no source of
 * randomness.
 */
struct spec_identity {
	uint64_t random[2];	/* random numbers for the job's name */
	const char *namespace;	/* the mount's namespace */
	const char *submission; /* UUID of this submission */
	const char *submitter;	/* user@host */
	/* value of the label SPEC_LABEL_USER, which identifies the user of this mount */
	const char *user;
	/* true if a ready manifest needs a new name, because an object already has its name */
	bool rename;
	/*
	 * true if an object with the manifest's own name still exists, and with it the objects that
	 * it wraps
	 */
	bool old_exists;
};

/*
 * A resource whose objects are between a kind's jobs and their pods: a job owns such objects, and
 * they own pods. A mount watches only their metadata.
 */
struct spec_part {
	const char *api_version, *kind, *plural;
	/* text for users: what the mount can't do if the user may not watch these objects */
	const char *cost;
};

/*
 * Where in an object pods or pod templates are. The path PODS ("spec.tasks") leads to a list or a
 * map. From each item of the list, or each member of the map, the path POD ("template") leads to a
 * pod or a template. If PODS is "", the path POD begins at the object itself.
 */
struct spec_template {
	const char *pods, *pod;
};

/*
 * The member KEY of the map at the path AT. If VALUE is not NULL, this struct only means a member
 * with this value. A list of such structs ends with one whose AT is NULL.
 */
struct spec_member {
	const char *at, *key, *value;
};

/* A kind of job. Plain data: each kind is one constant. */
struct spec_kind {
	const char *name; /* the kind's name, "volcano", in SOURCE and in an AppDef's scheduler */
	/*
	 * A word that the user may write as SOURCE instead of NAME. Several kinds may share a word.
	 * The mount then shows only one of these kinds. NULL if there is no such word.
	 */
	const char *source;
	const char *jobs; /* text for people: "Volcano jobs" */
	/* name of another kind, or NULL; this kind accepts AppDefs with that scheduler, too */
	const char *also;
	/* The name that TorchX uses for this kind, in an AppDef's scheduler and in handles. */
	const char *scheduler;
	const char *api_version; /* apiVersion of the kind's objects */
	const char *kind;
	const char *plural; /* plural name of the resource, in URLs */
	/* A label selector that matches all pods of the kind's jobs. "" matches all pods. */
	const char *pod_selector;
	/* a label of all pods of the kind's jobs, but also of other pods; NULL if there is none */
	const char *pods_also;
	/*
	 * A table that shows where in an object its pods or pod templates are. In the last row, POD
	 * is NULL. TEMPLATES is NULL if the objects have neither.
	 */
	const struct spec_template *templates;
	/*
	 * The path of a map of labels in the object, or NULL. A controller sets these labels in all
	 * of the object's pods, besides the labels in the templates.
	 */
	const char *user_labels;
	bool unlabelled; /* true if some of the pods do not get the label SPEC_LABEL_USER */
	/*
	 * Members that controllers add to objects of this kind. A copy of an object omits them.
	 * Members that controllers add to objects of every kind are not in this list. NULL if there
	 * are none.
	 */
	const struct spec_member *added;
	/* the table of members that the splitter keeps in the kind's objects; NULL for all */
	const struct spec_pick *pick;
	/* The N_PARTS resources between jobs and pods. A mount watches them. */
	const struct spec_part *parts;
	size_t n_parts;
	/* API version of the jobs' pod groups and queues; NULL if kxfs does not show them */
	const char *scheduling_api;
	/* true if an object has only one template for each role, for any number of replicas */
	bool one_template;
	/* true if this kind is described by a user's kind file */
	bool users;
	bool in_kueue;			   /* true if the kind's jobs may be in queues of Kueue */
	const struct spec_option *options; /* the run options; the last element has the name NULL */
	/* As in struct spec_scheduler. */
	size_t (*pod_name_len)(size_t app, size_t role, size_t k, size_t last);
	/*
	 * Makes a job's object and chooses its name. If there is an error, adds it to the build's
	 * errors and returns its errno. Otherwise returns 0. BUILD is NULL if the kind accepts only
	 * ready manifests, not AppDefs.
	 */
	int (*build)(struct spec_build *b);
	/* Reads the kind's objects. */
	const struct spec_reader *reader;
	const struct spec_control *control; /* NULL if ctl has no actions for the kind's jobs */
	/* Paths below spec, for the controls in spec/pods/suspend.h; NULL if there is no such member. */
	const char *suspend; /* a job is suspended if this member is true */
	/* a job ends if this member is set to TERMINATE_TO, a number or a word */
	const char *terminate, *terminate_to;
	/*
	 * For a kind that a kind file describes: called after an object's status was read, to set
	 * what the file can't express. May be NULL.
	 */
	void (*hook)(const struct spec_value *object, struct spec_job_view *v);
};

#define SPEC_MAX_KINDS 32
#define SPEC_MAX_PARTS 32 /* the maximum number of parts of all kinds together */

/*
 * The table of kinds, in order of preference. Plain data: main() makes it and passes it to all
 * other code.
 */
struct spec_kinds {
	const struct spec_kind *v[SPEC_MAX_KINDS];
	size_t n;
};
