/* SPDX-License-Identifier: MIT */
/*
 * libyaml's syntax errors in words for the person who wrote the document: what is wrong there,
 * in terms of what stands in the file, and what to do. libyaml's texts are fixed strings of its
 * scanner and parser; one that is not in the table is passed on as it is.
 */
#include "spec/yaml_input.h"

#include <errno.h>

enum place {
	HERE,	   /* where libyaml stopped */
	BEGINNING, /* where the thing that it was reading begins */
	HERE_FROM, /* where libyaml stopped; the text says where the thing begins */
};

#define TAB_TEXT "a tab can't be used to indent; use spaces"
#define TAG_TEXT                                                                                   \
	"this is not a tag (\"!NAME\") that is known here; text that begins with \"!\" needs "     \
	"quotes"

static const struct {
	const char *problem;
	const char *context; /* NULL: any */
	enum place place;
	const char *text;
} explanations[] = {
	{"could not find expected ':'", NULL, BEGINNING,
	 "a key needs a \":\" after it; if this is no key, check the indentation"},
	{"mapping values are not allowed in this context", NULL, HERE,
	 "a \"KEY: VALUE\" can't stand here; check the indentation, and put text that holds \": \" "
	 "in "
	 "quotes"},
	{"block sequence entries are not allowed in this context", NULL, HERE,
	 "a list item (\"- \") can't begin here; put it on a line of its own"},
	{"mapping keys are not allowed in this context", NULL, HERE,
	 "a key marked with \"? \" can't begin here; put text that begins with \"?\" in quotes"},
	{"did not find expected key", NULL, HERE_FROM,
	 "this does not belong to the map around it; check the indentation, and the quotes before "
	 "it"},
	{"did not find expected '-' indicator", NULL, HERE_FROM,
	 "this is not an item (\"- \") of the list around it; check the indentation"},
	{"did not find expected ',' or ']'", NULL, HERE_FROM,
	 "a \",\" or the closing \"]\" of the list is missing here"},
	{"did not find expected ',' or '}'", NULL, HERE_FROM,
	 "a \",\" or the closing \"}\" of the map is missing here"},
	{"did not find expected node content", NULL, HERE, "a value is missing here"},
	{"found unexpected end of stream", NULL, BEGINNING, "this quoted text is never closed"},
	{"found unexpected document indicator", NULL, BEGINNING,
	 "this quoted text is not closed before a line that begins with \"---\" or \"...\""},
	{"found unexpected ':'", NULL, HERE, "a \":\" can't stand here; put the text in quotes"},
	{"found unknown escape character", NULL, HERE,
	 "this escape is not known; a backslash in double quotes is written \"\\\\\", or use "
	 "single "
	 "quotes"},
	{"did not find expected hexdecimal number", NULL, HERE,
	 "the escapes \\x, \\u and \\U need 2, 4 and 8 hexadecimal digits"},
	{"found invalid Unicode character escape code", NULL, HERE,
	 "this escape is not a character of Unicode"},
	{"found a tab character where an indentation space is expected", NULL, HERE, TAB_TEXT},
	{"found a tab character that violates indentation", NULL, HERE, TAB_TEXT},
	{"found an indentation indicator equal to 0", NULL, HERE,
	 "the indentation after \"|\" or \">\" is a digit from 1 to 9"},
	{"did not find expected comment or line break", "while scanning a block scalar", HERE,
	 "after \"|\" or \">\" the text begins on the next line; text that begins with them needs "
	 "quotes"},
	{"did not find expected alphabetic or numeric character", NULL, BEGINNING,
	 "\"&\" and \"*\" begin an anchor or alias here; put text that begins with them in quotes"},
	{"found undefined tag handle", NULL, HERE, TAG_TEXT},
	{"found incompatible YAML document", NULL, HERE, "only YAML 1.1 and 1.2 are read"},
	{"did not find expected <document start>", NULL, HERE,
	 "the document has ended before this; check the indentation and the brackets"},
};

/* What a whole family of errors means when its problem is not in the table. */
static const struct {
	const char *context;
	const char *text;
} families[] = {
	{"while scanning a tag", TAG_TEXT},
	{"while parsing a tag", TAG_TEXT},
	{"while scanning a directive",
	 "this \"%\" directive is not valid; text that begins with \"%\" "
	 "needs quotes"},
	{"while scanning a %YAML directive", "this is not \"%YAML 1.2\" or \"%YAML 1.1\""},
};

/* The byte at which character INDEX of TEXT stands; NUL at the end. */
static char char_at(const char *text, size_t len, size_t index)
{
	for (size_t i = 0; i < len; i++) {
		if (((unsigned char)text[i] & 0xc0) == 0x80)
			continue;
		if (index-- == 0)
			return text[i];
	}
	return '\0';
}

static int add_at(struct spec_errors *e, yaml_mark_t mark, const char *text)
{
	return spec_errors_add(e, -EINVAL, (unsigned)mark.line + 1, (unsigned)mark.column + 1, "",
			       "%s", text);
}

static int explain_char(const yaml_parser_t *p, const char *text, size_t len, struct spec_errors *e)
{
	char c = char_at(text, len, p->problem_mark.index);

	if (c == '\t')
		return add_at(e, p->problem_mark, TAB_TEXT);
	return spec_errors_add(e, -EINVAL, (unsigned)p->problem_mark.line + 1,
			       (unsigned)p->problem_mark.column + 1, "",
			       "text can't begin with \"%c\"; put it in quotes", c ? c : ' ');
}

int yaml_input_explain(const yaml_parser_t *p, const char *text, size_t len, struct spec_errors *e)
{
	const char *problem = p->problem ? p->problem : "unknown error";
	const char *context = p->context ? p->context : "";

	if (p->error == YAML_MEMORY_ERROR)
		return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
	if (streq(problem, "found character that cannot start any token"))
		return explain_char(p, text, len, e);
	for (size_t i = 0; i < array_size(explanations); i++) {
		enum place place = explanations[i].place;

		if (!streq(problem, explanations[i].problem) ||
		    (explanations[i].context && !streq(context, explanations[i].context)))
			continue;
		if (place == HERE_FROM && *context)
			return spec_errors_add(e, -EINVAL, (unsigned)p->problem_mark.line + 1,
					       (unsigned)p->problem_mark.column + 1, "",
					       "%s (it begins at line %zu, column %zu)",
					       explanations[i].text, p->context_mark.line + 1,
					       p->context_mark.column + 1);
		return add_at(e, place == BEGINNING && *context ? p->context_mark : p->problem_mark,
			      explanations[i].text);
	}
	for (size_t i = 0; i < array_size(families); i++) {
		if (streq(context, families[i].context))
			return add_at(e, p->problem_mark, families[i].text);
	}
	return spec_errors_add(e, -EINVAL, (unsigned)p->problem_mark.line + 1,
			       (unsigned)p->problem_mark.column + 1, "", "not valid YAML: %s%s%s",
			       context, *context ? ": " : "", problem);
}
