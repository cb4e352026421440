/* SPDX-License-Identifier: MIT */
/*
 * The connection of the kubeconfig, checked once and converted for curl: the URL, the proxy, the
 * certificate authority as text, the headers of impersonation.
 *
 * tls-server-name: curl takes the name for SNI and verification from the URL. So the URL has that
 * name, CONNECT_TO leads to the real host, and a Host header names the real host.
 */
#include "backend/client/http_server.h"

#include <curl/curl.h>
#include <errno.h>

#include "backend/base/file.h"
#include "backend/client/http_proxy.h"
#include "spec/base/mem.h"
#include "spec/base/url.h"

#define CA_MAX (4u << 20)

define_cleanup(server_curlu_free, CURLU *, curl_url_cleanup)

define_cleanup(server_curl_free, char *, curl_free)

bool http_header_ok(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
			return false;
	return true;
}

/* --- the certificate authority --- */

static int server_ca(struct http_server *s, const struct spec_connection *c, char **ret_text)
{
	size_t len;
	int err = 0;

	if (!s->tls || s->insecure)
		return 0;
	if (*c->ca_pem)
		s->ca_pem = text_copy(c->ca_pem);
	else if (*c->ca_file)
		err = file_read_other(c->ca_file, CA_MAX, &s->ca_pem, &len);
	else
		return 0;
	if (!err && !strstr(s->ca_pem, "-----BEGIN "))
		err = -EINVAL;
	if (err)
		*ret_text = text_print("the certificate authority%s%s of context %s: %s",
				       *c->ca_pem ? "" : " ", *c->ca_pem ? "" : c->ca_file,
				       c->context, err == -EINVAL ? "no PEM text" : strerror(-err));
	return err;
}

/* --- the user --- */

static int server_header(struct http_server *s, const char *name, const char *key,
			 const char *value, char **ret_text)
{
	cleanup_free char *line = NULL;
	struct curl_slist *list;

	if (!*value)
		return 0;
	if (!http_header_ok(value)) {
		*ret_text =
			text_print("%s%s of the kubeconfig holds a control character", name, key);
		return -EINVAL;
	}
	line = text_print("%s%s: %s", name, key, value);
	list = curl_slist_append(s->impersonate, line);
	if (!list)
		mem_out();
	s->impersonate = list;
	return 0;
}

static int server_impersonate(struct http_server *s, const struct spec_connection *c,
			      char **ret_text)
{
	int err = server_header(s, "Impersonate-User", "", c->as, ret_text);

	if (!err)
		err = server_header(s, "Impersonate-Uid", "", c->as_uid, ret_text);
	for (size_t i = 0; !err && i < c->n_as_groups; i++)
		err = server_header(s, "Impersonate-Group", "", c->as_groups[i], ret_text);
	for (size_t i = 0; !err && i < c->n_as_extra; i++) {
		cleanup_free char *key = spec_url_escape(c->as_extra[i].key);

		err = server_header(s, "Impersonate-Extra-", key, c->as_extra[i].value, ret_text);
	}
	return err;
}

/* --- the address --- */

static int server_proxy(struct http_server *s, const struct spec_connection *c, const char *host,
			unsigned port, char **ret_text)
{
	static const char *const kinds[] = {"http://", "https://", "socks5h://"};
	const char *proxy =
		*c->proxy_url ? c->proxy_url : http_proxy_choose(s->tls, host, port, getenv);
	bool known = !*proxy || !strstr(proxy, "://");

	/*
	 * The proxy must resolve the name, as with kubectl; with socks5: curl would resolve it
	 * here.
	 */
	if (strncmp(proxy, "socks5://", 9) == 0) {
		s->proxy = text_print("socks5h://%s", proxy + 9);
		return 0;
	}
	s->proxy = text_copy(proxy);
	for (size_t i = 0; i < array_size(kinds); i++)
		known = known || strncmp(proxy, kinds[i], strlen(kinds[i])) == 0;
	if (known)
		return 0;
	*ret_text = text_copy("the proxy (proxy-url of the kubeconfig, HTTPS_PROXY) must be a URL "
			      "with http, https or socks5");
	return -EINVAL;
}

/* Split URL into parts, which the caller frees with curl_free. Missing parts get their defaults. */
static int server_parse(CURLU *u, const char *url, char **scheme, char **host, char **port)
{
	if (curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PORT, port, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return -EINVAL;
	return streq(*scheme, "https") || streq(*scheme, "http") ? 0 : -EINVAL;
}

static int server_no_url(const struct spec_connection *c, char **ret_text)
{
	*ret_text = text_print("the server of context %s is not a URL with https or http, or "
			       "its tls-server-name is not a host name",
			       c->context);
	return -EINVAL;
}

static int server_url(struct http_server *s, const struct spec_connection *c, char **ret_text)
{
	CURLU *u cleanup(server_curlu_free) = curl_url();
	char *scheme cleanup(server_curl_free) = NULL;
	char *host cleanup(server_curl_free) = NULL;
	char *port cleanup(server_curl_free) = NULL;
	char *url cleanup(server_curl_free) = NULL;
	cleanup_free char *bare = NULL;
	size_t n;

	if (!u)
		mem_out();
	if (server_parse(u, c->server, &scheme, &host, &port) < 0)
		return server_no_url(c, ret_text);
	s->tls = streq(scheme, "https");
	s->name = text_print("%s:%s", host, port);
	bare = *host == '[' ? mem_copy(host + 1, strlen(host) - 2) : text_copy(host);
	if (s->tls && *c->tls_server_name) {
		/* curl verifies the name in the URL. */
		if (curl_url_set(u, CURLUPART_HOST, c->tls_server_name, 0) != CURLUE_OK)
			return server_no_url(c, ret_text);
		s->connect_to = text_print("::%s:%s", host, port);
		s->host = text_print("Host: %s:%s", host, port);
	}
	if (curl_url_get(u, CURLUPART_URL, &url, 0) != CURLUE_OK)
		return server_no_url(c, ret_text);
	n = strlen(url);
	while (n > 0 && url[n - 1] == '/')
		n--;
	s->url = mem_copy(url, n);
	return server_proxy(s, c, bare, (unsigned)strtoul(port, NULL, 10), ret_text);
}

int http_server_init(struct http_server *s, const struct spec_connection *c, char **ret_text)
{
	int err;

	*ret_text = NULL;
	*s = (struct http_server){.insecure = c->insecure};
	err = server_url(s, c, ret_text);
	if (!err)
		err = server_ca(s, c, ret_text);
	if (!err)
		err = server_impersonate(s, c, ret_text);
	if (err)
		http_server_fini(s);
	return err;
}

void http_server_fini(struct http_server *s)
{
	free(s->url);
	free(s->connect_to);
	free(s->host);
	free(s->name);
	free(s->proxy);
	free(s->ca_pem);
	curl_slist_free_all(s->impersonate);
	*s = (struct http_server){0};
}
