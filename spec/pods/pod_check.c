/* SPDX-License-Identifier: MIT */
/*
 * Checks a container's mounts, resources and variables by the rules of Kubernetes. Reports errors
 * at fields of roles.
 */
#include "spec/pods/pod.h"

#include <errno.h>

#include "spec/app/app.h"
#include "spec/base/amount.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define HUGE_PAGES "hugepages-"

int spec_role_refuse(struct spec_build *b, size_t index, const char *field, const char *key,
		     const char *fmt, ...)
{
	cleanup_free char *path = NULL, *text cleanup_free = text_of_args(fmt);
	size_t len;
	FILE *out = text_stream(&path, &len);

	fprintf(out, "roles[%zu].%s", index, field);
	if (key)
		spec_errors_key(out, key, false);
	text_stream_close(out);
	return spec_errors_add(b->errors, -EINVAL, 0, 0, path, "%s", text);
}

/* Add an error about R's FIELD, or about FIELD's entry KEY (or NULL). */
#define refuse(r, field, key, ...)                                                                 \
	spec_role_refuse((r)->pods->build, (r)->index, field, key, __VA_ARGS__)

/* --- mounts --- */

/* True if a component of PATH is "..". */
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

/* The API server refuses two mounts at the same path. */
static void check_mounts(struct spec_pod_role *r)
{
	const struct spec_role *role = r->role;
	const char *taken[] = {"/dev/shm", r->pods->hosts_dir};
	const char *by[] = {
		"every pod has a memory volume",
		"Volcano mounts the list of the job's hosts",
	};
	struct json_object *seen cleanup_json = spec_tree_map();

	for (size_t i = 0; i < role->n_mounts; i++) {
		const struct spec_mount *m = &role->mounts[i];
		size_t len = strlen(m->dst), k = 0;
		cleanup_free char *dst = NULL;

		while (len > 1 && m->dst[len - 1] == '/')
			len--;
		dst = mem_copy(m->dst, len);
		while (k < array_size(taken) && !(taken[k] && streq(dst, taken[k])))
			k++;
		if (k < array_size(taken))
			refuse(r, "mounts", NULL, "%s is mounted twice: %s there", dst, by[k]);
		else if (json_object_object_get_ex(seen, dst, NULL))
			refuse(r, "mounts", NULL, "%s is mounted twice", dst);
		spec_tree_set(seen, dst, spec_tree_bool(true));
		/* The API server refuses a ":" in the path. */
		if (strchr(m->dst, ':'))
			refuse(r, "mounts", NULL,
			       "%s: a path in the container must not contain \":\"", m->dst);
		else if (m->type != SPEC_MOUNT_VOLUME && climbs(m->src))
			refuse(r, "mounts", NULL, "%s: a path of the host must not contain \"..\"",
			       m->src);
	}
}

/* --- devices --- */

/* True if a container can request the resource NAME. The prefix "requests." is for quotas. */
static bool is_resource(const char *name)
{
	static const char *const own[] = {"cpu", "memory", "ephemeral-storage", NULL};
	const char *slash = strchr(name, '/');
	cleanup_free char *domain = slash ? mem_copy(name, (size_t)(slash - name)) : NULL;

	if (streq_any(name, own))
		return true;
	if (strncmp(name, HUGE_PAGES, strlen(HUGE_PAGES)) == 0)
		return spec_label_is_valid(name) &&
		       spec_amount_value(name + strlen(HUGE_PAGES)) >= 1;
	return domain && spec_name_is_object(domain) && strncmp(name, "requests.", 9) != 0 &&
	       slash[1] && spec_label_is_valid(slash + 1);
}

/*
 * Return the request for the resource KEY that kxfs makes from the role's cpu or memMB, or 0. If
 * `devices` also has KEY, its count becomes the limit, which must not be less than the request.
 */
static double requested(const struct spec_pod_role *r, const char *key)
{
	const struct spec_resource *have = &r->role->resource;

	if (streq(key, "cpu") && have->cpu > 0)
		return have->cpu - (double)r->pods->reserved_cpu / 1000;
	if (streq(key, "memory") && have->mem_mb > 0)
		return (double)(have->mem_mb - r->pods->reserved_memory) * 1e6;
	return 0;
}

/* Return why the role can't request COUNT devices KEY (malloc'ed), or NULL. */
static char *device_error(const struct spec_pod_role *r, const char *key, int64_t count)
{
	const struct spec_resource *have = &r->role->resource;
	double page_size;
	int64_t page;

	if (!is_resource(key))
		return text_print("\"%s\" is not a resource that a container can request: write "
				  "it with its domain, like " POD_GPU,
				  key);
	if (streq(key, POD_GPU) && have->gpu > 0 && have->gpu != count)
		return text_print("is %lld, but gpu is %lld, and both mean the same: leave one "
				  "out",
				  (long long)count, (long long)have->gpu);
	if ((double)count < requested(r, key))
		return text_print("is a limit of %lld, which is less than the request in %s: "
				  "leave one out",
				  (long long)count, streq(key, "cpu") ? "cpu" : "memMB");
	if (strncmp(key, HUGE_PAGES, strlen(HUGE_PAGES)) != 0)
		return NULL;
	page_size = spec_amount_value(key + strlen(HUGE_PAGES));
	page = page_size < INT32_MAX ? (int64_t)page_size : INT32_MAX;
	if (count % page != 0)
		return text_print("is a number of bytes, and must be a multiple of the page "
				  "size, %.0f",
				  page_size);
	if (have->cpu <= 0 && have->mem_mb <= 0)
		return text_copy("can't be requested without cpu or memMB: set one of them");
	return NULL;
}

static void check_devices(struct spec_pod_role *r)
{
	const struct spec_counts *devices = &r->role->resource.devices;

	for (size_t i = 0; i < devices->n; i++) {
		const char *key = devices->v[i].key;
		cleanup_free char *error = device_error(r, key, devices->v[i].value);

		if (error)
			refuse(r, "resource.devices", key, "%s", error);
	}
}

/* --- variables --- */

/* True if a variable can have the pod's field PATH as its value. */
static bool is_field(const char *path)
{
	static const char *const fields[] = {
		"metadata.name",
		"metadata.namespace",
		"metadata.uid",
		"spec.nodeName",
		"spec.serviceAccountName",
		"status.hostIP",
		"status.hostIPs",
		"status.podIP",
		"status.podIPs",
		NULL,
	};
	static const char *const maps[] = {"metadata.labels['", "metadata.annotations['"};

	if (streq_any(path, fields))
		return true;
	for (size_t i = 0; i < array_size(maps); i++) {
		const char *key = path + strlen(maps[i]);
		size_t n;

		if (strncmp(path, maps[i], strlen(maps[i])) != 0)
			continue;
		n = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				"-_./");
		return n > 0 && streq(key + n, "']");
	}
	return false;
}

static void check_env(struct spec_pod_role *r)
{
	const struct spec_map *env = &r->role->env;
	const struct spec_macros m = {
		.app_id = r->pods->build->id,
		.replica_id = "0",
		.img_root = "",
		.base_img_root = "DEPRECATED",
		.rank0_env = r->pods->rank0_env,
	};

	for (size_t i = 0; i < env->n; i++) {
		cleanup_free char *value = NULL;

		if (strncmp(env->v[i].value, POD_FIELD_PATH, strlen(POD_FIELD_PATH)) != 0)
			continue;
		value = spec_macro_expand(env->v[i].value + strlen(POD_FIELD_PATH), &m);
		if (!*value)
			refuse(r, "env", env->v[i].key,
			       "names no field: write, for example, " POD_FIELD_PATH
			       "spec.nodeName");
		else if (!is_field(value))
			refuse(r, "env", env->v[i].key,
			       "\"%s\" is not a pod field that a variable can contain; "
			       "use metadata.name, metadata.namespace, metadata.uid, "
			       "metadata.labels['KEY'], metadata.annotations['KEY'], "
			       "spec.nodeName, spec.serviceAccountName, status.hostIP, "
			       "status.hostIPs, status.podIP or status.podIPs",
			       value);
	}
}

void pod_check(struct spec_pod_role *r)
{
	check_mounts(r);
	check_devices(r);
	check_env(r);
}
