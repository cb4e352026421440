/* SPDX-License-Identifier: MIT */
/*
 * A multi handle of curl on the loop: curl requests which sockets to poll and when to call it
 * again. This file knows nothing of requests. Private to backend/client/. I/O thread only. Only
 * curl_loop_count_chunk may be called from within a curl callback for a transfer (for its bytes,
 * its head).
 */
#pragma once

#include <curl/curl.h>

#include "backend/base/work.h"

struct curl_loop;

/* The transfer added with DATA has ended. Called outside of curl, so it may call any function. */
typedef void (*curl_loop_fn)(void *data, CURLcode code);

/*
 * Create a multi handle with at most MAX_CONNECTIONS open connections. It is in GROUP until, after
 * curl_loop_free, its last handle has closed.
 */
struct curl_loop *curl_loop_new(struct loop *loop, struct group *group, long max_connections,
				curl_loop_fn ended);
/* Close L and its connections. It must have no transfers. NULL is allowed. */
void curl_loop_free(struct curl_loop *l);

/* Start the transfer EASY, which the caller owns; its CURLOPT_PRIVATE is used. */
void curl_loop_add(struct curl_loop *l, CURL *easy, void *data);
/* Remove EASY, whether it has ended or not; curl_loop_fn is not called for it any more. */
void curl_loop_remove(struct curl_loop *l, CURL *easy);
/* Note that bytes arrived for a transfer: curl soon checks again the sockets that brought some. */
void curl_loop_count_chunk(struct curl_loop *l);
