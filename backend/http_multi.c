/* SPDX-License-Identifier: MIT */
/*
 * Curl's multi handles on the loop: curl says which sockets to poll and when to call again; we call
 * curl_multi_socket_action. Curl's callbacks below only note; what they lead to is done when curl has
 * returned. A timeout of 0 goes through the timer too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <utlist.h>

#include "backend/diag.h"
#include "backend/http_impl.h"

#define IDLE_CONNECTIONS 8L /* that are kept for what comes next */
#define AGAIN_MS	 50

struct http_socket {
	uv_poll_t poll;
	curl_socket_t fd;
	bool again; /* to be looked at once more, */
	bool more;  /* and after that again */
	struct http_multi *m;
	struct http_socket *prev, *next;
};

/* --- after curl has worked --- */

/* Tell requests that have ended. Their owners may do anything meanwhile, also stop it all. */
static void multi_ended(struct http_multi *m)
{
	int left;

	for (;;) {
		CURLMsg *msg = m->http->stopping ? NULL : curl_multi_info_read(m->curl, &left);
		void *rq = NULL;

		if (!msg)
			return;
		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&rq);
		http_ended(rq, msg->data.result);
	}
}

static void multi_act(struct http_multi *m, curl_socket_t fd, int events)
{
	struct http *http = m->http;
	int running;

	http_enter(http);
	curl_multi_socket_action(m->curl, fd, events, &running);
	multi_ended(m);
	http_leave(http);
}

/* --- the timer --- */

static void multi_on_timer(uv_timer_t *timer)
{
	multi_act(container_of(timer, struct http_multi, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int multi_set_timer(CURLM *curl, long ms, void *data)
{
	struct http_multi *m = data;

	(void)curl;
	if (ms < 0)
		return uv_timer_stop(&m->timer);
	uv_update_time(m->timer.loop); /* a long callback must not make it shorter */
	return uv_timer_start(&m->timer, multi_on_timer, (uint64_t)ms, 0);
}

/* --- once more --- */

static void multi_on_again(uv_timer_t *timer);

/*
 * With HTTP/2, curl reads bytes of one request while it works for another one of the same connection, and may not come
 * back to the first before its socket has more, or a timer of its own fires (7.88: seen with 50 streams, about once in
 * six times, and for 10 s). So a socket that had something is looked at once more a moment later, as long as that
 * brings anything. A socket that has nothing costs nothing.
 */
static void multi_look_again(struct http_socket *s)
{
	struct http_multi *m = s->m;

	s->again = true;
	if (!uv_is_active((uv_handle_t *)&m->again))
		uv_timer_start(&m->again, multi_on_again, AGAIN_MS, 0);
}

static struct http_socket *multi_next_again(struct http_multi *m)
{
	struct http_socket *s;

	DL_FOREACH(m->sockets, s) {
		if (s->again)
			return s;
	}
	return NULL;
}

static void multi_on_again(uv_timer_t *timer)
{
	struct http_multi *m = container_of(timer, struct http_multi, again);
	struct http *http = m->http;
	struct http_socket *s;

	http_enter(http);
	while (!http->stopping && (s = multi_next_again(m))) {
		uint64_t before = m->n_bodies;

		s->again = false;
		multi_act(m, s->fd, CURL_CSELECT_IN);
		s->more = m->n_bodies != before; /* if it is closed by now, its memory goes later */
	}
	DL_FOREACH(m->sockets, s) {
		if (s->more && !http->stopping)
			multi_look_again(s);
		s->more = false;
	}
	http_leave(http);
}

/* --- sockets --- */

static void multi_on_poll(uv_poll_t *poll, int status, int events)
{
	struct http_socket *s = container_of(poll, struct http_socket, poll);
	int flags = status < 0 ? CURL_CSELECT_ERR : 0;

	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	if (events & UV_READABLE)
		multi_look_again(s);
	multi_act(s->m, s->fd, flags);
}

static void multi_socket_closed(uv_handle_t *handle)
{
	struct http_socket *s = container_of((uv_poll_t *)handle, struct http_socket, poll);
	struct http *http = s->m->http;

	free(s);
	http_handle_closed(http);
}

static void multi_socket_free(struct http_socket *s)
{
	uv_poll_stop(&s->poll); /* curl closes the descriptor next */
	DL_DELETE(s->m->sockets, s);
	uv_close((uv_handle_t *)&s->poll, multi_socket_closed);
}

static struct http_socket *multi_socket_new(struct http_multi *m, curl_socket_t fd)
{
	struct http_socket *s = calloc(1, sizeof(*s));
	int err = s ? uv_poll_init(m->timer.loop, &s->poll, fd) : UV_ENOMEM;

	if (err < 0) {
		/* Who waits for this socket would wait for ever; curl has no way back from here. */
		diag(DIAG_ERROR, "can't poll a socket: %s", uv_strerror(err));
		abort();
	}
	/* Sockets are made so; but the one by which curl's resolver tells of its end. */
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	s->fd = fd;
	s->m = m;
	m->http->handles++;
	DL_APPEND(m->sockets, s);
	curl_multi_assign(m->curl, fd, s);
	return s;
}

static int multi_set_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket)
{
	struct http_multi *m = data;
	struct http_socket *s = socket;
	int events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			multi_socket_free(s);
		return 0;
	}
	if (!s)
		s = multi_socket_new(m, fd);
	if (what & CURL_POLL_IN)
		events |= UV_READABLE;
	if (what & CURL_POLL_OUT)
		events |= UV_WRITABLE;
	return uv_poll_start(&s->poll, events, multi_on_poll);
}

/* --- life --- */

static void multi_timer_closed(uv_handle_t *handle)
{
	http_handle_closed(handle->data);
}

static void multi_timer_init(struct http *http, uv_timer_t *timer)
{
	uv_timer_init(loop_uv(http->loop), timer);
	timer->data = http;
	http->handles++;
}

/*
 * Curl's own pair of sockets, by which other threads could wake a multi handle, is not close-on-exec.
 * Of those that are not, only curl's do not block (another thread may be about to hand one to a child).
 */
static void multi_close_on_exec(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		int fd = atoi(e->d_name), domain = 0;
		socklen_t size = sizeof(domain);

		if (fd > STDERR_FILENO && fcntl(fd, F_GETFD) == 0 &&
		    (fcntl(fd, F_GETFL) & O_NONBLOCK) &&
		    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX)
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
	if (dir)
		closedir(dir);
}

int http_multi_init(struct http_multi *m, struct http *http, long max_connections)
{
	m->http = http;
	m->shares = http->server.tls;
	m->curl = curl_multi_init();
	if (!m->curl)
		return -ENOMEM;
	multi_close_on_exec();
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, multi_set_socket);
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, multi_set_timer);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(m->curl, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)HTTP_MAX_STREAMS);
	curl_multi_setopt(m->curl, CURLMOPT_MAX_TOTAL_CONNECTIONS, max_connections);
	curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS);
	multi_timer_init(http, &m->timer);
	multi_timer_init(http, &m->again);
	return 0;
}

void http_multi_fini(struct http_multi *m)
{
	/* What curl says while it closes its connections is not needed, and its descriptors go. */
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, NULL);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, NULL);
	while (m->sockets)
		multi_socket_free(m->sockets);
	curl_multi_cleanup(m->curl);
	m->curl = NULL;
	uv_close((uv_handle_t *)&m->timer, multi_timer_closed);
	uv_close((uv_handle_t *)&m->again, multi_timer_closed);
}

int http_multi_add(struct http_multi *m, CURL *easy)
{
	return curl_multi_add_handle(m->curl, easy) == CURLM_OK ? 0 : -ENOMEM;
}

void http_multi_remove(struct http_multi *m, CURL *easy)
{
	curl_multi_remove_handle(m->curl, easy);
}
