/* SPDX-License-Identifier: MIT */
/* Escapes text for the query or the path of a URL. */
#pragma once

#include "spec/base/base.h"

/* Return TEXT with all but letters, digits and "-._~" percent-encoded. malloc'ed. */
char *spec_url_escape(const char *text);
