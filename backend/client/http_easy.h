/* SPDX-License-Identifier: MIT */
/*
 * One curl transfer of a call: its easy handle with all options, the meaning of curl's error codes,
 * and its row in .kxfs/metrics. Private to backend/client/. I/O thread only.
 */
#pragma once

#include <curl/curl.h>
#include <stdatomic.h>

#include "backend/base/print.h"
#include "backend/client/http.h"
#include "backend/client/http_server.h"

#define HTTP_CONNECT_MS 10000

/* One curl transfer. It may not be moved while CURL is not NULL. */
struct http_easy {
	CURL *curl;
	struct curl_slist *headers, *connect_to;
	char words[CURL_ERROR_SIZE]; /* curl's error text if it has failed; else "" */
};

struct http_easy_config {
	const struct http_call *call;
	const struct http_server *server;
	const struct credential_parts *parts;
	atomic_uint *n_connections; /* counts the open ones, also after this transfer */
	/* Curl calls these with DATA: before it sends; for a line of the head; for bytes. */
	curl_prereq_callback before;
	curl_write_callback header, bytes;
	void *data;
};

/*
 * Return 0, -EACCES (the credential can't be a header), -EINVAL (the path is not valid), -EIO (curl
 * refuses an option).
 */
int http_easy_init(struct http_easy *e, const struct http_easy_config *config);
/* End the transfer, which is no longer in a multi handle. Do nothing if there is none. */
void http_easy_fini(struct http_easy *e);

int http_error_errno(CURLcode code);
/* True if the same request may succeed when it is retried. */
bool http_error_passes(CURLcode code);
/*
 * Return curl's WORDS, or the meaning of CODE, and what to do about it, as text for people.
 * malloc'ed.
 */
char *http_error_text(CURLcode code, const char *words, const struct http_server *s);

/*
 * Count in T a request answered with STATUS (0: no reply), by verb and resource as in RBAC rules
 * ("get", "pods/log"), which are read from METHOD and PATH.
 */
void http_tally_add(struct tally *t, enum http_method method, const char *path, int status);
