/* SPDX-License-Identifier: MIT */
/*
 * Reads the texts of kubeconfig files as kubectl does, and implements the protocol of exec
 * credential plugins. If several files set the same field, the first file's value is used. No error
 * contains a token, a password or a key.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/base/mem.h"

struct spec_kubeconfig;

/* How to run the user's exec credential plugin. COMMAND is NULL if the user has no plugin. */
struct spec_exec {
	char *command; /* an absolute path, or a name to be searched in PATH */
	char **args;
	size_t n_args;
	struct spec_pair *env;
	size_t n_env;
	char *api_version; /* client.authentication.k8s.io/v1 or v1beta1 */
	char *install_hint;
	bool provide_cluster_info;
	char *cluster_config; /* JSON of the cluster's configuration for plugins, or "" */
};

/*
 * A server and the credentials for it. Strings are "" if not set; only exec.command may be NULL.
 * Paths are absolute. Strings that kxfs sends in HTTP headers (TOKEN, AS, ...) have no control
 * characters. SERVER and PROXY_URL are URLs with a known scheme.
 */
struct spec_connection {
	char *context;
	char *namespace; /* "default" if the context sets none */
	char *server;	 /* without a trailing slash */
	char *tls_server_name;
	char *proxy_url;
	bool insecure;
	char *ca_file;
	char *ca_pem; /* decoded; takes precedence over CA_FILE */
	char *token;
	char *token_file;      /* if set, TOKEN is used only while this file can't be read */
	char *user, *password; /* never set together with a token */
	char *cert_file, *key_file;
	/* Decoded. They take precedence over CERT_FILE and KEY_FILE. */
	char *cert_pem, *key_pem;
	char *as, *as_uid;
	char **as_groups;
	size_t n_as_groups;
	struct spec_pair *as_extra; /* a key may occur several times */
	size_t n_as_extra;
	struct spec_exec exec;
};

void spec_connection_clear(struct spec_connection *c);

struct spec_kubeconfig *spec_kubeconfig_new(void);
void spec_kubeconfig_free(struct spec_kubeconfig *k);
define_cleanup(spec_kubeconfig_freep, struct spec_kubeconfig *, spec_kubeconfig_free)

/*
 * Parse TEXT, the contents of FILE (an absolute path), and add it to K. Files that K already has
 * take precedence. Relative paths in TEXT are relative to FILE's directory. Unknown fields are
 * ignored, as in kubectl. An empty file is valid. Return 0 or the errno of E. Positions in E refer
 * to TEXT.
 */
int spec_kubeconfig_merge(struct spec_kubeconfig *k, const char *file, const char *text, size_t len,
			  struct spec_errors *e);

/*
 * Set *RET to the connection of CONTEXT ("": the current context). Return 0 or the errno of E,
 * which must be empty. Only the first error is added to E. The error's text contains the remedy,
 * and its path names the file and the line. The caller must clear *RET even after an error.
 */
int spec_kubeconfig_connect(const struct spec_kubeconfig *k, const char *context,
			    struct spec_connection *ret, struct spec_errors *e);

/*
 * Return an array of "CONTEXT/NAMESPACE", one text for each context, ending with NULL. The caller
 * frees the array and the texts.
 */
char **spec_kubeconfig_contexts(const struct spec_kubeconfig *k);

/*
 * Set *RET to the connection of a pod's service account. HOST and PORT are the values of
 * KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT. Return 0, or -EINVAL if they are invalid.
 */
int spec_kubeconfig_in_cluster(const char *host, const char *port, const char *namespace,
			       struct spec_connection *ret);

/*
 * Return the value of KUBERNETES_EXEC_INFO for C's plugin, malloc'ed. CA_PEM has the contents of
 * C's CA_FILE, or is NULL.
 */
char *spec_exec_info(const struct spec_connection *c, const char *ca_pem);

/* The credential that a plugin has returned. */
struct spec_credential {
	char *token;		  /* "" if not set */
	char *cert_pem, *key_pem; /* both or neither are set */
	int64_t expires;	  /* ns since 1970; 0 if the credential does not expire */
};

void spec_credential_clear(struct spec_credential *c);
/*
 * Parse the output of a plugin. Its apiVersion must be API_VERSION. Return 0 or the errno of E. The
 * caller must clear *RET even after an error.
 */
int spec_exec_reply(const char *text, size_t len, const char *api_version,
		    struct spec_credential *ret, struct spec_errors *e);
