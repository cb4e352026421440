/* SPDX-License-Identifier: MIT */
/*
 * The whole of a server's requests: its beginning and its end, and what is done when nothing of it runs inside
 * curl. One request: http_request.c.
 */
#include <errno.h>
#include <sys/resource.h>
#include <utlist.h>

#include "backend/http_impl.h"

/* --- what runs inside curl, and after it --- */

static void http_close(struct http *http)
{
	http->closed = true;
	if (http->begun) {
		http_multi_fini(&http->calls);
		http_multi_fini(&http->streams);
	}
	if (http->handles == 0) /* else when the last has closed */
		loop_post(http->loop, http->stop_fn, http->stop_data);
}

bool http_may_start(const struct http_multi *m)
{
	return !m->shares || m->starting == 0;
}

static void http_start_queued(struct http_multi *m)
{
	while (m->queue && http_may_start(m)) {
		struct http_request *rq = m->queue;

		DL_DELETE2(m->queue, rq, queue_prev, queue_next);
		http_request_try(rq);
	}
}

void http_enter(struct http *http)
{
	http->depth++;
}

void http_leave(struct http *http)
{
	if (http->depth == 1) {
		http_start_queued(&http->calls);
		http_start_queued(&http->streams);
		while (http->dead)
			http_request_release(http->dead);
		if (http->stopping && !http->closed)
			http_close(http);
	}
	http->depth--;
}

void http_handle_closed(struct http *http)
{
	http->handles--;
	if (http->closed && http->handles == 0)
		http->stop_fn(http->stop_data);
}

/* --- what requests need --- */

/* Connections for streams may take half of the descriptors that we may have. */
static long http_max_streams(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return 1024;
	return (long)max_of(limit.rlim_cur / 2, (rlim_t)HTTP_CALL_SOCKETS);
}

int http_begin(struct http *http)
{
	int err;

	if (http->begun)
		return 0;
	err = http_multi_init(&http->calls, http, HTTP_CALL_SOCKETS);
	if (err)
		return err;
	err = http_multi_init(&http->streams, http, http_max_streams());
	if (err) {
		http_multi_fini(&http->calls);
		return err;
	}
	http->begun = true;
	return 0;
}

void http_count(struct http *http, struct http_counts *ret)
{
	*ret = (struct http_counts){
		.answers = &http->answers,
		.failed = atomic_load(&http->n_failed),
		.retried = atomic_load(&http->n_retried),
		.connections = atomic_load(&http->n_connections),
		.streams = atomic_load(&http->n_streams),
	};
}

/* --- life --- */

int http_new(struct loop *loop, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text)
{
	cleanup_free struct http *http = calloc(1, sizeof(*http));
	int err;

	*ret_text = NULL;
	if (!http || curl_global_init(CURL_GLOBAL_DEFAULT))
		return -ENOMEM;
	err = http_server_init(&http->server, c, ret_text);
	if (err) {
		curl_global_cleanup();
		return err;
	}
	http->loop = loop;
	http->credential = cr;
	http_budget_init(&http->budget, loop_now_ms());
	*ret = take_ptr(http);
	return 0;
}

void http_stop(struct http *http, loop_fn fn, void *data)
{
	assert(loop_is_here(http->loop) && !http->stopping);
	http->stopping = true;
	http->stop_fn = fn;
	http->stop_data = data;
	http_enter(http);
	while (http->requests)
		http_request_over(http->requests);
	http_leave(http);
}

void http_free(struct http *http)
{
	if (!http)
		return;
	assert(!http->requests && !http->handles);
	http_server_fini(&http->server);
	curl_global_cleanup();
	free(http);
}
