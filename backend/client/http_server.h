/* SPDX-License-Identifier: MIT */
/*
 * The address of the server and the identity of the user: the connection of the kubeconfig, checked and prepared
 * once for all requests. Private to backend/client/.
 */
#pragma once

#include "spec/api/kubeconfig.h"

struct curl_slist;

/* Any thread may read it; only http_server.c writes it. */
struct http_server {
	char *url;	  /* without a trailing slash; TLS verifies the host in it */
	char *connect_to; /* with tls-server-name: the real address, in curl's format; or NULL */
	char *host;	  /* with CONNECT_TO: the Host header line; or NULL */
	char *name;	  /* for messages: HOST:PORT */
	char *proxy;	  /* "" if there is none */
	char *ca_pem;	  /* NULL: use the certificate authorities of the system */
	bool tls, insecure;
	struct curl_slist *impersonate; /* header lines */
};

/*
 * Prepare S for the connection C. Waits for the disk. Return 0, or -EINVAL, -EFBIG, or the errno of reading the CA
 * file, with *RET_TEXT, malloc'ed.
 */
int http_server_init(struct http_server *s, const struct spec_connection *c, char **ret_text);
void http_server_fini(struct http_server *s);
/*
 * Return the proxy for HOST (without brackets), as kubectl chooses it: HTTPS_PROXY (with http: HTTP_PROXY), or ""
 * if NO_PROXY excludes HOST, HOST is this machine, or no proxy is set. GET has the effect of getenv. The result is
 * valid as long as the result of GET.
 */
const char *http_proxy_choose(bool tls, const char *host, unsigned port,
			      char *(*get)(const char *name));
/* True if TEXT may be a header's value. A line end in it would start a separate header. */
bool http_header_ok(const char *text);
