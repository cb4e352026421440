/* SPDX-License-Identifier: MIT */
/* Makes names as TorchX does, and checks names from outside. */
#include "spec/base/name.h"

#include <strings.h>

#include "spec/base/encode.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/utf8.h"

/*
 * The digits of a suffix. TorchX leaves out the vowels, y and 8, so that a suffix does not look
 * like a word. The letters come first, because a suffix must begin with a letter.
 */
static const char suffix_alphabet[] = "bcdfghjklmnpqrstvwxz012345679";

#define MAX_OBJECT_NAME 253

#define SUFFIX_LETTERS 20
#define SUFFIX_ALL     29
/* only 1 in 2000 suffixes is shorter than this */
#define SUFFIX_USUAL 12

void spec_name_suffix(uint64_t v, char ret[SPEC_SUFFIX_MAX])
{
	size_t n = 0;

	while (v > 0) {
		unsigned base = n == 0 ? SUFFIX_LETTERS : SUFFIX_ALL;

		ret[n++] = suffix_alphabet[v % base];
		v /= base;
	}
	ret[n] = '\0';
}

bool spec_name_is_suffix(const char *text)
{
	size_t n = strlen(text);

	return n >= SUFFIX_USUAL && n < SPEC_SUFFIX_MAX &&
	       memchr(suffix_alphabet, *text, SUFFIX_LETTERS) && strspn(text, suffix_alphabet) == n;
}

static bool is_lower_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

char *spec_name_norm(const char *name)
{
	char *ret = new0_n(char, strlen(name) + 1);
	size_t n = 0;

	while (*name) {
		char c = *name;

		/* Outside ASCII, only U+0130 and U+212A have a lower-case form in ASCII. */
		if (strncmp(name, "\xc4\xb0", 2) == 0) {
			name += 2;
			c = 'i';
		} else if (strncmp(name, "\xe2\x84\xaa", 3) == 0) {
			name += 3;
			c = 'k';
		} else {
			name++;
			if (c >= 'A' && c <= 'Z')
				c = (char)(c - 'A' + 'a');
		}
		if (is_lower_or_digit(c) || (c == '-' && n > 0))
			ret[n++] = c;
	}
	while (n > 0 && ret[n - 1] == '-')
		n--;
	ret[n] = '\0';
	return ret;
}

char *spec_name_job(const char *app, uint64_t v)
{
	cleanup_free char *norm = spec_name_norm(app);
	char suffix[SPEC_SUFFIX_MAX];

	spec_name_suffix(v, suffix);
	return text_print("%s%s%s", norm, *norm && *suffix ? "-" : "", suffix);
}

void spec_name_uuid(const unsigned char random[16], char ret[37])
{
	size_t n = 0;

	for (size_t i = 0; i < 16; i++) {
		unsigned b = random[i];

		if (i == 6)
			b = (b & 0x0f) | 0x40;
		if (i == 8)
			b = (b & 0x3f) | 0x80;
		n += (size_t)snprintf(ret + n, 37 - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b);
	}
}

/* True if the N bytes at NAME form a DNS label. Does not check the maximum length. */
static bool is_label(const char *name, size_t n)
{
	if (n == 0 || name[0] == '-' || name[n - 1] == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_lower_or_digit(name[i]) && name[i] != '-')
			return false;
	return true;
}

bool spec_name_is_label(const char *name)
{
	return strlen(name) <= SPEC_MAX_NAME && is_label(name, strlen(name));
}

bool spec_name_is_object(const char *name)
{
	size_t n = strlen(name) <= MAX_OBJECT_NAME ? strcspn(name, ".") : 0;

	while (is_label(name, n)) {
		if (name[n] == '\0')
			return true;
		name += n + 1;
		n = strcspn(name, ".");
	}
	return false;
}

bool spec_name_is_file(const char *name)
{
	return *name && *name != '.' && strlen(name) <= 255 && !strchr(name, '/') &&
	       spec_utf8_is_clean(name, "");
}

/* True if ROLE can be the beginning of a file name. */
static bool is_plain(const char *role)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

	return *role && *role != '.' && *role != '-' && role[strspn(role, allowed)] == '\0';
}

char *spec_name_replica_dir(const char *role, unsigned k)
{
	cleanup_free char *norm = spec_name_norm(role);

	if (!is_plain(role))
		role = *norm ? norm : "role";
	return text_print("%s-%u", role, k);
}

bool spec_name_is_handle(const char *job_id)
{
	static const char scheme[] = "kxfs://";

	return strncmp(job_id, scheme, strlen(scheme)) == 0;
}

bool spec_name_submits(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && name[0] != '.' &&
	       (!strcasecmp(dot, ".yaml") || !strcasecmp(dot, ".yml") || !strcasecmp(dot, ".json"));
}

/* --- values of labels, in ASCII in any locale --- */

#define HASH_LEN 16 /* hexadecimal digits */

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
		/* Skip continuation bytes: a multibyte character becomes one ".". */
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
	/* A user name may contain an @, as in a directory service; a host name can't. */
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
