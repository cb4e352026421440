/* SPDX-License-Identifier: MIT */
/*
 * The table of kinds. Everything that lists or names kinds is made from it. A kind in C is a file of its own and a
 * row in kinds.c.
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
extern const struct spec_control spec_appwrapper_control;

/* The files of share/kinds/, in the order of preference; ends with an empty one. */
extern const struct spec_shipped_kind {
	const char *name, *text;
} spec_shipped_kinds[];

/* Set *RET to the kinds of this program. The caller clears it. */
void spec_kinds_init(struct spec_kinds *ret);
void spec_kinds_clear(struct spec_kinds *kinds);
/*
 * Add the kind of the kind file TEXT, which a user wrote. It replaces the shipped kind of its name,
 * unless a part of that is written in C. Return 0 and *RET, borrowed; or the errno of E, and KINDS
 * is unchanged.
 */
int spec_kinds_add(struct spec_kinds *kinds, const char *text, size_t len,
		   const struct spec_kind **ret, struct spec_errors *e);
/* Return the kind of this name, or NULL. */
const struct spec_kind *spec_kind_find(const struct spec_kinds *kinds, const char *name);
/*
 * Return the I-th kind that a mount of SOURCE may show, or NULL after the last. SOURCE is "" for
 * all kinds, the name of one kind, or a word that several kinds share (source in struct spec_kind).
 */
const struct spec_kind *spec_kind_meant(const struct spec_kinds *kinds, const char *source,
					size_t i);
/*
 * Return the first kind whose name, or whose name in TorchX, is SCHEDULER; NULL if there is none.
 */
const struct spec_kind *spec_kind_of_scheduler(const char *scheduler);
/* Return the first kind that has the run option NAME, or NULL. */
const struct spec_kind *spec_kind_of_option(const char *name);
/*
 * Return the first of the N KINDS that can be made of an AppDef; if there is none, the first. N is
 * not 0.
 */
const struct spec_kind *spec_kind_default(const struct spec_kind *const *kinds, size_t n);
/*
 * Set *RET to the rules for reading an AppDef that will run as a job of KIND; NULL: as a job of any
 * kind, or on this machine.
 */
void spec_kind_app_rules(struct spec_app_rules *ret, const struct spec_kind *kind,
			 const char *home);
/*
 * Return a name for the jobs that a mount of SOURCE may show, for people: "Volcano jobs,
 * AppWrappers or Jobs"; malloc'ed.
 */
char *spec_kinds_text(const struct spec_kinds *kinds, const char *source);

/*
 * Find the kinds that a mount of SOURCE can show. LIST is the server's reply to "/apis" (an
 * APIGroupList), or NULL if it is unknown. Kinds with the same word in SOURCE share a slot. For
 * each slot, in the order of preference, set RET to its newest kind that the server serves, or to
 * NULL if it serves none. Without LIST, take the newest of each slot. Return the number of slots,
 * or -EINVAL if LIST is not an APIGroupList.
 */
int spec_kinds_served(const struct spec_kinds *kinds, const char *list, size_t len,
		      const char *source, const struct spec_kind *ret[SPEC_MAX_KINDS]);
/* True if the objects of PART are those of KIND. */
bool spec_part_is(const struct spec_part *part, const struct spec_kind *kind);
/*
 * True if a job of KIND has made the object of VIEW, as a JobSet makes Jobs. Such an object is not
 * shown as a job of its own.
 */
bool spec_kind_makes(const struct spec_kind *kind, const struct spec_job_view *view);
/*
 * True if VIEW, of kind OWN, is a watched part of a job of KIND, or a part of such a part, so that
 * its pods belong to that job.
 */
bool spec_kind_links(const struct spec_kind *kind, const struct spec_kind *own,
		     const struct spec_job_view *view);
