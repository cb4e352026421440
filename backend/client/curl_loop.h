/* SPDX-License-Identifier: MIT */
/*
 * Runs a multi handle of curl on the loop: polls the sockets that curl names, and calls curl when a
 * socket is ready or curl's timer expires. Private to backend/client/. I/O thread only. A callback
 * of a transfer may call only curl_loop_count_chunk, because curl is running at that time.
 */
#pragma once

#include <curl/curl.h>

#include "backend/base/work.h"

struct curl_loop;

/*
 * Called when a transfer has ended. DATA is the DATA that was passed to curl_loop_add. Curl is not
 * running at this time, so this callback may call any function.
 */
typedef void (*curl_loop_fn)(void *data, CURLcode code);

/*
 * Create a multi handle with at most MAX_CONNECTIONS open connections. ENDED is called for each
 * transfer that ends. The new curl_loop enters GROUP. It leaves GROUP after curl_loop_free, when
 * the libuv handle of its last socket has closed.
 */
struct curl_loop *curl_loop_new(struct loop *loop, struct group *group, long max_connections,
				curl_loop_fn ended);
/* Close L and its connections. L must have no transfers. NULL is allowed. */
void curl_loop_free(struct curl_loop *l);

/* Start the transfer EASY. The caller still owns EASY, but must not use its CURLOPT_PRIVATE. */
void curl_loop_add(struct curl_loop *l, CURL *easy, void *data);
/* Remove EASY, whether the transfer has ended or not. ENDED is not called for EASY afterwards. */
void curl_loop_remove(struct curl_loop *l, CURL *easy);
/*
 * Call this when curl has delivered a chunk of bytes. After a socket has had bytes, curl_loop reads
 * from it again, until several such reads deliver no chunk.
 */
void curl_loop_count_chunk(struct curl_loop *l);
/* Make curl read again from all sockets. Call this when a paused transfer has continued. */
void curl_loop_read_again(struct curl_loop *l);
