/* SPDX-License-Identifier: MIT */
/*
 * Label values. Character classes are ASCII's own, whatever the locale.
 */
#include "spec/app/label.h"

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/sha256.h"

#define HASH_LEN 16 /* hexadecimal digits, enough to make equal hashes of two users unlikely */

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_label_char(char c)
{
	return is_alnum(c) || c == '.' || c == '_' || c == '-';
}

bool spec_label_is_valid(const char *value)
{
	size_t n = strlen(value);

	for (size_t i = 0; i < n; i++) {
		if (!is_label_char(value[i]))
			return false;
	}
	return n == 0 || (n <= SPEC_MAX_NAME && is_alnum(value[0]) && is_alnum(value[n - 1]));
}

char *spec_label_clean(const char *value)
{
	char *ret = new0_n(char, SPEC_MAX_NAME + 1);
	size_t n = 0;

	for (; *value && n < SPEC_MAX_NAME; value++) {
		/* A character becomes one ".", however many bytes it has. */
		if (((unsigned char)*value & 0xc0) == 0x80)
			continue;
		if (n > 0 || is_alnum(*value))
			ret[n++] = is_label_char(*value) ? *value : '.';
	}
	while (n > 0 && !is_alnum(ret[n - 1]))
		n--;
	ret[n] = '\0';
	return ret;
}

char *spec_label_user(const char *submitter)
{
	/* A directory service may have names like ada@example.org; host names have no @. */
	const char *at = strrchr(submitter, '@');
	cleanup_free char *user =
		mem_copy(submitter, at ? (size_t)(at - submitter) : strlen(submitter));
	cleanup_free char *clean = NULL;
	char digest[65];
	size_t n;

	if (*user && spec_label_is_valid(user))
		return take_ptr(user);
	clean = spec_label_clean(user);
	n = min_of(strlen(clean), (size_t)(SPEC_MAX_NAME - 1 - HASH_LEN));
	spec_sha256(user, strlen(user), digest);
	return text_print("%.*s%s%.*s", (int)n, clean, n ? "-" : "", HASH_LEN, digest);
}
