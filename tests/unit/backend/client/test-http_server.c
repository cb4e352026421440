/* SPDX-License-Identifier: MIT */
/*
 * http without a server: how it uses a kubeconfig, which proxy it chooses, and what curl's errors
 * mean.
 */
#include <errno.h>

#include "backend/client/http_easy.h"
#include "backend/client/http_server.h"
#include "tests/unit/unit.h"

/* --- the connection --- */

#define PEM	  "-----BEGIN CERTIFICATE-----\n"
#define STR(text) ((char *)(uintptr_t)(text)) /* nobody writes to it */

static char * or (char *text, const char *otherwise)
{
	return text ? text : STR(otherwise);
}

/* Fill in the texts that C lacks. */
static struct spec_connection connection(struct spec_connection c)
{
	c.context = STR("prod");
	c.server = or (c.server, "https://api.example.org:6443/k8s/clusters/c1");
	c.tls_server_name = or (c.tls_server_name, "");
	c.proxy_url = or (c.proxy_url, "");
	c.ca_file = or (c.ca_file, "");
	c.ca_pem = or (c.ca_pem, "");
	c.as = or (c.as, "");
	c.as_uid = STR("");
	return c;
}

static void test_server(void **state)
{
	char path[] = "/tmp/kxfs-ca-XXXXXX";
	struct spec_connection c = connection((struct spec_connection){0});
	cleanup_fd int fd = mkstemp(path);
	struct http_server s;
	char *text;

	assert_int_equal(http_server_init(&s, &c, &text), 0);
	assert_string_equal(s.url, "https://api.example.org:6443/k8s/clusters/c1");
	assert_string_equal(s.name, "api.example.org:6443");
	assert_string_equal(s.proxy, "");
	assert_null(s.connect_to);
	http_server_fini(&s);

	c.server = STR("https://[2001:db8::1]");
	c.tls_server_name = STR("kubernetes");
	c.ca_file = path;
	assert_int_equal(write(fd, PEM, strlen(PEM)), strlen(PEM));
	assert_int_equal(http_server_init(&s, &c, &text), 0);
	assert_string_equal(s.url, "https://kubernetes");
	assert_string_equal(s.connect_to, "::[2001:db8::1]:443");
	assert_string_equal(s.host, "Host: [2001:db8::1]:443");
	assert_string_equal(s.ca_pem, PEM);
	http_server_fini(&s);
	unlink(path);
}

static void test_server_refused(void **state)
{
	char *groups[] = {STR("fine"), STR("bad\r\nX: y")};
	struct spec_pair extra[] = {{STR("k"), STR("a\nb")}};
	const struct {
		struct spec_connection c;
		const char *says;
	} rows[] = {
		{{.server = STR("")}, "context prod: its server"},
		{{.server = STR("ftp://a")}, "context prod: its server"},
		{{.server = STR("file:///etc/passwd")}, "context prod: its server"},
		{{.server = STR("https://")}, "context prod: its server"},
		{{.server = STR("https://u:p@a")}, "context prod: its server"},
		{{.server = STR("https://a b")}, "context prod: its server"},
		{{.tls_server_name = STR("a/b")}, "tls-server-name"},
		{{.proxy_url = STR("socks4://a")}, "http:, https: or socks5:"},
		{{.ca_pem = STR("rubbish")}, "is not PEM"},
		{{.ca_file = STR("/")}, "certificate authority / of"},
		{{.ca_file = STR("/dev/null")}, "/dev/null"},
		{{.as = STR("a\r\nb")}, "Impersonate-User"},
		{{.as_groups = groups, .n_as_groups = 2}, "Impersonate-Group"},
		{{.as_extra = extra, .n_as_extra = 1}, "Impersonate-Extra-k"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_connection c = connection(rows[i].c);
		cleanup_free char *text = NULL;
		struct http_server s;

		assert_int_equal(http_server_init(&s, &c, &text), -EINVAL);
		assert_non_null(text);
		if (!strstr(text, rows[i].says))
			fail_msg("no \"%s\" in \"%s\"", rows[i].says, text);
	}
}

/* --- proxy variables of the environment --- */

static const char *upper, *lower, *rules;

static char *get(const char *name)
{
	const char *value = NULL;

	if (streq(name, "HTTPS_PROXY"))
		value = upper;
	else if (streq(name, "https_proxy"))
		value = lower;
	else if (streq(name, "NO_PROXY"))
		value = rules;
	else if (streq(name, "ALL_PROXY") || streq(name, "http_proxy"))
		value = "http://wrong";
	return STR(value);
}

static bool has_proxy(const char *no_proxy, const char *host, unsigned port)
{
	upper = "http://p:3128";
	rules = no_proxy;
	return *http_proxy_choose(true, host, port, get);
}

static void test_proxy(void **state)
{
	upper = lower = rules = NULL;
	assert_string_equal(http_proxy_choose(true, "a", 443, get), "");
	assert_string_equal(http_proxy_choose(false, "a", 80, get), "http://wrong");
	lower = "http://lower";
	assert_string_equal(http_proxy_choose(true, "a", 443, get), "http://lower");
	upper = "http://upper";
	assert_string_equal(http_proxy_choose(true, "a", 443, get), "http://upper");
}

static void test_no_proxy(void **state)
{
	static const struct {
		const char *rules, *host;
		bool proxy;
	} rows[] = {
		{NULL, "api.example.org", true},
		{NULL, "localhost", false},
		{NULL, "127.9.9.9", false},
		{NULL, "::1", false},
		{NULL, "128.0.0.1", true},
		{"*", "api.example.org", false},
		{"example.org", "example.org", false},
		{"example.org", "API.Example.ORG", false},
		{"example.org", "notexample.org", true},
		{".example.org", "api.example.org", false},
		{".example.org", "example.org", true},
		{"*.example.org", "api.example.org", false},
		{"*.example.org", "example.org", true},
		{"a, b ,example.org", "example.org", false},
		{"example.org:6443", "example.org", false},
		{"example.org:443", "example.org", true},
		{"10.0.0.0/8", "10.1.2.3", false},
		{"10.0.0.0/8", "11.1.2.3", true},
		{"10.128.0.0/9", "10.1.2.3", true},
		{"10.0.0.0/8", "10.example.org", true},
		{"10.0.0.0/99", "10.0.0.0", true},
		{"10.0.0.0/", "10.0.0.0", true},
		{"10.1.2.3", "10.1.2.3", false},
		{"10.1.2.3:6443", "10.1.2.3", false},
		{"10.1.2.3:1", "10.1.2.3", true},
		{"2001:db8::1", "2001:db8::1", false},
		{"[2001:db8::1]:6443", "2001:db8:0::1", false},
		{"[2001:db8::1]:1", "2001:db8::1", true},
		{"2001:db8::/32", "2001:db8:9::1", false},
		{",,: .,*.,", "example.org", true},
	};

	for (size_t i = 0; i < array_size(rows); i++)
		if (has_proxy(rows[i].rules, rows[i].host, 6443) != rows[i].proxy)
			fail_msg("%s: %s", rows[i].rules, rows[i].host);
}

/* --- error texts --- */

static void test_errors(void **state)
{
	struct http_server s = {.name = STR("a:1"), .proxy = STR("")};
	cleanup_free char *text = http_error_text(CURLE_COULDNT_CONNECT, "", &s);

	assert_string_equal(text, "a:1: Couldn't connect to server; is the server's URL in the "
				  "kubeconfig right, and can this machine reach it (VPN, proxy)?");
	assert_int_equal(http_error_errno(CURLE_COULDNT_RESOLVE_HOST), -EHOSTUNREACH);
	assert_int_equal(http_error_errno(CURLE_PEER_FAILED_VERIFICATION), -EIO);
	assert_false(http_error_passes(CURLE_PEER_FAILED_VERIFICATION));
	assert_true(http_error_passes(CURLE_RECV_ERROR));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server), cmocka_unit_test(test_server_refused),
		cmocka_unit_test(test_proxy),  cmocka_unit_test(test_no_proxy),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
