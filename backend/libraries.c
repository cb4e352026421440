/* SPDX-License-Identifier: MIT */
/* Which libraries this process runs with, which may differ from those that it was built with, and what they can do. */
#include <curl/curl.h>
#include <uv.h>

#include "backend/backend.h"
#include "backend/client/kubeconfig.h"
#include "spec/base/mem.h"

char *backend_libraries(void)
{
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);

	return text_print("libuv %s, libcurl %s, %s", uv_version_string(), curl->version,
			  curl->ssl_version ? curl->ssl_version : "no TLS");
}

char *backend_features(void)
{
	static const struct {
		int bit;
		const char *name;
	} known[] = {
		{CURL_VERSION_SSL, "https"},	       {CURL_VERSION_HTTPS_PROXY, "https-proxy"},
		{CURL_VERSION_HTTP2, "http2"},	       {CURL_VERSION_LIBZ, "gzip"},
		{CURL_VERSION_ASYNCHDNS, "async-dns"}, {CURL_VERSION_IPV6, "ipv6"},
	};
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
	char *text = text_copy("");

	for (size_t i = 0; i < array_size(known); i++) {
		if (curl->features & known[i].bit)
			text_set(&text, "%s%s%s", text, *text ? " " : "", known[i].name);
	}
	return text;
}

int backend_contexts(const char *kubeconfig, char ***ret, char **ret_text)
{
	return kubeconfig_contexts(kubeconfig, ret, ret_text);
}
