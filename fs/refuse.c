/* SPDX-License-Identifier: MIT */
/* Errors with words. */
#include "fs/refuse.h"

#include <stdarg.h>

int refuse(int err, char **ret_text, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(ret_text, fmt, ap) < 0)
		*ret_text = NULL;
	va_end(ap);
	return err;
}
