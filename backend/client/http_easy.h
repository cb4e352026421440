/* SPDX-License-Identifier: MIT */
/*
 * One curl transfer of a call: an easy handle with all options, the meanings of curl's error codes,
 * and the transfer's row in .kxfs/metrics. Private to backend/client/. I/O thread only.
 */
#pragma once

#include <curl/curl.h>
#include <stdatomic.h>

#include "backend/base/print.h"
#include "backend/client/http.h"
#include "backend/client/http_server.h"

#define HTTP_CONNECT_MS 10000

/* One curl transfer. Do not move this struct while CURL is not NULL. */
struct http_easy {
	CURL *curl;
	struct curl_slist *headers, *connect_to;
	char words[CURL_ERROR_SIZE]; /* curl's error text if the transfer has failed; else "" */
};

struct http_easy_config {
	const struct http_call *call;
	const struct http_server *server;
	const struct credential_parts *parts;
	/*
	 * The counter of open connections. It must outlive the transfer's connection, which may
	 * outlive the transfer.
	 */
	atomic_uint *n_connections;
	/*
	 * Callbacks of curl, which get DATA. Curl calls BEFORE before it sends the request, HEADER
	 * for each line of the head, and BYTES for bytes of the body.
	 */
	curl_prereq_callback before;
	curl_write_callback header, bytes;
	void *data;
};

/*
 * Prepare the transfer. Return 0, -EACCES (the credential can't be a header), -EINVAL (the path is
 * not valid) or -EIO (curl refuses an option).
 */
int http_easy_init(struct http_easy *e, const struct http_easy_config *config);
/* Free the transfer, which must not be in a multi handle. Do nothing if E has no transfer. */
void http_easy_fini(struct http_easy *e);

int http_error_errno(CURLcode code);
/* True if CODE is a temporary error, so that a retry of the request may succeed. */
bool http_error_passes(CURLcode code);
/*
 * Return a text for people, malloc'ed, that describes why a transfer failed and what to do about
 * it. WORDS is curl's own error text. If WORDS is "", the text describes CODE instead.
 */
char *http_error_text(CURLcode code, const char *words, const struct http_server *s);

/*
 * Count in T a request whose reply had STATUS. STATUS is 0 if there was no reply. The row has three
 * labels: the verb, the resource and STATUS. The verb and the resource are those of RBAC rules
 * ("get", "pods/log"). They are derived from METHOD and PATH.
 */
void http_tally_add(struct tally *t, enum http_method method, const char *path, int status);
