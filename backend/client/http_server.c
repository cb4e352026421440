/* SPDX-License-Identifier: MIT */
/*
 * Converts the connection of the kubeconfig for curl. Curl takes the name for SNI and verification
 * from the URL. So if there is a tls-server-name, the URL has this name instead of the real host.
 * CONNECT_TO and the Host header then have the real host.
 */
#include "backend/client/http_server.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <strings.h>

#include "backend/base/file.h"
#include "backend/base/print.h"
#include "spec/base/encode.h"
#include "spec/base/mem.h"

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
	return !err ? 0
		    : refuse(err, ret_text, "the certificate authority%s%s of context %s: %s",
			     *c->ca_pem ? "" : " ", *c->ca_pem ? "" : c->ca_file, c->context,
			     err == -EINVAL ? "it is not PEM" : strerror(-err));
}

/* --- the user --- */

static int server_header(struct http_server *s, const char *name, const char *key,
			 const char *value, char **ret_text)
{
	cleanup_free char *line = NULL;
	struct curl_slist *list;

	if (!*value)
		return 0;
	if (!http_header_ok(value))
		return refuse(-EINVAL, ret_text,
			      "%s%s in the kubeconfig contains a control "
			      "character",
			      name, key);
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

/* --- the proxy --- */

/*
 * kxfs chooses the proxy as kubectl does, by Go's rules, which differ from curl's. Variables in
 * upper case take precedence. ALL_PROXY is ignored. A server on this machine has no proxy. Entries
 * of NO_PROXY may have ports. An entry with a leading dot includes the names below a domain, but
 * not the domain.
 *
 * Another reason: curl can't apply NO_PROXY to the real host if the URL has the tls-server-name.
 */
struct proxy_address {
	int family; /* 0 if the text is not an address */
	unsigned char bytes[16];
};

static struct proxy_address address_parse(const char *text)
{
	struct proxy_address a = {0};

	if (inet_pton(AF_INET, text, a.bytes) == 1)
		a.family = AF_INET;
	else if (inet_pton(AF_INET6, text, a.bytes) == 1)
		a.family = AF_INET6;
	return a;
}

static bool address_is_in(const struct proxy_address *a, const struct proxy_address *net,
			  unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (a->family == 0 || a->family != net->family ||
	    bits > (a->family == AF_INET ? 32u : 128u))
		return false;
	if (memcmp(a->bytes, net->bytes, whole) != 0)
		return false;
	return rest == 0 || (a->bytes[whole] ^ net->bytes[whole]) >> (8 - rest) == 0;
}

static bool address_is_here(const struct proxy_address *a)
{
	const struct proxy_address v4 = address_parse("127.0.0.0"), v6 = address_parse("::1");

	return address_is_in(a, &v4, 8) || address_is_in(a, &v6, 128);
}

/* "foo.org" includes the domain and its subdomains; ".foo.org" and "*.foo.org" only subdomains. */
static bool domain_matches(const char *rule, const char *host)
{
	size_t n, m = strlen(host);
	bool below = false;

	if (strncmp(rule, "*.", 2) == 0)
		rule++;
	if (*rule == '.') {
		below = true;
		rule++;
	}
	n = strlen(rule);
	if (n == 0 || n > m || strcasecmp(host + m - n, rule) != 0)
		return false;
	return n == m ? !below : host[m - n - 1] == '.';
}

/* Remove ":PORT" and brackets from *RULE. Return false if *RULE names another port. */
static bool port_matches(char **rule, unsigned port)
{
	char *colon = strrchr(*rule, ':'), *end = strchr(*rule, ']');

	if (colon && (end ? colon == end + 1 : strchr(*rule, ':') == colon)) {
		if (strtoul(colon + 1, NULL, 10) != port)
			return false;
		*colon = '\0';
	}
	if (**rule == '[' && end) {
		*end = '\0';
		(*rule)++;
	}
	return true;
}

static bool rule_matches(char *rule, const char *host, unsigned port)
{
	const struct proxy_address a = address_parse(host);
	struct proxy_address net;
	char *slash = strchr(rule, '/');

	if (streq(rule, "*"))
		return true;
	if (slash) {
		*slash = '\0';
		net = address_parse(rule);
		return slash[1] >= '0' && slash[1] <= '9' &&
		       address_is_in(&a, &net, (unsigned)strtoul(slash + 1, NULL, 10));
	}
	if (!port_matches(&rule, port))
		return false;
	net = address_parse(rule);
	if (net.family)
		return address_is_in(&a, &net, net.family == AF_INET ? 32 : 128);
	return domain_matches(rule, host);
}

static const char *proxy_variable(const char *upper, const char *lower,
				  char *(*get)(const char *name))
{
	const char *value = get(upper);

	if (!value || !*value)
		value = get(lower);
	return value ? value : "";
}

const char *http_proxy_choose(bool tls, const char *host, unsigned port,
			      char *(*get)(const char *name))
{
	const char *proxy = tls ? proxy_variable("HTTPS_PROXY", "https_proxy", get)
				: proxy_variable("HTTP_PROXY", "http_proxy", get);
	const struct proxy_address a = address_parse(host);
	cleanup_free char *rules = NULL;
	char *save = NULL;

	if (!*proxy || strcasecmp(host, "localhost") == 0 || address_is_here(&a))
		return "";
	rules = text_copy(proxy_variable("NO_PROXY", "no_proxy", get));
	for (char *r = strtok_r(rules, ", \t", &save); r; r = strtok_r(NULL, ", \t", &save))
		if (rule_matches(r, host, port))
			return "";
	return proxy;
}

/* --- the address --- */

static int server_proxy(struct http_server *s, const struct spec_connection *c, const char *host,
			unsigned port, char **ret_text)
{
	static const char *const kinds[] = {"http://", "https://", "socks5h://"};
	const char *proxy =
		*c->proxy_url ? c->proxy_url : http_proxy_choose(s->tls, host, port, getenv);
	bool known = !*proxy || !strstr(proxy, "://");

	/* As in kubectl, the proxy resolves the server's name. With socks5:, curl would do it. */
	if (strncmp(proxy, "socks5://", 9) == 0) {
		s->proxy = text_print("socks5h://%s", proxy + 9);
		return 0;
	}
	s->proxy = text_copy(proxy);
	for (size_t i = 0; i < array_size(kinds); i++)
		known = known || strncmp(proxy, kinds[i], strlen(kinds[i])) == 0;
	if (known)
		return 0;
	return refuse(-EINVAL, ret_text,
		      "the proxy (proxy-url in the kubeconfig, or HTTPS_PROXY) must be a URL that "
		      "begins with http:, https: or socks5:");
}

/* The caller frees the parts with curl_free. *PORT may be the default of the scheme. */
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
	return refuse(-EINVAL, ret_text,
		      "context %s: its server is not an https or http URL, or its "
		      "tls-server-name is not a host name",
		      c->context);
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
