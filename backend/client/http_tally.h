/* SPDX-License-Identifier: MIT */
/*
 * Counts requests for .kxfs/metrics by verb and resource as in RBAC rules ("get", "pods/log"), read
 * from method and path, and by the reply's code. Private to backend/client/. I/O thread.
 */
#pragma once

#include "backend/base/print.h"
#include "backend/client/http.h"

/* Count a request answered with STATUS (0: no reply). */
void http_tally_add(struct tally *t, enum http_method method, const char *path, int status);
