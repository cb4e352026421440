/* SPDX-License-Identifier: MIT */
/*
 * The connection of the kubeconfig, checked once and brought into the form that curl wants: the URL, the
 * proxy, the certificate authority as text, the headers of impersonation.
 *
 * tls-server-name: curl takes the name for SNI and for verifying from the URL. So that name stands in
 * the URL, CONNECT_TO leads to the real host, and a Host header has the real host's name again.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/http_impl.h"
#include "spec/url.h"

#define CA_MAX (4 << 20)

static void server_curlu_free(CURLU **u)
{
	curl_url_cleanup(*u);
}

static void server_curl_free(char **p)
{
	curl_free(*p);
}

bool http_header_ok(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
			return false;
	return true;
}

/* --- the certificate authority --- */

/* A whole file; by way of links, as Kubernetes mounts them. */
static int server_read(const char *path, char **ret)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	cleanup_free char *text = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > CA_MAX)
		return -EINVAL;
	text = calloc(1, (size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	if (read(fd, text, (size_t)st.st_size) < 0)
		return -errno;
	*ret = take_ptr(text);
	return 0;
}

static int server_ca(struct http_server *s, const struct spec_connection *c, char **ret_text)
{
	int err = 0;

	if (!s->tls || s->insecure)
		return 0;
	if (*c->ca_pem)
		s->ca_pem = strdup(c->ca_pem);
	else if (*c->ca_file)
		err = server_read(c->ca_file, &s->ca_pem);
	else
		return 0;
	if (!err && !s->ca_pem)
		err = -ENOMEM;
	if (!err && !strstr(s->ca_pem, "-----BEGIN "))
		err = -EINVAL;
	if (err && asprintf(ret_text, "the certificate authority%s%s of context %s: %s",
			    *c->ca_pem ? "" : " ", *c->ca_pem ? "" : c->ca_file, c->context,
			    err == -EINVAL ? "no PEM text" : strerror(-err)) < 0)
		*ret_text = NULL;
	return err;
}

/* --- who asks --- */

static int server_header(struct http_server *s, const char *name, const char *key,
			 const char *value, char **ret_text)
{
	cleanup_free char *line = NULL;
	struct curl_slist *list;

	if (!*value)
		return 0;
	if (!http_header_ok(value)) {
		if (asprintf(ret_text, "%s%s of the kubeconfig holds a control character", name,
			     key) < 0)
			*ret_text = NULL;
		return -EINVAL;
	}
	if (asprintf(&line, "%s%s: %s", name, key, value) < 0)
		return -ENOMEM;
	list = curl_slist_append(s->impersonate, line);
	if (!list)
		return -ENOMEM;
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

		err = key ? server_header(s, "Impersonate-Extra-", key, c->as_extra[i].value,
					  ret_text)
			  : -ENOMEM;
	}
	return err;
}

/* --- where --- */

static int server_proxy(struct http_server *s, const struct spec_connection *c, const char *host,
			unsigned port, char **ret_text)
{
	static const char *const kinds[] = {"http://", "https://", "socks5h://"};
	const char *proxy =
		*c->proxy_url ? c->proxy_url : http_proxy_choose(s->tls, host, port, getenv);
	bool known = !*proxy || !strstr(proxy, "://");

	/* The proxy looks up the name, as with kubectl; curl's socks5: would do so here. */
	if (strncmp(proxy, "socks5://", 9) == 0) {
		known = asprintf(&s->proxy, "socks5h://%s", proxy + 9) >= 0;
		if (!known)
			s->proxy = NULL;
	} else {
		for (size_t i = 0; i < array_size(kinds); i++)
			known = known || strncmp(proxy, kinds[i], strlen(kinds[i])) == 0;
		s->proxy = strdup(proxy);
	}
	if (!s->proxy)
		return -ENOMEM;
	if (known)
		return 0;
	*ret_text =
		strdup("the proxy (proxy-url of the kubeconfig, HTTPS_PROXY) must be a URL with "
		       "http, https or socks5");
	return -EINVAL;
}

/* Put the name that TLS is to verify into U, which names HOST and PORT. */
static int server_tls_name(struct http_server *s, const char *name, CURLU *u, const char *host,
			   const char *port)
{
	if (curl_url_set(u, CURLUPART_HOST, name, 0) != CURLUE_OK)
		return -EINVAL;
	if (asprintf(&s->connect_to, "::%s:%s", host, port) < 0) {
		s->connect_to = NULL;
		return -ENOMEM;
	}
	if (asprintf(&s->host, "Host: %s:%s", host, port) < 0) {
		s->host = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* The URL's parts; curl_free them. Absent ones have their defaults. */
static int server_parse(CURLU *u, const char *url, char **scheme, char **host, char **port)
{
	if (curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PORT, port, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return -EINVAL;
	return streq(*scheme, "https") || streq(*scheme, "http") ? 0 : -EINVAL;
}

static int server_url(struct http_server *s, const struct spec_connection *c, char **ret_text)
{
	CURLU *u cleanup(server_curlu_free) = curl_url();
	char *scheme cleanup(server_curl_free) = NULL;
	char *host cleanup(server_curl_free) = NULL;
	char *port cleanup(server_curl_free) = NULL;
	char *url cleanup(server_curl_free) = NULL;
	cleanup_free char *bare = NULL;
	int err = u ? server_parse(u, c->server, &scheme, &host, &port) : -ENOMEM;

	if (!err) {
		s->tls = streq(scheme, "https");
		if (asprintf(&s->name, "%s:%s", host, port) < 0)
			s->name = NULL;
		bare = *host == '[' ? strndup(host + 1, strlen(host) - 2) : strdup(host);
		err = s->name && bare ? 0 : -ENOMEM;
	}
	if (!err && s->tls && *c->tls_server_name)
		err = server_tls_name(s, c->tls_server_name, u, host, port);
	if (!err && curl_url_get(u, CURLUPART_URL, &url, 0) == CURLUE_OK) {
		size_t n = strlen(url);

		while (n > 0 && url[n - 1] == '/')
			n--;
		s->url = strndup(url, n);
		err = s->url ? 0 : -ENOMEM;
	}
	if (err == -EINVAL && asprintf(ret_text,
				       "the server of context %s is no URL with https or "
				       "http, or its tls-server-name no name",
				       c->context) < 0)
		*ret_text = NULL;
	if (err)
		return err;
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
