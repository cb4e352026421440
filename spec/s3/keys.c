/* SPDX-License-Identifier: MIT */
/*
 * The shared credentials file has sections of lines "name = value". As with Amazon's own programs what is not known
 * is passed over, and the last of two equal lines counts.
 */
#include "spec/s3/keys.h"

#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/utf8.h"

#define BLANK " \t\r"

void spec_s3_keys_clear(struct spec_s3_keys *k)
{
	text_wipe(&k->id);
	text_wipe(&k->secret);
	text_wipe(&k->token);
}

void spec_s3_keys_copy(struct spec_s3_keys *to, const struct spec_s3_keys *from)
{
	*to = (struct spec_s3_keys){text_copy(from->id), text_copy(from->secret),
				    text_copy(from->token)};
}

bool spec_s3_keys_same(const struct spec_s3_keys *a, const struct spec_s3_keys *b)
{
	return streq(a->id, b->id) && streq(a->secret, b->secret) && streq(a->token, b->token);
}

static bool key_ok(const char *text)
{
	size_t n = 0;

	while (text[n] > ' ' && text[n] < 0x7f)
		n++;
	return text[n] == '\0' && n <= SPEC_MAX_S3_TEXT;
}

int spec_s3_keys_set(struct spec_s3_keys *ret, const char *id, const char *secret,
		     const char *token, const char *source, char **ret_text)
{
	token = token ? token : "";
	if (!id || !*id || !secret || !*secret) {
		*ret_text = text_print("%s has no whole pair of access key and secret", source);
		return -EINVAL;
	}
	/* curl is told both as one text, which a colon divides. */
	if (!key_ok(id) || strchr(id, ':') || !key_ok(secret) || !key_ok(token)) {
		*ret_text =
			text_print("%s has a key that is none: blanks or control characters in it",
				   source);
		return -EINVAL;
	}
	*ret = (struct spec_s3_keys){text_copy(id), text_copy(secret), text_copy(token)};
	return 0;
}

/* A stretch of text without the blanks around it. */
struct part {
	const char *at;
	size_t n;
};

static struct part part_trim(const char *at, size_t n)
{
	while (n > 0 && strchr(BLANK, *at)) {
		at++;
		n--;
	}
	while (n > 0 && strchr(BLANK, at[n - 1]))
		n--;
	return (struct part){at, n};
}

static bool part_is(struct part p, const char *text)
{
	return p.n == strlen(text) && !memcmp(p.at, text, p.n);
}

/* False: TEXT has no section PROFILE. */
static bool find_profile(const char *text, const char *profile, char *values[3])
{
	static const char *const names[] = {"aws_access_key_id", "aws_secret_access_key",
					    "aws_session_token"};
	bool here = false, found = false;

	for (size_t n; *text; text += n + (text[n] == '\n')) {
		const char *equals;
		struct part line;

		n = strcspn(text, "\n");
		line = part_trim(text, n);
		if (line.n == 0 || *line.at == '#' || *line.at == ';')
			continue;
		if (*line.at == '[') {
			const char *end = memchr(line.at, ']', line.n);

			here = end && part_is(part_trim(line.at + 1, (size_t)(end - line.at - 1)),
					      profile);
			found = found || here;
			continue;
		}
		equals = here ? memchr(line.at, '=', line.n) : NULL;
		for (size_t i = 0; equals && i < array_size(names); i++) {
			struct part value =
				part_trim(equals + 1, line.n - (size_t)(equals + 1 - line.at));

			if (!part_is(part_trim(line.at, (size_t)(equals - line.at)), names[i]))
				continue;
			text_wipe(&values[i]);
			values[i] = mem_copy(value.at, value.n);
		}
	}
	return found;
}

int spec_s3_keys_read(const char *text, const char *file, const char *profile,
		      struct spec_s3_keys *ret, char **ret_text)
{
	cleanup_free char *clean = spec_utf8_clean_copy(profile, "");
	cleanup_free char *source = text_print("profile %s of %s", clean, file);
	char *values[3] = {0};
	int err;

	if (find_profile(text, profile, values)) {
		err = spec_s3_keys_set(ret, values[0], values[1], values[2], source, ret_text);
	} else {
		*ret_text = text_print("%s has no profile %s", file, clean);
		err = -ENOENT;
	}
	for (size_t i = 0; i < array_size(values); i++)
		text_wipe(&values[i]);
	return err;
}
