/* SPDX-License-Identifier: MIT */
/*
 * kubeconfig files: their contents, how they are merged, and the exact text of each refusal. Also
 * the output of exec plugins.
 */
#include <errno.h>

#include "spec/api/kubeconfig.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

struct world {
	struct spec_kubeconfig *k;
	struct spec_connection c;
	struct spec_errors e;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->k = spec_kubeconfig_new();
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	spec_kubeconfig_free(w->k);
	spec_connection_clear(&w->c);
	spec_errors_clear(&w->e);
	free(w);
	return 0;
}

static int merge(struct world *w, const char *file, const char *text)
{
	return spec_kubeconfig_merge(w->k, file, text, strlen(text), &w->e);
}

static int connect_to(struct world *w, const char *context)
{
	spec_connection_clear(&w->c);
	spec_errors_clear(&w->e);
	return spec_kubeconfig_connect(w->k, context, &w->c, &w->e);
}

/* Assert that the text of the errors contains WHAT, and does not contain SECRET. */
static void assert_says(struct world *w, const char *what, const char *secret)
{
	cleanup_free char *text = spec_errors_text(&w->e, NULL);

	assert_non_null(text);
	if (!strstr(text, what))
		fail_msg("\"%s\" is not in: %s", what, text);
	if (secret && strstr(text, secret))
		fail_msg("the secret is in: %s", text);
}

/* "-----BEGIN X-----" */
#define PEM64 "LS0tLS1CRUdJTiBYLS0tLS0="

static const char full[] =
	"apiVersion: v1\n"
	"kind: Config\n"
	"preferences: {}\n"
	"unknown: [1, 2]\n"
	"current-context: dev\n"
	"contexts:\n"
	"- name: dev\n"
	"  context: {cluster: c1, user: u1, namespace: team, more: x}\n"
	"- name: arn:aws:eks:eu/prod\n"
	"  context: {cluster: c2, user: u2}\n"
	"- {name: anonymous, context: {cluster: c1}}\n"
	"clusters:\n"
	"- name: c1\n"
	"  cluster:\n"
	"    server: https://one:6443/prefix/\n"
	"    certificate-authority: ca.crt\n"
	"    tls-server-name: other\n"
	"    proxy-url: socks5://u:p@proxy:1080\n"
	"- name: c2\n"
	"  cluster: {server: 'http://127.0.0.1:8001', certificate-authority-data: " PEM64 "}\n"
	"users:\n"
	"- name: u1\n"
	"  user:\n"
	"    token: abc\n"
	"    tokenFile: /run/token\n"
	"    client-certificate: ../pki/me.crt\n"
	"    client-key-data: " PEM64 "\n"
	"    as: boss\n"
	"    as-uid: '17'\n"
	"    as-groups: [a, b]\n"
	"    as-user-extra: {scopes: [x, y]}\n"
	"- name: u2\n"
	"  user:\n"
	"    exec:\n"
	"      apiVersion: client.authentication.k8s.io/v1\n"
	"      command: ./bin/login\n"
	"      args: [--cluster, 010, yes]\n"
	"      env: [{name: PROFILE, value: 12}]\n"
	"      installHint: get it\n"
	"      interactiveMode: IfAvailable\n"
	"      provideClusterInfo: true\n";

static void test_full(void **state)
{
	struct world *w = *state;

	assert_int_equal(merge(w, "/users/ada/.kube/config", full), 0);
	assert_int_equal(connect_to(w, ""), 0);
	assert_string_equal(w->c.context, "dev");
	assert_string_equal(w->c.namespace, "team");
	assert_string_equal(w->c.server, "https://one:6443/prefix");
	assert_string_equal(w->c.ca_file, "/users/ada/.kube/ca.crt");
	assert_string_equal(w->c.tls_server_name, "other");
	assert_string_equal(w->c.proxy_url, "socks5://u:p@proxy:1080");
	assert_string_equal(w->c.token, "abc");
	assert_string_equal(w->c.token_file, "/run/token");
	assert_string_equal(w->c.cert_file, "/users/ada/.kube/../pki/me.crt");
	assert_string_equal(w->c.key_pem, "-----BEGIN X-----");
	assert_string_equal(w->c.key_file, "");
	assert_string_equal(w->c.as, "boss");
	assert_string_equal(w->c.as_uid, "17");
	assert_int_equal(w->c.n_as_groups, 2);
	assert_string_equal(w->c.as_groups[1], "b");
	assert_int_equal(w->c.n_as_extra, 2);
	assert_string_equal(w->c.as_extra[1].key, "scopes");
	assert_string_equal(w->c.as_extra[1].value, "y");
	assert_null(w->c.exec.command);
	assert_int_equal(connect_to(w, "anonymous"), 0);
	assert_string_equal(w->c.token, "");
	assert_int_equal(connect_to(w, "arn:aws:eks:eu/prod"), 0);
	assert_string_equal(w->c.namespace, "default");
	assert_string_equal(w->c.ca_pem, "-----BEGIN X-----");
	assert_string_equal(w->c.exec.command, "/users/ada/.kube/./bin/login");
	assert_int_equal(w->c.exec.n_args, 3);
	assert_string_equal(w->c.exec.args[1], "010");
	assert_string_equal(w->c.exec.env[0].key, "PROFILE");
	assert_string_equal(w->c.exec.env[0].value, "12");
	assert_string_equal(w->c.exec.install_hint, "get it");
}

static void test_contexts(void **state)
{
	static const char *const expected[] = {"prod/training", "arn:x/y/default", "bare/default",
					       "late/default"};
	struct world *w = *state;
	char **got;

	assert_int_equal(merge(w, "/a",
			       "contexts:\n- {name: prod, context: {namespace: training}}\n"
			       "- {name: arn:x/y, context: {namespace: ''}}\n- {name: bare}\n"),
			 0);
	assert_int_equal(merge(w, "/b",
			       "contexts:\n- {name: late, context: {namespace: [x]}}\n"
			       "- {name: prod, context: {namespace: unused}}\n"),
			 0);
	got = spec_kubeconfig_contexts(w->k);
	for (size_t i = 0; i < array_size(expected); i++) {
		assert_string_equal(got[i], expected[i]);
		free(got[i]);
	}
	assert_null(got[array_size(expected)]);
	free(got);
}

static void test_merge(void **state)
{
	struct world *w = *state;

	assert_int_equal(merge(w, "/a/1", "# nothing\n---\n"), 0);
	assert_int_equal(merge(w, "/a/2",
			       "users: [{name: u, user: {username: me}}]\ncurrent-context: ''\n"
			       "contexts: null\n"),
			 0);
	assert_int_equal(merge(w, "/b/3",
			       "current-context: k\n"
			       "contexts: [{name: k, context: {cluster: c, user: u}}]\n"
			       "users: [{name: u, user: {password: secret}}]\n"
			       "clusters: [{name: c, cluster: {server: https://first, "
			       "certificate-authority: x}}]\n"),
			 0);
	assert_int_equal(merge(w, "/c/4",
			       "{\"current-context\": \"other\", \"clusters\": [{\"name\": \"c\", "
			       "\"cluster\": {\"server\": \"https://second\"}}]}"),
			 0);
	assert_int_equal(connect_to(w, ""), 0);
	assert_string_equal(w->c.context, "k");
	assert_string_equal(w->c.server, "https://first");
	assert_string_equal(w->c.ca_file, "/b/x");
	/* if a name occurs twice, the first entry counts as a whole */
	assert_string_equal(w->c.user, "me");
	assert_string_equal(w->c.password, "");
}

/* Connect with one cluster and one user that have the given fields. */
static int connect_one(struct world *w, const char *cluster, const char *user)
{
	cleanup_free char *text = text_print(
		"current-context: k\ncontexts: [{name: k, context: {cluster: c, user: u}}]\n"
		"clusters:\n- {name: c, cluster: {%s}}\nusers:\n- {name: u, user: {%s}}\n",
		cluster, user);

	spec_kubeconfig_free(w->k);
	w->k = spec_kubeconfig_new();
	assert_int_equal(merge(w, "/d/config", text), 0);
	return connect_to(w, "");
}

static void test_refused(void **state)
{
#define EXEC "exec: {apiVersion: client.authentication.k8s.io/v1"
	static const char *const clusters[][2] = {
		{"", "/d/config:4:3: this cluster has no \"server\""},
		{"server: one", "/d/config:4:31: server is not a URL"},
		{"server: 'https://'", "server is not a URL"},
		{"server: 'https://a b'", "server is not a URL"},
		{"server: 'https://s3cret:s3cret@h'", "contains an \"@\""},
		{"server: https://h, proxy-url: 'ftp://s3cret'", "proxy-url is not a URL"},
		{"server: https://h, certificate-authority-data: s3cret!", "is not base64"},
		{"server: https://h, certificate-authority-data: czNjcmV0", "PEM"},
		{"server: https://h, insecure-skip-tls-verify: s3cret", "true or false"},
		{"server: https://h, insecure-skip-tls-verify: true, certificate-authority: x",
		 "can't be combined"},
	};
	static const char *const users[][2] = {
		{"token: \"a\\r\\ns3cret\"", "/d/config:6:27: token contains a line"},
		{"token: [s3cret]", "token must be text"},
		{"token: s3cret, username: u", "keep one"},
		{"client-certificate: x", "without its key"},
		{"client-key: x", "without its certificate"},
		{"auth-provider: {name: gcp}", "no longer supports"},
		{"as-groups: [x]", "need \"as\""},
		{"as-user-extra: [x]", "as-user-extra must be a map of lists"},
		{"as-user-extra: {x: y}", "as-user-extra must be a map of lists"},
		{"as: \"x\\ny\"", "control character"},
		{"exec: {command: x}", "apiVersion must be"},
		{EXEC "}", "has no command"},
		{EXEC "alpha1, command: x}", "apiVersion must be"},
		{EXEC ", command: x, interactiveMode: Always}", "terminal"},
		{EXEC ", command: x, env: [{name: ''}]}", "name: NAME"},
	};
	struct world *w = *state;

	for (size_t i = 0; i < array_size(clusters); i++) {
		assert_int_equal(connect_one(w, clusters[i][0], ""), -EINVAL);
		assert_says(w, clusters[i][1], "s3cret");
	}
	for (size_t i = 0; i < array_size(users); i++) {
		assert_int_equal(connect_one(w, "server: https://h", users[i][0]), -EINVAL);
		assert_says(w, users[i][1], "s3cret");
	}
}

static void test_unknown(void **state)
{
	static const char *const rows[][2] = {
		{"dv", "did you mean \"dev\""},
		{"x", "/b:2:32: the context's cluster \"nope\" is not"},
		{"y", "/b:3:42: the context's user \"nope\" is not"},
		{"z", "/b:4:3: the context names no cluster"},
	};
	struct world *w = *state;

	assert_int_equal(connect_to(w, ""), -EINVAL);
	assert_says(w, "no current-context", NULL);
	assert_int_equal(merge(w, "/a", full), 0);
	assert_int_equal(merge(w, "/b",
			       "contexts:\n- {name: x, context: {cluster: nope}}\n"
			       "- {name: y, context: {cluster: c1, user: nope}}\n- name: z\n"),
			 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		assert_int_equal(connect_to(w, rows[i][0]), -EINVAL);
		assert_says(w, rows[i][1], NULL);
	}
}

static void test_bad_files(void **state)
{
	static const char *const bad[][2] = {
		{"- 1\n", "1:1: this is not a kubeconfig"},
		{"kind: Pod\n", "not a kubeconfig file"},
		{"clusters: {a: b}\n", "1:11: clusters: must be a list"},
		{"clusters: [{name: a}, {name: b}, {name: a}]\n", "\"a\" is given twice"},
		{"clusters: [{cluster: {}}]\n", "must be {name: NAME"},
		{"users: [{name: a, user: 1}]\n", "user must be a map"},
		{"users: [1]\n", "must be {name: NAME"},
		{"current-context: [a]\n", "name of a context"},
		{"users:\n\t- a\n", "2:1: this is not one valid YAML document (kxfs does not "
				    "quote the file, which may contain secrets)\n"},
		{"\xff\xfes", "1:1: the file is encoded in UTF-16; save it as UTF-8"},
		{"password: s3cret\xe9\n", "1:17: byte 0xe9 is not UTF-8"},
		{"%TAG ! s3cret\n---\n{}\n", "1:1: %TAG is not supported"},
		{"a: 1\npassword: *s3cret\n",
		 "2:11: this is not one valid YAML document (kxfs does "
		 "not quote the file, which may contain secrets); a "
		 "value that begins with"},
		{"password: !s3cret x\n", "needs quotes"},
		{"password: &$s3cret\n", "needs quotes"},
		{"a: 1\n---\nb: 2\n", "3:1: this is not one valid YAML document"},
		{"s3cret: 1\ns3cret: 2\n", "2:1: this is not one valid YAML document"},
	};
	struct world *w = *state;

	for (size_t i = 0; i < array_size(bad); i++) {
		spec_errors_clear(&w->e);
		assert_int_equal(merge(w, "/x", bad[i][0]), -EINVAL);
		assert_says(w, bad[i][1], "s3cret");
	}
}

static void test_in_cluster(void **state)
{
	struct world *w = *state;

	assert_int_equal(spec_kubeconfig_in_cluster("10.0.0.1", "443", "team", &w->c), 0);
	assert_string_equal(w->c.server, "https://10.0.0.1:443");
	assert_string_equal(w->c.namespace, "team");
	assert_string_equal(w->c.token, "");
	spec_connection_clear(&w->c);
	assert_int_equal(spec_kubeconfig_in_cluster("fd00::1", "6443", "", &w->c), 0);
	assert_string_equal(w->c.server, "https://[fd00::1]:6443");
	assert_string_equal(w->c.namespace, "default");
	spec_connection_clear(&w->c);
	assert_int_equal(spec_kubeconfig_in_cluster("a/b", "443", "", &w->c), -EINVAL);
}

static void test_exec_info(void **state)
{
	struct world *w = *state;
	cleanup_free char *with = NULL, *without = NULL, *file = NULL;

	assert_int_equal(merge(w, "/a", full), 0);
	assert_int_equal(connect_to(w, "arn:aws:eks:eu/prod"), 0);
	with = spec_exec_info(&w->c, NULL);
	assert_string_equal(with, "{\"kind\":\"ExecCredential\","
				  "\"apiVersion\":\"client.authentication.k8s.io/v1\",\"spec\":{"
				  "\"cluster\":{\"server\":\"http://127.0.0.1:8001\","
				  "\"certificate-authority-data\":\"" PEM64 "\"},"
				  "\"interactive\":false}}");
	w->c.ca_pem[0] = '\0';
	file = spec_exec_info(&w->c, "x");
	assert_non_null(strstr(file, "\"certificate-authority-data\":\"eA==\""));
	w->c.exec.provide_cluster_info = false;
	without = spec_exec_info(&w->c, NULL);
	assert_null(strstr(without, "cluster"));
}

static void test_exec_config(void **state)
{
	static const char cluster[] =
		"server: https://h, extensions: [{name: x, extension: 1}, {name: "
		"client.authentication.k8s.io/exec, extension: {audience: [a, 1]}}]";
	struct world *w = *state;
	cleanup_free char *text = NULL;

	assert_int_equal(connect_one(w, cluster,
				     "exec: {apiVersion: client.authentication.k8s.io/v1beta1, "
				     "command: x, provideClusterInfo: true}"),
			 0);
	text = spec_exec_info(&w->c, NULL);
	assert_non_null(strstr(text, "\"config\":{\"audience\":[\"a\",1]}"));
}

/* tests/unit/backend/client/test-credential.c has more good answers. */
static void test_exec_reply(void **state)
{
#define V1    "client.authentication.k8s.io/v1"
#define REPLY "{'kind': 'ExecCredential', 'apiVersion': '" V1 "', 'status': {"
	static const char *const bad[][2] = {
		{"", "is not JSON"},
		{"s3cret", "not an object"},
		{"*s3cret", "1:1: the plugin's answer is not an ExecCredential: it is not JSON"},
		{"{'kind': 's3cret'}", "its kind is not ExecCredential"},
		{"{'kind': 'ExecCredential', 'apiVersion': 's3cret'}",
		 "the plugin's answer has another"},
		{"{'kind': 'ExecCredential', 'apiVersion': '" V1 "'}", "no status"},
		{REPLY "}}", "neither a token"},
		{REPLY "'token': {'s3cret': 1}}}", "must be text"},
		{REPLY "'token': 's3cret\\r\\nX: y'}}", "line break"},
		{REPLY "'token': 's3cret\\u0000'}}", "must be text"},
		{REPLY "'token': 's3cret', 'clientKeyData': 's3cret'}}", "without its"},
		{REPLY "'clientCertificateData': 's3cret', 'clientKeyData': 's3cret'}}", "PEM"},
		{REPLY "'token': 's3cret', 'expirationTimestamp': 's3cret'}}", "not a time"},
	};

	cleanup_free char *good =
		unit_json(text_copy(REPLY "'token': 't', 'expirationTimestamp': null}}"));
	struct spec_credential c;

	for (size_t i = 0; i < array_size(bad); i++) {
		cleanup_free char *json = unit_json(text_copy(bad[i][0]));
		struct world w = {0};

		assert_int_equal(spec_exec_reply(json, strlen(json), V1, &c, &w.e), -EINVAL);
		assert_says(&w, bad[i][1], "s3cret");
		spec_credential_clear(&c);
		spec_errors_clear(&w.e);
	}
	assert_int_equal(spec_exec_reply(good, strlen(good), V1, &c, NULL), 0);
	assert_true(streq(c.token, "t") && c.expires == 0);
	spec_credential_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_contexts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_merge, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_cluster, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_info, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_config, setup, teardown),
		cmocka_unit_test(test_exec_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
