/* SPDX-License-Identifier: MIT */
/*
 * The connection of the kubeconfig, checked and prepared once for all requests. Private to
 * backend/client/.
 */
#pragma once

#include "spec/api/kubeconfig.h"

struct curl_slist;

/* Only http_server.c writes this struct. Any thread may read it. */
struct http_server {
	char *url; /* without a trailing slash; TLS verifies this host */
	/* the real address for curl, if there is a tls-server-name; else NULL */
	char *connect_to;
	char *host;   /* the Host header line if CONNECT_TO is set; else NULL */
	char *name;   /* for messages: HOST:PORT */
	char *proxy;  /* "" if none */
	char *ca_pem; /* NULL: the system's certificate authorities */
	bool tls, insecure;
	struct curl_slist *impersonate; /* header lines */
};

/* This waits for the disk. Return 0 or a negative errno with *RET_TEXT, malloc'ed. */
int http_server_init(struct http_server *s, const struct spec_connection *c, char **ret_text);
void http_server_fini(struct http_server *s);
/*
 * Return the proxy that kubectl uses for HOST (without brackets) and PORT, or "". GET works like
 * getenv. The result is valid as long as the results of GET are.
 */
const char *http_proxy_choose(bool tls, const char *host, unsigned port,
			      char *(*get)(const char *name));
/* True if TEXT may be the value of a header. A line end would begin another header. */
bool http_header_ok(const char *text);
