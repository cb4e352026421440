/* SPDX-License-Identifier: MIT */
/*
 * Pod groups, pods and the service of an AppWrapper.
 */
#include "spec/wrap.h"

#include "spec/mcad_name.h"

#define DEFAULT_PORT 29500 /* of the service, when no role has a port */

void wrap_clear(struct wrap *w)
{
	spec_pods_clear(&w->pods);
	json_object_put(w->items);
	json_object_put(w->pull_secrets);
	free(w->app_name);
	free(w->rank0_env);
}

/* --- names ---------------------------------------------------------------------------------- */

static int make_id(struct wrap *w)
{
	struct spec_build *b = w->build;

	if (mcad_name_job(b->app->name, b->app->n_roles, b->identity->random, &w->app_name,
			  &b->id) < 0)
		return spec_build_no_memory(b);
	return 0;
}

/* Pods of role 0 are called as TorchX calls all; the others have their role's index too. */
static struct json_object *pod_name(struct wrap *w, size_t role, unsigned k)
{
	if (role == 0)
		return spec_tree_format(&w->pods.tree, "%s-%u", w->build->id, k);
	return spec_tree_format(&w->pods.tree, "%s-%zu-%u", w->build->id, role, k);
}

/* --- items ---------------------------------------------------------------------------------- */

static void add_item(struct wrap *w, struct json_object *object, bool is_pod)
{
	struct spec_tree *t = &w->pods.tree;

	spec_tree_append(t, w->items, w->item(t, object, is_pod));
}

struct json_object *wrap_object(struct wrap *w, const char *version, const char *kind,
				struct json_object *name, struct json_object **metadata)
{
	struct spec_tree *t = &w->pods.tree;
	struct json_object *ret = spec_tree_map(t);

	*metadata = spec_tree_map(t);
	spec_tree_add(t, ret, "apiVersion", spec_tree_string(t, version));
	spec_tree_add(t, ret, "kind", spec_tree_string(t, kind));
	spec_tree_add(t, *metadata, "name", name);
	spec_tree_add(t, *metadata, "namespace",
		      spec_tree_string(t, w->build->identity->namespace));
	return ret;
}

static struct json_object *group_name(struct wrap *w, size_t role)
{
	return spec_tree_format(&w->pods.tree, "%s-pg%zu", w->build->id, role);
}

static void add_pod_group(struct wrap *w, size_t index)
{
	struct spec_tree *t = &w->pods.tree;
	struct json_object *labels = spec_pods_object_labels(&w->pods), *spec = spec_tree_map(t),
			   *metadata;
	struct json_object *group = wrap_object(w, "scheduling.sigs.k8s.io/v1alpha1", "PodGroup",
						group_name(w, index), &metadata);

	spec_tree_add(t, labels, "appwrapper.workload.codeflare.dev",
		      spec_tree_string(t, w->build->id));
	spec_tree_add(t, metadata, "labels", labels);
	spec_tree_add(t, group, "metadata", metadata);
	spec_tree_add(t, spec, "minMember",
		      spec_tree_int(t, w->build->app->roles[index].num_replicas));
	spec_tree_add(t, group, "spec", spec);
	add_item(w, group, false);
}

static int64_t service_port(const struct spec_app *app)
{
	int64_t ret = DEFAULT_PORT;

	for (size_t i = 0; i < app->n_roles; i++) {
		const struct spec_counts *ports = &app->roles[i].port_map;

		if (ports->n > 0)
			ret = ports->v[ports->n - 1].value;
	}
	return ret;
}

static struct json_object *make_service_spec(struct wrap *w)
{
	struct spec_tree *t = &w->pods.tree;
	struct json_object *spec = spec_tree_map(t), *ports = spec_tree_list(t, 1),
			   *port = spec_tree_map(t);
	struct json_object *selector = spec_tree_map(t);
	int64_t number = service_port(w->build->app);

	spec_tree_add(t, port, "protocol", spec_tree_string(t, "TCP"));
	spec_tree_add(t, port, "port", spec_tree_int(t, number));
	spec_tree_add(t, port, "targetPort", spec_tree_int(t, number));
	spec_tree_append(t, ports, port);
	spec_tree_add(t, selector, "app.kubernetes.io/instance", spec_tree_string(t, w->build->id));
	spec_tree_add(t, spec, "clusterIP", spec_tree_string(t, "None"));
	spec_tree_add(t, spec, "publishNotReadyAddresses", spec_tree_bool(t, true));
	spec_tree_add(t, spec, "ports", ports);
	spec_tree_add(t, spec, "selector", selector);
	spec_tree_add(t, spec, "sessionAffinity", spec_tree_string(t, "None"));
	spec_tree_add(t, spec, "type", spec_tree_string(t, "ClusterIP"));
	return spec;
}

static void add_service(struct wrap *w)
{
	struct spec_tree *t = &w->pods.tree;
	struct json_object *status = spec_tree_map(t), *metadata;
	struct json_object *service =
		wrap_object(w, "v1", "Service", spec_tree_string(t, w->build->id), &metadata);

	spec_tree_add(t, metadata, "labels", spec_pods_object_labels(&w->pods));
	spec_tree_add(t, service, "metadata", metadata);
	spec_tree_add(t, service, "spec", make_service_spec(w));
	spec_tree_add(t, status, "loadBalancer", spec_tree_map(t));
	spec_tree_add(t, service, "status", status);
	add_item(w, service, false);
}

/* --- pods ----------------------------------------------------------------------------------- */

static struct json_object *hosts_variable(struct wrap *w, const char *name, size_t role)
{
	struct spec_tree *t = &w->pods.tree;
	struct json_object *ret = spec_tree_map(t), *pod = pod_name(w, role, 0);

	spec_tree_add(t, ret, "name", spec_tree_string(t, name));
	if (pod)
		spec_tree_add(t, ret, "value",
			      spec_tree_format(t, "%s.%s", json_object_get_string(pod),
					       w->build->id));
	json_object_put(pod);
	return ret;
}

/* The host of rank 0, which rank0_env names, and that of the role's own replica 0. */
static int add_hosts(struct wrap *w, struct spec_pod_role *r)
{
	struct spec_tree *t = &w->pods.tree;
	char *own cleanup_free = mcad_name_hosts_env(r->role->name);

	if (!own)
		return spec_build_no_memory(w->build);
	r->more_env = spec_tree_list(t, 2);
	spec_tree_append(t, r->more_env, hosts_variable(w, w->rank0_env, 0));
	if (!streq(own, w->rank0_env))
		spec_tree_append(t, r->more_env, hosts_variable(w, own, r->index));
	return 0;
}

/* What MCAD's pods have in their spec beside what all have. */
static void extend_spec(struct wrap *w, struct spec_pod_role *r)
{
	const struct spec_build *b = w->build;
	const char *priority = spec_options_text(b->options, "priority_class_name");
	struct spec_tree *t = &w->pods.tree;

	spec_tree_add(t, r->spec, "subdomain", spec_tree_string(t, b->id));
	if (w->pull_secrets)
		spec_tree_add(t, r->spec, "imagePullSecrets", json_object_get(w->pull_secrets));
	if (w->coscheduler) {
		spec_tree_add(t, r->spec, "schedulerName", spec_tree_string(t, w->coscheduler));
		spec_tree_add(t, r->labels, "pod-group.scheduling.sigs.k8s.io",
			      group_name(w, r->index));
	}
	if (priority)
		spec_tree_add(t, r->spec, "priorityClassName", spec_tree_string(t, priority));
}

/* Name, namespace and host name are not the overlay's: the pods find each other by them. */
static void add_pod(struct wrap *w, struct json_object *name, struct json_object *pod)
{
	struct spec_tree *t = &w->pods.tree;
	struct json_object *spec = json_object_object_get(pod, "spec"), *metadata;
	struct json_object *whole = wrap_object(w, "v1", "Pod", json_object_get(name), &metadata);

	json_object_object_foreach(json_object_object_get(pod, "metadata"), key, value) {
		if (!streq(key, "name") && !streq(key, "namespace"))
			spec_tree_set(t, metadata, key, json_object_get(value));
	}
	spec_tree_add(t, whole, "metadata", metadata);
	spec_tree_set(t, spec, "hostname", json_object_get(name));
	spec_tree_add(t, whole, "spec", json_object_get(spec));
	add_item(w, whole, true);
}

static int make_pod(struct wrap *w, struct spec_pod_role *r, unsigned k)
{
	struct json_object *name cleanup_json = pod_name(w, r->index, k);
	struct json_object *pod cleanup_json = NULL;

	if (name)
		pod = spec_pod_make(r, k, json_object_get_string(name));
	if (!pod)
		return w->build->errors->n > 0 ? w->build->errors->err
					       : spec_build_no_memory(w->build);
	add_pod(w, name, pod);
	return 0;
}

static int add_pods(struct wrap *w, size_t index)
{
	struct spec_pod_role r cleanup(spec_pod_role_clear);
	int err = spec_pod_role_init(&r, &w->pods, index);

	if (!err)
		err = add_hosts(w, &r);
	if (err)
		return err;
	extend_spec(w, &r);
	for (unsigned k = 0; !err && k < r.role->num_replicas; k++)
		err = make_pod(w, &r, k);
	return err;
}

/* --- the whole ------------------------------------------------------------------------------ */

static int start(struct wrap *w)
{
	const char *secret = spec_options_text(w->build->options, "image_secret");
	struct spec_pods *p = &w->pods;
	struct spec_tree *t = &p->tree;
	int err = make_id(w);

	if (err)
		return err;
	w->rank0_env = mcad_name_hosts_env(w->build->app->roles[0].name);
	if (!w->rank0_env)
		return spec_build_no_memory(w->build);
	p->build = w->build;
	p->app_name = w->app_name;
	p->rank0_env = w->rank0_env;
	p->network = spec_options_text(w->build->options, "network");
	p->reserved_cpu = 100;
	p->reserved_memory = 1024;
	p->efa = -1;
	w->items = spec_tree_list(t, 16);
	if (secret) {
		struct json_object *reference = spec_tree_map(t);

		spec_tree_add(t, reference, "name", spec_tree_string(t, secret));
		w->pull_secrets = spec_tree_list(t, 1);
		spec_tree_append(t, w->pull_secrets, reference);
	}
	return spec_pods_init(p);
}

int64_t wrap_retries(const struct wrap *w)
{
	const struct spec_app *app = w->build->app;
	int64_t least = app->roles[0].max_retries;

	for (size_t i = 1; i < app->n_roles; i++)
		least = min_of(least, app->roles[i].max_retries);
	return max_of(least, INT64_C(0));
}

int wrap_all(struct wrap *w)
{
	const struct spec_app *app = w->build->app;
	int ret;

	w->coscheduler = spec_options_text(w->build->options, "coscheduler_name");
	ret = start(w);
	if (ret)
		return ret;
	for (size_t i = 0; w->coscheduler && i < app->n_roles; i++)
		add_pod_group(w, i);
	for (size_t i = 0; i < app->n_roles; i++) {
		int err = add_pods(w, i);

		ret = ret ? ret : err;
	}
	if (ret)
		return ret;
	add_service(w);
	return 0;
}
