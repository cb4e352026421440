/* SPDX-License-Identifier: MIT */
/*
 * Times as Kubernetes and container runtimes write them (RFC 3339), to ns since 1970. The other direction
 * is spec_time_text (status.h).
 */
#ifndef KXFS_SPEC_TIME_H
#define KXFS_SPEC_TIME_H

#include "spec/base.h"

/*
 * The time that TEXT begins with: "2026-11-21T09:08:40Z", with or without a fraction, an offset instead
 * of Z allowed. Returns how many bytes it has; 0: none begins here. Digits beyond ns are dropped; a time
 * that int64_t can't hold becomes the nearest that it can.
 */
size_t spec_time_parse(const char *text, size_t len, int64_t *ret_ns);

#endif
