/* SPDX-License-Identifier: MIT */
/*
 * kubeconfig files as kubectl reads them, and the protocol of exec credential plugins. The caller
 * reads the files (rule D1): each is parsed separately and merged into the earlier ones, where the
 * first value of a field counts. The result is one connection: a server, and the credentials for
 * it. No message contains a token, a password or a key.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/base/mem.h"

struct spec_kubeconfig;

/* An exec credential plugin. COMMAND is NULL if the user has no plugin. */
struct spec_exec {
	char *command; /* a path relative to the file has been made absolute; a bare word is
		        * searched in PATH */
	char **args;   /* n_args */
	size_t n_args;
	struct spec_pair *env;
	size_t n_env;
	char *api_version; /* client.authentication.k8s.io/v1 or v1beta1 */
	char *install_hint;
	bool provide_cluster_info;
	char *cluster_config; /* JSON: the cluster entry's configuration for plugins, or "" */
};

/*
 * A connection. No string is NULL; "" means "not given". Paths are absolute. A text that becomes a
 * header line has no control characters; a server or proxy is a URL with a known scheme.
 */
struct spec_connection {
	char *context;
	char *namespace; /* "default" if the context names none */
	char *server;	 /* https://host:port/prefix (or http), without a trailing slash */
	char *tls_server_name;
	char *proxy_url;
	bool insecure;
	char *ca_file;
	char *ca_pem; /* decoded; takes precedence over the file */
	char *token;
	char *token_file;      /* takes precedence over token, which is used while the file can't
			        * be read */
	char *user, *password; /* not together with a token */
	char *cert_file, *key_file;
	char *cert_pem, *key_pem; /* each takes precedence over its file; a certificate has a key */
	char *as, *as_uid;
	char **as_groups;
	size_t n_as_groups;
	struct spec_pair *as_extra; /* key, value; keys may repeat */
	size_t n_as_extra;
	struct spec_exec exec;
};

void spec_connection_clear(struct spec_connection *c);

/* Create an empty kubeconfig. */
struct spec_kubeconfig *spec_kubeconfig_new(void);
void spec_kubeconfig_free(struct spec_kubeconfig *k);
define_cleanup(spec_kubeconfig_freep, struct spec_kubeconfig *, spec_kubeconfig_free)

/*
 * Merge the text of one file, whose relative paths are relative to the directory of FILE, an
 * absolute path. Unknown fields are ignored, as in kubectl; an empty file is allowed and adds
 * nothing. Return 0 or the errno of E, whose positions are in this file.
 */
int spec_kubeconfig_merge(struct spec_kubeconfig *k, const char *file, const char *text, size_t len,
			  struct spec_errors *e);

/*
 * Make the connection of CONTEXT ("": the current one). Errors are an unknown context (with a
 * suggestion), cluster or user, a server that is not a URL, data that is not base64, an
 * auth-provider (no longer supported by Kubernetes), and a plugin that needs a terminal. E, which
 * must be empty, gets the first error, with its position (line, and the file in its path) and its
 * remedy. Clear *RET in any case.
 */
int spec_kubeconfig_connect(const struct spec_kubeconfig *k, const char *context,
			    struct spec_connection *ret, struct spec_errors *e);

/*
 * Return the namespaces that can be mounted: each context with its namespace, "CONTEXT/NAMESPACE"
 * as on the command line, in the order of the files. The array ends with NULL; it and its texts are
 * malloc'ed.
 */
char **spec_kubeconfig_contexts(const struct spec_kubeconfig *k);

/*
 * Make the connection of a pod of the cluster (service account): HOST and PORT are from its
 * environment, NAMESPACE is from its file, or "". Return 0 or -EINVAL.
 */
int spec_kubeconfig_in_cluster(const char *host, const char *port, const char *namespace,
			       struct spec_connection *ret);

/*
 * Return the value of KUBERNETES_EXEC_INFO for the plugin of C; CA_PEM is the contents of
 * c->ca_file, or NULL. malloc'ed.
 */
char *spec_exec_info(const struct spec_connection *c, const char *ca_pem);

struct spec_credential {
	char *token;		  /* or "" */
	char *cert_pem, *key_pem; /* both or neither */
	int64_t expires;	  /* ns since 1970; 0 if it does not expire */
};

void spec_credential_clear(struct spec_credential *c);
/*
 * Parse a plugin's stdout. API_VERSION is the one in the kubeconfig. Return 0 or the errno of E.
 * Clear *RET in any case.
 */
int spec_exec_reply(const char *text, size_t len, const char *api_version,
		    struct spec_credential *ret, struct spec_errors *e);
