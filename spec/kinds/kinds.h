/* SPDX-License-Identifier: MIT */
/*
 * The table of kinds. Everything that lists or names kinds is made from it. A kind in C is a folder of its own and a
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

/* Set RET to the kinds of this program; it is to be cleared. */
void spec_kinds_init(struct spec_kinds *ret);
void spec_kinds_clear(struct spec_kinds *kinds);
/*
 * Add the kind of the kind file TEXT, which a user wrote. It replaces the shipped kind of its name, unless a part of
 * that is C. 0, or the errno of E, and KINDS is as it was.
 */
int spec_kinds_add(struct spec_kinds *kinds, const char *text, size_t len, struct spec_errors *e);
/* The kind that was added last. */
const struct spec_kind *spec_kinds_newest(const struct spec_kinds *kinds);
/* The kind of this name; NULL if there is none. */
const struct spec_kind *spec_kind_find(const struct spec_kinds *kinds, const char *name);
/*
 * The I-th kind that a mount of SOURCE may show: "" means all of them; a kind's name means this kind; and a word that
 * kinds share (struct spec_kind, source) means each of these. NULL: there are no more.
 */
const struct spec_kind *spec_kind_meant(const struct spec_kinds *kinds, const char *source,
					size_t i);
/* The first kind that an AppDef may mean by SCHEDULER: its own name, or TorchX's; NULL if there is none. */
const struct spec_kind *spec_kind_of_scheduler(const char *scheduler);
/* The first kind that has the run option NAME; NULL if there is none. */
const struct spec_kind *spec_kind_of_option(const char *name);
/* The first of the N KINDS that an AppDef can become; if there is none, the first. N is not 0. */
const struct spec_kind *spec_kind_default(const struct spec_kind *const *kinds, size_t n);
/* The rules for reading an AppDef that will run as a job of KIND; NULL: as a job of any kind, or on this machine. */
void spec_kind_app_rules(struct spec_app_rules *ret, const struct spec_kind *kind,
			 const char *home);
/* The jobs that a mount of SOURCE may show, for people: "Volcano jobs, AppWrappers or Jobs"; malloc'ed. */
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
/* True if the objects of KIND are PART. */
bool spec_part_is(const struct spec_part *part, const struct spec_kind *kind);
/* True if the object of VIEW is made by a job of KIND, as a JobSet makes Jobs. It is not shown beside that job. */
bool spec_kind_makes(const struct spec_kind *kind, const struct spec_job_view *view);
/*
 * True if VIEW, one of kind OWN, is a watched part of a job of KIND, or of another part of it, so that its pods are
 * that job's.
 */
bool spec_kind_links(const struct spec_kind *kind, const struct spec_kind *own,
		     const struct spec_job_view *view);
