/* SPDX-License-Identifier: MIT */
/*
 * Builds a tree of nodes from libyaml's events. kxfs can't use the trees that libyaml itself makes:
 * they do not show tags and quotes, and an alias and its original share nodes. kxfs checks limits
 * while the tree grows, so that a small hostile document can't make a large tree. spec_yaml_finish
 * handles tags and merge keys ("<<") later: their rules depend on the kind of document, which only
 * the caller knows.
 */
#include "spec/yaml/yaml.h"

#include <errno.h>
#include <json-c/linkhash.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/yaml/yaml_input.h"

struct anchor {
	struct spec_yaml *node;
	bool open; /* NODE is not complete yet */
};

struct yaml_reader {
	yaml_parser_t parser;
	const char *text;
	size_t len;
	struct spec_errors *e;
	struct lh_table *anchors; /* name -> struct anchor */
	size_t nodes;
	size_t expanded; /* bytes of all copies made for aliases */
};

static int read_node(struct yaml_reader *r, const yaml_event_t *event, unsigned depth,
		     struct spec_yaml **ret);

void spec_yaml_free(struct spec_yaml *root)
{
	if (!root)
		return;
	for (size_t i = 0; i < root->n; i++)
		spec_yaml_free(root->v[i]);
	free(root->v);
	free(root->text);
	free(root->tag);
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

static struct lh_table *new_table(size_t n, lh_entry_free_fn *free_entry)
{
	struct lh_table *table = lh_kchar_table_new((int)n, free_entry);

	if (!table)
		mem_out();
	return table;
}

static void insert(struct lh_table *table, const char *key, const void *value)
{
	if (lh_table_insert(table, key, value) < 0)
		mem_out();
}

define_cleanup(free_table, struct lh_table *, lh_table_free)

static int next_event(struct yaml_reader *r, yaml_event_t *event)
{
	if (yaml_parser_parse(&r->parser, event))
		return 0;
	memset(event, 0, sizeof(*event));
	return yaml_input_explain(&r->parser, r->text, r->len, r->e);
}

/* --- nodes --- */

static int new_node(struct yaml_reader *r, enum spec_yaml_type type, unsigned line, unsigned column,
		    unsigned depth, struct spec_yaml **ret)
{
	if (depth > SPEC_MAX_DEPTH && type != SPEC_YAML_SCALAR)
		return spec_errors_add(r->e, -EFBIG, line, column, "",
				       "maps and lists are nested more than %u levels deep",
				       SPEC_MAX_DEPTH);
	if (++r->nodes > SPEC_MAX_NODES)
		return spec_errors_add(r->e, -EFBIG, line, column, "",
				       "the document has more than %u values (aliases expanded)",
				       SPEC_MAX_NODES);
	*ret = new0(struct spec_yaml);
	(*ret)->type = type;
	(*ret)->line = line;
	(*ret)->column = column;
	return 0;
}

/* Append CHILD to PARENT, which takes ownership of it. */
static void append(struct spec_yaml *parent, struct spec_yaml *child)
{
	parent->v = mem_more(parent->v, parent->n, sizeof(struct spec_yaml *));
	parent->v[parent->n++] = child;
}

/*
 * If NAME is not NULL, store NODE as the node with the anchor NAME. In YAML, an anchor may replace
 * an earlier anchor with the same name.
 */
static struct anchor *set_anchor(struct yaml_reader *r, const yaml_char_t *name,
				 struct spec_yaml *node)
{
	void *found;
	struct anchor *a;

	if (!name)
		return NULL;
	if (!r->anchors)
		r->anchors = new_table(16, free_anchor);
	if (lh_table_lookup_ex(r->anchors, name, &found)) {
		a = found;
	} else {
		a = new0(struct anchor);
		insert(r->anchors, text_copy((const char *)name), a);
	}
	*a = (struct anchor){.node = node, .open = true};
	return a;
}

static int copy_node(struct yaml_reader *r, const struct spec_yaml *from, unsigned depth,
		     struct spec_yaml **ret)
{
	cleanup(spec_yaml_freep) struct spec_yaml *node = NULL;
	int err;

	r->expanded += from->len + 1 + (from->tag ? strlen(from->tag) : 0);
	if (r->expanded > SPEC_MAX_EXPANDED)
		return spec_errors_add(r->e, -EFBIG, from->line, from->column, "",
				       "the document has more than %u bytes (aliases expanded)",
				       SPEC_MAX_EXPANDED);
	err = new_node(r, from->type, from->line, from->column, depth, &node);
	if (err < 0)
		return err;
	node->plain = from->plain;
	node->tag = from->tag ? text_copy(from->tag) : NULL;
	node->len = from->len;
	if (from->text)
		node->text = mem_copy(from->text, from->len);
	for (size_t i = 0; i < from->n; i++) {
		struct spec_yaml *child = NULL;

		err = copy_node(r, from->v[i], depth + 1, &child);
		if (err < 0)
			return err;
		append(node, child);
	}
	*ret = take_ptr(node);
	return 0;
}

static int read_alias(struct yaml_reader *r, const yaml_event_t *event, unsigned depth,
		      struct spec_yaml **ret)
{
	const char *name = (const char *)event->data.alias.anchor;
	unsigned line = (unsigned)event->start_mark.line + 1;
	unsigned column = (unsigned)event->start_mark.column + 1;
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
				       "\"*%s\" refers to a node that contains this alias", name);
	return copy_node(r, a->node, depth, ret);
}

/* --- the tags of YAML's core schema ("!!str 1") --- */

/* True if the text of the scalar NODE is valid for TAG, which must not be !!str. */
static bool tag_fits(const char *tag, const struct spec_yaml *node)
{
	enum spec_yaml_value value = spec_yaml_resolve(node);

	return (streq(tag, YAML_NULL_TAG) && value == SPEC_YAML_NULL) ||
	       (streq(tag, YAML_BOOL_TAG) && value == SPEC_YAML_BOOL) ||
	       (streq(tag, YAML_INT_TAG) && value == SPEC_YAML_INT) ||
	       (streq(tag, YAML_FLOAT_TAG) && (value == SPEC_YAML_FLOAT || value == SPEC_YAML_INT));
}

/* Check NODE's tag. Also set PLAIN: with a tag, it does not depend on quotes. */
static void check_tag(struct spec_yaml *node, struct spec_errors *e)
{
	static const char *const core[] = {YAML_STR_TAG,  YAML_INT_TAG,	 YAML_FLOAT_TAG,
					   YAML_BOOL_TAG, YAML_NULL_TAG, YAML_MAP_TAG,
					   YAML_SEQ_TAG,  NULL};
	static const char prefix[] = "tag:yaml.org,2002:";
	const char *tag = node->tag;
	bool is_core;

	if (!tag)
		return;
	if (node->type == SPEC_YAML_SCALAR && streq(tag, YAML_STR_TAG)) {
		node->plain = false;
		return;
	}
	if ((node->type == SPEC_YAML_MAP && streq(tag, YAML_MAP_TAG)) ||
	    (node->type == SPEC_YAML_LIST && streq(tag, YAML_SEQ_TAG)))
		return;
	is_core = strncmp(tag, prefix, strlen(prefix)) == 0;
	if (!streq_any(tag, core)) {
		spec_errors_add(e, -EINVAL, node->line, node->column, "",
				"the tag %s%s is not supported; %s", is_core ? "!!" : "",
				is_core ? tag + strlen(prefix) : tag,
				strstr(tag, ":python/")
					? "write Python objects as JSON: json.dumps(...)"
					: "text that begins with \"!\" needs quotes");
		return;
	}
	node->plain = node->type == SPEC_YAML_SCALAR;
	if (!node->plain || !tag_fits(tag, node))
		spec_errors_add(e, -EINVAL, node->line, node->column, "",
				"the value does not fit its tag !!%s", tag + strlen(prefix));
}

static void check_tags(struct spec_yaml *root, struct spec_errors *e)
{
	check_tag(root, e);
	for (size_t i = 0; i < root->n; i++)
		check_tags(root->v[i], e);
}

/* --- keys --- */

static bool is_merge_key(const struct spec_yaml *key)
{
	return key->plain && !key->tag && streq(key->text, "<<");
}

/*
 * Check the keys of MAP, and add errors to E. Stop with an error at the first key that is not text.
 * Report duplicate keys, but return 0 nevertheless.
 */
static int check_keys(const struct spec_yaml *map, struct spec_errors *e)
{
	cleanup(free_table) struct lh_table *seen = new_table(map->n + 1, NULL);

	for (size_t i = 0; i < map->n; i += 2) {
		const struct spec_yaml *key = map->v[i];
		const struct lh_entry *found;

		if (key->type != SPEC_YAML_SCALAR)
			return spec_errors_add(e, -EINVAL, key->line, key->column, "",
					       "a key must be text, not a %s",
					       key->type == SPEC_YAML_MAP ? "map" : "list");
		if (strlen(key->text) != key->len)
			return spec_errors_add(e, -EINVAL, key->line, key->column, "",
					       "a key can't contain a NUL character");
		if (is_merge_key(key))
			continue;
		found = lh_table_lookup_entry(seen, key->text);
		if (!found)
			insert(seen, key->text, key);
		else
			spec_errors_add(e, -EINVAL, key->line, key->column, "",
					"the key \"%s\" is given twice; the first is at line %u",
					key->text,
					((const struct spec_yaml *)lh_entry_v(found))->line);
	}
	return 0;
}

/*
 * A new map that replaces a map with merge keys. Pairs are added one by one. If a key is added
 * again, its pair keeps its position, but gets the later value. If a merge key has several maps,
 * the last map is added first, so that the first map takes precedence. With SPEC_YAML_CORE, as in
 * PyYAML, all merged pairs are added before the map's own pairs, which therefore take precedence.
 * With SPEC_YAML_KUBECTL, pairs are added in the order of the document. So merged pairs replace own
 * pairs before the merge key, and own pairs after it replace merged pairs.
 */
struct yaml_merged {
	struct spec_yaml *map;
	struct lh_table *index; /* position of each key in map->v */
};

/* Add a pair to M, or replace the value of its key. Take ownership of KEY and VALUE. */
static void put_pair(struct yaml_merged *m, struct spec_yaml *key, struct spec_yaml *value)
{
	struct lh_entry *found = lh_table_lookup_entry(m->index, key->text);
	size_t at = found ? (size_t)(uintptr_t)lh_entry_v(found) : m->map->n;

	if (found) {
		spec_yaml_free(m->map->v[at + 1]);
		m->map->v[at + 1] = value;
		spec_yaml_free(key);
		return;
	}
	append(m->map, key);
	append(m->map, value);
	insert(m->index, key->text, (void *)(uintptr_t)at);
}

static void put_all(struct yaml_merged *m, struct spec_yaml *from)
{
	for (size_t i = 0; i < from->n; i += 2)
		put_pair(m, from->v[i], from->v[i + 1]);
	from->n = 0;
}

static bool is_source(const struct spec_yaml *value)
{
	if (value->type != SPEC_YAML_LIST)
		return value->type == SPEC_YAML_MAP;
	for (size_t i = 0; i < value->n; i++) {
		if (value->v[i]->type != SPEC_YAML_MAP)
			return false;
	}
	return true;
}

static void put_source(struct yaml_merged *m, struct spec_yaml *value, struct spec_errors *e)
{
	if (!is_source(value))
		spec_errors_add(e, -EINVAL, value->line, value->column, "<<",
				"only a map or a list of maps can be merged; a key that is "
				"called \"<<\" needs quotes");
	else if (value->type == SPEC_YAML_MAP)
		put_all(m, value);
	else
		for (size_t k = value->n; k-- > 0;)
			put_all(m, value->v[k]);
}

static void merge_map(struct spec_yaml *map, enum spec_yaml_rules rules, struct spec_errors *e)
{
	cleanup(free_table) struct lh_table *index = new_table(map->n + 1, NULL);
	struct spec_yaml old = *map;
	struct yaml_merged m = {.map = map, .index = index};

	map->v = NULL;
	map->n = 0;
	for (bool own = rules == SPEC_YAML_KUBECTL;; own = true) {
		for (size_t i = 0; i < old.n; i += 2) {
			struct spec_yaml *key = old.v[i], *value = old.v[i + 1];

			if (!key || (!own && !is_merge_key(key)))
				continue;
			old.v[i] = NULL;
			if (is_merge_key(key)) {
				put_source(&m, value, e);
				spec_yaml_free(value);
				spec_yaml_free(key);
			} else {
				put_pair(&m, key, value);
			}
		}
		if (own)
			break;
	}
	free(old.v);
}

static void merge(struct spec_yaml *root, enum spec_yaml_rules rules, struct spec_errors *e)
{
	bool merges = false;

	for (size_t i = 0; i < root->n; i++) {
		merge(root->v[i], rules, e);
		merges |= root->type == SPEC_YAML_MAP && i % 2 == 0 && is_merge_key(root->v[i]);
	}
	if (merges)
		merge_map(root, rules, e);
}

/* --- events --- */

static void set_tag(struct spec_yaml *node, const yaml_char_t *tag)
{
	node->tag = tag ? text_copy((const char *)tag) : NULL;
}

static int read_collection(struct yaml_reader *r, const yaml_event_t *start, struct spec_yaml *node,
			   unsigned depth)
{
	bool map = node->type == SPEC_YAML_MAP;
	struct anchor *anchor;

	set_tag(node, map ? start->data.mapping_start.tag : start->data.sequence_start.tag);
	anchor = set_anchor(r,
			    map ? start->data.mapping_start.anchor
				: start->data.sequence_start.anchor,
			    node);
	for (;;) {
		cleanup(free_event) yaml_event_t event = {0};
		struct spec_yaml *child = NULL;
		int err = next_event(r, &event);

		if (err == 0 &&
		    event.type == (map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT))
			break;
		if (err == 0)
			err = read_node(r, &event, depth + 1, &child);
		if (err < 0)
			return err;
		append(node, child);
	}
	if (anchor && anchor->node == node)
		anchor->open = false;
	return map ? check_keys(node, r->e) : 0;
}

static int read_node(struct yaml_reader *r, const yaml_event_t *event, unsigned depth,
		     struct spec_yaml **ret)
{
	cleanup(spec_yaml_freep) struct spec_yaml *node = NULL;
	enum spec_yaml_type type = event->type == YAML_MAPPING_START_EVENT    ? SPEC_YAML_MAP
				   : event->type == YAML_SEQUENCE_START_EVENT ? SPEC_YAML_LIST
									      : SPEC_YAML_SCALAR;
	struct anchor *anchor;
	int err;

	if (event->type == YAML_ALIAS_EVENT)
		return read_alias(r, event, depth, ret);
	err = new_node(r, type, (unsigned)event->start_mark.line + 1,
		       (unsigned)event->start_mark.column + 1, depth, &node);
	if (err < 0)
		return err;
	if (type == SPEC_YAML_SCALAR) {
		anchor = set_anchor(r, event->data.scalar.anchor, node);
		if (anchor)
			anchor->open = false;
		node->text = mem_copy(event->data.scalar.value, event->data.scalar.length);
		node->len = event->data.scalar.length;
		node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
		set_tag(node, event->data.scalar.tag);
	} else {
		err = read_collection(r, event, node, depth);
	}
	if (err == 0)
		*ret = take_ptr(node);
	return err;
}

static bool is_nothing(const struct spec_yaml *node)
{
	return !node->tag && spec_yaml_is_null(node);
}

static void forget_anchors(struct yaml_reader *r)
{
	if (r->anchors)
		lh_table_free(r->anchors);
	r->anchors = NULL;
}

static int read_stream(struct yaml_reader *r, struct spec_yaml *documents)
{
	for (;;) {
		cleanup(free_event) yaml_event_t event = {0};
		struct spec_yaml *root = NULL;
		int err = next_event(r, &event);

		if (err < 0 || event.type == YAML_STREAM_END_EVENT)
			return err;
		if (event.type == YAML_STREAM_START_EVENT ||
		    event.type == YAML_DOCUMENT_START_EVENT ||
		    event.type == YAML_DOCUMENT_END_EVENT)
			continue;
		err = read_node(r, &event, 1, &root);
		if (err < 0)
			return err;
		if (is_nothing(root))
			spec_yaml_free(root);
		else
			append(documents, root);
		forget_anchors(r);
	}
}

static void free_reader(struct yaml_reader *r)
{
	yaml_parser_delete(&r->parser);
	forget_anchors(r);
}

/*
 * Check TEXT, and set R->text and R->len to the text for libyaml. *RET is memory for this text,
 * which the caller must free after libyaml's parser; NULL if there is none.
 */
static int set_input(struct yaml_reader *r, const char *text, size_t len, char **ret)
{
	int err = yaml_input_begin(&text, &len, r->e);

	if (err < 0)
		return err;
	*ret = yaml_input_from_json(text, &len);
	r->text = *ret ? *ret : text;
	r->len = len;
	return yaml_input_check(r->text, r->len, r->e);
}

int spec_yaml_check(const char *text, size_t len, struct spec_errors *e)
{
	cleanup_free char *adapted = NULL;

	return set_input(&(struct yaml_reader){.e = e}, text, len, &adapted);
}

int spec_yaml_parse_all(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e)
{
	cleanup(spec_yaml_freep) struct spec_yaml *documents = new0(struct spec_yaml);
	cleanup_free char *adapted = NULL;
	cleanup(free_reader) struct yaml_reader r = {.e = e};
	size_t before = e->n + e->dropped;
	int err;

	*ret = NULL;
	documents->type = SPEC_YAML_LIST;
	err = set_input(&r, text, len, &adapted);
	if (err < 0)
		return err;
	if (!yaml_parser_initialize(&r.parser))
		mem_out();
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)r.text, r.len);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	err = read_stream(&r, documents);
	if (err < 0)
		return err;
	if (documents->n == 0)
		return spec_errors_add(e, -EINVAL, 0, 0, "", "the document is empty");
	*ret = take_ptr(documents);
	return e->n + e->dropped > before ? e->err : 0;
}

void spec_yaml_finish(struct spec_yaml *root, enum spec_yaml_rules rules, struct spec_errors *e)
{
	if (rules == SPEC_YAML_CORE)
		check_tags(root, e);
	merge(root, rules, e);
}

int spec_yaml_parse(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e)
{
	cleanup(spec_yaml_freep) struct spec_yaml *documents = NULL;
	size_t before = e->n + e->dropped;
	int err = spec_yaml_parse_all(text, len, &documents, e);

	*ret = NULL;
	if (!documents)
		return err;
	if (documents->n > 1)
		return spec_errors_add(
			e, -EINVAL, documents->v[1]->line, documents->v[1]->column, "",
			"a second document begins here; write one document per file");
	*ret = spec_yaml_take_only(documents);
	spec_yaml_finish(*ret, SPEC_YAML_CORE, e);
	return e->n + e->dropped > before ? e->err : 0;
}

struct spec_yaml *spec_yaml_take_only(struct spec_yaml *documents)
{
	documents->n = 0;
	return documents->v[0];
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

/* --- paths such as "roles[0].env.A", for errors that are found after parsing --- */

/*
 * If PATH begins with KEY, written as "key", ".key" or "[\"key\"]", return the length of this step.
 * Otherwise return 0.
 */
static size_t match_key(const char *path, const char *key)
{
	size_t n = strlen(key);

	if (strncmp(path, "[\"", 2) == 0)
		return strncmp(path + 2, key, n) == 0 && strncmp(path + 2 + n, "\"]", 2) == 0
			       ? n + 4
			       : 0;
	if (*path == '.')
		return strncmp(path + 1, key, n) == 0 && strchr(".[", path[1 + n]) ? n + 1 : 0;
	return strncmp(path, key, n) == 0 && strchr(".[", path[n]) ? n : 0;
}

/*
 * Return the child of NODE that the first step of *PATH names, and move *PATH past this step.
 * Return NULL if there is no such child.
 */
static const struct spec_yaml *step(const struct spec_yaml *node, const char **path)
{
	if (node->type == SPEC_YAML_LIST && **path == '[') {
		char *end;
		size_t i = strtoul(*path + 1, &end, 10);

		*path = *end ? end + 1 : end;
		return i < node->n ? node->v[i] : NULL;
	}
	for (size_t i = 0; node->type == SPEC_YAML_MAP && i < node->n; i += 2) {
		size_t n = match_key(*path, node->v[i]->text);

		if (n > 0) {
			*path += n;
			return node->v[i + 1];
		}
	}
	return NULL;
}

bool spec_yaml_find(void *data, const char *path, unsigned *ret_line, unsigned *ret_column)
{
	const struct spec_yaml *root = data, *node = root, *next;

	while (*path && (next = step(node, &path)))
		node = next;
	*ret_line = node->line;
	*ret_column = node->column;
	return node != root;
}
