/* SPDX-License-Identifier: MIT */
/*
 * One curl transfer of a call: an easy handle with all options, the meanings of curl's error codes, and the
 * transfer's row in .kxfs/metrics. Private to backend/client/. I/O thread only.
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
	/* counts open connections, also after this transfer has ended */
	atomic_uint *n_connections;
	/*
	 * Curl calls these with DATA: BEFORE before it sends the request, HEADER for each line of the head, BYTES
	 * for bytes of the body.
	 */
	curl_prereq_callback before;
	curl_write_callback header, bytes;
	void *data;
};

/*
 * Prepare the transfer. Return 0, -EACCES (the credential can't be a header), -EINVAL (the path is not valid) or
 * -EIO (curl refuses an option).
 */
int http_easy_init(struct http_easy *e, const struct http_easy_config *config);
/* Free the transfer, which must not be in a multi handle. Do nothing if E has no transfer. */
void http_easy_fini(struct http_easy *e);

int http_error_errno(CURLcode code);
/* True if the same request may succeed when it is retried. */
bool http_error_passes(CURLcode code);
/*
 * Return a text for people, malloc'ed: curl's WORDS or, if that is empty, the meaning of CODE; and what to do about
 * the error.
 */
char *http_error_text(CURLcode code, const char *words, const struct http_server *s);

/*
 * Add to T a request whose reply had STATUS (0: no reply). The row has the verb and the resource as in RBAC rules
 * ("get", "pods/log"), which are derived from METHOD and PATH.
 */
void http_tally_add(struct tally *t, enum http_method method, const char *path, int status);
