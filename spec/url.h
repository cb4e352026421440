/* SPDX-License-Identifier: MIT */
/*
 * Text in the query or the path of a URL.
 */
#ifndef KXFS_SPEC_URL_H
#define KXFS_SPEC_URL_H

#include "spec/base.h"

/* TEXT with all but letters, digits and "-._~" percent-encoded. malloc'ed; NULL: no memory. */
char *spec_url_escape(const char *text);

#endif
