/* SPDX-License-Identifier: MIT */
/*
 * Runs a multi handle of curl on the loop: polls the sockets that curl names, and calls curl when a socket is ready
 * or curl's timer expires. Private to backend/client/. I/O thread only. Of these functions, only
 * curl_loop_count_chunk may be called from within a transfer's curl callbacks (for its head or its bytes).
 */
#pragma once

#include <curl/curl.h>

#include "backend/base/work.h"

struct curl_loop;

/* The transfer added with DATA has ended. Called outside of curl, so it may call any function. */
typedef void (*curl_loop_fn)(void *data, CURLcode code);

/*
 * Create a multi handle with at most MAX_CONNECTIONS open connections. It enters GROUP, and leaves it when, after
 * curl_loop_free, its last libuv handle has closed. ENDED is called for each transfer that ends.
 */
struct curl_loop *curl_loop_new(struct loop *loop, struct group *group, long max_connections,
				curl_loop_fn ended);
/* Close L and its connections. It must have no transfers. NULL is allowed. */
void curl_loop_free(struct curl_loop *l);

/* Start the transfer EASY, which the caller owns; its CURLOPT_PRIVATE is used. */
void curl_loop_add(struct curl_loop *l, CURL *easy, void *data);
/* Remove EASY, whether it has ended or not. ENDED is not called for it afterwards. */
void curl_loop_remove(struct curl_loop *l, CURL *easy);
/* Note that bytes have arrived for a transfer: soon curl reads again from the sockets that had bytes. */
void curl_loop_count_chunk(struct curl_loop *l);
