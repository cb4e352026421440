/* SPDX-License-Identifier: MIT */
/*
 * The rules of kubectl (Go's), which differ from curl's: variables in upper case take precedence
 * over lower case, there is no ALL_PROXY, this machine needs no proxy, and NO_PROXY may name ports,
 * and with a leading dot the names below a domain without the domain itself. Curl (7.88) can't
 * evaluate NO_PROXY for us: with a tls-server-name the host of its URL is that name, and not the
 * host that NO_PROXY means.
 */
#include "backend/client/http_proxy.h"

#include <arpa/inet.h>
#include <strings.h>

#include "spec/base/mem.h"

struct proxy_address {
	int family; /* 0 if it is not an address */
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

/* "foo.org" is the domain and its subdomains; ".foo.org" and "*.foo.org" are only the latter. */
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

/* Remove ":PORT" and brackets from *RULE. Return false if the rule is for another port. */
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
