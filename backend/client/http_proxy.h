/* SPDX-License-Identifier: MIT */
/* Which proxy the environment names for a host. Private to backend/client/. Pure but for GET. */
#pragma once

#include "spec/base/base.h"

/*
 * The proxy for HOST (without brackets), as kubectl chooses it: HTTPS_PROXY (for http:, HTTP_PROXY) unless
 * NO_PROXY says otherwise or HOST is this machine. "" none. GET is getenv. Valid as getenv's result is.
 */
const char *http_proxy_choose(bool tls, const char *host, unsigned port,
			      char *(*get)(const char *name));
