/* SPDX-License-Identifier: MIT */
/*
 * What curl's error codes mean for us: the errno, whether trying again may help, and words for people
 * that say what to do.
 */
#include <errno.h>

#include "backend/http_impl.h"

int http_error_errno(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT: /* of connecting: there is no other that curl knows of */
		return -EHOSTUNREACH;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

bool http_error_passes(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_SSL_CONNECT_ERROR: /* a server that restarts hangs up in the handshake */
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
	case CURLE_PROXY:
		return true;
	default:
		return false;
	}
}

static const char *error_hint(CURLcode code, const struct http_server *s)
{
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		return s->ca_pem
			       ? "; certificate-authority and tls-server-name of the kubeconfig "
				 "must fit this server"
			       : "; the kubeconfig names no certificate-authority, so the system's "
				 "must know this server";
	case CURLE_SSL_CERTPROBLEM:
		return "; client-certificate and client-key of the kubeconfig (or of its plugin) "
		       "must be PEM, belong together and need no pass phrase";
	case CURLE_SSL_CACERT_BADFILE:
		return "; certificate-authority of the kubeconfig must be PEM";
	case CURLE_SSL_CONNECT_ERROR:
		return "; is server of the kubeconfig right, and does it speak https?";
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT:
		return "; is server of the kubeconfig right, and can it be reached from here (VPN, "
		       "proxy)?";
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_HTTP2:
		return s->tls ? ""
			      : "; if this server speaks https, server of the kubeconfig must say "
				"so";
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_PROXY:
		return "; see proxy-url of the kubeconfig, and HTTPS_PROXY and NO_PROXY";
	default:
		return "";
	}
}

char *http_error_text(CURLcode code, const char *words, const struct http_server *s)
{
	char *text;

	if (asprintf(&text, "%s%s: %s%s", s->name, *s->proxy ? " by way of a proxy" : "",
		     *words ? words : curl_easy_strerror(code), error_hint(code, s)) < 0)
		return NULL;
	return text;
}
