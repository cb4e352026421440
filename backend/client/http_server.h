/* SPDX-License-Identifier: MIT */
/*
 * The address of the server and the identity of the user: the connection of the kubeconfig, checked
 * and prepared once for all requests. Private to backend/client/.
 */
#pragma once

#include "spec/api/kubeconfig.h"

struct curl_slist;

/* Any thread may read this struct, but only http_server.c writes it. */
struct http_server {
	char *url; /* without a trailing slash; TLS verifies the host in it */
	/* the real address, in curl's format, if there is a tls-server-name; else NULL */
	char *connect_to;
	char *host;   /* the Host header line if CONNECT_TO is set; else NULL */
	char *name;   /* for messages: HOST:PORT */
	char *proxy;  /* "" if there is none */
	char *ca_pem; /* NULL to use the certificate authorities of the system */
	bool tls, insecure;
	struct curl_slist *impersonate; /* header lines */
};

/*
 * Prepare S for the connection C. This waits for the disk. Return 0. On failure, return -EINVAL,
 * -EFBIG, or the errno of reading the CA file, and set *RET_TEXT, malloc'ed.
 */
int http_server_init(struct http_server *s, const struct spec_connection *c, char **ret_text);
void http_server_fini(struct http_server *s);
/*
 * Return the proxy for HOST (without brackets) and PORT, as kubectl chooses it: the value of
 * HTTPS_PROXY if TLS, else of HTTP_PROXY. Return "" if this variable is not set, if NO_PROXY
 * excludes HOST, or if HOST is this machine. GET works like getenv. The result is valid as long as
 * the results of GET are.
 */
const char *http_proxy_choose(bool tls, const char *host, unsigned port,
			      char *(*get)(const char *name));
/*
 * True if TEXT may be the value of a header. For example, TEXT must not contain a line end, because
 * that would begin another header.
 */
bool http_header_ok(const char *text);
