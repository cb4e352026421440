/* SPDX-License-Identifier: MIT */
/* Names of buckets and objects, and the URLs that they make. */
#include "spec/s3/place.h"

#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/url.h"
#include "spec/base/utf8.h"

/* Behind all names: who lists what comes after a folder does not want what is in it. */
#define LAST_CHARACTER "\xf4\x8f\xbf\xbf"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGIT "0123456789"

static bool only(const char *text, const char *letters)
{
	return *text && !text[strspn(text, letters)];
}

/* As Amazon has it; other servers allow no more. */
static bool bucket_ok(const char *name)
{
	size_t n = strlen(name);

	return n >= 3 && n <= SPEC_MAX_NAME && only(name, LOWER DIGIT ".-") && *name != '-' &&
	       *name != '.' && name[n - 1] != '-' && name[n - 1] != '.' && !strstr(name, "..");
}

/* Names between slashes, none of them empty, "." or "..". */
static bool prefix_ok(const char *prefix)
{
	const char *at = prefix;

	if (strlen(prefix) > SPEC_MAX_S3_PREFIX || !spec_utf8_is_clean(prefix, ""))
		return false;
	do {
		size_t n = strcspn(at, "/");

		if (*prefix && (n == 0 || (n <= 2 && !strncmp(at, "..", n))))
			return false;
		at += n;
	} while (*at++);
	return true;
}

/* "http://" or "https://", a host, perhaps a path: what curl makes of it is checked by who connects. */
static bool endpoint_ok(const char *url)
{
	const char *host = strstr(url, "://");

	return spec_utf8_is_clean(url, "") && !strpbrk(url, " ?#@") &&
	       (!strncmp(url, "https://", 8) || !strncmp(url, "http://", 7)) && host[3] &&
	       host[3] != '/';
}

static int wrong(char **ret_text, const char *what, const char *value, const char *why)
{
	cleanup_free char *clean = spec_utf8_clean_copy(value, "");

	*ret_text = text_print("%s=%s: %s", what, clean, why);
	return -EINVAL;
}

int spec_s3_place_parse(const char *text, const char *endpoint, const char *region,
			struct spec_s3_place *ret, char **ret_text)
{
	static const char scheme[] = "s3://";
	const char *at = text + strlen(scheme);
	size_t n;

	*ret = (struct spec_s3_place){0};
	if (strncmp(text, scheme, strlen(scheme)) != 0)
		return wrong(ret_text, "archive", text, "not s3://BUCKET/PREFIX");
	n = strcspn(at, "/");
	ret->bucket = mem_copy(at, n);
	at += n + (at[n] == '/');
	ret->prefix = text_copy(at);
	n = strlen(at);
	if (n > 1 && at[n - 1] == '/')
		ret->prefix[n - 1] = '\0';
	if (!bucket_ok(ret->bucket))
		return wrong(ret_text, "archive", text,
			     "the name of a bucket has 3 to 63 of a-z, 0-9, - and .");
	if (!prefix_ok(ret->prefix))
		return wrong(ret_text, "archive", text,
			     "what follows the bucket must be names between single slashes");
	if (*ret->prefix)
		text_set(&ret->prefix, "%s/", ret->prefix);
	if (*endpoint && !endpoint_ok(endpoint))
		return wrong(
			ret_text, "endpoint", endpoint,
			"not a URL with https or http and a host, like https://s3.example.org");
	if (!only(region, LOWER DIGIT "-") || strlen(region) > SPEC_MAX_NAME)
		return wrong(ret_text, "region", region,
			     "not the name of a region, like eu-central-1");
	ret->region = text_copy(region);
	for (n = strlen(endpoint); n > 0 && endpoint[n - 1] == '/';)
		n--;
	if (n)
		ret->url = text_print("%.*s/%s", (int)n, endpoint, ret->bucket);
	else if (strchr(ret->bucket, '.'))
		ret->url = text_print("https://s3.%s.amazonaws.com/%s", region, ret->bucket);
	else
		ret->url = text_print("https://%s.s3.%s.amazonaws.com", ret->bucket, region);
	return 0;
}

void spec_s3_place_clear(struct spec_s3_place *p)
{
	free(p->bucket);
	free(p->prefix);
	free(p->region);
	free(p->url);
	*p = (struct spec_s3_place){0};
}

char *spec_s3_object_path(const char *key)
{
	cleanup_free char *escaped = spec_url_escape(key);
	char *path = new0_n(char, strlen(escaped) + 2), *to = path;

	*to++ = '/';
	for (const char *p = escaped; *p; p++) {
		bool slash = !strncmp(p, "%2F", 3);

		*to++ = slash ? '/' : *p;
		p += slash ? 2 : 0;
	}
	return path;
}

char *spec_s3_list_path(const char *prefix, const char *after)
{
	cleanup_free char *escaped = spec_url_escape(prefix), *behind = NULL, *start = NULL;

	if (after) {
		size_t n = strlen(after);

		start = text_print("%s%s%s", prefix, after,
				   n > 0 && after[n - 1] == '/' ? LAST_CHARACTER : "");
		behind = spec_url_escape(start);
	}
	return text_print(
		"/?delimiter=%%2F&encoding-type=url&list-type=2&max-keys=%u&prefix=%s%s%s",
		SPEC_MAX_S3_LISTED, escaped, behind ? "&start-after=" : "", behind ? behind : "");
}

char *spec_s3_token_form(const char *role, const char *session, const char *token)
{
	cleanup_free char *r = spec_url_escape(role), *s = spec_url_escape(session);
	cleanup(text_wipe) char *t = spec_url_escape(token);

	return text_print("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=%s"
			  "&RoleSessionName=%s&WebIdentityToken=%s",
			  r, s, t);
}
