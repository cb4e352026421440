/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as two kubeconfig files (cut at the first form feed), which are merged. Each of their
 * contexts leads to an error text, or to a complete connection without characters that would break
 * a header line.
 */
#include "fuzz.h"

#include "spec/api/kubeconfig.h"

static void check_line(const char *text)
{
	assert(text);
	for (; *text; text++)
		assert((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check(const struct spec_connection *c)
{
	const char *const lines[] = {c->server, c->proxy_url, c->token, c->as, c->as_uid};
	cleanup_free char *info = NULL;

	for (size_t i = 0; i < array_size(lines); i++)
		check_line(lines[i]);
	for (size_t i = 0; i < c->n_as_groups; i++)
		check_line(c->as_groups[i]);
	assert(*c->namespace && *c->server && c->server[strlen(c->server) - 1] != '/');
	assert(!*c->ca_file || *c->ca_file == '/');
	assert(c->exec.api_version && c->password && c->cert_pem && c->key_file);
	if (c->exec.command) {
		info = spec_exec_info(c, NULL);
		assert(info && *info == '{');
	}
}

static void connect_to(const struct spec_kubeconfig *k, const char *context)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_connection c;
	int err = spec_kubeconfig_connect(k, context, &c, &e);

	assert((err == 0) == (e.n == 0));
	if (err == 0)
		check(&c);
	spec_connection_clear(&c);
	spec_errors_clear(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec_kubeconfig *k = spec_kubeconfig_new();
	const uint8_t *cut = size ? memchr(data, '\f', size) : NULL;
	size_t first = cut ? (size_t)(cut - data) : size;
	struct spec_errors e = SPEC_ERRORS_INIT;

	assert(k);
	assert(spec_kubeconfig_merge(k, "/d/one", (const char *)data, first, &e) == e.err);
	if (cut)
		spec_kubeconfig_merge(k, "/e/two", (const char *)cut + 1, size - first - 1, &e);
	connect_to(k, "");
	connect_to(k, "k");
	spec_errors_clear(&e);
	spec_kubeconfig_free(k);
	return 0;
}
