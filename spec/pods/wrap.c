/* SPDX-License-Identifier: MIT */
/*
 * Makes and reads the objects in an AppWrapper. They have the names that TorchX would choose,
 * unless jobs with these names would fail.
 */
#include "spec/pods/wrap.h"

#include <ctype.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define TORCHX	     "torchx.pytorch.org/"
#define DEFAULT_PORT 29500 /* the port if no role has one */
#define MAX_SUFFIX   ((int64_t)14)
#define MIN_SUFFIX   ((int64_t)8) /* 3e11 different suffixes */
/*
 * The app's name and the random suffix together may have at least this many characters, even if
 * there are many roles.
 */
#define MIN_ROOM ((int64_t)24)
/*
 * Characters of a name that are reserved for the suffixes of roles. One more is reserved for each
 * role.
 */
#define NAME_RESERVE 7

/* --- names --- */

/* Return NAME in normal form (spec_name_norm), without leading digits and dashes. */
static char *clean(const char *name)
{
	char *ret = spec_name_norm(name);
	size_t skip = strspn(ret, "0123456789-");

	memmove(ret, ret + skip, strlen(ret + skip) + 1);
	return ret;
}

static size_t count_chars(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/*
 * Make a random suffix of N characters. Use both random numbers, because one may yield fewer than
 * 14 characters.
 */
static void make_suffix(const uint64_t random[2], size_t n, char ret[MAX_SUFFIX + 1])
{
	char more[SPEC_SUFFIX_MAX];
	size_t half = MAX_SUFFIX / 2, have;

	spec_name_suffix(random[0], ret);
	have = min_of(strlen(ret), half);
	spec_name_suffix(random[1], more);
	snprintf(ret + have, MAX_SUFFIX + 1 - have, "%.*s", (int)half, more);
	if (strlen(ret) > n)
		ret[n] = '\0';
}

/*
 * Choose the job's id. It must be so short that each role's suffix fits, so kxfs shortens the app's
 * name. TorchX shortens the random suffix instead, to as few as 3 characters. Two jobs could then
 * get the same id.
 */
static void make_id(struct spec_pods *p)
{
	const struct spec_app *app = p->build->app;
	int64_t room = SPEC_MAX_NAME - NAME_RESERVE - (int64_t)app->n_roles;
	int64_t suffix_len = min_of(room - (int64_t)count_chars(app->name), MAX_SUFFIX);
	char suffix[SPEC_SUFFIX_MAX];
	cleanup_free char *label = spec_label_clean(app->name);
	cleanup_free char *name = clean(app->name);
	size_t len;

	if (suffix_len < MIN_SUFFIX) {
		suffix_len = MIN_SUFFIX;
		room = max_of(room, MIN_ROOM);
	}
	make_suffix(p->build->identity->random, (size_t)suffix_len, suffix);
	p->app_name = mem_copy(label, min_of(strlen(label), (size_t)(room - suffix_len)));
	len = min_of(strlen(name), (size_t)(room - suffix_len));
	while (len > 0 && name[len - 1] == '-') /* a dash follows anyway */
		len--;
	name[len] = '\0';
	p->build->id = text_print("%s%s%s", name, *name ? "-" : "", suffix);
}

/* Return the variable with the host of ROLE's replica 0 (malloc'ed). */
static char *hosts_env(const char *role)
{
	cleanup_free char *name = clean(role);
	char *ret = text_print("TORCHX_MCAD_%s_0_HOSTS", name), *to = ret;

	for (const char *from = ret; *from; from++) {
		if (*from != '-')
			*to++ = (char)toupper((unsigned char)*from);
	}
	*to = '\0';
	return ret;
}

/*
 * Return the name of replica K's pod. In role 0, it is TorchX's name. Other roles add their index,
 * so that names are unique.
 */
static struct json_object *pod_name(struct spec_pods *p, size_t role, unsigned k)
{
	if (role == 0)
		return spec_tree_format("%s-%u", p->build->id, k);
	return spec_tree_format("%s-%zu-%u", p->build->id, role, k);
}

/* --- items --- */

static struct json_object *group_name(struct spec_pods *p, size_t role)
{
	return spec_tree_format("%s-pg%zu", p->build->id, role);
}

static void add_pod_group(struct spec_pods *p, size_t index)
{
	struct json_object *labels = spec_pods_object_labels(p), *spec = spec_tree_map(), *metadata;
	struct json_object *group = spec_build_object(p->build, "scheduling.sigs.k8s.io/v1alpha1",
						      "PodGroup", group_name(p, index), &metadata);

	spec_tree_text(labels, "appwrapper.workload.codeflare.dev", p->build->id);
	spec_tree_add(metadata, "labels", labels);
	spec_tree_number(spec, "minMember", p->build->app->roles[index].num_replicas);
	spec_tree_add(group, "spec", spec);
	spec_tree_append(p->parts, group);
}

/* The names are DNS labels, which JSON need not escape. */
static void add_service(struct spec_pods *p)
{
	const char *id = p->build->id;
	const struct spec_app *app = p->build->app;
	long long port = DEFAULT_PORT;
	cleanup_free char *spec = NULL;
	struct json_object *metadata, *service;

	for (size_t i = 0; i < app->n_roles; i++) {
		const struct spec_counts *ports = &app->roles[i].port_map;

		if (ports->n > 0)
			port = ports->v[ports->n - 1].value;
	}
	spec = text_print(
		"{\"clusterIP\": \"None\", \"publishNotReadyAddresses\": true,"
		" \"ports\": [{\"protocol\": \"TCP\", \"port\": %lld, \"targetPort\": %lld}],"
		" \"selector\": {\"app.kubernetes.io/instance\": \"%s\"},"
		" \"sessionAffinity\": \"None\", \"type\": \"ClusterIP\"}",
		port, port, id);
	service = spec_build_object(p->build, "v1", "Service", spec_tree_string(id), &metadata);
	spec_tree_add(metadata, "labels", spec_pods_object_labels(p));
	spec_tree_add(service, "spec", spec_tree_parse(spec));
	spec_tree_add(service, "status", spec_tree_parse("{\"loadBalancer\": {}}"));
	spec_tree_append(p->parts, service);
}

/* --- pods --- */

static struct json_object *hosts_variable(struct spec_pods *p, const char *name, size_t role)
{
	struct json_object *ret = spec_tree_map(), *pod cleanup_json = pod_name(p, role, 0);

	spec_tree_text(ret, "name", name);
	spec_tree_add(ret, "value",
		      spec_tree_format("%s.%s", json_object_get_string(pod), p->build->id));
	return ret;
}

static void extend_spec(struct spec_pods *p, struct spec_pod_role *r)
{
	const struct spec_build *b = p->build;
	const char *priority = spec_options_text(b->options, "priority_class_name");
	const char *coscheduler = spec_options_text(b->options, "coscheduler_name");

	spec_tree_text(r->spec, "subdomain", b->id);
	spec_pod_add_secret(r);
	if (coscheduler) {
		spec_tree_text(r->spec, "schedulerName", coscheduler);
		spec_tree_add(r->labels, "pod-group.scheduling.sigs.k8s.io",
			      group_name(p, r->index));
	}
	if (priority)
		spec_tree_text(r->spec, "priorityClassName", priority);
}

/* Add replica K's pod. An overlay can't change its names, by which pods find each other. */
static int add_pod(struct spec_pods *p, struct spec_pod_role *r, unsigned k)
{
	struct json_object *name cleanup_json = pod_name(p, r->index, k);
	struct json_object *pod cleanup_json = spec_pod_make(r, k, json_object_get_string(name));
	struct json_object *spec, *whole, *metadata;

	if (!pod)
		return p->build->errors->err;
	spec = json_object_object_get(pod, "spec");
	whole = spec_build_object(p->build, "v1", "Pod", json_object_get(name), &metadata);
	json_object_object_foreach(json_object_object_get(pod, "metadata"), key, value) {
		if (!streq(key, "name") && !streq(key, "namespace"))
			spec_tree_set(metadata, key, json_object_get(value));
	}
	spec_tree_set(spec, "hostname", json_object_get(name));
	spec_tree_add(whole, "spec", json_object_get(spec));
	spec_tree_append(p->parts, whole);
	return 0;
}

static int add_pods(struct spec_pods *p, size_t index)
{
	struct spec_pod_role r cleanup(spec_pod_role_clear);
	int err = spec_pod_role_init(&r, p, index);
	cleanup_free char *own = hosts_env(p->build->app->roles[index].name);

	if (err)
		return err;
	/* The variables with the hosts of rank 0, and of replica 0 of this role. */
	r.more_env = spec_tree_list(2);
	spec_tree_append(r.more_env, hosts_variable(p, p->rank0_env, 0));
	if (!streq(own, p->rank0_env))
		spec_tree_append(r.more_env, hosts_variable(p, own, index));
	extend_spec(p, &r);
	for (unsigned k = 0; !err && k < r.role->num_replicas; k++)
		err = add_pod(p, &r, k);
	return err;
}

/* --- all steps together --- */

static void start(struct spec_pods *p)
{
	make_id(p);
	p->rank0_env = hosts_env(p->build->app->roles[0].name);
	p->network = spec_options_text(p->build->options, "network");
	spec_pods_init(p);
}

/*
 * A label identifies a role. Check that the earlier roles, whose labels are in NAMES, do not have
 * the label of role INDEX. Return 0, or the errno of the build's errors.
 */
static int check_label(struct spec_pods *p, size_t index, struct json_object *names)
{
	cleanup_free char *label = spec_label_clean(p->build->app->roles[index].name);
	struct json_object *other;

	if (!json_object_object_get_ex(names, label, &other)) {
		spec_tree_set(names, label, spec_tree_int((int64_t)index));
		return 0;
	}
	return spec_role_refuse(p->build, index, "name", NULL,
				"would have the same label as roles[%d], \"%s\": the first %u "
				"characters of their names must differ",
				json_object_get_int(other), label, SPEC_MAX_NAME);
}

int wrap_build(struct spec_build *b, struct json_object *(*item)(struct json_object *object),
	       struct json_object *(*object)(struct spec_pods *p))
{
	struct spec_pods pods cleanup(spec_pods_clear) = {.build = b};
	const struct spec_app *app = b->app;
	struct json_object *names cleanup_json = spec_tree_map();
	int ret = 0;

	start(&pods);
	if (spec_options_text(b->options, "coscheduler_name"))
		for (size_t i = 0; i < app->n_roles; i++)
			add_pod_group(&pods, i);
	for (size_t i = 0; i < app->n_roles; i++) {
		int err = check_label(&pods, i, names);

		if (!err)
			err = add_pods(&pods, i);
		ret = ret ? ret : err;
	}
	if (ret)
		return ret;
	add_service(&pods);
	for (size_t i = 0; i < json_object_array_length(pods.parts); i++) {
		struct json_object *part = json_object_array_get_idx(pods.parts, i);

		json_object_array_put_idx(pods.parts, i, item(json_object_get(part)));
	}
	b->object = object(&pods);
	return 0;
}

/* --- reading --- */

/*
 * Return a key that is unique in the job. It is "ROLE.REPLICA" from TorchX's labels, stored in KEY,
 * because TorchX's pod names lack the role. Without these labels, it is the pod's name.
 */
static const char *key_of(const struct spec_value *object, char *key, size_t size)
{
	const struct spec_value *labels = spec_view_labels(object);
	int role = spec_read_digits(spec_read_text(labels, TORCHX "role-index"));
	int replica = spec_read_digits(spec_read_text(labels, TORCHX "replica-id"));

	if (role < 0 || replica < 0 || !*spec_read_text(labels, TORCHX "role-name"))
		return spec_read_text(spec_read_map(object, "metadata"), "name");
	snprintf(key, size, "%d.%d", role, replica);
	return key;
}

static void read_task(const struct spec_value *pod, struct spec_task_source *ret)
{
	const struct spec_value *labels = spec_view_labels(pod);
	int id = spec_read_digits(spec_read_text(labels, TORCHX "replica-id"));

	ret->name = key_of(pod, ret->key, sizeof(ret->key));
	ret->replicas = ret->minimum = 1;
	ret->time_limit = spec_view_time_limit(pod);
	ret->role = id < 0 ? "" : spec_read_text(labels, TORCHX "role-name");
	ret->replica = id < 0 ? 0 : (unsigned)id;
}

static bool is_pod(const struct spec_value *object)
{
	return streq(spec_read_text(object, "kind"), "Pod") &&
	       streq(spec_read_text(object, "apiVersion"), "v1");
}

/* True if objects of this kind never create pods. */
static bool is_quiet(const struct spec_value *object)
{
	static const char *const kinds[] = {"Service",	      "PodGroup", "ConfigMap",
					    "Secret",	      "Ingress",  "NetworkPolicy",
					    "ServiceAccount", "Role",	  "PersistentVolumeClaim",
					    "RoleBinding",    "Route",	  NULL};

	return streq_any(spec_read_text(object, "kind"), kinds);
}

size_t wrap_tasks(const struct spec_value *list, const char *key, struct spec_job_view *v,
		  struct spec_task_source **ret_tasks)
{
	size_t n = 0;

	*ret_tasks = new0_n(struct spec_task_source, spec_read_count(list));
	for (size_t i = 0; i < spec_read_count(list); i++) {
		const struct spec_value *pod = spec_read_map(spec_read_at(list, i), key);

		if (!is_pod(pod)) {
			v->hidden |= !is_quiet(pod);
			continue;
		}
		if (n == 0)
			spec_read_copy_word(&v->app, spec_view_labels(pod), TORCHX "app-name");
		read_task(pod, &(*ret_tasks)[n++]);
	}
	return n;
}

void wrap_pod(const struct spec_reader *reader, const struct spec_value *object,
	      struct spec_pod_view *v)
{
	char key[sizeof(((struct spec_task_source *)NULL)->key)];

	v->index = 0;
	v->retry = SPEC_RETRY_UNKNOWN;
	spec_read_copy(&v->task, key_of(object, key, sizeof(key)), READ_MAX_WORD);
	spec_read_copy(&v->main, spec_pod_choose_main(object, v->meta.name), READ_MAX_WORD);
}
