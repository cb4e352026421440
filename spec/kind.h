/* SPDX-License-Identifier: MIT */
/*
 * A kind of job in a cluster is data: names, run options, and pure functions that share pod.h. A
 * new kind is a file of its own and a row in kind.c. spec/manifest.h is how a manifest is made.
 */
#ifndef KXFS_SPEC_KIND_H
#define KXFS_SPEC_KIND_H

#include "spec/run_options.h"

struct spec_control; /* control.h: what ctl does */
struct spec_build;   /* pod.h: what a kind is given, and what it makes */
struct spec_reader;  /* view_impl.h */

/* Who submits what, when: chosen by the caller, since spec/ has no randomness of its own. */
struct spec_identity {
	uint64_t random[2];	/* for the job's name */
	const char *namespace;	/* the mount's */
	const char *submission; /* UUID of this write */
	const char *submitter;	/* user@host */
	bool rename;		/* a ready manifest takes a new name: its own is taken */
	bool beside;		/* by an object that is still there, with all that it wraps */
};

struct spec_kind {
	const char *name;	 /* "volcano": in SOURCE and in an AppDef's scheduler */
	const char *also;	 /* another name that an AppDef may give it; NULL: none */
	const char *scheduler;	 /* TorchX's name of it, which begins its handles */
	const char *api_version; /* of the object */
	const char *kind;
	const char *plural;	  /* in the API's paths */
	const char *pod_selector; /* labels that all pods of its jobs have; "" none */
	/* The API of the groups of its pods and of its queues; NULL: it has none that are shown. */
	const char *scheduling_api;
	const struct spec_option *options; /* ends with one whose name is NULL */
	/*
	 * The length of the longest pod name of a role whose last replica is K and the LAST-th task of
	 * the job (from 0); APP and ROLE are the lengths of normal forms. NULL: names are made to fit.
	 */
	size_t (*pod_name_len)(size_t app, size_t role, size_t k, size_t last);
	/* Make the object's name and the object. 0, or an errno that is in the build's errors. */
	int (*build)(struct spec_build *b);
	/* How its objects are read back; NULL: what is made can't be shown yet. */
	const struct spec_reader *reader;
	const struct spec_control *control; /* NULL: ctl does nothing to its jobs */
};

/* Can jobs of KIND be shown, not only made? */
static inline bool spec_kind_is_shown(const struct spec_kind *kind)
{
	return kind->reader;
}

extern const struct spec_kind spec_volcano;
extern const struct spec_kind spec_mcad;
extern const struct spec_kind spec_appwrapper;

/* The I-th kind; NULL: no more. */
const struct spec_kind *spec_kind_at(size_t i);
/* The kind of this name; NULL: none. */
const struct spec_kind *spec_kind_find(const char *name);
/* Does an AppDef whose scheduler is NAME run as a job of KIND? */
bool spec_kind_takes(const struct spec_kind *kind, const char *name);

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
