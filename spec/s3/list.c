/* SPDX-License-Identifier: MIT */
/* ListBucketResult: objects and, one level below a prefix, what their names have in common ("folders"). */
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/utf8.h"
#include "spec/s3/reply.h"
#include "spec/s3/xml.h"

#define ROOT		"ListBucketResult"
#define LISTED_NAME_MAX 255 /* of a file */

struct list_reader {
	const char *prefix, *after;
	struct spec_s3_list *list;
	size_t room;
	bool root, escaped;
	/* Of the object that is being read: */
	char *key;
	uint64_t size;
};

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c | 0x20) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* As servers escape in lists: %XX, and a plus for a blank. Never longer than before. False: a NUL is in it. */
static bool unescape(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		int high = *p == '%' ? hex_digit(p[1]) : -1;
		int low = high >= 0 ? hex_digit(p[2]) : -1;

		if (low >= 0) {
			*to = (char)(high << 4 | low);
			p += 2;
		} else {
			*to = *p == '+' ? ' ' : *p;
		}
		if (*to++ == '\0')
			return false;
	}
	*to = '\0';
	return true;
}

/* Can NAME be one of ours, of a folder with its slash? */
static bool name_ok(const char *name, bool folder)
{
	size_t len = strcspn(name, "/");

	return len > 0 && len <= LISTED_NAME_MAX && (len > 2 || strncmp(name, "..", len) != 0) &&
	       streq(name + len, folder ? "/" : "") && spec_utf8_is_clean(name, "");
}

/* KEY, which is consumed, is listed, as an object or as a FOLDER. */
static void take_key(struct list_reader *r, char *key, uint64_t size, bool folder)
{
	struct spec_s3_list *l = r->list;
	cleanup_free char *owned = key;
	const char *name = key ? key + strlen(r->prefix) : NULL;

	if (!key || (r->escaped && !unescape(key)) ||
	    strncmp(key, r->prefix, strlen(r->prefix)) != 0 || !*name)
		return;
	if (!l->last || strcmp(name, l->last) > 0)
		text_set(&l->last, "%s", name);
	if (!name_ok(name, folder) || (r->after && strcmp(name, r->after) <= 0))
		return;
	if (l->n == r->room) {
		r->room = max_of(2 * r->room, (size_t)64);
		l->v = mem_grow(l->v, r->room, sizeof(*l->v));
	}
	l->v[l->n++] = (struct spec_s3_listed){text_copy(name), size};
}

static void on_element(void *data, const char *path, const char *value)
{
	struct list_reader *r = data;

	if (streq(path, ROOT "/EncodingType")) {
		r->escaped = streq(value, "url");
	} else if (streq(path, ROOT "/IsTruncated")) {
		r->list->more = streq(value, "true");
	} else if (streq(path, ROOT "/Contents/Key")) {
		text_set(&r->key, "%s", value);
	} else if (streq(path, ROOT "/Contents/Size")) {
		r->size = strtoull(value, NULL, 10);
	} else if (streq(path, ROOT "/Contents")) {
		take_key(r, take_ptr(r->key), r->size, false);
		r->size = 0;
	} else if (streq(path, ROOT "/CommonPrefixes/Prefix")) {
		take_key(r, text_copy(value), 0, true);
	} else if (streq(path, ROOT)) {
		r->root = true;
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct spec_s3_listed *)a)->name,
		      ((const struct spec_s3_listed *)b)->name);
}

void spec_s3_list_clear(struct spec_s3_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].name);
	free(l->v);
	free(l->last);
	*l = (struct spec_s3_list){0};
}

/*
 * The keys of a list are escaped if it says so, and it says so where it wants: so what the whole of it is about is
 * read first.
 */
static void on_first(void *data, const char *path, const char *value)
{
	if (streq(path, ROOT "/EncodingType"))
		on_element(data, path, value);
}

int spec_s3_list_parse(const char *text, size_t len, const char *prefix, const char *after,
		       struct spec_s3_list *ret)
{
	struct list_reader r = {.prefix = prefix, .after = after, .list = ret};
	size_t n = 0;
	int err;

	*ret = (struct spec_s3_list){0};
	err = xml_read(text, len, on_first, &r);
	if (!err)
		err = xml_read(text, len, on_element, &r);
	free(r.key);
	if (err || !r.root)
		return -EINVAL;
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	for (size_t i = 0; i < ret->n; i++) {
		bool again = n > 0 && streq(ret->v[n - 1].name, ret->v[i].name);

		if (!again && n < SPEC_MAX_S3_LISTED) {
			ret->v[n++] = ret->v[i];
			continue;
		}
		if (!again) { /* there is more than was asked for */
			ret->more = true;
			text_set(&ret->last, "%s", ret->v[n - 1].name);
		}
		free(ret->v[i].name);
	}
	ret->n = n;
	/* Who goes on from there must come further. */
	if (ret->more && (!ret->last || (after && strcmp(ret->last, after) <= 0)))
		return -EINVAL;
	return 0;
}
