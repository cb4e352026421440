/* SPDX-License-Identifier: MIT */
/*
 * Makes objects from documents. This is the main file of the folder, which has the kinds of jobs
 * that kxfs can make from AppDefs:
 *
 *   kinds.c           the table of kinds, and which of them a cluster serves
 *   volcano.c, mcad.c, appwrapper.c   kinds: make and read their objects, implement ctl
 *   indexed.c         makes JobSets and batch Jobs
 *   ready_manifest.c  checks documents that already are objects
 *   added.c           removes fields that others have added to such an object
 *   manifest.c        parses a document, lets the kind make the object, adds annotations and
 *                     labels, checks the size
 *   right.c           the rights that a mount uses
 *
 * spec/pods has what several kinds share. All functions are pure. A build (struct spec_build)
 * belongs to the call that makes a manifest. Kinds report an error with the path of a field. At the
 * end, kxfs finds the position of this field in the document.
 */
#include "spec/kinds/manifest.h"

#include <errno.h>

#include "spec/base/encode.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/kinds/kinds.h"
#include "spec/kinds/ready_manifest.h"
#include "spec/pods/pod.h"

/*
 * kxfs makes even an object that is too large, because the error reports the exact size. The
 * exception is an object whose minimum size (spec_pods_least_bytes) exceeds the limit times this
 * factor.
 */
#define FAR_TOO_LARGE 4

void spec_manifest_free(struct spec_manifest *m)
{
	if (!m)
		return;
	free(m->id);
	free(m->json);
	free(m);
}

/* --- building --- */

static void build_clear(struct spec_build *b)
{
	free(b->id);
	json_object_put(b->object);
}

/*
 * Refuse an object because of its SIZE in bytes. If EXACT is false, SIZE is a lower bound. APP is
 * NULL for a ready manifest.
 */
static int refuse_size(const struct spec_app *app, uint64_t size, bool exact, struct spec_errors *e)
{
	const char *least = exact ? "" : "at least ";
	uint64_t replicas = 0, each;

	if (!app)
		return spec_errors_add(
			e, -EFBIG, 0, 0, "",
			"the object has %llu bytes, but the cluster stores at most %u",
			(unsigned long long)size, SPEC_MAX_OBJECT);
	for (size_t i = 0; i < app->n_roles; i++)
		replicas += (uint64_t)app->roles[i].num_replicas;
	each = size / max_of(replicas, (uint64_t)1);
	return spec_errors_add(
		e, -EFBIG, 0, 0, "roles",
		"the object would have %s%llu bytes, but the cluster stores at most %u; with "
		"%s%llu bytes per replica, about %llu of the %llu replicas fit",
		least, (unsigned long long)size, SPEC_MAX_OBJECT, least, (unsigned long long)each,
		(unsigned long long)(SPEC_MAX_OBJECT / max_of(each, (uint64_t)1)),
		(unsigned long long)replicas);
}

/*
 * Make the object of B's app. OPTIONS has the run options of the mount. Merge those of the job into
 * OPTIONS.
 */
static int build_app(struct spec_build *b, struct spec_options *options)
{
	const struct spec_app *app = b->app;
	uint64_t floor = spec_pods_least_bytes(b->kind, app);

	spec_options_merge(options, app->scheduler_args, b->identity->namespace, b->errors);
	spec_options_check(options, b->errors);
	if (b->errors->err)
		return b->errors->err;
	if (floor > FAR_TOO_LARGE * (uint64_t)SPEC_MAX_OBJECT)
		return refuse_size(app, floor, false, b->errors);
	return b->kind->build(b);
}

/* --- annotations and labels of kxfs --- */

/*
 * Return the map FIELD of MAP, and create it if it is absent. Return NULL if MAP or FIELD is not a
 * map: the server will refuse such an object.
 */
static struct json_object *need_map(struct json_object *map, const char *field)
{
	struct json_object *ret = json_object_object_get(map, field);

	if (!ret && json_object_is_type(map, json_type_object)) {
		ret = spec_tree_map();
		spec_tree_set(map, field, ret);
	}
	return json_object_is_type(ret, json_type_object) ? ret : NULL;
}

/*
 * Set the label SPEC_LABEL_USER in the map at PATH. If USER is NULL, remove the label: a copied
 * manifest may have that of the original job.
 */
static void put_user(struct json_object *object, const char *path, const char *user)
{
	cleanup_free char *text = text_copy(path);
	char *rest = text;

	for (char *name; object && (name = strsep(&rest, "."));)
		object = user ? need_map(object, name) : json_object_object_get(object, name);
	if (user && object)
		spec_tree_set(object, SPEC_LABEL_USER, spec_tree_string(user));
	else if (json_object_is_type(object, json_type_object))
		json_object_object_del(object, SPEC_LABEL_USER);
}

/* Skip objects that are not pods, such as a Job in an AppWrapper: kxfs does not show their pods. */
static void put_user_of_pod(struct json_object *pod, const void *user)
{
	struct json_object *kind = json_object_object_get(pod, "kind");

	if (!kind || streq(json_object_get_string(kind), "Pod"))
		put_user(pod, "metadata.labels", user);
}

/* Set or remove the label by which a mount lists only this user's objects and pods. */
static void put_users(struct spec_build *b, const char *user)
{
	put_user(b->object, "metadata.labels", user);
	spec_each_template(b->kind, b->object, put_user_of_pod, user);
	if (b->kind->user_labels)
		put_user(b->object, b->kind->user_labels, user);
}

static void annotate(struct spec_build *b, const char *text, size_t len)
{
	struct json_object *metadata = json_object_object_get(b->object, "metadata");
	struct json_object *notes = need_map(metadata, "annotations");
	char digest[65];

	spec_tree_set(notes, "kxfs/submitter", spec_tree_string(b->identity->submitter));
	spec_tree_set(notes, "kxfs/submission", spec_tree_string(b->identity->submission));
	if (!b->app)
		return;
	if (len <= SPEC_MAX_APPDEF_NOTE) {
		spec_tree_set(notes, "kxfs/appdef", spec_tree_bytes(text, len));
		return;
	}
	spec_sha256(text, len, digest);
	spec_tree_set(notes, "kxfs/appdef-sha256", spec_tree_string(digest));
}

/* --- all steps together --- */

static int finish(struct spec_build *b, struct spec_manifest **ret)
{
	struct json_object *ttl = spec_tree_find(b->object, "spec.ttlSecondsAfterFinished");
	cleanup_free char *json = spec_tree_print(b->object);
	const size_t len = strlen(json);
	struct spec_manifest *m;

	if (len > SPEC_MAX_OBJECT)
		return refuse_size(b->app, len, true, b->errors);
	m = new0(struct spec_manifest);
	m->json = take_ptr(json);
	m->json_len = len;
	m->kind = b->kind;
	m->id = take_ptr(b->id);
	m->named = b->named;
	m->ttl = ttl ? max_of(json_object_get_int64(ttl), (int64_t)0) : -1;
	*ret = m;
	return 0;
}

static const struct spec_kind *refuse_all(struct spec_errors *e)
{
	spec_errors_add(e, -EOPNOTSUPP, 0, 0, "",
			"no jobs can be submitted: the cluster serves no kind of job that this "
			"user may list");
	return NULL;
}

/*
 * Return the kind of the manifest ROOT. If the mount does not show this kind, add an error, and
 * return one of the mount's kinds or NULL.
 */
static const struct spec_kind *choose_ready(const struct spec_yaml *root,
					    const struct spec_manifest_request *rq,
					    struct spec_errors *e)
{
	const struct spec_kind *const *kinds = rq->kind ? &rq->kind : rq->kinds;
	const struct spec_kind *kind = spec_ready_kind(rq->known, root);
	size_t n = rq->kind ? 1 : rq->n_kinds;

	if (n == 0)
		return refuse_all(e);
	for (size_t i = 0; i < n; i++)
		if (kinds[i] == kind)
			return kind;
	spec_ready_refuse(root, kinds, n, e);
	return kinds[0];
}

/*
 * Return the kind of the object to make from ROOT. If there is an error, add it to E. The result
 * may then be NULL.
 */
static const struct spec_kind *choose_kind(const struct spec_yaml *root,
					   const struct spec_manifest_request *rq,
					   struct spec_errors *e)
{
	const struct spec_yaml *scheduler =
		root->type == SPEC_YAML_MAP ? spec_yaml_get(root, "scheduler") : NULL;
	cleanup_free char *all = NULL;

	if (spec_app_is_manifest(root))
		return choose_ready(root, rq, e);
	if (rq->kind)
		return rq->kind;
	if (scheduler && scheduler->type != SPEC_YAML_SCALAR)
		scheduler = NULL;
	for (size_t i = 0; i < rq->n_kinds; i++) {
		const struct spec_kind *kind = rq->kinds[i];

		if (!kind->build)
			continue;
		if (scheduler && spec_kind_has_scheduler(kind, scheduler->text))
			return kind;
		text_set(&all, "%s%s%s", all ? all : "", all ? ", " : "", kind->name);
	}
	if (all && scheduler && spec_kind_of_scheduler(rq->known, scheduler->text))
		spec_errors_add(e, -EINVAL, scheduler->line, scheduler->column, "scheduler",
				"is %s, which this mount does not show; this mount submits "
				"jobs to %s",
				scheduler->text, all);
	else if (!rq->n_kinds)
		return refuse_all(e);
	else
		return spec_kind_default(rq->kinds, rq->n_kinds);
	return NULL;
}

static int make(const struct spec_yaml *root, const char *text, size_t len,
		const struct spec_kind *kind, const struct spec_manifest_request *rq,
		struct spec_manifest **ret, struct spec_errors *e)
{
	cleanup(spec_options_freep) struct spec_options *options =
		spec_options_new(kind->name, kind->options);
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	cleanup(build_clear) struct spec_build b = {.kind = kind,
						    .options = options,
						    .identity = &rq->identity,
						    .errors = e};
	struct spec_app_rules rules;
	bool bare;

	for (size_t i = 0; i < rq->n_options; i++) {
		const struct spec_option *o = spec_option_find(kind->options, rq->options[i].key);

		/* On a mount of several kinds, ignore the options that this kind lacks. */
		if (rq->kind || (o && !o->refusal))
			spec_options_set(options, rq->options[i].key, rq->options[i].value, e);
	}
	if (spec_app_is_manifest(root)) {
		if (spec_ready_read(root, &b) < 0)
			return e->err;
	} else if (!kind->build) {
		return spec_errors_add(
			e, -EINVAL, root->line, root->column, "",
			"for %s, write a Kubernetes manifest (with apiVersion and kind); kxfs "
			"makes manifests from AppDefs only for volcano, appwrapper, jobset and "
			"job",
			kind->jobs);
	} else {
		spec_kind_app_rules(&rules, kind, rq->home);
		spec_app_read(root, &rules, &app, e);
		b.app = app;
		if (!app || build_app(&b, options) < 0)
			return e->err;
	}
	bare = spec_options_bool(options, "no_annotations");
	if (bare && rq->mine)
		return spec_errors_add(
			e, -EINVAL, 0, 0, "scheduler_args.no_annotations",
			"leaves out the label " SPEC_LABEL_USER
			", which a mount with -o mine needs to find its jobs: remove no_annotations");
	if (!bare)
		annotate(&b, text, len);
	put_users(&b, bare ? NULL : rq->identity.user);
	return e->err ? e->err : finish(&b, ret);
}

int spec_manifest_make(const char *text, size_t len, const struct spec_manifest_request *rq,
		       struct spec_manifest **ret, struct spec_errors *e)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	int err = spec_app_parse(text, len, &root, e);
	const struct spec_kind *kind;

	if (!root)
		return err;
	kind = choose_kind(root, rq, e);
	err = kind ? make(root, text, len, kind, rq, ret, e) : e->err;
	spec_errors_locate(e, spec_yaml_find, root);
	return err;
}

void spec_manifest_yaml(const struct spec_manifest *m, char **ret, size_t *ret_len)
{
	struct json_object *object cleanup_json = spec_tree_parse(m->json);

	spec_yaml_emit(object, 0, ret, ret_len);
}
