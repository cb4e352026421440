/* SPDX-License-Identifier: MIT */
/* Text in the query or the path of a URL. */
#ifndef KXFS_SPEC_BASE_URL_H
#define KXFS_SPEC_BASE_URL_H

#include "spec/base/base.h"

/* TEXT with all but letters, digits and "-._~" percent-encoded. malloc'ed. */
char *spec_url_escape(const char *text);

#endif
