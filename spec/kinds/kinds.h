/* SPDX-License-Identifier: MIT */
/* The table of kinds, from which all lists and names of kinds are derived. */
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

/* The kind files of share/kinds/, in order of preference. The last element is empty. */
extern const struct spec_shipped_kind {
	const char *name, *text;
} spec_shipped_kinds[];

/* Set *RET to the built-in kinds. The caller clears it. */
void spec_kinds_init(struct spec_kinds *ret);
void spec_kinds_clear(struct spec_kinds *kinds);
/*
 * Add the kind that a user's kind file TEXT describes. It replaces a kind with the same name, which
 * must not be written in C. Return 0 and the kind (borrowed). If there are errors, add them to E,
 * return their errno and leave KINDS unchanged.
 */
int spec_kinds_add(struct spec_kinds *kinds, const char *text, size_t len,
		   const struct spec_kind **ret, struct spec_errors *e);
const struct spec_kind *spec_kind_find(const struct spec_kinds *kinds, const char *name);
/*
 * Return the I-th kind that a mount of SOURCE may show; NULL after the last one. SOURCE is "" for
 * all kinds, a kind's name, or a word that several kinds share (spec_kind.source).
 */
const struct spec_kind *spec_kind_meant(const struct spec_kinds *kinds, const char *source,
					size_t i);
/* True if a document with the scheduler SCHEDULER is for KIND. */
bool spec_kind_has_scheduler(const struct spec_kind *kind, const char *scheduler);
/* Return the first kind that makes objects from AppDefs whose scheduler is SCHEDULER, or NULL. */
const struct spec_kind *spec_kind_of_scheduler(const struct spec_kinds *kinds,
					       const char *scheduler);
/* Return the first kind that has the run option NAME, or NULL. */
const struct spec_kind *spec_kind_of_option(const char *name);
/* Return the first of the N KINDS that makes objects from AppDefs, else KINDS[0]. N is not 0. */
const struct spec_kind *spec_kind_default(const struct spec_kind *const *kinds, size_t n);
/*
 * Return the rules for reading an AppDef for KIND. If KIND is NULL, the AppDef may be for any kind
 * or for a local job.
 */
void spec_kind_app_rules(struct spec_app_rules *ret, const struct spec_kind *kind,
			 const char *home);
/* Return a name (static) for the jobs of a mount of SOURCE, as in "Volcano jobs", for messages. */
const char *spec_kinds_text(const struct spec_kinds *kinds, const char *source);

/*
 * Find the kinds that a mount of SOURCE can show. LIST is the server's reply to "/apis" (an
 * APIGroupList), or NULL if unknown. A slot is a group of kinds that users select by the same word
 * in SOURCE.
 *
 * Set one element of RET for each slot, in order of preference. It is the slot's newest kind that
 * the server serves, or NULL if the server serves none of them. If LIST is NULL, it is the slot's
 * newest kind. Return the number of slots, or -EINVAL if LIST is not an APIGroupList.
 */
int spec_kinds_served(const struct spec_kinds *kinds, const char *list, size_t len,
		      const char *source, const struct spec_kind *ret[SPEC_MAX_KINDS]);
/* True if PART and KIND are the same resource. */
bool spec_part_is(const struct spec_part *part, const struct spec_kind *kind);
/*
 * True if a job of KIND has created the object of VIEW, as a JobSet creates Jobs. kxfs then does
 * not show the object as a job.
 */
bool spec_kind_makes(const struct spec_kind *kind, const struct spec_job_view *view);
/*
 * True if the object of VIEW, of kind OWN, is a watched part of a job of KIND, or a part of such a
 * part. Its pods then belong to the job.
 */
bool spec_kind_links(const struct spec_kind *kind, const struct spec_kind *own,
		     const struct spec_job_view *view);
