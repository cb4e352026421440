/* SPDX-License-Identifier: MIT */
/* Errors with a text for people. */
#include "fs/cli/refuse.h"

#include "spec/base/mem.h"
#include "spec/base/utf8.h"

int refuse(int err, char **ret_text, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	*ret_text = text_vprint(fmt, ap);
	va_end(ap);
	return err;
}

void refuse_print(int err, const char *text)
{
	cleanup_free char *clean = text ? spec_utf8_clean_copy(text, "\n\t") : NULL;

	fprintf(stderr, "kxfs: %s\n", clean ? clean : strerror(-err));
}
