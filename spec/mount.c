/* SPDX-License-Identifier: MIT */
/*
 * Mounts in both forms: here the map, whose fields are named as TorchX's classes name them, and what
 * both share; the string form is in mount_text.c. Each fills the same table of values.
 */
#include "spec/mount.h"

#include <errno.h>

#include "spec/mount_impl.h"

const struct mount_kind mount_kinds[] = {
	[SPEC_MOUNT_BIND] = {"bind",
			     {"type", "src_path", "dst_path", "read_only", NULL},
			     "type=bind,src=HOST_PATH,dst=CONTAINER_PATH[,readonly]"},
	[SPEC_MOUNT_VOLUME] = {"volume",
			       {"type", "src", "dst_path", "read_only", NULL},
			       "type=volume,src=CLAIM,dst=CONTAINER_PATH[,readonly]"},
	[SPEC_MOUNT_DEVICE] = {"device",
			       {"type", "src_path", "dst_path", NULL, "permissions"},
			       "type=device,src=DEVICE[,dst=CONTAINER_PATH][,perm=rwm]"},
};

void spec_mount_clear(struct spec_mount *m)
{
	free(m->src);
	free(m->dst);
	free(m->permissions);
	*m = (struct spec_mount){0};
}

void mount_failed(struct mount_reader *r, int err)
{
	if (r->err == 0)
		r->err = err;
}

/* Note an error at NODE, in the field KEY. */
#define wrong_field(r, node, key, ...)                                                             \
	do {                                                                                       \
		cleanup_free char *path_ = field_path(r, key);                                     \
		if (path_)                                                                         \
			mount_failed(r, spec_errors_add((r)->e, -EINVAL, (node)->line,             \
							(node)->column, path_, __VA_ARGS__));      \
	} while (0)

static char *field_path(struct mount_reader *r, const char *key)
{
	char *ret;

	if (asprintf(&ret, "%s.%s", r->path, key) < 0) {
		mount_failed(r, spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory"));
		return NULL;
	}
	return ret;
}

int mount_kind_of(const char *word)
{
	for (size_t i = 0; i < array_size(mount_kinds); i++)
		if (streq(word, mount_kinds[i].name))
			return (int)i;
	return -1;
}

char mount_bad_permission(const char *perm)
{
	return perm[strspn(perm, "rwm")];
}

char *mount_copy(struct mount_reader *r, const char *text, size_t len)
{
	char *ret = strndup(text, len);

	if (!ret)
		mount_failed(r, spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory"));
	return ret;
}

void mount_append(struct mount_reader *r, struct spec_mount *m)
{
	struct spec_mount *v = reallocarray(r->v, r->n + 1, sizeof(*v));

	if (!v) {
		mount_failed(r, spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory"));
		spec_mount_clear(m);
		return;
	}
	v[r->n++] = *m;
	r->v = v;
	*m = (struct spec_mount){0};
}

/* --- the map form --- */

static bool is_text(const struct spec_yaml *node)
{
	return node->type == SPEC_YAML_SCALAR && !spec_yaml_is_null(node) &&
	       strlen(node->text) == node->len;
}

/* The text of NODE, the value of KEY; NULL: it is none, noted. Borrowed. */
static const char *text_of(struct mount_reader *r, const struct spec_yaml *node, const char *key)
{
	if (!is_text(node)) {
		wrong_field(r, node, key, "must be text");
		return NULL;
	}
	return node->text;
}

static bool bool_of(struct mount_reader *r, const struct spec_yaml *node, const char *key)
{
	static const char *const words[] = {"false", "true", "False", "True", "FALSE", "TRUE"};

	if (is_text(node) && node->plain)
		for (size_t i = 0; i < array_size(words); i++)
			if (streq(node->text, words[i]))
				return i % 2;
	wrong_field(r, node, key, "must be true or false");
	return false;
}

/* A key may stand twice, which is an error already. TEXT is taken over. */
static void replace(char **field, char *text)
{
	free(*field);
	*field = text;
}

static void map_field(struct mount_reader *r, const struct mount_kind *kind,
		      const struct spec_yaml *key, const struct spec_yaml *value,
		      struct spec_mount *m)
{
	const char *words[MOUNT_N + 1], *text;
	size_t n = 0;
	int option = -1;

	for (int i = 0; i < MOUNT_N; i++) {
		if (kind->fields[i])
			words[n++] = kind->fields[i];
		if (streq(kind->fields[i], key->text) && key->len == strlen(key->text))
			option = i;
	}
	words[n] = NULL;
	switch (option) {
	case MOUNT_TYPE:
		return;
	case MOUNT_READ_ONLY:
		m->read_only = bool_of(r, value, key->text);
		return;
	case MOUNT_SRC:
	case MOUNT_DST:
	case MOUNT_PERM:
		break;
	default:
		text = spec_suggest(key->text, words);
		wrong_field(r, key, key->text, "unknown field of a %s mount%s%s%s", kind->name,
			    text ? "; did you mean " : "", text ? text : "", text ? "?" : "");
		return;
	}
	text = text_of(r, value, key->text);
	if (!text)
		return;
	if (option == MOUNT_PERM && mount_bad_permission(text))
		wrong_field(r, value, key->text, "\"%s\" must be made of r, w and m", text);
	else if (option != MOUNT_PERM && !*text)
		wrong_field(r, value, key->text, "must not be empty");
	else
		replace(option == MOUNT_SRC   ? &m->src
			: option == MOUNT_DST ? &m->dst
					      : &m->permissions,
			mount_copy(r, text, value->len));
}

static void read_map(struct mount_reader *r)
{
	const struct spec_yaml *type = spec_yaml_get(r->node, "type");
	struct spec_mount m cleanup(spec_mount_clear) = {0};
	const struct mount_kind *kind;
	int k;

	if (!type) {
		mount_wrong(r, r->node, "type is missing: add \"type: bind\", volume or device");
		return;
	}
	k = is_text(type) ? mount_kind_of(type->text) : -1;
	if (k < 0) {
		wrong_field(r, type, "type", "must be bind, volume or device");
		return;
	}
	kind = &mount_kinds[k];
	m.type = (enum spec_mount_type)k;
	for (size_t i = 0; i + 1 < r->node->n; i += 2)
		map_field(r, kind, r->node->v[i], r->node->v[i + 1], &m);
	for (int i = MOUNT_SRC; i <= MOUNT_DST; i++)
		if (!spec_yaml_get(r->node, kind->fields[i]))
			mount_wrong(r, r->node, "%s is missing: a %s mount needs it",
				    kind->fields[i], kind->name);
	if (m.type == SPEC_MOUNT_DEVICE && !spec_yaml_get(r->node, "permissions"))
		m.permissions = mount_copy(r, "rwm", 3);
	if (r->err == 0)
		mount_append(r, &m);
}

/* --- both --- */

static int deliver(struct mount_reader *r, struct spec_mount **v, size_t *n)
{
	struct spec_mount *all;

	if (r->n == 0)
		return 0;
	all = reallocarray(*v, *n + r->n, sizeof(*all));
	if (!all)
		return spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory");
	memcpy(&all[*n], r->v, r->n * sizeof(*all));
	*v = all;
	*n += r->n;
	r->n = 0;
	return 0;
}

int spec_mount_parse(const struct spec_yaml *node, const char *path, const char *home,
		     struct spec_mount **v, size_t *n, struct spec_errors *e)
{
	struct mount_reader r = {.node = node, .path = path, .home = home, .e = e};

	if (node->type == SPEC_YAML_MAP)
		read_map(&r);
	else if (is_text(node))
		mount_read_text(&r);
	else
		mount_wrong(&r, node, "must be a map with \"type\", or text such as %s",
			    mount_kinds[SPEC_MOUNT_BIND].form);
	if (r.err == 0)
		r.err = deliver(&r, v, n);
	for (size_t i = 0; i < r.n; i++)
		spec_mount_clear(&r.v[i]);
	free(r.v);
	return r.err;
}
