/* SPDX-License-Identifier: MIT */
/*
 * Keys of maps: the check that each is a scalar and stands once, and merge keys, with the
 * outcome that PyYAML has: what is merged comes first (of a list of maps the last first), a key
 * that is there already keeps its place and takes the later value, own keys win.
 */
#include "spec/yaml_merge.h"

#include <errno.h>
#include <json-c/linkhash.h>

static void free_table(struct lh_table **t)
{
	if (*t)
		lh_table_free(*t);
}

static int keep_on(int err)
{
	return err == -ENOMEM ? err : 0;
}

/* 0: a usable key; else the error has been added. */
static int check_key(const struct spec_yaml *key, struct spec_errors *e)
{
	if (key->type != SPEC_YAML_SCALAR)
		return spec_errors_add(e, -EINVAL, key->line, key->column, "",
				       "a key must be text, not a %s",
				       key->type == SPEC_YAML_MAP ? "map" : "list");
	if (strlen(key->text) != key->len)
		return spec_errors_add(e, -EINVAL, key->line, key->column, "",
				       "a key can't hold a NUL character");
	return 0;
}

int yaml_merge_check_keys(const struct spec_yaml *map, struct spec_errors *e)
{
	cleanup(free_table) struct lh_table *seen = NULL;

	if (map->n > 2) {
		seen = lh_kchar_table_new((int)map->n, NULL);
		if (!seen)
			return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
	}
	for (size_t i = 0; i < map->n; i += 2) {
		const struct spec_yaml *key = map->v[i], *first;
		struct lh_entry *found;
		int err = check_key(key, e);

		if (err < 0)
			return err;
		if (!seen)
			continue;
		found = lh_table_lookup_entry(seen, key->text);
		if (!found) {
			if (lh_table_insert(seen, key->text, key) < 0)
				return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
			continue;
		}
		first = lh_entry_v(found);
		err = spec_errors_add(e, -EINVAL, key->line, key->column, "",
				      "the key \"%s\" stands here twice; the first is at line %u",
				      key->text, first->line);
		if (err == -ENOMEM)
			return err;
	}
	return 0;
}

static bool is_merge_key(const struct spec_yaml *key)
{
	return key->plain && streq(key->text, "<<");
}

/* A map in the making: pairs, and where each key stands. */
struct merged {
	struct spec_yaml **v;
	size_t n;
	struct lh_table *index; /* key -> position in v */
};

/* Add a pair (taken over): a key that is known keeps its place, its value is replaced. */
static int put_pair(struct merged *m, struct spec_yaml *key, struct spec_yaml *value)
{
	struct lh_entry *found = lh_table_lookup_entry(m->index, key->text);

	if (found) {
		size_t at = (size_t)(uintptr_t)lh_entry_v(found);

		spec_yaml_free(m->v[at + 1]);
		m->v[at + 1] = value;
		spec_yaml_free(key);
		return 0;
	}
	m->v[m->n] = key;
	m->v[m->n + 1] = value;
	m->n += 2;
	if (lh_table_insert(m->index, key->text, (void *)(uintptr_t)(m->n - 2)) < 0)
		return -ENOMEM;
	return 0;
}

/* Move the pairs of FROM, which is left empty. */
static int put_all(struct merged *m, struct spec_yaml *from)
{
	int err = 0;

	for (size_t i = 0; i < from->n && err == 0; i += 2) {
		err = put_pair(m, from->v[i], from->v[i + 1]);
		from->v[i] = from->v[i + 1] = NULL;
	}
	if (err == 0)
		from->n = 0;
	return err;
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

/* What one merge key brings; the pair itself is freed. */
static int put_source(struct merged *m, struct spec_yaml *value, struct spec_errors *e)
{
	int err = 0;

	if (!is_source(value))
		return keep_on(spec_errors_add(e, -EINVAL, value->line, value->column, "<<",
					       "only a map or a list of maps can be merged; a key "
					       "that is called \"<<\" needs quotes"));
	if (value->type == SPEC_YAML_MAP)
		return put_all(m, value);
	for (size_t i = value->n; i-- > 0 && err == 0;)
		err = put_all(m, value->v[i]);
	return err;
}

static size_t count_pairs(const struct spec_yaml *map)
{
	size_t n = map->n;

	for (size_t i = 0; i < map->n; i += 2) {
		const struct spec_yaml *value = map->v[i + 1];

		if (!is_merge_key(map->v[i]))
			continue;
		n += value->n;
		for (size_t j = 0; value->type == SPEC_YAML_LIST && j < value->n; j++)
			n += value->v[j]->n;
	}
	return n;
}

static int merge_map(struct spec_yaml *map, struct spec_errors *e)
{
	cleanup(free_table) struct lh_table *index = NULL;
	size_t room = count_pairs(map);
	struct merged m;
	int err = 0;

	index = lh_kchar_table_new((int)room + 1, NULL);
	m = (struct merged){.v = calloc(room + 1, sizeof(struct spec_yaml *)), .index = index};
	if (!index || !m.v) {
		free(m.v);
		return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
	}
	for (int own = 0; own < 2; own++) {
		for (size_t i = 0; i < map->n && err == 0; i += 2) {
			struct spec_yaml *key = map->v[i];

			if (!key || (is_merge_key(key) && own) || (!is_merge_key(key) && !own))
				continue;
			if (own) {
				err = put_pair(&m, key, map->v[i + 1]);
			} else {
				err = put_source(&m, map->v[i + 1], e);
				spec_yaml_free(key);
				spec_yaml_free(map->v[i + 1]);
			}
			map->v[i] = map->v[i + 1] = NULL;
		}
	}
	for (size_t i = 0; i < map->n; i++)
		spec_yaml_free(map->v[i]);
	free(map->v);
	map->v = m.v;
	map->n = m.n;
	return err ? spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory") : 0;
}

int yaml_merge(struct spec_yaml *root, struct spec_errors *e)
{
	bool merges = false;
	int err = 0;

	for (size_t i = 0; i < root->n && err == 0; i++) {
		err = yaml_merge(root->v[i], e);
		if (root->type == SPEC_YAML_MAP && i % 2 == 0)
			merges |= is_merge_key(root->v[i]);
	}
	if (err == 0 && merges)
		err = merge_map(root, e);
	return err;
}
