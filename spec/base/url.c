/* SPDX-License-Identifier: MIT */
/* Percent-encoding (RFC 3986, unreserved characters). */
#include "spec/base/url.h"

#include "spec/base/mem.h"

static bool unreserved(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

char *spec_url_escape(const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	char *ret = new0_n(char, 3 * strlen(text) + 1);
	char *to = ret;

	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (unreserved(*p)) {
			*to++ = (char)*p;
			continue;
		}
		*to++ = '%';
		*to++ = hex[*p >> 4];
		*to++ = hex[*p & 15];
	}
	return ret;
}
