/* SPDX-License-Identifier: MIT */
/*
 * Checks a document's bytes before libyaml parses them, so that an encoding error has a position
 * and a remedy. libyaml's errors are fixed texts about its scanner and parser. Two tables translate
 * these errors for the author of the document. If an error is in neither table, the author sees
 * libyaml's text.
 */
#include "spec/yaml/yaml_input.h"

#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/utf8.h"
#include "spec/base/value.h"

bool yaml_input_is_printable(uint32_t c)
{
	if (c < 0xa0)
		return c >= 0x20 && c < 0x7f;
	/* For some parsers, U+2028 and U+2029 are line breaks. U+FEFF is the byte order mark. */
	return c != 0x2028 && c != 0x2029 && c != 0xfeff && c != 0xfffe && c != 0xffff;
}

static int refuse_char(uint32_t c, unsigned line, unsigned column, struct spec_errors *e)
{
	const char *what = "the control character";

	if (c == 0)
		return spec_errors_add(e, -EINVAL, line, column, "",
				       "the file contains a NUL byte; is it text?");
	if (line == 1 && column == 1 && (c < 0x20 || c == 0x7f))
		return spec_errors_add(
			e, -EINVAL, line, column, "",
			"the file begins with the control character U+%04X; is it text?", c);
	if (c == 0x85 || c == 0x2028 || c == 0x2029)
		what = "the line separator";
	else if (c == 0xfeff)
		what = "a byte order mark inside the text,";
	else if (c > 0xa0)
		what = "the character";
	return spec_errors_add(
		e, -EINVAL, line, column, "",
		"%s U+%04X is not allowed in a file; write it as \"\\u%04x\", in double "
		"quotes",
		what, c, c);
}

int yaml_input_begin(const char **text, size_t *len, struct spec_errors *e)
{
	static const struct {
		const char *mark, *name;
		size_t n;
	} marks[] = {{"\xff\xfe\0\0", "UTF-32", 4},
		     {"\0\0\xfe\xff", "UTF-32", 4},
		     {"\xff\xfe", "UTF-16", 2},
		     {"\xfe\xff", "UTF-16", 2}};

	if (*len > SPEC_MAX_FILE)
		return spec_errors_add(e, -EFBIG, 0, 0, "",
				       "the file has more than %u bytes (1 MiB)", SPEC_MAX_FILE);
	for (size_t i = 0; i < array_size(marks); i++) {
		if (*len >= marks[i].n && memcmp(*text, marks[i].mark, marks[i].n) == 0)
			return spec_errors_add(e, -EINVAL, 1, 1, "",
					       "the file is encoded in %s; save it as UTF-8",
					       marks[i].name);
	}
	if (*len >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
		*text += 3;
		*len -= 3;
	}
	return 0;
}

int yaml_input_check(const char *text, size_t len, struct spec_errors *e)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + len;
	unsigned line = 1, column = 1;
	uint32_t c;
	size_t n;

	for (; s < end; s += n, column++) {
		/*
		 * If a document has many %TAG lines, libyaml needs quadratic time, and at each use
		 * it copies the long tag.
		 */
		if (column == 1 && end - s >= 4 && memcmp(s, "%TAG", 4) == 0)
			return spec_errors_add(
				e, -EINVAL, line, column, "",
				"%%TAG is not supported: remove this line, or indent "
				"it if it belongs to a multi-line text");
		n = spec_utf8_char(s, (size_t)(end - s), &c);
		if (n == 0)
			return spec_errors_add(e, -EINVAL, line, column, "",
					       "byte 0x%02x is not UTF-8; save the file as UTF-8",
					       *s);
		if (c == '\n' || (c == '\r' && (s + 1 == end || s[1] != '\n'))) {
			line++;
			column = 0;
		} else if (c != '\t' && c != '\r' && !yaml_input_is_printable(c)) {
			return refuse_char(c, line, column, e);
		}
	}
	return 0;
}

/* True if TEXT may have surrogate pairs, or has characters that must be escaped in YAML. */
static bool needs_adapting(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + len;

	if (memmem(text, len, "\\ud", 3) || memmem(text, len, "\\uD", 3))
		return true;
	while (s < end) {
		uint32_t c;
		size_t n = spec_utf8_char(s, (size_t)(end - s), &c);

		if (n && c > ' ' && !yaml_input_is_printable(c))
			return true;
		s += n ? n : 1;
	}
	return false;
}

/* Write the first character or escape of the JSON text S to OUT, as YAML. Return its length. */
static size_t adapt(const char *s, const char *end, FILE *out)
{
	uint32_t c = 0;
	size_t n;

	/* a surrogate pair, "\uD8xx\uDCxx" */
	if (end - s >= 12 && s[0] == '\\' && s[1] == 'u' && s[6] == '\\' && s[7] == 'u')
		c = spec_utf8_pair(spec_utf8_hex4(s + 2), spec_utf8_hex4(s + 8));
	if (c) {
		fprintf(out, "\\U%08x", c);
		return 12;
	}
	if (*s == '\\' && s + 1 < end) {
		/* Copy both bytes: a second backslash does not begin an escape. */
		fwrite(s, 1, 2, out);
		return 2;
	}
	n = spec_utf8_char((const unsigned char *)s, (size_t)(end - s), &c);
	if (n && c > ' ' && !yaml_input_is_printable(c))
		fprintf(out, "\\u%04x", c);
	else
		fwrite(s, 1, n ? n : 1, out);
	return n ? n : 1;
}

static const char *skip_space(const char *s, const char *end)
{
	while (s < end && (*s == ' ' || *s == '\t' || *s == '\r' || *s == '\n'))
		s++;
	return s;
}

char *yaml_input_from_json(const char *text, size_t *len)
{
	const char *end = text + *len, *s = skip_space(text, end);
	cleanup_free struct spec_value *json = NULL;
	char *ret = NULL;
	FILE *out;

	if (s == end || (*s != '{' && *s != '['))
		return NULL;
	/* Check that TEXT is JSON: then every backslash is in a string, as adapt() requires. */
	if (!needs_adapting(text, *len) || spec_value_parse(text, *len, &json) < 0)
		return NULL;
	out = text_stream(&ret, len);
	for (s = text; s < end;)
		s += adapt(s, end, out);
	text_stream_close(out);
	return ret;
}

/* --- explaining libyaml's errors --- */

/* The position of an error that the author sees. */
enum error_position {
	HERE,	   /* where libyaml stopped */
	BEGINNING, /* where the construct begins that libyaml was parsing */
	/* where libyaml stopped; the text also says where the map or the list begins */
	IN_MAP,
	IN_LIST,
};

#define TAB_TEXT "a tab can't be used to indent; use spaces"
#define TAG_TEXT                                                                                   \
	"this tag (\"!NAME\") is unknown; text that begins with \"!\" needs "                      \
	"quotes"

static const struct {
	const char *problem;
	const char *context; /* NULL for any context */
	enum error_position position;
	const char *text;
} explanations[] = {
	{"could not find expected ':'", NULL, BEGINNING,
	 "a key needs a \":\" after it; if this is not a key, check the indentation"},
	{"mapping values are not allowed in this context", NULL, HERE,
	 "a \"KEY: VALUE\" is not allowed here; check the indentation, and put text that "
	 "contains \": \" in quotes"},
	{"block sequence entries are not allowed in this context", NULL, HERE,
	 "a list item (\"- \") can't begin here; put it on a line of its own"},
	{"mapping keys are not allowed in this context", NULL, HERE,
	 "a key marked with \"? \" can't begin here; put text that begins with \"?\" in quotes"},
	{"did not find expected key", NULL, IN_MAP,
	 "this does not belong to the map around it; check the indentation and earlier quotes"},
	{"did not find expected '-' indicator", NULL, IN_LIST,
	 "this is not an item (\"- \") of the list around it; check the indentation"},
	{"did not find expected ',' or ']'", NULL, IN_LIST,
	 "a \",\" or the closing \"]\" of the list is missing here"},
	{"did not find expected ',' or '}'", NULL, IN_MAP,
	 "a \",\" or the closing \"}\" of the map is missing here"},
	{"did not find expected node content", NULL, HERE, "a value is missing here"},
	{"found unexpected end of stream", NULL, BEGINNING, "this quoted text is never closed"},
	{"found unexpected document indicator", NULL, BEGINNING,
	 "this quoted text is not closed before a line that begins with \"---\" or \"...\""},
	{"found unexpected ':'", NULL, HERE, "a \":\" is not allowed here; put the text in quotes"},
	{"found unknown escape character", NULL, HERE,
	 "this escape is not known; write a backslash as \"\\\\\", or use single quotes"},
	{"did not find expected hexdecimal number", NULL, HERE,
	 "the escapes \\x, \\u and \\U need 2, 4 and 8 hexadecimal digits"},
	{"found invalid Unicode character escape code", NULL, HERE,
	 "this escape is not a Unicode character"},
	{"found a tab character where an indentation space is expected", NULL, HERE, TAB_TEXT},
	{"found a tab character that violates indentation", NULL, HERE, TAB_TEXT},
	{"found an indentation indicator equal to 0", NULL, HERE,
	 "the indentation after \"|\" or \">\" must be a digit from 1 to 9"},
	{"did not find expected comment or line break", "while scanning a block scalar", HERE,
	 "after \"|\" or \">\" the text begins on the next line; put text that begins with \"|\" or "
	 "\">\" in quotes"},
	{"did not find expected alphabetic or numeric character", NULL, BEGINNING,
	 "\"&\" and \"*\" begin an anchor or alias here; put text that begins with one of them "
	 "in quotes"},
	{"found undefined tag handle", NULL, HERE, TAG_TEXT},
	{"found incompatible YAML document", NULL, HERE, "kxfs reads only YAML 1.1 and 1.2"},
	{"did not find expected <document start>", NULL, HERE,
	 "the document ends before this, and a file can have only one document; check the "
	 "indentation and the brackets"},
};

/* If a problem has no row in the table above, libyaml's context selects the explanation. */
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

static int add_at(struct spec_errors *e, yaml_mark_t mark, const char *text)
{
	return spec_errors_add(e, -EINVAL, (unsigned)mark.line + 1, (unsigned)mark.column + 1, "",
			       "%s", text);
}

/* Add an error: P has stopped at a character that can't begin a text. */
static int explain_char(const yaml_parser_t *p, const char *text, size_t len, struct spec_errors *e)
{
	size_t n = p->problem_mark.index, i = 0;
	char c;

	/* libyaml's index counts characters, not bytes. */
	while (i < len && (((unsigned char)text[i] & 0xc0) == 0x80 || n-- > 0))
		i++;
	c = i < len ? text[i] : '\0';
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
		mem_out();
	if (streq(problem, "found character that cannot start any token"))
		return explain_char(p, text, len, e);
	for (size_t i = 0; i < array_size(explanations); i++) {
		enum error_position position = explanations[i].position;

		if (!streq(problem, explanations[i].problem) ||
		    (explanations[i].context && !streq(context, explanations[i].context)))
			continue;
		if ((position == IN_MAP || position == IN_LIST) && *context)
			return spec_errors_add(e, -EINVAL, (unsigned)p->problem_mark.line + 1,
					       (unsigned)p->problem_mark.column + 1, "",
					       "%s (the %s begins at line %zu, column %zu)",
					       explanations[i].text,
					       position == IN_MAP ? "map" : "list",
					       p->context_mark.line + 1,
					       p->context_mark.column + 1);
		return add_at(e,
			      position == BEGINNING && *context ? p->context_mark : p->problem_mark,
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
