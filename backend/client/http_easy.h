/* SPDX-License-Identifier: MIT */
/*
 * One try at a call as curl sees it: its easy handle with all options, and what curl's error codes mean for
 * us. Private to backend/client/. I/O thread only.
 */
#pragma once

#include <curl/curl.h>
#include <stdatomic.h>

#include "backend/client/http.h"
#include "backend/client/http_server.h"

#define HTTP_CONNECT_MS 10000

/* One try as curl has it. It may not be moved while CURL is not NULL. */
struct http_easy {
	CURL *curl;
	struct curl_slist *headers, *connect_to;
	char words[CURL_ERROR_SIZE]; /* curl's own words when it has failed; else "" */
};

struct http_easy_config {
	const struct http_call *call;
	const struct http_server *server;
	const struct credential_parts *parts;
	atomic_uint *n_connections; /* counts the open ones, also after this try */
	/* Curl calls these with DATA: it is about to send; a line of the head has come; bytes have come. */
	curl_prereq_callback before;
	curl_write_callback header, bytes;
	void *data;
};

/* 0, -EACCES (the credential can't be a header), -EINVAL (the path is not valid), -EIO (curl refuses an option). */
int http_easy_init(struct http_easy *e, const struct http_easy_config *config);
/* End the try, which is in no multi handle any more. Does nothing where there is none. */
void http_easy_fini(struct http_easy *e);

int http_error_errno(CURLcode code);
/* May the same request end otherwise when it is sent again? */
bool http_error_passes(CURLcode code);
/* Curl's WORDS, or what CODE means, with what to do about it, as text for people. malloc'ed. */
char *http_error_text(CURLcode code, const char *words, const struct http_server *s);
