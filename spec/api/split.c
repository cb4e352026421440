/* SPDX-License-Identifier: MIT */
/*
 * A state machine that reads the bytes in one pass. The state determines which input may come next.
 * A stack of levels has the maps and lists that contain the current byte. COPYING shows whether the
 * current byte is copied to the output.
 *
 *   state         expected input                     next state
 *   TOP           the "{" of a document              KEY_OR_END
 *   KEY           the first quote of a key           STRING
 *   KEY_OR_END    the first quote of a key           STRING
 *                 "}"                                (after a value)
 *   COLON         ":"                                VALUE
 *   VALUE         the first quote of a string        STRING
 *                 a number, true, false or null      LITERAL
 *                 the first bracket of a value that  WITHIN
 *                 is kept or dropped as a whole
 *                 the "{" of another map             KEY_OR_END
 *                 the "[" of another list            VALUE_OR_END
 *   VALUE_OR_END  a value                            as in the state VALUE
 *                 "]"                                (after a value)
 *   STRING        the last quote of a key            COLON
 *                 the last quote of a string         (after a value)
 *                 a backslash                        ESCAPE
 *                 any other byte of the string       STRING
 *   ESCAPE        the byte after a backslash         STRING
 *   LITERAL       the rest of a number or a word     (after a value)
 *   WITHIN        the rest of the value              (after a value)
 *   NEXT          ","                                KEY in a map, VALUE in a list
 *                 "}" or "]"                         (after a value)
 *   DONE          white space                        DONE
 *
 * After a value within a map or list, the next state is NEXT. After the outermost map, the next
 * state is DONE for a LIST. In a watch, it is TOP, because another event may follow.
 *
 * The splitter reads a map or list member by member only if it must look into some members. Most
 * bytes are in values that are kept or dropped as a whole (WITHIN), where only brackets and quotes
 * matter. If an object is too large or too deep, the splitter still scans the rest of it, but does
 * not copy it.
 */
#include "spec/api/split.h"

#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/span.h"
#include "spec/base/value.h"

#define MAX_LEVELS (2 * SPEC_MAX_DEPTH)
#define MAX_KEY	   32	/* keys that matter are shorter */
#define END	   (-1) /* no bytes are left */
#define FIRST_ROOM 4096
#define MOST_ROOM  (1u << 20) /* a larger buffer is freed after use */

enum state {
	TOP,
	VALUE,
	VALUE_OR_END,
	KEY,
	KEY_OR_END,
	COLON,
	NEXT,
	STRING,
	ESCAPE,
	LITERAL,
	WITHIN,
	DONE
};

enum position {
	WHOLE,	 /* a value whose members do not matter here */
	DROPPED, /* in an object: a member that is not kept */
	LIST,
	LIST_METADATA,
	ITEMS,
	EVENT,
	OBJECT,
	METADATA, /* of an object */
	STATUS,	  /* of an object, if the caller ignores members of the status */
};

struct level {
	bool list;
	bool some; /* a member of this level was copied */
	enum position position;
};

/* DROPPING: the splitter copies an object, but the current byte is in a member that it drops. */
enum copying { COPY_NOTHING, COPYING, DROPPING };

struct spec_split {
	enum spec_split_form form;
	const char *const *ignored;
	spec_split_fn fn;
	void *data;

	int err;
	enum state state;
	struct level levels[MAX_LEVELS];
	unsigned depth;
	struct spec_nest nest; /* only used in the state WITHIN */
	bool in_key;
	char key[MAX_KEY];
	size_t key_len; /* greater than MAX_KEY if KEY is incomplete */

	enum copying copying;
	const char *run; /* input bytes that flush() will copy to OUT */
	size_t run_len;
	const char *comma;	/* the comma before the current member, in the input */
	enum position value;	/* position of the current value */
	unsigned captured_at;	/* the DEPTH at which the copied value began */
	enum position captured; /* position of the copied value */
	char *out;		/* the copied bytes; NUL-terminated unless empty */
	size_t out_len, out_room;
	/* offset in OUT of the current member, or of the comma before it if there is one */
	size_t key_at;
	/* error in the copied value, or 0. After an error, the rest of the value is not copied. */
	int wrong;

	bool has_items, has_metadata;
	char *resource_version, *next;
};

struct spec_split *spec_split_new(enum spec_split_form form, const char *const *ignored,
				  spec_split_fn fn, void *data)
{
	struct spec_split *s = new0(struct spec_split);

	s->form = form;
	s->ignored = ignored;
	s->fn = fn;
	s->data = data;
	return s;
}

void spec_split_free(struct spec_split *s)
{
	if (!s)
		return;
	free(s->out);
	free(s->resource_version);
	free(s->next);
	free(s);
}

/* --- the output --- */

/* Copy the run to OUT, up to the size limit. */
static void flush(struct spec_split *s)
{
	const char *bytes = s->run;
	size_t n = min_of(s->run_len, SPEC_MAX_WATCHED - s->out_len);

	if (n < s->run_len)
		s->wrong = -EFBIG;
	s->run_len = 0;
	if (n == 0)
		return;
	if (s->out_len + n >= s->out_room) {
		s->out_room = max_of(s->out_room, (size_t)FIRST_ROOM);
		while (s->out_len + n >= s->out_room)
			s->out_room *= 2;
		s->out = mem_grow(s->out, s->out_room, 1);
	}
	memcpy(s->out + s->out_len, bytes, n);
	s->out_len += n;
	s->out[s->out_len] = '\0';
}

/* Append BYTES, a part of the input, to the output. Adjacent bytes are collected in the run. */
static void copy(struct spec_split *s, const char *bytes, size_t n)
{
	if (s->copying != COPYING || s->wrong)
		return;
	if (s->run_len > 0 && s->run + s->run_len == bytes) {
		s->run_len += n;
		return;
	}
	flush(s);
	s->run = bytes;
	s->run_len = s->wrong ? 0 : n;
}

/* OUT has the metadata of a LIST. Store its resourceVersion and the token of the next page. */
static int take_metadata(struct spec_split *s)
{
	cleanup_free struct spec_value *o = NULL;

	if (s->has_metadata || spec_value_parse_map(s->out, s->out_len, &o) < 0)
		return -EINVAL;
	s->has_metadata = true;
	for (const struct spec_value *v = o->items; v < o->items + o->n; v++) {
		char **to = streq(v->key, "resourceVersion") ? &s->resource_version
			    : streq(v->key, "continue")	     ? &s->next
							     : NULL;

		if (!to || v->type == SPEC_VALUE_NULL)
			continue;
		if (v->type != SPEC_VALUE_STRING)
			return -EINVAL;
		text_set(to, "%s", v->text);
	}
	return 0;
}

/*
 * Deliver an object that is too large or too deep: only its name, uid and resourceVersion, and only
 * those of them that OUT has.
 */
static int deliver_short(struct spec_split *s)
{
	static const char *const keys[] = {"name", "uid", "resourceVersion"};
	struct spec_span object = {s->out, s->out + s->out_len}, metadata, value;
	const char *comma = "";
	cleanup_free char *text = NULL;
	size_t len;
	FILE *out = text_stream(&text, &len);

	fputc('{', out);
	if (s->captured == EVENT) {
		if (spec_span_member(object, "type", &value))
			fprintf(out, "\"type\":%.*s,", (int)spec_span_len(value), value.p);
		if (!spec_span_begun(object, "object", &object))
			object.p = object.end;
		fputs("\"object\":{", out);
	}
	if (!spec_span_begun(object, "metadata", &metadata))
		metadata = (struct spec_span){object.end, object.end};
	fputs("\"metadata\":{", out);
	for (size_t i = 0; i < array_size(keys); i++) {
		if (!spec_span_member(metadata, keys[i], &value))
			continue;
		fprintf(out, "%s\"%s\":%.*s", comma, keys[i], (int)spec_span_len(value), value.p);
		comma = ",";
	}
	fputs(s->captured == EVENT ? "}}}" : "}}", out);
	text_stream_close(out);
	return s->fn(s->data, text, len, s->wrong);
}

/*
 * OUT has a complete value. Pass it to FN or, if it is the metadata of a LIST, store its contents.
 */
static int deliver(struct spec_split *s)
{
	int err;

	flush(s);
	s->copying = COPY_NOTHING;
	if (s->captured == LIST_METADATA)
		err = s->wrong ? -EINVAL : take_metadata(s);
	else
		err = s->wrong ? deliver_short(s) : s->fn(s->data, s->out, s->out_len, 0);
	s->wrong = 0;
	s->out_len = 0;
	if (s->out_room > MOST_ROOM) {
		free(take_ptr(s->out));
		s->out_room = 0;
	}
	return err;
}

/* --- structure --- */

static struct level *top(struct spec_split *s)
{
	return &s->levels[s->depth - 1];
}

static bool key_is(const struct spec_split *s, const char *key)
{
	return s->key_len == strlen(key) && memcmp(s->key, key, s->key_len) == 0;
}

/* Return the position of the current key's value. IN is the position of the map. */
static enum position member(const struct spec_split *s, enum position in)
{
	switch (in) {
	case LIST:
		return key_is(s, "items") ? ITEMS : key_is(s, "metadata") ? LIST_METADATA : WHOLE;
	case EVENT:
		return key_is(s, "object") ? OBJECT : WHOLE;
	case OBJECT:
		return key_is(s, "metadata")		   ? METADATA
		       : s->ignored && key_is(s, "status") ? STATUS
							   : WHOLE;
	case METADATA:
		/* kxfs does not need managedFields: it only shows which client set which field. */
		return key_is(s, "managedFields") ? DROPPED : WHOLE;
	default:
		for (const char *const *key = s->ignored; *key; key++)
			if (key_is(s, *key))
				return DROPPED;
		return WHOLE;
	}
}

/*
 * Continue after the end of a value. If the value is a map or a list, the caller has already
 * removed its level from the stack.
 */
static int value_done(struct spec_split *s)
{
	s->state = NEXT;
	if (s->copying == DROPPING) {
		s->copying = COPYING;
		return 0;
	}
	if (s->depth > 0)
		top(s)->some = true;
	else
		s->state = s->form == SPEC_SPLIT_LIST ? DONE : TOP;
	return s->copying == COPYING && s->captured_at == s->depth ? deliver(s) : 0;
}

static int open_level(struct spec_split *s, const char *at, enum position where)
{
	char c = *at;

	if (s->depth == MAX_LEVELS)
		return -EINVAL;
	if (s->copying != COPYING &&
	    (where == EVENT || where == LIST_METADATA || where == OBJECT)) {
		s->copying = COPYING;
		s->captured = where;
		s->captured_at = s->depth;
	}
	if (where == WHOLE || where == DROPPED || where == LIST_METADATA) {
		s->nest = (struct spec_nest){.depth = 1};
		s->state = WITHIN;
	} else {
		s->levels[s->depth++] = (struct level){.list = c == '[', .position = where};
		s->state = c == '[' ? VALUE_OR_END : KEY_OR_END;
	}
	copy(s, at, 1);
	return 0;
}

static int close_level(struct spec_split *s, const char *at)
{
	if (top(s)->list != (*at == ']'))
		return -EINVAL;
	copy(s, at, 1);
	s->depth--;
	return value_done(s);
}

static bool is_literal(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '-' || c == '+' || c == '.';
}

/* True if the value at POSITION may begin with C. In a LIST, some values must be maps or lists. */
static bool fits(struct spec_split *s, char c, enum position position)
{
	if (position == ITEMS) {
		bool again = s->has_items;

		s->has_items = true;
		/* Go writes null for a list without items. */
		return !again && (c == '[' || c == 'n');
	}
	return c == '{' || (position != LIST_METADATA && top(s)->position != ITEMS);
}

static int begin_value(struct spec_split *s, const char *at)
{
	const struct level *level = top(s);
	enum position where = !level->list ? s->value : level->position == ITEMS ? OBJECT : WHOLE;
	char c = *at;

	if (!fits(s, c, where))
		return -EINVAL;
	if (c == '{' || c == '[')
		return open_level(s, at, where);
	if (c != '"' && !is_literal(c))
		return -EINVAL;
	s->state = c == '"' ? STRING : LITERAL;
	s->in_key = false;
	copy(s, at, 1);
	return 0;
}

static int begin_key(struct spec_split *s, const char *at)
{
	s->key_at = s->out_len + s->run_len;
	if (s->copying == COPYING && top(s)->some)
		copy(s, s->comma, 1);
	s->in_key = true;
	s->key_len = 0;
	s->state = STRING;
	copy(s, at, 1);
	return 0;
}

static int next_member(struct spec_split *s, const char *at)
{
	if (!top(s)->list) {
		s->state = KEY;
		s->comma = at; /* begin_key copies this comma if an earlier member was copied */
		return 0;
	}
	s->state = VALUE;
	copy(s, at, 1);
	return 0;
}

/* Handle a character outside strings, literals and white space. */
static int structure(struct spec_split *s, const char *at)
{
	enum position document = s->form == SPEC_SPLIT_LIST ? LIST : EVENT;
	char c = *at;

	switch (s->state) {
	case TOP:
		return c == '{' ? open_level(s, at, document) : -EINVAL;
	case VALUE_OR_END:
		return c == ']' ? close_level(s, at) : begin_value(s, at);
	case VALUE:
		return begin_value(s, at);
	case KEY_OR_END:
		if (c == '}')
			return close_level(s, at);
		return c == '"' ? begin_key(s, at) : -EINVAL;
	case KEY:
		return c == '"' ? begin_key(s, at) : -EINVAL;
	case COLON:
		s->state = VALUE;
		copy(s, at, 1);
		return c == ':' ? 0 : -EINVAL;
	case NEXT:
		if (c == ',')
			return next_member(s, at);
		return c == '}' || c == ']' ? close_level(s, at) : -EINVAL;
	default:
		return -EINVAL;
	}
}

/* --- runs of bytes --- */

static int string_end(struct spec_split *s)
{
	if (!s->in_key)
		return value_done(s);
	s->state = COLON;
	s->value = member(s, top(s)->position);
	if (s->copying != COPYING || s->value != DROPPED)
		return 0;
	/* The dropped member's key may already be in the run or in OUT, so remove it. */
	if (!s->wrong && s->key_at >= s->out_len) {
		s->run_len = s->key_at - s->out_len;
	} else if (!s->wrong) {
		s->run_len = 0;
		s->out_len = s->key_at;
	}
	s->copying = DROPPING;
	return 0;
}

static int string_bytes(struct spec_split *s, const char **p, const char *end)
{
	const char *from = *p, *to = spec_span_plain(from, end);
	int stop = to < end ? (unsigned char)*to++ : END;

	*p = to;
	if (s->in_key) {
		size_t n = (size_t)(to - from) - (stop != END);

		if (s->key_len + n <= MAX_KEY)
			memcpy(s->key + s->key_len, from, n);
		s->key_len += n;
	}
	copy(s, from, (size_t)(to - from));
	if (stop == '"')
		return string_end(s);
	if (stop == '\\')
		s->state = ESCAPE;
	return stop == '\\' || stop == END ? 0 : -EINVAL;
}

static int escaped_byte(struct spec_split *s, const char **p)
{
	const char *at = (*p)++;

	if ((unsigned char)*at < 0x20)
		return -EINVAL;
	/*
	 * Members whose keys have escapes are always kept. So give this key a length that is
	 * unequal to that of any key to drop.
	 */
	s->key_len = s->in_key ? MAX_KEY + 1 : s->key_len;
	s->state = STRING;
	copy(s, at, 1);
	return 0;
}

static int literal_bytes(struct spec_split *s, const char **p, const char *end)
{
	const char *from = *p, *to = from;

	while (to < end && is_literal(*to))
		to++;
	*p = to;
	copy(s, from, (size_t)(to - from));
	return to == end ? 0 : value_done(s);
}

static int nested_bytes(struct spec_split *s, const char **p, const char *end)
{
	/* Limit the depth of values that are delivered, because a parser will read these values. */
	const size_t max = s->copying == COPYING && !s->wrong ? MAX_LEVELS - s->depth : SIZE_MAX;
	const char *from = *p;

	*p = spec_span_nest(&s->nest, max, from, end);
	copy(s, from, (size_t)(*p - from));
	if (s->nest.depth > max) {
		flush(s);
		s->wrong = -ELOOP;
	}
	return s->nest.depth > 0 ? 0 : value_done(s);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static int advance(struct spec_split *s, const char **p, const char *end)
{
	switch (s->state) {
	case STRING:
		return string_bytes(s, p, end);
	case ESCAPE:
		return escaped_byte(s, p);
	case LITERAL:
		return literal_bytes(s, p, end);
	case WITHIN:
		return nested_bytes(s, p, end);
	default: {
		const char *at = (*p)++;

		return is_space(*at) ? 0 : structure(s, at);
	}
	}
}

int spec_split_feed(struct spec_split *s, const char *bytes, size_t n)
{
	static const char comma[] = ",";
	const char *p = bytes, *end = bytes + n;

	while (!s->err && p < end)
		s->err = advance(s, &p, end);
	flush(s);
	s->comma = comma; /* S must not keep an address in BYTES */
	return s->err;
}

const char *spec_split_next(const struct spec_split *s)
{
	return s->next ? s->next : "";
}

int spec_split_end(struct spec_split *s, struct spec_list_meta *ret)
{
	if (!s->err && s->form == SPEC_SPLIT_LIST && (s->state != DONE || !s->has_items))
		s->err = -EINVAL;
	if (!s->err && ret)
		*ret = (struct spec_list_meta){
			.resource_version = s->resource_version ? s->resource_version : "",
			.next = spec_split_next(s),
		};
	return s->err;
}
