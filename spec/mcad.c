/* SPDX-License-Identifier: MIT */
/*
 * MCAD's AppWrapper (v1beta1): pod groups, pods and one headless service as generic items.
 */
#include "spec/mcad_name.h"
#include "spec/pod.h"

#define DEFAULT_PORT 29500 /* of the service, when no role has a port */

static const struct spec_option options[] = {
	{.name = "service_account",
	 .type = SPEC_OPTION_NAME,
	 .help = "service account of the pods"},
	{.name = "image_repo", .help = "repository of local images (sha256:...)"},
	{.name = "image_secret", .type = SPEC_OPTION_NAME, .help = "secret to pull images with"},
	{.name = "coscheduler_name", .help = "scheduler that places the pods of a role together"},
	{.name = "priority_class_name",
	 .type = SPEC_OPTION_NAME,
	 .help = "priority class of the pods"},
	{.name = "network", .help = "additional network of the pods (Multus)"},
	{.name = "priority",
	 .type = SPEC_OPTION_INT,
	 .min = INT32_MIN,
	 .max = INT32_MAX,
	 .help = "priority of jobs in MCAD's queue"},
	{.name = "no_annotations",
	 .type = SPEC_OPTION_BOOL,
	 .help = "leave the annotations kxfs/... out"},
	{0},
};

struct mcad {
	struct spec_build *build;
	struct spec_pods pods;
	const char *namespace;
	const char *coscheduler; /* NULL: none */
	struct json_object *items;
	struct json_object *pull_secrets; /* NULL: none */
	char *app_name;			  /* cut, if the whole leaves no room for a suffix */
	char *rank0_env;
};

static void mcad_clear(struct mcad *m)
{
	spec_pods_clear(&m->pods);
	json_object_put(m->items);
	json_object_put(m->pull_secrets);
	free(m->app_name);
	free(m->rank0_env);
}

/* --- names ---------------------------------------------------------------------------------- */

static int make_id(struct mcad *m)
{
	struct spec_build *b = m->build;

	if (mcad_name_job(b->app->name, b->app->n_roles, b->identity->random, &m->app_name,
			  &b->id) < 0)
		return spec_build_no_memory(b);
	return 0;
}

/* Pods of role 0 are called as TorchX calls all; the others have their role's index too. */
static struct json_object *pod_name(struct mcad *m, size_t role, unsigned k)
{
	if (role == 0)
		return spec_tree_format(&m->pods.tree, "%s-%u", m->build->id, k);
	return spec_tree_format(&m->pods.tree, "%s-%zu-%u", m->build->id, role, k);
}

/* --- items ---------------------------------------------------------------------------------- */

static void add_item(struct mcad *m, struct json_object *object)
{
	struct spec_tree *t = &m->pods.tree;
	struct json_object *item = spec_tree_map(t);

	spec_tree_add(t, item, "replicas", spec_tree_int(t, 1));
	spec_tree_add(t, item, "generictemplate", object);
	spec_tree_append(t, m->items, item);
}

/* An object with its head; *METADATA has no labels yet. */
static struct json_object *new_object(struct mcad *m, const char *version, const char *kind,
				      struct json_object *name, struct json_object **metadata)
{
	struct spec_tree *t = &m->pods.tree;
	struct json_object *ret = spec_tree_map(t);

	*metadata = spec_tree_map(t);
	spec_tree_add(t, ret, "apiVersion", spec_tree_string(t, version));
	spec_tree_add(t, ret, "kind", spec_tree_string(t, kind));
	spec_tree_add(t, *metadata, "name", name);
	spec_tree_add(t, *metadata, "namespace", spec_tree_string(t, m->namespace));
	return ret;
}

static struct json_object *group_name(struct mcad *m, size_t role)
{
	return spec_tree_format(&m->pods.tree, "%s-pg%zu", m->build->id, role);
}

static void add_pod_group(struct mcad *m, size_t index)
{
	struct spec_tree *t = &m->pods.tree;
	struct json_object *labels = spec_pods_object_labels(&m->pods), *spec = spec_tree_map(t),
			   *metadata;
	struct json_object *group = new_object(m, "scheduling.sigs.k8s.io/v1alpha1", "PodGroup",
					       group_name(m, index), &metadata);

	spec_tree_add(t, labels, "appwrapper.workload.codeflare.dev",
		      spec_tree_string(t, m->build->id));
	spec_tree_add(t, metadata, "labels", labels);
	spec_tree_add(t, group, "metadata", metadata);
	spec_tree_add(t, spec, "minMember",
		      spec_tree_int(t, m->build->app->roles[index].num_replicas));
	spec_tree_add(t, group, "spec", spec);
	add_item(m, group);
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

static struct json_object *make_service_spec(struct mcad *m)
{
	struct spec_tree *t = &m->pods.tree;
	struct json_object *spec = spec_tree_map(t), *ports = spec_tree_list(t, 1),
			   *port = spec_tree_map(t);
	struct json_object *selector = spec_tree_map(t);
	int64_t number = service_port(m->build->app);

	spec_tree_add(t, port, "protocol", spec_tree_string(t, "TCP"));
	spec_tree_add(t, port, "port", spec_tree_int(t, number));
	spec_tree_add(t, port, "targetPort", spec_tree_int(t, number));
	spec_tree_append(t, ports, port);
	spec_tree_add(t, selector, "app.kubernetes.io/instance", spec_tree_string(t, m->build->id));
	spec_tree_add(t, spec, "clusterIP", spec_tree_string(t, "None"));
	spec_tree_add(t, spec, "publishNotReadyAddresses", spec_tree_bool(t, true));
	spec_tree_add(t, spec, "ports", ports);
	spec_tree_add(t, spec, "selector", selector);
	spec_tree_add(t, spec, "sessionAffinity", spec_tree_string(t, "None"));
	spec_tree_add(t, spec, "type", spec_tree_string(t, "ClusterIP"));
	return spec;
}

static void add_service(struct mcad *m)
{
	struct spec_tree *t = &m->pods.tree;
	struct json_object *status = spec_tree_map(t), *metadata;
	struct json_object *service =
		new_object(m, "v1", "Service", spec_tree_string(t, m->build->id), &metadata);

	spec_tree_add(t, metadata, "labels", spec_pods_object_labels(&m->pods));
	spec_tree_add(t, service, "metadata", metadata);
	spec_tree_add(t, service, "spec", make_service_spec(m));
	spec_tree_add(t, status, "loadBalancer", spec_tree_map(t));
	spec_tree_add(t, service, "status", status);
	add_item(m, service);
}

/* --- pods ----------------------------------------------------------------------------------- */

static struct json_object *hosts_variable(struct mcad *m, const char *name, size_t role)
{
	struct spec_tree *t = &m->pods.tree;
	struct json_object *ret = spec_tree_map(t), *pod = pod_name(m, role, 0);

	spec_tree_add(t, ret, "name", spec_tree_string(t, name));
	if (pod)
		spec_tree_add(t, ret, "value",
			      spec_tree_format(t, "%s.%s", json_object_get_string(pod),
					       m->build->id));
	json_object_put(pod);
	return ret;
}

/* The host of rank 0, which rank0_env names, and that of the role's own replica 0. */
static int add_hosts(struct mcad *m, struct spec_pod_role *r)
{
	struct spec_tree *t = &m->pods.tree;
	char *own cleanup_free = mcad_name_hosts_env(r->role->name);

	if (!own)
		return spec_build_no_memory(m->build);
	r->more_env = spec_tree_list(t, 2);
	spec_tree_append(t, r->more_env, hosts_variable(m, m->rank0_env, 0));
	if (!streq(own, m->rank0_env))
		spec_tree_append(t, r->more_env, hosts_variable(m, own, r->index));
	return 0;
}

/* What MCAD's pods have in their spec beside what all have. */
static void extend_spec(struct mcad *m, struct spec_pod_role *r)
{
	const struct spec_build *b = m->build;
	const char *priority = spec_options_text(b->options, "priority_class_name");
	struct spec_tree *t = &m->pods.tree;

	spec_tree_add(t, r->spec, "subdomain", spec_tree_string(t, b->id));
	if (m->pull_secrets)
		spec_tree_add(t, r->spec, "imagePullSecrets", json_object_get(m->pull_secrets));
	if (m->coscheduler) {
		spec_tree_add(t, r->spec, "schedulerName", spec_tree_string(t, m->coscheduler));
		spec_tree_add(t, r->labels, "pod-group.scheduling.sigs.k8s.io",
			      group_name(m, r->index));
	}
	if (priority)
		spec_tree_add(t, r->spec, "priorityClassName", spec_tree_string(t, priority));
}

/* Name, namespace and host name are not the overlay's: the pods find each other by them. */
static void add_pod(struct mcad *m, struct json_object *name, struct json_object *pod)
{
	struct spec_tree *t = &m->pods.tree;
	struct json_object *spec = json_object_object_get(pod, "spec"), *metadata;
	struct json_object *whole = new_object(m, "v1", "Pod", json_object_get(name), &metadata);

	json_object_object_foreach(json_object_object_get(pod, "metadata"), key, value) {
		if (!streq(key, "name") && !streq(key, "namespace"))
			spec_tree_set(t, metadata, key, json_object_get(value));
	}
	spec_tree_add(t, whole, "metadata", metadata);
	spec_tree_set(t, spec, "hostname", json_object_get(name));
	spec_tree_add(t, whole, "spec", json_object_get(spec));
	add_item(m, whole);
}

static int make_pod(struct mcad *m, struct spec_pod_role *r, unsigned k)
{
	struct json_object *name cleanup_json = pod_name(m, r->index, k);
	struct json_object *pod cleanup_json = NULL;

	if (name)
		pod = spec_pod_make(r, k, json_object_get_string(name));
	if (!pod)
		return m->build->errors->n > 0 ? m->build->errors->err
					       : spec_build_no_memory(m->build);
	add_pod(m, name, pod);
	return 0;
}

static int add_pods(struct mcad *m, size_t index)
{
	struct spec_pod_role r cleanup(spec_pod_role_clear);
	int err = spec_pod_role_init(&r, &m->pods, index);

	if (!err)
		err = add_hosts(m, &r);
	if (err)
		return err;
	extend_spec(m, &r);
	for (unsigned k = 0; !err && k < r.role->num_replicas; k++)
		err = make_pod(m, &r, k);
	return err;
}

/* --- the object ----------------------------------------------------------------------------- */

static int start(struct mcad *m)
{
	const char *secret = spec_options_text(m->build->options, "image_secret");
	struct spec_pods *p = &m->pods;
	struct spec_tree *t = &p->tree;
	int err = make_id(m);

	if (err)
		return err;
	m->rank0_env = mcad_name_hosts_env(m->build->app->roles[0].name);
	if (!m->rank0_env)
		return spec_build_no_memory(m->build);
	p->build = m->build;
	p->app_name = m->app_name;
	p->rank0_env = m->rank0_env;
	p->network = spec_options_text(m->build->options, "network");
	p->reserved_cpu = 100;
	p->reserved_memory = 1024;
	p->efa = -1;
	m->items = spec_tree_list(t, 16);
	if (secret) {
		struct json_object *reference = spec_tree_map(t);

		spec_tree_add(t, reference, "name", spec_tree_string(t, secret));
		m->pull_secrets = spec_tree_list(t, 1);
		spec_tree_append(t, m->pull_secrets, reference);
	}
	return spec_pods_init(p);
}

static void put_retries(struct mcad *m, struct json_object *spec)
{
	const struct spec_app *app = m->build->app;
	struct spec_tree *t = &m->pods.tree;
	struct json_object *scheduling, *requeuing;
	int64_t least = app->roles[0].max_retries, total = 0;

	for (size_t i = 0; i < app->n_roles; i++) {
		least = min_of(least, app->roles[i].max_retries);
		total += app->roles[i].num_replicas;
	}
	if (least <= 0)
		return;
	scheduling = spec_tree_map(t);
	requeuing = spec_tree_map(t);
	spec_tree_add(t, requeuing, "timeInSeconds", spec_tree_int(t, 300));
	spec_tree_add(t, requeuing, "maxTimeInSeconds", spec_tree_int(t, 0));
	spec_tree_add(t, requeuing, "growthType", spec_tree_string(t, "exponential"));
	spec_tree_add(t, requeuing, "maxNumRequeuings", spec_tree_int(t, least));
	spec_tree_add(t, scheduling, "minAvailable", spec_tree_int(t, total));
	spec_tree_add(t, scheduling, "requeuing", requeuing);
	spec_tree_add(t, spec, "schedulingSpec", scheduling);
}

static struct json_object *make_object(struct mcad *m)
{
	const struct spec_build *b = m->build;
	struct spec_tree *t = &m->pods.tree;
	struct json_object *spec = spec_tree_map(t), *resources = spec_tree_map(t), *metadata;
	struct json_object *ret = new_object(m, b->kind->api_version, b->kind->kind,
					     spec_tree_string(t, b->id), &metadata);
	int64_t priority;

	spec_tree_add(t, ret, "metadata", metadata);
	if (spec_options_int(b->options, "priority", &priority))
		spec_tree_add(t, spec, "priority", spec_tree_int(t, priority));
	put_retries(m, spec);
	spec_tree_add(t, resources, "GenericItems", json_object_get(m->items));
	spec_tree_add(t, spec, "resources", resources);
	spec_tree_add(t, ret, "spec", spec);
	return ret;
}

static int mcad_build(struct spec_build *b)
{
	struct mcad m cleanup(mcad_clear) = {
		.build = b,
		.namespace = b->identity->namespace,
		.coscheduler = spec_options_text(b->options, "coscheduler_name"),
	};
	int ret = start(&m);

	if (ret)
		return ret;
	for (size_t i = 0; m.coscheduler && i < b->app->n_roles; i++)
		add_pod_group(&m, i);
	for (size_t i = 0; i < b->app->n_roles; i++) {
		int err = add_pods(&m, i);

		ret = ret ? ret : err;
	}
	if (ret)
		return ret;
	add_service(&m);
	b->object = make_object(&m);
	return m.pods.tree.failed ? spec_build_no_memory(b) : 0;
}

const struct spec_kind spec_mcad = {
	.name = "mcad",
	.scheduler = "kubernetes_mcad",
	.api_version = "workload.codeflare.dev/v1beta1",
	.kind = "AppWrapper",
	.plural = "appwrappers",
	.pod_selector = "",
	.options = options,
	.build = mcad_build,
};
