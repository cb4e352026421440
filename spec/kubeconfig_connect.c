/* SPDX-License-Identifier: MIT */
/*
 * From the entries of kubeconfig files to one connection: a context names a cluster and a user, and what
 * those say must fit together.
 */
#include <errno.h>

#include "spec/kubeconfig_impl.h"

/* --- releasing --- */

static void clear_secret(char **p)
{
	if (*p)
		explicit_bzero(*p, strlen(*p));
	free(*p);
	*p = NULL;
}

static void clear_pairs(struct spec_pair *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].key);
		clear_secret(&v[i].value);
	}
	free(v);
}

static void clear_list(char **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
}

static void clear_exec(struct spec_exec *x)
{
	free(x->command);
	clear_list(x->args, x->n_args);
	clear_pairs(x->env, x->n_env);
	free(x->api_version);
	free(x->install_hint);
	free(x->cluster_config);
}

void spec_connection_clear(struct spec_connection *c)
{
	char **const secrets[] = {&c->token, &c->user, &c->password, &c->key_pem, &c->proxy_url};
	char **const texts[] = {&c->context,  &c->namespace, &c->server,     &c->tls_server_name,
				&c->ca_file,  &c->ca_pem,    &c->token_file, &c->cert_file,
				&c->key_file, &c->cert_pem,  &c->as,	     &c->as_uid};

	for (size_t i = 0; i < array_size(secrets); i++)
		clear_secret(secrets[i]);
	for (size_t i = 0; i < array_size(texts); i++)
		free(*texts[i]);
	clear_list(c->as_groups, c->n_as_groups);
	clear_pairs(c->as_extra, c->n_as_extra);
	clear_exec(&c->exec);
	*c = (struct spec_connection){0};
}

/* --- what is given in no file --- */

/* Strings that nothing has set are "". */
static int complete(struct spec_connection *c)
{
	char **const texts[] = {
		&c->context,
		&c->namespace,
		&c->server,
		&c->tls_server_name,
		&c->proxy_url,
		&c->ca_file,
		&c->ca_pem,
		&c->token,
		&c->token_file,
		&c->user,
		&c->password,
		&c->cert_file,
		&c->key_file,
		&c->cert_pem,
		&c->key_pem,
		&c->as,
		&c->as_uid,
		&c->exec.api_version,
		&c->exec.install_hint,
		&c->exec.cluster_config,
	};

	if (c->namespace && !*c->namespace)
		free(take_ptr(c->namespace));
	if (!c->namespace)
		c->namespace = strdup("default");
	for (size_t i = 0; i < array_size(texts); i++) {
		if (!*texts[i])
			*texts[i] = strdup("");
		if (!*texts[i])
			return -ENOMEM;
	}
	return 0;
}

int spec_kubeconfig_in_cluster(const char *host, const char *port, const char *namespace,
			       struct spec_connection *ret)
{
	static const char dir[] = "/var/run/secrets/kubernetes.io/serviceaccount";
	bool v6 = strchr(host, ':');

	*ret = (struct spec_connection){0};
	if (!*host || !*port || host[strspn(host, "0123456789abcdefABCDEF.:")] ||
	    port[strspn(port, "0123456789")])
		return -EINVAL;
	if (asprintf(&ret->server, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port) <
	    0)
		ret->server = NULL;
	if (asprintf(&ret->ca_file, "%s/ca.crt", dir) < 0)
		ret->ca_file = NULL;
	if (asprintf(&ret->token_file, "%s/token", dir) < 0)
		ret->token_file = NULL;
	ret->namespace = strdup(namespace);
	if (!ret->server || !ret->ca_file || !ret->token_file || !ret->namespace)
		return -ENOMEM;
	return complete(ret);
}

/* --- the entries --- */

static int read_cluster(struct kubeconfig_reader *r, const struct spec_yaml *item,
			struct spec_connection *ret)
{
	const struct spec_yaml *server = kubeconfig_field(r, "server");
	int err;

	if (!server || spec_yaml_is_null(server))
		return kubeconfig_error(r->e, r->file, item, "the cluster has no server");
	err = kubeconfig_read_server(r, &ret->server);
	if (err == 0)
		err = kubeconfig_read_text(r, "tls-server-name", &ret->tls_server_name);
	if (err == 0)
		err = kubeconfig_read_proxy(r, &ret->proxy_url);
	if (err == 0)
		err = kubeconfig_read_bool(r, "insecure-skip-tls-verify", &ret->insecure);
	if (err == 0)
		err = kubeconfig_read_path(r, "certificate-authority", &ret->ca_file);
	if (err == 0)
		err = kubeconfig_read_pem(r, "certificate-authority-data", &ret->ca_pem);
	if (err == 0 && ret->insecure && (*ret->ca_file || *ret->ca_pem))
		err = kubeconfig_error(r->e, r->file,
				       kubeconfig_field(r, "insecure-skip-tls-verify"),
				       "insecure-skip-tls-verify makes no sense with a certificate "
				       "authority; remove one of them");
	return err < 0 ? err : kubeconfig_read_extension(r, &ret->exec.cluster_config);
}

static int read_groups(struct kubeconfig_reader *r, struct spec_connection *ret)
{
	const struct spec_yaml *v = kubeconfig_field(r, "as-groups");

	if (!v || spec_yaml_is_null(v))
		return 0;
	if (v->type != SPEC_YAML_LIST)
		return kubeconfig_error(r->e, r->file, v, "as-groups must be a list of names");
	ret->as_groups = calloc(v->n + 1, sizeof(*ret->as_groups));
	if (!ret->as_groups)
		return kubeconfig_no_memory(r);
	for (size_t i = 0; i < v->n; i++) {
		int err = kubeconfig_header(r, v->v[i], "a group", &ret->as_groups[i]);

		if (err < 0)
			return err;
		ret->n_as_groups++;
	}
	return 0;
}

static int add_extra(struct kubeconfig_reader *r, const char *key, const struct spec_yaml *value,
		     struct spec_connection *ret)
{
	struct spec_pair *v = reallocarray(ret->as_extra, ret->n_as_extra + 1, sizeof(*v));

	if (!v)
		return kubeconfig_no_memory(r);
	ret->as_extra = v;
	v = &v[ret->n_as_extra++];
	*v = (struct spec_pair){.key = strdup(key)};
	return v->key ? kubeconfig_header(r, value, "as-user-extra", &v->value)
		      : kubeconfig_no_memory(r);
}

static int read_extra(struct kubeconfig_reader *r, struct spec_connection *ret)
{
	const struct spec_yaml *map = kubeconfig_field(r, "as-user-extra");

	if (!map || spec_yaml_is_null(map))
		return 0;
	for (size_t i = 0; map->type == SPEC_YAML_MAP && i < map->n; i += 2) {
		const struct spec_yaml *list = map->v[i + 1];

		for (size_t j = 0; list->type == SPEC_YAML_LIST && j < list->n; j++) {
			int err = add_extra(r, map->v[i]->text, list->v[j], ret);

			if (err < 0)
				return err;
		}
	}
	return 0;
}

static int read_impersonation(struct kubeconfig_reader *r, const struct spec_yaml *item,
			      struct spec_connection *ret)
{
	int err = kubeconfig_read_header(r, "as", &ret->as);

	if (err == 0)
		err = kubeconfig_read_header(r, "as-uid", &ret->as_uid);
	if (err == 0)
		err = read_groups(r, ret);
	if (err == 0)
		err = read_extra(r, ret);
	if (err == 0 && !*ret->as && (*ret->as_uid || ret->n_as_groups || ret->n_as_extra))
		err = kubeconfig_error(
			r->e, r->file, item,
			"as-uid, as-groups and as-user-extra need \"as\", the user to "
			"act as");
	return err;
}

/* Which ways of being known there are, and that they don't exclude each other. */
static int check_user(struct kubeconfig_reader *r, const struct spec_yaml *item,
		      const struct spec_connection *c)
{
	const struct spec_yaml *provider = kubeconfig_field(r, "auth-provider");
	bool token = *c->token || *c->token_file, cert = *c->cert_file || *c->cert_pem;
	bool key = *c->key_file || *c->key_pem;

	if (provider && !spec_yaml_is_null(provider))
		return kubeconfig_error(
			r->e, r->file, provider,
			"auth-provider is no longer known to Kubernetes; use an exec "
			"plugin (your cluster's login tool writes one)");
	if (token && *c->user)
		return kubeconfig_error(
			r->e, r->file, item,
			"the user has a token and also a username; keep one of them");
	if (cert != key)
		return kubeconfig_error(r->e, r->file, item,
					"the user has a client %s without its %s",
					cert ? "certificate" : "key", cert ? "key" : "certificate");
	return 0;
}

static int read_user(struct kubeconfig_reader *r, const struct spec_yaml *item,
		     struct spec_connection *ret)
{
	int err = kubeconfig_read_header(r, "token", &ret->token);

	if (err == 0)
		err = kubeconfig_read_path(r, "tokenFile", &ret->token_file);
	if (err == 0)
		err = kubeconfig_read_text(r, "username", &ret->user);
	if (err == 0)
		err = kubeconfig_read_text(r, "password", &ret->password);
	if (err == 0)
		err = kubeconfig_read_path(r, "client-certificate", &ret->cert_file);
	if (err == 0)
		err = kubeconfig_read_path(r, "client-key", &ret->key_file);
	if (err == 0)
		err = kubeconfig_read_pem(r, "client-certificate-data", &ret->cert_pem);
	if (err == 0)
		err = kubeconfig_read_pem(r, "client-key-data", &ret->key_pem);
	if (err == 0)
		err = read_impersonation(r, item, ret);
	if (err == 0)
		err = kubeconfig_read_exec(r, &ret->exec);
	return err < 0 ? err : check_user(r, item, ret);
}

/* --- the context --- */

static int unknown_context(const struct spec_kubeconfig *k, const char *name, const char *place,
			   struct spec_errors *e)
{
	cleanup_free const char **names = kubeconfig_names(k, "context");
	const char *near = names ? spec_suggest(name, names) : NULL;

	if (!names)
		return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
	if (!names[0])
		return spec_errors_add(e, -EINVAL, 0, 0, place,
				       "there is no context \"%s\": the kubeconfig has none at all",
				       name);
	return spec_errors_add(
		e, -EINVAL, 0, 0, place,
		"there is no context \"%s\"%s%s%s; \"kubectl config get-contexts\" lists "
		"them",
		name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int find_context(const struct spec_kubeconfig *k, const char *name,
			struct kubeconfig_entry *ret, struct spec_errors *e)
{
	const struct kubeconfig_file *file = NULL;
	cleanup_free char *place = NULL;

	if (!*name) {
		const struct spec_yaml *current = kubeconfig_current(k, &file);

		if (!current)
			return spec_errors_add(
				e, -EINVAL, 0, 0, "",
				"the kubeconfig has no current-context; name one "
				"(CONTEXT/NAMESPACE), or set it with \"kubectl config "
				"use-context\"");
		name = current->text;
		if (asprintf(&place, "%s:%u:%u", file->name, current->line, current->column) < 0) {
			place = NULL;
			return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
		}
	}
	return kubeconfig_find(k, "context", name, ret)
		       ? 0
		       : unknown_context(k, name, place ? place : "", e);
}

/* The entry of KIND that context R names in its field of that name; RET is unchanged: it names none. */
static int follow(const struct spec_kubeconfig *k, struct kubeconfig_reader *r, const char *kind,
		  struct kubeconfig_entry *ret)
{
	cleanup_free char *name = NULL;
	int err = kubeconfig_read_text(r, kind, &name);

	if (err < 0 || !*name || kubeconfig_find(k, kind, name, ret))
		return err;
	return kubeconfig_error(r->e, r->file, kubeconfig_field(r, kind),
				"the context's %s \"%s\" is not in the kubeconfig", kind, name);
}

static int connect_context(const struct spec_kubeconfig *k, const struct kubeconfig_entry *context,
			   struct spec_connection *ret, struct spec_errors *e)
{
	struct kubeconfig_reader r = {.file = context->file, .body = context->body, .e = e};
	struct kubeconfig_entry cluster = {0}, user = {0};
	int err = kubeconfig_read_text(&r, "namespace", &ret->namespace);

	if (err == 0)
		err = follow(k, &r, "cluster", &cluster);
	if (err == 0 && !cluster.file)
		err = kubeconfig_error(e, r.file, context->item, "the context names no cluster");
	if (err == 0)
		err = follow(k, &r, "user", &user);
	if (err < 0)
		return err;
	r = (struct kubeconfig_reader){.file = cluster.file, .body = cluster.body, .e = e};
	err = read_cluster(&r, cluster.item, ret);
	if (err < 0 || !user.file)
		return err;
	r = (struct kubeconfig_reader){.file = user.file, .body = user.body, .e = e};
	return read_user(&r, user.item, ret);
}

int spec_kubeconfig_connect(const struct spec_kubeconfig *k, const char *context,
			    struct spec_connection *ret, struct spec_errors *e)
{
	struct kubeconfig_entry entry = {0};
	int err;

	*ret = (struct spec_connection){0};
	err = find_context(k, context, &entry, e);
	if (err < 0)
		return err;
	ret->context = strdup(spec_yaml_get(entry.item, "name")->text);
	if (!ret->context)
		return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
	err = connect_context(k, &entry, ret, e);
	if (err < 0)
		return err;
	return complete(ret) < 0 ? spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory") : 0;
}
