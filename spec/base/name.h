/* SPDX-License-Identifier: MIT */
/*
 * Makes and checks names: TorchX's normal form and random suffix, DNS labels, label values and file
 * names. The caller provides the random numbers.
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_SUFFIX_MAX 15 /* with the NUL */

/* Write the suffix that TorchX's make_unique makes from the random number V; "" if V is 0. */
void spec_name_suffix(uint64_t v, char ret[SPEC_SUFFIX_MAX]);

/*
 * True if TEXT can be a suffix of 12 to 14 characters. Nearly all suffixes of random 64-bit numbers
 * have this length.
 */
bool spec_name_is_suffix(const char *text);

/*
 * Return the name of a job, malloc'ed: the normal form of APP, a dash, and the suffix made from V.
 * If one of the two parts is empty, omit the dash.
 */
char *spec_name_job(const char *app, uint64_t v);

/* Write a version 4 UUID made from 16 RANDOM bytes. */
void spec_name_uuid(const unsigned char random[16], char ret[37]);

/*
 * Return the normal form of NAME, malloc'ed: lower case, only [a-z0-9-], without a dash at either
 * end. It may be empty. This is TorchX's normalize_str without BUG-9 of docs/deviations.md.
 */
char *spec_name_norm(const char *name);

/* True if NAME is a DNS-1123 label. */
bool spec_name_is_label(const char *name);

/* True if NAME is a DNS-1123 subdomain, as names of Kubernetes objects are. */
bool spec_name_is_object(const char *name);

/*
 * True if NAME is a safe file name: 1 to 255 bytes of UTF-8 without '/', control characters or a
 * leading '.'.
 */
bool spec_name_is_file(const char *name);

/*
 * Return "ROLE-K", malloc'ed. If ROLE can't begin a file name, use the normal form of ROLE instead;
 * if this is empty, use "role".
 */
char *spec_name_replica_dir(const char *role, unsigned k);

/*
 * True if JOB_ID is a job handle of TorchX's scheduler "kxfs" (contrib/torchx). kxfs keeps the
 * variable TORCHX_JOB_ID of an AppDef only if its value is such a handle.
 */
bool spec_name_is_handle(const char *job_id);

/*
 * True if kxfs submits a file with this name after a user has written it in submit/: *.yaml, *.yml
 * or *.json, without a leading dot.
 */
bool spec_name_submits(const char *name);

/*
 * --- label values ---
 *
 * The value of a label is empty, or consists of at most 63 characters of [A-Za-z0-9._-]. It begins
 * and ends with a letter or digit.
 */

/* A job and its pods have this label. spec_label_user returns its value. */
#define SPEC_LABEL_USER "kxfs/user"

bool spec_label_is_valid(const char *value);

/*
 * Return VALUE as a valid label value, malloc'ed. Replace each invalid character by ".". Then strip
 * all characters except letters and digits from both ends, and keep at most 63 characters.
 */
char *spec_label_clean(const char *value);

/*
 * Return the user name in SUBMITTER (user@host) as a label value, malloc'ed. If the name is not a
 * valid value, clean it and append a hash, so that different users have different values.
 */
char *spec_label_user(const char *submitter);
