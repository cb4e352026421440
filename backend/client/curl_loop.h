/* SPDX-License-Identifier: MIT */
/*
 * Runs a multi handle of curl on the loop. Private to backend/client/. I/O thread only. Within a
 * callback of a transfer, only curl_loop_count_chunk may be called, because curl is running.
 */
#pragma once

#include <curl/curl.h>

#include "backend/base/work.h"

struct curl_loop;

/* Called when a transfer has ended. DATA is from curl_loop_add. The callee may call curl. */
typedef void (*curl_loop_fn)(void *data, CURLcode code);

/* The multi handle is in GROUP until it has been freed and its last libuv handle has closed. */
struct curl_loop *curl_loop_new(struct loop *loop, struct group *group, long max_connections,
				curl_loop_fn ended);
/* Close L and its connections. L must have no transfers. NULL is allowed. */
void curl_loop_free(struct curl_loop *l);

/* Start the transfer EASY, which the caller still owns. Only curl_loop uses its CURLOPT_PRIVATE. */
void curl_loop_add(struct curl_loop *l, CURL *easy, void *data);
/* Remove EASY, whether it has ended or not. ENDED is not called for EASY afterwards. */
void curl_loop_remove(struct curl_loop *l, CURL *easy);
/*
 * Call this for each chunk that curl delivers. curl_loop reads from a socket again until two reads
 * in a row deliver no chunk.
 */
void curl_loop_count_chunk(struct curl_loop *l);
/* Read again from all sockets. Call this when a paused transfer has continued. */
void curl_loop_read_again(struct curl_loop *l);
