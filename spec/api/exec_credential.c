/* SPDX-License-Identifier: MIT */
/*
 * Writes and parses ExecCredential objects: the input and the output of an exec plugin. The output
 * contains secrets, so errors contain only positions and names of fields.
 */
#include <errno.h>

#include "spec/api/kubeconfig.h"
#include "spec/base/encode.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/base/tree.h"
#include "spec/yaml/yaml.h"

static void put_cluster(struct json_object *spec, const struct spec_connection *c,
			const char *ca_pem)
{
	struct json_object *cluster = spec_tree_add(spec, "cluster", spec_tree_map());
	const char *pem = *c->ca_pem ? c->ca_pem : ca_pem;
	cleanup_free char *data = NULL;

	spec_tree_text(cluster, "server", c->server);
	if (*c->tls_server_name)
		spec_tree_text(cluster, "tls-server-name", c->tls_server_name);
	if (c->insecure)
		spec_tree_add(cluster, "insecure-skip-tls-verify", spec_tree_bool(true));
	if (*c->proxy_url)
		spec_tree_text(cluster, "proxy-url", c->proxy_url);
	if (pem && *pem) {
		data = spec_base64_encode(pem, strlen(pem));
		spec_tree_text(cluster, "certificate-authority-data", data);
	}
	if (*c->exec.cluster_config)
		spec_tree_add(cluster, "config", spec_tree_parse(c->exec.cluster_config));
}

char *spec_exec_info(const struct spec_connection *c, const char *ca_pem)
{
	cleanup_json struct json_object *root = spec_tree_map();
	struct json_object *spec;

	spec_tree_text(root, "kind", "ExecCredential");
	spec_tree_text(root, "apiVersion", c->exec.api_version);
	spec = spec_tree_add(root, "spec", spec_tree_map());
	if (c->exec.provide_cluster_info)
		put_cluster(spec, c, ca_pem);
	spec_tree_add(spec, "interactive", spec_tree_bool(false));
	return spec_tree_print(root);
}

void spec_credential_clear(struct spec_credential *c)
{
	text_wipe(&c->token);
	text_wipe(&c->key_pem);
	free(c->cert_pem);
	*c = (struct spec_credential){0};
}

static int refuse(struct spec_errors *e, const struct spec_yaml *node, const char *what)
{
	return spec_errors_add(e, -EINVAL, node->line, node->column, "",
			       "the plugin's answer is not an ExecCredential: %s", what);
}

static int parse(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e)
{
	cleanup(spec_errors_clear) struct spec_errors found = SPEC_ERRORS_INIT;
	struct spec_yaml begin = {.line = 1, .column = 1};
	int err = spec_yaml_parse(text, len, ret, &found);

	if (err < 0 && found.n > 0 && found.v[0].line > 0) {
		begin.line = found.v[0].line;
		begin.column = found.v[0].column;
	}
	if (err < 0)
		return refuse(e, &begin,
			      "it is not JSON (kxfs does not show its text, which "
			      "may be secret)");
	return (*ret)->type == SPEC_YAML_MAP ? 0 : refuse(e, *ret, "it is not an object");
}

/* Set *RET to the text of STATUS's field KEY; "" if the field is absent. */
static int read_text(const struct spec_yaml *status, const char *key, char **ret,
		     struct spec_errors *e)
{
	const struct spec_yaml *v = spec_yaml_get(status, key);
	bool none = !v || spec_yaml_is_null(v);

	if (!none && (v->type != SPEC_YAML_SCALAR || strlen(v->text) != v->len))
		return spec_errors_add(e, -EINVAL, v->line, v->column, key,
				       "must be text in the plugin's answer");
	*ret = text_copy(none ? "" : v->text);
	return 0;
}

static bool is_text(const struct spec_yaml *map, const char *key, const char *value)
{
	const struct spec_yaml *v = spec_yaml_get(map, key);

	return v && v->type == SPEC_YAML_SCALAR && streq(v->text, value);
}

static int read_expiry(const struct spec_yaml *status, int64_t *ret, struct spec_errors *e)
{
	cleanup_free char *text = NULL;
	int err = read_text(status, "expirationTimestamp", &text, e);

	*ret = 0;
	if (err < 0 || !*text)
		return err;
	if (spec_time_parse(text, strlen(text), ret) != strlen(text))
		return refuse(e, spec_yaml_get(status, "expirationTimestamp"),
			      "expirationTimestamp is not a time");
	return 0;
}

static int check(const struct spec_credential *c, const struct spec_yaml *status,
		 struct spec_errors *e)
{
	for (const char *s = c->token; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return refuse(e, status,
				      "its token contains a line break or control character");
	if (!*c->cert_pem != !*c->key_pem)
		return refuse(e, status,
			      "it has a client certificate without its key, or a key "
			      "without its certificate");
	if (*c->cert_pem && !strstr(c->cert_pem, "-----BEGIN "))
		return refuse(e, status, "clientCertificateData is not PEM");
	if (*c->key_pem && !strstr(c->key_pem, "-----BEGIN "))
		return refuse(e, status, "clientKeyData is not PEM");
	if (!*c->token && !*c->cert_pem)
		return refuse(e, status, "it has neither a token nor a client certificate");
	return 0;
}

int spec_exec_reply(const char *text, size_t len, const char *api_version,
		    struct spec_credential *ret, struct spec_errors *e)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	const struct spec_yaml *status;
	int err;

	*ret = (struct spec_credential){0};
	err = parse(text, len, &root, e);
	if (err < 0)
		return err;
	if (!is_text(root, "kind", "ExecCredential"))
		return refuse(e, root, "its kind is not ExecCredential");
	if (!is_text(root, "apiVersion", api_version))
		return spec_errors_add(
			e, -EINVAL, root->line, root->column, "apiVersion",
			"the exec section of the kubeconfig has apiVersion %s, but the plugin's "
			"answer has another; make them equal",
			api_version);
	status = spec_yaml_get(root, "status");
	if (!status || status->type != SPEC_YAML_MAP)
		return refuse(e, root, "it has no status");
	err = read_text(status, "token", &ret->token, e);
	if (err == 0)
		err = read_text(status, "clientCertificateData", &ret->cert_pem, e);
	if (err == 0)
		err = read_text(status, "clientKeyData", &ret->key_pem, e);
	if (err == 0)
		err = read_expiry(status, &ret->expires, e);
	return err < 0 ? err : check(ret, status, e);
}
