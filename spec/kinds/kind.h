/* SPDX-License-Identifier: MIT */
/*
 * A kind of job in a cluster is data: names, run options, and tables of pure functions. A new kind is a folder of its
 * own and a row in kind.c (rule K1). How a manifest is made is in spec/kinds/manifest.h.
 */
#ifndef KXFS_SPEC_KINDS_KIND_H
#define KXFS_SPEC_KINDS_KIND_H

#include "spec/app/app.h"
#include "spec/app/run_options.h"

struct spec_control; /* spec/view/control.h: what ctl does */
struct spec_build;   /* pod.h: what a kind is given, and what it makes */
struct spec_reader;  /* spec/view/reader.h: how its objects are read */

/* Who submits what. Plain data, chosen by the caller, since spec/ has no randomness of its own. */
struct spec_identity {
	uint64_t random[2];	/* for the job's name */
	const char *namespace;	/* the mount's */
	const char *submission; /* UUID of this write */
	const char *submitter;	/* user@host */
	const char *user;	/* value of SPEC_LABEL_USER, of who mounts */
	bool rename;		/* a ready manifest gets a new name, since its own is taken */
	bool old_exists; /* the object that has the name is still there, with all that it wraps */
};

struct spec_kind {
	const char *name;	 /* "volcano": in SOURCE and in an AppDef's scheduler */
	const char *also;	 /* another kind whose AppDefs it runs too; NULL: none */
	const char *scheduler;	 /* TorchX's name of it, in an AppDef's scheduler and its handles */
	const char *api_version; /* of the object */
	const char *kind;
	const char *plural;	  /* in the API's paths */
	const char *pod_selector; /* labels that all pods of its jobs have; "" none */
	/*
	 * Where its pods stand in its object: a list, and in each item of it a pod or the template of pods, if it
	 * is not of another kind. Keys joined by dots.
	 */
	const char *pods, *pod;
	/* The API of the groups of its pods and of its queues; NULL: it has none that are shown. */
	const char *scheduling_api;
	bool one_template; /* the pods of a role stand in the object once, however many replicas it has */
	bool in_kueue;			   /* its jobs may be in queues of Kueue */
	const struct spec_option *options; /* ends with one whose name is NULL */
	/* As in struct spec_scheduler. */
	size_t (*pod_name_len)(size_t app, size_t role, size_t k, size_t last);
	/* Make the object's name and the object. 0, or an errno that is in the build's errors. */
	int (*build)(struct spec_build *b);
	/* How its objects are read back. */
	const struct spec_reader *reader;
	const struct spec_control *control; /* NULL: ctl does nothing to its jobs */
};

extern const struct spec_kind spec_volcano;
extern const struct spec_kind spec_mcad;
extern const struct spec_kind spec_appwrapper;
extern const struct spec_kind spec_jobset;
extern const struct spec_reader spec_volcano_reader;
extern const struct spec_reader spec_mcad_reader;
extern const struct spec_reader spec_appwrapper_reader;
extern const struct spec_reader spec_jobset_reader;
extern const struct spec_control spec_volcano_control;
extern const struct spec_control spec_appwrapper_control;
extern const struct spec_control spec_jobset_control;

/* The I-th kind; NULL: no more. */
const struct spec_kind *spec_kind_at(size_t i);
/* The kind of this name; NULL: none. */
const struct spec_kind *spec_kind_find(const char *name);
/* The first kind that an AppDef's scheduler may call so: by its own name, or TorchX's; NULL: none. */
const struct spec_kind *spec_kind_of_scheduler(const char *scheduler);
/* The rules for reading an AppDef that will run as a job of KIND; NULL: as one of any kind, or on this machine. */
void spec_kind_app_rules(struct spec_app_rules *ret, const struct spec_kind *kind,
			 const char *home);

/* What a cluster may serve, and what is made of it. */
struct spec_served {
	const char *source; /* the word of SOURCE that may mean it */
	const char *api_version;
	const char *plural;
	const struct spec_kind *kind; /* NULL: it is known, and refused: */
	const char *instead;	      /* what to do, for people; NULL: nothing */
};

/*
 * The I-th thing to ask a cluster for that SOURCE ("": any) may mean, the best first: what it does not
 * serve is passed over. NULL: no more.
 */
const struct spec_served *spec_served_at(const char *source, size_t i);

#endif
