/* SPDX-License-Identifier: MIT */
/*
 * Reads a document into a tree of nodes. libyaml scans and parses; this file builds the tree
 * from its events, because libyaml's own tree resolves nothing lazily, drops what we must check
 * and expands aliases by reference. Bounds are counted while the tree grows, so that a small
 * hostile document can't make a large one.
 */
#include "spec/yaml.h"

#include <errno.h>
#include <json-c/linkhash.h>

#include "spec/limits.h"
#include "spec/yaml_input.h"
#include "spec/yaml_merge.h"
#include "spec/yaml_tag.h"

struct anchor {
	struct spec_yaml *node;
	bool open; /* its node is not complete yet */
};

struct reader {
	yaml_parser_t parser;
	const char *text;
	size_t len;
	struct spec_errors *e;
	struct lh_table *anchors; /* name -> struct anchor; NULL until there is one */
	size_t nodes;
	size_t expanded; /* bytes made by aliases */
};

static int read_node(struct reader *r, const yaml_event_t *event, unsigned depth,
		     struct spec_yaml **ret);

void spec_yaml_free(struct spec_yaml *root)
{
	if (!root)
		return;
	for (size_t i = 0; i < root->n; i++)
		spec_yaml_free(root->v[i]);
	free(root->v);
	free(root->text);
	free(root);
}

static void free_event(yaml_event_t *event)
{
	yaml_event_delete(event);
}

static void free_anchor(struct lh_entry *entry)
{
	free(lh_entry_k(entry));
	free(lh_entry_v(entry));
}

static void free_reader(struct reader *r)
{
	yaml_parser_delete(&r->parser);
	if (r->anchors)
		lh_table_free(r->anchors);
}

static int out_of_memory(struct reader *r)
{
	return spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory");
}

static int next_event(struct reader *r, yaml_event_t *event)
{
	int err;

	if (yaml_parser_parse(&r->parser, event))
		return 0;
	memset(event, 0, sizeof(*event));
	err = yaml_input_explain(&r->parser, r->text, r->len, r->e);
	return err < 0 ? err : -EINVAL;
}

static int new_node(struct reader *r, enum spec_yaml_type type, unsigned line, unsigned column,
		    unsigned depth, struct spec_yaml **ret)
{
	if (depth > SPEC_MAX_DEPTH && type != SPEC_YAML_SCALAR)
		return spec_errors_add(r->e, -EFBIG, line, column, "",
				       "maps and lists are nested more than %u deep",
				       SPEC_MAX_DEPTH);
	if (++r->nodes > SPEC_MAX_NODES)
		return spec_errors_add(r->e, -EFBIG, line, column, "",
				       "the document has more than %u values (aliases expanded)",
				       SPEC_MAX_NODES);
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return out_of_memory(r);
	(*ret)->type = type;
	(*ret)->line = line;
	(*ret)->column = column;
	return 0;
}

static int set_text(struct reader *r, struct spec_yaml *node, const void *text, size_t len)
{
	node->text = malloc(len + 1);
	if (!node->text)
		return out_of_memory(r);
	memcpy(node->text, text, len);
	node->text[len] = '\0';
	node->len = len;
	return 0;
}

/* Append CHILD (taken over, also on failure). The array doubles at powers of two. */
static int append(struct reader *r, struct spec_yaml *parent, struct spec_yaml *child)
{
	size_t n = parent->n;

	if ((n & (n - 1)) == 0) {
		struct spec_yaml **v =
			reallocarray(parent->v, n ? 2 * n : 1, sizeof(struct spec_yaml *));

		if (!v) {
			spec_yaml_free(child);
			return out_of_memory(r);
		}
		parent->v = v;
	}
	parent->v[parent->n++] = child;
	return 0;
}

/* Remember NODE under NAME; a later anchor of the same name takes its place, as YAML says. */
static int set_anchor(struct reader *r, const yaml_char_t *name, struct spec_yaml *node,
		      struct anchor **ret)
{
	cleanup_free char *key = NULL;
	void *found;
	struct anchor *a;

	if (!name)
		return 0;
	if (!r->anchors)
		r->anchors = lh_kchar_table_new(16, free_anchor);
	if (!r->anchors)
		return out_of_memory(r);
	if (lh_table_lookup_ex(r->anchors, name, &found)) {
		a = found;
	} else {
		key = strdup((const char *)name);
		a = calloc(1, sizeof(*a));
		if (!key || !a || lh_table_insert(r->anchors, key, a) < 0) {
			free(a);
			return out_of_memory(r);
		}
		key = NULL; /* the table's */
	}
	*a = (struct anchor){.node = node, .open = true};
	*ret = a;
	return 0;
}

static int copy_node(struct reader *r, const struct spec_yaml *from, unsigned depth,
		     struct spec_yaml **ret)
{
	cleanup(spec_yaml_freep) struct spec_yaml *node = NULL;
	int err;

	r->expanded += from->len + 1;
	if (r->expanded > SPEC_MAX_EXPANDED)
		return spec_errors_add(r->e, -EFBIG, from->line, from->column, "",
				       "aliases (\"*NAME\") expand this to more than %u bytes",
				       SPEC_MAX_EXPANDED);
	err = new_node(r, from->type, from->line, from->column, depth, &node);
	if (err < 0)
		return err;
	node->plain = from->plain;
	if (from->type == SPEC_YAML_SCALAR)
		err = set_text(r, node, from->text, from->len);
	for (size_t i = 0; i < from->n && err == 0; i++) {
		struct spec_yaml *child = NULL;

		err = copy_node(r, from->v[i], depth + 1, &child);
		if (err == 0)
			err = append(r, node, child);
	}
	if (err == 0)
		*ret = take_ptr(node);
	return err;
}

static int read_alias(struct reader *r, const yaml_event_t *event, unsigned depth,
		      struct spec_yaml **ret)
{
	unsigned line = (unsigned)event->start_mark.line + 1;
	unsigned column = (unsigned)event->start_mark.column + 1;
	const char *name = (const char *)event->data.alias.anchor;
	const struct anchor *a;
	void *found;

	if (!r->anchors || !lh_table_lookup_ex(r->anchors, name, &found))
		return spec_errors_add(
			r->e, -EINVAL, line, column, "",
			"there is no \"&%s\" before this \"*%s\"; text that begins with "
			"\"*\" needs quotes",
			name, name);
	a = found;
	if (a->open)
		return spec_errors_add(r->e, -EINVAL, line, column, "",
				       "\"*%s\" stands inside of what it repeats", name);
	return copy_node(r, a->node, depth, ret);
}

static int read_scalar(struct reader *r, const yaml_event_t *event, struct spec_yaml *node)
{
	struct anchor *anchor = NULL;
	int err = set_text(r, node, event->data.scalar.value, event->data.scalar.length);

	if (err < 0)
		return err;
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	err = set_anchor(r, event->data.scalar.anchor, node, &anchor);
	if (err < 0)
		return err;
	if (anchor)
		anchor->open = false;
	return yaml_tag_check(node, (const char *)event->data.scalar.tag, r->e);
}

/* The children of NODE, up to the event END. */
static int read_children(struct reader *r, struct spec_yaml *node, yaml_event_type_t end,
			 unsigned depth)
{
	for (;;) {
		cleanup(free_event) yaml_event_t event = {0};
		struct spec_yaml *child = NULL;
		int err = next_event(r, &event);

		if (err < 0)
			return err;
		if (event.type == end)
			return 0;
		err = read_node(r, &event, depth + 1, &child);
		if (err == 0)
			err = append(r, node, child);
		if (err < 0)
			return err;
	}
}

static int read_collection(struct reader *r, const yaml_event_t *event, struct spec_yaml *node,
			   unsigned depth)
{
	bool map = event->type == YAML_MAPPING_START_EVENT;
	struct anchor *anchor = NULL;
	int err;

	err = yaml_tag_check(node,
			     (const char *)(map ? event->data.mapping_start.tag
						: event->data.sequence_start.tag),
			     r->e);
	if (err < 0)
		return err;
	err = set_anchor(r,
			 map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
			 node, &anchor);
	if (err < 0)
		return err;
	err = read_children(r, node, map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT, depth);
	if (err < 0)
		return err;
	if (anchor && anchor->node == node)
		anchor->open = false;
	return map ? yaml_merge_check_keys(node, r->e) : 0;
}

static int read_node(struct reader *r, const yaml_event_t *event, unsigned depth,
		     struct spec_yaml **ret)
{
	cleanup(spec_yaml_freep) struct spec_yaml *node = NULL;
	enum spec_yaml_type type = event->type == YAML_MAPPING_START_EVENT    ? SPEC_YAML_MAP
				   : event->type == YAML_SEQUENCE_START_EVENT ? SPEC_YAML_LIST
									      : SPEC_YAML_SCALAR;
	int err;

	if (event->type == YAML_ALIAS_EVENT)
		return read_alias(r, event, depth, ret);
	err = new_node(r, type, (unsigned)event->start_mark.line + 1,
		       (unsigned)event->start_mark.column + 1, depth, &node);
	if (err < 0)
		return err;
	err = type == SPEC_YAML_SCALAR ? read_scalar(r, event, node)
				       : read_collection(r, event, node, depth);
	if (err == 0)
		*ret = take_ptr(node);
	return err;
}

/* The stream: its start, one document, its end. */
static int read_stream(struct reader *r, struct spec_yaml **ret)
{
	for (;;) {
		cleanup(free_event) yaml_event_t event = {0};
		int err = next_event(r, &event);

		if (err < 0)
			return err;
		switch (event.type) {
		case YAML_STREAM_END_EVENT:
			if (*ret &&
			    ((*ret)->type != SPEC_YAML_SCALAR || (*ret)->len || !(*ret)->plain))
				return 0;
			return spec_errors_add(r->e, -EINVAL, 0, 0, "", "the document is empty");
		case YAML_STREAM_START_EVENT:
		case YAML_DOCUMENT_END_EVENT:
			break;
		case YAML_DOCUMENT_START_EVENT:
			if (*ret)
				return spec_errors_add(r->e, -EINVAL,
						       (unsigned)event.start_mark.line + 1,
						       (unsigned)event.start_mark.column + 1, "",
						       "a second document begins here; write one "
						       "document a file");
			break;
		default:
			err = read_node(r, &event, 1, ret);
			if (err < 0)
				return err;
		}
	}
}

int spec_yaml_parse(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	cleanup_free char *adapted = NULL;
	cleanup(free_reader) struct reader r = {.e = e};
	size_t before = e->n + e->dropped;
	int err;

	*ret = NULL;
	err = yaml_input_begin(&text, &len, e);
	if (err < 0)
		return err;
	if (yaml_input_from_json(text, len, &adapted, &len) < 0)
		return out_of_memory(&r);
	r.text = adapted ? adapted : text;
	err = yaml_input_check(r.text, len, e);
	if (err < 0)
		return err;
	if (!yaml_parser_initialize(&r.parser))
		return out_of_memory(&r);
	r.len = len;
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)r.text, len);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	err = read_stream(&r, &root);
	if (err == 0)
		err = yaml_merge(root, e);
	if (err < 0)
		return err;
	*ret = take_ptr(root);
	return e->n + e->dropped > before ? e->err : 0;
}

const struct spec_yaml *spec_yaml_get(const struct spec_yaml *m, const char *key)
{
	if (m->type != SPEC_YAML_MAP)
		return NULL;
	for (size_t i = 0; i < m->n; i += 2) {
		if (m->v[i]->type == SPEC_YAML_SCALAR && streq(m->v[i]->text, key))
			return m->v[i + 1];
	}
	return NULL;
}
