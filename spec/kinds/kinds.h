/* SPDX-License-Identifier: MIT */
/*
 * The kinds of jobs that there are, and what clusters serve. A new kind is a folder of its own and a row in kinds.c.
 */
#pragma once

#include "spec/pods/kind.h"
#include "spec/view/view.h"

extern const struct spec_kind spec_volcano;
extern const struct spec_kind spec_mcad;
extern const struct spec_kind spec_appwrapper;
extern const struct spec_kind spec_jobset;
extern const struct spec_kind spec_job;
extern const struct spec_reader spec_volcano_reader;
extern const struct spec_reader spec_mcad_reader;
extern const struct spec_reader spec_appwrapper_reader;
extern const struct spec_reader spec_jobset_reader;
extern const struct spec_reader spec_job_reader;
extern const struct spec_control spec_volcano_control;
extern const struct spec_control spec_appwrapper_control;
extern const struct spec_control spec_jobset_control;
extern const struct spec_control spec_job_control;

/* The I-th kind; NULL: no more. */
const struct spec_kind *spec_kind_at(size_t i);
/* The kind of this name; NULL: none. */
const struct spec_kind *spec_kind_find(const char *name);
/* The first kind that an AppDef may mean by SCHEDULER: its own name, or TorchX's; NULL: none. */
const struct spec_kind *spec_kind_of_scheduler(const char *scheduler);
/* The first kind that has the run option NAME; NULL: none. */
const struct spec_kind *spec_kind_of_option(const char *name);
/* The rules for reading an AppDef that will run as a job of KIND; NULL: as a job of any kind, or on this machine. */
void spec_kind_app_rules(struct spec_app_rules *ret, const struct spec_kind *kind,
			 const char *home);

/* A version of an API that a cluster may serve, and the kind that is made of it. */
struct spec_served {
	const char *source; /* the word of SOURCE that may mean it */
	const char *api_version;
	const char *plural;
	const struct spec_kind *kind; /* NULL: it is known, and refused; then INSTEAD says */
	const char *instead;	      /* what to do, for people; NULL: nothing */
};

/*
 * The I-th row to ask a cluster for that SOURCE ("": any) may mean, in the order of preference; rows that it does not
 * serve are passed over. NULL: there are no more.
 */
const struct spec_served *spec_served_at(const char *source, size_t i);

/* How many words of SOURCE there are that mean kinds which a mount of all kinds shows. */
#define SPEC_MAX_SOURCES 4
/*
 * Find what a mount of all kinds shows of a cluster that serves what LIST says, the reply to "/apis" (an APIGroupList):
 * for each word of SOURCE, in the order of preference, the best row that is served, which may have no kind; NULL: none
 * is. LIST is NULL: it is not known, so the best row of each. 0; -EINVAL: it is no such list.
 */
int spec_served_find(const char *list, size_t len, const struct spec_served *ret[SPEC_MAX_SOURCES]);
/* Is the object of VIEW made by a job of KIND, as a JobSet makes Jobs? Then it is not shown beside that. */
bool spec_kind_makes(const struct spec_kind *kind, const struct spec_job_view *view);
