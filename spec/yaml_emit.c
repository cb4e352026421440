/* SPDX-License-Identifier: MIT */
/*
 * Writes a JSON value as YAML that YAML 1.1 and 1.2 readers take for the same value. Not
 * libyaml's emitter: it escapes all characters beyond U+FFFF, and leaves it to its caller to
 * know which plain text a reader takes for another type. One string is written
 *   plain          if no reader can take it for anything else;
 *   as a block     if it has several lines, in block context;
 *   'single' or "double" quoted otherwise.
 */
#include "spec/yaml.h"

#include <errno.h>
#include <json-c/json.h>

#include "spec/utf8.h"
#include "spec/yaml_input.h"
#include "spec/yaml_style.h"

/* A longer key must be written "? key"; readers look only 1024 characters ahead for its ":". */
#define SIMPLE_KEY_MAX 1000

/* Marks a string as a time; its address alone counts. */
static const char time_mark[] = "time";

struct emitter {
	FILE *out;
	unsigned flow_depth; /* 0: none */
};

static void emit_value(struct emitter *em, struct json_object *value, unsigned level,
		       unsigned indent, bool in_list);

struct json_object *spec_yaml_new_time(const char *text)
{
	struct json_object *ret = json_object_new_string(text);

	if (ret)
		json_object_set_userdata(ret, (void *)(uintptr_t)time_mark, NULL);
	return ret;
}

static void put_indent(struct emitter *em, unsigned indent)
{
	fprintf(em->out, "%*s", (int)indent, "");
}

/* The characters of TEXT, escaped for double quotes. Bytes that are not UTF-8 become U+FFFD. */
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

static void put_single_quoted(FILE *out, const char *text, size_t len)
{
	fputc('\'', out);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\'')
			fputc('\'', out);
		fputc(text[i], out);
	}
	fputc('\'', out);
}

/* A string that stands on the current line. */
static void put_inline(struct emitter *em, const char *text, size_t len, bool flow)
{
	switch (yaml_style_inline(text, len, flow)) {
	case YAML_STYLE_PLAIN:
		fwrite(text, 1, len, em->out);
		break;
	case YAML_STYLE_SINGLE:
		put_single_quoted(em->out, text, len);
		break;
	default:
		put_double_quoted(em->out, text, len);
	}
}

/* The string VALUE on the current line. */
static void put_string(struct emitter *em, struct json_object *value, bool flow)
{
	if (json_object_get_userdata(value) == time_mark)
		fputs(json_object_get_string(value), em->out);
	else
		put_inline(em, json_object_get_string(value),
			   (size_t)json_object_get_string_len(value), flow);
}

/*
 * A literal block, its lines at INDENT + 2 where INDENT is the column of the collection around
 * it. Text that begins with white space needs the indentation said, since it can't be seen.
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

/* Numbers, booleans, null. */
static void put_other(struct emitter *em, struct json_object *value)
{
	char text[32];

	if (json_object_get_type(value) == json_type_double) {
		spec_yaml_double(json_object_get_double(value), text);
		fputs(text, em->out);
	} else {
		fputs(json_object_to_json_string(value), em->out);
	}
}

static void put_flow(struct emitter *em, struct json_object *value)
{
	const char *sep = "";

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
	default:
		put_other(em, value);
	}
}

/* Does VALUE fill lines of its own, below a key or dash? */
static bool is_block(const struct emitter *em, struct json_object *value, unsigned level)
{
	if (em->flow_depth && level > em->flow_depth)
		return false;
	if (json_object_is_type(value, json_type_object))
		return json_object_object_length(value) > 0;
	return json_object_is_type(value, json_type_array) && json_object_array_length(value) > 0;
}

/* The pairs of a block map at INDENT, whose first line is indented already. */
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
 * VALUE after the ":" or "-" of a collection at column INDENT, to the end of its last line. In
 * a list, a collection begins on the line of the dash; in a map, on the next, and a list there
 * is not indented further.
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

		if (yaml_style_is_literal(text, len)) {
			put_literal(em, text, len, indent);
			return;
		}
		put_string(em, value, false);
	} else {
		put_flow(em, value);
	}
	fputc('\n', em->out);
}

int spec_yaml_emit(struct json_object *value, unsigned flow_depth, char **ret, size_t *ret_len)
{
	struct emitter em = {.flow_depth = flow_depth};
	bool bad;

	*ret = NULL;
	em.out = open_memstream(ret, ret_len);
	if (!em.out)
		return -ENOMEM;
	if (is_block(&em, value, 1)) {
		if (json_object_is_type(value, json_type_object))
			emit_map(&em, value, 1, 0);
		else
			emit_list(&em, value, 1, 0);
	} else {
		put_flow(&em, value);
		fputc('\n', em.out);
	}
	bad = ferror(em.out);
	if (fclose(em.out) || bad) {
		free(*ret);
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}
