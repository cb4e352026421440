/* SPDX-License-Identifier: MIT */
/*
 * Connects curl to libuv. Curl's callbacks only set libuv's handles. When a handle fires, act()
 * calls curl and collects the transfers that have ended.
 *
 * While bytes arrive without pause, curl asks to be called after 0 ms. A loop_timer expires at most
 * once in each round of the loop, so the rest of the loop continues meanwhile.
 */
#include "backend/client/curl_loop.h"

#include <assert.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/uv.h"
#include "spec/base/mem.h"

/* idle connections that are kept for later requests */
#define IDLE_CONNECTIONS 8L
/* HTTP/2 streams on one connection; servers allow at least 100 */
#define MAX_STREAMS 90
#define AGAIN_MS    50
/*
 * Stop reading from a socket after this many reads in a row that delivered no chunk. One such read
 * is not enough: curl may keep its bytes in memory, and deliver them only at the next read.
 */
#define AGAIN_READS 2

struct curl_socket {
	uv_poll_t poll;
	curl_socket_t fd;
	/* in AGAIN_LIST, so that curl will read from this socket again */
	bool again;
	uint64_t pass;	  /* the last pass of on_again that read from this socket */
	unsigned n_quiet; /* reads of on_again, in a row, that delivered no chunk */
	struct curl_loop *l;
	struct curl_socket *prev, *next;
	struct curl_socket *again_prev, *again_next;
};

struct curl_loop {
	struct loop *loop;
	struct group *group;
	curl_loop_fn ended;
	CURLM *curl;
	/* true while a function of curl runs, which may call this file's callbacks */
	bool inside;
	bool closed;
	unsigned n_open;	 /* sockets whose libuv handle is open or closing */
	struct loop_timer timer; /* expires when curl wants to be called */
	/* runs on_again */
	struct loop_timer again;
	uint64_t n_chunks; /* received chunks of replies */
	struct curl_socket *sockets;
	struct curl_socket *again_list;
	uint64_t pass; /* number of passes of on_again */
};

/* --- calling curl --- */

static void act(struct curl_loop *l, curl_socket_t fd, int events)
{
	int running;
	CURLMsg *msg;
	int left;

	l->inside = true;
	curl_multi_socket_action(l->curl, fd, events, &running);
	l->inside = false;
	while ((msg = curl_multi_info_read(l->curl, &left))) {
		CURLcode code = msg->data.result;
		void *data = NULL;

		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&data);
		l->ended(data, code);
	}
}

/* --- the timer --- */

static void on_timer(void *data)
{
	act(data, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *curl, long ms, void *data)
{
	struct curl_loop *l = data;

	if (ms < 0)
		loop_timer_stop(&l->timer);
	else
		loop_timer_set(&l->timer, (uint64_t)ms);
	return 0;
}

/* --- repeated reads --- */

static void read_no_more(struct curl_socket *s)
{
	if (s->again)
		DL_DELETE2(s->l->again_list, s, again_prev, again_next);
	s->again = false;
}

static void on_again(void *data)
{
	struct curl_loop *l = data;
	struct curl_socket *s;

	/*
	 * A read may close other sockets, so keep no pointer to the next socket. Instead, move each
	 * socket to the end of the list before reading from it.
	 */
	for (l->pass++; (s = l->again_list) && s->pass != l->pass;) {
		uint64_t before = l->n_chunks;

		DL_DELETE2(l->again_list, s, again_prev, again_next);
		DL_APPEND2(l->again_list, s, again_prev, again_next);
		s->pass = l->pass;
		act(l, s->fd, CURL_CSELECT_IN);
		/*
		 * S is still valid, even if the read has closed it: socket_closed frees it later.
		 */
		s->n_quiet = l->n_chunks == before ? s->n_quiet + 1 : 0;
		if (s->n_quiet == AGAIN_READS)
			read_no_more(s);
	}
	if (l->again_list)
		loop_timer_set(&l->again, AGAIN_MS);
}

static void read_again(struct curl_socket *s)
{
	if (!s->again)
		DL_APPEND2(s->l->again_list, s, again_prev, again_next);
	s->again = true;
	s->n_quiet = 0;
	if (!loop_timer_is_set(&s->l->again))
		loop_timer_set(&s->l->again, AGAIN_MS);
}

void curl_loop_read_again(struct curl_loop *l)
{
	struct curl_socket *s;

	DL_FOREACH(l->sockets, s)
		read_again(s);
}

void curl_loop_count_chunk(struct curl_loop *l)
{
	l->n_chunks++;
}

/* --- sockets --- */

/* Free L if it is closed and has no libuv handle any more. */
static void free_if_over(struct curl_loop *l)
{
	struct group *group = l->group;

	if (!l->closed || l->n_open > 0)
		return;
	free(l);
	group_leave(group);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct curl_socket *s = container_of(poll, struct curl_socket, poll);
	int flags = status < 0 ? CURL_CSELECT_ERR : 0;

	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	/*
	 * With HTTP/2, curl may read bytes of one request while it serves another request of the
	 * same connection. Curl may keep these bytes until the socket gets more bytes, or until a
	 * timer expires: with curl 7.88 and 50 streams, for 10 s in one of six runs. So read again
	 * after a moment, until reads deliver nothing. Idle sockets cost nothing.
	 */
	if (events & UV_READABLE)
		read_again(s);
	act(s->l, s->fd, flags);
}

static void socket_closed(uv_handle_t *handle)
{
	struct curl_socket *s = container_of((uv_poll_t *)handle, struct curl_socket, poll);
	struct curl_loop *l = s->l;

	free(s);
	l->n_open--;
	free_if_over(l);
}

static void socket_free(struct curl_socket *s)
{
	uv_poll_stop(&s->poll); /* before curl closes the descriptor */
	read_no_more(s);
	DL_DELETE(s->l->sockets, s);
	uv_close((uv_handle_t *)&s->poll, socket_closed);
}

static struct curl_socket *socket_new(struct curl_loop *l, curl_socket_t fd)
{
	struct curl_socket *s = new0(struct curl_socket);
	int err = uv_poll_init(loop_uv(l->loop), &s->poll, fd);

	if (err < 0) {
		/* The transfer would never end, and this callback can't report an error for it. */
		diag(DIAG_ERROR, "can't poll a socket: %s", uv_strerror(err));
		abort();
	}
	s->fd = fd;
	s->l = l;
	l->n_open++;
	DL_APPEND(l->sockets, s);
	curl_multi_assign(l->curl, fd, s);
	return s;
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket)
{
	struct curl_loop *l = data;
	struct curl_socket *s = socket;
	int events = 0;

	if (what == CURL_POLL_REMOVE) {
		if (s)
			socket_free(s);
		return 0;
	}
	if (!s)
		s = socket_new(l, fd);
	if (what & CURL_POLL_IN)
		events |= UV_READABLE;
	if (what & CURL_POLL_OUT)
		events |= UV_WRITABLE;
	return uv_poll_start(&s->poll, events, on_poll);
}

/* --- life cycle --- */

struct curl_loop *curl_loop_new(struct loop *loop, struct group *group, long max_connections,
				curl_loop_fn ended)
{
	struct curl_loop *l = new0(struct curl_loop);

	l->loop = loop;
	l->group = group;
	l->ended = ended;
	l->curl = curl_multi_init();
	if (!l->curl)
		mem_out();
	curl_multi_setopt(l->curl, CURLMOPT_SOCKETFUNCTION, set_socket);
	curl_multi_setopt(l->curl, CURLMOPT_SOCKETDATA, l);
	curl_multi_setopt(l->curl, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(l->curl, CURLMOPT_TIMERDATA, l);
	curl_multi_setopt(l->curl, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(l->curl, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)MAX_STREAMS);
	curl_multi_setopt(l->curl, CURLMOPT_MAX_TOTAL_CONNECTIONS, max_connections);
	curl_multi_setopt(l->curl, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS);
	group_enter(group);
	loop_timer_init(&l->timer, loop, on_timer, l);
	loop_timer_init(&l->again, loop, on_again, l);
	return l;
}

void curl_loop_free(struct curl_loop *l)
{
	if (!l)
		return;
	assert(!l->inside);
	/* Otherwise curl would call back while it closes its connections. */
	curl_multi_setopt(l->curl, CURLMOPT_SOCKETFUNCTION, NULL);
	curl_multi_setopt(l->curl, CURLMOPT_TIMERFUNCTION, NULL);
	while (l->sockets)
		socket_free(l->sockets);
	curl_multi_cleanup(l->curl);
	loop_timer_stop(&l->timer);
	loop_timer_stop(&l->again);
	l->closed = true;
	free_if_over(l);
}

void curl_loop_add(struct curl_loop *l, CURL *easy, void *data)
{
	assert(!l->inside);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, data);
	if (curl_multi_add_handle(l->curl, easy) != CURLM_OK)
		mem_out(); /* no other error can occur here */
}

static size_t take_none(char *bytes, size_t size, size_t n, void *data)
{
	return 0;
}

/*
 * Curl may keep bytes of a paused stream in memory. Curl 7.88 does not free these bytes when the
 * stream is removed while other streams use the connection. So let curl deliver the bytes to a
 * function that discards them.
 */
void curl_loop_remove(struct curl_loop *l, CURL *easy)
{
	assert(!l->inside);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_none);
	curl_easy_pause(easy, CURLPAUSE_CONT);
	curl_multi_remove_handle(l->curl, easy);
}
