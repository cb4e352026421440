/* SPDX-License-Identifier: MIT */
/*
 * Finds the node of a path such as "roles[0].env.A" in a document, for errors that are found after
 * parsing.
 */
#include "spec/yaml/yaml.h"

/*
 * Return how many bytes of PATH are KEY, as "key", ".key" or "[\"key\"]"; 0 if PATH does not begin
 * with it.
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
 * Return the node that the first step of *PATH names below NODE, and move *PATH after that step.
 * NULL if there is none.
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
