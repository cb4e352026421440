/* SPDX-License-Identifier: MIT */
/*
 * The pods of a job, in three steps: what all of them share, what those of a role share (image, resources, ports,
 * volumes, node selector, with the checks of each), and the pod of one replica, with its macros filled in, the overlay,
 * and TorchX's labels over that. Order and spelling of everything is TorchX's; docs/deviations.md lists what is not.
 */
#include "spec/kinds/pod.h"

#include <errno.h>

#include "spec/app/label.h"
#include "spec/app/macro.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/kinds/overlay.h"

#define JOB_ID	      "TORCHX_JOB_ID"
#define RANK0_HOST    "TORCHX_RANK0_HOST"
#define FIELD_PATH    "[FIELD_PATH]" /* a value that begins so names a field of the pod */
#define INSTANCE_TYPE "node.kubernetes.io/instance-type"
#define EFA	      "vpc.amazonaws.com/efa"
#define GPU	      "nvidia.com/gpu"
#define LOCAL_IMAGE   "sha256:" /* the id of an image of the local Docker daemon */

int spec_build_refuse(struct spec_build *b, const char *path, const char *fmt, ...)
{
	char *text cleanup_free = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = text_vprint(fmt, ap);
	va_end(ap);
	return spec_errors_add(b->errors, -EINVAL, 0, 0, path, "%s", text);
}

int spec_build_name(struct spec_build *b, const char *controller)
{
	b->id = spec_name_job(b->app->name, b->identity->random[0]);
	if (*b->id >= '0' && *b->id <= '9')
		return spec_build_refuse(
			b, "name",
			"jobs of this name would be called %s: a name that %s makes "
			"a Service of must begin with a letter",
			b->id, controller);
	return 0;
}

static struct json_object *label(const char *value)
{
	char *clean cleanup_free = spec_label_clean(value);

	return spec_tree_string(clean);
}

/* A variable of a container. */
static struct json_object *variable(const char *name, const char *value)
{
	struct json_object *ret = spec_tree_map(), *source, *field;

	spec_tree_text(ret, "name", name);
	if (strncmp(value, FIELD_PATH, strlen(FIELD_PATH)) != 0) {
		spec_tree_text(ret, "value", value);
		return ret;
	}
	field = spec_tree_map();
	spec_tree_text(field, "fieldPath", value + strlen(FIELD_PATH));
	source = spec_tree_map();
	spec_tree_add(source, "fieldRef", field);
	spec_tree_add(ret, "valueFrom", source);
	return ret;
}

/* --- the job -------------------------------------------------------------------------------- */

struct json_object *spec_pods_object_labels(struct spec_pods *p)
{
	struct json_object *ret = spec_tree_map();

	spec_tree_add(ret, "app.kubernetes.io/name", label(p->app_name));
	spec_tree_text(ret, "app.kubernetes.io/managed-by", "torchx.pytorch.org");
	spec_tree_text(ret, "app.kubernetes.io/instance", p->build->id);
	return ret;
}

void spec_pods_init(struct spec_pods *p)
{
	const struct spec_build *b = p->build;
	char *handle cleanup_free =
		text_print("%s://torchx/%s:%s", b->kind->scheduler, b->identity->namespace, b->id);

	p->job_id = variable(JOB_ID, handle);
	p->rank0 = variable(RANK0_HOST, p->replica_id ? p->rank0_host : "localhost");
	p->labels = spec_pods_object_labels(p);
	spec_tree_text(p->labels, "torchx.pytorch.org/version", POD_TORCHX_VERSION);
	spec_tree_add(p->labels, "torchx.pytorch.org/app-name", label(p->app_name));
	p->annotations = spec_tree_map();
	/* A sidecar would run on when the replica has finished. */
	spec_tree_add(p->annotations, "sidecar.istio.io/inject", spec_tree_string("false"));
	if (p->network)
		spec_tree_text(p->annotations, "k8s.v1.cni.cncf.io/networks", p->network);
}

void spec_pods_clear(struct spec_pods *p)
{
	json_object_put(p->labels);
	json_object_put(p->annotations);
	json_object_put(p->job_id);
	json_object_put(p->rank0);
	json_object_put(p->number);
}

/* --- the parts of a role's pods --------------------------------------------------------------- */

/* "roles[I].FIELD" */
static void role_path(const struct spec_pod_role *r, const char *field, char ret[64])
{
	snprintf(ret, 64, "roles[%zu].%s", r->index, field);
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int make_image(struct spec_pod_role *r)
{
	const struct spec_build *b = r->pods->build;
	const char *image = r->role->image, *repo;
	char path[64];

	role_path(r, "image", path);
	if (is_space(image[0]) || is_space(image[strlen(image) - 1]))
		return spec_build_refuse(r->pods->build, path,
					 "must not begin or end with a space");
	if (strncmp(image, LOCAL_IMAGE, strlen(LOCAL_IMAGE)) != 0) {
		r->image = spec_tree_string(image);
		return 0;
	}
	repo = spec_options_text(b->options, "image_repo");
	if (!repo || !*repo)
		return spec_build_refuse(
			r->pods->build, path,
			"is the id of a local image; the run option image_repo has to "
			"name the repository it was pushed to");
	r->image = spec_tree_format("%s:%s", repo, image + strlen(LOCAL_IMAGE));
	return 0;
}

/* AMOUNT, which the parser has bounded, becomes KEY's limit; less RESERVED it becomes its request. */
static void put_amount(struct json_object *limits, struct json_object *requests, const char *key,
		       double amount, char unit, int64_t reserved)
{
	int64_t limit = (int64_t)amount;
	int64_t request = limit > reserved ? limit - reserved : 0;

	spec_tree_set(limits, key, spec_tree_format("%lld%c", (long long)limit, unit));
	spec_tree_set(requests, key, spec_tree_format("%lld%c", (long long)request, unit));
}

/* Devices come last, so a device that is called cpu replaces the limit of that name. */
static void put_devices(struct spec_pod_role *r, struct json_object *limits)
{
	const struct spec_counts *devices = &r->role->resource.devices;

	for (size_t i = 0; i < devices->n; i++)
		spec_tree_set(limits, devices->v[i].key,
			      spec_tree_format("%lld", (long long)devices->v[i].value));
	if (r->pods->efa == 0)
		json_object_object_del(limits, EFA);
	else if (r->pods->efa > 0)
		spec_tree_set(limits, EFA, spec_tree_format("%lld", (long long)r->pods->efa));
}

static void make_resources(struct spec_pod_role *r)
{
	const struct spec_resource *have = &r->role->resource;
	struct json_object *limits = spec_tree_map(), *requests = spec_tree_map(),
			   *both = spec_tree_map();

	spec_tree_add(both, "limits", limits);
	spec_tree_add(both, "requests", requests);
	spec_tree_add(r->container, "resources", both);
	if (have->cpu > 0)
		put_amount(limits, requests, "cpu", have->cpu * 1000, 'm', r->pods->reserved_cpu);
	if (have->mem_mb > 0)
		put_amount(limits, requests, "memory", have->mem_mb, 'M', r->pods->reserved_memory);
	if (have->gpu > 0) {
		spec_tree_set(limits, GPU, spec_tree_format("%lld", (long long)have->gpu));
		spec_tree_set(requests, GPU, spec_tree_format("%lld", (long long)have->gpu));
	}
	put_devices(r, limits);
}

static void make_ports(struct spec_pod_role *r)
{
	const struct spec_counts *ports = &r->role->port_map;
	struct json_object *list = spec_tree_list(ports->n);

	for (size_t i = 0; i < ports->n; i++) {
		struct json_object *port = spec_tree_map();

		spec_tree_text(port, "name", ports->v[i].key);
		spec_tree_number(port, "containerPort", ports->v[i].value);
		spec_tree_append(list, port);
	}
	spec_tree_add(r->container, "ports", list);
}

static struct json_object *make_volume(const struct spec_mount *m, const char *name)
{
	struct json_object *volume = spec_tree_map(), *source = spec_tree_map();

	spec_tree_text(volume, "name", name);
	if (m->type == SPEC_MOUNT_VOLUME) {
		spec_tree_text(source, "claimName", m->src);
		spec_tree_add(volume, "persistentVolumeClaim", source);
	} else {
		spec_tree_text(source, "path", m->src);
		spec_tree_add(volume, "hostPath", source);
	}
	return volume;
}

static bool is_read_only(const struct spec_mount *m)
{
	return m->type == SPEC_MOUNT_DEVICE ? !strpbrk(m->permissions, "wm") : m->read_only;
}

static struct json_object *make_volume_mount(const struct spec_mount *m, const char *name)
{
	struct json_object *mount = spec_tree_map();

	spec_tree_text(mount, "name", name);
	spec_tree_text(mount, "mountPath", m->dst);
	spec_tree_add(mount, "readOnly", spec_tree_bool(is_read_only(m)));
	return mount;
}

static void make_mounts(struct spec_pod_role *r)
{
	const struct spec_role *role = r->role;
	struct json_object *volumes = spec_tree_list(role->n_mounts + 1);
	struct json_object *mounts = spec_tree_list(role->n_mounts + 1);
	struct json_object *security = spec_tree_map();
	bool privileged = false;

	/* Every pod has memory mounted at /dev/shm, of which Docker gives 64 MB only. */
	spec_tree_append(volumes,
			 spec_tree_parse(
				 "{\"name\": \"dshm\", \"emptyDir\": {\"medium\": \"Memory\"}}"));
	spec_tree_append(mounts,
			 spec_tree_parse("{\"name\": \"dshm\", \"mountPath\": \"/dev/shm\"}"));
	for (size_t i = 0; i < role->n_mounts; i++) {
		char name[32];

		snprintf(name, sizeof(name), "mount-%zu", i);
		spec_tree_append(volumes, make_volume(&role->mounts[i], name));
		spec_tree_append(mounts, make_volume_mount(&role->mounts[i], name));
		privileged |= role->mounts[i].type == SPEC_MOUNT_DEVICE;
	}
	spec_tree_add(r->spec, "volumes", volumes);
	spec_tree_add(r->container, "volumeMounts", mounts);
	if (privileged)
		spec_tree_add(security, "privileged", spec_tree_bool(true));
	spec_tree_add(r->container, "securityContext", security);
}

/* Has PATH a part that is ".."? */
static bool climbs(const char *path)
{
	for (;; path++) {
		size_t n = strcspn(path, "/");

		if (n == 2 && strncmp(path, "..", 2) == 0)
			return true;
		path += n;
		if (!*path)
			return false;
	}
}

/* Check one mount for what the API server would refuse. */
static int check_mount(struct spec_pod_role *r, const struct spec_mount *m, const char *path)
{
	if (strchr(m->dst, ':'))
		return spec_build_refuse(r->pods->build, path,
					 "%s: a path in the container must not hold \":\"", m->dst);
	if (m->type != SPEC_MOUNT_VOLUME && climbs(m->src))
		return spec_build_refuse(r->pods->build, path,
					 "%s: a path of the host must not hold \"..\"", m->src);
	return 0;
}

/* The API server accepts each path of the container only once. */
static int check_mounts(struct spec_pod_role *r)
{
	const struct spec_role *role = r->role;
	struct json_object *seen cleanup_json = spec_tree_map();
	char path[64];
	int ret = 0;

	spec_tree_set(seen, "/dev/shm", spec_tree_bool(true));
	role_path(r, "mounts", path);
	for (size_t i = 0; i < role->n_mounts; i++) {
		const char *dst = role->mounts[i].dst;

		if (json_object_object_get_ex(seen, dst, NULL))
			ret = spec_build_refuse(r->pods->build, path, "%s is mounted twice%s", dst,
						streq(dst, "/dev/shm")
							? ": every pod has memory mounted there"
							: "");
		spec_tree_set(seen, dst, spec_tree_bool(true));
		if (check_mount(r, &role->mounts[i], path) < 0)
			ret = -EINVAL;
	}
	return ret;
}

static int make_node_selector(struct spec_pod_role *r)
{
	const struct spec_map *has = &r->role->resource.capabilities;
	struct json_object *selector = spec_tree_map();
	char path[64];
	int ret = 0;

	role_path(r, "resource.capabilities", path);
	for (size_t i = 0; i < has->n; i++) {
		if (!streq(has->v[i].key, INSTANCE_TYPE))
			continue;
		if (!spec_label_is_valid(has->v[i].value))
			ret = spec_build_refuse(
				r->pods->build, path,
				"\"%s\" can't be the value of a label: at most 63 letters, "
				"digits, dots, dashes, underscores",
				has->v[i].value);
		spec_tree_set(selector, INSTANCE_TYPE, spec_tree_string(has->v[i].value));
	}
	spec_tree_add(r->spec, "nodeSelector", selector);
	return ret;
}

/* Is NAME a resource of containers: one of Kubernetes' own, or DOMAIN/NAME? */
static bool is_resource(const char *name)
{
	static const char *const own[] = {"cpu", "memory", "ephemeral-storage"};
	const char *slash = strchr(name, '/');
	char *domain cleanup_free = slash ? mem_copy(name, (size_t)(slash - name)) : NULL;

	for (size_t i = 0; i < array_size(own); i++)
		if (streq(name, own[i]))
			return true;
	if (strncmp(name, "hugepages-", 10) == 0)
		return spec_label_is_valid(name);
	return domain && spec_name_is_object(domain) && slash[1] && spec_label_is_valid(slash + 1);
}

static int check_devices(struct spec_pod_role *r)
{
	const struct spec_counts *devices = &r->role->resource.devices;
	char path[64];
	int ret = 0;

	role_path(r, "resource.devices", path);
	for (size_t i = 0; i < devices->n; i++)
		if (!is_resource(devices->v[i].key))
			ret = spec_build_refuse(
				r->pods->build, path,
				"\"%s\" is no resource that a container can ask for: "
				"write it with its domain, like nvidia.com/gpu",
				devices->v[i].key);
	return ret;
}

/* Make image, container and spec of R. 0, or an errno that is in the build's errors. */
static int make_parts(struct spec_pod_role *r)
{
	const char *account = spec_options_text(r->pods->build->options, "service_account");
	int errs[4] = {0};

	r->container = spec_tree_map();
	r->spec = spec_tree_map();
	spec_tree_text(r->spec, "restartPolicy", "Never");
	if (account)
		spec_tree_text(r->spec, "serviceAccountName", account);
	errs[0] = make_image(r);
	make_resources(r);
	make_ports(r);
	make_mounts(r);
	errs[1] = check_mounts(r);
	errs[2] = make_node_selector(r);
	errs[3] = check_devices(r);
	for (size_t i = 0; i < array_size(errs); i++) {
		if (errs[i])
			return errs[i];
	}
	return 0;
}

/* --- a role --------------------------------------------------------------------------------- */

static bool has_macros(const char *text)
{
	return strchr(text, '$') != NULL;
}

static void share_command(struct spec_pod_role *r)
{

	for (size_t i = 0; i < r->role->n_args; i++) {
		if (has_macros(r->role->args[i]))
			return;
	}
	r->command = spec_tree_list(r->role->n_args + 1);
	spec_tree_append(r->command, spec_tree_string(r->role->entrypoint));
	for (size_t i = 0; i < r->role->n_args; i++)
		spec_tree_append(r->command, spec_tree_string(r->role->args[i]));
}

static void share_env(struct spec_pod_role *r)
{
	const struct spec_map *env = &r->role->env;

	r->env = new0_n(struct json_object *, env->n);
	for (size_t i = 0; i < env->n; i++) {
		if (streq(env->v[i].key, JOB_ID) && !spec_name_is_handle(env->v[i].value))
			r->env[i] = json_object_get(r->pods->job_id);
		else if (!has_macros(env->v[i].value))
			r->env[i] = variable(env->v[i].key, env->v[i].value);
	}
}

static int check_env(struct spec_pod_role *r)
{
	const struct spec_map *env = &r->role->env;
	int ret = 0;

	for (size_t i = 0; i < env->n; i++) {
		char *path cleanup_free = NULL;

		if (!streq(env->v[i].value, FIELD_PATH))
			continue;
		path = text_print("roles[%zu].env.%s", r->index, env->v[i].key);
		ret = spec_build_refuse(r->pods->build, path,
					"names no field: write one behind it, like " FIELD_PATH
					"spec.nodeName");
	}
	return ret;
}

static void share_labels(struct spec_pod_role *r)
{

	r->labels = spec_tree_map();
	spec_tree_add_all(r->labels, r->pods->labels);
	spec_tree_add(r->labels, "torchx.pytorch.org/role-index",
		      spec_tree_format("%zu", r->index));
	spec_tree_add(r->labels, "torchx.pytorch.org/role-name", label(r->role->name));
}

static int find_overlay(struct spec_pod_role *r)
{
	struct spec_build *b = r->pods->build;
	char path[32];

	snprintf(path, sizeof(path), "roles[%zu]", r->index);
	if (!r->role->metadata)
		return 0;
	r->metadata = spec_tree_parse(r->role->metadata);
	return spec_overlay_find(r->metadata, path, &r->overlay, &r->overlay_path, b->errors);
}

int spec_pod_role_init(struct spec_pod_role *r, struct spec_pods *p, size_t index)
{
	int err, err2, err3;

	*r = (struct spec_pod_role){.pods = p,
				    .role = &p->build->app->roles[index],
				    .index = index};
	err = make_parts(r);
	err2 = find_overlay(r);
	err3 = check_env(r);
	if (err || err2 || err3)
		return err ? err : err2 ? err2 : err3;
	share_labels(r);
	share_command(r);
	share_env(r);
	return 0;
}

void spec_pod_role_clear(struct spec_pod_role *r)
{
	for (size_t i = 0; r->env && i < r->role->env.n; i++)
		json_object_put(r->env[i]);
	free(r->env);
	json_object_put(r->labels);
	json_object_put(r->spec);
	json_object_put(r->container);
	json_object_put(r->image);
	json_object_put(r->command);
	json_object_put(r->more_env);
	json_object_put(r->metadata);
	free(r->overlay_path);
}

/* --- the pod of a replica -------------------------------------------------------------------- */

static struct json_object *expand(const char *text, const struct spec_macros *m)
{
	char *expanded cleanup_free = spec_macro_expand(text, m);

	return spec_tree_string(expanded);
}

static struct json_object *make_command(struct spec_pod_role *r, const struct spec_macros *m)
{
	struct json_object *ret;

	if (r->command)
		return json_object_get(r->command);
	ret = spec_tree_list(r->role->n_args + 1);
	spec_tree_append(ret, spec_tree_string(r->role->entrypoint));
	for (size_t i = 0; i < r->role->n_args; i++)
		spec_tree_append(ret, expand(r->role->args[i], m));
	return ret;
}

static struct json_object *expand_variable(const struct spec_pair *pair,
					   const struct spec_macros *m)
{
	char *value cleanup_free = spec_macro_expand(pair->value, m);

	return variable(pair->key, value);
}

/*
 * The user's variables in their order, then TorchX's. One of TorchX's that the user has set too
 * stands where the user put it, with TorchX's value; but a handle of TorchX's scheduler kxfs is right. What
 * others refer to comes before them.
 */
static struct json_object *make_env(struct spec_pod_role *r, bool rank0,
				    const struct spec_macros *m)
{
	const struct spec_map *env = &r->role->env;
	struct spec_pods *p = r->pods;
	struct json_object *ret = spec_tree_list(env->n + 4);
	bool has_job_id = false, has_rank0 = false;

	if (p->number)
		spec_tree_append(ret, json_object_get(p->number));
	for (size_t i = 0; i < env->n; i++) {
		has_job_id |= streq(env->v[i].key, JOB_ID);
		if (rank0 && streq(env->v[i].key, RANK0_HOST)) {
			has_rank0 = true;
			spec_tree_append(ret, json_object_get(p->rank0));
		} else if (r->env[i]) {
			spec_tree_append(ret, json_object_get(r->env[i]));
		} else {
			spec_tree_append(ret, expand_variable(&env->v[i], m));
		}
	}
	if (!has_job_id)
		spec_tree_append(ret, json_object_get(p->job_id));
	if (rank0 && !has_rank0)
		spec_tree_append(ret, json_object_get(p->rank0));
	for (size_t i = 0; r->more_env && i < json_object_array_length(r->more_env); i++)
		spec_tree_append(ret, json_object_get(json_object_array_get_idx(r->more_env, i)));
	return ret;
}

static struct json_object *make_spec(struct spec_pod_role *r, unsigned k, const char *name)
{
	struct spec_pods *p = r->pods;
	bool rank0 = p->replica_id || (r->index == 0 && k == 0);
	struct json_object *ret, *container = spec_tree_map(), *containers = spec_tree_list(1);
	struct spec_macros m = {
		.app_id = p->build->id,
		.img_root = "",
		.base_img_root = "DEPRECATED",
		.rank0_env = rank0 ? RANK0_HOST : p->rank0_env,
	};
	char replica_id[16];

	snprintf(replica_id, sizeof(replica_id), "%u", k);
	m.replica_id = p->replica_id ? p->replica_id : replica_id;
	spec_tree_text(container, "name", name);
	spec_tree_add(container, "image", json_object_get(r->image));
	spec_tree_add(container, "command", make_command(r, &m));
	spec_tree_add(container, "env", make_env(r, rank0, &m));
	spec_tree_add_all(container, r->container);
	spec_tree_append(containers, container);
	ret = spec_tree_map();
	spec_tree_add(ret, "containers", containers);
	spec_tree_add_all(ret, r->spec);
	return ret;
}

/* Where TorchX and the overlay set the same label, TorchX's value is taken. */
static int set_labels(struct spec_pod_role *r, struct json_object *metadata, unsigned k)
{
	struct json_object *labels = spec_tree_map(),
			   *theirs = json_object_object_get(metadata, "labels");
	char *path cleanup_free = NULL;

	if (theirs && !json_object_is_type(theirs, json_type_object)) {
		json_object_put(labels);
		path = text_print("%s.metadata.labels", r->overlay_path);
		return spec_build_refuse(r->pods->build, path, "must be a map");
	}
	if (theirs) {
		json_object_object_foreach(theirs, name, value) {
			if (value)
				spec_tree_set(labels, name, json_object_get(value));
		}
	}
	json_object_object_foreach(r->labels, key, own)
		spec_tree_set(labels, key, json_object_get(own));
	if (!r->pods->replica_id)
		spec_tree_set(labels, "torchx.pytorch.org/replica-id", spec_tree_format("%u", k));
	spec_tree_set(metadata, "labels", labels);
	return 0;
}

struct json_object *spec_pod_make(struct spec_pod_role *r, unsigned k, const char *name)
{
	struct spec_pods *p = r->pods;
	struct json_object *pod cleanup_json = spec_tree_map(), *metadata = spec_tree_map();

	spec_tree_add(metadata, "annotations", json_object_get(p->annotations));
	spec_tree_add(pod, "metadata", metadata);
	spec_tree_add(pod, "spec", make_spec(r, k, name));
	if (r->overlay) {
		struct json_object *overlaid;

		if (spec_overlay_apply(pod, r->overlay, r->overlay_path, &overlaid,
				       p->build->errors) < 0)
			return NULL;
		json_object_put(pod);
		pod = overlaid;
	}
	if (set_labels(r, json_object_object_get(pod, "metadata"), k) < 0)
		return NULL;
	return take_ptr(pod);
}

/* --- size ----------------------------------------------------------------------------------- */

uint64_t spec_pods_floor(const struct spec_kind *kind, const struct spec_app *app)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < app->n_roles; i++) {
		const struct spec_role *r = &app->roles[i];
		uint64_t bytes = 500; /* of each pod, without the texts of its AppDef */

		bytes += strlen(r->image) + strlen(r->entrypoint);
		bytes += r->metadata ? strlen(r->metadata) : 0;
		for (size_t j = 0; j < r->n_args; j++)
			bytes += strlen(r->args[j]);
		for (size_t j = 0; j < r->env.n; j++)
			bytes += strlen(r->env.v[j].key) + strlen(r->env.v[j].value);
		for (size_t j = 0; j < r->n_mounts; j++)
			bytes += strlen(r->mounts[j].src) + strlen(r->mounts[j].dst);
		bytes += 30 * r->port_map.n;
		sum += bytes * (kind->one_template ? 1 : (uint64_t)r->num_replicas);
	}
	return sum;
}
