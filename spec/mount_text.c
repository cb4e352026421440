/* SPDX-License-Identifier: MIT */
/*
 * Mounts as text: the form of TorchX's command line, quirks included ("readonly=false" is read only, a
 * later option replaces an earlier one).
 */
#include <errno.h>

#include "spec/mount_impl.h"

/* The names of options in the string form. */
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

/* Options of one mount as they stand in the string; text is NULL where an option was not given. */
struct options {
	struct {
		const char *text;
		size_t len;
	} v[MOUNT_N];
};

static int option_of(const char *word, size_t len)
{
	for (size_t i = 0; i < array_size(string_options); i++)
		if (strlen(string_options[i].word) == len &&
		    memcmp(string_options[i].word, word, len) == 0)
			return (int)string_options[i].option;
	return -1;
}

static void unknown_option(struct mount_reader *r, const char *word, size_t len)
{
	const char *words[array_size(string_options) + 1];
	cleanup_free char *name = mount_copy(r, word, len);
	const char *near;

	if (!name)
		return;
	for (size_t i = 0; i < array_size(string_options); i++)
		words[i] = string_options[i].word;
	words[array_size(string_options)] = NULL;
	near = spec_suggest(name, words);
	if (near)
		mount_wrong(r, r->node, "unknown mount option \"%s\"; did you mean %s?", name,
			    near);
	else
		mount_wrong(r, r->node,
			    "unknown mount option \"%s\": must be one of type, src, source, dst, "
			    "destination, target, readonly, read_only, perm",
			    name);
}

/* SRC of a bind mount, a leading "~" replaced. malloc'ed; NULL: noted. */
static char *expand_home(struct mount_reader *r, const char *src, size_t len)
{
	size_t home_len = r->home ? strlen(r->home) : 0;
	char *ret;

	if (len == 0 || src[0] != '~')
		return mount_copy(r, src, len);
	if (!r->home || (len > 1 && src[1] != '/')) {
		mount_wrong(r, r->node, "src=%.*s: only your own home can be written as ~%s",
			    (int)min_of(len, (size_t)200), src,
			    r->home ? "; write the path in full"
				    : ", and it is not known here; write the path in full");
		return NULL;
	}
	while (home_len > 0 && r->home[home_len - 1] == '/')
		home_len--;
	if (home_len == 0 && len == 1)
		return mount_copy(r, "/", 1);
	if (asprintf(&ret, "%.*s%.*s", (int)home_len, r->home, (int)(len - 1), src + 1) < 0) {
		mount_failed(r, spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory"));
		return NULL;
	}
	return ret;
}

/* Note that OPTION is missing or empty where KIND needs it. */
static bool is_given(struct mount_reader *r, const struct options *o, enum mount_option option,
		     const struct mount_kind *kind)
{
	const char *name = option == MOUNT_SRC ? "src" : "dst";

	if (o->v[option].text && o->v[option].len > 0)
		return true;
	mount_wrong(r, r->node, "%s of a %s mount is %s: write %s", name, kind->name,
		    o->v[option].text ? "empty" : "missing", kind->form);
	return false;
}

/* The options of one mount are complete. */
static void end_mount(struct mount_reader *r, struct options *o, const struct mount_kind *kind)
{
	struct spec_mount m cleanup(spec_mount_clear) = {0};
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
		m.permissions = mount_copy(r, "rwm", 3);
	else if (device)
		m.permissions = mount_copy(r, o->v[MOUNT_PERM].text, o->v[MOUNT_PERM].len);
	if (device && m.permissions && mount_bad_permission(m.permissions))
		mount_wrong(r, r->node, "perm=%s must be made of r, w and m", m.permissions);
	if (given) {
		m.src = m.type == SPEC_MOUNT_BIND
				? expand_home(r, o->v[MOUNT_SRC].text, o->v[MOUNT_SRC].len)
				: mount_copy(r, o->v[MOUNT_SRC].text, o->v[MOUNT_SRC].len);
		m.dst = mount_copy(r, o->v[MOUNT_DST].text, o->v[MOUNT_DST].len);
	}
	m.read_only = !device && o->v[MOUNT_READ_ONLY].text;
	if (r->err == 0)
		mount_append(r, &m);
}

/* The kind of mount that begins; NULL: there is none of this name, noted. */
static const struct mount_kind *begin_mount(struct mount_reader *r, const char *name, size_t len)
{
	cleanup_free char *word = mount_copy(r, name, len);
	int k = word ? mount_kind_of(word) : -1;

	if (word && k < 0)
		mount_wrong(r, r->node, "invalid mount type \"%s\": must be bind, volume or device",
			    word);
	return k < 0 ? NULL : &mount_kinds[k];
}

void mount_read_text(struct mount_reader *r)
{
	const char *text = r->node->text;
	const struct mount_kind *kind = NULL;
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
		} else if (option == MOUNT_TYPE) {
			end_mount(r, &o, kind);
			kind = begin_mount(r, value, value_len);
			o = (struct options){0};
			begun = true;
		} else if (!begun) {
			mount_wrong(r, r->node, "type must be specified first, as in %s",
				    mount_kinds[SPEC_MOUNT_BIND].form);
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
