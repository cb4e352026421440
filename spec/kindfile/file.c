/* SPDX-License-Identifier: MIT */
/*
 * Reads a kind file. Each map is read by a table of its keys. A key that is not in the table is an
 * error, and so is a value of another type. All errors of a file are reported. The result is a row
 * of the table of kinds.
 */
#include "spec/kindfile/file.h"

#include <errno.h>

#include "spec/api/split.h"
#include "spec/base/mem.h"
#include "spec/pods/suspend.h"
#include "spec/yaml/yaml.h"

#define FORMAT	    "kxfs-kind/1"
#define MAX_ROWS    64 /* items of a list */
#define MAX_NAME    20
#define MAX_PARTS   4
#define MAX_IGNORED 31 /* spec/api/split.h */

/* The place NODE in the kind file F, and its path for messages. */
struct kindfile_place {
	struct spec_errors *e;
	struct spec_kind_file *f;
	const struct spec_yaml *node;
	const char *path;
};

/* A key of a map; a table of keys ends with one without a name. */
struct key {
	const char *name;
	void *field; /* what SET gets */
	void (*set)(const struct kindfile_place *p, void *field);
	/* If SIZE is not 0, FIELD points to a list: *N items of SIZE bytes, which SET gets one by one. */
	size_t size, *n;
	bool one; /* an item may stand for a list of it */
	bool needed;
};

#define KEY(key, at, fn, ...)                                                                      \
	{                                                                                          \
		.name = (key), .field = (at), .set = (fn), ##__VA_ARGS__                           \
	}
#define ROWS(key, rows, count, fn, ...)                                                            \
	KEY(key, &(rows), fn, .size = sizeof(*(rows)), .n = &(count), ##__VA_ARGS__)
#define LIST(key, list, fn) ROWS(key, (list)->v, (list)->n, fn, .one = true)

static void printf_like(2, 3) bad(const struct kindfile_place *p, const char *fmt, ...)
{
	cleanup_free char *text = text_of_args(fmt);

	spec_errors_add(p->e, -EINVAL, p->node->line, p->node->column, p->path, "%s", text);
}

/* --- maps and lists --- */

static void unknown_key(const struct kindfile_place *p, const struct key *keys)
{
	const char *words[32] = {NULL};
	const char *near;

	for (size_t i = 0; keys[i].name && i + 1 < array_size(words); i++)
		words[i] = keys[i].name;
	near = spec_suggest(p->node->text, words);
	bad(p, "no such key%s%s%s", near ? "; did you mean " : "", near ? near : "",
	    near ? "?" : "");
}

static void read_list(const struct kindfile_place *p, const struct key *key)
{
	const struct spec_yaml *list = p->node;
	const bool one = key->one && list->type != SPEC_YAML_LIST;
	char *items;

	if (!one && (list->type != SPEC_YAML_LIST || list->n > MAX_ROWS)) {
		bad(p, "has to be a list of at most %d", MAX_ROWS);
		return;
	}
	*key->n = one ? 1 : list->n;
	items = arena_new(&p->f->arena, *key->n, key->size);
	memcpy(key->field, &items, sizeof(items));
	if (one)
		key->set(p, items);
	for (size_t i = 0; i < *key->n && !one; i++) {
		cleanup_free char *path = text_print("%s[%zu]", p->path, i);

		key->set(&(struct kindfile_place){p->e, p->f, list->v[i], path},
			 items + i * key->size);
	}
}

static void read_map(const struct kindfile_place *p, const struct key *keys)
{
	const struct spec_yaml *map = p->node;

	if (map->type != SPEC_YAML_MAP) {
		bad(p, "has to be a map");
		return;
	}
	for (size_t i = 0; i < map->n; i += 2) {
		const char *name = map->v[i]->text;
		cleanup_free char *path = text_print("%s%s%s", p->path, *p->path ? "." : "", name);
		struct kindfile_place at = {p->e, p->f, map->v[i], path};
		const struct key *key = keys;

		while (key->name && !streq(key->name, name))
			key++;
		if (!key->name) {
			unknown_key(&at, keys);
			continue;
		}
		at.node = map->v[i + 1];
		if (key->size)
			read_list(&at, key);
		else
			key->set(&at, key->field);
	}
	for (const struct key *key = keys; key->name; key++)
		if (key->needed && !spec_yaml_get(map, key->name))
			bad(p, "%s is missing", key->name);
}

/* --- scalars --- */

/* Return the text at P. NULL: it is not text; an error was added. */
static const char *text_at(const struct kindfile_place *p)
{
	if (p->node->type == SPEC_YAML_SCALAR && !spec_yaml_is_null(p->node) &&
	    strlen(p->node->text) == p->node->len)
		return p->node->text;
	bad(p, "has to be text");
	return NULL;
}

static void set_text(const struct kindfile_place *p, void *field)
{
	const char *text = text_at(p);

	if (text)
		*(const char **)field = arena_text(&p->f->arena, text_copy(text));
}

static void set_bool(const struct kindfile_place *p, void *field)
{
	if (p->node->type != SPEC_YAML_SCALAR || spec_yaml_resolve(p->node) != SPEC_YAML_BOOL)
		bad(p, "has to be true or false");
	else
		*(bool *)field = (p->node->text[0] | ' ') == 't';
}

static void set_number(const struct kindfile_place *p, void *field)
{
	int n = p->node->type == SPEC_YAML_SCALAR ? spec_read_digits(p->node->text) : -1;

	if (n < 0)
		bad(p, "has to be a number");
	else
		*(int *)field = n;
}

static void set_value(const struct kindfile_place *p, void *field)
{
	const char *text = text_at(p);
	cleanup_free char *why = NULL;

	if (text && value_parse(&p->f->arena, text, field, &why) < 0)
		bad(p, "%s", why);
}

/* Set FIELD to a path that does not go through a list. */
static void set_path(const struct kindfile_place *p, void *field)
{
	struct value *v = field;

	set_value(p, v);
	if (v->text && (v->from != FROM_PATH || v->many))
		bad(p, "has to be a path without [*]");
}

/* Set FIELD to a path of names below .spec. */
static void set_spec_path(const struct kindfile_place *p, void *field)
{
	struct value *v = field;

	set_value(p, v);
	if (v->text && (strncmp(v->text, ".spec.", 6) != 0 || strchr(v->text, '[')))
		bad(p, "has to be a path below .spec, without brackets");
}

/* --- rows --- */

static void read_test(const struct kindfile_place *p, const char *key, struct kind_test *test)
{
	static const char *const words[TEST_VALUE] = {"condition", "phase", "reason"};
	cleanup_free char *why = NULL;
	unsigned what = 0;

	while (what < TEST_VALUE && !streq(key, words[what]))
		what++;
	test->what = what;
	if (what == TEST_VALUE &&
	    (value_parse(&p->f->arena, key, &test->value, &why) < 0 || test->value.many ||
	     (test->value.from != FROM_PATH && test->value.from != FROM_LABEL &&
	      test->value.from != FROM_ANNOTATION)))
		bad(p, "'%s' must be condition, phase, reason, or a path without [*]", key);
	read_list(p, &(struct key)LIST(NULL, &test->any, set_text));
}

static void set_tests(const struct kindfile_place *p, void *field)
{
	struct kind_tests *tests = field;

	if (p->node->type != SPEC_YAML_MAP || p->node->n == 0) {
		bad(p, "has to be a map of conditions");
		return;
	}
	tests->n = p->node->n / 2;
	tests->v = arena_new(&p->f->arena, tests->n, sizeof(*tests->v));
	for (size_t i = 0; i < tests->n; i++) {
		struct kind_test *test = &tests->v[i], first = tests->v[0];
		const char *key = p->node->v[2 * i]->text;
		cleanup_free char *path = text_print("%s.%s", p->path, key);

		read_test(&(struct kindfile_place){p->e, p->f, p->node->v[2 * i + 1], path}, key,
			  test);
		/*
		 * The test of a condition comes first, since a test of a reason refers to its
		 * condition.
		 */
		if (i > 0 && test->what == TEST_CONDITION) {
			tests->v[0] = *test;
			*test = first;
		}
	}
}

/* Set FIELD to the tests of a role or a pod, which may only use values of the object itself. */
static void set_values_tests(const struct kindfile_place *p, void *field)
{
	const struct kind_tests *tests = field;

	set_tests(p, field);
	for (size_t i = 0; i < tests->n; i++)
		if (tests->v[i].what != TEST_VALUE)
			bad(p, "only states can have condition, phase or reason here");
}

/* --- roles and pods --- */

static void set_role(const struct kindfile_place *p, void *row)
{
	struct kind_role *role = row;
	const struct key keys[] = {
		KEY("each", &role->each, set_path),
		KEY("if", &role->tests, set_values_tests),
		LIST("name", &role->name, set_value),
		LIST("replicas", &role->replicas, set_value),
		KEY("default", &role->replicas_default, set_number),
		LIST("times", &role->times, set_value),
		LIST("copies", &role->copies, set_value),
		KEY("template", &role->template, set_path),
		KEY("grows", &role->grows, set_bool),
		{0},
	};

	role->replicas_default = 1;
	read_map(p, keys);
	if (!role->template.text)
		bad(p, "template is missing: the path of the pod's template");
	if (!role->replicas.n)
		bad(p, "replicas is missing");
}

static void set_roles(const struct kindfile_place *p, void *file)
{
	struct spec_kind_file *f = file;

	f->from_pods = p->node->type == SPEC_YAML_SCALAR && streq(p->node->text, "from_pods");
	if (!f->from_pods)
		read_list(p, &(struct key)ROWS(NULL, f->roles, f->n_roles, set_role));
}

static void set_pod(const struct kindfile_place *p, void *row)
{
	struct kind_pod *pod = row;
	const struct key keys[] = {
		KEY("if", &pod->tests, set_values_tests),
		KEY("first", &pod->first, set_number),
		LIST("role", &pod->role, set_value),
		LIST("index", &pod->index, set_value),
		LIST("copy", &pod->copy, set_value),
		LIST("copies", &pod->copies, set_value),
		LIST("attempt", &pod->attempt, set_value),
		LIST("failures", &pod->failures, set_value),
		LIST("main", &pod->main, set_value),
		KEY("trim", &pod->trim, set_bool),
		{0},
	};

	read_map(p, keys);
}

/* --- states --- */

static void set_is(const struct kindfile_place *p, void *field)
{
	cleanup_free char *all = text_copy("");
	const char *text = text_at(p);

	for (unsigned i = 0; i < N_IS; i++) {
		if (text && streq(text, kind_words[i].word)) {
			*(enum kind_is *)field = i;
			return;
		}
		text_set(&all, "%s%s%s", all, i ? ", " : "", kind_words[i].word);
	}
	if (text)
		bad(p, "\"%s\" is not a state; use one of %s", text, all);
}

static void set_state(const struct kindfile_place *p, void *row)
{
	struct kind_state *state = row;
	const struct key keys[] = {
		KEY("if", &state->tests, set_tests, .needed = true),
		KEY("is", &state->is, set_is, .needed = true),
		KEY("shown", &state->shown, set_text),
		KEY("firm", &state->firm, set_bool),
		LIST("vague", &state->vague, set_text),
		LIST("exact", &state->exact, set_text),
		LIST("exact_message", &state->exact_message, set_text),
		{0},
	};

	state->is = N_IS;
	read_map(p, keys);
	for (size_t i = 0; i < state->tests.n; i++)
		if (state->tests.v[i].what == TEST_REASON &&
		    state->tests.v[0].what != TEST_CONDITION)
			bad(p, "reason needs a condition in the same row");
}

/* --- attempts, ctl --- */

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool is_of(const char *text, const char *set, size_t max)
{
	size_t n = strlen(text);

	return n > 0 && n <= max && strspn(text, set) == n;
}

static void set_attempts(const struct kindfile_place *p, void *field)
{
	struct kind_attempts *a = field;
	const struct key keys[] = {
		KEY("failed", &a->count[COUNT_FAILED], set_path),
		KEY("started", &a->count[COUNT_STARTED], set_path),
		KEY("restarted", &a->count[COUNT_RESTARTED], set_path),
		KEY("allowed", &a->allowed, set_path),
		KEY("default", &a->allowed_default, set_number),
		KEY("alone", &a->alone, set_value),
		KEY("pods", &a->pods, set_value),
		{0},
	};

	read_map(p, keys);
	for (unsigned i = COUNT_FAILED; i < N_COUNTS; i++) {
		if (a->counts && a->count[i].text)
			bad(p, "failed, started and restarted: only one of them can be given");
		a->counts = a->count[i].text ? i : a->counts;
	}
}

/* Set *FIELD to a text that consists of CHARS. WHAT names it in messages. */
static void set_word(const struct kindfile_place *p, const char **field, const char *chars,
		     const char *what)
{
	set_text(p, field);
	if (*field && !is_of(*field, chars, 63))
		bad(p, "has to be %s", what);
}

/* Set FIELD to a constant that ctl may write. */
static void set_constant(const struct kindfile_place *p, void *field)
{
	set_word(p, field, LOWER UPPER DIGITS, "a number or a word");
}

static void set_terminate(const struct kindfile_place *p, void *file)
{
	struct spec_kind_file *f = file;
	const struct key keys[] = {
		KEY("set", &f->terminate, set_spec_path),
		KEY("to", &f->terminate_to, set_constant),
		{0},
	};

	read_map(p, keys);
	if (!p->e->n && (!f->terminate.text || !f->terminate_to))
		bad(p, "needs set and to");
}

static void set_ctl(const struct kindfile_place *p, void *file)
{
	struct spec_kind_file *f = file;
	const struct key keys[] = {
		KEY("suspend", &f->suspend, set_spec_path),
		KEY("terminate", f, set_terminate),
		{0},
	};

	read_map(p, keys);
	if (!p->e->n && !f->suspend.text)
		bad(p, "suspend is missing");
}

/* --- the object and its parts --- */

/* Set FIELD to a member of .status that is dropped before an object is stored. */
static void set_ignored(const struct kindfile_place *p, void *field)
{
	const struct value *v = field;

	set_path(p, field);
	if (v->from == FROM_PATH &&
	    (v->n != 2 || !streq(v->steps[0], "status") || strlen(v->steps[1]) > MAX_IGNORED))
		bad(p, "has to be .status.NAME, where NAME has at most %d bytes", MAX_IGNORED);
}

/* Set FIELD to a path or a label that a copy of an object must not have. */
static void set_member(const struct kindfile_place *p, void *field)
{
	const struct value *v = field;

	set_value(p, field);
	if (v->text && v->from != FROM_LABEL &&
	    (v->from != FROM_PATH || v->n < 2 || strchr(v->text, '[')))
		bad(p, "has to be a path of names, or a label");
}

static void set_user_label(const struct kindfile_place *p, void *field)
{
	struct spec_kind *kind = field;
	struct value path = {0};

	kind->unlabelled = p->node->type == SPEC_YAML_SCALAR && streq(p->node->text, "none");
	if (!kind->unlabelled)
		set_spec_path(p, &path);
	kind->user_labels = path.text ? path.text + 1 : NULL;
}

static void set_format(const struct kindfile_place *p, void *field)
{
	const char *text = text_at(p);

	if (text && !streq(text, FORMAT))
		bad(p, "is %s; this version of kxfs reads " FORMAT, text);
}

static void set_name(const struct kindfile_place *p, void *field)
{
	const char **name = field;

	set_text(p, name);
	if (*name &&
	    (!is_of(*name, LOWER DIGITS, MAX_NAME) || !is_of((char[]){**name, 0}, LOWER, 1)))
		bad(p,
		    "has to begin with a letter and to have at most %d lower case letters and digits",
		    MAX_NAME);
}

static void set_plural(const struct kindfile_place *p, void *field)
{
	set_word(p, field, LOWER DIGITS "-", "the name of a resource, like jobsets");
}

static void set_kind(const struct kindfile_place *p, void *field)
{
	set_word(p, field, LOWER UPPER DIGITS, "the kind of an object, like JobSet");
}

static void set_api(const struct kindfile_place *p, void *field)
{
	const char **text = field, *slash;

	set_text(p, text);
	if (!*text)
		return;
	slash = strchr(*text, '/');
	if (!slash)
		bad(p, "objects of the core group (%s) can't be jobs", *text);
	else if (slash == *text || !is_of(slash + 1, LOWER DIGITS, 20) ||
		 strspn(*text, LOWER DIGITS "-.") != (size_t)(slash - *text))
		bad(p, "has to be GROUP/VERSION, like batch/v1");
}

static void set_object(const struct kindfile_place *p, void *field)
{
	struct spec_kind *k = field;
	const struct key keys[] = {
		KEY("api", &k->api_version, set_api),
		KEY("kind", &k->kind, set_kind),
		KEY("plural", &k->plural, set_plural),
		{0},
	};

	read_map(p, keys);
	if (!k->api_version || !k->kind || !k->plural)
		bad(p, "needs api, kind and plural");
}

/* Return the group with its slash: "batch/" of "batch/v1". */
static const char *group_of(struct spec_kind_file *f, const char *api_version)
{
	return arena_text(&f->arena,
			  text_print("%.*s", (int)strcspn(api_version, "/") + 1, api_version));
}

static void set_part(const struct kindfile_place *p, void *row)
{
	struct kind_part *part = row;
	const struct key keys[] = {
		KEY("api", &part->api_version, set_text),
		KEY("kind", &part->kind, set_kind),
		KEY("plural", &part->plural, set_plural),
		LIST("owner_uid", &part->owner_uid, set_value),
		LIST("named", &part->named, set_value),
		{0},
	};

	read_map(p, keys);
	if (!part->api_version || !part->kind || !part->owner_uid.n != !part->named.n) {
		bad(p, "needs api and kind, and plural or both owner_uid and named");
		return;
	}
	/* Pods are watched anyway. */
	if (!streq(part->api_version, "v1") || !streq(part->kind, "Pod"))
		set_api(&(struct kindfile_place){p->e, p->f, spec_yaml_get(p->node, "api"),
						 p->path},
			&part->api_version);
	if (!part->plural && !part->named.n && !streq(part->kind, "Pod"))
		bad(p, "plural is missing");
	part->group = group_of(p->f, part->api_version);
}

static void set_parts(const struct kindfile_place *p, void *file)
{
	struct spec_kind_file *f = file;

	read_list(p, &(struct key)ROWS(NULL, f->parts, f->n_parts, set_part));
	if (f->n_parts > MAX_PARTS)
		bad(p, "there are more than %d", MAX_PARTS);
}

/* --- the kind --- */

/* Return the I-th name by which STATE may be shown; NULL after the last. */
static const char *shown_name(const struct kind_state *state, size_t i)
{
	const struct kind_test *test = &state->tests.v[0];

	for (size_t k = 0; k < state->tests.n && test->what != TEST_CONDITION; k++)
		if (state->tests.v[k].what == TEST_PHASE)
			test = &state->tests.v[k];
	if (state->shown)
		return i == 0 ? state->shown : NULL;
	if (test->what != TEST_CONDITION && test->what != TEST_PHASE)
		return i == 0 ? kind_words[state->is].shown : NULL;
	if (i >= test->any.n)
		return NULL;
	/* An empty text means a job without a phase, which is shown by the default name. */
	return test->what == TEST_PHASE && !*test->any.v[i] ? kind_words[state->is].shown
							    : test->any.v[i];
}

/* True if one of the first N states may be shown as NAME, like STATE, but means something else. */
static bool is_taken(const struct spec_kind_file *f, size_t n, const struct kind_state *state,
		     const char *name)
{
	for (size_t i = 0; i < n; i++) {
		const char *other;

		for (size_t k = 0; (other = shown_name(&f->states[i], k)); k++)
			if (streq(other, name) && f->states[i].is != state->is)
				return true;
	}
	return false;
}

static void make_phases(const struct kindfile_place *p, struct spec_kind_file *f)
{
	bool succeeds = false;
	struct spec_phase *phase;
	size_t n = 1;

	for (size_t i = 0; i < f->n_states; i++)
		for (size_t k = 0; shown_name(&f->states[i], k); k++)
			n += 2;
	f->reader.phases = phase = arena_new(&f->arena, n, sizeof(*phase));
	for (size_t i = 0; i < f->n_states; i++) {
		const struct kind_state *state = &f->states[i];
		const struct spec_phase *rows = kind_words[state->is].rows;
		const char *name;

		succeeds |= state->is == IS_SUCCEEDED;
		for (size_t k = 0; (name = shown_name(state, k)); k++) {
			if (streq(name, "*") || !*name)
				bad(p, "states[%zu] has no name: set shown", i);
			if (is_taken(f, i, state, name))
				bad(p,
				    "states[%zu] would be shown as %s, like another state: set shown to another name",
				    i, name);
			for (size_t r = 0; r < 2 && rows[r].state; r++, phase++) {
				*phase = rows[r];
				phase->name = name;
				phase->by_pods &= !state->firm;
			}
		}
		if (p->e->n)
			return;
	}
	if (!succeeds)
		bad(p, "states: no row has the state succeeded, so no job could ever succeed");
}

/*
 * Split PATH, without its first dot, at its last dot. *RET_KEY is the part after it; return the
 * part before it.
 */
static const char *split_path(struct spec_kind_file *f, const char *path, const char **ret_key)
{
	const char *dot = strrchr(++path, '.');

	*ret_key = dot ? dot + 1 : path;
	return arena_text(&f->arena, mem_copy(path, dot ? (size_t)(dot - path) : 0));
}

/* Return where the templates of pods are in an object. */
static const struct spec_template *make_templates(struct spec_kind_file *f)
{
	struct spec_template *t = arena_new(&f->arena, f->n_roles + 1, sizeof(*t));

	for (size_t i = 0; i < f->n_roles; i++) {
		const char *each = f->roles[i].each.text, *template = f->roles[i].template.text;

		t[i] = (struct spec_template){each ? each + 1 : NULL, template + 1, each};
		if (!each)
			t[i].pods = split_path(f, template, &t[i].pod);
	}
	return t;
}

/*
 * Return the members that a copy of an object must not have: those that ctl may have set, and those
 * in the file.
 */
static const struct spec_member *make_members(struct spec_kind_file *f)
{
	struct spec_member *v = arena_new(&f->arena, f->added.n + 3, sizeof(*v)), *m = v;

	for (size_t i = 0; i < f->added.n; i++, m++) {
		m->at = "metadata.labels";
		m->key = f->added.v[i].text;
		if (f->added.v[i].from != FROM_LABEL)
			m->at = split_path(f, m->key, &m->key);
	}
	if (f->suspend.text) {
		m->at = split_path(f, f->suspend.text, &m->key);
		m++;
	}
	if (f->terminate.text) {
		m->at = split_path(f, f->terminate.text, &m->key);
		m->value = f->terminate_to;
	}
	return v;
}

/* Return the members that are kept, for the splitter. */
static const struct spec_pick *make_pick(struct spec_kind_file *f)
{
	const size_t n = f->ignored.n;
	struct spec_pick *status = arena_new(&f->arena, n + 1, sizeof(*status));
	struct spec_pick *pick = arena_new(&f->arena, 3, sizeof(*pick));

	for (size_t i = 0; i < n; i++)
		status[i].key = f->ignored.v[i].steps[1];
	status[n].keep = true;
	pick[0] = (struct spec_pick){"metadata", true, spec_metadata_pick};
	pick[1] = (struct spec_pick){"status", true, status};
	pick[2].keep = true;
	return n ? pick : NULL;
}

/* Set the parts that are watched. */
static void make_parts(struct spec_kind_file *f)
{
	struct spec_part *v = arena_new(&f->arena, f->n_parts, sizeof(*v));

	for (size_t i = 0; i < f->n_parts; i++) {
		const struct kind_part *part = &f->parts[i];

		if (part->plural && !part->named.n)
			v[f->kind.n_parts++] = (struct spec_part){
				part->api_version, part->kind, part->plural,
				arena_text(&f->arena,
					   text_print("pods of %ss, and their logs, are not shown",
						      part->kind))};
	}
	f->kind.parts = v;
}

static void finish(struct spec_kind_file *f)
{
	struct spec_kind *k = &f->kind;
	const char *terminate = f->terminate.text;

	f->group = group_of(f, k->api_version);
	k->jobs = arena_text(&f->arena, text_print("%ss", k->kind));
	k->templates = make_templates(f);
	k->added = make_members(f);
	k->pick = make_pick(f);
	make_parts(f);
	k->reader = &f->reader;
	f->reader = (struct spec_reader){
		.job = kind_file_job,
		.status = kind_file_status,
		.owner = kind_file_owner,
		.pod = kind_file_pod,
		.phases = f->reader.phases,
		.remade = true,
		.recounted = f->attempts.counts == COUNT_FAILED,
	};
	if (!f->suspend.text)
		return;
	f->control = (struct spec_control){
		.api_version = k->api_version,
		.plural = k->plural,
		.resource = arena_text(&f->arena, text_print("%s.%.*s", k->plural,
							     (int)strlen(f->group) - 1, f->group)),
		.suspend = f->suspend.text + strlen(".spec."),
		.terminate = terminate ? terminate + strlen(".spec.") : NULL,
		.terminate_to = f->terminate_to,
		.known = SUSPEND_KNOWN | (terminate ? 1u << SPEC_TERMINATE : 0),
		.actions = terminate ? suspend_or_terminate_actions : suspend_actions,
		.refusal = suspend_refusal,
		.request = suspend_request,
		.outcome = suspend_outcome,
	};
	k->control = &f->control;
}

static void read_file(const struct kindfile_place *p, struct spec_kind_file *f)
{
	const struct key keys[] = {
		KEY("format", NULL, set_format, .needed = true),
		KEY("name", &f->kind.name, set_name, .needed = true),
		KEY("object", &f->kind, set_object, .needed = true),
		KEY("kueue", &f->kind.in_kueue, set_bool),
		LIST("released_by", &f->released_by, set_text),
		KEY("released_at_end", &f->released_at_end, set_bool),
		KEY("pods_have", &f->kind.pod_selector, set_text),
		KEY("parts", f, set_parts),
		KEY("roles", f, set_roles, .needed = true),
		ROWS("pods", f->placed, f->n_placed, set_pod, .one = true),
		KEY("phase", &f->phase, set_path),
		ROWS("states", f->states, f->n_states, set_state, .needed = true),
		LIST("reason", &f->reason, set_value),
		LIST("message", &f->message, set_value),
		KEY("began", &f->began, set_path),
		KEY("finished", &f->finished, set_path),
		LIST("minimum", &f->minimum, set_value),
		KEY("attempts", &f->attempts, set_attempts),
		KEY("ctl", f, set_ctl),
		LIST("ignore", &f->ignored, set_ignored),
		KEY("user_label", &f->kind, set_user_label),
		LIST("copy_without", &f->added, set_member),
		{0},
	};

	read_map(p, keys);
}

int spec_kind_file_read(const char *text, size_t len, const struct spec_kind *built,
			struct spec_kind **ret, struct spec_errors *e)
{
	/* The options that a ready manifest of a kind without C code may have. */
	static const struct spec_option options[] = {
		{.name = "no_annotations",
		 .type = SPEC_OPTION_BOOL,
		 .help = "leave the annotations and the label kxfs/... out"},
		{0},
	};
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	struct spec_kind_file *f;
	struct kindfile_place p = {.e = e, .path = ""};

	*ret = NULL;
	if (len > SPEC_MAX_KIND_FILE)
		return spec_errors_add(e, -EFBIG, 0, 0, "", "has more than %u bytes",
				       SPEC_MAX_KIND_FILE);
	if (spec_yaml_parse(text, len, &root, e) < 0)
		return e->err;
	p.f = f = new0(struct spec_kind_file);
	f->kind = built ? *built
			: (struct spec_kind){.options = options,
					     .scheduler = "",
					     .one_template = true};
	f->kind.pod_selector = "";
	p.node = root;
	read_file(&p, f);
	if (!e->n && !f->n_roles && !f->from_pods)
		bad(&p, "roles: the list is empty");
	if (!e->n)
		make_phases(&p, f);
	if (e->n || e->err) {
		spec_kind_file_free(&f->kind);
		return e->err;
	}
	finish(f);
	*ret = &f->kind;
	return 0;
}

char *spec_kind_file_name(const char *text, size_t len)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	const struct spec_yaml *name;

	if (len > SPEC_MAX_KIND_FILE || spec_yaml_parse(text, len, &root, &e) < 0 ||
	    root->type != SPEC_YAML_MAP)
		return NULL;
	name = spec_yaml_get(root, "name");
	return name && name->type == SPEC_YAML_SCALAR ? text_copy(name->text) : NULL;
}

void spec_kind_file_free(const struct spec_kind *kind)
{
	struct spec_kind_file *f =
		kind ? (struct spec_kind_file *)container_of(kind, struct spec_kind_file, kind)
		     : NULL;

	if (f)
		arena_clear(&f->arena);
	free(f);
}

bool spec_kind_is_file(const struct spec_kind *kind)
{
	return kind->reader->job == kind_file_job;
}
