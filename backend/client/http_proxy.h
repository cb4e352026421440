/* SPDX-License-Identifier: MIT */
/*
 * Chooses the proxy for a host from the environment. Private to backend/client/.
 */
#pragma once

#include "spec/base/base.h"

/*
 * Return the proxy for HOST (without brackets), as kubectl chooses it: HTTPS_PROXY (for http:,
 * HTTP_PROXY) unless NO_PROXY excludes HOST or HOST is this machine. "" if there is none. GET is
 * getenv. Valid as long as getenv's result.
 */
const char *http_proxy_choose(bool tls, const char *host, unsigned port,
			      char *(*get)(const char *name));
