/* SPDX-License-Identifier: MIT */
/*
 * Makes and checks names: TorchX's normal form and random suffix, DNS labels, values of labels,
 * file names. The caller passes random numbers, since spec/ has no source of randomness.
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_SUFFIX_MAX 15 /* 14 characters and NUL */

/*
 * Write the suffix that TorchX's make_unique makes from the random number V. Its first character is
 * one of 20 letters, and each further one is one of 29 letters and digits. The suffix of 0 is "".
 */
void spec_name_suffix(uint64_t v, char ret[SPEC_SUFFIX_MAX]);

/*
 * True if TEXT can be a result of spec_name_suffix and has 12 to 14 characters. Nearly all suffixes
 * of 64-bit numbers have this length.
 */
bool spec_name_is_suffix(const char *text);

/*
 * Return a name for a job of APP, malloc'ed: APP's normal form (spec_name_norm), a dash, and the
 * suffix of V. Omit the dash if the normal form or the suffix is empty.
 */
char *spec_name_job(const char *app, uint64_t v);

/* Write a version 4 UUID made from 16 RANDOM bytes. */
void spec_name_uuid(const unsigned char random[16], char ret[37]);

/*
 * Return the normal form of NAME, malloc'ed: lower case, only [a-z0-9-], with no dash at either
 * end. It may be empty. This is the result of TorchX's normalize_str without its bug (BUG-9 in
 * docs/deviations.md).
 */
char *spec_name_norm(const char *name);

/* True if NAME is a DNS-1123 label: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 characters. */
bool spec_name_is_label(const char *name);

/*
 * True if NAME is a valid name of a Kubernetes object: labels joined by dots (a DNS-1123
 * subdomain), at most 253 characters.
 */
bool spec_name_is_object(const char *name);

/*
 * True if NAME is valid as a file name: not empty, at most 255 bytes, valid UTF-8, no '/', no
 * control character, no leading '.'.
 */
bool spec_name_is_file(const char *name);

/*
 * Return the name of the directory of replica K, "ROLE-K", malloc'ed. Use the role's name unchanged
 * if it is [A-Za-z0-9._-]+ without a leading '.' or '-'. Otherwise use its normal form, or "role"
 * if that is empty.
 */
char *spec_name_replica_dir(const char *role, unsigned k);

/*
 * True if JOB_ID is a handle from TorchX's scheduler kxfs (contrib/torchx). JOB_ID is the value of
 * the variable TORCHX_JOB_ID in an AppDef. kxfs keeps this value only if it is such a handle.
 */
bool spec_name_is_handle(const char *job_id);

/*
 * True if kxfs submits a file with this name when a user writes the file in submit/: *.yaml, *.yml
 * or *.json, without a leading dot.
 */
bool spec_name_submits(const char *name);

/*
 * The value of a Kubernetes label is empty, or has at most 63 characters of [A-Za-z0-9._-] and
 * begins and ends with a letter or a digit. The functions below turn any text into a valid value.
 */

/* kxfs sets this label on a job and its pods, with the value that spec_label_user returns. */
#define SPEC_LABEL_USER "kxfs/user"

bool spec_label_is_valid(const char *value);

/*
 * Turn VALUE into a valid label value, malloc'ed: replace each invalid character by ".", strip all
 * but letters and digits from both ends, and cut the rest to 63 characters. A valid VALUE is
 * returned unchanged.
 */
char *spec_label_clean(const char *value);

/*
 * Return the user name in SUBMITTER (user@host) as a label value, malloc'ed. A user has the same
 * value on every host. If the user name is not a valid label value, the result is the valid part of
 * the name and a hash of the whole name, so that different users have different values.
 */
char *spec_label_user(const char *submitter);
