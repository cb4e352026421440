/* SPDX-License-Identifier: MIT */
/*
 * Reads a kind file. For each map, a table lists the valid keys. kxfs reports all errors of a file:
 * other keys, wrong types and wrong values.
 */
#include "spec/kindfile/file.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/pods/pod.h"
#include "spec/pods/suspend.h"
#include "spec/yaml/yaml.h"

#define FORMAT	  "kxfs-kind/1"
#define MAX_ROWS  64 /* the most items in a list */
#define MAX_PARTS 4
/*
 * The longest member name, in bytes, that "ignore" may list. The splitter (spec/api/split.h) can't
 * drop members with longer names.
 */
#define MAX_IGNORED 31
#define SPEC	    ".spec."
#define STATUS	    ".status."

/* What the value of a key must be. */
enum rule {
	ANY,
	A_NAME,
	A_WORD,
	A_PLURAL,
	AN_API,
	OF_PART,
	A_PATH,
	OF_NAMES,
	BELOW_SPEC,
	IN_STATUS,
	A_MEMBER,
	N_RULES
};

/*
 * The position of a key in the kind file F. NODE is the key's value, KEY is its row in the table of
 * keys, and WORD is the key as written. Errors show PATH.
 */
struct kindfile_place {
	struct spec_errors *e;
	struct spec_kind_file *f;
	const struct spec_yaml *node;
	const char *path;
	const struct kindfile_key *key;
	const char *word;
};

/*
 * A row of a table: a key that a map may have. The last row has no NAME. It is for all keys without
 * a row of their own: its SET reads them. If its SET is NULL, such a key is an error.
 */
struct kindfile_key {
	const char *name;
	void (*set)(const struct kindfile_place *p, void *field);
	size_t at; /* offset of the field in the map's struct */
	/* If not 0, the field is a list of items of this size (struct list). SET reads an item. */
	size_t size;
	bool needed;
	enum rule rule;
	const struct kindfile_key *keys; /* the keys of a map */
};

/* The layout of every list in spec_kind_file. */
struct list {
	void *v;
	size_t n;
};

#define KEY(key, structure, member, fn, ...)                                                       \
	{                                                                                          \
		.name = (key), .set = (fn), .at = offsetof(structure, member), ##__VA_ARGS__       \
	}
#define LIST(key, structure, member, fn, ...)                                                      \
	KEY(key, structure, member, fn, .size = sizeof(*((structure *)0)->member.v), ##__VA_ARGS__)

static void printf_like(2, 3) bad(const struct kindfile_place *p, const char *fmt, ...)
{
	cleanup_free char *text = text_of_args(fmt);

	spec_errors_add(p->e, -EINVAL, p->node->line, p->node->column, p->path, "%s", text);
}

static void unknown_key(const struct kindfile_place *p, const struct kindfile_key *keys)
{
	const char *words[32] = {NULL};
	cleanup_free char *all = text_copy("; the keys here are "), *hint = NULL;

	for (size_t i = 0; keys[i].name && i + 1 < array_size(words); i++) {
		words[i] = keys[i].name;
		text_set(&all, "%s%s%s", all, i ? ", " : "", words[i]);
	}
	hint = spec_suggestion(p->node->text, words, all);
	bad(p, "no such key%s", hint);
}

/* Set the list FIELD. The value at P is a list or a single item. */
static void set_list(const struct kindfile_place *p, void *field)
{
	const struct spec_yaml *node = p->node;
	const bool one = node->type != SPEC_YAML_LIST;
	struct list list = {.n = one ? 1 : node->n};

	if (list.n == 0 || list.n > MAX_ROWS) {
		bad(p, "must have 1 to %d items", MAX_ROWS);
		return;
	}
	list.v = arena_own(&p->f->arena, mem_zero_n(list.n, p->key->size));
	memcpy(field, &list, sizeof(list));
	for (size_t i = 0; i < list.n; i++) {
		cleanup_free char *path =
			one ? text_copy(p->path) : text_print("%s[%zu]", p->path, i);
		struct kindfile_place at = *p;

		at.node = one ? node : node->v[i];
		at.path = path;
		p->key->set(&at, (char *)list.v + i * p->key->size);
	}
}

static void set_map(const struct kindfile_place *p, void *structure)
{
	const struct spec_yaml *map = p->node;

	if (map->type != SPEC_YAML_MAP) {
		bad(p, "must be a map");
		return;
	}
	for (size_t i = 0; i < map->n; i += 2) {
		const char *name = map->v[i]->text;
		cleanup_free char *path = text_print("%s%s%s", p->path, *p->path ? "." : "", name);
		struct kindfile_place at = {p->e, p->f, map->v[i], path, p->key->keys, name};

		while (at.key->name && !streq(at.key->name, name))
			at.key++;
		if (!at.key->set) {
			unknown_key(&at, p->key->keys);
			continue;
		}
		at.node = map->v[i + 1];
		(at.key->size ? set_list : at.key->set)(&at, (char *)structure + at.key->at);
	}
	for (const struct kindfile_key *key = p->key->keys; key->name; key++)
		if (key->needed && !spec_yaml_get(map, key->name))
			bad(p, "%s is missing", key->name);
}

/* --- scalars --- */

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define LETTER LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT  "0123456789"

/*
 * For each rule: the bytes allowed at the beginning of a text (FIRST) and anywhere in it (BYTES),
 * and the MAX length.
 */
static const struct {
	const char *first, *bytes;
	size_t max;
	const char *text;
} texts[N_RULES] = {
	[A_NAME] = {LOWER, LOWER DIGIT, 20,
		    "be 1 to 20 lower-case letters and digits, and begin with a letter"},
	[A_WORD] = {LETTER DIGIT, LETTER DIGIT, 63, "be a word or a number"},
	[A_PLURAL] = {LOWER, LOWER DIGIT "-", 63, "be the name of a resource, like jobsets"},
	[AN_API] = {LOWER, LOWER DIGIT "-./", 253, "be GROUP/VERSION, like batch/v1"},
	[OF_PART] = {LOWER, LOWER DIGIT "-./", 253, "be GROUP/VERSION, like batch/v1, or v1"},
};

/* Return the text at P. If it is missing or not allowed, add an error and return NULL. */
static const char *text_at(const struct kindfile_place *p)
{
	const char *text = p->node->text, *bytes = texts[p->key->rule].bytes;

	if (p->node->type != SPEC_YAML_SCALAR || spec_yaml_is_null(p->node) ||
	    strlen(text) != p->node->len)
		bad(p, "must be text");
	else if (bytes && (!*text || !strchr(texts[p->key->rule].first, *text) ||
			   strlen(text) > texts[p->key->rule].max || text[strspn(text, bytes)]))
		bad(p, "must %s", texts[p->key->rule].text);
	else
		return text;
	return NULL;
}

static void set_text(const struct kindfile_place *p, void *field)
{
	const char *text = text_at(p);

	if (text)
		*(const char **)field = arena_own(&p->f->arena, text_copy(text));
}

static void set_bool(const struct kindfile_place *p, void *field)
{
	if (p->node->type != SPEC_YAML_SCALAR || spec_yaml_resolve(p->node) != SPEC_YAML_BOOL)
		bad(p, "must be true or false");
	else
		*(bool *)field = (p->node->text[0] | ' ') == 't';
}

/* Return NULL if RULE allows V, else what RULE requires (static). */
static const char *wrong_value(const struct value *v, enum rule rule)
{
	bool names = v->from == FROM_PATH && !strchr(v->text, '[');

	if (rule == BELOW_SPEC && !(names && strncmp(v->text, SPEC, strlen(SPEC)) == 0))
		return "a path below .spec, without brackets";
	if (rule == IN_STATUS &&
	    !(names && strncmp(v->text, STATUS, strlen(STATUS)) == 0 &&
	      streq(v->text + strlen(STATUS), v->last) && strlen(v->last) <= MAX_IGNORED))
		return ".status.NAME, where NAME has at most 31 bytes";
	if (rule == OF_NAMES && !(names && *v->text == '.'))
		return "a path without brackets";
	if (rule == A_MEMBER && !names)
		return "a path without brackets, or a label";
	if (rule == A_PATH && v->from != FROM_PATH)
		return "a path";
	return NULL;
}

static void set_value(const struct kindfile_place *p, void *field)
{
	const char *text = text_at(p);
	cleanup_free char *why = text ? value_parse(&p->f->arena, text, field) : NULL;
	const char *wanted = text && !why ? wrong_value(field, p->key->rule) : NULL;

	if (why)
		bad(p, "%s", why);
	if (wanted)
		bad(p, "must be %s", wanted);
}

/* --- rows --- */

/*
 * Add a test to FIELD, a struct kind_tests. The key at P is a path or "phase". The value at P lists
 * the texts that pass the test.
 */
static void set_test(const struct kindfile_place *p, void *field)
{
	static const struct kindfile_key any = {.set = set_text, .size = sizeof(const char *)};
	struct kindfile_place list = *p;
	struct kind_tests *tests = field;
	struct kind_test *test = arena_own(&p->f->arena, new0(struct kind_test));
	cleanup_free char *why = value_parse(&p->f->arena, p->word, &test->path);

	test->phase = p->key->name;
	if (!test->phase && (why || test->path.from != FROM_PATH))
		bad(p, "must be a path, a label or an annotation; in states also "
		       "condition, phase or reason");
	list.key = &any;
	set_list(&list, &test->any);
	test->next = tests->first;
	tests->first = test;
}

/* In the tests of roles and pods, each key is a path. */
static const struct kindfile_key test_keys[] = {{.set = set_test}};

static const struct kindfile_key state_test_keys[] = {
	LIST("condition", struct kind_tests, condition, set_text),
	LIST("reason", struct kind_tests, reason, set_text),
	{.name = "phase", .set = set_test},
	{.set = set_test},
};

static void set_state_tests(const struct kindfile_place *p, void *field)
{
	const struct kind_tests *tests = field;

	set_map(p, field);
	if (tests->reason.n && !tests->condition.n)
		bad(p, "\"reason\" needs a \"condition\" in the same row");
}

static const struct kindfile_key role_keys[] = {
	KEY("each", struct kind_role, each, set_value, .rule = OF_NAMES),
	KEY("if", struct kind_role, tests, set_map, .keys = test_keys),
	LIST("name", struct kind_role, name, set_value),
	LIST("replicas", struct kind_role, replicas, set_value, .needed = true),
	LIST("times", struct kind_role, times, set_value),
	LIST("copies", struct kind_role, copies, set_value),
	KEY("template", struct kind_role, template, set_value, .rule = OF_NAMES, .needed = true),
	KEY("grows", struct kind_role, grows, set_bool),
	{0},
};

static void set_role(const struct kindfile_place *p, void *row)
{
	if (p->node->type != SPEC_YAML_SCALAR)
		set_map(p, row);
	else if (streq(p->node->text, "from_pods"))
		p->f->from_pods = true;
	else
		bad(p, "must be a list of maps, or from_pods");
}

static const struct kindfile_key pod_keys[] = {
	KEY("if", struct kind_pod, tests, set_map, .keys = test_keys),
	LIST("first", struct kind_pod, first, set_value),
	LIST("role", struct kind_pod, role, set_value),
	LIST("index", struct kind_pod, index, set_value),
	LIST("copy", struct kind_pod, copy, set_value),
	LIST("copies", struct kind_pod, copies, set_value),
	LIST("attempt", struct kind_pod, attempt, set_value),
	LIST("failures", struct kind_pod, failures, set_value),
	LIST("main", struct kind_pod, main, set_value),
	KEY("trim", struct kind_pod, trim, set_bool),
	{0},
};

static void set_is(const struct kindfile_place *p, void *field)
{
	cleanup_free char *all = text_copy("");
	const char *text = text_at(p);

	for (const struct kind_word *word = kind_words; word->shown; word++) {
		const char *name = word->rows[0].name;

		if (text && streq(text, name)) {
			*(const struct kind_word **)field = word;
			return;
		}
		text_set(&all, "%s%s%s", all, *all ? ", " : "", name);
	}
	if (text)
		bad(p, "\"%s\" is not a state; use one of %s", text, all);
}

static const struct kindfile_key state_keys[] = {
	KEY("if", struct kind_state, tests, set_state_tests, .keys = state_test_keys,
	    .needed = true),
	KEY("is", struct kind_state, is, set_is, .needed = true),
	KEY("shown", struct kind_state, shown, set_text),
	KEY("firm", struct kind_state, firm, set_bool),
	LIST("exact", struct kind_state, exact, set_text),
	{0},
};

static const struct kindfile_key attempts_keys[] = {
	LIST("failed", struct kind_attempts, failed, set_value, .rule = A_PATH),
	LIST("restarted", struct kind_attempts, restarted, set_value, .rule = A_PATH),
	LIST("allowed", struct kind_attempts, allowed, set_value),
	LIST("alone", struct kind_attempts, alone, set_value),
	{0},
};

static const struct kindfile_key terminate_keys[] = {
	KEY("set", struct spec_kind_file, terminate, set_value, .rule = BELOW_SPEC, .needed = true),
	KEY("to", struct spec_kind_file, kind.terminate_to, set_text, .rule = A_WORD,
	    .needed = true),
	{0},
};

static const struct kindfile_key ctl_keys[] = {
	KEY("suspend", struct spec_kind_file, suspend, set_value, .rule = BELOW_SPEC,
	    .needed = true),
	{.name = "terminate", .set = set_map, .keys = terminate_keys},
	{0},
};

/* --- the object and its parts --- */

/* An API is GROUP/VERSION. Only a part may be in the core group, whose API is "v1". */
static void set_api(const struct kindfile_place *p, void *field)
{
	const char *api = text_at(p), *slash = api ? strchr(api, '/') : NULL;

	if (api && (slash ? !slash[1] || strchr(slash + 1, '/')
			  : p->key->rule != OF_PART || !streq(api, "v1")))
		bad(p, "must %s", texts[p->key->rule].text);
	else if (api)
		set_text(p, field);
}

static const struct kindfile_key object_keys[] = {
	KEY("api", struct spec_kind, api_version, set_api, .rule = AN_API, .needed = true),
	KEY("kind", struct spec_kind, kind, set_text, .rule = A_WORD, .needed = true),
	KEY("plural", struct spec_kind, plural, set_text, .rule = A_PLURAL, .needed = true),
	{0},
};

static const struct kindfile_key part_keys[] = {
	KEY("api", struct kind_part, part.api_version, set_api, .rule = OF_PART, .needed = true),
	KEY("kind", struct kind_part, part.kind, set_text, .rule = A_WORD, .needed = true),
	KEY("plural", struct kind_part, part.plural, set_text, .rule = A_PLURAL),
	LIST("owner_uid", struct kind_part, owner_uid, set_value),
	LIST("named", struct kind_part, named, set_value),
	{0},
};

static void set_part(const struct kindfile_place *p, void *row)
{
	const struct kind_part *part = row;
	bool core;

	set_map(p, row);
	if (!part->part.api_version)
		return; /* this error was already reported */
	core = !strchr(part->part.api_version, '/');
	/* Every mount watches pods, so a Pod needs no plural. */
	if (core && !streq(part->part.kind, "Pod"))
		bad(p, "kind must be Pod: other objects of the core group can't be parts");
	else if (!core &&
		 (!part->owner_uid.n != !part->named.n || (!part->part.plural && !part->named.n)))
		bad(p, "needs \"plural\", or both \"owner_uid\" and \"named\"");
}

static void set_user_label(const struct kindfile_place *p, void *field)
{
	struct spec_kind *kind = field;
	struct value path = {0};

	kind->unlabelled = p->node->type == SPEC_YAML_SCALAR && streq(p->node->text, "none");
	if (!kind->unlabelled)
		set_value(p, &path);
	kind->user_labels = path.text ? path.text + 1 : NULL;
}

static void set_format(const struct kindfile_place *p, void *field)
{
	const char *text = text_at(p);

	if (text && !streq(text, FORMAT))
		bad(p, "is %s; this version of kxfs reads " FORMAT, text);
}

static const struct kindfile_key file_keys[] = {
	{.name = "format", .set = set_format, .needed = true},
	KEY("name", struct spec_kind_file, kind.name, set_text, .rule = A_NAME, .needed = true),
	KEY("object", struct spec_kind_file, kind, set_map, .keys = object_keys, .needed = true),
	KEY("kueue", struct spec_kind_file, kind.in_kueue, set_bool),
	LIST("released_by", struct spec_kind_file, released_by, set_text),
	KEY("released_at_end", struct spec_kind_file, released_at_end, set_bool),
	KEY("pods_have", struct spec_kind_file, kind.pod_selector, set_text),
	LIST("parts", struct spec_kind_file, parts, set_part, .keys = part_keys),
	LIST("roles", struct spec_kind_file, roles, set_role, .keys = role_keys, .needed = true),
	LIST("pods", struct spec_kind_file, pods, set_map, .keys = pod_keys),
	KEY("phase", struct spec_kind_file, phase, set_value, .rule = A_PATH),
	LIST("states", struct spec_kind_file, states, set_map, .keys = state_keys, .needed = true),
	LIST("reason", struct spec_kind_file, reason, set_value),
	LIST("message", struct spec_kind_file, message, set_value),
	KEY("began", struct spec_kind_file, began, set_value, .rule = A_PATH),
	KEY("finished", struct spec_kind_file, finished, set_value, .rule = A_PATH),
	LIST("minimum", struct spec_kind_file, minimum, set_value),
	KEY("attempts", struct spec_kind_file, attempts, set_map, .keys = attempts_keys),
	{.name = "ctl", .set = set_map, .keys = ctl_keys},
	LIST("ignore", struct spec_kind_file, ignored, set_value, .rule = IN_STATUS),
	KEY("user_label", struct spec_kind_file, kind, set_user_label, .rule = BELOW_SPEC),
	LIST("copy_without", struct spec_kind_file, added, set_value, .rule = A_MEMBER),
	{0},
};

/* Check what concerns several keys together. */
static void check(const struct kindfile_place *p)
{
	const struct spec_kind_file *f = p->f;
	bool succeeds = false;

	for (size_t i = 0; i < f->states.n; i++)
		succeeds |= f->states.v[i].is->rows->state == SPEC_SUCCEEDED;
	if (!succeeds)
		bad(p, "states: no row has \"is: succeeded\", so no job could ever succeed; "
		       "add such a row");
	if (f->parts.n > MAX_PARTS)
		bad(p, "parts: must have at most %d items", MAX_PARTS);
	if (f->attempts.failed.n && f->attempts.restarted.n)
		bad(p, "attempts: give \"failed\" or \"restarted\", not both");
}

/* --- the kind --- */

static const struct spec_template *make_templates(struct spec_kind_file *f)
{
	struct spec_template *t = new0_n(struct spec_template, f->roles.n + 1);

	for (size_t i = 0; i < f->roles.n; i++) {
		const char *each = f->roles.v[i].each.text;

		t[i].pods = each ? each + 1 : "";
		t[i].pod = f->roles.v[i].template.text + 1;
	}
	return arena_own(&f->arena, t);
}

/*
 * Return an element for a list of members that a copy of an object omits. It is for the member at
 * the path V. If VALUE is not NULL, a copy omits the member only if it has this value.
 */
static struct spec_member member_of(struct spec_kind_file *f, const struct value *v,
				    const char *value)
{
	size_t n = (size_t)(v->last - v->steps);
	char *at = arena_own(&f->arena, mem_copy(v->steps, n));

	/* Separate the keys by dots. */
	for (size_t i = 0; i + 1 < n; i++)
		at[i] = at[i] ? at[i] : '.';
	return (struct spec_member){at, v->last, value};
}

/*
 * List the members that a copy of an object omits: those that the kind file lists, and those that
 * the file ctl of a job may have set.
 */
static const struct spec_member *make_members(struct spec_kind_file *f)
{
	struct spec_member *v = new0_n(struct spec_member, f->added.n + 3), *m = v;

	for (size_t i = 0; i < f->added.n; i++)
		*m++ = member_of(f, &f->added.v[i], NULL);
	if (f->suspend.text)
		*m++ = member_of(f, &f->suspend, NULL);
	if (f->terminate.text)
		*m++ = member_of(f, &f->terminate, f->kind.terminate_to);
	return arena_own(&f->arena, v);
}

/* List the members of status that the splitter (spec/api/split.h) drops, or return NULL. */
static const char *const *make_ignored(struct spec_kind_file *f)
{
	const char **keys = arena_own(&f->arena, new0_n(const char *, f->ignored.n + 1));

	for (size_t i = 0; i < f->ignored.n; i++)
		keys[i] = f->ignored.v[i].last;
	return f->ignored.n ? keys : NULL;
}

static void make_parts(struct spec_kind_file *f)
{
	struct spec_part *v = arena_own(&f->arena, new0_n(struct spec_part, f->parts.n));

	f->kind.parts = v;
	for (size_t i = 0; i < f->parts.n; i++) {
		struct spec_part part = f->parts.v[i].part;

		if (!part.plural || f->parts.v[i].named.n)
			continue;
		part.cost = arena_own(&f->arena,
				      text_print("kxfs shows neither pods of %ss nor their logs",
						 part.kind));
		v[f->kind.n_parts++] = part;
	}
}

static void finish(struct spec_kind_file *f)
{
	struct spec_kind *k = &f->kind;

	f->roles.n = f->from_pods ? 0 : f->roles.n;
	k->jobs = arena_own(&f->arena, text_print("%ss", k->kind));
	k->templates = make_templates(f);
	k->added = make_members(f);
	k->ignored = make_ignored(f);
	make_parts(f);
	f->reader.recounted = f->attempts.failed.n;
	if (f->suspend.text) {
		k->suspend = f->suspend.text + strlen(SPEC);
		k->control = &suspend_control;
	}
	if (f->terminate.text) {
		k->terminate = f->terminate.text + strlen(SPEC);
		k->control = &suspend_or_terminate_control;
	}
}

int spec_kind_file_read(const char *text, size_t len, const struct spec_kind *built,
			struct spec_kind **ret, struct spec_errors *e)
{
	/* Used if the kind has no C code. kxfs then accepts only ready manifests of this kind. */
	static const struct spec_option options[] = {POD_NO_ANNOTATIONS_OPTION, {0}};
	static const struct spec_kind none = {.options = options,
					      .scheduler = "",
					      .one_template = true};
	static const struct kindfile_key root_key = {.keys = file_keys};
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	struct kindfile_place p;
	struct spec_kind_file *f;

	*ret = NULL;
	if (len > SPEC_MAX_KIND_FILE)
		return spec_errors_add(e, -EFBIG, 0, 0, "", "has more than %u bytes",
				       SPEC_MAX_KIND_FILE);
	if (spec_yaml_parse(text, len, &root, e) < 0)
		return e->err;
	f = new0(struct spec_kind_file);
	f->kind = built ? *built : none;
	f->kind.pod_selector = "";
	f->kind.reader = &f->reader;
	f->reader = kind_file_reader;
	p = (struct kindfile_place){e, f, root, "", &root_key, ""};
	set_map(&p, f);
	if (!e->n)
		check(&p);
	if (e->n || e->err) {
		spec_kind_file_free(&f->kind);
		return e->err;
	}
	finish(f);
	*ret = &f->kind;
	return 0;
}

void spec_kind_file_free(const struct spec_kind *kind)
{
	struct spec_kind_file *f;

	if (!kind || kind->reader->job != kind_file_reader.job)
		return;
	f = (struct spec_kind_file *)container_of(kind, struct spec_kind_file, kind);
	arena_clear(&f->arena);
	free(f);
}
