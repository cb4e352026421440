/* SPDX-License-Identifier: MIT */
/*
 * Image, resources, ports, volumes and node selector of a role, with the checks that are theirs.
 */
#include "spec/pod_parts.h"

#include <errno.h>

#include "spec/label.h"
#include "spec/name.h"

#define INSTANCE_TYPE "node.kubernetes.io/instance-type"
#define EFA	      "vpc.amazonaws.com/efa"
#define GPU	      "nvidia.com/gpu"
#define LOCAL_IMAGE   "sha256:" /* the id of an image of the local Docker daemon */

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
		r->image = spec_tree_string(&r->pods->tree, image);
		return 0;
	}
	repo = spec_options_text(b->options, "image_repo");
	if (!repo || !*repo)
		return spec_build_refuse(
			r->pods->build, path,
			"is the id of a local image; the run option image_repo has to "
			"name the repository it was pushed to");
	r->image = spec_tree_format(&r->pods->tree, "%s:%s", repo, image + strlen(LOCAL_IMAGE));
	return 0;
}

/* AMOUNT, of which the parser takes no more than fits, as KEY's limit; less RESERVED as its request. */
static void put_amount(struct spec_tree *t, struct json_object *limits,
		       struct json_object *requests, const char *key, double amount, char unit,
		       int64_t reserved)
{
	int64_t limit = (int64_t)amount;
	int64_t request = limit > reserved ? limit - reserved : 0;

	spec_tree_set(t, limits, key, spec_tree_format(t, "%lld%c", (long long)limit, unit));
	spec_tree_set(t, requests, key, spec_tree_format(t, "%lld%c", (long long)request, unit));
}

/* Devices come last, so one that is called cpu takes that limit's place. */
static void put_devices(struct spec_pod_role *r, struct json_object *limits)
{
	const struct spec_counts *devices = &r->role->resource.devices;
	struct spec_tree *t = &r->pods->tree;

	for (size_t i = 0; i < devices->n; i++)
		spec_tree_set(t, limits, devices->v[i].key,
			      spec_tree_format(t, "%lld", (long long)devices->v[i].value));
	if (r->pods->efa == 0)
		json_object_object_del(limits, EFA);
	else if (r->pods->efa > 0)
		spec_tree_set(t, limits, EFA, spec_tree_format(t, "%lld", (long long)r->pods->efa));
}

static void make_resources(struct spec_pod_role *r)
{
	const struct spec_resource *have = &r->role->resource;
	struct spec_tree *t = &r->pods->tree;
	struct json_object *limits = spec_tree_map(t), *requests = spec_tree_map(t),
			   *both = spec_tree_map(t);

	spec_tree_add(t, both, "limits", limits);
	spec_tree_add(t, both, "requests", requests);
	spec_tree_add(t, r->container, "resources", both);
	if (t->failed)
		return;
	if (have->cpu > 0)
		put_amount(t, limits, requests, "cpu", have->cpu * 1000, 'm',
			   r->pods->reserved_cpu);
	if (have->mem_mb > 0)
		put_amount(t, limits, requests, "memory", have->mem_mb, 'M',
			   r->pods->reserved_memory);
	if (have->gpu > 0) {
		spec_tree_set(t, limits, GPU, spec_tree_format(t, "%lld", (long long)have->gpu));
		spec_tree_set(t, requests, GPU, spec_tree_format(t, "%lld", (long long)have->gpu));
	}
	put_devices(r, limits);
}

static void make_ports(struct spec_pod_role *r)
{
	const struct spec_counts *ports = &r->role->port_map;
	struct spec_tree *t = &r->pods->tree;
	struct json_object *list = spec_tree_list(t, ports->n);

	for (size_t i = 0; i < ports->n; i++) {
		struct json_object *port = spec_tree_map(t);

		spec_tree_add(t, port, "name", spec_tree_string(t, ports->v[i].key));
		spec_tree_add(t, port, "containerPort", spec_tree_int(t, ports->v[i].value));
		spec_tree_append(t, list, port);
	}
	spec_tree_add(t, r->container, "ports", list);
}

static struct json_object *make_volume(struct spec_tree *t, const struct spec_mount *m,
				       const char *name)
{
	struct json_object *volume = spec_tree_map(t), *source = spec_tree_map(t);

	spec_tree_add(t, volume, "name", spec_tree_string(t, name));
	if (m->type == SPEC_MOUNT_VOLUME) {
		spec_tree_add(t, source, "claimName", spec_tree_string(t, m->src));
		spec_tree_add(t, volume, "persistentVolumeClaim", source);
	} else {
		spec_tree_add(t, source, "path", spec_tree_string(t, m->src));
		spec_tree_add(t, volume, "hostPath", source);
	}
	return volume;
}

static bool is_read_only(const struct spec_mount *m)
{
	return m->type == SPEC_MOUNT_DEVICE ? !strpbrk(m->permissions, "wm") : m->read_only;
}

static struct json_object *make_volume_mount(struct spec_tree *t, const struct spec_mount *m,
					     const char *name)
{
	struct json_object *mount = spec_tree_map(t);

	spec_tree_add(t, mount, "name", spec_tree_string(t, name));
	spec_tree_add(t, mount, "mountPath", spec_tree_string(t, m->dst));
	spec_tree_add(t, mount, "readOnly", spec_tree_bool(t, is_read_only(m)));
	return mount;
}

/* The volume that every pod has: memory at /dev/shm, of which Docker gives 64 MB only. */
static void put_shm(struct spec_tree *t, struct json_object *volumes, struct json_object *mounts)
{
	struct json_object *volume = spec_tree_map(t), *memory = spec_tree_map(t),
			   *mount = spec_tree_map(t);

	spec_tree_add(t, memory, "medium", spec_tree_string(t, "Memory"));
	spec_tree_add(t, volume, "name", spec_tree_string(t, "dshm"));
	spec_tree_add(t, volume, "emptyDir", memory);
	spec_tree_append(t, volumes, volume);
	spec_tree_add(t, mount, "name", spec_tree_string(t, "dshm"));
	spec_tree_add(t, mount, "mountPath", spec_tree_string(t, "/dev/shm"));
	spec_tree_append(t, mounts, mount);
}

static void make_mounts(struct spec_pod_role *r)
{
	const struct spec_role *role = r->role;
	struct spec_tree *t = &r->pods->tree;
	struct json_object *volumes = spec_tree_list(t, role->n_mounts + 1);
	struct json_object *mounts = spec_tree_list(t, role->n_mounts + 1);
	struct json_object *security = spec_tree_map(t);
	bool privileged = false;

	put_shm(t, volumes, mounts);
	for (size_t i = 0; i < role->n_mounts; i++) {
		char name[32];

		snprintf(name, sizeof(name), "mount-%zu", i);
		spec_tree_append(t, volumes, make_volume(t, &role->mounts[i], name));
		spec_tree_append(t, mounts, make_volume_mount(t, &role->mounts[i], name));
		privileged |= role->mounts[i].type == SPEC_MOUNT_DEVICE;
	}
	spec_tree_add(t, r->spec, "volumes", volumes);
	spec_tree_add(t, r->container, "volumeMounts", mounts);
	if (privileged)
		spec_tree_add(t, security, "privileged", spec_tree_bool(t, true));
	spec_tree_add(t, r->container, "securityContext", security);
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

/* What the API server refuses of one mount. */
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

/* The API server takes a path of the container only once. */
static int check_mounts(struct spec_pod_role *r)
{
	const struct spec_role *role = r->role;
	struct spec_tree *t = &r->pods->tree;
	struct json_object *seen cleanup_json = spec_tree_map(t);
	char path[64];
	int ret = 0;

	spec_tree_set(t, seen, "/dev/shm", spec_tree_bool(t, true));
	role_path(r, "mounts", path);
	for (size_t i = 0; i < role->n_mounts && !t->failed; i++) {
		const char *dst = role->mounts[i].dst;

		if (json_object_object_get_ex(seen, dst, NULL))
			ret = spec_build_refuse(r->pods->build, path, "%s is mounted twice%s", dst,
						streq(dst, "/dev/shm")
							? ": every pod has memory mounted there"
							: "");
		spec_tree_set(t, seen, dst, spec_tree_bool(t, true));
		if (check_mount(r, &role->mounts[i], path) < 0)
			ret = -EINVAL;
	}
	return ret;
}

static int make_node_selector(struct spec_pod_role *r)
{
	const struct spec_map *has = &r->role->resource.capabilities;
	struct spec_tree *t = &r->pods->tree;
	struct json_object *selector = spec_tree_map(t);
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
		spec_tree_set(t, selector, INSTANCE_TYPE, spec_tree_string(t, has->v[i].value));
	}
	spec_tree_add(t, r->spec, "nodeSelector", selector);
	return ret;
}

/* A resource of a container: one of Kubernetes' own, or DOMAIN/NAME. */
static bool is_resource(const char *name)
{
	static const char *const own[] = {"cpu", "memory", "ephemeral-storage"};
	const char *slash = strchr(name, '/');
	char *domain cleanup_free = slash ? strndup(name, (size_t)(slash - name)) : NULL;

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

int pod_parts_make(struct spec_pod_role *r)
{
	const char *account = spec_options_text(r->pods->build->options, "service_account");
	struct spec_tree *t = &r->pods->tree;
	int errs[4] = {0};

	r->container = spec_tree_map(t);
	r->spec = spec_tree_map(t);
	spec_tree_add(t, r->spec, "restartPolicy", spec_tree_string(t, "Never"));
	if (account)
		spec_tree_add(t, r->spec, "serviceAccountName", spec_tree_string(t, account));
	errs[0] = make_image(r);
	make_resources(r);
	make_ports(r);
	make_mounts(r);
	errs[1] = check_mounts(r);
	errs[2] = make_node_selector(r);
	errs[3] = check_devices(r);
	if (t->failed)
		return spec_build_no_memory(r->pods->build);
	for (size_t i = 0; i < array_size(errs); i++) {
		if (errs[i])
			return errs[i];
	}
	return 0;
}
