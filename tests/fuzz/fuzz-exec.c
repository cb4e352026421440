/* SPDX-License-Identifier: MIT */
/* Any bytes as the output of an exec plugin. The result is a credential that can be sent, or an error. */
#include "fuzz.h"

#include "spec/api/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_credential c;
	int err = spec_exec_reply((const char *)data, size, "client.authentication.k8s.io/v1", &c,
				  &e);

	assert(err == e.err);
	if (err == 0) {
		assert(*c.token || *c.cert_pem);
		assert(!*c.cert_pem == !*c.key_pem);
		assert(!strpbrk(c.token, "\r\n"));
	}
	spec_credential_clear(&c);
	spec_errors_clear(&e);
	return 0;
}
