/* SPDX-License-Identifier: MIT */
/*
 * Reads run options from text and JSON into typed values. Like TorchX, kxfs refuses a value of the
 * wrong type instead of converting it. The only exception: a whole number is valid for a TEXT.
 */
#include "spec/app/run_options.h"

#include <assert.h>
#include <errno.h>

#include "spec/app/hold.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/time.h"
#include "spec/base/tree.h"
#include "spec/base/value.h"

#define MAX_OPTIONS 16 /* largest number of options in a kind's table */

struct run_value {
	bool given;
	bool refused;	/* an error about this value was added */
	char *text;	/* of a TEXT or a NAME */
	int64_t number; /* of an INT, a BOOL or a TIME */
};

struct spec_options {
	const char *whose;
	const struct spec_option *table;
	struct run_value v[MAX_OPTIONS]; /* in the order of the table */
};

const struct spec_option *spec_option_find(const struct spec_option *table, const char *name)
{
	for (const struct spec_option *o = table; o->name; o++) {
		if (streq(o->name, name))
			return o;
	}
	return NULL;
}

struct spec_options *spec_options_new(const char *whose, const struct spec_option *table)
{
	struct spec_options *o = new0(struct spec_options);
	size_t n = 0;

	while (table[n].name)
		n++;
	assert(n <= MAX_OPTIONS);
	o->whose = whose;
	o->table = table;
	return o;
}

static void value_clear(struct run_value *v)
{
	free(v->text);
	*v = (struct run_value){0};
}

void spec_options_free(struct spec_options *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < MAX_OPTIONS; i++)
		value_clear(&o->v[i]);
	free(o);
}

/*
 * Add an error about the unknown option NAME, with suggestions. If IN_FILE is true, the option is
 * in scheduler_args, so also suggest conditions for a launch (hold.h).
 */
static int refuse_unknown(const struct spec_options *o, const char *path, const char *name,
			  bool in_file, struct spec_errors *e)
{
	const char *names[MAX_OPTIONS + SPEC_N_HOLDS + 1] = {NULL};
	cleanup_free char *all = NULL, *hint = NULL;
	size_t n = 0;

	for (; o->table[n].name; n++) {
		names[n] = o->table[n].name;
		if (!o->table[n].refusal)
			text_set(&all, "%s%s%s", all ? all : "; its run options are ",
				 all ? ", " : "", names[n]);
	}
	for (size_t i = 0; in_file && i < SPEC_N_HOLDS; i++) {
		names[n++] = spec_hold_name(i);
		text_set(&all, "%s, %s", all, spec_hold_name(i));
	}
	hint = spec_suggestion(name, names, all);
	return spec_errors_add(e, -EINVAL, 0, 0, path, "%s has no such run option%s", o->whose,
			       hint);
}

static int set_number(struct run_value *v, const struct spec_option *option, int64_t number,
		      const char *path, struct spec_errors *e)
{
	if (option->type == SPEC_OPTION_INT && (number < option->min || number > option->max))
		return spec_errors_add(e, -EINVAL, 0, 0, path, "must be between %lld and %lld",
				       (long long)option->min, (long long)option->max);
	value_clear(v);
	*v = (struct run_value){.given = true, .number = number};
	return 0;
}

static int set_time(struct run_value *v, const struct spec_option *option, const char *text,
		    const char *path, struct spec_errors *e)
{
	char min[24], max[24];
	int64_t seconds;

	if (!spec_time_span_parse(text, &seconds) || !strpbrk(text, "smhd"))
		return spec_errors_add(
			e, -EINVAL, 0, 0, path,
			"must be a time with its unit, like 90s, 30m, 4h or 2d, not \"%s\"", text);
	spec_time_span_text(option->min, min);
	spec_time_span_text(option->max, max);
	if (seconds < option->min || seconds > option->max)
		return spec_errors_add(e, -EINVAL, 0, 0, path, "must be between %s and %s", min,
				       max);
	value_clear(v);
	*v = (struct run_value){.given = true, .number = seconds};
	return 0;
}

/* Parse the decimal number TEXT. If it is out of range, set *RET to INT64_MIN or INT64_MAX. */
static bool parse_int(const char *text, int64_t *ret)
{
	const char *digits = text + (*text == '-' || *text == '+');
	size_t n = strspn(digits, "0123456789");

	if (n == 0 || digits[n] != '\0' || (n > 1 && digits[0] == '0'))
		return false;
	*ret = strtoll(text, NULL, 10);
	return true;
}

static bool parse_bool(const char *text, int64_t *ret)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};

	for (size_t i = 0; i < array_size(words); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*ret = (int64_t)(i % 2);
			return true;
		}
	}
	return false;
}

static int set_from_text(struct run_value *v, const struct spec_option *option, const char *text,
			 const char *path, struct spec_errors *e)
{
	int64_t number;

	if (option->refusal)
		return spec_errors_add(e, -EINVAL, 0, 0, path, "%s", option->refusal);
	switch (option->type) {
	case SPEC_OPTION_INT:
		if (!parse_int(text, &number))
			return spec_errors_add(e, -EINVAL, 0, 0, path,
					       "must be a whole number, not \"%s\"", text);
		return set_number(v, option, number, path, e);
	case SPEC_OPTION_BOOL:
		if (!parse_bool(text, &number))
			return spec_errors_add(e, -EINVAL, 0, 0, path,
					       "must be true or false, not \"%s\"", text);
		return set_number(v, option, number, path, e);
	case SPEC_OPTION_TIME:
		return set_time(v, option, text, path, e);
	case SPEC_OPTION_TEXT:
	case SPEC_OPTION_NAME:
		break;
	}
	if (option->type == SPEC_OPTION_NAME && *text && !spec_name_is_object(text))
		return spec_errors_add(
			e, -EINVAL, 0, 0, path,
			"\"%s\" is not a valid Kubernetes name: use lower-case letters, "
			"digits, dots and dashes; begin and end with a letter or digit",
			text);
	value_clear(v);
	*v = (struct run_value){.given = true, .text = text_copy(text)};
	return 0;
}

int spec_options_set(struct spec_options *o, const char *name, const char *value,
		     struct spec_errors *e)
{
	const struct spec_option *option = spec_option_find(o->table, name);
	cleanup_free char *path = text_print("-o %s", name);
	struct run_value *v;
	int ret;

	if (!option)
		return refuse_unknown(o, path, name, false, e);
	v = &o->v[option - o->table];
	ret = set_from_text(v, option, value, path, e);
	v->refused = ret < 0;
	return ret;
}

int spec_option_check(const char *whose, const struct spec_option *table, const char *name,
		      const char *value, char **ret_text)
{
	cleanup(spec_options_freep) struct spec_options *o = spec_options_new(whose, table);
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	int err = spec_options_set(o, name, value, &e);

	if (err)
		*ret_text = text_print("%s: %s", e.v[0].path, e.v[0].text);
	return err;
}

/* VALUE is the "namespace" in scheduler_args. Add an error unless it is the mount's NAMESPACE. */
static void check_namespace(const struct spec_value *value, const char *namespace,
			    struct spec_errors *e)
{
	const char *path = "scheduler_args.namespace";

	if (value->type == SPEC_VALUE_NULL)
		return;
	if (value->type != SPEC_VALUE_STRING)
		spec_errors_add(e, -EINVAL, 0, 0, path, "must be text");
	else if (*value->text && !streq(value->text, namespace))
		spec_errors_add(e, -EINVAL, 0, 0, path,
				"is \"%s\", but this mount submits only to namespace \"%s\"",
				value->text, namespace);
}

static int set_from_json(struct run_value *v, const struct spec_option *option,
			 const struct spec_value *value, const char *path, struct spec_errors *e)
{
	static const char *const wanted[] = {"text", "text", "a whole number", "true or false",
					     "a time"};
	static const enum spec_value_type types[] = {SPEC_VALUE_STRING, SPEC_VALUE_STRING,
						     SPEC_VALUE_NUMBER, SPEC_VALUE_BOOL,
						     SPEC_VALUE_STRING};
	enum spec_value_type type = types[option->type];
	bool whole = value->type == SPEC_VALUE_NUMBER && !strpbrk(value->text, ".eE");

	if (type == SPEC_VALUE_STRING && whole)
		return set_from_text(v, option, value->text, path, e);
	if (value->type != type || (type == SPEC_VALUE_NUMBER && !whole)) {
		cleanup_json struct json_object *tree = spec_tree_of(value);
		bool scalar = value->type != SPEC_VALUE_LIST && value->type != SPEC_VALUE_MAP;

		return spec_errors_add(e, -EINVAL, 0, 0, path, "must be %s, but is %s%s",
				       wanted[option->type], json_object_to_json_string(tree),
				       scalar && type == SPEC_VALUE_STRING ? "; put it into quotes"
									   : "");
	}
	if (type == SPEC_VALUE_NUMBER)
		return set_number(v, option, strtoll(value->text, NULL, 10), path, e);
	if (type == SPEC_VALUE_BOOL)
		return set_number(v, option, *value->text == 't', path, e);
	if (strlen(value->text) != value->n)
		return spec_errors_add(e, -EINVAL, 0, 0, path, "must not contain a NUL character");
	return set_from_text(v, option, value->text, path, e);
}

static void merge_one(struct spec_options *o, const struct spec_value *value, struct spec_errors *e)
{
	const struct spec_option *option = spec_option_find(o->table, value->key);
	cleanup_free char *path = text_print("scheduler_args.%s", value->key);
	struct run_value *v = option ? &o->v[option - o->table] : NULL;

	if (!v)
		refuse_unknown(o, path, value->key, true, e);
	else if (value->type == SPEC_VALUE_NULL)
		value_clear(v);
	else
		v->refused = set_from_json(v, option, value, path, e) < 0;
}

void spec_options_merge(struct spec_options *o, const char *json, const char *namespace,
			struct spec_errors *e)
{
	cleanup_free struct spec_value *args = NULL;
	/* Read the conditions only to find errors. spec_held_read reads them again. */
	cleanup(spec_held_freep) struct spec_held *held = new0(struct spec_held);

	if (json)
		(void)spec_value_parse(json, strlen(json), &args);
	for (size_t i = 0; args && i < args->n; i++) {
		const struct spec_value *value = &args->items[i];

		if (streq(value->key, "namespace"))
			check_namespace(value, namespace, e);
		else if (spec_hold_is(value->key))
			spec_hold_read(held, value, 0, NULL, e);
		else
			merge_one(o, value, e);
	}
}

void spec_options_check(const struct spec_options *o, struct spec_errors *e)
{
	for (size_t i = 0; o->table[i].name; i++) {
		const char *name = o->table[i].name;
		cleanup_free char *path = NULL;

		if (!o->table[i].required || o->v[i].given || o->v[i].refused)
			continue;
		path = text_print("scheduler_args.%s", name);
		spec_errors_add(e, -EINVAL, 0, 0, path,
				"%s needs this run option: give it here, or mount with -o "
				"%s=VALUE",
				o->whose, name);
	}
}

static const struct run_value *option_value(const struct spec_options *o, const char *name)
{
	const struct spec_option *option = spec_option_find(o->table, name);

	assert(option);
	return &o->v[option - o->table];
}

const char *spec_options_text(const struct spec_options *o, const char *name)
{
	return option_value(o, name)->text;
}

bool spec_options_int(const struct spec_options *o, const char *name, int64_t *ret)
{
	const struct run_value *v = option_value(o, name);

	if (v->given)
		*ret = v->number;
	return v->given;
}

bool spec_options_bool(const struct spec_options *o, const char *name)
{
	return option_value(o, name)->number != 0;
}
