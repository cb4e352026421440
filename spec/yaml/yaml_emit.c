/* SPDX-License-Identifier: MIT */
/*
 * Writes a JSON value as YAML that parsers of YAML 1.1 and 1.2 read as the same value. A string is
 * written without quotes only if no parser can read it as another type. A string with several lines
 * is written as a block. libyaml's emitter can't do this, and would escape all characters above
 * U+FFFF.
 */
#include "spec/yaml/yaml.h"

#include <strings.h>

#include "spec/base/time.h"
#include "spec/base/tree.h"
#include "spec/base/utf8.h"
#include "spec/yaml/yaml_input.h"

/* Parsers find the ":" of a key only within 1024 characters. A longer key begins with "? ". */
#define SIMPLE_KEY_MAX 1000

/* To mark a json-c string as a time, its userdata is this address. */
static const char time_mark[] = "time";

struct emitter {
	FILE *out;
	unsigned flow_depth; /* as in spec_yaml_emit */
};

static void emit_value(struct emitter *em, struct json_object *value, unsigned level,
		       unsigned indent, bool in_list);

void spec_yaml_add_time(struct json_object *o, const char *key, int64_t ns)
{
	struct json_object *value = NULL;
	char text[32];

	spec_time_text(ns, text);
	if (*text) {
		value = spec_tree_string(text);
		json_object_set_userdata(value, (void *)(uintptr_t)time_mark, NULL);
	}
	spec_tree_add(o, key, value);
}

/* True if some parser reads TEXT as null, a boolean, a special number, or a special key. */
static bool is_word(const char *text, size_t len)
{
	static const char *const words[] = {"~",     "null", "true", "false", "yes",  "no",
					    "on",    "off",  "y",    "n",     ".inf", "-.inf",
					    "+.inf", ".nan", "=",    "<<",    "nan",  "inf"};

	for (size_t i = 0; i < array_size(words); i++) {
		if (strlen(words[i]) == len && strncasecmp(text, words[i], len) == 0)
			return true;
	}
	return false;
}

/* True if some parser may read TEXT as a number or a date. */
static bool is_numeric(const char *text, size_t len)
{
	bool digit = false, letter = false;

	if (!strchr("0123456789+-.", text[0]))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!text[i] || !strchr("0123456789abcdefABCDEFxXoOtTzZ_.:+- ", text[i]))
			return false;
		digit |= text[i] >= '0' && text[i] <= '9';
		letter |= (text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z';
	}
	return digit || !letter;
}

/* True if no parser can mistake the beginning of TEXT for syntax. */
static bool begins_plain(const char *text, size_t len)
{
	if (strchr("?:,[]{}#&*!|>'\"%@` ", text[0]))
		return false;
	if (len >= 3 && (strncmp(text, "---", 3) == 0 || strncmp(text, "...", 3) == 0))
		return false;
	return text[0] != '-' || (len > 1 && text[1] != ' ');
}

static bool is_printable(const char *text, size_t len, const char *extra)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + len;

	while (s < end) {
		uint32_t c;
		size_t n = spec_utf8_char(s, (size_t)(end - s), &c);

		if (n == 0 ||
		    (!yaml_input_is_printable(c) && (c == 0 || c > 0x7f || !strchr(extra, (int)c))))
			return false;
		s += n;
	}
	return true;
}

/*
 * True if TEXT, which must be printable and not empty, can be written without quotes. FLOW is true
 * inside [] or {}.
 */
static bool is_plain(const char *text, size_t len, bool flow)
{
	if (!begins_plain(text, len) || text[len - 1] == ' ' || text[len - 1] == ':')
		return false;
	for (size_t i = 1; i < len; i++) {
		if ((text[i - 1] == ':' && text[i] == ' ') ||
		    (text[i - 1] == ' ' && text[i] == '#'))
			return false;
	}
	for (size_t i = 0; flow && i < len; i++) {
		if (strchr(",[]{}:?", text[i]))
			return false;
	}
	return !is_word(text, len) && !is_numeric(text, len);
}

/* True if a literal block can express TEXT exactly, and is easier to read than quoted text. */
static bool is_literal(const char *text, size_t len)
{
	bool content = false;

	if (!memchr(text, '\n', len) || !is_printable(text, len, "\n\t"))
		return false;
	for (size_t i = 0; i < len; i++)
		content |= text[i] != '\n' && text[i] != ' ' && text[i] != '\t';
	return content;
}

static void put_indent(struct emitter *em, unsigned indent)
{
	fprintf(em->out, "%*s", (int)indent, "");
}

/* Write TEXT in double quotes. Replace bytes that are not UTF-8 by U+FFFD. */
static void put_double_quoted(FILE *out, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + len;

	fputc('"', out);
	while (s < end) {
		uint32_t c = 0xfffd;
		size_t n = spec_utf8_char(s, (size_t)(end - s), &c);

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", (int)c);
		else if (c == '\n' || c == '\t' || c == '\r')
			fprintf(out, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
		else if (n == 0)
			fputs("\xef\xbf\xbd", out);
		else if (yaml_input_is_printable(c))
			fwrite(s, 1, n, out);
		else
			fprintf(out, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
		s += n ? n : 1;
	}
	fputc('"', out);
}

/* Write TEXT on the current line, without quotes if possible. FLOW is true inside [] or {}. */
static void put_inline(struct emitter *em, const char *text, size_t len, bool flow)
{
	bool printable = len > 0 && is_printable(text, len, "");

	if (printable && is_plain(text, len, flow)) {
		fwrite(text, 1, len, em->out);
	} else if (printable && (memchr(text, '"', len) || memchr(text, '\\', len))) {
		/* Single quotes need no escapes, so the text is easier to read. */
		fputc('\'', em->out);
		for (size_t i = 0; i < len; i++) {
			if (text[i] == '\'')
				fputc('\'', em->out);
			fputc(text[i], em->out);
		}
		fputc('\'', em->out);
	} else {
		put_double_quoted(em->out, text, len);
	}
}

static void put_string(struct emitter *em, struct json_object *value, bool flow)
{
	if (json_object_get_userdata(value) == time_mark)
		fputs(json_object_get_string(value), em->out);
	else
		put_inline(em, json_object_get_string(value),
			   (size_t)json_object_get_string_len(value), flow);
}

/*
 * Write TEXT as a literal block in a map or list at the column INDENT. If TEXT begins with white
 * space, a parser can't recognize where the indentation ends, so write its width after the "|".
 */
static void put_literal(struct emitter *em, const char *text, size_t len, unsigned indent)
{
	const char *end = text + len;

	fputc('|', em->out);
	if (*text == ' ' || *text == '\t' || *text == '\n')
		fputc('2', em->out);
	if (end[-1] != '\n')
		fputc('-', em->out);
	else if (len > 1 && end[-2] == '\n')
		fputc('+', em->out);
	fputc('\n', em->out);
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((nl ? nl : end) - text);

		if (n) {
			put_indent(em, indent + 2);
			fwrite(text, 1, n, em->out);
		}
		fputc('\n', em->out);
		text += n + 1;
	}
}

static void put_flow(struct emitter *em, struct json_object *value)
{
	const char *sep = "";
	char number[32];

	switch (json_object_get_type(value)) {
	case json_type_object: {
		fputc('{', em->out);
		json_object_object_foreach(value, key, child) {
			size_t len = strlen(key);

			fputs(sep, em->out);
			if (len > SIMPLE_KEY_MAX)
				fputs("? ", em->out);
			put_inline(em, key, len, true);
			fputs(len > SIMPLE_KEY_MAX ? " : " : ": ", em->out);
			put_flow(em, child);
			sep = ", ";
		}
		fputc('}', em->out);
		break;
	}
	case json_type_array:
		fputc('[', em->out);
		for (size_t i = 0; i < json_object_array_length(value); i++) {
			fputs(sep, em->out);
			put_flow(em, json_object_array_get_idx(value, i));
			sep = ", ";
		}
		fputc(']', em->out);
		break;
	case json_type_string:
		put_string(em, value, true);
		break;
	case json_type_double:
		spec_tree_double_text(json_object_get_double(value), number);
		fputs(number, em->out);
		break;
	default:
		fputs(json_object_to_json_string(value), em->out);
	}
}

/* True if VALUE is a map or list to write in block style: a line for each member or item. */
static bool is_block(const struct emitter *em, struct json_object *value, unsigned level)
{
	if (em->flow_depth && level > em->flow_depth)
		return false;
	if (json_object_is_type(value, json_type_object))
		return json_object_object_length(value) > 0;
	return json_object_is_type(value, json_type_array) && json_object_array_length(value) > 0;
}

/* Write a map in block style at column INDENT. The caller has already indented the first line. */
static void emit_map(struct emitter *em, struct json_object *map, unsigned level, unsigned indent)
{
	bool first = true;

	json_object_object_foreach(map, key, value) {
		size_t len = strlen(key);

		if (!first)
			put_indent(em, indent);
		first = false;
		if (len > SIMPLE_KEY_MAX) {
			fputs("? ", em->out);
			put_inline(em, key, len, false);
			fputc('\n', em->out);
			put_indent(em, indent);
		} else {
			put_inline(em, key, len, false);
		}
		fputc(':', em->out);
		emit_value(em, value, level + 1, indent, false);
	}
}

static void emit_list(struct emitter *em, struct json_object *list, unsigned level, unsigned indent)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		if (i)
			put_indent(em, indent);
		fputc('-', em->out);
		emit_value(em, json_object_array_get_idx(list, i), level + 1, indent, true);
	}
}

/*
 * Write VALUE after a ":" or "-" of a map or list at the column INDENT. IN_LIST is true after a
 * "-". A map or list in a list begins on the line of the dash. A list in a map has the indentation
 * of the map.
 */
static void emit_value(struct emitter *em, struct json_object *value, unsigned level,
		       unsigned indent, bool in_list)
{
	if (is_block(em, value, level)) {
		bool map = json_object_is_type(value, json_type_object);
		unsigned in = indent + (map || in_list ? 2 : 0);

		fputc(in_list ? ' ' : '\n', em->out);
		if (!in_list)
			put_indent(em, in);
		if (map)
			emit_map(em, value, level, in);
		else
			emit_list(em, value, level, in);
		return;
	}
	fputc(' ', em->out);
	if (json_object_is_type(value, json_type_string)) {
		const char *text = json_object_get_string(value);
		size_t len = (size_t)json_object_get_string_len(value);

		if (is_literal(text, len)) {
			put_literal(em, text, len, indent);
			return;
		}
		put_string(em, value, false);
	} else {
		put_flow(em, value);
	}
	fputc('\n', em->out);
}

void spec_yaml_emit(struct json_object *value, unsigned flow_depth, char **ret, size_t *ret_len)
{
	struct emitter em = {.out = text_stream(ret, ret_len), .flow_depth = flow_depth};

	if (is_block(&em, value, 1)) {
		if (json_object_is_type(value, json_type_object))
			emit_map(&em, value, 1, 0);
		else
			emit_list(&em, value, 1, 0);
	} else {
		put_flow(&em, value);
		fputc('\n', em.out);
	}
	text_stream_close(em.out);
}
