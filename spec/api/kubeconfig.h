/* SPDX-License-Identifier: MIT */
/*
 * Reads kubeconfig files as kubectl does, and implements the protocol of exec credential plugins.
 * The caller reads the files from disk (rule D1) and passes their texts in order. If several files
 * set the same field, the first file's value is used. The result is a spec_connection: the address
 * of a server, and the credentials for it. No error contains a token, a password or a key.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/base/mem.h"

struct spec_kubeconfig;

/* An exec credential plugin. COMMAND is NULL if the user has no plugin. */
struct spec_exec {
	char *command; /* an absolute path, or a name without "/" that is searched in PATH */
	char **args;   /* N_ARGS arguments */
	size_t n_args;
	struct spec_pair *env;
	size_t n_env;
	char *api_version; /* client.authentication.k8s.io/v1 or v1beta1 */
	char *install_hint;
	bool provide_cluster_info;
	char *cluster_config; /* JSON of the cluster's configuration for plugins, or "" */
};

/*
 * The address of a server, and the credentials for it. Only exec.command may be NULL. Any other
 * string is "" if it is not set. Paths are absolute. A text that becomes part of an HTTP header has
 * no control characters. SERVER is a URL with a known scheme, and so is PROXY_URL if it is set.
 */
struct spec_connection {
	char *context;
	char *namespace; /* "default" if the context sets none */
	char *server;	 /* https://host:port/prefix (or http), without a trailing slash */
	char *tls_server_name;
	char *proxy_url;
	bool insecure;
	char *ca_file;
	char *ca_pem; /* decoded; takes precedence over CA_FILE */
	char *token;
	char *token_file;      /* if set, TOKEN is used only while this file can't be read */
	char *user, *password; /* never set together with a token */
	char *cert_file, *key_file;
	/*
	 * The decoded certificate and its decoded key. They take precedence over CERT_FILE and
	 * KEY_FILE. Either both are set, or neither.
	 */
	char *cert_pem, *key_pem;
	char *as, *as_uid;
	char **as_groups;
	size_t n_as_groups;
	struct spec_pair *as_extra; /* pairs of a key and a value; a key may occur several times */
	size_t n_as_extra;
	struct spec_exec exec;
};

void spec_connection_clear(struct spec_connection *c);

/* Create an empty kubeconfig. */
struct spec_kubeconfig *spec_kubeconfig_new(void);
void spec_kubeconfig_free(struct spec_kubeconfig *k);
define_cleanup(spec_kubeconfig_freep, struct spec_kubeconfig *, spec_kubeconfig_free)

/*
 * Parse TEXT, the contents of FILE, and add it to K. The files that K already has take precedence
 * over FILE. FILE is an absolute path. A relative path in TEXT is relative to FILE's directory.
 * Unknown fields are ignored, as in kubectl. An empty file is valid and adds nothing. Return 0 or
 * the errno of E. The positions in E refer to TEXT.
 */
int spec_kubeconfig_merge(struct spec_kubeconfig *k, const char *file, const char *text, size_t len,
			  struct spec_errors *e);

/*
 * Set *RET to the connection that the context called CONTEXT describes; "" means the current
 * context. Return 0 or the errno of E. E must be empty. Only the first error is added to E. The
 * text of the error contains the remedy, and the error's path names the file and the line. The
 * caller must clear *RET even after an error.
 *
 * These are errors: an unknown context (the text suggests a similar name), cluster or user; a
 * server that is not a URL; data that is not base64; an auth-provider, which Kubernetes no longer
 * supports; and a plugin that needs a terminal.
 */
int spec_kubeconfig_connect(const struct spec_kubeconfig *k, const char *context,
			    struct spec_connection *ret, struct spec_errors *e);

/*
 * Return the namespaces that can be mounted, written as on the command line: "CONTEXT/NAMESPACE".
 * The array has one text for each context, with the namespace that the context sets, in the order
 * of the files. It ends with NULL. The caller frees the array and its texts.
 */
char **spec_kubeconfig_contexts(const struct spec_kubeconfig *k);

/*
 * Set *RET to the connection of a program that runs in a pod and uses the pod's service account.
 * HOST and PORT are the values of the variables KUBERNETES_SERVICE_HOST and
 * KUBERNETES_SERVICE_PORT. NAMESPACE is the namespace in the service account's files, or "". Return
 * 0, or -EINVAL if HOST or PORT is invalid.
 */
int spec_kubeconfig_in_cluster(const char *host, const char *port, const char *namespace,
			       struct spec_connection *ret);

/*
 * Return the value of the variable KUBERNETES_EXEC_INFO for C's plugin, malloc'ed. CA_PEM is the
 * contents of c->ca_file, or NULL.
 */
char *spec_exec_info(const struct spec_connection *c, const char *ca_pem);

struct spec_credential {
	char *token;		  /* or "" */
	char *cert_pem, *key_pem; /* either both are set, or neither */
	int64_t expires;	  /* ns since 1970; 0 if the credential does not expire */
};

void spec_credential_clear(struct spec_credential *c);
/*
 * Parse the output of a plugin. API_VERSION is the version in the kubeconfig; the output must have
 * the same version. Return 0 or the errno of E. The caller must clear *RET even after an error.
 */
int spec_exec_reply(const char *text, size_t len, const char *api_version,
		    struct spec_credential *ret, struct spec_errors *e);
