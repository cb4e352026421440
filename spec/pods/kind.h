/* SPDX-License-Identifier: MIT */
/* A kind of job in a cluster, as data and pure functions. spec/kinds/ has the kinds. */
#pragma once

#include "spec/app/app.h"
#include "spec/app/run_options.h"

struct spec_control; /* see spec/view/control.h */
struct spec_build;   /* see spec/pods/pod.h */
struct spec_reader;  /* see spec/view/reader.h */
struct spec_job_view;
struct spec_value;

/* The identity of a submission. Plain data. */
struct spec_identity {
	uint64_t random[2];	/* for the job's name */
	const char *namespace;	/* namespace of the mount */
	const char *submission; /* UUID */
	const char *submitter;	/* user@host */
	const char *user;	/* value of the label SPEC_LABEL_USER */
	bool rename;		/* a ready manifest needs a new name: its own is taken */
	bool old_exists;	/* the object that has the old name still exists */
};

/* A resource that jobs own, and that owns pods. A mount watches only its metadata. */
struct spec_part {
	const char *api_version, *kind, *plural;
	const char *cost; /* what users lack if they may not watch it */
};

/*
 * Where an object has pods or pod templates. PODS ("spec.tasks") is the path of a list or map, and
 * POD ("template") a path in each of its items. If PODS is "", POD is a path in the object.
 */
struct spec_template {
	const char *pods, *pod;
};

/*
 * A member of an object: KEY in the map at the path AT. If VALUE is not NULL, the member must have
 * this value. AT is NULL in the last row of a list.
 */
struct spec_member {
	const char *at, *key, *value;
};

/* A kind of job. Plain data: a constant. */
struct spec_kind {
	const char *name; /* "volcano", in SOURCE and in an AppDef's scheduler */
	/*
	 * Another word for the kind in SOURCE, or NULL. Kinds may share a word: the mount then
	 * shows the newest one that the server serves.
	 */
	const char *source;
	const char *jobs;	 /* for users: "Volcano jobs" */
	const char *also;	 /* another kind whose AppDefs this kind accepts, or NULL */
	const char *scheduler;	 /* TorchX's name of the kind, in schedulers and handles */
	const char *api_version; /* of the objects */
	const char *kind;
	const char *plural; /* of the resource, in URLs */
	/* A label selector of all pods of the kind's jobs; "" selects all pods. */
	const char *pod_selector;
	/* A second selector that also matches all these pods, and perhaps others; or NULL. */
	const char *pods_also;
	const struct spec_template *templates; /* or NULL; POD is NULL in the last row */
	/*
	 * The path of a map in the object, or NULL. All pods of the job get the labels in this map.
	 */
	const char *user_labels;
	bool unlabelled; /* some pods do not get the label SPEC_LABEL_USER */
	/* Members that controllers add only to objects of this kind, or NULL. A copy omits them. */
	const struct spec_member *added;
	const char *const *ignored;    /* members of status to drop (spec_split_new), or NULL */
	const struct spec_part *parts; /* what a mount watches between jobs and pods */
	size_t n_parts;
	const char *scheduling_api;	   /* API version of pod groups and queues, or NULL */
	bool one_template;		   /* each role has one template for all replicas */
	bool users;			   /* the kind is from a user's kind file */
	bool in_kueue;			   /* jobs may be in queues of Kueue */
	const struct spec_option *options; /* run options; NAME is NULL in the last row */
	/* As in spec_scheduler. */
	size_t (*pod_name_len)(size_t app, size_t role, size_t k, size_t last);
	/*
	 * Makes a job's object and its name. Returns 0, or the errno of the build's errors. NULL if
	 * the kind only accepts ready manifests.
	 */
	int (*build)(struct spec_build *b);
	const struct spec_reader *reader;
	const struct spec_control *control; /* or NULL */
	/* SUSPEND and TERMINATE are paths below spec, or NULL (spec/pods/suspend.h). */
	const char *suspend; /* setting it to true suspends the job */
	/* Setting TERMINATE to TERMINATE_TO, a number or a word, ends the job. */
	const char *terminate, *terminate_to;
	/*
	 * Reads what a kind file can't express. Called after the reader has read the status; or
	 * NULL.
	 */
	void (*hook)(const struct spec_value *object, struct spec_job_view *v);
};

#define SPEC_MAX_KINDS 32
#define SPEC_MAX_PARTS 32 /* of all kinds together */

/* The kinds, in order of preference. Plain data: main() makes it. */
struct spec_kinds {
	const struct spec_kind *v[SPEC_MAX_KINDS];
	size_t n;
};
