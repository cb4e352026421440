/* SPDX-License-Identifier: MIT */
/*
 * http: how it verifies the server, and how it authenticates itself: certificates, proxies and
 * impersonation.
 */
#include "tests/unit/backend/client/http_rig.h"

#include <arpa/inet.h>

#define STR(text)  ((char *)(uintptr_t)(text)) /* nobody writes to it */
#define call_scope struct rig_call cleanup(rig_clear)

/* Send a POST to /echo, with the settings of rig.connection. */
static void ask(struct rig_call *c)
{
	c->call.method = HTTP_POST;
	rig_ask_call(c, "/echo");
}

static void assert_in(const struct rig_call *c, const char *text)
{
	if (!strstr(c->body, text))
		fail_msg("no %s in %s", text, c->body);
}

/* --- the server's certificate --- */

/*
 * http refuses a server whose certificate is for another name, or is not from the kubeconfig's CA.
 * It sends such a server nothing. Variables for proxies that kubectl ignores have no effect.
 */
static void test_verified(void **state)
{
#define CA_TEXT	  "certificate-authority and tls-server-name"
#define NO_CA	  "names no certificate-authority"
#define NAME_TEXT "target host name 'localhost'"
	static const struct {
		const char *server, *ca; /* CA: a file of http_server.py, or NULL */
		const char *tls_server_name;
		bool insecure;
		const char *refused; /* a part of the text, or NULL */
	} rows[] = {
		{"tls", "ca.pem", "", false, NULL},
		{"h2", "ca.pem", "", false, NULL},
		{"h2", "other-ca.pem", "", false, CA_TEXT},
		{"h2", "other-ca.pem", "", false, "localhost:"},
		{"h2", NULL, "", false, NO_CA},
		{"named", "ca.pem", "", false, NAME_TEXT},
		{"named", "ca.pem", "kubernetes.test", false, NULL},
		{"named", NULL, "", true, NULL},
	};

	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	setenv("HTTPS_PROXY", "http://127.0.0.1:1", 1);
	for (size_t i = 0; i < array_size(rows); i++) {
		call_scope c = {.call = {.retry = true}};

		rig_prepare(rows[i].server);
		free(rig.connection.ca_pem);
		rig.connection.ca_pem = rows[i].ca ? server_pem(rows[i].ca) : strdup("");
		rig_set(&rig.connection.tls_server_name, rows[i].tls_server_name);
		rig.connection.insecure = rows[i].insecure;
		rig_connect();
		ask(&c);
		if (!rows[i].refused) {
			assert_string_equal(c.text, "");
			assert_int_equal(c.status, 200);
			/* tls-server-name is only for TLS, not for the host. */
			assert_in(&c, strstr(rig.url, "localhost:"));
		} else {
			assert_string_equal(rig_result(&c), "Input/output error, 0");
			assert_non_null(strstr(c.text, rows[i].refused));
		}
	}
}

/* If a connection fails before http can send the request, the server has not acted. */
static void test_no_handshake(void **state)
{
	call_scope other = {0}, hung = {.call = {.deadline_ms = 300}}, next = hung;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char url[64];

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
	rig_prepare("h2");
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%u", ntohs(a.sin_port));
	rig_set(&rig.connection.server, url);
	rig_connect();
	/* The peer closes this connection. On the next one it sends nothing. */
	other.call.method = HTTP_POST;
	rig_send(&other, "/echo");
	close(accept(fd, NULL, NULL));
	rig_wait(&other);
	assert_true(other.err == -EIO || other.err == -EHOSTUNREACH);
	assert_false(other.sent);
	rig_send(&next, "/echo");
	ask(&hung);
	/* the same error as curl's own timeout */
	assert_string_equal(rig_result(&hung), "No route to host, 0");
	assert_non_null(strstr(hung.text, "no connection within 0.3 s"));
	rig_wait(&next);
	assert_int_equal(next.err, -EHOSTUNREACH);
}

static void test_no_ca_file(void **state)
{
	cleanup_free char *text = NULL;
	struct http *http;

	rig_prepare("h2");
	rig_set(&rig.connection.ca_pem, "");
	rig_set(&rig.connection.ca_file, "/proc/nope");
	assert_int_equal(http_new(rig.loop, &rig.connection, NULL, &http, &text), -ENOENT);
	assert_non_null(strstr(text, "/proc/nope"));
}

/* --- the client's certificate --- */

static void test_client_certificate(void **state)
{
	cleanup_free char *alice = server_pem("alice.pem"), *alice_key = server_pem("alice.key");
	cleanup_free char *bob = server_pem("bob.pem"), *bob_key = server_pem("bob.key");
	call_scope as_alice = {0}, as_bob = {0}, stream = {.call = {.stream = true}};
	struct http_counts n;

	rig_begin("mtls");
	credentials.view =
		(struct credential_parts){.cert_pem = alice, .key_pem = alice_key, .generation = 1};
	rig_send(&stream, "/stream");
	sem_wait_or_fail(&stream.head_came);
	ask(&as_alice);
	assert_in(&as_alice, " alice\n");
	/* A new certificate uses new connections. Requests that are running keep the old ones. */
	credentials.view =
		(struct credential_parts){.cert_pem = bob, .key_pem = bob_key, .generation = 2};
	ask(&as_bob);
	assert_in(&as_bob, " bob\n");
	assert_false(stream.over);
	rig_expect("/release", NULL);
	rig_wait(&stream);
	assert_int_equal(stream.err, 0);
	http_count(rig.http, &n);
	assert_int_equal(n.connections, 3);
}

static void test_bad_certificate(void **state)
{
	cleanup_free char *alice = server_pem("alice.pem"), *locked = server_pem("locked.key");
	cleanup_free char *bob_key = server_pem("bob.key");
	const struct credential_parts views[] = {
		{0},
		/* The key has a passphrase. http must not prompt for it. */
		{.cert_pem = alice, .key_pem = locked},
		{.cert_pem = alice, .key_pem = bob_key},
		{.cert_pem = "no PEM", .key_pem = "no PEM"},
	};

	rig_begin("mtls");
	for (size_t i = 0; i < array_size(views); i++) {
		call_scope c = {0};

		credentials.view = views[i];
		ask(&c);
		assert_int_equal(c.err, -EIO);
		assert_true(*c.text);
		if (i > 0)
			assert_non_null(strstr(c.text, "client-certificate and client-key"));
		assert_null(strstr(c.text, "BEGIN"));
	}
}

/* --- proxies --- */

/* Only the proxies can resolve the name of the host. */
static void by_proxy(const char *kind, const char *name, const char *proxy)
{
	call_scope c = {0};
	char url[64];

	rig_prepare(name);
	(void)snprintf(url, sizeof(url), "http%s://only-the-proxy.test:%u",
		       strcmp(name, "plain") == 0 ? "" : "s", server_port(name));
	rig_set(&rig.connection.server, url);
	if (strcmp(name, "plain") != 0)
		rig_set(&rig.connection.tls_server_name, "localhost");
	if (kind) {
		(void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u", kind, server_port(proxy));
		rig_set(&rig.connection.proxy_url, url);
	}
	rig_connect();
	credentials.view.authorization = "Authorization: Bearer abc";
	ask(&c);
	assert_string_equal(c.text, "");
	assert_in(&c, "authorization: Bearer abc\n");
	assert_in(&c, "only-the-proxy.test:");
}

static void test_proxy(void **state)
{
	char url[64];

	by_proxy("http", "tls", "proxy");
	by_proxy("http", "h2", "proxy");
	by_proxy("socks5", "plain", "socks");
	by_proxy("socks5", "tls", "socks");
	by_proxy("socks5h", "h2", "socks");
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", server_port("proxy"));
	setenv("HTTPS_PROXY", url, 1);
	by_proxy(NULL, "h2", "proxy");
	unsetenv("HTTPS_PROXY");
}

static void test_proxy_fails(void **state)
{
	call_scope c = {0};

	rig_prepare("h2");
	rig_set(&rig.connection.proxy_url, "http://127.0.0.1:1");
	rig_connect();
	ask(&c);
	assert_string_equal(rig_result(&c), "No route to host, 0");
	assert_non_null(strstr(c.text, "proxy"));
}

/* --- impersonation --- */

static void test_impersonation(void **state)
{
	char *groups[] = {STR("system:authenticated"), STR("data science")};
	struct spec_pair extra[] = {{STR("scopes"), STR("view")},
				    {STR("scopes"), STR("edit")},
				    {STR("acme.org/Team"), STR("a b")}};
	call_scope c = {0};

	rig_prepare("h2");
	rig_set(&rig.connection.as, "j\xc3\xb6rg@example.org");
	rig_set(&rig.connection.as_uid, "42");
	rig.connection.as_groups = groups;
	rig.connection.n_as_groups = 2;
	rig.connection.as_extra = extra;
	rig.connection.n_as_extra = 3;
	rig_connect();
	rig.connection.n_as_groups = rig.connection.n_as_extra = 0; /* they are not malloc'ed */
	rig.connection.as_groups = NULL;
	rig.connection.as_extra = NULL;
	ask(&c);
	assert_in(&c, "\nimpersonate-extra-acme.org%2fteam: a b\n"
		      "impersonate-extra-scopes: edit\n"
		      "impersonate-extra-scopes: view\n"
		      "impersonate-group: data science\n"
		      "impersonate-group: system:authenticated\n"
		      "impersonate-uid: 42\n"
		      "impersonate-user: j\xc3\xb6rg@example.org\n");
}

static int teardown(void **state)
{
	unsetenv("ALL_PROXY");
	unsetenv("HTTPS_PROXY");
	return rig_teardown(state);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(test_##t, rig_setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(verified),		  TEST(no_handshake),	 TEST(no_ca_file),
		TEST(client_certificate), TEST(bad_certificate), TEST(proxy),
		TEST(proxy_fails),	  TEST(impersonation),
	};

	return cmocka_run_group_tests(tests, server_start, server_end);
}
