/* SPDX-License-Identifier: MIT */
/* Each answer is read by the names of its elements; elements that nobody asks for are passed over. */
#include "spec/api/s3.h"

#include <errno.h>

#include "spec/api/xml.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/base/utf8.h"

#define WORDS_MAX 1000 /* of what a server says, for people */

/* --- lists --- */

/* The list that is being read; the name of its last item may be NULL still. */
struct listing {
	struct spec_s3_list *list;
	char *name;
	uint64_t size;
	bool is_list;
};

static void on_list(void *data, const char *path, const char *value)
{
	struct listing *l = data;
	struct spec_s3_list *list = l->list;

	if (streq(path, "/ListBucketResult/Contents/Key") ||
	    streq(path, "/ListBucketResult/CommonPrefixes/Prefix"))
		text_set(&l->name, "%s", value);
	else if (streq(path, "/ListBucketResult/Contents/Size"))
		l->size = strtoull(value, NULL, 10);
	else if (streq(path, "/ListBucketResult/IsTruncated"))
		list->more = streq(value, "true");
	else if (streq(path, "/ListBucketResult"))
		l->is_list = true;
	if (!l->name || (!streq(path, "/ListBucketResult/Contents") &&
			 !streq(path, "/ListBucketResult/CommonPrefixes")))
		return;
	list->objects = mem_more(list->objects, list->n, sizeof(*list->objects));
	list->objects[list->n++] = (struct spec_s3_object){take_ptr(l->name), l->size};
	l->size = 0;
}

static int compare(const void *a, const void *b)
{
	const struct spec_s3_object *x = a, *y = b;

	return strcmp(x->name, y->name);
}

bool spec_s3_list_parse(const char *text, size_t len, struct spec_s3_list *ret)
{
	struct listing l = {.list = ret};
	bool fine;

	*ret = (struct spec_s3_list){0};
	fine = spec_xml_read(text, len, on_list, &l) && l.is_list;
	free(l.name);
	if (ret->n)
		qsort(ret->objects, ret->n, sizeof(*ret->objects), compare);
	return fine;
}

void spec_s3_list_clear(struct spec_s3_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->objects[i].name);
	free(list->objects);
	*list = (struct spec_s3_list){0};
}

/* --- errors --- */

static void set_words(char **field, const char *value)
{
	cleanup_free char *head = mem_copy(value, strnlen(value, WORDS_MAX));

	free(*field);
	*field = spec_utf8_clean_copy(head, "");
}

/* Does PATH end with the element NAME? */
static bool is_at(const char *path, const char *name)
{
	size_t n = strlen(path), m = strlen(name);

	return n > m && path[n - m - 1] == '/' && streq(path + n - m, name);
}

static void on_error(void *data, const char *path, const char *value)
{
	struct spec_s3_error *e = data;

	if (is_at(path, "Error/Code"))
		set_words(&e->code, value);
	else if (is_at(path, "Error/Message"))
		set_words(&e->message, value);
	else if (is_at(path, "Error/Region"))
		set_words(&e->region, value);
}

void spec_s3_error_parse(const char *text, size_t len, struct spec_s3_error *ret)
{
	*ret = (struct spec_s3_error){text_copy(""), text_copy(""), text_copy("")};
	if (spec_xml_read(text, len, on_error, ret))
		return;
	spec_s3_error_clear(ret);
	*ret = (struct spec_s3_error){text_copy(""), text_copy(""), text_copy("")};
}

void spec_s3_error_clear(struct spec_s3_error *error)
{
	free(error->code);
	free(error->message);
	free(error->region);
	*error = (struct spec_s3_error){0};
}

/* --- keys --- */

static bool is_key(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

void spec_s3_keys_clear(struct spec_s3_keys *keys)
{
	text_wipe(&keys->id);
	text_wipe(&keys->secret);
	text_wipe(&keys->session);
	keys->expires = 0;
}

bool spec_s3_keys_set(struct spec_s3_keys *keys, const char *id, const char *secret,
		      const char *session)
{
	if (!session)
		session = "";
	*keys = (struct spec_s3_keys){0};
	if (!id || !*id || !is_key(id) || !secret || !*secret || !is_key(secret) ||
	    !is_key(session))
		return false;
	*keys = (struct spec_s3_keys){text_copy(id), text_copy(secret), text_copy(session), 0};
	return true;
}

/* What was read so far; NULL: it was not there. */
struct found {
	char *id, *secret, *session;
	int64_t expires;
};

static void found_clear(struct found *f)
{
	text_wipe(&f->id);
	text_wipe(&f->secret);
	text_wipe(&f->session);
}

static void found_set(char **field, const char *value, size_t len)
{
	text_wipe(field);
	*field = mem_copy(value, len);
}

static void on_reply(void *data, const char *path, const char *value)
{
	struct found *f = data;

	if (is_at(path, "Credentials/AccessKeyId"))
		found_set(&f->id, value, strlen(value));
	else if (is_at(path, "Credentials/SecretAccessKey"))
		found_set(&f->secret, value, strlen(value));
	else if (is_at(path, "Credentials/SessionToken"))
		found_set(&f->session, value, strlen(value));
	else if (is_at(path, "Credentials/Expiration"))
		(void)spec_time_parse(value, strlen(value), &f->expires);
}

bool spec_s3_keys_reply(const char *text, size_t len, struct spec_s3_keys *ret)
{
	struct found f cleanup(found_clear) = {0};

	*ret = (struct spec_s3_keys){0};
	if (!spec_xml_read(text, len, on_reply, &f) ||
	    !spec_s3_keys_set(ret, f.id, f.secret, f.session))
		return false;
	ret->expires = f.expires;
	return true;
}

static void trim(const char **p, size_t *n)
{
	for (; *n && strchr(" \t\r", **p); ++*p)
		--*n;
	while (*n && strchr(" \t\r", (*p)[*n - 1]))
		--*n;
}

static bool is_word(const char *p, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(p, word, n) == 0;
}

/* One line of the file, in the profile that is asked for. */
static void read_line(struct found *f, const char *line, size_t n)
{
	const char *eq = memchr(line, '=', n), *value;
	size_t key, len;

	if (!eq || *line == '#' || *line == ';')
		return;
	key = (size_t)(eq - line);
	value = eq + 1;
	len = n - key - 1;
	trim(&line, &key);
	trim(&value, &len);
	if (is_word(line, key, "aws_access_key_id"))
		found_set(&f->id, value, len);
	else if (is_word(line, key, "aws_secret_access_key"))
		found_set(&f->secret, value, len);
	else if (is_word(line, key, "aws_session_token"))
		found_set(&f->session, value, len);
}

int spec_s3_keys_file(const char *text, size_t len, const char *profile, struct spec_s3_keys *ret)
{
	struct found f cleanup(found_clear) = {0};
	const char *end = text + len;
	bool inside = false, there = false;

	*ret = (struct spec_s3_keys){0};
	while (text < end) {
		const char *line = text, *next = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((next ? next : end) - text);

		text += n + 1;
		trim(&line, &n);
		if (n && *line == '[') {
			const char *name = line + 1;
			size_t m = n - 1;

			if (m && name[m - 1] == ']')
				m--;
			trim(&name, &m);
			inside = is_word(name, m, profile);
			there |= inside;
		} else if (n && inside) {
			read_line(&f, line, n);
		}
		if (!next)
			break;
	}
	if (!there)
		return -ENOENT;
	return spec_s3_keys_set(ret, f.id, f.secret, f.session) ? 0 : -EINVAL;
}
