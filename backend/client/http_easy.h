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

/* What curl has of a try. It stays where it is as long as CURL is not NULL. */
struct http_easy {
	CURL *curl;
	struct curl_slist *headers, *connect_to;
	char words[CURL_ERROR_SIZE]; /* of curl, when it has failed; else "" */
};

struct http_easy_config {
	const struct http_call *call;
	const struct http_server *server;
	const struct credential_view *view;
	atomic_uint *n_connections; /* counts the open ones, also after this try */
	/* Called from within curl with DATA: it is about to send; a line of the head, and bytes, have come. */
	curl_prereq_callback before;
	curl_write_callback header, bytes;
	void *data;
};

/* 0, -EACCES (the credential is no header), -EINVAL (the path is none), -EIO (curl refuses an option). */
int http_easy_init(struct http_easy *e, const struct http_easy_config *config);
/* It is in no multi handle any more. Does nothing when there is none. */
void http_easy_fini(struct http_easy *e);

int http_error_errno(CURLcode code);
/* May the same request, sent again, end otherwise? */
bool http_error_passes(CURLcode code);
/* For people: curl's WORDS with what to do about it. malloc'ed. */
char *http_error_text(CURLcode code, const char *words, const struct http_server *s);
