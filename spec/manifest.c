/* SPDX-License-Identifier: MIT */
/*
 * The way from a document to an object: parse, options, build, annotations, size. Errors that come
 * from the kinds have a path; where it stands in the document is found here.
 */
#include "spec/manifest.h"

#include <errno.h>

#include "spec/limits.h"
#include "spec/pod.h"
#include "spec/ready.h"
#include "spec/sha256.h"

#define JSON_FORM (JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)

/* How far beyond the limit an object is still made, to tell its size exactly. */
#define FAR_TOO_LARGE 4

void spec_manifest_free(struct spec_manifest *m)
{
	if (!m)
		return;
	free(m->id);
	free(m->json);
	free(m);
}

static int no_memory(struct spec_errors *e)
{
	return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
}

/* --- where errors are ----------------------------------------------------------------------- */

/* How much of PATH the KEY takes, as "key", ".key" or "[\"key\"]"; 0: it does not begin so. */
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

/* What the first step of *PATH leads to from NODE, *PATH moved behind it; NULL: nothing. */
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

/* Give each error without a position that of its path, or of the nearest part that there is. */
static void locate(const struct spec_yaml *root, struct spec_errors *e)
{
	for (size_t i = 0; i < e->n; i++) {
		const char *path = e->v[i].path;
		const struct spec_yaml *node = root, *next = root;

		if (e->v[i].line > 0)
			continue;
		while (*path && (next = step(node, &path)))
			node = next;
		if (node == root)
			continue;
		e->v[i].line = node->line;
		e->v[i].column = node->column;
	}
}

/* Errors in the order of the document, as the parser gives them, those without a position first. */
static void sort_errors(struct spec_errors *e)
{
	for (size_t i = 1; i < e->n; i++) {
		struct spec_error moved = e->v[i];
		size_t to = i;

		for (; to > 0 &&
		       (e->v[to - 1].line > moved.line ||
			(e->v[to - 1].line == moved.line && e->v[to - 1].column > moved.column));
		     to--)
			e->v[to] = e->v[to - 1];
		e->v[to] = moved;
	}
}

/* --- building ------------------------------------------------------------------------------- */

static void build_clear(struct spec_build *b)
{
	free(b->id);
	json_object_put(b->object);
}

static uint64_t count_replicas(const struct spec_app *app)
{
	uint64_t n = 0;

	for (size_t i = 0; i < app->n_roles; i++)
		n += (uint64_t)app->roles[i].num_replicas;
	return n;
}

/* APP NULL: a ready manifest, of which the replicas are not known. */
static int refuse_size(const struct spec_app *app, uint64_t size, bool exact, struct spec_errors *e)
{
	uint64_t replicas = app ? count_replicas(app) : 0;
	uint64_t each = size / max_of(replicas, (uint64_t)1);
	const char *least = exact ? "" : "at least ";

	if (!app)
		return spec_errors_add(
			e, -EFBIG, 0, 0, "",
			"the object has %llu bytes, and the cluster stores at most %u",
			(unsigned long long)size, SPEC_MAX_OBJECT);
	return spec_errors_add(
		e, -EFBIG, 0, 0, "roles",
		"the object would have %s%llu bytes, and the cluster stores at most %u; "
		"with %s%llu bytes a replica, there is room for about %llu of the %llu",
		least, (unsigned long long)size, SPEC_MAX_OBJECT, least, (unsigned long long)each,
		(unsigned long long)(SPEC_MAX_OBJECT / max_of(each, (uint64_t)1)),
		(unsigned long long)replicas);
}

/* B's options are the mount's; here they become the job's. */
static int build_app(struct spec_build *b, struct spec_options *options)
{
	const struct spec_app *app = b->app;
	uint64_t floor = spec_pods_floor(app);

	spec_options_merge(options, app->scheduler_args, b->identity->namespace, b->errors);
	spec_options_check(options, b->errors);
	if (b->errors->err)
		return b->errors->err;
	if (floor > FAR_TOO_LARGE * (uint64_t)SPEC_MAX_OBJECT)
		return refuse_size(app, floor, false, b->errors);
	return b->kind->build(b);
}

/* --- what kxfs adds ------------------------------------------------------------------------- */

/* The map FIELD of MAP, made if it is not there. */
static struct json_object *need_map(struct spec_tree *t, struct json_object *map, const char *field)
{
	struct json_object *ret = json_object_object_get(map, field);

	return ret ? ret : spec_tree_add(t, map, field, spec_tree_map(t));
}

static void note_app(struct spec_tree *t, struct json_object *notes, const char *text, size_t len)
{
	char digest[65];

	if (len <= SPEC_MAX_APPDEF_NOTE) {
		spec_tree_set(t, notes, "kxfs/appdef", json_object_new_string_len(text, (int)len));
		return;
	}
	spec_sha256(text, len, digest);
	spec_tree_set(t, notes, "kxfs/appdef-sha256", spec_tree_string(t, digest));
}

static int annotate(struct spec_build *b, const char *text, size_t len)
{
	struct spec_tree t = {0};
	struct json_object *metadata = json_object_object_get(b->object, "metadata");
	struct json_object *notes = need_map(&t, metadata, "annotations");

	spec_tree_set(&t, notes, "kxfs/submitter", spec_tree_string(&t, b->identity->submitter));
	spec_tree_set(&t, notes, "kxfs/submission", spec_tree_string(&t, b->identity->submission));
	if (b->app)
		note_app(&t, notes, text, len);
	return t.failed ? no_memory(b->errors) : 0;
}

/* --- the whole ------------------------------------------------------------------------------ */

static int set_options(struct spec_options *options, const struct spec_manifest_request *rq,
		       struct spec_errors *e)
{
	for (size_t i = 0; i < rq->n_options; i++)
		spec_options_set(options, rq->options[i].key, rq->options[i].value, e);
	return e->err;
}

static int finish(struct spec_build *b, struct spec_manifest **ret)
{
	cleanup(spec_manifest_freep) struct spec_manifest *m = calloc(1, sizeof(*m));
	const char *json;
	size_t len;

	json = json_object_to_json_string_length(b->object, JSON_FORM, &len);
	if (!m || !json)
		return no_memory(b->errors);
	if (len > SPEC_MAX_OBJECT)
		return refuse_size(b->app, len, true, b->errors);
	m->json = strndup(json, len);
	m->json_len = len;
	m->id = take_ptr(b->id);
	m->named = !b->app && !b->identity->rename;
	if (!m->json)
		return no_memory(b->errors);
	*ret = take_ptr(m);
	return 0;
}

static int make(const struct spec_yaml *root, const char *text, size_t len,
		const struct spec_manifest_request *rq, struct spec_manifest **ret,
		struct spec_errors *e)
{
	cleanup(spec_options_freep) struct spec_options *options = spec_options_new(rq->kind);
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	cleanup(build_clear) struct spec_build b = {.kind = rq->kind,
						    .options = options,
						    .identity = &rq->identity,
						    .errors = e};

	if (!options)
		return no_memory(e);
	set_options(options, rq, e);
	if (spec_ready_is(root)) {
		if (spec_ready_read(root, rq->kind, &rq->identity, &b.object, &b.id, e) < 0)
			return e->err;
	} else {
		spec_app_read(root, rq->home, rq->kind->name, &app, e);
		b.app = app;
		if (!app || build_app(&b, options) < 0)
			return e->err;
	}
	if (!spec_options_bool(options, "no_annotations") && annotate(&b, text, len) < 0)
		return e->err;
	return e->err ? e->err : finish(&b, ret);
}

int spec_manifest_make(const char *text, size_t len, const struct spec_manifest_request *rq,
		       struct spec_manifest **ret, struct spec_errors *e)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	int err = spec_yaml_parse(text, len, &root, e);

	if (!root)
		return err;
	err = make(root, text, len, rq, ret, e);
	locate(root, e);
	sort_errors(e);
	return err;
}

int spec_manifest_yaml(const struct spec_manifest *m, char **ret, size_t *ret_len)
{
	struct json_object *object cleanup_json = spec_tree_parse(m->json);

	return object ? spec_yaml_emit(object, 0, ret, ret_len) : -ENOMEM;
}
