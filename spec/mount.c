/* SPDX-License-Identifier: MIT */
/*
 * Mounts in both forms. A map names its fields as TorchX's classes do; the string form is that of
 * TorchX's command line, quirks included ("readonly=false" is read only, a later option replaces
 * an earlier one). Each form fills the same table of values, checked by the same code.
 */
#include "spec/mount.h"

#include <assert.h>
#include <errno.h>

enum option { OPT_TYPE, OPT_SRC, OPT_DST, OPT_READ_ONLY, OPT_PERM, OPT_N };

/* The names of options in the string form. */
static const struct {
	const char *word;
	enum option option;
} string_options[] = {
	{"type", OPT_TYPE},
	{"dst", OPT_DST},
	{"destination", OPT_DST},
	{"target", OPT_DST},
	{"src", OPT_SRC},
	{"source", OPT_SRC},
	{"readonly", OPT_READ_ONLY},
	{"read_only", OPT_READ_ONLY},
	{"perm", OPT_PERM},
};

static const struct kind {
	const char *name;
	const char *fields[OPT_N]; /* names in the map form; NULL: not a field of this kind */
	const char *form;	   /* the string form, for messages */
} kinds[] = {
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

/* What is being read, and what of it is known so far. */
struct reader {
	const struct spec_yaml *node;
	const char *path;
	const char *home; /* string form only */
	struct spec_errors *e;
	int err; /* of the first error; 0: none */
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

static void failed(struct reader *r, int err)
{
	if (r->err == 0)
		r->err = err;
}

/* Note an error at NODE, in the mount itself. */
#define wrong(r, node, ...)                                                                        \
	failed(r, spec_errors_add((r)->e, -EINVAL, (node)->line, (node)->column, (r)->path,        \
				  __VA_ARGS__))

/* Note an error at NODE, in the field KEY. */
#define wrong_field(r, node, key, ...)                                                             \
	do {                                                                                       \
		cleanup_free char *path_ = field_path(r, key);                                     \
		if (path_)                                                                         \
			failed(r, spec_errors_add((r)->e, -EINVAL, (node)->line, (node)->column,   \
						  path_, __VA_ARGS__));                            \
	} while (0)

static char *field_path(struct reader *r, const char *key)
{
	char *ret;

	if (asprintf(&ret, "%s.%s", r->path, key) < 0) {
		failed(r, spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory"));
		return NULL;
	}
	return ret;
}

static int kind_of(const char *word)
{
	for (size_t i = 0; i < array_size(kinds); i++)
		if (streq(word, kinds[i].name))
			return (int)i;
	return -1;
}

/* The first character of PERM that is no permission; 0: all are. */
static char bad_permission(const char *perm)
{
	return perm[strspn(perm, "rwm")];
}

static char *copy(struct reader *r, const char *text, size_t len)
{
	char *ret = strndup(text, len);

	if (!ret)
		failed(r, spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory"));
	return ret;
}

/* Append M, which is taken over. */
static void append(struct reader *r, struct spec_mount *m)
{
	struct spec_mount *v = reallocarray(r->v, r->n + 1, sizeof(*v));

	if (!v) {
		failed(r, spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory"));
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
static const char *text_of(struct reader *r, const struct spec_yaml *node, const char *key)
{
	if (!is_text(node)) {
		wrong_field(r, node, key, "must be text");
		return NULL;
	}
	return node->text;
}

static bool bool_of(struct reader *r, const struct spec_yaml *node, const char *key)
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

static void map_field(struct reader *r, const struct kind *kind, const struct spec_yaml *key,
		      const struct spec_yaml *value, struct spec_mount *m)
{
	const char *words[OPT_N + 1], *text;
	size_t n = 0;
	int option = -1;

	for (int i = 0; i < OPT_N; i++) {
		if (kind->fields[i])
			words[n++] = kind->fields[i];
		if (streq(kind->fields[i], key->text) && key->len == strlen(key->text))
			option = i;
	}
	words[n] = NULL;
	switch (option) {
	case OPT_TYPE:
		return;
	case OPT_READ_ONLY:
		m->read_only = bool_of(r, value, key->text);
		return;
	case OPT_SRC:
	case OPT_DST:
	case OPT_PERM:
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
	if (option == OPT_PERM && bad_permission(text))
		wrong_field(r, value, key->text, "\"%s\" must be made of r, w and m", text);
	else if (option != OPT_PERM && !*text)
		wrong_field(r, value, key->text, "must not be empty");
	else
		replace(option == OPT_SRC   ? &m->src
			: option == OPT_DST ? &m->dst
					    : &m->permissions,
			copy(r, text, value->len));
}

static void read_map(struct reader *r)
{
	const struct spec_yaml *type = spec_yaml_get(r->node, "type");
	struct spec_mount m cleanup(spec_mount_clear) = {0};
	const struct kind *kind;
	int k;

	if (!type) {
		wrong(r, r->node, "type is missing: add \"type: bind\", volume or device");
		return;
	}
	k = is_text(type) ? kind_of(type->text) : -1;
	if (k < 0) {
		wrong_field(r, type, "type", "must be bind, volume or device");
		return;
	}
	kind = &kinds[k];
	m.type = (enum spec_mount_type)k;
	for (size_t i = 0; i + 1 < r->node->n; i += 2)
		map_field(r, kind, r->node->v[i], r->node->v[i + 1], &m);
	for (int i = OPT_SRC; i <= OPT_DST; i++)
		if (!spec_yaml_get(r->node, kind->fields[i]))
			wrong(r, r->node, "%s is missing: a %s mount needs it", kind->fields[i],
			      kind->name);
	if (m.type == SPEC_MOUNT_DEVICE && !spec_yaml_get(r->node, "permissions"))
		m.permissions = copy(r, "rwm", 3);
	if (r->err == 0)
		append(r, &m);
}

/* --- the string form --- */

/* Options of one mount as they stand in the string; text is NULL where an option was not given. */
struct options {
	struct {
		const char *text;
		size_t len;
	} v[OPT_N];
};

static int option_of(const char *word, size_t len)
{
	for (size_t i = 0; i < array_size(string_options); i++)
		if (strlen(string_options[i].word) == len &&
		    memcmp(string_options[i].word, word, len) == 0)
			return (int)string_options[i].option;
	return -1;
}

static void unknown_option(struct reader *r, const char *word, size_t len)
{
	const char *words[array_size(string_options) + 1];
	cleanup_free char *name = copy(r, word, len);
	const char *near;

	if (!name)
		return;
	for (size_t i = 0; i < array_size(string_options); i++)
		words[i] = string_options[i].word;
	words[array_size(string_options)] = NULL;
	near = spec_suggest(name, words);
	if (near)
		wrong(r, r->node, "unknown mount option \"%s\"; did you mean %s?", name, near);
	else
		wrong(r, r->node,
		      "unknown mount option \"%s\": must be one of type, src, source, dst, "
		      "destination, target, readonly, read_only, perm",
		      name);
}

/* SRC of a bind mount, a leading "~" replaced. malloc'ed; NULL: noted. */
static char *expand_home(struct reader *r, const char *src, size_t len)
{
	size_t home_len = r->home ? strlen(r->home) : 0;
	char *ret;

	if (len == 0 || src[0] != '~')
		return copy(r, src, len);
	if (!r->home || (len > 1 && src[1] != '/')) {
		wrong(r, r->node, "src=%.*s: only your own home can be written as ~%s",
		      (int)min_of(len, (size_t)200), src,
		      r->home ? "; write the path in full"
			      : ", and it is not known here; write the path in full");
		return NULL;
	}
	while (home_len > 0 && r->home[home_len - 1] == '/')
		home_len--;
	if (home_len == 0 && len == 1)
		return copy(r, "/", 1);
	if (asprintf(&ret, "%.*s%.*s", (int)home_len, r->home, (int)(len - 1), src + 1) < 0) {
		failed(r, spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory"));
		return NULL;
	}
	return ret;
}

/* Note that OPTION is missing or empty where KIND needs it. */
static bool is_given(struct reader *r, const struct options *o, enum option option,
		     const struct kind *kind)
{
	const char *name = option == OPT_SRC ? "src" : "dst";

	if (o->v[option].text && o->v[option].len > 0)
		return true;
	wrong(r, r->node, "%s of a %s mount is %s: write %s", name, kind->name,
	      o->v[option].text ? "empty" : "missing", kind->form);
	return false;
}

/* The options of one mount are complete. */
static void end_mount(struct reader *r, struct options *o, const struct kind *kind)
{
	struct spec_mount m cleanup(spec_mount_clear) = {0};
	bool device;
	int given;

	if (!kind)
		return;
	m.type = (enum spec_mount_type)(kind - kinds);
	device = m.type == SPEC_MOUNT_DEVICE;
	if (device && !o->v[OPT_DST].text)
		o->v[OPT_DST] = o->v[OPT_SRC];
	given = is_given(r, o, OPT_SRC, kind);
	if (!device || o->v[OPT_DST].text)
		given &= is_given(r, o, OPT_DST, kind);
	if (device && !o->v[OPT_PERM].text)
		m.permissions = copy(r, "rwm", 3);
	else if (device)
		m.permissions = copy(r, o->v[OPT_PERM].text, o->v[OPT_PERM].len);
	if (device && m.permissions && bad_permission(m.permissions))
		wrong(r, r->node, "perm=%s must be made of r, w and m", m.permissions);
	if (given) {
		m.src = m.type == SPEC_MOUNT_BIND
				? expand_home(r, o->v[OPT_SRC].text, o->v[OPT_SRC].len)
				: copy(r, o->v[OPT_SRC].text, o->v[OPT_SRC].len);
		m.dst = copy(r, o->v[OPT_DST].text, o->v[OPT_DST].len);
	}
	m.read_only = !device && o->v[OPT_READ_ONLY].text;
	if (r->err == 0)
		append(r, &m);
}

/* The kind of mount that begins; NULL: there is none of this name, noted. */
static const struct kind *begin_mount(struct reader *r, const char *name, size_t len)
{
	cleanup_free char *word = copy(r, name, len);
	int k = word ? kind_of(word) : -1;

	if (word && k < 0)
		wrong(r, r->node, "invalid mount type \"%s\": must be bind, volume or device",
		      word);
	return k < 0 ? NULL : &kinds[k];
}

static void read_string(struct reader *r)
{
	const char *text = r->node->text;
	const struct kind *kind = NULL;
	struct options o = {0};
	bool begun = false;

	for (;;) {
		size_t len = strcspn(text, ",");
		const char *eq = memchr(text, '=', len);
		size_t key_len = eq ? (size_t)(eq - text) : len;
		const char *value = eq ? eq + 1 : text + len;
		size_t value_len = (size_t)(text + len - value);
		int option = option_of(text, key_len);

		if (option < 0) {
			unknown_option(r, text, key_len);
		} else if (option == OPT_TYPE) {
			end_mount(r, &o, kind);
			kind = begin_mount(r, value, value_len);
			o = (struct options){0};
			begun = true;
		} else if (!begun) {
			wrong(r, r->node, "type must be specified first, as in %s",
			      kinds[SPEC_MOUNT_BIND].form);
			return;
		} else {
			o.v[option].text = value;
			o.v[option].len = value_len;
		}
		if (!text[len])
			break;
		text += len + 1;
	}
	end_mount(r, &o, kind);
}

/* --- both --- */

static int deliver(struct reader *r, struct spec_mount **v, size_t *n)
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
	struct reader r = {.node = node, .path = path, .home = home, .e = e};

	if (node->type == SPEC_YAML_MAP)
		read_map(&r);
	else if (is_text(node))
		read_string(&r);
	else
		wrong(&r, node, "must be a map with \"type\", or text such as %s",
		      kinds[SPEC_MOUNT_BIND].form);
	if (r.err == 0)
		r.err = deliver(&r, v, n);
	for (size_t i = 0; i < r.n; i++)
		spec_mount_clear(&r.v[i]);
	free(r.v);
	return r.err;
}
