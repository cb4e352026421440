/* SPDX-License-Identifier: MIT */
/*
 * Names: TorchX's normalisation and random suffix, DNS labels, label values, file names.
 * Randomness is a parameter (spec/ has none of its own).
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_SUFFIX_MAX 15 /* 14 characters and NUL */

/*
 * Write TorchX's make_unique suffix of V: 20 letters for the first character, 29 after; "" for 0.
 */
void spec_name_suffix(uint64_t v, char ret[SPEC_SUFFIX_MAX]);

/*
 * True if TEXT looks like such a suffix, as nearly all 64-bit numbers yield: 12 to 14 characters.
 */
bool spec_name_is_suffix(const char *text);

/*
 * Return the name of a job of APP: its normal form and the suffix of V ("" parts leave no dash).
 * malloc'ed.
 */
char *spec_name_job(const char *app, uint64_t v);

/* Write a random (version 4) UUID of 16 random bytes. */
void spec_name_uuid(const unsigned char random[16], char ret[37]);

/*
 * Normalise NAME as TorchX's normalize_str does, without its BUG-9: lower case, only [a-z0-9-], all
 * dashes stripped at both ends. malloc'ed. May be empty.
 */
char *spec_name_norm(const char *name);

/* True if NAME is a DNS-1123 label: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 characters. */
bool spec_name_is_label(const char *name);

/*
 * True if NAME can be that of an object: labels joined by dots (a DNS-1123 subdomain), at most 253
 * characters.
 */
bool spec_name_is_object(const char *name);

/*
 * True if NAME can be a file name: not empty, at most 255 bytes, valid UTF-8, no '/', no control
 * character, no leading '.'.
 */
bool spec_name_is_file(const char *name);

/*
 * Return the directory of replica K of a role: ROLE-K. ROLE is the name as written if it is
 * [A-Za-z0-9._-]+ without a leading '.' or '-', else its normal form, or "role" if that is empty.
 * malloc'ed.
 */
char *spec_name_replica_dir(const char *role, unsigned k);

/*
 * True if JOB_ID, the TORCHX_JOB_ID of an AppDef, is a handle of TorchX's scheduler kxfs
 * (contrib/torchx). Such a handle is kept. Others lack the namespace, or are not handles.
 */
bool spec_name_is_handle(const char *job_id);

/* True if a file of this name in submit/ is submitted: *.yaml, *.yml, *.json, no leading dot. */
bool spec_name_submits(const char *name);

/*
 * Values of Kubernetes labels: at most 63 of [A-Za-z0-9._-], beginning and ending with a letter or
 * a digit, or empty. Names as users write them are cleaned, so that they always fit.
 */

/*
 * The label of a job and its pods with the user who submitted it through kxfs; its value is
 * spec_label_user().
 */
#define SPEC_LABEL_USER "kxfs/user"

bool spec_label_is_valid(const char *value);

/*
 * Return VALUE as a label value: each other character becomes "."; then all but letters and digits
 * is dropped at the ends, and the rest is cut to 63. A valid value is unchanged. malloc'ed.
 */
char *spec_label_clean(const char *value);

/*
 * Return the user of SUBMITTER (user@host) as a label value, the same on every host: the name if it
 * is a valid value; else its valid part and a hash of the whole, so that different users have
 * different labels. malloc'ed.
 */
char *spec_label_user(const char *submitter);
