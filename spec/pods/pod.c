/* SPDX-License-Identifier: MIT */
/*
 * Makes the pods of a job in three steps: the parts that all pods share; the parts of a role
 * (image, resources, ports, volumes, node selector); and the pod of each replica, with expanded
 * macros, the overlay, and TorchX's labels. Order and spelling are TorchX's, except as in
 * docs/deviations.md.
 */
#include "spec/pods/pod.h"

#include <errno.h>

#include "spec/app/app.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/pods/overlay.h"
#include "spec/view/kueue.h"

#define JOB_ID		  "TORCHX_JOB_ID"
#define RANK0_HOST	  "TORCHX_RANK0_HOST"
#define IMAGE		  "TORCHX_IMAGE"
#define INSTANCE_TYPE	  "node.kubernetes.io/instance-type"
#define EFA		  "vpc.amazonaws.com/efa"
#define RESERVED_MILLICPU 100
#define RESERVED_MB	  1024
#define LOCAL_IMAGE	  "sha256:" /* an image in the local Docker */

int spec_build_refuse(struct spec_build *b, const char *path, const char *fmt, ...)
{
	cleanup_free char *text = text_of_args(fmt);

	return spec_errors_add(b->errors, -EINVAL, 0, 0, path, "%s", text);
}

/* Add an error and return -EINVAL if CONTROLLER does not support the retry policy of role INDEX. */
static int check_retries(struct spec_build *b, size_t index, const char *controller)
{
	const struct spec_role *role = &b->app->roles[index];

	if (role->max_retries <= 0 || role->retry_policy == SPEC_RETRY_APPLICATION ||
	    role->retry_policy == SPEC_RETRY_REPLICA)
		return 0;
	return spec_role_refuse(b, index, "retry_policy", NULL,
				"%s does not support %s: use APPLICATION or REPLICA, or "
				"max_retries: 0",
				controller, spec_retry_name(role->retry_policy));
}

int spec_build_begin(struct spec_build *b, const char *controller)
{
	int ret = 0;

	b->id = spec_name_job(b->app->name, b->identity->random[0]);
	if (*b->id >= '0' && *b->id <= '9')
		ret = spec_build_refuse(
			b, "name",
			"the job would be named %s, but %s creates a Service with that name, and "
			"a Service's name must begin with a letter: use another name",
			b->id, controller);
	for (size_t i = 0; i < b->app->n_roles; i++)
		ret |= check_retries(b, i, controller);
	return ret;
}

void spec_build_queue(const struct spec_build *b, struct json_object *labels)
{
	const char *queue = spec_options_text(b->options, "queue");

	if (queue && *queue)
		spec_tree_text(labels, SPEC_KUEUE_QUEUE, queue);
}

void spec_build_ttl(const struct spec_build *b, struct json_object *spec)
{
	int64_t ttl;

	if (spec_options_int(b->options, "ttl", &ttl))
		spec_tree_number(spec, "ttlSecondsAfterFinished", ttl);
}

static struct json_object *label(const char *value)
{
	cleanup_free char *clean = spec_label_clean(value);

	return spec_tree_string(clean);
}

/* Return an environment variable. VALUE is text, or POD_FIELD_PATH and a path. */
static struct json_object *variable(const char *name, const char *value)
{
	struct json_object *ret = spec_tree_map(), *source, *field;

	spec_tree_text(ret, "name", name);
	if (strncmp(value, POD_FIELD_PATH, strlen(POD_FIELD_PATH)) != 0) {
		spec_tree_text(ret, "value", value);
		return ret;
	}
	field = spec_tree_map();
	spec_tree_text(field, "fieldPath", value + strlen(POD_FIELD_PATH));
	source = spec_tree_map();
	spec_tree_add(source, "fieldRef", field);
	spec_tree_add(ret, "valueFrom", source);
	return ret;
}

/* --- the job --- */

struct json_object *spec_build_object(const struct spec_build *b, const char *version,
				      const char *kind, struct json_object *name,
				      struct json_object **metadata)
{
	struct json_object *ret = spec_tree_map();

	spec_tree_text(ret, "apiVersion", version);
	spec_tree_text(ret, "kind", kind);
	*metadata = spec_tree_add(ret, "metadata", spec_tree_map());
	spec_tree_add(*metadata, "name", name);
	spec_tree_text(*metadata, "namespace", b->identity->namespace);
	return ret;
}

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
	cleanup_free char *handle =
		text_print("%s://torchx/%s:%s", b->kind->scheduler, b->identity->namespace, b->id);

	if (!p->app_name)
		p->app_name = text_copy(b->app->name);
	p->parts = spec_tree_list(16);
	p->job_id = variable(JOB_ID, handle);
	if (!p->replica_id || p->rank0_host)
		p->rank0 = variable(RANK0_HOST, p->replica_id ? p->rank0_host : "localhost");
	p->labels = spec_pods_object_labels(p);
	spec_tree_text(p->labels, "torchx.pytorch.org/version", POD_TORCHX_VERSION);
	spec_tree_add(p->labels, "torchx.pytorch.org/app-name", label(p->app_name));
	p->annotations = spec_tree_map();
	/* Istio's sidecar would keep running after the replica has finished. */
	spec_tree_add(p->annotations, "sidecar.istio.io/inject", spec_tree_string("false"));
	if (p->network)
		spec_tree_text(p->annotations, "k8s.v1.cni.cncf.io/networks", p->network);
	p->reserved_cpu = RESERVED_MILLICPU;
	p->reserved_memory = RESERVED_MB;
	p->efa = -1;
}

void spec_pods_clear(struct spec_pods *p)
{
	free(p->app_name);
	free(p->rank0_env);
	free(p->rank0_host);
	json_object_put(p->labels);
	json_object_put(p->annotations);
	json_object_put(p->job_id);
	json_object_put(p->rank0);
	json_object_put(p->number);
	json_object_put(p->parts);
}

/* --- the parts of a role's pods --- */

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static void make_image(struct spec_pod_role *r)
{
	struct spec_build *b = r->pods->build;
	const char *image = r->role->image, *repo = spec_options_text(b->options, "image_repo");

	if (is_space(image[0]) || is_space(image[strlen(image) - 1]))
		spec_role_refuse(b, r->index, "image", NULL, "must not begin or end with a space");
	else if (strncmp(image, LOCAL_IMAGE, strlen(LOCAL_IMAGE)) != 0)
		r->image = spec_tree_string(image);
	else if (!repo || !*repo)
		spec_role_refuse(b, r->index, "image", NULL,
				 "is the id of a local image; set the run option image_repo to the "
				 "repository that has this image");
	else
		r->image = spec_tree_format("%s:%s", repo, image + strlen(LOCAL_IMAGE));
}

/* Set the limit to AMOUNT (the parser has checked it), and the request to AMOUNT minus RESERVED. */
static void put_amount(struct json_object *limits, struct json_object *requests, const char *key,
		       double amount, char unit, int64_t reserved)
{
	int64_t limit = (int64_t)amount;
	int64_t request = limit > reserved ? limit - reserved : 0;

	spec_tree_set(limits, key, spec_tree_format("%lld%c", (long long)limit, unit));
	spec_tree_set(requests, key, spec_tree_format("%lld%c", (long long)request, unit));
}

static void make_resources(struct spec_pod_role *r)
{
	const struct spec_resource *have = &r->role->resource;
	struct json_object *limits = spec_tree_map(), *requests = spec_tree_map(),
			   *both = spec_tree_map();
	const struct spec_counts *devices;

	spec_tree_add(both, "limits", limits);
	spec_tree_add(both, "requests", requests);
	spec_tree_add(r->container, "resources", both);
	if (have->cpu > 0)
		put_amount(limits, requests, "cpu", have->cpu * 1000, 'm', r->pods->reserved_cpu);
	if (have->mem_mb > 0)
		put_amount(limits, requests, "memory", have->mem_mb, 'M', r->pods->reserved_memory);
	if (have->gpu > 0) {
		spec_tree_set(limits, POD_GPU, spec_tree_format("%lld", (long long)have->gpu));
		spec_tree_set(requests, POD_GPU, spec_tree_format("%lld", (long long)have->gpu));
	}
	/* The device "cpu" replaces the limit of the same name. */
	devices = &r->role->resource.devices;
	for (size_t i = 0; i < devices->n; i++)
		spec_tree_set(limits, devices->v[i].key,
			      spec_tree_format("%lld", (long long)devices->v[i].value));
	if (r->pods->efa == 0)
		json_object_object_del(limits, EFA);
	else if (r->pods->efa > 0)
		spec_tree_set(limits, EFA, spec_tree_format("%lld", (long long)r->pods->efa));
}

static bool is_read_only(const struct spec_mount *m)
{
	return m->type == SPEC_MOUNT_DEVICE ? !strpbrk(m->permissions, "wm") : m->read_only;
}

static void make_mounts(struct spec_pod_role *r)
{
	const struct spec_role *role = r->role;
	struct json_object *volumes = spec_tree_list(role->n_mounts + 1);
	struct json_object *mounts = spec_tree_list(role->n_mounts + 1);
	struct json_object *security = spec_tree_map();
	bool privileged = false;

	/* The default /dev/shm has only 64 MB. */
	spec_tree_append(volumes,
			 spec_tree_parse(
				 "{\"name\": \"dshm\", \"emptyDir\": {\"medium\": \"Memory\"}}"));
	spec_tree_append(mounts,
			 spec_tree_parse("{\"name\": \"dshm\", \"mountPath\": \"/dev/shm\"}"));
	for (size_t i = 0; i < role->n_mounts; i++) {
		const struct spec_mount *m = &role->mounts[i];
		bool claim = m->type == SPEC_MOUNT_VOLUME;
		struct json_object *mount = spec_tree_map(), *source = spec_tree_map(), *volume;
		char name[32];

		snprintf(name, sizeof(name), "mount-%zu", i);
		volume = spec_tree_append(volumes, spec_tree_map());
		spec_tree_text(volume, "name", name);
		spec_tree_text(source, claim ? "claimName" : "path", m->src);
		spec_tree_add(volume, claim ? "persistentVolumeClaim" : "hostPath", source);
		spec_tree_text(mount, "name", name);
		spec_tree_text(mount, "mountPath", m->dst);
		spec_tree_add(mount, "readOnly", spec_tree_bool(is_read_only(m)));
		spec_tree_append(mounts, mount);
		privileged |= m->type == SPEC_MOUNT_DEVICE;
	}
	spec_tree_add(r->spec, "volumes", volumes);
	spec_tree_add(r->container, "volumeMounts", mounts);
	if (privileged)
		spec_tree_add(security, "privileged", spec_tree_bool(true));
	spec_tree_add(r->container, "securityContext", security);
}

static void make_node_selector(struct spec_pod_role *r)
{
	const struct spec_map *has = &r->role->resource.capabilities;
	struct json_object *selector = spec_tree_map();

	for (size_t i = 0; i < has->n; i++) {
		if (!streq(has->v[i].key, INSTANCE_TYPE))
			continue;
		if (!spec_label_is_valid(has->v[i].value))
			spec_role_refuse(
				r->pods->build, r->index, "resource.capabilities", NULL,
				"\"%s\" can't be the value of a label: use at most 63 letters, "
				"digits, dots, dashes and underscores",
				has->v[i].value);
		spec_tree_set(selector, INSTANCE_TYPE, spec_tree_string(has->v[i].value));
	}
	spec_tree_add(r->spec, "nodeSelector", selector);
}

static void make_parts(struct spec_pod_role *r)
{
	const char *account = spec_options_text(r->pods->build->options, "service_account");
	const struct spec_counts *ports = &r->role->port_map;
	struct json_object *list;
	int64_t limit;

	r->container = spec_tree_map();
	r->spec = spec_tree_map();
	spec_tree_text(r->spec, "restartPolicy", "Never");
	if (spec_options_int(r->pods->build->options, "time_limit", &limit))
		spec_tree_number(r->spec, "activeDeadlineSeconds", limit);
	if (account)
		spec_tree_text(r->spec, "serviceAccountName", account);
	make_image(r);
	make_resources(r);
	list = spec_tree_list(ports->n);
	for (size_t i = 0; i < ports->n; i++) {
		struct json_object *port = spec_tree_append(list, spec_tree_map());

		spec_tree_text(port, "name", ports->v[i].key);
		spec_tree_number(port, "containerPort", ports->v[i].value);
	}
	spec_tree_add(r->container, "ports", list);
	make_mounts(r);
	make_node_selector(r);
}

/* --- a role --- */

static void find_overlay(struct spec_pod_role *r)
{
	char path[32];

	snprintf(path, sizeof(path), "roles[%zu]", r->index);
	if (r->role->metadata)
		r->metadata = spec_tree_parse(r->role->metadata);
	spec_overlay_find(r->metadata, path, &r->overlay, &r->overlay_path, r->pods->build->errors);
}

int spec_pod_role_init(struct spec_pod_role *r, struct spec_pods *p, size_t index)
{
	struct spec_errors *e = p->build->errors;
	size_t n = e->n + e->dropped;

	*r = (struct spec_pod_role){.pods = p,
				    .role = &p->build->app->roles[index],
				    .index = index};
	make_parts(r);
	find_overlay(r);
	pod_check(r);
	if (e->n + e->dropped > n)
		return e->err;
	r->labels = spec_tree_map();
	spec_tree_add_all(r->labels, r->pods->labels);
	spec_tree_add(r->labels, "torchx.pytorch.org/role-index",
		      spec_tree_format("%zu", r->index));
	spec_tree_add(r->labels, "torchx.pytorch.org/role-name", label(r->role->name));
	return 0;
}

void spec_pod_role_clear(struct spec_pod_role *r)
{
	json_object_put(r->labels);
	json_object_put(r->spec);
	json_object_put(r->container);
	json_object_put(r->image);
	json_object_put(r->more_env);
	json_object_put(r->metadata);
	free(r->overlay_path);
}

void spec_pod_add_secret(struct spec_pod_role *r)
{
	const char *secret = spec_options_text(r->pods->build->options, "image_secret");
	struct json_object *list;

	if (!secret)
		return;
	list = spec_tree_add(r->spec, "imagePullSecrets", spec_tree_list(1));
	spec_tree_text(spec_tree_append(list, spec_tree_map()), "name", secret);
}

/* --- the pod of a replica --- */

static struct json_object *expand(const char *text, const struct spec_macros *m)
{
	cleanup_free char *expanded = spec_macro_expand(text, m);

	return spec_tree_string(expanded);
}

static struct json_object *make_command(struct spec_pod_role *r, const struct spec_macros *m)
{
	struct json_object *ret = spec_tree_list(r->role->n_args + 1);

	spec_tree_append(ret, spec_tree_string(r->role->entrypoint));
	for (size_t i = 0; i < r->role->n_args; i++)
		spec_tree_append(ret, expand(r->role->args[i], m));
	return ret;
}

/*
 * Return the environment variables in this order: spec_pods.number, to which others refer; the
 * user's; TorchX's; the kind's. If the user sets a variable of TorchX, TorchX's value replaces it.
 * The exception is a user's TORCHX_JOB_ID that begins with "kxfs://".
 */
static struct json_object *make_env(struct spec_pod_role *r, bool rank0,
				    const struct spec_macros *m)
{
	const struct spec_map *env = &r->role->env;
	struct json_object *image cleanup_json = variable(IMAGE, json_object_get_string(r->image));
	const struct {
		const char *name;
		struct json_object *variable;
	} own[] = {
		{JOB_ID, r->pods->job_id},
		{RANK0_HOST, rank0 ? r->pods->rank0 : NULL},
		{IMAGE, image},
	};
	bool set[array_size(own)] = {0};
	struct json_object *ret = spec_tree_list(env->n + array_size(own) + 2);

	if (r->pods->number)
		spec_tree_append(ret, json_object_get(r->pods->number));
	for (size_t i = 0; i < env->n; i++) {
		cleanup_free char *value = spec_macro_expand(env->v[i].value, m);
		struct json_object *made = variable(env->v[i].key, value);

		for (size_t k = 0; k < array_size(own); k++) {
			if (!own[k].variable || !streq(env->v[i].key, own[k].name))
				continue;
			set[k] = true;
			if (k == 0 && spec_name_is_handle(env->v[i].value))
				continue;
			json_object_put(made);
			made = json_object_get(own[k].variable);
		}
		spec_tree_append(ret, made);
	}
	for (size_t k = 0; k < array_size(own); k++) {
		if (own[k].variable && !set[k])
			spec_tree_append(ret, json_object_get(own[k].variable));
	}
	for (size_t i = 0; r->more_env && i < json_object_array_length(r->more_env); i++)
		spec_tree_append(ret, json_object_get(json_object_array_get_idx(r->more_env, i)));
	return ret;
}

static struct json_object *make_spec(struct spec_pod_role *r, bool rank0, const char *name,
				     const struct spec_macros *m)
{
	struct json_object *ret, *container = spec_tree_map(), *containers = spec_tree_list(1);

	spec_tree_text(container, "name", name);
	spec_tree_add(container, "image", json_object_get(r->image));
	spec_tree_add(container, "command", make_command(r, m));
	spec_tree_add(container, "env", make_env(r, rank0, m));
	spec_tree_add_all(container, r->container);
	spec_tree_append(containers, container);
	ret = spec_tree_map();
	spec_tree_add(ret, "containers", containers);
	spec_tree_add_all(ret, r->spec);
	return ret;
}

/*
 * Return a copy of VALUE, and expand macros in its texts, but not in its keys. The copy may share
 * parts with VALUE.
 */
static struct json_object *expand_all(struct json_object *value, const struct spec_macros *m)
{
	struct json_object *ret;
	size_t n;

	if (json_object_is_type(value, json_type_string))
		return expand(json_object_get_string(value), m);
	if (json_object_is_type(value, json_type_array)) {
		n = json_object_array_length(value);
		ret = spec_tree_list(n);
		for (size_t i = 0; i < n; i++)
			spec_tree_append(ret, expand_all(json_object_array_get_idx(value, i), m));
		return ret;
	}
	if (!json_object_is_type(value, json_type_object))
		return json_object_get(value);
	ret = spec_tree_map();
	json_object_object_foreach(value, key, member)
		spec_tree_set(ret, key, expand_all(member, m));
	return ret;
}

/* True if the role's overlay differs between replicas. */
static bool overlay_names_replica(struct spec_pod_role *r, const struct spec_macros *m)
{
	struct spec_macros other = *m;
	struct json_object *one cleanup_json = expand_all(r->overlay, m), *two cleanup_json = NULL;

	other.replica_id = "";
	two = expand_all(r->overlay, &other);
	return !json_object_equal(one, two);
}

/* Apply the role's overlay to *POD. Return 0, or the errno of the build's errors. */
static int apply_overlay(struct spec_pod_role *r, const struct spec_macros *m,
			 struct json_object **pod)
{
	struct json_object *overlay cleanup_json = NULL, *overlaid;
	int err;

	if (!r->overlay)
		return 0;
	if (r->pods->replica_id && overlay_names_replica(r, m))
		return spec_build_refuse(
			r->pods->build, r->overlay_path,
			"%s creates all pods of a role from one template, so ${replica_id} is "
			"not allowed in an overlay: use args or env, or a scheduler other than "
			"%s",
			r->pods->build->kind->kind, r->pods->build->kind->name);
	overlay = expand_all(r->overlay, m);
	err = spec_overlay_apply(*pod, overlay, r->overlay_path, &overlaid, r->pods->build->errors);
	if (err)
		return err;
	json_object_put(*pod);
	*pod = overlaid;
	return 0;
}

/* Set the labels of replica K's pod. TorchX's labels take precedence over the overlay's. */
static int set_labels(struct spec_pod_role *r, struct json_object *metadata, unsigned k)
{
	struct json_object *labels, *theirs = json_object_object_get(metadata, "labels");
	cleanup_free char *path = NULL;

	if (theirs && !json_object_is_type(theirs, json_type_object)) {
		path = text_print("%s.metadata.labels", r->overlay_path);
		return spec_build_refuse(r->pods->build, path, "must be a map");
	}
	labels = spec_tree_copy_map(theirs);
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
	bool rank0 = p->replica_id || (r->index == 0 && k == 0);
	char replica_id[16];
	const struct spec_macros m = {
		.app_id = p->build->id,
		.replica_id = p->replica_id ? p->replica_id : replica_id,
		.img_root = "",
		.base_img_root = "DEPRECATED",
		.rank0_env = rank0 ? RANK0_HOST : p->rank0_env,
	};

	snprintf(replica_id, sizeof(replica_id), "%u", k);
	spec_tree_add(metadata, "annotations", json_object_get(p->annotations));
	spec_tree_add(pod, "metadata", metadata);
	spec_tree_add(pod, "spec", make_spec(r, rank0, name, &m));
	if (apply_overlay(r, &m, &pod) < 0)
		return NULL;
	if (set_labels(r, json_object_object_get(pod, "metadata"), k) < 0)
		return NULL;
	return take_ptr(pod);
}

/* --- pods in an object --- */

/* Return item I of a list, or member I of a map, else NULL. */
static struct json_object *item_of(struct json_object *at, size_t i)
{
	if (json_object_is_type(at, json_type_array))
		return i < json_object_array_length(at) ? json_object_array_get_idx(at, i) : NULL;
	if (!json_object_is_type(at, json_type_object))
		return NULL;
	json_object_object_foreach(at, key, member) {
		(void)key;
		if (i-- == 0)
			return member;
	}
	return NULL;
}

void spec_each_template(const struct spec_kind *kind, struct json_object *object,
			void (*fn)(struct json_object *pod, const void *data), const void *data)
{
	for (const struct spec_template *t = kind->templates; t && t->pod; t++) {
		struct json_object *at = spec_tree_find(object, t->pods), *item = object, *pod;

		for (size_t i = 0; *t->pods ? (item = item_of(at, i)) != NULL : i == 0; i++) {
			pod = spec_tree_find(item, t->pod);
			if (pod)
				fn(pod, data);
		}
	}
}

/* --- size --- */

uint64_t spec_pods_least_bytes(const struct spec_kind *kind, const struct spec_app *app)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < app->n_roles; i++) {
		const struct spec_role *r = &app->roles[i];
		/* a lower bound for all but the texts from the AppDef */
		uint64_t bytes = 500;

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

int64_t spec_pods_least_retries(const struct spec_app *app)
{
	int64_t least = app->roles[0].max_retries;

	for (size_t i = 1; i < app->n_roles; i++)
		least = min_of(least, app->roles[i].max_retries);
	return max_of(least, INT64_C(0));
}

size_t spec_pods_digits(size_t n)
{
	return n < 10 ? 1 : 1 + spec_pods_digits(n / 10);
}
