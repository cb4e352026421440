/* SPDX-License-Identifier: MIT */
/*
 * Builds a spec_connection from the entries of kubeconfig files. A function that reads a field
 * continues after an error. Only the first error is added to the list, and the caller then discards
 * the result. No error quotes a value that may be secret.
 */
#include <errno.h>
#include <strings.h>

#include "spec/api/kubeconfig_find.h"
#include "spec/base/encode.h"
#include "spec/base/mem.h"
#include "spec/base/tree.h"

#define EXEC_EXTENSION "client.authentication.k8s.io/exec"

/* --- a connection --- */

static void clear_pairs(struct spec_pair *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].key);
		text_wipe(&v[i].value);
	}
	free(v);
}

static void clear_list(char **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
}

#define TEXT(name) offsetof(struct spec_connection, name)

/* The offsets of all string members, except exec.command. By default, these strings are "". */
static const size_t texts[] = {TEXT(context),
			       TEXT(namespace),
			       TEXT(server),
			       TEXT(tls_server_name),
			       TEXT(proxy_url),
			       TEXT(ca_file),
			       TEXT(ca_pem),
			       TEXT(token),
			       TEXT(token_file),
			       TEXT(user),
			       TEXT(password),
			       TEXT(cert_file),
			       TEXT(key_file),
			       TEXT(cert_pem),
			       TEXT(key_pem),
			       TEXT(as),
			       TEXT(as_uid),
			       TEXT(exec.api_version),
			       TEXT(exec.install_hint),
			       TEXT(exec.cluster_config)};

static char **text_at(struct spec_connection *c, size_t i)
{
	return (char **)((char *)c + texts[i]);
}

void spec_connection_clear(struct spec_connection *c)
{
	for (size_t i = 0; i < array_size(texts); i++)
		text_wipe(text_at(c, i));
	clear_list(c->as_groups, c->n_as_groups);
	clear_pairs(c->as_extra, c->n_as_extra);
	free(c->exec.command);
	clear_list(c->exec.args, c->exec.n_args);
	clear_pairs(c->exec.env, c->exec.n_env);
	*c = (struct spec_connection){0};
}

static void init(struct spec_connection *c)
{
	*c = (struct spec_connection){0};
	for (size_t i = 0; i < array_size(texts); i++)
		*text_at(c, i) = text_copy("");
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
	init(ret);
	text_set(&ret->server, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
	text_set(&ret->ca_file, "%s/ca.crt", dir);
	text_set(&ret->token_file, "%s/token", dir);
	text_set(&ret->namespace, "%s", *namespace ? namespace : "default");
	return 0;
}

/* --- the fields of an entry --- */

/* A context, a cluster or a user that is being read. */
struct connection_reader {
	const char *file;
	const struct spec_yaml *item;
	const struct spec_yaml *body; /* NULL if the entry is empty */
	struct spec_errors *e;
};

static struct connection_reader reader_of(const struct kubeconfig_entry *entry,
					  struct spec_errors *e)
{
	return (struct connection_reader){entry->file, entry->item, entry->body, e};
}

/* Report an error at NODE, unless an error was already reported. */
printf_like(3, 4) static void wrong(struct connection_reader *r, const struct spec_yaml *node,
				    const char *fmt, ...)
{
	cleanup_free char *place = NULL, *text = NULL;

	if (r->e->err)
		return;
	text = text_of_args(fmt);
	place = text_print("%s:%u:%u", r->file, node->line, node->column);
	spec_errors_add(r->e, -EINVAL, 0, 0, place, "%s", text);
}

/* Return the value of KEY; NULL if it is absent or null. */
static const struct spec_yaml *field(const struct connection_reader *r, const char *key)
{
	const struct spec_yaml *v = r->body ? spec_yaml_get(r->body, key) : NULL;

	return v && !spec_yaml_is_null(v) ? v : NULL;
}

/* Set *RET to the text of V; "" if V is NULL, null or not valid text. Errors name the field KEY. */
static void set_text(struct connection_reader *r, const struct spec_yaml *v, const char *key,
		     char **ret)
{
	const char *text = "";

	if (v && v->type != SPEC_YAML_SCALAR)
		wrong(r, v, "%s must be text", key);
	else if (v && strlen(v->text) != v->len)
		wrong(r, v, "%s contains a NUL character", key);
	else if (v && !spec_yaml_is_null(v))
		text = v->text;
	free(*ret);
	*ret = text_copy(text);
}

/* Like set_text, for an HTTP header: refuse control characters. */
static void set_header(struct connection_reader *r, const struct spec_yaml *v, const char *key,
		       char **ret)
{
	set_text(r, v, key, ret);
	for (const char *s = *ret; *s; s++) {
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			wrong(r, v,
			      "%s contains a line break or another control character; write it "
			      "on one line",
			      key);
	}
}

static void read_text(struct connection_reader *r, const char *key, char **ret)
{
	set_text(r, field(r, key), key, ret);
}

static void read_header(struct connection_reader *r, const char *key, char **ret)
{
	set_header(r, field(r, key), key, ret);
}

static bool read_bool(struct connection_reader *r, const char *key)
{
	const struct spec_yaml *v = field(r, key);

	if (!v)
		return false;
	if (v->type != SPEC_YAML_SCALAR || spec_yaml_resolve(v) != SPEC_YAML_BOOL)
		wrong(r, v, "%s must be true or false", key);
	else
		return v->text[0] == 't' || v->text[0] == 'T';
	return false;
}

/* Make a relative PATH absolute by prepending the directory of R's file. */
static void make_absolute(struct connection_reader *r, char **path)
{
	const char *slash = strrchr(r->file, '/');

	if (**path && **path != '/')
		text_set(path, "%.*s%s", slash ? (int)(slash - r->file) + 1 : 0, r->file, *path);
}

static void read_path(struct connection_reader *r, const char *key, char **ret)
{
	read_text(r, key, ret);
	make_absolute(r, ret);
}

/* Set *RET to the PEM text that the field KEY contains in base64. */
static void read_pem(struct connection_reader *r, const char *key, char **ret)
{
	cleanup(text_wipe) char *text = NULL;
	char *pem;
	size_t len;

	read_text(r, key, &text);
	pem = spec_base64_decode(text, strlen(text), &len);
	if (!pem) {
		wrong(r, field(r, key), "%s is not base64", key);
		return;
	}
	if (len > 0 && (strlen(pem) != len || !strstr(pem, "-----BEGIN ")))
		wrong(r, field(r, key), "%s must be PEM text (\"-----BEGIN ...\") in base64", key);
	text_wipe(ret);
	*ret = pem;
}

/* Return the list in the field KEY; NULL if absent. WHAT names its items in an error message. */
static const struct spec_yaml *read_list(struct connection_reader *r, const char *key,
					 const char *what)
{
	const struct spec_yaml *v = field(r, key);

	if (v && v->type != SPEC_YAML_LIST)
		wrong(r, v, "%s must be a list of %s", key, what);
	return v && v->type == SPEC_YAML_LIST ? v : NULL;
}

typedef void (*set_fn)(struct connection_reader *r, const struct spec_yaml *v, const char *key,
		       char **ret);

/*
 * Set *RET to an array of the texts in the list KEY. SET reads one item. In error messages, WHAT
 * names the items of the list ("names"), and ITEM names a single item ("a group").
 */
static void read_texts(struct connection_reader *r, const char *key, const char *what, set_fn set,
		       const char *item, char ***ret, size_t *ret_n)
{
	const struct spec_yaml *v = read_list(r, key, what);

	if (!v)
		return;
	*ret = new0_n(char *, v->n);
	for (*ret_n = 0; *ret_n < v->n; ++*ret_n)
		set(r, v->v[*ret_n], item, &(*ret)[*ret_n]);
}

/* True if URL has one of SCHEMES, a host and only valid characters, but no query or fragment. */
static bool is_url(const char *url, const char *const *schemes)
{
	const char *host = NULL;

	for (; *schemes && !host; schemes++)
		if (strncasecmp(url, *schemes, strlen(*schemes)) == 0)
			host = url + strlen(*schemes);
	if (!host || !*host || strchr("/:", *host))
		return false;
	for (; *host; host++)
		if ((unsigned char)*host <= ' ' || *host == 0x7f || strchr("?#\"\\", *host))
			return false;
	return true;
}

/* --- a cluster --- */

static void read_server(struct connection_reader *r, char **ret)
{
	static const char *const schemes[] = {"https://", "http://", NULL};
	const struct spec_yaml *v = field(r, "server");
	size_t len;

	if (!v) {
		wrong(r, r->item, "this cluster has no \"server\"");
		return;
	}
	read_text(r, "server", ret);
	len = strlen(*ret);
	while (len > 0 && (*ret)[len - 1] == '/')
		(*ret)[--len] = '\0';
	if (!is_url(*ret, schemes))
		wrong(r, v, "server is not a URL such as https://HOST:PORT");
	if (strchr(*ret, '@'))
		wrong(r, v,
		      "server contains an \"@\"; move the user name and password to the user's "
		      "entry");
}

static void read_cluster(struct connection_reader *r, struct spec_connection *ret)
{
	static const char *const proxies[] = {"http://", "https://", "socks5://", "socks5h://",
					      NULL};
	const struct spec_yaml *list = field(r, "extensions");

	read_server(r, &ret->server);
	read_text(r, "tls-server-name", &ret->tls_server_name);
	read_text(r, "proxy-url", &ret->proxy_url);
	if (*ret->proxy_url && !is_url(ret->proxy_url, proxies))
		wrong(r, field(r, "proxy-url"),
		      "proxy-url is not a URL such as http://HOST:PORT (or https, socks5)");
	ret->insecure = read_bool(r, "insecure-skip-tls-verify");
	read_path(r, "certificate-authority", &ret->ca_file);
	read_pem(r, "certificate-authority-data", &ret->ca_pem);
	if (ret->insecure && (*ret->ca_file || *ret->ca_pem))
		wrong(r, field(r, "insecure-skip-tls-verify"),
		      "insecure-skip-tls-verify can't be combined with a certificate authority; "
		      "remove one of them");
	/* Store the cluster's configuration for exec plugins as JSON. */
	for (size_t i = 0; list && list->type == SPEC_YAML_LIST && i < list->n; i++) {
		const struct spec_yaml *name = spec_yaml_get(list->v[i], "name");
		const struct spec_yaml *body = spec_yaml_get(list->v[i], "extension");
		cleanup_json struct json_object *json = NULL;

		if (!name || !streq(name->text, EXEC_EXTENSION) || !body || spec_yaml_is_null(body))
			continue;
		json = spec_yaml_to_json(body);
		free(ret->exec.cluster_config);
		ret->exec.cluster_config = spec_tree_print(json);
		return;
	}
}

/* --- the exec credential plugin of a user --- */

static void read_env(struct connection_reader *x, struct spec_exec *ret)
{
	const struct spec_yaml *v = read_list(x, "env", "{name: NAME, value: VALUE}");

	if (!v)
		return;
	ret->env = new0_n(struct spec_pair, v->n);
	for (ret->n_env = 0; ret->n_env < v->n; ret->n_env++) {
		struct connection_reader of_item = {x->file, x->item, v->v[ret->n_env], x->e};
		struct spec_pair *pair = &ret->env[ret->n_env];

		read_text(&of_item, "name", &pair->key);
		read_text(&of_item, "value", &pair->value);
		if (!*pair->key || strchr(pair->key, '='))
			wrong(x, of_item.body, "an item of env must be {name: NAME, value: VALUE}");
	}
}

static void read_exec(struct connection_reader *user, struct spec_exec *ret)
{
	const struct spec_yaml *exec = field(user, "exec");
	struct connection_reader x = {user->file, user->item, exec, user->e};
	cleanup_free char *mode = NULL;

	if (!exec)
		return;
	if (exec->type != SPEC_YAML_MAP)
		wrong(&x, exec, "exec must be a map");
	read_text(&x, "apiVersion", &ret->api_version);
	if (!streq(ret->api_version, "client.authentication.k8s.io/v1") &&
	    !streq(ret->api_version, "client.authentication.k8s.io/v1beta1"))
		wrong(&x, exec,
		      "the exec plugin's apiVersion must be client.authentication.k8s.io/v1 or "
		      "v1beta1; update this entry with the tool that wrote it");
	read_text(&x, "interactiveMode", &mode);
	if (streq(mode, "Always"))
		wrong(&x, exec,
		      "the exec plugin requires a terminal (interactiveMode: Always), which kxfs "
		      "does not have; set IfAvailable, and log in before you start kxfs");
	read_texts(&x, "args", "texts", set_text, "an argument", &ret->args, &ret->n_args);
	read_env(&x, ret);
	read_text(&x, "installHint", &ret->install_hint);
	ret->provide_cluster_info = read_bool(&x, "provideClusterInfo");
	read_text(&x, "command", &ret->command);
	if (!*ret->command)
		wrong(&x, exec, "the exec plugin has no command");
	if (strchr(ret->command, '/'))
		make_absolute(&x, &ret->command);
}

/* --- a user --- */

static void read_impersonation(struct connection_reader *r, struct spec_connection *ret)
{
	const struct spec_yaml *map;

	read_header(r, "as", &ret->as);
	read_header(r, "as-uid", &ret->as_uid);
	read_texts(r, "as-groups", "names", set_header, "a group", &ret->as_groups,
		   &ret->n_as_groups);
	map = field(r, "as-user-extra");
	if (map && map->type != SPEC_YAML_MAP)
		return wrong(r, map, "as-user-extra must be a map of lists");
	for (size_t i = 0; map && i < map->n; i += 2) {
		const struct spec_yaml *list = map->v[i + 1];

		if (spec_yaml_is_null(list))
			continue;
		if (list->type != SPEC_YAML_LIST)
			return wrong(r, list, "as-user-extra must be a map of lists");
		for (size_t j = 0; j < list->n; j++) {
			struct spec_pair pair = {.key = text_copy(map->v[i]->text)};

			set_header(r, list->v[j], "as-user-extra", &pair.value);
			ret->as_extra = mem_grow(ret->as_extra, ret->n_as_extra + 1, sizeof(pair));
			ret->as_extra[ret->n_as_extra++] = pair;
		}
	}
	if (!*ret->as && (*ret->as_uid || ret->n_as_groups || ret->n_as_extra))
		wrong(r, r->item,
		      "as-uid, as-groups and as-user-extra need \"as\": add the name of the user "
		      "to impersonate");
}

/* Refuse credentials of a user that are incomplete, or exclude each other. */
static void check_user(struct connection_reader *r, const struct spec_connection *c)
{
	const struct spec_yaml *provider = field(r, "auth-provider");
	bool token = *c->token || *c->token_file, cert = *c->cert_file || *c->cert_pem;
	bool key = *c->key_file || *c->key_pem;

	if (provider)
		wrong(r, provider,
		      "Kubernetes no longer supports auth-provider; use an exec plugin (your "
		      "cluster's login tool writes one)");
	if (token && *c->user)
		wrong(r, r->item, "the user has a token and also a username; keep one of them");
	if (cert != key)
		wrong(r, r->item, "the user has a client %s without its %s",
		      cert ? "certificate" : "key", cert ? "key" : "certificate");
}

/* --- the context --- */

static int unknown_context(const struct spec_kubeconfig *k, const char *name, const char *place,
			   struct spec_errors *e)
{
	cleanup_free const char **names = kubeconfig_names(k);
	const char *near = spec_suggest(name, names);

	if (!names[0])
		return spec_errors_add(e, -EINVAL, 0, 0, place,
				       "there is no context \"%s\": the kubeconfig has no contexts",
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
	cleanup_free char *place = text_copy("");

	if (!*name) {
		const char *file = NULL;
		const struct spec_yaml *current = kubeconfig_current(k, &file);

		if (!current)
			return spec_errors_add(
				e, -EINVAL, 0, 0, "",
				"the kubeconfig has no current-context; name one "
				"(CONTEXT/NAMESPACE), or set it with \"kubectl config "
				"use-context\"");
		name = current->text;
		text_set(&place, "%s:%u:%u", file, current->line, current->column);
	}
	return kubeconfig_find(k, "context", name, ret) ? 0 : unknown_context(k, name, place, e);
}

/*
 * Find the cluster or user (KIND) that the context R names. Return false if the context does not
 * name one. Also return false, and report an error, if the name is not in the kubeconfig.
 */
static bool find_named(const struct spec_kubeconfig *k, struct connection_reader *r,
		       const char *kind, struct kubeconfig_entry *ret)
{
	cleanup_free char *name = NULL;

	read_text(r, kind, &name);
	if (!*name)
		return false;
	if (kubeconfig_find(k, kind, name, ret))
		return true;
	wrong(r, field(r, kind), "the context's %s \"%s\" is not in the kubeconfig", kind, name);
	return false;
}

int spec_kubeconfig_connect(const struct spec_kubeconfig *k, const char *context,
			    struct spec_connection *ret, struct spec_errors *e)
{
	struct kubeconfig_entry entry = {0}, cluster, user;
	struct connection_reader r;
	bool has_user;
	int err;

	*ret = (struct spec_connection){0};
	err = find_context(k, context, &entry, e);
	if (err)
		return err;
	init(ret);
	text_set(&ret->context, "%s", spec_yaml_get(entry.item, "name")->text);
	r = reader_of(&entry, e);
	read_text(&r, "namespace", &ret->namespace);
	if (!*ret->namespace)
		text_set(&ret->namespace, "default");
	if (!find_named(k, &r, "cluster", &cluster))
		wrong(&r, entry.item, "the context names no cluster");
	has_user = find_named(k, &r, "user", &user);
	if (e->err)
		return e->err;
	r = reader_of(&cluster, e);
	read_cluster(&r, ret);
	if (has_user) {
		r = reader_of(&user, e);
		read_header(&r, "token", &ret->token);
		read_path(&r, "tokenFile", &ret->token_file);
		read_text(&r, "username", &ret->user);
		read_text(&r, "password", &ret->password);
		read_path(&r, "client-certificate", &ret->cert_file);
		read_path(&r, "client-key", &ret->key_file);
		read_pem(&r, "client-certificate-data", &ret->cert_pem);
		read_pem(&r, "client-key-data", &ret->key_pem);
		read_impersonation(&r, ret);
		read_exec(&r, &ret->exec);
		check_user(&r, ret);
	}
	return e->err;
}
