/* SPDX-License-Identifier: MIT */
/* Times as Kubernetes and container runtimes write them (RFC 3339), to ns since 1970 and back. */
#ifndef KXFS_SPEC_BASE_TIME_H
#define KXFS_SPEC_BASE_TIME_H

#include "spec/base/base.h"

/*
 * The time that TEXT begins with: "2026-11-21T09:08:40Z", with or without a fraction, an offset instead
 * of Z allowed. Returns how many bytes it has; 0: TEXT begins with no time. Digits beyond ns are dropped; a time
 * that int64_t can't hold becomes the nearest that it can.
 */
size_t spec_time_parse(const char *text, size_t len, int64_t *ret_ns);

/* "2026-11-21T09:08:40Z" of a time in ns, which loses what is below a second; "" of 0. */
void spec_time_text(int64_t ns, char ret[32]);

#endif
