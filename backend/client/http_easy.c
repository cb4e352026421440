/* SPDX-License-Identifier: MIT */
/*
 * One curl transfer. kxfs sets every option for which curl would use the user's environment or
 * files by default (proxies, .netrc, certificates).
 */
#include "backend/client/http_easy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "spec/base/mem.h"

/*
 * A peer is dead if it does not acknowledge bytes for DEAD_MS, or does not answer TCP's probes of
 * an idle connection. (HTTP/2 pings can't be used: curl_easy_upkeep ignores multi handles.)
 */
#define DEAD_MS	      30000
#define PROBE_AFTER_S 20L
#define PROBE_EACH_S  5L
/* size of curl's receive buffer; there may be a thousand of these buffers */
#define BUFFER	    (16L << 10)
#define LIST_BUFFER (128L << 10) /* for a list, which may have several MiB */

/* Set an option, unless CODE is the error of an earlier option. */
#define SET(code, easy, option, value)                                                             \
	((code) = (code) ? (code) : curl_easy_setopt((easy), (option), (value)))

/* --- sockets --- */

static curl_socket_t easy_open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *a)
{
	atomic_uint *n_connections = data;
	unsigned dead = DEAD_MS;
	int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);

	if (fd < 0)
		return CURL_SOCKET_BAD;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead, sizeof(dead));
	atomic_fetch_add(n_connections, 1);
	return fd;
}

static int easy_close_socket(void *data, curl_socket_t fd)
{
	atomic_uint *n_connections = data;

	atomic_fetch_sub(n_connections, 1);
	return close(fd);
}

/* --- options --- */

static CURLcode easy_connection(CURL *e, const struct http_easy_config *c)
{
	const struct http_server *s = c->server;
	CURLcode code = CURLE_OK;

	SET(code, e, CURLOPT_NOSIGNAL, 1L);
#if KXFS_CURL_QUICK_EXIT
	SET(code, e, CURLOPT_QUICK_EXIT, 1L); /* don't wait for the resolver's thread */
#endif
#if KXFS_CURL_PROTOCOLS_STR
	SET(code, e, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SET(code, e, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	SET(code, e, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_MS);
	SET(code, e, CURLOPT_OPENSOCKETFUNCTION, easy_open_socket);
	SET(code, e, CURLOPT_OPENSOCKETDATA, c->n_connections);
	SET(code, e, CURLOPT_CLOSESOCKETFUNCTION, easy_close_socket);
	SET(code, e, CURLOPT_CLOSESOCKETDATA, c->n_connections);
	SET(code, e, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(code, e, CURLOPT_TCP_KEEPIDLE, PROBE_AFTER_S);
	SET(code, e, CURLOPT_TCP_KEEPINTVL, PROBE_EACH_S);
	/* Whether a server without TLS supports HTTP/2 is not known in advance, so use HTTP/1.1. */
	SET(code, e, CURLOPT_HTTP_VERSION,
	    s->tls && !c->call->alone ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
	SET(code, e, CURLOPT_PIPEWAIT, 1L);
	SET(code, e, CURLOPT_FRESH_CONNECT, c->call->fresh || c->call->alone ? 1L : 0L);
	SET(code, e, CURLOPT_FORBID_REUSE, c->call->alone ? 1L : 0L);
	SET(code, e, CURLOPT_PROXY, s->proxy);
	SET(code, e, CURLOPT_NOPROXY, "");
	SET(code, e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(code, e, CURLOPT_BUFFERSIZE, c->call->compress ? LIST_BUFFER : BUFFER);
	return code;
}

/* FLAGS must be CURL_BLOB_COPY unless TEXT outlives the easy handle. */
static struct curl_blob easy_blob(const char *text, unsigned flags)
{
	return (struct curl_blob){.data = (void *)(uintptr_t)text,
				  .len = strlen(text),
				  .flags = flags};
}

/*
 * A CA of the kubeconfig is the only trusted CA, even for an HTTPS proxy, as in kubectl. Requests
 * share a connection only if they have the same client certificate. So after a change of the
 * certificate, new requests open new connections.
 */
static CURLcode easy_tls(CURL *e, const struct http_easy_config *c)
{
	const struct http_server *s = c->server;
	const struct credential_parts *parts = c->parts;
	CURLcode code = CURLE_OK;
	struct curl_blob blob;

	SET(code, e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(code, e, CURLOPT_SSL_VERIFYPEER, s->insecure ? 0L : 1L);
	SET(code, e, CURLOPT_SSL_VERIFYHOST, s->insecure ? 0L : 2L);
	SET(code, e, CURLOPT_PROXY_SSL_VERIFYPEER, s->insecure ? 0L : 1L);
	SET(code, e, CURLOPT_PROXY_SSL_VERIFYHOST, s->insecure ? 0L : 2L);
	if (s->ca_pem) {
		blob = easy_blob(s->ca_pem, CURL_BLOB_NOCOPY);
		SET(code, e, CURLOPT_CAINFO_BLOB, &blob);
		SET(code, e, CURLOPT_CAPATH, NULL);
		SET(code, e, CURLOPT_PROXY_CAINFO_BLOB, &blob);
		SET(code, e, CURLOPT_PROXY_CAPATH, NULL);
	}
	if (parts->cert_pem && parts->key_pem) {
		blob = easy_blob(parts->cert_pem, CURL_BLOB_COPY);
		SET(code, e, CURLOPT_SSLCERT_BLOB, &blob);
		SET(code, e, CURLOPT_SSLCERTTYPE, "PEM");
		blob = easy_blob(parts->key_pem, CURL_BLOB_COPY);
		SET(code, e, CURLOPT_SSLKEY_BLOB, &blob);
		SET(code, e, CURLOPT_SSLKEYTYPE, "PEM");
		/* Otherwise OpenSSL asks on the terminal for the passphrase of an encrypted key. */
		SET(code, e, CURLOPT_KEYPASSWD, "");
	}
	return code;
}

static CURLcode easy_request(CURL *e, const struct http_easy_config *c)
{
	static const char *const methods[] = {
		[HTTP_GET] = "GET",
		[HTTP_POST] = "POST",
		[HTTP_PATCH] = "PATCH",
		[HTTP_DELETE] = "DELETE",
	};
	const struct http_call *call = c->call;
	cleanup_free char *url = text_print("%s%s", c->server->url, call->path);
	CURLcode code = CURLE_OK;

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

static CURLcode easy_callbacks(struct http_easy *easy, const struct http_easy_config *c)
{
	CURL *e = easy->curl;
	CURLcode code = CURLE_OK;

	SET(code, e, CURLOPT_ERRORBUFFER, easy->words);
	SET(code, e, CURLOPT_NOPROGRESS, 1L);
	SET(code, e, CURLOPT_PREREQFUNCTION, c->before);
	SET(code, e, CURLOPT_PREREQDATA, c->data);
	SET(code, e, CURLOPT_HEADERFUNCTION, c->header);
	SET(code, e, CURLOPT_HEADERDATA, c->data);
	SET(code, e, CURLOPT_WRITEFUNCTION, c->bytes);
	SET(code, e, CURLOPT_WRITEDATA, c->data);
	return code;
}

/* --- headers --- */

static void append(struct curl_slist **list, const char *line)
{
	struct curl_slist *more = curl_slist_append(*list, line);

	if (!more)
		mem_out();
	*list = more;
}

static CURLcode easy_headers(struct http_easy *e, const struct http_easy_config *c)
{
	static const char *const accept[] = {
		[HTTP_WHOLE] = "Accept: application/json, */*",
		[HTTP_METADATA_LIST] = "Accept: application/json;as=PartialObjectMetadataList;"
				       "g=meta.k8s.io;v=v1, application/json",
		[HTTP_METADATA] = "Accept: application/json;as=PartialObjectMetadata;"
				  "g=meta.k8s.io;v=v1, application/json",
	};

	append(&e->headers, accept[c->call->metadata]);
	append(&e->headers, "Expect:");
	if (c->call->method == HTTP_PATCH)
		append(&e->headers, "Content-Type: application/merge-patch+json");
	else if (c->call->body || c->call->method == HTTP_POST)
		append(&e->headers, "Content-Type: application/json");
	if (c->server->host)
		append(&e->headers, c->server->host);
	if (c->parts->authorization)
		append(&e->headers, c->parts->authorization);
	for (const struct curl_slist *h = c->server->impersonate; h; h = h->next)
		append(&e->headers, h->data);
	return curl_easy_setopt(e->curl, CURLOPT_HTTPHEADER, e->headers);
}

/* True if PATH is a valid path and query of a URL. Curl would modify an invalid one. */
static bool easy_path_ok(const char *path)
{
	const char *p = path;

	while (*p > ' ' && *p < 0x7f && *p != '#')
		p++;
	return *path == '/' && *p == '\0';
}

int http_easy_init(struct http_easy *e, const struct http_easy_config *c)
{
	CURLcode code;

	if (c->parts->authorization && !http_header_ok(c->parts->authorization))
		return -EACCES;
	if (!easy_path_ok(c->call->path))
		return -EINVAL;
	*e = (struct http_easy){.curl = curl_easy_init()};
	if (!e->curl)
		mem_out();
	code = easy_connection(e->curl, c);
	code = code ? code : easy_tls(e->curl, c);
	code = code ? code : easy_request(e->curl, c);
	code = code ? code : easy_callbacks(e, c);
	code = code ? code : easy_headers(e, c);
	if (!code && c->server->connect_to) {
		append(&e->connect_to, c->server->connect_to);
		code = curl_easy_setopt(e->curl, CURLOPT_CONNECT_TO, e->connect_to);
	}
	if (!code)
		return 0;
	if (code == CURLE_OUT_OF_MEMORY)
		mem_out();
	http_easy_fini(e);
	return -EIO;
}

void http_easy_fini(struct http_easy *e)
{
	curl_easy_cleanup(e->curl);
	curl_slist_free_all(e->headers);
	curl_slist_free_all(e->connect_to);
	*e = (struct http_easy){0};
}

/* --- curl's errors --- */

int http_error_errno(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	/* curl's connect timeout: kxfs sets no other timeout of curl */
	case CURLE_OPERATION_TIMEDOUT:
		return -EHOSTUNREACH;
	default:
		return -EIO;
	}
}

bool http_error_passes(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT:
	/* a server that restarts may close the connection during the handshake */
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
	case CURLE_PROXY:
		return true;
	default:
		return false;
	}
}

static const char *error_hint(CURLcode code, const struct http_server *s)
{
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		return s->ca_pem ? "; certificate-authority and tls-server-name in the "
				   "kubeconfig must match this server"
				 : "; the kubeconfig names no certificate-authority, and this "
				   "system does not trust the server's authority: add "
				   "certificate-authority to the kubeconfig";
	case CURLE_SSL_CERTPROBLEM:
		return "; client-certificate and client-key in the kubeconfig (or from its "
		       "plugin) must be PEM, must belong together and must not need a passphrase";
	case CURLE_SSL_CACERT_BADFILE:
		return "; certificate-authority in the kubeconfig must be PEM";
	case CURLE_SSL_CONNECT_ERROR:
		return "; is the server's URL in the kubeconfig right, and does the server use "
		       "TLS?";
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT:
		return "; is the server's URL in the kubeconfig right, and can this machine "
		       "reach it (VPN, proxy)?";
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_HTTP2:
		return s->tls ? ""
			      : "; if this server uses TLS, its URL in the kubeconfig must "
				"begin with https:";
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_PROXY:
		return "; check proxy-url in the kubeconfig, HTTPS_PROXY and NO_PROXY";
	/*
	 * Curl also returns this code for data that it refuses. A real lack of memory ends the
	 * program.
	 */
	case CURLE_OUT_OF_MEMORY:
		return "; the answer is not HTTP, its header is too long, or its compression "
		       "ratio is too high: is the server's URL in the kubeconfig right?";
	default:
		return "";
	}
}

char *http_error_text(CURLcode code, const char *words, const struct http_server *s)
{
	return text_print("%s%s: %s%s", s->name, *s->proxy ? " through a proxy" : "",
			  *words ? words : curl_easy_strerror(code), error_hint(code, s));
}

/* --- the row in .kxfs/metrics --- */

#define PARTS 8

struct tally_part {
	const char *at;
	int len;
};

static size_t split(const char *path, struct tally_part parts[PARTS])
{
	size_t n = 0;

	while (n < PARTS && *path == '/') {
		parts[n].at = ++path;
		parts[n].len = (int)strcspn(path, "/?");
		path += parts[n++].len;
	}
	return n;
}

static bool part_is(const struct tally_part *part, const char *text)
{
	return (size_t)part->len == strlen(text) && !memcmp(part->at, text, (size_t)part->len);
}

static const char *verb_of(enum http_method method, const char *path, bool named)
{
	const char *query = strchr(path, '?');

	switch (method) {
	case HTTP_POST:
		return "create";
	case HTTP_PATCH:
		return "patch";
	case HTTP_DELETE:
		return "delete";
	case HTTP_GET:
		break;
	}
	if (named)
		return "get";
	return query && !strncmp(query, "?watch=true", 11) ? "watch" : "list";
}

/*
 * Find the verb and the resource of a request, as RBAC rules name them. PATH is /api/VERSION/REST
 * or /apis/GROUP/VERSION/REST. REST is [namespaces/NAME/]RESOURCE[/NAME[/PART]].
 */
static void name_request(enum http_method method, const char *path, const char **ret_verb,
			 char ret_resource[TALLY_TEXT])
{
	struct tally_part parts[PARTS] = {0};
	size_t n = split(path, parts);
	bool core = n > 0 && part_is(&parts[0], "api");
	const struct tally_part *group = core ? NULL : &parts[1];
	size_t at = core ? 2 : 3;

	if (at + 2 < n && part_is(&parts[at], "namespaces"))
		at += 2;
	if (at >= n) { /* no resource, for example /version */
		*ret_verb = verb_of(method, path, true);
		*ret_resource = '\0';
		return;
	}
	*ret_verb = verb_of(method, path, at + 1 < n);
	snprintf(ret_resource, TALLY_TEXT, "%.*s%s%.*s%s%.*s", parts[at].len, parts[at].at,
		 group ? "." : "", group ? group->len : 0, group ? group->at : "",
		 at + 2 < n ? "/" : "", at + 2 < n ? parts[at + 2].len : 0,
		 at + 2 < n ? parts[at + 2].at : "");
}

void http_tally_add(struct tally *t, enum http_method method, const char *path, int status)
{
	char resource[TALLY_TEXT], code[16] = "none";
	const char *verb;

	name_request(method, path, &verb, resource);
	if (status)
		snprintf(code, sizeof(code), "%d", status);
	tally_add(t, (const char *const[]){verb, resource, code});
}
