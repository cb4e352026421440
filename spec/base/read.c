/* SPDX-License-Identifier: MIT */
/* Members of objects from outside. */
#include "spec/base/read.h"

#include "spec/base/mem.h"
#include "spec/base/time.h"

const struct spec_value *spec_read_member(const struct spec_value *o, const char *key)
{
	if (!o || o->type != SPEC_VALUE_MAP)
		return NULL;
	for (const struct spec_value *v = o->items + o->n; v > o->items; v--)
		if (streq(v[-1].key, key))
			return v - 1;
	return NULL;
}

static const struct spec_value *get(const struct spec_value *o, const char *key,
				    enum spec_value_type type)
{
	const struct spec_value *ret = spec_read_member(o, key);

	return ret && ret->type == type ? ret : NULL;
}

const struct spec_value *spec_read_map(const struct spec_value *o, const char *key)
{
	return get(o, key, SPEC_VALUE_MAP);
}

const struct spec_value *spec_read_list(const struct spec_value *o, const char *key)
{
	return get(o, key, SPEC_VALUE_LIST);
}

const char *spec_read_text(const struct spec_value *o, const char *key)
{
	const struct spec_value *ret = get(o, key, SPEC_VALUE_STRING);

	return ret ? ret->text : "";
}

const char *spec_read_word(const struct spec_value *o, const char *key)
{
	const struct spec_value *ret = spec_read_member(o, key);

	return ret && ret->type == SPEC_VALUE_NUMBER ? ret->text : spec_read_text(o, key);
}

int spec_read_int(const struct spec_value *o, const char *key, int none)
{
	const struct spec_value *number = get(o, key, SPEC_VALUE_NUMBER);
	int value = number ? spec_read_digits(number->text) : -1;

	return value >= 0 ? value : none;
}

bool spec_read_flag(const struct spec_value *o, const char *key, bool none)
{
	const struct spec_value *value = get(o, key, SPEC_VALUE_BOOL);

	return value ? *value->text == 't' : none;
}

bool spec_read_bool(const struct spec_value *o, const char *key)
{
	return spec_read_flag(o, key, false);
}

int64_t spec_read_time(const struct spec_value *o, const char *key)
{
	const char *text = spec_read_text(o, key);
	int64_t ns;

	/* Fractions are dropped: where an object has them at all, not all of its times do. */
	if (!*text || spec_time_parse(text, strlen(text), &ns) != strlen(text))
		return 0;
	return ns > 0 && ns < INT64_MAX ? ns - ns % NS_PER_S : 0;
}

const struct spec_value *spec_read_at(const struct spec_value *list, size_t i)
{
	return list && i < list->n ? &list->items[i] : NULL;
}

size_t spec_read_count(const struct spec_value *list)
{
	return list ? list->n : 0;
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
	cleanup_free char *cut = NULL;
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

void spec_read_copy_word(char **field, const struct spec_value *o, const char *key)
{
	spec_read_copy(field, spec_read_text(o, key), READ_MAX_WORD);
}

void spec_read_copy_message(char **field, const struct spec_value *o)
{
	spec_read_copy(field, spec_read_text(o, "message"), READ_MAX_MESSAGE);
}
