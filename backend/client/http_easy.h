/* SPDX-License-Identifier: MIT */
/*
 * One curl transfer of a call: its easy handle, the meanings of curl's error codes, and its row in
 * .kxfs/metrics. Private to backend/client/. I/O thread only.
 */
#pragma once

#include <curl/curl.h>
#include <stdatomic.h>

#include "backend/base/print.h"
#include "backend/client/http.h"
#include "backend/client/http_server.h"

#define HTTP_CONNECT_MS 10000

/* Don't move this struct while CURL is not NULL. */
struct http_easy {
	CURL *curl;
	struct curl_slist *headers, *connect_to;
	char words[CURL_ERROR_SIZE]; /* curl's error text, or "" */
};

struct http_easy_config {
	const struct http_call *call;
	const struct http_server *server;
	const struct credential_parts *parts;
	/* Number of open connections. These may outlive the transfer, but not this counter. */
	atomic_uint *n_connections;
	/* Callbacks of curl: before the request is sent, for each head line, for the body. */
	curl_prereq_callback before;
	curl_write_callback header, bytes;
	void *data;
};

/* Return 0, -EACCES (the credential can't be a header), -EINVAL (bad path) or -EIO (bad option). */
int http_easy_init(struct http_easy *e, const struct http_easy_config *config);
/* E must not be in a multi handle. Do nothing if E has no transfer. */
void http_easy_fini(struct http_easy *e);

int http_error_errno(CURLcode code);
/* True if a retry of the request may succeed. */
bool http_error_passes(CURLcode code);
/*
 * Return a text for people about a failure and its remedy, malloc'ed. WORDS is curl's text, or "".
 */
char *http_error_text(CURLcode code, const char *words, const struct http_server *s);

/*
 * Count a request in T by verb and resource as in RBAC rules ("get", "pods/log"), and by STATUS.
 * STATUS is 0 if there was no reply.
 */
void http_tally_add(struct tally *t, enum http_method method, const char *path, int status);
