/* SPDX-License-Identifier: MIT */
/*
 * Stores the contents of kubeconfig files, and searches the files in order. Of several entries
 * with the same name, kxfs uses the first one, as kubectl does.
 */
#include <errno.h>

#include "spec/api/kubeconfig_find.h"
#include "spec/base/mem.h"

struct kubeconfig_file {
	char *name;		/* an absolute path */
	struct spec_yaml *root; /* a map; check_file has checked its lists */
};

struct spec_kubeconfig {
	struct kubeconfig_file *files;
	size_t n;
};

static const char *const kinds[] = {"context", "cluster", "user"};

struct spec_kubeconfig *spec_kubeconfig_new(void)
{
	return new0(struct spec_kubeconfig);
}

static void clear_file(struct kubeconfig_file *file)
{
	free(file->name);
	spec_yaml_free(file->root);
}

void spec_kubeconfig_free(struct spec_kubeconfig *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->n; i++)
		clear_file(&k->files[i]);
	free(k->files);
	free(k);
}

/* --- reading one file --- */

static bool is_blank(const char *text, size_t n)
{
	while (n > 0 && strchr(" \t\r", text[n - 1]) && text[n - 1])
		n--;
	return n == 0;
}

/* True if the text has only blank lines, comments and "---" lines. */
static bool is_empty(const char *text, size_t len)
{
	while (len > 0) {
		const char *newline = memchr(text, '\n', len);
		size_t n = newline ? (size_t)(newline - text) : len;
		bool mark = n >= 3 && memcmp(text, "---", 3) == 0;

		if (text[0] != '#' && !is_blank(text + (mark ? 3 : 0), n - (mark ? 3 : 0)))
			return false;
		n += newline ? 1 : 0;
		text += n;
		len -= n;
	}
	return true;
}

/* True if the text at the position of X begins with a character that needs quotes. */
static bool needs_quotes(const char *text, size_t len, const struct spec_error *x)
{
	const char *end = text + len;

	for (unsigned line = 1; text && line < x->line; line++) {
		text = memchr(text, '\n', (size_t)(end - text));
		text = text ? text + 1 : NULL;
	}
	/*
	 * The column counts characters, but is used as an offset in bytes: the text before a value
	 * is nearly always ASCII. If it is not, only the hint about quotes may be wrong.
	 */
	return text && x->column > 0 && x->column <= (size_t)(end - text) &&
	       strchr("*&!", text[x->column - 1]);
}

/* If the parser reports an error, use only its position, because its text may quote a secret. */
static int parse(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e)
{
	cleanup(spec_errors_clear) struct spec_errors found = SPEC_ERRORS_INIT;
	int err = spec_yaml_check(text, len, e);

	if (err < 0)
		return err;
	err = spec_yaml_parse(text, len, ret, &found);
	if (err < 0)
		spec_errors_add(e, err, found.v[0].line, found.v[0].column, "",
				"this is not one valid YAML document (kxfs does not quote the "
				"file, which may contain secrets)%s",
				needs_quotes(text, len, &found.v[0])
					? "; a value that begins with \"*\", \"&\" or \"!\" "
					  "needs quotes"
					: "");
	return err;
}

static int by_name(const void *a, const void *b)
{
	const struct spec_yaml *x = *(const struct spec_yaml *const *)a;
	const struct spec_yaml *y = *(const struct spec_yaml *const *)b;
	int cmp = strcmp(spec_yaml_get(x, "name")->text, spec_yaml_get(y, "name")->text);

	return cmp ? cmp : (x->line > y->line) - (x->line < y->line);
}

/* Check that the entries of KIND are a list of maps with distinct names. */
static int check_entries(const struct spec_yaml *root, const char *kind, struct spec_errors *e)
{
	cleanup_free const struct spec_yaml **v = NULL;
	char key[16];
	const struct spec_yaml *list;

	snprintf(key, sizeof(key), "%ss", kind);
	list = spec_yaml_get(root, key);
	if (!list || spec_yaml_is_null(list))
		return 0;
	if (list->type != SPEC_YAML_LIST)
		return spec_errors_add(e, -EINVAL, list->line, list->column, key,
				       "must be a list of {name: NAME, %s: {...}}", kind);
	for (size_t i = 0; i < list->n; i++) {
		const struct spec_yaml *item = list->v[i], *name = spec_yaml_get(item, "name");
		const struct spec_yaml *body = spec_yaml_get(item, kind);

		if (!name || name->type != SPEC_YAML_SCALAR || strlen(name->text) != name->len)
			return spec_errors_add(e, -EINVAL, item->line, item->column, key,
					       "must be {name: NAME, %s: {...}}", kind);
		if (body && body->type != SPEC_YAML_MAP && !spec_yaml_is_null(body))
			return spec_errors_add(e, -EINVAL, body->line, body->column, key,
					       "%s must be a map", kind);
	}
	v = new0_n(const struct spec_yaml *, list->n);
	for (size_t i = 0; i < list->n; i++)
		v[i] = list->v[i];
	qsort(v, list->n, sizeof(const struct spec_yaml *), by_name);
	for (size_t i = 1; i < list->n; i++) {
		const char *name = spec_yaml_get(v[i], "name")->text;

		if (streq(name, spec_yaml_get(v[i - 1], "name")->text))
			return spec_errors_add(e, -EINVAL, v[i]->line, v[i]->column, key,
					       "the name \"%s\" is given twice; the first is "
					       "at line %u",
					       name, v[i - 1]->line);
	}
	return 0;
}

static int check_file(const struct spec_yaml *root, struct spec_errors *e)
{
	const struct spec_yaml *current, *kind;
	int err = 0;

	if (root->type != SPEC_YAML_MAP)
		return spec_errors_add(e, -EINVAL, root->line, root->column, "",
				       "this is not a kubeconfig file: it must be a map with "
				       "\"clusters\", \"contexts\" and \"users\"");
	kind = spec_yaml_get(root, "kind");
	if (kind && kind->type == SPEC_YAML_SCALAR && kind->len && !streq(kind->text, "Config"))
		return spec_errors_add(e, -EINVAL, kind->line, kind->column, "kind",
				       "not a kubeconfig file: its kind is not Config");
	current = spec_yaml_get(root, "current-context");
	if (current && current->type != SPEC_YAML_SCALAR)
		err = spec_errors_add(e, -EINVAL, current->line, current->column, "current-context",
				      "must be the name of a context");
	for (size_t i = 0; i < array_size(kinds) && err == 0; i++)
		err = check_entries(root, kinds[i], e);
	return err;
}

int spec_kubeconfig_merge(struct spec_kubeconfig *k, const char *file, const char *text, size_t len,
			  struct spec_errors *e)
{
	cleanup(clear_file) struct kubeconfig_file new = {0};
	int err;

	if (is_empty(text, len))
		return 0;
	err = parse(text, len, &new.root, e);
	if (err == 0)
		err = check_file(new.root, e);
	if (err < 0)
		return err;
	k->files = mem_grow(k->files, k->n + 1, sizeof(*k->files));
	k->files[k->n++] = (struct kubeconfig_file){text_copy(file), take_ptr(new.root)};
	return 0;
}

/* --- searching the files --- */

static const struct spec_yaml *entries(const struct kubeconfig_file *file, const char *kind)
{
	char key[16];
	const struct spec_yaml *list;

	snprintf(key, sizeof(key), "%ss", kind);
	list = spec_yaml_get(file->root, key);
	return list && list->type == SPEC_YAML_LIST ? list : NULL;
}

bool kubeconfig_find(const struct spec_kubeconfig *k, const char *kind, const char *name,
		     struct kubeconfig_entry *ret)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct spec_yaml *list = entries(&k->files[i], kind);

		for (size_t j = 0; list && j < list->n; j++) {
			const struct spec_yaml *item = list->v[j],
					       *body = spec_yaml_get(item, kind);

			if (!streq(spec_yaml_get(item, "name")->text, name))
				continue;
			*ret = (struct kubeconfig_entry){
				.file = k->files[i].name,
				.item = item,
				.body = body && body->type == SPEC_YAML_MAP ? body : NULL,
			};
			return true;
		}
	}
	return false;
}

const struct spec_yaml *kubeconfig_current(const struct spec_kubeconfig *k, const char **ret_file)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct spec_yaml *current =
			spec_yaml_get(k->files[i].root, "current-context");

		if (current && current->len && !spec_yaml_is_null(current)) {
			*ret_file = k->files[i].name;
			return current;
		}
	}
	return NULL;
}

const char **kubeconfig_names(const struct spec_kubeconfig *k)
{
	const char **ret = new0(const char *);
	struct kubeconfig_entry first = {0};
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++) {
		const struct spec_yaml *list = entries(&k->files[i], "context");

		if (!list)
			continue;
		ret = mem_grow(ret, n + list->n + 1, sizeof(*ret));
		for (size_t j = 0; j < list->n; j++) {
			const char *name = spec_yaml_get(list->v[j], "name")->text;

			kubeconfig_find(k, "context", name, &first);
			if (first.item == list->v[j])
				ret[n++] = name;
		}
		ret[n] = NULL;
	}
	return ret;
}

char **spec_kubeconfig_contexts(const struct spec_kubeconfig *k)
{
	cleanup_free const char **names = kubeconfig_names(k);
	size_t n = 0;
	char **ret;

	while (names[n])
		n++;
	ret = new0_n(char *, n + 1);
	for (size_t i = 0; i < n; i++) {
		struct kubeconfig_entry entry = {0};
		const struct spec_yaml *space;
		bool given;

		kubeconfig_find(k, "context", names[i], &entry);
		space = entry.body ? spec_yaml_get(entry.body, "namespace") : NULL;
		given = space && space->type == SPEC_YAML_SCALAR && space->len > 0;
		ret[i] = text_print("%s/%s", names[i], given ? space->text : "default");
	}
	return ret;
}
