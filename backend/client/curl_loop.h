/* SPDX-License-Identifier: MIT */
/*
 * A multi handle of curl on the loop: curl says which sockets to poll and when to call it again. It knows nothing
 * of requests. Private to backend/client/. I/O thread only; nothing here may be called from within a callback
 * that curl makes while it works on a transfer (for its bytes, its head), but for curl_loop_count_chunk.
 */
#pragma once

#include <curl/curl.h>

#include "backend/base/group.h"

struct curl_loop;

/* The transfer that was added with DATA has ended. Made when curl has returned, so it may do anything. */
typedef void (*curl_loop_fn)(void *data, CURLcode code);

/* At most MAX_CONNECTIONS at once. It is in GROUP from now on until its last handle has closed after _free. */
struct curl_loop *curl_loop_new(struct loop *loop, struct group *group, long max_connections,
				curl_loop_fn ended);
/* Close it and its connections; no transfer is in it any more. NULL is allowed. */
void curl_loop_free(struct curl_loop *l);

/* EASY stays the caller's, and its CURLOPT_PRIVATE is taken. */
void curl_loop_add(struct curl_loop *l, CURL *easy, void *data);
/* Whether it has ended or not; ENDED is not called for it any more. */
void curl_loop_remove(struct curl_loop *l, CURL *easy);
/* Bytes have come for a transfer: sockets that bring something are looked at again soon. */
void curl_loop_count_chunk(struct curl_loop *l);
