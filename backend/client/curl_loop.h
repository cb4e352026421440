/* SPDX-License-Identifier: MIT */
/*
 * A multi handle of curl on the loop: curl says which sockets to poll and when to call it again. This file knows
 * nothing of requests. Private to backend/client/. I/O thread only; none of these functions but curl_loop_count_chunk
 * may be called from within a callback that curl makes while it works on a transfer (for its bytes, its head).
 */
#pragma once

#include <curl/curl.h>

#include "backend/base/group.h"

struct curl_loop;

/* The transfer that was added with DATA has ended. This is called when curl has returned, so it may do anything. */
typedef void (*curl_loop_fn)(void *data, CURLcode code);

/*
 * At most MAX_CONNECTIONS are open at once. The curl_loop is under way in GROUP until, after curl_loop_free, its last
 * handle has closed.
 */
struct curl_loop *curl_loop_new(struct loop *loop, struct group *group, long max_connections,
				curl_loop_fn ended);
/* Close L and its connections; no transfer may be in it any more. NULL is allowed. */
void curl_loop_free(struct curl_loop *l);

/* Begin the transfer EASY, which stays the caller's; its CURLOPT_PRIVATE is used. */
void curl_loop_add(struct curl_loop *l, CURL *easy, void *data);
/* Take out EASY, whether it has ended or not; curl_loop_fn is not called for it any more. */
void curl_loop_remove(struct curl_loop *l, CURL *easy);
/* Bytes have come for a transfer: curl soon looks again at the sockets that brought some. */
void curl_loop_count_chunk(struct curl_loop *l);
