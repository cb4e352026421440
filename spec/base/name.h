/* SPDX-License-Identifier: MIT */
/*
 * Names: TorchX's normalisation and random suffix, DNS labels, label values, file names.
 * Randomness is a parameter (spec/ has none of its own).
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_SUFFIX_MAX 15 /* 14 characters and NUL */

/* TorchX's make_unique suffix of V: 20 letters for the first character, 29 after; "" for 0. */
void spec_name_suffix(uint64_t v, char ret[SPEC_SUFFIX_MAX]);

/* Does TEXT look like such a suffix, as nearly all of 64 random bits make it: 12 to 14 characters? */
bool spec_name_is_suffix(const char *text);

/* The name of a job of APP: its normal form and the suffix of V ("" parts leave no dash). malloc'ed. */
char *spec_name_job(const char *app, uint64_t v);

/* A random (version 4) UUID of 16 random bytes. */
void spec_name_uuid(const unsigned char random[16], char ret[37]);

/*
 * TorchX's normalize_str, with BUG-9 mended: lower case, only [a-z0-9-], all dashes stripped at
 * both ends. malloc'ed. May be empty.
 */
char *spec_name_norm(const char *name);

/* Is NAME a DNS-1123 label: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 characters? */
bool spec_name_is_label(const char *name);

/* Can NAME be that of an object: labels joined by dots (a DNS-1123 subdomain), at most 253 characters? */
bool spec_name_is_object(const char *name);

/*
 * Can NAME be shown as a file name: not empty, at most 255 bytes, valid UTF-8, no '/', no control character, no leading
 * '.'?
 */
bool spec_name_is_file(const char *name);

/*
 * The directory of replica K of a role: ROLE-K, where ROLE is the name as written if it is
 * [A-Za-z0-9._-]+ without a leading '.' or '-', else its normal form, else (nothing is left of it)
 * "role". malloc'ed.
 */
char *spec_name_replica_dir(const char *role, unsigned k);

/*
 * Is JOB_ID, the TORCHX_JOB_ID of an AppDef, the handle of TorchX's scheduler kxfs (contrib/torchx)? Then it stays; any
 * other one lacks the namespace, or names nothing.
 */
bool spec_name_is_handle(const char *job_id);

/* Does a file of this name in submit/ submit: *.yaml, *.yml, *.json, no leading dot? */
bool spec_name_submits(const char *name);
