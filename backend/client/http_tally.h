/* SPDX-License-Identifier: MIT */
/*
 * Requests by what a server calls them, for .kxfs/metrics: verb and resource as in its rules of access ("get",
 * "pods/log"), read from method and path, and the code of the answer. Private to backend/client/. I/O thread.
 */
#pragma once

#include "backend/base/tally.h"
#include "backend/client/http.h"

/* One more was answered with STATUS (0: with nothing). */
void http_tally_add(struct tally *t, enum http_method method, const char *path, int status);
