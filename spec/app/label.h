/* SPDX-License-Identifier: MIT */
/*
 * Values of Kubernetes labels: at most 63 of [A-Za-z0-9._-], beginning and ending with a letter or
 * a digit, or empty. Names as users write them are cleaned, so that they always fit.
 */
#pragma once

#include "spec/base/base.h"

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
