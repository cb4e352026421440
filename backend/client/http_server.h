/* SPDX-License-Identifier: MIT */
/* Where requests go: the connection of the kubeconfig, checked and prepared once. Private to backend/client/. */
#pragma once

#include "spec/api/kubeconfig.h"

struct curl_slist;

/* Any thread may read it; only http_server.c writes it. */
struct http_server {
	char *url;	  /* without a slash at its end; its host is the one that TLS verifies */
	char *connect_to; /* with tls-server-name: where to connect to instead, as curl has it; or NULL */
	char *host;	  /* with CONNECT_TO: the line of the Host header; or NULL */
	char *name;	  /* for messages: HOST:PORT */
	char *proxy;  /* "" none */
	char *ca_pem; /* NULL: the system's */
	bool tls, insecure;
	struct curl_slist *impersonate; /* header lines */
};

/* 0, or -EINVAL, -EFBIG, or the errno of reading the CA file, with *RET_TEXT. Waits for the disk. */
int http_server_init(struct http_server *s, const struct spec_connection *c, char **ret_text);
void http_server_fini(struct http_server *s);
/* May TEXT be a header's value? Line ends in it would make headers of their own. */
bool http_header_ok(const char *text);
