/* SPDX-License-Identifier: MIT */
/*
 * Reads mounts. The map form has the names of the fields of TorchX's classes. The string form is
 * that of TorchX's command line, with its quirks: "readonly=false" makes a mount read-only, and a
 * later option replaces an earlier one.
 */
#include "spec/app/app_value.h"

#include <errno.h>

#include "spec/base/mem.h"

enum mount_option { MOUNT_TYPE, MOUNT_SRC, MOUNT_DST, MOUNT_READ_ONLY, MOUNT_PERM, MOUNT_N };

struct mount_kind {
	const char *name;
	/* names of the fields in the map form; NULL if this kind lacks the field */
	const char *fields[MOUNT_N];
	const char *form; /* an example of the string form, for messages */
};

static const struct mount_kind mount_kinds[] = {
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

struct mount_reader {
	const struct spec_yaml *node;
	const struct app_path *path;
	const char *home; /* used only in the string form */
	struct spec_errors *e;
	bool failed;
	struct spec_mount *v;
	size_t n;
};

void spec_mount_clear(struct spec_mount *m)
{
	free(m->src);
	free(m->dst);
	free(m->permissions);
	*m = (struct spec_mount){0};
}

/* Add an error at NODE about the mount's field KEY, or about the whole mount if KEY is "". */
printf_like(4, 5) static void wrong(struct mount_reader *r, const struct spec_yaml *node,
				    const char *key, const char *fmt, ...)
{
	const struct app_path field = {.up = r->path, .key = key};
	cleanup_free char *path = app_path_text(*key ? &field : r->path);
	cleanup_free char *text = text_of_args(fmt);

	spec_errors_add(r->e, -EINVAL, node->line, node->column, path, "%s", text);
	r->failed = true;
}

static int kind_of(const char *word)
{
	for (size_t i = 0; i < array_size(mount_kinds); i++)
		if (streq(word, mount_kinds[i].name))
			return (int)i;
	return -1;
}

static char bad_permission(const char *perm)
{
	return perm[strspn(perm, "rwm")];
}

/* Append M, and take ownership of its texts. */
static void append(struct mount_reader *r, struct spec_mount *m)
{
	r->v = mem_grow(r->v, r->n + 1, sizeof(*r->v));
	r->v[r->n++] = *m;
	*m = (struct spec_mount){0};
}

/* --- the map form --- */

static bool is_text(const struct spec_yaml *node)
{
	return node->type == SPEC_YAML_SCALAR && !spec_yaml_is_null(node) &&
	       strlen(node->text) == node->len;
}

static bool bool_of(struct mount_reader *r, const struct spec_yaml *node, const char *key)
{
	if (spec_yaml_resolve(node) == SPEC_YAML_BOOL)
		return (node->text[0] | 0x20) == 't';
	wrong(r, node, key, "must be true or false");
	return false;
}

static void map_field(struct mount_reader *r, const struct mount_kind *kind,
		      const struct spec_yaml *key, const struct spec_yaml *value,
		      struct spec_mount *m)
{
	const char *words[MOUNT_N + 1];
	cleanup_free char *hint = NULL;
	size_t n = 0;
	int option = -1;
	char **field;

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
		hint = spec_suggestion(key->text, words, "");
		wrong(r, key, key->text, "unknown field of a %s mount%s", kind->name, hint);
		return;
	}
	field = option == MOUNT_SRC ? &m->src : option == MOUNT_DST ? &m->dst : &m->permissions;
	if (!is_text(value)) {
		wrong(r, value, key->text, "must be text");
	} else if (option == MOUNT_PERM && bad_permission(value->text)) {
		wrong(r, value, key->text, "\"%s\" may contain only the letters r, w and m",
		      value->text);
	} else if (option != MOUNT_PERM && !*value->text) {
		wrong(r, value, key->text, "must not be empty");
	} else {
		/* FIELD is set already if the key occurs twice, which the parser has reported. */
		free(*field);
		*field = mem_copy(value->text, value->len);
	}
}

/*
 * NODE is a map without "type", as TorchX writes it. Return the type that has exactly the fields of
 * NODE, or -1.
 */
static int kind_of_keys(const struct spec_yaml *node)
{
	for (size_t k = 0; k < array_size(mount_kinds); k++) {
		size_t n = 0;

		for (int i = MOUNT_SRC; i < MOUNT_N; i++) {
			if (mount_kinds[k].fields[i] &&
			    spec_yaml_get(node, mount_kinds[k].fields[i]))
				n++;
		}
		if (n == 3 && node->n == 6)
			return (int)k;
	}
	return -1;
}

static void read_map(struct mount_reader *r)
{
	const struct spec_yaml *type = spec_yaml_get(r->node, "type");
	cleanup(spec_mount_clear) struct spec_mount m = {0};
	const struct mount_kind *kind;
	int k;

	k = type ? is_text(type) ? kind_of(type->text) : -1 : kind_of_keys(r->node);
	if (!type && k < 0) {
		wrong(r, r->node, "",
		      "type is missing: add \"type: bind\", \"type: volume\" or "
		      "\"type: device\"");
		return;
	}
	if (k < 0) {
		wrong(r, type, "type", "must be bind, volume or device");
		return;
	}
	kind = &mount_kinds[k];
	m.type = (enum spec_mount_type)k;
	for (size_t i = 0; i + 1 < r->node->n; i += 2)
		map_field(r, kind, r->node->v[i], r->node->v[i + 1], &m);
	for (int i = MOUNT_SRC; i <= MOUNT_DST; i++)
		if (!spec_yaml_get(r->node, kind->fields[i]))
			wrong(r, r->node, "", "%s is missing: a %s mount needs it", kind->fields[i],
			      kind->name);
	if (m.type == SPEC_MOUNT_DEVICE && !spec_yaml_get(r->node, "permissions"))
		m.permissions = mem_copy("rwm", 3);
	if (!r->failed)
		append(r, &m);
}

/* --- the string form --- */

static const struct {
	const char *word;
	enum mount_option option;
} string_options[] = {
	{"type", MOUNT_TYPE},
	{"dst", MOUNT_DST},
	{"destination", MOUNT_DST},
	{"target", MOUNT_DST},
	{"src", MOUNT_SRC},
	{"source", MOUNT_SRC},
	{"readonly", MOUNT_READ_ONLY},
	{"read_only", MOUNT_READ_ONLY},
	{"perm", MOUNT_PERM},
};

/* The options of one mount in the string form. TEXT is NULL for an absent option. */
struct mount_options {
	struct {
		const char *text;
		size_t len;
	} v[MOUNT_N];
};

/* Return the option named WORD (LEN bytes). On error, add the error and return -1. */
static int option_of(struct mount_reader *r, const char *word, size_t len)
{
	const char *words[array_size(string_options) + 1] = {NULL};
	cleanup_free char *name = mem_copy(word, len);
	cleanup_free char *hint = NULL;

	for (size_t i = 0; i < array_size(string_options); i++) {
		words[i] = string_options[i].word;
		if (strlen(words[i]) == len && memcmp(words[i], word, len) == 0)
			return (int)string_options[i].option;
	}
	hint = spec_suggestion(name, words,
			       ": must be one of type, src, source, dst, destination, target, "
			       "readonly, read_only, perm");
	wrong(r, r->node, "", "unknown mount option \"%s\"%s", name, hint);
	return -1;
}

/* Replace a leading "~" of SRC. Return the path (malloc'ed), or add an error and return NULL. */
static char *expand_home(struct mount_reader *r, const char *src, size_t len)
{
	size_t home_len = r->home ? strlen(r->home) : 0;

	if (len == 0 || src[0] != '~')
		return mem_copy(src, len);
	if (!r->home || (len > 1 && src[1] != '/')) {
		wrong(r, r->node, "", "src=%.*s: ~ is allowed only for your own home directory%s",
		      (int)min_of(len, (size_t)200), src,
		      r->home ? "; write the path in full"
			      : ", which kxfs does not know; write the path in full");
		return NULL;
	}
	while (home_len > 0 && r->home[home_len - 1] == '/')
		home_len--;
	if (home_len == 0 && len == 1)
		return mem_copy("/", 1);
	return text_print("%.*s%.*s", (int)home_len, r->home, (int)(len - 1), src + 1);
}

/* True if O has a value for OPTION, which KIND needs. Otherwise add an error. */
static bool is_given(struct mount_reader *r, const struct mount_options *o,
		     enum mount_option option, const struct mount_kind *kind)
{
	const char *name = option == MOUNT_SRC ? "src" : "dst";

	if (o->v[option].text && o->v[option].len > 0)
		return true;
	wrong(r, r->node, "", "%s of a %s mount is %s: write %s", name, kind->name,
	      o->v[option].text ? "empty" : "missing", kind->form);
	return false;
}

/*
 * Append the mount with the options O to R. Do nothing if KIND is NULL: no mount has begun, or its
 * type is invalid.
 */
static void end_mount(struct mount_reader *r, struct mount_options *o,
		      const struct mount_kind *kind)
{
	cleanup(spec_mount_clear) struct spec_mount m = {0};
	bool device;
	int given;

	if (!kind)
		return;
	m.type = (enum spec_mount_type)(kind - mount_kinds);
	device = m.type == SPEC_MOUNT_DEVICE;
	if (device && !o->v[MOUNT_DST].text)
		o->v[MOUNT_DST] = o->v[MOUNT_SRC];
	given = is_given(r, o, MOUNT_SRC, kind);
	if (!device || o->v[MOUNT_DST].text)
		given &= is_given(r, o, MOUNT_DST, kind);
	if (device && !o->v[MOUNT_PERM].text)
		m.permissions = mem_copy("rwm", 3);
	else if (device)
		m.permissions = mem_copy(o->v[MOUNT_PERM].text, o->v[MOUNT_PERM].len);
	if (device && m.permissions && bad_permission(m.permissions))
		wrong(r, r->node, "", "perm=%s may contain only the letters r, w and m",
		      m.permissions);
	if (given) {
		m.src = m.type == SPEC_MOUNT_BIND
				? expand_home(r, o->v[MOUNT_SRC].text, o->v[MOUNT_SRC].len)
				: mem_copy(o->v[MOUNT_SRC].text, o->v[MOUNT_SRC].len);
		m.dst = mem_copy(o->v[MOUNT_DST].text, o->v[MOUNT_DST].len);
	}
	m.read_only = !device && o->v[MOUNT_READ_ONLY].text;
	if (!r->failed)
		append(r, &m);
}

static void read_text(struct mount_reader *r)
{
	const char *text = r->node->text;
	const struct mount_kind *kind = NULL;
	struct mount_options o = {0};
	bool begun = false;

	for (;;) {
		size_t len = strcspn(text, ",");
		const char *eq = memchr(text, '=', len);
		size_t key_len = eq ? (size_t)(eq - text) : len;
		const char *value = eq ? eq + 1 : text + len;
		size_t value_len = (size_t)(text + len - value);
		int option = option_of(r, text, key_len);

		if (option == MOUNT_TYPE) {
			cleanup_free char *word = mem_copy(value, value_len);
			int k = kind_of(word);

			end_mount(r, &o, kind);
			kind = k < 0 ? NULL : &mount_kinds[k];
			if (!kind)
				wrong(r, r->node, "",
				      "invalid mount type \"%s\": must be bind, volume or device",
				      word);
			o = (struct mount_options){0};
			begun = true;
		} else if (option >= 0 && !begun) {
			wrong(r, r->node, "", "type must be specified first, as in %s",
			      mount_kinds[SPEC_MOUNT_BIND].form);
			return;
		} else if (option >= 0) {
			o.v[option].text = value;
			o.v[option].len = value_len;
		}
		if (!text[len])
			break;
		text += len + 1;
	}
	end_mount(r, &o, kind);
}

/* --- both forms --- */

void spec_mount_parse(const struct spec_yaml *node, const struct app_path *path, const char *home,
		      struct spec_mount **v, size_t *n, struct spec_errors *e)
{
	struct mount_reader r = {.node = node, .path = path, .home = home, .e = e};

	if (node->type == SPEC_YAML_MAP)
		read_map(&r);
	else if (is_text(node))
		read_text(&r);
	else
		wrong(&r, node, "", "must be a map with \"type\", or text such as %s",
		      mount_kinds[SPEC_MOUNT_BIND].form);
	for (size_t i = 0; i < r.n && r.failed; i++)
		spec_mount_clear(&r.v[i]);
	if (r.n > 0 && !r.failed) {
		*v = mem_grow(*v, *n + r.n, sizeof(**v));
		memcpy(&(*v)[*n], r.v, r.n * sizeof(**v));
		*n += r.n;
	}
	free(r.v);
}
