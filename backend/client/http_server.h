/* SPDX-License-Identifier: MIT */
/*
 * The address and identity for requests: the connection of the kubeconfig, checked and prepared
 * once. Private to backend/client/.
 */
#pragma once

#include "spec/api/kubeconfig.h"

struct curl_slist;

/* Any thread may read it; only http_server.c writes it. */
struct http_server {
	char *url;	  /* without a trailing slash; TLS verifies its host */
	char *connect_to; /* with tls-server-name: the real address, in curl's format; or NULL */
	char *host;	  /* with CONNECT_TO: the Host header line; or NULL */
	char *name;	  /* for messages: HOST:PORT */
	char *proxy;	  /* "" if there is none */
	char *ca_pem;	  /* NULL: the system's */
	bool tls, insecure;
	struct curl_slist *impersonate; /* header lines */
};

/*
 * Return 0, or -EINVAL, -EFBIG, or the errno of reading the CA file, with *RET_TEXT. Waits for the
 * disk.
 */
int http_server_init(struct http_server *s, const struct spec_connection *c, char **ret_text);
void http_server_fini(struct http_server *s);
/*
 * Return the proxy for HOST (without brackets), as kubectl chooses it: HTTPS_PROXY (for http:,
 * HTTP_PROXY) unless NO_PROXY excludes HOST or HOST is this machine. "" if there is none. GET is
 * getenv. Valid as long as getenv's result.
 */
const char *http_proxy_choose(bool tls, const char *host, unsigned port,
			      char *(*get)(const char *name));
/* True if TEXT may be a header's value. Line ends in it would make separate headers. */
bool http_header_ok(const char *text);
