/* SPDX-License-Identifier: MIT */
/*
 * Names: TorchX's normalisation and random suffix, DNS labels, label values, file names.
 * Randomness is a parameter (spec/ has none of its own).
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_SUFFIX_MAX 15 /* 14 characters and NUL */

/*
 * Write the suffix that TorchX's make_unique makes of the random number V: one of 20 letters, then
 * any of 29 characters; "" for 0.
 */
void spec_name_suffix(uint64_t v, char ret[SPEC_SUFFIX_MAX]);

/*
 * True if TEXT looks like a suffix of spec_name_suffix: it has 12 to 14 characters, as for nearly
 * all 64-bit numbers.
 */
bool spec_name_is_suffix(const char *text);

/*
 * Return a name for a job of APP, malloc'ed: APP's normal form (spec_name_norm), a dash and the
 * suffix of V. There is no dash if one of the two is empty.
 */
char *spec_name_job(const char *app, uint64_t v);

/* Write a random (version 4) UUID of 16 random bytes. */
void spec_name_uuid(const unsigned char random[16], char ret[37]);

/*
 * Normalise NAME as TorchX's normalize_str does, except its bug (BUG-9 in docs/deviations.md):
 * lower case, only [a-z0-9-], all dashes stripped at both ends. The result may be empty; malloc'ed.
 */
char *spec_name_norm(const char *name);

/* True if NAME is a DNS-1123 label: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 characters. */
bool spec_name_is_label(const char *name);

/*
 * True if NAME is valid as the name of an object: labels joined by dots (a DNS-1123 subdomain), at
 * most 253 characters.
 */
bool spec_name_is_object(const char *name);

/*
 * True if NAME is valid as a file name: not empty, at most 255 bytes, valid UTF-8, no '/', no
 * control character, no leading '.'.
 */
bool spec_name_is_file(const char *name);

/*
 * Return the directory of replica K of a role: ROLE-K. ROLE is the name as written if it is
 * [A-Za-z0-9._-]+ without a leading '.' or '-', else its normal form, or "role" if that is empty.
 * malloc'ed.
 */
char *spec_name_replica_dir(const char *role, unsigned k);

/*
 * True if JOB_ID, the variable TORCHX_JOB_ID of an AppDef, is a handle of TorchX's scheduler kxfs
 * (contrib/torchx), which kxfs keeps. Other values lack the namespace, or are not handles.
 */
bool spec_name_is_handle(const char *job_id);

/* True if kxfs submits a file of this name in submit/: *.yaml, *.yml, *.json, no leading dot. */
bool spec_name_submits(const char *name);

/*
 * Values of Kubernetes labels are empty, or have at most 63 characters of [A-Za-z0-9._-], beginning
 * and ending with a letter or a digit. The functions below convert any text that a user wrote into
 * a valid value.
 */

/*
 * kxfs gives this label to a job and its pods. The value names the user who submitted the job
 * (spec_label_user).
 */
#define SPEC_LABEL_USER "kxfs/user"

bool spec_label_is_valid(const char *value);

/*
 * Return VALUE as a label value, malloc'ed: replace each other character by ".", remove all but
 * letters and digits at both ends, and cut the rest to 63 characters. A valid value is unchanged.
 */
char *spec_label_clean(const char *value);

/*
 * Return the user name in SUBMITTER (user@host) as a label value, the same on every host;
 * malloc'ed. If the name is not a valid value, return its valid part and a hash of the whole name,
 * so that different users have different labels.
 */
char *spec_label_user(const char *submitter);
