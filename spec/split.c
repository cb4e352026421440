/* SPDX-License-Identifier: MIT */
/*
 * One pass over the bytes, by a machine that knows what may come next (the state), where it stands
 * (a stack of levels, each with its place in an object), and whether what it reads is kept.
 */
#include "spec/split.h"

#include <errno.h>

#include "spec/limits.h"
#include "spec/split_bytes.h"
#include "spec/split_form.h"

#define MAX_LEVELS (2 * SPEC_MAX_DEPTH)
#define MAX_KEY	   24	      /* longer than all keys that matter */
#define END	   (-1)	      /* no byte is left */
#define KEEP_ROOM  (1u << 20) /* a larger buffer is given back after use */

enum state {
	TOP, /* the first bracket of a document */
	VALUE,
	VALUE_OR_END, /* after "[" */
	KEY,
	KEY_OR_END, /* after "{" */
	COLON,
	NEXT, /* a comma or the end of the level */
	STRING,
	ESCAPE,	 /* behind a backslash */
	LITERAL, /* a number, true, false, null */
	DONE,	 /* a LIST is over */
};

struct level {
	bool list;
	bool some; /* a member was kept */
	enum split_place place;
};

struct spec_split {
	enum spec_split_form form;
	bool drop_env;
	spec_split_fn fn;
	void *data;

	int err;
	enum state state;
	struct level levels[MAX_LEVELS];
	unsigned depth;
	bool in_key;
	char key[MAX_KEY];
	size_t key_len; /* may be larger than MAX_KEY: a long key */

	bool keep;	      /* what is read goes to OUT */
	unsigned captured_at; /* depth around what is kept */
	unsigned dropped_at;  /* depth around what is dropped within that; 0: nothing */
	struct split_bytes out;
	size_t key_at; /* where the present member begins in OUT */

	bool has_items, has_metadata;
	char *resource_version, *next;
};

struct spec_split *spec_split_new(enum spec_split_form form, bool drop_env, spec_split_fn fn,
				  void *data)
{
	struct spec_split *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->form = form;
	s->drop_env = drop_env;
	s->fn = fn;
	s->data = data;
	return s;
}

void spec_split_free(struct spec_split *s)
{
	if (!s)
		return;
	split_bytes_free(&s->out);
	free(s->resource_version);
	free(s->next);
	free(s);
}

/* --- what is kept --------------------------------------------------------------------------- */

static int keep(struct spec_split *s, const char *bytes, size_t n)
{
	return s->keep ? split_bytes_add(&s->out, bytes, n, SPEC_MAX_WATCHED) : 0;
}

static void capture(struct spec_split *s)
{
	s->keep = true;
	s->captured_at = s->depth;
}

static int take_metadata(struct spec_split *s)
{
	if (s->has_metadata)
		return -EINVAL;
	s->has_metadata = true;
	return split_list_metadata(s->out.v, &s->resource_version, &s->next);
}

/* What was captured is whole. PLACE is what it was. */
static int deliver(struct spec_split *s, enum split_place place)
{
	int err;

	s->keep = false;
	err = place == SPLIT_LIST_METADATA ? take_metadata(s)
					   : s->fn(s->data, s->out.v, s->out.len);
	split_bytes_reset(&s->out, KEEP_ROOM);
	return err;
}

/* --- structure ------------------------------------------------------------------------------ */

static struct level *top(struct spec_split *s)
{
	return &s->levels[s->depth - 1];
}

/* Where the next value of the present level stands. */
static enum split_place way(struct spec_split *s)
{
	const struct level *l = top(s);
	enum split_place ret = split_place_of(l->place, l->list ? NULL : s->key, s->key_len);

	return ret == SPLIT_SPEC && !s->drop_env ? SPLIT_OTHER : ret;
}

/* A value has ended; the depth is that around it. */
static int value_done(struct spec_split *s, enum split_place place)
{
	s->state = NEXT;
	if (s->dropped_at > 0 && s->dropped_at == s->depth) {
		s->dropped_at = 0;
		s->keep = true;
		return 0;
	}
	if (s->depth > 0)
		top(s)->some = true;
	else
		s->state = s->form == SPEC_SPLIT_LIST ? DONE : TOP;
	return s->keep && s->captured_at == s->depth ? deliver(s, place) : 0;
}

static int open_level(struct spec_split *s, char c, enum split_place place)
{
	if (s->depth == MAX_LEVELS)
		return -EINVAL;
	if (place == SPLIT_EVENT || place == SPLIT_LIST_METADATA ||
	    (place == SPLIT_OBJECT && !s->keep))
		capture(s);
	s->levels[s->depth++] = (struct level){.list = c == '[', .place = place};
	s->state = c == '[' ? VALUE_OR_END : KEY_OR_END;
	return keep(s, &c, 1);
}

static int close_level(struct spec_split *s, char c)
{
	enum split_place place = top(s)->place;
	int err;

	if (top(s)->list != (c == ']'))
		return -EINVAL;
	err = keep(s, &c, 1);
	s->depth--;
	return err ? err : value_done(s, place);
}

static bool is_literal(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '-' || c == '+' || c == '.';
}

/* Does a value that begins with C fit the form of a LIST, at PLACE? */
static bool fits(struct spec_split *s, char c, enum split_place place)
{
	if (place == SPLIT_ITEMS) {
		bool again = s->has_items;

		s->has_items = true;
		/* Go writes null for a list without items. */
		return !again && (c == '[' || c == 'n');
	}
	return c == '{' || (place != SPLIT_LIST_METADATA && top(s)->place != SPLIT_ITEMS);
}

static int begin_value(struct spec_split *s, char c)
{
	enum split_place place = way(s);

	if (!fits(s, c, place))
		return -EINVAL;
	if (c == '{' || c == '[')
		return open_level(s, c, place);
	if (c != '"' && !is_literal(c))
		return -EINVAL;
	s->state = c == '"' ? STRING : LITERAL;
	s->in_key = false;
	return keep(s, &c, 1);
}

static int begin_key(struct spec_split *s)
{
	int err = 0;

	s->key_at = s->out.len;
	if (top(s)->some)
		err = keep(s, ",", 1);
	s->in_key = true;
	s->key_len = 0;
	s->state = STRING;
	return err ? err : keep(s, "\"", 1);
}

static void end_key(struct spec_split *s)
{
	s->state = COLON;
	if (!s->keep || way(s) != SPLIT_DROPPED)
		return;
	s->out.len = s->key_at;
	s->keep = false;
	s->dropped_at = s->depth;
}

static int next_member(struct spec_split *s)
{
	if (!top(s)->list) {
		s->state = KEY; /* which writes the comma, if it is kept */
		return 0;
	}
	s->state = VALUE;
	return keep(s, ",", 1);
}

static int begin_document(struct spec_split *s, char c)
{
	return c == '{' ? open_level(s, c, s->form == SPEC_SPLIT_LIST ? SPLIT_LIST : SPLIT_EVENT)
			: -EINVAL;
}

/* A character outside strings, literals and white space. */
static int structure(struct spec_split *s, char c)
{
	switch (s->state) {
	case TOP:
		return begin_document(s, c);
	case VALUE_OR_END:
		return c == ']' ? close_level(s, c) : begin_value(s, c);
	case VALUE:
		return begin_value(s, c);
	case KEY_OR_END:
		if (c == '}')
			return close_level(s, c);
		return c == '"' ? begin_key(s) : -EINVAL;
	case KEY:
		return c == '"' ? begin_key(s) : -EINVAL;
	case COLON:
		s->state = VALUE;
		return c == ':' ? keep(s, &c, 1) : -EINVAL;
	case NEXT:
		if (c == ',')
			return next_member(s);
		return c == '}' || c == ']' ? close_level(s, c) : -EINVAL;
	default:
		return -EINVAL;
	}
}

/* --- runs of bytes -------------------------------------------------------------------------- */

static void note_key(struct spec_split *s, const char *bytes, size_t n)
{
	if (s->key_len + n <= MAX_KEY)
		memcpy(s->key + s->key_len, bytes, n);
	s->key_len += n;
}

/* Where the run of plain characters ends that begins at P. */
static const char *string_run(const char *p, const char *end)
{
	while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
		p++;
	return p;
}

static int string_end(struct spec_split *s)
{
	if (!s->in_key)
		return value_done(s, SPLIT_OTHER);
	end_key(s);
	return 0;
}

static int string_bytes(struct spec_split *s, const char **p, const char *end)
{
	const char *from = *p, *to = string_run(from, end);
	int stop = to < end ? (unsigned char)*to++ : END;
	int err;

	*p = to;
	if (s->in_key)
		note_key(s, from, (size_t)(to - from) - (stop != END));
	err = keep(s, from, (size_t)(to - from));
	if (err)
		return err;
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
	/* A key with escapes is none that matters. */
	s->key_len = s->in_key ? MAX_KEY + 1 : s->key_len;
	s->state = STRING;
	return keep(s, at, 1);
}

static int literal_bytes(struct spec_split *s, const char **p, const char *end)
{
	const char *from = *p, *to = from;
	int err;

	while (to < end && is_literal(*to))
		to++;
	*p = to;
	err = keep(s, from, (size_t)(to - from));
	return err || to == end ? err : value_done(s, SPLIT_OTHER);
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
	default: {
		char c = *(*p)++;

		return is_space(c) ? 0 : structure(s, c);
	}
	}
}

int spec_split_feed(struct spec_split *s, const char *bytes, size_t n)
{
	const char *p = bytes, *end = bytes + n;

	while (!s->err && p < end)
		s->err = advance(s, &p, end);
	return s->err;
}

int spec_split_end(struct spec_split *s, struct spec_list_meta *ret)
{
	if (!s->err && s->form == SPEC_SPLIT_LIST && (s->state != DONE || !s->has_items))
		s->err = -EINVAL;
	if (!s->err && ret)
		*ret = (struct spec_list_meta){
			.resource_version = s->resource_version ? s->resource_version : "",
			.next = s->next ? s->next : "",
		};
	return s->err;
}
