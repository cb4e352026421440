/* SPDX-License-Identifier: MIT */
/*
 * One attempt as curl sees it: all options of its easy handle. Nothing here is asked of the user's
 * environment or files: what curl would take from there (proxies, .netrc, certificates) is said.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "backend/http_impl.h"

/*
 * A peer that has gone without a word is noticed after so long: what we sent is not acknowledged, or
 * the probes of an idle connection aren't. (curl_easy_upkeep does nothing for multi handles.)
 */
#define DEAD_MS	      30000
#define PROBE_AFTER_S 20L
#define PROBE_EACH_S  5L
#define CALL_BUFFER   (64L << 10)
#define STREAM_BUFFER (16L << 10) /* there may be a thousand */

/* The first error of a row of options counts. */
#define SET(code, easy, option, value)                                                             \
	((code) = (code) ? (code) : curl_easy_setopt((easy), (option), (value)))

/* --- sockets --- */

static curl_socket_t easy_open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct http *http = data;
	unsigned dead = DEAD_MS;
	int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);

	(void)purpose;
	if (fd < 0)
		return CURL_SOCKET_BAD;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead, sizeof(dead));
	atomic_fetch_add(&http->n_connections, 1);
	return fd;
}

static int easy_close_socket(void *data, curl_socket_t fd)
{
	struct http *http = data;

	atomic_fetch_sub(&http->n_connections, 1);
	return close(fd);
}

/*
 * Curl is about to send the request. It does so again, without being asked, when a connection that it
 * has used before breaks before the reply; a POST that the server has acted on must not go out twice.
 */
static int easy_before_request(void *data, char *remote_ip, char *local_ip, int remote_port,
			       int local_port)
{
	struct http_request *rq = data;

	(void)remote_ip;
	(void)local_ip;
	(void)remote_port;
	(void)local_port;
	if (rq->sent && rq->call.method != HTTP_GET)
		return CURL_PREREQFUNC_ABORT;
	rq->sent = true;
	http_started(rq);
	return CURL_PREREQFUNC_OK;
}

/* --- options --- */

static CURLcode easy_connection(struct http_request *rq)
{
	struct http *http = rq->http;
	CURL *e = rq->easy;
	CURLcode code = CURLE_OK;

	SET(code, e, CURLOPT_NOSIGNAL, 1L);
	SET(code, e, CURLOPT_QUICK_EXIT, 1L); /* never wait for the resolver's thread */
	SET(code, e, CURLOPT_PROTOCOLS_STR, "http,https");
	SET(code, e, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_MS);
	SET(code, e, CURLOPT_OPENSOCKETFUNCTION, easy_open_socket);
	SET(code, e, CURLOPT_OPENSOCKETDATA, http);
	SET(code, e, CURLOPT_CLOSESOCKETFUNCTION, easy_close_socket);
	SET(code, e, CURLOPT_CLOSESOCKETDATA, http);
	SET(code, e, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(code, e, CURLOPT_TCP_KEEPIDLE, PROBE_AFTER_S);
	SET(code, e, CURLOPT_TCP_KEEPINTVL, PROBE_EACH_S);
	/* Of a server without TLS it is not known in advance whether it has HTTP/2. */
	SET(code, e, CURLOPT_HTTP_VERSION,
	    http->server.tls ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
	SET(code, e, CURLOPT_PIPEWAIT, 1L);
	SET(code, e, CURLOPT_FRESH_CONNECT, rq->call.fresh ? 1L : 0L);
	SET(code, e, CURLOPT_PROXY, http->server.proxy);
	SET(code, e, CURLOPT_NOPROXY, "");
	SET(code, e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(code, e, CURLOPT_BUFFERSIZE, rq->call.stream ? STREAM_BUFFER : CALL_BUFFER);
	return code;
}

/* Curl copies what it is given. */
static struct curl_blob easy_blob(const char *text)
{
	return (struct curl_blob){.data = (void *)(uintptr_t)text,
				  .len = strlen(text),
				  .flags = CURL_BLOB_COPY};
}

/*
 * A CA of the kubeconfig is the only one then, for an HTTPS proxy too, as with kubectl. Connections are
 * shared only by requests of equal certificates: a new one makes new connections, and the old drain.
 */
static CURLcode easy_tls(struct http_request *rq, const struct credential_view *view)
{
	const struct http_server *s = &rq->http->server;
	CURL *e = rq->easy;
	CURLcode code = CURLE_OK;
	struct curl_blob blob;

	SET(code, e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(code, e, CURLOPT_SSL_VERIFYPEER, s->insecure ? 0L : 1L);
	SET(code, e, CURLOPT_SSL_VERIFYHOST, s->insecure ? 0L : 2L);
	SET(code, e, CURLOPT_PROXY_SSL_VERIFYPEER, s->insecure ? 0L : 1L);
	SET(code, e, CURLOPT_PROXY_SSL_VERIFYHOST, s->insecure ? 0L : 2L);
	if (s->ca_pem) {
		blob = easy_blob(s->ca_pem);
		SET(code, e, CURLOPT_CAINFO_BLOB, &blob);
		SET(code, e, CURLOPT_CAPATH, NULL);
		SET(code, e, CURLOPT_PROXY_CAINFO_BLOB, &blob);
		SET(code, e, CURLOPT_PROXY_CAPATH, NULL);
	}
	if (view->cert_pem && view->key_pem) {
		blob = easy_blob(view->cert_pem);
		SET(code, e, CURLOPT_SSLCERT_BLOB, &blob);
		SET(code, e, CURLOPT_SSLCERTTYPE, "PEM");
		blob = easy_blob(view->key_pem);
		SET(code, e, CURLOPT_SSLKEY_BLOB, &blob);
		SET(code, e, CURLOPT_SSLKEYTYPE, "PEM");
		/* Else OpenSSL asks for the pass phrase of an encrypted key on the terminal. */
		SET(code, e, CURLOPT_KEYPASSWD, "");
	}
	return code;
}

static CURLcode easy_request(struct http_request *rq)
{
	static const char *const methods[] = {
		[HTTP_GET] = "GET",
		[HTTP_POST] = "POST",
		[HTTP_PATCH] = "PATCH",
		[HTTP_DELETE] = "DELETE",
	};
	const struct http_call *call = &rq->call;
	cleanup_free char *url = NULL;
	CURL *e = rq->easy;
	CURLcode code = CURLE_OK;

	if (asprintf(&url, "%s%s", rq->http->server.url, call->path) < 0)
		return CURLE_OUT_OF_MEMORY;
	SET(code, e, CURLOPT_URL, url);
	SET(code, e, CURLOPT_PATH_AS_IS, 1L);
	SET(code, e, CURLOPT_FOLLOWLOCATION, 0L);
	SET(code, e, CURLOPT_USERAGENT, "kxfs/" KXFS_VERSION);
	if (call->compress)
		SET(code, e, CURLOPT_ACCEPT_ENCODING, "gzip");
	if (call->body || call->method == HTTP_POST) {
		SET(code, e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->len);
		SET(code, e, CURLOPT_POSTFIELDS, call->body ? call->body : "");
	}
	SET(code, e, CURLOPT_CUSTOMREQUEST, methods[call->method]);
	return code;
}

static CURLcode easy_callbacks(struct http_request *rq)
{
	CURL *e = rq->easy;
	CURLcode code = CURLE_OK;

	SET(code, e, CURLOPT_PRIVATE, rq);
	SET(code, e, CURLOPT_ERRORBUFFER, rq->words);
	SET(code, e, CURLOPT_NOPROGRESS, 1L);
	SET(code, e, CURLOPT_PREREQFUNCTION, easy_before_request);
	SET(code, e, CURLOPT_PREREQDATA, rq);
	SET(code, e, CURLOPT_HEADERFUNCTION, http_on_header);
	SET(code, e, CURLOPT_HEADERDATA, rq);
	SET(code, e, CURLOPT_WRITEFUNCTION, http_on_body);
	SET(code, e, CURLOPT_WRITEDATA, rq);
	return code;
}

/* --- headers --- */

static bool easy_header(struct http_request *rq, const char *line)
{
	struct curl_slist *list = curl_slist_append(rq->headers, line);

	if (list)
		rq->headers = list;
	return list;
}

static CURLcode easy_headers(struct http_request *rq, const struct credential_view *view)
{
	const struct http_server *s = &rq->http->server;
	bool ok = easy_header(rq, "Accept: application/json, */*") && easy_header(rq, "Expect:");

	if (rq->call.method == HTTP_PATCH)
		ok = ok && easy_header(rq, "Content-Type: application/merge-patch+json");
	else if (rq->call.body || rq->call.method == HTTP_POST)
		ok = ok && easy_header(rq, "Content-Type: application/json");
	if (s->host)
		ok = ok && easy_header(rq, s->host);
	if (view->authorization)
		ok = ok && easy_header(rq, view->authorization);
	for (const struct curl_slist *h = s->impersonate; h; h = h->next)
		ok = ok && easy_header(rq, h->data);
	return ok ? curl_easy_setopt(rq->easy, CURLOPT_HTTPHEADER, rq->headers)
		  : CURLE_OUT_OF_MEMORY;
}

static CURLcode easy_connect_to(struct http_request *rq)
{
	if (!rq->http->server.connect_to)
		return CURLE_OK;
	rq->connect_to = curl_slist_append(NULL, rq->http->server.connect_to);
	if (!rq->connect_to)
		return CURLE_OUT_OF_MEMORY;
	return curl_easy_setopt(rq->easy, CURLOPT_CONNECT_TO, rq->connect_to);
}

/* Whatever is not a URL's path and query would become something else on its way. */
static bool easy_path_ok(const char *path)
{
	const char *p = path;

	while (*p > ' ' && *p < 0x7f && *p != '#')
		p++;
	return *path == '/' && *p == '\0';
}

int http_easy_new(struct http_request *rq, const struct credential_view *view)
{
	CURLcode code;

	if (view->authorization && !http_header_ok(view->authorization))
		return -EACCES;
	if (!easy_path_ok(rq->call.path))
		return -EINVAL;
	rq->easy = curl_easy_init();
	if (!rq->easy)
		return -ENOMEM;
	*rq->words = '\0';
	code = easy_connection(rq);
	code = code ? code : easy_tls(rq, view);
	code = code ? code : easy_request(rq);
	code = code ? code : easy_callbacks(rq);
	code = code ? code : easy_headers(rq, view);
	code = code ? code : easy_connect_to(rq);
	if (!code)
		return 0;
	http_easy_free(rq);
	return code == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EIO;
}

void http_easy_free(struct http_request *rq)
{
	curl_easy_cleanup(rq->easy);
	rq->easy = NULL;
	curl_slist_free_all(rq->headers);
	rq->headers = NULL;
	curl_slist_free_all(rq->connect_to);
	rq->connect_to = NULL;
}
