/* SPDX-License-Identifier: MIT */
/*
 * Reads mounts. The keys of the map form are the names of the fields in TorchX's classes. The
 * string form is that of TorchX's command line, with its quirks: "readonly=false" makes a mount
 * read-only, and a later option replaces an earlier option with the same name.
 */
#include "spec/app/app_value.h"

#include "spec/base/mem.h"

void spec_mount_clear(struct spec_mount *m)
{
	free(m->src);
	free(m->dst);
	free(m->permissions);
	*m = (struct spec_mount){0};
}

/* --- the map form --- */

/* Only check that the type is a text, because read_map has already set it. */
static void check_type(struct app_reader *r, const struct app_path *path,
		       const struct spec_yaml *node, void *member)
{
	app_is(r, path, node, SPEC_YAML_SCALAR, "");
}

static void read_flag(struct app_reader *r, const struct app_path *path,
		      const struct spec_yaml *node, void *member)
{
	if (spec_yaml_resolve(node) == SPEC_YAML_BOOL)
		*(bool *)member = (node->text[0] | 0x20) == 't';
	else
		app_error(r, path, node, "must be true or false");
}

static void check_permissions(struct app_reader *r, const struct app_path *path,
			      const struct spec_yaml *node, const char *text)
{
	if (text[strspn(text, "rwm")])
		app_error(r, path, node, "\"%s\" may contain only the letters r, w and m", text);
}

static void read_permissions(struct app_reader *r, const struct app_path *path,
			     const struct spec_yaml *node, void *member)
{
	if (!app_is(r, path, node, SPEC_YAML_SCALAR, ""))
		return;
	text_set(member, "%s", node->text);
	check_permissions(r, path, node, node->text);
}

#define N_FIELDS 5
#define FIELD(key, must, reader, member)                                                           \
	{                                                                                          \
		.name = key, .required = must, .load = reader,                                     \
		.offset = offsetof(struct spec_mount, member)                                      \
	}

static const struct mount_kind {
	const char *name;
	struct app_field fields[N_FIELDS];
	const char *form; /* an example of the string form, for messages */
} mount_kinds[] = {
	[SPEC_MOUNT_BIND] = {"bind",
			     {FIELD("type", false, check_type, type),
			      FIELD("src_path", true, app_read_word, src),
			      FIELD("dst_path", true, app_read_word, dst),
			      FIELD("read_only", false, read_flag, read_only)},
			     "type=bind,src=HOST_PATH,dst=CONTAINER_PATH[,readonly]"},
	[SPEC_MOUNT_VOLUME] = {"volume",
			       {FIELD("type", false, check_type, type),
				FIELD("src", true, app_read_word, src),
				FIELD("dst_path", true, app_read_word, dst),
				FIELD("read_only", false, read_flag, read_only)},
			       "type=volume,src=CLAIM,dst=CONTAINER_PATH[,readonly]"},
	[SPEC_MOUNT_DEVICE] = {"device",
			       {FIELD("type", false, check_type, type),
				FIELD("src_path", true, app_read_word, src),
				FIELD("dst_path", true, app_read_word, dst),
				FIELD("permissions", false, read_permissions, permissions)},
			       "type=device,src=DEVICE[,dst=CONTAINER_PATH][,perm=rwm]"},
};

/* Append a mount of the type WORD to ROLE. Return NULL if there is no such type. */
static struct spec_mount *add_mount(struct spec_role *role, const char *word)
{
	for (size_t i = 0; i < array_size(mount_kinds); i++) {
		struct spec_mount *m;

		if (!streq(word, mount_kinds[i].name))
			continue;
		m = app_add(&role->mounts, &role->n_mounts, sizeof(*m));
		m->type = (enum spec_mount_type)i;
		if (m->type == SPEC_MOUNT_DEVICE)
			m->permissions = text_copy("rwm");
		return m;
	}
	return NULL;
}

/*
 * NODE is a map without "type", as TorchX writes it. Return the type that has exactly the fields of
 * NODE, or NULL.
 */
static const char *type_of_keys(const struct spec_yaml *node)
{
	for (size_t k = 0; k < array_size(mount_kinds); k++) {
		const struct app_field *field = &mount_kinds[k].fields[1];

		while (field->name && spec_yaml_get(node, field->name))
			field++;
		if (!field->name && node->n == 2 * (N_FIELDS - 2))
			return mount_kinds[k].name;
	}
	return NULL;
}

static void read_map(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, struct spec_role *role)
{
	const struct app_path type_path = {.up = path, .key = "type"};
	const struct spec_yaml *type = spec_yaml_get(node, "type");
	struct spec_mount *m = add_mount(role, type ? type->text : type_of_keys(node));

	if (!m && type) {
		app_error(r, &type_path, type, "must be bind, volume or device");
	} else if (!m) {
		app_error(r, path, node,
			  "type is missing: add \"type: bind\", \"type: volume\" or "
			  "\"type: device\"");
	} else {
		app_read_map(r, path, node, mount_kinds[m->type].fields, m);
	}
}

/* --- the string form --- */

enum mount_option { MOUNT_TYPE, MOUNT_SRC, MOUNT_DST, MOUNT_READ_ONLY, MOUNT_PERM, MOUNT_N };

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

/* The text with a role's mounts in the string form, and where to report errors. */
struct mount_text {
	struct app_reader *r;
	const struct app_path *path;
	const struct spec_yaml *node;
};

/* Return the option named WORD. On error, add the error and return MOUNT_N. */
static enum mount_option option_of(const struct mount_text *t, const char *word)
{
	const char *words[array_size(string_options) + 1] = {NULL};
	cleanup_free char *hint = NULL;

	for (size_t i = 0; i < array_size(string_options); i++) {
		words[i] = string_options[i].word;
		if (streq(words[i], word))
			return string_options[i].option;
	}
	hint = spec_suggestion(word, words,
			       ": must be one of type, src, source, dst, destination, target, "
			       "readonly, read_only, perm");
	app_error(t->r, t->path, t->node, "unknown mount option \"%s\"%s", word, hint);
	return MOUNT_N;
}

/* Replace a leading "~" of *SRC by the home directory. Add an error if this is not possible. */
static void expand_home(const struct mount_text *t, char **src)
{
	const char *home = t->r->rules->home, *rest = *src + 1;
	size_t len = home ? strlen(home) : 0;

	if (**src != '~')
		return;
	if (!home || (*rest && *rest != '/')) {
		app_error(t->r, t->path, t->node,
			  "src=%.200s: ~ is allowed only for your own home directory%s", *src,
			  home ? "; write the path in full"
			       : ", which kxfs does not know; write the path in full");
		return;
	}
	while (len > 0 && home[len - 1] == '/')
		len--;
	text_set(src, "%.*s%s", (int)len, home, len == 0 && !*rest ? "/" : rest);
}

/* M requires the option NAME. Add an error if TEXT, its value, is NULL or empty. */
static void check_given(const struct mount_text *t, const struct spec_mount *m, const char *name,
			const char *text)
{
	const struct mount_kind *kind = &mount_kinds[m->type];

	if (!text || !*text)
		app_error(t->r, t->path, t->node, "%s of a %s mount is %s: write %s", name,
			  kind->name, text ? "empty" : "missing", kind->form);
}

/* Complete and check M after its last option. M may be NULL. */
static void end_mount(const struct mount_text *t, struct spec_mount *m)
{
	if (!m)
		return;
	if (m->type == SPEC_MOUNT_DEVICE && m->src && !m->dst)
		m->dst = text_copy(m->src);
	check_given(t, m, "src", m->src);
	if (m->type != SPEC_MOUNT_DEVICE || m->src)
		check_given(t, m, "dst", m->dst);
	if (m->permissions)
		check_permissions(t->r, t->path, t->node, m->permissions);
	if (m->type == SPEC_MOUNT_BIND && m->src)
		expand_home(t, &m->src);
}

static void read_text(const struct mount_text *t, struct spec_role *role)
{
	struct spec_mount *m = NULL;
	const char *end;

	for (const char *text = t->node->text;; text = end + 1) {
		cleanup_free char *name = NULL;
		const char *value;
		enum mount_option option;

		end = strchrnul(text, ',');
		name = mem_copy(text, (size_t)(end - text));
		value = name + strcspn(name, "=");
		if (*value)
			name[value++ - name] = '\0';
		option = option_of(t, name);
		if (option == MOUNT_TYPE) {
			end_mount(t, m);
			m = add_mount(role, value);
			if (!m)
				app_error(t->r, t->path, t->node,
					  "invalid mount type \"%s\": must be bind, volume or "
					  "device",
					  value);
		} else if (option != MOUNT_N && !m) {
			app_error(t->r, t->path, t->node, "type must be specified first, as in %s",
				  mount_kinds[SPEC_MOUNT_BIND].form);
		} else if (option == MOUNT_READ_ONLY) {
			m->read_only = m->type != SPEC_MOUNT_DEVICE;
		} else if (option == MOUNT_SRC) {
			text_set(&m->src, "%s", value);
		} else if (option == MOUNT_DST) {
			text_set(&m->dst, "%s", value);
		} else if (option == MOUNT_PERM && m->type == SPEC_MOUNT_DEVICE) {
			text_set(&m->permissions, "%s", value);
		}
		if (!*end || (!m && option != MOUNT_N))
			break;
	}
	end_mount(t, m);
}

void app_read_mount(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		    struct spec_role *role)
{
	const struct mount_text text = {r, path, node};

	if (node->type == SPEC_YAML_MAP)
		read_map(r, path, node, role);
	else if (node->type == SPEC_YAML_SCALAR && !spec_yaml_is_null(node) &&
		 strlen(node->text) == node->len)
		read_text(&text, role);
	else
		app_error(r, path, node, "must be a map with \"type\", or text such as %s",
			  mount_kinds[SPEC_MOUNT_BIND].form);
}
