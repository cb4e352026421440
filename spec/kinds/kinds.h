/* SPDX-License-Identifier: MIT */
/*
 * The table of kinds, from which all lists and names of kinds are derived. A kind that is at least
 * partly written in C has a row in kinds.c.
 */
#pragma once

#include "spec/kindfile/kindfile.h"
#include "spec/view/view.h"

extern const struct spec_kind spec_volcano;
extern const struct spec_kind spec_mcad;
extern const struct spec_kind spec_appwrapper;
extern const struct spec_kind spec_jobset;
extern const struct spec_kind spec_job;
extern const struct spec_reader spec_volcano_reader;
extern const struct spec_reader spec_mcad_reader;
extern const struct spec_reader spec_appwrapper_reader;
extern const struct spec_control spec_volcano_control;

/* The kind files of share/kinds/, in the order of preference. The last element is empty. */
extern const struct spec_shipped_kind {
	const char *name, *text;
} spec_shipped_kinds[];

/* Set *RET to the kinds that are built into this program. The caller clears it. */
void spec_kinds_init(struct spec_kinds *ret);
void spec_kinds_clear(struct spec_kinds *kinds);
/*
 * Add the kind that a user's kind file TEXT describes. The kind replaces a kind with the same name,
 * except one that is at least partly written in C, which is an error. Return 0 and set *RET to the
 * kind (borrowed). If there are errors, add them to E, return their errno and leave KINDS
 * unchanged.
 */
int spec_kinds_add(struct spec_kinds *kinds, const char *text, size_t len,
		   const struct spec_kind **ret, struct spec_errors *e);
/* Return the kind called NAME, or NULL. */
const struct spec_kind *spec_kind_find(const struct spec_kinds *kinds, const char *name);
/*
 * Return the I-th kind that a mount of SOURCE may show; NULL after the last one. SOURCE is "" for
 * all kinds, the name of one kind, or a word that several kinds share (spec_kind.source).
 */
const struct spec_kind *spec_kind_meant(const struct spec_kinds *kinds, const char *source,
					size_t i);
/* True if SCHEDULER, from a document, is a name of KIND. */
bool spec_kind_has_scheduler(const struct spec_kind *kind, const char *scheduler);
/* Return the first kind that makes objects from AppDefs with this scheduler, or NULL. */
const struct spec_kind *spec_kind_of_scheduler(const struct spec_kinds *kinds,
					       const char *scheduler);
/* Return the first kind that has the run option NAME, or NULL. */
const struct spec_kind *spec_kind_of_option(const char *name);
/*
 * Return the first of the N KINDS whose objects can be made from AppDefs. If there is no such kind,
 * return the first of KINDS. N must not be 0.
 */
const struct spec_kind *spec_kind_default(const struct spec_kind *const *kinds, size_t n);
/*
 * Set *RET to the rules for reading an AppDef that will become a job of KIND. If KIND is NULL, the
 * AppDef may become a job of any kind, or a local job.
 */
void spec_kind_app_rules(struct spec_app_rules *ret, const struct spec_kind *kind,
			 const char *home);
/*
 * Return a phrase for the jobs that a mount of SOURCE may show, malloc'ed: "Volcano jobs,
 * AppWrappers or Jobs".
 */
char *spec_kinds_text(const struct spec_kinds *kinds, const char *source);

/*
 * Find the kinds that a mount of SOURCE can show. LIST is the server's reply to "/apis" (an
 * APIGroupList), or NULL if the reply is unknown. Kinds that the same word in SOURCE selects share
 * a slot. RET gets one element for each slot, in the order of preference. It is the newest kind of
 * the slot that the server serves, or NULL if the server serves none. If LIST is NULL, it is the
 * newest kind of the slot. Return the number of slots, or -EINVAL if LIST is not an APIGroupList.
 */
int spec_kinds_served(const struct spec_kinds *kinds, const char *list, size_t len,
		      const char *source, const struct spec_kind *ret[SPEC_MAX_KINDS]);
/* True if PART and KIND are the same resource. */
bool spec_part_is(const struct spec_part *part, const struct spec_kind *kind);
/*
 * True if a job of KIND has created the object of VIEW, as a JobSet creates Jobs. kxfs does not
 * show such an object as a job.
 */
bool spec_kind_makes(const struct spec_kind *kind, const struct spec_job_view *view);
/*
 * True if the object of VIEW, which is of kind OWN, is a watched part of a job of KIND, or a part
 * of such a part. The pods of the object then belong to the job.
 */
bool spec_kind_links(const struct spec_kind *kind, const struct spec_kind *own,
		     const struct spec_job_view *view);
