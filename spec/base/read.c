/* SPDX-License-Identifier: MIT */
/*
 * Members of objects from outside.
 */
#include "spec/base/read.h"

#include "spec/base/mem.h"
#include "spec/base/time.h"

static struct json_object *get(struct json_object *o, const char *key, enum json_type type)
{
	struct json_object *ret = NULL;

	if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, key, &ret))
		return NULL;
	return json_object_is_type(ret, type) ? ret : NULL;
}

struct json_object *spec_read_map(struct json_object *o, const char *key)
{
	return get(o, key, json_type_object);
}

struct json_object *spec_read_list(struct json_object *o, const char *key)
{
	return get(o, key, json_type_array);
}

const char *spec_read_text(struct json_object *o, const char *key)
{
	struct json_object *ret = get(o, key, json_type_string);

	return ret ? json_object_get_string(ret) : "";
}

int spec_read_int(struct json_object *o, const char *key, int none)
{
	struct json_object *number = get(o, key, json_type_int);
	int64_t value = number ? json_object_get_int64(number) : -1;

	return value >= 0 && value <= INT32_MAX ? (int)value : none;
}

bool spec_read_bool(struct json_object *o, const char *key)
{
	struct json_object *value = get(o, key, json_type_boolean);

	return value && json_object_get_boolean(value);
}

int64_t spec_read_time(struct json_object *o, const char *key)
{
	const char *text = spec_read_text(o, key);
	int64_t ns;

	/* Fractions are dropped: where an object has them at all, not all of its times do. */
	if (!*text || spec_time_parse(text, strlen(text), &ns) != strlen(text))
		return 0;
	return ns > 0 && ns < INT64_MAX ? ns - ns % 1000000000 : 0;
}

struct json_object *spec_read_at(struct json_object *list, size_t i)
{
	return list ? json_object_array_get_idx(list, i) : NULL;
}

size_t spec_read_count(struct json_object *list)
{
	return list ? json_object_array_length(list) : 0;
}

int spec_read_digits(const char *text)
{
	size_t n = strspn(text, "0123456789");
	unsigned long value;

	if (n == 0 || n > 10 || text[n])
		return -1;
	value = strtoul(text, NULL, 10);
	return value <= INT32_MAX ? (int)value : -1;
}

void spec_read_copy(char **field, const char *text, size_t max)
{
	char *cut cleanup_free = NULL;
	size_t n = strnlen(text, max + 1);

	if (n <= max) {
		spec_set(field, text);
		return;
	}
	for (n = max; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
		n--;
	cut = mem_copy(text, n);
	spec_set(field, cut);
}
