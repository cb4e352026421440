/* SPDX-License-Identifier: MIT */
/*
 * The numbers of an AppDef. What YAML readers disagree on, or what is not a number at all, is
 * refused with the reason: "010" is 8 to one reader and 10 to another.
 */
#include "spec/app_value.h"

#include <errno.h>

/* More than any machine has, and exact as whole numbers when multiplied by 1000. */
#define NUMBER_MAX 1e12

/* Why TEXT, which is not a decimal number, is none; NULL: there is nothing special to say. */
static const char *why_not(const char *text)
{
	const char *s = text + (*text == '-' || *text == '+');
	size_t digits = strspn(s, "0123456789");

	if (digits > 1 && *s == '0' && strspn(s, "0123456789.eE+-") == strlen(s))
		return "is ambiguous, since some readers of YAML take a leading 0 for octal; write "
		       "it without";
	if (*s == '0' && strchr("xXoObB", s[1]) && s[1])
		return "is not decimal; write it as a decimal number";
	if (digits && s[digits] == '_')
		return "is ambiguous, since some readers of YAML skip the _; write only digits";
	if (digits && s[digits] == ':')
		return "is ambiguous, since some readers of YAML take it for a number of base 60; "
		       "write a decimal number";
	if (streq(text, ".inf") || streq(text, "-.inf") || streq(text, ".nan"))
		return "is not a finite number";
	return NULL;
}

/* NODE is not the number that is wanted: say why. */
static void refuse(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   const char *wanted)
{
	struct spec_yaml plain = *node;
	enum spec_yaml_value value;
	const char *why;

	if (!app_is(r, path, node, node->type, ""))
		return;
	if (node->type != SPEC_YAML_SCALAR) {
		app_error(r, path, node, "must be %s, not a %s", wanted,
			  node->type == SPEC_YAML_MAP ? "map" : "list");
		return;
	}
	plain.plain = true;
	value = spec_yaml_resolve(&plain);
	why = why_not(node->text);
	if (!node->plain && (value == SPEC_YAML_INT || value == SPEC_YAML_FLOAT))
		app_error(r, path, node, "must be %s, not text; write %s without quotes", wanted,
			  node->text);
	else if (why)
		app_error(r, path, node, "\"%s\" %s", node->text, why);
	else
		app_error(r, path, node, "must be %s, not \"%s\"", wanted, node->text);
}

bool app_int(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	     int64_t min, int64_t max, int64_t *ret)
{
	int64_t value;

	if (spec_yaml_resolve(node) != SPEC_YAML_INT) {
		refuse(r, path, node, "a whole number");
		return false;
	}
	errno = 0;
	value = strtoll(node->text, NULL, 10);
	if (value < min || (errno && *node->text == '-'))
		app_error(r, path, node, "must be at least %lld, not %s", (long long)min,
			  node->text);
	else if (value > max || errno)
		app_error(r, path, node, "must be at most %lld, not %s", (long long)max,
			  node->text);
	else {
		*ret = value;
		return true;
	}
	return false;
}

void app_read_number(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member)
{
	enum spec_yaml_value value = spec_yaml_resolve(node);
	double number;

	if (value != SPEC_YAML_INT && value != SPEC_YAML_FLOAT) {
		refuse(r, path, node, "a number");
		return;
	}
	number = strtod(node->text, NULL);
	if (number > NUMBER_MAX || number < -NUMBER_MAX)
		app_error(r, path, node, "must be at most %.0f, not %s", NUMBER_MAX, node->text);
	else
		memcpy(member, &number, sizeof(number));
}
